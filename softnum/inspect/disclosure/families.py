"""What the families of softnum.mac say of their units on a disclosure."""

from __future__ import annotations

from softnum.inspect.disclosure.roundings import Rounded
from softnum.inspect.disclosure.statement import Paragraph, Statement, product_rule, sum_rule
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.custom import CustomMadUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.order import reduction_order
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = []

_MOST_SHOWN = 64  # numbers of an association that is written out
_WORDS = (
    "Random words are inputs like a and b: step k has two words of {r} bits, one for the product's rounding and one "
    "for "
    "the sum's. softnum takes them of `random_bits`, or makes them of a key (seed, stream): step k of output (m, n) of "
    "product `batch` has word k mod 4 of Philox4x32-10 with the counter (k div 4, n, m, batch), its key words being "
    "the "
    "first two of Philox4x32-10(key = seed; counter = (stream low, stream high, 1, 0)). {both}"
)
_ONE_WORD = "Product and sum both have its low {r} bits."
_TWO_WORDS = "The product has its bits 0 to {last}, the sum its bits 16 to {end}."
_OTHER_WORD = "The product has its low {r} bits; the sum those of the same word of the key made with 2 in place of 1."


def random_words(r: int, both: bool) -> Paragraph:
    """Where the random words of a unit's steps come from."""
    if not both:
        how = _ONE_WORD.format(r=r)
    else:
        how = _TWO_WORDS.format(last=r - 1, end=15 + r) if r <= 16 else _OTHER_WORD.format(r=r)
    return Paragraph("Random words", _WORDS.format(r=r, both=how))


def _association(n: int, how: str, names: list[str]) -> str:
    """Additions of n numbers as one formula; of many, what `reduction` says in words."""
    if n > _MOST_SHOWN:
        return ""
    terms = list(names)
    for i, j in reduction_order(n, how):
        terms[i] = f"R_sum({terms[i]} + {terms[j]})"
    return terms[0]


_REDUCTION = {
    "sequential": "in order: ((first + second) + third) + ...",
    "tree": "as a tree: neighbours, an odd last one passing as it is, and so on with the results, level by level",
    "pairwise": "by halves: the sum of the first half, the larger one of an odd count, plus that of the second, each "
    "made "
    "in the same way; the first half's additions go first",
}


# -- MadUnit -----------------------------------------------------------------------------------------------------------
def _mad(unit: MadUnit) -> Statement:
    for what, fmt in (("accumulator", unit.accumulator), ("product", unit.product), ("outer sum", unit.outer)):
        if fmt is None or not fmt.values_are_exact:
            continue  # which the table of formats refuses
        if fmt.codec.core_format(fmt) is not fmt and not fmt.rounds_as_odd:
            raise ValueError(
                f"no disclosure of this unit is known: its {what} is of {fmt}, whose operations are the user's or "
                "derived "
                "from theirs; a unit that rounds into floats, fixed point, posits or linear takums has one"
            )
    common = {"stochastic_bits": unit.stochastic_bits, "flush_results": unit.flush_results}
    roundings = {"R_sum": Rounded(unit.accumulator, unit.rounding, unit.overflow_of(unit.accumulator), **common)}
    if unit.product is not None:
        rule = unit.overflow_of(unit.product)
        roundings["R_product"] = Rounded(unit.product, unit.product_mode, rule, **common)
    if unit.chunk is not None:
        roundings["R_outer"] = Rounded(unit.outer, unit.rounding, unit.overflow_of(unit.outer), **common)
    order = {"lanes": unit.lanes, "chunk": unit.chunk, "reduction": unit.reduction if unit.lanes > 1 else None}
    if unit.lanes > 1:
        order["additions"] = [list(pair) for pair in reduction_order(unit.lanes, unit.reduction)]
        if unit.chunk is None:
            order["additions_with_c"] = [list(pair) for pair in reduction_order(unit.lanes + 1, unit.reduction)]
    return Statement(_mad_steps(unit), roundings, order, unit.chunk or unit.lanes)


