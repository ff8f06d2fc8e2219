"""A design over the baseline: factors, intervals, ties, cost, energy; `softnum.tta.outcomes.combine` defines them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from softnum.tta.accuracy.records import Record
from softnum.tta.outcomes.cost import Cost
from softnum.tta.outcomes.interaction import Factors
from softnum.tta.outcomes.intervals import bootstrap_interval, ratio_holds_one, ratio_interval, share_interval
from softnum.tta.outcomes.outcome import CostResult, DesignResult, EnergyResult, Intervals

__all__ = ["charge", "compare", "find_ties", "own_rent"]


def _runs(result: DesignResult) -> list[float]:
    """Iterations to the target of each run."""
    return [math.inf if run.iterations_to_target is None else run.iterations_to_target for run in result.runs]


def _clocks(result: DesignResult) -> list[float]:
    """Seconds to the target of each run, by its own clock."""
    return [math.inf if run.seconds_to_target is None else run.seconds_to_target for run in result.runs]


def _rates(result: DesignResult) -> list[float | None]:
    """Seconds per sample up to the target of each run that reached it; None if none did."""
    reached = [run for run in result.runs if run.iterations_to_target is not None]
    return [run.seconds_to_target / (run.iterations_to_target * result.batch) for run in reached] or [None]


def compare(result: DesignResult, base: DesignResult, confidence: float) -> DesignResult:
    factors = Factors.over(result, base)
    iterations = bootstrap_interval(_runs(result), confidence=confidence)
    found = {"iterations": iterations, "samples": tuple(end * result.batch for end in iterations)}
    speedup = factors.speedup
    alike = result.unit == base.unit  # samples are not compared with steps or epochs
    ends = [one.tta.median for one in (result, base) if one.tta is not None]
    if (result.by_clock or not alike) and len(ends) == 2 and all(map(math.isfinite, ends)):
        speedup = ends[1] / ends[0]
    if result.by_clock:
        found["tta"] = bootstrap_interval(_clocks(result), confidence=confidence)
    elif result.time is not None:
        found["tta"] = bootstrap_interval(_runs(result), result.time, confidence=confidence)
    if result.design != base.design and result.by_clock:
        found["speedup"] = ratio_interval(_clocks(base), _clocks(result), confidence=confidence)
        if alike:
            rates = _rates(base), _rates(result)
            if None not in (*rates[0], *rates[1]):
                found["throughput"] = ratio_interval(*rates, confidence=confidence)
            ratio = {"factor": base.batch / result.batch, "confidence": confidence}
            found["efficiency"] = ratio_interval(_runs(base), _runs(result), **ratio)
    elif result.design != base.design:
        times = None if result.time is None or base.time is None else (base.time, result.time)
        ratio = {"factor": result.batch / base.batch, "confidence": confidence}
        if times is not None:
            found["speedup"] = ratio_interval(_runs(base), _runs(result), times, confidence=confidence)
        if times is not None and alike:
            found["throughput"] = ratio_interval([1.0], [1.0], times, **ratio)
        if alike:
            ratio["factor"] = base.batch / result.batch
            found["efficiency"] = ratio_interval(_runs(base), _runs(result), **ratio)
    return replace(
        result,
        throughput=factors.throughput,
        efficiency=factors.efficiency,
        speedup=speedup,
        share=share_interval(result.reached, len(result.runs), confidence=confidence),
        intervals=Intervals(**found),
    )


def own_rent(records: Sequence[Record]) -> Cost | None:
    """The rent that the files of a design's runs state, if they agree."""
    rents = {record.rent for record in records}
    return Cost(rent_per_hour=rents.pop()) if len(rents) == 1 and None not in rents else None


def charge(
    result: DesignResult, cost: Cost | None, energy: tuple[float, str] | None, confidence: float
) -> DesignResult:
    """The result with its cost and its energy to accuracy, where rent, price or joules are known."""
    intervals, bill, spent = {}, None, None
    if cost is not None:
        to_accuracy = per_throughput = None
        if result.tta is not None and cost.rent_per_hour is not None:
            to_accuracy = result.tta.scaled(cost.rent_per_hour / 3600)
            intervals["cost"] = tuple(end * cost.rent_per_hour / 3600 for end in result.intervals.tta)
        if result.time is not None and cost.price is not None:
            per_throughput = cost.price * result.time.seconds / result.batch
        bill = CostResult(cost.rent_per_hour, cost.price, to_accuracy, per_throughput)
    if result.time is not None and result.time.joules is not None:
        energy = (result.time.joules, result.time.source)
    if energy is not None:
        spent = EnergyResult(*energy, result.iterations.scaled(energy[0]))
        intervals["energy"] = tuple(end * energy[0] for end in result.intervals.iterations)
    return replace(result, cost=bill, energy=spent, intervals=replace(result.intervals, **intervals))


def find_ties(
    results: Sequence[DesignResult], baseline: str, confidence: float
) -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Of each design, those that it ties with in TTA, and in samples to the target, in the study's order."""
    found = {result.design: (set(), set()) for result in results}
    known = [result for result in results if math.isfinite(result.samples.median)]
    # the baseline above the line, as in a speed-up: quantiles of a ratio are not always those of its inverse
    known.sort(key=lambda result: result.design != baseline)
    for over, under in itertools.combinations(known, 2):
        runs, factor = (_runs(over), _runs(under)), over.batch / under.batch
        if over.by_clock:
            in_tta = ratio_holds_one(_clocks(over), _clocks(under), confidence=confidence)
        else:
            times = None if over.time is None or under.time is None else (over.time, under.time)
            in_tta = times is not None and ratio_holds_one(*runs, times, confidence=confidence)
        tied = (
            in_tta,
            over.unit == under.unit and ratio_holds_one(*runs, factor=factor, confidence=confidence),
        )
        for which in (0, 1):
            if tied[which]:
                found[over.design][which].add(under.design)
                found[under.design][which].add(over.design)
    order = [result.design for result in results]
    return {
        name: tuple(tuple(other for other in order if other in tied) for tied in pair) for name, pair in found.items()
    }
