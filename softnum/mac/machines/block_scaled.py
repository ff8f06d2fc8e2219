"""Blackwell's matrix instructions with block scales.

Sources: MMA-Sim (arXiv 2511.10909), the only one that has them step by step; PTX ISA (tcgen05.mma, and mma, with
.block_scale) for what they multiply. No rows of hardware are published, and MATLAB-tensor-core has none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.machines.preset import MATLAB, MMA_SIM, ZERO_OF_MMA_SIM, Evidence, Made, Preset

__all__ = ["PRESETS"]


@dataclass(frozen=True)
class _Kind:
    """An instruction's ``.kind``: the operand that a preset has, products and F of a step, products of an exact sum."""

    operand: str
    terms: int
    fraction_bits: int
    group: int
    min_exponent: int | None
    takes: str


_KINDS = {
    "mxf8f6f4": _Kind(
        "mxfp8_e4m3", 32, 25, 1, -133,
        "elements e4m3, e5m2, e3m2, e2m3 and e2m1 in any pairing (dataclasses.replace(unit, operand=...)), scales "
        f"ue8m0, blocks of 32: PTX ISA; {MMA_SIM} computes e4m3 and e5m2 of them, the others by the same rule",
    ),
    "mxf4": _Kind("mxfp4_e2m1", 64, 35, 16, None, f"e2m1, scales ue8m0, blocks of 32: PTX ISA; {MMA_SIM}"),
    "mxf4nvf4": _Kind(
        "nvfp4", 64, 35, 16, None,
        "e2m1, scales ue4m3 or ue8m0, blocks of 16 or 32 (without a scale of the array: dataclasses.replace(unit, "
        f"operand=softnum.BlockFormat('e2m1fn', 'e4m3fn', 16))): PTX ISA; {MMA_SIM}",
    ),
}  # fmt: skip


def _block_scaled(kind: _Kind, output: None) -> Made:
    made = BlockFusedDotUnit(
        kind.terms, kind.fraction_bits, "binary32", operand=kind.operand, group=kind.group,
        min_exponent=kind.min_exponent, overflow="always_infinity",
    )  # fmt: skip
    told = {
        "terms": f"{kind.terms} products and C",
        "fraction_bits": f"{kind.fraction_bits}",
        "alignment": "cut off toward zero, by sign and magnitude",
        "output_rounding": "toward zero, to binary32 with subnormals",
        "overflow": "infinite, though sums are cut off",
        "chaining": "more products than a step's: step after step, a result being the next C",
        "special_values": "a NaN among scales, elements and C gives NaN. The hardware's NaN is 0x7FFFFFFF, softnum's "
        "canonical",
        "zero": "a zero sum, and one that rounds to zero, is +0",
    }  # fmt: skip
    if kind.group == 1:
        told["products"] = "exact, not normalised; the scales' exponents are added to theirs"
    else:
        told["group"] = (
            f"sums of {kind.group} products are exact, times the scales' significands, not normalised; their exponent "
            "is that of the scales, also where they are zero"
        )
        told["scales"] = "ue4m3: as e4m3, the sign bit counts for nothing; subnormal scales are below 1"
    evidence = {"operand": Evidence("published", kind.takes)}
    evidence |= {what: Evidence("published", f"{text}: {MMA_SIM}") for what, text in told.items()}
    evidence |= {
        "min_exponent": _floor_of(kind),
        "zero_exponent": Evidence(
            "modelled",
            f"none: zero products and a C of zero take no part in M, as of sums without scales ({MATLAB}, and an H200 "
            f"and an H100); {MMA_SIM} gives every zero the exponent {ZERO_OF_MMA_SIM}, scales of zero too, to "
            "which the others of a product add",
        ),
    }
    if made.tensor_scales:
        evidence["tensor_scales"] = Evidence(
            "modelled",
            "the scales of the arrays are software's: their exact product times the sum, and C, rounded once to "
            "nearest even. C is a term of the first step only of formats without such a scale",
        )
    return made, evidence


def _floor_of(kind: _Kind) -> Evidence:
    if kind.min_exponent is None:
        return Evidence(
            "published", f"none: {MMA_SIM} states no floor but the exponent of zeros, and nobody else has F = 35"
        )
    return Evidence(
        "modelled",
        f"{kind.min_exponent}, as of sums without scales (-108 - F): {MATLAB}, an H200 and an H100; {MMA_SIM} "
        "has none but by zeros",
    )


def _as_mma_sim(name: str, made: BlockFusedDotUnit) -> Made:
    """The same by MMA-Sim's choices."""
    made = replace(made, min_exponent=None, zero_exponent=ZERO_OF_MMA_SIM)
    return made, {"all": Evidence("published", MMA_SIM)}


PRESETS = {
    f"nvidia_{machine}_{name}": Preset(partial(_block_scaled, kind), disputed={"mma-sim": _as_mma_sim})
    for machine in ("tcgen05", "rtx_blackwell")
    for name, kind in _KINDS.items()
}
