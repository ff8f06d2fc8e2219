"""How large sums can get: what lets a whole product go without tests for overflow.

The reasoning is that of csrc/gemm_bounds.h: rounding is monotone and, in the modes asked about, symmetric about 0. If
no product exceeds P and no start exceeds S, sums stay within S_0 = S, S_(k+1) = R(S_k + P), with R to nearest, ties
away from zero, which no nearest mode exceeds, or away from zero for the stochastic ones. Here the recurrence is
followed in exact numbers, a binade at a time: while sums stay in one, every step adds the same.
"""

from __future__ import annotations

from fractions import Fraction

from softnum.kernels.device.steps import outcomes_of
from softnum.plan import FastPlan, IntegerPlan, Round32

__all__ = ["level_of", "levels_of", "sum_bound", "sums_fit"]


def _place(x: Fraction, m: int) -> Fraction:
    """The last place of a positive number of m fraction bits."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** e > x:
        e -= 1
    return Fraction(2) ** (e - m)


def _rounded(x: Fraction, place: Fraction, up: bool) -> Fraction:
    """To a multiple of a last place: up, or ties up."""
    return -(-x // place) * place if up else (x / place + Fraction(1, 2)) // 1 * place


def sum_bound(r: Round32, start: Fraction, addend: Fraction, n: int, up: bool) -> Fraction:
    """No sum of n addends of at most `addend` from a start of at most `start` exceeds the result, if within r.bound."""
    m, most = r.mantissa_bits, Fraction(r.bound)
    lowest = Fraction(2) ** ((r.emin >> 23) - 127)
    total = max(start, lowest)
    total = _rounded(total, _place(total, m), True)
    while n > 0 and total <= most:
        place = _place(total, m)
        step = _rounded(addend, place, up)
        if step == 0:
            break
        end = place * 2 ** (m + 1)  # of the binade
        inside = (end - total - addend) // step  # so many steps start and end in it
        if inside > 0:
            steps = min(n, int(inside))
            total += steps * step
        else:
            steps = 1
            total = _rounded(total + addend, _place(total + addend, m), up)
        n -= steps
    return total


def sums_fit(plan: IntegerPlan, k: int, largest: tuple[float, float, float]) -> bool:
    """Whether sums of integers may go without a test: they wrap, or products of such magnitudes cannot saturate."""
    if plan.wrap:
        return True
    a, b = (int(x * 2.0**f) for x, f in zip(largest, plan.fractions, strict=False))
    products = k * a * b
    total = (products << plan.shift) + int(largest[2] / plan.scale)
    return products < 2**31 and total <= plan.most and total <= -plan.least


def levels_of(plan: FastPlan) -> tuple[str, ...]:
    """The levels that `level_of` gives."""
    if plan.path not in ("magic", "odd", "stochastic") or plan.magic[1].bound == 0:
        return ("full",)
    if plan.path == "stochastic":
        tested = plan.exact_below and plan.product == "exact" and outcomes_of(plan) is not None
        return ("full", "tested", "bare") if tested else ("full", "bare") if plan.exact_below else ("full",)
    return ("full", "signed", "bare") if plan.exact_below and plan.path == "magic" else ("full", "signed")


def level_of(plan: FastPlan, k: int, largest: tuple[float, float, float], negative_zero: bool) -> str:
    """The level (csrc/softnum/steps.h) at which a product is computed.

    largest: magnitudes in a, b and C; infinity if there is a NaN. negative_zero: whether C holds one.
    """
    levels = levels_of(plan)
    least = "tested" if "tested" in levels and not negative_zero else "full"
    bare = "bare" in levels and not negative_zero
    if not (bare or "signed" in levels) or not all(x < float("inf") for x in largest):
        return least
    product, total, outer = plan.magic
    up = plan.path == "stochastic"
    addend = Fraction(largest[0]) * Fraction(largest[1])
    if plan.product != "exact":
        lowest = Fraction(2) ** ((product.emin >> 23) - 127)
        addend = max(addend, lowest)
        addend = _rounded(addend, _place(addend, product.mantissa_bits), up)
        if addend > Fraction(product.bound):
            return least
    start = Fraction(largest[2])
    total_bound = sum_bound(total, Fraction(0) if plan.chunk else start, addend, min(plan.chunk or k, k), up)
    if total_bound > Fraction(total.bound):
        return least
    if plan.chunk and sum_bound(outer, start, total_bound, -(-k // plan.chunk), up) > Fraction(outer.bound):
        return least
    return "bare" if bare else "signed"
