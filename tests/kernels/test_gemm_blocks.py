"""The fast paths of products on the device: their steps alone, over many operands, and their kernels."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import seed_and_stream
from softnum.formats.facts import fits
from softnum.kernels.device.products import gemm
from softnum.kernels.device.products.engines import engine_of
from softnum.kernels.device.products.mad import fast as gemm_blocks
from softnum.kernels.device.products.mad.fast_entries import Block, steps_library
from softnum.kernels.device.products.mad.steps import steps_of
from softnum.kernels.device.runtime.source import TYPES, Entry
from softnum.kernels.device.runtime.strides import transposed
from softnum.mac.products.engines import fast_of
from softnum.runtime import _core
from tests.support.devices import on_gpu
from tests.support.equality import poisoned

SINGLE = Block(1, 1, 1, 1, 1, 1)


def unit(acc="e6m9", operand="e5m2", **options):
    return sn.MadUnit(acc, operand=operand, **options)


# path -> units; each path of csrc/products/gemm/paths.c is here
UNITS = {
    "magic": [
        unit(), unit(chunk=3), unit(product="e5m2"), unit(product="e4m3fn", chunk=2), unit("binary16", "e4m3fn"),
        unit("e5m7", ("e4m3fn", "e5m2"), chunk=2, outer_accumulator="e6m10"), unit("e5m4", "e2m1fn"),
        unit("e4m3fn", "e4m3fn", product="e4m3fn"), unit(overflow="saturate"), unit("e5m7", "e4m3b11fnuz"),
        unit("e4m6", "e3m2fn", overflow="saturate"),
    ],
    "mixed": [unit("q6.4", "e2m1fn", product="e3m2fn"), unit("e6m9", "q3.2", product="q4.3", chunk=2)],
    "fixed": [unit("q6.4", "q3.3"), unit("q6.4", "q3.3", chunk=2, outer_accumulator="q8.4")],
    "native": [
        unit("binary32", "bfloat16"), unit("binary32", "binary32"), unit("binary32", "binary32", product="binary32"),
        unit("binary32", "e5m2", chunk=2),
    ],
    "odd": [
        *(unit(rounding=mode, chunk=chunk) for mode, chunk in (
            ("rna", None), ("nearest_zero", None), ("nearest_up", 2), ("nearest_down", None), ("rtz", 3),
            ("away_from_zero", None), ("rup", 2), ("rdn", 2), ("rdn", None), ("rto", None),
        )),
        unit("e8m14", "e5m2"), unit("e8m14", "e5m2", chunk=2), unit("e6m9", "e5m2", product="e4m3fn", rounding="rtz"),
        unit("e6m9", "e5m2", product="e6m9", product_rounding="rup"), unit("q8.6", "q4.4", rounding="rna"),
        unit("e8m12", "binary16"), unit("e8m20", "binary32", chunk=2),
    ],
    "stochastic": [
        unit(rounding="sr", stochastic_bits=12), unit(rounding="sr", stochastic_bits=8, chunk=3),
        unit(product="e5m2", rounding="sr", stochastic_bits=9),
        unit(product="e4m3fn", rounding="sr", stochastic_bits=14, chunk=2),
        unit("e6m7", "e5m2", rounding="sr", stochastic_bits=16),
        unit("e5m10", "e4m3fn", rounding="sr", stochastic_bits=11),
        unit("e5m10", "e4m3fn", rounding="sr", stochastic_bits=11, overflow="saturate"),
        unit("e4m3fnuz", "e2m1fn", product="e3m2fn", rounding="sr", stochastic_bits=8),
        unit("e4m3fn", "e5m2", product="e4m3fn", rounding="sr", stochastic_bits=16, chunk=2),
    ],
    "wide": [
        unit("e10m40", "binary32"), unit("e9m30", "binary32", chunk=2), unit("e6m9", rounding="sr", stochastic_bits=32),
        unit(product="e5m2", rounding="sr", stochastic_bits=20, chunk=2), unit(product="e5m2", product_rounding="sr"),
        unit("e8m30", "e8m20", product="e8m35"),
    ],
    "integers": [
        unit("q12.8", "q4.4"), unit("q5.8", "q4.4"), unit("q5.8", "q4.4", overflow="wrap"), unit("q20.12", "q8.4"),
        unit("q14.-4", "q6.-2"), unit("q-1.20", ("q-3.10", "uq-2.10"), overflow="wrap"),
        unit("uq8.8", "uq4.4"), unit("q16.16", ("q8.8", "q8.8"), overflow="wrap"),
    ],
}  # fmt: skip
CASES = [pytest.param(path, u, id=f"{path}: {u}") for path, units in UNITS.items() for u in units]


def path_of(u) -> str:
    return fast_of(u).path


def values(fmt, shape, rng, scale=None):
    """Values of a format: codes at random, special ones among them; with a scale, small ones."""
    dtype = np.float32 if fits(fmt, np.float32) else np.float64
    if scale is not None:
        x = rng.standard_normal(shape) * scale
        x[rng.random(shape) < 0.1] = 0
        return sn.quantize(x.astype(dtype), fmt, overflow="saturate")
    codes = rng.integers(0, 2**fmt.bits, shape, dtype=np.uint64, endpoint=False).astype(fmt.storage_dtype)
    return sn.decode(codes, fmt, dtype)


def run_steps(u, level, careful, a, b, c, key):
    """The steps of every pair of a row and a column, compiled for this machine."""
    from softnum.kernels.device.runtime import _cuda

    steps = steps_of(u, level, careful)
    given = tuple(x.dtype.name for x in (a, b, c))
    out_type = "float32" if fits(u.result, np.float32) else "float64"
    t = steps.kind
    ctype = TYPES[t]
    words = ", (sn_u32)n, (sn_u32)m, 0u, key0, key1, key2, key3" if steps.words else ""
    body = f"""
