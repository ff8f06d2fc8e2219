"""Which engine computes the products of a unit on the device.

An engine has ``run(problem)``, and ``tells``: whether that itself raises ValueError for a result without a code.
"""

from __future__ import annotations

from functools import lru_cache

from softnum.kernels.device.elementwise.conversion import FROM_ARRAY, FROM_KEY
from softnum.kernels.device.products.custom import engine_of as custom_engine
from softnum.kernels.device.products.exact import ExactEngine
from softnum.kernels.device.products.fused import ChainEngine, FusedEngine
from softnum.kernels.device.products.mad.definition import DefinitionEngine
from softnum.kernels.device.products.mad.fast import BlocksEngine, takes
from softnum.kernels.device.products.mad.tables import TableEngine
from softnum.mac.custom import CustomMadUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import family_of, register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.mad import MadUnit
from softnum.runtime.gateway import NoKernel, check_exact_values

__all__ = ["engine_of"]


def _mad_engine(unit: MadUnit, words: int):
    if isinstance(unit.flush_inputs, str):
        raise NoKernel(f"no kernel flushes some of what it reads alone ({unit}); copy the operands to the host")
    if unit.on_codes:
        return TableEngine(unit)
    lfsr = words == FROM_KEY and unit.random_source.kind == "lfsr"  # whose states go from step to step
    return BlocksEngine(unit) if words != FROM_ARRAY and not lfsr and takes(unit) else DefinitionEngine(unit)


register(MadUnit, device=_mad_engine)
register(ExactDotUnit, device=lambda unit, words: ExactEngine(unit))
register(FusedDotUnit, device=lambda unit, words: FusedEngine(unit))
register(FmaChainUnit, device=lambda unit, words: ChainEngine(unit))
register(CustomMadUnit, device=lambda unit, words: custom_engine(unit))


@lru_cache(maxsize=256)
def engine_of(unit, words: int):
    """What computes a unit's products, for words from an array (FROM_ARRAY) or not; NoKernel of a unit without it."""
    check_exact_values("matmul", *getattr(unit, "operand", ()), *unit.rounded_to)
    make = family_of(unit).device
    if make is None:
        raise NoKernel(
            f"matmul: no CUDA kernel computes {type(unit).__name__}s; copy the CUDA arrays to the host first"
        )
    return make(unit, words)
