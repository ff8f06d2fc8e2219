"""Products of matrices in posits and takums: values in lanes against the operations one by one; traces and vectors."""

from __future__ import annotations

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.custom.codes import CustomGemm, _Values
from softnum.runtime import _core
from softnum.vectors.plans.unit_spec import UnitSpec

SINGLE = (
    "posit4_es0", "posit5_es3", "posit6_es1", "posit8", "posit8_es0", "posit12_es0", "posit16", "posit16_es1",
    "posit20", "posit24_es0", "posit9", "posit9_es1",
)  # fmt: skip
DOUBLE = (
    "posit5_es5", "posit16_es3", "posit24", "takum_linear6", "takum_linear7", "takum_linear8",
    "takum_linear11", "takum_linear12", "takum_linear16", "takum_linear24",
)  # fmt: skip


@pytest.fixture(params=_core.available_isas())
def isa(request):
    """Each instruction set of this CPU in turn."""
    before = _core.current_isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)


def engines(unit):
    """(the engine in lanes, the same by operations)"""
    lanes, steps = CustomGemm(unit), CustomGemm(unit)
    values = _Values.of(unit)
    lanes.over, steps.over = values.over, steps.steps.over
    return lanes, steps


def products(unit, *codes):
    """What both engines make of codes of a, b and C."""
    shape = len(codes[0]), codes[1].shape[1]
    return [engine._product(*codes, engine.over, shape) for engine in engines(unit)]


def drawn(rng, fmt, shape, values: bool):
    """Codes of all kinds, or of numbers near 1."""
    if values:
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 9)
        return sn.encode(x, fmt).astype(fmt.storage_dtype)
    return rng.integers(0, 1 << fmt.bits, shape).astype(fmt.storage_dtype)


@pytest.mark.parametrize("name", [*SINGLE, *DOUBLE])
def test_lanes_do_what_the_operations_do(name, isa):
    rng = np.random.default_rng([len(name), *map(ord, name)])
    fmt = sn.format(name)
    for operand in (fmt, sn.format("e4m3fn")):
        for product in (None, fmt, sn.format("posit10_es1")):
            for order in ({}, {"lanes": 3, "reduction": "tree"}, {"chunk": 5}):
                unit = sn.MadUnit(fmt, operand=operand, product=product, **order)
                assert _Values.of(unit) is not None
                for values in (False, True):
                    shapes = ((3, 17), operand), ((17, 70), operand), ((3, 70), fmt)
                    got, want = products(unit, *(drawn(rng, f, shape, values) for shape, f in shapes))
                    np.testing.assert_array_equal(got, want, str((unit, values)))


@pytest.mark.parametrize("name", ["posit6", "posit6_es0", "takum_linear6"])
def test_every_sum_of_every_product(name, isa):
    """All a * b + c of 6 bits."""
    fmt = sn.format(name)
    every = np.arange(64).astype(fmt.storage_dtype)
    for product in (None, fmt):
        unit = sn.MadUnit(fmt, operand=fmt, product=product)
        for c in every:
            got, want = products(unit, every[:, None], every[None, :], np.full((64, 64), c))
            np.testing.assert_array_equal(got, want, str((unit, c)))


def test_carriers():
    """float32 where it holds all that a rounding asks for, then float64; what neither does goes step by step."""
    took = {}
    for name in (*SINGLE, *DOUBLE, "posit32", "takum_linear32", "takum_linear5"):
        values = _Values.of(sn.MadUnit(name, operand=name))
        took[name] = None if values is None else values.dtype.name
    assert took == {
        **dict.fromkeys(SINGLE, "float32"), **dict.fromkeys(DOUBLE, "float64"), "posit32": None, "takum_linear32": None,
        "takum_linear5": None,
    }  # fmt: skip
    assert _Values.of(sn.MadUnit("posit16", operand="posit16", product="binary32")) is None
    assert _Values.of(sn.MadUnit("posit32", operand="posit16")).dtype == np.float64


def test_through_matmul_and_back():
    """The public way, threads and all; sums of numbers too."""
    rng = np.random.default_rng(3)
    a, b = sn.array(rng.standard_normal((40, 90)), "posit16"), sn.array(rng.standard_normal((90, 70)), "posit16")
    unit = sn.MadUnit("posit16", operand="posit16")
    _, steps = engines(unit)
    want = steps._product(a.codes, b.codes, None, steps.over, (40, 70))
    for threads in (1, 2):
        got = sn.matmul(a, b, unit, threads=threads)
        np.testing.assert_array_equal(sn.encode(got, "posit16"), want)
    total = a.codes[:, 0]
    for k in range(1, 90):
        total = sn.add(total, a.codes[:, k], "posit16")
    np.testing.assert_array_equal(sn.encode(sn.sum(a, unit, axis=1), "posit16"), total)


