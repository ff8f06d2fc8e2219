"""All operands, one chunk after the other, through the gates of a design, compared with softnum's core in C."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softnum.vectors.formal.aig import FALSE, Aig, index_planes
from softnum.vectors.formal.blast import blast
from softnum.vectors.formal.bulk import codes_of, planes_of
from softnum.vectors.formal.miter import is_nan
from softnum.vectors.formal.unrolling import Unrolled
from softnum.vectors.plans.generator import plan
from softnum.vectors.plans.spec import Block, VectorSpec
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["Compared", "answer_of", "exhaust", "right_block", "simulate"]

_CHUNK = 1 << 18


@dataclass(frozen=True)
class Compared:
    """How many patterns of the spec's space were compared and how many differ, the first operands that do (and random
    bits), and whether all was decided: not if time ran out (`ended`), or an answer depends on what is undefined."""

    patterns: int
    differing: int
    first: tuple[int, ...] | None
    decided: bool
    ended: bool = False

    def plus(self, inputs: tuple[Any, ...], inside: np.ndarray, wrong: np.ndarray, unknown: np.ndarray) -> Compared:
        """With one more block."""
        first = self.first
        if first is None and wrong.any():
            first = tuple(int(codes[wrong.argmax()]) for codes in inputs)
        return Compared(
            self.patterns + int(inside.sum()), self.differing + int(wrong.sum()), first,
            self.decided and not unknown.any(),
        )  # fmt: skip


def right_block(spec: VectorSpec | UnitSpec, inputs: tuple[Any, ...]) -> Block:
    """What is right for codes of the operands (words of them, of units) and, in a stochastic mode, random bits."""
    if isinstance(spec, UnitSpec):
        elements = [
            np.stack([(words >> i * c.bits & (1 << c.bits) - 1).astype(c.dtype) for i in range(c.count)], axis=1)
            for words, c in zip((words.astype(object) for words in inputs), spec.operand_columns, strict=True)
        ]
        return spec.evaluate(
            [e if c.count > 1 else e[:, 0] for e, c in zip(elements, spec.operand_columns, strict=True)]
        )
    return spec.evaluate(inputs) if spec.stochastic_bits is None else spec.evaluate(inputs[:-1], inputs[-1])


class _Answers:
    """A design's answers: of each bit whether it is 1, and whether it is known where some inputs are not."""

    def __init__(self, spec: VectorSpec, unrolled: Unrolled, any_nan: bool) -> None:
        self.spec, self.width, self.flags = spec, spec.out_fmt.bits, unrolled.flags is not None
        others = set(unrolled.others)
        self.graph, roots = _two_rails(unrolled, others) if others else (unrolled.graph, unrolled.roots)
        self.count = len(unrolled.roots)
        self.roots = roots
        self.inputs = len(self.graph.inputs)
        self.nan = None
        if any_nan:
            self.nan, code = Aig(), [f"code[{i}]" for i in range(self.width)]
            self.nan_root = blast(is_nan(spec), self.nan, {"code": [self.nan.input(name) for name in code]})["nan"][0]

    def compared(
        self, inputs: tuple[Any, ...], found: list[Any]
    ) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray, np.ndarray]:
        """The inputs; which of them are of the space; of these, which answers differ, and which are not known."""
        count = len(inputs[0])
        want = right_block(self.spec, inputs)
        inside = np.ones(count, bool)
        if self.spec.space:
            inside = self.spec.space.admits([c.format for c in self.spec.operand_columns], want.operands)
        got = codes_of(found[: self.width], self.spec.out_fmt.storage_dtype, count)
        wrong = got != want.result
        if self.nan is not None and wrong.any():
            wrong &= ~(self._nans(got) & self._nans(want.result))
        if self.flags:
            wrong |= codes_of(found[self.width : self.count], np.uint8, count) != want.flags
        unknown = np.zeros(count, bool)
        if len(found) > self.count:
            plane = np.bitwise_or.reduce(np.stack(found[self.count :]))
            unknown = codes_of([plane], np.uint8, count).astype(bool)
        return inputs, inside, wrong & ~unknown & inside, unknown & inside

    def _nans(self, codes: np.ndarray) -> np.ndarray:
        found = self.nan.evaluate(planes_of(codes, self.width), [self.nan_root])
        return codes_of(found, np.uint8, len(codes)).astype(bool)


def _two_rails(unrolled: Unrolled, others: set[int]) -> tuple[Aig, list[int]]:
    """A graph of the operands alone. It has the answer's bits, 0 where they are not known, and then for each bit
    whether it is not known: what a simulator of three values would say."""
    source, graph = unrolled.graph, Aig()
    one: list[int] = [FALSE] * len(source)
    zero: list[int] = [FALSE] * len(source)
    zero[0] = FALSE ^ 1
    for place, node in enumerate(source.input_nodes):
        if place < unrolled.operand_bits:
            one[node] = graph.input(source.inputs[place])
            zero[node] = one[node] ^ 1
    rails = (one, zero)
    for node in source.cone(unrolled.roots):
        (a, p), (b, q) = ((lit >> 1, lit & 1) for lit in (source.left[node], source.right[node]))
        one[node] = graph.land(rails[p][a], rails[q][b])
        zero[node] = graph.lor(rails[1 - p][a], rails[1 - q][b])
    ones = [rails[r & 1][r >> 1] for r in unrolled.roots]
    zeros = [rails[1 - (r & 1)][r >> 1] for r in unrolled.roots]
    return graph, ones + [graph.lor(x, y) ^ 1 for x, y in zip(ones, zeros, strict=True)]


