"""The picture of a study: learning curves over iterations and simulated seconds, and TTA with its range."""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from softnum.tta.accuracy.records import Record
from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.outcomes.style import PALETTE
from softnum.tta.quantities import format_dollars, format_seconds

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_STYLES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*"
DIVERGED = {"marker": "x", "markersize": 8, "markeredgewidth": 2.2, "linestyle": "none", "zorder": 5}
PICTURE_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "savefig.dpi": 150,
}


def draw(studies: Sequence[Study]) -> bytes:
    """Draw the studies and return the PNG file's bytes.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times, over the same runs.

    Returns
    -------
    bytes
    """
    first = studies[0]
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE}):
        rows = len(first.designs)
        figure = Figure(figsize=(11, 4.6 + 0.34 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, 1, height_ratios=[4.0, 0.9 + 0.34 * rows])
        top = grid[0].subgridspec(1, 2)
        left = figure.add_subplot(top[0])
        right = figure.add_subplot(top[1], sharey=left)
        looks = {result.design: look(i) for i, result in enumerate(first.designs)}
        _curves(left, first, looks, seconds=False)
        _curves(right, first, looks, seconds=True)
        right.set_ylabel("")
        right.tick_params(labelleft=False)
        bottom = grid[1].subgridspec(1, len(studies))
        axes = None
        for index, study in enumerate(studies):
            axes = figure.add_subplot(bottom[index], sharex=axes)
            _points(axes, study, looks, names=index == 0)
        handles, labels = left.get_legend_handles_labels()
        if divergences(first.records):
            handles.append(diverged_mark())
            labels.append(handles[-1].get_label())
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        out = io.BytesIO()
        # no date or version in the file: the same study gives the same bytes
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def divergences(records: Iterable[Record]) -> list[tuple[str, int, float]]:
    """Where runs diverged: design, iteration, and the last finite value before it."""
    found = []
    for record in records:
        finite = [e.value for e in record.evaluations if math.isfinite(e.value)]
        if record.diverged and finite:
            found.append((record.label, record.iterations, finite[-1]))
    return found


def diverged_mark() -> Line2D:
    """For a legend."""
    return Line2D([], [], color="#333333", label="a run diverged (its last finite value)", **DIVERGED)


def look(index: int) -> dict[str, Any]:
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": _STYLES[(index // 2) % len(_STYLES)],
        "marker": _MARKERS[index % len(_MARKERS)],
    }


def _band(study: Study, design: str) -> tuple[list[int], list[float], list[float], list[float]]:
    """Iteration, median, least and greatest metric, at the evaluations that every run of the design has."""
    runs = [record for record in study.records if record.label == design]
    tables = [{e.iteration: e.value for e in record.evaluations} for record in runs]
    worst = 0.0 if study.reached.direction == "higher" else math.inf
    common = [i for i in tables[0] if all(i in table for table in tables)]
    points = []
    for iteration in common:
        values = [worst if math.isnan(table[iteration]) else table[iteration] for table in tables]
        points.append((iteration, statistics.median(values), min(values), max(values)))
    return tuple(map(list, zip(*points, strict=True))) if points else ([], [], [], [])


def _clock(study: Study, design: str, iterations: list[int]) -> list[float]:
    """What the clocks of a design's runs show at these iterations, the median; NaN before they began."""
    runs = [record for record in study.records if record.label == design]
    tables = [
        {e.iteration: math.nan if e.seconds is None else e.seconds for e in record.evaluations} for record in runs
    ]
    return [statistics.median(table[iteration] for table in tables) for iteration in iterations]


def _curves(axes, study: Study, looks: dict[str, Any], *, seconds: bool) -> None:
    several = len({result.batch for result in study.designs}) > 1
    for result in study.designs:
        if seconds and result.time is None and not result.by_clock:
            continue
        x, median, low, high = _band(study, result.design)
        if seconds and result.by_clock:
            x = _clock(study, result.design, x)
        elif seconds:
            x = [iteration * result.time.seconds for iteration in x]
        look = looks[result.design]
        style = {"color": look["color"], "linestyle": look["linestyle"]}
        named = result.design.endswith(f"@{result.batch}")
        label = literal(result.design) + (f" (batch {result.batch})" if several and not named else "")
        axes.plot(x, median, label=label, linewidth=1.5, **style)
        axes.fill_between(x, low, high, color=look["color"], alpha=0.13, linewidth=0)
    times = {result.design: result.time.seconds for result in study.designs if result.time is not None}
    for design, iteration, value in divergences(study.records):
        if not seconds or design in times:
            at = iteration * times[design] if seconds else iteration
            axes.plot([at], [value], color=looks[design]["color"], **DIVERGED)
    axes.axhline(study.target, color="#444444", linewidth=0.8)
    axes.annotate(
        f"target {study.target:g}",
        (0.0, study.target),
        xycoords=("axes fraction", "data"),
        xytext=(4, 2),
        textcoords="offset points",
        ha="left",
        va="bottom",
        fontsize=8,
        color="#444444",
    )
    axes.set_ylabel(f"{study.metric} (median and range over seeds)")
    axes.set_xscale("log")
    if not math.isfinite(axes.dataLim.minposx):  # every value is infinite or NaN, and nothing is drawn
        axes.set_xlim(1, 10)
    if seconds:
        axes.set_title(f"Over time, {study.label}")
        measured = any(result.by_clock for result in study.designs)
        axes.set_xlabel("time (by the curves' own clocks)" if measured else "time (iterations x time per iteration)")
        seconds_axis(axes.xaxis)
    else:
        axes.set_title("Over training")
        units = {result.unit for result in study.designs} - {"iteration", "step"}
        axes.set_xlabel(f"{units.pop()}s" if len(units) == 1 else "iterations (parameter updates)")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _decades(axis) -> float:
    low, high = sorted(abs(end) for end in axis.get_view_interval())
    return math.log10(high) - math.log10(low) if low > 0 else 9.0


