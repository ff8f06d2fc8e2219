"""Operations of sequences: gradients, PyTorch's values, each rounding where the text says, and what they refuse."""

import numpy as np
import pytest

import softnum as sn
from benchmarks import twins
from softnum.train import Parameter, Tensor, activation
from softnum.train.engine import tensor as engine
from softnum.train.engine.arithmetic import FUNCTIONS
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.initial import DOMAIN_DROPOUT
from softnum.train.layers.attention import attention, causal_mask, matmul, softmax
from softnum.train.layers.normalisation import layer_norm, rms_norm
from softnum.train.layers.positions import rotary, turns
from softnum.train.layers.sequences import concatenate, dropout, embedding, permute, scale, take
from tests.support.train_cases import (
    BINARY64,
    MIXED,
    judge,
    judge_faults,
    layer_of,
    leaf,
    needs_torch,
    numerics_of,
    watch_operations,
)

ROWS = np.array([2, 0, 2, 4, 0, 2])
MASK = np.array([[True, False, True, True], [True, True, True, True], [False, False, True, False]])


def leaves_of(layer, **shapes):
    rng = np.random.default_rng(1)
    dtype = layer.numerics.backend.dtype
    return [leaf(layer, dtype.type(rng.standard_normal(shape)), name) for name, shape in shapes.items()]


