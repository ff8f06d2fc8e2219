"""C text of fused dot-product units and of chains of fused multiply-adds: what their kernels call."""

from __future__ import annotations

from functools import lru_cache

from softnum.formats.c_text import environment_text, format_text
from softnum.formats.names import format
from softnum.kernels.device.runtime.source import TYPES, Entry, Library, literal
from softnum.mac.products.engines import fast_of

__all__ = ["STATE", "chain_library", "fast_library", "fused_library", "value_entry"]

STATE = 16  # words of 64 bits that the state of a definition's step takes
_CARRIERS = {"float32": ("binary32", "uint32"), "float64": ("binary64", "uint64")}


def value_entry(carrier: str, result: str) -> tuple[str, Entry]:
    """(constants, entry): ``value(code)``, a result's bits in the carrier."""
    name, kind = _CARRIERS[carrier]
    body = (
        f"const sn_format f = {result}(), carrier = _carrier();\nsn_u32 status = 0;\n"
        f"return ({TYPES[kind]})sn_carrier_of(&f, code, &carrier, &status);"
    )
    return format_text("_carrier", format(name)), Entry("value", kind, (("uint64", "code"),), body)


# ---- fused dot products: the definition, term by term ----------------------------------------------------------------

_STEP = """
typedef struct {
    sn_fused_sum sum;
    sn_fused_term addend;
    sn_i32 with_c;
    sn_u32 lost; /* a bit for each format that had no code for a NaN: 1 accumulator, 2 output */
} _step;

SN_FN sn_u64 _told(sn_u64 *state, sn_u64 code, sn_u32 flags, sn_u32 which) {
    if (flags & SN_NO_CODE) ((_step *)state)->lost |= which;
    return code;
}
"""

_STATE = ("uint64*", "state")
_FACTORS = (_STATE, ("uint64", "a"), ("uint64", "b"))
_HERE = "const sn_fused_unit u = _unit();\n_step *s = (_step *)state;\n"
_TERM = _HERE + "const sn_number x = sn_unpack(&u.a, a), y = sn_unpack(&u.b, b);\nsn_fused_term term;\n"


