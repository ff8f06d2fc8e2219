"""What softnum's speed is, as ratios to a baseline measured in the same run: ``python -m benchmarks``.

Times of a busy or slow machine mean little, so each line is a ratio: to copying the array, or to NumPy's sgemm on as
many threads. OPENBLAS_NUM_THREADS=1 is set before NumPy is imported, so that sgemm runs on one.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import platform
import subprocess
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import softnum as sn
from softnum import _core


def best(work, repeats: int = 7) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def quantize_rows(n: int):
    """Quantising float32 to e5m2 against copying the array."""
    rng = np.random.Generator(np.random.Philox(1))
    normal = rng.standard_normal(n, dtype=np.float32)
    data = {"normal": normal, "subnormal in e5m2": (normal * np.float32(2.0**-15)).astype(np.float32)}
    out = np.empty_like(normal)
    for kind, x in data.items():
        copy = best(lambda: np.copyto(out, x))  # noqa: B023
        for mode, options in (("nearest_even", {}), ("toward_zero", {}), ("stochastic", {"key": 1})):
            mine = best(lambda: sn.quantize(x, "e5m2", rounding=mode, out=out, **options))  # noqa: B023
            yield f"quantize {n:.0e} float32 to e5m2, {mode}, {kind}", mine / n * 1e9, "ns", mine / copy, "copies"


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


def gemm_rows(n: int):
    """GEMM n^3 on one thread against sgemm."""
    rng = np.random.Generator(np.random.Philox(2))
    plain = [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]
    sgemm = best(lambda: plain[0] @ plain[1])
    yield f"numpy sgemm {n}^3", n**3 / sgemm / 1e9, "GMAC/s", 1.0, "sgemms"
    for name, unit in GEMMS.items():
        a, b = (sn.quantize(x, unit.operand[0]) for x in plain)
        key = 1 if unit.stochastic else None
        slow = name.startswith("definition")
        if slow:
            a = a[:16]
        mine = best(lambda: sn.matmul(a, b, unit, key=key, threads=1), 1 if slow else 3) * (n / len(a))  # noqa: B023
        yield f"GEMM {n}^3, {name}", n**3 / mine / 1e9, "GMAC/s", mine / sgemm, "sgemms"


def commit() -> str:
    """The checkout's commit, or what to say without one."""
    here = Path(__file__).resolve().parent
    try:
        run = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "no git checkout"
    return run.stdout.strip()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=10**7, help="array length of the quantize rows")
    parser.add_argument("--gemm", type=int, default=512, help="side of the square GEMMs")
    options = parser.parse_args()
    table = Table(title=f"softnum {sn.__version__} ({commit()}), {_core.current_isa()}, {platform.machine()}, 1 thread")
    for column in ("work", "speed", "", "time in", ""):
        table.add_column(column, justify="left" if column == "work" else "right")
    for rows in (quantize_rows(options.elements), gemm_rows(options.gemm)):
        for name, speed, speed_unit, ratio, ratio_unit in rows:
            table.add_row(name, f"{speed:.3g}", speed_unit, f"{ratio:.3g}", ratio_unit)
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
