"""Schedules of a pipeline: what each device runs in which order, and how long that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from softnum.tta.parallelism.ways import Parallelism

__all__ = ["Slot", "in_flight", "makespan", "schedule"]


class Slot(NamedTuple):
    """A micro-batch's pass through a stage: "forward", "backward", or "backward_data" and "backward_weight" apart.

    >>> Slot("forward", 0, 3)
    Slot(kind='forward', micro_batch=0, stage=3)
    """

    kind: str
    micro_batch: int
    stage: int


@lru_cache(maxsize=256)
def schedule(ways: Parallelism, rank: int) -> tuple[Slot, ...]:
    """What a device of the pipeline runs, in order.

    Parameters
    ----------
    ways : Parallelism
    rank : int
        Its place in the pipeline, from 0.

    Returns
    -------
    tuple of Slot

    Examples
    --------
    >>> [slot.kind[0] + str(slot.micro_batch) for slot in schedule(Parallelism(pipeline=2, batch=3), 0)]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    """
    count, stages = ways.micro_batches, ways.pipeline
    if ways.schedule == "gpipe":
        order = [Slot("forward", n, rank) for n in range(count)]
        return (*order, *(Slot("backward", n, rank) for n in reversed(range(count))))
    if ways.schedule == "zero-bubble":
        return _zero_bubble(count, stages, rank)
    chunks, total = ways.chunks, count * ways.chunks
    ahead = min(total, (stages - rank - 1) * (2 if chunks > 1 else 1) + (chunks - 1) * stages)

    def place(number: int, backward: bool) -> Slot:
        group, inside = divmod(number, stages * chunks)
        chunk, within = divmod(inside, stages)
        chunk = chunks - 1 - chunk if backward else chunk
        if chunks == 1:
            return Slot("backward" if backward else "forward", number, rank)
        return Slot("backward" if backward else "forward", group * stages + within, chunk * stages + rank)

    order = [place(n, False) for n in range(ahead)]
    for n in range(total - ahead):
        order += [place(ahead + n, False), place(n, True)]
    return (*order, *(place(n, True) for n in range(total - ahead, total)))


def _zero_bubble(count: int, stages: int, rank: int) -> tuple[Slot, ...]:
    """As 1f1b, with a device's gradients of weights as many micro-batches later as there are stages before it."""
    ahead = min(count, stages - rank - 1)
    order = [Slot("forward", n, rank) for n in range(ahead)]
    for n in range(count):
        if ahead + n < count:
            order.append(Slot("forward", ahead + n, rank))
        order.append(Slot("backward_data", n, rank))
        if n >= rank:
            order.append(Slot("backward_weight", n - rank, rank))
    return (*order, *(Slot("backward_weight", n, rank) for n in range(max(0, count - rank), count)))


def makespan(
    ways: Parallelism, seconds: Callable[[str, int], float], message: Callable[[int], float] | float = 0.0
) -> tuple[float, list[float], list[float]]:
    """How long a pipeline's step takes.

    A pass begins when its device is free and what it needs has arrived: forwards the stage before, backwards the stage
    after, and its own forward pass.

    Parameters
    ----------
    ways : Parallelism
    seconds : callable
        Of a kind of pass and a stage.
    message : callable or float
        Seconds from one stage to the next.

    Returns
    -------
    (float, list of float, list of float)
        Seconds until the last pass ends; of each device the seconds in which it computes, and when its last pass ends.

    Examples
    --------
    >>> ways = Parallelism(pipeline=4, batch=8)
    >>> makespan(ways, lambda kind, stage: 1.0 if kind == "forward" else 2.0)[0]  # (8 + 3) x 3
    33.0
    """
    if not callable(message):
        each = message
        message = lambda stage: each  # noqa: E731
    stages = ways.pipeline * ways.chunks
    orders = [schedule(ways, rank) for rank in range(ways.pipeline)]
    took = {key: seconds(*key) for key in {(slot.kind, slot.stage) for order in orders for slot in order}}
    sent = [message(stage) for stage in range(stages)]
    forward = [[-1.0] * ways.micro_batches for _ in range(stages)]  # when a micro-batch has passed a stage
    backward = [[-1.0] * ways.micro_batches for _ in range(stages)]
    free, busy, at = [0.0] * ways.pipeline, [0.0] * ways.pipeline, [0] * ways.pipeline
    waiting = True
    while waiting:
        before, waiting = list(at), False
        for rank, order in enumerate(orders):
            now, worked, n = free[rank], busy[rank], at[rank]
            while n < len(order):
                kind, number, stage = order[n]
                if kind == "forward":
                    ready = forward[stage - 1][number] if stage else 0.0
                    wait = sent[stage - 1] if stage else 0.0
                elif kind == "backward_weight" or stage == stages - 1:
                    ready, wait = (backward if kind == "backward_weight" else forward)[stage][number], 0.0
                else:
                    ready, wait = backward[stage + 1][number], sent[stage]
                if ready < 0:
                    break
                own = took[kind, stage]
                now = max(now, ready + wait) + own
                worked += own
                if kind != "backward_weight":
                    (forward if kind == "forward" else backward)[stage][number] = now
                n += 1
            free[rank], busy[rank], at[rank] = now, worked, n
            waiting = waiting or n < len(order)
        if waiting and at == before:
            raise RuntimeError(f"the schedule {ways.schedule!r} of {ways.pipeline} stages waits for itself")
    return max(free), busy, free


def in_flight(order: Sequence[Slot], held: Callable[[int], int]) -> int:
    """The most that the feature maps of micro-batches on their way take, of a device's order.

    >>> in_flight(schedule(Parallelism(pipeline=4, batch=8), 0), lambda stage: 1)
    4
    """
    now = most = 0
    weights = any(slot.kind == "backward_weight" for slot in order)
    for slot in order:
        if slot.kind == "forward":
            now += held(slot.stage)
            most = max(most, now)
        elif slot.kind == "backward" or (weights and slot.kind == "backward_weight"):
            now -= held(slot.stage)
    return most
