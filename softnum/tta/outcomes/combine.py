"""Time-to-accuracy: iterations to the target (emulation) times seconds per iteration (simulation).

Definitions, for a design with batch B, iterations I to the target and t seconds per iteration::

    TTA                    = I * t
    throughput             = B / t          samples per second
    samples to the target  = I * B
    speed-up over the baseline = TTA(baseline) / TTA
                               = throughput / throughput(baseline)     hardware's share
                               * samples(baseline) / samples           arithmetic's share: statistical efficiency

Counting samples, not iterations, is what makes the split hold between designs of different batch sizes.

*Median and range* are over the seeds. A run that never reaches the target counts as needing infinitely many
iterations: it is neither dropped, which would flatter a design that often fails, nor extrapolated. So the median exists
if and only if more than half of the runs reached the target. *Intervals* of the median, and of every ratio, combine the
spread of the runs with that of measured times: `softnum.tta.outcomes.intervals`. *Ties*: two designs are not told apart
if the interval of the ratio of their TTAs (of their samples to the target) holds 1. Over the baseline that is the
interval of the speed-up (of the efficiency), so that a tie and an interval say the same.

*Measured*: curves that state the time of each evaluation have a TTA that is no product
(`softnum.tta.outcomes.measured`). Then speed-up is a ratio of TTAs, efficiency as above, and throughput what is left.

*MLPerf logs* also have a figure of their own, run_stop - run_start, which is no product: it stands beside TTA.

*Cost to accuracy* is rent per hour times TTA; *energy to accuracy* joules per iteration times iterations.

Source: the divide-and-conquer approach of A. Jayarajan, "DNN Training Performance Analysis"; the metric is that of
C. Coleman et al., "Analysis of DAWNBench, a Time-to-Accuracy Machine Learning Performance Benchmark", 2018.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from softnum.runtime.plain import plain
from softnum.tta.accuracy.reached import ReachedRule, direction_of
from softnum.tta.accuracy.records import Record, RecordSet, check_target
from softnum.tta.mlperf.benchmarks import MLPerfScore, mlperf_score
from softnum.tta.outcomes.compare import charge, compare, find_ties, own_rent
from softnum.tta.outcomes.cost import Cost
from softnum.tta.outcomes.interaction import interaction
from softnum.tta.outcomes.intervals import check_confidence
from softnum.tta.outcomes.measured import measured_seconds
from softnum.tta.outcomes.notes import curve_notes, mlperf_notes, worker_notes
from softnum.tta.outcomes.outcome import DesignResult, Run, Spread, Study, Variant
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["DesignResult", "Run", "Spread", "Study", "Variant", "combine_study", "reached_by"]


@plain
def combine_study(
    records: RecordSet | Iterable[Record],
    timings: Variant | Mapping[str, IterationTime],
    *,
    target: float,
    baseline: str,
    metric: str = "accuracy",
    reached: ReachedRule | None = None,
    confidence: float = 0.95,
    costs: Mapping[str, Cost] | None = None,
    energies: Mapping[str, tuple[float, str]] | None = None,
    combinations: Iterable[tuple[Sequence[str], str]] = (),
) -> Study:
    """Combine training records and iteration times.

    Parameters
    ----------
    records : RecordSet or iterable of Record
        The finished runs, of one network on one data set.
    timings : Variant, or Mapping of str to IterationTime
        Seconds per iteration of each design. A design that a variant leaves out is still listed with its iterations.
    target : float
        The value of the metric to reach.
    baseline : str
        Label of the design that speed-ups are relative to.
    metric : str
        Name of the metric.
    reached : ReachedRule, optional
        The rule by which a run has reached the target. Default: at its first evaluation there, in the direction that
        `direction_of` gives the metric.
    confidence : float
        Confidence level of the intervals.
    costs : Mapping of str to Cost, optional
        Rent and price, by label.
    energies : Mapping of str to (float, str), optional
        Joules of an iteration and their source, by label, for designs whose times come without energies.
    combinations : iterable of (sequence of str, str)
        Parts and combined design of each `interaction` to compute, relative to the baseline.

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        If there is no record, the baseline has none, a design has no time, the runs are of different networks, data or
        (within a design) batch sizes, the target is met before training, or the confidence does not lie in (0, 1).
    KeyError
        If a combination names a design that the study does not have.

    Examples
    --------
    >>> from softnum.tta import Evaluation
    >>> def run(design, seed, batch, reached_at):
    ...     return Record(design, seed, batch, 100, (Evaluation(reached_at, 0.9),), {}, {})
    >>> study = combine_study([run("base", 0, 32, 80), run("fast", 0, 64, 50)],
    ...                       {"base": IterationTime("base", 2.0), "fast": IterationTime("fast", 1.0)},
    ...                       target=0.9, baseline="base")
    >>> fast = study["fast"]
    >>> fast.throughput, fast.efficiency, fast.speedup, study["base"].tta.median / fast.tta.median
    (4.0, 0.8, 3.2, 3.2)
    """
    target, confidence = check_target(target), check_confidence(confidence)
    reached = ReachedRule(direction=direction_of(metric)) if reached is None else reached
    excluded = records.excluded if isinstance(records, RecordSet) else ()
    records = tuple(records.records if isinstance(records, RecordSet) else records)
    variant = timings if isinstance(timings, Variant) else Variant("given times", timings)
    timings, left_out = variant.timings, variant.left_out
    by_design = _group(records, excluded, [*timings, *left_out])
    if baseline not in by_design:
        near = difflib.get_close_matches(baseline, by_design, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"the baseline {baseline!r} has no finished run; designs that have: {', '.join(by_design)}{hint}"
        )
    for design in by_design:
        if design not in timings and design not in left_out:
            raise ValueError(
                f"no time per iteration for design {design!r}; the timings are of {', '.join(timings) or 'no design'}. "
                "Add its rows to the timing file, or simulate it"
            )
    bare = {design: _result(design, runs, target, reached, variant) for design, runs in by_design.items()}
    compared = {}
    for design, result in bare.items():
        result = compare(result, bare[baseline], confidence)
        cost = (costs or {}).get(design) or own_rent(by_design[design])
        compared[design] = charge(result, cost, (energies or {}).get(design), confidence)
    ties = find_ties(list(compared.values()), baseline, confidence)
    results = tuple(
        replace(result, ties=ties[design][0], sample_ties=ties[design][1]) for design, result in compared.items()
    )
    if variant.measured:  # a ranking, as such benchmarks publish it
        results = tuple(sorted(results, key=lambda result: result.tta.median))
    missing = [design for design in by_design if design in left_out]
    notes = [
        *mlperf_notes(results, records),
        *curve_notes(results, by_design, variant),
        *worker_notes(by_design, variant),
        *excluded,
        *variant.notes,
        *(
            f"{design}: {left_out[design]}"
            if variant.measured
            else f"{design} has no time in the variant {variant.label!r}: {left_out[design]}"
            for design in missing
        ),
    ]
    for record in records:
        if record.diverged:
            what = f"{record.label}, seed {record.seed}, diverged at iteration {record.iterations}"
            notes.append(f"{what}: its loss was not finite")
    if metric == "loss" and any("softnum" in record.versions for record in records):
        notes.append(
            "loss: of each iteration's batch in training, as softnum's records have it, not of held-out samples"
        )
    few = [design for design, runs in by_design.items() if len(runs) < 3]
    if few:
        told = ", ".join(few) if len(few) <= 5 else f"{', '.join(few[:4])} and {len(few) - 4} more designs"
        notes.append(f"fewer than three runs of {told}: their intervals, and ties by them, say little")
    rule = (
        f"a run reaches the target {reached.text(metric, target)}; a run without such an "
        "evaluation counts as infinitely long, so a median exists if more than half of the runs reached the target"
    )
    study = Study(
        variant.label,
        metric,
        target,
        rule,
        baseline,
        results,
        records,
        tuple(variant.assumptions),
        tuple(variant.not_simulated),
        tuple(notes),
        reached,
        confidence,
        files=tuple(variant.files),
    )
    return replace(study, interactions=tuple(interaction(study, baseline, *pair) for pair in combinations))


def _group(records, excluded, order) -> dict[str, list[Record]]:
    if not records:
        why = f" ({'; '.join(excluded)})" if excluded else ""
        raise ValueError(f"there is no finished training record to combine{why}")
    for key in ("network", "data"):
        first = records[0].config.get(key)
        for record in records[1:]:
            if record.config.get(key) != first:
                raise ValueError(
                    f"{record.path or record.design} was trained on another {key} than "
                    f"{records[0].path or records[0].design}: "
                    f"{record.config.get(key)!r} against {first!r}; a study compares designs on one {key}"
                )
    by_design = {design: [] for design in order}
    for record in records:
        by_design.setdefault(record.label, []).append(record)
    by_design = {design: sorted(runs, key=lambda run: run.seed) for design, runs in by_design.items() if runs}
    for design, runs in by_design.items():
        for run in runs[1:]:
            if run.batch != runs[0].batch:
                raise ValueError(
                    f"design {design!r} was trained with batch {runs[0].batch} (seed {runs[0].seed}) and {run.batch} "
                    f"(seed {run.seed}); its runs need one batch size: train one of them again, or tell them apart as "
                    f"{design}@{runs[0].batch} and {design}@{run.batch}"
                )
    return by_design


def reached_by(design: str, records: Sequence[Record], target: float, reached: ReachedRule) -> list[float]:
    """Iterations to the target of each run of a design; infinite where it is never reached.

    Raises
    ------
    ValueError
        If the target is met before the first update.

    Examples
    --------
    >>> runs = [Record("base", 1, 32, 90, (), {}, {})]
    >>> reached_by("base", runs, 0.9, ReachedRule())
    [inf]
    """
    found = []
    for record in records:
        first = reached.iteration(record.evaluations, target)
        if first == 0:
            raise ValueError(
                f"design {design!r}, seed {record.seed} meets the target {target:g} before the first update; "
                "time-to-accuracy needs a target that training has to work for: set a harder one"
            )
        found.append(math.inf if first is None else first)
    return found


def _result(design, records, target, reached, variant: Variant) -> DesignResult:
    time = variant.timings.get(design)
    runs, best_of = [], max if reached.direction == "higher" else min
    needed = reached_by(design, records, target, reached)
    clocks = measured_seconds(records, reached, target)
    for record, first, clock in zip(records, needed, clocks or [math.inf] * len(needed), strict=True):
        values = [e.value for e in record.evaluations if not math.isnan(e.value)]
        final = record.evaluations[-1].value if record.evaluations else math.nan
        steps = [0, *(e.iteration for e in record.evaluations)]
        interval = max((b - a for a, b in itertools.pairwise(steps)), default=0)
        at = None if math.isinf(first) else first
        best = best_of(values, default=math.nan)
        runs.append(
            Run(record.seed, at, record.iterations, best, final, interval, None if math.isinf(clock) else clock)
        )
    iterations = Spread.of(needed)
    product = None if time is None else iterations.scaled(time.seconds)
    measured = None if clocks is None else Spread.of(clocks)
    still = [run for run in runs if run.seconds_to_target == 0]
    if variant.measured and still:
        raise ValueError(
            f"design {design!r}, seed {still[0].seed} reaches the target at 0 s of its own clock, so that no ratio is "
            "known; the clock is too coarse, or starts after training: set a harder target, or leave the column of "
            "times out and give times per iteration with --timings"
        )
    if variant.measured and measured is None:
        raise ValueError(
            f"design {design!r} reaches the target where its curve states no time: before its clock began, or was set "
            "back; set a harder target, or give times per iteration with --timings"
        )
    return DesignResult(
        design=design,
        batch=records[0].batch,
        runs=tuple(runs),
        iterations=iterations,
        samples=iterations.scaled(records[0].batch),
        time=time,
        left_out=variant.left_out.get(design, ""),
        tta=measured if variant.measured else product,
        throughput=None,
        efficiency=None,
        speedup=None,
        mlperf=_mlperf(records, time),
        unit=_unit(records),
        measured=measured,
        product=product,
        tokens=_tokens(records, iterations),
    )


def _tokens(records: Sequence[Record], iterations: Spread) -> Spread | None:
    """Tokens to the target; None where the runs do not say how many a sample has, or not the same."""
    found = {record.tokens for record in records}
    (each,) = found if len(found) == 1 else (None,)
    return None if each is None else iterations.scaled(records[0].batch * each)


def _unit(records: Sequence[Record]) -> str:
    """What the runs of a design count."""
    for record in records[1:]:
        if record.counts != records[0].counts:
            raise ValueError(
                f"{record.path or record.label}: counts {record.counts}s, where {records[0].path} counts "
                f"{records[0].counts}s; the runs of a design have to count alike: --iterations-per-epoch and --batch "
                "say what is missing"
            )
    return records[0].counts


def _mlperf(records: Sequence[Record], time: IterationTime | None) -> MLPerfScore | None:
    """MLPerf's own figure of the runs; an error if their curves count something else than the time is of."""
    unit = None if time is None else (time.detail or {}).get("unit")
    for record in records:
        own = {"iteration": None, "step": None}.get(record.counts, record.counts)
        if time is not None and own != unit and {own, unit} & {"epoch", "evaluation"}:
            raise ValueError(
                f"{record.path or record.label}: its curve counts {own or 'iteration'}s, and the time of {time.source} "
                f"is that of one {unit or 'iteration'}; take both from MLPerf logs of one kind, or say how many "
                "iterations there are: --iterations-per-epoch and --batch for the curve, --timings-iterations for the "
                "time"
            )
    if any(record.mlperf is None for record in records):
        return None
    return mlperf_score([record.mlperf for record in records])
