"""Quantities with units, and the checks of tables that every part of `softnum.tta` shares.

Prefixes are decimal SI: k = 10**3, M = 10**6, G = 10**9, T = 10**12. "16 GB/s" is 16 * 10**9 bytes per second. Binary
prefixes (KiB, GiB) and bits per second are refused rather than guessed at. Values are kept as exact fractions, so that
16 GB/s at 1 GHz is 16 bytes per cycle and nothing else.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

__all__ = [
    "InputTypeError",
    "bandwidth",
    "bit_rate",
    "byte_size",
    "check_keys",
    "duration",
    "flop_rate",
    "format_dollars",
    "format_joules",
    "format_seconds",
    "frequency",
    "positive_int",
    "positive_number",
]

#: units that seconds are shown in
SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_JOULES = ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"), (1e-12, "pJ"))


class InputTypeError(TypeError, ValueError):
    """A value of the wrong type in a table that a user wrote: their mistake, not a program's.

    >>> issubclass(InputTypeError, ValueError)
    True
    """


_NUMBER = r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
_FREQUENCY_UNITS = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_BANDWIDTH_UNITS = {"B/s": 1, "kB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12}
_SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BIT_UNITS = {"b/s": 1, "kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9, "Tb/s": 10**12}
_TIME_UNITS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
_FLOP_UNITS = {"FLOP/s": 1, "MFLOP/s": 10**6, "GFLOP/s": 10**9, "TFLOP/s": 10**12, "PFLOP/s": 10**15}


def _quantity(value: object, units: Mapping[str, int | Fraction], what: str) -> Fraction:
    accepted = ", ".join(units)
    if not isinstance(value, str):
        raise InputTypeError(
            f"{what} must be a string with a unit, got {value!r}; "
            f'write for example "1 {list(units)[-1]}" (accepted units: {accepted}; decimal SI prefixes)'
        )
    match = re.fullmatch(_NUMBER + r"\s*(?P<unit>\S+)", value.strip(), flags=re.ASCII)
    if match is None or match["unit"] not in units:
        unit = match["unit"] if match else ""
        near = [known for known in units if known.lower() == unit.lower()]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{what} {value!r} is not a number followed by a unit; accepted units: {accepted} "
            f"(decimal SI prefixes: k is 1000){hint}"
        )
    large = f"{what} {value!r} is too large; the limit is that of binary64, 1.7e308"
    if not math.isfinite(float(match["number"])):  # 1e999999999 is a number of a gigabit
        raise ValueError(large)
    # what binary64 takes for zero counts as zero, because 1e-999999999 has no fraction of sensible size
    result = Fraction(match["number"]) * units[match["unit"]] if float(match["number"]) else Fraction(0)
    if result <= 0:
        raise ValueError(f"{what} must be above zero, got {value!r}")
    if result > sys.float_info.max:
        raise ValueError(large)
    return result


def frequency(text: str, what: str = "clock") -> Fraction:
    """Read a clock frequency.

    Parameters
    ----------
    text : str
        A number and one of Hz, kHz, MHz, GHz (decimal SI).
    what : str
        The name of the quantity, for error messages.

    Returns
    -------
    Fraction
        The frequency in hertz, exactly.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        If it is not a positive number followed by an accepted unit.

    Examples
    --------
    >>> frequency("1.5 GHz")
    Fraction(1500000000, 1)
    """
    return _quantity(text, _FREQUENCY_UNITS, what)


def bandwidth(text: str, what: str = "bandwidth") -> Fraction:
    """Read a bandwidth in bytes per second.

    Parameters
    ----------
    text : str
        A number and one of B/s, kB/s, MB/s, GB/s, TB/s (decimal SI; capital B is bytes).
    what : str
        The name of the quantity, for error messages.

    Returns
    -------
    Fraction
        The bandwidth in bytes per second, exactly.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        If it is not a positive number followed by an accepted unit.

    Examples
    --------
    >>> bandwidth("16 GB/s")
    Fraction(16000000000, 1)
    """
    return _quantity(text, _BANDWIDTH_UNITS, what)


def bit_rate(text: str, what: str = "bandwidth") -> Fraction:
    """Read the rate of a network link in *bits* per second, as links are sold.

    Parameters
    ----------
    text : str
        A number and one of b/s, kb/s, Mb/s, Gb/s, Tb/s (decimal SI; small b is bits).
    what : str
        The name of the quantity, for error messages.

    Returns
    -------
    Fraction
        Bits per second, exactly: eight times what `bandwidth` would say.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        If it is not a positive number followed by an accepted unit; bytes are refused, not converted.

    Examples
    --------
    >>> bit_rate("10 Gb/s")
    Fraction(10000000000, 1)
    """
    if isinstance(text, str) and re.fullmatch(_NUMBER + r"\s*[kMGT]?B/s", text.strip(), flags=re.ASCII):
        bits = 8 * bandwidth(text, what)
        unit, scale = next(((u, n) for u, n in reversed(_BIT_UNITS.items()) if bits >= n), ("b/s", 1))
        raise ValueError(
            f"{what} {text!r} is in bytes, and links are in bits; the same is '{float(bits / scale):g} {unit}'"
        )
    return _quantity(text, _BIT_UNITS, what)


def duration(text: str, what: str = "latency") -> Fraction:
    """Read a time.

    Parameters
    ----------
    text : str
        A number and one of s, ms, us, ns.
    what : str
        The name of the quantity, for error messages.

    Returns
    -------
    Fraction
        Seconds, exactly.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        If it is not a positive number followed by an accepted unit.

    Examples
    --------
    >>> duration("5 us")
    Fraction(1, 200000)
    """
    return _quantity(text, _TIME_UNITS, what)


def byte_size(text: str, what: str = "memory") -> int:
    """Read a number of bytes.

    Parameters
    ----------
    text : str
        A number and one of B, kB, MB, GB, TB (decimal SI).
    what : str
        The name of the quantity, for error messages.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        If it is not a positive number followed by an accepted unit, or no whole number of bytes.

    Examples
    --------
    >>> byte_size("1.5 GB")
    1500000000
    """
    size = _quantity(text, _SIZE_UNITS, what)
    if size.denominator != 1:
        raise ValueError(f"{what} {text!r} is not a whole number of bytes")
    return int(size)


def flop_rate(text: str, what: str = "peak") -> Fraction:
    """Read a rate of floating-point operations; a multiplication and an addition are two.

    Parameters
    ----------
    text : str
        A number and one of FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s (decimal SI). Vendors write TFLOPS, and TOPS of
        integers.
    what : str
        The name of the quantity, for error messages.

    Returns
    -------
    Fraction
        Operations per second, exactly.

    Raises
    ------
    TypeError
        If `text` is not a string.
    ValueError
        If it is not a positive number followed by an accepted unit.

    Examples
    --------
    >>> flop_rate("15.7 TFLOP/s")
    Fraction(15700000000000, 1)
    """
    return _quantity(text, _FLOP_UNITS, what)


def positive_int(value: object, what: str) -> int:
    """Return `value` as an int of at least 1, or raise an error that names `what`.

    Examples
    --------
    >>> positive_int(32, "rows")
    32
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputTypeError(f"{what} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{what} must be at least 1, got {value}")
    return value


