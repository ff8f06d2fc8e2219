"""Learning rates tuned for each design of a study: trials on seeds of their own, then runs at the rates chosen.

A run's record is ``<out>/x<multiple>/<label>/seed-<n>.jsonl``: tuning seeds and judged seeds differ, so that trials and
the runs that are judged at a chosen rate lie side by side, each known by design, seed and rate. Finished runs are found
again, so that a grid can be widened and a tuning that was interrupted goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from softnum.runtime.plain import plain
from softnum.train.designs.reader import load_design
from softnum.train.runs.settings import Settings
from softnum.train.studies.plan import record_state, trial_header
from softnum.train.studies.rates import check_apart, rate_name, scale_rates
from softnum.train.studies.store import RecordStore
from softnum.train.studies.study import Case, carry_out_tasks, case_labels, check_seeds
from softnum.train.studies.task import RunTask, describe_runs
from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.accuracy.records import RecordSet, read_records
from softnum.tta.outcomes.tuning import TunedDesign, Tuning, choose_rate, read_multipliers, trials_of

__all__ = ["TuningPlan", "plan_tuning", "tune_rates", "tuned_designs", "tuning_with"]


@dataclass(frozen=True)
class TuningPlan:
    """What a tuning will cost, before it starts.

    Attributes
    ----------
    runs, iterations : int
        Of all trials, those included that are finished.
    to_train : int
        Trials that are not finished.
    judged_runs, judged_iterations : int
        Of the designs once more, which is the most that is trained at chosen rates, and what the study itself has.
    """

    runs: int
    iterations: int
    to_train: int
    judged_runs: int
    judged_iterations: int

    @property
    def text(self) -> str:
        """The cost in words."""
        share = self.iterations / self.judged_iterations
        study = f"{_runs(self.judged_runs)} of {self.judged_iterations:,} iterations"
        return (
            f"Tuning: {_runs(self.runs)} of {self.iterations:,} iterations in all, {self.to_train} of them to train; "
            f"then up to {study} at the rates chosen. The study without tuning is {study}: with it, {1 + share:.3g} to "
            f"{2 + share:.3g} times as much."
        )


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _checked(cases, settings, multipliers, seeds, judged):
    cases, seeds, judged = list(cases), list(seeds), list(judged)
    check_seeds(judged)
    if not cases or not seeds or not judged:
        raise ValueError(
            f"tuning needs a design, a tuning seed and a seed, got {len(cases)}, {len(seeds)}, {len(judged)}"
        )
    check_apart(seeds, judged, "--tune-seeds", "that designs are judged by")
    multipliers = read_multipliers(multipliers)
    scaled = {multiplier: scale_rates(settings, multiplier) for multiplier in multipliers}
    return cases, case_labels(cases), seeds, judged, scaled


@plain
def plan_tuning(
    cases: Iterable[Case],
    settings: Settings,
    multipliers: Iterable[float],
    *,
    seeds: Sequence[int],
    judged: Sequence[int],
    out: str | Path,
) -> TuningPlan:
    """Determine what a tuning will cost, without writing anything.

    Parameters
    ----------
    cases, settings, multipliers, seeds, judged, out
        As of `tune_rates`.

    Returns
    -------
    TuningPlan

    Raises
    ------
    ValueError
        As `tune_rates`.

    Examples
    --------
    >>> plan = plan_tuning([Case("a-float32")], Settings(), [0.5, 1, 2], seeds=[1001], judged=[1, 2], out="runs/tuning")
    >>> plan.runs, plan.iterations, plan.judged_iterations
    (3, 2520, 1680)
    """
    cases, labels, seeds, judged, scaled = _checked(cases, settings, multipliers, seeds, judged)
    runs = iterations = finished = judged_iterations = 0
    for case, label in zip(cases, labels, strict=True):
        headers, length = describe_runs(
            load_design(case.design), case.settings(settings), seeds
        )  # fmt: skip
        judged_iterations += length * len(judged)
        for multiplier, chosen in scaled.items():
            for seed in seeds:
                header = trial_header(headers[seed], chosen)
                runs, iterations = runs + 1, iterations + length
                finished += record_state(_path(out, multiplier, label, seed), header) == "finished"
    return TuningPlan(runs, iterations, runs - finished, len(cases) * len(judged), judged_iterations)


def _folder(out: str | Path, multiplier: float) -> Path:
    return Path(out, rate_name(multiplier))


def _path(out: str | Path, multiplier: float, label: str, seed: int) -> Path:
    return _folder(out, multiplier) / label / f"seed-{seed}.jsonl"


@plain
def tune_rates(
    cases: Iterable[Case],
    settings: Settings,
    multipliers: Iterable[float],
    records: RecordSet,
    *,
    seeds: Sequence[int],
    target: float,
    reached: ReachedRule,
    metric: str = "accuracy",
    out: str | Path,
    jobs: int | None = None,
    device: str = "cpu",
    force: bool = False,
    progress: Callable[[int, int, str, bool], None] | None = None,
    store: RecordStore | None = None,
) -> Tuning:
    """Train every design at every rate with the tuning seeds, choose its rate, and train it there with the judged ones.

    Parameters
    ----------
    cases : iterable of Case
    settings : Settings
        The recipe, as of `run_study`.
    multipliers : iterable of float
        The grid, as multiples of the recipe's learning rate; 1 is one of them.
    records : RecordSet
        The study's runs at the recipe's rate, whose seeds are those that are judged.
    seeds : sequence of int
        Of the trials; none of them is judged.
    target, reached, metric
        What a run has to reach, as of `softnum.tta.combine_study`.
    out : path-like
        Folder of the records.
    jobs, device, force, progress, store
        As of `run_study`; records do not depend on jobs and device.

    Returns
    -------
    Tuning

    Raises
    ------
    ValueError
        If a rate, a seed, a design or a setting is unusable, or a seed is both of a trial and judged.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import run_study
    >>> cases, recipe = [Case("a-float32", 256)], Settings(epochs=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = run_study(cases, recipe, seeds=[1], out=Path(folder, "records"), jobs=1)
    ...     tuning = tune_rates(cases, recipe, [1, 2], read_records(paths), seeds=[1001], target=0.8,
    ...                         reached=ReachedRule(), out=Path(folder, "tuning"), jobs=1)
    >>> tuning["a-float32"].chosen.rate, tuning.cost["iterations"]
    (0.1, 10)
    """
    judged = sorted({record.seed for record in records.records})
    cases, labels, seeds, judged, scaled = _checked(cases, settings, multipliers, seeds, judged)
    options = {"jobs": jobs, "device": device, "progress": progress, "store": store}

    def task(case: Case, label: str, multiplier: float, seed: int) -> RunTask:
        return RunTask(
            f"{label} at x{multiplier:g}, seed {seed}", case.design,
            case.settings(scaled[multiplier]), seed, str(_folder(out, multiplier) / label),
            force=force, device=device,
        )  # fmt: skip

    pairs = list(zip(cases, labels, strict=True))
    carry_out_tasks([task(*pair, m, seed) for pair in pairs for m in scaled for seed in seeds], **options)
    found = {
        label: {m: [_path(out, m, label, seed) for seed in seeds] for m in scaled} for label in labels
    }  # fmt: skip
    designs = tuned_designs(found, target, reached, metric)
    moved = [
        (*pair, tuned.chosen.multiplier)
        for pair, tuned in zip(pairs, designs, strict=True)
        if tuned.chosen.multiplier != 1
    ]
    if moved:
        carry_out_tasks([task(case, label, m, seed) for case, label, m in moved for seed in judged], **options)
    rated = {label: [_path(out, m, label, seed) for seed in judged] for _, label, m in moved}
    return tuning_with(tuple(scaled), seeds, designs, records, rated, metric)


def tuned_designs(
    trials: Mapping[str, Mapping[float, Sequence[Path]]], target: float, reached: ReachedRule, metric: str
) -> tuple[TunedDesign, ...]:
    """Choose the rate of each design from the records of its trials, by its label and the multiple of the rate."""
    found = []
    for label, paths in trials.items():
        runs = {multiplier: _read(of_rate, metric) for multiplier, of_rate in paths.items()}
        found.append(choose_rate(label, trials_of(label, runs, target, reached)))
    return tuple(found)


def tuning_with(
    multipliers: Sequence[float],
    seeds: Sequence[int],
    designs: Sequence[TunedDesign],
    records: RecordSet,
    rated: Mapping[str, Sequence[Path]],
    metric: str,
) -> Tuning:
    """What was tuned, with the study's runs, in which those at other rates than the recipe's take the places of some.

    rated: by label, the records at the rate that was chosen, where that is another than the recipe's.
    """
    kept = [record for record in records.records if record.label not in rated]
    for paths in rated.values():
        kept += _read(paths, metric)
    return Tuning(tuple(multipliers), tuple(seeds), tuple(designs), RecordSet(tuple(kept), records.excluded))


def _read(paths: Sequence[Path], metric: str):
    return read_records(paths, metric=metric).records