@lru_cache(maxsize=256)
def fused_library(unit, carrier: str) -> Library:
    """A FusedDotUnit's definition (csrc/softnum/units/fused.h) on codes, one term after the other.

    ``reset(state)`` before all; for each step ``begin(state, sum)``, ``note(state, a, b)`` of its products, and if
    ``align(state)`` says so ``add(state, a, b)`` of the same, then ``round(state, last)``. ``after(state, sum, c)``
    adds C to the result, ``convert(state, c)`` is a sum of nothing in another output. ``lost(state)``: a bit for each
    of ``unit.rounded_to`` that had no code.
    """
    a, b = unit.operand
    floor, of_zeros = ("SN_FUSED_NO_FLOOR" if e is None else str(e) for e in (unit.min_exponent, unit.zero_exponent))
    cut = -1 if unit.truncate_fraction is None else unit.truncate_fraction
    facts = (
        f"    u.terms = {unit.terms};\n    u.fraction_bits = {unit.fraction_bits};\n    u.min_exponent = {floor};\n"
        f"    u.zero_exponent = {of_zeros};\n"
        f"    u.truncate_fraction = {cut};\n    u.always_infinity = {int(unit.overflow == 'always_infinity')};\n"
        f"    u.c_after = {int(unit.c == 'after')};\n    u.same_output = {int(unit.result == unit.accumulator)};\n"
        f"    u.period = {unit.period};\n    u.order = 0;\n"
    )
    value_constants, value = value_entry(carrier, "_output")
    constants = (
        format_text("_a", a) + format_text("_b", b) + format_text("_sum", unit.accumulator)
        + format_text("_output", unit.result) + environment_text("_sum_env", unit.environments[0])
        + environment_text("_output_env", unit.environments[1]) + environment_text("_after_env", unit.environments[2])
        + "SN_FN sn_fused_unit _unit(void) {\n    sn_fused_unit u;\n    u.a = _a();\n    u.b = _b();\n"
        "    u.accumulator = _sum();\n    u.output = _output();\n    u.sum_env = _sum_env();\n"
        f"    u.output_env = _output_env();\n    u.after_env = _after_env();\n{facts}    return u;\n}}\n"
        + _STEP + f"typedef char _fits[sizeof(_step) <= {8 * STATE} ? 1 : -1];\n" + value_constants
    )  # fmt: skip
    begin = _HERE + (
        "sn_fused_kinds kinds;\nconst sn_number z = sn_unpack(&u.accumulator, sum);\n"
        "kinds.nan = kinds.signaling = kinds.invalid = kinds.infinite[0] = kinds.infinite[1] = 0;\n"
        "kinds.any = kinds.largest = 0;\ns->sum.positive = s->sum.negative = sn_u128_make(0, 0);\n"
        "s->sum.unit = s->sum.cut = 0;\ns->with_c = sn_fused_addend(&u, &z, &kinds, &s->addend);\n"
        "s->sum.kinds = kinds;"
    )
    align = _HERE + (
        "const sn_fused_kinds *kinds = &s->sum.kinds;\n"
        "if (kinds->nan || kinds->invalid || kinds->infinite[0] || kinds->infinite[1] || !kinds->any) return 0;\n"
        "s->sum.unit = (kinds->largest > u.min_exponent ? kinds->largest : u.min_exponent) - u.fraction_bits;\n"
        "if (s->with_c) sn_fused_add(&s->sum, &s->addend);\nreturn 1;"
    )
    rounding = _HERE + (
        "sn_u32 flags = 0;\nconst sn_u64 code = sn_fused_round(&u, &s->sum, last ? &u.output : &u.accumulator, "
        "last ? &u.output_env : &u.sum_env, &flags);\nreturn _told(state, code, flags, last ? 2u : 1u);"
    )
    after = (
        "const sn_fused_unit u = _unit();\nsn_u32 flags = 0;\nconst sn_u64 code = sn_add(&u.accumulator, sum, "
        "&u.output, c, &u.output, &u.after_env, 0, &flags);\nreturn _told(state, code, flags, 2u);"
    )
    convert = (
        "const sn_fused_unit u = _unit();\nsn_u32 flags = 0;\nconst sn_u64 code = sn_convert(&u.accumulator, c, "
        "&u.output, &u.output_env, 0, &flags);\nreturn _told(state, code, flags, 2u);"
    )
    entries = (
        Entry("reset", "void", (_STATE,), "((_step *)state)->lost = 0;"),
        Entry("begin", "void", (_STATE, ("uint64", "sum")), begin),
        Entry("note", "void", _FACTORS, _TERM + "sn_fused_product(&u, &x, &y, &s->sum.kinds, &term);"),
        Entry("align", "uint32", (_STATE,), align),
        Entry(
            "add", "void", _FACTORS,
            _TERM + "sn_fused_kinds again = s->sum.kinds;\n"
            "if (sn_fused_product(&u, &x, &y, &again, &term)) sn_fused_add(&s->sum, &term);",
        ),
        Entry("round", "uint64", (_STATE, ("uint32", "last")), rounding),
        Entry("after", "uint64", (_STATE, ("uint64", "sum"), ("uint64", "c")), after),
        Entry("convert", "uint64", (_STATE, ("uint64", "c")), convert),
        Entry("lost", "uint32", (_STATE,), "return ((_step *)state)->lost;"),
        value,
    )  # fmt: skip
    return Library(constants, entries)


# ---- chains of fused multiply-adds -----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def chain_library(unit, carrier: str) -> Library:
    """A FmaChainUnit's step on codes: ``step(sum, a, b)``, ``step_lost(sum, a, b)`` and ``value(code)``."""
    a, b = unit.operand
    value_constants, value = value_entry(carrier, "_sum")
    constants = (
        format_text("_a", a) + format_text("_b", b) + format_text("_sum", unit.accumulator)
        + environment_text("_env", unit.environment) + value_constants
    )  # fmt: skip
    arguments = (("uint64", "sum"), ("uint64", "a"), ("uint64", "b"))
    body = (
        "const sn_format fa = _a(), fb = _b(), fs = _sum();\nconst sn_env env = _env();\nsn_u32 flags = 0;\n"
        "const sn_u64 code = sn_fma(&fa, a, &fb, b, &fs, sum, &fs, &env, 0, &flags);\n"
    )
    entries = (
        Entry("step", "uint64", arguments, body + "(void)flags;\nreturn code;"),
        Entry("step_lost", "uint32", arguments, body + "(void)code;\nreturn (flags & SN_NO_CODE) != 0;"),
        value,
    )
    return Library(constants, entries)


