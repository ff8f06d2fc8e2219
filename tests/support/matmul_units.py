"""Units that the tests of matmul go through, operands for them, and the definition's and reference's answers."""

from __future__ import annotations

import random

import numpy as np

import softnum as sn
from softnum import reference as ref
from softnum.formats.facts import fits
from softnum.formats.scalar import FloatFormat
from softnum.mac.products import matrices as matmul_module
from tests.support.core_oracles import edge_codes
from tests.support.remembered import remembered

TERNARY = sn.CustomFormat.from_table([0.0, 1.0, -0.5, -1.0], name="ternary")
TABLE = sn.CustomFormat.from_table(
    [0, 0.08, 0.16, 0.25, 0.34, 0.44, 0.56, 0.72, 1, -1, -0.7, -0.5, -0.4, -0.3, -0.2, -0.1]
)
LOW = FloatFormat(5, 9, bias=140, name="below-binary32-normals")


def unit(accumulator, operand, **options):
    return sn.MadUnit(accumulator, operand=operand, **options)


def sr(accumulator, operand, r, **options):
    return unit(accumulator, operand, rounding="stochastic", stochastic_bits=r, **options)


FUSED = [
    unit("e6m9", "e5m2"),
    unit("e6m9", "e4m3fn"),
    unit("binary16", "e5m2"),
    unit("e5m2", "e5m2"),
    unit("e6m3", "e5m2"),
    unit("e4m3fn", "e4m3fn"),
    unit("e4m3fnuz", "e4m3fnuz"),
    unit("e5m10", ("e4m3fn", "e5m2")),
    unit("e8m10", "e3m4"),
    unit("e2m1fn", "e2m1fn"),
    unit("e4m6", "e2m3fn"),
    unit("binary8p3se", "binary8p3se"),
    unit("dlfloat16", "e5m2"),
    unit("bfloat16", "e4m3"),
    unit("e3m4", "e5m2"),
    unit("e2m9", "e5m2"),
    unit(LOW, "e5m2"),
    unit("e1m3", "e2m1fn"),
    unit("bfloat16", "bfloat16"),
    unit("binary16", "binary16"),
    unit("tf32", "tf32"),
    unit("tf32", "bfloat16"),
    unit("e8m20", "binary16"),
    unit("e11m48", "bfloat16"),
    unit("e11m49", "bfloat16"),
    unit("binary64", "binary32"),
    unit("binary32", "bfloat16"),
    unit("binary32", "binary16"),
    unit("binary32", "binary32"),
    unit("binary32", "e5m2"),
    unit("binary32", ("binary32", "e4m3fn")),
    unit("e3m2fn", "e3m2fn"),
]
FIXED = [
    unit("q8.8", "q4.4"),
    unit("q4.4", "q4.4"),
    unit("q16.8", "q4.4"),
    unit("uq8.8", "uq4.4"),
    unit("q8.8", "q8.8"),
    unit("q4.4", ("q4.4", "e2m1fn")),
    unit("q6.2", "e2m3fn"),
    unit("q32.20", "q8.8"),
    unit("q1.15", "q1.7"),
    unit("q4.4", "q4.4", product="q4.4"),
    unit("q8.8", "q4.4", product="q4.4"),
    unit("e6m9", "q4.4"),
    unit("q12.40", "q1.15", product="q2.30"),
    unit("q4.4", "q4.4", overflow="wrap"),
    unit("q12.12", "e3m2fn", product="e5m2"),
    unit("uq4.4", "q4.4"),
    unit("q16.48", "q1.31"),
    unit("q32.0", "q8.0"),
    unit("q32.0", "q8.0", overflow="wrap"),
    unit("q16.0", "q8.0"),
    unit("q16.0", ("q8.0", "uq8.0"), overflow="wrap"),
    unit("q20.12", ("q4.4", "q2.6")),
    unit("q10.12", ("q4.4", "q2.6"), overflow="wrap"),
    unit("uq16.8", "uq4.4"),
    unit("q16.16", "q8.8", overflow="saturate"),
]
ROUNDED_PRODUCTS = [
    unit("e6m9", "e5m2", product="e5m2"),
    unit("e6m9", "e5m2", product="e6m9"),
    unit("e6m9", "e4m3fn", product="e4m3fn"),
    unit("binary16", "binary16", product="binary16"),
    unit("binary32", "binary32", product="binary32"),
    unit("binary32", "binary16", product="binary16"),
    unit("e5m2", "e4m3", product="e5m2"),
    unit("e4m3", "e4m3", product="e6m9"),
    unit("bfloat16", "bfloat16", product="bfloat16", product_rounding="toward_zero"),
    unit("tf32", "tf32", product="tf32"),
    unit("e6m9", "e5m2", product="e5m2", product_rounding="stochastic", stochastic_bits=8),
    unit("e6m9", "e5m2", product="e5m2", rounding="stochastic", product_rounding="nearest_even", stochastic_bits=8),
    unit("e2m1fn", "e2m1fn", product="e2m3fn"),
    unit(LOW, "e5m2", product=LOW),
    unit("e4m3fnuz", "e4m3fnuz", product="e4m3fnuz"),
]
STOCHASTIC = [
    *(sr("e6m9", "e5m2", r) for r in (1, 8, 12, 16, 17, 32)),
    *(sr("e6m9", "e5m2", r, product="e5m2") for r in (1, 8, 16, 17, 32)),
    *(sr("q4.4", "q4.4", r) for r in (1, 12, 32)),
    sr("q4.4", "q4.4", 12, product="q4.4"),
    sr("q8.8", "q4.4", 17, product="q4.4"),
    sr("binary16", "binary16", 12),
    sr("bfloat16", "bfloat16", 32),
    sr("binary16", "binary16", 32, product="binary16"),
    sr("e8m20", "binary16", 31),
    sr("e8m20", "binary16", 30),
    sr("e4m3fnuz", "e4m3fnuz", 5),
    sr("uq4.4", "uq4.4", 9),
    sr("q16.30", "q8.8", 5),
    sr("binary32", "bfloat16", 24),
    sr("e4m3", "e2m1fn", 3, overflow="saturate"),
    sr("e5m2", "e5m2", 7, product="e4m3"),
    sr("e4m3fn", "e4m3fn", 6, product="e5m2"),
]
CHUNKED = [
    unit("e6m9", "e5m2", chunk=4),
    unit("e6m9", "e5m2", chunk=64),
    unit("e6m3", "e5m2", chunk=1),
    unit("e5m2", "e5m2", chunk=3, outer_accumulator="e6m9"),
    unit("e6m9", "e5m2", chunk=5, outer_accumulator="e5m2"),
    unit("e6m3", "e5m2", chunk=2, outer_accumulator="binary32"),
    unit("binary32", "binary16", chunk=7),
    unit("binary32", "binary32", chunk=7),
    unit("binary16", "binary16", chunk=3, outer_accumulator="binary32"),
    unit("q8.8", "q4.4", chunk=4, outer_accumulator="q4.4"),
    unit("q4.4", "q4.4", chunk=3),
    unit("tf32", "tf32", chunk=16),
    sr("e6m9", "e5m2", 12, chunk=3),
    sr("e6m9", "e5m2", 17, chunk=3),
    sr("e6m9", "e5m2", 17, chunk=3, product="e5m2"),
    sr("e6m9", "e5m2", 12, chunk=4, product="e5m2"),
    sr("e6m9", "e5m2", 20, chunk=1, product="e5m2", outer_accumulator="e8m15"),
    sr("q4.4", "q4.4", 8, chunk=6),
    unit("e6m9", "e5m2", product="e5m2", product_rounding="stochastic", chunk=3),
]
BY_DEFINITION = [
    *(
        unit("e6m9", "e5m2", rounding=mode)
        for mode in ("up", "down", "toward_zero", "to_odd", "nearest_away", "away_from_zero")
    ),
    unit("e6m9", "e5m2", rounding="stochastic_floor", stochastic_bits=9),
    unit("q4.4", "q4.4", rounding="down", overflow="wrap"),
    unit("q4.4", "q4.4", rounding="stochastic_floor", stochastic_bits=4, product="q4.4"),
    unit("e5m2", "e5m2", rounding="nearest_zero"),
    unit("e5m2", "e5m2", overflow="saturate_finite"),
    unit("e15m48", "e5m2"),
    unit("dlfloat16", "dlfloat16", chunk=2),
    unit("binary32", "binary32", rounding="toward_zero", chunk=4),
    unit("e5m2", "e5m2", rounding="up", chunk=3),
]
SATURATING = [
    unit("e5m2", "e5m2", overflow="saturate"),
    unit("e4m3fn", "e4m3fn", overflow="saturate"),
    unit("e6m9", "e5m2", overflow="saturate"),
    unit("e4m3fn", "e4m3fn", overflow="saturate_finite", product="e4m3fn"),
    unit("e4m3fn", "e4m3fn", overflow="saturate", product="e5m2"),
    unit("binary32", "binary16", overflow="saturate"),
    sr("e4m3fn", "e4m3fn", 8, overflow="saturate", product="e4m3fn"),
]
TABLES = [
    unit("e6m9", TERNARY),
    unit("e5m10", (TABLE, "e4m3fn")),
    unit("q4.4", TERNARY),
    unit("binary32", ("e5m2", TABLE)),
    unit("e6m9", TABLE, rounding="stochastic", stochastic_bits=7),
    unit("e6m9", TERNARY, rounding="toward_zero"),
    unit("q8.8", (TERNARY, "q4.4"), rounding="down", overflow="wrap"),
    unit("e8m10", (TERNARY, TABLE), product="e5m2"),
]
ALL = [*FUSED, *FIXED, *ROUNDED_PRODUCTS, *STOCHASTIC, *CHUNKED, *BY_DEFINITION, *SATURATING, *TABLES]


