"""What a step of a sum of blocks takes and keeps, as scales reveal it: they put numbers far apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softnum.inspect.identify.blocks import powers, with_scales
from softnum.inspect.identify.box import Box
from softnum.inspect.identify.families import Facts
from softnum.inspect.identify.report import Finding

__all__ = ["Probe", "steps_of_blocks"]

_FAR = 60  # binades of products on either side of 1


class Probe:
    """Dot products of few elements, each a power of two by its own and its block's scale; what they show is noted in
    `evidence`."""

    def __init__(self, box: Box, operand, longest: int, evidence: list[Finding]) -> None:
        self.box, self.operand, self.longest, self.evidence = box, operand, longest, evidence
        self.size = operand[0].size(longest)

    def product(self, exponent: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Exponents of two elements and of two scales whose product is a power of two; None where there are none."""
        elements, scales = ([powers(getattr(f, part)) for f in self.operand] for part in ("element", "scale"))
        (la, ta), (lb, tb) = elements
        of_elements = min(max(exponent, la + lb), ta + tb)
        (ls, ts), (lt, tt) = scales
        rest = min(max(exponent - of_elements, ls + lt), ts + tt)
        of_elements = exponent - rest
        if not la + lb <= of_elements <= ta + tb:
            return None
        split = lambda e, low, high, l2, h2: min(max(e - min(max(e // 2, l2), h2), low), high)  # noqa: E731
        x, s = split(of_elements, la, ta, lb, tb), split(rest, ls, ts, lt, tt)
        return (x, of_elements - x), (s, rest - s)

    def row(self, terms: dict[int, tuple[int, int]], zeros: dict[int, int] | None = None):
        """Packed rows: place -> (sign, exponent of the product), one exponent of scales a block; zeros: block -> the
        exponent of the scales of a block of zeros."""
        length = max([*terms, *((block + 1) * self.size - 1 for block in zeros or ())]) + 1
        elements = [np.zeros(length), np.zeros(length)]
        scales = [np.ones(f.blocks(length)) for f in self.operand]
        for place, (sign, exponent) in terms.items():
            found = self.product(exponent)
            if found is None:
                return None
            (x, y), pair = found
            elements[0][place], elements[1][place] = sign * 2.0**x, 2.0**y
            for side, e in zip(scales, pair, strict=True):
                side[place // self.size] = 2.0**e
        for block, exponent in (zeros or {}).items():
            for side, e in zip(scales, self._scales(exponent), strict=True):
                side[block] = 2.0**e
        return [with_scales(e, f, s) for e, f, s in zip(elements, self.operand, scales, strict=True)]

    def _scales(self, exponent: int) -> tuple[int, int]:
        (la, ta), (lb, tb) = (powers(f.scale) for f in self.operand)
        x = min(max(exponent - exponent // 2, la), ta)
        return x, min(max(exponent - x, lb), tb)

    def ask(self, rows) -> float | None:
        """The box of rows, from C = 0."""
        if rows is None:
            return None
        c = np.zeros((1, 1)) if self.box.takes_c else None
        bits = self.box.block(rows[0][None], rows[1][:, None], c)
        return float(bits.view(np.float64)[0, 0])

    def sums(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Sums of 1 and a smaller power of two in another block, and powers of two alone, by their scales."""
        single = [(f"2^{e}", {0: (1, e)}) for e in range(-1100, 1100)]
        pairs = [(f"1 + 2^-{k}", {0: (1, 0), self.size: (1, -k)}) for k in range(1, 63)]
        for why, terms in [*pairs, *single]:
            rows = self.row(terms)
            if rows is not None:
                yield why, *rows

    def note(self, name: str, value, why: str, rows) -> None:
        """Keep what was found, and by which rows."""
        c = 0.0 if self.box.takes_c else None
        self.evidence.append(Finding(name, value, why, *(tuple(x.tolist()) for x in rows), c, self.ask(rows)))


def steps_of_blocks(probe: Probe, facts: Facts) -> None:
    """Find how many products a step takes, whether scales of zeros count, and which bits a step keeps."""
    size = probe.size
    if not probe.operand[0].element.signed or probe.operand[0].block_size is None:
        return
    bounds = [f.span for f in (facts.c_formats[0], facts.outputs[0])]
    low, high = max(-_FAR, *(last for last, _ in bounds)), min(_FAR, *(top - 2 for _, top in bounds))
    mask = next((e for e in range(high, 0, -1) if probe.product(e)), None)
    unit = next((e for e in range(low, 0) if probe.product(e)), None)
    if mask is None or unit is None:
        return
    far = 2.0**unit
    pair = {0: (1, mask), 1: (-1, mask)}
    _terms(probe, facts, pair, unit)
    zeros = probe.row({size: (1, unit)}, {0: mask})
    if facts.step is None or facts.step > size:
        facts.by_scales = probe.ask(zeros) == 0
        if facts.by_scales:
            probe.note("group", "more than 1", "a block of zeros swallows what lies far below its scales", zeros)
        elif probe.ask(zeros) == far:
            probe.note("group", 1, "a block of zeros swallows nothing, whatever its scales are", zeros)
    _fraction(probe, facts, pair, (mask, low))


def _terms(probe: Probe, facts: Facts, pair: dict, unit: int) -> None:
    size = probe.size
    for block in range(1, probe.longest // size):
        rows = probe.row({**pair, block * size: (1, unit)})
        if probe.ask(rows) == 2.0**unit:
            facts.step = block * size
            why = f"product {block * size} is not added with 0 and 1: 2^{unit} is left"
            probe.note("terms", f"at most {facts.step}", why, rows)
            if block > 1:
                last = probe.row({**pair, (block - 1) * size: (1, unit)})
                why = f"product {(block - 1) * size} is added with 0 and 1: 2^{unit} is lost"
                probe.note("terms", f"more than {(block - 1) * size}", why, last)
            return


def _fraction(probe: Probe, facts: Facts, pair: dict, bounds: tuple[int, int]) -> None:
    """Beside the largest products, of both signs, the smallest that is kept: in their block, or in another one."""
    size, (mask, low) = probe.size, bounds
    apart = facts.step is None or facts.step > size
    kept = None
    for depth in range(1, mask - low + 1):
        rows = probe.row({**pair, size: (1, mask - depth)}) if apart else _in_one(probe, depth)
        if rows is None:
            break
        if probe.ask(rows) in (0, None):
            if kept is not None:
                facts.fraction = kept[0]
                probe.note("fraction_bits", kept[0], f"2^-{kept[0]} of the largest product is kept, half of it not",
                           kept[1])  # fmt: skip
            return
        kept = depth, rows


def _in_one(probe: Probe, depth: int):
    """The largest powers of two of elements, of both signs, and one so far below them in the same block."""
    (la, ta), (lb, tb) = (powers(f.element) for f in probe.operand)
    x = max(la, ta - depth)
    y = ta + tb - depth - x
    if y < lb:
        return None
    elements = np.array([2.0**ta, -(2.0**ta), 2.0**x]), np.array([2.0**tb, 2.0**tb, 2.0**y])
    return [with_scales(e, f) for e, f in zip(elements, probe.operand, strict=True)]
