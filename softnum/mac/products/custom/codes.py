"""Units that multiply and add in custom formats: `MadUnit` with a CustomFormat as accumulator, product or outer sum.

A step is what the formats' own operations make of it, ``acc = add(acc, multiply(a, b))``, or without a format of the
products ``acc = fma(a, b, acc)``. Sums of posits and takums run over values in C (csrc/products/tapered), other
accumulators of up to 8 bits over look-up tables there (csrc/products/tables); other steps call the operations over
arrays. All are the same steps in the same order.
"""

from __future__ import annotations

import numpy as np

from softnum.arrays.conversion import decode
from softnum.formats.facts import facts, fits
from softnum.formats.logarithmic import products_of
from softnum.formats.modes import Flags
from softnum.mac.mad import MadUnit
from softnum.mac.order import reduction_order
from softnum.ops.operation import apply, arithmetic_of
from softnum.runtime import _tables

__all__ = ["CustomGemm", "CustomSum", "factors", "zero_code"]

_TABLE_BITS = 8  # of operands and accumulators of sums by table
_SHORT_OF_SINGLE, _LAST_OF_SINGLE = 22, -149  # of float32: sums rounded to odd decide so many bits; the last place
_LEAST_TAKUM = 6  # bits of a code


class CustomSum(MadUnit):
    """A MadUnit whose step is the addition alone: operands are (ones, addends)."""


class _Steps:
    """The operations of a unit, over arrays of codes."""

    def __init__(self, unit: MadUnit) -> None:
        self.unit = unit
        a, b = unit.operand
        acc, outer = unit.accumulator, unit.outer
        self.join = self._operation("add", (acc, acc), acc)
        self.outer = self._operation("add", (outer, acc), outer)
        self.plain = isinstance(unit, CustomSum)
        self.product = self.add = self.fused = None
        if self.plain:
            self.add = self._operation("add", (acc, b), acc)
        elif unit.product is None:
            self.fused = self._operation("fma", (a, b, acc), acc)
        else:
            self.product = self._operation("multiply", (a, b), unit.product, unit.product_mode)
            self.add = self._operation("add", (acc, unit.product), acc)

    def _operation(self, name: str, formats, out, rounding: str | None = None):
        """codes -> codes of out, in the unit's modes."""
        rounding = rounding or self.unit.rounding
        return arithmetic_of(formats, out).prepared(name, tuple(formats), out, rounding, self.unit.overflow_of(out))

    def accumulate(self, acc, a, b):
        """One step; codes that broadcast."""
        if self.plain:
            return self.add(acc, b)
        return self.fused(a, b, acc) if self.product is None else self.add(acc, self.product(a, b))

    def over(self, acc, a, b):
        """The steps of all k: a (M, K), b (K, N)."""
        for k in range(a.shape[1]):
            acc = self.accumulate(acc, a[:, k, None], b[k])
        return acc

    def over_each(self, acc, a, b):
        """The steps of all k of N sums, each of operands of its own: a (N, K), b (K, N)."""
        for k in range(a.shape[1]):
            acc = self.accumulate(acc, a[:, k], b[k])
        return acc


def _every(fmt) -> np.ndarray:
    return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)


def _special(fmt) -> bool:
    return fmt.has_nan or fmt.infinities


def factors(unit: MadUnit) -> np.ndarray:
    """A number for each pair of the operands' codes: the same one where fma cannot tell the pairs apart."""
    pairs = np.arange(1 << sum(f.bits for f in unit.operand), dtype=np.uint64)
    (a, b), acc = unit.operand, unit.accumulator
    if not (a.values_are_exact and b.values_are_exact):
        return products_of(a, b)
    if acc.arithmetic.users_own("fma", (a, b, acc), acc):
        return pairs
    codes = (_every(a)[:, None], _every(b))
    products, flags = apply("multiply", codes, (a, b), out_fmt="binary64", rounding="to_odd", return_flags=True)
    return pairs if (flags & Flags.INEXACT).any() else products.ravel()


