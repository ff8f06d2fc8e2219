"""What a set of vectors covers: bins of operand classes, binades, roundings and limits, counted as vectors are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from softnum.formats.modes import Flags
from softnum.formats.wide import integers
from softnum.vectors.plans.codes import exponents
from softnum.vectors.plans.fpu import FUSED
from softnum.vectors.plans.operands import class_codes
from softnum.vectors.plans.space import Space, admitted_codes
from softnum.vectors.plans.spec import Block, Spec
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["Bins", "Coverage", "text_of"]

_SUMS = ("add", "subtract", "multiply", "divide", "remainder")
_ROUNDED = ("convert", "from_integer", *_SUMS, "sqrt", "fma", *FUSED)
_MOST_BINADES = 256


@dataclass
class Bins:
    """Counted bins: ``labels``, ``counts`` (int64), and ``reachable``, which of them can be hit at all (None:
    unknown)."""

    name: str
    labels: list[str]
    counts: np.ndarray
    reachable: np.ndarray | None = None

    @property
    def total(self) -> int:
        """Number of bins that can be hit, as far as is known."""
        return len(self.labels) if self.reachable is None else int(np.count_nonzero(self.reachable))

    @property
    def hit(self) -> int:
        """Number of bins that were hit."""
        return int(np.count_nonzero(self.counts))

    @property
    def missed(self) -> list[str]:
        """Labels of the reachable bins that were not."""
        open_bins = self.counts == 0 if self.reachable is None else (self.counts == 0) & self.reachable
        return [self.labels[i] for i in np.flatnonzero(open_bins)]

    @property
    def impossible(self) -> list[str]:
        """Labels of the bins that are known to be out of reach."""
        return [] if self.reachable is None else [self.labels[i] for i in np.flatnonzero(~self.reachable)]

    def add(self, index: np.ndarray) -> None:
        """Count bins by their numbers."""
        self.counts += np.bincount(index.ravel(), minlength=len(self.counts))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = {label: int(n) for label, n in zip(self.labels, self.counts, strict=True) if n}
        known = self.reachable is not None
        return {"name": self.name, "hit": self.hit, "bins": self.total, "missed": self.missed if known else None,
                "impossible": self.impossible if known else None, "labels": self.labels,
                "counts": counts}  # fmt: skip


def text_of(vectors: int | None, groups: dict[str, Bins]) -> str:
    """A line on each group: bins hit of those that there are, and some that were not."""
    space = max(map(len, groups), default=0) + 3
    lines = [f"bins hit, of {'an unknown number of' if vectors is None else vectors} vectors:"]
    for group in groups.values():
        text = f"{group.hit} of {group.total}"
        if group.reachable is not None and group.missed:
            some = ", ".join(group.missed[:3])
            text += f"; not: {some}{f' and {len(group.missed) - 3} more' if len(group.missed) > 3 else ''}"
        elif group.reachable is None and len(group.labels) <= 7:
            text = ", ".join(f"{label} {n}" for label, n in zip(group.labels, group.counts, strict=True))
        lines.append(f"  {group.name:{space}}{text}")
    return "\n".join(lines)


@lru_cache(maxsize=64)
def _occurring(fmt, space: Space | None = None) -> np.ndarray:
    """Which of a format's classes have codes in a space."""
    out = np.zeros(len(fmt.class_names), bool)
    codes = fmt.stored(class_codes(fmt, 1))
    known = admitted_codes(fmt, space) if space else None
    if known is not None:
        codes = np.append(codes[known.has(codes)], fmt.stored(known.starts))
    out[fmt.class_numbers(codes)] = True
    return out


@lru_cache(maxsize=64)
def _binades(fmt, space: Space, coarse: int) -> np.ndarray:
    """Which exponent fields, without so many of their last bits, operands of a space have."""
    out = np.ones(1 << (fmt.exponent_bits - coarse), bool)
    known = admitted_codes(fmt, space) if space else None
    if known is not None:
        fields = np.arange(1 << fmt.exponent_bits).astype(np.uint64) << np.uint64(fmt.mantissa_bits)
        signs = [0, fmt.signed << (fmt.bits - 1)]
        ends = [fields + np.uint64(low | sign) for low in (0, 1, (1 << fmt.mantissa_bits) - 1) for sign in signs]
        has = np.logical_or.reduce([known.has(codes) for codes in ends])
        out = has.reshape(len(out), -1).any(1)
    return out


