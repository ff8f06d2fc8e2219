"""BlockDotUnit: matmul and traces against a plain loop of the reference, on every instruction set and thread count."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softnum as sn
from softnum import reference as ref
from softnum.inspect.trace import steps_of
from softnum.mac.products.blocks import matrices
from softnum.reference.random_words import random_words_matmul
from tests.support.block_units import FP4, FP8, INT8, SR, any_codes, block, key_of, operand, small, some_c
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import as_codes
from tests.support.public import PUBLIC

EXACT = [
    *(block("binary32", name) for name in sn.formats.block_format_names()),
    block("binary16", small(FP8)),
    block("e6m9", (small(FP8), small("e5m2"))),
    block("bfloat16", small("e5m2", "e5m2")),
    block("q16.16", small(INT8), overflow="wrap"),
    block("q8.8", small(FP4)),
    block("e4m3fn", small("e3m2fn", "e4m3fn")),
    block("binary64", small(FP8, "binary32")),
    block("binary32", "nvfp4", rounding="toward_zero"),
    block("binary32", sn.BlockFormat(FP8, "e8m0fnu", None), rounding="down"),
    block("e5m2", small(FP8), rounding="to_odd", overflow="saturate"),
    block("binary32", small("uq1.7", "uq4.4")),
    block("binary16", small("bfloat16")),
    block("binary32", small(FP8), product="e5m2"),
    block("bfloat16", "nvfp4", product="e4m3", product_rounding="away_from_zero"),
    block("e6m9", small(FP8), **SR, stochastic_bits=7),
    block("e6m9", small(FP8), **SR, product="e5m2", stochastic_bits=9),
    block("e6m9", small(FP8), **SR, product="e5m2", stochastic_bits=20),
    block("e6m9", "nvfp4", **SR, product="binary16", product_rounding="up"),
    block("e6m9", "nvfp4", **SR, stochastic_bits=8, product="e5m2", random="philox4x32-7/2"),
    block("e6m9", small(FP8), **SR, stochastic_bits=8, product="e5m2", random="lfsr16x12"),
    block("e6m9", small(FP8), **SR, stochastic_bits=12, random="lfsr32@hart"),
]
INNER = [
    block("binary32", "mxfp8_e4m3", inner=sn.MadUnit("binary32", operand=FP8)),
    block("binary32", "mxfp4", inner=sn.MadUnit("binary16", operand=FP4)),
    block("binary32", "mxint8", inner=sn.MadUnit("q32.0", operand=(INT8, INT8))),
    block("binary32", "mxfp8_e4m3", inner=sn.FusedDotUnit(32, 13, "binary32", operand=FP8, truncate_fraction=13)),
    block("binary32", "nvfp4", inner=sn.FusedDotUnit(16, 35, "binary32", operand=FP4)),
    block("binary32", "mxfp6_e3m2", inner=sn.ExactDotUnit("bfloat16", operand="e3m2fn")),
    block("binary32", small("bfloat16"), inner=sn.FmaChainUnit("binary32", operand="bfloat16", k_order=(1, 0))),
    block("e6m9", small("e5m2"), inner=sn.MadUnit("e6m9", operand="e5m2", lanes=3, reduction="tree")),
    block("e6m9", small("e5m2"), inner=sn.MadUnit("e6m9", operand="e5m2", chunk=2), product="e5m10"),
    block("bfloat16", (small("e5m2"), small(FP8)), inner=sn.MadUnit("e6m9", operand=("e5m2", FP8), product="e5m2")),
    block("binary32", small(FP8), inner=sn.MadUnit("e4m3fn", operand=FP8, **SR, stochastic_bits=6)),
    block("e6m9", small(FP8), inner=sn.MadUnit("e6m3", operand=FP8, lanes=2, chunk=3, **SR, stochastic_bits=12), **SR),
    block("e6m9", "nvfp4", inner=sn.ExactDotUnit("e4m3", operand=FP4, **SR), **SR, stochastic_bits=5, product="e5m2"),
    block("e6m9", small("e5m2"), inner=sn.MadUnit("e6m3", operand="e5m2", product="e5m2", **SR, stochastic_bits=20)),
    block(
        "e6m9",
        small(FP8),
        **SR,
        stochastic_bits=16,
        random="lfsr32x3",
        product="e5m2",
        inner=sn.MadUnit("e6m3", operand=FP8, lanes=2, chunk=3, **SR, stochastic_bits=12, random="lfsr32x3"),
    ),
    block(
        "e6m9",
        "nvfp4",
        random="philox4x32-10/4",
        inner=sn.ExactDotUnit("e4m3", operand=FP4, **SR, stochastic_bits=8, random="philox4x32-10/4"),
    ),
    block("q8.8", small("q1.3"), inner=sn.MadUnit("q8.8", operand="q1.3", overflow="wrap"), overflow="wrap"),
]
ALL = [*EXACT, *INNER]


def reference(a, b, u, c=None, key=None, random_bits=None, batch=0):
    """One matrix product, output by output."""
    m, n = len(a), b.shape[1]
    out = np.empty((m, n), u.result.storage_dtype)
    c_codes = None if c is None else sn.encode(np.broadcast_to(c, (m, n)), u.result)
    tensor = None
    if u.tensor_scales:
        tensor = tuple(Fraction(1) if x.tensor_scale is None else Fraction(float(x.tensor_scale)) for x in (a, b))
    seed, stream = key if isinstance(key, tuple) else (key, 0)
    for i, j in np.ndindex(m, n):

        def words(step, r, both, i=i, j=j):
            if random_bits is not None:
                return tuple(int(w) for w in random_bits[i, j, step])
            return random_words_matmul(seed, stream, batch, i, j, step, r, both, u.random)

        def inner(x, y, steps, words=words):
            v = u.inner
            own = (lambda s: words(steps[s], v.stochastic_bits, v.two_roundings)) if v.stochastic else None
            return steps_of(v, x, y, None, own)[1]

        out[i, j], _ = ref.block_dot(
            a.codes[i].tolist(), a.scales[i].tolist(), b.codes[:, j].tolist(), b.scales[:, j].tolist(),
            operand=u.operand, accumulator=u.accumulator, inner=None if u.inner is None else inner,
            inner_format=None if u.inner is None else u.inner.result,
            inner_steps=lambda length: u.inner.steps(length) if u.inner and u.inner.stochastic else 0,
            product=u.product, rounding=u.rounding, product_rounding=u.product_rounding, overflow=u.overflow,
            stochastic_bits=u.stochastic_bits, tensor_scales=tensor, c=None if c is None else int(c_codes[i, j]),
            words=lambda s, words=words: words(s, u.stochastic_bits, u.two_roundings),
        )  # fmt: skip
    return out


def check(a, b, u, c=None, **options):
    got = sn.matmul(a, b, u, c, **options, **key_of(u))
    want = reference(a, b, u, c, **key_of(u))
    codes = as_codes(got, u.result)
    if not np.array_equal(codes, want):
        values = sn.decode(want, u.result)
        bad = (codes != want) & ~(np.isnan(values) & np.isnan(np.asarray(got, float)))
        if bad.any():
            at = tuple(np.argwhere(bad)[0])
            raise AssertionError(f"{u}: {at} is {codes[at]:#x}, want {want[at]:#x}")
    return got


@cases("u", ALL, ids=str)
def test_matmul_is_the_reference(u):
    rng = np.random.default_rng(1)
    size = u.block_size or 16
    for m, n, k in ((1, 1, 1), (2, 3, size), (3, 2, size + 1), (2, 2, 2 * size - 1), (2, 5, 2 * size + 3)):
        a, b = operand(rng, u.operand[0], (m, k), -1), operand(rng, u.operand[1], (k, n), -2)
        for c in (None, some_c(rng, u, (m, n))):
            check(a, b, u, c)


@cases("u", [u for u in ALL if u.result.has_nan and (u.product is None or u.product.has_nan)], ids=str)
def test_any_codes(u):
    if u.inner is not None and not all(f is None or f.has_nan for f in u.inner.rounded_to):
        return
    rng = np.random.default_rng(2)
    size = u.block_size or 7
    for _ in range(3):
        a = any_codes(rng, u.operand[0], (4, size + 2), -1)
        b = any_codes(rng, u.operand[1], (size + 2, 4), -2)
        check(a, b, u)


@cases("u", ALL, ids=str)
def test_instruction_sets_and_threads_change_nothing(u, isa):
    rng = np.random.default_rng(3)
    size = u.block_size or 40
    a = operand(rng, u.operand[0], (2, 9, 2 * size + 3), -1)
    b = operand(rng, u.operand[1], (2 * size + 3, 70), -2)
    want = None
    for threads in (1, 2, 3, 7):
        got = sn.matmul(a, b, u, threads=threads, **key_of(u))
        got = got if isinstance(got, np.ndarray) else got.codes
        want = got if want is None else want
        assert got.tobytes() == want.tobytes()
    part = sn.matmul(a[0, :2], b[:, :3], u, **key_of(u))  # the words depend on the output alone
    assert_same_bits(np.ascontiguousarray(part), np.ascontiguousarray(want[0, :2, :3]))


@pytest.mark.parametrize("u", [u for u in ALL if u.stochastic], ids=str)
def test_random_words(u):
    """The words of the key, given as random_bits, do the same; batches count in the counter."""
    rng = np.random.default_rng(4)
    k = (u.block_size or 8) + 3
    a, b = operand(rng, u.operand[0], (3, 2, k), -1), operand(rng, u.operand[1], (k, 3), -2)
    c = some_c(rng, u, (2, 3))
    key = key_of(u)["key"]
    got = sn.matmul(a, b, u, c, key=key)
    for batch in range(3):
        want = reference(a[batch], b, u, c, key=key, batch=batch)
        assert np.array_equal(as_codes(got[batch], u.result), want)
    bits = rng.integers(0, 1 << 32, (3, 2, 3, u.steps(k), 2), dtype=np.uint32)
    got = sn.matmul(a, b, u, c, random_bits=bits)
    for batch in range(3):
        assert np.array_equal(as_codes(got[batch], u.result), reference(a[batch], b, u, c, random_bits=bits[batch]))
    with pytest.raises(ValueError, match="rounds stochastically"):
        sn.matmul(a, b, u)
    with pytest.raises(ValueError, match=r"random_bits must be uint32 of shape \(3, 2, 3, "):
        sn.matmul(a, b, u, random_bits=bits[..., :-1, :])


def test_numbering():
    """Products, what an inner unit adds beyond them, additions of blocks, tensor scales."""
    inner = sn.MadUnit("e6m3", operand=FP4, lanes=2, rounding="sr")
    u = block("e6m9", sn.BlockFormat(FP4, "e4m3fn", 4, tensor_scale="binary32"), inner=inner, rounding="sr")
    # blocks of 4, 4 and 1 products: one addition of lanes each
    assert u.numbering(9) == ([([0, 1, 2, 3, 9], 10), ([4, 5, 6, 7, 11], 12), ([8, 13], 14)], 15)
    assert u.steps(9) == 16 and u.steps(0) == 0
    for v in ALL:
        for k in (1, 4, 5, 6, 31, 32, 33, 100):
            assert v.steps(k) == v.numbering(k)[1] + v.tensor_scales
    plain = block("e6m9", sn.BlockFormat(FP4, "e4m3fn", 4), rounding="sr")
    assert plain.numbering(9) == ([([], 9), ([], 10), ([], 11)], 12) and plain.steps(9) == 12


def test_worked_by_hand():
    """2**24 and two ones: each step that rounds shows."""
    fmt = sn.BlockFormat("e2m1fn", "e8m0fnu", 2)
    a = sn.BlockArray(np.uint8([[2, 0, 2, 2]]), np.uint8([[127 + 24, 127]]), fmt)  # 2**24, 0 | 1, 1
    b = sn.BlockArray(np.uint8([[2], [2], [2], [2]]), np.uint8([[127], [127]]), fmt, 0)
    assert sn.matmul(a, b, block("binary32", fmt)) == 2.0**24 + 2  # the block's sum is exact
    single = sn.BlockFormat("e2m1fn", "e8m0fnu", 1)
    scales = np.uint8([[127 + 24, 127, 127, 127]])
    x = sn.BlockArray(a.codes, scales, single)
    y = sn.BlockArray(b.codes, np.full((4, 1), 127, np.uint8), single, 0)
    assert sn.matmul(x, y, block("binary32", single)) == 2.0**24  # one after the other they vanish
    # 1.5 * 1.5 * 4 = 9 as a sum of a block in e4m3 is 9; scaled by 3 (1.5 * 2) it is 27, in e4m3 28
    nv = sn.BlockFormat("e2m1fn", "e4m3fn", 4)
    x = sn.BlockArray(np.uint8([[3] * 4]), sn.encode([[1.5]], "e4m3fn"), nv)
    y = sn.BlockArray(np.uint8([[3]] * 4), sn.encode([[2.0]], "e4m3fn"), nv, 0)
    assert sn.matmul(x, y, block("binary32", nv)) == 27
    assert sn.matmul(x, y, block("binary32", nv, product="e4m3")) == 28
    assert sn.matmul(x, y, block("binary32", nv, inner=sn.MadUnit("e3m1", operand=FP4))) == 24  # 2.25 -> 2, ..., 8
    # tensor scales come last, and C after them
    t = sn.BlockFormat("e2m1fn", "e4m3fn", 4, tensor_scale="binary32")
    x = sn.BlockArray(x.codes, x.scales, t, -1, 0.5)
    y = sn.BlockArray(y.codes, y.scales, t, 0, 0.25)
    assert sn.matmul(x, y, block("binary32", t)) == 27 / 8
    assert sn.matmul(x, y, block("e4m3", t)) == 3.5  # 27 -> 28, then 28 / 8
    assert sn.matmul(x, y, block("binary32", t), np.float32(1)) == 1 + 27 / 8


def test_special_scales():
    fmt = small(FP8, "e5m2", 2)
    one, nan, inf, zero = (int(sn.encode(v, "e5m2")) for v in (1.0, np.nan, np.inf, 0.0))
    ones = np.full((1, 4), 0x38, np.uint8)
    y = sn.BlockArray(ones.T, np.full((2, 1), one, np.uint8), fmt, 0)
    for inner in (None, sn.MadUnit("binary32", operand=FP8)):
        u = block("binary32", fmt, inner=inner)
        for scale, want in ((nan, np.nan), (inf, np.inf), (zero, 2.0), (inf | 0x80, -np.inf), (one | 0x80, 0.0)):
            x = sn.BlockArray(ones, np.uint8([[one, scale]]), fmt)
            assert np.array_equal(sn.matmul(x, y, u), [[want]], equal_nan=True)
        x = sn.BlockArray(ones * 0, np.uint8([[one, inf]]), fmt)  # 0 * inf
        assert np.isnan(sn.matmul(x, y, u))
    u = block("binary32", "mxfp8_e4m3")
    x = sn.array([[1.0, np.inf]], "mxfp8_e4m3", axis=-1)
    assert np.isnan(sn.matmul(x, x.T, u))
    fixed = block("q8.8", "mxfp8_e4m3")
    with pytest.raises(ValueError, match="q8.8 has no code for it"):
        sn.matmul(x, x.T, fixed)


@pytest.mark.parametrize("u", [EXACT[0], EXACT[6], INNER[0], INNER[12]], ids=str)
def test_interface(u):
    rng = np.random.default_rng(5)
    fa, fb = u.operand
    a, b = operand(rng, fa, (2, 1, 3, 35), -1), operand(rng, fb, (4, 35, 2), -2)
    c = some_c(rng, u, (3, 2))
    want = sn.matmul(a, b, u, c, **key_of(u))
    assert want.shape == (2, 4, 3, 2) and want.dtype == np.float32
    out = np.empty_like(want)
    assert sn.matmul(a, b, u, c, out=out, **key_of(u)) is out
    assert_same_bits(out, want)
    turned = np.empty((4, 2, 3, 2), np.float32).transpose(1, 0, 2, 3)
    assert_same_bits(np.ascontiguousarray(sn.matmul(a, b, u, c, out=turned, **key_of(u))), want)
    x, y = operand(rng, fa, (35,), 0), operand(rng, fb, (35,), 0)
    one = sn.dot(x, y, u, **key_of(u))
    matrix = sn.matmul(
        sn.BlockArray(x.codes[None], x.scales[None], fa, -1, x.tensor_scale),
        sn.BlockArray(y.codes[:, None], y.scales[:, None], fb, -2, y.tensor_scale), u, **key_of(u),
    )  # fmt: skip
    assert one == matrix[0, 0] and np.ndim(one) == 0
    for m, n, k in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        e, f = operand(rng, fa, (m, k), -1), operand(rng, fb, (k, n), -2)
        assert_same_bits(sn.matmul(e, f, u, **key_of(u)), np.zeros((m, n), np.float32))
        if not k:
            start = np.float32([[1, 2, 0.5], [-0.0, 3, 0]])
            assert_same_bits(sn.matmul(e, f, u, start, **key_of(u)), start)


@cases("u", ALL, ids=str)
def test_traces(u):
    rng = np.random.default_rng(6)
    k = 2 * (u.block_size or 5) + 1
    a, b = operand(rng, u.operand[0], (k,), 0), operand(rng, u.operand[1], (k,), 0)
    for c in (None, np.float32(1.5)):
        trace = u.trace(a, b, c, **key_of(u))
        assert np.array_equal(trace.result, sn.dot(a, b, u, c, **key_of(u)), equal_nan=True)
        assert str(trace).startswith(str(u)) and len(trace.to_dicts()) == len(trace.steps)
        added = [s for s in trace.steps if s.name == "sum" and "scaled" in s.formula]
        assert len(added) == -(-k // (u.block_size or k))
        assert (trace.steps[-1].name == "tensor scales") == u.tensor_scales
    ks = [s.where["k"] for s in trace.steps if s.name == "exact product"]
    if not isinstance(u.inner, sn.FmaChainUnit):
        assert sorted(ks) == list(range(k))


@cases("u", ALL, ids=str)
def test_repr_pickle_hash(u):
    again = eval(repr(u), PUBLIC)
    assert again == u and hash(again) == hash(u) and pickle.loads(pickle.dumps(u)) == u
    assert str(u.operand[0]) in str(u)


E4 = sn.MadUnit("binary32", operand=FP8)


@cases(
    "make, error, message",
    [
        (lambda: sn.BlockDotUnit("binary32"), ValueError, "state operand="),
        (lambda: block("binary32", "e4m3fn"), ValueError, "e4m3fn is no block format"),
        (lambda: block("binary32", ("mxfp4",) * 3), ValueError, "a pair, got 3"),
        (lambda: block("binary32", ("mxfp4", "nvfp4")), ValueError, "do not meet"),
        (lambda: block("mxfp4", "mxfp4"), ValueError, "block format"),
        (lambda: block("e8m0fnu", "mxfp4"), ValueError, "accumulator=e8m0fnu has no zero"),
        (lambda: block("binary32", "mxfp4", product_rounding="up"), ValueError, "needs product="),
        (lambda: block("binary32", "mxfp4", rounding="nearest"), ValueError, "unknown rounding mode"),
        (lambda: block("binary32", "mxfp4", overflow="wrap"), ValueError, "wrap"),
        (lambda: block("binary32", "mxfp4", stochastic_bits=0), ValueError, "stochastic_bits"),
        (lambda: block("binary32", "mxfp4", inner=E4), ValueError, "inner multiplies e4m3fn x e4m3fn"),
        (lambda: block("binary32", "mxfp8_e4m3", inner="exact"), ValueError, "inner must be a unit"),
        (lambda: block("binary32", "mxfp8_e4m3", inner=block("binary32", "mxfp8_e4m3")), ValueError, "on elements"),
        (lambda: block("binary32", small("binary64", size=2)), ValueError, "more than 64 bits; state inner="),
        (lambda: block("binary32", small("e15m2")), ValueError, "an exact sum would take"),
        (lambda: block("binary32", small(FP4, "e8m40")), ValueError, "have more than 64 bits"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_operands_refused():
    u = block("binary32", "mxfp4")
    x = np.ones((2, 40), np.float32)
    a, b = sn.array(x, "mxfp4", axis=1), sn.array(x.T, "mxfp4", axis=0)
    for make, error, message in (
        (lambda: sn.matmul(x, b, u), TypeError, r"a must be a BlockArray .*softnum.array\(a, 'mxfp4_e2m1', axis=-1\)"),
        (lambda: sn.matmul(a, x.T, u), TypeError, r"softnum.array\(b, 'mxfp4_e2m1', axis=-2\)"),
        (lambda: sn.matmul(a, b, sn.MadUnit("binary32", operand=FP4)), TypeError, "under a BlockDotUnit, got MadUnit"),
        (lambda: sn.matmul(sn.array(x, "mxfp4", axis=0), b, u), ValueError, "must be blocked along K, axis -1"),
        (lambda: sn.matmul(sn.array(x, "nvfp4"), b, u), ValueError, "a is a BlockArray of nvfp4"),
        (lambda: sn.matmul(a, b[:, 0], u), ValueError, "for vectors use dot"),
        (lambda: sn.matmul(a, sn.array(np.ones((41, 2)), "mxfp4", axis=0), u), ValueError, "K = 40 columns, b has 41"),
        (lambda: sn.matmul(a, b, u, np.ones((3, 3), np.float32)), ValueError, "does not broadcast"),
        (lambda: sn.matmul(a, b, u, np.float32([[0.1]]).astype(np.float64) + 0.01), ValueError, "no value of binary32"),
        (lambda: sn.dot(a, b, u), ValueError, "dot takes two vectors"),
        (lambda: u.trace(a, b), ValueError, "trace takes two vectors"),
        (lambda: u.trace(x[0], x[0]), TypeError, "a must be a BlockArray"),
        (
            lambda: sn.conv2d(np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 2, 2), np.float32), u),
            TypeError,
            "does not support units of block formats",
        ),
        (lambda: sn.arrays.pack(a), TypeError, "are packed separately"),
        (lambda: sn.sum(x, u), TypeError, "the unit must be one of"),
    ):
        with pytest.raises(error, match=message):
            make()


@given(
    st.sampled_from(["mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "mxint8"]),
    st.integers(1, 70),
    st.integers(-40, 40),
    st.integers(0, 2**32 - 1),
)
def test_properties(name, k, shift, seed):
    """Scales are factors, and a product of transposed matrices is the transposed product."""
    rng = np.random.default_rng(seed)
    u = block("binary32", name)
    a, b = operand(rng, u.operand[0], (3, k), -1), operand(rng, u.operand[1], (k, 4), -2)
    got = sn.matmul(a, b, u)
    assert_same_bits(np.ascontiguousarray(sn.matmul(b.T, a.T, u).T), got)
    moved = sn.BlockArray(a.codes, (a.scales.astype(int) + shift).clip(1, 254).astype(np.uint8), a.format)
    if ((a.scales.astype(int) + shift) == moved.scales).all():
        assert_same_bits(sn.matmul(moved, b, u), np.ldexp(got, shift))
    exact = (a.decode(object) @ b.decode(object)).astype(np.float64)
    blocks = -(-k // 32)
    largest = np.abs(a.decode()) @ np.abs(b.decode())
    assert (np.abs(got - exact) <= blocks * 2.0**-24 * largest).all()


def test_a_planted_fault_is_noticed(monkeypatch):
    """A scale one binade off, and a block counted with its neighbour's step."""
    u = EXACT[0]
    rng = np.random.default_rng(7)
    a, b = operand(rng, u.operand[0], (2, 70), -1), operand(rng, u.operand[1], (70, 2), -2)
    wrong = sn.BlockArray(a.codes, a.scales + np.uint8(1) * (np.arange(3) == 2), a.format)
    got = sn.matmul(wrong, b, u)
    assert not np.array_equal(sn.encode(got, "binary32"), reference(a, b, u))
    s = next(v for v in EXACT if v.stochastic)
    right = sn.BlockDotUnit.numbering
    monkeypatch.setattr(matrices, "fast_product", lambda product, threads: None)
    monkeypatch.setattr(
        sn.BlockDotUnit, "numbering", lambda self, k: ([(i, t + 1) for i, t in right(self, k)[0]], right(self, k)[1])
    )
    a, b = operand(rng, s.operand[0], (8, 40), -1), operand(rng, s.operand[1], (40, 8), -2)
    with pytest.raises(AssertionError):
        check(a, b, s)


@cases("threads", [1, 3])
def test_many_products_are_each_of_them(threads):
    rng = np.random.default_rng(5)
    unit = sn.unit("ocp_mxfp8_e4m3")
    values = [rng.normal(size=shape) for shape in ((3, 2, 7, 70), (3, 2, 70, 19))]
    a, b = (sn.array(x, f, axis=axis) for x, f, axis in zip(values, unit.operand, (-1, -2), strict=True))
    c = rng.normal(size=(3, 2, 7, 19)).astype(np.float32)
    for start in (None, c):
        whole = sn.matmul(a, b, unit, start, threads=threads)
        for i in np.ndindex(3, 2):
            one = sn.matmul(a[i], b[i], unit, None if start is None else start[i], threads=1)
            assert_same_bits(whole[i], one)
