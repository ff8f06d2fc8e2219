"""Measured times laid over a sweep: the ratio of each to the roofline's time, and how far off it is in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import StatisticsError, correlation, median

from softnum.tta.architectures.paradnn import Sweep
from softnum.tta.architectures.sweep_measured import AGREE, STATED, Measured, Point

__all__ = ["overlay"]


def overlay(sweep: Sweep, measured: Measured) -> Sweep:
    """Lay measured times over a sweep.

    Parameters
    ----------
    sweep : Sweep
    measured : Measured
        Of its kind.

    Returns
    -------
    Sweep
        Each row with ``measured_seconds`` (the median of its measurements), ``measurements`` and
        ``measured_over_estimated``, None where there is no measurement; and ``measured``, the errors in all:
        ``models``; ``least``, ``median`` and ``most`` of the ratio of the measured time to the roofline's; ``worst``,
        the model with the greatest; ``faster``, models measured faster than estimated; ``rank_correlation``,
        Spearman's, None of fewer than two models; ``left_out``, measurements of models that the sweep does not have;
        ``measured_that_do_not_fit``, ``out_of_memory`` and ``out_of_memory_that_fit``.

    Raises
    ------
    ValueError
        If no measurement is of a model of the sweep, or one states another precision, optimiser or number of
        parameters.

    Examples
    --------
    >>> from softnum.tta.architectures import sweep
    >>> some = sweep("rnn", "v100", ranges={"layers": [1], "embedding": [100], "length": [10], "vocabulary": [2]})
    >>> points = tuple(Point(f"line {n}", (1, 100, 10, 2, batch), 0.01) for n, batch in enumerate((16, 64), start=2))
    >>> found = overlay(some, Measured("a.csv", "", "rnn", points)).measured
    >>> found["models"], found["worst"]["batch"]
    (2, 16)
    """
    if measured.kind != sweep.kind:
        raise ValueError(f"{measured.path}: measurements of {measured.kind}, and the sweep is of {sweep.kind}")
    rows = {tuple(row[name] for name in sweep.hyperparameters): row for row in sweep.rows}
    times: dict[tuple[int, ...], list[float]] = {}
    strangers = []
    for point in measured.points:
        _check_stated(sweep, point)
        if point.sizes not in rows:
            strangers.append(point)
            continue
        own = rows[point.sizes]["parameters"]
        if point.parameters is not None and abs(point.parameters - own) > AGREE * own:
            raise ValueError(
                f"{point.where}: {point.parameters:g} parameters, and the sweep's model "
                f"{_told(sweep, point.sizes)} has {own}; it was another network"
            )
        times.setdefault(point.sizes, []).append(point.seconds)
    if not times:
        first = strangers[0]
        raise ValueError(
            f"{first.where}: the sweep has no model {_told(sweep, first.sizes)}, nor any other of the file; its ranges "
            "are set by --range, like --range batch=32,64"
        )
    laid = []
    for sizes, row in rows.items():
        seconds = median(times[sizes]) if sizes in times else None
        ratio = None if seconds is None else seconds / row["seconds"]
        laid.append(
            {
                **row, "measured_seconds": seconds, "measurements": len(times.get(sizes, ())),
                "measured_over_estimated": ratio,
            }
        )  # fmt: skip
    found = [row for row in laid if row["measurements"]]
    values = [row["measured_over_estimated"] for row in found]
    worst = max(found, key=lambda row: row["measured_over_estimated"])
    failed = [rows[sizes] for sizes in measured.out_of_memory if sizes in rows]
    errors = {
        "file": Path(measured.path).name,
        "sha256": measured.sha256,
        "models": len(found),
        "measurements": sum(map(len, times.values())),
        "least": min(values),
        "median": median(values),
        "most": max(values),
        "worst": {name: worst[name] for name in (*sweep.hyperparameters, "seconds", "measured_seconds")},
        "faster": sum(value < 1 for value in values),
        "rank_correlation": _rank_correlation(
            [row["measured_seconds"] for row in found], [row["seconds"] for row in found]
        ),
        "left_out": len(strangers),
        "first_left_out": f"{strangers[0].where}: {_told(sweep, strangers[0].sizes)}" if strangers else None,
        "measured_that_do_not_fit": sum(not row["fits"] for row in found),
        "out_of_memory": len(failed),
        "out_of_memory_that_fit": sum(row["fits"] for row in failed),
        "columns_not_read": list(measured.unread),
    }
    return replace(sweep, rows=laid, measured=errors)


def _told(sweep: Sweep, sizes: Sequence[int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(sweep.hyperparameters, sizes, strict=True))


def _check_stated(sweep: Sweep, point: Point) -> None:
    for name in STATED:
        stated = point.stated.get(name)
        if stated is not None and stated != getattr(sweep, name):
            raise ValueError(
                f"{point.where}: measured with the {name} {stated}, and the sweep is of {getattr(sweep, name)}; add "
                f"--{name} {stated}, or give a file for each"
            )


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's: the correlation of ranks, of equal values their mean."""
    try:
        return round(correlation(_ranks(a), _ranks(b)), 6)
    except StatisticsError:  # one model, or all alike
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    """
    >>> _ranks([3.0, 1.0, 3.0])
    [2.5, 1.0, 2.5]
    """
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values), start=1):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in values]
