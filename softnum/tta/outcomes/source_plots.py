"""Pictures of what designs take beside time, with the Pareto front, and of what their times are made of."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from softnum.tta.outcomes.detail_plots import looks_of, picture, small_print
from softnum.tta.outcomes.outcome import Study
from softnum.tta.outcomes.plot import add_legend, legend_height, literal, quantity_axis, seconds_axis, short_seconds
from softnum.tta.outcomes.sources import LayerPart, Resource, layer_parts, pareto, study_resources
from softnum.tta.outcomes.style import PALETTE
from softnum.tta.quantities import format_seconds

__all__ = ["plot_fronts", "plot_layers"]

_MOST_LAYERS = 7
_HOLLOW = "hollow: another is as good in both, better in one"
_LAYER_COLOURS = (*PALETTE[1:7], PALETTE[0])
_STAGES = {
    "forward": ("forward", PALETTE[1]),
    "backward_data": ("backward, data", PALETTE[2]),
    "backward_weight": ("backward, weights", PALETTE[3]),
    "update": ("update", PALETTE[4]),
}


# -- Pareto fronts -----------------------------------------------------------------------------------------------------
def plot_fronts(path: str | os.PathLike[str], studies: Sequence[Study]) -> Path | None:
    """Draw TTA against energy, rent, price and area, as far as designs differ in them; None if in none of them."""
    rows = [(study, study_resources(study)) for study in studies]
    rows = [(study, found) for study, found in rows if found]
    if not rows:
        return None
    columns, looks = max(len(found) for _, found in rows), looks_of(rows[0][0])

    def draw(figure: Figure) -> None:
        for index, (study, found) in enumerate(rows):
            for column, resource in enumerate(found):
                axes = figure.add_subplot(len(rows), columns, index * columns + column + 1)
                _front_panel(axes, study, resource, looks)
        handles = [
            Line2D([], [], color=style["color"], marker=style["marker"], linestyle="none", label=literal(name))
            for name, style in looks.items()
            if any(name in resource.values for _, found in rows for resource in found)
        ]
        handles.append(Line2D([], [], color="#555555", linewidth=1.2, label="Pareto front (medians)"))
        handles.append(
            Line2D(
                [],
                [],
                color="#555555",
                marker="o",
                markerfacecolor="white",
                linestyle="none",
                label=_HOLLOW,
            )
        )
        add_legend(figure, handles)

    words = "Time to accuracy against what a design takes besides. " + "; ".join(
        f"{study.label}, {resource.title}: on the front {', '.join(_front(study, resource))}"
        for study, found in rows
        for resource in found
    )
    width = max(7.0, 5.4 * columns)
    return picture(path, (width, 0.9 + 4.6 * len(rows) + legend_height([*looks, _HOLLOW], width)), draw, words)


def _front(study: Study, resource: Resource) -> list[str]:
    return pareto({name: (study[name].tta.median, value) for name, (value, _, _) in resource.values.items()})


def _left_out(resource: Resource) -> list[str]:
    """Why designs are not drawn, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in resource.left_out.items():
        by_reason.setdefault(why, []).append(name)
    return [f"Not drawn: {', '.join(names)}: {why}" for why, names in by_reason.items()]


def _front_panel(axes, study: Study, resource: Resource, looks: dict[str, Any]) -> None:
    front = _front(study, resource)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, (value, low, high) in resource.values.items():
        result, style = study[name], looks[name]
        tta, (left, right) = result.tta.median, result.intervals.tta
        bar = {"color": style["color"], "linewidth": 0.9, "alpha": 0.6, "zorder": 2}
        for line, unbounded, mark in (
            (([left, min(right, 3 * tta)], [value] * 2), math.isinf(right), ">"),
            (([tta] * 2, [low, min(high, 3 * value)]), math.isinf(high), "^"),
        ):
            axes.plot(*line, **bar)
            if unbounded:
                axes.plot(line[0][1:], line[1][1:], marker=mark, markersize=4, linestyle="none", **bar)
        face = style["color"] if name in front else "white"
        axes.plot([tta], [value], color=style["color"], marker=style["marker"], markersize=7, markerfacecolor=face,
                  linestyle="none", zorder=4)  # fmt: skip
    corners = [(study[name].tta.median, resource.values[name][0]) for name in front]
    x, y = [corners[0][0], *(x for x, _ in corners)], [corners[0][1], *(y for _, y in corners)]
    axes.plot(x, y, drawstyle="steps-post", color="#555555", linewidth=1.2, zorder=1)
    axes.margins(0.12)
    axes.set_title(f"TTA and {resource.title},\n{study.label}")
    axes.set_xlabel(f"time to accuracy (bars: {100 * study.confidence:g} %)")
    axes.set_ylabel(resource.title)
    seconds_axis(axes.xaxis)
    quantity_axis(axes.yaxis, resource.unit)
    small_print(axes, _left_out(resource), 78)


