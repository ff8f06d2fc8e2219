"""How large sums can get: what lets a whole product go without tests for overflow.

The reasoning is that of gemm/bounds.h: rounding is monotone and, in the modes asked about, symmetric about 0. If
no product exceeds P and no start exceeds S, sums stay within S_0 = S, S_(k+1) = R(S_k + P), with R to nearest, ties
away from zero, which no nearest mode exceeds, or away from zero for the stochastic ones. Here the recurrence is
followed in exact numbers, a binade at a time: while sums stay in one, every step adds the same.
"""

from __future__ import annotations

from fractions import Fraction

from softnum.mac.plan import FastPlan, IntegerPlan, Round32

__all__ = ["level_of", "levels_of", "sum_bound", "sums_fit"]


_UNIT = 400  # numbers here are integers of 2^-400: exact for binary32 and its products


def _number(x: float) -> int:
    numerator, denominator = x.as_integer_ratio()
    return (numerator << _UNIT) // denominator


def _place(x: int, m: int) -> int:
    """The last place of a positive number of m fraction bits."""
    return 1 << (x.bit_length() - 1 - m)


def _rounded(x: int, place: int, up: bool) -> int:
    """To a multiple of a last place: up, or ties up."""
    return (x + (place - 1 if up else place >> 1)) & -place


def _binade(r: Round32) -> int:
    """The lowest binade's beginning."""
    return 1 << (_UNIT + (r.emin >> 23) - 127)


def _sum_bound(r: Round32, start: int, addend: int, n: int, up: bool) -> int:
    m, most = r.mantissa_bits, _number(r.bound)
    total = max(start, _binade(r))
    total = _rounded(total, _place(total, m), True)
    while n > 0 and total <= most:
        place = _place(total, m)
        step = _rounded(addend, place, up)
        if step == 0:
            break
        end = place << (m + 1)  # of the binade
        inside = (end - total - addend) // step  # so many steps start and end in it
        if inside > 0:
            steps = min(n, inside)
            total += steps * step
        else:
            steps = 1
            total = _rounded(total + addend, _place(total + addend, m), up)
        n -= steps
    return total


def sum_bound(r: Round32, start: Fraction, addend: Fraction, n: int, up: bool) -> Fraction:
    """No sum of n addends of at most `addend` from a start of at most `start` exceeds the result, if within r.bound.

    All of them are multiples of 2**-400.
    """
    numbers = (int(x * 2**_UNIT) for x in (start, addend))
    return Fraction(_sum_bound(r, *numbers, n, up), 2**_UNIT)


def sums_fit(plan: IntegerPlan, k: int, largest: tuple[float, float, float]) -> bool:
    """Whether sums of integers may go without a test: they wrap, or products of such magnitudes cannot saturate."""
    if plan.wrap:
        return True
    a, b = (int(x * 2.0**f) for x, f in zip(largest, plan.fractions, strict=False))
    products = k * a * b
    total = (products << plan.shift) + int(largest[2] / plan.scale)
    return products < 2**31 and total <= plan.most and (not plan.signed or total <= -plan.least)


def levels_of(plan: FastPlan) -> tuple[str, ...]:
    """The levels that `level_of` gives."""
    if plan.path not in ("magic", "odd", "stochastic") or plan.magic[1].bound == 0:
        return ("full",)
    if plan.path == "stochastic":
        return ("full", "tested", "bare") if plan.exact_below else ("full",)
    return ("full", "signed", "bare") if plan.exact_below and plan.path == "magic" else ("full", "signed")


def level_of(plan: FastPlan, k: int, largest: tuple[float, float, float], negative_zero: bool) -> str:
    """The level (csrc/softnum/device/steps.h) at which a product is computed.

    largest: magnitudes in a, b and C; infinity if there is a NaN. negative_zero: whether C holds one.
    """
    levels = levels_of(plan)
    least = "tested" if "tested" in levels and not negative_zero else "full"
    bare = "bare" in levels and not negative_zero
    if not (bare or "signed" in levels) or not all(x < float("inf") for x in largest):
        return least
    product, total, outer = plan.magic
    up = plan.path == "stochastic"
    addend = _number(largest[0]) * _number(largest[1]) >> _UNIT
    if plan.product != "exact":
        addend = max(addend, _binade(product))
        addend = _rounded(addend, _place(addend, product.mantissa_bits), up)
        if addend > _number(product.bound):
            return least
    start, length = _number(largest[2]), min(plan.chunk or k, k)
    most = _sum_bound(total, 0 if plan.chunk else start, addend, length, up)
    if most > _number(total.bound):
        return least
    if plan.chunk and _sum_bound(outer, start, most, -(-k // plan.chunk), up) > _number(outer.bound):
        return least
    return "bare" if bare else "signed"
