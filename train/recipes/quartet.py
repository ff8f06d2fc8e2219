"""MXFP4 as Quartet trains with it: the scales of QuEST forwards, and unbiased ones of three quarters backwards.

Sources: R. Castro et al., "Quartet: Native FP4 Training Can Be Optimal for Large Language Models", arXiv 2505.14669,
and its repository IST-DASLab/Quartet (commit 00ccd38), ``src/models/quantization/quantizers/mxfp4_triton.py``;
A. Panferov et al., "QuEST: Stable Training of LLMs with 1-Bit Weights and Activations", arXiv 2502.05003 (the scale,
and which gradients are trusted); A. Tseng et al., "Training LLMs with MXFP4", arXiv 2502.20586 (three quarters).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softnum.formats.blocks import format
from softnum.train.recipes.nvfp4 import to_e2m1
from softnum.train.recipes.scaled import Factors, Scaled, float32, spread, tile_magnitudes

__all__ = ["QuestScaling", "TsengScaling"]

_E2M1 = format("e2m1fn")
_SIX = np.float32(6)
#: what e2m1fn cuts a normal distribution off at, in standard deviations, with the least mean square error; over 6
_CUT = np.float32(2.92247856 / 6.0)
_LEAST = np.float32(1e-8)


def _power_below(x, less: int = 0):
    """2**(floor(log2(x)) - less) of positive numbers, 2**-127 to 2**127; NaN of infinities and NaN."""
    exponent = np.where(x > 0, np.frexp(x)[1] - 1 - less, -127)
    return np.where(np.isfinite(x), np.ldexp(np.float32(1), np.clip(exponent, -127, 127)), np.float32(np.nan))


def _sums(x):
    """Sums along the last axis, from first to last."""
    total = np.zeros(x.shape[:-1])
    for place in range(x.shape[-1]):
        total = total + x[..., place]
    return total


def _one_row(block: tuple, name: str) -> None:
    rows, columns = block
    if rows != 1 or isinstance(columns, bool) or not isinstance(columns, int) or columns < 1:
        raise ValueError(f"{name} has blocks of one row, (1, n) with a positive integer n, got {block!r}")


@dataclass(frozen=True)
class QuestScaling:
    """Blocks that share a power of two by their standard deviation: QuEST's scale, as Quartet's forward pass has it.

    In binary32, each operation rounded once, but for the sums of a block, which are in binary64, from first to last::

        deviation = sqrt(mean(x * x) - mean(x) * mean(x))      1 where the difference is below 0
        s = 2**floor(log2(c * deviation + 1e-8))               c = 2.92247856 / 6
        q = e2m1(x / s), cut off at 6

    c makes the mean square error of a normal distribution the least. The reference adds in binary32, in an order of its
    own, and rounds ties toward zero (``rounding="nearest_zero"``); conversions of GPUs round them to even.

    Parameters
    ----------
    block : (int, int)
        Rows, which is 1, and columns.
    rounding : str
        "nearest_even" or "nearest_zero".

    Examples
    --------
    >>> scaled = QuestScaling((1, 4))([[3, 0.5, -8, 1]])
    >>> scaled.elements.tolist(), scaled.scales.tolist()
    ([[1.5, 0.0, -4.0, 0.5]], [[2.0]])
    """

    block: tuple[int, int] = (1, 32)
    rounding: str = "nearest_even"
    format: ClassVar = _E2M1

    def __post_init__(self) -> None:
        _one_row(self.block, "QuestScaling")
        if self.rounding not in ("nearest_even", "nearest_zero"):
            raise ValueError(f"rounding must be 'nearest_even' or 'nearest_zero', got {self.rounding!r}")

    def scales(self, x):
        """The scale of each block of a matrix."""
        x, size = float32(x, "QuestScaling"), self.block[1]
        rows, columns = x.shape
        whole = np.pad(x.astype(np.float64), [(0, 0), (0, -columns % size)])
        whole = whole.reshape(rows, -(-columns // size), size)
        with np.errstate(all="ignore"):
            sums = _sums(whole), _sums(whole * whole)
        return self.factors(*sums, columns).scales

    def factors(self, sums, squares, columns: int) -> Factors:
        """`Factors` of the sums of each block's numbers and of their squares, in binary64, from first to last."""
        size = self.block[1]
        counts = np.diff([*range(0, columns, size), columns])
        with np.errstate(all="ignore"):
            mean, square = (np.float32(part / counts) for part in (sums, squares))
            variance = square - mean * mean
            deviation = np.where(variance >= 0, np.sqrt(np.maximum(variance, 0)), np.float32(1))
            deviation = np.where(np.isfinite(square), deviation, np.float32(np.nan))
            scales = _power_below(_CUT * deviation + _LEAST)
        return Factors(scales, scales, divided=True, four_bits=True)

    def __call__(self, x) -> Scaled:
        x = float32(x, "QuestScaling")
        scales = self.scales(x)
        with np.errstate(all="ignore"):
            return Scaled(to_e2m1(x / spread(scales, x.shape, self.block), rounding=self.rounding), scales, self.block)

    def trusted(self, x):
        """Which numbers are not cut off: those whose gradients QuEST trusts.

        >>> QuestScaling((1, 4)).trusted([[3, 0.5, -8, 1, 0, 0, 0, 1]]).tolist()
        [[True, True, True, True, True, True, True, False]]
        """
        x = float32(x, "QuestScaling")
        with np.errstate(all="ignore"):
            return np.abs(x / spread(self.scales(x), x.shape, self.block)) < _SIX


@dataclass(frozen=True)
class TsengScaling:
    """Blocks that share a power of two, of three quarters of the numbers, which no element is too large for.

    In binary32, with s = 2**(floor(log2(blockmax)) - 2)::

        q = e2m1(0.75 * x / s)
        values = q * s * 4 / 3

    Products of two such operands are multiplied by 16 / 9 once. Rounded stochastically, the values' expectation is x.
    The reference divides by s * 4 / 3, and has that in the values of its elements.

    Parameters
    ----------
    block : (int, int)
        Rows and columns.
    rounding, stochastic_bits
        Of the elements: "nearest_even" or "stochastic".

    Examples
    --------
    >>> scaled = TsengScaling((1, 4))([[4, 2, -7.5, 0]])
    >>> scaled.elements.tolist(), scaled.scales.tolist(), scaled.tensor[0].item() / scaled.tensor[1]
    ([[3.0, 1.5, -6.0, 0.0]], [[1.0]], 1.3333333333333333)
    """

    block: tuple[int, int] = (1, 32)
    rounding: str = "nearest_even"
    stochastic_bits: int = 32
    format: ClassVar = _E2M1

    def __call__(self, x, key=None) -> Scaled:
        x = float32(x, "TsengScaling")
        found = self.factors(tile_magnitudes(x, self.block))
        reduced = found.of(x, self.block)
        elements = to_e2m1(reduced, rounding=self.rounding, stochastic_bits=self.stochastic_bits, key=key)
        return Scaled(elements, found.scales, self.block, found.tensor)

    def factors(self, largest) -> Factors:
        """`Factors` of the largest magnitude of each tile."""
        with np.errstate(all="ignore"):
            scales = _power_below(largest, less=2)
        tensor = np.full((1, 1), 4, np.float32), 3
        return Factors(scales, scales, tensor, divided=True, before=0.75, four_bits=True)
