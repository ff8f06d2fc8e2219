"""posit8 of the Posit Standard (2022), two exponent bits: a format written in Python functions.

>>> import softnum as sn
>>> a = sn.array([3.14159, 1e-9, 1e9], posit8)
>>> a, a * a
(Array([3.25000000e+00, 5.96046448e-08, 1.67772160e+07], posit8), \
Array([1.10000000e+01, 5.96046448e-08, 1.67772160e+07], posit8))
"""

import math

import softnum as sn

BITS, EXPONENT_BITS = 8, 2
NAR = 1 << (BITS - 1)  # "not a real", the one code beside zero that is no number
LARGEST = 2.0 ** ((BITS - 2) << EXPONENT_BITS)


def value(code):
    """The value of a code: a sign (two's complement), a run of equal bits, two exponent bits, a fraction."""
    if code == 0:
        return 0.0
    if code == NAR:
        return math.nan
    sign = 1.0
    if code > NAR:
        sign, code = -1.0, 2 * NAR - code
    left = BITS - 1  # bits that are not read yet
    first = code >> (left - 1) & 1
    run = 0
    while left and code >> (left - 1) & 1 == first:
        run += 1
        left -= 1
    regime = run - 1 if first else -run
    left = max(left - 1, 0)  # the bit that ends the run
    rest = (code & ((1 << left) - 1)) << EXPONENT_BITS  # bits that are cut off are zeros
    exponent = rest >> left
    fraction = rest & ((1 << left) - 1)
    scale = (regime << EXPONENT_BITS) + exponent
    return sign * math.ldexp(1.0 + math.ldexp(float(fraction), -left), scale)


def nearest(x):
    """The code of a number: its bits are written down, cut off behind the eighth and rounded, to the even code of two.

    No number but 0 becomes 0, and none becomes NaR.
    """
    if x == 0:
        return 0
    if math.isnan(x) or math.isinf(x):
        return NAR
    magnitude = min(max(abs(x), 1 / LARGEST), LARGEST)
    mantissa, exponent = math.frexp(magnitude)
    exponent -= 1
    regime = exponent >> EXPONENT_BITS
    if regime >= 0:
        bits, length = (1 << (regime + 2)) - 2, regime + 2  # ones, and a zero
    else:
        bits, length = 1, 1 - regime
    bits = bits << EXPONENT_BITS | exponent & ((1 << EXPONENT_BITS) - 1)
    bits = bits << 52 | int(math.ldexp(mantissa, 53)) & ((1 << 52) - 1)
    cut = length + EXPONENT_BITS + 52 - (BITS - 1)
    code, rest = bits >> cut, bits & ((1 << cut) - 1)
    half = 1 << (cut - 1)
    if rest > half or (rest == half and code & 1):
        code += 1
    code = min(max(code, 1), NAR - 1)
    return 2 * NAR - code if x < 0 else code


posit8 = sn.CustomFormat(BITS, as_float=value, convert=nearest, name="posit8")
