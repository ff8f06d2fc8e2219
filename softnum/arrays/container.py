"""Array: codes and their format in one container, with NumPy's operators and functions where they are defined."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from decimal import Decimal
from math import prod
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from softnum.arrays.checks import kept_codes, native
from softnum.arrays.conversion import decode, encode, find_code
from softnum.arrays.parse import python_number
from softnum.arrays.refusals import numpy_name, refusal, warn_of_lost_format
from softnum.arrays.text import text_of
from softnum.formats.annotations import FormatLike, Formats
from softnum.formats.blocks import format as any_format
from softnum.formats.custom import CustomFormat
from softnum.formats.names import dtype_of_format, format, format_of_dtype
from softnum.formats.operation_names import ELEMENTARY
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.runtime.gateway import container, is_device_array, moves_as_numpy, on_device
from softnum.runtime.plain import PlainEnvironment, check_plain, plain

__all__ = ["Array", "array"]

# Where the standard's namespace lies, which is imported when it is first asked for, by what `softnum` puts in
NAMESPACES: list[Callable] = []
# What Arrays compute with is put in by the modules that have it, when they are imported:
#: name of an operation -> (the function, number of operands), by `softnum.ops` and `softnum.ops.elementary`
OPERATIONS: dict[str, tuple[Callable[..., Any], int]] = {}
#: NumPy's function -> what does it of Arrays, by `softnum.ops.numpy_functions`
FUNCTIONS: dict[Callable, Callable] = {}
#: name of one of NumPy's predicates -> what does it of Arrays, by `softnum.ops.numpy_functions`
PREDICATES: dict[str, Callable] = {}
#: name of a ufunc that is no single operation -> what does it of Arrays and what stands beside them, by
#: `softnum.ops.numpy_ufuncs`
UFUNCS: dict[str, Callable] = {}
#: name of a method of NumPy's ufuncs, or "where" -> what does it, given the ufunc, by `softnum.ops.numpy_ufuncs`
UFUNC_METHODS: dict[str, Callable] = {}

# NumPy's name -> softnum's; minimum and maximum are those of IEEE 754-2019 9.6 (a NaN wins), fmin and fmax the others
_UFUNCS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "negative": "negate",
    "absolute": "absolute", "sqrt": "sqrt", "copysign": "copysign", "minimum": "minimum", "maximum": "maximum",
    "fmin": "minimum_number", "fmax": "maximum_number",
    **{getattr(np, name).__name__: name for name in ELEMENTARY if hasattr(np, name)},  # np.asin is np.arcsin
}  # fmt: skip
_TO_INTEGRAL = {"rint": "nearest_even", "floor": "down", "ceil": "up", "trunc": "toward_zero"}
# what softnum.compare returns (-1 below, 0 equal, 1 above, 2 unordered) where the predicate is true
_COMPARISONS = {
    "less": lambda order: order == -1, "less_equal": lambda order: order <= 0, "equal": lambda order: order == 0,
    "not_equal": lambda order: order != 0, "greater": lambda order: order == 1,
    "greater_equal": lambda order: (order == 0) | (order == 1),
}  # fmt: skip


def as_operand(x: Any, fmt: Any) -> Array:
    """x as an Array: itself, or a number, or an array or list of them, that are exact in fmt.

    Raises TypeError or ValueError for others, and names the first element that is not exact.
    """
    if isinstance(x, Array):
        return x
    try:  # to ask takes a sixth of the time that to change does
        check_plain("a number beside an Array")
    except FloatingPointError:
        return _exact_elsewhere(x, fmt)
    return _exact(x, fmt)


def _exact(x, fmt) -> Array:
    if isinstance(x, (np.ndarray, list, tuple)):
        return Array._of(_exact_codes(native(x), fmt, type(x).__name__), fmt)
    return Array._of(np.array(_exact_code(x, fmt), fmt.storage_dtype), fmt)


_exact_elsewhere = plain(_exact)


def _exact_code(x, fmt, what: str = "") -> int:
    if isinstance(x, (bool, np.bool_)) or not isinstance(x, (Real, Decimal)):
        kind = type(x)
        name = kind.__name__ if kind.__name__ != "Array" else f"{kind.__module__}.Array"
        raise TypeError(f"an Array and {name} cannot be combined; convert it with softnum.array")
    x = python_number(x)
    code = find_code(x, x == 0 and str(x).startswith("-"), fmt)
    if code is None:
        shown = f"{x!r}" if isinstance(x, float) or (abs(x) < 2**64 and x.denominator < 2**64) else "the number"
        raise ValueError(f"{what}{shown} is not exact in {fmt}; round it first: softnum.array(x, {str(fmt)!r})")
    return code


def _exact_codes(x: np.ndarray, fmt, kind: str) -> np.ndarray:
    if x.dtype.kind == "b":
        raise TypeError(
            f"an Array and {kind} of bool cannot be combined; np.where(mask, a, 0) keeps the elements where a mask is "
            "true"
        )
    if x.dtype.kind not in "fiuO" and format_of_dtype(x.dtype) is None:
        raise TypeError(f"an Array and {kind} of {x.dtype} cannot be combined; convert it with softnum.array")
    if x.dtype.kind != "O" and x.dtype.itemsize <= 8:
        values = x.astype(np.float64)
        try:
            codes = encode(x, fmt)
            back = decode(codes, fmt)
        except ValueError:  # no code for a NaN, or the format is wider
            back = None
        in_float64 = x.dtype.kind not in "iu" or x.dtype.itemsize < 8 or not (np.abs(values) > 2.0**53).any()
        if in_float64 and back is not None and np.array_equal(back, values, equal_nan=True):
            zeros = values == 0
            if not zeros.any() or np.array_equal(np.signbit(back[zeros]), np.signbit(values[zeros])):
                return codes
    codes = np.empty(x.shape, fmt.storage_dtype)
    for index, value in np.ndenumerate(x):
        where = ", ".join(map(str, index))
        codes[index] = _exact_code(value, fmt, f"element [{where}] of the {kind}: " if index else "")
    return codes


def _operator(name: str, swap: bool = False):
    def method(self, other):
        other = as_operand(other, self.format)
        return OPERATIONS[name][0](*((other, self) if swap else (self, other)))

    return method


def _in_place(name: str):
    def method(self, other):
        self._put(OPERATIONS[name][0](self, as_operand(other, self.format)))
        return self

    return method


def _comparison(name: str):
    def method(self, other):
        if other is None and name in ("equal", "not_equal"):  # so that an Array may lie in a list beside None
            return name == "not_equal"
        other = as_operand(other, self.format)
        if is_device_array(self) or is_device_array(other):
            return on_device("holds", name, self, other)
        return _COMPARISONS[name](OPERATIONS["compare"][0](self, other))

    return method


def computed(name: Any, inputs: Any) -> Any:
    """What the ufunc of a name gives of Arrays and of what stands beside them; TypeError where it is not defined."""
    if name in UFUNCS:
        return UFUNCS[name](*inputs)
    operation = _UFUNCS.get(name)
    if operation is None and name not in _TO_INTEGRAL and name not in _COMPARISONS and name not in PREDICATES:
        raise refusal(f"numpy.{name}")
    for first in inputs:
        if isinstance(first, Array):
            break
    else:
        raise refusal(f"numpy.{name} with out")
    operands = [as_operand(x, first.format) for x in inputs]
    if operation is not None:
        return OPERATIONS[operation][0](*operands)
    if name in _COMPARISONS:
        return _comparison(name)(*operands)
    if name in _TO_INTEGRAL:
        return OPERATIONS["round_to_integral"][0](*operands, rounding=_TO_INTEGRAL[name])
    on_gpu = is_device_array(operands[0])
    return on_device("holds", name, *operands) if on_gpu else PREDICATES[name](*operands)


def delivered(name: Any, result: Any, out: Any) -> Any:
    """The results of a ufunc in what ``out=`` names: Arrays, or ndarrays that hold every value."""
    results = result if isinstance(result, tuple) else (result,)
    given = tuple(r if o is None else _written(name, r, o) for r, o in zip(results, out, strict=True))
    return given if isinstance(result, tuple) else given[0]


def _written(name: str, result, out):
    if isinstance(result, Array) and isinstance(out, Array):
        out._put(result)
    elif is_device_array(result):
        raise TypeError(
            "a result on a GPU cannot be written into an array on the host; copy it first: r.copy_to_host()"
        )
    elif not isinstance(result, Array):
        np.copyto(out, result)
    elif not isinstance(out, np.ndarray) or out.dtype.kind not in "fO":
        what = f"an array of {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        raise refusal(f"numpy.{name} with out of {what}")
    else:
        np.copyto(out, decode(result.codes, result.format, out.dtype))
    return out


def _undefined(what: str):
    def method(self, *others):
        raise refusal(what)

    return method


def _moved(name: str):
    """ndarray's method of this name, applied to the codes: it only moves elements."""

    def method(self, *args, **kwargs):
        if not moves_as_numpy(self.codes):
            return on_device("moved", self, name, args, kwargs)
        return Array._of(getattr(self.codes, name)(*args, **kwargs), self.format)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = f"As `numpy.ndarray.{name}`."
    return method


