"""matmul by the definition in lanes (csrc/products/gemm/lanes.h) against the definition: units drawn at random."""

import random
from collections import Counter

import numpy as np
import pytest

import softnum as sn
from softnum.formats import FloatFormat
from softnum.formats.facts import fits
from softnum.mac.products.engines import counting_of, fast_of
from softnum.mac.products.mad import narrowed
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import definition, matmul_module

NARROW = [
    "e4m3fn", "e5m2", "e4m3", "e3m4", "e2m1fn", "e5m2fnuz", "e4m3fnuz", "e4m3b11fnuz", "binary8p3se", "binary8p4sf",
    "e3m2fn", "q4.4", "uq4.4", "q2.6",
]  # fmt: skip
MIDDLE = ["binary16", "bfloat16", "tf32", "e6m9", "dlfloat16", "q8.8", "e8m20"]
WIDE = ["binary32", "e8m26", "e11m40", "e9m50", "e11m49", "binary64", "e8m30"]
MODES = [
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "toward_zero", "away_from_zero", "up",
    "down", "to_odd",
]  # fmt: skip
SHAPES = [(1, 1, 1), (3, 7, 5), (5, 9, 17), (6, 4, 33), (2, 13, 40)]


def drawn(rng: random.Random) -> sn.MadUnit:
    """A deterministic unit; ValueError if its parts do not fit together."""
    widths = (NARROW, MIDDLE, WIDE)
    operands = rng.choice([NARROW, *widths])
    accumulator = rng.choice(rng.choice(widths))
    if rng.random() < 0.15:
        lowest = rng.choice(["subnormal", "normal", "zero"])
        accumulator = FloatFormat(rng.randint(2, 8), rng.randint(1, 10), lowest_binade=lowest)
    pair = rng.choice(operands), rng.choice(rng.choice([operands, NARROW]))
    parts = {"operand": pair, "rounding": rng.choice(MODES)}
    if rng.random() < 0.5:
        parts |= {"product": rng.choice(rng.choice(widths)), "product_rounding": rng.choice([None, *MODES])}
    if rng.random() < 0.3:
        parts |= {"lanes": rng.choice([2, 3, 4, 5, 8]), "reduction": rng.choice(["sequential", "tree", "pairwise"])}
    if rng.random() < 0.3:
        parts |= {"chunk": rng.randint(1, 6)}
        if rng.random() < 0.5:
            parts |= {"outer_accumulator": rng.choice(rng.choice(widths))}
    if rng.random() < 0.3:
        parts |= {"compensated": "kahan"}
    if rng.random() < 0.3:
        parts |= {"flush_inputs": rng.choice([True, "sums", "positive"])}
    if rng.random() < 0.3:
        parts |= {"flush_results": rng.choice(["before", "after", "subnormal"])}
    overflow = rng.choice([None, "saturate", "saturate_finite", "infinity", "wrap"])
    return sn.MadUnit(accumulator, overflow=overflow, **parts)


def operands(fmt, rng, shape, how: str, finite: bool) -> np.ndarray:
    """Values of a format: of any code, many zeros among them, usual ones, or around its smallest."""
    if how in ("codes", "zeros"):
        codes = rng.integers(0, 2**64, shape, np.uint64) >> np.uint64(64 - fmt.bits)
        x = sn.decode(codes.astype(fmt.storage_dtype), fmt)
        x = np.where(finite & ~np.isfinite(x), 0, x)
        if how == "zeros":
            x = np.where(rng.random(shape) < 0.4, np.where(rng.random(shape) < 0.5, 0.0, -0.0), x)
    else:
        emin = 0 if how == "usual" else getattr(fmt, "emin", None) or -4
        x = rng.standard_normal(shape) * 2.0 ** (rng.integers(-2, 3, shape) + max(emin, -300))
        x = sn.quantize(x if fmt.signed else np.abs(x), fmt, overflow="saturate")
    return np.asarray(x, np.float32 if fits(fmt, np.float32) else np.float64)


def compare(u, rng, numbers, isas, kinds=("codes", "zeros", "usual", "small")) -> bool:
    """One product by every way; whether the definition has results."""
    m, k, n = rng.choice(SHAPES)
    formats = u.product, u.accumulator, u.outer
    finite = not all(f is None or f.has_nan for f in formats)
    first, second = rng.choice(kinds), rng.choice(kinds)
    a = operands(u.operand[0], numbers, (m, k), first, finite)
    b = operands(u.operand[1], numbers, (k, n), second, finite)
    c = operands(u.result, numbers, (m, n), rng.choice(kinds[::2]), True) if rng.random() < 0.5 else None
    try:
        want, counts = definition(a, b, u, c, return_stats=True)
    except ValueError as error:
        assert "no code" in str(error)
        for _ in isas():
            with pytest.raises(ValueError, match="no code"):
                sn.matmul(a, b, u, c, return_stats=True)
            with pytest.raises(ValueError, match="no code"):
                sn.matmul(a, b, u, c)
        return False
    for isa in isas():
        context = u.expression, isa, (m, k, n), first, second, c is not None
        assert_same_bits(sn.matmul(a, b, u, c), want, *context)
        got, again = sn.matmul(a, b, u, c, return_stats=True)
        assert_same_bits(got, want, *context)
        assert again == counts, context
    return True


