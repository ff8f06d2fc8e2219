"""Error bounds of products: never below the error, by brute force, and caught where a factor is missing."""

import itertools
import re
from fractions import Fraction
from math import inf

import numpy as np
import pytest

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES
from softnum.inspect.bounds import growth, running
from softnum.inspect.bounds.growth import plus, times, upward
from tests.support.block_units import any_codes, block, small
from tests.support.block_units import operand as block_operand
from tests.support.cases import cases
from tests.support.mad_units import NEW

MADS = [u for u in NEW if not isinstance(u.operand[0], sn.CustomFormat)]
KAHAN = {"compensated": "kahan"}
OTHERS = [
    *(sn.FusedDotUnit(4, f, "e5m6", operand="e4m3fn", output_rounding=mode, **more)
      for f, mode, more in itertools.product(
          (3, 6, 12), ("toward_zero", "nearest_even", "up", "to_odd"),
          ({}, {"min_exponent": -6}, {"truncate_fraction": 2}, {"output": "e5m2", "k_order": (1, 0, 3, 2, 6, 7, 4, 5)},
           {"c": "after", "output": "e5m2"}, {"overflow": "always_infinity"}))),
    *(sn.FmaChainUnit("e5m3", operand="e5m2", rounding=mode, **more)
      for mode, more in itertools.product(
          ("nearest_even", "toward_zero", "away_from_zero", "down"),
          ({}, {"flush_inputs": True}, {"flush_results": "before"}, {"flush_results": "after"},
           {"flush_inputs": True, "flush_results": "after", "k_order": (2, 0, 1)}))),
    *(sn.TwoStageDotUnit(4, f, f + 2, f, "e5m6", operand="e4m3fn", output_rounding=mode, **more)
      for f, mode, more in itertools.product(
          (3, 9), ("nearest_even", "toward_zero"),
          ({}, {"interleave": 2, "c_reach": 4}, {"zero_exponent": -20},
           {"product_limit": 9, "alignment": "toward_zero"}))),
    *(sn.ExactDotUnit(acc, operand="e5m2", rounding=mode)
      for acc, mode in itertools.product(("e4m3", "q6.4", "e5m2"), ("nearest_even", "stochastic", "up"))),
    *(sn.ChunkedDotUnit(inner, 5, "e5m4", rounding=mode)
      for inner, mode in itertools.product(
          (sn.MadUnit("e5m3", operand="e4m3fn", **KAHAN, lanes=2, chunk=3),
           sn.MadUnit("e4m3fn", operand="e4m3fn"),
           sn.FusedDotUnit(2, 5, "e5m3", operand="e4m3fn", min_exponent=-8),
           sn.FmaChainUnit("e5m3", operand="e4m3fn", flush_inputs=True),
           sn.ExactDotUnit("e5m2", operand="e4m3fn")),
          ("nearest_even", "toward_zero"))),
]  # fmt: skip
SMALL = small("e4m3fn", size=3)
BLOCKS = [
    block("e5m4", SMALL),
    block("e5m4", SMALL, product="e5m3", product_rounding="down"),
    block("e5m4", SMALL, rounding="stochastic", stochastic_bits=5),
    block("e5m4", SMALL, inner=sn.MadUnit("e5m3", operand="e4m3fn", product="e5m2", lanes=2)),
    block("e5m4", SMALL, inner=sn.MadUnit("e5m3", operand="e4m3fn", rounding="stochastic", stochastic_bits=4)),
    block("e5m4", SMALL, inner=sn.FusedDotUnit(2, 4, "e5m3", operand="e4m3fn"), rounding="toward_zero"),
    block("e5m4", SMALL, inner=sn.FmaChainUnit("e5m3", operand="e4m3fn", flush_inputs=True)),
    block("e5m4", SMALL, inner=sn.ExactDotUnit("e4m2", operand="e4m3fn"), product="e4m3"),
    block("e5m4", SMALL, inner=sn.ChunkedDotUnit(sn.MadUnit("e5m3", operand="e4m3fn"), 2, "e5m3")),
    block("e6m5", "nvfp4"),
    block("e6m5", "nvfp4", product="e5m3", rounding="up"),
    block("binary32", small("e2m1fn", "e4m3fn", 4)),
    block("q12.4", small("q2.6", size=4), rounding="down"),
]


def key_of(unit):
    return {"key": sn.Stream(5)} if unit.stochastic else {}


def exact_sum(a, b, c):
    return sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(float(c)))


