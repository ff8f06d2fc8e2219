"""What a design costs to rent or to buy, as a user states it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from softnum.tta.quantities import positive_number

__all__ = ["Cost", "read_costs"]


@dataclass(frozen=True)
class Cost:
    """Rent and purchase price of the hardware of one design, in dollars (or any one currency throughout).

    Parameters
    ----------
    rent_per_hour : float, optional
        Dollars for an hour.
    price : float, optional
        Dollars to buy it.

    Raises
    ------
    TypeError, ValueError
        If a number is not finite and above zero, or neither is given.

    Examples
    --------
    >>> Cost(rent_per_hour=2.48).price is None
    True
    """

    rent_per_hour: float | None = None
    price: float | None = None

    def __post_init__(self) -> None:
        if self.rent_per_hour is None and self.price is None:
            raise ValueError("a cost needs a rent per hour or a price")
        for what, value in (("rent per hour", self.rent_per_hour), ("price", self.price)):
            if value is not None:
                positive_number(value, f"the {what}")


def read_costs(designs: Iterable[str], rent: Iterable[str] = (), price: Iterable[str] = ()) -> Mapping[str, Cost]:
    """Read rents and prices as the command line takes them: ``2.48`` for every design, or ``design=2.48`` for one.

    Parameters
    ----------
    designs : iterable of str
        The labels of the study.
    rent, price : iterable of str
        Dollars per hour, and dollars; what names a design goes before what does not.

    Returns
    -------
    Mapping of str to Cost
        The designs that have a cost.

    Raises
    ------
    ValueError
        If a text is not of these forms, names no design of the study, or repeats what another said.

    Examples
    --------
    >>> costs = read_costs(["a", "b"], rent=["2.48", "b=1.2"], price=["b=8000"])
    >>> costs["a"].rent_per_hour, costs["b"]
    (2.48, Cost(rent_per_hour=1.2, price=8000.0))
    """
    designs = list(designs)
    rents, prices = _amounts("--rent", designs, rent), _amounts("--price", designs, price)
    found = {}
    for design in designs:
        pair = [amounts.get(design, amounts.get(None)) for amounts in (rents, prices)]
        if pair != [None, None]:
            found[design] = Cost(*pair)
    return found


def _amounts(option: str, designs: list[str], texts: Iterable[str]) -> dict[str | None, float]:
    amounts: dict[str | None, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        key = name.strip() if equals else None
        if key is not None and key not in designs:
            near = difflib.get_close_matches(key, designs, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{option} {text!r}: no design {key!r} in the study ({', '.join(designs)}){hint}")
        try:
            amount = positive_number(float(number), option)
        except ValueError:
            raise ValueError(
                f"{option} must be a number of dollars above 0, like 2.48, or design=2.48 for one design, got {text!r}"
            ) from None
        if key in amounts:
            raise ValueError(f"{option} is given twice for {key or 'every design'}: {amounts[key]:g} and {amount:g}")
        amounts[key] = amount
    return amounts
