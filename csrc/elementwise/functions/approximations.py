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
EXPONENTS = range(-2, 1024)  # of operands that sin reduces


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


def log_cells() -> list[float]:
    """c of each cell: near 1 / m for all m in it."""
    cells = []
    for j in range(CELLS):
        low, high = (pattern(LOG_START + (j + i) * 2**48) for i in (0, 1))
        cells.append(1.0 if low < 1 < high else round(512 / ((low + high) / 2)) / 512)
    return cells


def pattern(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def log_end() -> Fraction:
    """The largest |m c - 1|."""
    ends = []
    for j, c in enumerate(log_cells()):
        ends += [abs(Fraction(pattern(LOG_START + (j + i) * 2**48)) * Fraction(c) - 1) for i in (0, 1)]
    return max(ends)


POLYNOMIALS = (
    Polynomial("sinh", "(sinh r - r) / r^3 in r^2", lambda k: Fraction(1, factorial(2 * k + 3)), 12, 2,
               Fraction(0), EXP_END**2, 1e-60, -52, -55),
    Polynomial("cosh", "(cosh r - 1) / r^2 in r^2", lambda k: Fraction(1, factorial(2 * k + 2)), 12, 2,
               Fraction(0), EXP_END**2, 1e-60, -51, -53),
    Polynomial("log1p", "(log(1 + r) - r) / r^2 in r", _log1p_term, 40, 8,
               -log_end(), log_end(), 2.0**-270, -52, -53),
    Polynomial("sin", "(sin r - r) / r^3 in r^2", lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 3)), 24, 6,
               Fraction(0), PI_4**2, 1e-60, -53, -54),
    Polynomial("cos", "(cos r - 1) / r^2 in r^2", lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 2)), 24, 6,
               Fraction(0), PI_4**2, 1e-60, -60, -52),
    Polynomial("tanh", "(tanh x - x) / x^3 in x^2", lambda k: tanh_term(k + 1), 40, 9,
               Fraction(0), Fraction(1, 16), 2.0**-200, -53, -53),
)  # fmt: skip


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
        values["ln_2"] = float(ln2)
        for name, unit in units().items():
            high, unit_high = cut(ln2 * unit, -42), cut(unit, -12)
            values |= {f"{name}_octave_high": high, f"{name}_octave_low": float(ln2 * unit - high),
                       f"{name}_unit_high": unit_high, f"{name}_unit_low": float(unit - unit_high)}  # fmt: skip
        return values | {"half_pi": float(pi / 2)}


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
        turns: list[list[float]] = [[], [], []]
        for e in EXPONENTS:
            rest = gmpy2.fmod(gmpy2.exp2(e - 29) * 2 / gmpy2.const_pi(), 4)
            for ulp, turn in zip((-21, -44, None), turns, strict=True):
                turn.append(float(rest) if ulp is None else cut(rest, ulp))
                rest -= turn[-1]
        return {
            "powers": [[float(x) for x in powers], [float(x - float(x)) for x in powers]],
            "log_inverse": [log_cells()],
            **logs,
            "turns": turns,
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
        f"#define SN_LOG_START 0x{LOG_START:x}u",
        "",
    ]
    lines += [f"#define SN_FUNCTION_{name.upper()} {literal(x)}" for name, x in constants().items()] + [""]
    for p in POLYNOMIALS:
        lines.append(f"/* {p.what}: of degree {p.degree}, for arguments from {float(p.low):.6g} to {float(p.high):.6g};"
                     f" relative error below 2^{p.approximation}, of the evaluation 2^{p.evaluation} */")  # fmt: skip
        lines.append(f"static const double sn_{p.name}_terms[] = {{{', '.join(map(literal, coefficients(p)))}}};")
    for name, columns in tables().items():
        for part, column in zip(("", "_low", "_least"), columns, strict=False):
            lines += ["", f"static const double sn_{name}{part}[] = {{{', '.join(map(literal, column))}}};"]
    return "\n".join([*lines, "", "#endif", ""])


def prove(p: Polynomial, terms: list[float]) -> None:
    interval = f"[{p.low.numerator}/{p.low.denominator};{p.high.numerator}/{p.high.denominator}]"
    horner = " + x * (".join(t.hex() for t in terms) + ")" * p.degree
    script = f"prec=400!; f = {taylor(p)}; q = {horner}; print(sup(supnorm(q, f, {interval}, relative, 2^-8)));"
    bound = float(run("sollya", script).split()[-1]) + p.rest
    print(f"{p.name}: approximation 2^{math.log2(bound):.2f}, stated 2^{p.approximation}")
    assert bound <= 2.0**p.approximation, p.name
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
                  f"{{ x in [{decimal(p.low)}, {decimal(p.high)}] -> |v - e| <= 1b{p.evaluation} }}"]  # fmt: skip
        out = subprocess.run(["gappa"], input="\n".join(lines), capture_output=True, text=True, check=False)
        assert out.returncode == 0, (p.name, fused, out.stderr)
    print(f"{p.name}: evaluation below 2^{p.evaluation}, proved")


def decimal(f: Fraction) -> str:
    """Of a dyadic fraction, as Gappa writes it."""
    assert f.denominator & (f.denominator - 1) == 0
    return f"{f.numerator}b{1 - f.denominator.bit_length()}"


def main() -> None:
    if "--prove" in sys.argv:
        text = (HERE / "constants.h").read_text()
        for p in POLYNOMIALS:
            found = re.search(rf"sn_{p.name}_terms\[\] = {{([^}}]*)}}", text)
            prove(p, [float.fromhex(t.strip()) for t in found.group(1).split(",")])
        return
    (HERE / "constants.h").write_text(header())


if __name__ == "__main__":
    main()
