"""FusedDotUnit and FmaChainUnit: definition against the reference, fast paths against the definition."""

import pickle

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.names import format as format_of
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits, edge_codes
from tests.support.fused_operands import KINDS, near, operands, some_codes
from tests.support.matmul_units import definition
from tests.support.public import PUBLIC

INTERLEAVED = tuple(k for half in (0, 2) for first in range(0, 32, 4) for k in (first + half, first + half + 1))


def fused(terms, fraction_bits, accumulator, operand, **options):
    return sn.FusedDotUnit(terms, fraction_bits, accumulator, operand=operand, **options)


RNE = {"output_rounding": "nearest_even"}
FAST = [
    fused(4, 23, "binary32", "binary16", overflow="always_infinity"),
    fused(4, 23, "binary16", "binary16", **RNE, overflow="always_infinity"),
    fused(8, 24, "binary32", "binary16", min_exponent=-133),
    fused(8, 24, "binary32", "bfloat16", min_exponent=-133, overflow="always_infinity"),
    fused(4, 24, "binary32", "tf32", min_exponent=-133),
    fused(16, 25, "binary32", "binary16", min_exponent=-133, overflow="always_infinity"),
    fused(16, 25, "binary16", "binary16", **RNE, min_exponent=-21),
    fused(16, 25, "binary32", "bfloat16"),
    fused(8, 25, "binary32", "tf32"),
    fused(32, 13, "binary32", "e4m3fn", truncate_fraction=13, min_exponent=-133, overflow="always_infinity"),
    fused(32, 13, "binary32", "e5m2", truncate_fraction=13, overflow="always_infinity"),
    fused(16, 13, "binary16", "e5m2", **RNE, min_exponent=-21),
    fused(16, 25, "binary16", "e4m3fn", **RNE, k_order=INTERLEAVED, c="after", overflow="always_infinity"),
    fused(16, 25, "binary16", "e5m2", **RNE, k_order=INTERLEAVED, c="after"),
    fused(32, 24, "binary32", "e4m3fn", c="after"),
    fused(3, 20, "binary32", ("e5m2", "e4m3fn"), overflow="saturate"),
    fused(1, 3, "e4m3", "e4m3", **RNE),
    fused(2, 9, "e5m2", "e5m2", **RNE, k_order=(3, 0, 2, 1), overflow="saturate"),
    fused(7, 12, "binary32", ("e4m3fnuz", "binary8p3se"), truncate_fraction=5, k_order=tuple(range(13, -1, -1))),
    fused(2, 8, "e4m3fn", "e4m3fn", **RNE),
    fused(32, 25, "binary32", "e5m2", c="after", overflow="always_infinity"),
    fused(8, 20, "binary32", "binary16", c="after", overflow="saturate"),
    fused(8, 20, "binary16", "e5m2", **RNE, c="after", overflow="saturate_finite"),
    fused(8, 20, "e5m2", "e5m2", **RNE, c="after", overflow="infinity"),
    fused(3, 9, "e3m2fn", "e2m3fn", **RNE),
]
SLOW = [
    fused(5, 7, "bfloat16", "bfloat16", **RNE),
    fused(4, 23, "binary32", "binary16", **RNE),
    fused(4, 23, "binary32", "binary16", output_rounding="up"),
    fused(4, 60, "binary64", "binary32", output_rounding="down"),
    fused(3, 30, "binary32", "binary16", output="binary16", **RNE),
    fused(4, 20, "binary16", "binary16", output="binary32", overflow="always_infinity"),
    fused(4, 20, "binary16", "binary16", output="binary32", c="after"),
    fused(2, 8, "e4m3fn", "e4m3fn", overflow="saturate"),
    fused(3, 6, "dlfloat16", "dlfloat16", **RNE),
    fused(4, 100, "e8m50", "binary32", output_rounding="to_odd", min_exponent=3),
    fused(2, 5, "e5m2fnuz", "e5m2fnuz", output_rounding="away_from_zero", truncate_fraction=2),
    fused(3, 9, "e3m2fn", "e5m2", **RNE),
    fused(4, 20, "binary32", "binary32", min_exponent=40, truncate_fraction=0),
    fused(4, 12, "binary16", "binary16", **RNE, truncate_fraction=8),
    fused(3, 20, "binary8p4ue", "binary8p3se", output_rounding="to_odd", overflow="p3109_v3_2_1"),
    fused(4, 23, "binary32", "binary8p3se", output="binary8p4ue", output_rounding="to_odd", overflow="p3109_v3_2_1"),
    fused(4, 23, "binary32", "binary8p3se", output="binary8p4ue", c="after", overflow="p3109_v3_2_1"),
]
CHAINS = [
    sn.FmaChainUnit("binary32", operand="bfloat16", k_order=(1, 0), flush_inputs=True, flush_results="after"),
    sn.FmaChainUnit("binary32", operand="bfloat16", flush_results="before"),
    sn.FmaChainUnit("e5m2", operand="e4m3", rounding="down", k_order=(2, 0, 1)),
    sn.FmaChainUnit("binary16", operand=("e5m2", "e4m3fn"), overflow="saturate"),
]


