"""Fused dot-product units, as a plain loop over Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from softnum.reference.facts import Format, format_of
from softnum.reference.nans import INVALID_RESULT
from softnum.reference.operations import add, convert, fma
from softnum.reference.rounding import INEXACT, OVERFLOW, Environment, deliver, environment_of, floor_log2, round_float
from softnum.reference.rules import Flags, rule_for
from softnum.reference.values import Value, decode


def exponent_of(x: Value, fmt: Format | str, of_zero: int | None = None) -> int:
    """The exponent that hardware gives a number: at least the format's lowest; 0 of what has none."""
    if x.kind != "finite" or (not x.numerator and of_zero is None):
        return 0
    return max(floor_log2(x.numerator, x.denominator), format_of(fmt).emin) if x.numerator else of_zero


def exponent_of_product(factors: Sequence[tuple[Value, Format | str]], of_zero: int | None) -> int | None:
    """The exponent of a product, which is not normalised; None of what has none, which takes no part in the largest."""
    if any(x.kind != "finite" or (not x.numerator and of_zero is None) for x, _ in factors):
        return None
    return sum(exponent_of(x, fmt, of_zero) for x, fmt in factors)


def cut(x: Fraction, unit: Fraction) -> int:
    """How often a unit fits into a number: toward zero."""
    quotient = abs(x) // unit
    return -quotient if x < 0 else quotient


class FusedStep(NamedTuple):
    """What a step came to, for whoever watches `fused_dot`: values before they are aligned, and after."""

    ks: list[int]
    products: list[Value]
    c: Value
    unit: Fraction | None  # what terms are cut to multiples of; None: nothing was aligned
    aligned: list[int]  # of the products and, last, C
    total: Value  # their sum
    cut: Value  # the sum cut to its own fraction bits
    format: Format | str  # as it was given
    environment: Environment
    code: int
    flags: Flags


def signed(x: Fraction) -> Value:
    """A number as a value; zero is +0."""
    return Value("finite", int(x < 0), abs(x.numerator), x.denominator)


def fused_step(
    products: Sequence[tuple[Value, int | None]],
    c: tuple[Value, int | None],
    out_fmt: Format | str,
    *,
    fraction_bits: int,
    min_exponent: int | None,
    rounding: str,
    truncate_fraction: int | None,
    overflow: str | None,
    observe: Callable[..., None],
) -> tuple[int, Flags]:
    """One step: (value, exponent) of each product and of C; None: it takes no part in the largest exponent."""
    always_infinity = overflow == "always_infinity"
    env = environment_of(out_fmt, rounding, None if always_infinity else overflow)
    terms = [*products, c]
    kinds = [x.kind for x, _ in terms]
    infinite = {x.sign for x, _ in terms if x.kind == "inf"}
    special = None
    if "invalid" in kinds or ("nan" not in kinds and len(infinite) == 2):
        special = INVALID_RESULT
    elif "nan" in kinds:
        special = Value("nan", 0, 1, 2, any(x.signaling for x, _ in terms))
    elif infinite:
        special = Value("inf", infinite.pop())
    exponents = [e for _, e in terms if e is not None]
    if special or not exponents:
        exact = special or Value("finite")
        code, flags = deliver(exact, out_fmt, env)
        observe(None, [], exact, exact, out_fmt, env, code, flags)
        return code, flags

    largest = max(exponents)
    if min_exponent is not None:
        largest = max(largest, min_exponent)
    unit = Fraction(2) ** (largest - fraction_bits)
    aligned = [cut(x.fraction, unit) for x, _ in terms]
    total = sum(aligned)
    lost = INEXACT if any(n * unit != x.fraction for n, (x, _) in zip(aligned, terms, strict=True)) else 0
    kept = total
    if truncate_fraction is not None:
        last = 1 << max(0, abs(total).bit_length() - 1 - truncate_fraction)
        lost |= INEXACT if total % last else 0
        kept = cut(Fraction(total), Fraction(last)) * last
    rounded = signed(kept * unit)
    code, flags = deliver(rounded, out_fmt, env)
    if rounded.sign and decode(code, out_fmt)[:3] == ("finite", 1, 0):
        code = deliver(Value("finite"), out_fmt, env)[0]  # what rounds to zero is +0
    if always_infinity and format_of(out_fmt).infinities:  # a P3109 format delivers no flags: what its rounding says
        _, raised = round_float(rounded.sign, rounded.numerator, rounded.denominator, out_fmt, env)
        if raised & OVERFLOW:
            code = deliver(Value("inf", rounded.sign), out_fmt, env)[0]
    flags |= Flags(lost)
    observe(unit, aligned, signed(total * unit), rounded, out_fmt, env, code, flags)
    return code, flags


