"""Sources of random bits: names, known answers, the fast paths against the definition and the reference, ties."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.arrays.sources import TAPS, random_source, words_of_steps
from softnum.mac.presets import unit_of
from softnum.mac.products.engines import fast_of
from softnum.reference.rounding import floor_log2
from softnum.runtime import _core
from tests.support.core_oracles import on_every_isa

KEYED = (
    "philox4x32-10/2", "philox4x32-10/4", "philox4x32-7", "philox4x32-7/2", "philox4x32-7/4", "lfsr32", "lfsr16x12",
    "lfsr12-d8fx3", "lfsr32x40", "lfsr32@hart",
)  # fmt: skip
SHAPES = (
    {},
    {"chunk": 5, "outer_accumulator": "bfloat16"},
    {"chunk": 9, "lanes": 2, "reduction": "tree"},
)


def unit(random, r=4, two=False, accumulator="e6m9", **options):
    own = {"product": "e5m2"} if two else {}
    return sn.MadUnit(
        accumulator, operand="e5m2", rounding="stochastic", stochastic_bits=r, random=random, **own, **options
    )


def operands(seed, m=3, k=23, n=37, batches=2):
    rng = np.random.Generator(np.random.Philox(seed))
    shapes = (batches, m, k), (batches, k, n)
    return [sn.quantize(rng.standard_normal(shape, dtype=np.float32), "e5m2") for shape in shapes]


def key_of(u):
    return 5 if u.random.endswith("@hart") else (7, 3)


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_are_canonical():
    same = {"philox4x32-10/1": "philox4x32-10", "lfsr32-80000ea6x1": "lfsr32", "lfsr16-8679x3@hart": "lfsr16x3@hart"}
    for name in (*KEYED, "given"):
        assert unit(name).random == name == random_source(name).name
    for name, want in same.items():
        assert unit(name).random == want
    assert unit("philox4x32-10/1") == sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("philox4x32-3", "fewer than 7 rounds needs another layout.*last word is the same in all columns"),
        ("philox4x32-6/2", "fewer than 7 rounds"),
        ("philox4x32-8", "7 or 10 rounds"),
        ("philox4x32-7/3", "1, 2 \\('/2'\\) or 4"),
        ("lfsr33", "8 to 32 bits"),
        ("lfsr32x0", "1 to 64 shifts"),
        ("lfsr12", "state the taps"),
        ("lfsr12-58f", "the highest of them is 1"),
        ("pcg64", "random must be 'philox4x32-10'.*got 'pcg64'"),
        (None, "got None"),
    ],
)
def test_names_that_there_are_not(name, message):
    with pytest.raises(ValueError, match=message):
        unit(name)


def test_a_step_with_too_few_bits():
    with pytest.raises(ValueError, match=r"gives 8 bits per step \(4 draws of a word of 32 bits\).*=9"):
        unit("philox4x32-7/4", 9)
    with pytest.raises(ValueError, match=r"gives 8 bits for each of product and sum per step.*fewer than"):
        unit("philox4x32-7/2", 12, two=True)
    with pytest.raises(ValueError, match="an LFSR of 16 bits"):
        unit("lfsr16", 17)
    assert unit("philox4x32-7/2", 16).random_source.field == 16
    assert sn.MadUnit("e6m9", operand="e5m2", random="lfsr16").stochastic_bits == 32  # nothing is drawn


def test_three_rounds_repeat_a_word_in_all_columns():
    """Why fewer than 7 rounds are refused: the layout's columns differ in one word of the counter."""
    key = ref.philox4x32_10((7, 0), (3, 0, 1, 0))[:2]
    words = {ref.philox4x32_10(key, (5, column, 9, 0), 3)[3] for column in range(4096)}
    assert len(words) == 1
    assert len({ref.philox4x32_10(key, (5, column, 9, 0), 7)[3] for column in range(4096)}) > 4090


