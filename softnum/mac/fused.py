"""Fused dot-product units: tensor cores, chains of fused multiply-adds. Hardware's parameters: softnum.mac.machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

from softnum.arrays.environment import environment
from softnum.formats.annotations import FormatLike
from softnum.formats.base import AnyFormat
from softnum.formats.checks import check_float
from softnum.formats.facts import facts
from softnum.formats.modes import overflow_name, overflow_of_formats, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import FloatFormat
from softnum.mac import _fused, _gemm
from softnum.mac.family import register
from softnum.mac.mad import Unit, shown_flushes

__all__ = [
    "FmaChainUnit", "FusedDotUnit", "checked_float", "checked_integer", "deterministic", "float_pair", "put_step",
    "shown_cut",
]  # fmt: skip

_MOST_EXPONENT = 1 << 16
_MOST_PERIOD = 1 << 16


def checked_integer(unit: str, what: str, value: Any, low: int, high: int) -> int:
    """An integer within limits; ValueError of anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{unit}: {what} must be an integer in {low}..{high}, got {value!r}")
    return int(value)


def checked_float(unit: str, what: str, fmt: FormatLike) -> FloatFormat:
    """A float format that has a zero; ValueError of any other."""
    fmt = format(fmt)
    check_float(fmt, f"{unit}: {what} must be a float format, got {{}}")
    if not fmt.has_zero:
        raise ValueError(f"{unit}: {what}={fmt} has no zero, which sums are filled up with and start from")
    return fmt


def float_pair(unit: str, operand: FormatLike) -> tuple[Any, ...]:
    """The formats of two factors, of one given or two."""
    if operand is None:
        raise ValueError(f"{unit}: state operand=, the format (or pair of formats) of the factors")
    pair = operand if isinstance(operand, tuple) else (operand, operand)
    if len(pair) != 2:
        raise ValueError(f"{unit}: operand is one format or a pair, got {len(pair)}")
    return tuple(checked_float(unit, "operand", f) for f in pair)


def _order(unit: str, k_order, terms: int) -> tuple | None:
    if k_order is None:
        return None
    order = tuple(int(k) for k in k_order)
    if not order or len(order) > _MOST_PERIOD or len(order) % terms or sorted(order) != list(range(len(order))):
        raise ValueError(
            f"{unit}: k_order must hold each of 0..P-1 once, P a multiple of terms = {terms} up to {_MOST_PERIOD}, "
            f"got {k_order!r}"
        )
    return order


def deterministic(unit: str, what: str, rounding: str) -> str:
    """The name of a mode that is not stochastic."""
    name = rounding_name(rounding)
    if name.startswith("stochastic"):
        raise ValueError(f"{unit}: {what}={rounding!r} is not defined for this unit; use a deterministic mode")
    return name


def put_step(unit: Any, *others: str) -> None:
    """Check what a fused step is made of, and make its numbers plain integers and its formats formats; others: formats
    beside the accumulator that it rounds to."""
    name = type(unit).__name__
    put = lambda field, value: object.__setattr__(unit, field, value)  # noqa: E731
    put("terms", checked_integer(name, "terms", unit.terms, 1, _fused.MOST_TERMS))
    put("fraction_bits", checked_integer(name, "fraction_bits", unit.fraction_bits, 0, _fused.MOST_FRACTION_BITS))
    put("accumulator", checked_float(name, "accumulator", unit.accumulator))
    if unit.min_exponent is not None:
        put("min_exponent", checked_integer(name, "min_exponent", unit.min_exponent, -_MOST_EXPONENT, _MOST_EXPONENT))
    if unit.zero_exponent is not None:
        most = min(0, unit.accumulator.emin)
        put("zero_exponent", checked_integer(name, "zero_exponent", unit.zero_exponent, -_MOST_EXPONENT, most))
    if unit.truncate_fraction is not None:
        put("truncate_fraction", checked_integer(name, "truncate_fraction", unit.truncate_fraction, 0, 127))
    put("output_rounding", deterministic(name, "output_rounding", unit.output_rounding))
    if unit.overflow not in (None, "always_infinity"):
        overflow_of_formats(unit.overflow, unit.accumulator, *others)


def shown_cut(unit: Any) -> str:
    """How a step aligns its terms, in words: below which exponent they are cut."""
    return (
        f"cut to {unit.fraction_bits} fraction bits below the largest exponent"
        + ("" if unit.min_exponent is None else f" (at least {unit.min_exponent})")
        + ("" if unit.zero_exponent is None else f" (a zero's being {unit.zero_exponent})")
        + ", then added"
        + ("" if unit.truncate_fraction is None else f", sums cut to {unit.truncate_fraction} fraction bits")
    )


def _shown_order(order: tuple) -> str:
    if len(order) <= 8:
        return ", ".join(map(str, order))
    return ", ".join(map(str, order[:6])) + f", ..., {order[-1]}"


