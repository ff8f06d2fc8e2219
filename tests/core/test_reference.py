"""The reference against oracles that share nothing with it: tables worked by hand, a search among a format's values,
MPFR and Berkeley SoftFloat."""

import bisect
import itertools
import random
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
import softfloatpy

from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats import format as format_of
from softnum.modes import ROUNDING_MODES, Flags
from softnum.reference import rounding

NONE, INEXACT, UNDERFLOW, OVERFLOW, INVALID = 0, 1, 2, 4, 16
TINY = INEXACT | UNDERFLOW
BIG = INEXACT | OVERFLOW
DETERMINISTIC = [mode for mode in ROUNDING_MODES if not mode.startswith("stochastic")]
FLUSHING = FloatFormat(5, 2, subnormals=False)
UNSIGNED = FloatFormat(4, 3, signed=False, specials="p3109")
F = Fraction


def two(exponent):
    return F(2) ** exponent


def stochastic(r, bits):
    return {"rounding": "stochastic", "stochastic_bits": r, "random_bits": bits}


# -- decode ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "fmt, code, want",
    [
        ("e5m2", 0x3C, F(1)), ("e5m2", 0xBF, F(-7, 4)), ("e5m2", 0x01, two(-16)), ("e5m2", 0x7B, F(57344)),
        ("e4m3fn", 0x7E, F(448)), ("e4m3fn", 0x80, F(0)), ("e4m3fn", 0x08, two(-6)),
        ("e4m3fnuz", 0x7F, F(240)), ("e4m3fnuz", 0x01, two(-10)), ("e4m3b11fnuz", 0xFF, F(-30)),
        ("e8m0fnu", 0x00, two(-127)), ("e8m0fnu", 0x7F, F(1)), ("e8m0fnu", 0xFE, two(127)),
        ("e2m1fn", 0x7, F(6)), ("e2m1fn", 0x9, F(-1, 2)), ("e3m2fn", 0x1F, F(28)), ("e2m3fn", 0x3F, F(-15, 2)),
        ("dlfloat16", 0x0000, F(0)), ("dlfloat16", 0x0001, F(513, 512) * two(-31)),
        ("dlfloat16", 0x7FFE, F(1022, 512) * two(32)),
        ("binary8p4se", 0x40, F(1)), ("binary8p4uf", 0xFE, F(14, 8) * two(15)), ("binary8p1ue", 0x80, F(1)),
        ("bfloat16", 0x3F80, F(1)), ("binary64", 1, two(-1074)),
        ("q4.4", 0x80, F(-8)), ("q4.4", 0x7F, F(127, 16)), ("uq4.4", 0xFF, F(255, 16)), ("q1.63", 1 << 63, F(-1)),
        (FLUSHING, 0x03, F(0)), (FLUSHING, 0x04, two(-14)),
    ],
)  # fmt: skip
def test_decode_finite(fmt, code, want):
    assert ref.decode(code, fmt).kind == "finite"
    assert ref.to_fraction(code, fmt) == want


@pytest.mark.parametrize(
    "fmt, code, kind, sign, signaling",
    [
        ("e5m2", 0x7C, "inf", 0, False), ("e5m2", 0xFC, "inf", 1, False), ("e5m2", 0x7D, "nan", 0, True),
        ("e5m2", 0x7E, "nan", 0, False), ("e5m2", 0xFF, "nan", 0, False), ("e4m3fn", 0xFF, "nan", 0, False),
        ("e4m3fn", 0x7F, "nan", 0, False), ("e4m3fnuz", 0x80, "nan", 0, False), ("e8m0fnu", 0xFF, "nan", 0, False),
        ("e3m1", 0b11111, "nan", 0, False), ("binary32", 0x7F800001, "nan", 0, True),
        ("binary8p3se", 0x80, "nan", 0, False), ("binary8p3se", 0x7F, "inf", 0, False),
        ("binary8p3se", 0xFF, "inf", 1, False), ("binary8p3ue", 0xFE, "inf", 0, False),
        ("binary8p3ue", 0xFF, "nan", 0, False), ("binary8p3sf", 0x80, "nan", 0, False),
        ("e5m2", 0x80, "finite", 1, False), ("q4.4", 0x80, "finite", 1, False), (FLUSHING, 0x81, "finite", 1, False),
    ],
)  # fmt: skip
def test_decode_kind_and_sign(fmt, code, kind, sign, signaling):
    value = ref.decode(code, fmt)
    assert (value.kind, value.signaling) == (kind, signaling)
    assert kind == "nan" or value.sign == sign


def test_decode_matches_the_facts_of_the_format():
    for name in ("e5m2", "e4m3fn", "e4m3fnuz", "dlfloat16", "e2m1fn", "bfloat16", "q3.5", "uq0.8", "e8m0fnu"):
        fmt = format_of(name)
        values = [ref.decode(code, fmt) for code in range(1 << fmt.bits)]
        finite = [value.fraction for value in values if value.kind == "finite"]
        assert max(finite) == fmt.max and min(finite) == fmt.min
        assert min(value for value in finite if value > 0) == fmt.smallest_subnormal


def test_decode_refuses():
    with pytest.raises(ValueError, match="0x100 is not one of e5m2, which has 8 bits"):
        ref.decode(256, "e5m2")
    with pytest.raises(ValueError, match="is inf, which has no value"):
        ref.to_fraction(0x7C, "e5m2")


# -- rounding, worked by hand ------------------------------------------------------------------------------------------
# mode: results of +x and -x in e5m2, for x = 1.125 (half way from 0x3C, even, to 0x3D) and 1.375 (0x3D to 0x3E)
TIES = {
    "nearest_even": (0x3C, 0xBC, 0x3E, 0xBE),
    "nearest_away": (0x3D, 0xBD, 0x3E, 0xBE),
    "nearest_zero": (0x3C, 0xBC, 0x3D, 0xBD),
    "nearest_up": (0x3D, 0xBC, 0x3E, 0xBD),
    "nearest_down": (0x3C, 0xBD, 0x3D, 0xBE),
    "toward_zero": (0x3C, 0xBC, 0x3D, 0xBD),
    "away_from_zero": (0x3D, 0xBD, 0x3E, 0xBE),
    "up": (0x3D, 0xBC, 0x3E, 0xBD),
    "down": (0x3C, 0xBD, 0x3D, 0xBE),
    "to_odd": (0x3D, 0xBD, 0x3D, 0xBD),
}


