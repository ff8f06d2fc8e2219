"""softnum.quantize, encode and decode for CUDA arrays.

Formats and modes in the domain of device/patterns.h take some twenty instructions an element, so that memory
bounds them; the rest goes by the definition, and value tables by a search.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.conversion import decode as host_decode
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.codec import Rounding
from softnum.formats.dispatch import of_format
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.kernels.device.elementwise.computations import (
    CARRIERS,
    FROM_ARRAY,
    FROM_KEY,
    NO_WORDS,
    Computation,
    decode_computation,
    encode_computation,
    quantize_computation,
    search_computation,
)
from softnum.kernels.device.elementwise.launch import Words, example, run, words_of, words_of_key
from softnum.kernels.device.elementwise.patterns import reading_text
from softnum.kernels.device.products.entries import NO_CODE, NOT_EXACT
from softnum.kernels.device.runtime import _cuda
from softnum.runtime.gateway import NoKernel, check_exact_values

__all__ = [
    "FROM_ARRAY", "FROM_KEY", "NO_WORDS", "check_out", "decode", "encode", "examples", "floats", "kernels_of",
    "prepared",
    "quantize",
]  # fmt: skip

_FLOATS = (np.float16, np.float32, np.float64)
_MOST_BITS = 16  # of codes, up to which a table has the value of each


@lru_cache(maxsize=16)
def _thresholds(fmt, rounding: str, overflow, carrier: str):
    """(keys of the thresholds, codes in order): found by bisection, with the rounding of the host."""
    word = np.dtype(CARRIERS[carrier][1]).type
    top = word(1 << (8 * word(0).itemsize - 1))

    def codes_of(keys):
        return fmt.encode(np.where(keys & top, keys ^ top, ~keys).view(carrier).astype(np.float64), rounding, overflow)

    place = fmt.order.astype(np.int64)
    in_order = np.argsort(place)
    wanted = np.arange(1, 1 << fmt.bits)
    largest = np.finfo(carrier).max
    ends = [largest if nan else np.inf for nan in _infinities_are_nan(fmt, rounding, overflow)]
    ends = np.array([-ends[0], ends[1]], carrier).view(word)
    low, high = np.full(wanted.shape, ~ends[0]), np.full(wanted.shape, ends[1] | top)
    reached = place[codes_of(high)] >= wanted
    while (low < high).any():
        middle = low + (high - low) // word(2)
        enough = place[codes_of(middle)] >= wanted
        low, high = np.where(enough, low, np.minimum(middle + word(1), high)), np.where(enough, middle, high)
    return np.where(reached, low, ~word(0)), in_order.astype(fmt.storage_dtype)


def _infinities_are_nan(fmt, rounding: str, overflow) -> tuple[bool, bool]:
    """Whether -infinity and +infinity become the format's NaN."""
    minus, plus = np.isnan(fmt.decode(fmt.encode(np.array([-np.inf, np.inf]), rounding, overflow), np.float64))
    return bool(minus), bool(plus)


@lru_cache(maxsize=16)
def _jumps_over_zero(fmt) -> bool:
    """Whether a format has values of two signs and no zero."""
    values = fmt.decode(np.arange(1 << fmt.bits).astype(fmt.storage_dtype), np.dtype(np.float64))
    return bool((values < 0).any() and (values > 0).any() and not (values == 0).any())


@_cuda.kept
def _search_tables(fmt, rounding: str, overflow, carrier: str, nan_code: int, to_values: bool):
    """(keys, results, which results are not exact if some are not): codes, or with to_values the carrier's bits."""
    keys, results = _thresholds(fmt, rounding, overflow, carrier)
    results = np.append(results, results.dtype.type(nan_code))
    found = _values_of(fmt, results, carrier) if to_values else (results,)
    return tuple(map(_cuda.to_device, (keys, *found)))


