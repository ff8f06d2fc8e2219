"""The reference's integers, shifts and errors in ulps, by hand and by definition."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.modes import ROUNDING_MODES
from softnum.formats.names import format as format_of
from tests.support.cases import cases

NONE, INEXACT, OVERFLOW, INVALID = 0, 1, 4, 16
RULES = ("riscv", "arm", "x86", 7)
F = Fraction


def two(exponent):
    return F(2) ** exponent


@cases(
    "x, mode, want",
    [
        (F(5, 2), "nearest_even", 2), (F(7, 2), "nearest_even", 4), (F(-5, 2), "nearest_even", -2),
        (F(5, 2), "nearest_away", 3), (F(5, 2), "nearest_zero", 2), (F(-5, 2), "nearest_up", -2),
        (F(-5, 2), "nearest_down", -3), (F(-11, 4), "toward_zero", -2), (F(-9, 4), "away_from_zero", -3),
        (F(-11, 4), "up", -2), (F(-9, 4), "down", -3), (F(9, 4), "to_odd", 3), (F(15, 4), "to_odd", 3),
        (F(1, 4), "nearest_even", 0), (F(-1, 4), "down", -1), (F(0), "up", 0),
    ],
)  # fmt: skip
def test_modes_by_hand(x, mode, want):
    flags = INEXACT if x.denominator > 1 else NONE
    code, _ = ref.encode(x, "binary16")
    assert ref.to_integer(code, "binary16", 8, True, rounding=mode) == (want, flags)
    assert ref.to_integer(code, "binary16", 8, True, rounding=mode, exact=False) == (want, NONE)


@cases(
    "x, bits, signed, riscv, arm, x86",
    [
        (float("nan"), 8, True, 127, 0, -128), (float("nan"), 8, False, 255, 0, 255),
        (float("inf"), 8, True, 127, 127, -128), (float("-inf"), 8, True, -128, -128, -128),
        (float("inf"), 8, False, 255, 255, 255), (float("-inf"), 8, False, 0, 0, 255),
        (1000, 8, True, 127, 127, -128), (-1000, 8, True, -128, -128, -128), (-1, 8, False, 0, 0, 255),
        (F(255, 2), 8, True, 127, 127, -128),  # rounds to 128
        (F(-5, 8), 16, False, 0, 0, 65535), (65535, 16, True, 32767, 32767, -32768),
        (two(31), 32, True, 2**31 - 1, 2**31 - 1, -(2**31)), (two(63), 64, True, 2**63 - 1, 2**63 - 1, -(2**63)),
        (two(64), 64, False, 2**64 - 1, 2**64 - 1, 2**64 - 1),
    ],
)  # fmt: skip
def test_invalid_integers_by_hand(x, bits, signed, riscv, arm, x86):
    code, _ = ref.encode(x, "binary32")
    for rule, want in zip(RULES, (riscv, arm, x86, 7), strict=True):
        for exact in (True, False):
            assert ref.to_integer(code, "binary32", bits, signed, invalid=rule, exact=exact) == (want, INVALID), rule


@cases(
    "fmt, x, bits, signed, environment, want",
    [
        ("binary32", F(-1, 2), 8, False, {}, (0, INEXACT)),
        ("binary32", F(-1, 2), 8, False, {"rounding": "down"}, (255, INVALID)),
        ("binary32", F(255, 2), 8, True, {"rounding": "toward_zero"}, (127, INEXACT)),
        ("binary32", F(-257, 2), 8, True, {}, (-128, INEXACT)),
        ("binary64", two(63) - 2**10, 64, True, {}, (2**63 - 2**10, NONE)),
        ("q4.4", F(-1, 16), 4, True, {}, (0, INEXACT)), ("q4.4", F(-129, 16) + F(1, 16), 4, True, {}, (-8, NONE)),
        ("q1.63", -1, 2, True, {}, (-1, NONE)), ("uq64.0", 2**64 - 1, 64, False, {}, (2**64 - 1, NONE)),
        ("binary8p3se", F(1, 2), 8, True, {"rounding": "up"}, (1, INEXACT)),  # no result of P3109's, so flags
        ("e5m2", two(-16), 8, True, {"rounding": "up", "flush_inputs": True}, (0, NONE)),
        ("e5m2", two(-16), 8, True, {"rounding": "up"}, (1, INEXACT)),
        ("e5m2", F(5, 4), 8, True, {"rounding": "sr", "stochastic_bits": 2, "random_bits": 2}, (1, INEXACT)),
        ("e5m2", F(5, 4), 8, True, {"rounding": "sr", "stochastic_bits": 2, "random_bits": 7}, (2, INEXACT)),
    ],
)  # fmt: skip
def test_integers_by_hand(fmt, x, bits, signed, environment, want):
    code, flags = ref.encode(x, fmt)
    assert not flags and ref.to_integer(code, fmt, bits, signed, invalid="x86", **environment) == want


@cases("fmt", ["e5m2", "e4m3fnuz", "e2m1fn", "q5.3", "uq4.4", "e8m0fnu", FloatFormat(4, 3, bias=3)], ids=str)
@cases("mode", ROUNDING_MODES)
def test_integers_are_the_integral_values(mode, fmt):
    """Against round_to_integral in a format that holds every integer in question."""
    fmt = format_of(fmt)
    environment = {"rounding": mode, "stochastic_bits": 3, "random_bits": 5}
    for code in range(1 << fmt.bits):
        for bits, signed in ((4, True), (4, False), (40, True)):
            got, flags = ref.to_integer(code, fmt, bits, signed, invalid="arm", **environment)
            value = ref.decode(code, fmt)
            if value.kind == "finite":
                integral, inexact = ref.round_to_integral(code, fmt, out_fmt="e15m48", **environment)
                want = ref.to_fraction(integral, "e15m48")
                bounds = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
                clamped = max(bounds[0], min(want, bounds[1]))
                if abs(want) < two(48):
                    assert (got, flags) == (clamped, inexact if clamped == want else INVALID), (hex(code), bits)
            else:
                assert flags == INVALID


def test_integers_are_numpy_s():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 1 << 32, 2000, dtype=np.uint32)
    values = codes.view(np.float32)
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    for code, value, integer in zip(codes.tolist(), values.tolist(), integers.tolist(), strict=True):
        if abs(value) < 2.0**63:
            got, flags = ref.to_integer(code, "binary32", 64, True, rounding="toward_zero")
            assert (got, flags) == (integer, INEXACT if integer != value else NONE)


def test_refusals():
    with pytest.raises(ValueError, match="invalid must be 'riscv', 'arm', 'x86' or an integer, got 'mips'"):
        ref.to_integer(0, "e5m2", 8, True, invalid="mips")
    with pytest.raises(ValueError, match="invalid=128 does not lie in -128..127"):
        ref.to_integer(0, "e5m2", 8, True, invalid=128)
    with pytest.raises(ValueError, match="needs random_bits"):
        ref.to_integer(0, "e5m2", 8, True, rounding="stochastic_odd")
    with pytest.raises(TypeError, match="from_integer needs an int, got 0.5"):
        ref.from_integer(0.5, "e5m2")
    with pytest.raises(ValueError, match="shift is for fixed point; e5m2 is a float format .scalb."):
        ref.shift(0, 1, "e5m2")


# -- integers in -------------------------------------------------------------------------------------------------------
def test_from_integer():
    assert ref.from_integer(0, "e5m2", rounding="down") == (0, NONE)
    assert ref.from_integer(-3, "e4m3fnuz") == (ref.encode(-3, "e4m3fnuz")[0], NONE)
    assert ref.from_integer(2**64 - 1, "binary32") == (0x5F800000, INEXACT)
    assert ref.from_integer(2**64 - 1, "binary32", rounding="toward_zero") == (0x5F7FFFFF, INEXACT)
    assert ref.from_integer(np.int64(-(2**63)), "q64.0") == (1 << 63, NONE)
    assert ref.from_integer(-1, "e8m0fnu") == (0xFF, INVALID)
    assert ref.from_integer(9, "e5m2", rounding="sr", stochastic_bits=1, random_bits=1) == (0x49, INEXACT)
    rng = random.Random(5)
    for _ in range(500):
        x = rng.randrange(-(2**63), 2**63) >> rng.randrange(62)
        code, flags = ref.from_integer(x, "binary64")
        want = int(np.float64(x).view(np.uint64))
        assert (code, flags) == (want, NONE if int(float(x)) == x else INEXACT), x


# -- shifts ------------------------------------------------------------------------------------------------------------
@cases(
    "code, n, environment, want",
    [
        (0xFB, -1, {}, (0xFD, INEXACT)), (0xFB, -1, {"rounding": "nearest_up"}, (0xFE, INEXACT)),
        (0xFB, -1, {"rounding": "toward_zero"}, (0xFE, INEXACT)), (0xFC, -1, {}, (0xFE, NONE)),
        (0xFB, -100, {}, (0xFF, INEXACT)), (0x7B, -100, {}, (0x00, INEXACT)), (0x00, 2**40, {}, (0x00, NONE)),
        (0x50, 1, {}, (0x7F, OVERFLOW)), (0xA0, 1, {}, (0x80, OVERFLOW)),
        (0x50, 1, {"overflow": "wrap"}, (0xA0, OVERFLOW)), (0x13, 5, {"overflow": "wrap"}, (0x60, OVERFLOW)),
        (0x01, 7, {}, (0x7F, OVERFLOW)), (0xFF, 7, {}, (0x80, NONE)),
        (0x01, 2**70, {"overflow": "wrap"}, (0, OVERFLOW)),
    ],
)  # fmt: skip
def test_shifts_by_hand(code, n, environment, want):
    assert ref.shift(code, n, "q4.4", **environment) == want


@pytest.mark.parametrize("name", ["q4.2", "uq3.3"])
def test_shifts_are_those_of_integers(name):
    fmt = format_of(name)
    for code in range(1 << fmt.bits):
        integer = code - (1 << fmt.bits) * (fmt.signed and code >> (fmt.bits - 1))
        for n in range(-8, 9):
            shifted = integer << n if n >= 0 else integer >> -n
            assert ref.shift(code, n, fmt, overflow="wrap")[0] == shifted % (1 << fmt.bits)


# -- errors in ulps ----------------------------------------------------------------------------------------------------
@cases(
    "fmt, value, exact, want",
    [
        ("e5m2", F(5, 4), F(9, 8), F(1, 2)), ("e5m2", 1, F(9, 8), F(-1, 2)), ("e5m2", -1, F(-9, 8), F(1, 2)),
        ("e5m2", 2, F(15, 8), F(1, 2)), ("e5m2", 2, F(17, 8), F(-1, 4)),  # the ulp is that of the exact value
        ("e5m2", 2, 2, 0), ("e5m2", 0, two(-16), -1), ("e5m2", two(-16), 0, 1),
        ("e5m2", two(-16), two(-40), 1 - two(-24)),
        ("e5m2", 57344, 65536, F(-1, 2)), ("e5m2", 57344, two(20), F(57344 - 2**20, 2**18)),
        ("binary64", 1, 1 + two(-53), F(-1, 2)), ("q4.4", F(1, 16), F(1, 10), F(-3, 5)), ("q4.4", -8, -9, 16),
        ("e8m0fnu", 4, 3, F(1, 2)), ("e8m0fnu", two(-127), 0, 1), ("e3m2fn", F(1, 16), 0, 1),
        (FloatFormat(5, 2, subnormals=False), 0, two(-15), -2), ("dlfloat16", 0, two(-41), F(-1, 2)),
    ],
)  # fmt: skip
def test_ulp_errors_by_hand(fmt, value, exact, want):
    got = ref.ulp_error(ref.encode(value, fmt)[0], exact, fmt)
    assert got == want and isinstance(got, Fraction)


def test_ulp_errors_of_what_is_not_finite():
    infinity = float("inf")
    assert ref.ulp_error(0x7C, infinity, "e5m2") == 0 and ref.ulp_error(0xFC, -infinity, "e5m2") == 0
    assert ref.ulp_error(0x7C, -infinity, "e5m2") == infinity and ref.ulp_error(0xFC, infinity, "e5m2") == -infinity
    assert ref.ulp_error(0x7C, 5, "e5m2") == infinity and ref.ulp_error(0x3C, infinity, "e5m2") == -infinity
    assert math.isnan(ref.ulp_error(0x7E, 5, "e5m2")) and math.isnan(ref.ulp_error(0x7C, math.nan, "e5m2"))


@pytest.mark.parametrize("fmt", ["e5m2", "e4m3fnuz", "e2m1fn", "binary8p3ue", "e8m0fnu"])
def test_roundings_err_by_half_an_ulp_at_most(fmt):
    fmt = format_of(fmt)
    rng = random.Random(6)
    for _ in range(300):
        x = F(fmt.max) * F(rng.randrange(1, 2**40), 2**40) * two(-rng.randrange(2 * fmt.bias + 4))
        if x < F(fmt.smallest_subnormal) and not fmt.has_zero:
            continue
        nearest, up = (ref.ulp_error(ref.encode(x, fmt, rounding=mode)[0], x, fmt) for mode in ("nearest_even", "up"))
        assert abs(nearest) <= F(1, 2) and 0 <= up < 1
