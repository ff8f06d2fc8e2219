"""Operands of rows: of each kind how they are drawn, and by that what they bring to light."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.names import format
from softnum.kernels.recording.mma import CODES, FORMATS, Instruction, encoded, size_of

STEPS = 4  # instructions of a chain
CHAINED = ("random", "wide", "cancellation", "rounding", "floor", "codes")  # kinds that there are chains of


def least_exponent_of(fmt) -> int:
    """That of a format's smallest subnormal number."""
    return fmt.emin - fmt.precision + 1


@dataclass(frozen=True)
class Draw:
    """`count` rows of `steps` instructions to draw."""

    rng: np.random.Generator
    one: Instruction
    count: int
    steps: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a and b; c has one number a row."""
        return self.count, self.steps, self.one.k

    @property
    def formats(self) -> tuple:
        return tuple(format(FORMATS[kind]) for kind in (self.one.a, self.one.b, self.one.d))

    def significands(self, shape) -> np.ndarray:
        """From 1 to 2, of either sign."""
        return self.rng.choice([-1.0, 1.0], shape) * (1 + self.rng.random(shape))

    def numbers(self, fmt, shape, low: int, high: int) -> np.ndarray:
        """Of a format, with exponents from low to high."""
        x = self.significands(shape)
        return quantize(np.ldexp(x, self.rng.integers(low, high + 1, shape)), fmt, overflow="saturate")

    def some(self, part: float) -> np.ndarray:
        """Where in a or b this part of the elements lies."""
        return self.rng.random(self.shape) < part

    def some_rows(self, part: float) -> np.ndarray:
        return self.rng.random(self.count) < part


# ---- kinds: each takes the draw and usual numbers a, b and c, and gives those of its own -----------------------------


def random(draw, a, b, c):
    """Numbers about 1."""
    return a, b, c


def wide(draw, a, b, c):
    """Exponents of all sizes whose products are finite."""
    fa, fb, fd = draw.formats
    low_a, low_b, low_d = map(least_exponent_of, draw.formats)
    a, b = draw.numbers(fa, draw.shape, low_a, fa.emax // 2), draw.numbers(fb, draw.shape, low_b, fb.emax // 2)
    return a, b, draw.numbers(fd, draw.count, max(low_d, low_a + low_b), min(fd.emax, fa.emax))


def cancellation(draw, a, b, c):
    """Half of the products are the negatives of the others, but for a few small ones; C is one's negative, or small."""
    fa, _, fd = draw.formats
    half = draw.one.k // 2
    order = draw.rng.permutation(half)
    a[..., half:], b[..., half:] = -a[..., order], b[..., order]
    where = draw.some(0.1)
    a[where] = draw.numbers(fa, where.sum(), max(least_exponent_of(fa), fa.emin - 2), -4)
    negative = draw.some_rows(0.4)
    small = draw.numbers(fd, draw.count, -20 if fd.bits > 16 else -12, 3)
    return a, b, np.where(negative, quantize(-a[:, 0, 0] * b[:, 0, 0], fd), small)


def subnormal(draw, a, b, c):
    """Subnormal operands among normal ones, and C about the smallest normal number."""
    fa, fb, fd = draw.formats
    low_a, low_b, low_d = map(least_exponent_of, draw.formats)
    where = draw.some(0.5)
    a = np.where(where, draw.numbers(fa, draw.shape, low_a, max(low_a, fa.emin)), a)
    where = draw.some(0.3)
    b = np.where(where, draw.numbers(fb, draw.shape, low_b, max(low_b, fb.emin)), b)
    return a, b, draw.numbers(fd, draw.count, low_d, fd.emin + 1)


