"""Time to accuracy as curves measure it themselves, and what their own times say of iterations x mean time.

Where a curve states the time of each evaluation, its time to accuracy is read off at the evaluation that reaches the
target: nothing is multiplied. The mean time of an iteration, from the same curve, is shown beside it with its product,
unless the iterations of a run are unlike (`softnum.tta.timings.alike`): then there is no mean to multiply with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.accuracy.records import Record, RecordSet
from softnum.tta.outcomes.outcome import Variant
from softnum.tta.timings.alike import ALIKE_RULE, Alike, alike
from softnum.tta.timings.warmup import mean_interval
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["MEASURED", "measured_seconds", "measured_variant", "unlike_note"]

_BETWEEN = "stretches between evaluations"
#: label of the variant in which times to accuracy are those of the curves
MEASURED = "measured"


def stretches_of(record: Record) -> list[tuple[int, float]]:
    """Iterations and seconds between the evaluations of a curve, from the beginning of its clock on."""
    places = [(record.began, 0.0)]
    for evaluation in record.evaluations:
        if evaluation.seconds is None:
            continue
        if evaluation.iteration <= record.began:
            places = [(evaluation.iteration, evaluation.seconds)]
        elif evaluation.iteration > places[-1][0]:
            places.append((evaluation.iteration, evaluation.seconds))
    return [(then - at, late - early) for (at, early), (then, late) in itertools.pairwise(places)]


def measured_seconds(records: Sequence[Record], rule: ReachedRule, target: float) -> list[float] | None:
    """Seconds to the target of each run by its own clock, infinite where it is not reached; None if one has no time."""
    found = []
    for record in records:
        reached = rule.evaluation(record.evaluations, target)
        if not record.timed or (reached is not None and reached.seconds is None):
            return None
        found.append(math.inf if reached is None else reached.seconds)
    return found


def measured_variant(records: RecordSet | Iterable[Record]) -> Variant:
    """The variant in which times to accuracy are the curves' own.

    Parameters
    ----------
    records : RecordSet or iterable of Record
        Every one of them with times.

    Returns
    -------
    Variant
        Its `timings` are mean times of an iteration from the same curves, of designs whose iterations are alike.

    Raises
    ------
    ValueError
        If a curve has no times.

    Examples
    --------
    >>> from softnum.tta import Evaluation
    >>> curve = tuple(Evaluation(n, 0.5 + n / 100, seconds=2.0 * n) for n in range(1, 11))
    >>> measured_variant([Record("base", 1, 32, 10, curve, {}, {})]).timings["base"].seconds
    2.0
    """
    records = tuple(records.records if isinstance(records, RecordSet) else records)
    by_design: dict[str, list[Record]] = {}
    for record in records:
        if not record.timed:
            raise ValueError(
                f"{record.path or record.label}: its curve has no times, and those of other designs have; add a column "
                "seconds or hours, or give times per iteration with --timings"
            )
        by_design.setdefault(record.label, []).append(record)
    timings, left_out, few = {}, {}, []
    for design, runs in by_design.items():
        stretches = [stretches_of(run) for run in runs]
        found = [alike(parts) for parts in stretches if parts]
        unlike = [one.text(runs[0].counts, _BETWEEN) for one in found if one.unlike]
        if unlike:
            whose = f"{len(unlike)} of {len(runs)} runs; one has " if len(runs) > 1 else ""
            left_out[design] = f"no iterations x mean time, because iterations are unlike: {whose}{unlike[0]}"
        elif len(found) < len(runs) or not all(seconds for parts in stretches for _, seconds in [_sum(parts)]):
            left_out[design] = "its curve has no time after its first evaluation, from which a mean could be taken"
        else:
            timings[design] = _mean_time(design, runs, stretches)
            few += [design] if any(one.unlike is None for one in found) else []
    notes = [f"{ALIKE_RULE[0].upper()}{ALIKE_RULE[1:]}"]
    if few:
        notes.append(f"too few evaluations of {', '.join(few)} to tell whether their iterations are alike")
    return Variant(
        MEASURED, timings, left_out, ("times to accuracy as the curves state them, since their clocks began",),
        notes=tuple(notes), measured=True,
    )  # fmt: skip


def _sum(parts: list[tuple[int, float]]) -> tuple[int, float]:
    return sum(amount for amount, _ in parts), math.fsum(seconds for _, seconds in parts)


def _mean_time(design: str, runs: list[Record], stretches: list[list[tuple[int, float]]]) -> IterationTime:
    """The mean time of an iteration: over the run, or over the runs, each of which is then a sample."""
    means = [float(Fraction(seconds) / amount) for amount, seconds in map(_sum, stretches)]
    samples = tuple(means) if len(means) > 1 else ()
    if len(runs) == 1 and len({amount for amount, _ in stretches[0]}) == 1 and all(s for _, s in stretches[0]):
        samples = tuple(seconds / amount for amount, seconds in stretches[0])
    unit = runs[0].counts
    detail = {
        "iterations": f"{sum(amount for parts in stretches for amount, _ in parts)} {unit}s between the evaluations of "
        f"{len(runs)} run{'s' * (len(runs) > 1)}",
        "time": "of the curve itself: its clock, less what came before the first evaluation at iteration 0",
        "unit": unit,
    }
    return IterationTime(
        design, float(sum(map(Fraction, means)) / len(means)), sum(_sum(parts)[0] for parts in stretches),
        runs[0].path or design, detail, samples=samples, interval=mean_interval(samples) if samples else None,
        kind="measured",
    )  # fmt: skip


def unlike_note(records: Sequence[Record]) -> str | None:
    """A warning for a product of other times with curves whose own times say that iterations are unlike."""
    for record in records:
        parts = stretches_of(record) if record.timed else []
        found: Alike | None = alike(parts) if parts else None
        if found is not None and found.unlike:
            return (
                f"{record.label}: by its own times the iterations of {record.path or 'its run'} are unlike, so that "
                f"iterations x time may be off: {found.text(record.counts, _BETWEEN)}"
            )
    return None
