"""The whole library against the CPU on a GPU at real sizes, with fresh random numbers; in the simulator at toy sizes.

On a GPU the seed is another one in each run: a failure prints it, and SOFTNUM_SEED=... repeats it. Results are written
over poison, between rows of poison that must stay; every product is computed twice.
"""

import os
import secrets

import numpy as np
import pytest

import softnum as sn
from softnum import kernels
from softnum.formats.facts import fits
from softnum.kernels.device.elementwise.conversion import NO_WORDS
from softnum.kernels.device.products.gemm import engine_of
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.strides import transposed
from softnum.mac.products.engines import fast_of
from softnum.runtime.gateway import NoKernel

POISON = {4: np.uint32(0x7FA5A5A5), 8: np.uint64(0x7FF5A5A5A5A5A5A5)}
# "small" is for compute-sanitizer, under which kernels are ten to a hundred times as slow
SIZE = "toy" if _cuda.SIMULATOR else "small" if os.environ.get("SOFTNUM_SMALL") else "real"


def by_size(**sizes):
    """What belongs to the size of these tests."""
    return sizes[SIZE]


M, K, N = by_size(real=(1000, 777, 1025), small=(150, 45, 137), toy=(4, 9, 5))


@pytest.fixture
def rng():
    seed = int(os.environ.get("SOFTNUM_SEED") or (11 if SIZE == "toy" else secrets.randbits(64)))
    print(f"SOFTNUM_SEED={seed}")
    return np.random.default_rng(seed)


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def same(got, want, *what):
    assert got.dtype == want.dtype and got.shape == want.shape, what
    wrong = np.argwhere(bits(got) != bits(want))
    assert not len(wrong), [*what, len(wrong), *((tuple(i), got[tuple(i)], want[tuple(i)]) for i in wrong[:5])]


def poisoned(shape, dtype):
    """(an array on the device to be written, what is around it and must stay as it is)"""
    dtype = np.dtype(dtype)
    around = np.full((shape[0] + 2, *shape[1:]), POISON[dtype.itemsize]).view(dtype)
    around = _cuda.to_device(around)
    return around[1:-1], around


def unharmed(around):
    edges = _cuda.to_host(around)[[0, -1]]
    assert (bits(edges) == POISON[edges.dtype.itemsize]).all(), "written beyond the result"


# ---- products ------------------------------------------------------------------------------------------------------


#: families of units that no kernel computes
WITHOUT_KERNELS = sn.BlockFusedDotUnit, sn.GroupedDotUnit, sn.TwoStageDotUnit


def distinct_presets(with_kernels=True):
    """One name for each unit that kernels compute, or that none does: several generations of GPUs share theirs."""
    found = {}
    for name in sn.units():
        unit = sn.unit(name)
        lacks = isinstance(unit, WITHOUT_KERNELS) or isinstance(getattr(unit, "flush_inputs", False), str)
        if lacks != with_kernels:
            found.setdefault(unit, name)
    return list(found.values())


UNITS = {
    "fused": sn.MadUnit("e6m9", operand="e5m2"),
    "product": sn.MadUnit("e6m9", operand="e5m2", product="e5m2"),
    "chunks": sn.MadUnit("e6m9", operand="e5m2", chunk=64),
    "wide product": sn.MadUnit("binary16", operand=("bfloat16", "binary16"), product="binary32"),
    "binary32": sn.MadUnit("binary32", operand="binary32"),
    "binary64": sn.MadUnit("binary64", operand="binary32"),
    "to odd": sn.MadUnit("e6m9", operand="e4m3", rounding="to_odd"),
    "up": sn.MadUnit("bfloat16", operand="bfloat16", product="bfloat16", rounding="up"),
    "toward zero, saturating": sn.MadUnit("e5m2", operand="e4m3fn", rounding="toward_zero", overflow="saturate"),
    "stochastic": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12),
    "stochastic, two words": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="sr", stochastic_bits=30),
    "stochastic, chunks": sn.MadUnit("e6m9", operand="e5m2", rounding="sr", stochastic_bits=8, chunk=32),
    "fixed": sn.MadUnit("q8.8", operand="q4.4"),
    "fixed, wrapping": sn.MadUnit("q16.0", operand="q8.0", overflow="wrap"),
    "lanes": sn.MadUnit("e6m9", operand="e5m2", lanes=8, reduction="tree"),
    "compensated": sn.MadUnit("e6m9", operand="e5m2", compensated="kahan"),
    "exact": sn.ExactDotUnit("binary32", operand="binary16"),
}


