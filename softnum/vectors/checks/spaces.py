"""Vectors outside the space that a header or the caller states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from softnum.vectors.files.text import Rows, VectorFileError
from softnum.vectors.model import word_of
from softnum.vectors.plans.conditions import check_conditions, meets
from softnum.vectors.plans.space import Space
from softnum.vectors.plans.spec import Block, VectorSpec
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["SpaceKeeper"]


class SpaceKeeper:
    """Passes over what lies outside the caller's space, and refuses what lies outside the header's (``spec.space``).

    Raises ValueError where the space says nothing of the spec.

    >>> import numpy as np
    >>> from softnum.vectors import Rows, Space, VectorSpec
    >>> spec = VectorSpec.make("sqrt", "e5m2")
    >>> keeper = SpaceKeeper("v.txt", spec, Space.make(no_nan=True))
    >>> rows = Rows(np.array([1, 2]), spec.evaluate((np.array([0x3C, 0x7F], np.uint8),)))
    >>> keeper.inside(rows).lines, keeper.skipped
    (array([1]), {'outside --no-nan': 1})
    """

    def __init__(self, source: str, spec: Any, space: Space | None) -> None:
        self.source, self.spec, self.space = source, spec, space or Space()
        #: the reason -> how many vectors were passed over
        self.skipped: dict[str, int] = {}
        if self.space and spec.op == "mac":
            raise ValueError(f"no step of a sequence can be passed over: leave out{self.space.options()}")
        self._of_caller = self._checked(self.space) if self.space else None
        self._of_header = self._checked(spec.space) if spec.space else None

    def _checked(self, space: Space):
        if isinstance(self.spec, UnitSpec):
            return replace(self.spec, space=space)
        space.check(self.spec.formats, self.spec.op)
        found = replace(self.spec, space=space, flags=True)
        check_conditions(found)
        return found

    def inside(self, rows: Rows) -> Rows:
        """The rows that count."""
        if self._of_header is not None:
            bad = np.flatnonzero(~_inside(self._of_header, rows.block))
            if len(bad):
                line, columns = int(rows.lines[bad[0]]), self.spec.operand_columns
                codes = zip(columns, rows.block.operands, strict=True)
                entries = " ".join(f"{c.name}={word_of(x[bad[0]], c.bits):0{c.digits}X}" for c, x in codes)
                problem = f"{entries} lies outside the space that the header states:{self.spec.space.options()}"
                raise VectorFileError(self.source, line, f"{problem}; to overrule it: --ignore-header")
        if self._of_caller is None:
            return rows
        kept = _inside(self._of_caller, rows.block)
        left = len(kept) - int(np.count_nonzero(kept))
        if not left:
            return rows
        why = f"outside{self.space.options()}"
        self.skipped[why] = self.skipped.get(why, 0) + left
        block = rows.block
        parts = (None if x is None else x[kept] for x in (block.random_bits, block.result, block.flags))
        random, result, flags = parts
        unknown = (None if x is None else x[kept] for x in (rows.unknown, rows.unknown_flags))
        return Rows(rows.lines[kept], Block(tuple(x[kept] for x in block.operands), random, result, flags), *unknown)

    def end(self, vectors: int) -> None:
        """VectorFileError if all were passed over."""
        if self.skipped and not vectors:
            count = sum(self.skipped.values())
            raise VectorFileError(self.source, 0, f"none of {count} vectors lies inside{self.space.options()}")


def _inside(spec: VectorSpec | UnitSpec, block: Block) -> np.ndarray:
    kept = spec.space.admits([c.format for c in spec.operand_columns], block.operands)
    if spec.space.only and kept.any():
        kept = kept & meets(spec, spec.evaluate(block.operands, block.random_bits))
    return kept
