"""softnum.matmul on CUDA arrays: the bits of the CPU, from kernels."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches
from softnum.kernels.device.runtime.strides import broadcast
from tests.support.equality import same_bits

WORDS = {
    "fused": {"operand": "e5m2"},
    "chunk": {"operand": "e5m2", "chunk": 4},
    "odd chunk": {"operand": "e5m2", "chunk": 5, "outer_accumulator": "binary32"},
    "product": {"operand": "e5m2", "product": "e5m2"},
    "product, its mode": {"operand": "e5m2", "product": "e4m3", "product_rounding": "rtz", "chunk": 3},
    "pair": {"operand": ("e4m3fn", "e5m2")},
    "stochastic": {"operand": "e5m2", "rounding": "sr", "stochastic_bits": 12},
    "stochastic, chunk": {"operand": "e5m2", "rounding": "sr", "stochastic_bits": 12, "chunk": 5},
    "two stochastic, one word": {"operand": "e5m2", "product": "e5m2", "rounding": "sr", "stochastic_bits": 16},
    "two stochastic, two words": {
        "operand": "e5m2", "product": "e5m2", "rounding": "sr", "stochastic_bits": 17, "chunk": 4,
    },
    "stochastic product alone": {"operand": "e5m2", "product": "e5m2", "product_rounding": "sr", "chunk": 4},
    "to odd": {"operand": "e5m2", "rounding": "rto"},
    "down": {"operand": "e5m2", "rounding": "rdn", "overflow": "saturate"},
}  # fmt: skip


def operands(unit, m, k, n, *lead, seed=11):
    """Seeded values of the unit's operand formats, as float32."""
    rng = np.random.default_rng(seed)
    return tuple(
        sn.quantize(rng.standard_normal((*lead, *shape)).astype(np.float32), fmt)
        for shape, fmt in zip(((m, k), (k, n)), unit.operand, strict=True)
    )


def check(device, unit, a, b, c=None, **options):
    """The same bits on the device, in as many launches as it takes: a, b and c to codes, and the product."""
    before = launches()
    on_device = [None if x is None else device.to_device(np.ascontiguousarray(x)) for x in (a, b, c)]
    got = sn.matmul(*on_device[:2], unit, on_device[2], **options).copy_to_host()
    want = sn.matmul(a, b, unit, c, **options)
    assert launches() - before == (3 if c is None else 4)
    same_bits(got, want, unit)


@pytest.mark.parametrize("name", WORDS)
def test_units(device, name):
    unit = sn.MadUnit("e6m9", **WORDS[name])
    check(device, unit, *operands(unit, 6, 11, 7), key=(2**40 + 3, 2**35 + 1) if unit.stochastic else None)


@pytest.mark.parametrize("fmt", ["q4.4", "binary16", "binary32", "binary64"])
def test_accumulators(device, fmt):
    unit = sn.MadUnit(fmt, operand="q4.4" if fmt == "q4.4" else "e4m3fn")
    check(device, unit, *operands(unit, 4, 9, 5))


def test_float64_carriers(device):
    unit = sn.MadUnit("binary64", operand=("binary64", "e5m2"), chunk=3)
    rng = np.random.default_rng(0)
    check(device, unit, rng.standard_normal((3, 7)), sn.quantize(rng.standard_normal((7, 2)), "e5m2"))


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (4, 4, 4), (5, 1, 9), (1, 13, 1), (9, 8, 3)])
def test_sizes(device, m, k, n):
    unit = sn.MadUnit("e6m9", operand="e5m2", rounding="sr", stochastic_bits=12, chunk=4)
    check(device, unit, *operands(unit, m, k, n), key=1)


@pytest.mark.parametrize("chunk", [None, 3])
def test_initial_accumulator(device, chunk):
    unit = sn.MadUnit("e6m9", operand="e5m2", chunk=chunk)
    a, b = operands(unit, 3, 5, 6)
    check(device, unit, a, b, sn.quantize(np.linspace(-3, 3, 18, dtype=np.float32).reshape(3, 6), "e6m9"))


