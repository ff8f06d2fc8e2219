"""matmul's fast paths against the definition: sizes across tiles, threads, and inputs built to break them."""

import numpy as np
import pytest

import softnum as sn
from softnum.formats.facts import fits
from softnum.formats.names import format as format_of
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import (
    ALL,
    TABLES,
    carrier,
    definition,
    extreme,
    key_of,
    matmul_module,
    middling,
    unit,
    values_of,
)

FAST = [u for u in ALL if fast_of(u) is not None]
SIZES = [
    (1, 1, 1),
    (2, 15, 3),
    (3, 16, 2),
    (2, 17, 5),
    (1, 31, 4),
    (3, 33, 7),
    (2, 63, 3),
    (5, 64, 6),
    (4, 65, 9),
    (2, 130, 2),
]


def compare(got, want, u, *context):
    if isinstance(want, sn.Array):
        assert np.array_equal(got.codes, want.codes), (str(u), context)
    else:
        assert_same_bits(got, want, str(u), *context)


def test_every_kind_of_fast_path_is_here():
    engines = [fast_of(u) for u in FAST]
    plans = [p for p in engines if p.path != "integers"]
    assert {(p.wraps, p.ends[0] < 0, p.shift > 0) for p in engines if p.path == "integers"} >= {
        (False, True, False), (True, True, False), (False, True, True), (False, False, False),
    }  # fmt: skip
    kinds = {(p.path, p.product_rounding, p.exact_below) for p in plans}
    assert kinds >= {
        ("magic", "exact", True), ("magic", "exact", False), ("magic", "nearest", True), ("magic", "nearest", False),
        ("mixed", "nearest", False), ("fixed", "exact", False),
        ("native", "exact", False), ("native", "nearest", False), ("native", "fused", False),
        ("odd", "exact", False), ("odd", "nearest", False), ("stochastic", "exact", True),
        ("stochastic", "exact", False), ("stochastic", "stochastic", True), ("stochastic", "stochastic", False),
        ("wide", "exact", False), ("wide", "nearest", False), ("wide", "stochastic", False),
    }, kinds  # fmt: skip
    for path in {k[0] for k in kinds} - {"mixed", "ieee"}:
        assert {bool(p.chunk) for p in plans if p.path == path} == {False, True}, path
    assert any(p.two_roundings for p in plans) and any(p.chunk and p.two_roundings for p in plans)
    for u in ALL:  # the units of the default study are fast
        if u.accumulator == format_of("e6m9") and u.rounding in ("nearest_even", "stochastic") and u not in TABLES:
            assert fast_of(u) is not None, str(u)


@cases("u", FAST, ids=str)
def test_sizes_across_the_tiles(u, isa):
    rng = np.random.default_rng(4)
    for m, n, k in SIZES:
        a, b = middling(u.operand[0], rng, (m, k)), middling(u.operand[1], rng, (k, n))
        compare(sn.matmul(a, b, u, **key_of(u)), definition(a, b, u, **key_of(u)), u, m, n, k)


@cases("u", FAST, ids=str)
def test_stacks_of_matrices(u, isa):
    """One call for a whole stack, whose matrices are numbered for random words, from C and from 0."""
    rng = np.random.default_rng(6)
    for m, n, k in ((3, 17, 5), (2, 32, 3)):
        a, b = middling(u.operand[0], rng, (2, 2, m, k)), middling(u.operand[1], rng, (2, 2, n, k)).swapaxes(2, 3)
        for c in (None, middling(u.c_format, rng, (2, m, n))):
            want = definition(a, b, u, c, **key_of(u))
            for threads in (1, 3, 7):
                compare(sn.matmul(a, b, u, c, threads=threads, **key_of(u)), want, u, m, n, k, threads)


@cases("u", ALL[::5], ids=str)
def test_threads_change_nothing(u, isa):
    rng = np.random.default_rng(5)
    for shape, n in (((9, 6), 150), ((2, 3, 5), 70), ((1, 4), 300)):
        a, b = middling(u.operand[0], rng, shape), middling(u.operand[1], rng, (shape[-1], n))
        want = sn.matmul(a, b, u, threads=1, **key_of(u))
        for threads in (2, 3, 7):
            got = sn.matmul(a, b, u, threads=threads, **key_of(u))
            compare(got, want, u, shape, threads)
        compare(definition(a, b, u, threads=3, **key_of(u)), want, u, shape)


