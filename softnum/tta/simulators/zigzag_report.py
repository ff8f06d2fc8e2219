"""ZigZag's results: a JSON file for each layer, ``<layer>_complete.json``, or the short ``overall_simple.json``."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.quantities import frequency
from softnum.tta.simulators.zigzag import ZigZagMachine
from softnum.tta.text import read_text
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["GemmCost", "is_zigzag", "read_gemm_cost", "read_zigzag", "zigzag_sum"]

_AGAIN = "run ZigZag again"
_LATENCY = ("data_onloading", "computation", "data_offloading")
_ENERGY = ("energy_total", "operational_energy", "memory_energy")


@dataclass(frozen=True)
class GemmCost:
    """What ZigZag says of one product.

    Parameters
    ----------
    cycles : float
        From the first operand read to the last result written; not always whole, because ZigZag spreads reads of whole
        operands over the computation.
    stalls : float
        Of these, cycles in which the array waits during the computation.
    picojoules : float
        Energy in all.
    memory_picojoules : float
        Of this, that of SRAM and DRAM.

    Examples
    --------
    >>> GemmCost(cycles=3135.0, stalls=0.0, picojoules=2.5e6, memory_picojoules=2.1e6).cycles
    3135.0
    """

    cycles: float
    stalls: float
    picojoules: float
    memory_picojoules: float


def _json(path, text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        last = text.count("\n") + 1
        cut = " (the file ends there: a run that did not finish?)" if error.lineno >= last else ""
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg}){cut}; {_AGAIN}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line 1: not readable as JSON ({error}); {_AGAIN}") from None


def _line(text: str, key: str) -> int:
    """The first line that names a key; 1 if none does."""
    at = text.find(f'"{key}"')
    return 1 if at < 0 else text.count("\n", 0, at) + 1


def _member(path, text: str, table: object, *keys: str) -> object:
    for depth, key in enumerate(keys):
        if not isinstance(table, Mapping) or key not in table:
            line = 1 if depth == 0 else _line(text, keys[depth - 1])
            raise ValueError(
                f"{path}, line {line}: not a result of ZigZag: it lacks {'.'.join(keys[: depth + 1])}; expected "
                f"<layer>_complete.json of zigzag-dse 3, or overall_simple.json; {_AGAIN}"
            )
        table = table[key]
    return table


def _number(path, text: str, table: object, *keys: str, zero: bool = False) -> float:
    value = _member(path, text, table, *keys)
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        kind = "from 0 up" if zero else "above 0"
        raise ValueError(
            f"{path}, line {_line(text, keys[-1])}: {'.'.join(keys)} must be a number {kind}, got {value!r}; {_AGAIN}"
        )
    return value


def _costs(path, text: str, result: object) -> tuple[GemmCost, dict[str, float], dict[str, float]]:
    parts = {key: _number(path, text, result, "outputs", "latency", key, zero=True) for key in _LATENCY}
    if _number(path, text, result, "outputs", "energy", "memory_energy", zero=True) == 0:
        raise ValueError(
            f"{path}, line {_line(text, 'memory_energy')}: memory_energy is 0: ZigZag drops accesses that fill no "
            "port, and so small a product has no other; leave it out of what ZigZag simulates, or use SCALE-Sim"
        )
    energy = {key: _number(path, text, result, "outputs", "energy", key) for key in _ENERGY}
    use = {
        key: _number(path, text, result, "outputs", "spatial", "mac_utilization", key)
        for key in ("ideal", "stalls", "stalls_onloading_offloading")
    }
    cycles = float(sum(map(Fraction, parts.values())))
    computation = parts["computation"]
    line = _line(text, "latency")
    if computation <= 0:
        raise ValueError(f"{path}, line {line}: no cycles of computation; {_AGAIN}")
    if not math.isclose(use["stalls_onloading_offloading"] * cycles, use["stalls"] * computation, rel_tol=1e-9):
        raise ValueError(
            f"{path}, line {line}: {cycles:g} cycles, {computation:g} of them of computation, do not agree with the "
            f"utilisations {use['stalls_onloading_offloading']:g} and {use['stalls']:g}: the file was changed; {_AGAIN}"
        )
    if not math.isclose(energy["energy_total"], energy["operational_energy"] + energy["memory_energy"], rel_tol=1e-9):
        raise ValueError(
            f"{path}, line {_line(text, 'energy_total')}: energy_total is {energy['energy_total']:g} where its parts "
            f"add up to {energy['operational_energy'] + energy['memory_energy']:g}: the file was changed; {_AGAIN}"
        )
    # a utilisation is a number of cycles over another; the cycles of the array alone are whole
    array = computation * use["stalls"] / use["ideal"]
    if not math.isclose(array, round(array), rel_tol=1e-9) or round(array) > computation:
        raise ValueError(
            f"{path}, line {_line(text, 'mac_utilization')}: the utilisations {use['ideal']:g} and {use['stalls']:g} "
            f"give {array:g} cycles of the array of {computation:g} of computation: the file was changed; {_AGAIN}"
        )
    return (
        GemmCost(cycles, float(computation - round(array)), energy["energy_total"], energy["memory_energy"]),
        use,
        energy,
    )


def read_gemm_cost(
    path: str | os.PathLike[str], *, machine: ZigZagMachine, shape: tuple[int, int, int], text: str | None = None
) -> GemmCost:
    """Read ZigZag's result of one product, and check that it is that of this machine and these sizes.

    Parameters
    ----------
    path : path-like
        A ``<layer>_complete.json``.
    machine : ZigZagMachine
        What was simulated.
    shape : (int, int, int)
        (M, N, K).
    text : str, optional
        The file's contents, if they are already in memory; `path` is then only its name in messages.

    Returns
    -------
    GemmCost

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is truncated, malformed, has a time or an energy of zero, contradicts itself, or is of another product or
        machine; the message names file, line and the way out.
    """
    if text is None:
        text = _text(Path(path))
    result = _json(path, text)
    cost, use, energy = _costs(path, text, result)
    m, n, k = shape
    cells = math.prod(machine.array)
    sizes = _member(path, text, result, "inputs", "layer", "loop_dimensions")
    array = _member(path, text, result, "inputs", "accelerator", "operational_array", "dimensions")
    given = [sizes, array, _member(path, text, result, "inputs", "layer", "operand_precision", "I")]
    asked = [{"C": k, "D": m, "K": n}, {"D1": machine.array[0], "D2": machine.array[1]}, machine.bits]
    if given != asked:
        line = _line(text, "loop_dimensions")
        raise ValueError(
            f"{path}, line {line}: the result is of {given} where {asked} was asked for: of another GEMM or array; "
            f"{_AGAIN}"
        )
    ideal = -(-m * n * k // cells)
    if not math.isclose(use["stalls_onloading_offloading"] * cost.cycles, ideal, rel_tol=1e-9):
        raise ValueError(
            f"{path}, line {_line(text, 'latency')}: {cost.cycles:g} cycles do not agree with a utilisation of "
            f"{use['stalls_onloading_offloading']:g} for a {m} x {n} x {k} GEMM on {cells} cells; {_AGAIN}"
        )
    if not math.isclose(energy["operational_energy"], m * n * k * machine.mac_pj, rel_tol=1e-9):
        raise ValueError(
            f"{path}, line {_line(text, 'operational_energy')}: {energy['operational_energy']:g} pJ is not that of "
            f"{m * n * k} multiply-adds of {machine.mac_pj:g} pJ; {_AGAIN}"
        )
    return cost


def _text(path: Path) -> str:
    missing = (
        f"no ZigZag result {str(path)!r}; ZigZag writes <layer>_complete.json into its dump folder as each layer is "
        f"done, and overall_simple.json at the end: the run did not finish, or the path is another; {_AGAIN}"
    )
    return read_text(path, missing)


def is_zigzag(text: str) -> bool:
    """Whether a text is a result of ZigZag, by its first keys.

    >>> is_zigzag('{"energy": 2500000.0, "latency": 3135.0}'), is_zigzag('{"traceEvents": []}')
    (True, False)
    """
    forms = (r'\s*\{\s*"outputs"\s*:\s*\{\s*"memory"', r'\s*\{\s*"energy"\s*:[^{}]*"latency"')
    return any(re.match(form, text) for form in forms)


def zigzag_sum(path: str | os.PathLike[str], text: str) -> tuple[Fraction, Fraction, dict[str, Any]]:
    """Cycles, joules and details of a result of ZigZag: of a layer, of a whole run, or its short form.

    Parameters
    ----------
    path : path-like
        Its name in messages.
    text : str

    Returns
    -------
    cycles, joules : Fraction
    detail : dict

    Examples
    --------
    >>> zigzag_sum("overall_simple.json", '{"energy": 2500000.0, "latency": 3135.0}')[0]
    Fraction(3135, 1)
    """
    result = _json(path, text)
    if isinstance(result, Mapping) and "outputs" not in result and {"energy", "latency"} & set(result):
        cycles, picojoules = (_number(path, text, result, key) for key in ("latency", "energy"))
        detail = {"cycles": cycles, "joules": picojoules * 1e-12}
    else:
        cost, _, _ = _costs(path, text, result)
        cycles, picojoules = cost.cycles, cost.picojoules
        detail = {"cycles": cycles, "stall_cycles": cost.stalls, "joules": picojoules * 1e-12}
    return Fraction(cycles), Fraction(picojoules) / 10**12, detail


def _check_whole(folder: Path, files: list[Path], cycles: Fraction, joules: Fraction) -> None:
    """That a run came to its end, and that the files of its layers are all of it."""
    found = [file for name in ("simple", "complete") if (file := folder / f"overall_{name}.json").is_file()]
    if not found:
        raise ValueError(
            f"{folder}: no overall_simple.json or overall_complete.json, which ZigZag writes at the end: the run did "
            f"not finish; the layers until then: {', '.join(file.name for file in files)}; {_AGAIN}"
        )
    for file in found:
        whole = zigzag_sum(file, _text(file))[:2]
        if not all(math.isclose(*pair, rel_tol=1e-9) for pair in zip(whole, (cycles, joules), strict=True)):
            raise ValueError(
                f"{file}, line 1: {float(whole[0]):g} cycles and {float(whole[1]):g} J, where the files of the layers "
                f"({', '.join(other.name for other in files)}) give {float(cycles):g} and {float(joules):g}: layers of "
                "one name have one file, the last's, and a folder used twice has old ones; read this file, or give "
                f"every layer a name of its own and {_AGAIN}"
            )


def read_zigzag(path: str | os.PathLike[str], *, design: str, clock: str) -> IterationTime:
    """Read the time and the energy of one iteration from results of your own ZigZag run.

    Parameters
    ----------
    path : path-like
        The dump folder (the sum over its ``<layer>_complete.json``, which has to be what ZigZag wrote at the end into
        ``overall_simple.json`` or ``overall_complete.json``), one such file, or an ``overall_simple.json``. The run has
        to be over every layer of one training iteration, forward and backward.
    design : str
        Name of the design they are for.
    clock : str
        The array's clock, such as "1 GHz".

    Returns
    -------
    IterationTime
        With `joules`.

    Raises
    ------
    FileNotFoundError, ValueError
        If a file is missing, malformed, or has no time or no energy; the run did not finish; the layers' files do not
        add up, as when two layers have one name; or the clock is not a frequency.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "overall_simple.json")
    ...     _ = file.write_text('{"energy": 2500000.0, "latency": 3135.0}')
    ...     time = read_zigzag(file, design="mine", clock="1 GHz")
    >>> time.seconds, time.joules
    (3.135e-06, 2.5e-06)
    """
    hertz, path = frequency(clock), Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.glob("*_complete.json") if file.name != "overall_complete.json")
        if not files:
            raise FileNotFoundError(
                f"no ZigZag result in {str(path)!r}: it has no <layer>_complete.json; the run did not finish, or the "
                f"folder is another; {_AGAIN}"
            )
    sums = [zigzag_sum(file, _text(file)) for file in files]
    cycles, joules = (sum(part) for part in list(zip(*sums, strict=True))[:2])
    if path.is_dir():
        _check_whole(path, files, cycles, joules)
    detail = {"cycles": float(cycles), "clock_hz": float(hertz), "file": str(path)}
    if path.is_dir():
        detail["layers"] = [
            {"layer": file.name.removesuffix("_complete.json"), "report": str(file), **row}
            for file, (_, _, row) in zip(files, sums, strict=True)
        ]
    return IterationTime(
        design, float(cycles / hertz), 1, f"ZigZag results {path}", detail, kind="simulated",
        joules=float(joules),
    )  # fmt: skip
