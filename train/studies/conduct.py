"""A study from its file to its results: times, runs, comparisons, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from softnum.runtime.plain import plain
from softnum.train.engine.devices import DEVICES, check_device
from softnum.train.runs import record
from softnum.train.runs.lock import FileLock
from softnum.train.studies.ledger import Ledger
from softnum.train.studies.local import ProcessExecutor
from softnum.train.studies.plan import (
    BACK,
    FOUND,
    KEPT,
    SAME,
    SHARED,
    TO_TRAIN,
    UNUSABLE,
    PlannedRun,
    StudyPlan,
    apply_plan,
    plan_study,
    share,
    write_alike,
)
from softnum.train.studies.results import (
    Outcome,
    comparison_variants,
    conclude_comparison,
    on_one_line,
    write_page,
    write_study,
    write_works,
)
from softnum.train.studies.runner import run_tasks
from softnum.train.studies.store import RecordStore
from softnum.train.studies.study import worker_count
from softnum.train.studies.study_tables import Comparison, StudyFile
from softnum.train.studies.task import Failed
from softnum.train.studies.trials import choose_rates, tuning_plan
from softnum.tta.workloads.hardware import DesignPoint

__all__ = ["conduct_study"]


@plain
def conduct_study(
    study: StudyFile,
    out: str | Path,
    *,
    jobs: int | None = None,
    device: str = "cpu",
    scheduler: str | None = None,
    retries: int = 2,
    progress: Callable[[int, int, str], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
    console=None,
    explain: bool = False,
    plots: str | Path | None = None,
    store: RecordStore | None = None,
) -> Outcome:
    """Carry out a study: train the runs that are not finished, and compute the results of those that are.

    Parameters
    ----------
    study : StudyFile
    out : path-like
        The study's folder. It gets ``study.json``, the ledger ``runs.jsonl``, a folder for each network with
        ``records``, ``results.json`` and a picture, and ``aside`` with records that belong to no run of the study.
    jobs : int, optional
        Processes on this machine. Default: one for each core, and one alone for a GPU. Records do not depend on it.
    device : str
        As of `softnum.train.run`; also of a cluster's workers.
    scheduler : str, optional
        Address of a Dask scheduler whose workers are to train in their place.
    retries : int
        How often a run that failed is tried again.
    progress : callable, optional
        Called as ``progress(done, runs, text)`` as runs end.
    say : callable
        Called with lines of text about the progress.
    console : rich.console.Console, optional
        Where to print the tables.
    explain : bool
        Also print what is otherwise only in ``results.json``: all intervals, warnings, rules and assumptions.
    plots : path-like, optional
        Folder for the charts of `softnum.tta.outcomes.plot_details`, in one folder for each network.
    store : RecordStore, optional
        Records of earlier studies, which are used instead of training; new records are added to it. Default: none.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If the machine, or a cluster's worker, lacks the device, a time per iteration is missing or malformed, the
        workers differ from this machine, or another process carries out a study in the folder; in these cases nothing
        has been trained.
    RuntimeError
        If SCALE-Sim has to run and fails.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import read_study
    >>> text = '''
    ... study = {designs = ["a-float32"], seeds = 1, epochs = 1, batches = [256], target = 0.5}
    ... networks = [{name = "mlp"}]
    ... timings = {file = "times.csv"}
    ... report = {html = false}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "one.toml")
    ...     _ = file.write_text(text)
    ...     _ = Path(folder, "times.csv").write_text("design,iteration,seconds\\na-float32,1,2e-6\\n")
    ...     outcome = conduct_study(read_study(file), Path(folder, "out"))  # doctest: +ELLIPSIS
    ...     names = sorted(path.name for path in Path(folder, "out", "mlp").iterdir())
    <BLANKLINE>
    mlp on digits...
    >>> outcome.trained, outcome.complete, names
    (1, True, ['records', 'results.json', 'tta.png', 'workloads.json'])
    """
    out = Path(out)
    if retries < 0:
        raise ValueError(f"retries must be 0 or more, got {retries}")
    if scheduler is None or device not in DEVICES:  # else it is the workers that need it
        check_device(device)
    workers, jobs = worker_count(jobs, device), worker_count(jobs)  # what simulates times takes all cores
    out.mkdir(parents=True, exist_ok=True)
    lock = FileLock(out / ".study.lock", f"the study in {out}")
    lock.acquire()
    executor = None
    try:
        plan = plan_study(study, out, store=store)
        executor = _executor(len(plan.to_train), workers, scheduler, device)
        outcome = Outcome(plan)
        for run in plan.runs:
            if run.state == UNUSABLE:
                outcome.failed[run.name] = run.error
        for label, error in sorted({(f"{r.comparison.folder}/{r.label}", r.error) for r in plan.runs if r.error}):
            say(f"{label} cannot be trained, the others go on: {on_one_line(error)}")
        # Times first: a missing report or a malformed file costs seconds, not the training.
        variants = {c.folder: _variants(plan, c, outcome, jobs, say) for c in study.comparisons}
        for comparison in study.comparisons:
            if (cost := tuning_plan(plan, comparison)) is not None:
                say(f"{comparison.folder}: {cost.text}")
        apply_plan(plan)
        for path, name in plan.strangers:
            say(f"{path} belongs to no run of this study: set aside as {Path('aside', name)}")
        ledger = Ledger(out)
        training = {"device": device, "retries": retries, "progress": progress, "store": store}
        _carry_out(plan.runs, outcome, ledger, executor, **training)
        rated = choose_rates(plan, outcome)
        if rated:
            outcome.tuned = share(rated)
            wanted = sum(run.state in TO_TRAIN for run in outcome.tuned)
            executor = _executor(wanted, workers, scheduler, device)
            _carry_out(outcome.tuned, outcome, ledger, executor, **training)
        write_study(plan, outcome)
        for comparison in study.comparisons:
            if comparison.folder not in outcome.comparisons:
                write_works(plan, comparison)
                times = variants[comparison.folder]
                conclude_comparison(plan, comparison, times, outcome, console, explain=explain, plots=plots)
        for folder in outcome.comparisons:
            for name in ("results.json", "tta.png"):  # of what the study was before
                (out / folder / name).unlink(missing_ok=True)
        write_study(plan, outcome)
        write_page(study, out, outcome)
        return outcome
    finally:
        if executor is not None:
            executor.close(kill=True)  # does nothing if it is closed
        lock.release()


# -- times -------------------------------------------------------------------------------------------------------------
def _variants(plan: StudyPlan, comparison: Comparison, outcome: Outcome, jobs: int, say):
    """The times of a comparison's designs."""
    runs = {run.label: run for run in plan.of(comparison) if run.state != UNUSABLE}
    if comparison.baseline not in runs:
        outcome.comparisons[comparison.folder] = f"the baseline {comparison.baseline} cannot be trained"
        return []
    timings = comparison.timings
    try:
        return comparison_variants(
            comparison, [_point(run, timings) for run in runs.values()], plan.out / comparison.folder,
            run_simulator=timings.simulate, jobs=jobs, progress=lambda line: say(f"{comparison.folder}: {line}"),
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{comparison.folder}: {error}") from error


def _point(run: PlannedRun, timings):
    """A design as softnum.tta wants it: by its label, with what its records' first row says of it."""
    config = run.header["config"]
    hardware = config["design"]["hardware"]
    if hardware:
        table = {"name": run.label, "hardware": hardware, "gemms": config["gemms"]}
        return DesignPoint.from_table(table, run.task.design)
    if not timings.sources:
        raise ValueError(
            f"{run.task.design}: states no [hardware], so its iteration cannot be simulated; add the table (see the "
            "shipped designs) or give times: [timings] file"
        )
    return DesignPoint(run.label, None, ())  # only its name is looked up in the file


# -- runs --------------------------------------------------------------------------------------------------------------
def _executor(wanted: int, jobs: int, scheduler: str | None, device: str):
    if not wanted:
        return None
    if scheduler is None:
        return ProcessExecutor(min(jobs, wanted))
    from softnum.train.studies.cluster import DaskExecutor

    return DaskExecutor(scheduler, device)


def _note_found(plan: StudyPlan, runs: Sequence[PlannedRun], ledger: Ledger) -> None:
    """Let the ledger know of every finished run, also of those whose study was killed before it could write."""
    known = ledger.completions()
    for run in runs:
        if run.state in (FOUND, BACK) and run.task.key not in known:
            ledger.finished(run.name, run.task.key, 0, run.path.read_bytes())
        elif run.state == KEPT:
            ledger.copied(run.name, run.task.key, "the record of an earlier study")
        elif run.state == SAME:
            ledger.copied(run.name, run.task.key, run.source.relative_to(plan.out).as_posix())


def _carry_out(
    runs: Sequence[PlannedRun],
    outcome: Outcome,
    ledger: Ledger,
    executor,
    *,
    device: str,
    retries: int,
    progress,
    store: RecordStore | None,
) -> None:
    """Count what is finished of some runs, and train the others."""
    plan = outcome.plan
    _note_found(plan, runs, ledger)
    outcome.found += sum(run.state in (FOUND, BACK) for run in runs)
    outcome.copied += sum(run.state == SAME for run in runs)
    outcome.taken += sum(run.state == KEPT for run in runs)
    for run in runs:
        if store is not None and run.shareable and run.state in (FOUND, BACK, SAME):
            store.keep(run.path)
    write_study(plan, outcome)
    if executor is None:
        return
    to_train = {run.name: run for run in runs if run.state in TO_TRAIN}
    total = len(plan.runs) + len(outcome.tuned)
    done = outcome.found + outcome.copied + outcome.taken + outcome.trained + len(outcome.failed)

    def step(text: str) -> None:
        if progress is not None:
            counts = f"{outcome.found} found, {outcome.trained} trained, {len(outcome.failed)} failed"
            progress(done, total, f"runs: {counts}; last {text}")

    if done:
        step("none")
    tasks = [replace(run.task, device=device) for run in to_train.values()]
    for attempt in run_tasks(tasks, executor, retries=retries):
        run = to_train[attempt.task.name]
        followers = [other for other in runs if other.state == SHARED and other.source == run.path]
        if isinstance(attempt.result, Failed):
            ledger.failed(run.name, run.task.key, attempt.number, attempt.result)
            if not attempt.again:
                outcome.failed |= {each.name: attempt.result.message for each in (run, *followers)}
                done += 1 + len(followers)
            step(f"{run.name}, which failed{' and is tried again' if attempt.again else ''}")
            continue
        if attempt.result.record is not None:
            _keep(run, attempt.result.record)
        ledger.finished(run.name, run.task.key, attempt.number, run.path.read_bytes())
        outcome.trained, done = outcome.trained + 1, done + 1
        if store is not None and run.shareable:
            store.keep(run.path)
        for other in followers:
            write_alike(other, run.path.read_bytes())
            ledger.copied(other.name, other.task.key, run.path.relative_to(plan.out).as_posix())
            outcome.copied, done = outcome.copied + 1, done + 1
        step(run.name)


def _keep(run: PlannedRun, content: bytes) -> None:
    """Write a record that a worker on another machine made, in the place of what was begun here."""
    run.path.parent.mkdir(parents=True, exist_ok=True)
    record.write_atomic(run.path, content)
    run.path.with_suffix(".checkpoint.npz").unlink(missing_ok=True)