def check(unit, a, b, c=None):
    """The bound of a product holds; (how much of the a priori one, of the running one, the errors reach)."""
    try:
        found = sn.bound(unit, a, b, c, **key_of(unit))
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error)[:20])):
            sn.matmul(a, b, unit, c, **key_of(unit))  # which has no code for a NaN
        return 0.0, 0.0
    ok = ~np.isnan(found.error)
    assert np.array_equal(ok, ~np.isnan(found.a_priori)) and np.array_equal(ok, ~np.isnan(found.running))
    error, runs, most = (x[ok] for x in (found.error, found.running, found.a_priori))
    assert (error <= runs).all(), (unit, error, runs)
    assert (error <= most).all(), (unit, error, most)
    slack = 1 + 4 * max(2.0 ** -(f.precision or 60) for f in unit.rounded_to if f is not None)
    assert (runs <= most * slack).all(), (unit, runs, most)
    reached = [np.max(np.divide(error, x, out=np.zeros_like(x), where=(x > 0) & (x < inf)), initial=0.0)
               for x in (most, runs)]  # fmt: skip
    return tuple(reached)


def some(rng, fmt, shape, kind):
    """Operands: of all codes; near 1; that grow or fall along K; that cancel."""
    if kind == "codes":
        codes = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(fmt.storage_dtype)
        return sn.Array(codes, fmt)
    x = rng.standard_normal(shape) + 1
    if kind == "spread":
        x = x * 2.0 ** rng.integers(-8, 4, shape)
    if kind == "tiny":
        x = x * float(fmt.smallest_normal) ** 0.5 / 2
    if not fmt.signed:
        x = np.abs(x)
    return sn.array(x, fmt, overflow="saturate")


KINDS = ("near", "spread", "tiny", "codes")


def start_of(rng, unit, shape):
    x = rng.standard_normal(shape) * 2
    return sn.array(x if unit.c_format.signed else np.abs(x), unit.c_format, overflow="saturate")


@cases("unit", [*MADS[::6], *OTHERS], ids=lambda u: str(u)[:100])
def test_bounds_hold(unit):
    holds(unit)


@pytest.mark.slow
@cases("unit", MADS, ids=lambda u: str(u)[:100])
def test_bounds_of_more_units_hold(unit):
    holds(unit)


def holds(unit):
    rng = np.random.default_rng(7)
    for kind, (k, with_c) in itertools.product(KINDS, ((1, True), (11, False), (8, True))):
        a, b = some(rng, unit.operand[0], (1, k), kind), some(rng, unit.operand[1], (k, 2), kind)
        check(unit, a, b, start_of(rng, unit, (1, 2)) if with_c else None)


@cases("unit", BLOCKS, ids=lambda u: str(u)[:100])
def test_bounds_of_blocks_hold(unit):
    rng = np.random.default_rng(3)
    fa, fb = unit.operand
    for make, k, with_c in itertools.product((block_operand, any_codes), (1, 7, 17), (False, True)):
        a, b = make(rng, fa, (2, k), -1), make(rng, fb, (k, 3), -2)
        check(unit, a, b, start_of(rng, unit, (2, 3)) if with_c else None)


def test_values_of_a_table():
    """Operands of a format that values define, whose products are no sums of powers of two that are near each other."""
    table = sn.CustomFormat.from_table([0.0, 0.08, -0.34, 1.0, -0.5, 2.0**-60, 3.0, -1.0])
    rng = np.random.default_rng(3)
    a, b = (sn.Array(rng.integers(0, 8, shape).astype(np.uint8), table) for shape in ((2, 9), (9, 2)))
    for unit in (sn.MadUnit("e5m4", operand=table), sn.ExactDotUnit("e4m3", operand=table, rounding="up")):
        reached, _ = check(unit, a, b)
        assert reached > 0


@pytest.mark.slow
@cases("name", sn.units())
def test_presets(name):
    unit = sn.unit(name)
    if getattr(unit, "flushes", False):
        with pytest.raises(TypeError, match="no error bounds are known of a (Mad|GroupedDot)Unit that flushes"):
            sn.bound(unit, [1.0], [1.0])
        return
    if isinstance(unit, sn.BlockFusedDotUnit):
        with pytest.raises(TypeError, match="none are derived of BlockFusedDotUnits"):
            sn.bound(unit, [1.0], [1.0])
        return
    rng = np.random.default_rng(11)
    for kind, k in itertools.product(KINDS, (3, 40)):
        if isinstance(unit, sn.BlockDotUnit):
            a, b = (
                block_operand(rng, f, s, axis)
                for f, s, axis in zip(unit.operand, ((1, k), (k, 2)), (-1, -2), strict=True)
            )
        else:
            a, b = some(rng, unit.operand[0], (1, k), kind), some(rng, unit.operand[1], (k, 2), kind)
        check(unit, a, b)


