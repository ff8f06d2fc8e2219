"""Traces: every step of one dot product under a unit, as data and as a table, for whoever steps through hardware.

A trace comes from `softnum.reference` alone, never from the C core, whose results it can therefore judge. A kind of
unit joins in by registering what makes its steps, and the code of the result::

    @steps_of.register
    def _(unit: MyUnit, a, b, c, words):  # codes of the operands, the code of C or None, words(step) or None
        steps = [exact_step("product", "a * b", value, where={"k": 0})]
        steps.append(rounding_step("sum", "acc + p", exact, unit.accumulator, environment))
        return steps, steps[-1].code
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from softnum.array import Array
from softnum.block_unit import BlockDotUnit
from softnum.checks import float_array, native
from softnum.custom import CustomFormat
from softnum.engines import coded
from softnum.environment import seed_and_stream
from softnum.exact import ExactDotUnit
from softnum.facts import fits
from softnum.formats import FixedFormat
from softnum.modes import Flags
from softnum.reference import random_words_matmul
from softnum.reference.exact import exact_terms
from softnum.reference.operations import encode
from softnum.reference.rounding import Environment, deliver, environment_of, floor_log2
from softnum.reference.units import mad_dot
from softnum.reference.values import Value, decode
from softnum.units import MadUnit, Unit

__all__ = ["Step", "Trace", "decoded", "exact_step", "number", "number_text", "rounding_step", "steps_of", "trace"]


NO_FLAGS = Flags(0)


def number(x: Value) -> Fraction | str:
    """A value as data: a Fraction, or "-0", "inf", "-inf", "nan", or "invalid", the result of an invalid operation."""
    if x.kind == "finite":
        return "-0" if x.sign and not x.numerator else x.fraction
    return x.kind if x.kind != "inf" or not x.sign else "-inf"


def decoded(code: int, fmt) -> Value:
    """What a code of any format stands for."""
    if not isinstance(fmt, CustomFormat):
        return decode(code, fmt)
    value = fmt.decode(np.array([code], fmt.storage_dtype), np.float64)
    return decode(int(value.view(np.uint64)[0]), "binary64")


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
        a fraction of that, 0 <= lost < 1. None where nothing is rounded or ``exact`` is not finite.
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


def exact_step(name: str, formula: str, exact: Value, *, where=None, terms=()) -> Step:
    """A step that rounds nothing; terms: pairs of a name and a `Value`."""
    return Step(name, formula, number(exact), dict(where or {}), _numbers(terms))


def rounding_step(name: str, formula: str, exact: Value, fmt, env: Environment, *, where=None, terms=()) -> Step:
    """The rounding of an exact value to a format, under an environment of `softnum.reference.rounding`."""
    code, flags = deliver(exact, fmt, env)
    kept = quantum = lost = None
    decision = "special"
    if exact.kind == "finite":
        kept, quantum, lost = _cut(exact, fmt)
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
        fmt, Flags(flags),
    )  # fmt: skip


def _numbers(terms) -> tuple:
    return tuple((name, number(x)) for name, x in terms)


def _cut(x: Value, fmt) -> tuple[Fraction, Fraction, Fraction]:
    """A magnitude cut off on the format's grid, which goes on past the largest value; the quantum; what is lost."""
    magnitude = abs(x.fraction)
    if isinstance(fmt, FixedFormat):
        quantum = Fraction(1, 1 << fmt.fraction_bits)
    else:
        exponent = floor_log2(x.numerator, x.denominator) if x.numerator else fmt.emin
        quantum = Fraction(2) ** (max(exponent, fmt.emin) - fmt.mantissa_bits)
        smallest = fmt.smallest_normal
        if fmt.lowest_binade != "subnormal" and fmt.has_zero and magnitude < smallest:
            quantum = Fraction(smallest)  # nothing lies between 0 and the smallest normal
    count, rest = divmod(magnitude, quantum)
    return count * quantum, quantum, rest / quantum


@singledispatch
def steps_of(
    unit, a: Sequence[int], b: Sequence[int], c: int | None, words: Callable[[int], tuple] | None
) -> tuple[list[Step], int]:
    """The steps of a dot product and the code of the result.

    a, b: codes of the operands (a value table's: binary64 numbers). c: the code of C, or None. words(step) gives the
    (product, sum) pair of random words; it is None where nothing is stochastic.
    """
    raise TypeError(f"trace: no steps are known of {type(unit).__name__}")


