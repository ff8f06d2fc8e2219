"""Fused dot-product units and chains of fused multiply-adds on CUDA arrays: the bits of the CPU."""

from dataclasses import replace

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches
from softnum.kernels.device.runtime.strides import transposed
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases
from tests.support.equality import poisoned

RNE = {"output_rounding": "nearest_even"}
INTERLEAVED = tuple(k for half in (0, 2) for first in range(0, 32, 4) for k in (first + half, first + half + 1))


def fused(terms, fraction_bits, accumulator, operand, **options):
    return sn.FusedDotUnit(terms, fraction_bits, accumulator, operand=operand, **options)


def presets():
    """Each different unit of the presets, by the first name it has."""
    found = {}
    for name in sn.units():
        if isinstance(sn.unit(name), (sn.FusedDotUnit, sn.FmaChainUnit)):
            found.setdefault(sn.unit(name), name)
            if name.endswith("_fp16"):
                found.setdefault(sn.unit(name, output="binary16"), f"{name} to binary16")
    return {name: unit for unit, name in found.items()}


FAST = {
    "pair, saturate": fused(3, 20, "binary32", ("e5m2", "e4m3fn"), overflow="saturate"),
    "one term": fused(1, 3, "e4m3", "e4m3", **RNE),
    "order, saturate": fused(2, 9, "e5m2", "e5m2", **RNE, k_order=(3, 0, 2, 1), overflow="saturate"),
    "cut to 5 bits": fused(7, 12, "binary32", ("e4m3fnuz", "binary8p3se"), truncate_fraction=5),
    "no infinity": fused(2, 8, "e4m3fn", "e4m3fn", **RNE),
    "nothing special": fused(3, 9, "e3m2fn", "e2m3fn", **RNE),
    "64 terms": fused(64, 24, "binary32", "binary16"),
    "three groups": fused(40, 25, "binary16", "binary16", **RNE),
}
DEFINED = {
    "nearest, binary32": fused(4, 23, "binary32", "binary16", **RNE),
    "up": fused(4, 23, "binary32", "binary16", output_rounding="up"),
    "binary64": fused(4, 60, "binary64", "binary32", output_rounding="down"),
    "another output": fused(3, 30, "binary32", "binary16", output="binary16", **RNE),
    "wider output": fused(4, 20, "binary16", "binary16", output="binary32", overflow="always_infinity"),
    "wider output, C after": fused(4, 20, "binary16", "binary16", output="binary32", c="after"),
    "lowest binade": fused(3, 6, "dlfloat16", "dlfloat16", **RNE),
    "floor": fused(4, 60, "binary64", "binary32", output_rounding="to_odd", min_exponent=3),
    "no -0": fused(2, 5, "e5m2fnuz", "e5m2fnuz", output_rounding="away_from_zero", truncate_fraction=2),
    "chain": sn.FmaChainUnit("binary16", operand=("e5m2", "binary16"), rounding="up", k_order=(2, 0, 1)),
    "chain, flushed": sn.FmaChainUnit("binary16", operand="e5m2", flush_inputs=True, flush_results="before"),
}


def values(fmt, shape, rng, spread=6):
    """Values of a format around 1, and in the last rows (of a) or columns (of b) all kinds of others."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
    x = sn.quantize(x, fmt, overflow="saturate")
    x[rng.random(shape) < 0.1] = 0
    return x.astype(np.float32 if fmt.precision <= 24 and fmt.exponent_bits <= 8 else np.float64)


def specials(fmt):
    """The values at a format's edges."""
    found = [0.0, fmt.max, -fmt.max, fmt.smallest_normal]
    found += [fmt.smallest_subnormal, -3 * fmt.smallest_subnormal] if fmt.lowest_binade == "subnormal" else []
    found += [-0.0] if fmt.negative_zero else []
    found += [np.inf, -np.inf] if fmt.infinities else []
    return [float(v) for v in found] + ([np.nan] if fmt.has_nan else [])


def operands(unit, m, k, n, seed=0, special=True):
    rng = np.random.default_rng(seed)
    a, b = values(unit.operand[0], (m, k), rng), values(unit.operand[1], (k, n), rng)
    c = values(unit.c_format, (m, n), rng)
    if special:  # most rows and columns are left without
        for x, fmt in ((a[-2:], unit.operand[0]), (b[:, -1:], unit.operand[1]), (c[-2:], unit.c_format)):
            these = specials(fmt)
            where = rng.random(x.shape) < 0.1
            x[where] = rng.choice(these, where.sum())
        a[0] = 0
        c[0, ::2] = -0.0 if unit.c_format.negative_zero else 0
        a[1] = np.where(a[1] == 0, 0, unit.operand[0].max)  # sums that overflow
        b[:, 0] = np.where(b[:, 0] == 0, 0, unit.operand[1].max)
    return a, b, c


