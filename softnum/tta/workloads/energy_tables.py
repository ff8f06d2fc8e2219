"""Energies of operations and of accesses to memory, by a cited table: which entry a format is charged.

*What stands in for what.* A format that the table does not list is charged the nearest wider entry, which is labelled:

=========================================  =================================  =======================================
format                                     multiplication                     addition
=========================================  =================================  =======================================
binary16, binary32, 8- and 32-bit fixed    its own                            its own
float of at most 8 bits                    the 8-bit integer's (errs high:    the 16-bit float's (an integer adder
                                           its significands are shorter)      has no shifters)
float of at most 16 bits, precision <= 11  the 16-bit float's                 the 16-bit float's
float of at most 32 bits, precision <= 24  the 32-bit float's                 the 32-bit float's
fixed of at most 8, 32 bits                the 8-, 32-bit integer's           the 8-, 32-bit integer's
block format                               that of its elements               that of its elements
=========================================  =================================  =======================================

A posit, a format of the user's own and a user's function (a custom unit) have no entry that could stand in for them, as
they have no area: what such a design consumes is known only if it states the energy of its multiply-add
(``[hardware.unit]``). That takes the place of multiplication and addition in all of its matrix products, and of a
multiplication elsewhere in a format that has no entry.

A table without such an entry (the lecture's has 32-bit ones alone) gives the next wider of the same kind; a format that
is wider than every entry is an error in a GEMM. Elsewhere (a loss in binary64) a multiplication of 64 bits is charged
as four of 32, of which it would be made, unless the table has one. SRAM between the listed sizes is interpolated on
logarithmic scales (the listed energies grow about as the root of the size); below the smallest it costs as much as
that, above the largest the last two entries are continued.

*Accelergy's* table of Aladdin's units (aladdin-40nm) has entries of 32 and 64 bits, and its plug-in a rule for the
widths between: an addition costs as its bits are to the entry's, a multiplication as their squares. That is what the
plug-in charges, and is labelled ``scaled``; a float's width is all of its bits here. Its memory is of the table 45nm.

A *user's file* (`softnum.tta.workloads.energy_files`) lists formats by name or the entries above; the same rules choose
among them. Where it has none, the table that it names as ``rest`` is asked, and that is labelled; without one it is an
error.

Sources: M. Horowitz, "Computing's Energy Problem", ISSCC 2014; the lecture's table is table I of S. Han et al., ISCA
2016; Aladdin's by Accelergy's plug-in (energy.toml).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.tta.workloads.energy_prices import EnergyTable, NoEnergy, energy_table
from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.unit import REFERENCES, UnitHardware

__all__ = [
    "OperationEnergy",
    "class_of",
    "dram_energy",
    "entry_size",
    "mac_energy",
    "mac_picojoules",
    "operation_energy",
    "sram_energy",
    "stated_energy",
]

#: entries that are no format's name -> the kind and width of what they are of
_ENTRIES = {
    "int8": ("fixed", 8), "int32": ("fixed", 32), "fp16": ("float", 16), "fp32": ("float", 32), "fp64": ("float", 64),
}  # fmt: skip
_FORMATS = {"fp16": "binary16", "fp32": "binary32", "fp64": "binary64"}

_STATE = "the tables have no energy of it; state that of the unit's multiply-add: [hardware.unit] energy_pj"


@dataclass(frozen=True)
class OperationEnergy:
    """Energy of one operation in one format, and how it is known.

    Parameters
    ----------
    entry : str
        The entry of the table: "int8", "fp16", ...
    picojoules : float
    kind : str
        "published" for the format's own entry; "proxy" for that of another in its place; "scaled" for its share of
        another's by the rule of the table's source; "stated" for what the design says of its own unit.
    reason : str
        Why that entry.
    whole : bool
        Whether it is that of a multiplication and an addition together.

    Examples
    --------
    >>> operation_energy("add", "binary16").picojoules
    0.4
    """

    entry: str
    picojoules: float
    kind: str
    reason: str
    whole: bool = False


@cache
def class_of(name: str, bits: int | float | None) -> tuple[str, float, str]:
    """Kind ("float" or "fixed"), the bits that an entry must have, and what the format is.

    >>> class_of("e5m2", None)
    ('float', 8, 'e5m2: 8-bit float, precision 3')
    """
    try:
        fmt = format(_canonical(name))
    except (ValueError, TypeError):
        if name or bits is None:
            raise NoEnergy(f"the format {name!r} is not one that softnum.format knows; {_STATE}") from None
        return "float", bits, f"a format without a name has {bits:g} bits"
    return _entry_of(fmt.element, name)


@of_format
def _entry_of(fmt, name: str) -> tuple[str, float, str]:
    precision, width = fmt.precision, fmt.bits
    # the width of the narrowest entry that is as wide and whose significand is as long
    needed = max(width, 0 if precision <= 11 else 32 if precision <= 24 else 64)
    return "float", needed, f"{name}: {width}-bit float, precision {precision}"


@_entry_of.custom
def _no_entry_of(fmt, name: str) -> tuple[str, float, str]:
    raise NoEnergy(f"{name} is neither a float of sign, exponent and significand nor a fixed-point format; {_STATE}")


@_entry_of.fixed
def _fixed_entry_of(fmt, name: str) -> tuple[str, float, str]:
    return "fixed", fmt.bits, f"{name}: {fmt.bits}-bit fixed point"


def operation_energy(
    operation: str, fmt: str, *, bits: int | float | None = None, table: str | EnergyTable = "45nm"
) -> OperationEnergy:
    """Energy of one operation in a format, or of the nearest wider one that the table lists.

    Parameters
    ----------
    operation : str
        "multiply" or "add".
    fmt : str
        Name of the format.
    bits : int or float, optional
        Width, of a format that has no name.
    table : str or EnergyTable
        One of `ENERGY_TABLES`, or what `read_energy_table` read; of units of 5 ns, unless it is of a clock (``at``).

    Returns
    -------
    OperationEnergy

    Raises
    ------
    ValueError
        If the table is unknown, no entry is as wide as the format, or none can stand in for it: a posit, a user's own.

    Examples
    --------
    >>> energy = operation_energy("multiply", "e5m2")
    >>> energy.entry, energy.picojoules, energy.kind
    ('int8', 0.2, 'proxy')
    >>> operation_energy("multiply", "e5m2", table="45nm-lecture").entry
    'fp32'
    """
    table = energy_table(table)
    table = table.at(None) if table.periods else table
    if operation not in ("multiply", "add"):
        raise ValueError(f"the operation must be multiply or add, got {operation!r}")
    if fmt in table.entries and fmt not in _ENTRIES:  # of a user's file: also posits
        row = table.entries[fmt]
        return OperationEnergy(
            fmt, row.get(operation, row.get("mac")), "published", f"{fmt} has an entry", "mac" in row
        )
    kind, width, what = class_of(fmt, bits)
    found = _entry(table, operation, kind, width)
    if found is None and table.rest:
        stands_in = energy_table(table.rest).at(table.clock)
        other = operation_energy(operation, fmt, bits=bits, table=stands_in)
        reason = "; ".join((f"{what}, charged as {other.entry} of the table {table.rest}", *stands_in.notes))
        return OperationEnergy(other.entry, other.picojoules, "proxy", reason)
    if found is None:
        has = [max(sizes, key=lambda name: sizes[name]) for sizes in _sizes(table).values() if sizes]
        most = f"it has {' and '.join(has)} at most" if has else "it has none"
        raise NoEnergy(f"{what}: the energy table {table.name!r} has no entry as wide as it; {most}")
    entry, size = found
    row = table.entries[entry]
    whole = "mac" in row
    picojoules = row["mac" if whole else operation]
    named = _FORMATS.get(entry, entry)
    if (kind, width) == entry_size(entry) if kind == "fixed" else _canonical(fmt) == _canonical(named):
        return OperationEnergy(entry, picojoules, "published", f"{what}, charged as {entry}", whole)
    if table.scaled and width < size:
        share = (width / size) ** (2 if operation == "multiply" else 1)
        told = f"{width:g}/{size}" if operation == "add" else f"({width:g}/{size})^2"
        return OperationEnergy(entry, share * picojoules, "scaled", f"{what}, charged as {told} of {entry}", whole)
    return OperationEnergy(entry, picojoules, "proxy", f"{what}, charged as {entry}", whole)


@cache
def entry_size(entry: str) -> tuple[str, float] | None:
    """The kind and width of an entry; None if it can stand in for no format but itself, as a posit.

    >>> entry_size("fp16"), entry_size("bfloat16"), entry_size("posit8")
    (('float', 16), ('float', 16), None)
    """
    if entry in _ENTRIES:
        return _ENTRIES[entry]
    format(_canonical(entry))
    try:
        return class_of(entry, None)[:2]
    except NoEnergy:
        return None


def _sizes(table: EnergyTable) -> dict[str, dict[str, float]]:
    """The widths of a table's entries, of each kind."""
    sizes: dict[str, dict[str, float]] = {"fixed": {}, "float": {}}
    for entry in table.entries:
        if (size := entry_size(entry)) is not None:
            sizes[size[0]][entry] = size[1]
    return sizes


