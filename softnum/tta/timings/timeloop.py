"""Timeloop's statistics: ``timeloop-mapper.stats.txt``, ``timeloop-model.stats.txt`` or ``...map+stats.xml``.

The text ends with "Summary Stats": cycles, energy, their product, and the energy of each multiply-add. Numbers are
rounded there, to two decimals as a rule; of those that state the energy the most exact one is taken, and all of them
have to agree. A text is of one layer; several one after another are the layers of an iteration. The XML is the state of
the model: the cycles and the energy of each level, unrounded, in pJ. Source: src/model/topology.cpp, buffer.cpp and
arithmetic.cpp, include/model/*.hpp of github.com/NVlabs/timeloop.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from softnum.tta.text import count, lines_of, number
from softnum.tta.timings.series import Options, Series

__all__ = ["is_timeloop", "read_timeloop"]

_BEGIN, _SUMMARY = "Buffer and Arithmetic Levels", "Summary Stats"
_UNITS = {"fJ": -15, "pJ": -12, "nJ": -9, "uJ": -6, "mJ": -3, "J": 0}
_FIELD = re.compile(r"(\s*)([^:=]+?)\s*[:=] *(.*?)\s*")
_SHARE = re.compile(r"\s+(.*\S)\s*= (\S+)\s*")  # of a level, or of a network such as "DRAM <==> buffer"
_AGAIN = "run Timeloop again"
_TIME = "cycles of each layer over --clock: the slowest level's, and the latency of networks"


def is_timeloop(text: str) -> bool:
    """Whether a text is Timeloop's statistics, as text or XML.

    >>> is_timeloop("Buffer and Arithmetic Levels\\n----------------------------\\n")
    True
    """
    return _is_xml(text) or re.search(rf"^({_BEGIN}|{_SUMMARY})\n-", text, re.MULTILINE) is not None


def _is_xml(text: str) -> bool:
    return "<boost_serialization" in text[:4096]


def read_timeloop(path: Path, text: str, options: Options) -> list[Series]:
    """Read the statistics of one design: the cycles and the energy of one iteration, of the layers in the file."""
    if options.clock is None:
        raise ValueError(
            f'{path}: Timeloop counts cycles and states no clock ("@1GHz" is for its GFLOPs alone); give that of the '
            'hardware: --clock "1 GHz"'
        )
    layers, energy = ([_xml(path, text)], _XML_ENERGY) if _is_xml(text) else (_texts(path, text), _TEXT_ENERGY)
    cycles = sum(layer.cycles for layer in layers)
    known = [layer.joules for layer in layers if layer.joules is not None]
    joules = sum(known, Fraction(0)) if len(known) == len(layers) else None
    detail = {
        "cycles": cycles,
        "column": "'Cycles'",
        "clock_hz": float(options.clock),
        "iterations": "one iteration, of the layer in the file"
        if len(layers) == 1
        else f"one iteration, of the {len(layers)} layers in the file",
        "time": f"{_TIME}; {energy if joules else 'its energy is not in the file, or rounded to 0'}",
    }
    if joules:
        detail["joules_known_to"] = float(sum((layer.within for layer in layers), Fraction(0)))
    seconds = [Fraction(cycles) / options.clock]
    return [
        Series(
            options.design,
            seconds,
            "simulated",
            f"Timeloop statistics {path}",
            detail,
            joules=[joules] if joules else None,
        )
    ]


@dataclass(frozen=True)
class _Layer:
    cycles: int
    joules: Fraction | None
    within: Fraction = Fraction(0)  # half a unit of the energy's last digit, in joules


# -- text --------------------------------------------------------------------------------------------------------------
_TEXT_ENERGY = "energy as the summary states it, with leakage"


@dataclass(frozen=True)
class _Stated:
    """A rounded number: where it stands, its value, and half a unit of its last digit."""

    line: int
    name: str
    value: Fraction
    half: Fraction

    def __str__(self) -> str:
        return f"{self.name}, line {self.line}"


def _stated(path: Path, line: int, name: str, text: str) -> _Stated:
    value = number(f"{path}, line {line}", name, text, positive=False)
    mantissa, _, power = text.strip().lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return _Stated(line, name, value, Fraction(10) ** (int(power or 0) - decimals) / 2)


def _times(stated: _Stated, factor: Fraction) -> _Stated:
    return _Stated(stated.line, stated.name, stated.value * factor, stated.half * factor)


def _texts(path: Path, text: str) -> list[_Layer]:
    lines = list(lines_of(text))
    starts = [at for at, (_, line) in enumerate(lines) if line.rstrip() == _BEGIN] or [0]
    if any(line.strip() for _, line in lines[: starts[0]]):
        starts[0] = 0
    bounds = [*starts, len(lines)]
    parts = [lines[begin:end] for begin, end in itertools.pairwise(bounds)]
    layers = [_text(path, part) for part in parts]
    if not text.endswith("\n"):
        raise ValueError(f"{path}, line {len(lines)}: the last line is cut off: {lines[-1][1]!r}; {_AGAIN}")
    return layers


def _text(path: Path, lines: list[tuple[int, str]]) -> _Layer:
    """One layer's statistics, of which each is compared with what else states it."""
    summaries = [at for at, (_, line) in enumerate(lines) if line.rstrip() == _SUMMARY]
    last = lines[-1][0]
    if len(summaries) != 1:
        what = f"{len(summaries)} parts {_SUMMARY!r}" if summaries else f"no part {_SUMMARY!r}: cut off?"
        raise ValueError(
            f"{path}, lines {lines[0][0]} to {last}: {what}; one for each {_BEGIN!r} is expected; {_AGAIN}"
        )
    levels, operations, topology = _before(path, lines[: summaries[0]])
    summary, shares = _summary(path, lines[summaries[0] :])
    line = lines[summaries[0]][0]
    for name in ("Cycles", "Energy"):
        if name not in summary:
            raise ValueError(
                f"{path}, line {line}: {_SUMMARY!r} has no {name!r}: the mapping was not evaluated, or the file is cut "
                f"off; {_AGAIN}"
            )
    at, cell = summary["Cycles"]
    cycles = count(f"{path}, line {at}", "Cycles", cell)
    for level_line, level in levels:
        if level > cycles:
            raise ValueError(
                f"{path}, line {at}: {cycles} cycles in all, where a level takes {level}, line {level_line}; {_AGAIN}"
            )
    energies = [_energy(path, *summary["Energy"], "Energy"), *topology]
    for computes, unit, total, items in shares:
        if total is None:
            raise ValueError(f"{path}, line {last}: no 'Total' under {unit[1]!r}, line {unit[0]}: cut off; {_AGAIN}")
        parts = sum((item.value for item in items), Fraction(0))  # networks that only write are in the total alone
        if parts - total.value > sum(item.half for item in [*items, total]):
            raise ValueError(
                f"{path}, line {total.line}: Total is {float(total.value):g} where the parts from line {items[0].line} "
                f"on add up to {float(parts):g}; {_AGAIN}"
            )
        energies.append(_times(total, computes * _unit(path, *unit)))
    if not shares:
        raise ValueError(f"{path}, line {last}: no energy of a multiply-add under {_SUMMARY!r}: cut off?; {_AGAIN}")
    best = min(energies, key=lambda stated: stated.half)
    for other in energies:
        if abs(other.value - best.value) > other.half + best.half:
            raise ValueError(
                f"{path}: {other} says {float(other.value):g} J, where {best} gives {float(best.value):g} J; {_AGAIN}"
            )
    _check_derived(path, summary, operations, cycles, best)
    return _Layer(cycles, best.value, best.half)


