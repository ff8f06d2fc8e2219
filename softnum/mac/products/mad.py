"""The engines and the adder of multiply-add units, in formats of softnum's and of the user's."""

from __future__ import annotations

from dataclasses import fields, replace

from softnum.formats.modes import overflow_name
from softnum.mac import _gemm
from softnum.mac.family import register
from softnum.mac.mad import ONE, MadUnit
from softnum.mac.plan import integer_plan_of, plan_of
from softnum.mac.products.custom.codes import CustomGemm, CustomSum

__all__ = ["adder"]


def adder(unit: MadUnit, fmt) -> MadUnit:
    """The unit whose dot product with ones is the sum of values of fmt."""
    if unit.on_codes:
        options = {field.name: getattr(unit, field.name) for field in fields(unit)}
        return CustomSum(**{**options, "operand": (ONE, fmt), "product": None, "product_rounding": None})
    overflow = unit.overflow
    if overflow is not None and unit.product is not None:
        try:  # a rule that the product's format alone knows goes with it
            overflow_name(overflow, unit.accumulator)
        except ValueError:
            overflow = None
    return replace(unit, operand=(ONE, fmt), product=None, product_rounding=None, overflow=overflow)


def _definition(unit: MadUnit):
    if unit.on_codes:
        return CustomGemm(unit)
    operands = tuple(f.codec.core_format(f) for f in unit.operand)
    return _gemm.DefinitionGemm(
        operands, unit.product, unit.accumulator, unit.outer, *unit.environments, unit.chunk or 0, unit.lanes,
        unit.reduction, unit.compensated is not None,
    )  # fmt: skip


def _fast(unit: MadUnit):
    if unit.on_codes:
        return None
    integers = integer_plan_of(unit)
    if integers is not None:
        return _gemm.IntegerGemm(integers)
    plan = plan_of(unit)
    return None if plan is None else _gemm.FastGemm(plan)


register(MadUnit, adder=adder, definition=_definition, fast=_fast)
