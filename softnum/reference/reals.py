"""Elementary functions of rational numbers, to any precision: intervals of Python integers.

An interval (low, high, e) holds the reals from low * 2**e to high * 2**e; every operation encloses. Nothing here is the
C core's way: exp halves its argument, log takes roots, angles lose multiples of a pi from Machin's formula, atan is
Euler's series and erf its alternating Taylor series, with as many bits more as cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import NamedTuple


class Interval(NamedTuple):
    low: int
    high: int
    e: int

    def scaled(self, n: int) -> Interval:
        """Times 2**n."""
        return Interval(self.low, self.high, self.e + n)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.e)


def trimmed(low: int, high: int, e: int, bits: int) -> Interval:
    """Outward to about `bits` bits."""
    n = max(low.bit_length(), high.bit_length()) - bits
    return Interval(low >> n, -(-high >> n), e + n) if n > 0 else Interval(low, high, e)


def of(x: Fraction, bits: int) -> Interval:
    """The interval of a rational number."""
    if x.denominator & (x.denominator - 1) == 0:
        return Interval(x.numerator, x.numerator, 1 - x.denominator.bit_length())
    e = x.numerator.bit_length() - x.denominator.bit_length() - bits
    low = math.floor(x / Fraction(2) ** e)
    return Interval(low, low + 1, e)


def add(x: Interval, y: Interval, bits: int) -> Interval:
    e = min(x.e, y.e)
    a, b = x.e - e, y.e - e
    return trimmed((x.low << a) + (y.low << b), (x.high << a) + (y.high << b), e, bits)


def multiply(x: Interval, y: Interval, bits: int) -> Interval:
    products = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return trimmed(min(products), max(products), x.e + y.e, bits)


def divide(x: Interval, y: Interval, bits: int) -> Interval:
    """Of a y above 0."""
    shift = max(0, bits + y.high.bit_length() - max(abs(x.low), abs(x.high)).bit_length() + 1)
    low, high = x.low << shift, x.high << shift
    down = low // (y.high if low >= 0 else y.low)
    up = -(-high // (y.low if high >= 0 else y.high))
    return trimmed(down, up, x.e - y.e - shift, bits)


def root(x: Interval, bits: int) -> Interval:
    shift = max(0, 2 * bits - x.low.bit_length())
    shift += (x.e - shift) & 1
    return Interval(math.isqrt(x.low << shift), math.isqrt(x.high << shift) + 1, (x.e - shift) // 2)


ONE = Interval(1, 1, 0)


def series(terms: Iterable[Interval], bits: int) -> Interval:
    """The sum of terms (intervals) that end up shrinking by half at least; their sign may alternate."""
    total = Interval(0, 0, 0)
    for term in terms:
        total = add(total, term, 2 * bits)
        size = max(abs(term.low), abs(term.high))
        if size.bit_length() + term.e < -bits - 8:
            rest = Interval(-size, size, term.e)
            return add(total, rest, bits)
    raise AssertionError


def exp(x: Interval, bits: int) -> Interval:
    """Halved until small, Taylor, squared."""
    size = max(abs(x.low), abs(x.high)).bit_length() + x.e
    halvings = max(0, size + 8)
    work = bits + 2 * halvings + 20
    small = x.scaled(-halvings)

    def terms():
        term = ONE
        for k in count(1):
            yield term
            term = divide(multiply(term, small, work), Interval(k, k, 0), work)

    y = series(terms(), work)
    for _ in range(halvings):
        y = multiply(y, y, work)
    return y


def _atanh_of_inverse(n: int, bits: int) -> Interval:
    scale = 1 << (bits + 20)
    total = sum(scale // ((2 * k + 1) * n ** (2 * k + 1)) for k in range((bits + 20) // (2 * n.bit_length() - 2) + 2))
    return Interval(total - 1, total + bits + 20, -bits - 20)


@lru_cache(maxsize=64)
def log_of_2(bits: int) -> Interval:
    parts = ((18, 26), (-2, 4801), (8, 8749))
    total = Interval(0, 0, 0)
    for factor, n in parts:
        total = add(total, multiply(Interval(factor, factor, 0), _atanh_of_inverse(n, bits), bits + 20), bits + 20)
    return total


def log(x: Interval, bits: int) -> Interval:
    """Roots until near 1, then the series of atanh."""
    work = bits + 60
    e = x.low.bit_length() + x.e
    y = x.scaled(-e)  # in 1/2 .. 1
    if 4 * x.low < 3 << x.low.bit_length():
        e, y = e - 1, y.scaled(1)
    for _ in range(12):
        y = root(y, work)
    t = divide(add(y, Interval(-1, -1, 0), work), add(y, ONE, work), work)
    square = multiply(t, t, work)

    def terms():
        power = t
        for k in count():
            yield divide(power, Interval(2 * k + 1, 2 * k + 1, 0), work)
            power = multiply(power, square, work)

    part = series(terms(), work).scaled(13)
    return add(part, multiply(Interval(e, e, 0), log_of_2(work + 20), work + 20), bits + 20)


def _atan_of_inverse(n: int, bits: int) -> Interval:
    scale = 1 << (bits + 20)
    total = sum(
        (-1) ** k * (scale // ((2 * k + 1) * n ** (2 * k + 1)))
        for k in range((bits + 20) // (2 * n.bit_length() - 2) + 2)
    )
    return Interval(total - bits - 20, total + bits + 20, -bits - 20)


@lru_cache(maxsize=64)
def pi(bits: int) -> Interval:
    """16 atan(1/5) - 4 atan(1/239) (Machin 1706)."""
    return add(_atan_of_inverse(5, bits + 8).scaled(4), -_atan_of_inverse(239, bits + 8).scaled(2), bits + 8)


def atan(x: Interval, bits: int) -> Interval:
    """Euler's series: the term k is the one before times 2k / (2k + 1) * x^2 / (1 + x^2). For 0 <= x <= 1."""
    work = bits + 30
    square = multiply(x, x, work)
    ratio = divide(square, add(ONE, square, work), work)

    def terms():
        term = divide(x, add(ONE, square, work), work)
        for k in count(1):
            yield term
            term = multiply(multiply(term, ratio, work), Interval(2 * k, 2 * k, 0), work)
            term = divide(term, Interval(2 * k + 1, 2 * k + 1, 0), work)

    return series(terms(), work)


