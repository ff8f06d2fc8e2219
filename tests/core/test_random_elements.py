"""Sources of random bits in conversions and operations: what each element takes, by the definition; Transformer
Engine's casts, by a model of its kernel; quality in these layouts."""

from itertools import product
from math import sqrt

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.arrays.environment import PartKey, seed_and_stream
from softnum.arrays.sources import offset_of, random_source
from softnum.kernels.device.elementwise.launch import words_of_key
from softnum.reference.random_words import lfsr_word
from tests.support.core_oracles import on_every_isa

STOCHASTIC = {"rounding": "stochastic", "stochastic_bits": 8}
SOURCES = (
    "philox4x32-7", "philox4x32-10/2", "philox4x32-7/4", "lfsr32", "lfsr16x12", "lfsr12-d8fx3", "lfsr32@hart",
    "philox4x32-3@transformer_engine", "philox4x32-10@transformer_engine",
)  # fmt: skip
CASTS = "philox4x32-{}@transformer_engine"


def key_of(name):
    return 5 if name.endswith("@hart") else (2**40 + 3, 9)


def numbers(*shape, seed=3):
    return np.random.Generator(np.random.Philox(seed)).standard_normal(shape, dtype=np.float32)


# -- what each element takes -------------------------------------------------------------------------------------------


