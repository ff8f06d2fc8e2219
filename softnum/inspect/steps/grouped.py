"""The steps of units that sum groups, for `softnum.inspect.trace`."""

from __future__ import annotations

from softnum.inspect.steps.step import Step, exact_step, number, rounding_step
from softnum.mac.family import register
from softnum.mac.grouped import GroupedDotUnit
from softnum.reference.grouped import GroupStep, grouped_dot
from softnum.reference.values import Value, decode

__all__ = []


def _jammed_step(x: Value, multiple: int, unit, where) -> Step:
    kept = abs(x.fraction) // unit * unit
    lost = (abs(x.fraction) - kept) / unit
    decision = "exact" if not lost else "down" if kept == abs(multiple) * unit else "up"
    sign = -1 if x.sign else 1
    return Step("jammed", "to_odd(a * b)", number(x), where, (), sign * kept, unit, lost, decision)


def _rounded(name: str, formula: str, exact: Value, fmt, env, code: int, where, terms=()) -> Step:
    step = rounding_step(name, formula, exact, fmt, env, where=where, terms=terms)
    if step.code == code:
        return step
    return Step(
        **{**vars(step), "code": code, "decision": "overflow"}
    )  # a rounding to odd, which ends at infinity here


def _group_steps(step: GroupStep, index: int) -> list[Step]:
    where = {"group": index}
    steps = [
        exact_step("exact product", "a * b", x, where=where | {"k": k})
        for k, x in zip(step.ks, step.products, strict=True)
    ]
    if step.unit is not None:
        for k, x, n in zip(step.ks, step.products, step.jammed, strict=True):
            if x.numerator:
                steps.append(_jammed_step(x, n, step.unit, where | {"k": k}))
    steps.append(exact_step("group sum", "sum(a * b)", step.total, where=where))
    added = step.total
    if step.partial is not None:
        fmt, env, code = step.partial
        steps.append(_rounded("partial sum", "S = round(sum)", step.total, fmt, env, code, where))
        added = decode(code, fmt)
    terms = (("acc", step.acc), ("S", added))
    steps.append(_rounded("sum", "acc + S", step.exact, step.format, step.environment, step.code, where, terms))
    return steps


def _steps(unit: GroupedDotUnit, a, b, c, words):
    seen: list[GroupStep] = []
    code, _ = grouped_dot(
        a, b, terms=unit.terms, accumulator=unit.accumulator, operand=unit.operand, reduction=unit.reduction,
        partial=unit.partial, partial_rounding=unit.partial_rounding, rounding=unit.rounding,
        guard_bits=unit.guard_bits, c=c, observe=seen.append,
    )  # fmt: skip
    return [s for i, step in enumerate(seen) for s in _group_steps(step, i)], code


register(GroupedDotUnit, steps=_steps)