for (sn_i64 m = 0; m < rows; m++)
    for (sn_i64 n = 0; n < columns; n++) {{
        {ctype} x[5 * 16], y[5 * 16], acc[1], outer[1];
        for (sn_i64 i = 0; i < depth; i++) {{
            x[5 * i] = _enter_a(a[m * depth + i]);
            y[5 * i] = _enter_b(b[i * columns + n]);
        }}
        const {ctype} start = _enter_c(c[m * columns + n]);
        acc[0] = {int(not steps.late and not steps.chunk)} ? start : 0;
        outer[0] = start;
        _compute(acc, outer, x, 0, y, 0, 0, depth, depth{words});
        out[m * columns + n] = _leave({"outer" if steps.chunk else "acc"}[0], start);
    }}
"""
    pointers = tuple((f"{g}*", name) for g, name in zip((*given, out_type), ("a", "b", "c", "out"), strict=True))
    numbers = tuple(("int64", name) for name in ("rows", "columns", "depth"))
    keys = tuple(("uint32", f"key{i}") for i in range(4))
    library = steps_library(steps, SINGLE, given, out_type)
    library = replace(library, entries=(*library.entries, Entry("many", "void", (*pointers, *numbers, *keys), body)))
    f = _cuda._on_host(library)
    out = np.full(c.shape, np.nan, out_type)
    key_words = (*_core.philox_key(*seed_and_stream(key), 1), *_core.philox_key(*seed_and_stream(key), 2))
    f.many(*(x.ctypes.data for x in (a, b, c, out)), *a.shape[:1], b.shape[1], a.shape[1], *key_words)
    return out


def same_bits(got, want):
    kind = f"u{want.dtype.itemsize}"
    assert got.dtype == want.dtype and got.shape == want.shape
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), [(tuple(i), got[tuple(i)], want[tuple(i)]) for i in wrong[:5]]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "u"), CASES)
def test_steps(path, u):
    """Every level's steps alone give the bits of the CPU's product, for any operands of its domain."""
    assert path_of(u) == path
    rng = np.random.default_rng(7)
    integers = path == "integers"
    seen = set()
    for scale, start_scale in ((None, None), (None, 0.0), (1.0, 1.0), (2.0**-6, 0.0), (0.25, 0.0)):
        k = 5 if scale is None else 7
        a, b = (values(f, s, rng, scale) for f, s in zip(u.operand, ((128, k), (k, 128)), strict=True))
        c = values(u.result, (128, 128), rng, start_scale)
        if start_scale == 0.0:  # +0, never -0
            c = np.abs(c)
        key = (3, 2**33 + 1)
        want = sn.matmul(a, b, u, c, key=key if u.stochastic else None)
        if integers:
            same_bits(run_steps(u, "full", True, a, b, c, key), want)
            largest = tuple(float(np.abs(x).max()) for x in (a, b, c))
            if fast_of(u).fits(k, largest):
                seen.add("plain")
                same_bits(run_steps(u, "full", False, a, b, c, key), want)
            continue
        largest = tuple(float(x) if (x := np.abs(v).max()) == x else math.inf for v in (a, b, c))
        zero = bool((np.signbit(c) & (c == 0)).any())
        level = fast_of(u).level(k, largest, zero)
        tested = ["tested"] if "tested" in fast_of(u).levels and not zero else []
        for each in dict.fromkeys(("full", *tested, level)):
            seen.add(each)
            same_bits(run_steps(u, each, True, a, b, c, key), want)
    if path == "stochastic":
        assert seen >= set(fast_of(u).levels)
    if path == "magic":
        assert "bare" in seen or not fast_of(u).exact_below
        assert seen > {"full"}


# ---- kernels -------------------------------------------------------------------------------------------------------

# small in the simulator, where a step takes long
KERNELS = [
    unit(), unit(product="e5m2", chunk=5), unit("binary32", "binary32"), unit(rounding="rdn", chunk=3),
    unit(rounding="sr", stochastic_bits=8, chunk=6), unit(product="e5m2", rounding="sr", stochastic_bits=9),
    unit("e9m30", "binary32", chunk=2), unit(product="e5m2", rounding="sr", stochastic_bits=20, chunk=3),
    unit("q12.8", "q4.4"), unit("q5.8", "q4.4"),
    unit(product="e5m2", rounding="sr", stochastic_bits=4, chunk=6, random="philox4x32-10/4"),
    unit("e9m30", "binary32", rounding="sr", stochastic_bits=16, chunk=3, random="philox4x32-7/2"),
]  # fmt: skip


def check(device, monkeypatch, u, a, b, c=None, key=(5, 2**40)):
    """matmul on the device, by blocks, into poisoned memory: the CPU's bits. Returns the steps that were taken."""
    taken = []
    engine_of.cache_clear()  # what another test has prepared is not asked for again
    real = gemm_blocks.blocks_kernel
    monkeypatch.setattr(gemm_blocks, "blocks_kernel", lambda *args: taken.append(args) or real(*args))
    key = key if u.stochastic else None
    want = sn.matmul(*map(np.ascontiguousarray, (a, b)), u, None if c is None else np.ascontiguousarray(c), key=key)
    out = poisoned(device, want.shape, want.dtype)
    assert (
        sn.matmul(*map(_to_device(device), (a, b)), u, c if c is None else device.to_device(c), key=key, out=out) is out
    )
    same_bits(out.copy_to_host(), want)
    (args,) = taken
    return args


