"""A unit's fast path as C text over csrc/softnum/device/steps.h: one step of one result.

csrc/products/gemm/paths.c chooses the path; its constants become C literals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from softnum.formats.modes import ROUNDING_MODES
from softnum.kernels.device.elementwise.patterns import pattern_facts, pattern_text
from softnum.kernels.device.runtime.source import TYPES, literal
from softnum.mac._gemm import FastGemm, IntegerGemm
from softnum.mac.products.engines import fast_of

__all__ = ["Steps", "second_key", "step_text", "steps_of", "target_text"]

_DOWN, _STOCHASTIC = ROUNDING_MODES["down"], ROUNDING_MODES["stochastic"]


@dataclass(frozen=True)
class Steps:
    """How a kernel computes a unit.

    kind: the type of sums and of what is in shared memory; words: whether a Philox key is needed; late: C is added at
    the end (and the sum starts from 0).
    """

    unit: object
    level: str
    kind: str
    words: bool = False
    chunk: int = 0
    late: bool = False


def _magic_text(name: str, r) -> str:
    """A C function that returns an sn_magic, of a softnum.mac._gemm.Round32."""
    high, low = r.overflow
    alike = (math.isnan(high) and math.isnan(low)) or high == -low
    symmetric = bool(r.sign_of_zero and r.limit[0] == r.limit[1] and alike)
    fields = (
        f"{r.emin:#x}u, {r.emax:#x}u, {r.sign_of_zero:#x}u, {int(symmetric)}, {literal(r.scale)}, "
        f"{{{literal(r.limit[0])}, {literal(r.limit[1])}}}, {{{literal(high)}, {literal(low)}}}"
    )
    return f"SN_FN sn_magic {name}(void) {{\nconst sn_magic r = {{{fields}}};\nreturn r;\n}}\n"


def steps_of(unit, level: str = "full", careful: bool = True) -> Steps | None:
    """How a MadUnit is computed at a level; None if no fast path takes it.

    careful: sums of integers may saturate.
    """
    gemm = fast_of(unit)
    if gemm is None or gemm.path in ("ieee", "lanes"):  # which are texts of the definition there
        return None
    if gemm.path == "integers":
        if careful and not gemm.wraps:
            return Steps(unit, "careful", "int64")
        return Steps(unit, "plain", "int32", late=True)
    return Steps(unit, level, "float64" if gemm.wide else "float32", unit.stochastic, gemm.chunk)


def _targets(unit) -> tuple:
    """(format, environment) of product, sum and outer sum; the sum's for products that are not rounded."""
    product_env, sum_env, outer_env = unit.environments
    total = unit.accumulator, sum_env
    return total if unit.product is None else (unit.product, product_env), total, (unit.outer, outer_env)


def second_key(unit) -> bool:
    """Whether the sum takes a random word of its own."""
    return unit.two_roundings and unit.stochastic_bits > 16


# ---- one step, by path: functions _step(acc, x, y, word, word2), _outer(outer, acc, word) ---

_SIGNATURES = {
    "step": "SN_FN {T} _step({T} acc, {T} x, {T} y, sn_u32 word, sn_u32 word2)",
    "outer": "SN_FN {T} _outer({T} outer, {T} acc, sn_u32 word)",
}


def _functions(kind: str, step: str, outer: str) -> str:
    c = TYPES[kind]
    return (
        f"{_SIGNATURES['step'].format(T=c)} {{\n(void)word, (void)word2;\n{step}\n}}\n"
        f"{_SIGNATURES['outer'].format(T=c)} {{\n(void)word;\n{outer}\n}}\n"
    )


