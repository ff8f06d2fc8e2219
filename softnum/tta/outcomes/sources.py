"""What a time is made of, and what a design takes beside time: layers, passes and waiting; energy, cost and area."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.quantities import frequency
from softnum.tta.workloads.areas import common_areas
from softnum.tta.workloads.hardware import DesignPoint, Gemm, Hardware
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["RESOURCES", "LayerPart", "Resource", "array_areas", "differ", "layer_parts", "pareto", "study_resources"]

#: What a design can take beside time: name -> (title, unit).
RESOURCES = {
    "energy": ("energy to accuracy", "J"),
    "cost": ("rent to accuracy", "$"),
    "price": ("price of the hardware", "$"),
    "area": ("area of the array's multipliers", "mm²"),
}
_GEMM_KEYS, _MORE_KEYS = ("layer", "pass", "M", "N", "K", "bits"), ("formats", "count", "sparsity", "function")


# -- layers ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LayerPart:
    """What one pass of a layer takes of an iteration, for one reason.

    Parameters
    ----------
    layer, stage : str
        The stage is "forward", "backward_data", "backward_weight", "update", or as the source calls it.
    cause : str
        "not stalled" or "stalled for memory", as a simulator counts cycles: what is fetched before a product begins and
        written after it is no stall; "bound by computing" or "bound by memory", of a roofline; empty where the source
        does not tell them apart.
    seconds : float
    """

    layer: str
    stage: str
    cause: str
    seconds: float


def layer_parts(time: IterationTime) -> list[LayerPart]:
    """What an iteration's time is made of, as far as its source says.

    Parameters
    ----------
    time : IterationTime
        Of SCALE-Sim, ZigZag, or an estimate; others are of whole iterations.

    Returns
    -------
    list of LayerPart
        They add up to the time; what the source does not give to a layer has no layer and no stage. Empty where the
        time is of a whole iteration.

    Examples
    --------
    >>> rows = [{"layer": "fc", "pass": "forward", "cycles": 300, "stall_cycles": 100, "count": 2}]
    >>> detail = {"clock_hz": 1e9, "memory_included": True, "gemms": rows}
    >>> [(part.cause, part.seconds) for part in layer_parts(IterationTime("a", 6e-7, detail=detail))]
    [('not stalled', 4e-07), ('stalled for memory', 2e-07)]
    """
    detail = time.detail or {}
    parts: dict[tuple[str, str, str], list[float]] = {}
    for key, seconds in _rows(detail):
        parts.setdefault(key, []).append(seconds)
    found = [LayerPart(*key, math.fsum(values)) for key, values in parts.items() if math.fsum(values) > 0]
    rest = time.seconds - math.fsum(part.seconds for part in found)
    if found and rest > 1e-9 * time.seconds:
        found.append(LayerPart("", "", "", rest))
    return found if rest >= -1e-6 * time.seconds else []


def _rows(detail: Mapping[str, Any]) -> Iterable[tuple[tuple[str, str, str], float]]:
    if detail.get("model") == "roofline":
        for row in detail["operations"]:
            yield (row["layer"], row["stage"], f"bound by {_BOUNDS.get(row['bound'], row['bound'])}"), row["seconds"]
        return
    hardware = detail.get("hardware")
    clock = hardware.get("clock") if isinstance(hardware, Mapping) else None
    hertz = float(frequency(clock)) if clock is not None else detail.get("clock_hz")
    for row in detail.get("gemms") or ():
        if not isinstance(row, Mapping) or not {"layer", "pass"} <= row.keys():
            continue
        count = row.get("count", 1)
        if "seconds" in row:
            yield (row["layer"], row["pass"], ""), count * row["seconds"]
        elif "cycles" in row and hertz:
            stalls = row.get("stall_cycles")
            if stalls is None or not detail.get("memory_included", True):
                yield (row["layer"], row["pass"], ""), count * row["cycles"] / hertz
            else:
                yield (row["layer"], row["pass"], "not stalled"), count * (row["cycles"] - stalls) / hertz
                yield (row["layer"], row["pass"], "stalled for memory"), count * stalls / hertz


_BOUNDS = {"compute": "computing", "memory": "memory"}


# -- what a design takes beside time -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Resource:
    """Something of which less is better, of the designs that have it.

    Parameters
    ----------
    name, title, unit : str
        Of `RESOURCES`.
    values : Mapping of str to (float, float, float)
        Median and interval, by design; the upper end may be infinite.
    left_out : Mapping of str to str
        Why it, or the time to accuracy, is not known, by design.
    """

    name: str
    title: str
    unit: str
    values: Mapping[str, tuple[float, float, float]]
    left_out: Mapping[str, str]


def array_areas(times: Mapping[str, IterationTime | None]) -> tuple[dict[str, float], dict[str, str]]:
    """Area of the multipliers of the array that each time is of, in mm², and why it is not known, in words.

    By the rule of `equal_area`: a design is charged for its own unit where it states one, else for its widest
    multiplier, and for nothing else. Areas are of one library, as `common_areas` has them.

    Examples
    --------
    >>> from softnum.tta import load_reports, scalesim_timings
    >>> point = load_reports().designs["a-float32"]
    >>> array_areas(scalesim_timings([point]) | {"b": IterationTime("b", 1.0)})  # 32 x 32 multipliers of 7700 um2
    ({'a-float32': 7.8848}, {'b': 'its time names no array'})
    """
    points, left_out = {}, {}
    for name, time in times.items():
        detail = (time.detail or {}) if time is not None else {}
        table, rows = detail.get("hardware"), detail.get("gemms")
        if not isinstance(table, Mapping) or not rows or not all(row.keys() >= set(_GEMM_KEYS) for row in rows):
            left_out[name] = "its time names no array"
            continue
        gemms = tuple(
            Gemm.from_table({key: row[key] for key in (*_GEMM_KEYS, *_MORE_KEYS) if key in row}) for row in rows
        )
        points[name] = DesignPoint(name, Hardware.from_table(table, f"the hardware of {name}"), gemms)
    areas, without = common_areas(points.values())
    sizes = {name: math.prod(points[name].hardware.array) * area.um2 / 1e6 for name, area in areas.items()}
    return sizes, {**left_out, **without}


def study_resources(study: Study) -> list[Resource]:
    """Energy, rent, price and area of a study's designs, those in which at least two of them differ by more than 2 %.

    Examples
    --------
    >>> from softnum.tta import Evaluation, Record, combine_study
    >>> from softnum.tta.outcomes import Cost
    >>> runs = [Record(name, 1, 32, 90, (Evaluation(80, 0.9),), {}, {}) for name in "ab"]
    >>> times = {"a": IterationTime("a", 2.0, joules=3.0), "b": IterationTime("b", 1.0, joules=5.0)}
    >>> study = combine_study(runs, times, target=0.9, baseline="a", costs={"a": Cost(price=10.0)})
    >>> [(found.name, found.values, found.left_out) for found in study_resources(study)]
    [('energy', {'a': (240.0, 240.0, 240.0), 'b': (400.0, 400.0, 400.0)}, {})]
    """
    tables = {name: ({}, {}) for name in RESOURCES}
    areas, without = array_areas({result.design: result.time for result in study.designs})
    for result in study.designs:
        for name, (values, left_out) in tables.items():
            found = _resource(result, name, areas, without)
            if result.tta is None:
                left_out[result.design] = f"no time: {result.left_out}"
            elif math.isinf(result.tta.median):
                left_out[result.design] = f"{result.reached} of {len(result.runs)} runs reach the target"
            elif isinstance(found, str):
                left_out[result.design] = found
            else:
                values[result.design] = found
    return [
        Resource(name, *RESOURCES[name], values, left_out)
        for name, (values, left_out) in tables.items()
        if differ([value for value, *_ in values.values()])
    ]


def differ(numbers: Sequence[float]) -> bool:
    """Whether two of the numbers differ by more than 2 %, which is more than areas that were made equal do.

    >>> differ([7.81, 7.88]), differ([1.0, 2.0]), differ([1.0])
    (False, True, False)
    """
    return len(numbers) > 1 and max(numbers) > 1.02 * min(numbers)


def _resource(
    result: DesignResult, name: str, areas: Mapping[str, Any], without: Mapping[str, Any]
) -> tuple[float, float, float] | str:
    if name == "energy":
        if result.energy is None:
            return "its energy is not known"
        return (result.energy.to_accuracy.median, *result.intervals.energy)
    if name == "cost":
        if result.cost is None or result.cost.to_accuracy is None:
            return "no rent is given"
        return (result.cost.to_accuracy.median, *result.intervals.cost)
    if name == "price":
        if result.cost is None or result.cost.price is None:
            return "no price is given"
        return (result.cost.price,) * 3
    return (areas[result.design],) * 3 if result.design in areas else without[result.design]


def pareto(points: Mapping[str, Sequence[float]]) -> list[str]:
    """Names of the points that no other is as good as in everything and better in something, by their first number.

    Parameters
    ----------
    points : Mapping of str to sequence of float
        Of which less is better.

    Returns
    -------
    list of str

    Examples
    --------
    >>> pareto({"slow": (3, 1), "fast": (1, 3), "worse": (3, 2), "both": (2, 2), "same": (2, 2)})
    ['fast', 'both', 'same', 'slow']
    """

    def beaten(point: Sequence[float]) -> bool:
        return any(
            all(a <= b for a, b in zip(other, point, strict=True)) and tuple(other) != tuple(point)
            for other in points.values()
        )

    return sorted((name for name, point in points.items() if not beaten(point)), key=lambda name: points[name][0])
