"""The tables of a MadUnit that computes in custom formats, made on the host by the formats' own operations.

A product is looked up by its operands' codes, and gives a row; a step's sum by the row and the sum's code. Where the
sum is in a wide format of softnum's own, the row gives the product's value, which is added by the definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode
from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.modes import Flags
from softnum.mac.products.custom.codes import CustomSum, factors
from softnum.ops.custom import Operator
from softnum.ops.operation import apply

__all__ = ["LOST", "NO_ROW", "SumTables", "tables_of"]

LOST = -1  # a cell where there is no code
NO_ROW = 2**32 - 1  # a row where there is no code

_SUM_BITS = 8  # of a sum by table
_PRODUCT_BITS = 20  # of both operands together
_CELLS = 1 << 25


@dataclass(frozen=True, eq=False)
class SumTables:
    """What a unit looks up. Each part of `cells` and `values` is followed by the next.

    Parameters
    ----------
    rows : ndarray of uint32, shape (2**bits of a, 2**bits of b)
        The row of a product; NO_ROW where it has no code.
    cells : ndarray of int16
        Sums [row, sum], additions of lanes [x, y] and of chunks [outer, part], as far as they are by table; LOST where
        there is no code.
    values : ndarray of uint64
        Bits: of the results in the carrier, by code, where the result is of a custom format; then, in binary64, of what
        is added by the definition: products by row, or sums of chunks by code.
    by_table : bool
        Whether steps and additions of lanes are; else the definition adds the products' values.
    joins_at, outers_at, results_at, addends_at : int
        Where parts begin; -1: there is none. Without outers_at, chunks are added by the definition.
    """

    rows: np.ndarray
    cells: np.ndarray
    values: np.ndarray
    by_table: bool
    joins_at: int
    outers_at: int
    results_at: int
    addends_at: int

    @property
    def sums(self) -> int:
        """Number of cells of steps."""
        return self.joins_at if self.by_table else 0


def _every(fmt) -> np.ndarray:
    return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)


@of_format
def _results(out, unit, name: str, codes, formats, rounding: str):
    """(codes of an operation's results, where there is none or None)"""
    options = {"rounding": rounding, "overflow": unit.overflow_of(out)}
    found, flags = apply(name, tuple(codes), tuple(formats), out_fmt=out, invalid=0.0, return_flags=True, **options)
    return found, None if out.has_nan else (flags & Flags.INVALID) != 0


@_results.custom
def _own_results(out, unit, name: str, codes, formats, rounding: str):
    return Operator(name, formats, out, rounding, unit.overflow)(*codes, partly=True)


def _operate(unit, name: str, codes, formats, out, rounding=None):
    """The codes of an operation, int64, LOST where there is none."""
    found, lost = _results(out, unit, name, codes, formats, rounding or unit.rounding)
    found = np.asarray(found).astype(np.int64)
    return found if lost is None else np.where(lost, LOST, found)


def _small(fmt) -> bool:
    return fmt.bits <= _SUM_BITS


def _unfit(unit, why: str):
    return TypeError(
        f"matmul: kernels compute in custom formats by tables, and this unit has none ({unit}): {why}; copy the CUDA "
        "arrays to the host first"
    )


def _products(unit) -> tuple[np.ndarray, np.ndarray | None]:
    """(the row of each pair of codes, the codes of the rows' products or None where a step rounds once)"""
    a, b = unit.operand
    if isinstance(unit, CustomSum):
        return np.broadcast_to(np.arange(1 << b.bits), (1 << a.bits, 1 << b.bits)), _every(b)
    codes = _operate(unit, "multiply", (_every(a)[:, None], _every(b)), (a, b), unit.product, unit.product_mode)
    found, rows = np.unique(codes, return_inverse=True)
    rows = rows.reshape(codes.shape)
    if found[0] == LOST:
        rows, found = np.where(codes == LOST, NO_ROW, rows - 1), found[1:]
    return rows, found.astype(unit.product.storage_dtype)


def _steps(unit) -> tuple[np.ndarray, np.ndarray]:
    """(rows, sums [row, code]) of a unit whose sums are by table."""
    a, b = unit.operand
    acc = unit.accumulator
    if unit.product is None and not isinstance(unit, CustomSum):
        pairs = factors(unit)
        _, first, rows = np.unique(pairs, return_index=True, return_inverse=True)
        _check_cells(unit, len(first))
        x, y = (c[:, None] for c in (_every(a)[first >> b.bits], _every(b)[first & ((1 << b.bits) - 1)]))
        return rows, _operate(unit, "fma", (x, y, _every(acc)), (a, b, acc), acc)
    rows, found = _products(unit)
    _check_cells(unit, len(found))
    return rows, _operate(unit, "add", (_every(acc), found[:, None]), (acc, unit.product or b), acc)


def _check_cells(unit, rows: int) -> None:
    if rows << unit.accumulator.bits > _CELLS:
        raise _unfit(unit, f"{rows} products and sums of {unit.accumulator.bits} bits make more than 2**25 sums")


def _value_bits(codes, fmt, dtype) -> np.ndarray:
    """The values of codes as bits of a float type, in 64."""
    values = np.ascontiguousarray(decode(codes, fmt, dtype))
    return values.view(f"u{values.itemsize}").astype(np.uint64)


@of_format
def _check_sums(fmt, unit) -> None:
    """TypeError for a format whose sums must be by table, and are too many."""


@_check_sums.custom
def _check_own_sums(fmt, unit) -> None:
    if not _small(fmt):
        raise _unfit(unit, f"{fmt} has {fmt.bits} bits, and sums by table have {_SUM_BITS} at most")


@of_format
def _result_bits(outer, unit) -> np.ndarray:
    """The bits of all results, where they are not computed of their codes."""
    return np.zeros(0, np.uint64)


@_result_bits.custom
def _own_result_bits(outer, unit) -> np.ndarray:
    if not _small(unit.accumulator):
        acc = unit.accumulator
        raise _unfit(unit, f"chunks of {acc} are added in {outer}, and {acc} has more than {_SUM_BITS} bits")
    return _value_bits(_every(outer), outer, next(d for d in (np.float32, np.float64) if fits(outer, d)))


@lru_cache(maxsize=32)
def tables_of(unit) -> SumTables:
    """The tables of a MadUnit in custom formats.

    Raises TypeError where one of them would be too large: the sums' format has more than 8 bits and is custom, say.
    """
    (a, b), acc, outer = unit.operand, unit.accumulator, unit.outer
    if a.bits + b.bits > _PRODUCT_BITS:
        raise _unfit(unit, f"{a} and {b} have {a.bits + b.bits} bits together, and {_PRODUCT_BITS} is the limit")
    for fmt in (acc, outer):
        _check_sums(fmt, unit)
    by_table = _small(acc)
    outer_by_table = by_table and _small(outer)
    results, addends, cells, joins_at, outers_at = _result_bits(outer, unit), [], [], -1, -1
    if by_table:
        rows, sums = _steps(unit)
        joins = _operate(unit, "add", (_every(acc)[:, None], _every(acc)), (acc, acc), acc)
        cells, joins_at = [sums, joins], sums.size
        if unit.chunk and outer_by_table:
            cells.append(_operate(unit, "add", (_every(outer)[:, None], _every(acc)), (outer, acc), outer))
            outers_at = sums.size + joins.size
        elif unit.chunk:
            addends = _value_bits(_every(acc), acc, np.float64)
    else:
        rows, found = _products(unit)
        addends = _value_bits(found, unit.product, np.float64)
    return SumTables(
        np.ascontiguousarray(rows).reshape(1 << a.bits, 1 << b.bits).astype(np.uint32),
        np.concatenate([np.zeros(0, np.int16), *(c.ravel() for c in cells)]).astype(np.int16),
        np.concatenate([np.zeros(0, np.uint64), results, addends]).astype(np.uint64),
        by_table, joins_at, outers_at, 0 if len(results) else -1, len(results) if len(addends) else -1,
    )  # fmt: skip