@steps_of.register
def _(unit: MadUnit, a, b, c, words):
    roundings = []
    code, _ = mad_dot(
        a, b, operand=tuple(coded(f) for f in unit.operand), accumulator=unit.accumulator, product=unit.product,
        rounding=unit.rounding, product_rounding=unit.product_rounding, overflow=unit.overflow,
        stochastic_bits=unit.stochastic_bits, lanes=unit.lanes, chunk=unit.chunk, reduction=unit.reduction,
        outer_accumulator=unit.outer_accumulator, compensated=unit.compensated, c=c, random_bits=_Words(words),
        observe=roundings.append,
    )  # fmt: skip
    steps = []
    for r in roundings:
        rest = {"where": r.where, "terms": r.terms}
        if r.format is None:
            steps.append(exact_step(r.name, r.formula, r.exact, **rest))
        else:
            steps.append(rounding_step(r.name, r.formula, r.exact, r.format, r.environment, **rest))
    return steps, code


@steps_of.register
def _(unit: ExactDotUnit, a, b, c, words):
    operands = tuple(coded(f) for f in unit.operand)
    terms, sums = exact_terms(a, b, operands, unit.accumulator, c, unit.rounding)
    steps = [exact_step("start", "c", terms[0])]
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        factors = (("a", decode(x, operands[0])), ("b", decode(y, operands[1])))
        product = ("a * b", terms[k + 1])
        steps.append(exact_step("exact product", "a * b", terms[k + 1], where={"k": k}, terms=factors))
        both = (("sum", sums[k]), product)
        steps.append(exact_step("exact sum", "sum + a * b", sums[k + 1], where={"k": k}, terms=both))
    if not len(a):
        return steps, 0 if c is None else c
    word = None if words is None else words(0)[1]
    env = environment_of(unit.accumulator, unit.rounding, unit.overflow, unit.stochastic_bits, word)
    steps.append(rounding_step("rounding", "sum", sums[-1], unit.accumulator, env))
    return steps, steps[-1].code


class _Words:
    """Random words by their step, as the reference takes them: a pair of None where there are none."""

    def __init__(self, words) -> None:
        self.words = words

    def __getitem__(self, step: int) -> tuple:
        return (None, None) if self.words is None else self.words(step)


@dataclass(frozen=True)
class Trace:
    """Every step of one dot product; made by ``unit.trace``. Printing it gives a table."""

    unit: Any
    steps: tuple[Step, ...]
    code: int

    @property
    def flags(self) -> Flags:
        """What all steps raised together."""
        flags = Flags(0)
        for step in self.steps:
            flags |= step.flags
        return flags

    @property
    def value(self) -> Fraction | str:
        """The result as an exact number, or "-0", "inf", "-inf" or "nan"."""
        return number(decoded(self.code, self.unit.result))

    @property
    def result(self):
        """The result as `softnum.dot` returns it: a numpy scalar, or an Array if no float64 holds the format."""
        fmt, value = self.unit.result, self.value
        dtype = next((d for d in (np.float32, np.float64) if fits(fmt, d)), None)
        if dtype is None:
            return Array(np.asarray(self.code, fmt.storage_dtype), fmt)
        return dtype(value)  # a Fraction goes through float, which holds it

    def to_dicts(self) -> list[dict[str, Any]]:
        """The steps as flat dictionaries (`Step.to_dict`)."""
        return [step.to_dict() for step in self.steps]

    def __str__(self) -> str:
        indices = [
            name for name in ("block", "chunk", "lane", "group", "k") if any(name in s.where for s in self.steps)
        ]
        head = ["#", *indices, "step", "computes", "exact", "kept", "lost", "GRS", "rounds", "result", "code", "flags"]
        rows = [[str(i), *_row(step, indices)] for i, step in enumerate(self.steps)]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        ]
        end = f"result: {number_text(self.value)} = {_hex(self.code, self.unit.result)} in {self.unit.result}"
        return "\n".join([str(self.unit), *lines, f"{end}; flags: {self.flags}"])


