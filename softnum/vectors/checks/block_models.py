"""Wrong designs of a unit of blocks: what becomes of the scales, and of the unit's block formats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.arrays.conversion import encode
from softnum.formats.blocks import BlockFormat
from softnum.formats.scalar import FloatFormat
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.vectors.plans.unit_spec import UnitSpec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat
    from softnum.mac.mad import Unit

__all__ = ["changed_blocks", "changed_scales", "one_of"]

_FIELDS = ("bias", "signed", "nan_codes", "infinities", "negative_zero", "has_zero", "lowest_binade", "saturating")


def one_of(fmt: AnyFormat) -> int:
    """The code of 1, or of the number nearest to it."""
    return int(encode(np.array([1.0]), fmt)[0])


def changed_blocks(unit: Unit, changes: dict[str, Any]) -> Any:
    """The unit with other block formats, or as one that aligns its terms; ValueError where there is none.

    ``scale_bias``: of a's scales, what is added to the bias; ``scale_numbers``: scales have no NaN, whose bits are a
    number; ``block_size``: so many products are summed at a time; ``as_fused``: (group, bits kept below the largest
    term's exponent).

    >>> import softnum as sn
    >>> unit = sn.BlockDotUnit("binary32", operand="mxfp4_e2m1")
    >>> changed_blocks(unit, {"scale_bias": 1}).operand[0].scale.bias
    128
    """
    first, second = unit.operand
    if "block_size" in changes:
        first, second = (_with(f, block_size=changes["block_size"]) for f in (first, second))
    if "scale_bias" in changes:
        first = _with(first, scale=_scale(first.scale, bias=first.scale.bias + changes["scale_bias"]))
    if changes.get("scale_numbers"):
        first, second = (_with(f, scale=_scale(f.scale, nan_codes="none", infinities=False)) for f in (first, second))
    if (first, second) != unit.operand:
        unit = replace(unit, operand=(first, second))
    if "as_fused" in changes:
        group, bits = changes["as_fused"]
        unit = BlockFusedDotUnit(
            unit.block_size, bits, unit.accumulator, (first, second), group=group, output_rounding=unit.rounding,
            overflow=unit.overflow,
        )  # fmt: skip
    return unit


def _with(fmt: BlockFormat, **parts) -> BlockFormat:
    kept = {"element": fmt.element, "scale": fmt.scale, "block_size": fmt.block_size, "tensor_scale": fmt.tensor_scale}
    return BlockFormat(**kept | parts)


def _scale(fmt, **parts) -> FloatFormat:
    if not fmt.exponent_bits:
        raise ValueError(f"scales of {fmt} are no floats")
    kept = {name: getattr(fmt, name) for name in _FIELDS}
    return FloatFormat(fmt.exponent_bits, fmt.mantissa_bits, **kept | parts)


def changed_scales(operands: list[np.ndarray], changes: dict[str, Any], spec: UnitSpec) -> list[np.ndarray]:
    """Operands a, b, scales ... of vectors, as a wrong design takes them.

    ``scales``: pairs of the number of a column of scales and what it is read as: "one"; "first", the scale of the first
    block for all; "reversed", from the last block to the first; "other", the other operand's. ``scale_nan``: what a NaN
    among scales is read as: "one", "largest", or "nothing", as if the elements were zeros.

    >>> import numpy as np
    >>> from softnum.vectors import UnitSpec
    >>> spec = UnitSpec.make("dot", "BlockDotUnit('binary32', operand='mxfp4_e2m1')", length=64)
    >>> a, scales = np.zeros((1, 64), np.uint8), np.array([[0x80, 0xFF]], np.uint8)
    >>> changes = {"scales": ((0, "first"), (1, "one")), "scale_nan": "one"}
    >>> [x.tolist() for x in changed_scales([a, a, scales, scales], changes, spec)[2:]]
    [[[128, 128]], [[127, 127]]]
    """
    out, columns, (m, n, k), blocks = list(operands), spec.scale_columns, spec.shape, spec.blocks
    rows = len(operands[0])

    def by_block(i: int, codes: np.ndarray) -> np.ndarray:
        """Scales of shape (vectors, rows or columns, blocks): a view of those of b."""
        return codes.reshape(rows, m, blocks) if i == 0 else codes.reshape(rows, blocks, n).swapaxes(1, 2)

    def flat(i: int, codes: np.ndarray) -> np.ndarray:
        codes = codes if i == 0 else codes.swapaxes(1, 2)
        return np.ascontiguousarray(codes).reshape(operands[2 + i].shape)

    for i, what in changes.get("scales", ()):
        codes = operands[2 + i]
        if what == "one":
            out[2 + i] = np.full_like(codes, one_of(columns[i].format))
        elif what == "other":
            out[2 + i] = operands[3 - i]
        else:
            of = by_block(i, codes)
            out[2 + i] = flat(i, of[:, :, ::-1] if what == "reversed" else np.repeat(of[:, :, :1], blocks, 2))
    if what := changes.get("scale_nan"):
        for i in range(2):
            fmt, codes = columns[i].format, out[2 + i]
            nan = fmt.is_nan(codes)
            out[2 + i] = np.where(nan, codes.dtype.type(fmt.max_code if what == "largest" else one_of(fmt)), codes)
            if what == "nothing" and nan.any():
                size = spec.unit.operand[0].size(k)
                dark = np.repeat(by_block(i, nan), size, 2)[:, :, :k]
                elements = out[i].reshape(rows, m, k) if i == 0 else out[i].reshape(rows, k, n).swapaxes(1, 2)
                kept = np.where(dark, elements.dtype.type(0), elements)
                kept = kept if i == 0 else kept.swapaxes(1, 2)
                out[i] = np.ascontiguousarray(kept).reshape(out[i].shape)
    if "block_size" in changes:
        size, part = spec.unit.operand[0].size(k), changes["block_size"]
        for i in range(2):
            each = np.repeat(by_block(i, out[2 + i]), size // part, 2)[:, :, : -(-k // part)]
            out[2 + i] = np.ascontiguousarray(each if i == 0 else each.swapaxes(1, 2)).reshape(rows, -1)
    return out
