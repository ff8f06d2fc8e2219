"""The plain timing file: measured or simulated iterations, one a row.

CSV, with a header row that names the columns in any order::

    design,iteration,seconds            design,iteration,cycles,clock
    a-float32,1,8.1e-6                  a-float32,1,8100,1 GHz

JSON: a list of objects with the same keys. ``cycles`` needs a clock: a ``clock`` column ("1 GHz"), or one stated for
the whole file. Seconds and cycles may not be mixed in one file. ``joules``, the energy of the iteration, may be there
too. ``design`` may be left out of a file of one design whose name is stated.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

from softnum.tta.quantities import check_keys, frequency, write_atomic
from softnum.tta.timings.iteration import IterationTime
from softnum.tta.timings.series import Options, Series, count, number

__all__ = ["FORMS", "read_csv_table", "read_json_table", "write_timings"]

FORMS = "design, iteration, seconds[, joules]  or  design, iteration, cycles[, clock][, joules]"
_OPTIONAL = ["seconds", "cycles", "clock", "joules"]


def read_csv_table(path: Path, text: str, options: Options) -> list[Series]:
    """Read the CSV form."""
    return _series(path, _csv_rows(path, text, options), options)


def read_json_table(path: Path, text: str, options: Options) -> list[Series]:
    """Read the JSON form."""
    return _series(path, _json_rows(path, text), options)


def write_timings(path: str | os.PathLike, times: Iterable[IterationTime]) -> None:
    """Write times as a plain CSV file, from which `read_timings` reads the same times.

    Every sample is a row, the dropped ones at the start too, so that the same warm-up rule drops them again. A time of
    which only the mean is known is one row. Where it came from, and of how many iterations a sample is the mean, is not
    in such a file.

    Parameters
    ----------
    path : path-like
        The file to write. Its folder is made if it is absent.
    times : iterable of IterationTime
        One for each design.

    Raises
    ------
    ValueError
        If a design is given twice.

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
    with_joules = any(time.joules is not None for time in times)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["design", "iteration", "seconds", *(["joules"] if with_joules else [])])
    for time in times:
        dropped = (time.detail or {}).get("warmup_seconds", ())
        for at, seconds in enumerate([*dropped, *(time.samples or (time.seconds,))], start=1):
            joules = "" if time.joules is None else repr(time.joules)
            writer.writerow([time.design, at, repr(seconds), *([joules] if with_joules else [])])
    write_atomic(path, out.getvalue())


def _series(path: Path, rows: Iterator[tuple[str, Mapping]], options: Options) -> list[Series]:
    times: dict[str, dict[int, tuple[Fraction, Fraction | None]]] = {}
    kinds: dict[str, str] = {}
    with_joules: dict[bool, str] = {}
    for where, row in rows:
        design, iteration, seconds, joules, kind = _row(where, row, options)
        kinds.setdefault(kind, where)
        if len(kinds) > 1:
            (other, place), *_ = kinds.items()
            raise ValueError(f"{where}: gives {kind} where {place} gives {other}; use one of them throughout")
        with_joules.setdefault(joules is not None, where)
        if len(with_joules) > 1:
            raise ValueError(f"{where}: joules are given in some rows and not in others; give them in all or in none")
        seen = times.setdefault(design, {})
        if iteration in seen:
            raise ValueError(f"{where}: iteration {iteration} of design {design!r} is given twice; remove one row")
        seen[iteration] = seconds, joules
    if not times:
        raise ValueError(f"{path}: holds no rows; expected {FORMS}, one row for each iteration")
    if options.design is not None:
        if options.design not in times:
            near = difflib.get_close_matches(options.design, times, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"{path}: no row of design {options.design!r}; {hint}It has {', '.join(map(repr, times))}")
        times = {options.design: times[options.design]}
    return [
        Series(
            design,
            [seconds for _, (seconds, _) in ordered],
            "given",
            str(path),
            {},
            joules=[joules for _, (_, joules) in ordered] if True in with_joules else None,
        )
        for design, values in times.items()
        for ordered in [sorted(values.items())]
    ]


def _csv_rows(path: Path, text: str, options: Options) -> Iterator[tuple[str, Mapping]]:
    reader = csv.reader(io.StringIO(text, newline="\n"), skipinitialspace=True, strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            cells = [cell.strip() for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                header = cells
                _check_columns(where, header, options)
                continue
            if len(cells) != len(header):
                raise ValueError(
                    f"{where}: {len(cells)} cells where the header has {len(header)} ({', '.join(header)}); "
                    "a truncated row? Write the file again"
                )
            yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not readable as CSV ({error}); expected {FORMS}") from None


def _check_columns(where: str, header: list[str], options: Options) -> None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise ValueError(f"{where}: column {repeated[0]!r} appears twice; expected {FORMS}")
    try:
        _check(dict.fromkeys(header), f"{where}: the header", options)
    except ValueError as error:
        raise ValueError(f"{error}. The first row names the columns: {FORMS}") from None


def _check(table: Mapping, where: str, options: Options) -> None:
    if options.design is None:
        check_keys(table, ["design", "iteration"], _OPTIONAL, where)
    else:
        check_keys(table, ["iteration"], ["design", *_OPTIONAL], where)


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, Mapping]]:
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


def _row(where: str, row: Mapping, options: Options) -> tuple[str, int, Fraction, Fraction | None, str]:
    row = {key: value for key, value in row.items() if value not in ("", None)}
    _check(row, f"{where}: the row", options)
    if ("seconds" in row) == ("cycles" in row):
        raise ValueError(f"{where}: expected either seconds or cycles; the forms are {FORMS}")
    design = row.get("design", options.design)
    if not isinstance(design, str):
        raise ValueError(f"{where}: design must be a name, got {design!r}")
    iteration = count(where, "iteration", row["iteration"], positive=False)
    kind = "seconds" if "seconds" in row else "cycles"
    amount = number(where, kind, row[kind])
    joules = number(where, "joules", row["joules"]) if "joules" in row else None
    if kind == "seconds":
        if "clock" in row:
            raise ValueError(f"{where}: a clock is given with seconds; a clock goes with cycles only")
        return design, iteration, amount, joules, kind
    if "clock" in row:
        try:
            clock = frequency(row["clock"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from None
    elif options.clock is not None:
        clock = options.clock
    else:
        raise ValueError(
            f'{where}: cycles without a clock; add a clock column (1 GHz), or state one for all: --clock "1 GHz"'
        )
    return design, iteration, amount / clock, joules, kind
