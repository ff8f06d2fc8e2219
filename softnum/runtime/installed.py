"""What is installed beside softnum: the packages of its extras, by its own metadata, and the programs that it calls."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from softnum.runtime import _core

__all__ = ["DEVELOPING", "EXTRAS", "PROGRAMS", "Program", "describe_build", "describe_extras", "describe_programs"]

#: extra of pyproject.toml -> what it brings
EXTRAS = {
    "train": "networks, the time-to-accuracy study, plots",
    "report": "the study as a page of charts",
    "torch": "PyTorch models in any arithmetic",
    "jax": "JAX functions in any arithmetic",
    "cuda": "arrays and kernels on a GPU",
    "custom": "arithmetic of your own in Python and Tile",
    "rtl": "benches of SystemVerilog designs",
    "cocotb": "reference model for cocotb",
    "uvm": "benches in pyuvm",
    "coverage": "coverage files of cocotb",
    "formal": "proofs by SMT solvers",
    "amaranth": "hardware in Python",
    "dask": "studies on a cluster",
    "rl": "reinforcement learning",
    "accelergy": "energies of Accelergy",
    "chakra": "execution traces of Chakra",
    "onnx": "networks from ONNX files",
}
#: extras for work on softnum itself
DEVELOPING = ("docs", "lint", "release", "test", "wheel", "wheels")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")
_NAME = re.compile(r"\s*([\w.-]+)\s*(?:\[([\w.,\s-]+)\])?")
_ANSWER_SECONDS = 20


@dataclass(frozen=True)
class Program:
    """A program that softnum calls, or that runs what it writes.

    Parameters
    ----------
    purpose : str
    names : tuple of str
        Of which one is enough, the one to be called first.
    version : str
        The option that makes it print its version; "" for none.
    apt, brew : str
        Names of the package in Debian and its kin, and in Homebrew ("" for none).
    """

    purpose: str
    names: tuple[str, ...]
    version: str = "--version"
    apt: str = ""
    brew: str = ""

    def get(self) -> str:
        """The command that installs it; where none is known on this system, what Debian calls it."""
        if sys.platform == "darwin" and self.brew:
            return f"brew install {self.brew}"
        if shutil.which("apt-get"):
            return f"sudo apt-get install {self.apt}"
        return f"by your system's packages (Debian: {self.apt})"


#: by what they are called here
PROGRAMS = {
    "C compiler": Program(
        "formats and units of your own in C, softnum rtl build, softnum.jax", (), apt="gcc libc6-dev", brew="gcc"
    ),
    "Icarus Verilog": Program("runs benches and VPI", ("iverilog",), "-V", "iverilog", "icarus-verilog"),
    "Verilator": Program("runs benches and DPI-C", ("verilator",), "--version", "verilator", "verilator"),
    "Yosys": Program("softnum rtl area, prove and bench read designs by it", ("yosys",), "-V", "yosys", "yosys"),
    "ABC": Program("softnum rtl prove", ("yosys-abc", "berkeley-abc"), "", "yosys", "yosys"),
    "Chromium": Program(
        "tests of pages; any browser shows them", ("chromium", "chromium-browser", "google-chrome"), "",
        "chromium", "--cask chromium",
    ),
    "NVIDIA driver": Program("arrays and kernels on a GPU", ("nvidia-smi",), "-L", "nvidia-driver", ""),
}  # fmt: skip


def describe_build() -> dict:
    """How this softnum was built and installed: ``extension`` (its file), ``abi``, ``install`` and ``metadata``.

    >>> sorted(describe_build())
    ['abi', 'extension', 'install', 'metadata', 'system']
    """
    file = Path(_core.__file__)
    stable = ".abi3." in file.name or file.name.endswith("_core.pyd")
    try:
        found = metadata.distribution("softnum")
    except metadata.PackageNotFoundError:
        found = None
    if found is None:
        install = "not installed: a folder on Python's path"
    elif (url := found.read_text("direct_url.json")) and '"editable": true' in url:
        install = "editable"
    else:
        install = "wheel" if found.read_text("WHEEL") else "checkout"
    return {
        "install": install,
        "metadata": None if found is None else found.version,
        "abi": "abi3 (any Python from 3.11 on)" if stable else sys.implementation.cache_tag,
        "extension": str(file),
        "system": f"{sys.platform} {os.uname().machine if hasattr(os, 'uname') else ''}".strip(),
    }


def describe_extras() -> dict[str, dict]:
    """Each extra: ``purpose``, ``packages`` (name -> version or None), ``unfit`` (those of a version that is out of the
    extra's range) and ``get``, the command that brings what is missing; "" where nothing is.

    Extras that softnum's own metadata do not have are left out: all, if there are none. Versions are compared where
    ``packaging`` is installed, and markers read.

    >>> describe_extras().get("torch", {}).get("purpose")  # doctest: +SKIP
    'PyTorch models in any arithmetic'
    """
    found = {}
    for extra, purpose in EXTRAS.items():
        packages, unfit = {}, []
        for name, text in dict(_packages("softnum", extra, ())).items():
            try:
                packages[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                packages[name] = None
            else:
                if text and not _fits(text, packages[name]):
                    unfit.append(text)
        if not packages:
            continue
        whole = all(packages.values()) and not unfit
        get = "" if whole else f"pip install 'softnum[{extra}]'"
        found[extra] = {"purpose": purpose, "packages": packages, "unfit": unfit, "get": get}
    return found


def _packages(name: str, extra: str, seen: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """(name, requirement) of what a package takes for an extra, and for the extras that this is made of."""
    if (name, extra) in seen:
        return
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        text, _, marker = line.partition(";")
        if not _is_of(extra, marker):
            continue
        needed, own = _NAME.match(text).groups()
        for other in (own or "").split(",") if own else ():
            yield from _packages(needed, other.strip(), (*seen, (name, extra)))
        if needed != name:  # what packages ask of each other is for `pip check`
            yield needed, text.strip() if name == "softnum" else ""


def _is_of(extra: str, marker: str) -> bool:
    """Whether a requirement with a marker is one of an extra, on this system."""
    if not any(stated == extra for stated in _EXTRA.findall(marker)):
        return False
    try:
        from packaging.markers import Marker
    except ImportError:
        return True
    return Marker(marker).evaluate({"extra": extra})


def _fits(requirement: str, version: str) -> bool:
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return True
    return Requirement(requirement).specifier.contains(version, prereleases=True)


def describe_programs() -> dict[str, dict]:
    """Each of `PROGRAMS`: ``purpose``, ``path`` or None, ``version`` as it says it, ``broken`` (what it says where it
    does not answer; "" else) and ``get``.

    >>> sorted(describe_programs())[:2]  # doctest: +SKIP
    ['ABC', 'C compiler']
    """
    return {name: _described(name, program) for name, program in PROGRAMS.items()}


def _described(name: str, program: Program) -> dict:
    options, names = [], program.names
    if not names:
        command = shlex.split(os.environ.get("CC") or "cc")
        names, options = tuple(command[:1]), command[1:]
    path = next((found for each in names if (found := shutil.which(each))), None)
    version = broken = ""
    if path is not None and program.version:
        code, said = _ask([path, *options, program.version])
        version, broken = ("", said) if code else (said, "")
    if path is not None and not program.names and not broken:
        code, said = _ask([path, *options, "-x", "c", "-shared", "-o", os.devnull, "-fPIC", "-"], _PROBE)
        broken = said if code else ""
    return {
        "purpose": program.purpose, "path": path, "version": version, "broken": broken,
        "get": "" if path else program.get(),
    }  # fmt: skip


_PROBE = "#include <stdint.h>\n#include <stdlib.h>\nuint32_t softnum_probe(uint32_t x) { return x; }\n"


def _ask(command: list[str], text: str = "") -> tuple[int, str]:
    """The exit code of a program and the first line that it prints, of complaints where it prints nothing."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", errors="replace", timeout=_ANSWER_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    said = lines[0].strip() if lines else ""
    return done.returncode, f"exit code {done.returncode}{f', {said}' if said else ''}" if done.returncode else said
