"""Winograd's convolutions: each rounding by a definition in loops, sums by exact fractions, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.winograd import _TRANSFORMS
from tests.support.cases import cases
from tests.support.convolutions import direct, images

_HALF = sn.MadUnit("binary16", operand="binary16")
_MIXED = sn.MadUnit("e6m9", operand="e5m2", product="e6m9")


def _times(a, b, unit) -> np.ndarray:
    """A product of matrices in a unit, one result after the other."""
    a, b = sn.quantize(np.float64(a), unit.operand[0]), sn.quantize(np.float64(b), unit.operand[1])
    return np.array([[sn.dot(row, column, unit) for column in b.T] for row in a], np.float64)


def _tile_by_tile(x, w, unit, tile, transform, output) -> np.ndarray:
    """The definition: images of whole tiles, no padding."""
    t_in, t_kernel, t_out = (np.array([[float(v) for v in row] for row in t]) for t in _TRANSFORMS[tile])
    out = np.zeros((len(x), len(w), x.shape[2] - 2, x.shape[3] - 2))
    for n, f, i, j in np.ndindex(len(x), len(w), out.shape[2] // tile, out.shape[3] // tile):
        place = np.s_[i * tile : i * tile + tile + 2, j * tile : j * tile + tile + 2]
        v = [_times(_times(t_in, d[place], transform), t_in.T, transform) for d in x[n]]
        u = [_times(_times(t_kernel, g, transform), t_kernel.T, transform) for g in w[f]]
        m = np.empty((tile + 2, tile + 2))
        for at in np.ndindex(m.shape):
            m[at] = _times([[each[at] for each in v]], [[each[at]] for each in u], unit)[0, 0]
        y = _times(_times(t_out, m, output), t_out.T, output)
        out[n, f, i * tile : i * tile + tile, j * tile : j * tile + tile] = y
    return out


@cases("tile, unit", [(2, _HALF), (4, _HALF), (2, _MIXED)])
def test_each_rounding_by_the_definition(tile, unit):
    rng = np.random.default_rng(tile)
    size = 2 * tile + 2
    x = sn.quantize(rng.normal(size=(1, 2, size, tile + 2)), "e5m2")
    w = sn.quantize(rng.normal(size=(2, 2, 3, 3)), "e5m2")
    transform, output = sn.MadUnit("bfloat16", operand="bfloat16"), sn.MadUnit("binary32", operand="binary32")
    found = sn.mac.products.conv2d_winograd(x, w, unit, tile=tile, transform=transform, output=output)
    assert np.array_equal(found, _tile_by_tile(x, w, unit, tile, transform, output))
    assert not np.array_equal(found, sn.conv2d(x, w, sn.MadUnit("binary32", operand="binary32")))


@cases("shape, padding", [((2, 3, 5, 7), 1), ((1, 1, 4, 4), 0), ((1, 2, 3, 6), 2)])
def test_with_nothing_rounded_it_is_the_convolution(shape, padding):
    """Small integers in binary64: of F(2 x 2) all numbers are multiples of 1/4, so the result is exact."""
    x, w = images(1, shape), images(2, (4, shape[1], 3, 3))
    wide = sn.MadUnit("binary64", operand="binary64")
    exact = direct(x, w, padding)
    assert np.array_equal(sn.mac.products.conv2d_winograd(x, w, wide, padding=padding), exact.astype(np.float64))
    four = sn.mac.products.conv2d_winograd(x, w, wide, tile=4, padding=padding)  # sixths are no binary numbers
    assert four.shape == exact.shape and np.abs(four - exact.astype(np.float64)).max() < 1e-11
    kernels = 576 * w  # nor do they matter if 24 * 24 divides the kernels
    assert (
        np.abs(
            sn.mac.products.conv2d_winograd(x, kernels, wide, tile=4, padding=padding) / 576 - exact.astype(float)
        ).max()
        < 1e-11
    )


def test_the_gradient_by_the_input_is_one_of_turned_kernels():
    dy, w = images(4, (2, 4, 6, 5)), images(5, (4, 3, 3, 3))
    wide = sn.MadUnit("binary64", operand="binary64")
    found = sn.mac.products.conv2d_winograd(dy, w.swapaxes(0, 1)[..., ::-1, ::-1], wide, padding=1)
    assert np.array_equal(found, sn.mac.products.conv2d_backward_data(dy, w, wide, size=(6, 5), padding=1))


def test_an_accumulator_that_starts_from_a_bias():
    """It is the first term of the last sum: of binary16's integers above 2048 the odd ones are rounded away at once."""
    x, w = images(6, (2, 1, 5, 4), 0, 2), images(7, (3, 1, 3, 3), 0, 2)
    bias = np.float32([4096, -2, 0])[:, None, None]
    wide = sn.MadUnit("binary64", operand="binary64")
    found = sn.mac.products.conv2d_winograd(x, w, wide, bias, padding=1)
    assert np.array_equal(found, direct(x, w, 1).astype(np.float64) + bias)
    last = sn.MadUnit("binary16", operand="binary16")
    found = sn.mac.products.conv2d_winograd(x, w, wide, bias, output=last, padding=1)
    columns = sn.mac.products.conv2d_winograd(x, w, wide, padding=1)
    assert np.array_equal(found[:, 1:], columns[:, 1:] + bias[1:]) and (found[:, 0] % 4 == 0).all()


