"""What a study consists of: times in (`Variant`), results out (`Study`, `DesignResult`), and the numbers they hold."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.accuracy.records import Record
from softnum.tta.mlperf.benchmarks import MLPerfScore
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["CostResult", "DesignResult", "EnergyResult", "Intervals", "Run", "Spread", "Study", "Variant"]


@dataclass(frozen=True)
class Variant:
    """One set of iteration times, with its assumptions and notes.

    Parameters
    ----------
    label : str
        Its name, for example "stated hardware".
    timings : Mapping of str to IterationTime
        Seconds per iteration of each design.
    left_out : Mapping of str to str
        Designs that have no time in this variant, with the reason.
    assumptions : tuple of str
        The assumptions of the times.
    not_simulated : tuple of str
        Parts of an iteration that the times leave out.
    notes : tuple of str
        Further remarks on the times.
    files : tuple of str
        The files that the times were read from.
    measured : bool
        Whether times to accuracy are the curves' own, and `timings` only the mean times of their iterations.

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
    files: tuple[str, ...] = ()
    measured: bool = False


@dataclass(frozen=True)
class Spread:
    """Median and range over the seeds; infinite where that run never reached the target.

    Examples
    --------
    >>> Spread.of([30.0, 10.0, float("inf")])
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
        Best and last value of the metric (NaN if every evaluation was).
    interval : int
        Most iterations between two evaluations: no time to accuracy is known more finely than that.
    seconds_to_target : float or None
        By the curve's own clock; None if it has none, or never reached the target.

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
    seconds_to_target: float | None = None


@dataclass(frozen=True)
class Intervals:
    """Percentile intervals of one design's figures (``softnum.tta.outcomes.intervals``); None where there is no figure.

    Parameters
    ----------
    iterations, samples, tta : (float, float) or None
        Of the medians over the runs; an end is infinite where resamples never reach the target.
    throughput, efficiency, speedup : (float, float) or None
        Of the ratios to the baseline; None for the baseline itself.
    cost, energy : (float, float) or None
        Of cost and energy to accuracy.

    Examples
    --------
    >>> Intervals(iterations=(30.0, 50.0)).tta is None
    True
    """

    iterations: tuple[float, float] | None = None
    samples: tuple[float, float] | None = None
    tta: tuple[float, float] | None = None
    throughput: tuple[float, float] | None = None
    efficiency: tuple[float, float] | None = None
    speedup: tuple[float, float] | None = None
    cost: tuple[float, float] | None = None
    energy: tuple[float, float] | None = None


@dataclass(frozen=True)
class CostResult:
    """What reaching the target costs, and what throughput costs to buy.

    Parameters
    ----------
    rent_per_hour, price : float or None
        As given: dollars per hour, and dollars to buy the hardware.
    to_accuracy : Spread or None
        rent_per_hour * TTA / 3600: dollars to the target, over the runs.
    per_throughput : float or None
        price / throughput: dollars for each sample per second, the measure of the seed poster's cost analysis.

    Examples
    --------
    >>> CostResult(3.6, None, Spread(0.2, 0.1, 0.3), None).to_accuracy.median
    0.2
    """

    rent_per_hour: float | None
    price: float | None
    to_accuracy: Spread | None
    per_throughput: float | None


@dataclass(frozen=True)
class EnergyResult:
    """Energy to the target.

    Parameters
    ----------
    joules : float
        Of one iteration.
    source : str
        Where that is from.
    to_accuracy : Spread
        joules * iterations to the target, over the runs.

    Examples
    --------
    >>> EnergyResult(0.5, "by hand", Spread(20.0, 15.0, 25.0)).to_accuracy.high
    25.0
    """

    joules: float
    source: str
    to_accuracy: Spread


@dataclass(frozen=True)
class DesignResult:
    """What is known of one design.

    Parameters
    ----------
    design : str
        Its label: the design's name, or ``name@batch``.
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
        Seconds to the target: `measured`, where the variant is of the curves' own times, else `product`.
    throughput : float or None
        Samples per second over the baseline's.
    efficiency : float or None
        Samples to the target of the baseline over this design's (medians); None unless both medians exist.
    speedup : float or None
        throughput * efficiency; None unless both exist. Of measured times to accuracy it is their ratio, and throughput
        what it leaves beside the efficiency: samples per second up to the target.
    ties : tuple of str
        Designs that it is not told apart from in TTA, among those whose median run reached the target: the interval of
        the ratio of the two TTAs holds 1.
    sample_ties : tuple of str
        The same for samples to the target, where hardware plays no part.
    share : (float, float) or None
        Wilson's interval of the share of runs that reach the target.
    intervals : Intervals
    cost : CostResult or None
        None unless a rent or a price is given.
    energy : EnergyResult or None
        None unless the energy of an iteration is known.
    mlperf : MLPerfScore or None
        MLPerf's own figure, where the runs are MLPerf logs: run_stop - run_start, not a product.
    unit : str
        What iterations count: "iteration", "step", "epoch" or "evaluation" (``Record.unit``).
    measured : Spread or None
        Seconds to the target by the curves' own clocks; None where a curve states no times.
    product : Spread or None
        Iterations to the target x seconds per iteration; None without a time.
    tokens : Spread or None
        Tokens to the target, of a language model whose records say how many a sample has.

    Examples
    --------
    >>> from softnum.tta import Evaluation, combine_study
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
    share: tuple[float, float] | None = None
    intervals: Intervals = Intervals()
    cost: CostResult | None = None
    energy: EnergyResult | None = None
    mlperf: MLPerfScore | None = None
    unit: str = "iteration"
    measured: Spread | None = None
    product: Spread | None = None
    tokens: Spread | None = None

    @property
    def by_clock(self) -> bool:
        """Whether `tta` is measured and not a product."""
        return self.tta is not None and self.tta is self.measured

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
        The rule by which a run has reached the target, in words.
    baseline : str
    designs : tuple of DesignResult
        In the order in which the designs were first given.
    records : tuple of Record
        The runs used.
    assumptions, not_simulated : tuple of str
        The assumptions of the variant's times, and what they leave out.
    notes : tuple of str
        What was left out, and why.
    reached : ReachedRule
        The rule that `rule` puts into words.
    confidence : float
        Confidence level of every interval.
    interactions : tuple of Interaction
        Gains of combined designs, compared with the product of the gains of their parts.
    files : tuple of str
        The files that the times were read from.

    Examples
    --------
    >>> from softnum.tta import Evaluation, combine_study
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
    reached: ReachedRule = field(default_factory=ReachedRule)
    confidence: float = 0.95
    interactions: tuple[Any, ...] = ()
    files: tuple[str, ...] = ()

    def __getitem__(self, design: str) -> DesignResult:
        """The result of one design, by name."""
        for result in self.designs:
            if result.design == design:
                return result
        raise KeyError(f"no design {design!r} in the study; it has {', '.join(r.design for r in self.designs)}")
