"""Elements with scales: of whole tensors, rows, columns and tiles, as training recipes have them.

What a quantizer of this package returns is a `Scaled`. It computes in binary32, in the order of its reference, so that
it gives a reference's bits; `softnum.encode` to a block format rounds the exact quotients instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.blocks import format
from softnum.formats.names import format_of_dtype
from softnum.train.recipes.scales import (
    LARGEST,
    check_reference,
    delayed_scale,
    largest_magnitude,
    scale_of_largest,
)  # fmt: skip

__all__ = [
    "BlockScaling", "Delayed", "DelayedScaling", "Factors", "Scaled", "TensorScaling", "cast", "float32", "put_format",
    "spread", "tile_magnitudes",
]  # fmt: skip


class Scaled(NamedTuple):
    """Elements of a small format, and the factors that take them back to numbers.

    Parameters
    ----------
    elements : float32 array (..., rows, columns)
        Values of the recipe's format; a recipe makes one matrix.
    scales : float32 array (..., blocks of rows, blocks of columns)
        The factor of each block.
    block : (int or None, int or None)
        Rows and columns of a block, None for all; those at an edge may be smaller.
    tensor : (float32 array, float), optional
        One more factor, of the tensor or of each row: the first over the second.

    Examples
    --------
    >>> Scaled(np.float32([[2, 3, 4]]), np.float32([[0.5, 2]]), (1, 2)).values()
    array([[1. , 1.5, 8. ]], dtype=float32)
    """

    elements: Any
    scales: Any
    block: tuple[int | None, int | None]
    tensor: tuple[Any, float] | None = None

    def values(self):
        """Elements times scales in binary32, rounded; a tensor's factor is divided first and multiplied last."""
        with np.errstate(all="ignore"):
            values = self.elements * spread(self.scales, self.elements.shape, self.block)
            if self.tensor is not None:
                values = values * (self.tensor[0] / np.float32(self.tensor[1]))
        return values


class Factors(NamedTuple):
    """What a quantizer makes of the largest magnitudes of tiles: how numbers become elements, and their `Scaled`.

    The elements are the numbers, times ``before``, times the factor of their tile, or over it; each operation rounded
    to binary32, then rounded as the quantizer says.

    Parameters
    ----------
    factors : float32 array (blocks of rows, blocks of columns)
    scales, tensor
        As of `Scaled`.
    divided : bool
        Whether numbers are divided by the factors.
    before : float
    four_bits : bool
        Whether `softnum.train.recipes.to_e2m1` rounds, not `cast`.
    """

    factors: Any
    scales: Any
    tensor: tuple[Any, float] | None = None
    divided: bool = False
    before: float = 1.0
    four_bits: bool = False

    def of(self, x, block: tuple[int | None, int | None]):
        """What is rounded to elements of a float32 matrix.

        >>> x = np.float32([[1, 2, 3]])
        >>> Factors(np.float32([[2, 4]]), None).of(x, (1, 2)).tolist()
        [[2.0, 4.0, 12.0]]
        """
        with np.errstate(all="ignore"):
            x = x if self.before == 1.0 else np.float32(self.before) * x
            factors = spread(self.factors, x.shape, block)
            return x / factors if self.divided else x * factors


def spread(scales, shape: tuple[int, ...], block: tuple[int | None, int | None]):
    """The scale of each element of matrices of this shape.

    >>> spread(np.float32([[1, 2]]), (2, 3), (None, 2)).tolist()
    [[1.0, 1.0, 2.0], [1.0, 1.0, 2.0]]
    """
    for axis, part in zip((-2, -1), block, strict=True):
        if part != 1:
            scales = scales.repeat(part or max(shape[axis], 1), axis=axis)
    return scales[..., : shape[-2], : shape[-1]]


