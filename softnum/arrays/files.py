"""Arrays in files: NumPy's .npz with the codes, and what their format is. Files appear whole or not at all."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from math import prod

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import native
from softnum.arrays.container import Array
from softnum.formats.annotations import PathLike
from softnum.formats.base import format_of_data
from softnum.runtime.atomic import atomic_file

__all__ = ["load", "save"]

_VERSION = 1
_DESCRIPTION = "softnum"
_BROKEN = (
    KeyError, ValueError, TypeError, EOFError, RuntimeError, NotImplementedError,
    MemoryError, OverflowError, IndexError, AttributeError, SyntaxError, OSError,
)  # fmt: skip


def save(path: PathLike, array: Array | BlockArray) -> None:
    """Write an Array or a BlockArray, or several with names, to a file: .npz, with the parameters of the format beside
    the encodings.

    The file is written atomically. It contains no pickle; ``np.load`` reads its encodings. The same arrays give the
    same bytes.

    Parameters
    ----------
    path : path-like
        The path of the file; no extension is added.
    array : Array or BlockArray, or dict of str to them

    Raises
    ------
    TypeError
        If it is something else; write an ndarray with ``np.save``.

    Examples
    --------
    >>> import softnum as sn, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.npz")
    >>> sn.save(path, {"w": sn.array([0.5, 3.0], "e4m3fn"), "b": sn.array(0.25, "q4.4")})
    >>> sn.load(path)
    {'w': Array([0.5, 3. ], e4m3fn), 'b': Array(0.25, q4.4)}
    """
    named = array if isinstance(array, Mapping) else {None: array}
    for name, value in named.items():
        if not isinstance(value, (Array, BlockArray)) or not (isinstance(name, str) or value is array):
            what = f"a dict with {name!r}: {type(value).__name__}" if value is not array else f"{type(value).__name__}"
            raise TypeError(f"save takes an Array, or a dict of str to Array, got {what}")
    arrays = [{"name": name, "format": value.format.to_data(), **_blocking(value)} for name, value in named.items()]
    text = json.dumps({"version": _VERSION, "arrays": arrays}, indent=1)
    members = {f"codes{i}": native(value.codes) for i, value in enumerate(named.values())}
    members |= {f"scales{i}": native(v.scales) for i, v in enumerate(named.values()) if isinstance(v, BlockArray)}
    with atomic_file(os.path.abspath(path)) as file:
        np.savez(file, **{_DESCRIPTION: np.frombuffer(text.encode(), np.uint8)}, **members)


def _blocking(value) -> dict:
    if not isinstance(value, BlockArray):
        return {}
    return {
        "axis": value.axis,
        "tensor_scale": None if value.tensor_scale is None else float(value.tensor_scale).hex(),
    }


def load(path: PathLike) -> Array | BlockArray:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Array or BlockArray, or dict of str to them, as it was saved

    Raises
    ------
    ValueError
        If the file was not written by `save`, was written by a later version, or is damaged. Reading never allocates
        more than the size of the file, and formats are read as data: nothing in the file is executed.

    Examples
    --------
    >>> import softnum as sn, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npz")
    >>> sn.save(path, sn.array([1.0, 2.5], "e5m2"))
    >>> sn.load(path)
    Array([1. , 2.5], e5m2)
    """
    import zipfile  # takes milliseconds of `import softnum` otherwise
    import zlib

    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_sizes(archive, os.fstat(file.fileno()).st_size)
                return _arrays_in(archive)
        except _Unusable as error:
            raise ValueError(f"{path}: {error}") from None
        except (zipfile.BadZipFile, zlib.error, *_BROKEN) as error:
            raise ValueError(f"{path}: not a complete file of softnum.save ({error})") from error


class _Unusable(Exception):
    """A file that is whole, but not for `load`."""


def _check_sizes(archive, size: int) -> None:
    """ValueError of an archive that is larger inside than outside: `save` compresses nothing."""
    members = archive.infolist()
    if any(member.compress_type for member in members):
        raise ValueError("a member is compressed")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its members overlap")


def _member(archive, name: str) -> np.ndarray:
    content = archive.read(name + ".npy")  # read whole, so that its checksum is looked at
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = reader(stream)
    size = prod(shape) * dtype.itemsize  # else room would be made for what is not there
    if not dtype.hasobject and size != len(content) - stream.tell():
        raise ValueError(f"the length of {name} is not the one that its header states")
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _arrays_in(archive):
    if f"{_DESCRIPTION}.npy" not in archive.namelist():
        raise _Unusable("not written by softnum.save")
    description = json.loads(_member(archive, _DESCRIPTION).tobytes())
    if description["version"] != _VERSION:
        raise _Unusable(f"written as version {description['version']}; this softnum reads version {_VERSION}")
    named = {}
    for i, entry in enumerate(description["arrays"]):
        fmt, codes = format_of_data(entry["format"]), _member(archive, f"codes{i}")
        if "axis" in entry:
            tensor = entry["tensor_scale"]
            tensor = None if tensor is None else float.fromhex(tensor)
            named[entry["name"]] = BlockArray(codes, _member(archive, f"scales{i}"), fmt, entry["axis"], tensor)
            continue
        if codes.dtype.newbyteorder("=") != fmt.storage_dtype:
            raise ValueError(f"encodings of {fmt} are {fmt.storage_dtype}, not {codes.dtype}")
        named[entry["name"]] = Array(codes, fmt)
    return named.get(None, named)
