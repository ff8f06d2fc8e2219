"""Collectives as arithmetic: what all-reduce, reduce-scatter, all-gather and all-to-all of many ranks compute."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.collectives.collective import Collective
    from softnum.collectives.split import split_matmul
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.collectives.collective": ("Collective",),
            "softnum.collectives.split": ("split_matmul",),
        },
    )

__all__ = [
    "Collective",
    "split_matmul",
]
