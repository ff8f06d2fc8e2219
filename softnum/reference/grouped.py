"""Dot products of groups (RISC-V's and Arm's), as a plain loop over Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from softnum.reference.exact import sum_of_terms
from softnum.reference.facts import Format, format_of
from softnum.reference.fused import exponent_of, product_of, signed
from softnum.reference.nans import INVALID_RESULT
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import INVALID, OVERFLOW, Environment, deliver, environment_of
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode, flushed


class PartialStep(NamedTuple):
    """A rounding within a group: of a product, or of its sum with those before it."""

    k: int | None  # of the product; None: the group was filled up
    before: Value | None  # what it was added to; None: the product itself is rounded
    exact: Value
    code: int
    value: Value  # as it is read


class GroupStep(NamedTuple):
    """What a group came to, for whoever watches `grouped_dot`."""

    ks: list[int]
    products: list[Value]  # times their power of two
    inner: list[PartialStep]  # where each is rounded
    unit: Fraction | None  # what products are rounded to odd multiples of; None: they are not
    jammed: list[int]  # those multiples
    total: Value  # the partial sum before it is rounded
    partial: tuple[Format | str, Environment, int] | None  # where it is rounded: the format, how, and the code
    added: Value  # the partial sum as it is added
    acc: Value  # what it is added to
    exact: Value  # the sum of both
    format: Format | str
    environment: Environment
    code: int
    flags: Flags


def jammed(x: Fraction, unit: Fraction) -> int:
    """A number in units, rounded to odd: cut off toward zero, and made odd if that lost anything."""
    quotient, rest = divmod(abs(x), unit)
    magnitude = int(quotient) | (rest != 0)
    return -magnitude if x < 0 else magnitude


def bulk_sum(
    products: Sequence[tuple[Value, int]], fraction_bits: int
) -> tuple[Value, Fraction | None, list[int], Flags]:
    """The bulk-normalized sum of (product, reference exponent), its unit, the products in it, and INVALID."""
    kinds = [x.kind for x, _ in products]
    infinite = {x.sign for x, _ in products if x.kind == "inf"}
    if "invalid" in kinds or len(infinite) == 2 or any(x.kind == "nan" and x.signaling for x, _ in products):
        return INVALID_RESULT, None, [], Flags(INVALID)
    if "nan" in kinds:
        return Value("nan", 0, 1, 2), None, [], Flags(0)
    if infinite:
        return Value("inf", infinite.pop()), None, [], Flags(0)
    exponents = [e for x, e in products if x.numerator]
    if not exponents:
        return Value("finite"), None, [], Flags(0)
    unit = Fraction(2) ** (max(exponents) - fraction_bits)
    aligned = [jammed(x.fraction, unit) for x, _ in products]
    return signed(sum(aligned) * unit), unit, aligned, Flags(0)


def to_infinity(code: int, raised: Flags, fmt: Format | str, env: Environment) -> int:
    """What a rounding gives; infinity where it was to odd, and overflowed, and nothing saturates."""
    facts = format_of(fmt)
    if env.rounding != "to_odd" or not raised & OVERFLOW or not facts.infinities or env.overflow != "infinity":
        return code
    sign = decode(code, fmt).sign
    return deliver(Value("inf", sign), fmt, env)[0]


def scaled(x: Value, scale: int) -> Value:
    """A value times 2^scale."""
    if x.kind != "finite":
        return x
    power = Fraction(2) ** scale
    return Value("finite", x.sign, x.numerator * power.numerator, x.denominator * power.denominator)


class _Rounding:
    """Roundings of one kind: to a format, in an environment; the flags that they raised."""

    def __init__(self, fmt: Format | str, env: Environment, flushes: bool) -> None:
        self.fmt, self.env, self.flushes, self.flags = fmt, env, flushes, Flags(0)

    def read(self, code: int) -> Value:
        """A code's value, zero for a subnormal one where these are flushed."""
        value = decode(code, self.fmt)
        return flushed(value, code, format_of(self.fmt)) if self.flushes else value

    def round(self, exact: Value) -> int:
        """The code of an exact result."""
        code, raised = deliver(exact, self.fmt, self.env)
        self.flags |= raised
        return to_infinity(code, raised, self.fmt, self.env)


def steps_in_turn(
    products: Sequence[Value], ks: Sequence[int], short: bool, signed_zeros: bool, how: _Rounding
) -> tuple[int, list[PartialStep]]:
    """The code of a sum whose products are rounded, and each addition; and these roundings. short: a +0 is added."""
    code, steps = 0, []
    for i, (k, product) in enumerate(zip(ks, products, strict=True)):
        rounded = how.round(product)
        steps.append(PartialStep(k, None, product, rounded, how.read(rounded)))
        if i == 0 and signed_zeros:
            code = rounded
            continue
        before = how.read(code)
        exact = exact_sum(how.read(rounded), before, how.env)
        code = how.round(exact)
        steps.append(PartialStep(k, before, exact, code, how.read(code)))
    if short:
        before = how.read(code)
        exact = exact_sum(Value("finite"), before, how.env)
        code = how.round(exact)
        steps.append(PartialStep(None, before, exact, code, how.read(code)))
    return code, steps