def same_bits(got, want, unit):
    kind = f"u{want.dtype.itemsize}"
    assert got.dtype == want.dtype and got.shape == want.shape
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), (str(unit), [(tuple(i), got[tuple(i)], want[tuple(i)]) for i in wrong[:5]])


def check(device, unit, a, b, c=None):
    on_device = [None if x is None else device.to_device(np.ascontiguousarray(x)) for x in (a, b, c)]
    want = sn.matmul(a, b, unit, c)
    out = poisoned(device, want.shape, want.dtype)
    sn.matmul(*on_device[:2], unit, on_device[2], out=out)
    same_bits(out.copy_to_host(), want, unit)


@pytest.mark.slow
@pytest.mark.parametrize("name", presets())
def test_presets(device, name):
    unit = presets()[name]
    check(device, unit, *operands(unit, 9, unit.period + 5, 5))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_blocks(device, name):
    unit = FAST[name]
    assert fast_of(unit) is not None
    a, b, c = operands(unit, 6, unit.period + 3, 9, seed=1)
    check(device, unit, a, b, c)
    check(device, unit, a[:4], b[:, :3])


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFINED)
def test_definition(device, name):
    unit = DEFINED[name]
    assert getattr(fast_of(unit), "path", "lanes") == "lanes"  # which is the definition too
    a, b, c = operands(unit, 4, 10, 5, seed=2)
    check(device, unit, a, b, c)
    check(device, unit, a, b)


@pytest.mark.parametrize("name", ["nvidia_v100_fp16", "nvidia_h100_e4m3_mma", "x86_avx512_bf16"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (8, 16, 8), (3, 0, 2), (17, 5, 1), (0, 4, 2)])
def test_sizes(device, name, m, k, n):
    unit = sn.unit(name)
    a, b, c = operands(unit, m, k, n, special=False)
    check(device, unit, a, b, c)
    check(device, unit, a, b)


def test_zero_products_keep_c(device):
    """K = 0 gives C, also -0; a sum of zeros is +0; in another output C is converted."""
    c = np.float32([[-0.0, 1.0009765625, 2.0**-20]])
    for unit in (
        sn.unit("nvidia_a100_fp16"), sn.unit("nvidia_h100_e4m3_mma"), fused(4, 20, "binary32", "e5m2", c="after"),
        fused(4, 20, "binary32", "e5m2", output="binary16"),
    ):  # fmt: skip
        for k in (0, 1):
            check(
                device, unit, np.zeros((1, k), np.float32), np.zeros((k, 3), np.float32), sn.quantize(c, unit.c_format)
            )


def test_batches_and_strides(device):
    unit = sn.unit("nvidia_h100_tf32")
    rng = np.random.default_rng(5)
    a, b = (sn.quantize(rng.standard_normal(s).astype(np.float32), "tf32") for s in ((2, 3, 3, 9), (2, 1, 9, 4)))
    check(device, unit, a, b, rng.standard_normal((3, 3, 4)).astype(np.float32))
    x, y = np.ascontiguousarray(a[0, 0].T), np.ascontiguousarray(b[0, 0].T)
    got = sn.matmul(*(transposed(device.to_device(z), (1, 0)) for z in (x, y)), unit)
    same_bits(got.copy_to_host(), sn.matmul(x.T, y.T, unit), unit)


def test_carriers_and_codes(device):
    """Operands may come as float64 too, or as codes."""
    unit = sn.unit("nvidia_a100_bf16")
    a, b, c = operands(unit, 4, 9, 3)
    check(device, unit, a.astype(np.float64), b, c.astype(np.float64))
    for other in (unit, sn.unit("x86_avx512_bf16"), sn.ExactDotUnit("binary32", operand="bfloat16")):
        codes = [sn.Array(device.to_device(sn.encode(x, "bfloat16")), "bfloat16") for x in (a, b)]
        got = sn.matmul(*codes, other, device.to_device(c))
        same_bits(got.copy_to_host(), sn.matmul(a, b, other, c), other)


