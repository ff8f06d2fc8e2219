"""The fast paths of BlockFusedDotUnit, on carriers.

csrc/products/fused/body.h says what the one takes whose terms are products, csrc/products/blocks/groups.h the other.
"""

from __future__ import annotations

import numpy as np

from softnum.arrays.conversion import decode
from softnum.mac import _block_fused
from softnum.mac.products.engines import fast_of
from softnum.mac.products.operands import blocks_of, carried
from softnum.runtime.threads import for_each

__all__ = ["fast_fused_product"]


def _exponents(scales: np.ndarray) -> np.ndarray:
    """The exponents of powers of two, NAN_SHIFT of NaN."""
    nan = np.isnan(scales)
    return np.where(nan, _block_fused.NAN_SHIFT, np.frexp(np.where(nan, 1.0, scales))[1] - 1).astype(np.int32)


def _powers(scales: np.ndarray, emin: int, of_zero: int | None) -> np.ndarray:
    """The powers of two that magnitudes of scales count with; 0 of zeros that do not, 1 of NaN."""
    numbers = np.where(np.isfinite(scales) & (scales != 0), scales, 1.0)
    exponents = np.maximum(np.frexp(numbers)[1] - 1, emin)
    return np.where(scales == 0, 0.0 if of_zero is None else 2.0**of_zero, np.ldexp(1.0, exponents))


def fast_fused_product(p, threads) -> np.ndarray | None:
    """A product of `softnum.mac.products.blocks.matrices`, as float32 values; None where there is no fast path."""
    unit = p.unit
    engine = fast_of(unit)
    if engine is None or not p.k:
        return None
    a, b = (
        np.ascontiguousarray(decode(x, f.element, np.float32)) for x, f in zip((p.a, p.b), unit.operand, strict=True)
    )
    scales = [
        np.abs(np.ascontiguousarray(decode(x, f.scale, np.float64)))
        for x, f in zip((p.scale_a, p.scale_b), unit.operand, strict=True)
    ]
    if engine.by_powers:
        of_scales = [(_exponents(x),) for x in scales]
    elif engine.powers:
        of_scales = [(x, x) for x in scales]
    else:
        emins = (f.scale.emin for f in unit.operand)
        of_scales = [(x, _powers(x, emin, unit.zero_exponent)) for x, emin in zip(scales, emins, strict=True)]
    out = np.empty((p.batches, p.m, p.n), np.float32)
    c = None if p.start is None else np.broadcast_to(p.start, p.shape).reshape(out.shape)
    tensor_scales = unit.tensor_scales
    threads, pieces = blocks_of(p.m, p.n, p.k, p.batches, threads)

    def work(i, m0, m1, n0, n1) -> None:
        if m1 <= m0 or n1 <= n0:
            return
        whole = n1 - n0 == p.n  # rows of out, which lie beside each other
        part = out[i, m0:m1] if whole else np.empty((m1 - m0, n1 - n0), np.float32)
        start = None if c is None else np.ascontiguousarray(c[i, m0:m1, n0:n1], np.float32)
        first = None if tensor_scales else start
        x, y = (values[i, m0:m1] for values in of_scales[0]), (values[i] for values in of_scales[1])
        engine.run(a[i, m0:m1], b[i], *x, *y, first, part, n0)
        if tensor_scales:
            last = None if start is None else carried(start, np.float64)
            exact = carried(part, np.float64)
            _block_fused.finish(exact, last, p.tensor[0] * p.tensor[1])
            part[...] = exact
        if not whole:
            out[i, m0:m1, n0:n1] = part

    for_each(pieces, work, threads)
    lost = np.isnan(out)
    if lost.any():
        out[lost] = np.nan
    return out
