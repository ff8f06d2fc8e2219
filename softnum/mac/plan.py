"""Which path computes a unit's GEMM. The domains are those that csrc/products/gemm/*.h state, a condition
for each line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.formats.facts import Facts, facts, fits
from softnum.formats.modes import LANE_MODES, OVERFLOW_RULES, ROUNDING_MODES, STOCHASTIC_MODES
from softnum.formats.names import format
from softnum.runtime import _core

__all__ = ["FastPlan", "IntegerPlan", "integer_plan_of", "overflow_values", "plan_of"]

_NEAREST_EVEN = ROUNDING_MODES["nearest_even"]
_STOCHASTIC = ROUNDING_MODES["stochastic"]
_INFINITY, _SATURATE, _SATURATE_FINITE, _WRAP = (
    OVERFLOW_RULES[k] for k in ("infinity", "saturate", "saturate_finite", "wrap")
)


@dataclass(frozen=True)
class Round32:
    """As sn_round32 in csrc/dispatch/kernels.h."""

    emin: int
    emax: int
    sign_of_zero: int
    mantissa_bits: int
    scale: float
    bound: float
    limit: tuple[float, float]
    overflow: tuple[float, float]


@dataclass(frozen=True)
class FastPlan:
    """A unit's GEMM on carriers: float32 or, if `wide`, float64; `path` and `product` as in products/gemm/gemm.h."""

    wide: bool
    path: str
    product: str
    exact_below: bool
    chunk: int
    two_roundings: bool
    magic: tuple | None  # a Round32 each for product, sum and outer sum
    targets: tuple | None  # (format, environment) of each, where patterns are rounded by integer arithmetic


@dataclass(frozen=True)
class IntegerPlan:
    """A unit's GEMM in integers, as sn_gemm_integers in csrc/products/gemm/gemm.h."""

    fractions: tuple[int, int]
    shift: int
    bits: int
    signed: bool
    wrap: bool
    least: int
    most: int
    scale: float


def overflow_values(fmt, env) -> tuple[float, float]:
    from softnum.arrays.conversion import decode

    if fmt.kind == "fixed":  # saturates
        return float(fmt.max), float(fmt.min)
    codes = np.array([_core.overflow_code(fmt, env, sign) for sign in (0, 1)], fmt.storage_dtype)
    return tuple(float(v) for v in decode(codes, fmt))


def _plain_float(fmt) -> bool:
    return fmt.kind == "float" and fmt.signed and fmt.lowest_binade == "subnormal" and fmt.mantissa_bits >= 1


def _rounds_here(fmt, env, specials: bool) -> bool:
    """What both fast paths ask of a format to round to: a usual float, or saturating fixed point fed finite values."""
    rule = env[1]
    if env[0] not in LANE_MODES:
        return False
    if fmt.kind == "fixed":
        return rule in (_SATURATE, _SATURATE_FINITE) and not specials
    if not _plain_float(fmt) or (rule == _SATURATE_FINITE and fmt.infinities):
        return False
    return fmt.has_nan or not (specials or fmt.infinities)  # inf - inf must have a result


def _round32(fmt, env, addend: Facts, biggest_sum: int) -> Round32 | None:
    """The magic constant's numbers, or None. biggest_sum: what is to be rounded lies below 2**(biggest_sum + 1)."""
    if env[0] != _NEAREST_EVEN or not _rounds_here(fmt, env, addend.specials):
        return None
    if fmt.kind == "fixed":
        # integers of the last place below 2^22: then |v| stays inside the constant's binade, and sums are exact
        if biggest_sum + 1 + fmt.fraction_bits > 22 or biggest_sum + 1 - min(addend.last, -fmt.fraction_bits) > 24:
            return None
        exponent = 23 - fmt.fraction_bits
        if not -126 <= exponent <= 127:
            return None
        limit = (float(fmt.max), -float(fmt.min))
        one = 127 << 23  # of a clamped exponent: 2^0
        return Round32(one, one, 0, 0, 1.5 * 2.0**exponent, 0.0, limit, overflow_values(fmt, env))
    m = fmt.mantissa_bits
    if fmt.emax + 24 - m > 127 or fmt.emin < -126 or not fits(fmt, np.float32):
        return None
    limit = (float(fmt.max), -float(fmt.min))
    return Round32(
        (fmt.emin + 127) << 23, (fmt.emax + 128) << 23, 0x80000000 if fmt.negative_zero else 0, m,
        1.5 * 2.0 ** (23 - m), float(fmt.max), limit, overflow_values(fmt, env),
    )  # fmt: skip


def _round64(fmt, env, specials: bool) -> tuple | None:
    """The (format, environment) to round to in binary64, or None."""
    if env[0] not in (_NEAREST_EVEN, _STOCHASTIC) or not _rounds_here(fmt, env, specials):
        return None
    m = fmt.bits if fmt.kind == "fixed" else fmt.mantissa_bits
    if m + 1 + (env[3] if env[0] == _STOCHASTIC else 2) > 52 or not fits(fmt, np.float64):
        return None
    if fmt.kind == "float" and (fmt.emax > 1000 or fmt.emin < -1022):
        return None
    return fmt, env


