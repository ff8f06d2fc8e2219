"""BlockArray: element codes, scale codes and their block format in one container."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from softnum.arrays.checks import check_axis, kept_codes
from softnum.arrays.container import Codes
from softnum.arrays.conversion import decode, encode, quantize
from softnum.arrays.refusals import numpy_name, refusal, warn_of_lost_format
from softnum.formats.annotations import FormatLike
from softnum.formats.blocks import BlockFormat, format
from softnum.formats.checks import check_block
from softnum.runtime import _core, gateway
from softnum.runtime.plain import plain

__all__ = ["BlockArray"]

_ELEMENTWISE = (
    "block arrays have no elementwise operations, for the scales of the result would have to be chosen: work on the "
    "values (a.decode()) or on an Array of them (softnum.array(a.decode(), fmt)), or multiply matrices (softnum.matmul)"
)

#: NumPy's functions that move blocks or tell the shape
_FUNCTIONS = {
    np.copy: lambda a: a.copy(),
    np.ndim: lambda a: a.ndim,
    np.shape: lambda a: a.shape,
    np.size: lambda a, axis=None: np.size(a.codes, axis),
    np.swapaxes: lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
}


def refuse_elementwise(what: str) -> None:
    """TypeError for arithmetic on block arrays; it names the ways out."""
    raise refusal(what, "BlockArray", _ELEMENTWISE)


def _undefined(what: str):
    def method(self, *others):
        refuse_elementwise(what)

    return method


@gateway.container("codes", "scales")
class BlockArray(Codes):
    """Encodings in a block format: elements, and one scale per block of elements along one axis.

    There are no elementwise operations: `decode` gives the values, `softnum.matmul` and `softnum.dot` multiply under a
    `softnum.BlockDotUnit`. `softnum.save` keeps codes, scales and format; NumPy's save raises.

    Parameters
    ----------
    codes : array_like of unsigned integers, any shape with at least one axis
        Encodings of the elements. Elements and scales may both be CUDA arrays of the storage dtype (CuPy, PyTorch,
        Numba), which stay on their device, as `softnum.array` makes them from a CUDA array of numbers.
    scales : array_like of unsigned integers
        Encodings of the scales: the shape of `codes`, except that `axis` has one scale per block.
    fmt : BlockFormat or str
    axis : int
        The axis that is blocked; kept as a negative number, counted from the last axis.
    tensor_scale : float, optional
        The scale of the whole array, for formats that have one (nvfp4): a value of its format.

    Raises
    ------
    ValueError
        If a shape does not fit, an integer is not a code of its format, or the tensor scale is missing or not a value
        of its format.
    TypeError
        If only one of elements and scales is on a GPU.

    Examples
    --------
    >>> import softnum as sn
    >>> a = sn.array([[1.0, 0.3, 11.0, -6.4]], "mxfp4_e2m1", axis=1)
    >>> a
    BlockArray([[ 1.,  0., 12., -6.]], mxfp4_e2m1, axis=-1)
    >>> a.codes, a.scales
    (array([[ 1,  0,  7, 13]], dtype=uint8), array([[128]], dtype=uint8))
    >>> a.T.axis, a.decode().shape
    (-2, (1, 4))
    """

    __slots__ = ("axis", "codes", "format", "scales", "tensor_scale")
    __hash__: ClassVar[None] = None
    codes: np.ndarray
    scales: np.ndarray
    format: BlockFormat
    axis: int
    tensor_scale: np.float32 | None

    def __init__(
        self, codes: Any, scales: Any, fmt: FormatLike, axis: int = -1, tensor_scale: float | None = None
    ) -> None:
        fmt = format(fmt)
        check_block(fmt, "BlockArray: {} is no block format; softnum.Array holds its codes")
        if gateway.is_device_array(codes) != gateway.is_device_array(scales):
            here, there = ("scales", "codes") if gateway.is_device_array(codes) else ("codes", "scales")
            raise TypeError(f"BlockArray: {here} lies on the host and {there} on the device; copy one of them")
        codes, scales = kept_codes(codes, fmt.element, "codes"), kept_codes(scales, fmt.scale, "scales")
        axis = check_axis("BlockArray", axis, codes.ndim)
        want = (*codes.shape[:axis], fmt.blocks(codes.shape[axis]), *codes.shape[axis + 1 :])
        if scales.shape != want:
            raise ValueError(
                f"BlockArray: encodings of shape {codes.shape} in blocks of {fmt.block_size or 'the whole axis'} along "
                f"axis {axis} need scales of shape {want}, got {scales.shape}"
            )
        if (tensor_scale is None) != (fmt.tensor_scale is None):
            how = "has no tensor scale" if fmt.tensor_scale is None else "needs tensor_scale="
            raise ValueError(f"BlockArray: {fmt} {how}, got {tensor_scale!r}")
        self.codes, self.scales, self.format, self.axis = codes, scales, fmt, axis - codes.ndim
        self.tensor_scale = None if tensor_scale is None else checked_scale(tensor_scale, fmt)

    @classmethod
    def of(cls, x: Any, fmt: Any, *, axis: int = -1, **options: Any) -> BlockArray:
        """The values, rounded: what `softnum.array` returns of a block format (options as in `softnum.encode`)."""
        given, fmt = x if gateway.is_device_array(x) else np.asarray(x), format(fmt)
        codes, scales, *tensor = encode(given, fmt, axis=axis, **options)
        return cls._of(codes, scales, fmt, check_axis("BlockArray", axis, codes.ndim) - codes.ndim, *tensor)

    _rounded = of  # what softnum.array calls

    @classmethod
    def _of(cls, codes, scales, fmt: BlockFormat, axis: int, tensor_scale=None) -> BlockArray:
        """A BlockArray of parts that are known to fit; axis: a negative number."""
        new = cls.__new__(cls)
        new.codes, new.scales, new.format, new.axis, new.tensor_scale = codes, scales, fmt, axis, tensor_scale
        return new

    # -- values --------------------------------------------------------------------------------------------------------
    def decode(self, dtype: DTypeLike = np.float64) -> np.ndarray:
        """The values, as `softnum.decode` gives them.

        >>> import softnum as sn
        >>> sn.array([3.0, 100.0], "mxint8").decode("f4")
        array([  3., 100.], dtype=float32)
        """
        return decode(self, self.format, dtype)

    def copy_to_host(self) -> BlockArray:
        """A copy on the host; no other method copies from the device.

        >>> import softnum as sn
        >>> sn.array([3.0, 100.0], "mxint8").copy_to_host()
        BlockArray([  3., 100.], mxint8, axis=-1)
        """
        if not gateway.is_device_array(self):
            return self.copy()
        return self._with(lambda part: gateway.on_device("copy_to_host", part))

    def _with(self, change, axis: int | None = None) -> BlockArray:
        """The array with something done to its codes and to its scales, which leaves them ones of its format."""
        axis = self.axis if axis is None else axis
        return BlockArray._of(change(self.codes), change(self.scales), self.format, axis, self.tensor_scale)

    def _must_lie_on_the_host(self) -> None:
        if gateway.is_device_array(self):
            raise TypeError("the codes of this BlockArray lie on a GPU; copy them to the host first: a.copy_to_host()")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        self._must_lie_on_the_host()
        if copy is False:
            raise ValueError("the values of a BlockArray are computed and always need a copy; leave copy=False out")
        if dtype is None:
            warn_of_lost_format(self.format)
        return self.decode(np.float64 if dtype is None else dtype)

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        refuse_elementwise(f"numpy.{ufunc.__name__}{'' if method == '__call__' else '.' + method}")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in _FUNCTIONS:
            raise refusal(numpy_name(func), "BlockArray", "work on a.decode() for values")
        return _FUNCTIONS[func](*args, **kwargs)

    __add__: Callable[[Any], NoReturn]
    __radd__: Callable[[Any], NoReturn]
    __sub__: Callable[[Any], NoReturn]
    __rsub__: Callable[[Any], NoReturn]
    __mul__: Callable[[Any], NoReturn]
    __rmul__: Callable[[Any], NoReturn]
    __truediv__: Callable[[Any], NoReturn]
    __rtruediv__: Callable[[Any], NoReturn]
    __matmul__: Callable[[Any], NoReturn]
    __rmatmul__: Callable[[Any], NoReturn]
    __neg__: Callable[[], NoReturn]
    __abs__: Callable[[], NoReturn]
    __add__ = __radd__ = _undefined("add")
    __sub__ = __rsub__ = _undefined("subtract")
    __mul__ = __rmul__ = _undefined("multiply")
    __truediv__ = __rtruediv__ = _undefined("divide")
    __neg__, __abs__ = _undefined("negate"), _undefined("absolute")
    __matmul__ = __rmatmul__ = _undefined("matmul")

    # -- elements ------------------------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> BlockArray:
        """Elements along the axes that are not blocked: integers, slices and ``...``; of the blocked one all, ``:``."""
        given = index if isinstance(index, tuple) else (index,)
        if any(not isinstance(i, (int, np.integer, slice, type(Ellipsis))) or isinstance(i, bool) for i in given):
            raise TypeError(
                "a BlockArray is indexed by integers, slices and ...; for other indices use a.decode()[...]"
            )
        left = self.ndim - sum(i is not Ellipsis for i in given)
        if left < 0 or sum(i is Ellipsis for i in given) > 1:
            raise IndexError(f"too many indices for a BlockArray of {self.ndim} dimensions")
        at = next((n for n, i in enumerate(given) if i is Ellipsis), len(given))
        full = (*given[:at], *[slice(None)] * left, *given[at + 1 :])
        if full[self.axis] != slice(None):
            raise ValueError(
                f"the blocked axis of a BlockArray ({self.axis}) can only be indexed by a full slice (:), got "
                f"{full[self.axis]}; index a.decode()"
            )
        after = sum(isinstance(i, slice) for i in full[self.ndim + self.axis + 1 :])
        return self._with(lambda part: part[full], -1 - after)

    @property
    def T(self) -> BlockArray:
        """The array with its axes reversed, a view."""
        return self._turned(list(range(self.ndim))[::-1])

    def swapaxes(self, first: int, second: int) -> BlockArray:
        """As `numpy.ndarray.swapaxes`, a view: the blocked axis moves with the others."""
        first, second = (
            check_axis("swapaxes", axis, self.ndim, name) for axis, name in ((first, "first"), (second, "second"))
        )
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self._turned(order)

    def _turned(self, order: list[int]) -> BlockArray:
        """A view with the axes in another order."""
        axis = order.index(self.axis + self.ndim) - self.ndim
        if gateway.is_device_array(self):
            return self._with(lambda part: gateway.on_device("transposed", part, order), axis)
        return self._with(lambda part: part.transpose(order), axis)

    def copy(self) -> BlockArray:
        """A copy that shares no memory with the BlockArray."""
        if gateway.is_device_array(self):
            return self._with(lambda part: gateway.on_device("copy", part))
        return self._with(lambda part: part.copy())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> BlockArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        self._must_lie_on_the_host()
        return BlockArray, (self.codes, self.scales, self.format, self.axis, self.tensor_scale)

    def __eq__(self, other: Any) -> Any:
        raise TypeError("BlockArrays cannot be compared; compare a.decode(), or a.codes and a.scales")

    def __bool__(self) -> bool:
        raise TypeError("a BlockArray has no truth value; compare a.decode() with something")

    def __repr__(self) -> str:
        if gateway.is_device_array(self):  # which no one copies for the sake of a text
            return f"BlockArray(codes of shape {self.shape} on a GPU, {self.format}, axis={self.axis})"
        try:
            values = self.decode()
        except ValueError:
            values = decode(self, self.format, object)
        with _core.PlainEnvironment():
            text = np.array2string(values, separator=", ", prefix="BlockArray(")
        tensor = "" if self.tensor_scale is None else f", tensor_scale={float(self.tensor_scale)!r}"
        return f"BlockArray({text}, {self.format}, axis={self.axis}{tensor})"


@plain
def checked_scale(given: Any, fmt: Any) -> np.float32:
    """The tensor's scale as float32; TypeError if it is no number, ValueError if no positive value of its format."""
    number = isinstance(given, (Real, np.ndarray)) and not np.ndim(given) and np.asarray(given).dtype.kind not in "bSU"
    if not number:
        shown = f"an array of shape {np.shape(given)}" if np.ndim(given) else repr(given)
        raise TypeError(
            f"tensor_scale must be one number, a positive value of {fmt.tensor_scale}, got {shown}; leave it out and "
            "encode chooses it"
        )
    with np.errstate(over="ignore", under="ignore"):
        try:
            value = np.float32(given)
        except OverflowError:  # Python's integers and Fractions
            value = np.float32(np.inf)
    if not (np.isfinite(value) and value > 0 and float(value) == given) or quantize(value, fmt.tensor_scale) != value:
        raise ValueError(
            f"tensor_scale={given!r} is not a positive value of {fmt.tensor_scale}; softnum.quantize rounds to one"
        )
    return value


BlockFormat.array_class = BlockArray
