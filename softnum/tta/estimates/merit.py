"""CANDLE's figure of merit, as the lecture computes it.

Learning Systems 2018, lecture 10, slides CANDLE Figure of Merit and Example FOM Calculation.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction
from numbers import Rational
from pathlib import Path

from softnum.runtime.keys import POSITIVE, WHOLE, Key, Keys, either, schema_file, table_of
from softnum.tta.quantities import InputTypeError, check_keys, positive_int
from softnum.tta.text import read_text, toml_of

__all__ = ["figure_of_merit", "rate_schema", "read_rates", "units_per_day"]

_MACHINES = Keys({
    "hours": Key(POSITIVE, "to do one unit of work on one node", needed=True),
    "nodes": Key(WHOLE, "how many work", needed=True),
})  # fmt: skip
_RATE = either(POSITIVE, _MACHINES.schema())
_RATES = Keys({
    "old": Key(_RATE, "units per day, or hours and nodes", needed=True),
    "new": Key(_RATE, "units per day, or hours and nodes", needed=True),
})  # fmt: skip
_FILE = Keys({"unit": Key(table_of(_RATES.schema(), 1), "a table for each kind of work", needed=True)})


def rate_schema() -> dict:
    """The JSON Schema of a file of rates.

    >>> rate_schema()["required"]
    ['unit']
    """
    return schema_file("softnum rates", _FILE.schema())


def _exact(value: object, what: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (float, Rational)):
        raise InputTypeError(f"{what} must be a number, got {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{what} must be finite and above 0, got {value!r}")
    if value > sys.float_info.max:  # a whole number, or a fraction
        raise ValueError(f"{what} must be at most 1.7e308, the limit of binary64, got one of {len(str(value))} digits")
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def units_per_day(hours: float, nodes: int) -> Fraction:
    """Units of work that machines finish in a day if each takes some hours for one.

    Parameters
    ----------
    hours : int, float or Fraction
        To train one unit on one node; a float counts as the decimal number it is written as.
    nodes : int
        How many nodes work at it, each at units of its own.

    Returns
    -------
    Fraction
        24 / hours x nodes, exactly.

    Raises
    ------
    TypeError, ValueError
        If a number is not finite and above 0.

    Examples
    --------
    >>> units_per_day(0.25, 94000), float(units_per_day(60, 18688))
    (Fraction(9024000, 1), 7475.2)
    """
    return 24 / _exact(hours, "hours") * positive_int(nodes, "nodes")


def figure_of_merit(new_rates: Iterable[float], old_rates: Iterable[float]) -> Fraction:
    """CANDLE's figure of merit: the harmonic mean of the new rates over the harmonic mean of the old.

    Rates of unlike work are averaged by the harmonic mean, because it is the rate at which equal numbers of each get
    done; the mean of the ratios flatters a system that is very fast at one of them.

    Parameters
    ----------
    new_rates, old_rates : iterable of int, float or Fraction
        Units of work per day of each kind of work, in the same order. A float counts as the decimal number it is
        written as.

    Returns
    -------
    Fraction
        Exactly.

    Raises
    ------
    TypeError, ValueError
        If a rate is not finite and above 0, there is none, or their numbers differ.

    Examples
    --------
    The lecture's example; the mean of its ratios would be 125.75.

    >>> merit = figure_of_merit([564000, 4512000, 9024000], [7475, 74752, 37376])
    >>> merit, f"{float(merit):.2f}"
    (Fraction(68509785, 829426), '82.60')
    """
    new = [_exact(rate, f"new rate {i}") for i, rate in enumerate(new_rates, 1)]
    old = [_exact(rate, f"old rate {i}") for i, rate in enumerate(old_rates, 1)]
    if len(new) != len(old) or not new:
        raise ValueError(f"there must be as many new rates as old ones, at least one, got {len(new)} and {len(old)}")
    return Fraction(statistics.harmonic_mean(new)) / Fraction(statistics.harmonic_mean(old))


def read_rates(path: str | os.PathLike[str]) -> dict[str, tuple[Fraction, Fraction]]:
    """Read the rates of a figure of merit.

    Parameters
    ----------
    path : path-like
        TOML with a table for each kind of work: ``[unit.NAME]`` with ``old`` and ``new``, each either units per day or
        ``{ hours = 60, nodes = 18688 }``.

    Returns
    -------
    dict of str to (Fraction, Fraction)
        Old and new rate of each, in units per day.

    Raises
    ------
    FileNotFoundError, TypeError, ValueError
        If there is no such file, or it is not of that form; the message names the table and the key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rates.toml")
    ...     _ = file.write_text("[unit.P2]\\nold = 74752\\nnew = { hours = 0.5, nodes = 94000 }\\n")
    ...     read_rates(file)
    {'P2': (Fraction(74752, 1), Fraction(4512000, 1))}
    """
    path = Path(path)
    form = "[unit.NAME] with old and new: units per day, or { hours = 60, nodes = 18688 }"
    text = read_text(path, f"no file of rates {str(path)!r}; expected TOML with {form}")
    data = toml_of(text, str(path), f"expected {form}")
    check_keys(data, _FILE.needed, _FILE.optional, str(path))
    if not isinstance(data["unit"], dict) or not data["unit"]:
        raise InputTypeError(f"{path}: unit must hold a table for each kind of work, {form}")
    rates = {}
    for name, table in data["unit"].items():
        check_keys(table, _RATES.needed, _RATES.optional, f"{path}: [unit.{name}]")
        rates[name] = tuple(_rate(table[key], f"{path}: [unit.{name}] {key}") for key in _RATES)
    return rates


def _rate(value: object, where: str) -> Fraction:
    if not isinstance(value, Mapping):
        return _exact(value, where)
    check_keys(value, _MACHINES.needed, _MACHINES.optional, where)
    return units_per_day(_exact(value["hours"], f"{where} hours"), positive_int(value["nodes"], f"{where} nodes"))
