"""Tables of energies: what an operation and an access to memory cost, as energy.toml or a user's file says it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from softnum.runtime.keys import FLAG, POSITIVE, WHOLE, Key, Keys, either, list_of, one_of, text
from softnum.tta.quantities import check_keys, positive_int, positive_number

__all__ = ["ENERGY_TABLES", "ENTRY", "KEYS", "Access", "EnergyTable", "NoEnergy", "energy_table", "table_of"]

#: The tables of energy.toml.
ENERGY_TABLES = ("45nm", "45nm-lecture", "aladdin-40nm")

_PRICE = either(POSITIVE, text(r"\S+\s+\S+"))
_BITS = {"bits": Key(WHOLE, "that one access moves", needed=True)}
_SIZE = {"bytes": Key(WHOLE, "size of the memory", needed=True)}
#: an access to a memory: of one energy, or of a range
_ACCESS = Keys({
    **_BITS, "pj": Key(_PRICE, "picojoules of a read", needed=True),
    "write_pj": Key(_PRICE, "of a write, if it is another"),
})  # fmt: skip
_RANGE = Keys({
    **_BITS, "low_pj": Key(_PRICE, "picojoules at the cheap end", needed=True),
    "high_pj": Key(_PRICE, "at the dear end", needed=True),
})  # fmt: skip
_MAC = Keys({"mac_pj": Key(_PRICE, "picojoules of a multiply-add", needed=True)})
_ADD = Keys({
    "add_pj": Key(_PRICE, "picojoules of an addition", needed=True),
    "multiply_pj": Key(_PRICE, "of a multiplication", needed=True),
})  # fmt: skip
#: an entry, which a format is the name of
ENTRY = either(_MAC.schema(), _ADD.schema())
#: a table's keys besides its entries
KEYS = Keys({
    "citation": Key(text(r"\S"), "where the figures are from", needed=True),
    "process": Key(text(r"\S"), "\"a 45 nm process\"", needed=True),
    "period_ns": Key(list_of(POSITIVE), "periods that figures are listed for"),
    "scaled": Key(FLAG, "whether narrower formats cost a share"),
    "rest": Key(one_of(("", *ENERGY_TABLES)), "the table that has what this one lacks"),
    "sram": Key(list_of(either((_ACCESS | _SIZE).schema(), (_RANGE | _SIZE).schema())), "by size, the smallest first"),
    "dram": Key(either(_ACCESS.schema(), _RANGE.schema()), "memory outside the chip"),
})  # fmt: skip
#: the period whose figures are taken where no clock is known: what Accelergy's plug-in for these tables takes
_PERIOD = 5


class NoEnergy(ValueError):
    """The tables have nothing that could stand in for an operation.

    >>> issubclass(NoEnergy, ValueError)
    True
    """


@dataclass(frozen=True)
class Access:
    """Picojoules of a bit that is read from a memory and of one that is written to it.

    Parameters
    ----------
    read, write : float
    high : float, optional
        Of a bit read or written at the dear end of a range, where the source gives one.
    size : int, optional
        Bytes of the memory.
    """

    read: float
    write: float
    high: float | None = None
    size: int | None = None


@dataclass(frozen=True)
class EnergyTable:
    """Energies of operations and accesses in one process, with their source.

    Parameters
    ----------
    name : str
        One of `ENERGY_TABLES`, or of a user's file.
    citation : str
    process : str
        "a 45 nm process".
    entries : Mapping of str to Mapping
        By int8, int32, fp16, fp32, fp64 or the name of a format: picojoules ``add`` and ``multiply``, or those of both
        together, ``mac``.
    sram : tuple of Access
        By size, upwards; none if the table has no SRAM.
    dram : Access, optional
    scaled : bool
        Whether a format narrower than an entry costs a share of it: an addition as its bits are to the entry's, a
        multiplication as their squares; rather than all of it.
    rest : str
        The table of `ENERGY_TABLES` that has what this one lacks; "" if none is to stand in.
    notes : tuple of str
        What was chosen from it.
    periods : tuple of Fraction
        Nanoseconds that a clock may have: figures of `entries` are one for each, until `at` chooses.
    clock : Fraction, optional
        What `at` was asked for, in hertz: that of `rest` too.

    Examples
    --------
    >>> table = energy_table("45nm")
    >>> table.entries["fp16"]
    {'add': 0.4, 'multiply': 1.1}
    """

    name: str
    citation: str
    process: str
    entries: Mapping[str, Mapping[str, float]]
    sram: tuple[Access, ...] = ()
    dram: Access | None = None
    scaled: bool = False
    rest: str = ""
    notes: tuple[str, ...] = ()
    periods: tuple[Fraction, ...] = ()
    clock: Fraction | None = None

    def at(self, clock: Fraction | None) -> EnergyTable:
        """The table of units that are as fast as a clock, in hertz, asks for; of 5 ns where none is known.

        Figures for the longest listed period that is no longer than the clock's are taken. A table of one period is
        the same for every clock.

        Raises
        ------
        ValueError
            If the clock is faster than every unit of the table.

        Examples
        --------
        >>> table = energy_table("aladdin-40nm")
        >>> table.at(10**9).entries["fp32"]["multiply"], table.at(None).entries["fp32"]["multiply"]
        (35.3, 24.4)
        """
        if not self.periods:
            return replace(self, clock=clock)
        period = Fraction(_PERIOD) if clock is None else Fraction(10**9) / clock
        listed = [index for index, value in enumerate(self.periods) if value <= period]
        if not listed:
            raise NoEnergy(
                f"the energy table {self.name!r} has no unit as fast as {float(clock) / 1e9:g} GHz: its fastest have a "
                f"period of {float(self.periods[0]):g} ns; state a slower clock, or take another table"
            )
        index = max(listed, key=lambda index: self.periods[index])
        entries = {
            name: {key: figures[index] for key, figures in entry.items()} for name, entry in self.entries.items()
        }
        why = "no clock is known" if clock is None else f"the clock is {float(clock) / 1e9:g} GHz"
        note = f"units of the table {self.name} with a period of {float(self.periods[index]):g} ns, as {why}"
        return replace(self, entries=entries, periods=(), notes=(*self.notes, note), clock=clock)


def table_of(name: str, rows: Mapping[str, Any], where: str) -> EnergyTable:
    """A table as TOML holds it, all of whose figures are numbers.

    Raises
    ------
    ValueError, TypeError
        If a key is missing, unknown or no table, or a figure is not a positive number.
    """
    check_keys(rows, KEYS.needed, rows, where)
    for key in ("citation", "process", "rest"):
        if not isinstance(rows.get(key, ""), str) or (key != "rest" and not rows[key].strip()):
            raise ValueError(f"{where}: {key} must be a text, got {rows[key]!r}")
    rest = rows.get("rest", "")
    if rest and rest not in ENERGY_TABLES:
        raise ValueError(f"{where}: rest must be one of the tables {', '.join(ENERGY_TABLES)}, got {rest!r}")
    if not isinstance(rows.get("scaled", False), bool):
        raise ValueError(f"{where}: scaled must be true or false, got {rows['scaled']!r}")
    periods = tuple(Fraction(value) for value in rows.get("period_ns", ()))
    entries = {key: _entry(key, row, len(periods), where) for key, row in rows.items() if key not in KEYS}
    sram = tuple(_access(row, [*_SIZE], f"{where}: sram") for row in _list(rows.get("sram", []), f"{where}: sram"))
    sizes = [access.size for access in sram]
    if sizes != sorted(set(sizes)):
        raise ValueError(f"{where}: sram must list each size once, the smallest first; it has {sizes} bytes")
    dram = _access(rows["dram"], [], f"{where}: dram") if "dram" in rows else None
    if not entries and not sram and dram is None:
        raise ValueError(f"{where}: has no energy; add an entry such as fp32 = {{ add_pj = 0.9, multiply_pj = 3.7 }}")
    return EnergyTable(
        name, rows["citation"], rows["process"], entries, sram, dram, rows.get("scaled", False), rest, (), periods
    )


def _list(value: object, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(
            f"{where} must be a list of tables like {{ bytes = 32768, bits = 64, pj = 20 }}, got {value!r}"
        )
    return value


def _entry(key: str, row: object, periods: int, where: str) -> dict[str, Any]:
    """Picojoules of an entry's operations: a number each, or one for each period."""
    where = f"{where}: {key}"
    if not isinstance(row, Mapping):
        raise ValueError(f"{where} must be a table like {{ add_pj = 0.9, multiply_pj = 3.7 }}, got {row!r}")
    check_keys(row, (_MAC if "mac_pj" in row else _ADD).needed, [], where)
    if not periods:
        return {name.removesuffix("_pj"): positive_number(value, f"{where}: {name}") for name, value in row.items()}
    return {name.removesuffix("_pj"): tuple(values) for name, values in row.items()}


