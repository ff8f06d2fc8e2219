"""softnum's C library inside a simulator: for SystemVerilog's DPI-C and for VPI, compiled where it is used.

The sources travel with the package, below `softnum.get_include`; a C compiler makes them a library for this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softnum.runtime import _core
from softnum.runtime.atomic import write_atomic
from softnum.runtime.config import get_include
from softnum.vectors.built_units import units_text

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["build_simulator_libraries", "vpi_include", "write_bench_files"]

LIBRARY_SOURCES = ("blocks.c", "built.c", "defined.c", "dots.c", "instructions.c", "names.c", "operations.c", "units.c")
#: what a test bench compiles itself
BENCH_FILES = ("softnum_pkg.sv", "softnum_modes.vh", "softnum_dpi.h", "softnum_dpi.hpp", "softnum_dpi_units.hpp")
#: what softnum_dpi.h takes from the core: types and the table of operations
_CORE = '#include "softnum/operations/operations.h"'
# the Makefile's target dpi compiles alike, with warnings as errors
FLAGS = ("-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")


def vpi_include() -> str | None:
    """The folder with ``vpi_user.h``: that of the Icarus Verilog in PATH, or a usual one; None if there is none.

    >>> from softnum.vectors.simulators import vpi_include
    >>> folder = vpi_include()
    >>> folder is None or os.path.isfile(os.path.join(folder, "vpi_user.h"))
    True
    """
    folders = []
    if script := shutil.which("iverilog-vpi"):
        told = subprocess.run([script, "--cflags"], capture_output=True, encoding="utf-8", check=False)
        folders += [part[2:] for part in shlex.split(told.stdout) if part.startswith("-I")]
    folders += ["/usr/include/iverilog", "/usr/local/include/iverilog", "/usr/include"]
    return next((folder for folder in folders if os.path.isfile(os.path.join(folder, "vpi_user.h"))), None)


def build_simulator_libraries(
    out: PathLike, *, compiler: str | None = None, vpi: str | None = None, units: dict[str, Any] | None = None
) -> list[Path]:
    """Compile the library for DPI-C, and the VPI module where ``vpi_user.h`` is found.

    Parameters
    ----------
    out : str or path
        The folder to write to; created if needed.
    compiler : str, optional
        The C compiler, with options if needed; by default the environment variable ``CC``, else ``cc``.
    vpi : str, optional
        The folder with ``vpi_user.h``; by default `vpi_include`.
    units : dict, optional
        Units for ``softnum_unit``: name -> unit, name of a preset, or expression.

    Returns
    -------
    list of Path
        The files written: ``libsoftnum_dpi.so``, the files that test benches compile (`BENCH_FILES`: for SystemVerilog,
        C, and C++ or SystemC), and ``softnum_vpi.vpi`` where there is a ``vpi_user.h``.

    Raises
    ------
    ValueError
        If there is no compiler, or it fails; the message ends with what it printed. On Windows. If the library does not
        support a unit.
    FileNotFoundError
        If `vpi` holds no ``vpi_user.h``.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.vectors import build_simulator_libraries
    >>> made = build_simulator_libraries(tempfile.mkdtemp(), compiler="cc -O0")
    >>> [path.name for path in made][:3]
    ['libsoftnum_dpi.so', 'softnum_pkg.sv', 'softnum_modes.vh']
    """
    if sys.platform == "win32":
        raise ValueError("softnum's simulator libraries are built on Linux and macOS; on Windows use WSL")
    own_units = units_text(units) if units else None
    command = shlex.split(compiler or os.environ.get("CC") or "cc")
    if not command or shutil.which(command[0]) is None:
        raise ValueError(f"no C compiler {' '.join(command)!r} is found; install one, or name it (--cc, or CC=)")
    headers = Path(get_include())
    if vpi is not None and not os.path.isfile(os.path.join(vpi, "vpi_user.h")):
        raise FileNotFoundError(f"there is no vpi_user.h in {vpi}: name the simulator's folder of C headers")
    vpi = vpi or vpi_include()
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:

        def compiled(source: str, *includes) -> Path:
            target, path = Path(scratch) / f"{source}.o", headers / "dpi" / source
            if source == "built.c" and own_units:
                path = Path(scratch) / source
                path.write_text(own_units, encoding="utf-8")
            flags = [*FLAGS, *command[1:], *(f"-I{folder}" for folder in (headers, *includes))]
            _run([command[0], *flags, "-c", "-o", target, path])
            return target

        objects = [compiled(source) for source in LIBRARY_SOURCES]
        made = [_linked(command, folder / "libsoftnum_dpi.so", objects)]
        made += write_bench_files(folder)
        if vpi is not None:
            objects.append(compiled("softnum_vpi.c", vpi))
            made.append(_linked(command, folder / "softnum_vpi.vpi", objects))
    return made


def write_bench_files(folder: Path) -> list[Path]:
    """Write what a test bench compiles itself: the package with a line for each operation and instruction, the C header
    with one for each operation, so that it needs no other header."""
    source, made = Path(get_include()) / "dpi", [folder / name for name in BENCH_FILES]
    header = (source / "softnum_dpi.h").read_text(encoding="utf-8")
    operations = {name: str(operands) for name, (_, operands) in _core.OPERATIONS.items()}
    names = operations | dict(re.findall(r"^    X\((\w+), (\d)\)", header, re.MULTILINE))  # SOFTNUM_INSTRUCTIONS
    package = "\n".join(f"  `SOFTNUM_{operands}({name})" for name, operands in names.items())
    core = "\n".join((
        "#include <stdint.h>", "typedef uint32_t sn_u32;", "typedef uint64_t sn_u64;", "typedef int64_t sn_i64;",
        " ".join(("#define SN_OPERATIONS(X)", *(f"X({name}, {operands})" for name, operands in operations.items()))),
    ))  # fmt: skip
    for path in made:
        text = (source / path.name).read_text(encoding="utf-8")
        text = re.sub("  // SN_OPERATIONS:.*", package, text)
        write_atomic(path, text.replace(_CORE, core))
    return made


def _linked(command: list[str], target: Path, objects) -> Path:
    """Make the library, which appears whole or not at all; beside the objects, whose folder nobody else knows."""
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []  # the simulator has the rest
    made = objects[0].with_name(target.name)
    _run([*command, "-shared", *undefined, "-o", made, *objects])
    write_atomic(target, made.read_bytes())
    return target


def _run(line: list[Any]) -> None:
    done = subprocess.run(list(map(str, line)), capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise ValueError(f"the C compiler failed ({shlex.join(map(str, line))}):\n{done.stderr.strip()}")
