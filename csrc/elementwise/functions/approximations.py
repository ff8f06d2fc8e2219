"""Tables and polynomials of the functions in lanes: python csrc/elementwise/functions/approximations.py [--prove].

Writes constants.h beside it. The polynomials come from Sollya (fpminimax), tables and constants from MPFR. With
--prove, what the headers state is proved again: Sollya bounds how far each polynomial is from its function (supnorm,
against a Taylor polynomial whose remainder is added), Gappa how far its evaluation in binary64 is from the polynomial,
with fused multiply-adds and without. Both are in Debian.
"""

from __future__ import annotations

import math
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, factorial
from pathlib import Path

import gmpy2
from gmpy2 import mpfr

HERE = Path(__file__).parent
PRECISION = 1400  # 2 / pi times 2^1023, and more than 100 bits
STEPS = 16  # of exp's table, in an octave
CELLS = 16  # of log's
LOG_START = 0x3FE6800000000000  # the pattern of the least number of its first one
FINE_CELLS, FINE_START = 128, 0x3FE6900000000000  # the same of logarithms in pairs
EXPONENTS = range(-2, 1024)  # of operands that sin reduces
ERF_CELLS, ERF_TERMS = 96, 9  # 16 in a unit, from 0 to 6
MILLS_PLACE, MILLS_FROM, MILLS_DEGREE, MILLS_BOUND, MILLS_EVALUATION = 5, Fraction(1, 2), 22, -52, -49


def cut(x: mpfr, ulp: int) -> float:
    """The multiple of 2^ulp nearest to x."""
    return float(gmpy2.rint(x * gmpy2.exp2(-ulp)) * gmpy2.exp2(ulp))


@cache
def bernoulli(n: int) -> Fraction:
    return Fraction(n == 0) - sum((comb(n, k) * bernoulli(k) / (n - k + 1) for k in range(n)), Fraction(0))


def tanh_term(k: int) -> Fraction:
    """Of x^(2k + 1) in tanh x."""
    n = 2 * k + 2
    return Fraction(2**n * (2**n - 1)) * bernoulli(n) / factorial(n)


def arcsine_term(k: int) -> Fraction:
    """Of x^(2k + 1) in asin x."""
    return Fraction(comb(2 * k, k), 4**k * (2 * k + 1))


@dataclass(frozen=True)
class Polynomial:
    """Of `degree`, near the sum of terms(k) x^k on [low, high], whose terms after the last are below `rest` of the
    first; the bounds, powers of two, are of the approximation (relative), and of the evaluation (absolute)."""

    name: str
    what: str
    terms: Callable[[int], Fraction]
    count: int
    degree: int
    low: Fraction
    high: Fraction
    rest: float
    approximation: int
    evaluation: int


def _log1p_term(k: int) -> Fraction:
    return Fraction((-1) ** (k + 1), k + 2)


EXP_END = Fraction(math.log(2) / (2 * STEPS) * (1 + 2**-20))
PI_4 = Fraction(math.pi / 4 * (1 + 2**-10))


def log_cells(count: int = CELLS, start: int = LOG_START) -> list[float]:
    """c of each cell: near 1 / m for all m in it."""
    cells = []
    for low, high in log_borders(count, start):
        cells.append(1.0 if low < 1 < high else round(512 / ((low + high) / 2)) / 512)
    return cells


