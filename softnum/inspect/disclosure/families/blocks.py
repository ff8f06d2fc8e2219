"""What units of block formats say of themselves on a disclosure."""

from __future__ import annotations

from softnum.inspect.disclosure.families.shared import (
    CHAINED_C,
    ROUNDED_SUM,
    SPECIAL_TERMS,
    aligned_sum,
    chained_order,
    random_words,
    tensor_scales,
)
from softnum.inspect.disclosure.roundings import Rounded
from softnum.inspect.disclosure.statement import Paragraph, Statement, product_rule, sum_rule
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.family import register

__all__ = []


def _block(unit: BlockDotUnit) -> Statement:
    bits = unit.stochastic_bits
    roundings = {"R_sum": Rounded(unit.accumulator, unit.rounding, unit.rule_for(unit.accumulator), bits)}
    if unit.product is not None:
        roundings["R_product"] = Rounded(unit.product, unit.product_mode, unit.rule_for(unit.product), bits)
    size = "all of K" if unit.block_size is None else f"{unit.block_size} elements, the last perhaps fewer"
    if unit.inner is None:
        inner = Paragraph(
            "Sum of a block",
            f"Products of elements are exact, and so is their sum. {product_rule()} A NaN among the products gives "
            "NaN, infinities of both signs too, and an infinity else gives itself. A sum that is 0 is +0.",
            "S[j] = sum of a[k] * b[k] over the k of block j",
        )
    else:
        inner = Paragraph(
            "Sum of a block",
            "The unit below (`inner`) sums the products of elements of the block, as its own sum without C: the "
            "block's elements are its a and b, from k = 0 on.",
            "S[j] = inner(a[k], b[k] for the k of block j)",
        )
    scaled = "R_product(S[j] * (X[j] * Y[j]))" if unit.product is not None else "S[j] * (X[j] * Y[j])"
    product = "The products are exact, and then rounded." if unit.product is not None else "The products are exact."
    steps = [
        Paragraph(
            "Blocks", f"k = 0, ..., K - 1 in blocks of {size}; X[j] and Y[j] are the scales of a's and b's block j."
        ),
        inner,
        Paragraph("Scaled sum", f"{product} {product_rule()}", f"T[j] = {scaled}"),
        Paragraph(
            "Sum",
            f"Blocks are added in order, j = 0, 1, ..., each sum exact and rounded once. {sum_rule(unit.rounding)}",
            "acc = R_sum(acc + T[j])",
        ),
    ]
    if unit.tensor_scales:
        which = tensor_scales(unit)
        steps.append(
            Paragraph(
                "Arrays' scales",
                f"acc starts from +0. In the end it is multiplied by the exact Ta * Tb, {which}, and C, if there is "
                "one, added: exactly, and rounded once. A sum of nothing (K = 0) is C as it stands, or +0.",
                "result = R_sum(acc * (Ta * Tb) + C), without C R_sum(acc * (Ta * Tb))",
            )
        )
    else:
        steps.append(
            Paragraph(
                "C", "acc starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."
            )
        )
    if unit.stochastic:
        steps.append(
            Paragraph(
                "Numbers of the steps",
                "Product k's step within `inner` is step k. What steps `inner` has beyond its products, the addition "
                "of the block and the step of the arrays' scales are steps K, K + 1, ... in the order of their "
                "execution. An addition takes the sum's word of its step, R_product the product's.",
            )
        )
        steps.append(random_words(bits, unit.two_roundings, unit.random_source))
    order = {"block_size": unit.block_size}
    return Statement(steps, roundings, order, unit.block_size or 4, unit.inner)


