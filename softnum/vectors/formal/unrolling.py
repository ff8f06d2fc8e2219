"""A design with its operands in one clock cycle and its result some cycles later, as one graph without registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softnum.vectors.formal.aig import Aig
from softnum.vectors.formal.netlist import Design
from softnum.vectors.formal.ports import Wiring
from softnum.vectors.wires import Wire

__all__ = ["Reset", "Unrolled", "unroll"]


@dataclass(frozen=True)
class Reset:
    """An input that is ``active`` for so many cycles before the operands come, and not after."""

    port: str
    active: int = 1
    cycles: int = 1


@dataclass(frozen=True)
class Unrolled:
    """A design's answer as gates.

    ``graph`` has the operands' bits as its first inputs (``operand_bits`` of them, column by column, the lowest first);
    the others are what the answer must not depend on: what registers held before, other cycles' inputs, undefined
    values.
    """

    graph: Aig
    operand_bits: int
    result: list[int]
    flags: list[int] | None

    @property
    def roots(self) -> list[int]:
        """The literals of the result and the flags."""
        return [*self.result, *(self.flags or ())]

    @property
    def others(self) -> list[int]:
        """The places of other inputs than operands' that the answer has a path from."""
        return [i for i in self.graph.support(self.roots) if i >= self.operand_bits]


def unroll(
    design: Design,
    wiring: Wiring,
    latency: int = 0,
    *,
    reset: Reset | None = None,
    hold: bool = False,
    pulse: tuple[str, ...] = (),
) -> Unrolled:
    """Copy the design for each cycle from its reset to its answer.

    Parameters
    ----------
    design : Design
    wiring : Wiring
    latency : int
        Edges of the clock between the operands and the answer.
    reset : Reset, optional
        Without one, registers hold anything when the operands come.
    hold : bool
        Whether the operands stay as they are until the answer; else inputs of later cycles are anything.
    pulse : tuple of str
        Inputs that are 1 in the operands' cycle and 0 in the others.

    Returns
    -------
    Unrolled

    Raises
    ------
    ValueError
        If a latency is stated for a design without registers, or an operand is an output that is no register.

    Examples
    --------
    A register, then an inverter: the answer is the operand's inverse after one edge, and without one the register's.

    >>> from softnum.vectors.formal.netlist import Port
    >>> graph = Aig()
    >>> clk, a, q = (graph.input(name) for name in ("clk[0]", "a[0]", "q[0]"))
    >>> ports = {"clk": Port("input", 1), "a": Port("input", 1), "y": Port("output", 1)}
    >>> sources = [("port", "clk", 0), ("port", "a", 0), ("register", "q", 0)]
    >>> design = Design("late", ports, graph, sources, {"y": [q ^ 1]}, [a], "clk")
    >>> wiring = Wiring({"a": Wire("a", 0, 0)}, Wire("y", 0, 0), None, {})
    >>> for latency in (1, 0):
    ...     found = unroll(design, wiring, latency)
    ...     print(found.result, [found.graph.inputs[i] for i in found.others])
    [3] []
    [5] ['q[0] before']
    """
    if latency and design.clock is None:
        raise ValueError(f"{design.top} has no registers, so its latency is 0; leave --latency out")
    graph = Aig()
    operands = {
        name: [graph.input(f"{name}[{i}]") for i in range(part.width)] for name, part in wiring.operands.items()
    }
    state = [graph.input(f"{name}[{bit}] before") for kind, name, bit in design.sources if kind == "register"]
    before = reset.cycles if reset is not None else 0
    outputs: dict[str, list[int]] = {}
    for cycle in range(-before, latency + 1):
        if cycle == 0:
            state = _bound(design, wiring, operands, state)
        inputs, registers = [], iter(state)
        for kind, name, bit in design.sources:
            if kind == "register":
                inputs.append(next(registers))
                continue
            literal = None
            if kind == "port":
                literal = _held(wiring, operands, name, bit, cycle == 0 or (hold and cycle > 0))
                if name in pulse:
                    literal = int(cycle == 0)
                if reset is not None and name == reset.port:
                    literal = reset.active if cycle < 0 else 1 - reset.active
            inputs.append(graph.input(f"{name}[{bit}] in cycle {cycle}") if literal is None else literal)
        wanted = [*design.after, *(bit for bits in design.outputs.values() for bit in bits)]
        found = design.graph.copy_into(graph, inputs, wanted)
        state, rest = found[: len(state)], iter(found[len(state) :])
        outputs = {name: [next(rest) for _ in bits] for name, bits in design.outputs.items()}
    result = outputs[wiring.result.port][wiring.result.bits]
    flags = None if wiring.flags is None else outputs[wiring.flags.port][wiring.flags.bits]
    return Unrolled(graph, sum(part.width for part in wiring.operands.values()), result, flags)


def _held(wiring: Wiring, operands: dict[str, Any], name: str, bit: int, now: bool) -> int | None:
    """The literal of an input's bit; None where it is anything."""
    if (value := wiring.ties.get(name)) is not None:
        return value >> bit & 1
    if now:
        for column, part in wiring.operands.items():
            if part.port == name and part.low <= bit <= part.high:
                return operands[column][bit - part.low]
    return None


def _bound(design: Design, wiring: Wiring, operands: dict[str, Any], state: list[int]) -> list[int]:
    """The registers' contents, an operand that is an output being that of the register behind it."""
    places = [i for i, (kind, _, _) in enumerate(design.sources) if kind == "register"]
    order = {2 * design.graph.input_nodes[place]: i for i, place in enumerate(places)}
    for column, part in wiring.operands.items():
        if design.ports[part.port].direction != "output":
            continue
        for i, literal in enumerate(_bits(design, part)):
            if literal not in order:
                raise ValueError(f"--port {column}={part}: bit {part.low + i} of this output is no register's")
            state = [*state]
            state[order[literal]] = operands[column][i]
    return state


def _bits(design: Design, part: Wire) -> list[int]:
    return design.outputs[part.port][part.bits]
