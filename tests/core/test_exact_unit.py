"""ExactDotUnit: the definition against `reference.exact_dot`, which sums Fractions, and against sums worked by hand."""

import pickle
import random
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats.facts import fits
from softnum.formats.modes import ROUNDING_MODES
from softnum.formats.names import format as format_of
from softnum.mac.products.engines import coded, definition_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits, edge_codes, show
from tests.support.matmul_units import LOW, TABLE, TERNARY, as_codes, carrier, middling

MODES = list(ROUNDING_MODES)


def unit(accumulator, operand, **options):
    return sn.ExactDotUnit(accumulator, operand=operand, **options)


UNITS = [
    unit("e5m2", "e5m2"),
    unit("e6m9", "e5m2"),
    unit("e4m3fn", "e4m3fn"),
    unit("e4m3fn", "e4m3fn", overflow="saturate"),
    unit("e4m3fnuz", "e5m2fnuz"),
    unit("binary8p3se", "binary8p3se"),
    unit("binary8p4uf", "binary8p3se"),
    unit("binary8p4ue", "binary8p3se", rounding="to_odd", overflow="p3109_v3_2_1"),
    unit("dlfloat16", "dlfloat16"),
    unit("binary16", "binary16"),
    unit("binary16", "binary16", overflow="saturate_finite"),
    unit("bfloat16", "bfloat16"),
    unit("binary32", ("e4m3fn", "bfloat16")),
    unit("binary32", "binary32"),
    unit("binary64", "binary64"),
    unit("e5m2", "binary64"),
    unit("e11m52", "e5m2"),
    unit(LOW, "e5m2"),
    unit(FloatFormat(5, 6, lowest_binade="zero"), "e5m2"),
    unit("binary16", "e8m0fnu"),
    unit("q8.8", "q4.4"),
    unit("q4.4", "q4.4", overflow="wrap"),
    unit("q24.8", ("e4m3fn", "q4.0")),
    unit("uq4.4", "q4.4"),
    unit("q1.63", "q1.63"),
    unit("q64.0", "q64.0", overflow="wrap"),
    unit("q16.48", "binary64"),
    unit("q8.8", "binary64", overflow="wrap"),
    unit("binary32", "q16.16"),
    unit("e6m9", TERNARY),
    unit("q4.12", (TABLE, "e4m3fn")),
]


def words_of(u, shape, seed=5):
    return np.random.default_rng(seed).integers(0, 1 << 32, (*shape, 1, 2), dtype=np.uint32)


def expected(u, a, b, c=None, *, words=None, key=None, batch=0):
    """`reference.exact_dot` on arrays of codes; the OR of the flags besides."""
    out, raised = np.empty((a.shape[0], b.shape[1]), u.accumulator.storage_dtype), 0
    for m, n in np.ndindex(out.shape):
        out[m, n], flags = ref.exact_dot(
            a[m].tolist(), b[:, n].tolist(), operand=tuple(coded(f) for f in u.operand), accumulator=u.accumulator,
            rounding=u.rounding, overflow=u.overflow, stochastic_bits=u.stochastic_bits, key=key, batch=batch, m=m, n=n,
            c=None if c is None else int(c[m, n]), random_bits=None if words is None else int(words[m, n, 0, 1]),
            random=u.random,
        )  # fmt: skip
        raised |= int(flags)
    return out, raised


def run_definition(u, a, b, c=None, words=None):
    """(codes, whether a result had no code) of the engine on codes."""
    wide = [None if x is None else np.ascontiguousarray(x, np.uint64) for x in (a, b, c)]
    out = np.empty((a.shape[0], b.shape[1]), np.uint64)
    lost = definition_of(u).run(*wide, out, words, (0, 0, 0, 0), 0, 0, out.shape[0], 0, out.shape[1])
    return out.astype(u.accumulator.storage_dtype), lost


def compare(u, got, want, a, b, c=None):
    if not np.array_equal(got, want):
        m, n = (int(i) for i in np.argwhere(got != want)[0])
        raise AssertionError(
            f"{u}: [{m}, {n}] got {show(got[m, n], u.accumulator)}, want {show(want[m, n], u.accumulator)}; "
            f"a = {a[m].tolist()}, b = {b[:, n].tolist()}, c = {None if c is None else c[m, n]}"
        )