class Coverage:
    """Counts the bins that blocks of vectors hit.

    Of an operation: classes of the operands together, binades of each operand, class of the result, flags, what is
    rounded off (nothing, less than half a last place, half, more; whether it carries into the next binade), how far the
    operands' exponents lie apart, and results at the target's limits. Of a unit: classes of the elements and of the
    result.

    Parameters
    ----------
    spec : VectorSpec or UnitSpec

    Examples
    --------
    >>> from softnum.vectors import Coverage, VectorSpec, plan
    >>> spec = VectorSpec.make("multiply", "e2m1fn")
    >>> coverage = Coverage(spec)
    >>> for block in plan(spec).blocks():
    ...     coverage.add(block)
    >>> print(coverage)  # doctest: +ELLIPSIS
    bins hit, of 256 vectors:
      classes of a, b    36 of 36
      binades of a       4 of 4
    ...
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.vectors = 0
        self.groups: dict[str, Bins] = {}

    @property
    def _space_of_operands(self) -> Space:
        return getattr(self.spec, "space", Space()).of_operands

    # -- bins ----------------------------------------------------------------------------------------------------------
    def _bins(self, name: str, labels, reachable=None) -> Bins:
        if name not in self.groups:
            labels = list(labels)
            self.groups[name] = Bins(name, labels, np.zeros(len(labels), np.int64), reachable)
        return self.groups[name]

    def add(self, block: Block) -> None:
        """Count a block."""
        self.vectors += len(block)
        if isinstance(self.spec, UnitSpec):
            self._add_elements(block)
            return
        self._add_operands(block)
        if self.spec.op in _ROUNDED and self.spec.out_fmt.has_exceptions:  # which has one mode
            self._add_rounding(block)
        if self.spec.op in (*_SUMS, "fma", *FUSED):
            self._add_exponents(block)
        self._add_result(block)

    def _add_elements(self, block: Block) -> None:
        columns = [(c, x) for c, x in zip(self.spec.operand_columns, block.operands, strict=True) if c.format]
        result = next(c for c in self.spec.columns if c.name == "result")
        for column, codes in [*columns, (result, block.result)]:
            fmt = column.format
            reachable = _occurring(fmt, self._space_of_operands) if column.name != "result" else None
            self._bins(f"classes of {column.name}", fmt.class_names, reachable).add(fmt.class_numbers(codes))
            self._add_binades(column, codes)

    def _add_binades(self, column, codes) -> None:
        fmt = column.format
        if not fmt.exponent_bits:
            return
        coarse = max(0, fmt.exponent_bits - _MOST_BINADES.bit_length() + 1)
        labels = (str((i << coarse) - fmt.bias) for i in range(1 << (fmt.exponent_bits - coarse)))
        reachable = None if column.name == "result" else _binades(fmt, self._space_of_operands, coarse)
        self._bins(f"binades of {column.name}", labels, reachable).add(fmt.exponent_fields(codes) >> coarse)

    def _add_operands(self, block: Block) -> None:
        columns = self.spec.operand_columns
        index, reachable = np.zeros(len(block), np.int64), np.ones(1, bool)
        for column, codes in zip(columns, block.operands, strict=True):
            index = index * len(column.format.class_names) + column.format.class_numbers(codes)
            reachable = (reachable[:, None] & _occurring(column.format, self._space_of_operands)).ravel()
        name = f"classes of {', '.join(c.name for c in columns)}"
        if name not in self.groups:
            labels = [""]
            for column in columns:
                labels = [f"{left} {right}".strip() for left in labels for right in column.format.class_names]
            self._bins(name, labels, reachable)
        self.groups[name].add(index)
        for column, codes in zip(columns, block.operands, strict=True):
            self._add_binades(column, codes)

    def _add_result(self, block: Block) -> None:
        fmt = self.spec.out_fmt
        self._bins("class of the result", fmt.class_names).add(fmt.class_numbers(block.result))
        if block.flags is not None:
            flags = self._bins("flags raised", [f.name.lower() for f in Flags])
            flags.counts += [int(np.count_nonzero(block.flags & f)) for f in Flags]
        marks = fmt.limit_codes()
        if not marks or block.flags is None:  # underflows and overflows among them are told by flags
            return
        _, magnitude = fmt.sign_and_size(block.result)
        bins = self._bins("results at the limits", [*marks, "underflow to zero", "overflow"])
        bins.counts[: len(marks)] += [int(np.count_nonzero(magnitude == code)) for code in marks.values()]
        bins.counts[-2] += int(np.count_nonzero(fmt.is_zero(block.result) & (block.flags & Flags.INEXACT != 0)))
        bins.counts[-1] += int(np.count_nonzero(block.flags & Flags.OVERFLOW))

    def _add_rounding(self, block: Block) -> None:
        zero, away, near_zero, near_away = (
            replace(self.spec, rounding=mode, stochastic_bits=None).evaluate(block.operands)
            for mode in ("toward_zero", "away_from_zero", "nearest_zero", "nearest_away")
        )
        exact = zero.result == away.result
        tie = near_zero.result != near_away.result
        above = near_zero.result != zero.result
        place = np.where(exact, 0, np.where(tie, 2, np.where(above, 3, 1)))
        inside = (zero.flags & (Flags.OVERFLOW | Flags.INVALID)) == 0
        bins = self._bins("rounded off", ["nothing", "less than half", "half", "more than half", "carry"])
        bins.add(place[inside])
        fmt = self.spec.out_fmt
        if fmt.exponent_bits:
            carry = (integers(zero.result) ^ integers(away.result)) >> fmt.mantissa_bits != 0
            bins.counts[-1] += int(np.count_nonzero(carry & inside & ~exact))

    def _add_exponents(self, block: Block) -> None:
        if not all(f.exponent_bits for f in self.spec.formats):
            return
        fields = [exponents(x, f) for x, f in zip(block.operands, self.spec.formats, strict=True)]
        left, right = (fields[0] + fields[1], fields[2]) if len(fields) == 3 else (fields[0], fields[1])
        reach = 2 * self.spec.out_fmt.precision + 4 if len(fields) == 3 else self.spec.out_fmt.precision + 3
        labels = ["below", *(str(d) for d in range(-reach, reach + 1)), "above"]
        what = "exponent of a*b less c's" if len(fields) == 3 else "exponent of a less b's"
        self._bins(what, labels).add(np.clip(left - right, -reach - 1, reach + 1) + reach + 1)

    # -- shown ---------------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """For JSON: the bins of each group with their counts."""
        return {**self.spec.facts(), "vectors": self.vectors, "groups": [g.to_dict() for g in self.groups.values()]}

    def __str__(self) -> str:
        return text_of(self.vectors, self.groups)