def options_of(u):
    if isinstance(u, sn.FmaChainUnit):
        return {
            "accumulator": u.accumulator, "operand": u.operand, "k_order": u.k_order, "rounding": u.rounding,
            "overflow": u.overflow, "flush_inputs": u.flush_inputs, "flush_results": u.flush_results,
        }  # fmt: skip
    return {
        "terms": u.terms, "fraction_bits": u.fraction_bits, "accumulator": u.accumulator, "operand": u.operand,
        "min_exponent": u.min_exponent, "output": u.output, "output_rounding": u.output_rounding,
        "truncate_fraction": u.truncate_fraction, "k_order": u.k_order, "c_mode": u.c, "overflow": u.overflow,
    }  # fmt: skip


def lacks_specials(u):
    formats = (u.accumulator, u.result)
    return not all(f.has_nan for f in formats)


@cases("u", [*FAST, *SLOW, *CHAINS], ids=str)
def test_the_definition_is_the_reference(u):
    rng = np.random.default_rng(1)
    fa, fb = u.operand
    dot = ref.fma_chain_dot if isinstance(u, sn.FmaChainUnit) else ref.fused_dot
    c_format = u.c_format
    for k in (0, 1, 2, 3, 5, 9, 17, 33, 40):
        for source in ("near", "edges", "tail"):
            m, n = 3, 4
            if source == "near":
                a, b, c = near(fa, rng, (m, k)), near(fb, rng, (k, n)), near(c_format, rng, (m, n))
                if k > 2:  # cancellation
                    a[:, 1], b[1] = a[:, 0] ^ (1 << fa.bits - 1 if fa.negative_zero else 0), b[0]
            else:
                finite = source == "tail" or lacks_specials(u)
                a, b = some_codes(fa, rng, (m, k), finite), some_codes(fb, rng, (k, n), finite)
                c = some_codes(c_format, rng, (m, n), finite)
            A, B, C = (
                sn.Array(x.astype(f.storage_dtype), f) for x, f in ((a, fa), (b, fb), (c, c_format))
            )  # fmt: skip
            want = [
                [dot(a[i].tolist(), b[:, j].tolist(), c=int(c[i, j]), **options_of(u))[0] for j in range(n)]
                for i in range(m)
            ]
            try:
                got = definition(A, B, u, C)
            except ValueError as error:
                assert "NaN" in str(error) and lacks_specials(u)
                continue
            if isinstance(got, sn.Array):
                assert got.codes.tolist() == want, (k, source)
            else:  # carriers hold one NaN; K = 0 returns C's
                want = sn.decode(np.array(want, u.result.storage_dtype), u.result, got.dtype)
                assert_same_bits(got, want, str(u), k, source)


def test_the_hardware_units_are_fast():
    assert [str(u) for u in FAST if fast_of(u) is None] == []
    plans = [fast_of(u).plan for u in FAST]
    assert {(p["nearest"], p["may_carry"]) for p in plans} == {(a, b) for a in (True, False) for b in (True, False)}
    assert all(fast_of(u) is None for u in SLOW)


@cases("u", FAST, ids=str)
def test_fast_paths_are_the_definition(u, isa):
    rng = np.random.default_rng(2)
    for kind in KINDS:
        for m, n, k in ((1, 1, 1), (2, 7, 5), (5, 33, 16), (3, 17, 33), (4, 40, 150), (130, 9, 40), (2, 3, 300)):
            a, b, c = operands(u, rng, m, n, k, kind)
            for start in (None, c):
                want = definition(a, b, u, start)
                assert_same_bits(sn.matmul(a, b, u, start, threads=1), want, str(u), kind, (m, n, k))


@cases("u", FAST[::4], ids=str)
def test_specials_spread_no_further(u, isa):
    """One infinity or NaN in a row and a column: the rest of the tile is as without."""
    rng = np.random.default_rng(3)
    a, b, c = operands(u, rng, 9, 70, 40, "normal")
    nan = u.operand[0].has_nan
    a[3, 7], b[11, 50], c[2, 2] = (np.nan, np.nan, np.nan) if nan else (0, 0, 0)
    if u.operand[0].infinities:
        a[4, 1] = np.inf
    assert_same_bits(sn.matmul(a, b, u, c), definition(a, b, u, c), str(u))


@pytest.mark.parametrize("u", [*FAST[::3], SLOW[1], CHAINS[0]], ids=str)
def test_threads_change_nothing(u):
    rng = np.random.default_rng(4)
    a, b, _ = operands(u, rng, 2 * 11, 150, 35, "wide")
    a = a.reshape(2, 11, 35)
    want = sn.matmul(a, b, u, threads=1)
    for threads in (2, 3, 7):
        assert_same_bits(sn.matmul(a, b, u, threads=threads), want, str(u), threads)


