"""Data-parallel training: workers' gradients summed by a collective."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, load_design, make_network, run
from softnum.train.engine.numerics import Numerics
from softnum.train.engine.tensor import Tensor, softmax_cross_entropy
from softnum.train.runs.loop import Run
from softnum.train.update import workers as module
from softnum.train.update.workers import Gradients, buckets_of, collective_of
from tests.support.cases import cases

_RING = "ring(unit='bfloat16')"


def _one(settings: Settings, design: str = "a-float32") -> tuple[Run, dict]:
    """A run after its first iteration, and that one's row."""
    work = Run(settings, load_design(design), 1)
    iteration, part = next(iter(work.plan(1)))
    return work, work.train(iteration, part)


def test_averages_are_the_collective_of_what_workers_find_alone():
    settings = Settings("mlp", batch=32, samples=320, workers=4, collective=_RING, learning_rate=1.0, momentum=0.0)
    work, row = _one(settings)
    taken = next(iter(work.plan(1)))[1]

    def alone(samples):
        network = make_network("mlp", data="digits")
        numerics = Numerics(load_design("a-float32"), network.layer_names, seed=1)
        network.initialise(numerics)
        numerics.begin(1)
        outputs = network.forward(Tensor(work.data.train_x[samples], numerics.backend), training=True)
        loss = softmax_cross_entropy(outputs, work.data.train_y[samples].reshape(-1))
        loss.backward(1.0)
        return loss.value, [parameter.gradient for parameter in network.parameters]

    found = [alone(part) for part in np.split(taken, 4)]
    assert row["loss"] == math.fsum(value for value, _ in found) / 4
    rows = [sn.quantize(np.concatenate([g.reshape(-1) for g in reversed(gs)]), "bfloat16") for _, gs in found]
    averages = sn.collective("ring", 4, unit="bfloat16", average="reciprocal_before").all_reduce(rows)[0]
    at = 0
    for parameter in reversed(work.network.parameters):
        size = parameter.value.size
        assert np.array_equal(parameter.gradient.reshape(-1), averages[at : at + size]), parameter.name
        at += size
    exact = np.mean(rows, axis=0, dtype=np.float64)
    assert not np.array_equal(averages, exact) and np.allclose(averages, exact, atol=0.01)


def test_one_worker_is_a_run_without_and_several_say_what_they_do(tmp_path):
    plain = Settings("mlp", batch=32, samples=96, epochs=1)
    one, none = (run(load_design("a-float32"), s, seed=1, out=tmp_path / name) for s, name in (
        (Settings("mlp", batch=32, samples=96, epochs=1, workers=1), "one"), (plain, "none")
    ))  # fmt: skip
    assert one.read_bytes() == none.read_bytes() and b"parallel" not in one.read_bytes()
    several = Settings("mlp", batch=32, samples=96, epochs=1, workers=4, collective=_RING)
    header = json.loads(run(load_design("a-float32"), several, seed=1, out=tmp_path).read_text().splitlines()[0])
    assert header["config"]["parallel"] == {
        "workers": 4,
        "collective": str(collective_of(_RING, 4)),
        "buckets": {"all": [["fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight"]]},
    }


def test_a_run_with_random_bits_resumes_to_the_same_bytes(tmp_path):
    """Also with delayed scaling's states, and a collective that rounds stochastically."""
    unit = "MadUnit('bfloat16', operand='bfloat16', rounding='stochastic')"
    settings = Settings("mlp", batch=32, samples=64, epochs=2, workers=2, collective=f"ring(unit={unit})")
    for design in ("g-q44-stochastic", "te-delayed-scaling"):
        whole = run(load_design(design), settings, seed=1, out=tmp_path / "whole")

        def stop(iteration: int, *_):
            if iteration == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(load_design(design), settings, seed=1, out=tmp_path / "cut", progress=stop)
        assert run(load_design(design), settings, seed=1, out=tmp_path / "cut").read_bytes() == whole.read_bytes()


