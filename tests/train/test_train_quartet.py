"""Quartet's MXFP4: scales, transforms and gradients against NumPy that shares nothing with them."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import Parameter, Tensor, load_design
from softnum.train.designs.scales import Hadamard
from softnum.train.engine.tensor import linear
from softnum.train.layers.attention import matmul as attention_product
from softnum.train.layers.convolution import conv2d
from softnum.train.recipes import QuestScaling, TsengScaling
from tests.support.cases import cases
from tests.support.train_cases import numerics_of

QUEST = '{ format = "e2m1fn", scale = { rule = "quest" }, hadamard = { size = 32, signs = 0 }, backward = "trust" }'
TSENG = '{ format = "e2m1fn", scale = { rule = "tseng" }, hadamard = { size = 32, signs = "random" } }'
#: Quartet's, but that all is rounded to nearest
NEAREST = f"""
[roles]
input = {QUEST}
activations = {QUEST}
weights = {QUEST}
errors = {TSENG}
backward_data.weights = {TSENG}
backward_weight.input = {TSENG}
backward_weight.activations = {TSENG}
[units]
forward = {{ kind = "exact", accumulator = "binary32" }}
backward_data = {{ kind = "exact", accumulator = "binary32" }}
backward_weight = {{ kind = "exact", accumulator = "binary32" }}
"""
GRID = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
F = np.float32


def e2m1(x):
    """To nearest, ties to even codes, cut off at 6."""
    size = np.minimum(np.abs(x.astype(np.float64)), 6)
    distance = np.abs(size[..., None] - GRID)
    near = distance == distance.min(-1, keepdims=True)
    low, high = near.argmax(-1), 7 - near[..., ::-1].argmax(-1)
    return np.copysign(GRID[np.where(low % 2 == 0, low, high)], x).astype(F) + F(0)


def blocks(x):
    return x.reshape(len(x), -1, 32)


def quest(x):
    """(numbers, which are not cut off) of rows of whole blocks."""
    parts = blocks(x).astype(np.longdouble)
    mean, squares = F(parts.mean(-1)), F((parts * parts).mean(-1))
    deviation = np.sqrt(squares - mean * mean)
    scale = F(2) ** np.floor(np.log2(F(F(2.92247856 / 6) * deviation) + F(1e-8)))
    ratio = blocks(x) / scale[..., None]
    return (e2m1(ratio) * scale[..., None]).reshape(x.shape), (np.abs(ratio) < 6).reshape(x.shape)


def tseng(x):
    """Elements and scales: what is multiplied, without 4 / 3."""
    scale = F(2) ** (np.floor(np.log2(np.abs(blocks(x)).max(-1))) - 2)
    return (e2m1(F(0.75) * blocks(x) / scale[..., None]) * scale[..., None]).reshape(x.shape)


def transformed(x, signs, *, back=False):
    """Along rows, 32 at a time, rounded once to binary32."""
    matrix = np.ones((1, 1), np.longdouble)
    while len(matrix) < 32:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    matrix = matrix * np.array([-1 if signs >> row & 1 else 1 for row in range(32)])[:, None] * F(32**-0.5)
    return F((blocks(x).astype(np.longdouble) @ (matrix.T if back else matrix)).reshape(x.shape))


def product(a, b, factor=None):
    """a @ b.T, the sums of 32 rounded to binary32 and added in it; all scales are powers of two."""
    total = np.zeros((len(a), len(b)), F)
    for first in range(0, a.shape[1], 32):
        part = slice(first, first + 32)
        total = total + F(a[:, part].astype(np.float64) @ b[:, part].astype(np.float64).T)
    return total if factor is None else F(factor) * total


def signs_of(layer):
    return layer.design.roles["errors"].hadamard.drawn(f"3/conv/{layer.numerics.iteration}").signs


def case_of(tmp_path):
    layer = numerics_of(tmp_path, NEAREST).layer("conv")
    rng = np.random.default_rng(1)
    shapes = ((64, 96), (96, 32), (64, 32))
    x, w, e = (rng.standard_normal(shape).astype(F) * F(s) for shape, s in zip(shapes, (3, 0.1, 1e-3), strict=True))
    x[3, 5], w[7, 1] = 40, 2  # cut off, after the transform too
    return layer, x, w, e


def test_a_layer_is_quartets(tmp_path):
    layer, x, w, e = case_of(tmp_path)
    source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
    y = linear(source, weight, None, layer)
    y.backward(e)
    (xq, trust_x), (wq, trust_w) = quest(transformed(x, 0)), quest(transformed(np.ascontiguousarray(w.T), 0))
    np.testing.assert_array_equal(y.value, product(xq, wq))
    signs, factor = signs_of(layer), F(16 / F(9))
    assert all(0 < np.mean(~trust) < 0.1 for trust in (trust_x, trust_w)) and signs not in (0, 2**32 - 1)

    def pair(a, b):
        return product(*(tseng(transformed(np.ascontiguousarray(part), signs)) for part in (a, b)), factor)

    np.testing.assert_array_equal(source.gradient, transformed(np.where(trust_x, pair(e, wq.T), F(0)), 0, back=True))
    gradient = transformed(np.where(trust_w, pair(e.T, xq.T), F(0)), 0, back=True).T
    np.testing.assert_array_equal(weight.gradient, gradient)


def test_the_least_error_of_a_normal_distribution_is_where_quest_cuts():
    x = np.linspace(0, 9, 90001)
    weight = np.exp(-x * x / 2)
    found = [(weight * (x - e2m1(x / c) * c) ** 2).sum() for c in np.arange(0.45, 0.53, 0.001)]
    assert abs(0.45 + 0.001 * np.argmin(found) - 2.92247856 / 6) < 0.002


def test_quest_of_short_and_of_odd_blocks():
    short = np.float32([[1, -3, 2]])
    scale = QuestScaling().scales(short)  # deviation sqrt(14 / 3), times c 1.05
    assert scale.tolist() == [[1.0]]
    assert QuestScaling().scales(np.zeros((1, 64), F)).tolist() == [[2.0**-27] * 2]
    assert np.isnan(QuestScaling().scales(np.full((1, 2), np.inf, F))).all()
    ties = np.float32([[2.5, -2.5, 2.5, -2.5]])  # deviation 2.5, scale 1
    assert [
        QuestScaling((1, 4), rounding)(ties).elements.tolist()[0][0] for rounding in ("nearest_even", "nearest_zero")
    ] == [2, 2]
    ties = np.float32([[3.5, -3.5, 3.5, -3.5]])
    assert [
        QuestScaling((1, 4), rounding)(ties).elements.tolist()[0][0] for rounding in ("nearest_even", "nearest_zero")
    ] == [4, 3]


def test_three_quarters_are_never_cut_off_and_are_unbiased():
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((64, 32)) * 10.0 ** rng.integers(-9, 9, (64, 1))).astype(F)
    nearest = TsengScaling()(x)
    assert (np.abs(F(0.75) * x / nearest.scales) < 6).all()
    np.testing.assert_array_equal(nearest.elements * nearest.scales, tseng(x))
    many = np.mean([TsengScaling(rounding="stochastic")(x, (1, i)).values() for i in range(4000)], axis=0)
    assert np.abs((many - x) / nearest.scales).max() < 5 * 1.34 / np.sqrt(4000)
    assert np.abs(nearest.values() - x).mean() > 0  # which nearest is not
    assert np.isnan(TsengScaling()(np.float32([[np.nan, 1]])).values()).all()
    assert TsengScaling()(np.zeros((1, 32), F)).values().tolist() == [[0.0] * 32]


def test_random_signs_are_a_layers_in_an_iteration():
    transform = Hadamard(32, "random")
    drawn = {transform.drawn(f"{seed}/{layer}/{i}").signs for seed in (1, 2) for layer in ("a", "b") for i in range(50)}
    assert len(drawn) == 200 and transform.describe()["signs"] == "random"
    bits = np.array([[signs >> row & 1 for row in range(32)] for signs in drawn])
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.2


def test_a_transform_of_any_power_of_two_takes_back():
    x = np.random.default_rng(3).standard_normal((3, 70)).astype(F)
    for size in (2, 4, 8, 16, 32, 64):
        transform = Hadamard(size, 5 % 2**size)
        np.testing.assert_allclose(transform(transform(x), inverse=True), x, atol=1e-6)
    np.testing.assert_array_equal(transformed(x[:, :64], 5), Hadamard(32, 5)(x[:, :64]))


def test_an_attentions_gradients_are_trusted_too(tmp_path):
    layer, x, w, e = case_of(tmp_path)
    first, second = (Tensor(v[None], layer.numerics.backend, requires_gradient=True) for v in (x, w))
    attention_product(first, second, layer).backward(e[None])
    layer, x, w, e = case_of(tmp_path)
    source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
    linear(source, weight, None, layer).backward(e)
    np.testing.assert_array_equal(first.gradient[0], source.gradient)
    np.testing.assert_array_equal(second.gradient[0], weight.gradient)


def test_a_convolutions_gradients_are_not(tmp_path):
    layer = numerics_of(tmp_path, NEAREST).layer("conv")
    weight = Parameter(np.ones((1, 1, 3, 3), F), layer, "w")
    with pytest.raises(ValueError, match="gradients of a convolution's operands have straight-through gradients"):
        conv2d(Tensor(np.ones((1, 1, 4, 4), F), layer.numerics.backend), weight, None, layer)


WRONG = (
    ('errors = { format = "e2m1fn", scale = { rule = "quest" }, backward = "trust" }', "role 'errors' has none"),
    ('weights = { format = "e2m1fn", scale = { rule = "tseng" }, backward = "trust" }', "role 'weights' has none"),
    ('weights = { format = "e2m1fn", scale = { rule = "quest" }, backward = "masked" }', "through' or 'trust'"),
    ('weights = { format = "e4m3fn", scale = { rule = "quest" } }', "rule 'quest' is defined for format"),
    ('weights = { format = "e2m1fn", scale = { rule = "quest", per = [2, 32] } }', "blocks of one row"),
    ('weights = { format = "e2m1fn", rounding = "stochastic", scale = { rule = "quest" } }', "or 'nearest_zero'"),
    ('weights = { format = "e2m1fn", scale = { rule = "quest" }, hadamard = { signs = "any" } }', 'or be "random"'),
    ('weights = { format = "e2m1fn", scale = { rule = "quest" }, hadamard = { size = 24 } }', "2, 4, 8, 16, 32 or 64"),
)  # fmt: skip


@cases(("text", "message"), WRONG)
def test_what_is_wrong_is_named(text, message, tmp_path):
    (tmp_path / "mine.toml").write_text("[roles]\n" + text)
    with pytest.raises(ValueError, match=message):
        load_design(tmp_path / "mine.toml")


def test_the_shipped_design_is_that():
    design = load_design("quartet-mxfp4")
    layer = design.layer("block1.ff1")
    facts = layer.describe()["roles"]
    assert facts["activations"] == {
        "format": "e2m1fn", "bits": 4.25, "rounding": "nearest_even", "overflow": "saturate",
        "scale": {"rule": "quest", "per": [1, 32]}, "hadamard": {"size": 32, "signs": 0, "format": "binary32"},
        "backward": "trust",
    }  # fmt: skip
    for role in ("errors", "backward_data.weights", "backward_weight.activations"):
        assert (facts[role]["scale"]["rule"], facts[role]["rounding"]) == ("tseng", "stochastic")
        assert facts[role]["hadamard"]["signs"] == "random"
    for name in ("fc", "block1.attention", "stage1.1.conv2", "conv1.1", "stage2.1.shortcut"):
        assert design.layer(name).roles["weights"].format == sn.format("bfloat16")
