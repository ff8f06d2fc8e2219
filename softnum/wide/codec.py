"""The codec of formats whose codes take two words: numbers taken exactly, rounded as `softnum.reference` defines."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softnum.arrays.checks import check_out, delivered, native
from softnum.arrays.codecs.elements import ElementCodec
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment, random_words
from softnum.arrays.parse import numbers_of, python_number
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.codec import Rounding
from softnum.formats.modes import Flags, rounding_name
from softnum.formats.names import format, format_of_dtype, long_double
from softnum.formats.scalar import FixedFormat
from softnum.formats.wide import WideFixedFormat, WideFloatFormat, two_words

__all__ = ["WideCodec"]

_BINARY = {np.dtype(np.float16): "binary16", np.dtype(np.float32): "binary32", np.dtype(np.float64): "binary64"}
_INVALID = int(Flags.INVALID)


def _bits_of_long_doubles(x: np.ndarray, fmt: WideFloatFormat) -> np.ndarray:
    words = np.ascontiguousarray(x).reshape(-1).view(np.uint64).reshape(*x.shape, 2)
    codes = np.empty(x.shape, fmt.storage_dtype)
    codes["low"], codes["high"] = words[..., 0], words[..., 1] & np.uint64((1 << (fmt.bits - 64)) - 1)
    return codes


def _long_doubles(codes: np.ndarray) -> np.ndarray:
    words = np.stack([codes["low"], codes["high"]], -1)
    return np.ascontiguousarray(words).view(np.longdouble).reshape(codes.shape)


class WideCodec(ElementCodec):
    """The codec of a format whose codes take two words."""

    def core_format(self, fmt) -> None:
        """None: the core computes in formats of up to 64 bits."""

    def _round(self, x, fmt, given: Rounding, out, threads):
        codes = self._encode(x, fmt, given, None, threads)
        return delivered(self._decode_floats(codes, fmt, x.dtype, None, threads), out)

    def _encode(self, x, fmt, given: Rounding, out, threads):
        x = native(x)
        check_out("encode", out, x.shape, fmt.storage_dtype)
        if x.dtype.kind == "U":
            x = numbers_of(x)
        source = format_of_dtype(x.dtype)
        if x.dtype.kind == "b":
            x = x.astype(np.uint8)
        if x.dtype.kind in "iu":
            source = FixedFormat(8 * x.dtype.itemsize, 0, signed=x.dtype.kind == "i")
        if x.dtype == np.longdouble and source is None and (source := long_double()) is not None:
            x = _bits_of_long_doubles(x, source)
        elif source is not None:
            x = np.ascontiguousarray(x).view(source.storage_dtype).reshape(x.shape)
        if source is not None:
            codes, flags = self._converted("encode", x, source, fmt, given._replace(return_flags=True))
        elif x.dtype.kind in "Of":
            codes, flags = self._of_numbers(x, fmt, given)
        else:
            raise TypeError(f"encode takes numbers, got an array of {x.dtype}")
        codes = delivered(codes, out)
        return (codes, flags) if given.return_flags else codes

    @staticmethod
    def _converted(what: str, codes, source, fmt, given: Rounding) -> tuple[np.ndarray, np.ndarray]:
        arithmetic = (source if source.leads else fmt).arithmetic
        return arithmetic.apply("convert", [codes], (source,), fmt, given, False, "canonical", (), True, None)

    @staticmethod
    def _of_numbers(x, fmt, given: Rounding) -> tuple[np.ndarray, np.ndarray]:
        from softnum import reference

        env = environment(fmt, given.rounding, given.overflow, given.stochastic_bits, given.tininess, False,
                          given.flush_results)  # fmt: skip
        stated = not isinstance(given.invalid, str) and not fmt.has_nan
        if stated:
            invalid_code(given.invalid, fmt)  # checks
        mode = rounding_name(given.rounding)
        words = random_words(mode.startswith("stochastic"), given.key, given.random_bits, x.shape)
        words = np.broadcast_to(words, x.shape)
        codes, flags = np.empty(x.shape, object), np.empty(x.shape, np.uint8)
        for index, value in np.ndenumerate(x):
            value = python_number(value)
            if not isinstance(value, (int, float, Fraction)):
                raise TypeError(f"encode takes real numbers (int, float, Fraction), got {value!r}")
            codes[index], raised = reference.encode(
                value, fmt, rounding=mode, overflow=given.overflow, stochastic_bits=env[3],
                random_bits=int(words[index]), tininess=given.tininess, flush_results=given.flush_results,
                invalid=given.invalid if stated else None,
            )  # fmt: skip
            if raised & _INVALID and not stated and not fmt.has_nan:
                raise_no_code(fmt, "encode")
            flags[index] = int(raised)
        return two_words(codes), flags

    def _decode(self, codes, fmt, dtype, out, threads):
        dtype = np.dtype(dtype)
        if dtype != np.longdouble or dtype in _BINARY:
            return super()._decode(codes, fmt, dtype, out, threads)
        target = long_double()
        if target is None:
            raise TypeError("decode to numpy.longdouble: it is no format of softnum's here; decode to objects")
        codes = fmt.code_array(native(codes), "codes")
        check_out("decode", out, codes.shape, dtype)
        return delivered(_long_doubles(self._exactly(codes, fmt, target, dtype)), out)

    def _decode_floats(self, codes, fmt, dtype, out, threads):
        target = format(_BINARY[np.dtype(dtype)])
        found = np.ascontiguousarray(self._exactly(codes, fmt, target, dtype))
        return delivered(found.view(dtype).reshape(codes.shape), out)

    def _exactly(self, codes, fmt, target, dtype) -> np.ndarray:
        found, flags = self._converted("decode", codes, fmt, target, Rounding(return_flags=True))
        if (flags & ~np.uint8(_INVALID)).any():  # a signaling NaN is a value too
            raise ValueError(f"a value of {fmt} is not exact in {dtype} (decode to objects gives Fractions)")
        return found

    def _number(self, code: tuple[int, int], fmt) -> Fraction | float:
        from softnum import reference

        value = reference.decode(code[0] << 64 | code[1], fmt)
        if value.kind == "nan":
            return float("nan")
        if value.kind == "inf" or (value.sign and not value.numerator):
            return (-1) ** value.sign * (float("inf") if value.kind == "inf" else 0.0)
        return value.fraction


WideFloatFormat.codec = WideFixedFormat.codec = WideCodec()
