"""The codec of floats and fixed point: the vector kernels of the core, and its definition where they do not apply."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from softnum.arrays import lanes
from softnum.arrays.checks import can_hold, check_codes, check_out, delivered, native
from softnum.arrays.codecs.elements import ElementCodec
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment, random_words, words_or_key
from softnum.arrays.objects import codes_of_numbers
from softnum.arrays.parse import numbers_of
from softnum.arrays.ufuncs import call_ufunc, raise_no_code
from softnum.formats.codec import Rounding
from softnum.formats.modes import Flags, rounding_name
from softnum.formats.names import format, format_of_dtype
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.runtime import _core

__all__ = ["ScalarCodec", "decode_by_definition"]

_BINARY = {np.dtype(np.float16): "binary16", np.dtype(np.float32): "binary32", np.dtype(np.float64): "binary64"}
# binary16 is exact in binary32, integers of up to 32 bits in binary64
_CARRIER_OF = {
    np.dtype(given): np.dtype("f4" if given in ("f2", "f4") else "f8")
    for given in ("f2", "f4", "f8", "?", "i1", "u1", "i2", "u2", "i4", "u4")
}


@lru_cache(maxsize=2048, typed=True)
def _prepared(fmt, bits: int, rounding, overflow, stochastic_bits, tininess, flush_results, code: int) -> tuple:
    """(kernel from a float type of so many bits, the core's environment, whether the mode is stochastic)"""
    env = environment(fmt, rounding, overflow, stochastic_bits, tininess, False, flush_results, invalid_code=code)
    return lanes.rounder(fmt, env, bits), env, rounding_name(rounding).startswith("stochastic")


class ScalarCodec(ElementCodec):
    """The codec of a float or fixed-point format."""

    def kernels(self, fmt, given: Rounding) -> _core.Rounders:
        """What rounds plain arrays at once."""
        with _core.PlainEnvironment():
            return _core.Rounders(*(self._kernel(fmt, bits, given)[0] for bits in (32, 64)))

    def decoder(self, fmt, dtype) -> _core.Decoder | None:
        """What decodes plain arrays to a type at once; None where nothing does."""
        bits = 8 * np.dtype(dtype).itemsize
        with _core.PlainEnvironment():
            return lanes.decoder(fmt, bits) if np.dtype(dtype) in _CARRIER_OF.values() else None

    def _kernel(self, fmt, bits: int, given: Rounding) -> tuple:
        return _prepared(
            fmt, bits, given.rounding, given.overflow, given.stochastic_bits, given.tininess, given.flush_results,
            invalid_code(given.invalid, fmt),
        )  # fmt: skip

    def _round(self, x, fmt, given: Rounding, out, threads):
        bits = 8 * x.dtype.itemsize
        kernel, _, stochastic = self._kernel(fmt, bits, given)
        if kernel.ok != bits:
            codes = self._encode(x, fmt, given, None, threads)
            return delivered(self._decode(codes, fmt, x.dtype, None, threads), out)
        may_fail = not fmt.has_nan and isinstance(given.invalid, str)
        source = _core.contiguous(x)
        # in place only where no element can fail half-way, and where reading never lags behind writing
        in_place = can_hold(out, source) and not may_fail
        target = out if in_place else np.empty_like(source)
        words, words_key = words_or_key(stochastic, given.key, given.random_bits, x.shape)
        if lanes.round_values(kernel, source, target, words, words_key, threads) and may_fail:
            raise ValueError(f"quantize: a value is {fmt.lost}, and {fmt} has no code for it")
        return out if in_place else delivered(target.reshape(x.shape), out)

    def _encode(self, x, fmt, given: Rounding, out, threads):
        x = native(x)
        carrier = _CARRIER_OF.get(x.dtype)
        kernel, env, stochastic = self._kernel(fmt, 64 if carrier is None else 8 * carrier.itemsize, given)
        check_out("encode", out, x.shape, fmt.storage_dtype)
        if carrier is not None and kernel.ok and not given.return_flags:
            random = words_or_key(stochastic, given.key, given.random_bits, x.shape)
            may_fail = not fmt.has_nan and isinstance(given.invalid, str)
            return _encode_fast(x.astype(carrier, copy=False), fmt, kernel, random, may_fail, out, threads)
        if x.dtype.kind == "U":
            x = numbers_of(x)
        source = format_of_dtype(x.dtype)
        words = random_words(stochastic, given.key, given.random_bits, x.shape)
        if x.dtype.kind == "O" or (x.dtype.kind == "f" and source is None):
            codes, flags = codes_of_numbers(x, fmt, env, words, given.invalid)
        else:
            if x.dtype.kind == "b":
                x = x.astype(np.uint8)
            if x.dtype.kind in "iub":
                source = FixedFormat(8 * x.dtype.itemsize, 0, signed=x.dtype.kind == "i")
            if source is None:
                raise TypeError(f"encode takes numbers, got an array of {x.dtype}")
            bits = check_codes(np.ascontiguousarray(x).view(source.storage_dtype).reshape(x.shape), source)
            codes, flags = call_ufunc(
                "convert", (bits,), (source,), fmt, env, words, with_flags=given.return_flags, what="encode",
                invalid=given.invalid,
            )  # fmt: skip
        codes = delivered(codes, out)
        return (codes, flags) if given.return_flags else codes

    def _decode_floats(self, codes, fmt, dtype, out, threads):
        source = np.ascontiguousarray(codes).reshape(codes.shape)  # which NumPy gives one dimension at least
        if dtype.itemsize > 2:
            straight = can_hold(out, source)
            values = out if straight else np.empty(codes.shape, dtype)
            if lanes.decode_lanes(source, fmt, values, threads, decode_by_definition):
                return out if straight else delivered(values, out)
        return delivered(decode_by_definition(source, fmt, dtype), out)

    def _number(self, code: int, fmt) -> Fraction | float:
        kind, sign, significand, exponent = _core.unpack(code, fmt)
        if kind == "nan":
            return float("nan")
        if kind == "infinite" or (significand == 0 and sign):
            return (-1) ** sign * (float("inf") if kind == "infinite" else 0.0)
        return (-1) ** sign * significand * Fraction(2) ** exponent


def _encode_fast(x, fmt, kernel, random, may_fail, out, threads):
    source = _core.contiguous(x)
    straight = can_hold(out, source) and not may_fail
    codes = out if straight else np.empty(x.shape, fmt.storage_dtype)
    if lanes.encode_values(kernel, source, codes, *random, threads) and may_fail:
        raise_no_code(fmt, "encode")
    return out if straight else delivered(codes, out)


def decode_by_definition(codes, fmt, dtype) -> np.ndarray:
    """The values of contiguous codes in a float type, one by one; ValueError if one is not exact in it."""
    target = format(_BINARY[np.dtype(dtype)])
    out = np.empty(codes.shape, target.storage_dtype)
    flags = _core.convert_array(codes, fmt, target, environment(target, "nearest_even", None, 32), out)
    if flags & ~Flags.INVALID:  # a signaling NaN is a value too
        raise ValueError(f"a value of {fmt} is not exact in {dtype} (use a wider type)")
    return out.view(dtype)


FloatFormat.codec = FixedFormat.codec = ScalarCodec()
