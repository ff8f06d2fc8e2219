"""``softnum rtl prove`` and ``softnum rtl formula``: designs proved, and operations as text for provers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.design_files import DesignOptions, numbers_of, pairs_of
from softnum.cli.exits import writable_file
from softnum.cli.options import OUT_TEXT, AnyNan, IgnoreFlags
from softnum.cli.vector_arguments import given, spec_of
from softnum.cli.vector_options import Length, Op, OperationOptions, UnitOption, WithC
from softnum.formats.aliases import function_of
from softnum.runtime.atomic import write_atomic

__all__ = ["formula", "prove"]

_DESIGN, _OPERATION = DesignOptions(), OperationOptions()
_NOT_PROVED = 2
_MOST_SHOWN = 6


def _spec(verb: str, op, operation: OperationOptions, unit, length, with_c):
    from softnum.vectors import UNIT_OPERATIONS

    if op is None:
        raise ValueError(f"state --op; for example: softnum rtl {verb} --op add --format e4m3fn")
    if op in UNIT_OPERATIONS and op != "dot":
        raise ValueError(
            f"--op {op} of a unit cannot be proved; prove its dot product with --op dot, or one step with --op dot "
            "--length 1 --with-c"
        )
    if op != "dot" and operation.fmt is None and function_of(op) is None:
        raise ValueError(f"state --format; for example: softnum rtl {verb} --op add --format e4m3fn")
    return spec_of(op, operation, unit, given(length=length, with_c=with_c))


def _tell(method: str) -> None:
    typer.echo(f"{method} ...", err=True)


def prove(
    sources: Annotated[list[Path], typer.Argument(help="The design in Verilog, all of its files.")],
    op: Op = None,
    operation: OperationOptions = _OPERATION,
    unit: UnitOption = None,
    length: Length = None,
    with_c: WithC = None,
    design: DesignOptions = _DESIGN,
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            help=(
                "COLUMN=PORT or COLUMN=PORT[7:0], for a, b, c, result and flags; an operand at an output port means "
                "the contents of its register.  [default: by usual names and widths]"
            ),
        ),
    ] = None,
    tie: Annotated[
        list[str] | None,
        typer.Option(
            "--tie",
            help=("INPUT=VALUE to hold an input at a value, or INPUT=any to prove it for all values. May be repeated."),
        ),
    ] = None,
    latency: Annotated[int, typer.Option(min=0, help="Clock cycles from the operands to the answer.")] = 0,
    reset: Annotated[
        str | None,
        typer.Option(
            help=(
                "A reset input that is 1 (NAME=0: 0) for a cycle before the operands.  "
                "[default: registers hold anything]"
            )
        ),
    ] = None,
    reset_cycles: Annotated[int, typer.Option(min=1, help="Length of the reset in cycles.")] = 1,
    hold: Annotated[bool, typer.Option("--hold", help="Hold the operands until the answer.")] = False,
    pulse: Annotated[
        list[str] | None,
        typer.Option("--pulse", help=("An input that is 1 in the cycle of the operands and 0 before and after.")),
    ] = None,
    ignore_flags: IgnoreFlags = False,
    any_nan: AnyNan = False,
    method: Annotated[str, typer.Option(help="auto, exhaustion, cec or smt.")] = "auto",
    solver: Annotated[
        str | None, typer.Option(help="bitwuzla or z3.  [default: those installed, in this order]")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for each method.")] = 600.0,
    most_bits: Annotated[int, typer.Option(help="Check all operands if they have at most this many bits.")] = 28,
    yosys: Annotated[str, typer.Option(help="The Yosys executable.")] = "yosys",
    abc: Annotated[str, typer.Option(help="The ABC executable, as it comes with Yosys.")] = "yosys-abc",
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write a counterexample to this file of vectors.")
    ] = None,
) -> None:
    """Prove that a design computes an operation, for all operands, or show operands for which it does not.

    Operands of at most 28 bits are exhausted: the design, as gates that Yosys makes of it, against softnum's core.
    Others: vectors first, which find most faults; then ABC's cec compares the design's gates with those of the
    operation's definition, and then the SMT solvers that are installed (pip install 'softnum[formal]') do.

    Exit code 0: equivalent. 1: it differs, and the vector that shows it is on standard output, with the design's
    answer, as softnum vectors check takes it. 2: not proved, or not possible; a time limit proves nothing.

    \b
      softnum rtl prove multiply.v --op multiply --format e4m3fn
      softnum rtl prove add.v --op add --format binary16 --rounding rtz --top adder -P EXP=5 -P MAN=10
      softnum rtl prove pipeline.v --op add --format e5m2 --latency 2 --port result=sum
      softnum rtl prove mac.v --op fma --format q4.4,q4.4,q8.6 --result-format q8.6 \\
          --port c=acc --port result=acc --tie enable=1 --tie first=0 --tie reset=0 --latency 1
      softnum rtl prove dot2.v --op dot --unit "ExactDotUnit('e6m9', operand='e2m1')" --length 2
      softnum rtl prove mx2.v --op dot --unit "BlockDotUnit('binary32', operand='mxfp4')" --length 2 --with-c
    """
    from softnum.vectors.formal import prove as prove_design
    from softnum.vectors.formal.unrolling import Reset

    spec = _spec("prove design.v", op, operation, unit, length, with_c)
    if out is not None:
        writable_file(Path(out))
    ties = numbers_of("--tie", tie, "INPUT=VALUE or INPUT=any", words=("any",))
    resets = None
    if reset is not None:
        name, _, level = reset.partition("=")
        if level not in ("", "0", "1"):
            raise ValueError(f"--reset must be INPUT, INPUT=1 or INPUT=0, got {reset!r}")
        resets = Reset(name, int(level or 1), reset_cycles)
    found = prove_design(
        sources, spec, **design.given(), ports=pairs_of("--port", port, "COLUMN=PORT"), ties=ties, latency=latency,
        reset=resets, hold=hold, pulse=tuple(pulse or ()), flags=not ignore_flags, any_nan=any_nan, method=method,
        solver=solver, timeout=timeout, most_bits=most_bits, yosys=yosys, abc=abc,
        progress=_tell if sys.stderr.isatty() else None,
    )  # fmt: skip
    for attempt in found.attempts:
        typer.echo(f"{attempt.method}: {attempt.outcome}, {attempt.seconds:.1f} s", err=True)
    of = spec.facts()
    what = f"{spec.op} {of['format']}, {spec.rounding}" if "format" in of else f"{spec.op} of {of['unit']}"
    compared = "results" if found.wiring.flags is None else "results and flags"
    ending = f"by {found.method} in {found.seconds:.1f} s"
    if found.equivalent:
        count = "" if found.patterns is None else f", all {found.patterns} operands"
        typer.echo(f"{found.top}: equivalent to {what}, {compared}{count}; {ending}")
        return
    if found.equivalent is None:
        typer.echo(
            f"{found.top}: not proved to be {what}: {'; '.join(f'{a.method} {a.outcome}' for a in found.attempts)}"
        )
        raise typer.Exit(_NOT_PROVED)
    count = "" if found.patterns is None else f", {found.differing} of {found.patterns} vectors"
    typer.echo(f"{found.top}: differs from {what}{count}; {ending}", err=True)
    if found.depends:
        shown = [*found.depends[:_MOST_SHOWN], *(["..."] if len(found.depends) > _MOST_SHOWN else [])]
        typer.echo(f"it depends on more than the operands (is the latency right?): {', '.join(shown)}", err=True)
    typer.echo(f"right is {found.right_vector}", err=True)
    if found.wiring.flags is None and spec.has_flags:
        typer.echo("flags are not compared: the vector has softnum's", err=True)
    typer.echo(found.vector)
    if out is not None:
        write_atomic(Path(out), found.vector_file)
    raise typer.Exit(1)


def formula(
    op: Op = None,
    operation: OperationOptions = _OPERATION,
    unit: UnitOption = None,
    length: Length = None,
    with_c: WithC = None,
    file_format: Annotated[
        str | None, typer.Option(help="smt2, aig, aag or btor2.  [default: by the file's ending, else smt2]")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help=OUT_TEXT)] = "-",
) -> None:
    """Write an operation for provers, from its definition: SMT-LIB 2 (QF_BV), AIGER (binary or text) or BTOR2.

    Inputs are the operands a, b, c, outputs result and flags. In AIGER they are bits, a[0] the lowest one of a.

    \b
      softnum rtl formula --op add --format e4m3fn -o add.smt2
      softnum rtl formula --op fma --format e5m2,e5m2,e6m9 --result-format e6m9 -o step.aig
    """
    from softnum.vectors.formal import EXPORTS, export

    spec = _spec("formula", op, operation, unit, length, with_c)
    ending = Path(out).suffix.removeprefix(".").lower()
    kind = file_format or (ending if ending in EXPORTS else "smt2")
    if out != "-" and file_format is None and ending not in EXPORTS:
        raise ValueError(
            f"{out}: the kind of file is not clear from its name; end it in .{', .'.join(EXPORTS)}, or state "
            "--file-format"
        )
    if out != "-":
        writable_file(Path(out))
    content = export(spec, kind)
    if out != "-":
        write_atomic(Path(out), content)
    else:
        typer.get_binary_stream("stdout").write(content)
