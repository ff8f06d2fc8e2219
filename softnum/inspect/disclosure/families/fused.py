"""What units that align their terms, and chains of fused multiply-adds, say of themselves on a disclosure."""

from __future__ import annotations

from softnum.inspect.disclosure.families.shared import (
    CHAINED_C,
    ROUNDED_SUM,
    SPECIAL_TERMS,
    aligned_sum,
    chained_order,
    read_words,
)
from softnum.inspect.disclosure.roundings import Rounded
from softnum.inspect.disclosure.statement import Paragraph, Statement, product_rule, sum_rule
from softnum.mac.family import register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = []


def _fused(unit: FusedDotUnit) -> Statement:
    after = unit.c == "after"
    own = unit.overflow_of(unit.result)
    rule = None if own == "always_infinity" else own
    roundings = {"R": Rounded(unit.accumulator, unit.output_rounding, unit.overflow_of(unit.accumulator))}
    if unit.result != unit.accumulator and not after:
        roundings["R_output"] = Rounded(unit.result, unit.output_rounding, own)
        roundings["R_convert"] = Rounded(unit.result, unit.output_rounding, rule)
    if after:
        roundings["R_c"] = Rounded(unit.result, "nearest_even", rule)
    order = {
        "terms": unit.terms,
        "period": unit.period,
        "k_order": None if unit.k_order is None else list(unit.k_order),
    }
    kept = -unit.fraction_bits
    least = () if unit.min_exponent is None else tuple(unit.min_exponent + kept + i for i in (1, 0, -1))
    return Statement(
        _fused_steps(unit), roundings, order, unit.period, beside_one=(kept + 1, kept, kept - 1), alone=least
    )


def _fused_steps(unit: FusedDotUnit) -> list[Paragraph]:
    (a, b), after = unit.operand, unit.c == "after"
    last = "R_output" if unit.result != unit.accumulator and not after else "R"
    steps = [_fused_order(unit)]
    zeros = (
        "A product with a zero factor, and C where it is zero, has no exponent."
        if unit.zero_exponent is None
        else f"A factor that is zero counts with the exponent {unit.zero_exponent}, and so does a zero C: zeros have "
        "exponents like other numbers, and a product with a zero factor has this plus the other factor's."
    )
    steps.append(
        Paragraph(
            "Terms",
            f"The products are exact. {product_rule()} The exponent of a number x that is not zero is that of its "
            f"format, no lower than the lowest: max(floor(log2 |x|), emin), emin being {a.emin} of a ({a}), {b.emin} "
            f"of b ({b}) and {unit.accumulator.emin} of C ({unit.accumulator}). That of a product is the sum of its "
            f"factors' exponents: it is not normalised. {zeros}",
            "e(a * b) = e(a) + e(b)",
        )
    )
    steps += [SPECIAL_TERMS, *aligned_sum(unit, "the products", "sum of cut(a * b)")]
    text = ROUNDED_SUM
    if last == "R_output":
        text += " The last step rounds by R_output instead, into the output's format."
    steps.append(
        Paragraph(
            "Rounding", text, "result of the step = R(S)" + (", of the last step R_output(S)" if last != "R" else "")
        )
    )
    if after:
        name = str(unit.result)
        steps.append(
            Paragraph(
                "C",
                f"The first step's C is +0. The unit's C, of {name}, is added to the last step's result. "
                + sum_rule("nearest_even", "Of the two")
                + " A sum of nothing (K = 0) is the unit's C as it stands, or +0.",
                "result = R_c(result of the last step + C)",
            )
        )
    else:
        nothing = "as it stands" if unit.result == unit.accumulator else "rounded into the output's format by R_convert"
        steps.append(
            Paragraph(
                "C",
                "The first step's C is the unit's, or +0 if that is missing; the others' is the result of the step "
                f"before. A sum of nothing (K = 0) is C {nothing}, or +0.",
            )
        )
    return steps


def _fused_order(unit: FusedDotUnit) -> Paragraph:
    t, period = unit.terms, unit.period
    text = f"A step takes {t} product{'s' if t > 1 else ''} and C at once, and its result is the C of the next step. "
    if unit.k_order is None:
        first = f"Step j has k = {t}j" + (f" to {t}j + {t - 1}" if t > 1 else "")
        text += f"{first}: there are ceil(K / {t}) steps. "
        formula = (
            f"C_(j+1) = R(C_j + a[{t}j]*b[{t}j]" + (f" + ... + a[{t}j+{t - 1}]*b[{t}j+{t - 1}]" if t > 1 else "") + ")"
        )
    else:
        groups = [unit.k_order[i : i + t] for i in range(0, period, t)]
        text += (
            f"The order repeats after {period} products: of k from {period}j on, positions as in k_order, {t} of them "
            f"make a step, one step after the other; there are ceil(K / {period}) * {period // t} steps. "
        )
        shown = groups[:8]
        formula = "\n".join(f"step {i + 1}: k = {', '.join(map(str, g))}" for i, g in enumerate(shown))
        formula += "\n..." if len(groups) > len(shown) else ""
    text += "Where k is K or more there is no term, and no exponent; a step without any still is one."
    return Paragraph("Order", text, formula)


def _two_stage(unit: TwoStageDotUnit) -> Statement:
    roundings = {"R": Rounded(unit.accumulator, unit.output_rounding, unit.overflow)}
    order = {"terms": unit.terms, "interleave": unit.interleave}
    near = lambda bits: (1 - bits, -bits, -bits - 1)  # noqa: E731
    beside = sorted({*near(unit.fraction_bits), *near(unit.sum_fraction_bits)}, reverse=True)
    reach = (-2 * unit.c_fraction_bits - 2,) if unit.c_reach is None else near(unit.c_reach)
    limit = () if unit.product_limit is None else (unit.product_limit, unit.product_limit - 1)
    return Statement(
        _two_stage_steps(unit), roundings, order, unit.terms, beside_one=tuple(beside), alone=limit,
        c_beside_one=tuple(sorted({*near(unit.c_fraction_bits), *reach}, reverse=True)),
    )  # fmt: skip


