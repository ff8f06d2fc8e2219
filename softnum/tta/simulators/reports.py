"""Folders of simulators' reports: a manifest that says what was simulated for which designs, and the reports."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.quantities import check_keys
from softnum.tta.simulators.environment import TOOLS
from softnum.tta.simulators.scalesim import Machine
from softnum.tta.simulators.scalesim_report import GemmCycles, read_compute_report, report_rows
from softnum.tta.simulators.zigzag import ZigZagMachine
from softnum.tta.simulators.zigzag_report import GemmCost, read_gemm_cost
from softnum.tta.text import json_of
from softnum.tta.workloads.hardware import DesignPoint, Gemm

__all__ = ["REMAKE", "MissingReport", "Simulations", "load_reports", "read_requests", "write_reports", "write_requests"]

REMAKE = "python -m softnum.tta remake"
SCHEMA = 1


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


@dataclass(frozen=True)
class Simulations:
    """Simulated GEMMs by machine and shape, with the designs they were made for.

    Parameters
    ----------
    where : str
        The folder they come from.
    version : str
        The simulator's version.
    dataflow, baseline : str
        As given to `simulate`.
    designs : Mapping of str to DesignPoint
        The designs of the manifest.
    cycles : Mapping
        (Machine, (M, N, K)) to `GemmCycles`; of ZigZag (ZigZagMachine, (M, N, K)) to `GemmCost`.
    rows : Mapping
        By the same, what the simulator wrote of each.
    reports : Mapping
        By the same, the file that says so.
    simulator : str
        "scalesim" or "zigzag".

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
    cycles: Mapping[tuple[Machine | ZigZagMachine, tuple[int, int, int]], GemmCycles | GemmCost] = field(repr=False)
    rows: Mapping[tuple[Any, ...], str] = field(default_factory=dict, repr=False)
    reports: Mapping[tuple[Any, ...], str] = field(default_factory=dict, repr=False)
    simulator: str = "scalesim"


def _manifest(name: str, text: str) -> dict[str, Any]:
    manifest = json_of(text, name, f"remake the reports: {REMAKE}")
    keys = ["schema", "simulator", "version", "dataflow", "baseline", "designs", "simulations"]
    try:
        check_keys(manifest, keys, [], f"{name}, line 1")
    except TypeError as error:
        raise ValueError(f"{error}; remake the reports: {REMAKE}") from None
    if manifest["schema"] != SCHEMA or manifest["simulator"] not in TOOLS:
        raise ValueError(
            f"{name}: schema {manifest['schema']!r} of {manifest['simulator']!r} is not schema {SCHEMA} of "
            f"{' or '.join(TOOLS)}; remake the reports: {REMAKE}"
        )
    return manifest


def load_reports(folder: str | os.PathLike[str] | None = None) -> Simulations:
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
    base = Path(__file__).parents[1] / "reports" if folder is None else Path(folder)
    where = str(base)
    source = base.joinpath("manifest.json")
    if not source.is_file():
        raise FileNotFoundError(f"no manifest of simulations {str(source)!r}; make the reports: {REMAKE} --out {where}")
    manifest = _manifest(str(source), source.read_text(encoding="utf-8"))
    simulator = manifest["simulator"]
    read = {"scalesim": _scalesim_entry, "zigzag": _zigzag_entry}[simulator]
    cycles, rows, reports = {}, {}, {}
    for number, entry in enumerate(manifest["simulations"]):
        check_keys(entry, ["report", "sha256", "machine", "shapes"], [], f"{source}: simulation {number}")
        name = os.path.join(where, entry["report"])
        report = base.joinpath(entry["report"])
        if not report.is_file():
            raise FileNotFoundError(
                f"no {TOOLS[simulator].name} report {name!r}, which the manifest names; remake them: {REMAKE}"
            )
        data = report.read_bytes()
        found = read(name, entry, data.decode("utf-8", errors="replace"))
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise ValueError(f"{name}: not the report that manifest.json was written for; remake them: {REMAKE}")
        for key, value, row in found:
            cycles[key], rows[key], reports[key] = value, row, name
    designs = {table["name"]: DesignPoint.from_table(table, f"{source}: design") for table in manifest["designs"]}
    return Simulations(
        where,
        manifest["version"],
        manifest["dataflow"],
        manifest["baseline"],
        designs,
        cycles,
        rows,
        reports,
        simulator,
    )


