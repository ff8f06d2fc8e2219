"""The executable definition of softnum's arithmetic, in Python integers and Fractions.

Slow, readable, and independent: it shares no code with the C core it judges. Of softnum it uses only the facts of the
formats and the names of modes and flags. A result is defined in two steps: the exact value of the operation (`Value`:
a ratio of integers, an infinity or a NaN), then one delivery of it to the result's format, where `round_value` rounds.

Sources: IEEE Std 754-2019 (clause 4: rounding; 6: infinities, NaNs, sign of zero; 7: exceptions); Salmon et al. 2011,
"Parallel random numbers: as easy as 1, 2, 3" (Philox).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from operator import index
from typing import NamedTuple

from softnum.formats import FixedFormat, FloatFormat, Format
from softnum.formats import format as format_of
from softnum.modes import Flags, overflow_name, rounding_name

__all__ = [
    "Value", "add", "convert", "decode", "encode", "fma", "mad_dot", "multiply", "philox4x32_10",
    "random_word_elementwise", "random_words_matmul", "round_value", "subtract", "to_fraction",
]  # fmt: skip

INEXACT, UNDERFLOW, OVERFLOW, INVALID = (int(Flags[n]) for n in ("INEXACT", "UNDERFLOW", "OVERFLOW", "INVALID"))
_FLAGS = [Flags(bits) for bits in range(32)]  # looking one up is ten times faster than making one
_MASK32 = 0xFFFFFFFF


class Value(NamedTuple):
    """What a code stands for, or the exact result of an operation.

    ``kind`` is "finite", "inf" or "nan"; ``sign`` is 1 for negative (also for -0); a finite magnitude is
    ``numerator / denominator`` (not reduced). A NaN with ``signaling`` set raises INVALID when it is delivered: such is
    a signalling NaN operand, and such is the result of an invalid operation.

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


class _Environment(NamedTuple):
    rounding: str
    overflow: str
    stochastic_bits: int
    random_bits: int
    tininess: str


def _environment(
    fmt: Format,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    stochastic_bits: int = 32,
    random_bits: int | None = None,
    tininess: str = "after",
) -> _Environment:
    rounding = rounding_name(rounding)
    overflow = overflow_name(overflow, fmt)
    if tininess not in ("after", "before"):
        raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
    if rounding.startswith("stochastic"):
        if not 1 <= stochastic_bits <= 32:
            raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
        if random_bits is None:
            raise ValueError(f"rounding={rounding!r} needs random_bits")
        random_bits &= (1 << stochastic_bits) - 1
    return _Environment(rounding, overflow, stochastic_bits, random_bits or 0, tininess)


# -- codes and values --------------------------------------------------------------------------------------------------
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
    IEEE 754-2019 clause 3.4, varied by the facts of `FloatFormat`. Only IEEE-like NaNs with at least two fraction bits
    can signal. With ``lowest_binade="zero"`` every code of exponent field 0 is a zero. Zeros are positive in formats
    without -0.

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
    if isinstance(fmt, FixedFormat):
        negative = fmt.signed and code >> (fmt.bits - 1)
        integer = code - (1 << fmt.bits) if negative else code
        return Value("finite", int(negative), abs(integer), 1 << fmt.fraction_bits)

    sign = code >> (fmt.bits - 1) if fmt.signed else 0
    magnitude = code & ((1 << (fmt.exponent_bits + fmt.mantissa_bits)) - 1)
    if fmt.nan_codes == "ieee" and magnitude > fmt.inf_code:
        quiet_bit = 1 << (fmt.mantissa_bits - 1)
        return Value("nan", signaling=fmt.mantissa_bits >= 2 and not magnitude & quiet_bit)
    if (fmt.nan_codes == "all_ones" and magnitude == fmt.nan_code) or (
        fmt.nan_codes == "negative_zero" and code == fmt.nan_code
    ):
        return Value("nan")
    if magnitude == fmt.inf_code:
        return Value("inf", sign)
    numerator, denominator = _magnitude(magnitude, fmt)
    return Value("finite", sign if numerator or fmt.negative_zero else 0, numerator, denominator)


