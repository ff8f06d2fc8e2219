"""Integers: floats to NumPy's integer types and back with IEEE 754's invalid results, and shifts of fixed point."""

from __future__ import annotations

from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from softnum.arrays.container import Array
from softnum.arrays.sources import DEFAULT_SOURCE
from softnum.formats.annotations import FormatLike, Formats, Key
from softnum.formats.checks import check_fixed
from softnum.formats.modes import Flags
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat
from softnum.ops.arithmetic import convert, scalb
from softnum.ops.operation import apply
from softnum.runtime import gateway

__all__ = ["from_integer", "shift", "to_integer"]


def _invalid_rule(invalid, fmt: FixedFormat) -> tuple[int, str]:
    """(what NaN becomes, the overflow rule: "saturate", or "wrap" where all that is out of range becomes the same)."""
    lowest, highest = int(fmt.min), int(fmt.max)
    if isinstance(invalid, Integral) and not isinstance(invalid, bool):
        if not lowest <= invalid <= highest:
            raise ValueError(f"to_integer: invalid={invalid} lies outside {lowest}..{highest}")
        return int(invalid), "wrap"
    rules = {
        "raise": (0, "saturate"),
        "riscv": (highest, "saturate"),
        "arm": (0, "saturate"),
        "x86": (lowest if fmt.signed else highest, "wrap"),
    }
    if invalid not in rules:
        raise ValueError(f"to_integer: invalid must be one of {', '.join(rules)} or an integer, got {invalid!r}")
    return rules[invalid]


def _count_invalid(flags) -> int:
    given = gateway.on_device("copy_to_host", flags) if gateway.is_device_array(flags) else flags
    return np.count_nonzero(given & Flags.INVALID)


