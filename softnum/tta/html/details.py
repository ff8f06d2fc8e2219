"""What stands behind times to accuracy: all targets, factors, what else a design takes, what a time is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.accuracy.records import Evaluation
from softnum.tta.html import charts, detail_charts, values
from softnum.tta.html.folder import Comparison, iteration_time
from softnum.tta.html.model import Chart, Note, identifier
from softnum.tta.outcomes.sources import RESOURCES, array_areas, differ, layer_parts, pareto
from softnum.tta.outcomes.targets import target_curves, target_spacing

__all__ = ["all_targets", "fronts", "gains", "time_parts"]

_STAGE_WORDS = {"backward_data": "backward, data", "backward_weight": "backward, weights", "": "in no layer"}


def _confidence(comparison: Comparison) -> str:
    return values.percent(comparison.results["intervals"]["confidence"])


def _timed(comparison: Comparison) -> list[Mapping[str, Any]]:
    return [v for v in comparison.results["variants"] if _measured(v) or any(entry["time"] for entry in v["designs"])]


def _measured(variant: Mapping[str, Any]) -> bool:
    """Whether times to accuracy are the curves' own."""
    return all(entry.get("tta_is") == "measured" for entry in variant["designs"])


# -- TTA over targets --------------------------------------------------------------------------------------------------
def all_targets(comparison: Comparison, prefix: str) -> list[Chart | Note]:
    """Time to accuracy over the targets, in every variant of the times."""
    results, runs = comparison.results, {design: [] for design in comparison.designs}
    for run in results["runs"]:
        curve = run["curve"]
        clock = curve.get("seconds") or [None] * len(curve["value"])
        points = zip(curve["iteration"], curve["epoch"], curve["value"], clock, strict=True)
        runs[run["design"]].append([Evaluation(i, math.nan if v is None else v, e, s) for i, e, v, s in points])
    rule = ReachedRule(**results["reached"])
    confidence, rows, ends, notes, aims = results["intervals"]["confidence"], [], [], [], []
    for variant in _timed(comparison):
        times = {e["design"]: iteration_time(e["time"]) for e in variant["designs"] if e["time"]}
        clock = _measured(variant)
        known = {design: found for design, found in runs.items() if (clock or design in times) and found}
        curves = target_curves(known, rule, times, target=results["target"], confidence=confidence, by_clock=clock)
        reached = [p.seconds for curve in curves for p in curve.points if math.isfinite(p.iterations)]
        for curve in curves:
            aims = aims or [point.target for point in curve.points]
            own = [_target_row(variant, curve, p, max(reached)) for p in curve.points if math.isfinite(p.iterations)]
            rows += own
            ends += own[-1:]
            if not own:
                notes.append(f"{curve.design}: its median run reaches no target, {variant['label']}")
        left_out = [design for design in comparison.designs if design not in known]
        if left_out:
            notes.append(f"{', '.join(left_out)}: no time, {variant['label']}")
    if not rows:
        return [Note(("No run has a finite evaluation and a time, so there is no TTA over targets.",), quiet=True)]
    caption = (
        "The time at which the median run first reaches each target, from the worst first evaluation to the best; the "
        f"band is the {_confidence(comparison)} interval. A curve ends, with a mark, at the farthest target that the "
        "median run reaches; nothing is extrapolated."
    )
    chart = detail_charts.targets(
        identifier(prefix, "targets"), "Time to accuracy over targets", caption, rows=rows, ends=ends,
        designs=comparison.designs, variants=list(dict.fromkeys(row["variant"] for row in rows)),
        metric=results["metric"], target=results["target"],
        spacing=target_spacing(aims[0], aims[-1], rule.direction), harder_is_more=rule.direction == "higher",
    )  # fmt: skip
    return [chart, *([Note.of(notes, "Not drawn", quiet=True)] if notes else [])]


def _target_row(variant: Mapping[str, Any], curve, point, highest: float) -> dict[str, Any]:
    return {
        "variant": variant["label"], "design": curve.design, "target": point.target, "seconds": point.seconds,
        "low": point.low, "high": point.high if math.isfinite(point.high) else None,
        "top": min(point.high, 2.5 * highest), "words": f"{point.reached} of {curve.runs} reach it",
    }  # fmt: skip


