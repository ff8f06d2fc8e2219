"""A study: designs x seeds, in parallel processes, resumable."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from softnum.runtime.plain import plain
from softnum.train.designs.reader import load_design
from softnum.train.engine.devices import check_device
from softnum.train.engine.numerics import check_seed
from softnum.train.inspect.workloads import workload
from softnum.train.runs.settings import Settings
from softnum.train.studies.local import InlineExecutor, ProcessExecutor
from softnum.train.studies.runner import run_tasks
from softnum.train.studies.store import RecordStore
from softnum.train.studies.task import Failed, RunTask
from softnum.tta.workloads.operations import Workload

__all__ = [
    "DEFAULT_SEEDS", "DEFAULT_STUDY", "TARGET", "Case", "carry_out_tasks", "case_labels", "case_workloads",
    "default_cases", "run_study",
]  # fmt: skip

#: The accuracy on held-out samples that a run has to reach. One value for all designs, set before any of them was run:
#: nineteen of twenty right.
TARGET = 0.95

DEFAULT_SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Case:
    """One column of a study: a design and the batch size it trains with.

    Parameters
    ----------
    design : str
        A shipped design's name or a file.
    batch : int
        Samples per iteration.
    label : str, optional
        The name of its folder and in results. Default: the design's name.
    workers : int, optional
        The number of workers that share a batch. Default: that of the study's settings.
    collective : str, optional
        How several workers sum their gradients, as in `Settings`.

    Examples
    --------
    >>> Case("d-e6m3-long", 256).batch
    256
    >>> Case("a-float32", 256, workers=8, collective="ring").settings(Settings()).workers
    8
    >>> Case.parse("c-wang-fp8@64").label
    'c-wang-fp8@64'
    """

    design: str
    batch: int = 32
    label: str | None = None
    workers: int | None = None
    collective: str | None = None

    def settings(self, settings: Settings) -> Settings:
        """The settings of its runs: those of the study, with its batch size, and its workers where it states them."""
        own = {} if self.workers is None else {"workers": self.workers, "collective": self.collective}
        return dataclasses.replace(settings, batch=self.batch, **own)

    @classmethod
    def parse(cls, text: str, batch: int = 32) -> Case:
        """The case of a design's name or file, or of ``NAME@BATCH``, whose label says its batch size too.

        Raises
        ------
        ValueError, FileNotFoundError
            If that is no batch size, or the design that has one is unusable.
        """
        design, at, size = text.rpartition("@")
        if not (at and size.isascii() and size.isdigit()):
            return cls(text, batch)
        if not design or int(size) < 1:
            raise ValueError(f"{text!r} is not DESIGN@BATCH with a batch size of at least 1, like a-float32@128")
        return cls(design, int(size), f"{load_design(design).name}@{int(size)}")


#: The default study. One network, one data set, one set of hyper-parameters. Batch 256 belongs to the question that
#: d and e ask: whether a sum of 256 terms survives a 3-bit accumulator, and whether chunks of 16 save it.
DEFAULT_STUDY = (
    Case("a-float32"),
    Case("b-binary16"),
    Case("c-wang-fp8"),
    Case("d-e6m3-long", 256),
    Case("e-e6m3-chunk", 256),
    Case("f-q44-nearest"),
    Case("g-q44-stochastic"),
    Case("h-posit8"),
)


def default_cases(designs: Iterable[str] | None = None) -> list[Case]:
    """The cases of some designs: those of the default study with its batch sizes, others with batch 32.

    ``NAME@BATCH`` states a batch size.

    >>> [case.batch for case in default_cases(["a-float32", "d-e6m3-long", "a-float32@128"])]
    [32, 256, 128]
    """
    if designs is None:
        return list(DEFAULT_STUDY)
    known = {case.design: case.batch for case in DEFAULT_STUDY}
    return [Case.parse(str(design), known.get(str(design), 32)) for design in designs]


def case_labels(cases: Iterable[Case]) -> list[str]:
    """How folders and results call each case: what it says itself, or its design's name.

    Raises
    ------
    ValueError
        If a design is unusable, or two cases have one label.

    Examples
    --------
    >>> case_labels([Case("a-float32"), Case.parse("a-float32@64")])
    ['a-float32', 'a-float32@64']
    """
    labels: dict[str, Case] = {}
    for case in cases:
        name = load_design(case.design).name
        other = labels.setdefault(case.label or name, case)
        if other is not case:
            same = other.design == case.design
            raise ValueError(
                f"two {'cases' if same else 'designs'} of the study are called {case.label or name!r}; their records "
                f"would mix{f': write {name}@{case.batch} for the one with batch {case.batch}' if same else ''}"
            )
    return list(labels)


@plain
def case_workloads(cases, settings: Settings) -> list[Workload]:
    """The workloads of a comparison's cases, each under its label.

    Parameters
    ----------
    cases : sequence of Case
        Designs and batch sizes.
    settings : Settings
        The settings that they have in common.

    Returns
    -------
    list of softnum.tta.Workload

    Raises
    ------
    ValueError
        As of `workload`.

    Examples
    --------
    >>> from softnum.train import Case, Settings
    >>> cases = [Case("a-float32", 32), Case("b-binary16", 64)]
    >>> [(work.design, work.batch) for work in case_workloads(cases, Settings())]
    [('a-float32', 32), ('b-binary16', 64)]
    """
    found = []
    for case, label in zip(cases, case_labels(cases), strict=True):
        found.append(dataclasses.replace(workload(case.settings(settings), load_design(case.design)), design=label))
    return found


@plain
def run_study(
    cases: Iterable[Case],
    settings: Settings,
    *,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    out: str | Path,
    jobs: int | None = None,
    device: str = "cpu",
    force: bool = False,
    progress: Callable[[int, int, str, bool], None] | None = None,
    store: RecordStore | None = None,
) -> list[Path]:
    """Run every case with every seed, skipping finished runs.

    Parameters
    ----------
    cases : iterable of Case
    settings : Settings
        Of every run, but for the batch size, which is the case's.
    seeds : iterable of int
    out : path-like
        Folder of the records.
    jobs : int, optional
        Processes; each run uses one thread. Default: one for each core, and one alone for a GPU. Records do not depend
        on it.
    device : str
        As of `softnum.train.run`.
    force : bool
        Run all of them again, even those that are finished.
    progress : callable, optional
        Called as ``progress(done, runs, "design, seed n", trained)`` as each run ends; trained is False for a run that
        was found finished.
    store : RecordStore, optional
        Records of earlier studies, which are used instead of training unless `force` is set; new records are added to
        it. Default: none.

    Returns
    -------
    list of pathlib.Path
        The records, case by case and seed by seed.

    Raises
    ------
    ValueError
        If a design, a setting or a seed is unusable; in these cases nothing has been trained.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = run_study([Case("a-float32")], Settings(epochs=1), seeds=[1], out=folder, jobs=1)
    ...     [record.relative_to(folder).as_posix() for record in records]
    ['a-float32/seed-1.jsonl']
    """
    cases, seeds = list(cases), list(seeds)
    if not cases or not seeds:
        raise ValueError(f"a study needs at least one design and one seed, got {len(cases)} and {len(seeds)}")
    check_seeds(seeds)
    check_device(device)
    labels = case_labels(cases)
    tasks = [
        RunTask(
            f"{label}, seed {seed}", case.design, case.settings(settings), seed,
            str(Path(out, label)), force=force, device=device,
        )
        for label, case in zip(labels, cases, strict=True)
        for seed in seeds
    ]  # fmt: skip
    return carry_out_tasks(tasks, jobs=jobs, device=device, progress=progress, store=store)


def carry_out_tasks(
    tasks: list[RunTask],
    *,
    jobs: int | None = None,
    device: str = "cpu",
    progress: Callable[[int, int, str, bool], None] | None = None,
    store: RecordStore | None = None,
) -> list[Path]:
    """Carry runs out in parallel processes; the arguments and what is returned are as of `run_study`."""
    jobs = min(worker_count(jobs, device), len(tasks))
    if store is not None:
        tasks = [dataclasses.replace(task, store=str(store.folder)) for task in tasks]
    executor = InlineExecutor() if jobs == 1 else ProcessExecutor(jobs)
    for done, attempt in enumerate(run_tasks(tasks, executor), start=1):
        if isinstance(attempt.result, Failed):
            raise attempt.result.exception()
        if store is not None:
            store.taken += attempt.result.taken
        if progress is not None:
            progress(done, len(tasks), attempt.task.name, attempt.result.trained)
    return [Path(task.folder, f"seed-{task.seed}.jsonl") for task in tasks]


def check_seeds(seeds: list[int]) -> None:
    """Raise ValueError unless all seeds of a study are seeds and differ."""
    for seed in seeds:
        check_seed(seed)
    if len(set(seeds)) != len(seeds):
        raise ValueError(f"the seeds of a study must differ, got {', '.join(map(str, seeds))}")


def worker_count(jobs: int | None, device: str = "cpu") -> int:
    """How many processes a study takes: those asked for, or one for each core; one for a GPU."""
    from joblib import cpu_count

    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be positive, got {jobs}; leave it out for one process a core")
    return jobs or (cpu_count() if device == "cpu" else 1)