def positive_number(value: object, what: str) -> int | float:
    """Return `value` if it is a finite number above 0, or raise an error that names `what`.

    Examples
    --------
    >>> positive_number(8.25, "bits")
    8.25
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputTypeError(f"{what} must be a number, got {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{what} must be finite and above 0, got {value}")
    if value > sys.float_info.max:  # a whole number
        raise ValueError(f"{what} must be at most 1.7e308, the limit of binary64, got one of {len(str(value))} digits")
    return value


def check_keys(table: Mapping[str, Any], required: Iterable[str], optional: Iterable[str], where: str) -> None:
    """Check that a table has its required keys and no unknown one; an unknown key is told the nearest known one.

    Parameters
    ----------
    table : Mapping
        The table as read from a file.
    required, optional : iterable of str
        The keys it must and may have.
    where : str
        What the table is, for error messages.

    Raises
    ------
    TypeError
        If `table` is not a mapping.
    ValueError
        If a key is missing or unknown.

    Examples
    --------
    >>> check_keys({"clok": 1}, ["clock"], [], "[hardware]")
    Traceback (most recent call last):
        ...
    ValueError: [hardware] has the unknown key 'clok'; did you mean 'clock'? Known keys: clock
    """
    if not isinstance(table, Mapping):
        raise InputTypeError(f"{where} must be a table of key = value, got {table!r}")
    required, optional = list(required), list(optional)
    known = required + optional
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"{where} has the unknown key {key!r}; {hint}Known keys: {', '.join(known)}")
    missing = [key for key in required if key not in table]
    if missing:
        raise ValueError(f"{where} lacks {', '.join(map(repr, missing))}; required keys: {', '.join(required)}")


def format_joules(joules: float) -> str:
    """Joules to three digits with an SI prefix.

    >>> format_joules(0.00181)
    '1.81 mJ'
    """
    if math.isinf(joules):
        return "never"
    scale, unit = next(((s, u) for s, u in _JOULES if joules >= s), _JOULES[-1])
    return f"{_digits(joules / scale)} {unit}"


def format_dollars(dollars: float) -> str:
    """Dollars to the cent, or to three digits below one.

    >>> format_dollars(1234.5), format_dollars(4.976e-7)
    ('$1,234.50', '$4.98e-07')
    """
    if math.isinf(dollars):
        return "never"
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.3g}"


def format_seconds(seconds: float) -> str:
    """Seconds to three digits with an SI prefix.

    Examples
    --------
    >>> format_seconds(0.00345678), format_seconds(float("inf"))
    ('3.46 ms', 'never')
    """
    if math.isinf(seconds):
        return "never"
    scale, unit = next(((s, u) for s, u in SCALES if seconds >= s), SCALES[-1])
    return f"{_digits(seconds / scale)} {unit}"


def _digits(value: float) -> str:
    """Three significant digits, never in exponent form for ordinary sizes."""
    if value and abs(value) < 1000:
        return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return f"{value:,.0f}"
