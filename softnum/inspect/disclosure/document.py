"""Disclosures: all that is needed to compute what a unit computes, as a page and as data that `softnum.unit` reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from softnum.formats.base import AnyFormat
from softnum.inspect.disclosure import families  # noqa: F401  registers what its families say
from softnum.inspect.disclosure.formats import FormatTable
from softnum.inspect.disclosure.rows import operand_formats, rows_of
from softnum.inspect.disclosure.statement import statement_of
from softnum.mac.mad import Unit
from softnum.runtime.plain import plain

__all__ = ["SCHEMA", "Disclosure", "disclose", "facts_of"]

#: The layout of the data; a number more where a reader of this one would read another wrongly.
SCHEMA = "softnum.unit/1"


@dataclass(frozen=True)
class Disclosure:
    """A complete definition of a unit, in words and formulas; made by ``unit.disclosure()``.

    It prints as a page in Markdown: every parameter of every format, the definition in numbered steps, every rounding,
    the evidence for each property of a preset, and test vectors. `to_json` gives the same for programs, and
    `softnum.unit` reconstructs the unit from it.

    >>> import softnum as sn
    >>> page = sn.unit("nvidia_v100_fp16").disclosure()
    >>> print(str(page).splitlines()[0])
    # Disclosure of nvidia_v100_fp16
    >>> sn.unit(page.to_json()) == sn.unit("nvidia_v100_fp16")
    True
    """

    unit: Unit

    @cached_property
    def _data(self) -> dict:
        return _data_of(self.unit)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, of the schema "softnum.unit/1": the page "Disclosures" of the documentation explains it.

        >>> import softnum as sn
        >>> data = sn.MadUnit("e6m9", operand="e5m2", chunk=64).disclosure().to_dict()
        >>> data["schema"], data["parameters"]["chunk"], data["formats"]["e6m9"]["emin"], len(data["vectors"]) > 12
        ('softnum.unit/1', 64, -30, True)
        """
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self._data, indent=1) + "\n"

    def __str__(self) -> str:
        from softnum.inspect.disclosure.page import page_of

        return page_of(self._data)

    def _repr_markdown_(self) -> str:
        return str(self)


def disclose(unit: Unit) -> Disclosure:
    """The body of ``unit.disclosure``, which says what it returns and raises."""
    made = Disclosure(unit)
    made._data  # noqa: B018  refuses what cannot be disclosed
    return made


@plain
def _data_of(unit: Unit) -> dict:
    table = FormatTable()
    data = facts_of(unit, table)
    preset = unit.preset
    return {
        "schema": SCHEMA,
        "preset": None if preset is None else dict(zip(("name", "output", "disputed"), preset, strict=True)),
        "computes": str(unit),
        **data,
        "formats": table.to_dict(),
        "evidence": {name: {"kind": e.kind, "source": e.source} for name, e in unit.evidence.items()},
        "vectors": [row.to_dict(unit, result) for row, result in rows_of(unit, statement_of(unit))],
    }


def facts_of(unit: Unit, table: FormatTable) -> dict[str, Any]:
    """What a page says of a unit, or of one inside another, besides its formats, which go to the table."""
    statement = statement_of(unit)
    return {
        "family": type(unit).__name__,
        "parameters": {f.name: _parameter(getattr(unit, f.name), table) for f in fields(unit)},
        "inputs": {
            "a": table.add(unit.operand[0]), "b": table.add(unit.operand[1]), "c": table.add(unit.c_format),
            "elements": [table.add(f) for f in operand_formats(unit)],
        },
        "result": table.add(unit.result),
        "order": statement.order,
        "roundings": {name: rounded.describe(name, table) for name, rounded in statement.roundings.items()},
        "definition": [step.to_dict() for step in statement.steps],
        "inner": None if statement.inner is None else facts_of(statement.inner, table),
    }  # fmt: skip


def _parameter(value, table: FormatTable):
    """A field of a unit as plain data: formats by name, a unit inside as its family and parameters."""
    if isinstance(value, AnyFormat):
        return table.add(value)
    if isinstance(value, tuple):
        return [_parameter(x, table) for x in value]
    if isinstance(value, Unit):
        own = {f.name: _parameter(getattr(value, f.name), table) for f in fields(value)}
        return {"family": type(value).__name__, "parameters": own}
    return value
