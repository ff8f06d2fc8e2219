"""Sparse roles: which elements are kept, against sorting; training, against plain NumPy; gradients, checkpoints."""

import dataclasses
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.train import (
    Settings,
    Tensor,
    design_gemms,
    explain,
    load_design,
    make_network,
    run,
)
from softnum.train.designs.sparsity import GradientSparsity, Gradual, Sparsity
from softnum.train.engine import tensor as engine
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.functions import operate
from softnum.train.engine.numerics import LayerNumerics
from softnum.train.layers.attention import matmul
from softnum.train.layers.convolution import conv2d
from softnum.train.layers.sequences import embedding
from softnum.train.runs.loop import Run, read_rows
from tests.support.train_cases import BINARY64, judge, judge_along_directions, layer_of, leaf, moved, numerics_of

BACKEND = NumpyBackend(np.float64)
SETTINGS = {"momentum": 0.0, "weight_decay": 0.0, "learning_rate": 0.5}
SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=2, batch=128, **SETTINGS)


def sparse(role="weights", rule='pattern = "2:4"', fmt="binary64", base=BINARY64):
    """A design in binary64 with a sparse role."""
    return base.replace("[units]", f'{role} = {{ format = "{fmt}", sparsity = {{ {rule} }} }}\n[units]')


def design_of(tmp_path, text):
    file = tmp_path / "sparse.toml"
    file.write_text(text)
    return load_design(file)


# -- which elements are kept -------------------------------------------------------------------------------------------


def size_of(value):
    return np.inf if np.isnan(value) else abs(value)


def first_largest(values, count):
    """By sorting: the largest, the first among equals."""
    order = sorted(range(len(values)), key=lambda i: (-size_of(values[i]), i))
    return [i in order[:count] for i in range(len(values))]


def kept_of_groups(x, count, size, axis):
    """The same of each group, one after another."""
    kept = np.zeros(x.shape, bool)
    lines, marks = np.moveaxis(x, axis, -1), np.moveaxis(kept, axis, -1)
    for line in np.ndindex(lines.shape[:-1]):
        for first in range(0, lines.shape[-1], size):
            group = lines[line][first : first + size]
            marks[line][first : first + size] = first_largest(group, count)
    return kept


def kept_of_tensor(x, count):
    return np.array(first_largest(x.ravel(), count)).reshape(x.shape)


