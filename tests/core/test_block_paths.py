"""BlockDotUnit's fast path against its definition, bit for bit."""

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.blocks import fast
from softnum.mac.products.blocks import matrices as block_matmul
from softnum.mac.products.blocks.fast import block_engine
from tests.support.block_units import FP4, FP8, INT8, SR, any_codes, block, key_of, operand, small, some_c
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import unit as mad

E5 = sn.BlockFormat("e5m2", "e8m0fnu", 32)

FAST = [
    *(block("binary32", name) for name in sn.formats.block_format_names()),
    block("binary16", "mxfp8_e4m3"),
    block("bfloat16", "mxfp8_e5m2", rounding="toward_zero"),
    block("e6m9", ("mxfp8_e4m3", "mxfp8_e5m2"), rounding="up"),
    block("binary32", "mxfp4", rounding="to_odd"),
    block("binary32", "mxint8", overflow="saturate"),
    block("q20.10", "mxint8"),
    block("e4m3fn", small("e3m2fn", "e4m3fn"), rounding="nearest_away"),
    block("binary32", small(FP4, "e5m2", 7), product="bfloat16"),
    block("bfloat16", "nvfp4", product="e4m3", product_rounding="down"),
    block("e6m9", "mxfp8_e4m3", **SR, stochastic_bits=7),
    block("e6m9", "nvfp4", **SR, product="binary16", stochastic_bits=9),
    block("e5m2", "mxfp6_e3m2", **SR, product="e5m2", stochastic_bits=20),
    block("binary32", sn.BlockFormat(FP8, "e8m0fnu", None)),
    block("binary32", small(FP4, sn.FloatFormat(8, 15, name="scales-of-16-bits"))),
    block("binary32", sn.BlockFormat(INT8, "uq4.4", 16)),
    block("binary32", "mxfp8_e4m3", inner=mad("binary32", FP8)),
    block("binary32", "mxfp4", inner=mad("binary16", FP4)),
    block("binary16", "mxfp8_e5m2", inner=mad("e6m9", "e5m2", chunk=8), product="binary32"),
    block("binary32", "mxint8", inner=mad("q16.12", INT8)),
    block("binary32", "mxfp8_e4m3", inner=sn.FusedDotUnit(32, 13, "binary32", operand=FP8, truncate_fraction=13)),
    block("binary32", "nvfp4", inner=sn.FusedDotUnit(16, 25, "binary32", operand=FP4)),
    block("e6m9", "mxfp6_e3m2", inner=sn.ExactDotUnit("bfloat16", operand="e3m2fn"), **SR, stochastic_bits=12),
]
SLOW = [
    block("binary32", "mxfp4", rounding="down"),
    block("binary32", "mxfp4", inner=mad("e6m9", FP4, **SR)),
    block("dlfloat16", "mxfp4"),
    block("binary64", "mxfp4"),
    block("e8m30", "nvfp4"),
]


def definition(a, b, u, c=None, **options):
    before = block_matmul.fast_product
    block_matmul.fast_product = lambda product, threads: None
    try:
        return sn.matmul(a, b, u, c, **options)
    finally:
        block_matmul.fast_product = before


def takes_the_fast_path(a, b, u, monkeypatch, **options):
    def never(*_):
        raise AssertionError("by definition")

    with monkeypatch.context() as patch:
        patch.setattr(block_matmul._Product, "by_definition", never)
        sn.matmul(a, b, u, **options)


def compare(a, b, u, c=None, **options):
    got = sn.matmul(a, b, u, c, threads=1, **key_of(u), **options)
    assert_same_bits(got, definition(a, b, u, c, **key_of(u), **options), str(u), a.shape, b.shape)
    return got


def test_the_plans():
    assert [str(u) for u in FAST if block_engine(u) is None] == []
    assert all(block_engine(u) is None for u in SLOW)
    assert {block_engine(u).how for u in FAST} == {"fma", "binary32", "general"}


