"""Tables of a comparison: what each design needed, its runs, what was combined, and where every number comes from."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from typing import Any

from softnum.tta.html import values
from softnum.tta.html.folder import Comparison
from softnum.tta.html.model import Cell, Row, Table, identifier

__all__ = ["inputs", "interactions", "runs", "sources", "studies", "summary"]


def _flat(prefix: str, table: Mapping[str, Any] | None, keys=("median", "low", "high")) -> dict[str, Any]:
    return {f"{prefix}_{key}": None if table is None else table[key] for key in keys}


def _ends(prefix: str, ends) -> dict[str, Any]:
    low, high = ends or (None, None)
    return {f"{prefix}_interval_low": low, f"{prefix}_interval_high": high}


def summary(comparison: Comparison, variant: Mapping[str, Any], prefix: str) -> Table:
    """One line for each design: reached, iterations, time of one, TTA, speed-up and its factors, cost, energy."""
    results = comparison.results
    confidence = values.percent(results["intervals"]["confidence"])
    entries = variant["designs"]
    shown = {key: [e[key] for e in entries if e[key] is not None] for key in ("cost", "energy")}
    rent = any(cost["to_accuracy"] is not None for cost in shown["cost"])
    price = any(cost["per_throughput"] is not None for cost in shown["cost"])
    head = [
        "Design", "Runs at target", f"Best {results['metric']}", "Iterations", "Time of one", "Time to accuracy",
        "Speed-up", "= throughput", "x efficiency",
        *(["Rent to accuracy"] if rent else []), *(["Price / (sample/s)"] if price else []),
        *(["Energy to accuracy"] if shown["energy"] else []),
    ]  # fmt: skip
    rows, data = [], []
    for entry in entries:
        cells, flat = _summary_row(comparison, entry, prefix)
        cost, energy, ends = entry["cost"], entry["energy"], entry["intervals"]
        if rent:
            cells.append(values.spread_cell(cost and cost["to_accuracy"], ends["cost"], values.dollars, "$"))
        if price:
            each = cost and cost["per_throughput"]
            cells.append(Cell("-") if each is None else Cell(values.dollars(each), full=f"{each!r} $ per sample/s"))
        if shown["energy"]:
            spread = energy and energy["to_accuracy"]
            cells.append(values.spread_cell(spread, ends["energy"], lambda v: values.amount(v, "J"), "J"))
        rows.append(Row(tuple(cells), entry["design"], entry["design"] == results["baseline"]))
        flat |= {key: (cost or {}).get(key) for key in ("rent_per_hour", "price")}
        flat |= _flat("cost", cost and cost["to_accuracy"]) | _ends("cost", ends["cost"])
        flat |= {"price_per_throughput": (cost or {}).get("per_throughput")}
        flat |= {"joules_per_iteration": (energy or {}).get("joules"), "energy_source": (energy or {}).get("source")}
        flat |= _flat("energy", energy and energy["to_accuracy"]) | _ends("energy", ends["energy"])
        data.append(flat)
    caption = (
        f"Medians over the runs; below them the {confidence} interval, and below iterations the range. "
        f"Speed-up is over {results['baseline']}. Point at a number to see it in full."
    )
    title = f"{_capital(results['metric'])} {_sign(results)} {results['target']:g}, {variant['label']}"
    return Table(identifier(prefix, "summary", variant["label"]), title, tuple(head), tuple(rows), tuple(data), caption)


def _summary_row(comparison: Comparison, entry: Mapping[str, Any], prefix: str) -> tuple[list[Cell], dict[str, Any]]:
    confidence = values.percent(comparison.results["intervals"]["confidence"])
    time, share, ends = entry["time"], entry["share"], entry["intervals"]
    bests = [run["best"] for run in entry["runs"] if run["best"] is not None]
    best = statistics.median(bests) if len(bests) == len(entry["runs"]) else None
    iterations = entry["iterations"]
    if iterations["median"] is None:
        longest = max(run["iterations"] for run in entry["runs"])
        iteration_cell = Cell("not reached", f"in {values.count(longest)}")
    else:
        high = "not reached" if iterations["high"] is None else values.count(iterations["high"])
        tokens = entry.get("tokens")
        told = "" if tokens is None else f", {values.count(tokens['median'])} tokens"
        iteration_cell = Cell(
            values.count(iterations["median"]),
            f"{values.count(iterations['low'])} to {high}{told}",
            f"interval {values.interval(ends['iterations'], values.count)}",
        )
    cells = [
        Cell(entry["design"], f"batch {entry['batch']}", link=f"#{identifier(prefix, 'sources')}"),
        Cell(
            f"{entry['reached']} of {entry['runs_in_all']}",
            f"{100 * share['low']:.0f} to {100 * share['high']:.0f} %",
            f"share of runs that reach the target: Wilson {confidence} interval {share['low']!r} to {share['high']!r}",
        ),
        Cell("-") if best is None else Cell(values.metric(best), full=repr(best)),
        iteration_cell,
    ]
    if time is None:
        cells.append(Cell("no time", entry["left_out"]))
    else:
        kind = time["kind"] + (f", {values.interval(time['interval'], values.seconds)}" if time["interval"] else "")
        cells.append(Cell(values.seconds(time["seconds"]), kind, f"{time['seconds']!r} s, {time['source']}"))
    none = entry["tta"] is None
    cells.append(Cell("-") if none else values.spread_cell(entry["tta"], ends["tta"], values.seconds, "s"))
    for key in ("speedup", "throughput", "efficiency"):
        if entry[key] is None:
            cells.append(Cell("-"))
        else:
            cells.append(Cell(values.ratio(entry[key]), values.interval(ends[key], values.ratio), f"{entry[key]!r}"))
    flat = {
        "design": entry["design"], "batch": entry["batch"], "runs": entry["runs_in_all"], "reached": entry["reached"],
        "share_low": share["low"], "share_high": share["high"], "best_median": best,
        **_flat("iterations", iterations), **_ends("iterations", ends["iterations"]),
        **(_flat("tokens", entry["tokens"]) if "tokens" in entry else {}),
        "seconds_per_iteration": time and time["seconds"], "kind": time and time["kind"],
        "source": time and time["source"], "left_out": entry["left_out"],
        **_ends("seconds_per_iteration", time and time["interval"]),
        **_flat("tta", entry["tta"]), **_ends("tta", ends["tta"]),
    }  # fmt: skip
    for key in ("speedup", "throughput", "efficiency"):
        flat |= {key: entry[key], **_ends(key, ends[key])}
    return cells, flat


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sign(results: Mapping[str, Any]) -> str:
    return "≥" if results["direction"] == "higher" else "≤"


def studies(comparisons: Any, variant: str, prefix: str) -> Table | None:
    """Speed-ups by network and design, in the variant of a label; None where no comparison has it."""
    found = [(c, v) for c in comparisons for v in c.results["variants"] if v["label"] == variant]
    designs = tuple(dict.fromkeys(design for c, _ in found for design in c.designs))
    rows, data = [], []
    for design in designs:
        cells = [Cell(design)]
        for comparison, table in found:
            entry = next((e for e in table["designs"] if e["design"] == design), None)
            data.append(
                {
                    "design": design,
                    "comparison": comparison.name,
                    "speedup": entry and entry["speedup"],
                    "tta_median": entry and entry["tta"] and entry["tta"]["median"],
                    "reached": entry and entry["reached"],
                    "runs": entry and entry["runs_in_all"],
                }
            )
            if entry is None:
                cells.append(Cell("-", "not in it"))
            elif entry["speedup"] is None:
                why = "no time" if entry["time"] is None else "no ratio"
                if entry["iterations"]["median"] is None:
                    why = f"{entry['reached']} of {entry['runs_in_all']} runs reached"
                cells.append(Cell("-", why))
            else:
                ends = values.interval(entry["intervals"]["speedup"], values.ratio)
                tta = values.seconds(entry["tta"]["median"])
                cells.append(Cell(f"{values.ratio(entry['speedup'])}", f"{ends or 'baseline'}; {tta}"))
        rows.append(Row(tuple(cells), design))
    head = ("Design", *(c.title for c, _ in found))
    caption = "Speed-up over the baseline; below it its interval and the time to accuracy."
    name = identifier(prefix, "studies", variant)
    return Table(name, f"Speed-up, {variant}", head, tuple(rows), tuple(data), caption)


def runs(comparison: Comparison, prefix: str, base: str | None) -> Table:
    """One line for each run, with the record it is read from."""
    by_key = {(run["design"], run["seed"]): run for run in comparison.results["runs"]}
    rows, data = [], []
    for entry in comparison.results["variants"][0]["designs"]:
        for run in entry["runs"]:
            found = by_key.get((entry["design"], run["seed"]), {})
            record = found.get("record")
            reached = run["iterations_to_target"]
            rows.append(
                Row.of(
                    Cell(entry["design"]), str(run["seed"]),
                    "not reached" if reached is None else values.count(reached), values.count(run["iterations"]),
                    "-" if run["best"] is None else values.metric(run["best"]),
                    "-" if run["final"] is None else values.metric(run["final"]), str(run["interval"]),
                    _file(record, comparison, base) if record else Cell("no file"), design=entry["design"],
                )
            )  # fmt: skip
            data.append({"design": entry["design"], **run, "record": record, "sha256": found.get("sha256")})
    metric = comparison.results["metric"]
    head = (
        "Design",
        "Seed",
        "Iterations to target",
        "Iterations",
        f"Best {metric}",
        f"Last {metric}",
        "Evaluated every",
        "Record",
    )
    caption = "Iterations to the target are known to the evaluation interval."
    return Table(
        identifier(prefix, "runs"), "Runs", head, tuple(rows), tuple(data), caption, frozenset({0, 7}), folded=True
    )


def _file(path: str, comparison: Comparison, base: str | None) -> Cell:
    """A file's path; a link where the page lies beside it."""
    there = base is not None and comparison.states.get(path) == "the same" and not path.startswith("softnum/tta/")
    from urllib.parse import quote

    return Cell(path, link=quote(f"{base}{path}") if there else "")