def codes_of(fmt, rng, shape):
    """Codes from the whole format: edges, and random ones."""
    if fmt.kind == "table":
        return sn.encode(sn.decode(rng.integers(0, 1 << fmt.bits, shape).astype(fmt.storage_dtype), fmt), "binary64")
    some = np.asarray(edge_codes(fmt, random.Random(3), 40), np.uint64)
    return rng.choice(some, shape).astype(fmt.storage_dtype)


@cases("mode", MODES)
@cases("u", UNITS, ids=str)
def test_the_definition_equals_the_reference(u, mode):
    u = sn.ExactDotUnit(u.accumulator, operand=u.operand, rounding=mode, overflow=u.overflow, stochastic_bits=9)
    rng = np.random.default_rng(MODES.index(mode))
    for k in (1, 2, 5):
        a, b = codes_of(u.operand[0], rng, (4, k)), codes_of(u.operand[1], rng, (k, 5))
        for c in (None, codes_of(u.accumulator, rng, (4, 5))):
            words = words_of(u, (4, 5)) if u.stochastic else None
            got, lost = run_definition(u, a, b, c, words)
            want, raised = expected(u, a, b, c, words=words)
            compare(u, got, want, a, b, c)
            if not u.accumulator.has_nan:
                assert lost == bool(raised & sn.Flags.INVALID)


@cases("u", UNITS, ids=str)
def test_sums_that_cancel(u):
    """Pairs of equal products of either sign around what is left: one small term, ties of it, nothing."""
    if not (u.operand[0].signed and u.operand[0].kind == "float" and u.operand[1].kind == "float"):
        pytest.skip("needs a negation")
    rng = np.random.default_rng(1)
    finite = [codes_of(f, rng, 400) for f in u.operand]
    finite = [c[[ref.decode(int(x), f).kind == "finite" for x in c]] for c, f in zip(finite, u.operand, strict=True)]
    for mode in ("nearest_even", "down", "to_odd"):
        v = sn.ExactDotUnit(u.accumulator, operand=u.operand, rounding=mode, overflow=u.overflow)
        half = rng.choice(finite[0], (6, 3))
        other = rng.choice(finite[1], (3, 7))
        a = np.concatenate(
            [half, half ^ half.dtype.type(1 << (u.operand[0].bits - 1)), rng.choice(finite[0], (6, 1))], 1
        )
        if u.operand[0].nan_codes == "negative_zero":
            a[:, 3:6] = np.where(half == 0, 0, a[:, 3:6])
        b = np.concatenate([other, other, rng.choice(finite[1], (1, 7))])
        for length in (6, 7):
            got, _ = run_definition(v, a[:, :length], b[:length])
            want, _ = expected(v, a[:, :length], b[:length])
            compare(v, got, want, a[:, :length], b[:length])


@cases("u", UNITS, ids=str)
def test_matmul_equals_the_reference(u, isa):
    rng = np.random.default_rng(2)

    def operand(fmt, shape):
        """(what matmul takes, its codes)"""
        if fmt.kind == "table" or fits(fmt, np.float64):
            x = middling(fmt, rng, shape)
            return x, sn.encode(np.asarray(x, np.float64), coded(fmt))
        codes = rng.integers(0, 1 << 62, shape, dtype=np.uint64) << np.uint64(2)
        return sn.Array(codes, fmt), codes

    def backwards(x, axis):
        codes = np.flip(x.codes if isinstance(x, sn.Array) else x, axis)
        return sn.Array(codes, x.format) if isinstance(x, sn.Array) else codes

    (a, a_codes), (b, b_codes) = operand(u.operand[0], (2, 3, 9)), operand(u.operand[1], (9, 4))
    got = as_codes(sn.matmul(a, b, u), u.accumulator)
    for i in range(2):
        want, _ = expected(u, a_codes[i], b_codes)
        compare(u, got[i], want, a_codes[i], b_codes)
    assert np.array_equal(got, as_codes(sn.matmul(a, b, u, threads=3), u.accumulator))
    reversed_k = sn.matmul(backwards(a, -1), backwards(b, 0), u)
    assert np.array_equal(got, as_codes(reversed_k, u.accumulator))