def _magic_steps(gemm: FastGemm, level: str) -> str:
    product, total, outer = gemm.magic
    if gemm.product_rounding == "exact":
        product = total
    constants = _magic_text("_rp", product) + _magic_text("_rs", total) + _magic_text("_ro", outer)
    take = "const sn_magic rs = _rs();\n"
    if gemm.path == "fixed":
        step = take + "return sn_round_to_fixed(&rs, sn_multiply_add32(x, y, acc));"
        last = "const sn_magic ro = _ro();\nreturn sn_round_to_fixed(&ro, sn_add32(outer, acc));"
    else:
        rounding = f"sn_magic_{level}"
        of_product = "sn_magic_product_bare" if level == "bare" else rounding
        if gemm.product_rounding == "exact":
            step = take + f"return {rounding}(&rs, sn_multiply_add32(x, y, acc));"
        else:
            step = (
                take
                + "const sn_magic rp = _rp();\n"
                + f"return {rounding}(&rs, sn_add32(acc, {of_product}(&rp, sn_multiply32(x, y))));"
            )
        last = f"const sn_magic ro = _ro();\nreturn {rounding}(&ro, sn_add32(outer, acc));"
    return constants + _functions("float32", step, last)


_NATIVE = {
    "exact": "return sn_multiply_add32(x, y, acc);",
    "nearest": "return sn_add32(acc, sn_multiply32(x, y));",
    "fused": "return sn_fma32(x, y, acc);",
}


def _rounded(what: str, value: str, word: str = "0", bits: int = 32) -> str:
    """An expression: a value rounded as sn_pattern p<what> says."""
    return f"sn_float{bits}(sn_round_pattern{bits}(&p{what}, sn_bits{bits}({value}), {word}))"


def _pattern(x: str, target: tuple, carrier: str) -> tuple[str, str]:
    """(a function that returns the sn_pattern of a format and an environment, the statement that calls it)"""
    text = pattern_text(f"_pattern_{x}", *target, carrier)
    if text is None:
        raise ValueError(f"{target} lies outside the domain of rounding {carrier} patterns")
    return text, f"const sn_pattern p{x} = _pattern_{x}();\n(void)p{x};\n"


def _joined(texts) -> tuple[str, str]:
    return tuple(map("".join, zip(*texts, strict=True)))


def _odd_steps(gemm: FastGemm, unit, level: str) -> str:
    targets = _targets(unit)
    down = int(targets[1][1][0] == _DOWN)
    constants, take = _joined(_pattern(x, target, "float32") for x, target in zip("pso", targets, strict=True))

    def rounded(what: str, value: str) -> str:
        return f"sn_magic_signed(&m{what}, {value})" if level == "signed" else _rounded(what, value)

    if level == "signed":
        constants += _magic_text("_magic_s", gemm.magic[1]) + _magic_text("_magic_o", gemm.magic[2])
        take += "".join(f"const sn_magic m{x} = _magic_{x}();\n(void)m{x};\n" for x in "so")
    step = take
    if gemm.product_rounding == "exact":
        step += f"return {rounded('s', f'sn_fma_odd32(x, y, acc, {down})')};"
    else:
        step += (
            "const float odd = sn_fma_odd32(x, y, sn_float32(0x80000000u), 0);\n"
            f"const float product = {_rounded('p', 'odd')};\n"
            f"return {rounded('s', f'sn_fma_odd32(product, 1.0f, acc, {down})')};"
        )
    return constants + _functions(
        "float32", step, take + f"return {rounded('o', f'sn_fma_odd32(acc, 1.0f, outer, {down})')};"
    )


def target_text(x: str, target: tuple, carrier: str) -> tuple[str, str]:
    """The same for the sn_target32 or 64 (csrc/softnum/device/stochastic_steps.h) of a float."""
    fmt, env = target
    facts, bits = pattern_facts(fmt, env, carrier), 32 if carrier == "float32" else 64
    kind, high = f"sn_target{bits}", facts["value_overflow"]
    magnitude = high[0] & ((1 << bits - 1) - 1)
    if high != facts["value_infinity"] or magnitude != high[1] & ((1 << bits - 1) - 1):
        raise ValueError(f"{fmt} in {env}: sums that are too large must become one magnitude, infinities too")
    fields = (
        f"{fmt.mantissa_bits}, {env[3]}, {facts['negative_zero']}, {literal(2.0**fmt.emin, carrier)}, "
        f"{literal(float(fmt.max), carrier)}, sn_float{bits}({magnitude:#x}ull)"
    )
    return (
        f"SN_FN {kind} _target_{x}(void) {{\nconst {kind} p = {{{fields}}};\nreturn p;\n}}\n",
        f"const {kind} t{x} = _target_{x}();\n(void)t{x};\n",
    )


