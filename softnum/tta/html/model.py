"""What a report consists of: tables, charts and notes in sections. Pages and files are made from the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Cell", "Chart", "Control", "Note", "Page", "Row", "Section", "Table", "identifier"]


def identifier(*words: object) -> str:
    """Lower-case name of letters, digits and dashes: of an element in a page, and of a file.

    Examples
    --------
    >>> identifier("mlp", "TTA, stated hardware")
    'mlp-tta-stated-hardware'
    """
    return re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, words)).lower()).strip("-") or "part"


@dataclass(frozen=True)
class Cell:
    """What stands in a table: short text, a second line in small type, and in full where someone points at it.

    Examples
    --------
    >>> Cell("124 µs", full="0.00012369 s").text
    '124 µs'
    """

    text: str
    small: str = ""
    full: str = ""
    link: str = ""


@dataclass(frozen=True)
class Row:
    """A line of a table; hidden with its design where it belongs to one."""

    cells: tuple[Cell, ...]
    design: str | None = None
    strong: bool = False

    @classmethod
    def of(cls, *cells: Cell | str, design: str | None = None, strong: bool = False) -> Row:
        """A row of cells or plain texts."""
        return cls(tuple(c if isinstance(c, Cell) else Cell(str(c)) for c in cells), design, strong)


@dataclass(frozen=True)
class Table:
    """A table: as shown, and as data.

    Parameters
    ----------
    name : str
        Identifier; also of the exported file.
    title, caption : str
        What it holds, and how to read it.
    head : tuple of str
        Column headings.
    rows : tuple of Row
    data : tuple of Mapping
        The same in full precision with plain values, one mapping a row: what the CSV and JSON files hold.
    words : frozenset of int
        Columns of words, which stand to the left; the others are numbers.
    folded : bool
        Whether it is shown only when it is asked for.
    """

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    data: tuple[Mapping[str, Any], ...]
    caption: str = ""
    words: frozenset[int] = frozenset({0})
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.head):
                raise AssertionError(f"table {self.name}: {len(row.cells)} cells under {len(self.head)} headings")


@dataclass(frozen=True)
class Control:
    """A choice above a chart. Each option is what it is called and which places of the specification it changes.

    Places are JSON pointers (RFC 6901). The first option is what the specification says without any change.
    """

    name: str
    title: str
    options: tuple[tuple[str, tuple[tuple[str, object], ...]], ...]


@dataclass(frozen=True)
class Chart:
    """A chart: a Vega-Lite specification with its data, and the choices above it.

    Parameters
    ----------
    name, title, caption : str
        As of a `Table`; the caption is also what a screen reader says.
    spec : Mapping
        Vega-Lite. Its parameter "shown", where it has one, is the list of the designs to show.
    data : tuple of Mapping
        What is drawn, for CSV and JSON.
    controls : tuple of Control
    wide : bool
        Whether it takes the page's width rather than half of it.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    data: tuple[Mapping[str, Any], ...]
    caption: str = ""
    controls: tuple[Control, ...] = ()
    wide: bool = True

    @property
    def described(self) -> dict[str, Any]:
        """The specification with a description, which the drawing has for those who cannot see it."""
        return {**self.spec, "description": f"{self.title}. {self.caption}".strip()}


@dataclass(frozen=True)
class Note:
    """A line of text, or a list of them under a heading."""

    lines: tuple[str, ...]
    title: str = ""
    quiet: bool = False

    @classmethod
    def of(cls, lines: Iterable[str], title: str = "", quiet: bool = False) -> Note:
        """A note of each different line once."""
        return cls(tuple(dict.fromkeys(lines)), title, quiet)


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it."""

    name: str
    title: str
    blocks: tuple[Table | Chart | Note, ...]
    level: int = 2


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    designs: tuple[str, ...]
    sections: Sequence[Section]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Every chart, in order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Chart))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table, in order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Table))