def log_borders(count: int, start: int) -> list[list[float]]:
    """Of the cells, into which an octave is parted by its patterns."""
    return [[pattern(start + (j + i) * 2**52 // count) for i in (0, 1)] for j in range(count)]


def pattern(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def log_end(count: int = CELLS, start: int = LOG_START) -> Fraction:
    """The largest |m c - 1|."""
    cells = zip(log_borders(count, start), log_cells(count, start), strict=True)
    return max(abs(Fraction(border) * Fraction(c) - 1) for borders, c in cells for border in borders)


FINE_END = log_end(FINE_CELLS, FINE_START)


POLYNOMIALS = (
    Polynomial("sinh", "(sinh r - r) / r^3 in r^2", lambda k: Fraction(1, factorial(2 * k + 3)), 12, 2,
               Fraction(0), EXP_END**2, 1e-60, -52, -55),
    Polynomial("cosh", "(cosh r - 1) / r^2 in r^2", lambda k: Fraction(1, factorial(2 * k + 2)), 12, 2,
               Fraction(0), EXP_END**2, 1e-60, -51, -53),
    Polynomial("log1p", "(log(1 + r) - r) / r^2 in r", _log1p_term, 40, 8,
               -log_end(), log_end(), 2.0**-270, -52, -53),
    Polynomial("log_cubic", "(log(1 + r) - r + r^2 / 2) / r^3 in r", lambda k: Fraction((-1) ** k, k + 3), 40, 5,
               -FINE_END, FINE_END, 2.0**-250, -52, -53),
    Polynomial("sin", "(sin r - r) / r^3 in r^2", lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 3)), 24, 6,
               Fraction(0), PI_4**2, 1e-60, -53, -54),
    Polynomial("cos", "(cos r - 1) / r^2 in r^2", lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 2)), 24, 6,
               Fraction(0), PI_4**2, 1e-60, -60, -52),
    Polynomial("tanh", "(tanh x - x) / x^3 in x^2", lambda k: tanh_term(k + 1), 40, 9,
               Fraction(0), Fraction(1, 16), 2.0**-200, -53, -53),
    Polynomial("gelu", "((Phi(x) - 1/2) sqrt(2 pi) / x - 1) / x^2 in x^2",
               lambda k: Fraction((-1) ** (k + 1), 2 ** (k + 1) * factorial(k + 1) * (2 * k + 3)), 30, 7,
               Fraction(0), Fraction(1, 4), 2.0**-150, -53, -55),
    Polynomial("atan", "(atan r - r) / r^3 in r^2", lambda k: Fraction((-1) ** (k + 1), 2 * k + 3), 24, 4,
               Fraction(0), Fraction(273, 2**18), 2.0**-200, -53, -54),
    Polynomial("asin", "(asin x - x) / x^3 in x^2", lambda k: arcsine_term(k + 1), 100, 12,
               Fraction(0), Fraction(1, 4), 2.0**-200, -51, -55),
    Polynomial("asinh", "(asinh x - x) / x^3 in x^2", lambda k: (-1) ** (k + 1) * arcsine_term(k + 1), 40, 6,
               Fraction(0), Fraction(1, 64), 2.0**-200, -53, -55),
    Polynomial("atanh", "(atanh x - x) / x^3 in x^2", lambda k: Fraction(1, 2 * k + 3), 40, 6,
               Fraction(0), Fraction(1, 64), 2.0**-200, -53, -54),
)  # fmt: skip


def mills_terms() -> list[float]:
    """P of Mills' ratio: for which rho (normal.h) is 0 at Chebyshev's points."""
    low, high, n = mpfr(mills_low()), mpfr(1), MILLS_DEGREE + 1
    with gmpy2.context(precision=400):
        angles = [(2 * i + 1) * gmpy2.const_pi() / (2 * n) for i in range(n)]
        rows = []
        for v in [(low + high) / 2 + (high - low) / 2 * gmpy2.cos(angle) for angle in angles]:
            rows.append([residual_term(i, v) for i in range(n)] + [mpfr(1)])
        return [float(x) for x in solved(rows)]


def mills_low() -> Fraction:
    return (MILLS_FROM - MILLS_PLACE) / (MILLS_FROM + MILLS_PLACE)


def residual_term(i: int, v):
    """Of what 1 - rho is a sum of, for P = v^i."""
    slope = i * v ** (i - 1) if i else 0
    return v**i * (1 + v) / 2 - (1 - v) ** 2 * ((1 - v) * slope - v**i) / (4 * MILLS_PLACE**2)


def solved(rows: list[list[mpfr]]) -> list[mpfr]:
    """The solution of linear equations, by Gauss and Jordan."""
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def erf_left_out(c: Fraction) -> Fraction:
    """A bound of the sum of |T_k| / (k + 1) beyond the last term, for |h| = 1 / 32 (normal.h)."""
    h = Fraction(1, 2 * 16)
    terms, total = [Fraction(0), Fraction(1)], Fraction(0)
    for k in range(60):
        terms.append((2 * c * h * terms[-1] + 2 * h * h * terms[-2]) / (k + 1))
        total += terms[-1] / (k + 2) if k >= ERF_TERMS else 0
    return total * 2  # what follows is less than the last one


