"""Charts of a comparison's results: learning curves and time to accuracy."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

from softnum.tta.accuracy.records import read_record
from softnum.tta.html import charts, values
from softnum.tta.html.folder import Comparison
from softnum.tta.html.model import Chart, Note, identifier

__all__ = ["learning_curves", "time_to_accuracy", "training_losses"]

#: points of a run's losses, which are means
_LOSSES = 50
#: points of the runs in one chart; beyond, evaluations are left out evenly, and the caption says so
MOST_POINTS = 20_000


def learning_curves(comparison: Comparison, prefix: str) -> list[Chart | Note]:
    """The metric over iterations, epochs and time."""
    results = comparison.results
    times = {
        f"time{i}": (
            variant["label"],
            {e["design"]: e for e in variant["designs"] if e["time"] or e.get("tta_is") == "measured"},
        )
        for i, variant in enumerate(results["variants"])
    }
    times = {field: found for field, found in times.items() if found[1]}
    points = sum(len(run["curve"]["iteration"]) for run in results["runs"])
    step = max(1, -(-points // MOST_POINTS))
    runs, invalid = [], 0
    for run in results["runs"]:
        curve = run["curve"]
        passes = _passes(results, run)
        last = len(curve["iteration"]) - 1
        for i, (iteration, epoch, value) in enumerate(
            zip(curve["iteration"], curve["epoch"], curve["value"], strict=True)
        ):
            if value is None:
                invalid += 1
            if value is None or iteration == 0 or (i % step and i != last):
                continue
            row = {"design": run["design"], "run": f"seed {run['seed']}", "iteration": iteration}
            if passes is not None:
                row["epoch"] = iteration * passes
            elif epoch is not None:
                row["epoch"] = epoch
            for field, (_, timed) in times.items():
                if (entry := timed.get(run["design"])) is None:
                    continue
                if entry.get("tta_is") == "measured":  # the curve's own clock, where it runs
                    if curve["seconds"][i]:
                        row[field] = curve["seconds"][i]
                else:
                    row[field] = iteration * entry["time"]["seconds"]
            runs.append({**row, "value": value})
    if not runs:
        return [Note(("No run has a finite value of the metric, so there is no curve to draw.",), quiet=True)]
    caption = f"Each run thin, the median over a design's runs thick; the target is {results['target']:g}."
    ends, diverged = {(row["design"], row["run"]): row for row in runs}, []
    for run in results["runs"]:
        end = ends.get((run["design"], f"seed {run['seed']}"))
        if run["diverged"] and end is not None:
            diverged.append(end)
    if diverged:
        caption += " A cross: the last finite value of a run that diverged."
    if step > 1:
        caption += f" One evaluation in {step} is drawn; results.json has them all."
    chart = charts.curves(
        identifier(prefix, "curves"), "Learning curves", caption, runs=runs, medians=_medians(runs, times),
        designs=comparison.designs, metric=results["metric"], target=results["target"],
        times={field: label for field, (label, _) in times.items()}, diverged=diverged,
    )  # fmt: skip
    if not invalid:
        return [chart]
    return [chart, Note((f"{invalid} evaluations are not finite (a diverged run) and are not drawn.",), quiet=True)]


def training_losses(comparison: Comparison, prefix: str) -> list[Chart]:
    """The loss of the training batches, of the runs whose record lies there, is softnum's, and has it."""
    results, runs, diverged = comparison.results, [], []
    for run in results["runs"]:
        known = "softnum" in run["versions"] and comparison.states.get(run["record"]) == "the same"
        record = read_record(comparison.folder / run["record"], metric="loss") if known else None
        if record is None or results["metric"] == "loss":
            continue
        each, passes = -(-len(record.evaluations) // _LOSSES), _passes(results, run)
        for at in range(0, len(record.evaluations), each):
            part = record.evaluations[at : at + each]
            finite = [e.value for e in part if math.isfinite(e.value)]
            if finite and part[-1].iteration:
                row = {"design": run["design"], "run": f"seed {run['seed']}", "iteration": part[-1].iteration}
                row |= {} if passes is None else {"epoch": part[-1].iteration * passes}
                runs.append(row | {"value": math.fsum(finite) / len(finite)})
        diverged += runs[-1:] if record.diverged else []
    if not runs:
        return []
    caption = f"Of the batches, before each update; means of up to 1/{_LOSSES} of a run. Each run thin, medians thick."
    if diverged:
        caption += " A cross: the last finite value of a run that diverged."
    least, most = (end(row["value"] for row in runs) for end in (min, max))
    chart = charts.curves(
        identifier(prefix, "losses"), "Training loss", caption, runs=runs, medians=_medians(runs, {}),
        designs=comparison.designs, metric="loss of the training batches", target=None, times={}, diverged=diverged,
        by_factors=0 < 20 * least < most,
    )  # fmt: skip
    return [chart]


def _passes(results: Mapping[str, Any], run: Mapping[str, Any]) -> float | None:
    """Passes over the training samples in one iteration, where the configuration tells how many samples there are."""
    config = (results.get("configs") or {}).get(run["design"])
    data = config.get("data") if isinstance(config, Mapping) else None
    samples = data.get("train") if isinstance(data, Mapping) else None
    return run["batch"] / samples if isinstance(samples, int) and samples > 0 else None


def _medians(runs: list[dict[str, Any]], times: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The median over the runs of a design, at the evaluations that all of them have."""
    by_design: dict[str, dict[str, dict[str, Any]]] = {}
    for row in runs:
        by_design.setdefault(row["design"], {}).setdefault(row["run"], {})[row["iteration"]] = row
    medians = []
    for tables in by_design.values():
        first, *others = tables.values()
        for iteration, row in first.items():
            if all(iteration in table for table in others):
                value = statistics.median(table[iteration]["value"] for table in tables.values())
                rows = [table[iteration] for table in tables.values()]
                clocks = {key: statistics.median(r[key] for r in rows) for key in times if all(key in r for r in rows)}
                kept = {key: row[key] for key in row if key != "run" and key not in times}
                medians.append({**kept, **clocks, "value": value})
    return medians


def time_to_accuracy(comparison: Comparison, variant: Mapping[str, Any], prefix: str) -> Chart | Note:
    """Bars of the median time to accuracy with their intervals."""
    rows = []
    for entry in variant["designs"]:
        tta, ends = entry["tta"], entry["intervals"]["tta"] or (None, None)
        row = {"design": entry["design"], "value": None, "low": None, "high": None}
        if tta is None:
            row["text"] = f"left out: {entry['left_out']}"
        elif tta["median"] is None:
            row["text"] = f"median run: not reached; {entry['reached']} of {entry['runs_in_all']} runs reached"
            row |= {"low": ends[0], "high": ends[1]}
        else:
            row |= {"value": tta["median"], "low": ends[0], "high": ends[1]}
            row["text"] = values.seconds(tta["median"])
            if entry["speedup"] is not None:
                row["text"] += f", {values.ratio(entry['speedup'])}x"
        rows.append(row)
    if all(row["value"] is None and row["low"] is None for row in rows):
        line = f"{variant['label']}: no design has a time to accuracy, so there is no chart of it."
        return Note((line,), quiet=True)
    confidence = values.percent(comparison.results["intervals"]["confidence"])
    caption = f"Median over the runs, {confidence} interval, and the speed-up; an arrow has no upper end."
    return charts.intervals(
        identifier(prefix, "tta", variant["label"]), variant["label"], caption, rows=rows,
        designs=comparison.designs, axis="time to accuracy", unit="s", wide=len(comparison.results["variants"]) == 1,
    )  # fmt: skip
