"""Dot products in two stages, as a plain loop over Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from softnum.reference.facts import Format, format_of
from softnum.reference.fused import cut, exponent_of, product_of, signed
from softnum.reference.nans import INVALID_RESULT
from softnum.reference.rounding import INEXACT, OVERFLOW, Environment, deliver, environment_of, floor_log2
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode


class TwoStageStep(NamedTuple):
    """What a step came to, for whoever watches `two_stage_dot`."""

    ks: list[int]
    products: list[Value]
    c: Value
    units: list[Fraction]  # of each product: what it is cut to multiples of; [] where nothing was aligned
    streams: list[Fraction]  # their sums
    stream_unit: Fraction | None  # what these are aligned to
    added: Fraction  # the sum of the streams as they are added
    sum_unit: Fraction | None
    c_unit: Fraction | None
    aligned: Fraction  # that sum
    aligned_c: Fraction
    total: Value
    environment: Environment
    code: int
    flags: Flags


def aligned(x: Fraction, unit: Fraction, down: bool) -> Fraction:
    """The multiple of a unit that a number is rounded to: down, or toward zero."""
    return (x // unit if down else cut(x, unit)) * unit


def _special(products: Sequence[Value], c: Value, product_limit: int | None) -> tuple[Value | None, int]:
    """What decides in place of a sum, and flags that it raises."""
    values = [*products, c]
    kinds = [x.kind for x in values]
    infinite = {x.sign for x in values if x.kind == "inf"}
    if "invalid" in kinds or ("nan" not in kinds and len(infinite) == 2):
        return INVALID_RESULT, 0
    if "nan" in kinds:
        return Value("nan", 0, 1, 2, any(x.signaling for x in values)), 0
    if infinite:
        return Value("inf", infinite.pop()), 0
    if product_limit is not None:
        beyond = {
            x.sign for x in products if x.numerator and floor_log2(x.numerator, x.denominator) >= product_limit
        }  # fmt: skip
        if len(beyond) == 2:
            return INVALID_RESULT, 0
        if beyond:
            return Value("inf", beyond.pop()), OVERFLOW | INEXACT
    return None, 0


def two_stage_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    terms: int,
    fraction_bits: int,
    sum_fraction_bits: int,
    c_fraction_bits: int,
    accumulator: Format | str,
    operand: Format | str | Sequence[Format | str],
    interleave: int = 1,
    alignment: str = "down",
    c_reach: int | None = None,
    product_limit: int | None = None,
    output_rounding: str = "nearest_even",
    overflow: str | None = None,
    zero_exponent: int | None = None,
    c: int | None = None,
    observe: Callable[[TwoStageStep], None] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.TwoStageDotUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    terms, fraction_bits, sum_fraction_bits, c_fraction_bits, accumulator, operand, interleave, alignment, c_reach
    product_limit, output_rounding, overflow, zero_exponent
        As in `softnum.TwoStageDotUnit`.
    c : int, optional
        The code of C, in the accumulator; +0 if missing.
    observe : callable, optional
        Called with each step, a `TwoStageStep`.

    Returns
    -------
    code : int
        In the accumulator.
    flags : Flags
        Of all steps together.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> unit = {"terms": 8, "fraction_bits": 24, "sum_fraction_bits": 31, "c_fraction_bits": 24}
    >>> one, c = 0x3C00, 0xA1800000  # 1 in binary16, -2**-60
    >>> code, flags = ref.two_stage_dot([one], [one], accumulator="binary32", operand="binary16", c=c, **unit)
    >>> ref.to_fraction(code, "binary32"), flags  # C was rounded down to -2**-24
    (Fraction(16777215, 16777216), <Flags.INEXACT: 1>)
    """
    fa, fb = (format_of(f) for f in (operand if isinstance(operand, (tuple, list)) else (operand, operand)))
    length = len(a_codes)
    if len(b_codes) != length:
        raise ValueError(f"a dot product needs equally long operands, got {length} and {len(b_codes)}")
    env = environment_of(accumulator, output_rounding, overflow)
    down, zeros = alignment == "down", zero_exponent is not None
    code, flags = 0 if c is None else c, Flags(0)
    for first in range(0, length, terms):
        ks = list(range(first, min(first + terms, length)))
        products, exponents = [], []
        for k in ks:
            x, y = decode(a_codes[k], fa), decode(b_codes[k], fb)
            products.append(product_of(x, y))
            exponents.append(exponent_of(x, fa, zero_exponent) + exponent_of(y, fb, zero_exponent))
        start = decode(code, accumulator)
        special, raised = _special(products, start, product_limit)
        counting = [i for i, x in enumerate(products) if x.numerator or zeros]
        own = exponent_of(start, accumulator, zero_exponent) if start.numerator or zeros else None
        units: list[Fraction] = []
        streams: list[Fraction] = []
        stream_unit = sum_unit = c_unit = None
        added = kept = kept_c = Fraction(0)
        total = special or Value("finite")
        if special is None and (counting or own is not None):
            whole = start.fraction + sum(x.fraction for x in products)
            tops = {}
            for i in counting:
                tops[i % interleave] = max(exponents[i], tops.get(i % interleave, exponents[i]))
            units = [Fraction(2) ** (tops.get(i % interleave, 0) - fraction_bits) for i in range(len(products))]
            if tops:
                stream_unit = Fraction(2) ** (max(tops.values()) - fraction_bits)
                for stream in sorted(tops):
                    mine = range(stream, len(products), interleave)
                    streams.append(sum((cut(products[i].fraction, units[i]) * units[i] for i in mine), Fraction(0)))
                added = sum((aligned(x, stream_unit, down) for x in streams), Fraction(0))
            top = max([*tops.values(), *([] if own is None else [own])])
            sum_unit, c_unit = (Fraction(2) ** (top - bits) for bits in (sum_fraction_bits, c_fraction_bits))
            kept = aligned(added, sum_unit, down)
            reached = own is None or c_reach is None or own >= top - c_reach
            kept_c = aligned(start.fraction, c_unit, down) if reached else Fraction(0)
            total = signed(kept + kept_c)
            exact = all(x.fraction % unit == 0 for x, unit in zip(products, units, strict=True))
            exact = exact and all(x % stream_unit == 0 for x in streams)
            exact = exact and added == kept and start.fraction == kept_c
            assert not exact or whole == total.fraction
            raised = 0 if exact else INEXACT
        code, told = deliver(total, accumulator, env)
        flags |= told | Flags(raised)
        if observe is not None:
            observe(
                TwoStageStep(
                    ks, products, start, units, streams, stream_unit, added, sum_unit, c_unit, kept, kept_c, total, env,
                    code, told | Flags(raised),
                )
            )  # fmt: skip
    return code, flags
