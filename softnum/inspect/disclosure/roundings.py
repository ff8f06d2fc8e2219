"""Roundings on a disclosure: the definition of each mode, and the codes of what is infinite or too large."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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
    "toward_zero": "never",
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
_HUGE = Fraction(1 << 70000)


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
        fmt = self.format
        data = {
            "format": table.add(fmt),
            "mode": self.mode,
            "stochastic_bits": self.stochastic_bits if self.stochastic else None,
            "flush_results": self.flush_results if fmt.kind == "float" else None,
        }
        data |= self._codes()
        return data | {"words": self._words(name, data)}

    def _codes(self) -> dict:
        """The codes of NaN, infinities and what is too large, positive and negative; None where there is none."""
        fmt, always = self.format, self.overflow == "always_infinity"
        if fmt.kind in ("posit", "takum_linear"):
            nan, top = hexadecimal(fmt.nan_code, fmt), fmt.max_code
            ends = [hexadecimal(top, fmt), hexadecimal((1 << fmt.bits) - top, fmt)]
            return {"nan": nan, "infinity": [nan, nan], "too_large": ends, "negative": None}
        rule = overflow_name(None if always else self.overflow, fmt)
        facts = format_of(fmt)
        env = environment_of(facts, self.mode, rule, self.stochastic_bits, 0)

        def code(value: Value) -> str | None:
            got, flags = deliver(value, facts, env)
            return None if int(flags) & INVALID and not facts.has_nan else hexadecimal(got, fmt)

        infinity = [code(Value("inf", sign)) for sign in (0, 1)]
        huge = [code(Value("finite", sign, _HUGE.numerator, 1)) for sign in (0, 1)]
        if always and fmt.infinities:
            huge = infinity
        unsigned = fmt.kind == "float" and not fmt.signed
        return {
            "nan": hexadecimal(fmt.nan_code, fmt) if fmt.has_nan else None,
            "infinity": infinity,
            "too_large": "modulo" if rule == "wrap" else huge,
            "negative": code(Value("finite", 1, 1, 1)) if unsigned else None,
        }

    # -- in words ------------------------------------------------------------------------------------------------------
    def _words(self, name: str, data: dict) -> list[str]:
        fmt = self.format
        special = dict(zip(("NaN", "+infinity", "-infinity"), (data["nan"], *data["infinity"]), strict=True))
        gives = ", ".join(f"{what} gives {code}" for what, code in special.items() if code is not None)
        lacks = " and ".join(what for what, code in special.items() if code is None)
        words = [f"{name}(v) is a code of {fmt}." + (f" {gives}." if gives else "")]
        if lacks:
            words[0] += f" For {lacks} there is no code: a sum that comes to it has no result."
        if fmt.kind == "float":
            return words + self._float_words(data)
        if fmt.kind == "fixed":
            return words + self._fixed_words(data)
        return words + self._string_words(data)

    def _goes_up(self) -> str:
        if self.mode == "toward_zero":
            return "By the mode `toward_zero` the upper neighbour is never taken."
        words = f"By the mode `{self.mode}` the upper neighbour is taken if {_GOES_UP[self.mode]}"
        if self.stochastic:
            words += f"; r = {self.stochastic_bits}, and W is the word of this rounding, an integer of r bits"
        return words + ". What is exact (t = 0) stays."

    def _float_words(self, data: dict) -> list[str]:
        fmt, facts = self.format, format_of(self.format)
        m, emin = facts.mantissa_bits, facts.emin
        zero = "-0 the code of -0" if facts.negative_zero else "-0 too (there is no -0)"
        less = f" - 2^{m}" if facts.lowest_binade == "normal" else ""
        words = [
            f"A zero gives {hexadecimal(0, fmt)}, {zero}." if facts.negative_zero else f"A zero gives 0x0, {zero}.",
            f"Any other v, of sign s and magnitude x: e = max(floor(log2 x), {emin}), q = 2^(e - {m}), n = floor(x / "
            "q), "
            f"t = x / q - n. The lower neighbour n * q has the magnitude code u = n + (e - ({emin})) * 2^{m}{less}, "
            "the "
            "upper one u + 1, counted on past the largest value as if there were more exponents.",
        ]
        normal = exact_text(facts.smallest_normal)
        if facts.lowest_binade != "subnormal":
            words.append(
                f"Below the smallest value N = {normal} but instead of this: u = 0, t = x / N, and the upper "
                "neighbour is N, "
                f"code {hexadecimal(facts.normal_code, fmt)}."
            )
        words.append(self._goes_up())
        tiny = {
            "before": f"Where x < {normal}, the result is a zero of sign s instead.",
            "after": f"Where x < {normal}, it is rounded as if there were smaller exponents (e = floor(log2 x), the "
            "same mode): "
            f"what then is still below {normal} gives a zero of sign s, and what reaches it gives {normal}.",
            "subnormal": f"What is then not 0 and below {normal} becomes a zero of sign s.",
        }
        if self.stochastic:
            tiny["after"] = tiny["before"]  # whether it is tiny does not hang on the random bits
        if self.flush_results is not None:
            words.append(tiny[self.flush_results])
        plus, minus = data["too_large"]
        words.append(
            f"A code above {hexadecimal(facts.max_code, fmt)}, the largest value's, is too large: the result is "
            f"{plus} with "
            f"s = 0, {minus} with s = 1. Every other result is the code with the sign s"
            + ("." if facts.negative_zero else ", a zero without one.")
        )
        if data["negative"] is not None:
            words.append(f"The format has no signs: a negative v whose code is not 0 gives {data['negative']}.")
        return words

    def _fixed_words(self, data: dict) -> list[str]:
        fmt = self.format
        words = [
            f"A number v, of sign s and magnitude x: q = 2^{-fmt.fraction_bits}, u = floor(x / q), t = x / q - u.",
            self._goes_up(),
        ]
        low = -(1 << fmt.bits - 1) if fmt.signed else 0
        high = low + (1 << fmt.bits) - 1
        code = f"The code is (-1)^s * u modulo 2^{fmt.bits}"
        if data["too_large"] == "modulo":
            return [*words, f"{code}, also where it lies outside {low}..{high}: it wraps around."]
        plus, minus = data["too_large"]
        return [*words, f"{code}, if it lies in {low}..{high}; above, {plus}; below, {minus}."]

    def _string_words(self, data: dict) -> list[str]:
        fmt = self.format
        return [
            "A zero gives 0.",
            f"Any other v, of sign s and magnitude x: P(c), for c from 0 on, is the value of the code 2c + 1 of "
            f"{fmt.bits + 1} bits, which lies between the codes c and c + 1. The result is the least c from 1 on with "
            f"x < P(c), or x = P(c) and c even; {data['too_large'][0]} if there is none below that; and for s = 1 the "
            "two's complement of that. No number but 0 gives 0.",
        ]
