"""sum under a unit against a plain loop over `reference.add`, and against exact sums."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.custom import CustomFormat
from softnum.formats.facts import fits
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import TERNARY, as_codes


def mad(accumulator, operand, **options):
    return sn.MadUnit(accumulator, operand=operand, **options)


MADS = [
    mad("e6m9", "e5m2"),
    mad("e6m9", "e5m2", product="e5m2"),
    mad("e5m2", "e5m2", rounding="down"),
    mad("e4m3fn", "e4m3fn", overflow="saturate"),
    mad("e6m9", "e5m2", rounding="to_odd"),
    mad("e6m9", "e5m2", chunk=3, outer_accumulator="e8m15"),
    mad("q8.8", "q4.4"),
    mad("q4.4", "q4.4", overflow="wrap"),
    mad("e6m9", "q4.4", product="q4.4", overflow="wrap"),
    mad("binary32", "binary16"),
    mad("binary64", "binary32"),
    mad("e15m48", "e5m2"),
    mad("e6m9", "e5m2", rounding="stochastic", stochastic_bits=12),
    mad("e6m9", "e5m2", rounding="stochastic", stochastic_bits=30, product="e5m2"),
    mad("e6m9", "e5m2", rounding="nearest_even", product="e5m2", product_rounding="stochastic"),
    mad("e6m9", "e5m2", rounding="stochastic_floor", stochastic_bits=5, chunk=4),
    mad("e6m9", TERNARY),
    mad("e6m9", "e5m2", lanes=3),
    mad("e6m9", "e5m2", lanes=4, reduction="tree", chunk=6, product="e5m2"),
    mad("e6m9", "e5m2", lanes=5, reduction="pairwise", rounding="stochastic", stochastic_bits=9),
    mad("e6m9", "e5m2", compensated="kahan"),
]
EXACT = [
    sn.ExactDotUnit("e6m9", operand="e5m2"),
    sn.ExactDotUnit("binary32", operand="binary32", rounding="up"),
    sn.ExactDotUnit("q8.8", operand="binary32"),
    sn.ExactDotUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=9),
]


def values(fmt, shape, seed=0, spread=3):
    """Finite values of a format, as float64 or an Array."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, shape) * 2.0 ** rng.integers(-spread, spread, shape)
    if not fits(fmt, np.float64):
        return sn.array(x, fmt)
    return sn.quantize(x, fmt, overflow=None if isinstance(fmt, CustomFormat) else "saturate")


def by_loop(u, codes, fmt, words):
    """The code of one sum: `reference.add`, step after step."""
    if isinstance(fmt, CustomFormat):
        codes, fmt = (
            sn.encode(fmt.decode(np.array(codes, fmt.storage_dtype), np.float64), "binary64").tolist(),
            "binary64",
        )
    if isinstance(u, sn.ExactDotUnit):
        one = ref.encode(1, "e5m2")[0]
        return ref.exact_dot(
            codes, [one] * len(codes), operand=(fmt, "e5m2"), accumulator=u.accumulator, rounding=u.rounding,
            overflow=u.overflow, stochastic_bits=u.stochastic_bits, random_bits=words[0],
        )[0]  # fmt: skip

    if u.lanes > 1 or u.compensated:  # the dot product with ones, whose products are exact
        one = ref.encode(1, "e5m2")[0]
        return ref.mad_dot(
            [one] * len(codes), codes, operand=("e5m2", fmt), accumulator=u.accumulator, rounding=u.rounding,
            overflow=u.overflow, stochastic_bits=u.stochastic_bits, lanes=u.lanes, reduction=u.reduction,
            chunk=u.chunk, compensated=u.compensated, random_bits=[(None, w) for w in words],
        )[0]  # fmt: skip

    def step(total, target, code, source, word):
        overflow = None if u.overflow == "wrap" and target.kind == "float" else u.overflow
        return ref.add(
            total, code, (target, source), out_fmt=target, rounding=u.rounding, overflow=overflow,
            stochastic_bits=u.stochastic_bits, random_bits=word,
        )[0]  # fmt: skip

    k, total = len(codes), 0
    chunk = u.chunk or k
    sums = []
    for first in range(0, k, chunk):
        part = 0
        for i in range(first, min(first + chunk, k)):
            part = step(part, u.accumulator, codes[i], fmt, words[i])
        sums.append(part)
    if not u.chunk:
        return sums[0]
    for j, part in enumerate(sums):
        total = step(total, u.outer, part, u.accumulator, words[k + j])
    return total


