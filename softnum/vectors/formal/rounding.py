"""One rounding of an exact value, as a circuit: code and flags."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from softnum.reference.facts import FixedFacts, FloatFacts, Format
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, leading_one
from softnum.vectors.formal.tapered import rounded_string
from softnum.vectors.formal.value_tables import ValueFacts, rounded_to_value

__all__ = [
    "DIVIDE_BY_ZERO", "INEXACT", "INVALID", "OVERFLOW", "UNDERFLOW", "Environment", "Lost", "Result", "below_zero",
    "cut", "goes_up", "infinity", "invalid", "quiet", "rounded",
]  # fmt: skip

INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = 1, 2, 4, 8, 16


class Environment(NamedTuple):
    """What a result depends on besides the value, by softnum's full names; `random` are a stochastic mode's bits."""

    rounding: str
    overflow: str
    tininess: str
    nan: str
    flush_results: str | None = None
    random: Bits | None = None

    @property
    def random_bits(self) -> int:
        """How many random bits there are."""
        return 0 if self.random is None else self.random.width


class Lost(NamedTuple):
    """What is cut off: whether half a place or more, and whether it is not just half or nothing. ``digits`` gives all
    of it, the first digit in the highest bit."""

    half: Bits
    rest: Bits
    digits: Callable[[], Bits]

    @property
    def any(self) -> Bits:
        """Whether anything is lost."""
        return self.half | self.rest


class Result(NamedTuple):
    """The code of a result, and its five flags."""

    code: Bits
    flags: Bits


def goes_up(c: Circuit, env: Environment, sign: Bits, odd: Bits, lost: Lost) -> Bits:
    """Whether a magnitude rounds away from zero; ``odd``: its lowest bit that stays."""
    mode, inexact = env.rounding, lost.any
    if env.random is not None:
        return _carries(c, env, sign, lost)
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
    return lost.half & (lost.rest | tie)


def _carries(c: Circuit, env: Environment, sign: Bits, lost: Lost) -> Bits:
    """Whether r random bits, added to the first r digits of what is lost, carry; digits below these are dropped, or
    round them first (`softnum.reference.round_value` has the modes' formulas)."""
    random, r = env.random, env.random_bits
    if env.rounding == "stochastic_equal":
        return lost.any & random[r - 1]
    digits = lost.digits()
    digits = digits.placed(max(r + 2 - digits.width, 0))
    below = digits.width - r
    first, following, last = digits[below:], digits[below - 1], digits[: below - 1].any()
    more = {
        "stochastic_fast": following, "stochastic_even": following & (last | first[0]),
        "stochastic_odd": following & (last | ~first[0]),
    }.get(env.rounding, c.const(0, 1))  # fmt: skip
    wide = r + 1
    up = (first.extended(wide) + more.extended(wide) + random.extended(wide))[r]
    if env.rounding != "stochastic_floor":
        return up
    ceiling = first.extended(wide) + (following | last).extended(wide)  # of two's complement: R - t, below zero or not
    return c.ite(sign, random.extended(wide) < ceiling, up)


def _with_sign(c: Circuit, sign: Bits, magnitude: Bits, fmt: FloatFacts) -> Bits:
    """The code; the magnitude has the width of the format's magnitudes."""
    if not fmt.signed:
        return magnitude
    return c.concat(sign if fmt.negative_zero else sign & magnitude.any(), magnitude)


def _magnitude(c: Circuit, value: int, fmt: FloatFacts) -> Bits:
    return c.const(value, fmt.exponent_bits + fmt.mantissa_bits)


def invalid(c: Circuit, fmt: Format, env: Environment) -> Result:
    """What has no value: the default NaN, or code 0 where there is no NaN; INVALID is raised."""
    if not fmt.has_nan:
        code = fmt.invalid_code if isinstance(fmt, ValueFacts) else 0
        return Result(c.const(code, fmt.bits), c.const(INVALID, 5))
    negative = env.nan == "x86" and fmt.signed and fmt.nan_codes in ("ieee", "all_ones")
    return Result(c.const(fmt.nan_code | negative << (fmt.bits - 1), fmt.bits), c.const(INVALID, 5))


def quiet(c: Circuit, x: Number, signaling: Bits, fmt: Format, env: Environment) -> Result:
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


def below_zero(c: Circuit, fmt: FloatFacts, env: Environment, infinite: bool = False) -> Bits:
    """A negative result in a format without signs."""
    to_zero = not infinite and env.rounding in ("toward_zero", "up")
    return c.const(fmt.nan_code if fmt.p3109 and env.overflow == "infinity" and not to_zero else 0, fmt.bits)


def infinity(c: Circuit, sign: Bits, fmt: Format, env: Environment) -> Result:
    """A result that is infinite and exact."""
    none = c.const(0, 5)
    if isinstance(fmt, ValueFacts) and not (fmt.has_nan and env.overflow == "infinity"):
        return Result(c.ite(sign, c.const(fmt.end(True), fmt.bits), fmt.end(False)), none)
    if not isinstance(fmt, FloatFacts):
        return invalid(c, fmt, env)
    if fmt.infinities and env.overflow != "saturate":
        code = _with_sign(c, sign, _magnitude(c, fmt.inf_code, fmt), fmt)
    elif fmt.has_nan and not fmt.saturating and env.overflow == "infinity":
        code = c.const(fmt.nan_code, fmt.bits)
    else:
        code = _with_sign(c, sign, _magnitude(c, fmt.max_code, fmt), fmt)
    if fmt.signed:
        return Result(code, none)
    below = Result(below_zero(c, fmt, env, True), none) if fmt.has_zero else invalid(c, fmt, env)
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


def rounded(c: Circuit, x: Exact, fmt: Format, env: Environment) -> Result:
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
    if isinstance(fmt, FixedFacts):
        return _in_fixed(c, x, fmt, env)
    if isinstance(fmt, FloatFacts):
        return _in_float(c, x, fmt, env)
    if isinstance(fmt, ValueFacts):
        return Result(rounded_to_value(c, x, fmt, env.rounding), c.const(0, 5))
    return Result(rounded_string(c, x, fmt), c.const(0, 5))


def cut(c: Circuit, magnitude: Bits, places: int) -> tuple[Bits, Lost]:
    """A magnitude cut at a fixed place: what stays, and what does not."""
    none = c.const(0, 1)
    if places <= 0:
        return magnitude.placed(-places), Lost(none, none, lambda: none)
    x = magnitude.extended(places + 1)
    return x[places:], Lost(x[places - 1], x[: places - 1].any() if places > 1 else none, lambda: x[:places])


def _in_fixed(c: Circuit, x: Exact, fmt: FixedFacts, env: Environment) -> Result:
    kept, lost = cut(c, x.magnitude, -fmt.fraction_bits - x.unit)
    kept = kept.extended(max(kept.width, fmt.bits) + 1)
    up = goes_up(c, env, x.sign, kept[0], lost)
    magnitude = kept + up.extended(kept.width)
    out = c.ite(x.sign, magnitude > -fmt.lowest, magnitude > fmt.max_code)
    low = magnitude[: fmt.bits]
    code = c.ite(x.sign, c.const(0, fmt.bits) - low, low)
    if env.overflow != "wrap":
        code = c.ite(out, c.ite(x.sign, c.const(fmt.lowest, fmt.bits), fmt.max_code), code)
    flags = c.ite(lost.any, c.const(INEXACT, 5), 0) | c.ite(out, c.const(OVERFLOW, 5), 0)
    return Result(code, flags)


def _in_float(c: Circuit, x: Exact, fmt: FloatFacts, env: Environment) -> Result:
    m, sign = fmt.mantissa_bits, x.sign
    unit = min(x.unit, fmt.emin - m - 2)
    magnitude = x.magnitude.placed(x.unit - unit)
    first = fmt.emin - unit  # the place of the lowest normal binade's leading bit
    magnitude = magnitude.extended(first + 2)
    width, zero = magnitude.width, ~magnitude.any()
    top = leading_one(c, magnitude)
    below = ~magnitude[first:].any()

    # on the format's grid, which goes on beyond its largest value; code counts it
    place = c.ite(below, c.const(first, top.width), top)
    places = place - m
    kept = (magnitude >> places.sized(min(places.width, width)))[: m + 1]
    last = c.const(1, width) << (places - 1).sized(min(places.width, width))
    digits = lambda: magnitude << (c.const(width, width.bit_length()) - places.sized(width.bit_length()))  # noqa: E731
    lost = Lost((magnitude & last).any(), (magnitude & (last - 1)).any(), digits)
    binades = place - first
    size = max(binades.width + m + 1, fmt.bits + 1)
    code = binades.placed(m).extended(size) + kept.extended(size)
    tiny = below
    if fmt.lowest_binade == "normal":
        code -= 1 << m
        if fmt.has_zero:
            tiny = below | (~magnitude[first + 1 :].any() & ~magnitude[first - m : first].any() if m else
                            ~magnitude[first + 1 :].any())  # fmt: skip
    up = goes_up(c, env, sign, code[0], lost)
    grown = _grown(c, magnitude, first, fmt, env, sign, up)
    magnitude_code = code + up.extended(size)
    inexact = lost.any
    if fmt.lowest_binade != "subnormal" and fmt.has_zero:  # nothing lies between 0 and the smallest normal number
        least = int(fmt.smallest_normal / Fraction(2) ** unit)
        twice, gap = magnitude.extended(width + 1).placed(1), c.const(least, width + 2)
        lost = Lost(~(twice < gap), ~zero & (twice != gap), lambda: _in_gap(c, magnitude, least, env.random_bits))
        up = goes_up(c, env, sign, c.const(0, 1), lost)
        magnitude_code = c.ite(tiny, c.ite(up, c.const(fmt.normal_code, size), 0), magnitude_code)
        inexact = c.ite(tiny, ~zero, inexact)
    overflow = magnitude_code > fmt.max_code
    result = magnitude_code[: fmt.exponent_bits + m]
    code = c.ite(overflow, _overflowed(c, sign, fmt, env), _with_sign(c, sign, result, fmt))
    if not fmt.signed and fmt.has_zero:
        code = c.ite(sign & magnitude_code.any(), below_zero(c, fmt, env), code)
    underflow = inexact & (tiny if env.tininess == "before" else tiny & ~grown)
    flags = c.concat(overflow, underflow & ~overflow, inexact | overflow).extended(5)
    if not fmt.has_zero:  # what lies below the smallest number becomes it; below zero there is none
        low = below | zero
        code, flags = c.ite(low, 0, code), c.ite(low, c.const(INEXACT | UNDERFLOW, 5), flags)
        nothing, negative = invalid(c, fmt, env), sign & ~zero
        code, flags = c.ite(negative, nothing.code, code), c.ite(negative, nothing.flags, flags)
    elif env.flush_results is not None:
        small = ~zero & tiny & (c.const(1, 1) if env.flush_results == "before" else ~grown)
        if env.flush_results == "subnormal":
            lowest = ~overflow & magnitude_code.any() & (magnitude_code < fmt.normal_code)
            small = lowest if fmt.lowest_binade == "subnormal" else c.const(0, 1)
        nothing = _with_sign(c, sign, _magnitude(c, 0, fmt), fmt)
        code, flags = c.ite(small, nothing, code), c.ite(small, c.const(INEXACT | UNDERFLOW, 5), flags)
    return Result(code, flags)


def _in_gap(c: Circuit, magnitude: Bits, least: int, random_bits: int) -> Bits:
    """A magnitude below ``least``, in units of that: all digits that a rounding looks at, and one for what follows."""
    n = magnitude.placed(random_bits + 2)
    n = n.extended(max(n.width, least.bit_length()))
    quotient = n // c.const(least, n.width)
    return c.concat(quotient.sized(random_bits + 2), n != quotient * c.const(least, n.width))


def _grown(c: Circuit, magnitude: Bits, first: int, fmt: FloatFacts, env: Environment, sign: Bits, up: Bits) -> Bits:
    """Whether a tiny value, rounded as if exponents had no bounds, reaches the smallest normal number; whether a
    stochastic result is tiny does not hang on its random bits."""
    m = fmt.mantissa_bits
    if env.random is not None:
        return c.const(0, 1)
    if fmt.lowest_binade == "normal" and fmt.has_zero:  # which is the first above a power of two
        return magnitude[first] & up
    kept = magnitude[first - 1 - m : first]  # of the binade below, if its bits are all 1
    odd = m > 0 or fmt.lowest_binade == "normal"
    half, rest = magnitude[first - 2 - m], magnitude[: first - 2 - m].any() if first > 2 + m else c.const(0, 1)
    free = goes_up(c, env, sign, c.const(int(odd), 1), Lost(half, rest, lambda: half))
    return kept.all() & free
