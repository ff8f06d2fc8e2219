"""A file of TOML tables whose errors name the file, the line, and the nearest key that is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from softnum.runtime.keys import Keys
from softnum.train.designs.design import nearest

__all__ = ["TomlLines"]


class TomlLines:
    """The lines of a file, for errors about its tables.

    Parameters
    ----------
    file : pathlib.Path
    text : str
        What it holds.
    keys : dict of str to Keys
        The keys that each table may have.
    many : str
        The table of which there are several: ``[[networks]]``.

    Examples
    --------
    >>> from softnum.runtime.keys import Key, Keys
    >>> lines = TomlLines(Path("a.toml"), "[study]\\nname = 3", {"study": Keys({"name": Key()})}, "networks")
    >>> lines.text("study", 0, {"name": 3}, "name")
    Traceback (most recent call last):
      ...
    ValueError: a.toml, line 2: [study]: name must be a text, got 3
    """

    def __init__(self, file: Path, text: str, keys: Mapping[str, Keys], many: str) -> None:
        self.file, self.folder, self.lines = file, file.parent, text.splitlines()
        self.keys, self.many = keys, many

    def fail(self, table: str, index: int, key: str, message: str):
        """Raise ValueError about a key of the table of a name and a number."""
        line = self.line_of(table, index, key)
        where = f"[[{table}]] number {index + 1}" if table == self.many else f"[{table}]" if table else "top level"
        raise ValueError(f"{self.file}{f', line {line}' if line else ''}: {where}: {message}")

    def line_of(self, table: str, index: int, key: str) -> int | None:
        """The line of a key of a table, or of the table, where the file writes it in the plain way."""
        inside, head = ("", 0), None
        count: dict[str, int] = {}
        for number, line in enumerate(self.lines, start=1):
            if header := re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]", line):
                name = header[1].strip("\"' ")
                count[name] = count.get(name, -1) + 1
                inside = (name, count[name])
                if inside == (table, index) or (not table and name == key):
                    head = head or number
                if name == f"{table}.{key}" and count.get(table, 0) == index:
                    return number
            elif inside == (table, index) and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
                return number
        return head

    def check(self, table: str, index: int, value: object) -> dict:
        """The value if it is a table with known keys."""
        if not isinstance(value, dict):
            self.fail("", 0, table, f"{table} must be a table, got {value!r}")
        known = self.keys[table]
        for key in value:
            if key not in known:
                self.fail(table, index, key, f"unknown key {key!r}{nearest(key, known)} (known: {', '.join(known)})")
        return value

    def text(self, table: str, index: int, value: dict, key: str, default: str | None = None) -> str:
        """A text of a table."""
        found = value.get(key, default)
        if not isinstance(found, str) or not found:
            got = "has none" if found is None else f"got {found!r}"
            self.fail(table, index, key, f"{key} must be a text, {got}")
        return found

    def path(self, table: str, index: int, key: str, value: object, *, exists: bool = True) -> Path:
        """A path of a table, which is relative to the file."""
        if not isinstance(value, str) or not value:
            self.fail(table, index, key, f"{key} must be a path, got {value!r}")
        path = self.folder / Path(value).expanduser()
        if exists and not path.exists():
            self.fail(table, index, key, f"{key}: there is no {str(path)!r}")
        return path
