"""Families of units that are looked for: how each begins from what was measured, and what of it is then tried.

A family joins in by `find_as`; the search knows none of them by name::

    find_as("mine", starts=my_starts, choices=my_choices)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from softnum.formats.modes import P3109_VERSIONS, ROUNDING_MODES
from softnum.formats.names import format
from softnum.formats.scalar import FloatFormat
from softnum.inspect.identify.blocks import is_block_pair
from softnum.inspect.identify.order import chain_sizes, chunk_sizes, chunks_of, lane_sizes, steps_of, tree_of
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MAX_LANES, MadUnit, Unit
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["FAMILIES", "Facts", "Family", "find_as", "lanes_of"]

_MODES = tuple(mode for mode in ROUNDING_MODES if not mode.startswith("stochastic"))
_FLUSHES = (None, "before", "after", "subnormal")
_WIDEST = 60  # fraction bits that are tried
_WHOLE = 2**32 - 1  # products of a chunk: of any sum's


@dataclass
class Facts:
    """What was measured of a box, whatever its family.

    Attributes
    ----------
    operand : pair of formats
    c_formats, outputs : tuples of formats
        That C and the result can have, the likeliest first.
    takes_c : bool
    sizes : mapping
        n -> (pairs, meeting sizes): `softnum.inspect.identify.order.meeting` of sums of n products.
    fraction : int, optional
        Bits kept below the largest term of a sum that takes several at once; None where no such sum was found.
    alignment : str, optional
        How what lies below is cut: "toward_zero", "down", "up", "nearest", "away" or "to_odd".
    c_fraction, c_alignment
        The same of C beside products, where C is among the terms of that sum.
    group : tuple of int and str, optional
        (products of a group, "bulk" or "exact"): of groups whose sums are formed before they meet C; "bulk" if they
        round to odd what they cut.
    step : int, optional
        Of block formats: products of a step, as far as blocks tell; 0 where none is shorter than what was asked.
    by_scales : bool
        Of block formats: whether the scales of a block of zeros count.
    start : float, optional
        -0.0 where the box takes no C, and a sum of -0 alone is -0: its unit is one with a C of -0.
    """

    operand: tuple
    c_formats: tuple
    outputs: tuple
    takes_c: bool
    sizes: Mapping[int, tuple] = field(default_factory=dict)
    fraction: int | None = None
    alignment: str | None = None
    c_fraction: int | None = None
    c_alignment: str | None = None
    group: tuple[int, str] | None = None
    step: int | None = None
    by_scales: bool = False
    start: float | None = None

    @property
    def of_blocks(self) -> bool:
        """Whether the operands have block formats."""
        return is_block_pair(self.operand)

    @property
    def two_stages(self) -> bool:
        """Whether C is aligned in another way than the products it is added to, or what is added is rounded down."""
        if self.c_fraction is None:
            return False
        return self.c_fraction != self.fraction or "down" in (self.alignment, self.c_alignment)

    @property
    def nothing_lost(self) -> bool:
        """Whether no unit was ever swallowed: sums are exact, or make up for what they lose."""
        return bool(self.sizes) and all((found == 2).all() for _, found in self.sizes.values())

    def agrees(self, model: Callable[[int], np.ndarray]) -> bool:
        """Whether a model, n -> matrix of meeting sizes, has all that was measured."""
        for n, (pairs, found) in self.sizes.items():
            known = found >= 0
            pairs = pairs[known]
            if (model(n)[pairs[:, 0], pairs[:, 1]] != found[known]).any():
                return False
        return bool(self.sizes)

    def matrix(self, n: int) -> np.ndarray | None:
        """The meeting sizes of each two leaves; None where not all are known."""
        pairs, found = self.sizes[n]
        leaves = n + self.takes_c
        if len(pairs) != leaves * (leaves - 1) // 2 or (found < 0).any():
            return None
        sizes = np.zeros((leaves, leaves), int)
        sizes[pairs[:, 0], pairs[:, 1]] = sizes[pairs[:, 1], pairs[:, 0]] = found
        return sizes

    def tree(self):
        """(n, tree) of the longest sum whose order is known in full; (0, None) if none is."""
        for n in sorted(self.sizes, reverse=True):
            sizes = self.matrix(n)
            if sizes is not None and (tree := tree_of(sizes)) is not None:
                return n, tree
        return 0, None


@dataclass(frozen=True)
class Family:
    """A kind of unit that is looked for.

    Attributes
    ----------
    name : str
    starts : ``(facts) -> iterable of units``
        Units to begin from, the likeliest first.
    choices : ``(unit, facts) -> mapping of str to sequence``
        For each field, what else it can be; "inner.terms" is a field of the unit in a unit's field.
    joint : tuple of tuples of str
        Fields that are tried together where one at a time leads nowhere.
    simpler : ``(unit) -> iterable of units``
        Usual ways to state what computes the same, taken where they have all answers too.
    of_blocks : bool
        Whether its operands have block formats.
    """

    name: str
    starts: Callable[[Facts], Iterable[Unit]]
    choices: Callable[[Unit, Facts], Mapping[str, tuple]]
    joint: tuple[tuple[str, ...], ...] = ()
    simpler: Callable[[Unit], Iterable[Unit]] = lambda unit: ()
    of_blocks: bool = False


#: Families by name, in the order in which they are looked for.
FAMILIES: dict[str, Family] = {}


def find_as(name: str, starts, choices, **more) -> Family:
    """Look for one more family; the arguments are the attributes of `Family`."""
    FAMILIES[name] = Family(name, starts, choices, **more)
    return FAMILIES[name]


def _made(kind, *args, **options) -> Iterator[Unit]:
    try:
        yield kind(*args, **options)
    except ValueError:  # the parts do not fit together
        return


def _accumulators(facts: Facts) -> tuple:
    """Formats that sums can be kept in."""
    known = [*facts.c_formats, *facts.outputs, *(() if facts.of_blocks else facts.operand)]
    if any(f.precision is None for f in facts.c_formats):
        return tuple(dict.fromkeys(known))
    names = ("binary32", "binary64", "binary16", "bfloat16", "tf32", "e6m9", "e5m10", "e8m13")
    return tuple(dict.fromkeys([*(f for f in known if f.precision is not None), *map(format, names)]))


def _narrower(facts: Facts) -> tuple:
    """Formats of sums of all mantissa lengths, with the exponents of the result."""
    made = []
    for out in facts.outputs[:1]:
        if out.precision is not None:
            for e in dict.fromkeys((out.exponent_bits, 8, 11)):
                made += [FloatFormat(e, m) for m in range(1, 53)]
    return tuple(made)


def _overflows(fmt) -> tuple:
    same = P3109_VERSIONS if fmt.signed else ()  # an older version says otherwise of formats without signs alone
    return (None, *(rule for rule in fmt.overflow_rules[1:] if rule not in same))  # the first is the default


# -- one fused sum a step --------------------------------------------------------------------------------------------
def _chains(facts: Facts) -> Iterator[tuple[int, tuple | None, str | None]]:
    """(products of a step, their order, where C is) that agree with what was measured."""
    n, tree = facts.tree()
    steps = None if tree is None else steps_of(tree)
    if not steps:
        return
    where = None
    if facts.takes_c:
        where = "fused" if n in steps[0] else "after" if steps[-1] == [n] else "other"
        steps = [[k for k in step if k != n] for step in steps]
        steps = [step for step in steps if step]
    if where == "other":
        return
    sizes = [len(step) for step in steps]
    terms = max(sizes)
    if where != "fused" and sizes[0] == 2 and set(sizes[1:]) <= {1}:
        terms = 1  # the first product meets +0, which is no leaf
        steps = [[steps[0][0]], [steps[0][1]], *steps[1:]]
    if terms >= n and n > 2:  # more than were asked at once
        return
    for order in _orders(steps, terms, n):
        if facts.agrees(lambda m, o=order: chain_sizes(m, terms, o, where)):
            yield terms, order, where
            return


def _orders(steps: list[list[int]], terms: int, n: int) -> Iterator[tuple | None]:
    """Orders of k in which steps of so many products take the first n, the one of the shortest period first."""
    for period in range(terms, n + 1, terms):
        flat = [k for step in steps for k in sorted(step) if k < period]
        if sorted(flat) == list(range(period)):
            yield None if flat == list(range(period)) else tuple(flat)


def _fused_starts(facts: Facts) -> Iterator[Unit]:
    if facts.two_stages:
        return
    for terms, order, where in _chains(facts):
        for out in facts.outputs[:3]:
            accumulators = dict.fromkeys([*facts.c_formats[:2], *facts.outputs[:2]])
            for accumulator in accumulators if where != "after" else [out, *accumulators]:
                for mode in ("toward_zero", "nearest_even"):
                    yield from _made(
                        FusedDotUnit, terms, min(100, 24 if facts.fraction is None else facts.fraction), accumulator,
                        operand=facts.operand, output=None if out == accumulator else out, output_rounding=mode,
                        k_order=order, c="after" if where == "after" else "fused",
                    )  # fmt: skip


def _near(value: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted(range(low, high + 1), key=lambda x: abs(x - value)))


def _fused_choices(unit: FusedDotUnit, facts: Facts) -> Mapping[str, tuple]:
    bottom = unit.accumulator.emin - 60
    top = max(unit.operand[0].emax + unit.operand[1].emax, 8)
    return {
        "output_rounding": _MODES,
        "truncate_fraction": (None, *range(unit.fraction_bits + 12)),
        "overflow": (*_overflows(unit.accumulator), "always_infinity"),
        "fraction_bits": _near(unit.fraction_bits, 0, _WIDEST),
        "min_exponent": (None, *_near(unit.accumulator.emin, bottom, top)),
        "zero_exponent": (None, *range(min(0, unit.accumulator.emin), bottom, -1)),
        "accumulator": tuple(f for f in _accumulators(facts) if f.precision is not None),
        "output": (None, *(f for f in facts.outputs if f != unit.accumulator)),
        "c": ("fused", "after"),
    }


def _fused_simpler(unit: FusedDotUnit) -> Iterator[Unit]:
    """A shorter sum in the accumulator's format, and not a result in a format of its own."""
    if unit.output is not None and unit.output != unit.accumulator:
        yield replace(unit, output=None, truncate_fraction=unit.output.mantissa_bits)


