"""The command line. Each verb lies in a file of its own and is imported when the program is built; what a verb needs is
imported when it runs, so that ``softnum --help`` answers at once.

Exit codes: 0 done, 1 a check failed, 2 unusable input, 130 interrupted. ``SOFTNUM_DEBUG=1`` shows the traceback behind
an error message.
"""

import functools
import importlib
import importlib.util
import os

import typer

__all__ = ["build_app", "exit_codes", "main", "need", "writable_file", "writable_folder"]

#: Verbs in the order of --help: softnum.cli.<verb> has a function register(app).
VERBS = (
    "tta",
    "study",
    "report",
    "estimate",
    "memory",
    "parallel",
    "sweep",
    "timings",
    "train",
    "designs",
    "formats",
    "units",
    "vectors",
    "rtl",
)

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


def exit_codes(verb):
    """Turn what a verb raises into one line on stderr and an exit code.

    Parameters
    ----------
    verb : callable
        A typer command. ValueError and OSError mean unusable input: code 2. KeyboardInterrupt: 130. Anything else is a
        defect of softnum and keeps its traceback.

    Returns
    -------
    callable
        A command with the same signature.
    """

    @functools.wraps(verb)
    def wrapped(*args, **kwargs):
        try:
            return verb(*args, **kwargs)
        except (ValueError, OSError) as error:
            if os.environ.get("SOFTNUM_DEBUG"):
                raise
            typer.echo(f"softnum: error: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("softnum: interrupted; what is finished is kept, the same command goes on from there", err=True)
            raise typer.Exit(130) from None

    return wrapped


#: Modules that are not called as their packages are, and those that another extra than [train] brings.
_PACKAGES = {"sklearn": "scikit-learn", "vl_convert": "vl-convert-python"}
_EXTRAS = {"altair": "report", "jinja2": "report", "jsonschema": "report", "vl_convert": "report"}


def need(*modules: str) -> None:
    """Raise ValueError, with what to type, unless the packages of an extra are there.

    >>> need("json")
    """
    missing = []
    for name in modules:
        try:
            found = importlib.util.find_spec(name)
        except ImportError:
            found = None
        if found is None:
            missing.append(name)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        names = ", ".join(_PACKAGES.get(name, name) for name in missing)
        extras = ",".join(dict.fromkeys(_EXTRAS.get(name, "train") for name in missing))
        raise ValueError(f"{names} {verb} not installed: pip install 'softnum[{extras}]'")


def writable_folder(path) -> None:
    """Raise ValueError, naming ``--out``, unless a folder is or can be made at a path and written."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"--out {path} is a file; name a folder")
    _writable(path, next(part for part in (path, *path.absolute().parents) if part.exists()))


def writable_file(path) -> None:
    """Raise ValueError, naming ``--out``, unless a file can be written at a path."""
    if path.is_dir():
        raise ValueError(f"--out {path} is a folder; name a file in it")
    _writable(path, next(part for part in path.absolute().parents if part.exists()))


def _writable(path, folder) -> None:
    if not folder.is_dir():
        raise ValueError(f"--out {path} cannot be made: {folder} is a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"--out {path} cannot be written: no permission in {folder}; name another place")


def build_app() -> typer.Typer:
    """The program, with all its verbs."""
    app = typer.Typer(
        help=_HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )

    @app.callback(invoke_without_command=False)
    def version_option(
        version: bool = typer.Option(False, "--version", is_eager=True, callback=_version, help="Print the version."),
    ) -> None:
        pass

    for verb in VERBS:
        importlib.import_module(f"softnum.cli.{verb}").register(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        import softnum

        typer.echo(f"softnum {softnum.__version__}")
        raise typer.Exit(0)


def main() -> None:
    """Run the command line (the ``softnum`` program)."""
    build_app()(prog_name="softnum")
