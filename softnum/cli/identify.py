"""``softnum identify``: the unit of a black box: a function of Python or of a shared library, or a program."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import OutJson

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("identify", short_help="Find the unit that a function or a program multiplies with.")(
        exit_codes(identify)
    )


def identify(
    function: Annotated[
        str | None,
        typer.Argument(help="A function f(a, b) or f(a, b, c) of Python: module:function or file.py:function."),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            help="Instead, LIBRARY.so:SYMBOL, void f(const float *a, const float *b, const float *c, float *out, "
            "int64_t m, int64_t n, int64_t k)."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help=(
                "Instead, a program that reads lines of hexadecimal encodings, K of a, K of b and one of C, and "
                "answers each line with the encoding of the result. Needs --operand and --output."
            )
        ),
    ] = None,
    instruction: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead, a matrix instruction of this machine's GPU, as mma_m16n8k16_f32_f16_f16_f32 or "
            "wgmma_m64n8k16_f32_bf16_bf16.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Instead, record rows of each matrix instruction of this machine's GPU into a folder.",
        ),
    ] = None,
    operand: Annotated[
        str | None, typer.Option(help="The format of a and b, or two of them: uq8.0,q8.0.  [default: found]")
    ] = None,
    output: Annotated[str | None, typer.Option(help="The format of the result.  [default: found]")] = None,
    start: Annotated[
        str | None, typer.Option(help="With --command, the format of C.  [default: that of the result]")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="Number of random rows on which the unit is checked.")] = 100_000,
    longest: Annotated[
        int, typer.Option(min=8, max=1024, help=("Number of products in the longest sums that are queried."))
    ] = 136,
    alone: Annotated[bool, typer.Option("--alone", help="Query one dot product per call.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: OutJson = None,
) -> None:
    """Find the unit that a black box computes dot products with: formats, order, bits kept, roundings, flushes.

    The printed unit gives every result that was queried. If there is none, the smallest input that refutes the closest
    unit is printed, and the exit code is 1. It computes no more than 150 000 dot products and those of --rows.

    --record asks a GPU once, for later: inputs and results of its mma and wgmma instructions, the GPU, driver and date
    with them (python -m softnum.kernels.recording --help tells what is in the folder).

    \b
      softnum identify numpy:matmul --operand binary32 --alone
      softnum identify --library ./libmac.so:mac
      softnum identify --command 'vvp mac.vvp' --operand q8.0 --output q32.0 --rows 1000
      softnum identify --instruction mma_m16n8k16_f32_f16_f16_f32
      softnum identify --record rows-of-my-gpu
    """
    from softnum.inspect.identify import Command, library_function, one_by_one
    from softnum.inspect.identify import identify as find

    if sum(x is not None for x in (function, library, command, instruction, record)) != 1:
        raise ValueError("name what to identify: one of FUNCTION, --library, --command, --instruction and --record")
    if record is not None:
        from softnum.kernels.recording.__main__ import main

        raise typer.Exit(main([str(record)]))
    if command is None and start is not None:
        raise ValueError("--start is for --command; add --command, or leave --start out")
    if out is not None:
        writable_file(out)
    formats = None if operand is None else tuple(operand.split(","))
    formats = formats if formats is None or len(formats) > 1 else formats[0]
    program = None
    if command is not None:
        if operand is None or output is None:
            raise ValueError("--command needs --operand and --output, the formats of the encodings on its lines")
        box = program = Command(command, operand=formats, output=output, start=start)
    elif library is not None:
        path, _, symbol = library.rpartition(":")
        if not path:
            raise ValueError(f"--library is LIBRARY.so:SYMBOL, got {library!r}")
        box = library_function(path, symbol)
    elif instruction is not None:
        box = _instruction(instruction)
    else:
        from softnum.train.designs.objects import load_object

        box = load_object(function, Path())
        if not callable(box):
            raise ValueError(f"{function} is not a function")
    try:
        found = find(one_by_one(box) if alone else box, operand=formats, output=output, rows=rows, longest=longest)
    finally:
        if program is not None:
            program.close()
    facts = found.to_dict()
    typer.echo(json.dumps(facts, indent=1) if as_json else str(found))
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(facts, indent=1) + "\n")
    if found.unit is None:
        raise typer.Exit(1)


def _instruction(name: str):
    """A matrix instruction of this machine's GPU as a box."""
    from softnum.kernels.recording.device import Device
    from softnum.kernels.recording.mma import INSTRUCTIONS
    from softnum.kernels.recording.tiles import box

    named = {one.file: one for one in INSTRUCTIONS}
    if name not in named:
        raise ValueError(f"unknown instruction {name!r}; known: {', '.join(named)}")
    device, one = Device(), named[name]
    if not one.on(device.capability):
        raise ValueError(f"{device.name}, of compute capability {device.capability}, does not support {one.ptx}")
    return box(device, one)
