"""Streams: keys as values, their children, jumps and words."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.arrays.environment import seed_and_stream
from softnum.arrays.sources import philox
from softnum.runtime import _core

RNG = np.random.default_rng(3)
X = RNG.standard_normal((9, 7)).astype(np.float32)
TOP = 2**64 - 1


def units():
    both = {"rounding": "stochastic", "product": "e5m2"}
    inner = sn.MadUnit("e8m3", operand="e4m3fn", product="e8m2", rounding="stochastic", stochastic_bits=9, lanes=3)
    return [
        sn.MadUnit("e6m3", operand="e5m2", rounding="stochastic", stochastic_bits=20),
        sn.MadUnit("e6m3", operand="e5m2", stochastic_bits=16, lanes=3, chunk=5, **both),
        sn.MadUnit("e6m3", operand="e5m2", stochastic_bits=17, **both),
        sn.MadUnit("e6m3", operand="e5m2", product="e4m2", product_rounding="stochastic", stochastic_bits=5),
        sn.ExactDotUnit("e6m3", operand="e5m2", rounding="stochastic"),
        sn.BlockDotUnit("e8m3", operand="mxfp8_e4m3", rounding="stochastic", stochastic_bits=8, inner=inner),
        sn.BlockDotUnit("e8m3", operand="mxfp8_e4m3", product="e8m2", rounding="stochastic", inner=inner),
        sn.BlockDotUnit("e8m3", operand="nvfp4", product="e8m2", rounding="stochastic", stochastic_bits=7),
    ]


@pytest.mark.parametrize("key", [7, (7, 0), (7, 3), (TOP, TOP), (0, 2**40 + 5)])
def test_the_bits_of_the_integer_and_of_the_pair(key):
    s = sn.Stream(key)
    assert s == seed_and_stream(key)
    how = {"rounding": "stochastic", "stochastic_bits": 11}
    for fmt in ("e5m2", "q4.4", "mxfp8_e4m3", "binary8p3se"):
        assert np.array_equal(sn.quantize(X, fmt, key=s, **how), sn.quantize(X, fmt, key=key, **how))
    codes = sn.encode(X, "binary32")
    for function in (sn.sqrt, sn.exp):
        options = {"out_fmt": "e5m2", **how}
        results = (
            function(np.abs(codes.view(np.int32)).view(np.uint32), "binary32", key=k, **options) for k in (s, key)
        )
        assert np.array_equal(*results)
    x = sn.array(X, "binary32")
    assert np.array_equal(*(sn.add(x, x.T[:7].T[:, :7], out_fmt="e5m2", key=k, **how).codes for k in (s, key)))
    unit = sn.MadUnit("e6m3", operand="e5m2", **how)
    a = sn.quantize(X, "e5m2")
    assert np.array_equal(*(sn.matmul(a, a.T, unit, key=k) for k in (s, key)))
    assert np.array_equal(*(sn.sum(a, unit, axis=0, key=k) for k in (s, key)))
    assert np.array_equal(*(unit.trace(a[0], a[1], key=k).result for k in (s, key)))
    image = a[:8, :6].reshape(1, 3, 4, 4)
    assert np.array_equal(*(sn.conv2d(image, image, unit, key=k) for k in (s, key)))


def test_operators_and_kernels():
    from softnum.kernels.device.elementwise.launch import words_of
    from softnum.kernels.device.products.gemm import random_words
    from softnum.tile.arithmetic import key_of

    s, pair = sn.Stream(7, 3), (7, 3)
    assert words_of(True, s, None, (5,)) == words_of(True, pair, None, (5,))
    unit = units()[0]
    assert random_words(unit, s, None, (2, 2), 3)[:2] == random_words(unit, pair, None, (2, 2), 3)[:2]
    assert [key_of(s, step) for step in (0, 5)] == [key_of(pair, step) for step in (0, 5)]


def test_values():
    s = sn.Stream(7, 3)
    assert s == sn.Stream((7, 3)) == sn.Stream(s) == (7, 3)
    assert s != sn.Stream(7)
    assert len({s, sn.Stream(7, 3), sn.Stream(7)}) == 2
    assert (s.seed, s.stream) == (7, 3)
    assert eval(repr(s), {"Stream": sn.Stream}) == s
    for same in (pickle.loads(pickle.dumps(s)), copy.copy(s), copy.deepcopy(s)):
        assert type(same) is sn.Stream
        assert same == s
    for change in (lambda: setattr(s, "seed", 1), lambda: setattr(s, "more", 1)):
        with pytest.raises(AttributeError):
            change()
    assert type(sn.Stream(np.uint64(7)).seed) is int


@pytest.mark.parametrize("arguments", [(-1,), (2**64,), (1.5,), (True,), ("7",), ((1, 2, 3),), (1, 2**64), (1, True)])
def test_refused(arguments):
    with pytest.raises(ValueError, match=r"0\.\.2\*\*64-1"):
        sn.Stream(*arguments)


def test_refused_jumps_and_children():
    s = sn.Stream(7, 2**33 - 3)
    assert s.jumped(2) == (7, 2**33 - 1)
    with pytest.raises(ValueError, match=r"a jump by 3 leaves the range of Stream\(7, 8589934589\), which has 2 left"):
        s.jumped(3)
    for n in (-1, 1.0, True):
        with pytest.raises(ValueError, match="a jump must be an integer"):
            s.jumped(n)
    assert s.spawn(0) == ()
    [last] = s.spawn(1, first=2**32 - 1)
    assert last.stream == 2**64 - 2**32
    with pytest.raises(ValueError, match=r"n must be an integer in 0\.\.0, got 1"):
        s.spawn(1, first=2**32)
    with pytest.raises(ValueError, match="already contains a stream; leave out stream="):
        sn.Stream((1, 2), 3)
    with pytest.raises(ValueError, match="words for a matrix product"):
        s.words(3, sn.unit("x86_avx512_bf16"))


def test_golden():
    s = sn.Stream(7)
    assert s.spawn(2) == ((12555307977505995268, 0), (12555307977505995268, 2**32))
    assert s.spawn(1, first=1)[0].jumped(5).spawn(1) == ((17923455469087814717, 0),)
    assert [f"{w:08x}" for w in s.words(5)] == ["bfcd0594", "1aceb1c1", "6dd6c7ce", "85262a86", "220c2c7b"]
    # by the definition: the first two words of Philox, the parent's seed its key
    words = ref.philox4x32_10((7, 0), (0, 0, 6, 0))
    assert s.spawn(1)[0].seed == words[0] | words[1] << 32


def test_no_pair_twice():
    """Parents, children and jumps of both, three generations: no pair and no 64 bits of key are there twice."""
    generations, everything = [[sn.Stream(7), sn.Stream(7, 2**32), sn.Stream(8)]], []
    for _ in range(3):
        generations.append([child for s in generations[-1] for child in s.spawn(6)])
    for s in (s for generation in generations for s in generation):
        everything += [s, *(s.jumped(n) for n in (2, 3, 2**31 if s.stream < 2**31 else 4))]
    assert len(set(everything)) == len(everything) > 3000
    assert len({_core.philox_key(*s, domain) for s in everything for domain in range(4)}) == 4 * len(everything)
    assert sn.Stream(7).spawn(5) == sn.Stream(7).spawn(2) + sn.Stream(7).spawn(3, first=2)
    assert sn.Stream(7).jumped(2).jumped(3) == sn.Stream(7).jumped(5)


def test_the_seed_of_children_is_not_the_parents(monkeypatch):
    """Where Philox gives the parent's seed, the next counter decides."""
    seeds = iter([(5, 0, 1, 1), (6, 0, 1, 1)])
    monkeypatch.setattr("softnum.arrays.streams._core.philox", lambda counter, key: next(seeds))
    assert sn.Stream(5).spawn(1) == ((6, 0),)