@pytest.mark.parametrize("mode", DETERMINISTIC)
def test_ties_by_hand(mode):
    for x, want in zip((F(9, 8), F(-9, 8), F(11, 8), F(-11, 8)), TIES[mode], strict=True):
        assert ref.round_value(x, 0, "e5m2", rounding=mode) == (want, INEXACT)


@pytest.mark.parametrize(
    "mode, x, bits, want",
    [
        ("stochastic", F(9, 8), 1, 0x3C), ("stochastic", F(9, 8), 2, 0x3D),
        ("stochastic", F(-9, 8), 1, 0xBC), ("stochastic", F(-9, 8), 2, 0xBD),
        ("stochastic_floor", F(9, 8), 1, 0x3C), ("stochastic_floor", F(9, 8), 2, 0x3D),
        ("stochastic_floor", F(-9, 8), 1, 0xBD), ("stochastic_floor", F(-9, 8), 2, 0xBC),
        # in ulps -(4 + 7/32), four times that floor(-16.875) = -17: R = 0 ends at -5, R = 1 at -4
        ("stochastic", F(135, 128), 3, 0x3C), ("stochastic_floor", F(-135, 128), 0, 0xBD),
        ("stochastic_floor", F(-135, 128), 1, 0xBC),
        ("stochastic", F(9, 8), 0xFFFFFFFE, 0x3D),  # only the low two bits count
    ],
)  # fmt: skip
def test_stochastic_by_hand(mode, x, bits, want):
    assert ref.round_value(x, 0, "e5m2", rounding=mode, stochastic_bits=2, random_bits=bits) == (want, INEXACT)


@pytest.mark.parametrize(
    "fmt, x, environment, want",
    [
        # e8m0: "even" is the code's lowest bit: 2.0 is 128, 4.0 is 129, 8.0 is 130
        ("e8m0fnu", F(3), {}, (128, INEXACT)), ("e8m0fnu", F(6), {}, (130, INEXACT)),
        ("e8m0fnu", F(3), {"rounding": "nearest_away"}, (129, INEXACT)),
        ("e8m0fnu", F(3), {"rounding": "to_odd"}, (129, INEXACT)),
        ("e8m0fnu", two(-127), {}, (0, NONE)), ("e8m0fnu", two(-128), {"rounding": "down"}, (0, TINY)),
        ("e8m0fnu", two(-127) * F(2047, 2048), {}, (0, TINY)),
        ("e8m0fnu", F(0), {}, (0, TINY)), ("e8m0fnu", F(0), {"rounding": "toward_zero"}, (0, TINY)),
        ("e8m0fnu", F(-1), {}, (255, INVALID)), ("e8m0fnu", -two(-300), {"rounding": "up"}, (255, INVALID)),
        ("e8m0fnu", two(128), {}, (255, BIG)), ("e8m0fnu", two(128), {"overflow": "saturate"}, (254, BIG)),
        ("e8m0fnu", two(127) * F(3, 2), {}, (254, INEXACT)),
        # dlfloat16: below the smallest normal s = 513 * 2**-40 the grid is {0, s}
        ("dlfloat16", F(513, 2) * two(-40), {}, (0, TINY)),
        ("dlfloat16", F(-513, 2) * two(-40), {"rounding": "nearest_away"}, (0x8001, TINY)),
        ("dlfloat16", two(-31), {}, (1, TINY)), ("dlfloat16", -two(-31), {"rounding": "toward_zero"}, (0x8000, TINY)),
        ("dlfloat16", two(-60), {"rounding": "to_odd"}, (1, TINY)),
        ("dlfloat16", (513 - two(-10)) * two(-40), {}, (1, INEXACT)),
        ("dlfloat16", (513 - two(-10)) * two(-40), {"tininess": "before"}, (1, TINY)),
        ("dlfloat16", F(513, 4) * two(-40), stochastic(8, 191), (0, TINY)),
        ("dlfloat16", F(513, 4) * two(-40), stochastic(8, 192), (1, TINY)),
        ("dlfloat16", F(514) * two(-40), {}, (2, NONE)),
        # no subnormals: below 2**-14 the grid is {0, 2**-14}
        (FLUSHING, two(-15), {}, (0, TINY)), (FLUSHING, -two(-15), {"rounding": "nearest_down"}, (0x84, TINY)),
        (FLUSHING, -two(-30), {"rounding": "up"}, (0x80, TINY)), (FLUSHING, two(-30), {"rounding": "up"}, (4, TINY)),
        (FLUSHING, two(-16), {"rounding": "to_odd"}, (4, TINY)),
        (FLUSHING, two(-14) * F(63, 64), {}, (4, INEXACT)),
        (FLUSHING, two(-14) * F(63, 64), {"tininess": "before"}, (4, TINY)),
        (FLUSHING, two(-16), stochastic(2, 2), (0, TINY)),
        (FLUSHING, two(-16), stochastic(2, 3), (4, TINY)),
        # subnormals: tiny after rounding as if the exponent had no bounds. The quantum there is s/8, here s/4.
        ("e5m2", two(-14) * F(31, 32), {}, (4, INEXACT)),
        ("e5m2", two(-14) * F(31, 32), {"tininess": "before"}, (4, TINY)),
        ("e5m2", two(-14) * F(15, 16), {}, (4, INEXACT)), ("e5m2", two(-14) * F(29, 32), {}, (4, TINY)),
        ("e5m2", two(-15), {}, (2, NONE)), ("e5m2", -two(-17), {}, (0x80, TINY)), ("e5m2", two(-17) * 3, {}, (2, TINY)),
        ("e5m2", two(-14) * F(31, 32), {"rounding": "up"}, (4, INEXACT)),
        ("e5m2", two(-14) * F(27, 32), {"rounding": "up"}, (4, TINY)),
        ("e5m2", two(-14) * F(31, 32), {"rounding": "stochastic", "random_bits": 0xFFFFFFFF}, (4, TINY)),
        ("e5m2", two(-14) * F(31, 32), {"rounding": "stochastic_floor", "random_bits": 0xFFFFFFFF}, (4, TINY)),
        # formats without -0
        ("e4m3fnuz", -two(-30), {}, (0, TINY)), ("e4m3fnuz", -two(-30), {"rounding": "down"}, (0x81, TINY)),
        # unsigned with a zero
        (UNSIGNED, F(-1), {}, (0, NONE)), (UNSIGNED, F(-9, 8) * two(-30), {}, (0, TINY)),
        (UNSIGNED, F(1), {}, (0x40, NONE)),
        (UNSIGNED, two(9), {}, (0x7E, BIG)), (UNSIGNED, two(9), {"overflow": "saturate"}, (0x7D, BIG)),
    ],
)  # fmt: skip
def test_floats_by_hand(fmt, x, environment, want):
    assert ref.round_value(x, 0, fmt, **environment) == want


