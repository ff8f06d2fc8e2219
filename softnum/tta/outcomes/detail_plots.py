"""Pictures of a study beside tta.png: TTA over targets, and gains as a waterfall."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from softnum.runtime.atomic import write_atomic
from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.outcomes.plot import (
    PICTURE_STYLE,
    add_legend,
    legend_height,
    literal,
    look,
    quantity_axis,
    seconds_axis,
)
from softnum.tta.outcomes.style import ERROR_TICKS, PALETTE
from softnum.tta.outcomes.targets import TargetCurve, study_targets, target_spacing
from softnum.tta.quantities import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["looks_of", "picture", "plot_gains", "plot_targets", "small_print"]

_HARDWARE, _ARITHMETIC = PALETTE[1], PALETTE[6]


def picture(
    path: str | os.PathLike[str], size: tuple[float, float], draw: Callable[[Figure], None], words: str
) -> Path:
    """Draw a figure into a PNG file, with a description for those who cannot see it; the same study, the same bytes."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        out = io.BytesIO()
        figure.savefig(out, format="png", metadata={"Software": None, "Description": words})
    write_atomic(path, out.getvalue())
    return Path(path)


def looks_of(study: Study) -> dict[str, dict[str, Any]]:
    return {result.design: look(i) for i, result in enumerate(study.designs)}


def small_print(axes: Axes, lines: Sequence[str], width: int) -> None:
    """Small print under the axes."""
    text = literal("\n".join(textwrap.fill(line, width) for line in lines))
    if text:
        axes.annotate(
            text, (0, 0), xycoords="axes fraction", xytext=(0, -38), textcoords="offset points",
            ha="left", va="top", fontsize=7.5, color="#444444",
        )  # fmt: skip


# -- TTA over targets --------------------------------------------------------------------------------------------------
def plot_targets(path: str | os.PathLike[str], studies: Sequence[Study]) -> Path | None:
    """Draw the time to each target over the targets, with intervals; None if no design has a time and an evaluation."""
    timed = [study for study in studies if any(result.time is not None or result.by_clock for result in study.designs)]
    curves = [study_targets(study) for study in timed]
    if not timed or not any(curves):
        return None
    first = timed[0]
    looks = looks_of(first)

    def draw(figure: Figure) -> None:
        shared = None
        for index, (study, found) in enumerate(zip(timed, curves, strict=True)):
            shared = axes = figure.add_subplot(1, len(timed), index + 1, sharex=shared, sharey=shared)
            _target_panel(axes, study, found, looks)
        handles = [
            Line2D([], [], color=looks[curve.design]["color"], linestyle=looks[curve.design]["linestyle"],
                   marker=looks[curve.design]["marker"], label=literal(f"{curve.design}: {_to(curve)}"))
            for curve in curves[0]
        ]  # fmt: skip
        add_legend(figure, handles)

    words = f"Median time to accuracy over targets of {first.metric}, with intervals. " + "; ".join(
        f"{curve.design}: {_to(curve)}" for curve in curves[0]
    )
    width = max(6.2 * len(timed), 7.0)
    names = [f"{curve.design}: {_to(curve)}" for curve in curves[0]]
    return picture(path, (width, 5.0 + legend_height(names, width)), draw, words)


def _to(curve: TargetCurve) -> str:
    """How far a design comes, in words.

    >>> _to(TargetCurve("a", 3, ()))
    'no target'
    """
    farthest = curve.farthest
    return "no target" if farthest is None else f"to {farthest.target:.4g}"


def _target_panel(axes, study: Study, curves: Sequence[TargetCurve], looks: dict[str, Any]) -> None:
    without = []
    axes.set_yscale("log")
    highest = max(
        (p.seconds for c in curves for p in c.points if p.seconds is not None and math.isfinite(p.seconds)), default=1.0
    )
    for curve in curves:
        points = [point for point in curve.points if math.isfinite(point.iterations)]
        if not points or points[0].seconds is None:
            without.append(curve.design)
            continue
        style = looks[curve.design]
        x, y = [point.target for point in points], [point.seconds for point in points]
        axes.plot(x, y, drawstyle="steps-pre", linewidth=1.6, color=style["color"], linestyle=style["linestyle"])
        ends = [[point.low for point in points], [min(point.high, 10 * highest) for point in points]]
        axes.fill_between(x, *ends, step="pre", color=style["color"], alpha=0.12, linewidth=0)
        axes.plot(x[-1:], y[-1:], color=style["color"], marker=style["marker"], markersize=6.5, linestyle="none")
    axes.set_ylim(top=2.5 * highest)
    _target_axis(axes, curves, study)
    axes.axvline(study.target, color="#444444", linewidth=0.8)
    axes.annotate(
        f"target {study.target:g}", (study.target, 0.0), xycoords=("data", "axes fraction"), xytext=(-3, 4),
        textcoords="offset points", rotation=90, ha="right", va="bottom", fontsize=8, color="#444444",
    )  # fmt: skip
    axes.set_title(f"TTA over targets, {study.label}")
    axes.set_xlabel(
        f"target of {study.metric} (a mark: farthest that the median run reaches; band: {100 * study.confidence:g} %)"
    )
    axes.set_ylabel("time to the target (median)")
    seconds_axis(axes.yaxis)
    if without:
        small_print(axes, [f"Not drawn, without a time or a reached target: {', '.join(without)}."], 90)