def test_special_values(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    a = np.float32([[np.inf, 1, 0], [np.nan, 1, 0], [57344, 57344, 57344], [-0.0, 0, -0.0], [-0.0, -0.0, 2.0**-16]])
    check(device, unit, a, a.T.copy())
    unit = sn.MadUnit("binary32", operand="q4.4", rounding="rdn")  # q4.4 has no -0: it becomes +0, whose sums stay +0
    check(device, unit, np.float32([[-0.0, 1]]), np.float32([[1], [0]]), np.float32([[-0.0]]))


def test_batches_broadcast(device):
    unit = sn.MadUnit("e6m9", operand="e5m2", rounding="sr", stochastic_bits=10)
    a, b = operands(unit, 3, 5, 2, 2, 3)
    check(device, unit, a, b, key=4)
    check(device, unit, a, b[0, 0], key=4)
    check(device, unit, a[:, :1], b[0], sn.quantize(np.ones((3, 3, 2), np.float32), "e6m9"), key=4)


def test_strides(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    a, b = operands(unit, 4, 6, 5)
    got = sn.matmul(device.to_device(np.ascontiguousarray(a.T)).T, device.to_device(b)[:, ::2], unit)
    assert np.array_equal(got.copy_to_host(), sn.matmul(a, b[:, ::2], unit))


@pytest.mark.parametrize("product", [None, "e5m2"])
def test_random_bits(device, product):
    unit = sn.MadUnit("e6m9", operand="e5m2", product=product, rounding="sr", chunk=4)
    a, b = operands(unit, 2, 9, 3)
    words = np.random.default_rng(1).integers(0, 2**32, (2, 3, unit.steps(9), 2), dtype=np.uint32)
    check(device, unit, a, b, random_bits=words)
    with pytest.raises(ValueError, match="random_bits must be uint32 of shape"):
        sn.matmul(device.to_device(a), device.to_device(b), unit, random_bits=words[:, :, 1:])


def test_empty(device):
    unit = sn.MadUnit("e6m9", operand="e5m2", chunk=4)
    nothing = device.to_device(np.zeros((3, 0), np.float32)), device.to_device(np.zeros((0, 2), np.float32))
    assert np.array_equal(sn.matmul(*nothing, unit).copy_to_host(), np.zeros((3, 2), np.float32))
    c = np.full((3, 2), 2.5, np.float32)
    assert np.array_equal(sn.matmul(*nothing, unit, device.to_device(c)).copy_to_host(), c)
    none = sn.matmul(
        device.to_device(np.zeros((0, 4), np.float32)), device.to_device(np.zeros((4, 2), np.float32)), unit
    )
    assert none.shape == (0, 2)


def test_out(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    a, b = operands(unit, 3, 4, 2)
    out = device.to_device(np.zeros((3, 2), np.float32))
    assert sn.matmul(device.to_device(a), device.to_device(b), unit, out=out) is out
    assert np.array_equal(out.copy_to_host(), sn.matmul(a, b, unit))
    with pytest.raises(ValueError, match=r"out must be a CUDA array of shape \(.*, got "):
        sn.matmul(device.to_device(a), device.to_device(b), unit, out=device.to_device(np.zeros((2, 3), np.float32)))


def test_results_that_no_float_holds(device):
    one = device.to_device(np.ones((1, 1)))
    with pytest.raises(TypeError, match="nor float64 holds e15m40; copy the CUDA arrays to the host first, where"):
        sn.matmul(one, one, sn.MadUnit("e15m40", operand="e5m2"))


def test_unrepresentable_operand(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    a, b = operands(unit, 3, 4, 2)
    a[1, 2] = 1.1
    with pytest.raises(ValueError, match=r"a\[1, 2\] = .*1\.1.* is no value of e5m2"):
        sn.matmul(device.to_device(a), device.to_device(b), unit)
    with pytest.raises(ValueError, match=r"b\[2, 1\] = .*1\.1.* is no value of e5m2"):
        sn.matmul(device.to_device(b.T.copy()), device.to_device(np.ascontiguousarray(a.T)).T.T, unit)
    unit = sn.MadUnit("e6m9", operand="q4.4")
    with pytest.raises(ValueError, match=r"a\[0, 1\] = .*nan.* is no value of q4\.4"):
        sn.matmul(device.to_device(np.float32([[1, np.nan]])), device.to_device(np.float32([[1], [1]])), unit)


def test_result_without_code(device):
    unit = sn.MadUnit("q8.8", operand="e5m2")
    a = device.to_device(np.float32([[np.inf]]))
    with pytest.raises(ValueError, match=r"q8\.8 has no code"):
        sn.matmul(a, a, unit)
    unit = sn.MadUnit("e5m2", operand="e5m2", chunk=1, outer_accumulator="q8.8")
    a = device.to_device(np.float32([[57344, 57344]]))
    with pytest.raises(ValueError, match=r"q8\.8 has no code"):
        sn.matmul(a, a.T, unit)


def test_refused(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    host = np.zeros((2, 2), np.float32)
    d = device.to_device(host)
    with pytest.raises(TypeError, match="b lies on the host"):
        sn.matmul(d, host, unit)
    with pytest.raises(TypeError, match="a lies on the host"):
        sn.matmul(host, d, unit)
    with pytest.raises(ValueError, match="a has K = 2 columns, b has 3 rows"):
        sn.matmul(d, device.to_device(np.zeros((3, 2), np.float32)), unit)
    with pytest.raises(ValueError, match=r"got shapes \(2, 2\) and \(2,\)"):
        sn.matmul(d, device.to_device(np.zeros(2, np.float32)), unit)
    for c in (0.5, [0.5, 1], np.float32(0.5), sn.Array(np.uint16(0), "e6m9")):
        with pytest.raises(TypeError, match="matmul: c lies on the host"):
            sn.matmul(d, d, unit, c)
    with pytest.raises(TypeError, match="matmul: a lies on the host"):
        sn.matmul(host.tolist(), d, unit)
    for none in ("e6m9", [], None):
        with pytest.raises(TypeError, match="matmul: the unit must be one of softnum's"):
            sn.matmul(d, d, none)
    with pytest.raises(
        ValueError, match=r"random_bits must be uint32 of shape \(2, 2, 2, 2\), got int64 of shape \(1,\)"
    ):
        sn.matmul(d, d, sn.MadUnit("e6m9", operand="e5m2", rounding="sr"), random_bits=[1])
    with pytest.raises(ValueError, match="threads=2"):
        sn.matmul(d, d, unit, threads=2)
    with pytest.raises(ValueError, match="key=seed"):
        sn.matmul(d, d, sn.MadUnit("e6m9", operand="e5m2", rounding="sr"))
    with pytest.raises(TypeError, match="neither float32 nor float64 holds"):
        sn.matmul(d, d, sn.MadUnit("e15m40", operand="e5m2"))
    one, long = device.to_device(np.ones((1, 1), np.float32)), 2**31
    with pytest.raises(ValueError, match=rf"no dimension .* may reach 2\*\*31, got \(1, 1\) and K = {long}"):
        sn.matmul(broadcast(one, (1, long)), broadcast(one, (long, 1)), sn.ExactDotUnit("e6m9", operand="e5m2"))
    with pytest.raises(ValueError, match=r"dot: c is one number, got shape \(2, 2\)"):
        sn.dot(device.to_device(host[0]), device.to_device(host[0]), unit, d)
    with pytest.raises(ValueError, match="does not broadcast"):
        sn.matmul(d, d, unit, device.to_device(np.zeros((2, 3), np.float32)))
