"""Block formats: encoding and decoding against the reference, worked examples, and what is refused."""

import copy
import pickle
import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softnum as sn
from softnum import reference as ref
from softnum.arrays.codecs import blocks as block_codes
from softnum.formats import FloatFormat, tile_scales, untile_scales
from softnum.formats.blocks import SCALE_RULES
from tests.support.cases import cases
from tests.support.public import PUBLIC

NAMED = sn.formats.block_format_names()
MX = [name for name in NAMED if name.startswith("mx")]
OTHERS = [
    sn.BlockFormat("q1.3", "e8m0fnu", 4),
    sn.BlockFormat("q1.15", "e8m0fnu", None),
    sn.BlockFormat("q3.2", FloatFormat(5, 0, signed=False, specials="fn", has_zero=False, lowest_binade="normal"), 3),
    sn.BlockFormat(FloatFormat(1, 4, specials="none"), "e8m0fnu", 8),
    sn.BlockFormat("e4m3fn", "binary32", 16),
    sn.BlockFormat("e2m1fn", "e5m2", 16),
    sn.BlockFormat("e5m2fnuz", "e4m3", 5),
    sn.BlockFormat("binary16", "e8m0fnu", 7),
    sn.BlockFormat("uq1.7", "uq8.4", 6),
    sn.BlockFormat("q2.6", "e5m2", 16, tensor_scale="bfloat16"),
    sn.BlockFormat("e2m1fn", "e8m0fnu", 16, tensor_scale="binary32"),
]
ALL = [*(sn.format(name) for name in NAMED), *OTHERS]


def rules_of(fmt):
    return ["max", "rceil"] if fmt.tensor_scale is not None else list(SCALE_RULES)


def reference(x, fmt, axis, words=None, tensor_scale=None, **options):
    """encode by the reference, block after block."""
    moved = np.moveaxis(x, axis, -1)
    rows = moved.reshape(-1, moved.shape[-1]) if x.size else moved.reshape(0, moved.shape[-1])
    w = None if words is None else np.moveaxis(words, axis, -1).reshape(rows.shape)
    size = fmt.block_size or max(moved.shape[-1], 1)
    starts = range(0, rows.shape[1], size)
    tensor = 1
    if fmt.tensor_scale is not None:
        if tensor_scale is None:
            whole = [row[s : s + size].tolist() for row in rows for s in starts]
            finite = [v for block in whole if np.isfinite(block).all() for v in block]
            tensor = ref.tensor_scale(finite, fmt)
        else:
            tensor = Fraction(float(tensor_scale))
    codes = np.zeros(rows.shape, fmt.element.storage_dtype)
    scales = np.zeros((len(rows), len(starts)), fmt.scale.storage_dtype)
    for i, row in enumerate(rows):
        for j, s in enumerate(starts):
            part = slice(s, s + size)
            random_bits = None if w is None else w[i, part].tolist()
            codes[i, part], scales[i, j] = ref.encode_block(
                row[part].tolist(), fmt, tensor_scale=tensor, random_bits=random_bits, **options
            )
    shape = moved.shape[:-1]
    codes = np.moveaxis(codes.reshape(moved.shape), -1, axis)
    scales = np.moveaxis(scales.reshape(*shape, len(starts)), -1, axis)
    return (codes, scales) if fmt.tensor_scale is None else (codes, scales, tensor)


def check(x, fmt, axis=-1, **options):
    got = sn.encode(x, fmt, axis=axis, **options)
    want = reference(x, fmt, axis, **options)
    assert len(got) == len(want)
    for name, g, w in zip(("codes", "scales", "tensor scale"), got, want, strict=False):
        if name == "tensor scale":
            assert Fraction(float(g)) == w and g.dtype == np.float32
        else:
            assert g.dtype == w.dtype and g.shape == w.shape, (name, g.shape, w.shape)
            if not np.array_equal(g, w):
                at = tuple(np.argwhere(g != w)[0])
                raise AssertionError(f"{fmt} {options}: {name}{at} is {g[at]:#x}, want {w[at]:#x}")
    return got


