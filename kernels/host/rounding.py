"""Short bodies of the scalar operations for compiled code, and the domain in which each is the definition.

A number x is rounded to m fraction bits by (x + C) - C, C = 1.5 * 2^(E + P - m) with E its exponent, not below emin,
and P = 23 in binary32, 52 in binary64: the addition rounds x to nearest even at 2^(E - m). What is rounded must be
exact, or rounded to odd (`_odd`) with at least two bits more than the format has, also below its smallest normal: then
it lies on the same side of every value and every midpoint as the exact result (Boldo and Melquiond, "Emulation of FMA
and correctly rounded sums: proved algorithms using rounding to odd", 2008).

Operands are any numbers of the carrier. Of two binary32 numbers the product is exact in binary64; a sum's error comes
by Knuth's TwoSum, which is exact in rounding to nearest unless the sum overflows, and then it is beyond the format too.
A quotient or root of binary32 numbers that is no value or midpoint of a format that binary32 holds differs from it by
2^-51 of it or more, because the midpoint times the divisor, or squared, has at most 50 bits: rounded to binary64 it
stays on its side.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from softnum.arrays.conversion import decode
from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from softnum.kernels.host.scalars import Scalar
from softnum.runtime import _core

__all__ = [
    "bits_of_float32", "bits_of_float64", "body_of", "float32_of_bits", "float64_of_bits", "inlined", "quotient_of",
    "root_of",
]  # fmt: skip


def _cast(source, target):
    @intrinsic
    def cast(typing_context, x):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return (target(source), generate) if x == source else None

    return cast


bits_of_float32 = _cast(types.float32, types.int32)
float32_of_bits = _cast(types.int32, types.float32)
bits_of_float64 = _cast(types.float64, types.int64)
float64_of_bits = _cast(types.int64, types.float64)

#: Compiled into its callers, so that LLVM makes vectors of their loops.
inlined = njit(forceinline=True)
_dividing = njit(forceinline=True, error_model="numpy")

_WIDTHS = {
    32: (np.float32, np.int32, 23, 127, bits_of_float32, float32_of_bits),
    64: (np.float64, np.int64, 52, 1023, bits_of_float64, float64_of_bits),
}


def _width(scalar: Scalar) -> int:
    return 32 if scalar.carrier == "float32" else 64


def _rounds(scalar: Scalar, width: int, seen: int) -> bool:
    """Whether a number of the width with `seen` bits more than the format is rounded by the constant."""
    fmt, env = scalar.format, scalar.environment
    if env[0] != ROUNDING_MODES["nearest_even"] or not fits(fmt, f"float{width}"):
        return False
    return _in_reach(fmt, scalar, width, seen)


@of_format
def _in_reach(fmt, scalar: Scalar, width: int, seen: int) -> bool:
    """Whether the constant rounds all numbers to the format."""
    _, _, places, bias, *_ = _WIDTHS[width]
    if not fmt.signed or fmt.lowest_binade != "subnormal" or fmt.mantissa_bits < 1:
        return False
    if scalar.environment[1] == OVERFLOW_RULES["saturate_finite"]:  # an infinity is no overflow there
        return False
    m = fmt.mantissa_bits
    last = fmt.emin - m >= 1 - bias - places + seen
    first = fmt.emin >= 1 - bias and fmt.emax + 1 + places - m <= bias
    return m + seen <= places and m <= places - 2 and last and first


@_in_reach.fixed
def _fixed_in_reach(fmt, scalar: Scalar, width: int, seen: int) -> bool:
    # the constant's unit is the last place, and clamped numbers stay inside its binade; an infinity has no code, and a
    # sum that overflowed to one does
    if seen and width == _width(scalar):
        return False
    _, _, places, bias, *_ = _WIDTHS[width]
    wraps = scalar.environment[1] == OVERFLOW_RULES["wrap"]
    return not wraps and fmt.bits + 2 <= places and 1 - bias <= places - fmt.fraction_bits <= bias


@of_format
def _rounder(fmt, scalar: Scalar, width: int):
    """The compiled function that rounds a number of the width to the format."""
    real, integer, places, bias, bits_of, float_of = _WIDTHS[width]
    lowest, highest = integer((fmt.emin + bias) << places), integer((fmt.emax + 1 + bias) << places)
    exponent = integer((2 * bias + 1) << places)
    constant = integer((places - fmt.mantissa_bits) << places | 1 << (places - 1))
    sign = integer(-(1 << (width - 1))) if fmt.negative_zero else integer(0)
    most, nan = real(fmt.max), real(np.nan)
    beyond = [_core.overflow_code(fmt, scalar.environment, sign) for sign in (0, 1)]
    above, below = decode(np.array(beyond, fmt.storage_dtype), fmt, real)

    @inlined
    def round_float(x):
        bits = bits_of(x)
        e = bits & exponent
        e = lowest if e < lowest else e
        c = float_of(integer((highest if e > highest else e) + constant))
        y = float_of(integer(bits_of((x + c) - c) | (bits & sign)))
        if y > most:
            y = above
        if y < -most:
            y = below
        return y if x == x else nan

    return round_float


@_rounder.fixed
def _fixed_rounder(fmt, scalar: Scalar, width: int):
    real, _, places, *_ = _WIDTHS[width]
    least, most, nan, infinity = real(fmt.min), real(fmt.max), real(np.nan), real(np.inf)
    c = real(1.5 * 2.0 ** (places - fmt.fraction_bits))

    @inlined
    def round_fixed(x):
        y = least if x < least else x
        y = most if y > most else y
        y = (y + c) - c
        return y if -infinity < x < infinity else nan

    return round_fixed


def _odd(width: int):
    real, integer, _, _, bits_of, float_of = _WIDTHS[width]
    one, top, zero = integer(1), integer(width - 1), real(0)

    @inlined
    def odd(s, a, b):
        """a + b rounded to odd, s being it rounded to nearest."""
        t = s - a
        error = (a - (s - t)) + (b - t)
        bits = bits_of(s)
        step = ((bits_of(error) ^ bits) >> top) | one  # away from zero where the error has the sum's sign
        if (error < zero or error > zero) and (bits & one) == 0:  # ordered: of an infinite sum the error is NaN
            bits = bits + step
        return float_of(integer(bits))

    return odd


def body_of(scalar: Scalar, name: str):
    """The compiled function of an operation by a short body, of numbers of the carrier; None outside the domain."""
    if scalar.carrier == "codes":
        return None
    width = _width(scalar)
    if name == "round" and _rounds(scalar, width, 0):
        return _rounder(scalar.format, scalar, width)
    if name in ("add", "subtract") and _rounds(scalar, width, 2):
        return _sum(scalar, width, name)
    if width == 64 or not _rounds(scalar, 64, 2):
        return None
    return _widened(scalar, name)


def _sum(scalar: Scalar, width: int, name: str):
    rounded, odd = _rounder(scalar.format, scalar, width), _odd(width)
    if name == "add":

        @inlined
        def add(a, b):
            return rounded(odd(a + b, a, b))

        return add

    @inlined
    def subtract(a, b):
        return rounded(odd(a - b, a, -b))

    return subtract


def _widened(scalar: Scalar, name: str):
    """Operations on binary32 numbers in binary64."""
    rounded, odd, wide, narrow = _rounder(scalar.format, scalar, 64), _odd(64), np.float64, np.float32
    if name == "round":

        @inlined
        def body(x):
            return narrow(rounded(wide(x)))

    elif name in ("add", "subtract"):
        both = _sum(scalar, 64, name)

        @inlined
        def body(a, b):
            return narrow(both(wide(a), wide(b)))

    elif name == "multiply":

        @inlined
        def body(a, b):
            return narrow(rounded(wide(a) * wide(b)))

    elif name == "fma":

        @inlined
        def body(a, b, c):
            p, q = wide(a) * wide(b), wide(c)
            return narrow(rounded(odd(p + q, p, q)))

    else:
        return None
    return body


def _in_binary64(scalar: Scalar) -> bool:
    return _width(scalar) == 32 and _rounds(scalar, 64, 0)


def quotient_of(scalar: Scalar):
    """a / b of finite binary32 numbers, b not 0, rounded once; None outside the domain."""
    if not _in_binary64(scalar):
        return None
    rounded, wide, narrow = _rounder(scalar.format, scalar, 64), np.float64, np.float32
    return _dividing(lambda a, b: narrow(rounded(wide(a) / wide(b))))


def root_of(scalar: Scalar):
    """The square root of a finite binary32 number, NaN of one below 0, rounded once; None outside the domain."""
    if not _in_binary64(scalar):
        return None
    rounded, wide, narrow = _rounder(scalar.format, scalar, 64), np.float64, np.float32
    return inlined(lambda a: narrow(rounded(np.sqrt(wide(a)))))
