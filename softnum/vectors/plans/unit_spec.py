"""What vectors of a unit are of: dot products, sequences of multiply-add steps, or tiles of a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.checks import check_not_own
from softnum.mac.families import FAMILIES
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.presets import unit_of
from softnum.mac.products.blocks.matrices import block_sums
from softnum.mac.products.engines import definition_of
from softnum.runtime import _core
from softnum.vectors.plans.space import Space
from softnum.vectors.plans.spec import Block, Column, Spec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["UNIT_OPERATIONS", "UnitSpec", "by_steps"]

UNIT_OPERATIONS = ("dot", "mac", "gemm")
#: Products in one vector at most: a line of text stays short, and a sequence fits into memory.
LONGEST = 4096
_EVERYTHING = Space()


@dataclass(frozen=True)
class UnitSpec(Spec):
    """A unit and the shape of the computation in one vector, as `make` checks and completes it.

    Parameters
    ----------
    op : {"dot", "mac", "gemm"}
        What one vector holds: a dot product; one step of a sequence; a product of two small matrices.
    unit : MadUnit, FusedDotUnit, FmaChainUnit, GroupedDotUnit, ExactDotUnit, BlockDotUnit or BlockFusedDotUnit
    shape : (int, int, int)
        (M, N, K); M = N = 1 for dot and mac. K of a mac: the steps of a sequence.
    with_c : bool
        Whether the sum starts from a column C; else from +0.
    name : str or None
        The preset's name, where it is one.
    space : Space
        What elements, scales and C are restricted to.
    """

    op: str
    unit: Unit
    shape: tuple[int, int, int]
    with_c: bool
    name: str | None = None
    space: Space = _EVERYTHING

    @classmethod
    def make(
        cls,
        op: str,
        unit: Unit | str,
        *,
        length: int | None = None,
        shape: tuple[int, int, int] | None = None,
        with_c: bool = False,
        space: Space | None = None,
    ) -> UnitSpec:
        """Check the parts against each other.

        Parameters
        ----------
        op : {"dot", "mac", "gemm"}
        unit : Unit or str
            A unit, a preset's name (`softnum.units`), or the expression that `repr` shows of a unit.
        length : int, optional
            K of a dot product (default: 16, or what the unit takes at a time, of blocks one block), steps of a sequence
            (default 16).
        shape : (int, int, int), optional
            (M, N, K) of a gemm tile; default (4, 4, 8).
        with_c : bool
            Whether there is a column C.
        space : Space, optional
            Of elements, scales and C: no NaN, no infinity, no subnormal number.

        Returns
        -------
        UnitSpec

        Raises
        ------
        ValueError
            If a name is unknown, a size is out of range, or the unit does not work step by step (mac).
        TypeError
            If a file cannot state the unit: a CustomMadUnit.

        Examples
        --------
        >>> from softnum.vectors import UnitSpec
        >>> spec = UnitSpec.make("dot", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=16)
        >>> [(c.name, c.bits, c.count) for c in spec.columns]
        [('a', 8, 16), ('b', 8, 16), ('result', 16, 1)]

        Of blocks, the codes of scales have columns of their own, a scale for each block:

        >>> spec = UnitSpec.make("dot", "BlockDotUnit('binary32', operand='mxfp4_e2m1')", length=64, with_c=True)
        >>> " ".join(f"{c.name}:{c.bits}x{c.count}" for c in spec.columns)
        'a:4x64 b:4x64 scale_a:8x2 scale_b:8x2 c:32x1 result:32x1'
        """
        if op not in UNIT_OPERATIONS:
            raise ValueError(f"unknown operation of a unit {op!r} (known: {', '.join(UNIT_OPERATIONS)})")
        name = unit if isinstance(unit, str) and unit.isidentifier() else None
        unit = unit_of(unit)
        family, kind = family_of(unit), type(unit).__name__
        for fmt in () if family.of_blocks else unit.operand:
            check_not_own(fmt, f"{op}: {{}} is a value table or custom format, of which no vectors are made")
        for fmt in unit.rounded_to:
            check_not_own(fmt, f"{op}: no vectors of units that compute in {{}}, a value table or custom format")
        if not family.from_text:
            known = ", ".join(u.__name__ for u, f in FAMILIES.items() if f.from_text)
            raise TypeError(
                f"{op}: vectors of a {kind} are not supported, as a file cannot state it; supported: {known}"
            )
        if op == "gemm":
            if length is not None:
                raise ValueError(f"gemm takes a shape (M, N, K), not a length (got {length!r})")
            shape = (4, 4, 8) if shape is None else tuple(shape)
            if len(shape) != 3:
                raise ValueError(f"gemm: shape must be (M, N, K), got {shape!r}")
        else:
            if shape is not None:
                raise ValueError(f"{op} takes a length K, not a shape (got {shape!r})")
            taken = (unit.block_size or 16) if family.of_blocks else max(16, getattr(unit, "period", 1))
            shape = (1, 1, taken if length is None else length)
        for what, size in zip("MNK", shape, strict=True):
            if isinstance(size, bool) or not isinstance(size, Integral):
                raise TypeError(f"{op}: {what} must be an integer, got {size!r}")
            if not 1 <= size <= LONGEST:
                raise ValueError(f"{op}: {what} must lie in 1..{LONGEST}, got {size}")
        m, n, k = map(int, shape)
        if m * n * k > LONGEST:
            raise ValueError(f"{op}: M * N * K must not exceed {LONGEST}, got {m} * {n} * {k}")
        if op == "mac":
            sequence = None if family.sequence is None else family.sequence(unit)
            if sequence is None:
                raise ValueError(f"mac is of units that take one product at a time (a MadUnit of one lane), not {unit}")
            if unit.stochastic and sequence == "sums" and unit.chunk is not None:
                raise ValueError("mac: the random words of a chunked stochastic unit belong to no single step; use dot")
        found = cls(op, unit, (m, n, k), bool(with_c), name, _EVERYTHING if space is None else space)
        found._check_space()
        return found

    def _check_space(self) -> None:
        if self.space.exponents is not None or self.space.only:
            of_operations = Space(exponents=self.space.exponents, only=self.space.only).options()
            raise ValueError(f"{self.op}: of a unit's sums no exponents and no results are asked for: leave out"
                             f"{of_operations} (--no-nan, --no-inf and --no-subnormal hold for elements)")  # fmt: skip
        if self.space:
            self.space.check([c.format for c in self.operand_columns if c.format is not None], self.op)

    # -- what a file needs to know -------------------------------------------------------------------------------------
    @property
    def formats(self) -> tuple[Any, ...]:
        """The element formats of a, b and C, where there is one."""
        operands = tuple(f.element if self.of_blocks else f for f in self.unit.operand)
        return (*operands, self.unit.c_format) if self.with_c else operands

    @property
    def of_blocks(self) -> bool:
        """Whether operands are blocks with scales."""
        return family_of(self.unit).of_blocks

    @property
    def blocks(self) -> int:
        """Blocks of a sum."""
        return self.unit.operand[0].blocks(self.shape[2])

    @property
    def scale_columns(self) -> tuple[Column, ...]:
        """Of blocks: their scales, a's of row after row, b's with those of column 0 of each row of blocks first; then
        the scales of whole arrays, of operands that have one."""
        if not self.of_blocks:
            return ()
        (m, n, _), pairs = self.shape, tuple(zip("ab", self.unit.operand, strict=True))
        sizes = {"a": m * self.blocks, "b": n * self.blocks}
        columns = [Column(f"scale_{x}", f.scale.bits, f.scale, sizes[x]) for x, f in pairs]
        columns += [Column(f"tensor_{x}", f.tensor_scale.bits, f.tensor_scale) for x, f in pairs if f.tensor_scale]
        return tuple(columns)

    @property
    def out_fmt(self) -> AnyFormat:
        """The element format of the result."""
        return self.unit.result

    @property
    def rounding(self) -> str:
        """In which mode the result is rounded."""
        return getattr(self.unit, "rounding", None) or getattr(self.unit, "output_rounding", "nearest_even")

    @property
    def stochastic_bits(self) -> int | None:
        """r, if the unit rounds stochastically."""
        return self.unit.stochastic_bits if self.unit.stochastic else None

    @property
    def words(self) -> int:
        """Random words of one output: two a step."""
        if self.op == "mac":
            return 2
        k = self.shape[2]
        return 2 * (self.unit.steps_with_c(k) if self.with_c else self.unit.steps(k))

    @property
    def columns(self) -> tuple[Column, ...]:
        """[first], a, b, [scales], [C], [random bits], result."""
        m, n, k = self.shape if self.op != "mac" else (1, 1, 1)
        a, b, *c = self.formats
        columns = [Column("first", 1)] if self.op == "mac" else []
        columns += [Column("a", a.bits, a, m * k), Column("b", b.bits, b, k * n), *self.scale_columns]
        columns += [Column("c", f.bits, f, m * n) for f in c]
        if self.stochastic_bits is not None:
            columns.append(Column("random", self.stochastic_bits, None, m * n * self.words))
        return (*columns, Column("result", self.out_fmt.bits, self.out_fmt, m * n))

    def facts(self) -> dict[str, str]:
        """What a file's header says of the vectors, as text, in a fixed order."""
        m, n, k = self.shape
        out = {"op": self.op, "unit": self.name or self.unit.expression, "computes": str(self.unit)}
        out |= {"shape": f"{m} {n} {k}"} if self.op == "gemm" else {"length": str(k)}
        return out | {"with_c": "yes" if self.with_c else "no"} | self.space.facts()

    def options(self) -> str:
        """The command-line options that state this spec."""
        m, n, k = self.shape
        size = f"--shape {m},{n},{k}" if self.op == "gemm" else f"--length {k}"
        unit = self.name or f'"{self.unit.expression}"'
        return f"--op {self.op} --unit {unit} {size}{' --with-c' if self.with_c else ''}{self.space.options()}"

    # -- results -------------------------------------------------------------------------------------------------------
    def evaluate(self, operands: Sequence[np.ndarray], random_bits: np.ndarray | None = None) -> Block:
        """The vectors of given operands: `Block`, without flags.

        Parameters
        ----------
        operands : sequence of arrays of codes
            As `columns` has them. Of a mac: first, a, b, [C]; the first vector begins a sequence.
        random_bits : uint32 array, optional
            Needed where the unit rounds stochastically.

        Returns
        -------
        Block
        """
        evaluate = {"dot": self._dots, "mac": self._sequences, "gemm": self._tiles}[self.op]
        result = evaluate(*operands, random_bits=random_bits)
        return Block(tuple(operands), random_bits if self.stochastic_bits is not None else None, result, None)

    def _sums(self, a, b, c, words, scales=()) -> np.ndarray:
        """Codes of many dot products: a, b of shape (n, K), c None or (n,), words None or (n, steps * 2), scales (n,
        blocks), those of arrays (n,)."""
        unit = self.unit
        if not (unit.on_codes or self.of_blocks):
            a, b = (f.codec.for_core(x.astype(f.storage_dtype), f) for x, f in zip((a, b), unit.operand, strict=True))
        wide = [None if x is None else np.ascontiguousarray(x, np.uint64) for x in (a, b, *scales, c)]
        if words is not None:
            words = np.ascontiguousarray(words, np.uint32).reshape(len(words), -1, 2)
        out = np.empty(len(a), np.uint64)
        with _core.PlainEnvironment():
            if self.of_blocks:
                lost = block_sums(unit, *wide[:4], wide[4:-1], wide[-1], out, words)
            else:
                lost = definition_of(unit).run_each(*wide, out, words)
        for i, fmt in enumerate(unit.rounded_to):
            if lost & 1 << i:
                raise_no_code(fmt, f"vectors of {self.op} (--no-nan and --no-inf leave NaN and infinite operands out)")
        return out.astype(self.out_fmt.storage_dtype)

    def _parted(self, operands) -> tuple[Any, ...]:
        """(a, b, the scales of blocks and arrays, C or None)."""
        a, b, *rest = operands
        count = len(self.scale_columns)
        return a, b, rest[:count], rest[count] if len(rest) > count else None

    def _dots(self, *operands, random_bits=None):
        a, b, scales, c = self._parted(operands)
        rows = len(a)
        scales = [*(x.reshape(rows, -1) for x in scales[:2]), *scales[2:]]
        return self._sums(a.reshape(rows, -1), b.reshape(rows, -1), c, random_bits, scales)

    def _tiles(self, *operands, random_bits=None):
        a, b, scales, c = self._parted(operands)
        m, n, k = self.shape
        tiles = len(a)

        def spread(rows, columns, k) -> tuple[np.ndarray, np.ndarray]:
            """Rows of the one and columns of the other, for each element of the tiles."""
            rows = np.repeat(rows.reshape(tiles, m, 1, k), n, 2).reshape(-1, k)
            return rows, np.repeat(columns.reshape(tiles, 1, k, n).swapaxes(2, 3), m, 1).reshape(-1, k)

        words = None if random_bits is None else random_bits.reshape(tiles * m * n, -1)
        of_blocks = spread(*scales[:2], self.blocks) if scales else ()
        of_arrays = [np.repeat(x, m * n) for x in scales[2:]]
        out = self._sums(*spread(a, b, k), None if c is None else c.reshape(-1), words, [*of_blocks, *of_arrays])
        return out.reshape(tiles, m * n) if m * n > 1 else out

    def _sequences(self, first, a, b, c=None, *, random_bits=None):
        """Each step's sum of the products since `first`; in whole sequences."""
        starts = np.flatnonzero(first)
        out = np.empty(len(a), self.out_fmt.storage_dtype)
        if len(a) and (not len(starts) or starts[0] != 0):
            raise ValueError("mac: the first vector must begin a sequence (its entry first is 0)")
        lengths = np.diff([*starts, len(a)])
        for step in range(int(lengths.max(initial=0))):
            here = starts[lengths > step]
            if by_steps(self):
                acc = None if c is None and step == 0 else c[here] if step == 0 else out[here + step - 1]
                words = None if random_bits is None else random_bits[here + step]
                out[here + step] = self._sums(a[here + step, None], b[here + step, None], acc, words)
            else:
                rows = here[:, None] + np.arange(step + 1)
                words = None if random_bits is None else random_bits[rows]
                out[here + step] = self._sums(a[rows], b[rows], None if c is None else c[here], words)
        return out


def by_steps(spec: UnitSpec) -> bool:
    """Whether vectors are of a mac whose accumulator is all there is to know of the steps before."""
    return spec.op == "mac" and family_of(spec.unit).sequence(spec.unit) == "steps"
