"""The facts of formats, against the values that codes have in the reference."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.facts import facts, fits, is_exact_in
from tests.support.cases import cases

SMALL = [
    *(name for name in sn.format_names() if sn.format(name).bits <= 10), "e2m1", "e3m3", "e1m4", "q4.4", "uq8.0",
    "q0.6", "uq0.3", "q2.0", "binary6p3sf", "binary6p3ue", "binary8p1se", "binary8p8uf",
    sn.FloatFormat(3, 2, lowest_binade="zero"), sn.FloatFormat(3, 2, lowest_binade="normal", specials="fn", bias=-9),
    sn.CustomFormat.from_table([0.0, 0.75, -3.0, 640.0]),
]  # fmt: skip

PAIRS = [("e4m3fn", "q4.4"), ("e4m3fn", "e8m0fnu"), ("q4.4", "e8m0fnu"), ("e2m1fn", "e4m3fn"), ("e2m1fn", "q4.4")]


def values_of(fmt):
    """The finite values of a format, and whether it has others."""
    if isinstance(fmt, sn.CustomFormat):
        found = [float(v) for v in fmt.values]
        return [Fraction(v) for v in found if np.isfinite(v)], not all(map(np.isfinite, found))
    found = [ref.decode(code, fmt) for code in range(1 << fmt.bits)]
    return [v.fraction for v in found if v.kind == "finite"], any(v.kind != "finite" for v in found)


def check(known, values, specials):
    assert known.specials == specials
    for value in values:
        scaled = value / Fraction(2) ** known.last
        assert scaled.denominator == 1, f"{value} is no multiple of 2**{known.last}"
        assert abs(value) < Fraction(2) ** (known.top + 1), f"{value} is not below 2**{known.top + 1}"
        integer = int(scaled)
        digits = (integer // (integer & -integer or 1)).bit_length()
        assert digits <= known.precision, f"{value} has {digits} bits"


@cases("fmt", SMALL, ids=str)
def test_every_value_keeps_to_the_facts(fmt):
    fmt = sn.format(fmt) if isinstance(fmt, str) else fmt
    check(facts(fmt), *values_of(fmt))


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_every_product_keeps_to_the_facts(left, right):
    """Facts times facts, and those of the block format of one as scale of the other."""
    (x, special), (y, also) = (values_of(sn.format(name)) for name in (left, right))
    known = facts(sn.format(left)) * facts(sn.format(right))
    check(known, {a * b for a in x for b in y}, special or also)
    element = left if sn.format(left).has_zero else right
    scale = right if element is left else left
    assert facts(sn.BlockFormat(element, scale, 8)) == known
    tensor = facts(sn.BlockFormat(element, scale, 8, tensor_scale="bfloat16"))
    assert tensor == known * facts(sn.format("bfloat16"))


def test_the_check_finds_a_wrong_fact():
    values, specials = values_of(sn.format("e5m2"))
    known = facts(sn.format("e5m2"))
    for wrong, what in (({"precision": 2}, "has 3 bits"), ({"last": -15}, "no multiple"), ({"top": 14}, "not below")):
        with pytest.raises(AssertionError, match=what):
            check(type(known)(**{**vars(known), **wrong}), values, specials)


def extremes(fmt):
    """Values of a format that a float type loses first: the finest, the largest, the longest."""
    known = facts(fmt)
    if fmt.kind == "fixed":
        return [Fraction(fmt.max), Fraction(fmt.min), Fraction(fmt.epsilon), Fraction(fmt.max) - Fraction(fmt.epsilon)]
    codes = {0, 1, 2, fmt.max_code, fmt.max_code - 1, 1 << fmt.mantissa_bits, (2 << fmt.mantissa_bits) - 1}
    found = [ref.decode(code, fmt) for code in codes if code <= fmt.max_code]
    assert known.top == fmt.emax
    return [v.fraction for v in found]


def held(value, dtype):
    try:
        with np.errstate(over="ignore", under="ignore"):
            return Fraction(float(np.array(float(value), dtype))) == value and Fraction(float(value)) == value
    except OverflowError:  # infinite
        return False


def near_the_limits():
    for e, m in itertools.product((4, 5, 6, 8, 9, 11, 12), (0, 1, 9, 10, 11, 22, 23, 24, 51, 52, 53)):
        for bias in (None, 14, 15, 16, 126, 127, 128, 150, 1022, 1023, 1024, -100):
            for specials in ("ieee", "fn", "none") if m else ("fn", "none"):
                if e + m < 63:
                    yield sn.FloatFormat(e, m, bias=bias, specials=specials)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_which_floats_a_float_type_holds(dtype):
    seen = set()
    for fmt in near_the_limits():
        want = all(held(v, dtype) for v in extremes(fmt))
        assert fits(fmt, dtype) == is_exact_in(fmt, dtype) == want, f"{fmt!r}"
        seen.add(want)
    assert seen == {True, False}


@pytest.mark.parametrize(("dtype", "bits"), [(np.float16, 11), (np.float32, 24), (np.float64, 53)])
def test_which_fixed_point_a_float_type_holds(dtype, bits):
    """To the last bit, and as `fits` takes it, with a bit to spare where it is signed."""
    for width, signed in itertools.product(range(2, 65), (True, False)):
        for fraction in sorted({0, 1, 8, 14, width // 2, width - 1, width}):
            if fraction > width:
                continue
            fmt = sn.FixedFormat(width - fraction, fraction, signed=signed)
            exact = all(held(v, dtype) for v in extremes(fmt))
            if dtype is not np.float16:  # whose exponents end before those of fixed point
                assert is_exact_in(fmt, dtype) == exact == (width - signed <= bits), f"{fmt}"
                assert fits(fmt, dtype) == (width <= bits), f"{fmt}"
            assert exact or not fits(fmt, dtype), f"{fmt}"