def tile_magnitudes(x, block: tuple[int | None, int | None]):
    """The largest magnitude of each tile of a matrix; of a matrix without numbers 0, where a tile is all of it.

    >>> tile_magnitudes(np.float32([[1, 2, 8], [4, 1, -9]]), (1, 2)).tolist()
    [[2.0, 8.0], [4.0, 9.0]]
    """
    sizes = np.abs(x)
    for axis, part in enumerate(block):
        if part is None:
            sizes = largest_magnitude(sizes, axis, keepdims=True)
        elif sizes.shape[axis]:
            while part % 2 == 0 and sizes.shape[axis] % part == 0:  # the larger of neighbours: faster than reduceat
                first, second = (sizes[k::2] if axis == 0 else sizes[:, k::2] for k in (0, 1))
                sizes, part = np.maximum(first, second), part // 2
            if part > 1:
                sizes = np.maximum.reduceat(sizes, np.arange(0, sizes.shape[axis], part), axis=axis)
    return sizes


def cast(x, fmt):
    """float32 numbers rounded to a format, to nearest even; what lies beyond its largest number becomes that number.

    So do the conversions of GPUs that saturate (``satfinite``), and PyTorch's casts to e4m3fn since version 2.13.

    >>> cast(np.float32([449, -1e9, np.inf]), "e4m3fn")
    array([ 448., -448.,  448.], dtype=float32)
    """
    return quantize(x, fmt, overflow="saturate")


def float32(x, what: str):
    """A matrix in float32, exactly; TypeError or ValueError if it is none.

    >>> float32([[1.5]], "TensorScaling")
    array([[1.5]], dtype=float32)
    """
    x = np.asarray(x)
    if format_of_dtype(x.dtype) is None and x.dtype.kind not in "iu":
        raise TypeError(f"{what} takes an array of numbers, got one of {x.dtype}")
    with np.errstate(all="ignore"):
        narrow = np.ascontiguousarray(x, dtype=np.float32)
        same = True if x.dtype == np.float32 else (narrow.astype(x.dtype) == x) | (x != x)
    if not np.all(same):
        raise ValueError(
            f"{what} computes in binary32, and {x[~same][0]!r} of this {x.dtype} array is no such number; "
            "round it first"
        )
    if narrow.ndim != 2:
        raise ValueError(f"{what} takes a matrix, got shape {narrow.shape}; reshape it to (rows, columns)")
    return narrow


def put_format(self) -> None:
    """The field ``format`` of a frozen dataclass as a format, of the name or format that it was given.

    >>> TensorScaling("e5m2").format.max
    57344.0
    """
    object.__setattr__(self, "format", format(self.format))


@dataclass(frozen=True)
class BlockScaling:
    """A scale for each tile: Transformer Engine's Float8BlockScaling, DeepSeek-V3's 1 x 128 and 128 x 128.

    q = cast(x * scale), with the scale of `scale_of_largest`.

    Parameters
    ----------
    format : format or str
    block : (int or None, int or None)
        Rows and columns of a tile; None: all of them. (1, None) gives each row a scale (torchao's rowwise).
    power_of_two : bool
    epsilon : float
        The least magnitude that a scale is made of.
    reference : str
        As in `scale_of_largest`; "jax" computes as "cuda" does.
    most : float
        What an infinite scale becomes: in Transformer Engine's functions for PyTorch the largest binary32 number, in
        its classes the largest number of x's type.

    Examples
    --------
    >>> x = np.float32([[1, 2, 8], [4, 1, 4]])
    >>> BlockScaling("e5m2", (1, 2))(x).scales.tolist()
    [[6.103515625e-05, 0.000244140625], [0.0001220703125, 0.0001220703125]]
    """

    format: Any = "e4m3fn"
    block: tuple[int | None, int | None] = (1, 128)
    power_of_two: bool = True
    epsilon: float = 0.0
    reference: str = "cuda"
    most: float = LARGEST

    def __post_init__(self) -> None:
        put_format(self)
        check_reference(self.reference)
        for size in self.block:
            if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
                raise ValueError(f"block must be two positive integers, or None for all, got {self.block!r}")

    def __call__(self, x, *, largest=None) -> Scaled:
        x = float32(x, type(self).__name__)
        tiles = tile_magnitudes(x, self.block) if largest is None else np.full((1, 1), largest, np.float32)
        found = self.factors(tiles)
        return Scaled(cast(found.of(x, self.block), self.format), found.scales, self.block)

    def factors(self, largest) -> Factors:
        """`Factors` of the largest magnitude of each tile."""
        return Factors(*scale_of_largest(
            largest, self.format.max, power_of_two=self.power_of_two, epsilon=self.epsilon, most=self.most,
            reference=self.reference,
        ))  # fmt: skip


