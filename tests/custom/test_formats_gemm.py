"""Units that compute in custom formats: the engine against the same steps taken one by one."""

import numpy as np
import pytest
from nf4 import nf4
from posit8 import posit8

import softnum as sn
from softnum.mac.products.custom.codes import CustomGemm
from softnum.mac.products.engines import definition_of
from softnum.reference.mac import reduction_order
from softnum.runtime import _tables
from softnum.vectors.plans.unit_spec import UnitSpec
from tests.support.cases import cases
from tests.support.remembered import remembered

ODD_C = """typedef struct { uint a : 6; } odd;
float as_float(odd x) { return (int)(x.a / 2) - 16; }
odd convert(float x) {
    odd r = {0};
    int i = x > -16 ? (x < 15 ? (int)__builtin_floorf(x) : 15) : -16;
    r.a = 2 * (i + 16);
    return r;
}
odd add(odd x, odd y) { x.a = 3 * x.a + 5 * y.a + 1; return x; }
odd mul(odd x, odd y) { x.a = 7 * x.a ^ y.a; return x; }
odd fma(odd x, odd y, odd z) { x.a = x.a + 3 * y.a ^ 5 * z.a; return x; }
"""


@pytest.fixture(scope="module")
def odd():
    """Every value has two codes, and operations tell them and their operands' order apart."""
    return sn.CustomFormat.from_c(ODD_C, "odd")


@remembered
def by_steps(unit, a, b, c=None):
    """What MadUnit's documentation says, on codes, an output and a step at a time."""

    def operation(name, *operands, formats, out):
        if all(f == out for f in formats) and isinstance(out, sn.CustomFormat):
            return out.apply(name, *operands, rounding=unit.rounding if out.kind == "table" else "nearest_even")
        return getattr(sn.ops, name)(*operands, formats, out_fmt=out, rounding=unit.rounding)

    acc, outer = unit.accumulator, unit.outer
    zero = {f: sn.encode(0.0, f) for f in (acc, outer)}

    def step(s, x, y):
        if unit.product is None:
            return operation("fma", x, y, s, formats=(*unit.operand, acc), out=acc)
        p = operation("multiply", x, y, formats=unit.operand, out=unit.product)
        return operation("add", s, p, formats=(acc, unit.product), out=acc)

    def total(x, y, start):
        lanes = [zero[acc]] * unit.lanes
        if start is not None and unit.lanes == 1:
            lanes[0] = start
        for k in range(len(x)):
            lanes[k % unit.lanes] = step(lanes[k % unit.lanes], x[k], y[k])
        if start is not None and unit.lanes > 1:
            lanes = [start, *lanes]
        for i, j in reduction_order(len(lanes), unit.reduction):
            lanes[i] = operation("add", lanes[i], lanes[j], formats=(acc, acc), out=acc)
        return lanes[0]

    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    out = np.empty((m, n), outer.storage_dtype)
    for i, j in np.ndindex(m, n):
        start = None if c is None else c[i, j]
        if not unit.chunk or not k:
            out[i, j] = total(a[i], b[:, j], start) if k else zero[outer] if c is None else start
            continue
        out[i, j] = zero[outer] if c is None else start
        for at in range(0, k, unit.chunk):
            part = total(a[i, at : at + unit.chunk], b[at : at + unit.chunk, j], None)
            out[i, j] = operation("add", out[i, j], part, formats=(outer, acc), out=outer)
    return out


def units(fmt, **more):
    for options in (
        {}, {"lanes": 3}, {"lanes": 4, "reduction": "tree"}, {"lanes": 5, "reduction": "pairwise", "chunk": 6},
        {"chunk": 4},
    ):  # fmt: skip
        for product in (None, fmt):
            yield sn.MadUnit(fmt, operand=fmt, product=product, **options, **more)


def drawn(fmt, shape, seed=0):
    rng = np.random.default_rng(seed)
    return sn.Array(rng.integers(0, 1 << fmt.bits, shape).astype(fmt.storage_dtype), fmt)