def _magnitude(code: int, fmt: FloatFormat) -> tuple[int, int]:
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


# -- rounding ----------------------------------------------------------------------------------------------------------
def round_value(
    x: Fraction,
    sign_of_zero: int,
    fmt: Format | str,
    *,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    stochastic_bits: int = 32,
    random_bits: int | None = None,
    tininess: str = "after",
) -> tuple[int, Flags]:
    """Round an exact finite value to a code.

    Parameters
    ----------
    x : Fraction
        The exact value (an int will do).
    sign_of_zero : int
        1 if a zero ``x`` is -0; without effect on other values.
    fmt : FloatFormat, FixedFormat or str
    rounding : str
        One of `softnum.modes.ROUNDING_MODES`.
    overflow : str, optional
        "infinity" (default for floats), "saturate" (default for fixed point), "saturate_finite" or "wrap".
    stochastic_bits, random_bits : int
        The stochastic modes use the low ``stochastic_bits`` bits R of ``random_bits``. With t the discarded fraction of
        an ulp, "stochastic" takes the larger magnitude iff ``floor(t * 2**r) + R >= 2**r``; "stochastic_floor" returns
        ``floor((floor(x * 2**r) + R) / 2**r)``, x counted in ulps, in two's complement.
    tininess : {"after", "before"}
        Where UNDERFLOW looks; in a stochastic mode always before rounding.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    ValueError
        For an unknown name, a rule that does not fit the format, or a stochastic mode without random bits.

    Notes
    -----
    IEEE 754-2019 clauses 4.3, 7.4, 7.5 and 7.6. The quantum of ``|x|`` is ``2**(max(floor(log2 |x|), emin) - m)``, and
    the grid goes on past the largest value; a rounded magnitude beyond that value has overflowed. "Even" and "odd" are
    the lowest bit of the magnitude code; where a binade is missing (`lowest_binade`), the values below the smallest
    normal lie between 0 and it, and the lower neighbour, code 0, is the even one.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from softnum import reference as ref
    >>> ref.round_value(Fraction(1, 3), 0, "e4m3fn")
    (43, <Flags.INEXACT: 1>)
    >>> ref.round_value(Fraction(500), 0, "e4m3fn", overflow="saturate")
    (126, <Flags.INEXACT|OVERFLOW: 5>)
    """
    fmt = format_of(fmt)
    environment = _environment(fmt, rounding, overflow, stochastic_bits, random_bits, tininess)
    sign = int(sign_of_zero) if x == 0 else int(x < 0)
    return _deliver(Value("finite", sign, abs(x.numerator), x.denominator), fmt, environment)


def _deliver(x: Value, fmt: Format, env: _Environment) -> tuple[int, Flags]:
    """Bring an exact result to its format."""
    if x.kind == "nan":
        code, flags = _nan(fmt, x.signaling)
    elif x.kind == "inf":
        code, flags = _infinity(x.sign, fmt, env.overflow)
    elif isinstance(fmt, FixedFormat):
        code, flags = _round_fixed(x.sign, x.numerator, x.denominator, fmt, env)
    else:
        code, flags = _round_float(x.sign, x.numerator, x.denominator, fmt, env)
    return code, _FLAGS[flags]


def _nan(fmt: Format, invalid: bool) -> tuple[int, int]:
    if not fmt.has_nan:
        return 0, INVALID
    return fmt.nan_code, INVALID if invalid else 0


def _infinity(sign: int, fmt: Format, overflow: str) -> tuple[int, int]:
    """An infinity that is exact, or that overflow under the rule "infinity" asks for."""
    if isinstance(fmt, FixedFormat):
        return 0, INVALID
    if sign and not fmt.signed:
        return (0, 0) if fmt.has_zero else _nan(fmt, invalid=True)
    if fmt.infinities and overflow != "saturate":
        return _signed(sign, fmt.inf_code, fmt), 0
    if fmt.has_nan and overflow == "infinity":
        return _nan(fmt, invalid=False)
    return _signed(sign, fmt.max_code, fmt), 0