def test_convolution(device):
    """The units' kernels read the layouts of convolutions as well, where padding is zeros."""
    rng = np.random.default_rng(6)
    for unit in (sn.unit("nvidia_v100_fp16"), sn.unit("x86_avx512_bf16"), sn.ExactDotUnit("e6m9", operand="e4m3fn")):
        x, w = (
            sn.quantize(rng.standard_normal(shape).astype(np.float32), unit.operand[0])
            for shape in ((1, 2, 3, 4), (3, 2, 2, 3))
        )
        got = sn.conv2d(device.to_device(x), device.to_device(w), unit, padding=1)
        same_bits(got.copy_to_host(), sn.conv2d(x, w, unit, padding=1), unit)


@pytest.mark.parametrize("name", ["nvidia_v100_fp16", "nvidia_h100_bf16", "nvidia_a100_tf32"])
def test_products_below_binary32(device, name):
    """Steps whose products are all tiny, so that M falls below what scales can be made for."""
    unit = sn.unit(name)
    rng = np.random.default_rng(8)
    for power in (-46, -56, -63, -66, -75):
        a, b = (values(f, s, rng, 1) for f, s in zip(unit.operand, ((4, 19), (19, 3)), strict=True))
        least = float(unit.operand[0].smallest_subnormal)
        a, b = (sn.quantize(x * np.float32(max(2.0**power, 8 * least)), unit.operand[0]) for x in (a, b))
        c = np.float32([[0, 2.0**-130, 1], [2.0**-101, -(2.0**-149), -0.0], [2.0**-125, 0, 0], [0, -(2.0**-90), 0]])
        check(device, unit, a, b, c)
        check(device, unit, a, b)


def test_what_is_left_to_the_definition(device, monkeypatch):
    """Ordinary outputs come from the blocks, and those outside the domain do not."""
    from softnum.kernels.device.products import fused as gemm_fused

    monkeypatch.setattr(gemm_fused, "_launch_definition", lambda *_: None)
    for name in (
        "nvidia_v100_fp16",
        "nvidia_h100_fp16",
        "nvidia_a100_bf16",
        "nvidia_h100_e4m3",
        "nvidia_h100_e5m2_mma",
    ):
        unit = sn.unit(name)
        a, b, c = operands(unit, 9, 40, 6, special=False)
        a[2, 3] = np.nan
        b[5, 4] = np.nan if unit.operand[1].infinities is False else np.inf
        if unit.operand[0].emax > 100:
            a[4], b[:, 1] = a[4] * np.float32(2.0**-64), b[:, 1] * np.float32(2.0**-64)
        c[7, 2] = np.nan
        before = launches()
        out = device.to_device(np.full(c.shape, 77, np.float32))
        got = sn.matmul(*(device.to_device(x) for x in (a, b)), unit, device.to_device(c), out=out).copy_to_host()
        assert launches() - before >= 1
        want = sn.matmul(a, b, unit, c)
        left = np.zeros(c.shape, bool)
        left[2], left[:, 4], left[7, 2] = True, True, True
        if unit.operand[0].emax > 100 and unit.c == "fused":
            left[4, 1] = got[4, 1] == 77  # products far below C are none of its business
        assert np.array_equal(got == 77, left), name
        same_bits(np.where(left, 0, got), np.where(left, 0, want), unit)


def test_errors(device):
    unit = fused(2, 8, "e4m3fn", "e4m3fn", overflow="saturate", **RNE)
    a, b, _ = operands(unit, 3, 4, 2, special=False)
    a[1, 2] = 1.1
    with pytest.raises(ValueError, match=r"a\[1, 2\] = .*1\.1.* is no value of e4m3fn"):
        sn.matmul(device.to_device(a), device.to_device(b), unit)
    unit = fused(2, 8, "e2m1fn", "e5m2", **RNE)
    a = device.to_device(np.float32([[np.nan]]))
    with pytest.raises(ValueError, match="e2m1fn has no code"):
        sn.matmul(a, a, unit)
    unit = sn.FmaChainUnit("e2m1fn", operand="e5m2")
    with pytest.raises(ValueError, match="e2m1fn has no code"):
        sn.matmul(a, a, unit)


# ---- the C text alone ------------------------------------------------------------------------------------------------

