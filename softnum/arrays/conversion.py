"""Values in and out: quantize, encode, decode. The format's codec does it (`softnum.formats.codec`)."""

from __future__ import annotations

from functools import lru_cache
from numbers import Real
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from softnum.arrays.environment import source_key
from softnum.arrays.sources import DEFAULT_SOURCE
from softnum.formats.annotations import FormatLike, Key, RoundingOptions
from softnum.formats.blocks import check_keywords, format
from softnum.formats.codec import Rounding
from softnum.runtime import _core

__all__ = ["decode", "encode", "quantize"]

# What was asked for before, by a format or its name -> the kernels of plain arrays (`softnum.runtime._core` says which
# arrays are). All else that a call needs to know follows from that.
_ROUNDERS: dict[tuple, _core.Rounders] = {}
_DECODERS: dict[tuple, _core.Decoder] = {}
_MOST_KEPT = 1024


def _asked(fmt, given: Rounding, out, threads, block) -> tuple | None:
    """What the kernels of plain arrays are found by; None of calls that ask for more than they do."""
    if (
        out is not None or threads is not None or block or given.random_bits is not None
        or given.return_flags is not False or type(given.stochastic_bits) is not int or type(given.invalid) is not str
    ):  # fmt: skip
        return None
    return (
        fmt, given.rounding, given.overflow, given.stochastic_bits, given.invalid, given.tininess, given.flush_results
    )  # fmt: skip


def _found(known: dict, asked):
    """What is known of a question; None of others, those among them that have no hash."""
    try:
        return known.get(asked)
    except TypeError:
        return None


def _keep(known: dict, asked, kernels) -> None:
    if kernels is not None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[asked] = kernels


def invalid_code(invalid: str | float, fmt: FormatLike) -> int:
    """The code that ``invalid=`` states, for a format without NaN; ValueError if it is no value of the format."""
    if isinstance(invalid, str) and invalid == "raise":
        return 0
    if isinstance(invalid, str) or not isinstance(invalid, Real):
        raise ValueError(f"invalid must be 'raise' or a number, got {invalid!r}")
    return 0 if fmt.has_nan else exact_code(invalid, fmt, "invalid")


def exact_code(value, fmt: FormatLike, what: str) -> int:
    """The code of a number that must be a value of the format; ValueError if it is none."""
    with _core.PlainEnvironment():
        code = find_code(value, value == 0 and str(value).startswith("-"), fmt)
        if code is None:
            try:
                text = repr(value)
            except ValueError:  # Python's, of more than 4300 digits
                text = "(a number of thousands of digits)"
            raise ValueError(f"{what}={text} is not a value of {fmt}")
        return code


@lru_cache(maxsize=4096)
def find_code(value, minus_zero: bool, fmt) -> int | tuple[int, int] | None:
    """The code of exactly this number, a pair of words where it takes two, or None.

    minus_zero tells -0.0 from 0.0, which are the same key.
    """
    try:
        code = encode(np.array(value, object), fmt)
        back = decode(code, fmt, object).item()
    except ValueError:  # NaN or infinite, and no code says so; a code whose value is irrational
        return None
    same = back == value and (back == 0 and str(back).startswith("-")) == minus_zero
    return code.item() if same or (back != back and value != value) else None