# -- exhaustive in small formats ---------------------------------------------------------------------------------------

TINY = sn.FloatFormat(2, 0, specials="none", name="tiny")


@cases("unit", [
    sn.MadUnit("e3m1", operand=TINY),
    sn.MadUnit("e3m1", operand=TINY, rounding="toward_zero", lanes=2),
    sn.MadUnit("e2m1", operand=TINY, product=sn.FloatFormat(3, 0, specials="fn"), **KAHAN),
    sn.FusedDotUnit(2, 1, "e3m2", operand=TINY, min_exponent=-1),
    sn.FmaChainUnit("e3m1", operand=TINY, flush_inputs=True, flush_results="after"),
    sn.TwoStageDotUnit(2, 1, 2, 1, "e3m2", operand=TINY, interleave=2),
    sn.ExactDotUnit("q3.1", operand=TINY, rounding="up"),
], ids=str)  # fmt: skip
def test_every_pair_of_vectors(unit):
    codes = np.arange(1 << TINY.bits, dtype=np.uint8)
    every = np.array(list(itertools.product(codes, repeat=2)))
    check(unit, sn.Array(every, TINY), sn.Array(every[::3].T.copy(), TINY))


@pytest.mark.slow
@cases("mode", [m for m in ROUNDING_MODES if not m.startswith("stochastic")])
def test_vectors_of_e2m1fn_in_every_mode(mode):
    codes = np.arange(16, dtype=np.uint8)
    every = np.array(list(itertools.product(codes, repeat=2)))
    a, b = sn.Array(every, "e2m1fn"), sn.Array(every[::17].T.copy(), "e2m1fn")
    for more in (
        {},
        {"product": "e3m1"},
        KAHAN,
        {"lanes": 2},
        {"chunk": 1, "outer_accumulator": sn.FloatFormat(4, 0, specials="fn")},
    ):
        check(sn.MadUnit("e3m2", operand="e2m1fn", rounding=mode, **more), a, b)


# -- bounds that are as small as they can be: what is missing is caught ------------------------------------------------


def mad(*values, **options):
    """Ones times values, under a unit of seven bits of precision."""
    a = np.array([values], np.float32)
    check(sn.MadUnit("e8m6", operand="e8m13", **options), a, np.ones_like(a).T)


CUT = 2.0**-6 - 2.0**-13  # just below the distance of 1 and the next value


def case_chain():
    mad(1 + CUT, CUT, rounding="toward_zero")


def case_nearest():
    mad(1 + 2.0**-7)


def case_lanes():
    mad(1 + CUT, CUT, rounding="toward_zero", lanes=2)


def case_chunks():
    mad(1.0, CUT, CUT, rounding="toward_zero", chunk=1)


def case_product():
    mad(1 + CUT, rounding="toward_zero", product="e8m6")


def case_underflow():
    tiny = np.array([[2.0**-16]], np.float32)
    check(sn.MadUnit("e5m2", operand="e5m2"), tiny, np.array([[0.375]], np.float32))


def case_gap():
    x = np.array([[2.0**-3 * 15 / 16]], np.float32)
    check(sn.MadUnit(sn.FloatFormat(4, 3, subnormals=False), operand="e4m3", rounding="toward_zero"), x, x)


def case_alignment():
    a = np.array([[2.0**-4 - 2.0**-8] * 2], np.float32)
    c = np.array([[1 + 2.0**-4 - 2.0**-8]], np.float32)
    check(sn.FusedDotUnit(2, 4, "e8m10", operand="binary16"), a, np.ones_like(a).T, c)


def case_lifted():
    x = np.array([[2.0**-9]], np.float32)
    check(sn.FusedDotUnit(1, 4, "e8m10", operand="e4m3fn"), x, x)


def case_least_exponent():
    x = np.array([[2.0**-3]], np.float32)
    check(sn.FusedDotUnit(1, 4, "e8m10", operand="e4m3fn", min_exponent=0), x, x)


def case_own_fraction():
    a = np.array([[1.0, 2.0**-2 - 2.0**-8]], np.float32)
    check(sn.FusedDotUnit(2, 20, "e8m20", operand="binary16", truncate_fraction=2), a, np.ones_like(a).T)


