"""Intervals of what a study says: seeds by the bootstrap, times by Student's t, shares by Wilson's score.

*Seeds.* With n runs there are n**n equally likely resamples with replacement. Up to n = 8 all of them are counted, as
multisets with their multinomial weights, so that the distribution of the median is exact; beyond, 10 000 resamples are
drawn from Philox with a fixed key. No clock and no global generator: the same runs give the same interval.

*Times.* A mean of n measured iterations with standard deviation s is spread as mean + s / sqrt(n) * T, T of Student's t
with n - 1 degrees of freedom, conditioned on being above zero. A simulated or given time has no spread.

*Both.* Runs and times are independent, so the distribution of iterations x seconds is a mixture of scaled t
distributions, one for each value that the median takes; its quantiles are found by bisection, not by sampling. Where
two measured times are divided, one of them stands as 401 equally likely quantiles. Ratios of two designs treat their
runs as independent, although equal seeds share initial weights: that errs on the wide side.

*Percentile interval*: the (1 - c) / 2 and (1 + c) / 2 quantiles, a quantile being the least value whose cumulative
probability is at least p. A run that never reaches the target is infinitely long; an interval may end at infinity.

Sources: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979 (percentile
interval, exact resamples of the median); E. B. Wilson, "Probable inference, the law of succession, and statistical
inference", JASA 22, 1927; J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from softnum.runtime.plain import plain
from softnum.tta.outcomes.mean_times import Interval, MeanTime, binned, mixture, ratio_cdf, raw_ratio_cdf
from softnum.tta.outcomes.resampling import EXACT_UP_TO, RESAMPLES, ends_of, quantile, resampled, uniform_numbers
from softnum.tta.workloads.iteration import IterationTime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

__all__ = ["RULE", "Interval", "bootstrap_interval", "check_confidence", "ratio_interval", "share_interval"]

_EQUAL = 1e-12  # by how much a ratio of equal numbers may be off 1, of what it is computed from

RULE = (
    "percentile bootstrap of the median over the runs (every resample up to 8 runs, beyond 10000 drawn from Philox "
    "with a fixed key), times the mean time's Student t where iterations were measured; ratios take runs as independent"
)


def check_confidence(value: object) -> float:
    """Return a level of confidence as a float, or raise an error that says what one is.

    >>> check_confidence(0.95)
    0.95
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ValueError(f"the confidence must be a number between 0 and 1, such as 0.95, got {value!r}")
    return float(value)


@plain
def bootstrap_interval(
    values: Sequence[float],
    time: IterationTime | None = None,
    *,
    confidence: float = 0.95,
    statistic: str = "median",
) -> Interval:
    """Interval of the median (or mean) over runs, times a mean time.

    Parameters
    ----------
    values : sequence of float
        One for each run, for example iterations to the target; infinite for a run that never reached it.
    time : IterationTime, optional
        Seconds per iteration, with its samples or its interval where it was measured. Default: 1, without spread.
    confidence : float
        Probability that lies within the ends.
    statistic : str
        "median" or "mean".

    Returns
    -------
    (float, float)
        In the unit of the values, times seconds if there is a time. The second end is infinite where resamples that
        never reach the target make up more than (1 - confidence) / 2.

    Raises
    ------
    ValueError
        If there is no value, one is not a number, or the confidence does not lie in (0, 1).

    Examples
    --------
    >>> bootstrap_interval([30, 40, 50])
    (30, 50)
    >>> bootstrap_interval([30, 40, 50], IterationTime("base", 2.0), confidence=0.4)
    (80.0, 80.0)
    >>> bootstrap_interval([30, 40, math.inf])
    (30, inf)
    """
    confidence = check_confidence(confidence)
    points = resampled(tuple(values), statistic)
    if time is None:
        return tuple(quantile(points, p) for p in ends_of(confidence))
    spread = MeanTime.of(time)
    if spread.error == 0:
        return tuple(quantile(points, p) * spread.seconds for p in ends_of(confidence))
    return mixture(points, spread.cdf, confidence, spread.seconds)


@plain
def ratio_interval(
    over: Sequence[float],
    under: Sequence[float],
    times: tuple[IterationTime, IterationTime] | None = None,
    *,
    factor: float = 1.0,
    confidence: float = 0.95,
) -> Interval:
    """Interval of median(over) / median(under), times the ratio of two mean times, times a constant.

    Parameters
    ----------
    over, under : sequence of float
        One value for each run of either design; ``[1.0]`` where only times are compared.
    times : (IterationTime, IterationTime), optional
        Seconds per iteration of the design above and of the one below the line.
    factor : float
        For example the ratio of their batch sizes.
    confidence : float

    Returns
    -------
    (float, float)
        Resamples where neither median exists say nothing of the ratio: they widen both ends (0 and infinity).

    Examples
    --------
    >>> base, fast = IterationTime("base", 2.0), IterationTime("fast", 1.0)
    >>> ratio_interval([40, 40, 40], [20, 20, 20], (base, fast))
    (4.0, 4.0)
    >>> ratio_interval([30, 40, 50], [math.inf, math.inf, 25])
    (0.0, 2.0)
    """
    confidence = check_confidence(confidence)
    low, high = Counter(), Counter()
    for (above, first), (below, second) in itertools.product(resampled(tuple(over)), resampled(tuple(under))):
        weight = first * second
        if math.isinf(above) and math.isinf(below):
            low[0.0] += weight
            high[math.inf] += weight
            continue
        value = above / below * factor
        low[value] += weight
        high[value] += weight
    ends = [sorted(low.items()), sorted(high.items())]
    spread = [MeanTime(1.0), MeanTime(1.0)] if times is None else [MeanTime.of(time) for time in times]
    centre = spread[0].seconds / spread[1].seconds
    if spread[0].error == spread[1].error == 0:
        return tuple(quantile(points, p) * centre for points, p in zip(ends, ends_of(confidence), strict=True))
    cdf = ratio_cdf(*spread)
    pairs = [mixture(binned(points), cdf, confidence, centre) for points in (ends[:1] if low == high else ends)]
    return pairs[0][0], pairs[-1][1]


