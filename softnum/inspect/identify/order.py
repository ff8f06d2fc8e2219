"""The order of a sum, as masks reveal it.

After FPRev (arXiv 2411.00442): a leaf is M, another -M, the others are units so small that M swallows them. What is
left of the units says how many leaves are below the node where M and -M meet. Nodes may have more than two children, as
those of fused sums do; C is a leaf like the products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.inspect.identify.box import Box
from softnum.mac.order import reduction_order

__all__ = [
    "Masks", "all_pairs", "chain_sizes", "chunk_sizes", "chunks_of", "lane_sizes", "masks_of", "meeting", "shown_tree",
    "sizes_of", "some_pairs", "steps_in", "steps_of", "tree_of",
]  # fmt: skip

_GAP = 120  # binades between M and a unit, where the formats have as many
_KEPT = 25  # bits that a sum may keep below its largest term, so that units together are still below
_SIGNS = ((1, 1), (-1, 1), (1, -1), (-1, -1))


def _powers(fmt) -> tuple[int, int]:
    """The exponents of the smallest and the largest power of two that is a normal number of the format."""
    if fmt.precision is None:
        last, top = fmt.span
        return last, top - 1
    return int(np.ceil(np.log2(float(fmt.smallest_normal)))), int(np.floor(np.log2(float(fmt.max))))


@dataclass(frozen=True)
class Masks:
    """Exponents of a mask and of a unit, as products and as factors; ``most``: the units that count exactly."""

    mask: int
    unit: int
    mask_factors: tuple[int, int]
    unit_factors: tuple[int, int]
    most: int


def _split(exponent: int, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    of_a = min(max(exponent - min(max(0, b[0]), b[1]), a[0]), a[1])
    return of_a, exponent - of_a


def masks_of(operand, c_format, output) -> Masks | None:
    """Masks and units of formats; None where there are none, as of integers and of what has no signs."""
    a, b, c, d = map(_powers, (*operand, c_format, output))
    if any(f.precision is None for f in (*operand, c_format, output)) or not any(f.signed for f in operand):
        return None
    highest = min(a[1] + b[1], c[1] - 1, d[1] - 1)
    lowest = max(a[0] + b[0], c[0], d[0])
    if highest - lowest < 2:
        return None
    mask = min(highest, max(lowest + _GAP, _GAP // 2))
    unit = max(lowest, mask - _GAP)
    most = 1 << max(0, min(output.precision, c_format.precision, 20, mask - unit - _KEPT - 1))
    shift = min(max(0, b[0]), b[1])
    if a[0] <= unit - shift and mask - shift <= a[1]:  # one b for all
        return Masks(mask, unit, (mask - shift, shift), (unit - shift, shift), most)
    return Masks(mask, unit, _split(mask, a, b), _split(unit, a, b), most)


def all_pairs(leaves: int) -> list[tuple[int, int]]:
    """Each two leaves."""
    return [(i, j) for i in range(leaves) for j in range(i + 1, leaves)]


def some_pairs(leaves: int) -> list[tuple[int, int]]:
    """The first and the last leaf with each other, and neighbours: enough to tell models of an order apart."""
    last = leaves - 1
    pairs = [(0, j) for j in range(1, leaves)] + [(j, j + 1) for j in range(last)] + [(j, last) for j in range(last)]
    return list(dict.fromkeys(pairs))


def meeting(box: Box, n: int, pairs, masks: Masks, signed) -> np.ndarray:
    """For each pair of leaves how many leaves are below the node where they meet; -1 where that cannot be said.

    Leaves 0 to n-1 are products, n is C where the box has one. ``signed``: whether a and b have signs.
    """
    leaves = n + box.takes_c
    pairs = np.asarray(pairs)
    found = np.full(len(pairs), -1)
    groups = [np.arange(first, min(leaves, first + masks.most)) for first in range(0, leaves, masks.most)]
    for sign, unit_sign in _SIGNS:
        todo = np.flatnonzero(found < 0)
        if not len(todo):
            break
        lost, good = np.full(len(todo), 2), np.ones(len(todo), bool)
        for group in groups:
            kept, there, exact = _kept(box, n, pairs[todo], group, masks, sign, unit_sign, signed)
            good &= exact
            lost += there - kept
        found[todo[good]] = lost[good]
    return found


def _kept(box: Box, n: int, pairs, group, masks: Masks, sign: int, unit_sign: int, signed):
    """How many units of a group are left, how many there were, and whether that is a count."""
    rows = np.arange(len(pairs))
    leaves = n + box.takes_c
    is_unit = np.zeros((len(pairs), leaves), bool)
    is_unit[:, group] = True
    is_unit[rows, pairs[:, 0]] = is_unit[rows, pairs[:, 1]] = False
    signs = np.where(is_unit, unit_sign, 0)
    signs[rows, pairs[:, 0]], signs[rows, pairs[:, 1]] = sign, -sign
    (mx, my), (ux, uy) = masks.mask_factors, masks.unit_factors
    x = np.where(is_unit, 2.0**ux, np.where(signs != 0, 2.0**mx, 0.0))
    y = np.where(is_unit | (signs == 0), 2.0**uy, 2.0**my)
    c = None
    if box.takes_c:
        c = signs[:, n] * np.where(is_unit[:, n], 2.0**masks.unit, 2.0**masks.mask)
    if signed[0]:
        x = x * signs
    else:
        x, y = x * (signs != 0), y * np.where(signs == 0, 1, signs)
    out = box.each(x[:, :n], y[:, :n], c).view(np.float64)
    there = is_unit.sum(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        count = np.where(np.isfinite(out), out, -1.0) * 2.0**-masks.unit * unit_sign
    good = (count >= 0) & (count <= there) & (count == np.floor(count))
    return np.where(good, count, 0).astype(int), there, good


# -- trees -----------------------------------------------------------------------------------------------------------
def tree_of(sizes: np.ndarray):
    """The tree of a matrix of meeting sizes: a leaf's number, or the list of a node's children; None if none has it."""

    def build(leaves: list[int]):
        if len(leaves) == 1:
            return leaves[0]
        first, rest = leaves[0], leaves[1:]
        node, below = first, [first]
        for size in sorted({int(sizes[first, j]) for j in rest}):
            joined = [j for j in rest if sizes[first, j] == size]
            if len(below) + len(joined) != size:
                return None
            parts: list[list[int]] = []
            for j in joined:
                home = next((p for p in parts if sizes[p[0], j] < size), None)
                if home is None:
                    parts.append([j])
                else:
                    home.append(j)
            children = [build(part) for part in parts]
            if any(child is None for child in children):
                return None
            node = [node, *children]
            below += joined
        return node

    return build(list(range(len(sizes))))


def shown_tree(tree, n: int) -> str:
    """A tree as a sum: products by their number, C as C."""
    if not isinstance(tree, list):
        return "C" if tree == n else str(tree)
    return "(" + " + ".join(shown_tree(child, n) for child in tree) + ")"


def steps_of(tree) -> list[list[int]] | None:
    """The leaves that each step of a chain adds, the first first; None where the tree is no chain."""
    steps = []
    while isinstance(tree, list):
        inner = [child for child in tree if isinstance(child, list)]
        if len(inner) > 1:
            return None
        steps.append(sorted(child for child in tree if not isinstance(child, list)))
        tree = inner[0] if inner else None
    return steps[::-1]


def _leaves(tree) -> list[int]:
    return [leaf for child in tree for leaf in _leaves(child)] if isinstance(tree, list) else [tree]


def chunks_of(tree, c: int | None) -> tuple[int, list[list[int]]] | None:
    """(products of a chunk, the steps of the first one) of a sum of chunks, which are added in order, to C if there is
    one (the leaf `c`); None where the tree is none, or has a single chunk."""
    later = []
    while isinstance(tree, list) and len(tree) == 2 and (c is not None or isinstance(tree[1], list)):
        tree, other = tree
        if other == c:
            break
        later.append(_leaves(other))
    else:
        if c is not None:  # it was not met at the first chunk
            return None
    first, steps = _leaves(tree), steps_of(tree)
    chunk = len(first)
    firsts = range(chunk, chunk * (len(later) + 1), chunk)
    if not later or not steps or sorted(first) != list(range(chunk)):
        return None
    for start, leaves in zip(firsts, later[::-1], strict=True):
        whole = list(range(start, start + chunk))
        if sorted(leaves) != (whole[: len(leaves)] if start == firsts[-1] else whole):
            return None
    return chunk, steps


def steps_in(tree, c: int | None) -> list[list[int]]:
    """The steps of a chain, C's too, or of the first chunk of a sum of chunks; none where the tree is neither."""
    return steps_of(tree) or (chunks_of(tree, c) or (0, []))[1]


