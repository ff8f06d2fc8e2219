"""One delivery of an exact value to its format: rounding, overflow, underflow, flushing, flags.

Sources: IEEE Std 754-2019, clauses 4.3 (rounding) and 7 (exceptions).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import NamedTuple

from softnum.reference.facts import FloatFacts, Format, TaperedFacts, format_of
from softnum.reference.nans import default_nan, profile_name, quieted
from softnum.reference.rules import Flags, checked, overflow_name
from softnum.reference.values import (
    Value,
    decode,
    magnitude_value,
    stored_code,
    tapered_point,
    tapered_value,
    value_of,
)

INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = (
    int(Flags[name]) for name in ("INEXACT", "UNDERFLOW", "OVERFLOW", "DIVIDE_BY_ZERO", "INVALID")
)
FLAGS = [Flags(bits) for bits in range(32)]  # looking one up is ten times faster than making one

_EXPONENT_BITS = 8  # a bit string that is so much longer has all bits of the exponent of what it stands for

# Whether a magnitude goes up from its lower neighbour, given the sign and the lowest bit of that neighbour:
#: at a tie, in the modes to nearest;
TO_NEAREST: dict[str, Callable[[bool, bool], bool]] = {
    "nearest_even": lambda sign, odd: odd,
    "nearest_away": lambda sign, odd: True,
    "nearest_zero": lambda sign, odd: False,
    "nearest_up": lambda sign, odd: not sign,
    "nearest_down": lambda sign, odd: sign,
}
#: wherever it lies between its neighbours, in the directed ones.
DIRECTED: dict[str, Callable[[bool, bool], bool]] = {
    "toward_zero": lambda sign, odd: False,
    "away_from_zero": lambda sign, odd: True,
    "up": lambda sign, odd: not sign,
    "down": lambda sign, odd: sign,
    "to_odd": lambda sign, odd: not odd,
}
#: By random bits: `stochastic_goes_up`.
STOCHASTIC = (
    "stochastic", "stochastic_floor", "stochastic_fast", "stochastic_even", "stochastic_odd", "stochastic_equal",
)  # fmt: skip
ROUNDING_MODES = (*TO_NEAREST, *DIRECTED, *STOCHASTIC)
#: Other names of some of them.
SHORT_NAMES = {
    "rne": "nearest_even", "rna": "nearest_away", "rtz": "toward_zero", "rup": "up", "rdn": "down", "rto": "to_odd",
    "sr": "stochastic", "stochastic_fastest": "stochastic",
}  # fmt: skip


def rounding_name(name: str) -> str:
    """The full name of a rounding mode given by its full or short name; ValueError if there is none."""
    full = SHORT_NAMES.get(name, name) if isinstance(name, str) else name
    return checked("rounding mode", full, ROUNDING_MODES, SHORT_NAMES)


class Environment(NamedTuple):
    rounding: str
    overflow: str
    stochastic_bits: int
    random_bits: int
    tininess: str
    flush_results: str | None
    nan: str
    invalid: int  # a code


def environment_of(
    fmt: Format | str,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    stochastic_bits: int = 32,
    random_bits: int | None = None,
    tininess: str = "after",
    flush_results: str | None = None,
    nan: str = "canonical",
    invalid: float | Rational | None = None,
) -> Environment:
    """The checked form of the keywords of `round_value`."""
    fmt = format_of(fmt)
    rounding = rounding_name(rounding)
    overflow = overflow_name(overflow, fmt)
    if tininess not in ("after", "before"):
        raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
    if flush_results not in (None, "before", "after", "subnormal"):
        raise ValueError(f"flush_results must be None, 'before', 'after' or 'subnormal', got {flush_results!r}")
    if rounding.startswith("stochastic"):
        if not 1 <= stochastic_bits <= 32:
            raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
        if random_bits is None:
            raise ValueError(f"rounding={rounding!r} needs random_bits")
        random_bits &= (1 << stochastic_bits) - 1
    profile, invalid = profile_name(nan), 0 if invalid is None else code_of_invalid(invalid, fmt)
    if profile == "x86" and fmt.explicit_bit:
        profile = "x87"
    return Environment(rounding, overflow, stochastic_bits, random_bits or 0, tininess, flush_results, profile, invalid)


def code_of_invalid(number: float | Rational, fmt: Format) -> int:
    """The code of ``invalid=``, which a format with a NaN has no use for."""
    if fmt.has_nan:
        return 0
    x = value_of(number)
    if x.kind == "finite":
        code, _ = deliver(x, fmt, environment_of(fmt))
        if decode(code, fmt).fraction == x.fraction:
            return code
    raise ValueError(f"invalid={number} is not a value of {fmt}")


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
    flush_results: str | None = None,
    nan: str = "canonical",
    invalid: float | Rational | None = None,
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
        One of `softnum.reference.rounding.ROUNDING_MODES`.
    overflow : str, optional
        "infinity" (default for floats), "saturate" (default for fixed point), "saturate_finite", "wrap" (of fixed
        point), or "p3109_v3_2_1" (of P3109's formats with infinities): OvfInf of the interim report v3.2.1, 4.9.4, by
        which in formats without signs what lies below zero is 0, and rounding to odd overflows to infinity.
    stochastic_bits, random_bits : int
        The stochastic modes use the low r = ``stochastic_bits`` bits R of ``random_bits``. With t the exact discarded
        fraction of an ulp and N = 2**r, a magnitude rounds up iff

        - "stochastic" (also "stochastic_fastest"): ``floor(t * N) + R >= N``;
        - "stochastic_fast": ``t * N + R + 1/2 >= N``;
        - "stochastic_even", "stochastic_odd": ``nearest(t * N) + R >= N``, ties of this nearest integer to the even or
          the odd one;
        - "stochastic_equal": ``2 * R >= N``, whatever t.

        "stochastic_floor" returns ``floor((floor(x * N) + R) / N)``, x counted in ulps, in two's complement. What is
        exact stays in all of them.
    tininess : {"after", "before"}
        Where UNDERFLOW looks; in a stochastic mode always before rounding.
    flush_results : {None, "before", "after"}
        Replace what is tiny, looked at before or after a rounding with unbounded exponent (in a stochastic mode always
        before), by a zero of its sign, and raise UNDERFLOW and INEXACT, for an exact result too. Fixed point has
        nothing tiny; a format without zero delivers its smallest value, as it does without flushing.
    nan : str
        One of `softnum.reference.rules.NAN_PROFILES`: which NaN comes of NaN operands and of invalid operations.
        "canonical", "riscv" and "arm_default" are one rule: the format's canonical NaN. "x86": the first operand that
        is NaN, made quiet (in x87's format a quiet one before a signaling one, then that of the larger significand);
        else the canonical one, its sign bit set where NaNs have a sign. "arm": the first signaling
        operand, else the first NaN, the addend of an fma before its factors; else the canonical one. An operand keeps
        its sign and the leading bits of its fraction. What overflows to NaN is the canonical one in all of them.
    invalid : int, float or Fraction, optional
        The value delivered with INVALID where a result has no code; by default that of code 0.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    ValueError
        For an unknown name, a rule that does not fit the format, a stochastic mode without random bits, or a value of
        ``invalid`` that the format does not have.

    Notes
    -----
    IEEE 754-2019 clauses 4.3, 7.4, 7.5 and 7.6; formats of P3109 raise no flags. gfloat (0.5.2)
    calls "stochastic" StochasticFastest, "stochastic_fast" StochasticFast, "stochastic_even" Stochastic and
    "stochastic_odd" StochasticOdd. The quantum of ``|x|`` is ``2**(max(floor(log2 |x|), emin) - m)``, and
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
    environment = environment_of(
        fmt, rounding, overflow, stochastic_bits, random_bits, tininess, flush_results, nan, invalid
    )
    sign = int(sign_of_zero) if x == 0 else int(x < 0)
    return deliver(Value("finite", sign, abs(x.numerator), x.denominator), fmt, environment)


def deliver(x: Value, fmt: Format | str, env: Environment, raised: int = 0) -> tuple[int, Flags]:
    """Bring an exact result to its format; ``raised`` are flags that the operation itself has raised."""
    fmt = format_of(fmt)
    if x.kind == "nan" and fmt.has_nan:
        code, flags = quieted(x, fmt, env.nan), INVALID if x.signaling else 0
    elif x.kind in ("nan", "invalid"):
        code, flags = invalid_result(fmt, env)
    elif x.kind == "inf":
        code, flags = infinity_result(x.sign, fmt, env)
    elif fmt.kind == "fixed":
        code, flags = round_fixed(x.sign, x.numerator, x.denominator, fmt, env)
    elif isinstance(fmt, TaperedFacts):
        code, flags = round_tapered(x.sign, x.numerator, x.denominator, fmt), 0
    else:
        code, flags = round_float(x.sign, x.numerator, x.denominator, fmt, env)
    if fmt.kind == "float":
        code = stored_code(code, fmt)
    return code, FLAGS[0 if fmt.silent else flags | raised]


def invalid_result(fmt: Format, env: Environment) -> tuple[int, int]:
    """What has no value: the profile's default NaN, or ``invalid=`` where there is no NaN."""
    return default_nan(fmt, env.nan) if fmt.has_nan else env.invalid, INVALID


