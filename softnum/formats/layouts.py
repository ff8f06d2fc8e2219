"""Layouts in memory that hardware reads block formats in.

Elements pack with `softnum.arrays.pack` along the blocked axis, a whole number of bytes a block where the block size is
a multiple of 8: ``sn.arrays.pack(a.codes, a.format.element)`` of a BlockArray blocked along its last axis. Scales take
a byte each; NVIDIA's matrix units read them in tiles.

Source: NVIDIA cuBLAS documentation, "1D block scaling factors layout", and cuDNN's "128x4 tiled layout".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["tile_scales", "untile_scales"]

_ROWS, _COLUMNS = 128, 4


def _tiles(rows: int, columns: int) -> tuple[int, int]:
    return -(-rows // _ROWS), -(-columns // _COLUMNS)


def tile_scales(scales: ArrayLike) -> np.ndarray:
    """Scales in tiles of 128 rows and 4 blocks, as NVIDIA's block-scaled matrix units read them.

    Parameters
    ----------
    scales : array_like of uint8, shape (..., rows, blocks)
        Codes of the scales of an operand blocked along its last axis.

    Returns
    -------
    ndarray of uint8, shape (..., tiles of rows, tiles of blocks, 32, 4, 4)
        In C order the bytes as they lie in memory: scale (r, j) is byte
        ``(r % 32) * 16 + r % 128 // 32 * 4 + j % 4`` of tile ``(r // 128, j // 4)``. What has no scale is 0.

    Raises
    ------
    TypeError
        If the scales are no bytes.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> tiles = sn.formats.tile_scales(np.arange(64, dtype=np.uint8).reshape(64, 1))
    >>> tiles.shape, tiles.ravel()[:5].tolist()
    ((1, 1, 32, 4, 4), [0, 0, 0, 0, 32])
    """
    scales = np.asarray(scales)
    if scales.dtype != np.uint8 or scales.ndim < 2:
        raise TypeError(
            f"tile_scales needs uint8 of shape (..., rows, blocks), got {scales.dtype} of shape {scales.shape}"
        )
    *lead, rows, columns = scales.shape
    down, across = _tiles(rows, columns)
    full = np.zeros((*lead, down * _ROWS, across * _COLUMNS), np.uint8)
    full[..., :rows, :columns] = scales
    tiles = full.reshape(*lead, down, 4, 32, across, _COLUMNS)  # ..., tile, row // 32, row % 32, tile, block
    order = [*range(len(lead)), *(len(lead) + i for i in (0, 3, 2, 1, 4))]
    return np.ascontiguousarray(tiles.transpose(order))


def untile_scales(tiles: ArrayLike, rows: int, blocks: int) -> np.ndarray:
    """What `tile_scales` tiled: uint8 of shape (..., rows, blocks), from the tiles or their bytes.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> scales = np.arange(130 * 5, dtype=np.uint8).reshape(130, 5)
    >>> bool((sn.formats.untile_scales(sn.formats.tile_scales(scales), 130, 5) == scales).all())
    True
    """
    if isinstance(tiles, (bytes, bytearray, memoryview)):
        tiles = np.frombuffer(tiles, np.uint8)
    tiles = np.asarray(tiles)
    down, across = _tiles(rows, blocks)
    if tiles.dtype == np.uint8 and tiles.ndim == 1 and tiles.size == down * across * _ROWS * _COLUMNS:
        tiles = tiles.reshape(down, across, 32, 4, _COLUMNS)
    if tiles.dtype != np.uint8 or tiles.shape[-5:] != (down, across, 32, 4, _COLUMNS):
        raise ValueError(
            f"untile_scales: {rows} rows of {blocks} scales take {down * across} tiles of {_ROWS * _COLUMNS} bytes, "
            f"got {tiles.dtype} of shape {tiles.shape}"
        )
    lead = tiles.ndim - 5
    order = [*range(lead), *(lead + i for i in (0, 3, 2, 1, 4))]
    full = tiles.transpose(order).reshape(*tiles.shape[:lead], down * _ROWS, across * _COLUMNS)
    return full[..., :rows, :blocks]