def _entry(table: EnergyTable, operation: str, kind: str, width: float) -> tuple[str, float] | None:
    """The narrowest entry that is as wide as a format, and its width."""
    sizes = _sizes(table)
    fitting = {entry: size for entry, size in sizes[kind].items() if size >= width}
    if kind == "float" and operation == "multiply" and width <= 8 and not any(size <= 8 for size in fitting.values()):
        fitting |= {entry: size for entry, size in sizes["fixed"].items() if entry == "int8"}
    return min(fitting.items(), key=lambda item: item[1], default=None)


def _canonical(name: str) -> str:
    return {
        "float32": "binary32", "e8m23": "binary32", "float16": "binary16", "e5m10": "binary16", "float64": "binary64",
        "e11m52": "binary64",
    }.get(name, name)  # fmt: skip


def sram_energy(size: int, table: str | EnergyTable = "45nm", *, write: bool = False) -> tuple[float, str]:
    """Picojoules of an access to SRAM of so many bytes, for each bit, and how that is known.

    >>> sram_energy(32768)
    (0.3125, '32768 bytes: published')
    """
    table = energy_table(table)
    if not table.sram:
        if not table.rest:
            raise NoEnergy(f'the energy table {table.name!r} has no SRAM: add sram, or rest = "45nm"')
        each, how = sram_energy(size, table.rest, write=write)
        return each, f"{how} in the table {table.rest}"
    points = [(access.size, access.write if write else access.read) for access in table.sram]
    for stated, picojoules in points:
        if stated == size:
            return picojoules, f"{size} bytes: published"
    if len(points) == 1 or size < points[0][0]:
        return points[0][1], f"{size} bytes: as {points[0][0]}"
    upper = next((i for i, (stated, _) in enumerate(points) if stated > size), len(points) - 1)
    (small, low), (large, high) = points[upper - 1], points[upper]
    exponent = math.log(high / low) / math.log(large / small)
    how = f"between {small} and {large}" if size < large else f"continued from {small} and {large}"
    return low * (size / small) ** exponent, f"{size} bytes: {how}"


