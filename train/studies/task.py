"""One run of a study as a worker gets it, and what comes back."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from softnum.train.designs.reader import load_design, with_hardware
from softnum.train.runs.loop import carry_out, make_run
from softnum.train.runs.settings import Settings
from softnum.train.studies.keys import key_of
from softnum.train.studies.store import RecordStore, shareable

__all__ = ["Failed", "Finished", "RunTask", "attempt", "describe_runs", "perform"]


@dataclass(frozen=True)
class RunTask:
    """A run, as plain data that a worker process understands.

    Attributes
    ----------
    name : str
        Unlike that of any other run of the study: "mlp/c-wang-fp8/seed-1".
    design : str
        A design's file, or the name of a shipped one.
    settings : Settings
    seed : int
    folder : str
        Of its record.
    key : str, optional
        What the run's key has to be; it is not trained else.
    force : bool
        Train again, also what is finished.
    device : str
        As of `softnum.train.run`.
    hardware : dict
        What replaces keys of the design's ``[hardware]``.
    store : str, optional
        Folder of a `RecordStore`: a record that is there is taken in place of training, and one that is trained kept.
    """

    name: str
    design: str
    settings: Settings
    seed: int
    folder: str
    key: str | None = None
    force: bool = False
    device: str = "cpu"
    hardware: dict = field(default_factory=dict)
    store: str | None = None


@dataclass(frozen=True)
class Finished:
    """A finished run.

    Attributes
    ----------
    record : bytes or None
        The record; None if it lies in the folder of the task.
    trained : bool
        False if it was found finished.
    taken : bool
        Whether it was found in a store.
    """

    record: bytes | None
    trained: bool
    taken: bool = False


@dataclass(frozen=True)
class Failed:
    """An attempt that came to nothing.

    Attributes
    ----------
    message : str
        What happened.
    trace : str
        Where, if it was raised by more than unusable input.
    unusable : bool
        Whether it was unusable input: what ValueError and OSError stand for.
    """

    message: str
    trace: str = ""
    unusable: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """What an exception says."""
        text = str(error) or "no message"
        if isinstance(error, (ValueError, OSError)):
            return cls(text, "", True)
        return cls(f"{type(error).__name__}: {text}", "".join(traceback.format_exception(error)))

    def exception(self) -> Exception:
        """An exception that says it: ValueError of unusable input, else RuntimeError with where it happened."""
        return ValueError(self.message) if self.unusable else RuntimeError(self.trace or self.message)


def describe_runs(design, settings: Settings, seeds) -> tuple[dict[int, dict], int]:
    """The first row of the record of each seed, and how many iterations a run has.

    One run is made for all, because runs differ in the seed only.
    """
    seeds = list(seeds)
    work = make_run(settings, design, seeds[0])
    header = json.loads(json.dumps(work.header()))
    return {seed: {**header, "seed": seed} for seed in seeds}, work.iterations


def perform(
    task: RunTask, folder: Path, each_iteration: Callable[[], None], design: str | Path | None = None
) -> Finished:
    """Carry a run out and leave its record in a folder.

    Raises
    ------
    ValueError
        As `softnum.train.run`; and if the run is not the one that was planned.
    """
    trained = False

    def progress(*_) -> None:
        nonlocal trained
        trained = True
        each_iteration()

    chosen = with_hardware(load_design(task.design if design is None else design), task.hardware)
    work = make_run(task.settings, chosen, task.seed, device=task.device)
    if task.key is not None and key_of(json.loads(json.dumps(work.header()))) != task.key:
        raise ValueError(
            f"{task.name} is not the run that was planned: its design or data have changed since, or differ on this "
            "machine, or the versions of softnum, Python, NumPy or scikit-learn do; make them equal, and run the study "
            "again"
        )
    store = None if task.store is None or not shareable(chosen, task.settings) else RecordStore(task.store)
    taken = False
    if store is not None and not task.force:
        taken = store.place(folder, task.seed, work.header(), work.iterations)
    path = carry_out(work, folder, force=task.force, progress=progress)
    if store is not None and not taken:
        store.keep(path)
    return Finished(None, trained, taken)


def attempt(task: RunTask, study: int) -> Finished | Failed:
    """Carry a run out in the process that runs the study (its id is given) or in a worker of it."""

    def check_parent() -> None:
        # A study that was killed cannot end its workers: whose parent is gone ends at once. The record holds whole
        # rows and the lock goes with the process, so the same command goes on from there.
        if os.getpid() != study and os.getppid() != study:
            os._exit(1)

    check_parent()
    try:
        return perform(task, Path(task.folder), check_parent)
    except Exception as error:  # returned as text, because not every exception can be sent to another process
        return Failed.of(error)
