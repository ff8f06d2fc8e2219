"""A study from end to end, but for the training: times before it, results after it.

The order matters to the user: `study_variants` finds the time of every design *before* anything is trained, so that a
missing report or a malformed timing file costs seconds and not the training; `conclude` does the rest.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softnum.runtime.plain import plain
from softnum.tta.accuracy.reached import ReachedRule, direction_of
from softnum.tta.accuracy.records import Record, RecordSet
from softnum.tta.outcomes.combine import combine_study
from softnum.tta.outcomes.cost import read_costs
from softnum.tta.outcomes.interaction import read_combination
from softnum.tta.outcomes.intervals import check_confidence
from softnum.tta.outcomes.outcome import Study, Variant
from softnum.tta.outcomes.report import plot_studies, print_studies
from softnum.tta.outcomes.results import write_results
from softnum.tta.outcomes.tuning import Tuning
from softnum.tta.simulators.environment import TOOLS
from softnum.tta.simulators.reports import REMAKE, MissingReport, load_reports, write_requests
from softnum.tta.simulators.simulation import check_simulator, simulate
from softnum.tta.simulators.variants import scalesim_variants, zigzag_variants
from softnum.tta.timings.formats import gather_timings
from softnum.tta.workloads.energy import energy_of
from softnum.tta.workloads.energy_files import read_energy_table
from softnum.tta.workloads.energy_prices import EnergyTable
from softnum.tta.workloads.files import read_workloads
from softnum.tta.workloads.hardware import DesignPoint, Gemm, Hardware
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import Workload
from softnum.tta.workloads.unit import UnitHardware

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["chosen_variants", "conclude", "outcome_rules", "study_variants"]


@plain
def study_variants(
    points: Iterable[DesignPoint],
    *,
    baseline: str,
    out: str | os.PathLike[str],
    timings: str | os.PathLike[str] | Sequence[Any] | None = None,
    clock: str | None = None,
    format: str | None = None,
    warmup: str | int = "auto",
    iterations: int | None = None,
    marker: str | None = None,
    allow_unfinished: bool = False,
    reports: Iterable[str | os.PathLike[str]] = (),
    run_simulator: bool = False,
    environment: str | os.PathLike[str] | None = None,
    simulator: str = "scalesim",
    dataflow: str = "os",
    jobs: int | None = None,
    progress: Callable[..., object] | None = None,
    workloads: Mapping[str, Workload] | None = None,
) -> list[Variant]:
    """Find the time per iteration of every design of a study.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs, with the GEMMs of one iteration each.
    baseline : str
        Name of the design that sets the area of the equal-area variant.
    out : path-like
        The study's folder. A simulator's reports are kept in ``<out>/scalesim`` or ``<out>/zigzag``; if a design has no
        report and the simulator is not to be run, what would have to be simulated is written to
        ``<out>/requests.json``.
    timings : path-like, or sequence as in `gather_timings`, optional
        Timing files to use in place of a simulator.
    clock, format, warmup, iterations, marker, allow_unfinished
        For timing files, as in `read_timings`.
    reports : iterable of path-like
        Folders of reports to look in before those in `out` and the shipped ones.
    run_simulator : bool
        Whether to run the simulator for designs without a report.
    environment : path-like, optional
        The simulator's virtual environment, as in `simulate`.
    simulator : str
        "scalesim" (default) or "zigzag".
    dataflow : str
        "os" (default), "ws" or "is": reports of others are not looked in.
    jobs : int, optional
        Processes of the simulator. Default: one for each core.
    progress : callable, optional
        Called with a line of text after each simulation.
    workloads : mapping of str to Workload, optional
        For timing files, as in `gather_timings`.

    Returns
    -------
    list of Variant
        One for a timing file; else "stated hardware" and "equal area", unless the baseline's multiplier has no area.

    Raises
    ------
    FileNotFoundError, ValueError
        If a timing file or a report is missing or malformed, or a timing file lacks a design.
    MissingReport
        If a design has no report and the simulator is not to be run; the message says what to type.
    RuntimeError
        If the simulator has to run and fails.

    Examples
    --------
    >>> points = load_reports().designs.values()
    >>> [variant.label for variant in study_variants(points, baseline="a-float32", out="runs")]
    ['stated hardware', 'equal area']
    """
    points, out = list(points), Path(out)
    if timings is not None:
        files = [timings] if isinstance(timings, (str, os.PathLike)) else list(timings)
        times = gather_timings(
            files, format=format, clock=clock, warmup=warmup, iterations=iterations, marker=marker,
            allow_unfinished=allow_unfinished, workloads=workloads,
        )  # fmt: skip
        told = ", ".join(str(file[1]) if isinstance(file, tuple) else str(file) for file in files)
        missing = [point.name for point in points if point.name not in times]
        if missing:
            raise ValueError(
                f"{told}: no times of {', '.join(map(repr, missing))}; of {', '.join(map(repr, times))} there are "
                "some. Give times of every design of the study, as rows, or as --timings NAME=FILE"
            )
        order = {point.name: times[point.name] for point in points}
        unused = [name for name in times if name not in order]
        notes = [f"{told} also has times of {', '.join(unused)}, which the study leaves out"] if unused else []
        notes += [
            f"times of {time.design}: {time.detail[key]}"
            for time in order.values()
            for key in ("hint", "unlike")
            if key in (time.detail or {})
        ]
        return [
            Variant("given times", order, {}, _assumed(order, told), (f"whatever {told} does not cover",), tuple(notes))
        ]
    check_simulator(simulator, dataflow)
    variants = {"scalesim": scalesim_variants, "zigzag": zigzag_variants}[simulator]
    own = out / simulator
    folders = [*map(Path, reports), *([own] if (own / "manifest.json").is_file() else [])]
    found = [*map(load_reports, folders), load_reports()]
    stores = [store for store in found if (store.simulator, store.dataflow) == (simulator, dataflow)]
    try:
        return variants(points, baseline=baseline, simulations=stores)
    except MissingReport as error:
        if run_simulator:
            simulate(
                points, own, baseline=baseline, dataflow=dataflow, simulator=simulator, environment=environment,
                jobs=jobs, progress=progress,
            )  # fmt: skip
            return variants(points, baseline=baseline, simulations=load_reports(own))
        requests = write_requests(out / "requests.json", points, baseline)
        options = ("" if simulator == "scalesim" else f" --simulator {simulator}") + (
            "" if dataflow == "os" else f" --dataflow {dataflow}"
        )
        raise MissingReport(
            error.reason,
            f"add --simulate to run {TOOLS[simulator].name} (installed on first use), or run {REMAKE}{options} "
            f"--requests {shlex.quote(str(requests))} --out {shlex.quote(str(own))} and then this command again: "
            f"{error.reason}",
        ) from None


def chosen_variants(variants: Sequence[Variant], label: str | None) -> list[Variant]:
    """The variants of a label, or all of them where it is None; ValueError with the reason if there is none.

    >>> chosen_variants([Variant("equal area", {}), Variant("stated hardware", {})], "equal area")[0].label
    'equal area'
    """
    found = [variant for variant in variants if label in (None, variant.label)]
    if not found:
        raise ValueError("; ".join(note for variant in variants for note in variant.notes) or f"no variant {label!r}")
    return found


def _assumed(times: Mapping[str, IterationTime], told: str) -> tuple[str, ...]:
    """What the times of files rest on: where they are from, how iterations were told apart, and what was dropped."""
    lines = {f"times per iteration as given in {told} (mean over its iterations)": None}
    for time in times.values():
        for key, title in (
            ("iterations", "iterations"),
            ("column", "column"),
            ("time", "time"),
            ("network", "network"),
            ("warmup", "warm-up"),
        ):
            text = (time.detail or {}).get(key)
            if text and not (key == "warmup" and len(time.samples) < 2):
                lines[f"{title} of {time.design}: {text}"] = None
    return tuple(lines)


def outcome_rules(
    labels: Sequence[str],
    baseline: str,
    *,
    metric: str = "accuracy",
    direction: str | None = None,
    reached: str = "first",
    smooth: str | None = None,
    confidence: float = 0.95,
    combine: Iterable[str] = (),
    rent: Iterable[str] = (),
    price: Iterable[str] = (),
    energy_table: str | None = None,
) -> dict[str, Any]:
    """What a study looks at, as people write it, as keywords of `conclude`.

    Parameters
    ----------
    labels : sequence of str
        The study's designs.
    baseline : str
        One of them.
    metric : str
        What the target is of.
    direction : str, optional
        "higher" or "lower" is better. Default: what is known of the metric (`direction_of`).
    reached, smooth : str
        As `ReachedRule.parse` takes them: "consecutive:3", "ema:0.9".
    confidence : float
        Confidence level of the intervals.
    combine : iterable of str
        "a+b=c": designs whose speed-ups' product is compared with that of a third.
    rent, price : iterable of str
        Dollars per hour and to buy, "2.48" or "design=2.48", as `read_costs` takes them.
    energy_table : str, optional
        What prices iterations whose times know no energy, as `read_energy_table` takes it. Default: "45nm".

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If one of them is malformed, or names no design of the study.

    Examples
    --------
    >>> rules = outcome_rules(["a-float32", "c-wang-fp8"], "a-float32", reached="consecutive:3")
    >>> rules["metric"], rules["reached"].k
    ('accuracy', 3)
    """
    combinations = [read_combination(text, labels) for text in combine]
    for parts, combined in combinations:
        names = [baseline, *parts, combined]
        if len(set(names)) < len(names):
            raise ValueError(f"the baseline and the designs of a combination must differ, got {', '.join(names)}")
    more = {} if energy_table is None else {"energy_table": read_energy_table(energy_table)}
    return {
        "metric": metric,
        "reached": ReachedRule.parse(reached, smooth, direction_of(metric) if direction is None else direction),
        "confidence": check_confidence(confidence),
        "costs": read_costs(labels, rent, price),
        "combinations": combinations,
        **more,
    }


@plain
def conclude(
    records: RecordSet | Iterable[Record],
    variants: Sequence[Variant],
    *,
    target: float,
    baseline: str,
    out: str | os.PathLike[str],
    metric: str = "accuracy",
    inputs: Mapping[str, Any] | None = None,
    tuning: Tuning | None = None,
    energy_table: EnergyTable | None = None,
    console: Console | None = None,
    explain: bool = False,
    **rules: Any,
) -> list[Study]:
    """Combine runs and times, write ``results.json`` and ``tta.png``, and print the table.

    Parameters
    ----------
    records : RecordSet or iterable of Record
        The finished runs.
    variants : sequence of Variant
        As `study_variants` returns them.
    target, baseline, metric
        As in `combine_study`.
    out : path-like
        The study's folder. If it holds a ``workloads.json`` (`write_workloads`), designs whose times come without
        energies get those of `energy_of`.
    energy_table : EnergyTable, optional
        By which. Default: "45nm".
    inputs : Mapping, optional
        Further inputs to record in ``results.json``.
    tuning : Tuning, optional
        Learning rates that were tuned: its runs are combined with the same times by the same rules, and stand beside
        the others in table and ``results.json``.
    console : rich.console.Console, optional
        Where to print.
    explain : bool
        As of `print_studies`: print also what is in ``results.json`` alone.
    **rules
        More of `combine_study`: reached, confidence, costs, energies, combinations.

    Returns
    -------
    list of Study
        One for each variant.

    Raises
    ------
    ValueError, TypeError
        As `combine_study`; and if ``workloads.json`` is of other runs, or an energy table is given and prices nothing.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> times = Variant("measured", {"base": IterationTime("base", 2.0)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     studies = conclude(runs, [times], target=0.9, baseline="base", out=folder)  # doctest: +ELLIPSIS
    ...     sorted(os.listdir(folder))
    Time to accuracy >= 0.9, measured (baseline base)
    ...
    ['results.json', 'tta.png']
    """
    if not isinstance(records, RecordSet):
        records = tuple(records)
    runs = records.records if isinstance(records, RecordSet) else records
    runs = tuple(runs)
    found, units = _workloads(Path(out, "workloads.json"), runs), _units(runs)
    workers = {record.label: record.workers for record in runs}
    studies, tuned = [], []
    if energy_table is not None and not any(_unpriced(variant, found) for variant in variants):
        raise ValueError(
            f"the energy table {energy_table.name} prices nothing: every time comes with the energy of an iteration "
            "(ZigZag's, or a column joules), or without the operations of one; leave --energy-table out, or take "
            "SCALE-Sim's times"
        )
    for variant in variants:
        variant, energies = _with_energies(variant, found, units, workers, energy_table or "45nm")
        more = {**rules, "energies": {**energies, **(rules.get("energies") or {})}}
        more |= {"target": target, "baseline": baseline, "metric": metric}
        studies.append(combine_study(records, variant, **more))
        if tuning is not None:
            tuned.append(combine_study(tuning.records, variant, **more))
    tuning = None if tuning is None else replace(tuning, studies=tuple(tuned))
    write_results(Path(out, "results.json"), studies, inputs, tuning=tuning)
    plot_studies(Path(out, "tta.png"), studies)
    print_studies(studies, console, explain=explain, tuning=tuning)
    return studies


def _workloads(path: Path, records: Iterable[Record]) -> dict[str, Workload]:
    """By label, what an iteration of the runs consists of; a file that an earlier comparison left is an error."""
    if not path.is_file():
        return {}
    found = {work.design: work for work in read_workloads(path)}
    for record in records:
        work, gemms = found.get(record.label), record.config.get("gemms")
        wrong = ""
        if work is not None and work.batch * record.workers != record.batch:
            told = f" of {record.workers} workers" if record.workers > 1 else ""
            wrong = f"its batch is {work.batch}, and the run's is {record.batch}{told}"
        elif work is not None and gemms is not None and _products(work.gemms) != _products(map(Gemm.from_table, gemms)):
            wrong = "its matrix products are not the run's"
        if wrong:
            raise ValueError(
                f"{path}: {record.label} is not what {record.path or 'its run'} trained ({wrong}); it was left by "
                "another comparison: write to another folder (--out), or remove the file"
            )
    return found


def _products(gemms: Iterable[Gemm]) -> Counter[Any]:
    """How often each matrix product is done."""
    counts: Counter[Any] = Counter()
    for gemm in gemms:
        counts[gemm.layer, gemm.phase, gemm.shape, gemm.bits, gemm.formats] += gemm.count
    return counts


def _units(records: Iterable[Record]) -> dict[str, UnitHardware]:
    """By label, what the runs' designs state of their units."""
    found = {}
    for record in records:
        design = record.config.get("design")
        hardware = design.get("hardware") if isinstance(design, Mapping) else None
        if isinstance(hardware, Mapping) and "unit" in hardware:
            found[record.label] = UnitHardware.from_table(hardware["unit"], f"{record.path}: [hardware.unit]")
    return found


def _with_energies(
    variant: Variant,
    workloads: Mapping[str, Workload],
    units: Mapping[str, UnitHardware],
    workers: Mapping[str, int],
    table: str | EnergyTable,
) -> tuple[Variant, dict[str, tuple[float, str]]]:
    """Joules of an iteration by a cited table, for designs whose times do not know them; what they rest on is said."""
    energies, assumed, notes = {}, {}, {}
    for label in _unpriced(variant, workloads):
        time = variant.timings[label]
        hardware = (time.detail or {}).get("hardware")
        try:
            energy = energy_of(
                workloads[label],
                table,
                hardware=None if hardware is None else Hardware.from_table(hardware, f"{label}: hardware"),
                unit=units.get(label),
            )
        except ValueError as error:
            notes[f"no energy of {label}: {error}"] = None
            continue
        count = workers.get(label, 1)
        if count > 1:
            assumed[f"energy: {label}, {count} times that of a worker; what is sent between them takes none"] = None
        energies[label] = count * energy.joules, f"estimated by the table {energy.table}: {energy.source}"
        assumed.update(dict.fromkeys(f"energy: {line}" for line in energy.assumptions))
    if energies:
        assumed[f"energies: {next(iter(energies.values()))[1]}"] = None
    variant = replace(variant, assumptions=(*variant.assumptions, *assumed), notes=(*variant.notes, *notes))
    return variant, energies


def _unpriced(variant: Variant, workloads: Mapping[str, Workload]) -> list[str]:
    """The designs whose times do not know the energy of an iteration, but whose operations are known."""
    return [label for label, time in variant.timings.items() if time.joules is None and label in workloads]