# -- throughput x efficiency -------------------------------------------------------------------------------------------
def gains(comparison: Comparison, prefix: str) -> list[Chart | Note]:
    """From the baseline's time to accuracy to each design's: the factor of throughput, then that of efficiency."""
    rows, starts, notes = [], {}, []
    for variant in _timed(comparison):
        base = next(entry for entry in variant["designs"] if entry["design"] == variant["baseline"])
        start = (base["tta"] or {}).get("median")
        if start is None:
            notes.append(f"{variant['label']}: {variant['baseline']}, the baseline, has no time to accuracy")
            continue
        starts[variant["label"]] = start
        for entry in variant["designs"]:
            rows += _gain_rows(variant, entry, start)
            if entry["tta"] is None:
                notes.append(f"{entry['design']}, {variant['label']}: no time: {entry['left_out']}")
    if not rows:
        return [Note.of(notes, "No way from the baseline", quiet=True)] if notes else []
    caption = (
        f"From the time to accuracy of {comparison.results['baseline']} (the line) to that of each design: samples per "
        "second, which is the hardware's share, and samples to the target, the arithmetic's. To the left is faster; a "
        f"thin line is the {_confidence(comparison)} interval of a step's end, an arrow has no upper end."
    )
    chart = detail_charts.gains(
        identifier(prefix, "gains"), "Throughput x efficiency", caption, rows=rows, designs=comparison.designs,
        variants=list(starts), baseline=comparison.results["baseline"], starts=starts,
    )  # fmt: skip
    return [chart, *([Note.of(notes, "No way from the baseline", quiet=True)] if notes else [])]


def _gain_rows(variant: Mapping[str, Any], entry: Mapping[str, Any], start: float) -> list[dict[str, Any]]:
    common = {"variant": variant["label"], "design": entry["design"]}
    empty = {"begin": None, "end": None, "low": None, "high": None, "open": False}
    own, ends, found = entry["design"] == variant["baseline"], entry["intervals"], []
    if entry["throughput"] is None:
        text = "no time" if entry["tta"] is None else f"not reached: {entry['reached']} of {entry['runs_in_all']} runs"
        if entry["speedup"] is not None:  # samples of one, and steps or epochs of the other
            told = f"{values.seconds(entry['tta']['median'])}, {values.ratio(entry['speedup'])}x"
            text = f"{told}; it counts {entry['unit']}s: no factors"
        return [{**common, **empty, "lane": "efficiency", "text": text}]
    between = start / entry["throughput"]
    if not own:
        found.append(_step(common, "throughput", start, between, ends["throughput"], entry["throughput"]))
    if entry["efficiency"] is None:
        text = f"not reached: {entry['reached']} of {entry['runs_in_all']} runs"
        return [*found, {**common, **empty, "lane": "efficiency", "text": text}]
    tta = entry["tta"]["median"]
    if not own:
        found.append(_step(common, "efficiency", between, tta, ends["efficiency"], entry["efficiency"]))
    low, high = ends["tta"]
    text = values.seconds(tta) + ("" if own else f", {values.ratio(entry['speedup'])}x")
    text += "" if own else _within(ends["speedup"])
    last = {"lane": "time to accuracy", "begin": tta, "end": tta, "low": low, "high": high, "open": high is None}
    return [*found, {**common, **last, "text": text}]


def _step(common: Mapping[str, Any], lane: str, begin: float, end: float, ends, factor: float) -> dict[str, Any]:
    least, most = ends or (factor, factor)
    return {
        **common, "lane": lane, "begin": begin, "end": end, "low": 0.0 if most is None else begin / most,
        "high": begin / least if least else None, "open": not least,
        "text": f"{lane} {values.ratio(factor)}{_within(ends)}",
    }  # fmt: skip


def _within(ends: Sequence[Any] | None) -> str:
    if ends is None or ends[0] == ends[1]:
        return ""
    return f" [{values.ratio(ends[0])}, {'no limit' if ends[1] is None else values.ratio(ends[1])}]"