def case_flushed():
    a, b = np.array([[2.0**-16]], np.float32), np.array([[2.0**15]], np.float32)
    check(sn.FmaChainUnit("e8m10", operand="e5m2", flush_inputs=True), a, b)


def case_inner():
    fmt = sn.BlockFormat("e4m3fn", "e8m0fnu", 2)
    unit = sn.BlockDotUnit("e8m20", operand=fmt, inner=sn.MadUnit("e8m1", operand="e4m3fn"))
    a = sn.array(np.array([[448.0, 30.0]]), fmt, axis=-1)
    assert a.scales.tolist() == [[127]]
    a = sn.BlockArray(a.codes, a.scales + np.uint8(8), fmt, -1)
    check(unit, a, a.T)


def case_tensor_scale():
    x = np.full((1, 3), 1e30)
    a = sn.array(x, "nvfp4", axis=-1)
    check(sn.BlockDotUnit("e8m3", operand="nvfp4", rounding="toward_zero"), a, a.T)


def case_overflow():
    a = np.full((1, 3), 448, np.float32)
    check(sn.MadUnit("e4m3fn", operand="e4m3fn", overflow="saturate"), a, np.ones_like(a).T)


def case_wrap():
    a = np.full((1, 3), 7, np.float32)
    check(sn.MadUnit("q4.0", operand="q4.0", overflow="wrap"), a, np.ones_like(a).T)


def case_kahan():
    mad(1.0, *[CUT] * 3, rounding="toward_zero", **KAHAN)


CASES = {name.removeprefix("case_"): test for name, test in globals().items() if name.startswith("case_")}


def fewer(self, how, fmt, times_=1, plain=growth.Growth.rounded):
    return plain(self, how, fmt, max(times_ - 1, 0))


def local_with(**changes):
    def planted(*arguments, plain=growth.local, **options):
        found = plain(*arguments, **options)
        return growth.Local(*(x * changes.get(name, 1) for name, x in zip(found._fields, found, strict=True)))

    return planted


def no_field(name, value):
    def planted(*arguments, plain=growth.growth_of):
        return plain(*arguments)._replace(**{name: value})

    return planted


#: what is planted, where, and which cases catch it
PLANTED = {
    "a rounding too few": ("growth.Growth.rounded", fewer, "chain nearest chunks underflow alignment"),
    "half of u": ("growth.local", local_with(relative=0.5), "chain nearest lanes product"),
    "no underflow": ("growth.local", local_with(absolute=0.0), "underflow gap"),
    "lanes added exactly": ("growth._depth", lambda n, how: 0, "lanes"),
    "C is not aligned": ("growth._fused_step.terms", None, "alignment"),
    "products by their own exponent": ("product.growth_of", no_field("lifted", False), "lifted"),
    "operands are not flushed": ("product.growth_of", no_field("flushes", False), "flushed"),
    "overflow is forgotten": ("product.growth_of", no_field("most", inf), "overflow wrap"),
    "half of what a step loses": ("running.lost", None, "chain nearest lanes product underflow gap alignment"),
    "cuts lose nothing": ("running.cut", None, "alignment own_fraction"),
    "inner sums lose nothing": ("running._inner_errors", lambda unit, a, b, words: [], "inner"),
    "a step beyond the range": ("running.range", None, "overflow wrap"),
}


@cases("name", CASES)
def test_close_cases_hold(name):
    CASES[name]()


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_missing_is_caught(planted, monkeypatch):
    where, what, by = PLANTED[planted]
    plain = running.lost
    if where == "growth._fused_step.terms":
        whole = growth._fused_step

        def what(unit, fmt):
            return whole(sn.FusedDotUnit(unit.terms - 1, unit.fraction_bits, unit.accumulator, unit.operand), fmt)

        where = "growth._fused_step"
    elif where == "running.lost":
        what = lambda step, *options: plain(step, *options) / 2  # noqa: E731
    elif where == "running.cut":
        where = "running.lost"
        what = lambda step, *options: Fraction(0) if step.format is None else plain(step, *options)  # noqa: E731
    elif where == "running.range":
        where = "running.lost"

        def what(step, *options):
            found = plain(step, *options)
            return running._last_place(running._number(step.value), step.format) if found == inf else found

    for name in by.split():
        with monkeypatch.context() as patch:
            patch.setattr(f"softnum.inspect.bounds.{where}", what)
            with pytest.raises(AssertionError):
                CASES[name]()


