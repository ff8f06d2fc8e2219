"""Files that are written whole or not at all, also where the machine stops.

A file is written under a temporary name in its folder, brought to the disk (fsync), renamed over the old one, and then
the folder is brought to the disk: after a crash its name stands for the old content or for the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["atomic_file", "write_atomic"]

_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # of file systems that cannot be asked


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
        If the file cannot be written.

    Examples
    --------
    >>> import os
    >>> from softnum.runtime.atomic import atomic_file
    >>> with atomic_file(os.devnull) as file:
    ...     file.write(b"anything")
    8
    """
    if os.fspath(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {target.parent}")
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            _sync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write_atomic(path: str | os.PathLike, content: str | bytes) -> None:
    """Write a whole file or nothing, by `atomic_file`.

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
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


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
