"""One rounding of an exact value, as a circuit: code and flags."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from softnum.reference.facts import FixedFacts, FloatFacts
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, leading_one

__all__ = [
    "DIVIDE_BY_ZERO", "INEXACT", "INVALID", "MODES", "OVERFLOW", "UNDERFLOW", "Environment", "Result", "goes_up",
    "infinity", "invalid", "quiet", "rounded",
]  # fmt: skip

INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = 1, 2, 4, 8, 16
#: the modes without random bits
MODES = (
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "toward_zero", "away_from_zero", "up",
    "down", "to_odd",
)  # fmt: skip


class Environment(NamedTuple):
    """What a result depends on besides the value, by softnum's full names."""

    rounding: str
    overflow: str
    tininess: str
    nan: str


class Result(NamedTuple):
    """The code of a result, and its five flags."""

    code: Bits
    flags: Bits


def goes_up(c: Circuit, mode: str, sign: Bits, odd: Bits, half: Bits, rest: Bits) -> Bits:
    """Whether a magnitude rounds away from zero: ``half``, half of a place or more is cut off; ``rest``, it is not just
    half or nothing that is."""
    inexact = half | rest
    directed = {
        "toward_zero": c.const(0, 1), "away_from_zero": inexact, "up": inexact & ~sign, "down": inexact & sign,
        "to_odd": inexact & ~odd,
    }  # fmt: skip
    if mode in directed:
        return directed[mode]
    tie = {
        "nearest_even": odd, "nearest_away": c.const(1, 1), "nearest_zero": c.const(0, 1), "nearest_up": ~sign,
        "nearest_down": sign,
    }[mode]  # fmt: skip
    return half & (rest | tie)


def _with_sign(c: Circuit, sign: Bits, magnitude: Bits, fmt: FloatFacts) -> Bits:
    """The code; the magnitude has the width of the format's magnitudes."""
    if not fmt.signed:
        return magnitude
    return c.concat(sign if fmt.negative_zero else sign & magnitude.any(), magnitude)


def _magnitude(c: Circuit, value: int, fmt: FloatFacts) -> Bits:
    return c.const(value, fmt.exponent_bits + fmt.mantissa_bits)


def invalid(c: Circuit, fmt: FloatFacts | FixedFacts, env: Environment) -> Result:
    """What has no value: the default NaN, or code 0 where there is no NaN; INVALID is raised."""
    if not fmt.has_nan:
        return Result(c.const(0, fmt.bits), c.const(INVALID, 5))
    negative = env.nan == "x86" and fmt.signed and fmt.nan_codes in ("ieee", "all_ones")
    return Result(c.const(fmt.nan_code | negative << (fmt.bits - 1), fmt.bits), c.const(INVALID, 5))


def quiet(c: Circuit, x: Number, signaling: Bits, fmt: FloatFacts | FixedFacts, env: Environment) -> Result:
    """A NaN operand as a result."""
    if not fmt.has_nan:
        return invalid(c, fmt, env)
    flags = c.ite(signaling, c.const(INVALID, 5), 0)
    if env.nan == "canonical" or fmt.nan_codes == "negative_zero":
        return Result(c.const(fmt.nan_code, fmt.bits), flags)
    code = c.const(fmt.nan_code, fmt.bits)
    if fmt.nan_codes == "ieee":
        m, payload = fmt.mantissa_bits, x.payload
        code |= (payload.placed(m - payload.width) if payload.width <= m else payload[payload.width - m :]).extended(
            fmt.bits
        )
    return Result(code | x.sign.placed(fmt.bits - 1) if fmt.signed else code, flags)


def _below_zero(c: Circuit, fmt: FloatFacts, env: Environment, infinite: bool = False) -> Bits:
    """A negative result in a format without signs."""
    to_zero = not infinite and env.rounding in ("toward_zero", "up")
    return c.const(fmt.nan_code if fmt.p3109 and env.overflow == "infinity" and not to_zero else 0, fmt.bits)