def run(program: str, script: str, *arguments: str) -> str:
    return subprocess.run(
        [program, *arguments], input=script + "\nquit;\n", capture_output=True, text=True, check=True
    ).stdout


def taylor(p: Polynomial) -> str:
    return " + ".join(f"({f.numerator}/{f.denominator})*x^{k}" for k in range(p.count) if (f := p.terms(k)))


def coefficients(p: Polynomial) -> list[float]:
    interval = f"[{p.low.numerator}/{p.low.denominator};{p.high.numerator}/{p.high.denominator}]"
    script = f"""prec=400!; display=hexadecimal!; f = {taylor(p)};
    q = fpminimax(f, {p.degree}, [|D...|], {interval}, relative);
    for i from 0 to {p.degree} do {{ print(coeff(q, i)); }};"""
    return [float.fromhex(line) for line in run("sollya", script).split()]


def constants() -> dict[str, float]:
    with gmpy2.context(precision=PRECISION):
        ln2, ln10, pi = gmpy2.log(mpfr(2)), gmpy2.log(mpfr(10)), gmpy2.const_pi()
        values = {}
        for name, octave, scale in (("exp", ln2, mpfr(1)), ("exp10", ln2 / ln10, ln10)):
            high = cut(octave / STEPS, -40)
            values |= {f"{name}_steps": float(STEPS / octave), f"{name}_high": high,
                       f"{name}_low": float(octave / STEPS - high), f"{name}_scale": float(scale)}  # fmt: skip
        for name, x in (("ln_2", ln2), ("per_ln_2", 1 / ln2)):
            values |= {name: float(x), f"{name}_low": float(x - float(x))}
        for name, unit in units().items():
            high, unit_high = cut(ln2 * unit, -42), cut(unit, -12)
            values |= {f"{name}_octave_high": high, f"{name}_octave_low": float(ln2 * unit - high),
                       f"{name}_unit_high": unit_high, f"{name}_unit_low": float(unit - unit_high)}  # fmt: skip
        for name, x, ulp in (("half_pi", pi / 2, -40), ("per_pi", 1 / pi, -27)):
            high = cut(x, ulp)
            values |= {f"{name}_high": high, f"{name}_low": float(x - high)}
        values |= {"cbrt_2": float(gmpy2.cbrt(mpfr(2))), "cbrt_half": float(gmpy2.cbrt(mpfr(0.5))),
                   "sqrt_half": float(gmpy2.sqrt(mpfr(0.5)))}  # fmt: skip
        return values | {"half_pi": float(pi / 2), "mills_place": float(MILLS_PLACE),
                         "normal_peak": float(1 / gmpy2.sqrt(2 * pi))}  # fmt: skip


def units() -> dict[str, mpfr]:
    """1 / log(b) of each base."""
    return {"log": mpfr(1), "log2": 1 / gmpy2.log(mpfr(2)), "log10": 1 / gmpy2.log(mpfr(10))}


