"""What a study compares: designs on their stated hardware, and on arrays of equal area, by one simulator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from softnum.tta.outcomes.outcome import Variant
from softnum.tta.simulators.reports import Simulations, load_reports
from softnum.tta.simulators.scalesim import ASSUMPTIONS, CORE_ASSUMPTION, DATAFLOWS, NOT_SIMULATED, SPARSE_ASSUMPTIONS
from softnum.tta.simulators.scalesim_report import COLUMNS
from softnum.tta.simulators.simulation import scalesim_timings, zigzag_timings
from softnum.tta.simulators.zigzag import ZIGZAG_ASSUMPTIONS
from softnum.tta.workloads.areas import NoArea, area_source, equal_area
from softnum.tta.workloads.hardware import DesignPoint
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["scalesim_variants", "zigzag_variants"]


def scalesim_variants(
    points: Iterable[DesignPoint], *, baseline: str, simulations: Simulations | Iterable[Simulations] | None = None
) -> list[Variant]:
    """The times of the designs on their stated hardware and at equal area, with the assumptions of both.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs.
    baseline : str
        The design whose array sets the area.
    simulations : Simulations or iterable of Simulations, optional
        As in `scalesim_timings`.

    Returns
    -------
    list of Variant
        "stated hardware", then "equal area", unless the area of the baseline's multiplier is not known, which a note
        says then.

    Raises
    ------
    ValueError
        As `scalesim_timings`; and if the baseline is not among the designs.

    Examples
    --------
    >>> reports = load_reports()
    >>> stated, equal = scalesim_variants(reports.designs.values(), baseline=reports.baseline)
    >>> stated.label, equal.label
    ('stated hardware', 'equal area')
    """
    points = list(points)
    stores = load_reports() if simulations is None else simulations
    stores = [stores] if isinstance(stores, Simulations) else list(stores)

    def common(stated: Mapping[str, IterationTime]) -> tuple[str, ...]:
        flows = sorted({time.detail["dataflow"] for time in stated.values()})
        columns = sorted({time.detail["column"] for time in stated.values()})
        lines = (
            *(f"cycles: column {column!r} of SCALE-Sim, {COLUMNS[column]}" for column in columns),
            *ASSUMPTIONS,
            f"dataflow: {', '.join(DATAFLOWS[flow] for flow in flows)}",
        )
        if any(gemm.sparsity for point in points for gemm in point.gemms):
            lines += SPARSE_ASSUMPTIONS
        if any(point.hardware.cores != (1, 1) for point in points):
            lines += (CORE_ASSUMPTION,)
        return (*lines, *_waits(stated, "for operands that outgrow half of their SRAM: {}"), *_bounds(stated))

    return _variants(points, baseline, lambda some: scalesim_timings(some, stores), common, _bounds)


def zigzag_variants(
    points: Iterable[DesignPoint], *, baseline: str, simulations: Simulations | Iterable[Simulations]
) -> list[Variant]:
    """Return ZigZag's times and energies of the designs on their stated hardware, and at equal area.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs.
    baseline : str
        The design whose array sets the area.
    simulations : Simulations or iterable of Simulations
        As in `zigzag_timings`.

    Returns
    -------
    list of Variant
        "stated hardware", then "equal area", unless the area of the baseline's multiplier is not known, which a note
        says then.

    Raises
    ------
    ValueError
        As `zigzag_timings`; and if the baseline is not among the designs.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> points = load_reports().designs.values()
    >>> zigzag_variants(points, baseline="a-float32", simulations=[])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    softnum.tta.simulators.reports.MissingReport: design 'a-float32': no ZigZag report has the forward GEMM of 'fc1' ...
    """
    stores = [simulations] if isinstance(simulations, Simulations) else list(simulations)

    def common(stated: Mapping[str, IterationTime]) -> tuple[str, ...]:
        unknown = [name for name, time in stated.items() if time.joules is None]
        words = (
            f"no energy of {', '.join(unknown)}: that of a multiply-add is not known, and [hardware.unit] states none"
        )
        lines = (words,) if unknown else ()
        return (*ZIGZAG_ASSUMPTIONS, *lines, *_waits(stated, "for memory, or for the last sums to leave: {}"))

    return _variants(list(points), baseline, lambda some: zigzag_timings(some, stores), common)


def _bounds(stated: Mapping[str, IterationTime]) -> tuple[str, ...]:
    """What of the times is sure where the array waits: SCALE-Sim 3.0.0 fetches more often than any pass needs."""
    least = [
        f"{name} {time.detail['cycles'] / time.detail['least_cycles']:.3g}"
        for name, time in stated.items()
        if time.detail["stall_cycles"]
    ]
    words = (
        "UPPER BOUND where the array waits: SCALE-Sim 3.0.0 drops a half of SRAM that it still needs, and fetches all "
        "others to get it back; the times are so many times those of fetching each operand once, a lower bound: {}; "
        "state more sram_bytes for times without this"
    )
    return (words.format(", ".join(least)),) if least else ()


def _waits(stated: Mapping[str, IterationTime], text: str) -> tuple[str, ...]:
    waits = [
        f"{name} {time.detail['stall_cycles'] / time.detail['cycles']:.0%}"
        for name, time in stated.items()
        if time.detail["stall_cycles"]
    ]
    return (f"cycles in which the array waits {text.format(', '.join(waits))}",) if waits else ()


def _variants(
    points: list[DesignPoint],
    baseline: str,
    timings: Callable[[Iterable[DesignPoint]], dict[str, IterationTime]],
    assumptions: Callable[[Mapping[str, IterationTime]], tuple[str, ...]],
    bounds: Callable[[Mapping[str, IterationTime]], tuple[str, ...]] = lambda _: (),
) -> list[Variant]:
    stated = timings(points)
    tables = [replace(point.hardware, unit=None).to_table() for point in points]
    if len(set(map(json.dumps, tables))) == 1:
        hardware = tables[0]
        first = f"every design on the same hardware: {json.dumps(hardware)[1:-1]}"
    else:
        first = "every design on the hardware that its design file states"
    units = tuple(
        f"unit of {point.name}, as the design states: {point.hardware.unit.describe()}"
        for point in points
        if point.hardware.unit is not None
    )
    assumed = (first, *units, *assumptions(stated))
    try:
        scaled, left_out, areas = equal_area(points, baseline)
    except NoArea as error:
        return [Variant("stated hardware", stated, {}, assumed, NOT_SIMULATED, (f"no equal-area variant: {error}",))]
    equal = timings(scaled)
    by_reason: dict[str, list[str]] = {}
    for point in scaled:
        area = areas[point.name]
        reason = f"{area.um2:g} um2 per multiplier ({area.kind}; {area.reason})"
        by_reason.setdefault(reason, []).append(f"{point.name} {point.hardware.array[0]} x {point.hardware.array[1]}")
    rule = (
        f"ASSUMPTION, not a measurement: each array is scaled so that its multipliers take the area of {baseline}'s; a "
        "design is charged for its own unit where it states one, else for its widest multiplier, and nothing else "
        "(adders, accumulators, registers, wires) enters"
    )
    reasons = (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
    return [
        Variant("stated hardware", stated, {}, assumed, NOT_SIMULATED),
        Variant(
            "equal area", equal, left_out, (rule, *reasons, f"areas: {area_source()}", *bounds(equal)), NOT_SIMULATED
        ),
    ]
