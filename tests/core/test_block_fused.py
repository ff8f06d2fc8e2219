"""BlockFusedDotUnit: matmul, the fast paths and traces against the reference's plain loop."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.mac.presets import unit_of
from softnum.mac.products.engines import fast_of
from tests.support.block_fused_units import ALL, FAST, SINGLE, SLOW, of_machine
from tests.support.block_units import any_codes, operand, small
from tests.support.cases import cases
from tests.support.public import PUBLIC


def by_reference(a, b, u, c=None):
    """One matrix product, output by output."""
    out = np.empty((len(a), b.shape[1]), u.result.storage_dtype)
    codes = None if c is None else sn.encode(c, u.result) if isinstance(c, np.ndarray) else c.codes
    tensor = tuple(Fraction(float(x.tensor_scale)) for x in (a, b)) if u.tensor_scales else None
    for i, j in np.ndindex(out.shape):
        out[i, j], _ = ref.block_fused_dot(
            a.codes[i].tolist(), a.scales[i].tolist(), b.codes[:, j].tolist(), b.scales[:, j].tolist(),
            operand=u.operand, accumulator=u.accumulator, terms=u.terms, fraction_bits=u.fraction_bits, group=u.group,
            min_exponent=u.min_exponent, output_rounding=u.output_rounding, truncate_fraction=u.truncate_fraction,
            overflow=u.overflow, zero_exponent=u.zero_exponent, tensor_scales=tensor,
            c=None if c is None else int(codes[i, j]),
        )  # fmt: skip
    return out


def same(x, y):
    """Whether arrays of floats have the same bits, NaNs as NaNs."""
    x, y = (np.where(np.isnan(v), np.nan, v).astype(v.dtype) for v in (x, y))
    return x.tobytes() == y.tobytes()


def any_c(rng, u, shape):
    fmt = u.result
    return sn.Array(rng.integers(0, 1 << min(fmt.bits, 62), shape).astype(fmt.storage_dtype), fmt)


def factors(rng, u, m, k, n, tame):
    """Numbers with scales that fit them, or any codes."""
    make = operand if tame else any_codes
    return make(rng, u.operand[0], (m, k), -1), make(rng, u.operand[1], (k, n), -2)


def test_which_have_fast_paths():
    assert all(fast_of(u) is not None for u in FAST) and all(fast_of(u) is None for u in SLOW)


@cases("u", ALL, ids=str)
@pytest.mark.parametrize("tame", [True, False])
def test_matmul_is_the_reference(u, tame):
    rng = np.random.default_rng(1 + tame)
    for k in (1, u.terms, u.terms + 1, 2 * u.terms + 3):
        a, b = factors(rng, u, 2, k, 3, tame)
        for c in (None, any_c(rng, u, (2, 3))):
            got = sn.matmul(a, b, u, c)
            want = sn.decode(by_reference(a, b, u, c), u.result, got.dtype)
            assert same(got, want), (k, c is None)
            assert same(sn.matmul(a, b, u, c, return_stats=True)[0], want)


@cases("u", FAST, ids=str)
def test_fast_paths_are_the_definition(u, isa):
    """On sizes with rests, of ordinary and small numbers, zeros, specials and any C."""
    rng = np.random.default_rng(5)
    for spread, shape in ((2, (5, 200, 35)), (9, (14, 130, 70)), (30, (3, 97, 33))):
        m, k, n = shape
        a, b = operand(rng, u.operand[0], (m, k), -1, spread), operand(rng, u.operand[1], (k, n), -2, spread)
        for x, axis in ((a, 1), (b, 0)):
            x.codes[rng.random(x.shape) < 0.2] = 0
            some = rng.random(x.scales.shape) < 0.03
            x.scales[some] = rng.integers(0, 256, some.sum())
            assert x.axis == axis - 2
        for c in (None, any_c(rng, u, (m, n)), rng.standard_normal((m, n), np.float32)):
            want, _ = sn.matmul(a, b, u, c, return_stats=True)
            for threads in (1, 3):
                got = sn.matmul(a, b, u, c, threads=threads)
                assert same(got, want), (shape, threads, np.argwhere((got != want) & (got == got))[:3])


@cases("u", FAST[:9], ids=str)
def test_sums_near_the_ends_of_binary32(u):
    """Scales so small, and so large, that sums are subnormal, zero or infinite, and M lies at its least."""
    rng = np.random.default_rng(6)
    if not u.operand[0].scale.powers_of_two:
        return
    for low, high in ((44, 56), (176, 190), (96, 110), (60, 70)):
        a, b = any_codes(rng, u.operand[0], (6, 130), -1), any_codes(rng, u.operand[1], (130, 33), -2)
        for x in (a, b):
            x.scales[...] = rng.integers(low, high, x.scales.shape)
        for c in (None, np.zeros((6, 33), np.float32), np.full((6, 33), 2.0**-149, np.float32)):
            assert same(sn.matmul(a, b, u, c), sn.matmul(a, b, u, c, return_stats=True)[0])
    a, b = any_codes(rng, u.operand[0], (2, 70), -1), any_codes(rng, u.operand[1], (70, 3), -2)
    a.scales[...], b.scales[...] = 50, 52
    assert same(sn.matmul(a, b, u), sn.decode(by_reference(a, b, u), "binary32", np.float32))


@cases("u", ALL, ids=str)
def test_traces_end_where_dot_does(u):
    rng = np.random.default_rng(7)
    for tame in (True, False):
        a, b = factors(rng, u, 1, u.terms + 2, 1, tame)
        a, b = (sn.BlockArray(x.codes.ravel(), x.scales.ravel(), x.format, -1, x.tensor_scale) for x in (a, b))
        c = any_c(rng, u, (1, 1))
        trace = u.trace(a, b, c)
        assert same(np.atleast_1d(trace.result), np.atleast_1d(sn.dot(a, b, u, c)))
        names = {step.name for step in trace.steps}
        assert "rounded" in names and ("exact sum" in names) <= (u.group > 1)


def test_terms_of_a_group_count_with_the_scales_exponents():
    """S = 0 counts too, and S is part of the significand: numbers worked out by hand."""
    unit = of_machine("mxf4nvf4", small("e2m1fn", size=16))
    one = np.zeros(64)
    one[0] = 1
    a, b = sn.encode(one, "e2m1fn"), sn.encode(one, "e2m1fn")
    scales = np.array([127, 127 + 40, 127, 127], np.uint8)  # 2^40 of a group of zeros
    x = sn.BlockArray(a, scales, unit.operand[0])
    y = sn.BlockArray(b, np.full(4, 127, np.uint8), unit.operand[1])
    assert sn.dot(x, y, unit) == 0  # 1 lies below 2^(40 - 35)
    assert sn.dot(x, y, unit, 2.0**6) == 2.0**6
    assert sn.dot(x, y, replace(unit, fraction_bits=40)) == 1
    large = sn.array(np.full(16, 6.0), "mxfp4", axis=0)  # S = 576, which lies above 2^e by 9 binades
    y = sn.BlockArray(large.codes, np.array([127], np.uint8), sn.BlockFormat("e2m1fn", "e8m0fnu", 16))
    assert sn.dot(y, y, replace(unit, fraction_bits=0)) == 576


def test_scales_without_sign_and_nan():
    unit = of_machine("mxf4nvf4", SINGLE)
    x = sn.BlockArray(np.full(16, 2, np.uint8), np.array([0x38 | 0x80], np.uint8), SINGLE)  # ones, scale -1
    assert sn.dot(x, x, unit) == 16
    y = sn.BlockArray(x.codes, np.array([0x38], np.uint8), SINGLE)
    assert sn.dot(x, y, unit) == 16
    zero = sn.BlockArray(np.zeros(16, np.uint8), np.array([0xFF], np.uint8), SINGLE)
    assert np.isnan(sn.dot(zero, y, unit)) and np.isnan(sn.dot(x, y, unit, np.nan))
    assert sn.dot(x, y, unit, -np.inf) == -np.inf
    unit = of_machine("mxf8f6f4", "mxfp8_e5m2")
    inf = sn.BlockArray(np.array([0x7C, 0xFC, 0], np.uint8), np.array([127], np.uint8), "mxfp8_e5m2")
    ones = sn.BlockArray(np.array([0x3C, 0x3C, 0x3C], np.uint8), np.array([127], np.uint8), "mxfp8_e5m2")
    assert np.isnan(sn.dot(inf, ones, unit))


def test_the_scales_of_arrays_come_last():
    """As of BlockDotUnit: one more rounding, to nearest even, and C is added there."""
    unit, rng = of_machine("mxf4nvf4"), np.random.default_rng(8)
    values = [rng.standard_normal(shape) for shape in ((4, 100), (100, 5))]
    a, b = (sn.array(v, "nvfp4", axis=axis) for v, axis in zip(values, (-1, -2), strict=True))
    bare = [sn.BlockArray(x.codes, x.scales, SINGLE, x.axis) for x in (a, b)]
    inner = sn.matmul(*bare, of_machine("mxf4nvf4", SINGLE))
    tensor = Fraction(float(a.tensor_scale)) * Fraction(float(b.tensor_scale))
    c = rng.standard_normal((4, 5), np.float32)
    got, with_c = sn.matmul(a, b, unit), sn.matmul(a, b, unit, c)
    for at in np.ndindex(4, 5):
        exact = Fraction(float(inner[at])) * tensor
        codes = sn.encode([exact, exact + Fraction(float(c[at]))], "binary32")
        assert [got[at], with_c[at]] == sn.decode(codes, "binary32").tolist()
    assert "tensor scales" in unit.trace(a[0], b[:, 0]).steps[-1].name


def test_sums_of_nothing():
    for u in (of_machine("mxf8f6f4"), of_machine("mxf4nvf4"), SLOW[0]):
        a, b = (sn.array(np.zeros(shape), f, axis=axis, **({"tensor_scale": 1.0} if u.tensor_scales else {}))
                for shape, f, axis in zip(((2, 0), (0, 3)), u.operand, (-1, -2), strict=True))  # fmt: skip
        c = np.float32([[1, -0.0, 2], [3, 4, 5]])
        assert same(sn.matmul(a, b, u, c), c) and same(sn.matmul(a, b, u), np.zeros((2, 3), np.float32))


def test_batches_and_out():
    u, rng = of_machine("mxf4"), np.random.default_rng(9)
    a, b = operand(rng, u.operand[0], (3, 1, 4, 70), -1), operand(rng, u.operand[1], (2, 70, 6), -2)
    got = sn.matmul(a, b, u)
    assert got.shape == (3, 2, 4, 6)
    for i, j in np.ndindex(3, 2):
        assert same(np.ascontiguousarray(got[i, j]), sn.matmul(a[i, 0], b[j], u))
    out = np.empty(got.shape, np.float32)
    assert sn.matmul(a, b, u, out=out) is out and same(out, got)


@cases("u", ALL, ids=str)
def test_as_text_and_pickle(u):
    assert eval(repr(u), PUBLIC) == unit_of(u.expression) == u == pickle.loads(pickle.dumps(u))
    assert str(u) in repr(u) and hash(u) == hash(unit_of(u.expression))


def test_statistics():
    u = of_machine("mxf8f6f4")
    x = sn.array(np.full((1, 40), 1.5), u.operand[0], axis=-1)
    _, stats = sn.matmul(x, x.T, u, return_stats=True)
    assert list(stats.kinds) == ["sum"] and stats["sum"].roundings == 2
    u = of_machine("mxf4nvf4")
    x = sn.array(np.full((1, 40), 1.5), "nvfp4", axis=-1)
    _, stats = sn.matmul(x, x.T, u, return_stats=True)
    assert {name: n.roundings for name, n in stats.kinds.items()} == {"sum": 1, "tensor scales": 1}
    big = sn.BlockArray(np.full((1, 32), 0x7E, np.uint8), np.full((1, 1), 250, np.uint8), "mxfp8_e4m3")
    got, stats = sn.matmul(big, big.T, of_machine("mxf8f6f4"), return_stats=True)
    assert got == np.inf and stats["sum"].overflowed == 1


@pytest.mark.parametrize(
    "options, message",
    [
        ({"operand": None}, "state operand="),
        ({"operand": ("mxfp4",) * 3}, "one block format or a pair, got 3"),
        ({"operand": "e4m3fn"}, "operand=e4m3fn is no block format; use a FusedDotUnit"),
        ({"operand": "mxint8"}, "elements of q2.6, no floats"),
        ({"operand": small("e4m3fn", "e5m2")}, "scales of e5m2, which has infinities"),
        ({"operand": small("e4m3fn", "uq4.4")}, "scales of uq4.4, which is no float"),
        ({"operand": ("mxfp4", "nvfp4")}, "blocks of 32 .* and of 16 .* do not meet"),
        ({"operand": sn.BlockFormat("e4m3fn", "e8m0fnu", None)}, "state a block_size"),
        ({"group": 0}, "group must be an integer in 1..32"),
        ({"group": 5}, "terms must be a multiple of group = 5, got 32"),
        ({"group": 16, "operand": small("e2m1fn", size=8)}, "the block size must be a multiple of group = 16, got 8"),
        ({"group": 32, "operand": small("binary32", size=32)}, "sums of 32 products .* would take"),
        ({"operand": small("e8m40", size=32)}, "products of elements e8m40 and e8m40 have more than 64 bits"),
        ({"fraction_bits": 101}, "BlockFusedDotUnit: fraction_bits must be an integer in 0..100"),
        ({"output_rounding": "stochastic"}, "not defined for this unit"),
        ({"accumulator": "q8.8"}, "accumulator must be a float format"),
    ],
)
def test_what_does_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        sn.BlockFusedDotUnit(
            **{"terms": 32, "fraction_bits": 35, "accumulator": "binary32", "operand": "mxfp4", **options}
        )


def test_what_is_no_operand():
    u, x = of_machine("mxf8f6f4"), np.ones((2, 2), np.float32)
    with pytest.raises(TypeError, match="a must be a BlockArray under a BlockFusedDotUnit, got ndarray"):
        sn.matmul(x, x, u)
    with pytest.raises(ValueError, match="BlockArray of mxfp4_e2m1, but the unit's operand is mxfp8_e4m3"):
        sn.matmul(sn.array(x, "mxfp4", axis=-1), sn.array(x, "mxfp8_e4m3", axis=-2), u)
    with pytest.raises(TypeError, match="under a BlockFusedDotUnit"):
        u.trace([1.0], [1.0])
    with pytest.raises(TypeError, match="none are derived of BlockFusedDotUnits"):
        sn.bound(u, sn.array(x, "mxfp8_e4m3", axis=-1), sn.array(x, "mxfp8_e4m3", axis=-2))
    with pytest.raises((TypeError, ValueError), match="BlockFusedDotUnit"):
        sn.sum(np.ones(3, np.float32), u)
