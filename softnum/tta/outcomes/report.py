"""What a study shows: tables for the terminal, and pictures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from softnum.runtime.atomic import write_atomic
from softnum.tta.outcomes.brief import print_brief, times_are
from softnum.tta.outcomes.intervals import least_runs
from softnum.tta.outcomes.outcome import Study
from softnum.tta.outcomes.tables import (
    bill_table,
    both_table,
    interval_table,
    main_table,
    report_console,
    varies,
    wholly_measured,
)
from softnum.tta.outcomes.tuning import Tuning
from softnum.tta.outcomes.tuning_report import print_tuning
from softnum.tta.outcomes.verdict import tie_lines, ties_of, verdict_warnings

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["plot_details", "plot_studies", "print_studies"]


def print_studies(
    studies: Sequence[Study], console: Console | None = None, *, explain: bool = False, tuning: Tuning | None = None
) -> None:
    """Print the table, its ties, and the three assumptions that could turn the verdict, in
    `softnum.tta.outcomes.brief.ROOM` lines.

    Of several variants of the times the first has the table, and the others a line.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times, over the same runs.
    console : rich.console.Console, optional
        Where to print. Default: the terminal.
    explain : bool
        Print instead the tables of every variant, all intervals and costs, warnings, rules, assumptions and omissions,
        all of which are also in ``results.json``.
    tuning : Tuning, optional
        Learning rates that were tuned, with its studies: printed too.

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
    if explain:
        _print_all(studies, console)
        if tuning is not None:
            print_tuning(tuning, studies, console)
    else:
        print_brief(studies, console, tuning)


def _print_all(studies: Sequence[Study], console) -> None:
    """Every table, warning, rule and assumption."""

    def say(line: str, **style) -> None:
        console.print(line, highlight=False, markup=False, **style)

    for study in studies:
        console.print(main_table(study))
        for line in (*tie_lines(ties_of(study)), *(found.text() for found in study.interactions)):
            say(f"  {line}")
        console.print()
        for table in (interval_table(study), both_table(study), bill_table(study)):
            if table is not None:
                console.print(table)
    warnings = verdict_warnings(studies)
    if warnings:
        say("What could turn the verdict", style="bold")
    for line in warnings:
        say(f"  - {line}")
    _explain(studies, say)


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
        *([_coverage(first)] if varies(first) else []),
        *(["On paper: the product of what each part gains alone over the baseline."] if first.interactions else []),
        f"Nothing is extrapolated; iterations are known to the evaluation interval ({_intervals(first)}).",
        *map(times_are, studies),
    ]
    _listed(say, "How to read it", rules)
    for study in studies:
        _listed(say, f"Assumed for {study.label}", study.assumptions)
    _listed(say, "Not in the times", [line for study in studies for line in study.not_simulated])
    _listed(say, "Notes", [note for study in studies for note in study.notes])


def _tta_lines(study: Study) -> list[str]:
    """What TTA and speed-up are: a product and its two factors, or a measurement and what can be told of it."""
    if wholly_measured(study):
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


def _intervals(study: Study) -> str:
    """The evaluation interval in iterations, by design where designs differ."""
    by_interval: dict[int, list[str]] = {}
    for result in study.designs:
        by_interval.setdefault(max(run.interval for run in result.runs), []).append(result.design)
    if len(by_interval) == 1:
        return f"{next(iter(by_interval))} iterations"
    return "; ".join(f"{interval} for {', '.join(names)}" for interval, names in sorted(by_interval.items()))


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


def plot_studies(path: str | os.PathLike[str], studies: Sequence[Study]) -> Path:
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


def plot_details(folder: str | os.PathLike[str], studies: Sequence[Study]) -> dict[str, Path | str]:
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