def _ticks(axis) -> LogLocator:
    """Ticks of a logarithmic axis whose ends are set: at 1, 2 and 5 times powers of ten, or more, or fewer."""
    decades = _decades(axis)
    subs = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0) if decades < 1.2 else (1.0, 2.0, 5.0) if decades < 3.2 else (1.0,)
    return LogLocator(subs=subs, numticks=9 if decades >= 3.2 else None)


def seconds_axis(axis: Axis) -> None:
    """Ticks of a logarithmic axis as seconds with their unit."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if _decades(axis) < 3.2 else _ticks(axis))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_seconds(value)))
    axis.set_minor_formatter(NullFormatter())


def quantity_axis(axis: Axis, unit: str = "") -> None:
    """Ticks of a logarithmic axis as plain numbers, joules with prefixes."""
    axis.set_major_locator(_ticks(axis))
    plain = format_dollars if unit == "$" else lambda value: f"{value:g} {unit}".strip()
    axis.set_major_formatter(EngFormatter(unit=unit) if unit == "J" else FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(NullFormatter())


def literal(text: str) -> str:
    """A user's text as it is to be read: matplotlib takes what stands between dollar signs for a formula."""
    return text.replace("$", r"\$")


def add_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Above the panels, in as many columns as there is room for."""
    longest = max(len(handle.get_label()) for handle in handles)
    columns = int(figure.get_figwidth() / (0.08 * longest + 0.6))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(max(columns, 1), 4), frameon=False)


def legend_height(names: Iterable[str], width: float, most: int = 4) -> float:
    """Inches of such a legend."""
    names = list(names)
    columns = min(max(int(width / (0.08 * max(map(len, names)) + 0.6)), 1), most)
    return 0.2 * math.ceil(len(names) / columns)


def short_seconds(seconds: float) -> str:
    """Seconds with their unit, without zeros at the end."""
    number, _, unit = format_seconds(seconds).partition(" ")
    value = float(number.replace(",", ""))
    return f"{value:,.0f} {unit}" if value >= 1e4 else f"{value:g} {unit}"


def _points(axes, study: Study, looks: dict[str, Any], *, names: bool) -> None:
    axes.set_xscale("log")
    ends = [
        value
        for r in study.designs
        if r.tta is not None
        for value in (r.tta.low, r.tta.median, r.tta.high, *r.intervals.tta)
        if math.isfinite(value)
    ]
    if ends:  # before drawing, for a single point has no range to scale to; with room for the words beside the points
        low, high = (math.inf, 0) if names else axes.get_xlim()  # the axis is shared with the panels before
        axes.set_xlim(min(min(ends) / 2, low), max(max(ends) * 6, high))
    for row, result in enumerate(study.designs):
        _point(axes, row, result, looks[result.design])
    axes.set_yticks(range(len(study.designs)), [literal(result.design) for result in study.designs])
    axes.set_ylim(len(study.designs) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelleft=names)
    axes.set_title(f"TTA, {study.label}")
    sign = "≥" if study.reached.direction == "higher" else "≤"
    axes.set_xlabel(
        f"time to {study.metric} {sign} {study.target:g} (median; thick: range; ends: {100 * study.confidence:g} %)"
    )
    seconds_axis(axes.xaxis)


def _point(axes, row: int, result: DesignResult, look: dict[str, Any]) -> None:
    words = {"xytext": (7, 0), "textcoords": "offset points", "va": "center", "fontsize": 8, "color": "#333333"}
    if result.tta is None or math.isinf(result.tta.low):
        text = f"not reached in {max(run.iterations for run in result.runs)} iterations"
        if result.tta is None:
            text = f"left out: {result.left_out.partition(';')[0]}"  # a way out may follow
        axes.annotate(text, (0, row), xycoords=("axes fraction", "data"), fontstyle="italic", **words)
        return
    tta = result.tta
    marks = {"color": look["color"], "zorder": 3}
    if math.isinf(tta.high):
        # an arrow: some runs never arrived
        end = tta.median if math.isfinite(tta.median) else tta.low
        axes.annotate(
            "",
            (end * 1.9, row),
            (tta.low, row),
            arrowprops={"arrowstyle": "->", "color": look["color"], "linewidth": 1.5},
        )
        end *= 1.9
    else:
        end = tta.high
        axes.plot([tta.low, tta.high], [row, row], linewidth=2.2, solid_capstyle="butt", **marks)
    low, high = result.intervals.tta
    if low < high < math.inf:  # thin, with ends: the interval; thick: the range
        whisker = {"elinewidth": 0.8, "capsize": 5, "capthick": 0.8, "linestyle": "none", **marks, "zorder": 2}
        axes.errorbar([low], [row], xerr=[[0.0], [high - low]], **whisker)
        end = max(end, high)
    if math.isfinite(tta.median):
        axes.plot([tta.median], [row], marker=look["marker"], markersize=6.5, linestyle="none", **marks)
        text = format_seconds(tta.median)
        if result.speedup is not None:
            text += f"  ({result.speedup:.2f}x)"
    else:
        text = "median run: not reached"
    if result.reached < len(result.runs):
        text += f"  [{result.reached} of {len(result.runs)} runs]"
    axes.annotate(text, (end, row), **words)
