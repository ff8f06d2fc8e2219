"""Expected results of elementary functions of many codes at once: the fast oracle of exact_results.py, with MPFR.

MPFR's result rounded toward zero to 53 bits is h, and whether it was exact tells d, the sign of what h lacks. This is
done once for all modes and rules. Exponents are those of binary64's normal numbers: what is smaller rounds to zero,
inexactly, and stands as the least of these numbers; what is larger is the greatest. The formats of up to 16 bits have
their points in between. The functions that MPFR lacks are computed from their parts with 160 bits. Where that does not
decide the 53rd bit, `elementary_oracle` does, which also answers for special operands, one for each of their classes.
"""

from __future__ import annotations

import operator
from functools import lru_cache

import gmpy2
import numpy as np
from gmpy2 import mpfr

from tests.support import elementary_oracle
from tests.support.exact_results import MINUS_ZERO, NEGATIVE, Tuples, facts

LEAST = 2.0**-1022
FIFTY_THREE = {"precision": 53, "round": gmpy2.RoundToZero, "emin": -1021, "emax": 1024}

PARTS = {
    "sigmoid": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "softplus": lambda x: gmpy2.log1p(gmpy2.exp(x)),
    "silu": lambda x: x / (1 + gmpy2.exp(-x)),
    "gelu": lambda x: x * gmpy2.erfc(-x / gmpy2.sqrt(mpfr(2))) / 2,
}
MPFR = {"pow": operator.pow, "rsqrt": gmpy2.rec_sqrt, "reciprocal": lambda x: 1 / x}


def _listed(results: list[mpfr]) -> tuple[np.ndarray, np.ndarray]:
    """(h, d) of results that were rounded toward zero."""
    h = np.array([float(v) for v in results], np.float64)
    d = -np.array([v.rc for v in results], np.float64)
    return np.where((h == 0) & (d != 0), np.copysign(LEAST, d), h), d


def _from_parts(name: str, operands: list[mpfr]) -> tuple[np.ndarray, np.ndarray]:
    """By 160 bits, of which gelu's erfc loses up to 16 where its result is no less than LEAST."""
    with gmpy2.context(precision=160, **elementary_oracle.RANGE):
        results = [PARTS[name](x) for x in operands]
        below, above = (1 + s * gmpy2.exp2(mpfr(-130)) for s in (-1, 1))
        low, high = [v * below for v in results], [v * above for v in results]
    with gmpy2.context(**FIFTY_THREE):
        low, high = [+v for v in low], [+v for v in high]
        for i, v in enumerate(results):
            if low[i] != high[i] or not low[i].rc or not gmpy2.is_regular(v):
                exact = elementary_oracle.exact(name, elementary_oracle.fraction(operands[i]))
                low[i] = mpfr(gmpy2.mpq(exact))
    return _listed(low)


def toward_zero(name: str, *operands: list[mpfr]) -> tuple[np.ndarray, np.ndarray]:
    """(h, d) of each result: a NaN where there is none, infinite at a pole, zero only where that is exact."""
    if name in PARTS:
        return _from_parts(name, *operands)
    function = MPFR.get(name) or getattr(gmpy2, name)
    with gmpy2.context(**FIFTY_THREE):
        return _listed(list(map(function, *operands)))


@lru_cache(maxsize=32)
def _numbers(fmt, flush_inputs: bool) -> np.ndarray:
    """MPFR's number for each code, 0 where there is none."""
    with gmpy2.context(precision=53):
        return np.array([mpfr(v) for v in facts(fmt, flush_inputs)[0].tolist()], object)


@lru_cache(maxsize=64)
def _finer(fmt, flush_inputs: bool, each_nan: bool) -> np.ndarray:
    """The classes of `facts`, of numbers also: below, at or above 1 in magnitude; no integer, an even or an odd one."""
    values, classes = facts(fmt, flush_inputs, each_nan)
    size = np.sign(np.abs(values) - 1).astype(np.int64) + 1
    parity = np.where(values != np.rint(values), 0, np.where(np.fmod(values, 2) == 0, 1, 2))
    return classes * 9 + 3 * size + parity


class Elementary(Tuples):
    """Codes, or pairs of codes, of one elementary function, with the exact result of each."""

    def _solve(self, x, classes):
        finite = np.all([k <= (MINUS_ZERO if self.operation == "hypot" else NEGATIVE) for k in classes], axis=0)
        self.h, self.d = np.zeros(len(finite)), np.zeros(len(finite))
        operands = [
            _numbers(fmt, self.flush_inputs)[codes[finite]].tolist()
            for fmt, codes in zip(self.formats, self.codes, strict=True)
        ]
        self.h[finite], self.d[finite] = toward_zero(self.operation, *operands)
        return finite & np.isfinite(self.h)

    def _classes(self, fmt, each_nan):
        return _finer(fmt, self.flush_inputs, each_nan)

    def _answer(self, operands, out_fmt, environment):
        return elementary_oracle.expected(self.operation, operands, self.formats, out_fmt, **environment)

    def below(self, bound: float) -> Elementary:
        """Those whose results are smaller: what wraps around must be known to the last bit."""
        kept = np.ones(len(self.codes[0]), bool)
        kept[self.plain[np.abs(self.h) >= bound]] = False
        codes = tuple(c[kept] for c in self.codes)
        return Elementary(self.operation, codes, self.formats, flush_inputs=self.flush_inputs)


@lru_cache(maxsize=4)
def every_code(name: str, fmt, flush_inputs: bool = False) -> Elementary:
    """All codes of a format."""
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    return Elementary(name, (codes,), (fmt,), flush_inputs=flush_inputs)


@lru_cache(maxsize=4)
def every_pair(name: str, fmt, flush_inputs: bool = False) -> Elementary:
    """All pairs of codes of a format."""
    pairs = np.indices((1 << fmt.bits,) * 2).reshape(2, -1).astype(fmt.storage_dtype)
    return Elementary(name, tuple(pairs), (fmt, fmt), flush_inputs=flush_inputs)
