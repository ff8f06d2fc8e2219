"""Files of vectors that MMA-Sim computed of products with block scales: which preset answers which, and their rows.

As `tests.support.mma_sim`, and scale_a, scale_b (rows, K / block): codes of ue8m0, or of ue4m3 with a sign bit.
"""

from __future__ import annotations

import numpy as np

import softnum as sn

ELEMENTS = {"e4m3": "e4m3fn", "e5m2": "e5m2", "e2m1": "e2m1fn"}
SCALES = {"ue8m0": "e8m0fnu", "ue4m3": "e4m3fn"}
MACHINES = ("tcgen05", "rtx_blackwell")


def operand(entry: dict) -> tuple:
    """The block formats of an arithmetic."""
    return tuple(sn.BlockFormat(ELEMENTS[entry[x]], SCALES[entry["scale"]], entry["block"]) for x in "ab")


def presets(entry: dict) -> list[str]:
    """The presets that answer an arithmetic."""
    kinds = ["mxf8f6f4"]
    if entry["K"] == 64:
        kinds = ["mxf4nvf4", *(["mxf4"] if (entry["scale"], entry["block"]) == ("ue8m0", 32) else [])]
    return [f"nvidia_{machine}_{kind}" for machine in MACHINES for kind in kinds]


def product(unit, a, b, scale_a, scale_b, c, return_stats=False) -> np.ndarray:
    """Codes of many sums by `matmul`, or with statistics by the definition; patterns as the files have them."""
    x, y = unit.operand
    left = sn.BlockArray(a[:, None, :], scale_a[:, None, :], x, -1)
    right = sn.BlockArray(b[:, :, None], scale_b[:, :, None], y, -2)
    start = c.view(np.float32)[:, None, None]
    got = sn.matmul(left, right, unit, start, return_stats=return_stats)
    return (got[0] if return_stats else got)[:, 0, 0].view(np.uint32)
