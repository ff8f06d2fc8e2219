"""The text of a pyuvm test: UVM in Python on cocotb, with an agent for the design's handshake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from softnum.runtime.config import __version__
from softnum.vectors.benches.cocotb_text import RUN, connections_of, written
from softnum.vectors.benches.wiring import Wiring

__all__ = ["pyuvm_test_of"]

_TEXT = '''\
"""A pyuvm test of {top}: {what}. Run it by `make pyuvm`, or `python test_pyuvm_{top}.py`.

Made by softnum {version}: softnum rtl bench --pyuvm.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = {sources}
INCLUDES = {includes}
PARAMETERS = {parameters}
SEED, STALLS = int(os.environ.get("SEED", "0")), int(os.environ.get("STALLS", "{stalls}"))
LIMIT = int(os.environ.get("LIMIT", "5000"))  # vectors at most: some thousands take seconds

if __name__ != "__main__":
    import cocotb
    import pyuvm
{imports}    from pyuvm import (
        uvm_agent, uvm_analysis_port, uvm_driver, uvm_env, uvm_monitor, uvm_sequence, uvm_sequence_item, uvm_sequencer,
        uvm_subscriber, uvm_test,
    )
    from softnum.vectors.cocotb import {names}
    from softnum.vectors.covered.files import coverage_of_vectors, write_coverage
    from softnum.vectors.covered.record import CoverageRecord

    PLANNED = planned_file(HERE / "vectors.txt", LIMIT)

    class Item(uvm_sequence_item):
        """A vector: to drive (vector), and as the monitor saw it (words, random_bits, result, flags)."""

        def __init__(self, name, vector=None, words=(), random_bits=None, result=None, flags=None):
            super().__init__(name)
            self.vector, self.words, self.random_bits = vector, words, random_bits
            self.result, self.flags = result, flags

    class Vectors(uvm_sequence):
        """The vectors of vectors.txt, in order."""

        async def body(self):
            for vector in one_by_one(PLANNED):
                item = Item("item", vector)
                await self.start_item(item)
                await self.finish_item(item)

    class Driver(uvm_driver):
        """Gives items to the design, by its handshake."""

        async def run_phase(self):
            dut, board = cocotb.top, self.watcher
{setup}
{begin}
            number = 0
            while True:
                planned = (await self.seq_item_port.get_next_item()).vector
                {put}
                number += 1
                self.seq_item_port.item_done()

    class Monitor(uvm_monitor):
        """Sees what the design takes and gives, and puts operands and answer together."""

        def build_phase(self):
            self.answered = uvm_analysis_port("answered", self)
            self.watcher = Scoreboard(PLANNED.spec, {board}answered=self.saw)

        def saw(self, words, random_bits, result, flags):
            self.answered.write(Item("answer", None, words, random_bits, result, flags))
{watch}
    class Judge(uvm_subscriber):
        """Compares answers with softnum's, and writes them to pyuvm.txt."""

        def build_phase(self):
            self.board = Scoreboard(PLANNED.spec, file=HERE / "pyuvm.txt")

        def write(self, item):
            self.board.send(*item.words, random_bits=item.random_bits)
            self.board.receive(item.result, item.flags)

        def check_phase(self):
            self.board.finish()

    class Covered(uvm_subscriber):
        """Counts softnum's bins in the answers: coverage.xml, in UCIS XML."""

        def build_phase(self):
            self.seen = 0

        def write(self, item):
            self.seen += 1

        def report_phase(self):
            coverage, left_out = coverage_of_vectors(HERE / "pyuvm.txt")
            assert coverage.vectors + left_out == self.seen
            write_coverage(CoverageRecord.of(coverage), HERE / "coverage.xml")
            self.logger.info("coverage.xml, %s", coverage)

    class Agent(uvm_agent):
        def build_phase(self):
            super().build_phase()
            self.sequencer = uvm_sequencer("sequencer", self)
            self.driver, self.monitor = Driver("driver", self), Monitor("monitor", self)

        def connect_phase(self):
            self.driver.watcher = self.monitor.watcher
            self.driver.seq_item_port.connect(self.sequencer.seq_item_export)

    class Env(uvm_env):
        def build_phase(self):
            self.agent, self.judge, self.covered = Agent("agent", self), Judge("judge", self), Covered("covered", self)

        def connect_phase(self):
            self.agent.monitor.answered.connect(self.judge.analysis_export)
            self.agent.monitor.answered.connect(self.covered.analysis_export)

    @pyuvm.test()
    class vectors(uvm_test):
        """All vectors through the agent, each answer compared."""

        def build_phase(self):
            self.env = Env("env", self)

        async def run_phase(self):
            self.raise_objection()
            await Vectors("vectors").start(self.env.agent.sequencer)
            {done}
            self.drop_objection()