def _values_of(fmt, codes: np.ndarray, carrier: str) -> tuple[np.ndarray, ...]:
    """(the bits of a value table's values, which are not exact if some are not)"""
    values, inexact = fmt._table.in_type(np.dtype(carrier))
    bits = values[codes].view(CARRIERS[carrier][1])
    return (bits,) if inexact is None else (bits, inexact[codes].view(np.uint8))


@of_format
def _round(fmt, x, what: str, given: Rounding, env, out):
    """(results, flags or None, what was met) of quantize or encode, as `what` says."""
    words = words_of(rounding_name(given.rounding).startswith("stochastic"), given.key, given.random_bits, x.shape)
    make = quantize_computation if what == "quantize" else encode_computation
    raises = not fmt.has_nan and isinstance(given.invalid, str)
    computation = make(fmt, env, x.dtype.name, raises, given.return_flags)
    result, flags, met = run(computation, [x], tuple(x.shape), words, out)
    return result, flags, met & ~(0 if raises else NO_CODE)


@_round.custom
def _by_search(fmt, x, what: str, given: Rounding, env, out):
    """The same, to the values of a table."""
    rounding, overflow, invalid = given.rounding, given.overflow, given.invalid
    if fmt._functions.convert_takes is not None and not fmt.rounds_as_odd:
        raise NoKernel(
            f"{what}: {fmt} rounds by a function of yours, which no kernel calls; copy the CUDA array to the host first"
        )
    if fmt._table is None:
        raise NoKernel(
            f"{what}: kernels round by tables, and {fmt} has more than {_MOST_BITS} bits; copy the CUDA array to the "
            "host first"
        )
    fmt.check_modes(rounding, overflow)
    if rounding_name(rounding) == "toward_zero" and _jumps_over_zero(fmt):
        raise NoKernel(
            f"{what}: {fmt} has no zero between its values, and rounding toward zero there goes to the other sign: no "
            "thresholds say that; copy the CUDA array to the host first"
        )
    carrier = x.dtype.name
    nan_code = fmt._table.nan_code if fmt.has_nan else invalid_code(invalid, fmt)
    tables = _search_tables(fmt, rounding_name(rounding), overflow, carrier, int(nan_code), what == "quantize")
    raises = not fmt.has_nan and isinstance(invalid, str)
    output = tables[1].dtype.name
    nans = _infinities_are_nan(fmt, rounding, overflow)
    computation = search_computation(1 << fmt.bits, carrier, output, raises, len(tables), nans)
    result, _, met = run(computation, [x], tuple(x.shape), out=out, tables=tables)
    return result, None, met


# ---- the functions ---------------------------------------------------------------------------------------------------


def floats(x, what: str, types=(np.float32, np.float64)):
    """x, if it is an array of one of some float types; TypeError for others."""
    if isinstance(x, Array):
        raise TypeError(f"{what}: x is an Array of {x.format} on a GPU; x.astype(format) rounds it to another format")
    if x.dtype not in types:
        *most, last = (np.dtype(t).name for t in types)
        raise TypeError(f"{what}: CUDA arrays must be of {', '.join(most)} or {last}, got {x.dtype}")
    return x


def check_out(what: str, out, shape, dtype) -> None:
    if out is None:
        return
    known = hasattr(out, "__cuda_ndarray__")
    if not known or tuple(out.shape) != tuple(shape) or out.dtype != dtype:
        got = f"{out.dtype} of shape {tuple(out.shape)}" if known else type(out).__name__
        want = f"a CUDA array of shape {tuple(shape)} and type {np.dtype(dtype)}"
        raise ValueError(f"{what}: out must be {want}, got {got}")


@of_format
def _check_options(fmt, **options) -> None:
    """ValueError for options that are not defined for a format."""


@_check_options.custom
def _refuse_options(fmt, **options) -> None:
    for name, given in options.items():
        if given:
            raise ValueError(f"{name} is not defined for {fmt.described}: it has values alone; leave it out")


