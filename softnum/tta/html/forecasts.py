"""The report of forecasts: what a training would take, what that is put together of, and how the loss would fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import altair as alt

from softnum.tta.forecasts.words import amount_words, result_lines
from softnum.tta.html import charts
from softnum.tta.html.model import Cell, Chart, Note, Page, Row, Section, Table, identifier

__all__ = ["page_of_forecasts"]

_PARTS = ("compute", "tensor", "context", "expert", "data", "bubble", "update")
_SUMMARY = (
    ("time", "Time"), ("device-hours", "Device-hours"), ("cost", "Cost"), ("energy", "Energy"), ("tokens", "Tokens"),
    ("steps", "Steps"), ("step", "A step"), ("useful share", "Useful"),
)  # fmt: skip


def page_of_forecasts(results: Mapping[str, Any], states: Mapping[str, str], base: str | None) -> Page:
    """The page of what `read_forecasts` gave; `states` and `base` as of a comparison's page."""
    rows = results["forecasts"]
    designs = tuple(row["design"] for row in rows)
    first = rows[0]
    lines = [line.strip() for row in rows for line in _lines(results, row)]
    beyond = [f"{row['design']}: {line}" for row in rows for line in row["extrapolated"]]
    told = Note.of(beyond, "Extrapolated") if beyond else Note(("Nothing lies beyond the law's runs.",), quiet=True)
    ends = results["confidence"]
    sure = "No intervals are known." if ends is None else f"Intervals: at least {100 * ends:.3g} %; {results['rule']}."
    searched = Note((f"Where no ways are stated: {results['search']}.",), quiet=True)
    sections = [
        Section("result", "Result", (Note.of(lines), told, _summary(rows), Note((sure,), quiet=True))),
        Section("loss", "Loss over time", (_curves(results, designs),)),
        Section("factors", "Factors and their sources", tuple(_factors(row) for row in rows)),
        Section("step", "A step", (_step(rows, designs), _ways(rows), searched)),
        Section("assumed", "Assumptions", tuple(Note.of(row["notes"], row["design"]) for row in rows)),
        Section("sources", "Sources, versions", (_sources(results, states, base),)),
    ]  # fmt: skip
    title = f"Forecast: {first['network']} to a {results['metric']} of {results['target']:g}"
    subtitle = f"{first['system']} ({first['device']}); not trained, not measured: estimates"
    return Page(title, subtitle, designs, sections)


