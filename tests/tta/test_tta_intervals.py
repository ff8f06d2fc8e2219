"""Intervals against brute force: every resample written out, t distributions by another route, ratios by sampling."""

import itertools
import math
import statistics
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from softnum.tta import Evaluation, IterationTime, Record, combine_study  # fmt: skip
from softnum.tta.outcomes import bootstrap_interval, ratio_interval, share_interval  # fmt: skip
from softnum.tta.outcomes.intervals import draws, least_runs, percentiles
from softnum.tta.outcomes.resampling import EXACT_UP_TO, RESAMPLES, resampled

VALUES = st.sampled_from([10.0, 20.0, 25.0, 40.0, 80.0, math.inf])


def every_resample(values, statistic):
    """All n**n of them."""
    return Counter(statistic(sorted(chosen)) for chosen in itertools.product(values, repeat=len(values)))


def quantile(counts, p):
    total, seen = sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if Fraction(seen, total) >= p:
            return value
    raise AssertionError


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_the_median_is_resampled_exactly(values, confidence):
    brute = every_resample(values, statistics.median)
    assert dict(resampled(tuple(values))) == dict(brute)
    level = Fraction(str(confidence))
    want = quantile(brute, (1 - level) / 2), quantile(brute, (1 + level) / 2)
    assert bootstrap_interval(values, confidence=confidence) == want


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5))
def test_the_mean_is_resampled_exactly(values):
    brute = every_resample(values, lambda v: math.fsum(v) / len(v))
    assert dict(resampled(tuple(values), "mean")) == dict(brute)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=9))