def test_children_give_other_words():
    family = [sn.Stream(7), *sn.Stream(7).spawn(3), sn.Stream(7).jumped()]
    words = np.stack([s.words(10_000) for s in family]).astype(np.float64)
    assert np.unique(np.stack([s.words(10_000) for s in family])).size > 49_000  # of 50,000; birthdays of 2**32
    correlation = np.corrcoef(words) - np.eye(len(family))
    assert np.abs(correlation).max() < 0.05


def test_philox_of_many_counters():
    counters = RNG.integers(0, 2**32, (4, 50))
    want = [ref.philox4x32_10((3, 2**32 - 1), column) for column in counters.T.tolist()]
    assert np.stack(philox(counters, (3, 2**32 - 1)), -1).tolist() == list(map(list, want))


def test_words_of_elements():
    s = sn.Stream(9, 2**63)
    assert s.words((3, 5)).ravel().tolist() == [ref.random_word_elementwise(9, 2**63, i) for i in range(15)]
    assert s.words(()).shape == ()
    for fmt in ("e5m2", "q4.4", "mxfp8_e4m3"):
        options = {"rounding": "stochastic", "stochastic_bits": 7}
        by_words = sn.quantize(X, fmt, random_bits=s.words(X.shape), **options)
        assert np.array_equal(by_words, sn.quantize(X, fmt, key=s, **options))


@pytest.mark.parametrize("unit", units(), ids=map(str, range(len(units()))))
def test_words_of_products(unit):
    s = sn.Stream(9, 1)
    for k, batch, with_c in product((1, 40), ((), (2,)), (False, True)):
        a, b = (RNG.standard_normal((*batch, *shape), dtype=np.float32) for shape in ((3, k), (k, 2)))
        if isinstance(unit, sn.BlockDotUnit):
            if batch:
                continue
            a, b = (sn.array(x, fmt, axis=axis) for x, fmt, axis in zip((a, b), unit.operand, (-1, 0), strict=True))
        else:
            a, b = sn.quantize(a, "e5m2"), sn.quantize(b, "e5m2")
        c = np.full((*batch, 3, 2), 0.375, np.float32) if with_c else None
        words = s.words((*batch, 3, 2), unit, k=k, c=with_c)
        got = sn.matmul(a, b, unit, c, key=s)
        assert np.isfinite(got).all()
        assert np.array_equal(sn.matmul(a, b, unit, c, random_bits=words), got)
        if not isinstance(unit, (sn.BlockDotUnit, sn.ExactDotUnit)):
            at = (*(0,) * len(batch), 2, 1, min(k, 6) - 1)
            bits = unit.stochastic_bits
            want = ref.random_words_matmul(9, 1, 0, 2, 1, at[-1], bits, unit.two_roundings)
            assert tuple(words[at] & np.uint32((1 << bits) - 1)) == want
