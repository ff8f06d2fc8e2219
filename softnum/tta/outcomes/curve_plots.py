"""Pictures of training: each run's loss and metric over the iterations, with the places where runs diverged."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softnum.tta.accuracy.records import Record, read_record
from softnum.tta.outcomes.detail_plots import looks_of, picture, small_print
from softnum.tta.outcomes.outcome import Study
from softnum.tta.outcomes.plot import (
    DIVERGED,
    add_legend,
    diverged_mark,
    divergences,
    legend_height,
    literal,
    quantity_axis,
)

__all__ = ["plot_curves"]

_MOST = 200  # points of a run


def plot_curves(path: str | os.PathLike[str], studies: Sequence[Study]) -> Path:
    """Draw every run's training loss, where softnum's own records have it, and metric over the iterations."""
    first = studies[0]
    looks, losses = looks_of(first), _losses(first.records) if first.metric != "loss" else ()
    panels = [(losses, "loss", "Training loss")] if losses else []
    panels.append((first.records, first.metric, "Metric of the target"))

    def draw(figure: Figure) -> None:
        for index, (records, metric, title) in enumerate(panels):
            axes = figure.add_subplot(1, len(panels), index + 1)
            _panel(axes, records, looks, metric)
            axes.set_title(title)
            if metric == first.metric:
                axes.axhline(first.target, color="#444444", linewidth=0.8)
                axes.annotate(
                    f"target {first.target:g}", (0.0, first.target), xycoords=("axes fraction", "data"),
                    xytext=(4, 2), textcoords="offset points", fontsize=8, color="#444444",
                )  # fmt: skip
        handles = [
            Line2D([], [], color=style["color"], linestyle=style["linestyle"], label=literal(name))
            for name, style in looks.items()
        ]
        if any(record.diverged for record in first.records):
            handles.append(diverged_mark())
        add_legend(figure, handles)

    diverged = [f"{r.label}, seed {r.seed}, at iteration {r.iterations}" for r in first.records if r.diverged]
    words = f"Learning curves of {len(first.records)} runs over iterations; diverged: {'; '.join(diverged) or 'none'}"
    width = 1.5 + 5.5 * len(panels)
    return picture(path, (width, 4.6 + legend_height(looks, width)), draw, words)


def _losses(records: Iterable[Record]) -> tuple[Record, ...]:
    """The same runs with the loss of each iteration's batch, of those whose record is there and has it."""
    found = []
    for record in records:
        if "softnum" in record.versions and record.path and Path(record.path).is_file():
            read = read_record(record.path, metric="loss")
            if read is not None:
                found.append(read)
    return tuple(found)


def _thinned(record: Record) -> tuple[list[int], list[float], int]:
    """Iterations, means of so many evaluations (NaN where none of them is finite), and how many."""
    each = -(-len(record.evaluations) // _MOST)
    x, y = [], []
    for at in range(0, len(record.evaluations), each):
        part = record.evaluations[at : at + each]
        finite = [e.value for e in part if math.isfinite(e.value)]
        x.append(part[-1].iteration)
        y.append(math.fsum(finite) / len(finite) if finite else math.nan)
    return x, y, each


def _panel(axes, records: Sequence[Record], looks: dict[str, Any], metric: str) -> None:
    axes.set_xscale("log")
    most = 1
    for record in records:
        style = looks[record.label]
        x, y, each = _thinned(record) if record.evaluations else ([], [], 1)
        most = max(most, each)
        # a curve starts after the first update: 0 has no place on this axis
        kept = [(a, b) for a, b in zip(x, y, strict=True) if a > 0]
        axes.plot(
            [a for a, _ in kept], [b for _, b in kept], color=style["color"], linestyle=style["linestyle"],
            linewidth=0.9, alpha=0.75,
        )  # fmt: skip
    for design, iteration, value in divergences(records):
        axes.plot([iteration], [value], color=looks[design]["color"], **DIVERGED)
    axes.set_xlabel("iterations (parameter updates)")
    axes.set_ylabel(f"{metric} of the training batches" if metric == "loss" else metric)
    values = [y for line in axes.lines for y in line.get_ydata() if math.isfinite(y)]
    if metric == "loss" and values and min(values) > 0 and max(values) > 20 * min(values):
        axes.set_yscale("log")
        quantity_axis(axes.yaxis)
    quantity_axis(axes.xaxis)
    if most > 1:
        what = "batches" if metric == "loss" else "evaluations"
        small_print(axes, [f"Each point is the mean of up to {most} {what}."], 80)