def _before(path: Path, lines: list[tuple[int, str]]) -> tuple[list[Any], tuple[int, str] | None, list[_Stated]]:
    """What stands above the summary: (line, cycles) of each level, the total operations, energies of the topology."""
    levels, operations, topology = [], None, []
    for at, line in lines:
        match = _FIELD.fullmatch(line)
        if not match:
            continue
        name, cell = match[2], match[3]
        if name in ("Cycles", "Max topology cycles"):
            levels.append((at, count(f"{path}, line {at}", name, cell, positive=False)))
        elif name == "Total ops":
            operations = (at, cell)
        elif name == "Total topology energy":
            topology.append(_energy(path, at, cell, name))
    return levels, operations, topology


def _summary(path: Path, lines: list[tuple[int, str]]) -> tuple[dict[str, tuple[int, str]], list[Any]]:
    """Fields of the summary, and of each kind of multiply-adds: their number, the unit, the total, its parts."""
    fields: dict[str, tuple[int, str]] = {}
    shares: list[Any] = []
    title = None
    for at, line in lines:
        match, share = _FIELD.fullmatch(line), _SHARE.fullmatch(line)
        if not line.strip():
            continue
        if title is not None:
            if match or "/" not in line:
                raise ValueError(
                    f"{path}, line {at}: expected a unit such as fJ/Compute, got {line.strip()!r}; {_AGAIN}"
                )
            shares.append([title, (at, line.strip()), None, []])
            title = None
        elif match and not match[1] and re.search("(Computes|MACCs)$", match[2]):
            title = count(f"{path}, line {at}", match[2], match[3])
        elif shares:
            if share is None or shares[-1][2] is not None:
                raise ValueError(f"{path}, line {at}: not of Timeloop's summary: {line.strip()!r}; {_AGAIN}")
            stated = _stated(path, at, share[1], share[2])
            if share[1] == "Total":
                shares[-1][2] = stated
            else:
                shares[-1][3].append(stated)
        elif match:
            if match[2] in fields:
                raise ValueError(
                    f"{path}, line {at}: a second {match[2]!r}, after line {fields[match[2]][0]}; {_AGAIN}"
                )
            fields[match[2]] = (at, match[3])
    if title is not None:
        raise ValueError(f"{path}, line {lines[-1][0]}: the file stops after the number of multiply-adds; {_AGAIN}")
    return fields, shares


