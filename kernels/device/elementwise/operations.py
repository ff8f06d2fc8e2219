"""Operations on codes as computations of elementwise kernels: by a table, in the machine's floats, by the definition.

In the machine's floats operands are decoded, computed exactly or rounded to odd, and rounded to the result's code
(patterns.h). Let p be the result's precision and r the random bits of a stochastic mode, else 0. All that a rounding to
p bits asks is how the exact value lies to multiples of 2^-(r + 1) of the result's last place, and below its lowest
binade to coarser ones. A value rounded to odd to q >= p + r + 2 bits lies to them as the exact one does (Boldo and
Melquiond 2008 for nearest), if the carrier's smallest number is at most 2^-(r + 2) of the result's. So, for the
canonical NaN, results without flags, and a NaN in the result's format if there can be one:

- convert: the operand's values are the carrier's.
- multiply: the product is exact: the precisions together at most q, and within the carrier's range.
- add, subtract, fma in binary32, q = 24: rounded to odd by the two directed roundings of one instruction. Past the
  largest number that gives the largest, which overflows as well in any mode but the stochastic: those only below it.
- the same in binary64, q = 53: an exact product, and the sum rounded to odd by its error, TwoSum's; numbers up to
  2^1000, and not rounding down, in which x - x is -0.
- divide, sqrt: operands that binary32 holds, p + r <= 24, rounded to nearest in binary64. A quotient of integers below
  2^24 that is not v, of at most 25 bits, differs from it by 2^-49 of it or more, a root by 2^-51: the rounding, by
  2^-53 of it, takes it to no v and past none. Not into P3109's formats, in which x / 0 is NaN.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from softnum.formats.c_text import environment_text, format_text
from softnum.formats.facts import facts, fits
from softnum.formats.modes import ROUNDING_MODES, STOCHASTIC_MODES
from softnum.kernels.device.elementwise.computations import Computation
from softnum.kernels.device.elementwise.patterns import pattern_text, reading_text
from softnum.runtime import _core

__all__ = [
    "NO_CODE", "NO_OPERAND", "ORDER", "UNDECIDED", "operation_computation", "output_of", "short_computation",
    "table_computation",
]  # fmt: skip

# what is met
NO_CODE, UNDECIDED, NO_OPERAND = 1, 2, 4  # and from NO_OPERAND on, a bit for each operand

ORDER = ("compare", "compare_signaling")
_OF_ROOTS = ("reciprocal", "rsqrt", "hypot")  # elementary functions without long numbers, short enough to be inlined


def _checks(formats, kinds, known) -> str:
    """Statements that note codes beyond their format's bits."""
    return "".join(
        f"if (in{i} >> {f.bits - 1} >> 1) met |= {NO_OPERAND << i};\n"
        for i, (f, kind, sure) in enumerate(zip(formats, kinds, known, strict=True))
        if not sure and f.bits < int(kind[4:])
    )


def output_of(name: str, out_fmt) -> str:
    return "uint8" if name in (*ORDER, "total_order", "classify") else out_fmt.storage_dtype.name


@lru_cache(maxsize=512)
def operation_computation(
    name: str, formats, out_fmt, env: tuple[int, ...], kinds, known, with_flags: bool, raises: bool
) -> Computation:
    """An operation by its definition.

    kinds: the operands' element types; known: which of them are sure to be codes; raises: whether results without a
    code are reported.
    """
    constants = "".join(format_text(f"_f{i}", f) for i, f in enumerate(formats))
    constants += format_text("_out", out_fmt) + environment_text("_env", env)
    count, elementary = len(formats), name in _core.ELEMENTARY
    second, third = "in1" if count > 1 else "0", "in2" if count > 2 else "0"
    body = _checks(formats, kinds, known)
    if name == "scalb":
        body += _clamped(kinds[1])
        second = "n"
    fields = ", ".join(f"_f{min(i, count - 1)}()" for i in range(3))
    body += f"const sn_format f[3] = {{{fields}}}, o = _out();\nconst sn_env env = _env();\n"
    if elementary:
        body += f"out = sn_elementary(SN_ELEMENTARY_{name}, f, in0, f + 1, {second}, &o, &env, word, &flags);\n"
        body += f"met |= flags & SN_UNDECIDED ? {UNDECIDED} : 0;\n"
    else:
        body += f"const sn_u64 in[3] = {{in0, {second}, {third}}};\n"
        body += f"out = sn_operate(SN_OP_{name}, f, in, &o, &env, word, &flags);\n"
    if name in ORDER:
        body += "out -= 1;\n"
    if raises:
        body += f"met |= flags & SN_NO_CODE ? {NO_CODE} : 0;\n"
    header = "softnum/device/device.h softnum/operations/operations.h"
    if elementary:
        header += " softnum/elementary/functions.h" if name in _OF_ROOTS else " softnum/device/functions.h"
    inputs = tuple(kind if kind.startswith("u") else f"u{kind}" for kind in kinds)
    return Computation(
        inputs, output_of(name, out_fmt), body + "flags &= SN_NO_CODE - 1;\n", constants, header, with_flags,
        may_fail="met |=" in body, rolled=True,
    )  # fmt: skip


def _clamped(kind: str) -> str:
    """n: in1, an integer of the type, in 32 bits of two's complement; beyond, every format has over- or underflowed."""
    if kind.startswith("u"):
        return "const sn_u64 n = in1 > 0x7fffffffu ? 0x7fffffffu : in1;\n"
    unused = 64 - int(kind.removeprefix("int"))
    return (
        f"const sn_i64 whole = (sn_i64)(in1 << {unused}) >> {unused};\nconst sn_u64 n = (sn_u32)(whole > 0x7fffffff ? "
        "0x7fffffff : whole < -0x7fffffff - 1 ? -0x7fffffff - 1 : whole);\n"
    )


