"""Errors in units in the last place."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.blocks import BlockArray, refuse_elementwise
from softnum.arrays.checks import check_codes, native
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode
from softnum.formats.annotations import Formats
from softnum.formats.names import format
from softnum.runtime import gateway
from softnum.runtime.plain import plain

__all__ = ["ulp", "ulp_error"]

_LOWEST = -(1 << 40)  # below all binades


def _format_of(a, fmt, what: str):
    if gateway.is_device_array(a):
        gateway.refuse_device(what)
    if isinstance(a, BlockArray):
        refuse_elementwise(what)
    if isinstance(a, Array):
        if fmt is not None:
            raise ValueError(f"{what}: an Array carries its format; leave fmt= out")
        fmt = a.format
    elif fmt is None:
        raise ValueError(
            f"{what}: plain encodings do not carry a format; give fmt=, or convert them with softnum.array"
        )
    fmt = format(fmt)
    if fmt.last_place is None:
        raise ValueError(f"{what}: a custom format ({fmt}) has no last place")
    return fmt


def _exponents(x: np.ndarray, fmt) -> np.ndarray:
    """The exponent of the last place at each float64 value: that of its binade, or of the lowest one."""
    binade = np.frexp(x)[1].astype(np.int64) - 1
    return fmt.last_place(np.where((x == 0) | ~np.isfinite(x), _LOWEST, binade))


@plain
def ulp(a: ArrayLike, fmt: Formats | None = None) -> np.ndarray:
    """The unit in the last place of each value: the distance of neighbours in its binade.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `fmt`)
    fmt : format or str, optional

    Returns
    -------
    ndarray of float64
        In the lowest binade and below, the smallest one; NaN for NaN and infinities.

    Raises
    ------
    ValueError
        If a value or a unit is not exact in float64.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.ops.ulp(sn.array([0.0, 1.0, 6.0], "e5m2"))
    array([1.52587891e-05, 2.50000000e-01, 1.00000000e+00])

    Source: J.-M. Muller, On the definition of ulp(x), 2005 (Goldberg's definition, extended to subnormals).
    """
    fmt = _format_of(a, fmt, "ulp")
    values = decode(a.codes if isinstance(a, Array) else check_codes(a, fmt), fmt)
    exponents = _exponents(values, fmt)
    if exponents.size and exponents.min() < -1074:
        raise ValueError(f"ulp: an ulp of {fmt} is smaller than float64's smallest value")
    return np.where(np.isfinite(values), np.ldexp(1.0, exponents), nan)


@plain
def ulp_error(a: ArrayLike, exact: Any, fmt: Formats | None = None) -> np.ndarray:
    """How far results lie from exact values, in units in the last place of the exact ones.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `fmt`)
        The results.
    exact : array_like of float, int or Fraction, or Array
        The values that they stand for, broadcast against a.
    fmt : format or str, optional

    Returns
    -------
    ndarray of float64
        ``(a - exact) / ulp``, rounded to nearest; ulp is that of the binade of ``abs(exact)``, as if exponents went on
        above, and the smallest one below. 0 where both are the same infinity, infinite where one is, NaN where one is
        NaN.

    Raises
    ------
    ValueError
        If formats are missing.

    Examples
    --------
    >>> import softnum as sn
    >>> from fractions import Fraction
    >>> sn.ops.ulp_error(sn.array([0.3125, 1.0], "e5m2"), [Fraction(1, 3), 1.125])
    array([-0.33333333, -0.5       ])
    """
    fmt = _format_of(a, fmt, "ulp_error")
    codes = a.codes if isinstance(a, Array) else check_codes(a, fmt)
    if gateway.is_device_array(exact):
        gateway.refuse_device()
    exact = decode(exact.codes, exact.format, object) if isinstance(exact, Array) else native(exact)
    if exact.dtype.kind not in "fiuO" or exact.dtype.itemsize > 8:
        raise TypeError(f"ulp_error: exact must be floats of up to 64 bits, integers or Fractions, got {exact.dtype}")
    if exact.dtype.kind == "f":
        try:
            values = decode(codes, fmt)
        except ValueError:
            pass
        else:
            return _float_errors(values, exact.astype(np.float64), fmt)
    values, exact = np.broadcast_arrays(decode(codes, fmt, object), exact.astype(object))
    out = np.empty(values.shape)
    for i, pair in enumerate(zip(values.flat, exact.flat, strict=True)):
        out.flat[i] = _error(*pair, fmt)
    return out


def _float_errors(values: np.ndarray, exact: np.ndarray, fmt) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        # the difference is rounded once, the scaling by a power of two is exact
        half = np.isinf(values - exact)  # it may be too large, its half is not
        difference = np.where(half, values / 2 - exact / 2, values - exact)
        errors = np.ldexp(difference, half - _exponents(exact, fmt))
    return np.where(np.isinf(values) & (values == exact), 0.0, errors)


def _error(value, exact, fmt) -> float:
    special = [isinstance(v, float) and (v != v or v in (inf, -inf)) for v in (value, exact)]
    if any(special):
        return 0.0 if value == exact else float(value if special[0] else 0) - float(exact if special[1] else 0)
    value, exact = Fraction(value), Fraction(exact)
    size, binade = abs(exact), _LOWEST
    if size:
        binade = size.numerator.bit_length() - size.denominator.bit_length()
        binade -= size < Fraction(2) ** binade
    error = (value - exact) / Fraction(2) ** int(fmt.last_place(binade))
    try:
        return float(error)
    except OverflowError:
        return inf if error > 0 else -inf