@pytest.mark.parametrize("name", ["posit8", "posit16", "posit5_es3", "takum_linear8", "takum_linear12", "posit32"])
@pytest.mark.parametrize("order", [{}, {"lanes": 3}, {"chunk": 2}, {"rounded": True}])
def test_traces_end_where_dot_does(name, order):
    fmt, rng = sn.format(name), np.random.default_rng(len(name))
    order = dict(order)
    product = fmt if order.pop("rounded", False) else None
    unit = sn.MadUnit(fmt, operand=fmt, product=product, **order)
    for _ in range(12):
        a, b = (sn.Array(drawn(rng, fmt, 5, False), fmt) for _ in "ab")
        trace = unit.trace(a, b)
        want = sn.dot(a, b, unit)
        want = want.codes if isinstance(want, sn.Array) else sn.encode(np.asarray(want, np.float64), fmt)
        assert trace.code == int(want)
        for step in trace.steps:
            if step.lost is None:
                continue
            assert 0 <= step.lost < 1
            if step.kept:  # below the smallest value everything goes up
                assert {"up": step.lost >= 0.5, "down": 0 < step.lost <= 0.5}.get(step.decision, step.lost == 0)


@pytest.mark.parametrize(
    "a, b, bits, code",
    [
        (1.5, 1.5, (0, 0, 0), 0x49),
        (1.25, 1.375, (1, 1, 0), 0x46),  # 1.71875 lies 3/4 of the way from 1.625 to 1.75
        (1024.0, 4096.0, (1, 0, 0), 0x7E),  # 2^22 has the string of 2^20 and a 1 more: a tie
        (1024.0, 6144.0, (1, 0, 1), 0x7F),  # 1.5 * 2^22 goes up to 2^24
    ],
)
def test_a_trace_shows_the_bit_string(a, b, bits, code):
    unit = sn.MadUnit("posit24", operand="posit24", product="posit8")
    product = unit.trace(sn.array([a], "posit24"), sn.array([b], "posit24")).steps[1]
    assert (product.guard_round_sticky, product.code) == (bits, code)


@pytest.mark.parametrize("expression", [
    "MadUnit('posit16', operand='posit16')",
    "MadUnit('takum_linear16', operand='takum_linear16', chunk=3, outer_accumulator='takum_linear32')",
    "MadUnit('binary32', operand='posit8', product='posit16')",
])  # fmt: skip
@pytest.mark.parametrize("op", ["dot", "mac", "gemm"])
def test_vectors_are_the_traces_results(expression, op):
    spec = UnitSpec.make(op, expression, with_c=True, **({} if op == "gemm" else {"length": 5}))
    rng = np.random.default_rng(0)
    unit, rows = spec.unit, 10
    m, n, k = spec.shape if op != "mac" else (1, 1, 1)
    a, b, c = (drawn(rng, f, (rows, size), True) for f, size in zip(spec.formats, (m * k, k * n, m * n), strict=True))
    first = np.arange(rows) % 5 == 0
    operands = (first.astype(np.uint8), a[:, 0], b[:, 0], c[:, 0]) if op == "mac" else (a, b, c.squeeze())
    result = spec.evaluate(operands).result.reshape(rows, -1)
    for i in range(rows):
        if op == "mac":
            start = i - i % 5
            x, y, z = a[start : i + 1, 0], b[start : i + 1, 0], c[start]
            traced = unit.trace(*map(sn.Array, (x, y, z), spec.formats))
            assert traced.code == result[i, 0]
            continue
        for row in range(m):
            for column in range(n):
                x, y = a[i].reshape(m, k)[row], b[i].reshape(k, n)[:, column]
                z = c[i].reshape(m, n)[row, column : column + 1]
                assert unit.trace(*map(sn.Array, (x, y, z), spec.formats)).code == result[i, row * n + column]


def test_formats_of_the_users_own_have_neither():
    own = sn.CustomFormat.from_table([0.0, 1.0, -1.0, 0.5], name="own")
    unit = sn.MadUnit(own, operand=own)
    with pytest.raises(ValueError, match="no trace of a MadUnit that computes in custom formats.*own"):
        unit.trace([1.0], [1.0])
    with pytest.raises(ValueError, match="own.* of which no vectors are made"):
        UnitSpec.make("dot", unit)
