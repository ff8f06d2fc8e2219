"""The tables of a study, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from softnum.tta.outcomes.outcome import DesignResult, Spread, Study
from softnum.tta.quantities import format_dollars, format_joules, format_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "bill_table", "both_table", "format_ratio", "interval_table", "main_table", "report_console",
    "rich_table", "varies", "wholly_measured",
]  # fmt: skip


def _count(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:g}"


def format_ratio(value: float | None) -> str:
    """A ratio to two places, or to two digits where that would leave less.

    >>> format_ratio(2.678), format_ratio(0.0042), format_ratio(None)
    ('2.68', '0.0042', '-')
    """
    if value is None:
        return "-"
    if math.isinf(value):
        return "no limit"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def _range(spread: Spread, ends: tuple[float, float] | None, show) -> str:
    """Median and interval."""
    if math.isinf(spread.low):
        return "not reached"
    median = "not reached" if math.isinf(spread.median) else show(spread.median)
    if ends is None or ends[0] == ends[1]:
        return median
    return f"{median}\n{_ends(ends, show)}"


def _ends(ends: tuple[float, float] | None, show) -> str:
    """Both ends of an interval, with the unit once where they share it."""
    if ends is None:
        return "-"
    low, high = map(show, ends)
    if ends[0] == ends[1]:
        return low
    if low.split(" ")[1:] == high.split(" ")[1:]:
        low = low.split(" ")[0]
    return f"[{low}, {high}]"


def wholly_measured(study: Study) -> bool:
    """Whether times to accuracy are the curves' own."""
    return all(result.by_clock for result in study.designs)


def report_console(console: Console | None = None) -> Console:
    """The console to print on: that given, or the terminal's."""
    from rich.console import Console

    if console is None:
        console = Console()
        if not console.is_terminal:  # a pipe has no width; the table needs about 80 columns
            console = Console(width=100)
    return console


def main_table(study: Study, rows: Sequence[DesignResult] | None = None, *, short: bool = False) -> Table:
    """Runs that reach the target, iterations and their time, TTA, and the speed-up's factors.

    Parameters
    ----------
    study : Study
    rows : sequence of DesignResult, optional
        Some of its designs. Default: all.
    short : bool
        One line a design: without intervals of iterations and TTA, without factors and batch.
    """
    sign = ">=" if study.reached.direction == "higher" else "<="
    title = f"Time to {study.metric} {sign} {study.target:g}, {study.label} (baseline {study.baseline})"
    counted = (
        ["Counted to\nthe target", "TTA\n(measured)"] if wholly_measured(study) else ["Iterations\nx time each", "TTA"]
    )
    names = ["Reached\n(best)", *counted, "Speed-up\n= thr. x eff."]
    if short:
        return rich_table(
            title,
            ["Reached", *(name.replace("\n", " ") for name in counted), "Speed-up"],
            study,
            _short_cells,
            rows=rows,
        )
    return rich_table(title, names, study, _cells, rows=rows)


