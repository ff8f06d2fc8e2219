"""The reference's operations that round against tables worked by hand, searches by definition, and flushing."""

import bisect
import doctest
import importlib
import itertools
import random
from fractions import Fraction

import pytest

from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.modes import ROUNDING_MODES
from softnum.formats.names import format as format_of
from softnum.reference import operations, rounding
from tests.support.cases import cases

NONE, INEXACT, UNDERFLOW, OVERFLOW, DIVIDE, INVALID = 0, 1, 2, 4, 8, 16
TINY, BIG = INEXACT | UNDERFLOW, INEXACT | OVERFLOW
FLUSHING = FloatFormat(5, 2, subnormals=False)
POWERS = FloatFormat(2, 0, specials="none")  # 0, 1, 2, 4
UNSIGNED = FloatFormat(4, 3, signed=False, specials="p3109")
F = Fraction


def two(exponent):
    return F(2) ** exponent


def stochastic(r, bits, mode="stochastic"):
    return {"rounding": mode, "stochastic_bits": r, "random_bits": bits}


@pytest.mark.parametrize("name", ["values", "rounding", "operations", "order", "integers", "random_words", "mac"])
def test_docstrings_run(name):
    module = importlib.import_module(f"softnum.reference.{name}")
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted and not result.failed


# -- tables worked by hand ---------------------------------------------------------------------------------------------
# e5m2: 0x3C is 1, 0x40 2, 0x42 3, 0x44 4, 0x45 5, 0x46 6, 0x7C infinity, 0x7D signals, 0x7E is quiet
@cases(
    "a, b, want",
    [
        (0x3C, 0x00, (0x7C, DIVIDE)), (0xBC, 0x00, (0xFC, DIVIDE)), (0x3C, 0x80, (0xFC, DIVIDE)),
        (0xBC, 0x80, (0x7C, DIVIDE)), (0x01, 0x00, (0x7C, DIVIDE)),
        (0x00, 0x00, (0x7E, INVALID)), (0x80, 0x00, (0x7E, INVALID)), (0x7C, 0xFC, (0x7E, INVALID)),
        (0x7C, 0x00, (0x7C, NONE)), (0x7C, 0x80, (0xFC, NONE)), (0xFC, 0x3C, (0xFC, NONE)),
        (0x3C, 0xFC, (0x80, NONE)), (0x00, 0xFC, (0x80, NONE)), (0x00, 0xBC, (0x80, NONE)), (0x80, 0xBC, (0x00, NONE)),
        (0x7E, 0x00, (0x7E, NONE)), (0x7D, 0x00, (0x7E, INVALID)), (0x00, 0x7E, (0x7E, NONE)),
        (0x7C, 0xFE, (0x7E, NONE)), (0x7E, 0xFD, (0x7E, INVALID)),
        (0x3C, 0x42, (0x35, INEXACT)),  # 1/3 between 0.3125 and 0.375
        (0x46, 0xC2, (0xC0, NONE)), (0x7B, 0x01, (0x7C, BIG)), (0x01, 0x40, (0x00, TINY)), (0x03, 0xC0, (0x82, TINY)),
        (0x02, 0x40, (0x01, NONE)),
    ],
)  # fmt: skip
def test_divide_by_hand_in_e5m2(a, b, want):
    assert ref.divide(a, b, "e5m2") == want


