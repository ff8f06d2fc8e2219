"""Formats that wrong designs round to first: finer ones, and ones without bounds; the shift into the subnormals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum import reference
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.mac.fused import FusedDotUnit
from softnum.vectors.checks.deliveries import NotApplicable
from softnum.vectors.plans.fpu import EXTREMA, SIGNS
from softnum.vectors.plans.operations import computed
from softnum.vectors.plans.spec import VectorSpec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["aligning_unit", "call", "first_options", "free_of", "grid_of", "lost_in_shift", "shifted_wrongly"]


def call(
    op: Any, operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], out: AnyFormat, options: dict[str, Any]
) -> Any:
    """(codes, flags) of an operation; NotApplicable for a format or rule that it does not take."""
    try:
        return computed(op, operands, formats, out, options)
    except ValueError as error:
        raise NotApplicable(str(error)) from None


def first_options(options: dict[str, Any], wide: AnyFormat, mode: str) -> dict[str, Any]:
    """What a first rounding, or cut, to a wide format is made with."""
    plain = {k: v for k, v in options.items() if k not in ("random_bits", "stochastic_bits", "flush_results")}
    rule = "wrap" if options["overflow"] == "wrap" else "saturate" if not wide.exponent_bits else "infinity"
    return plain | {"rounding": mode, "overflow": rule, "nan": "canonical", "invalid": 0}


def lost_in_shift(
    spec: VectorSpec, operands: Sequence[np.ndarray], options: dict[str, Any], bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Results where bits that the shift into the subnormals moves below the `bits` that are kept are lost, while those
    below them before that shift count (a sticky bit that is not shifted into)."""
    out = spec.out_fmt
    if not out.exponent_bits:
        raise NotApplicable("fixed point")
    free, coarse, fine = free_of(spec, bits), grid_of(out, bits), grid_of(out, bits + 1)
    cut, raised = call(spec.op, operands, spec.formats, free, first_options(options, free, "toward_zero"))
    placed, _ = call("convert", (cut,), (free,), coarse, first_options(options, coarse, "toward_zero"))
    sign, size = coarse.sign_and_size(placed)
    size = size.astype(np.uint64) << np.uint64(1) | (raised & np.uint8(1)).astype(np.uint64)
    codes = (size | sign.astype(np.uint64) << np.uint64(fine.bits - 1)).astype(fine.storage_dtype)
    last = {k: v for k, v in options.items() if k != "flush_inputs"}
    return call("convert", (codes,), (fine,), out, last)


def shifted_wrongly(
    spec: VectorSpec,
    operands: Sequence[np.ndarray],
    options: dict[str, Any],
    result: np.ndarray,
    how: str,
    leading: bool,
) -> np.ndarray:
    """Results whose shift into the subnormals is not made ("dropped"), or is a place too short ("short") or too long
    ("long"). `leading`: whether a leading one that is left at its place counts, as the exponent's lowest bit.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> spec, a, b = VectorSpec.make("multiply", "e4m3fn"), np.array([0x08], np.uint8), np.array([0x34], np.uint8)
    >>> options = {"rounding": "nearest_even", "overflow": "infinity"}  # 2**-6 * 0.75 is 3 * 2**-8, code 6
    >>> [int(shifted_wrongly(spec, (a, b), options, a, how, False)[0]) for how in ("short", "long", "dropped")]
    [4, 3, 4]
    """
    fmt = spec.out_fmt
    if not fmt.exponent_bits or not fmt.signed or fmt.lowest_binade != "subnormal" or "random_bits" in options:
        raise NotApplicable("format or mode")
    free, hidden = free_of(spec, 0), np.uint64(1 << fmt.mantissa_bits)
    wide = free if how == "dropped" else moved_grid(fmt, 1 if how == "short" else -1)

    def sizes(target, mode: str) -> tuple[np.ndarray, np.ndarray]:
        codes, _ = call(spec.op, operands, spec.formats, target, first_options(options, target, mode))
        sign, size = target.sign_and_size(codes)
        return sign.astype(np.uint64), size.astype(np.uint64)

    sign, size = sizes(free, options["rounding"])
    right, _ = call(spec.op, operands, spec.formats, fmt, options | {"rounding": "toward_zero", "flush_results": None})
    where = (fmt.magnitudes(right) < hidden) & (size != 0) & ~fmt.is_nan(right)
    _, cut = sizes(wide, "toward_zero")
    up = sizes(wide, options["rounding"])[1] - cut
    if how == "dropped":
        cut = cut & (hidden - np.uint64(1)) | hidden
    size = (cut if leading else cut & (hidden - np.uint64(1))) + up
    shown = sign if fmt.negative_zero else sign & (size != 0)
    return np.where(where, (size | shown << np.uint64(fmt.bits - 1)).astype(result.dtype), result)


