"""The fast path of BlockDotUnit, on carriers; csrc/products/blocks/block.c says what it takes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode
from softnum.mac import _blocks
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.products.engines import fast_of
from softnum.mac.products.operands import PLAIN, blocks_of, padded, runs_of
from softnum.runtime.identity import by_identity
from softnum.runtime.threads import for_each

__all__ = ["block_engine", "fast_product", "product_of_values"]

#: elements that are decoded at once, so that they lie in a cache and not in fresh memory; and rows, at the least
_AT_ONCE, _LEAST_ROWS = 1 << 16, 96
_NO_KEYS = (0, 0, 0, 0)  # of units without random bits


@by_identity
@lru_cache(maxsize=256)
def block_engine(unit: BlockDotUnit) -> _blocks.FastBlock | None:
    """The unit's engine on carriers, or None outside its domain."""
    inner = None if unit.inner is None else fast_of(unit.inner)
    if getattr(inner, "lacks_nan", False):  # what it tells of NaNs is not asked for here
        return None
    return _blocks.fast(unit, inner)


def _is_narrow(engine, size: int) -> bool:
    """Whether sums of blocks are float32 numbers."""
    inner = engine.gemm_of_blocks
    return engine.narrow(size) if inner is None else not inner.wide


def _how(engine, narrow: bool, scales) -> str:
    """How blocks with these scales enter the outer sum."""
    if engine.how != "fma" or (narrow and (engine.checked or engine.scales_fit(*scales))):
        return engine.how
    return "binary32"


def fast_product(p, threads) -> np.ndarray | None:
    """A product of `softnum.mac.products.blocks.matrices`, as float64 values; None where there is no fast path."""
    unit = p.unit
    engine = block_engine(unit)
    if engine is None or p.words is not None or not p.k:
        return None
    size = unit.operand[0].size(p.k)
    narrow = _is_narrow(engine, size)
    dtype = np.float32 if narrow else np.float64
    element_a, element_b = (f.element for f in unit.operand)
    at_once = unit.inner is not None or engine.finite or p.a.size <= _AT_ONCE
    if not (at_once or narrow):
        at_once = engine.split(size) is None
    a, b = decode(p.a, element_a, dtype) if at_once else None, decode(p.b, element_b, dtype)
    scales = [
        np.ascontiguousarray(decode(x, f.scale, np.float64))
        for x, f in ((p.scale_a, unit.operand[0]), (p.scale_b, unit.operand[1]))
    ]
    if engine.finite and not all(np.isfinite(x).all() for x in (a, b, *scales)):
        return None
    magic = 0.0 if narrow or unit.inner is not None else engine.split(size, a, b)
    if magic is None:
        return None
    how = _how(engine, narrow, scales)
    a, b = (None if x is None else np.ascontiguousarray(x, dtype) for x in (a, b))
    out = (np.empty if unit.inner is None else np.zeros)((p.batches, p.m, p.n))
    c = None if p.start is None else np.broadcast_to(p.start, p.shape).reshape(out.shape)
    threads, pieces = blocks_of(p.m, p.n, p.k, p.batches, threads)
    tensor_scales, keys = unit.tensor_scales, p.keys
    start = None if tensor_scales else c

    def work(i, m0, m1, n0, n1) -> None:
        if m1 <= m0 or n1 <= n0:
            return
        whole = n1 - n0 == p.n  # rows of out, which lie beside each other
        part = out[i, m0:m1] if whole else np.zeros((m1 - m0, n1 - n0))
        first = None if start is None else np.ascontiguousarray(start[i, m0:m1, n0:n1], np.float64)
        scale_a, scale_b = scales[0][i, m0:m1], scales[1][i]
        if unit.inner is None:
            rows = decode(p.a[i, m0:m1], element_a, dtype) if a is None else a[i, m0:m1]
            engine.gemm(how, rows, b[i], scale_a, scale_b, first, part, keys, *p.number(i, m0, n0), size, magic)
        else:
            if first is not None:
                part[...] = first
            _inner_blocks(p, engine, how, a, b, scale_a, scale_b, part, (i, m0, m1, n0, n1))
        if tensor_scales:
            last = None if c is None else np.ascontiguousarray(c[i, m0:m1, n0:n1], np.float64)
            tensor = p.tensor[0] * p.tensor[1]
            engine.finish(how, scale_a, scale_b, last, part, keys, *p.number(i, m0, n0), tensor, p.last)
        if not whole:
            out[i, m0:m1, n0:n1] = part

    small = a is not None and unit.inner is None and not tensor_scales and p.numbers is PLAIN
    if small and p.batches > 1 and len(pieces) == p.batches and out.size:
        start = None if start is None else np.ascontiguousarray(start, np.float64)
        given = how, a, b, *scales, start, out, keys

        def products(first, last) -> None:
            engine.products(*given, first, last, size, magic)

        for_each(runs_of(p.batches, threads, p.m * p.n * p.k), products, threads)
    else:
        pieces = p.numbers.split(pieces)
        for_each(pieces if a is not None else _in_rows(pieces, p.k), work, threads)
    lost = np.isnan(out)
    if lost.any():
        out[lost] = np.nan
    return out


