"""GroupedDotUnit: RVBNA against its pseudocode, the definition against the reference, IME's (G, psm, rnd)."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.mac.products.engines import definition_of, fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits, same_bits
from tests.support.matmul_units import definition
from tests.support.public import PUBLIC
from tests.support.rvbna import FACTORS, NV, OF, Factor, bulk_normalized_dot_product, corrected, published

TINY = sn.FloatFormat(2, 1)  # e2m1, with infinities and a NaN
FLAGS = {NV: int(sn.Flags.INVALID), OF: int(sn.Flags.OVERFLOW)}


def sums(unit, a, b):
    """Of rows of codes, from +0."""
    out = np.empty(len(a), np.uint64)
    definition_of(unit).run_each(
        np.ascontiguousarray(a, np.uint64), np.ascontiguousarray(b, np.uint64), None, out, None
    )
    return out


def by_pseudocode(unit, a, b, lines):
    """(codes, flags, which are subnormal)"""
    fa, fb = (FACTORS.get(str(f), Factor(f.exponent_bits, f.mantissa_bits)) for f in unit.operand)
    q, f = unit.result.mantissa_bits + 1, unit.result.exponent_bits
    rows = [bulk_normalized_dot_product(*row, fa, fb, q, f, unit.terms, lines) for row in zip(a, b, strict=True)]
    codes, flags, subnormal = zip(*rows, strict=True)
    return np.array(codes, np.uint64), flags, np.array(subnormal)


def near_codes(rng, fmt, rows, n):
    """Codes whose exponents lie near each other, and in the last quarter any codes."""
    e, m = fmt.exponent_bits, fmt.mantissa_bits
    low = rng.integers(0, max(1, (1 << e) - 8), (rows, 1))
    exponent = np.minimum(low + rng.integers(0, 8, (rows, n)), (1 << e) - 2)
    codes = rng.integers(0, 2, (rows, n)) << (e + m) | exponent << m | rng.integers(0, 1 << m, (rows, n))
    codes[rows - rows // 4 :] = rng.integers(0, 1 << fmt.bits, (rows // 4, n))
    return codes


# ---- RVBNA -----------------------------------------------------------------------------------------------------------

EVERY_PAIR = np.array(list(itertools.product(range(16), repeat=4)))


@pytest.mark.slow
@cases("result", ["e2m3", "e2m4", "e3m3", "e3m4", "e4m5"])
def test_two_products_of_every_code(result):
    """Of four-bit numbers, into formats that their products are subnormal in, and too large for."""
    unit = sn.GroupedDotUnit(2, sn.FloatFormat(int(result[1]), int(result[3])), operand=TINY)
    a, b = EVERY_PAIR[:, :2], EVERY_PAIR[:, 2:]
    codes, flags, subnormal = by_pseudocode(unit, a.tolist(), b.tolist(), corrected)
    assert np.array_equal(sums(unit, a, b), codes)
    assert subnormal.any() == (result[1] == "2")
    for row in range(0, len(a), 61):
        code, raised = ref.grouped_dot(*pair(a, b, row), terms=2, accumulator=unit.result, operand=TINY)
        assert code == codes[row] and int(raised) == sum(FLAGS[name] for name in flags[row])
    assert any(OF in f for f in flags) == (result != "e4m5") and any(NV in f for f in flags)


def pair(a, b, row):
    return a[row].tolist(), b[row].tolist()


RVBNA = [
    ("bfloat16", "bfloat16", "binary32", 2), ("bfloat16", "bfloat16", "binary32", 8),
    ("bfloat16", "bfloat16", "binary32", 64), ("binary16", "binary16", "binary32", 4),
    ("e4m3fn", "e4m3fn", "binary32", 16), ("e5m2", "e5m2", "binary32", 32), ("e5m2", "e4m3fn", "binary32", 16),
    ("e4m3fn", "e5m2", "binary32", 1), ("e4m3", "e4m3", "binary32", 8), ("e3m2", "e3m2", "binary16", 16),
    ("e5m2", "e5m2", "binary16", 8), ("bfloat16", "e4m3fn", "binary64", 8), ("bfloat16", "bfloat16", "e6m16", 8),
]  # fmt: skip


@cases("fa, fb, result, n", RVBNA)
def test_the_pseudocode(fa, fb, result, n):
    unit = sn.GroupedDotUnit(n, result, operand=(fa, fb))
    rng = np.random.default_rng(n)
    a, b = (near_codes(rng, f, 800, n) for f in unit.operand)
    if n > 1:
        a[::5, 1], b[::5, 1] = a[::5, 0] ^ (1 << unit.operand[0].bits - 1), b[::5, 0]  # cancellation
    a[::7, n // 2] = 0
    codes, flags, _ = by_pseudocode(unit, a.tolist(), b.tolist(), corrected)
    assert np.array_equal(sums(unit, a, b), codes)
    for row in range(0, 800, 4):
        code, raised = ref.grouped_dot(*pair(a, b, row), terms=n, accumulator=unit.result, operand=unit.operand)
        assert code == codes[row] and int(raised) == sum(FLAGS[name] for name in flags[row]), row


def test_what_the_published_pseudocode_computes():
    """Its masks never see a bit that is lost: normal sums are cut off, and subnormal ones are shifted the wrong way."""
    for fa, result, n in (("bfloat16", "binary32", 8), ("e3m2", "binary16", 16), (TINY, sn.FloatFormat(2, 4), 2)):
        unit = sn.GroupedDotUnit(n, result, operand=fa)
        rng = np.random.default_rng(1)
        a, b = (near_codes(rng, f, 2000, n) for f in unit.operand)
        codes, _, subnormal = by_pseudocode(unit, a.tolist(), b.tolist(), published)
        right = sums(unit, a, b)
        lost = codes != right
        assert (codes[~subnormal] | np.uint64(1) == right[~subnormal] | np.uint64(1)).all()
        assert (codes[lost & ~subnormal] + np.uint64(1) == right[lost & ~subnormal]).all()
        assert lost[~subnormal].any() == (fa != TINY)
    # one product of bfloat16, 1.5 * 2^-e: the smaller it is, the larger is what the pseudocode has
    unit = sn.GroupedDotUnit(8, "binary32", operand="bfloat16")
    got = []
    for e in range(126, 151):
        a, b = [[(127 - 64) << 7] + [0] * 7], [[(127 - (e - 64)) << 7 | 0x40] + [0] * 7]
        right = int(sums(unit, a, b)[0])
        assert right == by_pseudocode(unit, a, b, corrected)[0] == (3 << 22 >> e - 126 | (e > 148))
        got.append(int(by_pseudocode(unit, a, b, published)[0][0]))
    assert got == [3 << 22, *(12 << e - 127 for e in range(127, 151))] and got[-1] == 0x06000000


def dot(a, b, unit, c=None):
    return sn.dot(np.array(a, np.float32), np.array(b, np.float32), unit, c)


def test_a_sum_by_hand():
    unit = sn.GroupedDotUnit(4, "binary32", operand="bfloat16")  # 25 fraction bits
    one = np.float32(1)
    ulp = np.float32(2.0**-23)
    assert dot([1, 2.0**-24], [1, 1], unit) == one + ulp  # the sum, rounded to odd
    assert dot([1, 2.0**-60], [1, 1], unit) == one + ulp  # the product, and then the sum
    assert dot([1, 2.0**-60], [1, -1], unit) == one - ulp / 2
    assert dot([1, 2.0**-60, -1], [1, 1, 1], unit) == 2.0**-25  # a jammed product is a unit of the last place
    assert dot([1, 2.0**-60], [1, 1], unit, -1.0) == ulp
    inf = np.float32(np.inf)
    most = float(sn.format("bfloat16").max)
    assert dot([most, most], [most, most], unit) == inf and dot([most] * 2, [-most] * 2, unit) == -inf
    assert dot([most], [1], unit, most) == inf  # where a rounding to odd is the largest number elsewhere
    assert not np.signbit(dot([-0.0, 1, -1], [1, 1, 1], unit, -0.0))
    assert np.isnan(dot([inf, -inf], [1, 1], unit)) and np.isnan(dot([inf, 0], [0, 1], unit))
    assert dot([inf, 1], [-2, 1], unit) == -inf and np.isnan(dot([inf], [1], unit, -inf))
    assert dot([], [], unit, -0.0) == 0 and np.signbit(dot([], [], unit, -0.0))  # C as it is
    subnormal = 2.0**-133  # of bfloat16, whose exponent counts as -126
    assert dot([subnormal, 2.0**-130], [1, 2.0**-27], unit) == subnormal + 2.0**-149


def test_invalid_beside_a_nan():
    """inf - inf and inf * 0 raise it though a quiet NaN is there; a NaN alone does not."""
    inf, nan, one, signaling = 0x7F80, 0x7FC0, 0x3F80, 0x7F81
    options = {"terms": 4, "accumulator": "binary32", "operand": "bfloat16"}
    for a, b, raised in (
        ([inf, inf, nan], [one, one | 0x8000, one], sn.Flags.INVALID), ([inf, nan], [0, one], sn.Flags.INVALID),
        ([nan, one], [one, one], 0), ([nan, inf], [inf, one], 0), ([signaling], [one], sn.Flags.INVALID),
    ):  # fmt: skip
        code, flags = ref.grouped_dot(a, b, **options)
        assert code == 0x7FC00000 and int(flags) == int(raised)


# ---- the definition and the reference --------------------------------------------------------------------------------


def grouped(terms, accumulator, operand, **options):
    return sn.GroupedDotUnit(terms, accumulator, operand=operand, **options)


NEAREST = {"rounding": "nearest_even"}
EXACT, ROUNDED, SIGNED = {"reduction": "exact"}, {"reduction": "rounded"}, {"zeros": "signed"}
ONCE = {**EXACT, **NEAREST, "partial_rounding": None}
UNITS = [
    grouped(4, "binary32", "bfloat16"),
    grouped(5, "binary32", ("e5m2", "e4m3fn"), rounding="nearest_even"),
    grouped(4, "binary32", "binary16", partial="binary64"),
    grouped(3, "binary16", "binary16", guard_bits=0, partial_rounding="toward_zero", rounding="down"),
    grouped(8, "bfloat16", "bfloat16", rounding="nearest_even"),  # products wider than what is kept
    grouped(4, "binary32", "binary32", partial_rounding=None, rounding="up"),
    grouped(2, "e5m2", "e4m3", partial="e4m3fn", partial_rounding="nearest_even"),
    grouped(1, "e4m3fn", "e4m3fn"),
    grouped(4, "binary8p3se", "binary8p4sf", guard_bits=3),
    grouped(6, "binary16", "e5m2", partial="e8m10", partial_rounding="nearest_away", rounding="nearest_even"),
    grouped(4, "binary32", "bfloat16", **EXACT),
    grouped(4, "binary32", "bfloat16", **EXACT, rounding="down", partial_rounding="down"),
    grouped(4, "binary16", "e5m2", **EXACT, partial_rounding=None, rounding="nearest_even"),
    grouped(3, "binary16", "binary16", **EXACT, partial_rounding=None, rounding="down"),
    grouped(2, "e4m3fn", ("e4m3fn", "e5m2"), **EXACT, partial_rounding=None),
    grouped(2, "binary64", "binary32", **EXACT, partial="binary32", rounding="nearest_even"),
    grouped(2, "binary32", "bfloat16", **ROUNDED, **SIGNED, flush_inputs=True, flush_results="before"),
    grouped(4, "binary16", "e4m3fn", **EXACT, **SIGNED, partial_rounding=None, rounding="nearest_even", scale=-5),
    grouped(3, "binary32", "binary16", **ROUNDED, partial="binary16", partial_rounding="down", rounding="down"),
    grouped(5, "e5m2", "e4m3", **ROUNDED, **SIGNED, scale=2, overflow="saturate_finite", flush_results="subnormal"),
    grouped(2, "binary32", "binary16", **EXACT, partial_rounding="nearest_even", rounding="nearest_even"),
    grouped(3, "bfloat16", "binary32", **EXACT, **SIGNED, flush_inputs=True, rounding="up", overflow="saturate"),
    grouped(4, "binary16", "e5m2", flush_inputs=True, flush_results="after", scale=-9, overflow="saturate_finite"),
    grouped(2, "binary16", "binary16", **EXACT, **SIGNED, partial_rounding=None, rounding="down", scale=-200),
]


def options_of(u):
    return {
        name: getattr(u, name)
        for name in (
            "terms", "accumulator", "operand", "reduction", "partial", "partial_rounding", "rounding", "guard_bits",
            "zeros", "scale", "flush_inputs", "flush_results", "overflow",
        )
    }  # fmt: skip


def cancelling(rng, fmt, size):
    x = rng.choice([-1, 1], size) * (1 + rng.random(size)) * 2.0 ** rng.integers(-6, 7, size)
    x[rng.random(size) < 0.15] = -0.0
    return sn.encode(x, fmt, overflow="saturate").astype(np.uint64)


@cases("u", UNITS, ids=str)
def test_the_definition_is_the_reference(u):
    rng = np.random.default_rng(1)
    fa, fb = u.operand
    finite = not (u.result.has_nan and u.partial_format.has_nan)
    for k, kind in itertools.product((0, 1, 2, 3, 5, 9, 17), ("near", "any")):
        m, n = 3, 4
        if kind == "near":
            a, b, c = (cancelling(rng, f, s) for f, s in ((fa, (m, k)), (fb, (k, n)), (u.result, (m, n))))
        else:
            a, b, c = (
                rng.integers(0, (1 << f.bits) - 1, s, np.uint64, True)
                for f, s in ((fa, (m, k)), (fb, (k, n)), (u.result, (m, n)))
            )
        A, B, C = (sn.Array(x.astype(f.storage_dtype), f) for x, f in ((a, fa), (b, fb), (c, u.result)))
        want = [
            [ref.grouped_dot(a[i].tolist(), b[:, j].tolist(), c=int(c[i, j]), **options_of(u))[0] for j in range(n)]
            for i in range(m)
        ]
        try:
            got = definition(A, B, u, C)
        except ValueError as error:
            assert "NaN" in str(error) and finite
            continue
        if isinstance(got, sn.Array):
            assert got.codes.tolist() == want, (k, kind)
        else:  # carriers hold one NaN; K = 0 returns C's
            want = sn.decode(np.array(want, u.result.storage_dtype), u.result, got.dtype)
            assert_same_bits(got, want, str(u), k, kind)


@cases("u", UNITS, ids=str)
def test_texts_traces_and_bounds(u):
    assert eval(repr(u), PUBLIC) == u and pickle.loads(pickle.dumps(u)) == u
    rng = np.random.default_rng(2)
    for k in (0, 1, 3, 11):
        a, b = (sn.quantize(rng.standard_normal(k), f, overflow="saturate") for f in u.operand)
        c = sn.quantize(rng.standard_normal(), u.result, overflow="saturate")
        for start in (None, c):
            trace, got = u.trace(a, b, start), sn.dot(a, b, u, start)
            assert same_bits(np.atleast_1d(trace.result), np.atleast_1d(got)) and str(u) in str(trace)
            if u.scale or u.flushes:
                with pytest.raises(TypeError, match="no error bounds are known of a GroupedDotUnit that"):
                    sn.bound(u, a[None], b[:, None])
                continue
            exact = sum(map(Fraction.__mul__, map(Fraction, a.tolist()), map(Fraction, b.tolist())), Fraction(0))
            error = abs(Fraction(float(got)) - exact - Fraction(0.0 if start is None else float(start)))
            bound = sn.bound(u, a[None], b[:, None], None if start is None else np.reshape(start, (1, 1)))
            assert all(error <= np.ravel(x)[0] for x in (bound.a_priori, bound.running)), (k, start)


def test_the_bits_of_a_trace():
    unit = grouped(4, "binary32", "bfloat16")
    steps = unit.trace([1.5, 2.0**-30, 0], [1.5, -1, 1], 4.0).steps
    names = ["exact product"] * 3 + ["jammed", "jammed", "group sum", "partial sum", "sum"]
    assert [s.name for s in steps] == names
    assert (steps[4].kept, steps[4].lost, steps[4].decision) == (0, Fraction(1, 32), "up")
    assert steps[5].exact == Fraction(9, 4) - Fraction(1, 2**25)
    too_large = unit.trace([2.0**127], [2.0], None).steps[-2]
    assert too_large.decision == "overflow" and too_large.value == "inf"
    assert too_large.flags == sn.Flags.OVERFLOW | sn.Flags.INEXACT
    assert unit.trace([1.0, 2.0**-30], [1.0, 1.0]).flags == sn.Flags.INEXACT  # of which RVBNA does not tell
    assert unit.trace([1.0, 2.0**-30], [1.0, 1.0]).steps[-2].decision == "up"


@cases("u", UNITS, ids=str)
def test_a_trace_shows_the_flags_that_are_counted(u):
    rng = np.random.default_rng(4)
    names = {"inexact": "INEXACT", "underflowed": "UNDERFLOW", "overflowed": "OVERFLOW", "invalid": "INVALID"}
    for k in (u.terms, 5):  # the last group whole, and not
        a, b = (sn.Array(near_codes(rng, f, 8, k).astype(f.storage_dtype), f) for f in u.operand)
        for x, y in zip(a, b, strict=True):
            _, stats = sn.matmul(x.reshape(1, k), y.reshape(k, 1), u, return_stats=True)
            steps = [s for s in u.trace(x, y).steps if s.code is not None and s.formula != "S = round(S + 0)"]
            for kind, counts in stats.kinds.items():
                of = [s for s in steps if ("sum" if s.name == "sum" else "partial sum") == kind]
                assert len(of) == counts.roundings
                if not str(u.result).startswith("binary8p"):  # of P3109's, counts are of what would have been raised
                    for name, flag in names.items():
                        raised = sum(bool(s.flags & sn.Flags[flag]) for s in of)
                        assert raised == getattr(counts, name), (kind, name)


def test_counts_and_threads():
    unit = grouped(4, "binary32", "bfloat16")
    rng = np.random.default_rng(3)
    a, b = (sn.quantize(rng.standard_normal((9, 9)).astype(np.float32), "bfloat16") for _ in "ab")
    one, stats = sn.matmul(a, b, unit, return_stats=True)
    assert stats["partial sum"].roundings == stats["sum"].roundings == 81 * 3 and stats["sum"].inexact
    assert np.array_equal(one, sn.matmul(a, b, unit, threads=2))
    once = grouped(4, "binary32", "bfloat16", partial_rounding=None)
    assert sn.matmul(a, b, once, return_stats=True)[1].kinds.keys() == {"sum"}
    assert float(sn.sum(np.float32([1, 2.0**-12, -1]), grouped(4, "binary32", "bfloat16"))) == 2.0**-12


# ---- fast paths ------------------------------------------------------------------------------------------------------

FAST = [
    grouped(1, "binary32", "binary16"),
    grouped(3, "binary32", "bfloat16"),
    grouped(8, "binary32", "bfloat16"),
    grouped(16, "binary32", "bfloat16", **NEAREST),
    grouped(64, "binary32", "binary16"),
    grouped(16, "binary32", ("e5m2", "e4m3fn")),
    grouped(64, "binary32", "e4m3fn", **NEAREST),
    grouped(4, "binary32", "tf32", guard_bits=6),
    grouped(8, "binary32", "e2m1fn", guard_bits=0, **NEAREST),
    sn.unit("arm_bfdot"),
    sn.unit("arm_bfdot_ebf"),
    sn.unit("arm_fdot_fp16"),
    sn.unit("arm_fdot_e5m2"),
    sn.unit("arm_fdot_e4m3", "binary16"),
    sn.unit("arm_fmlal_e4m3", "binary16"),
    sn.unit("arm_fmlal_e5m2"),
    grouped(3, "binary32", "bfloat16", **ROUNDED, flush_inputs=True, flush_results="after"),
    grouped(5, "e6m9", ("bfloat16", "e5m2"), **ONCE, scale=-7),
    grouped(2, "binary32", ("bfloat16", "binary16"), **EXACT, partial_rounding="nearest_even", **NEAREST),
    grouped(1, "e7m20", "bfloat16", **ONCE),
    grouped(2, "binary32", "binary16", **ONCE, **SIGNED, scale=-127),
    grouped(1, "e4m3fn", "e4m3fn", **ONCE),
    sn.unit("amd_cdna1_fp16", disputed="matlab"),
    sn.unit("amd_cdna1_bf16", disputed="matlab"),
]
KINDS = {"normal": 0, "near": 3, "wide": 40, "wider": 60, "widest": 126}


def finite_operands(u, rng, m, n, k, spread):
    """Numbers over a range of exponents, zeros and numbers that cancel among them."""
    sides = []
    for shape, fmt in (((m, k), u.operand[0]), ((k, n), u.operand[1]), ((m, n), u.result)):
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
        if spread == 3:
            x = rng.choice([-1, 1], shape) * rng.choice([1, 1.5, 1.75, 1.9990234375, 2.0**-9, 0], shape)
        x = np.where(rng.random(shape) < 0.1, rng.choice([0.0, -0.0], shape), x)
        sides.append(sn.quantize(x, fmt, overflow="saturate").astype(np.float32))
    a, b, c = sides
    if k > 2 and spread < 40:
        a[:, 1], b[1] = -a[:, 0], b[0]
    return a, b, c


@cases("u", FAST, ids=str)
def test_fast_paths_are_the_definition(u, isa):
    assert fast_of(u) is not None
    rng = np.random.default_rng(2)
    for kind, spread in KINDS.items():
        for m, n, k in ((1, 1, 1), (2, 7, 5), (5, 33, 16), (3, 17, 65), (4, 40, 150), (130, 9, 24), (2, 3, 300)):
            a, b, c = finite_operands(u, rng, m, n, k, spread)
            for start in (None, c):
                want = definition(a, b, u, start)
                assert_same_bits(sn.matmul(a, b, u, start, threads=1), want, str(u), kind, (m, n, k))


@cases("u", FAST[::3], ids=str)
def test_what_fast_paths_leave(u, isa):
    """Infinities, NaNs, C beyond all sums, and sums that overflow, or do but to nearest."""
    rng = np.random.default_rng(3)
    a, b, c = finite_operands(u, rng, 9, 70, 40, 0)
    out = u.result
    most, least = np.float32(out.max), np.float32(out.smallest_subnormal)
    c[0], c[1], c[2, 0] = most, -most, np.nan
    if out.infinities:
        c[2, 1:3] = np.inf, -np.inf
    c[5], c[6] = least, -least
    if u.operand[0].has_nan:
        a[3, 7], b[11, 50] = np.nan, np.nan
    if u.operand[0].infinities:
        a[4, 1] = np.inf
    assert_same_bits(sn.matmul(a, b, u, c), definition(a, b, u, c), str(u))
    half = np.full(
        (1, 1), 2.0 ** (out.emax - out.mantissa_bits - 1), np.float32
    )  # half of the largest number's last place
    large = np.full((1, 1), float(u.operand[0].max), np.float32)
    for start in (most, np.float32(sn.decode(np.array(out.max_code - 1, out.storage_dtype), out))):
        for x, y in ((large, large), (half, np.ones((1, 1), np.float32))):
            if sn.quantize(x, u.operand[0])[0, 0] == x[0, 0] and sn.quantize(y, u.operand[1])[0, 0] == y[0, 0]:
                first = np.full((1, 1), start, np.float32)
                assert_same_bits(sn.matmul(x, y, u, first), definition(x, y, u, first), str(u), start)


@cases("u", [FAST[1], FAST[2], FAST[7]], ids=str)
def test_products_far_apart(u, isa):
    """What lies far below the largest product is a unit of the last place, however far it is."""
    for e in range(-126, 0):
        for x in (1.0, -1.0):
            a, b = np.float32([[2.0**60, 2.0 ** (e // 2)]]), np.float32([[2.0**30], [x * 2.0 ** (e - e // 2)]])
            assert_same_bits(sn.matmul(a, b, u), definition(a, b, u), str(u), e)
            assert sn.matmul(a, b, u) != 2.0**90


@cases("u", [FAST[-2], FAST[-1], FAST[17]], ids=str)
def test_exact_groups_of_products_far_apart(u, isa):
    """The least product decides a tie, at each distance from the largest; columns beside it have none that small."""
    fmt_a, fmt_b = u.operand
    one_a, one_b = (1 + f.epsilon for f in u.operand)
    top = 15 if fmt_a.emax > 15 else 14
    tie = 2.0 ** -(u.result.mantissa_bits + 1)
    for e in range(60):
        a = np.float32([[2.0**top, one_a * 2.0 ** max(top - e + e // 2, fmt_a.emin)]])
        b = np.float32([[1.0, 1.0, 1.0], [one_b * 2.0 ** max(-(e // 2), fmt_b.emin), 0.0, 0.25]])
        for sign in (1, -1):
            b[1, 0] *= sign
            for start in (0.0, tie * 2.0**top, -tie * 2.0**top, -(2.0**top)):
                c = sn.quantize(np.full((1, 3), start * 2.0 ** getattr(u, "scale", 0)), u.result).astype(np.float32)
                assert_same_bits(sn.matmul(a, b, u, c), definition(a, b, u, c), str(u), (e, sign, start))


@cases("u", [sn.unit("arm_bfdot"), FAST[2]], ids=str)
def test_sums_to_odd_that_overflow(u, isa):
    """They are infinite, where rounding to odd by operations of a CPU gives the largest number."""
    most = np.finfo(np.float32).max
    a, b = np.float32([[2.0**104, 0]]), np.float32([[1, 2.0**-9], [1, 1]])  # a last place of it, and less
    for sign in (1, -1):
        c = np.full((1, 2), sign * most, np.float32)
        got = sn.matmul(sign * a, b, u, c)
        assert got.tolist() == [[sign * np.inf, sign * float(most)]] and same_bits(got, definition(sign * a, b, u, c))


def test_which_have_fast_paths():
    assert [i for i, u in enumerate(UNITS) if fast_of(u)] == [0, 1, 12, 16, 17, 20]
    assert all(fast_of(sn.unit(name)) for name in sn.units() if name.startswith("riscv"))
    u, c = FAST[2], np.float32([[-0.0, np.inf]])
    assert_same_bits(sn.matmul(np.zeros((1, 0), np.float32), np.zeros((0, 2), np.float32), u, c), c)
    rng = np.random.default_rng(4)
    a, b, c = finite_operands(u, rng, 60, 150, 35, 9)
    stacks = a.reshape(3, 20, 35), np.broadcast_to(b, (3, 35, 150))
    want = definition(*stacks, u)
    for threads in (1, 2, 3):
        assert_same_bits(sn.matmul(*stacks, u, threads=threads), want, threads)


# ---- IME -------------------------------------------------------------------------------------------------------------


@cases("rnd", ["frm", "rto", "xct"])
@cases("g, w", [(1, 2), (2, 2), (4, 4)])
def test_exact_partial_sums_are_other_units(g, w, rnd):
    """psm = 0: exact sums of G W products, rounded or not, and added in the mode frm."""
    unit = sn.mac.ime_unit(g, 0, rnd, w=w, operand="bfloat16", frm="nearest_even")
    rng = np.random.default_rng(4)
    a, b = (sn.quantize(rng.standard_normal((5, 32)) * 2.0 ** rng.integers(-9, 9, (5, 32)), "bfloat16") for _ in "ab")
    b = b.T
    c = rng.standard_normal((5, 5)).astype(np.float32)
    got = sn.matmul(a, b, unit, c)
    if rnd == "xct":
        want, exact = c, sn.ExactDotUnit("binary32", operand="bfloat16")
        for k in range(0, 32, g * w):
            want = sn.matmul(a[:, k : k + g * w], b[k : k + g * w], exact, want)
    else:
        mode = {"frm": "nearest_even", "rto": "to_odd"}[rnd]
        inner = sn.ExactDotUnit("binary32", operand="bfloat16", rounding=mode)
        want = sn.matmul(a, b, sn.ChunkedDotUnit(inner, g * w), c)
    assert_same_bits(got, want)


def test_disclosures():
    unit = sn.mac.ime_unit(2, 1, "rto", w=2, operand="bfloat16")
    assert unit == sn.GroupedDotUnit(4, "binary32", operand="bfloat16", rounding="nearest_even")
    assert sn.mac.ime_unit(1, 1, "frm", w=4, operand="e4m3fn", frm="up").partial_rounding == "up"
    assert sn.mac.ime_unit(1, 1, "xct", w=4, operand="e4m3fn").roundings == (None, "sum")
    for bad, words in (
        ((3, 0, "frm", 1), "g must be a power of two, got 3"), ((1, 2, "frm", 1), "psm must be 0"),
        ((1, 0, "odd", 1), "rnd must be 'frm', 'rto' or 'xct'"), ((1, 0, "frm", 0), "w must be an integer"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            sn.mac.ime_unit(*bad[:3], w=bad[3], operand="bfloat16")


def test_presets():
    unit = sn.unit("riscv_rvbna_bf16_vlen256")
    assert (unit.terms, unit.fraction_bits, unit.evidence["guard_bits"].kind) == (16, 27, "published")
    assert "3244" in unit.evidence["partial_rounding"].source
    # two instructions of a register each
    rng = np.random.default_rng(5)
    a, b = (sn.quantize(rng.standard_normal(32), "bfloat16") for _ in "ab")
    first = sn.dot(a[:16], b[:16], unit)
    assert sn.dot(a, b, unit) == sn.dot(a[16:], b[16:], unit, first)


def test_refusals():
    for options, words in (
        ({"reduction": "tree"}, "reduction must be one of bulk, exact, rounded"),
        ({"reduction": "rounded", "partial_rounding": None}, "state partial_rounding="),
        ({"zeros": "signed"}, "is for reduction='exact' or 'rounded'"),
        ({"zeros": "negative"}, "zeros must be 'positive' or 'signed'"),
        ({"scale": 300}, "scale must be an integer in -256..256"),
        ({"overflow": "wrap"}, "overflow"),
        ({"flush_results": "always"}, "flush_results must be"),
        (
            {
                "reduction": "exact",
                "accumulator": "binary64",
                "operand": sn.FloatFormat(11, 2, bias=2000),
                "scale": -256,
            },
            "wider than 5120 bits; take a scale nearer to 0",
        ),
        ({"terms": 0}, "terms must be an integer in 1.."),
        ({"reduction": "exact", "guard_bits": 3}, "guard_bits=3 are of reduction='bulk'"),
        ({"guard_bits": 90}, "guard_bits must be an integer in 0..77"),
        ({"rounding": "stochastic"}, "not defined for this unit"),
        ({"partial_rounding": "stochastic"}, "not defined for this unit"),
        ({"accumulator": "q8.8"}, "accumulator must be a float format"),
        ({"operand": None}, "state operand="),
        ({"accumulator": "binary8p3uf"}, "has no negative numbers"),
    ):
        stated = {"terms": 4, "accumulator": "binary32", "operand": "bfloat16"} | options
        with pytest.raises(ValueError, match=words):
            sn.GroupedDotUnit(**stated)