def infinity_result(sign: int, fmt: Format, env: Environment) -> tuple[int, int]:
    """An infinity that is exact, or that overflow under the rule "infinity" asks for."""
    if not isinstance(fmt, FloatFacts):
        return invalid_result(fmt, env)
    if sign and not fmt.signed:
        return (below_zero(fmt, env, infinite=True), 0) if fmt.has_zero else invalid_result(fmt, env)
    if fmt.infinities and env.overflow != "saturate":
        return with_sign(sign, fmt.inf_code, fmt), 0
    if fmt.has_nan and not fmt.saturating and env.overflow == "infinity":
        return fmt.nan_code, 0
    return with_sign(sign, fmt.max_code, fmt), 0


def with_sign(sign: int, magnitude: int, fmt: FloatFacts) -> int:
    if not fmt.signed or (magnitude == 0 and not fmt.negative_zero):
        return magnitude
    return sign << (fmt.bits - 1) | magnitude


def round_fixed(sign: int, numerator: int, denominator: int, fmt: Format, env: Environment) -> tuple[int, int]:
    fmt = format_of(fmt)
    numerator, denominator = numerator << max(fmt.fraction_bits, 0), denominator << max(-fmt.fraction_bits, 0)
    integer, rest = divmod(numerator, denominator)
    integer += goes_up(sign, integer & 1, rest, denominator, env)
    flags = INEXACT if rest else 0
    if sign:
        integer = -integer
    if not fmt.lowest <= integer <= fmt.max_code:
        flags |= OVERFLOW
        if env.overflow != "wrap":
            integer = fmt.lowest if sign else fmt.max_code
    return integer & ((1 << fmt.bits) - 1), flags


