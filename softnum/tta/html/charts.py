"""Charts of a comparison as Vega-Lite, built with altair; what they show is decided by whoever hands them rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
from altair.utils import schemapi

from softnum.tta.html.model import Chart, Control
from softnum.tta.html.values import amount
from softnum.tta.outcomes.style import DASHES, SHAPES

__all__ = [
    "SI", "axis_choice", "bars", "chart_spec", "colours", "curves", "dashes", "heat", "intervals", "lines", "near_tip",
    "SHOWN", "roofs", "shapes",
]  # fmt: skip

#: axis labels with SI prefixes: 100µs, 2.5MB
SI = "replace(format(datum.value, '~s'), /([^0-9]?)$/, ' $1') + '{unit}'"
_CROSS = "M-1,-1L1,1M1,-1L-1,1"
SHOWN = "indexof(shown, datum.design) >= 0"
_LOG, _LINEAR = {"type": "log", "nice": False}, {"type": "linear", "zero": False, "nice": False}


def chart_spec(
    chart: Callable[..., Any], designs: Sequence[str], *, step: int = 0, **data: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The specification of a chart whose layers name their data, and leave out the designs that are not shown."""
    spec = chart.add_params(alt.param(name="shown", value=list(designs))).to_dict(validate=schemapi.DEBUG_MODE)
    spec.pop("$schema", None)
    spec.pop("config", None)
    spec["datasets"] = {name: list(rows) for name, rows in data.items()}
    spec.setdefault("width", "container")
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    if step:  # the page keeps the height in step with the designs that it shows
        spec["height"], spec["usermeta"] = step * len(designs), {"step": step}
    return spec


def colours(designs: Sequence[str]) -> dict[str, Any]:
    """Colour by design; the page's list of designs is the legend."""
    return {"color": alt.Color("design:N", scale=alt.Scale(domain=list(designs)), legend=None)}


def dashes(designs: Sequence[str]) -> alt.StrokeDash:
    dashes = [list(DASHES[i % len(DASHES)]) for i in range(len(designs))]
    return alt.StrokeDash("design:N", scale=alt.Scale(domain=list(designs), range=dashes), legend=None)


def shapes(designs: Sequence[str]) -> alt.Shape:
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(designs))]
    return alt.Shape("design:N", scale=alt.Scale(domain=list(designs), range=shapes), legend=None)


