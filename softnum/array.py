"""Array: codes and their format in one container, with NumPy's operators and functions where they are defined."""

from __future__ import annotations

import numpy as np

from softnum.formats import format
from softnum.values import check_codes, decode, encode

__all__ = ["Array", "array"]


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
        values = decode(self.codes, self.format, np.float64)
        if dtype is None or np.dtype(dtype) == np.float64:
            return values
        target = np.dtype(dtype)
        if target.kind == "O":
            return values.astype(object)
        if target.kind != "f":
            raise TypeError(f"an Array becomes an array of floats, not of {target}")
        return decode(self.codes, self.format, target)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from softnum.ops import OPERATIONS

        if method != "__call__" or kwargs or ufunc.__name__ not in ("add", "subtract", "multiply"):
            extra = f" with {', '.join(kwargs)}" if kwargs else ""
            raise TypeError(
                f"numpy.{ufunc.__name__}{'' if method == '__call__' else '.' + method}{extra} is not defined for "
                "softnum.Array; use softnum's own functions, or np.asarray(a) for float64 values"
            )
        return OPERATIONS[ufunc.__name__][0](*inputs)

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
        raise TypeError("the truth of an Array is not defined; compare np.asarray(a)")

    __hash__ = None

    def __eq__(self, other):
        raise TypeError("comparison of Arrays is not defined yet; compare np.asarray(a), or .codes for the same bits")

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
