"""Posits, linear takums and tables with a NaN on the device: the codes of the host, or NoKernel."""

import numpy as np
import pytest

import softnum as sn
from softnum.runtime.gateway import NoKernel

THIRDS = sn.CustomFormat.from_table([0.0, 1 / 3, 1.0, 3.0, -1.0, -3.0, float("nan"), 9.0], name="thirds")
X = np.array([0.0, -0.0, 1.0, 3.3, 1e-30, -1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**22, -(2.0**22) - 1, 5.3])
CODES = np.array([0x00, 0x01, 0x40, 0x7F, 0x80, 0x81, 0xFF, 0x4C], np.uint8)


@pytest.mark.parametrize("carrier", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", ["posit8", "posit8_es0", "takum_linear8", "posit16", THIRDS], ids=str)
def test_conversions(device, fmt, carrier):
    x = X.astype(carrier)
    d = device.to_device(x)
    codes = sn.encode(d, fmt)
    assert np.array_equal(codes.copy_to_host(), sn.encode(x, fmt))
    assert np.array_equal(sn.decode(codes, fmt).copy_to_host(), sn.decode(sn.encode(x, fmt), fmt), equal_nan=True)
    if (fmt != "takum_linear8" and fmt is not THIRDS) or carrier == np.float64:
        assert np.array_equal(sn.quantize(d, fmt).copy_to_host(), sn.quantize(x, fmt), equal_nan=True)
    if fmt is THIRDS:
        saturated = sn.encode(d, fmt, overflow="saturate").copy_to_host()
        assert np.array_equal(saturated, sn.encode(x, fmt, overflow="saturate"))


def test_operations(device):
    a, b = (x.ravel() for x in np.meshgrid(CODES, CODES))
    x, y = (sn.Array(device.to_device(np.ascontiguousarray(c)), "posit8") for c in (a, b))
    for function in (sn.add, sn.divide, sn.minimum):
        assert np.array_equal(function(x, y).codes.copy_to_host(), function(a, b, "posit8"))
    assert np.array_equal(sn.compare(x, y).copy_to_host(), sn.compare(a, b, "posit8"))
    assert np.array_equal((x == y).copy_to_host(), sn.Array(a, "posit8") == sn.Array(b, "posit8"))
    wide = sn.Array(device.to_device(np.array([0, 1], np.uint32)), "posit32")
    with pytest.raises(NoKernel, match="posit32"):
        sn.add(wide, wide)
    with pytest.raises(NoKernel, match="posit32 has more than 16 bits"):
        sn.quantize(device.to_device(X), "posit32")


def test_products(device):
    a = sn.quantize(np.linspace(-3, 3, 15, dtype=np.float32).reshape(3, 5), "posit8")
    unit = sn.MadUnit("posit8", operand="posit8")
    found = sn.matmul(device.to_device(a), device.to_device(np.ascontiguousarray(a.T)), unit)
    assert np.array_equal(found.copy_to_host(), sn.matmul(a, a.T, unit))
    wide = sn.MadUnit("binary32", operand="posit8")
    found = sn.matmul(device.to_device(a), device.to_device(np.ascontiguousarray(a.T)), wide)
    assert np.array_equal(found.copy_to_host(), sn.matmul(a, a.T, wide))
    with pytest.raises(NoKernel, match="no CUDA kernel sums in posit8"):
        sn.matmul(
            device.to_device(a),
            device.to_device(np.ascontiguousarray(a.T)),
            sn.ExactDotUnit("posit8", operand="posit8"),
        )
