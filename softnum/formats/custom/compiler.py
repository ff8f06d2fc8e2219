"""The system's C compiler for users' C: preprocessed text and shared libraries, the latter kept in a cache.

`compile_c` says what a library is kept under: equal text, flags and compiler give the same file, in every process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.runtime.caching import cache_folder
from softnum.runtime.config import get_include

__all__ = ["FLAGS", "RENAMED", "check_syntax", "compile_c", "preprocess"]

#: Users' code reads floats through pointers to integers and lets integers wrap around: both are defined here.
FLAGS = (
    "-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing",
    "-fwrapv", "-Werror=implicit-function-declaration", "-Werror=return-type", "-Werror=int-conversion",
)  # fmt: skip
_INEXACT = re.compile(r"-Ofast|-ffast-math|-funsafe-math-optimizations|-fassociative-math|-freciprocal-math")
#: What is put before the names of users' functions, so that they may be those of C's library.
RENAMED = "softnum_user_"


@lru_cache
def _version(command: tuple[str, ...]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, encoding="utf-8", check=False).stdout


def _command(what: str) -> tuple[str, ...]:
    if sys.platform == "win32":
        raise ValueError(f"{what}: C is compiled on Linux and macOS only; on Windows use WSL, or write it in Python")
    command = tuple(shlex.split(os.environ.get("CC") or "cc"))
    if not command or shutil.which(command[0]) is None:
        raise ValueError(
            f"{what}: the C compiler {' '.join(command)!r} is not found; install one, or name it with the environment "
            "variable CC"
        )
    return command


def _run(what: str, arguments, text: str, name: str = "source.c") -> str:
    """What the compiler prints when it reads the text, which stands for "-"; its complaint is the error's."""
    command = _command(what)
    done = subprocess.run(
        [*command, *map(str, arguments)], input=text, capture_output=True, encoding="utf-8", check=False
    )
    if not done.returncode:
        return done.stdout
    said = done.stderr.replace(RENAMED, "").replace("<stdin>", name).strip()
    missing = re.findall(r"undefined reference to [`'\"](\w+)|^\s*\"_(\w+)\", referenced from", said, re.M)
    if missing:
        names = ", ".join(sorted({a or b for a, b in missing}))
        raise ValueError(f"{what}: called but not defined (nor in the C standard library): {names}\n{said}")
    raise ValueError(f"{what}: the C compiler ({' '.join(command)}) rejected it:\n{said}")


def _checked(cflags, what: str) -> tuple[str, ...]:
    if isinstance(cflags, str):
        raise TypeError(
            f"{what}: cflags must be a sequence of options, got the string {cflags!r}; write {shlex.split(cflags)!r}"
        )
    for flag in cflags:
        if _INEXACT.fullmatch(flag):
            raise ValueError(f"{what}: {flag} lets the compiler change results; remove it from cflags")
    return tuple(cflags)


def preprocess(text: str, *, name: str = "source.c", folder=None, cflags=(), what: str = "C source") -> str:
    """C text after its preprocessor: what `compile_c` takes, with lines named as ``name`` counts them.

    Parameters
    ----------
    text : str
    name : str
        What the compiler calls the text in its messages.
    folder : str or path, optional
        Where ``#include "..."`` looks besides softnum's own headers.
    cflags : sequence of str
        Further options of the compiler.
    what : str
        What errors begin with.

    Returns
    -------
    str
        C with line markers, those of system headers flagged 3.

    Raises
    ------
    ValueError
        If there is no compiler, or it refuses the text; the message is the compiler's.

    Examples
    --------
    >>> from softnum.formats.custom.compiler import preprocess
    >>> "int two = 1 + 1;" in preprocess("#define ONE 1\\nint two = ONE + ONE;")
    True
    """
    includes = [f"-I{part}" for part in (folder, get_include()) if part is not None]
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return _run(
        what, [*FLAGS, *_checked(cflags, what), *includes, "-E", "-x", "c", "-"], f'#line 1 "{quoted}"\n{text}\n', name
    )


def check_syntax(text: str, *, cflags=(), what: str = "C source") -> None:
    """ValueError, with the compiler's message, unless preprocessed text is C.

    >>> from softnum.formats.custom.compiler import check_syntax
    >>> check_syntax("int one(void) { return 1; }")
    """
    _run(what, [*FLAGS, *_checked(cflags, what), "-fsyntax-only", "-x", "cpp-output", "-"], text)


def compile_c(text: str, *, cflags=(), what: str = "C source") -> Path:
    """A shared library of preprocessed C, compiled once and kept in the cache.

    Parameters
    ----------
    text : str
        What `preprocess` returns, and what was added to it. Functions are hidden unless ``#pragma GCC visibility
        push(default)`` precedes them.
    cflags, what
        As in `preprocess`.

    Returns
    -------
    Path
        The library, for `ctypes.CDLL`. Its name is a hash of the text, the flags and the compiler's version, and one of
        its content: it appears whole or not at all, and a damaged one is compiled anew.

    Raises
    ------
    ValueError
        If there is no compiler, it refuses the text, or a function that is called has no body.

    Examples
    --------
    >>> import ctypes
    >>> from softnum.formats.custom.compiler import compile_c, preprocess
    >>> text = preprocess("#pragma GCC visibility push(default)\\nint twice(int a) { return 2 * a; }")
    >>> ctypes.CDLL(compile_c(text)).twice(21)
    42
    """
    flags = (*FLAGS, *_checked(cflags, what))
    command = _command(what)
    key = "\0".join((*command, _version(command), *flags, text))
    folder = cache_folder("c")
    name = _digest(key.encode())
    for kept in sorted(folder.glob(f"{name}-*.so")):
        with contextlib.suppress(OSError):
            if kept.stem == f"{name}-{_digest(kept.read_bytes())}":
                return kept
            kept.unlink()
    linked = ["-dynamiclib"] if sys.platform == "darwin" else ["-shared", "-Wl,-z,defs"]
    try:
        scratch = tempfile.TemporaryDirectory(dir=folder)
    except OSError as error:
        raise ValueError(f"{what}: cannot write to {folder} ({error}); set SOFTNUM_CACHE to another folder") from None
    with scratch:
        target = Path(scratch.name) / "library.so"
        read = ["-x", "cpp-output", "-", "-x", "none"]
        _run(what, [*FLAGS, *read, *linked, "-o", target, *flags[len(FLAGS) :], "-lm"], text)
        content = target.read_bytes()
        path = folder / f"{name}-{_digest(content)}.so"
        write_atomic(path, content)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:40]
