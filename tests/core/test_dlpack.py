"""DLPack: values of Arrays without a copy where DLPack has their type, and a refusal where it has not."""

import numpy as np
import pytest

import softnum as sn

EDGES = np.array([0.0, -0.0, 1.5, 5e-324, 1e-45, np.inf, -np.inf, np.nan, 65504.0, 3.4e38])


@pytest.mark.parametrize("name", ["binary16", "binary32", "binary64"])
def test_values_are_the_arrays_own_memory(name):
    a = sn.array(EDGES, name)
    values = np.from_dlpack(a)
    assert values.dtype == np.dtype(name.replace("binary", "float")) and np.shares_memory(values, a.codes)
    assert values.tobytes() == a.codes.tobytes()
    assert a.__dlpack_device__() == (1, 0)
    every = sn.array(np.arange(24.0).reshape(4, 6), name)[::2, ::-3]
    assert np.array_equal(np.from_dlpack(every), [[5, 2], [17, 14]])
    back = a.__array_namespace__().from_dlpack(values)
    assert back.format == a.format and np.shares_memory(back.codes, a.codes)
    assert np.from_dlpack(sn.array(2.5, name)).shape == ()


@pytest.mark.parametrize("name", ["bfloat16", "e4m3fn", "q4.4", "posit16", "binary128", "q8.0"])
def test_other_formats_are_no_types_of_dlpack(name):
    a = sn.array([1.0, 2.0], name)
    for call in (np.from_dlpack, lambda a: a.__dlpack_device__(), lambda a: a.__dlpack__(copy=True)):
        with pytest.raises(BufferError, match=r"DLPack has no type of .*a\.codes"):
            call(a)
    with pytest.raises((AttributeError, TypeError, BufferError), match="dlpack"):
        np.from_dlpack(sn.array(np.ones(32), "mxfp8_e4m3"))


def test_what_else_dlpack_has():
    xp = sn.array([1.0], "binary32").__array_namespace__()
    assert isinstance(xp.from_dlpack(np.arange(3)), np.ndarray)
    with pytest.raises(ValueError, match="lies on the host"):
        xp.from_dlpack(np.ones(2), device="cuda")
    copied = sn.array([1.0, 2.0], "binary32").__dlpack__(copy=True, max_version=(1, 0), dl_device=(1, 0))
    assert "dltensor" in repr(copied)
    with pytest.raises(BufferError):
        sn.array([1.0], "binary32").__dlpack__(dl_device=(2, 0))


def test_pytorch_shares_the_memory():
    torch = pytest.importorskip("torch", reason="extra torch is not installed")
    a = sn.array([[1.0, 2.5], [0.1, -3.0]], "binary32")
    tensor = torch.from_dlpack(a)
    assert tensor.dtype == torch.float32 and tensor.tolist() == np.asarray(a, np.float32).tolist()
    tensor[0, 1] = 7
    assert float(a[0, 1]) == 7
    with pytest.raises(BufferError, match="no type of e5m2"):
        torch.from_dlpack(sn.array([1.0], "e5m2"))


def test_values_pass_to_a_strict_array_api():
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    a = sn.array([1.0, 2.5, 0.1], "binary64")
    assert bool(xp.all(xp.from_dlpack(a) == xp.asarray([1.0, 2.5, 0.1])))