def _mad_steps(unit: MadUnit) -> list[Paragraph]:
    steps = [Paragraph("Operands", _read_words(unit))]
    if unit.product is None:
        steps.append(Paragraph("Product", f"It is exact. {product_rule()}", "p[k] = a[k] * b[k]"))
    else:
        what = "It is exact first, and then rounded."
        steps.append(Paragraph("Product", f"{what} {product_rule()}", "p[k] = R_product(a[k] * b[k])"))
    lane = "acc" if unit.lanes == 1 else "l[i]"
    formula = f"{lane} = R_sum({lane} + p[k])"
    if unit.compensated:
        formula = (
            f"y = R_sum(p[k] - e)\nt = R_sum({lane} + y)\ne = R_sum(R_sum(t - {lane}) - y)\n{lane} = t"
        )  # fmt: skip
    text = "The sum is exact, then rounded once. " + sum_rule(unit.rounding, "Of its two terms")
    if unit.product is None:
        text = "The product is not rounded before: a fused multiply-add. " + text
    if unit.compensated:
        text += " Differences are sums with the second term's sign turned."
        text += " Every sum has an e of its own, from +0, which is dropped at its end."
    steps.append(Paragraph("Step", text, formula))
    steps.append(_mad_order(unit))
    if unit.chunk is not None:
        outer = "outer = R_outer(outer + s)"
        if unit.compensated:
            outer = "y = R_outer(s - e)\nt = R_outer(outer + y)\ne = R_outer(R_outer(t - outer) - y)\nouter = t"
        steps.append(
            Paragraph(
                "Chunks",
                f"The K products are taken {unit.chunk} at a time, k = 0, 1, ...; the last chunk may be shorter. The "
                "sum s of "
                "each chunk starts from +0 and is added to an outer sum, chunk after chunk, by the rule of the step "
                "before. "
                "The outer sum is the result.",
                outer,
            )
        )
    steps.append(Paragraph("C", _mad_c(unit)))
    if unit.stochastic:
        steps.append(
            Paragraph(
                "Numbers of the steps",
                "Product k and its addition are step k. The additions of lanes and of chunks are steps K, K + 1, ... "
                "in the "
                "order of their execution: chunk 0's lanes, its addition to the outer sum, chunk 1's lanes, and so "
                "on; they "
                "take the sum's word.",
            )
        )
        steps.append(random_words(unit.stochastic_bits, unit.two_roundings))
    return steps


def _read_words(unit) -> str:
    text = "a[k], b[k] and C are the values of their codes."
    if unit.flush_inputs == "positive":
        return f"{text} Where one is subnormal or a zero of either sign, it counts as +0. Products and sums do not."
    if unit.flush_inputs:
        what = "C" if unit.flush_inputs == "sums" else "a, b, C"
        return (
            f"{text} Whatever is read, {what} and every sum and rounded product that is used again, counts as a zero "
            "of its sign where it is subnormal (+0 in a format without -0)."
            + (" a and b are read as they are." if unit.flush_inputs == "sums" else "")
        )
    return text


def _mad_order(unit: MadUnit) -> Paragraph:
    start = "0, 1, ..., K - 1" if unit.chunk is None else "its first to its last"
    whole = "the whole sum" if unit.chunk is None else "each chunk"
    if unit.lanes == 1:
        return Paragraph("Order", f"One running sum acc takes the products of {whole} in turn, k = {start}, from +0.")
    names = [f"l[{i}]" for i in range(unit.lanes)]
    formula = _association(unit.lanes, unit.reduction, names)
    if formula:
        formula = f"s = {formula}"
    if unit.chunk is None:
        with_c = _association(unit.lanes + 1, unit.reduction, ["C", *names])
        formula += f"\nwith C:\ns = {with_c}" if with_c else ""
    return Paragraph(
        "Order",
        f"{unit.lanes} running sums l[i], each from +0, take the products of {whole} in turn: product k goes to l[i], "
        "i = (k "
        f"minus the first k) mod {unit.lanes}. Then all of them, those without a product too, are added "
        f"{_REDUCTION[unit.reduction]}. `order` lists the additions (i, j) in the order of their execution: number i "
        "becomes "
        "number i + number j; l[0] is number 0"
        + (". " if unit.chunk is not None else ", and with C, which then is number 0, number 1 (additions_with_c). ")
        + "A plain addition is rounded once (no compensation).",
        formula,
    )


def _mad_c(unit: MadUnit) -> str:
    text = _mad_start(unit)
    return text.replace("as it stands", "as it is read") if unit.flush_inputs == "positive" else text


def _mad_start(unit: MadUnit) -> str:
    if unit.chunk is not None:
        return "The outer sum starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."
    if unit.lanes == 1:
        return "acc starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."
    return (
        "C is the first operand of the reduction, which then has one more; where it is missing, there is none in its "
        "place. "
        "A sum of nothing (K = 0) is C as it stands, or +0."
    )


