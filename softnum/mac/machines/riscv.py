"""RISC-V's widening dot products by bulk normalization.

Sources: RISC-V Instruction Set Manual, volume I (RVBNA); the drafts of its Zvdota and Zvbdota families (pull request
2618); Spike (riscv-isa-sim).
"""

from __future__ import annotations

from functools import partial

from softnum.formats.names import format
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.machines.preset import Evidence, Made, Preset

__all__ = ["PRESETS"]

_SPIKE = "Spike (riscv-isa-sim, June 2026)"
_RVBNA = "RISC-V Instruction Set Manual, volume I, RVBNA (August 2026)"
_ZVDOTA = "the draft of Zvdota and Zvbdota (riscv-isa-manual, pull request 2618)"


def _rvbna(operand: str, vlen: int, output: None) -> Made:
    """vfwdota.vv, vfwbdota.vv of bfloat16; vfqwdota.vv, vfqwbdota.vv of FP8: a register's products are a group."""
    fmt = format(operand)
    terms = vlen // fmt.bits
    made = GroupedDotUnit(terms, "binary32", operand=fmt)
    return made, {
        "reduction": Evidence("published", f"bulk-normalized, zeros taking no part in M: {_RVBNA}"),
        "terms": Evidence(
            "published",
            f"all of a vector register, VLEN = {vlen}: {_SPIKE}; {_ZVDOTA} lets an implementation make equal sets of "
            "them, which is another unit",
        ),
        "guard_bits": Evidence("published", f"{(terms - 1).bit_length()}, which is mandated: {_RVBNA}"),
        "partial": Evidence("published", f"binary32: {_SPIKE}; {_ZVDOTA} permits more precision"),
        "partial_rounding": Evidence(
            "published, disputed",
            f"to odd, subnormal results too, what overflows being infinite: the words of {_RVBNA}, the pseudocode as "
            f"its pull request 3244 corrects it, and {_SPIKE}; the pseudocode itself cuts sums off, and gives other "
            "subnormals",
        ),
        "rounding": Evidence(
            "published", f"C is added, rounded to odd, to infinity where too large: {_ZVDOTA}, {_SPIKE}"
        ),
        "zero": Evidence("published", f"a sum of zero is +0: {_RVBNA}"),
        "special_values": Evidence("published", f"{_RVBNA}; the NaN is the canonical one"),
        "chaining": Evidence("published", f"instruction after instruction, a result being the next C: {_ZVDOTA}"),
    }


PRESETS = {
    f"riscv_rvbna_{name}_vlen{vlen}": Preset(partial(_rvbna, fmt, vlen))
    for name, fmt in (("bf16", "bfloat16"), ("e4m3", "e4m3fn"), ("e5m2", "e5m2"))
    for vlen in (128, 256, 512)
}
