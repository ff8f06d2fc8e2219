"""Matrix products under a unit against NumPy's sgemm, on one thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import softnum as sn
from benchmarks.measure import Row, best

GEMMS = {
    "product e5m2, accumulate e6m9": sn.MadUnit("e6m9", operand="e5m2", product="e5m2"),
    "exact product, accumulate e6m9": sn.MadUnit("e6m9", operand="e5m2"),
    "exact product, e6m9, chunk 64": sn.MadUnit("e6m9", operand="e5m2", chunk=64),
    "exact product, accumulate e6m3": sn.MadUnit("e6m3", operand="e5m2"),
    "exact product, accumulate binary32": sn.MadUnit("binary32", operand="e5m2"),
    "stochastic product and sum, e6m9, r = 12": sn.MadUnit(
        "e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12
    ),
    "q4.4, nearest": sn.MadUnit("q4.4", operand="q4.4"),
    "definition: e5m2 to e6m9, rounding up": sn.MadUnit("e6m9", operand="e5m2", rounding="up"),
}


#: DESIGN.md's goals, in sgemms.
LIMITS = {
    "product e5m2, accumulate e6m9": 10.0,
    "exact product, accumulate e6m9": 5.0,
    "stochastic product and sum, e6m9, r = 12": 40.0,
}


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread against sgemm."""
    rng = np.random.Generator(np.random.Philox(2))
    plain = [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]
    sgemm = best(lambda: plain[0] @ plain[1])
    yield Row(f"numpy sgemm {n}^3", n**3 / sgemm / 1e9, "GMAC/s", 1.0, "sgemms")
    for name, unit in GEMMS.items():
        a, b = (sn.quantize(x, unit.operand[0]) for x in plain)
        key = 1 if unit.stochastic else None
        slow = name.startswith("definition")
        if slow:
            a = a[:16]
        mine = best(lambda: sn.matmul(a, b, unit, key=key, threads=1), 1 if slow else 3) * (n / len(a))  # noqa: B023
        yield Row(f"GEMM {n}^3, {name}", n**3 / mine / 1e9, "GMAC/s", mine / sgemm, "sgemms", LIMITS.get(name))
