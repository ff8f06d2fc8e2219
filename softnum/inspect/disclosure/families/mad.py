"""What MadUnit and ChunkedDotUnit say of their units on a disclosure, and why CustomMadUnit says nothing."""

from __future__ import annotations

from softnum.inspect.disclosure.families.shared import random_words, read_words
from softnum.inspect.disclosure.roundings import Rounded
from softnum.inspect.disclosure.statement import Paragraph, Statement, product_rule, sum_rule
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.custom import CustomMadUnit
from softnum.mac.family import register
from softnum.mac.mad import MadUnit
from softnum.mac.order import reduction_order

__all__ = []

_MOST_SHOWN = 64  # numbers of an association that is written out


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
    "made in the same way; the first half's additions go first",
}


def _mad(unit: MadUnit) -> Statement:
    for what, fmt in (("accumulator", unit.accumulator), ("product", unit.product), ("outer sum", unit.outer)):
        if fmt is None or not fmt.values_are_exact:
            continue  # which the table of formats refuses
        if fmt.codec.core_format(fmt) is not fmt and not fmt.rounds_as_odd:
            raise ValueError(
                f"no disclosure of this unit is known: its {what} is of {fmt}, whose operations are the user's or "
                "derived from theirs; a unit that rounds into floats, fixed point, posits or linear takums has one"
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
    steps = [Paragraph("Operands", read_words(unit))]
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
                "sum s of each chunk starts from +0 and is added to an outer sum, chunk after chunk, by the rule of "
                "the step before. The outer sum is the result.",
                outer,
            )
        )
    steps.append(Paragraph("C", _mad_c(unit)))
    if unit.stochastic:
        steps.append(
            Paragraph(
                "Numbers of the steps",
                "Product k and its addition are step k. The additions of lanes and of chunks are steps K, K + 1, ... "
                "in the order of their execution: chunk 0's lanes, its addition to the outer sum, chunk 1's lanes, and "
                "so on; they take the sum's word.",
            )
        )
        steps.append(random_words(unit.stochastic_bits, unit.two_roundings, unit.random_source))
    return steps


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
        f"i = (k minus the first k) mod {unit.lanes}. Then all of them, those without a product too, are added "
        f"{_REDUCTION[unit.reduction]}. `order` lists the additions (i, j) in the order of their execution: number i "
        "becomes number i + number j; l[0] is number 0"
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
        "place. A sum of nothing (K = 0) is C as it stands, or +0."
    )


def _chunked(unit: ChunkedDotUnit) -> Statement:
    steps = [
        Paragraph(
            "Chunks",
            f"The K products are taken {unit.chunk} at a time, k = 0, 1, ...; the last chunk may be shorter. The unit "
            "below (`inner`) sums those of each chunk, as its own sum without C: the chunk's elements are its a and b, "
            "from k = 0 on.",
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
        "definition; publish that text, or state the unit as one of softnum's families"
    )


register(MadUnit, disclosure=_mad)
register(ChunkedDotUnit, disclosure=_chunked)
register(CustomMadUnit, disclosure=_custom)
