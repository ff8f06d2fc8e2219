"""What a design says of its own multiply-add unit: the ``[hardware.unit]`` table of a design file.

    [hardware.unit]
    source = "softnum rtl area mitchell.v"   # where the figures come from; always stated
    library = "osu035_stdcells"              # the cell library, or the process, that the areas are of
    area_um2 = 16000                         # of the multiplier
    reference = "binary16"                   # a multiplier of the tables, mapped to the same library
    reference_area_um2 = 180000
    area_ratio = 0.0889                      # the two areas' ratio; also where only the ratio is known
    delay_ps = 5200                          # the longest path; said, but no time follows from it
    reference_delay_ps = 14000
    energy_pj = 0.3                          # of a multiply-add in the energy table's 45 nm process
    energy_ratio = 0.1                       # or of a multiplication, to the reference's in the same library
    energy_source = "..."                    # where the energy comes from, if not where the area does
    latency_cycles = 3                       # from operands to product
    initiation_interval = 1                  # cycles from one multiply-add to the next

*Areas* compare within one library only. A ratio to a reference multiplier is one of pure numbers, so it may stand
beside the published areas: a unit of 0.09 of a binary16 multiplier takes 0.09 of the area that the table has for one.
Square micrometres of another library are compared with those of designs that state the same library, and with nothing
else.

*Energies* stand beside those of memory, which are of a 45 nm process: ``energy_pj`` is of that, and of any other
process there is ``energy_ratio``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from softnum.runtime.keys import POSITIVE, TEXT, WHOLE, Key, Keys, one_of
from softnum.tta.quantities import InputTypeError, check_keys, positive_int, positive_number

__all__ = ["NODE", "REFERENCES", "UNIT_KEYS", "UnitHardware"]

#: The process of the published areas (areas.toml): micrometres of it need no reference.
NODE = "TSMC 45 nm"

#: Multipliers whose area and energy are published, by the names that a design file uses -> the tables' entries.
REFERENCES = {"int8": "int8", "int32": "int32", "binary16": "fp16", "binary32": "fp32"}

_TEXTS = ("source", "library", "reference", "energy_source")
_WHOLE = ("latency_cycles", "initiation_interval")
#: the keys of the table
UNIT_KEYS = Keys({
    "source": Key(TEXT, "where the figures come from", needed=True),
    "library": Key(TEXT, "the cell library, or the process, that the areas are of"),
    "area_um2": Key(POSITIVE, "of the multiplier, in square micrometres"),
    "reference": Key(one_of(("", *REFERENCES)), "a multiplier of the published tables, mapped to the same library"),
    "reference_area_um2": Key(POSITIVE, "its area"),
    "area_ratio": Key(POSITIVE, "the two areas' ratio"),
    "delay_ps": Key(POSITIVE, "the longest path, in picoseconds"),
    "reference_delay_ps": Key(POSITIVE, "the reference's"),
    "energy_pj": Key(POSITIVE, "picojoules of a multiply-add, in a 45 nm process"),
    "energy_ratio": Key(POSITIVE, "energy of a multiplication over the reference's"),
    "energy_source": Key(TEXT, "where the energy comes from, if not where the area does"),
    "latency_cycles": Key(WHOLE, "clock cycles from operands to product"),
    "initiation_interval": Key(WHOLE, "clock cycles from one multiply-add to the next"),
})  # fmt: skip
#: how far a ratio may be from the areas that it is of: they are written with three digits at least
_CLOSE = 0.005
_WHERE = "[hardware.unit]"
#: figures that mean nothing without others
_NEEDS = {
    "area_um2": ("library",),
    "reference_area_um2": ("area_um2", "reference"),
    "area_ratio": ("library", "reference"),
    "reference_delay_ps": ("delay_ps", "reference"),
    "energy_ratio": ("reference",),
}


@dataclass(frozen=True)
class UnitHardware:
    """Area, energy and timing of a design's own multiply-add unit, as the design states them.

    Parameters
    ----------
    source : str
        Where the figures come from.
    library : str
        The cell library or the process that the areas are of.
    area_um2 : float, optional
        Square micrometres of the multiplier in `library`.
    reference : str
        One of `REFERENCES`: the multiplier that the ratios are to.
    reference_area_um2 : float, optional
        Its area in `library`.
    area_ratio : float, optional
        Area over that of `reference`. Default: that of the two areas, where both are stated.
    delay_ps, reference_delay_ps : float, optional
        Longest paths, in picoseconds.
    energy_pj : float, optional
        Of a multiply-add, in the energy tables' process (45 nm).
    energy_ratio : float, optional
        Energy of a multiplication over that of `reference`.
    energy_source : str
        Where the energy comes from. Default: `source`.
    latency_cycles : int
        Clock cycles from operands to product.
    initiation_interval : int
        Clock cycles from one multiply-add to the next.

    Raises
    ------
    ValueError
        If it states no figure, or figures that contradict each other, or one that lacks what it is of.

    Examples
    --------
    >>> unit = UnitHardware("my synthesis", "osu035_stdcells", 16000, "binary16", 180000)
    >>> round(unit.ratio, 4), unit.latency_cycles
    (0.0889, 1)
    """

    source: str
    library: str = ""
    area_um2: float | None = None
    reference: str = ""
    reference_area_um2: float | None = None
    area_ratio: float | None = None
    delay_ps: float | None = None
    reference_delay_ps: float | None = None
    energy_pj: float | None = None
    energy_ratio: float | None = None
    energy_source: str = ""
    latency_cycles: int = 1
    initiation_interval: int = 1

    def __post_init__(self) -> None:
        where = _WHERE
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _WHOLE:
                positive_int(value, f"{where} {field.name}")
            elif field.name in _TEXTS:
                if not isinstance(value, str) or (field.name == "source" and not value.strip()):
                    raise InputTypeError(f"{where} {field.name} must be a text, got {value!r}")
            elif value is not None:
                positive_number(value, f"{where} {field.name}")
        if self.reference and self.reference not in REFERENCES:
            raise ValueError(
                f"{where} reference must be a multiplier of the tables, {', '.join(REFERENCES)}, got {self.reference!r}"
            )
        for key, others in _NEEDS.items():
            lacking = [other for other in others if not getattr(self, other)]
            if getattr(self, key) is not None and lacking:
                why = "areas compare within one library only" if "library" in lacking else "it is a figure beside it"
                raise ValueError(f"{where} {key} needs {' and '.join(lacking)}: {why}")
        self._check_figures(where)

    def _check_figures(self, where: str) -> None:
        if self.reference_area_um2 is not None:
            positive_number(self.area_um2 / self.reference_area_um2, f"{where} area_um2 over reference_area_um2")
        if self.reference_area_um2 is not None and self.area_ratio is not None:
            found = self.area_um2 / self.reference_area_um2
            if not math.isclose(found, self.area_ratio, rel_tol=_CLOSE):
                raise ValueError(
                    f"{where} area_ratio is {self.area_ratio:g}, and area_um2 over reference_area_um2 is "
                    f"{self.area_um2:g} / {self.reference_area_um2:g} = {found:.4g}; state one of the two"
                )
        if self.energy_pj is not None and self.energy_ratio is not None:
            raise ValueError(f"{where} states energy_pj and energy_ratio; state one of the two")
        if self.energy_pj is not None and self.library not in ("", NODE) and not self.energy_source:
            raise ValueError(
                f"{where} energy_pj stands beside energies of a 45 nm process, and library is {self.library!r}; state "
                "energy_ratio, or energy_source for an energy that is of 45 nm"
            )

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = _WHERE) -> UnitHardware:
        """Read the table of a design file.

        Raises
        ------
        TypeError, ValueError
            If a key is unknown, a value is not of its form, or the figures do not go together.

        Examples
        --------
        >>> UnitHardware.from_table({"source": "data sheet", "energy_pj": 0.3, "latency_cycles": 3}).energy_pj
        0.3
        """
        check_keys(table, UNIT_KEYS.needed, UNIT_KEYS.optional, where)
        if set(table) <= set(_TEXTS):
            raise ValueError(
                f"{where} states no figure; it may state {', '.join(n for n in UNIT_KEYS if n not in _TEXTS)}"
            )
        try:
            return cls(**table)
        except ValueError as error:
            raise type(error)(str(error).replace(_WHERE, where, 1)) from None

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back; what is not stated is left out."""
        stated = {field.name: getattr(self, field.name) for field in fields(self)}
        table = {name: value for name, value in stated.items() if value not in (None, "") and name not in _WHOLE}
        cycles = {name: stated[name] for name in _WHOLE if stated[name] > 1}
        return {**table, **(cycles or ({} if set(table) - set(_TEXTS) else {"latency_cycles": 1}))}

    @property
    def ratio(self) -> float | None:
        """Area over that of the reference multiplier in the same library; None where it is not known."""
        if self.area_um2 is not None and self.reference_area_um2 is not None:
            return self.area_um2 / self.reference_area_um2
        return self.area_ratio

    @property
    def late(self) -> int:
        """Clock cycles by which a product comes later than the next multiply-add can start."""
        return max(0, self.latency_cycles - self.initiation_interval)

    def describe(self) -> str:
        """What it states, in words, with the source; without energy, which energies say.

        >>> UnitHardware("data sheet", energy_pj=0.3, latency_cycles=3).describe()
        'products 3 cycles after their operands; by data sheet'
        """
        words = []
        if self.area_um2 is not None:
            words.append(f"{self.area_um2:g} um2 in {self.library}")
        if self.ratio is not None:
            words.append(f"area {self.ratio:.4g} of the {self.reference} multiplier's in {self.library}")
        if self.delay_ps is not None:
            against = "" if self.reference_delay_ps is None else f", the {self.reference}'s {self.reference_delay_ps:g}"
            words.append(f"longest path {self.delay_ps:g} ps{against} (the clock is as stated all the same)")
        if self.initiation_interval > 1:
            words.append(f"a multiply-add every {self.initiation_interval} cycles")
        if self.latency_cycles > 1:
            words.append(f"products {self.latency_cycles} cycles after their operands")
        return "; ".join([*words, f"by {self.source}"])