def _by_function(name: str):
    """NumPy's function of this name as a method; softnum.ops.numpy_functions has it."""

    def method(self, *args, **kwargs):
        return getattr(np, name)(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = f"As ``np.{name}`` of an Array: see `softnum.ops.numpy_functions`."
    return method


def numba_index(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index of integers, slices and an ellipsis as Numba's arrays take it, with one for every axis.

    Raises TypeError for others, IndexError for what lies outside.
    """
    index = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, bool) or not (isinstance(i, (Integral, slice)) or i is ...) for i in index):
        raise TypeError(
            "an Array on a GPU is indexed by integers and slices only; for other indices copy it to the host first: "
            "a.copy_to_host()"
        )
    at = next((at for at, i in enumerate(index) if i is ...), len(index))
    left = len(shape) - len(index) + (at < len(index))
    index = (*index[:at], *[slice(None)] * left, *index[at + 1 :])
    if left < 0 or ... in index:
        raise IndexError(f"too many indices for an Array of {len(shape)} dimensions")
    return tuple(i if isinstance(i, slice) else _place(i, n) for i, n in zip(index, shape, strict=True))


def _place(i, n: int) -> int:
    if not -n <= i < n:
        raise IndexError(
            f"index {i} is out of range for an axis of {n} elements" + (f" (-{n} to {n - 1})" if n else "")
        )
    return int(i) % n


class Codes:
    """What arrays of codes have in common: the shape of `codes`."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of codes."""
        return tuple(self.codes.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.codes.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.codes.shape)

    def __len__(self) -> int:
        return len(self.codes)


@container("codes")
class Array(Codes):
    """Codes of one format.

    Arithmetic rounds to nearest even into the operands' common format; for another mode or result format use
    `softnum.add` and its like. Operands of different formats raise; comparisons between formats are exact. Mixing with
    a Python or NumPy number raises unless the number is exact in the Array's format; ``sn.array(0.1, fmt)`` rounds it
    first. ``a += b`` writes into a's codes, as NumPy does, so that views see it. ``np.asarray(a, np.float64)`` gives
    the values; without a type it also warns that the format is lost (`softnum.arrays.FormatLostWarning`).

    Indexing, iteration and the NumPy functions that `softnum.ops.numpy_functions` lists work as on an ndarray; all
    others raise TypeError. So do sums, whose order and accumulator must be stated: see `softnum.sum`, `softnum.matmul`
    and `softnum.unit_of_sums`.

    Parameters
    ----------
    codes : array_like of unsigned integers, any shape
        The encodings; not copied if the dtype is already the format's `storage_dtype`. Or an array of a float dtype of
        NumPy or ml_dtypes, whose bits are used without a copy. Or a CUDA array of the storage dtype (CuPy, PyTorch,
        Numba): the Array then computes on its device.
    fmt : format or str
        May be left out if the array's dtype implies it.

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
    >>> 2 * a - 1
    Array([1., 4.], e5m2)
    >>> a[a > 1]
    Array([2.5], e5m2)
    >>> a.codes
    array([60, 65], dtype=uint8)
    >>> import numpy as np
    >>> sn.Array(np.float16([0.1]))
    Array([0.09997559], binary16)
    """

    __slots__ = ("codes", "format")
    __array_priority__: int = 1000
    __hash__: ClassVar[None] = None
    codes: np.ndarray
    format: Any

    def __init__(self, codes: Any, fmt: FormatLike | None = None) -> None:
        known = None
        if isinstance(codes, Array):
            if fmt is not None and format(fmt) != codes.format:
                raise ValueError(f"got an Array of {codes.format}, not of {format(fmt)}; convert it with .astype")
            known, codes = codes.format, codes.codes
        elif isinstance(codes, (np.ndarray, np.generic)):
            known = format_of_dtype(codes.dtype)
        if fmt is None and known is None:
            raise TypeError(
                "Array: give the format of the encodings; only arrays with a float dtype of NumPy or ml_dtypes carry "
                "one"
            )
        self.format = known if fmt is None else format(fmt)
        if known is not None and known == self.format:
            codes = native(codes).view(self.format.storage_dtype)
        self.codes = kept_codes(codes, self.format)

    @classmethod
    def _of(cls, codes, fmt) -> Array:
        """An Array of codes that are known to be the format's."""
        new = cls.__new__(cls)
        kept = type(codes) is np.ndarray or is_device_array(codes)
        new.codes, new.format = codes if kept else np.asarray(codes), fmt
        return new

    @classmethod
    def _rounded(cls, x, fmt, **options):
        """What `array` returns of a format of single elements."""
        if isinstance(x, Array):
            return x.astype(fmt, **options)
        result = encode(x, fmt, **options)
        if options.get("return_flags"):
            return cls._of(result[0], fmt), result[1]
        return cls._of(result, fmt)

    # -- facts ---------------------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> Any:
        """The format, in the role of an ndarray's dtype; the dtype of the encodings is ``codes.dtype``.

        >>> import softnum as sn
        >>> a = sn.array([1.0, 2.5], "e5m2")
        >>> a.dtype, a.dtype == sn.format("e5m2"), sn.array([0.5], a.dtype)
        (FloatFormat(5, 2, name='e5m2'), True, Array([0.5], e5m2))
        """
        return self.format

    @property
    def itemsize(self) -> int:
        """Bytes of one element in `codes` (`softnum.arrays.pack` packs narrow formats)."""
        return self.format.storage_dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Total bytes of `codes`."""
        return self.size * self.itemsize

    @property
    def T(self) -> Array:
        """The transposed array, a view."""
        return self.transpose()

    # -- values in and out ---------------------------------------------------------------------------------------------
    def astype(self, fmt: FormatLike, **options: Any) -> Array:
        """Convert to another format (options as in `softnum.convert`).

        >>> import softnum as sn
        >>> sn.array(3.3, "binary16").astype("e5m2")
        Array(3.5, e5m2)
        """
        return OPERATIONS["convert"][0](self, None, fmt, **options)

    def to_numpy(self) -> np.ndarray:
        """The array as NumPy's own type, or ml_dtypes', that is this format: the same bits, not copied.

        Raises
        ------
        ValueError
            If there is no such type, or ml_dtypes has it and is not installed.
        TypeError
            If the codes lie on a GPU.

        Examples
        --------
        >>> import softnum as sn
        >>> sn.array([1.5, 0.1], "binary16").to_numpy()
        array([1.5, 0.1], dtype=float16)
        """
        self._must_lie_on_the_host()
        return self.codes.view(dtype_of_format(self.format))

    def copy_to_host(self) -> Array:
        """A copy on the host; no other method copies from the device.

        >>> import softnum as sn
        >>> sn.array([1.0, 2.5], "e5m2").copy_to_host()
        Array([1. , 2.5], e5m2)
        """
        if not is_device_array(self.codes):
            return self.copy()
        return Array._of(on_device("copy_to_host", self.codes), self.format)

    def _must_lie_on_the_host(self) -> None:
        if is_device_array(self.codes):
            raise TypeError("the codes of this Array lie on a GPU; copy them to the host first: a.copy_to_host()")

    def tolist(self) -> Any:
        """The values as Python numbers, in nested lists: floats, or Fractions if one of them is beyond binary64."""
        self._must_lie_on_the_host()
        try:
            return decode(self.codes, self.format).tolist()
        except ValueError:
            return decode(self.codes, self.format, object).tolist()

    def item(self, *index: Any) -> Any:
        """One value as a Python number (as `numpy.ndarray.item`): a float, or a Fraction beyond binary64."""
        self._must_lie_on_the_host()
        return Array._of(np.array(self.codes.item(*index), self.format.storage_dtype), self.format).tolist()

    def fill(self, value: Any) -> None:
        """Set all elements to an exact number or an Array of one element."""
        self[...] = value

    def __float__(self) -> float:
        if self.size != 1:
            raise TypeError("only an Array of one element can be converted to a float")
        self._must_lie_on_the_host()
        return float(decode(self.codes, self.format).item())

    def __int__(self) -> int:
        return int(self._number("an int"))

    def __round__(self, digits: Any = None) -> Any:
        """``round(a)`` of an Array without dimensions: of its value, as Python rounds; `numpy.round` is for others."""
        if self.ndim:
            raise TypeError(
                "round() is defined for an Array without dimensions; np.round(a) rounds all elements to integers"
            )
        return round(self._number("a number"), digits)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.ndim:
            raise TypeError(f"an Array of {self.ndim} dimensions cannot be formatted by {spec!r}; format its elements")
        return builtins.format(self._number("a number"), spec)

    def _number(self, kind: str):
        if self.size != 1:
            raise TypeError(f"only an Array of one element can be converted to {kind}")
        return self.item()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        self._must_lie_on_the_host()
        if copy is False:
            raise ValueError("the values of an Array are computed and always need a copy; leave copy=False out")
        if dtype is None:
            warn_of_lost_format(self.format)
        target = np.dtype(np.float64 if dtype is None else dtype)
        if target.kind not in "fO":
            raise TypeError(f"an Array can be converted to an array of floats or objects, not of {target}")
        return decode(self.codes, self.format, target)

    # -- elements ------------------------------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Array]:
        if not self.ndim:
            raise TypeError("iteration over an Array without dimensions")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        self._must_lie_on_the_host()
        return bool((self == value).any())

    def __getitem__(self, index: Any) -> Array:
        if hasattr(self.codes, "__cuda_ndarray__"):
            index = numba_index(index, self.shape)
            if not self.ndim and not index:
                return Array._of(self.codes, self.format)
            if len(index) == self.ndim and not any(isinstance(i, slice) for i in index):  # Numba copies it to the host
                return Array._of(self.codes[tuple(slice(i, i + 1) for i in index)], self.format).reshape(())
        return Array._of(self.codes[index], self.format)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, Array):
            value = as_operand(value, self.format)
        if value.format != self.format:
            raise TypeError(f"only an Array of {self.format} can be assigned to one, got an Array of {value.format}")
        codes = value.codes
        if isinstance(codes, np.ndarray) and is_device_array(self):
            if codes.ndim:
                raise TypeError(
                    "an Array on the host cannot be assigned to one on a GPU; copy its encodings there first"
                )
            codes = int(codes)
        if hasattr(self.codes, "__cuda_ndarray__"):
            on_device("put", value, self[index].codes)
        else:
            self.codes[index] = codes

    def _put(self, result: Array) -> None:
        """Write the result of an operation here."""
        if result.shape != self.shape or result.format != self.format:
            raise ValueError(
                f"a result of shape {result.shape} in {result.format} cannot be written into an Array of shape "
                f"{self.shape} in {self.format}"
            )
        if is_device_array(self.codes):
            on_device("put", result, self.codes)
        elif is_device_array(result.codes):
            raise TypeError(
                "a result on a GPU cannot be written into an Array on the host; copy it first: r.copy_to_host()"
            )
        else:
            self.codes[...] = result.codes

    reshape: Callable[..., Array]
    ravel: Callable[..., Array]
    flatten: Callable[..., Array]
    transpose: Callable[..., Array]
    squeeze: Callable[..., Array]
    swapaxes: Callable[..., Array]
    take: Callable[..., Array]
    repeat: Callable[..., Array]
    reshape, ravel, flatten, transpose, squeeze, swapaxes, take, repeat = (
        _moved(name) for name in ("reshape", "ravel", "flatten", "transpose", "squeeze", "swapaxes", "take", "repeat")
    )
    min: Callable[..., Any]
    max: Callable[..., Any]
    argmin: Callable[..., Any]
    argmax: Callable[..., Any]
    argsort: Callable[..., Any]
    searchsorted: Callable[..., Any]
    clip: Callable[..., Any]
    all: Callable[..., Any]
    any: Callable[..., Any]
    nonzero: Callable[..., Any]
    round: Callable[..., Any]
    sum: Callable[..., Any]
    mean: Callable[..., Any]
    cumsum: Callable[..., Any]
    dot: Callable[..., Any]
    trace: Callable[..., Any]
    prod: Callable[..., Any]
    cumprod: Callable[..., Any]
    std: Callable[..., Any]
    var: Callable[..., Any]
    (
        min, max, argmin, argmax, argsort, searchsorted, clip, all, any, nonzero, round, sum, mean, cumsum, dot, trace,
        prod, cumprod, std, var,
    ) = (
        _by_function(name)
        for name in (
            "min", "max", "argmin", "argmax", "argsort", "searchsorted", "clip", "all", "any", "nonzero", "round",
            "sum", "mean", "cumsum", "dot", "trace", "prod", "cumprod", "std", "var",
        )
    )  # fmt: skip

    def sort(self, axis: int = -1) -> None:
        """Sort in place, in the total order of the format (`softnum.ops.total_order`)."""
        self[...] = np.sort(self, axis)

    def copy(self) -> Array:
        """A copy that shares no memory with the Array."""
        codes = on_device("copy", self.codes) if is_device_array(self.codes) else self.codes.copy()
        return Array._of(codes, self.format)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        self._must_lie_on_the_host()
        return Array, (self.codes, self.format)

    # -- operators -----------------------------------------------------------------------------------------------------
    __add__: Callable[[Any], Array]
    __radd__: Callable[[Any], Array]
    __iadd__: Callable[[Any], Array]
    __sub__: Callable[[Any], Array]
    __rsub__: Callable[[Any], Array]
    __isub__: Callable[[Any], Array]
    __mul__: Callable[[Any], Array]
    __rmul__: Callable[[Any], Array]
    __imul__: Callable[[Any], Array]
    __truediv__: Callable[[Any], Array]
    __rtruediv__: Callable[[Any], Array]
    __itruediv__: Callable[[Any], Array]
    __pow__: Callable[[Any], Array]
    __rpow__: Callable[[Any], Array]
    __ipow__: Callable[[Any], Array]
    __mod__: Callable[[Any], NoReturn]
    __rmod__: Callable[[Any], NoReturn]
    __divmod__: Callable[[Any], NoReturn]
    __rdivmod__: Callable[[Any], NoReturn]
    __floordiv__: Callable[[Any], NoReturn]
    __rfloordiv__: Callable[[Any], NoReturn]
    __add__, __radd__, __iadd__ = _operator("add"), _operator("add", swap=True), _in_place("add")
    __sub__, __rsub__, __isub__ = _operator("subtract"), _operator("subtract", swap=True), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _operator("multiply"), _operator("multiply", swap=True), _in_place("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operator("divide"), _operator("divide", swap=True), _in_place("divide")
    __mod__ = __rmod__ = _undefined("remainder")
    __divmod__ = __rdivmod__ = _undefined("divmod")
    __floordiv__ = __rfloordiv__ = _undefined("floor_divide")
    __pow__, __rpow__, __ipow__ = _operator("pow"), _operator("pow", swap=True), _in_place("pow")

    def __matmul__(self, other: Any) -> Any:
        return computed("matmul", (self, other))

    def __rmatmul__(self, other: Any) -> Any:
        return computed("matmul", (other, self))

    __lt__: Callable[[Any], Any]
    __le__: Callable[[Any], Any]
    __gt__: Callable[[Any], Any]
    __ge__: Callable[[Any], Any]
    __eq__: Callable[[Any], Any]
    __ne__: Callable[[Any], Any]
    __lt__, __le__, __gt__ = _comparison("less"), _comparison("less_equal"), _comparison("greater")
    __ge__, __eq__, __ne__ = _comparison("greater_equal"), _comparison("equal"), _comparison("not_equal")

    def __neg__(self) -> Array:
        return OPERATIONS["negate"][0](self)

    def __pos__(self) -> Array:
        return self.copy()

    def __abs__(self) -> Array:
        return OPERATIONS["absolute"][0](self)

    def __bool__(self) -> bool:
        raise TypeError("an Array has no truth value; compare it with another (==, <, ...)")

    def __getattr__(self, name: Any) -> Any:
        raise AttributeError(f"softnum.Array has no {name!r}")

    # -- NumPy's protocols ---------------------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            result = computed(ufunc.__name__, inputs)
            return result if out is None else delivered(ufunc.__name__, result, out)
        if ufunc.__name__ == "vecdot" and kwargs.keys() == {"axis"}:
            axis = kwargs["axis"]
            return self.__array_ufunc__(ufunc, method, *(np.moveaxis(x, axis, -1) for x in inputs), out=out)
        known = method if method != "__call__" else "where" if kwargs.keys() == {"where"} else None
        if known not in UFUNC_METHODS:
            extra = f" with {', '.join(kwargs)}" if kwargs else ""
            raise refusal(f"numpy.{ufunc.__name__}{'' if method == '__call__' else '.' + method}{extra}")
        return UFUNC_METHODS[known](ufunc, *inputs, out=out, **kwargs)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        """The functions of the Array API standard: `softnum.ops.namespace`."""
        namespace = NAMESPACES[0]()
        if api_version not in (None, namespace.__array_api_version__):
            raise ValueError(f"softnum implements the Array API {namespace.__array_api_version__}, not {api_version}")
        return namespace

    def __dlpack__(self, **options: Any) -> Any:
        """The values for `numpy.from_dlpack`, `torch.from_dlpack` and others, in the Array's own memory.

        Of binary16, binary32 and binary64 alone, whose codes are what DLPack calls float16, float32 and float64; of any
        other format it has no type that every library reads, and codes without their format are no values.

        Parameters
        ----------
        **options
            As the Array API has them: stream, max_version, dl_device, copy.

        Raises
        ------
        BufferError
            If the format is another, or the codes lie on a GPU.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> a = sn.array([1.5, 0.1], "binary32")
        >>> np.from_dlpack(a), np.shares_memory(np.from_dlpack(a), a.codes)
        (array([1.5, 0.1], dtype=float32), True)
        """
        return self._for_dlpack().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where `__dlpack__` has the values: on the host."""
        return self._for_dlpack().__dlpack_device__()

    def _for_dlpack(self) -> np.ndarray:
        if is_device_array(self.codes):
            raise BufferError(
                "the codes of this Array lie on a GPU; a.codes are those, and a.copy_to_host() copies them"
            )
        if str(self.format) not in ("binary16", "binary32", "binary64"):
            raise BufferError(
                f"DLPack has no type of {self.format} that every library reads: a.codes gives the codes, "
                "np.asarray(a, np.float64) the values"
            )
        return self.to_numpy()

    @property
    def device(self) -> str:
        """The device of `codes`, as the Array API names it: "cpu" or "cuda"."""
        return "cuda" if is_device_array(self.codes) else "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The Array itself, where the codes lie there; `copy_to_host` copies them from a GPU."""
        if device != self.device or stream is not None:
            raise ValueError(
                f"the encodings of this Array are on {self.device!r}; copy them from a GPU with a.copy_to_host()"
            )
        return self

    @property
    def mT(self) -> Array:
        """The Array with its last two axes swapped, a view."""
        return np.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """The Array itself: its values are real."""
        return self

    @property
    def imag(self) -> Array:
        """Zeros: the values are real."""
        return np.zeros_like(self)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in FUNCTIONS:
            raise refusal(numpy_name(func))
        for x in (*args, *(args[0] if args and isinstance(args[0], (list, tuple)) else ()), *kwargs.values()):
            if isinstance(x, Array):
                x._must_lie_on_the_host()
        kwargs = {name: x for name, x in kwargs.items() if x is not None or name not in ("dtype", "out")}
        try:
            return FUNCTIONS[func](*args, **kwargs)
        except TypeError as error:
            if error.__traceback__.tb_next is None:  # of the call itself: an argument that the function does not take
                raise refusal(f"{numpy_name(func)} with {', '.join(kwargs) or f'{len(args)} arguments'}") from None
            raise

    # -- text ----------------------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        if is_device_array(self.codes):  # which no one copies for the sake of a text
            return f"Array(codes of shape {self.shape} on a GPU, {self.format})"
        with PlainEnvironment():
            return f"Array({text_of(self.codes, self.format)}, {self.format})"


def array(x: ArrayLike, fmt: Formats | None = None, **options: Any) -> Any:
    """Round values to a format and return an `Array`, or a `BlockArray` for a block format (options as in `encode`).

    Without `fmt`, an array of a float dtype of NumPy or ml_dtypes keeps its bits and is not copied.
    ``return_flags=True`` makes it a pair (Array, flags).

    >>> import softnum as sn
    >>> sn.array([0.1, 100.0], "q4.4")
    Array([0.125 , 7.9375], q4.4)
    """
    if fmt is None:
        if options:
            raise TypeError("array: give the format to round to, as in softnum.array(x, 'bfloat16')")
        return Array(x)
    fmt = any_format(fmt)
    return fmt.array_class._rounded(x, fmt, **options)


FloatFormat.array_class = FixedFormat.array_class = CustomFormat.array_class = Array