# e5m2: 0x7B = 57344 (odd), the next grid point is 65536; 61440 is half way. Results of +x and flags.
@pytest.mark.parametrize("mode", DETERMINISTIC)
def test_overflow_by_hand_in_e5m2(mode):
    half = {
        "nearest_even": 0x7C, "nearest_away": 0x7C, "nearest_zero": 0x7B, "nearest_up": 0x7C, "nearest_down": 0x7B,
        "toward_zero": 0x7B, "away_from_zero": 0x7C, "up": 0x7C, "down": 0x7B, "to_odd": 0x7B,
    }[mode]  # fmt: skip
    assert ref.round_value(F(61440), 0, "e5m2", rounding=mode) == (half, BIG if half == 0x7C else INEXACT)
    beyond = 0x7B if mode in ("toward_zero", "down", "to_odd") else 0x7C
    assert ref.round_value(F(65536), 0, "e5m2", rounding=mode) == (beyond, BIG)
    below = 0xFB if mode in ("toward_zero", "up", "to_odd") else 0xFC
    assert ref.round_value(F(-(10**9)), 0, "e5m2", rounding=mode) == (below, BIG)
    for rule in ("saturate", "saturate_finite"):
        assert ref.round_value(F(65536), 0, "e5m2", rounding=mode, overflow=rule) == (0x7B, BIG)


@pytest.mark.parametrize(
    "fmt, x, environment, want",
    [
        ("e4m3fn", F(464), {}, (0x7E, INEXACT)), ("e4m3fn", F(464), {"rounding": "nearest_away"}, (0x7F, BIG)),
        ("e4m3fn", F(-480), {}, (0x7F, BIG)), ("e4m3fn", F(-480), {"overflow": "saturate_finite"}, (0xFE, BIG)),
        ("e4m3fn", F(450), {"rounding": "to_odd"}, (0x7E, BIG)),  # 0x7F would be the odd one
        ("e4m3fn", F(450), {"rounding": "toward_zero"}, (0x7E, INEXACT)),
        ("e4m3fnuz", F(256), {}, (0x80, BIG)), ("e4m3fnuz", F(-256), {"rounding": "up"}, (0xFF, BIG)),
        ("e2m1fn", F(8), {}, (0x7, BIG)), ("e2m1fn", F(-7), {}, (0xF, BIG)),  # 6 is 0x7, odd: the tie goes to 8
        ("e2m1fn", F(-7), {"rounding": "nearest_zero"}, (0xF, INEXACT)),
        ("e5m2", F(59392), stochastic(2, 2), (0x7B, INEXACT)),
        ("e5m2", F(59392), stochastic(2, 3), (0x7C, BIG)),
        ("e5m2", F(-65536), {"rounding": "stochastic_floor", "random_bits": 0}, (0xFC, BIG)),
        ("e5m2", F(59392), stochastic(2, 3) | {"overflow": "saturate"}, (0x7B, BIG)),
    ],
)  # fmt: skip
def test_overflow_by_hand(fmt, x, environment, want):
    assert ref.round_value(x, 0, fmt, **environment) == want


@pytest.mark.parametrize(
    "fmt, x, environment, want",
    [
        ("q4.4", F(1, 32), {}, (0, INEXACT)), ("q4.4", F(-3, 32), {}, (0xFE, INEXACT)),
        ("q4.4", F(-1, 32), {"rounding": "nearest_down"}, (0xFF, INEXACT)),
        ("q4.4", F(-1, 32), {"rounding": "up"}, (0, INEXACT)),
        ("q4.4", F(-5, 32), {"rounding": "to_odd"}, (0xFD, INEXACT)), ("q4.4", F(1), {}, (16, NONE)),
        ("q4.4", F(8), {}, (0x7F, OVERFLOW)), ("q4.4", F(8), {"rounding": "toward_zero"}, (0x7F, OVERFLOW)),
        ("q4.4", F(255, 32), {}, (0x7F, BIG)), ("q4.4", F(255, 32), {"rounding": "down"}, (0x7F, INEXACT)),
        ("q4.4", F(-257, 32), {}, (0x80, INEXACT)), ("q4.4", F(-257, 32), {"rounding": "down"}, (0x80, BIG)),
        ("q4.4", F(8), {"overflow": "wrap"}, (0x80, OVERFLOW)),
        ("q4.4", F(-100), {"overflow": "wrap"}, (0xC0, OVERFLOW)),
        ("q4.4", F(-257, 32), {"overflow": "wrap", "rounding": "to_odd"}, (0x7F, BIG)),
        ("q4.4", F(-257, 32), {"rounding": "to_odd"}, (0x80, BIG)),
        ("q4.4", F(10**6), {"overflow": "wrap", "rounding": "toward_zero"}, (0, OVERFLOW)),
        ("q4.4", F(-1000), {"overflow": "saturate_finite", "rounding": "up"}, (0x80, OVERFLOW)),
        ("uq4.4", F(-1, 16), {}, (0, OVERFLOW)), ("uq4.4", F(-1, 32), {}, (0, INEXACT)),
        ("uq4.4", F(16), {}, (0xFF, OVERFLOW)),
        ("uq4.4", F(-1, 16), {"overflow": "wrap"}, (0xFF, OVERFLOW)),
        ("uq4.4", F(-1, 32), {"rounding": "down"}, (0, BIG)),
        # -0.25 of a unit: floor(-0.25 * 4) + R: R = 0 stays below zero, R = 1 reaches it
        ("q4.4", F(-1, 64), {"rounding": "stochastic_floor", "stochastic_bits": 2, "random_bits": 0}, (0xFF, INEXACT)),
        ("q4.4", F(-1, 64), {"rounding": "stochastic_floor", "stochastic_bits": 2, "random_bits": 1}, (0, INEXACT)),
        ("q4.4", F(-1, 64), stochastic(2, 3), (0xFF, INEXACT)),
        ("q1.63", F(1), {}, ((1 << 63) - 1, OVERFLOW)), ("uq64.0", two(64) - F(1, 2), {}, ((1 << 64) - 1, BIG)),
    ],
)  # fmt: skip
def test_fixed_point_by_hand(fmt, x, environment, want):
    assert ref.round_value(x, 0, fmt, **environment) == want


