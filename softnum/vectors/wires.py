"""Ports of a design, or bits of them, as users name them: NAME, NAME[3] or NAME[7:0]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Wire", "wire_named"]


class Wire(NamedTuple):
    """Bits of a port, from ``high`` down to ``low``; ``whole``: all that it has.

    Examples
    --------
    >>> wire = Wire("word", 7, 4, whole=False)
    >>> str(wire), wire.width, list(range(8))[wire.bits]
    ('word[7:4]', 4, [4, 5, 6, 7])
    """

    port: str
    high: int
    low: int
    whole: bool = True

    @property
    def width(self) -> int:
        """How many bits."""
        return self.high - self.low + 1

    @property
    def bits(self) -> slice:
        """Where they are among the port's, the lowest first."""
        return slice(self.low, self.high + 1)

    def __str__(self) -> str:
        part = f"[{self.high}:{self.low}]" if self.width > 1 else f"[{self.low}]"
        return self.port if self.whole else self.port + part


def wire_named(text: str, widths: Mapping[str, int], role: str, top: str) -> Wire:
    """The bits that a text means.

    Parameters
    ----------
    text : str
    widths : mapping of str to int
        Of the design's ports, by name.
    role, top : str
        What the bits are for, and the design's name, for errors.

    Raises
    ------
    ValueError
        If it is of another form, there is no such port, or it has no such bits.

    Examples
    --------
    >>> wire_named("answer[12:8]", {"a": 8, "b": 8, "answer": 13}, "flags", "mul")
    Wire(port='answer', high=12, low=8, whole=False)
    """
    found = re.fullmatch(r"([^\[\]]+)(?:\[(\d{1,6})(?::(\d{1,6}))?\])?", text, re.ASCII)
    if found is None:
        raise ValueError(f"--port {role}={text}: state NAME, NAME[BIT] or NAME[HIGH:LOW]")
    if found[1] not in widths:
        ports = ", ".join(f"{name}[{width - 1}:0]" if width > 1 else name for name, width in widths.items())
        raise ValueError(f"--port {role}={text}: {top} has no such port; it has {ports}")
    width = widths[found[1]]
    high = width - 1 if found[2] is None else int(found[2])
    low = 0 if found[2] is None else int(found[3] or found[2])
    if not low <= high < width:
        raise ValueError(f"--port {role}={text}: {found[1]} has bits 0 to {width - 1}")
    return Wire(found[1], high, low, whole=low == 0 and high == width - 1)
