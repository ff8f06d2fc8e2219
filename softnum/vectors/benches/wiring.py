"""What is connected to what in a bench: ports or parts of them, and the columns and signals that they carry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from softnum.vectors.benches.handshakes import Handshake
from softnum.vectors.benches.opcodes import Opcode
from softnum.vectors.benches.ports import Design
from softnum.vectors.plans.spec import Spec
from softnum.vectors.wires import Wire

__all__ = ["FLAG_NAMES", "Channel", "Wiring"]

#: single flags, the most significant bit first
FLAG_NAMES = ("invalid", "divide_by_zero", "overflow", "underflow", "inexact")


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
    are inputs that keep a value, ``opcodes`` the values of inputs that depend on what a line is of, ``open`` outputs
    that nobody looks at.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> design = stated_design("mul", "a:in:8,b:in:8,y:out:8")
    >>> wires = {name: Wire(name, 7, 0) for name in "ab"} | {"result": Wire("y", 7, 0)}
    >>> wiring = Wiring(design, VectorSpec.make("multiply", "e4m3fn"), handshake_named("combinational"), wires)
    >>> wiring.operands, wiring.flags
    (('a', 'b'), False)
    """

    design: Design
    spec: Spec
    handshake: Handshake
    wires: dict[str, Wire] = field(default_factory=dict)
    reset_low: bool = False
    tied: dict[str, int] = field(default_factory=dict)
    opcodes: tuple[Opcode, ...] = ()
    open: list[str] = field(default_factory=list)
    by_order: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        """The columns that are driven: operands, and random bits; of mixed vectors what they are of, too."""
        return tuple(c.name for c in self.spec.columns if c.name not in ("result", "flags"))

    @property
    def encoded(self) -> tuple[str, ...]:
        """The inputs whose values opcodes say, in the design's order."""
        said = {port for opcode in self.opcodes for port in opcode.values}
        return tuple(port.name for port in self.design.ports if port.name in said)

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
        lines += [f"  {value:<#11x} {port}, constant" for port, value in self.tied.items() if port not in self.encoded]
        for port in self.encoded:
            by = dict.fromkeys(opcode.column for opcode in self.opcodes if port in opcode.values)
            lines.append(f"  {'(encoded)':<11} {port}, by {', '.join(by)}")
        if self.open:
            lines.append(f"  not looked at: {', '.join(self.open)}")
        return lines
