"""Units of real hardware, by name, and what each of their properties rests on.

Without a step-by-step source there is no preset: TPUs, for one, have none, as how they round and in which order they
add is not published in enough detail.

Sources: rows that an H200 and an H100 computed (tests/data, by kernels/recording); recorded rows of eight GPUs
(north-numerical-computing/MATLAB-tensor-core, model_validation; Khattak and Mikaitis, arXiv 2512.07004); MMA-Sim (arXiv
2511.10909); Wang et al. 2018, "Training Deep Neural Networks with 8-bit Floating Point Numbers"; Intel 64 and IA-32
Software Developer's Manual, volume 2 (VDPBF16PS, VPDPBUSD); PTX ISA (mma); RISC-V Instruction Set Manual, volume I
(RVBNA), the drafts of its Zvdota and Zvbdota families (pull request 2618), and Spike (riscv-isa-sim).
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from softnum.formats.blocks import BlockFormat
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.mac.block_scaled import BLOCK_SCALED, block_scaled, block_scaled_as_mma_sim
from softnum.mac.families import FAMILIES
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.mx_presets import BLOCK_UNITS, block_preset
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["Evidence", "KINDS", "unit", "unit_of", "units"]

#: What a property of a unit can rest on, the strongest first.
KINDS = ("recorded", "measured", "published", "published, disputed", "modelled")

#: Whose choices there are besides the presets' own, where sources disagree.
DISPUTED = ("mma-sim", "matlab")


@dataclass(frozen=True)
class Evidence:
    """What one property of a unit rests on.

    ``kind``: "recorded" (results that the hardware computed are reproduced bit for bit, and a unit without the property
    would fail them), "measured" (compared with the instruction itself by a test), "published" (stated by the source
    only), "published, disputed" (sources state different things, as ``source`` tells, and no hardware has been asked)
    or "modelled" (chosen here, as nothing states it). ``source``: where from, in words.
    """

    kind: str
    source: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"evidence is one of {', '.join(KINDS)}, got {self.kind!r}")


_ROWS = "recorded rows, MATLAB-tensor-core, model_validation (arXiv 2512.07004)"
_H200 = "H200, and H100 alike, their mma and wgmma of each type, tests/data/nvidia_h200"
_KHATTAK = "Khattak and Mikaitis (arXiv 2512.07004)"
_MMA_SIM = "MMA-Sim (arXiv 2511.10909)"
_COMPILED = (
    "CUDA's compiler makes of mma conversions to binary16, two HMMA.16816 from zero on and an addition of C "
    "(tests/kernels/test_tensor_cores.py looks)"
)
_OPERANDS = {"fp16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2"}
_BYTES = {"fp16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1}
# (bytes of a row of a step's products, F)
_GENERATIONS = {
    "volta": (8, 23), "turing": (16, 24), "ampere": (16, 24), "ada": (16, 24), "hopper": (32, 25),
    "blackwell": (32, 25),
}  # fmt: skip
_GPUS = {
    "v100": ("volta", ("fp16",)),
    "turing": ("turing", ("fp16",)),
    "a100": ("ampere", ("fp16", "bf16", "tf32")),
    "a2": ("ampere", ("fp16", "bf16", "tf32")),
    "ada": ("ada", tuple(_OPERANDS)),
    "l40s": ("ada", tuple(_OPERANDS)),
    "h100": ("hopper", tuple(_OPERANDS)),
    "h200": ("hopper", tuple(_OPERANDS)),
    "b200": ("blackwell", tuple(_OPERANDS)),
    "rtx_blackwell": ("blackwell", tuple(_OPERANDS)),
    "tcgen05": ("blackwell", tuple(_OPERANDS)),
}
_NOT_IN_ROWS = ("turing", "rtx_blackwell", "tcgen05")
_ZERO = -126  # the exponent that MMA-Sim gives to any zero
_MATLAB = "the models of MATLAB-tensor-core (since August 2026)"
_INTERLEAVED = tuple(k for half in (0, 2) for first in range(0, 32, 4) for k in (first + half, first + half + 1))


def _floor(generation: str, operand: str, output: str) -> int | None:
    """The least M, as MATLAB-tensor-core has it since August 2026, and an H200 and an H100 have it."""
    bits = _GENERATIONS[generation][1]
    if output == "binary16" and _BYTES[operand] > 1:
        return 4 - bits
    return None if generation == "volta" else -108 - bits


def _parts(name: str) -> tuple[str, str, bool]:
    """(GPU or instruction, operand, whether FP8 by mma where there is another way) of a tensor core's name."""
    gpu, _, operand = name.removeprefix("nvidia_").removesuffix("_mma").rpartition("_")
    return gpu, operand, name.endswith("_mma")


