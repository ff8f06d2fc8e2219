"""The text of a cocotb test that drives a design with a file of vectors, and of the program that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from softnum.runtime.config import __version__
from softnum.vectors.benches.wiring import FLAG_NAMES, Wiring
from softnum.vectors.wires import Wire

__all__ = ["RUN", "Connections", "cocotb_test_of", "connections_of", "written"]

_TEXT = '''\
"""A cocotb test of {top}: {what}. Run it by `make cocotb`, or `python test_{top}.py`.

Made by softnum {version}: softnum rtl bench.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = {sources}
INCLUDES = {includes}
PARAMETERS = {parameters}
SEED, STALLS = int(os.environ.get("SEED", "0")), int(os.environ.get("STALLS", "{stalls}"))
LIMIT = int(os.environ.get("LIMIT", "5000"))  # vectors at most: some thousands take a second

if __name__ != "__main__":
    import cocotb
{imports}
    from softnum.vectors.cocotb import {names}

    @cocotb.test
    async def vectors(dut):
        planned = planned_file(HERE / "vectors.txt", LIMIT)
        board = Scoreboard(planned.spec, {board}file=HERE / "cocotb.txt")
{body}

'''
#: what runs a test of a module when it is the program
RUN = '''def run(simulator: str = os.environ.get("SIM", "icarus")) -> int:
    """Build the design, run the test; how many tests failed."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    runner, folder = get_runner(simulator), HERE / "build" / f"cocotb-{{simulator}}"
    flags = ["-g2012"] if simulator == "icarus" else ["-Wno-fatal"]
    runner.build(
        sources=[HERE / name for name in SOURCES], includes=[HERE / name for name in INCLUDES], hdl_toplevel="{top}",
        parameters=PARAMETERS, build_args=flags, timescale=("1ns", "1ps"), build_dir=folder, always=True,
    )
    results = runner.test(
        hdl_toplevel="{top}", test_module="{module}", test_dir=HERE, build_dir=folder, timescale=("1ns", "1ps"),
        extra_env={{"PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])}},
    )
    tests, failed = get_results(results)
    print(f"{{tests}} tests, {{failed}} failed")
    return failed if tests else 1


if __name__ == "__main__":
    sys.exit(run() > 0)
'''


def _handle(wire: Wire | None) -> str:
    if wire is None:
        return "None"
    return f"dut.{wire.port}" if wire.whole else f"bits(dut.{wire.port}, {wire.high}, {wire.low})"


def cocotb_test_of(
    wiring: Wiring, sources: Sequence[str], include: Sequence[str], parameters: Mapping[str, int], outstanding: int = 0,
    stalls: int = 25,
) -> str:  # fmt: skip
    """The test.

    Parameters
    ----------
    wiring : Wiring
    sources, include : sequence of str
        As seen from the folder of the test.
    parameters : mapping of str to int
        Of the design.
    outstanding : int
        How many vectors are on their way at most; 0: any number.
    stalls : int
        Percent of the clocks in which what may pause does.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> from softnum.vectors.benches.roles import wiring_of
    >>> design = stated_design("mul", "a:in:8,b:in:8,result:out:8")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e4m3"), handshake_named("combinational"))
    >>> test = cocotb_test_of(wiring, ["../mul.sv"], [], {})
    >>> [line.strip() for line in test.splitlines() if "dut." in line]
    ['operands = [dut.a, dut.b]', 'await combinational(board, planned, operands, dut.result, None)']
    """
    found = connections_of(wiring, outstanding)
    if wiring.handshake.kind == "combinational":
        rest = "".join(f", {k}={v}" for k, v in found.watching.items())
        lines = [*found.setup, f"await combinational(board, planned, operands, {found.answer}{rest})", "board.finish()"]
        return _filled(wiring, sources, include, parameters, found.names, lines, "", "", stalls)
    lines = [*found.setup, *found.begin]
    lines.append(f"board.watch(\n    {found.clock}, operands, {found.answer},\n    {written(found.watching)},\n)")
    lines.append(f"await drive(\n    {found.clock}, planned, operands,\n    {written(found.driving)},\n)")
    lines.append(f"await board.done({found.clock})")
    imports = "    from cocotb.clock import Clock\n    from cocotb.triggers import ClockCycles\n"
    return _filled(wiring, sources, include, parameters, found.names, lines, imports, found.board, stalls)


class Connections(NamedTuple):
    """What a test in Python says of a design: statements and arguments, with the design's handle called ``dut``.

    ``setup`` are statements before the clock runs, ``begin`` those that start clock, reset and pauses; ``watching`` and
    ``driving`` are arguments of `Scoreboard.watch` and `drive`, ``board`` those of the scoreboard.
    """

    names: list[str]
    setup: list[str]
    begin: list[str]
    clock: str
    answer: str
    watching: dict[str, str]
    driving: dict[str, str]
    board: str


def connections_of(wiring: Wiring, outstanding: int = 0) -> Connections:
    """The connections of a wiring, with at most so many vectors on their way (0: any number)."""
    wires, combinational = wiring.wires, wiring.handshake.kind == "combinational"
    operands = [n for n in wiring.operands if n != "random"]
    names = ["Scoreboard", "planned_file"]
    widths, driven = {p.name: p.width for p in wiring.design.ports}, {wire.port for wire in wires.values()}
    setup = [f"{_handle(Wire(port, widths[port] - 1, 0, port not in driven))}.value = {value:#x}"
             for port, value in wiring.tied.items()]  # fmt: skip
    setup.append(f"operands = [{', '.join(_handle(wires[n]) for n in operands)}]")
    options = {"random_bits": _handle(wires["random"])} if "random" in wires else {}
    flags = None
    if wiring.flags and "flags" in wires:
        flags = _handle(wires["flags"])
    elif wiring.flags and all(n in wires for n in FLAG_NAMES):
        flags = f"joined({', '.join(_handle(wires[n]) for n in FLAG_NAMES)})"
        names.append("joined")
    answer = f"{_handle(wires['result'])}, {flags}"
    if combinational:
        return Connections([*names, "combinational"], setup, [], "None", answer, options, {}, "")
    names.append("drive")
    watching, driving = dict(options), dict(options)
    flows = wiring.handshake.flows
    own = len(wiring.channels) > 1 or ("valid_in" not in wires and flows)
    listed = lambda kind: "[" + ", ".join(_handle(wires.get(f"{kind}_{n}")) for n in wiring.operands) + "]"  # noqa: E731
    valid = listed("valid") if own else _handle(wires["valid_in"]) if "valid_in" in wires else None
    ready = listed("ready") if own else _handle(wires["ready_in"]) if "ready_in" in wires and flows else None
    if valid is not None:
        watching["valid_in"], driving["valid"] = valid, valid
    if ready is not None:
        watching["ready"] = driving["ready"] = ready
    if "enable" in wires:
        watching["enable"] = driving["enable"] = _handle(wires["enable"])
    if flows:
        watching["valid_out"] = _handle(wires["valid_out"])
        if "ready_out" in wires:
            watching["ready_out"] = _handle(wires["ready_out"])
    if outstanding:
        driving["outstanding"] = f"({outstanding}, board)"
    driving |= {"stalls": "STALLS", "seed": "SEED", "timeout": "1000"}
    clock = _handle(wires["clock"])
    begin = [f"{name}.value = 0" for name in _first_values(wiring)]
    begin.append(f'Clock({clock}, 10, unit="ns").start()')
    if "reset" in wires:
        on = 0 if wiring.reset_low else 1
        reset = _handle(wires["reset"])
        watching |= {"reset": reset} | ({"reset_active": "0"} if wiring.reset_low else {})
        begin += [f"{reset}.value = {on}", f"await ClockCycles({clock}, 4)", f"{reset}.value = {1 - on}"]
    else:
        begin.append(f"await ClockCycles({clock}, 4)")
    stalling = [r for r in ("enable", "ready_out") if r in wires]
    if stalling:
        names.append("pause")
        begin.append(f"pause({clock}, {_handle(wires[stalling[0]])}, STALLS, SEED + 1)")
    board = "" if flows else f"latency={wiring.handshake.latency}, "
    return Connections(names, setup, begin, clock, answer, watching, driving, board)


def _first_values(wiring: Wiring) -> list[str]:
    """Handles that are 0 until the test drives them."""
    return [_handle(w) for r, w in wiring.wires.items() if r.startswith("valid_") and r != "valid_out"]


def written(options: Mapping[str, str]) -> str:
    """Arguments by name, a line each."""
    return ",\n    ".join(f"{key}={value}" for key, value in options.items())


def _filled(wiring, sources, include, parameters, names, lines, imports, board, stalls) -> str:
    if any(not wire.whole for wire in wiring.wires.values()):
        names = [*names, "bits"]
    body = "".join(f"        {row}\n" for line in lines for row in line.split("\n"))
    return _TEXT.format(
        top=wiring.design.top, what=f"{wiring.spec.op}, {wiring.handshake}", version=__version__, sources=list(sources),
        includes=list(include), parameters=dict(parameters), imports=imports, names=", ".join(sorted(names)),
        board=board, body=body, stalls=stalls,
    ) + RUN.format(top=wiring.design.top, module=f"test_{wiring.design.top}")  # fmt: skip
