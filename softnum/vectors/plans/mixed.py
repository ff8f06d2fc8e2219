"""Vectors of several operations, modes and formats in one file, shuffled: a unit's state between them is reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softnum.vectors.plans.generator import DEFAULT_COUNT, Plan, plan
from softnum.vectors.plans.own import is_own
from softnum.vectors.plans.packed import PackedPlan, PackedSpec, packed_plan
from softnum.vectors.plans.spec import FLAG_BITS, Block, Column, Spec, VectorSpec
from softnum.vectors.plans.strata import raw_words

__all__ = ["MixedPlan", "MixedSpec", "mixed_plan"]

_DOMAIN = 7  # of keys; solve.py has the one below
_ROWS = 1 << 14  # vectors that are shuffled among each other
_WORD = 64


#: columns of operands, in order
_OPERANDS = ("a", "b", "c", "old", "mask")


def _format_key(spec: VectorSpec | PackedSpec) -> str:
    """Formats, and of lanes how many there are, r for one b of all, m for a mask: binary16x4rm."""
    facts = spec.facts()
    names = ",".join(facts["format"].split())
    names = names if facts["result_format"] == facts["format"] else f"{names}->{facts['result_format']}"
    if isinstance(spec, PackedSpec):
        names += f"x{spec.lanes.count}{'r' * spec.lanes.scalar}{'m' * (spec.lanes.mask != 'none')}"
    return names


def _word(codes: np.ndarray, own: Column) -> np.ndarray:
    """The entries of a part's column as words, element 0 lowest."""
    if codes.ndim == 1:
        return codes.astype(np.uint64)
    places = np.arange(own.count, dtype=np.uint64) * np.uint64(own.bits)
    return np.bitwise_or.reduce(codes.astype(np.uint64) << places, 1)


def _codes(words: np.ndarray, own: Column) -> np.ndarray:
    """The same back."""
    element = np.uint64((1 << own.bits) - 1)
    if own.count == 1:
        return (words & element).astype(own.dtype)
    places = np.arange(own.count, dtype=np.uint64) * np.uint64(own.bits)
    return (words[:, None] >> places & element).astype(own.dtype)