def _unit(path: Path, line: int, unit: str) -> Fraction:
    name = unit.partition("/")[0]
    if name not in _UNITS:
        raise ValueError(f"{path}, line {line}: the unit of energy {unit!r} is none of {', '.join(_UNITS)}")
    return Fraction(10) ** _UNITS[name]


def _energy(path: Path, line: int, cell: str, name: str) -> _Stated:
    value, _, unit = cell.partition(" ")
    return _times(_stated(path, line, name, value), _unit(path, line, unit.strip()))


def _check_derived(
    path: Path, summary: dict[str, Any], operations: tuple[int, str] | None, cycles: int, energy: _Stated
) -> None:
    """Compare cycles and energy with the numbers that Timeloop computes of them."""
    if "EDP(J*cycle)" in summary:
        stated = _stated(path, summary["EDP(J*cycle)"][0], "EDP(J*cycle)", summary["EDP(J*cycle)"][1])
        # binary32 in between, which keeps seven digits
        if abs(stated.value - cycles * energy.value) > stated.half + cycles * energy.half + stated.value / 10**6:
            raise ValueError(
                f"{path}: {stated} is {float(stated.value):g}, where {cycles} cycles and {float(energy.value):g} J "
                f"({energy}) give {float(cycles * energy.value):g}; {_AGAIN}"
            )
    if "GFLOPs (@1GHz)" in summary and operations is not None:
        at, cell = summary["GFLOPs (@1GHz)"]
        stated = _stated(path, at, "GFLOPs (@1GHz)", cell)
        total = count(f"{path}, line {operations[0]}", "Total ops", operations[1])
        if abs(stated.value - Fraction(total, cycles)) > stated.half + stated.value / 10**6:
            raise ValueError(
                f"{path}: {stated} is {float(stated.value):g}, where {total} operations, line {operations[0]}, in "
                f"{cycles} cycles give {total / cycles:g}; {_AGAIN}"
            )


# -- XML ---------------------------------------------------------------------------------------------------------------
_XML_ENERGY = "energy without leakage, which the XML lacks and the .stats.txt beside it has"


def _xml(path: Path, text: str) -> _Layer:
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        line = getattr(error, "position", (1, 0))[0]
        raise ValueError(f"{path}, line {line}: not readable as XML ({error}): cut off? {_AGAIN}") from None
    topology = root.find("engine/topology_")
    if topology is None:
        raise ValueError(f"{path}: no engine/topology_, which is what Timeloop's map+stats.xml begins with; {_AGAIN}")
    classes: dict[str, str] = {}
    for entry in root.iter("px"):
        if "class_id" in entry.attrib:
            classes[entry.attrib["class_id"]] = entry.attrib.get("class_name", "")
    levels = _items(path, topology, "levels_")
    cycles, picojoules = [], Fraction(0)
    computing: dict[str, tuple[int, Fraction]] = {}  # by level: its cycles, and what is left of them without waiting
    for at, item in enumerate(levels, start=1):
        entry = _child(path, item, "px", f"levels_/item {at}")
        name = entry.findtext("specs_/LevelSpecs/level_name") or f"level {at}"
        kind = _class(entry, classes)
        if kind == "model::ArithmeticUnits":
            cycles.append(_whole(path, entry, "cycles_", name))
            if not any(entry.findtext(f"{kind}_computes_", "0").strip() != "0" for kind in ("gated", "skipped")):
                computing[name] = cycles[-1], Fraction(cycles[-1])
            picojoules += _number(path, entry, "energy_", name)
        elif kind == "model::BufferLevel":
            cycles.append(_whole(path, entry, "stats_/cycles", name))
            if entry.find("stats_/slowdown") is not None:
                computing[name] = cycles[-1], cycles[-1] * _number(path, entry, "stats_/slowdown", name)
            picojoules += _buffer(path, entry, name)
        else:
            raise ValueError(f"{path}: {name} is of the class {kind!r}, neither ArithmeticUnits nor BufferLevel")
    if not cycles or max(cycles) < 1:
        raise ValueError(f"{path}: no level has cycles: the mapping was not evaluated; {_AGAIN}")
    _check_levels(path, computing)
    idle = _networks(path, topology, classes)
    return _Layer(max(cycles), picojoules / 10**12 if idle else None)