# -- FusedDotUnit ------------------------------------------------------------------------------------------------------
def _fused(unit: FusedDotUnit) -> Statement:
    after = unit.c == "after"
    rule = None if unit.overflow == "always_infinity" else unit.overflow
    roundings = {"R": Rounded(unit.accumulator, unit.output_rounding, unit.overflow)}
    if unit.result != unit.accumulator and not after:
        roundings["R_output"] = Rounded(unit.result, unit.output_rounding, unit.overflow)
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


_SPECIAL_TERMS = Paragraph(
    "Special values",
    "If a term is NaN, or there are infinite terms of both signs, the step gives NaN; if there is an infinite term "
    "else, that infinity, by the rounding's rule for infinities. What follows is then left out.",
)
_ROUNDED_SUM = "S is rounded once. Where S is 0, and where it rounds to a zero of either sign, the result is +0."


def _aligned_sum(unit, terms: str, formula: str) -> list[Paragraph]:
    """How terms with exponents become the sum S of a step; terms and formula: what they are besides C."""
    least = "" if unit.min_exponent is None else f", and at least {unit.min_exponent}"
    f = unit.fraction_bits
    steps = [
        Paragraph(
            "Alignment",
            f"M is the largest exponent of a term{least}. If no term has an exponent, the step gives +0. Every term "
            f"is cut off, toward zero, to a multiple of 2^(M - {f}): {f} bits below M are kept.",
            f"cut(x) = sign(x) * floor(|x| / 2^(M - {f})) * 2^(M - {f})",
        ),
        Paragraph("Sum", f"What is left of {terms} and of C is added exactly.", f"S = cut(C) + {formula}"),
    ]
    if unit.truncate_fraction is not None:
        t = unit.truncate_fraction
        steps.append(
            Paragraph(
                "Cut of the sum",
                f"S, unless it is 0, is cut off toward zero to {t} bits below its own leading bit.",
                f"q = 2^(floor(log2 |S|) - {t});  S = sign(S) * floor(|S| / q) * q",
            )
        )
    return steps


def _chained_order(unit) -> Paragraph:
    """Steps of `terms` products in their order, each the C of the next."""
    t = unit.terms
    first = f"Step j has k = {t}j" + (f" to {t}j + {t - 1}" if t > 1 else "")
    return Paragraph(
        "Order",
        f"A step takes {t} product{'s' if t > 1 else ''} and C at once, and its result is the C of the next step. "
        f"{first}: there are ceil(K / {t}) steps. Where k is K or more there is no term, and no exponent.",
        "C_(j+1) = step(C_j; a[k], b[k] for the k of step j)",
    )


_CHAINED_C = (
    "The first step's C is the unit's, or +0 if that is missing; the others' is the result of the step before. A sum "
    "of nothing (K = 0) is C as it stands, or +0."
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
            "format, "
            f"no lower than the lowest: max(floor(log2 |x|), emin), emin being {a.emin} of a ({a}), {b.emin} of b "
            f"({b}) and "
            f"{unit.accumulator.emin} of C ({unit.accumulator}). That of a product is the sum of its factors' "
            "exponents: it "
            f"is not normalised. {zeros}",
            "e(a * b) = e(a) + e(b)",
        )
    )
    steps += [_SPECIAL_TERMS, *_aligned_sum(unit, "the products", "sum of cut(a * b)")]
    text = _ROUNDED_SUM
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
                "before. "
                f"A sum of nothing (K = 0) is C {nothing}, or +0.",
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
            "make a "
            f"step, one step after the other; there are ceil(K / {period}) * {period // t} steps. "
        )
        shown = groups[:8]
        formula = "\n".join(f"step {i + 1}: k = {', '.join(map(str, g))}" for i, g in enumerate(shown))
        formula += "\n..." if len(groups) > len(shown) else ""
    text += "Where k is K or more there is no term, and no exponent; a step without any still is one."
    return Paragraph("Order", text, formula)


