"""Operations that a wide format has part in, as operand or result: what `softnum.reference` defines, one by one."""

from __future__ import annotations

import numpy as np

from softnum.arrays.checks import check_codes
from softnum.arrays.conversion import decode, invalid_code
from softnum.arrays.environment import environment, random_words
from softnum.arrays.ufuncs import check_shapes, raise_no_code
from softnum.formats.codec import Rounding
from softnum.formats.modes import Flags, rounding_name
from softnum.formats.wide import WideFixedFormat, WideFloatFormat, integers
from softnum.ops.operation import CoreArithmetic

__all__ = ["WideArithmetic"]

_INVALID = int(Flags.INVALID)
_TOLD = ("classify", "compare", "compare_signaling", "total_order")  # results that are no codes


def _definition(name: str, formats, out_fmt, options: dict):
    """A function of codes, and of a random word, that returns (code, flags), as Python's integers."""
    from softnum import reference as ref
    from softnum.reference.facts import format_of

    formats, out = tuple(map(format_of, formats)), format_of(out_fmt)
    rounding, overflow = options["rounding"], options["overflow"]
    flush = {"flush_inputs": True} if options.pop("flush_inputs") else {}
    if name in ("compare", "compare_signaling"):
        kind = "signaling" if name == "compare_signaling" else "quiet"

        def compared(a, b, word):
            order, flags = ref.compare(a, b, formats, kind, **flush)
            return order + 1, flags

        return compared
    if name == "total_order":
        return lambda a, b, word: (int(ref.total_order(a, b, formats[0])), 0)
    if name == "classify":
        return lambda a, word: (ref.classify(a, formats[0]), 0)
    if name in ("next_up", "next_down"):
        return lambda a, word: getattr(ref, name)(a, formats[0], nan=options["nan"])
    if name in ("negate", "absolute"):
        more = {"rounding": rounding} if name == "negate" else {}
        return lambda a, word: getattr(ref, name)(a, formats[0], overflow, invalid=options["invalid"], **more)
    if name == "copysign":
        return lambda a, b, word: ref.copysign(a, b, formats, overflow, invalid=options["invalid"], rounding=rounding)
    if name == "to_integer":
        return _to_integer(ref, formats[0], out_fmt, options, flush)
    function = getattr(ref, name)
    if name == "scalb":
        return lambda a, n, word: function(
            a, n - (n >> 31 << 32), formats[0], out_fmt=out, random_bits=word, **options, **flush
        )
    if name == "convert":
        return lambda a, word: function(a, formats[0], out, random_bits=word, **options, **flush)
    if len(formats) == 1:
        return lambda a, word: function(a, formats[0], out_fmt=out, random_bits=word, **options, **flush)
    return lambda *codes: function(*codes[:-1], formats, out_fmt=out, random_bits=codes[-1], **options, **flush)


def _to_integer(ref, fmt, out_fmt, options: dict, flush: dict):
    """Where all that has no integer becomes one ("wrap"), that; else the nearest bound, and of a NaN what is stated."""
    nan, all_alike = int(options["invalid"]), options["overflow"] == "wrap"
    taken = {key: options[key] for key in ("rounding", "stochastic_bits")}
    rule = nan if all_alike else "arm" if nan == 0 else "riscv"
    mask = (1 << out_fmt.bits) - 1

    def converted(a, word):
        integer, flags = ref.to_integer(
            a, fmt, out_fmt.bits, out_fmt.signed, invalid=rule, random_bits=word, **taken, **flush
        )
        return integer & mask, flags

    return converted


