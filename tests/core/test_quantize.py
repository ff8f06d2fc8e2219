"""quantize on every instruction set against the definition (encode, then decode) and the reference, bit for bit."""

import random

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.facts import fits
from softnum.formats.names import format as format_of
from tests.support.cases import cases
from tests.support.core_oracles import (
    MODES,
    STOCHASTIC,
    assert_same_bits,
    decode_by_definition,
    edge_codes,
    encode_by_definition,
    on_every_isa,
    overflow_rules,
)
from tests.support.format_lists import FORMATS, WIDE
from tests.support.remembered import remembered


def patterns(fmt, dtype, seed=0):
    """All upper halves with random lower bits, the format's edges and midpoints and their neighbours, specials.

    What has no code in the format is left out.
    """
    rng = np.random.default_rng(seed)
    if dtype == np.float32:
        bits = np.arange(1 << 15, dtype=np.uint32) << 17 | rng.integers(0, 1 << 17, 1 << 15, dtype=np.uint32)
        x = bits.view(np.float32)
    else:
        x = (np.arange(1 << 15, dtype=np.uint64) << 49 | rng.integers(0, 1 << 49, 1 << 15, dtype=np.uint64)).view(dtype)
    grid = sn.decode(np.sort(edge_codes(fmt, random.Random(seed), 60)), fmt) if fits(fmt, np.float64) else np.zeros(1)
    grid = np.unique(grid[np.isfinite(grid)])
    middles = (grid[1:] / 2 + grid[:-1] / 2).astype(dtype)
    limits = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, 1e-45, 3.4e38, 1.7e38], dtype)
    with np.errstate(over="ignore"):
        near = np.concatenate(
            [grid.astype(dtype), middles, float(fmt.max) * np.array([1, 1.01, 1.1, 1.5, 2, 4], dtype)]
        )
        up, down = np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))
    x = np.concatenate([x, near, up, down, -near, -up, -down, limits]).astype(dtype)
    if not fmt.has_nan:
        x = x[~np.isnan(x)]
    if fmt.kind == "fixed" or (not fmt.has_zero and not fmt.has_nan):
        x = x[np.isfinite(x)]
    return x


def definition_of_codes(x, fmt, rounding="nearest_even", overflow=None, random_bits=0, stochastic_bits=32):
    options = {"rounding": rounding, "overflow": overflow, "stochastic_bits": stochastic_bits}
    return encode_by_definition(x, format_of(fmt), random_bits, **options)


def definition(x, fmt, rounding="nearest_even", overflow=None, random_bits=0, stochastic_bits=32):
    codes = definition_of_codes(x, fmt, rounding, overflow, random_bits, stochastic_bits)
    return decode_by_definition(codes, format_of(fmt), x.dtype)


def words_for(mode, x, seed):
    if mode not in STOCHASTIC:
        return {}
    rng = np.random.default_rng(seed)
    r = (1, 3, 8, 12, 24, 31, 32)[seed % 7]
    return {"random_bits": rng.integers(0, 1 << 32, x.shape, dtype=np.uint32), "stochastic_bits": r}


def check_all(fmt, dtype):
    """quantize and encode against the definition, in every mode and overflow rule, on every instruction set."""
    x = patterns(fmt, dtype, seed=len(str(fmt)))
    for i, mode in enumerate(MODES):
        for rule in overflow_rules(fmt):
            environment = {"rounding": mode, "overflow": rule, **words_for(mode, x, i + fmt.bits)}
            codes = definition_of_codes(x, fmt, **environment)
            values = decode_by_definition(codes, fmt, dtype) if fits(fmt, dtype) else None
            for isa in on_every_isa():
                got = sn.encode(x, fmt, **environment)
                assert_same_bits(got, codes, fmt, mode, rule, isa)
                if values is not None:
                    assert_same_bits(sn.quantize(x, fmt, **environment), values, fmt, mode, rule, isa)


@cases("fmt", FORMATS, ids=str)
def test_float32_equals_the_definition(fmt):
    check_all(fmt, np.float32)


@cases("name", WIDE)
def test_float64_equals_the_definition(name):
    check_all(format_of(name), np.float64)