def test_the_median_lies_within_its_interval(values):
    low, high = bootstrap_interval(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


def test_order_statistics_of_an_odd_number_of_runs():
    """Efron 1979: P(median of a resample <= x(k)) = P(Binomial(n, k / n) >= (n + 1) / 2)."""
    for n in (3, 5, 7):
        seen, points = 0, resampled(tuple(float(i) for i in range(n)))
        for k, (value, weight) in enumerate(points, start=1):
            seen += weight
            assert value == k - 1
            assert seen / n**n == pytest.approx(stats.binom.sf((n + 1) // 2 - 1, n, k / n), rel=1e-12)


def test_many_runs_are_sampled_with_a_fixed_key():
    values = tuple(float(i) for i in range(1, 22))
    assert len(values) > EXACT_UP_TO
    points = resampled(values)
    assert sum(weight for _, weight in points) == RESAMPLES
    resampled.cache_clear()
    assert resampled(values) == points
    # against the exact law of the median's order statistic
    for value, cumulative in zip((v for v, _ in points), np.cumsum([w for _, w in points]), strict=True):
        exact = stats.binom.sf(10, 21, value / 21)
        assert abs(cumulative / RESAMPLES - exact) < 4 * math.sqrt(0.25 / RESAMPLES)


def measured(*samples, design="d"):
    mean = sum(samples) / len(samples)
    half = stats.t.ppf(0.975, len(samples) - 1) * stats.sem(samples)
    return IterationTime(design, mean, len(samples), samples=samples, interval=(mean - half, mean + half))


TIMES = (2.0, 2.1, 1.9, 2.05)


def test_of_one_run_the_interval_is_that_of_the_time():
    time = measured(*TIMES)
    got = bootstrap_interval([100], time)
    assert got == pytest.approx([100 * end for end in time.interval], rel=2e-5)  # but for what lies below zero
    # without the samples, their interval says the same
    told = IterationTime("d", time.seconds, time.iterations, interval=time.interval)
    assert bootstrap_interval([100], told) == pytest.approx(got, rel=1e-9)


@pytest.mark.parametrize("runs", [[30, 40, 50], [30, 30, 90, 120], [30, 40, 50, 60, math.inf], [10, math.inf]])
def test_runs_and_times_together(runs):
    time = measured(*TIMES)
    spread = stats.t(len(TIMES) - 1, loc=time.seconds, scale=stats.sem(TIMES))
    brute = every_resample(runs, statistics.median)
    total = sum(brute.values())

    def cdf(x):
        finite = sum(c * spread.cdf(x / value) for value, c in brute.items() if math.isfinite(value))
        return finite / total  # what lies below zero is one in 10**5 here

    for got, p in zip(bootstrap_interval(runs, time), (0.025, 0.975), strict=True):
        if cdf(1e9) < p:
            assert math.isinf(got)
        else:
            assert got == pytest.approx(optimize.brentq(lambda x, p=p: cdf(x) - p, 1e-3, 1e5), rel=2e-4)


def test_a_time_is_never_below_zero():
    wild = measured(1.0, 9.0)  # its t distribution of one degree of freedom reaches far below zero
    low, high = bootstrap_interval([10], wild)
    assert 0 < low < 50 < high < math.inf


def test_more_spread_never_narrows():
    runs, narrow, wide = [30, 40, 50, 70], measured(1.99, 2.0, 2.01), measured(1.5, 2.0, 2.5)
    ends = [bootstrap_interval(runs, t) for t in (IterationTime("d", 2.0), narrow, wide)]
    assert ends[2][0] < ends[1][0] <= ends[0][0] and ends[0][1] <= ends[1][1] < ends[2][1]


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(VALUES, min_size=1, max_size=4))
def test_ratios_of_runs_against_brute_force(over, under):
    low, high = Counter(), Counter()
    for (a, m), (b, n) in itertools.product(
        every_resample(over, statistics.median).items(), every_resample(under, statistics.median).items()
    ):
        unknown = math.isinf(a) and math.isinf(b)
        low[0.0 if unknown else a / b * 2] += m * n
        high[math.inf if unknown else a / b * 2] += m * n
    want = quantile(low, Fraction(1, 40)), quantile(high, Fraction(39, 40))
    assert ratio_interval(over, under, factor=2.0) == want


@pytest.mark.parametrize(
    ("above", "below"),
    [((2.0, 2.1, 1.9), (1.0,)), ((2.0,), (1.0, 1.1, 0.9)), ((2.0, 2.1, 1.9), (1.0, 1.1, 0.95, 1.02))],
)
def test_ratios_of_measured_times_against_sampling(above, below):
    times = [measured(*s) if len(s) > 1 else IterationTime("d", s[0]) for s in (above, below)]
    rng = np.random.default_rng(5)

    def sample(values):
        if len(values) == 1:
            return values[0]
        return np.mean(values) + stats.sem(values) * rng.standard_t(len(values) - 1, 1_000_000)

    ratio = sample(above) / sample(below) * np.ones(1_000_000)
    for a, b in ((30, 20), (40, 25)):
        assert ratio_interval([a], [b], tuple(times)) == pytest.approx(
            np.quantile(ratio * a / b, [0.025, 0.975]), rel=0.02
        )


def test_a_share_is_wilsons():
    for reached, runs in ((0, 3), (2, 3), (3, 3), (9, 10)):
        z, p = stats.norm.ppf(0.975), reached / runs
        centre = (p + z * z / 2 / runs) / (1 + z * z / runs)
        half = z / (1 + z * z / runs) * math.sqrt(p * (1 - p) / runs + z * z / 4 / runs / runs)
        assert share_interval(reached, runs) == pytest.approx((centre - half, centre + half), abs=1e-12)
    with pytest.raises(ValueError, match="got 4 of 3"):
        share_interval(4, 3)


def test_how_many_runs_a_level_needs():
    # n runs: all on one side of the median with probability 2 * 2**-n
    assert [least_runs(level) for level in (0.5, 0.75, 0.9, 0.95, 0.99)] == [2, 3, 5, 6, 8]


def test_draws_are_the_same_each_time_and_follow_the_law():
    first = draws([30, 40, 50], measured(*TIMES), 1)
    assert (first == draws([30, 40, 50], measured(*TIMES), 1)).all()
    assert (first != draws([30, 40, 50], measured(*TIMES), 2)).any()
    assert percentiles(first, 0.95) == pytest.approx(bootstrap_interval([30, 40, 50], measured(*TIMES)), rel=0.03)
    medians = Counter(draws([30, 40, 50], None, 3).tolist())
    for value, weight in resampled((30, 40, 50)):
        assert medians[value] / RESAMPLES == pytest.approx(weight / 27, abs=0.02)


def test_what_is_no_interval():
    for wrong in (0, 1, 1.5, "0.95", True, math.nan):
        with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
            bootstrap_interval([1.0], confidence=wrong)
    with pytest.raises(ValueError, match="no run to resample"):
        bootstrap_interval([])
    with pytest.raises(ValueError, match="not a number"):
        bootstrap_interval([math.nan])
    with pytest.raises(ValueError, match="median or mean, got 'mode'"):
        bootstrap_interval([1.0], statistic="mode")


# -- in a study --------------------------------------------------------------------------------------------------------
def runs_of(design, batch, *reached):
    return [
        Record(
            design, seed, batch, 100,
            tuple(Evaluation(i, 0.9 if at is not None and i >= at else 0.2) for i in range(10, 101, 10)), {}, {},
        )
        for seed, at in enumerate(reached)
    ]  # fmt: skip


def test_intervals_of_a_study():
    records = [*runs_of("a", 32, 30, 40, 50), *runs_of("b", 64, 20, None, 30), *runs_of("n", 32, None, None)]
    times = {"a": IterationTime("a", 2.0), "b": measured(0.9, 1.0, 1.1, design="b"), "n": IterationTime("n", 1.0)}
    study = combine_study(records, times, target=0.9, baseline="a")
    a, b, n = (study[name].intervals for name in "abn")
    assert (a.iterations, a.samples, a.tta) == ((30, 50), (960, 1600), (60.0, 100.0))
    assert a.throughput is a.efficiency is a.speedup is None
    assert b.iterations == (20, math.inf)
    assert b.tta == bootstrap_interval([20, math.inf, 30], times["b"])
    assert b.efficiency == ratio_interval([30, 40, 50], [20, math.inf, 30], factor=32 / 64)
    assert b.speedup == ratio_interval([30, 40, 50], [20, math.inf, 30], (times["a"], times["b"]))
    assert b.throughput[0] < study["b"].throughput < b.throughput[1]
    assert n.tta == (math.inf, math.inf) and n.speedup == (0.0, 0.0)
    assert study["b"].share == share_interval(2, 3)
    narrow = combine_study(records, times, target=0.9, baseline="a", confidence=0.5)
    assert narrow["a"].intervals.iterations == (30, 50) and narrow.confidence == 0.5
    assert narrow["b"].intervals.throughput[1] < b.throughput[1]