# -- what bounds say besides -------------------------------------------------------------------------------------------


def test_the_textbook_bound():
    """A chain of K fused steps: ((1 + u)^K - 1) |a||b|, in nearest and in directed modes."""
    rng = np.random.default_rng(2)
    a, b = sn.quantize(rng.standard_normal((2, 50)), "bfloat16"), sn.quantize(rng.standard_normal((50, 3)), "bfloat16")
    for mode, u in (("nearest_even", 2.0**-24), ("toward_zero", 2.0**-23)):
        found = sn.bound(sn.MadUnit("binary32", operand="bfloat16", rounding=mode), a, b)
        want = ((1 + Fraction(u)) ** 50 - 1) * Fraction(1)
        ratio = found.a_priori / (np.abs(a) @ np.abs(b) * float(want))
        assert (1 <= ratio).all() and (ratio < 1 + 1e-6).all()
    # chunks: 10 roundings within, 5 outside; the first of the outer sum is exact
    found = sn.bound(sn.MadUnit("binary32", operand="bfloat16", chunk=10), a, b)
    ratio = found.a_priori / (np.abs(a) @ np.abs(b) * (10 + 4) * 2.0**-24)
    assert (1 <= ratio).all() and (ratio < 1 + 1e-5).all()


def test_compensated_sums_have_bounds_that_do_not_grow():
    a = np.ones((1, 1000), np.float32)
    plain, kahan = (sn.bound(sn.MadUnit("binary32", operand="e5m2", **more), a, a.T, running=False).a_priori.item()
                    for more in ({}, KAHAN))  # fmt: skip
    assert 990 < plain / 1000 / 2.0**-24 < 1010
    assert kahan / 1000 / 2.0**-24 < 3.1


def test_errors_are_those_of_fractions_and_of_the_exact_unit():
    rng = np.random.default_rng(2)
    a, b = sn.quantize(rng.standard_normal((3, 20)), "e5m2"), sn.quantize(rng.standard_normal((20, 2)), "e5m2")
    c = sn.quantize(rng.standard_normal((1, 2)), "e6m3")
    unit = sn.MadUnit("e6m3", operand="e5m2", product="e4m2", lanes=3)
    found = sn.bound(unit, a, b, c)
    assert np.array_equal(found.result, sn.matmul(a, b, unit, c))
    wide = sn.matmul(a, b, sn.ExactDotUnit("binary64", operand="e5m2"), np.broadcast_to(c, (3, 2)).astype(np.float64))
    for at in np.ndindex(3, 2):
        exact = exact_sum(a[at[0]], b[:, at[1]], c[0, at[1]])
        assert Fraction(wide[at].item()) == exact
        error = abs(Fraction(found.result[at].item()) - exact)
        assert Fraction(found.error[at].item()) >= error > Fraction(np.nextafter(found.error[at], -inf).item())
        ulps = abs(sn.ops.ulp_error(sn.array(found.result[at].item(), "e6m3"), [exact]))
        assert found.ulps[at] == pytest.approx(ulps.item(), rel=1e-12)


def test_special_values_and_overflow():
    unit = sn.MadUnit("e5m2", operand="e5m2")
    a = np.array([[1.0, np.inf], [np.nan, 1.0], [57344.0, 57344.0], [1.0, 0.5]], np.float32)
    found = sn.bound(unit, a, np.ones((2, 1), np.float32))
    for x in (found.a_priori, found.running, found.error, found.ulps):
        assert np.isnan(x[:2]).all() and not np.isnan(x[2:]).any()
    assert found.error[2:].ravel().tolist() == [inf, 0]
    assert found.running[2:].ravel().tolist() == [inf, 0]
    assert found.a_priori[2, 0] == inf > found.a_priori[3, 0] > 0
    below = sn.bound(sn.MadUnit("uq4.0", operand="q4.0"), np.float32([[1, -1]]), np.float32([[1], [1]]))
    assert below.a_priori.item() == inf
    assert below.running.item() == 0  # 1 - 1 it could hold


