"""Operations on single elements that choose, compare, or are rounded to the carrier, as C text.

Elements are bits. The text is over word/machine.h, whose every operation names its rounding; of a NaN the bits
are those of an x86 processor (the first operand's, made quiet).
"""

from __future__ import annotations

import re
from functools import lru_cache

from softnum.kernels.device.elementwise.computations import Computation

__all__ = ["CARRIER_TEXT", "HEADER", "MAPS", "map_computation", "taken_numbers"]

HEADER = "softnum/word/machine.h"

#: what bits of 32 and 64 have in common: NaN made quiet, the exponent's bits
CARRIER_TEXT = """
SN_FN sn_i32 _is_nan32(sn_u32 x) { return (x & 0x7fffffffu) > 0x7f800000u; }
SN_FN sn_i32 _is_nan64(sn_u64 x) { return (x & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }
SN_FN sn_u32 _quiet32(sn_u32 x) { return x | 0x00400000u; }
SN_FN sn_u64 _quiet64(sn_u64 x) { return x | 0x0008000000000000u; }
/* x + y; a NaN that no operand brings is x86's, which has a sign */
SN_FN sn_u32 _sum32(sn_u32 x, sn_u32 y) {
    if (_is_nan32(x)) return _quiet32(x);
    if (_is_nan32(y)) return _quiet32(y);
    const sn_u32 s = sn_bits32(sn_add32(sn_float32(x), sn_float32(y)));
    return _is_nan32(s) ? 0xffc00000u : s;
}
SN_FN sn_u64 _sum64(sn_u64 x, sn_u64 y) {
    if (_is_nan64(x)) return _quiet64(x);
    if (_is_nan64(y)) return _quiet64(y);
    const sn_u64 s = sn_bits64(sn_add64(sn_float64(x), sn_float64(y)));
    return _is_nan64(s) ? 0xfff8000000000000u : s;
}
SN_FN sn_u64 _wide32(sn_u32 x) {
    if (_is_nan32(x)) return (sn_u64)(x >> 31) << 63 | 0x7ff8000000000000u | (sn_u64)(x & 0x7fffffu) << 29;
    return sn_bits64(sn_widen(sn_float32(x)));
}
SN_FN sn_u64 _wide64(sn_u64 x) { return x; }
SN_FN sn_u32 _narrow64(sn_u64 x) {
    if (_is_nan64(x)) return (sn_u32)(x >> 63) << 31 | 0x7fc00000u | ((sn_u32)(x >> 29) & 0x7fffffu);
    return sn_bits32(sn_narrow(sn_float64(x)));
}
/* x / y in binary64, for a finite y that is not 0 */
SN_FN sn_u64 _quotient(sn_u64 x, sn_u64 y) {
    if (_is_nan64(x)) return _quiet64(x);
    return sn_bits64(sn_divide64(sn_float64(x), sn_float64(y)));
}
/* Magnitudes as integers in their order; that of a NaN is infinite. */
SN_FN sn_u64 _size32(sn_u32 x) { return _is_nan32(x) ? 0x7f800000u : x & 0x7fffffffu; }
SN_FN sn_u64 _size64(sn_u64 x) { return _is_nan64(x) ? 0x7ff0000000000000u : x & 0x7fffffffffffffffu; }
/* Whether y takes x's place as the largest: the first of equals stays, and the first NaN. */
SN_FN sn_i32 _larger32(sn_u32 x, sn_u32 y) {
    return !_is_nan32(x) && !(sn_float32(y) <= sn_float32(x));
}
SN_FN sn_i32 _larger64(sn_u64 x, sn_u64 y) {
    return !_is_nan64(x) && !(sn_float64(y) <= sn_float64(x));
}
"""

#: x * y, as sums are added
_PRODUCT = """
SN_FN sn_u{w} _product{w}(sn_u{w} x, sn_u{w} y) {{
    if (_is_nan{w}(x)) return _quiet{w}(x);
    if (_is_nan{w}(y)) return _quiet{w}(y);
    const sn_u{w} p = sn_bits{w}(sn_multiply{w}(sn_float{w}(x), sn_float{w}(y)));
    return _is_nan{w}(p) ? {nan} : p;
}}
"""
_NO_NUMBER = {32: "0xffc00000u", 64: "0xfff8000000000000u"}
_SIGN = {32: "0x80000000u", 64: "0x8000000000000000u"}

#: operation -> (kinds of the arrays, kind of the result, C expression of their elements x, y, z and the scalars s, t).
#: Kinds: "c" the carrier's bits, "w" those of binary64, "n" those of binary32, "m" a mask, "i" a number.
#: {w} is the carrier's width.
MAPS: dict[str, tuple[str, str, str]] = {
    "add": ("cc", "c", "_sum{w}(x, y)"),
    "clamp": (
        "c", "c", "sn_float{w}(x) < sn_float{w}((c)s) ? (c)s : sn_float{w}(x) > sn_float{w}((c)t) ? (c)t : x",
    ),
    "cut": (
        "c", "c", "_is_nan{w}(x) || !(x & ~{sign}) ? 0 : sn_float{w}(x) < sn_float{w}((c)s) ? (c)s"
        " : sn_float{w}(x) > sn_float{w}((c)t) ? (c)t : x",
    ),
    "below": ("c", "m", "sn_float{w}(x & ~{sign}) < sn_float{w}((c)s)"),
    "choose": ("mcc", "c", "x ? y : z"),
    "choose_or": ("mc", "c", "x ? y : (c)s"),
    "divide": ("c", "w", "_quotient(_wide{w}(x), s)"),
    "multiply": ("cc", "c", "_product{w}(x, y)"),
    "narrow": ("c", "n", "_narrow64(x)"),
    "negate": ("c", "c", "x ^ {sign}"),
    "not": ("m", "m", "!x"),
    "positive_part": ("c", "c", "sn_float{w}(x) > 0 ? x : _is_nan{w}(x) ? _quiet{w}(x) : 0"),
    "where_equal": ("ic", "c", "x == s ? y : 0"),
    "where_positive": ("cc", "c", "sn_float{w}(x) > 0 ? y : 0"),
    "widen": ("c", "w", "_wide{w}(x)"),
}  # fmt: skip


@lru_cache(maxsize=64)
def map_computation(operation: str, width: int, numbers: int = 64) -> Computation:
    """What an operation makes of carriers of a width, of numbers of another, and of s and t where it takes them."""
    kinds, result, text = MAPS[operation]
    carrier = f"uint{width}"
    types = {"c": carrier, "w": "uint64", "n": "uint32", "m": "uint8", "i": f"uint{numbers}", "s": "uint64"}
    inputs, body = [], ""
    for name, kind in (*zip("xyz", kinds, strict=False), *((name, "s") for name in taken_numbers(operation))):
        body += f"const sn_u{types[kind][4:]} {name} = (sn_u{types[kind][4:]})in{len(inputs)};\n"
        inputs.append(types[kind])
    text = text.format(w=width, sign=_SIGN[width]).replace("(c)", f"(sn_u{width})")
    constants = CARRIER_TEXT
    if "_product" in text:
        constants += _PRODUCT.format(w=width, nan=_NO_NUMBER[width])
    return Computation(tuple(inputs), types[result], f"{body}out = {text};\n", constants, HEADER)


def taken_numbers(operation: str) -> str:
    """Which of s and t an operation takes."""
    return "".join(name for name in "st" if re.search(rf"\b{name}\b", MAPS[operation][2]))
