"""What a study shows: a table for the terminal and a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.tta.outcomes.intervals import least_runs
from softnum.tta.outcomes.outcome import DesignResult, Spread, Study
from softnum.tta.outcomes.verdict import tie_lines, verdict_warnings
from softnum.tta.quantities import format_dollars, format_joules, format_seconds

__all__ = ["format_ratio", "plot_details", "plot_studies", "print_studies", "report_console"]

_WARNINGS = 3  # that stand under a result; --explain has the others


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


def report_console(console=None):
    """The console to print on: that given, or the terminal's."""
    from rich.console import Console

    if console is None:
        console = Console()
        if not console.is_terminal:  # a pipe has no width; the table needs about 80 columns
            console = Console(width=100)
    return console


def print_studies(studies: Sequence[Study], console=None, *, explain: bool = False) -> None:
    """Print a table for each study, its ties, and what could turn the verdict.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times, over the same runs.
    console : rich.console.Console, optional
        Where to print. Default: the terminal.
    explain : bool
        Also print every interval and bill, all warnings, the rules, the assumptions and what was left out, all of which
        ``results.json`` has, too.

    Examples
    --------
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> print_studies([study])  # doctest: +ELLIPSIS
    Time to accuracy >= 0.9, given times (baseline base)
    ...
    """
    console = report_console(console)

    def say(line: str, **style) -> None:
        console.print(line, highlight=False, markup=False, **style)

    for study in studies:
        console.print(_table(study))
        ties = [(result.design, result.ties, result.sample_ties) for result in study.designs]
        for line in tie_lines(ties):
            say(f"  {line}")
        for found in study.interactions:
            say(f"  {found.text()}")
        console.print()
        asked = any(result.cost is not None for result in study.designs)
        known = any(result.time is not None and result.time.joules is not None for result in study.designs)
        tables = [_interval_table(study)] if explain else []
        tables += [_both_table(study)]
        tables += [_bill_table(study)] if explain or asked or known else []
        for table in tables:
            if table is not None:
                console.print(table)
    warnings = verdict_warnings(studies)
    if warnings:
        say("What could turn the verdict", style="bold")
    for line in warnings if explain else warnings[:_WARNINGS]:
        say(f"  - {line}")
    if explain:
        _explain(studies, say)
        return
    _listed(say, "Notes", [note for study in studies for note in study.notes])
    kinds = dict.fromkeys(map(_kinds, studies))
    brackets = [f"[ ]: {100 * studies[0].confidence:g} % intervals."] if _has_intervals(studies[0]) else []
    counted, more = len(_assumed(studies)), len(warnings) - _WARNINGS
    told = "The rules" + (f" and {counted} assumption{'s' * (counted > 1)}" if counted else "")
    told += " stand in results.json; --explain prints them"
    told += f", and {more} more warning{'s' * (more > 1)}." if more > 0 else "."
    say(" ".join([*brackets, *kinds, told]), style="dim")


def _assumed(studies: Sequence[Study]) -> dict[str, None]:
    return dict.fromkeys(line for study in studies for line in study.assumptions)


def _listed(say, heading: str, lines: Iterable[str]) -> None:
    """Each different line once, under a heading; nothing if there is none."""
    lines = dict.fromkeys(lines)
    if lines:
        say(heading, style="bold")
    for line in lines:
        say(f"  - {line}", style="dim")


def _explain(studies: Sequence[Study], say) -> None:
    """The rules, the assumptions, what is left out, and the notes."""
    first = studies[0]
    rules = [
        f"Reached: {first.rule}.",
        f"Best: the {'highest' if first.reached.direction == 'higher' else 'lowest'} {first.metric} of a run, median "
        "over the seeds.",
        *_tta_lines(first),
        *([_coverage(first)] if _has_intervals(first) else []),
        *(["On paper: the product of what each part gains alone over the baseline."] if first.interactions else []),
        f"Nothing is extrapolated; iterations are known to the evaluation interval ({_intervals(first)}).",
        *map(_kinds, studies),
    ]
    _listed(say, "How to read it", rules)
    for study in studies:
        _listed(say, f"Assumed for {study.label}", study.assumptions)
    _listed(say, "Not in the times", [line for study in studies for line in study.not_simulated])
    _listed(say, "Notes", [note for study in studies for note in study.notes])


def _tta_lines(study: Study) -> list[str]:
    """What TTA and speed-up are: a product and its two factors, or a measurement and what can be told of it."""
    if _measured(study):
        return [
            "TTA is measured: what the curve's own clock shows at the evaluation that reaches the target; median over "
            "the seeds. Designs stand in its order.",
            f"Speed-up over {study.baseline} = ratio of TTAs; efficiency: samples to the target (the arithmetic's "
            "share); throughput: what is left, samples per second up to the target.",
        ]
    return [
        "TTA = iterations to the target x time per iteration: median over the seeds.",
        f"Speed-up over {study.baseline} = throughput (samples per second: the hardware's share) x efficiency "
        "(samples to the target: the arithmetic's share).",
    ]


def _measured(study: Study) -> bool:
    """Whether times to accuracy are the curves' own."""
    return all(result.by_clock for result in study.designs)