def values(rng, fmt, shape, special=True):
    """Random values of a format, float32 where that holds them; some columns subnormal, and in some rows the others."""
    x = rng.standard_normal(shape)
    if fmt.kind == "fixed":
        x *= float(fmt.max) / 2
        x = np.abs(x) if fmt.min == 0 else x
        special = False
    else:
        x[..., 1::5] *= float(fmt.smallest_normal)
    x = sn.quantize(x, fmt)
    if special:
        known = [-0.0, float(fmt.max), -float(fmt.max), float(fmt.smallest_subnormal)]
        known += [np.nan] * fmt.has_nan + [np.inf, -np.inf] * bool(fmt.infinities)
        for i, value in enumerate(known):
            x[..., i % shape[-2], rng.integers(shape[-1])] = value
    return x.astype(np.float32) if fits(fmt, np.float32) else x


def operands(rng, unit, m, k, n, *lead, special=True):
    """a, with what is special in its rows, and b, with it in its columns."""
    if isinstance(unit, sn.BlockDotUnit):
        shapes = ((m, k), (k, n))
        return tuple(
            sn.array(rng.standard_normal((*lead, *shape)).astype(np.float32), fmt, axis=axis)
            for shape, fmt, axis in zip(shapes, unit.operand, (-1, -2), strict=True)
        )
    a = values(rng, unit.operand[0], (*lead, m, k), special)
    b = values(rng, unit.operand[1], (*lead, n, k), special)
    return a, np.ascontiguousarray(np.swapaxes(b, -1, -2))


def key_of(unit, rng):
    return (int(rng.integers(2**62)), int(rng.integers(2**62))) if getattr(unit, "stochastic", False) else None


def on_device(x):
    if x is None:
        return None
    if isinstance(x, sn.BlockArray):
        return sn.BlockArray(_cuda.to_device(x.codes), _cuda.to_device(x.scales), x.format, x.axis, x.tensor_scale)
    return _cuda.to_device(np.ascontiguousarray(x))


def check(unit, a, b, c=None, key=None):
    want = sn.matmul(a, b, unit, c, key=key)
    given = [on_device(x) for x in (a, b, c)]
    for _ in range(2):
        out, around = poisoned(want.shape, want.dtype)
        sn.matmul(*given[:2], unit, given[2], key=key, out=out)
        same(_cuda.to_host(out), want, unit)
        unharmed(around)


def some(names, *few):
    """All at real sizes; else, where kernels have tests of their own, a few."""
    return list(names) if SIZE == "real" else list(few)


@pytest.mark.parametrize("name", UNITS if SIZE == "small" else some(UNITS, "stochastic, chunks", "binary64"))
def test_units(device, rng, name):
    unit = UNITS[name]
    a, b = operands(rng, unit, M, K, N)
    check(unit, a, b, key=key_of(unit, rng))
    c = values(rng, unit.c_format if hasattr(unit, "c_format") else unit.result, (M, N))
    check(unit, a, b, c, key=key_of(unit, rng))


