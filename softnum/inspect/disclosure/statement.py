"""What a family of units says of one of them on its disclosure: a `Statement`, the part "disclosure" of its record."""

from __future__ import annotations

from dataclasses import dataclass, field

from softnum.inspect.disclosure.roundings import Rounded
from softnum.mac.family import family_of

__all__ = ["Paragraph", "Statement", "sum_rule", "product_rule", "statement_of"]


@dataclass(frozen=True)
class Paragraph:
    """A numbered step of a definition: its title, what it says, and a formula or lines of pseudocode, if it has "
    "some."""

    title: str
    text: str
    formula: str = ""

    def to_dict(self) -> dict[str, str]:
        """As plain data."""
        return {"title": self.title, "text": self.text, "formula": self.formula}


@dataclass(frozen=True)
class Statement:
    """All that the definition of a unit needs besides its formats.

    Attributes
    ----------
    steps : list of Paragraph
        The definition, in the order in which it is carried out; it calls roundings by their names, as in ``R_sum(x)``.
    roundings : dict of str to Rounded
        By the names that the steps use.
    order : dict
        Which numbers meet in which order, as plain data.
    period : int
        Products after which the order of summation repeats: test vectors are of up to so many, and of more.
    inner : Unit, optional
        A unit inside the unit, whose statement the page has too.
    beside_one, alone : tuple of int
        Exponents of products that test vectors have beside 1, and alone: where a rule changes.
    c_beside_one : tuple of int
        Exponents of C that they have beside a product of 1.
    together : int
        Products that are added exactly before any is cut off: vectors of blocks have one, and so many.
    """

    steps: list[Paragraph]
    roundings: dict[str, Rounded]
    order: dict = field(default_factory=dict)
    period: int = 1
    inner: object = None
    beside_one: tuple[int, ...] = ()
    alone: tuple[int, ...] = ()
    c_beside_one: tuple[int, ...] = ()
    together: int = 1


def statement_of(unit) -> Statement:
    """The statement of a unit, from the record of its family.

    Raises TypeError for a unit whose family has none.
    """
    make = family_of(unit).disclosure
    if make is None:
        raise TypeError(
            f"no disclosure of a {type(unit).__name__} is known: its family has registered none "
            "(softnum.mac.family.register(TheUnit, disclosure=...))"
        )
    return make(unit)


def product_rule() -> str:
    """The exact product of two values, in words."""
    return (
        "A product's sign is that of one factor times that of the other, also of zeros and infinities. A NaN factor "
        "gives "
        "NaN, infinity times zero gives NaN, infinity times anything else infinity."
    )


def sum_rule(mode: str, what: str = "Of two numbers") -> str:
    """The exact sum of two values, in words."""
    zero = "-0" if mode == "down" else "+0"
    return (
        f"{what}: a NaN gives NaN; infinities of both signs give NaN; an infinity else gives itself. A sum of zeros of "
        f"one sign is the zero of that sign; any other sum that is 0 is {zero}."
    )
