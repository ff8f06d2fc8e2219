"""Algebraic properties of the operations, on generated formats and values."""

from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats.modes import ROUNDING_MODES

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
        got, flags = getattr(sn.ops, name)(a, b, fmt, rounding=mode, return_flags=True, invalid=0)
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


finite = st.one_of(
    st.builds(lambda e, m: FloatFormat(e, m), st.integers(3, 8), st.integers(1, 20)),
    st.builds(lambda e, m: FloatFormat(e, m, specials="fn"), st.integers(3, 8), st.integers(1, 20)),
)


@given(finite, integers, integers, integers, modes, st.sampled_from(["add", "subtract", "multiply", "divide"]))
def test_every_operation_is_monotonic(fmt, a, b, c, mode, name):
    """In its first operand, the second being positive; saturating, so that nothing is NaN."""
    assume(all(ref.decode(int(x), fmt).kind == "finite" for x in codes_of(fmt, a, b, c)))
    a, b, c = codes_of(fmt, a, b, c)
    c = sn.absolute(c, fmt)
    assume(ref.to_fraction(int(c), fmt) != 0)
    if ref.to_fraction(int(a), fmt) > ref.to_fraction(int(b), fmt):
        a, b = b, a
    low, high = (getattr(sn.ops, name)(x, c, fmt, rounding=mode, overflow="saturate") for x in (a, b))
    assert ref.to_fraction(int(low), fmt) <= ref.to_fraction(int(high), fmt)


@given(finite, integers, integers, modes, st.sampled_from(["add", "multiply", "divide", "subtract"]))
def test_negation_mirrors_the_modes(fmt, a, b, mode, name):
    """op(-a, -b) or op(-a, b) in the mirrored mode is -op(a, b), flags alike."""
    a, b = codes_of(fmt, a, b)
    assume(all(ref.decode(int(x), fmt).kind == "finite" for x in (a, b)))
    minus_b = sn.negate(b, fmt) if name in ("add", "subtract") else b
    got, flags = getattr(sn.ops, name)(
        sn.negate(a, fmt), minus_b, fmt, rounding=MIRROR.get(mode, mode), return_flags=True
    )
    want, others = getattr(sn.ops, name)(a, b, fmt, rounding=mode, return_flags=True)
    assert flags == others
    x, y = ref.decode(int(got), fmt), ref.decode(int(want), fmt)
    assert (x.kind, x.numerator * y.denominator) == (y.kind, y.numerator * x.denominator)
    if x.kind != "nan" and (x.numerator or x.kind == "inf"):  # the sign of an exact zero sum goes by the mode
        assert x.sign != y.sign


@given(finite, integers, integers, st.sampled_from(["add", "multiply", "divide", "subtract"]))
def test_up_and_down_bracket_the_exact_result(fmt, a, b, name):
    a, b = codes_of(fmt, a, b)
    x, y = ref.decode(int(a), fmt), ref.decode(int(b), fmt)
    assume(x.kind == y.kind == "finite" and (name != "divide" or y.numerator))
    p, q = x.fraction, y.fraction
    exact = p + q if name == "add" else p - q if name == "subtract" else p * q if name == "multiply" else p / q
    down, up = (getattr(sn.ops, name)(a, b, fmt, rounding=m, overflow="saturate") for m in ("down", "up"))
    low, high = ref.to_fraction(int(down), fmt), ref.to_fraction(int(up), fmt)
    assume(abs(exact) <= fmt.max)
    assert low <= exact <= high
    assert (
        low == high or int(sn.next_up(down, fmt)) == int(up) or ref.to_fraction(int(sn.next_up(down, fmt)), fmt) == high
    )


@given(finite, integers, modes)
def test_widening_and_back_is_the_same_code(fmt, a, mode):
    (a,) = codes_of(fmt, a)
    assume(ref.decode(int(a), fmt).kind == "finite")
    wide = FloatFormat(fmt.exponent_bits + 2, fmt.mantissa_bits + 3)
    there, flags = sn.convert(a, fmt, wide, rounding=mode, return_flags=True)
    assert flags == 0 and sn.convert(there, wide, fmt, rounding=mode) == a


@given(finite, integers)
def test_the_root_of_a_square(fmt, a):
    """sqrt(x * x) is the magnitude of x, as long as the square neither overflows nor is tiny."""
    (a,) = codes_of(fmt, a)
    x = ref.decode(int(a), fmt)
    assume(x.kind == "finite" and x.numerator)
    assume(fmt.smallest_normal <= x.fraction**2 <= fmt.max)
    assert sn.sqrt(sn.multiply(a, a, fmt), fmt) == sn.absolute(a, fmt)


@given(finite, integers, integers, modes)
def test_fma_with_zero_is_a_multiplication(fmt, a, b, mode):
    """With the zero of the product's sign, so that an exact zero keeps it."""
    a, b = codes_of(fmt, a, b)
    x, y = ref.decode(int(a), fmt), ref.decode(int(b), fmt)
    assume(x.kind == y.kind == "finite")
    zero = sn.ops.copysign(codes_of(fmt, 0)[0], sn.multiply(a, b, fmt), fmt)
    got = sn.fma(a, b, zero, fmt, rounding=mode, return_flags=True)
    want = sn.multiply(a, b, fmt, rounding=mode, return_flags=True)
    assert got[0] == want[0] and got[1] == want[1]


@given(finite, integers, integers, st.integers(-3, 3), modes)
def test_operations_scale_with_powers_of_two(fmt, a, b, n, mode):
    """a * 2**n times b is (a * b) * 2**n while all stay normal."""
    a, b = codes_of(fmt, a, b)
    x, y = ref.decode(int(a), fmt), ref.decode(int(b), fmt)
    assume(x.kind == y.kind == "finite")
    normal, top = Fraction(fmt.smallest_normal) * 2, Fraction(fmt.max) / 2
    scaled = x.fraction * Fraction(2) ** n
    assume(all(normal <= abs(v) <= top for v in (x.fraction, scaled, x.fraction * y.fraction, scaled * y.fraction)))
    left = sn.multiply(sn.ops.scalb(a, n, fmt), b, fmt, rounding=mode)
    assert left == sn.ops.scalb(sn.multiply(a, b, fmt, rounding=mode), n, fmt)