@pytest.mark.parametrize("u", FAST, ids=str)
def test_the_fast_path_is_the_definition(u, isa, monkeypatch):
    rng = np.random.default_rng(1)
    size = u.block_size or 40
    for m, n, k in ((1, 1, 1), (3, 33, size), (13, 7, size + 1), (7, 65, 2 * size + 5), (25, 31, 3 * size)):
        spread = int(rng.integers(1, 12))
        a = operand(rng, u.operand[0], (m, k), -1, spread)
        b = operand(rng, u.operand[1], (k, n), -2, spread)
        takes_the_fast_path(a, b, u, monkeypatch, **key_of(u))
        for c in (None, some_c(rng, u, (m, n))):
            compare(a, b, u, c)


@cases("u", FAST, ids=str)
def test_any_codes(u, isa):
    rng = np.random.default_rng(2)
    size = u.block_size or 9
    for _ in range(2):
        a = any_codes(rng, u.operand[0], (9, size + 2), -1)
        b = any_codes(rng, u.operand[1], (size + 2, 37), -2)
        if u.result.has_nan:
            compare(a, b, u)


def scaled(x, exponents, fmt, axis):
    """The array, its scales replaced by powers of two."""
    return sn.BlockArray(x.codes, sn.encode(2.0**exponents, fmt.scale), fmt, axis, x.tensor_scale)


@cases("name", ["mxfp4", "mxfp8_e4m3", "mxint8", "mxfp8_e5m2"])
def test_scales_at_the_ends(name, isa):
    """Products of scales beyond binary32, sums among its subnormals and its largest numbers."""
    rng = np.random.default_rng(3)
    fmt = sn.format(name)
    u = block("binary32", fmt)
    for low, high in ((-127, 127), (-80, -70), (55, 63), (-76, -66), (-127, -120)):
        a = operand(rng, fmt, (9, 70), -1)
        b = operand(rng, fmt, (70, 35), -2)
        a = scaled(a, rng.integers(low, high + 1, a.scales.shape), fmt, -1)
        b = scaled(b, rng.integers(low, high + 1, b.scales.shape), fmt, -2)
        got = compare(a, b, u)
        assert got.size
    tiny = rng.choice([0, 1, -1], (9, 35)) * 2.0**-149
    compare(a, b, u, tiny.astype(np.float32))


def test_sums_that_take_two_pieces(isa, monkeypatch):
    """e5m2 from its subnormals to its largest number: 69 bits."""
    rng = np.random.default_rng(4)
    largest, least = 0x7B, 1
    for u in (
        block("binary32", E5), block("binary16", E5, rounding="toward_zero"), block("e6m9", E5, **SR, stochastic_bits=5)
    ):  # fmt: skip
        for _ in range(4):
            codes = rng.integers(0, 0x7C, (2, 13, 70)) | rng.choice([0, 0x80], (2, 13, 70))
            codes[rng.random(codes.shape) < 0.3] = largest
            codes[rng.random(codes.shape) < 0.2] = least
            codes[rng.random(codes.shape) < 0.2] = least | 0x80
            scales = rng.integers(120, 134, (2, 13, 3)).astype(np.uint8)
            a = sn.BlockArray(codes[0].astype(np.uint8), scales[0], E5)
            b = sn.BlockArray(codes[1].astype(np.uint8).T, scales[1].T, E5, 0)
            takes_the_fast_path(a, b, u, monkeypatch, **key_of(u))
            compare(a, b, u)
            compare(a, b, u, some_c(rng, u, (13, 13)))
            # what cancels but for the last bits
            x = np.concatenate([codes[0][:, :32], codes[0][:, :32] ^ 0x80, codes[0][:, :6]], axis=1).astype(np.uint8)
            y = np.concatenate([codes[1][:, :32], codes[1][:, :32], codes[1][:, :6]], axis=1).astype(np.uint8)
            ones = np.full((13, 3), 127, np.uint8)
            near = sn.BlockArray(x, ones, E5), sn.BlockArray(y.T, ones.T, E5, 0)
            compare(*near, u)
            compare(*near, u, some_c(rng, u, (13, 13)))
    infinite = codes[0].astype(np.uint8)
    infinite[2, 5] = 0x7C
    compare(sn.BlockArray(infinite, scales[0], E5), b, block("binary32", E5))


