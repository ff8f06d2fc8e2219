"""What a collective computes with: its adder, what the wire makes of values, averages; and their random words."""

from __future__ import annotations

import numpy as np

from softnum.arrays import lanes
from softnum.arrays.conversion import decode, encode, quantize
from softnum.arrays.streams import Stream
from softnum.formats.facts import fits
from softnum.formats.names import format
from softnum.mac.family import family_of
from softnum.mac.mad import MadUnit
from softnum.mac.products.matrices import matmul_by_unit
from softnum.mac.products.sums import addend_formats, adder_of
from softnum.ops.arithmetic import divide, multiply
from softnum.ops.values import carried, carry
from softnum.runtime import _core

__all__ = ["Arithmetic", "Columns", "Words"]

_SUMS, _WIRES = 0, 1  # children of the key
_SHORT = 256  # elements: pieces below are not picked one by one


class Words:
    """The random words of elements first, first + 1, ..., of `count`: of a sum's rounding, or of one before a wire.

    Rounding t of element i takes word i of an elementwise operation under ``Stream(key).spawn(2)[kind].jumped(t)``.
    """

    def __init__(self, key, first: int, count: int) -> None:
        self.kinds = None if key is None else Stream(key).spawn(2)
        self.first, self.count = first, count

    def _of(self, kind: int, number: int) -> np.ndarray:
        stream = self.kinds[kind].jumped(int(number))
        return lanes.words_of_key(_core.philox_key(*stream, 0), self.count, self.first)

    def of(self, kind: int, numbers) -> np.ndarray:
        """Those of a rounding, or of several: a row each."""
        if np.ndim(numbers) == 0:
            return self._of(kind, numbers)
        return np.stack([self._of(kind, number) for number in numbers])


