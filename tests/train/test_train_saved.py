"""Activations that are kept for the gradients of weights in a format of their own."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import Parameter, Settings, Tensor, load_design, run, workload
from softnum.train.engine.functions import operate
from softnum.train.engine.tensor import linear
from softnum.train.layers.attention import matmul as attention_product
from softnum.train.layers.convolution import conv2d
from tests.support.cases import cases
from tests.support.train_cases import numerics_of, spread

BASE = """
[roles]
input = "bfloat16"
weights = "bfloat16"
activations = "bfloat16"
errors = "bfloat16"
"""
#: what is kept, in addition to BASE; (the format of the copy, of an operand of backward_weight)
COPIES = {
    "narrower": ('saved_activations = { format = "e4m3fn", overflow = "saturate" }', ("e4m3fn", "bfloat16")),
    "then rounded again": (
        'saved_activations = "e5m10"\nbackward_weight = { activations = "e5m2", input = "e5m2" }', ("e5m10", "e5m2")
    ),
    "in blocks": (
        'saved_activations = { format = { element = "e4m3fn", scale = "binary32", block_size = 16 } }',
        (sn.BlockFormat("e4m3fn", "binary32", 16), "bfloat16"),
    ),
    "then in blocks": (
        'saved_activations = "e5m2"\nbackward_weight = { activations = "mxfp4", input = "mxfp4", errors = "mxfp4" }',
        ("e5m2", "mxfp4"),
    ),
}  # fmt: skip
BF16 = sn.MadUnit("binary32", operand="bfloat16")


def kept(x, name):
    """The numbers of x's copy."""
    fmt = COPIES[name][1][0]
    if isinstance(fmt, sn.BlockFormat):
        return sn.quantize(np.asarray(x, np.float64).ravel(), fmt).reshape(x.shape)
    return sn.quantize(np.asarray(x, np.float64), fmt, overflow="saturate" if fmt == "e4m3fn" else "infinity")


def of_weight(first, e, name):
    """A product of backward_weight: of numbers from a copy (M, K) by errors (K, N)."""
    fmt = sn.format(COPIES[name][1][1])
    if isinstance(fmt, sn.BlockFormat):
        unit = sn.BlockDotUnit("binary32", operand=fmt)
        return sn.matmul(sn.array(first, fmt, axis=-1), sn.array(e, fmt, axis=-2), unit)
    return sn.matmul(
        sn.quantize(first, fmt), sn.quantize(e, "bfloat16"), sn.MadUnit("binary32", operand=(fmt, "bfloat16"))
    )


def layer_of(tmp_path, name, more=""):
    return numerics_of(tmp_path, BASE + COPIES[name][0] + more).layer("conv")


@cases("name", COPIES)
def test_a_layers_products(name, tmp_path):
    rng, layer = np.random.default_rng(1), layer_of(tmp_path, name)
    x, w, e = (spread(rng, shape) for shape in ((40, 70), (70, 36), (40, 36)))
    source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
    y = linear(source, weight, None, layer)
    y.backward(e)
    x16, w16, e16 = (sn.quantize(v, "bfloat16") for v in (x, w, e))
    np.testing.assert_array_equal(y.value, sn.matmul(x16, w16, BF16))
    np.testing.assert_array_equal(source.gradient, sn.matmul(e16, w16.T.copy(), BF16))
    np.testing.assert_array_equal(weight.gradient, of_weight(kept(x, name).T.copy(), e, name))
    plain = of_weight(x.T.copy(), e, name)
    assert (weight.gradient != plain).any()


