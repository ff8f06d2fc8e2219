"""`identify`: from a black box to its unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.annotations import FormatLike
from softnum.formats.blocks import format as any_format
from softnum.formats.names import format
from softnum.inspect.identify.blocks import array_of, is_block_pair, known_pairs
from softnum.inspect.identify.box import BadBox, Box, Exhausted
from softnum.inspect.identify.families import FAMILIES, Facts, Family
from softnum.inspect.identify.fit import Data, Decided, Row, fit, kicked, predicted, race, undecided
from softnum.inspect.identify.pools import KINDS, Rows, draw
from softnum.inspect.identify.ports import Port, operand_port, result_port, start_port
from softnum.inspect.identify.report import Finding, Identified, Refutation, Undecided, in_parts
from softnum.inspect.identify.scales import Probe, steps_of_blocks
from softnum.inspect.identify.shrink import shrunk
from softnum.inspect.identify.sums import Sums
from softnum.inspect.which import candidates
from softnum.mac.mad import MadUnit, Unit
from softnum.runtime.plain import plain

__all__ = ["MEASURING", "identify"]

#: The most dot products that finding a unit takes, beside the random rows that it is checked on.
MEASURING = 150_000
_LONG = 136  # products of the longest sums that are asked
_BLOCK = 32  # rows and columns of a block of random rows
_ROUNDS = 12  # times that a refuted unit is mended
_SHOWN = 2  # refuted values of a property that are told


@plain
def identify(
    f: Callable[..., Any],
    *,
    operand: FormatLike | tuple[FormatLike, FormatLike] | None = None,
    output: FormatLike | None = None,
    rows: int = 100_000,
    longest: int = _LONG,
    seed: int = 0,
) -> Identified:
    """Find the unit with which a black box computes dot products.

    Queries determine its formats, the order of its additions, how many bits it keeps and how it rounds; each is chosen
    from the answers so far. The unit that gives all answers is then checked on random rows. A row on which it differs
    becomes a further query, until a unit gives all answers or no family of units has one.

    Parameters
    ----------
    f : callable ``f(a, b)`` or ``f(a, b, c)``
        Takes arrays as `softnum.matmul` does, float32 or float64 of shape (M, K), (K, N) and (M, N), for any M, K and
        N, and gives the (M, N) results; it may raise ValueError, TypeError or ArithmeticError for operands that it does
        not support. It is never called with c=None: without C it gets two arguments. If it refuses numbers, it is
        called with BlockArrays of the same shapes, blocked along K.
    operand : format, BlockFormat, str or a pair of them, optional
        The formats of a and b. None: found by what the box refuses, rounds, or tells apart; of block formats those with
        names are tried. Numbers come in float32 where that holds the formats, and in float64 until they are known.
    output : format or str, optional
        The format of the result. None: found.
    rows : int
        The number of random rows on which the unit is checked.
    longest : int
        The number of products in the longest sums, 8 to 1024: an order that shows only in longer sums is not detected.
    seed : int
        The seed of the random rows.

    Returns
    -------
    Identified
        ``unit``, or None with ``reason`` and ``refutation``; ``evidence``, ``undecided``, ``equivalent``, ``calls``,
        ``products``; a report when it is printed. The box computes no more than 150 000 dot products and `rows` more.

    Raises
    ------
    ValueError
        If the box does not multiply matrices: 1 * 1 is not 1, or a result has the wrong shape.

    Notes
    -----
    The order is found as by FPRev (arXiv 2411.00442), for nodes of any number of terms. A unit is returned only if it
    gives all answers; values of a property that no answer refutes are listed in ``undecided``, and the unit has the
    default one.

    Examples
    --------
    >>> import softnum as sn
    >>> secret = sn.FusedDotUnit(4, 20, "binary32", operand="e5m2")
    >>> found = sn.identify(lambda a, b, c=None: sn.matmul(a, b, secret, c), rows=2000)
    >>> found.unit == secret, found.products < 152_000
    (True, True)
    """
    if not 8 <= longest <= 1024:
        raise ValueError(f"identify: longest must lie in 8..1024, got {longest}")
    if rows < 0:
        raise ValueError(f"identify: rows must be 0 or more, got {rows}")
    box = Box(f, MEASURING + rows)
    search = _Search(box, operand, output, rows, longest, seed)
    try:
        return search.run()
    except BadBox as error:
        raise ValueError(str(error)) from None
    except Exhausted:
        return search.none(
            f"undecided: the bound of {box.most} dot products was reached; state operand= and output=, or more rows="
        )


class _Search:
    """The questions to one box, in turn."""

    def __init__(self, box: Box, operand, output, rows: int, longest: int, seed: int) -> None:
        self.box, self.rows, self.longest, self.seed = box, rows, longest, seed
        self.operand = None
        if operand is not None:
            pair = operand if isinstance(operand, tuple) else (operand, operand)
            if len(pair) != 2:
                raise ValueError(f"identify: operand is one format or a pair, got {len(pair)}")
            self.operand = tuple(map(any_format, pair))
        self.output = None if output is None else format(output)
        self.evidence: list[Finding] = []
        self.undecided: list[Undecided] = []
        self.ordered = True  # whether sums of numbers have an order that shows
        self.random: list[tuple[Rows, np.ndarray]] = []  # rows that units are checked on, and the box's answers
        self.checked = 0

    def none(self, reason: str, refutation: Refutation | None = None) -> Identified:
        """No unit, and why."""
        return self._found(None, reason=reason, refutation=refutation)

    def _found(self, unit, **more) -> Identified:
        evidence = self.evidence
        if self.box.blocks:
            evidence = [in_parts(x, self.box.blocks) for x in evidence]
        return Identified(
            unit, tuple(evidence), tuple(self.undecided), calls=self.box.calls, products=self.box.products,
            rows=self.checked, start=getattr(self, "facts", None) and self.facts.start, **more,
        )  # fmt: skip

    def run(self) -> Identified:
        box = self.box
        self._blocks()
        first = box.one([1.0], [1.0])
        if first is None:
            raise BadBox(
                "identify: the box refuses 1 * 1, as numbers and in blocks of every known format; state operand="
            )
        if first != 1.0:
            raise BadBox(f"identify: the box gives {first} for 1 * 1; it is no product of matrices")
        if box.takes_c and box.one([1.0], [1.0], 1.0) != 2.0:
            box.takes_c = False  # its third argument is another thing
        reason = self._formats()
        if reason:
            return self.none(reason)
        reason = self._same_always()
        if reason:
            return self.none(reason)
        measured: list[Rows] = []  # random rows may not show what these do
        if box.blocks:
            steps_of_blocks(Probe(box, self.operand, self.longest, self.evidence), self.facts)
        else:
            sums = Sums(box, self.facts, self.longest, self._begin, self.evidence, self.undecided)
            sums.order()
            sums.alignment()
            self.ordered, measured = sums.masks is not None, sums.measured
        self._begin()  # again, with what was measured since
        data = Data(box, self.facts)
        data.fill(self._lengths(), self.seed)
        for rows in measured:
            data.ask(rows)
        return self._fit(data)

    # -- formats -----------------------------------------------------------------------------------------------------
    def _blocks(self) -> None:
        """Whether a and b come in blocks: as stated, or where the box refuses numbers and takes BlockArrays."""
        box, stated = self.box, self.operand is not None
        if stated and not is_block_pair(self.operand):
            return
        if not stated and box.one([1.0], [1.0]) is not None:
            return
        for pair in [self.operand] if stated else known_pairs():
            box.carries(pair)
            if box.one([1.0], [1.0]) is not None:
                break
        else:
            box.blocks = None
            return
        self.operand = box.blocks
        if not stated:
            for name, fmt in zip("ab", self.operand, strict=True):
                why = f"a BlockArray of {fmt} is taken at {name}, where numbers and the formats before are refused"
                self.evidence.append(self._ones(f"format of {name}", fmt, why))

    def _ones(self, name: str, value, why: str) -> Finding:
        """A finding by 1 * 1 in blocks."""
        return Finding(name, value, why, *self.box.packed([1.0], [1.0]), None, self.box.one([1.0], [1.0]))

    def _formats(self) -> str:
        """Find what is not stated; why that cannot be, or ""."""
        box = self.box
        if self.operand is None:
            found = []
            for name in "ab":
                port, formats = operand_port(box, name)
                if not formats:
                    return f"no format is known that has what was seen at {name}: {port.words}; state operand="
                found.append(formats[0])
                self._noted(f"format of {name}", formats[0], port)
            self.operand = tuple(found)
        box.carries(self.operand)
        factors = tuple(f.element for f in self.operand) if box.blocks else self.operand
        starts = []
        if box.takes_c:
            port, starts = start_port(box)
            if starts:
                self._noted("format of C", starts[0], port)
        outputs = [] if self.output is None else [self.output]
        if not outputs:
            more = (
                Probe(box, self.operand, self.longest, self.evidence).sums() if box.blocks and not box.takes_c else ()
            )
            port, outputs = result_port(box, factors, starts[0] if starts else None, more)
            if not outputs:
                return f"no format is known that has what was seen of the results: {port.words}; state output="
            self._noted("format of the result", outputs[0], port)
        if self.output is not None and self.output in starts:
            starts = [self.output, *(s for s in starts if s != self.output)]
        self.facts = Facts(self.operand, tuple(starts[:4] or outputs[:1]), tuple(outputs[:4]), box.takes_c)
        box.carries(self.operand, self.facts.c_formats[0])
        if not box.takes_c:
            self.undecided.append(Undecided("C", (), "the box takes no C: what it does to a sum's start is not asked"))
            out = box.one([-0.0], [1.0]) if factors[0].negative_zero else None
            if out == 0 and np.signbit(out):
                self.facts.start = -0.0
                why = "a sum of -0 is -0: it begins with its first product, as the unit does with a C of -0"
                self.evidence.append(Finding("start", -0.0, why, (-0.0,), (1.0,), None, out))
        return ""

    def _noted(self, name: str, fmt, port: Port) -> None:
        for seen in port.seen[:3]:
            self.evidence.append(Finding(name, fmt, seen.why, seen.a, seen.b, seen.c, seen.output))

    # -- the same answer always --------------------------------------------------------------------------------------
    def _same_always(self) -> str:
        """Whether the same input has the same answer, again and in other company; why not, or ""."""
        formats = self.facts.operand, self.facts.c_formats[0], self.facts.outputs[0]
        start = "C" if self.box.takes_c else None
        for kind in ("plain", "wide", "halves"):
            for k in (1, 3, 19, min(70, self.longest)):
                x = draw(kind, formats, start, (self.seed, k), (6, k, 6))
                first = self.box.block(x.a, x.b, x.c)
                again = [self.box.block(x.a, x.b, x.c) for _ in range(3)]
                for other in again:
                    if (at := np.argwhere(other != first)).size:
                        i, j = at[0]
                        self._seen_twice("stochastic", x, i, j, first, other)
                        return (
                            "none of the families: the same input has two answers, so it rounds stochastically, or its "
                            "order changes"
                        )
                for i, j in ((0, 0), (3, 5)):
                    c = None if x.c is None else x.c[i : i + 1, j : j + 1]
                    alone = self.box.block(x.a[i : i + 1], x.b[:, j : j + 1], c)
                    if alone[0, 0] != first[i, j]:
                        self._seen_twice("depends on M and N", x, i, j, first, np.broadcast_to(alone, first.shape))
                        return (
                            "none of the families: a dot product alone has another result than among others; "
                            "softnum.inspect.identify.one_by_one(f) asks for each alone"
                        )
        x = draw("plain", formats, start, self.seed, (1, 3, 1))
        out = self.box.block(x.a, x.b, x.c)
        self.evidence.append(
            Finding("stochastic", False, "the same input four times, alone and among others, has one answer",
                    *_input(x, 0, 0), float(out.view(np.float64)[0, 0]))
        )  # fmt: skip
        return ""

    def _seen_twice(self, name: str, x: Rows, i: int, j: int, first, other) -> None:
        one, two = (float(bits[i : i + 1, j : j + 1].copy().view(np.float64)[0, 0]) for bits in (first, other))
        self.evidence.append(Finding(name, True, f"it gives {one!r} and {two!r}", *_input(x, i, j), one))

    def _begin(self) -> bool:
        """Find units to begin from; whether there are any."""
        families = [family for family in FAMILIES.values() if family.of_blocks == self.facts.of_blocks]
        self.starts = [(family, start) for family in families for start in family.starts(self.facts)]
        return bool(self.starts)

    def _lengths(self) -> list[int]:
        terms = 4
        for _, start in self.starts:
            sizes = (getattr(start, name, None) or 1 for name in ("period", "terms", "chunk", "lanes"))
            terms = max(sizes)
            break
        size, terms = terms, min(terms, self.longest // 2)
        if self.box.blocks:
            size = self.operand[0].size(terms)
            more = {1, 3, size // 2, size - 1, size, size + 1, 2 * size, 2 * size + 3, 4 * size, 2 * terms + 1}
            return sorted(k for k in more if 1 <= k <= self.longest)
        more = {1, 2, 3, 4, 7, terms // 2, terms - 1, terms, terms + 1, 2 * terms + 1}
        more |= {size - 1, size, size + 1, self.longest} if size > terms else set()
        more |= set() if self.ordered else {17, 33, 70}  # nothing was seen of the order
        return sorted(k for k in more if 1 <= k <= self.longest)

    # -- the unit ----------------------------------------------------------------------------------------------------
    def _fit(self, data: Data) -> Identified:
        if not self.starts:
            unit = min(FAMILIES["multiply-adds"].starts(replace(self.facts, sizes={})), key=data.wrong)
            return self._refuted("none of the families: none has the order that was found", unit, data)
        unit, wrong, family = self._led(data)
        for _ in range(_ROUNDS):
            if wrong:
                unit, wrong = kicked(unit, family, data, wrong)
            if wrong:
                break
            if self._check(unit, data):
                return self._told(unit, family, data)
            unit, wrong = fit(unit, family, data)
            if wrong:
                found = self._led(data)
                unit, wrong, family = min(found, (unit, wrong, family), key=lambda x: x[1])
        return self._refuted("none of the families: no unit of theirs has all answers", unit, data)

    def _led(self, data: Data) -> tuple[Unit, int, Family]:
        """Where the starts of the families lead, one family after the other."""
        ends = []
        for family in FAMILIES.values():
            starts = [start for start in self.starts if start[0] is family]
            if starts:
                ends.append(race(starts, data))
                if not ends[-1][1]:
                    break
        return min(ends, key=lambda x: x[1])

    def _refuted(self, reason: str, unit: Unit, data: Data) -> Identified:
        row = min(data.refuting(unit), key=lambda r: r.size)
        row = shrunk(row, unit, self.box, self.operand, self.facts.c_formats[0])
        return self.none(reason, _refutation(row, unit))

    def _check(self, unit: Unit, data: Data) -> bool:
        """Whether the unit has all random rows, the same each time; a column that it fails is among the data then."""
        rng = np.random.default_rng((self.seed, 7))
        kinds, asked, number = list(KINDS), 0, 0
        longest = max(data.lengths)
        while asked < self.rows:
            side = min(_BLOCK, int(np.ceil(np.sqrt(self.rows - asked))))
            k = int(rng.integers(1, longest + 1)) if number % 8 else int(rng.integers(1, self.longest + 1))
            start = None if number % 5 == 0 and data.start == "C" else data.start
            if number == len(self.random):
                rows = draw(kinds[number % len(kinds)], data.formats, start, (self.seed, 11, number), (side, k, side))
                self.random.append((rows, self.box.block(rows.a, rows.b, rows.c)))
            rows, got = self.random[number]
            number += 1
            asked += got.size
            wrong = np.argwhere(predicted(unit, rows.a, rows.b, rows.c) != got)
            if len(wrong):
                j = wrong[0][1]
                part = Rows(rows.kind, rows.a, rows.b[:, j : j + 1], None if rows.c is None else rows.c[:, j : j + 1])
                data.ask(part)
                return False
        self.checked = asked
        return True

    def _told(self, unit: Unit, family: Family, data: Data) -> Identified:
        for simpler in family.simpler(unit):
            if data.wrong(simpler, 0):
                continue
            row = self._apart(simpler, unit, data)
            if row is None:
                unit, family = simpler, _family_of(simpler, family)
                break
            data.ask(row)
            if data.wrong(unit, 0):  # nothing had told them apart
                return self._fit(data)
        same = []
        for name, preset in candidates().items():
            if preset.operand != unit.operand or preset.result != unit.result or data.wrong(preset, 0):
                continue
            row = self._apart(preset, unit, data)
            if row is None:
                same.append(name)
            elif (predicted(unit, row.a, row.b, row.c) != data.ask(row)).any():
                return self._fit(data)
        told: list[Decided] = list(undecided(unit, family, data, lambda _: None))
        if data.wrong(unit):  # what was asked to tell values apart refuted the unit itself
            return self._fit(data)
        for field in told:
            self._decided(field)
        return self._found(unit, equivalent=tuple(name for name in same if not data.wrong(candidates()[name], 0)))

    def _decided(self, field: Decided) -> None:
        shown: dict[Row, list] = {}
        for value, row in field.refuted:
            shown.setdefault(row, []).append(value)
        best = sorted(shown.items(), key=lambda x: (-len(x[1]), x[0].size))[:_SHOWN]
        for row, values in best:
            others = ", ".join(str(v) for v in values[:6]) + (", ..." if len(values) > 6 else "")
            why = f"not {others}, by an input of the kind {row.kind!r}"
            self.evidence.append(Finding(field.name, field.value, why, row.a, row.b, row.c, row.output))
        if field.open:
            some = ", ".join(str(v) for v in field.open[:6]) + (", ..." if len(field.open) > 6 else "")
            self.undecided.append(Undecided(field.name, field.open, f"{field.value}; no input told it from {some}"))

    def _apart(self, one: Unit, other: Unit, data: Data) -> Rows | None:
        """A row that tells two units apart, of more than the box was asked; None where none does."""
        kinds = list(KINDS)
        for number in range(4 * len(kinds)):
            k = data.lengths[number % len(data.lengths)]
            rows = draw(kinds[number % len(kinds)], data.formats, data.start, (self.seed, 13, number), (_BLOCK, k, 8))
            differ = predicted(one, rows.a, rows.b, rows.c) != predicted(other, rows.a, rows.b, rows.c)
            if differ.any():
                i, j = np.argwhere(differ)[0]
                c = None if rows.c is None else rows.c[i : i + 1, j : j + 1]
                return Rows(rows.kind, rows.a[i : i + 1], rows.b[:, j : j + 1], c)
        return None


def _family_of(unit: Unit, family: Family) -> Family:
    """The family whose choices a unit has: the one given, or that of the unit's class."""
    return FAMILIES["multiply-adds"] if isinstance(unit, MadUnit) else family


def _input(x: Rows, i: int, j: int) -> tuple:
    return tuple(x.a[i].tolist()), tuple(x.b[:, j].tolist()), None if x.c is None else float(x.c[i, j])


def _refutation(row: Row, unit: Unit) -> Refutation:
    expected = Row(row.kind, row.a, row.b, row.c, row.predicted(unit)).output
    trace = None
    blocked = is_block_pair(unit.operand)
    if expected is not None:
        sides = [(np.array(x), fmt) for x, fmt in zip((row.a, row.b), unit.operand, strict=True)]
        a, b = (array_of(x, fmt, -1) if blocked else quantize(x, fmt) for x, fmt in sides)
        trace = unit.trace(a, b, row.c)
    told = Refutation(unit, row.a, row.b, row.c, row.output, expected, trace)
    return in_parts(told, unit.operand) if blocked else told