# -- specials, worked by hand ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "fmt, plus, minus",
    [  # results of +inf and -inf under infinity, saturate, saturate_finite
        ("bfloat16", (0x7F80, 0x7F7F, 0x7F80), (0xFF80, 0xFF7F, 0xFF80)),
        ("e4m3fn", (0x7F, 0x7E, 0x7E), (0x7F, 0xFE, 0xFE)),
        ("e4m3fnuz", (0x80, 0x7F, 0x7F), (0x80, 0xFF, 0xFF)),
        ("e2m1fn", (0x7, 0x7, 0x7), (0xF, 0xF, 0xF)),
        ("binary8p3se", (0x7F, 0x7E, 0x7F), (0xFF, 0xFE, 0xFF)),
        (UNSIGNED, (0x7E, 0x7D, 0x7E), (0, 0, 0)),
    ],
)
def test_exact_infinities_by_hand(fmt, plus, minus):
    for rule, want_plus, want_minus in zip(("infinity", "saturate", "saturate_finite"), plus, minus, strict=True):
        assert ref.convert(0x7C, "e5m2", fmt, overflow=rule) == (want_plus, NONE)
        assert ref.convert(0xFC, "e5m2", fmt, overflow=rule) == (want_minus, NONE)


def test_infinities_where_only_positive_values_or_integers_are():
    assert ref.convert(0x7C, "e5m2", "e8m0fnu") == (0xFF, NONE)
    assert ref.convert(0x7C, "e5m2", "e8m0fnu", overflow="saturate") == (0xFE, NONE)
    assert ref.convert(0xFC, "e5m2", "e8m0fnu", overflow="saturate") == (0xFF, INVALID)
    for code in (0x7C, 0xFC, 0x7E):
        for rule in ("saturate", "wrap", "saturate_finite"):
            assert ref.convert(code, "e5m2", "q4.4", overflow=rule) == (0, INVALID)


@pytest.mark.parametrize(
    "operation, codes, want",
    [
        (ref.add, (0x7C, 0xFC), (0x7E, INVALID)), (ref.add, (0x7C, 0x7C), (0x7C, NONE)),
        (ref.add, (0xFC, 0x3C), (0xFC, NONE)),
        (ref.subtract, (0x7C, 0x7C), (0x7E, INVALID)), (ref.subtract, (0x3C, 0x7C), (0xFC, NONE)),
        (ref.multiply, (0x7C, 0x80), (0x7E, INVALID)), (ref.multiply, (0x7C, 0x81), (0xFC, NONE)),
        (ref.add, (0x7D, 0x3C), (0x7E, INVALID)), (ref.add, (0xFF, 0x3C), (0x7E, NONE)),
        (ref.multiply, (0x7F, 0xFD), (0x7E, INVALID)),
        (ref.fma, (0x7C, 0x00, 0x7E), (0x7E, INVALID)), (ref.fma, (0x7C, 0x3C, 0xFC), (0x7E, INVALID)),
        (ref.fma, (0x7E, 0x00, 0x3C), (0x7E, NONE)), (ref.fma, (0x00, 0x00, 0x7D), (0x7E, INVALID)),
        (ref.fma, (0x7C, 0x3C, 0x00), (0x7C, NONE)), (ref.fma, (0x7E, 0x7C, 0xFC), (0x7E, NONE)),
        (ref.multiply, (0x3C, 0x80), (0x80, NONE)), (ref.multiply, (0xBC, 0x80), (0x00, NONE)),
    ],
)  # fmt: skip
def test_specials_by_hand_in_e5m2(operation, codes, want):
    assert operation(*codes, "e5m2") == want


def test_a_nan_where_there_is_none():
    assert ref.convert(0x7E, "e5m2", "e2m1fn") == (0, INVALID)
    assert ref.convert(0x7D, "e5m2", "e2m1fn") == (0, INVALID)
    assert ref.convert(0x7D, "e5m2", "e4m3fn") == (0x7F, INVALID)
    assert ref.convert(0x7F, "e4m3fn", "e5m2") == (0x7E, NONE)
    assert ref.add(0x80, 0x01, "e4m3fnuz") == (0x80, NONE)


@pytest.mark.parametrize("mode", ROUNDING_MODES)
def test_signs_of_zero(mode):
    environment = {"rounding": mode, "random_bits": 0}
    cancelled = (0x80 if mode == "down" else 0x00, NONE)
    assert ref.add(0x3C, 0xBC, "e5m2", **environment) == cancelled
    assert ref.subtract(0x3C, 0x3C, "e5m2", **environment) == cancelled
    assert ref.add(0x00, 0x80, "e5m2", **environment) == cancelled
    assert ref.fma(0x3C, 0x3C, 0xBC, "e5m2", **environment) == cancelled
    assert ref.fma(0x80, 0x3C, 0x00, "e5m2", **environment) == cancelled
    assert ref.add(0x80, 0x80, "e5m2", **environment) == (0x80, NONE)
    assert ref.add(0x00, 0x00, "e5m2", **environment) == (0x00, NONE)
    assert ref.subtract(0x80, 0x00, "e5m2", **environment) == (0x80, NONE)
    assert ref.fma(0x80, 0x3C, 0x80, "e5m2", **environment) == (0x80, NONE)
    assert ref.convert(0x80, "e5m2", "e4m3fn", **environment) == (0x80, NONE)
    assert ref.convert(0x80, "e5m2", "e4m3fnuz", **environment) == (0x00, NONE)
    assert ref.convert(0x80, "e5m2", "q4.4", **environment) == (0x00, NONE)
    assert ref.add(0x10, 0xF0, "q4.4", **environment) == (0x00, NONE)
    assert ref.convert(0x80, "e5m2", "e8m0fnu", **environment) == (0x00, TINY)


