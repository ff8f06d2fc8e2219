"""The steps of dot products in two stages, for `softnum.inspect.trace`."""

from __future__ import annotations

from fractions import Fraction

from softnum.inspect.steps.step import Step, exact_step, number, rounding_step
from softnum.mac.family import register
from softnum.mac.two_stage import TwoStageDotUnit
from softnum.reference.fused import cut, signed
from softnum.reference.rounding import INEXACT
from softnum.reference.rules import Flags
from softnum.reference.two_stage import TwoStageStep, aligned, two_stage_dot

__all__ = []


def _aligned(name: str, formula: str, x: Fraction, to: Fraction, unit: Fraction, where) -> Step:
    """A number made a multiple of a unit, by cutting it off or by rounding it down."""
    kept = cut(x, unit) * unit
    lost = abs(x - kept) / unit
    decision = "exact" if not lost else "up" if to != kept else "down"
    flags = Flags(INEXACT if lost else 0)
    return Step(name, formula, number(signed(x)), where, (), kept, unit, lost, decision, flags=flags)


def _steps_of(step: TwoStageStep, unit: TwoStageDotUnit, index: int) -> list[Step]:
    where, down = {"group": index}, unit.alignment == "down"
    steps = [
        exact_step("exact product", "a * b", x, where=where | {"k": k})
        for k, x in zip(step.ks, step.products, strict=True)
    ]
    if step.sum_unit is not None:
        for k, x, quantum in zip(step.ks, step.products, step.units, strict=True):
            if x.numerator:
                to = cut(x.fraction, quantum) * quantum
                steps.append(_aligned("aligned", "a * b", x.fraction, to, quantum, where | {"k": k}))
        for i, x in enumerate(step.streams) if unit.interleave > 1 else ():
            to = aligned(x, step.stream_unit, down)
            steps.append(_aligned("aligned", "sum of a stream", x, to, step.stream_unit, where | {"stream": i}))
        if step.added:
            steps.append(_aligned("aligned", "sum(a * b)", step.added, step.aligned, step.sum_unit, where))
        if step.c.numerator:
            steps.append(_c(step, where))
    steps.append(exact_step("sum", "acc + sum(a * b)", step.total, where=where))
    rounded = rounding_step("rounded", "round(sum)", step.total, unit.accumulator, step.environment, where=where)
    steps.append(Step(**{**vars(rounded), "flags": rounded.flags | step.flags}))
    return steps


def _c(step: TwoStageStep, where) -> Step:
    """C aligned, or left out where it lies too far below."""
    x, to = step.c.fraction, step.aligned_c
    if abs(x - to) < step.c_unit:
        return _aligned("aligned", "acc", x, to, step.c_unit, where)
    return Step("left out", "acc", x, where, (), Fraction(0), 2 * abs(x), Fraction(1, 2), "down", flags=Flags(INEXACT))


def _steps(unit: TwoStageDotUnit, a, b, c, words):
    seen: list[TwoStageStep] = []
    code, _ = two_stage_dot(
        a, b, terms=unit.terms, fraction_bits=unit.fraction_bits, sum_fraction_bits=unit.sum_fraction_bits,
        c_fraction_bits=unit.c_fraction_bits, accumulator=unit.accumulator, operand=unit.operand,
        interleave=unit.interleave, alignment=unit.alignment, c_reach=unit.c_reach, product_limit=unit.product_limit,
        output_rounding=unit.output_rounding, overflow=unit.overflow, zero_exponent=unit.zero_exponent, c=c,
        observe=seen.append,
    )  # fmt: skip
    return [s for i, step in enumerate(seen) for s in _steps_of(step, unit, i)], code


register(TwoStageDotUnit, steps=_steps)
