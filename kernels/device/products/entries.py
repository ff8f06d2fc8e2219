"""The scalar functions that the definition's kernels are made of, as C text over the core."""

from __future__ import annotations

from functools import lru_cache

from softnum.formats.c_text import environment_text, format_text
from softnum.formats.names import format
from softnum.kernels.device.runtime.source import TYPES, Entry, Library

__all__ = [
    "NOT_EXACT",
    "NO_CODE",
    "operand_library",
    "unit_library",
    "value_body",
]

NO_CODE, NOT_EXACT = 1, 2  # csrc/softnum/device/device.h

_CARRIERS = {"float32": ("binary32", "uint32"), "float64": ("binary64", "uint64")}


# ---- operands and results ------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def operand_library(fmt, carrier: str) -> Library:
    """Entries ``code(bits)``, ``status(bits)``: NOT_EXACT unless the carrier's value is one of the format's, and
    ``value(code)``: its bits in the carrier."""
    name, kind = _CARRIERS[carrier]
    wide = format(name)
    body = (
        "const sn_format carrier = _carrier(), f = _format();\nsn_u32 status = 0;\n"
        "sn_u64 code = sn_carrier_code(&carrier, bits, &f, &status);\n"
    )
    entries = (
        Entry("code", "uint64", ((kind, "bits"),), body + "(void)status;\nreturn code;"),
        Entry("status", "uint32", ((kind, "bits"),), body + "(void)code;\nreturn status;"),
        Entry(
            "value", kind, (("uint64", "code"),),
            "const sn_format carrier = _carrier(), f = _format();\nsn_u32 status = 0;\n"
            f"return ({TYPES[kind]})sn_carrier_of(&f, code, &carrier, &status);",
        ),
    )  # fmt: skip
    return Library(format_text("_carrier", wide) + format_text("_format", fmt), entries)


# ---- multiply-add units --------------------------------------------------------------------------------------------


_PRODUCT = """const sn_format fa = _a(), fb = _b(), fs = _sum();
sn_told told = sn_told_nothing(0), rest = told;
const sn_number x = sn_read(&fa, &of_product, a), y = sn_read(&fb, &of_product, b);
sn_term p = sn_term_of_product(&x, &y);
"""
_ROUNDED = """const sn_format fp = _product();
sn_told of_products = told;
const sn_number rounded = sn_read(&fp, &sum, sn_term_round(&p, &fp, &of_product, first, &of_products));
p = sn_term_of(&rounded);
*lost |= sn_told_no_code(&of_products);
"""
_NUMBER = """sn_told told = sn_told_nothing(0), rest = told;
const sn_number n = sn_read(&fs, &env, {});
const sn_term p = sn_term_of(&n);
"""


def _lost(place: int) -> str:
    return f"*lost |= (sn_told_no_code(&told) | sn_told_no_code(&rest)) << {place};\nreturn code;"


def _step_body(unit) -> str:
    rounds, compensation = unit.product is not None, "lost + 1" if unit.compensated else 0
    return (
        f"const sn_env sum = _sum_env(), of_product = {'_product_env()' if rounds else 'sum'};\n" + _PRODUCT
        + (_ROUNDED if rounds else "(void)first;\n")
        + f"const sn_u64 code = sn_term_into(&p, acc, {compensation}, &fs, &sum, second, &told, &rest);\n" + _lost(1)
    )  # fmt: skip


def _join_body() -> str:
    return (
        "const sn_format fs = _sum();\nconst sn_env env = _sum_env();\n" + _NUMBER.format("x")
        + "const sn_u64 code = sn_term_into(&p, y, 0, &fs, &env, word, &told, &rest);\n" + _lost(1)
    )  # fmt: skip


def _outer_body(unit) -> str:
    compensation = "lost + 2" if unit.compensated else 0
    return (
        "const sn_format fs = _sum(), fo = _out();\nconst sn_env env = _out_env();\n" + _NUMBER.format("part")
        + f"const sn_u64 code = sn_term_into(&p, outer, {compensation}, &fo, &env, word, &told, &rest);\n" + _lost(2)
    )  # fmt: skip


@lru_cache(maxsize=256)
def unit_library(unit, carrier: str) -> Library:
    """A MadUnit's entries, on codes.

    ``step(acc, a, b, first, second, lost)`` is one multiply-add with the product's and the sum's random word,
    ``join(x, y, word, lost)`` adds two lanes, ``outer(outer, part, word, lost)`` adds a chunk to the outer sum, and
    ``value(code)`` gives the result's bits in the carrier. lost: three numbers, of which the first gets a bit for each
    of ``unit.rounded_to`` that has no code for a result; the others are the compensations of a lane and of the outer
    sum.
    """
    name, kind = _CARRIERS[carrier]
    a, b = (f.codec.core_format(f) for f in unit.operand)
    product_env, sum_env, outer_env = unit.environments
    constants = (
        format_text("_a", a) + format_text("_b", b) + format_text("_carrier", format(name))
        + format_text("_sum", unit.accumulator) + environment_text("_sum_env", sum_env)
        + format_text("_out", unit.outer) + environment_text("_out_env", outer_env)
    )  # fmt: skip
    if unit.product is not None:
        constants += format_text("_product", unit.product) + environment_text("_product_env", product_env)
    u64, u32, lost = "uint64", "uint32", ("uint64*", "lost")
    step = ((u64, "acc"), (u64, "a"), (u64, "b"), (u32, "first"), (u32, "second"), lost)
    entries = (
        Entry("step", u64, step, _step_body(unit)),
        Entry("join", u64, ((u64, "x"), (u64, "y"), (u32, "word"), lost), _join_body()),
        Entry("outer", u64, ((u64, "outer"), (u64, "part"), (u32, "word"), lost), _outer_body(unit)),
        Entry("value", kind, ((u64, "code"),), value_body(kind)),
    )
    return Library(constants, entries)


def value_body(kind: str) -> str:
    """The body of an entry that gives a code of ``_out`` as bits of ``_carrier``."""
    return (
        "const sn_format fo = _out(), carrier = _carrier();\nsn_u32 status = 0;\n"
        f"return ({TYPES[kind]})sn_carrier_of(&fo, code, &carrier, &status);"
    )
