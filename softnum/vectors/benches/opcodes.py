"""Inputs of a design that say what it computes: their values for each operation, mode and format of mixed vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from softnum.formats.aliases import near
from softnum.formats.modes import rounding_name
from softnum.vectors.benches.ports import Design
from softnum.vectors.plans.operations import operation_name
from softnum.vectors.plans.spec import Spec

__all__ = ["COLUMNS", "Opcode", "opcodes_of"]

#: columns of mixed vectors that say what a line is of
COLUMNS = ("op", "mode", "format")


class Opcode(NamedTuple):
    """The values of ports where a column has a number."""

    column: str
    number: int
    values: Mapping[str, int]


def opcodes_of(texts: Sequence[str], spec: Spec, design: Design) -> tuple[Opcode, ...]:
    """What ``COLUMN.NAME:PORT=VALUE,...`` says of the ports of a design; later ones are stronger.

    Parameters
    ----------
    texts : sequence of str
        COLUMN is op, mode or format, NAME one of those of the spec (another name of an operation or mode does, too).
    spec : MixedSpec
    design : Design

    Returns
    -------
    tuple of Opcode

    Raises
    ------
    ValueError
        For text of another form, names and ports that there are not, and values that do not fit.

    Examples
    --------
    >>> from softnum.vectors import MixedSpec, VectorSpec
    >>> from softnum.vectors.benches.ports import stated_design
    >>> spec = MixedSpec.make([VectorSpec.make(op, "e5m2") for op in ("add", "multiply")])
    >>> design = stated_design("fpu", "a:in:8,b:in:8,opcode:in:3,result:out:8")
    >>> opcodes_of(["op.add:opcode=2", "op.mul:opcode=0b11"], spec, design)
    (Opcode(column='op', number=0, values={'opcode': 2}), Opcode(column='op', number=1, values={'opcode': 3}))
    """
    names = dict(zip(COLUMNS, getattr(spec, "names", ((),) * 3), strict=True))
    if texts and spec.op != "mixed":
        raise ValueError(f"--encode is of mixed vectors (--case, or several of --op), which say what a line is of; "
                         f"--tie keeps an input at a value for {spec.op}")  # fmt: skip
    inputs, out = {p.name: p.width for p in design.ports if p.direction == "in"}, []
    for text in texts:
        found = re.fullmatch(r"\s*(\w+)\.([^:\s]+)\s*:(.*)", text)
        if found is None or found[1] not in names:
            raise ValueError(f"--encode is COLUMN.NAME:PORT=VALUE,... with op, mode or format for COLUMN, got {text!r}")
        column, name = found[1], _canonical(found[1], found[2])
        if name not in names[column]:
            close = near(name, names[column]) or list(names[column])[:8]
            raise ValueError(f"--encode {text}: the vectors have no {column} {found[2]!r}; it is one of "
                             f"{', '.join(close)}")  # fmt: skip
        values = {}
        for part in found[3].split(","):
            port, equals, number = (piece.strip() for piece in part.partition("="))
            if port not in inputs:
                raise ValueError(f"--encode {text}: {design.top} has no input {port!r}; it has {', '.join(inputs)}")
            if not equals or not re.fullmatch(r"\d+|0x[\da-fA-F]+|0b[01]+", number, re.ASCII):
                raise ValueError(f"--encode {text}: {port} wants a whole number (12, 0x1F, 0b101), got {number!r}")
            if port in values:
                raise ValueError(f"--encode {text}: {port} is given twice; give it once")
            values[port] = int(number, 10 if number.isdecimal() else 0)
            if values[port] >> inputs[port]:
                raise ValueError(f"--encode {text}: {number} does not fit the {inputs[port]} bits of {port}")
        out.append(Opcode(column, names[column].index(name), values))
    return tuple(out)


def _canonical(column: str, name: str) -> str:
    """The name that the spec has for another's; the name itself where it is nobody's."""
    try:
        return {"op": operation_name, "mode": rounding_name}.get(column, str)(name)
    except (TypeError, ValueError):
        return name
