"""The operators of examples/tile: against NumPy, by finite differences, and in narrow formats."""

from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases
from tests.support.tile_checks import assert_gradients, in_wide, small

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "tile"
RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.normal(0, 1, shape)


def windows(i, height, width, stride):
    """[n, c, y, x, j, i] of the blocks of an image."""
    view = np.lib.stride_tricks.sliding_window_view(i, (height, width), axis=(2, 3))
    return view[:, :, ::stride, ::stride]


def convolved(i, k, stride=1, padding=0, dilation=1):
    """A convolution in binary64."""
    unit = sn.MadUnit("binary64", operand="binary64")
    return sn.conv2d(i, k, unit, stride=stride, padding=padding, dilation=dilation)


def plan(x):
    a = np.abs(x)
    lines = [a, 0.5 * a + 0.25, 0.125 * a + 0.6875, np.ones_like(a)]
    return np.sign(x) * np.select([a < 0.5, a < 1.1875, a < 2.5], lines[:3], lines[3])


def depthwise(i, k):
    view = np.lib.stride_tricks.sliding_window_view(i, k.shape[:2], axis=(1, 2))
    return np.einsum("nyxcji,jic->nyxc", view, k)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x, g, b):
    d = x - x.mean(axis=1, keepdims=True)
    return g * d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) + b


def rational(x):
    return np.where(np.abs(x) < 3, x * (27 + x * x) / (27 + 9 * x * x), np.sign(x))


def tabled(x):
    points = np.arange(17) / 4
    return np.sign(x) * np.interp(np.abs(x), points, np.tanh(points))


#: file -> (definition, inputs)
EXAMPLES = {
    "average_pool": (lambda i: windows(i, 3, 3, 2).mean(axis=(-2, -1)), [normal(2, 2, 5, 7)]),
    "conv2d": (
        lambda i, k, b: convolved(i, k, 2, 2, 2) + b[:, None, None],
        [normal(2, 2, 5, 6), normal(3, 2, 3, 2), normal(3)],
    ),
    "conv_relu": (lambda i, k: np.maximum(convolved(i, k, 1, 1), 0), [normal(2, 2, 4, 5), normal(3, 2, 3, 3)]),
    "cumulative_sum": (np.cumsum, [normal(6)]),
    "depthwise_conv": (depthwise, [normal(2, 4, 5, 3), normal(2, 3, 3)]),
    "hard_sigmoid": (lambda x: np.clip(0.2 * x + 0.5, 0, 1), [3 * normal(4, 5)]),
    "layer_norm": (layer_norm, [normal(3, 5), normal(5), normal(5)]),
    "lookup": (lambda t, i: t[i.astype(int)], [normal(4, 3), np.float64([2, 0, 2])]),
    "matmul": (np.matmul, [normal(3, 4), normal(4, 5)]),
    "max_pool": (lambda i: windows(i, 2, 2, 2).max(axis=(-2, -1)), [normal(2, 2, 5, 6)]),
    "plan_sigmoid": (lambda x: (1 + plan(x / 2)) / 2, [4 * normal(6, 7)]),
    "plan_tanh": (plan, [2 * normal(6, 7)]),
    "rational_tanh": (rational, [2 * normal(6, 7)]),
    "sign": (lambda x: np.where(x < 0, -1.0, 1.0), [normal(4, 5)]),
    "softmax": (softmax, [normal(3, 5)]),
    "table_tanh": (tabled, [2 * normal(6, 7)]),
}
SMOOTH = [name for name in EXAMPLES if name not in ("sign", "lookup")]
TANHS = ["plan_tanh", "table_tanh", "rational_tanh"]


def example(name):
    return sn.operator(FOLDER / f"{name}.tile")


def test_all_files_are_here():
    assert {path.stem for path in FOLDER.glob("*.tile")} == set(EXAMPLES)


@cases("name", EXAMPLES)
def test_values(name):
    define, inputs = EXAMPLES[name]
    fmt = {"*": "binary64"} | ({"P": "binary64", "I": "binary64", "F": "binary64"} if name == "table_tanh" else {})
    (found,) = in_wide(example(name), *inputs, fmt=fmt)
    np.testing.assert_allclose(found, define(*inputs), rtol=1e-9, atol=1e-11)


@cases("name", SMOOTH)
def test_gradients(name):
    op = example(name)
    if name == "table_tanh":  # its address is in binary32
        text = op.source.replace('format P, I, J, F: "binary32";', "")
        assert text != op.source
        op = sn.operator(text)
    assert_gradients(op, EXAMPLES[name][1])