def interactions(comparison: Comparison, variant: Mapping[str, Any], prefix: str) -> Table:
    """What combining designs was predicted to give, and what it gave."""
    rows, data = [], []
    for found in variant["interactions"]:
        parts = " + ".join(found["parts"])
        cells = [Cell(found["combined"], f"of {parts}, over {found['base']}")]
        flat = {"combined": found["combined"], "parts": parts, "base": found["base"]}
        for key in ("speedup", "throughput", "efficiency"):
            for what in ("predicted", "measured", "ratio"):
                value = found[what][key]
                flat[f"{what}_{key}"] = value
                small = values.interval(found["interval"], values.ratio) if (what, key) == ("ratio", "speedup") else ""
                cells.append(Cell("-") if value is None else Cell(values.ratio(value), small, repr(value)))
        rows.append(Row(tuple(cells), found["combined"]))
        data.append(flat | _ends("ratio_speedup", found["interval"]))
    head = ("Combined", *(f"{_capital(key)} {what}" for key in ("speed-up", "throughput", "efficiency")
                          for what in ("predicted", "measured", "ratio")))  # fmt: skip
    caption = "Predicted: the product of what the parts gave alone. A ratio below 1: together they gave less than that."
    name = identifier(prefix, "interaction", variant["label"])
    return Table(name, f"Combined designs, {variant['label']}", head, tuple(rows), tuple(data), caption)


