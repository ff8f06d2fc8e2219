"""What a design names that is the user's own: formats, units' functions and operators, in files or modules.

"my_formats.py:posit8"    an object of a Python file; the path is relative to the design
"my_package.formats:lns"  an object of an importable module
"my_fp.c:new_fp"          of a C file, a type (where a format is named) or a function (where a unit's is)
"plan_tanh.tile"          an operator in the Tile language
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softnum.formats.blocks import format
from softnum.formats.custom.formats import CustomFormat
from softnum.mac.mad import Unit
from softnum.runtime.notices import about_to_run
from softnum.tile.operators import operator

__all__ = [
    "UnitFunction", "checksum", "describe_format", "file_of", "load_format", "load_object", "load_operator",
    "load_unit_function",
]  # fmt: skip

_SHIPPED = Path(__file__).resolve().parent / "shipped"  # designs of softnum's own


def load_object(text: str, folder: Path, in_c: Callable[[Path, str], object] | None = None):
    """Return the object that ``"file.py:name"`` (in a folder), ``"file.c:name"`` or ``"module:name"`` stands for.

    Parameters
    ----------
    text : str
        What stands before the colon is a file's path, relative to ``folder``, if it ends in ``.py`` or ``.c``; else the
        name of an importable module.
    folder : pathlib.Path
        Where relative files lie.
    in_c : callable, optional
        Makes the object of a C file, from the file and the name.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the text is of another form, the module cannot be imported or has no such object, the C is unusable, or
        nothing in C is wanted here.
    """
    source, _, name = text.rpartition(":")
    if not source or not name:
        raise ValueError(f"{text!r} is not of the form 'file.py:object', 'file.c:object' or 'module:object'")
    file = file_of(text, folder)
    if file is not None and not file.is_file():
        raise FileNotFoundError(f"no file {str(file)!r}")
    if source.endswith(".c") and in_c is None:
        raise ValueError(f"{text!r}: expected an object of a Python file or module, not of a C file")
    if file is None or file.resolve().parent != _SHIPPED:
        about_to_run(f"the module {source}" if file is None else str(file))
    if source.endswith(".c"):
        return in_c(file, name)
    module = _from_name(source) if file is None else _from_file(file)
    if not hasattr(module, name):
        raise ValueError(f"{source} has no object {name!r}")
    return getattr(module, name)


def load_format(text: str, folder: Path):
    """Return the format of a name: one of softnum's, or as `load_object` takes it; of a C file, a type's.

    >>> load_format("e5m2", Path())
    FloatFormat(5, 2, name='e5m2')
    """
    return load_object(text, folder, _format_in_c) if ":" in text else format(text)


def _format_in_c(file: Path, name: str):
    return _compiled_format(file, name, file.read_bytes())


@functools.lru_cache(maxsize=64)
def _compiled_format(file: Path, name: str, content: bytes):
    """The roles of a design name a format again and again; its source is compiled and tried once."""
    return CustomFormat.from_c(file, type_name=name, name=name)


@dataclass(frozen=True)
class UnitFunction:
    """What a custom unit computes with.

    Parameters
    ----------
    source : str
        As the design wrote it.
    value : callable, Unit or pathlib.Path
        The object of a Python file or module; of C, the file.
    content : bytes
        Of a file in C, which may change.
    """

    source: str
    value: Any
    content: bytes = b""


def load_unit_function(text: str, folder: Path) -> UnitFunction:
    """Return the function, or the unit, that `load_object` finds; of a C file, its name and content."""
    value = load_object(text, folder, lambda file, name: file)
    if isinstance(value, Path):
        return UnitFunction(text, value, value.read_bytes())
    if not (callable(value) or isinstance(value, Unit)) or isinstance(value, type):
        raise ValueError(f"{text!r} must be a function or a unit, got {type(value).__name__}")
    return UnitFunction(text, value)


def load_operator(text: str, folder: Path):
    """Return the operator of a Tile file, or the object that `load_object` finds.

    Raises
    ------
    FileNotFoundError, ValueError
        As of `load_object`; and if the file is no valid Tile, with line, column and a caret.
    """
    if not text.endswith(".tile"):
        return load_object(text, folder)
    file = file_of(text, folder)
    if not file.is_file():
        raise FileNotFoundError(f"no file {str(file)!r}")
    return operator(file)


def file_of(text: str, folder: Path) -> Path | None:
    """The file that a design's text names, or None if it names a module.

    >>> file_of("posit8.py:posit8", Path("designs")).as_posix(), file_of("numpy:float32", Path())
    ('designs/posit8.py', None)
    """
    source = text if text.endswith(".tile") else text.rpartition(":")[0]
    return folder / source if source.endswith((".py", ".c", ".tile")) else None


def checksum(text: str, folder: Path) -> str | None:
    """SHA-256 of the file that a design's text names, or of its module's; None of a module without a file."""
    file = file_of(text, folder)
    if file is None:
        origin = getattr(sys.modules.get(text.rpartition(":")[0]), "__file__", None)
        if origin is None:
            return None
        file = Path(origin)
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _from_name(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"module {name!r} cannot be imported: {error}") from error


def _from_file(file: Path):
    file = file.resolve()
    # The name depends on path and content, so an edited file is never mistaken for the one read before.
    source = file.read_bytes()
    digest = hashlib.sha256(str(file).encode() + b"\0" + source).hexdigest()[:16]
    name = f"softnum_design_{file.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # not the loader's exec_module: bytecode is told apart by size and second alone, and lies in the user's folder
        exec(spec.loader.source_to_code(source, str(file)), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception):
            raise ValueError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
        raise
    return module


def describe_format(fmt, source: str) -> dict:
    """A format as plain data: its name and width, and of the user's own up to 16 bits a checksum of all values.

    The width of a block format is that of an element and its share of a scale; its parts follow.

    >>> import softnum
    >>> describe_format(softnum.format("e5m2"), "e5m2")
    {'format': 'e5m2', 'bits': 8}
    >>> describe_format(softnum.format("mxfp4"), "mxfp4")
    {'format': 'mxfp4_e2m1', 'bits': 4.25, 'element': 'e2m1fn', 'scale': 'e8m0fnu', 'block_size': 32}
    """
    return fmt.summary(source)