# -- fused sums of chunks, which are added ---------------------------------------------------------------------------
def _chunks(facts: Facts) -> Iterator[tuple[int, int, tuple | None]]:
    """(products of a chunk, of a step, their order) that agree with what was measured."""
    n, tree = facts.tree()
    if tree is None:
        return
    found = chunks_of(tree, n if facts.takes_c else None)
    if found is not None:
        chunks, steps = found[:1], found[1]
    else:  # the first of them is longer, and longer sums were asked for some pairs
        chunks, steps = range(n, max(facts.sizes)), steps_of(tree) or []
        if facts.takes_c:
            steps = steps[:-1] if steps[-1:] == [[n]] else []
    terms = max(map(len, steps), default=0)
    if terms < 2 or (len(steps) > 1 and {*map(len, steps[1:])} == {1}):  # a product a step
        return
    for order in _orders(steps, terms, sum(map(len, steps))):
        for chunk in chunks:
            if facts.agrees(lambda m, x=(chunk, terms, order): chunk_sizes(m, *x, facts.takes_c)):
                yield chunk, terms, order
                return


def _chunked_starts(facts: Facts) -> Iterator[Unit]:
    for chunk, terms, order in _chunks(facts):
        for out in facts.outputs[:2]:
            for accumulator in dict.fromkeys([out, *facts.c_formats[:2], *facts.outputs[:2]]):
                for mode in ("toward_zero", "nearest_even"):
                    for inner in _made(
                        FusedDotUnit, terms, min(100, 24 if facts.fraction is None else facts.fraction), accumulator,
                        operand=facts.operand, output_rounding=mode, k_order=order,
                    ):  # fmt: skip
                        yield from _made(ChunkedDotUnit, inner, chunk, out)