def specials_have_results(u):
    return all(f is None or f.has_nan for f in (u.product, u.accumulator, u.outer_accumulator))


@cases("u", FAST, ids=str)
def test_the_whole_range_of_the_operands(u, isa):
    """Overflow, subnormals, infinities and NaN where the formats have them; finite values where they must be."""
    rng = np.random.default_rng(6)
    finite = not specials_have_results(u)
    for k in (1, 2, 6):
        a, b = extreme(u.operand[0], rng, (40, k), finite), extreme(u.operand[1], rng, (k, 50), finite)
        if finite and any(f is not None and f.infinities and not f.has_nan for f in (u.product,)):
            continue
        try:
            want = definition(a, b, u, **key_of(u))
        except ValueError as error:  # an overflowed product that the accumulator has no code for
            assert "NaN or infinite" in str(error) and u.product is not None
            continue
        compare(sn.matmul(a, b, u, **key_of(u)), want, u, k)


def starts_near_ties(u, products, rng):
    """Accumulators whose half last place lies at, or next to, each product: ties, and what is nearly one."""
    f = u.outer
    if f.kind == "fixed":
        raw = rng.integers(0, 1 << min(f.bits, 40), products.shape, dtype=np.uint64)
        return np.asarray(sn.Array(raw & np.uint64((1 << f.bits) - 1), f))
    exponent = np.frexp(products)[1] - 1 + f.precision + rng.integers(-2, 4, products.shape)
    exponent = np.clip(exponent, max(f.emin - f.mantissa_bits, -1000), min(f.emax, 1000))
    significand = 1 + rng.integers(0, 1 << min(f.mantissa_bits, 52), products.shape) * 2.0**-f.mantissa_bits
    c = np.ldexp(significand, exponent) * np.where(rng.random(products.shape) < 0.5, -1, 1)
    if not f.signed:
        c = np.abs(c)
    c = np.where(rng.random(c.shape) < 0.1, -products, c)  # cancellation
    c = np.where(rng.random(c.shape) < 0.05, float(f.max), c)
    c = np.where(np.isfinite(c), c, 0)
    return sn.quantize(c, f, rounding="toward_zero", overflow="saturate")


@cases("u", [u for u in FAST if fits(u.outer, np.float64)], ids=str)
def test_ties_cancellation_and_limits(u, isa):
    """One product onto accumulators that make it a tie; then a second product, which may be the sticky bit."""
    rng = np.random.default_rng(7)
    signs = u.operand[0].signed and u.operand[1].signed
    for k in (1, 2, 3):
        a = extreme(u.operand[0], rng, (24, k), finite=True)
        b = extreme(u.operand[1], rng, (k, 80), finite=True)
        products = a[:, :1].astype(np.float64) * b[:1].astype(np.float64)
        c = starts_near_ties(u, products, rng)
        assert signs or c is not None
        try:
            want = definition(a, b, u, c, **key_of(u))
        except ValueError as error:
            assert "NaN or infinite" in str(error) and u.product is not None
            continue
        compare(sn.matmul(a, b, u, c, **key_of(u)), want, u, k)


REACHING = [
    unit("e4m6", "e4m3"), unit("e4m6", "e4m3", product="e4m3"), unit("e5m10", "e5m2"), unit("e4m3fn", "e4m3fn"),
    unit("binary16", "binary16"), unit("bfloat16", "bfloat16"), unit("e4m3", "e4m3", chunk=3), unit("q16.0", "q8.0"),
    unit("e4m6", "e4m3", rounding="stochastic", stochastic_bits=9, product="e4m3"),
    unit("e4m6", "e4m3", rounding="stochastic", stochastic_bits=12), unit("e4m6", "e4m3", overflow="saturate"),
]  # fmt: skip


