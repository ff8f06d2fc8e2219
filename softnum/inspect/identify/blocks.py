"""Operands of block formats as rows of plain numbers, and rows of them that show something.

A row is the elements of K numbers, then the scales of their blocks, then the scale of the array where the format has
one: so rows are cut, stacked and compared like those of any other format, and become a BlockArray where a box or a unit
takes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.conversion import encode, quantize
from softnum.formats.blocks import BlockFormat, block_format_names
from softnum.formats.blocks import format as any_format
from softnum.formats.dispatch import of_format
from softnum.formats.scalar import FloatFormat

__all__ = [
    "array_of", "ends", "formats_of", "in_blocks", "is_block_pair", "known_pairs", "parts", "plain_like", "powers",
    "with_scales",
]  # fmt: skip


def is_block_pair(operand) -> bool:
    """Whether a pair of formats is one of block formats."""
    return any(map(_is_block, operand))


@of_format
def _is_block(fmt) -> bool:
    return False


_is_block.block(lambda fmt: True)


@of_format
def formats_of(fmt, length: int) -> list:
    """The format of each number of a row: of blocks, those of the elements, of their scales, and of the array's."""
    return [fmt] * length


@formats_of.block
def _(fmt, length: int) -> list:
    elements, scales, whole = parts(np.zeros(length), fmt)
    return [fmt.element] * len(elements) + [fmt.scale] * len(scales) + [fmt.tensor_scale] * (whole is not None)


def known_pairs() -> Iterator[tuple[BlockFormat, BlockFormat]]:
    """Pairs of block formats that a box is asked for: equal ones first, and without a scale of the array."""
    formats = [any_format(name) for name in block_format_names()]
    formats += [BlockFormat(f.element, f.scale, f.block_size) for f in formats if f.tensor_scale is not None]
    formats += [BlockFormat("e2m1fn", scale, size) for scale, size in (("e8m0fnu", 16), ("e4m3fn", 32))]
    yield from ((f, f) for f in formats)
    yield from ((f, g) for f, g in product(formats, formats) if f != g and f.block_size == g.block_size)


def powers(fmt) -> tuple[int, int]:
    """Exponents of the smallest and the largest power of two of an element's or a scale's format."""
    last, top = fmt.span
    return last, top - 1


def parts(x: np.ndarray, fmt: BlockFormat) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Elements (..., K), scales (..., blocks) and the array's scale of rows; None where the format has none.

    >>> parts(np.array([1.0, 2.0, 3.0, 0.5]), BlockFormat("e2m1fn", "e8m0fnu", 32))
    (array([1., 2., 3.]), array([0.5]), None)
    """
    length, tensor = x.shape[-1], fmt.tensor_scale is not None
    both = length - tensor
    k = both - -(-both // (fmt.block_size + 1)) if fmt.block_size else both - 1
    return x[..., :k], x[..., k : length - tensor], x[..., length - 1 :] if tensor else None


def with_scales(elements, fmt: BlockFormat, scales=None, tensor: float = 1.0) -> np.ndarray:
    """Rows of elements (..., K) and scales (..., blocks), by default ones."""
    elements = np.asarray(elements, np.float64)
    blocks = (*elements.shape[:-1], fmt.blocks(elements.shape[-1]))
    scales = np.ones(blocks) if scales is None else np.broadcast_to(scales, blocks)
    whole = [np.full((*elements.shape[:-1], 1), tensor)] if fmt.tensor_scale is not None else []
    return np.concatenate([elements, scales, *whole], -1)


def array_of(x: np.ndarray, fmt: BlockFormat, axis: int) -> BlockArray:
    """The BlockArray of rows along an axis, -1 or -2, all of which have one scale of the array.

    Raises ValueError if a number is none of the element's or the scale's.
    """
    elements, scales, whole = parts(np.swapaxes(x, axis, -1), fmt)
    codes = [_codes(part, of) for part, of in ((elements, fmt.element), (scales, fmt.scale))]
    made = BlockArray(*codes, fmt, -1, None if whole is None else float(whole.flat[0]) if whole.size else 1.0)
    return made if axis == -1 else made.swapaxes(-1, -2)


def _codes(x: np.ndarray, fmt) -> np.ndarray:
    x = np.ascontiguousarray(x)
    if not ((quantize(x, fmt, overflow=ends(fmt)) == x) | (np.isnan(x) & fmt.has_nan)).all():
        raise ValueError(f"a number is none of {fmt}")
    return encode(x, fmt, overflow=ends(fmt))


def ends(fmt) -> str | None:
    """The overflow rule by which what is too large becomes the largest value; None where that is the only one."""
    return "saturate" if "saturate" in fmt.overflow_rules else None


# -- numbers that rows are drawn from, and their blocks ----------------------------------------------------------------
def plain_like(fmt: BlockFormat) -> FloatFormat:
    """A plain format of the element's precision, and of the exponents that scales give."""
    element = fmt.element
    last, top = powers(element)
    digits = element.mantissa_bits if element.precision is not None else top - last
    low, high = powers(fmt.scale)
    specials = "ieee" if element.infinities else "fn" if element.has_nan or fmt.scale.has_nan else "none"
    bits = max(4, min(8, (high - low + top - last).bit_length()))
    return FloatFormat(bits, max(1, digits), specials=specials, signed=element.signed)


