"""Vectors of SIMD lanes: several results of one operation in a word, lane 0 in the least significant bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.vectors.plans.generator import DEFAULT_COUNT, Plan, plan
from softnum.vectors.plans.own import is_own
from softnum.vectors.plans.spec import FLAG_BITS, Block, Column, Spec, VectorSpec
from softnum.vectors.plans.strata import raw_words

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["Lanes", "PackedPlan", "PackedSpec", "packed_plan"]

_DOMAIN, _DOMAIN_MASKS = 8, 9  # of keys; mixed.py has the one below
_WIDEST, _WIDEST_MASK = 4096, 64
_FLAGS = ("or", "each")
_MASKS = ("none", "keep", "zero")


@dataclass(frozen=True)
class Lanes:
    """The layout of SIMD lanes in words.

    Parameters
    ----------
    count : int
        The number of lanes that compute.
    word_bits : int, optional
        Bits of the words of operands and result; a multiple of each format's width. Lanes above the first ``count``
        hold zeros. By default words end with the last lane.
    scalar : bool
        Whether b is one number for all lanes (cvfpu's and RISC-V Xfvec's ``.R``): its column holds one code.
    flags : {"or", "each"}
        "or": one set of flags, those of all lanes combined (RISC-V's fflags). "each": five bits for each lane.
    ones : bool
        Whether unused lanes of floats hold ones (NaN boxing).
    mask : {"none", "keep", "zero"}
        Whether a column has a bit for each lane, lane 0's lowest: lanes whose bit is 0 compute nothing and raise no
        flags. "keep": they keep what the destination held, another column, ``old`` (RISC-V's mask-undisturbed,
        AVX-512's merging); "zero": they are zero (AVX-512's zeroing, SVE's /z).

    Examples
    --------
    >>> from softnum.vectors import Lanes, PackedSpec, VectorSpec
    >>> spec = PackedSpec.make(VectorSpec.make("add", "binary16"), Lanes(4))
    >>> [(c.name, c.width) for c in spec.columns]
    [('a', 64), ('b', 64), ('result', 64), ('flags', 5)]
    """

    count: int
    word_bits: int | None = None
    scalar: bool = False
    flags: str = "or"
    ones: bool = False
    mask: str = "none"

    def facts(self) -> dict[str, str]:
        """What a file's header says."""
        return {
            "lanes": str(self.count), "word_bits": "lanes" if self.word_bits is None else str(self.word_bits),
            "scalar": "b" if self.scalar else "none", "lane_flags": self.flags,
            "unused": "ones" if self.ones else "zeros", **({} if self.mask == "none" else {"mask": self.mask}),
        }  # fmt: skip

    def options(self) -> str:
        """The command-line options that state this, with a space in front."""
        text = f" --lanes {self.count}" + (f" --word-bits {self.word_bits}" if self.word_bits is not None else "")
        text += " --scalar-b" if self.scalar else ""
        text += f" --lane-flags {self.flags}" if self.flags != "or" else ""
        text += f" --mask {self.mask}" if self.mask != "none" else ""
        return text + (" --nan-box" if self.ones else "")

    @classmethod
    def of_header(cls, header: dict[str, str]) -> Lanes | None:
        """What a header says; None of files without lanes. ValueError where it is unusable."""
        if "lanes" not in header:
            return None
        told = {key: header.get(key, default) for key, default in (cls(1).facts() | {"mask": "none"}).items()}
        numbers = [told["lanes"]] + ([] if told["word_bits"] == "lanes" else [told["word_bits"]])
        known = {"scalar": ("b", "none"), "lane_flags": _FLAGS, "unused": ("ones", "zeros"), "mask": _MASKS}
        for key, values in known.items():
            if told[key] not in values:
                raise ValueError(f"{key} must be {' or '.join(values)}, not {told[key]!r}")
        for number in numbers:
            if not number.isdecimal() or len(number) > 9:
                raise ValueError(f"lanes and word_bits are numbers, not {number!r}")
        word = int(told["word_bits"]) if len(numbers) > 1 else None
        scalar, ones = told["scalar"] == "b", told["unused"] == "ones"
        return cls(int(told["lanes"]), word, scalar, told["lane_flags"], ones, told["mask"])


@dataclass(frozen=True)
class PackedSpec(Spec):
    """An operation in several lanes of a word, as `make` checks it."""

    part: VectorSpec
    lanes: Lanes

    stochastic_bits = None

    @classmethod
    def make(cls, part: VectorSpec, lanes: Lanes) -> PackedSpec:
        """Check the parts against each other.

        Raises
        ------
        ValueError
            If a number is out of range, words have no room for the lanes, or the operation has random bits, codes of
            two words, a format of the user's own, no b to share, or a condition on results that b would not meet.
        """
        for what, number in (("lanes", lanes.count), ("word_bits", lanes.word_bits)):
            if number is None and what == "word_bits":
                continue
            if isinstance(number, bool) or not isinstance(number, Integral):
                raise TypeError(f"{what} must be an integer, got {number!r}")
            if not 1 <= number <= _WIDEST:
                raise ValueError(f"{what} must lie in 1..{_WIDEST}, got {number}")
        if not isinstance(part, VectorSpec):
            raise ValueError(f"{part.op} is of a unit, whose own lanes it states: lanes of words are of operations")
        if part.stochastic_bits is not None:
            raise ValueError(f"{part.op}, {part.rounding}: lanes of a word have no random bits")
        formats = (*part.formats, part.out_fmt)
        if any(f.leads or is_own(f) for f in formats):
            raise ValueError(f"{part.op}: lanes are of formats with a name, of up to 64 bits")
        if lanes.flags not in _FLAGS:
            raise ValueError(f"flags of lanes must be {' or '.join(_FLAGS)}, got {lanes.flags!r}")
        if lanes.mask not in _MASKS:
            raise ValueError(f"a mask of lanes is {' or '.join(_MASKS)}, got {lanes.mask!r}")
        if lanes.mask != "none" and lanes.count > _WIDEST_MASK:
            raise ValueError(f"masks are of {_WIDEST_MASK} lanes at most, got {lanes.count}")
        if lanes.scalar and len(part.formats) < 2:
            raise ValueError(f"{part.op} has no operand b that lanes could share")
        if lanes.scalar and part.space.only:
            raise ValueError(f"{part.op}: b of one lane serves all, whose results need not be{part.space.options()}")
        found = cls(part, lanes)
        for fmt in formats:
            word = lanes.word_bits or lanes.count * fmt.bits
            if word % fmt.bits or word < lanes.count * fmt.bits:
                most = word // fmt.bits
                raise ValueError(f"{lanes.count} lanes of {fmt} ({fmt.bits} bits) do not fill words of {word} bits: "
                                 f"word_bits must be a multiple of {fmt.bits}, and lanes at most {most}")  # fmt: skip
            if word > _WIDEST:
                raise ValueError(f"{lanes.count} lanes of {fmt} take {word} bits; words have at most {_WIDEST}")
        return found

    @property
    def op(self) -> str:
        """The operation."""
        return self.part.op

    @property
    def formats(self) -> tuple[Any, ...]:
        """The operands' formats."""
        return self.part.formats

    @property
    def out_fmt(self) -> AnyFormat:
        """The format of the results."""
        return self.part.out_fmt

    def _column(self, column: Column) -> Column:
        if column.name == "flags":
            return Column("flags", FLAG_BITS, None, self.lanes.count if self.lanes.flags == "each" else 1)
        if column.name == "b" and self.lanes.scalar:
            return column
        word = self.lanes.word_bits or self.lanes.count * column.bits
        return Column(column.name, column.bits, column.format, word // column.bits)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Operands, [old], [mask], result, flags."""
        columns = [self._column(c) for c in self.part.columns]
        at = len(self.formats)
        extra = [] if self.lanes.mask == "none" else [Column("mask", self.lanes.count)]
        if self.lanes.mask == "keep":
            result = columns[at]
            extra.insert(0, Column("old", result.bits, result.format, result.count))
        return (*columns[:at], *extra, *columns[at:])

    def _spread(self, codes: np.ndarray, column: Column) -> np.ndarray:
        """Codes of the lanes, shape (n, lanes)."""
        if column.count == 1 and codes.ndim == 1:
            return np.repeat(codes[:, None], self.lanes.count, 1)
        return codes[:, : self.lanes.count]

    def _unused(self, fmt) -> int:
        return (1 << fmt.bits) - 1 if self.lanes.ones and fmt.exponent_bits else 0

    def packed(self, codes: np.ndarray, column: Column) -> np.ndarray:
        """Words of codes of shape (n, lanes), the lanes that are not used filled."""
        if column.count == self.lanes.count:
            return np.ascontiguousarray(codes) if column.count > 1 else codes[:, 0]
        out = np.full((len(codes), column.count), self._unused(column.format), column.dtype)
        out[:, : self.lanes.count] = codes
        return out

    def badly_filled(self, codes: np.ndarray, column: Column) -> np.ndarray:
        """Which words hold something else in the lanes that are not used."""
        if codes.ndim == 1:
            return np.zeros(len(codes), bool)
        return (codes[:, self.lanes.count :] != self._unused(column.format)).any(1)

    def by_lane(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The operation's operands of all lanes, each of shape (n, lanes)."""
        count = len(self.formats)
        return [self._spread(x, c) for x, c in zip(operands[:count], self.operand_columns[:count], strict=True)]

    def active(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """Which lanes compute, shape (n, lanes)."""
        lanes = np.arange(self.lanes.count, dtype=np.uint64)
        if self.lanes.mask == "none":
            return np.ones((len(operands[0]), len(lanes)), bool)
        return operands[-1].astype(np.uint64)[:, None] >> lanes & np.uint64(1) != 0

    def idle(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """What lanes hold that do not compute, shape (n, lanes)."""
        if self.lanes.mask == "keep":
            return self._spread(operands[-2], self.operand_columns[-2])
        return np.zeros((len(operands[0]), self.lanes.count), self.out_fmt.storage_dtype)

    def masked(
        self, operands: Sequence[np.ndarray], result: np.ndarray, flags: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Results and flags of all lanes, as those that do not compute leave them."""
        active = self.active(operands)
        flags = None if flags is None else np.where(active, flags, flags.dtype.type(0))
        return np.where(active, result, self.idle(operands).astype(result.dtype)), flags

    def lane_results(self, operands: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
        """(codes, flags) of shape (n, lanes) of operands of that shape."""
        shape = operands[0].shape
        block = self.part.evaluate(tuple(np.ascontiguousarray(x).ravel() for x in operands))
        return block.result.reshape(shape), None if block.flags is None else block.flags.reshape(shape)

    def together(self, flags: np.ndarray) -> np.ndarray:
        """The flags of lanes as their column has them."""
        if self.lanes.flags == "or":
            return np.bitwise_or.reduce(flags, 1)
        return flags if self.lanes.count > 1 else flags[:, 0]

    def evaluate(self, operands: Sequence[np.ndarray], random_bits: np.ndarray | None = None) -> Block:
        """The vectors of given operands, shape (n, lanes of a word)."""
        result, flags = self.masked(operands, *self.lane_results(self.by_lane(operands)))
        column = next(c for c in self.columns if c.name == "result")
        flags = None if flags is None else self.together(flags)
        return Block(tuple(operands), None, self.packed(result, column), flags)

    def facts(self) -> dict[str, str]:
        """What a file's header says."""
        return {**self.part.facts(), **self.lanes.facts()}

    def options(self) -> str:
        """The command-line options that state this spec."""
        return self.part.options() + self.lanes.options()


@dataclass(frozen=True)
class PackedPlan:
    """Which words will be made: the operation's own plan, its vectors shuffled and dealt to the lanes."""

    spec: PackedSpec
    inner: Plan
    count: int
    seed: int

    @property
    def method(self) -> str:
        """As the operation's vectors are made."""
        return self.inner.method

    def blocks(self) -> Iterator[Block]:
        """The vectors, memory does not grow with the count; the last word is filled from the beginning."""
        lanes, done = self.spec.lanes.count, 0
        columns = self.spec.operand_columns[: len(self.spec.formats)]
        left, first = None, None
        for number, block in enumerate(self.inner.blocks()):
            order = np.argsort(raw_words(self.seed, _DOMAIN, number, len(block)), kind="stable")
            rows = [x[order] for x in block.operands]
            first = [x[:lanes] for x in rows] if first is None else first
            rows = rows if left is None else [np.concatenate(x) for x in zip(left, rows, strict=True)]
            whole = len(rows[0]) // lanes * lanes
            left = [x[whole:] for x in rows]
            if whole:
                yield self._words([x[:whole].reshape(-1, lanes) for x in rows], columns, done)
                done += whole // lanes
        while done < self.count:
            rows = [np.resize(np.concatenate(x), lanes) for x in zip(left, first, strict=True)]
            yield self._words([x.reshape(1, lanes) for x in rows], columns, done)
            done += 1

    def _words(self, codes, columns, start: int) -> Block:
        shared = [c.name == "b" and self.spec.lanes.scalar for c in columns]
        made = [x[:, 0] if s else self.spec.packed(x, c) for x, c, s in zip(codes, columns, shared, strict=True)]
        return self.spec.evaluate((*made, *self._masks(start, len(codes[0]))))

    def _masks(self, start: int, n: int) -> list[np.ndarray]:
        """Old words and masks of words start .. start + n - 1: an eighth of the masks has no lane, one all, one one."""
        spec, lanes = self.spec, self.spec.lanes
        if lanes.mask == "none":
            return []
        *_, column = spec.operand_columns
        words = raw_words(self.seed, _DOMAIN_MASKS, start, n * (1 + lanes.count)).reshape(n, -1)
        every = np.uint64((1 << lanes.count) - 1)
        kind, place = words[:, 0] >> np.uint64(61), words[:, 0] >> np.uint64(32) & np.uint64(0xFFFF)
        one = np.uint64(1) << place % np.uint64(lanes.count)
        drawn = words[:, 1] >> np.uint64(64 - lanes.count)
        mask = np.select([kind == 0, kind == 1, kind == 2], [every & np.uint64(0), every, one], drawn)
        out = [mask.astype(column.dtype)]
        if lanes.mask == "keep":
            old = spec.operand_columns[-2]
            codes = (words[:, 1:] >> np.uint64(64 - old.bits)).astype(old.dtype)
            out.insert(0, spec.packed(codes, old))
        return out


def packed_plan(part: VectorSpec, lanes: Lanes, *, count: int | None = None, seed: int = 0) -> PackedPlan:
    """Words of an operation in lanes.

    Parameters
    ----------
    part : VectorSpec
    lanes : Lanes
    count : int, optional
        How many words; by default as many as hold each vector that `plan` would make once.
    seed : int
        Same arguments, same file.

    Returns
    -------
    PackedPlan

    Raises
    ------
    ValueError
        As `PackedSpec.make` and `plan` do.

    Examples
    --------
    >>> from softnum.vectors import Lanes, VectorSpec, packed_plan
    >>> blocks = list(packed_plan(VectorSpec.make("multiply", "e5m2"), Lanes(8, scalar=True), count=3).blocks())
    >>> sum(map(len, blocks)), blocks[0].operands[0].shape[1:], blocks[0].operands[1].shape[1:]
    (3, (8,), ())
    """
    spec = PackedSpec.make(part, lanes)
    inner = plan(part, count=None if count is None else count * lanes.count, seed=seed)
    total = DEFAULT_COUNT if count is None else count
    return PackedPlan(spec, inner, min(total, -(-inner.count // lanes.count)), int(seed))
