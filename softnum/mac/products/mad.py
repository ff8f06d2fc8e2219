"""The engines and the adder of multiply-add units, in formats of softnum's and of the user's."""

from __future__ import annotations

from dataclasses import fields, replace

from softnum.formats.facts import facts
from softnum.formats.modes import overflow_name
from softnum.mac import _gemm
from softnum.mac.family import register
from softnum.mac.mad import ONE, MadUnit
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


def _operands(unit: MadUnit) -> tuple:
    return tuple(f.codec.core_format(f) for f in unit.operand)


def _definition(unit: MadUnit):
    return CustomGemm(unit) if unit.on_codes else _gemm.DefinitionGemm(unit, _operands(unit))


def _fast(unit: MadUnit):
    return None if unit.on_codes else _gemm.fast(unit, _operands(unit), tuple(map(facts, unit.operand)))


register(MadUnit, adder=adder, definition=_definition, fast=_fast)
