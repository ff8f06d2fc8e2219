"""Values in and out: quantize, encode, decode."""

from __future__ import annotations

from functools import lru_cache
from numbers import Real

import numpy as np

from softnum import _core, backend, lanes
from softnum.blocks import block_format, block_options, is_block_format
from softnum.checks import can_hold, check_codes, check_out, delivered, float_array, native
from softnum.custom import CustomFormat
from softnum.environment import environment, random_words, words_or_key
from softnum.exact_numbers import numbers_of
from softnum.formats import FixedFormat
from softnum.modes import Flags, rounding_name
from softnum.names import format, format_of_dtype
from softnum.number_codes import codes_of_numbers, numbers_of_codes
from softnum.ufuncs import call_ufunc, raise_no_code

__all__ = ["decode", "encode", "quantize"]

_BINARY = {np.dtype(np.float16): "binary16", np.dtype(np.float32): "binary32", np.dtype(np.float64): "binary64"}


def invalid_code(invalid, fmt) -> int:
    """The code that ``invalid=`` states, for a format without NaN; ValueError if it is no value of the format."""
    if isinstance(invalid, str) and invalid == "raise":
        return 0
    if isinstance(invalid, str) or not isinstance(invalid, Real):
        raise ValueError(f"invalid must be 'raise' or a number, got {invalid!r}")
    return 0 if fmt.has_nan else exact_code(invalid, fmt, "invalid")


def exact_code(value, fmt, what: str) -> int:
    """The code of a number that must be a value of the format; ValueError if it is none."""
    code = find_code(value, value == 0 and str(value).startswith("-"), fmt)
    if code is None:
        try:
            text = repr(value)
        except ValueError:  # Python's, of more than 4300 digits
            text = "(a number of thousands of digits)"
        raise ValueError(f"{what}={text} is no value of {fmt}")
    return code


@lru_cache(maxsize=4096)
def find_code(value, minus_zero: bool, fmt) -> int | None:
    """The code of exactly this number, or None. minus_zero tells -0.0 from 0.0, which are the same key."""
    try:
        code = encode(np.array(value, object), fmt)
    except ValueError:  # NaN or infinite, and no code says so
        return None
    back = decode(code, fmt, object).item()
    same = back == value and (back == 0 and str(back).startswith("-")) == minus_zero
    return int(code) if same or (back != back and value != value) else None


def quantize(
    x,
    fmt,
    *,
    rounding="nearest_even",
    overflow=None,
    key=None,
    random_bits=None,
    stochastic_bits=32,
    invalid="raise",
    return_flags=False,
    tininess="after",
    flush_results=None,
    out=None,
    threads=None,
    **block,
):
    """Round values to a format and return values.

    Parameters
    ----------
    x : array_like of float16, float32 or float64, any shape
        The values. Other numbers are taken as float64. A CUDA array (CuPy, PyTorch, JAX, Numba) is rounded on its
        device, to the same bits, and gives one of its library. In block formats, not of float16.
    fmt : format or str
        The format to round to. A block format takes `axis`, `scale_rule`, `symmetric` and `tensor_scale` as `encode`
        does, and saturates by default.
    rounding : str
        A rounding mode (``softnum.modes.ROUNDING_MODES``, or short: rne rna rtz rup rdn rto sr).
    overflow : {"infinity", "saturate", "saturate_finite", "wrap"}, optional
        Default "infinity" for floats and "saturate" for fixed point; "wrap" is for fixed point.
    key : int or (int, int), optional
        Seed, or (seed, stream), for stochastic rounding: element i in C order takes word ``i mod 4`` of Philox counter
        ``i div 4``, whatever the thread count or instruction set.
    random_bits : array_like of uint32, optional
        The random words themselves, broadcast to x's shape; the low `stochastic_bits` bits count.
    stochastic_bits : int
        r, from 1 to 32.
    invalid : "raise" or a number
        What a NaN (in fixed point, an infinity too) becomes where the format has no code for it: a ValueError, or this
        value of the format.
    return_flags : bool
        Whether to return (values, flags), flags a uint8 array of `softnum.Flags`: what `softnum.convert` from x's float
        type raises. The values are the same. Not for value tables or block formats.
    tininess : {"after", "before"}
        Whether UNDERFLOW is judged after or before rounding (a stochastic result always before).
    flush_results : {None, "before", "after"}
        Whether results that are tiny before rounding (Arm) or after it (x86) become zero, sign kept.
    out : ndarray, optional
        Where to put the result: x's shape and dtype. May be x.
    threads : int, optional
        Default: as many as pay, at most the environment variable SOFTNUM_THREADS or the CPUs there are. The result does
        not depend on it.

    Returns
    -------
    ndarray; with `return_flags`, a pair
        Values of `fmt`, in x's shape and float type. NaNs are canonical (0x7FC00000, 0x7FF8000000000000).

    Raises
    ------
    ValueError
        If a NaN (or, in fixed point, an infinity) has no code and no value is stated for it, or a result is no value of
        x's float type.

    Notes
    -----
    The result is the correctly rounded one, on every instruction set. Source: IEEE 754-2019 clause 4.3 for the modes it
    has; `softnum.reference` defines the others.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> sn.quantize(np.float32([1.1, 3.14159, 1e9]), "e5m2")
    array([ 1.,  3., inf], dtype=float32)
    >>> sn.quantize(np.float32([0.3]), "q4.4", rounding="sr", key=7, stochastic_bits=8)
    array([0.3125], dtype=float32)
    >>> sn.quantize(np.float32([1.0, 1.1, 1e9]), "e5m2", return_flags=True)
    (array([ 1.,  1., inf], dtype=float32), array([0, 1, 5], dtype=uint8))
    """
    plain = {"tininess": tininess, "flush_results": flush_results, "return_flags": return_flags, "invalid": invalid}
    if block or is_block_format(fmt):
        from softnum.block_codes import quantize_blocks

        options = block_options("quantize", fmt, block, **plain)
        with _core.PlainEnvironment():
            return quantize_blocks(
                x, fmt=block_format(fmt), rounding=rounding, overflow=overflow, key=key, random_bits=random_bits,
                stochastic_bits=stochastic_bits, out=out, threads=threads, **options,
            )  # fmt: skip
    if backend.is_device_array(x):
        backend.check_host_only("quantize", threads)
        return backend.on_device(
            "quantize", x, fmt, rounding=rounding, overflow=overflow, key=key, random_bits=random_bits,
            stochastic_bits=stochastic_bits, out=out, **plain,
        )  # fmt: skip
    with _core.PlainEnvironment():
        return _quantize(
            x, fmt, rounding, overflow, key, random_bits, stochastic_bits, out=out, threads=threads, **plain
        )  # fmt: skip


