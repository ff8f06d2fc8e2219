"""Algebraic properties of the operations, on generated formats and values."""

from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.modes import ROUNDING_MODES

NAMES = [m for m in ROUNDING_MODES if not m.startswith("stochastic")]
modes = st.sampled_from(NAMES)
floats = st.builds(
    lambda e, m, specials, lowest: FloatFormat(e, m, specials=specials, lowest_binade=lowest),
    st.integers(2, 8), st.integers(1, 20), st.sampled_from(["ieee", "fn", "fnuz", "p3109", "none"]),
    st.sampled_from(["subnormal", "normal", "zero"]),
)  # fmt: skip
fixed = st.builds(FixedFormat, st.integers(2, 20), st.integers(0, 20))
formats = st.one_of(floats, fixed)
values = st.floats(allow_nan=False, allow_infinity=False, width=64)
MIRROR = {"up": "down", "down": "up", "nearest_up": "nearest_down", "nearest_down": "nearest_up"}


def codes_of(fmt, *numbers):
    return [np.array(n % (1 << fmt.bits), fmt.storage_dtype) for n in numbers]


integers = st.integers(0, 2**64 - 1)


@given(formats, integers, integers, modes)
def test_addition_and_multiplication_commute(fmt, a, b, mode):
    a, b = codes_of(fmt, a, b)
    for operation in (sn.add, sn.multiply):
        x = operation(a, b, fmt, rounding=mode, return_flags=True, invalid=0)
        y = operation(b, a, fmt, rounding=mode, return_flags=True, invalid=0)
        assert x[0] == y[0] and x[1] == y[1]


@given(formats, integers, integers, modes)
def test_operations_equal_the_reference(fmt, a, b, mode):
    a, b = codes_of(fmt, a, b)
    for name in ("add", "subtract", "multiply"):
        got, flags = getattr(sn, name)(a, b, fmt, rounding=mode, return_flags=True, invalid=0)
        assert (int(got), int(flags)) == getattr(ref, name)(int(a), int(b), fmt, rounding=mode)
    got, flags = sn.fma(a, b, a, fmt, rounding=mode, return_flags=True, invalid=0)
    assert (int(got), int(flags)) == ref.fma(int(a), int(b), int(a), fmt, rounding=mode)


@given(formats, integers, modes)
def test_encoding_a_decoded_code_gives_it_back(fmt, code, mode):
    (code,) = codes_of(fmt, code)
    value = ref.decode(int(code), fmt)
    assume(value.kind != "nan")
    if value.kind == "finite" and value.numerator == 0:
        code = code & code.dtype.type((1 << (fmt.bits - 1)) if fmt.negative_zero else 0)
    decoded = sn.decode(code, fmt)
    assert int(sn.encode(decoded, fmt, rounding=mode)) == int(code)
    assert sn.quantize(decoded, fmt, rounding=mode) == decoded


@given(formats, values, values, modes, st.sampled_from(["saturate", "saturate_finite"]))
def test_quantize_is_monotonic_and_idempotent(fmt, x, y, mode, overflow):
    x, y = min(x, y), max(x, y)
    low, high = sn.quantize(np.array([x, y]), fmt, rounding=mode, overflow=overflow)
    assert low <= high
    again = sn.quantize(np.array([low, high]), fmt, rounding=mode, overflow=overflow)
    assert again[0] == low and again[1] == high


@given(formats, values, modes)
def test_quantize_is_a_neighbour_on_the_right_side(fmt, x, mode):
    got, up, down = (float(sn.quantize(x, fmt, rounding=m, overflow="saturate")) for m in (mode, "up", "down"))
    assert got in (up, down)
    if float(fmt.min) <= x <= float(fmt.max):
        assert down <= x <= up
        if mode.startswith("nearest"):
            assert abs(Fraction(got) - Fraction(x)) == min(abs(Fraction(v) - Fraction(x)) for v in (up, down))


@given(floats, values, modes)
def test_rounding_is_symmetric(fmt, x, mode):
    mirrored = MIRROR.get(mode, mode)
    a, b = (
        sn.quantize(x, fmt, rounding=mode, overflow="saturate"),
        sn.quantize(-x, fmt, rounding=mirrored, overflow="saturate"),
    )
    assert a == -b and (not fmt.negative_zero or np.signbit(a) != np.signbit(b))


@given(st.integers(2, 20), st.integers(-20, 20), st.floats(0.1, 10), modes)
def test_scaling_by_powers_of_two(m, k, x, mode):
    """Away from the ends of the exponent range rounding commutes with scaling."""
    fmt = FloatFormat(8, m)
    for dtype in (np.float32, np.float64):
        value = dtype(x)
        scaled = sn.quantize(value * dtype(2.0**k), fmt, rounding=mode)
        assert scaled == sn.quantize(value, fmt, rounding=mode) * dtype(2.0**k)


@given(formats, integers, integers, modes)
def test_subtracting_is_adding_the_negative(fmt, a, b, mode):
    assume(fmt.kind == "float" and fmt.signed)
    a, b = codes_of(fmt, a, b)
    assume(all(ref.decode(int(c), fmt).kind == "finite" for c in (a, b)))
    sign = b.dtype.type(1 << (fmt.bits - 1))
    assume(fmt.negative_zero or ref.to_fraction(int(b), fmt) != 0)
    x = sn.subtract(a, b, fmt, rounding=mode, return_flags=True)
    y = sn.add(a, b ^ sign, fmt, rounding=mode, return_flags=True)
    assert x[0] == y[0] and x[1] == y[1]


@given(floats, integers, integers, modes)
def test_fma_with_one_is_an_addition(fmt, a, b, mode):
    a, b = codes_of(fmt, a, b)
    if float(fmt.max) >= 1 and fmt.smallest_normal <= 1:
        unit = sn.encode(1.0, fmt)
        if ref.to_fraction(int(unit), fmt) == 1:
            x = sn.fma(a, unit, b, fmt, rounding=mode, return_flags=True, invalid=0)
            y = sn.add(a, b, fmt, rounding=mode, return_flags=True, invalid=0)
            assert x[0] == y[0] and x[1] == y[1]


@given(formats, values, st.integers(1, 32), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_more_random_bits_never_round_lower(fmt, x, r, word, other):
    low, high = sorted((word % 2**r, other % 2**r))
    options = {"rounding": "stochastic", "stochastic_bits": r, "overflow": "saturate"}
    a, b = (abs(sn.quantize(x, fmt, random_bits=w, **options)) for w in (low, high))
    assert a <= b
