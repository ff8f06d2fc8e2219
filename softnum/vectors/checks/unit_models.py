"""Wrong designs of a unit: what results they would give."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from softnum.formats.scalar import FloatFormat
from softnum.mac.family import family_of
from softnum.mac.fused import FusedDotUnit
from softnum.mac.mad import MadUnit, Unit
from softnum.ops.arithmetic import convert
from softnum.vectors.checks.block_models import changed_blocks, changed_scales
from softnum.vectors.checks.deliveries import held_bits, replaced
from softnum.vectors.checks.evidence import Evidence
from softnum.vectors.checks.lanes import reordered
from softnum.vectors.checks.models import NotApplicable, changed_words
from softnum.vectors.plans.codes import is_nan
from softnum.vectors.plans.unit_spec import UnitSpec, by_steps

__all__ = ["UnitModels"]


class UnitModels:
    """Predictions of a unit with changes: fields of the unit by their names, and

    - ``ignore_c``, ``not_cleared``: what becomes of C and of the accumulator at a sequence's beginning;
    - ``random_words``: as ``random`` of `softnum.vectors.checks.models.Model`;
    - ``flush_operands``, ``flush_c``: subnormal operands, and a subnormal C, are zeros; ``nan_code``: the code that
      stands for every NaN; ``reverse``: the products from the last to the first;
    - ``lanes``: elements of a word in another order (`softnum.vectors.checks.lanes`); ``operands``: what becomes of a
      and b (`softnum.vectors.checks.deliveries.replaced`); ``stuck``: bits of the result that never change;
      ``keep_infinities``: what should be infinite is;
    - ``flush_results``, ``align``, ``subnormals``, ``as_steps``: units of another kind;
    - of blocks, ``scales`` and what else `softnum.vectors.checks.block_models` has.

    Vectors of a mac are taken a step at a time, from what the design's accumulator held before, where that is all there
    is to know; else as sums of all products since the sequence began.

    >>> import numpy as np
    >>> from softnum.vectors import UnitSpec
    >>> from softnum.vectors.checks.unit_models import UnitModels
    >>> unit = UnitModels(UnitSpec.make("dot", "MadUnit('e5m2', operand='e5m2')", length=2)).changed({"chunk": 1})
    >>> unit.expression
    "MadUnit('e5m2', operand='e5m2', chunk=1)"
    """

    def __init__(self, spec: UnitSpec) -> None:
        self.spec = spec
        self.by_steps = by_steps(spec)

    def predict(self, changes: dict[str, Any], evidence: Evidence) -> tuple[np.ndarray, None]:
        """The design's results; it has no flags. Raises `NotApplicable`."""
        spec = self.spec
        unit = self.changed(changes)
        operands, words = list(evidence.got.operands), evidence.got.random_bits
        if "random_words" in changes:
            words = changed_words(words, changes["random_words"], spec.stochastic_bits)
        if changes.get("not_cleared") and not self.by_steps and spec.unit.compensated is not None:
            raise NotApplicable("the compensation cannot be told from the results")
        lead = 1 if spec.op == "mac" else 0
        at_c = lead + 2 + len(spec.scale_columns)
        if changes.get("flush_operands"):
            for i, fmt in enumerate(spec.formats[:2], lead):
                operands[i] = _flushed(operands[i], fmt)
        if changes.get("flush_c") and spec.with_c:
            operands[at_c] = _flushed(operands[at_c], spec.unit.c_format)
        if changes.get("reverse"):
            m, n, k = spec.shape
            rows = len(operands[0])
            operands[0] = np.ascontiguousarray(operands[0].reshape(rows, m, k)[:, :, ::-1]).reshape(rows, -1)
            operands[1] = np.ascontiguousarray(operands[1].reshape(rows, k, n)[:, ::-1]).reshape(rows, -1)
        if "operands" in changes:
            first = replaced(operands[lead : lead + 2], spec.formats[:2], changes["operands"])
            operands[lead : lead + 2] = first
        lanes, order = changes.get("lane_order", (None, None))
        if lanes in ("a", "b"):
            operands["ab".index(lanes)] = reordered(operands["ab".index(lanes)], order)
        other = replace(spec, unit=unit, name=None)
        try:
            if spec.op == "mac":
                result = (self._steps if self.by_steps else self._sums)(other, operands, words, changes)
            else:
                c = None
                if spec.with_c and not changes.get("ignore_c"):
                    c = self._start(operands[at_c], unit)
                other = replace(other, with_c=c is not None)
                if words is not None and words[0].size != other.columns[-2].count:
                    raise NotApplicable("another number of random words")
                given = operands[:at_c]
                if spec.of_blocks:
                    given = changed_scales(given, changes, spec)
                given = given if c is None else [*given, c]
                result = other.evaluate(given, words).result
        except ValueError as error:
            raise NotApplicable(str(error)) from None
        if unit.result != spec.out_fmt:
            mode = spec.rounding if not spec.rounding.startswith("stochastic") else "nearest_even"
            result = convert(result, unit.result, spec.out_fmt, rounding=mode, invalid=0)
        if changes.get("keep_infinities"):
            right = evidence.want.result
            result = np.where(spec.out_fmt.is_infinite(right), right, result)
        if changes.get("nan_code") is not None:
            code = result.dtype.type(changes["nan_code"])
            result = np.where(is_nan(result, spec.out_fmt), code, result)
        if lanes == "result":
            result = reordered(result, order)
        if changes.get("stuck") is not None:
            result = held_bits(result, changes["stuck"])
        return result, None

    # -- mac -----------------------------------------------------------------------------------------------------------
    def _steps(self, other: UnitSpec, operands, words, changes) -> np.ndarray:
        first, a, b, *c, before = operands
        start = c[0] if c and not changes.get("ignore_c") else np.zeros_like(before)
        acc = before if changes.get("not_cleared") else np.where(first != 0, start, before)
        return other._sums(a[:, None], b[:, None], self._start(acc, other.unit), words)

    def _sums(self, other: UnitSpec, operands, words, changes) -> np.ndarray:
        length, a, b, *c, left = operands
        if changes.get("not_cleared"):  # the chunks' sum goes on; the result at a chunk's end is that sum
            c = [left]
        out = np.empty(len(a), other.out_fmt.storage_dtype)
        for n in np.unique(length).tolist():
            rows = np.flatnonzero(length == n)
            start = self._start(c[0][rows], other.unit) if c and not changes.get("ignore_c") else None
            out[rows] = other._sums(a[rows, :n], b[rows, :n], start, None)
        return out

    def _start(self, c: np.ndarray, unit) -> np.ndarray:
        """C in the unit's format for it."""
        if unit.c_format == self.spec.unit.c_format:
            return c
        return convert(c, self.spec.unit.c_format, unit.c_format, invalid=0)

    # -- the unit -----------------------------------------------------------------------------------------------------
    def changed(self, changes: dict[str, Any]) -> Unit:
        """The unit with these changes."""
        unit = self.spec.unit
        own = {f.name for f in fields(unit)}
        try:
            plain = {name: value for name, value in changes.items() if name in own}
            unit = replace(unit, **plain) if plain else unit
            if changes.get("subnormals") is False:
                fmt = unit.accumulator
                unit = replace(unit, accumulator=_without_subnormals(fmt))
            if family_of(unit).of_blocks:
                unit = changed_blocks(unit, changes)
            if "align" in changes:
                bits = unit.accumulator.mantissa_bits + changes["align"]
                unit = FusedDotUnit(
                    1, bits, unit.accumulator, unit.operand, output_rounding=unit.rounding, overflow=unit.overflow
                )
            if changes.get("as_steps"):
                unit = MadUnit(unit.accumulator, unit.operand, rounding=unit.rounding, overflow=unit.overflow)
        except (TypeError, ValueError) as error:
            raise NotApplicable(str(error)) from None
        return unit


def _flushed(codes: np.ndarray, fmt) -> np.ndarray:
    small = fmt.is_subnormal(codes)
    if not small.any():
        return codes
    sign = codes.dtype.type(1 << (fmt.bits - 1) if fmt.signed and fmt.negative_zero else 0)
    return np.where(small, codes & sign, codes)


def _without_subnormals(fmt: FloatFormat) -> FloatFormat:
    names = ("bias", "signed", "nan_codes", "infinities", "negative_zero", "has_zero", "saturating")
    facts = {name: getattr(fmt, name) for name in names}
    return FloatFormat(fmt.exponent_bits, fmt.mantissa_bits, lowest_binade="zero", **facts)
