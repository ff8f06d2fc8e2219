"""What a code stands for: an exact ratio of integers, an infinity or a NaN."""

from __future__ import annotations

import struct
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from operator import index
from typing import NamedTuple

from softnum.reference.facts import FloatFacts, Format, TaperedFacts, format_of


class Value(NamedTuple):
    """What a code stands for, or the exact result of an operation.

    ``kind`` is "finite", "inf" or "nan"; ``sign`` is 1 for negative (also for -0); a finite magnitude is
    ``numerator / denominator`` (not reduced). Of a NaN this ratio is the stored fraction, the quiet bit worth 1/2; that
    bit alone in formats whose NaNs store none. A NaN with ``signaling`` set raises INVALID when it is delivered. The
    exact result of an invalid operation is of a fourth kind, "invalid"; no code decodes to it.

    >>> from softnum import reference as ref
    >>> ref.decode(0xC5, "e5m2")
    Value(kind='finite', sign=1, numerator=5, denominator=1, signaling=False)
    >>> ref.decode(0xC5, "e5m2").fraction
    Fraction(-5, 1)
    """

    kind: str
    sign: int = 0
    numerator: int = 0
    denominator: int = 1
    signaling: bool = False

    @property
    def fraction(self) -> Fraction:
        """The exact value of a finite one, its sign included (-0 is 0)."""
        return Fraction(-self.numerator if self.sign else self.numerator, self.denominator)


@lru_cache(maxsize=1 << 17)
def decode(code: int, fmt: Format | str) -> Value:
    """Return what a code means.

    Parameters
    ----------
    code : int
        ``0 <= code < 2**fmt.bits``.
    fmt : FloatFormat, FixedFormat or str

    Returns
    -------
    Value

    Raises
    ------
    ValueError
        If the code has more bits than the format.

    Notes
    -----
    IEEE 754-2019 clause 3.4, varied by the facts of the format. Only IEEE-like NaNs with at least two fraction bits
    can signal; a NaN in the place of -0 has no sign. With ``lowest_binade="zero"`` every code of exponent field 0 is a
    zero. Zeros are positive in formats without -0.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.decode(0x7F, "e4m3fn").kind, ref.decode(0xFC, "e5m2").kind, ref.decode(0x7D, "e5m2").signaling
    ('nan', 'inf', True)
    >>> ref.decode(0xF8, "q4.4").fraction
    Fraction(-1, 2)
    """
    fmt, code = format_of(fmt), index(code)
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"code {code:#x} is not one of {fmt}, which has {fmt.bits} bits")
    if fmt.kind == "fixed":
        negative = fmt.signed and code >> (fmt.bits - 1)
        integer = code - (1 << fmt.bits) if negative else code
        above, below = max(-fmt.fraction_bits, 0), max(fmt.fraction_bits, 0)
        return Value("finite", int(negative), abs(integer) << above, 1 << below)

    if isinstance(fmt, TaperedFacts):
        if code == fmt.nan_code:
            return Value("nan", 0, 1, 2)
        sign = int(code > fmt.nan_code)
        return Value("finite", sign, *tapered_value((1 << fmt.bits) - code if sign else code, fmt.bits, fmt))

    sign = code >> (fmt.bits - 1) if fmt.signed else 0
    magnitude = implied_magnitude(code, fmt)
    if magnitude is None:
        return UNSUPPORTED
    if fmt.nan_codes == "ieee" and magnitude > fmt.inf_code:
        fraction, quiet_bit = magnitude - fmt.inf_code, 1 << (fmt.mantissa_bits - 1)
        signaling = fmt.mantissa_bits >= 2 and not fraction & quiet_bit
        return Value("nan", sign, fraction, 1 << fmt.mantissa_bits, signaling)
    if fmt.nan_codes == "all_ones" and magnitude == fmt.nan_code:
        return Value("nan", sign, 1, 2)
    if fmt.nan_codes == "negative_zero" and code == fmt.nan_code:
        return Value("nan", 0, 1, 2)
    if magnitude == fmt.inf_code:
        return Value("inf", sign)
    numerator, denominator = magnitude_value(magnitude, fmt)
    return Value("finite", sign if numerator or fmt.negative_zero else 0, numerator, denominator)


def tapered_point(code: int, fmt: TaperedFacts) -> tuple[int, int]:
    """Where rounding goes over from a magnitude code to the next, as (numerator, denominator): a string that has one
    bit more, which is 1."""
    return tapered_value(2 * code + 1, fmt.bits + 1, fmt)


