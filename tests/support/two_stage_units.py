"""Units in two stages; the first four have a fast path."""

import softnum as sn


def staged(terms, bits, accumulator, operand, **options):
    return sn.TwoStageDotUnit(terms, *bits, accumulator, operand=operand, **options)


CDNA3 = {"product_limit": 128, "zero_exponent": -126}
UNITS = [
    staged(8, (24, 31, 24), "binary32", "binary16", **CDNA3),
    staged(4, (24, 31, 24), "binary32", "tf32", **CDNA3),
    staged(16, (24, 31, 24), "binary32", ("e4m3fnuz", "e5m2fnuz"), interleave=2, c_reach=25, **CDNA3),
    staged(8, (24, 31, 24), "binary32", "bfloat16", product_limit=128),
    staged(3, (5, 9, 4), "e5m6", "e5m2"),
    staged(4, (3, 2, 7), "e5m3", "e4m3", interleave=2, output_rounding="up"),
    staged(6, (6, 0, 3), "e4m3", "e4m3fn", interleave=3, alignment="toward_zero", c_reach=2),
    staged(8, (100, 100, 100), "binary64", "binary32", interleave=8, zero_exponent=-1100),
    staged(5, (2, 5, 5), "e5m2", "e3m2fn", product_limit=4, overflow="saturate", zero_exponent=-14),
    staged(2, (7, 3, 3), "binary16", "e5m2", alignment="toward_zero", output_rounding="to_odd", c_reach=0),
    staged(1, (0, 0, 0), "bfloat16", "e4m3", output_rounding="down"),
    staged(4, (8, 8, 8), "binary8p4se", "binary8p3se", product_limit=6),
    staged(4, (8, 8, 8), "binary8p4ue", "binary8p3se", output_rounding="to_odd", overflow="p3109_v3_2_1"),
    staged(4, (8, 8, 8), "e2m3fn", "e2m3fn", zero_exponent=0),
]