def _row(step: Step, indices: list[str]) -> list[str]:
    grs = step.guard_round_sticky
    return [
        *(str(step.where.get(name, "")) for name in indices),
        step.name,
        step.formula,
        number_text(step.exact),
        number_text(step.kept),
        number_text(step.lost),
        "" if grs is None else "".join(map(str, grs)),
        step.decision if step.random is None else f"{step.decision} (R = {step.random:#x})",
        number_text(step.value),
        "" if step.code is None else _hex(step.code, step.format),
        str(step.flags) if step.flags else "",
    ]


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


def _hex(code: int, fmt) -> str:
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def trace(unit: Unit, a, b, c=None, *, key=None, random_bits=None) -> Trace:
    """The body of ``unit.trace``, which says what it takes and returns."""
    from softnum.block_steps import block_vectors
    from softnum.operands import checked_operand

    if unit.on_codes and isinstance(unit, MadUnit):
        raise TypeError(
            f"trace: no trace of a MadUnit that computes in custom formats is known ({unit}); its steps one by one are "
            "CustomFormat.apply('multiply', ...) and apply('add', ...), or apply('fma', ...) without product="
        )
    if isinstance(unit, BlockDotUnit):
        vectors = block_vectors(unit, a, b)
    else:
        vectors = []
    for x, fmt, what in () if vectors else ((a, unit.operand[0], "a"), (b, unit.operand[1], "b")):
        x = x if isinstance(x, Array) else float_array(x, "trace")
        if x.ndim != 1:
            raise ValueError(f"trace takes two vectors, got {what} of shape {x.shape}; give one row and one column")
        x = checked_operand(x, fmt, what, "trace", on_codes=unit.on_codes)
        vectors.append(codes_of(x, coded(fmt, unit)))
    if len(vectors[0]) != len(vectors[1]):
        raise ValueError(f"trace: a has {len(vectors[0])} elements, b has {len(vectors[1])}")
    if c is not None:
        c = c if isinstance(c, Array) else float_array(c, "trace")
        if c.size != 1:
            raise ValueError(f"trace: c is one number, got an array of shape {c.shape}")
        c = checked_operand(c.reshape(1), unit.c_format, "c", "trace", on_codes=unit.on_codes)
        (c,) = codes_of(c, unit.c_format)
    k = len(vectors[0])
    words = _words(unit, k, c is not None, key, random_bits)
    steps, code = steps_of(unit, *vectors, c, words)
    for i, step in enumerate(steps):
        if step.flags & Flags.INVALID and step.format is not None and not step.format.has_nan:
            raise ValueError(
                f"trace: step {i} ({step.name}, {dict(step.where)}) is {step.exact}, "
                f"and {step.format} has no code for it"
            )
    return Trace(unit, tuple(steps), code)


def codes_of(x, fmt) -> list[int]:
    if isinstance(x, Array):
        return native(x.codes).tolist()
    if isinstance(fmt, CustomFormat):
        return fmt.find(x)[0].tolist()
    return [encode(float(v), fmt)[0] for v in x]


def _words(unit, k: int, with_c: bool, key, random_bits) -> Callable[[int], tuple] | None:
    if not unit.stochastic:
        return None
    if random_bits is not None:
        steps = unit.steps_with_c(k) if with_c else unit.steps(k)
        words = np.asarray(random_bits)
        if words.dtype != np.uint32 or words.shape != (steps, 2):
            raise ValueError(
                f"trace: random_bits must be uint32 of shape {(steps, 2)}, got {words.dtype} of shape {words.shape}"
            )
        return lambda step, *_: tuple(map(int, words[step]))
    if key is None:
        raise ValueError("trace: the unit rounds stochastically; give key=seed, key=(seed, stream) or random_bits=")
    seed, stream = seed_and_stream(key)
    own = unit.stochastic_bits, unit.two_roundings
    return lambda step, *bits: random_words_matmul(seed, stream, 0, 0, 0, step, *(bits or own))


import softnum.block_steps  # noqa: E402  registers the steps of its unit
import softnum.custom_trace  # noqa: E402  registers the steps of its unit
import softnum.fused_steps  # noqa: E402, F401  registers the steps of its units
