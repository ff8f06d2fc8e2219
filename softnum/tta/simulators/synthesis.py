"""Area and longest path of a design in Verilog, mapped to a cell library by Yosys, beside a reference multiplier.

Yosys (https://yosyshq.net/yosys) reads the design, flattens and optimises it, and its ABC maps it to the cells of a
library in Liberty's format; the area is the sum of its cells', the delay that of the longest path from inputs or
flip-flops to outputs or flip-flops by ABC's ``stime``, without wires. Neither is what a layout would have, and both
depend on the mapping: what is of use is the *ratio* to a multiplier that went the same way in the same run.

*References* are multipliers whose areas and energies in 45 nm are published (`softnum.tta.workloads.unit.REFERENCES`):
int8 and int32 are Verilog's ``*`` of signed numbers, binary16 and binary32 the multiplier ``float_multiply.v`` of this
folder, with subnormals, rounding to nearest even and flags.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from softnum.runtime.yosys import DesignFiles, complaints
from softnum.tta.workloads.unit import REFERENCES, UnitHardware

__all__ = ["LIBRARY_FOLDER", "Mapped", "find_library", "map_design", "unit_hardware"]

#: Where Debian's packages qflow-tech-osu018, -osu035 and -osu050 put their libraries.
LIBRARY_FOLDER = Path("/usr/share/qflow/tech")
_PREFERRED = ("osu035", "osu018", "osu050")
_ABC = "strash;ifraig;scorr;dc2;dch,-f;map,-B,0.9;topo;buffer,-c;upsize;dnsize;stime"
_MAP = (
    "check -assert", "synth -flatten", "dfflibmap -liberty cells.lib", f"abc -liberty cells.lib -script +{_ABC}",
    "opt_clean -purge", "tee -q -o figures.txt stat -liberty cells.lib",
)  # fmt: skip
_INTEGER = """module reference_multiply(input signed [{top}:0] a, b, output signed [{twice}:0] r);
    assign r = a * b;
endmodule
"""
_FLOATS = {"binary16": {"EXP": 5, "MAN": 10, "IEEE": 1}, "binary32": {"EXP": 8, "MAN": 23, "IEEE": 1}}


@dataclass(frozen=True)
class Mapped:
    """A design mapped to a cell library.

    Parameters
    ----------
    top : str
        Its module.
    library : str
        The library's own name.
    area : float
        In the library's unit, which Liberty does not state; square micrometres in all libraries known here.
    delay_ps : float or None
        Of the longest path between inputs, flip-flops and outputs; None where ABC mapped no logic.
    cells, flip_flops : int
        How many there are.
    tool : str
        "Yosys 0.23".
    files : tuple of (str, str)
        Name and SHA-256 of each file of the design that Yosys reads: the sources, then what they include, or read
        memories from.

    Examples
    --------
    >>> Mapped("mac", "osu035_stdcells", 43904.0, 7095.0, 415, 0, "Yosys 0.23").cells
    415
    """

    top: str
    library: str
    area: float
    delay_ps: float | None
    cells: int
    flip_flops: int
    tool: str
    files: tuple[tuple[str, str], ...] = ()


def find_library(path: str | os.PathLike[str] | None = None) -> Path:
    """The cell library: the file that is named, that of the variable SOFTNUM_LIBERTY, or one of Debian's.

    Parameters
    ----------
    path : path-like, optional
        A file in Liberty's format, compressed by gzip or not.

    Raises
    ------
    FileNotFoundError
        If there is none; the message says where one comes from.

    Examples
    --------
    >>> find_library("none.lib")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no cell library 'none.lib'
    """
    named = path or os.environ.get("SOFTNUM_LIBERTY")
    if named:
        if not Path(named).is_file():
            raise FileNotFoundError(f"no cell library {str(named)!r}")
        return Path(named)
    for name in _PREFERRED:
        for found in sorted((LIBRARY_FOLDER / name).glob("*_stdcells.lib")):
            return found
    raise FileNotFoundError(
        f"no cell library in {LIBRARY_FOLDER}; install Debian's qflow-tech-osu035, or name one in Liberty's format "
        "with --liberty or SOFTNUM_LIBERTY (apt-get download qflow-tech-osu035 and dpkg-deb -x give one uninstalled)"
    )


def _library_text(path: Path) -> tuple[bytes, str]:
    """The library's bytes, unpacked, and its name."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: its compression by gzip is damaged ({error}); get the whole file") from None
    found = re.search(rb"^\s*library\s*\(\s*\"?([^\s\")]+)\"?\s*\)", data, re.MULTILINE)
    if found is None:
        raise ValueError(f"{path}: not a cell library in Liberty's format: it has no line library (name)")
    code = re.sub(rb'/\*.*?\*/|"(?:[^"\\]|\\.)*"', b"", data, flags=re.DOTALL)
    if (opened := code.count(b"{")) != (closed := code.count(b"}")):  # Yosys reads on for ever
        raise ValueError(f"{path}: {opened} braces open and {closed} close: part of the library is missing; get it all")
    return data, found[1].decode("utf-8", "replace")


