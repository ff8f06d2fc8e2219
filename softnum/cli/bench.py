"""``softnum rtl bench``: a folder with all that verifies a design in Verilog."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.design_files import DesignOptions, numbers_of, pairs_of
from softnum.cli.exits import writable_folder
from softnum.cli.mixed import is_mixed, parts_of
from softnum.cli.options import OutFolder
from softnum.cli.vector_arguments import given, lanes_of, shape_of, spec_of
from softnum.cli.vector_options import (
    NO_BOXES,
    Case,
    LaneCount,
    LaneFlags,
    Length,
    Mask,
    NanBox,
    Op,
    ScalarB,
    Shape,
    UnitOption,
    VectorOptions,
    WithC,
    WordBits,
)

__all__ = ["bench"]

_DESIGN, _OPERATION = DesignOptions(), VectorOptions()


def bench(
    sources: Annotated[list[Path], typer.Argument(help="The design in Verilog or SystemVerilog, all of its files.")],
    op: Op = None,
    operation: VectorOptions = _OPERATION,
    case: Case = None,
    nan_box: NanBox = False,
    unit: UnitOption = None,
    length: Length = None,
    shape: Shape = None,
    with_c: WithC = None,
    lanes: LaneCount = None,
    word_bits: WordBits = None,
    scalar_b: ScalarB = False,
    lane_flags: LaneFlags = None,
    mask: Mask = None,
    handshake: Annotated[
        str | None, typer.Option(help="combinational, latency:N (clocks), valid-ready or stb-ack.")
    ] = None,
    design: DesignOptions = _DESIGN,
    port: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "ROLE=NAME or ROLE=NAME[HIGH:LOW], separated by commas: a=x,result=out[7:0]. Roles: clock, reset, "
                "enable, a, b ..., result, flags, valid_in, ready_in, valid_out, ready_out, valid_a ...; ROLE=none: "
                "the design has no such port."
            )
        ),
    ] = None,
    tie: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, separated by commas: inputs that are held at a value.")
    ] = None,
    encode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN.NAME:PORT=VALUE,...",
            help=(
                "For mixed vectors: the values of control inputs for an operation, mode or format, as "
                "op.add:op_i=2,op_mod_i=0 or format.binary16:fmt_i=1. May be repeated; later ones override earlier "
                "ones."
            ),
        ),
    ] = None,
    reset_active: Annotated[str | None, typer.Option(help="high or low.  [default: by the reset's name]")] = None,
    ports: Annotated[
        str | None, typer.Option(help="State the module's ports instead of reading them: a:in:8,result:out:8,clk:in.")
    ] = None,
    reader: Annotated[
        str | None, typer.Option(help="pyslang or yosys.  [default: pyslang where it is installed, else yosys]")
    ] = None,
    stalls: Annotated[int, typer.Option(help=(
        "Percentage of clock cycles in which a side that may pause does so, 0 to 99."
    ))] = 25,
    outstanding: Annotated[
        int, typer.Option(help=(
            "For valid-ready and stb-ack: the largest number of vectors in flight.  [default: any number]"
        ),
                          show_default=False)
    ] = 0,
    uvm: Annotated[bool, typer.Option("--uvm", help="Also write a UVM bench in SystemVerilog.")] = False,
    pyuvm: Annotated[bool, typer.Option("--pyuvm", help="Also write a test in pyuvm, UVM in Python.")] = False,
    out: Annotated[Path, OutFolder] = Path("bench"),
) -> None:  # fmt: skip
    """Write a bench for a design: SystemVerilog for Icarus, Verilator and others, a cocotb test, and a Makefile.

    The module's ports are read; the role of each is inferred from its name, width and direction, and printed. If a role
    is not clear, an error names the ports and the option that states it.

    \b
      softnum rtl bench multiply.v --op multiply --format e4m3fn --handshake combinational --out bench
      make -C bench verify
      softnum rtl bench adder.v --op add --format binary32 --handshake stb-ack --out bench
      softnum rtl bench mac.v --op mac --unit "MadUnit('e6m9', operand='e5m2', chunk=8)" --handshake latency:1
      softnum rtl bench fpu.sv --op add,multiply --rounding rne,rup --format binary16 --handshake valid-ready \
        --encode op.add:op_i=2 --encode op.multiply:op_i=3 --encode mode.rup:rm_i=3

    make verify generates vectors, simulates (SIM=icarus or verilator; COUNT=, SEED=, STALLS=) and checks the answers;
    make cocotb runs the cocotb test on the same vectors. A design that does not answer ends the simulation.
    """
    from softnum.vectors import MixedSpec, PackedSpec
    from softnum.vectors.benches.folder import write_bench
    from softnum.vectors.benches.handshakes import HANDSHAKES, handshake_named
    from softnum.vectors.benches.ports import read_design, stated_design
    from softnum.vectors.benches.roles import wiring_of

    if handshake is None:
        raise ValueError("state --handshake: " + "; ".join(f"{name}: {text}" for name, text in HANDSHAKES.items()))
    if reset_active not in (None, "high", "low"):
        raise ValueError(f"--reset-active is high or low, got {reset_active!r}")
    of_unit = dict(length=length, shape=shape_of(shape), with_c=with_c)
    if case or is_mixed(op, operation.fmt, operation.rounding):
        foreign = given(unit=unit, lane_flags=lane_flags, **of_unit)
        of_lanes = given(lanes=lanes, word_bits=word_bits, scalar_b=scalar_b or None, mask=mask)
        spec = MixedSpec.make(parts_of(case, op, operation, foreign, of_lanes, nan_box), nan_box=nan_box)
    else:
        packed = lanes_of(lanes, word_bits, scalar_b, lane_flags, nan_box, mask)
        if nan_box and packed is None:
            raise ValueError(NO_BOXES)
        spec = spec_of(op, operation, unit, of_unit)
        spec = spec if packed is None else PackedSpec.make(spec, packed)
    writable_folder(out)
    read = design.given()
    if ports is not None:
        if design.top is None or reader is not None:
            raise ValueError("--ports needs the module's name, --top, and no --reader")
        for path in sources:
            if not path.is_file():
                raise FileNotFoundError(f"no file {str(path)!r}")
        module = stated_design(design.top, ports)
    else:
        module = read_design(sources, **read, reader=reader)
    wiring = wiring_of(
        module, spec, handshake_named(handshake), ports=pairs_of("--port", port, "ROLE=PORT", commas=True),
        tied=numbers_of("--tie", tie, commas=True), encode=encode or (), reset_active=reset_active,
    )  # fmt: skip
    made = write_bench(out, wiring, sources, parameters=read["parameters"], include=read["include"], stalls=stalls,
                       outstanding=outstanding, uvm=uvm, pyuvm=pyuvm)  # fmt: skip
    for line in wiring.lines():
        typer.echo(line)
    typer.echo(f"written: {', '.join(str(path) for path in made)}; next: make -C {out} verify")
