"""The steps of units that sum groups, for `softnum.inspect.trace`."""

from __future__ import annotations

from dataclasses import replace

from softnum.inspect.steps.step import Step, exact_step, number, rounding_step
from softnum.mac.family import register
from softnum.mac.grouped import GroupedDotUnit
from softnum.reference.grouped import GroupStep, grouped_dot
from softnum.reference.values import Value

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
    return replace(step, code=code, decision="overflow")  # a rounding to odd, which ends at infinity here


def _inner_steps(step: GroupStep, where) -> list[Step]:
    """The roundings of products and of their sums."""
    fmt, env, _ = step.partial
    steps, product = [], Value("finite")
    for inner in step.inner:
        at = where if inner.k is None else where | {"k": inner.k}
        if inner.before is None:
            steps.append(_rounded("product", "p = round(a * b)", inner.exact, fmt, env, inner.code, at))
            product = inner.value
            continue
        formula, added = ("S = round(S + p)", product) if inner.k is not None else ("S = round(S + 0)", Value("finite"))
        terms = (("S", inner.before), ("p", added))
        steps.append(_rounded("partial sum", formula, inner.exact, fmt, env, inner.code, at, terms))
    return steps


def _group_steps(step: GroupStep, index: int, unit: GroupedDotUnit) -> list[Step]:
    where = {"group": index}
    formula = f"2^{unit.scale} * a * b" if unit.scale else "a * b"
    steps = [
        exact_step("exact product", formula, x, where=where | {"k": k})
        for k, x in zip(step.ks, step.products, strict=True)
    ]
    if step.unit is not None:
        for k, x, n in zip(step.ks, step.products, step.jammed, strict=True):
            if x.numerator:
                steps.append(_jammed_step(x, n, step.unit, where | {"k": k}))
    if step.inner:
        steps += _inner_steps(step, where)
    else:
        steps.append(exact_step("group sum", "sum(a * b)", step.total, where=where))
    if step.partial is not None and not step.inner:
        fmt, env, code = step.partial
        steps.append(_rounded("partial sum", "S = round(sum)", step.total, fmt, env, code, where))
    terms = (("acc", step.acc), ("S", step.added))
    steps.append(_rounded("sum", "acc + S", step.exact, step.format, step.environment, step.code, where, terms))
    return steps


def _steps(unit: GroupedDotUnit, a, b, c, words):
    seen: list[GroupStep] = []
    code, _ = grouped_dot(
        a, b, terms=unit.terms, accumulator=unit.accumulator, operand=unit.operand, reduction=unit.reduction,
        partial=unit.partial, partial_rounding=unit.partial_rounding, rounding=unit.rounding,
        guard_bits=unit.guard_bits, zeros=unit.zeros, scale=unit.scale, flush_inputs=unit.flush_inputs,
        flush_results=unit.flush_results, overflow=unit.overflow, c=c, observe=seen.append,
    )  # fmt: skip
    return [s for i, step in enumerate(seen) for s in _group_steps(step, i, unit)], code


register(GroupedDotUnit, steps=_steps)