def _quantize(x, fmt, rounding, overflow, key, random_bits, stochastic_bits, *, out, threads, return_flags, **plain):
    """plain: invalid, tininess and flush_results."""
    fmt = format(fmt)
    x = native(x)
    half = x.dtype == np.float16
    x = x if half else float_array(x, "quantize")
    check_out("quantize", out, x.shape, x.dtype)
    modes = (rounding, overflow, key, random_bits, stochastic_bits)
    if return_flags:
        codes, flags = _encode(x, fmt, *modes, threads=threads, return_flags=True, **plain)
        values = _decode(codes, fmt, np.float32 if half else x.dtype, None, threads)
        return (_narrowed(values, fmt, out) if half else delivered(values, out)), flags
    if half:
        wide = _quantize(x.astype(np.float32), fmt, *modes, out=None, threads=threads, return_flags=False, **plain)
        return _narrowed(wide, fmt, out)
    env = _environment(fmt, rounding, overflow, stochastic_bits, **plain)
    stochastic = rounding_name(rounding).startswith("stochastic")
    if isinstance(fmt, CustomFormat):
        instead = None if isinstance(plain["invalid"], str) else env[7]
        return delivered(fmt.quantize(x, rounding_name(rounding), overflow, instead), out)
    kernel = lanes.rounder(fmt, env, 8 * x.dtype.itemsize)
    if kernel.ok != 8 * x.dtype.itemsize:
        codes = _encode(x, fmt, *modes, threads=threads, **plain)
        return delivered(_decode(codes, fmt, x.dtype, None, threads), out)
    may_fail = not fmt.has_nan and isinstance(plain["invalid"], str)
    source = np.ascontiguousarray(x)
    # in place only where no element can fail half-way, and where reading never lags behind writing
    in_place = can_hold(out, source) and not may_fail
    target = out if in_place else np.empty_like(source)
    words, words_key = words_or_key(stochastic, key, random_bits, x.shape)
    if lanes.round_values(kernel, source, target, words, words_key, threads) and may_fail:
        what = "NaN or infinite" if fmt.kind == "fixed" else "NaN"
        raise ValueError(f"quantize: a value is {what}, and {fmt} has no code for it")
    return out if in_place else delivered(target.reshape(x.shape), out)


def _environment(fmt, rounding, overflow, stochastic_bits, invalid="raise", tininess="after", flush_results=None):
    """The core's environment of encode and quantize."""
    if isinstance(fmt, CustomFormat) and flush_results is not None:
        raise ValueError(
            f"flush_results is not defined for {fmt.described}: none of its values is subnormal; leave it out"
        )
    code = invalid_code(invalid, fmt)
    return environment(fmt, rounding, overflow, stochastic_bits, tininess, False, flush_results, invalid_code=code)


