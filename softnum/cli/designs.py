"""``softnum designs``: the shipped designs, and a copy of one to change."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.completions import complete_designs
from softnum.cli.exits import exit_codes, writable_folder
from softnum.cli.options import ReplaceFiles

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("designs", short_help="List the shipped designs, or copy one to change.")(exit_codes(designs))


def designs(
    name: Annotated[
        str | None, typer.Argument(help="A shipped design.  [default: list them]", autocompletion=complete_designs)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for a copy of the design, with the Python file it names, if any.")
    ] = None,
    force: ReplaceFiles = False,
) -> None:
    """List the shipped designs, show one, or write a copy of one to start from.

    \b
      softnum designs
      softnum designs c-wang-fp8
      softnum designs c-wang-fp8 --out .
    """
    from softnum.train import design_names, load_design

    if name is None:
        if out is not None:
            raise ValueError("name the design to copy: softnum designs NAME --out FOLDER")
        for each in design_names():
            typer.echo(f"{each}\n{_folded(load_design(each).description)}")
        typer.echo("\nOne of them, to change: softnum designs NAME --out FOLDER")
        return
    if name not in design_names():
        load_design(Path(name).name)  # says which name is near
        raise ValueError(f"{name!r} is not a shipped design (shipped: {', '.join(design_names())})")
    design = load_design(name)
    if out is None:
        typer.echo(design.path.read_text(encoding="utf-8"), nl=False)
        return
    writable_folder(out)
    files = [design.path, *design.files]
    taken = [out / file.name for file in files if (out / file.name).exists()]
    if taken and not force:
        raise ValueError(f"{', '.join(map(str, taken))} exists; name another folder, or add --force to replace it")
    from softnum.runtime.atomic import write_atomic

    for file in files:
        write_atomic(out / file.name, file.read_bytes())
        typer.echo(f"Written: {out / file.name}")
    typer.echo(f"Change its name and a format, then: softnum train mlp --design {out / design.path.name}")


def _folded(text: str) -> str:
    import textwrap

    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    ")
