"""Posits by the Posit Standard (2022), in fractions: shares nothing with examples/custom/posit8.py."""

from bisect import bisect_left
from fractions import Fraction


class Posit:
    """n bits; values by string, and rounding by the posits of one bit more."""

    def __init__(self, n: int) -> None:
        self.n, self.nar = n, 1 << (n - 1)
        self.values = [self._value(format(code, f"0{n}b")) for code in range(1 << n)]
        # a posit with a bit more that ends in 1 is where rounding changes from one neighbour to the other
        between = [self._value(format(2 * code + 1, f"0{n + 1}b")) for code in range(self.nar)]
        self.between, self.positive = between, [self.values[code] for code in range(self.nar)]

    def _value(self, bits: str) -> Fraction | None:
        n = len(bits)
        if bits == "0" * n:
            return Fraction(0)
        if bits == "1" + "0" * (n - 1):
            return None
        if bits[0] == "1":
            return -self._value(format((1 << n) - int(bits, 2), f"0{n}b"))
        rest = bits[1:]
        run = len(rest) - len(rest.lstrip(rest[0]))
        regime = run - 1 if rest[0] == "1" else -run
        tail = rest[run + 1 :] + "00"
        exponent, fraction = int(tail[:2], 2), tail[2:]
        return (1 + Fraction(int("0" + fraction, 2), 1 << len(fraction))) * Fraction(2) ** (4 * regime + exponent)

    def encode(self, x: Fraction | None) -> int:
        """As the standard rounds: nearest, ties to the even code; never to 0 or NaR."""
        if x is None:
            return self.nar
        if x == 0:
            return 0
        if x < 0:
            return (1 << self.n) - self.encode(-x)
        low = bisect_left(self.positive, x)
        if low < self.nar and self.positive[low] == x:
            return low
        low -= 1  # the posit below x
        if low == 0:
            return 1
        if low == self.nar - 1:
            return low
        middle = self.between[low]
        return low if x < middle or (x == middle and low % 2 == 0) else low + 1
