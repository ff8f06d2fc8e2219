"""Causes of units: what is tried for a dot product, a sequence of steps, a tile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from softnum.formats.modes import P3109_VERSIONS, ROUNDING_MODES
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import family_of, register
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.two_stage import TwoStageDotUnit
from softnum.vectors.checks.causes import Candidate, counted, p3109_versions
from softnum.vectors.checks.lanes import lanes_swapped
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["Causes", "modes_of", "unit_candidates"]

#: Chunks of up to so many products are all tried, longer ones where they divide the length or are powers of two.
_SHORT_CHUNKS = 64
_MORE_BITS = 12


def unit_candidates(spec: UnitSpec) -> list[Candidate]:
    """What is tried for a unit, the likelier of two that predict the same first: nothing of posits and takums.

    Examples
    --------
    >>> from softnum.vectors import UnitSpec
    >>> from softnum.vectors.checks.unit_causes import unit_candidates
    >>> spec = UnitSpec.make("dot", "FusedDotUnit(4, 10, 'binary32', operand='binary16')")
    >>> [str(c) for c in unit_candidates(spec)][:2]
    ['alignment-bits (11 instead of 10)', 'alignment-bits (9 instead of 10)']
    """
    if not all(f.has_exceptions for f in (*spec.formats, spec.out_fmt)):
        return []
    return [Candidate(*row) for row in _rows(spec)]


def _rows(spec: UnitSpec) -> Iterator[tuple[str, str, dict[str, Any]]]:
    unit, causes = spec.unit, family_of(spec.unit).causes or Causes()
    if spec.op == "mac":
        yield "accumulator-not-cleared", "", {"not_cleared": True}
    if spec.with_c:
        yield "c-ignored", "", {"ignore_c": True}
    if spec.stochastic_bits is not None:
        yield "random-complemented", "", {"random_words": "complemented"}
        yield "random-reversed", "", {"random_words": "reversed"}
        for constant in ("zeros", "ones", "half"):
            yield "random-ignored", f"always {constant}" if constant != "half" else "a constant of 1/2", {
                "random_words": constant
            }  # fmt: skip
    yield from causes.own(spec)
    yield from modes_of(unit, causes.mode, infinite=causes.always_infinity)
    if causes.overflow_rules:
        yield from _overflow(unit, causes.always_infinity == "rule")
    yield "flush-to-zero", "operands", {"flush_operands": True}
    if spec.with_c:
        yield "flush-to-zero", "operands and C", {"flush_operands": True, "flush_c": True}
    yield from _widths(unit, causes)
    yield from lanes_swapped(spec)
    if spec.op != "gemm":
        for i in range(2):
            for what, text in (("one", "one"), (("is", 1 - i), "the other")):
                yield "ignored-operand", f"{'ab'[i]}, read as {text}", {"operands": ((i, what),)}
    if spec.op != "mac" and causes.ordered:
        yield "summation-order", "from the last product to the first", {"reverse": True}


class Causes:
    """What is tried for units of a family: its own causes, and where it differs in those that every unit has."""

    mode = "rounding"  #: the field that has the mode of the sums
    ordered = True  #: whether the order of the products changes the result
    always_infinity: str | bool = False  #: "rule" if the unit has that overflow rule, "kept" if a result tells the same
    overflow_rules = True  #: whether the unit takes overflow rules

    def own(self, spec: UnitSpec) -> Iterable[tuple[str, str, dict[str, Any]]]:
        """Causes of this family alone: (cause, detail, changes of the unit's fields or of its model)."""
        return ()

    def inner_widths(self, unit: Unit, other: Unit) -> Iterable[Any]:
        """(which sums, changes) for the unit whose sums are in another format, its result in the same."""
        return ()


class _Mad(Causes):
    def own(self, spec: UnitSpec):
        unit = spec.unit
        k = spec.shape[2]
        if not unit.stochastic:  # else the random words belong to other steps
            for n in sorted(_chunks(k), key=lambda n: abs(n - (unit.chunk or k))):
                if n != unit.chunk:
                    instead = f"{n} instead of {unit.chunk}" if unit.chunk else f"{n}, where there are none"
                    yield "chunk-length", instead, {"chunk": n}
            if unit.chunk is not None and unit.outer == unit.accumulator:
                yield "chunk-length", f"no chunks, instead of {unit.chunk}", {"chunk": None, "outer_accumulator": None}
        if unit.product is None:
            formats = dict.fromkeys((unit.accumulator, *unit.operand))
            for fmt in formats:
                if fmt.kind in ("float", "fixed") and fmt.has_zero:
                    yield "rounds-each-product", f"to {fmt}", {"product": fmt}
        else:
            yield "exact-product-instead", "", {"product": None, "product_rounding": None}
            yield from modes_of(unit, "product_rounding", unit.product_mode, " of products")
        if _plain(unit) or unit.flushes:
            yield from _flushes(unit)
        if _plain(unit):
            for bits in range(1, 6):
                text = f"the smaller term is cut off {counted(bits, 'bit')} below the larger one's last place"
                yield "missing-sticky", text, {"align": bits}
        if not unit.stochastic:
            for lanes in (1, 2, 4, 8, 16):
                if lanes != unit.lanes and lanes < k and spec.op != "mac":
                    yield "summation-order", f"{counted(lanes, 'lane')} instead of {unit.lanes}", {"lanes": lanes}
            for reduction in ("sequential", "tree", "pairwise"):
                if unit.lanes > 2 and reduction != unit.reduction:
                    yield "summation-order", f"lanes reduced {reduction}", {"reduction": reduction}
        if unit.accumulator.kind == "float" and unit.accumulator.lowest_binade == "subnormal":
            yield "missing-subnormals", "sums round to 0 or the smallest normal number", {"subnormals": False}

    def inner_widths(self, unit, other):
        if unit.chunk is not None:
            yield "within chunks", {"accumulator": other, "outer_accumulator": unit.outer}


class _Fused(Causes):
    mode, always_infinity = "output_rounding", "rule"

    def own(self, spec: UnitSpec):
        unit = spec.unit
        f = unit.fraction_bits
        for other in sorted(range(max(0, f - 24), min(100, f + _MORE_BITS) + 1), key=lambda n: (abs(n - f), -n)):
            if other != f:
                yield "alignment-bits", f"{other} instead of {f}", {"fraction_bits": other}
        if unit.k_order is None:
            for terms in (1, 2, 4, 8, 16, 32):
                if terms != unit.terms:
                    yield "chunk-length", f"{terms} products a step instead of {unit.terms}", {"terms": terms}
        where = {"fused": "after", "after": "fused"}[unit.c]
        yield (
            "summation-order",
            f"C is added {where}" if where == "after" else "C is a term of the first step",
            {"c": where},
        )
        if unit.truncate_fraction is not None:
            yield "accumulator-width", "sums are not cut before they are rounded", {"truncate_fraction": None}

    def inner_widths(self, unit, other):
        yield "between steps", {"accumulator": other, "output": unit.result}


class _TwoStage(Causes):
    mode = "output_rounding"

    def own(self, spec: UnitSpec):
        unit = spec.unit
        for name, what in (("fraction_bits", "products"), ("sum_fraction_bits", "their sum"), ("c_fraction_bits", "C")):
            f = getattr(unit, name)
            for other in sorted(range(max(0, f - 8), min(100, f + 8) + 1), key=lambda n: (abs(n - f), -n)):
                if other != f:
                    yield "alignment-bits", f"{other} instead of {f} of {what}", {name: other}
        other = {"down": "toward_zero", "toward_zero": "down"}[unit.alignment]
        yield "wrong-mode", f"sums are aligned {other.replace('_', ' ')}", {"alignment": other}
        for terms in (1, 2, 4, 8, 16, 32):
            if terms != unit.terms and terms % unit.interleave == 0:
                yield "chunk-length", f"{terms} products a step instead of {unit.terms}", {"terms": terms}
        if unit.interleave > 1:
            yield "summation-order", "all products of a step are aligned together", {"interleave": 1}


class _Chain(Causes):
    def own(self, spec: UnitSpec):
        unit = spec.unit
        yield from _flushes(unit)
        if unit.k_order is not None:
            yield "summation-order", "k in turn", {"k_order": None}


class _Grouped(Causes):
    def own(self, spec: UnitSpec):
        unit = spec.unit
        for terms in (1, 2, 4, 8, 16, 32, 64):
            if terms != unit.terms:
                yield "chunk-length", f"{terms} products a group instead of {unit.terms}", {"terms": terms}
        if unit.reduction == "bulk":
            guard = unit.fraction_bits - unit.partial_format.mantissa_bits
            for other in range(max(0, guard - 4), guard + 5):
                if other != guard:
                    yield "alignment-bits", f"{other} guard bits instead of {guard}", {"guard_bits": other}
        yield from _flushes(unit)
        if unit.partial_rounding is None:
            yield "wrong-mode", "partial sums are rounded to odd", {"partial_rounding": "to_odd"}
        else:
            yield from modes_of(unit, "partial_rounding", of=" of partial sums")
        if unit.partial_rounding is not None and unit.reduction != "rounded":
            yield "accumulator-width", "partial sums are not rounded", {"partial_rounding": None}
        if unit.reduction == "rounded":
            yield "accumulator-width", "products and sums of a group are not rounded", {"reduction": "exact"}
        elif unit.reduction == "exact" and unit.partial_rounding is not None:
            yield "rounds-each-product", f"to {unit.partial_format}", {"reduction": "rounded"}

    def inner_widths(self, unit, other):
        if unit.partial_rounding is not None:
            yield "of partial sums", {"partial": other}


class _Chunked(Causes):
    def own(self, spec: UnitSpec):
        unit, k = spec.unit, spec.shape[2]
        for n in sorted(_chunks(k), key=lambda n: abs(n - unit.chunk)):
            if n != unit.chunk:
                yield "chunk-length", f"{n} instead of {unit.chunk}", {"chunk": n}


class _Exact(Causes):
    ordered = False

    def own(self, spec: UnitSpec):
        yield "rounds-each-product", "every addition is rounded", {"as_steps": True}


def _chunks(k: int) -> list[int]:
    """The lengths of chunks that are tried for sums of k products."""
    return [n for n in range(2, k + 1) if n <= _SHORT_CHUNKS or k % n == 0 or n & (n - 1) == 0]


def _flushes(unit):
    """Other ways to flush than a unit's."""
    if unit.flush_inputs:
        yield "flush-to-zero", "operands are not flushed, though they should be", {"flush_inputs": False}
    for when in (None, "after", "before"):
        if when != unit.flush_results:
            tiny, none = f"results that are tiny {when} rounding", "results are not flushed, though they should be"
            yield "flush-to-zero", tiny if when else none, {"flush_results": when}


def _plain(unit: MadUnit) -> bool:
    """Whether a chain of fused multiply-adds computes the same."""
    floats = all(f.kind == "float" and f.has_zero for f in (unit.accumulator, *unit.operand))
    return (
        floats and unit.product is None and unit.lanes == 1 and unit.chunk is None and unit.compensated is None
        and not unit.stochastic
    )  # fmt: skip


def modes_of(
    unit: Unit, name: str, mode: str | None = None, of: str = "", infinite: str | bool = False
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(cause, detail, changes) of the other modes of a field of the unit, which has `mode`, or what the field says."""
    mode = mode or getattr(unit, name)
    for other in ROUNDING_MODES:
        if other == mode or (other.startswith("stochastic") and not unit.stochastic):
            continue
        cause = "wrong-mode"
        if other == "toward_zero":
            cause = "truncation"
        elif other.startswith("nearest") and mode.startswith("nearest"):
            cause = "wrong-tie"
        elif not other.startswith("stochastic") and mode.startswith("stochastic"):
            cause = "random-ignored"
        yield cause, other + of, {name: other}
        if infinite and cause in ("truncation", "wrong-mode") and _rule(unit) == "infinity":
            changes = {"overflow": "always_infinity"} if infinite == "rule" else {"keep_infinities": True}
            yield cause, f"{other}{of}, overflow to infinity", {name: other} | changes


def _rule(unit) -> str:
    if unit.overflow is not None:
        return unit.overflow
    return "saturate" if unit.accumulator.kind == "fixed" else "infinity"


def _overflow(unit, always_infinity: bool):
    rule = _rule(unit)
    if unit.accumulator.kind == "fixed":
        if rule == "wrap":
            yield "saturate-instead-of-wrap", "", {"overflow": "saturate"}
        else:
            yield "wrap-instead-of-saturate", "", {"overflow": "wrap"}
        return
    yield from p3109_versions(rule, *(f for f in unit.rounded_to if f is not None))
    if rule not in ("infinity", *P3109_VERSIONS):
        yield "overflow-to-infinity", "", {"overflow": "infinity"}
    if always_infinity and rule != "always_infinity":
        yield "overflow-to-infinity", "in every rounding mode", {"overflow": "always_infinity"}
    for other, text in (("saturate_finite", ""), ("saturate", "infinite operands too")):
        if rule != other:
            yield "overflow-to-max", text, {"overflow": other}


def _widths(unit, causes: Causes):
    fmt = unit.accumulator
    for more in (-1, 1, -2, 2):
        other = _wider(fmt, more)
        if other is None:
            continue
        text = f"{counted(abs(more), 'bit')} {'more' if more > 0 else 'fewer'} than {fmt}"
        for where, changes in causes.inner_widths(unit, other):
            yield "accumulator-width", f"{text} {where}", changes
        yield "accumulator-width", text, {"accumulator": other}


def _wider(fmt, more: int):
    """The format with so many more bits of fraction (of fixed point: integer bits too where it can have them)."""
    try:
        if fmt.kind == "fixed":
            return FixedFormat(fmt.integer_bits, fmt.fraction_bits + more, signed=fmt.signed)
        names = (
            "bias",
            "signed",
            "nan_codes",
            "infinities",
            "negative_zero",
            "has_zero",
            "lowest_binade",
            "saturating",
        )
        return FloatFormat(fmt.exponent_bits, fmt.mantissa_bits + more, **{name: getattr(fmt, name) for name in names})
    except ValueError:
        return None


register(MadUnit, causes=_Mad())
register(FusedDotUnit, causes=_Fused())
register(FmaChainUnit, causes=_Chain())
register(GroupedDotUnit, causes=_Grouped())
register(TwoStageDotUnit, causes=_TwoStage())
register(ExactDotUnit, causes=_Exact())
register(ChunkedDotUnit, causes=_Chunked())
