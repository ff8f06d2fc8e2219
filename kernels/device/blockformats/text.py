"""What a block's scale, an element and its value are, as C text over csrc/softnum/device/block_codes.h.

Where a format lies outside that header's domains, the definition computes: its division and its product.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from softnum.arrays.codecs.blocks import digits_of, exact_codes
from softnum.arrays.environment import environment
from softnum.formats.blocks import BlockFormat
from softnum.formats.c_text import environment_text, format_text
from softnum.formats.facts import facts, fits
from softnum.formats.modes import STOCHASTIC_MODES
from softnum.formats.names import format
from softnum.kernels.device.elementwise.computations import CARRIERS, FROM_ARRAY, FROM_KEY
from softnum.kernels.device.elementwise.patterns import pattern_text, reading_text
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = [
    "INEXACT", "NO_FLOAT32", "NO_SCALE", "element_way", "elements_library", "largest_library", "scale_library",
    "value_way",
]  # fmt: skip

# what is met: a block that is not finite, where scales have no NaN; values beyond binary64, or beyond binary32
NO_SCALE, INEXACT, NO_FLOAT32 = 1, 2, 4

_HEADER = "softnum/device/block_codes.h"
_DEFINITION = "softnum/operations/operations.h"
_INFINITY = 0x7FF0000000000000
_NAN = f"(factor & {_INFINITY | (1 << 63) - 1:#x}u) > {_INFINITY:#x}u"


def _wide_text() -> str:
    exact = environment(format("binary64"), "nearest_even", "infinity", 32)
    return format_text("_wide", format("binary64")) + environment_text("_exact", exact)


def _are_powers(scale) -> bool:
    """Whether a scale's codes count the powers of two, from code 0 on."""
    return scale.powers_of_two and not (scale.has_zero or scale.signed or scale.infinities)


# ---- scales ----------------------------------------------------------------------------------------------------------


def _fraction_from(fmt: BlockFormat, rule: str) -> int:
    """From which fraction of amax on, in units of 2**-52, its scale is a power of two more (`SCALE_RULES`)."""
    one, digits = 1 << 52, digits_of(fmt)
    if rule == "floor":
        return one
    if rule == "ceil":
        return 1
    if rule == "nearest":
        return one >> 1
    if rule == "even":
        return one - (one >> digits) if digits <= 52 else one
    largest = Fraction(fmt.element.max) / Fraction(2) ** fmt.element_exponent  # "rceil"
    return int((largest - 1) * one) + 1


def _divides_in_floats(fmt: BlockFormat, env: tuple[int, ...]) -> bool:
    """Whether amax over the largest element (times the array's scale) is an `sn_quotient_odd`."""
    known = facts(fmt.scale)
    bits = facts(fmt.element).precision + (0 if fmt.tensor_scale is None else fmt.tensor_scale.precision)
    last = fmt.element_exponent + (0 if fmt.tensor_scale is None else facts(fmt.tensor_scale).last)
    ranges = known.last - 1 >= -640 and known.top <= 900 and -300 <= last and fmt.element_exponent < 300
    return bits <= 28 and known.precision + 1 <= 52 and ranges


