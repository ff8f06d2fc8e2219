"""Products of scaled operands: sums in a unit, block by block of K, and what their scales make of them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.formats.blocks import BlockFormat
from softnum.formats.facts import facts, is_exact_in
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.products.blocks.fast import product_of_values
from softnum.mac.products.matrices import matmul
from softnum.mac.products.operands import checked_operand
from softnum.ops.arithmetic import fma
from softnum.train.recipes.scaled import Scaled, spread

__all__ = ["block_length", "order_of", "scaled_product"]


def scaled_product(a: Scaled, b: Scaled, unit, *, key=None, threads=None):
    """a @ b.T of scaled operands, both with K as their columns, matrix by matrix.

    The unit multiplies elements, within each block of K, from +0. These sums p are scaled and added in the order of K,
    each operation rounded to binary32, by a multiply-add y = fma(_, _, y) that begins with +0::

        p * sa, sb      where a's blocks are rows, and b's not of fewer rows
        p * sb, sa      where only b's blocks are rows
        p, sa * sb      where both are tiles

    Where the operands have factors of their tensors or rows, y is then multiplied by
    amax_a * amax_b / (full_a * full_b). That is the order of Transformer Engine's references, of blocks of 128 and of
    NVFP4.

    Parameters
    ----------
    a : Scaled (..., M, K)
    b : Scaled (..., N, K)
        The axes before the last two are broadcast against a's.
    unit : Unit
        Whose operands hold the elements; its results are binary32 numbers.
    key, threads
        As of `softnum.matmul`; for random bits, the blocks of K are the matrices of a batch, before its own axes.

    Returns
    -------
    float32 array (..., M, N)

    Raises
    ------
    ValueError
        If the shapes, or the blocks along K, do not fit, or the unit's results are none of binary32.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum.train.recipes import BlockScaling
    >>> x, w = np.float32([[1, 2, 3, 416]]), np.float32([[1, 1, 1, 1]])
    >>> a, b = BlockScaling("e4m3fn", (1, 2))(x), BlockScaling("e4m3fn", (2, 2))(w)
    >>> scaled_product(a, b, sn.MadUnit("binary32", operand="e4m3fn"))
    array([[422.]], dtype=float32)
    """
    k, size = a.elements.shape[-1], block_length(a, b, unit)
    with np.errstate(all="ignore"):
        whole = _with_scales(a, b, size, unit) if size < k else None
        if whole is not None:
            blocks = MadUnit("binary32", operand="binary32", chunk=size)
            result = np.asarray(matmul(whole[0], _transposed(whole[1]), blocks, threads=threads), np.float32)
        else:
            result = _as_blocks(a, b, size, unit, threads)
            if result is None:
                result = _by_blocks(a, b, size, unit, key, threads)
        if a.tensor is not None or b.tensor is not None:
            (amax_a, full_a), (amax_b, full_b) = (x.tensor or (np.ones((1, 1), np.float32), 1) for x in (a, b))
            result = amax_a * _transposed(amax_b) / np.float32(full_a * full_b) * result
    return result


def block_length(a: Scaled, b: Scaled, unit) -> int:
    """The length of the blocks of K whose sums are scaled; parameters and errors as of `scaled_product`."""
    k, other = a.elements.shape[-1], b.elements.shape[-1]
    if k != other:
        raise ValueError(f"scaled_product: both operands have K as their columns, got {k} and {other}")
    if not is_exact_in(unit.result, "float32"):
        raise ValueError(f"scaled_product: sums are scaled in binary32, which {unit.result} does not fit: {unit}")
    lengths = [operand.block[1] or max(k, 1) for operand in (a, b)]
    size = min(*lengths, max(k, 1))
    for length in lengths:
        if length % size and length < k:
            raise ValueError(f"scaled_product: blocks of {length} and {size} along K do not fit each other")
    return size


def order_of(a: Scaled, b: Scaled) -> str:
    """Whose scale a sum is multiplied by before the other's is: "a", "b"; "both": first the scales by each other."""
    return "a" if a.block[0] == 1 else "b" if b.block[0] == 1 else "both"