def tables() -> dict[str, list[list[float]]]:
    with gmpy2.context(precision=PRECISION):
        powers = [gmpy2.exp2(mpfr(j) / STEPS) for j in range(STEPS)]
        logs = {}
        for name, unit in units().items():
            exact = [-gmpy2.log(mpfr(c)) * unit for c in log_cells()]
            high = [cut(x, -42) for x in exact]
            logs[f"{name}_cells"] = [high, [float(x - h) for x, h in zip(exact, high, strict=True)]]
        fine = log_cells(FINE_CELLS, FINE_START)
        exact = [-gmpy2.log2(mpfr(c)) for c in fine]
        high = [cut(x, -42) for x in exact]
        logs |= {"fine_inverse": [fine], "fine_cells": [high, [float(x - h) for x, h in zip(exact, high, strict=True)]]}
        turns: list[list[float]] = [[], [], []]
        for e in EXPONENTS:
            rest = gmpy2.fmod(gmpy2.exp2(e - 29) * 2 / gmpy2.const_pi(), 4)
            for ulp, turn in zip((-21, -44, None), turns, strict=True):
                turn.append(float(rest) if ulp is None else cut(rest, ulp))
                rest -= turn[-1]
        places = [mpfr(j) / 16 for j in range(ERF_CELLS + 1)]
        erfs = [gmpy2.erf(c) for c in places]
        slopes = [2 / gmpy2.sqrt(gmpy2.const_pi()) * gmpy2.exp(-c * c) for c in places]
        heads = [cut(x, gmpy2.get_exp(x) - 22) for x in slopes]
        tangents = [gmpy2.atan(mpfr(j) / 16) for j in range(16)]
        arcs = {}
        for name, unit in (("arcs", mpfr(1)), ("arcs_pi", 1 / gmpy2.const_pi())):
            high = [cut(x * unit, -40) for x in tangents]
            arcs[name] = [high, [float(x * unit - h) for x, h in zip(tangents, high, strict=True)]]
        return {
            "powers": [[float(x) for x in powers], [float(x - float(x)) for x in powers]],
            "log_inverse": [log_cells()],
            **logs,
            "log_cbrt": [[float(1 / gmpy2.cbrt(mpfr(c))) for c in log_cells()]],
            "log_rsqrt": [[float(gmpy2.sqrt(mpfr(c))) for c in log_cells()]],
            **arcs,
            "turns": turns,
            "erf_values": [[float(x) for x in erfs], [float(x - float(x)) for x in erfs]],
            "erf_slopes": [heads, [float(x - head) for x, head in zip(slopes, heads, strict=True)]],
        }


def literal(x: float) -> str:
    return float(x).hex().replace("0x1.0000000000000p", "0x1p") if x else "0.0"


def header() -> str:
    lines = [
        "/* Written by approximations.py: do not edit. */",
        "#ifndef SOFTNUM_FUNCTION_CONSTANTS_H",
        "#define SOFTNUM_FUNCTION_CONSTANTS_H",
        "",
        '#include "softnum/word/base.h"',
        "",
        f"enum {{ SN_EXP_STEPS = {STEPS}, SN_LOG_CELLS = {CELLS}, SN_TURN_FIRST = {EXPONENTS[0]} }};",
        f"enum {{ SN_ERF_CELLS = {ERF_CELLS}, SN_ERF_TERMS = {ERF_TERMS}, SN_MILLS_DEGREE = {MILLS_DEGREE} }};",
        f"enum {{ SN_FINE_CELLS = {FINE_CELLS} }};",
        f"#define SN_LOG_START 0x{LOG_START:x}u",
        f"#define SN_FINE_START 0x{FINE_START:x}u",
        "",
    ]
    lines += [f"#define SN_FUNCTION_{name.upper()} {literal(x)}" for name, x in constants().items()] + [""]
    for p in POLYNOMIALS:
        lines.append(f"/* {p.what}: of degree {p.degree}, for arguments from {float(p.low):.6g} to {float(p.high):.6g};"
                     f" relative error below 2^{p.approximation}, of the evaluation 2^{p.evaluation} */")  # fmt: skip
        lines.append(f"static const double sn_{p.name}_terms[] = {{{', '.join(map(literal, coefficients(p)))}}};")
    lines.append(f"/* P of Mills' ratio (normal.h), on {float(mills_low()):.6g} to 1: |rho| below 2^{MILLS_BOUND} */")
    lines.append(f"static const double sn_mills_terms[] = {{{', '.join(map(literal, mills_terms()))}}};")
    for name, columns in tables().items():
        for part, column in zip(("", "_low", "_least"), columns, strict=False):
            lines += ["", f"static const double sn_{name}{part}[] = {{{', '.join(map(literal, column))}}};"]
    return "\n".join([*lines, "", "#endif", ""])