def to_integer(
    a: ArrayLike,
    fmt: Formats | None = None,
    dtype: DTypeLike = np.int32,
    *,
    rounding: str = "nearest_even",
    exact: bool = True,
    invalid: str | float = "raise",
    return_flags: bool = False,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    stochastic_bits: int = 32,
    random: str = DEFAULT_SOURCE,
    flush_inputs: bool = False,
) -> Any:
    """Each value as an integer of a NumPy type, rounded once.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `fmt`)
    fmt : format or str, optional
        The codes' format.
    dtype : numpy integer type
        int8 to int64, or uint8 to uint64.
    rounding, key, random_bits, stochastic_bits, random, flush_inputs
        As in `softnum.add`. "toward_zero" is what C's casts do.
    exact : bool
        Whether a value that is no integer raises INEXACT (convertToIntegerExact...) or nothing (convertToInteger...).
    invalid : {"raise", "riscv", "arm", "x86"} or int
        What NaN, infinities and values that round to an integer out of range become. "raise": a ValueError. "riscv":
        the nearest bound, and the largest for NaN. "arm": the nearest bound, and 0 for NaN. "x86": the integer
        indefinite, the lowest of a signed type and the largest of an unsigned one. An integer: this, for all of them.
        The flag is INVALID alone, neither OVERFLOW nor INEXACT.
    return_flags : bool
        Whether to return (result, flags).

    Returns
    -------
    ndarray of dtype; with `return_flags`, a pair

    Raises
    ------
    ValueError
        If a value has no integer of the type, unless `invalid` states one.
    TypeError
        If dtype is no integer type.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.ops.to_integer(sn.array([2.5, -0.75, 100.0], "binary16"), dtype="int8")
    array([  2,  -1, 100], dtype=int8)
    >>> sn.ops.to_integer(sn.array([300.0, float("nan")], "binary16"), dtype="int8", invalid="riscv", return_flags=True)
    (array([127, 127], dtype=int8), array([16, 16], dtype=uint8))

    Source: IEEE 754-2019 clauses 5.8 and 7.2 i; the rules are those of RISC-V's FCVT, Arm's FCVT and x86's CVTSS2SI.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        raise TypeError(f"to_integer returns integers, not {dtype}")
    out_fmt = FixedFormat(8 * dtype.itemsize, 0, signed=dtype.kind == "i")
    nan, overflow = _invalid_rule(invalid, out_fmt)
    codes, flags = apply(
        "to_integer", (a,), fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, key=key,
        random_bits=random_bits, stochastic_bits=stochastic_bits, random=random, return_flags=True,
        flush_inputs=flush_inputs, invalid=nan, codes_out=False,
    )  # fmt: skip
    on_device = gateway.is_device_array(flags)
    if on_device and return_flags and not exact:
        raise TypeError("to_integer: exact=False is supported on the host only; copy the CUDA arrays there first")
    if invalid == "raise" and (bad := _count_invalid(flags)):
        raise ValueError(
            f"to_integer: {bad} of {prod(flags.shape)} values are NaN, infinite or out of range of {dtype} "
            f"({int(out_fmt.min)}..{int(out_fmt.max)}); state what they become with invalid="
        )
    result = codes if on_device else codes.view(dtype.newbyteorder("="))  # there it is of that type
    if not return_flags:
        return result
    return result, flags if exact else flags & ~np.uint8(Flags.INEXACT)


def from_integer(x: ArrayLike, out_fmt: FormatLike, **options: Any) -> Any:
    """Integers rounded to a format: codes.

    Parameters
    ----------
    x : array_like of integers
        Of up to 64 bits (`softnum.encode` takes longer ones, without flags).
    out_fmt : format or str
    **options
        As in `softnum.convert`.

    Returns
    -------
    ndarray of codes; with ``return_flags=True``, a pair

    Raises
    ------
    TypeError
        If x is not an array of integers.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.ops.from_integer([1, -2, 1000], "e4m3fn", overflow="saturate", return_flags=True)
    (array([ 56, 192, 126], dtype=uint8), array([0, 0, 5], dtype=uint8))

    Source: IEEE 754-2019 clause 5.4.1, convertFromInt.
    """
    if gateway.is_device_array(x):
        gateway.refuse_device()
    x = np.asarray(x)
    if x.dtype.kind not in "iu":
        raise TypeError(f"from_integer needs integers of up to 64 bits, got an array of {x.dtype}")
    x = np.ascontiguousarray(x.astype(x.dtype.newbyteorder("="), copy=False)).reshape(x.shape)
    source = FixedFormat(8 * x.dtype.itemsize, 0, signed=x.dtype.kind == "i")
    return convert(x.view(source.storage_dtype), source, out_fmt, **options)


def shift(a: ArrayLike, n: ArrayLike, fmt: Formats | None = None, *, rounding: str = "down", **options: Any) -> Any:
    """Fixed-point numbers shifted: ``a * 2**n``, rounded as an arithmetic shifter does, downward, unless stated.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `fmt`)
    n : array_like of integers
        To the left where positive, to the right where negative. Broadcast against a.
    fmt : fixed-point format or str, optional
    rounding : str
        "down" drops the bits that leave at the right; "nearest_up" adds half first.
    **options
        As in `softnum.ops.scalb`; what leaves at the left saturates, unless ``overflow="wrap"``.

    Returns
    -------
    ndarray of codes, or Array if a is one; with ``return_flags=True``, a pair

    Raises
    ------
    ValueError
        If the format is not fixed point.

    Examples
    --------
    >>> import softnum as sn
    >>> a = sn.array([-0.3125, 5.0], "q4.4")
    >>> sn.ops.shift(a, -1), sn.ops.shift(a, 1), sn.ops.shift(a, 1, overflow="wrap")
    (Array([-0.1875,  2.5   ], q4.4), Array([-0.625 ,  7.9375], q4.4), Array([-0.625, -6.   ], q4.4))
    """
    formats = (a.format if isinstance(a, Array) else format(fmt) if fmt is not None else None,)
    for each in (*formats, options.get("out_fmt")):
        if each is not None:
            text = "shift is for fixed point; {} is a float format (scalb multiplies by powers of two)"
            check_fixed(format(each), text)
    return scalb(a, n, fmt, rounding=rounding, **options)
