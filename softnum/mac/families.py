"""All families of units that have a name, in the order in which errors and design files list them."""

from __future__ import annotations

from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.custom import CustomMadUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import Family, register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["FAMILIES"]

FAMILIES: dict[type, Family] = {
    units: register(units)
    for units in (
        MadUnit, FusedDotUnit, FmaChainUnit, TwoStageDotUnit, GroupedDotUnit, ExactDotUnit, BlockDotUnit,
        ChunkedDotUnit, CustomMadUnit, BlockFusedDotUnit,
    )
}  # fmt: skip