def _said_of_floors(gpu: str, least: int | None) -> dict[str, Evidence]:
    """What is said of the least M, and of zeros, by sources that differ."""
    if gpu in _NOT_IN_ROWS:
        matlab = {"rtx_blackwell": f"as of a B200: {_MATLAB}; "}.get(
            gpu, "as of other generations, of which others say it; "
        )
        kind = "published, disputed" if gpu == "rtx_blackwell" else "modelled"
        other = f"{_MMA_SIM} gives every zero the exponent {_ZERO}, and states no other floor"
        return {
            "min_exponent": Evidence(kind, f"{least}: {matlab}{other}"),
            "zero_exponent": Evidence(kind, f"none: {matlab}{other}"),
        }
    told = f"{least}, which is {'4' if least is None or least > -100 else '-108'} - F"
    return {
        "min_exponent": Evidence(
            "published, disputed",
            f"{'none' if least is None else told}: {_MATLAB}; {_MMA_SIM} states no floor but the exponent of zeros. "
            "The rows do not reach it; an H200 and an H100 follow the former, with F = 25",
        ),
        "zero_exponent": Evidence(
            "published, disputed",
            f"none: zero products and a C of zero take no part in M: {_MATLAB}; {_MMA_SIM} gives every zero the "
            f"exponent {_ZERO} (since January 2026). The rows have no zeros; an H200 and an H100 leave them out",
        ),
    }


def _common(rows: str, nearest: bool) -> dict[str, Evidence]:
    return {
        "products": Evidence("recorded", f"exact, not normalised: {rows}"),
        "alignment": Evidence("recorded", f"cut off toward zero, by sign and magnitude: {rows}"),
        "overflow": Evidence(
            "published",
            f"infinite, {'as nearest even has it' if nearest else 'though sums are cut off'}: {_MMA_SIM}; not in the "
            "rows",
        ),
        "chaining": Evidence("published", f"more products than a step's: step after step, {_MMA_SIM}; not in the rows"),
        "special_values": Evidence(
            "published", f"{_MMA_SIM}; not in the rows. The hardware's NaN is 0x7FFFFFFF (0x7FFF), softnum's canonical"
        ),
        "zero": Evidence("published", f"a zero sum is +0: {_MMA_SIM}; not in the rows"),
        "underflow": Evidence("published", f"a sum that rounds to zero is +0: {_MMA_SIM}; recorded on an H200"),
    }


def _hopper(gpu: str, made: FusedDotUnit, evidence: dict) -> dict:
    """What an H200 and an H100 settle: of each instruction, subnormals, zeros, specials and chains among the rows."""
    told = {
        "products": "exact, not normalised",
        "alignment": "cut off toward zero, by sign and magnitude; zeros take no part in the largest exponent, which "
        f"{_MMA_SIM} has otherwise",
        "overflow": "infinite",
        "special_values": "the hardware's NaN is 0x7FFFFFFF (0x7FFF), softnum's canonical",
        "zero": "a zero sum is +0",
        "underflow": "a sum that rounds to zero is +0",
        "terms": "all of an instruction" if made.c == "fused" else "two steps of 16",
        "c": "a term like the products" if made.c == "fused" else "added to the sum, to nearest even",
    }
    told |= dict.fromkeys(("fraction_bits", "output_rounding", "truncate_fraction", "k_order"), "")
    if made.c == "fused":
        told["chaining"] = "each result is the next instruction's C"
    told["zero_exponent"] = "none: zeros, products and C alike, take no part in M, whatever the other factor"
    if str(made.operand[0]) in ("bfloat16", "tf32") or str(made.accumulator) == "binary16" == str(made.operand[0]):
        told["min_exponent"] = f"{made.min_exponent}, no more and no less"
    else:
        evidence["min_exponent"] = Evidence("published", f"{_KHATTAK}; no sum of these operands reaches it")
    for name, words in told.items():
        if name in evidence and (gpu == "h200" or evidence[name].kind != "recorded"):
            evidence[name] = Evidence("recorded", f"{words}{': ' if words else ''}{_H200}")
    return evidence


