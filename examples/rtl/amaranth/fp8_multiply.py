"""A multiplier of 8-bit floats in Amaranth, correctly rounded: simulated against softnum, written as Verilog, proved.

    python examples/rtl/amaranth/fp8_multiply.py                    # simulate 10,000 vectors, have them judged
    python examples/rtl/amaranth/fp8_multiply.py --bug              # with a planted fault: ties go away from zero
    python examples/rtl/amaranth/fp8_multiply.py --verilog fp8.v    # write Verilog
    softnum rtl prove fp8.v --op multiply --format e4m3fn

e4m3fn x e4m3fn, nearest even, overflow to NaN, five flags, combinational. Reference: softnum.multiply(a, b, "e4m3fn").
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from softnum.vectors import VectorSpec, check, plan, write

EXP, MAN, BIAS = 4, 3, 7
NAN, LARGEST = 0x7F, 0x7E
WIDTH = 2 * MAN + 2  # of a product of significands
SPEC = VectorSpec.make("multiply", "e4m3fn")


class Multiply(wiring.Component):
    """The multiplier; bug: ties are rounded away from zero."""

    a: In(8)
    b: In(8)
    result: Out(8)
    flags: Out(5)  # invalid 10, divide by zero 08, overflow 04, underflow 02, inexact 01

    def __init__(self, bug: bool = False) -> None:
        super().__init__()
        self.bug = bug

    def elaborate(self, platform) -> Module:
        m = Module()
        significands, fields = [], []
        for x in (self.a, self.b):
            field = x[MAN : MAN + EXP]
            significands.append(Cat(x[:MAN], field.any()))
            fields.append(Mux(field.any(), field, 1))
        product = Signal(WIDTH)
        m.d.comb += product.eq(significands[0] * significands[1])

        # the leading bit to the left, and the exponent field that belongs to it
        zeros, normed, field = Signal(range(WIDTH)), Signal(WIDTH), Signal(signed(EXP + 3))
        for i in range(WIDTH):
            with m.If(product[i]):  # the last one that holds counts
                m.d.comb += zeros.eq(WIDTH - 1 - i)
        m.d.comb += [normed.eq(product << zeros), field.eq(fields[0] + fields[1] - BIAS + 1 - zeros)]

        # out of the normals' range it is shifted right; what leaves is remembered by one bit
        shift, shifted = Signal(EXP + 3), Signal(2 * WIDTH + 1)
        m.d.comb += shift.eq(Mux(field < 1, 1 - field, 0))
        m.d.comb += shifted.eq(Mux(shift > WIDTH, 1, Cat(Const(0, WIDTH + 1), normed) >> shift))
        kept, guard, sticky = shifted[-MAN - 1 :], shifted[-MAN - 2], shifted[: -MAN - 2].any()
        up = guard & (sticky | kept[0] | Const(self.bug))
        magnitude = Signal(EXP + MAN + 3)  # the leading bit of kept counts one in the exponent field
        base = Signal(unsigned(EXP + 2))
        m.d.comb += base.eq(Mux(field < 1, 0, field - 1))
        m.d.comb += magnitude.eq((base << MAN) + kept + up)
        # tiny: below the smallest normal number once rounded with unbounded exponent
        carries = (field == 0) & normed[MAN:].all()

        sign = self.a[-1] ^ self.b[-1]
        nan = (self.a[:-1] == NAN) | (self.b[:-1] == NAN)
        with m.If(nan):
            m.d.comb += self.result.eq(NAN)
        with m.Elif(product == 0):
            m.d.comb += self.result.eq(sign << 7)
        with m.Elif(magnitude > LARGEST):
            m.d.comb += [self.result.eq(NAN), self.flags.eq(0x05)]
        with m.Else():
            inexact = guard | sticky
            m.d.comb += self.result.eq(Cat(magnitude[: EXP + MAN], sign))
            m.d.comb += self.flags.eq(Cat(inexact, inexact & (field < 1) & ~carries))
        return m


def simulate(design: Multiply, vectors: Path, answers: Path):
    """A file of vectors through Amaranth's simulator, the design's answers into another, judged by softnum.

    Returns
    -------
    CheckReport
    """
    lines = vectors.read_text().splitlines()

    async def bench(context) -> None:
        for i, line in enumerate(lines):
            if line.startswith("#"):
                continue
            a, b, *_ = line.split()
            context.set(design.a, int(a, 16))
            context.set(design.b, int(b, 16))
            await context.delay(1e-9)
            lines[i] = f"{a} {b} {context.get(design.result):02X} {context.get(design.flags):02X}"

    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()
    answers.write_text("\n".join(lines) + "\n")
    return check(answers)


def to_verilog(design: Multiply, path: Path, yosys: str = "yosys") -> None:
    """Verilog by Amaranth's RTLIL and Yosys, of any version; amaranth.back.verilog asks for 0.40 or later."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "design.il")
        text.write_text(rtlil.convert(design, name="fp8_multiply", emit_src=False))
        script = f"read_rtlil {text}; proc; opt_clean; write_verilog -noattr {path}"
        subprocess.run([yosys, "-q", "-p", script], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="vectors to simulate")
    parser.add_argument("--bug", action="store_true", help="plant a fault: ties go away from zero")
    parser.add_argument("--verilog", type=Path, help="write Verilog to this file, and simulate nothing")
    given = parser.parse_args()
    if given.verilog:
        to_verilog(Multiply(given.bug), given.verilog)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        vectors = Path(folder, "vectors.txt")
        write(plan(SPEC, count=given.count), vectors)
        report = simulate(Multiply(given.bug), vectors, Path(folder, "answers.txt"))
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
