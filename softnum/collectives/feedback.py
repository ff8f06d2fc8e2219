"""Sums of compressed gradients: each worker's memory of what it has not sent, and what all take for the average."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from softnum.arrays.conversion import decode, encode, quantize
from softnum.arrays.streams import Stream
from softnum.collectives.collective import Collective
from softnum.collectives.compression import Compression, LowRank
from softnum.formats.facts import fits
from softnum.mac.products.matrices import matmul
from softnum.ops.arithmetic import add, subtract
from softnum.ops.values import carried, carry

__all__ = ["Feedback", "check_compressed", "orthonormal"]


def check_compressed(c: Collective, compression: Compression) -> None:
    """Raise ValueError unless a collective sums what a compression sends, as it is.

    >>> import softnum as sn
    >>> from softnum.collectives.compression import compression
    >>> check_compressed(sn.collective("one_shot", 4), compression("sign"))
    """
    if compression.gathered and c.name != "one_shot":
        raise ValueError(
            f"{compression} has messages that are not added on the way: every worker is sent all of them and adds "
            f"them up, which is the collective one_shot; got {c.name}"
        )
    for what, fmt in (("format", c.format), ("wire", c.wire)):
        if fmt.element is not fmt or not fmt.contains(compression.values):
            raise ValueError(
                f"{compression} sends values of {compression.values}, which the collective's {what}, {fmt}, would "
                f"round again; state values={str(fmt)!r}, or a wider {what}"
            )


class Feedback:
    """What workers keep from one iteration to the next, of the parameters that are updated together.

    In each iteration worker w has a gradient g of a parameter and takes p = R(g + e), R to the memory's format and e
    its memory (without one p = g). Of p it sends what the compression says; the collective makes the average of what
    was sent, and the new memory is R(p - sent), or of "low_rank" R(p - average).

    If a p is not finite anywhere, memories stay as they were, and the result is the average of all p, so that an
    overflow shows as it does without compression.

    Parameters
    ----------
    c : Collective
    compression : Compression
    shapes : sequence of tuple of int
        Of the parameters.
    room : callable, optional
        Makes an array of a shape and a type, which is not initialised; default `numpy.empty`.

    Attributes
    ----------
    memories : array (workers, elements) or None
        Of all parameters one after the other.
    factors : dict
        Number of a parameter -> its Q, of "low_rank".

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum.collectives.compression import compression
    >>> c = sn.collective("one_shot", 2, average="reciprocal_before")
    >>> f = Feedback(c, compression("top_k(share=0.5)"), [(2,)])
    >>> g = np.float32([[3, 2], [3, -1]])
    >>> [f.averages([0], g.copy())[0].tolist() for _ in range(3)], f.memories.tolist()
    ([[3.0, 0.0], [1.5, 2.0], [4.5, 0.0]], [[0.0, 2.0], [0.0, -3.0]])
    """

    def __init__(
        self, c: Collective, compression: Compression, shapes: Sequence[tuple[int, ...]], room: Callable = np.empty
    ) -> None:  # fmt: skip
        check_compressed(c, compression)
        self.c, self.compression, self.shapes, self._room = c, compression, list(shapes), room
        sizes = [math.prod(shape) for shape in shapes]
        edges = np.cumsum([0, *sizes]).tolist()
        self._places = [slice(*edge) for edge in pairwise(edges)]
        self.memories = None
        if compression.memory is not None:
            narrow = fits(compression.memory, "float32") and c.arithmetic.dtype == np.float32
            self.memories = room((c.ranks, edges[-1]), np.dtype(np.float32 if narrow else np.float64))
            self.memories[:] = 0
        self.factors: dict[int, np.ndarray] = {}
        if isinstance(compression, LowRank):
            for index, shape in enumerate(shapes):
                if (matrix := compression.factored(shape)) is not None:
                    self.factors[index] = _start(compression, index, matrix[1])

    def averages(self, indices: Sequence[int], rows: np.ndarray, key=None) -> dict[int, np.ndarray]:
        """The averages of some parameters' gradients, and the new memories.

        Parameters
        ----------
        indices : sequence of int
            Which parameters.
        rows : array (workers, elements)
            Their gradients side by side in this order: values of the collective's format. They are overwritten.
        key
            Of a stochastic collective.

        Returns
        -------
        dict
            Number of a parameter -> array of its shape, values of the collective's format.
        """
        with np.errstate(all="ignore"):
            p, finite = self._with_memory(indices, rows)
        keys = (None,) * 3 if not self.c.stochastic else Stream(key).spawn(3)
        if not finite:
            put = [quantize(row, self.c.format) for row in p]
            return self._parted(indices, self.c.all_reduce(put, key=keys[0])[0])
        if isinstance(self.compression, LowRank):
            return self._low_rank(indices, p, rows, keys)
        for at, index, _ in self._cut(indices):
            for row, own in zip(rows, p, strict=True):
                row[at] = self.compression.sent(own[at].reshape(self.shapes[index]).astype(np.float64)).reshape(-1)
        self._keep(indices, p, rows)
        return self._parted(indices, self.c.all_reduce(rows, key=keys[0])[0])

    # -- memories ----------------------------------------------------------------------------------------------------
    def _cut(self, indices):
        """(place in the rows, parameter, place in the memories) of each."""
        at = 0
        for index in indices:
            size = self._places[index].stop - self._places[index].start
            yield slice(at, at + size), index, self._places[index]
            at += size

    def _parted(self, indices, flat: np.ndarray) -> dict[int, np.ndarray]:
        return {index: flat[at].reshape(self.shapes[index]) for at, index, _ in self._cut(indices)}

    def _with_memory(self, indices, rows: np.ndarray) -> tuple[np.ndarray, bool]:
        """Gradients and memories added, and whether all are finite."""
        if self.memories is None:
            p = self._room(rows.shape, rows.dtype)
            p[:] = rows
        else:
            p = self._room(rows.shape, self.memories.dtype)
            fmt = self.compression.memory
            for at, _, place in self._cut(indices):
                for worker, row in enumerate(rows):
                    p[worker, at] = _applied("add", row[at], self.memories[worker, place], (self.c.format, fmt), fmt)
        return p, all(bool(np.isfinite(row).all()) for row in p)

    def _keep(self, indices, p: np.ndarray, taken: np.ndarray) -> None:
        """The new memories: p without what was taken of it, a row for each worker."""
        if self.memories is None:
            return
        fmt = self.compression.memory
        for at, _, place in self._cut(indices):
            for worker, (row, own) in enumerate(zip(p, taken, strict=True)):
                self.memories[worker, place] = _applied("subtract", row[at], own[at], (fmt, self.c.format), fmt)

    # -- low rank ----------------------------------------------------------------------------------------------------
    def _low_rank(self, indices, p: np.ndarray, rows: np.ndarray, keys) -> dict[int, np.ndarray]:
        """PowerSGD: three all-reduces, of what is sent whole, of the factors P, and of the factors Q."""
        c, compression = self.c, self.compression
        average = np.empty(p.shape[1], c.arithmetic.dtype)
        cut = [(at, index) for at, index, _ in self._cut(indices)]
        whole = [at for at, index in cut if index not in self.factors]
        if whole:
            for row, own in zip(rows, p, strict=True):
                for at in whole:
                    row[at] = self._sendable(own[at])
            sums, done = self._summed([np.concatenate([row[at] for at in whole]) for row in rows], keys[0]), 0
            for at in whole:
                size = at.stop - at.start
                average[at] = sums[done : done + size]
                done += size
        matrices = {
            index: [own[at].reshape(compression.factored(self.shapes[index])) for own in p]
            for at, index in cut if index in self.factors
        }  # fmt: skip
        thin = {index: [self._product(m, self.factors[index]) for m in each] for index, each in matrices.items()}
        basis = {index: self._sendable(orthonormal(x)) for index, x in self._factors(thin, keys[1]).items()}
        thin = {index: [self._product(m.T, basis[index]) for m in each] for index, each in matrices.items()}
        self.factors.update(self._factors(thin, keys[2]))
        for at, index in cut:
            if index in matrices:
                average[at] = quantize(self._product(basis[index], self.factors[index].T), c.format).reshape(-1)
                rows[:, at] = average[at]
        self._keep(indices, p, rows)
        return self._parted(indices, average)

    def _summed(self, rows, key) -> np.ndarray:
        dtype = self.c.arithmetic.dtype
        return self.c.all_reduce([row.astype(dtype, copy=False) for row in rows], key=key)[0]

    def _factors(self, of_workers: dict[int, list], key) -> dict[int, np.ndarray]:
        """The averages of all parameters' factors, which are summed together."""
        if not of_workers:
            return {}
        sent = [
            np.concatenate([self._sendable(each[worker]).reshape(-1) for each in of_workers.values()])
            for worker in range(self.c.ranks)
        ]
        sums, found, at = self._summed(sent, key), {}, 0
        for index, each in of_workers.items():
            found[index] = sums[at : at + each[0].size].reshape(each[0].shape).copy()
            at += each[0].size
        return found

    def _sendable(self, x) -> np.ndarray:
        return quantize(x, self.compression.values)

    def _product(self, a, b) -> np.ndarray:
        unit = self.compression.unit
        a, b = (quantize(np.ascontiguousarray(x), fmt) for x, fmt in zip((a, b), unit.operand, strict=True))
        return np.asarray(matmul(a, b, unit))