@lru_cache(maxsize=128)
def scale_library(fmt: BlockFormat, rule: str, carrier: str) -> Library:
    """The entries of a block's scale.

    ``code(amax, divisor)``: its code, from the largest magnitude as the carrier's bits, and the largest element times
    the array's scale as those of binary64. ``factor(code, tensor)``: bits of binary64, of the scale times the array's.
    """
    scale, kind, bits = fmt.scale, *CARRIERS[carrier][1:]
    smallest = int(exact_codes(np.float64(fmt.smallest_scale), scale))
    low, high = fmt.scale_exponents
    powers = _are_powers(scale) and fmt.tensor_scale is None
    constants = _wide_text() + format_text("_scale", scale)
    wide = "sn_bits64(sn_widen(sn_float32(amax)))" if bits == "32" else "amax"
    lost = scale.nan_code if scale.has_nan else 0
    body = (
        f"(void)divisor;\nconst sn_u64 x = {wide};\nif (x >= {_INFINITY:#x}u) return {lost:#x}u;\n"
        f"if (x == 0) return {smallest:#x}u;\n"
    )
    if rule in ("floor", "ceil", "even", "nearest") or (rule == "rceil" and powers):
        body += (
            f"const sn_i32 e = sn_scale_exponent(x, {int(bits == '32')}, {_fraction_from(fmt, rule):#x}u, "
            f"{fmt.element_exponent}, {low}, {high});\n"
        )
        constants += environment_text("_env", environment(scale, "nearest_even", "saturate", 32))
        found = "sn_convert(&wide, sn_power64(e), &scale, &env, 0, &flags)"
    else:
        env = environment(scale, "up" if rule == "rceil" else "nearest_even", "saturate", 32)
        constants += environment_text("_env", env)
        pattern = pattern_text("_pattern", scale, env, "float64") if _divides_in_floats(fmt, env) else None
        found = "sn_divide(&wide, x, &wide, divisor, &scale, &env, 0, &flags)"
        if pattern is not None:
            constants += pattern
            body += "const sn_pattern p = _pattern();\n"
            found = "sn_code_of_pattern64(&p, sn_quotient_odd(x, divisor), 0)"
        elif fmt.tensor_scale is None:
            constants += format_text("_element", fmt.element)
            largest = int(exact_codes(np.array(fmt.element.max, object), fmt.element))
            body += "const sn_format element = _element();\n"
            found = f"sn_divide(&wide, x, &element, {largest:#x}u, &scale, &env, 0, &flags)"
    if powers and "sn_power64" in found:
        body += f"return (sn_u64)(e - ({low}));"
    else:
        if "flags" in found:
            body += "const sn_format wide = _wide(), scale = _scale();\nconst sn_env env = _env();\nsn_u32 flags = 0;\n"
        body += f"const sn_u64 code = {found};\nreturn {f'code ? code : {smallest:#x}u' if scale.has_zero else 'code'};"
    if powers:
        value = f"(code + {1023 + low}u) << 52" if low >= -1022 else f"sn_power64((sn_i32)code + ({low}))"
        if scale.has_nan:
            value = f"code == {scale.nan_code:#x}u ? 0x7ff8000000000000u : {value}"
        factor = f"(void)tensor;\nreturn {value};"
    else:
        factor = (
            "const sn_format wide = _wide(), scale = _scale();\nconst sn_env exact = _exact();\nsn_u32 flags = 0;\n"
            "const sn_u64 x = sn_convert(&scale, code, &wide, &exact, 0, &flags);\n"
        )
        factor += "(void)tensor;\nreturn x;" if fmt.tensor_scale is None else "return sn_times64(x, tensor);"
    u64 = "uint64"
    entries = (
        Entry("code", u64, ((kind, "amax"), (u64, "divisor")), body),
        Entry("factor", u64, ((u64, "code"), (u64, "tensor")), factor),
    )
    return Library(constants, entries, f"{_DEFINITION} softnum/device/patterns.h {_HEADER}")


@lru_cache(maxsize=4)
def largest_library(carrier: str, wide: bool) -> Library:
    """The entry ``largest(x, at)``: the largest magnitude of four neighbours, as the carrier's bits; wide: whether x is
    aligned to four elements."""
    kind, bits = CARRIERS[carrier][1:]
    magnitude = (1 << (int(bits) - 1)) - 1
    body = (
        f"sn_u64 v[4], top = 0;\nsn_load_four{bits}(x + at, 4, {int(wide)}, v);\n"
        "for (sn_i32 n = 0; n < 4; n++) {\n"
        f"const sn_u64 u = v[n] & {magnitude:#x}u;\ntop = u > top ? u : top;\n}}\nreturn (sn_u{bits})top;"
    )
    arguments = ((f"{kind}*", "x"), ("int64", "at"))
    return Library("", (Entry("largest", kind, arguments, body),), "softnum/device/fours.h")


# ---- elements --------------------------------------------------------------------------------------------------------


def _spans_binary32(fmt: BlockFormat) -> bool:
    low, high = fmt.scale_exponents
    return fmt.tensor_scale is None and -127 <= low <= high <= 127


def _bits_of_factors(fmt: BlockFormat) -> int:
    return facts(fmt.scale).precision + (0 if fmt.tensor_scale is None else fmt.tensor_scale.precision)


