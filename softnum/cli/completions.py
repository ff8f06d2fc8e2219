"""``softnum completions``: what a shell needs to complete verbs, options and names, by Typer's own mechanism."""

import os
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file

__all__ = ["SHELLS", "VARIABLE", "complete_designs", "complete_formats", "complete_units", "prepare", "register"]

#: what the shell's script sets for softnum to answer with completions
VARIABLE = "_SOFTNUM_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def _complete_shells(incomplete: str) -> list[str]:
    return _beginning(SHELLS, incomplete)


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("completions", short_help="Print the script by which a shell completes softnum.")(
        exit_codes(completions)
    )


def completions(
    shell: Annotated[str, typer.Argument(help=", ".join(SHELLS), autocompletion=_complete_shells)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.  [default: print it]")] = None,
) -> None:
    """Print the script by which a shell completes verbs, options, and shipped designs, formats and units where one is
    named.

    The script asks softnum at each Tab, so that it stays right when softnum is updated.

    \b
      softnum completions bash >> ~/.bashrc
      softnum completions zsh --out ~/.zfunc/_softnum    with fpath+=~/.zfunc before compinit in ~/.zshrc
      softnum completions fish --out ~/.config/fish/completions/softnum.fish
    """
    if shell not in SHELLS:
        raise ValueError(f"shell must be one of {', '.join(SHELLS)}, got {shell!r}")
    if out is not None:
        writable_file(out)
    from typer.completion import get_completion_script

    text = get_completion_script(prog_name="softnum", complete_var=VARIABLE, shell=shell)
    if out is None:
        typer.echo(text)
    else:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, text + "\n")
        typer.echo(f"Written: {out}")


def prepare() -> None:
    """Let Typer answer where a shell asks for completions; else it costs nothing."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init

        completion_init()


def _beginning(names, incomplete: str) -> list[str]:
    """Names that go on from what is typed; of a list with commas, from its last."""
    typed, comma, last = incomplete.rpartition(",")
    return [f"{typed}{comma}{name}" for name in names if name.startswith(last)]


def complete_designs(incomplete: str) -> list[str]:
    """Shipped designs.

    >>> complete_designs("a-float32,c-")
    ['a-float32,c-wang-fp8']
    """
    from softnum.train import design_names

    return _beginning(design_names(), incomplete)


def complete_formats(incomplete: str) -> list[str]:
    """Formats that have a name of their own.

    >>> complete_formats("e4m3")
    ['e4m3', 'e4m3fn', 'e4m3fnuz', 'e4m3b11fnuz']
    """
    from softnum.formats.names import format_names

    return _beginning(format_names(), incomplete)


def complete_units(incomplete: str) -> list[str]:
    """Units of real hardware.

    >>> complete_units("nvidia_v100")
    ['nvidia_v100_fp16']
    """
    from softnum.mac.presets import units

    return _beginning(units(), incomplete)
