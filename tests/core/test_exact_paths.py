"""ExactDotUnit's fast path against the definition, bit for bit: every split, tile, C and mode, and the largest sums."""

import numpy as np
import pytest

import softnum as sn
from softnum.formats.facts import fits
from softnum.formats.modes import ROUNDING_MODES, family
from softnum.mac.products.engines import coded, definition_of, fast_of
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import TABLE, TERNARY, extreme, middling, values_of


def unit(accumulator, operand, **options):
    return sn.ExactDotUnit(accumulator, operand=operand, **options)


EIGHTHS = sn.CustomFormat.from_table([0, 0.125, 0.375, 1, -1, -0.5, 0.25, 2], name="eighths")
FAST = [
    unit("e6m9", "e5m2"),
    unit("e5m2", "e5m2"),
    unit("e4m3fn", "e4m3fn", overflow="saturate"),
    unit("e4m3fnuz", "e5m2fnuz"),
    unit("e5m2", "e4m3", overflow="saturate_finite"),
    unit("binary8p3se", "binary8p3se"),
    unit("dlfloat16", "dlfloat16"),
    unit("binary16", "binary16"),
    unit("binary32", "binary16"),
    unit("bfloat16", "bfloat16"),
    unit("tf32", ("tf32", "binary32")),
    unit("binary32", "binary32"),
    unit("q8.8", "q4.4"),
    unit("uq4.4", "q4.4"),
    unit("q16.8", ("e2m1fn", "q4.4")),
    unit("e6m9", TERNARY),
    unit("binary32", (EIGHTHS, "e5m2")),
]
SIZES = [(1, 1, 1), (3, 16, 2), (4, 17, 5), (5, 15, 9), (8, 33, 3), (9, 31, 40), (2, 65, 7)]


def key_of(u):
    return {"key": (77, 5)} if u.stochastic else {}


def by_definition(u, a, b, c=None):
    """The engine on codes, with the words of key (77, 5)."""
    codes = [np.ascontiguousarray(sn.encode(np.asarray(x, np.float64), coded(f)), np.uint64)
             for x, f in zip((a, b), u.operand, strict=True)]  # fmt: skip
    out = np.empty((a.shape[0], b.shape[1]), np.uint64)
    start = None if c is None else sn.encode(np.broadcast_to(c, out.shape), u.accumulator).astype(np.uint64)
    keys = (*_core.philox_key(77, 5, 1), 0, 0)
    lost = definition_of(u).run(*codes, start, out, None, keys, 0, 0, out.shape[0], 0, out.shape[1])
    assert not lost
    dtype = np.float32 if fits(u.accumulator, np.float32) else np.float64
    return sn.decode(out.astype(u.accumulator.storage_dtype), u.accumulator, dtype)


def check(u, a, b, c=None, *context):
    assert fast_of(u) is not None
    start = () if c is None else (c,)
    assert_same_bits(sn.matmul(a, b, u, *start, **key_of(u)), by_definition(u, a, b, c), str(u), *context)


def split(u, a, b, c=None):
    wide = [None if x is None else np.asarray(x, np.float64) for x in (a, b, c)]
    return fast_of(u).split(*wide)


def starts(u, rng, shape):
    """C: small ones, ones from the whole format, zeros of both signs."""
    whole = values_of(u.accumulator, finite=not u.accumulator.has_nan)
    yield sn.quantize(rng.normal(0, 4, shape) if u.accumulator.signed else rng.random(shape), u.accumulator,
                      overflow="saturate")  # fmt: skip
    yield rng.choice(whole, shape)
    yield np.where(rng.random(shape) < 0.5, -0.0 if u.accumulator.negative_zero else 0.0, 0.0)


@cases("u", FAST, ids=str)
def test_sizes_across_the_tiles(u, isa):
    rng = np.random.default_rng(1)
    for m, n, k in SIZES:
        a, b = middling(u.operand[0], rng, (m, k)), middling(u.operand[1], rng, (k, n))
        check(u, a, b, None, m, n, k)
        for c in starts(u, rng, (m, n)):
            check(u, a, b, c, m, n, k)


