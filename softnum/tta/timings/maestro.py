"""MAESTRO's results, a CSV file: a row for each layer of a network, on one accelerator.

Cycles are "Runtime (Cycles)". The energy is that of accesses to buffers and of multiply-adds, counted in energies of a
multiply-add and multiplied by a constant of MAESTRO's; the file calls it nJ, in the heading and in "Ops/J". Source:
cost-model/include/design-space-exploration/DSE_csv_writer.hpp and user-api/API_user-interface-v2.hpp of
github.com/maestro-project/maestro. Numbers are written with six digits; the file is appended to by every run.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from softnum.tta.text import count, csv_rows, number
from softnum.tta.timings.kernels import shortest_period
from softnum.tta.timings.series import Options, Series

__all__ = ["is_maestro", "read_maestro"]

_NETWORK, _LAYER, _PES, _CYCLES = "Neural Network Name", "Layer Number", "NumPEs", "Runtime (Cycles)"
_ENERGY, _RATE, _MACS, _PER_JOULE = "Activity count-based Energy", "Throughput (MACs/Cycle)", "Num MACs", "Ops/J"
_UNITS = {"pJ": -12, "nJ": -9, "uJ": -6, "mJ": -3, "J": 0}
_WHAT = f"a table of MAESTRO, with {_LAYER!r}, {_CYCLES!r} and {_ENERGY!r}"
#: two numbers of six digits each: what their quotient may be off by
_TOLERANCE = Fraction(11, 10**6)
_AGAIN = "write the file again, into one that is not there yet: MAESTRO appends"


def is_maestro(text: str) -> bool:
    """Whether a text begins with MAESTRO's headings.

    >>> is_maestro("Neural Network Name, Layer Number, NumPEs, Runtime (Cycles), Activity count-based Energy (nJ)\\n")
    True
    """
    first = text[: text.find("\n")] if "\n" in text else text
    return _CYCLES in first and _ENERGY in first


def read_maestro(path: Path, text: str, options: Options) -> list[Series]:
    """Read the layers of one design: the cycles and the energy of one iteration, of the layers in the file."""
    if options.clock is None:
        raise ValueError(
            f'{path}: MAESTRO counts cycles and states no clock; give that of the accelerator: --clock "1 GHz"'
        )
    if not text.endswith("\n"):
        line = text.count("\n") + 1
        raise ValueError(f"{path}, line {line}: the file stops here without the end of the line: cut off? {_AGAIN}")
    rows = csv_rows(path, text, what=_WHAT)
    at, header = next(rows)
    columns, power = _columns(f"{path}, line {at}", header)
    layers: list[tuple[int, str, str]] = []  # line, network, layer
    runs: list[tuple[int, Fraction]] = []  # cycles and energy
    pes: tuple[int, str] | None = None
    for line, cells in rows:
        where = f"{path}, line {line}"
        if len(cells) != len(header):
            raise ValueError(f"{where}: {len(cells)} cells under {len(header)} headings: cut off? {_AGAIN}")
        row = {name: cells[column] for name, column in columns.items()}
        layers.append((line, row.get(_NETWORK, ""), row[_LAYER]))
        if layers[-1][1] != layers[0][1]:
            raise ValueError(
                f"{where}: a layer of the network {layers[-1][1]!r}, where line {layers[0][0]} has one of "
                f"{layers[0][1]!r}; {_AGAIN}"
            )
        pes = pes or (line, row[_PES])
        if row[_PES] != pes[1]:
            raise ValueError(f"{where}: {row[_PES]} processing elements where line {pes[0]} has {pes[1]}; {_AGAIN}")
        run, used = count(where, _CYCLES, row[_CYCLES]), number(where, _ENERGY, row[_ENERGY])
        _check(where, row, run, used, power)
        runs.append((run, used))
    if pes is None:
        raise ValueError(f"{path}, line {at}: no rows under the headings; {_AGAIN}")
    size = _size(path, layers, options.iterations)
    parts = [runs[begin : begin + size] for begin in range(0, len(runs), size)]
    cycles = [sum(run for run, _ in part) for part in parts]
    joules = [sum((used for _, used in part), Fraction(0)) * Fraction(10) ** power for part in parts]
    of = f" of {layers[0][1]}" if layers[0][1] else ""
    detail = {
        "cycles": sum(cycles),
        "clock_hz": float(options.clock),
        "processing_elements": pes[1],
        "column": repr(_CYCLES),
        "iterations": f"one iteration, of the {size} layers{of} in the file"
        if len(parts) == 1
        else f"{len(parts)} iterations, as stated, of {size} layers{of} each",
        "time": f"{_CYCLES!r} of all layers, one after another, over --clock; the energy is that of its column, which "
        "rests on a constant of MAESTRO's for a multiply-add: good for ratios",
    }
    seconds = [Fraction(run) / options.clock for run in cycles]
    return [Series(options.design, seconds, "simulated", f"MAESTRO results {path}", detail, joules=joules)]


def _size(path: Path, layers: list[tuple[int, str, str]], stated: int | None) -> int:
    """How many layers an iteration has: all, unless a second run of MAESTRO was appended."""
    names = [name for _, _, name in layers]
    period = shortest_period(names)
    if stated is None and period < len(names):
        raise ValueError(
            f"{path}, line {layers[period][0]}: the {period} layers before come again, {len(names) // period} times in "
            "all: MAESTRO appends every run to its file; write it again, or say with --iterations how often the "
            "network is in it (1, if its own layers repeat)"
        )
    size, rest = divmod(len(names), stated or 1)
    if rest or names != names[:size] * (stated or 1):
        raise ValueError(
            f"{path}, line {layers[-1][0]}: --iterations says {stated}, but the {len(names)} layers are no "
            f"{stated}-fold repetition of the first; {_AGAIN}"
        )
    return size


def _columns(where: str, header: list[str]) -> tuple[dict[str, int], int]:
    """Columns by name, and the power of ten of the energy's unit."""
    units = {name: name.removeprefix(_ENERGY).strip() for name in header if name.startswith(_ENERGY)}
    names = {name: _ENERGY if name in units else name for name in header}
    for needed in (_LAYER, _PES, _CYCLES, _ENERGY):
        times = [names[name] for name in header].count(needed)
        if times != 1:
            hint = "; its rows are designs, not layers" if needed == _LAYER and not times else ""
            raise ValueError(f"{where}: the column {needed!r} appears {times} times{hint}; expected {_WHAT}")
    (unit,) = units.values()
    if unit[1:-1] not in _UNITS or unit != f"({unit[1:-1]})":
        raise ValueError(f"{where}: the unit of {_ENERGY!r}, {unit!r}, is none of {', '.join(_UNITS)}")
    columns = {names[name]: column for column, name in reversed(list(enumerate(header)))}
    return columns, _UNITS[unit[1:-1]]


def _check(where: str, row: dict[str, str], cycles: int, energy: Fraction, power: int) -> None:
    """Compare cycles and energy with what the row says of them a second time."""
    if _MACS not in row:
        return
    macs = number(where, _MACS, row[_MACS])
    for name, value, of in (
        (_RATE, macs / cycles, f"{row[_MACS]} multiply-adds in {cycles} cycles"),
        (_PER_JOULE, macs / (energy * Fraction(10) ** power), f"{row[_MACS]} multiply-adds for {row[_ENERGY]}"),
    ):
        if name in row:
            stated = number(where, name, row[name])
            if abs(stated - value) > _TOLERANCE * value:
                raise ValueError(f"{where}: {name} is {row[name]} where {of} give {float(value):g}; {_AGAIN}")