class WideArithmetic(CoreArithmetic):
    """Operations on codes where a format is wide, `softnum.formats.codec.Arithmetic`."""

    carriers = ("codes",)

    def check_reach(self, name: str, fmt, out_fmt, rounding, overflow, stochastic_bits) -> None:
        """Nothing: Python's integers reach everywhere."""

    def plain(self, name: str, formats, out_fmt, rounding, overflow, stochastic_bits) -> None:
        """None: nothing computes plain arrays at once."""

    def apply(self, name, codes, formats, out_fmt, given: Rounding, flush_inputs, nan, extra, codes_out, compute):
        """(codes, flags or None)"""
        if compute is not None:
            raise ValueError(
                f"probe: {name} is computed in Python integers where a format takes two words, and not probed; "
                "convert to formats of up to 64 bits"
            )
        codes, formats = _as_values(codes, formats)
        if codes_out and not out_fmt.leads and out_fmt.codec.core_format(out_fmt) is not out_fmt:
            return self._into_custom(name, codes, formats, out_fmt, given, flush_inputs)
        if extra:
            codes, formats = [*codes, *(c for c, _ in extra)], (*formats, *(f for _, f in extra))
        environment(  # checks
            out_fmt, given.rounding, given.overflow, given.stochastic_bits, given.tininess, flush_inputs,
            given.flush_results, nan,
        )  # fmt: skip
        check_shapes(name, codes)
        shape = np.broadcast_shapes(*(c.shape for c in codes))
        mode = rounding_name(given.rounding)
        stated = codes_out and not isinstance(given.invalid, str) and not out_fmt.has_nan
        if stated:
            invalid_code(given.invalid, out_fmt)  # checks
        options = {
            "rounding": mode, "overflow": given.overflow, "stochastic_bits": given.stochastic_bits,
            "tininess": given.tininess, "flush_results": given.flush_results, "nan": nan, "flush_inputs": flush_inputs,
            "invalid": given.invalid if stated or name == "to_integer" else None,
        }  # fmt: skip
        words = np.broadcast_to(random_words(mode.startswith("stochastic"), given.key, given.random_bits, shape), shape)
        rows = [np.broadcast_to(integers(c), shape).ravel().tolist() for c in codes]
        function = _definition(name, formats, out_fmt, dict(options))
        found = [function(*row) for row in zip(*rows, words.ravel().tolist(), strict=True)]
        flags = np.array([int(f) for _, f in found], np.uint8).reshape(shape)
        if codes_out and not out_fmt.has_nan and isinstance(given.invalid, str) and (flags & _INVALID).any():
            self._refuse_no_code(name, formats, out_fmt, options, rows, words, found)
        results = np.empty(len(found), object)
        results[:] = [code for code, _ in found]
        results = results.reshape(shape)
        told = results.astype(np.uint8) if name in _TOLD else out_fmt.stored(results)
        return told, flags if given.return_flags else None

    def _refuse_no_code(self, name, formats, out_fmt, options, rows, words, found) -> None:
        """ValueError if what a result becomes depends on what is stated for those without a code."""
        other = _definition(name, formats, out_fmt, {**options, "invalid": out_fmt.smallest_subnormal})
        for row, (code, flags) in zip(zip(*rows, words.ravel().tolist(), strict=True), found, strict=True):
            if flags & _INVALID and other(*row)[0] != code:
                raise_no_code(out_fmt, name)

    def _into_custom(self, name, codes, formats, out_fmt, given: Rounding, flush_inputs):
        if name != "convert" or flush_inputs:
            raise ValueError(
                f"{name}: operands of two words have no result in {out_fmt}; state a float format of out_fmt=, and "
                "convert"
            )
        values = decode(codes[0], formats[0], object)
        return out_fmt.codec.encode(values, out_fmt, given._replace(return_flags=False)), self._no_flags(given, values)

    @staticmethod
    def _no_flags(given: Rounding, values):
        return np.zeros(np.shape(values), np.uint8) if given.return_flags else None


def _as_values(codes, formats) -> tuple[list, tuple]:
    """(codes, formats) of the same values that the definition knows: those of custom formats in binary64."""
    pairs = [
        (c, f) if f.leads else (f.codec.for_core(c, f), f.codec.core_format(f))
        for c, f in zip(codes, formats, strict=True)
    ]
    return [check_codes(c, f) for c, f in pairs], tuple(f for _, f in pairs)


WideFloatFormat.arithmetic = WideFixedFormat.arithmetic = WideArithmetic()