def product_of_values(unit: BlockDotUnit, a, b, scale_a, scale_b, threads) -> np.ndarray | None:
    """The products of operands that are given as values, by the unit's engine; None where it does not take them.

    a (batches, M, K), b (batches, K, N): finite elements, of the unit's formats; scale_a (batches, M, blocks),
    scale_b (batches, blocks, N): their scales. unit: one whose sums of blocks are exact, without random bits and
    without tensor scales. Returns float64 (batches, M, N).
    """
    engine = block_engine(unit)
    (batches, m, k), n = a.shape, b.shape[-1]
    if engine is None or not k:
        return None
    size = unit.operand[0].size(k)
    narrow = engine.narrow(size)
    dtype = np.float32 if narrow else np.float64
    a, b = (np.ascontiguousarray(x, dtype) for x in (a, b))
    scales = [np.ascontiguousarray(x, np.float64) for x in (scale_a, scale_b)]
    magic = 0.0 if narrow else engine.split(size, a, b)
    if magic is None:
        return None
    how, out = _how(engine, narrow, scales), np.empty((batches, m, n))
    threads, pieces = blocks_of(m, n, k, batches, threads)

    def work(i, m0, m1, n0, n1) -> None:
        part = out[i, m0:m1] if n1 - n0 == n else np.empty((m1 - m0, n1 - n0))
        rows = scales[0][i, m0:m1]
        engine.gemm(how, a[i, m0:m1], b[i], rows, scales[1][i], None, part, _NO_KEYS, i, m0, n0, size, magic)
        if part.base is not out:
            out[i, m0:m1, n0:n1] = part

    for_each([piece for piece in pieces if piece[1] < piece[2] and piece[3] < piece[4]], work, threads)
    return out


def _in_rows(pieces, k: int):
    """Pieces of products in fewer rows, as many as are decoded at once."""
    step = max(_AT_ONCE // k, _LEAST_ROWS)
    return [
        (i, top, min(top + step, m1), n0, n1) for i, m0, m1, n0, n1 in pieces for top in range(m0, m1, step)
    ]  # fmt: skip


def _inner_blocks(p, engine, how, a, b, scale_a, scale_b, part, where) -> None:
    """The inner unit's own engine, block after block."""
    i, m0, m1, n0, n1 = where
    gemm = engine.gemm_of_blocks
    sums = np.empty(part.shape, a.dtype)
    first = 0
    for j, (length, (_, step)) in enumerate(zip(p.lengths, p.numbering, strict=True)):
        rows = slice(first, first + length)
        x = np.ascontiguousarray(a[i, m0:m1, rows])
        y = b[i, rows, n0:n1]
        y = np.ascontiguousarray(y) if getattr(gemm, "converts", False) else padded(y, a.dtype)
        product, top, left = numbers = p.number(i, m0, n0)
        gemm.run(x, y, None, sums, p.keys, product, top, top + m1 - m0, n0, n1, (top, left))
        engine.outer(how, sums, scale_a, scale_b, part, p.keys, *numbers, j, step)
        first += length
