"""Which engine computes the products of a unit on the device."""

from __future__ import annotations

from functools import lru_cache, singledispatch

from softnum.kernels.device.elementwise.conversion import FROM_ARRAY
from softnum.kernels.device.products.custom import engine_of as custom_engine
from softnum.kernels.device.products.exact import ExactEngine
from softnum.kernels.device.products.fused import ChainEngine, FusedEngine
from softnum.kernels.device.products.mad.definition import DefinitionEngine
from softnum.kernels.device.products.mad.fast import BlocksEngine, takes
from softnum.kernels.device.products.mad.tables import TableEngine
from softnum.mac.custom import CustomMadUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.mad import MadUnit

__all__ = ["engine_of", "find_engine"]


@singledispatch
def find_engine(unit, words: int):
    """The engine of a unit, for words from an array (FROM_ARRAY) or not; kernels register theirs by type of unit.

    An engine has ``run(problem)``, and ``tells``: whether that itself raises ValueError for a result without a code.
    Raises TypeError for a unit without one.
    """
    raise TypeError(f"matmul: no CUDA kernel computes {type(unit).__name__}s; copy the CUDA arrays to the host first")


@find_engine.register
def _(unit: MadUnit, words: int):
    if unit.on_codes:
        return TableEngine(unit)
    return BlocksEngine(unit) if words != FROM_ARRAY and takes(unit) else DefinitionEngine(unit)


@find_engine.register
def _(unit: ExactDotUnit, words: int):
    return ExactEngine(unit)


@find_engine.register
def _(unit: FusedDotUnit, words: int):
    return FusedEngine(unit)


@find_engine.register
def _(unit: FmaChainUnit, words: int):
    return ChainEngine(unit)


@find_engine.register
def _(unit: CustomMadUnit, words: int):
    return custom_engine(unit)


@lru_cache(maxsize=256)
def engine_of(unit, words: int):
    """The engine that computes a unit's products (`find_engine`)."""
    return find_engine(unit, words)
