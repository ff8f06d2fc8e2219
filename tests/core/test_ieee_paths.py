"""Units whose steps are the CPU's own operations (csrc/products/gemm/ieee.h) against the definition, bit for bit: lanes,
chunks, orders, subnormals that become zeros, on each instruction set."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.fp_environments import ENVIRONMENTS
from tests.support.matmul_units import TABLE, TERNARY, definition

RESULTS = (None, "before", "after", "subnormal")
SHAPES = (
    {}, {"chunk": 3}, {"lanes": 2, "chunk": 2}, {"lanes": 4, "chunk": 4, "reduction": "tree"},
    {"lanes": 4, "chunk": 4, "reduction": "pairwise"}, {"lanes": 4, "chunk": 4}, {"lanes": 3}, {"lanes": 5, "chunk": 7},
    {"lanes": 5, "reduction": "tree"}, {"lanes": 7, "chunk": 9, "reduction": "pairwise"}, {"lanes": 16, "chunk": 5},
)  # fmt: skip


def made(accumulator, operand, **options):
    return sn.MadUnit(accumulator, operand=operand, **options)


PLAIN = [made("binary32", operand, **shape) for operand in ("binary16", "bfloat16") for shape in SHAPES[2:]]
PLAIN += [made("binary64", "binary64", **shape) for shape in SHAPES]
PLAIN += [made("binary64", "binary64", product="binary64", **shape) for shape in SHAPES[1::3]]
PLAIN += [made("binary32", "binary32", product="binary32", **shape) for shape in SHAPES[2::2]]
PLAIN += [made("binary64", ("binary32", "e5m2")), made("binary32", (TERNARY, "q4.4"), lanes=3), made("binary64", TABLE)]
PLAIN += [made("binary32", "binary16", lanes=1024, reduction="pairwise"), made("binary32", "binary16", lanes=33)]
FLUSHING = [
    made("binary32", operand, flush_inputs=inputs, flush_results=results, **shape)
    for operand, inputs, results, shape in itertools.product(
        ("binary16", "bfloat16", ("binary32", "e4m3fnuz")), (True, False, "positive"), RESULTS, SHAPES
    )
    if inputs or results
]  # fmt: skip
FLUSHING += [
    made("binary32", "binary32", product="binary32", flush_inputs=inputs, flush_results=results, **shape)
    for inputs, results, shape in itertools.product((True, False, "positive"), RESULTS, SHAPES[::3])
    if inputs or results
]
FLUSHING += [
    made("binary64", operand, flush_inputs=inputs, flush_results=results, **shape)
    for operand, inputs, results, shape in itertools.product(
        ("binary64", "binary32"), (True, False, "positive"), (None, "subnormal"), SHAPES[::2]
    )
    if inputs or results
]
FLUSHING += [
    made("binary64", "binary32", flush_results="after"), made("binary32", TERNARY, flush_inputs="positive"),
    made("binary32", "q4.4", flush_inputs=True), made("binary32", ("e5m2", "q4.4"), flush_inputs="positive", lanes=2),
]  # fmt: skip
ORDERS = (None, (1, 0), (2, 0, 1))
CHAINS = [
    sn.FmaChainUnit(accumulator, operand=operand, k_order=order, flush_inputs=inputs, flush_results=results)
    for accumulator, operand, order, inputs, results in itertools.product(
        ("binary32",), ("bfloat16", "binary16", ("binary32", "bfloat16")), ORDERS, (False, True), RESULTS
    )
]
CHAINS += [
    sn.FmaChainUnit("binary64", operand="binary64", k_order=(3, 1, 2, 0)),
    sn.FmaChainUnit("binary64", operand="binary32", k_order=(1, 0), flush_inputs=True, flush_results="before"),
    sn.FmaChainUnit("bfloat16", operand="bfloat16"), sn.FmaChainUnit("binary16", operand="e5m2", rounding="up"),
    sn.FmaChainUnit("e6m9", operand="e5m2", rounding="nearest_away"),
]  # fmt: skip
PRESETS = [sn.unit(name) for name in sn.units() if name.startswith(("amd_", "x86_avx512"))]
UNITS = [*PLAIN, *FLUSHING, *CHAINS, *PRESETS]


def carrier(fmt):
    return np.float64 if str(fmt) == "binary64" else np.float32


def numbers(fmt, rng, shape, kind):
    """Values of a format: all of it, around one, around the roots of the sum's least normal number, specials too."""
    if kind == "any":
        if fmt.kind != "float":
            values = np.asarray(sn.decode(np.arange(1 << fmt.bits, dtype=fmt.storage_dtype), fmt), np.float64)
            return rng.choice(values[np.isfinite(values)], shape).astype(carrier(fmt))
        codes = rng.integers(0, 2**63, shape, dtype=np.uint64) >> np.uint64(63 - min(fmt.bits, 63))
        if fmt.bits == 64:
            codes |= rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(63)
        return np.asarray(sn.decode(codes.astype(fmt.storage_dtype), fmt)).astype(carrier(fmt))
    x = rng.choice([-1, 1], shape) * (1 + rng.random(shape))
    exponents = rng.integers(-3, 4, shape) if kind == "near one" else rng.integers(-68, -58, shape)
    x = np.where(rng.random(shape) < 0.1, 0.0, np.ldexp(x, exponents))
    x = x if fmt.signed else np.abs(x)
    x = sn.quantize(x, fmt, overflow="saturate").astype(carrier(fmt))
    if kind == "special":
        x = np.where(rng.random(shape) < 0.02, rng.choice([np.inf, -np.inf, np.nan, -0.0], shape), x)
        x = sn.quantize(x, fmt, overflow="saturate").astype(carrier(fmt)) if fmt.kind == "float" else np.nan_to_num(x)
    return x


