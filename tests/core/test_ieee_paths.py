"""Units whose steps are the CPU's own operations (csrc/products/gemm/ieee.h) against the definition, bit for bit:
lanes, chunks, orders, subnormals that become zeros, on each instruction set."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

import softnum as sn
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.fp_environments import ENVIRONMENTS
from tests.support.matmul_units import TABLE, TERNARY, carrier, definition, values_of

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
FLUSHING += [  # operands are read as they are, sums and C with subnormals as zeros
    made("binary32", operand, flush_inputs="sums", flush_results=results, **shape)
    for operand, results, shape in itertools.product(("binary16", "bfloat16"), RESULTS, SHAPES[::2])
]
FLUSHING += [
    made("binary64", "binary32", flush_results="after"), made("binary32", TERNARY, flush_inputs="positive"),
    made("binary32", "q4.4", flush_inputs=True), made("binary32", ("e5m2", "q4.4"), flush_inputs="positive", lanes=2),
]  # fmt: skip
FLUSHING += [  # sums that are read as zeros, operands that are not
    made("binary32", operand, flush_inputs="sums", flush_results=results, **shape)
    for operand, results, shape in itertools.product(("binary16", "binary32"), RESULTS, SHAPES[::3])
]
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
PRESETS = [sn.unit(name) for name in sn.units() if name.startswith(("amd_", "x86_avx512", "x86_amx"))]
PRESETS = [u for u in PRESETS if isinstance(u, (sn.MadUnit, sn.FmaChainUnit)) and u.accumulator.kind == "float"]
UNITS = [*PLAIN, *FLUSHING, *CHAINS, *PRESETS]


def numbers(fmt, rng, shape, kind):
    """Values of a format: all of it, around one, around the roots of the sum's least normal number, specials too."""
    if kind == "any":
        if fmt.kind != "float":
            return rng.choice(values_of(fmt), shape).astype(carrier(fmt))
        codes = rng.integers(0, 2**63, shape, dtype=np.uint64) >> np.uint64(63 - min(fmt.bits, 63))
        if fmt.bits == 64:
            codes |= rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(63)
        return sn.decode(codes.astype(fmt.storage_dtype), fmt, carrier(fmt))
    x = rng.choice([-1, 1], shape) * (1 + rng.random(shape))
    exponents = rng.integers(-3, 4, shape) if kind == "near one" else rng.integers(-68, -58, shape)
    x = np.where(rng.random(shape) < 0.1, 0.0, np.ldexp(x, exponents))
    if kind == "special" and fmt.kind == "float":
        x = np.where(rng.random(shape) < 0.02, rng.choice([np.inf, -np.inf, np.nan, -0.0], shape), x)
    options = {} if fmt.kind == "table" else {"overflow": "saturate"}
    return sn.quantize(x, fmt, **options).astype(carrier(fmt))


def start(fmt, rng, shape, kind):
    least = fmt.emin
    around = rng.integers(least - 2, least + 3, shape) if kind in ("tiny", "special") else rng.integers(-3, 4, shape)
    c = np.ldexp(rng.choice([-1, 1], shape) * (1 + rng.choice([0, 0.5, rng.random()], shape)), around)
    c = np.where(rng.random(shape) < 0.2, rng.choice([0.0, -0.0], shape), c)
    return sn.quantize(c, fmt).astype(carrier(fmt))


def compare(u, a, b, c=None, **options):
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
    assert {e.path for e in engines} == {"native", "odd", "ieee"}


#: A unit for each way to compute blocks.
WAYS = [
    made("binary64", "binary64"), made("binary64", "binary64", chunk=3), made("binary32", "binary16", lanes=3),
    made("binary32", "bfloat16", lanes=2, chunk=2, flush_results="subnormal"), sn.unit("amd_cdna1_fp16"),
    sn.unit("amd_cdna2_fp16"), sn.unit("amd_cdna2_bf16_1k"), sn.unit("x86_avx512_bf16"),
    made("binary32", "binary32", flush_inputs=True, chunk=5), made("binary64", "binary64", lanes=4, chunk=4),
    made("binary32", "binary32", product="binary32", flush_inputs=True, flush_results="after", lanes=2),
]  # fmt: skip


