"""Traces: every step of one dot product under a unit, as data and as a table, for whoever steps through hardware.

A trace comes from `softnum.reference` alone, never from the C core, whose results it can therefore judge. A kind of
unit joins in by registering what makes its steps (`softnum.inspect.steps.step`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.checks import float_array, native
from softnum.arrays.container import Array
from softnum.arrays.environment import seed_and_stream
from softnum.formats.annotations import FormatLike, Key
from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.modes import Flags
from softnum.inspect.steps import (
    block_fused,  # noqa: F401  register the steps of their units
    chunked,  # noqa: F401  register the steps of their units
    custom,  # noqa: F401  register the steps of their units
    fused,  # noqa: F401  register the steps of their units
    grouped,  # noqa: F401  register the steps of their units
    mad,  # noqa: F401  register the steps of their units
    two_stage,  # noqa: F401  register the steps of their units
)
from softnum.inspect.steps.blocks import block_vectors
from softnum.inspect.steps.step import Step, decoded, exact_step, number, number_text, rounding_step, steps_of
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.products.engines import coded
from softnum.mac.products.operands import check_key, checked_operand
from softnum.reference import random_words_matmul
from softnum.reference.operations import encode
from softnum.runtime.columns import text_table
from softnum.runtime.plain import plain

__all__ = ["Step", "Trace", "decoded", "exact_step", "number", "number_text", "rounding_step", "steps_of", "trace"]


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
    @plain
    def value(self) -> Fraction | str:
        """The result as an exact number, or "-0", "inf", "-inf" or "nan"."""
        return number(decoded(self.code, self.unit.result))

    @property
    @plain
    def result(self) -> Any:
        """The result as `softnum.dot` returns it: a numpy scalar, or an Array if no float64 holds the format."""
        fmt, value = self.unit.result, self.value
        dtype = next((d for d in (np.float32, np.float64) if fits(fmt, d)), None)
        if dtype is None:
            return Array(np.asarray(self.code, fmt.storage_dtype), fmt)
        return dtype(value)  # a Fraction goes through float, which holds it

    @plain
    def to_dicts(self) -> list[dict[str, Any]]:
        """The steps as flat dictionaries (`Step.to_dict`)."""
        return [step.to_dict() for step in self.steps]

    @plain
    def __str__(self) -> str:
        indices = [
            name for name in ("block", "chunk", "lane", "group", "k") if any(name in s.where for s in self.steps)
        ]
        head = ["#", *indices, "step", "computes", "exact", "kept", "lost", "GRS", "rounds", "result", "code", "flags"]
        rows = [[str(i), *_row(step, indices)] for i, step in enumerate(self.steps)]
        end = f"result: {number_text(self.value)} = {_hex(self.code, self.unit.result)} in {self.unit.result}"
        return "\n".join([str(self.unit), text_table([head, *rows]), f"{end}; flags: {self.flags}"])


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


def _hex(code: int, fmt) -> str:
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


@plain
def trace(
    unit: Unit,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
) -> Trace:
    """The body of ``unit.trace``, which says what it takes and returns."""
    vectors = block_vectors(unit, a, b) if family_of(unit).of_blocks else []
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


def codes_of(x: Any, fmt: FormatLike) -> list[int]:
    return native(x.codes).tolist() if isinstance(x, Array) else _codes_of_values(fmt, x)


@of_format
def _codes_of_values(fmt, x) -> list[int]:
    return [encode(float(v), fmt)[0] for v in x]


@_codes_of_values.custom
def _found_codes(fmt, x) -> list[int]:
    return fmt.find(x)[0].tolist()


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
    check_key(unit, key, "trace")
    return lambda step, *bits: random_words_matmul(seed, stream, 0, 0, 0, step, *(bits or own), unit.random)