def _lines(results: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    return result_lines(
        row["network"], row["design"], row["system"], results["metric"], results["target"], row["amounts"]
    )  # fmt: skip


def _cell(amount) -> Cell:
    value, interval = amount_words(amount)
    return Cell(value, interval, f"{amount.value!r} {amount.unit}".strip())


def _summary(rows: Sequence[Mapping[str, Any]]) -> Table:
    by = [{amount.name: amount for amount in row["amounts"]} for row in rows]
    shown = [(name, title) for name, title in _SUMMARY if any(name in amounts for amounts in by)]
    cells = tuple(
        Row(
            (Cell(row["design"]), *(_cell(own[name]) if name in own else Cell("-") for name, _ in shown)), row["design"]
        )
        for row, own in zip(rows, by, strict=True)
    )
    data = tuple(
        {"design": row["design"]} | {f"{each.name} {key}".replace(" ", "_").removesuffix("_value"): value
                                     for each in row["amounts"]
                                     for key, value in each.to_table().items() if key in ("value", "low", "high")}
        for row in rows
    )  # fmt: skip
    return Table("forecast", "What it would take", ("Design", *(title for _, title in shown)), cells, data)


def _factors(row: Mapping[str, Any]) -> Table:
    cells = tuple(
        Row.of(each.name, _cell(each), each.kind, each.source, design=row["design"]) for each in row["amounts"]
    )  # fmt: skip
    data = tuple({"design": row["design"], **each.to_table()} for each in row["amounts"])
    head = ("Factor", "Value", "Kind", "Source")
    name = identifier("factors", row["design"])
    return Table(name, row["design"], head, cells, data, words=frozenset({0, 2, 3}))


def _ways(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = ("data", "tensor", "pipeline", "context", "expert", "batch", "micro_batch", "zero", "recompute", "schedule")
    cells, data = [], []
    for row in rows:
        ways, peak = row["parallelism"], row["memory"]["peak"]
        tried = "stated" if row["searched"] is None else f"fastest of {row['searched']['fitting']} that fit"
        cells.append(
            Row.of(row["design"], *(str(ways[name]) for name in names), f"{peak / 1e9:.1f} GB", tried,
                   design=row["design"])
        )  # fmt: skip
        data.append({"design": row["design"], **ways, "peak": peak, "searched": tried})
    head = ("Design", *(name.replace("_", "-") for name in names), "Memory", "Ways")
    return Table("ways", "How it is shared", head, tuple(cells), tuple(data))


def _step(rows: Sequence[Mapping[str, Any]], designs: Sequence[str]) -> Chart:
    parts = []
    for row in rows:
        step = row["step"]
        seconds = {"compute": step["compute"], **step["exposed"], "bubble": step["bubble"], "update": step["update"]}
        parts += [
            {"design": row["design"], "part": part, "value": seconds[part], "order": n}
            for n, part in enumerate(_PARTS)
            if seconds.get(part)
        ]
    known = [part for part in _PARTS if any(each["part"] == part for each in parts)]
    caption = "Of the busiest device: it computes, waits for exchanges of each group and for other stages, updates."
    return charts.bars(
        "step-parts", "Where a step's time goes", caption, rows=parts, designs=designs, part="part", parts=known,
        axis="time of a step", unit="s", wide=True,
    )  # fmt: skip


def _curves(results: Mapping[str, Any], designs: Sequence[str]) -> Chart:
    rows = [
        {"design": row["design"], "days": days, "loss": loss, "low": low, "high": high}
        for row in results["forecasts"]
        for days, loss, low, high in zip(*(row["curve"][key] for key in ("days", "loss", "low", "high")), strict=True)
    ]  # fmt: skip
    x = alt.X("days:Q", title="days", scale=alt.Scale(zero=True))
    base = alt.Chart(alt.NamedData("rows")).transform_filter(charts.SHOWN)
    colour = charts.colours(designs)
    scale = alt.Scale(zero=False)
    band = base.mark_area(opacity=0.2).encode(x, alt.Y("low:Q", title=results["metric"], scale=scale),
                                              alt.Y2("high:Q"), **colour)  # fmt: skip
    line = base.mark_line().encode(
        x, alt.Y("loss:Q", title=results["metric"], scale=scale), strokeDash=charts.dashes(designs),
        tooltip=[alt.Tooltip("design:N"), alt.Tooltip("days:Q", format=".3g"), alt.Tooltip("loss:Q", format=".4f")],
        **colour,
    )  # fmt: skip
    aim = alt.Chart(alt.NamedData("aim")).mark_rule(strokeDash=[4, 4]).encode(alt.Y("target:Q"))
    spec = charts.chart_spec(
        (band + line + aim).properties(height=260), designs, rows=rows, aim=[{"target": results["target"]}]
    )  # fmt: skip
    caption = (
        f"What the law says at each time of the estimate, with the law's interval; the target is {results['target']:g}."
    )
    return Chart("loss-over-time", "The law over the days", spec, tuple(rows), caption)


def _sources(results: Mapping[str, Any], states: Mapping[str, str], base: str | None) -> Table:
    cells, data = [], []
    for row in results["sources"]:
        there = base is not None and states.get(row["path"]) == "the same"
        link = quote(f"{base}{row['path']}") if there else ""
        state = states.get(row["path"], "not found")
        cells.append(Row.of(row["role"], Cell(row["path"], link=link), state, row["sha256"]))
        data.append({**row, "state": state})
    for role, text in (("command", results["inputs"]["command"]), ("softnum", results["versions"]["softnum"])):
        cells.append(Row.of(role, text, "", ""))
        data.append({"role": role, "path": text, "sha256": "", "state": ""})
    head = ("What", "File", "Now", "SHA-256")
    return Table("sources", "Sources", head, tuple(cells), tuple(data), words=frozenset({0, 1, 2, 3}))
