"""Which ports of a design are the operands, the result and the flags; what its other inputs are held at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softnum.vectors.formal.netlist import Design
from softnum.vectors.plans.spec import FLAG_BITS, VectorSpec
from softnum.vectors.wires import Wire, wire_named

__all__ = ["Wiring", "wire"]

_NAMES = {
    "a": ("a", "x", "op_a", "operand_a", "in_a", "input_a", "a_i", "i_a", "src_a", "in1", "rs1", "in", "i", "operand"),
    "b": ("b", "y", "op_b", "operand_b", "in_b", "input_b", "b_i", "i_b", "src_b", "in2", "rs2"),
    "c": ("c", "z", "op_c", "operand_c", "in_c", "input_c", "c_i", "i_c", "src_c", "in3", "rs3"),
    "scale_a": ("scale_a", "a_scale", "scale_a_i", "sa", "scale_x", "x_scale"),
    "scale_b": ("scale_b", "b_scale", "scale_b_i", "sb", "scale_y", "y_scale"),
    "random": ("random", "rand", "rnd", "random_bits", "random_i", "r", "lfsr", "rng"),
    "result": ("result", "result_o", "out", "y", "z", "o", "q", "r", "res", "sum", "product", "quotient", "output_z",
               "out_data", "data_out", "p", "s", "d"),
    "flags": ("flags", "flags_o", "fflags", "status", "status_o", "exceptions", "exception_flags"),
}  # fmt: skip
ANY = "any"


@dataclass(frozen=True)
class Wiring:
    """What each port is.

    Parameters
    ----------
    operands : dict of str to Wire
        By the name of the vectors' column. One that is an output is the register behind it, before the first edge.
    result : Wire
    flags : Wire or None
        None: they are not compared.
    ties : dict of str to int or None
        What inputs are held at; None, at anything.
    """

    operands: dict[str, Wire]
    result: Wire
    flags: Wire | None
    ties: dict[str, int | None]


def _named(design: Design, text: str, column: str) -> Wire:
    return wire_named(text, {name: port.width for name, port in design.ports.items()}, column, design.top)


def _listed(design: Design) -> str:
    return ", ".join(f"{p.direction} {name}[{p.width}]" for name, p in design.ports.items())


def wire(
    design: Design,
    spec: VectorSpec,
    ports: Mapping[str, str] | None = None,
    ties: Mapping[str, int | str] | None = None,
    *,
    controls: tuple[str, ...] = (),
    flags: bool = True,
) -> Wiring:
    """Find the ports of an operation's columns.

    Parameters
    ----------
    design : Design
    spec : VectorSpec
    ports : mapping of str to str, optional
        Column (a, b, c, result, flags) to port, or bits of one: ``{"a": "word[7:0]"}``. Others are found by the names
        that such ports usually have, or as the one port of the width that is left.
    ties : mapping of str to int or "any", optional
        What other inputs are held at.
    controls : tuple of str
        Inputs that something else decides (a reset).
    flags : bool
        Whether flags are looked for.

    Returns
    -------
    Wiring

    Raises
    ------
    ValueError
        If a port is missing, has another width or is of no use; or an input is neither.

    Examples
    --------
    >>> from softnum.vectors.formal.aig import Aig
    >>> from softnum.vectors.formal.netlist import Port
    >>> ports = {"word": Port("input", 16), "y": Port("output", 8)}
    >>> design = Design("adder", ports, Aig(), [], {}, [], None)
    >>> wiring = wire(design, VectorSpec.make("add", "e4m3fn"), {"a": "word[7:0]", "b": "word[15:8]"})
    >>> {name: str(part) for name, part in wiring.operands.items()}, str(wiring.result), wiring.flags
    ({'a': 'word[7:0]', 'b': 'word[15:8]'}, 'y', None)
    """
    given = dict(ports or {})
    columns = {c.name: c.width for c in spec.input_columns}
    known = (*columns, "result", "flags")
    if unknown := [name for name in given if name not in known]:
        raise ValueError(f"--port {unknown[0]}={given[unknown[0]]}: the columns of {spec.op} are {', '.join(known)}")
    ties = _ties(design, ties or {})
    taken = {name for name in (*ties, *controls, design.clock) if name is not None}
    taken |= {part.port for name, text in given.items() if (part := _named(design, text, name)) and (
        name not in columns or design.ports[part.port].direction == "input")}  # fmt: skip
    operands = {}
    for name, width in columns.items():
        operands[name] = _column(design, name, width, "input", given, taken)
    result = _column(design, "result", spec.out_fmt.bits, "output", given, taken)
    flag_bits = None
    if flags and ("flags" in given or any(
        p.direction == "output" and p.width == FLAG_BITS and name.lower() in _NAMES["flags"] and name not in taken
        for name, p in design.ports.items()
    )):  # fmt: skip
        flag_bits = _column(design, "flags", FLAG_BITS, "output", given, taken)
    _check_overlap(operands)
    used = {s.port for s in operands.values()} | {*ties, *controls, design.clock}
    loose = [f"{n}[{p.width}]" for n, p in design.ports.items() if p.direction == "input" and n not in used]
    if loose:
        raise ValueError(
            f"{design.top}: inputs {', '.join(loose)} are no operands: hold each at a value with --tie NAME=VALUE, or "
            "--tie NAME=any to prove it for all"
        )
    return Wiring(operands, result, flag_bits, ties)


def _column(design: Design, name: str, width: int, direction: str, given: dict[str, Any], taken: set[str]) -> Wire:
    if name in given:
        found = _named(design, given[name], name)
        wanted = design.ports[found.port].direction
        if wanted != direction and not (direction == "input" and wanted == "output"):
            raise ValueError(f"--port {name}={given[name]}: it is an {wanted}; {name} is an {direction}")
        if found.width != width:
            raise ValueError(f"--port {name}={given[name]} has {found.width} bits; {name} has {width}")
        return found
    free = {n: p for n, p in design.ports.items() if p.direction == direction and n not in taken}
    for usual in _NAMES[name]:
        for port, facts in free.items():
            if port.lower() == usual and facts.width == width:
                taken.add(port)
                return Wire(port, width - 1, 0)
    fitting = [port for port, facts in free.items() if facts.width == width]
    if len(fitting) == 1:
        taken.add(fitting[0])
        return Wire(fitting[0], width - 1, 0)
    raise ValueError(
        f"{design.top}: which {direction} of {width} bits is {name}? It has {_listed(design)}; state --port {name}=NAME"
    )


def _check_overlap(operands: dict[str, Wire]) -> None:
    seen: dict[tuple[str, int], str] = {}
    for name, part in operands.items():
        for bit in range(part.low, part.high + 1):
            other = seen.setdefault((part.port, bit), name)
            if other != name:
                raise ValueError(f"--port {name}={part}: bit {bit} is {other} already")


def _ties(design: Design, ties: Mapping[str, int | str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name, value in ties.items():
        port = design.ports.get(name)
        if port is None or port.direction != "input":
            raise ValueError(f"--tie {name}={value}: {design.top} has no such input; it has {_listed(design)}")
        if value != ANY and (not isinstance(value, int) or not 0 <= value < 1 << port.width):
            raise ValueError(f"--tie {name}={value}: {name} has {port.width} bits; a number from 0 up, or any")
        found[name] = None if value == ANY else value
    return found