def test_the_sign_has_a_gradient_of_its_own():
    x = sn.array([-2.0, -0.5, 0.25, 1.0], "e5m2")
    op = example("sign")
    assert op.backward([x], [op(x)], [sn.array([1.0, 2.0, 3.0, 4.0], "e5m2")])[0].tolist() == [0, 2, 3, 0]


def test_lookup_adds_up_what_rows_get():
    define, (table, places) = EXAMPLES["lookup"]
    op, unit = example("lookup"), sn.MadUnit("e6m9", operand="e5m2")
    dy = small((3, 3), 1)
    dt, di = op.backward(
        [sn.quantize(table, "e5m2"), places], [sn.quantize(define(table, places), "e5m2")], [dy], fmt="e5m2", unit=unit
    )
    assert di is None and dt.shape == (4, 3)
    assert np.array_equal(dt[2], sn.quantize(dy[0] + dy[2], "e6m9")) and not dt[1].any()


@cases("fmt", ["binary32", "e6m9", "bfloat16", "e4m3fn", "q4.12", "e5m2"])
@cases("name", TANHS)
def test_approximations_of_tanh(name, fmt):
    """Odd, bounded by 1, near tanh, right at the special values, and with a slope of 1 at 0, in every format."""
    op = example(name)
    positive = np.linspace(0.01, 7, 400)
    x = sn.array(np.concatenate([-positive[::-1], [0], positive]), fmt)
    y = np.asarray(op(x))
    precision = {"e5m2": 0.25, "e4m3fn": 0.12}.get(fmt, 0.02)
    assert np.abs(y - np.tanh(np.asarray(x))).max() <= 0.03 + precision
    assert np.array_equal(y, -y[::-1]) and np.abs(y).max() <= 1
    zero, one = sn.array([0.0], fmt), sn.array([1.0], fmt)
    assert op(zero).item() == 0
    assert abs(op.backward([zero], [op(zero)], [one])[0].item() - 1) < 0.03 + precision
    far = sn.array([7.0], fmt)
    assert op.backward([far], [op(far)], [one])[0].item() == 0
    if x.format.kind == "float" and x.format.infinities:
        special = sn.array([np.inf, -np.inf, np.nan], fmt)
        found = np.asarray(op(special))
        assert abs(found[0] - 1) < 0.01 and found[1] == -found[0] and np.isnan(found[2])


@cases("name", [n for n in EXAMPLES if n not in ("lookup", "layer_norm", "softmax")])
def test_examples_in_narrow_formats(name):
    """Carriers in, carriers out; Arrays in, Arrays out: the same values, forward and backward."""
    op = example(name)
    unit = sn.MadUnit("e6m9", operand=("e5m2", "e5m2"))
    inputs = [sn.quantize(x.astype(np.float32), "e5m2") for x in EXAMPLES[name][1]]
    outputs = op(*inputs, fmt="e5m2", unit=unit)
    arrays = [sn.array(x, "e5m2") for x in inputs]
    assert np.array_equal(np.asarray(op(*arrays, unit=unit)), outputs)
    result = sn.quantize(outputs, "e5m2")
    gradients = op.backward(inputs, [result], [result], fmt="e5m2", unit=unit)
    again = op.backward(arrays, [sn.array(result, "e5m2")], [sn.array(result, "e5m2")], unit=unit)
    for one, other in zip(gradients, again, strict=True):
        assert np.array_equal(one, np.asarray(other))


def test_examples_are_elementwise_where_they_say_so():
    elementwise = {name for name in EXAMPLES if example(name).is_elementwise}
    assert elementwise == {*TANHS, "hard_sigmoid", "plan_sigmoid", "sign"}


@pytest.mark.parametrize("name", TANHS)
def test_slopes_of_the_approximations(name):
    """1 at both zeros, and near that of tanh (of plan_tanh no nearer than its lines allow, which meet at 0.5)."""
    op, one = example(name), np.float32([1])
    for zero in (0.0, -0.0):
        x = np.float32([zero])
        assert abs(op.backward([x], [op(x, fmt="binary32")], [one], fmt="binary32")[0][0] - 1) <= 0.021
    x = np.linspace(-6, 6, 481).astype(np.float32)
    slopes = op.backward([x], [op(x, fmt="binary32")], [np.ones_like(x)], fmt="binary32")[0]
    worst = {"plan_tanh": 0.29, "table_tanh": 0.12, "rational_tanh": 0.05}[name]
    assert np.abs(slopes - (1 - np.tanh(x.astype(np.float64)) ** 2)).max() <= worst