def _usual(gpu: str, operand: str, output: str) -> tuple[Unit, dict]:
    """One fused sum a step, C among the terms."""
    generation = _GPUS[gpu][0]
    width, bits = _GENERATIONS[generation]
    eight = _BYTES[operand] == 1
    nearest = output == "binary16"
    terms = width // _BYTES[operand]
    cut = eight and generation in ("ada", "hopper")
    made = FusedDotUnit(
        terms, 13 if cut else bits, output, operand=_OPERANDS[operand],
        min_exponent=_floor(generation, operand, output),
        output_rounding="nearest_even" if nearest else "toward_zero",
        truncate_fraction=13 if cut and not nearest else None, overflow="always_infinity",
    )  # fmt: skip
    rows = f"{gpu.upper() if gpu != 'ada' else 'Ada'}, {_ROWS}"
    evidence = _common(rows, nearest) | _said_of_floors(gpu, made.min_exponent)
    in_rows = gpu not in _NOT_IN_ROWS and not (
        nearest and (gpu, eight) in (("l40s", True), ("h100", True), ("h200", True))
    )
    if not in_rows:  # FP8 into binary16 by these instructions
        evidence = {
            name: Evidence("published", f"{_MMA_SIM}; no recorded rows of this output") if e.kind == "recorded" else e
            for name, e in evidence.items()
        }
    kind = "recorded" if in_rows else "published"
    source = rows if in_rows else _MMA_SIM
    evidence["fraction_bits"] = Evidence(kind, source)
    evidence["output_rounding"] = Evidence(kind, source)
    if made.truncate_fraction is not None:
        evidence["truncate_fraction"] = Evidence(kind, source)
    evidence["terms"] = Evidence(kind, source)
    if operand == "tf32" and terms == 8 and in_rows:
        evidence["terms"] = Evidence("published", f"{_MMA_SIM}; the rows have K = 4")
    elif eight and generation == "hopper":
        evidence["terms"] = Evidence("published", f"{_MMA_SIM}; the rows have K = 32, which tells 32 from fewer only")
    evidence["c"] = Evidence(kind, f"a term like the products: {source}")
    if eight and generation == "hopper":
        evidence["c"] = Evidence("published", f"WGMMA, a term like the products: {_MMA_SIM}; the rows have C = 0")
    if generation == "hopper":
        return made, _hopper(gpu, made, evidence)
    return made, evidence


