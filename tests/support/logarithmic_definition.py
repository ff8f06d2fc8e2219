"""Takums and lnsI.F by their definitions, in MPFR's intervals (gmpy2): what softnum is compared with.

A number is given by a function of a precision that returns an interval of the logarithm of its magnitude, or by that
logarithm itself, a Fraction, where it is rational. Where an interval of 1500 bits still holds a point at which rounding
goes over, the number is that point.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

import gmpy2

_DOWN, _UP = gmpy2.RoundDown, gmpy2.RoundUp


def context(bits: int, rounding=gmpy2.RoundToNearest):
    """MPFR's numbers of so many bits."""
    return gmpy2.context(precision=bits, round=rounding)


class Logarithmic:
    """Codes of `bits` bits whose positive ones stand for ``base**L``; a subclass has `split`, `point` and `code_at`."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def split(self, code: int):
        """(sign, L) of a code; None of NaN, (0, None) of 0."""
        raise NotImplementedError

    def point(self, place: int) -> Fraction:
        """The L at which rounding goes over from `code_at(place)`, a positive number's, to the next one."""
        raise NotImplementedError

    def round_log(self, sign: int, log) -> int:
        """The code of a number of this sign whose L is a Fraction, or a function of bits that gives an interval."""
        places = range(self.count)
        if isinstance(log, Fraction):
            low = high = log
        else:
            for bits in (100, 400, 1500):
                low, high = (Fraction(*map(int, x.as_integer_ratio())) for x in log(bits))
                at = bisect_left(places, low, key=self.point)
                if at == self.count or high < self.point(at):
                    break
            else:
                low = high = self.point(at)
        at = bisect_left(places, low, key=self.point)  # the first point that is not below
        code = self.code_at(at)
        if at < self.count and self.point(at) == low == high and code % 2:
            code = self.code_at(at + 1)
        return self.negative(code) if sign else code

    # -- real numbers --------------------------------------------------------------------------------------------------
    def magnitude(self, log: Fraction, bits: int):
        """An interval of base**L."""
        ends = []
        for rounding in (_DOWN, _UP):
            with context(bits, rounding):
                ends.append(self.power(gmpy2.mpfr(gmpy2.mpq(log))))
        return ends

    def log_of(self, interval, bits: int):
        """An interval of L of positive numbers."""
        ends = []
        for rounding, x in zip((_DOWN, _UP), interval, strict=True):
            with context(bits, rounding):
                ends.append(self.logarithm(x))
        return ends

    def of_number(self, x) -> int:
        """The code of a rational number or a float."""
        if x != x or x in (float("inf"), -float("inf")):
            return self.nan
        x = Fraction(x)
        if not x:
            return self.zero
        return self.round_log(int(x < 0), lambda bits: self.log_of(_interval(abs(x), bits), bits))

    def decode(self, code: int) -> float:
        """The value, rounded to binary64."""
        parts = self.split(code)
        if parts is None:
            return float("nan")
        sign, log = parts
        if log is None:
            return 0.0
        with context(53):
            value = float(self.power(gmpy2.mpfr(gmpy2.mpq(log), 200)))
        return -value if sign else value

    def multiply(self, a: int, b: int) -> int:
        return self._by_logs(a, b, lambda x, y: x + y, False)

    def divide(self, a: int, b: int) -> int:
        return self._by_logs(a, b, lambda x, y: x - y, True)

    def _by_logs(self, a, b, combine, divides) -> int:
        x, y = self.split(a), self.split(b)
        if x is None or y is None or (divides and y[1] is None):
            return self.nan
        if x[1] is None or y[1] is None:
            return self.zero
        return self.round_log(x[0] ^ y[0], combine(x[1], y[1]))

    def sqrt(self, a: int) -> int:
        x = self.split(a)
        if x is None or (x[1] is not None and x[0]):
            return self.nan
        return self.zero if x[1] is None else self.round_log(0, x[1] / 2)

    def add(self, a: int, b: int) -> int:
        x, y = self.split(a), self.split(b)
        if x is None or y is None:
            return self.nan
        return self.sum(x, y)

    def subtract(self, a: int, b: int) -> int:
        return self.add(a, self.negative(b))

    def fma(self, a: int, b: int, c: int) -> int:
        x, y, z = map(self.split, (a, b, c))
        if None in (x, y, z):
            return self.nan
        return self.sum((x[0] ^ y[0], None if None in (x[1], y[1]) else x[1] + y[1]), z)

    def sum(self, x, y) -> int:
        """The code of a sum of (sign, L)."""
        if x[1] is None or y[1] is None:
            sign, log = y if x[1] is None else x
            return self.zero if log is None else self.round_log(sign, log)
        if x[1] < y[1]:
            x, y = y, x
        if x[1] == y[1] and x[0] != y[0]:
            return self.zero

        def log(bits):
            bits += 2 * int(x[1] - y[1])  # the smaller one lies no farther below
            (low, high), (little, more) = self.magnitude(x[1], bits), self.magnitude(y[1], bits)
            ends = []
            for rounding, end, other in (
                (_DOWN, low, little if x[0] == y[0] else more),
                (_UP, high, more if x[0] == y[0] else little),
            ):
                with context(bits, rounding):
                    ends.append(end + other if x[0] == y[0] else end - other)
            return self.log_of(ends, bits)

        return self.round_log(x[0], log)

    def function(self, name: str, a: int) -> int:
        """The code of a function of MPFR's that is monotonic around the value of a code, which is neither 0 nor NaN."""
        sign, log = self.split(a)
        for bits in (400, 1500):
            x, found = self.magnitude(log, bits), []
            for rounding in (_DOWN, _UP):
                with context(bits, rounding):  # in which a sign is changed, too: MPFR rounds then
                    values = [getattr(gmpy2, name)(-v if sign else v) for v in x]
                found.append(min(values) if rounding == _DOWN else max(values))
            low, high = found
            if gmpy2.is_nan(low) or gmpy2.is_nan(high) or (name.startswith("log") and gmpy2.is_infinite(low)):
                return self.nan
            if low == high == 0 and name[0] in "al":  # acos(1), log(1)
                return self.zero
            if (low > 0) == (high > 0):
                break
        negative = low < 0
        with context(1500):
            codes = {self.round_log(int(negative), self._end(abs(v))) for v in (low, high)}
        assert len(codes) == 1, (name, a)
        return codes.pop()

    def _end(self, value):
        """L of a number of MPFR's, which beyond its range lies beyond all logarithms."""
        if value == 0 or gmpy2.is_infinite(value):
            return Fraction(-(10**6) if value == 0 else 10**6)
        return lambda bits: self.log_of((value, value), 1500)