def test_c_may_be_the_result():
    u = FAST[0]
    rng = np.random.default_rng(5)
    a, b, c = operands(u, rng, 20, 40, 30, "normal")
    want = sn.matmul(a, b, u, c)
    assert sn.matmul(a, b, u, c, out=c) is c
    assert_same_bits(c, want)


def test_worked_by_hand():
    """Three products below the bits kept vanish one by one, though together they would not."""
    v100 = FAST[0]
    tiny = 2.0**-12
    a = np.array([1, tiny, tiny, tiny], np.float32)
    assert sn.dot(a, a, v100) == 1
    kept = fused(4, 25, "binary32", "binary16")
    assert sn.dot(a, a, kept) == 1 + 2.0**-23
    # products are not normalised: 1.5 * 1.5 = 2.25 counts as exponent 0, which leaves 2**-23 in place
    assert sn.dot(np.float32([1.5, 2.0**-11]), np.float32([1.5, 2.0**-12]), v100) == np.float32(2.25)
    assert sn.dot(np.float32([1.5, -(2.0**-11)]), np.float32([1.5, 2.0**-12]), v100) == 2.25 - 2.0**-22
    # the sum's sign: cut off toward zero, not down
    assert sn.dot(np.float32([-1, -tiny]), np.float32([1, tiny / 2]), v100) == -1
    # a sum of zero is +0
    zero = sn.dot(np.float32([1, -1]), np.float32([1, 1]), v100)
    assert zero == 0 and not np.signbit(zero)
    zero = sn.dot(np.float32([-0.0]), np.float32([1]), v100, np.float32(-0.0))
    assert zero == 0 and not np.signbit(zero)
    # what is too large
    big = np.full(4, 60000, np.float32)
    half = FAST[1]
    assert sn.dot(big, big, half) == np.inf and sn.dot(big, -big, half) == -np.inf
    limit = np.float32([np.finfo(np.float32).max])
    bf = sn.quantize(limit, "bfloat16", rounding="toward_zero")
    assert sn.dot(bf, bf, FAST[3]) == np.inf
    assert sn.dot(bf, bf, FAST[7]) == limit[0]


def test_nothing_to_sum():
    empty = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    for u in (FAST[0], FAST[12], SLOW[1], CHAINS[0]):
        assert_same_bits(sn.matmul(*empty, u), np.zeros((2, 3), np.float32))
        c = np.float32([[1, -0.0, 2], [np.inf, -3, 0]])
        assert_same_bits(sn.matmul(*empty, u, c), c, str(u))


@cases("u", [*FAST, *SLOW, *CHAINS], ids=str)
def test_repr_and_pickle(u):
    assert eval(repr(u), PUBLIC) == u
    assert pickle.loads(pickle.dumps(u)) == u and hash(u) == hash(eval(repr(u), PUBLIC))
    assert str(u.operand[0]) in str(u) and fast_of(u) is fast_of(pickle.loads(pickle.dumps(u)))


@cases(
    "options, message",
    [
        ({"terms": 0}, "terms must be an integer in 1..1048576, got 0"),
        ({"terms": True}, "terms must be"),
        ({"fraction_bits": 101}, "fraction_bits must be an integer in 0..100, got 101"),
        ({"operand": None}, "state operand="),
        ({"operand": ("e5m2",) * 3}, "a pair, got 3"),
        ({"operand": "q4.4"}, "operand must be a float format, got q4.4"),
        ({"operand": "e8m0fnu"}, "has no zero"),
        ({"accumulator": "q8.8"}, "accumulator must be a float format"),
        ({"output": "q8.8"}, "output must be a float format"),
        ({"output_rounding": "stochastic"}, "not defined for this unit"),
        ({"output_rounding": "nearest"}, "unknown rounding mode"),
        ({"truncate_fraction": -1}, "truncate_fraction must be"),
        ({"min_exponent": 1.5}, "min_exponent must be"),
        ({"k_order": (0, 1, 2)}, "a multiple of terms = 4"),
        ({"k_order": (0, 1, 2, 2)}, "each of 0..P-1 once"),
        ({"c": "before"}, "'fused' or 'after', got 'before'"),
        ({"overflow": "wrap"}, "wrap"),
    ],
)
def test_refusals(options, message):
    good = {"terms": 4, "fraction_bits": 23, "accumulator": "binary32", "operand": "binary16"}
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("=", "=")):
        sn.FusedDotUnit(**(good | options))


def test_chain_refusals():
    with pytest.raises(ValueError, match="flush_results must be"):
        sn.FmaChainUnit("binary32", operand="bfloat16", flush_results="never")
    with pytest.raises(ValueError, match="state operand="):
        sn.FmaChainUnit("binary32")
    with pytest.raises(ValueError, match="equally long"):
        ref.fma_chain_dot([0], [], accumulator="binary32", operand="e5m2")
    with pytest.raises(ValueError, match="equally long"):
        ref.fused_dot([0], [], terms=1, fraction_bits=3, accumulator="binary32", operand="e5m2")


def test_edges_are_there():
    assert len(edge_codes(format_of("binary16"))) > 20
