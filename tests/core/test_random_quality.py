"""The quality of sources in the layout that units use them in: bits shared between rows, columns, steps and draws, and
the bias and variance of sums.

Bounds are 5 standard deviations of what independent bits give, so that a sound source fails one of some hundred of
them once in ten thousand times; keys are fixed, so that no run differs from another.
"""

from itertools import product
from math import sqrt

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.sources import random_source

PHILOX = ("philox4x32-10", "philox4x32-7", "philox4x32-10/2", "philox4x32-7/2", "philox4x32-7/4")
LEAPING = ("lfsr32x16", "lfsr24x24")  # moved further than a step takes bits
KEYS = ((1, 0), (2**40 + 3, 9))


def unit(random, r=4, **options):
    return sn.MadUnit("e8m10", operand="e5m2", rounding="stochastic", stochastic_bits=r, random=random, **options)


def words(name, r, key, shape=(48, 48), k=48):
    """The numbers of r bits that sums round with, [row, column, step], from -1 to 1 and of mean 0."""
    drawn = sn.Stream(key).words(shape, unit(name, r), k=k)[..., 1] & np.uint32((1 << r) - 1)
    return (2 * drawn.astype(np.float64) + 1) / 2**r - 1


def correlation(x, y) -> float:
    return float(np.mean(x * y) / np.mean(x * x))


def neighbours(x, axis: int, lag: int):
    n = x.shape[axis]
    return np.take(x, range(n - lag), axis), np.take(x, range(lag, n), axis)


def lagged(x):
    """The correlation of numbers that lie apart by a few rows, columns or steps, or by both of two."""
    for axis, lag in product(range(3), (1, 2, 3, 4, 8, 16)):
        yield (axis, lag), correlation(*neighbours(x, axis, lag))
    for one, two in ((0, 1), (0, 2), (1, 2)):
        first, second = neighbours(x, one, 1)
        yield (one, two), correlation(neighbours(first, two, 1)[0], neighbours(second, two, 1)[1])
    yield "row and column", correlation(x, x.transpose(1, 0, 2))


@pytest.mark.parametrize(("name", "r"), [*((n, r) for n in PHILOX for r in (1, 4, 8)), *((n, 4) for n in LEAPING)])
def test_words_do_not_hang_together(name, r):
    for key in KEYS:
        x = words(name, r, key)
        assert abs(x.mean()) < 5 * sqrt(1 / 3 / x.size) * sqrt(3)
        for where, found in lagged(x):
            pairs = x.size - (48 * 48 if where == "row and column" else 0)  # whose diagonal is the words themselves
            expected = 1 / 48 if where == "row and column" else 0
            assert abs(found - expected) < 6 / sqrt(pairs * 2 / 3), (where, key)
        values, counts = np.unique(x, return_counts=True)
        assert len(values) == 2**r
        n, p = x.size, 2.0**-r
        assert abs(counts - n * p).max() < 5.5 * sqrt(n * p * (1 - p))


@pytest.mark.parametrize("name", ["philox4x32-10", "philox4x32-7", "philox4x32-7/2"])
def test_product_and_sum_have_bits_of_their_own(name):
    u = sn.MadUnit(
        "e8m10", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=4, random=name
    )  # fmt: skip
    drawn = (sn.Stream(5).words((48, 48), u, k=48) & np.uint32(15)).astype(np.float64) - 7.5
    assert abs(correlation(drawn[..., 0], drawn[..., 1])) < 5 / sqrt(48**3)
    later = drawn[:, :, 1:, 0], drawn[:, :, :-1, 1]
    assert abs(correlation(*later)) < 5 / sqrt(48**3)


