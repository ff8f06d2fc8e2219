"""What a study would do: which runs there are, which of them are finished, and what lies in their place.

A record is known by its run's key (`softnum.train.studies.task.key_of`), not by its name. One that no run of the study
has the key of is set aside, in ``aside/<key>.jsonl``, and comes back when a run has. A record whose rows are those of
another run of the same arithmetic is written from them: hardware, description and name of a design stand in the first
row and change no other.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.runtime.plain import plain
from softnum.train.designs.reader import load_design, with_hardware
from softnum.train.runs.record import RunFiles, header_of
from softnum.train.studies.keys import arithmetic_of, key_of
from softnum.train.studies.rates import rate_name, scale_rates
from softnum.train.studies.store import RecordStore, shareable, with_header
from softnum.train.studies.study_tables import Comparison, StudyFile
from softnum.train.studies.task import RunTask, describe_runs

__all__ = [
    "PlannedRun", "StudyPlan", "apply_plan", "plan_study", "record_state", "share", "trial_header",
    "write_alike",
]  # fmt: skip

#: states of a planned run
FOUND, BACK, SAME, KEPT, SHARED, STARTED, NEW, UNUSABLE = (
    "found", "set aside", "same arithmetic", "earlier study", "shared", "started", "new", "unusable",
)  # fmt: skip
#: of which there is training left
TO_TRAIN = (NEW, STARTED)
#: what a run is of
RECIPE, TRIAL, TUNED = "recipe", "trial", "tuned"


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study.

    Attributes
    ----------
    comparison : Comparison
    label : str
    seed : int
    task : RunTask
    header : dict
        The first row of its record; empty if it cannot be trained.
    iterations : int
    state : str
        "found": finished, in its place. "set aside": finished, and comes back. "same arithmetic": finished but for the
        first row. "earlier study": finished there (``RecordStore``). "started", "new": has to be trained. "shared": has
        the arithmetic of one that has. "unusable": cannot be trained.
    source : pathlib.Path or None
        The record that it is made from, where that lies elsewhere.
    done : int
        Iterations that are in the record of a run that is started.
    error : str
        Why it cannot be trained.
    part : str
        "recipe": at the recipe's learning rate. "trial": at one of those that are tried, with a tuning seed. "tuned":
        what has to be trained if that rate is chosen.
    multiplier : float
        Its learning rate over the recipe's.
    shareable : bool
        Whether other studies may have its record, and it that of other studies.
    record : bytes or None
        That of an earlier study.
    """

    comparison: Comparison
    label: str
    seed: int
    task: RunTask
    header: dict = field(repr=False)
    iterations: int = 0
    state: str = NEW
    source: Path | None = None
    done: int = 0
    error: str = ""
    part: str = RECIPE
    multiplier: float = 1.0
    shareable: bool = False
    record: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Unlike that of any other run of the study."""
        return self.task.name

    @property
    def path(self) -> Path:
        """Its record."""
        return Path(self.task.folder, f"seed-{self.seed}.jsonl")


@dataclass(frozen=True)
class StudyPlan:
    """The runs of a study, and the records in its folder that belong to none of them.

    Attributes
    ----------
    study : StudyFile
    out : pathlib.Path
    runs : tuple of PlannedRun
    strangers : tuple of (pathlib.Path, str)
        Records that will be set aside, and what they will be called.
    tuned : tuple of PlannedRun
        Those of every learning rate that may be chosen; which of them are needed is known after the trials.
    """

    study: StudyFile
    out: Path
    runs: tuple[PlannedRun, ...]
    strangers: tuple[tuple[Path, str], ...]
    tuned: tuple[PlannedRun, ...] = ()

    def of(self, comparison: Comparison, part: str = RECIPE) -> list[PlannedRun]:
        """The runs of a comparison: at the recipe's rate, its trials, or those at rates that may be chosen."""
        runs = self.tuned if part == TUNED else self.runs
        return [run for run in runs if run.comparison is comparison and run.part == part]

    @property
    def to_train(self) -> list[PlannedRun]:
        """The runs that have to be trained."""
        return [run for run in self.runs if run.state in TO_TRAIN]


