"""pytest --failures: how tests fail is in a file as soon as they do."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
import os
from pathlib import Path

import pytest

from tests.support.cases import cases


@pytest.fixture
def broken():
    print("about to break")
    raise LookupError("no such fixture")


def test_wrong():
    assert 6 * 7 == 41, "the first"


def test_that_it_is_written_already():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        assert "the first" in Path(__file__).with_name("failures.txt").read_text()


def test_set_up(broken): ...


@cases("n", [1, 2, 3])
def test_within(n):
    assert n != 2, "not two"
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one", "xdist"])
def test_failures_are_written(options, tmp_path):
    (tmp_path / "test_it.py").write_text(TEXT)
    (tmp_path / "test_not_read.py").write_text("import nothing_of_that_name")
    file = tmp_path / "failures.txt"
    file.write_text("of another run")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "pyproject.toml"]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, "--failures", file, "--continue-on-collection-errors", *options, tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    said = file.read_text()
    headings = {line.rpartition("::")[2].removeprefix("==== ") for line in said.splitlines() if line.startswith("====")}
    assert headings == {"test_not_read.py", "test_set_up, setup", "test_within [2]", "test_within", "test_wrong"}
    for text in ("the first", "no such fixture", "about to break", "AssertionError: not two", "'nothing_of_that_name'"):
        assert text in said
