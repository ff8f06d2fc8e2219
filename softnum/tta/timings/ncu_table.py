"""The table of ``ncu --csv``: launches of kernels with all their metrics, each a text, a unit and the line it is from.

A line for each metric (``--page details``, ``--metrics``), or with ``--page raw`` a line for each launch, under a line
of units. What ncu and the program print before the table is left out. ncu writes numbers in the way of its locale; here
they have to be English ones, 1,234.5. Nothing is guessed: a table with decimal commas is refused. Sources: "Output
Pages" and "--csv" in docs.nvidia.com/nsight-compute/NsightComputeCli.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.text import csv_rows, lines_of, lines_with, number

__all__ = ["DURATION", "Metric", "NcuLaunch", "NcuTable", "english_number", "header_line", "read_ncu_table", "seconds"]

#: the time of a launch, and what the details page calls it
DURATION = ("gpu__time_duration.sum", "Duration")
HOW = f"expected a table made by: ncu --csv --metrics {DURATION[0]} PROGRAM"
_UNITS = {"ns": -9, "nsecond": -9, "us": -6, "µs": -6, "usecond": -6, "ms": -3, "msecond": -3, "s": 0, "second": 0}
_HEADING = re.compile("Kernel Name")
_ENGLISH = re.compile(r"(\d{1,3}(,\d{3})+|\d+)(\.\d+)?")
_LOCALE = "run ncu again with LC_ALL=C, so that numbers are written as 1,234.5"


@dataclass(frozen=True)
class Metric:
    """What a table says of one metric of a launch: its text as it stands, its unit and its line."""

    text: str
    unit: str
    line: int


@dataclass
class NcuLaunch:
    """One launch; its metrics by (section, name), where the section of a raw page is empty."""

    id: int
    kernel: str
    line: int
    grid: str | None
    metrics: dict[tuple[str, str], Metric] = field(default_factory=dict)


@dataclass(frozen=True)
class NcuTable:
    """Launches in the order of the file; the line of its headings, and whether it has a line for each launch."""

    launches: tuple[NcuLaunch, ...]
    header: int
    wide: bool


def header_line(text: str) -> tuple[int, list[str]] | None:
    """Return the line of the headings, and the headings; None where there are none."""
    for at, line in lines_with(_HEADING, text):
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if cells[0] == "ID" and ("Metric Value" in cells or any("__" in cell for cell in cells)):
            return at, cells
    return None


def read_ncu_table(path: Path, text: str) -> NcuTable:
    """Read every launch and metric of a table.

    Raises
    ------
    ValueError
        If there are no headings or no launches, a row is cut off, or a launch or a metric of one comes twice; the
        message names file and line.
    """
    found = header_line(text)
    if found is None:
        raise ValueError(f"{path}, line 1: no headings of Nsight Compute with times of launches; {HOW}")
    at, names = found
    wide = "Metric Value" not in names
    if missing := [name for name in ("Kernel Name", *(() if wide else ("Metric Name",))) if name not in names]:
        raise ValueError(f"{path}, line {at}: no heading {', '.join(missing)}; {HOW}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{path}, line {at}: the heading {twice[0]!r} comes twice; which of the columns holds?")
    if not text.endswith("\n"):
        raise ValueError(
            f"{path}, line {text.count(chr(10)) + 1}: the file stops here without the end of the line: it is cut off; "
            "export it again"
        )
    read = _wide if wide else _narrow
    launches = read(path, _rows(path, text, at, names))
    if not launches:
        raise ValueError(f"{path}, line {at}: no launches under the headings; {HOW}")
    return NcuTable(tuple(launches.values()), at, wide)


def _rows(path: Path, text: str, at: int, names: list[str]) -> list[tuple[int, dict[str, str]]]:
    rows = []
    kept = "".join(
        "\n" if line.startswith("==") or number_of <= at else f"{line}\n" for number_of, line in lines_of(text)
    )
    for line, cells in csv_rows(path, kept, what="a table of ncu --csv"):
        if len(cells) != len(names):
            if "Rule Name" not in names or len(cells) > len(names) or len(cells) <= names.index("Metric Value"):
                raise ValueError(
                    f"{path}, line {line}: {len(cells)} cells under {len(names)} headings; is the file cut off?"
                )
            cells += [""] * (len(names) - len(cells))  # rows of metrics leave out what belongs to rules
        rows.append((line, dict(zip(names, cells, strict=True))))
    return rows


def _launch(where: str, line: int, row: Mapping[str, str]) -> NcuLaunch:
    if not (row["ID"].isascii() and row["ID"].isdigit() and len(row["ID"]) <= 18):
        raise ValueError(f"{where}: ID must be a whole number, got {row['ID'][:40]!r}; is this a row of the table?")
    if not row["Kernel Name"]:
        raise ValueError(f"{where}: launch {row['ID']} names no kernel")
    return NcuLaunch(int(row["ID"]), row["Kernel Name"], line, row.get("Grid Size"))


def _wide(path: Path, rows: list[Any]) -> dict[tuple[Any, ...], NcuLaunch]:
    launches: dict[tuple[Any, ...], NcuLaunch] = {}
    units = None
    for line, row in rows:
        where = f"{path}, line {line}"
        if not row["ID"]:  # the row of units
            if units is not None or launches:
                raise ValueError(f"{where}: a second row of units; expected one table in the file")
            units = row
            continue
        launch, key = _launch(where, line, row), (row.get("Process ID", ""), row["ID"])
        if units is None:
            raise ValueError(f"{where}: no row of units under the headings; {HOW}")
        if key in launches:
            raise ValueError(f"{where}: launch {row['ID']} again; expected one table in the file")
        launch.metrics.update(
            {("", name): Metric(value, units[name], line) for name, value in row.items() if "__" in name and value}
        )
        launches[key] = launch
    return launches


def _narrow(path: Path, rows: list[Any]) -> dict[tuple[Any, ...], NcuLaunch]:
    launches: dict[tuple[Any, ...], NcuLaunch] = {}
    seen: dict[tuple[Any, ...], Metric] = {}
    for line, row in rows:
        where = f"{path}, line {line}"
        launch = _launch(where, line, row)
        key = (row.get("Process ID", ""), row["ID"])
        first = launches.setdefault(key, launch)
        if (launch.kernel, launch.grid) != (first.kernel, first.grid):
            raise ValueError(
                f"{where}: launch {launch.id} is of {launch.kernel!r}, at line {first.line} of {first.kernel!r}; "
                "expected one table in the file"
            )
        name = row["Metric Name"]
        if not name:
            continue  # a rule's row
        metric = Metric(row["Metric Value"], row.get("Metric Unit", ""), line)
        place = (*key, row.get("Section Name", ""), name)
        if place in seen:
            raise ValueError(
                f"{where}: {name} of launch {launch.id} again, at line {seen[place].line} before; expected one table "
                "in the file"
            )
        seen[place] = metric
        first.metrics[place[2:]] = metric
    return launches


def english_number(where: str, name: str, value: str, *, positive: bool = True) -> Fraction:
    """Return a number of a table exactly; ValueError of one in another locale's way."""
    if not _ENGLISH.fullmatch(value):
        raise ValueError(f"{where}: {name} must be a number like 1,234.5, got {value[:40]!r}; {_LOCALE}")
    return number(where, name, value.replace(",", ""), positive=positive)