def _to_device(device):
    """To the device as it lies in memory: a transposed matrix as one."""

    def moved(x):
        if x.ndim == 2 and not x.flags.c_contiguous:
            return transposed(device.to_device(np.ascontiguousarray(x.T)), (1, 0))
        return device.to_device(np.ascontiguousarray(x))

    return moved


@pytest.mark.parametrize("u", KERNELS, ids=str)
def test_kernels(device, monkeypatch, u):
    """Ragged sizes, batches that broadcast, C or none; the last tile of k is short."""
    rng = np.random.default_rng(5)
    shapes = ((2, 1, 9, 7), (7, 5))
    a, b = (values(f, s, rng, 0.5) for f, s in zip(u.operand, shapes, strict=True))
    c = values(u.result, (2, 3, 5), rng, 0.5)
    check(device, monkeypatch, u, a[0, 0], b)
    check(device, monkeypatch, u, a[:, 0, :3], b, c)


@pytest.mark.parametrize("u", [KERNELS[0], KERNELS[6]], ids=str)
def test_layouts(device, monkeypatch, u):
    """Both operands in both orders, neighbours by four where sizes allow it."""
    rng = np.random.default_rng(6)
    for m, k, n, turn_a, turn_b in ((8, 8, 4, 0, 0), (12, 5, 4, 1, 0), (3, 12, 5, 0, 1), (4, 3, 5, 1, 1)):
        a, b = (values(f, s, rng, 0.5) for f, s in zip(u.operand, ((m, k), (k, n)), strict=True))
        a, b = (np.asfortranarray(x) if turn else x for x, turn in ((a, turn_a), (b, turn_b)))
        _, _, layouts, _, fours, *_ = check(device, monkeypatch, u, a, b)
        assert layouts[:2] == tuple("columns" if turn else "rows" for turn in (turn_a, turn_b))
        assert fours == ((m if turn_a else k) % 4 == 0, (k if turn_b else n) % 4 == 0)


