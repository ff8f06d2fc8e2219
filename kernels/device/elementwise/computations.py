"""What elementwise kernels compute of one element, as C text over csrc, and the function of four elements around it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.arrays.environment import environment
from softnum.formats.c_text import environment_text, format_text
from softnum.formats.facts import fits
from softnum.formats.names import format
from softnum.kernels.device.elementwise.patterns import pattern_text, reading_text
from softnum.kernels.device.products.entries import NO_CODE, NOT_EXACT
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = [
    "CARRIERS", "FROM_ARRAY", "FROM_KEY", "INPUTS", "NO_WORDS", "TABLES", "Computation", "decode_computation",
    "encode_computation", "quantize_computation", "search_computation",
]  # fmt: skip

NO_WORDS, FROM_KEY, FROM_ARRAY = range(3)  # where random words come from
INPUTS, TABLES = 3, 3  # the most that a computation has


@dataclass(frozen=True)
class Computation:
    """What becomes of one element, as C text.

    Parameters
    ----------
    inputs : tuple of str
        One to three element types: "uint8" ... "uint64". Floats go by their bits.
    output : str
        The result's element type.
    body : str
        Statements that read in0, in1, in2 (sn_u64), word (sn_u32) and the pointers table0 ..., and set out (sn_u64);
        they may set flags and OR into met (sn_u32).
    constants, header : str
        As in `Library`; the header beside softnum/device/fours.h.
    with_flags : bool
        Whether flags are delivered, as an array of uint8.
    may_fail : bool
        Whether met is delivered, OR-ed over all elements.
    rolled : bool
        Whether the body is long, and stays a loop.
    tables : tuple of str
        The element types of up to three arrays that are looked up.
    """

    inputs: tuple[str, ...]
    output: str
    body: str
    constants: str = ""
    header: str = ""
    with_flags: bool = False
    may_fail: bool = False
    rolled: bool = False
    tables: tuple[str, ...] = ()

    def library(self, words: int, single: tuple[bool, ...], wide: bool) -> Library:
        """The entry ``run``, of four elements or fewer.

        single: which inputs are one element; wide: whether the others, and results, are aligned to four elements.
        """
        w = int(wide)
        inputs = (*self.inputs, *["uint8"] * (INPUTS - len(self.inputs)))
        tables = (*self.tables, *["uint8"] * (TABLES - len(self.tables)))
        arguments = (
            *((f"{kind}*", f"x{i}") for i, kind in enumerate(inputs)), (f"{self.output}*", "to"),
            ("uint8*", "flags_to"), ("uint32*", "random"),
            *((f"{kind}*", f"table{i}") for i, kind in enumerate(tables)),
            ("int64", "at"), ("int32", "count"), ("uint32", "key0"), ("uint32", "key1"),
        )  # fmt: skip
        lines = [f"(void){name};" for _, name in arguments]
        lines.append("sn_u32 status = 0;\nsn_u64 words[4] = {0, 0, 0, 0}, result[4];")
        if self.with_flags:
            lines.append("sn_u64 raised[4];")
        for i, kind in enumerate(self.inputs):
            lines.append(f"sn_u64 v{i}[4];")
            if single[i]:
                lines.append(f"v{i}[0] = v{i}[1] = v{i}[2] = v{i}[3] = x{i}[0];")
            else:
                lines.append(f"sn_load_four{kind[4:]}(x{i} + at, count, {w}, v{i});")
        if words == FROM_KEY:
            lines.append("sn_four_words((sn_u64)at >> 2, key0, key1, words);")
        elif words == FROM_ARRAY:
            lines.append(f"sn_load_four32(random + at, count, {w}, words);")
        if self.rolled:
            lines.append("#if defined(__CUDACC_RTC__)\n#pragma unroll 1\n#endif")
        lines.append("for (sn_i32 i = 0; i < 4; i++) {")
        lines += [f"const sn_u64 in{i} = v{i}[i];" for i in range(len(self.inputs))]
        lines.append("const sn_u32 word = (sn_u32)words[i];\nsn_u64 out = 0;\nsn_u32 met = 0;")
        if "flags" in self.body:
            lines.append("sn_u32 flags = 0;")
        lines += ["(void)word;", self.body.strip(), "result[i] = out;"]
        if self.with_flags:
            lines.append("raised[i] = flags;")
        lines.append("if (i < count) status |= met;\n}")
        lines.append(f"sn_store_four{self.output[4:]}(to + at, count, {w}, result);")
        if self.with_flags:
            lines.append(f"sn_store_four8(flags_to + at, count, {w}, raised);")
        lines.append("return status;")
        entry = Entry("run", "uint32", arguments, "\n".join(lines))
        return Library(self.constants, (entry,), f"{self.header} softnum/device/fours.h".strip())


#: NumPy's name -> the format, the type and the number of its bits
CARRIERS = {
    "float16": ("binary16", "uint16", "16"), "float32": ("binary32", "uint32", "32"),
    "float64": ("binary64", "uint64", "64"),
}  # fmt: skip


def _definition(fmt, env: tuple[int, ...], carrier: str) -> str:
    """The constants of the definition: _carrier, _format and _env."""
    wide = format_text("_carrier", format(CARRIERS[carrier][0]))
    return wide + format_text("_format", fmt) + environment_text("_env", env)


_CONVERTED = f"""const sn_format carrier = _carrier(), f = _format();
const sn_env env = _env();
const sn_u64 code = sn_convert(&carrier, in0, &f, &env, word, &flags);
met = flags & SN_NO_CODE ? {NO_CODE} : 0;
flags &= SN_NO_CODE - 1;
"""


@lru_cache(maxsize=512)
def quantize_computation(fmt, env: tuple[int, ...], carrier: str, raises: bool, with_flags: bool = False):
    """Bits of a carrier to those of the rounded value; raises: whether a value without a code is reported."""
    kind, may_fail = CARRIERS[carrier][1], raises or not fits(fmt, carrier)
    body = f"{_ROUNDED[carrier]}{'' if carrier != 'float16' else _NARROWED if fits(fmt, carrier) else _CHECKED}"
    computation = None if with_flags else _by_pattern(fmt, env, carrier, kind, body, raises, may_fail)
    if computation is not None:
        return computation
    body = _CONVERTED + "out = sn_carrier_of(&f, code, &carrier, &met);\n"
    text = _definition(fmt, env, carrier)
    return Computation((kind,), kind, body, text, "softnum/device/device.h", with_flags, may_fail, rolled=True)


@lru_cache(maxsize=512)
def encode_computation(fmt, env: tuple[int, ...], carrier: str, raises: bool, with_flags: bool = False):
    """Bits of a carrier to codes."""
    kind, output = CARRIERS[carrier][1], fmt.storage_dtype.name
    body = f"out = sn_code_of_pattern{_WIDE[carrier][-2:]}(&p, x, word);\n"
    computation = None if with_flags else _by_pattern(fmt, env, carrier, output, body, raises, raises)
    if computation is not None:
        return computation
    text = _definition(fmt, env, carrier)
    return Computation(
        (kind,), output, _CONVERTED + "out = code;\n", text, "softnum/device/device.h", with_flags, raises, True
    )


#: the carrier that a carrier's patterns are rounded in
_WIDE = {"float16": "float32", "float32": "float32", "float64": "float64"}
#: out, the rounded value of the pattern x; of binary16, in binary32
_ROUNDED = {name: f"out = sn_round_pattern{wide[-2:]}(&p, x, word);\n" for name, wide in _WIDE.items()}
#: out in binary16, which has it; and where it may not
_NARROWED = "const sn_pattern narrow = _narrow();\nout = sn_code_of_pattern32(&narrow, (sn_u32)out, 0);\n"
_CHECKED = f"""const sn_u32 wide = (sn_u32)out;
{_NARROWED}met |= sn_pattern_of_code32(&half, (sn_u32)out) != wide ? {NOT_EXACT} : 0;
"""


def _by_pattern(fmt, env, carrier: str, output: str, body: str, raises: bool, may_fail: bool) -> Computation | None:
    """A rounding of the pattern x by p; None outside the domain. Numbers of binary16 are patterns of binary32 first."""
    wide = _WIDE[carrier]
    bits, text = wide[-2:], pattern_text("_pattern", fmt, env, wide)
    if text is None:
        return None
    read = f"const sn_u{bits} x = (sn_u{bits})in0;\n"
    if carrier == "float16":
        half = format("binary16")
        text += reading_text("_half", half, wide)
        text += pattern_text("_narrow", half, environment(half, "nearest_even", None, 32), wide)
        read = "const sn_reading half = _half();\nconst sn_u32 x = sn_pattern_of_code32(&half, (sn_u32)in0);\n"
    read += "const sn_pattern p = _pattern();\n"
    if raises:
        body = f"met = sn_no_result{bits}(&p, x) ? {NO_CODE} : 0;\n{body}"
    return Computation(
        (CARRIERS[carrier][1],), output, read + body, text, "softnum/device/patterns.h", may_fail=may_fail
    )


@lru_cache(maxsize=512)
def decode_computation(fmt, carrier: str, given: str, tables: int = 0) -> Computation:
    """Codes, of the type `given`, to bits of a carrier; tables: one of all values, and one of which are not exact."""
    _, kind, bits = CARRIERS[carrier]
    beyond = f"if (in0 >> {fmt.bits - 1} >> 1) met = {NO_CODE};\n" if fmt.bits < int(given[4:]) else ""
    if tables:
        body = f"const sn_u64 at = in0 & {(1 << fmt.bits) - 1}u;\nout = table0[at];\n{beyond}"
        body += f"if (table1[at]) met |= {NOT_EXACT};\n" * (tables > 1)
        may_fail = bool(beyond) or tables > 1
        return Computation((given,), kind, body, may_fail=may_fail, tables=(kind, "uint8")[:tables])
    text = reading_text("_reading", fmt, carrier)
    if text is not None:
        body = f"const sn_reading r = _reading();\nout = sn_pattern_of_code{bits}(&r, (sn_u{bits})in0);\n"
        return Computation((given,), kind, body + beyond, text, "softnum/device/patterns.h", may_fail=bool(beyond))
    body = (
        "const sn_format carrier = _carrier(), f = _format();\nout = sn_carrier_of(&f, in0, &carrier, &met);\n" + beyond
    )
    may_fail = bool(beyond) or not fits(fmt, carrier)
    text = format_text("_carrier", format(CARRIERS[carrier][0])) + format_text("_format", fmt)
    return Computation((given,), kind, body, text, "softnum/device/device.h", may_fail=may_fail, rolled=True)


# ---- value tables --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=128)
def search_computation(
    count: int, carrier: str, output: str, raises: bool, tables: int = 2, nans: tuple[bool, bool] = (False, False)
) -> Computation:
    """The last of `count` results whose threshold is not above the number; the thresholds ascend, of all but the first.

    table0: thresholds, as keys, integers in the order of the numbers (-0 below +0); table1: the results, and behind
    them what a NaN becomes, and -infinity and +infinity where `nans` says so; table2, if there are three: which results
    are not exact.
    """
    _, kind, bits = CARRIERS[carrier]
    sign, infinity = 1 << (int(bits) - 1), int(np.array(np.inf, carrier).view(kind))
    body = (
        f"const sn_u{bits} x = (sn_u{bits})in0, key = (sn_u{bits})(x & {sign:#x}u ? ~x : x | {sign:#x}u);\n"
        f"sn_i32 at = 0;\nfor (sn_i32 step = {1 << (count - 1).bit_length() >> 1}; step; step >>= 1)\n"
        f"    if (at + step < {count} && table0[at + step - 1] <= key) at += step;\n"
        f"const sn_i32 nan = (x & {sign - 1:#x}u) > {infinity:#x}u;\nif (nan) at = {count};\n"
    )
    for nan, pattern in zip(nans, (sign | infinity, infinity), strict=True):
        body += f"if (x == {pattern:#x}u) at = {count};\n" * nan
    body += "out = table1[at];\n"
    body += f"met = nan ? {NO_CODE} : 0;\n" * raises + f"if (table2[at]) met |= {NOT_EXACT};\n" * (tables > 2)
    of = (kind, output, "uint8")[:tables]
    return Computation((kind,), output, body, may_fail=raises or tables > 2, rolled=True, tables=of)
