"""The LSTM: gradients, every rounding against the reference, an independent one in NumPy, resumption, errors."""

from collections import Counter

import numpy as np
import pytest

import softnum as sn
from softnum import reference
from softnum.train import Numerics, Settings, Tensor, load_design, run
from softnum.train.datasets.sets import batches, load_data
from softnum.train.engine import tensor as engine
from softnum.train.engine.arithmetic import FUNCTIONS
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.functions import activation
from softnum.train.engine.initial import he_uniform, uniform
from softnum.train.inspect.gradients import check_gradients
from softnum.train.runs.loop import read_rows
from tests.support.lstm_cases import design, loss_of, small
from tests.support.train_cases import BINARY64, interrupted

#: every role of the layers in another format or mode, stochastic where it can be
MIXED = """
[roles]
default = "binary16"
input = "e2m5"
weights = { format = "e5m2", rounding = "stochastic", stochastic_bits = 8 }
activations = { format = "e4m3", overflow = "saturate" }
elementwise = { format = "e6m9", rounding = "stochastic", stochastic_bits = 12 }
errors = "e5m2"
weight_gradients = { format = "e6m7", rounding = "toward_zero" }
[units]
forward = { accumulator = "e6m9", chunk = 16 }
backward_data = { accumulator = "e6m9" }
backward_weight = { accumulator = "binary32" }
[layers."lstm.hidden".roles]
weights = "e3m4"
[loss]
scale = 64
"""
SMALL = Settings(network="lstm", network_options={"sizes": (8, 4, 10)}, epochs=2, batch=338, evaluate_every=4)


def test_gradients_agree_with_finite_differences(tmp_path):
    case = small(tmp_path)
    for parameter in case[0].parameters:
        parameter.value = parameter.value * 3.0  # away from where tanh is straight
    assert check_gradients(loss_of(*case), case[0].parameters) < 1e-7


@pytest.mark.parametrize("op", ["function", "multiply", "part", "linear"])
def test_a_gradient_off_by_a_thousandth_is_caught(op, tmp_path, monkeypatch):
    rule, case = engine.GRADIENTS[op], small(tmp_path)
    wrong = lambda node, gradient: tuple(None if g is None else g * 1.001 for g in rule(node, gradient))  # noqa: E731
    monkeypatch.setitem(engine.GRADIENTS, op, wrong)
    with pytest.raises(ValueError, match=r"gradient of (lstm\.(input|hidden)|fc)\.(weight|bias)\[.*finite differences"):
        check_gradients(loss_of(*case), case[0].parameters)


# -- the same network written down once more ---------------------------------------------------------------------------
def plain_losses(seed: int, iterations: int, hidden: int, batch: int, rate: float) -> list[float]:
    """Training of a small LSTM in binary64 with NumPy alone, gradients by hand, all gates of a step at once."""
    data = load_data("digits")
    limit = 1 / np.sqrt(hidden)
    w, u = uniform(seed, 0, 8, 4 * hidden, limit), uniform(seed, 1, hidden, 4 * hidden, limit)
    v, b, d = he_uniform(seed, 2, hidden, 10), np.repeat([0.0, 1.0, 0.0, 0.0], hidden), np.zeros(10)
    parameters = [w, b, u, v, d]
    velocities, losses = [np.zeros_like(p) for p in parameters], []
    for rows in batches(1352, batch, seed, 1)[:iterations]:
        x, y = data.train_x[rows].reshape(batch, 8, 8), np.eye(10)[data.train_y[rows]]
        h, c, kept = np.zeros((batch, hidden)), np.zeros((batch, hidden)), []
        for step in range(8):
            z = x[:, step] @ w + b + h @ u
            gates = 1 / (1 + np.exp(-z))
            gates[:, 2 * hidden : 3 * hidden] = np.tanh(z[:, 2 * hidden : 3 * hidden])
            i, f, g, o = np.split(gates, 4, axis=1)
            kept.append((h, c, i, f, g, o))
            c = f * c + i * g
            h = o * np.tanh(c)
        logits = h @ v + d
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        losses.append(-np.mean(np.log((p * y).sum(axis=1))))
        error = (p - y) / batch
        gw, gb, gu, gv, gd = (np.zeros_like(q) for q in parameters)
        gv, gd = h.T @ error, error.sum(axis=0)
        dh, dc = error @ v.T, 0
        for step in reversed(range(8)):
            before, old, i, f, g, o = kept[step]
            t = np.tanh(f * old + i * g)
            dc = dc + dh * o * (1 - t**2)
            dz = [dc * g * i * (1 - i), dc * old * f * (1 - f), dc * i * (1 - g**2), dh * t * o * (1 - o)]
            dz = np.concatenate(dz, axis=1)
            gw, gb, gu = gw + x[:, step].T @ dz, gb + dz.sum(axis=0), gu + before.T @ dz
            dh, dc = dz @ u.T, dc * f
        for n, gradient in enumerate((gw, gb, gu, gv, gd)):
            velocities[n] = 0.9 * velocities[n] + gradient + 1e-4 * parameters[n]
            parameters[n] -= rate * velocities[n]
    return losses


