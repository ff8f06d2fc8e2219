"""The scalar functions that the definition's kernels are made of, as C text over the core."""

from __future__ import annotations

from functools import lru_cache

from softnum.c_text import environment_text, format_text
from softnum.environment import environment
from softnum.kernels.device.source import TYPES, Entry, Library
from softnum.names import format

__all__ = [
    "NOT_EXACT",
    "NO_CODE",
    "operand_library",
    "quantize_library",
    "shares_word",
    "two_roundings",
    "unit_library",
]

NO_CODE, NOT_EXACT = 1, 2  # csrc/softnum/device.h

_CARRIERS = {"float32": ("binary32", "uint32"), "float64": ("binary64", "uint64")}


def _plain(fmt) -> tuple[int, int, int, int]:
    return environment(fmt, "nearest_even", None, 32)


# ---- random words --------------------------------------------------------------------------------------------------

_COUNTER = (
    ("uint64", "block"), ("uint64", "n"), ("uint64", "m"), ("uint64", "batch"), ("uint32", "key0"), ("uint32", "key1"),
)  # fmt: skip


def _word_entry(name: str, shift: int) -> Entry:
    return Entry(
        name, "uint32", (("uint64", "half0"), ("uint64", "half1"), ("uint64", "i")),
        f"return sn_philox_word(half0, half1, i) >> {shift};",
    )  # fmt: skip


# ---- quantize ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def quantize_library(fmt, env: tuple, carrier: str) -> Library:
    """Entries ``value(bits, random)``, ``status(bits, random)`` and the words of elementwise operations."""
    name, kind = _CARRIERS[carrier]
    wide = format(name)
    arguments = ((kind, "bits"), ("uint32", "random"))
    body = (
        "const sn_format carrier = _carrier(), f = _format();\nconst sn_env env = _env();\nsn_u32 status = 0;\n"
        "sn_u64 value = sn_carrier_round(&carrier, bits, &f, &env, random, &status);\n"
    )
    counter = (("uint64", "block"), ("uint32", "key0"), ("uint32", "key1"))
    halves = [
        Entry(
            f"half{i}", "uint64", counter,
            f"return sn_philox_half(block, (sn_u32)(block >> 32), 0, 0, key0, key1, {i});",
        )
        for i in (0, 1)
    ]  # fmt: skip
    entries = (
        Entry("value", kind, arguments, body + f"(void)status;\nreturn ({TYPES[kind]})value;"),
        Entry("status", "uint32", arguments, body + "(void)value;\nreturn status;"),
        *halves,
        _word_entry("word", 0),
    )
    constants = format_text("_carrier", wide) + format_text("_format", fmt) + environment_text("_env", env)
    return Library(constants, entries)


# ---- operands and results ------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def operand_library(fmt, carrier: str) -> Library:
    """Entries ``code(bits)``, and ``status(bits)``: NOT_EXACT unless the carrier's value is one of the format's."""
    name, kind = _CARRIERS[carrier]
    wide = format(name)
    body = (
        "const sn_format carrier = _carrier(), f = _format();\nsn_u32 status = 0;\n"
        "sn_u64 code = sn_carrier_code(&carrier, bits, &f, &status);\n"
    )
    entries = (
        Entry("code", "uint64", ((kind, "bits"),), body + "(void)status;\nreturn code;"),
        Entry("status", "uint32", ((kind, "bits"),), body + "(void)code;\nreturn status;"),
    )
    return Library(format_text("_carrier", wide) + format_text("_format", fmt), entries)


# ---- multiply-add units --------------------------------------------------------------------------------------------


def two_roundings(unit) -> bool:
    """Whether both the product and the sum of a step round stochastically."""
    product = unit.product is not None and unit.product_mode.startswith("stochastic")
    return product and unit.rounding.startswith("stochastic")


def shares_word(unit) -> bool:
    """Whether two roundings share one random word: the sum takes its upper half (r of 16 at most)."""
    return two_roundings(unit) and unit.stochastic_bits <= 16