@plain
def plan_study(study: StudyFile, out: str | Path, *, store: RecordStore | None = None) -> StudyPlan:
    """Determine what a study would do, without writing anything.

    Parameters
    ----------
    study : StudyFile
    out : path-like
        The study's folder.
    store : RecordStore, optional
        Records of earlier studies, which are used instead of training.

    Returns
    -------
    StudyPlan

    Raises
    ------
    ValueError
        If the data of a network cannot be had, or the folder is not a study's.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import read_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "one.toml")
    ...     _ = file.write_text('study = {designs = ["a-float32"], seeds = 2}\\nnetworks = [{name = "mlp"}]')
    ...     plan = plan_study(read_study(file), folder)
    >>> [(run.name, run.state) for run in plan.runs]
    [('mlp/a-float32/seed-1', 'new'), ('mlp/a-float32/seed-2', 'new')]
    """
    out = Path(out)
    runs = []
    for comparison in study.comparisons:
        for case, label in zip(comparison.cases, comparison.labels, strict=True):
            runs += _case(out, comparison, case, label)
    runs.sort(key=lambda run: (RECIPE, TRIAL, TUNED).index(run.part))  # else in the order of the file
    places = {run.path: run for run in runs}
    pool, strangers = _Pool(), []
    for path in _records(out):
        header, run = header_of(path), places.get(path)
        right = run is not None and header is not None and header == run.header
        stays = right and not _damaged(path, header, run.iterations)
        if not stays and path.parent != out / "aside":
            strangers.append((path, _name_aside(path, header, damaged=right)))
        if header is not None and (stays or not right):
            pool.add(path, header, stays)
    placed = [_of_earlier(pool.place(run), store) for run in runs]
    certain = share([run for run in placed if run.part != TUNED])
    return StudyPlan(study, out, certain, tuple(strangers), tuple(run for run in placed if run.part == TUNED))


def _of_earlier(run: PlannedRun, store: RecordStore | None) -> PlannedRun:
    """The run, with its record where it has to be trained and an earlier study has trained it."""
    if store is None or run.state not in TO_TRAIN or not run.shareable:
        return run
    record = store.find(run.header, run.iterations)
    return run if record is None else replace(run, state=KEPT, source=None, done=0, record=record)


def share(runs: list[PlannedRun]) -> tuple[PlannedRun, ...]:
    """The runs, where of those to be trained that are of one arithmetic all but the first are made from its record."""
    placed, leaders = [], {}
    for run in runs:
        if run.state in TO_TRAIN:
            leader = leaders.setdefault(arithmetic_of(run.header), run)
            if leader is not run:
                run = replace(run, state=SHARED, source=leader.path)
        placed.append(run)
    return tuple(placed)


def _case(out: Path, comparison: Comparison, case, label: str) -> list[PlannedRun]:
    """The runs of one design and batch size: one for each seed, and for each rate that is tried or may be chosen."""
    folder, rates = out / comparison.folder, comparison.rates
    settings = case.settings(comparison.settings)
    error, headers, iterations, shared = "", {}, 0, False
    try:
        design = with_hardware(load_design(case.design), comparison.hardware)
        shared = shareable(design, settings)
        headers, iterations = describe_runs(design, settings, comparison.seeds)
    except (TypeError, ValueError, OSError) as problem:
        error = str(problem)

    def planned(seed: int, header: dict, settings, place: str, **more) -> PlannedRun:
        name = f"{comparison.folder}/{label}/{place}seed-{seed}"
        records = folder / "tuning" / place / label if place else folder / "records" / label
        key = key_of(header) if header else None
        task = RunTask(name, case.design, settings, seed, str(records), key, hardware=comparison.hardware)
        state = UNUSABLE if error else NEW
        return PlannedRun(
            comparison, label, seed, task, header, iterations, state, error=error, shareable=shared, **more
        )  # fmt: skip

    found = [planned(seed, headers.get(seed, {}), settings, "") for seed in comparison.seeds]
    if rates is None or error:
        return found
    first = headers[comparison.seeds[0]]
    for multiplier in rates.multipliers:
        scaled = scale_rates(settings, multiplier)
        parts = [(TRIAL, rates.seeds), *([] if multiplier == 1 else [(TUNED, comparison.seeds)])]
        for part, seeds in parts:
            for seed in seeds:
                header = trial_header({**first, "seed": seed}, scaled)
                more = {"part": part, "multiplier": multiplier}
                found.append(planned(seed, header, scaled, f"{rate_name(multiplier)}/", **more))
    return found


def trial_header(header: dict, scaled) -> dict:
    """The first row of the record of a run with other settings, that differ in their learning rate alone."""
    config = {**header["config"], "optimiser": json.loads(json.dumps(scaled.describe_updates()["optimiser"]))}
    return {**copy.deepcopy(header), "config": copy.deepcopy(config)}


