"""NumPy's ufuncs on `softnum.Array` that are no single operation, and what ufuncs do besides being called.

``where=`` computes the elements that it names alone, and leaves the others of ``out`` as they are. ``at`` computes
element after element, in the C order of the indices, each rounded. ``outer`` is the operation of every pair. ``reduce``
and ``accumulate`` are there where NumPy has a function that is the same: `numpy.max`, `numpy.all`, sums under a unit.

>>> import numpy as np, softnum as sn
>>> a = sn.array([3.0, -0.5, 0.0], "e4m3fn")
>>> np.sign(a), np.multiply.outer(a[:2], a)[1]
(Array([ 1., -1.,  0.], e4m3fn), Array([-1.5 ,  0.25, -0.  ], e4m3fn))
>>> np.frexp(a)
(Array([ 0.75, -0.5 ,  0.  ], e4m3fn), array([2, 0, 0], dtype=int32))
"""

from __future__ import annotations

import numpy as np

from softnum.arrays.container import FUNCTIONS, UFUNC_METHODS, UFUNCS, Array, as_operand, computed, delivered
from softnum.arrays.conversion import decode
from softnum.arrays.refusals import refusal
from softnum.formats.names import format
from softnum.ops.arithmetic import absolute, compare, multiply, next_down, next_up, scalb
from softnum.ops.ulps import ulp

__all__ = ["first_array", "first_format", "truth"]

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "fmax": "nanmax", "fmin": "nanmin",
    "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_CHOOSE = ("maximum", "minimum", "fmax", "fmin")  # whose result is an operand: nothing is rounded


def truth(a) -> np.ndarray:
    """Where elements are not zero; a NaN is not.

    >>> import softnum as sn
    >>> truth(sn.array([1.0, -0.0, float("nan")], "e5m2"))
    array([ True, False,  True])
    """
    return np.asarray(_sides(a) != 0) if isinstance(a, Array) else np.asarray(a, bool)


def first_array(inputs) -> Array:
    """The first Array among operands."""
    return next(x for x in inputs if isinstance(x, Array))


def first_format(inputs):
    """Its format."""
    return first_array(inputs).format


def _sides(a: Array) -> np.ndarray:
    """On which side of zero elements lie: -1, 0, 1; 2 for NaN."""
    return np.asarray(compare(a, Array._of(np.array(0, np.uint8), format("q4.0"))))


def _exactly(values, fmt, what: str) -> Array:
    """Values that must be those of the format."""
    try:
        return as_operand(values, fmt)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _in_float64(a: Array, what: str) -> np.ndarray:
    try:
        return decode(a.codes, a.format)
    except ValueError:
        raise ValueError(
            f"{what}: a value of {a.format} is out of range for float64; use softnum.ops.logb, softnum.ops.scalb and "
            "softnum.ops.round_to_integral"
        ) from None


# -- ufuncs --------------------------------------------------------------------------------------------------------
def _sign(a):
    sides, codes = _sides(a), a.codes.copy()
    for value in (-1, 0, 1):
        if (at := sides == value).any():
            codes[at] = _exactly(value, a.format, "sign").codes
    return Array._of(codes, a.format)


def _nextafter(x, y):
    fmt = first_format((x, y))
    x, y = as_operand(x, fmt), as_operand(y, fmt)
    if x.format != y.format:
        raise ValueError(f"nextafter: the formats differ ({x.format}, {y.format}); convert with .astype")
    order = compare(x, y)
    codes = np.where(order == -1, next_up(x).codes, np.where(order == 1, next_down(x).codes, y.codes))
    return Array._of(np.where((order == 2) & (_sides(x) == 2), x.codes, codes), fmt)


def _spacing(a):
    units = ulp(a)
    return _exactly(np.where(_sides(a) == -1, -units, units), a.format, "spacing")


def _frexp(a):
    parts, exponents = np.frexp(_in_float64(a, "frexp"))
    return _exactly(np.asarray(parts), a.format, "frexp"), exponents


def _ldexp(a, n):
    if isinstance(n, Array):
        raise TypeError("ldexp: the exponents must be integers, not an Array")
    return scalb(a, n)


def _modf(a):
    parts, whole = np.modf(_in_float64(a, "modf"))
    return _exactly(np.asarray(parts), a.format, "modf"), _exactly(np.asarray(whole), a.format, "modf")