def _chunked_choices(unit: ChunkedDotUnit, facts: Facts) -> Mapping[str, tuple]:
    inner = _fused_choices(unit.inner, facts)
    kept = ("c", "output")  # each chunk starts from +0, and its sum has one format
    return {
        "rounding": _MODES,
        "overflow": _overflows(unit.accumulator),
        **{f"inner.{name}": values for name, values in inner.items() if name not in kept},
    }


def _chunked_simpler(unit: ChunkedDotUnit) -> Iterator[Unit]:
    """Inner sums that are cut off, whatever too large ones become; else what usual sums have."""
    inner = unit.inner
    cut = {"output_rounding": "toward_zero", "truncate_fraction": None}
    changes = (
        [cut | {"overflow": rule} for rule in (None, "always_infinity")]
        if inner.output_rounding != "toward_zero"
        else []
    )
    changes += [
        {name: None} for name in ("truncate_fraction", "overflow", "min_exponent") if getattr(inner, name) is not None
    ]
    for change in changes:
        for simpler in _made(replace, inner, **change):
            yield replace(unit, inner=simpler)


def _converted_starts(facts: Facts) -> Iterator[Unit]:
    """Fused sums in binary32 that are rounded to the result's format at the end, as libraries' products are."""
    wide = format("binary32")
    if facts.takes_c or any(f.precision is None for f in facts.outputs) or wide in facts.outputs[:1]:
        return
    for inner in _fused_starts(replace(facts, outputs=(wide,), c_formats=(wide,))):
        for out in facts.outputs[:2] if inner.terms > 1 else ():
            yield from _made(ChunkedDotUnit, inner, _WHOLE, out)


