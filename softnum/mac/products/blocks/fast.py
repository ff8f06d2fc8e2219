"""The fast path of BlockDotUnit, on carriers: blocks/body.h states its domain, a condition for each line here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode
from softnum.formats.facts import facts, fits
from softnum.formats.names import format
from softnum.mac import _blocks
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.products.engines import fast_of
from softnum.mac.products.operands import blocks_of, padded
from softnum.runtime.threads import for_each

__all__ = ["BlockPlan", "block_plan", "fast_product"]


@dataclass(frozen=True)
class BlockPlan:
    """What of the fast path follows from the formats alone."""

    engine: _blocks.FastBlock
    how: str  # "fma", "binary32" or "general": as in csrc/products/blocks/block.h
    checked_scales: bool  # "fma" where the products of the scales lie in binary32, else "binary32"
    finite: bool  # for finite operands alone: a result without a code is an error, which only the definition tells
    gemm: object = None  # the inner unit's engine


def _bits(fmt) -> int:
    """By how many bits a product with values of the format may be longer than its other factor."""
    precision = facts(fmt).precision
    return 0 if precision == 1 else precision


def _rounds(fmt, env, mode: str, bits: int) -> bool:
    """Whether what is exact, or rounded to odd, is rounded to the format in binary64."""
    unusual = fmt.lowest_binade != "subnormal"
    seen = bits + 1 if mode.startswith("stochastic") else 2
    return (
        fits(fmt, "float64") and not unusual and facts(fmt).precision + seen <= 52
        and (fmt.has_nan or not fmt.infinities) and _blocks.rounds_in_lanes(fmt, env)
    )  # fmt: skip


@lru_cache(maxsize=256)
def block_plan(unit: BlockDotUnit) -> BlockPlan | None:
    """The unit's fast path, or None."""
    a, b = unit.operand
    acc, product, inner = unit.accumulator, unit.product, unit.inner
    specials = any(f.has_nan or f.infinities for f in (a.element, b.element, a.scale, b.scale))
    no_nan = not all(f.has_nan for f in (acc, product or acc))
    if inner is not None:
        if no_nan and any(f is not None and (f.has_nan or f.infinities) for f in inner.rounded_to):
            return None
    elif not all(fits(f.element, "float64") for f in (a, b)):
        return None
    r = unit.stochastic_bits
    if unit.rounding == "down" or not _rounds(acc, unit.environments[1], unit.rounding, r):
        return None
    if product is not None and not acc.has_nan and (product.has_nan or product.infinities):
        return None  # a product that overflows has no code: only the definition tells
    if product is not None and not _rounds(product, unit.environments[0], unit.product_mode, r):
        return None
    if unit.tensor_scales and facts(acc).precision > 24:
        return None
    (last_x, top_x), (last_y, top_y) = a.scale.span, b.scale.span
    last_s, top_s = unit._spans[0] if inner is None else inner.result.span
    low, high = min(last_s, 0) + last_x + last_y, max(top_s, 0) + 32 + top_x + top_y
    if low < -900 or high > 900 or _bits(a.scale) + _bits(b.scale) > 53:
        return None
    gemm = None
    if inner is not None:
        gemm = fast_of(inner)
        long = facts(inner.result).precision + _bits(a.scale) + _bits(b.scale) > 53
        if gemm is None or inner.stochastic or long or not fits(inner.result, "float64"):
            return None
    to_nearest = acc == format("binary32") and unit.rounding == "nearest_even" and unit.overflow in (None, "infinity")
    how = "binary32" if to_nearest else "general"
    fused = to_nearest and inner is None and product is None
    if (
        fused
        and facts(a.scale).precision + facts(b.scale).precision <= 24
        and all(fits(f.scale, "float32") for f in (a, b))
    ):
        how = "fma"
    checked = last_x + last_y >= -149 and top_x + top_y <= 127
    engine = _blocks.FastBlock(product, acc, *unit.environments, unit.two_roundings, unit.own_stochastic)
    return BlockPlan(engine, how, checked, no_nan and specials, gemm)


def _range(x: np.ndarray, fmt) -> tuple[int, int, int]:
    """(last, top, precision): x is made of multiples of 2**last, at most 2**top in magnitude, of so many bits."""
    last, top = fmt.span
    precision = facts(fmt).precision
    size = np.abs(x[np.isfinite(x) & (x != 0)])
    if not size.size:
        return 0, 0, precision
    last = int(fmt.last_place(int(np.frexp(size.min())[1]) - 1))
    return last, min(top, int(np.frexp(size.max())[1])), precision


def _in_float32(unit, size: int) -> bool:
    """Whether exact sums of blocks are float32 numbers, for the formats alone."""
    (last, top), terms = unit._spans[0], max(size - 1, 1).bit_length()
    return top - last + terms <= 24 and all(fits(f.element, "float32") for f in unit.operand)