def round_tapered(sign: int, numerator: int, denominator: int, fmt: TaperedFacts) -> int:
    """To nearest on the bit string, a tie to the even code; never from a number to 0 or NaR."""
    if numerator == 0:
        return 0
    low, high = 0, fmt.max_code  # the code lies from low to high
    while low < high:
        middle = (low + high) // 2
        point, unit = tapered_point(middle, fmt)
        above = numerator * unit - point * denominator  # from the point
        if middle == 0 or above > 0 or (above == 0 and middle & 1):
            low = middle + 1
        else:
            high = middle
    return (1 << fmt.bits) - low if sign else low


def cut_tapered(magnitude: Fraction, fmt: TaperedFacts) -> tuple[Fraction, Fraction, Fraction]:
    """The value of a magnitude's bit string cut off where the format's ends, the distance to the next value, and what
    was cut off, as a fraction of the last bit; of the smallest value below it. Beyond the largest nothing is."""

    def value(code: int, more: int) -> Fraction:
        return Fraction(*tapered_value(code, fmt.bits + more, fmt))

    def cut(more: int) -> int:
        low, high = 0, (fmt.max_code + 1 << more) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if value(middle, more) <= magnitude else (low, middle - 1)
        return low

    code = cut(0)
    kept = value(code, 0)
    if code == fmt.max_code:
        return magnitude, kept, Fraction(0)
    gap = value(code + 1, 0) - kept
    if not code:
        return kept, gap, magnitude / gap
    longer = cut(_EXPONENT_BITS)
    low, high = value(longer, _EXPONENT_BITS), value(longer + 1, _EXPONENT_BITS)
    rest = longer - (code << _EXPONENT_BITS) + (magnitude - low) / (high - low)
    return kept, gap, rest / (1 << _EXPONENT_BITS)


