"""What the partial sums of one dot product say of its error: the running half of `softnum.bound`.

A running bound is the sum of what each step can have lost, by the place of the last digit of what the step returned; a
step that was exact has lost nothing. docs/reference/error-bounds.md says why these add up to a bound of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

from softnum.inspect.steps.step import Step, rounding_step, steps_of
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import family_of, register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.two_stage import TwoStageDotUnit
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import environment_of, floor_log2
from softnum.reference.values import decode

__all__ = ["running_of"]

_LOWEST = -(1 << 40)  # below all binades
_SPECIAL = ("inf", "-inf", "nan", "invalid")


def running_of(unit, a, b, c: int | None, words: Callable | None) -> Fraction | float:
    """A bound of the error of one dot product of codes, as `softnum.inspect.steps.step.steps_of` takes them.

    Infinite where a step's result is no number, or its exact value beyond what its format holds.
    """
    return family_of(unit).running(unit, a, b, c, words)


def _number(x: Fraction | str) -> Fraction:
    return Fraction(0) if x == "-0" else x


def _last_place(x: Fraction, fmt) -> Fraction:
    binade = floor_log2(abs(x.numerator), x.denominator) if x else _LOWEST
    return Fraction(2) ** int(fmt.last_place(binade))


def lost(step: Step, mode: str, flushes: bool = False) -> Fraction | float:
    """What a step can have lost at most, by what it returned."""
    if step.format is None:  # exact, or cut off toward zero at multiples of the quantum
        return step.quantum if step.lost else Fraction(0)
    fmt = step.format
    if step.exact in _SPECIAL or step.value in _SPECIAL:
        return inf
    exact, value = _number(step.exact), _number(step.value)
    if not fmt.min <= exact <= fmt.max:
        return inf
    if value == exact:
        return Fraction(0)
    unit = _last_place(value, fmt)
    smallest = Fraction(fmt.smallest_normal)
    if flushes and not value:
        return smallest
    if fmt.lowest_binade != "subnormal" and abs(value) <= smallest:
        unit = max(unit, smallest)  # nothing lies between this and 0
    return unit / 2 if mode.startswith("nearest") else unit


def _together(errors) -> Fraction | float:
    """The sum of errors, of which some may be infinite."""
    total = Fraction(0)
    for error in errors:
        if error == inf:
            return inf
        total += error
    return total


def _mad(unit: MadUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    return _together(
        lost(step, unit.product_mode if step.name == "product" else unit.rounding)
        for step in (_uncompensated(steps) if unit.compensated else steps)
    )


def _uncompensated(steps: list[Step]) -> list[Step]:
    """The steps whose errors stay in a compensated sum: not those of sums before its last, nor what follows that."""
    last = {_sum_of(step): i for i, step in enumerate(steps) if step.name in ("sum", "chunks")}
    kept = []
    for i, step in enumerate(steps):
        at = last.get(_sum_of(step), i)
        overflows = step.format is not None and lost(step, "up") == inf
        if overflows or not ((step.name in ("sum", "chunks") and i < at) or (step.name in ("t - acc", "e") and i > at)):
            kept.append(step)
    return kept


def _sum_of(step: Step) -> tuple:
    """Which running sum a step of a MadUnit is a part of."""
    return (step.where.get("chunk"), step.where.get("lane")) if "k" in step.where else ("chunks",)


def _fused(unit: FusedDotUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    total = _together(lost(s, "nearest_even" if s.name == "C added" else unit.output_rounding) for s in steps)
    if not steps and c is not None and unit.result != unit.c_format:  # C alone, converted
        env = environment_of(unit.result, unit.output_rounding)
        total = lost(rounding_step("C", "c", decode(c, unit.c_format), unit.result, env), unit.output_rounding)
    return total


def _two_stage(unit: TwoStageDotUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    return _together(lost(step, unit.output_rounding) for step in steps)


def _chain(unit: FmaChainUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    total, acc = Fraction(0), decode(0 if c is None else c, unit.accumulator).fraction
    for product, step in zip(steps[::2], steps[1::2], strict=True):
        if unit.flush_inputs:
            k = product.where["k"]
            if k < len(a):
                x, y = (decode(codes[k], fmt).fraction for codes, fmt in zip((a, b), unit.operand, strict=True))
                total += abs(x * y - _number(product.exact))
            total += abs(acc - _number(dict(step.terms)["acc"]))
        error = lost(step, unit.rounding, unit.flush_results is not None)
        if error == inf:
            return inf
        total, acc = total + error, _number(step.value)
    return total


def _grouped(unit: GroupedDotUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    inner = ("product", "partial sum")
    return _together(lost(s, unit.partial_rounding if s.name in inner else unit.rounding) for s in steps)


def _exact(unit: ExactDotUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    return _together(lost(step, unit.rounding) for step in steps)


def _chunked(unit: ChunkedDotUnit, a, b, c, words) -> Fraction | float:
    env = environment_of(unit.accumulator, unit.rounding, unit.overflow)
    code, total = 0 if c is None else c, Fraction(0)
    for first in range(0, len(a), unit.chunk):
        part = slice(first, first + unit.chunk)
        _, inner = steps_of(unit.inner, a[part], b[part], None, None)
        exact = exact_sum(decode(code, unit.accumulator), decode(inner, unit.inner.result), env)
        step = rounding_step("outer sum", "outer + sum", exact, unit.accumulator, env)
        total = _together((total, running_of(unit.inner, a[part], b[part], None, None), lost(step, unit.rounding)))
        if total == inf:
            return inf
        code = step.code
    return total


def _blocks(unit: BlockDotUnit, a, b, c, words) -> Fraction | float:
    steps, _ = steps_of(unit, a, b, c, words)
    own = [s for s in steps if s.name in ("scaled sum", "sum", "tensor scales") and set(s.where) <= {"block"}]
    total, tensor = Fraction(0), Fraction(1)
    inner = [] if unit.inner is None else _inner_errors(unit, a, b, words)
    if inf in inner:
        return inf
    for step in own:
        terms = dict(step.terms)
        if step.name == "tensor scales":
            tensor = abs(_number(terms["Ta"]) * _number(terms["Tb"]))
            total *= tensor
        elif step.name == "scaled sum" and inner:
            total += inner[step.where["block"]] * abs(_number(terms["X"]) * _number(terms["Y"]))
        error = lost(step, unit.product_mode if step.name == "scaled sum" else unit.rounding)
        if error == inf:
            return inf
        total += error
    return total


def _inner_errors(unit: BlockDotUnit, a, b, words) -> list:
    """Of each block, a bound of its inner sum's error."""
    inner, first, errors = unit.inner, 0, []
    for (numbers, _), length in zip(unit.numbering(len(a))[0], unit.lengths(len(a)), strict=True):
        x, y = (v.codes[first : first + length].tolist() for v in (a, b))
        own = None
        if inner.stochastic:
            bits = inner.stochastic_bits, inner.two_roundings
            own = lambda step, numbers=numbers, bits=bits: words(numbers[step], *bits)  # noqa: E731
        errors.append(running_of(inner, x, y, None, own))
        first += length
    return errors


register(MadUnit, running=_mad)
register(FusedDotUnit, running=_fused)
register(FmaChainUnit, running=_chain)
register(GroupedDotUnit, running=_grouped)
register(TwoStageDotUnit, running=_two_stage)
register(ExactDotUnit, running=_exact)
register(ChunkedDotUnit, running=_chunked)
register(BlockDotUnit, running=_blocks)
