"""One writer for one record: an exclusive lock, which the operating system drops however its holder ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["FileLock"]

#: Seconds. A worker whose study was killed ends within an iteration; whoever goes on right then waits that long for it.
_PATIENCE, _PAUSE = 2.0, 0.05


class FileLock:
    """An exclusive lock on a file made for that purpose, which is removed with the lock (by the library filelock).

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
        self._lock = None

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        ValueError
            If another process (or another run in this one) holds it, or the file system has no locks.
        OSError
            If the file cannot be made.
        """
        import filelock

        lock = filelock.FileLock(
            self.path, timeout=_PATIENCE, poll_interval=_PAUSE, thread_local=False, fallback_to_soft=False
        )
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise ValueError(f"another process is writing {self.what}; wait for it to end, or stop it") from error
        except OSError as error:
            if error.filename is not None:  # the file cannot be made; else it cannot be locked
                raise
            raise ValueError(
                f"{self.path.parent} is on a file system without locks ({error.strerror}), so two runs could "
                "write one record; use an --out on another disk"
            ) from error
        self._lock = lock

    def release(self) -> None:
        """Give the lock back; does nothing if it is not held."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        if os.name == "posix":  # removed while it is held: no one can have locked it meanwhile
            self.path.unlink(missing_ok=True)
        lock.release()
        with contextlib.suppress(FileNotFoundError, PermissionError):  # Windows keeps what another process has opened
            if os.name != "posix":
                self.path.unlink()
