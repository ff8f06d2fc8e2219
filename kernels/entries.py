"""The scalar functions that the kernels are made of, each as C text and as the CPU extension's call of the same C."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum import _core
from softnum.c_text import environment_text, format_text
from softnum.environment import environment
from softnum.kernels.source import Entry, Library
from softnum.modes import Flags
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
_WORD32 = 0xFFFFFFFF


def _scalar(operation, operands, out, env):
    """The core's operation on codes given as integers: (*codes, random word) -> (code, flags)."""
    handle = _core.intern_context(operation, operands, out, env)
    ufunc = _core.UFUNCS_FLAGS[operation]

    def call(*arguments):
        *codes, word = arguments
        code, flags = ufunc(*[np.uint64(c) for c in codes], np.uint32(word), handle)
        return int(code), int(flags)

    return call


def _plain(fmt) -> tuple[int, int, int, int]:
    return environment(fmt, "nearest_even", None, 32)


# ---- random words --------------------------------------------------------------------------------------------------

_COUNTER = (
    ("uint64", "block"), ("uint64", "n"), ("uint64", "m"), ("uint64", "batch"), ("uint32", "key0"), ("uint32", "key1"),
)  # fmt: skip


def _half(which):
    def simulated(block, n, m, batch, key0, key1):
        words = _core.philox((int(block) & _WORD32, int(n), int(m), int(batch)), (int(key0), int(key1)))
        return words[2 * which] | words[2 * which + 1] << 32

    return simulated


def _elementwise_half(which):
    """Elementwise counters are (i div 4 low, i div 4 high, 0, 0)."""

    def simulated(block, key0, key1):
        words = _core.philox((int(block) & _WORD32, int(block) >> 32, 0, 0), (int(key0), int(key1)))
        return words[2 * which] | words[2 * which + 1] << 32

    return simulated


def _word(half0, half1, i):
    half = int(half1) if int(i) & 2 else int(half0)
    return half >> 32 if int(i) & 1 else half & _WORD32


def _word_entry(name: str, shift: int) -> Entry:
    return Entry(
        name, "uint32", (("uint64", "half0"), ("uint64", "half1"), ("uint64", "i")),
        f"return sn_philox_word(half0, half1, i) >> {shift};", lambda half0, half1, i: _word(half0, half1, i) >> shift,
    )  # fmt: skip


# ---- quantize ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def quantize_library(fmt, env: tuple, carrier: str) -> Library:
    """Entries ``value(bits, random)``, ``status(bits, random)`` and the words of elementwise operations."""
    name, kind = _CARRIERS[carrier]
    wide = format(name)
    to, back = _scalar("convert", (wide,), fmt, env), _scalar("convert", (fmt,), wide, _plain(wide))

    def value(bits, random):
        return back(to(bits, random)[0], 0)[0]

    def status(bits, random):
        code, flags = to(bits, random)
        no_code = NO_CODE if flags & Flags.INVALID and not fmt.has_nan else 0
        return no_code | (NOT_EXACT if back(code, 0)[1] & ~Flags.INVALID else 0)

    arguments = ((kind, "bits"), ("uint32", "random"))
    body = (
        "const sn_format carrier = _carrier(), f = _format();\nconst sn_env env = _env();\nsn_u32 status = 0;\n"
        "sn_u64 value = sn_carrier_round(&carrier, bits, &f, &env, random, &status);\n"
    )
    counter = (("uint64", "block"), ("uint32", "key0"), ("uint32", "key1"))
    halves = [
        Entry(
            f"half{i}", "uint64", counter,
            f"return sn_philox_half(block, (sn_u32)(block >> 32), 0, 0, key0, key1, {i});", _elementwise_half(i),
        )
        for i in (0, 1)
    ]  # fmt: skip
    entries = (
        Entry("value", kind, arguments, body + f"(void)status;\nreturn ({_c(kind)})value;", value),
        Entry("status", "uint32", arguments, body + "(void)value;\nreturn status;", status),
        *halves,
        _word_entry("word", 0),
    )
    constants = format_text("_carrier", wide) + format_text("_format", fmt) + environment_text("_env", env)
    return Library(constants, entries)


def _c(kind: str) -> str:
    return {"uint32": "sn_u32", "uint64": "sn_u64"}[kind]


