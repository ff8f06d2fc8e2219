"""Operations on logarithmic numbers (`softnum.formats.logarithmic`), into their own formats and into others.

Into their own they are functions on codes, as those of users' formats are. A result in another format is irrational in
general: it is rounded to odd in binary64, and then to the format, which is one rounding for what looks at no more than
51 bits. binary64 itself is rounded to at once.
"""

from __future__ import annotations

import numpy as np

from softnum.formats.codec import Rounding
from softnum.formats.logarithmic import LogarithmicFormat, check_operands, compute, logarithms_of
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.ops.custom_tables import CustomArithmetic
from softnum.ops.operation import apply, as_values
from softnum.runtime import _tables

__all__ = ["LogarithmicArithmetic"]

_BINARY64 = format("binary64")
_KEY = (_tables.BINARY64, 64, 0)
_MOST_BITS = 51  # of a result, whose rounding the numbers rounded to odd in binary64 decide
_OF_VALUES = ("classify", "to_integer")  # what numbers rounded to odd decide
_WORTH = 16  # a table is made when so many times the elements asked for are as many as it has
_TABLE_BITS = 16


class LogarithmicArithmetic(CustomArithmetic):
    """Operations with logarithmic operands or results, `softnum.formats.codec.Arithmetic`."""

    def prepared(self, name: str, formats, out_fmt, rounding, overflow):
        """A function of codes of these formats that returns the results' codes."""
        if not out_fmt.values_are_exact:
            return super().prepared(name, formats, out_fmt, rounding, overflow)
        given = Rounding(rounding, overflow)
        return lambda *codes: self._into_numbers(name, codes, formats, out_fmt, given)[0]

    def users_own(self, name: str, formats, out_fmt) -> bool:
        """False: no operation is the user's."""
        return False

    def apply(self, name, codes, formats, out_fmt, given: Rounding, flush_inputs, nan, extra, codes_out, compute):
        """(codes, flags or None)"""
        if compute is not None:
            raise ValueError(f"probe: {name} of logarithmic numbers cannot be probed: it has no rounding to show")
        if name.startswith("compare"):
            return _compared(codes, formats), np.zeros(np.broadcast_shapes(*(c.shape for c in codes)), np.uint8)
        if not out_fmt.values_are_exact or name in ("total_order", "classify"):
            return super().apply(name, codes, formats, out_fmt, given, flush_inputs, nan, extra, codes_out, compute)
        if name in _OF_VALUES:
            values, kinds = as_values(codes, formats)
            result = apply(name, tuple(values), kinds, out_fmt=out_fmt, **given._asdict(), codes_out=codes_out)
            return result if given.return_flags else (result, None)
        options = {"flush_inputs": flush_inputs, "nan": nan != "canonical"}
        for option, stated in options.items():
            if stated:
                raise ValueError(f"{name}: {option}= is not defined for logarithmic operands; leave it out")
        codes, formats = [*codes, *(c for c, _ in extra)], tuple(formats)
        return self._into_numbers(name, codes, formats, out_fmt, given)

    def _into_numbers(self, name, codes, formats, out_fmt, given: Rounding):
        if name == "round_to_integral":
            values, kinds = as_values(codes, formats)
            result = apply(name, tuple(values), kinds, out_fmt=out_fmt, **given._asdict())
            return result if given.return_flags else (result, None)
        check_operands(name, formats, out_fmt)
        if out_fmt == _BINARY64:
            mode = rounding_name(given.rounding)
            if mode.startswith("stochastic") or given.return_flags:
                raise ValueError(
                    f"{name}: results of logarithmic operands are rounded to binary64 without random bits and flags; "
                    "take another mode, or a format of 51 bits of precision or fewer"
                )
            return self._looked_up(name, formats, codes, mode).view(out_fmt.storage_dtype), None
        if out_fmt.value_facts.precision > _MOST_BITS:
            raise ValueError(
                f"{name}: results of logarithmic operands are rounded to formats of up to {_MOST_BITS} bits and to "
                f"binary64, and {out_fmt} has {out_fmt.value_facts.precision}; take one of these"
            )
        z = self._looked_up(name, formats, codes, "to_odd")
        result = apply("convert", (z,), _BINARY64, out_fmt=out_fmt, **given._asdict())
        return result if given.return_flags else (result, None)

    def _looked_up(self, name: str, formats, codes, rounding: str) -> np.ndarray:
        """The results in binary64, from a table of all of them where that is worth it."""
        owner = next(f for f in formats if not f.values_are_exact)
        bits, key = sum(f.bits for f in formats), (name, formats, "binary64", rounding)
        codes = [np.asarray(c) for c in codes]
        size = int(np.prod(np.broadcast_shapes(*(c.shape for c in codes)), dtype=np.int64))
        tables = owner._tables
        if name == "scalb" or bits > _TABLE_BITS:
            return compute(*logarithms_of(name, formats, codes, _KEY, rounding))
        if not isinstance(tables.get(key), np.ndarray):
            tables[key] = tables.get(key, 0) + size
            if tables[key] * _WORTH < 1 << bits:
                return compute(*logarithms_of(name, formats, codes, _KEY, rounding))
            every = np.meshgrid(*(np.arange(1 << f.bits).astype(f.storage_dtype) for f in formats), indexing="ij")
            tables[key] = compute(*logarithms_of(name, formats, every, _KEY, rounding))
        return np.asarray(tables[key][tuple(codes)])


def _compared(codes, formats) -> np.ndarray:
    """How operands compare: 0 below, 1 equal, 2 above, 3 a NaN beside anything."""
    a, b = (np.asarray(c) for c in codes)
    nan = _is_nan(a, formats[0]) | _is_nan(b, formats[1])
    if formats[0] == formats[1]:
        x, y = (formats[0].value_keys(c) for c in (a, b))
    else:  # by the sign of the difference, which no underflow takes
        x, y = (_values(c, f) for c, f in zip((a, b), formats, strict=True))
        unsure = np.broadcast_to((x == y) & np.isfinite(x), nan.shape)
        if unsure.any():
            args = logarithms_of("subtract", formats, [np.broadcast_to(c, nan.shape)[unsure] for c in (a, b)], _KEY)
            x, y = (np.array(np.broadcast_to(v, nan.shape)) for v in (x, y))
            x[unsure], y[unsure] = compute(*args).view(np.float64), 0.0
    return np.where(nan, 3, 1 + (x > y).astype(np.int8) - (x < y).astype(np.int8)).astype(np.uint8)


def _values(codes, fmt) -> np.ndarray:
    """The values in float64; irrational ones are rounded to odd."""
    return fmt.codec.decode(codes, fmt, np.float64) if fmt.values_are_exact else fmt.core_values(codes)


def _is_nan(codes, fmt) -> np.ndarray:
    return np.isnan(_values(codes, fmt)) if fmt.values_are_exact else fmt.is_nan(codes)


LogarithmicFormat.arithmetic = LogarithmicArithmetic()
