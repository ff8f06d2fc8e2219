"""Mitchell's multiplier in a multiply-add unit: it adds logarithms, read off the bits, instead of multiplying.

Of a number 2^e (1 + f) the logarithm is taken as e + f, which is what the bits of a float say anyway; so the bits are
added, and the sum is read as a float again. The product is too small by up to 1/9, and never too large (J. N. Mitchell,
"Computer Multiplication and Division Using Binary Logarithms", IRE Transactions on Electronic Computers, 1962).
"""

import numpy as np

import softnum as sn

ONE = 0x3F800000  # the bits of 1.0: the bias that an exponent carries
MAGNITUDE = 0x7FFFFFFF


def mitchell(a, b):
    """a * b of numbers whose product lies within binary32's normal range."""
    if not (abs(a) < np.inf and abs(b) < np.inf):
        return a * b
    x, y = int(np.float32(a).view(np.int32)) & MAGNITUDE, int(np.float32(b).view(np.int32)) & MAGNITUDE
    bits = 0 if x == 0 or y == 0 else x + y - ONE
    product = np.int32(bits).view(np.float32)
    return -product if (a < 0) != (b < 0) else product


unit = sn.CustomMadUnit(mitchell, operand="e4m3", accumulator="e6m9")

if __name__ == "__main__":
    rng = np.random.default_rng(1)
    a, b = (sn.quantize(rng.standard_normal((64, 64), dtype=np.float32), "e4m3") for _ in range(2))
    exact = sn.matmul(a, b, sn.MadUnit("e6m9", operand="e4m3"))
    error = sn.matmul(a, b, unit) - exact
    print(unit)
    print(f"root mean square of the error: {np.sqrt(np.mean(error**2)):.3f}, of the result: {np.std(exact):.3f}")
