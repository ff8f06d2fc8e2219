"""Block units and their operands."""

import numpy as np

import softnum as sn


def block(accumulator, operand, **options):
    return sn.BlockDotUnit(accumulator, operand=operand, **options)


def small(element, scale="e8m0fnu", size=5, **options):
    return sn.BlockFormat(element, scale, size, **options)


FP4, FP8, INT8 = "e2m1fn", "e4m3fn", "q2.6"
SR = {"rounding": "stochastic"}


def key_of(u):
    return {"key": 11 if u.random.endswith("@hart") else (11, 3)} if u.stochastic else {}


def operand(rng, fmt, shape, axis, spread=4):
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    if not fmt.element.signed:
        x = np.abs(x)
    return sn.array(x, fmt, axis=axis)


def some_c(rng, u, shape):
    c = sn.quantize(rng.standard_normal(shape) * 8, u.result)
    return np.float32(c) if u.result.bits <= 32 and u.result.kind == "float" else c


def any_codes(rng, fmt, shape, axis):
    """Any elements, and scales near 1 or anything; NaNs, infinities and zeros where the formats have them."""
    count = list(shape)
    count[axis] = fmt.blocks(shape[axis])
    codes = rng.integers(0, 1 << fmt.element.bits, shape).astype(fmt.element.storage_dtype)
    near = sn.encode(2.0 ** rng.integers(-3, 4, count), fmt.scale)
    scales = np.where(
        rng.random(count) < 0.7, near, rng.integers(0, 1 << min(fmt.scale.bits, 62), count).astype(near.dtype)
    )
    return sn.BlockArray(codes, scales, fmt, axis, None if fmt.tensor_scale is None else 0.375)