@cases(
    "fmt, a, b, out_fmt, environment, want",
    [
        ("e5m2", 0x3C, 0x00, None, {"overflow": "saturate"}, (0x7B, DIVIDE)),
        ("e5m2", 0xBC, 0x00, None, {"overflow": "saturate"}, (0xFB, DIVIDE)),
        ("e5m2", 0x3C, 0x00, None, {"overflow": "saturate_finite"}, (0x7C, DIVIDE)),
        ("e5m2", 0x7C, 0x3C, None, {"overflow": "saturate"}, (0x7B, NONE)),
        ("e5m2", 0x3C, 0x00, None, {"rounding": "toward_zero"}, (0x7C, DIVIDE)),  # exact: no mode matters
        ("e4m3fn", 0x38, 0x00, None, {}, (0x7F, DIVIDE)),
        ("e4m3fn", 0xB8, 0x00, None, {"overflow": "saturate"}, (0xFE, DIVIDE)),
        ("e4m3fnuz", 0x40, 0x00, None, {}, (0x80, DIVIDE)), ("e4m3fnuz", 0xC0, 0x40, None, {}, (0xC0, NONE)),
        ("e4m3fnuz", 0x00, 0xC0, None, {}, (0x00, NONE)),
        ("e4m3fnuz", 0xC0, 0x00, None, {"overflow": "saturate_finite"}, (0xFF, DIVIDE)),
        ("e2m1fn", 0x2, 0x0, None, {}, (0x7, DIVIDE)), ("e2m1fn", 0x2, 0x8, None, {}, (0xF, DIVIDE)),
        ("e2m1fn", 0x0, 0x8, None, {}, (0x0, INVALID)),
        ("q4.4", 0x10, 0x00, None, {}, (0, DIVIDE | INVALID)), ("q4.4", 0xF0, 0, None, {}, (0, DIVIDE | INVALID)),
        ("q4.4", 0x10, 0x00, None, {"overflow": "wrap"}, (0, DIVIDE | INVALID)), ("q4.4", 0, 0, None, {}, (0, INVALID)),
        ("q4.4", 0xF0, 0x30, None, {}, (0xFB, INEXACT)), ("q4.4", 0xF0, 0x30, None, {"rounding": "down"}, (0xFA, 1)),
        ("q4.4", 0x80, 0x01, None, {}, (0x80, OVERFLOW)), ("q4.4", 0x80, 0x01, None, {"overflow": "wrap"}, (0, 4)),
        ("q4.4", 0x80, 0xF0, None, {}, (0x7F, OVERFLOW)), ("q4.4", 0x80, 0xF0, None, {"overflow": "wrap"}, (0x80, 4)),
        ("e5m2", 0x3C, 0x00, "q4.4", {}, (0, DIVIDE | INVALID)), ("e5m2", 0x7C, 0x3C, "q4.4", {}, (0, INVALID)),
        ("e5m2", 0x7C, 0x00, "q4.4", {}, (0, INVALID)), ("e5m2", 0x3C, 0x7C, "q4.4", {}, (0, NONE)),
        ("e5m2", 0xBC, 0x00, UNSIGNED, {}, (0x7F, NONE)), ("e5m2", 0x3C, 0x00, UNSIGNED, {}, (0x7F, NONE)),
        ("e5m2", 0xBC, 0x00, "e8m0fnu", {}, (0xFF, DIVIDE | INVALID)),
        ("e5m2", 0x3C, 0x00, "e8m0fnu", {}, (0xFF, DIVIDE)), ("e8m0fnu", 130, 128, None, {}, (129, NONE)),
        (("e5m2", "q4.4"), 0x3C, 0x08, "e5m2", {}, (0x40, NONE)), (("q4.4", "e5m2"), 0xF0, 0x80, "e5m2", {}, (0x7C, 8)),
        ("e5m2", 0x3C, 0x42, None, stochastic(2, 2), (0x35, 1)),  # a third of a gap: floor(4/3) = 1
        ("e5m2", 0x3C, 0x42, None, stochastic(2, 3), (0x36, 1)),
    ],
)  # fmt: skip
def test_divide_by_hand(fmt, a, b, out_fmt, environment, want):
    assert ref.divide(a, b, fmt, out_fmt=out_fmt, **environment) == want


@cases(
    "fmt, a, out_fmt, environment, want",
    [
        ("e5m2", 0x44, None, {}, (0x40, NONE)), ("e5m2", 0x40, None, {}, (0x3E, INEXACT)),
        ("e5m2", 0x40, None, {"rounding": "down"}, (0x3D, INEXACT)),
        ("e5m2", 0x40, None, {"rounding": "to_odd"}, (0x3D, 1)),
        ("e5m2", 0x40, None, stochastic(2, 1), (0x3D, INEXACT)),  # 1.41421 is 0.657 of the gap from 1.25 to 1.5
        ("e5m2", 0x40, None, stochastic(2, 2), (0x3E, INEXACT)),
        ("e5m2", 0x40, None, stochastic(32, 2**32 - 2821167519 - 1), (0x3D, 1)),  # floor(0.65685... * 2**32)
        ("e5m2", 0x40, None, stochastic(32, 2**32 - 2821167519), (0x3E, 1)),
        ("e5m2", 0x01, None, {}, (0x1C, NONE)), ("e5m2", 0x02, None, {}, (0x1E, INEXACT)),
        ("e5m2", 0x00, None, {}, (0x00, NONE)), ("e5m2", 0x80, None, {}, (0x80, NONE)),
        ("e5m2", 0x7C, None, {}, (0x7C, NONE)), ("e5m2", 0x7C, None, {"overflow": "saturate"}, (0x7B, NONE)),
        ("e5m2", 0xFC, None, {}, (0x7E, INVALID)), ("e5m2", 0xFC, None, {"overflow": "saturate"}, (0x7E, INVALID)),
        ("e5m2", 0xBC, None, {}, (0x7E, INVALID)), ("e5m2", 0x81, None, {}, (0x7E, INVALID)),
        ("e5m2", 0x7E, None, {}, (0x7E, NONE)), ("e5m2", 0xFE, None, {}, (0x7E, NONE)),
        ("e5m2", 0xFD, None, {}, (0x7E, 16)),
        ("e5m2", 0xBC, "e2m1fn", {}, (0, INVALID)), ("e5m2", 0x80, "e4m3fnuz", {}, (0, NONE)),
        ("q4.4", 0x20, None, {}, (0x17, INEXACT)),  # 22.627 sixteenths
        ("q4.4", 0x20, None, {"rounding": "toward_zero"}, (0x16, INEXACT)), ("q4.4", 0x01, None, {}, (0x04, NONE)),
        ("q4.4", 0xF0, None, {}, (0, INVALID)), ("q4.4", 0x00, None, {}, (0, NONE)),
        ("e5m2", 0x01, "q4.4", {}, (0, INEXACT)), ("e5m2", 0x01, "q4.4", {"rounding": "up"}, (1, INEXACT)),
        ("e5m2", 0x7B, "q4.4", {}, (0x7F, BIG)),
        ("e8m0fnu", 128, None, {}, (127, INEXACT)), ("e8m0fnu", 128, None, {"rounding": "up"}, (128, INEXACT)),
        ("e8m0fnu", 130, None, {}, (128, INEXACT)), ("e8m0fnu", 0, None, {"rounding": "down"}, (63, INEXACT)),
        ("e5m2", 0xBC, "e8m0fnu", {}, (0xFF, INVALID)),
        ("binary64", 0x4000000000000000, None, {}, (0x3FF6A09E667F3BCD, INEXACT)),
    ],
)  # fmt: skip
def test_sqrt_by_hand(fmt, a, out_fmt, environment, want):
    assert ref.sqrt(a, fmt, out_fmt=out_fmt, **environment) == want