@cases("mode", [m for m in MODES if m.startswith("stochastic")])
@cases("r", [1, 12, 32])
@cases("pair", [("e6m9", "e5m2"), ("q4.4", "q4.4"), ("binary32", "binary32")])
def test_one_random_word_for_each_output(mode, r, pair, isa):
    u = unit(*pair, rounding=mode, stochastic_bits=r)
    rng = np.random.default_rng(3)
    a, b = middling(u.operand[0], rng, (2, 3, 9)), middling(u.operand[1], rng, (9, 5))
    codes = [sn.encode(np.asarray(x, np.float64), f) for x, f in zip((a, b), u.operand, strict=True)]
    got = as_codes(sn.matmul(a, b, u, key=(77, 5)), u.accumulator)
    want, _ = expected(u, codes[0][1], codes[1], key=(77, 5), batch=1)
    compare(u, got[1], want, codes[0][1], codes[1])
    words = np.array(
        [ref.random_words_matmul(77, 5, *index, 0, r, False) for index in np.ndindex(2, 3, 5)], np.uint32
    ).reshape(2, 3, 5, 1, 2)
    noisy = words | np.uint32(0xFFFFFFFF << r & 0xFFFFFFFF)
    for given in (words, noisy):
        assert np.array_equal(got, as_codes(sn.matmul(a, b, u, random_bits=given), u.accumulator))
    assert u.steps(9) == u.steps(1000) == 1
    with pytest.raises(ValueError, match="give key="):
        sn.matmul(a, b, u)


@cases("random", ["philox4x32-10/4", "philox4x32-7/2", "lfsr16x12", "lfsr12-d8fx3", "lfsr32@hart"])
def test_the_bits_of_a_source(random, isa):
    """The reference's, those that are given as words, and traces'; a part of a product has the whole's."""
    key = 77 if random.endswith("@hart") else (77, 5)
    for pair in (("e6m9", "e5m2"), ("q4.4", "q4.4"), ("binary32", "binary32")):
        u = unit(*pair, rounding="stochastic", stochastic_bits=8, random=random)
        assert f", random bits of {random}" in str(u)
        rng = np.random.default_rng(4)
        a, b = middling(u.operand[0], rng, (2, 3, 9)), middling(u.operand[1], rng, (9, 21))
        codes = [sn.encode(np.asarray(x, np.float64), f) for x, f in zip((a, b), u.operand, strict=True)]
        got = sn.matmul(a, b, u, key=key, threads=2)
        want, _ = expected(u, codes[0][1], codes[1], key=key, batch=1)
        compare(u, as_codes(got, u.accumulator)[1], want, codes[0][1], codes[1])
        words = sn.Stream(key).words(got.shape, u, k=9)
        assert np.array_equal(got, sn.matmul(a, b, u, random_bits=words))
        assert np.array_equal(got, sn.matmul(a, b, u, key=key, return_stats=True)[0])
        assert u.trace(a[0, 0], b[:, 0], key=key).result == got[0, 0, 0]
    with pytest.raises(ValueError, match=r"gives 8 bits per step .4 draws of a word of 32 bits."):
        unit("e6m9", "e5m2", rounding="stochastic", stochastic_bits=9, random="philox4x32-10/4")
    with pytest.raises(ValueError, match="numbers the elements of a matrix that is cast"):
        unit("e6m9", "e5m2", random="philox4x32-3@transformer_engine")


def test_bits_that_are_given():
    u = unit("e6m9", "e5m2", rounding="stochastic", stochastic_bits=8, random="given")
    rng = np.random.default_rng(5)
    a, b = middling(u.operand[0], rng, (3, 9)), middling(u.operand[1], rng, (9, 5))
    words = words_of(u, (3, 5))
    default = unit("e6m9", "e5m2", rounding="stochastic", stochastic_bits=8)
    want = sn.matmul(a, b, default, random_bits=words)
    assert np.array_equal(sn.matmul(a, b, u, random_bits=words), want)
    beside = np.ascontiguousarray(words[:, :, :, 1].transpose(0, 2, 1))  # (M, steps, N)
    assert np.array_equal(sn.matmul(a, b, u, random_bits=beside), want)
    assert np.array_equal(sn.matmul(a, b, u, random_bits=beside.astype(np.uint8)), want)
    with pytest.raises(ValueError, match="give them as random_bits="):
        sn.matmul(a, b, u, key=1)


