"""SCALE-Sim's COMPUTE_REPORT.csv, of 2.x and 3.0: what it says, and how a wrong one is found out."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from softnum.tta.quantities import frequency
from softnum.tta.workloads.iteration import IterationTime

__all__ = [
    "COLUMNS",
    "GemmCycles",
    "column_of",
    "cycles_column",
    "read_compute_report",
    "read_scalesim",
    "report_rows",
    "report_text",
]

_TOTAL, _COMPUTE, _STALL, _UTIL = "Total Cycles (incl. prefetch)", "Total Cycles", "Stall Cycles", "Overall Util %"
_TAIL = ["Stall Cycles", "Overall Util %", "Mapping Efficiency %", "Compute Util %"]
_HEADERS = {
    "3.0": ["LayerID", _TOTAL, _COMPUTE, *_TAIL],
    "2.x": ["LayerID", _COMPUTE, *_TAIL],
}

#: What the columns of cycles hold.
COLUMNS = {
    _TOTAL: "from the first operand's read to the last result's write",
    _COMPUTE: "without the first operands' reads and the last results' writes, which reports of 2.x leave out",
}


@dataclass(frozen=True)
class GemmCycles:
    """One row of a COMPUTE_REPORT.csv.

    Parameters
    ----------
    cycles : int
        Cycles of the GEMM: with operand reads and result writes where `memory_included`, else of the array alone.
    stalls : int
        Cycles the array waited for memory.
    memory_included : bool
        Whether `cycles` covers the first reads and the last writes (3.0) or not (2.x).
    array : int
        Cycles of the array alone: what 2.x gives.

    Examples
    --------
    >>> GemmCycles(cycles=1201, stalls=0, memory_included=True).cycles
    1201
    """

    cycles: int
    stalls: int
    memory_included: bool
    array: int = field(default=0, repr=False, compare=False)


def column_of(rows: Sequence[GemmCycles]) -> str:
    """The column that cycles are taken from, and what the other one would give.

    >>> column_of([GemmCycles(1201, 0, True, 1100)])
    "'Total Cycles (incl. prefetch)', 1201 in all; 'Total Cycles', all that SCALE-Sim 2 gives, would be 1100"
    """
    cycles, array = sum(row.cycles for row in rows), sum(row.array for row in rows)
    if rows[0].memory_included:
        return f"{_TOTAL!r}, {cycles} in all; {_COMPUTE!r}, all that SCALE-Sim 2 gives, would be {array}"
    return f"{_COMPUTE!r}, {cycles} in all; of the array alone: SCALE-Sim 3 gives {_TOTAL!r} as well, which is more"


def report_rows(text: str) -> list[str]:
    """The rows of a report without their numbers: what SCALE-Sim wrote of each GEMM.

    >>> report_rows("LayerID, Total Cycles, ...\\n0, 1000, 0,\\n")
    ['1000, 0,']
    """
    return [line.partition(",")[2].strip() for line in text.splitlines()[1:]]


def cycles_column(row: GemmCycles) -> str:
    """The column of a report that its cycles are from.

    >>> cycles_column(GemmCycles(1201, 0, memory_included=True))
    'Total Cycles (incl. prefetch)'
    """
    return _TOTAL if row.memory_included else _COMPUTE


def report_text(rows: Sequence[str]) -> str:
    """A report of 3.0 with such rows.

    >>> report_text(["1000, 900, 0, 50.0, 100.0, 50.0,"]).splitlines()[1]
    '0, 1000, 900, 0, 50.0, 100.0, 50.0,'
    """
    header = ", ".join(_HEADERS["3.0"]) + ",\n"
    return header + "".join(f"{number}, {row}\n" for number, row in enumerate(rows))


def read_compute_report(
    path: str | os.PathLike[str],
    *,
    shapes: Sequence[tuple[int, int, int]] | None = None,
    array: tuple[int, int] | None = None,
    text: str | None = None,
) -> list[GemmCycles]:
    """Read SCALE-Sim's COMPUTE_REPORT.csv, of 2.x or 3.0.

    Parameters
    ----------
    path : path-like
        The report.
    shapes : sequence of (int, int, int), optional
        (M, N, K) of the GEMMs that were simulated. If given, there must be one row each.
    array : (int, int), optional
        Rows and columns. If given with `shapes`, each row's utilisation is checked against its cycles, so that a report
        of another network or another array is found out.
    text : str, optional
        The report's contents, if they are already in memory; `path` is then only its name in messages.

    Returns
    -------
    list of GemmCycles
        One for each GEMM, in order.

    Raises
    ------
    FileNotFoundError
        If there is no report: SCALE-Sim writes it at the end of a run.
    ValueError
        If it is truncated, malformed or of other GEMMs; the message names file, line and the way out.

    Examples
    --------
    >>> header = "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\\n"
    >>> read_compute_report("mine.csv", text=header + "0, 1000, 0, 50.0, 100.0, 50.0,\\n")
    [GemmCycles(cycles=1000, stalls=0, memory_included=False)]
    """
    again = "run the simulation again"
    if text is None:
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(
                f"no SCALE-Sim report {str(path)!r}; SCALE-Sim writes COMPUTE_REPORT.csv at the end of a run: "
                f"the run did not finish, or the path is not <top path>/<run_name>/COMPUTE_REPORT.csv; {again}"
            )
        text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    try:
        header = [cell.strip() for cell in next(csv.reader(lines[:1]), [])]
    except csv.Error as error:  # a field of more than 131072 characters
        raise ValueError(f"{path}, line 1: no CSV ({error})") from None
    version = next((name for name, columns in _HEADERS.items() if header == [*columns, ""]), None)
    if version is None:
        raise ValueError(
            f"{path}, line 1: not the header of a SCALE-Sim compute report: {lines[0] if lines else ''!r}; expected "
            f"{', '.join(_HEADERS['3.0'])}, (3.0) or the same without {_TOTAL!r} (2.x)"
        )
    if not text.endswith("\n"):
        raise ValueError(f"{path}, line {len(lines)}: the last line is cut off: {lines[-1]!r}; {again}")
    columns = _HEADERS[version]
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}, line {number}"
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(columns) + 1 or cells[-1]:
            raise ValueError(f"{where}: expected {len(columns)} values and a final comma, got {line!r}; {again}")
        row = dict(zip(columns, cells, strict=False))
        if row["LayerID"] != str(number - 2):
            raise ValueError(
                f"{where}: expected LayerID {number - 2}, got {row['LayerID']!r}; rows are missing; {again}"
            )
        rows.append(_gemm_cycles(where, row, again))
    if not rows:
        raise ValueError(f"{path}, line 1: no rows follow the header; the run did not finish; {again}")
    if shapes is not None:
        _check_shapes(path, rows, shapes, array, again)
    return [row for row, _, _ in rows]


def _gemm_cycles(where: str, row: dict[str, str], again: str) -> tuple[GemmCycles, int, float]:
    numbers = {}
    for column, cell in row.items():
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        whole = column in (_TOTAL, _COMPUTE, _STALL)
        if not math.isfinite(number) or number < 0 or (whole and number != int(number)):
            kind = "a whole number" if whole else "a number"
            raise ValueError(f"{where}: {column} must be {kind} from 0 up, got {cell!r}; {again}")
        numbers[column] = int(number) if whole else number
    compute = numbers[_COMPUTE]
    total = numbers.get(_TOTAL, compute)
    if compute < 1 or total < compute:
        raise ValueError(f"{where}: {total} cycles in all and {compute} of the array cannot be right; {again}")
    return GemmCycles(total, numbers[_STALL], _TOTAL in numbers, compute), compute, numbers[_UTIL]


def _check_shapes(path, rows, shapes, array, again: str) -> None:
    if len(rows) != len(shapes):
        raise ValueError(
            f"{path}, line {len(rows) + 1}: {len(rows)} GEMMs where {len(shapes)} were to be simulated: the report is "
            f"truncated or of another network; {again}"
        )
    if array is None:
        return
    for number, ((_, compute, utilisation), (m, n, k)) in enumerate(zip(rows, shapes, strict=True), start=2):
        expected = 100 * m * n * k / (compute * array[0] * array[1])
        if not math.isclose(utilisation, expected, rel_tol=1e-6):
            raise ValueError(
                f"{path}, line {number}: {_UTIL} is {utilisation:g} where a {m} x {n} x {k} GEMM in {compute} cycles "
                f"on {array[0]} x {array[1]} cells gives {expected:g}: the report is of another GEMM or array; {again}"
            )


def read_scalesim(
    path: str | os.PathLike[str], *, design: str, clock: str, shapes: Sequence[tuple[int, int, int]] | None = None
) -> IterationTime:
    """Read the time of one iteration from a COMPUTE_REPORT.csv of your own SCALE-Sim run.

    Parameters
    ----------
    path : path-like
        The report of a run over every GEMM of one training iteration, forward and backward.
    design : str
        Name of the design the time is for.
    clock : str
        The array's clock, such as "1 GHz".
    shapes : sequence of (int, int, int), optional
        (M, N, K) of the GEMMs; if given, their number is checked.

    Returns
    -------
    IterationTime
        The sum over the GEMMs.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_compute_report`, or if the clock is not a frequency.

    Examples
    --------
    >>> import tempfile
    >>> header = "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "COMPUTE_REPORT.csv")
    ...     _ = file.write_text(header + "0, 1000, 0, 50.0, 100.0, 50.0,\\n")
    ...     read_scalesim(file, design="mine", clock="1 GHz").seconds
    1e-06
    """
    hertz = frequency(clock)
    rows = read_compute_report(path, shapes=shapes)
    cycles = sum(row.cycles for row in rows)
    detail = {
        "cycles": cycles,
        "stall_cycles": sum(row.stalls for row in rows),
        "memory_included": rows[0].memory_included,
        "column": column_of(rows),
        "file": str(path),
        "clock_hz": float(hertz),
    }
    return IterationTime(design, float(cycles / hertz), 1, f"SCALE-Sim report {path}", detail, kind="simulated")