def round_float(sign: int, numerator: int, denominator: int, fmt: Format, env: Environment) -> tuple[int, int]:
    fmt = format_of(fmt)
    if not fmt.has_zero and sign and numerator:
        return invalid_result(fmt, env)
    if numerator == 0:
        return (with_sign(sign, 0, fmt), 0) if fmt.has_zero else (0, INEXACT | UNDERFLOW)

    # As if the exponent had no bounds:
    free = neighbours(numerator, denominator, floor_log2(numerator, denominator), fmt)
    below_normal = free[0] < fmt.normal_code
    tiny_before = below_normal
    tiny_after = below_normal and free[0] + goes_up(sign, free[0] & 1, free[1], free[2], env) < fmt.normal_code
    if env.rounding.startswith("stochastic"):
        tiny_after = tiny_before  # whether a result is tiny does not hang on the random bits
    flushing = below_normal and env.flush_results in ("before", "after") and fmt.has_zero
    if flushing and (tiny_before if env.flush_results == "before" else tiny_after):
        return with_sign(sign, 0, fmt), INEXACT | UNDERFLOW

    # On the format's grid: the neighbour toward zero and how far beyond it the value lies, rest / unit of the gap.
    lower, rest, unit = free
    upper = lower + 1
    if below_normal and not flushing:  # a value still there when flushing rounds up to the smallest normal, unbounded
        if fmt.lowest_binade == "subnormal":
            lower, rest, unit = neighbours(numerator, denominator, fmt.emin, fmt)
            upper = lower + 1
        elif fmt.has_zero:
            least_numerator, least_denominator = magnitude_value(fmt.normal_code, fmt)
            lower, upper = 0, fmt.normal_code
            rest, unit = numerator * least_denominator, denominator * least_numerator
        else:
            return 0, INEXACT | UNDERFLOW
    rounded = upper if goes_up(sign, lower & 1, rest, unit, env) else lower

    if env.flush_results == "subnormal" and fmt.lowest_binade == "subnormal" and 0 < rounded < fmt.normal_code:
        return with_sign(sign, 0, fmt), INEXACT | UNDERFLOW
    if rounded > fmt.max_code:
        code, flags = overflowed(sign, fmt, env), OVERFLOW | INEXACT
    else:
        code, flags = with_sign(sign, rounded, fmt), INEXACT if rest else 0
        if rest and (tiny_after if env.tininess == "after" else tiny_before):
            flags |= UNDERFLOW
    if sign and not fmt.signed and rounded:  # the flags are those of the magnitude
        code = below_zero(fmt, env)
    return code, flags


def below_zero(fmt: FloatFacts, env: Environment, infinite: bool = False) -> int:
    """What a negative number, or -infinity, becomes in a format with a zero and no signs: 0; of P3109's, where nothing
    saturates, NaN, but for what is finite in a mode that goes up there (interim report v4.0, 4.7.5; 0 by v3.2.1)."""
    goes_to_zero = not infinite and env.rounding in ("toward_zero", "up")
    return fmt.nan_code if fmt.p3109 and env.overflow == "infinity" and not goes_to_zero else 0


def floor_log2(numerator: int, denominator: int) -> int:
    guess = numerator.bit_length() - denominator.bit_length()  # right, or one too large
    return guess if numerator << max(-guess, 0) >= denominator << max(guess, 0) else guess - 1


def neighbours(numerator: int, denominator: int, exponent: int, fmt: FloatFacts) -> tuple[int, int, int]:
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


def goes_up(sign: int, odd: int, rest: int, unit: int, env: Environment) -> bool:
    """Whether a magnitude that lies rest / unit of the gap above its lower neighbour rounds to the upper one."""
    if rest == 0:
        return False
    mode = env.rounding
    if mode in TO_NEAREST:
        return 2 * rest > unit or (2 * rest == unit and bool(TO_NEAREST[mode](sign, odd)))
    if mode in DIRECTED:
        return bool(DIRECTED[mode](sign, odd))
    return stochastic_goes_up(sign, rest, unit, env)


def stochastic_goes_up(sign: int, rest: int, unit: int, env: Environment) -> bool:
    """`goes_up` in the stochastic modes: what of t * N is added to R, and whether that carries, N = 2**r."""
    mode, n = env.rounding, 1 << env.stochastic_bits
    steps, part = divmod(rest * n, unit)  # t * N = steps + part / unit
    if mode == "stochastic_floor" and sign:  # floor(-t * N) + R stays below zero
        return steps + (part > 0) > env.random_bits
    if mode == "stochastic_equal":
        return 2 * env.random_bits >= n
    if mode == "stochastic_fast":  # t * N + R + 1/2 >= N, of whole numbers: twice unit times both sides
        return 2 * rest * n + (2 * env.random_bits + 1) * unit >= 2 * n * unit
    if mode in ("stochastic_even", "stochastic_odd"):
        tie_goes_up = steps & 1 if mode == "stochastic_even" else not steps & 1
        steps += tie_goes_up if 2 * part == unit else 2 * part > unit
    return steps + env.random_bits >= n


def overflowed(sign: int, fmt: FloatFacts, env: Environment) -> int:
    older = env.overflow == "p3109_v3_2_1"
    odd_infinity = older or (fmt.p3109 and fmt.signed and fmt.infinities and fmt.max_code % 2 == 0)
    stays = "toward_zero", "down" if sign == 0 else "up", *(() if odd_infinity else ("to_odd",))
    if env.rounding in stays or env.overflow not in ("infinity", "p3109_v3_2_1"):
        return with_sign(sign, fmt.max_code, fmt)
    return infinity_result(sign, fmt, env)[0]
