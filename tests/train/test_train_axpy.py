"""The update's multiply-add: rounding its result to a role is the one rounding of the exact value."""

from fractions import Fraction

import numpy as np

import softnum as sn
from softnum.train import load_design
from softnum.train.designs import RoleRounding
from softnum.train.engine.backend import NumpyBackend, bits_of_precision
from tests.support.cases import cases


def hard_cases(n=400):
    """Sums whose binary64 rounding lands on a midpoint of the target that the exact value is not, and random ones."""
    rng = np.random.Generator(np.random.Philox(5))
    y = np.float32(1) + rng.integers(0, 2**9, n).astype(np.float32) * np.float32(2.0**-9)
    x = np.where(np.arange(n) % 2, np.float32(2.0**-60), np.float32(-(2.0**-61))) * rng.choice([1, -1], n)
    midpoint = np.float32(2.0**-10)  # half an ulp of e6m9: added as an exact addend through y
    return (y + midpoint).astype(np.float32), x.astype(np.float32)


@cases("rounding", ["nearest_even", "nearest_away", "up", "down", "toward_zero", "stochastic"])
@cases("fmt", ["e6m9", "bfloat16", "q4.4"])
def test_one_rounding_of_the_exact_value(fmt, rounding):
    y, x = hard_cases()
    alpha = float(np.float32(0.9))
    role, key = RoleRounding(sn.format(fmt), rounding, None, 16), (5, 6)
    got = NumpyBackend().axpy(alpha, x, y, role, key)
    exact = np.array([Fraction(float(b)) + Fraction(alpha) * Fraction(float(a)) for a, b in zip(x, y, strict=True)])
    options = {"key": key, "stochastic_bits": 16} if rounding == "stochastic" else {}
    assert np.array_equal(sn.encode(got, fmt), sn.encode(exact, fmt, rounding=rounding, **options))


def test_the_cases_are_hard():
    """Rounding to binary64 first gives other results: the test above can fail."""
    y, x = hard_cases()
    naive = sn.quantize(y.astype(np.float64) + 0.9 * x.astype(np.float64), "e6m9")
    once = NumpyBackend().axpy(float(np.float32(0.9)), x, y, RoleRounding(sn.format("e6m9")), None)
    assert not np.array_equal(naive, once)


def test_infinities_and_zeros_pass():
    x = np.float32([np.inf, -np.inf, 0.0, -0.0, 1.0])
    y = np.float32([1.0, np.inf, -0.0, -0.0, -1.0])
    got = NumpyBackend().axpy(1.0, x, y, RoleRounding(sn.format("binary32")), None)
    assert np.array_equal(got, np.array([np.inf, np.nan, 0.0, 0.0, 0.0]), equal_nan=True)
    assert list(np.signbit(got[2:])) == [False, True, False]


def ulps_of_one(n=300):
    """(alpha, x, y) in float64: sums within a few units of binary64's and binary32's last places of ties."""
    rng = np.random.Generator(np.random.Philox(8))
    y = 1 + rng.integers(0, 2**24, n) * 2.0**-24
    x = rng.choice([1.0, -1.0], n) * 2.0 ** rng.integers(-80, -20, n) * (1 + rng.integers(0, 2**52, n) * 2.0**-52)
    y[: n // 2] = rng.standard_normal(n // 2)
    return float(np.float32(0.1)), x, y


@cases("rounding", ["nearest_even", "toward_zero", "up", "down", "stochastic"])
@cases(
    ("fmt", "dtype"),
    [("binary64", "f8"), ("e8m40", "f8"), ("binary32", "f8"), ("e6m9", "f8"), ("binary32", "f4"), ("e6m9", "f4")],
)
def test_every_role_is_rounded_once(fmt, dtype, rounding):
    alpha, x, y = ulps_of_one()
    x, y = x.astype(dtype), y.astype(dtype)
    role = RoleRounding(sn.format(fmt), rounding, None, 32)  # 24 + 32 bits are more than rounding to odd can feed
    key = (3, 4)
    got = NumpyBackend(dtype).axpy(alpha, x, y, role, key)
    exact = np.array([Fraction(float(b)) + Fraction(alpha) * Fraction(float(a)) for a, b in zip(x, y, strict=True)])
    codes = sn.encode(exact, fmt, rounding=rounding, key=key if rounding == "stochastic" else None)
    assert got.dtype == dtype
    assert np.array_equal(got, sn.decode(codes, fmt))


def test_a_wrapped_sum_keeps_its_low_bits():
    x, y = np.float32([2.0**-4, 2.0**-4]), np.float32([2.0**60, 2.0**30])
    role = RoleRounding(sn.format("q4.4"), "nearest_even", "wrap", 32)
    assert NumpyBackend().axpy(1.0, x, y, role, None).tolist() == [2.0**-4, 2.0**-4]


def test_precision_of_tables(tmp_path):
    posit8 = load_design("h-posit8").roles["weights"].format
    assert bits_of_precision(posit8) == 5
    x = np.arange(1, 9) * 0.125 * (1 + 2.0**-52)
    role = RoleRounding(posit8)
    got = NumpyBackend(np.float64).axpy(0.5, x, x, role, None)
    exact = [Fraction(3, 2) * Fraction(v) for v in x]
    values = sn.decode(np.arange(256, dtype=np.uint8), posit8)
    for value, want in zip(got, exact, strict=True):
        assert abs(Fraction(value) - want) == min(abs(Fraction(v) - want) for v in values[np.isfinite(values)])


def test_tables_of_many_bits_are_rounded_once_too():
    table = [0.0, 0.1, 0.1 + 2.0**-56, -0.1, 0.7, 0.7 - 2.0**-53, 1.0, -3.0]
    role = RoleRounding(sn.CustomFormat.from_table(table))
    assert bits_of_precision(role.format) > 52
    x, y = np.array([1.0, 2.0**-57, -(2.0**-60), 2.0**-55, 3.5]), np.array([0.0, 0.1, 0.1, 0.7, -1.0])
    got = NumpyBackend(np.float64).axpy(0.5, x, y, role, None)
    for a, b, value in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        exact = Fraction(b) + Fraction(a) / 2
        best = min(abs(Fraction(v) - exact) for v in table)
        assert value in [v for v in table if abs(Fraction(v) - exact) == best], (a, b)
