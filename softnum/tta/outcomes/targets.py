"""Time to accuracy over the whole range of targets: one threshold is one point of a curve, and another may turn it.

For each target the runs are judged by the study's own rule, and the median and its interval are those of
`softnum.tta.outcomes.intervals`. Nothing is extrapolated: a design's curve ends at the farthest target that more than
half of its runs reach.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.accuracy.records import Evaluation
from softnum.tta.outcomes.intervals import bootstrap_interval
from softnum.tta.outcomes.outcome import Study
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["TargetCurve", "TargetPoint", "fastest_near", "study_targets", "target_curves", "target_spacing"]

STEPS = 48
_WIDE = 50.0  # ratio of the ends of a range of losses from which on it is gone through by factors
_FARTHEST = 1e9  # and up to which
_MANY_ERRORS = 8.0  # the same of 1 - accuracy
_NEAR = 0.1  # of the range, to either side of the target


@dataclass(frozen=True)
class TargetPoint:
    """What one target takes.

    Parameters
    ----------
    target : float
    reached : int
        Runs that reach it.
    iterations : float
        Median over the runs; infinite where half of them or fewer reach it.
    seconds : float or None
        The same times the time of an iteration; None without a time.
    low, high : float
        Interval of the seconds, or of the iterations without a time; the upper end may be infinite.
    """

    target: float
    reached: int
    iterations: float
    seconds: float | None
    low: float
    high: float


@dataclass(frozen=True)
class TargetCurve:
    """A design over the targets.

    Parameters
    ----------
    design : str
    runs : int
    points : tuple of TargetPoint
        From the easiest target to the hardest.
    """

    design: str
    runs: int
    points: tuple[TargetPoint, ...]

    @property
    def farthest(self) -> TargetPoint | None:
        """The hardest target that the median run reaches; None if there is none."""
        return next((point for point in reversed(self.points) if math.isfinite(point.iterations)), None)


def target_curves(
    curves: Mapping[str, Sequence[Sequence[Evaluation]]],
    rule: ReachedRule,
    times: Mapping[str, IterationTime],
    *,
    target: float,
    confidence: float = 0.95,
    by_clock: bool = False,
) -> tuple[TargetCurve, ...]:
    """Time to each of many targets, from the worst first evaluation to the best of all.

    Parameters
    ----------
    curves : Mapping of str to sequence of sequence of Evaluation
        The evaluations of each run of each design.
    rule : ReachedRule
    times : Mapping of str to IterationTime
        Seconds per iteration, of the designs that have them.
    target : float
        One more target to look at: that of the study, if it lies in the range.
    confidence : float
        Confidence level of the intervals.
    by_clock : bool
        Whether seconds are those that the evaluations state, and no product.

    Returns
    -------
    tuple of TargetCurve
        In the order of the designs, over one grid of targets: steps as `target_spacing` has them, the study's target,
        and where each design's curve ends.
        Targets that a run meets before its first update are left out. Empty if no evaluation is finite.

    Examples
    --------
    >>> runs = [[Evaluation(10, 0.5), Evaluation(20, 0.9)], [Evaluation(10, 0.7), Evaluation(20, 0.8)]]
    >>> (curve,) = target_curves({"a": runs}, ReachedRule(), {"a": IterationTime("a", 2.0)}, target=0.75)
    >>> [(p.seconds, p.low, p.high) for p in curve.points if p.target in (0.5, 0.75, 0.9)]
    [(20.0, 20.0, 20.0), (40.0, 40.0, 40.0), (inf, 40.0, inf)]
    >>> curve.farthest.target
    0.8
    """
    steps = {design: [_steps(rule, run) for run in runs] for design, runs in curves.items()}
    grid = _grid(steps, rule, target)
    found = []
    for design, runs in steps.items():
        time, known, points = times.get(design), {}, []
        clocks = [_steps(rule, run, by_clock=True) for run in curves[design]] if by_clock else []
        for aim in grid:
            needed = tuple(_needed(run, rule, aim) for run in runs)
            if needed not in known:
                median = statistics.median(needed)
                if by_clock:
                    shown = tuple(_needed(run, rule, aim) for run in clocks)
                    ends, seconds = bootstrap_interval(shown, confidence=confidence), statistics.median(shown)
                else:
                    ends = bootstrap_interval(needed, time, confidence=confidence)
                    seconds = None if time is None else median * time.seconds
                known[needed] = (median, seconds, *ends)
            points.append(TargetPoint(aim, sum(map(math.isfinite, needed)), *known[needed]))
        found.append(TargetCurve(design, len(runs), tuple(points)))
    return tuple(found) if grid else ()


def target_spacing(easiest: float, hardest: float, direction: str) -> str:
    """How targets are best laid out: "linear"; by "factors", like losses; or by factors of the "errors", 1 - target.

    Examples
    --------
    >>> target_spacing(0.1, 0.99, "higher"), target_spacing(0.1, 0.7, "higher"), target_spacing(9.0, 0.01, "lower")
    ('errors', 'linear', 'factors')
    """
    if direction == "higher" and 0 <= easiest and hardest < 1 and (1 - easiest) > _MANY_ERRORS * (1 - hardest):
        return "errors"
    return "factors" if direction == "lower" and 0 < hardest and easiest > _WIDE * hardest else "linear"


def study_targets(study: Study) -> tuple[TargetCurve, ...]:
    """`target_curves` of a study's runs and times.

    Examples
    --------
    >>> from softnum.tta import Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(40, 0.5), Evaluation(80, 0.9)), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> (curve,) = study_targets(study)
    >>> curve.points[0].seconds, curve.points[-1].seconds
    (80.0, 160.0)
    """
    curves = {result.design: [] for result in study.designs}
    for record in study.records:
        curves[record.label].append(record.evaluations)
    times = {result.design: result.time for result in study.designs if result.time is not None}
    clock = all(result.by_clock for result in study.designs)
    return target_curves(curves, study.reached, times, target=study.target, confidence=study.confidence, by_clock=clock)


def fastest_near(curves: Iterable[TargetCurve], target: float) -> dict[str, tuple[float, float]]:
    """Which design's median run is the fastest, at the targets within a tenth of their range around one, as laid out.

    Parameters
    ----------
    curves : iterable of TargetCurve
        Of designs that have times; the others are passed over.
    target : float

    Returns
    -------
    dict
        Design -> (least, greatest target at which it is the fastest), that of the target itself first. Empty if no
        design reaches it. Only targets count that the fastest at `target` reaches, too, and it where it is as fast.

    Examples
    --------
    >>> def curve(name, *seconds):
    ...     return TargetCurve(name, 1, tuple(TargetPoint(t, 1, s, s, s, s)
    ...                                       for t, s in zip((0.0, 0.94, 0.95, 1.0), seconds)))
    >>> fastest_near([curve("a", 1.0, 3.0, 4.0, 5.0), curve("b", 2.0, 2.0, 4.5, 6.0)], 0.95)
    {'a': (0.95, 1.0), 'b': (0.94, 0.94)}
    """
    timed = [c for c in curves if c.points and c.points[0].seconds is not None]
    if not timed:
        return {}
    aims = [point.target for point in timed[0].points]
    at = _places(aims)
    near = _NEAR * (max(at.values()) - min(at.values()))
    rows = [
        dict(zip([c.design for c in timed], points, strict=True))
        for points in zip(*(c.points for c in timed), strict=True)
    ]
    own = next((row for aim, row in zip(aims, rows, strict=True) if aim == target), None)
    if own is None:
        return {}
    first = min(own, key=lambda name: own[name].seconds)
    if not math.isfinite(own[first].seconds):
        return {}
    found = {first: [target]}
    for aim, row in zip(aims, rows, strict=True):
        best = min(row, key=lambda name: (row[name].seconds, name != first))
        if abs(at[aim] - at[target]) <= near and math.isfinite(row[first].seconds):
            found.setdefault(best, []).append(aim)
    return {name: (min(where), max(where)) for name, where in found.items()}


def _places(aims: Sequence[float]) -> dict[float, float]:
    """Where targets lie on an axis that is laid out by `target_spacing`."""
    how = target_spacing(aims[0], aims[-1], "higher" if aims[-1] >= aims[0] else "lower")
    if how == "errors":
        return {aim: -math.log(1 - aim) for aim in aims}
    return {aim: math.log(aim) for aim in aims} if how == "factors" else {aim: aim for aim in aims}


def _steps(
    rule: ReachedRule, evaluations: Sequence[Evaluation], *, by_clock: bool = False
) -> list[tuple[Fraction | float, float]]:
    """(hardest target that has been reached, iteration or seconds) of a run, wherever it grows harder.

    By the rule an evaluation reaches a target if the last k means over its window all do: if the worst of them does.
    """
    sign, steps = (1 if rule.direction == "higher" else -1), []
    window, row = deque(maxlen=rule.window), deque(maxlen=rule.k)
    for evaluation, value in zip(evaluations, rule.smoothed(evaluations), strict=True):
        if not math.isfinite(value):
            window.clear()
            row.clear()
            continue
        window.append(Fraction(value))
        if len(window) < rule.window:
            continue
        row.append(sign * (sum(window) / rule.window if rule.window > 1 else value))
        if len(row) == rule.k and (not steps or min(row) > sign * steps[-1][0]):
            steps.append((sign * min(row), (evaluation.seconds or 0.0) if by_clock else evaluation.iteration))
    return steps


def _needed(steps: Sequence[tuple[Any, ...]], rule: ReachedRule, target: float) -> float:
    """Iterations to a target, infinite where it is not reached."""
    sign = 1 if rule.direction == "higher" else -1
    at = bisect.bisect_left(steps, sign * target, key=lambda step: sign * step[0])
    return steps[at][1] if at < len(steps) else math.inf


def _grid(steps: Mapping[str, Sequence[Sequence[tuple[Any, ...]]]], rule: ReachedRule, target: float) -> list[float]:
    """The targets, from the easiest to the hardest."""
    sign = 1 if rule.direction == "higher" else -1
    every = [run for runs in steps.values() for run in runs if run]
    if not every:
        return []
    # a mean of evaluations is a fraction, and the float beside it may be the harder one: then it is the next easier
    ends = [min(sign * run[0][0] for run in every), max(sign * run[-1][0] for run in every)]
    start, best = (_easier(end) for end in ends)
    ratios = [i / STEPS for i in range(1, STEPS)]
    how = target_spacing(sign * start, sign * best, rule.direction)
    if how == "factors":
        start = max(start, best * _FARTHEST)  # both are below 0 here; a first loss of a run that explodes says nothing
        inner = [start * (best / start) ** ratio for ratio in ratios]
    elif how == "errors":
        inner = [1 - (1 - start) * ((1 - best) / (1 - start)) ** ratio for ratio in ratios]
    else:
        inner = [start + (best - start) * ratio for ratio in ratios]
    grid = {start, best, *(aim for aim in (*inner, sign * target) if start <= aim <= best)}
    for runs in steps.values():  # the farthest that more than half of the runs reach
        farthest = sorted((sign * run[-1][0] if run else -math.inf) for run in runs)[(len(runs) - 1) // 2]
        if math.isfinite(farthest):
            grid.add(_easier(farthest))
    before = [sign * score for run in every for score, iteration in run if iteration == 0]
    return [sign * aim for aim in sorted(grid) if not before or aim > max(before)]


def _easier(value: Fraction | float) -> float:
    """The float at a value, or next below it."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)
