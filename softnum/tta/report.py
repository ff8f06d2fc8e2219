"""What a study shows: a table for the terminal and a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from softnum.tta.outcome import DesignResult, Spread, Study
from softnum.tta.quantities import write_atomic

__all__ = ["plot_studies", "print_studies"]

_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def format_seconds(seconds: float) -> str:
    """Seconds to three digits with an SI prefix.

    Examples
    --------
    >>> format_seconds(0.00345678), format_seconds(float("inf"))
    ('3.46 ms', 'never')
    """
    if math.isinf(seconds):
        return "never"
    scale, unit = next(((s, u) for s, u in _SCALES if seconds >= s), _SCALES[-1])
    return f"{_digits(seconds / scale)} {unit}"


def _digits(value: float) -> str:
    """Three significant digits, never in exponent form for ordinary sizes."""
    if value and abs(value) < 1000:
        return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return f"{value:,.0f}"


def _count(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:g}"


def _range(spread: Spread, show) -> str:
    """Median and range, with the unit once where both ends share it."""
    if math.isinf(spread.low):
        return "not reached"
    median = "not reached" if math.isinf(spread.median) else show(spread.median)
    if spread.low == spread.high:
        return median
    low, high = show(spread.low), show(spread.high)
    if low.split(" ")[1:] == high.split(" ")[1:]:
        low = low.split(" ")[0]
    return f"{median}\n[{low}, {high}]"


def _tie_lines(study: Study) -> list[str]:
    """Which designs cannot be told apart, one line for each measure that has ties."""
    short = _letters(study)
    lines = []
    for what, attribute in (("TTA", "ties"), ("samples to the target", "sample_ties")):
        tied = [(short[r.design], [short[name] for name in getattr(r, attribute)]) for r in study.designs]
        text = "; ".join(f"{name} with {' '.join(others)}" for name, others in tied if others)
        if text:
            lines.append(f"Ties in {what} (ranges overlap): {text}.")
    return lines


def _letters(study: Study) -> dict[str, str]:
    """Short names for the ties: what stands before the first dash, where that tells the designs apart."""
    short = {result.design: result.design.split("-")[0] for result in study.designs}
    if len(set(short.values())) == len(short):
        return short
    return {name: name for name in short}


def print_studies(studies: Sequence[Study], console=None) -> None:
    """Print a table for each study, and under it the rule, the assumptions and what was left out.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times, over the same runs.
    console : rich.console.Console, optional
        Where to print. Default: the terminal.

    Examples
    --------
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> print_studies([study])  # doctest: +ELLIPSIS
    Time to accuracy >= 0.9, given times (baseline base)
    ...
    """
    from rich.console import Console

    if console is None:
        console = Console()
        if not console.is_terminal:  # a pipe has no width; the table needs about 80 columns
            console = Console(width=100)
    for study in studies:
        console.print(_table(study))
        for line in _tie_lines(study):
            console.print(f"  {line}", highlight=False, markup=False)
        console.print()
    first = studies[0]
    console.print("[bold]How to read it[/bold]")
    for line in (
        f"Reached: {first.rule}.",
        f"Best: the highest {first.metric} of a run, median over the seeds.",
        "TTA = iterations to the target x time per iteration: median and [least, greatest] over the seeds.",
        f"Speed-up over {first.baseline} = throughput (samples per second: the hardware's share) x efficiency "
        "(samples to the target: the arithmetic's share).",
        f"Nothing is extrapolated; iterations are known to the evaluation interval ({_intervals(first)}).",
    ):
        console.print(f"  - {line}", style="dim", highlight=False, markup=False)
    for study in studies:
        if study.assumptions:
            console.print(f"[bold]Assumed for {study.label}[/bold]")
            for line in study.assumptions:
                console.print(f"  - {line}", style="dim", highlight=False, markup=False)
    for heading, lines in (
        ("Not in the times", [line for study in studies for line in study.not_simulated]),
        ("Notes", [note for study in studies for note in study.notes]),
    ):
        if lines:
            console.print(f"[bold]{heading}[/bold]")
        for line in dict.fromkeys(lines):
            console.print(f"  - {line}", style="dim", highlight=False, markup=False)


def _intervals(study: Study) -> str:
    """The evaluation interval in iterations, by design where designs differ."""
    by_interval: dict[int, list[str]] = {}
    for result in study.designs:
        by_interval.setdefault(max(run.interval for run in result.runs), []).append(result.design)
    if len(by_interval) == 1:
        return f"{next(iter(by_interval))} iterations"
    return "; ".join(f"{interval} for {', '.join(names)}" for interval, names in sorted(by_interval.items()))


def _table(study: Study):
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = f"Time to {study.metric} >= {study.target:g}, {study.label} (baseline {study.baseline})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("Design", no_wrap=True)
    for name in ("Reached\n(best)", "Iterations\nx time each", "TTA", "Speed-up\n= thr. x eff."):
        table.add_column(name, justify="right", no_wrap=True)
    for result in study.designs:
        table.add_row(*map(Text, _cells(result)), style="bold" if result.design == study.baseline else None)
    return table


def _cells(result: DesignResult) -> list[str]:
    def ratio(value):
        return "-" if value is None else f"{value:.2f}"

    longest = max(run.iterations for run in result.runs)
    best = Spread.of([run.best for run in result.runs]).median
    each = "no time" if result.time is None else format_seconds(result.time.seconds)
    count, *spread = _range(result.iterations, _count).split("\n")
    iterations = "\n".join([f"{count} x {each}", *spread])
    if result.reached == 0:
        iterations = f"not reached in\n{longest} x {each}"
    return [
        f"{result.design}\n  batch {result.batch}",
        f"{result.reached} of {len(result.runs)}\n({best:.3f})",
        iterations,
        "-" if result.tta is None else _range(result.tta, format_seconds),
        f"{ratio(result.speedup)}\n= {ratio(result.throughput)} x {ratio(result.efficiency)}",
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
    from softnum.tta.plot import draw  # matplotlib takes half a second to import

    write_atomic(path, draw(studies))
    return Path(path)
