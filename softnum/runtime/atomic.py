"""Files that are written whole or not at all, also where the machine stops.

A file is written under a temporary name in its folder, brought to the disk (fsync), renamed over the old one, and then
the folder is brought to the disk: after a crash its name stands for the old content or for the new one. What a process
that was killed has left, the next one that writes into the folder removes: whoever lives holds a lock on it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no POSIX
    fcntl = None

__all__ = ["atomic_file", "naming", "one_at_a_time", "write_atomic"]

_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # of file systems that cannot be asked
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")
_LEFT_AFTER = 10  # seconds without a change: a younger one may not be locked yet

_tidied: set[Path] = set()  # folders that were looked at


@contextlib.contextmanager
def naming(path: str | os.PathLike) -> Iterator[None]:
    """Let an error of the file system say which file it was, where it does not.

    >>> import errno
    >>> with naming("there"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'there'
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None and not isinstance(error, BrokenPipeError):
            error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator:
    """A binary file for writing that takes its name only when it is complete; "-" is standard output.

    What is not a regular file (a pipe, /dev/null) is written to directly. If the block raises, the old file stays.

    Parameters
    ----------
    path : path-like
        The file to write; of a symbolic link, the file that it leads to.

    Raises
    ------
    FileNotFoundError
        If the folder is absent.
    OSError
        If the file cannot be written; it names it.
    ValueError
        If standard output is meant, and closed.

    Examples
    --------
    >>> import os
    >>> from softnum.runtime.atomic import atomic_file
    >>> with atomic_file(os.devnull) as file:
    ...     file.write(b"anything")
    8
    """
    if os.fspath(path) == "-":
        if sys.stdout is None:
            raise ValueError("standard output is closed; name a file")
        with naming("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with naming(path), open(target, "wb") as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {target.parent}")
    _tidy(target.parent)
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
    with naming(path):
        try:
            with open(temporary, "xb") as file:
                _lock(file)
                yield file
                file.flush()
                _sync(file.fileno())
                os.utime(temporary)  # who tidies up leaves it alone when the lock is gone
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)


@contextlib.contextmanager
def one_at_a_time(path: str | os.PathLike) -> Iterator[None]:
    """What processes do one after another: whoever comes second waits. `path`: an empty file that stays.

    Where there are no locks (Windows, some network file systems), or no such file can be made, nobody waits.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, one_at_a_time(pathlib.Path(folder, ".lock")):
    ...     pass
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(open(path, "ab"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_atomic(path: str | os.PathLike, content: str | bytes) -> None:
    """Write a whole file or nothing, by `atomic_file`. What UTF-8 lacks, as in a path, stands as in JSON: \\udce9.

    Parameters
    ----------
    path : path-like
        The file to write. Its folder is made if it is absent.
    content : str or bytes
        What to write; text is written as UTF-8 with "\\n" line ends.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def _lock(file) -> bool:
    """Lock an open file as long as it is open; whether that could be done at once."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, AttributeError):  # another process has it, or there are no locks here
        return False
    return True


def _tidy(folder: Path) -> None:
    """Remove, once in a process, what killed processes have left in a folder."""
    if folder in _tidied:
        return
    _tidied.add(folder)
    with contextlib.suppress(OSError):
        for found in list(os.scandir(folder)):
            if not _TEMPORARY.fullmatch(found.name):
                continue
            with contextlib.suppress(OSError):
                stale = found.is_file(follow_symlinks=False) and time.time() - found.stat().st_mtime > _LEFT_AFTER
                if stale:
                    with open(found.path, "r+b") as file:
                        if _lock(file):
                            os.unlink(found.path)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as e:
        if e.errno not in _NO_SYNC:
            raise


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder is not opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)