# -- FmaChainUnit ------------------------------------------------------------------------------------------------------
def _chain(unit: FmaChainUnit) -> Statement:
    roundings = {"R": Rounded(unit.accumulator, unit.rounding, unit.overflow, flush_results=unit.flush_results)}
    period = unit.period
    text = "Fused multiply-adds, one after the other, each rounded once: "
    if unit.k_order is None:
        text += "k = 0, 1, ..., K - 1."
    else:
        text += (
            f"of each {period} products, k = {period}j + i with i = {', '.join(map(str, unit.k_order))} in turn. "
            "Where K is no "
            f"multiple of {period}, the factors that are missing are +0 and +0, and their steps are carried out too."
        )
    steps = [
        Paragraph("Operands", _read_words(unit)),
        Paragraph("Order", text),
        Paragraph("Product", f"It is exact. {product_rule()}", "p = a[k] * b[k]"),
        Paragraph("Step", f"The sum is exact, then rounded. {sum_rule(unit.rounding)}", "acc = R(acc + p)"),
        Paragraph("C", "acc starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."),
    ]
    order = {"period": period, "k_order": None if unit.k_order is None else list(unit.k_order)}
    return Statement(steps, roundings, order, max(period, 2))


# -- ExactDotUnit ------------------------------------------------------------------------------------------------------
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
            "and an "
            "infinity else gives itself. A sum that is 0 has the sign of its terms if all are zeros of one sign; any "
            f"other is {zero}. "
            f"A fixed-point register of {unit.width} bits, its last bit worth 2^{unit.bottom}, holds C and any 2^32 - "
            "1 products.",
            "s = C + p[0] + ... + p[K-1]",
        ),
        Paragraph(
            "Rounding", "The sum is rounded once. A sum of nothing (K = 0) is C as it stands, or +0.", "result = R(s)"
        ),
    ]
    if unit.stochastic:
        steps.append(Paragraph("Numbers of the steps", "The one rounding takes the sum's word of step 0."))
        steps.append(random_words(unit.stochastic_bits, False))
    return Statement(steps, {"R": Rounded(unit.accumulator, unit.rounding, unit.overflow, unit.stochastic_bits)}, {}, 4)


def _tensor_scales(unit) -> str:
    """What the scales of arrays are called."""
    every = all(f.tensor_scale is not None for f in unit.operand)
    return "Ta and Tb being the scales of the arrays a and b" + ("" if every else " (1 where a format has none)")


