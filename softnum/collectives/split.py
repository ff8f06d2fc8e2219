"""Products whose K is divided among ranks, as tensor parallelism does: partial products, then a collective."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.blocks import BlockArray
from softnum.arrays.conversion import quantize
from softnum.arrays.streams import Stream
from softnum.collectives.collective import Collective
from softnum.collectives.make import collective as collective_from
from softnum.collectives.rows import check_memory
from softnum.formats.annotations import Key
from softnum.formats.facts import fits
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.presets import unit_of
from softnum.mac.products.matrices import matmul

__all__ = ["split_matmul"]

_PRODUCTS = 2  # a child of the key; those before are the collective's


def split_matmul(
    a: ArrayLike,
    b: ArrayLike,
    unit: Unit,
    collective: Collective | str,
    *,
    key: Key | None = None,
    threads: int | None = None,
) -> list[np.ndarray]:
    """A matrix product whose K is divided among ranks: the result of each rank after an all-reduce of partial products.

    Rank r multiplies part r of K, from +0, and rounds the result to the collective's ``format``, to nearest even;
    then the collective adds. So it is where tensor parallelism splits a layer by its input features ("row-parallel",
    Megatron-LM), and in the backward pass of one that is split by its output features.

    Parameters
    ----------
    a : ndarray of float32 or float64, shape (..., M, K)
        Values of the unit's first operand format (checked), as `matmul` takes them.
    b : the same, shape (..., K, N)
        Of the second.
    unit : Unit or str
        Of each rank's product; not one of block formats.
    collective : Collective or str
        Its ranks divide K.
    key : int, (int, int) or Stream, optional
        Needed if the unit, the adder or the wire rounds stochastically. The collective has it as it is; the product of
        rank r has child r of its child 2, ``Stream(key).spawn(1, first=2)[0].spawn(1, first=r)[0]``.
    threads : int, optional
        Of each rank's product, as of `matmul`.

    Returns
    -------
    list of ndarrays of shape (..., M, N)
        Of each rank, as `Collective.all_reduce` returns them; elements are numbered in C order.

    Raises
    ------
    ValueError
        If the ranks do not divide K, the unit is of block formats or has a result that binary64 lacks, or as of
        `matmul` and `Collective.all_reduce`.

    References
    ----------
    M. Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism", 2019,
    section 3.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> a, b = np.ones((1, 1024), np.float32), np.ones((1024, 1), np.float32)
    >>> unit = sn.MadUnit("bfloat16", operand="bfloat16")  # sticks at 256
    >>> tree = sn.collective("tree", 4, unit="bfloat16")
    >>> sn.matmul(a, b, unit).item(), sn.collectives.split_matmul(a, b, unit, tree)[0].item()
    (256.0, 1024.0)
    """
    c, unit = collective_from(collective), unit_of(unit)
    if family_of(unit).of_blocks or BlockArray in (type(a), type(b)):
        raise ValueError(
            f"split_matmul: {type(unit).__name__} multiplies blocks, which are not divided here; multiply each rank's "
            "part by matmul, and give the products to all_reduce"
        )
    if not fits(unit.result, np.float64):
        raise ValueError(f"split_matmul: the unit's result, {unit.result}, has values that binary64 lacks")
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"split_matmul takes (..., M, K) @ (..., K, N), got shapes {a.shape} and {b.shape}")
    k = a.shape[-1]
    if k % c.ranks:
        raise ValueError(
            f"split_matmul: K = {k} has no equal parts for {c.ranks} ranks; take a number that divides it, or fill "
            "both operands up with zeros"
        )
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    check_memory(c, "split_matmul", math.prod(shape), 2 * c.ranks)
    parts, each = np.empty((c.ranks, *shape), c.arithmetic.dtype), k // c.ranks
    for rank in range(c.ranks):
        part = slice(rank * each, (rank + 1) * each)
        own = None
        if unit.stochastic and key is not None:
            own = Stream(key).spawn(1, first=_PRODUCTS)[0].spawn(1, first=rank)[0]
        product = matmul(a[..., part], b[..., part, :], unit, key=own, threads=threads)
        parts[rank] = product if c.format.contains(unit.result) else quantize(product, c.format)
    return c.all_reduce(parts, key=key if c.stochastic else None)
