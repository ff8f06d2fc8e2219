"""Text files that people and tools write: their text, lines, numbers and CSV rows, with errors that name the place.

Every reader of `softnum.tta` begins here, so that what is not UTF-8, cut off or no number is told the same way.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

__all__ = [
    "count", "csv_rows", "delimiter_of", "json_of", "lines_of", "lines_with", "number", "read_text", "table_rows",
    "toml_of",
]  # fmt: skip

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_text(path: Path, missing: str, *, mixed: Callable[[str], bool] = lambda text: False) -> str:
    """Return a file as text with "\\n" line ends: UTF-8, or that in gzip.

    `mixed` is asked of a text that is not UTF-8, with U+FFFD in place of what is not, or has zeros: whether that will
    do, because the file holds more than one program wrote, such as progress bars between the lines of a log.

    Raises
    ------
    FileNotFoundError
        With the message `missing`, if there is no such file.
    ValueError
        If it is empty; not UTF-8, with the line, or what it is instead; or its gzip is cut off.
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
        text, broken = data.decode("utf-8-sig", errors="replace"), error
    else:
        broken = None
    if (broken or "\0" in text) and not mixed(text):
        raise ValueError(_no_text(path, data, broken))
    return text.replace("\r\n", "\n")


def toml_of(text: str, where: str, remedy: str) -> dict:
    """The tables of a text in TOML; ValueError with where it stands and what to do.

    >>> toml_of("a = 1", "mine.toml", "")
    {'a': 1}
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{where}: not TOML (brackets too deep); {remedy}") from None
    except ValueError as error:  # numbers too long, too
        raise ValueError(f"{where}: not TOML ({error}); {remedy}") from None


def json_of(text: str, where: str, remedy: str = "write or copy it again") -> Any:
    """What a text in JSON holds; ValueError with the line and what to do.

    >>> json_of("[1, 2", "mine.json")
    Traceback (most recent call last):
        ...
    ValueError: mine.json, line 1: not JSON (Expecting ',' delimiter); write or copy it again
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}, line {error.lineno}: not JSON ({error.msg}); {remedy}") from None
    except RecursionError:
        raise ValueError(f"{where}: not JSON (brackets too deep); {remedy}") from None
    except ValueError as error:  # numbers too long
        raise ValueError(f"{where}: not JSON ({error}); {remedy}") from None


#: how files begin that programs write beside text: what they are, and what to do
_KNOWN = {
    b"\xfd7zXZ\0": ("compressed by xz", "unpack it (xz -d), or compress it with gzip"),
    b"BZh": ("compressed by bzip2", "unpack it (bzip2 -d), or compress it with gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unpack it (zstd -d), or compress it with gzip"),
    b"\x1f\x8b": ("compressed by gzip twice", "unpack it once (gzip -d)"),
    b"PK\x03\x04": ("a ZIP archive, or a spreadsheet", "unpack it, or export a CSV"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "unpack it"),
    b"SQLite format 3\0": ("an SQLite database", "export it as text; of Nsight Systems: nsys stats --format csv"),
    b"\x89PNG": ("a PNG picture", "name the file that it was drawn from"),
    b"%PDF": ("a PDF document", "name the file that it was made from"),
    b"\x7fELF": ("a program", "run it, and name what it wrote"),
}


def _no_text(path: Path, data: bytes, broken: UnicodeDecodeError | None) -> str:
    """Why bytes are no UTF-8 text, and what to do."""
    known = next((told for begin, told in _KNOWN.items() if data.startswith(begin)), None)
    if known is None and data[257:262] == b"ustar":
        known = ("a tar archive", "unpack it (tar -x)")
    if known is not None:
        return f"{path}: not text, but {known[0]}; {known[1]}"
    if not data.strip(b"\0"):
        return f"{path}: nothing but {len(data)} bytes of zeros; copy or write it again"
    few, many = sorted((data[:1024:2].count(0), data[1:1024:2].count(0)))
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or many > max(4 * few, len(data[:1024]) // 5):
        way = "save it as UTF-8, for example by iconv -f UTF-16 -t UTF-8"
        return f"{path}, line 1: not UTF-8 text (UTF-16 or UTF-32); {way}"
    if broken is None:
        at = data.index(0)
        return (
            f"{path}, line {data.count(10, 0, at) + 1}: {data.count(0)} bytes of zeros, the first at byte {at}, as no "
            "text has: was the file cut off by a crash? Copy or write it again, or take them out with tr -d '\\000'"
        )
    line = data.count(b"\n", 0, broken.start) + 1
    return (
        f"{path}, line {line}: not UTF-8 text ({broken.reason} at byte {broken.start}); save it as UTF-8, for example "
        "by iconv -f LATIN1 -t UTF-8"
    )


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line without its end) of a text, counted as editors count them."""
    for at, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        yield at, line.rstrip("\n")


def lines_with(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
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
