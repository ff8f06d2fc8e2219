"""The learning rates of a study: what trying them will cost, and which are chosen once the trials are finished."""

from __future__ import annotations

from softnum.train.studies.plan import RECIPE, TO_TRAIN, TRIAL, TUNED, UNUSABLE, PlannedRun, StudyPlan, record_state
from softnum.train.studies.results import Outcome
from softnum.train.studies.study_tables import Comparison
from softnum.train.studies.tuning import TuningPlan, tuned_designs
from softnum.tta.study import outcome_rules

__all__ = ["choose_rates", "tuning_plan"]


def tuning_plan(plan: StudyPlan, comparison: Comparison) -> TuningPlan | None:
    """What the trials of a comparison will cost; None if it has none."""
    trials = plan.of(comparison, TRIAL)
    if not trials:
        return None
    judged = [run for run in plan.of(comparison, RECIPE) if run.state != UNUSABLE]
    return TuningPlan(
        len(trials), sum(run.iterations for run in trials), sum(run.state in TO_TRAIN for run in trials), len(judged),
        sum(run.iterations for run in judged),
    )  # fmt: skip


def choose_rates(plan: StudyPlan, outcome: Outcome) -> list[PlannedRun]:
    """Choose the rates of every comparison whose trials are finished, and return the runs at those that are chosen.

    The choice is written into `outcome`; of a comparison that lacks trials it says which. Of such a one there are
    results without tuning alone, because its designs would have been tuned unequally.
    """
    needed = []
    for comparison in plan.study.comparisons:
        trials = plan.of(comparison, TRIAL)
        if not trials or comparison.folder in outcome.comparisons:
            continue
        lacking = [run.name for run in trials if record_state(run.path, run.header) != "finished"]
        if lacking:
            outcome.untuned[comparison.folder] = _left_out(lacking)
            continue
        paths: dict = {}
        for run in trials:
            paths.setdefault(run.label, {}).setdefault(run.multiplier, []).append(run.path)
        rules = outcome_rules(comparison.labels, comparison.baseline, **comparison.rules)
        try:
            designs = tuned_designs(paths, comparison.target, rules["reached"], comparison.metric)
        except ValueError as error:  # what its results will not come from either, as a target that is met untrained
            outcome.untuned[comparison.folder] = f"tuned learning rates are left out: {error}"
            continue
        outcome.rates[comparison.folder] = designs
        chosen = {(tuned.design, tuned.chosen.multiplier) for tuned in designs}
        needed += [run for run in plan.of(comparison, TUNED) if (run.label, run.multiplier) in chosen]
    return needed


def _left_out(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"tuned learning rates are left out: {', '.join(names[:3])}{more} did not finish"
