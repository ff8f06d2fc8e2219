"""Search for arguments whose results are hardest to round: ``python tests/core/elementary_search.py`` prints a table.

Around a random argument the function is, in units of the result's last place, a + b k + c k (k - 1) / 2 for the k-th
next argument, up to far below the distances looked for; modulo 1 these are sums of 64-bit integers that wrap. So 2^16
neighbours at a time are looked through for results next to a number of the format, or to the middle of two. The found
distances are about 2^-28 of a unit.
"""

from __future__ import annotations

import random

import gmpy2
import numpy as np
from gmpy2 import mpfr

import softnum as sn
from softnum import reference as ref
from tests.support.elementary_oracle import UNARY, number

BITS = 400
RUN = 1 << 16
RANGES = {
    "log": (1e-3, 1e3), "log2": (1e-3, 1e3), "log10": (1e-3, 1e3), "log1p": (-0.9, 20), "asin": (-1, 1),
    "acos": (-1, 1),
    "rsqrt": (1e-3, 1e3), "gelu": (-8, 4), "erf": (-4, 4), "silu": (-20, 10), "softplus": (-20, 10),
}  # fmt: skip
OWN = {
    "sigmoid": lambda x: 1 / (1 + gmpy2.exp(-x)), "softplus": lambda x: gmpy2.log1p(gmpy2.exp(x)),
    "silu": lambda x: x / (1 + gmpy2.exp(-x)), "gelu": lambda x: x * gmpy2.erfc(-x / gmpy2.sqrt(mpfr(2))) / 2,
    "rsqrt": gmpy2.rec_sqrt, "reciprocal": lambda x: 1 / x,
}  # fmt: skip


def search(name: str, fmt, runs: int, seed: int) -> list[tuple[float, int]]:
    """(log2 of the distance in units of the last place, code) of the hardest arguments found."""
    fmt = sn.format(fmt)
    rng, m = random.Random(seed), fmt.mantissa_bits
    function = OWN.get(name) or getattr(gmpy2, name)
    k = np.arange(RUN, dtype=np.uint64)
    triangle = k * (k - np.uint64(1)) // np.uint64(2)
    triangle[0] = 0
    found = []
    for _ in range(runs):
        low, high = RANGES.get(name, (-8, 8))
        code = int(sn.encode(rng.uniform(low, high), fmt)) & -RUN
        with gmpy2.context(precision=BITS, emin=-(2**61), emax=2**61):
            try:
                values = [function(number(ref.to_fraction(code + i, fmt))) for i in (0, 1, 2, RUN - 1)]
            except ValueError:
                continue
            if not all(gmpy2.is_regular(v) for v in values):
                continue
            top = gmpy2.get_exp(values[0])
            if gmpy2.get_exp(values[3]) != top or top < fmt.emin + 2:
                continue
            units = [int(gmpy2.rint(gmpy2.mul_2exp(v, m + 1 - top + 64))) for v in values[:3]]
        a, b = units[0], units[1] - units[0]
        c = units[2] - 2 * units[1] + units[0]
        wrapped = [np.uint64(v % 2**64) for v in (2 * a, 2 * b, 2 * c)]  # twice: middles count too
        with np.errstate(over="ignore"):
            rest = wrapped[0] + wrapped[1] * k + wrapped[2] * triangle
        distance = np.minimum(rest, np.uint64(0) - rest)
        at = int(distance.argmin())
        found.append((float(np.log2(float(distance[at]) + 1) - 65), code + at))
    return sorted(found)


if __name__ == "__main__":
    for target in ("binary32", "binary64"):
        for function_name in UNARY:
            hardest = search(function_name, target, 300 if target == "binary64" else 150, 7)[:3]
            found = ", ".join(hex(c) for _, c in hardest)
            print(f'    ("{target}", "{function_name}", ({found})),  # 2**{hardest[0][0]:.1f}')