# -- products first, then their sum and C ----------------------------------------------------------------------------
def _two_stage_starts(facts: Facts) -> Iterator[Unit]:
    if facts.c_fraction is None:
        return
    more = 7 if facts.two_stages else 0
    for terms, order, where in _chains(facts):
        if order is None and where == "fused" and terms > 1:
            for out in facts.outputs[:2]:
                for zero in (None, min(0, out.emin)) if facts.two_stages else (None,):
                    yield from _made(
                        TwoStageDotUnit, terms, facts.fraction, min(100, facts.fraction + more), facts.c_fraction, out,
                        operand=facts.operand, alignment="down" if facts.c_alignment == "down" else "toward_zero",
                        zero_exponent=zero,
                    )  # fmt: skip


def _two_stage_choices(unit: TwoStageDotUnit, facts: Facts) -> Mapping[str, tuple]:
    about = lambda bits: _near(bits, max(0, bits - 3), bits + 3)  # noqa: E731  these were measured
    bottom = unit.accumulator.emin - 60
    top = unit.operand[0].emax + unit.operand[1].emax
    limits = {*range(top - 6, top + 3), *range(unit.accumulator.emax - 2, unit.accumulator.emax + 4)}
    return {
        "alignment": ("down", "toward_zero"),
        "interleave": tuple(s for s in range(1, 9) if unit.terms % s == 0),
        "output_rounding": _MODES,
        "fraction_bits": about(unit.fraction_bits),
        "sum_fraction_bits": _near(unit.sum_fraction_bits, 0, _WIDEST),
        "c_fraction_bits": about(unit.c_fraction_bits),
        "c_reach": (None, *range(65)),
        "product_limit": (None, *sorted(limits)),
        "overflow": (*_overflows(unit.accumulator), "always_infinity"),
        "zero_exponent": (None, *range(min(0, unit.accumulator.emin), bottom, -1)),
        "accumulator": tuple(f for f in _accumulators(facts) if f.precision is not None),
    }


