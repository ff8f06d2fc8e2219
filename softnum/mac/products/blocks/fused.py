"""The fast path of BlockFusedDotUnit, on carriers; csrc/products/blocks/groups.h and block_fused.c say what it takes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode
from softnum.mac import _block_fused
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.products.operands import blocks_of
from softnum.runtime.identity import by_identity
from softnum.runtime.threads import for_each

__all__ = ["fast_fused_product", "fused_engine"]


@by_identity
@lru_cache(maxsize=256)
def fused_engine(unit: BlockFusedDotUnit):
    """The unit's engine on carriers, or None outside its domain."""
    return _block_fused.fast_groups(unit)


def _powers(scales: np.ndarray, emin: int, of_zero: int | None) -> np.ndarray:
    """The powers of two that magnitudes of scales count with; 0 of zeros that do not, 1 of NaN."""
    numbers = np.where(np.isfinite(scales) & (scales != 0), scales, 1.0)
    exponents = np.maximum(np.frexp(numbers)[1] - 1, emin)
    return np.where(scales == 0, 0.0 if of_zero is None else 2.0**of_zero, np.ldexp(1.0, exponents))


def fast_fused_product(p, threads) -> np.ndarray | None:
    """A product of `softnum.mac.products.blocks.matrices`, as float32 values; None where there is no fast path."""
    unit = p.unit
    engine = fused_engine(unit)
    if engine is None or not p.k:
        return None
    a, b = (
        np.ascontiguousarray(decode(x, f.element, np.float32)) for x, f in zip((p.a, p.b), unit.operand, strict=True)
    )
    scales = [
        np.abs(np.ascontiguousarray(decode(x, f.scale, np.float64)))
        for x, f in zip((p.scale_a, p.scale_b), unit.operand, strict=True)
    ]
    powers = scales
    if not engine.powers:
        powers = [_powers(x, f.scale.emin, unit.zero_exponent) for x, f in zip(scales, unit.operand, strict=True)]
    out = np.empty((p.batches, p.m, p.n), np.float32)
    c = None if p.start is None else np.broadcast_to(p.start, p.shape).reshape(out.shape)
    tensor_scales = unit.tensor_scales
    threads, pieces = blocks_of(p.m, p.n, p.k, p.batches, threads)

    def work(i, m0, m1, n0, n1) -> None:
        if m1 <= m0 or n1 <= n0:
            return
        whole = n1 - n0 == p.n  # rows of out, which lie beside each other
        part = out[i, m0:m1] if whole else np.empty((m1 - m0, n1 - n0), np.float32)
        start = None if c is None or tensor_scales else np.ascontiguousarray(c[i, m0:m1, n0:n1], np.float32)
        x, y = (scales[0][i, m0:m1], powers[0][i, m0:m1]), (scales[1][i], powers[1][i])
        engine.run(a[i, m0:m1], b[i], *x, *y, start, part, n0)
        if tensor_scales:
            last = None if c is None else np.ascontiguousarray(c[i, m0:m1, n0:n1], np.float64)
            exact = part.astype(np.float64)
            _block_fused.finish(exact, last, p.tensor[0] * p.tensor[1])
            part[...] = exact
        if not whole:
            out[i, m0:m1, n0:n1] = part

    for_each(pieces, work, threads)
    lost = np.isnan(out)
    if lost.any():
        out[lost] = np.nan
    return out
