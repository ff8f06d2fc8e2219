"""Pinned: quantize, encode, decode, operations with flags and elementary functions, of each kind of format and mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import softnum as sn
from tests.pins.inputs import (
    BLOCK_FORMATS,
    FORMATS,
    MODE_FAMILIES,
    MODES,
    THREADS,
    codes,
    custom_formats,
    floats,
    outcome,
    small,
)

__all__ = ["conversions", "operations"]

N = 3000
BINARY = ("add", "subtract", "multiply", "divide", "remainder")
COMPARING = ("minimum", "maximum", "minimum_number", "maximum_number", "copysign", "total_order")
UNARY = ("sqrt", "negate", "absolute", "next_up", "next_down", "classify", "logb")
FUNCTIONS = (
    "acos", "asin", "atan", "cbrt", "cos", "cosh", "erf", "exp", "exp2", "expm1", "gelu", "log", "log10", "log1p",
    "log2", "reciprocal", "rsqrt", "sigmoid", "silu", "sin", "sinh", "softplus", "tan", "tanh",
)  # fmt: skip


def _formats() -> dict:
    return {**{name: sn.format(name) for name in FORMATS}, **custom_formats()}


def _stochastic(mode: str) -> dict:
    return {"key": (7, 3), "stochastic_bits": 11} if mode.startswith("stochastic") else {}


def conversions() -> Iterator[tuple[str, str]]:
    """(case, outcome) of values to codes and back."""
    wide, narrow, half = floats(np.float64, N, 1), floats(np.float32, N, 2), floats(np.float16, N, 3)
    long = floats(np.float32, 40_000, 4)
    for name, fmt in _formats().items():
        instead = _instead(name, fmt)
        for mode in MODES:
            options = {"rounding": mode, "threads": THREADS, **_stochastic(mode), **instead}
            yield f"{name} {mode} quantize float32", outcome(sn.quantize, narrow, fmt, **options)
            yield f"{name} {mode} quantize float64", outcome(sn.quantize, wide, fmt, **options)
            yield f"{name} {mode} encode float32", outcome(sn.encode, narrow, fmt, **options)
            yield f"{name} {mode} encode float64", outcome(sn.encode, wide, fmt, **options)
            yield f"{name} {mode} flags", outcome(sn.encode, wide, fmt, return_flags=True, **options)
        for mode in MODE_FAMILIES:
            options = {"rounding": mode, "threads": THREADS, **_stochastic(mode), **instead}
            yield f"{name} {mode} quantize float16", outcome(sn.quantize, half, fmt, **options)
            yield f"{name} {mode} long", outcome(sn.quantize, long, fmt, **options)
            for overflow in ("infinity", "saturate", "saturate_finite", "wrap"):
                got = outcome(sn.encode, narrow, fmt, overflow=overflow, **options)
                yield f"{name} {mode} {overflow}", got
            for flush in ("before", "after"):
                got = outcome(
                    sn.encode, wide, fmt, flush_results=flush, tininess="before", return_flags=True, **options
                )
                yield f"{name} {mode} flush {flush}", got
        stored = codes(fmt, N, 5)
        for dtype in (np.float32, np.float64, object):
            yield f"{name} decode {np.dtype(dtype)}", outcome(sn.decode, stored, fmt, dtype)
        texts = ["0.1", "1/3", "-2.5", "0x1.8p3", "1e-3", "-0"]
        yield f"{name} encode text", outcome(sn.encode, texts, fmt, **instead)
    values = small((6, 96), 6, 9)
    for name in BLOCK_FORMATS:
        for mode in MODE_FAMILIES:
            options = {"rounding": mode, **_stochastic(mode)}
            yield f"{name} {mode} encode", outcome(sn.encode, values, name, **options)
            yield f"{name} {mode} quantize", outcome(sn.quantize, values, name, **options)
            yield (
                f"{name} {mode} quantize axis 0",
                outcome(sn.quantize, values.astype(np.float64), name, axis=0, **options),
            )
        for rule in ("floor", "ceil", "even", "max"):
            yield f"{name} {rule}", outcome(sn.encode, values, name, scale_rule=rule)


def _instead(name: str, fmt) -> dict:
    """What a NaN becomes where the format has none."""
    return {} if fmt.has_nan else {"invalid": 0.0 if name == "nf4" else 0.5}


def operations() -> Iterator[tuple[str, str]]:
    """(case, outcome) of operations on codes, with flags where they have them."""
    for name, fmt in _formats().items():
        a, b, c = (codes(fmt, N, seed) for seed in (11, 12, 13))
        long = codes(fmt, 40_000, 14)
        flags = {"return_flags": not isinstance(fmt, sn.CustomFormat)}
        plain = _instead(name, fmt) if flags["return_flags"] else {}
        for mode in MODES:
            options = {"rounding": mode, **_stochastic(mode), **plain}
            for op in BINARY:
                yield f"{op} {name} {mode}", outcome(getattr(sn.ops, op), a, b, fmt, **flags, **options)
            yield f"fma {name} {mode}", outcome(sn.fma, a, b, c, fmt, **flags, **options)
            yield f"sqrt {name} {mode}", outcome(sn.sqrt, a, fmt, **flags, **options)
            yield f"add {name} {mode} without flags", outcome(sn.add, a, b, fmt, **options)
            yield f"multiply {name} {mode} without flags", outcome(sn.multiply, a, b, fmt, **options)
            yield f"round_to_integral {name} {mode}", outcome(sn.ops.round_to_integral, a, fmt, **options)
            yield f"to_integer {name} {mode}", outcome(sn.ops.to_integer, a, fmt, np.int32, **{**options, "invalid": 0})
            for target in ("e5m2", "binary32", "q4.4"):
                given = {**options, **(_instead(target, sn.format(target)))}
                yield f"convert {name} {target} {mode}", outcome(sn.convert, a, fmt, target, **flags, **given)
        yield f"add long {name}", outcome(sn.add, long, long[::-1], fmt, **plain)
        for op in COMPARING:
            yield f"{op} {name}", outcome(getattr(sn.ops, op), a, b, fmt)
        for op in UNARY:
            yield f"{op} {name}", outcome(getattr(sn.ops, op), a, fmt)
        for signaling in (False, True):
            got = outcome(sn.compare, a, b, fmt, signaling=signaling, **flags)
            yield f"compare {name} {'signaling' if signaling else 'quiet'}", got
        for profile in ("x86", "arm"):
            yield f"add {name} {profile}", outcome(sn.add, a, b, fmt, nan=profile, **flags, **plain)
        for inputs, results in ((True, "before"), (True, "after"), (False, "after")):
            got = outcome(sn.multiply, a, b, fmt, flush_inputs=inputs, flush_results=results, **flags, **plain)
            yield f"multiply {name} flush {inputs} {results}", got
        yield f"scalb {name}", outcome(sn.ops.scalb, a, np.arange(N) % 21 - 10, fmt, **plain)
        yield f"from_integer {name}", outcome(sn.ops.from_integer, np.arange(-40, 41), fmt)
        few = slice(0, N if fmt.bits <= 16 else 40)
        for function in FUNCTIONS:
            for mode in ("nearest_even", "toward_zero", "up"):
                got = outcome(getattr(sn.ops, function), a[few], fmt, rounding=mode, **flags, **plain)
                yield f"{function} {name} {mode}", got
        for function in ("pow", "hypot"):
            yield f"{function} {name}", outcome(getattr(sn.ops, function), a[:60], b[:60], fmt, **flags, **plain)
    for formats, target in (
        (("e5m2", "e4m3"), "e6m9"),
        (("binary16", "q4.4"), "binary32"),
        (("e2m1fn", "e5m2"), "e5m2"),
    ):
        pair = [codes(sn.format(f), N, seed) for f, seed in zip(formats, (21, 22), strict=True)]
        for op in ("add", "multiply", "divide"):
            got = outcome(getattr(sn.ops, op), *pair, formats, out_fmt=target, return_flags=True)
            yield f"{op} {formats} {target}", got
