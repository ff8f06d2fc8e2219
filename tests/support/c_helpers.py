"""Helpers in C that tests build and load, to ask this CPU."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["X86_64", "built", "built_for_x86"]

X86_64 = platform.machine() in ("x86_64", "AMD64")


def built(folder: Path, source: Path, *options: str, libraries=()) -> str:
    """The path of the shared library of a C file; the test is skipped where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler to build the helper with")
    library = folder / f"{source.stem}.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", *options, "-o", library, source, *libraries], check=True)
    return str(library)


def built_for_x86(folder: Path, source: Path, *options: str) -> str:
    """`built`, of a file with instructions of x86-64; the test is skipped on another CPU."""
    if not X86_64:
        pytest.skip("this CPU is no x86-64")
    return built(folder, source, *options)