def _separate(gpu: str, operand: str, output: str) -> tuple[Unit, dict]:
    """FP8 by mma on Hopper and Blackwell: two steps of the binary16 tensor core, and C added afterwards."""
    generation = _GPUS[gpu][0]
    nearest = output == "binary16"
    made = FusedDotUnit(
        16, _GENERATIONS[generation][1], output, operand=_OPERANDS[operand],
        min_exponent=_floor(generation, "fp16", output),  # whose tensor core it is
        output_rounding="nearest_even" if nearest else "toward_zero", k_order=_INTERLEAVED, c="after",
        overflow="always_infinity",
    )  # fmt: skip
    rows = f"{gpu.upper()}, {_ROWS}"
    in_rows = nearest or generation == "blackwell"
    evidence = _common(rows, nearest) | _said_of_floors(gpu, made.min_exponent)
    order = "two steps, k = 0, 1, 4, 5, ... then 2, 3, 6, 7, ..."
    if in_rows:
        evidence["output_rounding"] = Evidence("recorded", rows)
        evidence["c"] = Evidence(
            "recorded",
            f"the instruction's own C, added to the sum with one rounding to nearest even: {rows}",
        )
    else:
        evidence = {
            name: Evidence("published", f"{_COMPILED}; no recorded rows of this output") if e.kind == "recorded" else e
            for name, e in evidence.items()
        }
        evidence["output_rounding"] = evidence["c"] = Evidence("published", f"{_COMPILED}; no recorded rows")
    if nearest:
        evidence["k_order"] = Evidence("recorded", f"{order}: {rows}")
        evidence["terms"] = evidence["fraction_bits"] = Evidence("recorded", rows)
    else:
        untold = "; the rows do not tell 16 from 32" if in_rows else ""
        evidence["k_order"] = Evidence("published", f"{order}: {_COMPILED}{untold}")
        evidence["terms"] = Evidence("published", f"{_COMPILED}{untold}")
        evidence["fraction_bits"] = Evidence(
            "published",
            f"as binary16 operands have it: {_COMPILED}{'; the rows ask for 23 or more' if in_rows else ''}",
        )
    evidence["chaining"] = Evidence(
        "modelled",
        "more products than an instruction's 32: step after step, and C once. A chain of instructions adds each one's "
        "sum to C: softnum.matmul over 32 of K at a time, a result being the next C",
    )
    return made, _hopper(gpu, made, evidence) if generation == "hopper" else evidence


def _as_mma_sim(name: str, made: FusedDotUnit) -> tuple[Unit, dict]:
    """The same by MMA-Sim's choices."""
    if made.c == "after":
        raise ValueError(f"unit {name!r}: {_MMA_SIM} has no such instruction; leave out disputed='mma-sim'")
    return replace(made, min_exponent=None, zero_exponent=_ZERO), {"all": Evidence("published", _MMA_SIM)}


def _nvidia(name: str, output: str | None) -> tuple[Unit, dict]:
    gpu, operand, route = _parts(name)
    eight = _BYTES[operand] == 1
    output = output or ("binary16" if route else "binary32")
    known = ["binary32"] if operand in ("bf16", "tf32") else ["binary32", "binary16"]
    if output not in known:
        raise ValueError(f"unit {name!r} has the output {' or '.join(known)}, not {output}")
    if eight and (route or gpu == "b200"):
        return _separate(gpu, operand, output)
    return _usual(gpu, operand, output)


_X86 = "compared with the instruction on an Intel Xeon (family 6, model 207) by tests/core/test_x86_dot.py"


def _avx512_bf16() -> tuple[Unit, dict]:
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


def _vnni_int8() -> tuple[Unit, dict]:
    made = MadUnit("q32.0", operand=("uq8.0", "q8.0"), overflow="wrap")
    return made, {
        "operand": Evidence("measured", f"VPDPBUSD: a unsigned, b signed, four products at a time: {_X86}"),
        "overflow": Evidence("measured", f"modulo 2**32, so the order does not matter: {_X86} (VPDPBUSDS saturates)"),
    }


def _int8_int32() -> tuple[Unit, dict]:
    source = "PTX ISA, mma with s8 operands and s32 accumulator without .satfinite: wraps around"
    return MadUnit("q32.0", operand="q8.0", overflow="wrap"), {
        "products": Evidence("published", f"exact: {source}"),
        "overflow": Evidence("published", f"modulo 2**32, so the order does not matter: {source}"),
    }


_PTX = "PTX ISA, mma and wgmma"
_INTEGERS = "H200 and H100, tests/data/nvidia_h200 and nvidia_h100"
# of PTX: the format, the products of the longest instruction, and whether its rows were recorded
_NVIDIA_INTEGERS = {
    "int8": ("q8.0", 32, True), "uint8": ("uq8.0", 32, True), "int4": ("q4.0", 64, False), "uint4": ("uq4.0", 64, False),
}  # fmt: skip


