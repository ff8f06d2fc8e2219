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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from softnum.runtime.plain import plain
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["RULE", "Interval", "bootstrap_interval", "check_confidence", "ratio_interval", "share_interval"]

#: Least and greatest value; the greatest may be infinite.
Interval = tuple[float, float]

EXACT_UP_TO = 8
RESAMPLES = 10_000
PHILOX_KEY = 0x74746120626F6F74  # "tta boot"
_GRID = 401  # equally likely quantiles of one time, where two measured times are divided
_MANY = 4096  # values that two medians' ratio takes before those within a thousandth are put together
_EQUAL = 1e-12  # by how much a ratio of equal numbers may be off 1, of what it is computed from
_TABLE, _TAIL = 4001, 1e-5  # points of that ratio's distribution, and what lies outside them

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


@lru_cache(maxsize=256)
def resampled(values: tuple[float, ...], statistic: str = "median") -> tuple[tuple[float, int], ...]:
    """The values that a statistic takes over the resamples, ascending, with how many resamples give each.

    >>> resampled((1.0, 2.0, 4.0))
    ((1.0, 7), (2.0, 13), (4.0, 7))
    """
    if not values:
        raise ValueError("there is no run to resample")
    if any(math.isnan(value) for value in values):
        raise ValueError("a value to resample is not a number")
    size, counts = len(values), Counter()
    values = tuple(sorted(values))
    if statistic == "median":  # of values in order only its places matter, which are the same for all values
        for (below, above), weight in _median_places(size).items():
            counts[values[below] if size % 2 else (values[below] + values[above]) / 2] += weight
    elif statistic == "mean":
        for chosen, weight in _resamples(size):
            drawn = [values[i] for i in chosen]
            counts[math.fsum(drawn) / size if math.isfinite(drawn[-1]) else math.inf] += weight
    else:
        raise ValueError(f"the statistic must be median or mean, got {statistic!r}")
    return tuple(sorted(counts.items()))


