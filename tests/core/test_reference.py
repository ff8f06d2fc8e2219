"""The reference's values and rounding against oracles that share nothing with it: tables worked by hand, and a search
among a format's values."""

import bisect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats.modes import ROUNDING_MODES
from softnum.formats.names import format as format_of
from softnum.reference import rounding
from tests.support.cases import cases

NONE, INEXACT, UNDERFLOW, OVERFLOW, INVALID = 0, 1, 2, 4, 16
TINY = INEXACT | UNDERFLOW
BIG = INEXACT | OVERFLOW
STOCHASTIC = [mode for mode in ROUNDING_MODES if mode.startswith("stochastic")]
DETERMINISTIC = [mode for mode in ROUNDING_MODES if mode not in STOCHASTIC]
FLUSHING = FloatFormat(5, 2, subnormals=False)
UNSIGNED = FloatFormat(4, 3, signed=False, specials="p3109")
F = Fraction


def two(exponent):
    return F(2) ** exponent


def stochastic(r, bits):
    return {"rounding": "stochastic", "stochastic_bits": r, "random_bits": bits}


# -- decode ------------------------------------------------------------------------------------------------------------
@cases(
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


@cases(
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


@cases(
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
        # 4.375 ulps, t * 4 = 1.5: a tie of the nearest integer, between 1 and 2
        ("stochastic_fast", F(35, 32), 1, 0x3C), ("stochastic_fast", F(35, 32), 2, 0x3D),
        ("stochastic_even", F(35, 32), 1, 0x3C), ("stochastic_even", F(35, 32), 2, 0x3D),
        ("stochastic_odd", F(35, 32), 2, 0x3C), ("stochastic_odd", F(-35, 32), 3, 0xBD),
        # 4.125 ulps, t * 4 = 0.5: a tie between 0 and 1, where "fast" rounds up for the largest R
        ("stochastic", F(33, 32), 3, 0x3C), ("stochastic_fast", F(-33, 32), 3, 0xBD),
        ("stochastic_even", F(33, 32), 3, 0x3C), ("stochastic_odd", F(33, 32), 3, 0x3D),
        # 4.875 ulps, t * 4 = 3.5: a tie between 3 and 4, which rounds up without any help
        ("stochastic", F(39, 32), 0, 0x3C), ("stochastic_fast", F(39, 32), 0, 0x3D),
        ("stochastic_even", F(39, 32), 0, 0x3D), ("stochastic_odd", F(39, 32), 0, 0x3C),
        # the first of two bits alone, whatever lies above the code
        ("stochastic_equal", F(39, 32), 1, 0x3C), ("stochastic_equal", F(33, 32), 2, 0x3D),
        ("stochastic_equal", F(1) + two(-90), 2, 0x3D), ("stochastic_equal", F(-5, 4) + two(-90), 1, 0xBC),
        ("stochastic_equal", F(-33, 32), 3, 0xBD), ("stochastic_equal", F(33, 32), 0xFFFFFFFD, 0x3C),
        # a little off these ties all agree again
        ("stochastic_fast", F(33, 32) - two(-90), 3, 0x3C), ("stochastic_odd", F(33, 32) - two(-90), 3, 0x3C),
        ("stochastic_even", F(33, 32) + two(-90), 3, 0x3D), ("stochastic_odd", F(39, 32) + two(-90), 0, 0x3D),
        ("stochastic_fast", F(39, 32) - two(-90), 0, 0x3C), ("stochastic_even", F(39, 32) - two(-90), 0, 0x3C),
    ],
)  # fmt: skip
def test_stochastic_by_hand(mode, x, bits, want):
    assert ref.round_value(x, 0, "e5m2", rounding=mode, stochastic_bits=2, random_bits=bits) == (want, INEXACT)


@cases(
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
        (UNSIGNED, F(-1), {}, (0x7F, NONE)), (UNSIGNED, F(-1), {"overflow": "saturate"}, (0, NONE)),
        (UNSIGNED, F(-9, 8) * two(-30), {}, (0, NONE)),
        (UNSIGNED, F(1), {}, (0x40, NONE)),
        (UNSIGNED, two(9), {}, (0x7E, NONE)), (UNSIGNED, two(9), {"overflow": "saturate"}, (0x7D, NONE)),
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


@cases(
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


@cases(
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
        (UNSIGNED, (0x7E, 0x7D, 0x7E), (0x7F, 0, 0)),
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


@cases(
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


@cases("mode", ROUNDING_MODES)
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
    with pytest.raises(TypeError, match="a value is an int, float or Fraction, got '1'"):
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
    if mode == "stochastic_equal":
        return high if bits >= 2 ** (r - 1) else low
    if mode == "stochastic_fast":
        return high if t * 2**r + bits + F(1, 2) >= 2**r else low
    if mode in ("stochastic_even", "stochastic_odd"):
        doubled = t * 2**r * 2  # an odd whole number is a tie
        steps = round(t * 2**r) if mode == "stochastic_even" or doubled % 2 != 1 else (doubled - 1) / 2 // 2 * 2 + 1
        return high if steps + bits >= 2**r else low
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
        for t in (F(0), F(1, 256), F(1, 64), F(1, 3), F(63, 128), F(1, 2), F(65, 128), F(3, 4), F(255, 256)):
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


@pytest.mark.slow
@cases("fmt", SMALL_FORMATS, ids=str)
@pytest.mark.parametrize("mode", ROUNDING_MODES)
def test_rounding_against_a_search(fmt, mode):
    compare_with_search(fmt, mode)


@pytest.mark.parametrize("mode", ["nearest_even", "to_odd", "stochastic_floor", "stochastic_odd"])
def test_the_search_catches_a_planted_fault(mode, monkeypatch):
    decide = rounding.goes_up

    def faulty(sign, odd, rest, unit, env):  # wrong in one case: exact halves
        return decide(sign, odd, rest, unit, env) != (2 * rest == unit)

    monkeypatch.setattr(rounding, "goes_up", faulty)
    with pytest.raises(AssertionError, match="want"):
        compare_with_search(format_of("e4m3fn"), mode)


@cases("mode", ROUNDING_MODES)
@cases("fmt", [format_of("e3m2fn"), FLUSHING, format_of("q3.3")], ids=str)
def test_rounding_is_monotonic(fmt, mode):
    positive = sorted(set(samples(magnitudes(fmt))))
    for bits in (0, 21, 63):
        environment = {"rounding": mode, "overflow": "saturate", "stochastic_bits": 6, "random_bits": bits}
        inputs = [-x for x in reversed(positive)] + positive
        results = [ref.to_fraction(ref.round_value(x, 0, fmt, **environment)[0], fmt) for x in inputs]
        assert results == sorted(results)


def times_up(steps, mode, sign, n):
    """How many of N = 2**r random words round a magnitude up that lies ``steps`` N-ths of an ulp above a code."""
    if mode == "stochastic_floor" and sign < 0:
        return math.ceil(steps)
    if mode in ("stochastic", "stochastic_floor"):
        return math.floor(steps)
    if mode == "stochastic_equal":
        return n // 2
    if mode == "stochastic_fast":
        return math.floor(steps + F(1, 2))
    even = round(steps)
    tied = abs(steps - even) == F(1, 2)
    return even if mode == "stochastic_even" or not tied else int(2 * steps - even)  # the other of the two


@pytest.mark.parametrize("r", [1, 3, 8])
def test_stochastic_rounds_up_as_often_as_it_should(r):
    cases = [
        ("e5m2", F(1), F(5, 4)), ("e5m2", F(0), two(-16)), ("e5m2", two(-16), two(-15)), ("e5m2", F(7, 4), F(2)),
        (FLUSHING, F(0), two(-14)), ("dlfloat16", F(0), F(513) * two(-40)), ("q4.4", F(3, 16), F(4, 16)),
        ("e4m3fn", F(416), F(448)),
    ]  # fmt: skip
    for fmt, low, high in cases:
        for t in (F(1, 1000), F(1, 8), F(1, 3), F(1, 2), F(5, 8), F(9, 16), F(999, 1000)):
            for mode in STOCHASTIC:
                for sign in (1, -1):
                    ups = 0
                    for bits in range(1 << r):
                        code, _ = ref.round_value(
                            sign * (low + t * (high - low)), 0, fmt, rounding=mode, stochastic_bits=r, random_bits=bits
                        )
                        ups += abs(ref.to_fraction(code, fmt)) == high
                    assert ups == times_up(t * 2**r, mode, sign, 2**r), (fmt, t, mode, sign)
