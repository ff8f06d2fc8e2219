"""What computes a unit: an engine on codes, which is the definition, and where there is one a fast engine on carriers.

An engine's ``run(a, b, c, out, ..., batch, m0, m1, n0, n1, first=(0, 0))`` computes rows m0..m1 and columns n0..n1 of
one product. The arrays may be a part of it: `first` is the row and the column that their first elements have in the
whole, which the random words are numbered by.
"""

from __future__ import annotations

from functools import lru_cache, singledispatch

from softnum.formats.facts import facts, fits
from softnum.formats.names import format
from softnum.mac import _exact, _fused, _gemm
from softnum.mac.custom import CustomMadUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.fused import FmaChainUnit, FusedDotUnit, fused_plan
from softnum.mac.mad import MadUnit
from softnum.mac.plan import integer_plan_of, plan_of
from softnum.mac.products.custom.steps import DefinitionCustom
from softnum.runtime import gateway
from softnum.runtime.identity import by_identity

__all__ = ["coded", "definition_of", "fast_of"]


def coded(fmt, unit=None):
    """The format whose codes an engine takes: binary64 for values of a custom format, unless the unit is on codes."""
    return fmt if getattr(unit, "on_codes", False) else fmt.codec.core_format(fmt)


@singledispatch
def _define(unit):
    raise TypeError(f"{type(unit).__name__} has no definition")


@singledispatch
def _speed_up(unit):
    return None


@by_identity
@lru_cache(maxsize=256)
def definition_of(unit):
    """The engine of any unit on 64-bit codes; ``run`` returns a bit for each of `Unit.rounded_to` that lacks a NaN."""
    return _define(unit)


@by_identity
@lru_cache(maxsize=256)
def fast_of(unit):
    """The engine on float32 or, if ``wide``, float64 carriers; None outside the domains of the fast paths."""
    return _speed_up(unit)


@_define.register
def _(unit: MadUnit):
    if unit.on_codes:
        from softnum.mac.products.custom.codes import CustomGemm

        return CustomGemm(unit)
    operands = tuple(coded(f) for f in unit.operand)
    return _gemm.DefinitionGemm(
        operands, unit.product, unit.accumulator, unit.outer, *unit.environments, unit.chunk or 0, unit.lanes,
        unit.reduction, unit.compensated is not None,
    )  # fmt: skip


@_speed_up.register
def _(unit: MadUnit):
    if unit.on_codes:
        return None
    integers = integer_plan_of(unit)
    if integers is not None:
        return _gemm.IntegerGemm(integers)
    plan = plan_of(unit)
    return None if plan is None else _gemm.FastGemm(plan)


@_define.register
def _(unit: ExactDotUnit):
    operands = tuple(coded(f) for f in unit.operand)
    return _exact.DefinitionExact(operands, unit.accumulator, unit.environment, unit.bottom, unit.words)


@_speed_up.register
def _(unit: ExactDotUnit):
    """On the domain that csrc/products/exact/body.h states."""
    operands = tuple(coded(f) for f in unit.operand)
    formats, acc, env = (*unit.operand, unit.accumulator), unit.accumulator, unit.environment
    a, b, c = map(facts, formats)
    specials = a.specials or b.specials or c.specials
    seen = env[3] + 1 if unit.stochastic else 2
    if (
        not all(fits(f, "float64") for f in formats)
        or a.precision + b.precision > 53
        or (specials and not acc.has_nan)
        or c.precision + seen > 52
        or not _exact.rounds_in_lanes(acc, env)
    ):
        return None
    return _exact.FastExact(
        operands, acc, env, unit.bottom, unit.words, format("binary64"), [(f.precision, f.last) for f in (a, b, c)]
    )


@_define.register
def _(unit: FusedDotUnit):
    return _fused.DefinitionFused(unit)


@_speed_up.register
def _(unit: FusedDotUnit):
    plan = fused_plan(unit)
    return None if plan is None else _fused.FastFused(unit, plan, format("binary32"))


@_define.register
def _(unit: FmaChainUnit):
    return _fused.DefinitionChain(unit)


@_define.register
def _(unit: CustomMadUnit):
    compiled = gateway.custom_engine(unit) if unit.on_codes else None
    return compiled or DefinitionCustom(unit, tuple(coded(f, unit) for f in unit.operand))


@_speed_up.register
def _(unit: CustomMadUnit):
    return None if unit.on_codes else gateway.custom_engine(unit)
