"""NVIDIA's matrix instructions: tensor cores in floating point, and mma of integers, bits and binary64.

Sources: rows that an H200 and an H100 computed (tests/data, by kernels/recording); recorded rows of eight GPUs
(north-numerical-computing/MATLAB-tensor-core, model_validation; Khattak and Mikaitis, arXiv 2512.07004); MMA-Sim (arXiv
2511.10909); PTX ISA (mma, wgmma).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from softnum.mac.fused import FusedDotUnit
from softnum.mac.machines.preset import MATLAB, MMA_SIM, ZERO_OF_MMA_SIM, Evidence, Made, Preset
from softnum.mac.mad import MadUnit

__all__ = ["INTEGERS", "TENSOR_CORES"]

_ROWS = "recorded rows, MATLAB-tensor-core, model_validation (arXiv 2512.07004)"
_H200 = "H200, and H100 alike, their mma and wgmma of each type, tests/data/nvidia_h200"
_KHATTAK = "Khattak and Mikaitis (arXiv 2512.07004)"
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
        matlab = {"rtx_blackwell": f"as of a B200: {MATLAB}; "}.get(
            gpu, "as of other generations, of which others say it; "
        )
        kind = "published, disputed" if gpu == "rtx_blackwell" else "modelled"
        other = f"{MMA_SIM} gives every zero the exponent {ZERO_OF_MMA_SIM}, and states no other floor"
        return {
            "min_exponent": Evidence(kind, f"{least}: {matlab}{other}"),
            "zero_exponent": Evidence(kind, f"none: {matlab}{other}"),
        }
    told = f"{least}, which is {'4' if least is None or least > -100 else '-108'} - F"
    return {
        "min_exponent": Evidence(
            "published, disputed",
            f"{'none' if least is None else told}: {MATLAB}; {MMA_SIM} states no floor but the exponent of zeros. "
            "The rows do not reach it; an H200 and an H100 follow the former, with F = 25",
        ),
        "zero_exponent": Evidence(
            "published, disputed",
            f"none: zero products and a C of zero take no part in M: {MATLAB}; {MMA_SIM} gives every zero the "
            f"exponent {ZERO_OF_MMA_SIM} (since January 2026). The rows have no zeros; an H200 and an H100 leave them "
            "out",
        ),
    }


def _common(rows: str, nearest: bool) -> dict[str, Evidence]:
    return {
        "products": Evidence("recorded", f"exact, not normalised: {rows}"),
        "alignment": Evidence("recorded", f"cut off toward zero, by sign and magnitude: {rows}"),
        "overflow": Evidence(
            "published",
            f"infinite, {'as nearest even has it' if nearest else 'though sums are cut off'}: {MMA_SIM}; not in the "
            "rows",
        ),
        "chaining": Evidence("published", f"more products than a step's: step after step, {MMA_SIM}; not in the rows"),
        "special_values": Evidence(
            "published", f"{MMA_SIM}; not in the rows. The hardware's NaN is 0x7FFFFFFF (0x7FFF), softnum's canonical"
        ),
        "zero": Evidence("published", f"a zero sum is +0: {MMA_SIM}; not in the rows"),
        "underflow": Evidence("published", f"a sum that rounds to zero is +0: {MMA_SIM}; recorded on an H200"),
    }


def _hopper(gpu: str, made: FusedDotUnit, evidence: dict) -> dict:
    """What an H200 and an H100 settle: of each instruction, subnormals, zeros, specials and chains among the rows."""
    told = {
        "products": "exact, not normalised",
        "alignment": "cut off toward zero, by sign and magnitude; zeros take no part in the largest exponent, which "
        f"{MMA_SIM} has otherwise",
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


def _usual(gpu: str, operand: str, output: str) -> Made:
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
            name: Evidence("published", f"{MMA_SIM}; no recorded rows of this output") if e.kind == "recorded" else e
            for name, e in evidence.items()
        }
    kind = "recorded" if in_rows else "published"
    source = rows if in_rows else MMA_SIM
    evidence["fraction_bits"] = Evidence(kind, source)
    evidence["output_rounding"] = Evidence(kind, source)
    if made.truncate_fraction is not None:
        evidence["truncate_fraction"] = Evidence(kind, source)
    evidence["terms"] = Evidence(kind, source)
    if operand == "tf32" and terms == 8 and in_rows:
        evidence["terms"] = Evidence("published", f"{MMA_SIM}; the rows have K = 4")
    elif eight and generation == "hopper":
        evidence["terms"] = Evidence("published", f"{MMA_SIM}; the rows have K = 32, which tells 32 from fewer only")
    evidence["c"] = Evidence(kind, f"a term like the products: {source}")
    if eight and generation == "hopper":
        evidence["c"] = Evidence("published", f"WGMMA, a term like the products: {MMA_SIM}; the rows have C = 0")
    if generation == "hopper":
        return made, _hopper(gpu, made, evidence)
    return made, evidence


def _separate(gpu: str, operand: str, output: str) -> Made:
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
        "sum to C: softnum.ChunkedDotUnit of this unit with c='fused', in chunks of 32",
    )
    return made, _hopper(gpu, made, evidence) if generation == "hopper" else evidence


def _as_mma_sim(name: str, made: FusedDotUnit) -> Made:
    """The same by MMA-Sim's choices."""
    if made.c == "after":
        raise ValueError(f"unit {name!r}: {MMA_SIM} has no such instruction; leave out disputed='mma-sim'")
    return replace(made, min_exponent=None, zero_exponent=ZERO_OF_MMA_SIM), {"all": Evidence("published", MMA_SIM)}