def _nvidia_integer(operand: str, saturates: bool) -> tuple[Unit, dict]:
    """mma of integers: exact sums, which wrap around, or with .satfinite end at the ends once an instruction."""
    fmt, terms, in_rows = _NVIDIA_INTEGERS[operand]
    kind, source = ("recorded", _INTEGERS) if in_rows else ("published", f"{_PTX}; no recorded rows")
    evidence = {"products": Evidence(kind, f"exact, and so are sums: {source}")}
    if not saturates:
        evidence["overflow"] = Evidence(kind, f"modulo 2**32, so the order does not matter: {source}")
        return MadUnit("q32.0", operand=fmt, overflow="wrap"), evidence
    evidence["overflow"] = Evidence(kind, f".satfinite: the sum of all products and C ends at the ends: {source}")
    evidence["chunk"] = Evidence(
        kind if in_rows else "published",
        f"{terms} products an instruction, whose result is the next one's C: {source}. Shorter ones have a smaller chunk",
    )
    return MadUnit("q32.0", operand=fmt, chunk=terms, overflow="saturate"), evidence  # no chunk's own sum overflows


def _nvidia_b1_and() -> tuple[Unit, dict]:
    source = f"{_PTX}; no recorded rows"
    return MadUnit("q32.0", operand="uq1.0", overflow="wrap"), {
        "products": Evidence("published", f".and.popc: the count of bits that are 1 in both: {source}"),
        "overflow": Evidence("modelled", "modulo 2**32, as integers without .satfinite"),
    }


def _nvidia_fp64() -> tuple[Unit, dict]:
    rows = "H200, mma of f64 of all shapes, tests/data/nvidia_h200"
    return MadUnit("binary64", operand="binary64"), {
        "chaining": Evidence("recorded", f"fused multiply-adds, k ascending, from C: {rows}"),
        "rounding": Evidence("recorded", f"each to nearest even, nothing flushed: {rows}"),
        "special_values": Evidence("recorded", f"as IEEE 754 has them; NaN compared as NaN: {rows}"),
    }


_SPIKE = "Spike (riscv-isa-sim, June 2026)"
_RVBNA = "RISC-V Instruction Set Manual, volume I, RVBNA (August 2026)"
_ZVDOTA = "the draft of Zvdota and Zvbdota (riscv-isa-manual, pull request 2618)"


def _riscv(operand: str, vlen: int) -> tuple[Unit, dict]:
    """vfwdota.vv, vfwbdota.vv of bfloat16; vfqwdota.vv, vfqwbdota.vv of FP8: a register's products are a group."""
    terms = vlen // 8 // _BYTES[operand]
    made = GroupedDotUnit(terms, "binary32", operand=_OPERANDS[operand])
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


def _ibm_fp8_2018() -> tuple[Unit, dict]:
    source = "Wang et al. 2018"
    return MadUnit("e6m9", operand="e5m2", chunk=64), {
        "operand": Evidence("published", f"FP8 (1, 5, 2): {source}"),
        "accumulator": Evidence("published", f"FP16 (1, 6, 9), within chunks and between them: {source}"),
        "chunk": Evidence("published", f"64, then the chunks' sums in turn: {source}"),
        "rounding": Evidence("published", f"to nearest in products of matrices: {source}; ties to even are modelled"),
        "products": Evidence("modelled", "exact before they are added: the source has one rounding in view, the sum's"),
        "special_values": Evidence("modelled", "biases, subnormals, infinities and NaN as in IEEE 754"),
    }


def _cdna(generation: int, operand: str, terms: int) -> tuple[Unit, dict]:
    """16-bit operands on CDNA1 and CDNA2: products rounded, then pairs of them, then added to C."""
    flushes = {"flush_inputs": "positive", "flush_results": "subnormal"} if generation == 2 else {}
    made = MadUnit("binary32", operand=operand, lanes=terms, chunk=terms, reduction="tree", **flushes)
    evidence = {
        "products": Evidence("published", f"each rounded to binary32, to nearest even: {_MMA_SIM}"),
        "reduction": Evidence("published", f"neighbours added, rounded to binary32, and so on: {_MMA_SIM}"),
        "chunk": Evidence(
            "published", f"{terms} products, whose sum is added to C, a result being the next C: {_MMA_SIM}"
        ),
        "special_values": Evidence("published", f"as IEEE 754 has them: {_MMA_SIM}"),
    }
    if generation == 1:
        one = "MATLAB-tensor-core's MI100 has one exact sum of the products and C, rounded once"
        for name in ("products", "reduction"):
            evidence[name] = Evidence("published, disputed", f"{evidence[name].source}. {one}")
        return made, evidence
    both = f"{_MMA_SIM}, and MATLAB-tensor-core's MI210"
    return made, evidence | {
        "flush_inputs": Evidence("published", f"subnormal a, b and C are +0, and so is -0: {_MMA_SIM}"),
        "flush_results": Evidence(
            "published", f"products, sums of pairs and sums that are subnormal are zeros: {both}"
        ),
    }