class _Tables:
    """The steps of a unit as look-ups: where each product's row begins in the table of sums, and its rows."""

    def __init__(self, steps: _Steps) -> None:
        unit = steps.unit
        a, b = (_every(f) for f in unit.operand)
        codes = _every(unit.accumulator)
        if steps.plain:
            rows, results = np.broadcast_to(np.arange(len(b)), (len(a), len(b))), steps.add(codes, b[:, None])
        elif steps.product is None:
            _, pairs, rows = np.unique(factors(unit), return_index=True, return_inverse=True)
            results = steps.fused(a[pairs // len(b)][:, None], b[pairs % len(b)][:, None], codes)
        else:
            found, rows = np.unique(steps.product(a[:, None], b), return_inverse=True)
            results = steps.add(codes, found[:, None])
        self.product = np.ascontiguousarray(rows.reshape(len(a), len(b)).astype(np.uint32) * np.uint32(len(codes)))
        self.sum = np.concatenate([results.ravel(), np.zeros(_tables.SLACK, np.uint8)])

    @classmethod
    def of(cls, steps: _Steps) -> _Tables | None:
        """The tables; None where the formats are too wide, or some step has no result."""
        acc, operands = steps.unit.accumulator, steps.unit.operand
        always = acc.has_nan or not (_special(acc) or any(_special(f) for f in operands))
        if not always or any(f.bits > _TABLE_BITS for f in (*operands, acc)):
            return None
        try:
            return cls(steps)
        except ValueError:  # of codes that may never meet: the steps raise it again where they do
            return None

    def over(self, acc, a, b):
        """The steps of all k, in C."""
        acc = np.array(acc, order="C")  # which is written to
        _tables.sums(self.product, self.sum, a, b, acc)
        return acc


class _Values:
    """The steps of a unit whose roundings are those of bit strings, on values in a float type."""

    def __init__(self, unit: MadUnit, dtype) -> None:
        self.unit, self.dtype = unit, np.dtype(dtype)

    @classmethod
    def of(cls, unit: MadUnit) -> _Values | None:
        """The steps in float32 or else float64; None outside the domain of csrc/products/tapered/body.h."""
        rounded = [f for f in (unit.accumulator, unit.product) if f is not None]
        if any(f.bit_strings is None for f in rounded) or not all(f.values_are_exact for f in unit.operand):
            return None
        takums = [f for f in rounded if f.bit_strings[1]]
        held, (a, b) = (*unit.operand, *rounded), map(facts, unit.operand)
        products = a * b
        if (
            not takums and all(fits(f, np.float32) and facts(f).precision <= _SHORT_OF_SINGLE for f in rounded)
            and all(fits(f, np.float32) for f in held) and products.last >= _LAST_OF_SINGLE
        ):  # fmt: skip
            return cls(unit, np.float32)
        exact = products.precision <= 53 and products.last >= -1074 and products.top < 1022
        if exact and all(fits(f, np.float64) for f in held) and all(f.bits >= _LEAST_TAKUM for f in takums):
            return cls(unit, np.float64)
        return None

    def over(self, acc, a, b):
        """The steps of all k, in C."""
        unit, (a_format, b_format) = self.unit, self.unit.operand
        sums = np.ascontiguousarray(decode(acc, unit.accumulator, self.dtype))
        product = None if unit.product is None else unit.product.bit_strings
        x, y = decode(a, a_format, self.dtype), np.ascontiguousarray(decode(b, b_format, self.dtype))
        _tables.tapered_sums(unit.accumulator.bit_strings, product, x, y, sums)
        return unit.accumulator.codec.codes_of_values(sums, unit.accumulator)


class CustomGemm:
    """The engine of such a unit, on 64-bit codes; `run` is as that of softnum.mac._gemm's DefinitionGemm.

    one_by_one: whether each step is a call of operations on arrays, and not one of a loop in C.
    """

    def __init__(self, unit: MadUnit) -> None:
        self.unit, self.steps = unit, _Steps(unit)
        in_c = _Values.of(unit) or _Tables.of(self.steps)
        self.one_by_one = in_c is None
        self.over = (in_c or self.steps).over
        self.zero = {fmt: zero_code(fmt) for fmt in (unit.accumulator, unit.outer)}

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None) -> int:
        """Rows m0..m1, columns n0..n1 of one product of codes; words, keys and batch are for other engines.

        ValueError if roundings are to be counted: what an operation of the user's makes of an exact result is its own.
        """
        if tallies is not None:
            raise ValueError(
                f"return_stats=True is not defined for {self.unit.expression}: operations of custom formats have "
                "results, and no roundings to be counted (leave return_stats out)"
            )
        rows, columns = slice(m0 - first[0], m1 - first[0]), slice(n0 - first[1], n1 - first[1])
        x, y = (
            np.ascontiguousarray(codes, f.storage_dtype)
            for codes, f in zip((a[rows], b[:, columns]), self.unit.operand, strict=True)
        )
        start = None if c is None else c[rows, columns].astype(self.unit.outer.storage_dtype)
        out[rows, columns] = self._product(x, y, start, self.over, (len(x), y.shape[1]))
        return 0

    def run_each(self, a, b, c, out, words) -> int:
        """out[i] = the sum of the products of the rows a[i] and b[i], from c[i]; words are for other engines."""
        x, y = (codes.astype(f.storage_dtype) for codes, f in zip((a, b), self.unit.operand, strict=True))
        start = None if c is None else c.astype(self.unit.outer.storage_dtype)
        out[...] = self._product(x, y.T, start, self.steps.over_each, out.shape)
        return 0

    def _product(self, a, b, c, over, shape):
        unit, k = self.unit, a.shape[1]
        if k and not unit.chunk:
            return self._sum(a, b, c, over, shape)
        outer = self._from_zero(unit.outer, shape) if c is None else c
        for at in range(0, k, unit.chunk or 1):
            part = slice(at, at + unit.chunk)
            outer = self.steps.outer(outer, self._sum(a[:, part], b[part], None, over, shape))
        return outer

    def _sum(self, a, b, c, over, shape):
        """A sum in lanes: C is the start of the only one, or the first operand of their reduction."""
        lanes = self.unit.lanes
        sums = [self._from_zero(self.unit.accumulator, shape) if c is None or lanes > 1 else c for _ in range(lanes)]
        for lane in range(min(lanes, a.shape[1])):
            sums[lane] = over(sums[lane], a[:, lane::lanes], b[lane::lanes])
        if c is not None and lanes > 1:
            sums.insert(0, c)
        for i, j in reduction_order(len(sums), self.unit.reduction):
            sums[i] = self.steps.join(sums[i], sums[j])
        return sums[0]

    def _from_zero(self, fmt, shape):
        return np.full(shape, self.zero[fmt], fmt.storage_dtype)


def zero_code(fmt) -> int:
    """The code of +0."""
    return int(fmt.codec.codes_of_values(np.zeros(1), fmt)[0])