# ---- fused dot products in binary32, a block of outputs to a thread --------------------------------------------------


def _facts_text(unit, plan) -> str:
    """The function ``_unit``: an sn_fused32 (csrc/softnum/device/fused_steps.h)."""
    a, b = unit.operand
    # what the plan calls high and, of bounded units, infinity: sums of theirs stay finite
    most = plan["high"] if plan["nearest"] else 126
    fields = {
        "terms": unit.terms, "fraction_bits": unit.fraction_bits,
        "floor": f"SN_FUSED32_BIAS + {plan['floor'] - 127}", "low": f"SN_FUSED32_BIAS + {plan['low']}",
        "most": f"SN_FUSED32_BIAS + {most}", "least_c": plan["least_c"],
        "nearest": int(plan["nearest"]), "wide": int(plan["may_carry"]),
        "group": min(plan["group"], unit.terms) if plan["may_carry"] else unit.terms,
        "watch_low": int(a.emin + b.emin < plan["low"]), "keep": f"{plan['keep']:#x}u",
        "to_constant": f"{plan['to_constant']:#x}u", "limit": literal(plan["limit"]),
        "least_start": literal(plan["least_start"]), "most_start": literal(plan["most_start"]),
    }  # fmt: skip
    lines = "".join(f"    u.{name} = {value};\n" for name, value in fields.items())
    return f"SN_FN sn_fused32 _unit(void) {{\n    sn_fused32 u;\n{lines}    return u;\n}}\n"


_LOOP = "SN_UNROLL\nfor (sn_i32 i = 0; i < SN_BLOCK; i++)"


@lru_cache(maxsize=256)
def fast_library(unit, stride: int) -> Library:
    """A block of outputs of a FusedDotUnit in the domain of csrc/softnum/device/fused_steps.h.

    ``exponent_a(x)`` and ``exponent_b(x)`` prepare a tile's elements, ``stride`` apart from one k to the next.
    ``begin(sums)`` starts the sums, given C; then ``steps`` for each tile; ``finish(sums, c)`` gives the outputs that
    the definition must compute, a bit each.
    """
    plan = fast_of(unit).plan
    after = unit.c == "after"
    begin = f"const sn_fused32 u = _unit();\n{_LOOP}\n    sums[i] = sn_fused32_start(&u, sums[i]);"
    added = (
        "if (sn_fused32_stayed(&u, sums[i])) sums[i] = sn_fused32_with_c(&u, sums[i], c[i]);" if after else "(void)c;"
    )
    finish = (
        f"const sn_fused32 u = _unit();\nsn_u32 left = 0;\n{_LOOP} {{\n    {added}\n"
        "    left |= (sn_fused32_stayed(&u, sums[i]) ? 0u : 1u) << i;\n}\nreturn left;"
    )
    tile = (
        ("float32*", "a"), ("int32*", "exponent_a"), ("float32*", "b"), ("int32*", "exponent_b"), ("int32", "row"),
        ("int32", "column"), ("int32", "depth"),
    )  # fmt: skip
    sums, c = ("float32*", "sums"), ("float32*", "c")
    steps = (
        "const sn_fused32 u = _unit();\n"
        f"sn_fused32_steps(&u, a + row, exponent_a + row, b + column, exponent_b + column, {stride}, depth, "
        "sums);"
    )
    x, exponent = (("float32", "x"),), "return sn_fused32_exponent(x, {}, {}, SN_FUSED32_BIAS_{});"
    zero = [
        "SN_FUSED32_ZERO" if unit.zero_exponent is None else f"{unit.zero_exponent} + SN_FUSED32_BIAS_{x}" for x in "AB"
    ]
    entries = (
        Entry("exponent_a", "int32", x, exponent.format(plan["least_a"], zero[0], "A")),
        Entry("exponent_b", "int32", x, exponent.format(plan["least_b"], zero[1], "B")),
        Entry("begin", "void", (sums,), begin),
        Entry("steps", "void", (*tile, sums), steps),
        Entry("finish", "uint32", (sums, c), finish),
    )  # fmt: skip
    return Library(_facts_text(unit, plan), entries, "softnum/device/fused_steps.h")