@remembered
def samples_by_the_reference(x, words, fmt, mode):
    """The value of each number's code."""
    codes = (ref.encode(value, fmt, rounding=mode, random_bits=word, stochastic_bits=11)[0]
             for value, word in zip(x.tolist(), words.tolist(), strict=True))  # fmt: skip
    return [ref.decode(code, fmt) for code in codes]


@cases("mode", MODES)
@cases("name", ["e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "e6m9", "dlfloat16", "bfloat16", "q4.4"])
def test_samples_equal_the_reference(name, mode, isa):
    fmt = format_of(name)
    rng = random.Random(f"{name} {mode}")
    for dtype in (np.float32, np.float64):
        every = patterns(fmt, dtype, seed=5)
        x = every[np.array([rng.randrange(len(every)) for _ in range(250)])]
        x = np.concatenate([x, every[-60:]])
        words = np.array([rng.getrandbits(32) for _ in x], np.uint32)
        got = sn.quantize(x, fmt, rounding=mode, random_bits=words, stochastic_bits=11)
        wanted = samples_by_the_reference(x, words, fmt, mode)
        for value, want, mine in zip(x.tolist(), wanted, got.tolist(), strict=True):
            if want.kind == "finite":
                assert mine == want.fraction and bool(np.signbit(mine)) == bool(want.sign), (value, mine, want)
            elif want.kind == "inf":
                assert mine == (-np.inf if want.sign else np.inf), (value, mine)
            else:
                assert np.isnan(mine), (value, mine)


# -- layouts -----------------------------------------------------------------------------------------------------------
@cases("dtype", [np.float32, np.float64])
@cases("mode", ["nearest_even", "stochastic"])
def test_every_length_across_the_vector_widths(mode, dtype, isa):
    x = np.random.default_rng(1).normal(0, 3, 80).astype(dtype)
    options = {"rounding": mode, "key": (5, 6)}
    want = sn.quantize(x, "e4m3fn", **options)
    for offset in (0, 1, 3):
        for n in range(71):
            source = x[offset : offset + n].copy()
            got = sn.quantize(source, "e4m3fn", **options)
            assert got.shape == (n,) and got.dtype == dtype
            if offset == 0:  # element i takes word i, whatever the length
                assert_same_bits(got, want[:n], n)
            words = [ref.random_word_elementwise(5, 6, i) for i in range(n)]
            by_words = sn.quantize(source, "e4m3fn", rounding=mode, random_bits=np.array(words, np.uint32))
            assert_same_bits(got, by_words, n, offset)


@cases("n", [255, 256, 257, 1023, 5000])
def test_keys_equal_their_words(n, isa):
    """Across the blocks in which random words are made."""
    x = np.random.default_rng(n).normal(0, 3, n)
    words = np.array([ref.random_word_elementwise(2**64 - 1, 2**63 + 5, i) for i in range(n)], np.uint32)
    for dtype in (np.float32, np.float64):
        for mode in STOCHASTIC:
            for fmt in ("e5m2", "q4.4", "e8m0fnu", "binary16"):
                values = np.abs(x.astype(dtype)) if fmt == "e8m0fnu" else x.astype(dtype)
                for r in (1, 12, 32):
                    options = {"rounding": mode, "stochastic_bits": r}
                    got = sn.quantize(values, fmt, key=(2**64 - 1, 2**63 + 5), **options)
                    assert_same_bits(got, sn.quantize(values, fmt, random_bits=words, **options), fmt, mode, r)
    codes = sn.encode(x, "e5m2", rounding="sr", key=(2**64 - 1, 2**63 + 5))
    assert np.array_equal(codes, sn.encode(x, "e5m2", rounding="sr", random_bits=words))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strides_offsets_and_byte_order(dtype, isa):
    x = np.random.default_rng(2).normal(0, 100, (24, 35)).astype(dtype)
    options = {"rounding": "stochastic", "key": 3}
    views = [x[::2], x[:, ::3], x[::-1, ::-1], x.T, x[3:, 5:], x[None, 2:3], x[:0], x[5, 5:6], np.asfortranarray(x)]
    views += [x.astype(x.dtype.newbyteorder(">"))]
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    unaligned[...] = x
    assert not unaligned.flags.aligned
    for view in [*views, unaligned, unaligned[1:, ::2]]:
        want = sn.quantize(np.ascontiguousarray(view, dtype), "e5m2", **options).reshape(view.shape)
        got = sn.quantize(view, "e5m2", **options)
        assert_same_bits(got, want, view.strides)
    broadcast = np.broadcast_to(x[0], (4, 35))
    assert_same_bits(sn.quantize(broadcast, "e5m2"), np.broadcast_to(sn.quantize(x[0], "e5m2"), (4, 35)).copy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_out_in_place_overlapping_strided_unaligned(dtype, isa):
    x = np.random.default_rng(3).normal(0, 100, 300).astype(dtype)
    for fmt in ("e5m2", "e8m0fnu", "q4.4"):
        source = np.abs(x)
        want = sn.quantize(source, fmt)
        out = np.full_like(source, 7)
        assert sn.quantize(source, fmt, out=out) is out
        assert_same_bits(out, want)
        same = source.copy()
        assert sn.quantize(same, fmt, out=same) is same
        assert_same_bits(same, want)
        for shift in (1, 2, 5, 16, 33):
            buffer = np.concatenate([source, np.zeros(shift, dtype)])
            sn.quantize(buffer[:300], fmt, out=buffer[shift:])  # writes ahead of what it reads
            assert_same_bits(buffer[shift:], want, fmt, shift)
            buffer = np.concatenate([np.zeros(shift, dtype), source])
            sn.quantize(buffer[shift:], fmt, out=buffer[:300])
            assert_same_bits(buffer[:300], want, fmt, shift)
        turned = source.copy()
        sn.quantize(turned, fmt, out=turned[::-1])
        assert_same_bits(turned[::-1].copy(), want)
        every_other = np.zeros(600, dtype)
        sn.quantize(source, fmt, out=every_other[::2])
        assert_same_bits(every_other[::2].copy(), want)
        assert not every_other[1::2].any()
        unaligned = np.zeros(source.nbytes + 1, np.uint8)[1:].view(dtype)
        sn.quantize(source, fmt, out=unaligned)
        assert_same_bits(unaligned.copy(), want)
        swapped = np.zeros(300, np.dtype(dtype).newbyteorder(">"))
        with pytest.raises(ValueError, match="out must be an array of shape"):
            sn.quantize(source, fmt, out=swapped)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_results_written_past_the_caches(dtype, isa):
    x = np.random.default_rng(5).normal(0, 100, (1 << 25) // np.dtype(dtype).itemsize + 37).astype(dtype)
    want = np.concatenate([sn.quantize(part, "e5m2", rounding="up") for part in np.array_split(x, 40)])
    for shift in (0, 1, 3):
        out = np.full(x.size + 20, 7, dtype)
        sn.quantize(x, "e5m2", rounding="up", out=out[shift : shift + x.size], threads=1 + shift % 2)
        assert_same_bits(out[shift : shift + x.size], want)
        assert (out[:shift] == 7).all() and (out[shift + x.size :] == 7).all()
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype)
    sn.quantize(x, "e5m2", rounding="up", out=unaligned)
    assert_same_bits(unaligned.copy(), want)
    sn.quantize(x, "e5m2", rounding="up", out=x)
    assert_same_bits(x, want)


@cases("dtype", [np.float32, np.float64])
@cases("mode", STOCHASTIC)
def test_stochastic_in_the_gap_below_a_normal_lowest_binade(mode, dtype, isa):
    for fmt in (format_of("dlfloat16"), FloatFormat(3, 2, specials="fn", lowest_binade="normal")):
        smallest = float(sn.decode(np.array([1], fmt.storage_dtype), fmt)[0])
        step = smallest / 64  # 7 bits of the fraction of the gap are enough to tell ties of r = 6
        x = np.concatenate([np.arange(-80, 81) * step, np.arange(1, 65) * step * (1 + 2.0**-20)]).astype(dtype)
        for r in (1, 5, 6, 32):
            words = np.random.default_rng(r).integers(0, 1 << 32, x.size, dtype=np.uint32)
            options = {"rounding": mode, "stochastic_bits": r, "random_bits": words}
            codes = sn.encode(x, fmt, **options)
            assert_same_bits(sn.quantize(x, fmt, **options), sn.decode(codes, fmt, dtype))
            for value, word, code in zip(x.tolist(), words.tolist(), codes.tolist(), strict=True):
                want = ref.encode(value, fmt, rounding=mode, stochastic_bits=r, random_bits=word)
                assert code == (want[0] if isinstance(want, tuple) else want), (value, word, r)


def test_scalars_0d_empty_and_other_types(isa):
    assert sn.quantize(np.float32(1.1), "e5m2").shape == ()
    assert sn.quantize(1.1, "e5m2") == 1.0 and sn.quantize(1.1, "e5m2").dtype == np.float64
    assert sn.quantize(np.array(3.3, np.float32), "e5m2").dtype == np.float32
    assert sn.quantize(np.zeros((0, 3), np.float32), "e5m2", rounding="sr", key=1).shape == (0, 3)
    assert sn.quantize([1, 3, 9], "e5m2").tolist() == [1.0, 3.0, 8.0]
    assert sn.quantize(np.float16([1.1]), "e5m2").dtype == np.float16
    assert sn.quantize(np.array([True, False]), "e5m2").tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match="quantize takes arrays of float16, float32 or float64, got complex128"):
        sn.quantize(np.zeros(2, complex), "e5m2")
    with pytest.raises(
        TypeError, match="quantize takes arrays of float16, float32 or float64, got longdouble|float128"
    ):
        sn.quantize(np.zeros(2, np.longdouble), "e5m2")
    with pytest.raises(ValueError, match="not exact in float64"):
        sn.quantize(np.array([2**53 + 1]), "binary64")
    read_only = np.float32([1.1])
    read_only.flags.writeable = False
    assert sn.quantize(read_only, "e5m2") == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_zero_and_infinity(dtype, isa):
    unsigned = np.uint32 if dtype == np.float32 else np.uint64
    canonical = {np.uint32: 0x7FC00000, np.uint64: 0x7FF8000000000000}[unsigned]
    top = np.iinfo(unsigned).max
    fraction = 23 if unsigned is np.uint32 else 52
    signaling = canonical - (1 << (fraction - 1)) + 1
    nans = np.array([top, top >> 1, signaling, signaling | top ^ top >> 1], unsigned).view(dtype)
    for fmt in ("e5m2", "e4m3fn", "e4m3fnuz", "e8m0fnu", "binary16", "bfloat16", "binary32"):
        assert (sn.quantize(nans, fmt).view(unsigned) == canonical).all(), fmt
    for fmt in ("e2m1fn", "q4.4"):
        with pytest.raises(ValueError, match=f"NaN.*{fmt}"):
            sn.quantize(nans[:1], fmt)
        with pytest.raises(ValueError, match=f"NaN.*{fmt}"):
            sn.quantize(np.concatenate([np.zeros(69, dtype), nans[:1]]), fmt)
    infinities = np.array([np.inf, -np.inf], dtype)
    with pytest.raises(ValueError, match=r"infin.*q4\.4"):
        sn.quantize(infinities, "q4.4")
    assert sn.quantize(infinities, "e2m1fn").tolist() == [6, -6]
    assert sn.quantize(infinities, "e5m2", overflow="saturate").tolist() == [57344, -57344]
    assert sn.quantize(infinities, "e5m2", overflow="saturate_finite").tolist() == [np.inf, -np.inf]
    assert np.isnan(sn.quantize(infinities, "e4m3fn")).all()
    minus = np.array([-0.0, -1e-30], dtype)
    assert np.signbit(sn.quantize(minus, "e5m2")).all() and np.signbit(sn.quantize(minus, "e4m3fn")).all()
    for fmt in ("e4m3fnuz", "q4.4", "binary8p3se"):
        assert not np.signbit(sn.quantize(minus, fmt)).any(), fmt


def test_the_comparison_catches_a_planted_fault(isa):
    """One result of 65,000 an ulp off, or a tie broken the other way, is seen."""
    x = patterns(format_of("e5m2"), np.float32)
    want = definition(x, "e5m2")
    got = sn.quantize(x, "e5m2")
    i = int(np.flatnonzero(x == np.float32(1.5))[0])
    got[i] = np.nextafter(got[i], np.float32(2))
    with pytest.raises(AssertionError, match="1 of .* differ"):
        assert_same_bits(got, want)
    with pytest.raises(AssertionError, match="differ"):
        assert_same_bits(sn.quantize(x, "e5m2", rounding="nearest_away"), want)
