"""The steps of dot products of block formats, for `softnum.inspect.trace`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from softnum.arrays.blocks import BlockArray
from softnum.inspect.steps.step import exact_step, rounding_step, steps_of
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.family import register
from softnum.mac.products.engines import coded
from softnum.reference.block_dot import BlockStep, block_dot
from softnum.reference.exact import exact_terms
from softnum.reference.values import decode

__all__ = ["block_vectors", "tensor_scales_of"]


def block_vectors(unit, a, b) -> list[BlockArray]:
    """The operands of a trace, checked."""
    kind = type(unit).__name__
    for x, fmt, what in ((a, unit.operand[0], "a"), (b, unit.operand[1], "b")):
        if not isinstance(x, BlockArray):
            raise TypeError(f"trace: {what} must be a BlockArray under a {kind}: softnum.array(x, {str(fmt)!r})")
        if x.format != fmt:
            raise ValueError(f"trace: {what} is a BlockArray of {x.format}, but the unit's operand is {fmt}")
        if x.ndim != 1:
            raise ValueError(f"trace takes two vectors, got {what} of shape {x.shape}; give one row and one column")
    return [a, b]


def tensor_scales_of(unit, a: BlockArray, b: BlockArray) -> tuple[Fraction, Fraction] | None:
    """The scales of both arrays; None of formats that have none."""
    if not unit.tensor_scales:
        return None
    return tuple(Fraction(1) if x.tensor_scale is None else Fraction(float(x.tensor_scale)) for x in (a, b))


def _shown(step: BlockStep, accumulator) -> list:
    if step.block is None:
        terms = (("acc", step.sum), ("Ta", step.scales[0]), ("Tb", step.scales[1]), ("C", step.start))
        formula = "acc * (Ta * Tb) + C"
        return [rounding_step("tensor scales", formula, step.total, accumulator, step.environment, terms=terms)]
    where = {"block": step.block}
    terms = (("S", step.sum), ("X", step.scales[0]), ("Y", step.scales[1]))
    steps = [exact_step("scaled sum", "S * (X * Y)", step.exact, where=where, terms=terms)]
    if step.product is not None:
        fmt, env, _ = step.product
        steps = [rounding_step("scaled sum", "S * (X * Y)", step.exact, fmt, env, where=where, terms=terms)]
    terms = (("acc", step.start),)
    steps.append(
        rounding_step("sum", "acc + scaled sum", step.total, accumulator, step.environment, where=where, terms=terms)
    )
    return steps


def _steps(unit: BlockDotUnit, a: BlockArray, b: BlockArray, c, words):
    inner, seen, blocks = unit.inner, [], []
    formats = tuple(coded(f.element) for f in unit.operand)

    def inner_sum(x, y, numbers) -> int:
        if inner.stochastic:
            bits = inner.stochastic_bits, inner.two_roundings
            steps, code = steps_of(inner, x, y, None, lambda step: words(numbers[step], *bits))
        else:
            steps, code = steps_of(inner, x, y, None, None)
        blocks.append(steps)
        return code

    code, _ = block_dot(
        a.codes.tolist(), a.scales.tolist(), b.codes.tolist(), b.scales.tolist(), operand=unit.operand,
        accumulator=unit.accumulator, inner=None if inner is None else inner_sum,
        inner_format=None if inner is None else inner.result,
        inner_steps=lambda length: inner.steps(length) if inner is not None and inner.stochastic else 0,
        product=unit.product, rounding=unit.rounding, product_rounding=unit.product_rounding, overflow=unit.overflow,
        stochastic_bits=unit.stochastic_bits, tensor_scales=tensor_scales_of(unit, a, b), c=c, words=words,
        observe=seen.append,
    )  # fmt: skip
    steps = []
    for step in seen:
        if step.block is not None and inner is None:
            ks = list(step.ks)
            x, y = ([int(v.codes[k]) for k in ks] for v in (a, b))
            products, _ = exact_terms(x, y, formats, unit.accumulator, None, "nearest_even")
            for k, p, q, product in zip(ks, x, y, products[1:], strict=True):
                terms = (("a", decode(p, formats[0])), ("b", decode(q, formats[1])))
                where = {"block": step.block, "k": k}
                steps.append(exact_step("exact product", "a * b", product, where=where, terms=terms))
            steps.append(exact_step("exact sum", "S = sum(a * b)", step.sum, where={"block": step.block}))
        elif step.block is not None:
            for own in blocks[step.block]:
                where = {"block": step.block, **own.where}
                if "k" in where:
                    where["k"] += step.ks[0]
                steps.append(replace(own, where=where))
        steps += _shown(step, unit.accumulator)
    return steps, code


register(BlockDotUnit, steps=_steps)
