"""TwoStageDotUnit: the definition in C against the reference, rules by hand; tests/core/test_mma_sim.py has CDNA3's."""

import pickle
from dataclasses import fields

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.mac.presets import unit_of
from softnum.mac.products.engines import definition_of, fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.fused_operands import KINDS, near, operands, some_codes
from tests.support.matmul_units import definition
from tests.support.two_stage_units import UNITS, staged


def options_of(u):
    return {f.name: getattr(u, f.name) for f in fields(u)}


def finite_alone(u):
    return not u.accumulator.has_nan


@cases("u", UNITS, ids=str)
def test_the_definition_is_the_reference(u):
    rng = np.random.default_rng(1)
    fa, fb = u.operand
    for k in (0, 1, 2, 3, 7, 8, 17, 33):
        for source in ("near", "edges", "sparse"):
            n = 12
            if source == "near":
                a, b, c = near(fa, rng, (n, k)), near(fb, rng, (n, k)), near(u.accumulator, rng, n)
            else:
                finite = finite_alone(u)
                a, b = some_codes(fa, rng, (n, k), finite), some_codes(fb, rng, (n, k), finite)
                c = some_codes(u.accumulator, rng, (n,), finite)
            if source == "sparse":
                a[rng.random(a.shape) < 0.6] = 0
                c[rng.random(n) < 0.5] = 0
            out = np.empty(n, np.uint64)
            definition_of(u).run_each(*map(np.ascontiguousarray, (a, b, c)), out, None)
            want = [
                ref.two_stage_dot(x.tolist(), y.tolist(), c=int(z), **options_of(u))[0]
                for x, y, z in zip(a, b, c, strict=True)
            ]
            assert out.tolist() == want, (k, source)


FAST = [
    *UNITS[:4],
    *(sn.unit(f"amd_cdna3_{operand}") for operand in ("fp16", "bf16", "xf32", "fp8", "bf8")),
    staged(8, (20, 38, 30), "binary32", ("e5m2", "binary16"), interleave=2),
    staged(7, (12, 12, 20), "binary32", "bfloat16", c_reach=12, zero_exponent=-126),
    staged(2, (28, 31, 0), "binary32", "e4m3fn", product_limit=127, interleave=2, zero_exponent=-126),
    staged(1, (0, 0, 5), "binary32", "binary16"),
]


def test_which_units_are_fast():
    assert [str(u) for u in FAST if fast_of(u) is None] == []
    assert [u for u in UNITS if fast_of(u) is not None] == UNITS[:4]


@cases("u", FAST, ids=str)
def test_fast_paths_are_the_definition(u, isa):
    rng = np.random.default_rng(3)
    for kind in KINDS:
        for m, n, k in ((1, 1, 1), (2, 7, 5), (5, 33, 16), (3, 17, 33), (4, 40, 150), (130, 9, 40), (2, 3, 300)):
            a, b, c = operands(u, rng, m, n, k, kind)
            if kind == "wide":  # sums of all sizes meet all sizes of C
                c *= np.float32(2.0) ** rng.integers(-60, 60, c.shape, dtype=np.int32).astype(np.float32)
            for start in (None, c):
                want = definition(a, b, u, start)
                assert_same_bits(sn.matmul(a, b, u, start, threads=1), want, str(u), kind, (m, n, k))


@cases("u", UNITS, ids=str)
def test_what_a_unit_is(u):
    assert unit_of(u.expression) == u == pickle.loads(pickle.dumps(u))
    rng = np.random.default_rng(2)
    codes = [near(f, rng, 11).astype(f.storage_dtype) for f in u.operand]
    a, b = (sn.Array(x, f) for x, f in zip(codes, u.operand, strict=True))
    found = u.trace(a, b)
    got = sn.dot(a, b, u)
    assert found.result == got or (found.result != found.result and got != got)
    _, flags = ref.two_stage_dot(*(x.tolist() for x in codes), **options_of(u))
    assert int(found.flags) == int(flags)


