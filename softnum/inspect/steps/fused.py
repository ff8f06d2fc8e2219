"""The steps of fused dot-product units and of chains of fused multiply-adds, for `softnum.inspect.trace`."""

from __future__ import annotations

from dataclasses import replace

from softnum.inspect.steps.step import Step, cut_step, exact_step, rounding_step
from softnum.mac.family import register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.reference.fused import FusedStep, fma_chain_dot, fused_dot, product_of
from softnum.reference.operations import add, fma
from softnum.reference.rounding import environment_of
from softnum.reference.values import Value, decode, flushed

__all__ = ["end_steps"]


def _sum_value(x, y, total) -> Value:
    """The exact sum of two values, of which `total` has the kind."""
    if x.kind == "finite" and y.kind == "finite":
        exact = x.fraction + y.fraction
        sign = int(exact < 0) if exact else total.sign
        return Value("finite", sign, abs(exact.numerator), exact.denominator)
    return total


def _fused_steps(step: FusedStep, index: int, truncate: int | None) -> list[Step]:
    where = {"group": index}
    steps = [
        exact_step("exact product", "a * b", x, where=where | {"k": k})
        for k, x in zip(step.ks, step.products, strict=True)
    ]
    if step.unit is not None:
        for k, x, n in zip(step.ks, step.products, step.aligned, strict=False):
            if x.numerator:
                steps.append(cut_step("aligned", "a * b", x, n * step.unit, step.unit, where | {"k": k}))
        if step.c.numerator:
            steps.append(cut_step("aligned", "acc", step.c, step.aligned[-1] * step.unit, step.unit, where))
    return steps + end_steps(step, where, truncate, "acc + sum(a * b)")


def end_steps(step: FusedStep, where: dict, truncate: int | None, formula: str) -> list[Step]:
    """The last of a fused step's own: its terms' sum, what that is cut to, and its rounding."""
    steps = [exact_step("sum", formula, step.total, where=where)]
    if truncate is not None and step.total.numerator:
        quantum = abs(step.total.fraction)
        size = quantum.numerator.bit_length() - quantum.denominator.bit_length()
        size -= quantum < type(quantum)(2) ** size
        last = type(quantum)(2) ** (size - truncate)
        steps.append(cut_step("cut", f"to {truncate} fraction bits", step.total, step.cut.fraction, last, where))
    rounded = rounding_step("rounded", "round(sum)", step.cut, step.format, step.environment, where=where)
    if rounded.code != step.code:  # an overflow that a rounding toward zero would have kept finite
        rounded = Step(**{**vars(rounded), "code": step.code, "decision": "overflow"})
    steps.append(rounded)
    return steps


def _dot_steps(unit: FusedDotUnit, a, b, c, words):
    seen: list[FusedStep] = []
    code, _ = fused_dot(
        a, b, terms=unit.terms, fraction_bits=unit.fraction_bits, accumulator=unit.accumulator, operand=unit.operand,
        min_exponent=unit.min_exponent, output=unit.output, output_rounding=unit.output_rounding,
        truncate_fraction=unit.truncate_fraction, k_order=unit.k_order, c_mode=unit.c, overflow=unit.overflow,
        zero_exponent=unit.zero_exponent, c=c, observe=seen.append,
    )  # fmt: skip
    steps = [s for i, step in enumerate(seen) for s in _fused_steps(step, i, unit.truncate_fraction)]
    if unit.c == "after" and seen:
        own = unit.overflow_of(unit.result)
        rule = None if own == "always_infinity" else own
        x, y = decode(seen[-1].code, unit.accumulator), decode(c or 0, unit.result)
        total, flags = add(seen[-1].code, c or 0, (unit.accumulator, unit.result), out_fmt=unit.result, overflow=rule)
        exact = _sum_value(x, y, decode(total, unit.result))
        env = environment_of(unit.result, overflow=rule)
        step = rounding_step("C added", "sum + C", exact, unit.result, env, terms=(("sum", x), ("C", y)))
        steps.append(replace(step, flags=flags))
    return steps, code


def _chain_steps(unit: FmaChainUnit, a, b, c, words):
    options = {
        "rounding": unit.rounding, "overflow": unit.overflow, "flush_inputs": unit.flush_inputs,
        "flush_results": unit.flush_results,
    }  # fmt: skip
    formats = (*unit.operand, unit.accumulator)
    env = environment_of(
        unit.accumulator, unit.rounding, unit.overflow, flush_results=unit.flush_results
    )  # fmt: skip
    order = unit.k_order or (0,)
    steps, total = [], c or 0
    for k in (first + k for first in range(0, len(a), len(order)) for k in order):
        codes = (a[k], b[k], total) if k < len(a) else (0, 0, total)
        x, y, z = (decode(code, fmt) for code, fmt in zip(codes, formats, strict=True))
        if unit.flush_inputs:
            x, y, z = (flushed(v, code, fmt) for v, code, fmt in zip((x, y, z), codes, formats, strict=True))
        product = product_of(x, y)
        where = {"k": k}
        steps.append(exact_step("exact product", "a * b", product, where=where))
        total, flags = fma(*codes, formats, out_fmt=unit.accumulator, **options)
        exact = _sum_value(product, z, decode(total, unit.accumulator))
        step = rounding_step("sum", "acc + a * b", exact, unit.accumulator, env, where=where, terms=(("acc", z),))
        steps.append(replace(step, flags=flags))  # what no rounding raises too: inf - inf, a signaling NaN
    code, _ = fma_chain_dot(
        a, b, accumulator=unit.accumulator, operand=unit.operand, k_order=unit.k_order, c=c, **options
    )  # fmt: skip
    return steps, code


register(FusedDotUnit, steps=_dot_steps)
register(FmaChainUnit, steps=_chain_steps)
