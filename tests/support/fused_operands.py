"""Operands for units that align their terms: near each other, far apart, cancelling, large, at edges, special."""

import random

import numpy as np

import softnum as sn
from tests.support.core_oracles import random_codes

KINDS = ["normal", "wide", "cancelling", "largest", "edges", "specials"]


def near(fmt, rng, size):
    """Codes of values near each other: sums that cancel, align and carry."""
    x = rng.choice([-1, 1], size) * (1 + rng.random(size)) * 2.0 ** rng.integers(-6, 7, size)
    return sn.encode(x, fmt, overflow="saturate").astype(np.uint64)


def some_codes(fmt, rng, size, finite=False):
    codes = random_codes(fmt, random.Random(int(rng.integers(1 << 30))), int(np.prod(size)))
    codes = np.asarray(codes, dtype=fmt.storage_dtype)
    values = sn.decode(codes, fmt)
    if finite:
        codes = np.where(np.isfinite(values), codes, 0)
    return codes.astype(np.uint64).reshape(size)


def operands(u, rng, m, n, k, kind):
    fa, fb = u.operand
    if kind == "normal":
        scale = 2.0 ** rng.integers(-3, 4, (1, 1))
        return (
            sn.quantize(rng.standard_normal((m, k)) * scale, fa, overflow="saturate").astype(np.float32),
            sn.quantize(rng.standard_normal((k, n)), fb, overflow="saturate").astype(np.float32),
            sn.quantize(rng.standard_normal((m, n)), u.c_format).astype(np.float32),
        )
    if kind == "wide":
        low, high = (-20, 20) if kind == "wide" else (0, 1)
        x = rng.standard_normal((m, k)) * 2.0 ** rng.integers(low, high, (m, k))
        y = rng.standard_normal((k, n)) * 2.0 ** rng.integers(low, high, (k, n))
        z = rng.standard_normal((m, n)) * 2.0 ** rng.integers(-60, 20, (m, n))
        x[rng.random(x.shape) < 0.2] = 0
        y[rng.random(y.shape) < 0.2] = 0
        return tuple(
            sn.quantize(v, f, overflow="saturate").astype(np.float32) for v, f in ((x, fa), (y, fb), (z, u.c_format))
        )
    if kind == "cancelling":
        x = rng.choice([-1.0, 1.0], (m, k)) * rng.choice([1, 1.5, 1.75, 1.9990234375, 2.0**-9], (m, k))
        y = rng.choice([1, 1.25, 1.9990234375, 2.0**-7], (k, n))
        x[:, 1::2] = -x[:, : k // 2 * 2 : 2] if k > 1 else x[:, 1::2]
        y[1::2] = y[: k // 2 * 2 : 2]
        z = np.where(rng.random((m, n)) < 0.5, 0, rng.choice([-1, 1], (m, n)) * 2.0 ** -rng.integers(0, 40, (m, n)))
        return tuple(
            sn.quantize(v, f, overflow="saturate").astype(np.float32) for v, f in ((x, fa), (y, fb), (z, u.c_format))
        )
    if kind == "largest":
        x = np.full((m, k), float(fa.max))
        y = np.full((k, n), float(fb.max))
        if kind == "largest" and fa.bits > 8 and fa.emax > 20:
            x, y = np.full((m, k), 2 - 2.0**-fa.mantissa_bits), np.full((k, n), 2 - 2.0**-fb.mantissa_bits)
        x[rng.random(x.shape) < 0.02] *= -1
        return (
            x.astype(np.float32),
            y.astype(np.float32),
            sn.quantize(rng.choice([0, 1, 2, 3.99], (m, n)), u.c_format).astype(np.float32),
        )
    finite = kind == "edges"
    return tuple(
        sn.decode(some_codes(f, rng, size, finite).astype(f.storage_dtype), f, np.float32)
        for f, size in ((fa, (m, k)), (fb, (k, n)), (u.c_format, (m, n)))
    )
