"""Charts of what stands behind times to accuracy, as Vega-Lite: TTA over targets, gains as a waterfall, Pareto fronts.

One chart holds every variant of the times; a choice above it says which is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from softnum.tta.html.charts import SHOWN, SI, axis_choice, chart_spec, colours, dashes, near_tip, shapes
from softnum.tta.html.model import Chart, Control
from softnum.tta.outcomes.style import ERROR_TICKS

__all__ = ["fronts", "gains", "targets"]

_LOG, _PADDED = alt.Scale(type="log", nice=False), alt.Scale(type="log", nice=False, padding=14)
_CHOSEN = "datum.variant == chosen"


def _select(spec: Mapping[str, Any], title: str, options: Mapping[str, tuple[Any, ...]]) -> Control:
    """Which of the rows are shown, and what else changes with them."""
    place = next(f"/params/{i}/value" for i, param in enumerate(spec["params"]) if param["name"] == "chosen")
    return Control("variant", title, tuple((text, ((place, text), *more)) for text, more in options.items()))


def _labels(unit: str) -> str:
    """Expression of an axis label: prefixes go with joules, and not with dollars or areas."""
    if unit == "J":
        return SI.format(unit=unit)
    return "'$' + format(datum.value, '~g')" if unit == "$" else f"format(datum.value, '~g') + ' {unit}'"


def _seconds_axis() -> alt.Axis:
    return alt.Axis(labelExpr=SI.format(unit="s"), tickCount=6)


def targets(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    ends: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    variants: Sequence[str],
    metric: str,
    target: float,
    spacing: str,
    harder_is_more: bool,
) -> Chart:
    """Steps of the median time over the targets, with bands.

    Rows have variant, design, target, seconds, low, high (None: no limit), top (where the band ends) and words; `ends`
    are the last of each design. `spacing` is as of `target_spacing`.
    """
    errors = spacing == "errors"
    field = "missing" if errors else "target"
    shown = [row | ({"missing": 1 - row["target"]} if errors else {}) for row in rows]
    last = [row | ({"missing": 1 - row["target"]} if errors else {}) for row in ends]
    scale = {"type": "linear" if spacing == "linear" else "log", "nice": False, "zero": False}
    if spacing == "linear":
        axis = alt.Axis(labelExpr="format(datum.value, '.6~g')", tickCount=8)
    else:
        scale |= {"reverse": True}
        del scale["zero"]
        label = "format(1 - datum.value, '.5~f')" if errors else "format(datum.value, '~g')"
        axis = alt.Axis(labelExpr=label, tickCount=8)
        if errors:
            axis.values = [1 - tick for tick in ERROR_TICKS]
    if not harder_is_more:
        scale["reverse"] = True
    x = alt.X(f"{field}:Q", title=f"target of {metric}", scale=alt.Scale(**scale), axis=axis)
    y = alt.Y("seconds:Q", title="time to the target", scale=_LOG, axis=_seconds_axis())
    # between two targets the time is that of the harder one; Vega draws from left to right in the field's order
    step = "step-before" if harder_is_more and not errors else "step-after"
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", empty=False, encodings=["x", "y"]
    )
    tips = near_tip(
        {
            "design": ("design", ""), "target": ("target", ".5~g"), "time": ("seconds", ".4~s"),
            "interval from": ("low", ".4~s"), "to": ("high", ".4~s"), "runs": ("words", ""),
        }
    )  # fmt: skip
    base = alt.Chart(alt.NamedData("rows")).transform_filter(f"{SHOWN} && {_CHOSEN}")
    tops = alt.Chart(alt.NamedData("ends")).transform_filter(f"{SHOWN} && {_CHOSEN}")
    line = alt.Chart(alt.NamedData("aim")).mark_rule(style="target").encode(alt.X(f"{field}:Q"))
    chart = alt.layer(
        line,
        line.mark_text(style="word", align="left", baseline="top", dx=4, text=f"target {target:g}").encode(
            alt.X(f"{field}:Q"), y=alt.value(2)
        ),
        base.mark_area(opacity=0.13, interpolate=step, line=False).encode(
            x, alt.Y("low:Q", scale=_LOG), y2="top:Q", **colours(designs)
        ),
        base.mark_line(interpolate=step, strokeWidth=2).encode(x, y, **colours(designs), strokeDash=dashes(designs)),
        tops.mark_point(filled=True, size=90, opacity=1).encode(x, y, **colours(designs), shape=shapes(designs)),
        base.mark_point(filled=True, size=60).encode(
            x, y, tooltip=tips, opacity=alt.condition(near, alt.value(1), alt.value(0)), **colours(designs)
        ).add_params(near),
    ).add_params(alt.param(name="chosen", value=variants[0]))  # fmt: skip
    aim = [{field: 1 - target if errors else target}]
    spec = chart_spec(chart.properties(height=340), designs, rows=shown, ends=last, aim=aim)
    controls = (_select(spec, "Times", dict.fromkeys(variants, ())),) if len(variants) > 1 else ()
    return Chart(name, title, spec, tuple(rows), caption, controls)


def gains(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    variants: Sequence[str],
    baseline: str,
    starts: Mapping[str, float],
) -> Chart:
    """Three lanes for each design: the way by throughput, by efficiency, and the time it comes to.

    Rows have variant, design, lane, begin and end (seconds; None where there is none), low and high (of the end; None
    for no limit), open (whether there is no upper limit), and text.
    """
    lanes = ["throughput", "efficiency", "time to accuracy"]
    ways = [v for row in rows for v in (row["begin"], row["end"], row["low"], row["high"]) if v]
    low, high = min(ways) / 1.3, max(ways) * 1.3
    room = high * max(high / low, 10.0) ** 0.55  # for the words
    drawn = [{**row, "last": row["high"] if row["high"] is not None else high} for row in rows]
    scale = alt.Scale(type="log", nice=False, domain=[low, room])
    x = alt.X("begin:Q", title="time to accuracy (medians)", scale=scale, axis=_seconds_axis())
    y = alt.Y("design:N", sort=list(designs), title=None, axis=alt.Axis(ticks=False, domain=False))
    lane = alt.YOffset("lane:N", sort=lanes, scale=alt.Scale(domain=lanes, paddingInner=0.1, paddingOuter=0.25))
    colour = alt.Color(
        "lane:N",
        scale=alt.Scale(domain=lanes, range=["#0072B2", "#E69F00", "#7F7F7F"]),
        sort=lanes,
        legend=alt.Legend(title=None, orient="bottom"),
    )
    tips = [
        alt.Tooltip("design:N"), alt.Tooltip("lane:N", title="step"), alt.Tooltip("text:N", title="factor"),
        alt.Tooltip("begin:Q", title="from (s)", format=".4~s"), alt.Tooltip("end:Q", title="to (s)", format=".4~s"),
        alt.Tooltip("low:Q", title="interval from (s)", format=".4~s"),
        alt.Tooltip("high:Q", title="to (s)", format=".4~s"),
    ]  # fmt: skip
    base = alt.Chart(alt.NamedData("rows")).transform_filter(f"{SHOWN} && {_CHOSEN}")
    known = base.transform_filter("isValid(datum.end)")
    spans = base.transform_filter("isValid(datum.low)")
    begin = alt.Chart(alt.NamedData("starts")).transform_filter(_CHOSEN)
    chart = alt.layer(
        begin.mark_rule(style="target").encode(alt.X("begin:Q", scale=scale)),
        known.transform_filter("datum.lane != 'time to accuracy'").mark_bar(opacity=0.8).encode(
            x, y, yOffset=lane, x2="end:Q", color=colour, tooltip=tips
        ),
        spans.mark_rule(strokeWidth=1.4).encode(
            alt.X("low:Q", scale=scale), y, yOffset=lane, x2="last:Q", tooltip=tips
        ),
        spans.transform_filter("datum.open").mark_point(shape="triangle-right", filled=True, size=50, opacity=1).encode(
            alt.X("last:Q", scale=scale), y, yOffset=lane, color=alt.value("#7F7F7F")
        ),
        known.transform_filter("datum.lane == 'time to accuracy'").mark_point(filled=True, size=55, opacity=1).encode(
            alt.X("end:Q", scale=scale), y, yOffset=lane, color=colour, tooltip=tips
        ),
        base.mark_text(style="number", align="left").encode(
            y=y, x=alt.datum(high * 1.05, scale=scale), yOffset=lane, text="text:N"
        ),
    ).add_params(alt.param(name="chosen", value=variants[0]))  # fmt: skip
    first = [{"variant": variant, "begin": value} for variant, value in starts.items()]
    spec = chart_spec(chart, designs, step=66, rows=drawn, starts=first)
    controls = (_select(spec, "Times", dict.fromkeys(variants, ())),) if len(variants) > 1 else ()
    return Chart(name, title, spec, tuple(rows), caption, controls)


def fronts(
    name: str,
    title: str,
    caption: str,
    *,
    rows: Sequence[Mapping[str, Any]],
    designs: Sequence[str],
    options: Mapping[str, tuple[str, str]],
) -> Chart:
    """Points of time to accuracy and something else of which less is better, with the front.

    Rows have variant (what is chosen), design, seconds, low, high, value, value_low, value_high (None: no limit) and
    front; `options` are what can be chosen, with the title of the other axis and its unit.
    """
    top = {key: max(v for row in rows for v in (row[key], row[f"{key}_high"]) if v) for key in ("seconds", "value")}
    drawn = [
        row | {f"{key}_top": top[key] if row[f"{key}_high"] is None else row[f"{key}_high"] for key in top}
        for row in rows
    ]
    first = next(iter(options))
    x = alt.X("seconds:Q", title="time to accuracy", scale=_PADDED, axis=_seconds_axis())
    words, unit = options[first]
    axis = alt.Axis(labelExpr=_labels(unit), tickCount=5)
    y = alt.Y("value:Q", title=words, scale=_PADDED, axis=axis)
    tips = [
        alt.Tooltip("design:N"), alt.Tooltip("seconds:Q", title="time to accuracy (s)", format=".4~s"),
        alt.Tooltip("seconds_low:Q", title="interval from (s)", format=".4~s"),
        alt.Tooltip("seconds_high:Q", title="to (s)", format=".4~s"),
        alt.Tooltip("value:Q", title="other", format=".4~g"),
        alt.Tooltip("value_low:Q", title="interval from", format=".4~g"),
        alt.Tooltip("value_high:Q", title="to", format=".4~g"), alt.Tooltip("on:N", title="Pareto front"),
    ]  # fmt: skip
    base = alt.Chart(alt.NamedData("rows")).transform_filter(f"{SHOWN} && {_CHOSEN}")
    front = alt.Chart(alt.NamedData("rows")).transform_filter(f"{_CHOSEN} && datum.front")
    look = {**colours(designs), "shape": shapes(designs)}
    chart = alt.layer(
        front.mark_line(style="roof", interpolate="step-after").encode(x, y),
        base.mark_rule(opacity=0.6).encode(
            alt.X("seconds_low:Q", scale=_PADDED), y, x2="seconds_top:Q", **colours(designs)
        ),
        base.mark_rule(opacity=0.6).encode(
            x, alt.Y("value_low:Q", scale=_PADDED), y2="value_top:Q", **colours(designs)
        ),
        base.mark_point(size=90, opacity=1, strokeWidth=2).encode(
            x, y, tooltip=tips, **look,
            fill=alt.Fill("design:N", scale=alt.Scale(domain=list(designs)), legend=None),
            fillOpacity=alt.condition("datum.front", alt.value(1), alt.value(0)),
        ),
    ).add_params(alt.param(name="chosen", value=first))  # fmt: skip
    spec = chart_spec(chart.properties(height=320), designs, rows=drawn)
    pointers = [f"/layer/{i}/encoding/y" for i, layer in enumerate(spec["layer"]) if "title" in layer["encoding"]["y"]]
    drawn_axis = axis.to_dict(validate=False)
    patched = {
        option: tuple(
            change
            for place in pointers
            for change in (
                (f"{place}/title", text),
                (f"{place}/axis", {**drawn_axis, "labelExpr": _labels(of)}),
            )
        )
        for option, (text, of) in options.items()
    }
    controls = [_select(spec, "Against", patched)] if len(options) > 1 else []
    return Chart(name, title, spec, tuple(rows), caption, (*controls, axis_choice(spec, "x", "seconds", "Time axis")))