def hard_values(fmt, rng, shape, dtype=np.float64):
    """Values around powers of two and ties of the element's grid, of many sizes; zeros."""
    digits = fmt.element.bits
    count = int(np.prod(shape))
    significands = rng.integers(1 << digits, 2 << digits, count) / float(1 << digits)
    nudge = rng.choice([0, 0, 0, 2.0**-20, -(2.0**-20)], count)
    x = rng.choice([-1.0, 1.0], count) * (significands + nudge) * 2.0 ** rng.integers(-6, 7, count)
    powers = rng.random(count) < 0.2
    x[powers] = np.sign(x[powers]) * 2.0 ** rng.integers(-6, 7, powers.sum())
    x[rng.random(count) < 0.15] = 0
    x[rng.random(count) < 0.05] = -0.0
    x = x.reshape(shape) * 2.0 ** rng.integers(-20, 20)
    if not fmt.element.signed:
        x = np.abs(x)
    return x.astype(dtype)


@cases("fmt", ALL, ids=str)
def test_encode_is_the_reference(fmt):
    rng = np.random.default_rng(1)
    for rule in [None, *rules_of(fmt)]:
        for shape, axis in (((3, 50), -1), ((37, 2), 0), ((2, 19, 2), 1)):
            for dtype in (np.float64, np.float32):
                check(hard_values(fmt, rng, shape, dtype), fmt, axis, scale_rule=rule)


MODES = ["nearest_away", "toward_zero", "up", "down", "to_odd", "away_from_zero", "nearest_zero"]


@pytest.mark.parametrize("fmt", [ALL[0], ALL[1], ALL[4], ALL[5], ALL[6], OTHERS[4], OTHERS[8]], ids=str)
def test_modes_and_overflow_rules(fmt):
    rng = np.random.default_rng(2)
    x = hard_values(fmt, rng, (4, 40), np.float32)
    for mode in MODES:
        for overflow in ("saturate", "wrap" if fmt.element.kind == "fixed" else "infinity"):
            if fmt.element.has_nan or overflow != "infinity":
                check(x, fmt, rounding=mode, overflow=overflow)


@cases("fmt", [ALL[0], ALL[4], ALL[5], ALL[6], OTHERS[0]], ids=str)
@cases("r", [1, 7, 32])
def test_stochastic(fmt, r):
    rng = np.random.default_rng(3)
    for shape, axis in (((3, 45), -1), ((45, 3), 0)):
        x = hard_values(fmt, rng, shape, np.float32)
        words = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
        options = {"rounding": "stochastic", "stochastic_bits": r}
        got = sn.encode(x, fmt, axis=axis, random_bits=words, **options)
        want = reference(x, fmt, axis, words, **options)
        assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])
        key = (9, 4)
        words = np.array([ref.random_word_elementwise(*key, i) for i in range(x.size)]).reshape(shape)
        want = reference(x, fmt, axis, words, **options)
        got = sn.encode(x, fmt, axis=axis, key=key, **options)
        assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])


def test_worked_by_hand():
    """OCP MX v1.0 clause 6.3: X = 2**(floor(log2 amax) - emax), elements clamped to the largest."""
    x = [1.0, -0.75, 0.3, 7.0]  # floor(log2 7) = 2 = emax of e2m1: X = 1; 0.3 -> 0.5, 0.75 -> 1 (a tie), 7 -> 6
    codes, scales = sn.encode(x, "mxfp4_e2m1")
    assert scales.tolist() == [127] and codes.tolist() == [2, 0b1010, 1, 7]
    codes, scales = sn.encode([448.0, 480.0, 1.0], "mxfp8_e4m3")  # emax 8: X = 1; 480 saturates
    assert scales.tolist() == [127] and codes.tolist() == [0x7E, 0x7E, 0x38]
    codes, scales = sn.encode([512.0, 1.0], "mxfp8_e4m3")  # X = 2
    assert scales.tolist() == [128] and codes.tolist() == [0x78, 0x30]
    codes, scales = sn.encode([57344.0 * 2, 65536.0], "mxfp8_e5m2")  # emax 15
    assert scales.tolist() == [128] and codes.tolist() == [0x7B, 0x78]
    codes, scales = sn.encode([28.0, 31.0], "mxfp6_e3m2")  # emax 4
    assert scales.tolist() == [127] and codes.tolist() == [0x1F, 0x1F]
    codes, scales = sn.encode([7.5, -0.125], "mxfp6_e2m3")  # emax 2
    assert scales.tolist() == [127] and codes.tolist() == [0x1F, 0x21]
    codes, scales = sn.encode([1.0, -1.99, 1.99, 0.5], "mxint8")  # -1.99 * 64 = -127.36
    assert scales.tolist() == [127] and codes.tolist() == [64, 256 - 127, 127, 32]


