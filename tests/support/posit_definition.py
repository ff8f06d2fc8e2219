"""Posits by the Posit Standard (2022), and linear takums, in fractions: shares nothing with softnum or its examples."""

from bisect import bisect_left
from fractions import Fraction
from functools import cache, cached_property


class Tapered:
    """n bits; values by string, and rounding by the numbers of one bit more."""

    def __init__(self, n: int) -> None:
        self.n, self.nar = n, 1 << (n - 1)
        self.value, self.middle = cache(self.value), cache(self.middle)

    def value(self, code: int) -> Fraction | None:
        """What a code stands for; None: NaR."""
        return self._value(format(code, f"0{self.n}b"))

    def middle(self, code: int) -> Fraction:
        """Where rounding changes from a code to the next: a number with a bit more, which ends in 1."""
        return self._value(format(2 * code + 1, f"0{self.n + 1}b"))

    @property
    def values(self) -> list[Fraction | None]:
        """Those of all codes, in order."""
        return [self.value(code) for code in range(1 << self.n)]

    @cached_property
    def positive(self):
        """0 and the positive values, in order; of more than 16 bits, their codes."""
        return self.values[: self.nar] if self.n <= 16 else range(self.nar)

    @property
    def between(self) -> list[Fraction]:
        """Where rounding changes from each of them to the next."""
        return [self.middle(code) for code in range(self.nar)]

    def _value(self, bits: str) -> Fraction | None:
        n = len(bits)
        if bits == "0" * n:
            return Fraction(0)
        if bits == "1" + "0" * (n - 1):
            return None
        if bits[0] == "1":
            return -self._value(format((1 << n) - int(bits, 2), f"0{n}b"))
        return self._positive(bits[1:])

    def _positive(self, rest: str) -> Fraction:
        raise NotImplementedError

    def encode(self, x: Fraction | None) -> int:
        """As the standard rounds: nearest, ties to the even code; never to 0 or NaR."""
        if x is None:
            return self.nar
        if x == 0:
            return 0
        if x < 0:
            return (1 << self.n) - self.encode(-x)
        low = bisect_left(self.positive, x, key=None if self.n <= 16 else self.value)
        if low < self.nar and self.value(low) == x:
            return low
        low -= 1  # the number below x
        if low == 0:
            return 1
        if low == self.nar - 1:
            return low
        middle = self.middle(low)
        return low if x < middle or (x == middle and low % 2 == 0) else low + 1


class Posit(Tapered):
    """Sign, regime, es bits of exponent, fraction."""

    def __init__(self, n: int, es: int = 2) -> None:
        super().__init__(n)
        self.es = es

    def _positive(self, rest: str) -> Fraction:
        run = len(rest) - len(rest.lstrip(rest[0]))
        regime = run - 1 if rest[0] == "1" else -run
        tail = rest[run + 1 :] + "0" * self.es
        exponent, fraction = int("0" + tail[: self.es], 2), tail[self.es :]
        scale = regime * 2**self.es + exponent
        return (1 + Fraction(int("0" + fraction, 2), 1 << len(fraction))) * Fraction(2) ** scale


class TakumLinear(Tapered):
    """Sign, direction, three bits of regime, characteristic, fraction; its magnitudes by Hunhold's tables."""

    #: (direction, regime bits) -> the lowest characteristic
    LOWEST = dict(
        zip(
            [(d, r) for d in "01" for r in ("000", "001", "010", "011", "100", "101", "110", "111")],
            [-255, -127, -63, -31, -15, -7, -3, -1, 0, 1, 3, 7, 15, 31, 63, 127],
            strict=True,
        )
    )

    def _positive(self, rest: str) -> Fraction:
        bits = rest.ljust(11, "0")
        length = int(bits[1:4], 2) if bits[0] == "1" else 7 - int(bits[1:4], 2)
        scale = self.LOWEST[bits[0], bits[1:4]] + int("0" + bits[4 : 4 + length], 2)
        fraction = bits[4 + length :]
        return (1 + Fraction(int("0" + fraction, 2), 1 << len(fraction))) * Fraction(2) ** scale
