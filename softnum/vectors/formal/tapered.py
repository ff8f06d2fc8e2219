"""Posits and linear takums as circuits: codes in two's complement, strings of bits whose exponents vary in length.

A string goes on with zeros, and a number is rounded by cutting its string off: to nearest, a tie to the even code, and
never from a number to 0 or NaR. Sources: Standard for Posit Arithmetic (2022); Hunhold 2024 (arXiv 2404.18603).
"""

from __future__ import annotations

from softnum.reference.facts import TaperedFacts
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, leading_one

__all__ = ["rounded_string", "string_number"]

_LONGEST = 11  # bits of a takum's longest characteristic, its sign and its regime
_FIELD = 7  # of which so many are a field of the exponent, at most
_LEAST, _MOST = -255, 254  # a takum's exponents


def string_number(c: Circuit, code: Bits, fmt: TaperedFacts) -> Number:
    """What a code stands for; NaR is a NaN.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> x = string_number(c, c.input("code", 6), format_of("posit6_es1"))
    >>> c.output("significand", x.significand)
    >>> c.output("shift", x.shift)
    >>> found = evaluate(c, {"code": [0b010000, 0b010100, 0b000001]})  # 1, 2 and 4**-4
    >>> [int(s) * 2.0 ** (int(k) + x.unit) for s, k in zip(found["significand"], found["shift"])]
    [1.0, 2.0, 0.00390625]
    """
    none = c.const(0, 1)
    nan = code == fmt.nan_code
    sign = code[fmt.bits - 1] & ~nan
    magnitude = c.ite(sign, c.const(0, fmt.bits) - code, code)[: fmt.bits - 1]
    fields = _posit_fields if fmt.kind == "posit" else _takum_fields
    fraction, shift, most, least = fields(c, magnitude, fmt)
    significand = c.concat(magnitude.any(), fraction)
    unit = least - (0 if fraction is None else fraction.width)
    return Number(nan, none, none, sign, significand, shift, most, unit, c.const(1, 1))


def _posit_fields(c: Circuit, magnitude: Bits, fmt: TaperedFacts) -> tuple[Bits | None, Bits, int, int]:
    """(fraction, exponent above the least, the most of it, the least exponent)"""
    length, es = magnitude.width, fmt.es
    ones = magnitude[length - 1]
    differs = c.ite(ones, ~magnitude, magnitude)
    size = (2 * length).bit_length()
    run = c.const(length - 1, size) - leading_one(c, differs).sized(size)
    run = c.ite(differs.any(), run, c.const(length, size))
    regime = c.ite(ones, run + (length - 2), c.const(length - 1, size) - run)
    string = magnitude.placed(es + size)  # wide enough to be shifted by any run
    rest = (string << run)[: string.width - 1].placed(1)
    top = rest.width
    exponent = rest[top - es :] if es else None
    fraction = rest[top - es - (length - 2) : top - es] if length > 2 else None
    most = (2 * length - 2) << es
    return fraction, c.concat(regime, exponent), most, -((length - 1) << es)


def _takum_fields(c: Circuit, magnitude: Bits, fmt: TaperedFacts) -> tuple[Bits, Bits, int, int]:
    string = magnitude.placed(max(_LONGEST - magnitude.width, 0))
    width = string.width - 4
    up, regime, rest = string[string.width - 1], string[width : width + 3], string[:width]
    length = c.ite(up, regime, ~regime)
    size = 9
    field = (rest >> (c.const(width, width.bit_length()) - length.extended(width.bit_length()))).sized(size)
    one = c.const(1, size) << length
    shift = c.ite(up, (one | field) + (-1 - _LEAST), field + (1 - _LEAST) - (one << c.const(1, 1)))
    return rest << length, shift, _MOST - _LEAST, _LEAST


def rounded_string(c: Circuit, x: Exact, fmt: TaperedFacts) -> Bits:
    """The code that a number rounds to.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> x = Exact(c.input("sign", 1), c.input("quarters", 8), -2)
    >>> c.output("code", rounded_string(c, x, format_of("posit6_es1")))
    >>> [bin(code) for code in evaluate(c, {"sign": [0, 1, 0], "quarters": [4, 4, 255]})["code"]]
    ['0b10000', '0b110000', '0b11110']
    """
    length = fmt.bits - 1
    magnitude = x.magnitude.extended(2)
    width = magnitude.width
    zero, top = ~magnitude.any(), leading_one(c, magnitude)
    fraction = (magnitude << (c.const(width - 1, top.width) - top))[: width - 1]
    if width - 1 > length + 3:  # what lies below decides as one bit
        fraction = c.concat(fraction[width - 1 - (length + 2) :], fraction[: width - 1 - (length + 2)].any())
    string = _posit_string if fmt.kind == "posit" else _takum_string
    text, low, high = string(c, top, x.unit, fraction.placed(length), fmt)
    cut = text.width - length
    code, half, rest = text[cut:], text[cut - 1], text[: cut - 1].any()
    up = half & (rest | code[0])
    code = code.extended(length + 1) + up.extended(length + 1)
    code = c.ite(high | code[length], fmt.max_code, code)
    code = c.ite(low | ~code.any(), 1, code)
    code = c.ite(zero, 0, code)
    return c.ite(x.sign, c.const(0, fmt.bits) - code, code)


def _posit_string(c: Circuit, top: Bits, unit: int, fraction: Bits, fmt: TaperedFacts) -> tuple[Bits, Bits, Bits]:
    """(the string, whether the number lies below what a string can begin with, whether above)"""
    es, most = fmt.es, fmt.bits - 2  # the regimes reach from -most to most
    zero = -(-max(-unit, 1) >> es) + most + 1  # what stands for regime 0, so that none is negative
    start = (zero << es) + unit
    size = (start + (1 << top.width)).bit_length() + 1
    scale = top.extended(size) + start
    regime, exponent = scale[es:], scale[:es] if es else None
    up = ~(regime < zero)
    run = c.ite(up, regime - zero, c.const(zero - 1, regime.width) - regime)
    text = c.concat(up, ~up, exponent, fraction)
    run = run.sized(min(run.width, text.width))
    return c.ite(up, ~(~text >> run), text >> run), regime < zero - most, regime > zero + most - 1


def _takum_string(c: Circuit, top: Bits, unit: int, fraction: Bits, fmt: TaperedFacts) -> tuple[Bits, Bits, Bits]:
    shift = max(_LEAST - 1 - unit, 0)  # so that no scale is negative
    start = unit - _LEAST + 1 + shift
    least, most, one = 1 + shift, 1 + shift + _MOST - _LEAST, 1 + shift - _LEAST  # of the exponents -255, 254 and 0
    size = (max(start, most) + (1 << top.width)).bit_length() + 1
    scale = top.extended(size) + start
    up = ~(scale < one)
    size = c.ite(up, scale - (one - 1), c.const(one, scale.width) - scale)[:8]  # exponent + 1, or -exponent
    regime = leading_one(c, size)
    field = c.concat(c.ite(up, size, ~size)[:_FIELD], fraction) << ~regime
    text = c.concat(up, c.ite(up, regime, ~regime), field)
    return text, scale < least, scale > most
