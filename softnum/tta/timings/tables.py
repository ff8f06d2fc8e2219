"""Seconds per iteration: what a timing file says, and what every simulator reader hands on.

A timing file lists measured or simulated iterations, one a row:

CSV, with a header row that names the columns in any order::

    design,iteration,seconds            design,iteration,cycles,clock
    a-float32,1,8.1e-6                  a-float32,1,8100,1 GHz

JSON: a list of objects with the same keys. ``cycles`` needs a clock: a ``clock`` column ("1 GHz"), or the `clock`
argument for the whole file. Seconds and cycles may not be mixed in one file.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from softnum.tta.quantities import check_keys, frequency
from softnum.tta.timings.iteration import IterationTime

__all__ = ["read_timings"]

_FORMS = "design, iteration, seconds  or  design, iteration, cycles[, clock]"


def read_timings(path: str | os.PathLike, *, clock: str | None = None) -> dict[str, IterationTime]:
    """Read iteration times from a CSV or JSON file.

    Parameters
    ----------
    path : path-like
        A ``.csv`` or ``.json`` file in one of the forms above.
    clock : str, optional
        Frequency such as "1 GHz" for files that give cycles and no clock column.

    Returns
    -------
    dict of str to IterationTime
        Per design, in the order of first appearance: the mean over its iterations, and how many there were.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not of a known form; the message names the file, the line, what was expected and the way out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "times.csv")
    >>> _ = file.write_text("design,iteration,cycles\\nbase,1,8000\\nbase,2,10000\\n")
    >>> read_timings(file, clock="1 GHz")["base"].seconds
    9e-06
    >>> folder.cleanup()
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"no timing file {str(path)!r}; expected a CSV or JSON file with {_FORMS}, "
            "or leave it out to use the SCALE-Sim reports"
        )
    readers = {".csv": _csv_rows, ".json": _json_rows}
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path}: the timing file must end in .csv or .json, not {path.suffix!r}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error}); save it as UTF-8") from None
    default_clock = None if clock is None else frequency(clock, "--clock")
    times: dict[str, dict[int, Fraction]] = {}
    kinds: dict[str, str] = {}
    for where, row in readers[path.suffix.lower()](path, text):
        design, iteration, seconds, kind = _row(where, row, default_clock)
        kinds.setdefault(kind, where)
        if len(kinds) > 1:
            (other, place), *_ = kinds.items()
            raise ValueError(f"{where}: gives {kind} where {place} gives {other}; use one of them throughout")
        seen = times.setdefault(design, {})
        if iteration in seen:
            raise ValueError(f"{where}: iteration {iteration} of design {design!r} is given twice; remove one row")
        seen[iteration] = seconds
    if not times:
        raise ValueError(f"{path}: holds no rows; expected {_FORMS}, one row for each iteration")
    return {
        design: IterationTime(design, _mean(path, design, list(values.values())), len(values), str(path))
        for design, values in times.items()
    }


def _mean(path: Path, design: str, seconds: list[Fraction]) -> float:
    try:
        return float(sum(seconds) / len(seconds))
    except OverflowError:
        raise ValueError(f"{path}: the iterations of {design!r} take more than 1.7e308 seconds") from None


def _csv_rows(path: Path, text: str):
    reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            cells = [cell.strip() for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                header = cells
                _check_columns(where, header)
                continue
            if len(cells) != len(header):
                raise ValueError(
                    f"{where}: {len(cells)} cells where the header has {len(header)} ({', '.join(header)}); "
                    "a truncated row? Write the file again"
                )
            yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not readable as CSV ({error}); expected {_FORMS}") from None


def _check_columns(where: str, header: list[str]) -> None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise ValueError(f"{where}: column {repeated[0]!r} appears twice; expected {_FORMS}")
    try:
        check_keys(
            dict.fromkeys(header), ["design", "iteration"], ["seconds", "cycles", "clock"], f"{where}: the header"
        )
    except ValueError as error:
        raise ValueError(f"{error}. The first row names the columns: {_FORMS}") from None


def _json_rows(path: Path, text: str):
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {error.lineno}: not JSON ({error.msg}); expected a list of objects with {_FORMS}"
        ) from None
    except (ValueError, RecursionError) as error:  # numbers too long, brackets too deep
        raise ValueError(f"{path}: not readable as JSON ({error}); expected a list of objects with {_FORMS}") from None
    if not isinstance(rows, list):
        raise ValueError(f"{path}, line 1: expected a list of objects with {_FORMS}, got a {type(rows).__name__}")
    lines = _entry_lines(text, len(rows))
    for line, row in zip(lines, rows, strict=True):
        where = f"{path}, line {line}"
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected an object with {_FORMS}, got {row!r}")
        yield where, row


def _entry_lines(text: str, count: int) -> list[int]:
    """The line on which each entry of a (valid) JSON list starts."""
    decoder, lines, at = json.JSONDecoder(), [], text.index("[") + 1
    for _ in range(count):
        while text[at] in " \t\r\n,":
            at += 1
        lines.append(text.count("\n", 0, at) + 1)
        _, at = decoder.raw_decode(text, at)
    return lines


def _row(where: str, row: Mapping, default_clock: Fraction | None) -> tuple[str, int, Fraction, str]:
    row = {key: value for key, value in row.items() if value not in ("", None)}
    check_keys(row, ["design", "iteration"], ["seconds", "cycles", "clock"], f"{where}: the row")
    if ("seconds" in row) == ("cycles" in row):
        raise ValueError(f"{where}: expected either seconds or cycles; the forms are {_FORMS}")
    if not isinstance(row["design"], str):
        raise ValueError(f"{where}: design must be a name, got {row['design']!r}")
    iteration = _number(where, "iteration", row["iteration"])
    if iteration.denominator != 1 or iteration < 0:
        raise ValueError(f"{where}: iteration must be a whole number from 0 up, got {row['iteration']!r}")
    kind = "seconds" if "seconds" in row else "cycles"
    amount = _number(where, kind, row[kind])
    if amount <= 0:
        raise ValueError(f"{where}: {kind} must be above zero, got {row[kind]!r}")
    if kind == "seconds":
        if "clock" in row:
            raise ValueError(f"{where}: a clock is given with seconds; a clock goes with cycles only")
        return row["design"], int(iteration), amount, kind
    if "clock" in row:
        try:
            clock = frequency(row["clock"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from None
    elif default_clock is not None:
        clock = default_clock
    else:
        raise ValueError(
            f'{where}: cycles without a clock; add a clock column (1 GHz), or state one for all: --clock "1 GHz"'
        )
    return row["design"], int(iteration), amount / clock, kind


def _number(where: str, name: str, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{where}: {name} must be a number, got {value!r}")
    try:
        approximate = float(value)
    except (ValueError, OverflowError):
        approximate = math.nan
    if not math.isfinite(approximate):
        raise ValueError(f"{where}: {name} must be a finite number, got {value!r}")
    # exact from here on; what underflows is left at zero, because 1e-999999999 has no fraction of sensible size
    return Fraction(value) if approximate else Fraction(0)
