"""Designs in Verilog as gates: Yosys reads them, and what it leaves of them becomes an `Aig`.

Yosys (https://yosyshq.net/yosys) elaborates and flattens the design and maps words to gates; nothing is optimised that
could make use of an undefined value, and each undefined value becomes an input of its own, so that what is proved holds
whatever it is. Registers are in one clock domain.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softnum.runtime.yosys import DesignFiles, complaints, plain_name
from softnum.vectors.formal.aig import Aig
from softnum.vectors.formal.gates import GATES, Registers, kind_of_cell, ordered

__all__ = ["Design", "Port", "read_design"]

_GATES = (
    "proc", "flatten", "opt_muxtree", "opt_clean", "memory_collect", "memory_map",
    "async2sync t:$adff t:$adffe t:$aldff t:$aldffe t:$dffsr t:$dffsre %u %u %u %u %u",
    "dffunmap", "simplemap", "techmap", "simplemap", "write_json design.json",
)  # fmt: skip


@dataclass(frozen=True)
class Port:
    """A port of a module: its direction ("input", "output" or "inout") and its width."""

    direction: str
    width: int


@dataclass(frozen=True)
class Design:
    """A module as gates, for one clock cycle.

    Parameters
    ----------
    top : str
        Its name.
    ports : dict of str to Port
        In the order of their declaration.
    graph : Aig
        Whose inputs are bits of input ports (``("port", name, bit)`` in ``sources``), of registers (``("register",
        name, bit)``) and undefined values (``("undefined", where, 0)``).
    sources : list of tuple
    outputs : dict of str to list of int
        The literals of the output ports, the lowest bit first.
    after : list of int
        What each register of ``sources`` holds after the clock's edge, in their order.
    clock : str or None

    Examples
    --------
    A bit that turns with each edge of the clock unless it is held:

    >>> graph = Aig()
    >>> clk, hold, q = (graph.input(name) for name in ("clk[0]", "hold[0]", "q[0]"))
    >>> ports = {"clk": Port("input", 1), "hold": Port("input", 1), "q": Port("output", 1)}
    >>> sources = [("port", "clk", 0), ("port", "hold", 0), ("register", "q", 0)]
    >>> design = Design("turn", ports, graph, sources, {"q": [q]}, [graph.xor(q, hold ^ 1)], "clk")
    >>> design.registers, [graph.inputs[i] for i in graph.support(design.after)]
    (1, ['hold[0]', 'q[0]'])
    """

    top: str
    ports: dict[str, Port]
    graph: Aig
    sources: list[tuple[str, str, int]]
    outputs: dict[str, list[int]]
    after: list[int]
    clock: str | None

    @property
    def registers(self) -> int:
        """How many bits of state there are."""
        return len(self.after)


def read_design(
    sources: Iterable[Any],
    *,
    top: str | None = None,
    parameters: Mapping[str, int] | None = None,
    include: Iterable[Any] = (),
    yosys: str = "yosys",
    timeout: float | None = None,
) -> Design:
    """Read a design in Verilog.

    Parameters
    ----------
    sources : iterable of path-like
        Verilog; of SystemVerilog what Yosys reads, in files that end in .sv.
    top : str, optional
        The module. Default: the one that no other has in it.
    parameters : mapping of str to int, optional
        Values of the module's parameters; they need `top`.
    include : iterable of path-like
        Folders of files that the sources include.
    yosys : str
        The program.
    timeout : float, optional
        Seconds that Yosys may take.

    Returns
    -------
    Design

    Raises
    ------
    FileNotFoundError
        If Yosys or a file is not there.
    ValueError
        If Yosys refuses the design; or the design has a combinational loop, latches, several clocks, a clock that is
        no input, memories that stay words, or tri-state logic.
    TimeoutError
        If it takes longer.
    """
    given = DesignFiles(
        sources, top=top, parameters=parameters, include=include, yosys=yosys, need="softnum rtl prove"
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="softnum-rtl-") as folder:
        done = given.run(Path(folder), [*given.read(), given.hierarchy(), *_GATES], timeout=timeout)
        written = Path(folder, "design.json")
        if done.returncode or not written.is_file():
            raise ValueError(f"{given.where}: Yosys does not read it: {' '.join(complaints(done.stdout)).strip()}")
        modules = json.loads(written.read_bytes())["modules"]
    given.check_top(done.stdout)
    tops = [name for name, module in modules.items() if int(module["attributes"].get("top", "0"), 2)]
    if len(tops) != 1:
        raise ValueError(f"{given.where}: no module to prove: state --top")
    return _design(plain_name(tops[0]), modules[tops[0]])


def _design(top: str, module: dict[str, Any]) -> Design:
    ports = {name: Port(p["direction"], len(p["bits"])) for name, p in module["ports"].items()}
    if inouts := [name for name, port in ports.items() if port.direction == "inout"]:
        raise ValueError(f"{top}: {', '.join(inouts)} go both ways; such ports are not proved")
    graph, sources = Aig(), []
    known: dict[str, Any] = {"0": 0, "1": 1}

    def source(kind: str, name: str, bit: int) -> int:
        sources.append((kind, name, bit))
        return graph.input(f"{name}[{bit}]")

    for name, port in module["ports"].items():
        if port["direction"] == "input":
            known.update((bit, source("port", name, i)) for i, bit in enumerate(port["bits"]))
    names = _names(module)
    registers = Registers(top, module, names)
    for name, bit, net in registers.held:
        known[net] = source("register", name, bit)

    def literal(net) -> int:
        """Of an undefined or undriven net, an input for each place that it is used at."""
        if net in ("x", "z"):
            return source("undefined", "x", len(sources))
        if net not in known:  # nothing drives it: one value wherever it is used
            name, bit = names.get(net, ("?", 0))
            known[net] = source("undefined", name, bit)
        return known[net]

    for cell in ordered(top, module, known):
        connections = cell["connections"]
        operation, pins = GATES[kind_of_cell(cell)]
        known[connections["Y"][0]] = operation(graph, *(literal(connections[pin][0]) for pin in pins))
    outputs = {name: [literal(bit) for bit in port["bits"]] for name, port in module["ports"].items()
               if port["direction"] == "output"}  # fmt: skip
    after = [literal(net) for net in registers.next]
    return Design(top, ports, graph, sources, outputs, after, registers.clock)


def _names(module: dict[str, Any]) -> dict[str, Any]:
    """net -> the shortest public name that it has, and which bit it is."""
    found: dict[str, Any] = {}
    nets = sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]), item[0]))
    for name, net in nets:
        for i, bit in enumerate(net["bits"]):
            found.setdefault(bit, (name, i))
    return found
