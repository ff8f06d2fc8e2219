"""Functions of formats with a version for a kind of them: what upper packages answer, and formats cannot themselves."""

from __future__ import annotations

from functools import singledispatch

from softnum.formats.blocks import BlockFormat
from softnum.formats.custom.formats import CustomFormat
from softnum.formats.scalar import FixedFormat
from softnum.formats.wide import Wide

__all__ = ["of_format"]


def of_format(function):
    """A function whose first argument is a format: ``@function.fixed``, ``.custom``, ``.block`` and ``.wide``
    (of codes of two words) give it versions.

    >>> import softnum as sn
    >>> @of_format
    ... def lowest(fmt):
    ...     return -fmt.max
    >>> @lowest.fixed
    ... def _(fmt):
    ...     return fmt.min
    >>> lowest(sn.format("e5m2")), lowest(sn.format("q4.4"))
    (-57344.0, -8.0)
    """
    made = singledispatch(function)
    kinds = (FixedFormat, CustomFormat, BlockFormat, Wide)
    made.fixed, made.custom, made.block, made.wide = map(made.register, kinds)
    return made