# -- groups, then C --------------------------------------------------------------------------------------------------
def _grouped_starts(facts: Facts) -> Iterator[Unit]:
    group = facts.group
    if group is None and any(order[:2] == (2, 2) for order in lanes_of(facts)):
        group = 2, "exact"  # a pair's sum, which need not be one of rounded products
    if group is None:
        return
    terms, reduction = group
    # two products that cancel lose nothing in any
    reductions = ("exact", "bulk", "rounded") if terms == 2 else (reduction,)
    for out in facts.outputs[:2]:
        for kind in reductions:
            modes = ((None, "nearest_even"), ("nearest_even", "nearest_even"), ("to_odd", "to_odd"))
            for partial, rounding in modes if kind == "exact" else modes[::-1]:
                for unit in _made(
                    GroupedDotUnit, terms, out, operand=facts.operand, reduction=kind, partial_rounding=partial,
                    rounding=rounding,
                ):  # fmt: skip
                    if kind == "bulk" and facts.fraction not in (None, unit.fraction_bits):
                        guard = max(0, facts.fraction - out.mantissa_bits)
                        unit = replace(unit, guard_bits=guard)
                    yield unit


def _grouped_choices(unit: GroupedDotUnit, facts: Facts) -> Mapping[str, tuple]:
    sums = tuple(f for f in _accumulators(facts) if f.precision is not None and f.signed)
    found = {
        "rounding": _MODES,
        "partial_rounding": (None, *_MODES),
        "accumulator": sums,
        "partial": (None, *(f for f in (*sums, *_narrower(facts)[:52]) if f != unit.accumulator)),
        "reduction": ("bulk", "exact", "rounded"),
        "zeros": ("positive", "signed"),
        "flush_inputs": (False, True),
        "flush_results": _FLUSHES,
        "overflow": _overflows(unit.accumulator),
        "scale": (0, *_near(unit.scale, -128, 16)),
    }
    if unit.reduction == "bulk":
        mandated = (unit.terms - 1).bit_length()
        found["guard_bits"] = (None, *(g for g in range(_WIDEST - unit.partial_format.mantissa_bits) if g != mandated))
    return found


# -- multiply-adds ---------------------------------------------------------------------------------------------------
def lanes_of(facts: Facts) -> Iterator[tuple[int, int | None, str]]:
    """(lanes, chunk, reduction) that agree with what was measured."""
    if not facts.sizes:
        return
    n, tree = facts.tree()
    if tree is None or not _binary(tree):
        return
    sizes = facts.matrix(n)
    least = sizes[0][sizes[0] > 0].min()
    partners = {1, *(int(j) for j in np.flatnonzero(sizes[0] == least) if 0 < j < n)}
    seen = set()
    for lanes in sorted(partners | set(range(1, min(n, 64) + 1))):
        chunks = [None, *range(1, n + 1)] if lanes in partners else [lanes]
        for chunk in chunks:
            for reduction in ("sequential", "tree", "pairwise") if lanes > 1 else ("sequential",):
                if lanes > MAX_LANES or (lanes, chunk, reduction) in seen:
                    continue
                seen.add((lanes, chunk, reduction))
                model = lambda m, x=(lanes, chunk, reduction): lane_sizes(m, *x, facts.takes_c)  # noqa: E731
                shortest = min(facts.sizes)
                if chunk is not None and chunk >= max(facts.sizes):
                    continue  # as without
                if _first_agrees(facts, shortest, model) and facts.agrees(model):
                    yield lanes, chunk, reduction


def _binary(tree) -> bool:
    return not isinstance(tree, list) or (len(tree) == 2 and all(map(_binary, tree)))


def _first_agrees(facts: Facts, n: int, model) -> bool:
    pairs, found = facts.sizes[n]
    sizes = model(n)[pairs[:, 0], pairs[:, 1]]
    return bool((sizes == found)[found >= 0].all())


def _mad_starts(facts: Facts) -> Iterator[Unit]:
    if facts.group:
        return
    orders = list(lanes_of(facts)) if facts.sizes else [(1, None, "sequential")]
    kahan = facts.nothing_lost
    if kahan:
        orders = [(1, None, "sequential")]
    for lanes, chunk, reduction in orders[:4]:
        for out in facts.outputs[:3]:
            for product in (None, out):
                yield from _made(
                    MadUnit, out, operand=facts.operand, product=product, lanes=lanes, chunk=chunk,
                    reduction=reduction, compensated="kahan" if kahan else None,
                )  # fmt: skip


