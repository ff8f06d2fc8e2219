"""Causes of units of blocks: what becomes of scales, and where such units round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import register
from softnum.mac.mad import MadUnit
from softnum.vectors.checks.causes import counted
from softnum.vectors.checks.unit_causes import Causes, modes_of
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["scale_causes"]

_WHOSE = (((0,), "of a"), ((1,), "of b"), ((0, 1), "of a and of b"))
_MORE_BITS = 8


def scale_causes(spec: UnitSpec) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(cause, detail, changes) of scales that are not what the vectors say.

    >>> from softnum.vectors import UnitSpec
    >>> spec = UnitSpec.make("dot", "BlockDotUnit('binary32', operand='mxfp4_e2m1')")
    >>> [f"{cause} {detail}" for cause, detail, _ in scale_causes(spec)][:4]
    ['scale-ignored of a', 'scale-ignored of b', 'scale-ignored of a and of b', 'scale-bias a factor of 2']
    """
    for which, whose in _WHOSE:
        yield "scale-ignored", whose, {"scales": tuple((i, "one") for i in which)}
    for i, column in enumerate(spec.scale_columns[2:], 2):
        yield "scale-ignored", f"of the array {column.name[-1]}", {"scales": ((i, "one"),)}
    scale = spec.unit.operand[0].scale
    if scale.exponent_bits:
        for bias in (-1, 1, -2, 2):
            yield "scale-bias", f"a factor of {'1/' * (bias > 0)}{2 ** abs(bias)}", {"scale_bias": bias}
        for bias, text in ((-scale.bias, "too seldom"), (scale.bias, "too often")):
            yield "scale-bias", f"the bias is taken off once {text}", {"scale_bias": bias}
    if any(c.format.nan_code is not None for c in spec.scale_columns[:2]):
        yield "scale-nan-ignored", "its bits are read as a number", {"scale_numbers": True}
        for what, text in (
            ("one", "read as 1"), ("largest", "read as the largest scale"), ("nothing", "its block counts as zeros"),
        ):  # fmt: skip
            yield "scale-nan-ignored", text, {"scale_nan": what}
    if spec.blocks > 1:
        for which, whose in _WHOSE:
            yield "shared-scale", f"{whose}: the first block's for all", {"scales": tuple((i, "first") for i in which)}
        for which, whose in _WHOSE:
            swapped = tuple((i, "reversed") for i in which)
            yield "swapped-lanes", f"of the scales {whose}, from the last block to the first", {"scales": swapped}
    if spec.unit.operand[0].scale == spec.unit.operand[1].scale and spec.shape[0] == spec.shape[1]:
        for i in range(2):
            text = f"the scales of {'ab'[i]}, read as the other's"
            yield "ignored-operand", text, {"scales": ((i, "other"),)}


class _Blocks(Causes):
    always_infinity = "kept"

    def own(self, spec: UnitSpec):
        unit = spec.unit
        yield from scale_causes(spec)
        fmt, size = unit.accumulator, unit.operand[0].size(spec.shape[2])
        if unit.product is None:
            yield "rounds-each-block", f"scaled sums, to {fmt}, before they are added", {"product": fmt}
        else:
            yield "exact-product-instead", "scaled sums are not rounded", {"product": None, "product_rounding": None}
            yield from modes_of(unit, "product_rounding", unit.product_mode, " of scaled sums")
        elements = tuple(f.element for f in unit.operand)
        if unit.inner is not None:
            yield "rounds-each-product", "not at all: sums of blocks are exact", {"inner": None}
        elif fmt.exponent_bits and not unit.stochastic:
            for rounded, text in (("product", "products and their sums are"), (None, "sums of products are")):
                inner = MadUnit(fmt, operand=elements, product=rounded and fmt)
                yield "rounds-each-product", f"{text} rounded to {fmt} within a block", {"inner": inner}
            inner = ExactDotUnit(fmt, operand=elements)
            yield "rounds-each-block", f"sums of products, to {fmt}, before they are scaled", {"inner": inner}
        if not unit.stochastic and unit.operand[0].block_size is not None:
            for part in (n for n in range(1, size) if size % n == 0):
                yield "chunk-length", f"{counted(part, 'product')} instead of {size} at a time", {"block_size": part}
            if spec.blocks > 1 and fmt.exponent_bits and fmt.precision < 50:
                changes = {"accumulator": "binary64", "rounding": "to_odd"}
                yield "accumulator-width", f"not rounded to {fmt} between blocks", changes
        if fmt.exponent_bits and unit.inner is None and unit.product is None and not unit.tensor_scales:
            for group, what in ((size, "blocks are"), (1, "products are")):
                for bits in range(fmt.mantissa_bits, fmt.mantissa_bits + _MORE_BITS + 1):
                    text = f"{what} cut off {counted(bits, 'bit')} below the largest exponent"
                    yield "alignment-bits", text, {"as_fused": (group, bits)}


class _BlockFused(Causes):
    mode, always_infinity = "output_rounding", "rule"

    def own(self, spec: UnitSpec):
        unit = spec.unit
        yield from scale_causes(spec)
        f = unit.fraction_bits
        for other in sorted(range(max(0, f - 24), min(100, f + 12) + 1), key=lambda n: (abs(n - f), -n)):
            if other != f:
                yield "alignment-bits", f"{other} instead of {f}", {"fraction_bits": other}
        for terms in (4, 8, 16, 32, 64, 128):
            if terms != unit.terms:
                yield "chunk-length", f"{terms} products a step instead of {unit.terms}", {"terms": terms}
        for group in (1, 2, 4, 8, 16, 32):
            if group != unit.group:
                yield "exact-product-instead", f"sums of {group} are exact instead of {unit.group}", {"group": group}
        if unit.truncate_fraction is not None:
            yield "accumulator-width", "sums are not cut before they are rounded", {"truncate_fraction": None}


register(BlockDotUnit, causes=_Blocks())
register(BlockFusedDotUnit, causes=_BlockFused())
