"""``softnum rtl``: what softnum brings into a simulator."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.vectors import Formats, Op, Overflow, ResultFormat, Rounding, StochasticBits, _formats, _given

__all__ = ["register"]

_HELP = """Bring softnum into a hardware simulator.

\b
  softnum rtl build --out build       the reference model, for SystemVerilog's DPI-C and for VPI
  softnum rtl rom --op tanh --format e5m2 -o tanh.mem
                                      a look-up table, for $readmemh

Test vectors, the way without a library, are made by `softnum vectors`.
"""


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("build", short_help="Compile the reference model for simulators.")(exit_codes(build))
    group.command("rom", short_help="Write a look-up table as a memory file.")(exit_codes(rom))
    app.add_typer(group, name="rtl", short_help="The reference model and look-up tables inside a simulator.")


def build(
    out: Annotated[str, typer.Option("--out", "-o", help="The folder to write to.")] = "softnum-rtl",
    cc: Annotated[
        str | None, typer.Option(help="The C compiler, with options if need be.  [default: $CC, else cc]")
    ] = None,
    vpi: Annotated[
        str | None, typer.Option(help="The folder with vpi_user.h.  [default: that of Icarus Verilog, or /usr/include]")
    ] = None,
) -> None:
    """Compile the C library for DPI-C, and the VPI module where vpi_user.h is found.

    \b
      softnum rtl build --out build
      verilator --binary +incdir+build build/softnum_pkg.sv tb.sv $PWD/build/libsoftnum_dpi.so \\
          -LDFLAGS -Wl,-rpath,$PWD/build
      iverilog -g2012 -I build -L build -m softnum_vpi -o tb tb.v && vvp -M build tb

    A SystemVerilog bench says `import softnum_pkg::*;` and calls softnum_multiply(a, b, formats, mode, random, flags),
    with formats = softnum_format("e4m3fn"); by VPI the same is $softnum_multiply, formats a handle or a text.
    """
    from softnum.vectors import build_simulator_libraries

    made = build_simulator_libraries(out, compiler=cc, vpi=vpi)
    for path in made:
        typer.echo(path)
    if all(path.suffix != ".vpi" for path in made):
        typer.echo("no VPI module: no vpi_user.h was found; name its folder with --vpi", err=True)


def rom(
    op: Op = None,
    fmt: Formats = None,
    result_format: ResultFormat = None,
    rounding: Rounding = None,
    overflow: Overflow = None,
    stochastic_bits: StochasticBits = None,
    flags: Annotated[bool, typer.Option("--flags", help="Put five bits of flags above each result.")] = False,
    invalid: Annotated[
        float | None, typer.Option(help="The value that stands for a NaN which the result's format lacks.")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option(help="readmemh, readmemb, mif or coe.  [default: by the file's ending]")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help="File; - is standard output (state --file-format).")] = "-",
) -> None:
    """Write the table of an operation over all codes: elementary functions, conversions, operations of small formats.

    The address is the operands' codes side by side, the first in the most significant bits; 20 bits at most. A
    stochastic rounding appends its random bits.

    \b
      softnum rtl rom --op tanh --format e5m2 -o tanh.mem
      softnum rtl rom --op multiply --format e2m1fn --result-format q5.2 -o product.mif
      softnum rtl rom --op convert --format e4m3fn --result-format binary16 -o widen.coe
    """
    from softnum.vectors import make_rom, write_rom

    for option, value in (("--op", op), ("--format", fmt)):
        if value is None:
            raise ValueError(f"state {option}; for example: softnum rtl rom --op tanh --format e5m2 -o tanh.mem")
    if out != "-":
        writable_file(Path(out))
    table = make_rom(
        op, _formats(fmt), flags=flags,
        **_given(out_fmt=result_format, rounding=rounding, overflow=overflow, stochastic_bits=stochastic_bits,
                 invalid=invalid),
    )  # fmt: skip
    write_rom(table, out, file_format)
    if out != "-":
        typer.echo(f"{out}: {len(table.words)} words of {table.data_bits} bits", err=True)