def ratio_holds_one(
    over: Sequence[float],
    under: Sequence[float],
    times: tuple[IterationTime, IterationTime] | None = None,
    *,
    factor: float = 1.0,
    confidence: float = 0.95,
) -> bool:
    """Whether the interval of `ratio_interval` holds 1; its ends are not looked for, which takes long of two means.

    >>> ratio_holds_one([30, 40, 50], [20, 40, 60]), ratio_holds_one([30, 40, 50], [10, 15, 20])
    (True, False)
    """
    spread = [MeanTime(1.0), MeanTime(1.0)] if times is None else [MeanTime.of(time) for time in times]
    centre = spread[0].seconds / spread[1].seconds
    points = spread[0].error == spread[1].error == 0
    cdf = None if points else raw_ratio_cdf(*spread)
    total = unknown = 0
    at_most = less = 0.0
    for (above, first), (below, second) in itertools.product(resampled(tuple(over)), resampled(tuple(under))):
        weight = first * second
        total += weight
        if math.isinf(above) and math.isinf(below):
            unknown += weight
            continue
        value = above / below * factor
        if points:
            equal = math.isclose(value * centre, 1, rel_tol=_EQUAL)
            at_most += weight * (equal or value * centre < 1)
            less += weight * (not equal and value * centre < 1)
        elif math.isfinite(value):
            share = 1.0 if value == 0 else float(cdf(1 / value))
            at_most, less = at_most + weight * share, less + weight * share
    low, high = ends_of(check_confidence(confidence))
    return at_most + unknown >= low * total and less < high * total


@plain
def share_interval(reached: int, runs: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's interval of the share of runs that reach the target.

    Parameters
    ----------
    reached, runs : int
        How many runs reached it, of how many.
    confidence : float

    Returns
    -------
    (float, float)
        Both in [0, 1].

    Examples
    --------
    >>> [round(end, 3) for end in share_interval(3, 3)]
    [0.439, 1.0]
    """
    from scipy import stats

    if not 0 <= reached <= runs or runs < 1:
        raise ValueError(f"a share needs 0 <= reached <= runs and a run, got {reached} of {runs}")
    found = stats.binomtest(reached, runs).proportion_ci(check_confidence(confidence), method="wilson")
    return float(found.low), float(found.high)


def draws(values: Sequence[float], time: IterationTime | None, stream: int) -> np.ndarray:
    """`RESAMPLES` medians of resampled runs times a drawn mean time, from the stream of that number (1 and up)."""
    import numpy as np

    points = resampled(tuple(values))
    cumulative = np.cumsum([weight for _, weight in points])
    uniform = uniform_numbers(stream, 2 * RESAMPLES).reshape(2, RESAMPLES)
    chosen = np.searchsorted(cumulative, uniform[0] * cumulative[-1], side="right")
    medians = np.array([value for value, _ in points], dtype=float)[chosen]
    if time is None:
        return medians
    spread = MeanTime.of(time)
    if spread.error == 0:
        return medians * spread.seconds
    nodes = spread.quantiles()
    return medians * nodes[(uniform[1] * len(nodes)).astype(int)]


def percentiles(drawn: ArrayLike, confidence: float) -> Interval:
    """Ends of an interval from draws; those that are no number (neither median exists) widen both."""
    import numpy as np

    drawn = np.asarray(drawn, dtype=float)
    ends = []
    for p, instead in zip(ends_of(check_confidence(confidence)), (0.0, math.inf), strict=True):
        ordered = np.sort(np.where(np.isnan(drawn), instead, drawn))
        ends.append(float(ordered[max(0, math.ceil(p * len(ordered)) - 1)]))
    return ends[0], ends[1]


def least_runs(confidence: float) -> int:
    """The fewest runs whose whole range covers the true median with that probability, 1 - 2**(1 - n).

    Each run falls on either side of the median with probability 1/2 (W. R. Thompson, "On confidence ranges for the
    median", Annals of Mathematical Statistics 7, 1936). No interval made of fewer runs can do better.

    >>> least_runs(0.95)
    6
    """
    runs = 1
    while 1 - Fraction(1, 2 ** (runs - 1)) < Fraction(repr(check_confidence(confidence))):
        runs += 1
    return runs


def describe(confidence: float) -> Mapping[str, Any]:
    """What results.json says of the intervals."""
    return {
        "confidence": confidence,
        "rule": RULE,
        "resamples": RESAMPLES,
        "exact_up_to_runs": EXACT_UP_TO,
        "least_runs": least_runs(confidence),
    }