def _pointers(node, channel: str, field: str, at: str = "") -> Iterator[str]:
    """JSON pointers of every encoding of a field in a channel."""
    if isinstance(node, Mapping):
        encoding = node.get("encoding", {}).get(channel) if isinstance(node.get("encoding"), Mapping) else None
        if isinstance(encoding, Mapping) and encoding.get("field") == field:
            yield f"{at}/encoding/{channel}"
        for key, value in node.items():
            if key != "datasets":
                yield from _pointers(value, channel, field, f"{at}/{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _pointers(value, channel, field, f"{at}/{i}")


def _choice(
    spec: Mapping[str, Any], name: str, title: str, channel: str, field: str, options: Mapping[str, Mapping[str, Any]]
) -> Control:
    """A control that changes every encoding of a field: options are what to put where in the encoding."""
    places = list(_pointers(spec, channel, field))
    patches = tuple(
        (text, tuple((f"{place}/{key}", value) for place in places for key, value in changes.items()))
        for text, changes in options.items()
    )
    return Control(name, title, patches)


def near_tip(parts: Mapping[str, tuple[str, str]]) -> alt.TooltipValue:
    """A tooltip of titles with field and format, for marks that are found by being nearest.

    Written as an expression: Vega-Lite 6 looks up fields of words in the cell around the mark, not in the mark.
    """
    shown = []
    for title, (field, form) in parts.items():
        value = f"(datum.datum || datum)[{json.dumps(field)}]"
        text = f"isValid({value}) ? format({value}, {json.dumps(form)}) : '-'" if form else value
        shown.append(f"{json.dumps(title)}: {text}")
    return alt.TooltipValue({"expr": "{" + ", ".join(shown) + "}"})


def axis_choice(spec: Mapping[str, Any], channel: str, field: str, title: str) -> Control:
    """Logarithmic, which is what the specification has, or linear."""
    options = {"logarithmic": {"scale": _LOG}, "linear": {"scale": _LINEAR}}
    return _choice(spec, f"{channel}-axis", title, channel, field, options)


def curves(
    name: str,
    title: str,
    caption: str,
    *,
    runs: Sequence[Mapping[str, Any]],
    medians: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    metric: str,
    target: float | None,
    times: Mapping[str, str],
    diverged: Sequence[Mapping[str, Any]] = (),
    by_factors: bool = False,
) -> Chart:
    """Learning curves: each run thin, the median over the runs thick, a cross where a run diverged.

    Rows have design, seed (None: median), iteration, epoch, value, and the fields that `times` names: field -> title.
    `diverged` are such rows. A metric without a target gets no line; `by_factors` makes its axis logarithmic.
    """
    selection = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", empty=False, encodings=["x", "y"]
    )
    x = alt.X(
        "iteration:Q",
        title="iterations (parameter updates)",
        scale=alt.Scale(**_LOG),
        axis=alt.Axis(format="~s", tickCount=8),
    )
    y = alt.Y("value:Q", title=metric, scale=alt.Scale(**_LOG) if by_factors else alt.Scale(zero=False))
    tips = {"design": ("design", ""), "run": ("run", ""), "iteration": ("iteration", ","), metric: ("value", ".5~g")}
    if any("epoch" in row for row in runs):
        tips["epoch"] = ("epoch", ".4~g")
    tips |= {f"seconds, {text}": (field, ".4~s") for field, text in times.items()}
    thin, thick = alt.Chart(alt.NamedData("runs")), alt.Chart(alt.NamedData("medians"))
    seeds = thin.mark_line(opacity=0.35, strokeWidth=1).encode(
        x, y, detail="run:N", **colours(designs), strokeDash=dashes(designs)
    )
    middle = thick.mark_line(strokeWidth=2.4).encode(x, y, **colours(designs), strokeDash=dashes(designs))
    points = (
        alt.Chart(alt.NamedData("runs"), name="points")
        .mark_point(filled=True, size=70)
        .encode(
            x, y, **colours(designs), shape=shapes(designs), tooltip=near_tip(tips),
            opacity=alt.condition(selection, alt.value(1), alt.value(0)),
        )
        .add_params(selection)
    )  # fmt: skip
    marks = (
        alt.Chart(alt.NamedData("diverged"))
        .mark_point(shape=_CROSS, size=90, strokeWidth=2.6, opacity=1)
        .encode(x, y, **colours(designs), tooltip=near_tip({"diverged": ("design", ""), "run": ("run", "")}))
    )
    layers = [seeds, middle, points, *([marks] if diverged else [])]
    above = []
    if target is not None:
        line = thick.mark_rule(style="target").encode(y=alt.datum(target)).properties(data=alt.Data(values=[{}]))
        text = f"target {target:g}"
        word = line.mark_text(style="word", align="left", baseline="bottom", dx=4, text=text).encode(x=alt.value(0))
        above = [line, word]
    chart = alt.layer(*above, *(part.transform_filter(SHOWN) for part in layers))
    data = {"runs": runs, "medians": medians, **({"diverged": diverged} if diverged else {})}
    spec = chart_spec(chart.properties(height=340), designs, **data)
    over = {"iterations": {"field": "iteration", "title": "iterations (parameter updates)"}}
    if any("epoch" in row for row in runs):
        over["epochs"] = {"field": "epoch", "title": "epochs (passes over the training samples)"}
    for field, text in times.items():
        axis = {"labelExpr": SI.format(unit="s"), "tickCount": 8}
        over[f"time, {text}"] = {"field": field, "title": f"time of training, {text}", "axis": axis}
    controls = (
        _choice(spec, "over", "Over", "x", "iteration", over),
        axis_choice(spec, "x", "iteration", "Axis"),
    )
    return Chart(name, title, spec, tuple(runs), caption, controls)


