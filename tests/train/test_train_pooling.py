"""Pooling: gradients, PyTorch's, the first of equals, NaN, the order of sums."""

import numpy as np
import pytest

import softnum as sn
from softnum.train.engine.tensor import multiply, relu, reshape
from softnum.train.layers.pooling import avg_pool2d, max_pool2d, pooled_size
from tests.support.train_cases import MIXED, judge, judge_faults, layer_of, leaf, needs_torch, numerics_of

WINDOWS = [(2, None), (3, 2), (2, 1), ((2, 1), (3, 2)), ((7, 6), None), ((1, 3), (1, 2))]


def image(layer, shape=(1, 2, 7, 6)):
    return leaf(layer, np.random.default_rng(1).standard_normal(shape), "x")


@pytest.mark.parametrize("pool", [max_pool2d, avg_pool2d])
@pytest.mark.parametrize(("window", "stride"), WINDOWS)
def test_gradients_agree_with_finite_differences(pool, window, stride, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    x = image(layer)
    judge(monkeypatch, lambda: pool(x, layer, window=window, stride=stride), [x])


@pytest.mark.parametrize("pool", [max_pool2d, avg_pool2d])
def test_a_wrong_gradient_is_caught(pool, tmp_path, monkeypatch):
    layer = layer_of(tmp_path)
    x = image(layer)
    judge_faults(monkeypatch, lambda: pool(x, layer))


@needs_torch
@pytest.mark.parametrize("pool", [max_pool2d, avg_pool2d])
@pytest.mark.parametrize(("window", "stride"), WINDOWS)
def test_values_and_gradients_are_pytorchs(pool, window, stride, tmp_path):
    import torch

    layer = layer_of(tmp_path)
    x = image(layer)
    ours = pool(x, layer, window=window, stride=stride)
    error = np.random.default_rng(2).standard_normal(ours.value.shape)
    ours.backward(error)
    theirs = torch.tensor(x.value, requires_grad=True)
    out = getattr(torch.nn.functional, pool.__name__)(theirs, window, stride)
    out.backward(torch.tensor(error))
    np.testing.assert_allclose(ours.value, out.detach().numpy(), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(x.gradient, theirs.grad.numpy(), rtol=1e-13, atol=1e-14)


def test_the_first_of_equals_takes_the_gradient(tmp_path):
    layer = layer_of(tmp_path)
    x = leaf(layer, [[[[1.0, 2.0], [2.0, 2.0]]], [[[-0.0, 0.0], [-1.0, 0.0]]]], "x")
    y = max_pool2d(x, layer)
    assert np.signbit(y.value.ravel()).tolist() == [False, True]  # the first zero, with its sign
    y.backward(np.full((2, 1, 1, 1), 3.0))
    assert x.gradient.ravel().tolist() == [0, 3, 0, 0, 3, 0, 0, 0]


def test_nan_is_the_largest_and_keeps_its_place(tmp_path):
    layer = layer_of(tmp_path)
    x = leaf(layer, [[[[np.inf, np.nan], [np.nan, 7.0]]]], "x")
    y = max_pool2d(x, layer)
    y.backward(np.ones((1, 1, 1, 1)))
    assert np.isnan(y.value).all() and x.gradient.ravel().tolist() == [0, 1, 0, 0]


def test_the_average_is_a_tree_of_rounded_sums(tmp_path):
    numerics = numerics_of(tmp_path, '[roles]\nelementwise = "e6m3"\n')
    layer = numerics.layer("conv")
    values = np.float32([16, 1, 1, 1, 0.53125, 0.5, 8, 1, 3]).reshape(1, 1, 3, 3)
    q = lambda x: float(sn.quantize(np.float64(x), "e6m3"))  # noqa: E731
    a, b, c, d = q(16 + 1), q(1 + 1), q(0.5 + 0.5), q(8 + 1)  # 0.53125 enters as 0.5
    want = q(q(q(a + b) + q(c + d)) + 3)
    assert (a, want) == (16, 32)
    y = avg_pool2d(leaf(layer, values, "x"), layer, window=3)
    assert y.value.item() == q(want / 9)


def test_gradients_of_overlapping_windows_are_added_in_order(tmp_path):
    layer = numerics_of(tmp_path, '[roles]\nelementwise = "e6m3"\n').layer("conv")
    x = leaf(layer, np.float32([[[[0, 1, 0], [0, 0, 0]]]]), "x")
    y = max_pool2d(x, layer, window=2, stride=1)
    y.backward(np.float32([[[[16, 1]]]]))
    # the middle is place 0 of the second window, then place 1 of the first: 1 + 16 rounds to 16
    assert x.gradient.ravel().tolist() == [0, 16, 0, 0, 0, 0]
    y = max_pool2d(x, layer, window=1)
    y.backward(np.full((1, 1, 2, 3), 17, np.float32))
    assert x.gradient.ravel().tolist() == [17] * 6  # nothing is added, nothing rounded


def test_random_bits_follow_from_the_site_alone(tmp_path):
    numerics = numerics_of(tmp_path, MIXED)
    layer = numerics.layer("conv")
    x = leaf(layer, np.float32(np.random.default_rng(1).standard_normal((2, 3, 6, 6))), "x")
    values = []
    for iteration in (4, 4, 5):
        numerics.begin(iteration)
        y = avg_pool2d(x, layer, window=3)
        y.backward(np.ones((2, 3, 2, 2), np.float32))
        values.append((y.value.tobytes(), x.gradient.tobytes()))
    assert values[0] == values[1] and values[0][0] != values[2][0] and values[0][1] != values[2][1]


def test_a_result_of_elementwise_arithmetic_stays_one(tmp_path):
    """relu, reshape and max_pool2d leave the format alone, so gradients of their results are summed as before them."""
    layer = layer_of(tmp_path)
    x = image(layer)
    assert relu(x).layer is reshape(x, (-1,)).layer is max_pool2d(x, layer).layer is layer
    assert multiply(x, x, layer).layer is layer


@pytest.mark.parametrize(
    ("size", "window", "stride", "message"),
    [
        ((4, 2), 3, 1, r"a window of \(3, 3\) does not fit an image of \(4, 2\)"),
        ((4, 4), 0, 1, "window must be a positive integer, or a pair of them, got 0"),
        ((4, 4), (1, 2, 3), 1, r"window must be a positive integer, or a pair of them, got \(1, 2, 3\)"),
        ((4, 4), 2, True, "stride must be a positive integer, or a pair of them, got True"),
    ],
)
def test_windows_must_fit(size, window, stride, message):
    with pytest.raises(ValueError, match=message):
        pooled_size(size, window, stride)