def test_encode_takes_python_and_numpy_numbers():
    assert ref.encode(1, "e5m2") == ref.encode(1.0, "e5m2") == ref.encode(F(1), "e5m2") == (0x3C, NONE)
    assert ref.encode(np.float32(-1.5), "e5m2") == ref.encode(np.float64(-1.5), "e5m2") == (0xBE, NONE)
    assert ref.encode(np.int8(-128), "q8.0") == (0x80, NONE)
    assert ref.encode(-0.0, "e5m2") == (0x80, NONE)
    assert ref.encode(float("-inf"), "e5m2") == (0xFC, NONE)
    assert ref.encode(float("nan"), "e5m2") == (0x7E, NONE)
    assert ref.encode(F(1, 10), "binary64") == (0x3FB999999999999A, INEXACT)
    assert ref.round_value(F(0), 1, "e5m2") == (0x80, NONE)


def test_refusals():
    with pytest.raises(ValueError, match="different formats .e5m2, e4m3fn. need out_fmt="):
        ref.add(0, 0, ("e5m2", "e4m3fn"))
    with pytest.raises(ValueError, match="3 operands need one format or 3, got 2"):
        ref.fma(0, 0, 0, ("e5m2", "e5m2"))
    with pytest.raises(ValueError, match="needs random_bits"):
        ref.add(0, 0, "e5m2", rounding="stochastic")
    with pytest.raises(ValueError, match="stochastic_bits must lie in 1..32, got 33"):
        ref.add(0, 0, "e5m2", rounding="sr", random_bits=0, stochastic_bits=33)
    with pytest.raises(ValueError, match="tininess must be 'after' or 'before', got 'never'"):
        ref.add(0, 0, "e5m2", tininess="never")
    with pytest.raises(ValueError, match="wrap"):
        ref.add(0, 0, "e5m2", overflow="wrap")
    with pytest.raises(TypeError, match="encode needs an int, float or Fraction, got '1'"):
        ref.encode("1", "e5m2")
    with pytest.raises(ValueError, match="Philox4x32 needs 2 key and 4 counter words"):
        ref.philox4x32_10((0, 1 << 32), (0, 0, 0, 0))
    with pytest.raises(ValueError, match="seed must lie in"):
        ref.random_word_elementwise(-1, 0, 0)


# -- a search among the values of a format -----------------------------------------------------------------------------
SMALL_FORMATS = [
    format_of("e4m3fn"), format_of("e4m3fnuz"), format_of("e2m1fn"), format_of("e3m2fn"), format_of("e3m1"), FLUSHING,
    FloatFormat(3, 2, specials="fn", lowest_binade="normal"),
    FloatFormat(3, 0, specials="none", lowest_binade="normal"),
    FloatFormat(4, 0, specials="none"), format_of("q3.3"), format_of("q0.5"),
]  # fmt: skip


def magnitudes(fmt):
    """The format's magnitudes in order, then the next two points of the grid, each with its code."""
    if isinstance(fmt, FixedFormat):
        return [(F(n, 1 << fmt.fraction_bits), n) for n in range((1 << (fmt.bits - 1)) + 2)]
    values = {}
    for code in range(1 << (fmt.bits - 1)):
        value = ref.decode(code, fmt)
        if value.kind == "finite":
            values.setdefault(value.fraction, code)
    points = sorted(values.items())
    for _ in range(2):
        last, code = points[-1]
        binade = last.numerator.bit_length() - last.denominator.bit_length()
        points.append((last + two(binade - fmt.mantissa_bits), code + 1))
    return points


def by_search(x, points, mode, r, bits):
    """The signed neighbour of x among the points that the mode asks for, by definition of the mode."""
    at = bisect.bisect_right([value for value, _ in points], abs(x)) - 1
    (low, low_code), (high, _) = points[at], points[at + 1]
    if low == abs(x):
        return x
    t = (abs(x) - low) / (high - low)
    sign = -1 if x < 0 else 1
    low, high = sign * low, sign * high
    upper, lower = max(low, high), min(low, high)
    nearest = low if t < F(1, 2) else high if t > F(1, 2) else None
    if mode == "stochastic":
        return high if (t * 2**r).__floor__() + bits >= 2**r else low
    if mode == "stochastic_floor":
        in_ulps = t if sign > 0 else 1 - t  # above the lower neighbour
        return upper if (in_ulps * 2**r).__floor__() + bits >= 2**r else lower
    return {
        "nearest_even": nearest if nearest is not None else (high if low_code % 2 else low),
        "nearest_away": nearest if nearest is not None else high,
        "nearest_zero": nearest if nearest is not None else low,
        "nearest_up": nearest if nearest is not None else upper,
        "nearest_down": nearest if nearest is not None else lower,
        "toward_zero": low,
        "away_from_zero": high,
        "up": upper,
        "down": lower,
        "to_odd": low if low_code % 2 else high,
    }[mode]


def samples(points):
    for (low, _), (high, _) in itertools.pairwise(points):
        for t in (F(0), F(1, 64), F(1, 3), F(63, 128), F(1, 2), F(65, 128), F(3, 4), F(255, 256)):
            yield low + t * (high - low)


def compare_with_search(fmt, mode):
    points = magnitudes(fmt)
    largest, smallest = F(fmt.max), F(fmt.min)
    signed_zero = fmt.negative_zero
    for i, x in enumerate(samples(points[:-1])):
        for value in (x, -x):
            bits = (i * 37) % 64
            want = by_search(value, points, mode, 6, bits)
            code, flags = ref.round_value(
                value, 0, fmt, rounding=mode, overflow="saturate", stochastic_bits=6, random_bits=bits
            )
            where = f"{fmt} {mode} x={value} R={bits}: {code:#x} {flags!r}, want {want}"
            assert ref.to_fraction(code, fmt) == min(max(want, smallest), largest), where
            assert bool(flags & OVERFLOW) == (not smallest <= want <= largest), where
            if fmt.kind == "float":
                assert bool(flags & INEXACT) == (ref.to_fraction(code, fmt) != value), where
                assert ref.decode(code, fmt).sign == (value < 0 and (want != 0 or signed_zero)), where
                assert not flags & UNDERFLOW or abs(value) < fmt.smallest_normal, where
            else:
                assert flags & ~OVERFLOW == (INEXACT if want != value else 0), where


