"""Dot products of groups, exact or bulk-normalized (RISC-V's), as a plain loop over Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from softnum.reference.exact import exact_terms
from softnum.reference.facts import Format, format_of
from softnum.reference.fused import exponent_of, product_of, signed
from softnum.reference.nans import INVALID_RESULT
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import INVALID, OVERFLOW, Environment, deliver, environment_of, rounding_name
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode


class GroupStep(NamedTuple):
    """What a group came to, for whoever watches `grouped_dot`."""

    ks: list[int]
    products: list[Value]
    unit: Fraction | None  # what products are rounded to odd multiples of; None: they are not
    jammed: list[int]  # those multiples
    total: Value  # the partial sum before it is rounded
    partial: tuple[Format | str, Environment, int] | None  # where it is rounded: the format, how, and the code
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
    """What a rounding gives; infinity where it was to odd, and overflowed."""
    facts = format_of(fmt)
    if env.rounding != "to_odd" or not raised & OVERFLOW or not facts.infinities:
        return code
    sign = decode(code, fmt).sign
    return deliver(Value("inf", sign), fmt, env)[0]


def grouped_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    terms: int,
    accumulator: Format | str,
    operand,
    reduction: str = "bulk",
    partial: Format | str | None = None,
    partial_rounding: str | None = "to_odd",
    rounding: str = "to_odd",
    guard_bits: int | None = None,
    c: int | None = None,
    observe: Callable[[GroupStep], None] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.GroupedDotUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    terms, accumulator, operand, reduction, partial, partial_rounding, rounding, guard_bits
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
        raise INVALID and OVERFLOW alone, as RVBNA has it.

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
    ('0x3f800001', <Flags.0: 0>)
    """
    fa, fb = (format_of(f) for f in (operand if isinstance(operand, (tuple, list)) else (operand, operand)))
    if len(b_codes) != len(a_codes):
        raise ValueError(f"a dot product needs equally long operands, got {len(a_codes)} and {len(b_codes)}")
    partial = accumulator if partial is None else partial
    guard = (terms - 1).bit_length() if guard_bits is None else guard_bits
    env = environment_of(accumulator, rounding)
    acc, flags = 0 if c is None else c, Flags(0)
    for first in range(0, len(a_codes), terms):
        ks = list(range(first, min(first + terms, len(a_codes))))
        pairs = [(decode(a_codes[k], fa), decode(b_codes[k], fb)) for k in ks]
        products = [product_of(x, y) for x, y in pairs]
        unit, multiples, group = None, [], Flags(0)
        if reduction == "bulk":
            exponents = [exponent_of(x, fa) + exponent_of(y, fb) for x, y in pairs]
            fraction_bits = format_of(partial).mantissa_bits + guard
            total, unit, multiples, group = bulk_sum(list(zip(products, exponents, strict=True)), fraction_bits)
        else:
            codes = [[codes[k] for k in ks] for codes in (a_codes, b_codes)]
            total = exact_terms(*codes, (fa, fb), accumulator, 0, rounding_name(partial_rounding or rounding))[1][-1]
        rounded, added = None, total
        if partial_rounding is not None:
            how = environment_of(partial, partial_rounding)
            code, raised = deliver(total, partial, how)
            code = to_infinity(code, raised, partial, how)
            group |= _told(raised, how, reduction)
            rounded, added = (partial, how, code), decode(code, partial)
        before = decode(acc, accumulator)
        exact = exact_sum(added, before, env)
        acc, raised = deliver(exact, accumulator, env)
        acc = to_infinity(acc, raised, accumulator, env)
        group |= _told(raised, env, reduction)
        flags |= group
        if observe is not None:
            observe(
                GroupStep(
                    ks, products, unit, multiples, total, rounded, before, exact, accumulator, env, acc, group
                )
            )  # fmt: skip
    return acc, flags


def _told(raised: Flags, env: Environment, reduction: str) -> Flags:
    """The flags that a rounding tells of."""
    quiet = env.rounding == "to_odd" and reduction == "bulk"
    return Flags(int(raised) & (INVALID | OVERFLOW)) if quiet else raised