# -- layers' times -----------------------------------------------------------------------------------------------------
def plot_layers(path: str | os.PathLike[str], studies: Sequence[Study]) -> Path | None:
    """Draw what an iteration's time is made of, by layer, and by pass and cause; None where no time tells."""
    rows = [
        (study, {r.design: [] if r.time is None else layer_parts(r.time) for r in study.designs}) for study in studies
    ]
    rows = [(study, parts) for study, parts in rows if any(parts.values())]
    if not rows:
        return None
    layers = list(dict.fromkeys(p.layer for _, parts in rows for found in parts.values() for p in found if p.layer))
    most = {layer: max(_of(found, layer) for _, parts in rows for found in parts.values()) for layer in layers}
    kept = sorted(sorted(layers, key=lambda layer: -most[layer])[:_MOST_LAYERS], key=layers.index)

    def draw(figure: Figure) -> None:
        for index, (study, parts) in enumerate(rows):
            left = figure.add_subplot(len(rows), 2, 2 * index + 1)
            right = figure.add_subplot(len(rows), 2, 2 * index + 2, sharex=left, sharey=left)
            _layer_bars(left, parts, kept, len(layers) - len(kept))
            _cause_bars(right, parts)
            for axes, what in ((left, "by layer"), (right, "by pass, and by cause")):
                axes.set_title(f"Time per iteration {what}, {study.label}")
                axes.grid(visible=False, axis="y")
                axes.set_axisbelow(True)
                axes.xaxis.set_major_formatter(lambda value, _: short_seconds(value) if value else "0")
            left.set_yticks(range(len(study.designs)), [literal(result.design) for result in study.designs])
            left.set_ylim(len(study.designs) - 0.4, -0.6)
            right.tick_params(labelleft=False)
            for row, result in enumerate(study.designs):
                if not parts[result.design]:
                    why = "left out" if result.time is None else "known of the whole iteration only"
                    left.annotate(why, (0, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8,
                                  fontstyle="italic")  # fmt: skip
            small_print(left, _told(study, parts), 90)

    total = sum(len(study.designs) for study, _ in rows)
    words = "What the time of an iteration is made of. " + "; ".join(
        f"{study.label}, {design}: {_words(found)}" for study, parts in rows for design, found in parts.items() if found
    )
    return picture(path, (12.0, 0.5 + 0.36 * total + 2.1 * len(rows)), draw, words)


def _of(parts: Sequence[LayerPart], layer: str) -> float:
    return math.fsum(part.seconds for part in parts if part.layer == layer)


def _words(parts: Sequence[LayerPart]) -> str:
    layers = dict.fromkeys(part.layer for part in parts if part.layer)
    return ", ".join(f"{layer} {format_seconds(_of(parts, layer))}" for layer in list(layers)[:_MOST_LAYERS])


def _told(study: Study, parts: dict[str, Any]) -> list[str]:
    """Where the times are from, and whether anything stalls."""
    by_source: dict[str, list[str]] = {}
    for result in study.designs:
        if result.time is not None:
            by_source.setdefault(f"{result.time.kind}, {result.time.source or 'no source'}", []).append(result.design)
    lines = [
        f"Times: {source}" + (f" ({', '.join(names)})" if len(by_source) > 1 else "")
        for source, names in by_source.items()
    ]
    causes = {part.cause for found in parts.values() for part in found}
    if "not stalled" in causes and "stalled for memory" not in causes:
        lines.append("No design stalls for memory; fetches before a product begins are in its time.")
    return [*lines, *(f"{r.design}: left out: {r.left_out}" for r in study.designs if r.time is None and r.left_out)]


def _bar(axes, row: int, start: float, width: float, colour: str, hatch: str = "") -> float:
    style = (
        {"color": colour, "linewidth": 0} if not hatch else {"facecolor": "white", "edgecolor": colour, "hatch": hatch}
    )
    axes.barh([row], [width], left=[start], height=0.66, **style)
    return start + width


def _layer_bars(axes, parts: dict[str, Any], kept: Sequence[str], others: int) -> None:
    colours = dict(zip(kept, _LAYER_COLOURS, strict=False))
    rest = False
    for row, found in _rows(axes, parts):
        at = 0.0
        for layer in kept:
            at = _bar(axes, row, at, _of(found, layer), colours[layer])
        remaining = math.fsum(part.seconds for part in found) - at
        if remaining > 1e-9 * at:
            rest = True
            _bar(axes, row, at, remaining, PALETTE[7])
    handles = [Patch(color=colours[layer], label=literal(layer)) for layer in kept]
    if rest:
        label = f"{others} other layers" if others else "in no layer"
        handles.append(Patch(color=PALETTE[7], label=label))
    axes.legend(handles=handles, loc="lower right", frameon=True, fontsize=8)


def _cause_bars(axes, parts: dict[str, Any]) -> None:
    used: dict[tuple[str, bool], None] = {}
    for row, found in _rows(axes, parts):
        at = 0.0
        for stage in dict.fromkeys(part.stage for part in found):
            for waits in (False, True):
                seconds = math.fsum(
                    p.seconds for p in found if p.stage == stage and p.cause.endswith("memory") == waits
                )
                if seconds:
                    used[stage, waits] = None
                    at = _bar(axes, row, at, seconds, _stage(stage)[1], "////" if waits else "")
    handles = [
        Patch(color=_stage(stage)[1], label=_stage(stage)[0]) for stage in dict.fromkeys(stage for stage, _ in used)
    ]
    causes = dict.fromkeys(part.cause for found in parts.values() for part in found if part.cause)
    if any(cause.endswith("memory") for cause in causes):
        told = next(cause for cause in causes if cause.endswith("memory"))
        handles.append(Patch(facecolor="white", edgecolor="#333333", hatch="////", label=f"hatched: {told}"))
    axes.legend(handles=handles, loc="lower right", frameon=True, fontsize=8)


def _stage(stage: str) -> tuple[str, str]:
    return _STAGES.get(stage, (stage or "in no layer", PALETTE[7]))


def _rows(axes, parts: dict[str, Any]):
    return [(row, found) for row, found in enumerate(parts.values()) if found]
