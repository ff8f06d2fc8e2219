"""Traces of fused units: their results are those of dot, their steps follow from each other."""

from fractions import Fraction

import numpy as np

import softnum as sn
from softnum.formats.modes import Flags
from tests.support.cases import cases
from tests.support.core_oracles import same_bits

UNITS = ["nvidia_v100_fp16", "nvidia_h100_e4m3", "nvidia_h100_e4m3_mma", "nvidia_b200_e5m2", "x86_avx512_bf16"]


def operands(unit, rng, k, kind):
    x, y, z = rng.standard_normal(k), rng.standard_normal(k), rng.standard_normal()
    if kind == "wide":
        x, y, z = x * 2.0 ** rng.integers(-9, 9, k), y * 2.0 ** rng.integers(-9, 9, k), z * 2.0 ** rng.integers(-30, 20)
    a, b = (sn.quantize(v, f, overflow="saturate") for v, f in ((x, unit.operand[0]), (y, unit.operand[1])))
    if kind == "special" and k:
        a[0] = np.nan
    if kind == "zero":
        a[:] = 0
        z = 0
    return a, b, sn.quantize(z, unit.c_format)


@cases("kind", ["normal", "wide", "special", "zero"])
@cases("name", UNITS)
def test_the_result_is_that_of_dot(name, kind):
    unit, rng = sn.unit(name), np.random.default_rng(1)
    for k in (0, 1, 3, 8, 35):
        a, b, c = operands(unit, rng, k, kind)
        for start in (None, c):
            trace = unit.trace(a, b, start)
            want = sn.dot(a, b, unit, start)
            assert same_bits(np.atleast_1d(trace.result), np.atleast_1d(want)), (k, kind)
            assert str(unit) in str(trace)
            if trace.steps:
                assert trace.steps[-1].code == trace.code


def test_a_step_by_hand():
    unit = sn.unit("nvidia_v100_fp16")
    trace = unit.trace([1.5, 2.0**-12], [1.5, 2.0**-12 + 2.0**-13], 4.0)
    names = [s.name for s in trace.steps]
    assert names == ["exact product", "exact product", "aligned", "aligned", "aligned", "sum", "rounded"]
    lost = trace.steps[3]
    assert lost.exact == Fraction(3, 2**25) and lost.kept == 0 and lost.quantum == Fraction(1, 2**21)
    assert lost.lost == Fraction(3, 16) and lost.decision == "down" and lost.flags == Flags.INEXACT
    assert trace.steps[5].exact == Fraction(25, 4) == trace.value


def test_what_is_cut_twice():
    unit = sn.FusedDotUnit(2, 13, "binary32", operand="e4m3fn", truncate_fraction=2)
    trace = unit.trace([1.0, 0.5], [1.0, 0.25])
    cut = trace.steps[-2]
    assert (cut.name, cut.exact, cut.kept, cut.quantum) == ("cut", Fraction(9, 8), 1, Fraction(1, 4))
    assert trace.result == 1


def test_overflow_and_c_added_after():
    unit = sn.FusedDotUnit(1, 20, "e5m2", operand="e5m2", overflow="always_infinity")
    trace = unit.trace([57344.0], [2.0])
    assert trace.steps[-1].decision == "overflow" and trace.result == np.inf
    after = sn.unit("nvidia_b200_e4m3").trace([1.0], [1.0], 2.0**-30)
    assert [s.name for s in after.steps][-2:] == ["rounded", "C added"]
    assert after.steps[-1].exact == 1 + Fraction(1, 2**30) and after.result == 1


def test_a_chain_takes_the_odd_element_first():
    trace = sn.unit("x86_avx512_bf16").trace([1.0, 2.0], [1.0, 2.0], 2.0**-130)
    assert [s.where["k"] for s in trace.steps if s.name == "sum"] == [1, 0]
    assert trace.steps[1].exact == 4 and trace.result == 5  # the subnormal C counts as zero


def test_what_is_invalid_is_told():
    """inf - inf in a chain and where C is added, whose result no rounding gives."""
    chain = sn.FmaChainUnit("binary32", operand="bfloat16", k_order=(0, 2, 1, 3))
    assert chain.trace([np.inf, np.inf], [-1.0, 1.0]).flags == Flags.INVALID
    assert chain.trace([np.inf, 1.0], [-1.0, 1.0]).flags == Flags(0)
    assert chain.trace([1.0, 2.0**-60], [1.0, 1.0]).flags == Flags.INEXACT
    after = sn.unit("nvidia_b200_e5m2")
    assert after.c == "after" and after.trace([np.inf], [1.0], -np.inf).flags == Flags.INVALID
