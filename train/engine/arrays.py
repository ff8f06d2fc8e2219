"""Arrays of carriers, in NumPy: made, moved, chosen, compared. Nothing here rounds to a format of the design."""

from __future__ import annotations

import math

import numpy as np

from softnum.mac.products.unfold import Shape, lay_out, patches, sources
from softnum.runtime._core import contiguous
from softnum.train.engine.binary64 import Binary64
from softnum.train.engine.initial import DOMAIN_DROPOUT

__all__ = ["Arrays", "bits_of", "places"]


def places(shape, window: tuple[int, int], stride: tuple[int, int]) -> list[tuple]:
    """For each place of a window, row by row, the index of that place in all windows of images of a shape."""
    rows, columns = ((n - w) // t * t + 1 for n, w, t in zip(shape[2:], window, stride, strict=True))
    everything = slice(None)
    return [
        (everything, everything, slice(row, row + rows, stride[0]), slice(column, column + columns, stride[1]))
        for row in range(window[0])
        for column in range(window[1])
    ]


def bits_of(x):
    """Numbers as integers of their size."""
    return x.view(f"u{x.itemsize}")


def _where(mask, x):
    """x where a mask of its shape says so, else +0: products of bits, which take a tenth of np.where's time."""
    return (bits_of(x) * mask).view(x.dtype)


def _magnitudes(x):
    """The magnitudes by which elements are compared: that of a NaN is infinite."""
    return np.nan_to_num(np.abs(x), nan=math.inf, posinf=math.inf)


class Arrays(Binary64):
    """Arrays in NumPy, and what is done with them that is exact, or that IEEE 754 determines.

    Parameters
    ----------
    dtype : numpy dtype
        The carrier: float32 or float64.
    """

    def __init__(self, dtype) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"the host type must be float32 or float64, got {self.dtype}")

    def array(self, x):
        """A new carrier array with the given values, which the carrier must hold exactly."""
        x = np.asarray(x)
        carrier = x.astype(self.dtype)
        if not np.array_equal(carrier.astype(np.float64), x.astype(np.float64), equal_nan=True):
            raise ValueError(f"{self.dtype} does not hold the values exactly; round them first")
        return carrier

    def double(self, x):
        """The values in binary64."""
        return np.asarray(x, dtype=np.float64)

    def zeros(self, shape):
        """Carriers of +0."""
        return np.zeros(shape, self.dtype)

    def ones(self, shape):
        """Carriers of 1."""
        return np.ones(shape, self.dtype)

    def patches(self, x, shape: Shape):
        """Images unfolded for a convolution: (groups, M, K), as `softnum.conv2d` numbers rows and k."""
        return self._unfolded(patches(shape, x), shape)

    def sources(self, dy, shape: Shape):
        """Gradients unfolded for `softnum.mac.products.conv2d_backward_data`: (groups, M, K)."""
        return self._unfolded(sources(shape, dy), shape)

    def _unfolded(self, view, shape: Shape):
        own = view.shape[3] // shape.groups
        rows, k = math.prod(view.shape[:3]), own * math.prod(view.shape[4:])
        out = np.empty((shape.groups, rows, k), view.dtype)
        for group, matrix in enumerate(out):
            lay_out(view[:, :, :, group * own : (group + 1) * own], 3, 0, rows, matrix)
        return out

    def transpose(self, x):
        """A matrix with its axes exchanged."""
        return contiguous(x.T)

    def permute(self, x, axes: tuple[int, ...]):
        """An array with its axes in this order."""
        return contiguous(x.transpose(axes))

    def expand(self, x, shape):
        """An array broadcast to a shape."""
        return np.ascontiguousarray(np.broadcast_to(x, shape))

    def reshape(self, x, shape):
        """The same elements in C order in another shape."""
        return x.reshape(shape)

    def add(self, a, b):
        """a + b, rounded to the host type."""
        return a + b

    def part(self, x, rows: slice, columns: slice):
        """The rows and columns of a matrix, as a matrix of its own."""
        return np.ascontiguousarray(x[rows, columns])

    def place(self, x, shape, rows: slice, columns: slice):
        """A matrix of a shape with x in these rows and columns, and +0 elsewhere."""
        result = np.zeros(shape, x.dtype)
        result[rows, columns] = x
        return result

    def steps(self, x, steps: int):
        """A batch of sequences (B, steps * features) as a matrix (steps * B, features): all of step 0 first."""
        return np.ascontiguousarray(x.reshape(len(x), steps, -1).swapaxes(0, 1)).reshape(steps * len(x), -1)

    def pixels(self, x):
        """Images (N, C, H, W) as a matrix (N * H * W, C): a row for each pixel."""
        return contiguous(x.transpose(0, 2, 3, 1)).reshape(-1, x.shape[1])

    def neighbours(self, x):
        """The first of each pair of neighbours along the first axis, the second, and an odd last one or none."""
        even = len(x) // 2 * 2
        return x[0:even:2], x[1:even:2], x[even:]

    def join(self, first, second):
        """Two arrays, one after the other along the first axis."""
        return np.concatenate([first, second]) if len(second) else first

    def negate(self, x):
        """-x, exact on carriers."""
        return -x

    def concatenate(self, parts, axis: int):
        """Arrays, one after the other along an axis."""
        return np.concatenate(parts, axis)

    def split(self, x, sizes, axis: int):
        """The parts of so many rows each (or columns, ...) that an array consists of along an axis."""
        return [np.ascontiguousarray(part) for part in np.split(x, np.cumsum(sizes)[:-1], axis)]

    def put(self, x, rows, values):
        """x with these rows, all different, replaced by those of values."""
        result = x.copy()
        result[rows] = values
        return result

    def put_rows(self, x, rows, count: int):
        """An array of so many rows, with those of x in the given places, all different, and +0 elsewhere."""
        result = np.zeros((count, *x.shape[1:]), x.dtype)
        result[rows] = x
        return result

    def windows(self, x, window: tuple[int, int], stride: tuple[int, int]):
        """Images (N, C, H, W) as (places, N, C, rows, columns): for each place of a window, its element of each one."""
        return np.stack([x[place] for place in places(x.shape, window, stride)])

    def from_windows(self, parts, shape, window: tuple[int, int], stride: tuple[int, int], *, first: int = 0):
        """Images of a shape with these parts in the places of the windows from the first on, and +0 elsewhere."""
        result = np.zeros(shape, self.dtype)
        for place, part in zip(places(shape, window, stride)[first:], parts, strict=False):
            result[place] = part
        return result

    def largest(self, parts):
        """The largest of arrays, element by element (NaN if there is one), and which it is: the first among equals."""
        best, chosen = parts[0].copy(), np.zeros(parts[0].shape, np.min_scalar_type(len(parts) - 1))
        for place, part in enumerate(parts[1:], start=1):
            larger = ~(part <= best) & (best == best)  # the first NaN, too
            bits = bits_of(best)
            bits ^= (bits ^ bits_of(part)) * larger
            np.maximum(chosen, larger * chosen.dtype.type(place), out=chosen)  # places rise
        return best, chosen

    def where_equal(self, chosen, place: int, x):
        """x where chosen is place, else +0."""
        return _where(chosen == place, x)

    def choose(self, mask, x, instead):
        """x where a mask of the same rank says so, else what is given instead: a number, or an array of carriers."""
        return np.where(mask, x, np.asarray(instead, x.dtype))

    def kept(self, shape, rate: float, key: tuple[int, int]):
        """Which elements a dropout keeps: each with probability 1 - rate.

        Element i, in C order, is kept if its word is at least rate * 2**64: word i of NumPy's Philox4x64-10 (raw words,
        which NumPy promises never to change) with the key (seed, `DOMAIN_DROPOUT` * 2**32) and a counter that starts at
        stream * 2**64.

        Parameters
        ----------
        shape : tuple of int
        rate : float
            At least 0 and below 1.
        key : (int, int)
            Seed and stream, as in `quantize`.

        Returns
        -------
        bool array
        """
        seed, stream = key
        words = np.random.Philox(key=np.array([seed, DOMAIN_DROPOUT << 32], np.uint64), counter=stream << 64)
        return (words.random_raw(math.prod(shape)) >= np.uint64(math.ceil(rate * 2.0**64))).reshape(shape)

    def kept_of_tensor(self, x, count: int):
        """Which are the so many elements of largest magnitude; the first in C order among equals.

        NaN counts as infinite.

        Parameters
        ----------
        x : array
        count : int
            1 to x.size.

        Returns
        -------
        bool array
            Of x's shape.
        """
        sizes = _magnitudes(x).ravel()
        least = np.partition(sizes, sizes.size - count)[sizes.size - count]
        kept = sizes > least
        kept[np.flatnonzero(sizes == least)[: count - int(kept.sum())]] = True
        return kept.reshape(x.shape)

    def kept_of_groups(self, x, count: int, size: int, axis: int):
        """Which are the ``count`` elements of largest magnitude of each ``size`` that follow each other along an axis.

        The first among equals; a last group that is shorter keeps as many, or all of it.

        Parameters
        ----------
        x : array
        count, size : int
            1 <= count <= size.
        axis : int

        Returns
        -------
        bool array
            Of x's shape.
        """
        sizes = np.moveaxis(_magnitudes(x), axis, -1)
        length = sizes.shape[-1]
        padding = [(0, 0)] * (x.ndim - 1) + [(0, -length % size)]
        groups = np.pad(sizes, padding, constant_values=-1).reshape(*sizes.shape[:-1], -1, size)
        ranks = np.argsort(np.argsort(-groups, axis=-1, kind="stable"), axis=-1)
        kept = (ranks < count).reshape(*sizes.shape[:-1], -1)[..., :length]
        return np.ascontiguousarray(np.moveaxis(kept, -1, axis))

    def prune(self, x, kept, sparsity):
        """x where it is kept, as a sparsity says, else +0."""
        return self.choose(kept, x, 0.0)

    def positive_part(self, x):
        """max(x, 0), and +0 for -0 and for NaN's absence of sign: NaN stays NaN."""
        return np.maximum(x, 0) + 0  # the sum makes +0 of a -0

    def sign(self, x):
        """-1, +0 or 1 for what is below 0, 0, or above; NaN stays NaN."""
        return np.sign(x) + 0  # the sum makes +0 of a -0

    def where_positive(self, condition, x):
        """x where the condition's element is above 0, else +0."""
        return _where(condition > 0, x)

    def constant(self, value: float):
        """A number rounded to the carrier, to nearest even."""
        with np.errstate(over="ignore", under="ignore"):
            return self.dtype.type(value)

    def divide(self, x, divisor: float):
        """x / divisor in binary64; x itself if the divisor is 1."""
        return x if divisor == 1.0 else self.double(x) / divisor

    def all_finite(self, x) -> bool:
        """Whether no element is infinite or NaN."""
        return bool(np.isfinite(x).all())

    def clamp(self, x, limit: float):
        """x with what lies beyond -limit or limit replaced by that, rounded to the carrier; NaN stays NaN."""
        limit = self.constant(limit)
        return np.clip(x, -limit, limit)

    def argmax(self, x):
        """Per row, the index of the largest element; the first among equals."""
        return np.argmax(x, axis=1)

    def take(self, x, rows):
        """The given rows of an array."""
        return x[rows]
