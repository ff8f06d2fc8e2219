"""docs/reference/real-files.md: its tables are what is read of real files now, and what these say is what is read."""

import os
from pathlib import Path

import pytest

from tests.support.real_files import TABLES, lines_of

REAL = os.environ.get("SOFTNUM_REAL_FILES")
PAGE = Path(__file__).resolve().parents[2] / "docs/reference/real-files.md"


def shown(name):
    """The rows of a table on the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"<!-- table: {name} -->") + 3
    return lines[start : lines.index("", start)]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_reading_and_the_files_own_words_are_one():
    """On the page itself: columns that share no code, and as many headings as cells."""
    for name, (headings, _) in TABLES.items():
        assert len(shown(name)) >= 10 and all(len(cells(line)) == len(headings) for line in shown(name)), name
    assert all(row[5] == row[6] for row in map(cells, shown("mlperf")))
    assert all(row[2] == row[4] for row in map(cells, shown("dawnbench")))
    assert all(row[3] in ("-", row[2].split(",")[0]) for row in map(cells, shown("times")))


@pytest.mark.skipif(REAL is None, reason="SOFTNUM_REAL_FILES names no folder of real files")
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_a_folder(name):
    """Every row of a file that is in the folder stands on the page."""
    found = lines_of(name, Path(REAL))
    assert found
    on_page = shown(name)
    for file, line in found:
        assert line in on_page, file
