"""How commands end: exit codes, packages that are missing, places that cannot be written."""

import functools
import importlib.util
import os

import typer

__all__ = ["exit_codes", "need", "writable_file", "writable_folder"]


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
_EXTRAS = {"torch": "torch", "altair": "report", "jinja2": "report", "jsonschema": "report", "vl_convert": "report"}


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
