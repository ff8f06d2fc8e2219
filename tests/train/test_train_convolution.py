"""Convolution as a layer: gradients, PyTorch's, units and roles, and every rounding against the reference."""

import numpy as np
import pytest

import softnum as sn
from softnum import reference
from softnum.train import Tensor
from softnum.train.engine.arithmetic import FUNCTIONS
from softnum.train.layers.convolution import conv2d
from tests.support.train_cases import BINARY64, MIXED, judge, judge_faults, layer_of, leaf, needs_torch, numerics_of

GEOMETRIES = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": (2, 0), "stride": (1, 3)},
    {"dilation": 2, "padding": 2},
    {"groups": 2},
    {"groups": 4, "stride": 2, "padding": 1, "dilation": (1, 2)},
]


def case(layer, geometry, bias=True):
    rng = np.random.default_rng(1)
    x = leaf(layer, rng.standard_normal((2, 4, 5, 4)), "x")
    w = leaf(layer, rng.standard_normal((8, 4 // geometry.get("groups", 1), 3, 2)) / 4, "w")
    return [x, w, leaf(layer, rng.standard_normal(8), "b")] if bias else [x, w]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_gradients_agree_with_finite_differences(geometry, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves = case(layer, geometry)
    judge(monkeypatch, lambda: conv2d(*leaves, layer, **geometry), leaves)


def test_a_wrong_gradient_is_caught(tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves = case(layer, {})
    judge_faults(monkeypatch, lambda: conv2d(*leaves, layer))


def test_without_a_bias(tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves = case(layer, {}, bias=False)
    judge(monkeypatch, lambda: conv2d(*leaves, None, layer), leaves)
    with_zero = leaf(layer, np.zeros(8), "b")
    assert np.array_equal(conv2d(*leaves, None, layer).value, conv2d(*leaves, with_zero, layer).value)


@needs_torch
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_values_and_gradients_are_pytorchs(geometry, tmp_path):
    import torch

    layer = layer_of(tmp_path)
    leaves = case(layer, geometry)
    ours = conv2d(*leaves, layer, **geometry)
    error = np.random.default_rng(2).standard_normal(ours.value.shape)
    ours.backward(error)
    theirs = [torch.tensor(x.value, requires_grad=True) for x in leaves]
    out = torch.nn.functional.conv2d(*theirs, **geometry)
    out.backward(torch.tensor(error))
    np.testing.assert_allclose(ours.value, out.detach().numpy(), rtol=1e-12, atol=1e-12)
    for x, y in zip(leaves, theirs, strict=True):
        np.testing.assert_allclose(x.gradient, y.grad.numpy(), rtol=1e-12, atol=1e-12)


def test_each_product_has_its_unit_its_operands_and_its_key(tmp_path, monkeypatch):
    """The roles of `linear`, and the bias as the accumulator's initial value."""
    numerics = numerics_of(tmp_path, MIXED)
    layer = numerics.layer("conv")
    seen = []

    def watch(name, real):
        def watched(a, b, unit, *rest, **options):
            y = real(a, b, unit, *rest, **options)
            start = rest[0] if name == "matmul" else options.get("c")
            seen.append((name, unit, options["key"], a, b, start, y))
            return y

        return watched

    for name in ("conv2d", "conv2d_backward_data", "conv2d_backward_weight", "matmul"):
        monkeypatch.setitem(FUNCTIONS, name, watch(name, FUNCTIONS[name]))
    rng = np.random.default_rng(1)
    x, w, b = (leaf(layer, np.float32(rng.standard_normal(shape)), "x") for shape in ((2, 3, 5, 5), (4, 3, 3, 3), 4))
    numerics.begin(1)
    y = conv2d(x, w, b, layer, padding=1)
    y.backward(np.float32(rng.standard_normal(y.value.shape)))
    units = layer.design.units
    assert [(name, unit) for name, unit, *_ in seen] == [
        ("conv2d", units["forward"]),
        ("conv2d_backward_data", units["backward_data"]),
        ("conv2d_backward_weight", units["backward_weight"]),
        ("matmul", units["backward_weight"]),
    ]
    assert [key for _, _, key, *_ in seen] == [None, (3, (1 << 16) + 5), None, None]  # its site; the others are nearest
    for _, unit, _, a, other, *_ in seen:
        assert np.array_equal(sn.quantize(a, unit.operand[0]), a) and np.array_equal(
            sn.quantize(other, unit.operand[1]), other
        )
    # one element of each by the definition
    _, unit, _, a, weights, start, value = seen[0]
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    codes = [sn.encode(padded[1, :, 2:5, 0:3].ravel(), unit.operand[0]), sn.encode(weights[3].ravel(), unit.operand[1])]
    code, _ = reference.mad_dot(
        *(c.tolist() for c in codes), operand=unit.operand, accumulator=unit.accumulator, chunk=16,
        c=int(sn.encode(start[3, 0, 0], unit.accumulator)),
    )  # fmt: skip
    assert reference.to_fraction(code, unit.accumulator) == float(value[1, 3, 2, 0])
    # the gradient of the bias: ones with the errors, in the order (image, row, column)
    _, unit, _, ones, errors, _, sums = seen[3]
    assert np.array_equal(ones, np.ones((1, 50), np.float32))
    assert np.array_equal(errors, seen[1][3].transpose(0, 2, 3, 1).reshape(50, 4))
    assert np.array_equal(b.gradient, layer_rounded(layer, sums[0] / 64))


def layer_rounded(layer, x):
    return sn.quantize(x, layer.format("weight_gradients"), rounding="toward_zero")


def test_the_first_layer_takes_the_role_input_and_computes_no_gradient_of_it(tmp_path):
    numerics = numerics_of(tmp_path, MIXED)
    layer = numerics.layer("first")
    assert layer.design.units["forward"].operand[0] == sn.format("e2m5")
    x = Tensor(np.float32([[[[0.3]]]]), numerics.backend)
    y = conv2d(x, leaf(layer, np.float32([[[[1]]]]), "w"), None, layer)
    y.backward(np.ones((1, 1, 1, 1), np.float32))
    assert x.gradient is None
    assert y.value == np.float32(0.3125)  # 0.3 in e2m5


def test_a_format_without_a_zero_cannot_be_padded(tmp_path):
    text = BINARY64 + '[layers."conv".roles]\nactivations = "e8m0fnu"\n[layers."conv".units]\n'
    layer = layer_of(tmp_path, text + 'forward = { accumulator = "binary32" }\n')
    leaves = leaf(layer, np.ones((1, 1, 3, 3)), "x"), leaf(layer, np.ones((1, 1, 2, 2)), "w")
    with pytest.raises(ValueError, match="filled up with zeros, and e8m0fnu has none"):
        conv2d(*leaves, None, layer, padding=1)