def start(fmt, rng, shape, kind):
    least = fmt.emin
    around = rng.integers(least - 2, least + 3, shape) if kind in ("tiny", "special") else rng.integers(-3, 4, shape)
    c = np.ldexp(rng.choice([-1, 1], shape) * (1 + rng.choice([0, 0.5, rng.random()], shape)), around)
    c = np.where(rng.random(shape) < 0.2, rng.choice([0.0, -0.0], shape), c)
    return sn.quantize(c, fmt).astype(carrier(fmt))


def compare(u, a, b, c=None, **options):
    with np.errstate(all="ignore"):
        assert_same_bits(sn.matmul(a, b, u, c, **options), definition(a, b, u, c), str(u), a.shape, c is None, options)


@cases("u", UNITS, ids=str)
def test_the_definition(u, isa):
    """All kinds of values, with C and without, K that fills no chunk, row and column counts across blocks."""
    assert fast_of(u) is not None
    rng = np.random.default_rng(3)
    for kind, (m, n, k) in zip(
        ("any", "near one", "tiny", "special", "tiny"), ((5, 7, 10), (4, 35, 3), (6, 17, 9), (1, 33, 5), (9, 5, 21)),
        strict=True,
    ):  # fmt: skip
        a, b = numbers(u.operand[0], rng, (m, k), kind), numbers(u.operand[1], rng, (k, n), kind)
        compare(u, a, b)
        compare(u, a, b, start(u.c_format, rng, (m, n), kind))


def test_every_way_is_here():
    engines = [fast_of(u) for u in UNITS]
    ieee = [e for e in engines if e.path == "ieee"]
    assert {(e.wide, e.product_rounding) for e in ieee} == {
        (wide, product) for wide in (False, True) for product in ("exact", "nearest", "fused")
    }
    assert {e.zeros for e in ieee if not e.wide} == {"nowhere", "read", "written", "marked"}
    assert {e.zeros for e in ieee if e.wide} == {"nowhere", "read", "written"}
    assert {e.path for e in engines} >= {"native", "magic", "odd", "ieee"}
