"""The tables of docs/reference/speed.md, made from the record of one run: ``python -m benchmarks.speed_page``.

The record is what ``python -m benchmarks ... --out benchmarks/records/speed.json`` keeps. A line gathers rows:
what their least and largest speeds are, and ratios.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.goals import COMPENSATED, OF_ONE, OF_OTHERS, OF_POWERS, ONE_ROUNDING, TWO_ROUNDINGS

__all__ = ["LINES", "PAGE", "RECORD", "SECTIONS", "main", "tables", "with_tables"]

ROOT = Path(__file__).resolve().parents[1]
PAGE, RECORD = ROOT / "docs/reference/speed.md", ROOT / "benchmarks/records/speed.json"
#: what a run must have measured
SECTIONS = ("values", "arithmetic", "elementary", "gemm", "exact", "units", "vectors")


@dataclass(frozen=True)
class Line:
    """`rows`: expressions that names match as a whole, of one part of the line each, as are those of `peers`.

    against: the third column; the ratios of the parts go where it has `{}`, the speeds of peers where `{0}` ...
    """

    what: str
    rows: tuple[str, ...]
    against: str = ""
    peers: tuple[str, ...] = ()


def _quantize(verb: str) -> str:
    return rf"{verb} (subnormal )?float32 \w+, (?!stochastic).*"


_GEMM = r"GEMM 512\^3, "
_BOTH = ("avx512", "avx2")
_SMALL = "(binary16|bfloat16|dlfloat16|e6m9)"
_DTYPES = ("peer: ml_dtypes encode float32, e5m2", "peer: ml_dtypes decode float32, e5m2", "peer: ml_dtypes add e5m2")
#: by the first cell of a table's head
LINES: dict[str, tuple[Line, ...]] = {
    "work, one thread": (
        Line("quantize float32 to e5m2, bfloat16, dlfloat16: nearest and directed modes, any data",
             (_quantize("quantize"),), "{} x copying"),
        Line("encode, the same", (_quantize("encode"),), "{} x copying (ml_dtypes: {0} for e5m2)", _DTYPES[:1]),
        Line("decode", (r"decode .*float32",), "{} x copying (ml_dtypes: {0})", _DTYPES[1:2]),
        Line("quantize and encode, stochastic", (r"(quantize|encode) .*float32 .*, stochastic",), "{} x copying"),
        Line("add, multiply 8-bit codes", (r"(add|multiply) e5m2( x e4m3fn -> e5m2)?",), "ml_dtypes: {0}", _DTYPES[2:]),
        Line("add, multiply 16-bit codes (binary16, bfloat16, dlfloat16, e6m9)", (rf"(add|multiply) {_SMALL}",)),
        Line("add binary32 codes", ("add binary32",)),
        Line("with flags, and binary64, any 64-bit format: add, multiply; divide, sqrt; fma",
             tuple(rf"({n}) (binary32|binary64|e11m40) with flags" for n in ("add|multiply", "divide|sqrt", "fma")),
             "softfloatpy, a call each: {0}", ("peer: Berkeley SoftFloat .*",)),
        Line("exp, gelu, pow of codes of up to 16 bits, by table", (r".*, by table",)),
        Line("functions of one operand, in lanes: binary32 and formats of up to 30 digits: AVX-512; AVX2",
             tuple(rf"{OF_ONE} binary32, {isa}" for isa in _BOTH),
             "CORE-MATH, in C, of binary32 alone: {0}; MPFR through gmpy2: {1}",
             ("peer: CORE-MATH's .* of float", r"peer: MPFR .* to 24 bits.*")),
        Line("the same, codes drawn uniformly",
             tuple(rf"{OF_ONE} binary32, {isa}, codes drawn uniformly" for isa in _BOTH)),
        Line("of binary64, in every deterministic mode: AVX-512; AVX2",
             tuple(rf"{OF_ONE} binary64, {isa}" for isa in _BOTH), "CORE-MATH, in C: {0}",
             ("peer: CORE-MATH's .* of double",)),
        Line("the same, codes drawn uniformly",
             tuple(rf"{OF_ONE} binary64, {isa}, codes drawn uniformly" for isa in _BOTH)),
        Line("pow and its kin, of binary32: AVX-512; AVX2", tuple(rf"{OF_POWERS} binary32, {isa}" for isa in _BOTH)),
        Line("hypot, atan2, logaddexp of binary32: AVX-512; AVX2",
             tuple(rf"{OF_OTHERS} binary32, {isa}" for isa in _BOTH)),
        Line("pow and its kin, of binary64: AVX-512; AVX2", tuple(rf"{OF_POWERS} binary64, {isa}" for isa in _BOTH)),
        Line("hypot, atan2, logaddexp of binary64: AVX-512; AVX2",
             tuple(rf"{OF_OTHERS} binary64, {isa}" for isa in _BOTH)),
        Line("test vectors of fma with flags, made and checked in memory: binary16; binary32",
             tuple(rf"fma {f}, made and checked in memory" for f in ("binary16", "binary32")),
             "softfloatpy: {0}", (r"peer: softfloatpy .*",)),
        Line("the same through a file",
             tuple(rf"fma {f}, made and checked through a file" for f in ("binary16", "binary32"))),
    ),
    "product of 512^3, one thread": (
        Line("product rounded to e5m2, accumulated in (1,6,9)", (_GEMM + "product e5m2, accumulate e6m9",)),
        Line("exact e5m2 products, accumulated in (1,6,9); in chunks of 64",
             (_GEMM + "exact product, accumulate e6m9", _GEMM + "Wang 2018: .*")),
        Line("bfloat16 into bfloat16, binary16 into binary16, one rounding a step",
             (_GEMM + "(bfloat16|binary16) into .*, fused",)),
        Line("accumulated in binary32; binary32 throughout",
             (_GEMM + "exact product, accumulate binary32", _GEMM + "binary32, fused")),
        Line("int8 into int32; q4.4 into saturating q8.6",
             (_GEMM + "int8 into int32, .*", _GEMM + "q4.4 into q8.6, saturate")),
        Line("stochastic product and sum into (1,6,9), r = 12; r = 32",
             tuple(_GEMM + rf"stochastic product and sum, .* r = {r}" for r in (12, 32))),
        Line("stochastic sum, r = 12, by Philox-10; Philox-7, two draws a word; an LFSR; bits given",
             tuple(_GEMM + rf"stochastic sum, e6m9, r = 12, {s}"
                   for s in ("philox4x32-10", "philox4x32-7/2", "lfsr32", "given"))),
        Line("tensor cores: V100; A100; H100 fp16; H100 e4m3",
             tuple(_GEMM + f"nvidia_{unit}" for unit in ("v100_fp16", "a100_fp16", "h100_fp16", "h100_e4m3"))),
        Line("block formats, exact blocks: OCP's, nvfp4", (_GEMM + r"(ocp_mx\w+|nvfp4)",)),
        Line("exact sums, one rounding: e5m2; binary16; binary32",
             tuple(rf"exact {f} into .*, 512\^3" for f in ("e5m2", "binary16", "binary32"))),
        Line("other deterministic modes: fused; with rounded products",
             (_GEMM + "exact product, e6m9, rounding up", _GEMM + "product e5m2, e6m9, toward zero")),
        Line("any unit, by the definition in lanes: one rounding a step; two; Kahan",
             (_GEMM + ONE_ROUNDING, _GEMM + TWO_ROUNDINGS, _GEMM + COMPENSATED)),
        Line("the same, counted (`return_stats`)", (_GEMM + ".*, counted",)),
        Line("what is left to the scalar definition, one output at a time", (_GEMM + "scalar definition: .*",)),
    ),
}  # fmt: skip


def _number(x: float) -> str:
    """Two digits, three from 100 on."""
    return f"{x:.2g}" if x < 99.5 else f"{x:.0f}"


def _span(values: Sequence[float], unit: str = "") -> str:
    low, high = _number(min(values)), _number(max(values))
    return (low if low == high else f"{low} to {high}") + (f" {unit}" if unit else "")


def _matching(rows: list[dict], expression: str) -> list[dict]:
    found = [row for row in rows if re.fullmatch(expression, row["name"])]
    if not found:
        raise ValueError(f"no row of {RECORD.name} is called {expression!r}: run its section again")
    return found


def _cells(line: Line, rows: list[dict], ratios: bool) -> tuple[str, str]:
    parts = [_matching(rows, expression) for expression in line.rows]
    units = {row["speed_unit"] for part in parts for row in part}
    if len(units) != 1:
        raise ValueError(f"{line.what}: speeds in {sorted(units)}")
    speeds = "; ".join(_span([row["speed"] for row in part]) for part in parts)
    measured = [[row["ratio"] for row in part if row["ratio"] is not None] for part in parts]
    shown = "; ".join(_span(part) for part in measured if part)
    said = [
        _span([row["speed"] for row in found], found[0]["speed_unit"])
        for found in (_matching(rows, expression) for expression in line.peers)
    ]
    if ratios:
        return speeds, f"{shown} x"
    return f"{speeds} {units.pop()}", line.against.replace("{}", shown).format(*said)


def tables(record: dict) -> dict[str, str]:
    """The tables, by the first cell of their heads."""
    rows, out = record["rows"], {}
    for head, lines in LINES.items():
        of_products = head.startswith("product")
        text = f"| {head} | GMAC/s | sgemm is faster by |\n" if of_products else f"| {head} | speed | against |\n"
        text += "|---|---|---|\n"
        for line in lines:
            text += "| " + " | ".join((line.what, *_cells(line, rows, of_products))).rstrip() + " |\n"
        out[head] = text
    return out


def with_tables(text: str, record: dict) -> str:
    """A text whose tables with these heads are the record's."""
    for head, table in tables(record).items():
        pattern = rf"^\| {re.escape(head)} \|.*\n(\|.*\n)+"
        if len(re.findall(pattern, text, re.MULTILINE)) != 1:
            raise ValueError(f"{PAGE.name} has no table, or several, with the head {head!r}")
        text = re.sub(pattern, lambda _: table, text, flags=re.MULTILINE)  # noqa: B023
    return text


def main() -> None:
    """Write the tables."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


if __name__ == "__main__":
    main()
