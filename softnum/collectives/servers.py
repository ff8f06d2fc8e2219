"""Parameter servers: which worker's gradient is applied when, and how old the weights are that it was computed from.

Weights have versions: version t has had t updates. Each worker reads a version, computes a gradient and sends it; the
server applies gradients one by one, as they come. What comes when is stated in ticks, whole numbers, so that the order,
and with it every bit of a training, does not depend on the machine that computes it.
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral

from softnum.arrays.streams import Stream
from softnum.mac.expressions import evaluated

__all__ = ["Asynchronous", "Delayed", "Server", "StaleSynchronous", "Update", "server"]

_WORDS = 256  # random words of a worker that are made at once
_MOST = 1 << 20


@dataclass(frozen=True)
class Update:
    """One update of the weights.

    Parameters
    ----------
    worker : int
        Whose gradient it applies.
    version : int
        Of the weights that the gradient was computed from.
    ticks : int
        That the worker took for it.
    held : tuple of int
        Versions from which gradients are computed that come after this update.
    """

    worker: int
    version: int
    ticks: int
    held: tuple[int, ...]


@dataclass(frozen=True)
class Server:
    """What every server has: a name and an order of updates."""

    name = ""

    def __str__(self) -> str:
        told = [
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)
            if getattr(self, f.name) != f.default or f.name == _REQUIRED.get(self.name)
        ]  # fmt: skip
        return f"{self.name}({', '.join(told)})" if told else self.name

    def check(self, workers: int) -> None:
        """ValueError unless so many workers can be served."""
        raise NotImplementedError

    def updates(self, workers: int) -> Iterator[Update]:
        """The updates 1, 2, ... of so many workers, without end."""
        raise NotImplementedError

    def base(self, workers: int) -> int:
        """The least ticks that a gradient takes: of a worker as fast as the device that is timed."""
        return 1


@dataclass(frozen=True)
class Delayed(Server):
    """Workers take turns, and each computes from weights that lack the last updates, a fixed number of them.

    Parameters
    ----------
    by : int or sequence of int
        How many updates, from 0 to workers - 1; of each worker its own. Fewer in the first updates.

    References
    ----------
    M. Zinkevich, A. Smola and J. Langford, "Slow learners are fast", NeurIPS 2009.

    Examples
    --------
    >>> from itertools import islice
    >>> [(u.worker, u.version) for u in islice(Delayed(by=2).updates(3), 6)]
    [(0, 0), (1, 0), (2, 0), (0, 1), (1, 2), (2, 3)]
    """

    by: int | tuple[int, ...] = 1
    name = "delayed"

    def check(self, workers: int) -> None:
        """ValueError unless the delays are those of so many workers."""
        for delay in _each("by", self.by, workers, 0):
            if delay > workers - 1:
                raise ValueError(
                    f"server: by={delay} is more than {workers} workers have, each of which reads no weights older "
                    f"than its own last update; state 0 to {workers - 1}, or more workers"
                )

    def updates(self, workers: int) -> Iterator[Update]:
        """In turn."""
        self.check(workers)
        delays, t = _each("by", self.by, workers, 0), 0
        while True:
            later = range(t + 1, t + workers)  # those that others have under way, or may have
            held = {max(0, n - delays[n % workers]) for n in later}
            yield Update(t % workers, max(0, t - delays[t % workers]), 1, tuple(sorted(v for v in held if v <= t)))
            t += 1


@dataclass(frozen=True)
class Asynchronous(Server):
    """Nobody waits: a worker's gradient is applied when it comes, and the worker goes on from the weights with it.

    Gradients that come at the same tick are applied by the number of the worker.

    Parameters
    ----------
    periods : int or sequence of int
        Ticks that a gradient takes; of each worker its own.
    spread : int
        Each gradient takes 0 to so many ticks more, uniformly: word * (spread + 1) >> 32, of word i of the Stream
        (seed, worker) for the worker's gradient i.
    seed : int

    References
    ----------
    J. Dean et al., "Large scale distributed deep networks", NeurIPS 2012 (Downpour SGD).

    Examples
    --------
    >>> from itertools import islice
    >>> [(u.worker, u.version) for u in islice(Asynchronous(periods=(2, 2, 5)).updates(3), 8)]
    [(0, 0), (1, 0), (0, 1), (1, 2), (2, 0), (0, 3), (1, 4), (0, 6)]
    """

    periods: int | tuple[int, ...] = 1
    spread: int = 0
    seed: int = 0
    name = "asynchronous"

    def check(self, workers: int) -> None:
        """ValueError unless the periods are those of so many workers."""
        _each("periods", self.periods, workers, 1)
        _whole("spread", self.spread, 0, _MOST)
        _whole("seed", self.seed, 0, (1 << 64) - 1)

    def base(self, workers: int) -> int:
        """The shortest period."""
        return min(_each("periods", self.periods, workers, 1))

    def updates(self, workers: int) -> Iterator[Update]:
        """As they come."""
        self.check(workers)
        ticks = [self._ticks(w, period) for w, period in enumerate(_each("periods", self.periods, workers, 1))]
        under_way: list[tuple[int, int]] = []  # (when it comes, worker)
        reads, takes, clocks = [0] * workers, [0] * workers, [0] * workers
        waiting: set[int] = set()

        def go_on(worker: int, now: int, version: int) -> None:
            reads[worker], takes[worker] = version, next(ticks[worker])
            heapq.heappush(under_way, (now + takes[worker], worker))

        for worker in range(workers):
            go_on(worker, 0, 0)
        t = 0
        while True:
            now, worker = heapq.heappop(under_way)
            done = worker, reads[worker], takes[worker]
            t += 1
            clocks[worker] += 1
            waiting.add(worker)
            for each in sorted(waiting):
                if self._may(clocks[each], min(clocks)):
                    waiting.remove(each)
                    go_on(each, now, t)
            yield Update(*done, tuple(sorted({reads[each] for _, each in under_way})))

    def _may(self, clock: int, least: int) -> bool:
        """Whether a worker with so many gradients applied may go on while the slowest has the least."""
        return True

    def _ticks(self, worker: int, period: int) -> Iterator[int]:
        stream, number = Stream(self.seed, worker), 0
        while True:
            if not self.spread:
                yield period
                continue
            # words of a longer array begin with those of a shorter one, so each block is a jump of its own
            words = stream.spawn(1, first=number)[0].words(_WORDS)
            number += 1
            yield from (period + (int(word) * (self.spread + 1) >> 32) for word in words)


@dataclass(frozen=True)
class StaleSynchronous(Asynchronous):
    """As `Asynchronous`, but nobody gets further ahead of the slowest than a bound.

    A worker of which c gradients have been applied goes on while the slowest has at least c - bound, and waits
    otherwise; it then goes on from the weights with the update that lets it. With the bound 0 all wait for all.

    Parameters
    ----------
    bound : int
    periods, spread, seed
        As of `Asynchronous`.

    References
    ----------
    Q. Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NeurIPS 2013.

    Examples
    --------
    >>> from itertools import islice
    >>> [(u.worker, u.version) for u in islice(StaleSynchronous(periods=(1, 5), bound=1).updates(2), 6)]
    [(0, 0), (0, 1), (1, 0), (0, 3), (1, 3), (0, 5)]
    """

    bound: int = 0
    name = "stale_synchronous"

    def check(self, workers: int) -> None:
        """As of `Asynchronous`, and of the bound."""
        super().check(workers)
        _whole("bound", self.bound, 0, _MOST)

    def _may(self, clock: int, least: int) -> bool:
        return clock - least <= self.bound


def _whole(what: str, value, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"server: {what} must be an integer from {low} to {high}, got {value!r}")
    return int(value)


def _each(what: str, given, workers: int, least: int) -> list[int]:
    """Of each worker its own."""
    if not isinstance(given, tuple):
        return [_whole(what, given, least, _MOST)] * workers
    if len(given) != workers:
        raise ValueError(f"server: {what}={given!r} has {len(given)} numbers, and there are {workers} workers")
    return [_whole(what, value, least, _MOST) for value in given]


_KINDS = {kind.name: kind for kind in (Asynchronous, StaleSynchronous, Delayed)}
_REQUIRED = {"stale_synchronous": "bound", "delayed": "by"}


def server(text: str | Server, workers: int) -> Server:
    """The server that a text states: a name alone, or with arguments in brackets.

    Parameters
    ----------
    text : str
        "asynchronous", "asynchronous(periods=(2, 2, 5))", "stale_synchronous(bound=2)" or "delayed(by=3)"; ``str`` of
        one reads back.
    workers : int
        How many it serves.

    Raises
    ------
    ValueError
        If there is none of that name, or a parameter is out of its range or not of so many workers.

    Examples
    --------
    >>> print(server("stale_synchronous(bound=2, spread=10, periods=100)", 4))
    stale_synchronous(periods=100, spread=10, bound=2)
    """
    found = text if isinstance(text, Server) else _read(text)
    found.check(workers)
    return found


def _read(text) -> Server:
    name = text.partition("(")[0].strip() if isinstance(text, str) else None
    if name not in _KINDS:
        near = difflib.get_close_matches(str(name), _KINDS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"server: unknown {text!r:.80}{hint} (known: {', '.join(_KINDS)})")
    kinds = {each: partial(_made, each) for each in _KINDS}
    found = evaluated(text if "(" in text else f"{text}()", kinds, "server", "stale_synchronous(bound=2)")
    if not isinstance(found, Server):
        raise ValueError(f"no expression of a server: {text!r}; one reads stale_synchronous(bound=2)")
    return found


def _made(name: str, *args, **given) -> Server:
    own = [f.name for f in fields(_KINDS[name])]
    if args:
        raise ValueError(f"server: the parameters of {name} are named: {', '.join(own)}")
    unknown = [what for what in given if what not in own]
    if unknown:
        raise ValueError(f"server: {name} has no parameter {unknown[0]!r} (its own: {', '.join(own)})")
    if name in _REQUIRED and _REQUIRED[name] not in given:
        raise ValueError(f"server: {name} needs {_REQUIRED[name]}=, as in {name}({_REQUIRED[name]}=1)")
    return _KINDS[name](**given)
