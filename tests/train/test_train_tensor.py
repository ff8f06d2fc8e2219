"""The engine: gradients against finite differences, a fixed order, the checker checked."""

import re
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.runtime import threads
from softnum.train import Numerics, Parameter, Tensor, load_design, make_network
from softnum.train.designs import RoleRounding
from softnum.train.engine import tensor as engine
from softnum.train.engine.backend import NumpyBackend
from softnum.train.inspect.gradients import check_gradients

BINARY64 = """
[roles]
default = { format = "binary64" }
[units]
forward = { accumulator = "binary64" }
backward_data = { accumulator = "binary64" }
backward_weight = { accumulator = "binary64" }
"""


@pytest.fixture
def network(tmp_path):
    """A small perceptron in binary64, with its samples and labels."""
    file = tmp_path / "binary64.toml"
    file.write_text(BINARY64)
    net = make_network("mlp", sizes=(5, 7, 6, 4))
    numerics = Numerics(load_design(file), net.layer_names, seed=3)
    net.initialise(numerics)
    rng = np.random.default_rng(0)
    for parameter in net.parameters:
        parameter.value = parameter.value + 0.1 * rng.standard_normal(parameter.value.shape)
    return net, numerics, rng.standard_normal((9, 5)), rng.integers(0, 4, 9)


def loss_of(net, numerics, x, labels):
    return lambda: engine.softmax_cross_entropy(net.forward(Tensor(x, numerics.backend)), labels)


def test_gradients_of_a_network_agree_with_finite_differences(network):
    net = network[0]
    assert network[1].backend.dtype == np.float64
    assert check_gradients(loss_of(*network), net.parameters) < 1e-7


@pytest.mark.parametrize("op", ["linear", "softmax_cross_entropy", "relu"])
def test_the_checker_catches_a_gradient_off_by_a_thousandth(network, op, monkeypatch):
    rule = engine.GRADIENTS[op]

    def faulty(node, gradient):
        parts = list(rule(node, gradient))
        parts[0] = None if parts[0] is None else parts[0] * 1.001
        if op == "linear":
            parts[1] = parts[1] * 1.001
        return tuple(parts)

    monkeypatch.setitem(engine.GRADIENTS, op, faulty)
    with pytest.raises(ValueError, match=r"gradient of fc\d\.(weight|bias)\[.*finite differences say"):
        check_gradients(loss_of(*network), network[0].parameters)


def test_the_checker_catches_a_wrong_bias_gradient(network, monkeypatch):
    rule = engine.GRADIENTS["linear"]
    monkeypatch.setitem(engine.GRADIENTS, "linear", lambda n, g: (*rule(n, g)[:2], rule(n, g)[2] * 1.001))
    with pytest.raises(ValueError, match="bias"):
        check_gradients(loss_of(*network), network[0].parameters)


def leaf(backend, value, name="x"):
    return Tensor(backend.array(value), backend, requires_gradient=True, name=name)


def wide():
    """A layer of a design that states nothing: everything in binary32."""
    return Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")


def test_gradients_of_branches_add_up_in_the_graphs_order():
    layer = wide()
    backend = layer.numerics.backend
    big, one = np.float32(2.0**24), np.float32(1)
    x = leaf(backend, [one])

    def run():
        # d/dx of (big x) x-free branches: contributions 2^24, 1, 1 whose float32 sum depends on the order
        terms = [engine.multiply(x, leaf(backend, [value]), layer) for value in (big, one, one)]
        total = engine.add(engine.add(terms[0], terms[1], layer), terms[2], layer)
        total.backward(np.ones(1, np.float32))
        return x.gradient.tobytes()

    assert len({run() for _ in range(20)}) == 1
    # last made, first back: ((1 + 1) + 2^24) is exact, (2^24 + 1) + 1 is not
    assert np.frombuffer(run(), np.float32)[0] == 2.0**24 + 2


def test_a_tensor_used_twice_gets_both_gradients_once():
    layer = wide()
    x = leaf(layer.numerics.backend, [np.float32(3.0)])
    y = engine.multiply(x, x, layer)
    engine.add(y, y, layer).backward(np.ones(1, np.float32))
    assert x.gradient == 12.0
    engine.add(y, y, layer).backward(np.ones(1, np.float32))
    assert x.gradient == 12.0  # not accumulated from the pass before


def test_a_chain_of_ten_thousand_operations_needs_no_recursion():
    backend = NumpyBackend(np.float64)
    x = y = leaf(backend, [1.0])
    for _ in range(10_000):
        y = engine.relu(y)
    y.backward(np.ones(1))
    assert x.gradient == 1.0


def test_a_missing_rule_is_named():
    backend = NumpyBackend(np.float64)
    x = leaf(backend, [1.0])
    y = Tensor(x.value, backend, op="cosine", parents=(x,))
    with pytest.raises(NotImplementedError, match=r"'cosine' has no gradient rule; add one .*GRADIENTS"):
        y.backward(np.ones(1))


def test_every_operation_has_a_rule():
    operations = set(engine.__all__) - {"GRADIENTS", "Parameter", "Tensor"}
    assert operations >= {"add", "linear", "reshape", "softmax_cross_entropy"}
    sources = Path(engine.__file__).parents[1].rglob("*.py")
    operations |= {name for file in sources for name in re.findall(r'\bop="(\w+)"', file.read_text())}
    assert operations >= {"conv2d", "embedding", "group_norm", "softmax"}  # of other modules
    assert operations == set(engine.GRADIENTS) - {"steps"}  # softnum.torch.functions, once imported, has that one