def _narrowed(wide, fmt, out):
    """float32 values as float16, exactly; into out if there is one."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = wide.astype(np.float16)
    if not np.array_equal(narrow.astype(np.float32), wide, equal_nan=True):
        raise ValueError(f"quantize: a result in {fmt} is not exact in float16 (give float32)")
    if out is None:
        return narrow
    out[...] = narrow
    return out


def encode(
    x,
    fmt,
    *,
    rounding="nearest_even",
    overflow=None,
    key=None,
    random_bits=None,
    stochastic_bits=32,
    invalid="raise",
    return_flags=False,
    tininess="after",
    flush_results=None,
    out=None,
    threads=None,
    **block,
):
    """Round values to a format and return codes.

    Parameters
    ----------
    x : array_like, any shape
        float16, float32, float64, ml_dtypes' floats, integers, objects (int, float, Fraction), or text: decimal
        ("0.1"), a ratio ("1/3"), hexadecimal ("0x1.8p3"), "inf", "nan". Each is taken exactly. Or a CUDA array of
        float16, float32 or float64 (in block formats, not of float16), which is encoded on its device.
    fmt, rounding, overflow, key, random_bits, stochastic_bits, invalid, tininess, flush_results, threads
        As in `quantize`.
    return_flags : bool
        Whether to return (codes, flags), flags a uint8 array of `softnum.Flags`: what `softnum.convert` from x's type
        raises; of text and objects, what their rounding does. The codes are the same. Neither for value tables nor for
        block formats.
    out : ndarray, optional
        Where to put the codes: x's shape, of type ``fmt.storage_dtype``. Not for block formats.
    axis : int
        Of block formats: the axis along which elements share scales. Default the last.
    scale_rule : str
        Of block formats: how the scale follows from the block's largest magnitude, one of `softnum.blocks.SCALE_RULES`.
        Default "floor" (OCP MX) where all scales are powers of two, else "max" (nvfp4).
    symmetric : bool
        Of block formats with elements in two's complement: leave the lowest code (of mxint8: -2) unused, as OCP MX
        clause 5.3.4 allows; what rounds to it becomes the one above.
    tensor_scale : float, optional
        Of formats with a scale of the whole array: that scale. Default: the largest magnitude over the product of the
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
        If a NaN (or, in fixed point, an infinity) has no code in the format and no value is stated for it.
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
    plain = {"tininess": tininess, "flush_results": flush_results, "return_flags": return_flags, "invalid": invalid}
    if block or is_block_format(fmt):
        from softnum.block_codes import encode_blocks

        options = block_options("encode", fmt, block, out=out, **plain)
        with _core.PlainEnvironment():
            return encode_blocks(
                x, block_format(fmt), rounding=rounding, overflow=overflow, key=key, random_bits=random_bits,
                stochastic_bits=stochastic_bits, threads=threads, **options,
            )  # fmt: skip
    if backend.is_device_array(x):
        backend.check_host_only("encode", threads)
        return backend.on_device(
            "encode", x, fmt, rounding=rounding, overflow=overflow, key=key, random_bits=random_bits,
            stochastic_bits=stochastic_bits, out=out, **plain,
        )  # fmt: skip
    with _core.PlainEnvironment():
        return _encode(x, fmt, rounding, overflow, key, random_bits, stochastic_bits, out=out, threads=threads, **plain)


