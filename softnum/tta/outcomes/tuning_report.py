"""Tuned learning rates in the terminal: each design at the recipe's rate and at its own, and what finding it cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.outcomes.tables import format_ratio, report_console, rich_table
from softnum.tta.outcomes.tuning import Tuning
from softnum.tta.quantities import format_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_tuning", "tuned_table", "tuning_lines"]


def tuned_table(
    tuning: Tuning, before: Study, rows: Sequence[DesignResult] | None = None, *, short: bool = False
) -> Table:
    """Each design at the recipe's rate and at its own, of the variant of the times that a study is of.

    Parameters
    ----------
    tuning : Tuning
        With its studies.
    before : Study
        At the recipe's rate.
    rows : sequence of DesignResult, optional
        Some of its designs. Default: all.
    short : bool
        One line a design: at its own rate alone.
    """
    after = next(study for study in tuning.studies if study.label == before.label)
    chosen = None if rows is None else [after[result.design] for result in rows]
    title = f"Learning rates tuned, {after.label} (baseline {after.baseline}): {'at' if short else 'without and with'}"
    title += " the rates chosen" if short else ""

    def cells(result: DesignResult) -> list[str]:
        found = _cells(tuning, before[result.design], result)
        return [found[0], *(cell.split("\n")[1] for cell in found[1:5]), found[5].split("\n")[0]] if short else found

    columns = ("Rate", "Reached", "TTA", "Speed-up", "Tuning cost")
    return rich_table(title, columns, after, cells, len(title), chosen)


def print_tuning(tuning: Tuning, studies: Sequence[Study], console: Console | None = None) -> None:
    """Print a table for each variant of the times, and under them how rates were chosen and what it cost.

    Parameters
    ----------
    tuning : Tuning
        With its studies.
    studies : sequence of Study
        The same variants at the recipe's rate.
    console : rich.console.Console, optional
        Where to print. Default: the terminal.
    """
    console = report_console(console)
    for before, after in zip(studies, tuning.studies, strict=True):
        console.print(tuned_table(tuning, before))
        for found in after.interactions:
            console.print(f"  tuned: {found.text()}", highlight=False, markup=False)
    console.print("[bold]How rates were tuned[/bold]")
    for line in tuning_lines(tuning):
        console.print(f"  - {line}", style="dim", highlight=False, markup=False)
    known = {note for study in studies for note in study.notes}
    notes = dict.fromkeys(note for study in tuning.studies for note in study.notes if note not in known)
    if notes:
        console.print("[bold]Notes on the runs at tuned rates[/bold]")
    for line in notes:
        console.print(f"  - {line}", style="dim", highlight=False, markup=False)


def _cells(tuning: Tuning, before: DesignResult, after: DesignResult) -> list[str]:
    tuned = tuning[after.design]
    spent = f"{tuned.updates:,} it."
    if after.time is not None:
        spent += f"\n= {format_seconds(tuned.updates * after.time.seconds)}"
    return [
        after.design,
        f"{tuned.recipe.rate:g}\n{tuned.chosen.rate:g} ({tuned.chosen.text})",
        f"{before.reached} of {len(before.runs)}\n{after.reached} of {len(after.runs)}",
        f"{_tta(before)}\n{_tta(after)}",
        f"{format_ratio(before.speedup)}\n{format_ratio(after.speedup)}",
        spent,
    ]


def _tta(result: DesignResult) -> str:
    if result.tta is None:
        return "no time"
    return "not reached" if math.isinf(result.tta.median) else format_seconds(result.tta.median)


def tuning_lines(tuning: Tuning, *, brief: bool = False) -> list[str]:
    """What a reader has to know of the tuning: rule, seeds, cost, and where the grid may have been too narrow.

    brief: only what the last two are.
    """
    cost = tuning.cost
    spent = (
        f"Cost in runs (iterations): {cost['runs']} ({cost['iterations']:,}) to tune, {cost['judged_runs']} "
        f"({cost['judged_iterations']:,}) at the rates chosen."
    )
    edges = [f"{tuned.design} ({tuned.chosen.text})" for tuned in tuning.designs if tuned.at_edge]
    narrow = [f"At an end of the grid, beyond which a rate may be better still: {', '.join(edges)}."] if edges else []
    if brief:
        return [spent, *narrow]
    return [
        f"{tuning.rule[0].upper()}{tuning.rule[1:]}.",
        "No tuning seed is among those that designs are judged by, so a rate is not judged by the runs that it was "
        "chosen by. The held-out samples are the same: what is chosen for them is chosen for all designs alike.",
        f"{spent} No TTA includes it; in the table it is the design's tuning runs on its own hardware.",
        *(
            f"{tuned.design} keeps {tuned.why}."
            for tuned in tuning.designs
            if math.isinf(tuned.chosen.iterations.median)
        ),
        *narrow,
    ]
