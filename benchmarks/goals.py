"""What is to become faster: what it took before, the goal, and the worst of the rows that were measured for it.

The rows themselves have their limits; a line here gathers those of one kind. `before` is a record, of the commits
before each began, in the rows' unit; no old build is measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

from benchmarks.elementary import OF_TWO_IN_LANES, POWERS
from benchmarks.measure import Row

__all__ = [
    "COMPENSATED", "GOALS", "OF_ONE", "OF_OTHERS", "OF_POWERS", "ONE_ROUNDING", "TWO_ROUNDINGS", "table",
]  # fmt: skip


@dataclass(frozen=True)
class Goal:
    """`rows`: an expression that their names match as a whole."""

    what: str
    before: str
    rows: str


#: rows of functions of binary32 and 64: powers, others of two operands, and those of one
OF_POWERS = f"({'|'.join(POWERS)})"
OF_OTHERS = f"({'|'.join(name for name in OF_TWO_IN_LANES if name not in POWERS)})"
OF_ONE = rf"(?!({OF_POWERS}|{OF_OTHERS}) )\w+"
#: rows of units that the definition computes in lanes, behind their size
ONE_ROUNDING = r"(binary32 toward zero|binary16 x e4m3 .*lanes|e5m2 into e5m10, subnormals flushed)"
TWO_ROUNDINGS = r"(binary32 products and sums, ties away|q4.4 products into q8.8, 2 lanes)"
COMPENSATED = r"Kahan, [^,]*(, to odd)?"

GOALS = (
    Goal("functions of binary32 in lanes, AVX-512", "900 to 8500", rf"{OF_ONE} binary32, avx512"),
    Goal("the same, codes drawn uniformly", "900 to 8500", rf"{OF_ONE} binary32, avx512, codes drawn uniformly"),
    Goal("the same, rounding up, with flags", "900 to 8500", rf"{OF_ONE} binary32, avx512, up, with flags"),
    Goal("functions of binary32 in lanes, AVX2", "900 to 8500", rf"{OF_ONE} binary32, avx2(, .*)?"),
    Goal("functions of binary64, AVX-512", "1000 to 11000", rf"{OF_ONE} binary64, avx512.*"),
    Goal("the same, AVX2", "1000 to 11000", rf"{OF_ONE} binary64, avx2.*"),
    Goal("pow and its kin of binary32, AVX-512", "1000 to 11000", rf"{OF_POWERS} binary32, avx512.*"),
    Goal("the same, AVX2", "1000 to 11000", rf"{OF_POWERS} binary32, avx2.*"),
    Goal("hypot, atan2, logaddexp of binary32, AVX-512", "1000 to 11000", rf"{OF_OTHERS} binary32, avx512.*"),
    Goal("the same, AVX2", "1000 to 11000", rf"{OF_OTHERS} binary32, avx2.*"),
    Goal("pow and its kin of binary64, AVX-512", "1000 to 11000", rf"{OF_POWERS} binary64, avx512.*"),
    Goal("the same, AVX2", "1000 to 11000", rf"{OF_POWERS} binary64, avx2.*"),
    Goal("hypot, atan2, logaddexp of binary64, AVX-512", "1000 to 11000", rf"{OF_OTHERS} binary64, avx512.*"),
    Goal("the same, AVX2", "1000 to 11000", rf"{OF_OTHERS} binary64, avx2.*"),
    Goal("stochastic product and sum, r = 12", "26 to 45", r"GEMM .*, stochastic product and sum, .* r = 12"),
    Goal("stochastic product and sum, r = 32", "70 to 108", r"GEMM .*, stochastic product and sum, .* r = 32"),
    Goal("stochastic sum, r <= 16: Philox-7, two draws a word", "1", r"GEMM .* philox4x32-7/2, beside the default"),
    Goal("stochastic sum: an LFSR", "1", r"GEMM .* lfsr32, beside the default"),
    Goal("stochastic sum: bits given, shared by rows", "1", r"GEMM .* given, beside the default"),
    Goal("fused, other deterministic modes", "25 to 30", r"GEMM .*, exact product, e6m9, rounding up"),
    Goal("rounded products, other modes", "47 to 59", r"GEMM .*, product e5m2, e6m9, toward zero"),
    Goal("any unit, one rounding a step", "1350 to 1900",
         rf"GEMM .*, {ONE_ROUNDING}"),
    Goal("any unit, two roundings a step", "1350 to 1900",
         rf"GEMM .*, {TWO_ROUNDINGS}"),
    Goal("any unit, Kahan's sum", "5000 to 7000", rf"GEMM .*, {COMPENSATED}"),
    Goal("any unit, counting statistics", "1900", r"GEMM .*, counted"),
    Goal("AVX2 beside AVX-512: fused bfloat16, binary16", "5 to 6", r"GEMM .*, fused, AVX2"),
    Goal("8-bit posits in matmul", "0.85", r"GEMM .*, posit8"),
    Goal("two threads", "1.5 to 1.85", r".*, 2 threads"),
)  # fmt: skip


def table(rows: Iterable[Row]) -> Table:
    """A line for each goal whose rows were measured."""
    rows, out = list(rows), Table(title="What was to become faster")
    for column in ("work", "before", "goal", "reached", "in", "met"):
        out.add_column(column)
    for goal in GOALS:
        found = [r for r in rows if re.fullmatch(goal.rows, r.name) and r.ratio is not None and r.limit is not None]
        if not found:
            continue
        least = found[0].limit < 0  # a ratio that is to be at least that
        worst = (
            min(found, key=lambda r: r.ratio / abs(r.limit)) if least else max(found, key=lambda r: r.ratio / r.limit)
        )
        ratios = [r.ratio for r in found]
        reached = f"{min(ratios):.3g} to {max(ratios):.3g}" if len(found) > 1 else f"{ratios[0]:.3g}"
        met = worst.ratio >= -worst.limit if least else worst.ratio <= worst.limit
        missed = sum(r.ratio < -r.limit if least else r.ratio > r.limit for r in found)
        limits = sorted({abs(r.limit) for r in found})
        bound = ">= " if least else "<= "
        said = bound + " to ".join(f"{x:g}" for x in dict.fromkeys((limits[0], limits[-1])))
        verdict = "yes" if met else f"NO: {missed} of {len(found)}"
        out.add_row(goal.what, goal.before, said, reached, worst.ratio_unit, verdict)
    return out
