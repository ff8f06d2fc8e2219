"""What the tests of image operations share: designs, leaves, and gradients judged twice."""

import importlib.util

import numpy as np
import pytest

from softnum.train import Numerics, Parameter, Tensor, load_design
from softnum.train import tensor as engine
from softnum.train.check import check_gradients

BINARY64 = """
[roles]
default = "binary64"
[units]
forward = { accumulator = "binary64" }
backward_data = { accumulator = "binary64" }
backward_weight = { accumulator = "binary64" }
"""
#: every role in another format or mode, stochastic where it can be
MIXED = """
[roles]
default = "binary16"
input = "e2m5"
weights = { format = "e5m2", rounding = "stochastic", stochastic_bits = 8 }
activations = { format = "e4m3", overflow = "saturate" }
elementwise = { format = "e6m9", rounding = "stochastic", stochastic_bits = 12 }
statistics = { format = "e7m8", rounding = "stochastic", stochastic_bits = 10 }
errors = "e5m2"
weight_gradients = { format = "e6m7", rounding = "toward_zero" }
[units]
forward = { accumulator = "e6m9", chunk = 16 }
backward_data = { accumulator = "e6m9", rounding = "stochastic", stochastic_bits = 12 }
backward_weight = { accumulator = "binary32" }
[loss]
scale = 64
"""
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def numerics_of(tmp_path, text=BINARY64, names=("first", "conv"), **options):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return Numerics(load_design(file), list(names), seed=3, **options)


def layer_of(tmp_path, text=BINARY64):
    """A layer that is not the first."""
    return numerics_of(tmp_path, text).layer("conv")


def leaf(layer, value, name):
    return Parameter(layer.numerics.backend.array(value), layer, name)


def single(x: Tensor, weights) -> Tensor:
    """A single number of any tensor: the cross-entropy of its elements times weights, as a row of logits."""
    flat = engine.reshape(x, (1, -1))
    factors = Tensor(np.resize(weights, flat.value.shape), x.backend)
    product = Tensor(flat.value * factors.value, x.backend, op="weighted", parents=(flat,), saved=(factors.value,))
    return engine.softmax_cross_entropy(product, np.array([0]))


def judge(monkeypatch, build, leaves, tolerance=1e-7):
    """The gradients of a tensor's leaves agree with finite differences."""
    monkeypatch.setitem(engine.GRADIENTS, "weighted", lambda node, gradient: (gradient * node.saved[0],))
    weights = np.random.default_rng(5).standard_normal(997)
    assert check_gradients(lambda: single(build(), weights), leaves) < tolerance


def judge_faults(monkeypatch, build):
    """A gradient of any of an operation's parents that is off by a thousandth is caught."""
    node = build()
    rule = engine.GRADIENTS[node.op]
    for position, parent in enumerate(node.parents):

        def faulty(node, gradient, position=position):
            parts = list(rule(node, gradient))
            parts[position] = parts[position] * 1.001
            return tuple(parts)

        with monkeypatch.context() as patch, pytest.raises(ValueError, match="finite differences say"):
            patch.setitem(engine.GRADIENTS, node.op, faulty)
            judge(patch, build, [parent])
