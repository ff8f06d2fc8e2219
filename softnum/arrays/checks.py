"""What arrays a function takes and gives: checked here, with one wording."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from softnum.arrays.parse import same_numbers
from softnum.formats.names import format_of_dtype
from softnum.runtime import gateway

__all__ = ["can_hold", "check_axis", "check_codes", "check_out", "delivered", "float_array", "kept_codes", "native"]


def native(x) -> np.ndarray:
    """x as an array in this machine's byte order; an array of objects where NumPy would round a Python integer."""
    if type(x) is np.ndarray and x.dtype.isnative:
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("masked arrays are not supported: fill them first (numpy.ma.filled)")
    if gateway.is_device_array(x):
        gateway.refuse_device()
    array = np.asarray(x)
    if array.dtype.kind == "f" and not isinstance(x, (np.ndarray, np.generic, float)):
        objects = np.asarray(x, object)
        if any(isinstance(v, Integral) and abs(int(v)) > 2**53 for v in objects.flat):
            return objects
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def float_array(x, what: str) -> np.ndarray:
    """x as a float32 or float64 array; ValueError if a number is not exact in float64."""
    x = native(x)
    if x.dtype in (np.float32, np.float64):
        return x
    if x.dtype.kind not in "fiubO" or (x.dtype.kind == "f" and x.dtype not in (np.float16, np.float32, np.float64)):
        hint = ""
        if format_of_dtype(x.dtype):
            hint = " (softnum.Array takes it as it is)"
        elif x.dtype.kind in "US":
            hint = " (softnum.encode reads text)"
        raise TypeError(f"{what} takes arrays of float16, float32 or float64, got {x.dtype}{hint}")
    if x.dtype.kind == "O" and not all(isinstance(v, Real) for v in x.flat):
        raise TypeError(f"{what} takes real numbers, got an array of {x.dtype}")
    try:
        wide = x.astype(np.float64)
    except OverflowError:
        wide = None
    if (x.dtype.kind == "O" or x.dtype.itemsize == 8) and (wide is None or not same_numbers(x, wide)):
        raise ValueError(
            f"{what}: a number is not exact in float64; softnum.encode accepts integers and Fractions exactly"
        )
    return wide


def check_codes(codes, fmt, what="codes") -> np.ndarray:
    """The codes as an array of unsigned integers; ValueError if one does not fit the format's bits."""
    array = native(codes)
    if fmt.storage_dtype.names is not None:
        return fmt.code_array(array, what)
    if array.size == 0:
        return array.astype(fmt.storage_dtype)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{what} of {fmt} are unsigned integers, got an array of {array.dtype}; to convert numbers, use "
            "softnum.encode (encodings) or softnum.array (an Array)"
        )
    if array.dtype == fmt.storage_dtype and fmt.bits == 8 * array.dtype.itemsize:
        return array
    if array.size and (int(array.max()) >> fmt.bits or int(array.min()) < 0):
        bad = array.max() if int(array.max()) >> fmt.bits else array.min()
        raise ValueError(f"{what}: {int(bad)} is no code of {fmt}, which has {fmt.bits} bits")
    return array.astype(fmt.storage_dtype, copy=False)


def kept_codes(codes, fmt, what="codes"):
    """The codes as an Array keeps them: `check_codes`, and those of a CUDA array where they lie."""
    if gateway.is_device_array(codes):
        return gateway.on_device("check_codes", codes, fmt, what)
    return check_codes(codes, fmt, what)


def check_axis(what: str, axis, ndim: int, name: str = "axis") -> int:
    """The axis, counted from the first; NumPy's AxisError, which is a ValueError and an IndexError, if it is none."""
    whole = type(axis) is int or (isinstance(axis, Integral) and not isinstance(axis, bool))
    if not whole or not -ndim <= axis < ndim:
        known = f" (-{ndim} to {ndim - 1})" if ndim else ""
        raise np.exceptions.AxisError(
            f"{what}: {name}={axis!r} is out of range for an array of {ndim} dimensions{known}"
        )
    return int(axis) % ndim


def check_out(what: str, out, shape, dtype) -> None:
    """ValueError unless out is None or an array that can take the result."""
    if out is None:
        return
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"{what}: out must be an array of shape {shape} and type {np.dtype(dtype)}, got {got}")
    if not out.flags.writeable:
        raise ValueError(f"{what}: out is read-only")


def can_hold(out, source) -> bool:
    """Whether a kernel may write its results for the contiguous source straight into out."""
    if out is None or not (out.flags.c_contiguous and out.flags.aligned and out.dtype.isnative):
        return False
    same = out.dtype == source.dtype and out.ctypes.data == source.ctypes.data
    return same or not np.may_share_memory(out, source)


def delivered(result, out):
    if out is None:
        return result
    out[...] = result
    return out
