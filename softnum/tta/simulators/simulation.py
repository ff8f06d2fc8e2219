"""Running SCALE-Sim in an environment of its own, and the reports that softnum ships.

SCALE-Sim needs an older NumPy than softnum and drags a number of packages in, so it is never a dependency: it gets a
virtual environment in the user's cache folder, made on first use. ``python -m softnum.tta remake`` makes the
environment if need be, simulates every GEMM of the default study and rewrites the shipped reports.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from softnum.tta.combine import Variant
from softnum.tta.hardware import DesignPoint, Gemm, area_source, equal_area
from softnum.tta.quantities import check_keys, write_atomic
from softnum.tta.simulators.scalesim import (
    ASSUMPTIONS,
    DATAFLOWS,
    NOT_SIMULATED,
    SPARSE_ASSUMPTIONS,
    GemmCycles,
    Machine,
    machine_for,
    read_compute_report,
    write_inputs,
)
from softnum.tta.timings import IterationTime

__all__ = [
    "MissingReport",
    "SCALESIM_VERSION",
    "Simulations",
    "create_environment",
    "default_environment",
    "load_reports",
    "read_requests",
    "scalesim_timings",
    "scalesim_variants",
    "simulate",
    "write_requests",
]

SCALESIM_VERSION = "3.0.0"
#: scalesim 3.0.0 converts one-element arrays with int(), which NumPy 2.4 refuses.
REQUIREMENTS = (f"scalesim=={SCALESIM_VERSION}", "numpy<2.4")
REMAKE = "python -m softnum.tta remake"
_SCHEMA = 1

_RUNNER = """\
import importlib.metadata, sys
from scalesim.scale_sim import scalesim
if importlib.metadata.version("scalesim") != sys.argv[1]:
    sys.exit("scalesim " + importlib.metadata.version("scalesim") + " is installed, not " + sys.argv[1])
sim = scalesim(save_disk_space=True, verbose=False, config="run.cfg", topology="topology.csv", layout="layout.csv",
               input_type_gemm=True)
sim.run_scale(top_path="out")
"""


class MissingReport(ValueError):
    """A GEMM that no report covers; `reason` says what differs, the message also how to simulate it.

    Examples
    --------
    >>> MissingReport("no report is of this array").reason
    'no report is of this array'
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        self.reason = reason
        super().__init__(message or f"{reason}; simulate it with softnum.tta.simulate or {REMAKE}")


