"""Tuned learning rates in a report: each design at the recipe's rate and at its own, the trials, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from softnum.tta.html import values
from softnum.tta.html.folder import Comparison
from softnum.tta.html.model import Cell, Note, Row, Table, identifier

__all__ = ["blocks"]


def blocks(comparison: Comparison, prefix: str) -> list[Table | Note]:
    """A table for each variant of the times, one of the trials, and how rates were chosen."""
    results = comparison.results
    tuning = results["tuning"]
    pairs = zip(results["variants"], tuning["variants"], strict=True)
    cost = tuning["cost"]
    lines = [
        f"{tuning['rule'][0].upper()}{tuning['rule'][1:]}.",
        "No tuning seed is among those that designs are judged by; the held-out samples are the same.",
        f"Cost in runs (iterations): {cost['runs']} ({cost['iterations']:,}) to tune, {cost['judged_runs']} "
        f"({cost['judged_iterations']:,}) at the rates chosen. No time to accuracy includes it.",
    ]
    edges = [entry["design"] for entry in tuning["designs"] if entry["at_edge"]]
    if edges:
        lines.append(f"At an end of the grid, beyond which a rate may be better still: {', '.join(edges)}.")
    known = {note for variant in results["variants"] for note in variant["notes"]}
    notes = [note for variant in tuning["variants"] for note in variant["notes"] if note not in known]
    return [
        Note.of(lines, "How rates were tuned"),
        *(_compared(comparison, before, after, prefix) for before, after in pairs),
        _trials(tuning, prefix),
        *([Note.of(notes, "Notes on the runs at tuned rates")] if notes else []),
    ]


def _compared(comparison: Comparison, before: Mapping[str, Any], after: Mapping[str, Any], prefix: str) -> Table:
    tuning = comparison.results["tuning"]
    chosen = {entry["design"]: entry for entry in tuning["designs"]}
    rows, data = [], []
    for without, tuned in zip(before["designs"], after["designs"], strict=True):
        choice = chosen[tuned["design"]]
        spent = choice["trial_iterations"]
        seconds = None if tuned["time"] is None else spent * tuned["time"]["seconds"]
        cells = [
            Cell(tuned["design"], f"batch {tuned['batch']}"),
            Cell(f"{choice['learning_rate']:g}", f"{choice['multiplier']:g} x {choice['recipe_learning_rate']:g}",
                 choice["why"]),
        ]  # fmt: skip
        flat = {key: choice[key] for key in ("design", "multiplier", "learning_rate", "recipe_learning_rate", "why")}
        for name, entry in (("without", without), ("with", tuned)):
            cells.append(Cell(f"{entry['reached']} of {entry['runs_in_all']}"))
            cells.append(values.spread_cell(entry["tta"], entry["intervals"]["tta"], values.seconds, "s"))
            speedup, ends = entry["speedup"], entry["intervals"]["speedup"]
            cells.append(
                Cell("-")
                if speedup is None
                else Cell(values.ratio(speedup), values.interval(ends, values.ratio), repr(speedup))
            )
            flat |= {
                f"reached_{name}": entry["reached"], f"runs_{name}": entry["runs_in_all"],
                f"iterations_median_{name}": entry["iterations"]["median"],
                f"tta_median_{name}": entry["tta"] and entry["tta"]["median"], f"speedup_{name}": speedup,
            }  # fmt: skip
        cells.append(Cell(values.count(spent), "" if seconds is None else values.seconds(seconds)))
        data.append(flat | {"trial_iterations": spent, "trial_seconds": seconds})
        rows.append(Row(tuple(cells), tuned["design"], tuned["design"] == after["baseline"]))
    head = (
        "Design", "Tuned rate", "At target without", "Time to accuracy without", "Speed-up without", "At target with",
        "Time to accuracy with", "Speed-up with", "Tuning cost",
    )  # fmt: skip
    caption = (
        "Without: every design at the recipe's rate. With: each at its own, the baseline too. Tuning cost: iterations "
        "of a design's trials, and the time they take on its hardware."
    )
    title = f"Without and with tuned learning rates, {after['label']}"
    return Table(identifier(prefix, "tuning", after["label"]), title, head, tuple(rows), tuple(data), caption)


def _trials(tuning: Mapping[str, Any], prefix: str) -> Table:
    chosen = {entry["design"]: entry["multiplier"] for entry in tuning["designs"]}
    rows, data = [], []
    for trial in tuning["trials"]:
        median, low, high = (
            math.inf if trial["iterations"][key] is None else trial["iterations"][key]
            for key in ("median", "low", "high")
        )
        taken = trial["multiplier"] == chosen[trial["design"]]
        rows.append(
            Row.of(
                Cell(trial["design"]), f"{trial['multiplier']:g}", f"{trial['learning_rate']:g}",
                Cell(_count(median), "" if low == high else f"{_count(low)} to {_count(high)}"),
                str(trial["diverged"]), values.count(trial["trial_iterations"]), "chosen" if taken else "",
                design=trial["design"], strong=taken,
            )
        )  # fmt: skip
        data.append(
            {
                **{key: trial[key] for key in ("design", "multiplier", "learning_rate")},
                **{f"iterations_{key}": trial["iterations"][key] for key in ("median", "low", "high")},
                "runs": len(trial["records"]), "diverged": trial["diverged"],
                "trial_iterations": trial["trial_iterations"], "chosen": taken,
            }
        )  # fmt: skip
    head = ("Design", "Multiple", "Learning rate", "Iterations to target", "Diverged", "Iterations in all", "")
    caption = f"Medians and ranges over the tuning seeds {', '.join(map(str, tuning['seeds']))}."
    return Table(
        identifier(prefix, "trials"), "Trials", head, tuple(rows), tuple(data), caption, frozenset({0, 6}), folded=True
    )


def _count(value: float) -> str:
    return "not reached" if math.isinf(value) else values.count(value)
