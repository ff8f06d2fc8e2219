"""Operations that read and move bits, as circuits: signs, classes, neighbours.

Source: IEEE 754-2019, clauses 5.3.1, 5.5.1, 5.7.2. RISC-V's names and classes are those of `softnum.vectors.plans.fpu`.
"""

from __future__ import annotations

from softnum.reference.facts import FixedFacts, FloatFacts, Format, TaperedFacts
from softnum.vectors.formal.choices import first_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode
from softnum.vectors.formal.numbers import exact_value
from softnum.vectors.formal.rounding import Environment, Result, below_zero, invalid, quiet, rounded
from softnum.vectors.formal.value_tables import ValueFacts, next_value

__all__ = ["classified", "neighbour", "with_sign", "with_sign_of"]


def with_sign(c: Circuit, code: Bits, sign: Bits, fmt: Format, env: Environment) -> Result:
    """A code with a sign: of a float its bit, NaNs included; fixed point is negated, and may overflow."""
    x, none = decode(c, code, fmt), c.const(0, 5)
    if isinstance(fmt, (FixedFacts, ValueFacts)):
        found = rounded(c, exact_value(c, x)._replace(sign=sign), fmt, env)
        return first_of(c, [(x.nan, quiet(c, x, x.signaling, fmt, env))], found)
    if isinstance(fmt, TaperedFacts):
        return Result(c.ite(code[fmt.bits - 1] ^ sign, c.const(0, fmt.bits) - code, code), none)
    if not fmt.signed:
        nothing = Result(below_zero(c, fmt, env), none) if fmt.p3109 else invalid(c, fmt, env)
        endless = Result(below_zero(c, fmt, env, True), none) if fmt.p3109 else nothing
        lost = sign & ~x.nan & ~x.zero
        return first_of(c, [(lost & x.infinite, endless), (lost, nothing)], Result(code, none))
    found = c.concat(sign, code[: fmt.bits - 1])
    if fmt.nan_codes == "negative_zero":
        found = c.ite(x.nan, code, found)
    return Result(found if fmt.negative_zero else c.ite(x.zero, 0, found), none)


def _sign(c: Circuit, code: Bits, fmt: Format) -> Bits:
    """The sign bit, whatever a float's code means; NaR has none."""
    if isinstance(fmt, (TaperedFacts, ValueFacts)):
        return decode(c, code, fmt).sign
    return code[fmt.bits - 1] if fmt.signed else c.const(0, 1)


def with_sign_of(c: Circuit, op: str, codes: list[Bits], formats: list[Format], env: Environment) -> Result:
    """negate, absolute, copysign, sign_copy, sign_negate or sign_xor.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, fmt = Circuit(), format_of("e5m2")
    >>> env = Environment("nearest_even", "infinity", "after", "canonical")
    >>> c.output("code", with_sign_of(c, "sign_xor", [c.input("a", 8), c.input("b", 8)], [fmt, fmt], env).code)
    >>> [hex(code) for code in evaluate(c, {"a": [0xBC, 0xBC], "b": [0xBC, 0x3C]})["code"]]
    ['0x3c', '0xbc']
    """
    own, *others = [_sign(c, code, fmt) for code, fmt in zip(codes, formats, strict=True)]
    sign = {
        "negate": lambda: ~own, "absolute": lambda: c.const(0, 1), "copysign": lambda: others[0],
        "sign_copy": lambda: others[0], "sign_negate": lambda: ~others[0], "sign_xor": lambda: own ^ others[0],
    }[op]()  # fmt: skip
    return with_sign(c, codes[0], sign, formats[0], env)


def classified(c: Circuit, code: Bits, fmt: FloatFacts, mask: bool) -> Result:
    """The class, 0 (signalingNaN) to 9 (positiveInfinity), or RISC-V's mask of ten bits."""
    x = decode(c, code, fmt)
    subnormal = ~x.significand[x.significand.width - 1] & ~x.zero
    size = c.ite(x.infinite, c.const(3, 4), c.ite(x.zero, 0, c.ite(subnormal, c.const(1, 4), 2)))
    kind = c.ite(x.sign, c.const(5, 4) - size, size + 6)
    kind = c.ite(x.nan, (~x.signaling).extended(4), kind)
    if mask:
        kind = c.const(1, 10) << c.ite(kind < 2, kind + 8, kind - 2)
    return Result(kind, c.const(0, 5))


def neighbour(c: Circuit, code: Bits, down: bool, fmt: Format, env: Environment) -> Result:
    """The next value above, or below; what has none stays."""
    none, step = c.const(0, 5), -1 if down else 1
    if isinstance(fmt, TaperedFacts):
        return Result(code + step, none)
    if isinstance(fmt, ValueFacts):
        return Result(next_value(c, code, down, fmt), none)
    if isinstance(fmt, FixedFacts):
        bound = fmt.lowest if down else fmt.max_code
        return Result(c.ite(code == (bound & (1 << fmt.bits) - 1), code, code + step), none)
    x = decode(c, code, fmt)
    size = fmt.exponent_bits + fmt.mantissa_bits

    def signed(magnitude: int) -> Bits:
        if not fmt.signed:
            return c.const(magnitude, size)
        return c.concat(x.sign if magnitude or fmt.negative_zero else c.const(0, 1), c.const(magnitude, size))

    magnitude = code[:size]
    least = c.const(fmt.least_code | (down and fmt.signed) << (fmt.bits - 1), fmt.bits)
    away = c.ite(magnitude == fmt.max_code, code if fmt.inf_code is None else signed(fmt.inf_code), code + 1)
    away = c.ite(x.infinite, code, away)
    toward = c.ite(magnitude == fmt.least_code, signed(0) if fmt.has_zero else code, code - 1)
    toward = c.ite(x.infinite, signed(fmt.max_code), toward)
    found = c.ite(x.sign if down else ~x.sign, away, toward)
    found = c.ite(x.zero, c.const(0, fmt.bits) if down and not fmt.signed else least, found)
    return first_of(c, [(x.nan, quiet(c, x, x.signaling, fmt, env))], Result(found, none))