@cases(
    "fmt, a, b, out_fmt, environment, want",
    [
        ("e5m2", 0x45, 0x42, None, {}, (0xBC, NONE)), ("e5m2", 0xC5, 0x42, None, {}, (0x3C, NONE)),
        ("e5m2", 0x3C, 0x40, None, {}, (0x3C, NONE)), ("e5m2", 0x42, 0x40, None, {}, (0xBC, NONE)),  # n = 0, n = 2
        ("e5m2", 0x42, 0xC0, None, {}, (0xBC, NONE)), ("e5m2", 0xC2, 0x40, None, {}, (0x3C, NONE)),
        ("e5m2", 0x46, 0x42, None, {}, (0x00, NONE)), ("e5m2", 0xC6, 0x42, None, {}, (0x80, NONE)),
        ("e5m2", 0x46, 0xC2, None, {"rounding": "down"}, (0x00, NONE)),
        ("e5m2", 0x7B, 0x01, None, {}, (0x00, NONE)),
        ("e5m2", 0x7B, 0x42, None, {}, (0xBC, NONE)),  # 57344 = 3*19115 - 1
        ("e5m2", 0x01, 0x3C, None, {}, (0x01, NONE)), ("e5m2", 0x80, 0x3C, None, {}, (0x80, NONE)),
        ("e5m2", 0x7C, 0x3C, None, {}, (0x7E, INVALID)), ("e5m2", 0x3C, 0x80, None, {}, (0x7E, INVALID)),
        ("e5m2", 0x00, 0x00, None, {}, (0x7E, INVALID)), ("e5m2", 0x7C, 0x7C, None, {}, (0x7E, INVALID)),
        ("e5m2", 0x3D, 0xFC, None, {}, (0x3D, NONE)), ("e5m2", 0x80, 0x7C, None, {}, (0x80, NONE)),
        ("e5m2", 0x7C, 0x7E, None, {}, (0x7E, NONE)), ("e5m2", 0x7E, 0x00, None, {}, (0x7E, NONE)),
        ("e5m2", 0x7D, 0x00, None, {}, (0x7E, INVALID)), ("e5m2", 0x3C, 0x7D, None, {}, (0x7E, INVALID)),
        ("e5m2", 0xC6, 0x42, "e4m3fnuz", {}, (0x00, NONE)), ("e5m2", 0x3D, 0x7C, POWERS, {}, (1, INEXACT)),
        ("q4.4", 0x50, 0x30, None, {}, (0xF0, NONE)), ("q4.4", 0x50, 0x00, None, {}, (0, INVALID)),
        ("uq4.4", 0x50, 0x30, None, {}, (0, OVERFLOW)), ("uq4.4", 0x50, 0x30, None, {"overflow": "wrap"}, (0xF0, 4)),
        (("binary16", "e5m2"), 0x3C01, 0x44, "e5m2", {}, (0x3C, INEXACT)),
    ],
)  # fmt: skip
def test_remainder_by_hand(fmt, a, b, out_fmt, environment, want):
    assert ref.remainder(a, b, fmt, out_fmt=out_fmt, **environment) == want


# mode: integers of 2.5, -2.5, 0.5, -0.5, 1.5 as codes of e5m2
INTEGERS = {
    "nearest_even": (0x40, 0xC0, 0x00, 0x80, 0x40), "nearest_away": (0x42, 0xC2, 0x3C, 0xBC, 0x40),
    "nearest_zero": (0x40, 0xC0, 0x00, 0x80, 0x3C), "nearest_up": (0x42, 0xC0, 0x3C, 0x80, 0x40),
    "nearest_down": (0x40, 0xC2, 0x00, 0xBC, 0x3C), "toward_zero": (0x40, 0xC0, 0x00, 0x80, 0x3C),
    "away_from_zero": (0x42, 0xC2, 0x3C, 0xBC, 0x40), "up": (0x42, 0xC0, 0x3C, 0x80, 0x40),
    "down": (0x40, 0xC2, 0x00, 0xBC, 0x3C), "to_odd": (0x42, 0xC2, 0x3C, 0xBC, 0x3C),
}  # fmt: skip