def sizes_of(node, leaves: int) -> np.ndarray:
    """The matrix of meeting sizes of a tree."""
    sizes = np.zeros((leaves, leaves), int)

    def below(node) -> list[int]:
        if not isinstance(node, list):
            return [node]
        parts = [below(child) for child in node]
        all_of = [leaf for part in parts for leaf in part]
        for i, part in enumerate(parts):
            others = [leaf for j, other in enumerate(parts) if j != i for leaf in other]
            sizes[np.ix_(part, others)] = len(all_of)
        return all_of

    below(node)
    return sizes


@lru_cache(maxsize=64)
def chain_sizes(n: int, terms: int, order: tuple | None, c: str | None) -> np.ndarray:
    """Meeting sizes of steps of so many products, C a term of the first ("fused"), added last ("after") or None."""
    order = order or tuple(range(terms))
    period = len(order)
    step = {}
    for i, k in enumerate(order):
        step[k] = i // terms
    per = period // terms
    place = np.array([(k // period) * per + step[k % period] for k in range(n)], int)
    if c == "fused":
        place = np.append(place, 0)
    if c == "after":
        place = np.append(place, place.max(initial=0) + 1)
    below = np.array([(place <= p).sum() for p in range(place.max(initial=0) + 1)])
    sizes = below[np.maximum.outer(place, place)]
    np.fill_diagonal(sizes, 0)
    return sizes


@lru_cache(maxsize=64)
def chunk_sizes(n: int, chunk: int, terms: int, order: tuple | None, with_c: bool) -> np.ndarray:
    """Meeting sizes of chunks that are added in order, C first, each a chain of steps of so many products."""
    place = np.arange(n) // chunk
    below = np.minimum((np.arange(-(-n // chunk)) + 1) * chunk, n) + with_c
    if with_c:
        place = np.append(place, 0)
    sizes = below[np.maximum.outer(place, place)]
    for first in range(0, n, chunk):
        size = min(chunk, n - first)
        part = slice(first, first + size)
        sizes[part, part] = chain_sizes(size, terms, order, None)
    np.fill_diagonal(sizes, 0)
    return sizes


@lru_cache(maxsize=64)
def lane_sizes(n: int, lanes: int, chunk: int | None, reduction: str, with_c: bool) -> np.ndarray:
    """Meeting sizes of a MadUnit's sum; lanes without a product are not there."""

    def add(x, y):
        return y if x is None else x if y is None else [x, y]

    def inner(numbers, start):
        if lanes == 1:
            total = start
            for k in numbers:
                total = add(total, k)
            return total
        sums: list = [None] * lanes
        for i, k in enumerate(numbers):
            sums[i % lanes] = add(sums[i % lanes], k)
        if start is not None:
            sums = [start, *sums]
        for i, j in reduction_order(len(sums), reduction):
            sums[i] = add(sums[i], sums[j])
        return sums[0]

    c = n if with_c else None
    if chunk is None:
        total = inner(range(n), c)
    else:
        total = c
        for first in range(0, n, chunk):
            total = add(total, inner(range(first, min(n, first + chunk)), None))
    return sizes_of(total, n + with_c)
