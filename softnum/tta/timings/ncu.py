"""Tables of NVIDIA Nsight Compute: ``ncu --csv``, a line for each metric, or with ``--page raw`` one for each launch.

The time of a launch is the metric gpu__time_duration.sum, in the details page also called Duration. What ncu and the
program print before the table is left out. Sources: "Output Pages" and "--csv" in
docs.nvidia.com/nsight-compute/NsightComputeCli. ncu writes numbers in the way of its locale; here they have to be
English ones, 1,234.5. Nothing is guessed: a table with decimal commas is refused.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from softnum.tta.text import csv_rows, lines_of, lines_with, number
from softnum.tta.timings.kernels import Launch, group_launches, kernel_table
from softnum.tta.timings.series import Options, Series
from softnum.tta.timings.whose import compared

__all__ = ["header_line", "read_ncu"]

_METRIC = "gpu__time_duration.sum"
_UNITS = {"ns": -9, "nsecond": -9, "us": -6, "µs": -6, "usecond": -6, "ms": -3, "msecond": -3, "s": 0, "second": 0}
_HEADING = re.compile("Kernel Name")
_ENGLISH = re.compile(r"(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")
_HOW = f"expected a table made by: ncu --csv --metrics {_METRIC} PROGRAM"
_LOCALE = "run ncu again with LC_ALL=C, so that numbers are written as 1,234.5"


def header_line(text: str) -> tuple[int, list[str]] | None:
    """Return the line of the headings, and the headings; None where there are none."""
    for at, line in lines_with(_HEADING, text):
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if cells[0] == "ID" and (_METRIC in cells or "Metric Value" in cells):
            return at, cells
    return None


def read_ncu(path: Path, text: str, options: Options) -> list[Series]:
    """Read the launches of one design: the sum of their times in each iteration."""
    found = header_line(text)
    if found is None:
        raise ValueError(f"{path}, line 1: no headings of Nsight Compute with times of launches; {_HOW}")
    at, names = found
    needed = ("Kernel Name", *([_METRIC] if _METRIC in names else ["Metric Name", "Metric Value"]))
    if missing := [name for name in needed if name not in names]:
        raise ValueError(f"{path}, line {at}: no heading {', '.join(missing)}; {_HOW}")
    if not text.endswith("\n"):
        raise ValueError(
            f"{path}, line {text.count(chr(10)) + 1}: the file stops here without the end of the line: it is cut off; "
            "export it again"
        )
    rows = []
    kept = "".join(
        "\n" if line.startswith("==") or number_of <= at else f"{line}\n" for number_of, line in lines_of(text)
    )
    for line, cells in csv_rows(path, kept, what="a table of ncu --csv"):
        where = f"{path}, line {line}"
        if len(cells) != len(names):
            if "Rule Name" not in names or len(cells) > len(names) or len(cells) <= names.index("Metric Value"):
                raise ValueError(f"{where}: {len(cells)} cells under {len(names)} headings; is the file cut off?")
            cells += [""] * (len(names) - len(cells))  # rows of metrics leave out what belongs to rules
        rows.append((line, dict(zip(names, cells, strict=True))))
    launches = _launches(path, at, rows, wide=_METRIC in names)
    groups, said = group_launches(str(path), launches, options)
    used = [launch for group in groups for launch in group]
    return [
        Series(
            options.design,
            [sum((launch.seconds for launch in group), Fraction(0)) for group in groups],
            "measured",
            f"Nsight Compute {path}",
            {
                "iterations": said,
                "column": repr(_METRIC) if _METRIC in names else f"'Metric Value' of {_METRIC!r} (or 'Duration')",
                "time": "sum of the kernels' times, each measured alone under the profiler, which by default holds the "
                "GPU at its base clock and empties its caches: without gaps, copies and overlap",
                **compared(str(path), [(launch.name, launch.line) for launch in launches], options),
                "launches": len(used),
                "kernels": kernel_table(used),
            },
        )
    ]


def _launches(path: Path, header: int, rows: list, *, wide: bool) -> list[Launch]:
    launches: dict[tuple, Launch] = {}
    names: dict[tuple, tuple[int, str]] = {}
    unit_row = None
    for line, row in rows:
        where = f"{path}, line {line}"
        if wide and not row["ID"]:  # the row of units
            if unit_row is not None or launches:
                raise ValueError(f"{where}: a second row of units; expected one table in the file")
            unit_row = row
            continue
        if not row["ID"].isdigit():
            raise ValueError(f"{where}: ID must be a whole number, got {row['ID'][:40]!r}; is this a row of the table?")
        key = (row.get("Process ID", ""), row["ID"])
        if not row["Kernel Name"]:
            raise ValueError(f"{where}: launch {row['ID']} names no kernel")
        if wide:
            if unit_row is None:
                raise ValueError(f"{where}: no row of units under the headings; {_HOW}")
            if key in launches:
                raise ValueError(f"{where}: launch {row['ID']} again; expected one table in the file")
            value, unit = row[_METRIC], unit_row[_METRIC]
        else:
            names.setdefault(key, (line, row["Kernel Name"]))
            if row["Metric Name"] not in (_METRIC, "Duration"):
                continue
            value, unit = row["Metric Value"], row.get("Metric Unit", "")
        launch = Launch(row["Kernel Name"], line, _seconds(where, value, unit), row.get("Grid Size"))
        if key in launches and (launch.name, launch.seconds) != (launches[key].name, launches[key].seconds):
            raise ValueError(
                f"{where}: another time of launch {row['ID']} than at line {launches[key].line}; expected one table in "
                "the file"
            )
        launches.setdefault(key, launch)
    for key, (line, name) in names.items():
        if key not in launches:
            raise ValueError(
                f"{path}, line {line}: launch {key[1]} of {name!r} has no {_METRIC}; measure it: ncu "
                f"--metrics {_METRIC}"
            )
    if not launches:
        raise ValueError(f"{path}, line {header}: no launches under the headings; {_HOW}")
    return list(launches.values())


def _seconds(where: str, value: str, unit: str) -> Fraction:
    if unit not in _UNITS:
        raise ValueError(f"{where}: the unit of {_METRIC} must be one of {', '.join(_UNITS)}, got {unit!r}")
    if not _ENGLISH.fullmatch(value):
        raise ValueError(f"{where}: {_METRIC} must be a number like 1,234.5, got {value[:40]!r}; {_LOCALE}")
    if _UNITS[unit] == -9 and re.fullmatch(r"\d{1,3}\.\d{3}", value):
        raise ValueError(
            f"{where}: {value} ns may be thousands of nanoseconds with a decimal comma's full stop, or a "
            f"fraction; {_LOCALE}"
        )
    return number(where, _METRIC, value.replace(",", "")) * Fraction(10) ** _UNITS[unit]