def default_environment() -> Path:
    """Return where SCALE-Sim's environment is kept: in ``softnum/`` under ``$XDG_CACHE_HOME`` or ``~/.cache``.

    Returns
    -------
    Path
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "softnum", f"scalesim-{SCALESIM_VERSION}-py{sys.version_info[0]}.{sys.version_info[1]}")


def _python(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def create_environment(environment: str | os.PathLike | None = None) -> Path:
    """Make a virtual environment with SCALE-Sim, or take the one that is there.

    Parameters
    ----------
    environment : path-like, optional
        Its folder. Default: `default_environment`.

    Returns
    -------
    Path
        The environment's Python.

    Raises
    ------
    RuntimeError
        If it cannot be made; the message holds the end of what pip said.

    Examples
    --------
    >>> create_environment()  # doctest: +SKIP
    PosixPath('/home/me/.cache/softnum/scalesim-3.0.0-py3.12/bin/python')
    """
    environment = Path(environment) if environment is not None else default_environment()
    python = _python(environment)
    check = "import importlib.metadata as m, scalesim.scale_sim; print(m.version('scalesim'))"
    if python.exists():
        probe = subprocess.run([python, "-I", "-c", check], capture_output=True, text=True, check=False)
        if probe.returncode == 0 and probe.stdout.strip() == SCALESIM_VERSION:
            return python
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(
                f"could not make SCALE-Sim's environment in {environment}: {' '.join(command)} failed with\n"
                f"{(done.stderr or done.stdout).strip()[-1500:]}\nInstall {' '.join(REQUIREMENTS)} into a virtual "
                "environment yourself and name it with --venv"
            )
    return python


def _run(python: Path, machine: Machine, shapes: list[tuple[int, int, int]]) -> str:
    with tempfile.TemporaryDirectory(prefix="softnum-scalesim-") as folder:
        write_inputs(folder, machine, shapes)
        done = subprocess.run(
            [python, "-I", "-c", _RUNNER, SCALESIM_VERSION], cwd=folder, capture_output=True, text=True, check=False
        )
        report = Path(folder, "out", "run", "COMPUTE_REPORT.csv")
        if done.returncode or not report.is_file():
            raise RuntimeError(
                f"SCALE-Sim failed on {machine.slug} (exit code {done.returncode}):\n"
                f"{(done.stderr or done.stdout).strip()[-1500:]}"
            )
        text = report.read_text(encoding="utf-8")
    read_compute_report(f"{machine.slug}.csv", shapes=shapes, array=machine.array, text=text)
    return text


def _needed(points: Iterable[DesignPoint], dataflow: str) -> dict[Machine, list[tuple[int, int, int]]]:
    """Machine -> its distinct GEMM shapes, sorted: what is equal is simulated once."""
    needed: dict[Machine, set] = {}
    for point in points:
        for gemm in point.gemms:
            machine = machine_for(point.hardware, gemm.bits, dataflow=dataflow, pattern=gemm.pattern)
            needed.setdefault(machine, set()).add(gemm.shape)
    return {machine: sorted(needed[machine]) for machine in sorted(needed, key=lambda machine: machine.slug)}


def simulate(
    points: Iterable[DesignPoint],
    out: str | os.PathLike,
    *,
    baseline: str,
    dataflow: str = "os",
    environment: str | os.PathLike | None = None,
    progress=None,
) -> Path:
    """Simulate every GEMM of the designs, on the stated hardware and at equal area, and keep the reports.

    Equal simulations (same array, same words, same shape) run once.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs, with the GEMMs of one iteration each.
    out : path-like
        Folder for the reports and their ``manifest.json``. Nothing is written before every simulation is done; reports
        of an earlier manifest are removed.
    baseline : str
        The design whose array sets the area of the equal-area variant.
    dataflow : str
        "os" (default), "ws" or "is".
    environment : path-like, optional
        SCALE-Sim's virtual environment. Default: made in the cache folder.
    progress : callable, optional
        Called with one line of text before each simulation.

    Returns
    -------
    Path
        The manifest.

    Raises
    ------
    RuntimeError
        If SCALE-Sim cannot be installed or fails.
    ValueError
        If the hardware cannot be expressed in SCALE-Sim's words.

    Examples
    --------
    >>> points = load_reports().designs.values()
    >>> simulate(points, "reports", baseline="a-float32")  # doctest: +SKIP
    PosixPath('reports/manifest.json')
    """
    points, out = list(points), Path(out)
    needed = _needed([*points, *equal_area(points, baseline)[0]], dataflow)
    python = create_environment(environment)
    texts, entries = {}, []
    for number, (machine, shapes) in enumerate(needed.items(), start=1):
        if progress is not None:
            progress(f"simulation {number} of {len(needed)}: {machine.slug}, {len(shapes)} GEMMs")
        text = texts[f"{machine.slug}.csv"] = _run(python, machine, shapes)
        entries.append(
            {
                "report": f"{machine.slug}.csv",
                "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
                "machine": machine.to_table(),
                "shapes": shapes,
            }
        )
    manifest = {
        "schema": _SCHEMA,
        "simulator": "scalesim",
        "version": SCALESIM_VERSION,
        "dataflow": dataflow,
        "baseline": baseline,
        "designs": [point.to_table() for point in points],
        "simulations": entries,
    }
    for name, text in texts.items():
        write_atomic(out / name, text)
    write_atomic(out / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    for stale in out.glob("*-sram*k-bw*.csv"):
        if stale.name not in texts:
            stale.unlink()
    return out / "manifest.json"


@dataclass(frozen=True)
class Simulations:
    """Simulated GEMMs by machine and shape, with the designs they were made for.

    Parameters
    ----------
    where : str
        The folder they come from.
    version : str
        SCALE-Sim's version.
    dataflow, baseline : str
        As given to `simulate`.
    designs : Mapping of str to DesignPoint
        The designs of the manifest.
    cycles : Mapping
        (Machine, (M, N, K)) to `GemmCycles`.

    Examples
    --------
    >>> reports = load_reports()
    >>> reports.dataflow, reports.baseline, reports.designs["a-float32"].gemms[0].shape
    ('os', 'a-float32', (32, 128, 64))
    """

    where: str
    version: str
    dataflow: str
    baseline: str
    designs: Mapping[str, DesignPoint]
    cycles: Mapping[tuple[Machine, tuple[int, int, int]], GemmCycles] = field(repr=False)


def _manifest(name: str, text: str) -> dict:
    try:
        manifest = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}, line {error.lineno}: not JSON ({error.msg}); remake the reports: {REMAKE}") from None
    keys = ["schema", "simulator", "version", "dataflow", "baseline", "designs", "simulations"]
    try:
        check_keys(manifest, keys, [], f"{name}, line 1")
    except TypeError as error:
        raise ValueError(f"{error}; remake the reports: {REMAKE}") from None
    if manifest["schema"] != _SCHEMA or manifest["simulator"] != "scalesim":
        raise ValueError(
            f"{name}: schema {manifest['schema']!r} of {manifest['simulator']!r} is not schema {_SCHEMA} of "
            f"'scalesim'; remake the reports: {REMAKE}"
        )
    return manifest


def load_reports(folder: str | os.PathLike | None = None) -> Simulations:
    """Load a folder of reports, checking each against its manifest.

    Parameters
    ----------
    folder : path-like, optional
        As written by `simulate`. Default: the reports that softnum ships, for its default study.

    Returns
    -------
    Simulations

    Raises
    ------
    FileNotFoundError
        If there is no manifest or a report is missing.
    ValueError
        If a file is malformed, or a report is not the one the manifest was written for.

    Examples
    --------
    >>> load_reports().version
    '3.0.0'
    """
    base = resources.files("softnum.tta").joinpath("reports") if folder is None else Path(folder)
    where = str(base)
    source = base.joinpath("manifest.json")
    if not source.is_file():
        raise FileNotFoundError(f"no SCALE-Sim manifest {str(source)!r}; make the reports: {REMAKE} --out {where}")
    manifest = _manifest(str(source), source.read_text(encoding="utf-8"))
    cycles = {}
    for entry in manifest["simulations"]:
        name = os.path.join(where, entry["report"])
        report = base.joinpath(entry["report"])
        if not report.is_file():
            raise FileNotFoundError(f"no SCALE-Sim report {name!r}, which the manifest names; remake them: {REMAKE}")
        data = report.read_bytes()
        machine = Machine.from_table(entry["machine"])
        shapes = [tuple(shape) for shape in entry["shapes"]]
        rows = read_compute_report(
            name, shapes=shapes, array=machine.array, text=data.decode("utf-8", errors="replace")
        )
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise ValueError(f"{name}: not the report that manifest.json was written for; remake them: {REMAKE}")
        cycles.update({(machine, shape): row for shape, row in zip(shapes, rows, strict=True)})
    designs = {table["name"]: DesignPoint.from_table(table, f"{source}: design") for table in manifest["designs"]}
    return Simulations(where, manifest["version"], manifest["dataflow"], manifest["baseline"], designs, cycles)


def read_requests(path: str | os.PathLike) -> tuple[list[DesignPoint], str]:
    """Read what is to be simulated: a JSON file ``{"baseline": name, "designs": [...]}``, as in a manifest.

    Parameters
    ----------
    path : path-like
        The file; a ``manifest.json`` will do.

    Returns
    -------
    points : list of DesignPoint
    baseline : str

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If it is absent or malformed.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_requests(Path(folder, "requests.json"), load_reports().designs.values(), "a-float32")
    ...     points, baseline = read_requests(file)
    >>> points[0].name, baseline
    ('a-float32', 'a-float32')
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'no request file {str(path)!r}; expected JSON with "baseline" and "designs"')
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from None
    check_keys(
        table, ["baseline", "designs"], ["schema", "simulator", "version", "dataflow", "simulations"], f"{path}, line 1"
    )
    return [DesignPoint.from_table(row, f"{path}: design") for row in table["designs"]], table["baseline"]


