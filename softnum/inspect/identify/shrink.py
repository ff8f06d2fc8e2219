"""A simpler input on which a box and a unit still differ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.inspect.identify.blocks import ends, formats_of, is_block_pair, parts
from softnum.inspect.identify.box import Box
from softnum.inspect.identify.fit import Row
from softnum.mac.mad import Unit

__all__ = ["shrunk"]

_MOST = 2000  # inputs that are tried


def _simpler(x: float) -> Iterator[float]:
    """Simpler numbers than one, the simplest first."""
    if x == 0 or not np.isfinite(x):
        return
    significand, exponent = np.frexp(x)
    for y in (1.0, -1.0, float(np.copysign(2.0 ** (exponent - 1), x)), abs(x)):
        if y != x:
            yield y
    for bits in (2, 4, 8, 16):
        y = float(np.ldexp(np.trunc(significand * 2.0**bits), int(exponent) - bits))
        if y not in (x, 0.0):
            yield y


def _without(row: Row, operand) -> Iterator[Row]:
    """The row with a product fewer, or zero, or without C."""
    a, b = row.a, row.b
    if row.c:  # -0 is where sums start that begin with a product
        yield Row(row.kind, a, b, 0.0, 0)
    if is_block_pair(operand):
        yield from _without_blocks(row, operand)
        return
    for half in (len(a) // 2, len(a) - 1):
        if 0 < half < len(a):
            yield Row(row.kind, a[:half], b[:half], row.c, 0)
            yield Row(row.kind, a[-half:], b[-half:], row.c, 0)
    for k in range(len(a)):
        if len(a) > 1:
            yield Row(row.kind, a[:k] + a[k + 1 :], b[:k] + b[k + 1 :], row.c, 0)
        if (a[k] or b[k] != 1.0) and (a[k], b[k]) != (0.0, 0.0):
            yield Row(row.kind, a[:k] + (0.0,) + a[k + 1 :], b[:k] + (0.0,) + b[k + 1 :], row.c, 0)


def _without_blocks(row: Row, operand) -> Iterator[Row]:
    """The row with fewer products at its end, a block fewer at its beginning, or a product that is zero."""
    sides = [parts(np.array(x), fmt) for x, fmt in zip((row.a, row.b), operand, strict=True)]
    k, size = len(sides[0][0]), operand[0].size(len(sides[0][0]))

    def cut(first: int, last: int) -> Row:
        made = [
            np.concatenate([x[first:last], scales[first // size : -(-last // size)], [] if whole is None else whole])
            for x, scales, whole in sides
        ]
        return Row(row.kind, *(tuple(x.tolist()) for x in made), row.c, 0)

    for last in (k // 2, k - 1):
        if 0 < last < k:
            yield cut(0, last)
    if k > size:
        yield cut(size, k)
    for i in range(k):
        if row.a[i] or row.b[i]:
            a, b = (x[:i] + (0.0,) + x[i + 1 :] for x in (row.a, row.b))
            yield Row(row.kind, a, b, row.c, 0)


def _rounder(row: Row, operand, c_format) -> Iterator[Row]:
    """The row with a simpler number."""
    fits = lambda x, fmt: float(quantize(np.array([x]), fmt, rounding="toward_zero", overflow=ends(fmt))[0]) == x  # noqa: E731
    of_a, of_b = (formats_of(fmt, len(row.a)) for fmt in operand)
    for k in range(len(row.a)):
        for y in _simpler(row.a[k]):
            if fits(y, of_a[k]):
                yield Row(row.kind, row.a[:k] + (y,) + row.a[k + 1 :], row.b, row.c, 0)
        for y in _simpler(row.b[k]):
            if fits(y, of_b[k]):
                yield Row(row.kind, row.a, row.b[:k] + (y,) + row.b[k + 1 :], row.c, 0)
    for y in _simpler(row.c) if row.c else ():
        if fits(y, c_format):
            yield Row(row.kind, row.a, row.b, y, 0)


def _weight(row: Row) -> tuple:
    """What gets smaller, so that shrinking ends: terms, length, and bits of the numbers."""
    numbers = [*row.a, *row.b, row.c or 0.0]
    bits = sum(len(x.hex().split("p")[0].rstrip("0")) for x in numbers if np.isfinite(x) and x)
    return row.size[0], len(row.a), bits, sum(1 for x in numbers if x not in (0.0, 1.0)), sum(x < 0 for x in numbers)


def shrunk(row: Row, unit: Unit, box: Box, operand, c_format) -> Row:
    """The simplest row that was found by leaving out products, and simplifying numbers, one at a time."""
    tried, better = 0, True
    while better:
        better = False
        for other in [*_without(row, operand), *_rounder(row, operand, c_format)]:
            if _weight(other) >= _weight(row):
                continue
            if tried >= _MOST or box.products >= box.most:
                return row
            tried += 1
            bits = int(box.rows([other.a], other.b, None if other.c is None else [other.c])[0])
            other = Row(row.kind, other.a, other.b, other.c, bits)
            if other.predicted(unit) != bits:
                row, better = other, True
                break
    return row
