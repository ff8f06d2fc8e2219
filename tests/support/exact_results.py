"""Expected results of many operand tuples at once, for formats of few bits: a fast oracle made of `softnum.reference`.

The exact result of a tuple is told by its place among the points of ladder.py, and each place is rounded once. Tuples
with a zero, an infinity or a NaN, or whose exact result is zero, go by the classes of their operands, one question a
combination. elementary_results.py does the same for elementary functions.

Exact places in binary64. Operands have few bits, so products are exact and stay far from the ends of the range. Of a
sum, a quotient or a root the correctly rounded h and the sign d of its error are enough. d comes from TwoSum for sums;
for quotients and roots from a - h * b and a - h * h, which are exact where h is a point, since points have few bits,
and unimportant elsewhere.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import Flags
from tests.support.core_oracles import show
from tests.support.ladder import ladder_of, two_sum

FINITE = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "remainder": 2, "fma": 3, "sqrt": 1, "convert": 1}
ROUNDED_PAIRS = [name for name, operands in FINITE.items() if operands == 2]
POSITIVE, NEGATIVE, ZERO, MINUS_ZERO, INFINITE, MINUS_INFINITE, QUIET, SIGNALING, FIRST_NAN = range(9)


# -- operands ----------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def _decoded(fmt) -> tuple[np.ndarray, np.ndarray]:
    values, classes = np.zeros(1 << fmt.bits), np.zeros(1 << fmt.bits, np.int64)
    for code in range(1 << fmt.bits):
        x = ref.decode(code, fmt)
        if x.kind == "nan":
            classes[code] = SIGNALING if x.signaling else QUIET
        elif x.kind == "inf":
            classes[code] = MINUS_INFINITE if x.sign else INFINITE
        else:
            exact = x.fraction
            values[code] = float(exact)
            assert Fraction(values[code]) == exact, (code, fmt)
            classes[code] = (NEGATIVE if x.sign else POSITIVE) if exact else MINUS_ZERO if x.sign else ZERO
    return values, classes


@lru_cache(maxsize=256)
def facts(fmt, flush_inputs: bool = False, each_nan: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(value in binary64 or 0, class) of each code. each_nan: every NaN is a class of its own."""
    values, classes = (x.copy() for x in _decoded(fmt))
    if each_nan:
        classes = np.where((classes == QUIET) | (classes == SIGNALING), FIRST_NAN + np.arange(len(classes)), classes)
    if flush_inputs and fmt.kind == "float" and fmt.lowest_binade == "subnormal":
        tiny = (classes <= NEGATIVE) & (np.abs(values) < float(fmt.smallest_normal))
        classes[tiny] = np.where((values[tiny] < 0) & fmt.negative_zero, MINUS_ZERO, ZERO)
        values[tiny] = 0
    return values, classes


def _remainder(a, b):
    """IEEE's remainder, by exact steps: fmod is exact, and fmod by 2 |b| tells whether the quotient is odd."""
    x, y = np.abs(a), np.abs(b)
    rest, odd = np.fmod(x, y), np.fmod(x, 2 * y) >= y
    other = rest - y  # taken where rest >= y / 2: exact
    rest = np.where((2 * rest > y) | ((2 * rest == y) & odd), other, rest)
    return np.where(a < 0, -rest, rest)