def intervals(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    axis: str,
    unit: str,
    wide: bool = False,
) -> Chart:
    """A bar for each design with its interval; an arrow where the interval has no end, words where nothing is known.

    Rows have design, value, low, high (None: no end), text (beside the bar) and words (in place of it).
    """
    ends = [v for row in rows for v in (row["value"], row["low"], row["high"]) if v is not None]
    top = max(ends, default=1.0) * 1.05
    drawn = [
        {**row, "end": row["high"] if row["high"] is not None else top, "open": row["high"] is None} for row in rows
    ]
    scale = alt.Scale(domain=[0, top], nice=False)
    labels = alt.Axis(labelExpr=SI.format(unit=unit), tickCount=5) if unit else alt.Axis(tickCount=5)
    y = alt.Y("design:N", sort=list(designs), title=None, axis=alt.Axis(ticks=False, domain=False))
    x = alt.X("value:Q", title=axis, scale=scale, axis=labels)
    base = alt.Chart(alt.NamedData("rows")).transform_filter(SHOWN)
    found = base.transform_filter("isValid(datum.value)")
    tips = [
        alt.Tooltip("design:N", title="design"),
        alt.Tooltip("text:N", title=axis),
        *(
            alt.Tooltip(f"{field}:Q", title=f"{words} ({unit})" if unit else words, format=".5~s" if unit else ".5~g")
            for field, words in (("value", "median"), ("low", "interval from"), ("high", "to"))
        ),
    ]
    layers = [
        found.mark_bar(height=16, opacity=0.35).encode(x, y, tooltip=tips, **colours(designs)),
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(
            alt.X("low:Q", scale=scale), y, x2="end:Q", tooltip=tips, **colours(designs)
        ),
        base.transform_filter("isValid(datum.low) && datum.open").mark_point(
            shape="triangle-right", filled=True, size=70, opacity=1
        ).encode(alt.X("end:Q", scale=scale), y, tooltip=tips, **colours(designs)),
        found.mark_point(filled=True, size=60, opacity=1).encode(
            x, y, tooltip=tips, shape=shapes(designs), **colours(designs)
        ),
        base.mark_text(style="number", align="left", baseline="bottom", dy=-9, dx=2).encode(
            y=y, x=alt.value(0), text="text:N"
        ),
    ]  # fmt: skip
    spec = chart_spec(alt.layer(*layers), designs, step=46, rows=drawn)
    return Chart(name, title, spec, tuple(rows), caption, wide=wide)


def bars(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    part: str,
    parts: Sequence[str],
    axis: str,
    unit: str,
    wide: bool = False,
) -> Chart:
    """A bar for each design, stacked of parts. Rows have design, the field `part`, and value."""
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(SHOWN)
        .mark_bar(height=20)
        .encode(
            alt.X("value:Q", title=axis, axis=alt.Axis(labelExpr=SI.format(unit=unit), tickCount=5)),
            alt.Y("design:N", sort=list(designs), title=None, axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color(
                f"{part}:N",
                scale=alt.Scale(domain=list(parts), scheme="tableau10"),
                sort=list(parts),
                legend=alt.Legend(title=None, orient="bottom", columns=3),
            ),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("design:N", title="design"),
                alt.Tooltip(f"{part}:N", title=part),
                alt.Tooltip("value:Q", title=f"{axis} ({unit})", format="," if unit == "B" else ".4~s"),
            ],
        )
    )
    order = {text: i for i, text in enumerate(parts)}
    spec = chart_spec(chart, designs, step=32, rows=[{**row, "order": order[row[part]]} for row in rows])
    return Chart(name, title, spec, tuple(rows), caption, wide=wide)


def heat(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    across: Sequence[str],
    measure: str,
) -> Chart:
    """A field for each design and layer, shaded by a share of one. Rows have design, part, value."""
    base = alt.Chart(alt.NamedData("rows")).transform_filter(SHOWN)
    x = alt.X(
        "design:N",
        sort=list(designs),
        title=None,
        axis=alt.Axis(labelAngle=-60, orient="top", labelLimit=110, ticks=False, domain=False),
    )
    y = alt.Y("part:N", sort=list(across), title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=190))
    tips = [
        alt.Tooltip("design:N", title="design"),
        alt.Tooltip("part:N", title="layer, pass"),
        alt.Tooltip("value:Q", title=measure, format=".2%"),
        *(alt.Tooltip(f"{key}:N", title=key) for key in rows[0] if key not in ("design", "part", "value")),
    ]
    fields = base.mark_rect().encode(
        x, y, tooltip=tips,
        color=alt.Color(
            "value:Q", scale=alt.Scale(domain=[0, 1]),
            legend=alt.Legend(title=measure, format=".0%", orient="bottom", gradientLength=180),
        ),
    )  # fmt: skip
    words = [
        base.transform_filter(f"datum.value {sign} 0.55").mark_text(style=style).encode(
            x, y, text=alt.Text("value:Q", format=".1%"), tooltip=tips
        )
        for sign, style in (("<=", "number"), (">", "shaded"))
    ]  # fmt: skip
    spec = chart_spec(alt.layer(fields, *words).properties(height=24 * len(across)), designs, rows=rows)
    return Chart(name, title, spec, tuple(rows), caption)