def test_sums_that_cancel(isa):
    rng = np.random.default_rng(5)
    for u in (FAST[0], FAST[4], FAST[6], FAST[7], FAST[13]):
        a = operand(rng, u.operand[0], (7, 64), -1)
        flip = 1 << (u.operand[0].element.bits - 1)
        codes = a.codes.copy()
        size = u.block_size
        codes[:, size : 2 * size] = codes[:, :size] ^ np.array(flip, codes.dtype)
        scales = a.scales.copy()
        scales[:, 1] = scales[:, 0]
        a = sn.BlockArray(codes, scales, a.format, -1, a.tensor_scale)
        b = operand(rng, u.operand[1], (64, 9), -2)
        codes, scales = b.codes.copy(), b.scales.copy()
        codes[size : 2 * size], scales[1] = codes[:size], scales[0]
        b = sn.BlockArray(codes, scales, b.format, -2, b.tensor_scale)
        compare(a, b, u)
        for zero in (0.0, -0.0):
            compare(a, b, u, np.full((7, 9), zero, np.float32))


def test_scales_of_several_bits_whose_product_is_no_binary32_number(isa):
    """16 bits at 2**-147: the fma of binary32 would round them before the sum does."""
    rng = np.random.default_rng(12)
    fmt = sn.BlockFormat("e2m1fn", "bfloat16", 32)
    for low, high in ((-72, -75), (-70, -60), (60, 64), (-90, 20)):
        scales = [
            sn.encode(
                sn.quantize(rng.uniform(1, 2, shape).astype(np.float32) * np.float32(2.0**e), "bfloat16"), "bfloat16"
            )
            for e, shape in ((low, (4, 2)), (high, (2, 5)))
        ]
        a = sn.BlockArray(rng.integers(0, 16, (4, 64)).astype(np.uint8), scales[0], fmt, -1)
        b = sn.BlockArray(rng.integers(0, 16, (64, 5)).astype(np.uint8), scales[1], fmt, -2)
        compare(a, b, sn.BlockDotUnit("binary32", operand=fmt))


def test_what_has_no_code_is_an_error():
    u = block("q20.10", "mxfp4")
    a = sn.array([[1.0, 2.0, np.nan]], "mxfp4", axis=-1)
    assert block_engine(u) is not None
    with pytest.raises(ValueError, match="q20.10 has no code for it"):
        sn.matmul(a, a.T, u)


def test_tensor_scales(isa):
    """72 bits of acc * (Ta * Tb), and C beside them."""
    rng = np.random.default_rng(6)
    for u in (block("binary32", "nvfp4"), block("bfloat16", "nvfp4"), block("e6m9", "nvfp4", **SR, stochastic_bits=8)):
        for _ in range(6):
            a, b = operand(rng, u.operand[0], (5, 40), -1), operand(rng, u.operand[1], (40, 33), -2)
            scale = np.float32(rng.random(2) * 2.0 ** rng.integers(-70, 60, 2))
            a = sn.BlockArray(a.codes, a.scales, a.format, -1, scale[0])
            b = sn.BlockArray(b.codes, b.scales, b.format, -2, scale[1])
            got = compare(a, b, u)
            compare(a, b, u, sn.quantize(-got * np.float32(0.999), u.result, overflow="saturate"))
            compare(a, b, u, some_c(rng, u, (5, 33)))