def _two_stage_steps(unit: TwoStageDotUnit) -> list[Paragraph]:
    (a, b), c, n, f = unit.operand, unit.accumulator, unit.interleave, unit.fraction_bits
    zeros = (
        "A product with a zero factor, and C where it is zero, has no exponent."
        if unit.zero_exponent is None
        else f"A factor that is zero counts with the exponent {unit.zero_exponent}, and so does a zero C: a product "
        "with a zero factor has this plus the other factor's."
    )
    special = SPECIAL_TERMS.text
    if unit.product_limit is not None:
        special = special.replace(
            "What follows",
            f"Else, if finite products of 2^{unit.product_limit} or more in magnitude are among the terms, they count "
            "as infinities of their signs: of both signs, the step gives NaN; of one, that infinity. What follows",
        )
    multiple = "q * floor(x / q)" if unit.alignment == "down" else "sign(x) * q * floor(|x| / q)"
    how = "rounded down, toward minus infinity" if unit.alignment == "down" else "cut off, toward zero"
    steps = [
        chained_order(unit),
        Paragraph(
            "Terms",
            f"The products are exact. {product_rule()} The exponent of a number x that is not zero is that of its "
            f"format, no lower than the lowest: max(floor(log2 |x|), emin), emin being {a.emin} of a ({a}), {b.emin} "
            f"of b ({b}) and {c.emin} of C ({c}). That of a product is the sum of its factors' exponents: it is not "
            f"normalised. {zeros}",
            "e(a * b) = e(a) + e(b)",
        ),
        Paragraph("Special values", special),
    ]
    cut = f"cut(x) = sign(x) * floor(|x| / 2^({{}} - {f})) * 2^({{}} - {f})"
    if n == 1:
        steps.append(
            Paragraph(
                "Products",
                f"M is the largest exponent of a product. Every product is cut off, toward zero, to a multiple of 2^(M "
                f"- {f}), and what is left is added exactly. If no product has an exponent, there is no M, and S is 0.",
                cut.format("M", "M") + "\nS = sum of cut(a * b)",
            )
        )
    else:
        steps.append(
            Paragraph(
                "Products",
                f"The products of a step are of {n} streams: product k belongs to stream i = k mod {n}. M_i is the "
                f"largest exponent of a product of stream i. Each of its products is cut off, toward zero, to a "
                f"multiple of 2^(M_i - {f}), and what is left is added exactly: S_i. If none of its products has an "
                "exponent, there is no M_i, and S_i is 0.",
                cut.format("M_i", "M_i") + "\nS_i = sum of cut(a * b)",
            )
        )
        steps.append(
            Paragraph(
                "Streams",
                f"M is the largest M_i. Each S_i is {how}, to a multiple of 2^(M - {f}), and what is left is added "
                "exactly. If there is no M, S is 0.",
                f"align(x, q) = {multiple}\nS = align(S_0, 2^(M - {f})) + ... + align(S_{n - 1}, 2^(M - {f}))",
            )
        )
    reach = ""
    if unit.c_reach is not None:
        reach = f" Where C has an exponent below N - {unit.c_reach}, it counts as 0."
    steps.append(
        Paragraph(
            "Sum",
            f"N is the larger of M and C's exponent; if there is neither, the step gives +0. S and C are {how}, S to a "
            f"multiple of 2^(N - {unit.sum_fraction_bits}), C to one of 2^(N - {unit.c_fraction_bits}), and added "
            f"exactly.{reach}",
            (f"align(x, q) = {multiple}\n" if n == 1 else "")
            + f"T = align(S, 2^(N - {unit.sum_fraction_bits})) + align(C, 2^(N - {unit.c_fraction_bits}))",
        )
    )
    steps.append(
        Paragraph(
            "Rounding",
            "T is rounded once. Where T is 0, the result is +0; what rounds to zero keeps its sign.",
            "result of the step = R(T)",
        )
    )
    return [*steps, Paragraph("C", CHAINED_C)]


def _chain(unit: FmaChainUnit) -> Statement:
    roundings = {"R": Rounded(unit.accumulator, unit.rounding, unit.overflow, flush_results=unit.flush_results)}
    period = unit.period
    text = "Fused multiply-adds, one after the other, each rounded once: "
    if unit.k_order is None:
        text += "k = 0, 1, ..., K - 1."
    else:
        text += (
            f"of each {period} products, k = {period}j + i with i = {', '.join(map(str, unit.k_order))} in turn. "
            f"Where K is no multiple of {period}, the factors that are missing are +0 and +0, and their steps are "
            "carried out too."
        )
    steps = [
        Paragraph("Operands", read_words(unit)),
        Paragraph("Order", text),
        Paragraph("Product", f"It is exact. {product_rule()}", "p = a[k] * b[k]"),
        Paragraph("Step", f"The sum is exact, then rounded. {sum_rule(unit.rounding)}", "acc = R(acc + p)"),
        Paragraph("C", "acc starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."),
    ]
    order = {"period": period, "k_order": None if unit.k_order is None else list(unit.k_order)}
    return Statement(steps, roundings, order, max(period, 2))


register(FusedDotUnit, disclosure=_fused)
register(TwoStageDotUnit, disclosure=_two_stage)
register(FmaChainUnit, disclosure=_chain)
