"""MSER-5 against its definition, Student's interval against scipy's, and what is said of both."""

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softnum.tta import IterationTime
from softnum.tta.outcomes import bootstrap_interval
from softnum.tta.timings import mean_interval, mser5
from softnum.tta.timings.series import Series
from softnum.tta.timings.warmup import iteration_time, warmup_hint, warmup_rule


def definition(samples):
    """MSER of every cut up to half, in exact fractions, straight from the formula."""
    means = [sum(map(Fraction, samples[at : at + 5])) / 5 for at in range(0, len(samples) - 4, 5)]
    found = []
    for cut in range(len(means) // 2 + 1):
        left = means[cut:]
        mean = sum(left) / len(left)
        found.append(sum((value - mean) ** 2 for value in left) / len(left) ** 2)
    best = found.index(min(found))
    return 0 if best == len(means) // 2 else 5 * best


@given(st.lists(st.floats(1e-6, 10), min_size=20, max_size=120))
@settings(max_examples=150, deadline=None)
def test_mser5_is_its_definition(samples):
    assert mser5(samples)[0] == definition(samples)


def test_mser5_finds_a_warm_up():
    steady = [1.0, 1.2, 0.9, 1.1, 1.0] * 18
    dropped, said = mser5([9.0, 7.0, 5.0, 4.0, 3.0, 2.0, 2.0, 2.0, 1.5, 1.5] + steady)
    assert (dropped, said) == (10, "MSER-5: the first 10 of 100 samples dropped")
    assert mser5(steady)[0] == 0


@pytest.mark.parametrize("samples", [[1.0] * 19, [5.0, 1.0]])
def test_mser5_drops_nothing_of_few(samples):
    assert mser5(samples) == (
        0,
        f"MSER-5: nothing dropped, because it needs 20 samples or more and there are {len(samples)}",
    )


def test_mser5_drops_nothing_of_a_trend():
    dropped, said = mser5([float(60 - at) for at in range(60)])
    assert dropped == 0 and "no steady state can be told" in said


def test_mser5_drops_nothing_of_a_constant_or_of_any_scale():
    assert mser5([2.5] * 40)[0] == 0
    ramp = [8.0] * 5 + [1.0, 1.5] * 20
    assert mser5([value * 1e-300 for value in ramp])[0] == mser5([value * 1e300 for value in ramp])[0] == 5


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=50))
@settings(max_examples=80, deadline=None)
def test_the_interval_is_students(samples):
    from scipy import stats

    low, high = mean_interval(samples)
    mean, error = sum(samples) / len(samples), stats.sem(samples)
    expected = stats.t.interval(0.95, len(samples) - 1, mean, error) if error else (mean, mean)
    scale = max(samples)
    assert low == pytest.approx(max(0.0, expected[0]), rel=1e-9, abs=1e-9 * scale)  # no time is below 0
    assert high == pytest.approx(expected[1], rel=1e-9, abs=1e-9 * scale)


def test_the_interval_covers_the_mean_in_19_of_20():
    import numpy

    draw = numpy.random.Generator(numpy.random.Philox(key=7))
    rows = draw.normal(10.0, 1.0, (2000, 6)).tolist()
    covered = sum(low <= 10.0 <= high for low, high in map(mean_interval, rows))
    assert 1860 <= covered <= 1940  # 1900 expected, with a standard deviation of 10


def test_one_sample_has_no_interval():
    assert mean_interval([1.0]) is None


@pytest.mark.parametrize("bad", ["5%", "-1", -1, True, 1.5, None, "auto ", "٣", "9" * 20])
def test_bad_warm_up_rules(bad):
    with pytest.raises(ValueError, match="warmup must be none, auto, or a number of iterations to drop, got"):
        warmup_rule(bad)


def series(count, **options):
    return Series("a", [Fraction(at + 1) for at in range(count)], "measured", "t.log", **options)


def test_samples_that_are_means_of_several_iterations():
    time = iteration_time(series(4, each=10), 20)
    assert (time.seconds, time.samples, time.dropped, time.iterations) == (3.5, (3.0, 4.0), 20, 20)
    with pytest.raises(ValueError, match="40 iterations of 'a' in 4 parts of 10, of which the first 15 cannot be"):
        iteration_time(series(4, each=10), 15)


def test_a_warm_up_that_leaves_nothing():
    with pytest.raises(ValueError, match=r"t.log: 3 iterations of 'a', of which the first 3 cannot be dropped"):
        iteration_time(series(3), 3)


def test_a_warm_up_of_a_mean():
    mean = series(1, each=7, ordered=False)
    time = iteration_time(mean, "auto")
    assert (time.iterations, time.samples, time.interval) == (7, (), None)
    assert time.detail["warmup"] == "nothing dropped: the file gives a mean, not single iterations"
    with pytest.raises(ValueError, match="gives no times of single iterations of 'a'"):
        iteration_time(mean, 1)


def test_no_interval_of_times_goes_below_zero():
    """HolisticTraceAnalysis' amd_trace has two steps, of 9.3 and 0.07 ms: Student's interval began at -54 ms."""
    series = Series("a", [Fraction("0.0093"), Fraction("0.00007")], "measured", "trace")
    time = iteration_time(series, "auto")
    assert time.interval[0] == 0.0 and time.interval[1] == pytest.approx(0.0633, abs=1e-4)
    # the spread of a time whose samples are not at hand is taken from the end that is not cut
    known = IterationTime("a", time.seconds, 2, samples=time.samples)
    told = IterationTime("a", time.seconds, 2, interval=time.interval)
    assert bootstrap_interval([10], told) == pytest.approx(bootstrap_interval([10], known), rel=1e-9)


@pytest.mark.parametrize(
    ("milliseconds", "each", "said"),
    [
        ([35, 72, 96, 96, 96], 1, "the first 2 of 5 iterations are not like the others .* --warmup 2"),
        (
            [20, 10, 10, 10.1],
            5,
            r"the first 5 of 20 iterations are .*\(20.0 ms, then 10.0 ms to 10.1 ms\).* --warmup 5",
        ),
        ([500, 10, 11], 1, "the first of 3 iterations is not like .* if it is warm-up, drop it with --warmup 1 "),
        ([10, 11, 10, 9, 10], 1, None),
        ([500, 10], 1, None),  # either may be the usual one
        ([10, 10, 500, 10, 10], 1, None),
        ([500] + [10] * 19, 1, None),  # enough for MSER-5
    ],
)
def test_few_samples_of_a_warming_up_profile_lead_to_a_hint(milliseconds, each, said):
    series = Series("a", [Fraction(str(value)) / 1000 for value in milliseconds], "measured", "trace", each=each)
    hint = iteration_time(series, "auto").detail.get("hint")
    assert hint is None if said is None else re.search(said, hint)
    assert "hint" not in iteration_time(series, "none").detail  # asked for


def test_unlike_iterations_are_warned_of():
    slow = [Fraction(1) + (at >= 12) * Fraction(1, 2) + Fraction(at % 3, 100) for at in range(18)]
    detail = iteration_time(Series("a", slow, "measured", "trace"), "none").detail
    assert re.search(r"unlike, .* 1.01 s per iteration in the first 12 of 18 stretches, 1.51 s in", detail["unlike"])
    even = [Fraction(1) + Fraction(at % 3, 100) for at in range(18)]
    assert "unlike" not in iteration_time(Series("a", even, "measured", "trace"), "none").detail


def test_a_hint_of_times_whose_squares_overflow():
    assert warmup_hint([1e200, 1e300, 1e300, 1e300]).startswith("the first of 4 iterations is not like the others")
