"""Steps of traces: what a step is, and which function makes those of a kind of unit.

A kind of unit joins in by registering what makes its steps, and the code of the result (`softnum.mac.family`)::

    def _steps(unit: MyUnit, a, b, c, words):  # codes of the operands, the code of C or None, words(step) or None
        steps = [exact_step("product", "a * b", value, where={"k": 0})]
        steps.append(rounding_step("sum", "acc + p", exact, unit.accumulator, environment))
        return steps, steps[-1].code

    register(MyUnit, steps=_steps)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.formats.modes import Flags
from softnum.mac.family import family_of
from softnum.reference.facts import format_of
from softnum.reference.rounding import INEXACT, Environment, cut_tapered, deliver, floor_log2
from softnum.reference.values import Value, decode

__all__ = ["Step", "cut_step", "decoded", "exact_step", "number", "number_text", "rounding_step", "steps_of"]

_LOWEST = -(1 << 40)  # below all binades

NO_FLAGS = Flags(0)


def number(x: Value) -> Fraction | str:
    """A value as data: a Fraction, or "-0", "inf", "-inf", "nan", or "invalid", the result of an invalid operation."""
    if x.kind == "finite":
        return "-0" if x.sign and not x.numerator else x.fraction
    return x.kind if x.kind != "inf" or not x.sign else "-inf"


def decoded(code: int, fmt: Any) -> Value:
    """What a code of any format stands for."""
    known = fmt.codec.for_core(np.array([code], fmt.storage_dtype), fmt)
    return decode(int(known[0]), fmt.codec.core_format(fmt))


@dataclass(frozen=True)
class Step:
    """One step of a dot product: something exact, and, if it is rounded, what became of it.

    Attributes
    ----------
    name, formula : str
        Which step this is, and what it computes, in the names of ``terms``.
    where : mapping of str to int
        Those of the indices k, chunk, lane, group ... that the step has.
    terms : tuple of (str, Fraction or str)
        What meets in the step; numbers as in `number`.
    exact : Fraction or str
        The exact value.
    kept, quantum, lost : Fraction or None
        ``exact`` cut off toward zero where the format's digits end; the weight of its last digit; and what was cut off,
        a fraction of that, 0 <= lost < 1. None where nothing is rounded or ``exact`` is not finite. Of posits and
        takums the quantum is the distance to the next value, and what was cut off is a fraction of the bit string's
        last bit; below the smallest value, of that.
    decision : str
        "exact", "down" or "up" (the magnitude stays at ``kept``, or is one quantum larger), "overflow", "wrap",
        "special" (an infinity or a NaN), or "" where nothing is rounded.
    random : int or None
        The random bits of a stochastic rounding.
    code, format : int, format, or None
        The result.
    flags : Flags
        What the step raised.
    """

    name: str
    formula: str
    exact: Fraction | str
    where: Mapping[str, int] = field(default_factory=dict)
    terms: tuple[tuple[str, Fraction | str], ...] = ()
    kept: Fraction | None = None
    quantum: Fraction | None = None
    lost: Fraction | None = None
    decision: str = ""
    random: int | None = None
    code: int | None = None
    format: Any = None
    flags: Flags = NO_FLAGS

    @property
    def value(self) -> Fraction | str | None:
        """The result as a number, or None where nothing is rounded."""
        return None if self.code is None else number(decoded(self.code, self.format))

    @property
    def guard_round_sticky(self) -> tuple[int, int, int] | None:
        """The first and second bit that are cut off, and whether any other of them is 1."""
        if self.lost is None:
            return None
        quarters, rest = divmod(4 * self.lost, 1)
        return int(quarters) >> 1, int(quarters) & 1, int(rest != 0)

    def to_dict(self) -> dict[str, Any]:
        """The step as a flat dictionary: the indices under their own names, exact numbers as they are."""
        names = ("name", "formula", "exact", "kept", "quantum", "lost", "decision", "random", "code", "value")
        lost = zip(("guard", "round", "sticky"), self.guard_round_sticky or (None, None, None), strict=True)
        return {
            **{name: getattr(self, name) for name in names[:2]}, **self.where, "terms": dict(self.terms),
            **{name: getattr(self, name) for name in names[2:]}, **dict(lost),
            "format": None if self.format is None else str(self.format), "flags": self.flags,
        }  # fmt: skip


def exact_step(name: str, formula: str, exact: Value, *, where: str | None = None, terms: Sequence[Any] = ()) -> Step:
    """A step that rounds nothing; terms: pairs of a name and a `Value`."""
    return Step(name, formula, number(exact), dict(where or {}), _numbers(terms))


def rounding_step(
    name: str,
    formula: str,
    exact: Value,
    fmt: Any,
    env: Environment,
    *,
    where: str | None = None,
    terms: Sequence[Any] = (),
) -> Step:
    """The rounding of an exact value to a format, under an environment of `softnum.reference.rounding`."""
    code, flags = deliver(exact, fmt, env)
    kept = quantum = lost = None
    decision = "special"
    if exact.kind == "finite":
        kept, quantum, lost = _cut(fmt, exact)
        result = decode(code, fmt)
        magnitude = abs(result.fraction) if result.kind == "finite" else None
        kept_sign = -1 if exact.sign else 1
        if magnitude == kept and (not kept or result.sign == exact.sign):
            decision = "down" if lost else "exact"
        elif magnitude == kept + quantum and lost and result.sign == exact.sign:
            decision = "up"
        else:
            decision = "wrap" if env.overflow == "wrap" else "overflow"
        kept *= kept_sign
    random = env.random_bits if env.rounding.startswith("stochastic") else None
    return Step(
        name, formula, number(exact), dict(where or {}), _numbers(terms), kept, quantum, lost, decision, random, code,
        fmt, flags,
    )  # fmt: skip


def cut_step(name: str, formula: str, x: Any, kept: Any, quantum: Any, where: Any) -> Step:
    """A number cut off toward zero at multiples of a quantum, which leaves kept."""
    lost = (abs(x.fraction) - abs(kept)) / quantum
    return Step(
        name, formula, number(x), where, (), kept, quantum, lost, "down" if lost else "exact",
        flags=Flags(INEXACT if lost else 0),
    )  # fmt: skip


def _numbers(terms) -> tuple:
    return tuple((name, number(x)) for name, x in terms)


@of_format
def _cut(fmt, x: Value) -> tuple[Fraction, Fraction, Fraction]:
    """A magnitude cut off on the format's grid, which goes on past the largest value; the quantum; what is lost."""
    magnitude = abs(x.fraction)
    exponent = floor_log2(x.numerator, x.denominator) if x.numerator else _LOWEST
    quantum = Fraction(2) ** int(fmt.last_place(exponent))
    if fmt.lowest_binade != "subnormal" and fmt.has_zero and magnitude < (smallest := fmt.smallest_normal):
        quantum = Fraction(smallest)  # nothing lies between 0 and the smallest normal
    count, rest = divmod(magnitude, quantum)
    return count * quantum, quantum, rest / quantum


