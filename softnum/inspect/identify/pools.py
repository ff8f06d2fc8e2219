"""Rows that are asked of a box: of each kind that something in a unit shows by, the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.inspect.identify.blocks import in_blocks, is_block_pair, plain_like

__all__ = ["KINDS", "Rows", "draw", "last_places", "pools"]


_APART = 3  # terms that are put into blocks of their own


@dataclass(frozen=True)
class Rows:
    """Rows of a, (M, K), that share the columns b, (K, N), with C, (M, N), or None."""

    kind: str
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None


def _reach(fmt) -> tuple[int, int]:
    """Exponents of the smallest and the largest power of two."""
    last, top = fmt.span
    return last, top - 1


def _numbers(fmt, rng, shape, low: int, high: int, bits: int | None = None) -> np.ndarray:
    """Numbers of a format, of exponents between two and random bits, or so many of them."""
    last, top = _reach(fmt)
    low, high = min(max(low, last), top), max(min(high, top), last)
    return _at(fmt, rng, rng.integers(low, max(low, high) + 1, shape), bits)


def _at(fmt, rng, exponents, bits: int | None) -> np.ndarray:
    """Numbers of these exponents."""
    shape = np.shape(exponents)
    fraction = rng.random(shape)
    if bits is not None:
        fraction = np.floor(fraction * 2**bits) / 2**bits
    signs = rng.choice([-1.0, 1.0], shape) if fmt.signed else 1.0
    return _into(fmt, signs * (1 + fraction) * 2.0**exponents)


def _into(fmt, x) -> np.ndarray:
    return quantize(np.asarray(x, np.float64), fmt, rounding="toward_zero", overflow="saturate").astype(np.float64)


def _specials(fmt) -> np.ndarray:
    numbers = [0.0, float(fmt.smallest_subnormal), float(fmt.smallest_normal), float(fmt.max), 1.0]
    numbers += [np.inf] if fmt.infinities else []
    numbers += [-x for x in numbers if x or fmt.negative_zero] if fmt.signed else []
    numbers = [float(x) for x in numbers] + ([np.nan] if fmt.has_nan else [])
    if fmt.signed:
        numbers.append(float(fmt.min))
    return np.array(numbers)


class _Formats:
    """Of a box: the formats of a, b, C and the result, and where sums of products and C meet."""

    def __init__(self, operand, c_format, output) -> None:
        self.a, self.b = operand
        self.c, self.out = c_format, output
        (la, ta), (lb, tb) = map(_reach, operand)
        self.products = la + lb, ta + tb
        self.sums = _reach(c_format)
        self.normal = [int(np.ceil(np.log2(float(fmt.smallest_normal)))) for fmt in (c_format, output)]


def _aligned(f: _Formats, rng, shape, low: int, high: int, bits=None) -> tuple[np.ndarray, np.ndarray]:
    """(a of shape, b of the last axis) with exponents of products between two, as near as the formats come."""
    m, k = shape
    (la, ta), (lb, tb) = _reach(f.a), _reach(f.b)
    want = np.clip(rng.integers(low, high + 1, k), *f.products)
    eb = np.clip(want - np.clip(want // 2, la, ta), lb, tb)
    b = _at(f.b, rng, eb, bits)
    spread = rng.integers(0, max(1, high - low) + 1, (m, k)) - max(1, high - low) // 2
    ea = np.clip(np.clip(want - eb + spread, low - eb, high - eb), la, ta)
    return _at(f.a, rng, ea, bits), b


def _plain(f, rng, m, k):
    a, b = _aligned(f, rng, (m, k), -2, 3)
    return a, b, _numbers(f.c, rng, m, -3, 4)


def _wide(f, rng, m, k):
    a, b = _aligned(f, rng, (m, k), -24, 24)
    return a, b, _numbers(f.c, rng, m, -24, 24)


def _whole(f, rng, m, k):
    """All exponents that do not overflow at once."""
    low, high = max(f.products[0], f.sums[0] - 4), min(f.products[1], f.sums[1] - 6)
    a, b = _aligned(f, rng, (m, k), low, max(low, high))
    return a, b, _numbers(f.c, rng, m, f.sums[0], f.sums[1] - 6)


def _cancelling(f, rng, m, k):
    """Large terms that cancel, and small ones beside them, C among either."""
    a, b = _aligned(f, rng, (m, k), -30, -2)
    c = _numbers(f.c, rng, m, -30, 0)
    if k > 1 and (f.a.signed or f.b.signed):
        i, j = rng.choice(k, 2, replace=False)
        big = _numbers(f.a, rng, m, 0, 2)
        b[i] = b[j] = 1.0
        a[:, i], a[:, j] = big, -big if f.a.signed else big
        b[j] = b[j] if f.a.signed else -1.0
    with_c = rng.random(m) < 0.3
    place = rng.integers(0, max(k, 1))
    b[place] = 1.0
    c = np.where(with_c, _into(f.c, -a[:, place]), c)
    return a, b, c


def _ties(f, rng, m, k):
    """Few bits, far apart, so that sums lie halfway between numbers, or a little beside."""
    a, b = _aligned(f, rng, (m, k), -28, 2, bits=1)
    keep = rng.random((m, k)) < 3.0 / max(k, 1)
    return np.where(keep, a, 0.0), b, _numbers(f.c, rng, m, -26, 2, 2) * (rng.random(m) < 0.6)


def _halves(f, rng, m, k):
    """C, and a product that is half of its last place or a fraction of it."""
    digits = f.out.precision or 8
    e = rng.integers(-2, 3, m)
    c = _into(f.c, rng.choice([-1.0, 1.0], m) * (1 + rng.integers(0, 8, m) * 2.0 ** (1 - digits)) * 2.0**e)
    a = np.zeros((m, k))
    b = np.ones(k)
    lb, tb = _reach(f.b)
    for i in range(k):
        want = -digits - int(rng.integers(-1, 3))
        eb = min(max(want // 2, lb), tb)
        b[i] = 2.0**eb
        a[:, i] = _numbers(f.a, rng, m, want - eb, want - eb, 1)
    a *= rng.random((m, k)) < 2.0 / max(k, 1)
    return a, b, c


def _tiny(f, rng, m, k):
    """Sums near the smallest numbers, with zeros, powers of two and ties among them."""
    bottom = max(int(rng.choice([f.sums[0], f.normal[0], f.normal[1]])), f.products[0])
    a, b = _aligned(f, rng, (m, k), bottom - 6, bottom + 14, bits=int(rng.choice([0, 1, 3, 12])))
    a = np.where(rng.random((m, k)) < 0.3, 0.0, a)
    low = max(f.sums[0], bottom)
    c = _numbers(f.c, rng, m, low, low + 12, int(rng.choice([0, 2, 30])))
    return a, b, np.where(rng.random(m) < 0.6, c, 0.0)


def _differences(f, rng, m, k):
    """Normal numbers whose difference is none, C among them: what is flushed shows."""
    bottom = max(int(rng.choice(f.normal)), f.products[0])
    a, b = _aligned(f, rng, (m, k), bottom, bottom + 1, bits=int(rng.choice([1, 2, 5])))
    few = rng.random((m, k)) < min(1.0, 2.0 / k)
    c = _numbers(f.c, rng, m, bottom, bottom + 1, int(rng.choice([1, 2, 5, 23])))
    return np.where(few, a, 0.0), b, np.where(rng.random(m) < 0.7, c, 0.0)


def _lowest(f, rng, m, k):
    """Operands of the lowest binades."""
    (la, _), (lb, _) = _reach(f.a), _reach(f.b)
    b = _numbers(f.b, rng, k, lb, lb + 12)
    if rng.random() < 0.5:
        b = np.where(rng.random(k) < 0.5, _numbers(f.b, rng, k, _reach(f.b)[1] - 3, _reach(f.b)[1]), b)
    a = _numbers(f.a, rng, (m, k), la, la + 12)
    return a, b, _numbers(f.c, rng, m, f.sums[0], f.sums[0] + 24) * (rng.random(m) < 0.5)


def _floors(f, rng, m, k):
    """Sums a little below a last place of C, and many small terms: whether these are kept decides the place."""
    (la, ta), (lb, tb) = _reach(f.a), _reach(f.b)
    last = f.sums[0] - int(rng.integers(0, 2))
    below = rng.integers(1, 13, m)  # bits that the first term lacks
    digits = f.a.mantissa_bits if f.a.precision is not None else 0
    small = last - int(rng.integers(1, 14)) - int(np.log2(k))
    eb = np.full(k, np.clip((small - int(rng.integers(0, 6))) // 2, lb, tb))
    eb[0] = np.clip(last // 2, lb, tb)
    a = np.zeros((m, k))
    shapes = np.array([1.0, 1.5, 2 - 2.0**-digits, 1 + 2.0**-digits])
    exponents = small + rng.integers(-2, 2, (m, 1)) - eb
    a[:] = shapes[rng.integers(0, 4, (m, k))] * 2.0 ** np.clip(exponents, la, ta)
    a *= rng.random((m, k)) < 0.9
    a[:, 0] = (1 - 2.0**-below) * 2.0 ** np.clip(last - eb[0], la, ta)
    a *= rng.choice([-1.0, 1.0], (m, 1)) if f.a.signed else 1.0
    often = 0.1
    if rng.random() < 0.6:  # a tie, and few of the smallest products there are, or some above
        often = 1 - min(0.9, 1.5 / k)
        a[:, 0] = rng.choice([0.5, 1.0, 1.5], m) * 2.0 ** np.clip(last - eb[0], la, ta)
        low = int(rng.choice([la, la + 1, la + 2, la + digits, la + digits + 1]))
        eb[1:] = np.clip(
            rng.integers(lb, lb + 3 if rng.random() < 0.5 else max(lb + 3, small - low + 1), k - 1), lb, tb
        )
        a[:, 1:] = shapes[rng.integers(0, 4, (m, k - 1))] * 2.0 ** (low + rng.integers(0, 3, (m, k - 1)))
    zero = rng.random((m, k)) < often
    zero[:, 0] = False
    b = 2.0**eb
    if k > 1 and rng.random() < 0.4:  # zeros beside the largest factors
        j = int(rng.integers(1, k))
        a[:, j], b[j] = 0.0, 2.0 ** int(rng.integers(lb, tb + 1))
    c = _numbers(f.c, rng, m, f.sums[0], f.sums[0] + 3, 2) * (rng.random(m) < 0.3)
    return _into(f.a, np.where(zero, 0.0, a)), b, c


def _zeros(f, rng, m, k):
    """Zeros times large numbers beside small ones, and zeros of both signs; first a sum of -0 alone."""
    if rng.random() < 0.5:
        low = max(f.sums[0], f.products[0])
        a, b = _aligned(f, rng, (m, k), low - 2, low + 30)
        c = _numbers(f.c, rng, m, f.sums[0], f.sums[0] + 30) * (rng.random(m) < 0.7)
        large = rng.integers(0, k, max(1, k // 3))
        b[large], a[:, large] = _numbers(f.b, rng, len(large), _reach(f.b)[1] - 2, _reach(f.b)[1]), 0.0
    else:
        zero = lambda fmt, n: np.where(rng.random(n) < 0.5, -0.0 if fmt.negative_zero else 0.0, 0.0)  # noqa: E731
        a = np.where(rng.random((m, k)) < 0.85, zero(f.a, (m, k)), _numbers(f.a, rng, (m, k), -1, 1, 0))
        b = np.where(rng.random(k) < 0.5, zero(f.b, k), _numbers(f.b, rng, k, -1, 1, 0))
        c = zero(f.c, m)
    if m > 1:
        a[0], c[0] = np.copysign(0.0, -np.copysign(1.0, b)), -0.0
    return a, b, c


def _overflowing(f, rng, m, k):
    """Sums about the largest number, where they end or come back."""
    high = min(f.products[1], f.sums[1] + 1)
    a, b = _aligned(f, rng, (m, k), high - 4, high)
    c = _numbers(f.c, rng, m, f.sums[1] - 1, f.sums[1])
    c = np.where(rng.random(m) < 0.3, _into(f.c, np.where(rng.random(m) < 0.5, float(f.c.max), float(f.c.min))), c)
    thin = rng.random() < 0.4
    a = np.where(rng.random((m, k)) < (0.4 if thin else 0.0), 0.0, a)
    if rng.random() < 0.3:  # about half of the last place of the largest number
        digits = f.c.precision or 8
        a, b = _aligned(f, rng, (m, k), f.sums[1] - digits - 2, f.sums[1] - digits + 1, bits=1)
        c = np.where(rng.random(m) < 0.5, float(f.c.max), -float(f.c.max) if f.c.signed else float(f.c.max))
    return a, b, c


def _special(f, rng, m, k):
    """Infinities, NaN and zeros sprinkled among numbers."""
    a, b, c = _plain(f, rng, m, k)
    for x, fmt, often in ((a, f.a, 1.5 / k), (b, f.b, 0.5 / k), (c, f.c, 0.4)):
        numbers = _specials(fmt)
        at = rng.random(x.shape) < often
        x[at] = rng.choice(numbers, int(at.sum()))
    return a, b, c


#: Of rows, by name.
KINDS = {
    "plain": _plain, "wide": _wide, "ties": _ties, "cancelling": _cancelling, "halves": _halves, "tiny": _tiny,
    "differences": _differences,
    "zeros": _zeros, "floors": _floors, "lowest": _lowest, "overflowing": _overflowing, "special": _special,
    "whole range": _whole,
}  # fmt: skip


def draw(kind: str, formats: tuple, start: str | float | None, seed, shape: tuple[int, int, int]) -> Rows:
    """Rows of a kind; formats are (operand, C's, result's), the shape (M, K, N).

    start: "C" for random ones, None for none, or the number that each sum starts from.
    """
    if is_block_pair(formats[0]):
        return _in_blocks(draw(kind, _plain_formats(formats), start, seed, shape), formats[0], (*_words(seed), 17))
    m, k, n = shape
    rng = np.random.default_rng(seed)
    f = _Formats(*formats)
    a, b, c = KINDS[kind](f, rng, m, k)
    columns = [b]
    for _ in range(n - 1):
        other, b, _ = KINDS[kind](f, rng, m, k)
        columns.append(b)
        some = rng.random(m) < 0.5
        a = np.where(some[:, None], other, a)
    a, b = _zeros_of(f.a, a), _zeros_of(f.b, np.stack(columns, 1))
    if start != "C":
        return Rows(kind, a, b, None if start is None else np.full((m, n), start))
    c = _zeros_of(f.c, c)
    c = np.repeat(c[:, None], n, 1) if n == 1 else np.stack([rng.permutation(c) for _ in range(n)], 1)
    return Rows(kind, a, b, c)


def _plain_formats(formats: tuple) -> tuple:
    return tuple(map(plain_like, formats[0])), *formats[1:]


def _words(seed) -> tuple:
    return seed if isinstance(seed, tuple) else (seed,)


def _in_blocks(rows: Rows, operand, seed) -> Rows:
    """Rows of plain numbers as those of block formats."""
    rng = None if seed is None else np.random.default_rng(seed)
    return Rows(rows.kind, in_blocks(rows.a, operand[0], rng), in_blocks(rows.b.T, operand[1], rng).T, rows.c)


def _zeros_of(fmt, x) -> np.ndarray:
    """Numbers whose zeros a format has."""
    return x if fmt.negative_zero else np.where(x == 0, 0.0, x)


def last_places(formats: tuple, begin: str | float | None) -> Iterator[Rows]:
    """Sums whose last place hangs on one small power of two, for each that there is, alone and beside zeros of any
    size: what lies below a least M, or below that of a zero, is lost."""
    if is_block_pair(formats[0]):
        size = formats[0][0].size(1)
        for rows in last_places(_plain_formats(formats), begin):
            if rows.a.shape[1] <= _APART:
                spread = [np.zeros((1, size * rows.a.shape[1])) for _ in "ab"]
                spread[0][:, ::size], spread[1][:, ::size] = rows.a, rows.b.T
                yield _in_blocks(Rows(rows.kind, spread[0], spread[1].T, rows.c), formats[0], None)
        return
    f, takes_c = _Formats(*formats), begin == "C"
    number = None if begin in ("C", None) else np.full((1, 1), begin)
    if f.c.precision is None or f.a.precision is None or f.b.precision is None:
        return
    (la, ta), (lb, tb) = _reach(f.a), _reach(f.b)
    lasts = {f.sums[0], _reach(f.out)[0]}

    def factors(e: int) -> tuple[int, int] | None:
        eb = min(max(e // 2, lb), tb)
        return (e - eb, eb) if la <= e - eb <= ta else None

    def ones(top: int, last: int) -> list[tuple[float, float]] | None:
        """Products whose sum is 2^top - 2^last."""
        terms = []
        while top > last:
            bits = min(top - last, f.a.precision)
            found = factors(top - bits)
            if found is None or found[0] + bits > ta:
                return None
            terms.append(((2.0**bits - 1) * 2.0 ** found[0], 2.0 ** found[1]))
            top -= bits
        return terms

    def row(terms, start=0.0) -> Rows:
        a, b = (np.array(x) for x in zip(*terms, strict=True))
        return Rows("last places", a[None], b[:, None], np.full((1, 1), start) if takes_c else number)

    kept: list[list[tuple[float, float]]] = []
    for last in sorted(lasts):
        for small in range(last - 1, max(f.products[0], last - 64) - 1, -1):
            end = factors(small)
            half = factors(last - 1)
            full = ones(last, small)
            for terms in ([(2.0 ** half[0], 2.0 ** half[1])] if half else None, full):
                if terms and end:
                    kept.append([*terms, (2.0 ** end[0], 2.0 ** end[1])])
    for terms in kept:
        if len(terms) <= 4:
            yield row(terms)
    some = [terms for terms in kept if len(terms) <= 3][::5][:6]
    for y in range(lb, tb + 1, max(1, (tb - lb) // 48)):
        for terms in some:
            yield row([*terms, (0.0, 2.0**y)])
        if takes_c:
            yield row([(0.0, 2.0**y)], 2.0 ** f.sums[0])
            yield row([(0.0, 2.0**y)], float(f.c.smallest_normal) * (2 - 2.0**-f.c.mantissa_bits))
    for x in range(la, ta + 1, max(1, (ta - la) // 16)):
        if takes_c:
            yield row([(2.0**x, 0.0)], 2.0 ** f.sums[0])


def pools(formats: tuple, start: str | float | None, lengths, seed: int, rows: int = 12) -> Iterator[Rows]:
    """Rows of all kinds and lengths; where there is C, half of those of short sums come without it too."""
    for number, kind in enumerate(KINDS):
        for k in lengths:
            yield draw(kind, formats, start, (seed, number, k), (rows, k, 1))
    if start == "C":
        for number, kind in enumerate(KINDS):
            for k in lengths[::2]:
                yield draw(kind, formats, None, (seed, number, k, 1), (rows // 2, k, 1))
