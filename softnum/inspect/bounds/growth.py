"""What a unit's roundings can make of an error, before a sum is known: the a priori half of `softnum.bound`.

`Growth` is what a computed sum can be off by: at most ``relative * S + absolute``, S the sum of its terms' magnitudes.
docs/reference/error-bounds.md derives each formula. All numbers here are floats that are rounded up.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import NamedTuple

from softnum.mac.blocks import BlockDotUnit
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import family_of, register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.order import reduction_order
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["NOTHING", "Chances", "Growth", "Local", "chances_of", "growth_of", "local", "plus", "times", "upward"]


def upward(x) -> float:
    """The least float64 that is no smaller than a number, which may be a Fraction."""
    try:
        near = float(x)
    except OverflowError:
        return inf
    return near if near == inf or Fraction(near) >= x else nextafter(near, inf)


def plus(*numbers: float) -> float:
    """A sum of numbers that are not negative, rounded up."""
    total = 0.0
    for x in numbers:
        total = nextafter(total + x, inf) if total and x else total or x
    return total


def times(x: float, y: float) -> float:
    """A product of numbers that are not negative, rounded up."""
    return nextafter(x * y, inf) if x and y else 0.0


class Local(NamedTuple):
    """One rounding: it changes x by at most ``relative * abs(x) + absolute``."""

    relative: float
    absolute: float


class Growth(NamedTuple):
    """An error of at most ``relative * S + absolute + carried * E``, S the sum of magnitudes of all terms.

    carried: of an error E that the operands bring in (`softnum.FmaChainUnit` with flush_inputs). last: all results are
    multiples of ``2**last``. most: no intermediate result overflows where the bound of the sum lies below this.
    """

    relative: float = 0.0
    absolute: float = 0.0
    carried: float = 1.0
    last: float = inf
    most: float | Fraction = inf
    lifted: bool = False
    flushes: bool = False

    def rounded(self, how: Local, fmt, times_: int = 1) -> Growth:
        """The sum after so many more roundings in a row to a format."""
        grown = _power(how.relative, times_)
        return self._replace(
            relative=_both(self.relative, grown),
            absolute=times(plus(1.0, grown), plus(self.absolute, times(float(times_), how.absolute))),
            carried=times(self.carried, plus(1.0, grown)) if grown else self.carried,
            last=max(self.last, fmt.span[0]), most=min(self.most, fmt.max),
        )  # fmt: skip

    def several(self, count: int) -> Growth:
        """The exact sum of so many of them."""
        return self._replace(absolute=times(float(count), self.absolute))

    def beside(self, last: float) -> Growth:
        """The same, with a term that is a multiple of ``2**last``."""
        return self._replace(last=min(self.last, last))


NOTHING = Growth()


def _both(x: float, y: float) -> float:
    """``(1 + x) * (1 + y) - 1``."""
    return plus(x, y, times(x, y))


def _power(x: float, n: int) -> float:
    """``(1 + x)**n - 1``."""
    result = 0.0
    while n:
        if n & 1:
            result = _both(result, x)
        x, n = _both(x, x), n >> 1
    return result


def local(fmt, mode: str, last: float, flushes: bool = False) -> Local:
    """A rounding to a format, of numbers that are multiples of ``2**last``."""
    nearest = mode.startswith("nearest")
    relative = 0.0 if fmt.precision is None else 2.0 ** (-fmt.precision if nearest else 1 - fmt.precision)
    if flushes:
        return Local(relative, upward(fmt.smallest_normal))
    if fmt.lowest_binade != "subnormal":  # nothing but 0 lies below the smallest normal number
        return Local(relative, upward(Fraction(fmt.smallest_normal) / (2 if nearest else 1)))
    finest = fmt.span[0]
    if last >= finest:  # what is too small for the relative term is a value
        return Local(relative, 0.0)
    return Local(relative, upward(Fraction(2) ** (finest - nearest)))


def growth_of(unit, k: int, products: Growth, start: float | None) -> Growth:
    """The growth of a sum of k products.

    products: what is known of them before; start: C is a multiple of ``2**start``; None: there is no C.

    Raises
    ------
    TypeError
        If no bounds are known of this kind of unit.
    """
    grow = family_of(unit).growth
    if grow is None or unit.on_codes:
        reason = "its arithmetic is the user's own, or that of custom formats"
        if family_of(unit).of_blocks:
            reason = f"none are derived of {type(unit).__name__}s"
        raise TypeError(
            f"bound: no error bounds are known of {unit}: {reason}; "
            "its error against the exact sum is softnum.ops.ulp_error"
        )
    return grow(unit, k, products, start)


# -- multiply-adds -----------------------------------------------------------------------------------------------------


def _mad(unit: MadUnit, k: int, products: Growth, start: float | None) -> Growth:
    if unit.flushes:
        raise TypeError(f"bound: no error bounds are known of a MadUnit that flushes subnormals ({unit})")
    if not k:
        return NOTHING
    exact_first = False
    if unit.product is not None:
        products = products.rounded(local(unit.product, unit.product_mode, products.last), unit.product)
        exact_first = unit.accumulator.contains(unit.product) is True
    length = k if unit.chunk is None else min(k, unit.chunk)
    here = start if unit.chunk is None and unit.lanes == 1 else None  # where C starts a lane
    count = -(-length // unit.lanes)
    lane = _running(unit, products, unit.accumulator, count, here, exact_first)
    lanes = unit.lanes + (unit.chunk is None and start is not None and unit.lanes > 1)
    if lanes > 1:
        if unit.chunk is None and start is not None:
            lane = lane.beside(start)
        how = local(unit.accumulator, unit.rounding, lane.last)
        # all additions bring their absolute errors, one path through them the relative ones
        deep = _power(how.relative, _depth(lanes, unit.reduction))
        lane = lane._replace(
            relative=_both(lane.relative, deep),
            absolute=times(plus(1.0, deep), plus(times(float(unit.lanes), lane.absolute),
                                                 times(float(lanes - 1), how.absolute))),
        )  # fmt: skip
    if unit.chunk is None:
        return lane
    exact_first = unit.outer.contains(unit.accumulator) is True
    return _running(unit, lane, unit.outer, -(-k // unit.chunk), start, exact_first)


def _depth(n: int, how: str) -> int:
    """How many additions in a row the number has that goes through most."""
    depth = [0] * n
    for i, j in reduction_order(n, how):
        depth[i] = max(depth[i], depth[j]) + 1
    return depth[0]


def _running(unit: MadUnit, term: Growth, fmt, n: int, start: float | None, exact_first: bool) -> Growth:
    """A running sum of n terms, from +0 (to which a value of the sum's format is added exactly) or C."""
    if start is not None:
        term = term.beside(start)
    how = local(fmt, unit.rounding, term.last)
    if unit.compensated:
        return _kahan(term, how, fmt, n)
    return term.several(n).rounded(how, fmt, n - (exact_first and start is None))


def _kahan(term: Growth, how: Local, fmt, n: int) -> Growth:
    """A compensated sum of n terms: magnitudes are ``x * abs(p) + s * S + z``, p the step's term."""
    u, least = how
    e_s = e_z = 0.0  # the compensation
    most_s = most_z = 0.0  # the error of the sum so far
    sum_s, sum_z = 0.0, 0.0  # errors that stay in it
    p = plus(u, times(times(u, plus(1.0, u)), plus(1.0, u)))  # those that are a part of each |p|: of y, t - acc and e
    for _ in range(n):
        y_s, y_z = times(plus(1.0, u), e_s), plus(times(plus(1.0, u), e_z), least)
        sum_s, sum_z = plus(sum_s, times(u, e_s)), plus(sum_z, times(u, e_z), least)
        t_s, t_z = times(u, plus(1.0, most_s, u, y_s)), plus(times(u, plus(most_z, y_z)), least)
        most_s, most_z = plus(p, sum_s, t_s), plus(sum_z, t_z)
        moved_s, moved_z = times(u, plus(y_s, t_s)), plus(times(u, plus(y_z, t_z)), least)  # and u (1 + u) |p|
        lost_s = times(u, plus(t_s, moved_s))  # and u^2 (1 + u) |p|
        lost_z = plus(times(u, plus(t_z, moved_z)), least)
        sum_s, sum_z = plus(sum_s, moved_s, lost_s), plus(sum_z, moved_z, lost_z)
        e_s = plus(t_s, moved_s, lost_s, times(times(u, plus(1.0, u)), plus(1.0, u)))
        e_z = plus(t_z, moved_z, lost_z)
        if most_s == inf:
            break
    grown = plus(1.0, most_s)
    return term._replace(
        relative=_both(term.relative, most_s),
        absolute=plus(times(grown, times(float(n), term.absolute)), most_z),
        carried=times(grown, term.carried), last=max(term.last, fmt.span[0]),
        # y, t - acc and e have magnitudes of at most 8 times the sum's bound, as u <= 1; below 0 they may be
        most=min(term.most, Fraction(fmt.max) / 8 if fmt.signed else 0),
    )  # fmt: skip


# -- fused units -------------------------------------------------------------------------------------------------------


def _fused(unit: FusedDotUnit, k: int, products: Growth, start: float | None) -> Growth:
    inside = start if unit.c == "fused" else None
    growth = (products if inside is None else products.beside(inside))._replace(lifted=True)
    steps = unit.steps(k)
    last_fmt = unit.output if unit.output is not None and unit.c == "fused" else unit.accumulator
    if steps > 1:
        growth = growth.rounded(_fused_step(unit, unit.accumulator), unit.accumulator, steps - 1)
    if steps:
        growth = growth.rounded(_fused_step(unit, last_fmt), last_fmt)
    elif last_fmt != unit.accumulator:
        growth = growth.rounded(local(last_fmt, unit.output_rounding, growth.last), last_fmt)
    if unit.c == "after" and steps:
        growth = growth if start is None else growth.beside(start)
        growth = growth.rounded(local(unit.result, "nearest_even", growth.last), unit.result)
    return growth


def _fused_step(unit: FusedDotUnit, fmt) -> Local:
    """One step: terms are cut at 2**(M - F), the sum to its own bits, and rounded."""
    cut = times(float(unit.terms + 1), 2.0**-unit.fraction_bits)
    floor = _floor(unit)
    if unit.min_exponent is not None:
        floor += Fraction(2) ** unit.min_exponent
    own = 0.0 if unit.truncate_fraction is None else 2.0**-unit.truncate_fraction
    after = local(fmt, unit.output_rounding, -inf)
    below = times(cut, upward(floor))
    end = plus(own, after.relative)
    return Local(_both(cut, end), plus(times(below, plus(1.0, end)), after.absolute))


def _two_stage(unit: TwoStageDotUnit, k: int, products: Growth, start: float | None) -> Growth:
    growth = (products if start is None else products.beside(start))._replace(lifted=True)
    if unit.product_limit is not None:
        growth = growth._replace(most=min(growth.most, Fraction(2) ** unit.product_limit))
    cut = times(float(unit.terms + (unit.interleave if unit.interleave > 1 else 0)), 2.0**-unit.fraction_bits)
    cut = plus(cut, 2.0**-unit.sum_fraction_bits, 2.0**-unit.c_fraction_bits)
    if unit.c_reach is not None:
        cut = plus(cut, 2.0**-unit.c_reach)
    after = local(unit.accumulator, unit.output_rounding, -inf)
    below = times(cut, upward(_floor(unit)))
    step = Local(_both(cut, after.relative), plus(times(below, plus(1.0, after.relative)), after.absolute))
    return growth.rounded(step, unit.accumulator, unit.steps(k)) if k else growth


def _floor(unit: FusedDotUnit | TwoStageDotUnit) -> Fraction:
    """What is added to a sum's magnitude where it stands for the largest exponent: a sum has the lowest at least."""
    floor = Fraction(2) ** unit.accumulator.emin
    if unit.zero_exponent is not None:  # beside the largest operand
        floor += Fraction(2) ** (unit.zero_exponent + max(f.emax for f in unit.operand))
    return floor


def _chain(unit: FmaChainUnit, k: int, products: Growth, start: float | None) -> Growth:
    growth = (products if start is None else products.beside(start))._replace(flushes=unit.flush_inputs)
    flushes = unit.flush_inputs or unit.flush_results is not None
    how = local(unit.accumulator, unit.rounding, growth.last, flushes)
    if unit.flush_inputs:  # a sum is read as 0 besides
        how = how._replace(absolute=times(2.0, how.absolute))
    return growth.rounded(how, unit.accumulator, unit.steps(k) if flushes else k)


def _grouped(unit: GroupedDotUnit, k: int, products: Growth, start: float | None) -> Growth:
    if unit.flushes or unit.scale:
        what = "flushes subnormals" if unit.flushes else f"sums products times 2^{unit.scale}"
        raise TypeError(f"bound: no error bounds are known of a GroupedDotUnit that {what} ({unit})")
    if not k:
        return NOTHING
    group, jam = products, 0.0
    if unit.reduction == "bulk":  # each product of a group is off by less than the last bit that is kept
        jam = times(float(min(k, unit.terms)), 2.0**-unit.fraction_bits)
        group = group._replace(relative=_both(group.relative, jam), last=-inf, lifted=True)
    if unit.reduction == "rounded":  # the first product of a group is added to nothing, or to 0
        n = min(k, unit.terms)
        group = group.rounded(local(unit.partial_format, unit.partial_rounding, group.last), unit.partial_format)
        how = local(unit.partial_format, unit.partial_rounding, group.last)
        group = group.several(n).rounded(how, unit.partial_format, n - 1)
    elif unit.partial_rounding is not None:
        group = group.rounded(local(unit.partial_format, unit.partial_rounding, group.last), unit.partial_format)
    group = group if start is None else group.beside(start)
    n = unit.steps(k)
    return group.several(n).rounded(local(unit.accumulator, unit.rounding, group.last), unit.accumulator, n)


# -- what chance makes of a stochastic sum ---------------------------------------------------------------------------


class Chances(NamedTuple):
    """The roundings of a sum: how many, how far apart the two values are that each chooses from, by what is stochastic.

    sums, products: the roundings of sums and of products, each a `Local` of its two neighbours' distance, or None where
    there are none. count: how many of sums. random_sums, random_products: whether they are stochastic.
    """

    count: int
    sums: Local
    products: Local | None
    random_sums: bool
    random_products: bool


def chances_of(unit, k: int, products: Growth, start: float | None) -> Chances:
    """The roundings of a stochastic sum of k products, as `growth_of` takes them; ValueError of other units."""
    find = family_of(unit).chances
    if find is None or not unit.stochastic or getattr(unit, "compensated", None):
        raise ValueError(f"bound: failure= takes a MadUnit or ExactDotUnit that rounds stochastically, got {unit}")
    if unit.random_source.kind != "philox":
        raise ValueError(
            f"bound: failure= takes random bits that do not depend on those before, which random={unit.random!r} does "
            "not give"
        )
    return find(unit, k, products, start)


def _mad_chances(unit: MadUnit, k: int, products: Growth, start: float | None) -> Chances:
    product = None
    last = products.last
    if unit.product is not None:
        product = local(unit.product, unit.product_mode, last)
        last = max(last, unit.product.span[0])
    last = last if start is None else min(last, start)
    inner, outer = (local(fmt, unit.rounding, last) for fmt in (unit.accumulator, unit.outer))
    sums = Local(max(inner.relative, outer.relative), max(inner.absolute, outer.absolute))
    count = unit.steps(k) if start is None else unit.steps_with_c(k)
    stochastic = unit.product is not None and unit.product_mode.startswith("stochastic")
    return Chances(count, sums, product, unit.rounding.startswith("stochastic"), stochastic)


def _exact_chances(unit: ExactDotUnit, k: int, products: Growth, start: float | None) -> Chances:
    last = products.last if start is None else min(products.last, start)
    return Chances(1 if k else 0, local(unit.accumulator, unit.rounding, last), None, True, False)


# -- one rounding, chunks, blocks --------------------------------------------------------------------------------------


def _exact(unit: ExactDotUnit, k: int, products: Growth, start: float | None) -> Growth:
    growth = products if start is None else products.beside(start)
    return growth.rounded(local(unit.accumulator, unit.rounding, growth.last), unit.accumulator) if k else NOTHING


def _chunked(unit: ChunkedDotUnit, k: int, products: Growth, start: float | None) -> Growth:
    if not k:
        return NOTHING
    chunk = growth_of(unit.inner, min(k, unit.chunk), products, None)
    exact_first = start is None and unit.accumulator.contains(unit.inner.result) is True
    chunk = chunk if start is None else chunk.beside(start)
    how, n = local(unit.accumulator, unit.rounding, chunk.last), -(-k // unit.chunk)
    return chunk.several(n).rounded(how, unit.accumulator, n - exact_first)


def _blocks(unit: BlockDotUnit, k: int, block: Growth, start: float | None) -> Growth:
    """Of scaled blocks, from what is known of one: the sum of so many (k), before tensor scales."""
    if unit.product is not None:
        block = block.rounded(local(unit.product, unit.product_mode, block.last), unit.product)
    exact_first = start is None and unit.product is not None and unit.accumulator.contains(unit.product) is True
    block = block if start is None else block.beside(start)
    return block.several(k).rounded(
        local(unit.accumulator, unit.rounding, block.last), unit.accumulator, k - exact_first
    )


register(MadUnit, growth=_mad, chances=_mad_chances)
register(FusedDotUnit, growth=_fused)
register(FmaChainUnit, growth=_chain)
register(GroupedDotUnit, growth=_grouped)
register(TwoStageDotUnit, growth=_two_stage)
register(ExactDotUnit, growth=_exact, chances=_exact_chances)
register(ChunkedDotUnit, growth=_chunked)
register(BlockDotUnit, growth=_blocks)