def test_the_lowest_integer():
    """OCP MX clause 5.3.4: two's complement, 2**-6 the last place; -2 may be left out."""
    x = [-1.999, 1.999]
    assert sn.encode(x, "mxint8")[0].tolist() == [0x80, 0x7F]
    assert sn.encode(x, "mxint8", symmetric=True)[0].tolist() == [0x81, 0x7F]
    assert sn.decode((np.uint8([0x80]), np.uint8([127])), "mxint8").tolist() == [-2.0]
    assert sn.quantize(x, "mxint8", symmetric=True).tolist() == [-127 / 64, 127 / 64]
    with pytest.raises(ValueError, match="symmetric=True is defined for elements of signed fixed point; those of"):
        sn.encode(x, "mxfp4", symmetric=True)


@pytest.mark.parametrize(
    "amax, floor, ceil, even, nearest, rceil, largest",
    [  # e2m1: E = 2, M = 6, two digits
        (4.0, 0, 0, 0, 0, 0, -1),
        (6.0, 0, 1, 0, 1, 0, 0),
        (5.99, 0, 1, 0, 0, 0, 0),
        (6.01, 0, 1, 0, 1, 1, 0),
        (7.0, 0, 1, 1, 1, 1, 0),
        (6.99, 0, 1, 0, 1, 1, 0),
        (8.0, 1, 1, 1, 1, 1, 0),
        (9.0, 1, 2, 1, 1, 1, 1),  # 9 / 6 = 1.5: the even code is 2 ** 1, 128
        (2.0**-130, -127, -127, -127, -127, -127, -127),
    ],
)
def test_scale_rules(amax, floor, ceil, even, nearest, rceil, largest):
    want = dict(floor=floor, ceil=ceil, even=even, nearest=nearest, rceil=rceil, max=largest)
    got = {rule: int(sn.encode([amax, 0.0], "mxfp4", scale_rule=rule)[1][0]) - 127 for rule in want}
    assert got == want


def test_just_below_a_power_of_two():
    """Where floor(log2(x)) in floating point is one too large."""
    below = np.nextafter(np.float64(8), 0)
    assert sn.encode([below], "mxfp4")[1].tolist() == [127]
    assert sn.encode([np.nextafter(np.float32(8), np.float32(0))], "mxfp4")[1].tolist() == [127]
    assert sn.encode([8.0], "mxfp4")[1].tolist() == [128]


def test_scales_are_clamped_at_both_ends():
    for name in MX:
        fmt = sn.format(name)
        for rule in SCALE_RULES:
            check(np.array([[2.0**-149, 3 * 2.0**-149], [2.0**-126, 2.0**-1074]]), fmt, scale_rule=rule)
            huge = np.array([[2.0**1000, -(2.0**1023)], [2.0**127, 1.5 * 2.0**127]])
            _, scales = check(huge, fmt, scale_rule=rule)
            assert scales[0] == [254]
    codes, scales = sn.encode(np.array([2.0**1023, 1.0]), "mxfp8_e4m3")
    assert scales.tolist() == [254] and codes.tolist() == [0x7E, 0x00]
    # the quotient lies below binary64's subnormals, and counts where the mode looks at it
    codes, scales = sn.encode(np.array([2.0**1023, 2.0**-1074]), "mxfp8_e4m3", rounding="up")
    assert codes.tolist() == [0x7E, 0x01]