_FUSED = "sn_u64 code = sn_fma(&fa, a, &fb, b, &fs, acc, &fs, &sum, second, &flags);\n(void)first;\n"
_ROUNDED = (
    "const sn_format fp = _product();\nconst sn_env product = _product_env();\n"
    "sn_u32 product_flags = 0;\n"
    "sn_u64 p = sn_multiply(&fa, a, &fb, b, &fp, &product, first, &product_flags);\n"
    "sn_u64 code = sn_add(&fs, acc, &fp, p, &fs, &sum, second, &flags);\n(void)product_flags;\n"
)


@lru_cache(maxsize=256)
def unit_library(unit, carrier: str) -> Library:
    """A MadUnit's entries, on codes.

    ``step(acc, a, b, first, second)`` is one multiply-add with the product's and the sum's random word,
    ``outer(outer, acc, word)`` adds a chunk to the outer sum, and ``value(code)`` gives the result's bits in the
    carrier; ``step_invalid`` and ``outer_invalid`` say whether a NaN met a format that has no code for it, as a bit for
    each of ``unit.rounded_to``. ``half0`` and ``half1`` give a Philox block, ``first`` and ``second`` a step's random
    words from it.
    """
    name, kind = _CARRIERS[carrier]
    wide = format(name)
    a, b = unit.operand
    product_env, sum_env, outer_env = unit.environments
    constants = (
        format_text("_a", a) + format_text("_b", b) + format_text("_carrier", wide)
        + format_text("_sum", unit.accumulator) + environment_text("_sum_env", sum_env)
        + format_text("_out", unit.outer) + environment_text("_out_env", outer_env)
    )  # fmt: skip
    step_body = (
        "const sn_format fa = _a(), fb = _b(), fs = _sum();\nconst sn_env sum = _sum_env();\nsn_u32 flags = 0;\n"
    )
    if unit.product is None:
        step_body += _FUSED
    else:
        step_body += _ROUNDED
        constants += format_text("_product", unit.product) + environment_text("_product_env", product_env)

    step_arguments = (
        ("uint64", "acc"), ("uint64", "a"), ("uint64", "b"), ("uint32", "first"), ("uint32", "second"),
    )  # fmt: skip
    outer_arguments = (("uint64", "sum"), ("uint64", "chunk"), ("uint32", "word"))
    outer_body = (
        "const sn_format fs = _sum(), fo = _out();\nconst sn_env env = _out_env();\nsn_u32 flags = 0;\n"
        "sn_u64 code = sn_add(&fo, sum, &fs, chunk, &fo, &env, word, &flags);\n"
    )
    code_only = "(void)flags;\nreturn code;"
    # a NaN counts against the format that has no code for it, and no other
    no_product = unit.product is not None and not unit.product.has_nan
    no_sum, no_outer = (not f.has_nan for f in (unit.accumulator, unit.outer))
    step_lost = "(void)code;\nreturn " + (
        " | ".join(
            text
            for text, wanted in (
                ("(product_flags & SN_INVALID ? 1u : 0)", no_product),
                ("(flags & SN_INVALID ? 2u : 0)", no_sum),
            )
            if wanted
        )
        or "0 & flags"
    )
    halves = [
        Entry(
            f"half{i}", "uint64", _COUNTER,
            f"return sn_philox_half(block, (sn_u32)n, (sn_u32)m, (sn_u32)batch, key0, key1, {i});",
        )
        for i in (0, 1)
    ]  # fmt: skip
    entries = (
        Entry("step", "uint64", step_arguments, step_body + code_only),
        Entry("step_invalid", "uint32", step_arguments, step_body + step_lost + ";"),
        Entry("outer", "uint64", outer_arguments, outer_body + code_only),
        Entry(
            "outer_invalid", "uint32", outer_arguments,
            outer_body + f"(void)code;\nreturn {int(no_outer)} && (flags & SN_INVALID) ? 4u : 0;",
        ),
        Entry(
            "value", kind, (("uint64", "code"),),
            "const sn_format fo = _out(), carrier = _carrier();\nsn_u32 status = 0;\n"
            f"return ({TYPES[kind]})sn_carrier_of(&fo, code, &carrier, &status);",
        ),
        *halves,
        _word_entry("first", 0),
        _word_entry("second", 16 if shares_word(unit) else 0),
    )  # fmt: skip
    return Library(constants, entries)
