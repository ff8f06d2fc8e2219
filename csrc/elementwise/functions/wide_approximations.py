"""Tables and polynomials of the functions of wide operands: python wide_approximations.py [--prove].

Writes wide_constants.h beside it. A function's first terms are exact, rounded to pairs of binary64 numbers; the rest of
its series is a polynomial in binary64, made and proved as those of approximations.py are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import factorial
from pathlib import Path

import gmpy2
from gmpy2 import mpfr

sys.path.insert(0, str(Path(__file__).parent))
import approximations as narrow

HERE = Path(__file__).parent
PRECISION = 1400
EXPONENTS = range(-1, 1024)  # of operands that sin reduces
ERF_STEPS, ERF_CELLS, ERF_TERMS = 64, 384, 10  # in a unit; from 0 to 6; the last T_k (wide_normal.h)
MILLS_START, MILLS_BITS, MILLS_OCTAVES = 0x3FE0000000000000, 4, 7  # from 1/2 on, 2^4 cells an octave (wide_normal.h)
MILLS_PAIRS, MILLS_TERMS = 4, 11  # of a cell's series


@dataclass(frozen=True)
class Series:
    """sum of terms(k) x^k on [low, high]: `pairs` terms, and a polynomial of `degree` for the rest."""

    name: str
    what: str
    terms: Callable[[int], Fraction]
    pairs: int
    degree: int
    low: Fraction
    high: Fraction
    evaluation: int  # the bound of the evaluation of the rest, a power of two

    def rest(self) -> narrow.Polynomial:
        what = f"what follows {self.pairs} terms of {self.what}"
        return narrow.Polynomial(f"wide_{self.name}", what, lambda k: self.terms(k + self.pairs), 60, self.degree,
                                 self.low, self.high, 2.0**-120, -50, self.evaluation)  # fmt: skip

    def leading(self) -> list[list[float]]:
        return [parts(self.terms(k)) for k in range(self.pairs)]


def parts(x: Fraction) -> list[float]:
    """x as a pair."""
    return [float(x), float(x - Fraction(float(x)))]


def pair(x: mpfr) -> list[float]:
    return [float(x), float(x - float(x))]


SQUARE = Fraction(1, 16)  # of |x| < 1/4
SERIES = (
    Series("exp", "(e^r - 1) / r in r", lambda k: Fraction(1, factorial(k + 1)), 3, 5,
           -narrow.EXP_END, narrow.EXP_END, -56),
    Series("sinh", "sinh(x) / x in x^2", lambda k: Fraction(1, factorial(2 * k + 1)), 3, 4, Fraction(0), SQUARE, -64),
    Series("tanh", "tanh(x) / x in x^2", narrow.tanh_term, 4, 9, Fraction(0), SQUARE, -57),
    Series("log", "log(1 + r) / r in r", lambda k: Fraction((-1) ** k, k + 1), 4, 9,
           -narrow.log_end() * Fraction(65, 64), narrow.log_end() * Fraction(65, 64), -54),
    Series("fine_log", "log(1 + r) / r in r, where r is small", lambda k: Fraction((-1) ** k, k + 1), 4, 5,
           -narrow.FINE_END * Fraction(65, 64), narrow.FINE_END * Fraction(65, 64), -54),
    Series("gelu", "((Phi(x) - 1/2) sqrt(2 pi) / x - 1) / x^2 in x^2",
           lambda k: Fraction((-1) ** (k + 1), 2 ** (k + 1) * factorial(k + 1) * (2 * k + 3)), 3, 6,
           Fraction(0), Fraction(1, 4), -64),
    Series("sin", "sin(r) / r in r^2", lambda k: Fraction((-1) ** k, factorial(2 * k + 1)), 4, 5,
           Fraction(0), narrow.PI_4**2, -70),
    Series("cos", "(cos(r) - 1) / r^2 in r^2", lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 2)), 4, 5,
           Fraction(0), narrow.PI_4**2, -73),
    Series("atan", "atan(r) / r in r^2", lambda k: Fraction((-1) ** k, 2 * k + 1), 2, 5,
           Fraction(0), Fraction(273, 2**18), -54),
    Series("asinh", "asinh(x) / x in x^2", lambda k: (-1) ** k * narrow.arcsine_term(k), 3, 7,
           Fraction(0), Fraction(1, 64), -56),
    Series("atanh", "atanh(x) / x in x^2", lambda k: Fraction(1, 2 * k + 1), 3, 7, Fraction(0), Fraction(1, 64), -54),
)  # fmt: skip


def constants() -> dict[str, list[float]]:
    """Numbers in two or three parts."""
    with gmpy2.context(precision=PRECISION):
        ln2, ln10, pi = gmpy2.log(mpfr(2)), gmpy2.log(mpfr(10)), gmpy2.const_pi()
        values = {}
        for name, octave in (("exp", ln2), ("exp10", ln2 / ln10)):
            high = narrow.cut(octave / narrow.STEPS, -40)
            middle = narrow.cut(octave / narrow.STEPS - high, -75)
            values[f"{name}_step"] = [high, middle, float(octave / narrow.STEPS - high - middle)]
        values |= {"ln_2": pair(ln2), "ln_10": pair(ln10), "log2_unit": pair(1 / ln2), "log10_unit": pair(1 / ln10)}
        return values | {"half_pi": pair(pi / 2), "per_pi": pair(1 / pi), "normal_peak": pair(1 / gmpy2.sqrt(2 * pi))}


def tables() -> dict[str, list[list[float]]]:
    """Each in its parts."""
    with gmpy2.context(precision=PRECISION):
        turns: list[list[float]] = [[], [], []]
        for e in EXPONENTS:
            rest = gmpy2.fmod(gmpy2.exp2(e - 52) * 2 / gmpy2.const_pi(), 4)
            for ulp, turn in zip((-51, -104, None), turns, strict=True):
                turn.append(float(rest) if ulp is None else narrow.cut(rest, ulp))
                rest -= turn[-1]
        places = [mpfr(j) / ERF_STEPS for j in range(ERF_CELLS + 1)]
        erfs = [pair(gmpy2.erf(c)) for c in places]
        slopes = [pair(2 / gmpy2.sqrt(gmpy2.const_pi()) * gmpy2.exp(-c * c)) for c in places]
        return {"turns": turns, "erf_values": columns(erfs), "erf_slopes": columns(slopes)}


def mills_cells() -> list[tuple[Fraction, Fraction]]:
    """The middle of each, and half of its width."""
    ends = [narrow.pattern(MILLS_START + (j << 52 - MILLS_BITS)) for j in range((MILLS_OCTAVES << MILLS_BITS) + 1)]
    return [(Fraction((a + b) / 2), Fraction((b - a) / 2)) for a, b in pairwise(ends)]


def mills_terms(c: Fraction, count: int) -> list[mpfr]:
    """Of Mills' ratio at c + h, in h: M' = c M - 1 says what follows the first."""
    place = mpfr(c)
    ratio = gmpy2.sqrt(gmpy2.const_pi() / 2) * gmpy2.exp(place * place / 2) * gmpy2.erfc(place / gmpy2.sqrt(mpfr(2)))
    terms = [ratio, place * ratio - 1]
    for k in range(1, count - 1):
        terms.append((place * terms[k] + terms[k - 1]) / (k + 1))
    return terms


def mills() -> dict[str, list[float]]:
    """Rows of cells: the first terms in two parts, and those that follow."""
    with gmpy2.context(precision=PRECISION):
        cells = [mills_terms(c, MILLS_PAIRS + MILLS_TERMS) for c, _ in mills_cells()]
    leading = [column for k in range(MILLS_PAIRS) for column in columns([pair(terms[k]) for terms in cells])]
    return {"mills_leading": leading, "mills_terms": columns([[*map(float, t[MILLS_PAIRS:])] for t in cells])}


def columns(rows: list[list[float]]) -> list[list[float]]:
    return [list(column) for column in zip(*rows, strict=True)]


def header() -> str:
    lines = [
        "/* Written by wide_approximations.py: do not edit. */",
        "#ifndef SOFTNUM_WIDE_CONSTANTS_H",
        "#define SOFTNUM_WIDE_CONSTANTS_H",
        "",
        f"enum {{ SN_WIDE_TURN_FIRST = {EXPONENTS[0]}, SN_WIDE_ERF_STEPS = {ERF_STEPS}, "
        f"SN_WIDE_ERF_CELLS = {ERF_CELLS}, SN_WIDE_ERF_TERMS = {ERF_TERMS} }};",
        f"enum {{ SN_WIDE_MILLS_BITS = {MILLS_BITS}, SN_WIDE_MILLS_CELLS = {MILLS_OCTAVES << MILLS_BITS}, "
        f"SN_WIDE_MILLS_PAIRS = {MILLS_PAIRS}, SN_WIDE_MILLS_TERMS = {MILLS_TERMS} }};",
        f"#define SN_WIDE_MILLS_START 0x{MILLS_START:x}u",
        "",
    ]
    for name, values in constants().items():
        lines += [f"#define SN_WIDE_{name.upper()}{part} {narrow.literal(x)}"
                  for part, x in zip(("_HIGH", "_LOW", "_LEAST"), values, strict=False)]  # fmt: skip
    for s in SERIES:
        rest, sizes = s.rest(), f"SN_WIDE_{s.name.upper()}"
        lines += ["", f"/* {s.what}, for arguments from {float(s.low):.6g} to {float(s.high):.6g}; what follows: of"
                      f" degree {s.degree}, relative error below 2^{rest.approximation}, of the evaluation"
                      f" 2^{rest.evaluation} */",
                  f"enum {{ {sizes}_PAIRS = {s.pairs}, {sizes}_DEGREE = {s.degree} }};",
                  f"static const double sn_wide_{s.name}_leading[][2] = {{"
                  + ", ".join(f"{{{narrow.literal(a)}, {narrow.literal(b)}}}" for a, b in s.leading()) + "};",
                  f"static const double sn_wide_{s.name}_terms[] = {{"
                  f"{', '.join(map(narrow.literal, narrow.coefficients(rest)))}}};"]  # fmt: skip
    for name, of_table in tables().items():
        for part, column in zip(("", "_low", "_least"), of_table, strict=False):
            lines += ["", f"static const double sn_wide_{name}{part}[] = {{{', '.join(map(narrow.literal, column))}}};"]
    for name, rows in mills().items():
        text = ", ".join("{" + ", ".join(map(narrow.literal, row)) + "}" for row in rows)
        lines += ["", f"static const double sn_wide_{name}[][SN_WIDE_MILLS_CELLS] = {{{text}}};"]
    return "\n".join([*lines, "", "#endif", ""])


def prove_erf() -> None:
    """What the terms after the last come to, by E: in units of |h E|, and of the result."""
    for j in range(ERF_CELLS + 1):
        c, h = Fraction(j, ERF_STEPS), Fraction(1, 2 * ERF_STEPS)
        terms, total = [Fraction(1), 2 * c * h], Fraction(0)
        for k in range(1, 40):
            terms.append((2 * c * h * terms[-1] + 2 * h * h * terms[-2]) / (k + 1))
            total += terms[-1] / (k + 2) if k >= ERF_TERMS else 0
        with gmpy2.context(precision=200):
            slope = 2 / gmpy2.sqrt(gmpy2.const_pi()) * gmpy2.exp(-(mpfr(c) ** 2))
            assert slope * mpfr(2 * total) < 2.0**-68, j
    print("erf: the terms left out are below 2^-68 |h|")


def prove_mills() -> None:
    """What the terms after the last come to, by that with h^4; that those fall by 2^-5 from one to the next."""
    for c, h in mills_cells():
        with gmpy2.context(precision=PRECISION):
            sizes = [abs(t) * mpfr(h) ** k for k, t in enumerate(mills_terms(c, 60))]
        assert all(b < a / 31 for a, b in pairwise(sizes)), float(c)
        assert 2 * sum(sizes[MILLS_PAIRS + MILLS_TERMS :]) < 2.0**-54 * sizes[MILLS_PAIRS], float(c)
    print("Mills' ratio: the terms left out are below 2^-54 of the fifth")


def stated(text: str, name: str) -> list[float]:
    """The numbers of a table in wide_constants.h."""
    found = re.search(rf"sn_wide_{name}\[\](?:\[\w+\])? = {{([^;]*)}};", text)
    return [float.fromhex(t) for t in re.findall(r"[-+.\w]+", found.group(1))]


def main() -> None:
    if "--prove" in sys.argv:
        text = (HERE / "wide_constants.h").read_text(encoding="utf-8")
        for s in SERIES:
            narrow.prove(s.rest(), stated(text, f"{s.name}_terms"))
        prove_erf()
        prove_mills()
        return
    (HERE / "wide_constants.h").write_text(header(), encoding="utf-8")


if __name__ == "__main__":
    main()