def write_requests(path: str | os.PathLike, points: Iterable[DesignPoint], baseline: str) -> Path:
    """Write the file that `read_requests` reads.

    Parameters
    ----------
    path : path-like
    points : iterable of DesignPoint
    baseline : str

    Returns
    -------
    Path

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_requests(Path(folder, "requests.json"), load_reports().designs.values(), "a-float32").name
    'requests.json'
    """
    table = {"baseline": baseline, "designs": [point.to_table() for point in points]}
    write_atomic(path, json.dumps(table, indent=1) + "\n")
    return Path(path)


def scalesim_timings(
    points: Iterable[DesignPoint], simulations: Simulations | Iterable[Simulations] | None = None
) -> dict[str, IterationTime]:
    """Seconds per iteration of each design: the cycles of all its GEMMs, one after another, over the clock.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs, on their stated hardware or scaled by `equal_area`.
    simulations : Simulations or iterable of Simulations, optional
        Where to look the GEMMs up; the first that has one answers. Default: the shipped reports.

    Returns
    -------
    dict of str to IterationTime

    Raises
    ------
    MissingReport
        If a GEMM was not simulated on the asked machine (a ValueError).

    Examples
    --------
    >>> times = scalesim_timings(load_reports().designs.values())
    >>> times["a-float32"].seconds, times["a-float32"].source
    (1.2036e-05, 'SCALE-Sim 3.0.0')
    """
    if simulations is None:
        simulations = load_reports()
    stores = [simulations] if isinstance(simulations, Simulations) else list(simulations)
    result = {}
    for point in points:
        rows, source = [], ""
        for gemm in point.gemms:
            for store in stores:
                machine = machine_for(point.hardware, gemm.bits, dataflow=store.dataflow, pattern=gemm.pattern)
                found = store.cycles.get((machine, gemm.shape))
                if found is not None:
                    rows.append((gemm, machine, found))
                    source = f"SCALE-Sim {store.version}"
                    break
            else:
                raise MissingReport(_difference(point, gemm, stores))
        cycles = sum(gemm.count * row.cycles for gemm, _, row in rows)
        if len({row.memory_included for _, _, row in rows}) > 1:
            raise ValueError(
                f"design {point.name!r} mixes reports with and without memory cycles (SCALE-Sim 3.0 and 2.x); "
                f"remake them with one version: {REMAKE}"
            )
        detail = {
            "cycles": cycles,
            "stall_cycles": sum(gemm.count * row.stalls for gemm, _, row in rows),
            "memory_included": rows[0][2].memory_included,
            "dataflow": rows[0][1].dataflow,
            "hardware": point.hardware.to_table(),
            "gemms": [
                {
                    **gemm.to_table(),
                    "cycles": row.cycles,
                    "stall_cycles": row.stalls,
                    "words_per_cycle": list(machine.bandwidths) if machine.pattern else machine.words_per_cycle,
                    "sram_kwords": list(machine.sram_kwords),
                }
                for gemm, machine, row in rows
            ],
        }
        result[point.name] = IterationTime(point.name, float(cycles / point.hardware.clock), 1, source, detail)
    return result


