"""``softnum rtl``: what softnum brings into a simulator, and what a design in Verilog brings into a comparison.

`prove` and `formula` stand in prove.py."""

import re
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.bench import bench
from softnum.cli.design_files import DesignOptions
from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import OUT_TEXT, OutFolder
from softnum.cli.prove import formula, prove
from softnum.cli.updates import with_groups
from softnum.cli.vector_arguments import formats_of, given
from softnum.cli.vector_options import Formats, Op, Overflow, ResultFormat, Rounding, StochasticBits
from softnum.cli.waves import waves
from softnum.runtime.toml_strings import toml_string

__all__ = ["register"]

_DESIGN = DesignOptions()

_HELP = """Use softnum in a hardware simulator, take a design's area into a comparison, or prove a design.

\b
  softnum rtl build --out build       the reference model, for SystemVerilog's DPI-C and for VPI
  softnum rtl rom --op tanh --format e5m2 -o tanh.mem
                                      a look-up table, for $readmemh
  softnum rtl bench multiply.v --op multiply --format e4m3fn --handshake combinational
                                      a bench for a design, with a Makefile
  softnum rtl area multiply.v --into design.toml
                                      area and delay of a design, for softnum tta
  softnum rtl prove multiply.v --op multiply --format e4m3fn
                                      prove that a design is correct, or get a vector on which it is not
  softnum rtl formula --op add --format e4m3fn -o add.smt2
                                      an operation for provers: SMT-LIB, AIGER, BTOR2
  softnum rtl waves e4m3fn -o e4m3fn.txt
                                      values in words, for GTKWave and Surfer

To check a design by files of test vectors instead, use `softnum vectors`.
"""


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    for name, verb, short in (
        ("build", build, "Compile the reference model for simulators."),
        ("rom", rom, "Write a look-up table as a memory file."),
        ("bench", bench, "Write a bench for a design: SystemVerilog, cocotb, Makefile."),
        ("area", area, "Map a design to a cell library: its area for time to accuracy."),
        ("prove", prove, "Prove that a design computes an operation, or show where not."),
        ("formula", formula, "Write an operation for provers: SMT-LIB, AIGER, BTOR2."),
        ("waves", waves, "Show codes as values in GTKWave and Surfer."),
    ):
        group.command(name, short_help=short)(exit_codes(with_groups(verb)))
    app.add_typer(
        group, name="rtl", short_help="softnum inside a simulator; a design in Verilog: its area, and a proof."
    )


def build(
    out: Annotated[str, OutFolder] = "softnum-rtl",
    cc: Annotated[
        str | None, typer.Option(help="The C compiler, with options if needed.  [default: $CC, else cc]")
    ] = None,
    vpi: Annotated[
        str | None, typer.Option(help="The folder with vpi_user.h.  [default: that of Icarus Verilog, or /usr/include]")
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            help=(
                "NAME=UNIT, a unit for softnum_unit(NAME): a name that `softnum units` lists, FILE.py:NAME, or an "
                "expression. May be repeated."
            ),
        ),
    ] = None,
) -> None:
    """Compile the C library for DPI-C, and the VPI module where vpi_user.h is found.

    \b
      softnum rtl build --out build
      verilator --binary +incdir+build build/softnum_pkg.sv tb.sv $PWD/build/libsoftnum_dpi.so \\
          -LDFLAGS -Wl,-rpath,$PWD/build
      iverilog -g2012 -I build -L build -m softnum_vpi -o tb tb.v && vvp -M build tb

    A SystemVerilog bench says `import softnum_pkg::*;` and calls softnum_multiply(a, b, formats, mode, random, flags),
    with formats = softnum_format("e4m3fn"); by VPI the same is $softnum_multiply, formats a handle or a text. Units
    that are named here are called by softnum_dot(a, b, length, c, with_c, softnum_unit("NAME"), seed, stream, flags).

    \b
      softnum rtl build --unit mine="MadUnit('e6m9', operand='e5m2', lanes=4)" --unit h100=nvidia_h100_e4m3
    """
    from softnum.vectors import build_simulator_libraries

    named = {}
    for text in unit or ():
        name, equals, what = text.partition("=")
        if not equals or name in named:
            raise ValueError(f"--unit takes NAME=UNIT, each name once, got {text!r}")
        named[name] = _unit_of(what)
    made = build_simulator_libraries(out, compiler=cc, vpi=vpi, units=named)
    for path in made:
        typer.echo(path)
    if all(path.suffix != ".vpi" for path in made):
        typer.echo("no VPI module: no vpi_user.h was found; name its folder with --vpi", err=True)


def _unit_of(text: str):
    """The unit of FILE.py:NAME; else the text, a name or an expression."""
    if "(" in text or not re.search(r"\.py:\w+$", text):
        return text
    from softnum.mac.mad import Unit
    from softnum.train.designs.objects import load_object

    found = load_object(text, Path())
    if not isinstance(found, Unit):
        raise ValueError(f"--unit: {text} must be a unit, got {type(found).__name__}")
    return found


