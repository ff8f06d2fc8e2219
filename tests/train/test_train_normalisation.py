"""Batch and group normalisation: gradients, PyTorch's, running statistics, and each rounding where the text says."""

import numpy as np
import pytest

import softnum as sn
from softnum.train.layers.normalisation import Buffer, batch_norm, group_norm
from tests.support.train_cases import (
    MIXED,
    judge,
    judge_faults,
    layer_of,
    leaf,
    needs_torch,
    numerics_of,
    watch_operations,
)


def case(layer, shape=(3, 2, 3, 2)):
    """Images, gain and bias of a layer, and running statistics."""
    rng = np.random.default_rng(1)
    dtype = layer.numerics.backend.dtype
    leaves = [
        leaf(layer, dtype.type(value), name)
        for value, name in (
            (0.5 + 2 * rng.standard_normal(shape), "x"),
            (1 + rng.random(shape[1]), "gain"),
            (rng.random(shape[1]), "bias"),
        )
    ]  # fmt: skip
    if dtype == np.float64:
        buffers = rng.random(shape[1]), 1 + rng.random(shape[1])
    else:
        buffers = np.float32([0.25, -0.5]), np.float32([1.5, 3])
    return leaves, [Buffer(value, name) for value, name in zip(buffers, ("mean", "variance"), strict=True)]