def _encode(
    x, fmt, rounding, overflow, key, random_bits, stochastic_bits, *, out=None, threads=None, return_flags=False,
    invalid="raise", **plain,
):  # fmt: skip
    """plain: tininess and flush_results."""
    fmt = format(fmt)
    x = native(x)
    env = _environment(fmt, rounding, overflow, stochastic_bits, invalid, **plain)
    stochastic = rounding_name(rounding).startswith("stochastic")
    check_out("encode", out, x.shape, fmt.storage_dtype)
    table = isinstance(fmt, CustomFormat)
    if table and return_flags:
        raise ValueError(
            f"return_flags is not defined for {fmt.described}: it has values, but no exceptions; leave it out"
        )
    binary = x.dtype in _BINARY or (x.dtype.kind in "biu" and x.dtype.itemsize <= 4)
    if binary and not table and not return_flags:
        # binary16 is exact in binary32, integers of up to 32 bits in binary64
        wide = x if x.dtype.kind == "f" and x.dtype.itemsize > 2 else x.astype("f4" if x.dtype.kind == "f" else "f8")
        kernel = lanes.rounder(fmt, env, 8 * wide.dtype.itemsize)
        if kernel.ok:
            may_fail = not fmt.has_nan and isinstance(invalid, str)
            return _encode_fast(
                wide, fmt, kernel, words_or_key(stochastic, key, random_bits, x.shape), may_fail, out, threads
            )
    if x.dtype.kind == "U":
        x = numbers_of(x)
    source = format_of_dtype(x.dtype)
    if table:
        x = x if source is None else decode(x.view(source.storage_dtype), source)
        instead = None if isinstance(invalid, str) else env[7]
        return delivered(fmt.encode(x, rounding_name(rounding), overflow, instead), out)
    words = random_words(stochastic, key, random_bits, x.shape)
    if x.dtype.kind == "O" or (x.dtype.kind == "f" and source is None):
        codes, flags = codes_of_numbers(x, fmt, env, words, invalid)
    else:
        if x.dtype.kind == "b":
            x = x.astype(np.uint8)
        if x.dtype.kind in "iub":
            source = FixedFormat(8 * x.dtype.itemsize, 0, signed=x.dtype.kind == "i")
        if source is None:
            raise TypeError(f"encode takes numbers, got an array of {x.dtype}")
        given = check_codes(np.ascontiguousarray(x).view(source.storage_dtype).reshape(x.shape), source)
        codes, flags = call_ufunc(
            "convert", (given,), (source,), fmt, env, words, with_flags=return_flags, what="encode", invalid=invalid
        )
    codes = delivered(codes, out)
    return (codes, flags) if return_flags else codes


def _encode_fast(x, fmt, kernel, random, may_fail, out, threads):
    source = np.ascontiguousarray(x)
    straight = can_hold(out, source) and not may_fail
    codes = out if straight else np.empty(x.shape, fmt.storage_dtype)
    if lanes.encode_values(kernel, source, codes, *random, threads) and may_fail:
        raise_no_code(fmt, "encode")
    return out if straight else delivered(codes, out)


def decode(codes, fmt, dtype=np.float64, *, out=None, threads=None, axis=None) -> np.ndarray:
    """The values that codes stand for.

    Parameters
    ----------
    codes : array_like of unsigned integers, any shape
        Of a block format: the tuple that `encode` returns, or a BlockArray. A CUDA array is decoded on its device, to
        float16, float32 or float64; of a block format, to float32 or float64.
    fmt : format or str
    dtype : float16, float32, float64 or object
        What the values are given as. object: exact Fractions (and floats for infinities, NaN and -0), for any format.
    out : ndarray of dtype, optional
        Where to put the values, in the shape of codes.
    threads : int, optional
        As in `quantize`.
    axis : int, optional
        Of block formats: the axis that is blocked, where codes are a tuple. Default the last.

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
    if axis is not None or is_block_format(fmt):
        from softnum.block_codes import decode_blocks

        with _core.PlainEnvironment():
            return decode_blocks(codes, block_format(fmt), dtype, axis=axis, out=out, threads=threads)
    if backend.is_device_array(codes):
        backend.check_host_only("decode", threads)
        return backend.on_device("decode", codes, fmt, dtype, out=out)
    with _core.PlainEnvironment():
        return _decode(codes, fmt, dtype, out, threads)


def _decode(codes, fmt, dtype, out=None, threads=None):
    fmt = format(fmt)
    dtype = np.dtype(dtype)
    if dtype not in _BINARY and dtype.kind != "O":
        raise TypeError(f"decode gives float16, float32, float64 or objects, not {dtype}")
    codes = check_codes(codes, fmt)
    check_out("decode", out, codes.shape, dtype)
    if dtype.kind == "O":
        return delivered(numbers_of_codes(codes, fmt), out)
    if isinstance(fmt, CustomFormat):
        return delivered(fmt.decode(codes, dtype), out)
    source = np.ascontiguousarray(codes).reshape(codes.shape)  # which NumPy gives one dimension at least
    if dtype.itemsize > 2:
        straight = can_hold(out, source)
        values = out if straight else np.empty(codes.shape, dtype)
        if lanes.decode_lanes(source, fmt, values, threads, _decode_by_definition):
            return out if straight else delivered(values, out)
    return delivered(_decode_by_definition(source, fmt, dtype), out)


def _decode_by_definition(codes, fmt, dtype):
    target = format(_BINARY[np.dtype(dtype)])
    out = np.empty(codes.shape, target.storage_dtype)
    flags = _core.convert_array(codes, fmt, target, environment(target, "nearest_even", None, 32), out)
    if flags & ~Flags.INVALID:  # a signaling NaN is a value too
        raise ValueError(f"a value of {fmt} is not exact in {dtype} (use a wider type)")
    return out.view(dtype)