def _signed(sign: int, magnitude: int, fmt: FloatFormat) -> int:
    if not fmt.signed or (magnitude == 0 and not fmt.negative_zero):
        return magnitude
    return sign << (fmt.bits - 1) | magnitude


def _round_fixed(sign: int, numerator: int, denominator: int, fmt: FixedFormat, env: _Environment) -> tuple[int, int]:
    integer, rest = divmod(numerator << fmt.fraction_bits, denominator)
    integer += _goes_up(sign, integer & 1, rest, denominator, env)
    flags = INEXACT if rest else 0
    if sign:
        integer = -integer
    lowest = -(1 << (fmt.bits - 1)) if fmt.signed else 0
    highest = lowest + (1 << fmt.bits) - 1
    if not lowest <= integer <= highest:
        flags |= OVERFLOW
        if env.overflow != "wrap":
            integer = lowest if sign else highest
    return integer & ((1 << fmt.bits) - 1), flags


def _round_float(sign: int, numerator: int, denominator: int, fmt: FloatFormat, env: _Environment) -> tuple[int, int]:
    if not fmt.has_zero and sign and numerator:
        return _nan(fmt, invalid=True)
    if numerator == 0:
        return (_signed(sign, 0, fmt), 0) if fmt.has_zero else (0, INEXACT | UNDERFLOW)

    if fmt.lowest_binade == "normal":
        smallest_normal = 1 if fmt.has_zero else 0
    else:
        smallest_normal = 1 << fmt.mantissa_bits
    # As if the exponent had no bounds:
    free = _neighbours(numerator, denominator, _floor_log2(numerator, denominator), fmt)
    below_normal = free[0] < smallest_normal

    # On the format's grid: the neighbour toward zero and how far beyond it the value lies, rest / unit of the gap.
    lower, rest, unit = free
    upper = lower + 1
    if below_normal:
        if fmt.lowest_binade == "subnormal":
            lower, rest, unit = _neighbours(numerator, denominator, fmt.emin, fmt)
            upper = lower + 1
        elif fmt.has_zero:
            least_numerator, least_denominator = _magnitude(smallest_normal, fmt)
            lower, upper = 0, smallest_normal
            rest, unit = numerator * least_denominator, denominator * least_numerator
        else:
            return 0, INEXACT | UNDERFLOW
    rounded = upper if _goes_up(sign, lower & 1, rest, unit, env) else lower

    if rounded > fmt.max_code:
        code, flags = _overflowed(sign, fmt, env), OVERFLOW | INEXACT
    else:
        code, flags = _signed(sign, rounded, fmt), INEXACT if rest else 0
        tiny = below_normal
        if tiny and env.tininess == "after" and not env.rounding.startswith("stochastic"):
            tiny = free[0] + _goes_up(sign, free[0] & 1, free[1], free[2], env) < smallest_normal
        if tiny and rest:
            flags |= UNDERFLOW
    if sign and not fmt.signed:
        code = 0  # unsigned with a zero: what is below zero becomes zero; the flags are those of the magnitude
    return code, flags


def _floor_log2(numerator: int, denominator: int) -> int:
    guess = numerator.bit_length() - denominator.bit_length()  # right, or one too large
    return guess if numerator << max(-guess, 0) >= denominator << max(guess, 0) else guess - 1


def _neighbours(numerator: int, denominator: int, exponent: int, fmt: FloatFormat) -> tuple[int, int, int]:
    """Where a magnitude lies in the grid of quantum ``2**(exponent - mantissa_bits)``: (code, rest, unit).

    The code is that of the neighbour toward zero, counted on beyond both ends of the format's exponents; the value
    lies rest / unit of a quantum above it.
    """
    quantum = exponent - fmt.mantissa_bits
    if quantum >= 0:
        denominator <<= quantum
    else:
        numerator <<= -quantum
    significand, rest = divmod(numerator, denominator)
    code = ((exponent - fmt.emin) << fmt.mantissa_bits) + significand
    if fmt.lowest_binade == "normal":
        code -= 1 << fmt.mantissa_bits
    return code, rest, denominator