@_cut.custom
def _cut_string(fmt, x: Value) -> tuple[Fraction, Fraction, Fraction]:
    """The same of a posit or takum, whose bit string is cut off: what is lost is of the string's last bit."""
    return cut_tapered(abs(x.fraction), format_of(fmt))


def steps_of(unit: Any, a: Any, b: Any, c: Any, words: Callable[[int], tuple] | None) -> tuple[list[Step], int]:
    """The steps of a dot product and the code of the result.

    a, b: codes of the operands (a value table's: binary64 numbers). c: the code of C, or None. words(step) gives the
    (product, sum) pair of random words; it is None where nothing is stochastic.
    """
    steps = family_of(unit).steps
    if steps is None:
        raise TypeError(f"trace: no steps are known of {type(unit).__name__}")
    return steps(unit, a, b, c, words)


def number_text(x: Fraction | str | None) -> str:
    """A number in decimal if that is short and exact, else an integer times a power of two."""
    if x is None or isinstance(x, str):
        return x or ""
    if abs(x.numerator) < 1 << 53 and x.denominator < 1 << 24:
        text = repr(float(x)).removesuffix(".0")
        if len(text) <= 12:
            return text
    shift = (x.numerator & -x.numerator).bit_length() - 1 if x.numerator else 0
    exponent = shift - (x.denominator.bit_length() - 1)
    return f"{x.numerator >> shift}*2^{exponent}" if x.denominator & (x.denominator - 1) == 0 else str(x)