@cases("u", WAYS, ids=str)
def test_sizes_threads_stacks_and_strides(u, isa):
    rng = np.random.default_rng(4)
    sizes = (1, 1, 1), (2, 15, 3), (3, 16, 2), (4, 17, 5), (9, 32, 8), (5, 33, 7), (8, 63, 4), (13, 65, 6), (2, 9, 0)
    for m, n, k in sizes:
        a, b = numbers(u.operand[0], rng, (m, k), "tiny"), numbers(u.operand[1], rng, (k, n), "tiny")
        for c in (None, start(u.c_format, rng, (m, n), "tiny")):
            compare(u, a, b, c, threads=1)
            compare(u, a, b, c, threads=3)
    a, b = numbers(u.operand[0], rng, (2, 2, 7, 11), "special"), numbers(u.operand[1], rng, (2, 2, 37, 11), "special")
    c = start(u.c_format, rng, (2, 7, 37), "special")
    for threads in (1, 3):
        compare(u, a, b.swapaxes(2, 3), c, threads=threads)
        compare(u, a[:, ::-1, ::2, ::-1], b[:1, :, ::-3].swapaxes(2, 3), threads=threads)
    shapes = (2, 3, 5, 6), (4, 3, 3, 2)
    image, weight = (numbers(f, rng, shape, "near one") for f, shape in zip(u.operand, shapes, strict=True))
    want = sn.conv2d(image, weight, u, return_stats=True)[0]  # which the definition computes
    assert_same_bits(sn.conv2d(image, weight, u), want, str(u), "conv2d")
    x = numbers(u.operand[1], rng, (5, 13), "special")
    assert_same_bits(sn.sum(x, u, axis=1), sn.sum(x, u, axis=1, return_stats=True)[0], str(u), "sum")


@cases("name", ENVIRONMENTS)
def test_the_callers_floating_point_environment(control, name, isa):
    rng = np.random.default_rng(5)
    given = []
    for u in WAYS:
        factors = (numbers(f, rng, shape, "tiny") for f, shape in zip(u.operand, ((5, 9), (9, 20)), strict=True))
        given.append((u, *factors, start(u.c_format, rng, (5, 20), "tiny")))
    want = [definition(a, b, u, c) for u, a, b, c in given]
    before = control.get()
    control.set(ENVIRONMENTS[name])
    try:
        got = [sn.matmul(a, b, u, c, threads=threads) for u, a, b, c in given for threads in (1, 3)]
    finally:
        control.set(before)
    for i, result in enumerate(got):
        assert_same_bits(result, want[i // 2], str(given[i // 2][0]), name)


def test_results_at_the_least_normal_number(isa):
    """2^-126 less or more a product that decides whether a result is tiny, before a rounding or after: where binary32's
    own result does not tell; both ways to judge, both kinds of products, and blocks of rows that need no decision."""
    rng = np.random.default_rng(6)
    for results, product in itertools.product(("before", "after"), (None, "binary32")):
        u = made("binary32", "binary32", product=product, flush_results=results)
        others = {"flush_inputs": True}, {"lanes": 2}, {"chunk": 1}, {"lanes": 2, "chunk": 2}
        units = [u, *(replace(u, **other) for other in others)]
        near = np.float64([1, 1 - 2.0**-24, 1 + 2.0**-23, 1 - 2.0**-23, 1.5])
        signs = rng.choice([-1, 1], (1, 40))
        small = [np.ldexp(rng.choice(near, shape), e) for shape, e in (((12, 1), -60), ((1, 40), -66))]
        tiny = [np.ldexp(rng.choice(near, shape), rng.integers(-76, -74, shape)) for shape in ((12, 1), (1, 40))]
        least = np.ldexp(rng.choice([-1.0, 1.0], (12, 40)), -126).astype(np.float32)
        seen = set()
        for unit, (a, b), c in itertools.product(units, (small, tiny), (None, least)):
            given = a.astype(np.float32), (b * signs).astype(np.float32)
            compare(unit, *given, c)
            plain = sn.matmul(*given, replace(unit, flush_results=None), c)
            zero = sn.matmul(*given, unit, c) == 0
            seen |= set(zip((np.abs(plain) == 2.0**-126).ravel().tolist(), zero.ravel().tolist(), strict=True))
        assert {(True, True), (True, False)} <= seen  # results of 2^-126 that were tiny, and that were not