def test_by_hand():
    big, tiny = np.float64(2.0**60), np.float64(2.0**-60)
    u = unit("binary32", "binary64")
    a = np.array([[big, 1.0, -big, tiny]])
    assert sn.matmul(a, np.ones((4, 1)), u) == np.float32(1.0)
    assert sn.matmul(a[:, [0, 2, 3]], np.ones((3, 1)), u) == np.float32(tiny)
    assert sn.matmul(a, np.ones((4, 1)), unit("binary32", "binary64", rounding="up")) == np.nextafter(
        np.float32(1), np.float32(2)
    )
    assert sn.matmul(a, np.ones((4, 1)), u, np.array([-1.0])) == np.float32(tiny)
    tie = np.array([[1.0, 2.0**-24, 2.0**-1074]])
    assert sn.matmul(tie[:, :2], np.ones((2, 1)), u) == 1
    assert sn.matmul(tie, np.ones((3, 1)), u) == np.nextafter(np.float32(1), np.float32(2))
    largest, smallest = np.finfo(np.float64).max, 2.0**-1074
    u = unit("binary64", "binary64")
    a = np.array([[largest, -largest, smallest]])
    assert sn.matmul(a, np.array([[largest], [largest], [1]]), u) == smallest
    assert sn.matmul(a, np.array([[largest], [largest], [smallest]]), u) == 0  # 2**-2148 rounds to 0
    assert sn.matmul(a[:, :1], np.array([[largest]]), u) == np.inf


def test_the_sign_of_a_zero_sum():
    minus, plus = np.float32([[-0.0, -0.0]]), np.float32([[0.0, -0.0]])
    ones = np.ones((2, 1), np.float32)

    def sign(a, b, c=None, rounding="nearest_even"):
        result = sn.matmul(a, b, unit("e5m2", "e5m2", rounding=rounding), c)
        assert result == 0
        return bool(np.signbit(result)[0, 0])

    assert not sign(minus, ones)  # the sum starts from +0
    assert sign(minus, ones, np.float32([-0.0]))
    assert not sign(plus, ones, np.float32([-0.0])) and not sign(plus, ones)
    assert not sign(np.float32([[1, -1]]), ones, np.float32([-0.0]))
    assert sign(np.float32([[1, -1]]), ones, rounding="down") and sign(plus, ones, rounding="down")
    assert sign(minus, ones, rounding="down") and not sign(np.float32([[0, 0]]), ones, rounding="down")
    nothing = np.zeros((1, 0), np.float32), np.zeros((0, 1), np.float32)
    assert sign(*nothing, np.float32([-0.0])) and not sign(*nothing, rounding="down")


def test_nan_and_infinities():
    inf, nan = np.inf, np.nan
    u = unit("e5m2", "e5m2")
    row, column = (lambda *x: np.float32([x])), (lambda *x: np.float32(x)[:, None])
    assert np.isnan(sn.matmul(row(inf, 1), column(0, 1), u))
    assert np.isnan(sn.matmul(row(inf, -inf), column(1, 1), u))
    assert np.isnan(sn.matmul(row(inf, 1), column(1, 1), u, row(-inf)))
    assert np.isnan(sn.matmul(row(nan, inf), column(1, 1), u))
    assert np.isnan(sn.matmul(row(1, 1), column(1, 1), u, row(nan)))
    assert sn.matmul(row(inf, -49152), column(1, 49152), u) == inf
    assert sn.matmul(row(inf, 1), column(-2, 1), u, row(1)) == -inf
    saturating = unit("e5m2", "e5m2", overflow="saturate")
    assert sn.matmul(row(inf, 1), column(-2, 1), saturating) == -57344
    assert np.isnan(sn.matmul(row(inf, -inf), column(1, 1), saturating))
    with pytest.raises(ValueError, match="NaN or infinite, and q4.4 has no code"):
        sn.matmul(row(inf, 1), column(1, 1), unit("q4.4", "e5m2"))