# -- what there is beside the definition -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEYED)
def test_fast_paths_definition_and_reference(name):
    """All instruction sets; the words of a key given as words; outputs here and there by the reference in Python."""
    for i, ((r, two), options) in enumerate(
        product(((4, False), (4, True), (12, False), (12, True), (30, False)), SHAPES)
    ):
        try:
            u = unit(name, r, two, **options)
        except ValueError:
            continue
        a, b = operands(i)
        key = key_of(u)
        want, _ = sn.matmul(a, b, u, key=key, return_stats=True)  # by the definition
        for isa in on_every_isa():
            assert np.array_equal(sn.matmul(a, b, u, key=key, threads=1), want), (u, isa)
        words = sn.Stream(key).words(want.shape, u, k=a.shape[-1])
        assert np.array_equal(sn.matmul(a, b, u, random_bits=words), want), u
        for batch, m, n in ((0, 0, 0), (1, 2, 36)):
            code, _ = ref.mad_dot(
                sn.encode(a[batch, m], "e5m2").tolist(), sn.encode(b[batch, :, n], "e5m2").tolist(), operand="e5m2",
                accumulator=u.accumulator, product=u.product, rounding="stochastic", stochastic_bits=r, random=name,
                key=key, batch=batch, m=m, n=n, **options,
            )  # fmt: skip
            assert code == sn.encode(want[batch, m, n : n + 1], u.result)[0], u


def test_the_paths_of_sources():
    paths = {
        (name, r): fast_of(unit(name, r)).path for name in KEYED for r in (4, 16) if r <= random_source(name).field
    }
    assert set(paths.values()) == {"stochastic", "wide"}
    assert {path for (_, r), path in paths.items() if r == 4} == {"stochastic"}


def test_a_part_has_the_bits_of_the_whole():
    """Rows in blocks, threads and keys of parts count from the whole product's first."""
    from softnum.arrays.environment import PartKey

    a, b = operands(3, m=9, batches=1)
    for name in ("lfsr32", "philox4x32-7/2"):
        whole = sn.matmul(a[0], b[0], unit(name), key=(7, 3))
        assert np.array_equal(sn.matmul(a[0], b[0], unit(name), key=(7, 3), threads=2), whole)
        part = sn.matmul(a[0, 3:], b[0], unit(name), key=PartKey(7, 3, 3, 6))
        assert np.array_equal(part, whole[3:])


def test_sums_and_convolutions():
    rng = np.random.Generator(np.random.Philox(2))
    x = sn.quantize(rng.standard_normal((2, 3, 6, 6), dtype=np.float32), "e5m2")
    w = sn.quantize(rng.standard_normal((4, 3, 3, 3), dtype=np.float32), "e5m2")
    u = unit("lfsr32", 12)
    got = sn.conv2d(x, w, u, key=9)
    patches = (
        np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5).reshape(32, 27)
    )
    want = sn.matmul(patches, w.reshape(4, 27).T, u, key=9)
    assert np.array_equal(got, want.reshape(2, 4, 4, 4).transpose(0, 3, 1, 2))
    u = unit("lfsr32", 12, accumulator="e6m3")
    words = words_of_steps(u.random_source, _core.philox_key(9, 0, 3), (1, 6), 36)[0]
    added = sn.sum(x.reshape(36, 6), u, axis=0, key=9)
    assert np.array_equal(added, sn.sum(x.reshape(36, 6), u, axis=0, random_bits=words))
    assert not np.array_equal(added, sn.sum(x.reshape(36, 6), replace(u, random="philox4x32-7"), axis=0, key=9))


# -- LFSRs -------------------------------------------------------------------------------------------------------------


def _bits_of_rtl(start: int, width: int, taps: int, clocks: int) -> list[int]:
    """The states of a Galois LFSR as a register of single flip-flops, one for each clock."""
    register = [start >> i & 1 for i in range(width)]  # register[0] leaves first
    states = []
    for _ in range(clocks):
        states.append(sum(bit << i for i, bit in enumerate(register)))
        out = register[0]
        register = [(register[i + 1] if i + 1 < width else 0) ^ (out & taps >> i & 1) for i in range(width)]
    return states


def test_an_lfsr_is_pulps():
    """Core 3 of PULP after reset: state ~3, a move for each rounding, up where the state's low 12 bits are below the
    12 bits that are cut off (src/lfsr_sr.sv and src/fpnew_rounding.sv of pulp-platform/cvfpu)."""
    u = unit("lfsr32@hart", 12)
    a, b = operands(11, m=1, k=40, n=1, batches=1)
    states = _bits_of_rtl(~3 & 0xFFFFFFFF, 32, 0x80000EA6, 40)
    acc = Fraction(0)
    for x, y, state in zip(a[0, 0], b[0, :, 0], states, strict=True):
        exact = acc + Fraction(float(x)) * Fraction(float(y))
        down = Fraction(float(sn.quantize(np.float64(float(exact)), "e6m9", rounding="toward_zero")))
        up = Fraction(float(sn.quantize(np.float64(float(exact)), "e6m9", rounding="away_from_zero")))
        cut = 0 if up == down else int((exact - down) / (up - down) * 4096)
        acc = up if state & 0xFFF < cut else down
    assert sn.dot(a[0, 0], b[0, :, 0], u, key=3) == float(acc)


