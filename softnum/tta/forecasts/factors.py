"""Numbers of a forecast, with their intervals and sources, and how those of products are combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from softnum.tta.quantities import check_keys

__all__ = ["KINDS", "RULE", "Amount", "derived"]

#: Where an amount is from: a law or an estimate of a time, which have intervals; what a user or a cited table states; a
#: default; the amounts above it.
KINDS = ("law", "estimate", "stated", "assumed", "derived")
#: How intervals are combined.
RULE = (
    "the ends of a product are the products of the ends; two intervals of confidences c and d hold at once in at least "
    "c + d - 1 of cases, and then theirs does"
)
_KEYS = ("name", "unit", "value", "low", "high", "kind", "source")


@dataclass(frozen=True)
class Amount:
    """A number of a forecast.

    Parameters
    ----------
    name, unit : str
    value : float
    low, high : float or None
        The interval; `high` is infinite where there is no limit, and both are None where no interval is known.
    kind : str
        One of `KINDS`.
    source : str
        Who says so, or what it is computed from.

    Raises
    ------
    ValueError
        If the number is negative or not finite, or not in its interval.

    Examples
    --------
    >>> Amount("watts", "W", 700.0, None, None, "stated", "a data sheet").ends
    (700.0, 700.0)
    """

    name: str
    unit: str
    value: float
    low: float | None
    high: float | None
    kind: str
    source: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.name}: kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ValueError(f"{self.name} must be a finite number from 0 up, got {self.value!r}")
        low, high = self.ends
        if not low <= self.value <= high:
            raise ValueError(f"{self.name} of {self.value!r} does not lie in its interval, {low!r} to {high!r}")

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the number itself, twice, where none is known."""
        return self.value if self.low is None else self.low, self.value if self.high is None else self.high

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values; an interval without limit ends in "none"."""
        high = "none" if self.high is not None and math.isinf(self.high) else self.high
        return {name: getattr(self, name) for name in _KEYS} | {"high": high}

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str) -> Amount:
        """Read what `to_table` gave.

        Raises
        ------
        ValueError
            If a key is missing or unknown, or a value is not of its form.
        """
        check_keys(table, _KEYS, [], where)
        values = dict(table)
        values["high"] = math.inf if values["high"] == "none" else values["high"]
        for key in ("name", "unit", "kind", "source"):
            if not isinstance(values[key], str):
                raise ValueError(f"{where}: {key} must be a text, got {values[key]!r}")
        for key in ("value", "low", "high"):
            number = isinstance(values[key], (int, float)) and not isinstance(values[key], bool)
            if not number and not (values[key] is None and key != "value"):
                raise ValueError(f"{where}: {key} must be a number, got {values[key]!r}")
        return cls(**values)


def derived(name: str, unit: str, source: str, of: Callable[..., float], *parts: Amount) -> Amount:
    """What is computed from others, growing with each of them: its ends are computed from theirs.

    Parameters
    ----------
    name, unit, source : str
    of : callable
        Of one number for each part.
    parts : Amount

    Returns
    -------
    Amount

    Examples
    --------
    >>> steps = Amount("steps", "", 100.0, 90.0, 120.0, "law", "")
    >>> each = Amount("step", "s", 2.0, 1.0, 4.0, "estimate", "")
    >>> derived("time", "s", "steps x step", lambda a, b: a * b, steps, each).ends
    (90.0, 480.0)
    """
    value = of(*(part.value for part in parts))
    known = any(part.low is not None for part in parts)
    low, high = (of(*(part.ends[n] for part in parts)) if known else None for n in (0, 1))
    return Amount(name, unit, value, low, high, "derived", source)