def grouped_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    terms: int,
    accumulator: Format | str,
    operand: Format | str | Sequence[Format | str],
    reduction: str = "bulk",
    partial: Format | str | None = None,
    partial_rounding: str | None = "to_odd",
    rounding: str = "to_odd",
    guard_bits: int | None = None,
    zeros: str = "positive",
    scale: int = 0,
    flush_inputs: bool = False,
    flush_results: str | None = None,
    overflow: str | None = None,
    c: int | None = None,
    observe: Callable[[GroupStep], None] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.GroupedDotUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    terms, accumulator, operand, reduction, partial, partial_rounding, rounding, guard_bits, zeros, scale, flush_inputs,
    flush_results, overflow
        As in `softnum.GroupedDotUnit`.
    c : int, optional
        The code of C, in the accumulator; +0 if missing.
    observe : callable, optional
        Called with each group, a `GroupStep`.

    Returns
    -------
    code : int
        In the accumulator's format.
    flags : Flags
        Of all groups together. A rounding to odd of a bulk-normalized sum, and an addition that is rounded to odd,
        raise INVALID and OVERFLOW alone, as RVBNA has it; a trace's steps have the flags of each rounding.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> one, small = 0x3F80, 0x3080  # 1 and 2**-30 in bfloat16
    >>> code, flags = ref.grouped_dot([one, small], [one, one], terms=4, accumulator="binary32", operand="bfloat16")
    >>> hex(code), flags
    ('0x3f800001', <Flags: 0>)
    """
    fa, fb = (format_of(f) for f in (operand if isinstance(operand, (tuple, list)) else (operand, operand)))
    if len(b_codes) != len(a_codes):
        raise ValueError(f"a dot product needs equally long operands, got {len(a_codes)} and {len(b_codes)}")
    partial = accumulator if partial is None else partial
    guard = (terms - 1).bit_length() if guard_bits is None else guard_bits
    acc, flags = 0 if c is None else c, Flags(0)

    def rounding_to(fmt, mode: str) -> _Rounding:
        env = environment_of(fmt, mode, overflow, flush_results=flush_results)
        return _Rounding(fmt, env, flush_inputs)

    def value(code: int, fmt: Format) -> Value:
        x = decode(code, fmt)
        return flushed(x, code, fmt) if flush_inputs else x

    for first in range(0, len(a_codes), terms):
        ks = list(range(first, min(first + terms, len(a_codes))))
        pairs = [(value(a_codes[k], fa), value(b_codes[k], fb)) for k in ks]
        products = [scaled(product_of(x, y), scale) for x, y in pairs]
        added_to = rounding_to(accumulator, rounding)
        rounds = None if partial_rounding is None else rounding_to(partial, partial_rounding)
        unit, multiples, group, inner, code = None, [], Flags(0), [], None
        if reduction == "bulk":
            exponents = [exponent_of(x, fa) + exponent_of(y, fb) + scale for x, y in pairs]
            fraction_bits = format_of(partial).mantissa_bits + guard
            total, unit, multiples, group = bulk_sum(list(zip(products, exponents, strict=True)), fraction_bits)
        elif reduction == "rounded":
            code, inner = steps_in_turn(products, ks, len(ks) < terms, zeros == "signed", rounds)
            total = decode(code, partial)
        else:
            start = [] if zeros == "signed" and len(ks) == terms else [Value("finite")]
            total = sum_of_terms([*start, *products], (partial_rounding or rounding) == "down")
        rounded, added = None, total
        if rounds is not None:
            code = rounds.round(total) if code is None else code
            group |= _told(rounds.flags, rounds.env, reduction)
            rounded, added = (partial, rounds.env, code), rounds.read(code)
        before = added_to.read(acc)
        exact = exact_sum(added, before, added_to.env)
        if reduction == "exact" and rounds is None and zeros == "signed":
            exact = sum_of_terms([before, *start, *products], rounding == "down")
        acc = added_to.round(exact)
        group |= _told(added_to.flags, added_to.env, reduction)
        flags |= group
        if observe is not None:
            observe(
                GroupStep(
                    ks, products, inner, unit, multiples, total, rounded, added, before, exact, accumulator,
                    added_to.env, acc, group,
                )
            )  # fmt: skip
    return acc, flags


def _told(raised: Flags, env: Environment, reduction: str) -> Flags:
    """The flags that a rounding tells of."""
    quiet = env.rounding == "to_odd" and reduction == "bulk"
    return Flags(int(raised) & (INVALID | OVERFLOW)) if quiet else raised