@pytest.mark.parametrize("mode", INTEGERS)
def test_round_to_integral_modes_by_hand(mode):
    for code, want in zip((0x41, 0xC1, 0x38, 0xB8, 0x3E), INTEGERS[mode], strict=True):
        assert ref.round_to_integral(code, "e5m2", rounding=mode) == (want, INEXACT)
    for code in (0x00, 0x80, 0x3C, 0xC5, 0x7B, 0x7C, 0xFC):
        assert ref.round_to_integral(code, "e5m2", rounding=mode) == (code, NONE)


@cases(
    "fmt, a, out_fmt, environment, want",
    [
        ("e5m2", 0x3D, None, stochastic(2, 2), (0x3C, INEXACT)),
        ("e5m2", 0x3D, None, stochastic(2, 3), (0x40, INEXACT)),
        ("e5m2", 0xBD, None, stochastic(2, 3), (0xC0, INEXACT)),
        ("e5m2", 0xBD, None, stochastic(2, 2), (0xBC, INEXACT)),
        ("e5m2", 0xBD, None, stochastic(2, 0, "stochastic_floor"), (0xC0, INEXACT)),
        ("e5m2", 0xBD, None, stochastic(2, 1, "stochastic_floor"), (0xBC, INEXACT)),
        ("e5m2", 0x81, None, {}, (0x80, INEXACT)), ("e5m2", 0x7E, None, {}, (0x7E, NONE)),
        ("e5m2", 0x7D, None, {}, (0x7E, INVALID)), ("e5m2", 0x7C, None, {"overflow": "saturate"}, (0x7B, NONE)),
        ("e4m3fnuz", 0x81, None, {}, (0x00, INEXACT)), ("e5m2", 0xB8, "e4m3fnuz", {}, (0x00, INEXACT)),
        ("q4.4", 0x7F, None, {}, (0x7F, BIG)), ("q4.4", 0x7F, None, {"overflow": "wrap"}, (0x80, BIG)),
        ("q4.4", 0x7F, None, {"rounding": "down"}, (0x70, INEXACT)), ("q4.4", 0xF8, None, {}, (0x00, INEXACT)),
        ("q4.4", 0xE8, None, {}, (0xE0, INEXACT)), ("q4.4", 0x80, None, {}, (0x80, NONE)),
        ("uq0.8", 0x80, None, {}, (0x00, INEXACT)), ("uq0.8", 0x81, None, {}, (0xFF, BIG)),
        ("binary16", 0x4873, "e5m2", {}, (0x48, INEXACT)),  # 8.8984375 -> 9, half way from 8 to 10
        ("binary16", 0x4873, "e5m2", {"rounding": "nearest_away"}, (0x49, INEXACT)),
        ("binary16", 0x48E0, "e5m2", {}, (0x49, INEXACT)),  # 9.75 -> 10
        ("binary16", 0x6801, "e5m2", {}, (0x68, INEXACT)),  # 2050, an integer that e5m2 lacks
        ("binary16", 0x4100, "e8m0fnu", {}, (128, INEXACT)), ("e8m0fnu", 126, None, {}, (0, TINY)),
        ("e8m0fnu", 126, None, {"rounding": "up"}, (127, INEXACT)), ("e5m2", 0x7C, "q4.4", {}, (0, INVALID)),
    ],
)  # fmt: skip
def test_round_to_integral_by_hand(fmt, a, out_fmt, environment, want):
    assert ref.round_to_integral(a, fmt, out_fmt=out_fmt, **environment) == want


@cases(
    "fmt, a, n, environment, want",
    [
        ("e5m2", 0x3C, 3, {}, (0x48, NONE)), ("e5m2", 0x01, 16, {}, (0x3C, NONE)),
        ("e5m2", 0x3C, -16, {}, (0x01, NONE)),
        ("e5m2", 0x3E, -16, {}, (0x02, TINY)), ("e5m2", 0xBC, -17, {}, (0x80, TINY)),
        ("e5m2", 0x3C, 2**31 - 1, {}, (0x7C, BIG)), ("e5m2", 0xBC, 2**31 - 1, {"rounding": "up"}, (0xFB, BIG)),
        ("e5m2", 0x3C, -(2**31), {}, (0x00, TINY)), ("e5m2", 0xBC, -(2**31), {"rounding": "down"}, (0x81, TINY)),
        ("e5m2", 0x80, 2**31 - 1, {}, (0x80, NONE)), ("e5m2", 0xFC, -(2**31), {}, (0xFC, NONE)),
        ("e5m2", 0x7D, 0, {}, (0x7E, INVALID)), ("e5m2", 0xFE, 5, {}, (0x7E, NONE)),
        ("q4.4", 0x10, 2, {}, (0x40, NONE)), ("q4.4", 0x10, 3, {}, (0x7F, OVERFLOW)),
        ("q4.4", 0x10, 3, {"overflow": "wrap"}, (0x80, OVERFLOW)),
        ("q4.4", 0x11, 2**30, {"overflow": "wrap"}, (0, OVERFLOW)),
        ("q4.4", 0xF0, -(2**31), {"rounding": "down"}, (0xFF, INEXACT)), ("q4.4", 0x18, -4, {}, (0x02, INEXACT)),
        ("e8m0fnu", 127, 100, {}, (227, NONE)), ("e8m0fnu", 127, -128, {}, (0, TINY)),
    ],
)  # fmt: skip
def test_scalb_by_hand(fmt, a, n, environment, want):
    assert ref.scalb(a, n, fmt, **environment) == want