@dataclass(frozen=True, repr=False)
class FusedDotUnit(Unit):
    """A fused dot-product-add, as in tensor cores: several products and C are aligned, truncated, added and rounded
    once.

    One step takes `terms` products and the running sum C. Products are exact and not normalised; M is the largest
    exponent among the terms, including C but excluding zeros (see ``zero_exponent``); each term is truncated toward
    zero at `fraction_bits` bits below M; the truncated terms are added exactly and the sum is rounded once. Longer sums
    chain steps: the result of a step is the C of the next. The last step is padded with zeros.

    Parameters
    ----------
    terms : int
        Products per step.
    fraction_bits : int
        F: bits kept below M, 0 to 100.
    accumulator : format or str
        The format of C and of the running sum.
    operand : format or str, or a pair of them
        The format of a and b, floats.
    min_exponent : int, optional
        A lower bound of M. None: no bound.
    output : format or str, optional
        The format that the last step rounds to; None means `accumulator`.
    output_rounding : str
        The mode of each step's rounding.
    truncate_fraction : int, optional
        Truncate a sum to this many fraction bits, relative to its own exponent, before it is rounded ("e8m13": 13).
    k_order : sequence of int, optional
        A permutation of 0..P-1, P a multiple of `terms`: the steps take every P consecutive k in this order; the last P
        are padded with zeros.
    c : {"fused", "after"}
        "fused": C is a term of the first step. "after": the steps start from +0, and C, of the output's format, is
        added to their result with one rounding to nearest even.
    overflow : str, optional
        As of `MadUnit`, by default "infinity", with which rounding toward zero gives the largest value; or
        "always_infinity": sums that are too large become infinite in every mode. If accumulator or output does not
        support the rule, it keeps its default.
    zero_exponent : int, optional
        The exponent attributed to an operand or a C of zero, so that a product with a zero factor has this plus the
        other factor's exponent: at most 0, and at most the accumulator's lowest exponent. None: zero terms do not
        affect M.

    Notes
    -----
    A sum that is zero, or rounds to zero, is +0. A NaN operand, inf * 0 and inf - inf give NaN, any other infinity is
    the result. K = 0 gives C, converted if the output has another format. Sources: Khattak and Mikaitis, arXiv
    2512.07004; MMA-Sim, arXiv 2511.10909.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> v100 = sn.FusedDotUnit(4, 23, "binary32", operand="binary16")
    >>> print(v100)
    acc = toward_zero(acc + a0*b0 + ... + a3*b3): binary16 x binary16 -> binary32, exact products and acc cut to 23
    fraction bits below the largest exponent, then added
    >>> a = np.array([1, 2.0**-12, 2.0**-12, 2.0**-12], np.float32)
    >>> b = np.array([1, 2.0**-12, 2.0**-12, 2.0**-12], np.float32)
    >>> sn.dot(a, b, v100)  # 2**-24 lies below the bits kept, three times
    np.float32(1.0)
    """

    terms: int
    fraction_bits: int
    accumulator: object
    operand: object = None
    min_exponent: int | None = None
    output: object = None
    output_rounding: str = "toward_zero"
    truncate_fraction: int | None = None
    k_order: tuple[Any, ...] | None = None
    c: str = "fused"
    overflow: str | None = None
    zero_exponent: int | None = None

    def __post_init__(self) -> None:
        name = "FusedDotUnit"
        put = lambda field, value: object.__setattr__(self, field, value)  # noqa: E731
        put("operand", float_pair(name, self.operand))
        put("output", None if self.output is None else checked_float(name, "output", self.output))
        put_step(self, *([] if self.output is None else [self.output]))
        put("k_order", _order(name, self.k_order, self.terms))
        if self.c not in ("fused", "after"):
            raise ValueError(f"FusedDotUnit: c must be 'fused' or 'after', got {self.c!r}")

    @property
    def result(self) -> Any:
        """The format of the result."""
        return self.output or self.accumulator

    @property
    def c_format(self) -> Any:
        """The format of C: the accumulator's, or the output's where it is added after."""
        return self.result if self.c == "after" else self.accumulator

    @property
    def period(self) -> int:
        """Number of products after which the order of summation repeats."""
        return len(self.k_order) if self.k_order else self.terms

    @property
    def rounded_to(self) -> tuple[Any, ...]:
        """The formats of the steps' results and of the last one."""
        return self.accumulator, self.result

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The kinds of roundings, in the order of csrc/products/fused/fused.h."""
        if self.c == "after":
            return "sum", None, "C added"
        return "sum", None if self.result == self.accumulator else "output", None

    @cached_property
    def environments(self) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """(accumulator, output, C added after): the core's numbers of each rounding."""
        rules = [None if self.overflow == "always_infinity" else self.overflow_of(f) for f in self.rounded_to]
        return (
            environment(self.accumulator, self.output_rounding, rules[0], 32),
            environment(self.result, self.output_rounding, rules[1], 32),
            environment(self.result, "nearest_even", rules[1], 32),
        )

    def overflow_of(self, fmt: AnyFormat) -> str | None:
        """The overflow rule of one of the unit's formats: None, its default, where only the other one knows it."""
        if self.overflow == "always_infinity":
            return self.overflow
        return overflow_of_formats(self.overflow, fmt, *self.rounded_to)

    def steps(self, k: int) -> int:
        """Number of steps of a sum of length k."""
        return -(-k // self.period) * (self.period // self.terms)

    def __str__(self) -> str:
        a, b = self.operand
        products = "a0*b0" if self.terms == 1 else "a0*b0 + a1*b1"
        if self.terms > 2:
            products = f"a0*b0 + ... + a{self.terms - 1}*b{self.terms - 1}"
        text = f"acc = {self.output_rounding}(acc + {products}): {a} x {b} -> {self.accumulator}"
        if self.output is not None and self.output != self.accumulator:
            text += f" -> {self.output}"
        text += f", exact products and acc {shown_cut(self)}"
        if self.k_order is not None:
            text += f", k in the order {_shown_order(self.k_order)} of each {self.period}"
        if self.c == "after":
            text += ", C added after (nearest_even)"
        return text + (f", overflow {self.overflow}" if self.overflow else "")


@dataclass(frozen=True, repr=False)
class FmaChainUnit(Unit):
    """A chain of fused multiply-adds, ``acc = R(acc + a * b)``, in a stated order of k, with the flushing modes of
    CPUs.

    Parameters
    ----------
    accumulator : format or str
        The format of the running sum, of C and of the result.
    operand : format or str, or a pair of them
        The format of a and b, floats.
    rounding : str
        The mode of each step.
    overflow : str, optional
        As of `MadUnit`.
    k_order : sequence of int, optional
        A permutation of 0..P-1: every P consecutive products are summed in this order; the last P are padded with +0.
    flush_inputs : bool
        Read subnormal operands and sums as zeros of the same sign.
    flush_results : {None, "before", "after", "subnormal"}
        Replace a step's result by a zero of the same sign if it is tiny before, or after, rounding with unbounded
        exponent, or subnormal after rounding.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.FmaChainUnit("binary32", operand="bfloat16", k_order=(1, 0))
    >>> print(unit)
    acc = nearest_even(acc + a*b): bfloat16 x bfloat16 -> binary32, k in the order 1, 0 of each 2
    >>> a = np.array([1, 2.0**60], np.float32)
    >>> sn.dot(a, np.array([1, 2.0**60], np.float32), unit, -(2.0**120))  # the second product goes first
    np.float32(1.0)
    """

    accumulator: object
    operand: object = None
    rounding: str = "nearest_even"
    overflow: str | None = None
    k_order: tuple[Any, ...] | None = None
    flush_inputs: bool = False
    flush_results: str | None = None

    def __post_init__(self) -> None:
        name = "FmaChainUnit"
        put = lambda field, value: object.__setattr__(self, field, value)  # noqa: E731
        put("operand", float_pair(name, self.operand))
        put("accumulator", checked_float(name, "accumulator", self.accumulator))
        put("rounding", deterministic(name, "rounding", self.rounding))
        put("k_order", _order(name, self.k_order, 1))
        put("flush_inputs", bool(self.flush_inputs))
        if self.overflow is not None:
            put("overflow", overflow_name(self.overflow, self.accumulator))
        self.environment  # noqa: B018  checks flush_results

    @property
    def period(self) -> int:
        """Number of products after which the order of summation repeats."""
        return len(self.k_order) if self.k_order else 1

    @cached_property
    def environment(self) -> tuple[Any, ...]:
        """The core's numbers of each rounding."""
        return environment(
            self.accumulator, self.rounding, self.overflow, 32,
            flush_inputs=self.flush_inputs, flush_results=self.flush_results,
        )  # fmt: skip

    def steps(self, k: int) -> int:
        """Number of fused multiply-adds of a sum of length k."""
        return -(-k // self.period) * self.period

    def __str__(self) -> str:
        a, b = self.operand
        text = f"acc = {self.rounding}(acc + a*b): {a} x {b} -> {self.accumulator}"
        if self.k_order is not None:
            text += f", k in the order {_shown_order(self.k_order)} of each {self.period}"
        text += shown_flushes(self)
        return text + (f", overflow {self.overflow}" if self.overflow else "")


def _adder(unit, fmt):
    return replace(unit, operand=(format("e2m1fn"), fmt))


register(
    FusedDotUnit, kind="fused", formats=("accumulator", "output"), adder=_adder, adds_operands=True,
    definition=_fused.DefinitionFused, fast=_fused.fast,
)  # fmt: skip
register(
    FmaChainUnit, adder=_adder, adds_operands=True, definition=_fused.DefinitionChain,
    fast=lambda unit: _gemm.fast_chain(unit, tuple(map(facts, unit.operand))),
    counting=lambda unit: _gemm.fast_chain(unit, tuple(map(facts, unit.operand)), True),
)  # fmt: skip