@overload
def quantize(
    x: ArrayLike, fmt: FormatLike, *, return_flags: Literal[False] = False, **options: Unpack[RoundingOptions]
) -> np.ndarray: ...
@overload
def quantize(
    x: ArrayLike, fmt: FormatLike, *, return_flags: Literal[True], **options: Unpack[RoundingOptions]
) -> tuple[np.ndarray, NDArray[np.uint8]]: ...
def quantize(
    x: ArrayLike,
    fmt: FormatLike,
    *,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    stochastic_bits: int = 32,
    random: str = DEFAULT_SOURCE,
    invalid: str | float = "raise",
    return_flags: bool = False,
    tininess: str = "after",
    flush_results: str | None = None,
    out: np.ndarray | None = None,
    threads: int | None = None,
    **block: Any,
) -> Any:
    """Round values to a format and return values.

    Parameters
    ----------
    x : array_like of float16, float32 or float64, any shape
        The values. Other numbers are converted to float64. A CUDA array (CuPy, PyTorch, JAX, Numba) is rounded on its
        device, to the same bits, and gives one of its library. In block formats, not of float16.
    fmt : format or str
        The format to round to. A block format takes `axis`, `scale_rule`, `symmetric` and `tensor_scale` as `encode`
        does, and saturates by default.
    rounding : str
        A rounding mode (``softnum.formats.modes.ROUNDING_MODES``, or short: rne rna rtz rup rdn rto sr).
    overflow : {"infinity", "saturate", "saturate_finite", "wrap", "p3109_v3_2_1"}, optional
        Default "infinity" for floats and "saturate" for fixed point; "wrap" is for fixed point, and the last, the rule
        of an older draft, for P3109's formats with infinities.
    key : int, (int, int) or Stream, optional
        Seed, or (seed, stream), for stochastic rounding: element i in C order takes word ``i mod 4`` of Philox counter
        ``i div 4``, whatever the thread count or instruction set.
    random_bits : array_like of uint32, optional
        The random words themselves, broadcast to x's shape; the low `stochastic_bits` bits count.
    stochastic_bits : int
        r, from 1 to 32.
    random : str
        Where the bits come from: "philox4x32-10", or another of the documentation's sources of random bits, such as
        "philox4x32-7/4", "lfsr32x8", or "philox4x32-3@transformer_engine", whose elements have 8 bits each.
    invalid : "raise" or a number
        What to do with a NaN (in fixed point, also an infinity) if the format cannot encode it: raise a ValueError, or
        return this value of the format.
    return_flags : bool
        Whether to return (values, flags), flags a uint8 array of `softnum.Flags`: what `softnum.convert` from x's float
        type raises. The values are the same. Not for value tables or block formats.
    tininess : {"after", "before"}
        Whether UNDERFLOW is judged after or before rounding (a stochastic result always before).
    flush_results : {None, "before", "after"}
        Whether results that are tiny before rounding (Arm) or after it (x86) become zero, sign kept.
    out : ndarray, optional
        The array to write the result to, with x's shape and dtype. May be x.
    threads : int, optional
        Default: as many as are worthwhile, at most the environment variable SOFTNUM_THREADS or the number of CPUs. The
        result does not depend on it.

    Returns
    -------
    ndarray; with `return_flags`, a pair
        Values of `fmt`, in x's shape and float type. NaNs are canonical (0x7FC00000, 0x7FF8000000000000).

    Raises
    ------
    ValueError
        If a NaN (or, in fixed point, an infinity) has no code and no value is stated for it, or a result is no value of
        x's float type; if there is no such source, or it gives an element fewer than r bits.

    Notes
    -----
    The result is correctly rounded on every instruction set. Source: IEEE 754-2019 clause 4.3 for the modes it
    has; `softnum.reference` defines the others.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> sn.quantize(np.float32([1.1, 3.14159, 1e9]), "e5m2")
    array([ 1.,  3., inf], dtype=float32)
    >>> sn.quantize(np.float32([0.3]), "q4.4", rounding="sr", key=7, stochastic_bits=8)
    array([0.3125], dtype=float32)
    >>> sn.quantize(np.float32([0.3]), "q4.4", rounding="sr", key=7, stochastic_bits=8, random="lfsr16x8")
    array([0.3125], dtype=float32)
    >>> sn.quantize(np.float32([1.0, 1.1, 1e9]), "e5m2", return_flags=True)
    (array([ 1.,  1., inf], dtype=float32), array([0, 1, 5], dtype=uint8))
    """
    if random is not DEFAULT_SOURCE:
        key = source_key(random, key, random_bits, rounding, stochastic_bits, "quantize")
    given = Rounding(
        rounding, overflow, key, random_bits, stochastic_bits, invalid, return_flags, tininess, flush_results
    )
    asked = _asked(fmt, given, out, threads, block)
    kernels = _found(_ROUNDERS, asked)
    if kernels is not None and (values := kernels.quantize(x, key)) is not None:
        return values
    if block:
        check_keywords("quantize", block)
    fmt = format(fmt)
    values = fmt.codec.quantize(x, fmt, given, out, threads, block)
    if asked is not None and kernels is None:
        _keep(_ROUNDERS, asked, fmt.codec.kernels(fmt, given))
    return values