def _cdna1_as_matlab(name: str) -> tuple[Unit, dict]:
    """CDNA1 by MATLAB-tensor-core's choice."""
    other = _OTHERS[name]()[0]
    made = GroupedDotUnit(
        other.chunk, "binary32", operand=other.operand, reduction="exact", partial_rounding=None,
        rounding="nearest_even",
    )  # fmt: skip
    source = "MATLAB-tensor-core, MI100: the products and C added exactly, and rounded once to nearest even"
    return made, {"all": Evidence("published, disputed", f"{source}. {_MMA_SIM} rounds each product and pair")}


def _cdna3(operand: str, terms: int) -> tuple[Unit, dict]:
    """16 and 8 bits, and xf32, on CDNA3: products aligned and added, then their sum and C."""
    eight = terms == 16
    made = TwoStageDotUnit(
        terms, 24, 31, 24, "binary32", operand=operand, interleave=2 if eight else 1, c_reach=25 if eight else None,
        product_limit=128, zero_exponent=_ZERO,
    )  # fmt: skip
    said = {
        "terms": f"{terms} products, whose sum meets C; the result is the next C",
        "fraction_bits": "products cut off toward zero at 24 bits below their largest exponent",
        "alignment": "their sum and C rounded toward minus infinity, at 31 and 24 bits below the larger exponent",
        "output_rounding": "one rounding to nearest even; subnormals stay",
        "product_limit": "a finite product of 2**128 or more makes the result infinite",
        "zero_exponent": f"zeros count with the exponent {_ZERO}",
        "special_values": "NaN, infinite times zero and infinities of both signs give NaN, any other infinity wins",
        "underflow": "what rounds to zero keeps its sign; a zero sum is +0",
    }
    if eight:
        said["interleave"] = "even and odd k are aligned on their own, these sums as the whole, rounded down"
        said["c_reach"] = "C counts as 0 where its exponent is more than 25 below"
    return made, {name: Evidence("published", f"{text}: {_MMA_SIM}") for name, text in said.items()}


def _cdna_chain(fmt: str) -> tuple[Unit, dict]:
    """Operands as wide as the sums: fused multiply-adds in turn."""
    source = f"k ascending, from C, IEEE 754's, nothing flushed: {_MMA_SIM}"
    return MadUnit(fmt, operand=fmt), {
        "chaining": Evidence("published", source),
        "rounding": Evidence("published", source),
    }


