"""Runs, one after another or many at once, with those that failed tried again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from softnum.train.studies.task import Failed, Finished, RunTask

__all__ = ["Attempt", "Executor", "run_tasks"]


class Executor(Protocol):
    """What carries runs out (`softnum.train.studies.local`, `softnum.train.studies.cluster`)."""

    free: bool

    def submit(self, task: RunTask) -> None: ...

    def wait(self) -> tuple[RunTask, Finished | Failed]: ...

    def close(self, *, kill: bool = False) -> None: ...


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run, that ended.

    Attributes
    ----------
    task : RunTask
    number : int
        Counted from 1.
    result : Finished or Failed
    again : bool
        Whether there will be another attempt.
    """

    task: RunTask
    number: int
    result: Finished | Failed
    again: bool = False


def run_tasks(tasks: Iterable[RunTask], executor: Executor, *, retries: int = 0) -> Iterator[Attempt]:
    """Carry runs out, and say of each attempt how it ended, as it ends.

    Parameters
    ----------
    tasks : iterable of RunTask
        Their names differ.
    executor : Executor
        It is closed at the end; if this generator is closed early, or interrupted, its workers are ended at once.
    retries : int
        How often a run that failed is tried again, after the others.

    Yields
    ------
    Attempt
    """
    queue, numbers, finished = deque(tasks), {}, False
    running = 0
    try:
        while queue or running:
            while queue and executor.free:
                task = queue.popleft()
                numbers[task.name] = numbers.get(task.name, 0) + 1
                executor.submit(task)
                running += 1
            task, result = executor.wait()
            running -= 1
            number = numbers[task.name]
            again = isinstance(result, Failed) and number <= retries
            if again:
                queue.append(task)
            yield Attempt(task, number, result, again)
        finished = True
    finally:
        executor.close(kill=not finished)