def dram_energy(table: str | EnergyTable = "45nm", *, write: bool = False) -> tuple[float, float]:
    """Picojoules of an access to DRAM for each bit, low and high.

    >>> dram_energy("45nm-lecture")
    (20.0, 20.0)
    """
    table = energy_table(table)
    if table.dram is None:
        if not table.rest:
            raise NoEnergy(f'the energy table {table.name!r} has no DRAM: add dram, or rest = "45nm"')
        return dram_energy(table.rest, write=write)
    low = table.dram.write if write else table.dram.read
    return low, low if table.dram.high is None else table.dram.high


def mac_energy(
    gemm: Gemm, accumulator: str | None = None, table: str | EnergyTable = "45nm", unit: UnitHardware | None = None
) -> tuple[OperationEnergy, OperationEnergy]:
    """Energy of a multiplication and an addition of a GEMM.

    The multiplier is the design's own where it states an energy, else that of the dearer operand. The accumulator is
    the one that is named; else of 32 bits, fixed if both operands are. Where the energy of a multiply-add is stated,
    all of it is the multiplication's.

    >>> multiply, add = mac_energy(Gemm("fc", "forward", 1, 1, 1, 8, ("e5m2", "e5m2")), "binary16")
    >>> multiply.picojoules, add.picojoules
    (0.2, 0.4)
    """
    stated = stated_energy(unit, table)
    if unit is not None and unit.energy_pj is not None:
        return stated, OperationEnergy("", 0.0, "stated", "with the multiplication")
    if stated is None and gemm.function:
        raise NoEnergy(f"the user's function {gemm.function} multiplies; {_STATE}")
    names = gemm.formats or ("",)
    if stated is None:
        factors = [operation_energy("multiply", name, bits=gemm.bits, table=table) for name in names]
        stated = max(factors, key=lambda factor: factor.picojoules)
        if stated.whole:
            return stated, OperationEnergy("", 0.0, "stated", "with the multiplication")
    if accumulator is None:
        accumulator = "q16.16" if all(_is_fixed(name, gemm.bits) for name in names) else "binary32"
    return stated, operation_energy("add", accumulator, table=table)


def _is_fixed(name: str, bits: int | float) -> bool:
    try:
        return class_of(name, bits)[0] == "fixed"
    except NoEnergy:
        return False


def stated_energy(unit: UnitHardware | None, table: str | EnergyTable = "45nm") -> OperationEnergy | None:
    """The energy that a design states of its unit: of a multiply-add, or by a ratio of a multiplication; None if none.

    >>> stated_energy(UnitHardware("power report", reference="binary16", energy_ratio=0.5)).picojoules
    0.55
    """
    if unit is None or (unit.energy_pj is None and unit.energy_ratio is None):
        return None
    by = f"as the design states by {unit.energy_source or unit.source}"
    if unit.energy_pj is not None:
        return OperationEnergy("", unit.energy_pj, "stated", f"a multiply-add of {unit.energy_pj:g} pJ, {by}")
    table, entry = energy_table(table), REFERENCES[unit.reference]
    multiply = table.entries.get(entry, {}).get("multiply")
    if multiply is None:
        what = f"no {unit.reference} multiplication, which energy_ratio is to"
        raise NoEnergy(f"the energy table {table.name!r} has {what}")
    reason = f"a multiplication of {unit.energy_ratio:g} of the {unit.reference} multiplier's, {by}"
    return OperationEnergy(entry, unit.energy_ratio * multiply, "stated", reason)


def mac_picojoules(gemm: Gemm, unit: UnitHardware | None = None) -> float | None:
    """Picojoules of a multiply-add of a GEMM, by the table or as the design states; None where neither has any.

    >>> mac_picojoules(Gemm("fc", "forward", 1, 1, 1, 8, ("posit8", "posit8"))) is None
    True
    """
    try:
        multiply, add = mac_energy(gemm, unit=unit)
    except NoEnergy:
        return None
    return multiply.picojoules + add.picojoules