@cases("u", REACHING, ids=str)
def test_sums_that_just_reach_the_largest_value(u, isa):
    """Where the bound on a tile's sums begins to fail, and where they overflow; -0 and large numbers in C."""
    rng = np.random.default_rng(9)
    top = float(u.outer.max)
    for k in (1, 2, 3, 5, 8, 13):
        for steps in (k - 0.5, k, k + 0.1, 2 * k, 40 * k):
            x = min(np.sqrt(top / steps), float(u.operand[0].max))
            a = sn.quantize(np.full((6, k), x, np.float32), u.operand[0], rounding="toward_zero", overflow="saturate")
            b = a[:1].T * np.where(rng.random((k, 40)) < 0.1, -1, 1).astype(np.float32)
            a[0, 0] = -a[0, 0]
            zero = -0.0 if u.outer.kind == "float" else 0.0
            start = sn.quantize(rng.choice([zero, 0.0, top, -top, top / 2], (6, 40)).astype(np.float32), u.outer)
            for c in (None, start, np.full((6, 40), zero, np.float32)):
                compare(sn.matmul(a, b, u, c, **key_of(u)), definition(a, b, u, c, **key_of(u)), u, k, steps)


# units at the edges of the paths' domains, and sums that the path next door would get wrong
FAR = sn.FloatFormat(8, 7, bias=-245, name="values-to-2^500")
LARGEST = float(format_of("e11m49").max)
EDGES = {
    # the exact sum has 29 bits, and binary32 would make a tie of it
    "two roundings": (unit("q10.4", "q2.10"), [[99 / 1024]], [[331 / 1024]], [[510.0]]),
    "odd numbers beyond 2^23": (unit("q18.6", "q8.4"), [[1.0, 1.0]], [[0.015625 * 4], [3.0]], [[100000.015625]]),
    "beyond binary64": (unit("e11m49", FAR), [[2.0**495] * 2], [[2.0**495], [-(2.0**495)]], [[LARGEST]]),
    "below zero, then above": (unit("uq12.4", "q6.2"), [[1.0, 2.0, -3.0]], [[-4.0], [1.5], [2.0]], [[1.0]]),
    "below zero": (unit("uq12.4", "q6.2"), [[1.0, -2.0]], [[-4.0], [1.5]], None),
}  # fmt: skip


@pytest.mark.parametrize("u, a, b, c", EDGES.values(), ids=EDGES)
def test_sums_at_the_edge_of_a_path(u, a, b, c, isa):
    a, b, c = (None if x is None else np.array(x) for x in (a, b, c))
    for columns in (1, 40):  # one vector's and more
        wide = np.repeat(b, columns, axis=1)
        start = None if c is None else np.repeat(c, columns, axis=1)
        compare(sn.matmul(a, wide, u, start), definition(a, wide, u, start), u, columns)


SMALL_SUMS = [
    sn.MadUnit("binary16", operand=("e4m3fn", "e5m2")), sn.MadUnit("binary16", operand=("e4m3fn", "e5m2"), chunk=16),
    sn.MadUnit("e5m10", operand=("e5m2", "e4m3fn"), chunk=5),
    sn.MadUnit("binary16", operand=("e4m3fn", "e5m2"), rounding="stochastic", stochastic_bits=9),
    sn.MadUnit("e4m3", operand="e4m3fn", chunk=8),
]  # fmt: skip


