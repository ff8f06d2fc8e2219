"""What P3109 asks of its formats otherwise than IEEE 754, and the stochastic modes as gfloat has them."""

import itertools
from fractions import Fraction

import pytest

from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.names import format as format_of
from tests.support.cases import cases

INVALID = 16
SIGNED, FINITE = "binary8p3se", "binary8p3sf"  # 0x40 is 1, 0xC0 -1, 0x80 NaN, 0x7F and 0xFF the infinities or +-max
UNSIGNED, UNSIGNED_FINITE = "binary8p3ue", "binary8p3uf"  # 0x80 is 1, 0xFF NaN, 0xFE infinity or max
F = Fraction

# gfloat 0.5.2: the least R for which round_float goes up, 2**r if none does, of 1 + t / 4 in e5m2 (of subnormals, of
# t / 2**16 and of negative numbers too), for t = 0, 1/8 ... 7/8 with r = 1 and t = 0, 1/16 ... 15/16 with r = 2
GFLOAT = {
    "stochastic_fastest": ((2, 2, 2, 2, 1, 1, 1, 1), (4, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1)),
    "stochastic_fast": ((2, 2, 1, 1, 1, 1, 0, 0), (4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0)),
    "stochastic_even": ((2, 2, 2, 1, 1, 1, 0, 0), (4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 0, 0)),
    "stochastic_odd": ((2, 2, 1, 1, 1, 1, 1, 0), (4, 4, 3, 3, 3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 0)),
}


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("mode", GFLOAT)
def test_stochastic_modes_are_gfloat_s(mode, r):
    recorded = GFLOAT[mode][r - 1]
    for low, ulp, sign in itertools.product((F(1), F(2, 2**16), F(0)), (F(1, 4), F(1, 2**16)), (1, -1)):
        if (low >= 1) != (ulp == F(1, 4)):
            continue
        for part, least in enumerate(recorded):
            for bits in range(1 << r):
                x = sign * (low + ulp * F(part, len(recorded)))
                code, _ = ref.encode(x, "e5m2", rounding=mode, stochastic_bits=r, random_bits=bits)
                assert abs(ref.to_fraction(code, "e5m2")) == (low + ulp if bits >= least else low), (x, bits)


def test_which_formats_are_p3109_s():
    named = {name: format_of(name).p3109 for name in (SIGNED, FINITE, UNSIGNED, UNSIGNED_FINITE, "binary5p1ue")}
    assert all(named.values()), named
    for name in ("e5m2", "e4m3fn", "e4m3fnuz", "e8m0fnu", "e2m1fn", "q4.4", "binary32"):
        assert not format_of(name).p3109, name
    assert FloatFormat(3, 2, specials="p3109").p3109 and FloatFormat(3, 2, specials="p3109", signed=False).p3109


