"""Areas of multipliers, and the equal-area variant of a design.

An area comes from the cited table, or from the design itself (``[hardware.unit]``), which has precedence. A format
that the table lacks, such as a posit, and a user's function have no area unless the design states one.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from softnum.tta.workloads.hardware import DesignPoint
from softnum.tta.workloads.unit import NODE, REFERENCES

__all__ = ["MultiplierArea", "NoArea", "area_source", "common_areas", "equal_area", "multiplier_areas"]


@dataclass(frozen=True)
class MultiplierArea:
    """Silicon area of one multiplier, with its source.

    Parameters
    ----------
    name : str
        Name of the entry in areas.toml, or of a library.
    um2 : float
        Area in square micrometres.
    kind : str
        "published" for the multiplier itself; "proxy" for the area of another multiplier used in its place; "stated"
        for what the design says of its own unit.
    reason : str
        The source, and for a proxy why it stands in and on which side it errs.

    Examples
    --------
    >>> area = multiplier_areas()["float32"]
    >>> area.name, area.um2, area.kind
    ('float32', 7700.0, 'published')
    """

    name: str
    um2: float
    kind: str
    reason: str


@cache
def multiplier_areas() -> Mapping[str, MultiplierArea]:
    """Return the cited table of multiplier areas, one entry for each format name (file areas.toml of this package).

    Returns
    -------
    Mapping of str to MultiplierArea

    Examples
    --------
    >>> multiplier_areas()["float32"].um2, multiplier_areas()["e5m2"].kind
    (7700.0, 'proxy')
    """
    published, areas = _published(), {}
    for name, row in _area_file()["formats"].items():
        base = published[row["area_of"]]
        kind, reason = ("proxy", row["reason"]) if row["proxy"] else ("published", row["reason"])
        areas[name] = MultiplierArea(name, base.um2, kind, f"area of {base.name}: {reason}")
    return areas


def area_source() -> str:
    """Return the citation of the published multiplier areas."""
    return _area_file()["source"]["citation"]


@cache
def _published() -> dict[str, MultiplierArea]:
    data = _area_file()
    return {
        name: MultiplierArea(name, float(row["um2"]), "published", data["source"]["citation"])
        for name, row in data["published"].items()
    }


@cache
def _area_file() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parents[1] / "areas.toml").read_text(encoding="utf-8"))


class NoArea(ValueError):
    """The design that would have to set the area has none.

    >>> issubclass(NoArea, ValueError)
    True
    """


def _own(point: DesignPoint) -> tuple[dict[str, MultiplierArea], str]:
    """A design's multiplier areas by what they may be compared in, best first: the table's process, and a library.

    And why there is none.
    """
    unit = None if point.hardware is None else point.hardware.unit
    found = {}
    if unit is not None and unit.ratio is not None:
        base = _published()[REFERENCES[unit.reference]]
        reason = f"{unit.ratio:.4g} of the {unit.reference} multiplier in {unit.library}, as the design states "
        found[NODE] = MultiplierArea(base.name, unit.ratio * base.um2, "stated", f"{reason}by {unit.source}")
    if unit is not None and unit.area_um2 is not None:
        stated = MultiplierArea(unit.library, unit.area_um2, "stated", f"{unit.library}, as stated by {unit.source}")
        found.setdefault(unit.library, stated)
    if found:
        return found, ""
    where = "[hardware.unit] may state the unit's, which softnum rtl area finds of a design in Verilog"
    if point.functions:
        return {}, f"no multiplier area is known for the user's function {', '.join(point.functions)}; {where}"
    table = multiplier_areas()
    unknown = [name for name in point.formats if name not in table]
    if unknown or not point.formats:
        what = ", ".join(unknown) if unknown else "its unnamed operand formats"
        return {}, f"no multiplier area is known for {what}; {where}"
    return {NODE: max((table[name] for name in point.formats), key=lambda area: area.um2)}, ""


def common_areas(points: Iterable[DesignPoint]) -> tuple[dict[str, MultiplierArea], dict[str, str]]:
    """Areas of designs' multipliers in one library: that in which most of them are known, the tables' if several are.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs on their stated hardware.

    Returns
    -------
    areas : dict of str to MultiplierArea
        By name of the design.
    left_out : dict of str to str
        Why there is none, for the other designs.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> areas, left_out = common_areas(load_reports().designs.values())
    >>> areas["c-wang-fp8"].um2, list(left_out)
    (1640.0, ['h-posit8'])
    """
    own = {point.name: _own(point) for point in points}
    known = Counter(library for found, _ in own.values() for library in found)
    if not known:
        return {}, {name: why for name, (_, why) in own.items()}
    common = max(known, key=lambda library: (known[library], library == NODE))
    areas, left_out = {}, {}
    for name, (found, why) in own.items():
        if common in found:
            areas[name] = found[common]
        else:
            kept = f"its area is of {', '.join(found)} and the others' of {common}, which do not compare"
            left_out[name] = why or f"{kept}; state the ratio to a reference multiplier in the same library"
    return areas, left_out


def equal_area(
    points: Iterable[DesignPoint], baseline: str
) -> tuple[list[DesignPoint], dict[str, str], dict[str, MultiplierArea]]:
    """Scale each design's array so that its multipliers take the area that the baseline's multipliers take.

    An assumption, not a measurement: nothing but multiplier area enters (no adders, accumulators, registers, wires, no
    change of clock). A design is charged for its own unit where it states one, else for its widest multiplier, because
    one array computes all its GEMMs. The ratio of rows to columns and the number of cores are kept; both sides are
    rounded down.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs on their stated hardware.
    baseline : str
        Name of the design whose array sets the area.

    Returns
    -------
    scaled : list of DesignPoint
        The designs whose multipliers' areas are known, on scaled arrays.
    left_out : dict of str to str
        Name and reason of each design that is left out, because neither it nor the table has its multiplier's area, or
        its area is of another library than the baseline's, or not one row or column of it fits.
    areas : dict of str to MultiplierArea
        Per scaled design, the area that was used.

    Raises
    ------
    ValueError
        If the baseline is not among the designs; `NoArea` if the area of its multiplier is not known.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> scaled, left_out, areas = equal_area(load_reports().designs.values(), "a-float32")
    >>> scaled[1].name, scaled[1].hardware.array, areas[scaled[1].name].um2
    ('b-binary16', (69, 69), 1640.0)
    """
    points = list(points)
    by_name = {point.name: point for point in points}
    if baseline not in by_name:
        near = difflib.get_close_matches(baseline, by_name, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"baseline {baseline!r} is not among the designs {', '.join(by_name)}{hint}")
    own = {point.name: _own(point) for point in points}
    base, why = own[baseline]
    if not base:
        raise NoArea(f"baseline {baseline!r} cannot set the area: {why}")
    cells = by_name[baseline].hardware.cells
    scaled, left_out, areas = [], {}, {}
    for name, (found, why) in own.items():
        common = next((scale for scale in found if scale in base), None)
        if common is None:
            kept = f"its area is of {', '.join(found)} and {baseline}'s of {', '.join(base)}, which do not compare"
            left_out[name] = why or f"{kept}; state the ratio to a reference multiplier in the same library"
            continue
        area, budget = found[common], cells * base[common].um2
        if common != next(iter(base)):
            area = replace(area, reason=f"{area.reason}; {baseline}'s is {base[common].um2:g} there")
        hardware = by_name[name].hardware
        factor = math.sqrt(budget / area.um2 / hardware.cells)
        array = tuple(math.floor(side * factor + 1e-9) for side in hardware.array)
        if not all(array):
            rows, columns = hardware.array
            left_out[name] = (
                f"{baseline}'s area holds less than one row or column of its {rows} x {columns} array at {area.um2:g} "
                "square micrometres a multiplier"
            )
            continue
        scaled.append(replace(by_name[name], hardware=replace(hardware, array=array)))
        areas[name] = area
    return scaled, left_out, areas
