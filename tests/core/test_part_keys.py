"""The random words of the part of a larger result: those that the larger one has there."""

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import PartKey

KEY = (7, 3)
RNG = np.random.default_rng(5)
X = RNG.standard_normal((12, 10), dtype=np.float32)
CHUNKED = sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=12, chunk=4)
FLAT = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", product_rounding="stochastic")


def part(first, count, stacked=False, pieces=12):
    return PartKey(*KEY, first * pieces // 12, count * pieces // 12, stacked)


PARTS = [(0, 12), (0, 4), (4, 4), (8, 4), (1, 11), (3, 2)]


@pytest.mark.parametrize(("first", "count"), PARTS)
@pytest.mark.parametrize("fmt", ["e5m2", "q4.4", "mxfp8_e4m3", "binary32"])
@pytest.mark.parametrize("axis", [-1, -2])
def test_elements(fmt, first, count, axis):
    x = X.astype(np.float64) if fmt == "binary32" else X
    options = {} if fmt != "mxfp8_e4m3" else {"axis": axis}
    if axis == -2:  # blocks of one part alone
        x = np.ascontiguousarray(x[:, None, :].repeat(3, 1)) + np.arange(3)[:, None].astype(x.dtype)
    whole = sn.quantize(x, fmt, rounding="stochastic", key=KEY, **options)
    key = part(first, count)
    own = sn.quantize(x[first : first + count], fmt, rounding="stochastic", key=key, **options)
    assert np.array_equal(own, whole[first : first + count])


def test_long_arrays():
    x = RNG.standard_normal((8, 1 << 18), dtype=np.float32)
    whole = sn.quantize(x, "e5m2", rounding="stochastic", key=KEY)
    own = sn.quantize(x[3:], "e5m2", rounding="stochastic", key=PartKey(*KEY, 3, 5))
    assert np.array_equal(own, whole[3:])


@pytest.mark.parametrize(("first", "count"), PARTS)
@pytest.mark.parametrize("operation", ["add", "tanh"])
def test_operations(operation, first, count):
    codes = sn.encode(X, "binary32"), sn.encode(X[::-1], "binary32")
    operands = codes if operation == "add" else codes[:1]
    function = getattr(sn.ops, operation)
    options = {"out_fmt": "e5m2", "rounding": "stochastic"}
    whole = function(*operands, "binary32", key=KEY, **options)
    own = function(*(x[first : first + count] for x in operands), "binary32", key=part(first, count), **options)
    assert np.array_equal(own, whole[first : first + count])


@pytest.mark.parametrize("unit", [CHUNKED, FLAT], ids=["chunked", "flat"])
@pytest.mark.parametrize(("first", "count"), PARTS)
def test_rows_of_products(unit, first, count):
    a, b = sn.quantize(X, "e5m2"), sn.quantize(X.T, "e5m2")
    c = np.full((12, 12), 0.5, np.float32)
    rows = slice(first, first + count)
    for start in (None, c):
        whole = sn.matmul(a, b, unit, start, key=KEY)
        of_rows = None if start is None else start[rows]
        assert np.array_equal(sn.matmul(a[rows], b, unit, of_rows, key=part(first, count)), whole[rows])
        counted, _ = sn.matmul(a[rows], b, unit, of_rows, key=part(first, count), return_stats=True)
        assert np.array_equal(counted, whole[rows])  # by the definition


@pytest.mark.parametrize("unit", [CHUNKED, FLAT], ids=["chunked", "flat"])
@pytest.mark.parametrize(("first", "count"), PARTS)
def test_stacked_products(unit, first, count):
    a = sn.quantize(RNG.standard_normal((12, 2, 5, 6), dtype=np.float32), "e5m2")
    b = sn.quantize(RNG.standard_normal((12, 2, 6, 3), dtype=np.float32), "e5m2")
    whole, rows = sn.matmul(a, b, unit, key=KEY), slice(first, first + count)
    own = sn.matmul(a[rows], b[rows], unit, key=part(first, count, stacked=True))
    assert np.array_equal(own, whole[rows])
    with pytest.raises(ValueError, match="products have no rows of one larger product"):
        sn.matmul(a[rows], b[rows], unit, key=part(first, count))


@pytest.mark.parametrize("inner", [FLAT, None], ids=["inner", "exact"])
@pytest.mark.parametrize(("first", "count"), PARTS)
def test_products_of_blocks(inner, first, count):
    operand = "mxfp8_e5m2"
    inner = None if inner is None else sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic")
    unit = sn.BlockDotUnit("binary32", operand=operand, rounding="stochastic", stochastic_bits=8, inner=inner)
    x = RNG.standard_normal((12, 70), dtype=np.float32)
    b, rows = sn.array(x.T, operand, axis=-2), slice(first, first + count)
    whole = sn.matmul(sn.array(x, operand, axis=-1), b, unit, key=KEY)
    own = sn.matmul(sn.array(x[rows], operand, axis=-1), b, unit, key=part(first, count))
    assert np.array_equal(own, whole[rows], equal_nan=True)
    stack = sn.array(np.stack([x, -x] * 6), operand, axis=-1), sn.array(np.stack([x.T] * 12), operand, axis=-2)
    whole = sn.matmul(*stack, unit, key=KEY)
    parts = (
        sn.array(np.stack([x, -x] * 6)[rows], operand, axis=-1),
        sn.array(np.stack([x.T] * count), operand, axis=-2),
    )
    assert np.array_equal(sn.matmul(*parts, unit, key=part(first, count, stacked=True)), whole[rows], equal_nan=True)


@pytest.mark.parametrize("unit", [CHUNKED, FLAT], ids=["chunked", "flat"])
@pytest.mark.parametrize(("first", "count"), PARTS)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(unit, first, count, groups):
    x = sn.quantize(RNG.standard_normal((12, 4, 6, 5), dtype=np.float32), "e5m2")
    w = sn.quantize(RNG.standard_normal((6, 4 // groups, 3, 3), dtype=np.float32), "e5m2")
    geometry, images = {"padding": 1, "stride": 2, "groups": groups}, slice(first, first + count)
    whole = sn.conv2d(x, w, unit, key=KEY, **geometry)
    own = sn.conv2d(x[images], w, unit, key=part(first, count), **geometry)
    assert np.array_equal(own, whole[images])
    dy = sn.quantize(whole, "e5m2")
    whole = sn.mac.products.conv2d_backward_data(dy, w, unit, (6, 5), key=KEY, **geometry)
    own = sn.mac.products.conv2d_backward_data(dy[images], w, unit, (6, 5), key=part(first, count), **geometry)
    assert np.array_equal(own, whole[images])


def test_an_axis_that_is_not_the_leading_one():
    """The second of three axes: rows of each index of the first are numbered apart."""
    first, count = 3, 2
    x = sn.quantize(RNG.standard_normal((5, 12, 6), dtype=np.float32), "e5m2")
    key, own = PartKey(*KEY, first, count, outer=5, whole=12), x[:, first : first + count]
    whole = sn.quantize(x, "e4m2", rounding="stochastic", key=KEY)
    assert np.array_equal(sn.quantize(own, "e4m2", rounding="stochastic", key=key), whole[:, first : first + count])
    b = sn.quantize(RNG.standard_normal((6, 4), dtype=np.float32), "e5m2")
    rows = np.ascontiguousarray(own).reshape(-1, 6)
    for unit in (CHUNKED, FLAT):
        whole = sn.matmul(x.reshape(-1, 6), b, unit, key=KEY).reshape(5, 12, 4)[:, first : first + count]
        assert np.array_equal(sn.matmul(rows, b, unit, key=key).reshape(whole.shape), whole)
        assert np.array_equal(sn.matmul(rows, b, unit, key=key, return_stats=True)[0].reshape(whole.shape), whole)
    for inner in (None, sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic")):
        unit = sn.BlockDotUnit("binary32", operand="mxfp8_e5m2", rounding="stochastic", stochastic_bits=8, inner=inner)
        blocks = [sn.array(x, "mxfp8_e5m2", axis=axis) for x, axis in ((x.reshape(-1, 6), -1), (rows, -1), (b, -2))]
        whole = sn.matmul(blocks[0], blocks[2], unit, key=KEY).reshape(5, 12, 4)[:, first : first + count]
        assert np.array_equal(sn.matmul(*blocks[1:], unit, key=key).reshape(whole.shape), whole, equal_nan=True)
    with pytest.raises(ValueError, match="images lie along the leading axis"):
        sn.conv2d(x[..., None, None].reshape(5, 12, 6, 1), np.ones((1, 12, 1, 1), np.float32), FLAT, key=key)


def test_what_has_no_parts_is_refused():
    with pytest.raises(ValueError, match="a result of 10 elements or rows cannot be divided into 3 equal pieces"):
        sn.quantize(X[0], "e5m2", rounding="stochastic", key=PartKey(*KEY, 1, 3))
    with pytest.raises(ValueError, match="no dimension of the larger product may reach"):
        sn.matmul(np.ones((3, 4), np.float32), np.ones((4, 2), np.float32), FLAT, key=PartKey(*KEY, 2**31, 1))
    with pytest.raises(ValueError, match="sum: its results have no key of a part"):
        sn.sum(X, sn.MadUnit("e6m9", operand="binary32", rounding="stochastic"), key=PartKey(*KEY, 1, 3))
