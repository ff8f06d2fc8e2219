"""The steps of a CustomMadUnit for traces: the user's function as it is in Python, and the reference's additions."""

from __future__ import annotations

import numpy as np

from softnum.arrays.conversion import encode
from softnum.formats.dispatch import of_format
from softnum.inspect.steps.step import Step, decoded, exact_step, number, rounding_step
from softnum.mac.custom import CustomMadUnit
from softnum.mac.family import register
from softnum.mac.products.custom.steps import DefinitionCustom, numbers_of
from softnum.mac.products.engines import coded
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import environment_of
from softnum.reference.values import Value, decode

__all__ = ["TracedCustom"]


@of_format
def _environment(fmt, unit: CustomMadUnit):
    """How the unit's additions round to the accumulator's format; None where the format does so itself."""
    return environment_of(fmt, unit.rounding, unit.overflow)


@_environment.custom
def _no_environment(fmt, unit: CustomMadUnit) -> None:
    return None


class TracedCustom(DefinitionCustom):
    """The definition, which notes its steps: ``steps``, as `softnum.inspect.trace` has them."""

    def __init__(self, unit: CustomMadUnit) -> None:
        super().__init__(unit, unit.operand)
        self.steps: list[Step] = []
        self.where: dict[str, int] = {}
        self.environment = _environment(unit.accumulator, unit)

    def step(self, acc, a, b, word, k, where=""):
        """The accumulator after one product, noted."""
        unit = self.unit
        chunk, at = divmod(k, unit.chunk) if unit.chunk else (0, k)
        self.where = {"k": k} | ({"chunk": chunk} if unit.chunk else {})
        if unit.lanes > 1:
            self.where["lane"] = at % unit.lanes
        self.terms = [("a", self._value(a, unit.operand[0])), ("b", self._value(b, unit.operand[1]))]
        if unit.adds:
            self.terms.insert(0, ("acc", self._value(acc, unit.accumulator)))
        self.word = word
        result = super().step(acc, a, b, word, k, where)
        self.where.pop("k"), self.where.pop("lane", None)
        return result

    def _checked(self, result, told):
        result = super()._checked(result, told)
        unit, formula = self.unit, f"{self.unit.name}({', '.join(self.unit.parameters)})"
        if unit.adds or unit.carrier == "codes":
            self._note("step" if unit.adds else "product", formula, result, self.terms, self.word)
        else:
            self.steps.append(
                exact_step(
                    "product", formula, self._value(result, unit.accumulator), where=self.where, terms=self.terms
                )
            )
        return result

    def _note(self, name: str, formula: str, result, terms, word=None) -> None:
        """A step of the user's own: what it makes, and nothing of how it rounds."""
        fmt = self.unit.accumulator
        code = int(result) if self.unit.carrier == "codes" else int(encode(np.array(result), fmt))
        told = tuple((name, number(x)) for name, x in terms)
        self.steps.append(
            Step(name, formula, number(decoded(code, fmt)), dict(self.where), told, random=word, code=code, format=fmt)
        )

    def _add(self, x, y, where, name, left, right):
        fmt, formula = self.unit.accumulator, f"{left} + {right}"
        values = [self._value(n, fmt) for n in (x, y)]
        terms = list(zip((left, right), values, strict=True))
        if self.environment is None:
            total = super()._add(x, y, where, name, left, right)
            self._note(name, formula, total, terms)
            return total
        exact = exact_sum(*values, self.environment)
        step = rounding_step(name, formula, exact, fmt, self.environment, where=self.where, terms=terms)
        self.steps.append(step)
        return self._number(numbers_of(np.array(step.code), fmt, fmt, self.unit.carrier)[()])

    def _value(self, x, fmt) -> Value:
        """What a number of the carrier stands for; of codes, in a format."""
        if self.unit.carrier == "codes":
            return decoded(int(x), fmt)
        x = np.asarray(x, self.unit.carrier)
        return decode(int(x.view(f"u{x.itemsize}")), "binary32" if x.itemsize == 4 else "binary64")


def _steps(unit: CustomMadUnit, a, b, c, words):
    traced, carrier = TracedCustom(unit), unit.carrier
    x, y = (
        numbers_of(np.array(codes, np.uint64), coded(fmt, unit), fmt, carrier)
        for codes, fmt in zip((a, b), unit.operand, strict=True)
    )
    start = None if c is None else numbers_of(np.array(c, np.uint64), unit.accumulator, unit.accumulator, carrier)[()]
    word = None if words is None else lambda k: words(k)[1]
    total = traced.dot(x, y, None if start is None else traced._number(start), word)
    return traced.steps, total if carrier == "codes" else int(encode(np.array(total), unit.accumulator))


register(CustomMadUnit, steps=_steps)
