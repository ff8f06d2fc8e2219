"""What computes a unit: an engine on codes, which is the definition, and where there is one a fast engine on carriers.

An engine's ``run(a, b, c, out, ..., batch, m0, m1, n0, n1, first=(0, 0))`` computes rows m0..m1 and columns n0..n1 of
one product. The arrays may be a part of it: `first` is the row and the column that their first elements have in the
whole, which the random words are numbered by.
"""

from __future__ import annotations

from functools import lru_cache

from softnum.mac.family import family_of
from softnum.mac.products import chunked, mad  # noqa: F401  registers the engines of its units
from softnum.mac.products.custom import steps  # noqa: F401  registers the engines of its units
from softnum.runtime.identity import by_identity

__all__ = ["coded", "counting_of", "definition_of", "fast_of"]


def coded(fmt, unit=None):
    """The format whose codes an engine takes: binary64 for values of a custom format, unless the unit is on codes."""
    return fmt if getattr(unit, "on_codes", False) else fmt.codec.core_format(fmt)


@by_identity
@lru_cache(maxsize=256)
def definition_of(unit):
    """The engine of any unit on 64-bit codes; ``run`` returns a bit for each of `Unit.rounded_to` that lacks a NaN."""
    define = family_of(unit).definition
    if define is None and family_of(unit).whole is not None:
        raise TypeError(
            f"{type(unit).__name__}: its results depend on their places in a matrix product; multiply matrices by "
            "softnum.matmul"
        )
    if define is None:
        raise TypeError(f"{type(unit).__name__} has no definition")
    return define(unit)


@by_identity
@lru_cache(maxsize=256)
def fast_of(unit):
    """The engine on float32 or, if ``wide``, float64 carriers; None outside the domains of the fast paths."""
    speed_up = family_of(unit).fast
    return None if speed_up is None else speed_up(unit)


@by_identity
@lru_cache(maxsize=256)
def counting_of(unit):
    """The engine on carriers that counts roundings: its ``run`` takes ``tallies``; None where the definition counts."""
    count = family_of(unit).counting
    return None if count is None else count(unit)
