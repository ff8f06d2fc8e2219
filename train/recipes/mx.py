"""MX blocks in the binary32 operations of the published references: scales that are powers of two.

The exact conversions of OCP MX are `softnum.encode` to "mxfp8_e4m3" and its like; what is here follows a reference's
text, roundings included. Sources, of NVIDIA Transformer Engine (commit d0067d0):
``tests/pytorch/test_mxfp8_2d_quantize.py``, ``tests/pytorch/test_partial_cast.py``,
``transformer_engine/jax/quantize/quantizer.py``, and the branch for MXFP4 of
``transformer_engine/pytorch/custom_recipes/reference_nvfp4.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softnum.train.recipes.scaled import Factors, Scaled, cast, float32, put_format, tile_magnitudes

__all__ = ["MXScaling", "exponent_code_of", "power_above"]


def exponent_code_of(scale):
    """The E8M0 code of a positive binary32 number, rounded up to a power of two: 0 to 254; 255 of infinity, 0 of NaN.

    Up to 2**-127 it is 0.

    >>> exponent_code_of(np.float32([1, 1.5, 0, np.inf])).tolist()
    [127, 128, 0, 255]
    """
    bits = np.ascontiguousarray(scale, np.float32).view(np.uint32)
    exponent, mantissa = (bits >> 23 & 0xFF).astype(np.int64), bits & 0x7FFFFF
    up = (mantissa != 0) & (exponent != 254) & ~((exponent == 0) & (mantissa <= 0x400000))
    return ((exponent + up) % 256).astype(np.uint8)


def power_above(scale):
    """2**ceil(log2(scale)) of binary32 numbers, the logarithm rounded to binary32 before it is rounded up.

    A few numbers above a power of two have a logarithm that rounds to the integer: they become that power. Above 2**127
    it is 2**127.

    >>> power_above(np.float32([3, 4, 0.3])).tolist()
    [4.0, 4.0, 0.5]
    """
    with np.errstate(divide="ignore"):
        exponent = np.ceil(np.log2(np.asarray(scale, np.float64)).astype(np.float32))
    return np.ldexp(np.float32(1), np.clip(exponent, -127, 127).astype(np.int32))


@dataclass(frozen=True)
class MXScaling:
    """Blocks that share a power of two: Transformer Engine's MXFP8BlockScaling.

    The scale is amax / largest, divided in binary32 and rounded up to a power of two (`exponent_code_of`);
    q = cast(x / scale).

    Parameters
    ----------
    format : format or str
    block : (int, int)
        Rows and columns: (1, 32), (32, 1), or (32, 32) for weights.

    Examples
    --------
    >>> scaled = MXScaling("e4m3fn", (1, 2))(np.float32([[448, 1, 0.25, 500]]))
    >>> scaled.scales.tolist(), scaled.elements.tolist()
    ([[1.0, 2.0]], [[448.0, 1.0, 0.125, 256.0]])
    """

    format: Any = "e4m3fn"
    block: tuple[int, int] = (1, 32)

    def __post_init__(self) -> None:
        put_format(self)

    def codes(self, x):
        """The E8M0 code of each block's scale."""
        return self._codes(tile_magnitudes(x, self.block))

    def _codes(self, largest):
        with np.errstate(all="ignore"):
            return exponent_code_of(largest / np.float32(self.format.max))

    def __call__(self, x) -> Scaled:
        x = float32(x, "MXScaling")
        found = self.factors(tile_magnitudes(x, self.block))
        return Scaled(cast(found.of(x, self.block), self.format), found.scales, self.block)

    def factors(self, largest) -> Factors:
        """`Factors` of the largest magnitude of each tile."""
        with np.errstate(all="ignore"):
            scales = np.ldexp(np.float32(1), self._codes(largest).astype(np.int32) - 127)
        return Factors(scales, scales, divided=True)