def fused_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    terms: int,
    fraction_bits: int,
    accumulator: Format | str,
    operand: Format | str | Sequence[Format | str],
    min_exponent: int | None = None,
    output: Format | str | None = None,
    output_rounding: str = "toward_zero",
    truncate_fraction: int | None = None,
    k_order: Sequence[int] | None = None,
    c_mode: str = "fused",
    overflow: str | None = None,
    zero_exponent: int | None = None,
    c: int | None = None,
    observe: Callable[[FusedStep], None] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.FusedDotUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    terms, fraction_bits, accumulator, operand, min_exponent, output, output_rounding, truncate_fraction, k_order
    zero_exponent
        As in `softnum.FusedDotUnit`.
    c_mode : {"fused", "after"}
        The unit's ``c``.
    overflow : str, optional
    c : int, optional
        The code of C, in the accumulator (or, added after, in the output); +0 if missing.
    observe : callable, optional
        Called with each step, a `FusedStep`.

    Returns
    -------
    code : int
        In the output format.
    flags : Flags
        Of all steps together.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> one, small = 0x3C00, 0x0C00  # 1 and 2**-12 in binary16
    >>> v100 = {"terms": 4, "fraction_bits": 23, "accumulator": "binary32", "operand": "binary16"}
    >>> code, flags = ref.fused_dot([one, small, small, small], [one, small, small, small], **v100)
    >>> ref.to_fraction(code, "binary32"), flags
    (Fraction(1, 1), <Flags.INEXACT: 1>)
    """
    fa, fb = (format_of(f) for f in (operand if isinstance(operand, (tuple, list)) else (operand, operand)))
    output = accumulator if output is None else output
    length = len(a_codes)
    if len(b_codes) != length:
        raise ValueError(f"a dot product needs equally long operands, got {length} and {len(b_codes)}")
    c = 0 if c is None else c
    formats = format_of(accumulator), format_of(output)
    rule = None if overflow == "always_infinity" else rule_for(overflow, formats[1], *formats)
    own = overflow if overflow == "always_infinity" else rule_for(overflow, formats[0], *formats)
    if length == 0:
        if c_mode == "after" or format_of(output) == format_of(accumulator):
            return c, Flags(0)
        return convert(c, accumulator, output, rounding=output_rounding, overflow=rule)

    order = list(range(terms)) if k_order is None else list(k_order)
    positions = [first + k for first in range(0, length, len(order)) for k in order]
    total, flags = 0 if c_mode == "after" else c, Flags(0)
    for first in range(0, len(positions), terms):
        ks = [k for k in positions[first : first + terms] if k < length]
        products = []
        for k in ks:
            x, y = decode(a_codes[k], fa), decode(b_codes[k], fb)
            products.append((product_of(x, y), exponent_of_product([(x, fa), (y, fb)], zero_exponent)))
        start = decode(total, accumulator)

        def watch(*step, ks=ks, products=products, start=start):
            if observe is not None:
                observe(FusedStep(ks, [x for x, _ in products], start, *step))

        last = first + terms >= len(positions) and c_mode == "fused"
        total, raised = fused_step(
            products, (start, exponent_of_product([(start, accumulator)], zero_exponent)),
            output if last else accumulator,
            fraction_bits=fraction_bits, min_exponent=min_exponent,
            rounding=output_rounding, truncate_fraction=truncate_fraction,
            overflow=rule if last and overflow != "always_infinity" else own, observe=watch,
        )  # fmt: skip
        flags |= raised
    if c_mode == "after":
        total, raised = add(total, c, (accumulator, output), out_fmt=output, overflow=rule)
        flags |= raised
    return total, flags


def product_of(x: Value, y: Value) -> Value:
    """The exact product; "invalid" for infinity times zero."""
    if x.kind == "nan" or y.kind == "nan":
        return Value("nan", 0, 1, 2, x.signaling or y.signaling)
    if x.kind == "inf" or y.kind == "inf":
        zero = any(v.kind == "finite" and v.numerator == 0 for v in (x, y))
        return INVALID_RESULT if zero else Value("inf", x.sign ^ y.sign)
    return Value("finite", x.sign ^ y.sign, x.numerator * y.numerator, x.denominator * y.denominator)


def fma_chain_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    accumulator: Format | str,
    operand: Format | str | Sequence[Format | str],
    k_order: Sequence[int] | None = None,
    c: int | None = None,
    **environment: Any,
) -> tuple[int, Flags]:
    """One dot product as `softnum.FmaChainUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    accumulator, operand, k_order
        As in `softnum.FmaChainUnit`.
    c : int, optional
        The code that the sum starts from; +0 if missing.
    **environment
        rounding, overflow, flush_inputs and flush_results, as in `fma`.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> one = 0x3F80
    >>> ref.fma_chain_dot([one] * 3, [one] * 3, accumulator="binary32", operand="bfloat16", k_order=(1, 0))[0]
    1077936128
    """
    formats = operand if isinstance(operand, (tuple, list)) else (operand, operand)
    length = len(a_codes)
    if len(b_codes) != length:
        raise ValueError(f"a dot product needs equally long operands, got {length} and {len(b_codes)}")
    order = [0] if k_order is None else list(k_order)
    total, flags = 0 if c is None else c, Flags(0)
    for k in (first + k for first in range(0, length, len(order)) for k in order):
        x, y = (a_codes[k], b_codes[k]) if k < length else (0, 0)
        total, raised = fma(x, y, total, (*formats, accumulator), out_fmt=accumulator, **environment)
        flags |= raised
    return total, flags
