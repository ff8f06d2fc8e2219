"""Pinned: products, convolutions, sums and traces under every family of units and every path that computes one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import softnum as sn
from tests.pins.inputs import BLOCK_FORMATS, MODES, THREADS, custom_formats, digest, outcome, small

__all__ = ["convolutions", "matrices", "traces", "units"]

KEY = (5, 2)


def _mad(accumulator, operand, **options):
    return sn.MadUnit(accumulator, operand=operand, **options)


def truncated(acc, a, b):
    """A unit of the user's own: 8 bits of the product are kept."""
    product = np.float64(a) * np.float64(b)
    return np.float32(acc + np.float32(np.trunc(product * 256.0) / 256.0))


def units() -> dict:
    """One unit for each family, path and option, by a name."""
    found = {}

    def add(name, made):
        assert name not in found
        found[name] = made

    pairs = (
        ("e6m9", "e5m2"), ("e6m9", "e4m3fn"), ("binary16", "e5m2"), ("e5m2", "e5m2"), ("e6m3", "e5m2"),
        ("bfloat16", "bfloat16"), ("binary16", "binary16"), ("tf32", "tf32"), ("e8m20", "binary16"),
        ("binary32", "bfloat16"), ("binary32", "binary32"), ("binary64", "binary32"), ("binary32", "e5m2"),
        ("e2m1fn", "e2m1fn"), ("e4m3fnuz", "e4m3fnuz"), ("e11m40", "bfloat16"), ("dlfloat16", "e5m2"),
    )  # fmt: skip
    for accumulator, operand in pairs:
        add(f"mad {accumulator} {operand}", _mad(accumulator, operand))
    for mode in MODES:
        bits = {"stochastic_bits": 12} if mode.startswith("stochastic") else {}
        add(f"mad e6m9 e5m2 {mode}", _mad("e6m9", "e5m2", rounding=mode, **bits))
        add(f"mad e6m9 e5m2 product e5m2 {mode}", _mad("e6m9", "e5m2", product="e5m2", rounding=mode, **bits))
        add(f"mad q8.8 q4.4 {mode}", _mad("q8.8", "q4.4", rounding=mode, **bits))
        if mode not in ("stochastic_fast", "stochastic_even", "stochastic_odd", "stochastic_floor"):
            add(
                f"exact binary32 binary16 {mode}",
                sn.ExactDotUnit("binary32", operand="binary16", rounding=mode, **bits),
            )
            add(f"exact e5m2 e4m3fn {mode}", sn.ExactDotUnit("e5m2", operand="e4m3fn", rounding=mode, **bits))
        if not bits and mode not in ("to_odd",):
            add(f"chain bfloat16 {mode}", sn.FmaChainUnit("binary32", operand="bfloat16", rounding=mode))
    for bits in (1, 16, 17, 32):
        sr = {"rounding": "stochastic", "stochastic_bits": bits}
        add(f"mad sr {bits}", _mad("e6m9", "e5m2", **sr))
        add(f"mad sr {bits} product", _mad("e6m9", "e5m2", product="e5m2", **sr))
        add(f"mad sr {bits} q4.4", _mad("q4.4", "q4.4", **sr))
    for product in ("e5m2", "e6m9"):
        add(f"mad product {product}", _mad("e6m9", "e4m3fn", product=product))
    add("mad product binary16", _mad("binary32", "binary16", product="binary16"))
    add("mad product toward zero", _mad("bfloat16", "bfloat16", product="bfloat16", product_rounding="toward_zero"))
    for name, options in {
        "chunk": {"chunk": 5}, "lanes": {"lanes": 4}, "tree": {"lanes": 8, "reduction": "tree"},
        "outer": {"chunk": 4, "outer_accumulator": "e5m2"}, "saturate": {"overflow": "saturate"},
        "compensated": {"compensated": "kahan"}, "sr chunk": {"chunk": 3, "rounding": "stochastic"},
    }.items():  # fmt: skip
        add(f"mad {name}", _mad("e6m9", "e5m2", **options))
    for accumulator, operand in (
        ("q8.8", "q4.4"), ("q4.4", "q4.4"), ("uq8.8", "uq4.4"), ("q32.0", "q8.0"), ("q16.0", ("q8.0", "uq8.0")),
        ("q16.48", "q1.31"), ("e6m9", "q4.4"), ("q6.2", "e2m3fn"),
    ):  # fmt: skip
        add(f"mad {accumulator} {operand}", _mad(accumulator, operand))
    add("mad wrap", _mad("q16.0", ("q8.0", "uq8.0"), overflow="wrap"))
    add("exact q16.16", sn.ExactDotUnit("q16.16", operand="q4.4"))
    add("exact binary64", sn.ExactDotUnit("binary64", operand="binary64"))
    add("fused 4", sn.FusedDotUnit(4, 24, "binary32", operand="binary16"))
    add("fused 16 nearest", sn.FusedDotUnit(16, 25, "binary16", operand="e4m3fn", output_rounding="nearest_even"))
    add("fused c added", sn.FusedDotUnit(8, 24, "binary32", operand="bfloat16", c="after"))
    add("fused floor", sn.FusedDotUnit(8, 24, "binary32", operand="tf32", min_exponent=-133, truncate_fraction=13))
    add("two stages", sn.TwoStageDotUnit(8, 24, 31, 24, "binary32", operand="binary16", zero_exponent=-126))
    add("groups", sn.GroupedDotUnit(8, "binary32", operand="bfloat16"))
    add("groups exact", sn.mac.ime_unit(2, 0, "xct", w=4, operand="e4m3fn"))
    order = (1, 0)
    add(
        "chain order",
        sn.FmaChainUnit("binary32", operand="bfloat16", k_order=order, flush_inputs=True, flush_results="after"),
    )
    for name in sn.units():
        add(f"preset {name}", sn.unit(name))
    for name, fmt in custom_formats().items():
        add(f"mad operand {name}", _mad("binary32", fmt))
        add(f"mad {name}", _mad(fmt, fmt))
    for name in BLOCK_FORMATS:
        add(f"block {name}", sn.BlockDotUnit("binary32", operand=name))
        add(f"block {name} inner", sn.BlockDotUnit("binary32", operand=name, product="e6m9", rounding="toward_zero"))
    add("custom", sn.CustomMadUnit(truncated, operand="e5m2", accumulator="binary32"))
    return found


