"""What this process may have, by ``ulimit``: said before something that ends without a word where it is too little."""

from __future__ import annotations

import os

try:
    import resource
except ImportError:  # no POSIX
    resource = None

__all__ = ["check_address_space", "check_files", "check_memory"]


def _limit(name: str) -> int | None:
    """A limit, or None if there is none."""
    soft = resource.RLIM_INFINITY if resource is None else resource.getrlimit(getattr(resource, name))[0]
    return None if resource is None or soft == resource.RLIM_INFINITY else soft


def check_files(count: int, what: str) -> None:
    """ValueError if this process may not open so many files more.

    >>> check_files(1, "this")
    """
    limit = _limit("RLIMIT_NOFILE")
    if limit is None:
        return
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        used = 3
    if used + count > limit:
        raise ValueError(
            f"{what} needs some {count} open files beside the {used} that are open, and this process may have {limit} "
            f"(ulimit -n); allow it {max(256, used + count)} or more"
        )


def check_address_space(size: int, what: str) -> None:
    """ValueError if this process may not address so many bytes.

    >>> check_address_space(1, "this")
    """
    limit = _limit("RLIMIT_AS")
    if limit is not None and limit < size:
        raise ValueError(
            f"{what} needs {size / 1e9:.0f} GB of addresses (hardly any of them memory), and this process may have "
            f"{limit / 1e9:.1f} GB (ulimit -v); allow it more, or unlimited"
        )


def check_memory(size: int, what: str, way: str) -> None:
    """ValueError if this machine has not so many bytes of memory; `way` says what to do.

    >>> check_memory(1, "this", "ask for less")
    """
    try:
        has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # no POSIX
        return
    if size > has > 0:
        raise ValueError(
            f"{what} need {size:,} bytes ({size / 2**30:,.1f} GiB), and this machine has {has / 2**30:,.1f} GiB of "
            f"memory; {way}"
        )