def element_way(fmt: BlockFormat, env: tuple[int, ...], carrier: str) -> str:
    """How elements are made: "power" and "quotient" as csrc/softnum/device/block_codes.h states, or "definition"."""
    element, scale = fmt.element, fmt.scale
    known, (_, high) = facts(element), fmt.scale_exponents
    near = known.last >= -92 and abs(fmt.element_exponent) < 64
    wide = scale.powers_of_two and high >= 0 and _spans_binary32(fmt)
    if wide and near and pattern_text("_pattern", element, env, carrier):
        return "power"
    seen = env[3] + 1 if env[0] in STOCHASTIC_MODES else 1
    last = facts(scale).last + (0 if fmt.tensor_scale is None else facts(fmt.tensor_scale).last)
    short = known.precision + seen <= 52 and _bits_of_factors(fmt) <= 28
    ranges = known.last - seen >= -640 and known.top <= 900 and last >= -300
    if short and ranges and pattern_text("_pattern", element, env, "float64"):
        return "quotient"
    return "definition"


def value_way(fmt: BlockFormat, carrier: str) -> str:
    """How values are made: "power" in binary32, "product" in binary64, or "definition"."""
    of_powers = carrier == "float32" and _are_powers(fmt.scale) and _spans_binary32(fmt)
    if of_powers and reading_text("_reading", fmt.element, "float32"):
        return "power"
    return "product" if fits(fmt, "float64") and reading_text("_reading", fmt.element, "float64") else "definition"


def _element_text(fmt: BlockFormat, env, carrier: str, symmetric: bool) -> tuple[str, str]:
    """(constants, statements that make a code of in, factor and word)."""
    element, bits = fmt.element, CARRIERS[carrier][2]
    way = element_way(fmt, env, carrier)
    lost = f"{element.nan_code:#x}u" if element.has_nan else "0"
    wide = "sn_bits64(sn_widen(sn_float32((sn_u32)in)))" if bits == "32" else "in"
    if way == "power":
        constants = pattern_text("_pattern", element, env, carrier)
        made = f"sn_code_of_pattern{bits}(&p, sn_over_power{bits}((sn_u{bits})in, factor), word)"
    elif way == "quotient":
        constants = pattern_text("_pattern", element, env, "float64")
        made = f"sn_code_of_pattern64(&p, sn_quotient_odd({wide}, factor), word)"
    else:
        constants = _wide_text() + format_text("_element", element) + environment_text("_env", env)
        made = f"sn_divide(&wide, {wide}, &wide, factor, &element, &env, word, &flags)"
    text = f"sn_u64 code = {lost};\nif (!({_NAN})) {{\n"
    if way == "definition":
        text += "const sn_format wide = _wide(), element = _element();\nconst sn_env env = _env();\nsn_u32 flags = 0;\n"
    else:
        text += "const sn_pattern p = _pattern();\n"
    text += f"code = {made};\n}}\n"
    if symmetric:
        text += f"code += code == {1 << (element.bits - 1):#x}u;\n"
    return constants, text


def _value_text(fmt: BlockFormat, carrier: str) -> tuple[str, str]:
    """(constants, statements that make out, bits of the carrier, of code and factor, and may set met)."""
    way = value_way(fmt, carrier)
    if way == "power":
        text = f"out = sn_times_power32(sn_pattern_of_code32(&r, (sn_u32)code), factor, {NO_FLOAT32}u, &met);\n"
        return reading_text("_reading", fmt.element, "float32"), "const sn_reading r = _reading();\n" + text
    if way == "product":
        constants = reading_text("_reading", fmt.element, "float64")
        text = "const sn_reading r = _reading();\nout = sn_times64(sn_pattern_of_code64(&r, code), factor);\n"
    else:
        exact = environment(format("binary64"), "nearest_even", "infinity", 32)
        constants = format_text("_binary64", format("binary64")) + environment_text("_once", exact)
        constants += format_text("_code", fmt.element)
        text = (
            "const sn_format binary64 = _binary64(), of_code = _code();\nconst sn_env once = _once();\n"
            "sn_u32 raised = 0;\n"
            "out = sn_multiply(&of_code, code, &binary64, factor, &binary64, &once, 0, &raised);\n"
            f"met |= raised & ~(sn_u32)SN_INVALID ? {INEXACT} : 0;\n"
        )
    if carrier == "float32":
        text += f"out = sn_narrowed(out, {NO_FLOAT32}u, &met);\n"
    return constants, text


# how four neighbours find their blocks (`elements_library`): at the first of them, for each, and after each
_ALONG = "sn_i64 outer = line / length, along = line - outer * length, j = along / size, inside = along - j * size;\n"
_ROW = "if (along == length) along = inside = j = 0, outer++;\nelse if (inside == size) inside = 0, j++;\n"
_BEGIN = {
    "one": "factor = factors[blocks];\n",
    "last": f"const sn_i64 line = at;\n{_ALONG}",
    "any": f"const sn_i64 line = at / inner;\nsn_i64 i = at - line * inner;\n{_ALONG}",
}
_FACTOR = {
    "one": "",
    "last": f"{_ROW}if (n < count) factor = factors[outer * blocks + j];\n",
    "any": f"if (i == inner) i = 0, along++, inside++;\n{_ROW}"
    "if (n < count) factor = factors[(outer * blocks + j) * inner + i];\n",
}
_NEXT = {"one": "", "last": "along++, inside++;\n", "any": "i++;\n"}


