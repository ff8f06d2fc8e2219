"""BlockArray: shapes, indices, views, files, text."""

import copy
import pickle

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases

X = np.random.default_rng(1).standard_normal((3, 40, 5)).astype(np.float32)


def same(a, b):
    return (
        a.format == b.format and a.axis == b.axis and a.tensor_scale == b.tensor_scale
        and np.array_equal(a.codes, b.codes) and np.array_equal(a.scales, b.scales)
    )  # fmt: skip


@pytest.mark.parametrize("name", sn.formats.block_format_names())
def test_views_decode_to_views(name):
    for axis in range(-3, 3):
        a = sn.array(X, name, axis=axis)
        values = a.decode()
        assert a.shape == X.shape and a.ndim == 3 and a.size == 600 and len(a) == 3 and a.axis == axis % 3 - 3
        assert np.array_equal(np.asarray(a), values)
        assert np.array_equal(a.T.decode(), values.T)
        for i in range(-3, 3):
            for j in range(-3, 3):
                assert np.array_equal(a.swapaxes(i, j).decode(), values.swapaxes(i, j))
        other = (axis + 1) % 3
        for index in (1, slice(1, 3), slice(None, None, -1), -1):
            full = [slice(None)] * 3
            full[other] = index
            assert np.array_equal(a[tuple(full)].decode(), values[tuple(full)])
        full = [1, 2, 1]
        full[axis] = slice(None)
        assert np.array_equal(a[tuple(full)].decode(), values[tuple(full)]) and a[tuple(full)].axis == -1
        assert np.array_equal(a[...].decode(), values)
    a = sn.array(X, name, axis=2)
    assert np.array_equal(a[..., 3, :].decode(), a.decode()[..., 3, :])


def test_indices_refused():
    a = sn.array(X, "mxfp4", axis=1)
    with pytest.raises(ValueError, match=r"blocked axis of a BlockArray \(-2\) can only be indexed by a full slice"):
        a[0, 3]
    with pytest.raises(TypeError, match="integers, slices and"):
        a[[0, 1]]
    with pytest.raises(IndexError, match="too many indices"):
        a[0, :, 0, 0]
    for what, message in (
        (lambda: a == a, "cannot be compared"),
        (lambda: bool(a), "truth"),
        (lambda: np.add(a, 1), "numpy.add is not defined for softnum.BlockArray; block arrays have no elementwise"),
        (lambda: hash(a), "unhashable"),
    ):
        with pytest.raises(TypeError, match=message):
            what()
    with pytest.raises(ValueError, match="always need a copy"):
        np.asarray(a, copy=False)


@cases(
    "make",
    [
        lambda a: sn.add(a, a),
        lambda a: sn.multiply(sn.array([1.0], "e5m2"), a),
        lambda a: sn.fma(a, a, a, "e5m2"),
        lambda a: sn.convert(a, None, "e5m2"),
        lambda a: sn.exp(a),
        lambda a: sn.compare(a, a),
        lambda a: sn.classify(a),
        lambda a: sn.ops.to_integer(a),
        lambda a: sn.ops.ulp(a),
        lambda a: a + a,
        lambda a: 2 * a,
        lambda a: -a,
        lambda a: np.ones(5) / a,
        lambda a: a - sn.array([1.0], "e5m2"),
    ],
)
def test_no_elementwise_operations(make):
    way_out = r"no elementwise operations.*a\.decode\(\).*softnum\.array\(.*softnum\.matmul"
    with pytest.raises(TypeError, match=way_out):
        make(sn.array(X, "mxfp4", axis=1))