def scalesim_variants(
    points: Iterable[DesignPoint], *, baseline: str, simulations: Simulations | Iterable[Simulations] | None = None
) -> list[Variant]:
    """Return the times of the designs on their stated hardware, and at equal area, with what both rest on.

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
        "stated hardware", then "equal area".

    Raises
    ------
    ValueError
        As `scalesim_timings` and `equal_area`.

    Examples
    --------
    >>> reports = load_reports()
    >>> stated, equal = scalesim_variants(reports.designs.values(), baseline=reports.baseline)
    >>> stated.label, equal.label
    ('stated hardware', 'equal area')
    """
    points = list(points)
    if simulations is None:
        simulations = load_reports()
    stated = scalesim_timings(points, simulations)
    scaled, left_out, areas = equal_area(points, baseline)
    equal = scalesim_timings(scaled, simulations)
    flows = sorted({time.detail["dataflow"] for time in stated.values()})
    common = (*ASSUMPTIONS, f"dataflow: {', '.join(DATAFLOWS[flow] for flow in flows)}")
    if any(gemm.sparsity for point in points for gemm in point.gemms):
        common += SPARSE_ASSUMPTIONS
    if len({json.dumps(point.hardware.to_table()) for point in points}) == 1:
        hardware = points[0].hardware.to_table()
        first = f"every design on the same hardware: {json.dumps(hardware)[1:-1]}"
    else:
        first = "every design on the hardware that its design file states"
    waits = [
        f"{name} {time.detail['stall_cycles'] / time.detail['cycles']:.0%}"
        for name, time in stated.items()
        if time.detail["stall_cycles"]
    ]
    if waits:
        common += (
            f"cycles in which the array waits for operands that outgrow half of their SRAM: {', '.join(waits)} "
            "(SCALE-Sim fetches such operands again for every pass over them)",
        )
    by_reason: dict[str, list[str]] = {}
    for point in scaled:
        area = areas[point.name]
        reason = f"{area.um2:g} um2 per multiplier ({area.kind}; {area.reason})"
        by_reason.setdefault(reason, []).append(f"{point.name} {point.hardware.array[0]} x {point.hardware.array[1]}")
    rule = (
        f"ASSUMPTION, not a measurement: each array is scaled so that its multipliers take the area of {baseline}'s; a "
        "design is charged for its widest multiplier, and nothing else (adders, accumulators, registers, wires) enters"
    )
    return [
        Variant("stated hardware", stated, {}, (first, *common), NOT_SIMULATED),
        Variant(
            "equal area",
            equal,
            left_out,
            (
                rule,
                *(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()),
                f"areas: {area_source()}",
            ),
            NOT_SIMULATED,
        ),
    ]