def _rounded_text(fmt: BlockFormat, env) -> tuple[str, str]:
    """(constants, statements that make out of in, factor and word), all by powers of two in binary32, without codes."""
    text = (
        f"const sn_pattern p = _pattern();\nout = 0x7fc00000u;\nif (!({_NAN}))\n"
        "out = sn_times_power32(sn_round_pattern32(&p, sn_over_power32((sn_u32)in, factor), word), factor, "
        f"{NO_FLOAT32}u, &met);\n"
    )
    return pattern_text("_pattern", fmt.element, env, "float32"), text


@lru_cache(maxsize=256)
def elements_library(
    fmt: BlockFormat, env: tuple[int, ...] | None, given: str, result: str, words: int, wide: bool, where: str,
    symmetric: bool,
) -> Library:  # fmt: skip
    """The entry ``run``, of four neighbours or fewer: their codes, or values, by their blocks' factors.

    Parameters
    ----------
    fmt, env, symmetric
        The format, the elements' environment, and whether the lowest code is left unused.
    given, result : str
        What is read and written: "float32" or "float64", as bits, or the type of codes; of env None, codes are read.
    words : int
        Where random words come from, as in `Computation.library`.
    wide : bool
        Whether arrays are aligned to four elements.
    where : str
        "last": blocks lie along the last axis, so that `inner` is 1; "any". Or "one": the four elements are of one
        block, whose number is given for `blocks`, and nothing for its neighbours.
    """
    read, written = (CARRIERS[kind][1] if kind in CARRIERS else kind for kind in (given, result))
    ways = [] if env is None else [element_way(fmt, env, given)]
    ways += [value_way(fmt, result)] if result in CARRIERS else []
    if ways == ["power", "power"] and not symmetric:
        constants, body = _rounded_text(fmt, env)
    else:
        made = ("", "const sn_u64 code = in;\n") if env is None else _element_text(fmt, env, given, symmetric)
        then = _value_text(fmt, result) if result in CARRIERS else ("", "out = code;\n")
        constants, body = (first + second for first, second in zip(made, then, strict=True))
    definition = _DEFINITION if "definition" in ways else ""
    header = f"{definition} softnum/device/patterns.h softnum/device/fours.h {_HEADER}".strip()
    arguments = (
        (f"{read}*", "x"), ("uint64*", "factors"), (f"{written}*", "to"), ("uint32*", "random"), ("int64", "at"),
        ("int32", "count"), ("uint32", "key0"), ("uint32", "key1"), ("int64", "length"), ("int64", "inner"),
        ("int64", "size"), ("int64", "blocks"),
    )  # fmt: skip
    w = int(wide)
    draw = {
        FROM_KEY: "sn_four_words((sn_u64)at >> 2, key0, key1, words);\n",
        FROM_ARRAY: f"sn_load_four32(random + at, count, {w}, words);\n",
    }.get(words, "")
    rolled = "#if defined(__CUDACC_RTC__)\n#pragma unroll 1\n#endif\n" if "definition" in ways else ""
    text = (
        "(void)random, (void)key0, (void)key1, (void)length, (void)inner, (void)size;\n"
        "sn_u64 words[4] = {0, 0, 0, 0}, v[4], result[4], factor = 0;\nsn_u32 status = 0;\n"
        f"sn_load_four{read[4:]}(x + at, count, {w}, v);\n{draw}{_BEGIN[where]}"
        f"{rolled}for (sn_i32 n = 0; n < 4; n++) {{\n"
        "const sn_u64 in = v[n];\nconst sn_u32 word = (sn_u32)words[n];\nsn_u64 out = 0;\nsn_u32 met = 0;\n"
        f"{_FACTOR[where]}(void)word;\n{body}result[n] = out;\nif (n < count) status |= met;\n{_NEXT[where]}"
        f"}}\nsn_store_four{written[4:]}(to + at, count, {w}, result);\nreturn status;"
    )
    return Library(constants, (Entry("run", "uint32", arguments, text),), header)
