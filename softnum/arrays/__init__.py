"""Values and codes: conversions between them, and the arrays that hold codes with their format."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.arrays.packing import pack, unpack
    from softnum.arrays.refusals import FormatLostWarning
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.arrays.packing": ("pack", "unpack"),
            "softnum.arrays.refusals": ("FormatLostWarning",),
        },
    )

__all__ = [
    "FormatLostWarning",
    "pack",
    "unpack",
]