def values_of(fmt, finite=False) -> np.ndarray:
    """Values of an operand format: all of them up to 8 bits, else edges and random ones; as float64."""
    if fmt.kind == "table":
        codes = np.arange(1 << fmt.bits, dtype=fmt.storage_dtype)
    elif fmt.bits <= 8:
        codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    else:
        codes = edge_codes(fmt, random.Random(3), 500)
    values = sn.decode(codes, fmt)
    return values[np.isfinite(values)] if finite else values


def carrier(fmt):
    """The type that matmul's operands of a format come in here."""
    return np.float32 if fits(fmt, np.float32) else np.float64


def middling(fmt, rng, shape) -> np.ndarray:
    """Random values around 1 in the operand's format."""
    x = rng.normal(0, 1, shape) * 2.0 ** rng.integers(-3, 3, shape)
    if not fmt.signed:
        x = np.abs(x)
    if fmt.kind == "table":
        return sn.quantize(x, fmt).astype(carrier(fmt))
    return sn.quantize(x, fmt, overflow="saturate").astype(carrier(fmt))


def extreme(fmt, rng, shape, finite=False) -> np.ndarray:
    """Random values from the whole format, specials included unless finite."""
    return rng.choice(values_of(fmt, finite), shape).astype(carrier(fmt))