def infinity(c: Circuit, sign: Bits, fmt: FloatFacts | FixedFacts, env: Environment) -> Result:
    """A result that is infinite and exact."""
    none = c.const(0, 5)
    if isinstance(fmt, FixedFacts):
        return invalid(c, fmt, env)
    if fmt.infinities and env.overflow != "saturate":
        code = _with_sign(c, sign, _magnitude(c, fmt.inf_code, fmt), fmt)
    elif fmt.has_nan and not fmt.saturating and env.overflow == "infinity":
        code = c.const(fmt.nan_code, fmt.bits)
    else:
        code = _with_sign(c, sign, _magnitude(c, fmt.max_code, fmt), fmt)
    if fmt.signed:
        return Result(code, none)
    below = Result(_below_zero(c, fmt, env, True), none) if fmt.has_zero else invalid(c, fmt, env)
    return Result(c.ite(sign, below.code, code), c.ite(sign, below.flags, none))


def _overflowed(c: Circuit, sign: Bits, fmt: FloatFacts, env: Environment) -> Bits:
    """The code of a finite result that is too large (IEEE 754-2019, 7.4; P3109's interim report v4.0, 4.7.5)."""
    older = env.overflow == "p3109_v3_2_1"
    odd_infinity = older or (fmt.p3109 and fmt.signed and fmt.infinities and fmt.max_code % 2 == 0)
    largest = _with_sign(c, sign, _magnitude(c, fmt.max_code, fmt), fmt)
    if env.overflow not in ("infinity", "p3109_v3_2_1") or env.rounding == "toward_zero":
        return largest
    if env.rounding == "to_odd" and not odd_infinity:
        return largest
    beyond = infinity(c, sign, fmt, env).code
    stays = {"up": sign, "down": ~sign}.get(env.rounding)
    return beyond if stays is None else c.ite(stays, largest, beyond)


def rounded(c: Circuit, x: Exact, fmt: FloatFacts | FixedFacts, env: Environment) -> Result:
    """An exact finite value in its format.

    Examples
    --------
    1.25 lies between 1 and 1.5, 3 is exact, and 7.5 is beyond the largest value, 6:

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> x = Exact(c.const(0, 1), c.input("quarters", 5), -2)
    >>> result = rounded(c, x, format_of("e2m1fn"), Environment("nearest_even", "saturate", "after", "canonical"))
    >>> c.output("code", result.code)
    >>> c.output("flags", result.flags)
    >>> [found.tolist() for found in evaluate(c, {"quarters": [5, 12, 30]}).values()]
    [[2, 5, 7], [1, 0, 5]]
    """
    return _in_fixed(c, x, fmt, env) if isinstance(fmt, FixedFacts) else _in_float(c, x, fmt, env)


def _cut(c: Circuit, magnitude: Bits, places: int) -> tuple[Bits, Bits, Bits]:
    """A magnitude cut at a fixed place: what stays, whether half a place or more goes, and whether more than that."""
    if places <= 0:
        return magnitude.placed(-places), c.const(0, 1), c.const(0, 1)
    x = magnitude.extended(places + 1)
    return x[places:], x[places - 1], x[: places - 1].any() if places > 1 else c.const(0, 1)


def _in_fixed(c: Circuit, x: Exact, fmt: FixedFacts, env: Environment) -> Result:
    kept, half, rest = _cut(c, x.magnitude, -fmt.fraction_bits - x.unit)
    kept = kept.extended(max(kept.width, fmt.bits) + 1)
    up = goes_up(c, env.rounding, x.sign, kept[0], half, rest)
    magnitude = kept + up.extended(kept.width)
    out = c.ite(x.sign, magnitude > -fmt.lowest, magnitude > fmt.max_code)
    low = magnitude[: fmt.bits]
    code = c.ite(x.sign, c.const(0, fmt.bits) - low, low)
    if env.overflow != "wrap":
        code = c.ite(out, c.ite(x.sign, c.const(fmt.lowest, fmt.bits), fmt.max_code), code)
    flags = c.ite(half | rest, c.const(INEXACT, 5), 0) | c.ite(out, c.const(OVERFLOW, 5), 0)
    return Result(code, flags)


