"""Arguments that must be formats of some kind: what refuses the others, in the caller's words ("{}" is the format)."""

from __future__ import annotations

from softnum.formats.blocks import BlockFormat, is_block_format
from softnum.formats.built_in import BuiltInFormat
from softnum.formats.custom.formats import CustomFormat
from softnum.formats.scalar import FixedFormat, FloatFormat

__all__ = [
    "check_block", "check_exact", "check_fixed", "check_float", "check_narrow", "check_not_custom", "check_not_own",
    "check_scalar", "check_single", "is_own", "is_table",
]  # fmt: skip


def _refuse(fmt, text: str, error=ValueError):
    raise error(text.format(fmt))


def check_float(fmt, text: str) -> None:
    """ValueError unless it is a `FloatFormat`, of codes of up to 64 bits."""
    if not isinstance(fmt, FloatFormat):
        _refuse(fmt, text)
    check_narrow(fmt, text)


def check_exact(fmt, text: str) -> None:
    """ValueError for a format whose values are irrational, as logarithmic numbers are."""
    if not fmt.values_are_exact:
        _refuse(fmt, text)


def check_fixed(fmt, text: str) -> None:
    """ValueError unless it is a `FixedFormat`."""
    if not isinstance(fmt, FixedFormat):
        _refuse(fmt, text)


def check_scalar(fmt, text: str) -> None:
    """ValueError unless it is a float or fixed-point format."""
    if not isinstance(fmt, (FloatFormat, FixedFormat)):
        _refuse(fmt, text)


def check_narrow(fmt, text: str) -> None:
    """ValueError for a format whose codes take two words, which says what it is for."""
    if fmt.leads:
        raise ValueError(text.format(fmt.described))


def check_block(fmt, text: str) -> None:
    """ValueError unless it is a `BlockFormat`."""
    if not isinstance(fmt, BlockFormat):
        _refuse(fmt, text)


def check_not_custom(fmt, text: str) -> None:
    """ValueError for a `CustomFormat`."""
    if isinstance(fmt, CustomFormat):
        _refuse(fmt, text)


def is_own(fmt: object) -> bool:
    """Whether a format is a `CustomFormat` of the user's own, which posits, takums and logarithmic numbers are not."""
    return isinstance(fmt, CustomFormat) and not isinstance(fmt, BuiltInFormat)


def is_table(fmt) -> bool:
    """Whether a format is a table of values of the user's own (`CustomFormat.from_table`)."""
    return is_own(fmt) and fmt.kind == "table"


def check_not_own(fmt, text: str) -> None:
    """ValueError for a `CustomFormat` of the user's own."""
    if is_own(fmt):
        _refuse(fmt, text)


def check_single(fmt, text: str) -> None:
    """TypeError for a block format, or a name that only one can have."""
    if is_block_format(fmt):
        _refuse(fmt, text, TypeError)