@pytest.mark.parametrize(
    "u, width",
    [
        (unit("e5m2", "e5m2"), 97),  # 2**-32 ... 2**32, 2**32 terms, a sign
        (unit("binary16", "binary16"), 113),
        (unit("binary32", "binary32"), 298 + 256 + 33),
        (unit("binary64", "binary64"), 4229),
        (unit("q8.8", "q4.4"), 48),  # 2**-8 ... 2**7 of C
        (unit("q1.15", "q1.15"), 63),
        (unit("binary32", "e5m2"), 149 + 128 + 33),  # C decides
        (unit("e5m2", TERNARY), 16 + 16 + 33),
    ],
    ids=str,
)
def test_the_width_of_the_accumulator(u, width):
    assert u.width == width and f"{width}-bit accumulator" in str(u) and u.words == -(-width // 64)


def test_the_accumulator_takes_the_largest_sums():
    """Sums of 2**32 terms cannot be run, but a register that starts 2**32 terms off zero can."""
    for u in UNITS:

        def most(f):
            if f.kind == "table":
                return Fraction(max(abs(f.min), abs(f.max)))
            return max(
                abs(Fraction(v))
                for v in sn.decode(edge_codes(f, random.Random(0), 0), f, object)
                if isinstance(v, Fraction) or np.isfinite(v)
            )

        highest = most(u.operand[0]) * most(u.operand[1]) * (2**32 - 1) + most(u.accumulator)
        assert highest <= Fraction(2) ** (u.bottom + u.width - 1), str(u)


def test_units_are_values():
    u = unit("e6m9", "e5m2", rounding="rne")
    assert u == unit("e6m9", ("e5m2", "e5m2")) and hash(u) == hash(unit("e6m9", "e5m2"))
    assert pickle.loads(pickle.dumps(u)) == u and pickle.loads(pickle.dumps(u)).width == u.width
    with pytest.raises(AttributeError):
        u.rounding = "up"
    assert u.result == u.c_format == format_of("e6m9") and not u.stochastic


@pytest.mark.parametrize(
    "message, arguments, options",
    [
        ("state operand=", ("e6m9",), {}),
        ("operand is one format or a pair, got 3", ("e6m9",), {"operand": ("e5m2",) * 3}),
        ("accumulator=e8m0fnu has no zero", ("e8m0fnu",), {"operand": "e5m2"}),
        ("accumulator must be .*, got the value table", (sn.CustomFormat.from_table([0, 1]),), {"operand": "e5m2"}),
        ("accumulator=e12m3 has 12 exponent bits.* at most 11: use a MadUnit", ("e12m3",), {"operand": "e5m2"}),
        ("operand=e15m48 has 15 exponent bits", ("e5m2",), {"operand": ("e5m2", "e15m48")}),
        ("unknown rounding mode 'even'", ("e6m9",), {"operand": "e5m2", "rounding": "even"}),
        ("stochastic_bits must be an integer from 1 to 32, got 33", ("e6m9",),
         {"operand": "e5m2", "stochastic_bits": 33}),
        ("overflow='wrap' is for fixed point", ("e6m9",), {"operand": "e5m2", "overflow": "wrap"}),
        ("wider than 5120 bits", (FloatFormat(11, 3, bias=10000),), {"operand": "e5m2"}),
    ],
)  # fmt: skip
def test_refusals(message, arguments, options):
    with pytest.raises(ValueError, match=message):
        sn.ExactDotUnit(*arguments, **options)


def test_the_reference_refuses():
    options = {"operand": "e5m2", "accumulator": "e5m2"}
    with pytest.raises(ValueError, match="equally long operands, got 1 and 2"):
        ref.exact_dot([0], [0, 0], **options)
    with pytest.raises(ValueError, match="needs random_bits"):
        ref.exact_dot([0], [0], **options, rounding="stochastic")
    with pytest.raises(ValueError, match="which e8m0fnu lacks"):
        ref.exact_dot([0], [0], operand="e5m2", accumulator="e8m0fnu")
    assert ref.exact_dot([], [], **options, c=0x80) == (0x80, 0) and ref.exact_dot([], [], **options) == (0, 0)


def test_a_planted_fault_is_caught():
    rng = np.random.default_rng(9)
    a, b = codes_of(format_of("e5m2"), rng, (6, 3)), codes_of(format_of("e5m2"), rng, (3, 7))
    got, _ = run_definition(unit("e5m2", "e5m2", rounding="nearest_away"), a, b)
    u = unit("e5m2", "e5m2")
    want, _ = expected(u, a, b)
    if np.array_equal(got, want):  # no tie among them
        got[0, 0] ^= 1
    with pytest.raises(AssertionError, match="got 0x.*want 0x"):
        compare(u, got, want, a, b)


def test_layouts_and_types():
    u = unit("binary64", "binary32")
    a = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    want = sn.matmul(a, a.T, u)
    assert want.dtype == np.float64 and np.array_equal(want, want.T)
    assert_same_bits(sn.matmul(a.astype(np.float64), np.asfortranarray(a.T), u), want)
    assert_same_bits(sn.matmul(sn.array(a, "binary32"), a.T, u), want)
    assert sn.dot(a[0], a[1], u) == want[0, 1]
    assert isinstance(FixedFormat(8, 56), FixedFormat) and carrier(u.operand[0]) == np.float32
    wide = sn.matmul(a, a.T, unit("q8.56", "binary32"))
    assert isinstance(wide, sn.Array)
    assert_same_bits(sn.encode(want, "q8.56") >> np.uint64(8), wide.codes >> np.uint64(8))


@cases("u", UNITS, ids=str)
def test_the_trace_ends_in_the_result(u):
    if not all(f.kind == "table" or fits(f, np.float64) for f in (*u.operand, u.accumulator)):
        pytest.skip("dot takes Arrays here")
    rng = np.random.default_rng(10)
    for mode in ("nearest_even", "down", "stochastic"):
        v = sn.ExactDotUnit(u.accumulator, operand=u.operand, rounding=mode, overflow=u.overflow, stochastic_bits=11)
        a, b = middling(u.operand[0], rng, 5), middling(u.operand[1], rng, 5)
        options = {"key": 3} if v.stochastic else {}
        for c in ((), (sn.quantize(np.float64(0.5), u.accumulator, overflow="saturate")[()],)):
            trace = v.trace(a, b, *c, **options)
            assert np.array_equal(trace.result, sn.dot(a, b, v, *c, **options), equal_nan=True)
            assert len(trace.steps) == 12 and trace.steps[-1].name == "rounding"
            products = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)]
            assert [s.exact for s in trace.steps[1:-1:2]] == [
                p if p else s.exact for p, s in zip(products, trace.steps[1:-1:2], strict=True)
            ]
            assert Fraction(trace.steps[-1].exact or 0) == sum(products) + Fraction(sum(c, 0.0))


