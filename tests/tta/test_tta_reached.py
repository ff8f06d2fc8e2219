"""When a run counts as having reached its target: each rule by hand, and against a definition written out plainly."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softnum.tta import Evaluation, IterationTime, ReachedRule, Record, combine_study
from softnum.tta.accuracy import direction_of


def curve(*values, step=10):
    return [Evaluation(step * i, value) for i, value in enumerate(values, start=1)]


WAVE = curve(0.5, 0.9, 0.8, 0.9, 0.92, 0.91, 0.7, 0.95)


@pytest.mark.parametrize(
    ("rule", "at"),
    [
        (ReachedRule(), 20),
        (ReachedRule("consecutive", k=1), 20),
        (ReachedRule("consecutive", k=2), 50),
        (ReachedRule("consecutive", k=3), 60),
        (ReachedRule("consecutive", k=4), None),
        (ReachedRule("average", window=1), 20),
        (ReachedRule("average", window=2), 50),  # (0.9 + 0.92) / 2
        (ReachedRule("average", window=3), 60),  # (0.9 + 0.92 + 0.91) / 3
        (ReachedRule("average", window=8), None),
    ],
)
def test_rules_by_hand(rule, at):
    assert rule.iteration(WAVE, 0.9) == at


def test_smoothing_by_hand():
    # a = 1/2: s1 = 1/2 x1, corrected x1; s2 = (1/4 x1 + 1/2 x2) / (3/4); s3 = (1/8 x1 + 1/4 x2 + 1/2 x3) / (7/8)
    rule = ReachedRule(smoothing=0.5)
    smooth = rule.smoothed(curve(8.0, 2.0, 1.0))
    assert smooth == pytest.approx([8.0, 4.0, (1 + 0.5 + 0.5) / 0.875], rel=1e-15)
    # what one evaluation meets, the smoothed curve meets later
    assert ReachedRule().iteration(WAVE, 0.9) == 20
    assert rule.iteration(WAVE, 0.9) is None
    assert rule.iteration(WAVE, 0.84) == 40  # 0.8467, after 0.5, 0.767 and 0.786


@given(st.floats(1e-6, 1e6), st.sampled_from([0.1, 0.5, 0.9, 0.99]), st.integers(1, 60))
def test_a_constant_curve_stays_what_it_is(value, alpha, length):
    points = curve(*[value] * length)
    assert ReachedRule(smoothing=alpha).smoothed(points) == [value] * length
    # 0.1 + 0.1 + 0.1 is not 0.3 in binary64; the mean is exact all the same
    assert ReachedRule("average", window=length).iteration(points, value) == 10 * length


def test_lower_is_better():
    falling = curve(3.0, 1.9, 2.1, 1.8, 1.7)
    assert ReachedRule(direction="lower").iteration(falling, 2.0) == 20
    assert ReachedRule("consecutive", k=2, direction="lower").iteration(falling, 2.0) == 50
    assert ReachedRule().iteration(falling, 4.0) is None


def test_what_is_not_finite_never_counts():
    points = curve(0.9, math.nan, 0.9, 0.9, math.inf, 0.9)
    assert ReachedRule("consecutive", k=2).iteration(points, 0.9) == 40
    assert ReachedRule("average", window=3).iteration(points, 0.9) is None
    assert ReachedRule().iteration(curve(math.nan, math.inf), 0.5) is None
    assert ReachedRule(direction="lower").iteration(curve(-math.inf, math.nan), 0.5) is None
    # smoothing begins anew: 0.9 after NaN is 0.9, not a mean with what was before
    assert ReachedRule(smoothing=0.9).smoothed(curve(0.1, math.nan, 0.9))[2] == 0.9


def plainly(rule, points, target):
    """The definition, with no regard for speed: every evaluation looks back on its own."""
    for end in range(len(points)):
        good = []
        for last in range(end - rule.k + 1, end + 1):
            block = [p.value for p in points[last - rule.window + 1 : last + 1]] if last - rule.window + 1 >= 0 else []
            whole = len(block) == rule.window and all(map(math.isfinite, block))
            mean = sum(map(Fraction, block)) / rule.window if whole else None
            good.append(mean is not None and (mean >= target if rule.direction == "higher" else mean <= target))
        if all(good):
            return points[end].iteration
    return None


@given(
    st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9, math.nan]), max_size=25),
    st.sampled_from([("first", {}), ("consecutive", {"k": 2}), ("consecutive", {"k": 4}), ("average", {"window": 3})]),
    st.sampled_from(["higher", "lower"]),
    st.sampled_from([0.3, 0.5, 0.6]),
)
def test_rules_are_what_their_definition_says(values, kind, direction, target):
    rule = ReachedRule(kind[0], direction=direction, **kind[1])
    assert rule.iteration(curve(*values), target) == plainly(rule, curve(*values), target)


def test_parsing():
    assert ReachedRule.parse() == ReachedRule()
    assert ReachedRule.parse("consecutive:3") == ReachedRule("consecutive", k=3)
    assert ReachedRule.parse("average:5", "ema:0.9", "lower") == ReachedRule(
        "average", window=5, smoothing=0.9, direction="lower"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("frist",), "must be first, consecutive:K .* got 'frist'; did you mean 'first'"),
        (("consecutive",), "got 'consecutive'"),
        (("first:2",), "got 'first:2'"),
        (("average:0",), "got 'average:0'"),
        (("consecutive:x",), "got 'consecutive:x'"),
        (("first", "ema"), "smoothing must be ema:A .* got 'ema'"),
        (("first", "ema:1"), r"in \(0, 1\), got 'ema:1'"),
        (("first", "median:3"), "got 'median:3'"),
        (("first", None, "up"), "must be higher or lower, got 'up'"),
    ],
)
def test_bad_rules(arguments, message):
    with pytest.raises(ValueError, match=message):
        ReachedRule.parse(*arguments)


def test_bad_parameters():
    for wrong in ({"k": 2}, {"window": 3}, {"kind": "average", "k": 2}, {"kind": "consecutive", "k": 0}, {"k": True}):
        with pytest.raises(ValueError, match="reached rule"):
            ReachedRule(**wrong)
    with pytest.raises(ValueError, match=r"in \(0, 1\)"):
        ReachedRule(smoothing=1)


def test_directions_of_known_names():
    for name in ("accuracy", "BLEU", "per_class_accuracy", "images_per_second", "mAP", "top5_acc", "transfer", ""):
        assert direction_of(name) == "higher", name
    lower = (
        "loss",
        "val-loss",
        "WER",
        "perplexity",
        "eval/loss",
        "val_wer",
        "validation_loss",
        "top1_error",
        "valLoss",
    )
    for name in (*lower, "top5err", "error_rate", "valid phone PER", "test.cross_entropy", "bits_per_byte", "rmse"):
        assert direction_of(name) == "lower", name


def test_the_rule_is_part_of_the_result():
    def run(design, *values):
        return [Record(design, 1, 32, 80, tuple(curve(*values)), {}, {})]

    times = {"a": IterationTime("a", 1.0)}
    rule = ReachedRule("consecutive", k=2, smoothing=0.5, direction="lower")
    study = combine_study(run("a", 4.0, 1.0, 1.0, 1.0), times, target=2.0, baseline="a", metric="loss", reached=rule)
    assert study.reached == rule
    assert study["a"].runs[0].iterations_to_target == 30  # smoothed: 4, 2, 1.43, ...
    assert study["a"].runs[0].best == 1.0
    assert "last of its first 2 evaluations in a row with loss, smoothed exponentially" in study.rule
    assert "<= 2" in study.rule
    # the direction of a metric is found from its name unless a rule says it
    assert combine_study(run("a", 4.0, 1.0), times, target=2.0, baseline="a", metric="loss")["a"].reached == 1
    assert combine_study(run("a", 1.0, 4.0), times, target=2.0, baseline="a")["a"].runs[0].iterations_to_target == 20


def test_a_loss_of_training_batches_is_called_that():
    def notes(metric, **versions):
        run = Record("a", 1, 32, 20, (Evaluation(10, 2.0), Evaluation(20, 0.5)), {}, versions)
        times = {"a": IterationTime("a", 1.0)}
        return " ".join(combine_study([run], times, target=1.0, baseline="a", metric=metric).notes)

    assert "loss: of each iteration's batch in training" in notes("loss", softnum="0.1.0")
    assert "loss" not in notes("loss") + notes("perplexity", softnum="0.1.0")
