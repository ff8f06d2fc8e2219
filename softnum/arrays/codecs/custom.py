"""The codec of custom formats: what their tables and functions make of values (`softnum.CustomFormat`)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softnum.arrays.checks import check_out, delivered, native
from softnum.arrays.codecs.elements import ElementCodec
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.arrays.parse import numbers_of, python_numbers
from softnum.formats.codec import Rounding
from softnum.formats.custom import CustomFormat
from softnum.formats.modes import rounding_name
from softnum.formats.names import format, format_of_dtype

__all__ = ["CustomCodec"]


class CustomCodec(ElementCodec):
    """The codec of a format by a table of values or by functions."""

    def core_format(self, fmt):
        return format("binary64")

    def for_core(self, codes, fmt) -> np.ndarray:
        values = np.ascontiguousarray(fmt.core_values(codes))
        return values.view(np.uint64).reshape(np.shape(codes))

    def codes_of_values(self, x, fmt) -> np.ndarray:
        return fmt.find(x)[0]

    def surely_holds(self, x, fmt) -> bool:
        return not fmt.find(x)[1].any()

    def _checked(self, fmt, given: Rounding) -> tuple:
        """(full name of the mode, overflow rule, code of a NaN that has none or None), as the format takes them."""
        if given.flush_results is not None:
            raise ValueError(
                f"flush_results is not defined for {fmt.described}, which has no subnormal values; leave it out"
            )
        code = invalid_code(given.invalid, fmt)
        environment(fmt, given.rounding, given.overflow, given.stochastic_bits, given.tininess, invalid_code=code)
        return rounding_name(given.rounding), given.overflow, None if isinstance(given.invalid, str) else code

    def _round(self, x, fmt, given: Rounding, out, threads):
        return delivered(fmt.quantize(x, *self._checked(fmt, given)), out)

    def _encode(self, x, fmt, given: Rounding, out, threads):
        x = native(x)
        modes = self._checked(fmt, given)
        check_out("encode", out, x.shape, fmt.storage_dtype)
        if given.return_flags:
            raise ValueError(
                f"return_flags is not defined for {fmt.described}, which raises no exceptions; leave it out"
            )
        if x.dtype.kind == "U":
            x = numbers_of(x)
        if x.dtype.kind == "O" or (x.dtype == np.longdouble and format_of_dtype(x.dtype) is None):
            x = python_numbers(x)
        source = format_of_dtype(x.dtype)
        if source is not None:
            x = source.codec.decode(x.view(source.storage_dtype), source)
        return delivered(fmt.encode(x, *modes), out)

    def _decode_floats(self, codes, fmt, dtype, out, threads):
        return delivered(fmt.decode(codes, dtype), out)

    def _number(self, code: int, fmt) -> Fraction | float:
        return fmt.exact_number(code)


CustomFormat.codec = CustomCodec()