def test_it_is_an_lstm(tmp_path):
    options = {"network_options": {"sizes": (8, 12, 10)}, "evaluate_every": 100}
    settings = Settings(network="lstm", epochs=1, batch=64, learning_rate=0.5, **options)
    rows = read_rows(run(design(tmp_path, BINARY64), settings, seed=4, out=tmp_path))
    losses = [row["loss"] for row in rows[1:]]
    want = plain_losses(4, len(losses), 12, 64, float(np.float32(0.5)))
    np.testing.assert_allclose(losses, want, rtol=2e-6)  # the run's constants 0.9 and 1e-4 are binary32's
    assert losses[-1] < losses[0] - 0.2


# -- every rounding ----------------------------------------------------------------------------------------------------
def test_every_operation_equals_the_reference(tmp_path, monkeypatch):
    operate, seen, rng = NumpyBackend.operate, {}, np.random.default_rng(1)

    def watched(self, operation, operands, role, key):
        y = operate(self, operation, operands, role, key)
        assert str(role.format) == "e6m9" and role.rounding == "stochastic" and key not in keys
        keys.add(key)
        for index in rng.choice(y.size, min(4, y.size), replace=False).tolist():
            codes = [int(sn.encode(x.flat[index], role.format)) for x in operands]
            word = reference.random_word_elementwise(*key, index) & 0xFFF
            code, _ = getattr(reference, operation)(
                *codes, role.format, rounding="stochastic", stochastic_bits=12, random_bits=word
            )
            assert reference.to_fraction(code, role.format) == float(y.flat[index]), (operation, codes, key, index)
        seen[operation] = seen.get(operation, 0) + 1
        return y

    keys = set()
    monkeypatch.setattr(NumpyBackend, "operate", watched)
    net, numerics, x, labels = small(tmp_path, MIXED)
    numerics.begin(1)
    loss_of(net, numerics, x, labels)().backward(numerics.loss_scale)
    # forward 3 steps: 3 sigmoids each; 2 tanh each; 3 + 3 + 2 products; 2 sums. Backward: a product for each function,
    # two for each product, one in each slope; c is used twice in all steps but the last. The first step's f is unused.
    assert seen == {"sigmoid": 9, "tanh": 6, "multiply": 8 + 14 + 14 + 2 * 8, "add": 2 + 2, "subtract": 14}


def watch_products(monkeypatch):
    matmul, seen = sn.matmul, []

    def watched(a, b, unit, c=None, **options):
        for x, fmt in ((a, unit.operand[0]), (b, unit.operand[1]), (c, unit.outer)):
            assert x is None or np.array_equal(sn.quantize(x, fmt), x)
        seen.append((a, b, str(unit.operand[0]), str(unit.operand[1])))
        return matmul(a, b, unit, c, **options)

    monkeypatch.setitem(FUNCTIONS, "matmul", watched)
    return seen


def test_products_are_those_that_gemms_lists_in_their_formats(tmp_path, monkeypatch):
    net, numerics, x, labels = small(tmp_path, MIXED)
    seen = watch_products(monkeypatch)
    loss_of(net, numerics, x, labels)().backward(numerics.loss_scale)
    rows = net.gemms(5)
    listed = Counter({(row["M"], row["N"], row["K"]): 0 for row in rows})
    for row in rows:
        listed[row["M"], row["N"], row["K"]] += row.get("count", 1)
    made = [(*a.shape, b.shape[1]) for a, b, *_ in seen]
    weights_and_data = Counter((m, n, k) for m, k, n in made if m != 1)  # those of one row are the biases' gradients
    assert list(weights_and_data.items()) == list(listed.items())
    assert [call[2:] for call in seen[:4]] == [("e2m5", "e5m2"), ("e4m3", "e3m4"), ("e4m3", "e3m4"), ("e4m3", "e5m2")]