def test_other_carriers(device, monkeypatch):
    """float64 arrays of narrow values, float32 arrays under a wide unit, -0 of a format without one."""
    rng = np.random.default_rng(8)
    a, b = (values(sn.format("e5m2"), s, rng, 1.0) for s in ((4, 6), (6, 4)))
    check(device, monkeypatch, unit(), a.astype(np.float64), b)
    check(device, monkeypatch, unit("e9m30", "e5m2", product="e9m30"), a, b)
    q = np.float32([[-0.0, 1, -1], [-0.0, -0.0, -0.0]])
    check(device, monkeypatch, unit("e8m14", "q3.3", rounding="rdn"), q, q.T.copy(), np.float32([[-0.0, 0], [0, -0.0]]))


def test_value_tables(device, monkeypatch):
    """Operands of formats of one's own: their values, by the path of any others."""
    powers = sn.CustomFormat.from_table([0.0, 8.0, *(s * 2.0**i for i in range(-4, 3) for s in (1, -1))], name="powers")
    quarters = sn.CustomFormat.from_table([math.nan, *(i / 4 for i in range(-3, 4))], name="quarters")
    rng = np.random.default_rng(10)
    a = rng.choice(np.float32([0, -0.0, 0.25, -2, 4]), (5, 6))
    b = rng.choice(np.float32([0.25, 0, -0.75, np.nan]), (6, 4), p=[0.4, 0.3, 0.28, 0.02])
    u = unit("e6m9", (powers, quarters), chunk=4)
    check(device, monkeypatch, u, a, b)
    a[2, 3] = 3
    with pytest.raises(ValueError, match=r"a\[2, 3\] = .*3\.0.* is no value of powers"):
        sn.matmul(device.to_device(a), device.to_device(b), u)


def test_special_values(device, monkeypatch):
    """Infinities and NaNs take the level that knows them; finite operands a quicker one."""
    a = np.float32([[np.inf, 1, 0], [np.nan, 1, 0], [57344, 57344, 57344], [-0.0, 0, -0.0], [-0.0, -0.0, 2.0**-16]])
    random = {"rounding": "sr", "stochastic_bits": 12}
    for u in (unit(), unit(product="e5m2"), unit(rounding="rto"), unit(**random), unit(product="e5m2", **random)):
        careful = "tested" if u.stochastic else "full"
        assert check(device, monkeypatch, u, a, a.T.copy())[0].level == careful
        quick = check(device, monkeypatch, u, a[3:], a[3:].T.copy())[0].level
        assert quick == ("full" if u.rounding == "to_odd" else "bare")
    minus_zero = np.full((2, 2), -0.0, np.float32)
    assert check(device, monkeypatch, unit(), a[3:], a[3:].T.copy(), minus_zero)[0].level == "signed"
    assert check(device, monkeypatch, unit(**random), a[3:], a[3:].T.copy(), minus_zero)[0].level == "full"