@lru_cache(maxsize=64)
def _median_places(size: int) -> Counter:
    """Between which two of the values in order, or at which, the median of a resample lies, and how often."""
    places: Counter = Counter()
    for chosen, weight in _resamples(size):
        places[chosen[(size - 1) // 2], chosen[size // 2]] += weight
    return places


def _resamples(size: int) -> Iterator[tuple[Sequence[int], int]]:
    """Places of the values of each resample, in order, and how many resamples have them."""
    if size > EXACT_UP_TO:
        drawn = (_uniform(0, RESAMPLES * size) * size).astype(int).reshape(RESAMPLES, size)
        for row in drawn.tolist():
            yield sorted(row), 1
        return
    for chosen in itertools.combinations_with_replacement(range(size), size):
        weight = math.factorial(size)
        for repeats in Counter(chosen).values():
            weight //= math.factorial(repeats)
        yield chosen, weight


def _uniform(stream: int, count: int):
    """Numbers in [0, 1) from Philox's own words, which no release of NumPy changes."""
    import numpy as np

    return (np.random.Philox(key=PHILOX_KEY, counter=[0, 0, 0, stream]).random_raw(count) >> np.uint64(11)) * 2.0**-53


def _ends(confidence: float) -> tuple[Fraction, Fraction]:
    """The probabilities of both ends, exactly as the decimal number was written."""
    level = Fraction(repr(confidence))
    return (1 - level) / 2, (1 + level) / 2


def _quantile(points: Sequence[tuple[float, int]], p: Fraction) -> float:
    total, seen = sum(weight for _, weight in points), 0
    for value, weight in points:
        seen += weight
        if seen >= p * total:
            return value
    raise AssertionError("the weights of a distribution add up to their total")


# -- times -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Time:
    """A mean time: where it lies, its standard error and the degrees of freedom; a standard error of 0 is a point."""

    seconds: float
    error: float = 0.0
    freedom: float = math.inf

    @classmethod
    def of(cls, time: IterationTime) -> _Time:
        count = len(time.samples)
        if count >= 2:
            mean = math.fsum(time.samples) / count
            variance = math.fsum((sample - mean) ** 2 for sample in time.samples) / (count - 1)
            return cls(time.seconds, math.sqrt(variance / count), count - 1)
        if time.interval is not None:  # of 95 %; the samples themselves are not there
            from scipy import special

            freedom = time.iterations - 1 if time.iterations >= 2 else math.inf
            half = max(time.interval[1] - time.seconds, time.seconds - time.interval[0])  # the lower end may be cut
            point = special.ndtri(0.975) if math.isinf(freedom) else special.stdtrit(freedom, 0.975)
            return cls(time.seconds, half / float(point), freedom)
        return cls(time.seconds)

    def cdf(self, x):
        """P(time <= x), conditioned on the time being above zero; x is an array."""
        import numpy as np
        from scipy import special

        def raw(value):
            score = (value - self.seconds) / self.error
            return special.ndtr(score) if math.isinf(self.freedom) else special.stdtr(self.freedom, score)

        below = raw(np.float64(0.0))
        return np.where(np.asarray(x) <= 0, 0.0, (raw(np.asarray(x)) - below) / (1 - below))

    def quantiles(self):
        """`_GRID` equally likely values."""
        import numpy as np
        from scipy import special

        score = -self.seconds / self.error
        normal = math.isinf(self.freedom)
        below = special.ndtr(score) if normal else special.stdtr(self.freedom, score)
        p = below + (1 - below) * (np.arange(_GRID) + 0.5) / _GRID
        return self.seconds + self.error * (special.ndtri(p) if normal else special.stdtrit(self.freedom, p))


def _bisect(cdf: Callable[[float], float], p: float, low: float, high: float) -> float:
    """The p-quantile of a continuous distribution on the positive numbers, to the last few bits."""
    while cdf(low) >= p:
        low /= 2
        if low < 1e-300:
            return 0.0
    while cdf(high) < p:
        high *= 2
        if high > 1e300:
            return math.inf
    while high > low * (1 + 1e-13):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if cdf(middle) >= p else (middle, high)
    return high


def _mixture(points: Sequence[tuple[float, int]], cdf, confidence: float, centre: float) -> Interval:
    """Ends of the distribution of (discrete value) x (continuous value with that cdf, about `centre`)."""
    import numpy as np

    total = sum(weight for _, weight in points)
    finite = [(value, weight) for value, weight in points if 0 < value < math.inf]
    zero = sum(weight for value, weight in points if value == 0) / total
    values, weights = np.array([v for v, _ in finite]), np.array([w / total for _, w in finite])
    reachable = zero + float(weights.sum())
    ends = []
    for p in map(float, _ends(confidence)):
        if p <= zero:
            ends.append(0.0)
        elif p > reachable + 1e-12:
            ends.append(math.inf)
        else:
            p = min(p, reachable * (1 - 1e-15))
            ends.append(
                _bisect(
                    lambda x: zero + float(weights @ cdf(x / values)),
                    p,
                    float(values.min()) * centre,
                    float(values.max()) * centre,
                )
            )
    return ends[0], ends[1]


# -- what is asked for -------------------------------------------------------------------------------------------------
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
        return tuple(_quantile(points, p) for p in _ends(confidence))
    spread = _Time.of(time)
    if spread.error == 0:
        return tuple(_quantile(points, p) * spread.seconds for p in _ends(confidence))
    return _mixture(points, spread.cdf, confidence, spread.seconds)


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
    spread = [_Time(1.0), _Time(1.0)] if times is None else [_Time.of(time) for time in times]
    centre = spread[0].seconds / spread[1].seconds
    if spread[0].error == spread[1].error == 0:
        return tuple(_quantile(points, p) * centre for points, p in zip(ends, _ends(confidence), strict=True))
    cdf = _ratio_cdf(*spread)
    pairs = [_mixture(_binned(points), cdf, confidence, centre) for points in (ends[:1] if low == high else ends)]
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
    spread = [_Time(1.0), _Time(1.0)] if times is None else [_Time.of(time) for time in times]
    centre = spread[0].seconds / spread[1].seconds
    points = spread[0].error == spread[1].error == 0
    cdf = None if points else _raw_ratio_cdf(*spread)
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
    low, high = _ends(check_confidence(confidence))
    return at_most + unknown >= low * total and less < high * total


def _binned(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Thousands of values as few: those within a thousandth of each other count as the first of them."""
    if len(points) <= _MANY:
        return points
    bins: list[tuple[float, int]] = []
    for value, weight in points:
        if bins and 0 < value <= bins[-1][0] * 1.001 < math.inf:
            bins[-1] = (bins[-1][0], bins[-1][1] + weight)
        else:
            bins.append((value, weight))
    return bins


def _raw_ratio_cdf(above: _Time, below: _Time):
    """P(above / below <= x), exact where one of the times is a point."""
    import numpy as np

    if below.error == 0:
        return lambda x: above.cdf(np.asarray(x) * below.seconds)
    if above.error == 0:
        return lambda x: 1.0 - below.cdf(above.seconds / np.maximum(x, 1e-300))
    nodes = below.quantiles()
    return lambda x: above.cdf(np.multiply.outer(np.asarray(x), nodes)).mean(axis=-1)


def _ratio_cdf(above: _Time, below: _Time):
    """`_raw_ratio_cdf`, for many points."""
    import numpy as np

    cdf = _raw_ratio_cdf(above, below)
    if above.error == 0 or below.error == 0:
        return cdf
    # a study asks for it at many points: once on a fine grid, linear between
    low = high = above.seconds / below.seconds
    while cdf(low) > _TAIL and low > 1e-200:
        low /= 2
    while cdf(high) < 1 - _TAIL and high < 1e200:
        high *= 2
    grid = np.geomspace(low, high, _TABLE)
    table = cdf(grid)
    return lambda x: np.interp(x, grid, table)


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


def draws(values: Sequence[float], time: IterationTime | None, stream: int):
    """`RESAMPLES` medians of resampled runs times a drawn mean time, from the stream of that number (1 and up)."""
    import numpy as np

    points = resampled(tuple(values))
    cumulative = np.cumsum([weight for _, weight in points])
    uniform = _uniform(stream, 2 * RESAMPLES).reshape(2, RESAMPLES)
    chosen = np.searchsorted(cumulative, uniform[0] * cumulative[-1], side="right")
    medians = np.array([value for value, _ in points], dtype=float)[chosen]
    if time is None:
        return medians
    spread = _Time.of(time)
    if spread.error == 0:
        return medians * spread.seconds
    nodes = spread.quantiles()
    return medians * nodes[(uniform[1] * len(nodes)).astype(int)]


def percentiles(drawn, confidence: float) -> Interval:
    """Ends of an interval from draws; those that are no number (neither median exists) widen both."""
    import numpy as np

    drawn = np.asarray(drawn, dtype=float)
    ends = []
    for p, instead in zip(_ends(check_confidence(confidence)), (0.0, math.inf), strict=True):
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


def describe(confidence: float) -> Mapping:
    """What results.json says of the intervals."""
    return {
        "confidence": confidence,
        "rule": RULE,
        "resamples": RESAMPLES,
        "exact_up_to_runs": EXACT_UP_TO,
        "least_runs": least_runs(confidence),
    }
