"""Contractions in Tile that are no matrix product: by compiled loops, laid out, and NumPy's float32 beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, one_thread
from softnum.tile import loops

_MOST = 0.5  # of the time that laying out takes

_UNIT = sn.MadUnit("e6m9", operand="e5m2")


def _max_pool(x):
    n, c, h, w = x.shape
    rows = np.maximum(x[:, :, ::2], x[:, :, 1::2])
    return np.maximum(rows[..., ::2], rows[..., 1::2]).reshape(n, c, h // 2, w // 2)


def _padded_pool(x):
    out = np.full((*x.shape[:2], 14, 14), -np.inf, np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    for y, z in np.ndindex(3, 3):
        np.maximum(out, wide[:, :, y : y + 27 : 2, z : z + 27 : 2], out=out)
    return out


def _sum_pool(x):
    rows = x[:, :, ::2] + x[:, :, 1::2]
    return rows[..., ::2] + rows[..., 1::2]


def _depthwise(x, k):
    out = np.zeros((8, 26, 26, 32), np.float32)
    for y, z in np.ndindex(3, 3):
        out += x[:, y : y + 26, z : z + 26] * k[y, z]
    return out


#: name, statement, shapes of A and B, NumPy's way
CASES = (
    ("max pooling 2 x 2, 32 x 16 x 28 x 28",
     "O[n, c, y, x: 32, 16, 14, 14] = >(A[n, c, 2 * y + j, 2 * x + i]), j < 2, i < 2", ((32, 16, 28, 28),), _max_pool),
    ("max pooling 3 x 3, stride 2, padded",
     "O[n, c, y, x: 32, 16, 14, 14] = >(A[n, c, 2 * y + j - 1, 2 * x + i - 1]), j < 3, i < 3", ((32, 16, 28, 28),),
     _padded_pool),
    ("sums of 2 x 2",
     "O[n, c, y, x: 32, 16, 14, 14] = +(A[n, c, 2 * y + j, 2 * x + i]), j < 2, i < 2", ((32, 16, 28, 28),), _sum_pool),
    ("running sums, 1000 x 64",
     "O[n, m: 1000, 64] = +(A[k, m]), n - k < 1000", ((1000, 64),), lambda a: np.cumsum(a, 0)),
    ("depthwise convolution 3 x 3, 8 x 28 x 28 x 32",
     "O[n, y, x, c: 8, 26, 26, 32] = +(A[n, y + j, x + i, c] * B[j, i, c])", ((8, 28, 28, 32), (3, 3, 32)), _depthwise),
    ("sums of rows, 512 x 768", "O[m: 512] = +(A[m, k])", ((512, 768),), lambda a: a.sum(1)),
    ("sums of squares of rows, 512 x 768", "O[m: 512] = +(A[m, k] * A[m, k])", ((512, 768),), lambda a: (a * a).sum(1)),
    ("largest of rows, 512 x 768", "O[m: 512] = >(A[m, k])", ((512, 768),), lambda a: a.max(1)),
    ("products of rows, 20000 x 16", "O[m: 20000] = *(A[m, k])", ((20000, 16),), lambda a: a.prod(1)),
    ("rows turned, 10000 x 64", "O[m, n: 10000, 64] = =(A[9999 - m, n])", ((10000, 64),), lambda a: a[::-1].copy()),
)  # fmt: skip


@contextmanager
def _least(terms: int):
    """Loops from so many terms on."""
    before, loops.LEAST = loops.LEAST, terms
    try:
        yield
    finally:
        loops.LEAST = before


def rows() -> Iterator[Row]:
    """Milliseconds of a call; how many times those of NumPy, and of what the same call takes laid out."""
    rng = np.random.Generator(np.random.Philox(13))
    for name, statement, shapes, numpy in CASES:
        given = [sn.quantize(rng.standard_normal(shape, dtype=np.float32), "e5m2") for shape in shapes]
        names = ", ".join("AB"[: len(given)])
        op = sn.operator(f"function ({names}) -> (O) {{ {statement}; }}")

        def call(least=0):
            with _least(least):
                op(*given, fmt="e5m2", unit=_UNIT, threads=1)  # noqa: B023

        with one_thread():
            ours, theirs = against(call, lambda: numpy(*given))  # noqa: B023
            again, before = against(call, lambda: call(1 << 62), 5)
        yield Row(name, ours * 1e3, "ms", ours / theirs, "x NumPy, float32")
        yield Row("  the same against its terms laid out", before * 1e3, "ms", again / before, "of that", _MOST)
