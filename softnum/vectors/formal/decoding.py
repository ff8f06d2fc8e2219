"""What codes mean, as circuits: IEEE 754-2019, clause 3.4, by a format's facts.

The definition, and no fast path; `softnum.reference` says the same of one number at a time, and the facts are its.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from softnum.formats.checks import is_table
from softnum.reference.facts import FixedFacts, FloatFacts, Format, TaperedFacts, format_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Number
from softnum.vectors.formal.tapered import string_number
from softnum.vectors.formal.value_tables import ValueFacts, value_number

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["decode", "facts_of"]

#: exponents of more bits make magnitudes of tens of thousands of bits
_MOST_EXPONENT_BITS = 11
_MOST_BITS = 64


def decode(c: Circuit, code: Bits, fmt: Format, flush: bool = False) -> Number:
    """What a code of the format stands for; ``flush``: a subnormal one for zero.

    Examples
    --------
    The codes of 0.5, -1 and 6, in halves:

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> from softnum.vectors.formal.numbers import exact_value
    >>> c = Circuit()
    >>> value = exact_value(c, decode(c, c.input("code", 4), format_of("e2m1fn")))
    >>> c.output("sign", value.sign)
    >>> c.output("magnitude", value.magnitude)
    >>> value.unit, [found.tolist() for found in evaluate(c, {"code": [0x1, 0xA, 0x7]}).values()]
    (-1, [[0, 1, 0], [1, 2, 12]])
    """
    if isinstance(fmt, TaperedFacts):
        return string_number(c, code, fmt)
    if isinstance(fmt, ValueFacts):
        return value_number(c, code, fmt)
    none, no_payload = c.const(0, 1), c.const(1, 1)
    if isinstance(fmt, FixedFacts):
        sign = code[fmt.bits - 1] if fmt.signed else none
        magnitude = c.ite(sign, c.const(0, fmt.bits) - code, code)
        return Number(none, none, none, sign, magnitude, none, 0, -fmt.fraction_bits, no_payload)
    e, m = fmt.exponent_bits, fmt.mantissa_bits
    magnitude, field = code[: e + m], code[m : m + e]
    sign = code[e + m] if fmt.signed else none
    nan = signaling = none
    payload = no_payload
    if fmt.nan_codes == "ieee":
        nan, payload = magnitude > fmt.inf_code, code[:m]
        signaling = nan & ~code[m - 1] if m >= 2 else none
    elif fmt.nan_codes == "all_ones":
        nan = magnitude == fmt.nan_code
    elif fmt.nan_codes == "negative_zero":
        nan = code == fmt.nan_code
        sign = sign & ~nan
    infinite = none if fmt.inf_code is None else magnitude == fmt.inf_code
    if fmt.lowest_binade == "normal":
        hidden, shift = (magnitude.any() if fmt.has_zero else c.const(1, 1)), field
    else:
        hidden = field.any()
        shift = field - hidden.extended(e)
    significand = c.concat(hidden, code[:m] if m else None)
    if fmt.lowest_binade == "zero" or (flush and fmt.lowest_binade == "subnormal"):
        significand = c.ite(hidden, significand, 0)
    if not fmt.negative_zero:
        sign = sign & (significand.any() | infinite | nan)
    most = (fmt.max_code >> m) - (fmt.lowest_binade != "normal")
    return Number(nan, signaling, infinite, sign, significand, shift, max(most, 0), fmt.emin - m, payload)


def facts_of(fmt: AnyFormat) -> Format | ValueFacts:
    """The facts of a format that circuits know; ValueError for others."""
    if is_table(fmt):
        facts = ValueFacts(tuple(None if v != v else Fraction(v) for v in fmt.values))
        facts.check(str(fmt))
        return facts
    try:
        facts = format_of(fmt)
    except (AttributeError, TypeError):  # of a kind that the reference does not know
        facts = None
    if not isinstance(facts, (FloatFacts, FixedFacts, TaperedFacts)) or facts.bits > _MOST_BITS:
        raise ValueError(
            f"{fmt} has no circuit: it is neither a binary float, fixed point, a posit nor a linear takum of up to "
            f"{_MOST_BITS} bits, nor a table of values; prove it by exhaustion (--method exhaustion), which compares "
            "with the core in C"
        )
    if isinstance(facts, FloatFacts) and facts.exponent_bits > _MOST_EXPONENT_BITS:
        raise ValueError(f"{fmt} has {facts.exponent_bits} exponent bits; circuits have at most {_MOST_EXPONENT_BITS}")
    return facts