def test_scalb_between_the_widest_exponents():
    low, high = (FloatFormat(15, 2, bias=bias) for bias in (2**16, -(2**16)))
    n = 32766 + 2**16 - (-(2**16) - 1)
    assert ref.scalb(1, n, low, out_fmt=high) == (32766 << 2, NONE)
    assert ref.scalb(1, n + 1, low, out_fmt=high) == (high.inf_code, BIG)
    assert ref.scalb(32766 << 2, -n, high, out_fmt=low) == (1, NONE)
    assert ref.scalb(32766 << 2, -n - 1, high, out_fmt=low, rounding="up") == (1, TINY)
    for extreme in (1 << 18, 1 << 20, 1 << 31):
        assert ref.scalb(1, extreme, low, out_fmt=high) == (high.inf_code, BIG)
        assert ref.scalb(high.max_code, -extreme, high, out_fmt=low, rounding="up") == (1, TINY)


@cases(
    "fmt, a, out_fmt, environment, want",
    [
        ("e5m2", 0x3C, None, {}, (0x00, NONE)), ("e5m2", 0x42, None, {}, (0x3C, NONE)),
        ("e5m2", 0xC2, None, {}, (0x3C, 0)),
        ("e5m2", 0x3B, None, {}, (0xBC, NONE)), ("e5m2", 0x01, None, {}, (0xCC, NONE)),
        ("e5m2", 0x03, None, {}, (0xCC, INEXACT)),  # -15, half way from -14, odd, to -16
        ("e5m2", 0x00, None, {}, (0xFC, DIVIDE)), ("e5m2", 0x80, None, {}, (0xFC, DIVIDE)),
        ("e5m2", 0x00, None, {"overflow": "saturate"}, (0xFB, DIVIDE)),
        ("e5m2", 0x7C, None, {}, (0x7C, NONE)), ("e5m2", 0xFC, None, {}, (0x7C, NONE)),
        ("e5m2", 0xFE, None, {}, (0x7E, 0)),
        ("e5m2", 0x7D, None, {}, (0x7E, INVALID)),
        ("q4.4", 0x00, None, {}, (0, DIVIDE | INVALID)), ("q4.4", 0x01, None, {}, (0xC0, NONE)),
        ("q4.4", 0x80, None, {}, (0x30, NONE)), ("uq4.4", 0x01, None, {}, (0, OVERFLOW)),
        ("e5m2", 0x7C, "q4.4", {}, (0, INVALID)), ("e5m2", 0x00, "e2m1fn", {}, (0xF, DIVIDE)),
        ("e5m2", 0x01, "e2m1fn", {}, (0xF, BIG)), ("e5m2", 0x00, "e4m3fnuz", {}, (0x80, DIVIDE)),
        ("e8m0fnu", 127, None, {}, (0, TINY)), ("e8m0fnu", 126, None, {}, (0xFF, INVALID)),
        ("e8m0fnu", 129, None, {}, (128, 0)),
    ],
)  # fmt: skip
def test_logb_by_hand(fmt, a, out_fmt, environment, want):
    assert ref.logb(a, fmt, out_fmt=out_fmt, **environment) == want


# -- by definition -----------------------------------------------------------------------------------------------------
SMALL_FORMATS = [
    format_of("e4m3fn"), format_of("e4m3fnuz"), format_of("e2m1fn"), format_of("e5m2"), FLUSHING, POWERS,
    FloatFormat(3, 2, specials="fn", lowest_binade="normal"), FloatFormat(3, 2, bias=1), format_of("q3.3"),
    FloatFormat(4, 3, specials="none", bias=20), format_of("uq0.5"), format_of("e8m0fnu"),
]  # fmt: skip


