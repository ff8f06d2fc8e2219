"""Custom arithmetic at table speed: an operation's results are kept once as many have been asked for as a table has."""

from __future__ import annotations

from math import prod

import numpy as np

from softnum.arrays.checks import check_codes
from softnum.arrays.conversion import invalid_code
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.codec import Rounding
from softnum.formats.custom.formats import CustomFormat
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.formats.operation_names import USER_OPERANDS
from softnum.ops.arithmetic import scalb
from softnum.ops.custom import Operator, table_of
from softnum.ops.operation import apply, as_values
from softnum.runtime import _tables
from softnum.runtime.threads import for_ranges

__all__ = ["CustomArithmetic", "into_custom", "operate", "table_in_part"]

_WORTH = 16  # a table is made when so many times the elements asked for are as many as it has
_GRAIN = 1 << 19  # elements for each thread


def into_custom(name, codes, formats, out, rounding, overflow, invalid, extra, options) -> np.ndarray:
    """`softnum.ops.operation.apply` where the result is of a custom format, or says how operands of one compare."""
    for option, given in options.items():
        if given:
            raise ValueError(f"{name}: {option}= is not defined for {out}, which raises no exceptions; leave it out")
    if name == "total_order":
        return out.in_order(*codes).astype(np.uint8)
    if name == "classify":
        return apply(name, tuple(as_values(codes, formats)[0]), format("binary64"), codes_out=False)
    return operate(Operator(name, formats, out, rounding, overflow), [*codes, *(c for c, _ in extra)], invalid)


def operate(operation: Operator, codes, invalid) -> np.ndarray:
    """The results of an operation on checked codes; where one has no code, that of `invalid`, or a ValueError."""
    instead = invalid_code(invalid, operation.out)
    found, lost = _looked_up(operation, codes) or operation(*codes)
    if lost is not None and lost.any():
        operation(*(np.broadcast_to(c, lost.shape)[lost] for c in codes))  # a function of the user's that fails, raises
        if isinstance(invalid, str):
            raise_no_code(operation.out, operation.name)
        found = np.where(lost, found.dtype.type(instead), found)
    return np.asarray(found)


def table_in_part(fmt, name: str, rounding: str = "nearest_even", overflow=None) -> np.ndarray:
    """All results of an operation of two operands of up to 8 bits, int16; -1 where there is none."""
    found, lost = _table(Operator(name, (fmt, fmt), fmt, rounding, overflow))
    return np.where(np.False_ if lost is None else lost, np.int16(-1), found.astype(np.int16))


def _key(operation: Operator) -> tuple:
    return operation.name, operation.formats, operation.rounding, operation.overflow


def _table(operation: Operator):
    tables = operation.out._tables
    key = _key(operation)
    if not isinstance(tables.get(key), tuple):
        made = table_of(operation)
        if made is None:
            return None
        tables[key] = made
    return tables[key]


def _looked_up(operation: Operator, codes):
    """What a table holds, if there is one or it is worth making; else None."""
    tables, key = operation.out._tables, _key(operation)
    bits = sum(f.bits for f in operation.formats)
    if operation.name == "scalb" or bits > 16:
        return None
    shape = np.broadcast_shapes(*(c.shape for c in codes))
    if not isinstance(tables.get(key), tuple):
        asked = tables.get(key, 0) + prod(shape)
        if asked * _WORTH < 1 << bits:
            tables[key] = asked
            return None
    made = _table(operation)
    if made is None:
        return None
    table, lost = made
    if len(codes) != 2 or not all(t == np.uint8 for t in (table.dtype, *(c.dtype for c in codes))):
        return table[tuple(codes)], None if lost is None else lost[tuple(codes)]
    a, b = (np.ascontiguousarray(np.broadcast_to(c, shape)) for c in codes)
    found = _of_bytes(table, a, b).reshape(shape)  # a scalar became an array of one
    return found, None if lost is None else _of_bytes(lost.view(np.uint8), a, b).view(bool).reshape(shape)


def _of_bytes(table, a, b) -> np.ndarray:
    out = np.empty(a.shape, np.uint8)
    for_ranges(out.size, lambda start, stop: _tables.look_up(table, a, b, out, start, stop), None, _GRAIN)
    return out


class CustomArithmetic:
    """Operations into custom formats, `softnum.formats.codec.Arithmetic`."""

    carriers = ("codes",)

    def check_modes(self, fmt, rounding, overflow) -> None:
        """ValueError unless results are rounded to the format in this mode and under this rule."""
        fmt.check_modes(rounding_name(rounding), overflow)

    def users_own(self, name: str, formats, out_fmt) -> bool:
        """Whether an operation is a function of the user's on codes."""
        return Operator(name, formats, out_fmt).users_own

    def check_reach(self, name: str, fmt, out_fmt, rounding, overflow, stochastic_bits) -> None:
        """Nothing: what the results pass through is checked there."""

    def prepared(self, name: str, formats, out_fmt, rounding, overflow):
        """A function of codes of these formats that returns the results' codes."""
        operation = Operator(name, formats, out_fmt, rounding, overflow)
        return lambda *codes: operate(operation, codes, "raise")

    def plain(self, name: str, formats, out_fmt, rounding, overflow, stochastic_bits) -> None:
        """None: a user's function may be called for each element."""

    def apply(self, name, codes, formats, out_fmt, given: Rounding, flush_inputs, nan, extra, codes_out, compute):
        """(codes, None)"""
        options = {
            "return_flags": given.return_flags, "tininess": given.tininess != "after", "flush_inputs": flush_inputs,
            "flush_results": given.flush_results, "nan": nan != "canonical",
        }  # fmt: skip
        found = into_custom(
            name, codes, formats, out_fmt, given.rounding, given.overflow, given.invalid, extra, options
        )
        return found, None

    def run(self, fmt, name: str, codes, rounding, overflow, invalid) -> np.ndarray:
        """`CustomFormat.apply`."""
        operands = 2 if name == "scalb" else USER_OPERANDS.get(name, len(codes))
        if len(codes) != operands:
            raise TypeError(f"{name} has {operands} operands, got {len(codes)}")
        if name == "scalb":
            return scalb(*codes, fmt, rounding=rounding, overflow=overflow, invalid=invalid)
        operation = Operator(name, (fmt,) * operands, fmt, rounding, overflow)
        checked = [check_codes(c, fmt, f"codes of operand {i}") for i, c in enumerate(codes)]
        return operate(operation, checked, invalid)

    def table(self, fmt, name: str) -> np.ndarray:
        """`CustomFormat.table`."""
        operands = USER_OPERANDS.get(name, 1)
        operation = Operator(name, (fmt,) * operands, fmt)
        made = _table(operation)
        if made is None:
            raise ValueError(f"{name} of {fmt} has no table: the limit is 16 bits for one operand and 8 bits for two")
        if made[1] is not None:
            first = np.argwhere(made[1])[0]
            operation(*(np.array([i], fmt.storage_dtype) for i in first))  # a function of the user's that fails, raises
            where = ", ".join(f"0x{int(i):02x}" for i in first)
            raise ValueError(f"{name} of {fmt} has no table: {name} of {where} is NaN, which the format cannot encode")
        return made[0]


CustomFormat.arithmetic = CustomArithmetic()
