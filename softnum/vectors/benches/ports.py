"""The ports of a design in Verilog or SystemVerilog: by pyslang, by Yosys, or as they are stated."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from softnum.runtime.yosys import DesignFiles, complaints, plain_name

__all__ = ["Design", "Port", "READERS", "read_design", "stated_design"]

READERS = ("pyslang", "yosys")
_NAME = re.compile(r"[A-Za-z_][\w$]*")


class Port(NamedTuple):
    """A port: its name, "in", "out" or "inout", and its width in bits."""

    name: str
    direction: str
    width: int

    def __str__(self) -> str:
        return f"{self.name} ({self.direction}, {self.width} bit{'s' if self.width > 1 else ''})"


class Design(NamedTuple):
    """A module: its name, its ports in their order, and who has read them, such as "yosys"."""

    top: str
    ports: tuple[Port, ...]
    reader: str


def stated_design(top: str, text: str) -> Design:
    """The design whose ports are stated: ``name:direction:width`` with commas between them.

    Raises
    ------
    ValueError
        For text of another form, names twice, or a width that is none.

    Examples
    --------
    >>> [str(port) for port in stated_design("mul", "a:in:8,b:in:8,p:out:8,clk:in").ports]
    ['a (in, 8 bits)', 'b (in, 8 bits)', 'p (out, 8 bits)', 'clk (in, 1 bit)']
    """
    ports = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*([A-Za-z_][\w$]*)\s*:\s*(in|out)(?:\s*:\s*(\d{1,6}))?\s*", part)
        if found is None or (found[3] is not None and int(found[3]) == 0):
            raise ValueError(
                f"--ports is name:in or name:out, with :width behind them (1 where it is left out), got {part!r}"
            )
        ports.append(Port(found[1], found[2], int(found[3] or 1)))
    return _checked(Design(top, tuple(ports), "as stated"))


def read_design(
    sources: Sequence[Path], top: str | None = None, *, parameters: Mapping[str, int] | None = None,
    include: Sequence[Path] = (), reader: str | None = None,
) -> Design:  # fmt: skip
    """Read the ports of the top module, elaborated with its parameters.

    Parameters
    ----------
    sources : sequence of Path
        All files of the design, packages first.
    top : str, optional
        The module; by default the one that no other instantiates.
    parameters : mapping of str to int, optional
        Of the top module.
    include : sequence of Path
        Folders of included files.
    reader : {"pyslang", "yosys"}, optional
        By default pyslang if it is installed, else Yosys.

    Raises
    ------
    ValueError
        If there is no reader, it cannot read the files, there are several top modules, or a port is no vector of bits.
    FileNotFoundError
        For a file that is not there.
    """
    for path in sources:
        if not Path(path).is_file():
            raise FileNotFoundError(f"no file {str(path)!r}")
    for path in include:
        if not Path(path).is_dir():
            raise FileNotFoundError(f"no folder {str(path)!r} to include from")
    if top is not None and not _NAME.fullmatch(top):
        raise ValueError(f"--top must be a module's name, got {top!r}")
    if reader is None:
        reader = next((name for name, found in zip(READERS, _readers(), strict=True) if found), None)
        if reader is None:
            raise ValueError(
                "neither pyslang (pip install 'softnum[rtl]') nor Yosys is there to read the design's ports; "
                "install one, or state them: --top NAME --ports a:in:8,b:in:8,result:out:8"
            )
    elif reader not in READERS:
        raise ValueError(f"unknown reader {reader!r} (known: {', '.join(READERS)})")
    elif not _readers()[READERS.index(reader)]:
        raise ValueError(f"{reader} is not installed: {_INSTALL[reader]}")
    read = {"pyslang": _by_pyslang, "yosys": _by_yosys}[reader]
    return _checked(read([str(path) for path in sources], top, dict(parameters or {}), [str(path) for path in include]))


_INSTALL = {
    "pyslang": "pip install 'softnum[rtl]'",
    "yosys": "get it from https://yosyshq.net/yosys, or Debian's yosys",
}


def _readers() -> tuple[bool, bool]:
    return importlib.util.find_spec("pyslang") is not None, shutil.which("yosys") is not None


def _checked(design: Design) -> Design:
    names = [port.name for port in design.ports]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{design.top}: port {twice[0]} is declared twice")
    if not any(port.direction == "out" for port in design.ports):
        raise ValueError(f"{design.top} has no output: name the module that computes with --top")
    for port in design.ports:
        if port.direction not in ("in", "out"):
            raise ValueError(f"{design.top}: {port} is neither input nor output; benches drive inputs and read outputs")
    return design


def _one_of(tops: list[str], top: str | None) -> str:
    if top is None and len(tops) != 1:
        if not tops:
            raise ValueError("the files hold no module that could be the top one; name it with --top")
        raise ValueError(f"the files hold {len(tops)} top modules ({', '.join(sorted(tops))}); name one with --top")
    return tops[0] if top is None else top


# -- pyslang -----------------------------------------------------------------------------------------------------------
def _by_pyslang(sources, top, parameters, include) -> Design:
    from pyslang import ast, driver

    reading = driver.Driver()
    reading.addStandardArgs()
    words = [*sources, *(f"-I{path}" for path in include), *(f"-G{key}={value}" for key, value in parameters.items())]
    words += [] if top is None else ["--top", top]
    line = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in ["softnum", *words])
    if not (reading.parseCommandLine(line) and reading.processOptions() and reading.parseAllSources()):
        raise ValueError("pyslang cannot read the design; see its messages above")
    compilation = reading.createCompilation()
    instances = {i.definition.name: i for i in compilation.getRoot().topInstances}
    errors = [d for d in compilation.getAllDiagnostics() if d.isError() and str(d.code) != "DiagCode(UnknownModule)"]
    if errors:
        text = reading.diagEngine.reportAll(reading.sourceManager, errors[:3]).strip()
        raise ValueError(f"pyslang cannot read the design:\n{text}")
    name = _one_of(list(instances), top)
    ports = []
    for port in instances[name].body.portList:
        if not isinstance(port, ast.PortSymbol) or not port.type.bitWidth:
            raise ValueError(f"{name}: port {port.name} is an interface or has no bits; put a module with plain ports "
                             "around the design")  # fmt: skip
        direction = str(port.direction).rpartition(".")[2].lower()
        ports.append(Port(port.name, {"in": "in", "out": "out"}.get(direction, direction), port.type.bitWidth))
    return Design(name, tuple(ports), "pyslang")


# -- Yosys -------------------------------------------------------------------------------------------------------------
def _by_yosys(sources, top, parameters, include) -> Design:
    if top is None and parameters:
        top = _by_yosys(sources, None, {}, include).top
    given = DesignFiles(sources, top=top, parameters=parameters, include=include, need="reading the design's ports")
    # deferred where the module is known: a bench in the same files is not elaborated
    lines = [*given.read(systemverilog=True, defer=top is not None), given.hierarchy(check=False), "proc"]
    with tempfile.TemporaryDirectory() as folder:
        done = given.run(Path(folder), [*lines, "write_json design.json"])
        if done.returncode:
            raise ValueError("Yosys cannot read the design (pyslang reads more of SystemVerilog: pip install "
                             "'softnum[rtl]'; a bench among the files is passed over where --top names the module):\n"
                             + "\n".join(complaints(done.stdout)))  # fmt: skip
        modules = json.loads(Path(folder, "design.json").read_bytes())["modules"]
    given.check_top(done.stdout)
    tops = [name for name, module in modules.items() if int(module["attributes"].get("top", "0"), 2)]
    if len(tops) != 1:
        raise ValueError(f"{given.where}: no module could be the top one; name it with --top")
    return _of_json(plain_name(tops[0]), modules[tops[0]])


def _of_json(top: str, module: dict[str, Any]) -> Design:
    ports = ((name, {"input": "in", "output": "out"}.get(port["direction"], port["direction"]), len(port["bits"]))
             for name, port in module["ports"].items())  # fmt: skip
    return Design(top, tuple(Port(*port) for port in ports), "Yosys")