def _sum_top(*tops: int) -> int:
    return max(tops) + 1


def _narrow(unit, product: Facts, product_env, sum_env, outer_env) -> FastPlan | None:
    acc, outer = unit.accumulator, unit.outer
    if not all(fits(f, np.float32) for f in unit.operand):
        return None
    if product.precision > 24 or product.last < -149 or product.top > 127:
        return None
    if unit.product is None:
        kind, addend, rp = "exact", product, None
    else:
        kind, addend = "nearest", facts(unit.product)
        rp = _round32(unit.product, product_env, product, product.top)
        if rp is None:
            return None
    biggest = _sum_top(facts(acc).top, addend.top)
    rs = _round32(acc, sum_env, addend, biggest)
    ro = _round32(outer, outer_env, facts(acc), _sum_top(facts(acc).top, facts(outer).top))
    if rs is None or ro is None:
        return None
    for target, term in ((acc, addend), (outer, facts(acc))):
        if target.kind == "float" and not term.precision <= target.precision <= 11:
            return None
    kinds = {f.kind for f in (acc, outer, unit.product or acc)}
    if kinds == {"fixed"} and unit.product is None:
        path = "fixed"
    elif kinds == {"float"}:
        path = "magic"
    else:
        path = "mixed"
    below = addend.last >= facts(acc).last >= facts(outer).last
    if unit.product is not None and path == "magic":
        below = below and product.precision + unit.product.mantissa_bits <= 22
    return FastPlan(False, path, kind, path == "magic" and below, unit.chunk or 0, False, (rp or rs, rs, ro), None)


def _native(unit, product: Facts, product_env, sum_env) -> FastPlan | None:
    binary32 = format("binary32")
    if unit.accumulator != binary32 or unit.outer != binary32 or sum_env[:2] != (_NEAREST_EVEN, _INFINITY):
        return None
    if not all(fits(f, np.float32) for f in unit.operand):
        return None
    kind = "exact" if product.precision <= 24 and product.last >= -149 and product.top <= 127 else "fused"
    if unit.product is not None:
        if unit.product != binary32 or product_env[:2] != (_NEAREST_EVEN, _INFINITY):
            return None
        kind = "nearest"  # the hardware's multiplication is the product's rounding
    return FastPlan(False, "native", kind, False, unit.chunk or 0, False, None, None)


def _bound32(fmt, places: int) -> Round32:
    """The magic constant's numbers for sums that gemm/bounds.h keeps in range; C in steps of 2**-places of an ulp."""
    m = fmt.mantissa_bits
    bound = min(float(fmt.max), 2.0 ** (103 + m))  # C is finite up to there
    return Round32(
        (fmt.emin + 127) << 23, 0, 0x80000000 if fmt.negative_zero else 0, m, 1.5 * 2.0 ** (23 - m - places), bound,
        (0.0, 0.0), (0.0, 0.0),
    )  # fmt: skip


_UNBOUNDED = Round32(0, 0, 0, 0, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0))


def _patterns32(fmt, env, specials: bool, extra: int) -> bool:
    """Whether binary32 patterns that hold `extra` bits more than the format are rounded to it by lanes/round.h."""
    if not _rounds_here(fmt, env, specials) or not fits(fmt, np.float32):
        return False
    if fmt.kind == "fixed":
        return fmt.bits + 1 + extra <= 24 and fmt.fraction_bits <= 147 - extra and fmt.bits - fmt.fraction_bits <= 127
    return fmt.precision + extra <= 24 and fmt.emin >= -126 and fmt.emin - fmt.mantissa_bits >= -149 + extra


def _odd(unit, product: Facts, product_env, sum_env, outer_env) -> FastPlan | None:
    acc, outer = unit.accumulator, unit.outer
    if not all(fits(f, np.float32) for f in unit.operand):
        return None
    if any(env[0] in STOCHASTIC_MODES for env in (product_env, sum_env, outer_env)):
        return None
    addend = product if unit.product is None else facts(unit.product)
    if unit.product is not None and not _patterns32(unit.product, product_env, product.specials, 2):
        return None
    if not _patterns32(acc, sum_env, addend.specials, 2) or not _patterns32(outer, outer_env, facts(acc).specials, 2):
        return None
    floats = acc.kind == outer.kind == "float"
    bounded = floats and unit.product is None and sum_env[0] == _NEAREST_EVEN
    sums = (_bound32(acc, 0), _bound32(outer, 0)) if bounded else (_UNBOUNDED, _UNBOUNDED)
    first = (acc, sum_env) if unit.product is None else (unit.product, product_env)
    return FastPlan(
        False, "odd", "exact" if unit.product is None else "nearest", False, unit.chunk or 0, False,
        (_UNBOUNDED, *sums), (first, (acc, sum_env), (outer, outer_env)),
    )  # fmt: skip


