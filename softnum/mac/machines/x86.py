"""x86's dot products: VDPBF16PS, VPDPBUSD and AMX's tiles.

Source: Intel 64 and IA-32 Software Developer's Manual, volume 2 (VDPBF16PS, VPDPBUSD, TDPBF16PS, TDPFP16PS, TDPBSSD).
"""

from __future__ import annotations

from functools import partial

from softnum.mac.fused import FmaChainUnit
from softnum.mac.machines.preset import Evidence, Made, Preset
from softnum.mac.mad import MadUnit

__all__ = ["PRESETS"]

_X86 = "compared with the instruction on an Intel Xeon (family 6, model 207) by tests/core/test_x86_dot.py"


def _avx512_bf16(output: None) -> Made:
    made = FmaChainUnit(
        "binary32", operand="bfloat16", k_order=(1, 0), flush_inputs=True, flush_results="after"
    )  # fmt: skip
    return made, {
        "k_order": Evidence("measured", f"the odd element of a pair first: {_X86}; the same on an AMD Zen 5"),
        "rounding": Evidence("measured", f"two fused multiply-adds, each to nearest even, MXCSR not looked at: {_X86}"),
        "flush_inputs": Evidence("measured", f"subnormal factors and sums are zeros of their sign: {_X86}"),
        "flush_results": Evidence("measured", f"after each step, tiny after rounding, sign kept: {_X86}"),
        "special_values": Evidence(
            "measured", f"infinities and NaN as in IEEE 754: {_X86}; NaN payloads not compared, softnum's is canonical"
        ),
        "chaining": Evidence("published", "instruction after instruction, each on its own pair: Intel SDM, VDPBF16PS"),
    }


_SDM = "Intel SDM, volume 2, operation of {}; tests/core/test_x86_amx.py runs it where the CPU has it"


def _amx(operand: str, output: None) -> Made:
    """Tiles of 16-bit floats: two chains of fused multiply-adds from zero, of the even k and the odd, their sum, C."""
    source = _SDM.format({"bfloat16": "TDPBF16PS", "binary16": "TDPFP16PS"}[operand])
    kept = operand == "binary16"
    made = MadUnit(
        "binary32", operand=operand, lanes=2, chunk=32, flush_inputs="sums" if kept else True, flush_results="after"
    )
    inputs = "subnormal a and b are read as they are, a subnormal C as a zero" if kept else "subnormals read as zeros"
    return made, {
        "lanes": Evidence("published", f"even and odd k apart, each from zero, fused multiply-adds in turn: {source}"),
        "chunk": Evidence("published", f"a tile's 32 of K, fewer in a narrower one; their sum is added to C: {source}"),
        "reduction": Evidence("published", f"the even k's sum and the odd k's, then that and C: {source}"),
        "rounding": Evidence("published", f"each to nearest even, MXCSR not looked at: {source}"),
        "flush_inputs": Evidence("published", f"{inputs}: {source}"),
        "flush_results": Evidence(
            "published",
            f"subnormal results are zeros (FTZ), as x86 has it where they are tiny after rounding: {source}",
        ),
        "special_values": Evidence("modelled", "infinities and NaN as in IEEE 754; NaN canonical"),
    }


def _amx_int8(output: None) -> Made:
    source = _SDM.format("TDPBSSD")
    return MadUnit("q32.0", operand="q8.0", overflow="wrap"), {
        "operand": Evidence(
            "published", f"a and b signed (TDPBSUD, TDPBUSD, TDPBUUD: unsigned ones are uq8.0): {source}"
        ),
        "products": Evidence("published", f"exact: {source}"),
        "overflow": Evidence("published", f"modulo 2**32, so the order does not matter: {source}"),
    }


def _vnni_int8(output: None) -> Made:
    made = MadUnit("q32.0", operand=("uq8.0", "q8.0"), overflow="wrap")
    return made, {
        "operand": Evidence("measured", f"VPDPBUSD: a unsigned, b signed, four products at a time: {_X86}"),
        "overflow": Evidence("measured", f"modulo 2**32, so the order does not matter: {_X86} (VPDPBUSDS saturates)"),
    }


PRESETS = {
    "x86_avx512_bf16": Preset(_avx512_bf16),
    "x86_amx_bf16": Preset(partial(_amx, "bfloat16")),
    "x86_amx_fp16": Preset(partial(_amx, "binary16")),
    "x86_amx_int8": Preset(_amx_int8),
    "x86_vnni_int8": Preset(_vnni_int8),
}
