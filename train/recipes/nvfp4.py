"""NVFP4 and MXFP4 in the binary32 operations of the published references, and their Hadamard transform.

The exact conversion is `softnum.encode` to "nvfp4". Sources: NVIDIA, "Pretraining Large Language Models with NVFP4",
arXiv 2509.25149; J. Cook et al., "Four Over Six: More Accurate NVFP4 Quantization with Adaptive Block Scaling", arXiv
2512.02010; of NVIDIA Transformer Engine (commit d0067d0) ``reference_nvfp4.py`` in
``transformer_engine/pytorch/custom_recipes``, ``quantizer.py`` and ``hadamard.py`` in
``transformer_engine/jax/quantize``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.blocks import format
from softnum.mac.exact import ExactDotUnit
from softnum.mac.products.matrices import matmul
from softnum.train.recipes.mx import power_above
from softnum.train.recipes.scaled import Factors, Scaled, cast, float32, spread, tile_magnitudes
from softnum.train.recipes.scales import LARGEST, check_reference, largest_magnitude

__all__ = [
    "SIGNS", "MXFP4Scaling", "NVFP4Scaling", "hadamard_matrix", "hadamard_transform", "half_products",
    "jax_stochastic", "scaled_hadamard_matrix", "to_e2m1",
]  # fmt: skip

#: bit i: row i of the Hadamard matrix is negated
SIGNS = 0xD7E8

_E2M1 = format("e2m1fn")
_ERRORS = (None, "absolute", "squared")
_ONE, _SIX, _MOST, _LIMIT = np.float32(1), np.float32(6), np.float32(LARGEST), np.float32(448)
#: the grid of the JAX reference's stochastic rounding, which lacks 1.5
_JAX_GRID = np.float32([0, 0.5, 1, 2, 3, 4, 6])


def hadamard_matrix(size: int = 16, signs: int = SIGNS):
    """Sylvester's Hadamard matrix of a power of two, row i negated where bit i of signs is set: entries +1 and -1.

    >>> hadamard_matrix(2, 0b10)
    array([[ 1.,  1.],
           [-1.,  1.]], dtype=float32)
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1 or size & (size - 1):
        raise ValueError(f"the size of a Hadamard matrix must be a power of two, got {size!r}")
    index = np.arange(size)
    odd = np.bitwise_count(index[:, None] & index) & 1
    negative = odd ^ np.array([signs >> row & 1 for row in range(size)], odd.dtype)[:, None]
    return np.where(negative, -_ONE, _ONE)