@pytest.mark.parametrize("u", SMALL_SUMS, ids=str)
def test_operands_whose_products_lie_on_the_sums_grid_and_others(u, isa):
    """Sums whose last place is larger than that of some products: blocks of rows and panels with such operands, and
    without, small sums that round to zero, and a start of -0."""
    rng = np.random.default_rng(5)
    m, k, n = 14, 53, 75
    for case in range(6):
        operands = []
        for fmt, shape in zip(u.operand, ((m, k), (k, n)), strict=True):
            low = fmt.emin if case % 2 else max(fmt.emin, -4)
            x = np.ldexp(1 + rng.random(shape), rng.integers(low, low + 6, shape)) * rng.choice([-1, 1], shape)
            x[rng.random(shape) < (0.2 if case < 4 else 0.9)] = rng.choice([0.0, -0.0])
            operands.append(sn.quantize(x, fmt).astype(np.float32))
        a, b = operands
        tiny_a, tiny_b = (float(f.smallest_subnormal) for f in u.operand)
        a[[1, 9], [3, 50]] = tiny_a, -tiny_a  # in two blocks of rows
        b[[3, 50], [40, 70]] = tiny_b, 3 * tiny_b  # in the later panels
        c = np.zeros((m, n), np.float32)
        c[::2] = -0.0
        for start in (None, c, np.abs(c)):
            compare(sn.matmul(a, b, u, start, **key_of(u)), definition(a, b, u, start, **key_of(u)), u, case)


def test_the_generator_makes_ties():
    """Enough of the adversarial sums are exact ties, else the test above proves little."""
    u = unit("e6m9", "e5m2")
    rng = np.random.default_rng(7)
    a, b = extreme(u.operand[0], rng, (24, 1), True), extreme(u.operand[1], rng, (1, 80), True)
    c = starts_near_ties(u, a.astype(np.float64) * b, rng)
    even, away = (sn.matmul(a, b, unit("e6m9", "e5m2", rounding=r), c) for r in ("nearest_even", "nearest_away"))
    assert np.count_nonzero(even != away) > 60


@cases(
    "right, wrong",
    [
        (unit("e6m9", "e5m2"), unit("e6m9", "e5m2", rounding="nearest_away")),
        (unit("e6m9", "e5m2"), unit("e6m9", "e5m2", product="e6m9", rounding="nearest_zero")),
        (unit("binary16", "binary16"), unit("binary16", "binary16", product="binary16")),
        (unit("binary32", "binary32"), unit("binary32", "binary32", product="binary32")),
        (unit("e6m9", "e5m2", chunk=2), unit("e6m9", "e5m2")),
        (unit("q4.4", "q4.4"), unit("q4.4", "q4.4", rounding="nearest_up")),
    ],
    ids=str,
)
def test_the_comparison_catches_a_planted_fault(right, wrong, isa):
    rng = np.random.default_rng(8)
    a, b = extreme(right.operand[0], rng, (24, 3), True), extreme(right.operand[1], rng, (3, 80), True)
    c = starts_near_ties(right, a[:, :1].astype(np.float64) * b[:1], rng)
    with pytest.raises(AssertionError, match="differ"):
        compare(sn.matmul(a, b, right, c), definition(a, b, wrong, c), right)
    got = definition(a, b, right, c).copy()
    at = np.argwhere(np.isfinite(got) & (got != 0))[0]
    got[tuple(at)] = np.nextafter(got[tuple(at)], got.dtype.type(0))
    with pytest.raises(AssertionError, match="1 of .* differ"):
        compare(sn.matmul(a, b, right, c), got, right)


@pytest.mark.parametrize("bits", ["bfloat16", "tf32", "binary16"])
def test_fused_sums_that_two_roundings_get_wrong(bits, isa):
    """32768 + 2**-48 and the like: no single hardware type is wide enough (binary32 and binary64 both round twice)."""
    fmt = format_of(bits)
    u = unit(bits, bits)
    p = fmt.precision
    big = 2.0 ** min(p + 4, 15)
    a = np.array([[1 + 2.0 ** -(p - 1)]], carrier(fmt))
    starts, factors = [], []
    for odd in (0, 1):
        for e in range(60):
            tiny = 2.0**-e
            if tiny < float(fmt.smallest_subnormal):
                continue
            starts.append(big * (1 + odd * 2.0 ** (1 - p)))
            factors.append(tiny)
    b = np.array([factors], carrier(fmt))
    for sign in (1, -1):
        c = np.array([starts], carrier(fmt))
        compare(sn.matmul(a * sign, b, u, c), definition(a * sign, b, u, c), u)
        half = np.array([[big * 2.0**-p]], carrier(fmt))  # half a last place, then a crumb
        both_a = np.concatenate([half, a * sign], axis=1)
        both_b = np.concatenate([np.ones_like(b), b])
        compare(sn.matmul(both_a, both_b, u, c), definition(both_a, both_b, u, c), u)


