"""Where softnum keeps what it made once and may make again: compiled code, simulators' results, the charts' library.

What lies there is run, so that nobody else may write there. What has to be unpickled (Numba's compiled functions) is
sealed besides: by a key that lies in the folder, readable by its owner alone, without which no file is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
from pathlib import Path

__all__ = ["cache_folder", "sealed", "unsealed"]

_KEY = "key"
_UNMAPPED = 65534  # whose the system's folders are within a user's namespace, as of a container
_LENGTH = 32  # bytes of the key, and of a seal


def cache_folder(part: str = "", *, make: bool = True) -> Path:
    """The folder: SOFTNUM_CACHE, else softnum/ under XDG_CACHE_HOME or ~/.cache.

    Parameters
    ----------
    part : str
        A folder in it.
    make : bool
        Whether it is made, for this user alone, if it is absent.

    Raises
    ------
    ValueError
        If it cannot be made, it is another user's, or others can write to it or replace it.

    Examples
    --------
    >>> from softnum.runtime.caching import cache_folder
    >>> cache_folder().is_dir()
    True
    """
    given = os.environ.get("SOFTNUM_CACHE")
    folder = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "softnum")
    for each in (folder, folder / part) if part else (folder,):
        if make:
            try:
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(f"the cache folder {each} cannot be made ({error}); set SOFTNUM_CACHE") from None
        _check(each)
    return folder / part


def _check(folder: Path) -> None:
    """ValueError if others can put files into a folder, or another folder into its place."""
    if os.name != "posix":
        return
    try:
        real = folder.resolve()
        own = real.stat()
        above = [(each, each.stat()) for each in real.parents]
    except OSError:  # it is not there
        return
    ours = (os.geteuid(), 0)
    if own.st_uid not in ours:
        raise ValueError(f"the cache folder {folder} is another user's, whose code would run; set SOFTNUM_CACHE")
    if own.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(
            f"others can write to the cache folder {folder}, and their code would run: chmod go-w {folder}, or set "
            "SOFTNUM_CACHE"
        )
    for each, found in above:
        if found.st_uid not in (*ours, _UNMAPPED) or (
            found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
        ):
            raise ValueError(
                f"others can replace the cache folder {folder}, as {each} is another user's or theirs to write; set "
                "SOFTNUM_CACHE"
            )


def _key(folder: Path) -> bytes:
    """The key of a folder, made if it has none; OSError if it cannot be, or others can read it."""
    path = folder / _KEY
    if not path.exists():
        made = folder / f".{_KEY}.{os.urandom(4).hex()}.tmp"
        file = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(file, os.urandom(_LENGTH))
            os.close(file)
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.link(made, path)
        finally:
            os.unlink(made)
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        found, key = os.fstat(file), os.read(file, _LENGTH + 1)
    finally:
        os.close(file)
    if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)):
        raise PermissionError(f"{path} is not this user's alone")
    if len(key) != _LENGTH:
        raise OSError(f"{path} is damaged; remove it")
    return key


def _seal(path: Path, content: bytes) -> bytes:
    return hmac.digest(_key(path.parent), path.name.encode() + b"\0" + content, hashlib.sha256)


def sealed(path: Path, content: bytes) -> bytes:
    """What to write into a file of the cache so that `unsealed` takes it from there, and nothing from elsewhere.

    Raises
    ------
    OSError
        If the folder cannot hold a key that only this user reads.
    """
    return _seal(path, content) + content


def unsealed(path: Path) -> bytes | None:
    """The content of such a file; None if there is none, it is damaged, or it was not written here under this name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "one")
    ...     path.write_bytes(sealed(path, b"content")), unsealed(path)
    ...     path.rename(path.with_name("two")).name, unsealed(path.with_name("two"))
    (39, b'content')
    ('two', None)
    """
    try:
        found = path.read_bytes()
        same = hmac.compare_digest(found[:_LENGTH], _seal(path, found[_LENGTH:]))
    except OSError:
        return None
    return found[_LENGTH:] if same else None