@cases("fmt", ALL, ids=str)
def test_zeros_and_specials(fmt):
    x = np.zeros((3, 40))
    got = check(x, fmt)
    smallest = ref.decode(int(got[1].flat[0]), fmt.scale).fraction
    assert smallest == min(
        v.fraction
        for c in (range(1 << fmt.scale.bits) if fmt.scale.bits <= 16 else range(2))
        if (v := ref.decode(c, fmt.scale)).kind == "finite" and v.fraction > 0
    )
    if fmt.tensor_scale is not None:
        assert got[2] == 1
    x = np.ones((3, 40))
    x[0, 3], x[1, 39], x[2, 20] = np.inf, np.nan, -np.inf if fmt.element.signed else np.inf
    if not fmt.scale.has_nan:
        with pytest.raises(ValueError, match="cannot encode NaN"):
            sn.encode(x, fmt)
        return
    got = check(x, fmt)
    values = sn.decode(got, fmt, axis=-1)
    size = fmt.block_size or 40
    for row, column in ((0, 3), (1, 39), (2, 20)):
        bad = np.arange(40) // size == column // size
        assert np.array_equal(np.isnan(values[row]), bad)


@cases("fmt", ALL, ids=str)
def test_decode_is_the_reference(fmt):
    rng = random.Random(4)
    n, size = 23, fmt.block_size or 23
    codes = np.array([[rng.randrange(1 << fmt.element.bits) for _ in range(n)] for _ in range(2)])
    codes = codes.astype(fmt.element.storage_dtype)
    count = -(-n // size)
    scales = np.array([[rng.randrange(1 << fmt.scale.bits) for _ in range(count)] for _ in range(2)])
    scales = scales.astype(fmt.scale.storage_dtype)
    scales[0, 0] = fmt.scale.nan_code if fmt.scale.has_nan else 0
    tensor = () if fmt.tensor_scale is None else (0.375,)
    got = sn.decode((codes, scales, *tensor), fmt, object)
    for i, j in np.ndindex(codes.shape):
        (want,) = ref.decode_block(
            [int(codes[i, j])], int(scales[i, j // size]), fmt, tensor_scale=Fraction(*tensor) if tensor else 1
        )
        if want.kind == "nan":
            assert got[i, j] != got[i, j]
        elif want.kind == "inf":
            assert got[i, j] == (-1) ** want.sign * float("inf")
        else:
            assert got[i, j] == want.fraction
    values = sn.decode((codes, scales, *tensor), fmt)
    assert all(float(g) == v or v != v for g, v in zip(got.flat, values.flat, strict=True))


@cases("fmt", ALL, ids=str)
def test_round_trip(fmt):
    """What was quantised stays, under the rule that keeps the scale."""
    rng = np.random.default_rng(5)
    x = hard_values(fmt, rng, (3, 50))
    options = {} if fmt.tensor_scale is None else {"tensor_scale": 2.0**-7}
    once = sn.quantize(x, fmt, **options)
    assert once.dtype == x.dtype
    again = sn.quantize(once, fmt, **options)
    floor = fmt.scale.kind == "float" and fmt.scale.mantissa_bits == 0 and fmt.tensor_scale is None
    if floor:  # amax may round to a power of two, and the scale doubles; but then nothing else changes in a float
        third = sn.quantize(again, fmt, **options)
        assert np.array_equal(again, third)
    if fmt.scale.precision < 20 if fmt.scale.kind == "float" else True:
        assert sn.quantize(x.astype(np.float32), fmt, **options).dtype == np.float32


@pytest.mark.parametrize("fmt", ALL[:8], ids=str)
def test_any_axis_and_strides(fmt):
    rng = np.random.default_rng(6)
    x = hard_values(fmt, rng, (4, 35, 3), np.float32)
    want = sn.encode(np.ascontiguousarray(np.moveaxis(x, 1, -1)), fmt)
    for got in (
        sn.encode(x, fmt, axis=1),
        sn.encode(np.asfortranarray(x), fmt, axis=-2),
        sn.encode(x[::-1][::-1], fmt, axis=1, threads=3),
        sn.encode(np.repeat(x, 2, axis=2)[:, :, ::2], fmt, axis=1),
    ):
        assert np.array_equal(np.moveaxis(got[0], 1, -1), want[0])
        assert np.array_equal(np.moveaxis(got[1], 1, -1), want[1])
    back = sn.decode(sn.encode(x, fmt, axis=1), fmt, axis=1)
    assert np.array_equal(back, sn.quantize(x.astype(np.float64), fmt, axis=1))


def test_empty_arrays():
    for fmt in ALL:
        for shape, axis, scales in (((0,), 0, (0,)), ((2, 0), 1, (2, 0)), ((0, 33), 1, None), ((33, 0), 0, None)):
            got = sn.encode(np.zeros(shape), fmt, axis=axis)
            assert got[0].shape == shape and (scales is None or got[1].shape == scales)
            assert sn.decode(got, fmt, axis=axis).shape == shape
            assert sn.quantize(np.zeros(shape, np.float32), fmt, axis=axis).shape == shape


def test_threads_change_nothing():
    x = np.random.default_rng(7).standard_normal((64, 4096)).astype(np.float32)
    for name in NAMED:
        one = sn.encode(x, name, threads=1, rounding="sr", key=3)
        for threads in (2, 3, 7):
            assert all(map(np.array_equal, one, sn.encode(x, name, threads=threads, rounding="sr", key=3)))


def lanes_of_float32(fmt, rng):
    """Every rule and several modes, of float32 numbers, of the same in float64, and both by the general way."""
    for rule in rules_of(fmt):
        for rounding in ("nearest_even", "nearest_away", "toward_zero", "stochastic", "stochastic_floor"):
            options = {"scale_rule": rule, "rounding": rounding}
            if rounding.startswith("stochastic"):
                options["key"] = 5
            for shape, axis in (((3, 70), 1), ((2, 33, 5), 1), ((64, 3), 0), ((2, 37, 70), 1)):
                x = np.ldexp(rng.standard_normal(shape), rng.integers(-20, 20, shape)).astype(np.float32)
                x.flat[:5] = [0.0, -0.0, 1e-45, -3e-39, 2e38]
                x[-1] = 0
                got = sn.encode(x, fmt, axis=axis, **options)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(block_codes, "_narrow", lambda *_: False)
                    want = sn.encode(x, fmt, axis=axis, **options)
                wide = sn.encode(x.astype(np.float64), fmt, axis=axis, **options)
                for one, two, other in zip(got, wide, want, strict=True):
                    assert np.array_equal(one, other) and np.array_equal(two, other), (rule, rounding, shape)


@cases("fmt", ALL, ids=str)
def test_float32s_way_gives_what_the_general_one_gives(fmt):
    lanes_of_float32(fmt, np.random.default_rng(8))


def test_a_planted_fault_of_float32s_way_is_noticed(monkeypatch):
    right = block_codes._scaled
    monkeypatch.setattr(block_codes, "_scaled", lambda *given: (right(*given)[0], right(*given)[1] + 1))
    with pytest.raises(AssertionError):
        lanes_of_float32(sn.format("mxfp4"), np.random.default_rng(8))


def test_inputs_of_other_types():
    x = [1.5, -3.0, 100.0]
    want = sn.encode(x, "mxfp8_e4m3")
    for given_ in (
        np.float16(x), np.array(x, ml_dtypes.bfloat16), np.array(x, object), [Fraction(3, 2), -3, 100],
    ):  # fmt: skip
        assert all(map(np.array_equal, sn.encode(given_, "mxfp8_e4m3"), want))
    assert all(map(np.array_equal, sn.encode([2, -3], "mxint8"), sn.encode([2.0, -3.0], "mxint8")))
    assert sn.quantize(np.float16(x), "mxfp8_e4m3").dtype == np.float16
    with pytest.raises(ValueError, match="not exact in float64"):
        sn.encode([Fraction(1, 3)], "mxfp4")
    with pytest.raises(TypeError, match="arrays of numbers"):
        sn.encode(["1"], "mxfp4")


# -- witnesses --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MX)
def test_gfloat(name):
    """gfloat's rule is floor, by floor(log2(amax)) in floating point: right away from powers of two."""
    gfloat = pytest.importorskip("gfloat")
    from gfloat.block import compute_scale_amax, quantize_block
    from gfloat.formats import all_block_formats

    rng = np.random.default_rng(8)
    fmt = sn.format(name)
    (info,) = (i for i in all_block_formats if i.name == name)
    for _ in range(20):
        x = rng.standard_normal(32) * 2.0 ** rng.integers(-30, 30)
        got = sn.quantize(x, fmt)
        assert np.array_equal(got, quantize_block(info, x, compute_scale_amax))
        codes, scales = sn.encode(x, fmt)
        assert np.array_equal(list(gfloat.decode_block(info, [int(scales[0]), *codes.tolist()])), got)


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("mxfp8_e4m3", "float8_e4m3fn"), ("mxfp8_e5m2", "float8_e5m2"), ("mxfp4_e2m1", "float4_e2m1fn"),
        ("mxfp6_e3m2", "float6_e3m2fn"), ("mxfp6_e2m3", "float6_e2m3fn"),
    ],
)  # fmt: skip
def test_ml_dtypes(name, dtype):
    """ml_dtypes rounds elements, once they are scaled and clamped; the scales' meaning is its float8_e8m0fnu."""
    x = np.random.default_rng(9).standard_normal((8, 64)).astype(np.float32)
    fmt = sn.format(name)
    codes, scales = sn.encode(x, name)
    power = np.repeat(scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float32), 32, axis=1)
    scaled = np.clip(x / power, -np.float32(fmt.element.max), np.float32(fmt.element.max))
    assert np.array_equal(codes.view(np.uint8), scaled.astype(getattr(ml_dtypes, dtype)).view(np.uint8))


