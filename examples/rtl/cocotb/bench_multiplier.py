"""The bench of multiplier.v: run.py starts it. Vectors of softnum go in, softnum's scoreboard judges what comes out."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from softnum.vectors import VectorSpec, plan
from softnum.vectors.cocotb import ReferenceModel, Scoreboard, drive

SPEC = VectorSpec.make("multiply", "e4m3fn", overflow="saturate")
COUNT = int(os.environ.get("VECTORS", "4000"))


async def started(dut):
    """A clock, and a reset that is over."""
    Clock(dut.clk, 10, unit="ns").start()
    dut.reset.value, dut.valid_in.value = 1, 0
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    dut.reset.value = 0


@cocotb.test
async def by_valid_signals(dut):
    await started(dut)
    board = Scoreboard(SPEC, file="multiplier.txt")
    board.watch(
        dut.clk, [dut.a, dut.b], dut.result, dut.flags, valid_in=dut.valid_in, valid_out=dut.valid_out, reset=dut.reset
    )
    await drive(dut.clk, plan(SPEC, count=COUNT), [dut.a, dut.b], valid=dut.valid_in)
    await board.done(dut.clk)


@cocotb.test
async def by_latency(dut):
    await started(dut)
    board = Scoreboard(SPEC, latency=3)
    board.watch(dut.clk, [dut.a, dut.b], dut.result, dut.flags, reset=dut.reset)
    await drive(dut.clk, plan(SPEC, count=500, seed=1), [dut.a, dut.b])
    await board.done(dut.clk)


@cocotb.test
async def one_product(dut):
    """The model alone: what is right for one pair of operands."""
    await started(dut)
    dut.a.value, dut.b.value = 0x3C, 0x44
    for _ in range(4):
        await RisingEdge(dut.clk)
    want = ReferenceModel(SPEC)(dut.a.value, dut.b.value)
    assert (int(dut.result.value), int(dut.flags.value)) == want
