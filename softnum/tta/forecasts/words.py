"""Forecasts in words: amounts with their units, and the result in two lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softnum.tta.forecasts.factors import Amount
from softnum.tta.quantities import format_dollars, format_joules, format_seconds

__all__ = ["amount_words", "interval_words", "result_lines", "value_words"]


def value_words(value: float, unit: str) -> str:
    """A number with its unit, to three digits or as a count.

    >>> value_words(86400 * 2.5, "s"), value_words(1536.2, "h"), value_words(5.4e9, "J"), value_words(0.98, "")
    ('2.50 days', '1,536 h', '1.50 MWh', '0.98')
    """
    if math.isinf(value):
        return "no limit"
    if unit == "s" and value >= 3600:
        return f"{_digits(value / 86400)} days" if value >= 86400 else f"{_digits(value / 3600)} hours"
    if unit == "s":
        return format_seconds(value)
    if unit == "$":
        return f"${value:,.0f}" if value >= 100 else format_dollars(value)
    if unit == "J":
        hours = value / 3600.0
        scale, name = next(((s, n) for s, n in ((1e9, "GWh"), (1e6, "MWh"), (1e3, "kWh")) if hours >= s), (1.0, ""))
        return f"{_digits(hours / scale)} {name}" if name else format_joules(value)
    text = f"{value:,.0f}" if value >= 1000 and (unit or value < 1e9) else f"{value:.3g}"
    return f"{text} {unit}".strip()


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.3g}".removesuffix(".")


def interval_words(amount: Amount) -> str:
    """The interval of an amount; nothing where none is known.

    >>> interval_words(Amount("time", "s", 1.0, 0.5, float("inf"), "derived", ""))
    '500 ms to no limit'
    """
    if amount.low is None:
        return ""
    return " to ".join(value_words(end, amount.unit) for end in amount.ends)


def amount_words(amount: Amount) -> tuple[str, str]:
    """The number, and its interval."""
    return value_words(amount.value, amount.unit), interval_words(amount)


def result_lines(
    network: str, design: str, system: str, metric: str, target: float, amounts: Sequence[Amount]
) -> list[str]:  # fmt: skip
    """What a forecast comes to: time first, then what it takes.

    Parameters
    ----------
    network, design, system, metric : str
    target : float
    amounts : sequence of Amount

    Returns
    -------
    list of str
    """
    by = {amount.name: amount for amount in amounts}

    def told(name: str) -> str:
        value, interval = amount_words(by[name])
        return f"{value} ({interval})" if interval else value

    devices = f"{by['devices'].value:,.0f} devices of {system}"
    lines = [f"{network} in {design} to a {metric} of {target:g} on {devices}: {told('time')}"]
    rest = [f"{told('device-hours')} of devices"]
    rest += [f"{name} {told(name)}" for name in ("cost", "energy") if name in by]
    return [*lines, f"  {'; '.join(rest)}"]