def test_nvfp4_recipe():
    """arXiv 2509.25149: with exact steps where the recipe rounds reciprocals, and its scales on friendly numbers."""
    x = np.zeros((2, 32), np.float32)
    x[0, 0], x[0, 16], x[1, 0] = 2688.0, 6.0, 0.001  # amax = 6 * 448: the tensor's scale is 1
    codes, scales, tensor = sn.encode(x, "nvfp4")
    assert tensor == 1 and sn.decode(scales, "e4m3fn").tolist() == [[448, 1], [2.0**-9, 2.0**-9]]
    assert codes[0, 0] == 7 and codes[0, 16] == 7 and codes[1, 0] == 1  # 0.001 / 2**-9 = 0.512
    assert sn.quantize(x, "nvfp4")[1, 0] == np.float32(0.5 * 2.0**-9)
    codes, scales, tensor = sn.encode(x, "nvfp4", tensor_scale=0.5)
    assert tensor == 0.5 and sn.decode(scales, "e4m3fn")[0].tolist() == [448, 2]
    y = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    codes, scales, tensor = sn.encode(y, "nvfp4")
    assert abs(float(tensor) - np.abs(y).max() / 2688) <= np.spacing(tensor) / 2


# -- formats ----------------------------------------------------------------------------------------------------------
def test_names_and_facts():
    assert sn.format("MXFP4") == sn.format("mxfp4_e2m1") == sn.BlockFormat("e2m1fn", "e8m0fnu", 32)
    facts = {
        "mxfp8_e4m3": ("e4m3fn", 448 * 2.0**127), "mxfp8_e5m2": ("e5m2", 57344 * 2.0**127),
        "mxfp6_e3m2": ("e3m2fn", 28 * 2.0**127), "mxfp6_e2m3": ("e2m3fn", 7.5 * 2.0**127),
        "mxfp4_e2m1": ("e2m1fn", 6 * 2.0**127), "mxint8": ("q2.6", 127 / 64 * 2.0**127),
    }  # fmt: skip
    for name, (element, largest) in facts.items():
        fmt = sn.format(name)
        assert fmt.element == sn.format(element) and fmt.max == largest and fmt.block_size == 32
        assert fmt.scale == sn.format("e8m0fnu") and fmt.tensor_scale is None
    nv = sn.format("nvfp4")
    assert (str(nv.element), str(nv.scale), nv.block_size, str(nv.tensor_scale)) == ("e2m1fn", "e4m3fn", 16, "binary32")
    assert nv.bits_per_value == 4.5 and sn.format("mxfp6_e2m3").bits_per_value == 6.25
    assert sn.format("mxint8").min == -2 * 2.0**127 and sn.format("mxint8").smallest == 2.0**-133