def map_design(
    sources: Iterable[str | os.PathLike[str]],
    liberty: str | os.PathLike[str],
    *,
    top: str | None = None,
    parameters: Mapping[str, int] | None = None,
    include: Iterable[str | os.PathLike[str]] = (),
    yosys: str = "yosys",
) -> Mapped:
    """Map a design to a cell library.

    Parameters
    ----------
    sources : iterable of path-like
        Verilog; of SystemVerilog what Yosys reads, in files that end in .sv.
    liberty : path-like
        The library.
    top : str, optional
        The module. Default: the one that no other has in it. An escaped identifier is written as Verilog has it,
        with its backslash: r"\foo.bar".
    parameters : Mapping of str to int, optional
        Values of the module's parameters, which may have escaped names too.
    include : iterable of path-like
        Folders of files that the sources include.
    yosys : str
        The program.

    Returns
    -------
    Mapped

    Raises
    ------
    FileNotFoundError
        If Yosys or a file is not there.
    ValueError
        If Yosys refuses the design, with what it says; not all of it has been mapped to cells; or there are several
        modules that no other has in it, and `top` does not say which.

    Examples
    --------
    >>> map_design(["mac.v"], "cells.lib")  # doctest: +SKIP
    Mapped(top='mac', library='cells', area=43904.0, delay_ps=7095.01, cells=415, flip_flops=0, tool='Yosys 0.23')
    """
    given = DesignFiles(
        sources, top=top, parameters=parameters, include=include, yosys=yosys, need="softnum rtl area"
    )  # fmt: skip
    data, library = _library_text(Path(liberty))
    with tempfile.TemporaryDirectory(prefix="softnum-rtl-") as folder:
        Path(folder, "cells.lib").write_bytes(data)  # of a plain name, as ABC wants it
        done = given.run(Path(folder), [*given.read(), given.hierarchy(), *_MAP])
        figures = Path(folder, "figures.txt")
        told = figures.read_text(encoding="utf-8") if figures.is_file() else ""
        read = _digests(given, Path(folder)) if told and not done.returncode else ()
    if done.returncode or not told:
        said = complaints(done.stdout)
        if any("check -assert" in line for line in said):  # which says what is wrong in warnings
            warned = (line for line in done.stdout.splitlines() if line.startswith("Warning:"))
            said += list(dict.fromkeys(warned))[:3]
        if any("ABC: execution" in line or "ABC output" in line for line in said):  # which says nothing itself
            said.append("(ABC ends so where a library lacks an inverter, a buffer or tables of delays)")
        raise ValueError(f"{given.where}: Yosys does not map it: {' '.join(said).strip()}")
    if found := re.search(r"Warning: .*tri-state logic.*?(\(\S+\))", done.stdout):  # it is dropped, or half of it
        raise ValueError(
            f"{given.where}: tri-state logic {found[1]}, which Yosys does not map to cells; its area is not known"
        )
    given.check_top(done.stdout)
    found = _mapped(given.where, library, told, done.stdout)
    return replace(found, top=found.top if given.top is None else given.top.removeprefix("\\"), files=read)


