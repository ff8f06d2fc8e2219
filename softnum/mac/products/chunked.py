"""The engines of units that sum chunks in another unit."""

from __future__ import annotations

import numpy as np

from softnum.arrays.conversion import decode, encode
from softnum.formats.facts import fits
from softnum.formats.modes import Flags
from softnum.formats.names import format
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.family import family_of, register
from softnum.ops.arithmetic import add

__all__ = []


class _Outer:
    """The addition of a chunk's sum to the outer sum, of codes."""

    def __init__(self, unit: ChunkedDotUnit) -> None:
        self.fmt, self.of_sums = unit.accumulator, unit.inner.result
        self.options = {"out_fmt": self.fmt, "rounding": unit.rounding, "overflow": unit.overflow}
        self.wraps = unit.overflow == "wrap"

    def __call__(self, outer, sums, tally=None):
        """outer + sums, rounded; uint64 codes, as both are. tally: the row of counts that the additions add to."""
        operands = (x.astype(f.storage_dtype) for x, f in ((outer, self.fmt), (sums, self.of_sums)))
        formats = (self.fmt, self.of_sums)
        if tally is None:
            return add(*operands, formats, **self.options).astype(np.uint64)
        codes, flags = add(*operands, formats, return_flags=True, **self.options)
        self._count(tally, outer, sums, codes, flags)
        return codes.astype(np.uint64)

    def _count(self, tally, outer, sums, codes, flags) -> None:
        """As sn_tell in csrc/softnum/units/tally.h."""
        infinite = np.isinf(decode(outer.astype(self.fmt.storage_dtype), self.fmt))
        infinite |= np.isinf(decode(sums.astype(self.of_sums.storage_dtype), self.of_sums))
        beyond = infinite | (flags & int(Flags.OVERFLOW) != 0)
        saturated = beyond & np.isfinite(decode(codes, self.fmt)) & (not self.wraps)
        raised = (Flags.INEXACT, Flags.UNDERFLOW, Flags.OVERFLOW)
        counts = [np.count_nonzero(flags & int(flag)) for flag in raised]
        tally += np.array(
            [codes.size, *counts, np.count_nonzero(saturated), np.count_nonzero(flags & int(Flags.INVALID))], np.uint64
        )


class _Definition:
    """On codes."""

    def __init__(self, unit: ChunkedDotUnit) -> None:
        self.chunk, self.outer = unit.chunk, _Outer(unit)
        self.inner = family_of(unit.inner).definition(unit.inner)
        zero = encode(np.zeros(1), unit.accumulator)
        self.zero = np.uint64(zero[0])

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None) -> int:
        rows, columns = slice(m0 - first[0], m1 - first[0]), slice(n0 - first[1], n1 - first[1])
        total = np.full(out[rows, columns].shape, self.zero) if c is None else c[rows, columns]
        lost, sums = 0, np.empty_like(out)
        of_inner = None if tallies is None else np.zeros_like(tallies[1:])
        for part in _parts(a.shape[1], self.chunk):
            products = np.ascontiguousarray(a[:, part]), np.ascontiguousarray(b[part])
            lost |= self.inner.run(
                *products, None, sums, None, keys, batch, m0, m1, n0, n1, first=first, tallies=of_inner
            )
            total = self.outer(total, sums[rows, columns], None if tallies is None else tallies[0])
        if tallies is not None:
            tallies[1:] += of_inner
        out[rows, columns] = total
        return lost << 1

    def run_each(self, a, b, c, out, words) -> int:
        total = np.full(out.shape, self.zero) if c is None else c
        lost, sums = 0, np.empty_like(out)
        for part in _parts(a.shape[1], self.chunk):
            products = np.ascontiguousarray(a[:, part]), np.ascontiguousarray(b[:, part])
            lost |= self.inner.run_each(*products, None, sums, None)
            total = self.outer(total, sums)
        out[:] = total
        return lost << 1


class _Fast:
    """On carriers, by the fast engine of the inner unit."""

    def __init__(self, unit: ChunkedDotUnit, inner) -> None:
        self.chunk, self.inner, self.wide = unit.chunk, inner, inner.wide
        self.converts = getattr(inner, "converts", False)
        self.codes, self.fmt, self.of_sums = _Outer(unit), unit.accumulator, unit.inner.result
        own = "binary64" if self.wide else "binary32"
        plain = unit.rounding == "nearest_even" and unit.overflow in (None, "infinity")
        self.in_hardware = plain and self.fmt == format(own)

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)) -> int:
        rows, columns = slice(m0 - first[0], m1 - first[0]), slice(n0 - first[1], n1 - first[1])
        total = np.zeros(out[rows, columns].shape, out.dtype) if c is None else c[rows, columns].astype(out.dtype)
        lost, sums = 0, np.empty_like(out)
        for part in _parts(a.shape[1], self.chunk):
            products = (a[:, part], b[part]) if self.converts else (np.ascontiguousarray(a[:, part]), b[part])
            lost |= self.inner.run(*products, None, sums, keys, batch, m0, m1, n0, n1, first=first) or 0
            total = self._add(total, sums[rows, columns])
        out[rows, columns] = total
        return lost << 1

    def _add(self, total, sums):
        if not self.in_hardware:
            codes = (encode(x, f).astype(np.uint64) for x, f in ((total, self.fmt), (sums, self.of_sums)))
            return decode(self.codes(*codes).astype(self.fmt.storage_dtype), self.fmt, total.dtype)
        with np.errstate(all="ignore"):
            total = total + sums
        lost = np.isnan(total)
        if lost.any():
            total[lost] = np.nan  # of one sign
        return total


def _parts(k: int, chunk: int):
    return [slice(first, first + chunk) for first in range(0, k, chunk)]


def _fast(unit: ChunkedDotUnit):
    speed_up = family_of(unit.inner).fast
    inner = None if speed_up is None else speed_up(unit.inner)
    carrier = np.float64 if inner is not None and inner.wide else np.float32
    fitting = inner is not None and all(fits(fmt, carrier) for fmt in (unit.accumulator, unit.inner.result))
    return _Fast(unit, inner) if fitting else None


register(ChunkedDotUnit, definition=_Definition, fast=_fast)