@cases("fmt", ALL, ids=str)
def test_formats_are_values(fmt):
    assert eval(repr(fmt), PUBLIC) == fmt and hash(eval(repr(fmt), PUBLIC)) == hash(fmt)
    assert pickle.loads(pickle.dumps(fmt)) == fmt and copy.copy(fmt) == fmt and str(fmt) == fmt.name
    assert pickle.loads(pickle.dumps(fmt)).name == fmt.name
    assert fmt != sn.BlockFormat(fmt.element, fmt.scale, 31, tensor_scale=fmt.tensor_scale)


@cases(
    "make, message",
    [
        (lambda: sn.BlockFormat("e2m1fn", "e8m0fnu", 0), "block_size must lie in 1..2147483647, got 0"),
        (lambda: sn.BlockFormat("e8m0fnu", "e8m0fnu", 4), "element=e8m0fnu has no zero"),
        (lambda: sn.BlockFormat("e5m2", "e15m2", 4), "not exact in binary64"),
        (lambda: sn.BlockFormat("e5m2", sn.CustomFormat.from_table([0.0, 1.0]), 4), "scale must be a float or fixed"),
        (lambda: sn.BlockFormat("e5m2", "binary64", 4, tensor_scale="binary32"), "are not exact in binary64"),
        (lambda: sn.BlockFormat("e5m2", "e4m3fn", 4, tensor_scale="binary64"), "exact in binary32"),
        (lambda: sn.BlockFormat("e5m2x", "e4m3fn", 4), "unknown format"),
        (lambda: sn.format("mxfp5"), "unknown block format 'mxfp5'"),
        (lambda: sn.MadUnit("binary32", operand="mxfp4"), "block format"),
        (lambda: sn.Array([1], "mxfp8_e4m3"), "block format"),
        (lambda: sn.encode([1.0], "mxfp4", scale_rule="round"), "unknown scale rule 'round'"),
        (lambda: sn.encode([1.0], "nvfp4", scale_rule="floor"), "not defined with a tensor scale"),
        (lambda: sn.encode([1.0], "mxfp4", tensor_scale=1.0), "has no tensor scale"),
        (lambda: sn.encode([1.0], "nvfp4", tensor_scale=-1.0), "not a positive value"),
        (lambda: sn.encode([1.0], "nvfp4", tensor_scale=0.1), "not a positive value"),
        (lambda: sn.encode(1.0, "mxfp4"), "reshape it"),
        (lambda: sn.encode([1.0], "mxfp4", axis=1), "axis=1 is out of range"),
        (lambda: sn.encode([1.0], "mxfp4", rounding="sr"), "needs key"),
        (lambda: sn.quantize(np.float32([0.7, 1.1]), "nvfp4"), "give float64, or tensor_scale= a power of two"),
        (lambda: sn.decode((np.uint8([1]),), "mxfp4"), "a tuple of element codes and scale codes"),
        (lambda: sn.decode((np.uint8([1]), np.uint8([1, 2])), "mxfp4"), "need scales of shape"),
        (lambda: sn.decode((np.uint8([16]), np.uint8([1])), "mxfp4"), "is no code of e2m1fn"),
        (lambda: sn.decode(sn.encode([1e30], "mxfp4"), "mxfp4", np.float16), "not exact in float16"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_refused_types():
    for make, message in (
        (lambda: sn.encode([1.0], "e5m2", axis=0), "are for block formats; e5m2 is not one"),
        (lambda: sn.encode([1.0], "mxfp4", axes=0), "unexpected keyword 'axes'"),
        (lambda: sn.encode([1.0], "mxfp4", invalid=0.0), "invalid= is not for block formats"),
        (lambda: sn.decode([1], "e5m2", axis=0), "are for block formats"),
        (lambda: sn.BlockFormat("e5m2", "e8m0fnu", 2.0), "must be an integer or None"),
        (
            lambda: sn.decode((np.uint8([1]), np.uint8([1])), "mxfp4", np.int32),
            "float16, float32, float64 or object arrays",
        ),
    ):
        with pytest.raises(TypeError, match=message):
            make()


# -- layouts ----------------------------------------------------------------------------------------------------------
def test_packed_blocks_end_on_bytes():
    a = sn.array(np.random.default_rng(1).standard_normal((3, 64)), "mxfp6_e2m3")
    packed = sn.arrays.pack(a.codes, a.format.element)
    assert packed.shape == (3, 48)
    assert np.array_equal(sn.arrays.unpack(packed[:, 24:], a.format.element, 32), a.codes[:, 32:])


@pytest.mark.parametrize("rows, blocks", [(1, 1), (128, 4), (130, 5), (300, 9), (0, 3)])
def test_tiles_of_scales(rows, blocks):
    scales = np.random.default_rng(2).integers(0, 256, (2, rows, blocks), dtype=np.uint8)
    tiles = tile_scales(scales)
    flat = tiles.reshape(2, tiles.shape[1], tiles.shape[2], 512) if tiles.size else None
    for r in range(rows):
        for j in range(blocks):
            byte = (r % 32) * 16 + r % 128 // 32 * 4 + j % 4
            assert flat[1, r // 128, j // 4, byte] == scales[1, r, j]
    assert np.array_equal(untile_scales(tiles, rows, blocks), scales)
    if rows:
        assert np.array_equal(untile_scales(tiles[0].tobytes(), rows, blocks), scales[0])
    with pytest.raises(ValueError, match="take"):
        untile_scales(tiles, rows + 128, blocks)
    with pytest.raises(TypeError, match=r"tile_scales needs uint8 of shape \(..., rows, blocks\), got"):
        tile_scales(scales.astype(np.int32))


# -- properties -------------------------------------------------------------------------------------------------------
@given(
    st.sampled_from(ALL[:7]),
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=40),
)
def test_properties(fmt, numbers):
    x = np.array(numbers)
    codes, scales, *tensor = check(x, fmt)
    values = sn.decode((codes, scales, *tensor), fmt, object)
    size = fmt.block_size
    for j, scale in enumerate(sn.decode(scales, fmt.scale, object)):
        step = scale * Fraction(float(tensor[0])) if tensor else scale
        for v, q in zip(numbers[j * size : (j + 1) * size], values[j * size : (j + 1) * size], strict=True):
            assert abs(q) <= Fraction(fmt.element.max) * step * (2 if fmt.element.kind == "fixed" else 1)
            assert not (v > 0 > q or v < 0 < q)
    # a scale too small loses the largest by less than half; the order of the elements of a block is kept
    for j in range(len(scales)):
        part = slice(j * size, (j + 1) * size)
        order = np.argsort(x[part], kind="stable")
        ordered = [Fraction(v) for v in values[part][order]]
        assert ordered == sorted(ordered)


@given(st.integers(-100, 100), st.lists(st.floats(-1000, 1000, width=16), min_size=1, max_size=8))
def test_powers_of_two_move_the_scale_alone(shift, numbers):
    x = np.array(numbers)
    if np.abs(x).max() < 2.0**-10:
        return
    for name in MX:
        codes, scales = sn.encode(x, name)
        moved_codes, moved = sn.encode(x * 2.0**shift, name)
        assert np.array_equal(codes, moved_codes) and (moved.astype(int) - scales == shift).all()


def test_a_planted_fault_is_noticed(monkeypatch):
    from softnum.arrays.codecs import blocks as block_codes

    monkeypatch.setattr(block_codes, "_thresholds", lambda *given: (0.74, 1.0))  # 3 is 0.75 * 2**2
    with pytest.raises(AssertionError):
        check(np.array([3.0, 1.0]), sn.format("mxfp4"))


def test_command_line(tmp_path):
    import json

    from typer.testing import CliRunner

    from softnum.cli import build_app

    out = tmp_path / "format.json"
    result = CliRunner().invoke(build_app(), ["formats", "mxfp8_e4m3", "--out", str(out)])
    assert result.exit_code == 0 and "floor(log2 amax)" in result.output
    facts = json.loads(out.read_text())
    assert facts["element"] == "e4m3fn" and facts["block_size"] == 32 and facts["max"] == 448 * 2.0**127
    assert "nvfp4" in CliRunner().invoke(build_app(), ["formats"]).output
