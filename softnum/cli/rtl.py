"""``softnum rtl``: what softnum brings into a simulator."""

from typing import Annotated

import typer

from softnum.cli import exit_codes

__all__ = ["register"]

_HELP = """Bring softnum into a hardware simulator.

\b
  softnum rtl build --out build       the reference model, for SystemVerilog's DPI-C and for VPI

Test vectors, the way without a library, are made by `softnum vectors`.
"""


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("build", short_help="Compile the reference model for simulators.")(exit_codes(build))
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