def _by_blocks(a: Scaled, b: Scaled, size: int, unit, key, threads):
    """The sums of all blocks, scaled and added, in their order: the definition."""
    (*first, rows, _), (*second, columns, _) = a.elements.shape, b.elements.shape
    result, order = np.zeros((*np.broadcast_shapes(first, second), rows, columns), np.float32), order_of(a, b)
    for block, sums in enumerate(_sums(a.elements, b.elements, size, unit, key, threads)):
        of_a, of_b = _column(a, block * size, rows), _transposed(_column(b, block * size, columns))
        if order == "a":
            result = _fma(sums * of_a, of_b, result)
        elif order == "b":
            result = _fma(sums * of_b, of_a, result)
        else:
            result = _fma(sums, of_a * of_b, result)
    return result


def _with_scales(a: Scaled, b: Scaled, size: int, unit):
    """Both operands' elements times their scales, if binary32 sums of these, block by block, are the product; or None.

    To scale first gives the bits of scaling the sums if no step rounds, because no sum of a block, times both scales,
    has more than 24 bits; or if every step rounds alike, of sums in binary32 by scales that are powers of two. Either
    way nothing may leave the normal numbers, which the domain of `_elements_with_scales` sees to.
    """
    operand = unit.operand
    in_steps = unit == MadUnit("binary32", operand=operand)
    if not in_steps and unit != ExactDotUnit("binary32", operand=operand):
        return None
    first, second = map(facts, operand)
    products = first * second
    if products.precision > 24 or min(first.last, second.last) < -40 or max(first.top, second.top) > 40:
        return None
    digits = [_digits(x.scales) for x in (a, b)]
    is_exact = products.top + 1 - products.last + (size - 1).bit_length() + sum(digits) <= 24
    if not is_exact and not (in_steps and digits == [1, 1]):
        return None
    values = [_elements_with_scales(*each) for each in zip((a, b), operand, "ab", strict=True)]
    return None if any(x is None for x in values) else values


def _as_blocks(a: Scaled, b: Scaled, size: int, unit, threads):
    """The product by the engine of block formats, for exact sums that are rounded to binary32; or None.

    With scales X and Y that are powers of two, fma(R(S) * X, Y, acc) is R(acc + R(S * (X * Y))), the sum of
    BlockDotUnit, if no number but 0 leaves the normal ones of binary32: neither a scale, nor a sum S of a block times
    one or both.
    """
    if unit != ExactDotUnit("binary32", operand=unit.operand):
        return None
    blocks = _block_unit(*unit.operand, size)
    first, second = map(facts, unit.operand)
    last, top = first.last + second.last, first.top + second.top + 1 + (size - 1).bit_length()
    operands = [
        _elements_and_powers(x, size, fmt, name) for x, fmt, name in zip((a, b), unit.operand, "ab", strict=True)
    ]
    if blocks is None or any(x is None for x in operands):
        return None
    (x, scale_x), (y, scale_y) = operands
    low, high = (np.frexp([f(scale_x), f(scale_y)])[1] - 1 for f in (np.min, np.max))
    if min(*low, sum(low)) + min(last, 0) < -126 or max(*high, sum(high)) + max(top, 0) >= 127:
        return None
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, scale_x, y, scale_y = (
        np.broadcast_to(v, (*lead, *v.shape[-2:])).reshape(-1, *v.shape[-2:]) for v in (x, scale_x, y, scale_y)
    )
    result = product_of_values(blocks, x, _transposed(y), scale_x, _transposed(scale_y), threads)
    return None if result is None else result.astype(np.float32).reshape(*lead, *result.shape[1:])