@pytest.mark.parametrize(
    "name, factors, start",
    [("mxfp8_e4m3", ((2.0**8, 2.0**-9), (2.0**8, 2.0**-9)), 2.0**40),  # 59 bits, in one piece
     ("mxfp8_e5m2", ((2.0**15, 2.0**-16), (2.0**8, 2.0**-16)), 2.0**47)],  # 80 bits, in two
)  # fmt: skip
def test_beside_a_tie(name, factors, start, isa):
    """Half a last place of C, and a bit that binary64 does not hold beside it."""
    fmt = sn.format(name)
    u = block("binary32", fmt)
    x, y = (np.zeros((1, 32)) for _ in range(2))
    x[0, :2], y[0, :2] = factors
    one = np.uint8([[127]])
    a = sn.BlockArray(sn.encode(x, fmt.element), one, fmt)
    for sign, want in ((1, start + 2 * x[0, 0] * y[0, 0]), (-1, start)):
        y[0, 1] = sign * factors[1][1]
        b = sn.BlockArray(sn.encode(y, fmt.element).T, one, fmt, 0)
        assert compare(a, b, u, np.full((1, 1), start, np.float32)) == want
        assert compare(a, b, u, np.full((1, 1), -start, np.float32)) > -start


NEAR = (15473995, 12873627, 12726551, -1681), (15709965, 12835901, 16169563, 227)


@cases("total, first, second, beside", [(x[i], x[(i + 1) % 3], x[(i + 2) % 3], x[3]) for x in NEAR for i in (0, 1, 2)])
def test_tensor_scales_beside_a_tie(total, first, second, beside, isa):
    """Three integers of 24 bits whose product of 72 lies beside a tie by no more than its last bits."""
    u = block("binary32", "nvfp4")
    product = total * first * second
    assert product % 2**48 == 2**47 + beside
    codes = np.zeros((1, 96), np.uint8)
    codes[0, ::16] = 2  # 1.0 in each of six blocks: total, a digit of four bits in each
    digits = [(total >> 4 * j & 15, 4 * j - 10) for j in range(6)]
    powers = np.clip([weight for _, weight in digits], -9, 8)
    x = sn.encode(
        [[digit * 2.0 ** (weight - power) for (digit, weight), power in zip(digits, powers, strict=True)]], "e4m3fn"
    )
    y = sn.encode(2.0 ** powers[None].astype(float), "e4m3fn")
    assert sn.decode(x, "e4m3fn") @ sn.decode(y, "e4m3fn").T == total * 2.0**-10
    a = sn.BlockArray(codes, x, "nvfp4", -1, first * 2.0**-23)
    b = sn.BlockArray(codes.T, y.T, "nvfp4", 0, second * 2.0**-23)
    want = ((product >> 48) + (beside > 0)) * 2.0**-8
    assert compare(a, b, u) == want
    assert compare(a, b, u, np.zeros((1, 1), np.float32)) == want


@cases("u", FAST, ids=str)
def test_threads_change_nothing(u):
    rng = np.random.default_rng(7)
    k = 2 * (u.block_size or 40) + 3
    a, b = operand(rng, u.operand[0], (2, 11, k), -1), operand(rng, u.operand[1], (k, 150), -2)
    want = sn.matmul(a, b, u, threads=1, **key_of(u))
    for threads in (2, 3, 7):
        assert_same_bits(sn.matmul(a, b, u, threads=threads, **key_of(u)), want)