def test_each_rule_by_hand():
    unit = staged(8, (24, 31, 24), "binary32", "binary16", zero_exponent=-126)
    one = np.float32([1])
    # C is rounded down where it is aligned, so that a small negative C counts
    assert sn.dot(one, one, unit, -(2.0**-100)) == 1 - 2.0**-24 and sn.dot(one, one, unit, 2.0**-100) == 1
    # products are cut toward zero, 24 bits below the largest
    x = np.float32([1, 2.0**-12])
    assert sn.dot(x, np.float32([1, -(2.0**-13)]), unit) == 1
    assert sn.dot(x, np.float32([1, -(2.0**-12)]), unit) == 1 - 2.0**-24
    # their sum has 31 bits beside C: half a place of C decides a tie, and 2**-32 does not count unless it is negative
    tie, small = np.float32([2.0**-12, 0]), np.float32([2.0**-12, 0])
    assert sn.dot(tie, small, unit, 1 + 2.0**-23) == 1 + 2.0**-22  # 1 + 2**-23 + 2**-24, to even
    assert sn.dot(-tie, small * np.float32(2.0**-12), unit, 1.0) == 1  # -2**-36 -> -2**-31, and 1 - 2**-31 is rounded
    # a sum of zero is +0, and what rounds to zero keeps its sign
    zero = sn.dot(np.float32([1, 1]), np.float32([1, -1]), unit, 0.0)
    assert zero == 0 and not np.signbit(zero)
    low = staged(2, (24, 31, 24), "e5m2", "binary16")
    zero = sn.dot(np.float32([2.0**-14]), np.float32([-(2.0**-14)]), low, 0.0)
    assert zero == 0 and np.signbit(zero)


def test_streams_and_reach():
    joined, apart = (
        staged(4, (4, 9, 9), "binary32", "binary16", interleave=streams, alignment="toward_zero") for streams in (1, 2)
    )
    # 2**-5 is cut off beside 1, but not beside its own stream's 2**-1 until the streams meet
    x, one = np.float32([1, 0.5, 0, 2.0**-5]), np.ones(4, np.float32)
    assert sn.dot(x, one, joined) == sn.dot(x, one, apart) == 1.5
    x[1:] = [2.0**-5, 0, 2.0**-5]
    assert sn.dot(x, one, joined) == 1 and sn.dot(x, one, apart) == 1 + 2.0**-4
    near_c = staged(1, (4, 9, 9), "binary32", "binary16", c_reach=3)
    assert [float(sn.dot(one[:1], one[:1], near_c, -(2.0**-i))) for i in (3, 4)] == [0.875, 1.0]


def test_products_beyond_the_limit():
    unit = staged(4, (24, 31, 24), "binary32", "bfloat16", product_limit=128)
    big = np.float32([2.0**64, 2.0**64])
    assert sn.dot(big, big * np.float32([1, 0]), unit) == np.inf
    assert np.isnan(sn.dot(big, big * np.float32([1, -1]), unit))
    assert sn.dot(big, big * np.float32([-1, 0]), unit, np.inf) == np.inf  # an infinity decides first
    assert np.isnan(sn.dot(big, np.float32([2.0**64, np.nan]), unit))
    free = staged(4, (24, 31, 24), "binary32", "bfloat16")
    assert sn.dot(big, big * np.float32([1, -1]), free) == 0  # no limit: they cancel


@pytest.mark.parametrize("change, message", [
    ({"terms": 0}, "terms must be an integer in 1"),
    ({"fraction_bits": 101}, "fraction_bits must be an integer in 0..100, got 101"),
    ({"interleave": 3}, "interleave must divide terms, got interleave=3, terms=8"),
    ({"interleave": 9, "terms": 9}, "interleave must be an integer in 1..8"),
    ({"alignment": "up"}, "alignment must be down or toward_zero, got 'up'"),
    ({"output_rounding": "stochastic"}, "not defined for this unit"),
    ({"zero_exponent": 3}, "zero_exponent must be an integer"),
    ({"operand": "q4.4"}, "operand must be a float format"),
    ({"overflow": "wrap"}, "wrap"),
])  # fmt: skip
def test_what_is_refused(change, message):
    given = {"terms": 8, "fraction_bits": 24, "sum_fraction_bits": 31, "c_fraction_bits": 24, "operand": "binary16"}
    with pytest.raises(ValueError, match=message):
        sn.TwoStageDotUnit(**{**given, "accumulator": "binary32", **change})


@pytest.mark.parametrize("name", ["nvidia_h100_fp16", "amd_cdna3_fp16", "riscv_rvbna_bf16_vlen128", "amd_cdna2_bf16"])
def test_out_may_be_an_operand(name):
    unit, rng = sn.unit(name), np.random.default_rng(5)
    x = sn.quantize(rng.standard_normal((9, 9)), unit.operand[0]).astype(np.float32)
    want = sn.matmul(x, x, unit, x)
    for pick in ((0,), (1,), (2,), (0, 1, 2)):
        operands = [x, x, x]
        out = x.copy()
        for i in pick:
            operands[i] = out
        assert_same_bits(sn.matmul(*operands[:2], unit, operands[2], out=out), want)
