"""The parts of a Tile program as its text has them, and errors that show their place in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import dataclass_transform

__all__ = [
    "Access", "Assign", "Binary", "Call", "Choose", "Contract", "Declare", "Function", "If", "Like", "Name", "Number",
    "Place", "Source", "Switch", "TileError", "Unary", "Vector", "shown_number",
]  # fmt: skip


class TileError(ValueError):
    """What is wrong in a Tile program, with its line, its column and a caret below it.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.operator("function (X) -> (Y) { Y = X + Z; }")
    Traceback (most recent call last):
        ...
    softnum.tile.syntax.TileError: tile, line 1, column 31: 'Z' is no tensor here; there are X
        function (X) -> (Y) { Y = X + Z; }
                                      ^
    """


@dataclass(frozen=True)
class Source:
    """The text of a program, and what its errors call it."""

    text: str
    name: str

    def error(self, at: Place, message: str) -> TileError:
        """The error at a place."""
        lines = self.text.splitlines() or [""]
        line = lines[at.line - 1].replace("\t", " ") if at.line <= len(lines) else ""
        return TileError(
            f"{self.name}, line {at.line}, column {at.column}: {message}\n    {line}\n    {at.caret(line)}"
        )


@dataclass(frozen=True)
class Place:
    """Where something begins, both counted from 1, and how many characters it is long."""

    line: int = 1
    column: int = 1
    length: int = 1

    def caret(self, line: str) -> str:
        """The marks below a line of text."""
        return " " * (self.column - 1) + "^" * max(1, min(self.length, len(line) - self.column + 1))


NOWHERE = Place()


def shown_number(value: Fraction) -> str:
    """A number in an error message: in six digits."""
    try:
        return f"{float(value):g}"
    except OverflowError:
        digits = len(str(abs(value.numerator) // value.denominator)) - 1
        return f"{'-' if value < 0 else ''}1e{digits} or more"


@dataclass_transform(frozen_default=True)
def _part(cls):
    """A part of a program: a frozen dataclass, whose last field is its place in the text and tells none apart."""
    cls.__annotations__["at"] = "Place"
    cls.at = field(default=NOWHERE, compare=False, repr=False)
    return dataclass(frozen=True)(cls)


# -- expressions -------------------------------------------------------------------------------------------------------
@_part
class Number:
    """A literal, exactly."""

    value: Fraction


@_part
class Name:
    """A tensor, a size or an index variable."""

    name: str


@_part
class Access:
    """``A[i, k]``"""

    name: str
    indices: tuple


@_part
class Call:
    """``f(x, y)``"""

    function: str
    arguments: tuple


@_part
class Unary:
    """``-x`` or ``!x``"""

    operator: str
    operand: object


@_part
class Binary:
    """``x + y``; at: of the operator."""

    operator: str
    left: object
    right: object


@_part
class Choose:
    """``condition ? yes : no``"""

    condition: object
    yes: object
    no: object


@_part
class Vector:
    """``[0, 0.5, 1]``: a tensor of one dimension."""

    values: tuple


# -- statements --------------------------------------------------------------------------------------------------------
@_part
class Like:
    """The sizes of another tensor."""

    name: str


@_part
class Contract:
    """``C[i, j: M, N] = +(body), constraint < bound``; sizes: expressions, or `Like`."""

    name: str
    indices: tuple
    sizes: object
    aggregation: str
    body: object
    constraints: tuple = ()


@_part
class Assign:
    """``Y = expression``"""

    name: str
    value: object


@_part
class If:
    """``if (condition) { ... } else { ... }``; otherwise: None without else."""

    condition: object
    then: tuple
    otherwise: tuple | None


@_part
class Case:
    """``case low .. high:``; low or high may be None; point: ``case low:``."""

    low: Number | None
    high: Number | None
    point: bool
    body: tuple


@_part
class Switch:
    """``switch (subject) { case ...: ... default: ... }``"""

    subject: object
    cases: tuple
    default: tuple | None


@_part
class Declare:
    """``format A, B: "q4.8";``"""

    names: tuple[Name, ...]
    format: str


@_part
class Parameter:
    """An input: its name and sizes (names or numbers), None where they are left out."""

    name: str
    sizes: tuple | None


@dataclass(frozen=True)
class Function:
    """A whole program; gradient: the statements of its ``gradient { }``, or None."""

    inputs: tuple[Parameter, ...]
    outputs: tuple[Name, ...]
    body: tuple
    gradient: tuple | None


def parts_of(expression) -> tuple:
    """The expressions that an expression is directly made of; of an access its indices are none."""
    match expression:
        case Call():
            return expression.arguments
        case Unary():
            return (expression.operand,)
        case Binary():
            return expression.left, expression.right
        case Choose():
            return expression.condition, expression.yes, expression.no
    return ()


def walk(expression):
    """The expression and all within it, from left to right; of accesses without their indices."""
    yield expression
    for part in parts_of(expression):
        yield from walk(part)
