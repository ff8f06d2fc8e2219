"""What softnum's kernels are measured against on a GPU: a product as other emulators compute it.

They give a thread one output, keep square tiles of both operands in shared memory, and after each product and each sum
call a function that rounds by the float's bits, to exponent and mantissa widths that are known when it runs. The kernel
here is of that kind, written from that description: one rounding mode, subnormals kept, overflow to infinity.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types

from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = ["TILE", "per_output"]

TILE = 4 if _cuda.SIMULATOR else 16

_ROUND = """
SN_FN float _rounded(float x, sn_i32 exponent, sn_i32 mantissa) {
    const sn_u32 bits = sn_bits32(x), sign = bits & 0x80000000u;
    const sn_i32 e = (sn_i32)(bits >> 23 & 255u) - 127, least = 2 - (1 << (exponent - 1));
    const sn_i32 drop = 23 - mantissa;
    if (e == 128) return x;
    sn_u32 kept;
    if (e < least) {
        const float shift = sn_float32((sn_u32)(127 + least + drop) << 23 | 0x400000u);
        kept = sn_bits32(sn_subtract32(sn_add32(sn_float32(bits ^ sign), shift), shift));
    } else {
        kept = bits ^ sign;
        kept = (kept + (kept >> drop & 1u) + (1u << (drop - 1)) - 1u) & ~((1u << drop) - 1u);
    }
    if ((sn_i32)(kept >> 23) - 127 > 1 - least) kept = 0x7f800000u;
    return sn_float32(kept | sign);
}
"""
_WIDTHS = (("int32", "product_e"), ("int32", "product_m"), ("int32", "sum_e"), ("int32", "sum_m"))
_LIBRARY = Library(
    _ROUND,
    (
        Entry(
            "step", "float32", (("float32", "acc"), ("float32", "x"), ("float32", "y"), *_WIDTHS),
            "const float p = _rounded(sn_multiply32(x, y), product_e, product_m);\n"
            "return _rounded(sn_add32(acc, p), sum_e, sum_m);",
        ),
    ),
    "softnum/word/machine.h",
)  # fmt: skip


@lru_cache(maxsize=1)
def _kernel():
    step = _cuda.bind(_LIBRARY).step

    @cuda.jit
    def kernel(a, b, out, product_e, product_m, sum_e, sum_m):
        tile_a = cuda.shared.array((TILE, TILE), types.float32)
        tile_b = cuda.shared.array((TILE, TILE), types.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
        depth = a.shape[1]
        acc = np.float32(0)
        for start in range(0, depth, TILE):
            if row < out.shape[0] and start + x < depth:
                tile_a[y, x] = a[row, start + x]
            if start + y < depth and column < out.shape[1]:
                tile_b[y, x] = b[start + y, column]
            cuda.syncthreads()
            if row < out.shape[0] and column < out.shape[1]:
                for i in range(min(TILE, depth - start)):
                    acc = step(acc, tile_a[y, i], tile_b[i, x], product_e, product_m, sum_e, sum_m)
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = acc

    return kernel


def per_output(a, b, out, product, accumulator) -> None:
    """``out = a @ b``, products and sums rounded to two formats; matrices of float32 on the device."""
    grid = (-(-out.shape[1] // TILE), -(-out.shape[0] // TILE))
    widths = (product.exponent_bits, product.mantissa_bits, accumulator.exponent_bits, accumulator.mantissa_bits)
    _cuda.launch(_kernel(), grid, (TILE, TILE), a, b, out, *(np.int32(w) for w in widths))
