"""The README keeps its word: there are exactly two set-up commands, and links lead somewhere. test_docs runs it."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def test_there_are_two_set_up_commands_of_one_line():
    commands = re.findall(r"^python3 -m venv .*$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    assert commands[0].endswith("softnum tta")
    assert commands[1].endswith("pytest -n auto --dist loadfile")


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (ROOT / target).is_file(), target


def test_version_is_the_same_everywhere():
    import softnum

    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{softnum.__version__}"\n' in project
    assert f"## {softnum.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_makefile_has_the_targets_that_contributing_names():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("help", "build", "test", "test-c", "gpu", "bench", "docs", "lint"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


def test_tables_of_speed_are_those_of_the_record():
    from benchmarks import speed_page

    record = json.loads(speed_page.RECORD.read_text(encoding="utf-8"))
    text = speed_page.PAGE.read_text(encoding="utf-8")
    assert speed_page.with_tables(text, record) == text, "python -m benchmarks.speed_page makes them"
    assert {row["section"] for row in record["rows"]} >= set(speed_page.SECTIONS)