def in_blocks(x: np.ndarray, fmt: BlockFormat, rng: np.random.Generator | None) -> np.ndarray:
    """Rows (R, K) of numbers in blocks, cut off toward zero where they do not fit.

    With a generator scales are larger than they need be at times, have bits of their own, and are zero or negative now
    and then where that can be; without one, they are powers of two next to the largest number of a block.
    """
    rows, k = x.shape
    size, blocks = fmt.size(k), fmt.blocks(k)
    padded = np.zeros((rows, blocks * size))
    padded[:, :k] = x
    padded = padded.reshape(rows, blocks, size)
    scales = _scales(fmt, padded, rng)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        elements = padded / np.where(scales == 0, 1.0, np.abs(scales))[..., None]
    nan = np.isnan(elements)
    if not fmt.element.has_nan:
        if fmt.scale.has_nan:
            scales = np.where(nan.any(-1), np.nan, scales)
        elements = np.where(nan, 0.0, elements)
    if not fmt.element.infinities:
        elements = np.where(np.isinf(elements), np.sign(elements) * float(fmt.element.max), elements)
    elements = np.where(np.isnan(scales)[..., None] & ~np.isfinite(elements), 1.0, elements)
    elements = quantize(elements, fmt.element, rounding="toward_zero", overflow=ends(fmt.element)).astype(np.float64)
    whole = 1.0
    if fmt.tensor_scale is not None and rng is not None and rng.random() < 0.25:
        whole = float(quantize(rng.choice([0.75, 2.0**-12, 1 + 2.0**-20]), fmt.tensor_scale, overflow="saturate"))
    return with_scales(elements.reshape(rows, -1)[:, :k], fmt, scales, whole)


def _scales(fmt: BlockFormat, x: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
    """A scale of each block (R, blocks, size)."""
    largest = np.where(np.isfinite(x), np.abs(x), 0.0).max(-1, initial=0.0)
    _, exponents = np.frexp(largest)
    exponents = np.where(largest == 0, 0, exponents - 1 - fmt.element_exponent)
    low, high = powers(fmt.scale)
    if rng is None:
        return 2.0 ** np.clip(exponents, low, high)
    zeros = largest == 0
    exponents = np.where(zeros, rng.integers(max(low, -40), min(high, 40) + 1, zeros.shape), exponents)
    span = max(1, powers(fmt.element)[1] - powers(fmt.element)[0])
    more = rng.choice([0, 0, 0, 0, 1, 2, -1, span // 2], exponents.shape)
    scales = 2.0 ** np.clip(exponents + more, low, high)
    if not fmt.scale.powers_of_two:
        if rng.random() < 0.5:
            bits = np.floor(rng.random(scales.shape) * 16) / 16
            scales = quantize(scales * (1 + bits), fmt.scale, rounding="toward_zero", overflow=ends(fmt.scale))
            scales = np.maximum(scales.astype(np.float64), fmt.smallest_scale)
        if fmt.scale.signed and rng.random() < 0.1:
            scales = np.where(rng.random(scales.shape) < 0.3, -scales, scales)
    if fmt.scale.has_zero and rng.random() < 0.1:
        scales = np.where(rng.random(scales.shape) < 0.3, 0.0, scales)
    return scales
