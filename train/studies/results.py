"""What comes of a study: the results of each comparison, ``study.json``, and the report."""

from __future__ import annotations

import importlib.util
import json
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from softnum.train.studies.plan import RECIPE, TRIAL, UNUSABLE, PlannedRun, StudyPlan, record_state
from softnum.train.studies.study import case_workloads
from softnum.train.studies.study_keys import VARIANTS
from softnum.train.studies.study_tables import Comparison, StudyFile
from softnum.train.studies.tuning import tuning_with
from softnum.tta.accuracy.records import RecordSet, read_records
from softnum.tta.html.report import write_report
from softnum.tta.outcomes.outcome import Variant
from softnum.tta.outcomes.report import plot_details
from softnum.tta.outcomes.tuning import TunedDesign, Tuning
from softnum.tta.study import chosen_variants, conclude, outcome_rules, study_variants
from softnum.tta.workloads.files import write_workloads

__all__ = [
    "STUDY_SCHEMA", "Outcome", "comparison_variants", "conclude_comparison", "on_one_line", "study_inputs",
    "write_page", "write_study", "write_works",
]  # fmt: skip

STUDY_SCHEMA = 1
#: packages of the extra [report]
_REPORT = ("altair", "jinja2", "jsonschema", "vl_convert")


@dataclass
class Outcome:
    """What came of a study.

    Attributes
    ----------
    plan : StudyPlan
    trained, copied, found, taken : int
        Runs that were trained; that got the rows of another run of the same arithmetic; that were finished before;
        whose records are of earlier studies.
    failed : dict
        Name of a run -> why it failed.
    comparisons : dict
        Folder -> why it has no results.
    report : pathlib.Path or None
    notes : list of str
    rates : dict
        Folder -> what learning rate was chosen for each design, and why.
    untuned : dict
        Folder -> why it has no results at tuned rates.
    tuned : tuple of PlannedRun
        The runs at chosen rates that the study itself has not.
    plots : list of pathlib.Path
        Charts that were asked for.
    """

    plan: StudyPlan
    trained: int = 0
    copied: int = 0
    found: int = 0
    taken: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    comparisons: dict[str, str] = field(default_factory=dict)
    report: Path | None = None
    notes: list[str] = field(default_factory=list)
    rates: dict[str, tuple[TunedDesign, ...]] = field(default_factory=dict)
    untuned: dict[str, str] = field(default_factory=dict)
    tuned: tuple[PlannedRun, ...] = ()
    plots: list[Path] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every run finished and every comparison has results."""
        return not self.failed and not self.comparisons


def on_one_line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def write_works(plan: StudyPlan, comparison: Comparison) -> None:
    """Write what an iteration consists of, under each design that can be trained."""
    usable = {run.label for run in plan.of(comparison) if run.state != UNUSABLE}
    pairs = zip(comparison.cases, comparison.labels, strict=True)
    cases = [replace(case, label=label) for case, label in pairs if label in usable]
    folder = plan.out / comparison.folder
    write_workloads(folder / "workloads.json", case_workloads(cases, comparison.settings))


def _tuning(comparison: Comparison, records: RecordSet, outcome: Outcome) -> Tuning | None:
    """The learning rates that were chosen, with the runs at them; None where there are none, or not all finished."""
    designs = outcome.rates.get(comparison.folder)
    if designs is None:
        return None
    there = {record.label for record in records.records}
    designs = [tuned for tuned in designs if tuned.design in there]
    rated: dict[str, list[Path]] = {}
    for run in outcome.tuned:
        if run.comparison is comparison and run.label in there:
            if run.name in outcome.failed:
                outcome.untuned[comparison.folder] = f"tuned learning rates are left out: {run.name} did not finish"
                return None
            rated.setdefault(run.label, []).append(run.path)
    grid = comparison.rates
    return tuning_with(grid.multipliers, grid.seeds, designs, records, rated, comparison.metric)


def comparison_variants(comparison: Comparison, points, out: Path, *, variant: str = "all", **how) -> list[Variant]:
    """The times of a comparison's designs, as its file says where they are from.

    Parameters
    ----------
    comparison : Comparison
    points : sequence of DesignPoint
    out : pathlib.Path
        The comparison's folder, with a simulator's reports.
    variant : str
        One of `VARIANTS` in place of the file's; "all": the file's.
    **how
        jobs, progress and run_simulator of `softnum.tta.study_variants`.
    """
    timings = comparison.timings
    variants = study_variants(
        points, baseline=comparison.baseline, out=out, timings=timings.sources or None, **timings.reading,
        simulator=timings.simulator, dataflow=timings.dataflow, reports=timings.reports, **how,
    )  # fmt: skip
    return chosen_variants(variants, VARIANTS[timings.variant if variant == "all" else variant])


def study_inputs(comparison: Comparison, study: str, command: str, network) -> dict:
    """What ``results.json`` keeps of what a comparison was asked for."""
    settings = comparison.settings
    return {
        "command": command, "study": study, "designs": list(comparison.labels), "seeds": list(comparison.seeds),
        "epochs": settings.epochs, "network": network, "data": settings.data,
        "batches": [case.batch for case in comparison.cases], **settings.describe_updates(),
    }  # fmt: skip


def conclude_comparison(
    plan: StudyPlan,
    comparison: Comparison,
    variants,
    outcome: Outcome,
    console=None,
    *,
    explain: bool = False,
    plots: str | Path | None = None,
) -> None:
    """Combine the runs that are finished with the times, and write and print what follows."""
    from rich.console import Console

    runs = plan.of(comparison)
    there = [run.path for run in runs if run.state != UNUSABLE and record_state(run.path, run.header) == "finished"]
    missing = tuple(
        f"{run.label}, seed {run.seed}, has no finished run and is left out: {on_one_line(outcome.failed[run.name])}"
        for run in runs
        if run.name in outcome.failed
    )
    settings = comparison.settings
    console = console or Console()
    console.print(f"\n{comparison.folder} on {settings.data}", highlight=False, markup=False)
    try:
        if not there:
            raise ValueError("no run of it finished")
        records = read_records(there, metric=comparison.metric)
        tuning = _tuning(comparison, records, outcome)
        untuned = [outcome.untuned[comparison.folder]] if comparison.folder in outcome.untuned else []
        studies = conclude(
            RecordSet(records.records, (*records.excluded, *missing, *untuned)), variants, target=comparison.target,
            baseline=comparison.baseline, out=plan.out / comparison.folder, console=console, tuning=tuning,
            explain=explain,
            **outcome_rules(comparison.labels, comparison.baseline, **comparison.rules),
            inputs=study_inputs(
                comparison, plan.study.name, f"softnum study run {shlex.quote(plan.study.path.name)}",
                next(run.header["config"]["network"] for run in runs if run.header),
            ),
        )  # fmt: skip
        if plots is not None:
            _plot(Path(plots, comparison.folder), studies, outcome)
    except ValueError as error:
        outcome.comparisons[comparison.folder] = str(error)
        console.print(f"no results: {on_one_line(str(error))}", highlight=False, markup=False)


def _plot(folder: Path, studies, outcome: Outcome) -> None:
    """Draw what stands behind the times to accuracy."""
    for name, found in plot_details(folder, studies).items():
        if isinstance(found, Path):
            outcome.plots.append(found)
        else:
            outcome.notes.append(f"No {folder.name}/{name}: {found}.")


def write_study(plan: StudyPlan, outcome: Outcome) -> None:
    """Write ``study.json``: what the study consists of, and where everything lies."""
    from softnum.runtime.atomic import write_atomic

    comparisons = []
    for comparison in plan.study.comparisons:
        settings, runs = comparison.settings, []
        tuned = [run for run in outcome.tuned if run.comparison is comparison]
        for run in (*plan.of(comparison), *plan.of(comparison, TRIAL), *tuned):
            error = outcome.failed.get(run.name)
            state = "failed" if error else record_state(run.path, run.header)
            entry = {"label": run.label, "seed": run.seed, "key": run.task.key, "iterations": run.iterations}
            entry |= {} if run.part == RECIPE else {"part": run.part, "multiplier": run.multiplier}
            entry |= {"record": run.path.relative_to(plan.out / comparison.folder).as_posix(), "state": state}
            runs.append(entry | ({"error": error} if error else {}))
        entry = {
            "folder": comparison.folder, "network": settings.network, "options": settings.network_options,
            "data": settings.data, "epochs": settings.epochs, "target": comparison.target,
            "metric": comparison.metric, "rules": comparison.rules, "baseline": comparison.baseline,
            "seeds": list(comparison.seeds),
            "designs": [
                {"label": label, "design": _shown(plan.study, case.design), "batch": case.batch, **_shared(case)}
                for label, case in zip(comparison.labels, comparison.cases, strict=True)
            ],
            "runs": runs,
        }  # fmt: skip
        if comparison.folder in outcome.comparisons:
            entry["error"] = outcome.comparisons[comparison.folder]
        comparisons.append(entry)
    table = {
        "schema": STUDY_SCHEMA, "name": plan.study.name, "file": plan.study.path.name, "study": plan.study.table,
        "comparisons": comparisons,
    }  # fmt: skip
    text = json.dumps(table, indent=1, ensure_ascii=False, default=str)
    write_atomic(plan.out / "study.json", text + "\n")


def _shared(case) -> dict:
    """Its workers, where it states any."""
    return {} if case.workers is None else {"workers": case.workers, "collective": case.collective}


def _shown(study: StudyFile, design: str) -> str:
    """A design as the study's file names it: a path relative to the file."""
    path = Path(design)
    return path.relative_to(study.path.parent).as_posix() if path.is_relative_to(study.path.parent) else design


def write_page(study: StudyFile, out: Path, outcome: Outcome) -> None:
    """The HTML page of the whole study."""
    if study.html is False:
        return
    if not any((out / c.folder / "results.json").is_file() for c in study.comparisons):
        return
    missing = [name for name in _REPORT if importlib.util.find_spec(name) is None]
    if missing:
        outcome.notes.append(f"no report.html: it takes {', '.join(missing)}: pip install 'softnum[report]'")
        return
    outcome.report = write_report(out, out / "report.html")