@pytest.mark.parametrize("name", some(distinct_presets(), "nvidia_h100_fp16", "ocp_mxfp4_e2m1", "int8_int32"))
def test_presets(device, rng, name):
    unit = sn.unit(name)
    m, k, n = (M, K, N) if fast_of(unit) else (min(M, 64), min(K, 300), min(N, 100))  # else slow on the CPU
    if isinstance(unit, sn.BlockDotUnit):
        k = -(-k // 32) * 32
    check(unit, *operands(rng, unit, m, k, n), key=key_of(unit, rng))


def test_which_presets_have_kernels(device):
    """Those that the test above takes on a GPU, of which the simulator tries few; the others say so."""
    for name in distinct_presets():
        assert engine_of(sn.unit(name), NO_WORDS)
    others = [sn.unit(name) for name in distinct_presets(with_kernels=False)]
    assert {type(unit) for unit in others} == {*WITHOUT_KERNELS, sn.MadUnit}
    for unit in others:
        with pytest.raises(NoKernel, match="no (CUDA kernel computes|kernel flushes some of) .*; copy the"):
            engine_of(unit, NO_WORDS)


SIZES = [
    (1, 1, 1),
    (1, 4099, 1),
    (127, 1, 129),
    (128, 8, 128),
    (129, 515, 127),
    (3, 2048, 5),
    (1000, 3, 2),
    (257, 64, 64),
]


@pytest.mark.parametrize(
    "name", some(["fused", "product", "stochastic", "chunks", "to odd", "fixed", "binary64"], "product")
)
@pytest.mark.parametrize("size", some(SIZES, (5, 3, 2)), ids=str)
def test_ragged(device, rng, name, size):
    unit = UNITS[name]
    check(unit, *operands(rng, unit, *size, special=False), key=key_of(unit, rng))


@pytest.mark.parametrize("name", some(["product", "stochastic"], "product"))
def test_batches_and_strides(device, rng, name):
    unit = UNITS[name]
    m, k, n = by_size(real=(130, 70, 61), small=(33, 20, 18), toy=(3, 5, 2))
    a, b = operands(rng, unit, m, k, n, 3)
    key = key_of(unit, rng)
    check(unit, a, b, key=key)
    check(unit, a, b[0], key=key)
    turned = (transposed(_cuda.to_device(np.ascontiguousarray(x[0].T)), (1, 0)) for x in (a, b))
    got = sn.matmul(*turned, unit, key=key)
    same(_cuda.to_host(got), sn.matmul(a[0], b[0], unit, key=key))


def test_same_in_any_company(device, rng):
    """An element's bits depend on its own operands and place, whatever is computed beside it."""
    unit = UNITS["stochastic"]
    a, b = (on_device(x) for x in operands(rng, unit, M, K, N))
    whole = _cuda.to_host(sn.matmul(a, b, unit, key=5))
    part = _cuda.to_host(sn.matmul(a[: M // 2], b, unit, key=5))
    same(part, whole[: M // 2])


# ---- elements ------------------------------------------------------------------------------------------------------

FORMATS = ["e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "bfloat16", "binary16", "dlfloat16", "q4.4", "binary8p3se", "e8m23"]
MODES = ["nearest_even", "nearest_away", "toward_zero", "away_from_zero", "up", "down", "to_odd", "stochastic"]


@pytest.mark.parametrize("rounding", some(MODES, "to_odd", "stochastic"))
@pytest.mark.parametrize("fmt", some(FORMATS, "e4m3fn", "q4.4"))
def test_quantize(device, rng, fmt, rounding):
    """All patterns of bits: every exponent, NaNs, infinities, subnormals."""
    fmt = sn.format(fmt)
    count = by_size(real=3_000_001, small=10_007, toy=53)
    for kind, dtype in ((np.uint32, np.float32), (np.uint64, np.float64)):
        x = rng.integers(0, 2 ** (8 * np.dtype(kind).itemsize), count, dtype=kind).view(dtype)
        if not fmt.has_nan:
            x = np.where(np.isfinite(x), x, dtype(0.75))
        options = {"rounding": rounding, "key": (int(rng.integers(2**60)), 7), "stochastic_bits": 11}
        want = sn.quantize(x, fmt, **options)
        out, around = poisoned(x.shape, dtype)
        sn.quantize(_cuda.to_device(x), fmt, out=out, **options)
        same(_cuda.to_host(out), want, fmt, rounding, dtype)
        unharmed(around)


@pytest.mark.parametrize("fmt", some(FORMATS, "e4m3fn"))
def test_codes_and_values(device, rng, fmt):
    fmt = sn.format(fmt)
    count = by_size(real=1_000_003, small=5003, toy=37)
    x = rng.standard_normal(count).astype(np.float32)
    codes = sn.encode(_cuda.to_device(x), fmt, rounding="toward_zero")
    same(_cuda.to_host(codes), sn.encode(x, fmt, rounding="toward_zero"), fmt)
    any_codes = rng.integers(0, 2**fmt.bits, count, dtype=np.uint64).astype(fmt.storage_dtype)
    same(_cuda.to_host(sn.decode(_cuda.to_device(any_codes), fmt)), sn.decode(any_codes, fmt), fmt)


# ---- convolutions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some(["fused", "product", "stochastic", "chunks", "to odd"], "product"))
def test_convolutions(device, rng, name):
    """Forward and both gradients: in groups, padded, with strides that leave a margin."""
    unit = UNITS[name]
    images, filters = by_size(
        real=((6, 16, 33, 30), (24, 8, 3, 3)), small=((2, 4, 9, 8), (4, 2, 3, 3)), toy=((1, 2, 3, 4), (2, 1, 2, 2))
    )
    options = {"groups": 2, "padding": 1, "stride": (2, 1), "key": key_of(unit, rng)}
    x, w = values(rng, unit.operand[0], images, special=False), values(rng, unit.operand[1], filters, special=False)
    y = sn.conv2d(x, w, unit, **options)
    dy = values(rng, unit.operand[1], y.shape, special=False)
    dx, dw, ddy = (_cuda.to_device(a) for a in (x, w, dy))
    for got, want in (
        (sn.conv2d(dx, dw, unit, **options), y),
        (
            sn.mac.products.conv2d_backward_data(ddy, dw, unit, images[2:], **options),
            sn.mac.products.conv2d_backward_data(dy, w, unit, images[2:], **options),
        ),
        (
            sn.mac.products.conv2d_backward_weight(dx, ddy, unit, filters[2:], **options),
            sn.mac.products.conv2d_backward_weight(x, dy, unit, filters[2:], **options),
        ),
    ):
        same(_cuda.to_host(got), want, unit)


# ---- block formats -------------------------------------------------------------------------------------------------

BLOCKS = [
    "mxfp8_e4m3", "mxfp4_e2m1", "mxint8", "nvfp4", sn.BlockFormat("q1.15", "e8m0fnu", None),
    sn.BlockFormat("e4m3fn", "binary32", 48),
]  # fmt: skip


@pytest.mark.parametrize("rounding", some(["nearest_even", "stochastic"], "stochastic"))
@pytest.mark.parametrize("fmt", some(BLOCKS, "mxfp4_e2m1"), ids=str)
def test_blocks(device, rng, fmt, rounding):
    """Tiles of short blocks, columns, and short last blocks; infinities, NaNs and subnormals; codes, scales, values."""
    fmt = sn.format(fmt)
    options = {"rounding": rounding, "key": (int(rng.integers(2**60)), 7), "stochastic_bits": 11}
    shapes = by_size(
        real=((512, 4096), (1500, 501), (1, 2**19 + 5)), small=((64, 256), (70, 101)), toy=((2, 32), (3, 33))
    )
    for shape in shapes:
        for dtype in (np.float32, np.float64):
            x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-40, 40, (shape[0], 1))).astype(dtype)
            x[..., 1::97] = rng.choice([np.inf, np.nan, 0, np.finfo(dtype).smallest_subnormal], x[..., 1::97].shape)
            x[::5] = np.nan_to_num(x[::5], posinf=1.0)
            for axis in (-1, 0):
                want, given = sn.encode(x, fmt, axis=axis, **options), _cuda.to_device(x)
                for _ in range(2):
                    got = sn.encode(given, fmt, axis=axis, **options)
                    for one, other in zip(got[:2], want, strict=False):
                        same(_cuda.to_host(one), other, fmt, axis, dtype)
                    assert got[2:] == want[2:]
                value = sn.decode(want, fmt, axis=axis)
                out, around = poisoned(x.shape, np.float64)
                sn.decode(got, fmt, axis=axis, out=out)
                same(_cuda.to_host(out), value, fmt, axis, dtype)
                unharmed(around)
                if dtype == np.float64:
                    out, around = poisoned(x.shape, np.float64)
                    sn.quantize(given, fmt, axis=axis, out=out, **options)
                    same(_cuda.to_host(out), value, fmt, axis)
                    unharmed(around)


# ---- operations on codes -------------------------------------------------------------------------------------------

OPERATIONS = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "fma": 3, "sqrt": 1, "remainder": 2, "minimum": 2}


@pytest.mark.parametrize("rounding", some(["nearest_even", "toward_zero", "stochastic"], "stochastic"))
@pytest.mark.parametrize("fmt", some(["e4m3fn", "binary16", "bfloat16", "binary32", "binary64", "q8.8"], "binary16"))
@pytest.mark.parametrize("name", some(OPERATIONS, "fma"))
def test_operations(device, rng, name, fmt, rounding):
    """All codes: NaNs, infinities, subnormals; results and flags."""
    fmt = sn.format(fmt)
    count = by_size(real=300_007, small=2003, toy=29)
    given = [
        (rng.integers(0, 2**64, count, dtype=np.uint64) >> np.uint64(64 - fmt.bits)).astype(fmt.storage_dtype)
        for _ in range(OPERATIONS[name])
    ]
    if fmt.kind == "fixed":
        given = [np.where(x == 0, x.dtype.type(1), x) for x in given]  # a quotient by 0 has no code
        if name == "sqrt":
            given = [x & x.dtype.type(2 ** (fmt.bits - 1) - 1) for x in given]  # nor has a negative number's root
    options = {"return_flags": True}
    if name not in ("remainder", "minimum"):
        options |= {"rounding": rounding, "key": (int(rng.integers(2**60)), 3), "stochastic_bits": 9}
    want = getattr(sn.ops, name)(*given, fmt, **options)
    got = getattr(sn.ops, name)(*map(_cuda.to_device, given), fmt, **options)
    for one, other in zip(got, want, strict=True):
        same(_cuda.to_host(one), other, name, fmt, rounding)


# ---- units that are functions --------------------------------------------------------------------------------------

_e5m2, _e6m9, _word = kernels.scalar("e5m2"), kernels.scalar("e6m9"), kernels.scalar("e6m9", rounding="sr")


def _rounded(acc, a, b):
    return _e6m9.add(acc, _e5m2.multiply(a, b))


def _approximate(acc, a, b):
    return acc if abs(a) < np.float32(0.5) else _e6m9.fma(a, b, acc)


def _by_words(acc, a, b, word):
    return _word.fma(a, b, acc, word)


@pytest.mark.parametrize("function", some([_rounded, _approximate, _by_words], _rounded))
def test_functions(device, rng, function):
    unit = sn.CustomMadUnit(function, operand="e5m2", accumulator="e6m9", lanes=by_size(real=4, small=2, toy=1))
    check(unit, *operands(rng, unit, M, K, N, special=False), key=key_of(unit, rng))
