"""Coverage of vectors that are of several operations, or of several lanes: each operation's bins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softnum.runtime.columns import text_table
from softnum.vectors.plans.coverage import Bins, Coverage
from softnum.vectors.plans.mixed import MixedSpec
from softnum.vectors.plans.packed import PackedSpec
from softnum.vectors.plans.spec import Block, Spec

__all__ = ["MixedCoverage", "PackedCoverage", "coverage_of"]


class MixedCoverage:
    """Counts the bins of each operation, mode and format of a mixed file.

    Parameters
    ----------
    spec : MixedSpec

    Examples
    --------
    >>> from softnum.vectors import VectorSpec, mixed_plan
    >>> planned = mixed_plan([VectorSpec.make(op, "e2m1fn") for op in ("add", "multiply")], count=512)
    >>> coverage = MixedCoverage(planned.spec)
    >>> for block in planned.blocks():
    ...     coverage.add(block)
    >>> [part.vectors for part in coverage.parts]
    [256, 256]
    >>> list(coverage.groups)[0]
    'add nearest_even e2m1fn: classes of a, b'
    """

    def __init__(self, spec: MixedSpec) -> None:
        self.spec = spec
        self.parts = [coverage_of(part) for part in spec.parts]

    def add(self, block: Block) -> None:
        """Count a block."""
        for number, _, part, _ in self.spec.split(block):
            self.parts[number].add(part)

    @property
    def vectors(self) -> int:
        """How many were counted."""
        return sum(part.vectors for part in self.parts)

    @property
    def groups(self) -> dict[str, Bins]:
        """Bins of each operation, mode and format, with those before their names."""
        found = {}
        for spec, part in zip(self.spec.parts, self.parts, strict=True):
            for group in part.groups.values():
                name = f"{' '.join(self.spec.key_of(spec))}: {group.name}"
                found[name] = replace(group, name=name)
        return found

    def __str__(self) -> str:
        rows = [("operation", "mode", "format", "vectors", "bins hit")]
        for spec, part in zip(self.spec.parts, self.parts, strict=True):
            groups = part.groups.values()
            hit, total = sum(g.hit for g in groups), sum(g.total for g in groups)
            rows.append((*self.spec.key_of(spec), str(part.vectors), f"{hit} of {total}"))
        return text_table(rows)


class PackedCoverage(Coverage):
    """Counts the bins that the lanes of words hit, all lanes together.

    Parameters
    ----------
    spec : PackedSpec

    Examples
    --------
    >>> from softnum.vectors import Lanes, VectorSpec, packed_plan
    >>> planned = packed_plan(VectorSpec.make("multiply", "e2m1fn"), Lanes(4))
    >>> coverage = PackedCoverage(planned.spec)
    >>> for block in planned.blocks():
    ...     coverage.add(block)
    >>> coverage.vectors, coverage.groups["classes of a, b"].missed
    (256, [])
    """

    def __init__(self, spec: PackedSpec) -> None:
        super().__init__(spec.part)
        self.packed = spec

    def add(self, block: Block) -> None:
        """Count the lanes of a block that compute."""
        active = self.packed.active(block.operands)
        lanes = [np.ascontiguousarray(x[active]) for x in self.packed.by_lane(block.operands)]
        super().add(self.spec.evaluate(tuple(lanes)))


def coverage_of(spec: Spec) -> Coverage | MixedCoverage:
    """The object that counts the coverage bins of a spec's vectors.

    >>> from softnum.vectors import VectorSpec
    >>> type(coverage_of(VectorSpec.make("add", "e5m2"))).__name__
    'Coverage'
    """
    if isinstance(spec, MixedSpec):
        return MixedCoverage(spec)
    return PackedCoverage(spec) if isinstance(spec, PackedSpec) else Coverage(spec)