def _environment(fmt, rounding, overflow, stochastic_bits, invalid, return_flags, tininess, flush_results):
    _check_options(fmt, return_flags=return_flags, flush_results=flush_results)
    code = invalid_code(invalid, fmt)
    return environment(fmt, rounding, overflow, stochastic_bits, tininess, False, flush_results, invalid_code=code)


def quantize(x, fmt, **options):
    """Round the values of a CUDA array to a format, on the device; the bits are those of `softnum.quantize` on the CPU.

    Parameters
    ----------
    x : Numba CUDA array of float16, float32 or float64, any shape and strides
    fmt : format or str
    **options
        Those of `softnum.quantize` but `threads`. out: a Numba CUDA array of x's shape and dtype; it may be x, but must
        not overlap it otherwise. random_bits: an array of uint32, of the host or the device.

    Returns
    -------
    Numba CUDA array; with `return_flags`, a pair

    Raises
    ------
    ValueError, TypeError
        As `softnum.quantize`; NoKernel for a custom format that rounds by a function of the user's.
    """
    return _rounded("quantize", x, fmt, **options)


def encode(x, fmt, **options):
    """Codes of the values of a CUDA array, on the device; those of `softnum.encode` on the CPU.

    Parameters
    ----------
    x, fmt, **options
        As of `quantize`; out: of the format's storage type, and must not overlap x.

    Returns
    -------
    Numba CUDA array of unsigned integers; with `return_flags`, a pair

    Raises
    ------
    ValueError, TypeError
        As `quantize`.
    """
    return _rounded("encode", x, fmt, **options)


def prepared(
    fmt, carrier: str, *, rounding, overflow, key, stochastic_bits, invalid="raise"
) -> tuple[Computation, Words]:  # fmt: skip
    """What `quantize` computes of an element of a carrier, and its random words; no value table."""
    env = _environment(fmt, rounding, overflow, stochastic_bits, invalid, False, "after", None)
    words = words_of_key(rounding_name(rounding).startswith("stochastic"), key)
    return quantize_computation(fmt, env, carrier, not fmt.has_nan and isinstance(invalid, str)), words


def _rounded(
    what: str, x, fmt, *, rounding="nearest_even", overflow=None, key=None, random_bits=None, stochastic_bits=32,
    invalid="raise", return_flags=False, tininess="after", flush_results=None, out=None,
):  # fmt: skip
    """quantize or encode, as `what` says."""
    fmt, x, to_values = format(fmt), floats(x, what, _FLOATS), what == "quantize"
    check_exact_values(what, fmt)
    dtype = x.dtype if to_values else np.dtype(fmt.storage_dtype)
    check_out(what, out, x.shape, dtype)
    env = _environment(fmt, rounding, overflow, stochastic_bits, invalid, return_flags, tininess, flush_results)
    rounds = Rounding(rounding, overflow, key, random_bits, stochastic_bits, invalid, bool(return_flags))
    result, flags, met = _round(fmt, x, what, rounds, env, None if out is None else _cuda.bits(out))
    if met & NO_CODE and to_values and fmt.lost:
        raise ValueError(f"quantize: a value is {fmt.lost}, and {fmt} has no code for it")
    if met & NO_CODE:
        raise_no_code(fmt, what)
    if met & NOT_EXACT:
        raise _not_exact(fmt, x.dtype, what)
    result = out if out is not None else _cuda.viewed(result, dtype)
    return (result, flags) if return_flags else result


def _not_exact(fmt, dtype, what: str) -> ValueError:
    return ValueError(f"{what}: a value of {fmt} is not exact in {dtype} (use a wider type)")


@_cuda.kept
@of_format
def _all_values(fmt, carrier: str) -> tuple:
    """(the bits of all values, which are not exact if some are not); () where a formula or the definition computes
    them."""
    if fmt.bits > _MOST_BITS or reading_text("_reading", fmt, carrier) is not None:
        return ()
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    try:
        return (_cuda.to_device(host_decode(codes, fmt, carrier).view(CARRIERS[carrier][1])),)
    except ValueError:  # one is not exact
        return ()


