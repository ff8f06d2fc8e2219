"""softnum.sum and softnum.dot on CUDA arrays: the bits of the CPU, in the unit's order."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches
from tests.support.equality import same_bits

rng = np.random.default_rng(5)


def values(*shape, fmt="e5m2"):
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 4, shape)
    x.reshape(-1)[: min(2, x.size)] = [-0.0, 2.0**-16][: min(2, x.size)]
    return sn.quantize(x.astype(np.float32), fmt)


def same(got, want):
    same_bits(got.copy_to_host(), np.asarray(want))


UNIT = sn.MadUnit("e6m3", operand="e5m2")
UNITS = [
    UNIT,
    sn.MadUnit("e6m9", operand=("e5m2", "e4m3"), product="e5m2", chunk=3),
    sn.MadUnit("q8.8", operand="q4.4"),
    sn.MadUnit("e6m9", operand="e5m2", lanes=3, reduction="tree"),
    sn.MadUnit("e6m9", operand="e5m2", compensated="kahan"),
    sn.MadUnit("bfloat16", operand="e5m2", rounding="toward_zero"),
    sn.ExactDotUnit("e6m3", operand="e5m2"),
    sn.FusedDotUnit(4, 10, "binary32", operand="e5m2"),
]


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{type(u).__name__} {u.result}")
def test_units(device, unit):
    x = sn.quantize(values(3, 11) / 8, unit.operand[1])
    before = launches()
    got = sn.sum(device.to_device(x), unit, axis=1)
    assert launches() > before
    same(got, sn.sum(x, unit, axis=1))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (1, 2), (0, 1), (2, 0), (), -1], ids=str)
def test_axes(device, axis):
    x = values(2, 3, 4)
    for keepdims in (False, True):
        got = sn.sum(device.to_device(x), UNIT, axis, keepdims=keepdims)
        same(got, sn.sum(x, UNIT, axis, keepdims=keepdims))
    with pytest.raises(ValueError, match="axis=3 is out of range for an array of 3 dimensions"):
        sn.sum(device.to_device(x), UNIT, 3)


def test_memory_order(device):
    from softnum.kernels.device.runtime.strides import transposed

    x = values(4, 6, 3)
    d = device.to_device(x)
    same(sn.sum(transposed(d, (2, 0, 1)), UNIT, 1), sn.sum(x.transpose(2, 0, 1), UNIT, 1))
    same(sn.sum(d[::2, 1::3], UNIT, (0, 2)), sn.sum(x[::2, 1::3], UNIT, (0, 2)))


def test_edges(device):
    for shape, axis in (((0, 3), 0), ((3, 0), 0), ((1,), None), ((), None), ((5, 1), 1)):
        x = np.full(shape, -0.0, np.float32)
        same(sn.sum(device.to_device(x), UNIT, axis), sn.sum(x, UNIT, axis))
    x = np.float32([[np.inf, 1, np.nan], [np.inf, -np.inf, 3], [1, 57344, 2]])
    same(sn.sum(device.to_device(x), UNIT, 1), sn.sum(x, UNIT, 1))


def test_random_words(device):
    unit = sn.MadUnit("e6m3", operand="e5m2", rounding="sr", stochastic_bits=20, chunk=4)
    x = values(3, 9)
    d = device.to_device(x)
    same(sn.sum(d, unit, 1, key=(3, 2**40)), sn.sum(x, unit, 1, key=(3, 2**40)))
    words = rng.integers(0, 2**32, (3, unit.steps(9)), dtype=np.uint32)
    want = sn.sum(x, unit, 1, random_bits=words)
    same(sn.sum(d, unit, 1, random_bits=words), want)
    same(sn.sum(d, unit, 1, random_bits=device.to_device(words)), want)
    with pytest.raises(ValueError, match=r"sum: random_bits must be uint32 of shape \(3, 12\)"):
        sn.sum(d, unit, 1, random_bits=words[:, :5])
    with pytest.raises(ValueError, match="sum: the unit rounds stochastically; give key="):
        sn.sum(d, unit, 1)


def test_formats(device):
    """Addends may be values of the sum's format or of an operand's, and are told apart as on the host."""
    x = values(8, fmt="e6m3")
    same(sn.sum(device.to_device(x), UNIT), sn.sum(x, UNIT))
    wide = np.float32([1.25, 0.5])  # of the operands' format alone
    unit = sn.MadUnit("e6m1", operand="e5m2")
    same(sn.sum(device.to_device(wide), unit), sn.sum(wide, unit))
    codes = sn.encode(x, "e6m3")
    same(sn.sum(sn.Array(device.to_device(codes), "e6m3"), UNIT), sn.sum(sn.Array(codes, "e6m3"), UNIT))
    for bad in (np.float32([1, 1.1]), sn.Array(codes, "e4m5")):
        with pytest.raises(ValueError) as host:
            sn.sum(bad, UNIT)
        on_device = sn.Array(device.to_device(codes), "e4m5") if isinstance(bad, sn.Array) else device.to_device(bad)
        with pytest.raises(ValueError) as found:
            sn.sum(on_device, UNIT)
        ending = str(host.value).rpartition("; ")[2] if isinstance(bad, np.ndarray) else str(host.value)
        assert str(found.value).endswith(ending)


def test_custom_formats(device):
    values = sn.CustomFormat.from_table([-2.0, -1.0, 0.5, 0.0, 1.0, 2.0, 4.0, 8.0], name="with zero at 3")
    x = np.float32([[1, -2, 0.5], [8, 8, 0]])
    unit = sn.MadUnit("e6m1", operand=values)
    same(sn.sum(device.to_device(x), unit, 1), sn.sum(x, unit, 1))
    halves = sn.CustomFormat.from_table([i / 2 for i in range(-64, 64)], name="halves")
    unit = sn.MadUnit(halves, operand=values)
    same(sn.sum(device.to_device(x), unit, 1), sn.sum(x, unit, 1))


def test_refused(device):
    d = device.to_device(values(4))
    with pytest.raises(TypeError, match="sum: return_stats=True counts on the host"):
        sn.sum(d, UNIT, return_stats=True)
    with pytest.raises(ValueError, match="sum: threads=3 is for arrays of the host"):
        sn.sum(d, UNIT, threads=3)
    with pytest.raises(TypeError, match="the unit must be one of softnum's"):
        sn.sum(d, "e5m2")
    with pytest.raises(ValueError, match=r"random_bits must be uint32 of shape \(\d+,\), got int64 of shape \(2,\)"):
        sn.sum(d, sn.MadUnit("e6m3", operand="e5m2", rounding="sr"), random_bits=[1, 2])
    with pytest.raises(TypeError, match="sum: x must be an array of float32 or float64, got int32"):
        sn.sum(device.to_device(np.arange(3, dtype=np.int32)), UNIT)
    with pytest.raises(ValueError, match=r"sum: the result is NaN or infinite, and q4\.4 has no code"):
        sn.sum(device.to_device(np.float32([np.inf])), sn.MadUnit("q4.4", operand="e5m2"))


def test_dot(device):
    a, b = values(9), values(9)
    da, db = device.to_device(a), device.to_device(b)
    same(sn.dot(da, db, UNIT), sn.dot(a, b, UNIT))
    same(sn.dot(da[::2], db[:5], UNIT), sn.dot(a[::2], b[:5], UNIT))
    unit = sn.MadUnit("e6m3", operand="e5m2", rounding="sr")
    for c in (1.5, np.float32(1.5)):
        same(sn.dot(da, db, unit, c, key=4), sn.dot(a, b, unit, c, key=4))
    same(sn.dot(da, db, unit, device.to_device(np.float32([1.5])), key=4), sn.dot(a, b, unit, 1.5, key=4))
    codes = [sn.Array(device.to_device(sn.encode(x, "e5m2")), "e5m2") for x in (a, b)]
    same(sn.dot(*codes, UNIT), sn.dot(a, b, UNIT))
    with pytest.raises(ValueError, match=r"dot takes two vectors, got shapes \(9,\) and \(3, 3\); for matrices use"):
        sn.dot(da, db.reshape((3, 3)), UNIT)
    with pytest.raises(TypeError, match="dot: b lies on the host"):
        sn.dot(da, b.tolist(), UNIT)
    with pytest.raises(TypeError, match="dot takes arrays of float16"):
        sn.dot(da, db, UNIT, "x")
    with pytest.raises(TypeError, match="dot: b lies on the host and a on the device"):
        sn.dot(da, b, UNIT)
    with pytest.raises(ValueError, match="a has K = 9 columns, b has 4 rows"):
        sn.dot(da, db[:4], UNIT)
    with pytest.raises(TypeError, match="dot: return_stats=True counts on the host"):
        sn.dot(da, db, UNIT, return_stats=True)


@pytest.mark.gpu
@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{type(u).__name__} {u.result}")
def test_real_sizes(unit):
    from softnum.kernels.device.runtime._cuda import cuda

    x = sn.quantize(values(97, 1031, 5) / 64, unit.operand[1])
    for axis in (None, 0, 1, (0, 2)):
        same(sn.sum(cuda.to_device(x), unit, axis), sn.sum(x, unit, axis))