def _randomly(what: str, way: str, value: str, word: str, bits: int = 32) -> str:
    """An expression: a value rounded as the sn_target t<what> says."""
    return f"sn_stochastic_{way}{bits}(&t{what}, {value}, {word})"


def _stochastic_steps(gemm: FastGemm, unit, level: str) -> str:
    targets = zip("pso", _targets(unit), strict=True)
    constants, take = _joined(target_text(x, target, "float32") for x, target in targets)
    shift = unit.random_source.half if gemm.two_roundings else 0
    if gemm.product_rounding == "exact":
        value = "sn_fma_zero32(x, y, acc)"
    else:
        product = _randomly("p", "finite" if level == "bare" else "full", "sn_multiply32(x, y)", "word")
        value = f"sn_add_zero32(acc, {product})"
    step = f"return {_randomly('s', level, value, f'word2 >> {shift}')};"
    last = f"return {_randomly('o', 'full', 'sn_add_zero32(outer, acc)', f'word >> {shift}')};"
    return constants + _functions("float32", take + step, take + last)


def _wide_steps(gemm: FastGemm, unit) -> str:
    targets = dict(zip("pso", _targets(unit), strict=True))
    randomly = {x for x, (fmt, env) in targets.items() if env[0] == _STOCHASTIC and fmt.exponent_bits}
    # to nearest even by a constant, where that is finite
    nearest = {x for x, (f, _) in targets.items() if f.exponent_bits and f.emax + 53 - f.mantissa_bits <= 1023}
    constants, take = _joined(
        (target_text if x in randomly | nearest else _pattern)(x, target, "float64") for x, target in targets.items()
    )

    def rounded(x: str, value: str, word: str) -> str:
        if x in randomly:
            return _randomly(x, "full", value, word, 64)
        return f"sn_nearest64(&t{x}, {value})" if x in nearest else _rounded(x, value, word, 64)

    def total(x: str, addends: str, word: str) -> str:
        return rounded(x, f"sn_{'add_zero' if x in randomly else 'sum_odd'}64({addends})", word)

    shift = unit.random_source.half if gemm.two_roundings and not second_key(unit) else 0
    product = "sn_multiply64(x, y)"
    if gemm.product_rounding != "exact":
        product = rounded("p", product, "word")
    step = f"return {total('s', f'acc, {product}', f'word2 >> {shift}')};"
    last = f"return {total('o', 'outer, acc', f'word >> {shift}')};"
    return constants + _functions("float64", take + step, take + last)


def _integer_steps(gemm: IntegerGemm, careful: bool) -> str:
    if careful:
        least, most = map(_i64, gemm.ends)
        step = f"return sn_saturated(acc + x * y * {1 << gemm.shift}, {least}, {most});"
        return _functions("int64", step, "(void)acc;\nreturn outer;")
    step = "return (sn_i32)((sn_u32)acc + (sn_u32)x * (sn_u32)y);"
    return _functions("int32", step, "(void)acc;\nreturn outer;")


def _i64(x: int) -> str:
    return f"(-{-x}ll)" if x < 0 else f"{x}ll"


def step_text(steps: Steps) -> str:
    """C of a unit's step, for one result: ``_step(acc, x, y, word, word2)`` and ``_outer(outer, acc, word)``."""
    unit, gemm = steps.unit, fast_of(steps.unit)
    if gemm.path == "integers":
        return _integer_steps(gemm, steps.level == "careful")
    if gemm.path == "native":
        return _functions("float32", _NATIVE[gemm.product_rounding], "return sn_add32(outer, acc);")
    if gemm.path in ("magic", "mixed", "fixed"):
        return _magic_steps(gemm, steps.level)
    if gemm.path == "odd":
        return _odd_steps(gemm, unit, steps.level)
    if gemm.path == "stochastic":
        return _stochastic_steps(gemm, unit, steps.level)
    return _wide_steps(gemm, unit)
