"""AMD's matrix cores: CDNA1 to CDNA3.

Sources: MMA-Sim (arXiv 2511.10909); MATLAB-tensor-core (MI100, MI210).
"""

from __future__ import annotations

from functools import partial

from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.machines.preset import MMA_SIM, ZERO_OF_MMA_SIM, Evidence, Made, Preset
from softnum.mac.mad import MadUnit
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["PRESETS"]


def _cdna(generation: int, operand: str, terms: int, output: None) -> Made:
    """16-bit operands on CDNA1 and CDNA2: products rounded, then pairs of them, then added to C."""
    flushes = {"flush_inputs": "positive", "flush_results": "subnormal"} if generation == 2 else {}
    made = MadUnit("binary32", operand=operand, lanes=terms, chunk=terms, reduction="tree", **flushes)
    evidence = {
        "products": Evidence("published", f"each rounded to binary32, to nearest even: {MMA_SIM}"),
        "reduction": Evidence("published", f"neighbours added, rounded to binary32, and so on: {MMA_SIM}"),
        "chunk": Evidence(
            "published", f"{terms} products, whose sum is added to C, a result being the next C: {MMA_SIM}"
        ),
        "special_values": Evidence("published", f"as IEEE 754 has them: {MMA_SIM}"),
    }
    if generation == 1:
        one = "MATLAB-tensor-core's MI100 has one exact sum of the products and C, rounded once"
        for name in ("products", "reduction"):
            evidence[name] = Evidence("published, disputed", f"{evidence[name].source}. {one}")
        return made, evidence
    both = f"{MMA_SIM}, and MATLAB-tensor-core's MI210"
    return made, evidence | {
        "flush_inputs": Evidence("published", f"subnormal a, b and C are +0, and so is -0: {MMA_SIM}"),
        "flush_results": Evidence(
            "published", f"products, sums of pairs and sums that are subnormal are zeros: {both}"
        ),
    }


def _cdna1_as_matlab(name: str, pairwise: MadUnit) -> Made:
    """CDNA1 by MATLAB-tensor-core's choice."""
    made = GroupedDotUnit(
        pairwise.chunk, "binary32", operand=pairwise.operand, reduction="exact", partial_rounding=None,
        rounding="nearest_even",
    )  # fmt: skip
    source = "MATLAB-tensor-core, MI100: the products and C added exactly, and rounded once to nearest even"
    return made, {"all": Evidence("published, disputed", f"{source}. {MMA_SIM} rounds each product and pair")}


def _cdna3(operand: str, terms: int, output: None) -> Made:
    """16 and 8 bits, and xf32, on CDNA3: products aligned and added, then their sum and C."""
    eight = terms == 16
    made = TwoStageDotUnit(
        terms, 24, 31, 24, "binary32", operand=operand, interleave=2 if eight else 1, c_reach=25 if eight else None,
        product_limit=128, zero_exponent=ZERO_OF_MMA_SIM,
    )  # fmt: skip
    said = {
        "terms": f"{terms} products, whose sum meets C; the result is the next C",
        "fraction_bits": "products cut off toward zero at 24 bits below their largest exponent",
        "alignment": "their sum and C rounded toward minus infinity, at 31 and 24 bits below the larger exponent",
        "output_rounding": "one rounding to nearest even; subnormals stay",
        "product_limit": "a finite product of 2**128 or more makes the result infinite",
        "zero_exponent": f"zeros count with the exponent {ZERO_OF_MMA_SIM}",
        "special_values": "NaN, infinite times zero and infinities of both signs give NaN, any other infinity wins",
        "underflow": "what rounds to zero keeps its sign; a zero sum is +0",
    }
    if eight:
        said["interleave"] = "even and odd k are aligned on their own, these sums as the whole, rounded down"
        said["c_reach"] = "C counts as 0 where its exponent is more than 25 below"
    return made, {name: Evidence("published", f"{text}: {MMA_SIM}") for name, text in said.items()}


def _cdna_chain(fmt: str, output: None) -> Made:
    """Operands as wide as the sums: fused multiply-adds in turn."""
    source = f"k ascending, from C, IEEE 754's, nothing flushed: {MMA_SIM}"
    return MadUnit(fmt, operand=fmt), {
        "chaining": Evidence("published", source),
        "rounding": Evidence("published", source),
    }


_MATLAB = {"matlab": _cdna1_as_matlab}
PRESETS = {
    "amd_cdna1_fp16": Preset(partial(_cdna, 1, "binary16", 4), disputed=_MATLAB),
    "amd_cdna2_fp16": Preset(partial(_cdna, 2, "binary16", 4)),
    "amd_cdna1_bf16": Preset(partial(_cdna, 1, "bfloat16", 2), disputed=_MATLAB),
    "amd_cdna2_bf16": Preset(partial(_cdna, 2, "bfloat16", 2)),
    "amd_cdna2_bf16_1k": Preset(partial(_cdna, 2, "bfloat16", 4)),
    "amd_cdna3_fp16": Preset(partial(_cdna3, "binary16", 8)),
    "amd_cdna3_bf16": Preset(partial(_cdna3, "bfloat16", 8)),
    "amd_cdna3_xf32": Preset(partial(_cdna3, "tf32", 4)),
    "amd_cdna3_fp8": Preset(partial(_cdna3, "e4m3fnuz", 16)),
    "amd_cdna3_bf8": Preset(partial(_cdna3, "e5m2fnuz", 16)),
    **{f"amd_cdna{n}_fp32": Preset(partial(_cdna_chain, "binary32")) for n in (1, 2, 3)},
    **{f"amd_cdna{n}_fp64": Preset(partial(_cdna_chain, "binary64")) for n in (2, 3)},
}