def test_planted_faults_are_noticed(monkeypatch):
    from softnum.mac.products.blocks import fast as block_fast

    rng = np.random.default_rng(8)
    u = FAST[0]
    a, b = operand(rng, u.operand[0], (5, 70), -1), operand(rng, u.operand[1], (70, 9), -2)
    a = scaled(a, rng.integers(-127, 127, a.scales.shape), a.format, -1)
    monkeypatch.setattr(block_fast, "_is_narrow", lambda *_: True)  # 41 bits are no 24
    with pytest.raises(AssertionError):
        for _ in range(20):
            compare(operand(rng, u.operand[0], (5, 70), -1, 9), b, u)
    monkeypatch.undo()
    u = FAST[4]
    a, b = operand(rng, u.operand[0], (5, 70), -1), operand(rng, u.operand[1], (70, 9), -2)
    a, b = (scaled(x, np.full(x.scales.shape, e), x.format, axis) for x, e, axis in ((a, -70, -1), (b, -80, -2)))
    monkeypatch.setattr(block_fast, "_how", lambda *_: "fma")
    with pytest.raises(AssertionError):
        compare(a, b, u)


def test_sums_of_blocks_that_binary32_does_not_hold(isa):
    """512 products of 784, then 512 of 2^-8: a running sum in binary32 keeps none of these."""
    fmt = small("e3m2fn", size=1024)
    values = np.repeat([28.0, 0.0625], 512)
    a, b = sn.array(values[None], fmt, axis=-1), sn.array(np.repeat(values[:, None], 33, axis=1), fmt, axis=-2)
    for accumulator in ("binary32", "binary64"):
        got = compare(a, b, block(accumulator, fmt))
        assert np.all(got == 512 * 784 + 2)


def test_scaled_sums_that_binary64_does_not_hold(isa):
    """A sum of 41 bits times 255 * 255 is a tie of binary32 and 2^-57 of it: rounded in binary64 first, a tie."""
    fmt = small("e5m2", "bfloat16", 62)
    u = block("binary32", fmt, inner=mad("e8m40", "e5m2"))
    total = ((1 << 32) + 1) * pow(65025, -1, 1 << 33) % (1 << 33)
    total += next(t << 33 for t in range(128, 256) if not ((total + (t << 33)) * 65025) >> 33 & 1)
    assert total.bit_length() == 41
    bits = [i for i in range(41) if total >> i & 1]
    a, b = np.zeros((1, 62)), np.zeros((62, 33))
    for k, i in enumerate(bits):  # 2^(i - 24), of two factors that e5m2 has
        a[0, k] = 2.0 ** ((i - 24) // 2)
        b[k] = 2.0 ** (i - 24 - (i - 24) // 2)
    scales = sn.encode(np.full((1, 33), 255.0), "bfloat16")
    a = sn.BlockArray(sn.encode(a, "e5m2"), scales[:, :1], fmt, -1)
    b = sn.BlockArray(sn.encode(b, "e5m2"), scales, fmt, -2)
    up = ((total * 65025 >> 33) + 1) << 33
    assert np.all(compare(a, b, u) == up * 2.0**-24)


@cases("operand", ["mxfp8_e4m3", "mxfp4", "nvfp4"])
@cases("rounding", ["nearest_even", "stochastic"])
@cases("shape", [(7, 5), (2, 7, 5), (23, 40)])
def test_rows_that_are_decoded_in_parts(operand, rounding, shape, monkeypatch):
    """The bits do not depend on how many rows are decoded at once."""
    rng = np.random.default_rng(len(shape))
    *batch, m, n = shape
    a, b = (rng.standard_normal((*batch, *sizes)) for sizes in ((m, 70), (70, n)))
    a, b = sn.array(a, operand, axis=-1), sn.array(b, operand, axis=-2)
    unit = sn.BlockDotUnit("e6m9", operand=operand, rounding=rounding)
    c, key = sn.quantize(rng.standard_normal((m, n)), "e6m9"), (7, 1) if rounding == "stochastic" else None
    want = sn.matmul(a, b, unit, c, key=key)
    monkeypatch.setattr(fast, "_AT_ONCE", 140)
    monkeypatch.setattr(fast, "_LEAST_ROWS", 1)
    for threads in (1, 2):
        np.testing.assert_array_equal(sn.matmul(a, b, unit, c, key=key, threads=threads), want)
