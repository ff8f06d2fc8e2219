"""Wrong results of block formats that a search against exact arithmetic found, and sums that just overflow."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref


def test_a_product_that_overflows_into_an_accumulator_without_nan_raises():
    fmt = sn.BlockFormat("e5m2", "e8m0fnu", 2)
    unit = sn.BlockDotUnit("q16.16", operand=fmt, product="binary16")
    a = sn.array([[57344.0, 57344.0]], fmt)
    with pytest.raises(ValueError, match="no code"):
        sn.matmul(a, a.T, unit)


def test_the_last_step_keeps_the_sign_of_zero():
    fmt = sn.format("nvfp4")
    unit = sn.BlockDotUnit("e5m2", operand="nvfp4")
    a, b = sn.BlockArray([[1]], [[1]], fmt, -1, 1.0), sn.BlockArray([[9]], [[1]], fmt, -2, 1.0)
    for c in (None, np.float32([[-0.0]])):
        got = sn.matmul(a, b, unit, c=c)
        assert got == 0 and np.signbit(got).all()
    assert not np.signbit(sn.matmul(a, b, unit, c=np.float32([[0.0]]))).any()


@pytest.mark.parametrize("rule", ["max", "rceil"])
@pytest.mark.parametrize("element", ["q1.54", "q1.53", "e15m10", "e2m57"])
def test_scales_divide_by_the_largest_element_exactly(element, rule):
    fmt = sn.BlockFormat(element, "e8m0fnu", 4)
    for value in (1.0, 1.5, 3 * 2.0**-40):
        assert int(sn.encode([value], fmt, scale_rule=rule)[1][0]) == ref.block_scale([value], fmt, scale_rule=rule)


def test_a_quotient_beside_a_tie_below_binary32():
    fmt = sn.BlockFormat(sn.FloatFormat(4, 2, bias=148), "binary64", None)
    assert sn.encode([8.168415479618811e-41, 2.1366879219147976e-45], fmt)[0].tolist() == [59, 1]


def test_a_quotient_beyond_binary64_saturates():
    fmt = sn.BlockFormat("q1.3", sn.FloatFormat(3, 0, bias=20, specials="none"), 1)
    assert sn.encode([1.79e308, -1.79e308], fmt)[0].tolist() == [7, 8]


def test_a_quotient_beyond_float32_is_finite():
    scale = sn.FloatFormat(4, 0, signed=False, specials="fn", has_zero=False, lowest_binade="normal", bias=40)
    x = np.float32([[3e38, 1, 0, 2]])
    codes, _ = sn.encode(x, sn.BlockFormat("e5m2", scale, 4), overflow="saturate_finite")
    assert codes.tolist() == [[0x7B, 0x7B, 0, 0x7B]]  # no infinity


def test_values_beyond_float64_are_told():
    fmt = sn.BlockFormat("binary64", "e8m0fnu", 4)
    array = sn.BlockArray([sn.format("binary64").max_code], [200], fmt)
    with pytest.raises(ValueError, match="not exact in float64"):
        array.decode()
    assert "BlockArray" in repr(array)


def test_decode_of_a_block_array_knows_its_axis():
    array = sn.array(np.ones((2, 3)), "mxfp4", axis=1)
    assert np.array_equal(sn.decode(array, "mxfp4", axis=1), sn.decode(array, "mxfp4"))
    with pytest.raises(ValueError, match="blocked along axis -1, not 0|blocked along axis 1, not 0"):
        sn.decode(array, "mxfp4", axis=0)


def test_numbers_of_thousands_of_digits():
    fmt = sn.format("e15m10")
    assert (sn.array([0.0], fmt) + fmt.max == sn.array(fmt.max, fmt)).all()
    with pytest.raises(ValueError, match="thousands of digits"):
        sn.divide([0], [0], "q4.4", invalid=fmt.max)


def test_the_least_scale_is_found_at_once():
    scale = sn.FloatFormat(8, 40, lowest_binade="zero")
    assert ref.block_scale([0.0], sn.BlockFormat("e2m1fn", scale, 4)) == 1 << 40


def test_special_scales_of_values_beyond_binary64():
    """Zeros keep the product's sign; an infinite or NaN scale decides, however large or small the element is."""
    fmt, inf = sn.BlockFormat(sn.FloatFormat(12, 1), sn.FloatFormat(11, 1), 5), np.inf
    numbers = [-1, Fraction(-(2**1500)), -(Fraction(2) ** -1500), 0, -0.0]
    codes = sn.encode(np.array(numbers, object), fmt.element)
    for scale, want in (
        (0.0, [-0.0, -0.0, -0.0, 0.0, -0.0]), (inf, [-inf, -inf, -inf, np.nan, np.nan]), (np.nan, [np.nan] * 5),
    ):  # fmt: skip
        scales = sn.encode([scale], fmt.scale)
        for dtype in (np.float64, object):
            got = sn.decode((codes, scales), fmt, dtype).astype(np.float64)
            assert np.array_equal(np.signbit(got) & (got == got), np.signbit(want) & (np.equal(want, want)))
            assert np.array_equal(got, want, equal_nan=True)
