"""Roles with scales on a GPU: elements, sums of products and what scales make of them stay there.

A kernel finds the largest magnitude of each tile, or its sums. These few numbers come to the host, where the recipe's
own rule (`softnum.train.recipes`) makes scales of them, and go back as factors and scales. What no kernel makes
elements of, a quantizer of the user's or a choice between two scales, is computed on the host and counted.
"""

from __future__ import annotations

import dataclasses
from math import prod

import numpy as np

from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.kernels.device.elementwise import carriers, conversion, tiles
from softnum.kernels.device.elementwise.deferred import can_wait
from softnum.kernels.device.runtime import movement
from softnum.kernels.device.runtime.movement import DeviceArray, mapped, moved
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.runtime.gateway import NoKernel
from softnum.train.designs.scales import block_of, of_tensor
from softnum.train.engine.backend import role_key
from softnum.train.engine.cuda_arrays import on_device
from softnum.train.recipes import DelayedScaling, QuestScaling, Scaled, largest_magnitude
from softnum.train.recipes.nvfp4 import scaled_hadamard_matrix
from softnum.train.recipes.products import block_length, order_of

__all__ = ["CudaScales"]

_MOST = 2**28  # bytes of sums that wait to be scaled
_OWN = format("binary32")


class CudaScales:
    """The methods of `softnum.train.engine.backend.NumpyBackend` for roles with scales, of a ``CudaBackend``."""

    def magnitude(self, x, role, axis: int | None) -> float:
        """`NumpyBackend.magnitude`, of arrays on the device; of a block format's, on the host."""
        if role.block:
            return self._on_host("magnitude", x, role, axis)
        mixed = _mixed(self, _turned(_binary32(x), axis), role.hadamard)
        return float(_largest(mixed.reshape((1, mixed.size)), (None, None)).max(initial=0))

    def quantize_scaled(self, x, role, axis: int | None, key, state=None, largest=None) -> Scaled:
        """`NumpyBackend.quantize_scaled`, of arrays on the device."""
        scale, whole = role.scale, of_tensor(role.scale)
        has_rows = whole or block_of(scale)[0] is not None or np.ndim(x) == 2
        if not hasattr(scale, "factors") or getattr(scale, "four_over_six", None) or not has_rows:
            return _up(self._on_host("quantize_scaled", x, role, axis, key, state, largest))
        x = _mixed(self, _turned(_binary32(x), axis), role.hadamard)
        matrices = x.reshape((x.shape[0], -1)) if whole else x
        made = self._scaled(matrices, role, key, state, largest)
        return made._replace(elements=made.elements.reshape(x.shape))

    def _scaled(self, x: DeviceArray, role, key, state, largest) -> Scaled:
        """Matrices (..., rows, columns) by a quantizer that has `softnum.train.recipes.scaled.Factors`."""
        scale, block, rows = role.scale, block_of(role.scale), x.shape[-2]
        missing = -rows % block[0] if role.stochastic and x.ndim > 2 else 0
        if missing:  # random words are those of matrices filled up to whole tiles
            whole = movement.filled((*x.shape[:-2], rows + missing, x.shape[-1]), x.dtype, 0)
            movement.put(whole, lambda a: a[..., :rows, :], x)
            x = whole
        found = self._factors(x, scale, block, state, largest)
        factors = on_device(found.factors)
        scales = factors if found.scales is found.factors else on_device(found.scales)
        scaled = x if found.before == 1.0 else _own("multiply", np.float32(found.before), x)
        scaled = _own("divide" if found.divided else "multiply", scaled, movement.of_tiles(factors, x.shape, block))
        if found.four_bits:
            rounding = getattr(scale, "rounding", "nearest_even")
            elements = _to_four_bits(scaled, scale.format, rounding, role, key)
        else:
            elements = _cast(scale.format, self, scaled)
        tensor = found.tensor
        if tensor is not None:
            amax = tensor[0] if tensor[0].size == 1 else tensor[0][..., :rows, :]
            tensor = on_device(np.ascontiguousarray(amax)), tensor[1]
        if missing:
            elements = moved(elements, lambda a: a[..., :rows, :])
        return Scaled(elements, scales, block, tensor)

    def _factors(self, x: DeviceArray, scale, block, state=None, whole=None):
        """The rule's `Factors`, on the host; whole: the largest magnitude of what x is a part of."""
        if isinstance(scale, QuestScaling):
            return scale.factors(*(part.host() for part in tiles.moments(x, block[1])), x.shape[-1])
        known, rows = None if whole is None else np.full((1, 1), whole, np.float32), getattr(scale, "rows", None)
        largest = _largest(x, block) if known is None or rows is not None else known
        if isinstance(scale, DelayedScaling):
            return scale.factors(largest, state)
        if rows is None:
            return scale.factors(largest)
        if known is None:
            known = _largest(x, (1, None)) if rows else largest_magnitude(largest).reshape(1, 1)
        return scale.factors(largest, known)

    def matmul_scaled(self, a: Scaled, b: Scaled, unit, c, key):
        """`NumpyBackend.matmul_scaled`, of arrays on the device."""
        size = block_length(a, b, unit)
        a, b = _up(a), _up(b)
        try:
            product = _by_blocks(self, a, b, size, unit, key)
        except NoKernel:
            return on_device(self._on_host("matmul_scaled", a, b, unit, c, key))
        if a.tensor is not None or b.tensor is not None:
            product = mapped("multiply", _factor(a, b), product)
        if c is not None:
            product = mapped("add", product, _binary32(c))
        return self._carried(product)

    def numbers(self, x):
        """`NumpyBackend.numbers`, of arrays on the device."""
        if not isinstance(x, Scaled):
            return DeviceArray.of(x.decode())
        x = _up(x)
        values = mapped("multiply", x.elements, movement.of_tiles(x.scales, x.elements.shape, x.block))
        if x.tensor is not None:
            values = mapped("multiply", values, _quotient(*x.tensor))
        return values

    def trusted(self, x, scale, hadamard, axis: int):
        """`NumpyBackend.trusted`, of arrays on the device."""
        if not isinstance(scale, QuestScaling):
            return on_device(self._on_host("trusted", x, scale, hadamard, axis))
        x = _mixed(self, _turned(_binary32(x), axis), hadamard)
        scales = on_device(self._factors(x, scale, scale.block).scales)
        quotients = _own("divide", x, movement.of_tiles(scales, x.shape, scale.block))
        return _turned(mapped("below", quotients, s=np.float32(6)), axis)

    def returned(self, gradient, trusted, hadamard, axis: int):
        """`NumpyBackend.returned`, of arrays on the device."""
        result = mapped("choose_or", on_device(trusted), _binary32(gradient), s=np.float32(0))
        if hadamard is not None:
            result = _turned(_mixed(self, _turned(result, axis), hadamard, inverse=True), axis)
        return self._carried(result)


