"""Compiled code that outlives the process: under a key that is made of all that it was compiled of.

Numba's own cache tells functions apart by their source file, and pickles what they close over, which is another text
in each process. Here the key is made of the bytecode and the constants of a function, of what it reads from outside,
and of the same of the functions that it calls. Numba unpickles whatever lies in its cache; here a file is opened only
if its seal says that this user wrote it (`softnum.runtime.caching`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import llvmlite
import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from softnum.kernels.host.scalars import Scalar
from softnum.runtime import _core
from softnum.runtime.atomic import write_atomic
from softnum.runtime.caching import cache_folder, sealed, unsealed

__all__ = ["cache_of", "fingerprint"]

_FIXED = {"math", "cmath", "numpy", "numba", "operator"}  # modules whose parts are told by their versions


class _UnknownError(Exception):
    """Something that a function reads, and that cannot be told from something else."""


@lru_cache(maxsize=1)
def _installation() -> str:
    """What all compiled code depends on: versions, and this package's own text."""
    core = Path(_core.__file__).stat()
    own = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    digest = hashlib.sha256(b"\0".join(own)).hexdigest()
    return repr(
        (sys.version, numba.__version__, llvmlite.__version__, np.__version__, core.st_size, core.st_mtime_ns, digest)
    )


def fingerprint(*things) -> str | None:
    """A digest of values and functions, equal in every process; None if one of them cannot be told apart.

    Examples
    --------
    >>> from softnum.kernels.host.cache import fingerprint
    >>> fingerprint(lambda a: a + 1) == fingerprint(lambda b: b + 1), fingerprint(abs) == fingerprint(max)
    (False, False)
    >>> fingerprint(object()) is None
    True
    """
    try:
        text = "\n".join([_installation(), *_parts(things, {})])
    except _UnknownError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _is_fixed(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _FIXED


def _parts(x, seen: dict) -> Iterator[str]:
    if isinstance(x, Scalar):
        if x._identity is None:
            raise _UnknownError(x)
        yield f"{type(x).__name__} {x._identity}"
    elif x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
        yield f"{type(x).__name__} {x!r}"
    elif isinstance(x, np.generic):
        yield f"{x.dtype.str} {x.tobytes().hex()}"
    elif isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
        yield f"array {x.dtype.str} {x.shape} {hashlib.sha256(np.ascontiguousarray(x)).hexdigest()}"
    elif isinstance(x, tuple):
        yield f"tuple {len(x)}"
        for part in x:
            yield from _parts(part, seen)
    elif isinstance(x, CodeType):
        yield f"code {x.co_code.hex()} {x.co_names} {x.co_varnames} {x.co_freevars} {x.co_flags} {x.co_argcount}"
        yield from _parts(x.co_consts, seen)
    elif isinstance(x, ModuleType) and _is_fixed(x.__name__):
        yield f"module {x.__name__}"
    elif isinstance(x, (type, np.ufunc, BuiltinFunctionType)) or _is_fixed(getattr(x, "__module__", None)):
        module = getattr(x, "__module__", None) or "numpy"
        if module != "builtins" and not _is_fixed(module):
            raise _UnknownError(x)
        yield f"{module}.{getattr(x, '__qualname__', x.__class__.__name__)} {getattr(x, '__name__', '')}"
    elif isinstance(x, FunctionType):
        yield from _function(x, seen)
    elif isinstance(getattr(x, "py_func", None), FunctionType):
        yield f"compiled with {sorted(x.targetoptions.items())}"
        yield from _function(x.py_func, seen)
    else:
        raise _UnknownError(x)


def _function(function, seen: dict) -> Iterator[str]:
    if function in seen:
        yield f"function {seen[function]}"
        return
    seen[function] = len(seen)
    yield f"of {function.__module__}"  # compiled code is kept with the name of its module
    yield from _parts(function.__code__, seen)
    yield from _parts(function.__defaults__, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from _parts(function.__globals__[name], seen)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name
        yield from _parts(cell.cell_contents, seen)


def _names(code: CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*(_names(c) for c in inner))


def cache_of(*things) -> NullCache:
    """A dispatcher's cache, of code that is compiled of these things and nothing else.

    It keeps nothing where they cannot be told apart, or where there is no folder to write: the process compiles anew.
    """
    key = fingerprint(*things)
    try:
        return _NoCache() if key is None or not os.access(cache_folder("numba"), os.W_OK) else _DiskCache(key)
    except ValueError:
        return _NoCache()


class _NoCache(NullCache):
    def holds(self, signature) -> bool:
        return False


class _DiskCache(NullCache):
    """For all signatures of a dispatcher: a file each in the cache folder."""

    def __init__(self, key: str) -> None:
        self._key = key

    def _path(self, signature, codegen) -> Path:
        text = f"{self._key} {signature} {codegen.magic_tuple()}"
        return cache_folder("numba") / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.code"

    def holds(self, signature) -> bool:
        """Whether there is compiled code of a signature."""
        return self._path(signature, cpu_target.target_context.codegen()).is_file()

    def load_overload(self, sig, target_context):
        """The compiled function of a signature, or None."""
        target_context.refresh()
        content = unsealed(self._path(sig, target_context.codegen()))
        if content is None:
            return None  # or damaged, or nobody knows whose: it is compiled, and kept, anew
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except (ImportError, AttributeError):
            return None  # of a module that is not here

    def save_overload(self, sig, data) -> None:
        """Keep what was compiled, unless it has addresses of this process in it."""
        if data.library.has_dynamic_globals or data.lifted:
            return
        path = self._path(sig, data.codegen)
        with contextlib.suppress(OSError):  # nowhere to keep it
            write_atomic(path, sealed(path, dumps(data._reduce())))