# K of a side x side product, tile by tile, as a kernel calls it
_RUN = """
const sn_i32 most = {depth};
for (sn_i32 i = 0; i < length * {stride}; i++) {{
    exponents_a[i] = _exponent_a(a[i]);
    exponents_b[i] = _exponent_b(b[i]);
}}
for (sn_i32 row = 0; row < side; row += SN_SIDE)
    for (sn_i32 column = 0; column < side; column += SN_SIDE) {{
        float sums[SN_BLOCK], own[SN_BLOCK];
        for (sn_i32 i = 0; i < SN_BLOCK; i++) {{
            own[i] = c[(row + i / SN_SIDE) * side + column + i % SN_SIDE];
            sums[i] = {start};
        }}
        _begin(sums);
        for (sn_i32 k = 0; k < length; k += most)
            _steps(a + k * {stride}, exponents_a + k * {stride}, b + k * {stride}, exponents_b + k * {stride}, row,
                   column, length - k < most ? length - k : most, sums);
        const sn_u32 gone = _finish(sums, own);
        for (sn_i32 i = 0; i < SN_BLOCK; i++) {{
            const sn_i32 at = (row + i / SN_SIDE) * side + column + i % SN_SIDE;
            c[at] = sums[i];
            left[at] = (gone >> i) & 1u;
        }}
    }}
"""


ALONE = {
    name: sn.unit(name)
    for name in (
        "nvidia_v100_fp16", "nvidia_h100_fp16", "nvidia_h100_bf16", "nvidia_a100_tf32", "nvidia_h100_e4m3",
        "nvidia_h100_e5m2_mma", "nvidia_b200_e4m3",
    )
}  # fmt: skip
ALONE |= {name: FAST[name] for name in ("cut to 5 bits", "order, saturate", "three groups")}
ALONE["nvidia_v100_fp16 to binary16"] = sn.unit("nvidia_v100_fp16", output="binary16")


@cases("spread", [3, 20, 70])
@cases("name", ALONE)
def test_steps_alone(name, spread):
    """A hundred thousand sums of the steps' text against the CPU: right, or left to the definition, and few are."""
    from softnum.kernels.device.products.fused_text import fast_library
    from softnum.kernels.device.runtime import _cuda
    from softnum.kernels.device.runtime.source import Entry

    if not _cuda.SIMULATOR:
        pytest.skip("the simulator's way to the text; on a GPU test_presets runs it")
    unit, side = ALONE[name], 316
    k = 2 * unit.period + 3
    stride, depth = side + 4, unit.terms * max(1, 16 // unit.terms)
    library = fast_library(unit, stride)
    body = _RUN.format(stride=stride, depth=depth, start="0.0f" if unit.c == "after" else "own[i]")
    arguments = (
        ("float32*", "a"), ("int32*", "exponents_a"), ("float32*", "b"), ("int32*", "exponents_b"), ("float32*", "c"),
        ("uint32*", "left"), ("int32", "side"), ("int32", "length"),
    )  # fmt: skip
    run = _cuda.bind(replace(library, entries=(*library.entries, Entry("run", "void", arguments, body)))).run

    rng = np.random.default_rng(spread)
    a, b = values(unit.operand[0], (side, k), rng, spread), values(unit.operand[1], (k, side), rng, spread)
    c = values(unit.c_format, (side, side), rng, 2 * spread)
    a[5, 3], b[7, 9], c[11, 13] = unit.operand[0].max, unit.operand[1].max, unit.c_format.max
    if unit.operand[0].has_nan:
        a[300, 1] = np.nan
    length = -(-k // unit.period) * unit.period
    inside = unit.k_order or range(unit.period)
    order = [p // unit.period * unit.period + inside[p % unit.period] for p in range(length)]
    packed = [np.zeros((length, stride), np.float32) for _ in range(2)]
    for p, at in enumerate(order):
        if at < k:
            packed[0][p, :side], packed[1][p, :side] = a[:, at], b[at]
    exponents = [np.zeros((length, stride), np.int32) for _ in range(2)]
    out, left = c.copy(), np.full((side, side), 2, np.uint32)
    run(packed[0].ctypes.data, exponents[0].ctypes.data, packed[1].ctypes.data, exponents[1].ctypes.data,
        out.ctypes.data, left.ctypes.data, side, length)  # fmt: skip
    want = sn.matmul(a, b, unit, c)
    assert set(np.unique(left)) <= {0, 1}
    same_bits(np.where(left, 0, out).astype(np.float32), np.where(left, 0, want).astype(np.float32), unit)
    if spread == 3:  # no sum on its way is out of range
        usual = np.abs(want) < float(unit.result.max)
        assert np.count_nonzero(left[usual]) <= side * side // 50, "too many are left to the definition"