def _mad_choices(unit: MadUnit, facts: Facts) -> Mapping[str, tuple]:
    sums = _accumulators(facts)
    accumulators = (*sums, *_narrower(facts)) if unit.chunk else sums
    found = {} if facts.sizes else {"chunk": (None, 2, 4, 8, 16, 32, 64, 128)}  # saturated sums alone show it
    found |= {
        "product": (None, *sums, *_narrower(facts)[:52]),
        "rounding": _MODES,
        "overflow": _overflows(unit.accumulator),
        "flush_results": _FLUSHES,
        "flush_inputs": (False, True, "positive", "sums"),
        "accumulator": accumulators,
        "compensated": (None, "kahan"),
    }
    if unit.product is not None:
        found["product_rounding"] = (None, *_MODES)
    if unit.chunk is not None:
        found["outer_accumulator"] = (None, *(f for f in sums if f != unit.accumulator))
    return found


def _mad_simpler(unit: MadUnit) -> Iterator[Unit]:
    """Two lanes, and not a rounded product that is added to another."""
    if unit.chunk == 2 and unit.lanes == 1 and unit.product == unit.accumulator:
        yield replace(unit, product=None, product_rounding=None, lanes=2, reduction="tree")


def _fma_starts(facts: Facts) -> Iterator[Unit]:
    for terms, order, where in _chains(facts):
        if terms == 1 and where != "after":
            for out in facts.outputs[:3]:
                yield from _made(FmaChainUnit, out, operand=facts.operand, k_order=order)


def _fma_choices(unit: FmaChainUnit, facts: Facts) -> Mapping[str, tuple]:
    return {
        "rounding": _MODES,
        "flush_inputs": (False, True),
        "flush_results": _FLUSHES,
        "overflow": _overflows(unit.accumulator),
        "accumulator": tuple(f for f in _accumulators(facts) if f.precision is not None),
    }


# -- one rounding ----------------------------------------------------------------------------------------------------
def _exact_starts(facts: Facts) -> Iterator[Unit]:
    if facts.group or (facts.sizes and not facts.nothing_lost):
        return
    for out in facts.outputs[:3]:
        yield from _made(ExactDotUnit, out, operand=facts.operand)


def _exact_simpler(unit: ExactDotUnit) -> Iterator[Unit]:
    """Sums that wrap around, in which no order matters."""
    if unit.overflow == "wrap":
        yield MadUnit(unit.accumulator, operand=unit.operand, overflow="wrap")


def _exact_choices(unit: ExactDotUnit, facts: Facts) -> Mapping[str, tuple]:
    return {
        "rounding": _MODES, "overflow": _overflows(unit.accumulator), "accumulator": _accumulators(facts),
    }  # fmt: skip


# -- blocks with scales ----------------------------------------------------------------------------------------------
def _block_starts(facts: Facts) -> Iterator[Unit]:
    if facts.step not in (None, facts.operand[0].block_size):
        return
    for out in facts.outputs[:3]:
        yield from _made(BlockDotUnit, out, operand=facts.operand)


def _block_choices(unit: BlockDotUnit, facts: Facts) -> Mapping[str, tuple]:
    sums = tuple(f for f in _accumulators(facts) if f.precision is not None)
    elements = tuple(f.element for f in unit.operand)
    inner = [
        made for f in sums for product in (None, f) for made in _made(MadUnit, f, operand=elements, product=product)
    ]
    found = {
        "rounding": _MODES,
        "product": (None, *sums, *_narrower(facts)[:52]),
        "overflow": _overflows(unit.accumulator),
        "inner": (None, *inner),
        "accumulator": sums,
    }
    return found if unit.product is None else found | {"product_rounding": (None, *_MODES)}


