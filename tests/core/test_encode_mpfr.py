"""encode against MPFR: 100,000 random values a format, and exact fractions where the format is wider than binary64."""

import random
from fractions import Fraction

import gmpy2
import numpy as np
import pytest

import softnum as sn
from softnum.formats.names import format as format_of
from tests.support.cases import cases
from tests.support.mpfr import MPFR_MODES, code_of, context

FORMATS = [
    "e5m2", "e4m3", "e6m9", "binary16", "bfloat16", "tf32", "binary32", "e8m30", "binary64", "e11m40", "e15m48", "e2m1",
]  # fmt: skip
COUNTS = {mode: 100_000 if mode == "nearest_even" else 10_000 for mode in MPFR_MODES}


def random_floats(fmt, rng: np.random.Generator, count: int) -> np.ndarray:
    """Binary64 numbers around the format's range: plain, near its grid points and midpoints, tiny and large."""
    low = max(fmt.emin - fmt.mantissa_bits - 3, -1070)
    high = min(fmt.emax + 2, 1022)
    x = np.ldexp(1 + rng.random(count), rng.integers(low, high + 1, count))
    keep = rng.integers(0, min(fmt.mantissa_bits, 50) + 3, count)  # bits of fraction kept
    exponent = np.frexp(x)[1] - 1 - keep
    on_grid = np.ldexp(np.round(np.ldexp(x, -np.clip(exponent, -1000, 1000))), np.clip(exponent, -1000, 1000))
    x = np.where(rng.random(count) < 0.5, on_grid, x)
    nudge = rng.integers(0, 4, count)
    x = np.where(nudge == 1, np.nextafter(x, np.inf), np.where(nudge == 2, np.nextafter(x, 0), x))
    return np.where(rng.random(count) < 0.5, -x, x)


def random_fractions(fmt, rng: random.Random, count: int) -> list[Fraction]:
    """Exact values finer than binary64: near grid points and midpoints of the format, and thirds."""
    out = []
    for _ in range(count):
        e = rng.randrange(fmt.emin - fmt.mantissa_bits - 2, fmt.emax + 2)
        significand = rng.getrandbits(fmt.precision + 2) | 1 << (fmt.precision + 1)
        nudge = rng.choice((Fraction(0), Fraction(0), Fraction(1, 3), Fraction(1, 2**90), Fraction(-1, 2**90)))
        out.append(rng.choice((1, -1)) * (significand + nudge) * Fraction(2) ** (e - fmt.precision - 1))
    return out


def compare(values, wants, codes, fmt, mode):
    bad = np.flatnonzero(codes.astype(np.uint64) != np.array(wants, np.uint64))
    if bad.size:
        i = int(bad[0])
        raise AssertionError(f"{fmt} {mode}: {values[i]!r} gave {codes[i]:#x}, MPFR {wants[i]:#x}; {bad.size} differ")


@cases("mode", MPFR_MODES)
@cases("name", FORMATS)
def test_encode_of_floats_equals_mpfr(name, mode):
    fmt = format_of(name)
    values = random_floats(fmt, np.random.default_rng(FORMATS.index(name)), COUNTS[mode])
    assert np.isfinite(values).all()
    with context(fmt, mode):
        wants = [code_of(gmpy2.mpfr(x), fmt) for x in values.tolist()]
    compare(values, wants, sn.encode(values, fmt, rounding=mode), fmt, mode)


@cases("mode", MPFR_MODES)
@cases("name", FORMATS)
def test_encode_of_fractions_equals_mpfr(name, mode):
    fmt = format_of(name)
    wide = fmt.precision > 53 or fmt.exponent_bits > 11
    values = random_fractions(
        fmt, random.Random(name), (20_000 if mode == "nearest_even" else 4_000) if wide else 1_000
    )
    with context(fmt, mode):
        wants = [code_of(gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator)), fmt) for x in values]
    array = np.empty(len(values), object)
    array[:] = values
    compare(values, wants, sn.encode(array, fmt, rounding=mode), fmt, mode)


def test_the_comparison_catches_one_ulp():
    fmt = format_of("binary16")
    values = np.array([1.5, 3.1, -0.1])
    with context(fmt, "nearest_even"):
        wants = [code_of(gmpy2.mpfr(x), fmt) for x in values.tolist()]
    codes = sn.encode(values, fmt)
    compare(values, wants, codes, fmt, "nearest_even")
    codes[1] += 1
    with pytest.raises(AssertionError, match="3.1"):
        compare(values, wants, codes, fmt, "nearest_even")


def test_encode_of_a_fraction_with_thousands_of_digits():
    """Its repr alone would raise; and beyond the range both ways."""
    x = Fraction(3, 2) * Fraction(2) ** 16000
    assert sn.decode(sn.convert(sn.encode(x / 2**16000, "e15m48"), "e15m48", "binary64"), "binary64") == 1.5
    assert sn.encode(x, "e15m48") == (16000 + 2**14 - 1) << 48 | 1 << 47
    assert sn.encode(x, "binary16") == 0x7C00
    assert sn.encode(-1 / x, "binary16", rounding="down") == 0x8001
    assert sn.encode(-x, "q4.4") == 0x80