def _digests(given: DesignFiles, folder: Path) -> tuple[tuple[str, str], ...]:
    """Name and SHA-256 of what Yosys reads, by its own list; ValueError if there is none, or a file is gone."""
    sources = given.files
    given.run(folder, [*given.read(), given.hierarchy()], options=("-q", "-E", "read.d"))
    listed = folder / "read.d"
    text = listed.read_text(encoding="utf-8", errors="surrogateescape") if listed.is_file() else ""
    names = [name.replace("\\ ", " ") for name in re.split(r"(?<!\\) ", text.partition(": ")[2].strip("\n")) if name]
    found = {(folder / name).resolve() for name in names} - {(folder / "commands.ys").resolve()}
    if not set(sources) <= found:
        raise ValueError("this Yosys does not say which files it reads (option -E), whose digests are to be noted")
    try:
        return tuple(
            (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in (*dict.fromkeys(sources), *sorted(found - set(sources)))
        )
    except OSError as error:
        raise ValueError(f"Yosys read a file that cannot be read again: {error}; leave the files alone") from None


def _mapped(where: str, library: str, told: str, log: str) -> Mapped:
    found = re.search(r"Chip area for (?:top )?module '\\?(.+)': *([\d.eE+]+)", told)
    # "      12     NAND2X1" or "     NAND2X1      12", by version; what no library has begins with $
    counts = {name: int(number) for name, number in re.findall(r"^ +(\$\w+|[A-Za-z]\w*) +(\d+) *$", told, re.MULTILINE)}
    counts |= {n: int(k) for k, n in re.findall(r"^ +(\d+) +(?:[\d.]+ +)?(\$\w+|[A-Z]\w*) *$", told, re.MULTILINE)}
    left = sorted(
        {*(name for name in counts if name.startswith("$")), *re.findall(r"cell type (\S+) is unknown", told)}
    )
    if left:
        raise ValueError(
            f"{where}: {', '.join(left)} cannot be mapped to cells of {library}: a latch, a memory, a module "
            "that is not there or a cell of which the library states no area; the design's area is not known"
        )
    if found is None or float(found[2]) <= 0:
        raise ValueError(f"{where}: nothing of it is left after optimisation: does it compute anything?")
    delays = [float(delay) for delay in re.findall(r"ABC: .*Delay = *([\d.]+) ps", log)]
    tool = re.search(r"Yosys (\d+\.\d+\S*)", log)
    cells = re.search(r"Number of cells: +(\d+)|^ +(\d+)(?: +[\d.]+)? +cells$", told, re.MULTILINE)
    top = found[1].rpartition("\\")[2]
    return Mapped(
        top, library, float(found[2]), max(delays, default=None), int(cells[1] or cells[2]) if cells else 0,
        _flip_flops(log), f"Yosys {tool[1]}" if tool else "Yosys",
    )  # fmt: skip


def _flip_flops(log: str) -> int:
    """What dfflibmap mapped, by its own words."""
    return sum(map(int, re.findall(r"mapped (\d+) \$_\S*DFF\S* cells to", log)))


def unit_hardware(
    sources: Iterable[str | os.PathLike[str]],
    *,
    liberty: str | os.PathLike[str] | None = None,
    reference: str = "binary16",
    top: str | None = None,
    parameters: Mapping[str, int] | None = None,
    include: Iterable[str | os.PathLike[str]] = (),
    yosys: str = "yosys",
    latency_cycles: int = 1,
    initiation_interval: int = 1,
) -> tuple[UnitHardware, Mapped, Mapped]:
    """What a design in Verilog is, for ``[hardware.unit]``: its area and delay beside a reference multiplier's.

    Parameters
    ----------
    sources, top, parameters, include, yosys
        As of `map_design`.
    liberty : path-like, optional
        As of `find_library`.
    reference : str
        "int8", "int32", "binary16" or "binary32": the multiplier that is mapped in the same run.
    latency_cycles, initiation_interval : int
        Of the design, which synthesis does not know.

    Returns
    -------
    unit : UnitHardware
    design, reference : Mapped

    Raises
    ------
    FileNotFoundError, ValueError
        As of `find_library` and `map_design`; and if there is no such reference.

    Examples
    --------
    >>> unit_hardware(["mac.v"], reference="fp16")
    Traceback (most recent call last):
        ...
    ValueError: no reference multiplier 'fp16'; there are int8, int32, binary16, binary32
    """
    if reference not in REFERENCES:
        raise ValueError(f"no reference multiplier {reference!r}; there are {', '.join(REFERENCES)}")
    sources, library = list(sources), find_library(liberty)
    design = map_design(sources, library, top=top, parameters=parameters, include=include, yosys=yosys)
    with tempfile.TemporaryDirectory(prefix="softnum-rtl-") as folder:
        if reference in _FLOATS:
            file, name, values = Path(__file__).parent / "float_multiply.v", "fp8_multiply", _FLOATS[reference]
        else:
            bits, file, name, values = int(reference[3:]), Path(folder, "integer.v"), "reference_multiply", {}
            file.write_text(_INTEGER.format(top=bits - 1, twice=2 * bits - 1), encoding="utf-8")
        base = map_design([file], library, top=name, parameters=values, yosys=yosys)
    digests = [(name, digest[:12]) for name, digest in design.files]
    digest = digests[0][1] if len(digests) == 1 else ", ".join(map(" ".join, digests))
    stated = "".join(f" {name}={value}" for name, value in (parameters or {}).items())
    names = " ".join(Path(source).name for source in sources)
    unit = UnitHardware(
        f"softnum rtl area {names}{stated} (SHA-256 {digest}), {design.tool}",
        library=design.library,
        area_um2=design.area,
        reference=reference,
        reference_area_um2=base.area,
        area_ratio=float(f"{design.area / base.area:.4g}"),
        delay_ps=design.delay_ps,
        reference_delay_ps=None if design.delay_ps is None else base.delay_ps,
        latency_cycles=latency_cycles,
        initiation_interval=initiation_interval,
    )
    return unit, design, base
