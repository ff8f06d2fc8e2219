"""How a design takes operands and gives results."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["HANDSHAKES", "Handshake", "handshake_named"]

HANDSHAKES = {
    "combinational": "no clock; the result follows the operands",
    "latency:N": "operands at every rising edge (where a clock enable or a valid input is 1), results N edges later",
    "valid-ready": "operands and results pass at rising edges where valid and ready are 1; either ready may be missing",
    "stb-ack": "the same with a strobe and an acknowledge, for all operands together or for each of them",
}
_LONGEST = 4096


class Handshake(NamedTuple):
    """A handshake by its name, and the latency in clocks where it is fixed."""

    kind: str
    latency: int | None = None

    def __str__(self) -> str:
        return self.kind if self.latency is None else f"{self.kind}:{self.latency}"

    @property
    def flows(self) -> bool:
        """Whether valid signals say when operands and results pass."""
        return self.kind in ("valid-ready", "stb-ack")


def handshake_named(text: str) -> Handshake:
    """The handshake that a text states.

    Raises
    ------
    ValueError
        For another text, or a latency above 4096.

    Examples
    --------
    >>> handshake_named("latency:3")
    Handshake(kind='latency', latency=3)
    """
    found = re.fullmatch(r"latency:(\d{1,9})", text)
    if found is not None:
        if int(found[1]) > _LONGEST:
            raise ValueError(f"a latency lies in 0..{_LONGEST} clocks, got {found[1]}")
        return Handshake("latency", int(found[1]))
    if text not in HANDSHAKES or text == "latency:N":
        raise ValueError(f"unknown handshake {text!r} (known: {', '.join(HANDSHAKES)})")
    return Handshake(text)