@pytest.mark.parametrize("fmt", SMALL_FORMATS, ids=str)
@pytest.mark.parametrize("mode", ROUNDING_MODES)
def test_rounding_against_a_search(fmt, mode):
    compare_with_search(fmt, mode)


@pytest.mark.parametrize("mode", ["nearest_even", "to_odd", "stochastic_floor"])
def test_the_search_catches_a_planted_fault(mode, monkeypatch):
    decide = rounding.goes_up

    def faulty(sign, odd, rest, unit, env):  # wrong in one case: exact halves
        return decide(sign, odd, rest, unit, env) != (2 * rest == unit)

    monkeypatch.setattr(rounding, "goes_up", faulty)
    with pytest.raises(AssertionError, match="want"):
        compare_with_search(format_of("e4m3fn"), mode)


@pytest.mark.parametrize("mode", ROUNDING_MODES)
@pytest.mark.parametrize("fmt", [format_of("e3m2fn"), FLUSHING, format_of("q3.3")], ids=str)
def test_rounding_is_monotonic(fmt, mode):
    positive = sorted(set(samples(magnitudes(fmt))))
    for bits in (0, 21, 63):
        environment = {"rounding": mode, "overflow": "saturate", "stochastic_bits": 6, "random_bits": bits}
        inputs = [-x for x in reversed(positive)] + positive
        results = [ref.to_fraction(ref.round_value(x, 0, fmt, **environment)[0], fmt) for x in inputs]
        assert results == sorted(results)


@pytest.mark.parametrize("r", [1, 3, 8])
def test_stochastic_rounds_up_as_often_as_it_should(r):
    cases = [
        ("e5m2", F(1), F(5, 4)), ("e5m2", F(0), two(-16)), ("e5m2", two(-16), two(-15)), ("e5m2", F(7, 4), F(2)),
        (FLUSHING, F(0), two(-14)), ("dlfloat16", F(0), F(513) * two(-40)), ("q4.4", F(3, 16), F(4, 16)),
        ("e4m3fn", F(416), F(448)),
    ]  # fmt: skip
    for fmt, low, high in cases:
        for t in (F(1, 1000), F(1, 8), F(1, 3), F(1, 2), F(5, 8), F(999, 1000)):
            for mode in ("stochastic", "stochastic_floor"):
                for sign in (1, -1):
                    ups = 0
                    for bits in range(1 << r):
                        code, _ = ref.round_value(
                            sign * (low + t * (high - low)), 0, fmt, rounding=mode, stochastic_bits=r, random_bits=bits
                        )
                        ups += abs(ref.to_fraction(code, fmt)) == high
                    floor = (t * 2**r).__floor__()
                    ceiling = -((-t * 2**r).__floor__())
                    assert ups == (ceiling if mode == "stochastic_floor" and sign < 0 else floor), (fmt, t, mode, sign)


# -- MPFR --------------------------------------------------------------------------------------------------------------
MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "up": gmpy2.RoundUp,
    "down": gmpy2.RoundDown,
    "away_from_zero": gmpy2.RoundAwayZero,
}


def mpfr_context(fmt, mode):
    lowest = (1 - fmt.emax) - fmt.mantissa_bits + 1
    return gmpy2.context(
        precision=fmt.precision, emax=fmt.emax + 1, emin=lowest, subnormalize=True, round=MPFR_MODES[mode]
    )


def assert_is(code, fmt, want, where):
    got = ref.decode(code, fmt)
    if gmpy2.is_nan(want):
        assert got.kind == "nan", where
    elif gmpy2.is_infinite(want):
        assert (got.kind, got.sign) == ("inf", int(want < 0)), where
    else:
        fraction = F(*map(int, want.as_integer_ratio()))
        assert got.kind == "finite" and (got.fraction, got.sign) == (fraction, int(gmpy2.is_signed(want))), where


def near_codes(fmt, rng, count):
    """Values near a random code's: on it, half way to the next, and a little off both."""
    for _ in range(count):
        value = ref.decode(rng.randrange(1 << fmt.bits), fmt)
        if value.kind == "finite":
            ulp = two(max(fmt.emin, value.numerator.bit_length() - value.denominator.bit_length()) - fmt.mantissa_bits)
            yield value.fraction + ulp * rng.choice(
                (F(0), F(1, 2), F(1, 4), F(-1, 3), F(1, 2) + two(-70), F(1, 2) - two(-70))
            )


@pytest.mark.parametrize("mode", MPFR_MODES)
@pytest.mark.parametrize(
    "name", ["e5m2", "e4m3", "e3m4", "binary16", "bfloat16", "tf32", "e6m9", "binary32", "binary64", "e2m1"]
)
def test_encode_against_mpfr(name, mode):
    fmt = format_of(name)
    rng = random.Random(f"{name} {mode}")
    largest = F(fmt.max)
    edges = [s * v for s in (1, -1) for v in (largest, largest * F(65, 64), 4 * largest, F(fmt.smallest_subnormal) / 3)]
    for x in [*edges, *near_codes(fmt, rng, 400)]:
        if x == 0:
            continue
        with mpfr_context(fmt, mode):
            want = gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator))
        code, flags = ref.encode(x, fmt, rounding=mode)
        assert_is(code, fmt, want, f"{name} {mode} {x}: {code:#x}, want {want}")
        assert bool(flags & INEXACT) == (gmpy2.is_infinite(want) or F(*map(int, want.as_integer_ratio())) != x)


