"""Jamming, von Neumann's rounding: the last bit of a result is set, of an exact one too."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.container import Array
from softnum.arrays.conversion import encode
from softnum.formats.annotations import FormatLike
from softnum.formats.dispatch import of_format
from softnum.formats.modes import Flags
from softnum.formats.names import format
from softnum.runtime import gateway
from softnum.runtime.plain import plain

__all__ = ["jam"]


@plain
def jam(x: ArrayLike, fmt: FormatLike, *, overflow: str | None = None) -> Array:
    """Bring values to a format by jamming: cut off what has no place, and set the last bit of the code.

    No rounding mode is like it: a value of the format with an even code is no fixed point of it. So it is a function
    of its own, of values that are exact; an exact product or sum is had in a format that holds it.

    Parameters
    ----------
    x : array_like of numbers, any shape
        What `encode` takes.
    fmt : format or str
        Fixed point of up to 64 bits; or a float of up to 64 bits, with signs, -0, subnormal numbers and a largest value
        whose code is odd, as IEEE 754's.
    overflow : str, optional
        The overflow rule of fixed point. Floats stop at the largest value, and infinities stay.

    Returns
    -------
    Array
        Of `fmt`, in x's shape. Fixed point: x rounded down, zero too, and its last bit set, but for what saturates.
        Floats: x rounded toward zero, and its last bit set, but for zeros, infinities and NaNs.

    Raises
    ------
    TypeError
        For CUDA arrays.
    ValueError
        For another format, an overflow rule for a float, and where `encode` raises.

    Notes
    -----
    Source: Burks, Goldstine and von Neumann, "Preliminary discussion of the logical design of an electronic computing
    instrument", 1946. It is apytypes' ``QuantizationMode.JAM``; its ``JAM_UNBIASED``, which leaves exact results
    as they are, is the rounding mode ``"to_odd"``.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> sn.ops.jam([2.0, 2.5, -2.0, 0.0, 9.0, -9.0], "q4.0")
    Array([ 3.,  3., -1.,  1.,  7., -8.], q4.0)
    >>> sn.ops.jam([1.0, 1.3, -1.5, 0.0, np.inf], "e5m2")
    Array([ 1.25,  1.25, -1.75,  0.  ,   inf], e5m2)
    """
    if gateway.is_device_array(x):
        gateway.refuse_device()
    fmt = format(fmt)
    codes, jammed = _cut_off(fmt, x, overflow)
    return Array(codes | jammed.astype(codes.dtype), fmt)


@of_format
def _cut_off(fmt, x, overflow) -> tuple[np.ndarray, np.ndarray]:
    """Codes of x without what has no place, and which of them get their last bit."""
    if not (fmt.signed and fmt.negative_zero and fmt.lowest_binade == "subnormal" and fmt.max_code % 2):
        _refuse(fmt)
    if overflow is not None:
        raise ValueError(f"jam: a float saturates at its largest value; overflow={overflow!r} is for fixed point")
    codes, flags = encode(x, fmt, rounding="toward_zero", return_flags=True)
    number = ~(fmt.is_nan(codes) | fmt.is_infinite(codes))
    return codes, number & (~fmt.is_zero(codes) | (flags & Flags.INEXACT != 0))


@_cut_off.fixed
def _(fmt, x, overflow):
    codes, flags = encode(x, fmt, rounding="down", overflow=overflow, return_flags=True)
    return codes, (flags & Flags.OVERFLOW == 0) | (overflow == "wrap")


@_cut_off.wide
@_cut_off.custom
def _refuse(fmt, *_):
    raise ValueError(
        f"jam: {fmt} is neither fixed point nor a float of up to 64 bits with signs, -0, subnormal numbers and a "
        "largest value whose code is odd"
    )