def exact(operation: str, x: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(h, d): the exact result rounded to binary64, and the sign of what it lacks where h is a short number."""
    with np.errstate(all="ignore"):
        if operation in ("add", "subtract"):
            return two_sum(x[0], -x[1] if operation == "subtract" else x[1])
        if operation == "fma":
            return two_sum(x[0] * x[1], x[2])
        if operation == "divide":
            h = x[0] / x[1]
            return h, (x[0] - h * x[1]) * np.sign(x[1])
        if operation == "sqrt":
            h = np.sqrt(np.abs(x[0]))
            return h, np.abs(x[0]) - h * h
        if operation == "remainder":
            return _remainder(x[0], x[1]), np.zeros_like(x[0])
        return (x[0] * x[1] if operation == "multiply" else x[0]), np.zeros_like(x[0])


class Tuples:
    """Operand tuples of one operation, with the exact result of each.

    operation : a key of `FINITE`; codes : one array per operand; formats : one per operand.
    """

    def __init__(self, operation: str, codes: tuple[np.ndarray, ...], formats: tuple, *, flush_inputs=False) -> None:
        assert len(codes) == len(formats)
        self.operation, self.codes, self.formats, self.flush_inputs = operation, codes, formats, flush_inputs
        every = [facts(fmt, flush_inputs) for fmt in formats]
        x = [values[c] for (values, _), c in zip(every, codes, strict=True)]
        classes = [kinds[c] for (_, kinds), c in zip(every, codes, strict=True)]
        plain = self._solve(x, classes)
        self.special = np.flatnonzero(~plain | (self.h == 0))
        self.plain = np.flatnonzero(plain & (self.h != 0))
        self.h, self.d = self.h[self.plain], self.d[self.plain]
        self._places: dict = {}
        self._asked: dict = {}

    def _solve(self, x: list[np.ndarray], classes: list[np.ndarray]) -> np.ndarray:
        """Set h and d; return which of them hold. The other tuples go by the classes of their operands."""
        self.h, self.d = exact(self.operation, x)
        plain = np.all([k <= MINUS_ZERO for k in classes], axis=0)
        if self.operation in ("divide", "remainder"):
            plain &= classes[1] <= NEGATIVE
            if self.operation == "remainder":  # an infinite divisor leaves the dividend
                leaves = (classes[0] <= NEGATIVE) & ((classes[1] == INFINITE) | (classes[1] == MINUS_INFINITE))
                self.h, plain = np.where(leaves, x[0], self.h), plain | leaves
        if self.operation == "sqrt":
            plain &= classes[0] != NEGATIVE
        return plain

    def _classes(self, fmt, each_nan: bool) -> np.ndarray:
        """The class of each code of an operand's format, as far as it decides a result that is not plain."""
        return facts(fmt, self.flush_inputs, each_nan)[1]

    def _answer(self, operands: tuple[int, ...], out_fmt, environment) -> tuple[int, Flags]:
        """What the reference says of one tuple."""
        if self.operation == "convert":
            return ref.convert(*operands, self.formats[0], to_fmt=out_fmt, **environment)
        return getattr(ref, self.operation)(*operands, self.formats, out_fmt=out_fmt, **environment)

    def _representatives(self, each_nan: bool):
        """(a tuple of codes for each combination of classes among the special ones, which of them each one is)"""
        if each_nan not in self._asked:
            key = np.zeros(len(self.special), np.int64)
            size = 1
            for codes, fmt in zip(self.codes, self.formats, strict=True):
                classes = self._classes(fmt, each_nan)
                key = key * (int(classes.max()) + 1) + classes[codes[self.special]]
                size *= int(classes.max()) + 1
            assert size < 2**62
            _, first, which = np.unique(key, return_index=True, return_inverse=True)
            tuples = list(zip(*(c[self.special[first]].tolist() for c in self.codes), strict=True))
            self._asked[each_nan] = tuples, which
        return self._asked[each_nan]

    def expected(self, out_fmt, **environment) -> tuple[np.ndarray, np.ndarray]:
        """(codes, flags) of every tuple."""
        codes = np.zeros(len(self.codes[0]), np.uint64)
        flags = np.zeros(len(codes), np.uint8)
        options = dict(environment, flush_inputs=True) if self.flush_inputs else environment
        each_nan = environment.get("nan", "canonical") != "canonical"
        tuples, which = self._representatives(each_nan)
        answers = [self._answer(operands, out_fmt, options) for operands in tuples]
        if answers:
            codes[self.special] = np.array([code for code, _ in answers], np.uint64)[which]
            flags[self.special] = np.array([int(f) for _, f in answers], np.uint8)[which]
        if len(self.plain):
            stochastic = environment.get("rounding", "").startswith("stochastic")
            r = environment["stochastic_bits"] if stochastic else 0
            ladder = ladder_of(out_fmt, r)
            key = out_fmt, r
            if key not in self._places:
                self._places = {key: ladder.places(self.h, self.d)}
            places, distinct = self._places[key]
            codes[self.plain], flags[self.plain] = ladder.rounded(places, distinct, environment)
        return codes, flags

    def check(self, out_fmt, *, with_table=False, **environment) -> None:
        """Compare the library's codes and flags with the reference's; with_table: also the codes it gives without."""
        function = getattr(sn.ops, self.operation)
        want, want_flags = self.expected(out_fmt, **environment)
        options = dict(environment) if out_fmt.has_nan else {"invalid": 0} | environment
        if self.flush_inputs:
            options["flush_inputs"] = True
        where = {"out_fmt": out_fmt} if self.operation != "convert" else {"to_fmt": out_fmt}
        fmt = self.formats if self.operation != "convert" else self.formats[0]
        got, flags = function(*self.codes, fmt, return_flags=True, **where, **options)
        bad = (got != want) | (flags != want_flags)
        if with_table and not bad.any():
            got = function(*self.codes, fmt, **where, **options)
            bad = got != want
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            operands = ", ".join(show(c[i], f) for c, f in zip(self.codes, self.formats, strict=True))
            raise AssertionError(
                f"{self.operation}({operands}) {'x'.join(map(str, self.formats))} -> {out_fmt}, {options}: "
                f"got {show(got[i], out_fmt)} {Flags(int(flags[i]))!r}, want {show(want[i], out_fmt)} "
                f"{Flags(int(want_flags[i]))!r}; {np.count_nonzero(bad)} of {bad.size} differ"
            )


@lru_cache(maxsize=16)
def every_tuple(operation: str, fmt, flush_inputs: bool = False) -> Tuples:
    """All pairs of codes of a format (all codes, all triples)."""
    operands = FINITE[operation]
    columns = np.indices((1 << fmt.bits,) * operands).reshape(operands, -1).astype(fmt.storage_dtype)
    return Tuples(operation, tuple(columns), (fmt,) * operands, flush_inputs=flush_inputs)
