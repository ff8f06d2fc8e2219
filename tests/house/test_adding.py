"""The patches of docs/adding, which docs/adding.md explains: they apply, touch few files, and what they add works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softnum.runtime import _core

ROOT = Path(__file__).resolve().parents[2]
PATCHES = {path.stem: path for path in sorted((ROOT / "docs/adding").glob("*.patch"))}
#: files that a patch may touch, besides its tests
MOST = {"rounding_mode": 6, "elementary_function": 5, "operation": 5, "unit_family": 12}
SOURCES = (
    "softnum",
    "kernels",
    "train",
    "csrc",
    "fuzz",
    "tests",
    "docs",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / "setup.py").exists(), reason="no git, or no checkout"
)


def files_of(name):
    return re.findall(r"^\+\+\+ b/(.*)$", PATCHES[name].read_text(encoding="utf-8"), re.MULTILINE)


def brought_by(name):
    return [file for file in files_of(name) if re.fullmatch(r"tests/.*/test_\w+\.py", file)]


@pytest.fixture
def copy(tmp_path):
    """The sources, as a package of which softnum.kernels and softnum.train are parts."""
    ignored = shutil.ignore_patterns("__pycache__", "two-networks", "build")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, tmp_path / name)
    for name in ("kernels", "train"):
        (tmp_path / "softnum" / name).symlink_to(tmp_path / name)
    return tmp_path


def apply(copy, *names):
    for name in names:
        subprocess.run(["git", "apply", PATCHES[name]], cwd=copy, check=True)


def passes(copy, *names):
    """The tests that the patches bring pass, on the copy."""
    files = [file for name in names for file in brought_by(name)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert files and done.returncode == 0, done.stdout + done.stderr


def test_every_patch_is_explained():
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    assert set(PATCHES) == set(MOST)
    for name in PATCHES:
        assert f"`{name}.patch`" in page
        for file in set(files_of(name)) - set(brought_by(name)):
            assert file in page, (name, file)


@pytest.mark.parametrize("name", MOST)
def test_a_patch_applies_and_touches_few_files(name):
    subprocess.run(["git", "apply", "--check", PATCHES[name]], cwd=ROOT, check=True)
    assert brought_by(name) and len(set(files_of(name)) - set(brought_by(name))) <= MOST[name]


def test_a_family_of_units_is_added(copy):
    apply(copy, "unit_family")
    passes(copy, "unit_family")


@pytest.mark.slow
@pytest.mark.skipif(not Path(_core.__file__).is_relative_to(ROOT), reason="softnum is not built in this checkout")
def test_all_of_them_are_added_built_and_run(copy):
    if (ROOT / "build/objects").exists():
        shutil.copytree(ROOT / "build/objects", copy / "build/objects")
    apply(copy, *MOST)
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=copy, check=True)
    passes(copy, *MOST)