def test_shapes():
    unit = sn.MadUnit("e6m3", operand="e5m2")
    one = sn.bound(unit, np.ones(3, np.float32), np.ones(3, np.float32))
    assert one.result.shape == one.a_priori.shape == one.running.shape == one.error.shape == ()
    assert str(one) == "largest error 0, ulps 0, running 0, a_priori 0.598"
    assert sn.bound(unit, np.ones(3, np.float32), np.ones(3, np.float32), running=False).running is None
    none = sn.bound(unit, np.ones((2, 0), np.float32), np.ones((0, 3), np.float32), np.float32(1.5))
    assert none.error.tolist() == none.a_priori.tolist() == none.running.tolist() == [[0.0] * 3] * 2
    x = sn.array(np.ones((2, 5)), "mxfp4", axis=-1)
    vector = sn.bound(sn.unit("ocp_mxfp4_e2m1"), x[0], x[1])
    assert vector.error.shape == () and vector.error == 0
    wide = sn.array([2.0**-200, 1.5], "e15m48")
    assert sn.bound(sn.MadUnit("e15m48", operand="e15m48"), wide, wide).error > 0


def test_refused():
    x = np.ones((2, 2), np.float32)
    unit = sn.MadUnit("e6m3", operand="e5m2")
    table = sn.CustomFormat.from_table([0.0, 1.0, 2.0, -1.0])
    own = sn.CustomMadUnit(lambda acc, a, b: acc + a * b, operand="e5m2", accumulator="binary32")
    for of in (sn.MadUnit(table, operand=table), own):
        with pytest.raises(TypeError, match="no error bounds are known"):
            sn.bound(of, x, x)
    with pytest.raises(ValueError, match=r"takes matrices or vectors, got a of shape \(1, 2, 2\)"):
        sn.bound(unit, x[None], x)
    with pytest.raises(ValueError, match="a sums over 2 products, b over 3"):
        sn.bound(unit, x, np.ones((3, 1), np.float32))
    with pytest.raises(ValueError, match="is no value of e5m2"):
        sn.bound(unit, x * 1.1, x)
    with pytest.raises(TypeError, match="must be a BlockArray"):
        sn.bound(sn.unit("ocp_mxfp4_e2m1"), x, x)
    with pytest.raises(ValueError, match="failure= takes a MadUnit or ExactDotUnit that rounds stochastically"):
        sn.bound(unit, x, x, failure=0.1)
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        sn.bound(unit, x, x, failure=1)


SR = {"rounding": "stochastic"}


@pytest.mark.parametrize("unit", [
    sn.MadUnit("e8m8", operand="e5m2", **SR),
    sn.MadUnit("e8m8", operand="e5m2", stochastic_bits=1, **SR),
    sn.MadUnit("e8m8", operand="e5m2", product="e8m3", stochastic_bits=5, lanes=4, chunk=32, **SR),
    sn.MadUnit("e8m20", operand="e5m2", product="e8m2", product_rounding="stochastic"),
    sn.MadUnit("e8m8", operand="e5m2", product="e8m9", product_rounding="up", rounding="stochastic_floor"),
    sn.ExactDotUnit("e8m2", operand="e5m2", **SR),
], ids=str)  # fmt: skip
def test_bounds_with_a_probability(unit):
    """Over 200 keys the error exceeds the bound not more often than is said; it lies below the certain one."""
    rng = np.random.default_rng(4)
    a, b = sn.quantize(np.abs(rng.standard_normal((1, 256))), "e5m2"), sn.quantize(rng.random((256, 1)), "e5m2")
    found = sn.bound(unit, a, b, key=0, failure=0.05, running=False)
    assert found.failure == 0.05
    many = np.array([sn.matmul(a, b, unit, key=s).item() for s in sn.Stream(1).spawn(200)])
    errors = np.abs(many - float(exact_sum(a[0], b[:, 0], 0)))
    assert np.mean(errors > found.probable) <= 0.05
    assert found.probable <= found.a_priori
    if unit.steps(256) == 256 and unit.stochastic_bits > 4 and unit.rounding.startswith("stochastic"):
        assert found.probable < found.a_priori / 5
    assert found.probable < 60 * errors.max()


def test_sums_and_products_of_bounds_are_rounded_up():
    rng = np.random.default_rng(1)
    for x, y in (10.0 ** rng.uniform(-200, 100, (200, 2))).tolist():
        assert Fraction(plus(x, y)) >= Fraction(x) + Fraction(y)
        assert Fraction(times(x, y)) >= Fraction(x) * Fraction(y)
    assert plus(0.0, 1.5) == 1.5 and times(0.0, 1.5) == 0.0
    assert Fraction(upward(Fraction(1, 3))) > Fraction(1, 3) > Fraction(np.nextafter(upward(Fraction(1, 3)), 0).item())
    assert upward(Fraction(2) ** 2000) == inf and upward(Fraction(2) ** -2000) == 5e-324
    assert upward(Fraction(1, 4)) == 0.25
