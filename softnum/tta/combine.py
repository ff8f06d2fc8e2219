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
if and only if more than half of the runs reached the target. *Ties*: designs whose ranges overlap are not told apart by
these runs.

Source: the divide-and-conquer approach of A. Jayarajan, "DNN Training Performance Analysis"; the metric is that of
C. Coleman et al., "Analysis of DAWNBench, a Time-to-Accuracy Machine Learning Performance Benchmark", 2018.
"""

from __future__ import annotations

import difflib
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from softnum.tta.accuracy.records import Record, RecordSet, check_target
from softnum.tta.timings import IterationTime

__all__ = ["DesignResult", "Run", "Spread", "Study", "Variant", "combine_study"]


@dataclass(frozen=True)
class Variant:
    """One set of iteration times, with what has to be said about it.

    Parameters
    ----------
    label : str
        Its name, for example "stated hardware".
    timings : Mapping of str to IterationTime
        Seconds per iteration of each design.
    left_out : Mapping of str to str
        Designs that have no time in this variant, with the reason.
    assumptions : tuple of str
        What the times rest on.
    not_simulated : tuple of str
        What an iteration does and the times leave out.
    notes : tuple of str
        What else a reader should know of the times.

    Examples
    --------
    >>> Variant("measured", {"base": IterationTime("base", 8.1e-6)}, assumptions=("batch 32",)).timings["base"].seconds
    8.1e-06
    """

    label: str
    timings: Mapping[str, IterationTime]
    left_out: Mapping[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    not_simulated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spread:
    """Median and range over the seeds; infinite where that run never reached the target.

    Examples
    --------
    >>> Spread.of([30.0, 10.0, math.inf])
    Spread(median=30.0, low=10.0, high=inf)
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Median, least and greatest of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def scaled(self, factor: float) -> Spread:
        """The spread of the values times a positive factor."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def overlaps(self, other: Spread) -> bool:
        """Whether the two ranges share a point."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Run:
    """One run against the target.

    Parameters
    ----------
    seed : int
    iterations_to_target : int or None
        None if it never reached the target.
    iterations : int
        Parameter updates it did in all.
    best, final : float
        Greatest and last value of the metric (NaN if every evaluation was).
    interval : int
        Most iterations between two evaluations: no time to accuracy is known more finely than that.

    Examples
    --------
    >>> Run(seed=1, iterations_to_target=80, iterations=90, best=0.92, final=0.91, interval=5).best
    0.92
    """

    seed: int
    iterations_to_target: int | None
    iterations: int
    best: float
    final: float
    interval: int


@dataclass(frozen=True)
class DesignResult:
    """What is known of one design.

    Parameters
    ----------
    design : str
    batch : int
        Samples per iteration.
    runs : tuple of Run
        By seed.
    iterations, samples : Spread
        To the target, over the runs.
    time : IterationTime or None
        None if the design has no time in this variant; `left_out` says why.
    left_out : str
    tta : Spread or None
        Seconds to the target; None without a time.
    throughput : float or None
        Samples per second over the baseline's.
    efficiency : float or None
        Samples to the target of the baseline over this design's (medians); None unless both medians exist.
    speedup : float or None
        throughput * efficiency; None unless both exist.
    ties : tuple of str
        Designs whose TTA range overlaps this one's, among those whose median run reached the target.
    sample_ties : tuple of str
        The same for samples to the target, where hardware plays no part.

    Examples
    --------
    >>> from softnum.tta import Evaluation
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> result = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")["base"]
    >>> result.reached, result.tta, result.samples.median
    (1, Spread(median=160.0, low=160.0, high=160.0), 2560)
    """

    design: str
    batch: int
    runs: tuple[Run, ...]
    iterations: Spread
    samples: Spread
    time: IterationTime | None
    left_out: str
    tta: Spread | None
    throughput: float | None
    efficiency: float | None
    speedup: float | None
    ties: tuple[str, ...] = ()
    sample_ties: tuple[str, ...] = ()

    @property
    def reached(self) -> int:
        """How many runs reached the target."""
        return sum(run.iterations_to_target is not None for run in self.runs)


@dataclass(frozen=True)
class Study:
    """Designs compared on time-to-accuracy, with the rules that were applied.

    Parameters
    ----------
    label : str
        The variant, for example "stated hardware".
    metric : str
    target : float
    rule : str
        When a run counts as having reached the target.
    baseline : str
    designs : tuple of DesignResult
        In the order in which the designs were first given.
    records : tuple of Record
        The runs used.
    assumptions, not_simulated : tuple of str
        What the variant's times rest on, and what they leave out.
    notes : tuple of str
        What was left out and why.

    Examples
    --------
    >>> from softnum.tta import Evaluation
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> study.label, study.baseline, study["base"].speedup
    ('given times', 'base', 1.0)
    """

    label: str
    metric: str
    target: float
    rule: str
    baseline: str
    designs: tuple[DesignResult, ...]
    records: tuple[Record, ...] = field(repr=False)
    assumptions: tuple[str, ...] = ()
    not_simulated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __getitem__(self, design: str) -> DesignResult:
        """The result of one design, by name."""
        for result in self.designs:
            if result.design == design:
                return result
        raise KeyError(f"no design {design!r} in the study; it has {', '.join(r.design for r in self.designs)}")