@dataclass(frozen=True)
class MixedSpec(Spec):
    """Several specs whose vectors share columns: numbers that identify the operation, mode and formats of a line, then
    operands, result and flags, each as wide as the widest.

    Parameters
    ----------
    parts : tuple of VectorSpec and PackedSpec
        Each another operation, mode or formats, with codes or words of lanes of up to 64 bits. Random bits have a
        column as wide as the most that one of them takes; it is 0 in lines that take none. Masks and old values of
        lanes have columns, too. Flags of lanes are those of all together.
    nan_box : bool
        Whether floats narrower than their column have ones above them (RISC-V ISA manual, volume I, "NaN Boxing of
        Narrower Values"); else, and above integers, there are zeros.

    Examples
    --------
    >>> from softnum.vectors import MixedSpec, VectorSpec
    >>> spec = MixedSpec.make([VectorSpec.make("add", "e5m2"), VectorSpec.make("sqrt", "binary16")])
    >>> " ".join(f"{c.name}:{c.bits}" for c in spec.columns)
    'op:1 mode:1 format:1 a:16 b:16 result:16 flags:5'
    """

    parts: tuple[VectorSpec | PackedSpec, ...]
    nan_box: bool = False

    op = "mixed"

    @classmethod
    def make(cls, parts: Iterable[Any], *, nan_box: bool = False) -> MixedSpec:
        """Check the parts against each other.

        Raises
        ------
        ValueError
            If there is none, one has codes of two words, or two are told apart by no column.
        """
        parts = tuple(parts)
        if not parts:
            raise ValueError("mixed vectors are of one spec at least")
        for part in parts:
            if not isinstance(part, (VectorSpec, PackedSpec)):
                raise ValueError(f"{part.op} is of a unit: vectors are mixed of operations")
            if isinstance(part, PackedSpec):
                widest = max(part.columns[:-1], key=lambda c: c.width)
                if widest.width > _WORD:
                    raise ValueError(f"{part.op}: words of mixed vectors have up to {_WORD} bits, and {widest.name} of "
                                     f"{part.lanes.count} lanes has {widest.width}")  # fmt: skip
                if part.lanes.ones != bool(nan_box):
                    raise ValueError(f"{part.op}: lanes that are not used hold ones where nan_box is said, else zeros")
                if part.lanes.flags != "or":
                    raise ValueError(f"{part.op}: flags of lanes are those of all together in mixed vectors")
            if any(is_own(f) for f in (*part.formats, part.out_fmt)):
                raise ValueError(f"{part.op}: a format of the user's own has no name that a mixed file could state")
            if any(f.bits > _WORD for f in (*part.formats, part.out_fmt)):
                raise ValueError(f"{part.op}: mixed vectors have codes of up to {_WORD} bits")
        found = cls(parts, bool(nan_box))
        keys = [found.key_of(part) for part in parts]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                raise ValueError(f"two parts are {' '.join(key)}: they differ in what no column says")
        return found

    @staticmethod
    def key_of(part: VectorSpec | PackedSpec) -> tuple[str, str, str]:
        """What a part is told apart by: operation, mode, formats."""
        mode = part.part.rounding if isinstance(part, PackedSpec) else part.rounding
        return part.op, mode, _format_key(part)

    @cached_property
    def names(self) -> tuple[list[str], list[str], list[str]]:
        """What the numbers in the columns op, mode and format stand for, in order."""
        return tuple(list(dict.fromkeys(self.key_of(p)[i] for p in self.parts)) for i in range(3))

    @cached_property
    def numbers(self) -> list[tuple[int, int, int]]:
        """Of each part, the numbers in these columns."""
        names = self.names
        return [tuple(n.index(k) for n, k in zip(names, self.key_of(p), strict=True)) for p in self.parts]

    @property
    def stochastic_bits(self) -> int | None:
        """The most random bits that a part takes; None where none takes any."""
        return max((p.stochastic_bits for p in self.parts if p.stochastic_bits is not None), default=None)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """op, mode, format, operands, [random bits], result, flags."""
        kinds = [Column(name, max(1, (len(n) - 1).bit_length())) for name, n in zip(
            ("op", "mode", "format"), self.names, strict=True)]  # fmt: skip
        widths: dict[str, int] = {}
        for column in (c for p in self.parts for c in p.columns):
            widths[column.name] = max(widths.get(column.name, 0), column.width)
        widest = max(widths[name] for name in "abc" if name in widths)
        operands = [Column(n, widest if n in "abc" else widths[n]) for n in _OPERANDS if n in widths]
        drawn = [] if self.stochastic_bits is None else [Column("random", self.stochastic_bits)]
        return (*kinds, *operands, *drawn, Column("result", widths["result"]), Column("flags", FLAG_BITS))

    @cached_property
    def words(self) -> tuple[Column, ...]:
        """The columns of operands and of the result."""
        return tuple(c for c in self.columns[3:-1] if c.name != "random")

    def _filled(self, words: np.ndarray, own: Column, column: Column) -> np.ndarray:
        """Words of a part's column, with what is above them."""
        above = ((1 << column.bits) - 1) ^ ((1 << own.width) - 1)
        boxed = np.uint64(above if self.nan_box and own.format is not None and own.format.exponent_bits else 0)
        return (words | boxed).astype(column.dtype)

    def joined(self, number: int, block: Block) -> Block:
        """Vectors of a part with the columns of all."""
        part, n = self.parts[number], len(block)
        first = [np.full(n, k, c.dtype) for k, c in zip(self.numbers[number], self.columns, strict=False)]
        *operands, result = self.words
        own = {c.name: (c, x) for c, x in zip(part.operand_columns, block.operands, strict=True)}
        out = []
        for column in operands:
            if column.name in own:
                of_part, codes = own[column.name]
                out.append(self._filled(_word(codes, of_part), of_part, column))
            else:
                out.append(np.zeros(n, column.dtype))
        drawn = block.random_bits
        if drawn is None and self.stochastic_bits is not None:
            drawn = np.zeros(n, np.uint32)
        own_result = _result_of(part)
        delivered = self._filled(_word(block.result, own_result), own_result, result)
        return Block((*first, *out), drawn, delivered, block.flags)

    def split(self, block: Block) -> Iterator[tuple[int, np.ndarray, Block, np.ndarray]]:
        """(part, which vectors, these with the part's columns, which of them are filled wrongly above a code).

        Raises
        ------
        ValueError
            With the number of the first vector that is of no part, whose operands are filled otherwise, or that has
            more random bits than its part takes.
        """
        index = np.full(len(block), -1)
        for i, numbers in enumerate(self.numbers):
            same = [x == k for x, k in zip(block.operands, numbers, strict=False)]
            index[np.logical_and.reduce(same)] = i
        if (index < 0).any():
            raise ValueError(int(np.flatnonzero(index < 0)[0]))
        *columns, last = self.words
        for i, part in enumerate(self.parts):
            rows = np.flatnonzero(index == i)
            if not len(rows):
                continue
            operands = []
            given = dict(zip((c.name for c in columns), zip(columns, block.operands[3:], strict=True), strict=True))
            for own in part.operand_columns:
                column, entries = given[own.name]
                words = entries[rows].astype(np.uint64) & np.uint64((1 << own.width) - 1)
                wrong = np.flatnonzero(self._filled(words, own, column) != entries[rows])
                if len(wrong):
                    raise ValueError(int(rows[wrong[0]]))
                operands.append(_codes(words, own))
            drawn = None if block.random_bits is None else block.random_bits[rows]
            if drawn is not None:
                more = np.flatnonzero(drawn.astype(np.uint64) >> np.uint64(part.stochastic_bits or 0))
                if len(more):
                    raise ValueError(int(rows[more[0]]))
                drawn = None if part.stochastic_bits is None else drawn
            own, got = _result_of(part), block.result[rows]
            words = got.astype(np.uint64) & np.uint64((1 << own.width) - 1)
            unfilled = self._filled(words, own, last) != got
            here = Block(tuple(operands), drawn, _codes(words, own), block.flags[rows])
            yield i, rows, here, unfilled

    def evaluate(self, operands: Sequence[np.ndarray], random_bits: np.ndarray | None = None) -> Block:
        """The vectors of given operands, op, mode and format first."""
        n = len(operands[0])
        columns = self.columns
        result, flags = np.zeros(n, columns[-2].dtype), np.zeros(n, np.uint8)
        for i, rows, part, _ in self.split(Block(tuple(operands), random_bits, result, flags)):
            block = self.joined(i, self.parts[i].evaluate(part.operands, part.random_bits))
            result[rows], flags[rows] = block.result, block.flags
        return Block(tuple(operands), random_bits, result, flags)

    def facts(self) -> dict[str, str]:
        """What a file's header says: the names behind the numbers, and of each part all that its results depend on."""
        ops, modes, formats = (" ".join(f"{i}={n}" for i, n in enumerate(names)) for names in self.names)
        out = {
            "op": "mixed",
            "ops": ops,
            "modes": modes,
            "formats": formats,
            "nan_box": "yes" if self.nan_box else "no",
        }
        for i, part in enumerate(self.parts):
            out[f"case {i}"] = "; ".join(f"{key}={value}" for key, value in part.facts().items())
        return out

    def options(self) -> str:
        """The command-line options that state this spec."""
        cases = "".join(f' --case "{part.options().removesuffix(" --nan-box")}"' for part in self.parts)
        return f"{cases.strip()}{' --nan-box' if self.nan_box else ''}"


