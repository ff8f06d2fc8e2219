"""Runs resampled with replacement: every resample of up to 8 runs, 10 000 drawn ones of more.

The rule and its sources stand in `softnum.tta.outcomes.intervals`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

__all__ = ["EXACT_UP_TO", "RESAMPLES", "ends_of", "quantile", "resampled", "uniform_numbers"]

EXACT_UP_TO = 8
RESAMPLES = 10_000
PHILOX_KEY = 0x74746120626F6F74  # "tta boot"


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
def _median_places(size: int) -> Counter[Any]:
    """Between which two of the values in order, or at which, the median of a resample lies, and how often."""
    places: Counter[Any] = Counter()
    for chosen, weight in _resamples(size):
        places[chosen[(size - 1) // 2], chosen[size // 2]] += weight
    return places


def _resamples(size: int) -> Iterator[tuple[Sequence[int], int]]:
    """Places of the values of each resample, in order, and how many resamples have them."""
    if size > EXACT_UP_TO:
        drawn = (uniform_numbers(0, RESAMPLES * size) * size).astype(int).reshape(RESAMPLES, size)
        for row in drawn.tolist():
            yield sorted(row), 1
        return
    for chosen in itertools.combinations_with_replacement(range(size), size):
        weight = math.factorial(size)
        for repeats in Counter(chosen).values():
            weight //= math.factorial(repeats)
        yield chosen, weight


def uniform_numbers(stream: int, count: int) -> np.ndarray:
    """Numbers in [0, 1) from Philox's own words, which no release of NumPy changes."""
    import numpy as np

    return (np.random.Philox(key=PHILOX_KEY, counter=[0, 0, 0, stream]).random_raw(count) >> np.uint64(11)) * 2.0**-53


def ends_of(confidence: float) -> tuple[Fraction, Fraction]:
    """The probabilities of both ends, exactly as the decimal number was written."""
    level = Fraction(repr(confidence))
    return (1 - level) / 2, (1 + level) / 2


def quantile(points: Sequence[tuple[float, int]], p: Fraction) -> float:
    total, seen = sum(weight for _, weight in points), 0
    for value, weight in points:
        seen += weight
        if seen >= p * total:
            return value
    raise AssertionError("the weights of a distribution add up to their total")