def grid(fmt):
    """The positive values in order, preceded by 0, each with its code, and the next two points of the grid."""
    values = {}
    for code in range(1 << (fmt.bits - fmt.signed)):
        value = ref.decode(code, fmt)
        if value.kind == "finite":
            values.setdefault(value.fraction, code)
    points = sorted(values.items())
    gap = points[-1][0] - points[-2][0]
    for _ in range(2):
        (last, code) = points[-1]
        if fmt.kind == "float" and (code >> fmt.mantissa_bits) > (points[-2][1] >> fmt.mantissa_bits):
            gap = last / (1 << fmt.mantissa_bits)
        points.append((last + gap, code + 1))
    return points


def root_by_squares(x, points, squares, mode, r, bits):
    """The value that the root of x rounds to, by comparing x with squares only."""
    at = bisect.bisect_right(squares, x) - 1
    (low, code), (high, _) = points[at], points[at + 1]
    if low * low == x:
        return low
    if mode.startswith("stochastic"):
        if mode == "stochastic_equal":
            return high if bits >= 1 << r - 1 else low
        parts = sum((low + F(j, 1 << r) * (high - low)) ** 2 <= x for j in range(1, 1 << r))
        half = (low + F(2 * parts + 1, 2 << r) * (high - low)) ** 2
        tied = {"stochastic_fast": 1, "stochastic_even": parts % 2, "stochastic_odd": 1 - parts % 2}.get(mode)
        parts += 0 if tied is None else tied if x == half else x > half
        return high if parts + bits >= 1 << r else low
    middle = ((low + high) / 2) ** 2
    if mode.startswith("nearest") and x != middle:
        return high if x > middle else low
    return high if {
        "nearest_even": code % 2, "nearest_away": 1, "nearest_zero": 0, "nearest_up": 1, "nearest_down": 0,
        "toward_zero": 0, "away_from_zero": 1, "up": 1, "down": 0, "to_odd": not code % 2,
    }[mode] else low  # fmt: skip


def compare_roots(fmt, mode, r=4):
    points = grid(fmt)
    rng = random.Random(f"{fmt} {mode}")
    largest, squares = points[-3][0], [value * value for value, _ in points]
    for (low, _), (high, _) in itertools.pairwise(points[:-1]):
        for t in {F(0), F(1, 2), F(rng.randrange(1, 1 << r), 1 << r), F(2 * rng.randrange(1 << r) + 1, 2 << r)}:
            square = (low + t * (high - low)) ** 2
            code, flags = ref.encode(square, "binary64")
            assert not flags
            for operand in (code - 1, code, code + 1) if square else (1, 2, 3):
                x, bits = ref.to_fraction(operand, "binary64"), rng.randrange(1 << r)
                want = root_by_squares(x, points, squares, mode, r, bits)
                environment = {"rounding": mode, "overflow": "saturate", "stochastic_bits": r, "random_bits": bits}
                got, flags = ref.sqrt(operand, "binary64", out_fmt=fmt, **environment)
                where = f"sqrt {fmt} {mode} x={x} R={bits}: {got:#x} {flags!r}, want {want}"
                assert ref.to_fraction(got, fmt) == min(want, largest), where
                assert bool(flags & OVERFLOW) == (want > largest), where
                assert bool(flags & INEXACT) == (want**2 != x), where


@pytest.mark.slow
@cases("fmt", [fmt for fmt in SMALL_FORMATS if fmt.kind == "fixed" or fmt.has_zero], ids=str)
@pytest.mark.parametrize("mode", ROUNDING_MODES)
def test_roots_against_squares(fmt, mode):
    compare_roots(fmt, mode)


def test_squares_catch_a_root_of_too_few_bits(monkeypatch):
    exact = operations._root

    def faulty(x, fmt, env):  # the interval is a little wider than the step that the random bits need
        return exact(x, fmt, env._replace(stochastic_bits=env.stochastic_bits - 2))

    monkeypatch.setattr(operations, "_root", faulty)
    with pytest.raises(AssertionError, match="sqrt e4m3fn stochastic x="):
        compare_roots(format_of("e4m3fn"), "stochastic")


@cases("mode", ROUNDING_MODES)
@cases("fmt", [format_of("e3m2fn"), FLUSHING, POWERS, format_of("q3.3")], ids=str)
def test_divide_is_the_rounded_quotient(fmt, mode):
    """And remainder, scalb and round_to_integral the rounded values of what Fractions compute."""
    rng = random.Random(f"{fmt} {mode}")
    for a in range(1 << fmt.bits):
        for b in rng.sample(range(1 << fmt.bits), min(5, 1 << fmt.bits)):
            x, y = ref.decode(a, fmt), ref.decode(b, fmt)
            environment = {"rounding": mode, "stochastic_bits": 5, "random_bits": rng.randrange(32)}
            if not (x.kind == y.kind == "finite" and y.numerator):
                continue
            quotient = x.fraction / y.fraction
            want = ref.round_value(quotient, x.sign ^ y.sign, fmt, **environment)
            assert ref.divide(a, b, fmt, **environment) == want
            rest = x.fraction - y.fraction * round(quotient)  # Python rounds to the nearest, ties to even
            assert ref.remainder(a, b, fmt, **environment) == ref.round_value(rest, x.sign, fmt, **environment)
            scaled = x.fraction * two(b % 9 - 4)
            assert ref.scalb(a, b % 9 - 4, fmt, **environment) == ref.round_value(scaled, x.sign, fmt, **environment)
            # integers are what the format q40.0 has
            integer, flags = ref.convert(a, fmt, "q40.0", **environment)
            integer = ref.to_fraction(integer, "q40.0")
            want, more = ref.round_value(integer, x.sign, fmt, **environment)
            assert ref.round_to_integral(a, fmt, **environment) == (want, flags | more)