def _block_fused_starts(facts: Facts) -> Iterator[Unit]:
    size = facts.operand[0].block_size
    if size is None:
        return
    steps = (facts.step,) if facts.step else (size, 2 * size, 4 * size)
    if facts.step in (None, size):
        steps += tuple(size >> n for n in range(1, size.bit_length()))
    for out in facts.outputs[:2]:
        for terms in steps:
            groups = [terms >> n for n in range(terms.bit_length())]
            for group in groups if facts.by_scales else [1] if facts.step not in (None, size) else [1, *groups[:-1]]:
                for mode in ("toward_zero", "nearest_even"):
                    yield from _made(
                        BlockFusedDotUnit, terms, 25 if facts.fraction is None else facts.fraction, out,
                        operand=facts.operand, group=group, output_rounding=mode,
                    )  # fmt: skip


def _block_fused_choices(unit: BlockFusedDotUnit, facts: Facts) -> Mapping[str, tuple]:
    bottom = unit.accumulator.emin - 60
    sizes = tuple(1 << n for n in range(9))
    return {
        "output_rounding": _MODES,
        "truncate_fraction": (None, *range(unit.fraction_bits + 12)),
        "overflow": (*_overflows(unit.accumulator), "always_infinity"),
        "fraction_bits": _near(unit.fraction_bits, 0, _WIDEST),
        "group": sizes,
        "terms": sizes,
        "min_exponent": (None, *_near(unit.accumulator.emin, bottom, 8)),
        "zero_exponent": (None, *range(min(0, unit.accumulator.emin), bottom, -1)),
        "accumulator": tuple(f for f in _accumulators(facts) if f.precision is not None),
    }


find_as(
    "multiply-adds", _mad_starts, _mad_choices,
    joint=(("flush_inputs", "flush_results"), ("product", "rounding"), ("accumulator", "overflow")),
    simpler=_mad_simpler,
)  # fmt: skip
find_as("a chain of fused multiply-adds", _fma_starts, _fma_choices, joint=(("flush_inputs", "flush_results"),))
find_as(
    "fused sums", _fused_starts, _fused_choices,
    joint=(
        ("output_rounding", "truncate_fraction"), ("output_rounding", "overflow"), ("fraction_bits", "output_rounding"),
    ),
    simpler=_fused_simpler,
)  # fmt: skip
find_as(
    "fused sums of chunks, added", _chunked_starts, _chunked_choices,
    joint=(
        ("inner.output_rounding", "inner.truncate_fraction"), ("inner.output_rounding", "inner.overflow"),
        ("inner.fraction_bits", "inner.output_rounding"), ("rounding", "overflow"),
    ),
    simpler=_chunked_simpler,
)  # fmt: skip
find_as(
    "fused sums in binary32, converted", _converted_starts, _chunked_choices,
    joint=(("inner.output_rounding", "inner.truncate_fraction"), ("inner.fraction_bits", "inner.output_rounding")),
    simpler=_chunked_simpler,
)  # fmt: skip
find_as("the exact sum", _exact_starts, _exact_choices, simpler=_exact_simpler)
find_as(
    "products, then their sum and C", _two_stage_starts, _two_stage_choices,
    joint=(("interleave", "c_reach"), ("c_fraction_bits", "c_reach"), ("fraction_bits", "sum_fraction_bits")),
)  # fmt: skip
find_as(
    "groups, then their sum and C", _grouped_starts, _grouped_choices,
    joint=(
        ("partial_rounding", "rounding"), ("partial", "guard_bits"), ("flush_inputs", "flush_results"),
        ("reduction", "zeros"),
    ),
)  # fmt: skip
find_as("sums of blocks, scaled", _block_starts, _block_choices, joint=(("product", "rounding"),), of_blocks=True)
find_as(
    "fused sums of blocks with scales", _block_fused_starts, _block_fused_choices,
    joint=(
        ("terms", "group"), ("output_rounding", "truncate_fraction"), ("output_rounding", "overflow"),
        ("fraction_bits", "output_rounding"),
    ),
    of_blocks=True,
)  # fmt: skip
