"""What vectors are of that a specification with freedom judges: dot products, or tiles of a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.inspect.permitted.freedom import Freedom, freedom_of
from softnum.mac.mad import MadUnit
from softnum.vectors.plans.spec import Block, Column, Spec
from softnum.vectors.plans.unit_spec import UnitSpec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["FreedomSpec"]


@dataclass(frozen=True)
class FreedomSpec(Spec):
    """A specification, and the layout of vectors that it judges.

    ``layout`` is that of a unit of the same formats: a, b, C, result.

    >>> import softnum as sn
    >>> from softnum.vectors.plans.freedom_spec import FreedomSpec
    >>> spec = FreedomSpec.make("dot", sn.Freedom("binary32", "binary16"), length=4, with_c=True)
    >>> [(c.name, c.bits, c.count) for c in spec.columns]
    [('a', 16, 4), ('b', 16, 4), ('c', 32, 1), ('result', 32, 1)]
    """

    freedom: Freedom
    layout: UnitSpec

    stochastic_bits = None

    @classmethod
    def make(
        cls,
        op: str,
        freedom: Any,
        *,
        length: int | None = None,
        shape: tuple[int, int, int] | None = None,
        with_c: bool = False,
    ) -> FreedomSpec:
        """Check the parts against each other.

        Parameters
        ----------
        op : {"dot", "gemm"}
        freedom : Freedom or str
        length, shape, with_c
            As in `UnitSpec.make`.

        Raises
        ------
        ValueError
            If a name is unknown or a size is out of range.
        """
        freedom = freedom_of(freedom)
        if op not in ("dot", "gemm"):
            raise ValueError(
                f"--spec judges vectors of dot and gemm, whole sums; a step of a {op} has its order: check it by --unit"
                if op == "mac" else f"--spec judges vectors of dot and gemm, not of {op}"
            )  # fmt: skip
        unit = _unit(freedom)
        return cls(freedom, UnitSpec.make(op, unit, length=length, shape=shape, with_c=with_c))

    @property
    def op(self) -> str:
        """What a vector is."""
        return self.layout.op

    @property
    def columns(self) -> tuple[Column, ...]:
        """a, b, [C], result."""
        *operands, result = self.layout.columns
        fmt = self.freedom.output
        return (*operands, Column("result", fmt.bits, fmt, result.count))

    @property
    def out_fmt(self) -> AnyFormat:
        """The element format of the result."""
        return self.freedom.output

    def facts(self) -> dict[str, str]:
        """What the vectors are of, as text."""
        told = self.layout.facts()
        size = {key: told[key] for key in ("shape", "length", "with_c") if key in told}
        return {"op": self.op, "spec": self.freedom.expression, **size}

    def sums(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
        """a and b of each sum, shape (sums, K), C and the results."""
        m, n, k = self.layout.shape
        a, b, *c = block.operands
        tiles = len(block)
        rows = np.repeat(a.reshape(tiles, m, 1, k), n, 2).reshape(-1, k)
        columns = np.repeat(b.reshape(tiles, 1, k, n).swapaxes(2, 3), m, 1).reshape(-1, k)
        return rows, columns, c[0].reshape(-1) if c else None, block.result.reshape(-1)


def _unit(freedom: Freedom) -> MadUnit:
    """A unit of the formats of a specification."""
    return MadUnit(freedom.accumulator, operand=freedom.operand)
