"""What callers in C reach by addresses (csrc/dispatch/native.h) has the bits of NumPy's functions."""

import ctypes

import numpy as np
import pytest

import softnum as sn
from softnum.formats.codec import NEAREST, Rounding
from softnum.mac.products.engines import definition_of, fast_of
from softnum.runtime import _core
from tests.support.cases import cases

ROUND = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)
DECODE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
LANES, NO_CODE = 16, 1


class Product(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("a", "b", "c", "out")),
        *((name, ctypes.c_ssize_t) for name in ("lda", "ldb", "ldc", "ldo", "m0", "m1", "n", "k")),
        ("key", ctypes.c_uint32 * 2), ("key2", ctypes.c_uint32 * 2), ("batch", ctypes.c_uint32),
    ]  # fmt: skip


RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Product))


def words(key, domain):
    return (ctypes.c_uint32 * 2)(*_core.philox_key(*key, domain))


def rounded(x, fmt, key=(0, 0), **how):
    kernels = sn.format(fmt).codec.kernels(sn.format(fmt), Rounding(**how))
    values, _, data = kernels.native[x.dtype == np.float64]
    out = np.empty_like(x)
    found = ROUND(values)(data, x.ctypes.data, out.ctypes.data, x.size, ctypes.addressof(words(key, 0)))
    return found, out


@cases("dtype", [np.float32, np.float64])
@cases("fmt", ["e4m3fn", "e5m2", "q4.4"])
def test_roundings(fmt, dtype):
    x = np.linspace(-9, 700, 301).astype(dtype)
    assert rounded(x, fmt)[1].tobytes() == sn.quantize(x, fmt).tobytes()
    how = {"rounding": "stochastic", "stochastic_bits": 9}
    assert rounded(x, fmt, (7, 2), **how)[1].tobytes() == sn.quantize(x, fmt, key=(7, 2), **how).tobytes()


def test_a_nan_without_code():
    assert rounded(np.float32([1, np.nan]), "q4.4")[0] == NO_CODE
    assert rounded(np.float32([1, np.nan]), "e5m2")[0] == 0


@cases("fmt", ["e5m2", "q8.0", "binary32"])
def test_codes_and_back(fmt):
    fmt, x = sn.format(fmt), np.float64([1, -2, 3, 0, 96])
    values, codes, data = fmt.codec.kernels(fmt, NEAREST).native[1]
    assert values
    found = np.empty(5, np.uint64)
    assert ROUND(codes)(data, x.ctypes.data, found.ctypes.data, 5, ctypes.addressof(words((0, 0), 0))) == 0
    assert np.array_equal(found, sn.encode(x, fmt))
    decoder, back = _core.Decoder(fmt, 64), np.empty(5)
    function, data = decoder.native
    DECODE(function)(data, found.ctypes.data, back.ctypes.data, 5)
    assert np.array_equal(back, x)
    assert (
        fmt.codec.kernels(fmt, NEAREST).native[0][1] == _core.Decoder(fmt, 32).native[0] == 0
    )  # those of float64 alone


UNITS = {
    "gemm": sn.MadUnit("e6m3", operand="e5m2", chunk=4),
    "stochastic": sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic"),
    "gemm in binary64": sn.MadUnit("e9m30", operand="binary16"),
    "chain": sn.FmaChainUnit("binary32", operand="binary16"),
    "chain in binary64": sn.FmaChainUnit("binary64", operand="binary32"),
    "fused": sn.unit("nvidia_v100_fp16"),
    "grouped": sn.unit("nvidia_h100_e4m3") if "nvidia_h100_e4m3" in sn.units() else sn.unit("amd_cdna3_fp8"),
    "exact": sn.ExactDotUnit("binary16", operand="e5m2", rounding="stochastic"),
}


@cases("name", UNITS)
@cases("engine_of", [fast_of, definition_of])
@cases("with_c", [False, True])
def test_products(name, engine_of, with_c):
    unit, key, n = UNITS[name], (7, 3), 5
    engine, rng = engine_of(unit), np.random.default_rng(3)
    a, b, c = (
        sn.quantize(rng.normal(size=shape), fmt)
        for shape, fmt in zip(((4, 7), (7, n), (4, n)), (*unit.operand, unit.c_format), strict=True)
    )
    c = c if with_c else None
    want = sn.matmul(a, b, unit, c, key=key if unit.stochastic else None)
    wide = getattr(engine, "wide", None)
    if wide is None:
        formats = (*unit.operand, unit.c_format)
        x, y, z = (
            None if v is None else sn.encode(v, f).astype(np.uint64) for v, f in zip((a, b, c), formats, strict=True)
        )
        ldb = n
    else:
        carrier = np.float64 if wide else np.float32
        x, z, ldb = a.astype(carrier), None if c is None else c.astype(carrier), LANES
        y = np.zeros((7, ldb), carrier)
        y[:, :n] = b
    out = np.empty((4, n), x.dtype)
    function, data = engine.native
    for m0, m1 in ((0, 3), (3, 4)):  # rows have their numbers in the whole product
        p = Product(
            x.ctypes.data, y.ctypes.data, None if z is None else z.ctypes.data, out.ctypes.data, 7, ldb,
            0 if z is None else n, n, m0, m1, n, 7, words(key, 1), words(key, 2), 0,
        )  # fmt: skip
        assert RUN(function)(data, ctypes.byref(p)) == 0
    found = sn.decode(out.astype(unit.result.storage_dtype), unit.result) if wide is None else out
    assert np.array_equal(found, want)


def test_a_result_without_code():
    unit = sn.MadUnit("q4.4", operand="e5m2")
    engine, x = definition_of(unit), np.uint64([[sn.encode(np.nan, "e5m2")]])
    out = np.empty((1, 1), np.uint64)
    p = Product(x.ctypes.data, x.ctypes.data, None, out.ctypes.data, 1, 1, 0, 1, 0, 1, 1, 1)
    function, data = engine.native
    assert RUN(function)(data, ctypes.byref(p)) == NO_CODE
    with pytest.raises(ValueError, match="no code"):
        sn.matmul(np.float32([[np.nan]]), np.float32([[1]]), unit)