@lru_cache(maxsize=512)
def table_computation(output: str, formats, kinds, known, with_flags: bool, may_fail: bool) -> Computation:
    """An operation of one or two operands by its tables, as `_tables_on_host` makes them."""
    at = f"(in0 & {(1 << formats[0].bits) - 1}u)"
    if len(formats) > 1:
        at = f"{at} << {formats[1].bits} | (in1 & {(1 << formats[1].bits) - 1}u)"
    checks = _checks(formats, kinds, known)
    body = f"{checks}const sn_u64 at = {at};\nout = table0[at];\n"
    if with_flags or may_fail:
        body += f"flags = table1[at];\nmet |= flags & {_core.NO_CODE} ? {NO_CODE} : 0;\n"
        body += f"met |= flags & {_core.UNDECIDED} ? {UNDECIDED} : 0;\nflags &= {_core.NO_CODE - 1};\n"
    tables = (output, "uint8")
    return Computation(kinds, output, body, with_flags=with_flags, may_fail=may_fail or bool(checks), tables=tables)


# ---- in the machine's floats -----------------------------------------------------------------------------------------

_IN_32 = {
    "convert": "x0", "multiply": "sn_multiply32(x0, x1)",
    "add": "sn_fma_odd32(x0, 1.0f, x1, down)",
    "subtract": "sn_fma_odd32(x0, 1.0f, sn_float32(sn_bits32(x1) ^ 0x80000000u), down)",
    "fma": "sn_fma_odd32(x0, x1, x2, down)",
}  # fmt: skip
_IN_64 = {
    "convert": "x0", "multiply": "sn_multiply64(x0, x1)",
    "add": "sn_add_odd64(x0, x1)",
    "subtract": "sn_add_odd64(x0, sn_float64(sn_bits64(x1) ^ 0x8000000000000000u))",
    "fma": "sn_add_odd64(sn_multiply64(x0, x1), x2)",
}  # fmt: skip
_RATIONAL = {"divide": "sn_divide64(sn_widen(x0), sn_widen(x1))", "sqrt": "sn_root64(sn_widen(x0))"}


def _carrier_of(name: str, formats, out_fmt, env) -> str | None:
    """The carrier that an operation is computed in; None outside the domain."""
    if env[4] or env[5] or env[6]:
        return None
    random = env[3] if env[0] in STOCHASTIC_MODES else 0
    out, operands = facts(out_fmt), [facts(f) for f in formats]
    if not out_fmt.has_nan and (name in _RATIONAL or any(f.specials for f in operands)):
        return None
    if name in _RATIONAL:
        held = all(fits(f, np.float32) for f in formats) and fits(out_fmt, np.float32)
        return "float32" if held and out.precision + random <= 24 and not out_fmt.p3109 else None
    product = operands[0] * operands[1] if name in ("multiply", "fma") else None
    for carrier, q, last, top in (("float32", 24, -149, 127), ("float64", 53, -1074, 1000)):
        wide = carrier == "float64"
        if not all(fits(f, carrier) for f in (*formats, out_fmt)):
            continue
        if name == "convert":
            return carrier
        exact = product is None or (product.precision <= q and product.last >= last and product.top <= top - 2)
        if not exact and (wide or name == "multiply"):
            continue
        if name == "multiply":
            return carrier
        if out.precision + random + 2 > q or out.last < last + random + 2:
            continue
        highest = max(f.top for f in (*operands, product or operands[0]))
        if wide and (env[0] == ROUNDING_MODES["down"] or highest > top):
            continue
        if random and not wide and highest + 1 >= top:
            continue
        return carrier
    return None


@lru_cache(maxsize=512)
def short_computation(name: str, formats, out_fmt, env: tuple[int, ...], kinds, known) -> Computation | None:
    """An operation without flags in the machine's floats; None outside the domain. Arguments as of the definition's."""
    if name not in _IN_32 and name not in _RATIONAL:
        return None
    carrier = _carrier_of(name, formats, out_fmt, env)
    if carrier is None:
        return None
    bits = carrier[-2:]
    texts = [reading_text(f"_f{i}", f, carrier) for i, f in enumerate(formats)]
    texts.append(pattern_text("_out", out_fmt, env, "float64" if name in _RATIONAL else carrier))
    if None in texts:
        return None
    kind = "float" if bits == "32" else "double"
    body = _checks(formats, kinds, known)
    for i in range(len(formats)):
        body += f"const sn_reading f{i} = _f{i}();\n"
        body += f"const {kind} x{i}_ = sn_float{bits}(sn_pattern_of_code{bits}(&f{i}, (sn_u{bits})in{i}));\n"
    text = _RATIONAL.get(name) or (_IN_32 if bits == "32" else _IN_64)[name]
    text = re.sub(r"\bx(\d)", r"x\1_", text).replace("down", str(int(env[0] == ROUNDING_MODES["down"])))
    into = "64" if name in _RATIONAL else bits
    body += f"const sn_pattern p = _out();\nout = sn_code_of_pattern{into}(&p, sn_bits{into}({text}), word);\n"
    return Computation(
        kinds, output_of(name, out_fmt), body, "".join(texts), "softnum/device/patterns.h", may_fail="met |=" in body
    )
