"""The papers of a release agree with each other and with the package."""

import re
import tomllib
from pathlib import Path

import softnum

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def stated(file, pattern):
    """What a file says, in each place where it says it."""
    return set(re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE))


def test_one_version():
    places = {
        "pyproject.toml": r'^version = "(.*)"$', "softnum/runtime/config.py": r'^__version__ = "(.*)"$',
        "csrc/softnum.h": r'^#define SOFTNUM_VERSION "(.*)"$', "CITATION.cff": r"^version: (.*)$",
        "conda/recipe.yaml": r'^  version: "(.*)"$',
    }  # fmt: skip
    assert {file: stated(file, pattern) for file, pattern in places.items()} == {
        file: {softnum.__version__} for file in places
    }
    assert re.search(
        rf"^## {re.escape(softnum.__version__)} - ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )


def test_one_license_and_one_list_of_words():
    assert stated("CITATION.cff", r"^license: (.*)$") == stated("conda/recipe.yaml", r"^  license: (.*)$")
    assert stated("CITATION.cff", r"^license: (.*)$") == {PROJECT["license"]}
    assert stated("CITATION.cff", r"^  - (?!name)(.*)$") == set(PROJECT["keywords"])


def test_the_recipe_needs_what_the_package_needs():
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^  (build|host|run):\n((?:    - .*\n)+)", text, re.MULTILINE))
    run = {line.removeprefix("    - ").replace(" ", "") for line in sections["run"].splitlines()}
    assert run == {*PROJECT["dependencies"], "python>=${{python_min}}"}
    assert stated("conda/recipe.yaml", r'^  python_min: "(.*)"$') == {PROJECT["requires-python"].removeprefix(">=")}
    building = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    host = {line.removeprefix("    - ").replace(" ", "") for line in sections["host"].splitlines()}
    assert host == {*building, "python", "pip"}


def test_what_travels_with_the_source():
    """Papers at the top lie in the source distribution."""
    listed = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"):
        assert name in listed and (ROOT / name).is_file()
