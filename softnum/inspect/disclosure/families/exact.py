"""What units of exact sums, and of sums of groups, say of themselves on a disclosure."""

from __future__ import annotations

from softnum.inspect.disclosure.families.shared import random_words, read_words
from softnum.inspect.disclosure.roundings import Rounded
from softnum.inspect.disclosure.statement import Paragraph, Statement, product_rule, sum_rule
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import register
from softnum.mac.grouped import GroupedDotUnit

__all__ = []


def _exact(unit: ExactDotUnit) -> Statement:
    zero = "-0" if unit.rounding == "down" else "+0"
    steps = [
        Paragraph(
            "Terms",
            f"C, or +0 if it is missing, and the K products, which are exact. {product_rule()}",
            "p[k] = a[k] * b[k]",
        ),
        Paragraph(
            "Sum",
            "It is exact: the order does not matter. A NaN among the terms gives NaN, infinities of both signs too, "
            "and an infinity else gives itself. A sum that is 0 has the sign of its terms if all are zeros of one "
            f"sign; any other is {zero}. A fixed-point register of {unit.width} bits, its last bit worth "
            f"2^{unit.bottom}, holds C and any 2^32 - 1 products.",
            "s = C + p[0] + ... + p[K-1]",
        ),
        Paragraph(
            "Rounding", "The sum is rounded once. A sum of nothing (K = 0) is C as it stands, or +0.", "result = R(s)"
        ),
    ]
    if unit.stochastic:
        steps.append(Paragraph("Numbers of the steps", "The one rounding takes the sum's word of step 0."))
        steps.append(random_words(unit.stochastic_bits, False, unit.random_source))
    return Statement(steps, {"R": Rounded(unit.accumulator, unit.rounding, unit.overflow, unit.stochastic_bits)}, {}, 4)


def _grouped(unit: GroupedDotUnit) -> Statement:
    roundings = {"R_sum": _of_groups(unit, unit.accumulator, unit.rounding)}
    mode = unit.partial_rounding
    if mode is not None:
        roundings["R_partial"] = _of_groups(unit, unit.partial_format, mode)
    t, f = unit.terms, unit.fraction_bits
    last = "may be shorter" if unit.zeros == "positive" else f"is filled up to {t} with products that are +0"
    steps = [Paragraph("Operands", read_words(unit))] if unit.flush_inputs else []
    steps += [
        Paragraph(
            "Groups",
            f"The K products are taken {t} at a time, k = 0, 1, ...; the last group {last}. Groups are added in order.",
        ),
        *_GROUP_SUMS[unit.reduction](unit),
    ]
    text = "S is added as it is, and the sum rounded once. "
    added = "S"
    if unit.reduction == "rounded":
        text = "The sum is exact, then rounded. "
    elif mode is not None:
        text, added = "S is rounded, then added; the sum is exact, then rounded. ", "R_partial(S)"
    steps += [
        Paragraph("Step", text + sum_rule(unit.rounding), f"acc = R_sum(acc + {added})"),
        Paragraph("C", "acc starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."),
    ]
    kept = f if f is not None else max(fmt.mantissa_bits for fmt in unit.rounded_to) + 1
    return Statement(
        steps, roundings, {"terms": t}, t, beside_one=(1 - kept, -kept, -kept - 1), alone=_smallest_of_groups(unit)
    )


def _smallest_of_groups(unit: GroupedDotUnit) -> tuple[int, ...]:
    """Exponents of products where flushing begins, and where a scaled one is the smallest number."""
    if unit.flush_results is None and not unit.scale:
        return ()
    least = {fmt.emin for fmt in unit.rounded_to} if unit.flush_results else {fmt.span[0] for fmt in unit.rounded_to}
    return tuple(sorted(e - unit.scale - i for e in least for i in (0, 1)))


def _of_groups(unit: GroupedDotUnit, fmt, mode: str) -> Rounded:
    """A rounding; to odd, what is too large is infinite, unless it saturates."""
    always = mode == "to_odd" and unit.overflow in (None, "infinity")
    return Rounded(fmt, mode, "always_infinity" if always else unit.overflow, flush_results=unit.flush_results)


def _special_of_groups(unit: GroupedDotUnit) -> Paragraph:
    times = f" They count times 2^{unit.scale}." if unit.scale else ""
    return Paragraph(
        "Special values",
        f"The products are exact.{times} {product_rule()} A NaN among the products of a group makes its sum S NaN, "
        "infinities of both signs do too, and an infinity else makes S itself.",
        f"p[k] = {_scaled(unit)}",
    )


def _scaled(unit: GroupedDotUnit) -> str:
    return f"2^{unit.scale} * a[k] * b[k]" if unit.scale else "a[k] * b[k]"


def _exact_sums(unit: GroupedDotUnit) -> list[Paragraph]:
    down = (unit.partial_rounding or unit.rounding) == "down"
    zero = "A sum that is 0 is +0."
    if unit.zeros == "signed":
        zero = (
            "A sum that is 0 has the sign of its products if all are zeros of one sign, and else is "
            f"{'-0' if down else '+0'}."
        )
    elif down:
        zero = "A sum that is 0 is -0, but +0 where all products are +0."
    text = f"It is exact. {zero}"
    return [_special_of_groups(unit), Paragraph("Sum of a group", text, "S = sum of p[k] over the k of the group")]


def _rounded_sums(unit: GroupedDotUnit) -> list[Paragraph]:
    times = f", times 2^{unit.scale}," if unit.scale else ""
    start = "from +0 and takes the products"
    if unit.zeros == "signed":
        start = "as the first product of the group and takes the others"
    return [
        Paragraph(
            "Products",
            f"The product of two factors{times} is exact, then rounded. {product_rule()}",
            f"p[k] = R_partial({_scaled(unit)})",
        ),
        Paragraph(
            "Sum of a group",
            f"S starts {start} in turn; each sum is exact, then rounded. {sum_rule(unit.partial_rounding)}",
            "S = R_partial(S + p[k])",
        ),
    ]


def _bulk_sums(unit: GroupedDotUnit) -> list[Paragraph]:
    (a, b), f = unit.operand, unit.fraction_bits
    return [
        _special_of_groups(unit),
        Paragraph(
            "Alignment",
            "The exponent of a number x that is not zero is that of its format, no lower than the lowest: "
            f"max(floor(log2 |x|), emin), emin being {a.emin} of a ({a}) and {b.emin} of b ({b}). That of a "
            "product that is not zero is the sum of its factors' exponents"
            + (f" and {unit.scale}" if unit.scale else "")
            + ": it is not normalised. M is the largest exponent of a product of the group. If all products are zeros, "
            "S is +0.",
            "e(a * b) = e(a) + e(b)" + (f" + ({unit.scale})" if unit.scale else ""),
        ),
        Paragraph(
            "Rounding of products",
            f"The magnitude of each product is rounded to an integer number of units of 2^(M - {f}), to odd: what "
            "is no integer becomes the odd one of its two neighbours.",
            f"n = floor(|p| / 2^(M - {f})), and n + 1 where |p| / 2^(M - {f}) is no integer and n is even\n"
            f"odd(p) = sign(p) * n * 2^(M - {f})",
        ),
        Paragraph(
            "Sum of a group",
            "What became of the products is added exactly. A sum that is 0 is +0.",
            "S = sum of odd(p[k]) over the k of the group",
        ),
    ]


_GROUP_SUMS = {"exact": _exact_sums, "rounded": _rounded_sums, "bulk": _bulk_sums}

register(ExactDotUnit, disclosure=_exact)
register(GroupedDotUnit, disclosure=_grouped)
