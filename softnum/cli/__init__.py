"""The command line. Each verb lies in a file of its own and is imported when it is called or listed; what a verb needs
is imported when it runs, so that ``softnum --help`` answers at once.

Exit codes: 0 done, 1 a check failed, 2 unusable input, 130 interrupted, 141 nobody reads the output any more (as in
``| head``), 143 terminated. ``SOFTNUM_DEBUG=1`` shows the traceback behind an error message.
"""

import functools
import importlib
from collections.abc import Iterator, Mapping

import typer
from typer.core import TyperGroup

from softnum.cli.completions import prepare
from softnum.cli.exits import begun, exit_codes, need, writable_file, writable_folder
from softnum.cli.networks import moved_option
from softnum.runtime.plain import PlainEnvironment

__all__ = ["build_app", "exit_codes", "main", "need", "writable_file", "writable_folder"]

#: Verbs in the order of --help, and the module of each, which has a function register(app).
VERBS = {
    "tta": "softnum.cli.tta",
    "study": "softnum.cli.study",
    "report": "softnum.cli.report",
    "estimate": "softnum.cli.estimate",
    "memory": "softnum.cli.memory",
    "parallel": "softnum.cli.parallel",
    "sweep": "softnum.cli.sweep",
    "timings": "softnum.cli.timings",
    "counters": "softnum.cli.counters",
    "workloads": "softnum.cli.programs",
    "traces": "softnum.cli.traces",
    "law": "softnum.cli.law",
    "train": "softnum.cli.train",
    "designs": "softnum.cli.designs",
    "formats": "softnum.cli.formats",
    "units": "softnum.cli.hardware_units",
    "which": "softnum.cli.which",
    "permitted": "softnum.cli.permitted",
    "identify": "softnum.cli.identify",
    "vectors": "softnum.cli.vectors",
    "rtl": "softnum.cli.rtl",
    "schema": "softnum.cli.schema",
    "completions": "softnum.cli.completions",
    "doctor": "softnum.cli.doctor",
}

_HELP = """What a new arithmetic does to neural-network training, before the hardware exists.

A design file (TOML) names a number format and a multiply-add unit for every role of a number. softnum trains a real
network in exactly that arithmetic, takes a simulator's time per iteration, and combines the two into time-to-accuracy.

\b
Start here:
  softnum tta                         compare the shipped designs (two minutes)
  softnum formats e5m2                every value of an 8-bit format
  softnum units nvidia_h100_fp16      what a tensor core computes, and how that is known
  softnum designs c-wang-fp8 --out .  a shipped design to change
  softnum study new study.toml        many networks, designs and seeds from one file
  softnum train mlp --design my.toml  train under a design of your own
  softnum tta --designs a-float32,my.toml --simulate
                                      compare it with float32
  softnum report runs/tta             the result as a page of charts
  softnum vectors --help              test vectors of an RTL design
  softnum rtl --help                  the reference model inside a simulator

Exit codes: 0 done, 1 a check failed, 2 unusable input, 130 interrupted.
"""


class _Commands(Mapping):
    """The commands of the verbs, each made when it is asked for: to make all takes longer than many a verb runs."""

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)

    def __contains__(self, name: object) -> bool:
        return name in VERBS

    def __getitem__(self, name: str):
        if name not in VERBS:
            raise KeyError(name)
        return _command(name)


class _Program(TyperGroup):
    """The group of all verbs: of an option that was a network's parameter it says what stands for it."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        self.commands = _Commands()

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # click's, which typer brings along or depends on
                instead = moved_option(error.option_name)
                if instead is not None and any("--set" in option.opts for option in error.ctx.command.params):
                    error.message = f"No such option: {error.option_name}; give {instead}"
                    error.possibilities = None
            raise


@functools.cache
def _command(name: str):
    """The command of a verb."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    importlib.import_module(VERBS[name]).register(app)
    return typer.main.get_group(app).commands[name]


def build_app() -> typer.Typer:
    """The program, with all its verbs."""
    app = typer.Typer(
        cls=_Program, help=_HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )  # fmt: skip

    @app.callback(invoke_without_command=False)
    def version_option(
        version: bool = typer.Option(False, "--version", is_eager=True, callback=_version, help="Print the version."),
    ) -> None:
        pass

    return app


def _version(wanted: bool) -> None:
    if wanted:
        from softnum.runtime.config import __version__

        typer.echo(f"softnum {__version__}")
        raise typer.Exit(0)


def main() -> None:
    """Run the command line (the ``softnum`` program)."""
    prepare()
    with PlainEnvironment(), begun():  # the environment whatever a preloaded library left
        build_app()(prog_name="softnum")
