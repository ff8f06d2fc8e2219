"""Roundings on a disclosure: the definition of each mode, and the codes of what is infinite or too large."""

from __future__ import annotations

from dataclasses import dataclass

from softnum.formats.dispatch import of_format
from softnum.formats.modes import overflow_name
from softnum.inspect.disclosure.formats import FormatTable, exact_text, hexadecimal
from softnum.reference.facts import format_of
from softnum.reference.rounding import INVALID, deliver, environment_of
from softnum.reference.values import Value

__all__ = ["Rounded"]

#: Whether the upper neighbour is taken, of what lies t of the gap above the lower one, u being that one's code.
_GOES_UP = {
    "nearest_even": "t > 1/2, or t = 1/2 and u is odd",
    "nearest_away": "t >= 1/2",
    "nearest_zero": "t > 1/2",
    "nearest_up": "t > 1/2, or t = 1/2 and s = 0",
    "nearest_down": "t > 1/2, or t = 1/2 and s = 1",
    "away_from_zero": "t > 0",
    "up": "t > 0 and s = 0",
    "down": "t > 0 and s = 1",
    "to_odd": "t > 0 and u is even",
    "stochastic": "floor(t * 2^r) + W >= 2^r",
    "stochastic_fast": "t * 2^r + W + 1/2 >= 2^r",
    "stochastic_even": "n + W >= 2^r, n the integer nearest to t * 2^r, of two the even one",
    "stochastic_odd": "n + W >= 2^r, n the integer nearest to t * 2^r, of two the odd one",
    "stochastic_floor": "s = 0 and floor(t * 2^r) + W >= 2^r, or s = 1 and ceil(t * 2^r) > W",
    "stochastic_equal": "2 * W >= 2^r",
}
_HUGE = 1 << 70000


@dataclass(frozen=True)
class Rounded:
    """One of a unit's roundings: into which format, how, and what is done to small results.

    overflow: a rule, None for the format's own, or "always_infinity". stochastic_bits: r, of stochastic modes.
    """

    format: object
    mode: str
    overflow: str | None = None
    stochastic_bits: int = 32
    flush_results: str | None = None

    @property
    def stochastic(self) -> bool:
        """Whether it takes random bits."""
        return self.mode.startswith("stochastic")

    def describe(self, name: str, table: FormatTable) -> dict:
        """As plain data, with its definition in words; name: what the page calls it."""
        data = {
            "format": table.add(self.format),
            "mode": self.mode,
            "stochastic_bits": self.stochastic_bits if self.stochastic else None,
            "flush_results": self.flush_results,
            **_codes(self.format, self),
        }
        special = dict(zip(("NaN", "+infinity", "-infinity"), (data["nan"], *data["infinity"]), strict=True))
        gives = ", ".join(f"{what} gives {code}" for what, code in special.items() if code is not None)
        lacks = " and ".join(what for what, code in special.items() if code is None)
        first = f"{name}(v) is a code of {self.format}." + (f" {gives}." if gives else "")
        if lacks:
            first += f" For {lacks} there is no code: a sum that comes to it has no result."
        return data | {"words": [first, *_words(self.format, self, data)]}

    def goes_up(self) -> str:
        """When the upper neighbour is taken, in words."""
        if self.mode == "toward_zero":
            return "By the mode `toward_zero` the upper neighbour is never taken."
        words = f"By the mode `{self.mode}` the upper neighbour is taken if {_GOES_UP[self.mode]}"
        if self.stochastic:
            words += f"; r = {self.stochastic_bits}, and W is the word of this rounding, an integer of r bits"
        return words + ". What is exact (t = 0) stays."


# -- the codes of what is infinite, too large or negative --------------------------------------------------------------
def _ends(fmt, rounded: Rounded) -> dict:
    """The codes of both infinities and of what is too large with each sign; None where there is none."""
    always, facts = rounded.overflow == "always_infinity", format_of(fmt)
    rule = overflow_name(None if always else rounded.overflow, fmt)
    env = environment_of(facts, rounded.mode, rule, rounded.stochastic_bits, 0)

    def code(value: Value) -> str | None:
        got, flags = deliver(value, facts, env)
        return None if int(flags) & INVALID and not facts.has_nan else hexadecimal(got, fmt)

    infinity = [code(Value("inf", sign)) for sign in (0, 1)]
    huge = [code(Value("finite", sign, _HUGE, 1)) for sign in (0, 1)]
    return {
        "infinity": infinity,
        "too_large": "modulo" if rule == "wrap" else infinity if always and facts.infinities else huge,
        "negative": None if facts.signed else code(Value("finite", 1, 1, 1)),
    }


