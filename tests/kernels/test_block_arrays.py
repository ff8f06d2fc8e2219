"""BlockArrays on the device: what moves their blocks, decodes and multiplies them."""

import pickle

import numpy as np
import pytest

import softnum as sn
from softnum.kernels.device.runtime import _cuda
from softnum.runtime.gateway import is_device_array

X = np.random.default_rng(1).standard_normal((3, 20, 4)).astype(np.float32)


def same(got, want):
    """The blocks of an array of the device are those of one of the host."""
    assert is_device_array(got.codes) and is_device_array(got.scales)
    got = got.copy_to_host()
    assert (got.format, got.axis, got.tensor_scale) == (want.format, want.axis, want.tensor_scale)
    for one, other in ((got.codes, want.codes), (got.scales, want.scales)):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["mxfp4_e2m1", "nvfp4"])
def test_moved(device, name):
    for axis in (1, -1):
        a, b = (sn.array(x, name, axis=axis) for x in (device.to_device(X), X))
        same(a, b)
        assert (a.shape, a.ndim, a.size, len(a), a.axis) == (b.shape, b.ndim, b.size, len(b), b.axis)
        for move in (
            lambda x: x.T, lambda x: x.swapaxes(0, 1), lambda x: x.swapaxes(-1, 0), lambda x: x.copy(),
            lambda x: x[1:] if x.axis == -1 else x[::2], lambda x: x[1], np.copy, lambda x: np.swapaxes(x, 1, 2),
        ):  # fmt: skip
            same(move(a), move(b))
        np.testing.assert_array_equal(a.T.decode().copy_to_host(), b.T.decode())
        np.testing.assert_array_equal(
            sn.decode(a, name, np.float64, axis=a.axis).copy_to_host(), sn.decode(b, name, axis=b.axis)
        )


def test_multiplied(device):
    for name in ("mxfp8_e4m3", "nvfp4"):
        unit = sn.BlockDotUnit("binary32", operand=name)
        x, y = X[0], X[1, :, :1]
        a, b = (sn.array(v, name, axis=0) for v in map(device.to_device, (x, np.ascontiguousarray(y))))
        want = sn.array(x, name, axis=0).T, sn.array(y, name, axis=0)
        np.testing.assert_array_equal(sn.matmul(a.T, b, unit).copy_to_host(), sn.matmul(*want, unit))
        got = sn.dot(a[:, 1], b[:, 0], unit, 1.5)
        assert got.shape == () and got.copy_to_host() == sn.dot(want[0][1], want[1][:, 0], unit, 1.5)


def test_what_lies_on_a_gpu_stays_there(device):
    a = sn.array(device.to_device(X[0]), "mxfp8_e4m3")
    assert repr(a) == "BlockArray(codes of shape (20, 4) on a GPU, mxfp8_e4m3, axis=-1)"
    for work in (lambda: np.asarray(a), lambda: sn.save("a.npz", a)):
        with pytest.raises(TypeError, match="copy them to the host first"):
            work()
    with pytest.raises(TypeError, match="no elementwise operations"):
        a + a
    with pytest.raises(ValueError, match=r"blocked axis of a BlockArray \(-1\) can only be indexed by a full slice"):
        a[:, 1]
    same(sn.BlockArray(a.codes, a.scales, "mxfp8_e4m3"), sn.array(X[0], "mxfp8_e4m3"))
    with pytest.raises(ValueError, match="need scales of shape"):
        sn.BlockArray(a.codes, a.codes, "mxfp8_e4m3")
    with pytest.raises(ValueError, match="200 is no code of e2m1fn"):
        sn.BlockArray(_cuda.to_device(np.full((2, 2), 200, np.uint8)), a.scales[:2, :1], "mxfp4")
    for work in (np.asarray, pickle.dumps):
        with pytest.raises(TypeError, match="codes of this BlockArray lie on a GPU; copy them to the host"):
            work(a)
    with pytest.raises(TypeError, match="BlockArray: scales lies on the host and codes on the device"):
        sn.BlockArray(a.codes, a.scales.copy_to_host(), "mxfp8_e4m3")
    with pytest.raises(TypeError, match="BlockArray: codes lies on the host and scales on the device"):
        sn.BlockArray(a.codes.copy_to_host(), a.scales, "mxfp8_e4m3")