def _target_axis(axes, curves: Sequence[TargetCurve], study: Study) -> None:
    """From the easy targets to the hard ones, laid out as the grid is."""
    aims, direction = [point.target for point in curves[0].points], study.reached.direction
    how = target_spacing(aims[0], aims[-1], direction)
    if how == "errors":
        axes.set_xscale(
            "function", functions=(lambda x: -np.log(1.0 - np.minimum(x, 1 - 1e-12)), lambda y: 1 - np.exp(-y))
        )
        axes.set_xlim(aims[0] - 0.03 * (1 - aims[0]), 1 - 0.92 * (1 - aims[-1]))
        ticks = [tick for tick in ERROR_TICKS if aims[0] <= tick <= aims[-1]]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    elif how == "factors":
        axes.set_xscale("log")
        quantity_axis(axes.xaxis)
    if direction == "lower":
        axes.invert_xaxis()


# -- gains as a waterfall ----------------------------------------------------------------------------------------------
def plot_gains(path: str | os.PathLike[str], studies: Sequence[Study]) -> Path | None:
    """Draw each design's way from the baseline's TTA to its own: throughput, then efficiency; None without a start."""
    drawn = [study for study in studies if _start(study) is not None]
    if not drawn:
        return None
    first = drawn[0]
    looks, rows = looks_of(first), len(first.designs)

    def draw(figure: Figure) -> None:
        shared = None
        for index, study in enumerate(drawn):
            shared = axes = figure.add_subplot(1, len(drawn), index + 1, sharey=shared)
            _gain_panel(axes, study, looks, names=index == 0)
        handles = [
            Patch(color=_HARDWARE, alpha=0.75, label="throughput: samples per second (the hardware's share)"),
            Patch(color=_ARITHMETIC, alpha=0.75, label="efficiency: samples to the target (the arithmetic's share)"),
            Line2D([], [], color="#333333", marker="o", linewidth=0.9, label="time to accuracy"),
        ]
        add_legend(figure, handles)

    words = f"From the time to accuracy of {first.baseline} to that of each design. " + "; ".join(
        f"{result.design}: {_product(result)}" for result in first.designs
    )
    longest = max(len(result.design) for result in first.designs)
    return picture(path, (7.0 * len(drawn) + 0.075 * longest, 1.8 + 0.78 * rows), draw, words)


def _start(study: Study) -> float | None:
    """The baseline's median TTA; None if it has none."""
    base = study[study.baseline].tta
    return None if base is None or math.isinf(base.median) else base.median


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _within(ends: tuple[float, float] | None) -> str:
    if ends is None or ends[0] == ends[1]:
        return ""
    return f" [{_factor(ends[0])}, {'no limit' if math.isinf(ends[1]) else _factor(ends[1])}]"


def _product(result: DesignResult) -> str:
    if result.time is None and not result.by_clock:
        return f"left out: {result.left_out.partition(';')[0]}"  # a way out may follow
    if result.throughput is None and result.speedup is not None:
        return f"{format_seconds(result.tta.median)}, {_factor(result.speedup)}x; it counts {result.unit}s: no factors"
    if result.throughput is None:
        return f"not reached: {result.reached} of {len(result.runs)} runs"
    if result.efficiency is None:
        return f"throughput {_factor(result.throughput)}, {result.reached} of {len(result.runs)} runs reach the target"
    return f"{_factor(result.throughput)} x {_factor(result.efficiency)} = {_factor(result.speedup)}"