@pytest.mark.parametrize("training", [True, False])
def test_gradients_agree_with_finite_differences(training, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves, buffers = case(layer)
    build = lambda: batch_norm(*leaves, *buffers, layer, training=training)  # noqa: E731
    judge(monkeypatch, build, leaves)
    judge_faults(monkeypatch, build)


@needs_torch
@pytest.mark.parametrize("training", [True, False])
def test_values_gradients_and_statistics_are_pytorchs(training, tmp_path):
    import torch

    layer = layer_of(tmp_path)
    leaves, buffers = case(layer)
    running = [torch.tensor(buffer.value) for buffer in buffers]
    theirs = [torch.tensor(x.value, requires_grad=True) for x in leaves]
    share = float(np.float32(0.1))
    for _ in range(3):
        ours = batch_norm(*leaves, *buffers, layer, training=training)
        out = torch.nn.functional.batch_norm(theirs[0], *running, *theirs[1:], training=training, momentum=share)
    error = np.random.default_rng(2).standard_normal(ours.value.shape)
    ours.backward(error)
    out.backward(torch.tensor(error))
    np.testing.assert_allclose(ours.value, out.detach().numpy(), rtol=1e-12, atol=1e-13)
    for x, y in zip(leaves, theirs, strict=True):
        np.testing.assert_allclose(x.gradient, y.grad.numpy(), rtol=1e-11, atol=1e-12)
    for x, y in zip(buffers, running, strict=True):
        np.testing.assert_allclose(x.value, y.numpy(), rtol=1e-13)


def test_evaluation_leaves_the_running_statistics_alone(tmp_path):
    layer = layer_of(tmp_path)
    leaves, buffers = case(layer)
    before = [buffer.value.copy() for buffer in buffers]
    batch_norm(*leaves, *buffers, layer, training=False)
    assert all(np.array_equal(x, buffer.value) for x, buffer in zip(before, buffers, strict=True))


def test_every_operation_is_rounded_to_its_role(tmp_path, monkeypatch):
    """Each operation equals the reference's; and how many there are of each role is what the text says."""
    numerics = numerics_of(tmp_path, MIXED)
    layer = numerics.layer("conv")
    seen = watch_operations(monkeypatch)
    numerics.begin(1)
    leaves, buffers = case(layer)
    y = batch_norm(*leaves, *buffers, layer, training=True)
    s, e = "e7m8", "e6m9"
    tree = [("add", s)] * 5  # 18 values: 9, 5 (an odd one waits), 3, 2, 1
    running = [("subtract", s)] * 2
    assert seen == [
        *tree, ("subtract", e), ("multiply", s), *tree, *running, ("add", s), ("sqrt", s), ("divide", s),
        ("multiply", e), ("multiply", e), ("add", e),
    ]  # fmt: skip
    for buffer in buffers:
        assert np.array_equal(sn.quantize(buffer.value, s), buffer.value)
    assert np.array_equal(sn.quantize(y.value, e), y.value)
    seen.clear()
    y.backward(np.float32(np.random.default_rng(2).standard_normal(y.value.shape)))
    assert seen == [
        ("multiply", s), *tree, *tree, ("subtract", e), ("multiply", e), ("subtract", e), *[("multiply", e)] * 2,
    ]  # fmt: skip
    for parameter in leaves[1:]:
        x = parameter.gradient
        assert np.array_equal(sn.quantize(x, "e6m7"), x) and x.any()


def test_the_mean_of_a_narrow_format_does_not_stagnate(tmp_path):
    """131072 equal values: one after another, a sum in e6m9 would stop at 1024 of them."""
    layer = numerics_of(tmp_path, '[roles]\ndefault = "e6m9"\n').layer("conv")
    x = leaf(layer, np.full((128, 1, 32, 32), 0.75, np.float32), "x")
    gain, bias = leaf(layer, np.float32([1]), "gain"), leaf(layer, np.float32([0]), "bias")
    mean, variance = Buffer(np.float32([0.75]), "mean"), Buffer(np.float32([0]), "variance")
    y = batch_norm(x, gain, bias, mean, variance, layer, training=True)
    assert mean.value == 0.75 and variance.value == 0 and not y.value.any()


def test_one_element_has_no_variance(tmp_path):
    layer = layer_of(tmp_path)
    leaves, buffers = case(layer, (1, 2, 1, 1))
    with pytest.raises(ValueError, match=r"a channel of a training batch of shape \(1, 2, 1, 1\) has 1 element"):
        batch_norm(*leaves, *buffers, layer, training=True)
    assert np.isfinite(batch_norm(*leaves, *buffers, layer, training=False).value).all()


# -- groups ------------------------------------------------------------------------------------------------------------
GROUPS = (2, 4, 3, 2)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_gradients_of_groups_agree_with_finite_differences(groups, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    leaves, _ = case(layer, GROUPS)
    build = lambda: group_norm(*leaves, layer, groups=groups)  # noqa: E731
    judge(monkeypatch, build, leaves)
    judge_faults(monkeypatch, build)


@needs_torch
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_values_and_gradients_of_groups_are_pytorchs(groups, tmp_path):
    import torch

    layer = layer_of(tmp_path)
    leaves, _ = case(layer, GROUPS)
    theirs = [torch.tensor(x.value, requires_grad=True) for x in leaves]
    ours = group_norm(*leaves, layer, groups=groups)
    out = torch.nn.functional.group_norm(theirs[0], groups, *theirs[1:])
    error = np.random.default_rng(2).standard_normal(ours.value.shape)
    ours.backward(error)
    out.backward(torch.tensor(error))
    np.testing.assert_allclose(ours.value, out.detach().numpy(), rtol=1e-12, atol=1e-13)
    for x, y in zip(leaves, theirs, strict=True):
        np.testing.assert_allclose(x.gradient, y.grad.numpy(), rtol=1e-11, atol=1e-12)


def test_every_operation_of_groups_is_rounded_to_its_role(tmp_path, monkeypatch):
    numerics = numerics_of(tmp_path, MIXED)
    layer = numerics.layer("conv")
    seen = watch_operations(monkeypatch)
    numerics.begin(1)
    leaves, _ = case(layer, GROUPS)
    y = group_norm(*leaves, layer, groups=2)
    s, e = "e7m8", "e6m9"
    tree = [("add", s)] * 4  # 12 values: 6, 3, 2 (an odd one waits), 1; and 12 pixels of each channel
    assert seen == [
        *tree, ("subtract", e), ("multiply", s), *tree, ("add", s), ("sqrt", s), ("divide", s),
        ("multiply", e), ("multiply", e), ("add", e),
    ]  # fmt: skip
    assert np.array_equal(sn.quantize(y.value, e), y.value)
    seen.clear()
    y.backward(np.float32(np.random.default_rng(2).standard_normal(y.value.shape)))
    assert seen == [
        ("multiply", s), *tree, *tree, ("multiply", e), *tree, ("multiply", s), *tree,
        ("subtract", e), ("multiply", e), ("subtract", e), ("multiply", e),
    ]  # fmt: skip
    for parameter in leaves[1:]:
        x = parameter.gradient
        assert np.array_equal(sn.quantize(x, "e6m7"), x) and x.any()


@pytest.mark.parametrize("groups", [0, 3, True, 2.0])
def test_groups_must_divide_the_channels(groups, tmp_path):
    layer = layer_of(tmp_path)
    leaves, _ = case(layer, GROUPS)
    with pytest.raises(ValueError, match=f"groups must be a positive integer that divides 4 channels, got {groups}"):
        group_norm(*leaves, layer, groups=groups)


def test_a_group_of_one_element_has_no_variance(tmp_path):
    layer = layer_of(tmp_path)
    leaves, _ = case(layer, (3, 4, 1, 1))
    with pytest.raises(ValueError, match=r"a group of images of shape \(3, 4, 1, 1\) has 1 element"):
        group_norm(*leaves, layer, groups=4)
