"""What is right for one transaction of a design: softnum as the model in a test bench, whatever runs the bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softnum.formats.wide import integers
from softnum.vectors.plans.spec import FLAG_BITS, Block, Column, Spec

__all__ = ["Expected", "ReferenceModel", "array_of", "evaluated", "known", "transaction", "word_of"]


class Expected(NamedTuple):
    """What is right: ``result``, a word (element 0 in the lowest bits), and ``flags``, None of a unit."""

    result: int
    flags: int | None


def known(value: Any) -> int | None:
    """The unsigned number that an int, a LogicArray or a Logic holds; None if one of its bits is neither 0 nor 1.

    >>> known(60)
    60
    """
    if isinstance(value, (int, np.integer)):
        return int(value)
    if not value.is_resolvable:
        return None
    return value.to_unsigned() if hasattr(value, "to_unsigned") else int(value)


def _elements(word: int, bits: int, count: int):
    """A word as what a row of a block's array holds."""
    if count == 1:
        return word
    mask = (1 << bits) - 1
    return [word >> (i * bits) & mask for i in range(count)]


def word_of(row: Any, bits: int) -> int:
    """A row of a block's array as a word: element 0 in the lowest bits."""
    if np.ndim(row) == 0:
        return int(integers(row)[()])
    return sum(int(code) << (i * bits) for i, code in enumerate(row))


def array_of(words: Sequence[int], column: Column) -> np.ndarray:
    """The array of a column's entries, given as words."""
    if column.count == 1 and column.format is not None:
        return column.format.stored(list(words)).reshape(len(words))
    shape = (len(words),) if column.count == 1 else (len(words), column.count)
    return np.array([_elements(w, column.bits, column.count) for w in words], column.dtype).reshape(shape)


class ReferenceModel:
    """The expected results of single transactions, as softnum computes them.

    Parameters
    ----------
    spec : VectorSpec or UnitSpec
        For a "mac" spec the model keeps the running sequence, which a call with first = 1 begins.

    Examples
    --------
    >>> from softnum.vectors import UnitSpec, VectorSpec
    >>> from softnum.vectors.model import ReferenceModel
    >>> multiply = ReferenceModel(VectorSpec.make("multiply", "e4m3fn"))
    >>> multiply(0x3C, 0x43)
    Expected(result=72, flags=1)
    >>> dot = ReferenceModel(UnitSpec.make("dot", "MadUnit('e6m9', operand='e5m2')", length=2))
    >>> hex(dot(0x3C3C, 0x403C).result)  # 1 * 1 + 1 * 2
    '0x4100'
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._sequence: list[Any] = []

    def __call__(self, *operands: Any, random_bits: Any = None) -> Expected:
        """The right result and flags.

        Parameters
        ----------
        *operands : int, LogicArray or Logic
            In the order of ``spec.operand_columns``; an entry of several elements is a word, element 0 lowest.
        random_bits : int, LogicArray or Logic, optional
            Of a stochastic rounding.

        Returns
        -------
        Expected

        Raises
        ------
        ValueError
            If a bit is x or z, a number does not fit its column, or operands are missing.
        """
        words, random = transaction(self.spec, operands, random_bits)
        if self.spec.op != "mac" or words[0]:
            self._sequence = []
        self._sequence.append((words, random))
        block = evaluated(self.spec, self._sequence)
        flags = None if block.flags is None else word_of(block.flags[-1], FLAG_BITS)
        return Expected(word_of(block.result[-1], self.spec.out_fmt.bits), flags)


def transaction(spec: Spec, operands: Sequence[Any], random_bits: Any) -> tuple[tuple[int, ...], int | None]:
    """(words, random word or None), or ValueError."""
    columns = spec.operand_columns
    if len(operands) != len(columns):
        names = ", ".join(c.name for c in columns)
        raise ValueError(f"{spec.op} takes {len(columns)} operands ({names}), got {len(operands)}")
    stochastic = [c for c in spec.columns if c.name == "random"]
    if stochastic and random_bits is None:
        raise ValueError(f"{spec.op} rounds stochastically: give random_bits")
    words = []
    for column, value in zip((*columns, *stochastic), (*operands, random_bits), strict=False):
        word = known(value)
        if word is None:
            raise ValueError(f"{column.name} = {value} has unknown bits")
        if word < 0 or word >> column.width:
            raise ValueError(f"{column.name} = {word:#x} does not fit the {column.width} bits of its column")
        words.append(word)
    return tuple(words[: len(columns)]), words[-1] if stochastic else None


def evaluated(spec: Spec, transactions: Sequence[tuple[Sequence[int], int | None]]) -> Block:
    """The vectors of (words, random word) pairs."""
    operands = [array_of([words[i] for words, _ in transactions], c) for i, c in enumerate(spec.operand_columns)]
    drawn = next((c for c in spec.columns if c.name == "random"), None)
    return spec.evaluate(operands, None if drawn is None else array_of([random for _, random in transactions], drawn))
