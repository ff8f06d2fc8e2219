"""Formats of every kind: those with a quick path from binary32, and wide ones."""

from softnum.formats.names import format as format_of
from softnum.formats.names import format_names
from softnum.formats.scalar import FloatFormat

#: the registered names, but for formats whose codes take two words
NARROW = [name for name in format_names() if not format_of(name).leads]
NAMED = [
    "e5m2", "e4m3", "e4m3fn", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e3m4", "e3m2fn", "e2m3fn", "e2m1fn", "binary16",
    "bfloat16", "tf32", "e6m9", "dlfloat16", "e8m0fnu", "binary32", "binary8p3se", "binary8p4sf", "binary8p1se",
    "binary8p4ue", "q4.4", "uq4.4", "q8.8", "q1.15", "q12.12", "q0.5", "q23.0", "q1.22", "q1.23",
]  # fmt: skip
MADE = [
    *(FloatFormat(8, m) for m in range(1, 24) if m not in (7, 10, 23)),
    *(FloatFormat(5, m, specials="fnuz") for m in (1, 6, 11)),
    *(FloatFormat(4, m, specials="none") for m in (1, 2, 9, 17)),
    FloatFormat(5, 10, bias=140, name="lowest-binary32"),  # every subnormal of binary32's is one of its values
    FloatFormat(3, 12, bias=133, name="subnormals-only"),
    FloatFormat(3, 3, bias=60, name="tiny"),
    FloatFormat(3, 3, bias=-110, name="huge"),
    FloatFormat(5, 2, specials="p3109", name="e5m2-p3109"),
    FloatFormat(5, 2, lowest_binade="zero", name="e5m2-flushing"),
    FloatFormat(5, 2, nan_codes="none", infinities=True, negative_zero=True, name="e5m2-inf-without-nan"),
    FloatFormat(5, 2, nan_codes="all_ones", infinities=True, negative_zero=False, name="e5m2-inf-nan-no-minus-zero"),
]
FORMATS = [*map(format_of, NAMED), *MADE]
WIDE = [
    "binary64", "e11m40", "e11m1", "e8m40", "e10m20", "q4.4", "q32.20", "q1.51", "q53.0", "uq20.20", "e4m3fn", "e5m2",
    "e2m1fn", "binary8p3se", "e6m9", "dlfloat16", "e8m0fnu", "binary12p5ue",
]  # fmt: skip
