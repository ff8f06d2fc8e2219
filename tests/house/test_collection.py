"""Test files of all folders can be named in one call, and import helpers by one name each."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
#: those whose tests are skipped as a whole where a package is absent
NEEDED = {"jax": "jax", "torch": "torch"}
FOLDERS = sorted(
    path.name
    for path in TESTS.iterdir()
    if any(path.glob("test_*.py")) and (path.name not in NEEDED or find_spec(NEEDED[path.name]) is not None)
)
COLLECT = """
import sys, pytest
code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]])
assert not {"kernels", "train", "conftest", "support"} & set(sys.modules)
sys.exit(code)
"""


def imported(path):
    """The names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("order", [FOLDERS, FOLDERS[::-1]], ids=["forwards", "backwards"])
def test_a_file_of_each_folder(order, tmp_path):
    files = [min((TESTS / folder).glob("test_*.py")) for folder in order]
    command = [sys.executable, "-P", "-c", COLLECT, *map(str, files)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert all(f"{file.parent.name}/{file.name}::" in done.stdout for file in files)


def test_helpers_have_one_name():
    """Not as top-level modules, and none is a test file or a conftest: those would be there twice."""
    ours = {path.stem for path in TESTS.rglob("*.py")} - {"__init__"}
    wrong = [
        (path.relative_to(TESTS).as_posix(), name)
        for path in [*TESTS.glob("*/test_*.py"), *TESTS.rglob("conftest.py"), *TESTS.glob("support/*.py")]
        for name in imported(path)
        if name in ours or name.startswith(".") or name.rpartition(".")[2].startswith(("test_", "conftest"))
    ]
    assert wrong == []
