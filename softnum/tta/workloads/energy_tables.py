"""Energies of operations and of accesses to memory: cited tables of a 45 nm process (file energy.toml of this package).

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

A table without such an entry (the lecture's has 32-bit ones alone) gives the next wider of the same kind; a format
that is wider than every entry is an error in a GEMM. Elsewhere (a loss in binary64) a multiplication of 64 bits is
charged as four of 32, of which it would be made. SRAM between the listed sizes is interpolated on logarithmic scales
(the listed energies grow about as the root of the size); below the smallest it costs as much as that, above the largest
the last two entries are continued.

Sources: M. Horowitz, "Computing's Energy Problem", ISSCC 2014; the lecture's table is table I of S. Han et al., ISCA
2016.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.unit import REFERENCES, UnitHardware

__all__ = [
    "ENERGY_TABLES",
    "NoEnergy",
    "OperationEnergy",
    "class_of",
    "dram_energy",
    "energy_table",
    "mac_energy",
    "mac_picojoules",
    "operation_energy",
    "sram_energy",
    "stated_energy",
]

#: The tables of energy.toml.
ENERGY_TABLES = ("45nm", "45nm-lecture")

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
        "published" for the format's own entry; "proxy" for that of another in its place; "stated" for what the design
        says of its own unit.
    reason : str
        Why that entry.

    Examples
    --------
    >>> operation_energy("add", "binary16").picojoules
    0.4
    """

    entry: str
    picojoules: float
    kind: str
    reason: str


@cache
def _tables() -> Mapping:
    return tomllib.loads((Path(__file__).parents[1] / "energy.toml").read_text(encoding="utf-8"))


def energy_table(name: str) -> Mapping:
    """A table of energy.toml; ValueError with the names if there is none.

    >>> energy_table("45nm")["fp32"]["multiply_pj"]
    3.7
    """
    if name not in ENERGY_TABLES:
        raise ValueError(f"unknown energy table {name!r}; tables: {', '.join(ENERGY_TABLES)}")
    return _tables()[name]


class NoEnergy(ValueError):
    """The tables have nothing that could stand in for an operation.

    >>> issubclass(NoEnergy, ValueError)
    True
    """


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
    operation: str, fmt: str, *, bits: int | float | None = None, table: str = "45nm"
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
    table : str
        One of `ENERGY_TABLES`.

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
    rows = energy_table(table)
    if operation not in ("multiply", "add"):
        raise ValueError(f"the operation must be multiply or add, got {operation!r}")
    kind, width, what = class_of(fmt, bits)
    entries = {8: "int8", 32: "int32"} if kind == "fixed" else {16: "fp16", 32: "fp32"}
    if kind == "float" and operation == "multiply":
        entries = {8: "int8", **entries}
    listed = [entries[size] for size in sorted(entries) if size >= width and entries[size] in rows]
    if not listed:
        raise ValueError(
            f"{what}: the energy table {table!r} has no entry as wide as it; it has int32 and fp32 at most"
        )
    entry = listed[0]
    own = {"int8": ("fixed", 8), "int32": ("fixed", 32), "fp16": ("binary16",), "fp32": ("binary32",)}[entry]
    exact = (kind, width) == own if kind == "fixed" else _canonical(fmt) in own
    return OperationEnergy(
        entry, rows[entry][f"{operation}_pj"], "published" if exact else "proxy", f"{what}, charged as {entry}"
    )


def _canonical(name: str) -> str:
    return {"float32": "binary32", "e8m23": "binary32", "float16": "binary16", "e5m10": "binary16"}.get(name, name)


def sram_energy(size: int, table: str = "45nm") -> tuple[float, str]:
    """Picojoules of an access to SRAM of so many bytes, for each bit, and how that is known.

    >>> sram_energy(32768)
    (0.3125, '32768 bytes: published')
    """
    points = [(row["bytes"], row["pj"] / row["bits"]) for row in energy_table(table)["sram"]]
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


def dram_energy(table: str = "45nm") -> tuple[float, float]:
    """Picojoules of an access to DRAM for each bit, low and high.

    >>> dram_energy("45nm-lecture")
    (20.0, 20.0)
    """
    row = energy_table(table)["dram"]
    return row["low_pj"] / row["bits"], row["high_pj"] / row["bits"]


def mac_energy(
    gemm: Gemm, accumulator: str | None = None, table: str = "45nm", unit: UnitHardware | None = None
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
    if accumulator is None:
        accumulator = "q16.16" if all(_is_fixed(name, gemm.bits) for name in names) else "binary32"
    return stated, operation_energy("add", accumulator, table=table)


def _is_fixed(name: str, bits: int | float) -> bool:
    try:
        return class_of(name, bits)[0] == "fixed"
    except NoEnergy:
        return False


def stated_energy(unit: UnitHardware | None, table: str = "45nm") -> OperationEnergy | None:
    """The energy that a design states of its unit: of a multiply-add, or by a ratio of a multiplication; None if none.

    >>> stated_energy(UnitHardware("power report", reference="binary16", energy_ratio=0.5)).picojoules
    0.55
    """
    if unit is None or (unit.energy_pj is None and unit.energy_ratio is None):
        return None
    by = f"as the design states by {unit.energy_source or unit.source}"
    if unit.energy_pj is not None:
        return OperationEnergy("", unit.energy_pj, "stated", f"a multiply-add of {unit.energy_pj:g} pJ, {by}")
    entry, rows = REFERENCES[unit.reference], energy_table(table)
    if entry not in rows:
        raise NoEnergy(f"the energy table {table!r} has no {unit.reference} multiplication, which energy_ratio is to")
    reason = f"a multiplication of {unit.energy_ratio:g} of the {unit.reference} multiplier's, {by}"
    return OperationEnergy(entry, unit.energy_ratio * rows[entry]["multiply_pj"], "stated", reason)


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
