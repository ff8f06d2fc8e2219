"""Units from their disclosures: what a file says is compared with what else it says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from softnum.inspect.disclosure.document import SCHEMA, facts_of
from softnum.inspect.disclosure.formats import FormatTable, read_formats
from softnum.inspect.disclosure.rows import Row, result_of
from softnum.mac.families import FAMILIES
from softnum.mac.mad import Unit
from softnum.mac.presets import Evidence
from softnum.mac.presets import unit as preset_of
from softnum.runtime.plain import plain

__all__ = ["read"]

_KEYS = (
    "schema", "preset", "computes", "family", "parameters", "inputs", "result", "order", "roundings", "definition",
    "inner", "formats", "evidence", "vectors",
)  # fmt: skip
_WORDS = ("words", "definition")  # for people: other words may say the same


@plain
def read(given) -> Unit:
    """The unit of a disclosure: its data, their text, or the path of a file of it; `softnum.unit` says what it "
    "raises."""
    data = _loaded(given)
    schema = data.get("schema")
    if schema != SCHEMA:
        raise ValueError(f"a disclosure has the schema {SCHEMA!r}, got {schema!r}")
    for key in _KEYS:
        if key not in data:
            raise ValueError(f"the disclosure has no {key!r}")
    unknown = [key for key in data if key not in _KEYS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no part of a disclosure (known: {', '.join(_KEYS)})")
    for key, kind in (("formats", dict), ("parameters", dict), ("evidence", dict), ("vectors", list)):
        if not isinstance(data[key], kind):
            raise ValueError(f"{key} must be {'a list' if kind is list else 'an object'}, got {data[key]!r}")
    formats = read_formats(data["formats"])
    unit = _unit(data, formats, "parameters")
    _compare(unit, data)
    _check_vectors(unit, data["vectors"])
    try:
        evidence = {name: Evidence(**row) for name, row in data["evidence"].items()}
        preset = None if data["preset"] is None else tuple(data["preset"][k] for k in ("name", "output", "disputed"))
        known = unit if preset is None else preset_of(preset[0], preset[1], disputed=preset[2])
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"evidence or preset: {error}") from None
    if known != unit:
        raise ValueError(f"preset: {preset[0]} is another unit, {known.expression}")
    vars(unit).update(evidence=evidence, preset=preset)
    return unit


def _loaded(given) -> dict:
    if isinstance(given, Mapping):
        return dict(given)
    text = Path(given).read_text(encoding="utf-8") if isinstance(given, os.PathLike) else given
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ValueError(f"a disclosure is JSON: {error}") from None
    except RecursionError:
        raise ValueError("a disclosure is JSON, and not as nested: this is too deep") from None
    if not isinstance(data, dict):
        raise ValueError(f"a disclosure is an object of JSON, got {type(data).__name__}")
    return data


def _object(pairs: list[tuple[str, object]]) -> dict:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is stated twice in one object")
    return made


def _unit(data: dict, formats: dict, where: str) -> Unit:
    """The unit that a family and its parameters make; formats in them by name."""
    kinds = {kind.__name__: kind for kind, family in FAMILIES.items() if family.disclosure is not None}
    name, given = data.get("family"), data.get("parameters")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"{where}: no family {name!r} of units is known (known: {', '.join(kinds)})")
    if not isinstance(given, dict):
        raise ValueError(f"{where}: parameters must be an object, got {given!r}")
    known = {f.name: f for f in fields(kind)}
    for name in known:
        if name not in given:
            raise ValueError(f"{where}: {name} of a {kind.__name__} is not stated")
    made = {}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{where}: a {kind.__name__} has no {name!r}")
        made[name] = _value(value, formats, f"{where}.{name}")
    try:
        return kind(**made)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _value(value, formats: dict, where: str):
    if isinstance(value, dict):
        return _unit(value, formats, where)
    if isinstance(value, list):
        return tuple(_value(x, formats, where) for x in value)
    return formats.get(value, value) if isinstance(value, str) else value


def _compare(unit: Unit, data: dict) -> None:
    """ValueError where the file says something else of its unit than follows from the parameters and formats."""
    table = FormatTable()
    derived = json.loads(json.dumps(facts_of(unit, table)))
    for key, value in derived.items():
        _same(value, data[key], key)
    named = table.to_dict()
    for name in data["formats"]:
        if name not in named:
            raise ValueError(f"formats.{name}: the unit has no such format")
    for name in named:
        if name not in data["formats"]:
            raise ValueError(f"formats: {name}, a format of the unit, is not stated")


def _same(derived, given, where: str) -> None:
    if where.rpartition(".")[2] in _WORDS:
        return
    if isinstance(derived, dict) and isinstance(given, dict):
        for key in derived.keys() | given.keys():
            if key not in given and key not in _WORDS:
                raise ValueError(f"{where}: {key} is not stated")
            if key not in derived:
                raise ValueError(f"{where}: {key!r} is no part of it")
        for key, value in derived.items():
            _same(value, given.get(key), f"{where}.{key}")
    elif derived != given or type(derived) is not type(given):
        raise ValueError(f"{where} is {derived!r} by the unit's parameters, and the file says {given!r}")


def _check_vectors(unit: Unit, vectors: list) -> None:
    for i, vector in enumerate(vectors):
        try:
            row, stated = Row.of_dict(vector), int(vector["result"], 16)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"vectors[{i}]: no vector: {type(error).__name__}: {error}") from None
        try:
            got = result_of(unit, row)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"vectors[{i}] ({row.shows}): {error}") from None
        if got != stated:
            raise ValueError(
                f"vectors[{i}] ({row.shows}): the unit of the parameters gives {got:#x}, and the file says "
                f"{vector['result']}"
            )
        _same(row.to_dict(unit, got), vector, f"vectors[{i}]")
