"""How a measured mean time is spread, and what that makes of a number of iterations or of a ratio of two times.

The rule and its sources stand in `softnum.tta.outcomes.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softnum.tta.outcomes.resampling import ends_of
from softnum.tta.workloads.iteration import IterationTime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

__all__ = ["Interval", "MeanTime", "binned", "mixture", "ratio_cdf", "raw_ratio_cdf"]

#: Least and greatest value; the greatest may be infinite.
Interval = tuple[float, float]

_GRID = 401  # equally likely quantiles of one time, where two measured times are divided
_MANY = 4096  # values that two medians' ratio takes before those within a thousandth are put together
_TABLE, _TAIL = 4001, 1e-5  # points of that ratio's distribution, and what lies outside them


@dataclass(frozen=True)
class MeanTime:
    """A mean time: where it lies, its standard error and the degrees of freedom; a standard error of 0 is a point."""

    seconds: float
    error: float = 0.0
    freedom: float = math.inf

    @classmethod
    def of(cls, time: IterationTime) -> MeanTime:
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

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """P(time <= x), conditioned on the time being above zero; x is an array."""
        import numpy as np
        from scipy import special

        def raw(value):
            score = (value - self.seconds) / self.error
            return special.ndtr(score) if math.isinf(self.freedom) else special.stdtr(self.freedom, score)

        below = raw(np.float64(0.0))
        return np.where(np.asarray(x) <= 0, 0.0, (raw(np.asarray(x)) - below) / (1 - below))

    def quantiles(self) -> np.ndarray:
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


def mixture(
    points: Sequence[tuple[float, int]], cdf: Callable[[Any], Any], confidence: float, centre: float
) -> Interval:
    """Ends of the distribution of (discrete value) x (continuous value with that cdf, about `centre`)."""
    import numpy as np

    total = sum(weight for _, weight in points)
    finite = [(value, weight) for value, weight in points if 0 < value < math.inf]
    zero = sum(weight for value, weight in points if value == 0) / total
    values, weights = np.array([v for v, _ in finite]), np.array([w / total for _, w in finite])
    reachable = zero + float(weights.sum())
    ends = []
    for p in map(float, ends_of(confidence)):
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


def binned(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
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


def raw_ratio_cdf(above: MeanTime, below: MeanTime) -> Callable[[Any], Any]:
    """P(above / below <= x), exact where one of the times is a point."""
    import numpy as np

    if below.error == 0:
        return lambda x: above.cdf(np.asarray(x) * below.seconds)
    if above.error == 0:
        return lambda x: 1.0 - below.cdf(above.seconds / np.maximum(x, 1e-300))
    nodes = below.quantiles()
    return lambda x: above.cdf(np.multiply.outer(np.asarray(x), nodes)).mean(axis=-1)


def ratio_cdf(above: MeanTime, below: MeanTime) -> Callable[[Any], Any]:
    """`raw_ratio_cdf`, for many points."""
    import numpy as np

    cdf = raw_ratio_cdf(above, below)
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
