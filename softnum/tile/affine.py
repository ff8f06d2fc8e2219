"""Sizes and indices: whole-number expressions, the ranges of index variables, and each variable by an output's place.

The valuations of a contraction are all whole values of its index variables for which every index lies within its
tensor (or the output) and every constraint ``0 <= expression < bound`` holds.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm

import numpy as np

from softnum.tile.syntax import Access, Binary, Name, Number, Source, Unary

__all__ = ["Form", "affine", "exact_value", "ranges_of", "size_value", "solve"]

_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_ROUNDS = 64  # of narrowing ranges, each of which may narrow all


@dataclass(frozen=True)
class Form:
    """constant + the sum of coefficients times variables, by name or number."""

    coefficients: dict
    constant: Fraction

    def __add__(self, other: Form) -> Form:
        return self.plus(other, 1)

    def plus(self, other: Form, factor) -> Form:
        """self + factor * other."""
        sums = dict(self.coefficients)
        for name, value in other.coefficients.items():
            sums[name] = sums.get(name, Fraction(0)) + factor * value
        return Form({n: v for n, v in sums.items() if v}, self.constant + factor * other.constant)

    def times(self, factor) -> Form:
        """factor * self."""
        return Form({}, Fraction(0)).plus(self, factor)

    def substituted(self, values: dict[object, Form]) -> Form:
        """Variables replaced by forms; those that values does not name stay."""
        result = Form({}, self.constant)
        for name, value in self.coefficients.items():
            result = result.plus(values.get(name, Form({name: Fraction(1)}, Fraction(0))), value)
        return result

    def on(self, axes: dict, ndim: int) -> tuple[np.ndarray | int, np.ndarray | None]:
        """(whole values, where they are whole or None for everywhere) over axes: variable -> (axis, its values)."""
        scale = lcm(self.constant.denominator, *(v.denominator for v in self.coefficients.values()))
        total = np.full((1,) * ndim, int(self.constant * scale), np.int64)
        for name, value in self.coefficients.items():
            axis, numbers = axes[name]
            total = total + int(value * scale) * numbers.reshape([-1 if a == axis else 1 for a in range(ndim)])
        if scale == 1:
            return total, None
        return total // scale, total % scale == 0


# -- numbers made of sizes ---------------------------------------------------------------------------------------------
def _folded(expression, leaf, quotient):
    """An expression of numbers; leaf(part): a number's own, quotient(division, left, right): a division's."""
    match expression:
        case Unary():
            value = _folded(expression.operand, leaf, quotient)
            return -value if expression.operator == "-" else value
        case Binary():
            left, right = (_folded(part, leaf, quotient) for part in (expression.left, expression.right))
            if expression.operator == "/":
                return quotient(expression, left, right)
            return _ARITHMETIC[expression.operator](left, right)
    return leaf(expression)


def exact_value(expression, sizes: dict[str, int]) -> Fraction:
    """A number made of literals and sizes, exactly; ZeroDivisionError where it divides by 0."""
    return _folded(
        expression, lambda part: part.value if isinstance(part, Number) else Fraction(sizes[part.name]),
        lambda _, left, right: left / right,
    )  # fmt: skip


def size_value(expression, sizes: dict[str, int], shapes: dict[str, tuple], source: Source) -> int:
    """A size: whole, its quotients rounded down."""

    def leaf(part):
        match part:
            case Number():
                return int(part.value)
            case Name():
                return sizes[part.name]
        tensor, axis = part.arguments
        shape = shapes[tensor.name]
        if int(axis.value) >= len(shape):
            message = f"{tensor.name} has {len(shape)} dimensions, and {int(axis.value)} is asked for (from 0)"
            raise source.error(part.at, message)
        return shape[int(axis.value)]

    def quotient(part, left, right):
        if right == 0:
            raise source.error(part.at, f"division by a size of 0 ({left} / 0)")
        return left // right

    return _folded(expression, leaf, quotient)


def affine(expression, variables, number) -> Form:
    """An index expression as a form of its variables; number(expression): the value of a part without variables."""
    match expression:
        case Name() if expression.name in variables:
            return Form({expression.name: Fraction(1)}, Fraction(0))
        case Unary():
            form = affine(expression.operand, variables, number)
            return form.times(-1) if expression.operator == "-" else form
        case Binary() if expression.operator in "+-":
            left, right = (affine(part, variables, number) for part in (expression.left, expression.right))
            return left.plus(right, 1 if expression.operator == "+" else -1)
        case Binary() if expression.operator == "*":
            left, right = (affine(part, variables, number) for part in (expression.left, expression.right))
            return right.times(left.constant) if not left.coefficients else left.times(right.constant)
        case Access():
            raise AssertionError(expression)
    return Form({}, Fraction(number(expression)))


# -- ranges and solutions ----------------------------------------------------------------------------------------------
def ranges_of(variables, limits: list[tuple[Form, int]]) -> dict[str, tuple[int, int] | None]:
    """The (lowest, highest) value of each variable under limits ``0 <= form < bound``; None where nothing bounds it.

    Each limit narrows each of its variables by the ranges of the others, until nothing changes. A range with lowest
    above highest has no value.
    """
    low, high = dict.fromkeys(variables), dict.fromkeys(variables)
    for _ in range(_ROUNDS):
        before = dict(low), dict(high)
        for form, bound in limits:
            for name, factor in form.coefficients.items():
                others = [(n, c) for n, c in form.coefficients.items() if n != name]
                # factor * name lies in [-rest_high, bound - 1 - rest_low]
                rest_low = _extreme(form.constant, others, low, high)
                rest_high = _extreme(form.constant, others, high, low)
                ends = [None if rest_high is None else -rest_high, None if rest_low is None else bound - 1 - rest_low]
                least, most = (None if e is None else e / factor for e in (ends if factor > 0 else ends[::-1]))
                if least is not None and (low[name] is None or ceil(least) > low[name]):
                    low[name] = ceil(least)
                if most is not None and (high[name] is None or floor(most) < high[name]):
                    high[name] = floor(most)
        empty = any(low[n] is not None and high[n] is not None and low[n] > high[n] for n in variables)
        if (low, high) == before or empty:
            break
    return {n: None if low[n] is None or high[n] is None else (low[n], high[n]) for n in variables}


def _extreme(constant, terms, least, most):
    """The least value of constant + terms by the ends of their variables, or None where one has none."""
    total = constant
    for name, factor in terms:
        end = least[name] if factor > 0 else most[name]
        if end is None:
            return None
        total += factor * end
    return total


def solve(variables, outputs: list[Form]) -> tuple[dict[str, Form], list[Form]]:
    """(variables solved for, conditions) of ``outputs[d] = place d``.

    Each output's index is solved for the first of its variables, in the order given, that is not solved for yet: a form
    of the places (numbers) and of the free variables (names). The conditions are forms that must be 0, of outputs whose
    variables are all solved for.
    """
    solved: dict[str, Form] = {}
    conditions = []
    for place, output in enumerate(outputs):
        rest = output.substituted(solved).plus(Form({place: Fraction(1)}, Fraction(0)), -1)  # which is to be 0
        pivot = next((v for v in variables if v in rest.coefficients), None)
        if pivot is None:
            conditions.append(rest)
            continue
        factor = rest.coefficients[pivot]
        value = rest.plus(Form({pivot: Fraction(1)}, Fraction(0)), -factor).times(-1 / factor)
        solved = {name: form.substituted({pivot: value}) for name, form in solved.items()} | {pivot: value}
    return solved, conditions
