"""The engines and the adder of multiply-add units, in formats of softnum's and of the user's."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.formats.facts import facts, fits
from softnum.formats.scalar import FloatFormat
from softnum.mac import _gemm
from softnum.mac.family import register
from softnum.mac.mad import ONE, MadUnit
from softnum.mac.products.custom.codes import CustomGemm, CustomSum

__all__ = ["adder", "narrowed"]

# sums of products within these, of fewer than 2**32, stay far inside a format of 10 exponent bits: a rounding to
# _PRECISION bits or more adds 2**-36 of a sum at the most, and rounds multiples of 2**_LAST to such
_LAST, _TOP, _PRECISION = -400, 400, 36


def adder(unit: MadUnit, fmt) -> MadUnit:
    """The unit whose dot product with ones is the sum of values of fmt."""
    if unit.on_codes:
        options = {field.name: getattr(unit, field.name) for field in fields(unit)}
        return CustomSum(**{**options, "operand": (ONE, fmt), "product": None, "product_rounding": None})
    overflow = unit.overflow
    if unit.product is not None:  # a rule that the product's format alone knows goes with it
        outer = unit.outer_accumulator or unit.accumulator
        overflow = overflow if any(overflow in f.overflow_rules for f in (unit.accumulator, outer)) else None
    return replace(unit, operand=(ONE, fmt), product=None, product_rounding=None, overflow=overflow)


def _operands(unit: MadUnit) -> tuple:
    return tuple(f.codec.core_format(f) for f in unit.operand)


class _Positive:
    """The engine of a unit that reads small operands and C as +0: another engine's, on codes without them."""

    def __init__(self, unit: MadUnit) -> None:
        self.unit, self.engine = unit, _gemm.DefinitionGemm(unit, _operands(unit))

    def _read(self, *codes) -> list:
        formats = (*_operands(self.unit), self.unit.outer)
        return [None if x is None else _without_small(x, f) for x, f in zip(codes, formats, strict=True)]

    def run(self, a, b, c, *rest, **options) -> int:
        """As every engine's."""
        return self.engine.run(*self._read(a, b, c), *rest, **options)

    def run_each(self, a, b, c, out, words) -> int:
        """Many short sums, a row of a and b for each."""
        return self.engine.run_each(*self._read(a, b, c), out, words)


def _without_small(codes: np.ndarray, fmt) -> np.ndarray:
    """64-bit codes, zeros and subnormals replaced by +0, code 0."""
    return np.where(fmt.is_zero(codes) | fmt.is_subnormal(codes), np.uint64(0), codes)


@lru_cache(maxsize=256)
def narrowed(unit) -> MadUnit | None:
    """A unit of the same sums from +0 whose formats binary64 holds, for one that has wider exponents alone; else None.

    The formats that it exchanges have infinities, NaN, subnormals and both zeros, and no sum of the operands' products
    comes near the ends of either's range.
    """
    if type(unit) is not MadUnit or unit.on_codes or unit.stochastic or unit.flushes:
        return None
    product = facts(unit.operand[0]) * facts(unit.operand[1])
    if product.last < _LAST or product.top > _TOP or unit.overflow not in (None, "infinity"):
        return None
    names = [name for name in ("product", "accumulator", "outer_accumulator") if getattr(unit, name) is not None]
    wide = {name: getattr(unit, name) for name in names if not fits(getattr(unit, name), np.float64)}
    if any(facts(f).top > _TOP and f.precision < _PRECISION for f in (unit.product, unit.accumulator, unit.outer) if f):
        return None
    narrow = {name: _narrower(fmt) for name, fmt in wide.items()}
    return replace(unit, **narrow) if narrow and None not in narrow.values() else None


@of_format
def _narrower(fmt) -> FloatFormat | None:
    """A format like IEEE's of as many fraction bits and 10 of exponent, of such a one that has more."""
    if fmt != FloatFormat(fmt.exponent_bits, fmt.mantissa_bits) or fmt.exponent_bits < 11:
        return None
    return FloatFormat(10, fmt.mantissa_bits) if _PRECISION <= fmt.precision <= 51 else None


@_narrower.fixed
@_narrower.custom
@_narrower.block
@_narrower.wide
def _none(fmt) -> None:
    return None


def _definition(unit: MadUnit):
    if unit.on_codes:
        return CustomGemm(unit)
    return _Positive(unit) if unit.flush_inputs == "positive" else _gemm.DefinitionGemm(unit, _operands(unit))


def _fast(unit: MadUnit, counting: bool = False):
    return None if unit.on_codes else _gemm.fast(unit, _operands(unit), tuple(map(facts, unit.operand)), counting)


register(MadUnit, adder=adder, definition=_definition, fast=_fast, counting=lambda unit: _fast(unit, counting=True))