def operand(unit, which: int, shape, seed: int):
    """Values of a unit's operand; axis: where blocks lie, the last of a and the first of b."""
    fmt = unit.operand[which]
    if isinstance(fmt, sn.BlockFormat):
        return sn.array(small(shape, seed, 5), fmt, axis=-1 if which == 0 else -2)
    values = small(shape, seed, 2 if not isinstance(fmt, sn.CustomFormat) else 1)
    if not fmt.has_nan or not getattr(fmt, "signed", True):
        values = np.abs(values) if not getattr(fmt, "signed", True) else values
    wide = np.float64 if fmt.bits > 32 else np.float32
    return sn.quantize(values.astype(wide), fmt, overflow="saturate")


def matrices() -> Iterator[tuple[str, str]]:
    """(case, outcome) of products, with C and without, of sums and dots, of Arrays and with statistics."""
    for name, unit in units().items():
        block = isinstance(unit.operand[0], sn.BlockFormat)
        k = 64 if block else 37
        key = {"threads": THREADS, **({"key": KEY} if unit.stochastic else {})}
        try:
            a, b = operand(unit, 0, (19, k), 31), operand(unit, 1, (k, 21), 32)
            if not block:
                wide = [operand(unit, 0, (70, 130), 33), operand(unit, 1, (130, 66), 34)]
        except (ValueError, TypeError) as error:
            yield name, f"{type(error).__name__}: {error}"
            continue
        yield f"{name} product", outcome(sn.matmul, a, b, unit, **key)
        c = small((19, 21), 35, 2)
        try:
            c = sn.quantize(c, unit.c_format, overflow="saturate")
        except (ValueError, TypeError) as error:
            yield f"{name} c", f"{type(error).__name__}: {error}"
        else:
            yield f"{name} product and c", outcome(sn.matmul, a, b, unit, c, **key)
        if not block:
            yield f"{name} wide", outcome(sn.matmul, *wide, unit, **key)
            yield f"{name} batch", outcome(sn.matmul, np.stack([a[:5], a[5:10]]), b[:, :9], unit, **key)
            yield f"{name} dot", outcome(sn.dot, a[0], b[:, 0], unit, **key)
            yield f"{name} sum", outcome(sn.sum, a, unit, axis=1, **key)
            yield f"{name} special", outcome(sn.matmul, *_special(unit), unit, **key)
            of_arrays = [sn.array(x[:7, :7], fmt) for x, fmt in zip((a, b), unit.operand, strict=True)]
            yield f"{name} arrays", outcome(sn.matmul, *of_arrays, unit, **key)
            yield f"{name} statistics", outcome(_with_statistics, a[:7], b[:, :7], unit, **key)


