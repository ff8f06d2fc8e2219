"""``softnum which``: the units of real hardware whose product of two matrices is the one in a file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import THREADS, OutJson

__all__ = ["read_array", "register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("which", short_help="Find the hardware whose product of matrices is the one in a file.")(
        exit_codes(which)
    )


def which(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A B [C] RESULT: .npy files, or .npz files of softnum.save.",
            metavar="A B [C] RESULT",
        ),
    ],
    traces: Annotated[
        bool, typer.Option(help="Show the roundings of an element side by side, up to the first that differs.")
    ] = True,
    threads: Annotated[int | None, typer.Option(help=f"{THREADS}  [default: all cores]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: OutJson = None,
) -> None:
    """Find which units of real hardware reproduce a matrix product bit for bit: a @ b, or a @ b + C.

    Every preset is tried, with each of its outputs and each reading of what is disputed (softnum units). Presets that
    compute the same are listed together. Exit code 1 if none gives the result.

    \b
      softnum which a.npy b.npy result.npy
      softnum which a.npy b.npy c.npy result.npy --json
    """
    import softnum as sn

    if len(files) not in (3, 4):
        raise ValueError(f"give three or four files, A B [C] RESULT; got {len(files)}")
    if out is not None:
        writable_file(out)
    a, b, *c, result = map(read_array, files)
    try:
        found = sn.which(a, b, *c, result=result, threads=threads)
    except TypeError as error:  # files of text or complex numbers
        raise ValueError(str(error)) from error
    facts = found.to_dict()
    typer.echo(json.dumps(facts, indent=1) if as_json else str(found))
    if traces and not as_json and (parts := found.part()):
        typer.echo("\n" + parts)
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(facts, indent=1) + "\n")
    if not found.reproduce:
        raise typer.Exit(1)


def read_array(path: Path):
    """The array of a file."""
    import numpy as np

    import softnum as sn

    if path.suffix == ".npz":
        array = sn.load(path)
        if isinstance(array, dict):
            raise ValueError(
                f"{path} holds several named arrays ({', '.join(array)}); save the one to read with numpy.save"
            )
        return array
    try:
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: not an array in NumPy's format ({error})") from error
