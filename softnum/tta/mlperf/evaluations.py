"""The evaluations of an MLPerf log: which events they are, and the parts of those that have several values."""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from typing import Any

from softnum.tta.mllog import MLLog, MLLogEvent

__all__ = ["PLACES", "evaluations_of"]

#: metadata that say where in the run an evaluation stands
PLACES = ("step_num", "step", "samples_count", "epoch_num")


def evaluations_of(log: MLLog, metric: str | None = None) -> list[MLLogEvent]:
    """The evaluations of one metric, each with a value that is no list or object; what is repeated is left out.

    Parameters
    ----------
    log : MLLog
    metric : str, optional
        An event of this name or ``eval_<metric>``, or a part of eval_accuracy. Default: eval_accuracy, or else the
        first event of an evaluation, whatever its value.

    Raises
    ------
    ValueError
        If there is none, or the metric has parts of which none is picked; the message lists what there is.
    """
    keys = [key for key in dict.fromkeys(event.key for event in log.events) if _is_evaluation(log, key)]
    if metric is None:
        keys = ["eval_accuracy"] if "eval_accuracy" in keys else keys[:1]
        events = [event for key in keys for event in log.of(key)]
        return _once([event for event in events if event.metadata.get("metric") == events[0].metadata.get("metric")])
    key = next((name for name in (metric, f"eval_{metric}") if log.of(name)), None)
    if key is None and "eval_accuracy" in keys:
        found = [part for event in log.of("eval_accuracy") for part in _parts(log, event)]
        picked = [event for name, event in found if name is not None and name.lower() == metric.lower()]
        if picked:
            return _once(picked)
    if key is None:
        raise ValueError(
            f"{log.path}: no event 'eval_{metric}'{_there(log, keys, metric)}; name the metric with --metric"
        )
    found = [part for event in log.of(key) for part in _parts(log, event)]
    parts = list(dict.fromkeys(name for name, _ in found if name is not None))
    if len(parts) > 1:
        first = next(event for name, event in found if name is not None)
        raise ValueError(
            f"{log.path}, line {first.line}: {key} has the parts {', '.join(parts)}; say which with --metric {parts[0]}"
        )
    return _once([event for _, event in found])


def _is_evaluation(log: MLLog, key: str) -> bool:
    if not key.startswith("eval_") or key in ("eval_start", "eval_stop", "eval_samples", "eval_size", "eval_target"):
        return False
    return any(name in event.metadata for event in log.of(key) for name in PLACES)


def _there(log: MLLog, keys: list[str], metric: str) -> str:
    names = [name for event in log.of("eval_accuracy") for name, _ in _parts(log, event) if name is not None]
    told = list(dict.fromkeys([*keys, *names]))
    near = difflib.get_close_matches(f"eval_{metric}", told, n=1, cutoff=0.4)
    return (f"; did you mean {near[0]!r}?" if near else "") + f" (there are {', '.join(told) or 'none'})"


def _parts(log: MLLog, event: MLLogEvent) -> list[tuple[str | None, MLLogEvent]]:
    """The parts of an evaluation by name: of an object, of a list, or as its metadata say."""
    value = event.value
    if isinstance(value, list):
        names = [str(at) for at in range(len(value))]
        if (log.benchmark or "").lower().startswith("mask") and len(value) == 2:
            names = ["BBOX", "SEGM"]  # in this order: the box AP of a mask R-CNN comes first
        value = dict(zip(names, value, strict=True))
    if isinstance(value, dict):
        return [(str(name), replace(event, value=part)) for name, part in value.items()]
    metric = event.metadata.get("metric")
    return [(None if metric is None else str(metric), event)]


def _once(events: list[MLLogEvent]) -> list[MLLogEvent]:
    """Without what is logged again: evaluations of one place and value, to the digits of binary64."""
    seen: dict[tuple[Any, ...], list[MLLogEvent]] = {}
    for event in events:
        place = tuple(str(event.metadata.get(name)) for name in PLACES)
        told = place if any(name in event.metadata for name in PLACES) else (event.line,)
        others = seen.setdefault(told, [])
        if not any(_alike(event.value, other.value) for other in others):
            others.append(event)
    return sorted((event for found in seen.values() for event in found), key=lambda event: event.line)


def _alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-15) or (math.isnan(one) and math.isnan(other))
    return one == other
