"""How commands begin and end: streams, signals, exit codes, missing packages, places that cannot be written."""

import codecs
import contextlib
import functools
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator

import typer

from softnum.runtime.notices import tell_what_runs

__all__ = ["begun", "exit_codes", "need", "writable_file", "writable_folder"]

INTERRUPTED, CUT_OFF, TERMINATED = 130, 141, 143  # 128 and the signal's number, as shells tell of other programs


class Terminated(KeyboardInterrupt):
    """SIGTERM: what is at work ends as after Ctrl-C, and tidies up."""


@contextlib.contextmanager
def begun() -> Iterator[None]:
    """What a program does once: any text can be written, closed streams keep their numbers, SIGTERM is heard, and it is
    said whose code runs."""
    codecs.register_error("softnum", _written)
    for number in range(3):  # else the next file that is opened is what others take for standard output
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="softnum")
    before = signal.signal(signal.SIGTERM, _terminate)
    end = tell_what_runs(lambda what: typer.echo(f"softnum: runs code of yours: {what}", err=True))
    try:
        yield
    finally:
        end()
        signal.signal(signal.SIGTERM, before)


def _written(error: UnicodeError) -> tuple[bytes, int]:
    """Of characters that an encoding lacks: a question mark, or the byte of a file name that stands for itself."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return bytes(ord(c) - 0xDC00 if 0xDC80 <= ord(c) <= 0xDCFF else ord("?") for c in text), error.end


def _terminate(*_) -> None:
    raise Terminated


def _cut_off() -> typer.Exit:
    """Nobody reads standard output any more, as in ``| head``."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # what Python holds for it must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return typer.Exit(CUT_OFF)


def exit_codes(verb):
    """Turn what a verb raises into one line on stderr and an exit code.

    Parameters
    ----------
    verb : callable
        A typer command. ValueError, OSError and MemoryError mean unusable input: code 2. KeyboardInterrupt: 130;
        SIGTERM: 143; a standard output that nobody reads any more: 141, and no message. Anything else is a defect of
        softnum and keeps its traceback.

    Returns
    -------
    callable
        A command with the same signature.
    """

    @functools.wraps(verb)
    def wrapped(*args, **kwargs):
        try:
            result = verb(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise _cut_off() from None
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):  # rich's, which makes it 1
                raise _cut_off() from None
            raise
        except (ValueError, OSError, MemoryError) as error:
            if os.environ.get("SOFTNUM_DEBUG"):
                raise
            what = "there is not enough memory" if isinstance(error, MemoryError) else error
            typer.echo(f"softnum: error: {what}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt as how:
            typer.echo("softnum: interrupted; what is finished is kept, the same command goes on from there", err=True)
            raise typer.Exit(TERMINATED if isinstance(how, Terminated) else INTERRUPTED) from None

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
