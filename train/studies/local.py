"""Where runs are carried out on this machine: in this process, or in worker processes, one run at a time in each."""

from __future__ import annotations

import os
import re
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

from softnum.runtime.limits import check_files
from softnum.train.studies.task import Failed, Finished, RunTask, attempt

__all__ = ["InlineExecutor", "ProcessExecutor"]

_FILES = 24  # that a worker's pipes, locks and sentinels are


class InlineExecutor:
    """Carries runs out in this process, one after another."""

    def __init__(self) -> None:
        self._task: RunTask | None = None

    @property
    def free(self) -> bool:
        """Whether another run can be submitted."""
        return self._task is None

    def submit(self, task: RunTask) -> None:
        """Take a run."""
        self._task = task

    def wait(self) -> tuple[RunTask, Finished | Failed]:
        """The next run that ended, and how."""
        task, self._task = self._task, None
        return task, attempt(task, os.getpid())

    def close(self, *, kill: bool = False) -> None:
        """Nothing is held."""


class ProcessExecutor:
    """Carries runs out in worker processes.

    Each worker has an executor of its own, so that it is known which run a worker died of; the others go on. loky's
    workers are children of this process, by which they notice its end.

    Parameters
    ----------
    jobs : int
        Workers.
    """

    def __init__(self, jobs: int) -> None:
        self._idle: list = [None] * jobs  # workers are started as they are needed
        self._running: dict[Future, tuple[RunTask, object]] = {}

    @property
    def free(self) -> bool:
        """Whether another run can be submitted."""
        return bool(self._idle)

    def submit(self, task: RunTask) -> None:
        """Take a run."""
        from joblib.externals.loky import ProcessPoolExecutor

        if self._idle[-1] is None:
            check_files(_FILES, f"a worker process (of {len(self._idle) + len(self._running)}, --jobs)")
        worker = self._idle.pop() or ProcessPoolExecutor(max_workers=1)
        self._running[worker.submit(attempt, task, os.getpid())] = task, worker

    def wait(self) -> tuple[RunTask, Finished | Failed]:
        """The next run that ended, and how."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        future = next(future for future in self._running if future in done)
        task, worker = self._running.pop(future)
        try:
            result = future.result()
        except BrokenExecutor as error:
            worker.shutdown(wait=True, kill_workers=True)
            worker = None
            result = Failed(f"its worker process died ({_reason(error)})")
        self._idle.append(worker)
        return task, result

    def close(self, *, kill: bool = False) -> None:
        """End the workers; kill: those too that are at work, which would else train on beside whoever resumes."""
        workers = [*self._idle, *(worker for _, worker in self._running.values())]
        self._idle, self._running = [], {}
        for worker in workers:
            if worker is not None:
                worker.shutdown(wait=True, kill_workers=kill)


def _reason(error: BaseException) -> str:
    """What loky knows of a worker's end: a signal or an exit code."""
    found = re.search(r"exit codes of the workers are \{(.*?)\}", str(error))
    return found[1] if found else "killed, or out of memory"
