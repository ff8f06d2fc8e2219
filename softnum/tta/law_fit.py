"""Fits of a law of several designs with some of its terms free, and their bootstrap (`softnum.tta.arithmetic_law`)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softnum.tta.law_runs import LawRun
from softnum.tta.outcomes.intervals import percentiles
from softnum.tta.scaling_law import ScalingLaw, drawings, huber_fit

__all__ = ["LOG4", "Columns", "TermFit"]

LOG4 = math.log(4.0)
_BASE = 5  # log A, log B, log E, a, b
_TAIL = {"C": 0.0, "r": 0.0, "q": 1.0}  # what these are without their terms


class Columns(NamedTuple):
    """Runs as columns: logarithms of N, D and loss; the number of the operands; log K / K0 and bits - bits0."""

    logs: np.ndarray
    group: np.ndarray
    length: np.ndarray
    bits: np.ndarray

    def known(self, column: np.ndarray) -> np.ndarray:
        """What is not NaN of bits or K."""
        return column[np.isfinite(column)]

    def take(self, rows: np.ndarray) -> Columns:
        """Those of some runs."""
        return Columns(*(column[rows] for column in self))


class TermFit:
    """Fits of a table with some terms free, and their bootstrap: of each choice the same drawings of runs."""

    def __init__(
        self, runs: list[LawRun], table: Columns, groups: int, bootstrap: int, seed: int, confidence: float,
        start: ScalingLaw,
    ) -> None:  # fmt: skip
        self.table, self.groups, self.confidence = table, groups, confidence
        self.names = ["A", "B", "E", "a", "b", *(f"g{index + 1}" for index in range(groups)), *_TAIL]
        self.start = np.array([*np.log(start.fitted[:3]), *start.fitted[3:], *([0.0] * groups), *_TAIL.values()])
        self.done: dict[tuple[int, ...], tuple[Any, ...]] = {}
        drawn, tries = drawings(runs, seed), 0
        self.rows: list[np.ndarray] = []
        widths = len(set(table.known(table.bits)))
        while len(self.rows) < bootstrap:
            rows, tries = next(drawn), tries + 1
            part = table.take(rows)
            whole = all(len(np.unique(part.logs[:, column])) >= 2 for column in (0, 1))
            whole &= len(np.unique(part.group)) == groups + 1
            whole &= len(set(part.known(part.bits))) >= min(2, widths)
            if whole:
                self.rows.append(rows)
            elif tries > 100 * bootstrap:
                raise ValueError("drawings of the runs hardly ever have all designs; train more runs of each")

    def run(self, free: list[str]) -> tuple[np.ndarray, list[np.ndarray]]:
        """All numbers with some terms free, and those of each drawing."""
        columns = [*range(_BASE), *sorted(self.names.index(name) for name in free)]
        if (found := self.done.get(tuple(columns))) is None:
            best = self._minimised(self.table, columns, self.start)
            found = best, [self._minimised(self.table.take(rows), columns, best) for rows in self.rows]
            self.done[tuple(columns)] = found
        return found

    def _minimised(self, table: Columns, columns: list[int], start: np.ndarray) -> np.ndarray:
        def whole(x):
            full = self.start.copy()
            full[columns] = x
            return full

        def errors(x):
            return self._terms(whole(x), table)[1] - table.logs[:, 2]

        def slopes(x):
            return self._slopes(whole(x), table)[:, columns]

        first = self.start.copy()
        first[columns] = start[columns]
        if (self.names.index("r") in columns) and not start[self.names.index("r")]:
            first[self.names.index("r")] = 0.1  # away from where the slope of nothing else shows it
        return whole(huber_fit(errors, slopes, first[columns], table.logs[:, 2].mean()))

    def _noise(self, x, table: Columns):
        """(K / K0)**r 4**(-q (bits - bits0)), zero where nothing is known of the sums."""
        _, power, slope = x[-3:]
        with np.errstate(over="ignore"):
            found = np.exp(np.clip(power * table.length - slope * LOG4 * table.bits, -700.0, 30.0))
        return np.where(np.isfinite(table.bits), found, 0.0)

    def _terms(self, x, table: Columns):
        shift = np.concatenate([[0.0], x[_BASE : _BASE + self.groups]])[table.group]
        shift = shift + x[-3] * self._noise(x, table)
        size, tokens, _ = table.logs.T
        parts = np.stack([x[0] - x[3] * size + shift, x[1] - x[4] * tokens, np.full_like(size, x[2])])
        top = parts.max(axis=0)
        return parts, top + np.log(np.exp(parts - top).sum(axis=0))

    def _slopes(self, x, table: Columns):
        parts, total = self._terms(x, table)
        shares = np.exp(parts - total)
        noise = self._noise(x, table)
        columns = [*shares, -shares[0] * table.logs[:, 0], -shares[1] * table.logs[:, 1]]
        columns += [shares[0] * (table.group == index + 1) for index in range(self.groups)]
        sums = shares[0] * noise
        length, bits = (np.nan_to_num(column) for column in (table.length, table.bits))
        columns += [sums, x[-3] * sums * length, -x[-3] * sums * LOG4 * bits]
        return np.stack(columns, axis=1)

    def value(self, values: np.ndarray, name: str) -> float:
        """A term's value among all numbers."""
        return float(values[self.names.index(name)])

    def interval(self, draws: np.ndarray, name: str) -> tuple[float, float]:
        """The interval of a term over the drawings."""
        return percentiles([self.value(draw, name) for draw in draws], self.confidence)

    def split(self, values: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """A, B, E, a and b; and g of all operands, C, r and q."""
        base = (*np.exp(values[:3]), *values[3:_BASE])
        return tuple(map(float, base)), (0.0, *map(float, values[_BASE:]))