@lru_cache(maxsize=64)
def _block_unit(first, second, size: int) -> BlockDotUnit | None:
    """Of blocks of elements of these formats, whose scaled sums round to binary32; None where no block holds them."""
    try:
        operand = tuple(BlockFormat(fmt, "e8m0fnu", size) for fmt in (first, second))
    except ValueError:
        return None
    return BlockDotUnit("binary32", operand=operand, product="binary32")


def _elements_and_powers(x: Scaled, size: int, fmt, name: str):
    """(elements, the scale of each row of each block of K, float64), if all are finite and the scales powers of two."""
    elements = checked_operand(x.elements, fmt, name)
    if not elements.size or not np.isfinite(elements).all():
        return None
    rows, k = elements.shape[-2:]
    starts = np.arange(0, k, size)
    scales = x.scales[..., starts // x.block[1] if x.block[1] else np.zeros_like(starts)].astype(np.float64)
    scales = scales.repeat(x.block[0] or rows, axis=-2)[..., :rows, :]
    empty = np.maximum.reduceat(np.abs(elements), starts, axis=-1) == 0
    scales = np.where(empty, 1.0, scales)  # whatever it is, their sums are +0
    return (elements, scales) if (np.frexp(scales)[0] == 0.5).all() and np.isfinite(scales).all() else None


def _digits(scales) -> int:
    """The most significant bits that a scale has, of normal numbers: smaller ones belong to blocks of zeros."""
    normal = scales[np.abs(scales) >= 2.0**-126]
    fraction = int(np.bitwise_or.reduce(normal.view(np.uint32), initial=0)) & 0x7FFFFF
    return 25 - (fraction & -fraction).bit_length() if fraction else 1


def _elements_with_scales(x: Scaled, fmt, name: str):
    """Elements times scales, if all are 0 or between 2**-60 and 2**50 in magnitude; else None.

    So is no product of two below 2**-120, and the last of its 24 bits, or fewer, not below 2**-149.
    """
    scales = np.abs(x.scales)
    if ((scales < 2.0**-127) & (scales != 0)).any() or not (scales <= 2.0**50).all():
        return None
    elements = checked_operand(x.elements, fmt, name)
    values = elements * spread(x.scales, elements.shape, x.block)
    sizes = np.abs(values)
    sizes[sizes == 0] = 1
    return values if sizes.size and 2.0**-60 <= sizes.min() and sizes.max() <= 2.0**50 else None


def _sums(a, b, size: int, unit, key, threads):
    """The unit's products of each block of K, in order; float32 arrays (..., M, N)."""
    k = a.shape[-1]
    blocks = -(-k // size)
    if not unit.stochastic:
        for first in range(0, k, size):
            part = (..., slice(first, first + size))
            yield np.asarray(matmul(a[part], _transposed(b[part]), unit, threads=threads), np.float32)
        return
    missing = blocks * size - k  # of the last block; zeros add nothing
    rank = max(a.ndim, b.ndim)
    a, b = (x.reshape(*(1,) * (rank - x.ndim), *x.shape) for x in (a, b))
    a, b = (np.pad(x, [(0, 0)] * (rank - 1) + [(0, missing)]) for x in (a, b))
    a, b = (np.moveaxis(x.reshape(*x.shape[:-1], blocks, size), -2, 0) for x in (a, b))
    yield from np.asarray(matmul(a, _transposed(b), unit, key=key, threads=threads), np.float32)


def _transposed(x):
    return x.swapaxes(-2, -1)


def _column(x: Scaled, first: int, rows: int):
    """The scale of each row in the block of K that begins with an index."""
    scales = x.scales[..., first // x.block[1] if x.block[1] else 0]
    return scales.repeat(x.block[0] or rows, axis=-1)[..., :rows, None]


def _fma(x, y, z):
    codes = (np.ascontiguousarray(np.broadcast_to(v, z.shape)).view(np.uint32) for v in (x, y, z))
    return fma(*codes, "binary32").view(np.float32)
