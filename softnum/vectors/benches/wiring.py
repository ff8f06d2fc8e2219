"""What is connected to what in a bench: ports or parts of them, and the columns and signals that they carry."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from softnum.vectors.benches.handshakes import Handshake
from softnum.vectors.benches.ports import Design
from softnum.vectors.plans.spec import Spec

__all__ = ["FLAG_NAMES", "Channel", "Wire", "Wiring", "wire_named"]

#: single flags, the most significant bit first
FLAG_NAMES = ("invalid", "divide_by_zero", "overflow", "underflow", "inexact")


class Wire(NamedTuple):
    """Bits of a port, from ``high`` down to ``low``."""

    port: str
    high: int
    low: int
    whole: bool = True

    @property
    def width(self) -> int:
        """How many bits."""
        return self.high - self.low + 1

    def __str__(self) -> str:
        part = f"[{self.high}:{self.low}]" if self.width > 1 else f"[{self.low}]"
        return self.port if self.whole else self.port + part


class Channel(NamedTuple):
    """Operands that are taken together: their columns, the design's valid input, and its ready output."""

    columns: tuple[str, ...]
    valid: Wire | None
    ready: Wire | None


@dataclass
class Wiring:
    """A design, the vectors' spec, the handshake, and what each port is for.

    ``wires`` has the role of each used port: clock, reset, enable, columns of the spec (a, b, result ...), single
    flags, valid_in, ready_in, valid_out, ready_out, and valid_a, ready_a ... where operands have their own. ``tied``
    are inputs that keep a value, ``open`` outputs that nobody looks at.
    """

    design: Design
    spec: Spec
    handshake: Handshake
    wires: dict[str, Wire] = field(default_factory=dict)
    reset_low: bool = False
    tied: dict[str, int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    by_order: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        """The columns that are driven: operands, and random bits."""
        return tuple(c.name for c in self.spec.columns if c.name not in ("result", "flags"))

    @property
    def flags(self) -> bool:
        """Whether the design gives flags, all or some."""
        return self.spec.has_flags and any(name in self.wires for name in ("flags", *FLAG_NAMES))

    @property
    def channels(self) -> tuple[Channel, ...]:
        """How operands are taken."""
        own = [name for name in self.operands if f"valid_{name}" in self.wires]
        if not own:
            return (Channel(self.operands, self.wires.get("valid_in"), self.wires.get("ready_in")),)
        return tuple(Channel((n,), self.wires[f"valid_{n}"], self.wires.get(f"ready_{n}")) for n in own)

    def lines(self) -> list[str]:
        """What is connected, for a reader."""
        design = self.design
        lines = [f"{design.top}, ports by {design.reader}: {self.spec.op}, {self.handshake}"]
        for role, wire in self.wires.items():
            note = f", active {'low' if self.reset_low else 'high'}" if role == "reset" else ""
            note = ", by the order of the ports" if self.by_order and role in self.operands else note
            lines.append(f"  {role:<11} {wire}{note}")
        lines += [f"  {value:<#11x} {port}, constant" for port, value in self.tied.items()]
        if self.open:
            lines.append(f"  not looked at: {', '.join(self.open)}")
        return lines


def wire_named(text: str, design: Design, role: str) -> Wire:
    """The bits that ``NAME``, ``NAME[3]`` or ``NAME[7:0]`` means.

    Raises
    ------
    ValueError
        If there is no such port, or it has no such bits.

    Examples
    --------
    >>> from softnum.vectors.benches.ports import stated_design
    >>> wire = wire_named("answer[12:8]", stated_design("mul", "a:in:8,b:in:8,answer:out:13"), "flags")
    >>> wire
    Wire(port='answer', high=12, low=8, whole=False)
    >>> str(wire), wire.width
    ('answer[12:8]', 5)
    """
    found = re.fullmatch(r"([A-Za-z_][\w$]*)(?:\[(\d{1,6})(?::(\d{1,6}))?\])?", text)
    if found is None:
        raise ValueError(f"--port {role}= takes NAME, NAME[BIT] or NAME[HIGH:LOW], got {text!r}")
    ports = {port.name: port for port in design.ports}
    if found[1] not in ports:
        raise ValueError(f"--port {role}: {design.top} has no port {found[1]}; it has {', '.join(ports)}")
    width = ports[found[1]].width
    if found[2] is None:
        return Wire(found[1], width - 1, 0)
    high = int(found[2])
    low = high if found[3] is None else int(found[3])
    if not low <= high < width:
        raise ValueError(f"--port {role}: {text} does not lie in the {width} bits of {found[1]}, [{width - 1}:0]")
    return Wire(found[1], high, low, whole=(low == 0 and high == width - 1))