def _logical(function):
    return lambda *inputs: function(*map(truth, inputs))


# -- what ufuncs do besides being called -----------------------------------------------------------------------------
def _where(ufunc, *inputs, out=None, where):
    name = ufunc.__name__
    outs = (None,) if out is None else out
    if any(o is None for o in outs):
        raise refusal(f"numpy.{name} with where and without out", way_out="the other elements are those of out")
    mask = np.asarray(where)
    if mask.dtype != bool:
        raise TypeError(f"numpy.{name}: where must be an array of bool, got {mask.dtype}")
    inputs = [x if isinstance(x, Array) else np.asarray(x) for x in inputs]
    shape = np.broadcast_shapes(*(x.shape for x in inputs), mask.shape)
    if any(o.shape != shape for o in outs):
        raise ValueError(f"numpy.{name}: out has the shape {outs[0].shape}, the result {shape}")
    mask = np.broadcast_to(mask, shape)
    result = computed(name, tuple(np.broadcast_to(x, shape)[mask] for x in inputs))
    for o, part in zip(outs, result if isinstance(result, tuple) else (result,), strict=True):
        whole = o.copy()[mask]  # of the same kind, so that what cannot be written is told as elsewhere
        o[mask] = delivered(name, part, (whole,))
    return out if len(out) > 1 else out[0]


def _outer(ufunc, a, b, out=None):
    fmt = first_format((a, b))
    a, b = as_operand(a, fmt), as_operand(b, fmt)
    result = computed(ufunc.__name__, (a.reshape(a.shape + (1,) * b.ndim), b))
    return result if out is None else delivered(ufunc.__name__, result, out)


def _at(ufunc, a, indices, *others, out=None):
    name = ufunc.__name__
    if not isinstance(a, Array):
        raise TypeError(
            f"numpy.{name}.at: an Array cannot be written into an ndarray; convert it with a.astype, or use a.codes"
        )
    places = np.arange(a.size).reshape(a.shape)[indices]
    others = [np.broadcast_to(as_operand(x, a.format), places.shape).ravel() for x in others]
    places = places.ravel()
    # the elements of a place one after the other: all first ones, then all second ones
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) != 0]) if places.size else np.zeros(0, int)
    turn = np.empty(places.size, np.int64)
    turn[order] = np.arange(places.size) - np.repeat(starts, np.diff(np.r_[starts, places.size]))
    for now in np.split(np.argsort(turn, kind="stable"), np.cumsum(np.bincount(turn))[:-1]) if places.size else ():
        index = np.unravel_index(places[now], a.shape)
        a[index] = computed(name, (a[index], *(x[now] for x in others)))


def _reduce(ufunc, a, axis=0, out=None, **options):
    name = ufunc.__name__
    function = getattr(np, _REDUCTIONS.get(name, ""), None)
    if function not in FUNCTIONS:
        raise refusal(f"numpy.{name}.reduce")
    result = function(a, axis=axis, **options)
    return result if out is None else delivered(name, result, out)


def _accumulate(ufunc, a, axis=0, out=None, **options):
    name = ufunc.__name__
    if name == "add" and np.cumsum in FUNCTIONS:
        result = np.cumsum(a, axis, **options)
    elif name not in _CHOOSE or options:
        raise refusal(f"numpy.{name}.accumulate" + (f" with {', '.join(options)}" if options else ""))
    else:
        result = np.moveaxis(a, axis, 0).copy()
        for i in range(1, len(result)):
            result[i] = computed(name, (result[i - 1], result[i]))
        result = np.moveaxis(result, 0, axis)
    return result if out is None else delivered(name, result, out)


UFUNCS |= {
    "conjugate": Array.copy,
    "fabs": absolute,
    "frexp": _frexp,
    "ldexp": _ldexp,
    "logical_and": _logical(np.logical_and),
    "logical_not": _logical(np.logical_not),
    "logical_or": _logical(np.logical_or),
    "logical_xor": _logical(np.logical_xor),
    "modf": _modf,
    "nextafter": _nextafter,
    "positive": Array.copy,
    "sign": _sign,
    "spacing": _spacing,
    "square": lambda a: multiply(a, a),
}
UFUNC_METHODS |= {"accumulate": _accumulate, "at": _at, "outer": _outer, "reduce": _reduce, "where": _where}
