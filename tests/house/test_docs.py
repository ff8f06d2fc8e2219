"""The documentation keeps its word: what the pages show runs, what they name exists, and nothing public is left out."""

import re
from pathlib import Path

import pytest
from page_examples import blocks_of, run_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: the least number of examples and commands
LEAST = {
    "README.md": 9,
    "docs/tutorials/numerics.md": 30,
    "docs/tutorials/rtl.md": 15,
    "docs/tutorials/training.md": 15,
}


def names(paths):
    return [path.relative_to(ROOT).as_posix() for path in paths]


WITH_EXAMPLES = [p for p in (ROOT / "README.md", *PAGES) if {"python", "console"} & {b.language for b in blocks_of(p)}]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=names(WITH_EXAMPLES))
def test_examples_run(page, tmp_path, monkeypatch):
    (folder := tmp_path / "page").mkdir()
    monkeypatch.chdir(folder)
    assert run_page(page, folder) >= LEAST.get(names([page])[0], 1)
