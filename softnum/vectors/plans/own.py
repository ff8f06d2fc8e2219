"""Formats of the user's own in files of vectors: how a header and a command name them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum import reference
from softnum.formats.checks import is_own
from softnum.reference.values import Value

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["decoded", "is_own", "own_name", "remember", "written_as"]

#: format -> how the user wrote it: FILE.py:NAME
_WRITTEN: dict[str, Any] = {}


def own_name(fmt: AnyFormat) -> str:
    """Kind, name and, of up to 16 bits, a checksum of all values: what a header says.

    >>> import softnum as sn
    >>> own_name(sn.CustomFormat.from_table([0, 1, 2, -1], name="steps"))
    'table:steps:1089f391'
    """
    name = "_".join(fmt.name.split()) or "custom"
    if fmt.bits > 16:
        return f"{fmt.kind}:{name}"
    return f"{fmt.kind}:{name}:{zlib.crc32(np.array(fmt.values, '<f8').tobytes()):08x}"


def remember(fmt: AnyFormat, text: str) -> AnyFormat:
    """Keep how a format was written, for the command in a header; the format."""
    if is_own(fmt):
        _WRITTEN[fmt] = text
    return fmt


def written_as(fmt: AnyFormat) -> str:
    """How the user wrote a format, or the name in a header."""
    return _WRITTEN.get(fmt, own_name(fmt))


def decoded(code: int, fmt: AnyFormat) -> Value:
    """The exact value of a code, of formats of the user's own as well, whose values are those of binary64.

    >>> import softnum as sn
    >>> decoded(1, sn.CustomFormat.from_table([0, 0.25])).fraction
    Fraction(1, 4)
    """
    if not is_own(fmt):
        return reference.decode(int(code), fmt)
    number = np.asarray(fmt.decode(np.array(code, fmt.storage_dtype), np.float64), np.float64)
    return reference.decode(int(number.view(np.uint64)), "binary64")
