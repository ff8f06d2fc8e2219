"""``softnum permitted``: whether a specification with freedom permits a product of matrices, without a tolerance."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import OutJson
from softnum.cli.which import read_array

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("permitted", short_help="Judge a product of matrices by a specification with freedom.")(
        exit_codes(permitted)
    )


def permitted(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A B [C] RESULT: .npy files, or .npz files of softnum.save.",
            metavar="A B [C] RESULT",
        ),
    ],
    spec: Annotated[
        str,
        typer.Option(help="The specification: Freedom('binary32', order='any', products=('rounded', 'fused'), ...)."),
    ] = "Freedom('binary32')",
    effort: Annotated[
        int | None,
        typer.Option(
            help="Additions that are examined before an enclosure replaces the exact set of results.  [default: 200000]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: OutJson = None,
) -> None:
    """Check for each element of a @ b, or a @ b + C, whether a specification permits it.

    A specification states what is left open: the order of additions, their grouping, whether products are rounded or
    fused, where C enters, how subnormal numbers are treated. An element is permitted (there is a witness: an order that
    gives it), refuted (by all results, or by a proven enclosure of them) or undecided. Vectors are two of one length.

    \b
      softnum permitted a.npy b.npy result.npy
      softnum permitted a.npy b.npy c.npy result.npy --spec "Freedom('binary32', operand='binary16', c='first')"

    Exit codes: 0 all permitted, 1 not, 2 unusable input.
    """
    import softnum as sn

    if len(files) not in (3, 4):
        raise ValueError(f"give three or four files, A B [C] RESULT; got {len(files)}")
    if out is not None:
        writable_file(out)
    a, b, *c, result = map(read_array, files)
    options = {} if effort is None else {"effort": effort}
    try:
        found = sn.permitted(a, b, spec, *c, result=result, **options)
    except TypeError as error:  # files of text or complex numbers
        raise ValueError(str(error)) from error
    facts = found.to_dict()
    typer.echo(json.dumps(facts, indent=1) if as_json else str(found))
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(facts, indent=1) + "\n")
    if found.verdict != "permitted":
        raise typer.Exit(1)