def zeros(draw, a, b, c):
    """Zeros of both signs, some times something large; C a zero, tiny or 1."""
    fa, fb, fd = draw.formats
    a[draw.some(0.6)] = 0
    b[draw.some(0.2)] = -0.0
    large = draw.some(0.3)
    b[large] = draw.numbers(fb, large.sum(), fb.emax // 2, fb.emax)
    a[(a != 0) & draw.some(0.5)] = float(fa.smallest_normal)
    tiny = float(fd.smallest_subnormal), -float(fd.smallest_normal)
    return a, b, draw.rng.choice([0.0, -0.0, *tiny, 1.0], draw.count)


def floor(draw, a, b, c):
    """Sums about the smallest exponents that they can have."""
    fa, fb, fd = draw.formats
    low_a, low_b, low_d = map(least_exponent_of, draw.formats)
    lowest = max(low_a + low_b, low_d - 21)
    goal = draw.rng.integers(lowest, lowest + 45, draw.count)[:, None, None]
    of_a = np.clip(goal // 2 + draw.rng.integers(-2, 3, draw.shape), low_a, fa.emax)
    of_b = np.clip(goal - of_a + draw.rng.integers(-3, 1, draw.shape), low_b, fb.emax)
    a = quantize(np.ldexp(draw.significands(draw.shape), of_a), fa, overflow="saturate")
    b = quantize(np.ldexp(draw.significands(draw.shape), of_b), fb, overflow="saturate")
    a = np.where(draw.some(0.6), 0.0, a)
    c = draw.numbers(fd, draw.count, low_d, low_d + 30)
    return a, b, np.where(draw.some_rows(0.4), 0.0, c)


def zero_exponent(draw, a, b, c):
    """Zeros times something large beside small products: whether a zero counts for the largest exponent."""
    fa, fb, fd = draw.formats
    low_a, low_b, low_d = map(least_exponent_of, draw.formats)
    zero = draw.some(0.85)
    a = np.where(zero, 0.0, draw.numbers(fa, draw.shape, low_a, fa.emin + 2))
    large = draw.numbers(fb, draw.shape, fb.emin, fb.emax)
    b = np.where(a == 0, large, draw.numbers(fb, draw.shape, low_b, min(fb.emax, fb.emin + 4)))
    swapped = draw.some_rows(0.5)
    if fa == fb:
        a[swapped], b[swapped] = b[swapped], a[swapped]
    none = draw.some_rows(0.5)
    return a, b, np.where(none, 0.0, draw.numbers(fd, draw.count, low_d, low_d + 25))


def overflow(draw, a, b, c):
    """Products and C about the largest number; in some rows all products are positive."""
    fa, fb, fd = draw.formats
    high_a = min(fd.emax // 2 + 1, fa.emax)
    high_b = min(high_a, fb.emax)
    a, b = draw.numbers(fa, draw.shape, high_a - 4, high_a), draw.numbers(fb, draw.shape, high_b - 4, high_b)
    c = draw.numbers(fd, draw.count, fd.emax - 3, fd.emax)
    positive = draw.some_rows(0.4)[:, None, None]
    return np.where(positive, np.abs(a), a), np.where(positive, np.abs(b), b), c


def special(draw, a, b, c):
    """Zeros, the largest numbers, infinities and NaN: one or two of a row, and of some C."""
    fa, fb, fd = draw.formats
    for x, fmt in ((a, fa), (b, fb)):
        largest = float(fmt.max)
        found = [0.0, -0.0, largest, -largest, *[np.inf, -np.inf] * fmt.infinities, *[np.nan] * fmt.has_nan]
        where = draw.some(1.5 / draw.one.k)
        x[where] = draw.rng.choice(np.array(found), where.sum())
    where, largest = draw.some_rows(0.3), float(fd.max)
    c[where] = draw.rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, largest, -largest]), where.sum())
    return a, b, c


def rounding(draw, a, b, c):
    """A few large terms, and small ones about the last bits that are kept, of either sign."""
    fa, _, fd = draw.formats
    low = least_exponent_of(fa)
    a = np.where(draw.some(2 / draw.one.k), a, draw.numbers(fa, draw.shape, max(low, -14), max(low, -6)))
    b = np.where(draw.some(0.5), np.sign(b), b)
    return a, b, draw.numbers(fd, draw.count, -3, 12 if fd.bits > 16 else 8)


def sparse(draw, a, b, c):
    """One or two products, with exponents that may lie far apart, also from that of C."""
    fa, _, fd = draw.formats
    kept = np.zeros(draw.shape, bool)
    np.put_along_axis(kept, draw.rng.integers(draw.one.k, size=(draw.count, draw.steps, 2)), True, -1)
    a = np.where(kept, draw.numbers(fa, draw.shape, max(fa.emin, -130), min(fa.emax, 60)), 0.0)
    return a, b, draw.numbers(fd, draw.count, max(least_exponent_of(fd), -150), min(fd.emax, 60))


_NUMBERS = {
    kind.__name__: kind
    for kind in (
        random, wide, cancellation, subnormal, zeros, floor, zero_exponent, overflow, special, rounding, sparse
    )
}  # fmt: skip

#: Kinds of rows by their numbers in files: of numbers, of any codes, of sums at the least alignment exponent, and of
#: integers at the ends of their range.
KINDS = [
    "random", "wide", "cancellation", "subnormal", "zeros", "floor", "zero_exponent", "overflow", "special", "rounding",
    "codes", "sparse", "least_exponent", "least_exponent_c", "ends",
]  # fmt: skip

# others are of all types; a C in binary16 has no 2^m + 2^-25
_OF_TYPES = {"least_exponent": ("f32", "f16"), "least_exponent_c": ("f32",), "ends": ("s32",)}


# ---- the least alignment exponent ------------------------------------------------------------------------------------


