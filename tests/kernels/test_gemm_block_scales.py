"""Products of block arrays on the device: the bits of the host."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels.device.runtime import _cuda
from tests.support.devices import on_gpu
from tests.support.equality import poisoned, same_bits

UNITS = {
    "mxfp8": sn.BlockDotUnit("binary32", operand="mxfp8_e4m3"),
    "mxfp4 x mxfp6, e5m10": sn.BlockDotUnit("e5m10", operand=("mxfp4_e2m1", "mxfp6_e3m2"), rounding="toward_zero"),
    "nvfp4": sn.BlockDotUnit("binary32", operand="nvfp4"),
    "product": sn.BlockDotUnit("e8m12", operand="mxfp8_e5m2", product="e8m7", rounding="down"),
    "stochastic": sn.BlockDotUnit("e8m12", operand="nvfp4", product="e8m7", rounding="sr", stochastic_bits=12),
    "two words": sn.BlockDotUnit("e8m5", operand="mxint8", product="e8m7", rounding="sr", stochastic_bits=20),
    "lfsr": sn.BlockDotUnit(
        "e8m12", operand="nvfp4", product="e8m7", rounding="sr", stochastic_bits=12, random="lfsr24x3"
    ),
    "inner": sn.BlockDotUnit(
        "binary32", operand="mxfp4_e2m1", inner=sn.MadUnit("e5m10", operand="e2m1fn", lanes=4, reduction="tree")
    ),
    "inner, nvfp4": sn.BlockDotUnit(
        "e8m20", operand="nvfp4", inner=sn.MadUnit("e6m9", operand="e2m1fn"), product="binary32", rounding="sr"
    ),
    "inner, fixed": sn.BlockDotUnit("binary32", operand="mxfp8_e4m3", inner=sn.MadUnit("q12.12", operand="e4m3fn")),
}


def operands(unit, m, k, n, *lead, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(
        sn.array(
            (rng.standard_normal((*lead, *shape)) * 2.0 ** rng.integers(-2, 3, shape)).astype(np.float32),
            fmt,
            axis=axis,
        )
        for shape, fmt, axis in zip(((m, k), (k, n)), unit.operand, (-1, -2), strict=True)
    )


def on_device(x):
    if isinstance(x, sn.BlockArray):
        codes, scales = (_cuda.to_device(np.ascontiguousarray(part)) for part in (x.codes, x.scales))
        return sn.BlockArray(codes, scales, x.format, x.axis, x.tensor_scale)
    return None if x is None else _cuda.to_device(x)


def check(unit, a, b, c=None, **options):
    want = sn.matmul(a, b, unit, c, **options)
    out = poisoned(_cuda, want.shape, want.dtype)
    same_bits(_cuda.to_host(sn.matmul(on_device(a), on_device(b), unit, on_device(c), out=out, **options)), want, unit)


@pytest.mark.parametrize("name", UNITS)
def test_units(device, name):
    unit = UNITS[name]
    a, b = operands(unit, 2, 35, 2)
    c = sn.quantize(np.linspace(-3, 3, 4).reshape(2, 2).astype(np.float32), unit.accumulator)
    key = {"key": (7, 2**33)} if unit.stochastic else {}
    check(unit, a, b, c, **key)
    if name in ("mxfp8", "nvfp4"):
        check(unit, a, b, **key)


@pytest.mark.parametrize("name", ["mxfp8", "inner"])
def test_special_values(device, name):
    """Scales that are NaN, elements that are NaN, zeros of one sign, and short last blocks."""
    unit = UNITS[name]
    a, b = operands(unit, 3, 35, 1)
    a.scales[0, 1] = 0xFF  # NaN
    a.codes[1, :] = 0x80 if name == "mxfp8" else 8  # -0
    if name == "mxfp8":
        a.codes[2, 3] = 0x7F  # NaN
    check(unit, a, b)
    check(unit, a, b, np.full((3, 1), -0.0, np.float32))


def test_batches_empty_and_words(device):
    unit = UNITS["two words"]
    a, _ = operands(unit, 2, 33, 2, 2)
    _, b = operands(unit, 2, 33, 2)
    check(unit, a, b, key=5)
    words = np.random.default_rng(2).integers(0, 2**32, (2, 2, unit.steps(33), 2), dtype=np.uint32)
    check(unit, a[0], b, random_bits=words)
    for name in ("nvfp4", "inner"):
        a, b = operands(UNITS[name], 2, 0, 2)
        check(UNITS[name], a, b)
        check(UNITS[name], a, b, np.full((2, 2), 1.5, np.float32))


@pytest.mark.parametrize("k", [0, 1, 35])
def test_dot(device, k):
    unit = UNITS["nvfp4"]
    a, b = operands(unit, 1, k, 1)
    x, y = (sn.BlockArray(v.codes.ravel(), v.scales.ravel(), v.format, 0, v.tensor_scale) for v in (a, b))
    same_bits(_cuda.to_host(sn.dot(on_device(x), on_device(y), unit, 1.5)), np.asarray(sn.dot(x, y, unit, 1.5)))


@pytest.mark.parametrize("options", [{"accumulator": "q8.8"}, {"accumulator": "binary32", "product": "q8.8"}], ids=str)
def test_no_code(device, options):
    """Whether a format lacked a code: of the first block too, and only then."""
    unit = sn.BlockDotUnit(operand="mxfp8_e4m3", **options)
    a, b = operands(unit, 2, 64, 2)
    check(unit, a, b)
    codes = a.codes.copy()
    codes[0, 0] = 0x7F
    a = sn.BlockArray(codes, a.scales, a.format, a.axis, a.tensor_scale)
    for place in (lambda x: x, on_device):
        with pytest.raises(ValueError, match=r"q8\.8 has no code"):
            sn.matmul(place(a), place(b), unit)


def test_refused(device):
    unit = UNITS["mxfp8"]
    a, b = operands(unit, 2, 32, 2)
    x, y = on_device(a), on_device(b)
    with pytest.raises(TypeError, match="a must be a BlockArray under a BlockDotUnit"):
        sn.matmul(_cuda.to_device(np.ones((2, 32), np.float32)), y, unit)
    with pytest.raises(TypeError, match="BlockArrays are multiplied under a BlockDotUnit"):
        sn.matmul(x, y, sn.MadUnit("binary32", operand="e4m3fn"))
    with pytest.raises(TypeError, match="no CUDA kernel computes BlockFusedDotUnits; copy the CUDA arrays to the host"):
        sn.matmul(x, y, sn.unit("nvidia_tcgen05_mxf8f6f4"))
    with pytest.raises(ValueError, match="but is along axis -2"):
        sn.matmul(y, y, unit)
    with pytest.raises(TypeError, match="lies on the host"):
        sn.matmul(x, b, unit)
    plain = sn.MadUnit("binary32", operand="e4m3fn")
    with pytest.raises(TypeError, match="sum: x is a BlockArray, .*; decode it first"):
        sn.sum(x, plain)
    four = sn.BlockArray(*(part.reshape(1, 1, *part.shape) for part in (x.codes, x.scales)), x.format)
    with pytest.raises(TypeError, match="conv2d: w is a BlockArray, .*; decode it first"):
        sn.conv2d(_cuda.to_device(np.ones((1, 1, 3, 3), np.float32)), four, plain)
    inner = sn.MadUnit("e6m9", operand="e4m3fn", rounding="sr")
    with pytest.raises(TypeError, match="blocks by a unit that rounds stochastically"):
        sn.matmul(x, y, sn.BlockDotUnit("binary32", operand="mxfp8_e4m3", inner=inner), key=1)


@on_gpu
def test_real_sizes(device):
    for name in ("mxfp8", "nvfp4", "stochastic", "inner"):
        unit = UNITS[name]
        check(unit, *operands(unit, 130, 260, 97), **({"key": 3} if unit.stochastic else {}))
