"""Whether vectors meet conditions on their results: ties, overflow, cancellation (`softnum.vectors.plans.space`)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from softnum.formats.modes import Flags
from softnum.formats.scalar import FloatFormat
from softnum.vectors.plans.fpu import FUSED
from softnum.vectors.plans.operations import COMPARISONS, computed
from softnum.vectors.plans.spec import Block, VectorSpec

__all__ = ["SUMS", "check_conditions", "meets"]

#: operations of which there is cancellation
SUMS = ("add", "subtract", "fma", *FUSED)
_BEYOND = np.uint8(Flags.OVERFLOW | Flags.INVALID | Flags.DIVIDE_BY_ZERO)


def check_conditions(spec: VectorSpec) -> None:
    """ValueError where a condition says nothing of the operation or the formats."""
    for name in spec.space.only:
        kind = name.partition(":")[0]
        if spec.op in COMPARISONS or not spec.out_fmt.has_exceptions or spec.op in ("classify", "total_order"):
            raise ValueError(f"only {name}: results of {spec.op} in {spec.out_fmt} are not rounded")
        if any(f.leads for f in (*spec.formats, spec.out_fmt)):
            raise ValueError(f"only {name}: codes of two words are not looked at")
        if kind == "cancellation" and (spec.op not in SUMS or any(not f.exponent_bits for f in spec.formats)):
            raise ValueError(f"only {name} is of sums of floats: {', '.join(SUMS)}, not of {spec.op}")
        if kind in ("overflow", "underflow") and spec.op == "to_integer":
            raise ValueError(f"only {name}: to_integer raises invalid where there is no integer, not {kind}")
        if kind == "subnormal-result" and not spec.out_fmt.exponent_bits:
            raise ValueError(f"only {name}: {spec.out_fmt} has no subnormals")
        if kind == "ties" and spec.op == "round_to_integral" and not spec.out_fmt.exponent_bits:
            raise ValueError(f"only {name}: {spec.out_fmt} is no float format")


def meets(spec: VectorSpec, block: Block) -> np.ndarray:
    """Which vectors of a block meet every condition of the spec's space.

    >>> import numpy as np
    >>> from softnum.vectors import Space, VectorSpec
    >>> spec = VectorSpec.make("multiply", "e5m2", space=Space.make(only="ties"))
    >>> a = np.array([0x3D, 0x3D], np.uint8)  # 1.25 * 1.5 = 1.875 is a tie, 1.25 * 1.25 is none
    >>> meets(spec, spec.evaluate((a, np.array([0x3E, 0x3D], np.uint8)))).tolist()
    [True, False]
    """
    out = np.ones(len(block), bool)
    for name in spec.space.only:
        kind = name.partition(":")[0]
        if kind in ("overflow", "underflow"):
            out &= block.flags & np.uint8(Flags[kind.upper()]) != 0
        elif kind == "subnormal-result":
            out &= spec.out_fmt.is_subnormal(block.result)
        elif kind in ("ties", "exact"):
            modes = ("nearest_zero", "nearest_away") if kind == "ties" else ("toward_zero", "away_from_zero")
            (first, flags), (second, more) = (_in_mode(spec, mode, block.operands) for mode in modes)
            if kind == "ties":
                out &= (first != second) & ((flags | more) & _BEYOND == 0)
            else:
                finite = ~spec.out_fmt.is_infinite(first) & ~spec.out_fmt.is_nan(first)
                for codes, fmt in zip(block.operands, spec.formats, strict=True):
                    finite &= ~fmt.is_infinite(codes)
                out &= (first == second) & ((flags | more) & _BEYOND == 0) & finite
    if spec.space.places is not None:
        out &= _lost(spec, block.operands) >= spec.space.places
    return out


def _in_mode(spec: VectorSpec, mode: str, operands) -> tuple[np.ndarray, np.ndarray]:
    other = replace(spec, rounding=mode, stochastic_bits=None, exact=True, flush_results=None)
    block = other.evaluate(operands)
    return block.result, block.flags


@lru_cache(maxsize=1)
def _wide() -> FloatFormat:
    """Every product and sum of numbers of up to 11 exponent bits is normal there."""
    return FloatFormat(15, 11)


def _lost(spec: VectorSpec, operands) -> np.ndarray:
    """By how many places the exact sum's exponent lies below its larger term's; many of 0, none of what is not finite.

    Exponents are those of results rounded toward zero, which keeps them.
    """
    wide, options = _wide(), {"rounding": "toward_zero", "invalid": 0, "flush_inputs": spec.flush_inputs}
    # the precision of no term matters
    total, _ = computed(spec.op, operands, spec.formats, wide, options)
    if len(operands) == 3:
        product, _ = computed("multiply", operands[:2], spec.formats[:2], wide, options)
        addend, _ = computed("convert", operands[2:], spec.formats[2:], wide, options)
        terms = (product, addend)
    else:
        terms = [computed("convert", (x,), (f,), wide, options)[0] for x, f in zip(operands, spec.formats, strict=True)]
    largest = np.maximum(
        *(np.where(wide.is_zero(t), -(1 << 20), wide.exponent_fields(t).astype(np.int64)) for t in terms)
    )
    lost = np.where(wide.is_zero(total), 1 << 20, largest - wide.exponent_fields(total).astype(np.int64))
    ordinary = np.logical_and.reduce([~(wide.is_nan(t) | wide.is_infinite(t)) for t in (*terms, total)])
    return np.where(ordinary & (largest > -(1 << 20)), lost, -1)