def test_numpy_functions_move_blocks_or_raise(tmp_path):
    a = sn.array(X, "mxfp4", axis=1)
    assert np.shape(a) == X.shape and np.ndim(a) == 3 and np.size(a) == 600 and np.size(a, 1) == 40
    assert same(np.copy(a), a) and same(np.swapaxes(a, 0, 1), a.swapaxes(0, 1))
    path = tmp_path / "never-made.npy"
    for what, message in (
        (lambda: np.save(path, a), "numpy.save is not defined for softnum.BlockArray.*softnum.save keeps it"),
        (lambda: np.savez(path, x=a), "numpy.savez is not defined.*softnum.save keeps it"),
        (lambda: np.sum(a), "numpy.sum is not defined.*order and the accumulator"),
        (lambda: a @ a, "matmul is not defined.*softnum.matmul with a unit"),
        (lambda: np.concatenate([a, a]), r"numpy.concatenate is not defined.*a.decode\(\)"),
    ):
        with pytest.raises(TypeError, match=message):
            what()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((0, 3), r"swapaxes: second=3 is out of range for an array of 3 dimensions \(-3 to 2\)"),
        ((-4, 0), "swapaxes: first=-4 is out of range for an array of 3 dimensions"),
        ((0, 1.0), "swapaxes: second=1.0 is out of range for an array of 3 dimensions"),
    ],
)
def test_swapaxes_names_the_axis(axes, message):
    with pytest.raises(np.exceptions.AxisError, match=message):
        sn.array(X, "mxfp4", axis=1).swapaxes(*axes)


def test_copies_and_files(tmp_path):
    for name in sn.formats.block_format_names():
        a = sn.array(X, name, axis=1)
        assert same(pickle.loads(pickle.dumps(a)), a) and same(copy.deepcopy(a), a)
        b = a.copy()
        b.codes[...] = 0
        assert not same(a, b)
        sn.save(tmp_path / "a.npz", a)
        assert same(sn.load(tmp_path / "a.npz"), a)
        sn.save(tmp_path / "b.npz", {"x": a, "y": sn.array([1.0], "e5m2"), "z": a.T})
        back = sn.load(tmp_path / "b.npz")
        assert same(back["x"], a) and same(back["z"], a.T) and back["y"].format == sn.format("e5m2")
        assert back["x"].format.name == a.format.name
    own = sn.array(X, sn.BlockFormat("q1.3", sn.FloatFormat(5, 2, specials="fn"), None, name="mine"), axis=0)
    sn.save(tmp_path / "c.npz", own)
    assert same(sn.load(tmp_path / "c.npz"), own)


def test_text():
    assert repr(sn.array([1.0, -6.0], "mxfp4")) == "BlockArray([ 1., -6.], mxfp4_e2m1, axis=-1)"
    assert repr(sn.array([1.0, -6.0], "nvfp4", tensor_scale=0.5)).endswith("nvfp4, axis=-1, tensor_scale=0.5)")
    huge = sn.BlockFormat("binary64", "e8m0fnu", 2)
    assert "BlockArray" in repr(sn.array([1.0], huge))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([1], [1], "e5m2"), "e5m2 is no block format"),
        (([1], [1, 2], "mxfp4"), r"need scales of shape \(1,\), got \(2,\)"),
        (([16], [1], "mxfp4"), "16 is no code of e2m1fn"),
        (([1], [256], "mxfp4"), "256 is no code of e8m0fnu"),
        (([1], [1], "mxfp4", 1), "axis=1 is out of range"),
        (([1], [1], "mxfp4", 0, 1.0), "has no tensor scale"),
        (([1], [1], "nvfp4", 0), "needs tensor_scale="),
        (([1], [1], "nvfp4", 0, 1e300), "not a positive value of binary32"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        sn.BlockArray(*arguments)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            "x",
            TypeError,
            "tensor_scale must be one number, a positive value of binary32, got 'x'; leave it out",
        ),
        ([1.0, 2.0], TypeError, r"tensor_scale must be one number.* got an array of shape \(2,\)"),
        (np.ones((1, 1)), TypeError, r"tensor_scale must be one number.* got an array of shape \(1, 1\)"),
        (True, TypeError, "tensor_scale must be one number.* got True"),
        (0.1, ValueError, "tensor_scale=0.1 is not a positive value of binary32; softnum.quantize rounds to one"),
        (10**400, ValueError, "is not a positive value of binary32"),
        (float("nan"), ValueError, "tensor_scale=nan is not a positive value of binary32"),
    ],
)
def test_tensor_scale_is_one_number(given, error, message):
    a = sn.array([1.0, 2.0], "nvfp4")
    for make in (
        lambda: sn.BlockArray(a.codes, a.scales, "nvfp4", 0, given),
        lambda: sn.array([1.0, 2.0], "nvfp4", tensor_scale=given),
        lambda: sn.quantize(np.ones(2), "nvfp4", tensor_scale=given),
    ):
        with pytest.raises(error, match=message):
            make()