def _up(x: Scaled) -> Scaled:
    """Elements and scales on the device."""
    tensor = None if x.tensor is None else (on_device(x.tensor[0]), x.tensor[1])
    return Scaled(on_device(x.elements), on_device(x.scales), x.block, tensor)


def _binary32(x) -> DeviceArray:
    """An array on the device, rounded to binary32."""
    x = on_device(x)
    return x if x.dtype == np.float32 else mapped("narrow", x)


def _turned(x: DeviceArray, axis: int | None) -> DeviceArray:
    """Matrices with their axes exchanged, if K lies along the first of these."""
    return moved(x, lambda a: a.swapaxes(-2, -1)) if axis == -2 else x


def _own(operation: str, *operands) -> DeviceArray:
    """An operation in binary32."""
    return carriers.deferred(operation, operands, (_OWN,) * len(operands), _OWN)


def _largest(x: DeviceArray, block) -> np.ndarray:
    """The largest magnitude of each tile, on the host; of a NaN the canonical one."""
    found = tiles.magnitudes(x, block).host()
    found[np.isnan(found)] = np.nan
    return found


def _mixed(backend, x: DeviceArray, hadamard, *, inverse: bool = False) -> DeviceArray:
    """Matrices with K as their columns as a Hadamard transform makes them, in its format; without one, themselves."""
    if hadamard is None:
        return x
    size, columns = hadamard.size, x.shape[-1]
    whole = columns // size * size
    matrix = scaled_hadamard_matrix(size, hadamard.signs, inverse=inverse)
    groups = moved(x, lambda a: a[..., :whole]).reshape((prod(x.shape[:-1]) * (whole // size), size))
    mixed = _product(backend, groups, on_device(matrix), ExactDotUnit(hadamard.format, operand=_OWN), None)
    mixed = _narrow(mixed).reshape((*x.shape[:-1], whole))
    if whole == columns:
        return mixed
    rest = moved(x, lambda a: a[..., whole:])
    rest = backend._softnum("quantize", (rest,), hadamard.format, shape=rest.shape)
    return movement.concatenated([mixed, rest], -1)


def _narrow(x: DeviceArray) -> DeviceArray:
    return x if x.dtype == np.float32 else mapped("narrow", x)


# ---- elements --------------------------------------------------------------------------------------------------------
@of_format
def _cast(fmt, backend, x: DeviceArray) -> DeviceArray:
    """`softnum.train.recipes.cast`."""
    options = {"rounding": "nearest_even", "overflow": "saturate", "key": None, "stochastic_bits": 32}
    computation, _ = conversion.prepared(fmt, "float32", **options)
    if not can_wait(computation):
        return _cast_at_once(fmt, backend, x)
    return movement.deferred(computation, [x], x.shape, np.float32)


@_cast.custom
def _cast_at_once(fmt, backend, x: DeviceArray) -> DeviceArray:
    return backend._softnum("quantize", (x,), fmt, shape=x.shape, overflow="saturate")


def _to_four_bits(x: DeviceArray, fmt, rounding: str, role, key) -> DeviceArray:
    """`softnum.train.recipes.to_e2m1`."""
    computation, words = conversion.prepared(
        fmt,
        "float32",
        rounding=rounding,
        overflow=None,
        key=role_key(role, key),
        stochastic_bits=role.stochastic_bits,
        invalid=0.0,
    )
    cut = mapped("cut", x, s=np.float32(-6), t=np.float32(6))
    return movement.deferred(computation, [cut], x.shape, np.float32, words.key if words.kind else None)


# ---- products --------------------------------------------------------------------------------------------------------
def _product(backend, a: DeviceArray, b: DeviceArray, unit, key) -> DeviceArray:
    """A product in a unit, of arrays on the device; NoKernel if none computes it."""
    return DeviceArray.of(backend._kernel_of("matmul", a.numba, b.numba, unit, None, key=key))


def _by_blocks(backend, a: Scaled, b: Scaled, size: int, unit, key) -> DeviceArray:
    """The sums of all blocks of K, scaled and added, in their order (`softnum.train.recipes.scaled_product`)."""
    (*first, rows, k), (*second, columns, _) = a.elements.shape, b.elements.shape
    lead = np.broadcast_shapes(tuple(first), tuple(second))
    result = movement.empty((*lead, rows, columns), np.float32)
    if not k:
        return movement.filled(result.shape, np.float32, 0)
    of_a, of_b = (_scales(x, lead, n, k) for x, n in ((a, rows), (b, columns)))
    chunk = _chunk(unit)
    for at, length, blocks in _parts(k, size, 4 * result.size, unit.stochastic):
        left, right = (_in_blocks(x.elements, at, length, blocks, len(lead)) for x in (a, b))
        promoted = chunk is not None and length <= chunk
        if chunk is not None and not promoted:
            one = on_device(np.ones((1, 1), np.float32))
            left, right = (Scaled(x, one, (None, None)) for x in (left, right))
            sums = _by_blocks(backend, left, right, chunk, unit.inner, None)
        else:
            right = moved(right, lambda a: a.swapaxes(-2, -1))
            sums = _product(backend, left, right, unit.inner if promoted else unit, key)
        tiles.add_scaled(result, sums, of_a, of_b, order_of(a, b), at, length, begins=at == 0, promoted=promoted)
    return result


def _chunk(unit) -> int | None:
    """How many products a unit sums before it adds the sum in binary32, as scaled sums are added; None of others."""
    if not isinstance(unit, ChunkedDotUnit):
        return None
    if dataclasses.replace(unit, accumulator=_OWN, rounding="nearest_even", overflow=None) != unit:
        raise NoKernel(f"matmul: no CUDA kernel adds the sums of {unit}")
    return unit.chunk


def _parts(k: int, size: int, of_a_sum: int, all_at_once: bool):
    """(where it begins, the length of its blocks, how many) of each part of K whose sums are computed together.

    Random words are those of all blocks together, the last one filled up with +0.
    """
    if all_at_once:
        yield 0, size, -(-k // size)
        return
    whole, most = k // size, max(1, _MOST // max(of_a_sum, 1))
    for block in range(0, whole, most):
        yield block * size, size, min(most, whole - block)
    if k % size:
        yield whole * size, k % size, 1


def _in_blocks(x: DeviceArray, at: int, length: int, blocks: int, rank: int) -> DeviceArray:
    """Elements (..., rows, K) of some blocks of K, one after the other: (blocks, ..., rows, length)."""
    k, x = x.shape[-1], x.reshape((*(1,) * (rank + 2 - x.ndim), *x.shape))
    if at + blocks * length > k:
        whole = movement.filled((*x.shape[:-1], blocks * length), x.dtype, 0)
        movement.put(whole, lambda a: a[..., :k], x)
        x = whole

    def view(a):
        part = a[..., at : at + blocks * length]
        return np.moveaxis(part.reshape(*part.shape[:-1], blocks, length), -2, 0)

    return moved(x, view)


def _scales(x: Scaled, lead, rows: int, k: int) -> tiles.Scales:
    """An operand's scales: of each of a product's matrices, or of one for all."""
    scales, (tall, long) = x.scales, x.block
    if prod(scales.shape[:-2]) > 1:
        scales = movement.broadcast(scales, (*lead, *scales.shape[-2:]))
    return tiles.Scales(scales, tall or max(rows, 1), long or k)


def _quotient(amax: DeviceArray, full: float) -> DeviceArray:
    """amax / full in binary32: a quotient of two such numbers in binary64, rounded again, is rounded once."""
    return mapped("narrow", mapped("divide", amax, s=np.float64(np.float32(full))))


def _factor(a: Scaled, b: Scaled) -> DeviceArray:
    """What the factors of the operands' tensors, or rows, multiply their product by."""
    none = on_device(np.ones((1, 1), np.float32)), 1
    (amax_a, full_a), (amax_b, full_b) = (x.tensor or none for x in (a, b))
    amax_b = moved(amax_b, lambda a: a.swapaxes(-2, -1))
    return _quotient(mapped("multiply", amax_a, amax_b), full_a * full_b)