def scaled_hadamard_matrix(size: int, signs: int, *, inverse: bool = False):
    """What `hadamard_transform` multiplies by: the matrix over sqrt(size), transposed for the inverse.

    >>> scaled_hadamard_matrix(4, 0)[0].tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    matrix = hadamard_matrix(size, signs) * np.float32(1 / sqrt(size))
    return np.ascontiguousarray(matrix.T) if inverse else matrix


def hadamard_transform(x, fmt="binary32", *, size: int = 16, signs: int = SIGNS, inverse: bool = False):
    """Each `size` neighbours of a row times `hadamard_matrix` / sqrt(size): the exact result, rounded once to a format.

    Of an odd power of two, 1 / sqrt(size) is the nearest binary32 number.

    References multiply in binary32 or bfloat16, in an order of their own; results may differ from these in last places.

    Parameters
    ----------
    x : array (rows, columns)
        binary32 numbers; the columns are a multiple of size.
    fmt : format or str
        That binary32 holds.
    size, signs : int
        As of `hadamard_matrix`.
    inverse : bool
        Times the transposed matrix, which takes numbers back, or gradients.

    Returns
    -------
    float32 array (rows, columns)

    Raises
    ------
    ValueError
        If size is no power of two that divides the columns.

    Examples
    --------
    >>> hadamard_transform([[1, 0, 0, 2]], size=4, signs=0).tolist()
    [[1.5, -0.5, -0.5, 1.5]]
    """
    x, matrix = float32(x, "hadamard_transform"), scaled_hadamard_matrix(size, signs, inverse=inverse)
    if x.shape[1] % size:
        raise ValueError(f"hadamard_transform: size must be a power of 2 that divides {x.shape[1]} columns, got {size}")
    unit = ExactDotUnit(fmt, operand="binary32")
    return matmul(x.reshape(-1, size), matrix, unit).reshape(x.shape).astype(np.float32, copy=False)


def to_e2m1(x, *, rounding: str = "nearest_even", stochastic_bits: int = 32, key=None):
    """float32 numbers cut off at 6 and rounded to e2m1fn; of -0 and of a NaN +0.

    >>> to_e2m1(np.float32([2.6, 100, -0.0, np.nan])).tolist()
    [3.0, 6.0, 0.0, 0.0]
    """
    cut = np.where(np.isnan(x) | (x == 0), np.float32(0), np.clip(x, -_SIX, _SIX))
    return quantize(cut, _E2M1, rounding=rounding, stochastic_bits=stochastic_bits, key=key)


def half_products(elements, scales):
    """Elements of e2m1fn times scales of e4m3fn in binary16, exact; -0 counts as +0, a scale that is a NaN makes 98304.

    >>> half_products(np.float32([6, -0.5]), np.float32([448, np.nan])).tolist()
    [2688.0, 98304.0]
    """
    products = ((elements + np.float32(0)).astype(np.float16) * scales.astype(np.float16)).astype(np.float32)
    return np.where(np.isnan(scales), np.float32(98304), products)


@dataclass(frozen=True)
class NVFP4Scaling:
    """Blocks of 16 numbers of four bits, an e4m3fn scale each, and a factor of the tensor: NVFP4BlockScaling.

    With E = scale_max, every operation rounded to binary32::

        G = min(6 * E / amax, largest binary32)     1 where amax = 0 or G = 0
        s = e4m3(min(blockmax * (G * (1 / 6)), 448))
        q = e2m1(x * min(1 / (s * (1 / G)), largest binary32)), cut off at 6
        values = q * s * (amax / (6 * E))

    A NaN anywhere makes all scales NaN and all elements 0. A scale may become 0 where its elements are not. Called with
    ``largest=``, the amax of a tensor of which x is a part, G is that tensor's.

    Parameters
    ----------
    block : (int, int)
        Rows and columns: (1, 16), or (16, 16) for weights.
    rows : bool
        Whether each row has an amax and a G of its own.
    four_over_six : str, optional
        Each block chooses between two scales, which make its largest number 6 or 4, by the smaller sum of "absolute" or
        "squared" errors, and of equals the first: e4m3(min(b, 448)) and e4m3(min(1.5 * b, 448)), where
        b = (blockmax / 6) * G. Errors are added over a row of 16 in their order, rows by halves.
    fast : bool
        Whether these errors are q * s - x * G (`half_products`) instead of q * s * amax / (6 * E) - x.
    scale_max : int
        E: 448, or 256, which leaves room for 1.5 * b.
    rounding, stochastic_bits
        Of the elements: "nearest_even" or "stochastic".
    reference : str
        "jax": s = e4m3(min((blockmax / 6) * G, 448)); its stochastic rounding is `jax_stochastic`.

    Examples
    --------
    >>> scaled = NVFP4Scaling()([[6, 3, -1, 0]])
    >>> scaled.elements.tolist(), scaled.scales.tolist(), scaled.tensor[0].tolist()
    ([[6.0, 3.0, -1.0, 0.0]], [[448.0]], [[6.0]])
    """

    block: tuple[int, int] = (1, 16)
    rows: bool = False
    four_over_six: str | None = None
    fast: bool = False
    scale_max: int = 448
    rounding: str = "nearest_even"
    stochastic_bits: int = 32
    reference: str = "cuda"
    format: ClassVar = _E2M1

    def __post_init__(self) -> None:
        check_reference(self.reference)
        if self.four_over_six not in _ERRORS:
            raise ValueError(f"four_over_six must be None, 'absolute' or 'squared', got {self.four_over_six!r}")
        if self.four_over_six and self.rounding != "nearest_even":
            raise ValueError(
                f"four_over_six compares errors of rounding to nearest even, got rounding={self.rounding!r}"
            )
        if self.scale_max not in (448, 256):
            raise ValueError(f"scale_max must be 448 or 256, got {self.scale_max!r}")

    def __call__(self, x, key=None, *, largest=None) -> Scaled:
        x = float32(x, "NVFP4Scaling")
        tiles, amax = tile_magnitudes(x, self.block), self._amax(x, largest)
        if not self.four_over_six:
            found = self.factors(tiles, amax)
            return Scaled(self._rounded(found.of(x, self.block), key), found.scales, self.block, found.tensor)
        up = self._up(amax)
        with np.errstate(all="ignore"):
            base = tiles / _SIX * up
            elements, scales = self._better(x, amax, up, base, np.float32(1.5) * base)
        return Scaled(elements, scales, self.block, (amax, 6 * self.scale_max))

    def scaled(self, x):
        """What is rounded to elements, and the scales."""
        x = float32(x, "NVFP4Scaling")
        found = self.factors(tile_magnitudes(x, self.block), self._amax(x))
        return found.of(x, self.block), found.scales

    def factors(self, largest, amax) -> Factors:
        """`Factors` of the largest magnitude of each tile, and of the tensor or each row, as a column."""
        up = self._up(amax)
        with np.errstate(all="ignore"):
            scale = largest / _SIX * up if self.reference == "jax" else largest * (up * (_ONE / _SIX))
        return self._factors(scale, up, amax)

    def _amax(self, x, largest=None):
        """The largest magnitude of the tensor, if it is not known, or of each row, as a column."""
        if largest is None:
            largest = largest_magnitude(x, axis=1 if self.rows else None, keepdims=True)
        return np.asarray(largest, np.float32).reshape(-1, 1)

    def _up(self, amax):
        """G."""
        with np.errstate(all="ignore"):
            up = np.minimum(np.float32(6 * self.scale_max) / amax, _MOST)
        return np.where((amax == 0) | (up == 0), _ONE, up)

    def _factors(self, scale, up, amax) -> Factors:
        """`Factors` of blocks' s before it is rounded."""
        with np.errstate(all="ignore"):
            scales = cast(np.minimum(scale, _LIMIT), "e4m3fn")
            inverse = np.minimum(_ONE / (scales * (_ONE / up)), _MOST)
        return Factors(inverse, scales, (amax, 6 * self.scale_max), four_bits=True)

    def _rounded(self, scaled, key=None):
        return to_e2m1(scaled, rounding=self.rounding, stochastic_bits=self.stochastic_bits, key=key)

    def _better(self, x, amax, up, first, second) -> tuple:
        candidates = []
        for scale in (first, second):
            found = self._factors(scale, up, amax)
            candidates.append((self._rounded(found.of(x, self.block)), found.scales))
        errors = [self._errors(x, amax, up, *candidate) for candidate in candidates]
        better = errors[1] < errors[0]
        elements, scales = zip(*candidates, strict=True)
        return np.where(spread(better, x.shape, self.block), *elements[::-1]), np.where(better, *scales[::-1])

    def _errors(self, x, amax, up, elements, scales):
        """The sum of the errors of each block."""
        scales = spread(scales, x.shape, self.block)
        if self.fast:
            error = half_products(elements, scales) - x * up
        else:
            error = elements * scales * amax / np.float32(6 * self.scale_max) - x
        error = np.abs(error) if self.four_over_six == "absolute" else error * error
        rows, columns = self.block
        blocks = [-(-size // part) for size, part in zip(x.shape, self.block, strict=True)]
        whole = np.zeros((blocks[0] * rows, blocks[1] * columns), np.float32)
        whole[: x.shape[0], : x.shape[1]] = error
        parts = whole.reshape(blocks[0], rows, blocks[1], columns)
        total = np.zeros(parts.shape[:-1], np.float32)
        for column in range(columns):
            total = total + parts[..., column]
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            total = total[:, :half] + total[:, half:]
        return total[:, 0]


def jax_stochastic(scaled, uniform):
    """e2m1fn elements as the JAX reference rounds stochastically, by uniform numbers in [0, 1).

    The grid is 0, 0.5, 1, 2, 3, 4, 6: it lacks 1.5. A magnitude goes up where (magnitude - low) / (high - low), in
    binary32, is not less than its uniform number.

    >>> jax_stochastic(np.float32([1.5, -0.1]), np.float32([0.5, 0.9])).tolist()
    [2.0, -0.0]
    """
    magnitude = np.abs(scaled)
    index = np.clip(np.searchsorted(_JAX_GRID, magnitude, side="right") - 1, 0, len(_JAX_GRID) - 2)
    low, high = _JAX_GRID[index], _JAX_GRID[index + 1]
    rounded = np.where((magnitude - low) / (high - low) >= uniform, high, low)
    return np.copysign(rounded, scaled)


@dataclass(frozen=True)
class MXFP4Scaling:
    """Blocks of 32 numbers of four bits that share a power of two, 2**ceil(log2(blockmax / 6)) (`power_above`).

    q = e2m1(x * min(1 / scale, largest binary32)), cut off at 6.

    Parameters
    ----------
    block : (int, int)
        Rows and columns.

    Examples
    --------
    >>> scaled = MXFP4Scaling((1, 2))([[3, 0.5, 8, 1]])
    >>> scaled.elements.tolist(), scaled.scales.tolist()
    ([[6.0, 1.0, 4.0, 0.5]], [[0.5, 2.0]])
    """

    block: tuple[int, int] = (1, 32)
    format: ClassVar = _E2M1

    def __call__(self, x) -> Scaled:
        x = float32(x, "MXFP4Scaling")
        found = self.factors(tile_magnitudes(x, self.block))
        return Scaled(to_e2m1(found.of(x, self.block)), found.scales, self.block)

    def factors(self, largest) -> Factors:
        """`Factors` of the largest magnitude of each tile."""
        with np.errstate(all="ignore"):
            scales = power_above(largest / _SIX)
            return Factors(np.minimum(_ONE / scales, _MOST), scales, four_bits=True)