def words_by_definition(name, key, count):
    """Of elements 0, 1, ...; those of casts are by a kernel's model below."""
    seed, stream = seed_and_stream(key)
    own = ref.philox4x32_10((seed & 0xFFFFFFFF, seed >> 32), (stream & 0xFFFFFFFF, stream >> 32, 0, 0))[:2]
    source = random_source(name)
    if source.kind == "lfsr":
        ones = (1 << source.width) - 1
        start = ~seed & ones if source.hart else ref.philox4x32_10(own, (0, 0, 0, 0))[0] & ones or ones
        return [lfsr_word(start, source.width, source.taps, i * source.shifts) for i in range(count)]
    words = []
    for i in range(count):
        q, draw = divmod(i, source.draws)
        word = ref.philox4x32_10(own, (q // 4, 0, 0, 0), source.rounds)[q % 4]
        words.append(word >> draw * source.field & (1 << source.field) - 1)
    return words


@pytest.mark.parametrize("name", [name for name in SOURCES if "@transformer" not in name])
def test_words_are_those_of_the_definition(name):
    key = key_of(name)
    assert sn.Stream(key).words((7, 13), random=name).reshape(-1).tolist() == words_by_definition(name, key, 91)
    tail = PartKey(*seed_and_stream(key), first=3, pieces=4)  # rows 3 to 6
    x = numbers(7, 13)
    whole = sn.quantize(x, "e5m2", key=key, random=name, **STOCHASTIC)
    assert np.array_equal(sn.quantize(x[3:], "e5m2", key=tail, random=name, **STOCHASTIC), whole[3:])


def kernel_model(seed, offset, rows, columns, rounds):
    """The bytes of elements as block_scaled_1d_cast_transpose_kernel takes them for its rowwise output: thread by
    thread, a state that steps on, in the order of its loops."""
    taken = np.full((-(-rows // 128) * 128, -(-columns // 128) * 128), -1)
    grid = taken.shape[1] // 128
    for block_y, block_x, thread in product(range(taken.shape[0] // 128), range(grid), range(256)):
        sequence = thread + block_x * 256 + block_y * grid * 256
        counter, words = offset, []
        for iteration in range(4):
            row, column = block_y * 128 + thread // 8 + 32 * iteration, block_x * 128 + thread % 8 * 16
            for pair in range(0, 8, 2):  # pairs of elements, two at a time
                if not words:
                    place = counter & 0xFFFFFFFF, counter >> 32, sequence & 0xFFFFFFFF, sequence >> 32
                    words = list(ref.philox4x32_10((seed & 0xFFFFFFFF, seed >> 32), place, rounds))
                    counter += 1
                bits = words.pop(0)
                for i in range(4):
                    taken[row, column + 2 * pair + i] = bits >> 8 * i & 0xFF
    return taken[:rows, :columns]


@pytest.mark.parametrize(("shape", "rounds", "stream"), [((130, 150), 3, 5), ((40, 200), 10, 2**52 + 1), ((9,), 7, 0)])
def test_casts_are_those_of_the_kernel(shape, rounds, stream):
    seed = 2**40 + 3
    matrix = (1, *shape)[-2:]
    want = kernel_model(seed, 1024 * stream, *matrix, rounds).reshape(shape)
    assert np.array_equal(sn.Stream(seed, stream).words(shape, random=CASTS.format(rounds)), want)
    x = 4 * numbers(*shape)
    by_words = sn.quantize(x, "e2m1fn", random_bits=want, **STOCHASTIC)
    assert np.array_equal(
        sn.quantize(x, "e2m1fn", key=(seed, stream), random=CASTS.format(rounds), **STOCHASTIC), by_words
    )
    if len(shape) == 2:  # stacks lie one below the other
        halves = x[: shape[0] // 2 * 2].reshape(2, -1, shape[1])
        stacked = sn.quantize(halves, "e2m1fn", key=(seed, stream), random=CASTS.format(rounds), **STOCHASTIC)
        assert np.array_equal(stacked.reshape(-1, shape[1]), by_words[: shape[0] // 2 * 2])


def test_streams_are_offsets():
    """Each of the 2**64 offsets is of one stream, and those of whole casts are 1024 apart."""
    assert [offset_of(stream) for stream in (0, 1, 7, 2**54 - 1)] == [0, 1024, 7168, 2**64 - 1024]
    assert offset_of(2**54) == 1
    assert offset_of(2**63 | 3) == 3 * 1024 + 512


def transformer_engine_rounds(x, byte):
    """`stochastic_round_fp4_e2m1` of Transformer Engine: its software for chips without the instruction."""
    a = abs(x)
    step = 2.0 if a >= 4 else 1.0 if a >= 2 else 0.5
    t = np.float32(a + byte * np.float64(step) / 256)  # its fma
    step = 2.0 if t >= 4 else 1.0 if t >= 2 else 0.5
    return float(np.copysign(min(np.floor(t / step) * step, 6.0), x))


def test_a_byte_rounds_as_transformer_engines_software_does():
    """Where 16 bits of a number count, its sum in binary32 is exact: bfloat16 numbers of 2**-15 and more."""
    x = sn.quantize(4 * numbers(64, 32), "bfloat16")
    x = np.where(np.abs(x) < 2.0**-7, np.float32(0.5), x)
    x[0, :4] = 100, -100, 6, -0.25
    words = sn.Stream(8).words(x.shape, random=CASTS.format(3))
    got = sn.quantize(x, "e2m1fn", overflow="saturate", key=8, random=CASTS.format(3), **STOCHASTIC)
    want = [transformer_engine_rounds(float(v), int(w)) for v, w in zip(x.reshape(-1), words.reshape(-1), strict=True)]
    assert got.reshape(-1).tolist() == want


# -- every way to round ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_every_function_takes_the_source(name):
    key, x = key_of(name), numbers(37, 21)
    words = sn.Stream(key).words(x.shape, random=name)
    by_key, by_words = {"key": key, "random": name, **STOCHASTIC}, {"random_bits": words, **STOCHASTIC}
    for fmt in ("e5m2", "q4.4", "bfloat16", "e4m3fn", "binary128"):
        for isa in on_every_isa():
            assert np.array_equal(sn.encode(x, fmt, **by_key), sn.encode(x, fmt, **by_words)), (fmt, isa)
    assert np.array_equal(sn.quantize(x, "e5m2", threads=2, **by_key), sn.quantize(x, "e5m2", **by_words))
    for flags in (sn.encode(x, "e5m2", return_flags=True, **way) for way in (by_key, by_words)):
        assert np.array_equal(flags[0], sn.encode(x, "e5m2", **by_words))
    blocks = [sn.encode(x, "mxfp8_e4m3", axis=1, **way) for way in (by_key, by_words)]
    assert all(np.array_equal(*pair) for pair in zip(*blocks, strict=True))
    a = sn.array(x, "bfloat16", **by_key)
    assert np.array_equal(a.codes, sn.array(x, "bfloat16", **by_words).codes)
    for got, want in (
        [sn.add(a, a, **way).codes for way in (by_key, by_words)],
        [sn.fma(a.codes, a.codes, a.codes, "bfloat16", out_fmt="e5m2", **way) for way in (by_key, by_words)],
        [sn.exp(a, **way).codes for way in (by_key, by_words)],
        [sn.convert(a.codes, "bfloat16", "e4m3fn", **way) for way in (by_key, by_words)],
    ):
        assert np.array_equal(got, want)
    assert not np.array_equal(sn.quantize(x, "e5m2", **by_key), sn.quantize(x, "e5m2", key=(1, 1), **STOCHASTIC))


def test_the_default_by_name_is_the_default():
    x = numbers(50)
    for name in ("philox4x32-10", "philox4x32-10/1"):
        assert np.array_equal(
            sn.quantize(x, "e5m2", key=7, random=name, **STOCHASTIC), sn.quantize(x, "e5m2", key=7, **STOCHASTIC)
        )
        assert np.array_equal(sn.Stream(7).words(50, random=name), sn.Stream(7).words(50))
    assert np.array_equal(sn.quantize(x, "e5m2", random="lfsr32"), sn.quantize(x, "e5m2"))  # nothing is drawn


def test_given_bits():
    x, words = numbers(6), np.arange(6)
    want = sn.quantize(x, "e5m2", random_bits=words, **STOCHASTIC)
    for name in ("given", "lfsr32"):
        assert np.array_equal(sn.quantize(x, "e5m2", random_bits=words, random=name, **STOCHASTIC), want)
    for options in ({}, {"key": 1}, {"key": 1, "random_bits": words}):
        with pytest.raises(ValueError, match="quantize: with random='given' the bits come from random_bits="):
            sn.quantize(x, "e5m2", random="given", **options, **STOCHASTIC)


def test_no_elements_and_single_ones():
    for name in SOURCES:
        assert sn.quantize(np.empty((0, 5), np.float32), "e5m2", key=key_of(name), random=name, **STOCHASTIC).shape == (
            0,
            5,
        )
        assert sn.quantize(np.empty((5, 0), np.float32), "e5m2", key=key_of(name), random=name, **STOCHASTIC).shape == (
            5,
            0,
        )
        word = sn.Stream(key_of(name)).words((), random=name)
        assert word == sn.Stream(key_of(name)).words(1, random=name)[0]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_is_refused():
    x = numbers(8, 4)
    with pytest.raises(
        ValueError, match="quantize: random='philox4x32-3@transformer_engine' gives 8 bits per step .*=32"
    ):
        sn.quantize(x, "e5m2", rounding="stochastic", key=1, random=CASTS.format(3))
    with pytest.raises(ValueError, match="encode: random must be 'philox4x32-10'.*got 'pcg64'"):
        sn.encode(x, "e5m2", key=1, random="pcg64", **STOCHASTIC)
    with pytest.raises(
        ValueError, match="add: .*fewer than 7 rounds.* for casts, take 'philox4x32-3@transformer_engine'"
    ):
        sn.add(1, 1, "e5m2", key=1, random="philox4x32-3", **STOCHASTIC)
    for rounds in (0, 11):
        with pytest.raises(ValueError, match="1 to 10 rounds in this layout"):
            random_source(CASTS.format(rounds))
    with pytest.raises(ValueError, match="needs key=seed"):
        sn.quantize(x, "e5m2", random="lfsr32", **STOCHASTIC)
    with pytest.raises(ValueError, match="the key is the number of column 0's LFSR"):
        sn.quantize(x, "e5m2", key=(1, 1), random="lfsr32@hart", **STOCHASTIC)
    with pytest.raises(ValueError, match="numbers elements by their rows and columns in the whole tensor, and"):
        sn.quantize(x, "e5m2", key=PartKey(1, 1, 0, 8), random=CASTS.format(3), **STOCHASTIC)
    with pytest.raises(ValueError, match="MadUnit: .* does not number the steps of sums; use it in quantize"):
        sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=8, random=CASTS.format(3))
    with pytest.raises(ValueError, match="the unit states its random source; leave out random="):
        sn.Stream(1).words((2, 2), sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic"), k=2, random="lfsr32")
    with pytest.raises(ValueError, match=r"the bits of random='given' come from the caller"):
        sn.Stream(1).words(3, random="given")


def test_kernels_that_are_put_off_take_the_default_alone():
    from softnum.arrays.environment import source_key

    key = source_key("lfsr32", 7, None, "stochastic", 8, "quantize")
    with pytest.raises(ValueError, match="'lfsr32' is not supported here.*Stream\\(key\\).words\\(shape, random="):
        words_of_key(True, key)


# -- quality in this layout --------------------------------------------------------------------------------------------

SOUND = ("philox4x32-7", "philox4x32-7/4", "lfsr32x16", "philox4x32-7@transformer_engine", CASTS.format(10))
KEYS = ((1, 0), (2**40 + 3, 9))


def centred(name, key, shape=(256, 384)):
    """Words of 8 bits from -1 to 1, of mean 0."""
    return (2 * (sn.Stream(key).words(shape, random=name) & np.uint32(255)).astype(np.float64) + 1) / 256 - 1


def correlation(x, y) -> float:
    return float(np.mean(x * y) / np.mean(x * x))


@pytest.mark.parametrize("name", SOUND)
def test_words_do_not_hang_together(name):
    """Between rows, columns, tiles of 128 and casts that follow each other; how often each value occurs."""
    for key in KEYS:
        x = centred(name, key)
        bound = 6 * sqrt(1 / (x.size / 3))
        assert abs(x.mean()) < 5 * sqrt(1 / 3 / x.size)
        for lag in (1, 2, 3, 4, 8, 16, 32, 64, 128):
            assert abs(correlation(x[lag:], x[:-lag])) < bound, lag
            assert abs(correlation(x[:, lag:], x[:, :-lag])) < bound, lag
        for jump in (1, 2, 7):
            assert abs(correlation(x, centred(name, sn.Stream(key).jumped(jump)))) < bound, jump
        counts = np.unique(x, return_counts=True)[1]
        assert len(counts) == 256
        assert abs(counts - x.size / 256).max() < 5.5 * sqrt(x.size / 256)


@pytest.mark.parametrize("name", SOUND)
def test_sums_have_the_mean_and_variance_of_independent_bits(name):
    """How many of a row's, of a column's and of an element's numbers go up, some 256ths above a value of a format."""
    casts = np.stack([sn.Stream((3, cast)).words((128, 256), random=name) & np.uint32(255) for cast in range(64)])
    for cut in (3, 25, 76, 128, 200):
        up, p = casts + cut >= 256, cut / 256
        for axis in range(3):
            count = up.sum(axis)
            variance = up.shape[axis] * p * (1 - p)
            assert abs(count.mean() - up.shape[axis] * p) < 5 * sqrt(variance / count.size)
            assert abs(count.var() / variance - 1) < 6 * sqrt(2 / count.size), (cut, axis)


def test_three_rounds_in_transformer_engines_counters():
    """What 3 rounds leave undone there, where a counter is (offset + draw, number of the thread).

    Offsets are multiples of 1024, and the low 8 bits of word 1 follow from none but their low bits. The numbers of
    threads are small, and leave the upper half of word 0 as it is. The lowest byte of word 3 is a one-to-one function
    of the thread's number modulo 256.
    """
    for seed in (1, 2**40 + 3, 2**63 + 12345):
        casts = np.stack(
            [sn.Stream((seed, cast)).words((256, 256), random=CASTS.format(3)) for cast in range(0, 700, 100)]
        )
        groups = casts.reshape(-1, 2, 4, 32, 2, 8, 16)  # cast, tile, draw, rows, tile, group of 16, element
        assert (groups[..., 4] == groups[:1, ..., 4]).all()  # in every cast the same
        assert np.mean(groups[..., 11] == groups[:1, ..., 11]) > 0.95
        assert (groups[..., 12] == groups[:, :1, ..., :1, :, 12]).all()  # in every tile
        assert len(np.unique(groups[0, 0, 0, :, 0, :, 12])) == 256
        for element in (2, 3):  # in a draw of a tile: all 256 threads alike, or all but few
            assert all(len(np.unique(groups[0, 0, draw, :, 0, :, element])) <= 2 for draw in range(4))


def test_what_three_rounds_do_to_sums():
    """Of a million numbers a tenth above a value of the format, up to a third more or fewer go up than should; rows and
    columns spread more, and casts hang together."""
    name, found = CASTS.format(3), []
    for key in KEYS:
        x = centred(name, key)
        assert 0.1 < correlation(x, centred(name, sn.Stream(key).jumped(1))) < 0.45
        assert 0.05 < correlation(x[:, 128:], x[:, :-128]) < 0.4
        up = (sn.Stream(key).words((512, 2048), random=name) & np.uint32(255)) + 25 >= 256
        p = 25 / 256
        found.append(up.mean() / p)
        assert up.sum(1).var() > 5 * 2048 * p * (1 - p)
        assert up.sum(0).var() > 5 * 512 * p * (1 - p)
    assert max(abs(np.array(found) - 1)) > 0.1