def rom(
    op: Op = None,
    fmt: Formats = None,
    result_format: ResultFormat = None,
    rounding: Rounding = None,
    overflow: Overflow = None,
    stochastic_bits: StochasticBits = None,
    flags: Annotated[bool, typer.Option("--flags", help="Put five bits of flags above each result.")] = False,
    invalid: Annotated[
        float | None, typer.Option(help="The value to store for a NaN if the result's format has none.")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option(help="readmemh, readmemb, mif or coe.  [default: by the file's ending]")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help=OUT_TEXT)] = "-",
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
        op, formats_of(fmt), flags=flags,
        **given(out_fmt=result_format, rounding=rounding, overflow=overflow, stochastic_bits=stochastic_bits,
                 invalid=invalid),
    )  # fmt: skip
    write_rom(table, out, file_format)
    if out != "-":
        typer.echo(f"{out}: {len(table.words)} words of {table.data_bits} bits", err=True)


def area(
    sources: Annotated[list[Path], typer.Argument(help="The design in Verilog, all of its files.")],
    liberty: Annotated[
        str | None,
        typer.Option(
            help="The cell library, in Liberty's format.  [default: SOFTNUM_LIBERTY, else Debian's qflow-tech-osu035, "
            "-osu018 or -osu050]"
        ),
    ] = None,
    options: DesignOptions = _DESIGN,
    reference: Annotated[
        str, typer.Option(help="The reference multiplier: int8, int32, binary16 or binary32.")
    ] = "binary16",
    latency: Annotated[int, typer.Option(min=1, help="Clock cycles from operands to product.")] = 1,
    interval: Annotated[int, typer.Option(min=1, help="Clock cycles from one multiply-add to the next.")] = 1,
    yosys: Annotated[str, typer.Option(help="The Yosys executable.")] = "yosys",
    into: Annotated[
        Path | None, typer.Option(help="Append the entry to this design file.  [default: print it]")
    ] = None,
) -> None:
    """Map a design to a cell library with Yosys, and write its area and delay as a design file's [hardware.unit].

    A reference multiplier, whose area in 45 nm is published, is mapped in the same run: areas compare within one
    library only. In the equal-area variant of softnum tta the unit has the published area times the ratio of the two.
    Wires and the clock tree are not counted, an accumulator only if it is in the design; a delay changes no clock.
    The entry has the SHA-256 of every file that was read, those that sources include too.

    \b
      softnum rtl area multiply.v
      softnum rtl area mac.v add.v --top mac --parameter CHUNK=16 --latency 3 --into design.toml
      softnum rtl area multiply.v --liberty cells.lib --reference int8
    """
    from softnum.tta.simulators.synthesis import unit_hardware

    before = None if into is None else _without_entry(into)
    unit, design, base = unit_hardware(
        sources, liberty=liberty, reference=reference, **options.given(), yosys=yosys,
        latency_cycles=latency, initiation_interval=interval,
    )  # fmt: skip
    path = "no path" if design.delay_ps is None else f"longest path {design.delay_ps:g} ps ({base.delay_ps:g})"
    typer.echo(
        f"{design.top}: {design.cells} cells of {design.library}, {design.flip_flops} flip-flops; "
        f"area {design.area:g}, {unit.ratio:.4g} of a multiplier of {reference}, {base.area:g}; {path}",
        err=True,
    )
    if design.flip_flops and latency == 1:
        typer.echo("It has flip-flops: if its products come later than a cycle after, state --latency.", err=True)
    entry = "[hardware.unit]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in unit.to_table().items())
    if into is None:
        typer.echo(entry, nl=False)
        return
    from softnum.runtime.atomic import write_atomic

    if _without_entry(into) != before:
        raise ValueError(f"{into}: was changed in the meantime, so nothing was written; start again")
    write_atomic(into, _with_entry(into, before, entry))
    typer.echo(f"Written: {into}", err=True)


def _without_entry(path: Path) -> str:
    """The text of a design file, which states hardware and no unit yet."""
    from softnum.train import load_design

    design = load_design(path)
    if not design.hardware:
        raise ValueError(f"{path}: has no [hardware] table to add the unit to; add the table first")
    if "unit" in design.hardware:
        raise ValueError(f"{path}: already has [hardware.unit]; remove it to have it written again")
    return path.read_bytes().decode()


def _with_entry(path: Path, before: str, entry: str) -> str:
    """The text with the entry at its end, in the lines' ends that it has."""
    after = f"{before.rstrip()}\n\n{entry}"
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"{path}: [hardware.unit] cannot follow there ({error}); write hardware = {{...}} as a table, [hardware]"
        ) from None
    return after.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in before else after


def _toml(value: str | float) -> str:
    return toml_string(value) if isinstance(value, str) else f"{value:.10g}"