def sources(comparison: Comparison, prefix: str, base: str | None) -> Table:
    """Every file that a number comes from, with its digest and what it gave."""
    uses: dict[str, dict[str, None]] = {}
    for run in comparison.results["runs"]:
        if run["record"]:
            gave = f"iterations and {comparison.results['metric']} of {run['design']}, seed {run['seed']}"
            uses.setdefault(run["record"], {})[gave] = None
    tuning = comparison.results.get("tuning") or {"trials": (), "runs": ()}
    for trial in tuning["trials"]:
        for path in trial["records"]:
            uses.setdefault(path, {})[f"trial of {trial['design']} at rate {trial['learning_rate']:g}"] = None
    for run in tuning["runs"]:
        if run["record"]:
            which = f"{run['design']} at its tuned rate, seed {run['seed']}"
            uses.setdefault(run["record"], {})[f"iterations and {comparison.results['metric']} of {which}"] = None
    for variant in comparison.results["variants"]:
        for entry in variant["designs"]:
            time = entry["time"] or {}
            detail = time.get("detail") or {}
            named = [time.get("source"), detail.get("file")]
            named += [row.get("report") for row in detail.get("gemms") or () if isinstance(row, Mapping)]
            for path in named:
                if isinstance(path, str):
                    uses.setdefault(path, {})[f"time of {entry['design']}, {variant['label']}"] = None
    rows, data = [], []
    for row in comparison.results["sources"]:
        gave = list(uses.get(row["path"], ())) or [
            "what an iteration consists of" if row["role"] == "workloads" else "times per iteration"
        ]
        text = "; ".join(gave if len(gave) <= 4 else [*gave[:3], f"and {len(gave) - 3} more"])
        state = comparison.states[row["path"]]
        rows.append(
            Row.of(
                _file(row["path"], comparison, base), row["role"], text,
                Cell(row["sha256"][:16], full=row["sha256"]), state,
            )
        )  # fmt: skip
        data.append({**row, "gives": gave, "state": state})
    caption = (
        "Every number of this part is computed from these files. State: whether the file was found with this "
        "SHA-256 when the report was made."
    )
    head = ("File", "Kind", "Gives", "SHA-256", "State")
    return Table(
        identifier(prefix, "sources"), "Sources", head, tuple(rows), tuple(data), caption, frozenset(range(5)),
    )  # fmt: skip


def inputs(comparison: Comparison, prefix: str) -> Table:
    """What was asked for, and the versions that answered."""
    results = comparison.results
    pairs = [(key, value) for key, value in results["inputs"].items() if value is not None]
    pairs.append(("reached", results["rule"]))
    pairs.append(("intervals", f"{values.percent(results['intervals']['confidence'])}: {results['intervals']['rule']}"))
    versions: dict[str, None] = {}
    for table in (results["versions"], *(run["versions"] for run in results["runs"])):
        versions.update({f"{name} {version}": None for name, version in table.items()})
    pairs.append(("versions", ", ".join(sorted(versions))))
    rows = tuple(Row.of(key.replace("_", " "), _words(value)) for key, value in pairs)
    data = tuple({"what": key, "value": value} for key, value in pairs)
    return Table(identifier(prefix, "inputs"), "Inputs", ("What", "Value"), rows, data, "", frozenset({0, 1}))


def _words(value) -> str:
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