def _with_statistics(a, b, unit, **options):
    values, statistics = sn.matmul(a, b, unit, return_stats=True, **options)
    return values, str(statistics)


def _special(unit):
    """Operands with infinities, NaNs, the largest and the smallest values, where the formats have them."""
    parts = []
    for fmt in unit.operand:
        values = [0.0, 1.0, -1.0, float(fmt.max), float(fmt.min)]
        values += [float("inf"), float("-inf")] if getattr(fmt, "has_infinity", False) else []
        values += [float("nan")] if fmt.has_nan else []
        parts.append(np.array(values, np.float64 if fmt.bits > 32 else np.float32))
    n = min(map(len, parts))
    a = np.stack([np.roll(parts[0][:n], i) for i in range(n)])
    b = np.stack([np.roll(parts[1][:n], 2 * i) for i in range(n)])
    return a, b


def convolutions() -> Iterator[tuple[str, str]]:
    """(case, outcome) of convolutions and both gradients."""
    chosen = (
        "mad e6m9 e5m2", "mad binary32 binary32", "mad sr 16", "mad sr 32 product", "mad chunk", "mad q8.8 q4.4",
        "fused 4", "exact binary32 binary16 nearest_even", "mad e6m9 e5m2 up", "mad operand nf4", "custom", "mad lanes",
        "preset nvidia_h100_e4m3", "chain order", "mad q32.0 q8.0",
    )  # fmt: skip
    table = units()
    for name in chosen:
        unit = table[name]
        key = {"threads": THREADS, **({"key": KEY} if unit.stochastic else {})}
        x, w = operand(unit, 0, (2, 4, 9, 8), 41), operand(unit, 1, (6, 2, 3, 3), 42)
        dy = operand(unit, 0, (2, 6, 5, 4), 43)
        layout = {"stride": 2, "padding": 1, "groups": 2}
        yield f"{name} forward", outcome(sn.conv2d, x, w, unit, **layout, **key)
        yield f"{name} data", outcome(sn.mac.products.conv2d_backward_data, dy, w, unit, (9, 8), **layout, **key)
        yield f"{name} weight", outcome(sn.mac.products.conv2d_backward_weight, x, dy, unit, (3, 3), **layout, **key)
        yield f"{name} dilated", outcome(sn.conv2d, x, w, unit, dilation=2, groups=2, **key)


def traces() -> Iterator[tuple[str, str]]:
    """(case, digest of the text) of a dot product, step by step."""
    for name, unit in units().items():
        block = isinstance(unit.operand[0], sn.BlockFormat)
        k = 64 if block else 6
        key = {"key": KEY} if unit.stochastic else {}
        try:
            a, b = operand(unit, 0, (1, k), 51), operand(unit, 1, (k, 1), 52)
        except (ValueError, TypeError) as error:
            yield name, f"{type(error).__name__}: {error}"
            continue
        yield f"{name} trace", outcome(lambda u=unit, a=a, b=b, key=key: digest(str(u.trace(a[0], b[:, 0], **key))))
        if not isinstance(unit, sn.CustomMadUnit):  # whose text has the function's address
            yield f"{name} text", digest(repr(unit), str(unit))
        yield f"{name} evidence", outcome(lambda u=unit: repr(u.evidence))