@of_format
def _codes(fmt, rounded: Rounded) -> dict:
    """What NaN, infinities, what is too large, and in a format without signs what is negative, become."""
    return {"nan": hexadecimal(fmt.nan_code, fmt) if fmt.has_nan else None} | _ends(fmt, rounded)


@_codes.fixed
def _(fmt, rounded: Rounded) -> dict:
    return {"nan": None} | _ends(fmt, rounded) | {"negative": None}  # which is too large


@_codes.custom
def _(fmt, rounded: Rounded) -> dict:
    nan, top = hexadecimal(fmt.nan_code, fmt), fmt.max_code
    ends = [hexadecimal(top, fmt), hexadecimal((1 << fmt.bits) - top, fmt)]
    return {"nan": nan, "infinity": [nan, nan], "too_large": ends, "negative": None}


# -- in words ----------------------------------------------------------------------------------------------------------
@of_format
def _words(fmt, rounded: Rounded, data: dict) -> list[str]:
    """What a rounding makes of numbers."""
    facts = format_of(fmt)
    m, emin = facts.mantissa_bits, facts.emin
    zero = "-0 the code of -0" if facts.negative_zero else "-0 too (there is no -0)"
    less = f" - 2^{m}" if facts.lowest_binade == "normal" else ""
    words = [
        f"A zero gives {hexadecimal(0, fmt)}, {zero}.",
        f"Any other v, of sign s and magnitude x: e = max(floor(log2 x), {emin}), q = 2^(e - {m}), n = floor(x / q), "
        f"t = x / q - n. The lower neighbour n * q has the magnitude code u = n + (e - ({emin})) * 2^{m}{less}, the "
        "upper one u + 1, counted on past the largest value as if there were more exponents.",
    ]
    least = exact_text(facts.smallest_normal)
    if facts.lowest_binade != "subnormal":
        words.append(
            f"Below the smallest value N = {least} but instead of this: u = 0, t = x / N, and the upper neighbour is "
            f"N, code {hexadecimal(facts.normal_code, fmt)}."
        )
    words.append(rounded.goes_up())
    if rounded.flush_results is not None:
        words.append(_flushing(rounded, least))
    plus, minus = data["too_large"]
    words.append(
        f"A code above {hexadecimal(facts.max_code, fmt)}, the largest value's, is too large: the result is {plus} "
        f"with s = 0, {minus} with s = 1. Every other result is the code with the sign s"
        + ("." if facts.negative_zero else ", a zero without one.")
    )
    if data["negative"] is not None:
        words.append(f"The format has no signs: a negative v whose code is not 0 gives {data['negative']}.")
    return words


def _flushing(rounded: Rounded, least: str) -> str:
    """What becomes of results below the smallest normal number."""
    if rounded.flush_results == "subnormal":
        return f"What is then not 0 and below {least} becomes a zero of sign s."
    if rounded.flush_results == "before" or rounded.stochastic:  # tiny or not does not hang on random bits
        return f"Where x < {least}, the result is a zero of sign s instead."
    return (
        f"Where x < {least}, it is rounded as if there were smaller exponents instead (e = floor(log2 x), the same "
        f"mode): what then is still below {least} gives a zero of sign s, and what reaches it gives {least}."
    )


@_words.fixed
def _(fmt, rounded: Rounded, data: dict) -> list[str]:
    low = -(1 << fmt.bits - 1) if fmt.signed else 0
    high = low + (1 << fmt.bits) - 1
    words = [
        f"A number v, of sign s and magnitude x: q = 2^{-fmt.fraction_bits}, u = floor(x / q), t = x / q - u; the "
        "upper neighbour is u + 1.",
        rounded.goes_up(),
    ]
    code = f"The code is (-1)^s * u modulo 2^{fmt.bits}"
    if data["too_large"] == "modulo":
        return [*words, f"{code}, also where (-1)^s * u lies outside {low}..{high}: it wraps around."]
    plus, minus = data["too_large"]
    return [*words, f"{code}, if (-1)^s * u lies in {low}..{high}; above, {plus}; below, {minus}."]


@_words.custom
def _(fmt, rounded: Rounded, data: dict) -> list[str]:
    return [
        "A zero gives 0.",
        f"Any other v, of sign s and magnitude x: P(c), for c from 0 on, is the value of the code 2c + 1 of "
        f"{fmt.bits + 1} bits, which lies between the codes c and c + 1. The result is the least c from 1 on with "
        f"x < P(c), or x = P(c) and c even; {data['too_large'][0]} if there is none below that; and for s = 1 the "
        "two's complement of that. No number but 0 gives 0.",
    ]