def _core(name: str, output: str | None) -> Made:
    gpu, operand, route = _parts(name)
    output = output or ("binary16" if route else "binary32")
    return (_separate if _BYTES[operand] == 1 and (route or gpu == "b200") else _usual)(gpu, operand, output)


def _int8_int32(output: None) -> Made:
    source = "PTX ISA, mma with s8 operands and s32 accumulator without .satfinite: wraps around"
    return MadUnit("q32.0", operand="q8.0", overflow="wrap"), {
        "products": Evidence("published", f"exact: {source}"),
        "overflow": Evidence("published", f"modulo 2**32, so the order does not matter: {source}"),
    }


_PTX = "PTX ISA, mma and wgmma"
_INTEGER_ROWS = "H200 and H100, tests/data/nvidia_h200 and nvidia_h100"
# of PTX: the format, the products of the longest instruction, and whether its rows were recorded
_INTEGERS = {
    "int8": ("q8.0", 32, True), "uint8": ("uq8.0", 32, True), "int4": ("q4.0", 64, False),
    "uint4": ("uq4.0", 64, False),
}  # fmt: skip


def _integer(operand: str, saturates: bool, output: None) -> Made:
    """mma of integers: exact sums, which wrap around, or with .satfinite end at the ends once an instruction."""
    fmt, terms, in_rows = _INTEGERS[operand]
    kind, source = ("recorded", _INTEGER_ROWS) if in_rows else ("published", f"{_PTX}; no recorded rows")
    evidence = {"products": Evidence(kind, f"exact, and so are sums: {source}")}
    if not saturates:
        evidence["overflow"] = Evidence(kind, f"modulo 2**32, so the order does not matter: {source}")
        return MadUnit("q32.0", operand=fmt, overflow="wrap"), evidence
    evidence["overflow"] = Evidence(kind, f".satfinite: the sum of all products and C ends at the ends: {source}")
    evidence["chunk"] = Evidence(
        kind,
        f"{terms} products an instruction, whose result is the next one's C: {source}. Shorter ones: a smaller chunk",
    )
    return MadUnit("q32.0", operand=fmt, chunk=terms, overflow="saturate"), evidence  # no chunk's own sum overflows


def _b1_and(output: None) -> Made:
    source = f"{_PTX}; no recorded rows"
    return MadUnit("q32.0", operand="uq1.0", overflow="wrap"), {
        "products": Evidence("published", f".and.popc: the count of bits that are 1 in both: {source}"),
        "overflow": Evidence("modelled", "modulo 2**32, as integers without .satfinite"),
    }


def _fp64(output: None) -> Made:
    rows = "H200, mma of f64 of all shapes, tests/data/nvidia_h200"
    return MadUnit("binary64", operand="binary64"), {
        "chaining": Evidence("recorded", f"fused multiply-adds, k ascending, from C: {rows}"),
        "rounding": Evidence("recorded", f"each to nearest even, nothing flushed: {rows}"),
        "special_values": Evidence("recorded", f"as IEEE 754 has them; NaN compared as NaN: {rows}"),
    }


_NAMES = (
    *(f"nvidia_{gpu}_{operand}" for gpu, (_, operands) in _GPUS.items() for operand in operands),
    *(f"nvidia_{gpu}_{operand}_mma" for gpu in ("h100", "h200", "b200") for operand in ("e4m3", "e5m2")),
)
TENSOR_CORES = {
    name: Preset(
        partial(_core, name),
        ("binary32",) if name.endswith(("_bf16", "_tf32")) else ("binary32", "binary16"),
        {"mma-sim": _as_mma_sim},
    )
    for name in _NAMES
}
INTEGERS = {
    "int8_int32": Preset(_int8_int32),
    **{f"nvidia_{name}": Preset(partial(_integer, name, False)) for name in _INTEGERS},
    **{f"nvidia_{name}_satfinite": Preset(partial(_integer, name, True)) for name in _INTEGERS},
    "nvidia_b1_and": Preset(_b1_and),
    "nvidia_fp64": Preset(_fp64),
}