_OTHERS = {
    **{f"amd_cdna{n}_fp16": partial(_cdna, n, "binary16", 4) for n in (1, 2)},
    "amd_cdna1_bf16": partial(_cdna, 1, "bfloat16", 2),
    "amd_cdna2_bf16": partial(_cdna, 2, "bfloat16", 2),
    "amd_cdna2_bf16_1k": partial(_cdna, 2, "bfloat16", 4),
    "amd_cdna3_fp16": partial(_cdna3, "binary16", 8),
    "amd_cdna3_bf16": partial(_cdna3, "bfloat16", 8),
    "amd_cdna3_xf32": partial(_cdna3, "tf32", 4),
    "amd_cdna3_fp8": partial(_cdna3, "e4m3fnuz", 16),
    "amd_cdna3_bf8": partial(_cdna3, "e5m2fnuz", 16),
    **{f"amd_cdna{n}_fp32": partial(_cdna_chain, "binary32") for n in (1, 2, 3)},
    **{f"amd_cdna{n}_fp64": partial(_cdna_chain, "binary64") for n in (2, 3)},
    "x86_avx512_bf16": _avx512_bf16,
    "x86_vnni_int8": _vnni_int8,
    "ibm_fp8_2018": _ibm_fp8_2018,
    "int8_int32": _int8_int32,
    **{f"nvidia_{name}": partial(_nvidia_integer, name, False) for name in _NVIDIA_INTEGERS},
    **{f"nvidia_{name}_satfinite": partial(_nvidia_integer, name, True) for name in _NVIDIA_INTEGERS},
    "nvidia_b1_and": _nvidia_b1_and,
    "nvidia_fp64": _nvidia_fp64,
    **{
        f"riscv_rvbna_{operand}_vlen{vlen}": partial(_riscv, operand, vlen)
        for operand in ("bf16", "e4m3", "e5m2")
        for vlen in (128, 256, 512)
    },
}
_NVIDIA = [
    *(f"nvidia_{gpu}_{operand}" for gpu, (_, operands) in _GPUS.items() for operand in operands),
    *(f"nvidia_{gpu}_{operand}_mma" for gpu in ("h100", "h200", "b200") for operand in ("e4m3", "e5m2")),
]


def units() -> tuple[str, ...]:
    """The names that `unit` knows.

    Examples
    --------
    >>> import softnum as sn
    >>> [name for name in sn.units() if "a100" in name]
    ['nvidia_a100_fp16', 'nvidia_a100_bf16', 'nvidia_a100_tf32']
    """
    return (*_NVIDIA, *BLOCK_SCALED, *_OTHERS, *BLOCK_UNITS)


#: of each of `DISPUTED`, the presets that it has otherwise
_CHOSEN_OTHERWISE = {
    "mma-sim": {*_NVIDIA, *BLOCK_SCALED},
    "matlab": {"amd_cdna1_fp16", "amd_cdna1_bf16"},
}


@lru_cache(maxsize=256)
def _made(name: str, output: str | None, disputed: str | None) -> Unit:
    if disputed is not None and name not in _CHOSEN_OTHERWISE[disputed]:
        raise ValueError(f"unit {name!r}: what {disputed!r} says of it is the preset; leave out disputed={disputed!r}")
    if name in (*BLOCK_UNITS, *BLOCK_SCALED):
        if output is not None:
            raise ValueError(f"unit {name!r} has one output; leave out output={output!r}")
        made, rows = block_preset(name) if name in BLOCK_UNITS else block_scaled(name)
        evidence = {what: Evidence(*row) for what, row in rows.items()}
        if disputed is not None:
            made, evidence = block_scaled_as_mma_sim(made), {"all": Evidence("published", _MMA_SIM)}
    elif name in _OTHERS:
        if output is not None:
            raise ValueError(f"unit {name!r} has one output; leave out output={output!r}")
        made, evidence = _OTHERS[name]() if disputed is None else _cdna1_as_matlab(name)
    else:
        made, evidence = _nvidia(name, output)
        if disputed is not None:
            made, evidence = _as_mma_sim(name, made)
    vars(made)["evidence"] = evidence  # no field: units that compute the same are equal, whatever that rests on
    return made