def _interval(x: Fraction, bits: int):
    ends = []
    for rounding in (_DOWN, _UP):
        with context(bits, rounding):
            ends.append(gmpy2.mpfr(gmpy2.mpq(x)))
    return ends


class Takum(Logarithmic):
    """sqrt(e)**L, L = c + m of the bit string (Hunhold 2024, definition 2)."""

    zero = 0

    @property
    def nan(self) -> int:
        return 1 << (self.bits - 1)

    def negative(self, code: int) -> int:
        return -code % (1 << self.bits)

    def split(self, code: int):
        if code == self.nan:
            return None
        sign = int(code > self.nan)
        return (sign, None) if code == 0 else (sign, self._log(self.negative(code) if sign else code, self.bits))

    @staticmethod
    def _log(code: int, bits: int) -> Fraction:
        string = f"{code:0{bits}b}".ljust(12, "0")
        regime = int(string[2:5], 2)
        r = regime if string[1] == "1" else 7 - regime
        c = (2**r - 1 if string[1] == "1" else -(2 ** (r + 1)) + 1) + int("0" + string[5 : 5 + r], 2)
        rest = string[5 + r :]
        return c + Fraction(int("0" + rest, 2), 2 ** len(rest))

    @property
    def count(self) -> int:
        return self.nan - 2

    def point(self, place: int) -> Fraction:
        return self._log(2 * place + 3, self.bits + 1)

    def code_at(self, place: int) -> int:
        return place + 1

    @staticmethod
    def power(log):
        return gmpy2.exp(log / 2)

    @staticmethod
    def logarithm(x):
        return 2 * gmpy2.log(x)


class Lns(Logarithmic):
    """2**L, L a field in two's complement; the lowest one is 0, or NaN with the sign."""

    def __init__(self, integer: int, fraction: int) -> None:
        super().__init__(1 + integer + fraction)
        self.fraction = fraction
        self.zero, self.nan = 1 << (self.bits - 2), 3 << (self.bits - 2)

    def negative(self, code: int) -> int:
        return code if code in (self.zero, self.nan) else code ^ 2 * self.zero

    def split(self, code: int):
        if code == self.nan:
            return None
        if code == self.zero:
            return 0, None
        field = code % (2 * self.zero)
        return code // (2 * self.zero), Fraction(field - 2 * self.zero * (field > self.zero), 2**self.fraction)

    @property
    def count(self) -> int:
        return 2 * self.zero - 1

    def point(self, place: int) -> Fraction:
        return Fraction(2 * (place + 1 - self.zero) - 1, 2 ** (self.fraction + 1))

    def code_at(self, place: int) -> int:
        return (place - self.zero) % (2 * self.zero)

    @staticmethod
    def power(log):
        return gmpy2.exp2(log)

    @staticmethod
    def logarithm(x):
        return gmpy2.log2(x)