def seconds(path: Path, launch: NcuLaunch) -> Fraction:
    """The time of a launch; ValueError where it has none, two that differ, or one without a unit of time."""
    told: list[tuple[Fraction, Metric]] = []
    for (_, name), metric in launch.metrics.items():
        if name not in DURATION:
            continue
        where = f"{path}, line {metric.line}"
        if metric.unit not in _UNITS:
            raise ValueError(f"{where}: the unit of {DURATION[0]} must be one of {', '.join(_UNITS)}, got "
                             f"{metric.unit!r}")  # fmt: skip
        value = english_number(where, DURATION[0], metric.text)
        if _UNITS[metric.unit] == -9 and re.fullmatch(r"\d{1,3}\.\d{3}", metric.text):
            raise ValueError(
                f"{where}: {metric.text} ns may be thousands of nanoseconds with a decimal comma's full stop, or a "
                f"fraction; {_LOCALE}"
            )
        told.append((value * Fraction(10) ** _UNITS[metric.unit], metric))
    if not told:
        raise ValueError(
            f"{path}, line {launch.line}: launch {launch.id} of {launch.kernel!r} has no {DURATION[0]}; measure it: "
            f"ncu --metrics {DURATION[0]}"
        )
    if told[-1][0] != told[0][0]:
        raise ValueError(
            f"{path}, line {told[-1][1].line}: another time of launch {launch.id} than at line {told[0][1].line}; "
            "expected one table in the file"
        )
    return told[0][0]
