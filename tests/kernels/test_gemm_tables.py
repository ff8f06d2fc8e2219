"""Products in custom formats on the device, by tables."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels.device.products.mad import tables as gemm_tables
from softnum.kernels.device.products.mad.sum_tables import tables_of
from softnum.mac.mad import MadUnit
from tests.support.devices import on_gpu
from tests.support.equality import check_product


def powers(bits: int, name: str, nan: bool = False):
    """Zero, and powers of the square root of two with a sign."""
    half = (1 << (bits - 1)) - 1
    values = [0.0, *(2.0 ** ((i - half) // 2 + 5) * (1.4140625 if i % 2 else 1) for i in range(half))]
    values += [-v for v in values[1:]]
    values += [float("nan") if nan else 2.0**half]
    return sn.CustomFormat.from_table(values, name=name)


LOG5, LOG8, LOG8N = powers(5, "log5"), powers(8, "log8"), powers(8, "log8n", nan=True)
TEN = sn.FloatFormat(5, 4, specials="none")  # whose codes no byte holds
TERNARY = sn.CustomFormat.from_table([1.0, 0.0, float("nan"), -1.0], name="ternary")  # the code of zero is 1

SHARED = {
    "log8": MadUnit(LOG8N, operand=LOG8N, product=LOG8N),
    "log8, chunk": MadUnit(LOG8N, operand=LOG8N, product=LOG8N, chunk=5),
    "log5, mode": MadUnit(LOG5, operand=LOG5, product=LOG5, rounding="rtz"),
    "small, fused": MadUnit(TERNARY, operand="e2m1fn"),
    "pair": MadUnit(LOG8, operand=(LOG5, "e2m1fn"), product="e3m2fn", chunk=4, outer_accumulator=LOG5),
    "ternary": MadUnit(TERNARY, operand=(TERNARY, LOG5), product=TERNARY),
    "own sums, chunks of the user's": MadUnit("e4m3", operand=LOG5, chunk=3, outer_accumulator=LOG8N),
}
OTHERS = {
    "fused": MadUnit(LOG8, operand=(LOG5, "e4m3fn"), overflow="saturate"),
    "lanes": MadUnit(LOG8N, operand=LOG8N, product=LOG8N, lanes=3, reduction="tree", chunk=7),
    "lanes of ternary": MadUnit(TERNARY, operand=TERNARY, product=TERNARY, lanes=5),
    "own product": MadUnit("binary32", operand="e4m3fn", product=LOG8N),
    "own product, lanes, chunk": MadUnit(
        "e6m9", operand="e3m2fn", product=LOG8, lanes=3, reduction="pairwise", chunk=8, outer_accumulator="binary64"
    ),
    "own sums of wide": MadUnit(LOG8N, operand=LOG5, product="binary16", chunk=4, outer_accumulator="binary32"),
    "fixed point": MadUnit("q16.8", operand="q4.4", product=LOG8),
    "ten bits": MadUnit(TERNARY, operand=(TEN, "e2m1fn"), product=TERNARY),
    "of ten bits": MadUnit(TERNARY, operand=("e2m1fn", TEN), product=TERNARY),
}


def operands(unit, m, k, n, seed=3):
    rng = np.random.default_rng(seed)
    found = []
    for fmt, shape in zip((*unit.operand, unit.c_format), ((m, k), (k, n), (m, n)), strict=True):
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape)
        x[rng.integers(0, 9, shape) == 0] = 0
        found.append(sn.quantize(x.astype(np.float32), fmt))
    return found


@pytest.mark.parametrize("name", [*SHARED, *OTHERS])
def test_units(device, name):
    unit = (SHARED | OTHERS)[name]
    assert gemm_tables._fits_in_shared(unit, 227 * 1024) == (name in SHARED)
    a, b, c = operands(unit, 5, 9, 5)
    if unit.operand[0].has_nan and unit.outer.has_nan and (unit.product is None or unit.product.has_nan):
        a[2, 3] = np.nan
    check_product(device, unit, a, b)
    check_product(device, unit, a, b, c)


def test_shared_and_general_agree(device, monkeypatch):
    unit = SHARED["log8, chunk"]
    a, b, c = operands(unit, 9, 6, 5)
    check_product(device, unit, a, b, c)
    monkeypatch.setattr(gemm_tables, "_fits_in_shared", lambda unit, most: False)
    check_product(device, unit, a, b, c)


def test_batches_strides_and_empty(device):
    unit = SHARED["log8"]
    rng = np.random.default_rng(4)
    a, b = (sn.quantize(rng.standard_normal(s).astype(np.float32), LOG8N) for s in ((2, 3, 5), (5, 4)))
    check_product(device, unit, a, b)
    got = sn.matmul(device.to_device(np.ascontiguousarray(a[0].T)).T, device.to_device(b), unit)
    assert np.array_equal(got.copy_to_host(), sn.matmul(a[0], b, unit))
    for other in (unit, OTHERS["lanes of ternary"]):
        nothing = np.zeros((2, 0), np.float32)
        check_product(device, other, nothing, nothing.T)
        check_product(device, other, nothing, nothing.T, np.float32([[1, 0], [-1, 1]]))


def test_functions(device):
    """A format of the user's own functions, whose operations are not those of its values."""

    def value(code):
        magnitude = code & 15
        return 0.0 if magnitude == 0 else (-1.0) ** (code >> 4) * 2.0 ** (magnitude - 9)

    def product(a, b):
        if a & 15 == 0 or b & 15 == 0:
            return 0
        return (a ^ b) & 16 | min(max((a & 15) + (b & 15) - 9, 1), 15)

    fmt = sn.CustomFormat(5, as_float=value, ops={"multiply": product}, name="log5f")
    for unit in (MadUnit(fmt, operand=fmt, product=fmt), MadUnit(fmt, operand=fmt, product=fmt, lanes=2)):
        check_product(device, unit, *operands(unit, 4, 7, 5))