def _goes_up(sign: int, odd: int, rest: int, unit: int, env: _Environment) -> bool:
    """Whether a magnitude that lies rest / unit of the gap above its lower neighbour rounds to the upper one."""
    if rest == 0:
        return False
    mode = env.rounding
    if mode.startswith("nearest"):
        if 2 * rest != unit:
            return 2 * rest > unit
        tie_goes_up = {
            "nearest_even": odd, "nearest_away": 1, "nearest_zero": 0, "nearest_up": not sign, "nearest_down": sign,
        }  # fmt: skip
        return bool(tie_goes_up[mode])
    if mode.startswith("stochastic"):
        r = env.stochastic_bits
        if mode == "stochastic_floor" and sign:  # floor(-t * 2**r) + R stays below zero
            return -((rest << r) // -unit) > env.random_bits
        return (rest << r) // unit + env.random_bits >= 1 << r
    goes_up = {"toward_zero": 0, "away_from_zero": 1, "up": not sign, "down": sign, "to_odd": not odd}
    return bool(goes_up[mode])


def _overflowed(sign: int, fmt: FloatFormat, env: _Environment) -> int:
    toward_zero = env.rounding in ("toward_zero", "to_odd", "down" if sign == 0 else "up")
    if toward_zero or env.overflow != "infinity":
        return _signed(sign, fmt.max_code, fmt)
    return _infinity(sign, fmt, "infinity")[0]


# -- operations --------------------------------------------------------------------------------------------------------
def encode(x: float | Rational, fmt: Format | str, **environment) -> tuple[int, Flags]:
    """Round a number to a code.

    Parameters
    ----------
    x : int, float or Fraction
        The exact value; a float may also be -0, an infinity or a (quiet) NaN.
    fmt : FloatFormat, FixedFormat or str
    **environment
        The keywords of `round_value`.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    TypeError
        If ``x`` is no number.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.encode(-0.0, "e5m2")
    (128, <Flags: 0>)
    >>> ref.encode(float("nan"), "q4.4")
    (0, <Flags.INVALID: 16>)
    """
    fmt = format_of(fmt)
    if isinstance(x, bool) or not isinstance(x, Real):
        raise TypeError(f"encode needs an int, float or Fraction, got {x!r}")
    if isinstance(x, Rational):
        value = Value("finite", int(x < 0), abs(int(x.numerator)), int(x.denominator))
    else:
        x = float(x)
        if math.isnan(x):
            value = Value("nan")
        else:
            sign = int(math.copysign(1.0, x) < 0)
            value = Value("inf", sign) if math.isinf(x) else Value("finite", sign, *abs(x).as_integer_ratio())
    return _deliver(value, fmt, _environment(fmt, **environment))


def convert(code: int, from_fmt: Format | str, to_fmt: Format | str, **environment) -> tuple[int, Flags]:
    """Convert a code to another format, with one rounding. Keywords as in `round_value`; returns (code, flags).

    >>> from softnum import reference as ref
    >>> ref.convert(0x7C, "e5m2", "e4m3fn")  # an infinity, where there is none
    (127, <Flags: 0>)
    """
    to_fmt = format_of(to_fmt)
    return _deliver(decode(code, from_fmt), to_fmt, _environment(to_fmt, **environment))


def add(a: int, b: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Add two codes: the exact sum, rounded once.

    Parameters
    ----------
    a, b : int
        Codes.
    fmt : format, or a pair of formats, one per operand
    out_fmt : format, optional
        The format of the result; needed where the operands' formats differ.
    **environment
        The keywords of `round_value`.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    ValueError
        If the operands' formats differ and ``out_fmt`` is missing, or a code is out of range.

    Notes
    -----
    IEEE 754-2019 clauses 5.4.1, 6.3 (an exact zero sum of opposite signs is +0, or -0 when rounding down) and 7.2.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.add(0x3C, 0xBC, "e5m2", rounding="down")
    (128, <Flags: 0>)
    """
    (x, y), out_fmt, env = _prepare((a, b), fmt, out_fmt, environment)
    return _deliver(_sum(x, y, env.rounding), out_fmt, env)


def subtract(a: int, b: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Subtract two codes: ``a + (-b)`` exactly, rounded once. Parameters, result and errors as in `add`.

    >>> from softnum import reference as ref
    >>> ref.subtract(0x3C, 0x3C, "e5m2")
    (0, <Flags: 0>)
    """
    (x, y), out_fmt, env = _prepare((a, b), fmt, out_fmt, environment)
    minus_y = Value(y.kind, 1 - y.sign, y.numerator, y.denominator, y.signaling)
    return _deliver(_sum(x, minus_y, env.rounding), out_fmt, env)


def multiply(a: int, b: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Multiply two codes: the exact product, rounded once. Parameters, result and errors as in `add`.

    >>> from softnum import reference as ref
    >>> ref.multiply(0x7C, 0x00, "e5m2")  # infinity times zero
    (126, <Flags.INVALID: 16>)
    """
    (x, y), out_fmt, env = _prepare((a, b), fmt, out_fmt, environment)
    return _deliver(_product(x, y), out_fmt, env)


def fma(a: int, b: int, c: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Return ``a * b + c`` with one rounding; ``fmt`` is one format or three. The rest as in `add`.

    Infinity times zero is INVALID whatever ``c`` is, a quiet NaN included (IEEE 754-2019 clause 7.2 leaves that open).

    >>> from softnum import reference as ref
    >>> ref.fma(0x3C, 0x40, 0xC0, "e5m2")  # 1 * 2 - 2
    (0, <Flags: 0>)
    """
    (x, y, z), out_fmt, env = _prepare((a, b, c), fmt, out_fmt, environment)
    return _deliver(_sum(_product(x, y), z, env.rounding), out_fmt, env)


_INVALID_RESULT = Value("nan", signaling=True)


def _prepare(codes: tuple, fmt, out_fmt, environment: dict) -> tuple[list[Value], Format, _Environment]:
    formats = tuple(map(format_of, fmt)) if isinstance(fmt, (tuple, list)) else (format_of(fmt),) * len(codes)
    if len(formats) != len(codes):
        raise ValueError(f"{len(codes)} operands need one format or {len(codes)}, got {len(formats)}")
    if out_fmt is None:
        out_fmt = formats[0]
        if any(other is not out_fmt and other != out_fmt for other in formats):
            raise ValueError(f"operands of different formats ({', '.join(map(str, formats))}) need out_fmt=")
    out_fmt = format_of(out_fmt)
    return [decode(c, f) for c, f in zip(codes, formats, strict=True)], out_fmt, _environment(out_fmt, **environment)


def _product(x: Value, y: Value) -> Value:
    if x.kind == "nan" or y.kind == "nan":
        return Value("nan", signaling=x.signaling or y.signaling)
    sign = x.sign ^ y.sign
    if x.kind == "finite" and y.kind == "finite":
        return Value("finite", sign, x.numerator * y.numerator, x.denominator * y.denominator)
    for factor in (x, y):
        if factor.kind == "finite" and factor.numerator == 0:
            return _INVALID_RESULT
    return Value("inf", sign)


def _sum(x: Value, y: Value, rounding: str) -> Value:
    if x.kind == "nan" or y.kind == "nan":
        return Value("nan", signaling=x.signaling or y.signaling)
    if x.kind == "inf":
        return _INVALID_RESULT if y.kind == "inf" and x.sign != y.sign else x
    if y.kind == "inf":
        return y
    left, right = x.numerator * y.denominator, y.numerator * x.denominator
    total = (-left if x.sign else left) + (-right if y.sign else right)
    if total:
        return Value("finite", int(total < 0), abs(total), x.denominator * y.denominator)
    return Value("finite", x.sign if x.sign == y.sign else int(rounding == "down"))


# -- random words ------------------------------------------------------------------------------------------------------
def philox4x32_10(key: Sequence[int], counter: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32 with ten rounds (Salmon et al. 2011).

    Parameters
    ----------
    key : two 32-bit words
    counter : four 32-bit words

    Returns
    -------
    tuple of four 32-bit words

    Raises
    ------
    ValueError
        If there are not two and four words, or one exceeds 32 bits.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> " ".join(f"{word:08x}" for word in ref.philox4x32_10((0, 0), (0, 0, 0, 0)))
    '6627e8d5 e169c58d bc57ac4c 9b00dbd8'
    """
    if len(key) != 2 or len(counter) != 4 or any(not 0 <= word <= _MASK32 for word in (*key, *counter)):
        raise ValueError(f"Philox4x32 needs 2 key and 4 counter words of 32 bits, got {key!r} and {counter!r}")
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK32
        k0, k1 = (k0 + 0x9E3779B9) & _MASK32, (k1 + 0xBB67AE85) & _MASK32
    return c0, c1, c2, c3


@lru_cache(maxsize=256)
def _derived_key(seed: int, stream: int, domain: int) -> tuple[int, int]:
    for what, value in (("seed", seed), ("stream", stream)):
        if not 0 <= value < 1 << 64:
            raise ValueError(f"{what} must lie in 0..2**64 - 1, got {value}")
    counter = (stream & _MASK32, stream >> 32, domain, 0)
    return philox4x32_10((seed & _MASK32, seed >> 32), counter)[:2]


def random_word_elementwise(seed: int, stream: int, i: int) -> int:
    """The 32-bit word that element ``i`` of a C-ordered elementwise result rounds with (key domain 0).

    >>> from softnum import reference as ref
    >>> ref.random_word_elementwise(1, 0, 0) != ref.random_word_elementwise(1, 0, 1)
    True
    """
    block = i // 4
    return philox4x32_10(_derived_key(seed, stream, 0), (block & _MASK32, block >> 32, 0, 0))[i % 4]


def random_words_matmul(
    seed: int, stream: int, batch: int, m: int, n: int, k: int, stochastic_bits: int, two_roundings: bool
) -> tuple[int, int]:
    """The random bits (product's, sum's) of step ``k`` of element ``(batch, m, n)`` of a matmul.

    Parameters
    ----------
    seed, stream : int
        The key, 64 bits each.
    batch, m, n, k : int
        Indices, 32 bits each.
    stochastic_bits : int
        How many bits r a rounding uses.
    two_roundings : bool
        Whether both the product and the sum round stochastically.

    Returns
    -------
    product, sum : int
        Numbers of r bits: of the domain-1 word, bits 0..r-1 for the product and 16..16+r-1 for the sum; with r > 16 the
        sum takes bits 0..r-1 of the domain-2 word; with one stochastic rounding a step, it takes bits 0..r-1.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> product, total = ref.random_words_matmul(1, 0, 0, 0, 0, 5, 16, True)
    >>> hex(total << 16 | product) == hex(ref.random_words_matmul(1, 0, 0, 0, 0, 5, 32, False)[0])
    True
    """
    if not 1 <= stochastic_bits <= 32:
        raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
    mask = (1 << stochastic_bits) - 1
    counter = (k // 4, n, m, batch)
    word = philox4x32_10(_derived_key(seed, stream, 1), counter)[k % 4]
    if not two_roundings:
        return word & mask, word & mask
    if stochastic_bits <= 16:
        return word & mask, word >> 16 & mask
    second = philox4x32_10(_derived_key(seed, stream, 2), counter)[k % 4]
    return word & mask, second & mask


# -- units -------------------------------------------------------------------------------------------------------------
def mad_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    operand,
    accumulator: Format | str,
    product: Format | str | None = None,
    rounding: str = "nearest_even",
    product_rounding: str | None = None,
    overflow: str | None = None,
    stochastic_bits: int = 32,
    lanes: int = 1,
    chunk: int | None = None,
    outer_accumulator: Format | str | None = None,
    c: int | None = None,
    key: int | tuple[int, int] | None = None,
    batch: int = 0,
    m: int = 0,
    n: int = 0,
    random_bits: Sequence[tuple[int, int]] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.MadUnit` computes it, as a plain loop.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    operand : format, or a pair of formats
        The format of ``a_codes`` and ``b_codes``.
    accumulator, product : format
        ``acc = R(acc + R_product(a * b))``; without ``product``, ``acc = R(acc + a * b)`` with one rounding.
    rounding, product_rounding : str
        Of the sums, and of the product (``None``: the same).
    overflow : str, optional
        One rule for all roundings; by default each format's own.
    stochastic_bits : int
        Bits r of each stochastic rounding.
    lanes : int
        Only 1 is defined here.
    chunk : int, optional
        Sum each ``chunk`` steps on their own, from +0, then add these sums in order.
    outer_accumulator : format, optional
        The format of the sum of chunks (default ``accumulator``).
    c : int, optional
        The code that the (outer) sum starts from; +0 if missing.
    key : int or (seed, stream), optional
        Where the random words of a stochastic unit come from, with ``batch``, ``m`` and ``n``, the result's indices.
    random_bits : sequence of (product, sum) pairs, optional
        The random words themselves, one pair a step; the outer additions are steps K, K + 1, ...

    Returns
    -------
    code : int
        In ``accumulator``, or in ``outer_accumulator`` if there is one.
    flags : Flags
        Of all steps together.

    Raises
    ------
    ValueError
        If the lengths differ, a stochastic unit has no random words, or a parameter is out of range.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ones = [0x3C] * 20  # 1.0 in e5m2: a sum of 3-bit significands stalls at 8, chunks of 4 get further
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2")[0], "e5m2")
    Fraction(8, 1)
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", chunk=4)[0], "e5m2")
    Fraction(20, 1)
    """
    operands = tuple(operand) if isinstance(operand, (tuple, list)) else (operand, operand)
    accumulator = format_of(accumulator)
    outer = accumulator if outer_accumulator is None else format_of(outer_accumulator)
    rounding = rounding_name(rounding)
    product_rounding = rounding if product_rounding is None else rounding_name(product_rounding)
    steps = len(a_codes)
    if len(b_codes) != steps:
        raise ValueError(f"a dot product needs equally long operands, got {steps} and {len(b_codes)}")
    if lanes != 1:
        raise ValueError(f"the reference defines lanes=1 only, got {lanes}")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    if chunk is None and outer_accumulator is not None:
        raise ValueError("outer_accumulator= is the format of the sum of chunks; give chunk=")
    if not (accumulator.has_zero and outer.has_zero):
        raise ValueError(f"sums start from +0, which {accumulator if outer.has_zero else outer} lacks")

    sum_is_stochastic = rounding.startswith("stochastic")
    product_is_stochastic = product is not None and product_rounding.startswith("stochastic")
    seed, stream = key if isinstance(key, tuple) else (key, 0)

    def words(k: int) -> tuple[int | None, int | None]:
        if random_bits is not None:
            return random_bits[k]
        if seed is None or not (sum_is_stochastic or product_is_stochastic):
            return None, None
        both = sum_is_stochastic and product_is_stochastic
        return random_words_matmul(seed, stream, batch, m, n, k, stochastic_bits, both)

    flags = Flags(0)
    common = {"overflow": overflow, "stochastic_bits": stochastic_bits}

    def inner_sum(start: int, first: int, last: int) -> int:
        nonlocal flags
        total = start
        for k in range(first, last):
            product_word, sum_word = words(k)
            of_sum = {"rounding": rounding, "random_bits": sum_word, **common}
            if product is None:
                formats = (*operands, accumulator)
                total, raised = fma(a_codes[k], b_codes[k], total, formats, out_fmt=accumulator, **of_sum)
            else:
                of_product = {"rounding": product_rounding, "random_bits": product_word, **common}
                term, raised = multiply(a_codes[k], b_codes[k], operands, out_fmt=product, **of_product)
                flags |= raised
                total, raised = add(total, term, (accumulator, product), out_fmt=accumulator, **of_sum)
            flags |= raised
        return total

    if chunk is None:
        return inner_sum(0 if c is None else c, 0, steps), flags
    total = 0 if c is None else c
    for j, first in enumerate(range(0, steps, chunk)):
        part = inner_sum(0, first, min(first + chunk, steps))
        total, raised = add(
            total,
            part,
            (outer, accumulator),
            out_fmt=outer,
            rounding=rounding,
            random_bits=words(steps + j)[1],
            **common,
        )
        flags |= raised
    return total, flags
