"""The order of a sum, and what a step of it keeps, of boxes that take numbers; `scales` asks the same of blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softnum.inspect.identify.box import Box
from softnum.inspect.identify.families import Facts
from softnum.inspect.identify.order import Masks, all_pairs, masks_of, meeting, shown_tree, some_pairs, steps_in
from softnum.inspect.identify.pools import Rows
from softnum.inspect.identify.report import Finding, Undecided

__all__ = ["Sums"]

_SHORT = 36  # products of the shorter sums whose order is looked at
_ORDER = 40_000  # dot products that the order of a long sum may take


class Sums:
    """Questions to one box about its sums, whose answers go into facts, and what they showed into the other lists.

    ``starts``: tells whether the facts are enough for a family to begin from. ``measured``: rows that are to be asked
    again, as random ones may not show what they do. ``masks``: None where no number swallows another.
    """

    def __init__(
        self, box: Box, facts: Facts, longest: int, starts: Callable[[], bool], evidence: list[Finding],
        undecided: list[Undecided],
    ) -> None:  # fmt: skip
        self.box, self.facts, self.longest, self.starts = box, facts, longest, starts
        self.evidence, self.undecided = evidence, undecided
        self.measured: list[Rows] = []
        self.masks: Masks | None = masks_of(facts.operand, facts.c_formats[0], facts.outputs[0])

    def order(self) -> None:
        """Find in which order terms are added, or groups of them."""
        if self.masks is None:
            self.starts()
            self.undecided.append(
                Undecided("order", (), "no number of these formats swallows another, so that sums have no order")
            )
            return
        if self._groups("bulk"):
            return
        short, long = min(_SHORT, self.longest), self.longest
        self._ask_order(short, all_pairs)
        self._ask_order(long, some_pairs)
        if not self.starts():
            per_row = lambda n: -(-n // self.masks.most) * n * n // 2  # noqa: E731
            self._ask_order(max(n for n in range(short, long + 1) if n == short or per_row(n) < _ORDER), all_pairs)
            if not self.starts():
                self._groups("exact")
        n, tree = self.facts.tree()
        if self.facts.group and (tree is None or self.facts.nothing_lost):
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
        signed = [f.signed for f in self.facts.operand]
        self.facts.sizes = {**self.facts.sizes, n: (pairs, meeting(self.box, n, pairs, self.masks, signed))}

    def _groups(self, reduction: str) -> bool:
        """Whether products are added in groups before they meet C, each sum exact or what it cuts rounded to odd."""
        (la, ta), (lb, tb), (lc, tc), (lo, to) = (
            (fmt.span[0], fmt.span[1] - 1)
            for fmt in (*self.facts.operand, self.facts.c_formats[0], self.facts.outputs[0])
        )
        mask = min(60, ta + tb, tc - 1, to - 1)
        unit = max(-60, la + lb, lc, lo)
        if mask - unit < 3 or not self.facts.operand[0].signed:
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
        if not self.starts():
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

    def _masked(self, n: int, masks: dict, others: dict) -> tuple[list[float], list[float]]:
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

    # -- what a sum of several terms keeps ---------------------------------------------------------------------------
    def alignment(self) -> None:
        """Where several products are added at once: how many bits they keep below the largest, and how they are cut."""
        n, tree = self.facts.tree() if self.masks else (0, None)
        steps = [] if tree is None else steps_in(tree, n if self.box.takes_c else None)
        step = next((s for s in steps if len([k for k in s if k < n]) >= 3), None)
        with_c = step is None
        if with_c:  # C and two products
            step = next((s for s in steps if n in s and len(s) == 3), None)
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
            if not self.facts.operand[0].signed:
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
        quarter = 1.5 if self.facts.operand[0].precision and self.facts.operand[0].mantissa_bits else 1.0
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
        if not self.facts.operand[0].signed:
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
