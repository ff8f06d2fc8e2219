"""Text files that people and tools write: their text, lines, numbers and CSV rows, with errors that name the place.

Every reader of `softnum.tta` begins here, so that what is not UTF-8, cut off or no number is told the same way.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

__all__ = ["count", "csv_rows", "delimiter_of", "lines_of", "lines_with", "number", "read_text", "table_rows"]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_text(path: Path, missing: str, *, mixed: Callable[[str], bool] = lambda text: False) -> str:
    """Return a file as text with "\\n" line ends: UTF-8, or that in gzip.

    `mixed` is asked of a text that is not UTF-8, with U+FFFD in place of what is not: whether that will do, because the
    file holds more than one program wrote, such as progress bars between the lines of a log.

    Raises
    ------
    FileNotFoundError
        With the message `missing`, if there is no such file.
    ValueError
        If it is empty; not UTF-8, with the line; or its gzip is cut off.
    """
    if not path.is_file():
        raise FileNotFoundError(missing)
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip file is damaged or cut off ({error}); copy or write it again") from None
    if not data.strip():
        what = f" but for {len(data)} blanks and line ends" if data else ""
        raise ValueError(f"{path}: the file is empty{what}; write or copy it again")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if mixed(replaced := data.decode("utf-8-sig", errors="replace")):
            return replaced.replace("\r\n", "\n")
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8, for "
            "example by iconv -f LATIN1 -t UTF-8"
        ) from None
    return text.replace("\r\n", "\n")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line without its end) of a text, counted as editors count them."""
    for at, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        yield at, line.rstrip("\n")


def lines_with(pattern: re.Pattern, text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the lines in which a pattern is found, once for each time; quick where there are few."""
    number_of, counted = 1, 0
    for match in pattern.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", start)
        number_of, counted = number_of + text.count("\n", counted, start), start
        yield number_of, text[start:] if end < 0 else text[start:end]


def number(where: str, name: str, value: object, *, positive: bool = True) -> Fraction:
    """Return a decimal number exactly, or raise ValueError with where it stands."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{where}: {name} must be a number, got {value!r}")
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        value, approximate = value.strip(), math.nan
    else:
        approximate = _binary(value)
    if not math.isfinite(approximate):
        raise ValueError(f"{where}: {name} must be a finite number, got {_short(value)}")
    # exact from here on; what underflows is left at zero, because 1e-999999999 has no fraction of sensible size
    exact = Fraction(str(value).strip()) if approximate else Fraction(0)
    if exact < 0 or (positive and not exact):
        raise ValueError(f"{where}: {name} must be {'above zero' if positive else 'from 0 up'}, got {_short(value)}")
    return exact


def _binary(value: str | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def count(where: str, name: str, value: object, *, positive: bool = True) -> int:
    """Return a whole number, or raise ValueError with where it stands."""
    exact = number(where, name, value, positive=positive)
    if exact.denominator != 1:
        raise ValueError(f"{where}: {name} must be a whole number, got {_short(value)}")
    return int(exact)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}... ({len(shown)} characters)"


def delimiter_of(text: str) -> str:
    """What parts the columns of a table: tabs, if its header has some and no comma; else commas.

    >>> delimiter_of("# mine, too\\nepoch\\thours\\n"), delimiter_of("epoch,hours\\n")
    ('\\t', ',')
    """
    lines = (line for line in io.StringIO(text, newline="\n") if line.strip() and not line.lstrip().startswith("#"))
    header = next(lines, "")
    return "\t" if "\t" in header and "," not in header else ","


def csv_rows(
    path: Path, text: str, *, what: str, first: int = 1, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of comma-separated text from line `first` on, blank lines left out."""
    source = io.StringIO(text, newline="\n")
    for _ in range(first - 1):
        source.readline()
    reader = csv.reader(source, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield first - 1 + reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {first - 1 + reader.line_num}: not readable as CSV ({error}); expected {what}; is the file "
            "cut off?"
        ) from None


def table_rows(
    path: Path, text: str, check_header: Callable[[str, list[str]], None], *, what: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("file, line n", {column: cell}) of a table whose first row names its columns, parted by commas or tabs.

    Blank lines and lines that begin with # are left out. `check_header` is called with where the header stands and its
    names; it raises ValueError unless these columns will do.
    """
    header: list[str] | None = None
    for line, cells in csv_rows(path, text, what=what, delimiter=delimiter_of(text)):
        where = f"{path}, line {line}"
        if cells[0].startswith("#"):
            continue
        if header is None:
            header = cells
            repeated = sorted({name for name in header if header.count(name) > 1})
            if repeated:
                raise ValueError(f"{where}: column {repeated[0]!r} appears twice; expected {what}")
            check_header(where, header)
            continue
        if len(cells) != len(header):
            raise ValueError(
                f"{where}: {len(cells)} cells where the header has {len(header)} ({', '.join(header)}); a truncated "
                "row? Write the file again"
            )
        yield where, dict(zip(header, cells, strict=True))
