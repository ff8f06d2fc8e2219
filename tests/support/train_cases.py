"""What the tests of operations and networks share: designs, leaves, and gradients judged twice."""

import importlib.util

import numpy as np
import pytest

import softnum as sn
from softnum import reference
from softnum.train import Numerics, Parameter, Tensor, load_design, run
from softnum.train.engine import tensor as engine
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.numerics import LayerNumerics
from softnum.train.inspect.gradients import check_gradients

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


def moved(net, tmp_path, text=BINARY64):
    """A network's numerics; its parameters are their initial values, moved away from where a gradient is zero."""
    numerics = numerics_of(tmp_path, text, net.layer_names)
    net.initialise(numerics)
    rng = np.random.default_rng(0)
    for parameter in net.parameters:
        kick = rng.uniform(-0.1, 0.1, parameter.value.shape)
        parameter.value = parameter.layer.round("master", parameter.value + kick)
    return numerics, rng


def loss_of(net, numerics, x, labels):
    """The loss of a network in its first iteration."""
    numerics.begin(1)
    return engine.softmax_cross_entropy(net.forward(Tensor(x, numerics.backend), training=True), labels)


def judge_along_directions(parts, loss=loss_of):
    """Each parameter's gradient along one direction: the operations themselves are judged element by element."""
    judge_directions(lambda: loss(*parts), parts[0].parameters)


def judge_directions(loss, parameters):
    """The gradients of any loss, called without arguments, along one direction of each parameter."""
    loss().backward()
    rng = np.random.default_rng(7)
    for parameter in parameters:
        original, direction = parameter.value, rng.standard_normal(parameter.value.shape)
        sides = []
        for step in (1e-6, -1e-6):
            parameter.value = original + step * direction
            sides.append(loss().value)
        parameter.value = original
        want = float((parameter.gradient * direction).sum())
        scale = np.abs(parameter.gradient * direction).sum()
        assert abs((sides[0] - sides[1]) / 2e-6 - want) <= 1e-6 * scale + 1e-9, parameter.name


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


def watch_products(monkeypatch):
    """(layer, pass, M, N, K) of each product in a unit, in their order, but for those of ones, whose M is 1."""
    seen, matmul = [], LayerNumerics.matmul

    def watched(self, key, a, b, c=None):
        if a.shape[-2] > 1:
            seen.extend([(self.name, key, a.shape[-2], b.shape[-1], b.shape[-2])] * int(np.prod(a.shape[:-2])))
        return matmul(self, key, a, b, c)

    monkeypatch.setattr(LayerNumerics, "matmul", watched)
    return seen


def watch_operations(monkeypatch):
    """Operations of `MIXED` and their formats in their order, three elements of each judged by the reference."""
    operate, seen, keys = NumpyBackend.operate, [], set()
    bits = {"e6m9": 12, "e7m8": 10}

    def watched(self, operation, operands, role, key):
        y = operate(self, operation, operands, role, key)
        assert key not in keys and role.stochastic_bits == bits[str(role.format)]
        keys.add(key)
        wide = [np.broadcast_to(x, y.shape) for x in operands]
        for index in (0, y.size // 2, y.size - 1):
            codes = [int(sn.encode(x.flat[index], role.format)) for x in wide]
            word = reference.random_word_elementwise(*key, index) & ((1 << role.stochastic_bits) - 1)
            code, _ = getattr(reference, operation)(
                *codes, role.format, rounding="stochastic", stochastic_bits=role.stochastic_bits, random_bits=word
            )
            assert reference.to_fraction(code, role.format) == float(y.flat[index]), (operation, codes, key, index)
        seen.append((operation, str(role.format)))
        return y

    monkeypatch.setattr(NumpyBackend, "operate", watched)
    return seen


def interrupted(design, settings, folder, *, at, statistics=None):
    """The record of a run that was interrupted and went on, which must be that of an unbroken run on two threads."""
    whole = run(design, settings, seed=1, out=folder / "whole", threads=2).read_bytes()

    def stop(iteration, *_):
        if iteration == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(design, settings, seed=1, out=folder, progress=stop)
    path = run(design, settings, seed=1, out=folder, statistics=statistics)
    assert path.read_bytes() == whole
    return path


def spread(rng, shape):
    """Numbers of very different sizes, so that blocks along another axis have other scales."""
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(np.float32)


def unfolded(x, w_shape, stride, padding, dilation, groups):
    """[group, (image, y, x), (channel, ky, kx)] of what each result is made of, place by place."""
    n, _channels, *size = x.shape
    _filters, own, *kernel = w_shape
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    result = [
        (m + 2 * p - d * (k - 1) - 1) // s + 1
        for m, p, d, k, s in zip(size, padding, dilation, kernel, stride, strict=True)
    ]
    out = np.zeros((groups, n, *result, own, *kernel), x.dtype)
    for g, i, y, z, c, ky, kx in np.ndindex(out.shape):
        place = (y * stride[0] + ky * dilation[0], z * stride[1] + kx * dilation[1])
        out[g, i, y, z, c, ky, kx] = padded[i, g * own + c][place]
    return out.reshape(groups, n * result[0] * result[1], -1), result


def met(e, w_shape, size, stride, padding, dilation, groups):
    """[group, (image, y, x), (filter, ky, kx)] of the errors that each element of the input went into."""
    n, filters, *result = e.shape
    own, kernel = filters // groups, w_shape[2:]
    out = np.zeros((groups, n, *size, own, *kernel), e.dtype)
    for g, i, y, z, f, ky, kx in np.ndindex(out.shape):
        top, left = y + padding[0] - ky * dilation[0], z + padding[1] - kx * dilation[1]
        (r, odd), (c, rest) = divmod(top, stride[0]), divmod(left, stride[1])
        if not odd and not rest and 0 <= r < result[0] and 0 <= c < result[1]:
            out[g, i, y, z, f, ky, kx] = e[i, g * own + f, r, c]
    return out.reshape(groups, n * size[0] * size[1], -1)