def test_no_result(device):
    """A NaN that a format has no code for, where it is met, and only there."""
    unit = MadUnit(LOG8, operand=TERNARY, lanes=2)
    a = np.float32([[1, -1], [0, 1]])
    check_product(device, unit, a, a)
    a[0, 0] = np.nan
    with pytest.raises(ValueError, match="a step has no result in log8"):
        sn.matmul(device.to_device(a), device.to_device(a), unit)
    unit = MadUnit("binary32", operand=TERNARY, product=LOG8)
    with pytest.raises(ValueError, match="a step has no result in log8"):
        sn.matmul(device.to_device(a), device.to_device(a), unit)


def test_without_tables(device):
    a = device.to_device(np.ones((2, 2), np.float32))
    wide = sn.CustomFormat.from_table([i / 16 - 16 for i in range(512)], name="nine")
    for unit, said in (
        (MadUnit(wide, operand=LOG5, product=LOG5), "nine has 9 bits"),
        (MadUnit("binary32", operand="binary16", product=LOG8), "limit"),
        (MadUnit("binary32", operand=LOG5, chunk=2, outer_accumulator=LOG8), "added in log8"),
    ):
        with pytest.raises(TypeError, match=f"{said}.*copy the CUDA arrays to the host first"):
            sn.matmul(a, a, unit)


def test_tables_are_the_formats_operations():
    tables = tables_of(SHARED["log8"])
    add, multiply = LOG8N.table("add"), LOG8N.table("multiply")
    rng = np.random.default_rng(5)
    a, b, acc = rng.integers(0, 256, (3, 500))
    row = tables.rows[a, b]
    assert np.array_equal(tables.cells[row.astype(int) * 256 + acc], add[acc, multiply[a, b]])


@on_gpu
def test_real_sizes(device):
    """Tables of 8 bits in shared memory, and larger ones in the memory of the device."""
    for unit in (SHARED["log8"], SHARED["log8, chunk"], OTHERS["lanes"], OTHERS["own product"]):
        check_product(device, unit, *operands(unit, 517, 259, 391))
