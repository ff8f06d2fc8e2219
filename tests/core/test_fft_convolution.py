"""Convolutions by Fourier transforms: each rounding by a recursion in loops, sums by exact fractions, refusals."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases
from tests.support.convolutions import direct, images

_HALF = sn.MadUnit("binary16", operand="binary16")
_WIDE = sn.MadUnit("binary64", operand="binary64")
_MIXED = sn.MadUnit("e6m9", operand=("e5m4", "bfloat16"), product="e6m9")


def _fft(line: list, unit, fmt, sign: int, halved: bool) -> list:
    """The transform of pairs (real, imaginary) by the recursion: even places, odd places, butterflies."""
    if len(line) == 1:
        return line
    even, odd = (_fft(line[first::2], unit, fmt, sign, halved) for first in (0, 1))
    out: list = [None] * len(line)
    for j, ((a, ai), (b, bi)) in enumerate(zip(even, odd, strict=True)):
        turn = 2 * pi * j / len(line)
        t, ti = (float(sn.quantize(np.float64(v), fmt)) for v in (cos(turn), sign * sin(turn)))
        b, bi = (float(sn.quantize(np.float64(v), unit.operand[1])) for v in (b, bi))
        sums = [(a, t, -ti), (ai, ti, t), (a, -t, ti), (ai, -ti, -t)]
        y = [_sum(unit, [row[1:], (b, bi)], row[0]) for row in sums]
        if halved:
            y = [float(sn.quantize(np.float64(v / 2), unit.result)) for v in y]
        out[j], out[j + len(even)] = tuple(y[:2]), tuple(y[2:])
    return out


def _sum(unit, pairs, start=None) -> float:
    a, b = (sn.quantize(np.float64(x), fmt) for x, fmt in zip(pairs, unit.operand, strict=True))
    start = None if start is None else float(sn.quantize(np.float64(start), unit.c_format))
    return float(sn.dot(a, b, unit, start))


def _both_axes(plane: list, *how) -> list:
    """Rows, along the width, and then columns."""
    columns = zip(*(_fft(list(row), *how) for row in plane), strict=True)
    return [list(row) for row in zip(*(_fft(list(column), *how) for column in columns), strict=True)]


def _by_definition(x, w, unit, c, size, transform, output, twiddle, scaling) -> np.ndarray:
    """Images that tiles of a size divide, without padding."""
    (kernel, across), halved = w.shape[2:], scaling == "stage"
    step = [n - k + 1 for n, k in zip(size, (kernel, across), strict=True)]
    out = np.zeros((len(x), len(w), x.shape[2] - kernel + 1, x.shape[3] - across + 1))

    def spectrum(plane):
        plane = sn.quantize(plane, transform.operand[1])
        return _both_axes([[(float(v), 0.0) for v in row] for row in plane], transform, twiddle, -1, False)

    room = np.zeros((*w.shape[:2], *size))
    room[:, :, :kernel, :across] = w
    kernels = [[spectrum(plane) for plane in each] for each in room]
    for n, i, j in np.ndindex(len(x), out.shape[2] // step[0], out.shape[3] // step[1]):
        place = np.s_[i * step[0] : i * step[0] + size[0], j * step[1] : j * step[1] + size[1]]
        tile = [spectrum(plane[place]) for plane in x[n]]
        for f, g in enumerate(kernels):
            m = [[None] * size[1] for _ in range(size[0])]
            for p, q in np.ndindex(*size):
                along = [v for plane in tile for v in plane[p][q]]
                real = [v for plane in g for v in plane[p][q]]
                imaginary = [v for plane in g for v in (-plane[p][q][1], plane[p][q][0])]
                m[p][q] = _sum(unit, (along, real)), _sum(unit, (along, imaginary))
            back = _both_axes(m, output, twiddle, 1, halved)
            for p, q in np.ndindex(*step):
                y = back[p][q][0]
                if not halved:
                    y = float(sn.quantize(np.float64(y / (size[0] * size[1])), output.result))
                y = y if c is None else _sum(output, ([1.0], [y]), c[f])
                out[n, f, i * step[0] + p, j * step[1] + q] = y
    return out


@cases(
    "unit, size, twiddle, scaling, c",
    [
        (_HALF, (4, 8), "bfloat16", "last", [0.0]),
        (_MIXED, (4, 2), "e5m2", "stage", [0.5, -1.0]),
        ("nvidia_v100_fp16", (4, 4), "bfloat16", "last", [1.0]),
    ],
)
def test_each_rounding_by_the_definition(unit, size, twiddle, scaling, c):
    rng, kernel = np.random.default_rng(size[0]), (3, 2)
    unit = sn.unit(unit) if isinstance(unit, str) else unit
    step = [n - k + 1 for n, k in zip(size, kernel, strict=True)]
    x, w = rng.normal(size=(1, 2, 2 * step[0] + 2, size[1])), rng.normal(size=(len(c), 2, *kernel))
    transform, output = sn.MadUnit("bfloat16", operand="bfloat16"), sn.MadUnit("e7m12", operand=("bfloat16", "e7m8"))
    options = {"size": size, "transform": transform, "output": output, "twiddle": twiddle, "scaling": scaling}
    start = np.float64(c)[:, None, None] if any(c) else None
    found = sn.mac.products.conv2d_fft(x, w, unit, start, **options)
    assert np.array_equal(found, _by_definition(x, w, unit, None if start is None else c, **options))
    assert 0 < np.abs(found - direct(x, w, 0).astype(float) - (0 if start is None else start)).max() < 4


@cases("shape, kernel, padding", [((2, 3, 5, 6), (3, 3), 1), ((1, 1, 4, 4), (4, 1), (0, 2)), ((1, 2, 7, 3), (1, 1), 0)])
def test_with_nothing_rounded_it_is_the_convolution(shape, kernel, padding):
    """Small integers in binary64: the twiddles of 4 are 1, -1, i and -i, so the result of tiles of 4 is exact."""
    x, w = images(1, shape), images(2, (4, shape[1], *kernel))
    exact = direct(x, w, padding).astype(np.float64)
    bias = np.arange(4.0)[:, None, None]
    assert np.array_equal(sn.mac.products.conv2d_fft(x, w, _WIDE, bias, size=4, padding=padding), exact + bias)
    whole = sn.mac.products.conv2d_fft(x, w, _WIDE, padding=padding)
    assert whole.shape == exact.shape and np.abs(whole - exact).max() < 1e-11


def test_the_gradient_by_the_input_is_one_of_turned_kernels():
    dy, w = images(4, (2, 4, 6, 5)), images(5, (4, 3, 5, 3))
    found = sn.mac.products.conv2d_fft(dy, w.swapaxes(0, 1)[..., ::-1, ::-1], _WIDE, size=(8, 4), padding=(3, 1))
    want = sn.mac.products.conv2d_backward_data(dy, w, _WIDE, size=(8, 5), padding=(1, 1))
    assert found.shape == want.shape and np.abs(found - want).max() < 1e-11


def test_fixed_point_needs_scaled_stages():
    """The spectrum of a point is nowhere larger than 1/2, and what comes back is 64 times 1/2: q3.12 ends below 8."""
    x, w = np.zeros((1, 1, 8, 8)), np.zeros((1, 1, 3, 3))
    x[..., 4, 4], w[..., 1, 1] = 1.0, 0.5
    narrow, wide = sn.MadUnit("q3.12", operand="q3.12"), sn.MadUnit("binary32", operand="binary32")
    last, stage = (
        sn.mac.products.conv2d_fft(x, w, wide, output=narrow, scaling=s)[0, 0, 3, 3] for s in ("last", "stage")
    )
    assert abs(stage - 0.5) < 2**-10 and last < 1 / 8


@pytest.mark.parametrize("function", [sn.mac.products.conv2d_fft, sn.mac.products.conv2d_winograd])
def test_numbers_that_are_not_real(function):
    x, w = np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3))
    for given, what in (((x * 1j, w, _HALF), "x"), ((x, w * 1j, _HALF), "w"), ((x, w, _HALF, "a"), "c")):
        with pytest.raises(TypeError, match=f"{what} must be an array of real numbers"):
            function(*given)


@cases(
    "given, says",
    [
        ({"stride": 2}, "stride must be 1, got 2; softnum.conv2d"),
        ({"groups": 2}, "groups must be 1"),
        ({"dilation": (2, 1)}, "dilation must be 1"),
        ({"size": 6}, "power of two from 2 to 4096"),
        ({"size": 2}, "holds a kernel of 3 x 3, got 2"),
        ({"size": 8192}, "power of two from 2 to 4096"),
        ({"size": True}, "size must be an integer"),
        ({"x": np.ones((1, 1, 3, 5000), np.float32)}, "got 8192; state a smaller size"),
        ({"padding": -1}, "padding must be"),
        ({"scaling": "first"}, "scaling must be 'last' or 'stage'"),
        ({"twiddle": "binary32"}, "twiddle=binary32 is not within binary16"),
        ({"w": np.ones((1, 2, 3, 3))}, "images of 1 channels, and kernels of 2"),
        ({"x": np.ones((1, 1, 2, 2))}, "hold no 3 x 3 kernel"),
        ({"x": np.ones((0, 1, 4, 4))}, "nothing to convolve"),
        ({"c": np.float64(0.1)}, "is no value of binary16"),
        ({"output": sn.MadUnit("q30.30", operand="binary16")}, "q30.30, which float64 does not hold"),
        ({"unit": sn.MadUnit("binary16", operand="binary16", rounding="stochastic")}, "rounds stochastically"),
    ],
)
def test_where_it_does_not_apply(given, says):
    asked = {"x": np.ones((1, 1, 4, 4)), "w": np.ones((1, 1, 3, 3)), "unit": _HALF} | given
    with pytest.raises(ValueError, match=says):
        sn.mac.products.conv2d_fft(asked.pop("x"), asked.pop("w"), asked.pop("unit"), **asked)