def test_larger_tiles_lose_more():
    rng = np.random.default_rng(3)
    x, w = (
        sn.quantize(rng.normal(size=(1, 16, 10, 10)), "binary16"),
        sn.quantize(rng.normal(size=(4, 16, 3, 3)), "binary16"),
    )
    exact = direct(x.astype(np.float64), w.astype(np.float64), 0).astype(np.float64)
    errors = [np.abs(sn.conv2d(x, w, _HALF) - exact).mean()]
    errors += [np.abs(sn.mac.products.conv2d_winograd(x, w, _HALF, tile=tile) - exact).mean() for tile in (2, 4)]
    assert errors[2] > 3 * errors[1] > 0 and errors[2] > 3 * errors[0]


@cases(
    "given, says",
    [
        ({"stride": 2}, "stride must be 1, got 2; softnum.conv2d"),
        ({"groups": 2}, "groups must be 1"),
        ({"dilation": (2, 1)}, "dilation must be 1"),
        ({"tile": 3}, "tile must be 2 or 4, got 3"),
        ({"padding": -1}, "padding must be"),
        ({"padding": True, "w": np.ones((1, 2, 3, 3))}, "padding must be"),
        ({"w": np.ones((1, 1, 5, 5))}, "kernels are 3 x 3, got 5 x 5"),
        ({"w": np.ones((1, 2, 3, 3))}, "images of 1 channels, and kernels of 2"),
        ({"x": np.ones((1, 1, 2, 2))}, "hold no 3 x 3 kernel"),
        ({"c": np.ones(3)}, "c of shape .3,. does not broadcast"),
        ({"c": np.float64(0.1)}, "is no value of binary16"),
        ({"output": sn.MadUnit("q30.30", operand="binary16")}, "q30.30, which float64 does not hold"),
        ({"x": np.ones((4, 4))}, "four dimensions"),
        ({"x": np.ones((0, 1, 4, 4))}, "nothing to convolve"),
        ({"unit": sn.MadUnit("binary16", operand="binary16", rounding="stochastic")}, "rounds stochastically"),
    ],
)
def test_where_it_does_not_apply(given, says):
    asked = {"x": np.ones((1, 1, 4, 4)), "w": np.ones((1, 1, 3, 3)), "unit": _HALF} | given
    with pytest.raises(ValueError, match=says):
        sn.mac.products.conv2d_winograd(asked.pop("x"), asked.pop("w"), asked.pop("unit"), **asked)