# -- what else a design takes ------------------------------------------------------------------------------------------
def fronts(comparison: Comparison, prefix: str) -> list[Chart | Note]:
    """Time to accuracy against energy, rent, price and area, where designs differ in them, with the Pareto front."""
    rows, options, notes = [], {}, []
    for variant in _timed(comparison):
        times = {e["design"]: None if e["time"] is None else iteration_time(e["time"]) for e in variant["designs"]}
        sizes, without = array_areas(times)
        sizes = without | {design: (area, area, area) for design, area in sizes.items()}
        for name, (title, unit) in RESOURCES.items():
            known, left_out = {}, {}
            for entry in variant["designs"]:
                found = _resource(entry, name, sizes)
                (left_out if isinstance(found, str) else known)[entry["design"]] = found
            if not differ([value for value, *_ in known.values()]):
                continue
            label = f"{title}, {variant['label']}"
            options[label] = title, unit
            rows += _front_rows(label, variant, known)
            for why in dict.fromkeys(left_out.values()):
                notes.append(f"{label}: {', '.join(d for d, other in left_out.items() if other == why)}: {why}")
    if not rows:
        line = "No two designs differ in a known energy, cost or area, so there is no Pareto front."
        return [Note((line,), quiet=True)]
    caption = (
        "Medians; left and below is better. Filled marks are on the Pareto front, the line: no other design is as good "
        f"in both and better in one. Thin lines: {_confidence(comparison)} intervals."
    )
    chart = detail_charts.fronts(
        identifier(prefix, "fronts"), "Time to accuracy against energy, cost and area", caption, rows=rows,
        designs=comparison.designs, options=options,
    )  # fmt: skip
    return [chart, *([Note.of(notes, "Not drawn", quiet=True)] if notes else [])]


def _resource(entry: Mapping[str, Any], name: str, areas: Mapping[str, tuple[Any, ...] | str]) -> tuple[Any, ...] | str:
    """Median and interval, or why there is none."""
    if entry["tta"] is None:
        return f"no time: {entry['left_out']}"
    if entry["tta"]["median"] is None:
        return f"{entry['reached']} of {entry['runs_in_all']} runs reach the target"
    if name == "area":
        return areas[entry["design"]]
    if name == "price":
        price = (entry["cost"] or {}).get("price")
        return "no price is given" if price is None else (price, price, price)
    spread = (entry[name] or {}).get("to_accuracy")
    if spread is None:
        return "its energy is not known" if name == "energy" else "no rent is given"
    return (spread["median"], *(entry["intervals"][name] or (spread["median"],) * 2))


def _front_rows(label: str, variant: Mapping[str, Any], known: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    entries = {entry["design"]: entry for entry in variant["designs"]}
    front = pareto({design: (entries[design]["tta"]["median"], value) for design, (value, *_) in known.items()})
    rows = []
    for design, (value, low, high) in known.items():
        least, most = entries[design]["intervals"]["tta"]
        rows.append(
            {
                "variant": label, "design": design, "seconds": entries[design]["tta"]["median"], "seconds_low": least,
                "seconds_high": most, "value": value, "value_low": low, "value_high": high, "front": design in front,
                "on": "yes" if design in front else "no",
            }
        )  # fmt: skip
    return rows


# -- what a time is made of --------------------------------------------------------------------------------------------
def time_parts(comparison: Comparison, variant: Mapping[str, Any], prefix: str) -> list[Chart | Note]:
    """What an iteration's time is made of, by pass and cause; and by layer, where there is no chart of that yet."""
    parts = {e["design"]: layer_parts(iteration_time(e["time"])) for e in variant["designs"] if e["time"]}
    known = {design: found for design, found in parts.items() if found}
    if not known:
        return []
    sources = dict.fromkeys(f"{e['time']['kind']}, {e['time']['source']}" for e in variant["designs"] if e["time"])
    told = f"Of one iteration; {'; '.join(sources)}."
    shown = [("causes", "by pass and cause", lambda part: ", ".join(filter(None, (_stage(part.stage), part.cause))))]
    if not comparison.workloads:
        shown.append(("parts", "by layer", lambda part: part.layer or "in no layer"))
    found = []
    for name, words, key in shown:
        rows = []
        for design, each in known.items():
            sums: dict[str, list[float]] = {}
            for part in each:
                sums.setdefault(key(part), []).append(part.seconds)
            rows += [{"design": design, "part": text, "value": math.fsum(some)} for text, some in sums.items()]
        order = list(dict.fromkeys(row["part"] for row in rows))
        found.append(
            charts.bars(
                identifier(prefix, name, variant["label"]), f"Time {words}, {variant['label']}", told, rows=rows,
                designs=comparison.designs, part="part", parts=order, axis="time per iteration", unit="s", wide=True,
            )
        )  # fmt: skip
    without = [f"{design}: its time is known of the whole iteration only" for design in parts if design not in known]
    return [*found, *([Note.of(without, quiet=True)] if without else [])]


def _stage(stage: str) -> str:
    return _STAGE_WORDS.get(stage, stage)