@_all_values.custom
def _values_of_table(fmt, carrier: str) -> tuple:
    if fmt.bits > _MOST_BITS:
        raise NoKernel(f"decode: no kernel takes {fmt}, of {fmt.bits} bits; copy the CUDA array to the host first")
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    return tuple(map(_cuda.to_device, _values_of(fmt, codes, carrier)))


def decode(codes, fmt, dtype=np.float64, *, out=None):
    """The values that codes in a CUDA array stand for, on the device.

    Parameters
    ----------
    codes : Numba CUDA array of unsigned integers, any shape and strides
    fmt : format or str
    dtype : float16, float32 or float64
    out : Numba CUDA array of dtype, optional
        Of codes' shape; must not overlap codes.

    Returns
    -------
    Numba CUDA array of dtype

    Raises
    ------
    ValueError
        If a code does not fit the format's bits, or a value is not exact in `dtype`.
    TypeError
        For codes that are no unsigned integers, another dtype, and custom formats of more than 16 bits.
    """
    fmt, dtype = format(fmt), np.dtype(dtype)
    check_exact_values("decode", fmt)
    if isinstance(codes, Array):
        raise TypeError(f"decode takes codes, got an Array of {codes.format}; give its .codes")
    if codes.dtype.kind != "u":
        raise TypeError(f"codes of {fmt} are unsigned integers, got a CUDA array of {codes.dtype}")
    if dtype not in _FLOATS:
        raise TypeError(
            f"decode gives CUDA arrays of float16, float32 or float64, not {dtype}; copy the codes to the host first"
        )
    check_out("decode", out, codes.shape, dtype)
    tables = _all_values(fmt, dtype.name)
    computation = decode_computation(fmt, dtype.name, codes.dtype.name, len(tables))
    given = None if out is None else _cuda.bits(out)
    result, _, met = run(computation, [codes], tuple(codes.shape), out=given, tables=tables)
    if met & NO_CODE:
        raise ValueError(f"codes: one is no code of {fmt}, which has {fmt.bits} bits")
    if met & NOT_EXACT:
        raise _not_exact(fmt, dtype, "decode")
    return out if out is not None else _cuda.viewed(result, dtype)


# ---- for the link check ----------------------------------------------------------------------------------------------


def kernels_of(fmt, *, rounding="nearest_even", carrier="float32", stochastic_bits=32):
    """The kernels that quantize, encode and decode launch for a format, from and to contiguous arrays.

    (name, kernel, types of its arguments, whether it promises no local memory) of each.
    """
    fmt = format(fmt)
    env = environment(fmt, rounding, None, stochastic_bits)
    words = FROM_KEY if rounding_name(rounding).startswith("stochastic") else NO_WORDS
    raises = not fmt.has_nan
    for name, computation in (
        ("quantize", quantize_computation(fmt, env, carrier, raises)),
        ("encode", encode_computation(fmt, env, carrier, raises)),
    ):
        yield example(f"{name} {fmt} {rounding} of {carrier}", computation, words, not computation.rolled)
    computation = decode_computation(fmt, carrier, fmt.storage_dtype.name)
    yield example(f"decode {fmt} to {carrier}", computation, NO_WORDS, not computation.rolled)


def examples():
    """Kernels for the link check: each way that a pattern is rounded, the definition, and the search."""
    yield from kernels_of("e5m2")
    for fmt, rounding, carrier, which in (
        ("e4m3fn", "stochastic", "float32", 0),
        ("bfloat16", "nearest_up", "float64", 1),
        ("e8m0fnu", "up", "float32", 1),
        ("e5m2", "nearest_even", "float16", 0),
        ("bfloat16", "nearest_away", "float16", 0),
    ):
        yield list(kernels_of(fmt, rounding=rounding, carrier=carrier, stochastic_bits=16))[which]
    yield example("quantize to a table of 16 values", search_computation(16, "float32", "uint32", True))