def _start(compression: LowRank, index: int, columns: int) -> np.ndarray:
    """The first Q of a parameter."""
    words = Stream(compression.seed, index).words((columns, compression.rank))
    return quantize((words >> np.uint32(8)).astype(np.float64) * 2.0**-23 - 1.0, compression.values)


def orthonormal(x: np.ndarray) -> np.ndarray:
    """The columns of a matrix made orthonormal from the first on (modified Gram-Schmidt), in binary64.

    Each operation on elements is one of binary64; products that are summed are too, their sums are exact and rounded
    once. A column of which nothing is left becomes zeros.

    Parameters
    ----------
    x : array (rows, columns)

    Returns
    -------
    float64 array (rows, columns)

    Examples
    --------
    >>> orthonormal(np.float32([[3, 1], [4, 0]])).round(6)
    array([[ 0.6,  0.8],
           [ 0.8, -0.6]])
    """
    q = np.array(x, np.float64)
    for column in range(q.shape[1]):
        own = q[:, column]
        for before in range(column):
            own -= math.fsum((q[:, before] * own).tolist()) * q[:, before]
        length = math.sqrt(math.fsum((own * own).tolist()))
        own[:] = own / length if length else 0.0
    return q


def _applied(name: str, x: np.ndarray, y: np.ndarray, formats: tuple, out) -> np.ndarray:
    """x + y or x - y, rounded once."""
    lane = carried(name, formats, out, "nearest_even", None, 32) if x.dtype == y.dtype == np.float32 else None
    if lane is not None:
        found = carry(lane, (np.ascontiguousarray(x), np.ascontiguousarray(y)), None)
        if found is not None:
            return found
    codes = {"add": add, "subtract": subtract}[name](encode(x, formats[0]), encode(y, formats[1]), formats, out_fmt=out)
    return decode(codes, out)