def instruction_sets():
    """Those that this machine runs, each in turn the current one."""
    before = _core.current_isa()
    try:
        for isa in _core.available_isas():
            _core.use_isa(isa)
            yield isa
    finally:
        _core.use_isa(before)


def sweep(seeds) -> Counter:
    seen = Counter()
    for seed in seeds:
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        try:
            u = drawn(rng)
        except ValueError as error:
            assert "MadUnit" in str(error) or "overflow" in str(error)
            continue
        path = getattr(fast_of(u), "path", None)
        seen[path] += 1
        seen["counted"] += counting_of(u) is not None
        if path == "lanes" or counting_of(u) is not None:
            for _ in range(3):
                seen["compared"] += compare(u, rng, numbers, instruction_sets)
    return seen


def test_random_units():
    seen = sweep(range(400))
    assert seen["lanes"] > 150 and seen["counted"] > 120 and seen["compared"] > 400, seen


FIXED = [
    ("q8.8", "q4.4", "q4.4"), ("q8.8", "q4.4", None), ("uq4.4", "q4.4", "q2.6"), ("q10.-2", "q4.4", "q5.1"),
    ("q-2.10", "q2.6", None), ("uq2.6", "uq4.4", "uq1.7"), ("q4.30", "q8.8", "q8.20"), ("q4.2", "e4m3fn", "q30.10"),
    ("q20.20", ("e5m2", "q4.4"), "q12.12"),
]  # fmt: skip


@cases("mode", MODES)
def test_fixed_point_that_saturates(mode):
    """Ties and quarters of the last place on both sides of 0, sums at both ends; sums that are flipped by Kahan's."""
    rng, numbers = random.Random(mode), np.random.default_rng(MODES.index(mode))
    for accumulator, operand, product in FIXED:
        for more in ({}, {"lanes": 2}, {"chunk": 3, "outer_accumulator": "q8.4"}, {"compensated": "kahan"}):
            u = sn.MadUnit(
                accumulator, operand=operand, product=product, rounding=mode, overflow="saturate", **more
            )  # fmt: skip
            if fast_of(u) is None and counting_of(u) is None:
                continue
            for kinds in (("codes", "codes", "codes"), ("usual", "small", "usual")):
                compare(u, rng, numbers, instruction_sets, kinds)


WIDER = [
    sn.MadUnit("e15m48", operand="e5m2"),
    sn.MadUnit("e15m40", operand="e5m2", rounding="down", lanes=3),
    sn.MadUnit("e15m48", operand="bfloat16", chunk=2, outer_accumulator="e5m2"),
    sn.MadUnit(
        "e14m45", operand="e4m3", product="e12m37", rounding="away_from_zero", chunk=3, compensated="kahan"
    ),
]  # fmt: skip


@cases("u", WIDER, ids=str)
def test_exponents_beyond_binary64s(u, monkeypatch):
    """What is computed with fewer exponents has the bits and counts of the definition; C may lie anywhere."""
    rng = np.random.default_rng(3)
    shapes = ((7, 20), (20, 33))
    some = [operands(fmt, rng, shape, "codes", False) for fmt, shape in zip(u.operand, shapes, strict=True)]
    numbers = [np.where(np.isfinite(x), x, 3).astype(x.dtype) for x in some]
    for a, b in (some, numbers):
        assert narrowed(u) is not None
        got = sn.matmul(a, b, u), *sn.matmul(a, b, u, return_stats=True)
        c = sn.encode(np.float32([1, 0.5] * 17)[:33], u.result)
        from_c = sn.matmul(a, b, u, sn.Array(c, u.result))
        with monkeypatch.context() as m:
            m.setattr(matmul_module, "narrowed", lambda unit: None)
            want, counts = definition(a, b, u, return_stats=True)
            of_c = definition(a, b, u, sn.Array(c, u.result))
        assert got[2] == counts
        for x, y in ((got[0], want), (got[1], want), (from_c, of_c)):
            if isinstance(y, sn.Array):
                assert np.array_equal(x.codes, y.codes)
            else:
                assert_same_bits(x, y, u.expression)


@pytest.mark.parametrize(
    "u",
    [
        sn.MadUnit("e15m8", operand="e5m2"),  # rounding up may double a sum
        sn.MadUnit("e15m48", operand="binary64"),
        sn.MadUnit("e15m48", operand="e5m2", overflow="saturate"),
        sn.MadUnit("e15m48", operand="e5m2", flush_results="after"),
        sn.MadUnit("e11m2", operand="e5m2", chunk=3, outer_accumulator="e15m48"),
        sn.MadUnit("e5m2", operand="e5m2"),
    ],
    ids=str,
)
def test_what_is_not_narrowed(u):
    assert narrowed(u) is None


@pytest.mark.slow
def test_many_random_units():
    seen = sweep(range(1000, 16000))
    assert seen["compared"] > 15000, seen