@pytest.mark.parametrize("with_c", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_order_of_steps(with_c, odd, fp8, isa):
    for fmt in (odd, posit8, fp8, nf4):
        for unit in units(fmt):
            a, b, c = drawn(fmt, (3, 13)), drawn(fmt, (13, 5), 1), drawn(fmt, (3, 5), 2) if with_c else None
            want = by_steps(unit, a.codes, b.codes, None if c is None else c.codes)
            values = sn.decode(want, fmt)
            assert np.array_equal(sn.matmul(a, b, unit, c), values, equal_nan=True), unit
            out = np.zeros((3, 5), np.uint64)
            codes = [None if x is None else x.codes.astype(np.uint64) for x in (a, b, c)]
            definition_of(unit).run(*codes, out, None, (0, 0, 0, 0), 0, 0, 3, 0, 5)
            assert np.array_equal(out, want), unit


def test_sums_in_a_small_format_of_softnums(fp8):
    """One rounding a step in a format of softnum's own, chunks added in a custom one."""
    unit = sn.MadUnit("e4m3", operand="e2m1fn", chunk=4, outer_accumulator=fp8)
    a, b = drawn(unit.operand[0], (3, 13)), drawn(unit.operand[1], (13, 5), 1)
    want = sn.decode(by_steps(unit, a.codes, b.codes), fp8)
    assert np.array_equal(sn.matmul(a, b, unit), want, equal_nan=True)


@cases("n", [1, 7, 16, 17, 63, 65, 130])
def test_widths_of_the_tables_loop(n, isa, odd):
    unit = sn.MadUnit(odd, operand=odd, product=odd)
    a, b = drawn(odd, (5, 9)), drawn(odd, (9, n), 1)
    want = by_steps(unit, a.codes, b.codes)
    assert np.array_equal(sn.matmul(a, b, unit), sn.decode(want, odd))


def test_tables_and_steps_are_the_same(odd, fp8):
    for fmt in (odd, posit8, fp8, nf4):
        for product in (None, fmt):
            gemm = CustomGemm(sn.MadUnit(fmt, operand=fmt, product=product))
            assert gemm.over.__self__ is not gemm.steps
            a, b = drawn(fmt, (20, 40)).codes, drawn(fmt, (40, 70), 1).codes
            start = np.zeros((20, 70), fmt.storage_dtype)
            assert np.array_equal(gemm.over(start, a, b), gemm.steps.over(start, a, b))
            assert not start.any()


def test_threads_batches_and_values(fp8):
    unit = sn.MadUnit(fp8, operand=fp8, product=fp8, chunk=20)
    built_in = sn.MadUnit("e5m2", operand="e5m2", product="e5m2", chunk=20)
    rng = np.random.default_rng(3)
    a, b = (sn.quantize(rng.normal(size=s).astype(np.float32), "e5m2") for s in ((2, 40, 50), (50, 130)))
    c = sn.quantize(rng.normal(size=(40, 130)).astype(np.float32), "e5m2")
    want = sn.matmul(a, b, built_in, c)
    for threads in (1, 2, 5):
        got = sn.matmul(a, b, unit, c, threads=threads)
        assert got.dtype == np.float32 and np.array_equal(got, want)
    assert np.array_equal(sn.matmul(a.astype(np.float64), sn.array(b, fp8), unit, c), want)
    assert sn.dot(a[0, 0], b[:, 0], unit) == sn.dot(a[0, 0], b[:, 0], built_in)
    x, w = (sn.quantize(rng.normal(size=s).astype(np.float32), "e5m2") for s in ((2, 4, 7, 6), (6, 2, 3, 2)))
    options = {"padding": (1, 0), "stride": (2, 1), "groups": 2}
    assert np.array_equal(sn.conv2d(x, w, unit, **options), sn.conv2d(x, w, built_in, **options))
    assert np.array_equal(sn.conv2d(sn.array(x, fp8), w, unit, c=0.5 * np.ones((1, 1, 1), "f4"), **options),
                          sn.conv2d(x, w, built_in, c=0.5 * np.ones((1, 1, 1), "f4"), **options))  # fmt: skip


def test_wide_accumulators_and_formats_of_two_kinds(fp8, fp16):
    rng = np.random.default_rng(4)
    a, b = (sn.quantize(rng.normal(size=s).astype(np.float32) * 30, "e5m2") for s in ((6, 25), (25, 8)))
    c = sn.quantize(rng.normal(size=(6, 8)).astype(np.float32), "e6m9")
    for options in ({}, {"lanes": 2}, {"chunk": 8}, {"chunk": 8, "outer_accumulator": "binary32"}):
        for product in (None, "e5m2", "e6m9"):
            mine = {"e5m2": fp8, "e6m9": fp16, None: None}[product]
            built_in = sn.MadUnit("e6m9", operand="e5m2", product=product, **options)
            start = None if "outer_accumulator" in options else c
            want = sn.matmul(a, b, built_in, start)
            for operand in (fp8, "e5m2", (fp8, "e5m2")):
                unit = sn.MadUnit(fp16, operand=operand, product=mine, **options)
                assert np.array_equal(sn.matmul(a, b, unit, start), want), unit
            if product:
                unit = sn.MadUnit("e6m9", operand=fp8, product=mine, **options)
                assert np.array_equal(sn.matmul(a, b, unit, start), want), unit


def test_directed_rounding_of_tables():
    for rounding in ("up", "toward_zero", "nearest_away"):
        unit = sn.MadUnit(nf4, operand=nf4, product=nf4, rounding=rounding)
        a, b = drawn(nf4, (4, 9)), drawn(nf4, (9, 6), 1)
        assert np.array_equal(sn.matmul(a, b, unit), sn.decode(by_steps(unit, a.codes, b.codes), nf4))


def test_sums_are_the_formats_own_additions(odd, fp8):
    rng = np.random.default_rng(5)
    x = sn.quantize(rng.normal(size=(7, 30)).astype(np.float32), "e5m2")
    for options in ({}, {"lanes": 4, "reduction": "tree"}, {"chunk": 7}):
        mine, built_in = (sn.MadUnit(f, operand=f, product=f, **options) for f in (fp8, "e5m2"))
        assert np.array_equal(sn.sum(x, mine, axis=1), sn.sum(x, built_in, axis=1))
    codes = drawn(odd, (3, 12))
    total = np.full(3, sn.encode(0.0, odd))
    for k in range(12):
        total = odd.apply("add", total, codes.codes[:, k])
    for unit in units(odd):
        if unit.lanes == 1 and not unit.chunk:
            assert np.array_equal(sn.sum(codes, unit, axis=1), sn.decode(total, odd))


def test_nothing_to_sum(fp8):
    unit = sn.MadUnit(fp8, operand=fp8, lanes=2)
    empty = np.zeros((2, 0), np.float32)
    assert np.array_equal(sn.matmul(empty, empty.T, unit), np.zeros((2, 2)))
    assert np.array_equal(sn.matmul(empty, empty.T, unit, np.ones((2, 2), np.float32)), np.ones((2, 2)))
    assert sn.matmul(np.zeros((0, 3), np.float32), np.zeros((3, 4), np.float32), unit).shape == (0, 4)


def test_what_is_not_a_value_or_not_defined(fp8):
    unit = sn.MadUnit(fp8, operand=fp8)
    with pytest.raises(ValueError, match=r"matmul: a\[0, 1\] = .*1.1.* is no value of new_fp \(nearest: .*1.0"):
        sn.matmul(np.float32([[1.0, 1.1]]), np.ones((2, 1), np.float32), unit)
    with pytest.raises(ValueError, match="return_stats=True is not defined for MadUnit.*new_fp"):
        codes = np.zeros((1, 1), np.uint64)
        definition_of(unit).run(codes, codes, None, codes, None, None, 0, 0, 1, 0, 1, tallies=np.zeros(6, np.uint64))
    with pytest.raises(
        ValueError, match="trace: no trace of a MadUnit that computes in custom formats .*apply.'multiply'"
    ):
        unit.trace([1.0], [1.0])
    with pytest.raises(ValueError, match="new_fp rounds as its convert does; leave rounding='up' and overflow="):
        sn.MadUnit(fp8, operand=fp8, rounding="up")
    with pytest.raises(ValueError, match="stochastic rounding is not defined where products or sums are of new_fp"):
        sn.MadUnit("e6m9", operand=fp8, product=fp8, rounding="sr", product_rounding="nearest_even")
    with pytest.raises(ValueError, match="no vectors of units that compute in new_fp"):
        UnitSpec.make("dot", sn.MadUnit(fp8, operand="e5m2"))


def test_the_loops_check_their_shapes():
    product, table = np.zeros((2, 2), np.uint32), np.zeros(4 + _tables.SLACK, np.uint8)
    codes = np.zeros((2, 2), np.uint8)
    with pytest.raises(ValueError, match="the shapes do not fit"):
        _tables.sums(product, table, codes, np.zeros((3, 2), np.uint8), codes)
    with pytest.raises(ValueError, match="rows of b and acc must be contiguous"):
        _tables.sums(product, table, codes, np.zeros((2, 4), np.uint8)[:, ::2], codes.copy())
    with pytest.raises(IndexError, match="0 to 5 lies outside the arrays"):
        _tables.look_up(codes, codes, codes, codes.copy(), 0, 5)
