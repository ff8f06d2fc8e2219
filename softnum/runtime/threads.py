"""Threads over long arrays. What an element becomes never depends on how many there are."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextvars import ContextVar
from itertools import pairwise

from softnum.runtime._core import Gate, PlainEnvironment

__all__ = ["chosen_threads", "default_threads", "for_each", "for_ranges", "thread_count", "threads_by_default"]

_BLOCK = 4096  # elements; a multiple of the kernels' blocks of random words
_PIECES = 8  # ranges for each thread, at least
_GRAINS = 4  # of a range, at most: between two of them this thread hears Ctrl-C
_SPIN = 200_000  # nanoseconds that a thread waits awake for the next job: to wake one from sleep takes half as long
_WINK = 50_000_000  # nanoseconds, after which this thread looks whether the user interrupts
_NIGHT = 3_600_000_000_000  # nanoseconds that another one sleeps at a time

_chosen: ContextVar[int | None] = ContextVar("threads", default=None)


class _Job:
    """Pieces of work, of which whoever is free takes the next."""

    def __init__(self, pieces, work, helpers: int) -> None:
        self.left, self.work, self.helpers = deque(pieces), work, helpers
        self.results: list[int] = []
        self.errors: list[BaseException] = []
        self.entered: list[None] = []  # a list's append is atomic
        self.gone: list[None] = []

    def take(self) -> None:
        while self.left:
            try:
                piece = self.left.popleft()
            except IndexError:  # another thread was faster
                return
            self.results.append(self.work(*piece) or 0)


class _Team:
    """Threads that wait for jobs, and the one that gives them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begin, self.end = Gate(), Gate()
        self.job: _Job | None = None
        self.members = 0
        self.spin = 0

    def _serve(self, index: int, seen: int) -> None:
        with PlainEnvironment():  # a thread begins in the environment of the one that starts it
            self._serve_on(index, seen)

    def _serve_on(self, index: int, seen: int) -> None:
        while True:
            seen = self.begin.wait(seen, self.spin, _NIGHT)
            job = self.job
            if job is None or index > job.helpers:
                continue
            job.entered.append(None)
            try:
                job.take()
            except BaseException as error:  # raised again where the job was given
                job.errors.append(error)
                job.left.clear()
            job.gone.append(None)
            self.end.raise_()

    def run(self, job: _Job) -> None:
        """Do the job with its helpers. Returns, or raises, when nobody works on it any more."""
        while self.members < job.helpers:
            self.members += 1
            arguments = (self.members, self.begin.count)
            threading.Thread(target=self._serve, args=arguments, name="softnum", daemon=True).start()
        self.spin = _SPIN if self.members < _cpus() else 0
        self.job = job
        self.begin.raise_()
        try:
            job.take()
        finally:  # whatever happens here, nobody writes into the caller's array once it returns
            job.left.clear()
            self.job = None
            interrupted = self._wait_for(job)
        if interrupted or job.errors:
            raise interrupted or job.errors[0]

    def _wait_for(self, job: _Job) -> BaseException | None:
        interrupted = None
        while True:
            try:
                seen = self.end.count
                if len(job.gone) == len(job.entered):
                    return interrupted
                self.end.wait(seen, _SPIN, _WINK)
            except BaseException as error:  # Ctrl-C, most likely: first the others must end
                interrupted = error


_team = _Team()


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _renew() -> None:
    global _team
    _team = _Team()


if hasattr(os, "register_at_fork"):  # a forked child has no threads
    os.register_at_fork(after_in_child=_renew)


def chosen_threads() -> int | None:
    """What the innermost `threads_by_default` says; None outside.

    >>> with threads_by_default(3):
    ...     chosen_threads()
    3
    """
    return _chosen.get()


def default_threads() -> int:
    """How many threads a long computation takes: SOFTNUM_THREADS, else the CPUs that this process may use.

    Within `threads_by_default`, what that says. Raises ValueError if SOFTNUM_THREADS is no positive integer.

    >>> from softnum.runtime.threads import default_threads
    >>> default_threads() >= 1
    True
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    text = os.environ.get("SOFTNUM_THREADS")
    if text:
        if not (text.isascii() and text.isdecimal() and int(text) > 0):
            raise ValueError(f"SOFTNUM_THREADS must be a positive integer, got {text!r}")
        return int(text)
    return _cpus()


class threads_by_default:
    """Within the context, in this thread, computations that are not told otherwise take at most so many threads.

    >>> with threads_by_default(3):
    ...     default_threads()
    3
    """

    __slots__ = ("threads", "token")

    def __init__(self, threads: int) -> None:
        self.threads = thread_count(threads, 1)

    def __enter__(self) -> None:
        self.token = _chosen.set(self.threads)

    def __exit__(self, *error) -> None:
        _chosen.reset(self.token)


def thread_count(threads: int | None, most: int) -> int:
    """`threads` as given; else the default, but at most `most`."""
    if threads is None:
        return max(1, most if most < 2 else min(default_threads(), most))
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive integer, got {threads!r}")
    return threads


def for_each(pieces: list[tuple], work, threads: int) -> int:
    """work(*piece) for every piece, by so many threads, this one among them; the OR of what it returns."""
    if len(pieces) == 1:
        return work(*pieces[0]) or 0
    team = _team
    job = _Job(pieces, work, min(threads, len(pieces)) - 1)
    if job.helpers < 1 or not team.lock.acquire(blocking=False):  # another thread's job has the team: do this one here
        job.take()
    else:
        try:
            team.run(job)
        finally:
            team.lock.release()
    result = 0
    for value in job.results:
        result |= value
    return result


def for_ranges(n: int, work, threads: int | None, grain: int) -> int:
    """work(start, stop) over ranges that cover 0..n; the OR of what it returns.

    At most one thread for each `grain` elements, or `threads`, if n has as many blocks. Whoever is free takes the next
    range, this thread among them: it does not wait for the others to wake up. Where the user interrupts, what is left
    is not done.
    """
    blocks = -(-n // _BLOCK)
    count = min(thread_count(threads, n // grain), blocks)
    if count <= 1 and n <= _GRAINS * grain:
        return work(0, n) or 0
    pieces = min(blocks, max(_PIECES * count if count > 1 else 1, -(-n // (_GRAINS * grain))))
    edges = [min(n, i * blocks // pieces * _BLOCK) for i in range(pieces + 1)]
    return for_each(list(pairwise(edges)), work, count)