def _kinds(study: Study) -> str:
    """How the times are known, for all designs or kind by kind: an estimate must not pass for a measurement."""
    kinds: dict[str, list[str]] = {}
    for result in study.designs:
        if result.time is not None:
            kinds.setdefault(result.time.kind, []).append(result.design)
    if _measured(study):
        return "Mean times of iterations, beside TTA, are the curves' own too."
    if len(kinds) == 1:
        return f"Times per iteration are {next(iter(kinds))}."
    told = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
    return f"Times per iteration, {study.label}: {told or 'none'}."


def _intervals(study: Study) -> str:
    """The evaluation interval in iterations, by design where designs differ."""
    by_interval: dict[int, list[str]] = {}
    for result in study.designs:
        by_interval.setdefault(max(run.interval for run in result.runs), []).append(result.design)
    if len(by_interval) == 1:
        return f"{next(iter(by_interval))} iterations"
    return "; ".join(f"{interval} for {', '.join(names)}" for interval, names in sorted(by_interval.items()))


def _table(study: Study):
    sign = ">=" if study.reached.direction == "higher" else "<="
    title = f"Time to {study.metric} {sign} {study.target:g}, {study.label} (baseline {study.baseline})"
    counted = ("Counted to\nthe target", "TTA\n(measured)") if _measured(study) else ("Iterations\nx time each", "TTA")
    names = ("Reached\n(best)", *counted, "Speed-up\n= thr. x eff.")
    return _rich_table(title, names, study, _cells)


def _rich_table(title: str, columns: Sequence[str], study: Study, cells, least: int = 0):
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.min_width = least
    # in a narrow terminal cells take more lines, and lose nothing
    table.add_column("Design", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")
    for result in study.designs:
        table.add_row(*map(Text, cells(result)), style="bold" if result.design == study.baseline else None)
    return table


def _has_intervals(study: Study) -> bool:
    """Whether anything varies: more than one run, or a time that was measured more than once."""
    return any(
        len(r.runs) > 1 or (not r.by_clock and r.time is not None and r.time.interval is not None)
        for r in study.designs
    )


def _interval_table(study: Study):
    """The intervals of a study; None where nothing varies."""
    if not _has_intervals(study):
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
    return _rich_table(title, columns, study, cells, len(title))


def _both_table(study: Study):
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
    return _rich_table(title, ("Measured", "Product", "Product over\nmeasured"), study, cells, len(title))


def _median(spread: Spread) -> str:
    return "not reached" if math.isinf(spread.median) else format_seconds(spread.median)


def _coverage(study: Study) -> str:
    """What the intervals are, and what few runs cannot tell."""
    runs = min(len(result.runs) for result in study.designs)
    text = (
        f"Intervals of {100 * study.confidence:g} %: runs that reach by Wilson's score; the others by bootstrap over "
        "the runs and Student's t of measured times."
    )
    least = least_runs(study.confidence)
    if runs < least:
        text += (
            f" With {runs} run{'s' * (runs > 1)} even the whole range covers the true median in only "
            f"{100 * (1 - 2.0 ** (1 - runs)):g} % of studies; from {least} runs on it covers it in "
            f"{100 * study.confidence:g} %."
        )
    return text


def _bill_table(study: Study):
    """Cost and energy to accuracy; None where neither is known."""
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
        return [result.design, *(text for text, shown in zip(texts, columns.values(), strict=True) if shown)]

    title = f"Cost and energy to the target, {study.label}"
    return _rich_table(title, [name for name, shown in columns.items() if shown], study, cells, len(title))


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


def plot_studies(path: str | os.PathLike, studies: Sequence[Study]) -> Path:
    """Draw learning curves and TTA as a PNG.

    Parameters
    ----------
    path : path-like
        The picture, ending in ``.png``.
    studies : sequence of Study
        One for each variant of the times; the curves over seconds use the first.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_studies(Path(folder, "tta.png"), [study]).name
    'tta.png'
    """
    from softnum.tta.outcomes.plot import draw  # matplotlib takes half a second to import

    write_atomic(path, draw(studies))
    return Path(path)


def plot_details(folder: str | os.PathLike, studies: Sequence[Study]) -> dict[str, Path | str]:
    """Draw what stands behind the times to accuracy, as PNG: a picture each.

    Parameters
    ----------
    folder : path-like
        Where the pictures go.
    studies : sequence of Study
        One for each variant of the times, over the same runs.

    Returns
    -------
    dict of str to Path or str
        The file of each picture, or why there is none: "curves.png", each run's loss and metric with the places where
        runs diverged; "targets.png", TTA over all targets; "gains.png", from the baseline's TTA to each design's by
        throughput and efficiency; "fronts.png", TTA against energy, cost and area with the Pareto front; "layers.png",
        what an iteration's time is made of.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = plot_details(folder, [study])
    >>> found["targets.png"].name, found["fronts.png"]
    ('targets.png', 'no two designs differ in a known energy, cost or area')
    """
    from softnum.tta.outcomes import curve_plots, detail_plots, source_plots  # matplotlib

    drawings = {
        "curves.png": (curve_plots.plot_curves, "there is no run"),
        "targets.png": (detail_plots.plot_targets, "no design has a time and a finite evaluation"),
        "gains.png": (detail_plots.plot_gains, f"{studies[0].baseline}, the baseline, has no time to accuracy"),
        "fronts.png": (source_plots.plot_fronts, "no two designs differ in a known energy, cost or area"),
        "layers.png": (source_plots.plot_layers, "no time says what it is made of"),
    }
    return {name: draw(Path(folder, name), studies) or why for name, (draw, why) in drawings.items()}
