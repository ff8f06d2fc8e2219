"""One writer for one record: an exclusive lock, which the operating system drops however its holder ends."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

__all__ = ["FileLock"]

#: A worker whose study was killed ends within an iteration; whoever goes on right then waits that long for it.
_TRIES, _PAUSE = 40, 0.05
_BUSY = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class FileLock:
    """An exclusive lock on a file made for that purpose, which is removed with the lock.

    Parameters
    ----------
    path : pathlib.Path
        The lock's file, in a folder that exists.
    what : str
        What it protects, for the error message.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = FileLock(pathlib.Path(folder, ".record.lock"), "the record")
    ...     lock.acquire()
    ...     lock.release()
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        ValueError
            If another process (or another run in this one) holds it, or the file system has no locks.
        OSError
            If the file cannot be made.
        """
        for last in (False,) * (_TRIES - 1) + (True,):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                _lock(handle)
                # the holder before may have removed the file between our open and our lock
                current = fcntl is None or _same_file(handle, self.path)
            except OSError as error:
                os.close(handle)
                if error.errno not in _BUSY:
                    raise ValueError(
                        f"{self.path.parent} is on a file system without locks ({error.strerror}), so two runs could "
                        "write one record; use an --out on another disk"
                    ) from error
            else:
                if current:
                    self._handle = handle
                    return
                os.close(handle)
            if not last:
                time.sleep(_PAUSE)
        raise ValueError(f"another process is writing {self.what}; wait for it to end, or stop it")

    def release(self) -> None:
        """Give the lock back; does nothing if it is not held."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        if fcntl is not None:  # removed while it is held: no one can have locked it meanwhile
            self.path.unlink(missing_ok=True)
            os.close(handle)
            return
        os.close(handle)
        try:
            self.path.unlink(missing_ok=True)
        except PermissionError:  # Windows keeps a file that another process has opened; it removes it then
            return


def _lock(handle: int) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