#: operation -> (shapes of its leaves, what makes it of them)
CASES = {
    "layer_norm": ({"x": (3, 5), "gain": (5,), "bias": (5,)}, lambda leaves, layer: layer_norm(*leaves, layer)),
    "rms_norm": ({"x": (3, 5), "gain": (5,)}, lambda leaves, layer: rms_norm(*leaves, layer)),
    "rotary": ({"x": (6, 8)}, lambda leaves, layer: rotary(*leaves, layer, batch=2, heads=2, base=20.0)),
    "silu": ({"x": (3, 5)}, lambda leaves, layer: activation("silu", *leaves, layer)),
    "softmax": ({"x": (2, 3, 4)}, lambda leaves, layer: softmax(*leaves, layer)),
    "softmax of a mask": ({"x": (3, 4)}, lambda leaves, layer: softmax(*leaves, layer, mask=MASK)),
    "matmul": ({"a": (2, 3, 4), "b": (2, 4, 2)}, lambda leaves, layer: matmul(*leaves, layer)),
    "subtract": ({"x": (2, 3), "y": (2, 3)}, lambda leaves, layer: engine.subtract(*leaves, layer)),
    "scale": ({"x": (2, 3)}, lambda leaves, layer: scale(*leaves, 0.3, layer)),
    "permute": ({"x": (2, 3, 4)}, lambda leaves, layer: permute(*leaves, (2, 0, 1))),
    "take": ({"x": (5, 2)}, lambda leaves, layer: take(*leaves, np.array([4, 0, 3]))),
    "concatenate": ({"x": (2, 3), "y": (2, 1), "z": (2, 2)}, lambda leaves, layer: concatenate(leaves, axis=1)),
    "embedding": ({"weight": (5, 3)}, lambda leaves, layer: embedding(ROWS, *leaves, layer)),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_finite_differences(case, tmp_path, monkeypatch):
    shapes, make = CASES[case]
    layer = layer_of(tmp_path)
    leaves = leaves_of(layer, **shapes)
    judge(monkeypatch, lambda: make(leaves, layer), leaves)
    judge_faults(monkeypatch, lambda: make(leaves, layer))


@pytest.mark.parametrize("mask", [None, causal_mask(4)])
def test_gradients_of_attention_agree_with_finite_differences(mask, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves = leaves_of(layer, query=(8, 6), key=(8, 6), value=(8, 6))
    judge(monkeypatch, lambda: attention(*leaves, layer, batch=2, heads=3, mask=mask), leaves)


@pytest.mark.parametrize("mask", [None, causal_mask(4), np.arange(4).reshape(1, 4, 1, 1) >= np.arange(4)])
def test_gradients_of_attention_with_shared_keys_agree_with_finite_differences(mask, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves = leaves_of(layer, query=(8, 8), key=(8, 4), value=(8, 4))
    judge(monkeypatch, lambda: attention(*leaves, layer, batch=2, heads=4, kv_heads=2, mask=mask), leaves)


@pytest.mark.parametrize("mask", [None, causal_mask(4), np.arange(4).reshape(1, 4, 1, 1) >= np.arange(4)])
def test_shared_keys_are_keys_of_several_heads(mask, tmp_path):
    layer = layer_of(tmp_path)
    query, key, value = leaves_of(layer, query=(8, 8), key=(8, 4), value=(8, 4))
    many = [leaf(layer, np.repeat(x.value.reshape(8, 2, 2), 2, axis=1).reshape(8, 8), "many") for x in (key, value)]
    ours = attention(query, key, value, layer, batch=2, heads=4, kv_heads=2, mask=mask)
    assert np.array_equal(ours.value, attention(query, *many, layer, batch=2, heads=4, mask=mask).value)


@needs_torch
@pytest.mark.parametrize("kv_heads", [1, 3, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_pytorchs(causal, kv_heads, tmp_path):
    import torch

    layer = layer_of(tmp_path)
    leaves = leaves_of(layer, query=(8, 12), key=(8, 2 * kv_heads), value=(8, 2 * kv_heads))
    ours = attention(
        *leaves, layer, batch=2, heads=6, kv_heads=kv_heads, mask=causal_mask(4) if causal else None
    )  # fmt: skip
    theirs = [torch.tensor(x.value, requires_grad=True) for x in leaves]
    parts = [x.reshape(2, 4, -1, 2).transpose(1, 2) for x in theirs]
    out = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal, enable_gqa=True)
    out = out.transpose(1, 2).reshape(8, 12)
    error = np.random.default_rng(2).standard_normal((8, 12))
    ours.backward(error)
    out.backward(torch.tensor(error))
    np.testing.assert_allclose(ours.value, out.detach().numpy(), rtol=1e-12, atol=1e-13)
    for x, y in zip(leaves, theirs, strict=True):
        np.testing.assert_allclose(x.gradient, y.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_a_format_that_cannot_hold_epsilon_needs_another_for_statistics(tmp_path):
    for text, message in (
        ("", "divide: the result is NaN or infinite, and q4.4 has no code for it"),
        ("binary32", None),
    ):
        design = '[roles]\ndefault = "q4.4"\n' + (f'statistics = "{text}"\n' if text else "")
        layer = numerics_of(tmp_path, design).layer("conv")
        leaves = [leaf(layer, np.float32(value), "leaf") for value in ([[1, 1]], [1, 1], [0.5, 0.5])]
        if message is None:
            assert layer_norm(*leaves, layer).value.tolist() == [[0.5, 0.5]]
        else:
            with pytest.raises(ValueError, match=message):
                layer_norm(*leaves, layer)


@needs_torch
def test_layer_norm_is_pytorchs(tmp_path):
    import torch

    layer = layer_of(tmp_path)
    leaves = leaves_of(layer, x=(4, 7), gain=(7,), bias=(7,))
    theirs = [torch.tensor(x.value, requires_grad=True) for x in leaves]
    ours = layer_norm(*leaves, layer)
    out = torch.nn.functional.layer_norm(theirs[0], (7,), *theirs[1:])
    error = np.random.default_rng(2).standard_normal((4, 7))
    ours.backward(error)
    out.backward(torch.tensor(error))
    np.testing.assert_allclose(ours.value, out.detach().numpy(), rtol=1e-12, atol=1e-13)
    for x, y in zip(leaves, theirs, strict=True):
        np.testing.assert_allclose(x.gradient, y.grad.numpy(), rtol=1e-10, atol=1e-12)


@needs_torch
@pytest.mark.parametrize("carrier", ["binary32", "binary64"])
@pytest.mark.parametrize("operation", ["rms_norm", "silu", "rotary"])
def test_other_operations_are_pytorchs(operation, carrier, tmp_path):
    import torch

    layer = layer_of(tmp_path, BINARY64.replace("binary64", carrier))
    x, gain = leaves_of(layer, x=(6, 8), gain=(8,))
    leaves = [x, gain] if operation == "rms_norm" else [x]
    theirs = [torch.tensor(leaf.value, requires_grad=True) for leaf in leaves]
    if operation == "rms_norm":
        ours, out = rms_norm(*leaves, layer), torch.nn.functional.rms_norm(theirs[0], (8,), theirs[1], eps=1e-5)
    elif operation == "silu":
        ours, out = activation("silu", x, layer), torch.nn.functional.silu(theirs[0])
    else:
        ours = rotary(x, layer, batch=2, heads=2)
        heads = theirs[0].reshape(2, 3, 2, 4).transpose(1, 2)
        out = twins.rotated(heads, 10000.0).transpose(1, 2).reshape(6, 8)
    error = layer.numerics.backend.dtype.type(np.random.default_rng(2).standard_normal(ours.value.shape))
    ours.backward(error)
    out.backward(torch.tensor(error))
    wide = carrier == "binary64"
    near = {"rtol": 1e-12, "atol": 1e-13} if wide else {"rtol": 2e-6, "atol": 1e-6}
    np.testing.assert_allclose(ours.value, out.detach().numpy(), **near)
    for mine, other in zip(leaves, theirs, strict=True):
        np.testing.assert_allclose(mine.gradient, other.grad.numpy(), **near)


# -- every rounding ----------------------------------------------------------------------------------------------------
S, E = "e7m8", "e6m9"


def mixed_layer(tmp_path):
    numerics = numerics_of(tmp_path, MIXED)
    numerics.begin(1)
    return numerics.layer("conv")


def test_every_operation_of_a_layer_norm_is_rounded_to_its_role(tmp_path, monkeypatch):
    layer, seen = mixed_layer(tmp_path), watch_operations(monkeypatch)
    leaves = leaves_of(layer, x=(6, 5), gain=(5,), bias=(5,))
    y = layer_norm(*leaves, layer)
    tree = [("add", S)] * 3  # 5 values, and 6: 3, 2, 1
    assert seen == [
        *tree, ("subtract", E), ("multiply", S), *tree, ("add", S), ("sqrt", S), ("divide", S),
        ("multiply", E), ("multiply", E), ("add", E),
    ]  # fmt: skip
    assert np.array_equal(sn.quantize(y.value, E), y.value)
    seen.clear()
    y.backward(np.float32(np.random.default_rng(2).standard_normal((6, 5))))
    assert seen == [
        ("multiply", S), *tree, *tree, ("multiply", E), *tree, ("multiply", S), *tree,
        ("subtract", E), ("multiply", E), ("subtract", E), ("multiply", E),
    ]  # fmt: skip
    for parameter in leaves[1:]:
        assert np.array_equal(sn.quantize(parameter.gradient, "e6m7"), parameter.gradient) and parameter.gradient.any()


def test_every_operation_of_an_rms_norm_is_rounded_to_its_role(tmp_path, monkeypatch):
    layer, seen = mixed_layer(tmp_path), watch_operations(monkeypatch)
    leaves = leaves_of(layer, x=(6, 5), gain=(5,))
    y = rms_norm(*leaves, layer)
    tree = [("add", S)] * 3  # 5 values, and 6: 3, 2, 1
    assert seen == [
        ("multiply", S), *tree, ("add", S), ("sqrt", S), ("divide", S), ("multiply", E), ("multiply", E),
    ]  # fmt: skip
    seen.clear()
    y.backward(np.float32(np.random.default_rng(2).standard_normal((6, 5))))
    assert seen == [
        ("multiply", S), *tree, ("multiply", E), ("multiply", S), *tree, ("multiply", E), ("subtract", E),
        ("multiply", E),
    ]  # fmt: skip
    gain = leaves[1].gradient
    assert np.array_equal(sn.quantize(gain, "e6m7"), gain) and gain.any()


def test_every_operation_of_a_silu_and_of_rotary_positions_is_rounded_to_its_role(tmp_path, monkeypatch):
    layer, seen = mixed_layer(tmp_path), watch_operations(monkeypatch)
    (x,) = leaves_of(layer, x=(6, 4))
    error, turned = np.float32(np.random.default_rng(2).standard_normal((6, 4))), ["multiply"] * 2
    for y in (activation("silu", x, layer), rotary(x, layer, batch=2)):
        y.backward(error)
    assert [fmt for _, fmt in seen] == [E] * len(seen)
    assert [name for name, _ in seen] == [
        "silu", *turned, "subtract", *turned, "add", "sigmoid", "subtract", "multiply", "add", "multiply",
        *turned, "add", *turned, "subtract",
    ]  # fmt: skip


NARROW = """
[roles]
elementwise = "e6m9"
statistics = { format = "e7m8", rounding = "toward_zero" }
weight_gradients = "e6m7"
[loss]
scale = 64
"""


def narrow(x):
    return sn.quantize(np.float64(x), E)


def statistic(x):
    return sn.quantize(np.float64(x), S, rounding="toward_zero")


def summed(x):
    """The sum along the first axis, in pairs, in the role ``statistics``."""
    while len(x) > 1:
        even = len(x) // 2 * 2
        x = np.concatenate([statistic(x[0:even:2] + x[1:even:2]), x[even:]])
    return x[0]


def test_an_rms_norm_is_its_definition(tmp_path):
    """Stated once more; sums and products of such formats are exact in binary64, quotients and roots round once."""
    layer = layer_of(tmp_path, NARROW)
    leaves = leaves_of(layer, x=(6, 5), gain=(5,))
    error = np.float32(np.random.default_rng(2).standard_normal((6, 5)))
    y = rms_norm(*leaves, layer)
    y.backward(error)
    x, gain, e = (narrow(value) for value in (*(leaf.value for leaf in leaves), error))
    mean = statistic(summed(statistic(statistic(x) ** 2).T) / 5)[:, None]
    r = narrow(statistic(1 / statistic(np.sqrt(statistic(mean + statistic(1e-5))))))
    normal = narrow(x * r)
    assert np.array_equal(y.value, narrow(normal * gain))
    total = summed(statistic(statistic(e) * statistic(normal)))
    assert np.array_equal(leaves[1].gradient, sn.quantize(total / 64, "e6m7"))
    f = narrow(e * gain)
    slope = narrow(statistic(summed(statistic(statistic(f) * statistic(normal)).T) / 5))[:, None]
    assert np.array_equal(leaves[0].gradient, narrow(narrow(f - narrow(normal * slope)) * r))


def test_rotary_positions_are_their_definition(tmp_path):
    layer = layer_of(tmp_path, NARROW)
    (x,) = leaves_of(layer, x=(6, 8))
    error = np.float32(np.random.default_rng(2).standard_normal((6, 8)))
    y = rotary(x, layer, batch=2, heads=2, base=100.0)
    y.backward(error)
    rates = sn.pow(sn.array([100.0, 100.0], "binary64"), sn.array([-0.0, -0.5], "binary64"))
    angles = sn.array([[0.0], [1.0], [2.0]] * np.asarray(rates), "binary64")
    c, s = (narrow(np.asarray(table))[None, :, None] for table in (sn.cos(angles), sn.sin(angles)))
    for found, given, sign in ((y.value, x.value, 1), (x.gradient, error, -1)):
        a, b = np.moveaxis(narrow(given).reshape(2, 3, 2, 2, 2), -1, 0)
        want = narrow(narrow(a * c) - sign * narrow(b * s)), narrow(narrow(b * c) + sign * narrow(a * s))
        assert np.array_equal(found, np.stack(want, axis=-1).reshape(6, 8))


def test_a_silu_is_its_definition(tmp_path):
    layer = layer_of(tmp_path, NARROW)
    (x,) = leaves_of(layer, x=(6, 8))
    error = np.float32(np.random.default_rng(2).standard_normal((6, 8)))
    y = activation("silu", x, layer)
    y.backward(error)
    codes = sn.array(x.value, E)
    want, s = np.asarray(sn.silu(codes)), np.asarray(sn.sigmoid(codes))
    assert np.array_equal(y.value, want)
    slope = narrow(s + narrow(want * narrow(1 - s)))
    assert np.array_equal(x.gradient, narrow(narrow(error) * slope))


def test_angles_are_correctly_rounded_functions(tmp_path):
    cosines, sines = turns(40, 3, 10000.0)
    assert cosines.shape == (40, 3) and np.all(cosines[0] == 1) and not sines[0].any()
    rates = 10000.0 ** -(np.arange(3) / 3)
    np.testing.assert_allclose(cosines + 1j * sines, np.exp(1j * np.arange(40)[:, None] * rates), rtol=1e-13)


def test_heads_of_an_odd_size_cannot_be_turned(tmp_path):
    layer = layer_of(tmp_path)
    (x,) = leaves_of(layer, x=(4, 6))
    with pytest.raises(ValueError, match="rotary positions rotate pairs of features, and a head has 3"):
        rotary(x, layer, batch=2, heads=2)


def test_every_operation_of_a_softmax_is_rounded_to_its_role(tmp_path, monkeypatch):
    layer, seen = mixed_layer(tmp_path), watch_operations(monkeypatch)
    (x,) = leaves_of(layer, x=(3, 4))
    y = softmax(x, layer, mask=MASK)
    assert seen == [("subtract", E), ("exp", E), *[("add", S)] * 2, ("divide", E)]
    assert not y.value[~MASK].any() and np.abs(y.value.sum(axis=1) - 1).max() < 0.02
    seen.clear()
    y.backward(np.float32(np.random.default_rng(2).standard_normal((3, 4))))
    assert seen == [("multiply", S), *[("add", S)] * 2, ("subtract", E), ("multiply", E)]
    assert not x.gradient[~MASK].any() and np.array_equal(sn.quantize(x.gradient, E), x.gradient)


def test_the_products_of_an_attention_are_in_the_layers_units(tmp_path, monkeypatch):
    layer, seen, made = mixed_layer(tmp_path), [], sn.matmul

    def watched(a, b, unit, c=None, **options):
        for x, fmt in ((a, unit.operand[0]), (b, unit.operand[1])):
            assert np.array_equal(sn.quantize(x, fmt), x)
        seen.append((*map(str, unit.operand), a.shape, b.shape))
        return made(a, b, unit, c, **options)

    monkeypatch.setitem(FUNCTIONS, "matmul", watched)
    leaves = leaves_of(layer, query=(8, 6), key=(8, 6), value=(8, 6))
    attention(*leaves, layer, batch=2, heads=3).backward(np.ones((8, 6), np.float32))
    assert seen == [
        ("e4m3", "e5m2", (2, 3, 4, 2), (2, 3, 2, 4)), ("e4m3", "e5m2", (2, 3, 4, 4), (2, 3, 4, 2)),
        ("e5m2", "e5m2", (2, 3, 4, 2), (2, 3, 2, 4)), ("e4m3", "e5m2", (2, 3, 4, 4), (2, 3, 4, 2)),
        ("e5m2", "e5m2", (2, 3, 4, 4), (2, 3, 4, 2)), ("e4m3", "e5m2", (2, 3, 2, 4), (2, 3, 4, 4)),
    ]  # fmt: skip


def test_the_sum_of_a_softmax_does_not_stagnate(tmp_path):
    """4096 equal values: one after another, a sum in e6m9 would stop at 1024."""
    layer = numerics_of(tmp_path, '[roles]\ndefault = "e6m9"\n').layer("conv")
    y = softmax(leaf(layer, np.full((1, 4096), 0.5, np.float32), "x"), layer)
    assert np.all(y.value == 2.0**-12)


def test_the_gradient_of_an_embedding_is_a_product_with_ones(tmp_path):
    """Each row's errors in their order, in the unit's chunks of sums; stated once more, row by row."""
    text = MIXED.replace('accumulator = "binary32"', 'accumulator = "e4m3", chunk = 4')
    layer = numerics_of(tmp_path, text).layer("conv")
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 6, 60)
    weight = Parameter(np.float32(rng.integers(-8, 9, (7, 3))), layer, "embedding.weight")
    y = embedding(rows, weight, layer)
    assert np.array_equal(y.value, np.take(sn.quantize(weight.value, "e5m2"), rows, axis=0))
    error = np.float32(rng.standard_normal((60, 3)))
    y.backward(error)
    unit = sn.MadUnit("e4m3", operand=("e4m3", "e5m2"), chunk=4)
    rounded = sn.quantize(error, "e5m2")
    for row in range(7):
        mine = rounded[rows == row]
        total = sn.matmul(np.ones((1, len(mine)), np.float32), mine, unit)[0] if len(mine) else np.zeros(3)
        want = sn.quantize(total.astype(np.float64) / 64, "e6m7", rounding="toward_zero")
        assert np.array_equal(weight.gradient[row], want), row


def test_rows_of_an_embedding_have_random_bits_of_their_own(tmp_path):
    """Where the unit rounds stochastically: equal errors of different rows have different sums."""
    text = MIXED.replace('accumulator = "binary32"', 'accumulator = "e5m2", rounding = "stochastic"')
    layer = numerics_of(tmp_path, text).layer("conv")
    weight = Parameter(np.zeros((40, 1), np.float32), layer, "embedding.weight")
    y = embedding(np.repeat(np.arange(40), 2), weight, layer)
    y.backward(np.float32([[1.0], [0.15625]] * 40))  # 1 and 5 / 32 add up between 1 and 1.25
    assert set((64 * weight.gradient[:, 0]).tolist()) == {1.0, 1.25}


# -- dropout -----------------------------------------------------------------------------------------------------------
def test_gradients_of_a_dropout_agree_with_finite_differences(tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves = leaves_of(layer, x=(5, 4))

    def build():
        layer.numerics.begin(1)  # the same elements each time
        return dropout(*leaves, 0.4, layer, training=True)

    judge(monkeypatch, build, leaves)
    rule = engine.GRADIENTS["masked"]
    monkeypatch.setitem(engine.GRADIENTS, "masked", lambda node, e: (rule(node, e)[0] * 1.001,))
    with pytest.raises(ValueError, match="finite differences say"):
        judge(monkeypatch, build, leaves)


def test_what_a_dropout_keeps_follows_from_seed_iteration_place_and_element(tmp_path):
    layer = numerics_of(tmp_path, MIXED).layer("conv")
    x = leaf(layer, np.ones((30, 40), np.float32), "x")
    kept = []
    for iteration in (5, 6):
        layer.numerics.begin(iteration)
        for site in (0, 4):  # a dropout counts as four places: itself, its operand, its factor and its product
            y = dropout(x, 0.25, layer, training=True).value
            stream = (iteration << 16) + site
            words = np.random.Philox(key=[3, DOMAIN_DROPOUT << 32], counter=stream << 64).random_raw(1200)
            assert np.array_equal(y.ravel() != 0, words >= 2**62)
            assert set(np.unique(y)) - {0.0} <= {np.float32(1.33203125), np.float32(1.333984375)}  # 4/3 in e6m9
            kept.append(y != 0)
    assert all(0.7 < k.mean() < 0.8 for k in kept)
    assert len({k.tobytes() for k in kept}) == 4


def test_evaluation_drops_nothing(tmp_path):
    layer = layer_of(tmp_path)
    x = Tensor(np.ones((2, 2)), layer.numerics.backend)
    assert dropout(x, 0.5, layer, training=False) is x and dropout(x, 0.0, layer, training=True) is x


def test_rows_that_are_not_taken_have_no_gradient_and_the_loss_keeps_its_bits():
    """What the loss sends back is binary64, wider than a carrier: taking rows must not round it."""
    x = Tensor(np.ones((3, 2), np.float32), NumpyBackend(), requires_gradient=True)
    take(x, np.array([2, 0])).backward(np.array([[1 + 2.0**-50, 0.1], [0.2, 0.3]]))
    assert x.gradient.tolist() == [[0.2, 0.3], [0.0, 0.0], [1 + 2.0**-50, 0.1]]


def test_the_layer_that_adds_the_gradients_of_what_is_joined(tmp_path):
    numerics = numerics_of(tmp_path, MIXED)
    x, y = (leaf(numerics.layer(name), np.ones((1, 1), np.float32), name) for name in ("first", "conv"))
    assert concatenate([x, y]).layer is None and concatenate([x, x]).layer is x.layer
    assert concatenate([x, y], layer=y.layer).layer is y.layer


# -- what they refuse --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rate", [1.0, -0.1, True, "0.5"])
def test_a_rate_out_of_range_is_named(rate, tmp_path):
    layer = layer_of(tmp_path)
    with pytest.raises(ValueError, match=f"a dropout's rate must be at least 0 and below 1, got {rate!r}"):
        dropout(Tensor(np.ones((2, 2)), layer.numerics.backend), rate, layer, training=True)


def test_unusable_shapes_and_rows_are_named(tmp_path):
    layer = layer_of(tmp_path)
    x, y = leaves_of(layer, x=(2, 3), y=(2, 4))
    with pytest.raises(ValueError, match=r"matmul needs shapes .* got \(2, 3\) and \(2, 4\)"):
        matmul(x, y, layer)
    with pytest.raises(ValueError, match=r"a mask of shape \(3,\) must have the rank of \(2, 3\)"):
        softmax(x, layer, mask=np.ones(3, bool))
    with pytest.raises(ValueError, match="leave an element of each row"):
        softmax(x, layer, mask=np.array([[True, True, True], [False, False, False]]))
    with pytest.raises(ValueError, match="concatenate needs at least one tensor, got none"):
        concatenate([])
    for rows in ([0, 2], [-1], [1, 1]):
        with pytest.raises(ValueError, match=r"rows must be different numbers in 0\.\.1, got array"):
            take(x, np.array(rows))
    with pytest.raises(ValueError, match="x has rows 0 to 1, got 0 to 2"):
        embedding(np.array([0, 2]), x, layer)