# ---- operands and results ------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def operand_library(fmt, carrier: str) -> Library:
    """Entries ``code(bits)``, and ``status(bits)``: NOT_EXACT unless the carrier's value is one of the format's."""
    name, kind = _CARRIERS[carrier]
    wide = format(name)
    to, back = _scalar("convert", (wide,), fmt, _plain(fmt)), _scalar("convert", (fmt,), wide, _plain(wide))

    def code(bits):
        return to(bits, 0)[0]

    def status(bits):
        inner, flags = to(bits, 0)
        again, inexact = back(inner, 0)
        top = 1 << (wide.bits - 1)
        magnitude, magnitude_again = int(bits) % top, again % top
        if magnitude == 0:
            same = magnitude_again == 0
        elif magnitude > wide.inf_code:
            same = magnitude_again > wide.inf_code
        else:
            same = int(bits) == again
        bad = not same or inexact & ~Flags.INVALID or (flags & Flags.INVALID and not fmt.has_nan)
        return NOT_EXACT if bad else 0

    body = (
        "const sn_format carrier = _carrier(), f = _format();\nsn_u32 status = 0;\n"
        "sn_u64 code = sn_carrier_code(&carrier, bits, &f, &status);\n"
    )
    entries = (
        Entry("code", "uint64", ((kind, "bits"),), body + "(void)status;\nreturn code;", code),
        Entry("status", "uint32", ((kind, "bits"),), body + "(void)code;\nreturn status;", status),
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
    carrier; ``step_invalid`` and ``outer_invalid`` say whether a NaN met a format that has no code for it. ``half0``
    and ``half1`` give a Philox block, ``first`` and ``second`` a step's random words from it.
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
        fma = _scalar("fma", (a, b, unit.accumulator), unit.accumulator, sum_env)

        def step(acc, x, y, first, second):
            code, flags = fma(x, y, acc, second)
            return code, 0, flags
    else:
        step_body += _ROUNDED
        constants += format_text("_product", unit.product) + environment_text("_product_env", product_env)
        multiply = _scalar("multiply", (a, b), unit.product, product_env)
        add = _scalar("add", (unit.accumulator, unit.product), unit.accumulator, sum_env)

        def step(acc, x, y, first, second):
            p, raised = multiply(x, y, first)
            code, flags = add(acc, p, second)
            return code, raised, flags

    add_outer = _scalar("add", (unit.outer, unit.accumulator), unit.outer, outer_env)
    back = _scalar("convert", (unit.outer,), wide, _plain(wide))

    def step_invalid(*x):
        _, product_flags, flags = step(*x)
        return int((no_product and product_flags & Flags.INVALID != 0) or (no_sum and flags & Flags.INVALID != 0))

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
        " || ".join(
            text
            for text, wanted in (
                ("(product_flags & SN_INVALID) != 0", no_product),
                ("(flags & SN_INVALID) != 0", no_sum),
            )
            if wanted
        )
        or "0 & flags"
    )
    halves = [
        Entry(
            f"half{i}", "uint64", _COUNTER,
            f"return sn_philox_half(block, (sn_u32)n, (sn_u32)m, (sn_u32)batch, key0, key1, {i});", _half(i),
        )
        for i in (0, 1)
    ]  # fmt: skip
    entries = (
        Entry("step", "uint64", step_arguments, step_body + code_only, lambda *x: step(*x)[0]),
        Entry(
            "step_invalid", "uint32", step_arguments, step_body + step_lost + ";", step_invalid,
        ),
        Entry("outer", "uint64", outer_arguments, outer_body + code_only, lambda *x: add_outer(*x)[0]),
        Entry(
            "outer_invalid", "uint32", outer_arguments,
            outer_body + f"(void)code;\nreturn {int(no_outer)} && (flags & SN_INVALID) != 0;",
            lambda *x: int(no_outer and add_outer(*x)[1] & Flags.INVALID != 0),
        ),
        Entry(
            "value", kind, (("uint64", "code"),),
            "const sn_format fo = _out(), carrier = _carrier();\nsn_u32 status = 0;\n"
            f"return ({_c(kind)})sn_carrier_of(&fo, code, &carrier, &status);",
            lambda code: back(code, 0)[0],
        ),
        *halves,
        _word_entry("first", 0),
        _word_entry("second", 16 if shares_word(unit) else 0),
    )  # fmt: skip
    return Library(constants, entries)
