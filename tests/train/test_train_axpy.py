"""The update's multiply-add: rounding its result to a role is the one rounding of the exact value."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.train.backend import NumpyBackend


def hard_cases(n=400):
    """Sums whose binary64 rounding lands on a midpoint of the target that the exact value is not, and random ones."""
    rng = np.random.Generator(np.random.Philox(5))
    y = np.float32(1) + rng.integers(0, 2**9, n).astype(np.float32) * np.float32(2.0**-9)
    x = np.where(np.arange(n) % 2, np.float32(2.0**-60), np.float32(-(2.0**-61))) * rng.choice([1, -1], n)
    midpoint = np.float32(2.0**-10)  # half an ulp of e6m9: added as an exact addend through y
    return (y + midpoint).astype(np.float32), x.astype(np.float32)


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "up", "down", "toward_zero", "stochastic"])
@pytest.mark.parametrize("fmt", ["e6m9", "bfloat16", "q4.4"])
def test_one_rounding_of_the_exact_value(fmt, rounding):
    y, x = hard_cases()
    alpha = float(np.float32(0.9))
    options = {"rounding": rounding}
    if rounding == "stochastic":
        words = np.random.Generator(np.random.Philox(6)).integers(0, 2**32, len(x), dtype=np.uint32)
        options.update(random_bits=words, stochastic_bits=16)
    got = sn.encode(NumpyBackend().axpy(alpha, x, y), fmt, **options)
    exact = np.array([Fraction(float(b)) + Fraction(alpha) * Fraction(float(a)) for a, b in zip(x, y, strict=True)])
    assert np.array_equal(got, sn.encode(exact, fmt, **options))


def test_the_cases_are_hard():
    """Rounding to binary64 first gives other results: the test above can fail."""
    y, x = hard_cases()
    naive = sn.encode(y.astype(np.float64) + 0.9 * x.astype(np.float64), "e6m9")
    assert not np.array_equal(naive, sn.encode(NumpyBackend().axpy(float(np.float32(0.9)), x, y), "e6m9"))


def test_infinities_and_zeros_pass():
    x = np.float32([np.inf, -np.inf, 0.0, -0.0, 1.0])
    y = np.float32([1.0, np.inf, -0.0, -0.0, -1.0])
    got = NumpyBackend().axpy(1.0, x, y)
    assert np.array_equal(got, np.array([np.inf, np.nan, 0.0, 0.0, 0.0]), equal_nan=True)
    assert list(np.signbit(got[2:])) == [False, True, False]