def test_wide_sums_that_two_roundings_get_wrong(isa):
    """A tie, and a crumb 54 places below the sum, which binary64 drops: 2049 * 4192257 = 2**33 + 1."""
    x, y = 2049 * 2.0**-12, 4192257 * 2.0**-12
    for e in (54, 60, 90):
        c = np.full((1, 21), 2.0**e)
        for u in (
            sn.MadUnit("e10m20", operand="binary32"),
            sn.MadUnit("e10m40", operand="binary32", chunk=1, outer_accumulator="e10m20"),
        ):
            assert fast_of(u).path == "wide"
            for sign in (1, -1):
                a, b = np.array([[x * sign]], np.float32), np.full((1, 21), y * 2.0 ** (e - 30), np.float32)
                got = sn.matmul(a, b, u, c * sign)
                assert (got == sign * (2.0**e + 2.0 ** (e - 20))).all(), (str(u), e, sign)
                compare(got, definition(a, b, u, c * sign), u)


@cases("u", TABLES, ids=str)
def test_every_pair_of_table_values(u, isa):
    a = values_of(u.operand[0], finite=True).astype(carrier(u.operand[0]))[:, None]
    b = values_of(u.operand[1], finite=True).astype(carrier(u.operand[1]))[None, :]
    compare(sn.matmul(a, b, u, **key_of(u)), definition(a, b, u, **key_of(u)), u)


def test_the_definition_is_what_is_compared_with():
    """`definition` must not take the fast path, nor the fast path the definition."""
    u = unit("e6m9", "e5m2")
    a = np.ones((2, 3), np.float32)
    calls = []
    real = matmul_module._run_fast
    matmul_module._run_fast = lambda *args, **kw: calls.append(1) or real(*args, **kw)
    try:
        definition(a, a.T, u)
        assert not calls
        sn.matmul(a, a.T, u, threads=2)  # one thread has a way of its own
        assert calls
    finally:
        matmul_module._run_fast = real


@cases("u", [*FAST, sn.unit("nvidia_h100_e4m3"), sn.unit("nvidia_v100_fp16")], ids=str)
def test_stacks_of_matrices_are_the_products_of_each(u):
    """Six matrices in one call of the engine, of any layout, from a start or without, by one thread or two."""
    rng = np.random.Generator(np.random.Philox(8))
    m, n, k = 3, 17, 9
    shapes = (2, 3, m, k), (2, 3, k, n)
    a, b = (middling(f, rng, shape) for f, shape in zip(u.operand, shapes, strict=True))
    start = sn.quantize(rng.standard_normal((2, 3, m, n)), u.c_format)
    turned = np.ascontiguousarray(b.swapaxes(-2, -1)).swapaxes(-2, -1)
    for c in (None, start, start[0, 0]):
        want = definition(a, b, u, c, **key_of(u))
        for threads in (1, 2):
            for y in (b, turned):
                compare(sn.matmul(a, y, u, c, threads=threads, **key_of(u)), want, u, threads)


@cases("chunk", [None, 2])
@cases("accumulator", ["binary32", "binary16", "binary64"])
def test_nans_of_any_payload_are_canonical_in_products(accumulator, chunk):
    u = sn.MadUnit(accumulator, operand="binary32", chunk=chunk)
    a, b = np.ones((2, 2, 3), np.float32), np.ones((2, 3, 4), np.float32)
    a[:, 0, 0] = np.uint32([0x7FA00001, 0xFFC12345]).view(np.float32)
    for threads in (1, 2):
        for x, y in ((a, b), (a[1], b[1])):
            got = sn.matmul(x, y, u, threads=threads)
            compare(got, definition(x, y, u), u, threads)
            assert np.isnan(got[..., 0, :]).all()
            start = np.full_like(got, np.nan) * got.dtype.type(-1)
            compare(sn.matmul(x, y, u, start, threads=threads), definition(x, y, u, start), u, threads)
