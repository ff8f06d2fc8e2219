"""Calls of the core's ufuncs on codes: by a table, in threads, with flags only where something has to be looked at."""

from __future__ import annotations

import numpy as np

from softnum.arrays import lanes
from softnum.formats.modes import STOCHASTIC_MODES
from softnum.runtime import _core, gateway

__all__ = ["call_ufunc", "cannot_be_invalid", "check_flags", "check_shapes", "raise_no_code", "raise_undecided"]


def raise_no_code(fmt, what: str) -> None:
    """ValueError for a result that the format has no code for."""
    raise ValueError(f"{what}: the result is NaN or infinite, and {fmt} has no code for it")


def check_shapes(what: str, codes) -> None:
    """ValueError, which names the shapes of the operands alone, unless they broadcast."""
    shapes = [c.shape for c in codes]
    if shapes.count(shapes[0]) == len(shapes):
        return
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{what}: operands of shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def raise_undecided(fmt, what: str) -> None:
    """ValueError for a result that could not be decided."""
    raise ValueError(
        f"{what}: a result has more than 126 bits before it wraps around in {fmt} and cannot be rounded exactly; take "
        "overflow='saturate', or convert to a wider format first"
    )


def check_flags(flags, out_fmt, what: str, invalid="raise") -> np.ndarray:
    """The flags of results, as users know them.

    Raises where a result could not be decided or, if invalid is "raise", has no code.
    """
    met = int(np.bitwise_or.reduce(flags, axis=None))
    if met & _core.UNDECIDED:
        raise_undecided(out_fmt, what)
    if not met & _core.NO_CODE:
        return flags
    if isinstance(invalid, str):
        raise_no_code(out_fmt, what)
    return flags & np.uint8(_core.NO_CODE - 1)


def cannot_be_invalid(name, formats, out_fmt) -> bool:
    """Whether finite operands alone rule INVALID out."""
    return (
        name in ("convert", "add", "subtract", "multiply", "fma")
        and out_fmt.has_zero
        and not any(f.has_nan or f.infinities for f in formats)
    )


def call_ufunc(
    name, codes, formats, out_fmt, env, words, *, with_flags=False, what=None, invalid="raise", **ufunc_args
):
    """Run an operation's ufunc on code arrays: (codes, flags or None).

    Raises where a result has no code, if invalid is "raise"; else env states the code.
    """
    if any(gateway.is_device_array(c) for c in codes):
        gateway.refuse_device(what or name)
    handle = _core.intern_context(name, formats, out_fmt, env)
    width = np.result_type(out_fmt.storage_dtype, *(f.storage_dtype for f in formats))
    codes = [np.asarray(c) if c.dtype == width else c.astype(width) for c in codes]
    if len(codes) > 1:
        check_shapes(what or name, codes)
    size = max(c.size for c in codes)
    possible = None  # the flags of all results, where a table knows them
    if size >= lanes.LEAST_TABLE and env[0] not in STOCHASTIC_MODES:
        possible = _core.tabulate(name, handle, width.itemsize, size)
    evaluated = name in _core.ELEMENTARY
    need_flags = with_flags or (evaluated and (possible is None or possible & _core.UNDECIDED))
    if not out_fmt.has_nan and not need_flags:
        need_flags = not cannot_be_invalid(name, formats, out_fmt) if possible is None else possible & _core.NO_CODE
    ufuncs = _core.UFUNCS_FLAGS if with_flags else _core.UFUNCS_RARE if need_flags else _core.UFUNCS
    slow = evaluated and possible is None
    if ufunc_args or size < (lanes.LEAST_THREADED_EVALUATED if slow else lanes.LEAST_THREADED):
        results = ufuncs[name](*codes, words, handle, **ufunc_args)
    else:
        results = lanes.run_ufunc(ufuncs[name], codes, words, handle, slow)
    result, flags = results if need_flags else (results, None)
    if need_flags and (evaluated or not out_fmt.has_nan):
        flags = check_flags(flags, out_fmt, what or name, invalid)
    if width != out_fmt.storage_dtype:
        result = result.astype(out_fmt.storage_dtype)
    return np.asarray(result), np.asarray(flags) if with_flags else None