@overload
def encode(
    x: ArrayLike, fmt: FormatLike, *, return_flags: Literal[False] = False, **options: Unpack[RoundingOptions]
) -> Any: ...
@overload
def encode(
    x: ArrayLike, fmt: FormatLike, *, return_flags: Literal[True], **options: Unpack[RoundingOptions]
) -> tuple[Any, NDArray[np.uint8]]: ...
def encode(
    x: ArrayLike,
    fmt: FormatLike,
    *,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    stochastic_bits: int = 32,
    random: str = DEFAULT_SOURCE,
    invalid: str | float = "raise",
    return_flags: bool = False,
    tininess: str = "after",
    flush_results: str | None = None,
    out: np.ndarray | None = None,
    threads: int | None = None,
    **block: Any,
) -> Any:
    """Round values to a format and return their encodings.

    Parameters
    ----------
    x : array_like, any shape
        float16, float32, float64, ml_dtypes' floats, integers, objects (int, float, Fraction), or text: decimal
        ("0.1"), a ratio ("1/3"), hexadecimal ("0x1.8p3"), "inf", "nan". Each is taken exactly. Or a CUDA array of
        float16, float32 or float64 (in block formats, not of float16), which is encoded on its device.
    fmt, rounding, overflow, key, random_bits, stochastic_bits, random, invalid, tininess, flush_results, threads
        As in `quantize`.
    return_flags : bool
        Whether to return (codes, flags), flags a uint8 array of `softnum.Flags`: what `softnum.convert` from x's type
        raises; of text and objects, what their rounding does. The codes are the same. Neither for value tables nor for
        block formats.
    out : ndarray, optional
        The array to write the encodings to: x's shape, of type ``fmt.storage_dtype``. Not for block formats.
    axis : int
        For block formats: the axis along which elements share scales. Default the last.
    scale_rule : str
        For block formats: how the scale is computed from the block's largest magnitude, one of
        `softnum.formats.blocks.SCALE_RULES`. Default "floor" (OCP MX) where all scales are powers of two, else "max"
        (nvfp4).
    symmetric : bool
        For block formats with elements in two's complement: leave the lowest code (-2 in mxint8) unused, as OCP MX
        clause 5.3.4 allows; values that round to it become the next value above.
    tensor_scale : float, optional
        For formats with a scale of the whole array: that scale. Default: the largest magnitude over the product of the
        largest element and the largest scale, rounded to nearest even; 1 for an array of zeros.

    Returns
    -------
    ndarray of uint8, uint16, uint32 or uint64; with `return_flags`, a pair
        Codes (``fmt.storage_dtype``), in x's shape.
        Of a block format: a tuple of the elements' codes, in x's shape; the scales' codes, that shape but for `axis`,
        which has a scale a block; and, if the format has one, the scale of the array (numpy.float32).

    Raises
    ------
    ValueError
        If a value is NaN (or, in fixed point, infinite), the format cannot encode it, and `invalid` states no value for
        it.
    TypeError
        If an object is not a real number.

    Notes
    -----
    Block formats: an element is the exact quotient of its value by the scale (the product of both scales), rounded once
    as `rounding` says, and saturates by default (OCP MX clause 6.3). A scale is at least the smallest positive and at
    most the largest of its format; a block of zeros has the smallest. An infinity or a NaN makes the scale NaN, and
    with it all values of the block (elements: NaN, or code 0 where they have none); it does not count for the tensor's
    scale.
    Inputs must be exact in binary64. Random words are numbered by elements, as without blocks.

    Examples
    --------
    >>> import softnum as sn
    >>> from fractions import Fraction
    >>> sn.encode([1.0, -2.0, 0.1], "e4m3fn")
    array([ 56, 192,  29], dtype=uint8)
    >>> sn.encode(Fraction(1, 3), "q1.7")
    array(43, dtype=uint8)
    >>> sn.encode(["0.5", "1/3", "1e10"], "q4.4", return_flags=True)
    (array([  8,   5, 127], dtype=uint8), array([0, 1, 4], dtype=uint8))
    >>> sn.encode([[1.0, 3.3, -20.0]], "mxfp4_e2m1", axis=1)
    (array([[ 0,  2, 14]], dtype=uint8), array([[129]], dtype=uint8))
    """
    if random is not DEFAULT_SOURCE:
        key = source_key(random, key, random_bits, rounding, stochastic_bits, "encode")
    given = Rounding(
        rounding, overflow, key, random_bits, stochastic_bits, invalid, return_flags, tininess, flush_results
    )
    asked = _asked(fmt, given, out, threads, block)
    kernels = _found(_ROUNDERS, asked)
    if kernels is not None and (codes := kernels.encode(x, key)) is not None:
        return codes
    if block:
        check_keywords("encode", block)
    fmt = format(fmt)
    codes = fmt.codec.encode(x, fmt, given, out, threads, block)
    if asked is not None and kernels is None:
        _keep(_ROUNDERS, asked, fmt.codec.kernels(fmt, given))
    return codes


def decode(
    codes: Any,
    fmt: FormatLike,
    dtype: DTypeLike = np.float64,
    *,
    out: np.ndarray | None = None,
    threads: int | None = None,
    axis: int | None = None,
) -> np.ndarray:
    """The values of encodings.

    Parameters
    ----------
    codes : array_like of unsigned integers, any shape
        Of a block format: the tuple that `encode` returns, or a BlockArray. A CUDA array is decoded on its device, to
        float16, float32 or float64; of a block format, to float32 or float64.
    fmt : format or str
    dtype : float16, float32, float64 or object
        The dtype of the result. object: exact Fractions (and floats for infinities, NaN and -0), for any format.
    out : ndarray of dtype, optional
        The array to write the values to, in the shape of codes.
    threads : int, optional
        As in `quantize`.
    axis : int, optional
        For block formats: the blocked axis, if codes are a tuple. Default the last.

    Returns
    -------
    ndarray of dtype, in the shape of codes

    Raises
    ------
    ValueError
        If a code does not fit the format's bits, or a value is not exact in `dtype`.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.decode([0x3c, 0x7b, 0xfc], "e5m2")
    array([1.0000e+00, 5.7344e+04,       -inf])
    >>> sn.decode(sn.encode([1.0, 3.3, -20.0], "mxfp6_e2m3"), "mxfp6_e2m3")
    array([  1. ,   3.5, -20. ])
    """
    asked = (fmt, dtype) if out is None and threads is None and axis is None else None
    kernel = _found(_DECODERS, asked)
    if kernel is not None and (values := kernel.values(codes)) is not None:
        return values
    fmt = format(fmt)
    values = fmt.codec.decode(codes, fmt, dtype, out, threads, axis)
    if asked is not None and kernel is None:
        _keep(_DECODERS, asked, fmt.codec.decoder(fmt, dtype))
    return values