@cases("name", COPIES)
def test_a_convolutions_products(name, tmp_path):
    """The copy is of the images, as they are before they are unfolded."""
    rng, layer = np.random.default_rng(2), layer_of(tmp_path, name)
    x, w = spread(rng, (3, 4, 6, 5)), spread(rng, (6, 4, 3, 3))
    source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
    y = conv2d(source, weight, None, layer, padding=1)
    e = spread(rng, y.value.shape)
    y.backward(e)

    def patches(images):
        padded = np.pad(images, [(0, 0), (0, 0), (1, 1), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, 36)

    errors = np.ascontiguousarray(e.transpose(0, 2, 3, 1)).reshape(-1, 6)
    forward = sn.matmul(sn.quantize(patches(x), "bfloat16"), sn.quantize(w.reshape(6, -1).T, "bfloat16"), BF16)
    np.testing.assert_array_equal(y.value.transpose(0, 2, 3, 1).reshape(-1, 6), forward)
    gradient = of_weight(patches(kept(x, name)).T.copy(), errors, name)
    np.testing.assert_array_equal(weight.gradient.reshape(6, -1), gradient.T)


def test_of_an_attention_queries_and_probabilities_are_kept(tmp_path):
    """Keys and values take the place of weights."""
    rng, layer = np.random.default_rng(3), layer_of(tmp_path, "narrower")
    a, b, e = (spread(rng, shape) for shape in ((2, 9, 40), (2, 40, 7), (2, 9, 7)))
    first, second = (Tensor(x, layer.numerics.backend, requires_gradient=True) for x in (a, b))
    attention_product(first, second, layer).backward(e)
    for i in range(2):
        own = sn.matmul(sn.quantize(e[i], "bfloat16"), sn.quantize(b[i].T, "bfloat16"), BF16)
        np.testing.assert_array_equal(first.gradient[i], own)
        np.testing.assert_array_equal(second.gradient[i], of_weight(kept(a, "narrower")[i].T.copy(), e[i], "narrower"))


def test_what_is_pruned_is_kept_pruned(tmp_path):
    text = BASE.replace(
        'activations = "bfloat16"', 'activations = { format = "bfloat16", sparsity = { pattern = "2:4" } }'
    )
    layer = numerics_of(tmp_path, text + 'saved_activations = "e5m2"').layer("conv")
    x = Tensor(np.float32([[1, 2, 3.3, 4.4]]), layer.numerics.backend)
    weight = Parameter(np.ones((4, 1), np.float32), layer, "w")
    linear(x, weight, None, layer).backward(np.ones((1, 1), np.float32))
    assert weight.gradient.ravel().tolist() == [0, 0, 3.5, 4]


def test_a_copys_random_bits_are_its_own(tmp_path):
    """Rounding copies stochastically leaves the words of what was rounded before as they were."""
    text = BASE.replace('weights = "bfloat16"', 'weights = { format = "e5m2", rounding = "stochastic" }')
    found = []
    for more in ('saved_activations = "e5m2"', 'saved_activations = { format = "e5m2", rounding = "stochastic" }'):
        layer = numerics_of(tmp_path, text + more).layer("conv")
        rng = np.random.default_rng(4)
        x, weight = Parameter(spread(rng, (8, 16)), layer, "x"), Parameter(spread(rng, (16, 4)), layer, "w")
        y = linear(x, weight, None, layer)
        y.backward(spread(rng, (8, 4)))
        found.append((y.value, x.gradient, weight.gradient))
    assert all(np.array_equal(*pair) for pair in list(zip(*found, strict=True))[:2])
    assert (found[0][2] != found[1][2]).any()


def test_layers_may_keep_what_they_multiply(tmp_path):
    more = '\n[layers."conv".roles]\nsaved_activations = "none"'
    text = BASE + COPIES["narrower"][0]
    assert "saved_activations" in numerics_of(tmp_path, text).layer("conv").design.roles
    layer = numerics_of(tmp_path, text + more).layer("conv")
    assert "saved_activations" not in layer.design.roles
    assert "saved_activations" not in layer.design.describe()["roles"]


def test_records_say_it(tmp_path):
    facts = layer_of(tmp_path, "in blocks").design.describe()["roles"]["saved_activations"]
    assert (facts["format"], facts["bits"]) == ("e4m3fn_by16_binary32", 10)


WRONG = (
    ('saved_activations = { format = "e4m3fn", scale = { per = "row" } }', "scale: is of operands of matrix products"),
    ('saved_activations = { format = "e4m3fn", sparsity = { top_k = 0.5 } }', "this role cannot be sparse"),
    ('saved_activation = "e4m3fn"', "did you mean 'saved_activations'"),
)


@cases(("text", "message"), WRONG)
def test_what_a_copy_is_not(text, message, tmp_path):
    (tmp_path / "mine.toml").write_text(BASE + text)
    with pytest.raises(ValueError, match=message):
        load_design(tmp_path / "mine.toml")


def test_operators_with_sums_keep_what_they_multiply(tmp_path):
    layer = layer_of(tmp_path, "narrower")
    sums = sn.operator("function (A[M, K], B[K, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    x = Tensor(np.ones((2, 2), np.float32), layer.numerics.backend)
    with pytest.raises(ValueError, match='saved_activations = "none" for this layer'):
        operate(sums, (x, x), layer)


def test_feature_maps_are_counted_in_the_format_of_the_copy(tmp_path):
    found = {}
    for name in ("", "narrower", "in blocks"):
        (tmp_path / "mine.toml").write_text(BASE + (COPIES[name][0] if name else ""))
        work = workload("mlp", load_design(tmp_path / "mine.toml"), 32)
        last = {op.layer: i for i, op in enumerate(work.operations) if op.stage == "backward_weight" and op.gemm}
        found[name] = {
            (part.layer, part.format, part.bytes)
            for part in work.tensors
            if part.tensor_class == "feature_maps" and part.elements == 32 * 128 and part.live[1] >= last["fc2"]
            and part.name == "relu"
        }  # fmt: skip
        gemms = {op.gemm.formats for op in work.operations if op.stage == "backward_weight" and op.gemm}
        assert gemms == {("bfloat16", "bfloat16")}
    assert found == {
        "": {("fc1", "bfloat16", 8192)},
        "narrower": {("fc1", "e4m3fn", 4096)},
        "in blocks": {("fc1", "e4m3fn_by16_binary32", 5120)},
    }


@cases("network", ("lenet5", "transformer", "lstm"))
def test_networks_train(network, tmp_path):
    """Tables that are looked up have no activations to keep."""
    for i, name in enumerate(("narrower", "then in blocks", "in blocks")):
        (tmp_path / "mine.toml").write_text(BASE + COPIES[name][0])
        settings = Settings(network=network, epochs=1, batch=16, samples=32, held_out=16)
        run(load_design(tmp_path / "mine.toml"), settings, seed=1, out=tmp_path / f"{network}-{i}.jsonl")
