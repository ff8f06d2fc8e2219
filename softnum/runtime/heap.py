"""Memory that is freed stays with the process while it trains, so that arrays are made of it again.

glibc gives an array of more than 32 MiB back to the system when it is freed, and the next one consists of pages that
the system has to clear: in evaluations of images, where a layer's outputs are of that size, that took more time than
the arithmetic. Parameters: mallopt(3) of the Linux man-pages; the defaults are those of malloc/malloc.c of glibc 2.36.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["freed_memory_kept"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # mallopt's numbers
_KEPT = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1))
#: glibc's own number of mappings, and the thresholds that it adapts itself to at most
_AFTER = ((_MMAP_MAX, 65536), (_MMAP_THRESHOLD, 32 << 20), (_TRIM_THRESHOLD, 64 << 20))
_lock = threading.Lock()
_users = 0


def _glibc():
    """The C library where it is glibc and nobody has set up its malloc; else None."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return None
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - other libraries have a mallopt that does nothing
        return library if library.mallopt and library.malloc_trim else None
    except (AttributeError, OSError, TypeError):
        return None


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """While this lasts, the process keeps the memory that it frees, and gives back what is left of it at the end.

    It holds for all threads; the last one that leaves ends it. Where the C library is not glibc, or its malloc is set
    up by the environment (``MALLOC_...``, ``GLIBC_TUNABLES``), nothing is changed.

    Examples
    --------
    >>> with freed_memory_kept():
    ...     array = bytearray(1 << 26)
    """
    global _users
    library = _glibc()
    if library is None:
        yield
        return
    with _lock:
        _users += 1
        if _users == 1:
            for parameter, value in _KEPT:
                library.mallopt(parameter, value)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                for parameter, value in _AFTER:
                    library.mallopt(parameter, value)
                library.malloc_trim(0)
