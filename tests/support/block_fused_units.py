"""Units of blocks with scales: with a fast path, and without."""

from dataclasses import replace

import softnum as sn
from tests.support.block_units import small

ALWAYS = {"overflow": "always_infinity"}
SINGLE = sn.BlockFormat("e2m1fn", "e4m3fn", 16)  # what an instruction takes of nvfp4


def fused(terms, bits, accumulator, fmt, **options):
    return sn.BlockFusedDotUnit(terms, bits, accumulator, operand=fmt, **options)


def of_machine(kind, fmt=None, disputed=None):
    unit = sn.unit(f"nvidia_tcgen05_{kind}", disputed=disputed)
    return unit if fmt is None else replace(unit, operand=fmt)


FAST = [
    *(of_machine(kind, None, disputed) for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4") for disputed in (None, "mma-sim")),
    of_machine("mxf8f6f4", ("mxfp8_e5m2", "mxfp4")),
    of_machine("mxf8f6f4", ("mxfp6_e2m3", "mxfp6_e3m2"), "mma-sim"),
    of_machine("mxf4nvf4", SINGLE),
    of_machine("mxf4nvf4", SINGLE, "mma-sim"),
    of_machine("mxf4nvf4", (small("e2m1fn", size=16), SINGLE)),
    fused(8, 20, "binary32", small("e4m3fn", size=8), truncate_fraction=9, min_exponent=-30),
    fused(12, 11, "binary32", small("e3m2fn", size=5)),
    fused(32, 20, "binary32", small("e3m2fn", size=8), group=4, truncate_fraction=9, **ALWAYS),
    fused(6, 7, "binary32", small("e2m3fn", "e4m3fn", 6), group=3, min_exponent=-3, zero_exponent=-130, **ALWAYS),
]
SLOW = [
    fused(8, 5, "binary16", small("e5m2", "e4m3fn", 4), group=4, output_rounding="nearest_even", zero_exponent=-126),
    fused(6, 9, "e5m7", small("e5m2", "e4m3fn", 3), truncate_fraction=4),
    fused(6, 9, "bfloat16", small("e5m2", "e4m3fn", 3), truncate_fraction=4, zero_exponent=-126, overflow="saturate"),
    fused(6, 9, "e4m3fn", small("q2.6", size=6), group=3),
    fused(8, 30, "binary32", small("binary16", size=4)),
    fused(4, 100, "binary64", (small("e5m2", size=8), small("e3m4", "e4m3fn", 8)), output_rounding="up"),
]
ALL = FAST + SLOW