def _scalesim_entry(name: str, entry: Mapping[str, Any], text: str) -> list[tuple[Any, ...]]:
    machine = Machine.from_table(entry["machine"])
    shapes = [tuple(shape) for shape in entry["shapes"]]
    results = read_compute_report(name, shapes=shapes, array=machine.array, text=text)
    return [((machine, shape), *found) for shape, *found in zip(shapes, results, report_rows(text), strict=True)]


def _zigzag_entry(name: str, entry: Mapping[str, Any], text: str) -> list[tuple[Any, ...]]:
    machine = ZigZagMachine.from_table(entry["machine"])
    (shape,) = (tuple(shape) for shape in entry["shapes"])
    return [((machine, shape), read_gemm_cost(name, machine=machine, shape=shape, text=text), text)]


def write_reports(
    out: Path,
    simulator: str,
    dataflow: str,
    baseline: str,
    points: Iterable[DesignPoint],
    reports: Iterable[tuple[Any, ...]],
) -> Path:
    """Write reports and the manifest that names them, and remove those that an earlier manifest named.

    Parameters
    ----------
    out : Path
        The folder.
    simulator, dataflow, baseline : str
    points : iterable of DesignPoint
    reports : iterable of (str, str, Machine or ZigZagMachine, list of (int, int, int))
        Name, text, machine and shapes of each.

    Returns
    -------
    Path
        The manifest.
    """
    earlier, entries = set(), []
    if (out / "manifest.json").is_file():
        with contextlib.suppress(ValueError):  # a damaged manifest names nothing that could be removed
            text = (out / "manifest.json").read_text(encoding="utf-8")
            earlier = {str(entry["report"]) for entry in _manifest(str(out), text)["simulations"]}
    for name, text, machine, shapes in reports:
        write_atomic(out / name, text)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        entries.append({"report": name, "sha256": digest, "machine": machine.to_table(), "shapes": shapes})
    manifest = {
        "schema": SCHEMA,
        "simulator": simulator,
        "version": TOOLS[simulator].version,
        "dataflow": dataflow,
        "baseline": baseline,
        "designs": [point.to_table() for point in points],
        "simulations": entries,
    }
    write_atomic(out / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    for name in earlier - {entry["report"] for entry in entries}:
        if Path(name).name == name:  # nothing outside the folder
            (out / name).unlink(missing_ok=True)
    return out / "manifest.json"


def read_requests(path: str | os.PathLike[str]) -> tuple[list[DesignPoint], str]:
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
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_requests(Path(folder, "requests.json"), load_reports().designs.values(), "a-float32")
    ...     points, baseline = read_requests(file)
    >>> points[0].name, baseline
    ('a-float32', 'a-float32')
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'no request file {str(path)!r}; expected JSON with "baseline" and "designs"')
    table = json_of(path.read_text(encoding="utf-8"), str(path))
    check_keys(
        table, ["baseline", "designs"], ["schema", "simulator", "version", "dataflow", "simulations"], f"{path}, line 1"
    )
    return [DesignPoint.from_table(row, f"{path}: design") for row in table["designs"]], table["baseline"]


def write_requests(path: str | os.PathLike[str], points: Iterable[DesignPoint], baseline: str) -> Path:
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
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_requests(Path(folder, "requests.json"), load_reports().designs.values(), "a-float32").name
    'requests.json'
    """
    table = {"baseline": baseline, "designs": [point.to_table() for point in points]}
    write_atomic(path, json.dumps(table, indent=1) + "\n")
    return Path(path)


#: How many differences a message lists.
_REASONS = 4


def difference(point: DesignPoint, gemm: Gemm, stores: list[Simulations], simulator: str = "scalesim") -> str:
    """Say in one message which fact of a design no report covers."""
    m, n, k = gemm.shape
    tool = TOOLS[simulator].name
    message = f"design {point.name!r}: no {tool} report has the {gemm.phase} GEMM of {gemm.layer!r}"
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
            f"{key} is {ours.get(key)} here and {theirs.get(key)} in the reports"
            for key in {**ours, **theirs}
            if ours.get(key) != theirs.get(key)
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
    reasons = list(dict.fromkeys(reasons))
    if len(reasons) > _REASONS + 1:
        reasons[_REASONS:] = [f"and {len(reasons) - _REASONS} more differences like these"]
    return f"{message}: {'; '.join(reasons)}"