def tapered_value(code: int, bits: int, fmt: TaperedFacts) -> tuple[int, int]:
    """The value of a code that is 0 or positive, in a posit or takum of so many bits, as (numerator, denominator)."""
    if code == 0:
        return 0, 1
    text = f"{code:0{bits - 1}b}"
    if fmt.kind == "posit":
        run = len(text) - len(text.lstrip(text[0]))
        rest = text[run + 1 :].ljust(fmt.es, "0")
        exponent = ((run - 1 if text[0] == "1" else -run) << fmt.es) + int("0" + rest[: fmt.es], 2)
        fraction = rest[fmt.es :]
    else:  # the characteristic has a 1 before it, and counts from 1 up or down
        text = text.ljust(11, "0")
        up, regime = text[0] == "1", int(text[1:4], 2)
        length = regime if up else 7 - regime
        field, fraction = text[4 : 4 + length], text[4 + length :]
        exponent = int("1" + field, 2) - 1 if up else 1 + int("0" + field, 2) - (2 << length)
    numerator, denominator = int("1" + fraction, 2), 1 << len(fraction)
    return (numerator << exponent, denominator) if exponent >= 0 else (numerator, denominator << -exponent)


def value_of(x: float | Rational) -> Value:
    """The exact value of an int, float or Fraction; a NaN is quiet, and keeps its sign and fraction."""
    if isinstance(x, bool) or not isinstance(x, Real):
        raise TypeError(f"a value is an int, float or Fraction, got {x!r}")
    if isinstance(x, Rational):
        return Value("finite", int(x < 0), abs(int(x.numerator)), int(x.denominator))
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    return decode(bits, "binary64")._replace(signaling=False)


def magnitude_value(code: int, fmt: FloatFacts) -> tuple[int, int]:
    """The value of a finite magnitude code as (numerator, denominator)."""
    field, significand = code >> fmt.mantissa_bits, code & ((1 << fmt.mantissa_bits) - 1)
    if fmt.lowest_binade == "normal":
        if code == 0 and fmt.has_zero:
            return 0, 1
        significand += 1 << fmt.mantissa_bits
    elif field:
        significand += 1 << fmt.mantissa_bits
        field -= 1
    elif fmt.lowest_binade == "zero":
        return 0, 1
    exponent = fmt.emin + field - fmt.mantissa_bits
    return (significand << exponent, 1) if exponent >= 0 else (significand, 1 << -exponent)


def to_fraction(code: int, fmt: Format | str) -> Fraction:
    """The exact value of a finite code (-0 is 0); ValueError if the code is an infinity or a NaN.

    >>> from softnum import reference as ref
    >>> ref.to_fraction(0x01, "e4m3fn")
    Fraction(1, 512)
    """
    value = decode(code, fmt)
    if value.kind != "finite":
        raise ValueError(f"code {code:#x} of {fmt} is {value.kind}, which has no value; test decode(...).kind first")
    return value.fraction


#: What an encoding is that x87 does not support: an operation on it is invalid, and gives the indefinite.
UNSUPPORTED = Value("nan", 1, 1, 2, True)


def implied_magnitude(code: int, fmt: FloatFacts) -> int | None:
    """The magnitude of a code, the significand's first bit left out that some formats store.

    With exponent field 0 that bit makes a pseudo-denormal, whose value is that of field 1; without it all other fields
    are unsupported (pseudo-infinities, pseudo-NaNs, unnormals): None. Source: Intel 64 and IA-32 Software Developer's
    Manual, volume 1, 8.2.2.
    """
    if not fmt.explicit_bit:
        return code & ((1 << (fmt.exponent_bits + fmt.mantissa_bits)) - 1)
    significand = code & ((2 << fmt.mantissa_bits) - 1)
    field = code >> (fmt.mantissa_bits + 1) & ((1 << fmt.exponent_bits) - 1)
    if field == 0:
        return significand
    return (field - 1 << fmt.mantissa_bits) + significand if significand >> fmt.mantissa_bits else None


def stored_code(code: int, fmt: FloatFacts) -> int:
    """The code of a sign and an implied magnitude, with the bit that `implied_magnitude` leaves out."""
    if not fmt.explicit_bit:
        return code
    sign = code & 1 << (fmt.bits - 1)
    field, fraction = divmod(code ^ sign, 1 << fmt.mantissa_bits)
    return sign | (2 * field + (field > 0)) << fmt.mantissa_bits | fraction


def is_subnormal(code: int, fmt: Format | str) -> bool:
    """Whether a code is a subnormal number of its format."""
    fmt = format_of(fmt)
    if not isinstance(fmt, FloatFacts) or fmt.lowest_binade != "subnormal":
        return False
    magnitude = implied_magnitude(code, fmt)
    return magnitude is not None and 0 < magnitude < 1 << fmt.mantissa_bits


def flushed(value: Value, code: int, fmt: Format | str) -> Value:
    """An operand as ``flush_inputs=True`` reads it: zero for a subnormal, its sign kept where the format has -0."""
    if not is_subnormal(code, fmt):
        return value
    return Value("finite", value.sign if format_of(fmt).negative_zero else 0)
