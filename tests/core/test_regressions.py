"""Defects that reviews found, one test each."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases

ONE = np.ones((1, 1), np.float32)


@pytest.mark.parametrize("fmt", ["e5m2", "q4.4", "e8m0fnu"])
def test_a_read_only_out_is_refused_and_left_alone(fmt):
    out = np.zeros(100, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="quantize: out is read-only"):
        sn.quantize(np.ones(100, np.float32), fmt, out=out)
    product = np.zeros((1, 1), np.float32)
    product.flags.writeable = False
    with pytest.raises(ValueError, match="matmul: out is read-only"):
        sn.matmul(ONE, ONE, sn.MadUnit("e6m9", operand="e5m2"), out=product)
    assert not out.any() and not product.any()


def test_out_of_another_type_is_named():
    with pytest.raises(ValueError, match=r"quantize: out must be .*shape \(2,\) and type float32, got float64"):
        sn.quantize(np.ones(2, np.float32), "e5m2", out=np.zeros(2))
    with pytest.raises(ValueError, match="matmul: out must be .*got list"):
        sn.matmul(ONE, ONE, sn.MadUnit("e6m9", operand="e5m2"), out=[1])


@pytest.mark.parametrize(("bias_a", "bias_b", "exponent"), [(-140, 154, 145), (200, -180, -190)])
def test_operands_beyond_binary32_do_not_take_its_path(bias_a, bias_b, exponent):
    unit = sn.MadUnit("e6m9", operand=(sn.FloatFormat(4, 3, bias=bias_a), sn.FloatFormat(4, 3, bias=bias_b)))
    assert fast_of(unit) is None or fast_of(unit).wide
    assert sn.matmul(np.full((1, 1), 2.0**exponent), np.full((1, 1), 2.0**-exponent), unit) == 1


@pytest.mark.parametrize("specials", ["none", "fn"])
@pytest.mark.parametrize("rounding", ["up", "nearest_even", "away_from_zero", "toward_zero"])
def test_unsigned_formats_of_64_bits_do_not_wrap(specials, rounding):
    fmt = sn.FloatFormat(3, 61, signed=False, specials=specials)
    code = np.uint64(fmt.max_code)
    got, flags = sn.add([code], [code], fmt, rounding=rounding, return_flags=True)
    want, want_flags = ref.add(int(code), int(code), fmt, rounding=rounding)
    assert (int(got[0]), int(flags[0])) == (want, int(want_flags))
    got, flags = sn.add([code], np.uint64([1]), fmt, rounding=rounding, return_flags=True)
    want, want_flags = ref.add(int(code), 1, fmt, rounding=rounding)
    assert (int(got[0]), int(flags[0])) == (want, int(want_flags))


@cases("fmt", ["uq0.64", "q1.63", "uq4.4"])
@cases("rounding", ["nearest_even", "up", "down", "nearest_away"])
def test_wrapping_keeps_the_fraction(fmt, rounding):
    fmt = sn.format(fmt)
    for top in (0, 1, 2**63, 2**200):
        for part in (Fraction(2, 3), Fraction(1, 2), Fraction(1, 3)):
            value = top + part * Fraction(fmt.epsilon) + Fraction(fmt.epsilon) * 5
            got = sn.encode(np.array([value], object), fmt, rounding=rounding, overflow="wrap")[0]
            assert int(got) == ref.encode(value, fmt, rounding=rounding, overflow="wrap")[0]


def test_python_integers_are_not_rounded_on_the_way_in():
    assert sn.encode([2**62 + 1, 2**63], "uq64.0").tolist() == [2**62 + 1, 2**63]
    assert sn.encode([2**62 + 1, -1], "q64.0").tolist() == [2**62 + 1, 2**64 - 1]
    assert sn.encode([2**62 + 1, 0.5], "uq63.1").tolist() == [2**63 + 2, 1]
    with pytest.raises(ValueError, match="quantize: a number is not exact in float64"):
        sn.quantize([2**53 + 1, 0.5], "binary64")
    with pytest.raises(ValueError, match="dot: a number is not exact in float64"):
        sn.dot(np.ones(1), np.ones(1), sn.MadUnit("binary64", operand="binary64"), 2**53 + 1)
    with pytest.raises(ValueError, match=r"from_table: values\[0\] is 9007199254740993, which is not exact"):
        sn.CustomFormat.from_table([2**53 + 1, 0])


def test_one_exponent_bit():
    for m in (1, 2, 3):
        fmt = sn.FloatFormat(1, m)
        values = [ref.decode(code, fmt) for code in range(fmt.max_code + 1)]
        assert fmt.max == max(v.fraction for v in values)
    with pytest.raises(ValueError, match="leaves no finite value except zero"):
        sn.FloatFormat(1, 3, lowest_binade="zero")


def test_a_chunk_longer_than_any_sum():
    rng = np.random.Generator(np.random.Philox(0))
    a, b = (sn.quantize(rng.normal(size=shape), "e2m1fn") for shape in ((3, 7), (7, 5)))
    words = rng.integers(0, 2**32, (3, 5, 8, 2), dtype=np.uint32)
    units = [sn.MadUnit("e5m2", operand="e2m1fn", rounding="sr", chunk=c) for c in (100, 2**62 - 1)]
    got = [sn.matmul(a, b, unit, random_bits=words) for unit in units]
    assert np.array_equal(*got)
    with pytest.raises(ValueError, match=r"chunk must be a positive integer below 2\*\*62, got"):
        sn.MadUnit("e5m2", operand="e2m1fn", chunk=2**63)


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away"])
def test_a_nan_is_blamed_on_the_format_that_lacks_it(rounding):
    """inf - inf in an outer sum that has NaN, above a product format that has none, is NaN on every path."""
    parts = dict(operand="e2m1fn", product="e2m1fn", chunk=2, outer_accumulator="e5m2")
    unit = sn.MadUnit(sn.FloatFormat(2, 2), rounding=rounding, **parts)
    assert np.isnan(sn.matmul(np.float32([[6, 6, -6, -6]]), np.ones((4, 1), np.float32), unit))


@pytest.mark.parametrize(("m", "k", "n"), [(2, 0, 3), (0, 2, 3), (2, 2, 0)])
def test_random_bits_of_empty_products(m, k, n):
    unit = sn.MadUnit("e5m2", operand="e2m1fn", rounding="sr")
    words = np.zeros((m, n, unit.steps(k), 2), np.uint32)
    got = sn.matmul(np.zeros((m, k), np.float32), np.zeros((k, n), np.float32), unit, random_bits=words)
    assert got.shape == (m, n) and not got.any()


def test_a_refused_quantize_in_place_changes_nothing():
    x = np.float32([1.1, np.nan, 2.2])
    before = x.copy()
    with pytest.raises(ValueError, match="NaN or infinite, and q4.4 has no code"):
        sn.quantize(x, "q4.4", out=x)
    assert np.array_equal(x, before, equal_nan=True)
    y = np.float32([1.1, 2.2])
    assert sn.quantize(y, "q4.4", out=y) is y and y.tolist() == [1.125, 2.1875]


def test_refusals_are_clear():
    with pytest.raises(ValueError, match=r"random_bits of shape \(2, 3\) do not broadcast to \(3,\)"):
        sn.quantize(np.zeros(3), "e5m2", rounding="sr", random_bits=np.zeros((2, 3), np.uint32))
    with pytest.raises(TypeError, match="the unit must be one of softnum's .*, got 'e6m9'"):
        sn.matmul(ONE, ONE, "e6m9")
    with pytest.raises(TypeError, match="masked arrays are not supported"):
        sn.quantize(np.ma.masked_array([1.0], [True]), "e5m2")
    assert sn.decode([], "e5m2").shape == (0,)


@pytest.mark.parametrize("name", ["binary8p3sf", "binary8p4uf", "binary6p3sf"])
def test_p3109_finite_formats_overflow_to_the_largest_value(name):
    """Under every rule; an infinity is the largest value too, and a NaN stays one."""
    fmt = sn.format(name)
    assert fmt != sn.FloatFormat(
        fmt.exponent_bits, fmt.mantissa_bits, bias=fmt.bias, specials="fnuz", signed=fmt.signed
    )
    assert eval(repr(fmt), {"FloatFormat": sn.FloatFormat}) == fmt
    for overflow in ("infinity", "saturate", "saturate_finite"):
        for x in (1e300, np.inf):
            assert sn.quantize(x, fmt, overflow=overflow) == fmt.max
            least = np.nan if overflow == "infinity" and not fmt.signed else fmt.min
            assert np.array_equal(sn.quantize(-x, fmt, overflow=overflow), least, equal_nan=True)
        assert np.isnan(sn.quantize(np.nan, fmt, overflow=overflow))
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    a, b = (c.ravel() for c in np.meshgrid(codes[::7], codes[::5]))
    for mode in ("nearest_even", "up", "down", "to_odd"):
        got, flags = sn.multiply(a, b, fmt, rounding=mode, return_flags=True)
        want = [ref.multiply(x, y, fmt, rounding=mode) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert [(int(g), int(f)) for g, f in zip(got, flags, strict=True)] == [(c, int(f)) for c, f in want]
    with pytest.raises(ValueError, match="saturating=True requires a format without infinities"):
        sn.FloatFormat(4, 3, saturating=True)


@pytest.mark.parametrize("overflow", ["infinity", "saturate"])
def test_what_flushing_after_rounding_keeps_may_overflow(overflow):
    """In a format of subnormal numbers alone, what rounds up to the smallest normal number lies above the largest."""
    fmt = sn.FloatFormat(1, 3, signed=False)
    operands = [np.array([code], np.uint8) for code in (1, 3, 7)]  # 0.25 * 0.75 + 1.75 rounds to 2
    got, flags = sn.fma(*operands, fmt, flush_results="after", overflow=overflow, return_flags=True)
    want, want_flags = ref.fma(1, 3, 7, fmt, flush_results="after", overflow=overflow)
    assert (got.item(), flags.item()) == (want, int(want_flags))
    assert want_flags == sn.Flags.INEXACT | sn.Flags.OVERFLOW and want == (8 if overflow == "infinity" else 7)


@pytest.mark.parametrize("words", [0, 2**32 - 1])
def test_stochastic_sums_of_long_formats_overflow_as_defined(words):
    """The bound on sums was a binary32 number: with more than 24 bits it was rounded up, beyond the largest value."""
    unit = sn.MadUnit("e5m28", operand="e4m3", rounding="stochastic", stochastic_bits=22)
    c = np.array([[float(sn.format("e5m28").max)]])
    small = [[2.0**-7]]
    want = sn.matmul(small, small, unit, c=c, random_bits=np.full((1, 1, 1, 2), words, np.uint32))
    assert want[0, 0] == (c[0, 0] if words == 0 else np.inf)
    got = {float(sn.matmul(small, small, unit, c=c, key=k)[0, 0]) for k in range(40)}
    assert got <= {c[0, 0], np.inf}
    huge = sn.FloatFormat(8, 26)
    unit = sn.MadUnit(huge, operand=sn.FloatFormat(5, 3, bias=-48), rounding="stochastic", stochastic_bits=24)
    assert np.isinf(sn.matmul(np.full((1, 2), 2.0**64), np.full((2, 1), 2.0**66), unit, key=5)).all()
