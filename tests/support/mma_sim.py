"""Which preset answers which file of vectors that MMA-Sim computed, and their rows as the unit takes them.

The folder has a manifest.json and an .npz for each arithmetic: operands a, b (rows, K), C and the result, as bit
patterns; what the result would be if zeros counted otherwise (d_skip, d_c126); chains of four instructions (chain_...).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

import softnum as sn

FORMATS = {
    "f16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2", "f32": "binary32",
    "f64": "binary64", "xf32": "tf32", "fp8": "e4m3fnuz", "bf8": "e5m2fnuz",
}  # fmt: skip
_CUT = {"tf32": 13, "xf32": 13}  # bits of a pattern of binary32 that count for nothing
_OPERAND = {"f16": "fp16", "bf16": "bf16", "tf32": "tf32", "e4m3": "e4m3", "e5m2": "e5m2"}

# (bits kept, the most products of a step, whether FP8) -> presets, of which each answers
_NVIDIA = {
    (23, 4, False): ("v100",), (24, 8, False): ("turing", "a100", "a2", "ada", "l40s"),
    (25, 16, False): ("h100", "h200", "b200", "rtx_blackwell", "tcgen05"), (13, 16, True): ("ada", "l40s"),
    (13, 32, True): ("h100", "h200"), (25, 32, True): ("rtx_blackwell", "tcgen05"),
}  # fmt: skip


def manifest(folder: Path) -> dict:
    """The arithmetics of a folder, by name."""
    found = json.loads((folder / "manifest.json").read_text())
    return {entry["name"]: entry for entry in found["arithmetics"]}


def presets(entry: dict) -> list[str]:
    """The presets that answer an arithmetic; [] where there is none yet."""
    a, b, bits = entry["a"], entry["b"], entry.get("fraction_bits")
    family = entry["name"].partition("_")[0]
    if family in ("cdna1", "cdna2"):
        more = "_1k" if (a, entry["terms_per_step"]) == ("bf16", 4) else ""
        return [f"amd_{family}_{_OPERAND[a]}{more}"]
    if family == "cdna3":
        return [f"amd_cdna3_{_OPERAND.get(a, a)}"]
    if family == "fma":
        return [name for name in sn.units() if name.startswith("amd_") and name.endswith(f"_fp{a[1:]}")]
    if family != "nv":
        return []
    eight = a in ("e4m3", "e5m2")
    names = []
    for (kept, most, of_eight), gpus in _NVIDIA.items():
        width = most if a != "tf32" else most // 2
        if (kept, of_eight) != (bits, eight) or entry["terms_per_step"] > width:
            continue
        if (entry["K"] > entry["terms_per_step"]) and entry["terms_per_step"] != width:
            continue  # steps of so many products follow each other
        for gpu in gpus:
            name = f"nvidia_{gpu}_{_OPERAND[a]}"
            if name in sn.units() and (not (a != b and not eight) or gpu == "tcgen05"):
                names.append(name)
    return names


def unit_of(name: str, entry: dict, disputed: str | None = None):
    """The unit of a preset for an arithmetic, whose operands may be of two formats."""
    if not name.startswith("nvidia"):
        return replace(sn.unit(name), operand=(FORMATS[entry["a"]], FORMATS[entry["b"]]))
    output = "binary16" if entry["d"] == "f16" else "binary32"
    made = sn.unit(name, None if re.search("_(bf16|tf32)$", name) else output, disputed=disputed)
    return replace(made, operand=(FORMATS[entry["a"]], FORMATS[entry["b"]]))


def codes(patterns: np.ndarray, kind: str) -> np.ndarray:
    """Codes of softnum's format."""
    fmt = sn.format(FORMATS[kind])
    return (patterns >> _CUT.get(kind, 0)).astype(fmt.storage_dtype)


def same(got: np.ndarray, want: np.ndarray, fmt) -> np.ndarray:
    """Where two arrays of codes agree, NaNs as NaNs."""
    both = [np.isnan(sn.decode(codes.astype(fmt.storage_dtype), fmt)) for codes in (got, want)]
    return (got == want) | (both[0] & both[1])