def test_a_trace_by_hand():
    u = unit("e5m2", "e5m2")
    text = str(u.trace([8.0, 1.0, 1.0], [1.0, 1.0, 0.25]))
    assert (
        "sum + a * b  9" in text and "exact sum" in text and text.endswith("result: 10 = 0x49 in e5m2; flags: inexact")
    )
    assert u.trace(np.zeros(0), np.zeros(0), 2.0).result == 2 and u.trace(np.zeros(0), np.zeros(0)).result == 0
    assert u.trace([np.inf, 0.0], [1.0, 1.0]).steps[-1].decision == "special"


def test_bits_side_by_side_are_those_of_words():
    """Random bits of a step each, shape (M, steps, N), which the fast engine of exact sums does not take."""
    unit = sn.ExactDotUnit("e5m2", operand="e4m3fn", rounding="stochastic", stochastic_bits=8)
    a = np.float32([[1.125, 1.125, 1.0], [1.75, 0.5, 0.0625]])
    bits = np.arange(4, dtype=np.uint8).reshape(2, 1, 2) * 60
    words = np.repeat(bits.astype(np.uint32).transpose(0, 2, 1)[..., None], 2, -1)
    by_bits = sn.matmul(a, a.T, unit, random_bits=bits)
    assert np.array_equal(by_bits, sn.matmul(a, a.T, unit, random_bits=words))
    assert not np.array_equal(by_bits, sn.matmul(a, a.T, unit, random_bits=255 - bits))
