"""MadUnits of every shape: lanes, reductions, chunks, compensation, stochastic, every mode."""

import itertools

from softnum.formats.modes import ROUNDING_MODES
from tests.support.matmul_units import TERNARY, sr, unit

SHAPES = [
    {"lanes": 2},
    {"lanes": 3, "reduction": "tree"},
    {"lanes": 5, "reduction": "pairwise", "chunk": 7},
    {"lanes": 4, "chunk": 3},
    {"compensated": "kahan"},
    {"compensated": "kahan", "lanes": 2, "chunk": 4, "reduction": "tree"},
]
FLOATS = [
    ("e6m9", "e5m2", {}),
    ("e5m2", "e5m2", {"product": "e5m2"}),
    ("binary16", "binary16", {"rounding": "toward_zero"}),
    ("bfloat16", "bfloat16", {"product": "e6m9", "product_rounding": "up"}),
    ("e4m3fnuz", "e4m3fnuz", {}),
    ("e4m3fn", "e4m3fn", {"overflow": "saturate"}),
    ("binary8p3se", "binary8p3se", {}),
    ("dlfloat16", "e5m2", {}),
    ("binary64", "binary32", {"rounding": "to_odd"}),
    ("e15m48", "binary64", {"product": "e15m40"}),
    ("binary32", TERNARY, {}),
]
FIXED = [
    ("q8.8", "q4.4", {}),
    ("q4.4", "q4.4", {"overflow": "wrap", "rounding": "down"}),
    ("q8.4", "q4.4", {"product": "q4.4", "product_rounding": "nearest_away"}),
    ("uq8.8", "uq4.4", {}),
    ("q32.0", "q8.0", {}),
    ("q32.0", "q8.0", {"overflow": "wrap"}),
    ("q24.8", ("e4m3fn", "q4.0"), {}),
    ("q24.8", ("e4m3fn", "q4.0"), {"product": "e5m2", "overflow": "wrap"}),
    ("q16.48", "q1.31", {"overflow": "wrap"}),
]
UNITS = [unit(acc, op, **kind, **shape) for acc, op, kind in (*FLOATS, *FIXED) for shape in SHAPES]
CHUNK_SUMS = [
    unit("binary8p4ue", "binary8p3se", chunk=5, lanes=3, rounding="to_odd", overflow="p3109_v3_2_1"),
    unit("binary8p4ue", "binary8p3se", product="e5m2", overflow="p3109_v3_2_1"),
    unit("e5m2", "e5m2", chunk=3, outer_accumulator="e6m9", lanes=2),
    unit("e6m9", "e5m2", chunk=5, outer_accumulator="e5m2", compensated="kahan"),
    unit("binary16", "binary16", chunk=3, outer_accumulator="binary32", lanes=4, reduction="pairwise"),
    unit("q8.8", "q4.4", chunk=4, outer_accumulator="q4.4", overflow="wrap", lanes=3),
    unit("q8.8", "e5m2", chunk=4, outer_accumulator="binary32", overflow="wrap", product="q6.6"),
    unit("binary32", "q8.0", chunk=4, outer_accumulator="q32.0", overflow="infinity", lanes=2),
]
STOCHASTIC = [
    sr(acc, op, r, **kind, **shape)
    for (acc, op, kind), shape, r in itertools.product(
        (("e6m9", "e5m2", {}), ("e6m9", "e5m2", {"product": "e5m2"}), ("q4.4", "q4.4", {})),
        (
            {"lanes": 3},
            {"lanes": 4, "chunk": 5, "reduction": "tree"},
            {"lanes": 7, "chunk": 8, "reduction": "pairwise"},
        ),
        (9, 20),
    )
]
STOCHASTIC += [
    unit(
        "e6m9", "e5m2", product="e5m2", product_rounding="stochastic", stochastic_bits=8, compensated="kahan", chunk=3
    ),
    unit("e6m9", "e5m2", product="e5m2", product_rounding="down", rounding="stochastic_floor", lanes=4),
]
MODES = [
    unit("e4m3", "e5m2", rounding=m, stochastic_bits=6, lanes=3, chunk=5, reduction="tree") for m in ROUNDING_MODES
]
MODES += [unit("q4.4", "q4.4", rounding=m, stochastic_bits=3, lanes=2, overflow="wrap") for m in ROUNDING_MODES]
MODES += [unit("e6m3", "e5m2", product="e4m2", rounding=m, stochastic_bits=11) for m in ROUNDING_MODES]
NEW = [*UNITS, *CHUNK_SUMS, *STOCHASTIC, *MODES]
