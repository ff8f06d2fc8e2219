"""softnum.quantize on CUDA arrays: the bits of the CPU, from kernels."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches


def values(dtype=np.float32, n=61):
    """Seeded values of many magnitudes, with the special ones among them; n straddles blocks and groups of four."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(n) * 2.0 ** rng.integers(-30, 30, n)).astype(dtype)
    tiny, big = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    x[:14] = [0, -0.0, np.inf, -np.inf, tiny, -tiny, big, -big, 1.125, 1.375, 57344, 61440, 2.0**-17, 448]
    return x


def finite(dtype=np.float32, n=61):
    x = values(dtype, n)
    return np.where(np.isfinite(x), x, dtype(3))


def same_bits(got, want):
    """Compare bits; a failure shows index, values and bits."""
    kind = f"u{want.dtype.itemsize}"
    assert got.dtype == want.dtype and got.shape == want.shape
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), [
        (tuple(i), got[tuple(i)], want[tuple(i)], hex(got.view(kind)[tuple(i)]), hex(want.view(kind)[tuple(i)]))
        for i in wrong[:5]
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "fmt", ["e5m2", "e4m3fn", "e4m3", "bfloat16", "binary16", "q4.4", "uq0.8", "e2m1fn", "dlfloat16"]
)
def test_nearest_even(device, fmt, dtype):
    fixed = sn.format(fmt).kind == "fixed" or not sn.format(fmt).has_nan
    x = finite(dtype) if fixed else values(dtype)
    if not fixed:
        x[20:22] = np.array([np.nan, -np.nan], dtype)
    before = launches()
    y = sn.quantize(device.to_device(x), fmt)
    assert launches() == before + 1
    same_bits(y.copy_to_host(), sn.quantize(x, fmt))


@pytest.mark.parametrize(
    "rounding",
    ["rna", "nearest_zero", "nearest_up", "nearest_down", "rtz", "away_from_zero", "rup", "rdn", "rto", "sr",
     "stochastic_floor"],
)  # fmt: skip
@pytest.mark.parametrize("fmt", ["e5m2", "q4.4"])
def test_modes(device, fmt, rounding):
    x = finite()
    options = {"rounding": rounding, "key": (2**40 + 1, 2**33 + 5), "stochastic_bits": 12}
    same_bits(sn.quantize(device.to_device(x), fmt, **options).copy_to_host(), sn.quantize(x, fmt, **options))


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "saturate_finite"])
def test_overflow_rules(device, overflow):
    x = values()
    got = sn.quantize(device.to_device(x), "e4m3fn", overflow=overflow)
    same_bits(got.copy_to_host(), sn.quantize(x, "e4m3fn", overflow=overflow))


def test_wrap(device):
    x = finite()
    got = sn.quantize(device.to_device(x), "q4.4", overflow="wrap")
    same_bits(got.copy_to_host(), sn.quantize(x, "q4.4", overflow="wrap"))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 128, 129])
def test_lengths(device, n):
    x = np.linspace(-2, 2, n, dtype=np.float32)
    got = sn.quantize(device.to_device(x), "e5m2", rounding="sr", key=1).copy_to_host()
    same_bits(got, sn.quantize(x, "e5m2", rounding="sr", key=1))


def test_shapes_and_strides(device):
    x = finite(n=48).reshape(2, 4, 6)
    same_bits(sn.quantize(device.to_device(x), "e5m2").copy_to_host(), sn.quantize(x, "e5m2"))
    matrix = x[0]
    options = {"rounding": "sr", "key": 9}
    turned = device.to_device(matrix).T
    same_bits(sn.quantize(turned, "e5m2", **options).copy_to_host(), sn.quantize(matrix.T, "e5m2", **options))
    part = device.to_device(matrix)[1:3, ::2]
    same_bits(sn.quantize(part, "e5m2", **options).copy_to_host(), sn.quantize(matrix[1:3, ::2], "e5m2", **options))
    with pytest.raises(ValueError, match="must be contiguous"):
        sn.quantize(device.to_device(x).transpose((2, 1, 0)), "e5m2")


def test_random_bits(device):
    x = finite(n=24).reshape(4, 6)
    words = np.random.default_rng(5).integers(0, 2**32, x.shape, dtype=np.uint32)
    want = sn.quantize(x, "e5m2", rounding="sr", random_bits=words)
    d = device.to_device(x)
    same_bits(sn.quantize(d, "e5m2", rounding="sr", random_bits=words).copy_to_host(), want)
    same_bits(sn.quantize(d, "e5m2", rounding="sr", random_bits=device.to_device(words)).copy_to_host(), want)
    row = sn.quantize(d, "e5m2", rounding="sr", random_bits=words[0])
    same_bits(row.copy_to_host(), sn.quantize(x, "e5m2", rounding="sr", random_bits=words[0]))


def test_out(device):
    x = finite()
    d = device.to_device(x)
    assert sn.quantize(d, "e5m2", out=d) is d
    same_bits(d.copy_to_host(), sn.quantize(x, "e5m2"))
    with pytest.raises(ValueError, match="out must be a CUDA array of shape"):
        sn.quantize(d, "e5m2", out=device.to_device(x[:5]))


def test_no_code(device):
    x = np.float32([1, np.nan, 2])
    with pytest.raises(ValueError, match=r"q4\.4 has no code"):
        sn.quantize(device.to_device(x), "q4.4")
    with pytest.raises(ValueError, match="not exact in float32"):
        sn.quantize(device.to_device(np.float32([3e38])), "q40.4")


def test_refused(device):
    with pytest.raises(TypeError, match="float32 or float64, got int32"):
        sn.quantize(device.to_device(np.arange(3, dtype=np.int32)), "e5m2")
    d = device.to_device(np.float32([1]))
    with pytest.raises(TypeError, match="no kernel takes the value table pow2"):
        sn.quantize(d, sn.CustomFormat.from_table([0.0, 1.0, 2.0, 4.0], name="pow2"))
    with pytest.raises(ValueError, match="key=seed"):
        sn.quantize(d, "e5m2", rounding="sr")
    with pytest.raises(ValueError, match=r"of shape \(1,\)"):
        sn.quantize(d, "e5m2", rounding="sr", random_bits=device.to_device(np.zeros(2, np.uint32)))
