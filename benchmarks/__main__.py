"""What softnum's speed is, with its limits and its peers, measured in one run: ``python -m benchmarks``.

Times of a busy or slow machine mean little, so most lines are ratios: to copying the array, or to NumPy's sgemm on as
many threads. OPENBLAS_NUM_THREADS=1 is set before NumPy is imported, so that sgemm runs on one, and
OMP_WAIT_POLICY=passive before PyTorch is, whose threads otherwise spin while softnum's want their cores.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import argparse
import json
import platform
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import softnum as sn
from benchmarks import (
    arithmetic,
    calls,
    contractions,
    custom_units,
    elementary,
    exact,
    gemm,
    goals,
    operators,
    peers,
    torch_training,
    train_torch,
    training,
    units,
    values,
    vectors,
)  # fmt: skip
from benchmarks.measure import Row, commit, cpu
from softnum.runtime import _core


def verdict(row: Row) -> tuple[str, str]:
    """(the limit, whether it is met); a negative limit is one from below."""
    if row.limit is None or row.ratio is None:
        return "", ""
    if row.limit < 0:
        return f">= {-row.limit:g}", "yes" if row.ratio >= -row.limit else "NO"
    return f"<= {row.limit:g}", "yes" if row.ratio <= row.limit else "NO"


SECTIONS = {
    "calls": lambda options: calls.rows(),
    "values": lambda options: values.rows(options.elements),
    "threads": lambda options: values.thread_rows(),
    "arithmetic": lambda options: arithmetic.rows(),
    "elementary": lambda options: elementary.rows(),
    "gemm": lambda options: gemm.rows(options.gemm),
    "exact": lambda options: exact.rows(options.gemm),
    "units": lambda options: units.rows(options.gemm),
    "custom units": lambda options: custom_units.rows(options.gemm),
    "operators": lambda options: operators.rows(),
    "contractions": lambda options: contractions.rows(),
    "vectors": lambda options: vectors.rows(),
    "training": lambda options: training.rows(),
    "train-torch": lambda options: train_torch.rows(),
    "torch": lambda options: torch_training.rows(),
    "peers": lambda options: peers.rows(),
}


def peer_tables() -> list[Table]:
    """What softnum and its peers deliver, counted and by example."""
    said = ", ".join(f"{name} {version}" for name, version in peers.versions().items())
    counted = Table("results", "peer", "compared", "differ", title=f"The same results? {said}")
    for row in peers.agreements():
        counted.add_row(row.what, row.peer, str(row.compared), str(row.differ))
    answers = Table("question", "peer", "gives", "softnum gives", "why", title="Where the answers differ")
    for row in peers.differences():
        answers.add_row(row.what, row.peer, row.peer_result, row.softnum_result, row.why)
    return [counted, answers]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=10**7, help="array length of the values' rows")
    parser.add_argument("--gemm", type=int, default=512, help="side of the square GEMMs")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="sections to run (default: all)")
    parser.add_argument("--out", type=Path, help="a file to keep the rows in, as JSON")
    options = parser.parse_args()
    title = f"softnum {sn.__version__} ({commit()}), {_core.current_isa()}, {platform.machine()}; 1 thread unless said"
    table = Table(title=f"{title}; a float32 copy takes {values.peak():.2f} ns an element")
    for column in ("work", "speed", "", "measured", "in", "limit", "met"):
        table.add_column(column, justify="right" if column in ("speed", "measured", "limit") else "left")
    kept, measured = [], []
    for name in options.only or SECTIONS:
        for row in SECTIONS[name](options):
            measured.append(row)
            kept.append({"section": name, **asdict(row)})
            ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
            table.add_row(row.name, f"{row.speed:.3g}", row.speed_unit, ratio, row.ratio_unit, *verdict(row))
        table.add_section()
    console = Console(width=120)
    console.print(table, goals.table(measured))
    if options.out:
        about = {
            "softnum": sn.__version__, "commit": commit(), "python": platform.python_version(),
            "numpy": np.__version__, "cpu": cpu(), "isa": _core.current_isa(), "threads": 1,
        }  # fmt: skip
        options.out.write_text(json.dumps({"about": about, "rows": kept}, indent=1) + "\n", encoding="utf-8")
    if "peers" in (options.only or SECTIONS):
        console.print(*peer_tables())


if __name__ == "__main__":
    main()
