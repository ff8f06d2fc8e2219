"""The black box: a function that is asked for products of matrices, counted, and kept within a bound."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.conversion import decode
from softnum.formats.facts import fits
from softnum.inspect.identify.blocks import array_of, is_block_pair, with_scales

__all__ = ["REFUSED", "Box", "Exhausted", "bits_of", "in_halves", "takes_start"]

#: what stands for the result of an input that is refused, among the bits of results: no NaN that `bits_of` makes
REFUSED = np.uint64(0xFFF0DEADFFFFFFFF)
_REFUSALS = (ValueError, TypeError, ArithmeticError)


class Exhausted(Exception):
    """More dot products were wanted than the bound allows."""


def bits_of(x) -> np.ndarray:
    """Numbers so that equal ones are equal, -0 and +0 differ and NaNs do not."""
    x = np.asarray(x, np.float64)
    return np.where(np.isnan(x), np.nan, x).view(np.uint64)


def in_halves(of: Callable, a, b, c) -> np.ndarray:
    """A product that was refused, by halves; `REFUSED` where that is a single one."""
    part = lambda x, i: None if x is None else x[i]  # noqa: E731
    if a.shape[0] > 1:
        i = a.shape[0] // 2
        return np.concatenate([of(a[s], b, part(c, s)) for s in (slice(i), slice(i, None))])
    if b.shape[1] > 1:
        i = b.shape[1] // 2
        sides = (slice(i), slice(i, None))
        return np.concatenate([of(a, b[:, s], part(c, (slice(None), s))) for s in sides], axis=1)
    return np.full((1, 1), REFUSED)


def takes_start(f: Callable) -> bool:
    """Whether a function can be called with a third argument."""
    try:
        inspect.signature(f).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say
        return True
    return True


class Box:
    """A function of a, b and maybe c, what it was asked, and how often.

    ``calls``, ``products``: how many there were so far. ``takes_c``: whether it has a third argument. ``blocks``: the
    block formats whose BlockArrays it takes; a and b are rows as `softnum.inspect.identify.blocks` has them then.
    """

    def __init__(self, f: Callable, most: int) -> None:
        self.f, self.most = f, most
        self.calls = self.products = 0
        self.takes_c = takes_start(f)
        self.dtypes = [np.float64] * 3
        self.blocks: tuple | None = None

    def carries(self, operand, *c_format) -> None:
        """From now on a, b and C come in float32, where their formats fit in that; or a and b in blocks."""
        self.blocks = operand if is_block_pair(operand) else None
        dtype = lambda fmt: np.float32 if fits(fmt, np.float32) else np.float64  # noqa: E731
        if self.blocks is None:
            self.dtypes[:2] = map(dtype, operand)
        self.dtypes[2:] = [*map(dtype, c_format), *self.dtypes[2 + len(c_format) :]]

    def call(self, a, b, c=None) -> np.ndarray:
        """One call, (M, K) and (K, N); its result as float64."""
        shape = a.shape[0], b.shape[1]
        if self.products + shape[0] * shape[1] > self.most:
            raise Exhausted
        c = c if self.takes_c else None
        self.calls += 1
        self.products += shape[0] * shape[1]
        with np.errstate(all="ignore"):
            c = None if c is None else c.astype(self.dtypes[2])
            if self.blocks is None:
                a, b = a.astype(self.dtypes[0]), b.astype(self.dtypes[1])
            else:
                a, b = array_of(a, self.blocks[0], -1), array_of(b, self.blocks[1], -2)
            got = self.f(a, b) if c is None else self.f(a, b, c)
        got = np.asarray(decode(got.codes, got.format) if isinstance(got, Array) else got)
        if got.shape != shape:
            raise BadBox(f"identify: the box gives an array of shape {got.shape} for {a.shape} and {b.shape}")
        if got.dtype.kind not in "fiu":
            raise BadBox(f"identify: the box gives an array of {got.dtype}, not of numbers")
        return got.astype(np.float64)

    def block(self, a, b, c=None) -> np.ndarray:
        """The bits of results, (M, N); a block that is refused is asked by halves, and rows alone have `REFUSED`."""
        try:
            return bits_of(self.call(a, b, c))
        except _REFUSALS:
            return in_halves(self.block, a, b, c)

    def rows(self, a, b, c=None) -> np.ndarray:
        """The bits of dot products of the rows of a, (R, K), with one b, (K,), from c, (R,)."""
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        return self.block(a, b[:, None], None if c is None else np.asarray(c, np.float64)[:, None])[:, 0]

    def each(self, a, b, c=None) -> np.ndarray:
        """The bits of dot products of rows of a and of b, (R, K) both; rows that share b are asked together."""
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        c = None if c is None else np.asarray(c, np.float64)
        out = np.empty(len(a), np.uint64)
        groups: dict[bytes, list[int]] = {}
        for i, row in enumerate(b):
            groups.setdefault(row.tobytes(), []).append(i)
        for at in groups.values():
            out[at] = self.rows(a[at], b[at[0]], None if c is None else c[at])
        return out

    def packed(self, a, b) -> tuple:
        """Two lists of numbers as rows: of blocks with scales of 1."""
        if self.blocks is None:
            return tuple(a), tuple(b)
        return tuple(tuple(with_scales(x, fmt).tolist()) for x, fmt in zip((a, b), self.blocks, strict=True))

    def one(self, a, b, c=None) -> float | None:
        """One dot product of two lists of numbers; None where it is refused. Of blocks: their elements, scales of 1."""
        a, b = self.packed(a, b)
        got = self.rows([a], b, None if c is None else [c])
        return None if got[0] == REFUSED else float(got.view(np.float64)[0])


class BadBox(Exception):
    """What a box gives is no product of matrices."""