def key_words(seed, stream, n, steps):
    """Words 0, 1, ... of output n in domain 3."""
    key = ref.philox4x32_10((seed, 0), (stream, 0, 3, 0))[:2]
    return [ref.philox4x32_10(key, (k // 4, n, 0, 0))[k % 4] for k in range(steps)]


@cases("u", [*MADS, *EXACT], ids=str)
def test_sums_equal_a_loop_of_additions(u, isa):
    for fmt in dict.fromkeys([u.result, *u.operand]):
        x = values(fmt, (3, 11))
        codes = x.codes if isinstance(x, sn.Array) else sn.encode(x, fmt)
        stochastic = u.rounding.startswith("stochastic")
        got = as_codes(sn.sum(x, u, 1, key=(77, 5) if stochastic else None), u.result)
        for n in range(3):
            words = key_words(77, 5, n, 20) if stochastic else [None] * 20
            want = by_loop(u, codes[n].tolist(), fmt, words)
            assert got[n] == want, (str(u), str(fmt), n, x[n], got[n], want)
        if stochastic:
            words = np.array([key_words(77, 5, n, u.steps(11)) for n in range(3)], np.uint32)
            assert np.array_equal(got, as_codes(sn.sum(x, u, 1, random_bits=words), u.result))


@cases("u", [MADS[0], MADS[5], MADS[12], EXACT[3]], ids=str)
def test_axes_and_order(u, isa):
    x = values(u.operand[0], (3, 4, 5, 6))
    options = {"key": 9} if u.stochastic else {}
    want = sn.sum(x.reshape(3, 20, 6).transpose(0, 2, 1), u, -1, **options)
    for axis in ((1, 2), (2, 1), (-2, 1)):
        assert_same_bits(sn.sum(x, u, axis, **options), want)
    kept = sn.sum(x, u, (1, 2), keepdims=True, **options)
    assert kept.shape == (3, 1, 1, 6)
    assert_same_bits(kept.reshape(3, 6), want)
    assert_same_bits(sn.sum(np.asfortranarray(x), u, (1, 2), **options), want)
    assert_same_bits(sn.sum(x.astype(np.float32), u, (1, 2), threads=3, **options), want)
    everything = sn.sum(x, u, **options)
    assert everything.shape == () and everything == sn.sum(x.ravel(), u, 0, **options)
    assert sn.sum(x, u, (), **options).shape == x.shape


def test_fused_units_sum_by_their_dot_product(isa):
    rng = np.random.default_rng(6)
    for u in (sn.FusedDotUnit(4, 23, "binary32", operand="binary16"), sn.FmaChainUnit("binary32", operand="bfloat16")):
        x = values(u.operand[1], (3, 37))
        x *= 2.0 ** rng.integers(-6, 6, x.shape)
        got = sn.sum(x, u, 1)
        assert np.array_equal(got, [sn.dot(np.ones(37), row, u) for row in x])
        with pytest.raises(ValueError, match=f"no value of {u.operand[0]}"):
            sn.sum([1 + 2.0**-20], u)


def test_the_order_matters_and_is_c_order():
    u = mad("e6m3", "e5m2")
    x = np.float32([[16, 1, 1], [1, 1, 1]])
    assert sn.sum(x, u) == 16 and sn.sum(x[::-1, ::-1], u) == 20
    assert np.array_equal(sn.sum(x, u, 0), [16, 2, 2]) and np.array_equal(sn.sum(x, u, 1), [16, 3])


def test_exact_sums_are_exact():
    rng = np.random.default_rng(4)
    x = rng.normal(size=500) * 2.0 ** rng.integers(-300, 300, 500)
    for rounding in ("nearest_even", "up", "down"):
        u = sn.ExactDotUnit("binary64", operand="binary32", rounding=rounding)
        total = np.sum([Fraction(v) for v in x.tolist()])
        assert sn.sum(x, u) == sn.encode(total, "binary64", rounding=rounding).view(np.float64)
        assert sn.sum(x, u) == sn.sum(x[::-1], u) == sn.sum(rng.permutation(x), u)


def test_nothing_zeros_and_specials():
    u = mad("e6m9", "e5m2")
    for v in (u, mad("e6m9", "e5m2", chunk=2), sn.ExactDotUnit("e6m9", operand="e5m2")):
        nothing = sn.sum(np.zeros((0, 3)), v, 0)
        assert nothing.shape == (3,) and not nothing.any() and not np.signbit(nothing).any()
        assert sn.sum(np.zeros((3, 0)), v, 0).shape == (0,)
        assert not np.signbit(sn.sum([-0.0], v))  # from +0
        assert np.isnan(sn.sum([np.inf, -np.inf], v)) and sn.sum([1, -np.inf], v) == -np.inf
        assert np.isnan(sn.sum([np.nan, 1], v))
        assert sn.sum(1.5, v) == 1.5
    assert np.signbit(sn.sum([1, -1], mad("e6m9", "e5m2", rounding="down")))


@pytest.mark.parametrize(
    "error, message, call",
    [
        (ValueError, r"sum: x\[1\] = .*1\.0009.* is no value of e6m9.*no other format of the unit \(e6m9, e5m2\)",
         lambda: sn.sum([1.0, 1 + 2**-10], MADS[0])),
        (ValueError, "sum: x is an Array of e4m3, but the unit adds values of e6m9, e5m2",
         lambda: sn.sum(sn.array([1], "e4m3"), MADS[0])),
        (ValueError, r"axis=2 is out of range .* 1 dimensions \(-1 to 0\)", lambda: sn.sum([1.0], MADS[0], 2)),
        (ValueError, "an axis occurs twice", lambda: sn.sum([[1.0]], MADS[0], (0, -2))),
        (ValueError, "sum: the unit rounds stochastically; give key=", lambda: sn.sum([1.0], MADS[12])),
        (ValueError, r"sum: random_bits must be uint32 of shape \(1,\), got int64",
         lambda: sn.sum([1.0], MADS[12], random_bits=np.array([1]))),
        (TypeError, "the unit must be one of softnum's", lambda: sn.sum([1.0], "e5m2")),
        (TypeError, "sum takes arrays of float16, float32 or float64", lambda: sn.sum(np.array(["1"]), MADS[0])),
        (ValueError, "NaN or infinite, and q4.4 has no code",
         lambda: sn.sum([np.inf], mad("q4.4", "e5m2"))),
    ],
)  # fmt: skip
def test_refusals(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_a_sum_without_a_code_says_so():
    unit = sn.MadUnit("q4.4", operand="e5m2")
    with pytest.raises(ValueError, match=r"sum: .*q4\.4 has no code"):
        sn.sum(np.float32([1, np.inf]), unit)
