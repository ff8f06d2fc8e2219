"""The steps of fused dot-product units of block formats, for `softnum.inspect.trace`."""

from __future__ import annotations

from softnum.arrays.blocks import BlockArray
from softnum.inspect.steps.blocks import tensor_scales_of
from softnum.inspect.steps.fused import end_steps
from softnum.inspect.steps.step import Step, cut_step, exact_step, rounding_step
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.family import register
from softnum.reference.block_dot import TensorStep
from softnum.reference.block_fused import BlockFusedStep, block_fused_dot

__all__ = []


def _shown(unit: BlockFusedDotUnit, step: BlockFusedStep, index: int) -> list[Step]:
    steps, places = [], []
    for i, term in enumerate(step.terms):
        where = {"group": index, "block": term.ks[0] // unit.block_size}
        for k, product in zip(term.ks, term.products, strict=True):
            steps.append(exact_step("exact product", "a * b", product, where=where | {"k": k}))
        places.append(where | ({"k": term.ks[0]} if unit.group == 1 else {"term": i}))
        if any(x.kind != "finite" for x in term.products):
            continue
        if unit.group > 1:
            steps.append(exact_step("exact sum", "S = sum(a * b)", term.sum, where=places[-1]))
        formula = "a * b * (X * Y)" if unit.group == 1 else "S * (X * Y)"
        scales = tuple(zip("XY", term.scales, strict=True))
        steps.append(exact_step("scaled", formula, term.value, where=places[-1], terms=scales))
    fused = step.fused
    if fused.unit is not None:
        for place, x, n in zip(places, fused.products, fused.aligned, strict=False):
            if x.numerator:
                steps.append(cut_step("aligned", "scaled", x, n * fused.unit, fused.unit, place))
        if fused.c.numerator:
            where = {"group": index}
            steps.append(cut_step("aligned", "acc", fused.c, fused.aligned[-1] * fused.unit, fused.unit, where))
    return steps + end_steps(fused, {"group": index}, unit.truncate_fraction, "acc + sum(scaled)")


def _steps(unit: BlockFusedDotUnit, a: BlockArray, b: BlockArray, c, words):
    seen = []
    code, _ = block_fused_dot(
        a.codes.tolist(), a.scales.tolist(), b.codes.tolist(), b.scales.tolist(), terms=unit.terms,
        fraction_bits=unit.fraction_bits, accumulator=unit.accumulator, operand=unit.operand, group=unit.group,
        min_exponent=unit.min_exponent, output_rounding=unit.output_rounding,
        truncate_fraction=unit.truncate_fraction, overflow=unit.overflow, zero_exponent=unit.zero_exponent,
        tensor_scales=tensor_scales_of(unit, a, b), c=c, observe=seen.append,
    )  # fmt: skip
    steps = []
    for i, step in enumerate(seen):
        if isinstance(step, TensorStep):
            terms = (("acc", step.sum), ("Ta", step.scales[0]), ("Tb", step.scales[1]), ("C", step.start))
            formula = "acc * (Ta * Tb) + C"
            steps.append(
                rounding_step("tensor scales", formula, step.total, unit.accumulator, step.environment, terms=terms)
            )
        else:
            steps += _shown(unit, step, i)
    return steps, code


register(BlockFusedDotUnit, steps=_steps)