def _difference(point: DesignPoint, gemm: Gemm, stores: list[Simulations]) -> str:
    """Say in one message which fact of a design no report covers."""
    m, n, k = gemm.shape
    message = f"design {point.name!r}: no SCALE-Sim report has the {gemm.phase} GEMM of {gemm.layer!r}"
    message += (
        f" ({m} x {n} x {k}, {gemm.bits}-bit words{f', {gemm.pattern}' if gemm.pattern else ''}) on this hardware"
    )
    known = next((store.designs[point.name] for store in stores if point.name in store.designs), None)
    if known is None:
        names = [name for store in stores for name in store.designs]
        reasons = [f"the reports are of {', '.join(names) or 'no design'}"]
    else:
        ours, theirs = point.hardware.to_table(), known.hardware.to_table()
        reasons = [
            f"{key} is {ours[key]} here and {theirs[key]} in the reports" for key in ours if ours[key] != theirs[key]
        ]
        there = {(g.layer, g.phase): g for g in known.gemms}
        for ours_gemm in point.gemms:
            other = there.get((ours_gemm.layer, ours_gemm.phase))
            what = f"{ours_gemm.phase} of {ours_gemm.layer!r}"
            if other is None:
                reasons.append(f"the reports have no {what}")
            elif ours_gemm.pattern != other.pattern:
                reasons.append(
                    f"{what} has a right operand that is {ours_gemm.pattern or 'dense'} here and "
                    f"{other.pattern or 'dense'} in the reports"
                )
            elif (ours_gemm.shape, ours_gemm.bits) != (other.shape, other.bits):
                reasons.append(
                    f"{what} is M, N, K = {ours_gemm.shape} in {ours_gemm.bits}-bit words here and "
                    f"{other.shape} in {other.bits}-bit words in the reports"
                )
    return f"{message}: {'; '.join(reasons)}"
