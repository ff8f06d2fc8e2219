"""All-reduce and its like as arithmetic: the same bits, whatever computes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.environment import seed_and_stream
from softnum.collectives.algorithms import ALGORITHMS
from softnum.collectives.arithmetic import Arithmetic, Columns
from softnum.collectives.orders import Chunks, chunks_of, parts_of
from softnum.collectives.rows import Rows, check_memory
from softnum.collectives.statement import checked, defaults_of
from softnum.formats.annotations import Key
from softnum.formats.base import AnyFormat
from softnum.mac.mad import Unit, shown
from softnum.runtime import _core

__all__ = ["Collective"]

_AT_ONCE = 1 << 23  # bytes of what all ranks put in that are computed at once,
_LEAST_WIDTH = 1 << 11  # and elements of a rank, where ranks are many
_SCATTERS = ("ring", "halving_doubling", "two_shot", "in_network")


@dataclass(frozen=True, repr=False)
class Collective:
    """A collective operation, made by `softnum.collective`, which documents the parameters; two are equal if they
    compute the same.

    ``format``: of the input and output arrays. ``wire``: of messages. ``repr`` is the Python expression that makes it,
    ``str`` the same without the call's name, as in records and on the command line.

    >>> import softnum as sn
    >>> c = sn.collective("tree", ranks=4, unit="bfloat16")
    >>> print(c)
    tree(ranks=4, unit=MadUnit('bfloat16', operand='bfloat16'))
    >>> sn.collective(str(c)) == c, c.stochastic
    (True, False)
    """

    name: str
    ranks: int
    unit: Unit
    format: AnyFormat
    wire: AnyFormat
    average: str | None
    own: str
    wire_rounding: str
    wire_overflow: str | None
    scale_rule: str | None
    stochastic_bits: int
    channels: int | None
    chunk: int | None
    align: int | None
    segments: int | None
    segment: int | None
    direction: int | None
    start: int | str | None
    order: tuple[Any, ...] | None
    node: int | None
    distance: str | None

    def __post_init__(self) -> None:
        checked(self)

    # -- what it is --------------------------------------------------------------------------------------------------
    def stated(self) -> dict[str, Any]:
        """The parameters that differ from their defaults, as they were given to `softnum.collective`."""
        plain = defaults_of(self.name, self.ranks, self.unit, self.format)
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != plain.get(f.name)}

    def _arguments(self) -> str:
        given = {what: value for what, value in self.stated().items() if what != "name"}
        given = {"ranks": self.ranks, "unit": self.unit} | given
        return ", ".join(f"{what}={shown(value)}" for what, value in given.items())

    def __repr__(self) -> str:
        return f"collective({self.name!r}, {self._arguments()})"

    def __str__(self) -> str:
        return f"{self.name}({self._arguments()})"

    def of(self, ranks: int) -> Collective:
        """The same collective for another number of ranks.

        >>> import softnum as sn
        >>> sn.collective("ring", ranks=2, unit="bfloat16").of(8).ranks
        8
        """
        return replace(self, ranks=ranks)

    @property
    def stochastic(self) -> bool:
        """Whether a key is needed: the unit rounds stochastically, or the wire."""
        return self.arithmetic.sum_is_stochastic or self.arithmetic.wire_is_stochastic

    @property
    def differs(self) -> bool:
        """Whether ranks may have different results of an all-reduce."""
        if self.name == "one_shot":
            return self.own == "kept" or self.start == "own"
        return self.own == "kept" and self.name != "in_network"

    @cached_property
    def arithmetic(self) -> Arithmetic:
        """Adder, wire and averages."""
        return Arithmetic(self)

    # -- sums --------------------------------------------------------------------------------------------------------
    def all_reduce(
        self,
        arrays: Sequence[ArrayLike],
        *,
        key: Key | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[np.ndarray]:
        """The sums, or averages, of arrays of all ranks, as each rank has them.

        Parameters
        ----------
        arrays : sequence of `ranks` arrays of one shape, float32 or float64, or Arrays; or one array (ranks, ...)
            The input of each rank: values of `format` (checked). A memory map is read in parts.
        key : int, (int, int) or Stream, optional
            Of stochastic roundings, of the unit or of the wire.
        progress : callable, optional
            Called after each part with the number of elements done and their total.

        Returns
        -------
        list of `ranks` ndarrays, of the arrays' shape
            Values of `format`, float32 if that holds it, else float64. Where all ranks have the same result, it is one
            array, which cannot be written to. Ranks' results differ only where the collective says ``own="kept"`` or
            ``start="own"`` (one_shot).

        Raises
        ------
        ValueError
            If there are not `ranks` arrays of one shape, a value is none of `format`, a key is missing, a result has no
            code, or arrays and results need more than 8 GiB.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> x = [np.full(3, 1 + r, np.float32) for r in range(8)]
        >>> c = sn.collective("ring", ranks=8, unit=sn.MadUnit("bfloat16", operand="bfloat16"), wire="bfloat16")
        >>> c.all_reduce(x)[0]
        array([36., 36., 36.], dtype=float32)
        """
        rows = Rows(arrays, self, "all_reduce")
        differ = self.differs
        check_memory(self, "all_reduce", rows.size, (1 + differ) * self.ranks + (not differ))
        out = np.empty((self.ranks, rows.size) if differ else rows.size, self.arithmetic.dtype)
        for columns, outcome in self._sums(rows, chunks_of(self, rows.size), key, "all_reduce", progress):
            part = slice(columns.first, columns.first + columns.count)
            out[..., part] = self._results(outcome, columns)
        return self._each(out.reshape((*out.shape[:-1], *rows.shape)), differ)

    def reduce_scatter(
        self,
        arrays: Sequence[ArrayLike],
        *,
        key: Key | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[np.ndarray]:
        """The sums, or averages, of arrays of all ranks: of each rank the part that it ends up with.

        Parameters
        ----------
        arrays, key, progress
            As `all_reduce`; the first axis of an array has `ranks` equal parts, in the order of the ranks.

        Returns
        -------
        list of `ranks` ndarrays
            A part each, which was not sent after it was summed.

        Raises
        ------
        ValueError
            As `all_reduce`, or if the first axis does not have equal parts, or the algorithm scatters nothing.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> c = sn.collective("ring", ranks=2, unit="binary32")
        >>> c.reduce_scatter(np.float32([[1, 2, 3, 4], [10, 20, 30, 40]]))
        [array([11., 22.], dtype=float32), array([33., 44.], dtype=float32)]
        """
        rows = Rows(arrays, self, "reduce_scatter", parts=True)
        if self.name not in _SCATTERS or (self.ranks & (self.ranks - 1) and self.name == "halving_doubling"):
            odd = f" of {self.ranks} ranks, no power of two" if self.name == "halving_doubling" else ""
            raise ValueError(
                f"reduce_scatter: {self.name}{odd} leaves no rank with a part of its own; take {', '.join(_SCATTERS)}, "
                "or all_reduce and its part"
            )
        check_memory(self, "reduce_scatter", rows.size, self.ranks + 1)
        out = np.empty(rows.size, self.arithmetic.dtype)
        for columns, outcome in self._sums(rows, parts_of(self, rows.size), key, "reduce_scatter", progress):
            sums = self.arithmetic.after(outcome.sums)
            out[columns.first : columns.first + columns.count] = _canonical(self.arithmetic.delivered(sums))
        return np.split(out.reshape(rows.shape), self.ranks)

    def _sums(self, rows: Rows, chunks: Chunks, key, caller: str, progress) -> Iterator:
        """(columns, outcome) of one run of elements after the other."""
        key = self._key(key, caller)
        algorithm, done = ALGORITHMS[self.name], 0
        with _core.PlainEnvironment():
            for columns in self._runs(chunks, key):
                x = self.arithmetic.before(rows.part(columns.first, columns.first + columns.count))
                yield columns, algorithm(self, self.arithmetic, x, columns)
                done += columns.count
                if progress is not None:
                    progress(done, rows.size)

    def _runs(self, chunks: Chunks, key) -> Iterator[Columns]:
        """Runs of elements, some megabytes of all ranks: whole chunks, or parts that end where a wire's block does."""
        wire = self.wire
        block = None if wire.element is wire else wire.block_size or 1 << 62
        most = self._width
        width = most if block is None else max(most // block, 1) * block
        # not at once: chunks of different trees, and blocks of any length
        together = self.name not in ("tree", "double_tree") and (block is None or wire.block_size is not None)
        pieces: list[tuple[int, int, int]] = []
        held = 0
        for start, stop, label in zip(*(x.tolist() for x in (chunks.starts, chunks.stops, chunks.labels)), strict=True):
            at = start
            while at < stop:
                count = min(width, stop - at)
                if pieces and (held + count > width or not together):
                    yield Columns(pieces, block, key)
                    pieces, held = [], 0
                pieces.append((at, count, label))
                at, held = at + count, held + count
        if pieces:
            yield Columns(pieces, block, key)

    def _results(self, outcome, columns: Columns) -> np.ndarray:
        """What ranks have in the end: of all of them, or a row each."""
        do = self.arithmetic
        sums = do.after(outcome.sums)
        if outcome.owners is None:
            rows = do.delivered(sums)
            if outcome.receivers is not None and len(outcome.receivers):
                to = outcome.receivers
                rows = rows.copy()
                rows[to] = do.arrived(sums[to], columns, outcome.number[to])
            return _canonical(rows)
        results = do.arrived(sums, columns, outcome.number)
        if self.own == "kept" and (outcome.owners >= 0).all():
            results = np.repeat(results[None], self.ranks, axis=0)
            results[outcome.owners, np.arange(columns.count)] = do.delivered(sums)
        return _canonical(results)

    # -- what only moves ---------------------------------------------------------------------------------------------
    def all_gather(self, arrays: Sequence[ArrayLike], *, key: Key | None = None) -> list[np.ndarray]:
        """The arrays of all ranks one after the other, as each rank has them: nothing is added, but the wire rounds.

        Parameters
        ----------
        arrays, key
            As `all_reduce`.

        Returns
        -------
        list of `ranks` ndarrays of shape (ranks, ...)
            One array for all, unless the own part is kept as it is (``own="kept"``) and the wire rounds.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> c = sn.collective("ring", ranks=2, unit="binary32", wire="e5m2", own="kept")
        >>> c.all_gather(np.float32([[1.1], [2.3]]))
        [array([[1.1],
               [2.5]], dtype=float32), array([[1. ],
               [2.3]], dtype=float32)]
        """
        rows = Rows(arrays, self, "all_gather")
        differ = self.own == "kept" and not self.wire.contains(self.format)
        check_memory(self, "all_gather", rows.size, self.ranks * (2 + self.ranks * differ))
        x, sent = self._moved(rows, [(0, rows.size)], key, "all_gather")
        shape = (self.ranks, *rows.shape)
        if not differ:
            return self._each(sent.reshape(shape), False)
        results = np.repeat(sent[None], self.ranks, axis=0)
        results[np.arange(self.ranks), np.arange(self.ranks)] = x
        return list(results.reshape(self.ranks, *shape))

    def all_to_all(self, arrays: Sequence[ArrayLike], *, key: Key | None = None) -> list[np.ndarray]:
        """Part s of each rank's array goes to rank s, which has them in the order of the ranks: the wire rounds.

        Parameters
        ----------
        arrays, key
            As `all_reduce`; the first axis has `ranks` equal parts.

        Returns
        -------
        list of `ranks` ndarrays, of the arrays' shape
            The part that a rank has of its own is rounded as if it were sent, or not: ``own``.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> sn.collective("ring", ranks=2, unit="binary32").all_to_all(np.float32([[1, 2], [10, 20]]))
        [array([ 1., 10.], dtype=float32), array([ 2., 20.], dtype=float32)]
        """
        rows = Rows(arrays, self, "all_to_all", parts=True)
        check_memory(self, "all_to_all", rows.size, 3 * self.ranks)
        each = rows.size // self.ranks
        x, sent = self._moved(rows, [(i * each, each) for i in range(self.ranks)], key, "all_to_all")
        ranks = np.arange(self.ranks)
        parts = sent.reshape(self.ranks, self.ranks, each)
        if self.own == "kept":
            parts[ranks, ranks] = x.reshape(parts.shape)[ranks, ranks]
        return [part.reshape(rows.shape) for part in np.ascontiguousarray(parts.transpose(1, 0, 2))]

    def _moved(self, rows: Rows, messages, key, caller: str) -> tuple[np.ndarray, np.ndarray]:
        """What ranks have, and what arrives of it, a row each."""
        key = self._key(key, caller)
        x = rows.part(0, rows.size)
        sent = np.empty_like(x)
        ranks = np.arange(self.ranks)
        with _core.PlainEnvironment():
            for first, count in messages if rows.size else ():
                columns, part = Columns([(first, count, 0)], None, key), slice(first, first + count)
                sent[:, part] = _canonical(self.arithmetic.arrived(x[:, part], columns, ranks, self.format))
        return x, sent

    # -- what it costs -----------------------------------------------------------------------------------------------
    def estimate(self, elements: int, *, seconds: float = 0.2) -> float:
        """Estimate the seconds that an all-reduce of this many elements per rank takes on this machine, by measuring a
        smaller one.

        Parameters
        ----------
        elements : int
        seconds : float
            Approximate time to measure; the number of elements grows until a measurement takes that long.

        Examples
        --------
        >>> import softnum as sn
        >>> sn.collective("ring", ranks=4, unit="binary32").estimate(10**9) > 1
        True
        """
        if isinstance(elements, bool) or not isinstance(elements, Integral) or elements < 0:
            raise ValueError(f"estimate: elements must be an integer from 0 on, got {elements!r}")
        key = 0 if self.stochastic else None
        most = self._width
        size = min(elements, most, 1024)
        while True:
            x = np.broadcast_to(np.ones(size, self.arithmetic.dtype), (self.ranks, size))
            began = time.perf_counter()
            self.all_reduce(x, key=key)
            took = time.perf_counter() - began
            if took >= seconds or size >= min(elements, most):
                return took * elements / max(size, 1)
            size = min(elements, most, 4 * size)

    # -- parts -------------------------------------------------------------------------------------------------------
    @property
    def _width(self) -> int:
        """Elements of each rank that are computed at once."""
        return max(_LEAST_WIDTH, _AT_ONCE // (self.ranks * self.arithmetic.dtype.itemsize))

    def _each(self, out: np.ndarray, differ: bool) -> list[np.ndarray]:
        if differ:
            return list(out)
        out.flags.writeable = False
        return [out] * self.ranks

    def _key(self, key, caller: str):
        if not self.stochastic:
            return None
        if key is None:
            raise ValueError(
                f"{caller}: the unit or the wire rounds stochastically; give key=seed or key=(seed, stream)"
            )
        return seed_and_stream(key)


def _canonical(values: np.ndarray) -> np.ndarray:
    """The values, NaNs as softnum gives them."""
    nan = np.isnan(values)
    if nan.any():
        values = values.copy()
        values[nan] = np.nan
    return values