def key_of(u):
    return {"key": (77, 5)} if u.stochastic else {}


@remembered
def definition(a, b, u, c=None, **options):
    """matmul through the scalar functions of the core, whatever fast path there is."""
    before = matmul_module.fast_of, matmul_module.counting_of
    matmul_module.fast_of = matmul_module.counting_of = lambda unit: None
    try:
        return sn.matmul(a, b, u, c, **options)
    finally:
        matmul_module.fast_of, matmul_module.counting_of = before


@remembered
def reference(a, b, u, c=None, *, key=None, random_bits=None, batch=0):
    """One matrix product by `reference.mad_dot`, as codes. Tables enter as the binary64 numbers they hold."""
    formats = tuple("binary64" if f.kind == "table" else f for f in u.operand)
    a_codes, b_codes = (
        sn.encode(np.asarray(x, np.float64), f).astype(object) for x, f in zip((a, b), formats, strict=True)
    )
    c_codes = None if c is None else sn.encode(np.broadcast_to(c, (a.shape[0], b.shape[1])), u.outer)
    out = np.empty((a.shape[0], b.shape[1]), u.outer.storage_dtype)
    for m, n in np.ndindex(out.shape):
        out[m, n], _ = ref.mad_dot(
            a_codes[m].tolist(), b_codes[:, n].tolist(), operand=formats, accumulator=u.accumulator, product=u.product,
            rounding=u.rounding, product_rounding=u.product_rounding, overflow=u.overflow, chunk=u.chunk,
            lanes=u.lanes, reduction=u.reduction, compensated=u.compensated,
            stochastic_bits=u.stochastic_bits, outer_accumulator=u.outer_accumulator, key=key, batch=batch, m=m, n=n,
            c=None if c_codes is None else int(c_codes[m, n]),
            random_bits=None if random_bits is None else [tuple(map(int, w)) for w in random_bits[m, n]],
        )  # fmt: skip
    return out


def as_codes(result, fmt) -> np.ndarray:
    """Codes of what matmul returned."""
    return result.codes if isinstance(result, sn.Array) else sn.encode(result, fmt)
