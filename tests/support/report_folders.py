"""Folders of results for the tests of the report, made by the functions that softnum tta makes them with."""

import json
from dataclasses import replace
from pathlib import Path

from softnum.train import Case, Settings, case_workloads
from softnum.tta import (
    IterationTime,
    Variant,
    Workload,
    combine_study,
    load_reports,
    read_records,
    scalesim_variants,
    write_results,
    write_workloads,
)

TARGET = 0.9
SEEDS = (1, 2, 3)
#: iterations at which each run of a design reaches the target; None never does
REACHED = {
    "a-float32": (20, 30, 40),
    "b-binary16": (30, 20, 50),
    "c-wang-fp8": (30, None, 20),
    "h-posit8": (None, None, 40),
}


def write_record(path: Path, design: str, seed: int, reached: int | None, *, data: str = "digits") -> Path:
    """A finished run of 60 iterations of 32 samples, evaluated every 10."""
    config = {"design": {"name": design}, "network": {"name": "mlp"}, "data": {"name": data, "train": 640}, "batch": 32}
    rows = [{"config": config, "seed": seed, "versions": {"softnum": "0", "python": "3.11"}}]
    for iteration in range(1, 61):
        row = {"iteration": iteration, "epoch": -(-iteration // 20), "loss": 0.5}
        if iteration % 10 == 0:
            good = reached is not None and iteration >= reached
            row["accuracy"] = 0.9 + seed / 100 + iteration / 1e4 if good else 0.2 + iteration / 1e3 + seed / 100
        rows.append(row | ({"finished": True} if iteration == 60 else {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def comparison(folder: Path, *, names=None, workloads: bool = True, measured: bool = False, **options) -> Path:
    """A comparison of the shipped designs a, b, c and h on SCALE-Sim's shipped times; `names` renames designs."""
    names = {design: design for design in REACHED} | (names or {})
    for design, ats in REACHED.items():
        for seed, at in zip(SEEDS, ats, strict=True):
            # a design's name may be no name of a folder
            write_record(folder / "records" / design / f"seed-{seed}.jsonl", names[design], seed, at)
    points = [replace(load_reports().designs[design], name=names[design]) for design in REACHED]
    variants = scalesim_variants(points, baseline=names["a-float32"])
    if measured:
        times = {names[d]: _measured(names[d], 1e-3 * (i + 1)) for i, d in enumerate(REACHED)}
        variants = [Variant("measured", times)]
    if workloads:
        write_workloads(folder / "workloads.json", case_table(names))
    records = [replace(record, by_batch=False) for record in read_records(folder / "records").records]
    studies = [
        combine_study(records, variant, target=TARGET, baseline=names["a-float32"], **options) for variant in variants
    ]
    inputs = {"network": {"name": "mlp"}, "data": "digits", "seeds": list(SEEDS), "command": "softnum tta ..."}
    write_results(folder / "results.json", studies, inputs)
    return folder


def _measured(design: str, seconds: float) -> IterationTime:
    samples = (seconds * 0.9, seconds, seconds * 1.1)
    return IterationTime(
        design, seconds, 3, "a profiler", None, samples, 0, (seconds * 0.75, seconds * 1.25), "measured", 0.5
    )


def case_table(names: dict[str, str]) -> list[Workload]:
    """The workloads of the designs, under their names."""
    works = case_workloads([Case(design, 32) for design in REACHED], Settings())
    return [replace(work, design=names[work.design]) for work in works]


def study(folder: Path) -> Path:
    """A study of two comparisons, of which the second has no workloads and a failed run."""
    comparison(folder / "mlp")
    comparison(folder / "mlp-2", workloads=False, measured=True)
    failed = {"label": "h-posit8", "seed": 4, "state": "failed", "error": "its loss was not finite"}
    parts = [
        {"folder": "mlp"},
        {"folder": "mlp-2", "runs": [failed]},
        {"folder": "lenet5", "error": "no run of it finished"},
    ]
    table = {"schema": 1, "name": "two networks", "comparisons": parts}
    (folder / "study.json").write_text(json.dumps(table))
    return folder


__all__ = ["REACHED", "comparison", "study", "write_record"]