@pytest.mark.parametrize("mode", MPFR_MODES)
@pytest.mark.parametrize("name", ["e5m2", "bfloat16", "e6m9", "binary64"])
def test_operations_against_mpfr(name, mode):
    fmt = format_of(name)
    rng = random.Random(f"{name} {mode}")
    exact = gmpy2.context(precision=64, emax=10**6, emin=-(10**6))

    def mpfr(code):
        value = ref.decode(code, fmt)
        with exact:
            if value.kind != "finite":
                return gmpy2.mpfr("nan" if value.kind == "nan" else "-inf" if value.sign else "inf")
            magnitude = gmpy2.mpfr(value.numerator) / value.denominator
            return -magnitude if value.sign else magnitude

    for _ in range(300):
        a, b, c = (rng.randrange(1 << fmt.bits) for _ in range(3))
        b = rng.choice((b, a ^ rng.randrange(8), a ^ 1 << (fmt.bits - 1)))
        x, y, z = mpfr(a), mpfr(b), mpfr(c)
        with mpfr_context(fmt, mode) as context:
            wants = context.add(x, y), context.sub(x, y), context.mul(x, y), context.fma(x, y, z)
        for operation, codes, want in zip(
            (ref.add, ref.subtract, ref.multiply, ref.fma), ((a, b), (a, b), (a, b), (a, b, c)), wants, strict=True
        ):
            code, _ = operation(*codes, fmt, rounding=mode)
            where = f"{operation.__name__} {name} {mode} {[hex(one) for one in codes]}: {code:#x}, want {want}"
            assert_is(code, fmt, want, where)


# -- Berkeley SoftFloat ------------------------------------------------------------------------------------------------
SOFTFLOAT_MODES = {
    "nearest_even": softfloatpy.RoundingMode.NEAR_EVEN,
    "nearest_away": softfloatpy.RoundingMode.NEAR_MAX_MAG,
    "toward_zero": softfloatpy.RoundingMode.MIN_MAG,
    "up": softfloatpy.RoundingMode.MAX,
    "down": softfloatpy.RoundingMode.MIN,
}
SOFTFLOAT = {"binary16": (softfloatpy.Float16, "f16"), "binary32": (softfloatpy.Float32, "f32")}


def edge_codes(fmt):
    m, top = fmt.mantissa_bits, fmt.inf_code
    one = fmt.bias << m
    magnitudes = [
        0, 1, 2, (1 << m) - 1, 1 << m, (1 << m) + 1, one - 1, one, one + 1, one + (1 << m) - 1, one - (1 << m) // 2,
        (fmt.bias + m) << m, (fmt.bias - m - 1) << m, top - 1, top - (1 << m), top, top + 1, top + (1 << (m - 1)),
    ]  # fmt: skip
    return [sign << (fmt.bits - 1) | magnitude for magnitude in magnitudes for sign in (0, 1)]


@pytest.mark.parametrize("tininess", ["after", "before"])
@pytest.mark.parametrize("mode", SOFTFLOAT_MODES)
@pytest.mark.parametrize("name", SOFTFLOAT)
def test_operations_against_softfloat(name, mode, tininess):
    fmt = format_of(name)
    kind, prefix = SOFTFLOAT[name]
    theirs = [getattr(softfloatpy, f"{prefix}_{operation}") for operation in ("add", "sub", "mul", "mul_add")]
    size = fmt.bits // 8
    rng = random.Random(f"{name} {mode} {tininess}")
    edges = edge_codes(fmt)

    def draw():
        return rng.choice((rng.choice(edges), rng.randrange(1 << fmt.bits), rng.choice(edges) ^ rng.randrange(4)))

    cases = [(0, (a, b)) for a in edges for b in edges] + [(2, (a, b)) for a in edges for b in edges]
    for _ in range(600):
        a, b, c = draw(), draw(), draw()
        product = ref.multiply(a, b, fmt)[0]
        cases += [(1, (a, b)), (3, (a, b, c)), (3, (a, b, product ^ 1 << (fmt.bits - 1))), (2, (a, b)), (0, (a, b))]
    softfloatpy.set_rounding_mode(SOFTFLOAT_MODES[mode])
    softfloatpy.set_tininess_mode(
        softfloatpy.TininessMode.AFTER_ROUNDING if tininess == "after" else softfloatpy.TininessMode.BEFORE_ROUNDING
    )
    ours = (ref.add, ref.subtract, ref.multiply, ref.fma)
    try:
        for which, codes in cases:
            softfloatpy.set_exception_flags(0)
            their_result = theirs[which](*(kind.from_bytes(code.to_bytes(size, "big")) for code in codes))
            want = int.from_bytes(their_result.to_bytes(), "big"), int(softfloatpy.get_exception_flags())
            got = ours[which](*codes, fmt, rounding=mode, tininess=tininess)
            assert got == want, (ours[which].__name__, name, mode, [hex(c) for c in codes], got, hex(want[0]), want[1])
    finally:
        softfloatpy.set_rounding_mode(softfloatpy.RoundingMode.NEAR_EVEN)
        softfloatpy.set_tininess_mode(softfloatpy.TininessMode.AFTER_ROUNDING)
        softfloatpy.set_exception_flags(0)


