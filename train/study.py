"""A study: designs x seeds, in parallel processes, resumable."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from softnum.train.design_files import load_design
from softnum.train.loop import Settings, run

__all__ = ["DEFAULT_SEEDS", "DEFAULT_STUDY", "TARGET", "Case", "default_cases", "run_study"]

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

    Examples
    --------
    >>> Case("d-e6m3-long", 256).batch
    256
    """

    design: str
    batch: int = 32


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

    >>> [case.batch for case in default_cases(["a-float32", "d-e6m3-long"])]
    [32, 256]
    """
    if designs is None:
        return list(DEFAULT_STUDY)
    known = {case.design: case for case in DEFAULT_STUDY}
    return [known.get(str(design), Case(str(design))) for design in designs]


def _run_case(case: Case, settings: Settings, seed: int, out: str, force: bool, study: int):
    """One run, in the process that runs the study (its id is given) or in a worker of it.

    Returns the design's name, the seed, the record and whether anything was trained.
    """
    trained = False

    def each_iteration(*_) -> None:
        nonlocal trained
        trained = True
        check_parent()

    def check_parent() -> None:
        # A study that was killed cannot end its workers: whose parent is gone ends at once. The record holds whole
        # rows and the lock goes with the process, so the same command goes on from there.
        if os.getpid() != study and os.getppid() != study:
            os._exit(1)

    check_parent()
    design = load_design(case.design)
    settings = dataclasses.replace(settings, batch=case.batch)
    path = run(design, settings, seed=seed, out=out, force=force, progress=each_iteration)
    return design.name, seed, str(path), trained


def _stop_workers() -> None:
    """End the worker processes, which would otherwise train on after an interruption, beside whoever resumes."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def run_study(
    cases: Iterable[Case],
    settings: Settings,
    *,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    out: str | Path,
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[int, int, str, bool], None] | None = None,
) -> list[Path]:
    """Run every case with every seed; finished runs are not run again.

    Parameters
    ----------
    cases : iterable of Case
    settings : Settings
        Of every run, but for the batch size, which is the case's.
    seeds : iterable of int
    out : path-like
        Folder of the records.
    jobs : int, optional
        Processes; each run uses one thread. Default: one for each core. Records do not depend on it.
    force : bool
        Run all of them again.
    progress : callable, optional
        Called as ``progress(done, runs, "design, seed n", trained)`` as each run ends; trained is False for a run that
        was found finished.

    Returns
    -------
    list of pathlib.Path
        The records, case by case and seed by seed.

    Raises
    ------
    ValueError
        If a design, a setting or a seed is unusable; nothing has been trained then.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = run_study([Case("a-float32")], Settings(epochs=1), seeds=[1], out=folder, jobs=1)
    ...     [record.relative_to(folder).as_posix() for record in records]
    ['a-float32/seed-1.jsonl']
    """
    from joblib import Parallel, cpu_count, delayed

    cases, seeds = list(cases), list(seeds)
    if not cases or not seeds:
        raise ValueError(f"a study needs at least one design and one seed, got {len(cases)} and {len(seeds)}")
    if len(set(seeds)) != len(seeds):
        raise ValueError(f"the seeds of a study must differ, got {', '.join(map(str, seeds))}")
    names = [load_design(case.design).name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two designs of the study are called {name!r}; their records would mix")
    work = [(case, seed) for case in cases for seed in seeds]
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be positive, got {jobs}; leave it out for one process a core")
    jobs = min(jobs or cpu_count(), len(work))
    paths = {}
    # loky's workers are children of this process, by which they notice its end
    results = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")(
        delayed(_run_case)(case, settings, seed, str(out), force, os.getpid()) for case, seed in work
    )
    try:
        for done, (name, seed, path, trained) in enumerate(results, start=1):
            paths[name, seed] = Path(path)
            if progress is not None:
                progress(done, len(work), f"{name}, seed {seed}", trained)
    except BaseException:
        _stop_workers()
        raise
    return [paths[name, seed] for name in names for seed in seeds]
