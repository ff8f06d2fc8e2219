"""softnum's C library inside a simulator: for SystemVerilog's DPI-C and for VPI, compiled where it is used.

The sources travel with the package, below `softnum.get_include`; a C compiler makes them a library for this machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from softnum.config import get_include

__all__ = ["build_simulator_libraries", "vpi_include"]

LIBRARY_SOURCES = ("names.c", "operations.c", "units.c")
VPI_SOURCES = (*LIBRARY_SOURCES, "softnum_vpi.c")
#: what a test bench compiles itself
BENCH_FILES = ("softnum_pkg.sv", "softnum_modes.vh")
# the Makefile's target dpi compiles alike, with warnings as errors
FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off")


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


def build_simulator_libraries(out, *, compiler: str | None = None, vpi: str | None = None) -> list[Path]:
    """Compile the library for DPI-C, and the VPI module where ``vpi_user.h`` is found.

    Parameters
    ----------
    out : str or path
        The folder to write to; it is made if need be.
    compiler : str, optional
        The C compiler, with options if need be; by default the environment's ``CC``, else ``cc``.
    vpi : str, optional
        The folder with ``vpi_user.h``; by default `vpi_include`.

    Returns
    -------
    list of Path
        What was written: ``libsoftnum_dpi.so``, ``softnum_pkg.sv``, ``softnum_modes.vh``, and ``softnum_vpi.vpi`` where
        there is a ``vpi_user.h``.

    Raises
    ------
    ValueError
        If there is no compiler, or it fails; the message ends with what it printed. On Windows.
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
    made = [_compile(command, folder / "libsoftnum_dpi.so", LIBRARY_SOURCES, [headers])]
    for name in BENCH_FILES:
        shutil.copyfile(headers / "dpi" / name, folder / name)
        made.append(folder / name)
    if vpi is not None:
        made.append(_compile(command, folder / "softnum_vpi.vpi", VPI_SOURCES, [headers, vpi]))
    return made


def _compile(command: list[str], target: Path, sources, includes) -> Path:
    """Make the target appear whole or not at all."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []  # the simulator has the rest
    line = [
        command[0], *FLAGS, *command[1:], *undefined, *(f"-I{folder}" for folder in includes), "-o", str(temporary),
        *(str(Path(get_include()) / "dpi" / name) for name in sources),
    ]  # fmt: skip
    try:
        done = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
        if done.returncode:
            raise ValueError(f"the C compiler failed ({shlex.join(line)}):\n{done.stderr.strip()}")
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