def test_running_statistics_are_those_of_worker_0():
    small = {"network_options": {"depth": 8, "sizes": (2, 2, 4), "image": (1, 8, 8)}, "data": "digits", "samples": 8}
    work, _ = _one(Settings("resnet", batch=4, held_out=4, workers=2, collective="ring", **small))
    alone = Run(Settings("resnet", batch=4, held_out=4, **small), load_design("a-float32"), 1)
    alone.train(1, next(iter(work.plan(1)))[1][:2])
    assert work.network.buffers
    for mine, other in zip(work.network.buffers, alone.network.buffers, strict=True):
        assert np.array_equal(mine.value, other.value), mine.name


def test_gradients_of_many_workers_lie_in_a_file(monkeypatch):
    monkeypatch.setattr(module, "_IN_MEMORY", 100)
    c = collective_of("in_network", 8)
    gradients = Gradients(c, [(2, 3), (4,)], [[1], [0]])
    assert isinstance(gradients._rows, np.memmap)
    for worker in range(8):
        gradients.put(worker, 0, np.full((2, 3), worker, np.float32))
        gradients.put(worker, 1, None)
    first, second = gradients.reduced([None, None])
    assert first.tolist() == [[3.5] * 3] * 2 and second.tolist() == [0.0] * 4


def test_buckets():
    assert buckets_of([1 << 17, 1 << 18, 1 << 18, 3], 4) == [
        [3, 2],
        [1, 0],
    ]  # the first ends with the one that fills it
    assert buckets_of([5], 4) == [[0]]
    assert buckets_of([5, 5, 5], 4, 20) == [[2], [1], [0]] and buckets_of([5, 5, 5], 4, 21) == [[2, 1], [0]]


def test_each_bucket_is_an_all_reduce():
    given = {"batch": 32, "samples": 32, "workers": 4, "collective": _RING, "learning_rate": 1.0, "momentum": 0.0}
    whole, parts = (_one(Settings("mlp", **given, bucket_bytes=size))[0] for size in (None, 1))
    names = [[parameter.name] for parameter in reversed(parts.network.parameters)]
    assert parts.header()["config"]["parallel"]["buckets"] == {"all": names}
    pairs = list(zip(whole.network.parameters, parts.network.parameters, strict=True))
    assert any(not np.array_equal(x.gradient, y.gradient) for x, y in pairs)  # a ring starts elsewhere in each bucket
    assert all(np.allclose(x.gradient, y.gradient, atol=0.01) for x, y in pairs)
    with pytest.raises(ValueError, match="bucket_bytes must be a positive integer, .* got 0"):
        Settings("mlp", **given, bucket_bytes=0)


@cases(
    "given, says",
    [
        ({"workers": 4}, "collective = None"),
        ({"workers": 1, "collective": "ring"}, "workers = 1"),
        ({"workers": 0}, "positive integer, got 0"),
        ({"workers": 5, "collective": "ring"}, "32 samples has no equal parts for 5 workers"),
        ({"workers": 4, "collective": "rings"}, "did you mean 'ring'"),
        ({"workers": 4, "collective": "ring(ranks=8)"}, "ranks=8"),
        ({"workers": 4, "collective": "ring(own='kept')"}, "drift apart"),
        (
            {"workers": 4, "collective": "ring(unit=3)"},
            r"expected a unit, .* got 3 \(collective = 'ring\(unit=3\)'\)",
        ),
        ({"workers": 4, "collective": 5}, "is a text, got 5"),
    ],
)
def test_what_does_not_go_together_is_an_error(given, says):
    with pytest.raises(ValueError, match=says):
        Settings("mlp", **given)


@cases("network, batch", [("wgan", 32), ("actor-critic", 128)])
def test_iterations_that_have_no_parts_are_refused(network, batch):
    with pytest.raises(ValueError, match="2 workers cannot share an iteration"):
        Run(Settings(network, batch=batch, workers=2, collective="ring"), load_design("a-float32"), 1)


def test_text_is_shared(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"the quick brown fox jumps over the lazy dog. " * 40)
    small = {"depth": 1, "sizes": (8, 8), "heads": 1, "steps": 8, "dropout": 0.5}
    given = {"data": "text", "data_folder": tmp_path / "text.txt", "batch": 4, "network_options": small}
    work, row = _one(Settings("transformer-lm", workers=2, collective=_RING, **given))
    alone, other = _one(Settings("transformer-lm", **given))
    assert 0 < abs(row["loss"] - other["loss"]) < 1  # the second worker's dropout takes bits of its own
    assert work.workers.count == 2 and alone.workers is None
