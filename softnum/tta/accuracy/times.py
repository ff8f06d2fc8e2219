"""Times that curves state themselves: seconds, minutes or hours since the run's clock began, at each evaluation.

What a row means is not written in such a file, so it is checked: times never fall, every evaluation has one, and they
are not mostly equal, as the lengths of epochs would be. An epoch of no length is no error: clocks are coarse, and a
published entry of DAWNBench has one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from softnum.tta.accuracy.records import Evaluation
from softnum.tta.text import number

__all__ = ["TIMES", "check_times", "evaluation_unit", "time_of"]

#: by column: seconds in its unit
TIMES = {"seconds": 1, "minutes": 60, "hours": 3600}
#: what a clock of training can show, in seconds since it began: 30 years are a date, or some other number
LEAST, MOST = Fraction(1, 10**9), 10**9
_SINCE = (
    "times count from the start of the run and never fall; if they are the length of each epoch, add them up, and if "
    "the rows are of several runs, tell these apart by a column seed; if the column is something else, rename it"
)


def time_of(where: str, row: Mapping[str, Any], metric: str) -> Fraction | None:
    """Seconds since the run's clock began, exactly as a row says; None where it says nothing.

    >>> time_of("a.tsv, line 2", {"epoch": "1", "hours": "0.05", "acc": "0.9"}, "acc")
    Fraction(180, 1)
    """
    found = [name for name in TIMES if name in row and name != metric]
    if len(found) > 1:
        raise ValueError(f"{where}: gives both {' and '.join(found)}; keep one column of times")
    if not found:
        return None
    seconds = number(where, found[0], row[found[0]], positive=False) * TIMES[found[0]]
    if seconds and not LEAST <= seconds <= MOST:
        raise ValueError(
            f"{where}: {found[0]} must be 0, or from a nanosecond to {MOST:g} seconds, got {row[found[0]]!r}; is it in "
            "another unit, or a date?"
        )
    return seconds


def evaluation_unit(places: Sequence[tuple[str, Fraction | None]], counts_from: int | None) -> str:
    """What is counted in a curve with times that is placed by epochs whose iterations are not known.

    Whole epochs are. Fractions are not, and neither are those that begin with 0 where nothing says what a 0 means: then
    evaluations are counted.

    >>> evaluation_unit([("line 2", Fraction(1)), ("line 3", Fraction(2))], None)
    'epoch'
    >>> evaluation_unit([("line 2", Fraction(0)), ("line 3", Fraction(1))], None)
    'evaluation'
    """
    for where, epoch in places:
        if epoch is None:
            raise ValueError(f"{where}: gives no iteration and no epoch, where other rows do")
    whole = all(epoch.denominator == 1 and (epoch > 0 or counts_from is not None) for _, epoch in places)
    return "epoch" if whole else "evaluation"


def check_times(where: str, evaluations: Sequence[Evaluation], lines: Sequence[str]) -> None:
    """Raise ValueError unless the times of a run's evaluations can be what they are taken for.

    Parameters
    ----------
    where : str
        The run, in words.
    evaluations : sequence of Evaluation
        In order.
    lines : sequence of str
        Where each of them stands.
    """
    timed = [evaluation.seconds is not None for evaluation in evaluations]
    if not any(timed):
        return
    if not all(timed):
        raise ValueError(
            f"{lines[timed.index(False)]}: states no time, where {lines[timed.index(True)]} does; give one for every "
            "evaluation, or leave the column out"
        )
    times = [evaluation.seconds for evaluation in evaluations]
    for at in range(1, len(times)):
        if times[at] < times[at - 1]:
            raise ValueError(f"{lines[at]}: at {times[at]:g} s, after {times[at - 1]:g} s at {lines[at - 1]}; {_SINCE}")
    if not times[-1]:
        raise ValueError(f"{lines[-1]}: {where} is at 0 s to its end; {_SINCE}")
    still = sum(after == before for before, after in itertools.pairwise(times))
    if len(times) > 2 and 2 * still > len(times) - 1:
        raise ValueError(f"{lines[-1]}: {still} of the {len(times)} times of {where} repeat the one before; {_SINCE}")