class TensorScaling(BlockScaling):
    """One scale for a whole tensor, from its own largest magnitude: Transformer Engine's Float8CurrentScaling.

    A `BlockScaling` whose one tile is the tensor. It may be a part of one: called with ``largest=``, the scale is that
    of a tensor of this largest magnitude.

    Examples
    --------
    >>> scaled = TensorScaling("e4m3fn")(np.float32([[1, -3.5]]))
    >>> scaled.elements.tolist(), scaled.scales.tolist()
    ([[128.0, -448.0]], [[0.0078125]])
    >>> TensorScaling("e4m3fn")(np.float32([[1]]), largest=3.5).elements.tolist()
    [[128.0]]
    """

    def __init__(
        self, format="e4m3fn", power_of_two: bool = False, epsilon: float = 0.0, reference: str = "cuda",
        most: float = LARGEST,
    ) -> None:  # fmt: skip
        super().__init__(format, (None, None), power_of_two, epsilon, reference, most)


@dataclass
class Delayed:
    """What delayed scaling keeps of a tensor from step to step.

    Parameters
    ----------
    history : float32 array (steps,)
        The largest magnitudes, the newest first.
    scale : float32 array ()

    Examples
    --------
    >>> Delayed.start(4)
    Delayed(history=array([0., 0., 0., 0.], dtype=float32), scale=array(1., dtype=float32))
    """

    history: Any
    scale: Any = field(default_factory=lambda: np.ones((), np.float32))

    @classmethod
    def start(cls, length: int) -> Delayed:
        """No magnitude so far, and a scale of 1."""
        return cls(np.zeros(length, np.float32))


@dataclass(frozen=True)
class DelayedScaling:
    """One scale for a whole tensor, from the steps before: Transformer Engine's DelayedScaling.

    q = cast(x * scale), by the scale of the last step. The magnitude of x goes into the history's first place; `update`
    ends a step (`delayed_scale`).

    Parameters
    ----------
    format : format or str
    history : int
        Steps that are remembered.
    margin : float
    algorithm : str
        "max" or "most_recent".
    reference : str
        As in `delayed_scale`.

    Examples
    --------
    >>> scaling = DelayedScaling("e4m3fn", history=2)
    >>> state = scaling.start()
    >>> for _ in range(2):
    ...     scaled = scaling(np.float32([[1, -7]]), state)
    ...     scaling.update(state)
    >>> scaled.elements.tolist(), scaled.scales.tolist()
    ([[64.0, -448.0]], [[0.015625]])
    """

    format: Any = "e4m3fn"
    history: int = 1024
    margin: float = 0
    algorithm: str = "max"
    reference: str = "cuda"

    def __post_init__(self) -> None:
        put_format(self)
        check_reference(self.reference)
        if isinstance(self.history, bool) or not isinstance(self.history, int) or self.history < 1:
            raise ValueError(f"history must be a positive number of steps, got {self.history!r}")
        if self.algorithm not in ("max", "most_recent"):
            raise ValueError(f"algorithm must be 'max' or 'most_recent', got {self.algorithm!r}")

    def start(self) -> Delayed:
        """The state before the first step."""
        return Delayed.start(self.history)

    def __call__(self, x, state: Delayed) -> Scaled:
        x = float32(x, "DelayedScaling")
        found = self.factors(tile_magnitudes(x, (None, None)), state)
        return Scaled(cast(found.of(x, (None, None)), self.format), found.scales, (None, None))

    def factors(self, largest, state: Delayed) -> Factors:
        """`Factors` by the scale of the last step; the largest magnitude, of one tile, goes into the history."""
        state.history[0] = np.maximum(state.history[0], largest[0, 0])
        scale = np.reshape(state.scale, (1, 1))
        with np.errstate(all="ignore"):
            return Factors(scale, np.float32(1) / scale)

    def update(self, state: Delayed) -> None:
        """End a step: the scale of the next one follows from the history."""
        state.scale, state.history = delayed_scale(
            state.history, state.scale, self.format.max, margin=self.margin, algorithm=self.algorithm,
            reference=self.reference,
        )  # fmt: skip