@cases(
    "operation, codes, fmt, want",
    [
        # anything over zero is NaN
        ("divide", (0x40, 0x00), SIGNED, 0x80), ("divide", (0xC0, 0x00), SIGNED, 0x80),
        ("divide", (0x00, 0x00), SIGNED, 0x80), ("divide", (0x7F, 0x00), SIGNED, 0x80),
        ("divide", (0x40, 0x00), FINITE, 0x80), ("divide", (0x80, 0x00), UNSIGNED, 0xFF),
        ("divide", (0xFE, 0x00), UNSIGNED, 0xFF), ("divide", (0x80, 0x00), UNSIGNED_FINITE, 0xFF),
        ("divide", (0x40, 0x7F), SIGNED, 0x00), ("divide", (0x7F, 0x7F), SIGNED, 0x80),
        # no flags: inexact, overflow, underflow, invalid
        ("divide", (0x40, 0x42), SIGNED, 0x3D), ("multiply", (0x7E, 0x7E), SIGNED, 0x7F),
        ("multiply", (0x7F, 0x7F), FINITE, 0x7F), ("multiply", (0x7F, 0xFF), FINITE, 0xFF),
        ("multiply", (0x01, 0x01), SIGNED, 0x00), ("sqrt", (0xC0,), SIGNED, 0x80), ("sqrt", (0xFF,), SIGNED, 0x80),
        ("subtract", (0x7F, 0x7F), SIGNED, 0x80), ("multiply", (0x00, 0x7F), SIGNED, 0x80),
        ("fma", (0x00, 0x7F, 0x80), SIGNED, 0x80), ("remainder", (0x40, 0x00), SIGNED, 0x80),
        ("round_to_integral", (0x3F,), SIGNED, 0x40),
        # logb(0) is -infinity, rounded as any result
        ("logb", (0x00,), SIGNED, 0xFF), ("logb", (0x00,), FINITE, 0xFF), ("logb", (0x00,), UNSIGNED, 0xFF),
        # below zero where there is nothing below zero
        ("subtract", (0x00, 0x80), UNSIGNED, 0xFF), ("subtract", (0x00, 0xFE), UNSIGNED, 0xFF),
        ("negate", (0x80,), UNSIGNED, 0xFF), ("negate", (0xFE,), UNSIGNED, 0xFF), ("negate", (0xFF,), UNSIGNED, 0xFF),
        ("negate", (0x00,), UNSIGNED, 0x00), ("absolute", (0xFE,), UNSIGNED, 0xFE),
        # the single NaN everywhere
        ("minimum", (0x80, 0x40), SIGNED, 0x80), ("maximum_number", (0x80, 0x40), SIGNED, 0x40),
        ("maximum_number", (0x80, 0x80), SIGNED, 0x80), ("add", (0xFF, 0x01), UNSIGNED, 0xFF),
        ("next_up", (0x80,), SIGNED, 0x80), ("scalb", (0x80, 3), SIGNED, 0x80),
    ],
)  # fmt: skip
def test_p3109_by_hand(operation, codes, fmt, want):
    assert getattr(ref, operation)(*codes, fmt) == (want, 0)


def test_the_result_s_format_decides():
    assert ref.divide(0x3C, 0x00, "e5m2", out_fmt=SIGNED) == (0x80, 0)
    assert ref.divide(0x40, 0x00, SIGNED, out_fmt="e5m2") == (0x7C, 8)
    assert ref.convert(0x7D, "e5m2", SIGNED) == (0x80, 0)  # a signaling NaN
    assert ref.convert(0xC0, SIGNED, UNSIGNED) == (0xFF, 0)
    assert ref.convert(0x7F, SIGNED, "q4.4") == (0x00, INVALID)
    assert ref.copysign(0x80, 0x80, (UNSIGNED, "e5m2")) == (0xFF, 0)  # 1 with the sign of -0
    assert ref.copysign(0xFF, 0x80, (UNSIGNED, "e5m2")) == (0xFF, 0)
    assert ref.copysign(0x3C, 0x80, ("e5m2", SIGNED)) == (0xBC, 0)
    assert ref.encode(F(1, 3), SIGNED)[1] == 0 and ref.encode(F(-1), UNSIGNED) == (0xFF, 0)


def test_comparisons():
    assert ref.compare(0x80, 0x40, SIGNED, "signaling") == (2, 0)
    assert ref.compare(0x80, 0xFF, (SIGNED, UNSIGNED), "signaling") == (2, 0)
    assert ref.compare(0x80, 0x3C, (SIGNED, "e5m2"), "signaling") == (2, INVALID)
    assert ref.compare(0x40, 0x7D, (SIGNED, "e5m2")) == (2, INVALID)
    assert ref.compare(0x80, 0x7E, ("e4m3fnuz", SIGNED), "signaling") == (2, INVALID)


@pytest.mark.parametrize("name", [SIGNED, FINITE, UNSIGNED, UNSIGNED_FINITE, "binary8p1ue", "binary6p4se"])
def test_the_total_order_starts_with_nan(name):
    fmt = format_of(name)

    def rank(code):
        x = ref.decode(code, fmt)
        infinite = 0 if x.kind != "inf" else -1 if x.sign else 1
        return (0,) if x.kind == "nan" else (1, infinite, 0 if infinite else x.fraction)

    ordered = sorted(range(1 << fmt.bits), key=rank)
    assert ordered[0] == fmt.nan_code
    for first, second in itertools.pairwise(ordered):
        assert ref.total_order(first, second, fmt) and not ref.total_order(second, first, fmt), (first, second)
        assert ref.total_order(first, first, fmt)
    assert ref.total_order(fmt.nan_code, ordered[-1], fmt) and not ref.total_order(ordered[-1], fmt.nan_code, fmt)