def _access(row: object, more: list[str], where: str) -> Access:
    if not isinstance(row, Mapping):
        raise ValueError(f"{where} must be of tables like {{ bits = 64, pj = 1300 }}, got {row!r}")
    ranged = "low_pj" in row
    keys = _RANGE if ranged else _ACCESS
    check_keys(row, [*more, *keys.needed], keys.optional, where)
    bits = positive_int(row["bits"], f"{where}: bits")
    figures = {name: positive_number(row[name], f"{where}: {name}") / bits for name in row if name.endswith("pj")}
    size = positive_int(row["bytes"], f"{where}: bytes") if "bytes" in more else None
    if not ranged:
        return Access(figures["pj"], figures.get("write_pj", figures["pj"]), None, size)
    if figures["high_pj"] < figures["low_pj"]:
        raise ValueError(f"{where}: high_pj is {row['high_pj']!r}, below low_pj, {row['low_pj']!r}")
    return Access(figures["low_pj"], figures["low_pj"], figures["high_pj"], size)


@cache
def _tables() -> Mapping[str, EnergyTable]:
    file = Path(__file__).parents[1] / "energy.toml"
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: table_of(name, row, f"{file.name}: {name}") for name, row in rows.items()}


def energy_table(table: str | EnergyTable) -> EnergyTable:
    """A table of energy.toml by its name, or the table that is given; ValueError with the names if there is none.

    >>> energy_table("45nm").entries["fp32"]["multiply"]
    3.7
    """
    if isinstance(table, EnergyTable):
        return table
    if table not in ENERGY_TABLES:
        raise ValueError(
            f"unknown energy table {table!r}; tables: {', '.join(ENERGY_TABLES)}, or a file of your own, whose name "
            "ends in .toml"
        )
    return _tables()[table]