def _in_float(c: Circuit, x: Exact, fmt: FloatFacts, env: Environment) -> Result:
    m, sign, mode = fmt.mantissa_bits, x.sign, env.rounding
    unit = min(x.unit, fmt.emin - m - 2)
    magnitude = x.magnitude.placed(x.unit - unit)
    first = fmt.emin - unit  # the place of the lowest normal binade's leading bit
    magnitude = magnitude.extended(first + 2)
    width, zero = magnitude.width, ~magnitude.any()
    top = leading_one(c, magnitude)
    below = ~magnitude[first:].any()

    # on the format's grid, which goes on beyond its largest value; code counts it
    place = c.ite(below, c.const(first, top.width), top)
    cut = place - m
    kept = (magnitude >> cut.sized(min(cut.width, width)))[: m + 1]
    last = c.const(1, width) << (cut - 1).sized(min(cut.width, width))
    half, rest = (magnitude & last).any(), (magnitude & (last - 1)).any()
    binades = place - first
    size = max(binades.width + m + 1, fmt.bits + 1)
    code = binades.placed(m).extended(size) + kept.extended(size)
    tiny = below
    if fmt.lowest_binade == "normal":
        code -= 1 << m
        if fmt.has_zero:
            tiny = below | (~magnitude[first + 1 :].any() & ~magnitude[first - m : first].any() if m else
                            ~magnitude[first + 1 :].any())  # fmt: skip
    up = goes_up(c, mode, sign, code[0], half, rest)
    grown = _grown(c, magnitude, first, fmt, mode, sign, up)
    magnitude_code = code + up.extended(size)
    inexact = half | rest
    if fmt.lowest_binade != "subnormal" and fmt.has_zero:  # nothing lies between 0 and the smallest normal number
        least = int(fmt.smallest_normal / Fraction(2) ** unit)
        twice, gap = magnitude.extended(width + 1).placed(1), c.const(least, width + 2)
        half, rest = ~(twice < gap), ~zero & (twice != gap)
        up = goes_up(c, mode, sign, c.const(0, 1), half, rest)
        magnitude_code = c.ite(tiny, c.ite(up, c.const(fmt.normal_code, size), 0), magnitude_code)
        inexact = c.ite(tiny, ~zero, inexact)
    overflow = magnitude_code > fmt.max_code
    result = magnitude_code[: fmt.exponent_bits + m]
    code = c.ite(overflow, _overflowed(c, sign, fmt, env), _with_sign(c, sign, result, fmt))
    if not fmt.signed and fmt.has_zero:
        code = c.ite(sign & magnitude_code.any(), _below_zero(c, fmt, env), code)
    underflow = inexact & (tiny if env.tininess == "before" else tiny & ~grown)
    flags = c.concat(overflow, underflow & ~overflow, inexact | overflow).extended(5)
    if not fmt.has_zero:  # what lies below the smallest number becomes it; below zero there is none
        low = below | zero
        code, flags = c.ite(low, 0, code), c.ite(low, c.const(INEXACT | UNDERFLOW, 5), flags)
        nothing, negative = invalid(c, fmt, env), sign & ~zero
        code, flags = c.ite(negative, nothing.code, code), c.ite(negative, nothing.flags, flags)
    return Result(code, flags)


def _grown(c: Circuit, magnitude: Bits, first: int, fmt: FloatFacts, mode: str, sign: Bits, up: Bits) -> Bits:
    """Whether a tiny value, rounded as if exponents had no bounds, reaches the smallest normal number."""
    m = fmt.mantissa_bits
    if fmt.lowest_binade == "normal" and fmt.has_zero:  # which is the first above a power of two
        return magnitude[first] & up
    kept = magnitude[first - 1 - m : first]  # of the binade below, if its bits are all 1
    odd = m > 0 or fmt.lowest_binade == "normal"
    half, rest = magnitude[first - 2 - m], magnitude[: first - 2 - m].any() if first > 2 + m else c.const(0, 1)
    free = goes_up(c, mode, sign, c.const(int(odd), 1), half, rest)
    return kept.all() & free