def unit(name: str, output=None, *, disputed=None) -> Unit:
    """A unit of real hardware.

    Parameters
    ----------
    name : str
        One of `units`. ``nvidia_GPU_OPERAND``: tensor cores; FP8 on H100 and H200 is WGMMA there, and ``..._mma`` the
        other instruction, into binary16 unless told; ``nvidia_tcgen05_OPERAND``: a B200's instructions of that name,
        ``mxf8f6f4``, ``mxf4`` and ``mxf4nvf4`` those of blocks with scales (a `BlockFusedDotUnit`; other operands than
        the one shown: ``dataclasses.replace(unit, operand=...)``).
        ``nvidia_int8``, ``nvidia_uint4_satfinite`` and so on, ``nvidia_b1_and``, ``nvidia_fp64``: mma, of every GPU
        that has it. ``riscv_rvbna_OPERAND_vlenN``: RISC-V's widening dot products of vector registers of N bits.
        ``amd_cdnaN_OPERAND``: AMD's matrix cores, ``bf16_1k`` the instructions of that name, ``fp8`` e4m3fnuz, ``bf8``
        e5m2fnuz (the pairs of both: ``dataclasses.replace(unit, operand=...)``). ``x86_avx512_bf16``:
        VDPBF16PS. ``x86_vnni_int8``: VPDPBUSD, a unsigned, b signed. ``ibm_fp8_2018``: Wang et al. 2018.
        ``int8_int32``: signed bytes into 32 bits that wrap around. ``ocp_mx...``, ``nvfp4``: block formats, as far as
        their sources go (a `BlockDotUnit`).
    output : {"binary32", "binary16"}, optional
        The other output of a tensor core, where it has one: then C is of that format too.
    disputed : {"mma-sim", "matlab"}, optional
        Whose choices are taken where sources disagree and no hardware has been asked: MMA-Sim's of a tensor core,
        MATLAB-tensor-core's of CDNA1. By default those that have the most for them; ``evidence`` calls them "published,
        disputed" and says why.

    Returns
    -------
    Unit
        With ``evidence``, a dict: for each property what it rests on (`Evidence`). C is the instruction's own.

    Raises
    ------
    ValueError
        If there is no such unit, or it has no such output, or nothing of it is disputed.

    Examples
    --------
    >>> import softnum as sn
    >>> v100 = sn.unit("nvidia_v100_fp16")
    >>> v100.terms, v100.fraction_bits, v100.evidence["fraction_bits"].kind
    (4, 23, 'recorded')
    >>> print(sn.unit("nvidia_v100_fp16", output="binary16"))
    acc = nearest_even(acc + a0*b0 + ... + a3*b3): binary16 x binary16 -> binary16, exact products and acc cut to 23
    fraction bits below the largest exponent, then added, overflow always_infinity
    """
    if name not in units():
        near = difflib.get_close_matches(str(name), units(), n=1, cutoff=0.5) or [
            known for known in units() if str(name).lower() in known
        ]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown unit {name!r}{hint} (known: softnum.units(), or `softnum units`)")
    if disputed not in (None, *DISPUTED):
        raise ValueError(f"disputed is None or {' or '.join(map(repr, DISPUTED))}, got {disputed!r}")
    return _made(name, None if output is None else str(format(output)), disputed)


_KINDS = {units.__name__: units for units, family in FAMILIES.items() if family.from_text}
_PARTS = {kind.__name__: kind for kind in (FloatFormat, FixedFormat, BlockFormat)}


def unit_of(what) -> Unit:
    """A unit, given itself, by a preset's name, or by the expression that its `repr` shows.

    Raises ValueError for text that is neither.

    >>> from softnum.mac.presets import unit_of
    >>> unit_of("MadUnit('e6m9', operand='e5m2', chunk=64)").chunk
    64
    """
    if isinstance(what, Unit):
        return what
    if not isinstance(what, str):
        raise TypeError(f"a unit, the name of one or its expression is needed, got {what!r}")
    if "(" not in what:
        return unit(what)
    try:
        return _evaluated(ast.parse(what.strip(), mode="eval").body, what)
    except (SyntaxError, RecursionError, MemoryError):  # the last two of ten thousand brackets
        raise ValueError(f"no expression of a unit: {what!r}; one reads MadUnit('e6m9', operand='e5m2')") from None


def _evaluated(node, text: str):
    """The value of an expression of names of units and formats, called with constants: nothing else is run."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple() | ast.List():
            return tuple(_evaluated(part, text) for part in node.elts)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Call(func=ast.Name(id=name)) if name in _KINDS | _PARTS:
            args = [_evaluated(part, text) for part in node.args]
            options = {k.arg: _evaluated(k.value, text) for k in node.keywords if k.arg}
            try:
                return (_KINDS | _PARTS)[name](*args, **options)
            except TypeError as error:  # arguments that it does not take
                raise ValueError(f"no expression of a unit: {ast.unparse(node)!r}: {error}") from None
    known = ", ".join(_KINDS)
    raise ValueError(f"no expression of a unit: {text!r}, at {ast.unparse(node)!r}; known are {known} with constants")