def rich_table(
    title: str,
    columns: Sequence[str],
    study: Study,
    cells: Callable[..., Any],
    least: int = 0,
    rows: Sequence[DesignResult] | None = None,
) -> Table:
    """A table with a row for each design, whose cells a function gives; the baseline's is bold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.min_width = least
    # in a narrow terminal cells take more lines, and lose nothing
    table.add_column("Design", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")
    for result in study.designs if rows is None else rows:
        table.add_row(*map(Text, cells(result)), style="bold" if result.design == study.baseline else None)
    return table


def varies(study: Study) -> bool:
    """Whether anything varies: more than one run, or a time that was measured more than once."""
    return any(
        len(r.runs) > 1 or (not r.by_clock and r.time is not None and r.time.interval is not None)
        for r in study.designs
    )


def interval_table(study: Study) -> Table:
    """The intervals of a study; None where nothing varies."""
    if not varies(study):
        return None

    def cells(result: DesignResult) -> list[str]:
        found = result.intervals
        tta = found.tta
        factors = [_ends(ends, format_ratio) for ends in (found.speedup, found.throughput, found.efficiency)]
        return [
            result.design,
            _ends(result.share, lambda share: f"{100 * share:.0f} %"),
            "not reached" if tta is not None and math.isinf(tta[0]) else _ends(tta, format_seconds),
            "-" if factors == ["-"] * 3 else "{}\n= {}\nx {}".format(*factors),
        ]

    title = f"Intervals of {100 * study.confidence:g} %, {study.label}"
    columns = ("Runs that reach", "TTA", "Speed-up\n= throughput\nx efficiency")
    return rich_table(title, columns, study, cells, len(title))


def both_table(study: Study) -> Table:
    """Measured times to accuracy beside iterations x mean time; None where no design has both, or should."""
    if not any(result.measured is not None and result.product is not None for result in study.designs):
        return None

    def cells(result: DesignResult) -> list[str]:
        measured, product = result.measured, result.product
        ratio = "-"
        if None not in (measured, product) and math.isfinite(measured.median) and measured.median > 0:
            ratio = f"{100 * (product.median / measured.median - 1):+.1f} %"
        unlike = measured is not None and product is None and result.by_clock
        return [
            result.design,
            "-" if measured is None else _median(measured),
            ("refused: see notes" if unlike else "-") if product is None else _median(product),
            ratio,
        ]

    title = f"Measured by the curves' clocks, and iterations x mean time, {study.label}"
    return rich_table(title, ("Measured", "Product", "Product over\nmeasured"), study, cells, len(title))


def _median(spread: Spread) -> str:
    return "not reached" if math.isinf(spread.median) else format_seconds(spread.median)


def bill_table(study: Study, shown: Sequence[DesignResult] | None = None, *, short: bool = False) -> Table:
    """Cost and energy to accuracy, short: one line for each design; None where neither is known."""
    rows = study.designs
    columns = {
        "Cost to target": any(r.cost is not None and r.cost.rent_per_hour is not None for r in rows),
        "Price per\nsample/s": any(r.cost is not None and r.cost.price is not None for r in rows),
        "Energy to target": any(r.energy is not None for r in rows),
    }
    if not any(columns.values()):
        return None

    def cells(result: DesignResult) -> list[str]:
        cost, energy = result.cost, result.energy
        spread, price = (None, None) if cost is None else (cost.to_accuracy, cost.per_throughput)
        texts = (
            "-" if spread is None else _range(spread, result.intervals.cost, format_dollars),
            "-" if price is None else format_dollars(price),
            "-" if energy is None else _range(energy.to_accuracy, result.intervals.energy, format_joules),
        )
        texts = [text.replace("\n", " ") if short else text for text in texts]
        return [result.design, *(text for text, known in zip(texts, columns.values(), strict=True) if known)]

    title = f"Cost and energy to the target, {study.label}"
    return rich_table(title, [name for name, known in columns.items() if known], study, cells, len(title), shown)


def _short_cells(result: DesignResult) -> list[str]:
    _, reached, count, tta, speedup = _cells(result)
    first = count.split("\n")
    return [
        result.design,
        reached.split("\n")[0],
        " ".join(first) if result.reached == 0 else first[0],
        tta.split("\n")[0],
        speedup.split("\n")[0],
    ]


def _cells(result: DesignResult) -> list[str]:
    longest, ends = max(run.iterations for run in result.runs), result.intervals
    best = Spread.of([run.best for run in result.runs]).median
    each = "no time" if result.time is None else format_seconds(result.time.seconds)
    count, *spread = _range(result.iterations, ends.iterations, _count).split("\n")
    times = f" {result.unit}{'s' * (count != '1')}" if result.by_clock else f" x {each}"
    iterations = "\n".join([count if math.isinf(result.iterations.median) else f"{count}{times}", *spread])
    if result.tokens is not None and not math.isinf(result.tokens.median):
        iterations += f"\n= {result.tokens.median:,.0f} tokens"
    if result.reached == 0:
        iterations = f"not reached in\n{longest}{times}"
    speedup = format_ratio(result.speedup)
    if result.speedup is not None and ends.speedup is not None and ends.speedup[0] != ends.speedup[1]:
        speedup += f" {_ends(ends.speedup, format_ratio)}"
    return [
        f"{result.design}\n  batch {result.batch}" if result.unit == "iteration" else result.design,
        f"{result.reached} of {len(result.runs)}\n({best:.3f})",
        iterations,
        "-" if result.tta is None else _range(result.tta, ends.tta, format_seconds),
        f"{speedup}\n= {format_ratio(result.throughput)} x {format_ratio(result.efficiency)}",
    ]