@pytest.mark.parametrize("op", ["add", "multiply"])
def test_shapes_must_agree(op):
    backend = NumpyBackend(np.float64)
    with pytest.raises(ValueError, match=rf"{op} needs equal shapes, got \(2,\) and \(3,\)"):
        getattr(engine, op)(leaf(backend, [1.0, 2.0]), leaf(backend, [1.0, 2.0, 3.0]), wide())


def test_the_first_layer_computes_no_gradient_of_its_input(network):
    net, numerics, x, labels = network
    tensor = Tensor(x, numerics.backend)
    engine.softmax_cross_entropy(net.forward(tensor), labels).backward()
    assert tensor.gradient is None
    assert all(isinstance(p, Parameter) and p.gradient.shape == p.value.shape for p in net.parameters)


def test_relu_keeps_nan_and_has_one_zero():
    backend = NumpyBackend(np.float32)
    out = backend.positive_part(np.array([-1, -0.0, 0, 2, np.nan, np.inf, -np.inf], np.float32))
    assert out.tolist()[:4] == [0, 0, 0, 2]
    assert not np.signbit(out[:3]).any()
    assert np.isnan(out[4]) and out[5] == np.inf and out[6] == 0


def test_exp_and_log_are_right_to_an_ulp():
    import math

    backend = NumpyBackend(np.float64)
    x = np.concatenate([-np.linspace(0, 745, 4001), [-1e-300, -0.0, -1000.0]])
    for value, got in zip(x, backend.exp(x), strict=True):
        want = math.exp(value)
        assert abs(got - want) <= max(2.0 * math.ulp(want), 2.0**-1074), value
    y = np.concatenate([np.linspace(1, 100, 4001), [1 + 2.0**-52, 10.0]])
    for value, got in zip(y, backend.log(y), strict=True):
        assert abs(got - math.log(value)) <= 2.0 * math.ulp(math.log(value)), value


def test_cross_entropy_of_non_finite_outputs_is_nan():
    backend = NumpyBackend(np.float32)
    loss, probabilities = backend.softmax_cross_entropy(np.array([[1, np.inf]], np.float32), np.array([0]), 1)
    assert np.isnan(loss) and np.isnan(probabilities).all()


def test_carriers_refuse_what_they_cannot_hold():
    with pytest.raises(ValueError, match="float32 does not hold the values exactly"):
        NumpyBackend(np.float32).array([0.1])
    with pytest.raises(ValueError, match="the host type must be float32 or float64, got"):
        NumpyBackend(np.float16)


@pytest.mark.parametrize("own", [1, 2])
def test_every_call_takes_the_backends_threads(own, monkeypatch):
    """Not those of SOFTNUM_THREADS: the processes of a study would get into each other's way."""
    taken, for_each = set(), threads.for_each

    def counted(pieces, work, count):
        taken.add(count)
        return for_each(pieces, work, count)

    monkeypatch.setattr(threads, "for_each", counted)
    monkeypatch.setenv("SOFTNUM_THREADS", "5")
    backend, x = NumpyBackend(threads=own), np.ones(2**21, np.float32)
    role = RoleRounding(sn.format("e5m2"))
    sure = RoleRounding(sn.format("e6m9"), "stochastic", stochastic_bits=8)
    calls = {
        "quantize": lambda: backend.quantize(x, role, None),
        "compute": lambda: backend.compute("fma", (x, x, x), role, None),
        "operate": lambda: backend.operate("add", (x, x), role, None),
        "stochastic": lambda: backend.operate("add", (x, x), sure, (1, 2)),
        "evaluated": lambda: backend.operate("log", (x[:16384],), RoleRounding(sn.format("binary32")), None),
        "operator": lambda: backend.run_operator(
            sn.operator("function (X[N]) -> (Y) { Y = exp(X); }"), (x[:16384],), {"fmt": "binary32"}
        ),
    }
    for name, call in calls.items():
        taken.clear()
        call()
        assert taken == {own} if own > 1 else taken <= {1}, name  # pieces, in one thread
    taken.clear()
    sn.quantize(np.ones(5 * 2**20, np.float32), "e5m2")
    assert taken == {5}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_selections_are_numpys_to_the_bit(dtype):
    """Signs of zeros, infinities and NaN included: they are made of products of bits."""
    backend, rng = NumpyBackend(dtype), np.random.default_rng(2)
    values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 2.0], dtype)
    parts = rng.choice(values, (9, 6, 7, 3))
    best, chosen = parts[0].copy(), np.zeros(parts[0].shape, int)
    for place, part in enumerate(parts):
        for index in np.ndindex(part.shape):
            if not (part[index] <= best[index] or np.isnan(best[index])):
                best[index], chosen[index] = part[index], place
    largest, which = backend.largest(parts)
    assert largest.tobytes() == best.tobytes() and np.array_equal(which, chosen)
    x, y = parts[0].transpose(2, 0, 1), parts[1].transpose(2, 0, 1)
    assert backend.where_positive(x, y).tobytes() == np.where(x > 0, y, dtype(0)).tobytes()
    assert (
        backend.where_equal(chosen, 1, y.transpose(1, 2, 0)).tobytes() == np.where(chosen == 1, parts[1], 0).tobytes()
    )
    double = rng.standard_normal((6, 7))  # a loss's gradient, in binary64
    assert np.array_equal(backend.where_positive(parts[0][..., 0], double), np.where(parts[0][..., 0] > 0, double, 0))
