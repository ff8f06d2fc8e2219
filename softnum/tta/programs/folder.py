"""Every format in which a network's products are exported, and the function that writes a folder of one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.tta.programs.common import WRITTEN
from softnum.tta.programs.cuda import cuda_program
from softnum.tta.programs.gem5 import gem5_program
from softnum.tta.programs.ptx import ptx_kernels, ptx_program
from softnum.tta.workloads.files import write_workloads
from softnum.tta.workloads.operations import Workload

__all__ = ["PROGRAM_FORMATS", "ProgramFormat", "export_program"]


@dataclass(frozen=True)
class ProgramFormat:
    """A format in which an iteration's matrix products are exported.

    Parameters
    ----------
    name : str
        As ``--format`` names it.
    description : str
        What it is and what takes it, in a line.
    files : tuple of (str, callable)
        The names of its files, and what makes the text of each of a workload.

    Examples
    --------
    >>> {entry.name: [name for name, _ in entry.files] for entry in PROGRAM_FORMATS.values()}
    {'gem5-c': ['products.c'], 'cuda': ['products.cu'], 'ptx': ['products.ptx', 'products.c']}
    """

    name: str
    description: str
    files: tuple[tuple[str, Callable[[Workload], str]], ...]


#: by name: what `export_program` writes
PROGRAM_FORMATS: dict[str, ProgramFormat] = {
    entry.name: entry
    for entry in (
        ProgramFormat(
            "gem5-c",
            "a C program, for gem5 in system-call emulation and other simulators of processors",
            (("products.c", gem5_program),),
        ),
        ProgramFormat("cuda", "a CUDA program, for GPGPU-Sim, Accel-Sim and GPUs", (("products.cu", cuda_program),)),
        ProgramFormat(
            "ptx",
            "PTX kernels and a C program that loads them by CUDA's driver interface, for GPUs and simulators of PTX",
            (("products.ptx", ptx_kernels), ("products.c", ptx_program)),
        ),
    )
}


def export_program(workload: Workload, format: str, out: str | os.PathLike[str]) -> list[Path]:
    """Write the matrix products of an iteration as a program that a simulator takes.

    Every kernel is named by the sizes of its product and a digest of the network (`network_digest`); when a
    simulator's log comes back, `read_timings` compares these names with the workload. The program checks its own
    results and says so.

    Parameters
    ----------
    workload : Workload
    format : str
        "gem5-c", "cuda" or "ptx"; see `PROGRAM_FORMATS`.
    out : path-like
        A folder; it is made where there is none, and an earlier program in it is replaced.

    Returns
    -------
    list of Path
        The files: the program's, and ``workloads.json`` with the workload.

    Raises
    ------
    ValueError
        If there is no such format; the folder has a file of such a name that is of no such program; or the workload has
        no matrix products, sums of more than 2**22 products, or for a GPU a product too large for a grid.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import load_design, workload
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in export_program(workload("mlp", load_design("a-float32"), 32), "cuda", folder)]
    ['products.cu', 'workloads.json']
    """
    if format not in PROGRAM_FORMATS:
        near = difflib.get_close_matches(str(format), PROGRAM_FORMATS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown program format {format!r}; {hint}The formats are {', '.join(PROGRAM_FORMATS)}")
    texts = [(name, make(workload)) for name, make in PROGRAM_FORMATS[format].files]
    out = Path(out)
    _check_replaced(out, [name for name, _ in texts])
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts:
        write_atomic(out / name, text)
    write_workloads(out / "workloads.json", [workload])
    return [*(out / name for name, _ in texts), out / "workloads.json"]


def _check_replaced(out: Path, names: list[str]) -> None:
    """Raise ValueError where a file would be replaced that no earlier export wrote."""
    ours = {name for entry in PROGRAM_FORMATS.values() for name, _ in entry.files if _is_program(out / name)}
    for name in names:
        if name not in ours and (out / name).exists():
            raise ValueError(f"{out / name} was not written by softnum workloads, so it stays; choose another folder")
    if not ours and (out / "workloads.json").exists():
        raise ValueError(f"{out / 'workloads.json'} is of no program in {out}, so it stays; choose another folder")


def _is_program(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return WRITTEN.encode() in file.read(4096)
    except OSError:
        return False