# -- flushing ----------------------------------------------------------------------------------------------------------
ALMOST = two(-14) * F(31, 32)  # e5m2: rounds to the smallest normal, 0x04, if the exponent has no bounds
BEFORE, AFTER = {"flush_results": "before"}, {"flush_results": "after"}


@cases(
    "fmt, x, environment, want",
    [
        ("e5m2", ALMOST, BEFORE, (0x00, TINY)), ("e5m2", -ALMOST, BEFORE, (0x80, TINY)),
        ("e5m2", ALMOST, AFTER, (0x04, INEXACT)), ("e5m2", ALMOST, AFTER | {"tininess": "before"}, (0x04, TINY)),
        ("e5m2", ALMOST, AFTER | {"rounding": "toward_zero"}, (0x00, TINY)),
        ("e5m2", -ALMOST, AFTER | {"rounding": "up"}, (0x80, TINY)),
        ("e5m2", -ALMOST, AFTER | {"rounding": "down"}, (0x84, INEXACT)),
        ("e5m2", ALMOST, AFTER | {"rounding": "stochastic", "random_bits": 0xFFFFFFFF}, (0x00, TINY)),
        ("e5m2", two(-14) * F(27, 32), AFTER | {"rounding": "up"}, (0x00, TINY)),  # unbounded: to 28/32
        ("e5m2", two(-15), BEFORE, (0x00, TINY)), ("e5m2", -two(-15), AFTER, (0x80, TINY)),  # exact results
        ("e5m2", two(-14), BEFORE, (0x04, NONE)), ("e5m2", two(-14), AFTER, (0x04, NONE)),
        ("e5m2", two(-14) * F(33, 32), BEFORE, (0x04, INEXACT)), ("e5m2", F(0), BEFORE, (0x00, NONE)),
        ("e5m2", two(-15) * F(15, 8), AFTER, (0x04, INEXACT)),  # the tie between 14/8 and 16/8
        ("e4m3fnuz", -two(-9), BEFORE, (0x00, TINY)),
        (FLUSHING, two(-14) * F(27, 32), {}, (0x04, TINY)), (FLUSHING, two(-14) * F(27, 32), AFTER, (0x00, TINY)),
        (FLUSHING, ALMOST, AFTER, (0x04, INEXACT)), (FLUSHING, ALMOST, BEFORE, (0x00, TINY)),
        ("dlfloat16", (513 - two(-10)) * two(-40), AFTER, (1, INEXACT)), ("dlfloat16", two(-31), AFTER, (0, TINY)),
        ("dlfloat16", (513 - two(-10)) * two(-40), BEFORE, (0, TINY)),
        ("e8m0fnu", two(-128), BEFORE, (0, TINY)), ("e8m0fnu", two(-127) * F(7, 8), AFTER, (0, TINY)),
        (UNSIGNED, -two(-9), BEFORE, (0, NONE)), ("q4.4", F(1, 64), BEFORE, (0, INEXACT)),
        ("q4.4", F(1, 16), AFTER, (1, NONE)),
    ],
)  # fmt: skip
def test_flushed_results_by_hand(fmt, x, environment, want):
    assert ref.round_value(x, 0, fmt, **environment) == want


@pytest.mark.slow
@cases("mode", ROUNDING_MODES)
@pytest.mark.parametrize("fmt", [fmt for fmt in SMALL_FORMATS if fmt.kind == "float" and fmt.has_zero], ids=str)
def test_flushed_results_are_those_of_an_unbounded_exponent(fmt, mode):
    wide = FloatFormat(fmt.exponent_bits + 3, fmt.mantissa_bits, bias=fmt.bias + 16, specials="none")
    smallest, rng = F(fmt.smallest_normal), random.Random(f"{fmt} {mode}")
    for i in range(600):
        x = smallest * (F(rng.randrange(1, 400), 256) if i % 2 else 1 - F(rng.randrange(-7, 8), 8 << fmt.mantissa_bits))
        x = -x if rng.randrange(2) else x
        environment = {"rounding": mode, "stochastic_bits": 3, "random_bits": rng.randrange(8)}
        unbounded = ref.to_fraction(ref.round_value(x, 0, wide, **environment)[0], wide)
        before = abs(x) < smallest
        after = before if "stochastic" in mode else abs(unbounded) < smallest
        for flush, flushes in (("before", before), ("after", after)):
            for tininess, tiny in (("before", before), ("after", after)):
                code, flags = ref.round_value(x, 0, fmt, flush_results=flush, tininess=tininess, **environment)
                want = F(0) if flushes else unbounded
                where = f"{fmt} {mode} {flush} {tininess} {x}: {code:#x} {flags!r}, want {want}"
                assert ref.to_fraction(code, fmt) == want, where
                assert ref.decode(code, fmt).sign == (x < 0 and (want != 0 or fmt.negative_zero)), where
                inexact = INEXACT if want != x else 0
                assert flags == (TINY if flushes else inexact | (UNDERFLOW if tiny and inexact else 0)), where