'''
_WATCH = """
        async def run_phase(self):
            dut, board = cocotb.top, self.watcher
{setup}
            board.watch(
                {clock}, operands, {answer},
                {watching},
            )
"""


def _rows(indent: int, lines) -> str:
    return "\n".join(" " * indent + row for line in lines for row in line.split("\n"))


def pyuvm_test_of(
    wiring: Wiring, sources: Sequence[str], include: Sequence[str], parameters: Mapping[str, int], outstanding: int = 0,
    stalls: int = 25,
) -> str:  # fmt: skip
    """The test: sequence, driver, monitor, scoreboard, coverage, agent and environment.

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
    >>> test = pyuvm_test_of(wiring, ["../mul.sv"], [], {})
    >>> [line.split()[1].partition("(")[0] for line in test.splitlines() if line.startswith("    class ")][:3]
    ['Item', 'Vectors', 'Driver']
    """
    found, clocked = connections_of(wiring), wiring.handshake.kind != "combinational"
    names = [*found.names, "one_by_one"]
    if any(not wire.whole for wire in wiring.wires.values()):
        names.append("bits")
    imports = watch = ""
    done = "self.env.agent.monitor.watcher.finish()"
    if clocked:
        imports = "    from cocotb.clock import Clock\n    from cocotb.triggers import ClockCycles\n"
        driving = found.driving | {"seed": 'f"{SEED} {number}"'}
        waits = f"for clocks in range(1001):\n                    if number - board.received < {outstanding}:\n"
        waits += " " * 24 + "break\n" + " " * 20 + f"await ClockCycles({found.clock}, 1)\n"
        waits += (
            " " * 16 + "else:\n" + " " * 20 + 'raise TimeoutError(f"no result came in {clocks} clocks")\n' + " " * 16
        )
        put = (waits if outstanding else "") + "await drive(\n" + " " * 20 + f"{found.clock}, planned, operands,\n"
        put += " " * 20 + written(driving).replace("\n    ", "\n" + " " * 20) + ",\n" + " " * 16 + ")"
        watch = _WATCH.format(
            setup=_rows(12, found.setup[-1:]), clock=found.clock, answer=found.answer,
            watching=written(found.watching).replace("\n    ", "\n" + " " * 16),
        )  # fmt: skip
        done = f"dut = cocotb.top\n            await self.env.agent.monitor.watcher.done({found.clock})"
    else:
        rest = "".join(f", {k}={v}" for k, v in found.watching.items())
        put = f"await combinational(board, planned, operands, {found.answer}{rest})"
    text = _TEXT.format(
        top=wiring.design.top, what=f"{wiring.spec.op}, {wiring.handshake}", version=__version__, sources=list(sources),
        includes=list(include), parameters=dict(parameters), imports=imports, names=", ".join(sorted(names)),
        setup=_rows(12, found.setup), begin=_rows(12, found.begin), put=put, board=found.board, watch=watch,
        done=done, stalls=stalls,
    )  # fmt: skip
    return text.replace("\n\n            number = 0", "\n            number = 0") + RUN.format(
        top=wiring.design.top, module=f"test_pyuvm_{wiring.design.top}"
    )
