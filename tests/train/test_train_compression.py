"""Compression of gradients: what is sent and remembered, by definition; in a run; and the bytes that a network has."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.collectives.compression import compression
from softnum.collectives.feedback import Feedback
from softnum.train import Settings, load_design, run, workload
from softnum.tta.workloads import Exchange, gradient_bytes
from tests.support.cases import cases

_SHOT = sn.collective("one_shot", 3, average="after")


def _gradients(number: int, size: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(3, size)).astype(np.float32)


def _mean(values) -> np.float32:
    return np.float32(math.fsum(values) / len(values)) if len(values) else np.float32(0)


def _by_definition(name: str, p: np.ndarray) -> np.ndarray:
    """What arrives of a binary32 matrix, by loops."""
    out = np.zeros_like(p)
    if name == "top_k":
        order = sorted(range(p.size), key=lambda i: (-abs(p.flat[i]), i))[: math.ceil(Fraction(1, 10) * p.size)]
        for i in order:
            out.flat[i] = p.flat[i]
    elif name == "sign":
        mean = _mean([abs(float(x)) for x in p.flat])
        for i, x in enumerate(p.flat):
            out.flat[i] = -mean if np.signbit(x) else mean
    else:
        for column in range(p.shape[1]):
            for below in (False, True):
                rows = [i for i in range(p.shape[0]) if (p[i, column] < 0) == below]
                out[rows, column] = _mean([float(p[i, column]) for i in rows])
    return out


@cases("text", ["top_k(share=0.1)", "sign", "one_bit", "sign(memory=None)"])
def test_what_is_sent_and_remembered_by_definition(text):
    c, shape = compression(text), (5, 4)
    feedback, memories = Feedback(_SHOT, c, [shape]), np.zeros((3, *shape), np.float32)
    for step in range(4):
        g = _gradients(step, 20)
        sent = []
        for worker in range(3):
            p = g[worker].reshape(shape) + memories[worker]  # one rounding of binary32
            sent.append(_by_definition(c.name, p))
            if c.memory is not None:
                memories[worker] = p - sent[-1]
        average = feedback.averages([0], g.copy())[0]
        sums = (sent[0] + sent[1]) + sent[2]
        assert np.array_equal(average, sums / np.float32(3)), step
    if c.memory is not None:
        assert np.array_equal(feedback.memories.reshape(memories.shape), memories) and memories.any()


def test_low_rank_finds_what_has_that_rank_and_remembers_the_rest():
    ring = sn.collective("ring", 3, average="after")
    low = Feedback(ring, compression("low_rank(rank=2)"), [(12, 9), (7,)])
    rng = np.random.default_rng(1)
    m = (rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9))).astype(np.float32)
    rows = np.concatenate([np.broadcast_to(m.reshape(-1), (3, 108)), _gradients(2, 7)], axis=1).astype(np.float32)
    found = low.averages([0, 1], rows.copy())
    assert np.allclose(found[0], m, atol=1e-5) and found[0].shape == (12, 9)
    assert np.array_equal(found[1], ring.all_reduce(list(rows[:, 108:]))[0])
    assert (
        np.array_equal(low.memories[0, :108], m.reshape(-1) - found[0].reshape(-1)) and not low.memories[:, 108:].any()
    )
    full = rng.normal(size=(3, 108)).astype(np.float32)
    one = Feedback(ring, compression("low_rank(rank=1)"), [(12, 9)])
    taken = sum(one.averages([0], full.copy())[0].astype(np.float64) for _ in range(300)) / 300
    assert np.abs(taken - full.mean(0).reshape(12, 9)).max() < 0.1  # the memory lets all of it through in the end
    assert np.linalg.matrix_rank(one.averages([0], full.copy())[0], tol=1e-4) == 1


def test_memories_are_rounded_and_what_is_not_finite_leaves_them_alone():
    coarse = Feedback(_SHOT, compression("top_k(share=0.1, memory='bfloat16')"), [(20,)])
    g = _gradients(5, 20)
    coarse.averages([0], g.copy())
    held = coarse.memories.copy()
    assert np.array_equal(held, sn.quantize(held, "bfloat16")) and held.any()
    g[1, 3] = np.inf
    found = coarse.averages([0], g.copy())[0]
    assert found[3] == np.inf and np.array_equal(coarse.memories, held)


@cases("text, collective", [
    ("top_k(share=0.05)", "one_shot"),
    ("low_rank(rank=2)", "ring(unit=MadUnit('binary32', operand='binary32', rounding='stochastic'))"),
])  # fmt: skip
def test_a_run_states_it_and_resumes_to_the_same_bytes(text, collective, tmp_path):
    tmp_path = tmp_path / text[:4]
    settings = Settings("mlp", samples=64, epochs=2, workers=2, collective=collective, compression=text)
    whole = run(load_design("a-float32"), settings, seed=1, out=tmp_path / "whole")

    def stop(iteration: int, *_):
        if iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(load_design("a-float32"), settings, seed=1, out=tmp_path / "cut", progress=stop)
    assert run(load_design("a-float32"), settings, seed=1, out=tmp_path / "cut").read_bytes() == whole.read_bytes()
    told = json.loads(whole.read_text().splitlines()[0])["config"]["parallel"]
    work = workload("mlp", load_design("a-float32"), 16)
    assert told["compression"] == text and told["message_bytes"] == sum(gradient_bytes(work, text).values())


def test_what_a_network_carries():
    work = workload("mlp", load_design("a-float32"), 32)
    assert gradient_bytes(work, "sign") == {"fc2": (1280 + 32 + 7) // 8 + (10 + 32 + 7) // 8, "fc1": 1028 + 20}
    assert gradient_bytes(work, "one_bit")["fc1"] == (64 * 128 + 2 * 128 * 32) // 8 + (128 + 2 * 32) // 8
    assert gradient_bytes(work, "low_rank(rank=2)")["fc1"] == 2 * (64 + 128) * 4 + 128 * 4
    wait = Fraction(1, 1000)
    assert Exchange(wait, compress="sign").cost(4, 100, 0) == (300, 3 * wait)  # each message to three others
    assert Exchange(wait, compress="low_rank(rank=1)").cost(4, 100, 0) == (150, 12 * wait)
    assert Exchange(wait, "server", compress="sign").cost(4, 100, 900) == (4000, 2 * wait)


@cases(
    "given, says",
    [
        ({"compression": "sign"}, "state workers and a collective"),
        ({"workers": 2, "collective": "ring", "compression": "sign"}, "which is the collective one_shot; got ring"),
        ({"workers": 2, "collective": "one_shot", "compression": "signs"}, "did you mean 'sign'"),
        ({"workers": 2, "collective": "one_shot", "compression": "top_k"}, "needs share="),
        ({"workers": 2, "collective": "one_shot", "compression": "top_k(share=2)"}, "up to 1, got 2"),
        ({"workers": 2, "collective": "one_shot(unit='bfloat16')", "compression": "sign"}, "would round again"),
        ({"network": "mine.py:make", "workers": 2, "collective": "one_shot", "compression": "sign"}, "PyTorch"),
    ],
)
def test_what_does_not_go_together_is_an_error(given, says):
    with pytest.raises(ValueError, match=says):
        Settings(**{"network": "mlp"} | given)


@cases(
    "given, says",
    [
        ({"compress": "low_rank(rank=2)", "method": "server"}, "take the method ring"),
        ({"compress": "low_rank(rank=0)"}, "from 1 to"),
        ({"compress": "top_k(share=0)"}, "above 0"),
    ],
)
def test_exchanges_that_there_are_not(given, says):
    with pytest.raises(ValueError, match=says):
        Exchange(**given)