def _block_fused(unit: BlockFusedDotUnit) -> Statement:
    rule = None if unit.overflow == "always_infinity" else unit.overflow
    roundings = {"R": Rounded(unit.accumulator, unit.output_rounding, unit.overflow)}
    if unit.tensor_scales:
        roundings["R_tensor"] = Rounded(unit.accumulator, "nearest_even", rule)
    order = {"terms": unit.terms, "group": unit.group, "block_size": unit.block_size}
    kept = -unit.fraction_bits
    least = () if unit.min_exponent is None else tuple(unit.min_exponent + kept + i for i in (1, 0, -1))
    return Statement(
        _block_fused_steps(unit), roundings, order, unit.terms, beside_one=(kept + 1, kept, kept - 1), alone=least,
        together=unit.group,
    )  # fmt: skip


def _block_fused_steps(unit: BlockFusedDotUnit) -> list[Paragraph]:
    (a, b), c, g = unit.operand, unit.accumulator, unit.group
    zero = unit.zero_exponent
    emins = f"{a.scale.emin} of X ({a.scale}), {b.scale.emin} of Y ({b.scale})"
    if g == 1:
        emins += f", {a.element.emin} of a ({a.element}), {b.element.emin} of b ({b.element})"
    exponent = (
        "The exponent of a number x that is not zero is that of its format, no lower than the lowest: max(floor(log2 "
        f"|x|), emin), emin being {emins} and {c.emin} of C ({c})."
    )
    zeros = f"A factor that is zero counts with the exponent {zero}, and so does a zero C."
    if g == 1:
        if zero is None:
            zeros = "A term with a zero factor, and C where it is zero, has no exponent."
        terms = Paragraph(
            "Terms",
            "They are the products of two elements and both scales, and C. The products are exact. "
            f"{product_rule()} {exponent} That of a product is the sum of its four factors' exponents: it is not "
            f"normalised. {zeros}",
            "p[k] = a[k] * b[k] * |X[j]| * |Y[j]|, j the block of k\ne(p[k]) = e(a[k]) + e(b[k]) + e(X[j]) + e(Y[j])",
        )
        names = "the products", "sum of cut(p[k])"
    else:
        if zero is None:
            zeros = "With a zero scale a term has no exponent, and C where it is zero has none."
        terms = Paragraph(
            "Terms",
            f"Each {g} products in their order are a group, which lies within one block; the last may be shorter. The "
            "terms are the sum of each group's products, times the two scales of their block, and C; sums and products "
            f"are exact. {product_rule()} Where a product of two elements and both scales is NaN or infinite, it is "
            f"a term itself. {exponent} That of a group's term is the sum of the two "
            f"scales' exponents, whatever the sum of its products is, 0 too. {zeros}",
            f"G[i] = sum of a[k] * b[k], k = {g}i to {g}i + {g - 1}\np[i] = G[i] * |X[j]| * |Y[j]|, j the block of "
            "group i\ne(p[i]) = e(X[j]) + e(Y[j])",
        )
        names = "the groups' terms", "sum of cut(p[i])"
    steps = [
        chained_order(unit),
        Paragraph(
            "Blocks",
            f"k = 0, ..., K - 1 in blocks of {unit.block_size} elements, the last perhaps fewer; X[j] and Y[j] are the "
            "scales of a's and b's block j. The sign of a scale counts for nothing.",
        ),
        terms,
        SPECIAL_TERMS,
        *aligned_sum(unit, *names),
        Paragraph("Rounding", ROUNDED_SUM, "result of the step = R(S)"),
    ]
    if not unit.tensor_scales:
        return [*steps, Paragraph("C", CHAINED_C)]
    which = tensor_scales(unit)
    return [
        *steps,
        Paragraph(
            "Arrays' scales",
            f"The first step's C is +0. The last step's result, acc, is multiplied by the exact Ta * Tb, {which}, and "
            f"the unit's C, if there is one, added: exactly, and rounded once. {sum_rule('nearest_even')} A sum of "
            "nothing (K = 0) is C as it stands, or +0.",
            "result = R_tensor(acc * (Ta * Tb) + C), without C R_tensor(acc * (Ta * Tb))",
        ),
    ]


register(BlockDotUnit, disclosure=_block)
register(BlockFusedDotUnit, disclosure=_block_fused)