# -- BlockDotUnit ------------------------------------------------------------------------------------------------------
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
            "NaN, "
            "infinities of both signs too, and an infinity else gives itself. A sum that is 0 is +0.",
            "S[j] = sum of a[k] * b[k] over the k of block j",
        )
    else:
        inner = Paragraph(
            "Sum of a block",
            "The unit below (`inner`) sums the products of elements of the block, as its own sum without C: the "
            "block's "
            "elements are its a and b, from k = 0 on.",
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
        which = _tensor_scales(unit)
        steps.append(
            Paragraph(
                "Arrays' scales",
                f"acc starts from +0. In the end it is multiplied by the exact Ta * Tb, {which}, and C, if there is "
                "one, added: "
                "exactly, and rounded once. A sum of nothing (K = 0) is C as it stands, or +0.",
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
                "of the "
                "block and the step of the arrays' scales are steps K, K + 1, ... in the order of their execution. An "
                "addition "
                "takes the sum's word of its step, R_product the product's.",
            )
        )
        steps.append(random_words(bits, unit.two_roundings))
    order = {"block_size": unit.block_size}
    return Statement(steps, roundings, order, unit.block_size or 4, unit.inner)


# -- TwoStageDotUnit ---------------------------------------------------------------------------------------------------
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
    special = _SPECIAL_TERMS.text
    if unit.product_limit is not None:
        special = special.replace(
            "What follows",
            f"Else, if finite products of 2^{unit.product_limit} or more in magnitude are among the terms, they count "
            "as infinities of their signs: of both signs, the step gives NaN; of one, that infinity. What follows",
        )
    multiple = "q * floor(x / q)" if unit.alignment == "down" else "sign(x) * q * floor(|x| / q)"
    how = "rounded down, toward minus infinity" if unit.alignment == "down" else "cut off, toward zero"
    steps = [
        _chained_order(unit),
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
    return [*steps, Paragraph("C", _CHAINED_C)]


# -- GroupedDotUnit ----------------------------------------------------------------------------------------------------
def _grouped(unit: GroupedDotUnit) -> Statement:
    limit = lambda mode: "always_infinity" if mode == "to_odd" else None  # noqa: E731  as RVBNA has it
    roundings = {"R_sum": Rounded(unit.accumulator, unit.rounding, limit(unit.rounding))}
    mode = unit.partial_rounding
    if mode is not None:
        roundings["R_partial"] = Rounded(unit.partial_format, mode, limit(mode))
    t, f, (a, b) = unit.terms, unit.fraction_bits, unit.operand
    special = (
        f"The products are exact. {product_rule()} A NaN among the products of a group makes its sum S NaN, infinities "
        "of both signs do too, and an infinity else makes S itself."
    )
    steps = [
        Paragraph(
            "Groups",
            f"The K products are taken {t} at a time, k = 0, 1, ...; the last group may be shorter. Groups are added "
            "in order.",
        ),
        Paragraph("Special values", special, "p[k] = a[k] * b[k]"),
    ]
    if unit.reduction == "exact":
        zero = "A sum that is 0 is +0."
        if (mode or unit.rounding) == "down":
            zero = "A sum that is 0 is -0, but +0 where all products are +0."
        text = f"It is exact. {zero}"
        steps.append(Paragraph("Sum of a group", text, "S = sum of p[k] over the k of the group"))
    else:
        steps += [
            Paragraph(
                "Alignment",
                "The exponent of a number x that is not zero is that of its format, no lower than the lowest: "
                f"max(floor(log2 |x|), emin), emin being {a.emin} of a ({a}) and {b.emin} of b ({b}). That of a "
                "product that is not zero is the sum of its factors' exponents: it is not normalised. M is the "
                "largest exponent of a product of the group. If all products are zeros, S is +0.",
                "e(a * b) = e(a) + e(b)",
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
    text = "S is added as it is, and the sum rounded once. "
    if mode is not None:
        text = "S is rounded, then added; the sum is exact, then rounded. "
    added = "S" if mode is None else "R_partial(S)"
    steps += [
        Paragraph("Step", text + sum_rule(unit.rounding), f"acc = R_sum(acc + {added})"),
        Paragraph("C", "acc starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."),
    ]
    beside = () if f is None else (1 - f, -f, -f - 1)
    return Statement(steps, roundings, {"terms": t}, t, beside_one=beside)


# -- BlockFusedDotUnit -------------------------------------------------------------------------------------------------
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
        _chained_order(unit),
        Paragraph(
            "Blocks",
            f"k = 0, ..., K - 1 in blocks of {unit.block_size} elements, the last perhaps fewer; X[j] and Y[j] are the "
            "scales of a's and b's block j. The sign of a scale counts for nothing.",
        ),
        terms,
        _SPECIAL_TERMS,
        *_aligned_sum(unit, *names),
        Paragraph("Rounding", _ROUNDED_SUM, "result of the step = R(S)"),
    ]
    if not unit.tensor_scales:
        return [*steps, Paragraph("C", _CHAINED_C)]
    which = _tensor_scales(unit)
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


# -- ChunkedDotUnit ----------------------------------------------------------------------------------------------------
def _chunked(unit: ChunkedDotUnit) -> Statement:
    steps = [
        Paragraph(
            "Chunks",
            f"The K products are taken {unit.chunk} at a time, k = 0, 1, ...; the last chunk may be shorter. The unit "
            "below "
            "(`inner`) sums those of each chunk, as its own sum without C: the chunk's elements are its a and b, from "
            "k = 0 on.",
            "s[j] = inner(a[k], b[k] for the k of chunk j)",
        ),
        Paragraph(
            "Sum",
            f"The chunks' sums are added in order, each sum exact and rounded once. {sum_rule(unit.rounding)}",
            "outer = R_outer(outer + s[j])",
        ),
        Paragraph(
            "C", "outer starts from C, or +0 if it is missing. A sum of nothing (K = 0) is C as it stands, or +0."
        ),
    ]
    roundings = {"R_outer": Rounded(unit.accumulator, unit.rounding, unit.overflow)}
    return Statement(steps, roundings, {"chunk": unit.chunk}, unit.chunk, unit.inner)


def _custom(unit: CustomMadUnit) -> Statement:
    raise TypeError(
        f"no disclosure of {unit.name} can be given: its step is a function of the user's, whose text is the "
        "definition; "
        "publish that text, or state the unit as one of softnum's families"
    )


register(MadUnit, disclosure=_mad)
register(FusedDotUnit, disclosure=_fused)
register(FmaChainUnit, disclosure=_chain)
register(ExactDotUnit, disclosure=_exact)
register(BlockDotUnit, disclosure=_block)
register(ChunkedDotUnit, disclosure=_chunked)
register(TwoStageDotUnit, disclosure=_two_stage)
register(GroupedDotUnit, disclosure=_grouped)
register(BlockFusedDotUnit, disclosure=_block_fused)
register(CustomMadUnit, disclosure=_custom)