def _gain_panel(axes, study: Study, looks: dict[str, Any], *, names: bool) -> None:
    start = _start(study)
    axes.set_xscale("log")
    ways = [
        value
        for result in study.designs
        if result.throughput is not None
        for value in (
            start / result.throughput,
            *(() if result.tta is None else (result.tta.median, *result.intervals.tta)),
        )
        if math.isfinite(value)
    ]
    low, high = min(start, *ways) / 1.6, max(start, *ways) * 1.6
    axes.set_xlim(low, high)
    axes.axvline(start, color="#444444", linewidth=0.8)
    for row, result in enumerate(study.designs):
        _gain_rows(axes, row, result, start, (low, high), looks[result.design], study.baseline)
        if row:
            axes.axhline(row - 0.5, color="#dddddd", linewidth=0.6)
    axes.set_yticks(range(len(study.designs)), [literal(result.design) for result in study.designs])
    axes.set_ylim(len(study.designs) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelleft=names)
    axes.set_title(literal(textwrap.fill(f"From {study.baseline}'s TTA, {study.label}", 60)))
    axes.set_xlabel(f"time to {study.metric} {study.target:g} (medians; whiskers: {100 * study.confidence:g} %)")
    seconds_axis(axes.xaxis)


def _gain_rows(axes, row: int, result: DesignResult, start: float, ends, look: dict[str, Any], baseline: str) -> None:
    words = {
        "xycoords": ("axes fraction", "data"), "xytext": (6, 0), "textcoords": "offset points", "va": "center",
        "fontsize": 8, "annotation_clip": False,
    }  # fmt: skip
    if result.throughput is None:
        axes.annotate(
            literal(textwrap.fill(_product(result), 34)), (1, row), fontstyle="italic", color="#333333", **words
        )
        return
    own = result.design == baseline
    between = start / result.throughput
    if not own:
        _step(axes, row - 0.28, start, between, result.intervals.throughput, ends, _HARDWARE)
        axes.annotate(
            f"throughput {_factor(result.throughput)}{_within(result.intervals.throughput)}", (1, row - 0.28),
            color=_HARDWARE, **words,
        )  # fmt: skip
    if result.efficiency is None:
        axes.annotate(
            "", (ends[1], row), (between, row),
            arrowprops={"arrowstyle": "->", "color": _ARITHMETIC, "linestyle": "--", "linewidth": 1.3},
        )  # fmt: skip
        axes.plot([between] * 2, [row - 0.28, row], color="#777777", linewidth=0.7)
        longest = max(run.iterations for run in result.runs)
        text = f"not reached: {result.reached} of {len(result.runs)} runs\nin {longest} iterations"
        axes.annotate(text, (1, row + 0.14), fontstyle="italic", color="#333333", **words)
        return
    tta = result.tta.median
    if not own:
        _step(axes, row, between, tta, result.intervals.efficiency, ends, _ARITHMETIC)
        axes.plot([between] * 2, [row - 0.28, row], color="#777777", linewidth=0.7)
        axes.plot([tta] * 2, [row, row + 0.28], color="#777777", linewidth=0.7)
        axes.annotate(
            f"efficiency {_factor(result.efficiency)}{_within(result.intervals.efficiency)}", (1, row),
            color="#9a6200", **words,
        )  # fmt: skip
    lower, upper = result.intervals.tta
    at = row if own else row + 0.28
    _whisker(axes, at, lower, upper, ends, look["color"])
    axes.plot([tta], [at], color=look["color"], marker=look["marker"], markersize=6, linestyle="none", zorder=4)
    text = format_seconds(tta)
    if not own:
        text += f", {_factor(result.speedup)}x{_within(result.intervals.speedup)}"
    axes.annotate(text, (1, at), color="#111111", **words)


def _step(axes, at: float, start: float, end: float, factor: tuple[float, float] | None, ends, colour: str) -> None:
    """A bar from one time to the next, with what the interval of their ratio makes of its end."""
    axes.barh([at], [abs(end - start)], left=min(start, end), height=0.2, color=colour, alpha=0.75, linewidth=0)
    if start == end:
        axes.plot([start] * 2, [at - 0.1, at + 0.1], color=colour, linewidth=2)
    if factor is not None:
        _whisker(axes, at, start / factor[1], start / factor[0] if factor[0] else math.inf, ends, "#333333")


def _whisker(axes, at: float, low: float, high: float, ends: tuple[float, float], colour: str) -> None:
    """A thin line from end to end; an arrow where it leaves the axes."""
    if low == high:
        return
    left, right = max(low, ends[0]), min(high, ends[1])
    axes.plot([left, right], [at, at], color=colour, linewidth=0.9, zorder=3)
    for value, inside, mark in ((low, low >= ends[0], "<"), (high, high <= ends[1], ">")):
        where = value if inside else ends[0] if mark == "<" else ends[1]
        style = {"marker": "|", "markersize": 7} if inside else {"marker": mark, "markersize": 4, "clip_on": False}
        axes.plot([where], [at], color=colour, linestyle="none", zorder=3, **style)