def _factors(x: float, exponent: int, least_a: int, fb) -> tuple[float, float]:
    """Two factors of x, which has this exponent: the second is a power of two, the first has the rest."""
    of_a = max(exponent // 2, least_a)
    of_a = max(min(of_a, exponent - least_exponent_of(fb)), exponent - fb.emax)
    return x / 2.0**exponent * 2.0**of_a, 2.0 ** (exponent - of_a)


def at_the_least_exponent(one: Instruction, of_c: bool) -> list[np.ndarray]:
    """Codes a, b (rows, 1, k) and c (rows,) of sums of two terms that the smaller one tips, unless it is cut off.

    There is a row for each exponent m of the first, a product or C, and each exponent t of the second. Results in
    binary32 are cut toward zero, and 2^m - 2^t is less than 2^m; those in binary16 are rounded to nearest, and
    2^m + 2^-25 + 2^t is no tie.
    """
    fa, fb, fd = (format(FORMATS[kind]) for kind in (one.a, one.b, one.d))
    single = one.d == "f32"
    low_a, low_b, low_d = map(least_exponent_of, (fa, fb, fd))
    exponents = [
        (m, t)
        for m in (range(low_d, fd.emin + 16) if single else range(low_d - 1, -13))
        for t in range(m - 42, m)
        if t >= low_a + low_b  # so m is, too
    ]
    a, b = np.zeros((2, len(exponents), 1, one.k))
    c = np.zeros(len(exponents))
    for i, (m, t) in enumerate(exponents):
        first = 2.0**m + (2.0**-25 if not single and m > -25 else 0)
        second = -(2.0**t) if single else 2.0**t
        if of_c:
            c[i] = first
        else:
            a[i, 0, i % one.k], b[i, 0, i % one.k] = _factors(first, m, fa.emin, fb)
        place = (i + 5) % one.k
        a[i, 0, place], b[i, 0, place] = _factors(second, t, low_a, fb)  # subnormal factors, where they must be
    exact = np.ones(len(exponents), bool)
    for x, fmt in ((a, fa), (b, fb), (c, fd)):
        exact &= (quantize(x, fmt) == x).all(tuple(range(1, x.ndim)))
    return [encoded(x, kind)[exact] for x, kind in ((a, one.a), (b, one.b), (c, one.d))]


# ---- rows of a kind --------------------------------------------------------------------------------------------------


def _any_codes(draw: Draw, kind: str) -> list[np.ndarray]:
    found = []
    for name, shape in ((draw.one.a, draw.shape), (draw.one.b, draw.shape), (draw.one.d, (draw.count,))):
        last = 2 ** (8 * size_of(name)) - 1
        found.append(draw.rng.integers(0, last, shape, dtype=np.uint64, endpoint=True).astype(CODES[name]))
    if draw.one.d == "s32" and kind in ("random", "wide", "cancellation"):  # sums that do not overflow
        found[2] = draw.rng.integers(-(2**20), 2**20, draw.count).astype(np.int32).view(np.uint32)
    if kind == "ends":  # C about the ends of its range, which most sums pass
        off = draw.rng.integers(-(2**13), 2**13, draw.count)
        found[2] = (2**31 + off).astype(np.uint32)
    return found


def rows(rng, one: Instruction, kind: str, count: int, steps: int = 1) -> list[np.ndarray]:
    """Codes a, b (count, steps, k) and c (count,) of a kind; those at the least exponent are as many as there are."""
    if kind.startswith("least_exponent"):
        return at_the_least_exponent(one, kind.endswith("_c"))
    draw = Draw(rng, one, count, steps)
    if kind == "codes" or one.d == "s32":
        return _any_codes(draw, kind)
    fa, fb, fd = draw.formats
    a, b = draw.numbers(fa, draw.shape, -4, 3), draw.numbers(fb, draw.shape, -4, 3)
    found = _NUMBERS[kind](draw, a, b, draw.numbers(fd, count, -6, 5))
    return [encoded(x, name) for x, name in zip(found, (one.a, one.b, one.d), strict=True)]


def operands(one: Instruction, seed: int, each: int) -> dict[str, np.ndarray]:
    """What an instruction is given, as codes: ``a``, ``b``, ``c`` of rows, and ``chain_a``, ``chain_b``, ``chain_c``.

    a and b are (rows, steps, k), c (rows,); ``kind`` numbers a row's kind. There are `each` rows of a kind, and a
    sixteenth as many chains of those that have any.
    """
    rng = np.random.default_rng([seed, *one.file.encode()])
    kinds = [kind for kind in KINDS if one.d in _OF_TYPES.get(kind, one.d)]
    later = np.random.default_rng([seed, len(kinds), *one.file.encode()])  # of kinds that older recordings lack
    parts = [rows(later if kind == "ends" else rng, one, kind, each) for kind in kinds]
    chains = [rows(rng, one, kind, max(1, each // 16), STEPS) for kind in CHAINED]
    found = {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate("abc")}
    found |= {f"chain_{name}": np.concatenate([part[i] for part in chains]) for i, name in enumerate("abc")}
    numbers = [np.uint8(KINDS.index(kind)) for kind in kinds]
    return found | {"kind": np.repeat(numbers, [len(part[2]) for part in parts])}