def sin_cos(x: Interval, bits: int) -> tuple[Interval, Interval]:
    """x less the nearest multiple of pi / 2, then both Taylor series."""
    size = max(0, x.high.bit_length() + x.e, x.low.bit_length() + x.e)
    work = bits + 2 * size + 40
    half_pi = pi(work + 20).scaled(-1)
    quotient = divide(x, half_pi, work)
    n = round(Fraction(quotient.low) * Fraction(2) ** quotient.e)
    r = add(x, -multiply(Interval(n, n, 0), half_pi, work), work)
    square = multiply(r, r, work)

    def terms(first, k):
        term = first
        while True:
            yield term
            term = -divide(multiply(term, square, work), Interval(k * (k + 1), k * (k + 1), 0), work)
            k += 2

    sine, cosine = series(terms(r, 2), work), series(terms(ONE, 1), work)
    return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][n % 4]


def erf(x: Interval, bits: int) -> Interval:
    """2 / sqrt(pi) * sum (-1)^k x^(2k + 1) / (k! (2k + 1)); the terms grow to e^(x^2)."""
    square = multiply(x, x, 4 * bits)
    size = int(Fraction(square.high) * Fraction(2) ** square.e) + 1
    work = bits + 3 * size + 60
    square = multiply(x, x, work)

    def terms():
        term = x
        for k in count():
            yield divide(term, Interval(2 * k + 1, 2 * k + 1, 0), work)
            term = -divide(multiply(term, square, work), Interval(k + 1, k + 1, 0), work)

    total = series(terms(), work)
    return divide(total.scaled(1), root(pi(work), work), work)


def erfc_tail(z: Interval, bits: int) -> Interval:
    """erfc for z**2 > bits, by its asymptotic series, whose error is less than the first term left out."""
    work = bits + 40
    square = multiply(z, z, 4 * work)
    total, term = ONE, ONE
    for k in count(1):
        term = -divide(multiply(term, Interval(2 * k - 1, 2 * k - 1, 0), work), square.scaled(1), work)
        size = max(abs(term.low), abs(term.high))
        if size.bit_length() + term.e < -bits:
            total = add(total, Interval(-size, size, term.e), work)
            break
        total = add(total, term, work)
    return divide(multiply(exp(-square, work), total, work), multiply(z, root(pi(work), work), work), work)
