"""Threads over long arrays. What an element becomes never depends on how many there are."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

__all__ = ["default_threads", "for_ranges", "pool"]

_BLOCK = 4096  # elements; a multiple of the kernels' blocks of random words
_PIECES = 8  # ranges for each thread


@lru_cache(maxsize=8)
def pool(threads: int) -> ThreadPoolExecutor:
    """A pool of that many threads, made once."""
    return ThreadPoolExecutor(threads, thread_name_prefix="softnum")


if hasattr(os, "register_at_fork"):  # a forked child has no threads
    os.register_at_fork(after_in_child=pool.cache_clear)


def default_threads() -> int:
    """How many threads a long computation takes: SOFTNUM_THREADS, else the CPUs that this process may use.

    Raises ValueError if SOFTNUM_THREADS is no positive integer.

    >>> from softnum.threads import default_threads
    >>> default_threads() >= 1
    True
    """
    text = os.environ.get("SOFTNUM_THREADS")
    if text:
        if not (text.isascii() and text.isdecimal() and int(text) > 0):
            raise ValueError(f"SOFTNUM_THREADS must be a positive integer, got {text!r}")
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None, most: int) -> int:
    """`threads` as given; else the default, but at most `most`."""
    if threads is None:
        return max(1, most if most < 2 else min(default_threads(), most))
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive integer, got {threads!r}")
    return threads


def for_ranges(n: int, work, threads: int | None, grain: int) -> int:
    """work(start, stop) over ranges that cover 0..n; the OR of what it returns.

    At most one thread for each `grain` elements, or `threads`, if n has as many blocks. Whoever is free takes the next
    range, this thread among them: it does not wait for the others to wake up.
    """
    count = min(thread_count(threads, n // grain), -(-n // _BLOCK))
    if count <= 1:
        return work(0, n) or 0
    blocks = -(-n // _BLOCK)
    pieces = min(blocks, _PIECES * count)
    edges = [min(n, i * blocks // pieces * _BLOCK) for i in range(pieces + 1)]
    left = deque(pairwise(edges))

    def take() -> int:
        result = 0
        while left:
            try:
                start, stop = left.popleft()
            except IndexError:  # another thread was faster
                break
            result |= work(start, stop) or 0
        return result

    others = [pool(count - 1).submit(take) for _ in range(count - 1)]
    try:
        result = take()
    finally:  # whatever happens here, nobody writes into the caller's array once it returns
        left.clear()
        results = [other.result() for other in others if not other.cancel()]
    for value in results:
        result |= value
    return result
