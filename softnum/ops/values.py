"""Operations on values: float32 arrays of values of formats in, values of a format out, with no codes between.

What `softnum.ops.operation` computes on codes, for what calls one after the other and keeps values: training.
"""

from __future__ import annotations

import functools

import numpy as np

from softnum.arrays.environment import environment
from softnum.runtime import _core
from softnum.runtime.threads import for_ranges

__all__ = ["carried", "carry"]


@functools.lru_cache(maxsize=1024)
def carried(name: str, formats: tuple, out_fmt, rounding, overflow, stochastic_bits) -> _core.CarriedOperation | None:
    """What computes an operation on values of these formats, rounded once to out_fmt; None outside its domain.

    The domain is that of csrc/elementwise/carried.c: add, subtract, multiply, divide, fma and sqrt, of floats and fixed
    point that binary32 holds.

    >>> import softnum as sn
    >>> fmt = sn.format("e5m2")
    >>> add = carried("add", (fmt, fmt), fmt, "nearest_even", None, 32)
    >>> carry(add, (np.float32([1.0, 2.0]), np.float32([[0.125], [2.0]])), None)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if any(fmt.codec.core_format(fmt) is not fmt for fmt in (*formats, out_fmt)):
        return None
    operation = _core.CarriedOperation(
        name, formats, out_fmt, environment(out_fmt, rounding, overflow, stochastic_bits)
    )
    return operation if operation.ok else None


def carry(operation: _core.CarriedOperation, operands: tuple, key):
    """The results of operands that broadcast, by threads where they are long; None where one has no value."""
    if max(x.size for x in operands) < 2 * _core.GRAIN:
        return operation(operands, key)
    out = np.empty(np.broadcast_shapes(*(x.shape for x in operands)), np.float32)
    lacking = for_ranges(
        out.size, lambda start, stop: operation(operands, key, out, start, stop) is None, None, _core.GRAIN
    )
    return None if lacking else out
