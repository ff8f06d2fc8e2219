"""What a study prints unless all of it is asked for: the result first, and all of it in one screen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.outcomes.tables import bill_table, both_table, format_ratio, main_table, varies, wholly_measured
from softnum.tta.outcomes.tuning import Tuning
from softnum.tta.outcomes.tuning_report import tuned_table, tuning_lines
from softnum.tta.outcomes.verdict import short_names, tie_lines, ties_of, verdict_warnings

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ROOM", "print_brief", "times_are"]

#: Lines at most; commands say in three more where the files are.
ROOM = 37
_WARNINGS = 3  # that stand under a result
_FEW = 6  # of a list that has to be short


@dataclass(frozen=True)
class _Form:
    """How much is shown: notes, costs that nobody asked for, a design's second line, how many designs, whole lists."""

    notes: int
    bill: bool = False
    short: bool = False
    designs: int | None = None
    cut: bool = False


def print_brief(studies: Sequence[Study], console: Console, tuning: Tuning | None = None, *, room: int = ROOM) -> None:
    """Print the first variant's table, ties, the speed-ups of the others, and what could turn the verdict.

    What does not fit is left out in this order, and what is left out is said: notes, energies where no cost is asked
    for, each design's second line, and designs, the slowest first.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times, over the same runs.
    console : rich.console.Console
        Where to print; its width decides how many lines a text takes.
    tuning : Tuning, optional
        With its studies.
    room : int
        Lines.

    Examples
    --------
    >>> from rich.console import Console
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record(f"d{i}", 1, 32, 90, (Evaluation(80, 0.9),), {}, {}) for i in range(50)]
    >>> study = combine_study(runs, {f"d{i}": IterationTime(f"d{i}", 2.0 + i) for i in range(50)}, target=0.9,
    ...                       baseline="d0")
    >>> with (console := Console(width=100)).capture() as shown:
    ...     print_brief([study], console)
    >>> shown.get().count("\\n") <= ROOM, "more designs" in shown.get()
    (True, True)
    """
    form = None
    for form in _forms(studies):
        with console.capture() as shown:
            _compose(studies, console, tuning, form)
        if shown.get().count("\n") <= room:
            break
    _compose(studies, console, tuning, form)


def _forms(studies: Sequence[Study]) -> Iterator[_Form]:
    """From the fullest to the shortest."""
    notes, designs = len(_notes(studies)), len(studies[0].designs)
    for short in (False, True):
        yield from (_Form(count, True, short) for count in range(notes, -1, -1))
        yield from (_Form(count, False, short) for count in range(notes, -1, -1))
    yield from (_Form(0, False, True, count, True) for count in range(designs, 0, -1))


def _notes(studies: Sequence[Study]) -> list[str]:
    return list(dict.fromkeys(note for study in studies for note in study.notes))


def _compose(studies: Sequence[Study], console, tuning: Tuning | None, form: _Form) -> None:
    first = studies[0]

    def say(line: str, **style) -> None:
        console.print(line, highlight=False, markup=False, **style)

    rows = _fastest(first, form.designs)
    console.print(main_table(first, rows, short=form.short))
    most = _FEW if form.cut else None
    for line in tie_lines(ties_of(first), most):
        say(f"  {line}")
    for found in first.interactions[:most]:
        say(f"  {found.text()}")
    for study in studies[1:]:
        say(f"  {_speedups(study, most)}")
    console.print()
    tables = [both_table(study) for study in studies] if not form.cut else []
    tables += [bill_table(first, rows, short=form.short)] if _bill(first, form) else []
    tables += [] if tuning is None else [tuned_table(tuning, first, rows, short=form.short)]
    for table in tables:
        if table is not None:
            console.print(table)
    for line in [] if tuning is None else tuning_lines(tuning, brief=True):
        say(f"  {line}")
    warnings = verdict_warnings(studies)
    if warnings:
        say("What could turn the verdict", style="bold")
    for line in warnings[:_WARNINGS]:
        say(f"  - {line}")
    notes = _notes(studies)
    if form.notes:
        say("Notes", style="bold")
    for line in notes[: form.notes]:
        say(f"  - {line}", style="dim")
    brackets = [f"[ ]: {100 * first.confidence:g} % intervals."] if varies(first) else []
    kinds = dict.fromkeys(map(times_are, studies if most is None else studies[:1]))
    say(" ".join([*brackets, *kinds, _left(studies, form, len(rows), warnings)]), style="dim")


def _bill(study: Study, form: _Form | None = None) -> bool:
    """Whether a table of cost and energy is due: if costs are asked for, or the times come with energies."""
    asked = any(result.cost is not None for result in study.designs)
    known = any(result.time is not None and result.time.joules is not None for result in study.designs)
    return asked or (known and (form is None or form.bill))


def _fastest(study: Study, count: int | None) -> Sequence[DesignResult]:
    """So many designs in their order: the baseline, and those that reach the target soonest."""
    if count is None or count >= len(study.designs):
        return study.designs

    def order(result: DesignResult) -> tuple[Any, ...]:
        return result.design != study.baseline, math.inf if result.tta is None else result.tta.median

    chosen = {result.design for result in sorted(study.designs, key=order)[:count]}
    return [result for result in study.designs if result.design in chosen]


def _speedups(study: Study, most: int | None) -> str:
    """A line of a variant whose table is not printed."""
    names = short_names([result.design for result in study.designs])
    found = sorted((result for result in study.designs if result.speedup is not None), key=lambda r: -r.speedup)
    parts = [f"{names[result.design]} {format_ratio(result.speedup)}" for result in found[:most]]
    parts += [f"{len(found) - len(parts)} more"] if len(found) > len(parts) else []
    none = [names[result.design] for result in study.designs if result.speedup is None]
    parts += [f"none of {' '.join(none[:most])}{' ...' if len(none) > len(none[:most]) else ''}"] if none else []
    return f"Speed-ups, {study.label}: {', '.join(parts)}."


def _left(studies: Sequence[Study], form: _Form, designs: int, warnings: Sequence[str]) -> str:
    """What ``results.json`` and --explain have besides."""
    counts = {
        "more design": len(studies[0].designs) - designs,
        "more table": len(studies) - 1 + (_bill(studies[0]) and not _bill(studies[0], form)),
        "more warning": max(0, len(warnings) - _WARNINGS),
        f"{'more ' if form.notes else ''}note": len(_notes(studies)) - form.notes,
        "assumption": len(dict.fromkeys(line for study in studies for line in study.assumptions)),
    }
    parts = [f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count]
    told = f"{', '.join(parts)} and the rules" if parts else "The rules"
    return f"{told} stand in results.json; --explain prints them."


def times_are(study: Study) -> str:
    """How the times are known, for all designs or kind by kind: an estimate must not pass for a measurement."""
    kinds: dict[str, list[str]] = {}
    for result in study.designs:
        if result.time is not None:
            kinds.setdefault(result.time.kind, []).append(result.design)
    if wholly_measured(study):
        return "Mean times of iterations, beside TTA, are the curves' own too."
    if len(kinds) == 1:
        return f"Times per iteration are {next(iter(kinds))}."
    told = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
    return f"Times per iteration, {study.label}: {told or 'none'}."
