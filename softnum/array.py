"""Array: codes and their format in one container, with NumPy's operators and functions where they are defined."""

from __future__ import annotations

import numpy as np

from softnum.names import format
from softnum.values import check_codes, decode, encode

__all__ = ["Array", "array"]


# NumPy's name -> softnum's; minimum and maximum are those of IEEE 754-2019 9.6 (a NaN wins), fmin and fmax the others
_UFUNCS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "negative": "negate",
    "absolute": "absolute", "sqrt": "sqrt", "copysign": "copysign", "minimum": "minimum", "maximum": "maximum",
    "fmin": "minimum_number", "fmax": "maximum_number", "rint": "round_to_integral",
    "less": "less", "less_equal": "less_equal", "equal": "equal", "not_equal": "not_equal", "greater": "greater",
    "greater_equal": "greater_equal",
}  # fmt: skip
# which results of softnum.compare make the predicate true
_COMPARISONS = {
    "less": (-1,), "less_equal": (-1, 0), "equal": (0,), "not_equal": (-1, 1, 2), "greater": (1,),
    "greater_equal": (0, 1),
}  # fmt: skip


class Array:
    """Codes of one format.

    Arithmetic rounds to nearest even into the operands' common format; for another mode or result format use
    `softnum.add` and its like. Operands of different formats raise. ``np.asarray(a)`` gives float64.

    Parameters
    ----------
    codes : array_like of unsigned integers, any shape
        Kept, not copied, where the type is already the format's `storage_dtype`.
    fmt : format or str

    Raises
    ------
    ValueError
        If a code does not fit the format's bits.

    Examples
    --------
    >>> import softnum as sn
    >>> a = sn.array([1.0, 2.5], "e5m2")
    >>> a + a
    Array([2., 5.], e5m2)
    >>> a.codes
    array([60, 65], dtype=uint8)
    """

    __slots__ = ("codes", "format")
    __array_priority__ = 1000

    def __init__(self, codes, fmt) -> None:
        self.format = format(fmt)
        self.codes = check_codes(codes, self.format)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of codes."""
        return self.codes.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.codes.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.codes.size

    def astype(self, fmt, **options) -> Array:
        """Convert to another format (options as in `softnum.convert`).

        >>> import softnum as sn
        >>> sn.array(3.3, "binary16").astype("e5m2")
        Array(3.5, e5m2)
        """
        from softnum.ops import convert

        return convert(self, None, fmt, **options)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("the values of an Array are computed: they cannot be had without a copy")
        target = np.dtype(np.float64 if dtype is None else dtype)
        if target.kind not in "fO":
            raise TypeError(f"an Array becomes an array of floats or objects, not of {target}")
        return decode(self.codes, self.format, target)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from softnum import ops

        name = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or kwargs or name is None:
            extra = f" with {', '.join(kwargs)}" if kwargs else ""
            raise TypeError(
                f"numpy.{ufunc.__name__}{'' if method == '__call__' else '.' + method}{extra} is not defined for "
                "softnum.Array; use softnum's own functions, or np.asarray(a) for float64 values"
            )
        if name in _COMPARISONS:
            return inputs[0]._compare(inputs[1], name) if isinstance(inputs[0], Array) else NotImplemented
        return ops.OPERATIONS[name][0](*inputs)

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(
            f"numpy.{func.__name__} is not defined for softnum.Array; work on .codes, or on np.asarray(a) for float64 "
            "values"
        )

    def _operate(self, name, other, swap=False):
        from softnum.ops import OPERATIONS

        if not isinstance(other, Array):
            raise TypeError(f"Array and {type(other).__name__} do not mix; make an Array of it (softnum.array)")
        return OPERATIONS[name][0](*((other, self) if swap else (self, other)))

    def __add__(self, other):
        return self._operate("add", other)

    def __sub__(self, other):
        return self._operate("subtract", other)

    def __mul__(self, other):
        return self._operate("multiply", other)

    def __radd__(self, other):
        return self._operate("add", other, swap=True)

    def __rsub__(self, other):
        return self._operate("subtract", other, swap=True)

    def __rmul__(self, other):
        return self._operate("multiply", other, swap=True)

    def __truediv__(self, other):
        return self._operate("divide", other)

    def __rtruediv__(self, other):
        return self._operate("divide", other, swap=True)

    def __neg__(self):
        from softnum.ops import negate

        return negate(self)

    def __pos__(self):
        return Array(self.codes, self.format)

    def __abs__(self):
        from softnum.ops import absolute

        return absolute(self)

    def _compare(self, other, name):
        from softnum.ops import compare

        if not isinstance(other, Array):
            raise TypeError(f"Array and {type(other).__name__} do not mix; make an Array of it (softnum.array)")
        return np.isin(compare(self, other), _COMPARISONS[name])

    def __lt__(self, other):
        return self._compare(other, "less")

    def __le__(self, other):
        return self._compare(other, "less_equal")

    def __gt__(self, other):
        return self._compare(other, "greater")

    def __ge__(self, other):
        return self._compare(other, "greater_equal")

    def __eq__(self, other):
        return self._compare(other, "equal")

    def __ne__(self, other):
        return self._compare(other, "not_equal")

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index) -> Array:
        return Array(self.codes[index], self.format)

    def __setitem__(self, index, value) -> None:
        if not isinstance(value, Array) or value.format != self.format:
            kind = f"an Array of {value.format}" if isinstance(value, Array) else type(value).__name__
            raise TypeError(f"only an Array of {self.format} can be put into one, got {kind}")
        self.codes[index] = value.codes

    def __bool__(self) -> bool:
        raise TypeError("the truth of an Array is not defined; compare it with another (==, <, ...)")

    __hash__ = None

    def __repr__(self) -> str:
        try:
            values = np.asarray(self)
        except ValueError:  # beyond binary64: show the codes
            return f"Array(codes={self.codes!r}, {self.format})"
        text = np.array2string(values, separator=", ", prefix="Array(")
        return f"Array({text}, {self.format})"


def array(x, fmt, **options) -> Array:
    """Round values to a format and return an `Array` (options as in `softnum.encode`).

    >>> import softnum as sn
    >>> sn.array([0.1, 100.0], "q4.4")
    Array([0.125 , 7.9375], q4.4)
    """
    return Array(encode(x, fmt, **options), fmt)