def test_engines():
    """Fast units are computed by blocks, unless their words come from an array; others by the definition."""
    from softnum.kernels.device.elementwise.conversion import FROM_ARRAY, FROM_KEY, NO_WORDS

    fast = unit(rounding="sr", stochastic_bits=12)
    assert type(gemm.engine_of(unit(), NO_WORDS)) is type(gemm.engine_of(fast, FROM_KEY)) is gemm_blocks.BlocksEngine
    for other in (gemm.engine_of(fast, FROM_ARRAY), gemm.engine_of(unit(rounding="stochastic_fast"), FROM_KEY)):
        assert type(other) is not gemm_blocks.BlocksEngine


def test_sums_of_integers_that_fit():
    """Sums of unsigned numbers have no lower bound to keep to."""
    for u, most in ((unit("uq8.8", "uq4.4"), 16), (unit("q8.8", "q4.4"), 8)):
        engine = fast_of(u)
        assert engine.fits(most - 1, (4.0, 4.0, 0.0)) and not engine.fits(most, (4.0, 4.0, 0.0))
        assert engine.fits(1, (0.0, 0.0, 1.0)) and not engine.fits(most - 1, (4.0, 4.0, 16.0))


def largest_sum(start, addend, k, up):
    """The largest sum in e6m9 of k addends, each rounded up or, if not `up`, ties away from 0; in exact numbers."""
    total = max(Fraction(start), Fraction(2) ** -30)
    for _ in range(k):
        exact = total + addend
        place = Fraction(2) ** (math.floor(math.log2(exact)) - 9)
        total = place * (math.ceil(exact / place) if up else math.floor(exact / place + Fraction(1, 2)))
    return total


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
def test_a_level_without_tests_is_taken_where_no_sum_can_overflow(rounding):
    """Not where one can; and nearly wherever none can: the bound is followed in binary64, rounded up, so that where
    every sum is rounded up it may gain a last place more at each step."""
    rng = np.random.default_rng(9)
    u = unit("e6m9", rounding=rounding, stochastic_bits=12)
    engine, most = fast_of(u), Fraction(float(u.accumulator.max))
    up = rounding == "stochastic"
    seen = set()
    for _ in range(200):
        k = int(rng.integers(1, 300))
        a, b = (float(x) for x in sn.quantize(2.0 ** rng.uniform(6, 15, 2), "e5m2", overflow="saturate"))
        start = float(sn.quantize(2.0 ** rng.uniform(-30, 32), "e6m9", overflow="saturate"))
        level = engine.level(k, (a, b, start), False)
        bound = largest_sum(start, Fraction(a) * Fraction(b), k, up)
        assert level == "bare" or level == ("tested" if up else "full")
        slack = 1 + (Fraction(k, 2**8) if up else Fraction(1, 2**30))
        assert bound <= most if level == "bare" else bound * slack > most, (k, a, b, start)
        seen.add(level)
    assert len(seen) == 2
    for end in (math.inf, math.nan):
        assert "bare" not in {engine.level(1, (1.0, 1.0, end), False), engine.level(1, (end, 1.0, 0.0), False)}


@on_gpu
@pytest.mark.parametrize(("path", "u"), CASES)
def test_real_sizes(device, monkeypatch, path, u):
    """Every path at sizes that fill a GPU, ragged and not."""
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for m, k, n, scale in ((512, 256, 384, 0.125), (333, 259, 277, None), (64, 1030, 32, 0.125)):
        a, b = (values(f, s, rng, scale) for f, s in zip(u.operand, ((m, k), (k, n)), strict=True))
        check(device, monkeypatch, u, a, b)
