"""Units: how products are summed, by which order, format and rounding, and presets of real ones."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.mac.grouped import ime_unit
    from softnum.mac.statistics import RoundingStats
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.mac.grouped": ("ime_unit",),
            "softnum.mac.statistics": ("RoundingStats",),
        },
        ("products",),
    )

__all__ = [
    "RoundingStats",
    "ime_unit",
]
