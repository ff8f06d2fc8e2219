"""The cells that Yosys leaves: gates, and registers of one clock; what else there is has no proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from softnum.vectors.formal.aig import Aig

__all__ = ["GATES", "Registers", "kind_of_cell", "ordered"]

#: cell -> its function of literals, and the pins in order
GATES: dict[str, tuple[Callable[..., Any], str]] = {
    "$_BUF_": (lambda g, a: a, "A"),
    "$_NOT_": (lambda g, a: a ^ 1, "A"),
    "$_AND_": (Aig.land, "AB"),
    "$_NAND_": (lambda g, a, b: g.land(a, b) ^ 1, "AB"),
    "$_OR_": (Aig.lor, "AB"),
    "$_NOR_": (lambda g, a, b: g.lor(a, b) ^ 1, "AB"),
    "$_XOR_": (Aig.xor, "AB"),
    "$_XNOR_": (lambda g, a, b: g.xor(a, b) ^ 1, "AB"),
    "$_ANDNOT_": (lambda g, a, b: g.land(a, b ^ 1), "AB"),
    "$_ORNOT_": (lambda g, a, b: g.lor(a, b ^ 1), "AB"),
    "$_MUX_": (lambda g, a, b, s: g.mux(s, b, a), "ABS"),
    "$_NMUX_": (lambda g, a, b, s: g.mux(s, b, a) ^ 1, "ABS"),
    "$_AOI3_": (lambda g, a, b, c: g.lor(g.land(a, b), c) ^ 1, "ABC"),
    "$_OAI3_": (lambda g, a, b, c: g.land(g.lor(a, b), c) ^ 1, "ABC"),
    "$_AOI4_": (lambda g, a, b, c, d: g.lor(g.land(a, b), g.land(c, d)) ^ 1, "ABCD"),
    "$_OAI4_": (lambda g, a, b, c, d: g.land(g.lor(a, b), g.lor(c, d)) ^ 1, "ABCD"),
}
_REGISTERS = ("$_DFF_P_", "$_DFF_N_")
_MEANING = (
    ("$_DLATCH", "a latch: some branch of an always @* leaves it as it is"), ("$_SR_", "a latch of set and reset"),
    ("$dlatch", "a latch: some branch of an always @* leaves it as it is"), ("$_TBUF_", "tri-state logic"),
    ("$tribuf", "tri-state logic"), ("$mem", "a memory that Yosys does not map to registers"),
)  # fmt: skip


def kind_of_cell(cell: dict[str, Any]) -> str:
    """The cell's type."""
    return cell["type"]


def _place(name: str, cell: dict[str, Any]) -> str:
    source = cell.get("attributes", {}).get("src", "").split("|")[0]
    return source.rpartition("/")[2] or name


class Registers:
    """The registers of a module: ``held`` is (name, bit, net) of each bit, ``next`` the net that it takes over, and
    ``clock`` the name of the input whose edge it is; ValueError if there are several clocks or it is no input."""

    def __init__(self, top: str, module: dict[str, Any], names: dict[str, Any]) -> None:
        self.held: list[tuple[str, int, object]] = []
        self.next: list[Any] = []
        self.clock: str | None = None
        clocks = {}
        for name, cell in module["cells"].items():
            if cell["type"] in _REGISTERS:
                nets = cell["connections"]
                clocks.setdefault((nets["C"][0], cell["type"]), _place(name, cell))
                self.held.append((*names.get(nets["Q"][0], (name, 0)), nets["Q"][0]))
                self.next.append(nets["D"][0])
        if not clocks:
            return
        if len(clocks) > 1:
            (_, first), (_, second) = list(clocks.items())[:2]
            raise ValueError(
                f"{top}: registers have {len(clocks)} clocks or edges ({first}, {second}); one clock is proved"
            )
        ((net, _),) = clocks
        inputs = {bit: name for name, p in module["ports"].items() if p["direction"] == "input" for bit in p["bits"]}
        if net not in inputs:
            raise ValueError(f"{top}: the clock of {next(iter(clocks.values()))} is no input: gated clocks are not "
                             "proved")  # fmt: skip
        self.clock = inputs[net]


def ordered(top: str, module: dict[str, Any], known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The gates that outputs and registers depend on, each after those that it depends on.

    Raises
    ------
    ValueError
        If there is a combinational loop, or a cell that is no gate.

    Examples
    --------
    >>> pins = {"A": "input", "Y": "output"}
    >>> second = {"type": "$_NOT_", "port_directions": pins, "connections": {"A": [3], "Y": [4]}}
    >>> first = {"type": "$_BUF_", "port_directions": pins, "connections": {"A": [2], "Y": [3]}}
    >>> module = {"ports": {"y": {"direction": "output", "bits": [4]}}, "cells": {"g": second, "h": first}}
    >>> [kind_of_cell(cell) for cell in ordered("top", module, {2: 2})]
    ['$_BUF_', '$_NOT_']
    """
    drivers = {}
    for name, cell in module["cells"].items():
        directions = cell.get("port_directions", {})
        for pin, nets in cell["connections"].items():
            if directions.get(pin) == "output" and cell["type"] not in _REGISTERS:
                drivers.update(dict.fromkeys(nets, (name, cell)))
    roots = [bit for p in module["ports"].values() if p["direction"] == "output" for bit in p["bits"]]
    roots += [c["connections"]["D"][0] for c in module["cells"].values() if c["type"] in _REGISTERS]
    finished: set[str] = set()
    open_now: set[str] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            net, leaving = stack.pop()
            if net in known or net not in drivers:
                continue
            name, cell = drivers[net]
            if leaving:
                open_now.discard(name)
                if name not in finished:
                    finished.add(name)
                    yield cell
                continue
            if name in finished:
                continue
            if name in open_now:
                raise ValueError(f"{top}: a combinational loop through {_place(name, cell)}; it has no one value")
            if cell["type"] not in GATES:
                meaning = next((text for start, text in _MEANING if cell["type"].startswith(start)), "no gate")
                raise ValueError(f"{top}: {cell['type']} at {_place(name, cell)} is not proved: {meaning}")
            open_now.add(name)
            stack.append((net, True))
            pins = GATES[cell["type"]][1]
            stack += [(cell["connections"][pin][0], False) for pin in pins]
