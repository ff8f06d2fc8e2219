"""Tables on the device for operators: results of functions and of operations in custom formats, values, order."""

from __future__ import annotations

import numpy as np

from softnum.arrays.container import Array
from softnum.kernels.device.runtime import _cuda
from softnum.ops.custom import Operator, table_of
from softnum.ops.numpy_functions import isnan
from softnum.ops.operation import apply
from softnum.runtime import _core
from softnum.runtime.gateway import NoKernel

__all__ = ["NAN", "NO_CODE", "TABLE_BITS", "UNDECIDED", "custom_results", "order_of", "results"]

TABLE_BITS = 16  # of operands of elementary functions, which are looked up
UNDECIDED, NO_CODE = -2, -1  # in tables of results
NAN = 1 << 40  # in tables of order


def _every(fmt) -> Array:
    return Array._of(np.arange(1 << fmt.bits, dtype=fmt.storage_dtype), fmt)


@_cuda.kept
def results(name: str, fmt, out_fmt, options: tuple):
    """The results of an elementary function for all codes of a format, int64; below 0 where there is none."""

    def compute(name, codes, formats, out_fmt, env, words, invalid):
        handle = _core.intern_context(name, formats, out_fmt, env)
        width = np.result_type(out_fmt.storage_dtype, *(f.storage_dtype for f in formats))
        return _core.UFUNCS_FLAGS[name](*(c.astype(width) for c in codes), words, handle)

    found, flags = apply(name, (_every(fmt),), None, out_fmt=out_fmt, compute=compute, **dict(options))
    found = np.where(flags & _core.UNDECIDED, UNDECIDED, found.astype(np.int64))
    return _cuda.to_device(np.where(flags & _core.NO_CODE, NO_CODE, found))


@_cuda.kept
def custom_results(name: str, formats: tuple, fmt, rounding: str, overflow):
    """(the results of an operation into a custom format for all codes of its operands, whether there are all of them).

    int64, the first operand's code in front; NO_CODE where there is none. NoKernel where the table would be too large.
    """
    made = table_of(Operator(name, formats, fmt, rounding, overflow))
    if made is None:
        of = " and ".join(map(str, formats))
        raise NoKernel(
            f"no CUDA kernel computes {name} of {of} in {fmt}: it would look the result up, and tables are of one "
            f"operand of up to {TABLE_BITS} bits or two of up to 8"
        )
    found, lost = made
    table = np.where(np.False_ if lost is None else lost, np.int64(NO_CODE), found.astype(np.int64))
    return _cuda.to_device(table.reshape(-1)), lost is None


@_cuda.kept
def order_of(fmt):
    """Each code's place in a custom format's order, int64, from NAN on for NaNs; NoKernel if it is too wide."""
    if fmt.bits > TABLE_BITS:
        raise NoKernel(f"no CUDA kernel orders {fmt}, which has more than {TABLE_BITS} bits")
    return _cuda.to_device(np.where(isnan(_every(fmt)), NAN, 0) + fmt.order.astype(np.int64))