def exhaust(spec: VectorSpec, unrolled: Unrolled, any_nan: bool = False, timeout: float | None = None) -> Compared:
    """Compare the design's answers with `VectorSpec.evaluate` for all operands.

    Where the answer has a path from registers' former contents, other cycles' inputs or undefined values, these are
    unknown; an answer that is known in spite of that is compared, and one that is not is not decided here.

    Examples
    --------
    A design that turns the sign bit is a negation; one that sets it is wrong for the 8 codes that have it already.

    >>> graph = Aig()
    >>> *low, sign = (graph.input(f"a[{i}]") for i in range(4))
    >>> spec = VectorSpec.make("negate", "e2m1fn")
    >>> exhaust(spec, Unrolled(graph, 4, [*low, sign ^ 1], None))
    Compared(patterns=16, differing=0, first=None, decided=True, ended=False)
    >>> exhaust(spec, Unrolled(graph, 4, [*low, 1], None))
    Compared(patterns=16, differing=8, first=(8,), decided=True, ended=False)
    """
    columns = spec.input_columns
    bits = unrolled.operand_bits
    total, end = 1 << bits, None if timeout is None else time.monotonic() + timeout
    answers = _Answers(spec, unrolled, any_nan)
    lows, low = {}, bits
    for column in columns:  # the first operand changes least often
        low -= column.width
        lows[column.name] = low
    starts = range(0, total, _CHUNK)
    size = min(_CHUNK, total)
    words = -(-size // 64)

    def chunk(start: int) -> list[Any]:
        planes = index_planes(0, bits, start, words)
        return [planes[lows[c.name] + i] for c in columns for i in range(c.width)]

    def codes(start: int) -> tuple[Any, ...]:
        number = np.arange(start, start + size, dtype=np.uint64)
        return tuple(
            (number >> np.uint64(lows[c.name]) & np.uint64((1 << c.width) - 1)).astype(
                c.dtype if c.count == 1 else np.uint64
            )
            for c in columns
        )

    padding = [None] * (answers.inputs - bits)
    found = answers.graph.evaluations(([*chunk(start), *padding] for start in starts), answers.roots)
    compared = Compared(0, 0, None, True)
    for start, planes in zip(starts, found, strict=True):
        compared = compared.plus(*answers.compared(codes(start), planes))
        if end is not None and time.monotonic() > end and start + size < total:
            return replace(compared, decided=False, ended=True)
    return compared


def simulate(spec: VectorSpec, unrolled: Unrolled, any_nan: bool = False, count: int = 1 << 17) -> Compared:
    """The same for as many vectors as `softnum vectors generate` makes, edge cases first: it finds most faults soon."""
    answers = _Answers(spec, unrolled, any_nan)
    compared = Compared(0, 0, None, True)
    padding = [None] * (answers.inputs - unrolled.operand_bits)
    for block in plan(spec, count=count).blocks():
        inputs = block.operands if block.random_bits is None else (*block.operands, block.random_bits)
        rows = [codes.reshape(len(block), -1).T for codes in inputs]
        planes = [p for row, c in zip(rows, spec.input_columns, strict=True) for e in row for p in planes_of(e, c.bits)]
        inputs = tuple(
            row[0] if len(row) == 1 else sum(e.astype(object) << i * c.bits for i, e in enumerate(row))
            for row, c in zip(rows, spec.input_columns, strict=True)
        )
        found = answers.graph.evaluate([*planes, *padding], answers.roots)
        compared = compared.plus(*answers.compared(inputs, found))
    return compared


def answer_of(
    spec: VectorSpec, unrolled: Unrolled, operands: tuple[int, ...], others: dict[int, int]
) -> tuple[Any, ...]:
    """(result, flags or None) of a design for one set of operands; ``others`` says what other inputs are, else 0."""
    bits = [code >> i & 1 for code, c in zip(operands, spec.input_columns, strict=True) for i in range(c.width)]
    bits += [others.get(i, 0) for i in range(unrolled.operand_bits, len(unrolled.graph.inputs))]
    found = unrolled.graph.evaluate([np.array([bit], np.uint64) for bit in bits], unrolled.roots)
    values = [int(plane[0]) & 1 for plane in found]
    width = len(unrolled.result)
    result = sum(bit << i for i, bit in enumerate(values[:width]))
    return result, None if unrolled.flags is None else sum(bit << i for i, bit in enumerate(values[width:]))
