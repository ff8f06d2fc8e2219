"""MadUnits that flush subnormals: the engine against the reference, and what each rule does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.engines import definition_of, fast_of
from softnum.reference import mad_dot

INPUTS, RESULTS = (False, True, "sums", "positive"), (None, "before", "after", "subnormal")


@pytest.mark.parametrize("order", [{}, {"lanes": 3}, {"chunk": 2}, {"product": "e5m2"}, {"lanes": 2, "chunk": 2}])
@pytest.mark.parametrize("operand", ["e5m2", "e5m2fnuz"])
@pytest.mark.parametrize("inputs, results", list(itertools.product(INPUTS, RESULTS)))
def test_engine_and_reference(inputs, results, operand, order):
    unit = sn.MadUnit("e5m4", operand=operand, flush_inputs=inputs, flush_results=results, **order)
    assert eval(repr(unit), vars(sn)) == unit and unit.flushes == bool(inputs or results)
    if unit.flushes:
        assert fast_of(unit).path == "lanes"
    rng = np.random.default_rng(5)
    small = lambda bits, shape: (rng.integers(0, 24, shape) | rng.integers(0, 2, shape) << (bits - 1)).astype(np.uint64)  # noqa: E731
    a, b, c = small(8, (200, 5)), small(8, (200, 5)), small(10, 200)
    b[:100] = rng.integers(0, 256, (100, 5))
    b[b & 0x7F > 0x7C] = 0x3C
    out = np.empty(200, np.uint64)
    definition_of(unit).run_each(a, b, c, out, None)
    for row in range(200):
        want, _ = mad_dot(
            a[row].tolist(), b[row].tolist(), accumulator="e5m4", operand=operand, product=unit.product,
            lanes=unit.lanes, chunk=unit.chunk, flush_inputs=inputs, flush_results=results, c=int(c[row]),
        )  # fmt: skip
        assert want == out[row]
    x, y = (sn.Array(v[0].astype(np.uint8), sn.format(operand)) for v in (a, b))
    start = sn.Array(c[:1].astype(np.uint16), sn.format("e5m4"))
    assert unit.trace(x, y, start).code == out[0]


def test_what_each_rule_does():
    """2^-14 is the smallest normal number of e5m2, 2^-16 the smallest."""
    make = lambda **flush: sn.MadUnit("e5m2", operand="e5m10", **flush)  # noqa: E731
    just_below = 2.0**-14 * (1 - 2.0**-11)
    a, b = [just_below * 2.0**12], [2.0**-12]
    assert [float(sn.dot(a, b, make(flush_results=how))) for how in RESULTS] == [2.0**-14, 0, 2.0**-14, 2.0**-14]
    gap = [2.0**-14 * (1 - 2.0**-4) * 2.0**8]  # 15/16: to 2^-14 on e5m2's grid, to 15/16 rounded up with 3 bits
    assert [float(sn.dot(gap, [2.0**-8], make(flush_results=how))) for how in RESULTS] == [
        2.0**-14,
        0,
        2.0**-14,
        2.0**-14,
    ]
    low = [2.0**-14 * 0.75 * 2.0**8]
    assert [float(sn.dot(low, [2.0**-8], make(flush_results=how))) for how in RESULTS] == [0.75 * 2.0**-14, 0, 0, 0]
    minus = sn.array([[-0.0]], "e5m2")
    signs = [
        np.signbit(sn.matmul([[0.0]], [[-1.0]], make(flush_inputs=how), minus)[0, 0])
        for how in (False, True, "positive")
    ]
    assert signs == [True, True, False]


def test_operations_flush_what_rounds_to_a_subnormal():
    """All products of e4m3: what is subnormal once it is rounded is a zero of its sign, the rest as it was."""
    fmt = sn.format("e4m3")
    codes = np.arange(256, dtype=np.uint8)
    for mode in ("nearest_even", "toward_zero", "up", "down", "to_odd", "nearest_away"):
        plain, flags = sn.multiply(codes[:, None], codes, fmt, rounding=mode, return_flags=True)
        got, raised = sn.multiply(
            codes[:, None], codes, fmt, rounding=mode, flush_results="subnormal", return_flags=True
        )
        small = fmt.is_subnormal(plain)
        np.testing.assert_array_equal(got, np.where(small, plain & 0x80, plain))
        np.testing.assert_array_equal(raised, np.where(small, int(sn.Flags.INEXACT | sn.Flags.UNDERFLOW), flags))


def test_what_is_refused():
    for wrong in ("+0", "yes"):
        with pytest.raises(ValueError, match="flush_inputs must be a bool, 'sums' or 'positive'"):
            sn.MadUnit("e5m2", operand="e5m2", flush_inputs=wrong)
    with pytest.raises(ValueError, match="flush_results must be None, 'before' or 'after' rounding or 'subnormal'"):
        sn.MadUnit("e5m2", operand="e5m2", flush_results="never")
    with pytest.raises(ValueError, match="flushing is not defined where products or sums are of posit8"):
        sn.MadUnit("posit8", operand="posit8", flush_results="after")
    with pytest.raises(TypeError, match="no error bounds are known of a MadUnit that flushes"):
        sn.bound(sn.MadUnit("e5m2", operand="e5m2", flush_results="after"), [1.0], [1.0])
