"""Products of scaled operands: sums in a unit, block by block of K, and what their scales make of them."""

from __future__ import annotations

import numpy as np

from softnum.formats.facts import is_exact_in
from softnum.mac.products.matrices import matmul
from softnum.ops.arithmetic import fma
from softnum.train.recipes.scaled import Scaled

__all__ = ["scaled_product"]


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
    (*first, rows, k), (*second, columns, other) = a.elements.shape, b.elements.shape
    if k != other:
        raise ValueError(f"scaled_product: both operands have K as their columns, got {k} and {other}")
    if not is_exact_in(unit.result, "float32"):
        raise ValueError(f"scaled_product: sums are scaled in binary32, which {unit.result} does not fit: {unit}")
    lengths = [operand.block[1] or max(k, 1) for operand in (a, b)]
    size = min(*lengths, max(k, 1))
    for length in lengths:
        if length % size and length < k:
            raise ValueError(f"scaled_product: blocks of {length} and {size} along K do not fit each other")
    result = np.zeros((*np.broadcast_shapes(first, second), rows, columns), np.float32)
    with np.errstate(all="ignore"):
        for block, sums in enumerate(_sums(a.elements, b.elements, size, unit, key, threads)):
            of_a, of_b = _column(a, block * size, rows), _transposed(_column(b, block * size, columns))
            if a.block[0] == 1:
                result = _fma(sums * of_a, of_b, result)
            elif b.block[0] == 1:
                result = _fma(sums * of_b, of_a, result)
            else:
                result = _fma(sums, of_a * of_b, result)
        if a.tensor is not None or b.tensor is not None:
            (amax_a, full_a), (amax_b, full_b) = (x.tensor or (np.ones((1, 1), np.float32), 1) for x in (a, b))
            result = amax_a * _transposed(amax_b) / np.float32(full_a * full_b) * result
    return result


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