def _stochastic(unit, product: Facts, product_env, sum_env, outer_env) -> FastPlan | None:
    acc, outer = unit.accumulator, unit.outer
    if not all(fits(f, np.float32) for f in unit.operand):
        return None
    if product.precision > 24 or product.last < -149 or product.top > 126:
        return None
    addend, r, two = product, sum_env[3], unit.product is not None
    if sum_env[0] != _STOCHASTIC or any(f.kind != "float" for f in (acc, outer, unit.product or acc)):
        return None
    if two:
        addend = facts(unit.product)
        if product_env[0] != _STOCHASTIC or r > 16 or unit.product.mantissa_bits + r > 20:
            return None
        if not _patterns32(unit.product, product_env, product.specials, r):
            return None
    if not _patterns32(acc, sum_env, addend.specials, r) or not _patterns32(outer, outer_env, facts(acc).specials, r):
        return None
    if _sum_top(facts(acc).top, facts(outer).top, addend.top) > 126:
        return None
    below = addend.last >= facts(acc).last >= facts(outer).last
    magic = (_bound32(unit.product, r) if two else _UNBOUNDED, _bound32(acc, 0), _bound32(outer, 0))
    first = (unit.product, product_env) if two else (acc, sum_env)
    return FastPlan(
        False, "stochastic", "stochastic" if two else "exact", below, unit.chunk or 0, two, magic,
        (first, (acc, sum_env), (outer, outer_env)),
    )  # fmt: skip


def _wide(unit, product: Facts, product_env, sum_env, outer_env) -> FastPlan | None:
    acc, outer = unit.accumulator, unit.outer
    if not all(fits(f, np.float64) for f in unit.operand):
        return None
    if product.precision > 53 or product.last < -1074 or product.top > 1000:
        return None
    if unit.product is None:
        kind, addend, rp = "exact", product, None
    else:
        addend = facts(unit.product)
        rp = _round64(unit.product, product_env, product.specials)
        if rp is None:
            return None
        kind = "stochastic" if product_env[0] == _STOCHASTIC else "nearest"
    rs = _round64(acc, sum_env, addend.specials)
    ro = _round64(outer, outer_env, facts(acc).specials)
    if rs is None or ro is None:
        return None
    two = kind == "stochastic" and sum_env[0] == _STOCHASTIC
    magic = _bare64(unit, product, addend, sum_env, kind)
    return FastPlan(True, "wide", kind, magic is not None, unit.chunk or 0, two, magic, (rp or rs, rs, ro))


def _bare64(unit, product: Facts, addend: Facts, sum_env, kind: str) -> tuple | None:
    """The bounds (products/gemm/bounds.h) of a unit whose sums and products are rounded by one addition, or None."""
    floats = [f for f in (unit.accumulator, unit.outer, unit.product) if f is not None]
    if sum_env[0] != _STOCHASTIC or kind == "nearest" or any(f.kind != "float" for f in floats):
        return None
    if any(f.emin < -126 or f.emax > 127 or f.precision > 24 for f in floats) or product.last < -1000:
        return None  # the bounds are binary32 numbers
    if kind == "stochastic" and unit.product.mantissa_bits + sum_env[3] > 49:
        return None
    if not addend.last >= facts(unit.accumulator).last >= facts(unit.outer).last:
        return None
    first = _UNBOUNDED if unit.product is None else _bound32(unit.product, 0)
    return first, _bound32(unit.accumulator, 0), _bound32(unit.outer, 0)


@lru_cache(maxsize=256)
def integer_plan_of(unit) -> IntegerPlan | None:
    """The unit's path in integers (csrc/products/gemm/integer.h), or None."""
    acc, formats = unit.accumulator, (*unit.operand, unit.accumulator)
    if unit.lanes > 1 or unit.compensated or unit.chunk or unit.product is not None or unit.stochastic:
        return None
    if any(f.kind != "fixed" for f in formats):
        return None
    if any(f.bits > 16 or (not f.signed and f.bits > 15) for f in unit.operand) or acc.bits > 32:
        return None
    fractions = tuple(f.fraction_bits for f in unit.operand)
    shift = acc.fraction_bits - sum(fractions)
    if not 0 <= shift <= 16 or any(abs(f) > 64 for f in (*fractions, acc.fraction_bits)):
        return None
    if not (acc.signed or all(not f.signed for f in unit.operand)) and unit.environments[1][1] != _WRAP:
        return None
    least = -(1 << (acc.bits - 1)) if acc.signed else 0
    most = (1 << (acc.bits - acc.signed)) - 1
    wrap = unit.environments[1][1] == _WRAP
    return IntegerPlan(fractions, shift, acc.bits, acc.signed, wrap, least, most, 2.0**-acc.fraction_bits)


@lru_cache(maxsize=256)
def plan_of(unit) -> FastPlan | None:
    """The unit's fast path, or None: then the definition computes it."""
    if unit.lanes > 1 or unit.compensated:
        return None
    product = facts(unit.operand[0]) * facts(unit.operand[1])
    product_env, sum_env, outer_env = unit.environments
    return (
        _native(unit, product, product_env, sum_env)
        or _narrow(unit, product, product_env, sum_env, outer_env)
        or _odd(unit, product, product_env, sum_env, outer_env)
        or _stochastic(unit, product, product_env, sum_env, outer_env)
        or _wide(unit, product, product_env, sum_env, outer_env)
    )