@pytest.mark.parametrize("values", [[-2.0, -1.0, -0.0, 0.0, 1.0, 2.0], [np.nan, np.inf, -np.inf, 3.0, -1e-45], None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_are_kept_and_the_first_among_equals(values, dtype):
    rng = np.random.default_rng(1)
    for shape in [(1,), (7,), (4, 6), (5, 3), (2, 3, 5), (2, 1, 7, 3)]:
        x = (rng.standard_normal(shape) if values is None else rng.choice(values, shape)).astype(dtype)
        for count in {1, x.size // 2, x.size} - {0}:
            assert np.array_equal(BACKEND.kept_of_tensor(x, count), kept_of_tensor(x, count))
        for count, size in ((1, 2), (2, 4), (1, 4), (3, 5), (4, 8)):
            for axis in range(-1, len(shape)):
                got = BACKEND.kept_of_groups(x, count, size, axis)
                assert np.array_equal(got, kept_of_groups(x, count, size, axis)), (x, count, size, axis)


def test_a_short_last_group_keeps_as_many_or_all():
    x = np.array([[1.0, 4, 3, 2, 5, 7, 6, 0, 9, 8, 7], [0.0] * 11])
    assert BACKEND.kept_of_groups(x, 2, 4, 1).astype(int).tolist() == [
        [0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0],
        [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0],
    ]
    assert BACKEND.kept_of_groups(x[:, :9], 2, 4, 1)[:, 8].tolist() == [True, True]


def test_counts_are_those_of_the_fraction_that_was_written():
    for text in ("0.29", "0.7", "0.8", "0.999", "1e-05", "0.1"):
        for size in (1, 2, 10, 100, 1000, 8192):
            share = Fraction(text) * size
            assert Sparsity(magnitude=float(text)).count(size) == size - share // 1
            assert Sparsity(top_k=float(text)).count(size) == -(-share // 1) >= 1


def test_pruning_is_gradual_along_the_cubic():
    ramp = Gradual(start=10, stop=110, every=20, initial=0.25)
    for iteration in range(150):
        steps = min(5, max(0, (iteration - 10) // 20))
        want = Fraction(3, 4) - Fraction(1, 2) * (1 - Fraction(steps, 5)) ** 3
        assert ramp.share(Fraction(3, 4), iteration) == want, iteration
    odd = Gradual(start=1, stop=8, every=3)  # steps in 4 and 7, the end in 8
    shares = [odd.share(Fraction(1, 2), i) for i in range(1, 9)]
    grown = [b > a for a, b in itertools.pairwise(shares)]
    assert grown == [False, False, True, False, False, True, True]
    assert shares[-1] == Fraction(1, 2)


# -- training against plain NumPy --------------------------------------------------------------------------------------


def reference_losses(work, parts, rules):
    """The losses of an MLP of two layers under SGD, with masks by sorting; rules: those of the design, plainly."""
    (w1, b1, w2, b2) = (parameter.value.copy() for parameter in work.network.parameters)
    data, memory, losses = work.data, [np.zeros(w.shape) for w in (w1, w2)], []
    rate = float(np.float32(SETTINGS["learning_rate"]))

    def mask(role, x, axis, iteration):
        rule = rules.get(role)
        if rule is None:
            return np.ones(x.shape, bool)
        if "pattern" in rule:
            return kept_of_groups(x, *rule["pattern"], axis)
        share = rule["kept"](iteration) if callable(rule["kept"]) else rule["kept"]
        return kept_of_tensor(x, int(np.ceil(round(share * x.size, 6))))

    for iteration, part in parts:
        x, labels = np.asarray(data.train_x[part], np.float64), data.train_y[part]
        m1, m2 = mask("weights", w1, 0, iteration), mask("weights", w2, 0, iteration)
        mx = mask("input", x, 1, iteration)
        z = (x * mx) @ (w1 * m1) + b1
        h = np.maximum(z, 0)
        mh = mask("activations", h, 1, iteration)
        out = (h * mh) @ (w2 * m2) + b2
        power = np.exp(out - out.max(1, keepdims=True))
        p = power / power.sum(1, keepdims=True)
        losses.append(-np.log(p[np.arange(len(labels)), labels]).mean())
        e2 = (p - np.eye(10)[labels]) / len(labels)
        e2 = e2 * mask("errors", e2, 1, iteration)
        e1 = (e2 @ (w2 * m2).T) * mh * (z > 0)
        e1 = e1 * mask("errors", e1, 1, iteration)
        gradients = [(x * mx).T @ e1, (h * mh).T @ e2]
        for index, (weight, kept) in enumerate(((w1, m1), (w2, m2))):
            rule = rules.get("weights", {})
            if rule.get("masked"):
                gradients[index] = gradients[index] * kept
            gradients[index] = gradients[index] + float(np.float32(rule.get("decay", 0))) * weight * ~kept
            if "weight_gradients" in rules:
                total = gradients[index] + (memory[index] if rules["weight_gradients"].get("feedback") else 0)
                chosen = mask("weight_gradients", total, None, iteration)
                gradients[index], memory[index] = total * chosen, total * ~chosen
        b1, b2 = b1 - rate * e1.sum(0), b2 - rate * e2.sum(0)
        w1, w2 = w1 - rate * gradients[0], w2 - rate * gradients[1]
    return losses


def cubic(iteration):
    """Kept under ``magnitude = 0.75, from = 2, to = 7, every = 2``."""
    done = 1 if iteration >= 7 else max(0, (iteration - 2) // 2 * 2) / 5
    return 1 - 0.75 * (1 - (1 - done) ** 3)


CASES = {
    "weights 2:4": ({"weights": 'pattern = "2:4"'}, {"weights": {"pattern": (2, 4)}}),
    "weights 3:5": ({"weights": 'pattern = "3:5"'}, {"weights": {"pattern": (3, 5)}}),  # 64 and 16 are no multiples
    "masked, with decay": (
        {"weights": 'pattern = "1:4", backward = "masked", decay = 0.1'},
        {"weights": {"pattern": (1, 4), "masked": True, "decay": 0.1}},
    ),
    "gradual": (
        {"weights": "magnitude = 0.75, from = 2, to = 7, every = 2"}, {"weights": {"kept": cubic}}
    ),
    "activations": (
        {"input": 'pattern = "2:4"', "activations": 'pattern = "1:4"'},
        {"input": {"pattern": (2, 4)}, "activations": {"pattern": (1, 4)}},
    ),
    "activations by share": ({"activations": "top_k = 0.1"}, {"activations": {"kept": 0.1}}),
    "errors": ({"errors": 'pattern = "2:4"'}, {"errors": {"pattern": (2, 4)}}),
    "errors by share": ({"errors": "magnitude = 0.5"}, {"errors": {"kept": 0.5}}),
    "largest gradients": ({"weight_gradients": "top_k = 0.05"}, {"weight_gradients": {"kept": 0.05}}),
    "with memory": (
        {"weight_gradients": 'top_k = 0.05, feedback = "binary64"'},
        {"weight_gradients": {"kept": 0.05, "feedback": True}},
    ),
    "two roles": (
        {"weights": 'pattern = "2:4"', "weight_gradients": 'magnitude = 0.9, feedback = "binary64"'},
        {"weights": {"pattern": (2, 4)}, "weight_gradients": {"kept": 0.1, "feedback": True}},
    ),
}  # fmt: skip


def losses_of(tmp_path, name, iterations=9):
    """Losses of a run, and what plain NumPy makes of it."""
    text = BINARY64
    for role, rule in CASES[name][0].items():
        text = sparse(role, rule, base=text)
    work = Run(SHORT, design_of(tmp_path, text), 1)
    parts = list(work.plan(1))[:iterations]
    want = reference_losses(work, parts, CASES[name][1])
    return [work.train(*part)["loss"] for part in parts], want


@pytest.mark.parametrize("name", CASES)
def test_training_is_that_of_plain_numpy(name, tmp_path):
    got, want = losses_of(tmp_path, name)
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "method", "fault"),
    [
        ("weights 2:4", "largest", lambda own: lambda self, role, x, groups=None: own(self, role, -x[::-1], groups)),
        ("activations", "select", lambda own: lambda self, role, x, kept: x),
        ("with memory", "remember", lambda own: lambda self, gradient, residual: gradient),
        ("masked, with decay", "pruned_weights_gradient", lambda own: lambda self, parameter: parameter.gradient),
    ],
)
def test_plain_numpy_finds_faults(name, method, fault, tmp_path, monkeypatch):
    monkeypatch.setattr(LayerNumerics, method, fault(getattr(LayerNumerics, method)))
    got, want = losses_of(tmp_path, name)
    assert not np.allclose(got, want, rtol=1e-6)


# -- where groups lie, and gradients -----------------------------------------------------------------------------------


def test_groups_lie_along_the_reduction_dimension(tmp_path):
    text = sparse("activations", base=sparse("errors", base=sparse()))
    layer, rng = layer_of(tmp_path / ".", text), np.random.default_rng(2)
    x = leaf(layer, rng.standard_normal((3, 6, 4, 4)), "x")
    weight = leaf(layer, rng.standard_normal((8, 3, 3, 3)), "weight")
    y = conv2d(x, weight, None, layer, padding=1, groups=2)
    y.backward(gradient := rng.standard_normal(y.value.shape))
    operand, weights, kept, *_ = y.saved
    flat = kept_of_groups(weight.value.reshape(8, 27), 2, 4, 1)  # channel, row, column of a filter
    assert np.array_equal(weights, weight.value * flat.reshape(weight.value.shape))
    halves = [
        kept_of_groups(x.value[:, half], 2, 4, 1) for half in (slice(0, 3), slice(3, 6))
    ]  # each convolution group
    assert np.array_equal(kept, np.concatenate(halves, axis=1))
    assert np.array_equal(operand, x.value * kept)
    halves = [kept_of_groups(gradient[:, half], 2, 4, 1) for half in (slice(0, 4), slice(4, 8))]
    error = gradient * np.concatenate(halves, axis=1)
    want = layer.convolve("backward_weight", operand, error, kernel=(3, 3), padding=1, groups=2)
    assert np.array_equal(weight.gradient, want)
    a, b = leaf(layer, rng.standard_normal((2, 3, 5)), "a"), leaf(layer, rng.standard_normal((2, 5, 4)), "b")
    first, second, *_ = matmul(a, b, layer).saved
    assert np.array_equal(first, a.value * kept_of_groups(a.value, 2, 4, 2))
    assert np.array_equal(second, b.value * kept_of_groups(b.value, 2, 4, 1))


def test_zeros_are_positive_and_masks_are_of_numbers_before_rounding(tmp_path):
    layer = numerics_of(tmp_path, sparse(fmt="e2m1fn")).layer("conv")
    weight = leaf(layer, np.array([[-1.01], [-1.0], [-1.02], [-1.03]]), "weight")
    copy = layer.working_copy(weight, (weight.value.shape, 0))
    assert copy.tolist() == [[0.0], [0.0], [-1.0], [-1.0]]  # all are -1 in e2m1fn
    assert not np.signbit(copy[:2]).any()


def test_gradients_of_pruned_activations(tmp_path, monkeypatch):
    text = sparse("activations", base=sparse())
    layer, rng = layer_of(tmp_path, text), np.random.default_rng(3)
    x, start = leaf(layer, rng.standard_normal((3, 7)), "x"), leaf(layer, rng.standard_normal(4), "start")
    weight = leaf(layer, rng.standard_normal((7, 4)), "weight")
    images = leaf(layer, rng.standard_normal((2, 5, 4, 4)), "images")
    a, b = leaf(layer, rng.standard_normal((2, 3, 5)), "a"), leaf(layer, rng.standard_normal((2, 5, 4)), "b")
    kernel = leaf(layer, rng.standard_normal((3, 5, 3, 3)), "kernel")
    judge(monkeypatch, lambda: engine.linear(x, weight, start, layer), [x, start])
    judge(monkeypatch, lambda: conv2d(images, kernel, None, layer, padding=1), [images])
    judge(monkeypatch, lambda: matmul(a, b, layer), [a, b])  # keys and values are results: masked too
    with pytest.raises(ValueError, match="finite differences say"):  # straight through is not the derivative
        judge(monkeypatch, lambda: engine.linear(x, weight, start, layer), [weight])
    roles = layer.design.roles
    masked = dataclasses.replace(roles["weights"].sparsity, masked=True)
    roles["weights"] = dataclasses.replace(roles["weights"], sparsity=masked)
    engine.softmax_cross_entropy(engine.linear(x, weight, start, layer), np.array([0, 1, 2])).backward()
    GradientSparsity([weight]).apply()
    assert weight.gradient[weight.kept].any() and not weight.gradient[~weight.kept].any()


def test_gradients_of_an_operator_of_the_users_own(tmp_path, monkeypatch):
    text = sparse("activations", "top_k = 0.5", base=sparse(rule='magnitude = 0.5, backward = "masked"'))
    layer, rng = layer_of(tmp_path, text), np.random.default_rng(5)
    product = sn.operator("function (X[M, L], W[L, N]) -> (Y) { Y[i, j: M, N] = +(X[i, k] * W[k, j]); }")
    x = Tensor(rng.standard_normal((3, 4)), layer.numerics.backend, requires_gradient=True)
    weight = leaf(layer, rng.standard_normal((4, 5)), "weight")
    y = operate(product, (x, weight), layer)
    kept = [kept_of_tensor(value, value.size // 2) for value in (x.value, weight.value)]
    np.testing.assert_allclose(y.value, (x.value * kept[0]) @ (weight.value * kept[1]), rtol=1e-12)
    y.backward(gradient := rng.standard_normal((3, 5)))
    GradientSparsity([weight]).apply()
    np.testing.assert_allclose(x.gradient, (gradient @ (weight.value * kept[1]).T) * kept[0], rtol=1e-12)
    np.testing.assert_allclose(weight.gradient, ((x.value * kept[0]).T @ gradient) * kept[1], rtol=1e-12)


@pytest.mark.parametrize("name", ["transformer", "lstm", "lenet5", "resnet"])
def test_networks_train_with_all_operands_sparse(name, tmp_path):
    options = {"resnet": {"sizes": (4, 4, 4)}, "lenet5": {"sizes": (2, 4, 8, 8)}}.get(name, {})
    net = make_network(name, data="digits", **options)
    text = sparse("input", base=sparse("activations"))
    numerics, rng = moved(net, tmp_path, text)
    x = rng.uniform(0, 1, (4, 64))
    loss = engine.softmax_cross_entropy(net.forward(Tensor(x, numerics.backend), training=True), np.arange(4))
    loss.backward()
    assert np.isfinite(loss.value) and all(np.isfinite(p.gradient).all() for p in net.parameters)


def test_a_networks_gradients_with_sparse_activations(tmp_path):
    net = make_network("mlp", sizes=(12, 9, 5))
    parts = net, *moved(net, tmp_path, sparse("activations", 'pattern = "2:4"'))
    judge_along_directions((*parts[:2], parts[2].standard_normal((6, 12)), np.arange(6) % 5))


# -- memory, checkpoints -----------------------------------------------------------------------------------------------

MEMORY = """
[roles]
weights = { format = "e4m3fn", overflow = "saturate", sparsity = { magnitude = 0.5, from = 5, to = 25, every = 5 } }
errors = "e5m2"
weight_gradients = { format = "e6m9", sparsity = { top_k = 0.02, feedback = { format = "e8m5", rounding = "stochastic", stochastic_bits = 8 } } }
[loss]
scale = 1000
"""  # noqa: E501


def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path):
    design = design_of(tmp_path, MEMORY)
    settings = Settings(network_options={"sizes": (64, 16, 10)}, epochs=3, batch=128)
    whole = run(design, settings, seed=1, out=tmp_path / "whole").read_bytes()
    assert read_rows(tmp_path / "whole" / "sparse" / "seed-1.jsonl")[-1]["loss"] < 2

    def stop(iteration, *_):
        if iteration == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(design, settings, seed=1, out=tmp_path / "cut", progress=stop)
    with np.load(tmp_path / "cut" / "sparse" / "seed-1.checkpoint.npz") as state:
        memories = {name: state[name] for name in state.files if name.startswith("residual")}
    assert {array.shape for array in memories.values()} == {(64, 16), (16, 10)} and all(map(np.any, memories.values()))
    assert run(design, settings, seed=1, out=tmp_path / "cut").read_bytes() == whole
    watched = run(design, settings, seed=1, out=tmp_path / "watched", statistics=7)
    assert watched.read_bytes() == whole


def test_nothing_is_lost_in_the_memory(tmp_path):
    """What was sent, and what is remembered, add up to all gradients, where nothing rounds."""
    text = sparse("weight_gradients", 'top_k = 0.1, feedback = "binary64"')
    layer, rng = layer_of(tmp_path, text), np.random.default_rng(4)
    weight, bias = leaf(layer, np.zeros((8, 5)), "weight"), leaf(layer, np.zeros(5), "bias")
    memory, sent, total = GradientSparsity([weight, bias]), np.zeros((8, 5)), np.zeros((8, 5))
    for _ in range(20):
        weight.gradient = rng.integers(-99, 99, (8, 5)).astype(np.float64)
        bias.gradient = given = rng.standard_normal(5)
        total += weight.gradient
        memory.apply()
        assert np.count_nonzero(weight.gradient) == 4 and bias.gradient is given
        sent += weight.gradient
        assert np.array_equal(sent + memory.residuals[0], total)


def test_a_skipped_update_leaves_the_memory_alone(tmp_path):
    text = sparse("weight_gradients", 'top_k = 0.1, feedback = "binary64"')
    text = text.replace("[units]", 'errors = "e5m2"\n[units]') + "[loss]\nscale = 1e300\nskip_overflow = true"
    work = Run(SHORT, design_of(tmp_path, text), 1)
    row = work.train(*next(iter(work.plan(1))))
    assert row["skipped"] and not any(map(np.any, work.sparse["all"].residuals.values()))


# -- designs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "rule", "message"),
    [
        ("weights", "", "must state one of pattern, magnitude, top_k, got none"),
        ("weights", 'pattern = "2:4", top_k = 0.5', "must state one of .*, got pattern, top_k"),
        ("weights", 'patern = "2:4"', "unknown key 'patern'; did you mean 'pattern'"),
        ("weights", 'pattern = "4:2"', "must be 'N:M' with 1 <= N < M <= 9999, like '2:4', got '4:2'"),
        ("weights", 'pattern = "4:4"', "N < M"),
        ("weights", 'pattern = "0:4"', "1 <= N"),
        ("weights", 'pattern = "2:4 "', "must be 'N:M'"),
        ("weights", "pattern = 0.5", "must be 'N:M'"),
        ("weights", "magnitude = 1.0", "must be a share above 0 and below 1, got 1.0"),
        ("weights", "magnitude = 0", "must be a share above 0 and below 1, got 0"),
        ("weights", "top_k = 10", "must be a share above 0 and below 1, got 10"),
        ("weights", "top_k = true", "must be a share"),
        ("weights", "magnitude = nan", "must be a share"),
        ("weights", "top_k = 0.5, from = 1, to = 2", "from: is of a share of zeros that grows; state magnitude"),
        ("weights", "magnitude = 0.5, from = 1", "grows from an iteration, and has no 'to'"),
        ("weights", "magnitude = 0.5, every = 1", "grows to an iteration, and has no 'from'"),
        ("weights", "magnitude = 0.5, from = 5, to = 5", "needs from < to and every <= to - from, got 5, 5 and 1"),
        ("weights", "magnitude = 0.5, from = 1, to = 5, every = 5", "every <= to - from"),
        ("weights", "magnitude = 0.5, from = 0, to = 5", "from: must be a positive integer, got 0"),
        ("weights", "magnitude = 0.5, from = 1, to = 5, initial = 0.5", "initial: must be a share from 0 to below"),
        ("weights", 'pattern = "2:4", backward = "ste"', "'straight_through' or 'masked', got 'ste'"),
        ("weights", 'pattern = "2:4", decay = -1', "decay: must be a positive number"),
        ("weights", 'pattern = "2:4", decay = 1e-46', "decay: is used in binary32, where 1e-46 becomes 0.0"),
        ("weights", 'pattern = "2:4", decay = 1e39', "decay: is used in binary32, where 1e.39 becomes inf"),
        ("weights", 'top_k = 0.1, feedback = "binary32"', "unknown key 'feedback'"),
        ("activations", 'pattern = "2:4", backward = "masked"', "unknown key 'backward'"),
        ("weight_gradients", 'pattern = "2:4"', "state magnitude or top_k"),
        ("weight_gradients", 'top_k = 0.1, feedback = "binary31"', "feedback.format: "),
        ("weight_gradients", "top_k = 0.1, feedback = { sparsity = {} }", "feedback: has no format"),
        ("master", "top_k = 0.1", "this role cannot be sparse .those that can: input, weights, activations, errors, "),
        ("statistics", "top_k = 0.1", "roles.statistics.sparsity: this role cannot be sparse"),
        ("elementwise", "top_k = 0.1", "this role cannot be sparse"),
    ],
)
def test_unusable_sparsity_is_named(role, rule, message, tmp_path):
    with pytest.raises(ValueError, match=message) as error:
        design_of(tmp_path, sparse(role, rule))
    assert f"sparse.toml: roles.{role}.sparsity" in str(error.value)


def test_what_only_a_run_can_tell(tmp_path):
    text = '[roles]\nweights = { format = "e8m0fnu", sparsity = { top_k = 0.1 } }'
    with pytest.raises(ValueError, match="makes zeros, and 'e8m0fnu' has none"):
        design_of(tmp_path, text)
    design = design_of(tmp_path, sparse(rule="magnitude = 0.5, from = 1, to = 21"))
    with pytest.raises(ValueError, match="reaches its 50 % zeros in iteration 21, and the run has 20; lower its to"):
        Run(SHORT, design, 1)
    layer = layer_of(tmp_path, sparse())
    weight = leaf(layer, np.ones((4, 4)), "weight")
    with pytest.raises(ValueError, match=r"layer 'conv', role 'weights': the groups of 2:4 .* without a pattern"):
        embedding(np.array([1]), weight, layer)
    layer = layer_of(tmp_path, sparse(rule="top_k = 0.25"))
    assert np.count_nonzero(embedding(np.arange(4), leaf(layer, np.eye(4) + 1, "w"), layer).value) == 4


def test_a_record_and_an_explanation_tell_of_sparsity(tmp_path):
    design = design_of(tmp_path, MEMORY)
    roles = json.loads(json.dumps(design.describe(["fc1"])))["layers"]["fc1"]["roles"]
    assert roles["weights"]["sparsity"] == {"magnitude": 0.5, "from": 5, "to": 25, "every": 5, "initial": 0.0}
    feedback = {"format": "e8m5", "bits": 14, "rounding": "stochastic", "stochastic_bits": 8}
    assert roles["weight_gradients"]["sparsity"] == {"top_k": 0.02, "feedback": feedback}
    assert "sparsity" not in roles["master"]
    steps = explain(Settings(epochs=2), design).steps
    pruned = [(s.layer, s.role, s.operation, s.format) for s in steps if s.operation.startswith("prune")]
    weights = [(layer, "weights", "prune 50 % zeros", "e4m3fn") for layer in ("fc1", "fc2")]
    assert pruned[:2] == weights
    gradients = [("weight_gradients", "prune top 2 %", "e6m9"), ("weight_gradients", "prune top 2 %", "e8m5")]
    assert pruned[2:] == [(layer, *part) for layer in ("fc1", "fc2") for part in gradients]
    none = design_of(tmp_path, sparse().replace("[units]", 'master = "none"\n[units]')).layer("fc1").roles
    assert none["weights"].sparsity is not None and none["master"].sparsity is None


def test_products_say_which_operand_has_a_pattern_along_k(tmp_path):
    text = sparse("input", 'pattern = "1:4"', base=sparse("errors", 'pattern = "2:8"', base=sparse()))
    rows = design_gemms(design_of(tmp_path, text), make_network("mlp"), 32)
    assert [(row["layer"], row["pass"], row.get("sparsity")) for row in rows] == [
        ("fc1", "forward", ["1:4", "2:4"]), ("fc2", "forward", ["dense", "2:4"]),
        ("fc2", "backward_data", ["2:8", "dense"]), ("fc2", "backward_weight", None), ("fc1", "backward_weight", None),
    ]  # fmt: skip
    rows = design_gemms(design_of(tmp_path, sparse(rule="magnitude = 0.5")), make_network("mlp"), 32)
    assert not any("sparsity" in row for row in rows)
