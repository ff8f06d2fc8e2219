"""Running simulators over the GEMMs of designs, and the times of an iteration that follow.

A simulator gets an environment of its own in the user's cache folder, made on first use (`create_environment`), and
each result is kept there as soon as it is there. ``python -m softnum.tta remake`` simulates every GEMM of the default
study again and rewrites the shipped reports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.simulators.environment import TOOLS, Task, run_tasks
from softnum.tta.simulators.reports import (
    REMAKE,
    MissingReport,
    Simulations,
    difference,
    load_reports,
    write_reports,
)
from softnum.tta.simulators.scalesim import DATAFLOWS, Machine, input_files, machine_for
from softnum.tta.simulators.scalesim_report import cycles_column, read_compute_report, report_rows, report_text
from softnum.tta.simulators.zigzag import ZigZagMachine, zigzag_files, zigzag_machine
from softnum.tta.simulators.zigzag_report import read_gemm_cost
from softnum.tta.workloads.areas import NoArea, equal_area
from softnum.tta.workloads.hardware import DesignPoint, Gemm, Hardware
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["SCALESIM_VERSION", "ZIGZAG_VERSION", "check_simulator", "scalesim_timings", "simulate", "zigzag_timings"]

SCALESIM_VERSION = TOOLS["scalesim"].version
ZIGZAG_VERSION = TOOLS["zigzag"].version


def check_simulator(simulator: str, dataflow: str) -> None:
    """Raise ValueError unless there is such a simulator and it can be driven with that dataflow.

    >>> check_simulator("scalesim", "ws")
    """
    if simulator not in TOOLS:
        raise ValueError(f"unknown simulator {simulator!r}; softnum drives {', '.join(TOOLS)}")
    if dataflow not in DATAFLOWS:
        raise ValueError(f"unknown dataflow {dataflow!r}; dataflows: {', '.join(DATAFLOWS)}")
    if simulator == "zigzag" and dataflow != "os":
        raise ValueError(
            f"ZigZag is driven with the dataflow os only, got {dataflow!r}: it keeps sums in their cells, as units do"
        )


def _machine(simulator: str, dataflow: str, point: DesignPoint, gemm: Gemm) -> Machine | ZigZagMachine:
    if simulator == "zigzag":
        return zigzag_machine(point.hardware, gemm)
    return machine_for(point.hardware, gemm.bits, dataflow=dataflow, pattern=gemm.pattern)


def _needed(points: Iterable[DesignPoint], simulator: str, dataflow: str) -> dict[str, Any]:
    """Machine -> its distinct GEMM shapes, sorted: what is equal is simulated once."""
    needed: dict[str, Any] = {}
    for point in points:
        for gemm in point.gemms:
            needed.setdefault(_machine(simulator, dataflow, point, gemm), set()).add(point.hardware.part(gemm.shape))
    return {machine: sorted(needed[machine]) for machine in sorted(needed, key=lambda machine: machine.slug)}


def _task(simulator: str, machine: Machine | ZigZagMachine, shape: tuple[int, int, int]) -> Task:
    m, n, k = shape
    label = f"{m} x {n} x {k} on {machine.slug}"
    if simulator == "zigzag":

        def check(text: str) -> None:
            read_gemm_cost(label, machine=machine, shape=shape, text=text)

        return Task(label, zigzag_files(machine, shape), "out/gemm_complete.json", check, m * n * k)

    def check(text: str) -> None:
        read_compute_report(label, shapes=[shape], array=machine.array, text=text)

    return Task(label, input_files(machine, [shape]), "out/run/COMPUTE_REPORT.csv", check, m * n * k)


def simulate(
    points: Iterable[DesignPoint],
    out: str | os.PathLike[str],
    *,
    baseline: str,
    dataflow: str = "os",
    simulator: str = "scalesim",
    environment: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    reuse: bool = True,
    jobs: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> Path:
    """Simulate every GEMM of the designs, on the stated hardware and at equal area, and keep the reports.

    Equal simulations (same array, same words, same shape) run once. Each result is kept in `cache` as soon as it is
    there, under the digest of what the simulator was given, so that an interrupted run resumes and nothing is simulated
    twice. The same designs give the same reports, however many processes make them.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs, with the GEMMs of one iteration each.
    out : path-like
        Folder for the reports and their ``manifest.json``, written when every simulation is done; reports that an
        earlier manifest names and this one does not are removed.
    baseline : str
        The design whose array sets the area of the equal-area variant.
    dataflow : str
        "os" (default), "ws" or "is"; of ZigZag "os".
    simulator : str
        "scalesim" (default) or "zigzag".
    environment : path-like, optional
        The simulator's virtual environment. Default: made in the cache folder.
    cache : path-like, optional
        Folder of single results. Default: ``simulations`` beside `default_environment`.
    reuse : bool
        Whether to take results from `cache`, from the reports in `out` and from the shipped ones.
    jobs : int, optional
        Processes. Default: one for each core; large GEMMs need much memory in SCALE-Sim, so that fewer may be better.
    progress : callable, optional
        Called with one line of text ("SCALE-Sim: 3 of 14 GEMMs, last ...") after each simulation.

    Returns
    -------
    Path
        The manifest.

    Raises
    ------
    RuntimeError
        If the simulator cannot be installed or fails.
    ValueError
        If the hardware cannot be expressed in the simulator's words, or there is no such simulator or dataflow.

    Examples
    --------
    >>> points = load_reports().designs.values()
    >>> simulate(points, "reports", baseline="a-float32")  # doctest: +SKIP
    PosixPath('reports/manifest.json')
    """
    check_simulator(simulator, dataflow)
    points, out = list(points), Path(out)
    try:
        scaled = equal_area(points, baseline)[0]
    except NoArea:  # then there is no such variant
        scaled = []
    needed = _needed([*points, *scaled], simulator, dataflow)
    keys = [(machine, shape) for machine, shapes in needed.items() for shape in shapes]
    rows = _earlier(out, simulator) if reuse else {}
    missing = [key for key in keys if key not in rows]
    texts = run_tasks(
        simulator,
        [_task(simulator, *key) for key in missing],
        environment=environment, cache=cache, reuse=reuse, jobs=jobs, progress=progress,
    )  # fmt: skip
    for key, text in zip(missing, texts, strict=True):
        rows[key] = text if simulator == "zigzag" else report_rows(text)[0]
    if simulator == "zigzag":
        reports = [
            (f"{machine.slug}-{'x'.join(map(str, shape))}.json", rows[machine, shape], machine, [shape])
            for machine, shape in keys
        ]
    else:
        reports = [
            (f"{machine.slug}.csv", report_text([rows[machine, shape] for shape in shapes]), machine, shapes)
            for machine, shapes in needed.items()
        ]
    return write_reports(out, simulator, dataflow, baseline, points, reports)


def _earlier(out: Path, simulator: str) -> dict[str, Any]:
    """What the simulator wrote of each GEMM in the reports that are there: the shipped ones, and those in a folder."""
    rows: dict[str, Any] = {}
    for folder in (None, out):
        if folder is None or (folder / "manifest.json").is_file():
            found = load_reports(folder)
            if (found.simulator, found.version) == (simulator, TOOLS[simulator].version):
                rows.update(found.rows)
    return rows


def _found(
    point: DesignPoint, stores: list[Simulations], simulator: str
) -> list[tuple[Gemm, Machine | ZigZagMachine, object, Simulations]]:
    """What the first store that has it says of each GEMM of a design."""
    rows = []
    for gemm in point.gemms:
        for store in stores:
            machine = _machine(simulator, store.dataflow, point, gemm)
            found = store.cycles.get((machine, point.hardware.part(gemm.shape)))
            if found is not None:
                rows.append((gemm, machine, found, store))
                break
        else:
            raise MissingReport(difference(point, gemm, stores, simulator))
    return rows


def _stores(simulations: Simulations | Iterable[Simulations], simulator: str) -> list[Simulations]:
    stores = [simulations] if isinstance(simulations, Simulations) else list(simulations)
    return [store for store in stores if store.simulator == simulator]


def _file(store: Simulations, machine, shape: tuple[int, int, int]) -> dict[str, str]:
    name = store.reports.get((machine, shape))
    return {} if name is None else {"report": name}


def scalesim_timings(
    points: Iterable[DesignPoint], simulations: Simulations | Iterable[Simulations] | None = None
) -> dict[str, IterationTime]:
    """Seconds per iteration of each design: the cycles of all its GEMMs, one after another, over the clock.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs, on their stated hardware or scaled by `equal_area`.
    simulations : Simulations or iterable of Simulations, optional
        The reports to look the GEMMs up in; the first that has a GEMM is used. Default: the shipped reports.

    Returns
    -------
    dict of str to IterationTime
        ``detail["gemms"]`` lists every GEMM with its cycles, those the array waited for memory, its *utilisation*
        (multiply-adds over what the cells could have done in these cycles) and the report that says so; where SCALE-Sim
        was told of a pattern, the *option* that does so; on several cores the *part* that was simulated.
        ``detail["column"]`` names the column that cycles are from; ``detail["least_cycles"]`` is what they would be if
        nothing were fetched twice, fewer than ``detail["cycles"]`` only where the array waits for memory.

    Raises
    ------
    MissingReport
        If a GEMM was not simulated on the asked machine (a ValueError).

    Examples
    --------
    >>> times = scalesim_timings(load_reports().designs.values())
    >>> times["a-float32"].seconds, times["a-float32"].source
    (1.2036e-05, 'SCALE-Sim 3.0.0')
    >>> first = times["a-float32"].detail["gemms"][0]
    >>> first["layer"], first["cycles"], round(first["utilisation"], 4)
    ('fc1', 3574, 0.0716)
    """
    stores = _stores(load_reports() if simulations is None else simulations, "scalesim")
    result = {}
    for point in points:
        rows = _found(point, stores, "scalesim")
        counted = [
            point.hardware.cycles(row.cycles, gemm, machine.dataflow) for gemm, machine, row, _ in rows
        ]  # fmt: skip
        cycles = sum(gemm.count * of for (gemm, *_), of in zip(rows, counted, strict=True))
        if len({row.memory_included for _, _, row, _ in rows}) > 1:
            raise ValueError(
                f"design {point.name!r} mixes reports with and without memory cycles (SCALE-Sim 3.0 and 2.x); "
                f"remake them with one version: {REMAKE}"
            )
        cells = point.hardware.cells
        detail = {
            "cycles": cycles,
            "column": cycles_column(rows[0][2]),
            "stall_cycles": sum(gemm.count * row.stalls for gemm, _, row, _ in rows) * point.hardware.interval,
            "least_cycles": sum(gemm.count * _least(point, gemm, machine, row) for gemm, machine, row, _ in rows),
            "utilisation": float(
                Fraction(sum(g.count * machine.macs(g.shape) for g, machine, _, _ in rows), cycles * cells)
                * point.hardware.interval
            ),
            "memory_included": rows[0][2].memory_included,
            "dataflow": rows[0][1].dataflow,
            "hardware": point.hardware.to_table(),
            "gemms": [
                {
                    **gemm.to_table(),
                    "cycles": of,
                    "stall_cycles": row.stalls * point.hardware.interval,
                    "utilisation": float(Fraction(machine.macs(gemm.shape), of * cells) * point.hardware.interval),
                    "words_per_cycle": list(machine.bandwidths) if machine.pattern else machine.words_per_cycle,
                    "sram_kwords": list(machine.sram_kwords),
                    **({} if machine.pattern is None else {"option": "SparsitySupport"}),
                    **({} if point.hardware.cores == (1, 1) else {"part": list(point.hardware.part(gemm.shape))}),
                    **_file(store, machine, point.hardware.part(gemm.shape)),
                }
                for (gemm, machine, row, store), of in zip(rows, counted, strict=True)
            ],
        }
        source = f"SCALE-Sim {rows[-1][3].version}"
        seconds = float(cycles / point.hardware.clock)
        result[point.name] = IterationTime(point.name, seconds, 1, source, detail, kind="simulated")
    return result


def _least(point: DesignPoint, gemm: Gemm, machine: Machine, row) -> int:
    """Cycles of a product that waits no longer than its operands take to be fetched once."""
    fetches = machine.fetches(point.hardware.part(gemm.shape))
    least = min(row.cycles, max(row.cycles - row.stalls, fetches))
    return point.hardware.cycles(least, gemm, machine.dataflow)


def zigzag_timings(
    points: Iterable[DesignPoint], simulations: Simulations | Iterable[Simulations]
) -> dict[str, IterationTime]:
    """Seconds and joules per iteration of each design by ZigZag: the sum over its GEMMs, one after another.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs, on their stated hardware or scaled by `equal_area`.
    simulations : Simulations or iterable of Simulations
        Where to look the GEMMs up: folders that `simulate` wrote with ``simulator="zigzag"``, as `load_reports` loads
        them.

    Returns
    -------
    dict of str to IterationTime
        With `joules`, unless the energy of a multiply-add is not known; ``detail["gemms"]`` as in `scalesim_timings`,
        with the joules of each.

    Raises
    ------
    MissingReport
        If a GEMM was not simulated on the asked machine (a ValueError).

    Examples
    --------
    >>> zigzag_timings([], [])
    {}
    """
    stores = _stores(simulations, "zigzag")
    result = {}
    for point in points:
        rows = _found(point, stores, "zigzag")
        cells = point.hardware.array[0] * point.hardware.array[1]
        counted = [point.hardware.cycles(Fraction(row.cycles), gemm, "os") for gemm, _, row, _ in rows]
        cycles = sum(gemm.count * of for (gemm, *_), of in zip(rows, counted, strict=True))
        known = all(machine.mac_pj for _, machine, _, _ in rows)
        picojoules = sum(gemm.count * Fraction(row.picojoules) for gemm, _, row, _ in rows)
        macs = sum(gemm.count * gemm.m * gemm.n * gemm.k for gemm in point.gemms)
        detail = {
            "cycles": float(cycles),
            "stall_cycles": float(
                sum(gemm.count * Fraction(row.stalls) for gemm, _, row, _ in rows) * point.hardware.interval
            ),
            "utilisation": float(macs * point.hardware.interval / (cycles * cells)),
            "memory_included": True,
            "dataflow": "os",
            "hardware": point.hardware.to_table(),
            "gemms": [
                _zigzag_row(point.hardware, known, float(of), *row) for row, of in zip(rows, counted, strict=True)
            ],
        }
        result[point.name] = IterationTime(
            point.name,
            float(cycles / point.hardware.clock),
            1,
            f"ZigZag {rows[-1][3].version}",
            detail,
            kind="simulated",
            joules=float(picojoules / 10**12) if known else None,
        )
    return result


def _zigzag_row(
    hardware: Hardware, known: bool, cycles: float, gemm: Gemm, machine: ZigZagMachine, row, store: Simulations
) -> Mapping[str, Any]:
    cells = machine.array[0] * machine.array[1]
    joules = {"joules": row.picojoules * 1e-12} if known else {}
    return {
        **gemm.to_table(),
        "cycles": cycles,
        "stall_cycles": row.stalls * hardware.interval,
        "utilisation": float(gemm.m * gemm.n * gemm.k * hardware.interval / (Fraction(cycles) * cells)),
        **joules,
        "memory_joules": row.memory_picojoules * 1e-12,
        **_file(store, machine, gemm.shape),
    }