class _Pool:
    """The records that are there, by what they are of."""

    def __init__(self) -> None:
        self.finished: dict[str, Path] = {}
        self.started: dict[str, Path] = {}
        self.alike: dict[str, Path] = {}
        self.staying: set[Path] = set()

    def add(self, path: Path, header: dict, stays: bool) -> None:
        if stays:
            self.staying.add(path)
        key = key_of(header)
        if record_state(path, header) == "finished":
            if stays or key not in self.finished:
                self.finished[key] = path
            self.alike.setdefault(arithmetic_of(header), path)
        elif stays or key not in self.started:
            self.started[key] = path

    def place(self, run: PlannedRun) -> PlannedRun:
        """A run with its state, and what it is made from."""
        if run.state == UNUSABLE:
            return run
        if run.path in self.staying and record_state(run.path, run.header) == "finished":
            return replace(run, state=FOUND)
        key, wanted = run.task.key, arithmetic_of(run.header)
        path = self.finished.get(key)
        if path is not None and path not in self.staying and not _damaged(path, run.header, run.iterations):
            self.finished[key] = run.path  # of two runs with one key the second is a copy
            self.staying.add(run.path)
            self.alike = {k: run.path if old == path else old for k, old in self.alike.items()}
            return replace(run, state=BACK, source=path)
        path = self.alike.get(wanted)
        if path is not None and (path in self.staying or not _damaged(path, header_of(path), run.iterations)):
            return replace(run, state=SAME, source=path)
        if run.path in self.staying:
            return replace(run, state=STARTED, done=_rows(run.path) - 1)
        if (path := self.started.pop(key, None)) is not None and path not in self.staying:
            return replace(run, state=STARTED, source=path, done=_rows(path) - 1)
        return run


def apply_plan(plan: StudyPlan) -> None:
    """Set aside what belongs to no run, and put what does in its place. Whoever calls it holds the study's lock."""
    aside = plan.out / "aside"
    moved: dict[Path, Path] = {}
    for path, name in plan.strangers:
        aside.mkdir(parents=True, exist_ok=True)
        moved[path] = aside / name
        _move(path, moved[path])
    runs = (*plan.runs, *plan.tuned)
    for run in runs:
        source = moved.get(run.source, run.source)
        if run.state in (BACK, STARTED) and source is not None:
            run.path.parent.mkdir(parents=True, exist_ok=True)
            _move(source, run.path)
    for run in runs:
        if run.state == SAME:
            write_alike(run, moved.get(run.source, run.source).read_bytes())
        if run.state == KEPT:
            write_alike(run, run.record)
    for folder in {path.parent for path, _ in plan.strangers}:
        if not any(folder.iterdir()):
            folder.rmdir()


def write_alike(run: PlannedRun, record: bytes) -> None:
    """Write the record of a run from a finished one of the same arithmetic: it is what training would write."""
    run.path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(run.path, with_header(run.header, record))
    run.path.with_suffix(".checkpoint.npz").unlink(missing_ok=True)


def _move(path: Path, to: Path) -> None:
    """Rename a record and the checkpoint beside it, which is worth nothing without it."""
    to.with_suffix(".checkpoint.npz").unlink(missing_ok=True)
    path.replace(to)
    checkpoint = path.with_suffix(".checkpoint.npz")
    if checkpoint.is_file():
        checkpoint.replace(to.with_suffix(".checkpoint.npz"))


def _name_aside(path: Path, header: dict | None, *, damaged: bool) -> str:
    """What a record is called when it is set aside."""
    if header is not None and not damaged:
        return f"{key_of(header)}.jsonl"
    return f"damaged-{hashlib.sha256(path.read_bytes()).hexdigest()}.jsonl"


# -- records -----------------------------------------------------------------------------------------------------------
def _records(out: Path) -> list[Path]:
    """Every record in a study's folder: those in their places first."""
    places = ("*/records/*/seed-*.jsonl", "*/tuning/x*/*/seed-*.jsonl", "aside/*.jsonl")
    paths = [path for place in places for path in sorted(out.glob(place))]
    return [path for path in paths if not path.name.endswith(".statistics.jsonl")]


def record_state(path: Path, header: dict) -> str:
    """ "finished", "started" or "new": what a record with a first row says by its last one."""
    if not path.is_file() or header_of(path) != header:
        return "new"
    with open(path, "rb") as file:
        file.seek(0, 2)
        size = file.tell()
        file.seek(max(0, size - 4096))
        tail = file.read()
    last = tail.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        row = json.loads(last) if tail.endswith(b"\n") else {}
    except ValueError:
        row = {}
    return "finished" if isinstance(row, dict) and row.get("finished") is True else "started"


def _damaged(path: Path, header: dict, iterations: int) -> bool:
    """Whether the record of a run of so many iterations says that it is finished, and is not whole."""
    files = RunFiles(path.parent, 0, header, iterations)
    files.path = path
    try:
        files.finished()
    except ValueError:
        return True
    return False


def _rows(path: Path) -> int:
    return path.read_bytes().count(b"\n")
