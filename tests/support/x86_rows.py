"""Operands of x86's dot products, and where results differ."""

import numpy as np


def around(rng, size, exponent):
    """Values whose exponents lie around one, signs and significands random."""
    e = np.clip(exponent + rng.integers(-3, 4, size), -140, 127)
    return np.ldexp(rng.choice([-1, 1], size) * (1 + rng.random(size)), e).astype(np.float32)


def differing(got, want):
    """Where bits differ; NaNs are one."""
    return np.flatnonzero((got.view(np.uint32) != want.view(np.uint32)) & ~(np.isnan(got) & np.isnan(want)))
