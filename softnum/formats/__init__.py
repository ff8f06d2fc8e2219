"""Formats: float and fixed point, blocks, and the user's own; their names, rounding modes and facts."""

from typing import TYPE_CHECKING

from softnum.formats.modes import P3109_VERSION
from softnum.formats.scalar import FixedFormat, FloatFormat, Format
from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.formats.blocks import block_format_names
    from softnum.formats.layouts import tile_scales, untile_scales
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.formats.blocks": ("block_format_names",),
            "softnum.formats.layouts": ("tile_scales", "untile_scales"),
        },
    )

__all__ = [
    "FixedFormat",
    "FloatFormat",
    "Format",
    "P3109_VERSION",
    "block_format_names",
    "tile_scales",
    "untile_scales",
]
