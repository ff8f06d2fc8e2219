"""What the tests of convolutions by transforms share: images, and the convolution itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def images(seed: int, shape, low=-4, high=5) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.float64)


def direct(x, w, padding) -> np.ndarray:
    """The convolution in fractions, by its definition."""
    (rows, columns), kernel = np.broadcast_to(padding, 2), w.shape[2:]
    x = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    out = np.empty((len(x), len(w), *(n - k + 1 for n, k in zip(x.shape[2:], kernel, strict=True))), object)
    for n, f, i, j in np.ndindex(out.shape):
        terms = zip(x[n, :, i : i + kernel[0], j : j + kernel[1]].flat, w[f].flat, strict=True)
        out[n, f, i, j] = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
    return out
