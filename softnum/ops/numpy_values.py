"""NumPy's functions on `softnum.Array` that compute values or compare them, each result rounded once at most."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softnum.arrays.container import FUNCTIONS, Array, as_operand
from softnum.arrays.conversion import decode, encode
from softnum.arrays.refusals import refusal
from softnum.ops.arithmetic import maximum, minimum, round_to_integral, subtract
from softnum.ops.numpy_functions import isinf, isnan, order_keys, signbit
from softnum.ops.numpy_ufuncs import first_format, truth

__all__ = ["number_keys"]


# -- comparisons ---------------------------------------------------------------------------------------------------
def number_keys(a: Array) -> np.ndarray:
    """`order_keys`, where zeros of both signs have one key, and all NaNs.

    >>> import softnum as sn
    >>> number_keys(sn.array([-0.0, 0.0, 1.0], "e5m2"))
    array([128, 128, 188], dtype=uint8)
    """
    keys = order_keys(a).copy()
    for at, value in ((~truth(a), 0), (isnan(a), float("nan"))):
        if at.any():
            keys[at] = order_keys(as_operand(value, a.format))
    return keys


def _array_equal(a1, a2, equal_nan=False):
    x, y = _values(a1), _values(a2)
    if x.shape != y.shape:
        return False
    same = x == y
    return bool((same | ((x != x) & (y != y)) if equal_nan else same).all())


def _array_equiv(a1, a2):
    try:
        shape = np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return False
    return _array_equal(*(np.broadcast_to(a if isinstance(a, Array) else np.asarray(a), shape) for a in (a1, a2)))


def _values(x) -> np.ndarray:
    """Numbers as float64, or as objects where one is beyond that."""
    if not isinstance(x, Array):
        return np.asarray(x)
    try:
        return decode(x.codes, x.format)
    except ValueError:
        return decode(x.codes, x.format, object)


def _isclose(a, b, rtol=1.0e-5, atol=1.0e-8, equal_nan=False):
    x, y = np.broadcast_arrays(_values(a), _values(b))
    if any(v.dtype.kind not in "fiuO" for v in (x, y)):
        raise TypeError("isclose needs numbers")
    close = np.asarray(x == y) | (((x != x) & (y != y)) if equal_nan else False)
    finite = [np.isfinite(v.astype(np.float64)) if v.dtype.kind != "O" else _is_number(v) for v in (x, y)]
    open_ = finite[0] & finite[1] & ~close
    if x.dtype != object and y.dtype != object:
        with np.errstate(all="ignore"):
            u, v = x.astype(np.float64), y.astype(np.float64)
            distance, allowed = np.abs(u - v), float(atol) + float(rtol) * np.abs(v)
            told = np.abs(distance - allowed) > 2.0**-48 * (distance + allowed) + 2.0**-1000
        close |= open_ & told & (distance < allowed)
        open_ &= ~told
    rtol, atol = Fraction(rtol), Fraction(atol)
    for index in zip(*np.nonzero(open_), strict=True):
        u, v = Fraction(x[index]), Fraction(y[index])
        close[index] = abs(u - v) <= atol + rtol * abs(v)
    return close[()]


def _is_number(x) -> np.ndarray:
    found = np.empty(x.shape, bool)
    found[...] = np.frompyfunc(lambda v: abs(v) < float("inf"), 1, 1)(x)
    return found


def _unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):
    if axis is not None:
        raise refusal("numpy.unique with axis", way_out="np.unique(a.codes, axis=0) compares rows of codes")
    a = ar.ravel()
    keys = number_keys(a)
    order = np.argsort(keys, kind="stable")
    new = np.ones(a.size, bool)
    new[1:] = np.diff(keys[order]) != 0
    if not equal_nan:
        new |= isnan(a)[order]
    index = order[new]
    results = [a[index]]
    if return_index:
        results.append(index)
    if return_inverse:
        inverse = np.empty(a.size, np.intp)
        inverse[order] = np.cumsum(new) - 1
        results.append(inverse.reshape(ar.shape))
    if return_counts:
        results.append(np.diff(np.r_[np.flatnonzero(new), a.size]))
    return tuple(results) if len(results) > 1 else results[0]


def _isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    fmt = first_format((element, test_elements))
    element, test = as_operand(element, fmt), as_operand(test_elements, fmt)
    if element.format != test.format:
        raise ValueError(f"isin: the formats differ ({element.format}, {test.format}); convert with .astype")
    found = np.isin(number_keys(element), number_keys(test)) & ~isnan(element)
    return ~found if invert else found


def _intersect1d(ar1, ar2, assume_unique=False):
    first = _unique(ar1)
    return first[_isin(first, ar2)]


def _setdiff1d(ar1, ar2, assume_unique=False):
    first = _unique(ar1)
    return first[~_isin(first, ar2)]


# -- values --------------------------------------------------------------------------------------------------------
def _clip(a, a_min=None, a_max=None, *, min=None, max=None):
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    a = a if low is None else maximum(a, as_operand(low, a.format))
    return a if high is None else minimum(a, as_operand(high, a.format))


def _round(a, decimals=0):
    if decimals:
        raise refusal(
            "numpy.round to decimals", way_out="np.round(np.asarray(a, np.float64), decimals) does it in float64"
        )
    return round_to_integral(a)


def _diff(a, n=1, axis=-1, prepend=None, append=None):
    ends = [None if end is None else as_operand(end, a.format) for end in (prepend, append)]
    shape = [*a.shape]
    shape[axis] = 1
    ends = [end if end is None or end.ndim else np.broadcast_to(end, tuple(shape)) for end in ends]
    parts = [part for part in (ends[0], a, ends[1]) if part is not None]
    a = np.moveaxis(np.concatenate(parts, axis) if len(parts) > 1 else a, axis, -1)
    if n < 0:
        raise ValueError(f"diff: n must be 0 or more, got {n}")
    for _ in range(n):
        a = subtract(a[..., 1:], a[..., :-1])
    return np.moveaxis(a, -1, axis)


def _nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    x, fmt = x.copy() if copy else x, x.format
    infinite, minus = isinf(x), signbit(x)
    for at, value in (
        (isnan(x), nan),
        (infinite & ~minus, fmt.max if posinf is None else posinf),
        (infinite & minus, fmt.min if neginf is None else neginf),
    ):
        if np.any(at):
            x[at] = value
    return x


def _lines(a, axis) -> tuple[Array, tuple[int, ...]]:
    """(the elements along the axes as the last axis, the axes counted from the first)."""
    axes = range(a.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
    axes = tuple(sorted(axes))
    rest = [d for d in range(a.ndim) if d not in axes]
    return a.transpose(*rest, *axes).reshape(*(a.shape[d] for d in rest), -1), axes


def _median(a, axis=None, *, overwrite_input=False, keepdims=False):
    lines, axes = _lines(a, axis)
    n = lines.shape[-1]
    if not n:
        raise ValueError(f"median: not defined for an empty Array, of shape {a.shape}")
    lines = np.sort(lines)
    low, high = lines[..., (n - 1) // 2], lines[..., n // 2]
    found = low if n % 2 else _midpoints(low, high)
    if (nan := isnan(lines).any(-1)).any():
        found = np.where(nan, float("nan"), found)
    return np.expand_dims(found, axes) if keepdims else found


def _nanmedian(a, axis=None, *, overwrite_input=False, keepdims=False):
    if not isnan(a).any():
        return _median(a, axis, keepdims=keepdims)
    lines, axes = _lines(a, axis)
    found = np.empty_like(a, shape=lines.shape[:-1])
    for index in np.ndindex(found.shape):
        line = lines[index]
        numbers = line[~isnan(line)]
        found[index] = _median(numbers) if numbers.size else float("nan")
    return np.expand_dims(found, axes) if keepdims else found


def _midpoints(x: Array, y: Array) -> Array:
    """The exact means of two, each rounded once."""
    u, v = decode(x.codes, x.format, object), decode(y.codes, y.format, object)
    means = np.empty(x.shape, object)
    for index in np.ndindex(x.shape):
        a, b = u[index], v[index]
        special = [isinstance(w, float) and w != 0 for w in (a, b)]  # infinities and NaN
        if any(special):
            means[index] = sum(float(w) for w, s in zip((a, b), special, strict=True) if s)
        elif a == b:
            means[index] = a
        else:
            means[index] = (Fraction(a) + Fraction(b)) / 2
    return Array._of(encode(means, x.format), x.format)


def _without_nan(name: str):
    extreme, other = (FUNCTIONS[getattr(np, n)] for n in ((name, "min") if name == "max" else (name, "max")))

    def function(a, axis=None, *, keepdims=False):
        nan = isnan(a)
        if not nan.any() or nan.all():
            return extreme(a, axis, keepdims=keepdims)
        found = extreme(np.where(nan, other(a[~nan]), a), axis, keepdims=keepdims)
        of_nan = nan.all(axis, keepdims=keepdims)
        return np.where(of_nan, float("nan"), found) if of_nan.any() else found

    return function


FUNCTIONS |= {
    np.allclose: lambda *args, **kwargs: bool(np.all(_isclose(*args, **kwargs))),
    np.array_equal: _array_equal,
    np.array_equiv: _array_equiv,
    np.clip: _clip,
    np.diff: _diff,
    np.fix: np.trunc,
    np.imag: lambda val: np.zeros_like(val),
    np.intersect1d: _intersect1d,
    np.isclose: _isclose,
    np.iscomplexobj: lambda x: False,
    np.isin: _isin,
    np.isneginf: lambda x: isinf(x) & signbit(x),
    np.isposinf: lambda x: isinf(x) & ~signbit(x),
    np.isrealobj: lambda x: True,
    np.median: _median,
    np.nan_to_num: _nan_to_num,
    np.nanmax: _without_nan("max"),
    np.nanmedian: _nanmedian,
    np.nanmin: _without_nan("min"),
    np.ptp: lambda a, axis=None, *, keepdims=False: subtract(
        np.max(a, axis, keepdims=keepdims), np.min(a, axis, keepdims=keepdims)
    ),
    np.real: lambda val: val,
    np.round: _round,
    np.setdiff1d: _setdiff1d,
    np.union1d: lambda ar1, ar2: _unique(np.concatenate([ar1.ravel(), as_operand(ar2, ar1.format).ravel()])),
    np.unique: _unique,
    np.unique_values: lambda x: _unique(x, equal_nan=False),
}