class Columns:
    """Consecutive elements that are computed at once: first to first + count, in pieces of a chunk each.

    ``counts`` and ``labels`` are those of the pieces.

    Parameters
    ----------
    pieces : list of (first, count, label)
        Consecutive ones, none of which ends within a block of the wire unless its chunk does.
    block : int or None
        Elements of a wire's block.
    key : key of the random words, or None
    """

    def __init__(self, pieces: list[tuple[int, int, int]], block: int | None, key) -> None:
        counts = [count for _, count, _ in pieces]
        self.first, self.count = pieces[0][0], sum(counts)
        self.counts, self.labels = np.array(counts), np.array([label for _, _, label in pieces])
        self.words = Words(key, self.first, self.count)
        self.padded = self.places = None
        if block is not None and any(count % block for count in counts[:-1]):
            sizes = [-(-count // block) * block for count in counts]
            before = np.cumsum([0, *sizes[:-1]])
            self.padded = sum(sizes)
            self.places = np.concatenate([np.arange(count) + at for count, at in zip(counts, before, strict=True)])

    def each(self, of_pieces) -> np.ndarray:
        """What pieces have, for each element."""
        return np.repeat(of_pieces, self.counts)

    def picked(self, rows: np.ndarray, which) -> np.ndarray:
        """Of each piece, its elements of one of the rows."""
        if len(which) * _SHORT > self.count:
            return rows[self.each(which), np.arange(self.count)]
        out, stops = np.empty(self.count, rows.dtype), np.cumsum(self.counts).tolist()
        for start, stop, row in zip([0, *stops[:-1]], stops, which.tolist(), strict=True):
            out[start:stop] = rows[row, start:stop]
        return out


class Arithmetic:
    """The adder, wire and averages of a `Collective`, on arrays of values, one row for each partial sum."""

    def __init__(self, c) -> None:
        self.c, unit = c, c.unit
        family = family_of(unit)
        own = addend_formats(unit)
        self.taken = own[0]  # what the adder takes besides the sum: its own format, or the operands'
        self.result = unit.result
        self.adder = adder_of(unit, self.taken)
        self.chain = family.sequence is not None and family.sequence(unit) == "steps"
        wide = (self.taken, self.result, c.format, *(() if c.wire.element is not c.wire else (c.wire,)))
        self.dtype = np.dtype(np.float32 if all(fits(fmt, np.float32) for fmt in wide) else np.float64)
        self.wire_dtype = self.dtype if fits(c.wire, self.dtype) else np.dtype(np.float64)
        self.sum_is_stochastic = self.adder.stochastic
        self.wire_is_stochastic = c.wire_rounding.startswith("stochastic")
        self.reciprocal = _reciprocal(c.ranks, c.format)
        self._add = self._carried() if isinstance(unit, MadUnit) and self.chain else None

    def _carried(self):
        """The addition in one step of float32 lanes, of a plain deterministic unit; None of others."""
        unit = self.c.unit
        plain = MadUnit(unit.accumulator, operand=unit.operand, product=unit.product, rounding=unit.rounding,
                        product_rounding=unit.product_rounding, overflow=unit.overflow, random=unit.random,
                        stochastic_bits=unit.stochastic_bits)  # fmt: skip
        if plain != unit or self.sum_is_stochastic or self.dtype != np.float32:
            return None
        return carried("add", (self.result, self.taken), self.result, unit.rounding, unit.overflow, 32)

    # -- rounding to formats -----------------------------------------------------------------------------------------
    def _to(self, values: np.ndarray, fmt, source) -> np.ndarray:
        """Values of the source format as those of another, rounded to nearest even where it lacks them."""
        if not fmt.contains(source):
            values = quantize(values, fmt)
        return values.astype(self.dtype, copy=False)

    def delivered(self, values: np.ndarray) -> np.ndarray:
        """Sums as results: values of the arrays' format."""
        return self._to(values, self.c.format, self.result)

    def sent(self, values: np.ndarray, columns: Columns, number, source=None) -> np.ndarray:
        """What arrives of values: rounded to the wire, and to what the adder takes where it lacks that.

        Parameters
        ----------
        values : ndarray, shape (..., n)
        columns : Columns
        number : int, or one for each row
            Of the rounding, for its random words.
        source : format, optional
            One that has all the values; default the sum's.
        """
        return self._through(values, columns, number, source, self.taken)

    def arrived(self, values: np.ndarray, columns: Columns, number, source=None) -> np.ndarray:
        """As `sent`, of what is no operand of an adder any more: values of the arrays' format."""
        return self._through(values, columns, number, source, self.c.format)

    def _through(self, values, columns: Columns, number, source, fmt) -> np.ndarray:
        wire, source = self.c.wire, self.result if source is None else source
        if not wire.contains(source):
            words = columns.words.of(_WIRES, number) if self.wire_is_stochastic else None
            values = self._on_wire(values.astype(self.wire_dtype, copy=False), columns, words)
            source = wire
        return self._to(values, fmt, source)

    def _on_wire(self, values: np.ndarray, columns: Columns, words) -> np.ndarray:
        c = self.c
        options = {"rounding": c.wire_rounding, "overflow": c.wire_overflow}
        if c.wire.element is c.wire:
            return quantize(values, c.wire, random_bits=words, stochastic_bits=c.stochastic_bits, **options)
        options |= {"scale_rule": c.scale_rule} if c.scale_rule else {}
        if self.wire_is_stochastic:
            options["stochastic_bits"] = c.stochastic_bits
        if columns.padded is None:
            return quantize(values, c.wire, random_bits=words, **options)
        rows = (*values.shape[:-1], columns.padded)
        spread = np.zeros(rows, values.dtype)
        spread[..., columns.places] = values
        if words is not None:
            given, words = words, np.zeros(rows, np.uint32)
            words[..., columns.places] = given
        return quantize(spread, c.wire, random_bits=words, **options)[..., columns.places]

    # -- sums --------------------------------------------------------------------------------------------------------
    def add(self, own: np.ndarray, arrived: np.ndarray, columns: Columns, number) -> np.ndarray:
        """R(own + arrived), element by element."""
        if self._add is not None:
            values = carry(self._add, (np.ascontiguousarray(own), np.ascontiguousarray(arrived)), None)
            if values is not None:
                return values
        words = None
        if self.sum_is_stochastic:
            words = np.ascontiguousarray(columns.words.of(_SUMS, number)).reshape(1, 1, -1)
        return self._product(arrived.reshape(1, -1), own.reshape(1, -1), words).reshape(own.shape)

    def total(self, rows: np.ndarray, columns: Columns) -> np.ndarray:
        """The sum of many at once, shape (K, n): a chain from the first one on, or all as terms of the unit."""
        start, terms = (rows[:1], rows[1:]) if self.chain else (None, rows)
        words = None
        if self.sum_is_stochastic:
            steps = self.adder.steps(len(terms)) if start is None else self.adder.steps_with_c(len(terms))
            words = columns.words.of(_SUMS, range(1, steps + 1))[None]
        return self._product(np.ascontiguousarray(terms), start, words)[0]

    def _product(self, terms, start, words) -> np.ndarray:
        ones = np.ones((1, len(terms)), np.float32)
        values = matmul_by_unit(ones, terms, self.adder, start, None, words, None, None, caller="collective")
        return values.astype(self.dtype, copy=False)

    # -- averages ----------------------------------------------------------------------------------------------------
    def before(self, values: np.ndarray) -> np.ndarray:
        """What a rank puts in: its values, or their part of an average."""
        average, fmt = self.c.average, self.c.format
        if average == "before":
            return self._divided(values, fmt)
        if average == "reciprocal_before":
            return self._multiplied(values, fmt, self.reciprocal, fmt)
        return values

    def after(self, values: np.ndarray) -> np.ndarray:
        """Sums, or their averages, where these are made at the end."""
        average, fmt = self.c.average, self.result
        if average == "after":
            return self._divided(values, fmt)
        if average == "reciprocal_after":
            return self._multiplied(values, fmt, _reciprocal(self.c.ranks, fmt), fmt)
        return values

    def _divided(self, values, fmt) -> np.ndarray:
        return self._applied("divide", divide, values, fmt, float(self.c.ranks), format("binary32"))

    def _multiplied(self, values, fmt, factor: float, of) -> np.ndarray:
        return self._applied("multiply", multiply, values, fmt, factor, of)

    def _applied(self, name, operation, values, fmt, number: float, of) -> np.ndarray:
        if self.dtype == np.float32 and (lane := carried(name, (fmt, of), fmt, "nearest_even", None, 32)) is not None:
            result = carry(lane, (np.ascontiguousarray(values), np.full(1, number, np.float32)), None)
            if result is not None:
                return result
        codes = operation(encode(values, fmt), encode(np.float64([number]), of), (fmt, of), out_fmt=fmt)
        return decode(codes, fmt, self.dtype)


def _reciprocal(ranks: int, fmt) -> float:
    """1 / ranks as NCCL has it: in binary64, then binary32 where the format is not wider, then the format."""
    value = np.float64(1.0) / ranks
    if fits(fmt, np.float32):
        value = np.float64(np.float32(value))
    return float(quantize(value, fmt))