def _check_levels(path: Path, computing: dict[str, tuple[int, Fraction]]) -> None:
    """Raise ValueError unless all levels wait for one computation: a buffer's cycles are those over its slowdown."""
    names = list(computing)
    for before, name in itertools.pairwise(names):
        (one, first), (other, second) = computing[before], computing[name]
        if abs(first - second) > 1 + max(first, second) / 10**9:  # rounded up to whole cycles
            raise ValueError(
                f"{path}: {before} has {one} cycles, {float(first):g} without its slowdown, and {name} {other}, "
                f"{float(second):g} without its own; they wait for one computation: one of them is wrong"
            )


def _class(entry: ElementTree.Element, classes: dict[str, str]) -> str:
    return classes.get(entry.attrib.get("class_id") or entry.attrib.get("class_id_reference", ""), "")


def _items(path: Path, parent: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """The items of a list or map, of which there have to be as many as it counts."""
    found = _child(path, parent, name, "topology_")
    items = found.findall("item")
    stated = _whole(path, found, "count", name)
    if stated != len(items):
        raise ValueError(f"{path}: {name} has {len(items)} items where its count is {stated}; {_AGAIN}")
    return items


def _child(path: Path, parent: ElementTree.Element, name: str, where: str) -> ElementTree.Element:
    found = parent.find(name)
    if found is None:
        raise ValueError(f"{path}: {where} lacks {name!r}; {_AGAIN}")
    return found


def _number(path: Path, parent: ElementTree.Element, name: str, where: str) -> Fraction:
    return number(f"{path}, {where}", name, (_child(path, parent, name, where).text or "").strip(), positive=False)


def _whole(path: Path, parent: ElementTree.Element, name: str, where: str) -> int:
    return count(f"{path}, {where}", name, (_child(path, parent, name, where).text or "").strip(), positive=False)


def _spaces(path: Path, parent: ElementTree.Element, name: str, where: str) -> list[Fraction]:
    """A number for each data space."""
    items = _child(path, parent, f"{name}/PerDataSpace", where).findall("item")
    return [number(f"{path}, {where}", name, (item.text or "").strip(), positive=False) for item in items]


def _buffer(path: Path, entry: ElementTree.Element, name: str) -> Fraction:
    """Energy of a buffer in pJ: for each data space that of an instance or cluster times those in use."""
    stats = _child(path, entry, "stats_", name)
    access, reduction, addresses, instances, clusters = (
        _spaces(path, stats, key, name)
        for key in ("energy", "temporal_reduction_energy", "addr_gen_energy", "utilized_instances", "utilized_clusters")
    )
    sizes = {len(part) for part in (access, reduction, addresses, instances, clusters)}
    if len(sizes) != 1:
        raise ValueError(f"{path}, {name}: energies and instances of {sorted(sizes)} data spaces; {_AGAIN}")
    rows = zip(access, reduction, addresses, instances, clusters, strict=True)
    return sum(((one + two) * times + three * groups for one, two, three, times, groups in rows), Fraction(0))


def _networks(path: Path, topology: ElementTree.Element, classes: dict[str, str]) -> bool:
    """Whether the networks take no energy, which the XML does not give in full; ValueError if they take time."""
    idle = True
    for at, item in enumerate(_items(path, topology, "networks_"), start=1):
        entry = item.find("second/px")
        name = item.findtext("first") or f"network {at}"
        if entry is None or _class(entry, classes) != "model::LegacyNetwork":
            raise ValueError(
                f"{path}: the network {name!r} is of a class whose latency the XML lacks; read the .stats.txt beside it"
            )
        for key in ("fill_latency", "drain_latency"):
            for cell in entry.findall(f"specs_/{key}/t_"):
                if number(f"{path}, {name}", key, (cell.text or "").strip(), positive=False):
                    raise ValueError(
                        f"{path}: the network {name!r} has a {key}, and how often it counts is not in the XML; read "
                        "the .stats.txt beside it"
                    )
        stats = _child(path, entry, "stats_", name)
        keys = [
            key for key in ("energy", "link_transfer_energy", "spatial_reduction_energy") if stats.find(key) is not None
        ]
        idle = idle and not any(any(_spaces(path, stats, key, name)) for key in keys)
    return idle
