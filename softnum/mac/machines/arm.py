"""Arm's dot products of bfloat16, binary16 and FP8.

Source: Arm Architecture Reference Manual for A-profile architecture (DDI 0487, issue M.a.a): A1.5.5 (FP8 instructions),
A1.5.11 (BFloat16 sums of products), C5.2 (FPCR, FPMR), the instructions in C7.2, C8.2 and C9.2, and the pseudocode of
J1.3.3.
"""

from __future__ import annotations

from functools import partial

from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.machines.preset import Evidence, Made, Preset

__all__ = ["PRESETS"]

_MANUAL = "Arm Architecture Reference Manual, DDI 0487 M.a.a"
_CHAINED = "instruction after instruction, a result being the next C"
_NAN = "NaN is the default one, softnum's canonical (with FPCR.AH = 1 its sign bit is set, which softnum has not)"


def _published(clause: str, told: dict[str, str]) -> dict[str, Evidence]:
    return {name: Evidence("published", f"{text}: {_MANUAL}, {clause}") for name, text in told.items()}


def _bfdot(output: None) -> Made:
    """BFDOT and what sums like it, by the standard behaviours."""
    made = GroupedDotUnit(
        2, "binary32", operand="bfloat16", reduction="rounded", zeros="signed", flush_inputs=True,
        flush_results="before",
    )  # fmt: skip
    told = {
        "terms": "pairs of products: BFDOT, BFVDOT, BFMOPA and BFMOPS; BFMMLA is two of them in turn (BFMatMulAddH)",
        "reduction": "each product of a pair is rounded, and so is their sum (BFMulH, FPAdd_BF16)",
        "partial_rounding": "to odd, whatever FPCR.RMode says (BFRound)",
        "rounding": "to odd, of the sum with C too (BFDotAdd)",
        "overflow": "an infinity of the result's sign (BFRound)",
        "flush_inputs": "subnormal a, b and C are zeros of their sign (BFUnpack)",
        "flush_results": "what is below 2^-126 before it is rounded is a zero of its sign (BFRound)",
        "zeros": "a sum of zeros of one sign keeps it, any other sum of 0 is +0 (FPAdd_BF16)",
        "special_values": f"as IEEE 754 has them; {_NAN} (BFMulH, FPAdd_BF16)",
        "chaining": _CHAINED,
        "setting": "without FEAT_EBF16, or with FPCR.EBF = 0; no other field of FPCR counts",
    }
    return made, _published("A1.5.11 and J1.3.3", told)


def _fused_pairs(operand: str, output: None) -> Made:
    """Pairs whose sum is rounded once: BFDOT by the extended behaviours, FDOT of binary16."""
    made = GroupedDotUnit(
        2, "binary32", operand=operand, reduction="exact", partial_rounding="nearest_even", rounding="nearest_even",
        zeros="signed",
    )  # fmt: skip
    brain = operand == "bfloat16"
    modes = (
        "FPCR.RMode: round to nearest; others are dataclasses.replace(unit, partial_rounding=mode, rounding=mode), "
        "mode 'up', 'down' or 'toward_zero' (FPRoundingMode)"
    )
    flushes = (
        "FPCR.FZ, FIZ and AH are 0: nothing is flushed. FZ = 1: flush_inputs=True, flush_results='before'; with AH = 1 "
        "flush_results='after' of FZ, and flush_inputs=True of FIZ (FPUnpackBase, FPRoundBase)"
    )
    told = {
        "terms": "pairs of products: BFDOT, BFVDOT, BFMOPA and BFMOPS; BFMMLA is two of them in turn (BFMatMulAddH)"
        if brain else "pairs of products: FDOT, FVDOT, FMOPA and FMOPS of binary16 into binary32",
        "reduction": "products are exact, and so is a pair's sum (FPDot)",
        "partial_rounding": f"a pair's sum is rounded once to binary32, by {modes}",
        "rounding": "and its sum with C once more, by FPCR.RMode too (FPAdd)",
        "flush_results": flushes,
        "zeros": "a sum of zeros of one sign keeps it; any other sum of 0 is +0, and -0 where FPCR.RMode rounds down",
        "special_values": f"as IEEE 754 has them; {_NAN if brain else 'NaN payloads are not followed'} (FPDot, FPAdd)",
        "chaining": _CHAINED,
        "setting": "FEAT_EBF16 and FPCR.EBF = 1 (BFDotAdd)" if brain else "FPCR.FZ16 = 0 (FPDotAdd)",
    }  # fmt: skip
    return made, _published(f"{'A1.5.11 and ' if brain else ''}J1.3.3", told)


def _fp8(operand: str, terms: dict[str, int], names: str, output: str | None) -> Made:
    """Sums of FP8 products, added to C without another rounding."""
    result = output or "binary32"
    made = GroupedDotUnit(
        terms[result],
        result,
        operand=operand,
        reduction="exact",
        partial_rounding=None,
        rounding="nearest_even",
        zeros="signed",
    )
    told = {
        "operand": "OFP8 E4M3 (0b001) or E5M2 (0b000) for a by FPMR.F8S1 and for b by FPMR.F8S2, in any pair: "
        "dataclasses.replace(unit, operand=('e5m2', 'e4m3fn')) (FP8Unpack)",
        "terms": names,
        "reduction": "products, their sum and its sum with C are exact",
        "rounding": "rounded once, to nearest even, whatever FPCR.RMode says; subnormal operands, C and results stay",
        "scale": "2^-UInt(FPMR.LSCALE), its low four bits into binary16: 0 here, and "
        "dataclasses.replace(unit, scale=-3) of LSCALE = 3",
        "overflow": "infinite, FPMR.OSM = 0; with OSM = 1 the largest number, infinite terms staying infinite: "
        "dataclasses.replace(unit, overflow='saturate_finite'). FPMR.OSC is of conversions (FPRound_FP8)",
        "zeros": "a sum of zeros of one sign, C's too, keeps it; any other sum of 0 is +0",
        "special_values": "any NaN, infinite times zero and infinities of both signs give NaN, any other infinity "
        f"wins; {_NAN}",
        "chaining": _CHAINED,
    }
    return made, _published("A1.5.5 and J1.3.3, FP8DotAddFP", told)


_OUTPUTS = ("binary32", "binary16")
_FP8 = {
    "fdot": (
        {"binary32": 4, "binary16": 2},
        "four products into binary32: FDOT (FEAT_FP8DOT4), FMOPA; two into binary16: FDOT (FEAT_FP8DOT2), FMOPA, "
        "FVDOT. FVDOTB and FVDOTT are two into binary32: dataclasses.replace(unit, terms=2)",
    ),
    "fmlal": (
        {"binary32": 1, "binary16": 1},
        "one product (FEAT_FP8FMA): FMLALL into binary32, FMLAL into binary16 (FP8MulAddFP)",
    ),
    "fmmla": (
        {"binary32": 8, "binary16": 4},
        "eight products into binary32 (FEAT_F8F32MM), four into binary16 (FEAT_F8F16MM): FMMLA (FP8MatMulAddFP)",
    ),
}
PRESETS = {
    "arm_bfdot": Preset(_bfdot),
    "arm_bfdot_ebf": Preset(partial(_fused_pairs, "bfloat16")),
    "arm_fdot_fp16": Preset(partial(_fused_pairs, "binary16")),
    **{
        f"arm_{name}_{short}": Preset(partial(_fp8, operand, *of), outputs=_OUTPUTS)
        for name, of in _FP8.items()
        for short, operand in (("e4m3", "e4m3fn"), ("e5m2", "e5m2"))
    },
}
