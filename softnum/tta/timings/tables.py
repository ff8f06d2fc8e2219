"""The plain timing file: measured or simulated iterations, one a row.

CSV, with a header row that names the columns in any order::

    design,iteration,seconds            design,iteration,cycles,clock
    a-float32,1,8.1e-6                  a-float32,1,8100,1 GHz

JSON: a list of objects with the same keys. ``cycles`` needs a clock: a ``clock`` column ("1 GHz"), or one stated for
the whole file. Seconds and cycles may not be mixed in one file. ``joules``, the energy of the iteration, may be there
too. ``kind`` says how the time is known: given (where it is left out), measured, simulated or estimated; the same for
all iterations of a design. ``design`` may be left out of a file of one design whose name is stated.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.quantities import check_keys, frequency
from softnum.tta.text import count, number, table_rows
from softnum.tta.timings.series import Options, Series
from softnum.tta.workloads.iteration import KINDS, IterationTime

__all__ = ["FORMS", "read_csv_table", "read_json_table", "write_timings"]

FORMS = "design, iteration, seconds[, joules][, kind]  or  design, iteration, cycles[, clock][, joules][, kind]"
_OPTIONAL = ["seconds", "cycles", "clock", "joules", "kind"]


def read_csv_table(path: Path, text: str, options: Options) -> list[Series]:
    """Read the CSV form."""
    rows = table_rows(path, text, lambda where, header: _check_columns(where, header, options), what=FORMS)
    return _series(path, rows, options)


def read_json_table(path: Path, text: str, options: Options) -> list[Series]:
    """Read the JSON form."""
    return _series(path, _json_rows(path, text), options)


def write_timings(path: str | os.PathLike[str], times: Iterable[IterationTime]) -> None:
    """Write times as a plain CSV file, from which `read_timings` reads the same times.

    Every sample is a row, the dropped ones at the start too, so that the same warm-up rule drops them again (a stated
    number counts rows). A time of which only the mean is known is one row. There is a column of kinds where one is not
    "given". Where a time came from, and of how many iterations a sample is the mean, is not in such a file.

    Parameters
    ----------
    path : path-like
        The file to write. Its folder is made if it is absent.
    times : iterable of IterationTime
        One for each design.

    Raises
    ------
    ValueError
        If a design is given twice, or its name would not be read back: an empty one, one that begins with # or has
        blanks around it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "times.csv")
    ...     write_timings(file, [IterationTime("base", 0.25, 2, samples=(0.2, 0.3))])
    ...     print(file.read_text(), end="")
    design,iteration,seconds
    base,1,0.2
    base,2,0.3
    """
    times = list(times)
    names = [time.design for time in times]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{path}: design {repeated[0]!r} has two times; one for each is expected")
    if lost := [name for name in names if not name or name != name.strip() or name.startswith("#")]:
        raise ValueError(
            f"{path}: the design name {lost[0]!r} would not be read back; begin it with a letter, no blanks"
        )
    columns = {
        "joules": [None if time.joules is None else repr(time.joules) for time in times],
        "kind": [None if time.kind == "given" else time.kind for time in times],
    }
    extra = {name: values for name, values in columns.items() if any(values)}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["design", "iteration", "seconds", *extra])
    for index, time in enumerate(times):
        dropped = (time.detail or {}).get("warmup_seconds", ())
        rest = [values[index] or "" for values in extra.values()]
        for at, seconds in enumerate([*dropped, *(time.samples or (time.seconds,))], start=1):
            writer.writerow([time.design, at, repr(seconds), *rest])
    write_atomic(path, out.getvalue())


@dataclass(frozen=True)
class _Row:
    where: str
    design: str
    iteration: int
    seconds: Fraction
    unit: str
    joules: Fraction | None
    kind: str


def _series(path: Path, tables: Iterator[tuple[str, Mapping[str, Any]]], options: Options) -> list[Series]:
    designs: dict[str, dict[int, _Row]] = {}
    first, clocked = None, False
    for where, table in tables:
        row = _row(where, table, options)
        first = first or row
        clocked = clocked or (row.unit == "cycles" and table.get("clock") in ("", None))
        if row.unit != first.unit:
            raise ValueError(f"{where}: gives {row.unit} where {first.where} gives {first.unit}; use one throughout")
        seen = designs.setdefault(row.design, {})
        if row.iteration in seen:
            raise ValueError(
                f"{where}: iteration {row.iteration} of design {row.design!r} is given twice; remove one row"
            )
        before = next(iter(seen.values()), row)
        if row.kind != before.kind:
            raise ValueError(
                f"{where}: kind {row.kind!r} of design {row.design!r} where {before.where} says {before.kind!r}; one "
                "for each design is expected"
            )
        if (row.joules is None) != (before.joules is None):
            raise ValueError(
                f"{where}: joules of design {row.design!r} are given in some rows and not in others; give them in all "
                "or in none"
            )
        seen[row.iteration] = row
    if first is None:
        raise ValueError(f"{path}: holds no rows; expected {FORMS}, one row for each iteration")
    if options.clock is not None and not clocked:
        given = "gives seconds" if first.unit == "seconds" else "states a clock with all cycles"
        raise ValueError(f"{path}: --clock is for cycles without a clock, and the file {given}; leave it out")
    if options.design is not None:
        if options.design not in designs:
            near = difflib.get_close_matches(options.design, designs, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(
                f"{path}: no row of design {options.design!r}; {hint}It has {', '.join(map(repr, designs))}"
            )
        designs = {options.design: designs[options.design]}
    result = []
    for design, seen in designs.items():
        rows = [row for _, row in sorted(seen.items())]
        joules = None if rows[0].joules is None else [row.joules for row in rows]
        detail = {"column": repr(first.unit)}
        result.append(Series(design, [row.seconds for row in rows], rows[0].kind, str(path), detail, joules=joules))
    return result


def _check_columns(where: str, header: list[str], options: Options) -> None:
    try:
        _check(dict.fromkeys(header), f"{where}: the header", options)
    except ValueError as error:
        raise ValueError(f"{error}. The first row names the columns: {FORMS}") from None


def _check(table: Mapping[str, Any], where: str, options: Options) -> None:
    if options.design is None:
        check_keys(table, ["design", "iteration"], _OPTIONAL, where)
    else:
        check_keys(table, ["iteration"], ["design", *_OPTIONAL], where)


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {error.lineno}: not JSON ({error.msg}); expected a list of objects with {FORMS}"
        ) from None
    except (ValueError, RecursionError) as error:  # numbers too long, brackets too deep
        raise ValueError(f"{path}: not readable as JSON ({error}); expected a list of objects with {FORMS}") from None
    if not isinstance(rows, list):
        raise ValueError(f"{path}, line 1: expected a list of objects with {FORMS}, got a {type(rows).__name__}")
    lines = _entry_lines(text, len(rows))
    for line, row in zip(lines, rows, strict=True):
        where = f"{path}, line {line}"
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected an object with {FORMS}, got {row!r}")
        yield where, row


def _entry_lines(text: str, entries: int) -> list[int]:
    """The line on which each entry of a (valid) JSON list starts."""
    decoder, lines, at, line = json.JSONDecoder(), [], text.index("[") + 1, 1
    line += text.count("\n", 0, at)
    for _ in range(entries):
        start = at
        while text[at] in " \t\r\n,":
            at += 1
        line += text.count("\n", start, at)
        lines.append(line)
        _, end = decoder.raw_decode(text, at)
        line += text.count("\n", at, end)
        at = end
    return lines


def _row(where: str, row: Mapping[str, Any], options: Options) -> _Row:
    row = {key: value for key, value in row.items() if value not in ("", None)}
    _check(row, f"{where}: the row", options)
    if ("seconds" in row) == ("cycles" in row):
        raise ValueError(f"{where}: expected either seconds or cycles; the forms are {FORMS}")
    design, kind = row.get("design", options.design), row.get("kind", "given")
    if not isinstance(design, str):
        raise ValueError(f"{where}: design must be a name, got {design!r}")
    if kind not in KINDS:
        raise ValueError(f"{where}: kind must be one of {', '.join(KINDS)}, got {kind!r}")
    iteration = count(where, "iteration", row["iteration"], positive=False)
    unit = "seconds" if "seconds" in row else "cycles"
    amount = number(where, unit, row[unit])
    joules = number(where, "joules", row["joules"]) if "joules" in row else None
    if unit == "cycles":
        amount /= _clock(where, row, options)
    elif "clock" in row:
        raise ValueError(f"{where}: a clock is given with seconds; a clock goes with cycles only")
    return _Row(where, design, iteration, amount, unit, joules, kind)


def _clock(where: str, row: Mapping[str, Any], options: Options) -> Fraction:
    if "clock" in row:
        try:
            return frequency(row["clock"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from None
    if options.clock is None:
        raise ValueError(
            f'{where}: cycles without a clock; add a clock column (1 GHz), or state one for all: --clock "1 GHz"'
        )
    return options.clock
