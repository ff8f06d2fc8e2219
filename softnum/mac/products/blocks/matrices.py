"""Matrix products of BlockArrays: the inner unit's own engine for each block, then the outer sum."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import check_out
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode, encode
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.facts import fits
from softnum.formats.names import format
from softnum.mac import _blocks
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.family import family_of
from softnum.mac.products.blocks.fast import fast_product
from softnum.mac.products.blocks.fused import fast_fused_product
from softnum.mac.products.engines import definition_of
from softnum.mac.products.operands import blocks_of, checked_operand, codes_of, random_words_of
from softnum.ops.arithmetic import convert
from softnum.runtime.threads import for_each

__all__ = ["block_matmul", "block_operands", "block_sums"]


def _operand(x, fmt, what: str, axis: int, outer: str, kind: str) -> BlockArray:
    if not isinstance(x, BlockArray):
        raise TypeError(
            f"matmul: {what} must be a BlockArray under a {kind}, got {type(x).__name__}: values do not tell "
            f"their scales; encode them first: softnum.array({what}, {str(fmt)!r}, axis={axis})"
        )
    if x.format != fmt:
        raise ValueError(f"matmul: {what} is a BlockArray of {x.format}, but the unit's operand is {fmt}")
    if x.ndim < 2:
        raise ValueError(f"matmul takes (..., M, K) @ (..., K, N), got {what} of shape {x.shape}; for vectors use dot")
    if x.axis != axis:
        raise ValueError(
            f"matmul: {what}, {outer}, must be blocked along K, axis {axis}, but is along axis {x.axis}: "
            f"softnum.array(values, {str(fmt)!r}, axis={axis})"
        )
    return x


def block_operands(a, b, unit) -> tuple[BlockArray, BlockArray]:
    """Both operands, checked to be what the unit takes, or TypeError or ValueError; of their shapes, the last two."""
    if not family_of(unit).of_blocks:
        raise TypeError(f"matmul: BlockArrays are multiplied under a BlockDotUnit, got {unit!r}")
    kind = type(unit).__name__
    return (
        _operand(a, unit.operand[0], "a", -1, "(..., M, K)", kind),
        _operand(b, unit.operand[1], "b", -2, "(..., K, N)", kind),
    )


def block_matmul(a, b, unit, c, key, random_bits, threads, out, tallies=None):
    """`softnum.matmul` of BlockArrays, in a plain floating-point environment."""
    a, b = block_operands(a, b, unit)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: a has K = {a.shape[-1]} columns, b has {b.shape[-2]} rows")
    (m, k), n = a.shape[-2:], b.shape[-1]
    lead = a.shape[:-2] if a.shape[:-2] == b.shape[:-2] else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape, batches = (*lead, m, n), math.prod(lead)
    if max(m, n, k, batches, unit.steps(k)) >= 2**32:
        raise ValueError(f"matmul: no dimension may reach 2**32, got {shape} and K = {k}")
    result = unit.result
    if c is not None:
        c = checked_operand(c, result, "c")
        if c.ndim > len(shape) or any(d not in (1, want) for d, want in zip(c.shape[::-1], shape[::-1], strict=False)):
            raise ValueError(f"matmul: c of shape {c.shape} does not broadcast to {shape}")
    keys, words, numbers = random_words_of(unit, key, random_bits, shape, k)
    dtype = next((d for d in (np.float32, np.float64) if fits(result, d)), None)
    if out is not None and dtype is None:
        raise ValueError(f"matmul: the result is an Array of {result}; out= is for float32 and float64 results")
    check_out("matmul", out, shape, dtype)
    kind = _FusedProduct if isinstance(unit, BlockFusedDotUnit) else _Product
    product = kind(unit, a, b, c, lead, keys, words, numbers, tallies)
    values = None if dtype is None or tallies is not None else product.fast(threads)
    if values is None:
        codes = product.by_definition(threads).reshape(shape)
        values = Array(codes, result) if dtype is None else decode(codes, result, dtype)
    else:
        values = values.astype(dtype, copy=False).reshape(shape)
    if out is None:
        return values
    out[...] = values
    return out


@lru_cache(maxsize=256)
def _definition(unit: BlockDotUnit):
    return _blocks.DefinitionBlock(unit)


def block_sums(unit, a, b, scale_a, scale_b, tensors, c, out, words) -> int:
    """Many dot products of blocks by the definition, into out; a bit for each of `unit.rounded_to` that lacks a NaN.

    Parameters
    ----------
    unit : BlockDotUnit or BlockFusedDotUnit
    a, b : ndarray of uint64, shape (n, K)
        Codes of elements, contiguous as all arrays here.
    scale_a, scale_b : ndarray of uint64, shape (n, blocks)
        Codes of their scales.
    tensors : list of ndarrays of uint64, shape (n,)
        Codes of the scales of arrays, of those operands whose format has one.
    c : ndarray of uint64, shape (n,), or None
        Where each sum starts.
    out : ndarray of uint64, shape (n,)
    words : ndarray of uint32, shape (n, steps, 2), or None
        The random words, of a stochastic unit.
    """
    binary32, k = format("binary32"), a.shape[1]
    scales = _tensor_codes(unit, tensors, len(out)) if unit.tensor_scales else None
    if isinstance(unit, BlockFusedDotUnit):
        return definition_of(unit).run_each(a, b, scale_a, scale_b, scales, binary32, c, out)
    outer, (numbering, last) = _definition(unit), unit.numbering(k)
    out[...] = 0 if c is None or (unit.tensor_scales and k) else c
    lost = first = 0
    for j, (length, (inner_steps, step)) in enumerate(zip(unit.lengths(k), numbering, strict=True)):
        x, y = (np.ascontiguousarray(v[:, first : first + length]) for v in (a, b))
        sums = None
        if unit.inner is not None:
            sums = np.empty(len(out), np.uint64)
            own = np.ascontiguousarray(words[:, inner_steps]) if unit.inner.stochastic else None
            lost |= definition_of(unit.inner).run_each(x, y, None, sums, own) << 2
            x = y = None
        of_block = (np.ascontiguousarray(v[:, j]) for v in (scale_a, scale_b))
        lost |= outer.add_each(sums, x, y, *of_block, out, words, step)
        first += length
    if scales is not None and k:
        lost |= outer.finish_each(scales, binary32, c, out, words, last)
    return lost


def _tensor_codes(unit, tensors, n: int) -> np.ndarray:
    """Codes of binary32, (n, 2), of the scales of arrays; of 1 where an operand has none."""
    left, binary32 = list(tensors), format("binary32")
    out = np.empty((n, 2), np.uint64)
    for i, fmt in enumerate(f.tensor_scale for f in unit.operand):
        out[:, i] = 0x3F800000 if fmt is None else convert(left.pop(0).astype(fmt.storage_dtype), fmt, binary32)
    return out


class _Product:
    """One call of matmul: operands as codes, [batch, ...]."""

    def __init__(self, unit, a, b, c, lead, keys, words, numbers, tallies) -> None:
        (m, k), n = a.shape[-2:], b.shape[-1]
        self.unit, self.keys, self.words, self.tallies = unit, keys, words, tallies
        self.numbers = numbers
        self.m, self.n, self.k, self.batches = m, n, k, math.prod(lead)
        self.tensor = tuple(1.0 if x.tensor_scale is None else float(x.tensor_scale) for x in (a, b))
        blocks = unit.operand[0].blocks(k)

        def spread(codes, *rest):
            shape = (*lead, *rest)
            whole = codes if codes.shape == shape else np.broadcast_to(codes, shape)
            return whole.reshape(self.batches, *rest)

        self.a, self.b = spread(a.codes, m, k), spread(b.codes, k, n)
        self.scale_a, self.scale_b = spread(a.scales, m, blocks), spread(b.scales, blocks, n)
        self.start, self.shape = c, (*lead, m, n)

    @cached_property
    def c(self) -> np.ndarray | None:
        """Codes of the initial accumulator."""
        if self.start is None:
            return None
        return codes_of(self.start, self.unit.result, self.shape).reshape(self.batches, self.m, self.n)

    @cached_property
    def _numbered(self) -> tuple:
        return self.unit.numbering(self.k)

    @property
    def numbering(self) -> list:
        """The steps of each block (`BlockDotUnit.numbering`)."""
        return self._numbered[0]

    @property
    def last(self) -> int:
        """The step of tensor scales."""
        return self._numbered[1]

    @cached_property
    def lengths(self) -> list[int]:
        """The lengths of the blocks."""
        return self.unit.lengths(self.k)

    def number(self, product: int, row: int, column: int) -> tuple[int, int, int]:
        """By which random words number a product, row and column of this call."""
        return *self.numbers.of(product, row), column

    @cached_property
    def tensor_codes(self) -> tuple[int, int]:
        """The arrays' scales in binary32."""
        return tuple(int(encode(np.float64(t), format("binary32"))) for t in self.tensor)

    def fast(self, threads) -> np.ndarray | None:
        """The result as float64 values; None where there is no fast path."""
        return fast_product(self, threads)

    def by_definition(self, threads) -> np.ndarray:
        """Codes of the result, through the scalar functions of the core."""
        out = np.zeros((self.batches, self.m, self.n), np.uint64)
        threads, pieces = blocks_of(self.m, self.n, self.k, self.batches, threads, defined=True)
        lost = for_each(self.numbers.split(pieces), lambda *piece: self._piece(out, *piece), threads)
        for i, fmt in enumerate(self.unit.rounded_to):
            if lost & 1 << i:
                raise_no_code(fmt, "matmul")
        return out.astype(self.unit.result.storage_dtype)

    def _piece(self, out, i, m0, m1, n0, n1) -> int:
        """Rows m0..m1 and columns n0..n1 of product i."""
        unit, outer = self.unit, _definition(self.unit)
        c = None if self.c is None else np.ascontiguousarray(self.c[i, m0:m1, n0:n1])
        if m1 <= m0 or n1 <= n0:
            return 0
        total = np.zeros((m1 - m0, n1 - n0), np.uint64)
        if c is not None and (not unit.tensor_scales or not self.k):
            total[...] = c
        words = None
        if self.words is not None and unit.stochastic:
            words = np.ascontiguousarray(self.words[i, m0:m1, n0:n1])
        rest = (total, words, self.keys, *self.number(i, m0, n0))
        own = inner = None
        if self.tallies is not None:
            counts = self.tallies.part(unit)
            own, inner = counts[: _blocks.TALLIES], counts[_blocks.TALLIES :]
        lost = first = 0
        for j, (length, (inner_steps, step)) in enumerate(zip(self.lengths, self.numbering, strict=True)):
            part = slice(first, first + length)
            a = np.ascontiguousarray(self.a[i, m0:m1, part], np.uint64)
            b = np.ascontiguousarray(self.b[i, part, n0:n1], np.uint64)
            sums = None
            if unit.inner is not None:
                sums = np.empty(total.shape, np.uint64)
                lost |= self._inner(i, a, b, sums, words, inner_steps, m0, n0, inner) << 2
                a = b = None
            scale_a = np.ascontiguousarray(self.scale_a[i, m0:m1, j], np.uint64)
            scale_b = np.ascontiguousarray(self.scale_b[i, j, n0:n1], np.uint64)
            lost |= outer.add(sums, a, b, scale_a, scale_b, *rest, step, own)
            first += length
        if unit.tensor_scales and self.k:
            lost |= outer.finish(*self.tensor_codes, format("binary32"), c, *rest, self.last, own)
        out[i, m0:m1, n0:n1] = total
        return lost

    def _inner(self, i, a, b, sums, words, steps, m0, n0, tallies) -> int:
        """The inner unit's sums of one block."""
        inner = self.unit.inner
        i, m0, n0 = self.number(i, m0, n0)
        m1, n1 = m0 + sums.shape[0], n0 + sums.shape[1]
        own = None
        if inner.stochastic and words is not None:
            own = np.ascontiguousarray(words[:, :, steps])
        elif inner.stochastic:
            bits = inner.stochastic_bits
            source = self.unit.random_source
            own = _blocks.words_of_steps(source, self.keys, i, m0, m1, n0, n1, steps, inner.two_roundings, bits > 16)
        return definition_of(inner).run(a, b, None, sums, own, self.keys, i, m0, m1, n0, n1, (m0, n0), tallies)


class _FusedProduct(_Product):
    """The same under a BlockFusedDotUnit, whose engine takes all of K at once."""

    def fast(self, threads) -> np.ndarray | None:
        """As of `_Product`."""
        return fast_fused_product(self, threads)

    def _piece(self, out, i, m0, m1, n0, n1) -> int:
        if m1 <= m0 or n1 <= n0:
            return 0
        part = slice(m0, m1), slice(n0, n1)
        a, scale_a = (np.ascontiguousarray(x[i, part[0]], np.uint64) for x in (self.a, self.scale_a))
        b, scale_b = (np.ascontiguousarray(x[i, :, part[1]], np.uint64) for x in (self.b, self.scale_b))
        c = None if self.c is None else np.ascontiguousarray(self.c[i][part])
        total = np.empty((m1 - m0, n1 - n0), np.uint64)
        counts = None if self.tallies is None else self.tallies.part(self.unit)
        lost = definition_of(self.unit).run(
            a, b, scale_a, scale_b, self.tensor_codes, format("binary32"), c, total, m0, m1, n0, n1, (m0, n0), counts
        )
        out[i][part] = total
        return lost
