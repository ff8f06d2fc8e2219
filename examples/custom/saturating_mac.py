"""A multiply-add unit with an accumulator of 12 bits that saturates, composed of softnum's own arithmetic.

Factors have 2 + 2 bits, products 4 + 4, sums 8 + 4; what is added is exact, and what is too large stays at the end.
"""

import numpy as np

import softnum as sn
from softnum import kernels

sum12 = kernels.scalar("q8.4")


def mac(acc, a, b):
    """acc + a * b, rounded once, in 12 bits."""
    return sum12.fma(a, b, acc)


unit = sn.CustomMadUnit(mac, operand="q2.2", accumulator="q8.4")

if __name__ == "__main__":
    x = np.full((1, 100), 1.75, np.float32)
    print(unit)
    print("100 times 1.75 * 1.75:", sn.matmul(x, x.T, unit)[0, 0], "of", 100 * 1.75**2)