IN = {"flush_inputs": True}


@cases(
    "operation, operands, fmt, want",
    [
        (ref.add, (0x01, 0x02), "e5m2", (0x00, NONE)), (ref.add, (0x81, 0x83), "e5m2", (0x80, NONE)),
        (ref.add, (0x3C, 0x03), "e5m2", (0x3C, NONE)), (ref.subtract, (0x04, 0x03), "e5m2", (0x04, NONE)),
        (ref.multiply, (0x83, 0x7B), "e5m2", (0x80, NONE)), (ref.multiply, (0x03, 0x7C), "e5m2", (0x7E, INVALID)),
        (ref.fma, (0x7B, 0x01, 0x3C), "e5m2", (0x3C, NONE)), (ref.fma, (0x3C, 0xBC, 0x03), "e5m2", (0xBC, NONE)),
        (ref.divide, (0x3C, 0x81), "e5m2", (0xFC, DIVIDE)), (ref.divide, (0x01, 0x81), "e5m2", (0x7E, INVALID)),
        (ref.sqrt, (0x81,), "e5m2", (0x80, NONE)), (ref.sqrt, (0x01,), "e5m2", (0x00, NONE)),
        (ref.remainder, (0x3C, 0x01), "e5m2", (0x7E, INVALID)), (ref.remainder, (0x81, 0x3C), "e5m2", (0x80, NONE)),
        (ref.remainder, (0x81, 0x7C), "e5m2", (0x80, NONE)), (ref.logb, (0x03,), "e5m2", (0xFC, DIVIDE)),
        (ref.scalb, (0x83, 20), "e5m2", (0x80, NONE)), (ref.round_to_integral, (0x83,), "e5m2", (0x80, NONE)),
        (ref.minimum, (0x01, 0x02), "e5m2", (0x00, NONE)), (ref.minimum, (0x00, 0x81), "e5m2", (0x80, NONE)),
        (ref.maximum_number, (0x7E, 0x02), "e5m2", (0x00, NONE)), (ref.add, (0x04, 0x80), "e5m2", (0x04, NONE)),
        (ref.multiply, (0x7D, 0x01), "e5m2", (0x7E, INVALID)),
        (ref.divide, (0x40, 0x81), "e4m3fnuz", (0x80, DIVIDE)), (ref.add, (1, 1), "q4.4", (2, NONE)),
        (ref.add, (1, 1), "e8m0fnu", (2, NONE)), (ref.add, (0x0001, 0x0001), "dlfloat16", (0x0201, NONE)),
    ],
)  # fmt: skip
def test_flushed_inputs_by_hand(operation, operands, fmt, want):
    assert operation(*operands, fmt, **IN) == want


def test_flushed_inputs_keep_their_sign_where_there_is_one():
    assert ref.convert(0x83, "e5m2", "binary16", **IN) == (0x8000, NONE)
    assert ref.convert(0x83, "e4m3fnuz", "binary16", **IN) == (0x0000, NONE)
    assert ref.convert(0x04, "e5m2", "binary16", **IN) == (0x0400, NONE)
    # a result that is subnormal is another matter
    assert ref.multiply(0x04, 0x38, "e5m2", **IN) == (0x02, NONE)
    assert ref.multiply(0x04, 0x38, "e5m2", **IN, **AFTER) == (0x00, TINY)


def test_a_planted_fault_of_flushing_is_caught(monkeypatch):
    signed = rounding.with_sign
    monkeypatch.setattr(rounding, "with_sign", lambda sign, code, fmt: signed(sign if code else 0, code, fmt))
    with pytest.raises(AssertionError, match="want"):
        test_flushed_results_are_those_of_an_unbounded_exponent(format_of("e5m2"), "nearest_even")


def test_refusals():
    with pytest.raises(ValueError, match="flush_results must be None, 'before', 'after' or 'subnormal', got True"):
        ref.divide(0, 0, "e5m2", flush_results=True)
    with pytest.raises(ValueError, match="2 operands need one format or 2, got 3"):
        ref.divide(0, 0, ("e5m2",) * 3)
    with pytest.raises(TypeError, match="flush_inputs"):
        ref.encode(1.0, "e5m2", flush_inputs=True)
    with pytest.raises(TypeError, match="integer"):
        ref.scalb(0x3C, 1.5, "e5m2")
    with pytest.raises(ValueError, match="0x100 is not one of e5m2"):
        ref.sqrt(256, "e5m2")
