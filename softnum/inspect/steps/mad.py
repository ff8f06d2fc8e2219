"""The steps of multiply-add units and of exact dot-product units, for `softnum.inspect.trace`."""

from __future__ import annotations

from softnum.formats.checks import check_not_own
from softnum.inspect.steps.step import exact_step, rounding_step
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import register
from softnum.mac.mad import MadUnit
from softnum.mac.products.engines import coded
from softnum.reference.exact import exact_terms
from softnum.reference.mac import mad_dot
from softnum.reference.rounding import environment_of
from softnum.reference.values import decode

__all__ = []


def _mad_steps(unit: MadUnit, a, b, c, words):
    for fmt in (*unit.operand, *unit.rounded_to) if unit.on_codes else ():
        check_not_own(
            fmt,
            f"trace: no trace of a MadUnit that computes in custom formats is known ({unit}, {{}}); its steps one by "
            "one are CustomFormat.apply('multiply', ...) and apply('add', ...), or apply('fma', ...) without product=",
        )
    roundings = []
    code, _ = mad_dot(
        a, b, operand=tuple(coded(f, unit) for f in unit.operand), accumulator=unit.accumulator, product=unit.product,
        rounding=unit.rounding, product_rounding=unit.product_rounding, overflow=unit.overflow,
        stochastic_bits=unit.stochastic_bits, lanes=unit.lanes, chunk=unit.chunk, reduction=unit.reduction,
        outer_accumulator=unit.outer_accumulator, compensated=unit.compensated, flush_inputs=unit.flush_inputs,
        flush_results=unit.flush_results, c=c, random_bits=_Words(words),
        observe=roundings.append,
    )  # fmt: skip
    steps = []
    for r in roundings:
        rest = {"where": r.where, "terms": r.terms}
        if r.format is None:
            steps.append(exact_step(r.name, r.formula, r.exact, **rest))
        else:
            steps.append(rounding_step(r.name, r.formula, r.exact, r.format, r.environment, **rest))
    return steps, code


def _exact_steps(unit: ExactDotUnit, a, b, c, words):
    if coded(unit.accumulator) is not unit.accumulator:
        raise TypeError(f"trace: no trace of sums in {unit.accumulator} is known ({unit})")
    operands = tuple(coded(f) for f in unit.operand)
    terms, sums = exact_terms(a, b, operands, unit.accumulator, c, unit.rounding)
    steps = [exact_step("start", "c", terms[0])]
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        factors = (("a", decode(x, operands[0])), ("b", decode(y, operands[1])))
        product = ("a * b", terms[k + 1])
        steps.append(exact_step("exact product", "a * b", terms[k + 1], where={"k": k}, terms=factors))
        both = (("sum", sums[k]), product)
        steps.append(exact_step("exact sum", "sum + a * b", sums[k + 1], where={"k": k}, terms=both))
    if not len(a):
        return steps, 0 if c is None else c
    word = None if words is None else words(0)[1]
    env = environment_of(unit.accumulator, unit.rounding, unit.overflow, unit.stochastic_bits, word)
    steps.append(rounding_step("rounding", "sum", sums[-1], unit.accumulator, env))
    return steps, steps[-1].code


class _Words:
    """Random words by their step, as the reference takes them: a pair of None where there are none."""

    def __init__(self, words) -> None:
        self.words = words

    def __getitem__(self, step: int) -> tuple:
        return (None, None) if self.words is None else self.words(step)


register(MadUnit, steps=_mad_steps)
register(ExactDotUnit, steps=_exact_steps)
