"""Objects that a design names: ``"file.py:object"`` next to the design, or ``"module:object"``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np

import softnum as sn

__all__ = ["describe_format", "load_object"]


def load_object(text: str, folder: Path):
    """Return the object that ``"file.py:name"`` (in a folder) or ``"module:name"`` stands for.

    Parameters
    ----------
    text : str
        What stands before the colon is a Python file's path, relative to ``folder``, if it ends in ``.py``; else the
        name of an importable module.
    folder : pathlib.Path
        Where relative files lie.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the module cannot be imported or has no such object.
    """
    source, _, name = text.rpartition(":")
    if not source or not name:
        raise ValueError(f"{text!r} is not of the form 'file.py:object' or 'module:object'")
    if source.endswith(".c"):
        raise ValueError(f"{text!r}: formats written in C are not read yet; give the values by CustomFormat.from_table")
    module = _from_file((folder / source).resolve()) if source.endswith(".py") else _from_name(source)
    if not hasattr(module, name):
        raise ValueError(f"{source} has no object {name!r}")
    return getattr(module, name)


def _from_name(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"module {name!r} cannot be imported: {error}") from error


def _from_file(file: Path):
    if not file.is_file():
        raise FileNotFoundError(f"no file {str(file)!r}")
    # The name depends on path and content, so an edited file is never mistaken for the one read before.
    digest = hashlib.sha256(str(file).encode() + b"\0" + file.read_bytes()).hexdigest()[:16]
    name = f"softnum_design_{file.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception):
            raise ValueError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
        raise
    return module


def describe_format(fmt, source: str) -> dict:
    """A format as plain data: its name and width, and for a table of values a checksum of the values.

    >>> import softnum
    >>> describe_format(softnum.format("e5m2"), "e5m2")
    {'format': 'e5m2', 'bits': 8}
    """
    if getattr(fmt, "kind", None) in ("float", "fixed"):
        return {"format": str(fmt), "bits": fmt.bits}
    codes = np.arange(2**fmt.bits, dtype=fmt.storage_dtype)
    values = np.ascontiguousarray(sn.decode(codes, fmt), dtype="<f8")
    return {
        "format": source or str(getattr(fmt, "name", fmt)),
        "bits": fmt.bits,
        "values_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }
