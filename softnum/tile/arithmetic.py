"""Operations on tensors in their formats: every result is the exact one, rounded once to the format of its tensor."""

from __future__ import annotations

import operator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from softnum.arrays.container import Array, as_operand
from softnum.arrays.conversion import decode, encode
from softnum.arrays.environment import random_words, seed_and_stream
from softnum.formats.checks import check_narrow
from softnum.formats.facts import fits
from softnum.formats.modes import rounding_name
from softnum.ops.elementary import OPERATIONS  # with the elementary functions in it
from softnum.runtime import _core
from softnum.tile.syntax import shown_number

__all__ = [
    "SIGNS", "Tensor", "apply", "as_constant", "beside", "carrier_of", "compare", "has_zero", "key_of", "lifted",
    "sign_format",
]  # fmt: skip

_TO_INTEGRAL = {"floor": "down", "ceil": "up", "trunc": "toward_zero", "round": "nearest_even"}
_COMPARISONS = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
_DOMAIN = 4  # of random words: the sites of an operator
SITE_BITS = 16


class Tensor:
    """Values of a format, given as codes or as carriers, each made of the other when it is first asked for."""

    __slots__ = ("_codes", "_values", "by_values", "format")

    def __init__(self, fmt, codes: np.ndarray | None = None, values: np.ndarray | None = None) -> None:
        check_narrow(fmt, "an operator's tensors are not of {}")
        self.format, self._codes, self._values = fmt, codes, values
        self.by_values = values is not None

    @classmethod
    def of(cls, x, fmt=None) -> Tensor:
        """An Array, or values of fmt as matmul and its like return them."""
        return cls(x.format, codes=x.codes) if isinstance(x, Array) else cls(fmt, values=np.asarray(x))

    @property
    def codes(self) -> np.ndarray:
        """The codes."""
        if self._codes is None:
            self._codes = encode(self._values, self.format)
        return self._codes

    @property
    def array(self) -> Array:
        """The codes, as an Array."""
        return Array._of(self.codes, self.format)

    @property
    def shape(self) -> tuple:
        """Of the codes or the values."""
        return (self._values if self._codes is None else self._codes).shape

    @property
    def values(self):
        """The values as a unit takes them: float32 or float64, or an Array where neither holds the format."""
        dtype = carrier_of(self.format)
        if dtype is None:
            return self.array
        if self._values is None:
            self._values = decode(self._codes, self.format, dtype)
        return self._values

    @property
    def data(self) -> tuple[np.ndarray, object]:
        """(what moves without loss, the zero of it): the codes, or the values if it was given as these."""
        data = self._values if self.by_values else self._codes
        if not has_zero(self.format):
            return data, None
        return data, data.dtype.type(0) if self.by_values else encode(0.0, self.format)

    def with_data(self, data: np.ndarray) -> Tensor:
        """A tensor of this format of moved `data`."""
        return Tensor(self.format, values=data) if self.by_values else Tensor(self.format, codes=data)

    def as_carriers(self) -> Tensor:
        """The tensor given as values, where a carrier holds its format."""
        return self if self.by_values or carrier_of(self.format) is None else Tensor(self.format, values=self.values)


@lru_cache(maxsize=256)
def has_zero(fmt) -> bool:
    """Whether zero is a value of a format."""
    try:
        return bool(decode(encode(0.0, fmt), fmt) == 0)
    except ValueError:
        return False


@lru_cache(maxsize=256)
def carrier_of(fmt):
    """float32 or float64, the first that holds the format; or None."""
    return next((dtype for dtype in (np.float32, np.float64) if fits(fmt, dtype)), None)


@lru_cache(maxsize=4096)
def as_constant(value: Fraction, fmt) -> Array:
    """A number rounded to the nearest value of a format (even of two); ValueError beyond its ends."""
    if not fmt.min <= value <= fmt.max:
        end = f"begins at {shown_number(fmt.min)}" if value < fmt.min else f"ends at {shown_number(fmt.max)}"
        raise ValueError(f"the constant {shown_number(value)} lies beyond {fmt}, which {end}")
    return Array._of(encode(np.array(value, object), fmt), fmt)


def key_of(key, step: int, part: int = 0):
    """The key of a rounding of a step: of the first, the given one; of others, made of it and their number.

    Number ``n = step * 2**16 + part`` has the key (seed', n) with seed' = the two key words of (seed, stream) in domain
    4, the first one low.
    """
    if part >> SITE_BITS:
        raise ValueError(f"one step of an operator has more than {1 << SITE_BITS} stochastic roundings")
    number = step << SITE_BITS | part
    if key is None or number == 0:
        return key
    low, high = _core.philox_key(*seed_and_stream(key), _DOMAIN)
    return low | high << 32, number


def lifted(mask, shape) -> np.ndarray:
    """A mask at a shape that it broadcasts to."""
    return np.broadcast_to(mask, shape)


def compare(function: str, left, right) -> np.ndarray:
    """Where a comparison of Arrays and exact numbers holds; it is exact, and a number is its nearest in binary64."""
    if isinstance(left, Fraction):
        left = beside(left, right.format)
    if isinstance(right, Fraction):
        right = beside(right, left.format)
    return np.asarray(_COMPARISONS[function](left, right))


@lru_cache(maxsize=4096)
def beside(value: Fraction, fmt) -> Array:
    """A number that is compared with values of a format: exactly in that, else the nearest in binary64."""
    try:
        return as_operand(value, fmt)
    except ValueError:  # no value of the format
        if abs(value) >= 2**1024:
            raise ValueError(f"{shown_number(value)} is compared, and lies beyond binary64") from None
        return Array._of(encode(float(value), "binary64"), _binary64())


@lru_cache(maxsize=1)
def _binary64():
    from softnum.formats.names import format

    return format("binary64")


def apply(function: str, operands, fmt, options: dict, key=None, mask=None) -> Array:
    """An operation on Arrays and exact numbers, rounded to a format.

    options: of the rounding, as `softnum.add` takes them. mask: where it is computed, None for everywhere; elsewhere
    the result is of no meaning. Random words are numbered by the places of the whole.
    """
    arrays = [as_constant(x, fmt) if isinstance(x, Fraction) else x for x in operands]
    shape = np.broadcast_shapes(*(a.shape for a in arrays), () if mask is None else mask.shape)
    options = dict(options)
    if rounding_name(options.get("rounding", "nearest_even")).startswith("stochastic"):
        options["random_bits"] = random_words(True, key, None, shape)
    if mask is None or mask.all():
        if shape and all(a.shape != shape for a in arrays):
            arrays[0] = Array._of(np.broadcast_to(arrays[0].codes, shape), arrays[0].format)
        return _compute(function, arrays, fmt, options)
    mask = lifted(mask, shape)
    codes = np.zeros(shape, fmt.storage_dtype)
    if mask.any():
        if "random_bits" in options:
            options["random_bits"] = options["random_bits"][mask]
        chosen = [a if not a.ndim else Array._of(np.broadcast_to(a.codes, shape)[mask], a.format) for a in arrays]
        codes[mask] = _compute(function, chosen, fmt, options).codes
    return Array._of(codes, fmt)


def _compute(function: str, arrays, fmt, options) -> Array:
    first = arrays[0]
    if function in _TO_INTEGRAL:
        first = OPERATIONS["round_to_integral"][0](first, rounding=_TO_INTEGRAL[function])
        function = "copy"
    if function == "copy":
        return first if first.format == fmt else OPERATIONS["convert"][0](first, to_fmt=fmt, **options)
    if function in ("negate", "absolute") and first.format == fmt:
        return OPERATIONS[function][0](first)
    if function in ("negate", "absolute"):  # the exact result, rounded once to another format
        negative = True if function == "negate" else np.signbit(np.asarray(first))
        arrays = [first, Array._of(np.where(negative, *SIGNS), sign_format())]
        function = "multiply"
    if any(a.format != fmt for a in arrays):
        options = options | {"out_fmt": fmt}
    return OPERATIONS[function][0](*arrays, **options)


#: codes of -1 and 1
SIGNS = np.uint8(0b1010), np.uint8(0b0010)  # -1 and 1 in e2m1fn


@lru_cache(maxsize=1)
def sign_format():
    """The format of `SIGNS`."""
    from softnum.formats.names import format

    return format("e2m1fn")