def combine_study(
    records: RecordSet | Iterable[Record],
    timings: Variant | Mapping[str, IterationTime],
    *,
    target: float,
    baseline: str,
    metric: str = "accuracy",
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
        Name of the design that speed-ups are over.
    metric : str
        Name of the metric (greater is better).

    Returns
    -------
    Study

    Raises
    ------
    ValueError
        If there is no record, the baseline has none, a design has no time, the runs are of different networks, data or
        (within a design) batch sizes, or the target is met before training.

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
    target = check_target(target)
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
    bare = {d: _result(d, runs, target, timings.get(d), left_out.get(d, "")) for d, runs in by_design.items()}
    base = bare[baseline]
    compared = {design: _compare(result, base) for design, result in bare.items()}
    results = tuple(_tie(result, compared.values()) for result in compared.values())
    missing = [design for design in by_design if design in left_out]
    notes = [
        *excluded,
        *variant.notes,
        *(f"{design} has no time in the variant {variant.label!r}: {left_out[design]}" for design in missing),
    ]
    for record in records:
        if record.diverged:
            what = f"{record.design}, seed {record.seed}, diverged at iteration {record.iterations}"
            notes.append(f"{what}: its loss was not finite")
    few = [design for design, runs in by_design.items() if len(runs) < 3]
    if few:
        notes.append(f"fewer than three runs of {', '.join(few)}: their ranges, and ties by them, say little")
    rule = (
        f"a run reaches the target at its first evaluation with {metric} >= {target:g}; a run without such an "
        "evaluation counts as infinitely long, so a median exists if more than half of the runs reached the target"
    )
    return Study(
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
    )


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
        by_design.setdefault(record.design, []).append(record)
    by_design = {design: sorted(runs, key=lambda run: run.seed) for design, runs in by_design.items() if runs}
    for design, runs in by_design.items():
        for run in runs[1:]:
            if run.batch != runs[0].batch:
                raise ValueError(
                    f"design {design!r} was trained with batch {runs[0].batch} (seed {runs[0].seed}) and {run.batch} "
                    f"(seed {run.seed}); its runs need one batch size: train one of them again"
                )
    return by_design


def _result(design, records, target, time, left_out) -> DesignResult:
    runs = []
    for record in records:
        first = record.first_reaching(target)
        if first == 0:
            raise ValueError(
                f"design {design!r}, seed {record.seed} meets the target {target:g} before the first update; "
                "time-to-accuracy needs a target that training has to work for: raise it"
            )
        values = [e.value for e in record.evaluations if not math.isnan(e.value)]
        final = record.evaluations[-1].value if record.evaluations else math.nan
        steps = [0, *(e.iteration for e in record.evaluations)]
        interval = max((b - a for a, b in itertools.pairwise(steps)), default=0)
        runs.append(Run(record.seed, first, record.iterations, max(values, default=math.nan), final, interval))
    iterations = Spread.of([math.inf if r.iterations_to_target is None else r.iterations_to_target for r in runs])
    return DesignResult(
        design=design,
        batch=records[0].batch,
        runs=tuple(runs),
        iterations=iterations,
        samples=iterations.scaled(records[0].batch),
        time=time,
        left_out=left_out,
        tta=None if time is None else iterations.scaled(time.seconds),
        throughput=None,
        efficiency=None,
        speedup=None,
    )


def _compare(result: DesignResult, base: DesignResult) -> DesignResult:
    throughput = efficiency = None
    if result.time is not None and base.time is not None:
        throughput = (result.batch / result.time.seconds) / (base.batch / base.time.seconds)
    if math.isfinite(result.samples.median) and math.isfinite(base.samples.median):
        efficiency = base.samples.median / result.samples.median
    speedup = None if throughput is None or efficiency is None else throughput * efficiency
    return replace(result, throughput=throughput, efficiency=efficiency, speedup=speedup)


def _tie(result: DesignResult, others: Iterable[DesignResult]) -> DesignResult:
    ties, sample_ties = [], []
    for other in others:
        medians = (result.samples.median, other.samples.median)
        if other.design == result.design or not all(map(math.isfinite, medians)):
            continue
        if result.samples.overlaps(other.samples):
            sample_ties.append(other.design)
        if result.tta is not None and other.tta is not None and result.tta.overlaps(other.tta):
            ties.append(other.design)
    return replace(result, ties=tuple(ties), sample_ties=tuple(sample_ties))
