"""`identify`: from a black box to its unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.blocks import format as any_format
from softnum.formats.names import format
from softnum.inspect.identify.blocks import array_of, is_block_pair, known_pairs
from softnum.inspect.identify.box import BadBox, Box, Exhausted
from softnum.inspect.identify.families import FAMILIES, Facts, Family
from softnum.inspect.identify.fit import Data, Decided, Row, fit, kicked, predicted, race, undecided
from softnum.inspect.identify.order import (
    Masks,
    all_pairs,
    masks_of,
    meeting,
    shown_tree,
    some_pairs,
    steps_of,
)  # fmt: skip
from softnum.inspect.identify.pools import KINDS, Rows, draw
from softnum.inspect.identify.ports import Port, operand_port, result_port, start_port
from softnum.inspect.identify.report import Finding, Identified, Refutation, Undecided, in_parts
from softnum.inspect.identify.scales import Probe, steps_of_blocks
from softnum.inspect.identify.shrink import shrunk
from softnum.inspect.which import candidates
from softnum.mac.mad import MadUnit, Unit
from softnum.runtime.plain import plain

__all__ = ["MEASURING", "identify"]

#: The most dot products that finding a unit takes, beside the random rows that it is checked on.
MEASURING = 150_000
_SHORT, _LONG = 36, 136  # products of the sums whose order is looked at
_ORDER = 40_000  # dot products that the order of a long sum may take
_BLOCK = 32  # rows and columns of a block of random rows
_ROUNDS = 12  # times that a refuted unit is mended
_SHOWN = 2  # refuted values of a property that are told


@plain
def identify(
    f: Callable, *, operand=None, output=None, rows: int = 100_000, longest: int = _LONG, seed: int = 0
) -> Identified:
    """Find the unit that a black box computes dot products with.

    It is asked for what its formats are, in which order it adds, how many bits it keeps and how it rounds them, each
    question chosen by the answers so far; the unit that has all answers is then checked on random rows. A row that it
    fails is one more answer, until a unit has all of them, or no family has one.

    Parameters
    ----------
    f : callable ``f(a, b)`` or ``f(a, b, c)``
        Takes arrays as `softnum.matmul` does, float32 or float64 of shape (M, K), (K, N) and (M, N), for any M, K and
        N, and gives the (M, N) results; it may raise ValueError, TypeError or ArithmeticError for operands that it does
        not take. c=None is never handed over: without C it is called with two arguments.
    operand : format, str or a pair of them, optional
        The formats of a and b. None: found by what the box refuses, rounds, or tells apart. Numbers come in float32
        where that holds the formats, and in float64 until they are known.
    output : format or str, optional
        The format of the result. None: found.
    rows : int
        Random rows that the unit is checked on.
    longest : int
        Products of the longest sums, 8 to 1024: an order that shows in longer ones alone is not seen.
    seed : int
        Of the random rows.

    Returns
    -------
    Identified
        ``unit``, or None with ``reason`` and ``refutation``; ``evidence``, ``undecided``, ``equivalent``, ``calls``,
        ``products``; a report when it is printed. The box computes no more than 150 000 dot products and `rows` more.

    Raises
    ------
    ValueError
        If what the box gives is no product of matrices: 1 * 1 is not 1, or a shape is another.

    Notes
    -----
    The order is found as by FPRev (arXiv 2411.00442), for nodes of any number of terms. A unit is only given if it has
    all answers; values of a property that no answer refutes are listed in ``undecided``, the unit having the default.

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
        self.measured: list[Rows] = []  # what is asked again as rows: random ones may not show it
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
        if box.blocks:
            self._steps_of_blocks()
        else:
            self._order()
            self._alignment()
        self._begin()  # again, with what was measured since
        data = Data(box, self.facts)
        data.fill(self._lengths(), self.seed)
        for rows in self.measured:
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
                why = (
                    f"BlockArrays of {fmt} are taken at {name}; numbers, and blocks of others that come before, refused"
                )
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
            more = Probe(box, self.operand, self.longest).sums() if box.blocks and not box.takes_c else ()
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

    # -- order -------------------------------------------------------------------------------------------------------
    def _order(self) -> None:
        self.masks = masks_of(self.operand, self.facts.c_formats[0], self.facts.outputs[0])
        if self.masks is None:
            self._begin()
            self.undecided.append(
                Undecided("order", (), "no number of these formats swallows another, so that sums have no order")
            )
            return
        if self._groups("bulk"):
            return
        short, long = min(_SHORT, self.longest), self.longest
        self._ask_order(short, all_pairs)
        self._ask_order(long, some_pairs)
        if not self._begin():
            per_row = lambda n: -(-n // self.masks.most) * n * n // 2  # noqa: E731
            self._ask_order(max(n for n in range(short, long + 1) if n == short or per_row(n) < _ORDER), all_pairs)
            if not self._begin():
                self._groups("exact")
        n, tree = self.facts.tree()
        if self.facts.group:
            return
        if self.facts.nothing_lost:
            why = "the unit beside a mask and its negative is still there"
            self._shown("order", "none: nothing is lost", why, (0, 1), 3)
        elif tree is None:
            why = "what masks reveal is no tree: a mask did not swallow all units, or gave other ones"
            self.undecided.append(Undecided("order", (), why))
        else:
            shown = shown_tree(tree, n)
            shown = shown if len(shown) < 400 else shown[:190] + " ... " + shown[-190:]
            m = self.masks
            why = f"2^{m.mask}, its negative, and units of 2^{m.unit}: those are left that are added later"
            self._shown("order", shown, why, (0, 1), n)

    def _ask_order(self, n: int, pairs_of) -> None:
        pairs = np.array(pairs_of(n + self.box.takes_c))
        signed = [f.signed for f in self.operand]
        self.facts.sizes = {**self.facts.sizes, n: (pairs, meeting(self.box, n, pairs, self.masks, signed))}

    def _groups(self, reduction: str) -> bool:
        """Whether products are added in groups before they meet C, each sum exact or what it cuts rounded to odd."""
        (la, ta), (lb, tb), (lc, tc), (lo, to) = (
            (fmt.span[0], fmt.span[1] - 1) for fmt in (*self.operand, self.facts.c_formats[0], self.facts.outputs[0])
        )
        mask = min(60, ta + tb, tc - 1, to - 1)
        unit = max(-60, la + lb, lc, lo)
        if mask - unit < 3 or not self.operand[0].signed:
            return False
        split = lambda e: min(max(e - min(max(e // 2, lb), tb), la), ta)  # noqa: E731
        (mx, ux), n = (split(mask), split(unit)), self.longest
        c = 0.0 if self.box.takes_c else None

        def row(plus: int, minus: int, at: int) -> tuple[list[float], list[float]]:
            a, b = [0.0] * n, [1.0] * n
            a[plus], b[plus], a[minus], b[minus] = 2.0**mx, 2.0 ** (mask - mx), -(2.0**mx), 2.0 ** (mask - mx)
            a[at], b[at] = 2.0**ux, 2.0 ** (unit - ux)
            return a, b

        def left(places) -> np.ndarray:
            a, b = zip(*(row(*at) for at in places), strict=True)
            return self.box.each(a, b, None if c is None else [c] * len(places)).view(np.float64) * 2.0**-unit

        def told(name: str, value, why: str, at: tuple[int, int, int]) -> None:
            a, b = row(*at)
            self.evidence.append(Finding(name, value, why, tuple(a), tuple(b), c, self.box.one(a, b, c)))
            start = None if c is None else np.array([[c]])
            self.measured.append(Rows("groups", np.array([a]), np.array(b)[:, None], start))

        first = float(left([(0, 1, 2)])[0])
        odd = reduction == "bulk"
        if not (np.isfinite(first) and first > 1 and np.log2(first) % 1 == 0 if odd else first == 1):
            return False
        kept = left([(0, 1, j) if odd else (0, j, 1) for j in range(2, n)]) == 1
        terms = int(np.argmax(kept == odd)) + 2
        later = left([(terms, terms + 1, j) if odd else (terms, j, terms + 1) for j in range(terms + 2, n)]) == 1
        if 2 * terms >= n or (kept != ((np.arange(2, n) >= terms) == odd)).any():
            return False
        if (later != ((np.arange(terms + 2, n) >= 2 * terms) == odd)).any():  # the next group is as long
            return False
        self.facts.group = terms, reduction
        if not self._begin():
            self.facts.group = None
            return False
        if odd:
            self.facts.fraction, self.facts.alignment = mask - unit - int(np.log2(first)), "to_odd"
            last = mask - self.facts.fraction
            told("fraction_bits", self.facts.fraction, f"beside 2^{mask} and its negative 2^{unit} becomes 2^{last}",
                 (0, 1, 2))  # fmt: skip
            told("terms", terms, f"product {terms - 1} is added with 0 and 1: 2^{unit} is lost", (0, 1, terms - 1))
            told("terms", terms, f"product {terms} is not: 2^{unit} is left", (0, 1, terms))
        else:
            if terms > 2:
                told("terms", terms, f"product {terms - 1} is added with 0 and 1: 2^{unit} is left", (0, terms - 1, 1))
            told("terms", terms, f"product {terms} is not: 2^{unit} is lost", (0, terms, 1))
        return True

    def _shown(self, name: str, value, why: str, at: tuple[int, int], n: int) -> None:
        """A finding by a mask at two products among units."""
        row = self._masked(n, {at[0]: 1, at[1]: -1}, dict.fromkeys(set(range(n)) - set(at), self.masks.unit))
        c = 0.0 if self.box.takes_c else None
        self.evidence.append(Finding(name, value, why, *map(tuple, row), c, self.box.one(*row, c)))

    def _masked(self, n: int, masks: dict, others: dict, mask: int | None = None) -> tuple[list[float], list[float]]:
        """a and b with +-2^mask at some places and powers of two (or numbers times them) at others."""
        a, b = [0.0] * n, [1.0] * n
        m = self.masks
        mx, my = m.mask_factors
        for k, sign in masks.items():
            a[k], b[k] = sign * 2.0**mx, 2.0**my
        for k, exponent in others.items():
            a[k], b[k] = self._product(exponent)
        return a, b

    def _product(self, exponent: int, number: float = 1.0) -> tuple[float, float]:
        """Factors of a number times a power of two."""
        (mx, my), (ux, uy) = self.masks.mask_factors, self.masks.unit_factors
        x = min(max(exponent - min(max(0, uy), my), ux), mx)
        return number * 2.0**x, 2.0 ** (exponent - x)

    def _begin(self) -> bool:
        """Find units to begin from; whether there are any."""
        families = [family for family in FAMILIES.values() if family.of_blocks == self.facts.of_blocks]
        self.starts = [(family, start) for family in families for start in family.starts(self.facts)]
        return bool(self.starts)

    def _steps_of_blocks(self) -> None:
        """What one step of a sum of blocks takes, and keeps."""
        probe = Probe(self.box, self.operand, self.longest)
        steps_of_blocks(probe, self.facts)
        self.evidence += probe.evidence

    # -- what a sum of several terms keeps ---------------------------------------------------------------------------
    def _alignment(self) -> None:
        """Where several products are added at once: how many bits they keep below the largest, and how they are cut."""
        n, tree = self.facts.tree() if self.masks else (0, None)
        steps = tree and steps_of(tree)
        step = next((s for s in steps or () if len([k for k in s if k < n]) >= 3), None)
        with_c = step is None
        if with_c:  # C and two products
            step = next((s for s in steps or () if n in s and len(s) == 3), None)
            if step is None or not self.box.takes_c:
                return
        places = [k for k in step if k < n][: 2 if with_c else 3]
        m: Masks = self.masks
        depth = m.mask - m.unit
        length = max(places) + 1
        c = 0.0 if self.box.takes_c else None
        kept = []
        (mx, my) = m.mask_factors

        def ask(value_exponent: int, number: float):
            a, b = [0.0] * length, [1.0] * length
            a[places[0]], b[places[0]] = 2.0**mx, 2.0**my
            start = c
            if with_c:
                start = -(2.0**m.mask)
            else:
                a[places[1]], b[places[1]] = -(2.0**mx), 2.0**my
            a[places[-1]], b[places[-1]] = self._product(value_exponent, number)
            if not self.operand[0].signed:
                a, b = [abs(x) for x in a], [np.copysign(y, x) for x, y in zip(a, b, strict=True)]
            return a, b, start, self.box.one(a, b, start)

        for d in range(1, depth + 1):
            *row, out = ask(m.mask - d, 1.0)
            if out != 2.0 ** (m.mask - d):
                break
            kept.append((d, row, out))
        if not kept or len(kept) == depth:
            return
        fraction, (a, b, start), out = kept[-1]
        self.facts.fraction = fraction
        why = f"beside 2^{m.mask} and its negative 2^{m.mask - fraction} is kept, half of it not"
        self.evidence.append(Finding("fraction_bits", fraction, why, tuple(a), tuple(b), start, out))
        last = m.mask - fraction
        quarter = 1.5 if self.operand[0].precision and self.operand[0].mantissa_bits else 1.0
        tried = [(-1, quarter), (-1, -quarter), (-2, 1.0), (-2, -1.0)]
        answers = [ask(last + shift, number) for shift, number in tried if last - 2 >= m.unit]
        cut = tuple(None if x[-1] is None else x[-1] * 2.0**-last for x in answers)
        names = {(0, 0, 0, 0): "toward_zero", (0, -1, 0, -1): "down", (1, 0, 1, 0): "up", (1, -1, 0, 0): "nearest",
                 (1, -1, 1, -1): "away"}  # fmt: skip
        self.facts.alignment = names.get(cut)
        if self.facts.alignment:
            a, b, start, out = answers[1]
            why = f"of -{quarter * 0.5} of the last place is left {cut[1]:g} of it"
            self.evidence.append(Finding("alignment", self.facts.alignment, why, tuple(a), tuple(b), start, out))
            if not with_c and n in step and self.box.takes_c:
                self._alignment_of_c(places)

    def _alignment_of_c(self, places: list[int]) -> None:
        """The same of C, which is among the terms of that sum."""
        m: Masks = self.masks
        (mx, my), length = m.mask_factors, max(places[:2]) + 1
        a, b = [0.0] * length, [1.0] * length
        for place, sign in zip(places, (1, -1), strict=False):
            a[place], b[place] = sign * 2.0**mx, 2.0**my
        if not self.operand[0].signed:
            a, b = [abs(x) for x in a], [np.copysign(y, x) for x, y in zip(a, b, strict=True)]
        kept = lambda d: self.box.one(a, b, 2.0 ** (m.mask - d)) == 2.0 ** (m.mask - d)  # noqa: E731
        depth, fraction = m.mask - m.unit, self.facts.fraction
        if fraction + 1 > depth:
            return
        if not kept(fraction) or kept(fraction + 1):
            fraction = next((d - 1 for d in range(1, depth + 1) if not kept(d)), 0)
        last = m.mask - fraction
        if fraction < 1 or last - 1 < m.unit:
            return
        below = self.box.one(a, b, -(2.0 ** (last - 1)))
        self.facts.c_fraction = fraction
        self.facts.c_alignment = "down" if below == -(2.0**last) else self.facts.alignment
        if self.facts.two_stages:
            why = f"beside 2^{m.mask} and its negative half of the last place that is kept of C, negative, is {below:g}"
            row = tuple(a), tuple(b), -(2.0 ** (last - 1)), below
            self.evidence.append(Finding("c_fraction_bits", fraction, why, *row))

    def _lengths(self) -> list[int]:
        terms = 4
        for _, start in self.starts:
            sizes = (getattr(start, name, None) or 1 for name in ("period", "terms", "chunk", "lanes"))
            terms = max(sizes)
            break
        terms = min(terms, self.longest // 2)
        if self.box.blocks:
            size = self.operand[0].size(terms)
            more = {1, 3, size // 2, size - 1, size, size + 1, 2 * size, 2 * size + 3, 4 * size, 2 * terms + 1}
            return sorted(k for k in more if 1 <= k <= self.longest)
        more = {1, 2, 3, 4, 7, terms // 2, terms - 1, terms, terms + 1, 2 * terms + 1}
        more |= {17, 33, 70} if self.masks is None else set()  # nothing was seen of the order
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
            if not data.wrong(simpler, 0) and self._apart(simpler, unit, data) is None:
                unit, family = simpler, _family_of(simpler, family)
                break
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