@pytest.mark.parametrize("width", sorted(TAPS))
def test_known_taps_have_the_longest_period(width):
    """x is of order 2**width - 1 modulo the polynomial: no proper divisor's power of it is 1."""
    taps, one = TAPS[width], 1 << (width - 1)

    def moved(x):
        return x >> 1 ^ (taps if x & 1 else 0)

    def times(x, y):
        z = 0
        for i in range(width):
            z = moved(z) ^ (y if x >> i & 1 else 0)
        return z

    def power(n):
        z, square = one, moved(one)
        while n:
            z = times(z, square) if n & 1 else z
            square, n = times(square, square), n >> 1
        return z

    order = 2**width - 1
    primes = [p for p in range(2, 70000) if order % p == 0 and all(p % q for q in range(2, int(p**0.5) + 1))]
    assert power(order) == one
    assert all(power(order // p) != one for p in primes)


def test_a_state_of_zeros():
    """A hart's LFSR that begins with zeros stays there, as in hardware; those of a key begin with ones instead."""
    words = sn.Stream(2**32 - 1).words((1, 2), unit("lfsr32@hart"), k=3)
    assert words[0, 0, :, 0].tolist() == [0xFFFFFFFF] * 3
    starts = sn.Stream(1).words((64, 64), unit("lfsr8-b8"), k=1)[..., 0, 0]
    assert starts.max() < 0xFF  # the word of a state of zeros
    key = _core.philox_key(1, 0, 1)
    low = np.array([[_core.philox((0, n, m, 0), key)[0] & 0xFF for n in range(64)] for m in range(64)])
    assert (starts[low == 0] == 0).all()
    assert (low == 0).any()


# -- bits of the user's ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_bits_side_by_side(dtype):
    """uint8, uint16 and uint32 of shape (..., M, steps, N) give what words of shape (..., M, N, steps, 2) give."""
    a, b = operands(4)
    bits = 8 * np.dtype(dtype).itemsize
    rng = np.random.Generator(np.random.Philox(8))
    for (r, two), options in product(((4, False), (4, True), (bits - 2, False)), SHAPES):
        u = unit("given", r, two, **options)
        given = rng.integers(0, 1 << bits, (2, 3, u.steps(23), 37), dtype)
        pairs = np.stack([given, given >> bits // 2 if two else given], -1).astype(np.uint32).transpose(0, 1, 3, 2, 4)
        want = sn.matmul(a, b, u, random_bits=pairs)
        for isa in on_every_isa():
            assert np.array_equal(sn.matmul(a, b, u, random_bits=given, threads=2), want), (u, isa)
        assert np.array_equal(sn.matmul(a, b, u, random_bits=given, return_stats=True)[0], want)
        for part in (given[:, :1], given[:1]):  # shared by rows; by products
            whole = np.ascontiguousarray(np.broadcast_to(part, given.shape))
            assert np.array_equal(sn.matmul(a, b, u, random_bits=part), sn.matmul(a, b, u, random_bits=whole))
        assert np.array_equal(sn.matmul(a, b, u, random_bits=given[..., ::-1][..., ::-1]), want)
        assert np.array_equal(sn.matmul(a, b, u, random_bits=np.asfortranarray(given)), want)
    default = unit("philox4x32-10", 4)
    given = rng.integers(0, 1 << bits, (2, 3, 23, 37), dtype)
    same = sn.matmul(a, b, unit("given", 4), random_bits=given)
    assert np.array_equal(sn.matmul(a, b, default, random_bits=given), same)


def test_bits_that_do_not_fit():
    a, b = operands(4)
    given = np.zeros((2, 3, 23, 37), np.uint8)
    with pytest.raises(ValueError, match="random bits are given .random='given'.; give them as random_bits="):
        sn.matmul(a, b, unit("given"), key=1)
    with pytest.raises(ValueError, match="give them as random_bits="):
        sn.sum(a, unit("given"), key=1)
    with pytest.raises(ValueError, match="have 8 bits a step, fewer than stochastic_bits=9"):
        sn.matmul(a, b, unit("given", 9), random_bits=given)
    with pytest.raises(ValueError, match="have 4 bits a step for each of product and sum"):
        sn.matmul(a, b, unit("given", 5, two=True), random_bits=given)
    with pytest.raises(ValueError, match="nor do they, side by side, broadcast to"):
        sn.matmul(a, b, unit("given"), random_bits=given[..., :1])
    with pytest.raises(ValueError, match="Stream: the unit's random bits are given"):
        sn.Stream(1).words((2, 2), unit("given"), k=3)
    with pytest.raises(ValueError, match="no words can be made of a key for random='given'"):
        ref.random_words_matmul(1, 0, 0, 0, 0, 0, 4, False, "given")


@pytest.mark.parametrize(("accumulator", "r"), [("e6m9", 12), ("e6m9", 4), ("e8m12", 8), ("e6m9", 30), ("e11m40", 8)])
def test_near_ties(accumulator, r):
    """A step from C with the greatest word that rounds down and the least that rounds up, at places of a binade."""
    rng = np.random.Generator(np.random.Philox(r))
    u = unit("given", r, accumulator=accumulator)
    fmt, n = u.accumulator, 64
    c = sn.quantize(rng.standard_normal((1, n)), fmt)
    a, b = operands(5, m=1, k=1, n=n, batches=1)
    exact = [
        Fraction(float(z)) + Fraction(float(a[0, 0, 0])) * Fraction(float(y))
        for z, y in zip(c[0], b[0, 0], strict=True)
    ]
    ends = []
    for value in exact:
        ulp = Fraction(2) ** (
            max(floor_log2(*abs(value).as_integer_ratio()) if value else -999, fmt.emin) - fmt.mantissa_bits
        )
        down = abs(value) // ulp * ulp
        ends.append((down, ulp, int((abs(value) - down) / ulp * 2**r), -1 if value < 0 else 1))
    for less in (0, 1):  # the word with which floor(t * 2**r) + R is 2**r, and the one before
        words = np.array([[[max(0, min(2**r - cut, 2**r - 1) - less) for _, _, cut, _ in ends]]], np.uint32)
        up = [cut + int(word) >= 2**r for (_, _, cut, _), word in zip(ends, words[0, 0], strict=True)]
        want = [
            float(sign * (down + (ulp if goes else 0))) for (down, ulp, _, sign), goes in zip(ends, up, strict=True)
        ]
        assert less or sum(up) >= n // 8
        for isa in on_every_isa():
            got = sn.matmul(a[0], b[0], u, c, random_bits=words)
            assert got[0].astype(float).tolist() == want, (isa, less)


# -- where a source has no way -----------------------------------------------------------------------------------------


def test_where_sources_are_refused():
    a, b = operands(4)
    with pytest.raises(
        ValueError, match="the key is the number of column 0's LFSR, below 2\\*\\*32 and without a stream"
    ):
        sn.matmul(a, b, unit("lfsr32@hart"), key=(1, 2))
    inner = sn.MadUnit("e6m9", operand="e4m3fn", rounding="stochastic", random="lfsr32")
    with pytest.raises(ValueError, match="inner takes its random bits of 'lfsr32', the unit of 'philox4x32-10'"):
        sn.BlockDotUnit("e6m9", operand="mxfp8_e4m3", inner=inner)
    assert sn.BlockDotUnit("e6m9", operand="mxfp8_e4m3", inner=inner, random="lfsr32").stochastic
    with pytest.raises(ValueError, match="random bits that do not depend on those before, which random='lfsr32'"):
        sn.bound(unit("lfsr32"), a[0], b[0], key=1, failure=0.01)
    assert sn.bound(unit("philox4x32-7/2"), a[0], b[0], key=1, failure=0.01).probable.max() > 0


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["philox4x32-7/2", "lfsr16x12", "lfsr32@hart", "given"])
def test_records_name_the_source(name):
    u = unit(name, 8, two=True)
    assert f"random={name!r}" in repr(u)
    assert unit_of(u.expression) == u  # as files of vectors state it
    page = u.disclosure()
    assert sn.unit(page.to_json()) == u
    text = str(page)
    assert ("feedback" in text) == name.startswith("lfsr")
    assert ("Philox4x32-7 " in text) == ("-7" in name)


def test_a_trace_takes_the_source():
    a, b = operands(6)
    for name in ("philox4x32-7/4", "lfsr32x3"):
        u = unit(name, 8)
        assert u.trace(a[0, 0], b[0, :, 0], key=4).result == sn.matmul(a[0], b[0], u, key=4)[0, 0]
    with pytest.raises(ValueError, match="give them as random_bits="):
        unit("given").trace(a[0, 0], b[0, :, 0], key=4)
