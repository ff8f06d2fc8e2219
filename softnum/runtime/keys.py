"""The tables of TOML files as data: which keys each may have and what stands there.

A reader checks a file's keys by a `Keys`, and the JSON Schema of the file (``softnum schema``) is made of the same one,
so that neither knows a key that the other does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = [
    "ANY", "FLAG", "NUMBER", "POSITIVE", "TEXT", "WHOLE", "Key", "Keys", "either", "list_of", "one_of", "schema_file",
    "suggest", "table_of", "text",
]  # fmt: skip

#: JSON Schemas of values
ANY: dict[str, Any] = {}
FLAG = {"type": "boolean"}
NUMBER = {"type": "number"}
POSITIVE = {"type": "number", "exclusiveMinimum": 0}
TEXT = {"type": "string"}
WHOLE = {"type": "integer", "minimum": 1}


def text(pattern: str) -> dict:
    """A text that a regular expression matches somewhere."""
    return {"type": "string", "pattern": pattern}


def one_of(words: Iterable) -> dict:
    """One of some texts."""
    return {"enum": list(words)}


def suggest(words: Iterable[str], of: Mapping = TEXT) -> dict:
    """Some texts that an editor offers, of all that may stand there.

    >>> suggest(["up", "down"])
    {'anyOf': [{'enum': ['up', 'down']}, {'type': 'string'}]}
    """
    return either(one_of(words), of)


def either(*schemas: Mapping) -> dict:
    """What fits one of several schemas."""
    return {"anyOf": list(schemas)}


def list_of(value: Mapping, least: int = 0, most: int | None = None) -> dict:
    """A list of values."""
    counts = {"minItems": least} if least else {}
    return {"type": "array", "items": value, **counts, **({} if most is None else {"maxItems": most})}


def table_of(value: Mapping, least: int = 0) -> dict:
    """A table whose keys the user names.

    >>> table_of(TEXT)
    {'type': 'object', 'additionalProperties': {'type': 'string'}}
    """
    return {"type": "object", "additionalProperties": value, **({"minProperties": least} if least else {})}


class Key(NamedTuple):
    """What stands at a key.

    Parameters
    ----------
    value : Mapping
        The JSON Schema of its value.
    about : str
        What an editor shows of it.
    needed : bool
        Whether the table is nothing without it.
    """

    value: Mapping[str, Any] = ANY
    about: str = ""
    needed: bool = False


class Keys(Mapping[str, Key]):
    """The keys of a table.

    Parameters
    ----------
    keys : Mapping of str to Key
    others : Mapping, optional
        JSON Schema of the values of all other keys, where the user names these. None: there are no others.

    Examples
    --------
    >>> keys = Keys({"name": Key(TEXT, "what it is called", needed=True), "count": Key(WHOLE)})
    >>> list(keys), keys.needed, keys.optional, "conut" in keys
    (['name', 'count'], ('name',), ('count',), False)
    >>> keys.schema()["required"]
    ['name']
    """

    def __init__(self, keys: Mapping[str, Key], others: Mapping[str, Any] | None = None) -> None:
        self._keys, self.others = dict(keys), others

    def __getitem__(self, name: str) -> Key:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: object) -> bool:
        return self.others is not None or name in self._keys

    def __or__(self, more: Mapping[str, Key]) -> Keys:
        return Keys({**self._keys, **more}, self.others)

    def only(self, names: Iterable[str]) -> Keys:
        """Those of some names."""
        return Keys({name: self._keys[name] for name in names}, self.others)

    def without(self, *names: str) -> Keys:
        """All but those of some names."""
        return self.only(name for name in self if name not in names)

    @property
    def needed(self) -> tuple[str, ...]:
        """Keys that cannot be left out."""
        return tuple(name for name, key in self._keys.items() if key.needed)

    @property
    def optional(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name, key in self._keys.items() if not key.needed)

    def schema(self, *needed: str, **facts: object) -> dict:
        """The JSON Schema of the table.

        Parameters
        ----------
        needed : str
            Keys that cannot be left out here, beside those that never can.
        facts
            Other keywords of the schema.
        """
        properties = {name: _described(key) for name, key in self._keys.items()}
        required = [*dict.fromkeys((*self.needed, *needed))]
        found = {"type": "object", **facts, "properties": properties}
        if required:
            found["required"] = required
        return found | {"additionalProperties": False if self.others is None else self.others}


def _described(key: Key) -> dict:
    if not key.about:
        return dict(key.value)
    value = {"allOf": [key.value]} if "$ref" in key.value else key.value  # beside $ref nothing counts
    return {**value, "description": key.about}


def schema_file(title: str, schema: Mapping, definitions: Mapping[str, Mapping] | None = None) -> dict:
    """A JSON Schema of a whole file, of draft 7, which editors of TOML know.

    >>> list(schema_file("unit", Keys({}).schema()))
    ['$schema', 'title', 'type', 'properties', 'additionalProperties']
    """
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return {**head, **schema, **({"definitions": dict(definitions)} if definitions else {})}