@cases("u", FAST, ids=str)
def test_the_whole_range(u, isa):
    rng = np.random.default_rng(2)
    finite = not u.accumulator.has_nan
    for k in (1, 2, 3, 8):
        for only_finite in {finite, True}:
            a, b = extreme(u.operand[0], rng, (30, k), only_finite), extreme(u.operand[1], rng, (k, 40), only_finite)
            check(u, a, b, None, k)
            for c in starts(u, rng, (30, 40)):
                check(u, a, b, c, k)


@cases("mode", list(ROUNDING_MODES))
@cases("pair", [("e6m9", "e5m2"), ("q8.8", "q4.4"), ("dlfloat16", "e5m2"), ("binary32", "bfloat16"),
                                  ("e4m3fnuz", "e4m3"), ("e5m2", "binary16")], ids=str)  # fmt: skip
def test_every_mode(mode, pair, isa):
    rng = np.random.default_rng(3)
    for r in (1, 9, 26):
        u = unit(*pair, rounding=mode, stochastic_bits=r)
        if fast_of(u) is None:
            assert pair[0] == "dlfloat16" or r == 26 or family(mode) == "none"
            continue
        for k in (1, 3, 20):
            a, b = middling(u.operand[0], rng, (9, k)), middling(u.operand[1], rng, (k, 37))
            b[:, 20:] = np.where(b[::-1, 20:] == u.operand[1].min, 0, -b[::-1, 20:])
            a[:4, k // 2 :] = 0
            check(u, a, b, None, r, k)
            for c in starts(u, rng, (9, 37)):
                check(u, a, b, c, r, k)
        if not u.stochastic:
            break


def spread(rng, shape, low, high, fraction_bits):
    """Numbers of fraction_bits with exponents low..high - 1, and their negatives."""
    significand = 1 + rng.integers(0, 1 << fraction_bits, shape) * 2.0**-fraction_bits
    return np.ldexp(significand, rng.integers(low, high, shape)) * rng.choice([-1.0, 1.0], shape)


@cases("mode", ["nearest_even", "down", "to_odd", "stochastic"])
@cases("accumulator", ["bfloat16", "binary32"])
def test_every_split(accumulator, mode, isa):
    """Ranges that take one, two and three pieces, or none; sums of one block and of several; C as a term and after."""
    rng = np.random.default_rng(4)
    seen = set()
    u = unit(accumulator, "bfloat16", rounding=mode, stochastic_bits=12)
    for width in (3, 8, 12, 13, 14, 22, 30, 34, 40, 48, 52, 56, 60, 64, 75, 100):
        for k in (3, 70, 1300):
            a, b = spread(rng, (5, k), -width // 2, width - width // 2, 7), spread(rng, (k, 19), -width, 0, 7)
            a[:, k // 3 * 2 :] = -a[:, : k - k // 3 * 2]  # so that large terms cancel
            b[k // 3 * 2 :] = b[: k - k // 3 * 2]
            b[-1] *= 2.0 ** -rng.integers(0, 2, 19)
            for c in (None, sn.quantize(rng.normal(size=(5, 19)), accumulator),
                      sn.quantize(spread(rng, (5, 19), -100, 90, 7), accumulator)):  # fmt: skip
                check(u, a, b, c, width, k)
                pieces, block, with_c = split(u, a, b, c)
                seen.add((pieces, pieces and k > block, c is not None, with_c))
    for pieces in (1, 2, 3):
        for several in (False, True):
            assert {(pieces, several, False, False), (pieces, several, True, False)} <= seen, (pieces, several, seen)
        assert (pieces, False, True, True) in seen and (pieces, True, True, True) in seen
    assert any(s[0] == 0 for s in seen)


@cases("operand, limits", [("binary16", (65504.0, 2.0**-24)), ("e5m2", (57344.0, 2.0**-16)),
                                             ("e4m3", (240.0, 2.0**-9)), ("bfloat16", (2.0**40, 2.0**-20)),
                                             ("binary32", (2.0**9 - 2.0**-15, 2.0**-17))])  # fmt: skip
def test_the_largest_sums_of_a_block(operand, limits, isa):
    """As many largest products of one sign as a block takes, and the smallest product, which must not be lost."""
    big, small = limits
    u = unit("binary64", operand)
    v = unit("binary32", operand, rounding="to_odd")
    many = np.full((1, 6005), big)
    many[0, -1] = small
    pieces, block, _ = split(v, many, many.T)
    assert pieces and block >= 32
    for terms in sorted({min(block, 5000) - 1, min(block, 5000), min(2 * block, 6000) + 5}):
        a = np.full((2, terms), big)
        a[1, ::2] *= -1
        b = np.full((terms, 3), big)
        b[:, 1] = -big
        a[:, -1], b[-1] = small, small
        for w in (u, v):
            if fast_of(w) is None:
                continue
            check(w, a, b, None, terms)
            check(w, a, b, np.full((2, 3), small), terms)


def test_ties_are_told_from_what_is_nearly_one(isa):
    """1 + 2**-10 is a tie of e6m9; one more product, however small, or its negative, decides."""
    for tiny in (2.0**-32, 2.0**-20, 2.0**-12):
        root = np.sqrt(tiny) if np.log2(tiny) % 2 == 0 else None
        a = np.array([[1.0, 2.0**-5, 0.0], [1.0, 2.0**-5, root], [1.0, 2.0**-5, -root], [1 + 2.0**-2, 2.0**-5, 0.0]])
        b = np.array([[1.0], [2.0**-5], [root]])
        u = unit("e6m9", "e5m2")
        got = sn.matmul(a, b, u)[:, 0].tolist()
        assert got == [1.0, 1 + 2.0**-9, 1.0, 1.25]
        check(u, a, b)


@cases("u", [*FAST[:3], unit("e6m9", "e5m2", rounding="stochastic", stochastic_bits=9)], ids=str)
def test_threads_batches_and_types(u, isa):
    rng = np.random.default_rng(5)
    a, b = middling(u.operand[0], rng, (2, 3, 13, 6)), middling(u.operand[1], rng, (3, 6, 150))
    want = sn.matmul(a, b, u, threads=1, **key_of(u))
    for threads in (2, 3, 7):
        assert_same_bits(sn.matmul(a, b, u, threads=threads, **key_of(u)), want)
    assert_same_bits(want[0, 0], by_definition(u, a[0, 0], b[0]))
    assert_same_bits(sn.matmul(np.asfortranarray(a), b.astype(np.float64), u, **key_of(u)), want)
    out = np.zeros_like(want)
    assert sn.matmul(a, b, u, out=out, **key_of(u)) is out
    assert_same_bits(out, want)


def test_a_sum_of_nothing(isa):
    u = FAST[0]
    c = np.array([[0.5, -0.0, np.nan, np.inf]])
    nothing = np.zeros((3, 0)), np.zeros((0, 4))
    assert_same_bits(sn.matmul(*nothing, u, c), np.broadcast_to(c, (3, 4)).astype(np.float32))
    assert not sn.matmul(*nothing, u).any()


def test_what_stays_with_the_definition():
    for u in (
        unit("q4.4", "e5m2"),  # no code for NaN
        unit("e5m2", (TABLE, "e5m2")),  # values of 53 bits
        unit("q4.4", "q4.4", overflow="wrap"),
        unit("binary64", "binary16"),
        unit("binary32", "binary64"),
        unit("binary32", "e5m2", rounding="stochastic"),
    ):
        assert fast_of(u) is None, str(u)


def test_a_planted_fault_is_caught(isa):
    rng = np.random.default_rng(6)
    u, wrong = unit("e5m2", "e5m2"), unit("e5m2", "e5m2", rounding="nearest_away")
    a, b = middling(u.operand[0], rng, (20, 2)), middling(u.operand[1], rng, (2, 80))
    with pytest.raises(AssertionError, match="differ"):
        assert_same_bits(sn.matmul(a, b, u), by_definition(wrong, a, b))