def _result_of(part: Spec) -> Column:
    return next(c for c in part.columns if c.name == "result")


@dataclass(frozen=True)
class MixedPlan:
    """The choice and order of the vectors of each part, before they are computed.

    Parts have vectors in equal numbers (all they have, where these are fewer), dealt over the whole file and shuffled.
    """

    spec: MixedSpec
    plans: tuple[Plan | PackedPlan, ...]
    seed: int

    method = "mixed"

    @property
    def count(self) -> int:
        """How many vectors there will be."""
        return sum(p.count for p in self.plans)

    def blocks(self) -> Iterator[Block]:
        """The vectors, some 2**14 at a time."""
        rounds = max(1, -(-self.count // _ROWS))
        sources = [_Rows(p.blocks()) for p in self.plans]
        for number in range(rounds):
            parts = []
            for i, (source, p) in enumerate(zip(sources, self.plans, strict=True)):
                size = p.count * (number + 1) // rounds - p.count * number // rounds
                parts += [self.spec.joined(i, block) for block in source.take(size)]
            order = np.argsort(raw_words(self.seed, _DOMAIN, number, sum(map(len, parts))), kind="stable")
            columns = [np.concatenate(x)[order] for x in zip(*(b.columns for b in parts), strict=True)]
            yield self.spec.block_of(columns)


class _Rows:
    """Takes rows from blocks as they come."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self.blocks, self.left = blocks, None

    def take(self, size: int) -> Iterator[Block]:
        while size:
            block = next(self.blocks) if self.left is None else self.left
            here, self.left = _cut(block, 0, size), None if len(block) <= size else _cut(block, size, len(block))
            size -= len(here)
            yield here


def _cut(block: Block, start: int, end: int) -> Block:
    rows = slice(start, end)
    drawn = None if block.random_bits is None else block.random_bits[rows]
    return Block(tuple(x[rows] for x in block.operands), drawn, block.result[rows], block.flags[rows])


def mixed_plan(parts: Iterable[Any], *, count: int | None = None, seed: int = 0, nan_box: bool = False) -> MixedPlan:
    """Vectors of several specs, shuffled.

    Parameters
    ----------
    parts : sequence of VectorSpec and PackedSpec
        As in `MixedSpec`.
    count : int, optional
        How many vectors in all, 2**18 by default, in equal shares; fewer where a part has no more.
    seed : int
        Same arguments, same file.
    nan_box : bool
        As in `MixedSpec`.

    Returns
    -------
    MixedPlan

    Raises
    ------
    ValueError
        As `MixedSpec.make` does, and for fewer vectors than parts.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec, mixed_plan
    >>> specs = [VectorSpec.make(op, "e5m2", rounding=mode) for op in ("add", "multiply") for mode in ("rne", "rup")]
    >>> block = next(mixed_plan(specs, count=400).blocks())
    >>> len(block), np.bincount(block.operands[0]).tolist()
    (400, [200, 200])
    """
    spec = MixedSpec.make(parts, nan_box=nan_box)
    total = DEFAULT_COUNT if count is None else count
    shares = [total * (i + 1) // len(spec.parts) - total * i // len(spec.parts) for i in range(len(spec.parts))]
    if not all(shares):
        raise ValueError(f"{total} vectors are fewer than the {len(spec.parts)} operations, modes and formats")
    plans = tuple(
        packed_plan(p.part, p.lanes, count=n, seed=seed) if isinstance(p, PackedSpec) else plan(p, count=n, seed=seed)
        for p, n in zip(spec.parts, shares, strict=True)
    )
    return MixedPlan(spec, plans, int(seed))