def _split(unit, a, b, size: int) -> float | None:
    """0 where exact sums of blocks of these values are float64 numbers, else M of their split; None if neither."""
    terms = max(size - 1, 1).bit_length()
    last, top = unit._spans[0]
    scales = sum(_bits(f.scale) for f in unit.operand)
    need = top - last + terms
    if need > 53 - scales:
        (last_a, top_a, _), (last_b, top_b, _) = _range(a, unit.operand[0].element), _range(b, unit.operand[1].element)
        last, top = last_a + last_b, top_a + top_b
        need = top - last + terms
    if need <= 53 - scales:
        return 0.0
    if need + terms > 103 or scales or unit.product is not None or np.isinf(a).any() or np.isinf(b).any():
        return None
    return 1.5 * 2.0 ** (52 + top + terms - 51)


def _in_binary32(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the product of any two of these powers of two is a binary32 number."""
    ends = []
    for scales in (x, y):
        size = np.abs(scales[np.isfinite(scales) & (scales != 0)])
        if not size.size:
            return True
        ends.append((size.min(), size.max()))
    return ends[0][0] * ends[1][0] >= 2.0**-149 and ends[0][1] * ends[1][1] <= 2.0**127


def fast_product(p, threads) -> np.ndarray | None:
    """A product of `softnum.mac.products.blocks.matrices`, as float64 values; None where there is no fast path."""
    unit = p.unit
    plan = block_plan(unit)
    if plan is None or p.words is not None or not p.k:
        return None
    size = unit.operand[0].size(p.k)
    narrow = _in_float32(unit, size) if unit.inner is None else not plan.gemm.wide
    dtype = np.float32 if narrow else np.float64
    elements = [decode(x, f.element, dtype) for x, f in ((p.a, unit.operand[0]), (p.b, unit.operand[1]))]
    scales = [
        np.ascontiguousarray(decode(x, f.scale, np.float64))
        for x, f in ((p.scale_a, unit.operand[0]), (p.scale_b, unit.operand[1]))
    ]
    if plan.finite and not all(np.isfinite(x).all() for x in (*elements, *scales)):
        return None
    how, magic = plan.how, 0.0
    if unit.inner is None:
        if not narrow:
            magic = _split(unit, *elements, size)
            if magic is None:
                return None
        if how == "fma" and (dtype == np.float64 or not (plan.checked_scales or _in_binary32(*scales))):
            how = "binary32"
    a, b = (np.ascontiguousarray(x, dtype) for x in elements)
    c = None if p.c is None else decode(p.c.astype(unit.result.storage_dtype), unit.result, np.float64)
    out = np.empty((p.batches, p.m, p.n))
    threads, pieces = blocks_of(p.m, p.n, p.k, p.batches, threads)
    start = None if unit.tensor_scales else c
    keys, engine = p.keys, plan.engine

    def work(i, m0, m1, n0, n1) -> None:
        if m1 <= m0 or n1 <= n0:
            return
        part = np.zeros((m1 - m0, n1 - n0))
        first = None if start is None else np.ascontiguousarray(start[i, m0:m1, n0:n1])
        scale_a, scale_b = scales[0][i, m0:m1], scales[1][i]
        if unit.inner is None:
            engine.gemm(how, a[i, m0:m1], b[i], scale_a, scale_b, first, part, keys, i, m0, n0, size, magic)
        else:
            if first is not None:
                part[...] = first
            _inner_blocks(p, plan, how, a, b, scale_a, scale_b, part, (i, m0, m1, n0, n1))
        if unit.tensor_scales:
            last = None if c is None else np.ascontiguousarray(c[i, m0:m1, n0:n1])
            tensor = p.tensor[0] * p.tensor[1]
            engine.finish(how, scale_a, scale_b, last, part, keys, i, m0, n0, tensor, p.last)
        out[i, m0:m1, n0:n1] = part

    for_each(pieces, work, threads)
    out[np.isnan(out)] = np.nan
    return out


def _inner_blocks(p, plan, how, a, b, scale_a, scale_b, part, where) -> None:
    """The inner unit's own engine, block after block."""
    i, m0, m1, n0, n1 = where
    gemm = plan.gemm
    sums = np.empty(part.shape, a.dtype)
    first = 0
    for j, (length, (_, step)) in enumerate(zip(p.lengths, p.numbering, strict=True)):
        rows = slice(first, first + length)
        x = np.ascontiguousarray(a[i, m0:m1, rows])
        y = b[i, rows, n0:n1]
        y = np.ascontiguousarray(y) if getattr(gemm, "converts", False) else padded(y, a.dtype)
        gemm.run(x, y, None, sums, p.keys, i, m0, m1, n0, n1, (m0, n0))
        plan.engine.outer(how, sums, scale_a, scale_b, part, p.keys, i, m0, n0, j, step)
        first += length