def moved_apart(taps: int, r: int, moves: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of an LFSR before and after so many moves, of r bits, over all states: only their low bits matter."""
    states = np.arange(2 ** (r + moves), dtype=np.int64)
    later = states
    for _ in range(moves):
        later = later >> 1 ^ (later & 1) * taps
    return ~states % 2**r, ~later % 2**r


def together(taps: int, r: int, moves: int, cut: int, n: int) -> float:
    """The variance of how many of n roundings go up where `cut` of 2**r are cut off, `moves` moves a step. Words whose
    steps are r moves apart have no bit in common, and are independent if those of a state are."""
    p = cut / 2**r
    variance = n * p * (1 - p)
    for lag in range(1, -(-r // moves)):
        up, later = (words + cut >= 2**r for words in moved_apart(taps, r, lag * moves))
        variance += 2 * (n - lag) * (float(np.mean(up & later)) - p * p)
    return variance


def sums(name, cut, r=4, n=256, shape=(64, 64), key=11):
    """Sums of n terms, each 5/16 and the like of a last place: binomial if bits are independent."""
    a = np.full((shape[0], n), cut / 16, np.float32)
    b = np.ones((n, shape[1]), np.float32)
    start = np.full(shape, 1024, np.float32)  # where a last place is 1, up to 2048
    return sn.matmul(a, b, unit(name, r), start, key=key) - 1024


def check_beside_independent_bits(up, p, n, spread):
    """Of n roundings an output: their mean, their variance, and rows and columns beside each other."""
    outputs = up.size
    assert abs(up.mean() - n * p) < 5 * sqrt(n * p * (1 - p) / outputs)
    assert abs(up.var() / (n * p * (1 - p)) - 1) < spread
    for axis in (0, 1):
        first, second = neighbours(up - up.mean(), axis, 1)
        assert abs(correlation(first, second)) < 5 / sqrt(outputs)


@pytest.mark.parametrize("name", [*PHILOX, *LEAPING])
def test_sums_have_the_mean_and_variance_of_independent_bits(name):
    for cut in (1, 5, 8, 14):
        up = sums(name, cut)
        p, n, outputs = cut / 16, 256, up.size
        check_beside_independent_bits(up, p, n, 5 * sqrt(2 / outputs))


@pytest.mark.parametrize("name", [*PHILOX, *LEAPING, "lfsr32", "lfsr16"])
def test_one_rounding_an_output(name):
    """Exact sums take the bits of step 0 alone, of which an LFSR has those that it begins with."""
    u = sn.ExactDotUnit("e8m10", operand="e5m2", rounding="stochastic", stochastic_bits=4, random=name)
    for cut in (1, 5, 8, 14):
        a, b = np.full((160, 1), cut / 16, np.float32), np.ones((1, 160), np.float32)
        up = sn.matmul(a, b, u, np.full((160, 160), 1024, np.float32), key=23) - 1024
        assert set(np.unique(up)) == {0, 1}
        p = cut / 16
        check_beside_independent_bits(up, p, 1, abs(1 - 2 * p) / sqrt(p * (1 - p)) * 5 / 160 + 0.002)


@pytest.mark.parametrize("name", [*PHILOX, *LEAPING])
def test_one_rounding_a_block(name):
    """Blocks of exact sums take the bits of steps K, K + 1, ... alone."""
    fmt, blocks = sn.BlockFormat("e5m2", "e8m0fnu", 2), 64
    u = sn.BlockDotUnit("e8m10", operand=fmt, rounding="stochastic", stochastic_bits=4, random=name)
    for cut in (5, 14):
        a, b = np.zeros((64, 2 * blocks), np.float32), np.ones((2 * blocks, 64), np.float32)
        a[:, ::2] = cut / 16
        x, y = sn.array(a, fmt, axis=-1), sn.array(b, fmt, axis=-2)
        up = sn.matmul(x, y, u, np.full((64, 64), 1024, np.float32), key=29) - 1024
        check_beside_independent_bits(up, cut / 16, blocks, 5 * sqrt(2 / up.size))


@pytest.mark.parametrize("name", ["lfsr32", "lfsr16", "lfsr32x2", "lfsr32x3", "lfsr31-48000000"])
def test_an_lfsr_that_moves_less_spreads_sums(name):
    """Steps share bits: a sum's mean is right, and its variance what the shared bits make of it."""
    source = unit(name).random_source
    for cut in (1, 5, 8, 12):
        up = sums(name, cut)
        p, n, outputs = cut / 16, 256, up.size
        variance = together(source.taps, 4, source.shifts, cut, n)
        assert abs(up.mean() - n * p) < 5 * sqrt(variance / outputs)
        assert abs(up.var() / variance - 1) < 6 * sqrt(2 / outputs)
    x = words(name, 4, KEYS[0])
    first, second = (2 * v + 1 - 16 for v in moved_apart(source.taps, 4, source.shifts))
    assert abs(correlation(*neighbours(x, 2, 1)) - np.mean(first * second) / np.mean(first * first)) < 0.02
    for axis in (0, 1):
        assert abs(correlation(*neighbours(x, axis, 1))) < 0.03


def test_taps_among_the_bits_of_a_step():
    """What the variance of 256 roundings of 8 bits grows by, as the documentation says: more by bits that merely move
    on than by PULP's, of which some are changed on the way."""
    growth = {}
    for name in ("lfsr31-48000000", "lfsr32"):
        taps = random_source(name).taps
        cuts = {cut / 256: together(taps, 8, 1, cut, 256) for cut in range(16, 256, 16)}
        growth[name] = max(variance / (256 * p * (1 - p)) for p, variance in cuts.items())
    assert 2.4 < growth["lfsr31-48000000"] < 2.5
    assert 1.6 < growth["lfsr32"] < 1.7


def test_harts_repeat_in_every_row():
    """One LFSR a column that begins anew in each row: sums of rows hang together wholly, those of columns in part."""
    x = words("lfsr32@hart", 4, 3)
    assert correlation(*neighbours(x, 0, 1)) == 1
    up = sums("lfsr32@hart", 5)
    assert (up == up[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PHILOX, *LEAPING])
def test_words_over_many_keys(name):
    """The same with 64 keys, whose words together are 7 million."""
    found = {}
    for key in range(64):
        x = words(name, 4, (key, 5))
        for where, value in lagged(x):
            found.setdefault(where, []).append(value)
    for where, values in found.items():
        if where != "row and column":
            assert abs(np.mean(values)) < 5 / sqrt(64 * 48**3 * 2 / 3), where


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PHILOX, *LEAPING])
def test_long_sums_over_many_outputs(name):
    for cut in range(1, 16):
        up = sums(name, cut, n=1024, shape=(256, 256), key=cut)
        p, n, outputs = cut / 16, 1024, up.size
        assert abs(up.mean() - n * p) < 5 * sqrt(n * p * (1 - p) / outputs)
        assert abs(up.var() / (n * p * (1 - p)) - 1) < 5 * sqrt(2 / outputs)
