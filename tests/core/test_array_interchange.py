"""Arrays of NumPy's floats and of ml_dtypes' in and out: the same bits, no copy."""

import subprocess
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import softnum as sn
from softnum.formats.names import dtype_of_format, format_of_dtype
from tests.support.cases import cases

TYPES = {
    "binary16": np.float16, "binary32": np.float32, "binary64": np.float64, "bfloat16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3, "e3m4": ml_dtypes.float8_e3m4,
    "e4m3fn": ml_dtypes.float8_e4m3fn, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "e3m2fn": ml_dtypes.float6_e3m2fn, "e2m3fn": ml_dtypes.float6_e2m3fn, "e2m1fn": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def some_codes(name):
    fmt = sn.format(name)
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    rng = np.random.Generator(np.random.Philox(2))
    return (rng.integers(0, 2**64, 1000, dtype=np.uint64) >> np.uint64(64 - fmt.bits)).astype(fmt.storage_dtype)


@cases(("name", "dtype"), TYPES.items(), ids=TYPES)
def test_the_same_bits_without_a_copy(name, dtype):
    codes = some_codes(name)
    x = codes.view(dtype)
    for a in (sn.Array(x), sn.array(x), sn.Array(x, name), sn.Array(x, dtype), sn.Array(x[::3])):
        assert a.format == sn.format(name) and a.format.name == name and np.shares_memory(a.codes, codes)
        back = a.to_numpy()
        assert back.dtype == dtype and np.shares_memory(back, codes) and back.shape == a.shape
        assert np.array_equal(back.view(codes.dtype), a.codes)
    with np.errstate(invalid="ignore"):
        values = x.astype(np.float64)
    assert np.array_equal(np.asarray(sn.Array(x)), values, equal_nan=True)
    assert np.array_equal(np.signbit(np.asarray(sn.Array(x)))[values == 0], np.signbit(values)[values == 0])
    assert sn.Array(x[3]).shape == () and sn.Array(x[3]).codes == codes[3]
    assert sn.Array(x.reshape(2, -1).T).shape == (x.size // 2, 2)
    assert sn.format(dtype) == sn.format(np.dtype(dtype)) == sn.format(name) and format_of_dtype(x.dtype).name == name
    assert dtype_of_format(sn.format(name)) == dtype
    a = sn.Array(x)
    a[0] = sn.Array(codes[1:2], name)[0]  # seen on both sides
    assert codes[0] == codes[1]


@cases(("name", "dtype"), TYPES.items(), ids=TYPES)
def test_values_of_these_types_are_encoded_exactly(name, dtype):
    codes = some_codes(name)
    x = codes.view(dtype)
    for target in ("binary64", "e15m48", "e5m2", "binary8p3se"):
        assert np.array_equal(sn.encode(x, target), sn.convert(codes, name, target))
        assert np.array_equal(
            sn.array(x, target, rounding="down").codes, sn.convert(codes, name, target, rounding="down")
        )
    table = sn.CustomFormat.from_table([0.0, 1.0, -0.25, float("nan")])
    assert np.array_equal(sn.encode(x, table), sn.encode(np.asarray(sn.Array(x)), table))
    assert sn.array([1.0, 2.0], "binary16").astype(dtype).format == sn.format(name)


def test_every_float_of_ml_dtypes_is_known():
    for name in ml_dtypes.__all__:
        if name.startswith(("float", "bfloat")):
            assert format_of_dtype(np.dtype(getattr(ml_dtypes, name))) is not None, name


def test_what_is_no_float_is_refused():
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2):
        with pytest.raises(TypeError, match="Array: give the format of the encodings; only arrays with a float"):
            sn.Array(np.zeros(3, dtype))
        with pytest.raises(TypeError, match="are unsigned integers, got an array of u?int"):
            sn.Array(np.zeros(3, dtype), "e2m1fn")
        with pytest.raises(TypeError, match="expected a format or the name of one"):
            sn.format(dtype)
        with pytest.raises(TypeError, match="encode takes numbers"):
            sn.encode(np.zeros(3, dtype), "e2m1fn")
    with pytest.raises(TypeError, match="codes of e4m3fn are unsigned integers, got an array of float8_e5m2"):
        sn.Array(np.zeros(3, ml_dtypes.float8_e5m2), "e4m3fn")
    with pytest.raises(ValueError, match="255 is no code of e2m1fn"):  # bits that the type does not have
        sn.Array(np.array([255], np.uint8).view(ml_dtypes.float4_e2m1fn))
    with pytest.raises(TypeError, match="got float8_e5m2 .softnum.Array takes it as it is"):
        sn.quantize(np.zeros(3, ml_dtypes.float8_e5m2), "e4m3fn")
    with pytest.raises(TypeError, match="got bfloat16 .softnum.Array takes it as it is"):
        sn.quantize(np.zeros(3, ml_dtypes.bfloat16), "e4m3fn")
    for name in ("tf32", "q4.4", "dlfloat16", "e6m9", "binary8p3se"):
        with pytest.raises(ValueError, match=f"neither NumPy nor ml_dtypes has a dtype for {name}; use .codes"):
            sn.array([1.0], name).to_numpy()
    with pytest.raises(ValueError, match="neither NumPy nor ml_dtypes has a dtype for mine"):
        sn.Array([1], sn.CustomFormat.from_table([0.0, 1.0], name="mine")).to_numpy()


def test_arrays_and_other_byte_orders():
    x = np.array([1.5, -2.0], ">f2")
    assert sn.Array(x).tolist() == [1.5, -2.0] and sn.Array(x).codes.dtype == np.uint16
    a = sn.Array(np.float32([1.5]))
    for same in (sn.Array(a), sn.Array(a, "binary32"), sn.array(a)):
        assert np.shares_memory(same.codes, a.codes) and same.format == a.format
    with pytest.raises(ValueError, match="got an Array of binary32, not of q16.16; convert it with .astype"):
        sn.Array(a, "q16.16")
    assert sn.array(a, "e5m2").format == sn.format("e5m2") and sn.array(a, "e5m2", rounding="up").tolist() == [1.5]
    third = sn.array([Fraction(1, 3)], "q1.63")  # not by way of binary64
    assert sn.array(third, "e4m59").codes == sn.encode(Fraction(round(Fraction(2**63, 3)), 2**63), "e4m59")


def test_ml_dtypes_is_not_imported_unless_asked_for():
    code = """
import sys, numpy as np, softnum as sn
a = sn.array([1.0, 2.0], "e5m2") + 1
sn.Array(np.float16([1])).to_numpy()
assert "ml_dtypes" not in sys.modules
sys.modules["ml_dtypes"] = None
try:
    a.to_numpy()
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "NumPy has no dtype for e5m2, and ml_dtypes is not installed; use .codes\n"


TORCH = {
    "float32": "binary32", "float": "binary32", "float64": "binary64", "float16": "binary16", "half": "binary16",
    "bfloat16": "bfloat16", "float8_e4m3fn": "e4m3fn", "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2": "e5m2",
    "float8_e5m2fnuz": "e5m2fnuz", "float8_e8m0fnu": "e8m0fnu", "float4_e2m1fn_x2": "e2m1fn",
}  # fmt: skip


def dtype_like_pytorchs(name):
    """What PyTorch's dtypes have that softnum knows them by, where PyTorch is not installed."""
    kind = type("dtype", (), {"__module__": "torch", "__str__": lambda self: f"torch.{name}"})
    return kind()


@cases("name", TORCH)
def test_dtypes_of_pytorch_are_formats(name):
    own = {"float": "float32", "half": "float16"}.get(name, name)  # as they print
    assert sn.format(dtype_like_pytorchs(own)) == sn.format(TORCH[name])
    with pytest.raises(TypeError, match="expected a format or the name of one"):
        sn.format(dtype_like_pytorchs("int8"))


@cases("name", TORCH)
def test_dtypes_of_the_real_pytorch(name):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this PyTorch has no {name}")
    assert sn.format(dtype) == sn.format(TORCH[name])
    bits = 8 if name.startswith("float4") else sn.format(dtype).bits
    assert dtype.itemsize * 8 == bits
    assert sn.quantize(np.float32([0.3]), dtype) == sn.quantize(np.float32([0.3]), TORCH[name])