# -- random words ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "key, counter, want",
    [  # known answers published with Random123
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(key, counter, want):
    assert ref.philox4x32_10(key, counter) == want


def test_elementwise_words():
    seed, stream = 0x1122334455667788, 0x99AABBCCDDEEFF00
    key = ref.philox4x32_10((0x55667788, 0x11223344), (0xDDEEFF00, 0x99AABBCC, 0, 0))[:2]
    block = ref.philox4x32_10(key, (5, 0, 0, 0))
    assert tuple(ref.random_word_elementwise(seed, stream, i) for i in range(20, 24)) == block
    assert ref.random_word_elementwise(seed, stream, (1 << 35) + 6) == ref.philox4x32_10(key, (1, 2, 0, 0))[2]


def test_matmul_words():
    keys = [ref.philox4x32_10((7, 0), (3, 0, domain, 0))[:2] for domain in (1, 2)]
    first, second = (ref.philox4x32_10(key, (2, 30, 20, 10))[1] for key in keys)
    at = {"seed": 7, "stream": 3, "batch": 10, "m": 20, "n": 30, "k": 9}
    assert ref.random_words_matmul(**at, stochastic_bits=32, two_roundings=False)[1] == first
    assert ref.random_words_matmul(**at, stochastic_bits=12, two_roundings=False)[1] == first & 0xFFF
    assert ref.random_words_matmul(**at, stochastic_bits=16, two_roundings=True) == (first & 0xFFFF, first >> 16)
    assert ref.random_words_matmul(**at, stochastic_bits=12, two_roundings=True) == (first & 0xFFF, first >> 16 & 0xFFF)
    assert ref.random_words_matmul(**at, stochastic_bits=17, two_roundings=True) == (first & 0x1FFFF, second & 0x1FFFF)


# -- units -------------------------------------------------------------------------------------------------------------
E5M2_ONE = 0x3C


def test_mad_dot_by_hand():
    # 1.25 * 1.25 = 1.5625: rounded to e5m2 it is 1.5; unrounded, 1.5625 + 1.5625 = 3.125 -> 3.0, or 1.5 + 1.5 = 3.0;
    # a third: fused 3 + 1.5625 -> round(4.5625) = 5.0 (quantum 1); rounded products 3 + 1.5 = 4.5 -> tie -> 4.0
    a = [0x3D] * 3
    fused = ref.mad_dot(a, a, operand="e5m2", accumulator="e5m2")
    rounded = ref.mad_dot(a, a, operand="e5m2", product="e5m2", accumulator="e5m2")
    assert [ref.to_fraction(code, "e5m2") for code, _ in (fused, rounded)] == [5, 4]
    assert fused[1] == rounded[1] == Flags.INEXACT
    # C comes first: 8 + 1 is a tie that stays 8 in e5m2, four times
    eight = ref.encode(8, "e5m2")[0]
    ones = [E5M2_ONE] * 4
    assert ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", c=eight)[0] == eight
    # in chunks of 3 then 1: 1 + 1 + 1 = 3, 8 + 3 = 11 -> 12 (10 is odd), 12 + 1 = 13 -> 12 (14 is odd)
    chunked = ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", c=eight, chunk=3)
    assert ref.to_fraction(chunked[0], "e5m2") == 12
    wide = ref.mad_dot(
        ones,
        ones,
        operand="e5m2",
        accumulator="e5m2",
        c=ref.encode(8, "bfloat16")[0],
        chunk=3,
        outer_accumulator="bfloat16",
    )
    assert (ref.to_fraction(wide[0], "bfloat16"), wide[1]) == (12, NONE)


def test_mad_dot_of_nothing_and_mixed_operands():
    assert ref.mad_dot([], [], operand="e5m2", accumulator="e6m9") == (0, NONE)
    assert ref.mad_dot([], [], operand="e5m2", accumulator="e6m9", c=0x1234, chunk=4) == (0x1234, NONE)
    half = ref.encode(0.5, "q2.6")[0]
    code, flags = ref.mad_dot([half], [E5M2_ONE], operand=("q2.6", "e5m2"), accumulator="q8.8")
    assert (ref.to_fraction(code, "q8.8"), flags) == (F(1, 2), NONE)
    minus_zero = ref.mad_dot([0x80], [E5M2_ONE], operand="e5m2", accumulator="e5m2")
    assert minus_zero == (0, NONE)  # +0 + -0
    assert ref.mad_dot([0x80], [E5M2_ONE], operand="e5m2", accumulator="e5m2", c=0x80) == (0x80, NONE)


@pytest.mark.parametrize("product, product_rounding", [(None, None), ("e5m2", None), ("e5m2", "nearest_even")])
@pytest.mark.parametrize("r", [8, 16, 20])
def test_stochastic_mad_dot_is_a_loop_over_the_operations(product, product_rounding, r):
    rng = random.Random(f"{product} {product_rounding} {r}")
    a, b = ([rng.randrange(0x20, 0x48) | rng.randrange(2) << 7 for _ in range(11)] for _ in range(2))
    both = product is not None and product_rounding is None
    parts = []
    for first in range(0, 11, 4):
        total = 0
        for k in range(first, min(first + 4, 11)):
            for_product, for_sum = ref.random_words_matmul(9, 5, 1, 2, 3, k, r, both)
            sr = {"rounding": "stochastic", "stochastic_bits": r}
            if product is None:
                total, _ = ref.fma(
                    a[k], b[k], total, ("e5m2", "e5m2", "e6m9"), out_fmt="e6m9", random_bits=for_sum, **sr
                )
            else:
                how = sr | {"random_bits": for_product} if both else {}
                term, _ = ref.multiply(a[k], b[k], "e5m2", **how)
                total, _ = ref.add(total, term, ("e6m9", "e5m2"), out_fmt="e6m9", random_bits=for_sum, **sr)
        parts.append(total)
    total = 0
    for j, part in enumerate(parts):
        word = ref.random_words_matmul(9, 5, 1, 2, 3, 11 + j, r, both)[1]
        total, _ = ref.add(total, part, "e6m9", rounding="stochastic", stochastic_bits=r, random_bits=word)
    unit = {"operand": "e5m2", "product": product, "accumulator": "e6m9", "chunk": 4}
    unit |= {"rounding": "stochastic", "product_rounding": product_rounding, "stochastic_bits": r}
    assert ref.mad_dot(a, b, **unit, key=(9, 5), batch=1, m=2, n=3)[0] == total
    words = [ref.random_words_matmul(9, 5, 1, 2, 3, k, r, both) for k in range(14)]
    assert ref.mad_dot(a, b, **unit, random_bits=words)[0] == total
    assert ref.mad_dot(a, b, **unit, key=9)[0] == ref.mad_dot(a, b, **unit, key=(9, 0))[0]


def test_mad_dot_refusals():
    unit = {"operand": "e5m2", "accumulator": "e5m2"}
    with pytest.raises(ValueError, match="equally long operands, got 1 and 2"):
        ref.mad_dot([0], [0, 0], **unit)
    with pytest.raises(ValueError, match="lanes=1 only, got 2"):
        ref.mad_dot([0], [0], **unit, lanes=2)
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        ref.mad_dot([0], [0], **unit, chunk=0)
    with pytest.raises(ValueError, match="give chunk="):
        ref.mad_dot([0], [0], **unit, outer_accumulator="e6m9")
    with pytest.raises(ValueError, match="needs random_bits"):
        ref.mad_dot([0], [0], **unit, rounding="stochastic")
    with pytest.raises(ValueError, match="which e8m0fnu lacks"):
        ref.mad_dot([0], [0], operand="e5m2", accumulator="e8m0fnu")