def lines(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    x: tuple[str, str, str],
    y: tuple[str, str, str],
    choose: tuple[str, str, Sequence[float], float],
    tips: Mapping[str, tuple[str, str]],
) -> Chart:
    """Lines with points, for one value of a field at a time.

    `x` and `y` are field, title and unit; `choose` is the field, its title, its values, and the one shown first; `tips`
    says of each field that a pointer shows its title and number format.
    """
    field, words, options, first = choose
    xs = alt.X(
        f"{x[0]}:Q", title=x[1], scale=alt.Scale(**_LOG), axis=alt.Axis(labelExpr=SI.format(unit=x[2]), tickCount=6)
    )
    shown = alt.Axis(labelExpr=SI.format(unit=y[2]), tickCount=6) if y[2] else alt.Axis(tickCount=6)
    ys = alt.Y(f"{y[0]}:Q", title=y[1], axis=shown)
    tips = [
        alt.Tooltip("design:N", title="design"),
        *(alt.Tooltip(f"{key}:Q", title=words, format=form) for key, (words, form) in tips.items()),
    ]
    base = alt.Chart(alt.NamedData("rows")).transform_filter(f"{SHOWN} && datum[{json.dumps(field)}] == chosen")
    chart = alt.layer(
        base.mark_line(strokeWidth=1.8).encode(xs, ys, **colours(designs), strokeDash=dashes(designs)),
        base.mark_point(filled=True, size=45, opacity=1).encode(
            xs, ys, tooltip=tips, **colours(designs), shape=shapes(designs)
        ),
    ).add_params(alt.param(name="chosen", value=first))
    spec = chart_spec(chart.properties(height=300), designs, rows=rows)
    place = next(f"/params/{i}/value" for i, param in enumerate(spec["params"]) if param["name"] == "chosen")
    order = [first, *(option for option in options if option != first)]
    chosen = Control(field, words, tuple((f"{option:g}", ((place, option),)) for option in order))
    return Chart(name, title, spec, tuple(rows), caption, (chosen, axis_choice(spec, "x", x[0], "Axis")))


def roofs(
    name: str,
    title: str,
    caption: str,
    *,
    points: Sequence[Mapping[str, Any]],
    roofs: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
) -> Chart:
    """Rooflines and the operations under them.

    `points` have design, intensity, rate and what a reader may want to know of them; `roofs` have the words for them,
    "roof", their peak (FLOP/s) and bandwidth (B/s).
    """
    ats = [*(row["intensity"] for row in points), *(row["peak"] / row["bandwidth"] for row in roofs)]
    left, right = min(ats) / 2, max(ats) * 4
    corners = [
        {"roof": row["roof"], "intensity": at, "rate": min(row["peak"], at * row["bandwidth"])}
        for row in roofs
        for at in (left, row["peak"] / row["bandwidth"], right)
    ]
    tops = [
        {"intensity": right, "rate": row["peak"], "text": f"{row['roof']}: {amount(row['peak'], 'FLOP/s')}"}
        for row in roofs
    ]
    x = alt.X(
        "intensity:Q",
        title="arithmetic intensity (FLOP per byte)",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(format="~g", tickCount=6),
    )
    y = alt.Y(
        "rate:Q",
        title="rate (FLOP/s)",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(labelExpr=SI.format(unit=""), tickCount=6),
    )
    dots = alt.Chart(alt.NamedData("points")).transform_filter(SHOWN)
    keys = [key for key in points[0] if key not in ("intensity", "rate")]
    tips = [
        *(alt.Tooltip(f"{key}:N", title=key) for key in keys),
        alt.Tooltip("intensity:Q", title="FLOP per byte", format=".4~g"),
        alt.Tooltip("rate:Q", title="FLOP/s", format=".4~s"),
    ]
    known = {"opacity": alt.condition("datum.time == 'known'", alt.value(0.9), alt.value(0.35))}
    chart = alt.layer(
        alt.Chart(alt.NamedData("roofs")).mark_line(style="roof").encode(x, y, detail="roof:N"),
        alt.Chart(alt.NamedData("tops")).mark_text(style="word", align="right", baseline="bottom", dy=-4).encode(
            x, y, text="text:N"
        ),
        dots.mark_point(filled=True, size=60).encode(
            x, y, tooltip=tips, **known, **colours(designs), shape=shapes(designs)
        ),
    )  # fmt: skip
    spec = chart_spec(chart.properties(height=340), designs, points=points, roofs=corners, tops=tops)
    return Chart(name, title, spec, tuple(points), caption)