def test_stochastic_weights_are_rounded_once_an_iteration(tmp_path, monkeypatch):
    text = MIXED.replace('weights = "e3m4"', 'weights = { format = "e3m4", rounding = "stochastic" }')
    net, numerics, x, labels = small(tmp_path, text)
    seen, u = watch_products(monkeypatch), net.parameters[2].value
    used = []
    for iteration in (1, 2):
        numerics.begin(iteration)
        seen.clear()
        loss_of(net, numerics, x, labels)().backward(numerics.loss_scale)
        forward = [b for a, b, *_ in seen if b.shape == u.shape and a.shape == (5, 4)]
        backward = [b.T for a, b, *_ in seen if b.T.shape == u.shape and a.shape == (5, 16)]
        assert len(forward) == len(backward) == 2
        assert all(np.array_equal(each, forward[0]) for each in (*forward, *backward))
        assert np.all(np.abs(forward[0] - u) <= np.maximum(2.0**-4 * np.abs(u), 2.0**-6))
        used.append(forward[0])
    assert not np.array_equal(*used)


def test_gradients_of_steps_are_added_in_the_role_weight_gradients(tmp_path, monkeypatch):
    net, numerics, x, labels = small(tmp_path, MIXED)
    parts, layer = [], net.parameters[2].layer
    made = type(layer).weight_gradient

    def watched(self, product):
        result = made(self, product)
        if self is layer:
            parts.append(result)
        return result

    monkeypatch.setattr(type(layer), "weight_gradient", watched)
    loss_of(net, numerics, x, labels)().backward(numerics.loss_scale)
    assert len(parts) == 2
    total = sn.add(*(sn.encode(part, "e6m7") for part in parts), "e6m7", rounding="toward_zero")
    assert np.array_equal(net.parameters[2].gradient, sn.decode(total, "e6m7"))
    assert not np.array_equal(parts[0] + parts[1], net.parameters[2].gradient)


# -- runs --------------------------------------------------------------------------------------------------------------
def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(tmp_path):
    mine = design(tmp_path, MIXED)
    path = interrupted(mine, SMALL, tmp_path, at=6)
    config = read_rows(path)[0]["config"]
    assert config["network"] == {"name": "lstm", "sizes": [8, 4, 10], "steps": 8}
    assert config["design"]["layers"]["fc"]["roles"]["elementwise"]["stochastic_bits"] == 12


@pytest.mark.parametrize("name", ["b-binary16", "g-q44-stochastic", "h-posit8"])
def test_it_runs_under_designs_that_do_not_know_it(name, tmp_path):
    settings = Settings(network="lstm", network_options={"sizes": (8, 3, 10)}, epochs=1, batch=338, evaluate_every=4)
    rows = read_rows(run(load_design(name), settings, seed=1, out=tmp_path))
    assert len(rows) == 5 and all(np.isfinite(row["loss"]) for row in rows[1:])
    shapes = [(row["M"], row["N"], row["K"]) for row in rows[0]["config"]["gemms"]]
    assert shapes[:2] == [(8 * 338, 12, 8), (338, 12, 3)]


def test_steps_are_the_rows_of_a_picture():
    sample = np.arange(12.0).reshape(2, 6)
    assert NumpyBackend(np.float64).steps(sample, 3).tolist() == [[0, 1], [6, 7], [2, 3], [8, 9], [4, 5], [10, 11]]


def test_the_forget_gate_starts_open(tmp_path):
    net = small(tmp_path)[0]
    assert net.parameters[1].value.tolist() == 4 * [0.0] + 4 * [1.0] + 8 * [0.0]
    assert np.abs(net.parameters[2].value).max() <= 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (8, 10)}, r"sizes must be three positive integers, got \(8, 10\)"),
        ({"sizes": (8, 0, 10)}, "sizes must be three positive integers"),
        ({"steps": 0}, "steps must be a positive integer, got 0"),
        ({"steps": True}, "steps must be a positive integer, got True"),
        (
            {"steps": 7},
            r"the network takes 56 inputs, the data have 64 features a sample \(inputs are 8 in each of 7 steps; "
            r"with steps 8 they fit\)$",
        ),
        ({"sizes": (7, 4, 10)}, r"takes 56 inputs, the data have 64 .*\(inputs are 7 in each of 8 steps\)$"),
        ({"sizes": (8, 4, 9)}, "the network has 9 outputs, the data have 10 classes"),
    ],
)
def test_unusable_options_are_named(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(load_design("a-float32"), Settings(network="lstm", network_options=options), seed=1, out=tmp_path)


def test_a_function_without_a_gradient_is_named():
    layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    with pytest.raises(
        ValueError,
        match=r"no exact function 'swish' with a gradient \(it has sigmoid, silu, tanh, .*gelu, .* and relu\)",
    ):
        activation("swish", Tensor(np.zeros((1, 1), np.float32), layer.numerics.backend), layer)
