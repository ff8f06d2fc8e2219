"""Learning-rate schedules, against their formulas and PyTorch's."""

import math

import numpy as np
import pytest

from softnum.train import SGD, Schedule
from softnum.train.update.schedules import SCHEDULES, power

CASES = {
    "constant": {},
    "step": {"decay_every": 7, "decay_factor": 0.3},
    "exponential": {"decay_factor": 0.97},
    "cosine": {"final_rate": 0.1},
}


@pytest.mark.parametrize("warmup", [0, 10])
@pytest.mark.parametrize("name", CASES)
def test_factors_follow_the_formula(name, warmup):
    schedule, total = Schedule(name, warmup, **CASES[name]), 100
    for t in range(1, total + 1):
        s = t - warmup - 1
        want = {
            "constant": lambda s: 1.0,
            "step": lambda s: 0.3 ** (s // 7),
            "exponential": lambda s: 0.97**s,
            "cosine": lambda s: 0.1 + 0.9 * (1 + math.cos(math.pi * s / (total - warmup))) / 2,
        }[name](s)
        assert math.isclose(schedule.factor(t, total), t / warmup if t <= warmup else want, rel_tol=1e-14), t


def test_the_cosine_is_good_to_the_last_bits():
    worst = max(abs(Schedule("cosine").factor(s + 1, 997) - (1 + math.cos(math.pi * s / 997)) / 2) for s in range(997))
    assert worst < 4e-16


@pytest.mark.parametrize("name", [name for name in CASES if name != "constant"])
def test_factors_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    lr = torch.optim.lr_scheduler
    made = {
        "step": lambda o: lr.StepLR(o, 7, 0.3),
        "exponential": lambda o: lr.ExponentialLR(o, 0.97),
        "cosine": lambda o: lr.CosineAnnealingLR(o, 60, 0.1),
    }
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs, ours = made[name](optimiser), Schedule(name, **CASES[name])
    for t in range(1, 61):
        assert math.isclose(optimiser.param_groups[0]["lr"], ours.factor(t, 60), rel_tol=1e-12)
        optimiser.step()
        theirs.step()


def test_powers_are_products():
    assert [power(1.5, n) for n in range(5)] == [1.0, 1.5, 2.25, 3.375, 5.0625]
    assert power(0.5, 5000) == 0.0


def test_a_step_takes_the_rate_times_the_factor(tmp_path):
    from softnum.train import Numerics, Parameter, load_design

    layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    weight = Parameter(np.zeros(1, np.float32), layer, "w")
    weight.gradient = np.ones(1, np.float32)
    optimiser = SGD([weight], learning_rate=0.1, momentum=0.0, weight_decay=0.0)
    optimiser.step(0.3)
    assert weight.value[0] == -np.float32(0.1 * 0.3) and optimiser.steps == 1
    optimiser.step(0.0)
    assert weight.value[0] == -np.float32(0.1 * 0.3) and optimiser.steps == 2


def test_what_a_record_says():
    assert Schedule().describe() is None
    assert Schedule(warmup=3).describe() == {"name": "constant", "warmup": 3}
    assert Schedule("step", decay_every=5).describe() == {
        "name": "step", "warmup": 0, "decay_every": 5, "decay_factor": 0.1,
    }  # fmt: skip
    assert set(CASES) == set(SCHEDULES)
    for name in SCHEDULES:
        assert f"        {name} " in Schedule.__doc__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "cos"}, r"no schedule is called 'cos'; did you mean '\w+'\? \(schedules: constant, step"),
        ({"warmup": -1}, "warmup must be a number of iterations, 0 or more, got -1"),
        ({"warmup": 1.5}, "warmup must be a number of iterations, 0 or more, got 1.5"),
        ({"name": "step"}, "the schedule 'step' needs decay_every"),
        ({"name": "step", "decay_every": 0}, "decay_every must be a positive integer, got 0"),
        ({"name": "step", "decay_every": 3, "decay_factor": 1.5}, r"decay_factor must lie in \(0, 1\], got 1.5"),
        ({"name": "exponential"}, "the schedule 'exponential' needs decay_factor"),
        ({"name": "cosine", "final_rate": 1.0}, r"final_rate must lie in \[0, 1\), got 1.0"),
        ({"name": "cosine", "decay_factor": 0.5}, "decay_factor is for the schedule 'step' and 'exponential', not for"),
        ({"final_rate": 0.5}, "final_rate is for the schedule 'cosine', not for 'constant'; leave it out"),
    ],
)
def test_unusable_schedules_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Schedule(**options)
