"""What a kernel for products is given: operands in their layouts, checked and converted, and where results go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from softnum.custom import CustomFormat
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda
from softnum.kernels.device.entries import operand_library
from softnum.kernels.device.layouts import matrix_geometry
from softnum.kernels.device.value_tables import find_codes

__all__ = ["Operand", "Problem", "matrices", "operand_kernel", "stand_in", "to_codes"]

_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Operand:
    """An array on the device that a product reads (or, as its result, writes) in some layout.

    Parameters
    ----------
    flat : device array of one dimension
        Carriers (float32, float64), or codes.
    layout : str
        Of `softnum.kernels.device.layouts`.
    geometry : device array of int64
        The layout's numbers.
    shape : tuple of int
        What the user gave; flat are its elements in C order, or in Fortran order if `turned`. For messages.
    name : str
        "a", "b", "c". For messages.
    format
        Whose codes flat holds; None for carriers.
    """

    flat: object
    layout: str
    geometry: object
    shape: tuple
    name: str
    format: object = None
    turned: bool = False

    def place(self, at: int) -> list[int]:
        """Where in the user's array the element at an index of flat stands."""
        where = np.unravel_index(at, self.shape[::-1] if self.turned else self.shape)
        return [int(i) for i in (where[::-1] if self.turned else where)]


@dataclass(frozen=True, eq=False)
class Problem:
    """A product of matrices under a unit, or many: ``out[batch] = unit's sum over k of a[batch] * b[batch]``.

    Parameters
    ----------
    unit
    a, b, c : Operand
        Elements (row m, column k), (row k, column n), (m, n); c is None for +0. As the user gave them: an engine makes
        codes (`to_codes`) or checked carriers of them.
    m, n, k, batches : int
        None of m, n, batches is 0.
    words : int
        NO_WORDS, FROM_KEY or FROM_ARRAY.
    keys : four int
        Philox keys of domains 1 and 2.
    counters : device array of int64, shape (batches, 3)
        The row, the column and the batch that an element (0, 0) of each batch has in the Philox counters.
    random : device array of uint32, shape (batches, M, N, steps, 2)
        The words, if words is FROM_ARRAY; else a stand-in.
    out : Operand
        Carriers: float32 if that holds the result's format, else float64.
    status : device array of uint32
        One for each of ``unit.rounded_to``; an engine sets it if a NaN met that format, and it has none.
    """

    unit: object
    a: Operand
    b: Operand
    c: Operand | None
    m: int
    n: int
    k: int
    batches: int
    words: int
    keys: tuple[int, int, int, int]
    counters: object
    random: object
    out: Operand
    status: object


@lru_cache(maxsize=64)
def _copy_kernel(dtype: str):
    """The kernel ``(x, flat)``: a matrix of any strides, row after row."""

    @cuda.jit
    def kernel(x, flat):
        i = cuda.grid(1)
        if i < flat.shape[0]:
            row = i // x.shape[1]
            flat[i] = x[row, i - row * x.shape[1]]

    return kernel


def matrices(x, name: str, which, format=None, caller: str = "matmul") -> Operand:
    """An array on the device as matrices of its last two dimensions: without a copy in C order, or a transposed matrix.

    which: for each batch, which of them belongs to it.
    """
    shape = tuple(int(n) for n in x.shape)
    rows, columns = shape[-2:]
    if x.ndim == 2 and x.size and not _cuda.is_contiguous(x) and _cuda.is_contiguous(x.T):
        return Operand(
            x.T.reshape(x.size), "columns", matrix_geometry(1, rows, np.zeros(len(which))), shape, name, format, True
        )
    geometry = matrix_geometry(columns, 1, np.asarray(which, np.int64) * rows * columns)
    return Operand(_contiguous(x, f"{caller}: {name}"), "rows", geometry, shape, name, format)


def stand_in(dtype, layout: str = "matrix") -> Operand:
    """What a kernel is given for an operand that is not there."""
    return Operand(_cuda.filled(1, dtype, 0), layout, matrix_geometry(0, 0, [0]), (1, 1), "")


def _contiguous(x, what: str):
    """The elements in C order, as one dimension: without a copy where they lie so."""
    if x.size == 0:
        return _cuda.empty(1, x.dtype)[:0]
    matrix, one_row = _cuda.rows(x, what)
    if one_row:
        return matrix.reshape(x.size)
    flat = _cuda.empty(x.size, x.dtype)
    _cuda.launch(_copy_kernel(x.dtype.name), -(-x.size // _cuda.THREADS), _cuda.THREADS, matrix, flat)
    return flat


@lru_cache(maxsize=256)
def operand_kernel(fmt, carrier: str):
    """The kernel ``(x, codes, first_bad)``: codes of carriers' bits; the least index of what has none."""
    f = _cuda.bind(operand_library(fmt, carrier))
    code, status = f.code, f.status

    @cuda.jit
    def kernel(x, codes, first_bad):
        i = cuda.grid(1)
        if i < x.shape[0]:
            bits = x[i]
            if status(bits) != 0:
                cuda.atomic.min(first_bad, 0, i)
            codes[i] = code(bits)

    return kernel


def raise_if_bad(operand: Operand, fmt, first_bad, caller: str) -> None:
    """ValueError that names the element at the index in first_bad, if there is one."""
    at = int(_cuda.to_host(first_bad)[0])
    if at != _NONE:
        found = _cuda.to_host(operand.flat[at : at + 1])[0]
        raise ValueError(
            f"{caller}: {operand.name}{operand.place(at)} = {found!r} is no value of {fmt}; "
            f"round it first: softnum.quantize({operand.name}, {str(fmt)!r})"
        )


def to_codes(operand: Operand, fmt, caller: str = "matmul") -> Operand:
    """The operand as codes of a format.

    Raises ValueError for an element that is no value of it, TypeError for a custom format of more than 16 bits.
    """
    if operand.format is not None:
        if operand.format != fmt:
            raise ValueError(
                f"{caller}: {operand.name} is an Array of {operand.format}, but the unit's operand is {fmt}"
            )
        return operand
    size = operand.flat.shape[0]
    codes = _cuda.empty(max(size, 1), fmt.storage_dtype)
    if size:
        first_bad = _cuda.filled(1, np.int64, _NONE)
        if isinstance(fmt, CustomFormat):
            find_codes(fmt, operand.flat, codes, first_bad, caller)
        else:
            kernel = operand_kernel(fmt, operand.flat.dtype.name)
            blocks = -(-size // _cuda.THREADS)
            _cuda.launch(kernel, blocks, _cuda.THREADS, _cuda.bits(operand.flat), codes, first_bad)
        raise_if_bad(operand, fmt, first_bad, caller)
    return replace(operand, flat=codes, format=fmt)
