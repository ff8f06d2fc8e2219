"""How a matrix of a product lies in memory: an index for each batch, row and column, given a geometry of integers.

A layout's name picks the code, a geometry (int64 on the device) the numbers. "matrix" is any matrix of two strides, of
which "rows" (columns next to each other) and "columns" (rows next to each other) are two that kernels may read by
several elements at a time; `add_layout` takes others, which an implicit product reads in place.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda

__all__ = ["add_layout", "along_rows", "index_of", "loader", "matrix_geometry", "matrix_numbers"]

_LAYOUTS: dict[str, tuple] = {}


def add_layout(name: str, index, padded: bool = False, along_rows: bool = False) -> None:
    """Make a layout known: ``index(geometry, batch, row, column)`` is where an element lies, an int64.

    index is a function in the subset of Python that Numba compiles, in integers alone. padded: it may be negative,
    where 0 is read. along_rows: elements that are neighbours in memory have neighbouring rows, and not columns.
    """
    if name in _LAYOUTS:
        raise ValueError(f"there is a layout {name!r} already")
    _LAYOUTS[name] = (cuda.jit(device=True)(index), padded, along_rows)


def _matrix(geometry, batch, row, column):
    return geometry[2 + batch] + row * geometry[0] + column * geometry[1]


def _rows(geometry, batch, row, column):
    return geometry[2 + batch] + row * geometry[0] + column


def _columns(geometry, batch, row, column):
    return geometry[2 + batch] + row + column * geometry[1]


add_layout("matrix", _matrix)
add_layout("rows", _rows)
add_layout("columns", _columns, along_rows=True)


def index_of(layout: str):
    """The device function ``at(geometry, batch, row, column)`` of a layout."""
    return _LAYOUTS[layout][0]


def along_rows(layout: str) -> bool:
    """Whether neighbours in memory have neighbouring rows: threads that load neighbours take those."""
    return _LAYOUTS[layout][2]


@lru_cache(maxsize=64)
def loader(layout: str, dtype: str, zero: int = 0):
    """The device function ``load(flat, geometry, batch, row, column)``: an element of a one-dimensional array.

    zero: what stands for 0 where a layout is padded: the code of it, if elements are codes of a custom format.
    """
    at, padded, _ = _LAYOUTS[layout]
    zero = np.dtype(dtype).type(zero)

    @cuda.jit(device=True)
    def load(flat, geometry, batch, row, column):
        i = at(geometry, batch, row, column)
        if padded and i < 0:
            return zero
        return flat[i]

    return load


def matrix_numbers(row_stride: int, column_stride: int, starts) -> np.ndarray:
    """The geometry of "matrix", "rows" and "columns": two strides, and for each batch where its matrix begins."""
    return np.concatenate([np.array([row_stride, column_stride], np.int64), np.asarray(starts, np.int64)])


def matrix_geometry(row_stride: int, column_stride: int, starts):
    """The same on the device."""
    return _cuda.constant(matrix_numbers(row_stride, column_stride, starts))