def prove_mills(terms: list[float]) -> None:
    """The bound of rho, and of its polynomial's evaluation."""
    slope = horner([(i + 1) * Fraction(t) for i, t in enumerate(terms[1:])])
    script = f"""prec=400!; p = {horner(list(map(Fraction, terms)))};
    q = p*(1+x)/2 - (1-x)^2*((1-x)*({slope}) - p)/{4 * MILLS_PLACE**2};
    print(sup(supnorm(horner(q), 1, [{mills_low()};1], absolute, 2^-8)));"""
    bound = float(run("sollya", script).split()[-1])
    print(f"mills: residual 2^{math.log2(bound):.2f}, stated 2^{MILLS_BOUND}")
    assert bound <= 2.0**MILLS_BOUND
    low = Fraction(math.floor(mills_low() * 1024), 1024)
    prove_evaluation("mills", terms, low, Fraction(1), MILLS_EVALUATION)


def horner(terms: list[Fraction]) -> str:
    return " + x * (".join(f"({t.numerator}/{t.denominator})" for t in terms) + ")" * (len(terms) - 1)


def prove_erf() -> None:
    """The terms left out, times E h."""
    with gmpy2.context(precision=200):
        for j in range(ERF_CELLS + 1):
            c = Fraction(j, 16)
            slope = 2 / gmpy2.sqrt(gmpy2.const_pi()) * gmpy2.exp(-(mpfr(c) ** 2))
            assert slope * mpfr(erf_left_out(c)) < 2.0**-54, j
    print("erf: the terms left out are below 2^-54 |h|")


def prove(p: Polynomial, terms: list[float]) -> None:
    interval = f"[{p.low.numerator}/{p.low.denominator};{p.high.numerator}/{p.high.denominator}]"
    horner = " + x * (".join(t.hex() for t in terms) + ")" * p.degree
    script = f"prec=400!; f = {taylor(p)}; q = {horner}; print(sup(supnorm(q, f, {interval}, relative, 2^-8)));"
    bound = float(run("sollya", script).split()[-1]) + p.rest
    print(f"{p.name}: approximation 2^{math.log2(bound):.2f}, stated 2^{p.approximation}")
    assert bound <= 2.0**p.approximation, p.name
    prove_evaluation(p.name, terms, p.low, p.high, p.evaluation)


def prove_evaluation(name: str, terms: list[float], low: Fraction, high: Fraction, bound: int) -> None:
    """That Horner's rule in binary64 is off by less than 2^bound."""
    for fused in (False, True):
        lines = ["@rnd = float<ieee_64, ne>;", "x = rnd(xx);"]
        names = [f"c{i}" for i in range(len(terms))]
        lines += [f"{n} = {Fraction(t).numerator}b{1 - Fraction(t).denominator.bit_length()};"
                  for n, t in zip(names, terms, strict=True)]  # fmt: skip
        value, exact = names[-1], names[-1]
        for n in reversed(names[:-1]):
            value = f"rnd(x * ({value}) + {n})" if fused else f"rnd(rnd(x * ({value})) + {n})"
            exact = f"(x * ({exact}) + {n})"
        lines += [f"v = {value};", f"e = {exact};",
                  f"{{ x in [{decimal(low)}, {decimal(high)}] -> |v - e| <= 1b{bound} }}"]  # fmt: skip
        out = subprocess.run(["gappa"], input="\n".join(lines), capture_output=True, text=True, check=False)
        assert out.returncode == 0, (name, fused, out.stderr)
    print(f"{name}: evaluation below 2^{bound}, proved")


def decimal(f: Fraction) -> str:
    """Of a dyadic fraction, as Gappa writes it."""
    assert f.denominator & (f.denominator - 1) == 0
    return f"{f.numerator}b{1 - f.denominator.bit_length()}"


def stated(text: str, name: str) -> list[float]:
    """The coefficients of a polynomial in constants.h."""
    found = re.search(rf"sn_{name}_terms\[\] = {{([^}}]*)}}", text)
    return [float.fromhex(t.strip()) for t in found.group(1).split(",")]


def main() -> None:
    if "--prove" in sys.argv:
        text = (HERE / "constants.h").read_text()
        for p in POLYNOMIALS:
            prove(p, stated(text, p.name))
        prove_mills(stated(text, "mills"))
        prove_erf()
        return
    (HERE / "constants.h").write_text(header())


if __name__ == "__main__":
    main()