@lru_cache(maxsize=256)
def moved_grid(fmt, places: int):
    """A float format whose subnormals begin so many binades lower: a code there is what a shift too short gives."""
    try:
        return FloatFormat(min(15, fmt.exponent_bits + 1), fmt.mantissa_bits, bias=fmt.bias + places)
    except ValueError as error:
        raise NotApplicable(str(error)) from None


@lru_cache(maxsize=256)
def grid_of(fmt, bits: int):
    """The format's own grid, `bits` bits finer: subnormals begin where its own do."""
    try:
        if not fmt.exponent_bits:
            fraction = fmt.fraction_bits + bits
            return FixedFormat(min(64 - fraction, 2 * fmt.integer_bits + 2), fraction)
        if fmt.lowest_binade == "zero" or not fmt.has_zero:
            raise NotApplicable(f"{fmt} has no subnormals")
        return FloatFormat(
            min(15, fmt.exponent_bits + 1), fmt.mantissa_bits + bits, bias=fmt.bias, lowest_binade=fmt.lowest_binade
        )
    except NotApplicable:
        raise
    except ValueError as error:
        raise NotApplicable(str(error)) from None


@lru_cache(maxsize=256)
def free_of(spec: VectorSpec, bits: int):
    """A float format of `bits` more bits of precision in which no result of the spec is subnormal or overflows."""
    out = spec.out_fmt
    if not out.exponent_bits:
        raise NotApplicable("fixed point")
    if spec.op in (*SIGNS, *EXTREMA):
        raise NotApplicable("an operand is delivered, and nothing rounded")
    reach = 4 + sum(
        f.integer_bits + f.fraction_bits if not f.exponent_bits else max(abs(f.emax), abs(f.emin - f.mantissa_bits)) + 1
        for f in spec.formats[:2]
    )
    try:
        return FloatFormat(max(reach.bit_length() + 1, out.exponent_bits), out.mantissa_bits + bits)
    except ValueError as error:
        raise NotApplicable(str(error)) from None


@lru_cache(maxsize=256)
def aligning_unit(spec: VectorSpec, bits: int, rounding: str, overflow: str) -> tuple[FusedDotUnit, Callable[..., Any]]:
    """(a unit that adds with `bits` bits below the larger term's last place, a function that orders the operands)"""
    out, formats = spec.out_fmt, spec.formats
    if spec.op not in ("add", "subtract", "fma") or formats[-1] != out or any(not f.exponent_bits for f in formats):
        raise NotApplicable("no sum of floats in the result's format")
    if rounding.startswith("stochastic") or (spec.op == "subtract" and not out.negative_zero):
        raise NotApplicable("mode or format")
    pair = formats[:2] if spec.op == "fma" else (formats[0], formats[0])
    try:
        unit = FusedDotUnit(
            1, out.mantissa_bits + bits, out, operand=pair, output_rounding=rounding, overflow=overflow
        )  # fmt: skip
        one, _ = reference.encode(1, pair[1])
    except ValueError as error:
        raise NotApplicable(str(error)) from None

    def order(operands, formats):
        if spec.op == "fma":
            return operands
        a, b = operands
        sign = b.dtype.type(1 << (formats[1].bits - 1) if spec.op == "subtract" else 0)
        return a, np.full(len(a), one, np.uint64), b ^ sign

    return unit, order
