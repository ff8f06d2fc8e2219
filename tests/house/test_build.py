"""The build: the C core is compiled once, what depends on an edit is compiled again and nothing else, and an unbuilt
checkout says what to run."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from softnum.runtime import _core

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = ROOT / "build" / "objects"
built_here = pytest.mark.skipif(
    not (OBJECTS / "libsoftnum.a").exists(), reason="softnum was not built in this checkout"
)


def core_sources():
    """The C files of the core: all but the tests and the model for simulators."""
    return {p for p in (ROOT / "csrc").rglob("*.c") if p.relative_to(ROOT / "csrc").parts[0] not in ("dpi", "tests")}


@built_here
def test_each_c_source_is_in_the_library_once():
    record = json.loads((OBJECTS / "libsoftnum.a.json").read_text(encoding="utf-8"))
    objects = [(ROOT / path).relative_to(OBJECTS).with_suffix(".c") for path in record["inputs"]]
    assert sorted(objects) == sorted(p.relative_to(ROOT) for p in core_sources())
    if shutil.which("ar"):
        members = subprocess.run(["ar", "t", OBJECTS / "libsoftnum.a"], capture_output=True, text=True, check=True)
        assert sorted(members.stdout.split()) == sorted(p.with_suffix(".o").name for p in core_sources())


def test_all_packages_are_installed():
    """An editable install finds packages that a wheel lacks."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {name: settings["package-dir"].get(name, name.replace(".", "/")) for name in settings["packages"]}
    there = {
        p.parent.relative_to(ROOT) for top in ("softnum", "kernels", "train") for p in (ROOT / top).rglob("__init__.py")
    }
    assert sorted(map(str, there - set(map(Path, folders.values())))) == []


def test_headers_in_the_wheel_include_no_others():
    """Those of the compiled loops stay out of it, a third of a million bytes."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    there = {
        path.relative_to(ROOT / "csrc"): path.read_text(encoding="utf-8")
        for package in ("softnum.include", "softnum.include.dpi")
        for pattern in settings["package-data"][package]
        for path in (ROOT / settings["package-dir"][package]).glob(pattern)
    }
    assert {Path("softnum.h"), Path("softnum/softnum.h"), Path("dpi/names.c")} <= set(there)
    missing = {
        f"{path}: {name}"
        for path, text in there.items()
        for name in re.findall(r'^ *# *include "([^"]+)"', text, re.MULTILINE)
        if Path(name) not in there and path.parent / name not in there
    }
    assert missing == set()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_c_tests_link_the_same_sources():
    database = subprocess.run(["make", "-npq"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    [target] = re.findall(r"^csrc/tests/test_core: (.*)$", database, re.MULTILINE)
    objects = {f"build/test/{p.relative_to(ROOT).with_suffix('.o').as_posix()}" for p in core_sources()}
    assert set(target.split()) == objects | {"build/test/csrc/tests/test_core.o"}


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="free-threaded Python has no stable ABI")
def test_extensions_go_by_the_stable_abi():
    stable = next(s for s in EXTENSION_SUFFIXES if "cpython" not in s and "cp3" not in s)
    assert _core.__file__.endswith(stable)


@built_here
@pytest.mark.slow
def test_a_header_compiles_what_includes_it_and_nothing_else(tmp_path):
    pytest.importorskip("Cython")
    names = [
        "setup.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "csrc",
        "softnum",
        "kernels",
        "train",
        "build/objects",
    ]
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy(ROOT / name, tmp_path / name)

    def build():
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        return {
            p.relative_to(tmp_path).as_posix(): p.stat().st_mtime_ns for p in tmp_path.rglob("build/objects/**/*.o")
        }

    before = build()
    assert build() == before  # nothing has changed
    header = tmp_path / "csrc" / "elementwise/short/sum.h"
    header.touch()
    assert build() == before  # its content has not
    includes = {
        p.relative_to(ROOT)
        for p in core_sources()
        if '#include "elementwise/short/sum.h"' in p.read_text(encoding="utf-8")
    }
    header.write_text(header.read_text(encoding="utf-8") + "\nenum { SN_EDITED = 1 };\n", encoding="utf-8")
    after = build()
    compiled = {path for path, time in after.items() if before[path] != time}
    assert compiled == {f"build/objects/{p.with_suffix('.o').as_posix()}" for p in includes}


def test_an_unbuilt_checkout_says_what_to_run(tmp_path):
    shutil.copytree(ROOT / "softnum", tmp_path / "softnum", ignore=shutil.ignore_patterns("*.so", "*.pyd", "tta"))
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import softnum"],  # without the packages of this environment
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert re.search(r"ImportError: softnum is not built in .*softnum: run `make build`", done.stderr), done.stderr
    assert "circular" not in done.stderr
