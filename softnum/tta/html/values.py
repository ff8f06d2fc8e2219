"""Numbers as a report shows them: three digits with a prefix, and words where there is no number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from softnum.tta.html.model import Cell

__all__ = [
    "amount",
    "count",
    "dollars",
    "interval",
    "metric",
    "percent",
    "ratio",
    "seconds",
    "share",
    "size",
    "spread_cell",
]

_PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
)


def amount(value: float, unit: str) -> str:
    """Three significant digits with an SI prefix.

    >>> amount(0.00345678, "s"), amount(48e9, "B/s"), amount(0, "J"), amount(999.9e-6, "s")
    ('3.46 ms', '48.0 GB/s', '0 J', '1.00 ms')
    """
    if value == 0:
        return f"0 {unit}"
    rounded = float(f"{value:.3g}")  # so that 999.9e-6 takes the prefix of 1e-3
    scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(rounded) >= s), _PREFIXES[-1])
    scaled = rounded / scale
    if not 1e-3 <= abs(scaled) < 1e4:
        return f"{value:.3g} {unit}"
    return f"{scaled:.{max(0, 2 - math.floor(math.log10(abs(scaled)) + 1e-9))}f} {prefix}{unit}"


def seconds(value: float) -> str:
    """Seconds."""
    return amount(value, "s")


def size(value: float) -> str:
    """Bytes, with decimal prefixes; whole below a thousand."""
    return f"{value:g} B" if value < 1000 else amount(value, "B")


def count(value: float) -> str:
    """A count, or the median of counts.

    >>> count(17.5), count(12345)
    ('17.5', '12,345')
    """
    return f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"


def ratio(value: float) -> str:
    """A factor."""
    return f"{value:.2f}" if value < 99.5 else f"{value:,.0f}"


def metric(value: float) -> str:
    """A value of the metric."""
    return f"{value:.4g}"


def percent(value: float) -> str:
    """A level of confidence."""
    return f"{100 * value:g} %"


def share(value: float) -> str:
    """A share of a whole."""
    return f"{100 * value:.1f} %"


def dollars(value: float) -> str:
    """An amount of money.

    >>> dollars(1234.5), dollars(2.48), dollars(4.97e-07)
    ('$1,234', '$2.48', '$4.97e-07')
    """
    if value >= 100:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.1 or value == 0 else f"${value:.3g}"


def interval(ends: Sequence[Any] | None, show: Callable[[float], str]) -> str:
    """An interval: nothing if it is a point, the unit once if both ends share it, words for an end that is not there.

    >>> interval((0.0005, 0.00071), seconds), interval((0.0005, None), seconds), interval(None, seconds)
    ('500 to 710 µs', 'from 500 µs, no limit', '')
    """
    if ends is None or ends[0] is None or ends[0] == ends[1]:
        return ""
    low = show(ends[0])
    if ends[1] is None:
        return f"from {low}, no limit"
    high = show(ends[1])
    if low == high:
        return f"about {low}"
    if " " in low and low.split(" ")[1:] == high.split(" ")[1:]:
        low = low.split(" ")[0]
    return f"{low} to {high}"


def spread_cell(
    spread: Mapping[str, Any] | None,
    ends: Sequence[Any] | None,
    show: Callable[[float], str],
    unit: str,
    none: str = "-",
) -> Cell:
    """Median with its interval below it, and both in full where someone points at it."""
    if spread is None:
        return Cell(none)
    if spread["median"] is None:
        return Cell("not reached", interval(ends, show))
    full = f"median {spread['median']!r}, least {spread['low']!r}, greatest {spread['high'] or 'not reached'}, {unit}"
    if ends is not None:
        full += f"; interval {ends[0]!r} to {'no limit' if ends[1] is None else repr(ends[1])}"
    return Cell(show(spread["median"]), interval(ends, show), full)
