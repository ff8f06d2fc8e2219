"""What the readers of times share: text of a file, numbers, and the series of times that each of them hands on.

A reader turns a file into `Series`: seconds as exact fractions, one for each iteration, or only a mean. What they are
worth - warm-up dropped, mean, confidence interval - is decided in one place, `softnum.tta.timings.warmup`.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

__all__ = ["Options", "Series", "count", "csv_rows", "lines_of", "lines_with", "number", "read_text", "spread", "stem"]


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Options:
    """What the user said about a file beside its path; each format uses some of it.

    Parameters
    ----------
    clock : Fraction or None
        Hertz, for cycles without a clock.
    design : str or None
        Name of the design the file is of.
    iterations : int or None
        How many training iterations the file covers.
    marker : re.Pattern or None
        The kernel that begins an iteration, or the range that is one.
    """

    clock: Fraction | None = None
    design: str | None = None
    iterations: int | None = None
    marker: re.Pattern | None = None


@dataclass
class Series:
    """Times of one design as a file gives them.

    Parameters
    ----------
    design : str
        Name of the design.
    seconds : list of Fraction
        Seconds per iteration, in order: one for each sample.
    kind : str
        As in `IterationTime`.
    source : str
        The file, and the tool it is of.
    detail : dict
        What the numbers are made of; plain JSON values.
    each : int
        How many iterations a sample is the mean of.
    ordered : bool
        Whether the samples are single iterations in the order they ran, so that a warm-up can be told.
    joules : list of Fraction or None
        Energy of each iteration.
    """

    design: str
    seconds: list[Fraction]
    kind: str
    source: str
    detail: dict = field(default_factory=dict)
    each: int = 1
    ordered: bool = True
    joules: list[Fraction] | None = None


def read_text(path: Path) -> str:
    """Return a file as text with "\\n" line ends: UTF-8, or that in gzip."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip file is damaged or cut off ({error}); copy or write it again") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
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


def csv_rows(path: Path, text: str, *, what: str, first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of comma-separated text from line `first` on, blank lines left out."""
    source = io.StringIO(text, newline="\n")
    for _ in range(first - 1):
        source.readline()
    reader = csv.reader(source, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield first - 1 + reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {first - 1 + reader.line_num}: not readable as CSV ({error}); expected {what}; is the file "
            "cut off?"
        ) from None


def stem(name: str) -> str:
    """Return a name with its numbers blotted out: what the iterations of one loop share.

    >>> stem("ProfilerStep#12")
    'ProfilerStep##'
    """
    return re.sub(r"\d+", "#", name)


def spread(where: str, parts: Sequence[Fraction], iterations: int | None, what: str) -> tuple[list[Fraction], int]:
    """Return (seconds per iteration, iterations each is the mean of) of parts that make up `iterations` evenly.

    Without `iterations`, a part is an iteration. Else neighbouring parts are added, or each part is divided, whichever
    comes out even.
    """
    if iterations is None or iterations == len(parts):
        return list(parts), 1
    if len(parts) % iterations == 0:
        size = len(parts) // iterations
        return [sum(parts[at : at + size], Fraction(0)) for at in range(0, len(parts), size)], 1
    if iterations % len(parts) == 0:
        each = iterations // len(parts)
        return [part / each for part in parts], each
    raise ValueError(
        f"{where}: {len(parts)} {what} cannot be {iterations} iterations: neither number divides the other; state the "
        "number that the file covers with --iterations"
    )
