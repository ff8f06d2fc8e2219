"""A truncated multiplier in a multiply-add unit: an array multiplier without the adders of its lowest columns.

The product of two 8-bit integers is the sum of eight rows, the one shifted to each set bit of the other. The lowest
columns of that array are left out, bit by bit, which makes it smaller; the product comes out too small by less than
the sum of what was there. The unit works on codes: those of unsigned fixed-point numbers are the integers themselves.
"""

import numpy as np

import softnum as sn

COLUMNS = 4  # left out
MOST = 0xFFFF


def truncated(a, b):
    """a * b without columns 0 to 3 of the partial products."""
    kept = 0
    for i in range(8):
        row = (a << i) & -(1 << COLUMNS)
        kept += row if (b >> i) & 1 else 0
    return kept


def mac(acc, a, b):
    """The new sum, which saturates at 16 bits."""
    return min(acc + truncated(a, b), MOST)


unit = sn.CustomMadUnit(mac, operand="uq4.4", accumulator="uq8.8", carrier="codes")

if __name__ == "__main__":
    rng = np.random.default_rng(1)
    a, b = (sn.quantize(rng.uniform(0, 2, (64, 64)).astype(np.float32), "uq4.4") for _ in range(2))
    exact = sn.matmul(a, b, sn.MadUnit("uq8.8", operand="uq4.4"))
    error = sn.matmul(a, b, unit) - exact
    print(unit)
    print(f"mean error {error.mean():.3f} of sums of {exact.mean():.1f}")
