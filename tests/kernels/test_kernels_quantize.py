"""softnum.quantize on CUDA arrays: the bits of the CPU, from kernels."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches
from softnum.kernels.device.runtime.strides import transposed
from softnum.runtime.gateway import NoKernel

TABLE = sn.CustomFormat.from_table([0.0, 1.0, -2.5, np.nan, 4.0, 2.0**-40, -1e30, 0.1], name="eight")


def values(dtype=np.float32, n=61):
    """Seeded values of many magnitudes, with the special ones among them; n straddles blocks and groups of four."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(n) * 2.0 ** rng.integers(-30, 30, n)).astype(dtype)
    tiny, big = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    x[:14] = [0, -0.0, np.inf, -np.inf, tiny, -tiny, big, -big, 1.125, 1.375, 57344, 61440, 2.0**-17, 448]
    return x


def finite(dtype=np.float32, n=61):
    x = values(dtype, n)
    return np.where(np.isfinite(x), x, dtype(3))


def same_bits(got, want):
    """Compare bits; a failure shows index, values and bits."""
    kind = f"u{want.dtype.itemsize}"
    assert got.dtype == want.dtype and got.shape == want.shape
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), [
        (tuple(i), got[tuple(i)], want[tuple(i)], hex(got.view(kind)[tuple(i)]), hex(want.view(kind)[tuple(i)]))
        for i in wrong[:5]
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "fmt", ["e5m2", "e4m3fn", "e4m3", "bfloat16", "binary16", "q4.4", "uq0.8", "e2m1fn", "dlfloat16"]
)
def test_nearest_even(device, fmt, dtype):
    fixed = sn.format(fmt).kind == "fixed" or not sn.format(fmt).has_nan
    x = finite(dtype) if fixed else values(dtype)
    if not fixed:
        x[20:22] = np.array([np.nan, -np.nan], dtype)
    before = launches()
    y = sn.quantize(device.to_device(x), fmt)
    assert launches() == before + 1
    same_bits(y.copy_to_host(), sn.quantize(x, fmt))


@pytest.mark.parametrize(
    "rounding",
    ["rna", "nearest_zero", "nearest_up", "nearest_down", "rtz", "away_from_zero", "rup", "rdn", "rto", "sr",
     "stochastic_floor"],
)  # fmt: skip
@pytest.mark.parametrize("fmt", ["e5m2", "q4.4"])
def test_modes(device, fmt, rounding):
    x = finite()
    options = {"rounding": rounding, "key": (2**40 + 1, 2**33 + 5), "stochastic_bits": 12}
    same_bits(sn.quantize(device.to_device(x), fmt, **options).copy_to_host(), sn.quantize(x, fmt, **options))


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "saturate_finite"])
def test_overflow_rules(device, overflow):
    x = values()
    got = sn.quantize(device.to_device(x), "e4m3fn", overflow=overflow)
    same_bits(got.copy_to_host(), sn.quantize(x, "e4m3fn", overflow=overflow))


def test_wrap(device):
    x = finite()
    got = sn.quantize(device.to_device(x), "q4.4", overflow="wrap")
    same_bits(got.copy_to_host(), sn.quantize(x, "q4.4", overflow="wrap"))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 128, 129])
def test_lengths(device, n):
    x = np.linspace(-2, 2, n, dtype=np.float32)
    got = sn.quantize(device.to_device(x), "e5m2", rounding="sr", key=1).copy_to_host()
    same_bits(got, sn.quantize(x, "e5m2", rounding="sr", key=1))


def test_shapes_and_strides(device):
    x = finite(n=48).reshape(2, 4, 6)
    same_bits(sn.quantize(device.to_device(x), "e5m2").copy_to_host(), sn.quantize(x, "e5m2"))
    matrix = x[0]
    options = {"rounding": "sr", "key": 9}
    turned = transposed(device.to_device(matrix), (1, 0))
    same_bits(sn.quantize(turned, "e5m2", **options).copy_to_host(), sn.quantize(matrix.T, "e5m2", **options))
    part = device.to_device(matrix)[1:3, ::2]
    same_bits(sn.quantize(part, "e5m2", **options).copy_to_host(), sn.quantize(matrix[1:3, ::2], "e5m2", **options))
    cube = transposed(device.to_device(x), (2, 1, 0))
    want = sn.quantize(x.transpose((2, 1, 0)), "e5m2", **options)
    same_bits(sn.quantize(cube, "e5m2", **options).copy_to_host(), want)
    out = device.to_device(np.full_like(x, np.nan))
    sn.quantize(device.to_device(x)[:, ::2], "e5m2", out=out[:, 1::2])
    want = np.full_like(x, np.nan)
    want[:, 1::2] = sn.quantize(x[:, ::2], "e5m2")
    same_bits(out.copy_to_host(), want)


def test_random_bits(device):
    x = finite(n=24).reshape(4, 6)
    words = np.random.default_rng(5).integers(0, 2**32, x.shape, dtype=np.uint32)
    want = sn.quantize(x, "e5m2", rounding="sr", random_bits=words)
    d = device.to_device(x)
    same_bits(sn.quantize(d, "e5m2", rounding="sr", random_bits=words).copy_to_host(), want)
    same_bits(sn.quantize(d, "e5m2", rounding="sr", random_bits=device.to_device(words)).copy_to_host(), want)
    row = sn.quantize(d, "e5m2", rounding="sr", random_bits=words[0])
    same_bits(row.copy_to_host(), sn.quantize(x, "e5m2", rounding="sr", random_bits=words[0]))


def test_out(device):
    x = finite()
    d = device.to_device(x)
    assert sn.quantize(d, "e5m2", out=d) is d
    same_bits(d.copy_to_host(), sn.quantize(x, "e5m2"))
    with pytest.raises(ValueError, match=r"out must be a CUDA array of shape \(.*, got "):
        sn.quantize(d, "e5m2", out=device.to_device(x[:5]))


def test_no_code(device):
    x = np.float32([1, np.nan, 2])
    with pytest.raises(ValueError, match=r"q4\.4 has no code"):
        sn.quantize(device.to_device(x), "q4.4")
    with pytest.raises(ValueError, match="not exact in float32"):
        sn.quantize(device.to_device(np.float32([3e38])), "q40.4")


def test_refused(device):
    with pytest.raises(TypeError, match="float32 or float64, got int32"):
        sn.quantize(device.to_device(np.arange(3, dtype=np.int32)), "e5m2")
    d, codes = device.to_device(np.float32([1])), device.to_device(np.uint8([1]))
    mine = sn.CustomFormat(4, as_float=lambda c: float(c), convert=lambda x: int(x) & 15, name="mine")
    with pytest.raises(NoKernel, match="mine rounds by a function of yours"):
        sn.quantize(d, mine)
    signs = sn.CustomFormat(2, as_float=lambda c: c * 2.0 - 3.0, name="signs")  # -3, -1, 1, 3
    same_bits(sn.quantize(d, signs, rounding="up").copy_to_host(), np.float32([1]))
    with pytest.raises(NoKernel, match="no zero between its values"):
        sn.quantize(d, signs, rounding="toward_zero")
    a = sn.Array(codes, "e5m2")
    for name, work in (
        ("rounds it to another", lambda: sn.quantize(a, "e4m3fn")), ("rounds it", lambda: sn.encode(a, "e4m3fn")),
        ("give its .codes", lambda: sn.decode(a, "e5m2")),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=name):
            work()
    with pytest.raises(ValueError, match="threads=2"):
        sn.encode(d, "e5m2", threads=2)
    with pytest.raises(ValueError, match="return_flags is not defined for the value table"):
        sn.encode(d, TABLE, return_flags=True)
    with pytest.raises(ValueError, match="key=seed"):
        sn.quantize(d, "e5m2", rounding="sr")
    with pytest.raises(ValueError, match=r"do not broadcast to \(1,\)"):
        sn.quantize(d, "e5m2", rounding="sr", random_bits=device.to_device(np.zeros(2, np.uint32)))


# ---- encode and decode ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["nearest_even", "sr"])
def test_encode(device, dtype, rounding):
    for fmt in ("e5m2", "e4m3fnuz", "bfloat16", "q4.4", "uq8.0", "dlfloat16", "e11m20", "e8m0fnu", "binary64"):
        x = np.abs(finite(dtype)) if fmt == "e8m0fnu" else finite(dtype)
        options = {"rounding": rounding, "key": 3, "stochastic_bits": 9}
        before = launches()
        got = sn.encode(device.to_device(x), fmt, **options)
        assert launches() == before + 1
        same_bits(got.copy_to_host(), sn.encode(x, fmt, **options))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decode(device, dtype):
    for fmt in ("e5m2", "e4m3fnuz", "q4.4", "e2m1fn", "e8m0fnu", "binary8p3se", TABLE):
        codes = np.arange(1 << sn.format(fmt).bits).astype(sn.format(fmt).storage_dtype)
        if fmt is TABLE and dtype == np.float32:  # 0.1 and -1e30 are none
            for part in (codes, codes[6:7], codes[7:]):
                with pytest.raises(ValueError, match="not exact in float32"):
                    sn.decode(device.to_device(part), fmt, dtype)
            codes = codes[:6]
        same_bits(sn.decode(device.to_device(codes), fmt, dtype).copy_to_host(), sn.decode(codes, fmt, dtype))
    wide = np.random.default_rng(1).integers(0, 2**20, 37, dtype=np.uint32)
    same_bits(sn.decode(device.to_device(wide), "e9m10", np.float64).copy_to_host(), sn.decode(wide, "e9m10"))
    same_bits(sn.decode(device.to_device(wide), "e6m13", dtype).copy_to_host(), sn.decode(wide, "e6m13", dtype))


def test_decode_refuses(device):
    with pytest.raises(ValueError, match="no code of e2m1fn, which has 4 bits"):
        sn.decode(device.to_device(np.uint8([3, 16])), "e2m1fn")
    with pytest.raises(ValueError, match="not exact in float32"):
        sn.decode(device.to_device(np.uint32([0x7F000])), "e9m10", np.float32)
    with pytest.raises(TypeError, match="unsigned integers, got a CUDA array of int32"):
        sn.decode(device.to_device(np.int32([1])), "e5m2")
    with pytest.raises(TypeError, match="float16, float32 or float64, not int32"):
        sn.decode(device.to_device(np.uint8([1])), "e5m2", np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "nearest_down", "up", "toward_zero"])
def test_value_tables(device, dtype, rounding):
    three = sn.CustomFormat.from_table([1.5, -1.0, 0.0, 3.0], name="three")  # no NaN
    thresholds = np.array([t for f in (TABLE, three) for v in f.values for w in f.values for t in (v, (v + w) / 2)])
    x = np.concatenate([finite(dtype), *(np.nextafter(thresholds.astype(dtype), dtype(d)) for d in (-9e9, 9e9))])
    x = np.concatenate([x, thresholds.astype(dtype)])[::3]
    x = x[~np.isnan(x)]
    for fmt in (TABLE, three):
        got = sn.encode(device.to_device(x), fmt, rounding=rounding).copy_to_host()
        same_bits(got, sn.encode(x, fmt, rounding=rounding))
    got = sn.quantize(device.to_device(x), three, rounding=rounding).copy_to_host()
    same_bits(got, sn.quantize(x, three, rounding=rounding))
    special = np.array([np.nan, np.inf, -np.inf, -0.0], dtype)
    same_bits(sn.encode(device.to_device(special), TABLE).copy_to_host(), sn.encode(special, TABLE))
    with pytest.raises(ValueError, match="three has no code for it"):
        sn.encode(device.to_device(special), three)
    got = sn.encode(device.to_device(special), three, invalid=1.5).copy_to_host()
    same_bits(got, sn.encode(special, three, invalid=1.5))


def test_values_that_a_carrier_lacks(device):
    """An error where they are met, and there alone."""
    for dtype, tolerable in ((np.float32, [1.0, 3.9]), (np.float16, [1.0, -2.4])):
        x = np.array(tolerable, dtype)
        same_bits(sn.quantize(device.to_device(x), TABLE).copy_to_host(), sn.quantize(x, TABLE))
        out = device.to_device(np.full(2, 7, dtype))
        with pytest.raises(ValueError, match=f"eight is not exact in {np.dtype(dtype)}"):
            sn.quantize(device.to_device(np.array([1, 0.11], dtype)), TABLE, out=out)
        same_bits(out.copy_to_host(), np.full(2, 7, dtype))


HALVES = np.uint16([
    0, 0x8000, 0x7C00, 0xFC00, 1, 0x8001, 0x7BFF, 0xFBFF, 0x3C00, 0x0400, 0x03FF, 0x7E00, 0xFE01, 0x7C01, 0x3C01,
    0x4C7F,
]).view(np.float16)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "sr"])
@pytest.mark.parametrize("fmt", ["e5m2", "e4m3fn", "q4.4", "binary16", "bfloat16", "e8m0fnu", "q30.30", TABLE])
def test_half_precision(device, fmt, rounding):
    """By the patterns of binary32, by the definition, and by a search; where binary16 lacks a result, an error."""
    rng = np.random.default_rng(6)
    x = np.concatenate([HALVES, rng.integers(0, 2**16, 45, np.uint16).view(np.float16)])
    if not sn.format(fmt).has_nan:
        x = x[np.isfinite(x)]
    if fmt is TABLE:
        if rounding == "sr":
            return
        x = np.where((np.abs(x) > 0.5) & (np.abs(x) < 1e4), np.abs(x), np.float16(0))  # not to 0.1, to none below -2.5
    options = {"rounding": rounding, "key": 3, "stochastic_bits": 11}
    same_bits(sn.encode(device.to_device(x), fmt, **options).copy_to_host(), sn.encode(x, fmt, **options))
    if fmt == "bfloat16":
        with pytest.raises(ValueError, match="bfloat16 is not exact in float16"):
            sn.quantize(device.to_device(np.float16([1, 65504])), fmt, **options)
        x = x[np.abs(x.astype(np.float32)) < 60000]
    elif fmt in ("e8m0fnu", "q30.30"):
        x = np.float16([1, 2, 0.75, 3.9, 1024])
    same_bits(sn.quantize(device.to_device(x), fmt, **options).copy_to_host(), sn.quantize(x, fmt, **options))
    if fmt is not TABLE:
        for got, want in zip(
            (device_array.copy_to_host() for device_array in sn.quantize(device.to_device(x), fmt, return_flags=True)),
            sn.quantize(x, fmt, return_flags=True), strict=True,
        ):  # fmt: skip
            same_bits(got, want)


def test_decode_to_half_precision(device):
    for fmt, codes in (
        ("e5m2", np.arange(256, dtype=np.uint8)), ("binary16", HALVES.view(np.uint16)),
        (TABLE, np.uint8([0, 1, 2, 3, 4])),
        ("e8m10", np.uint32([0, 1 << 17, 127 << 10, 130 << 10 | 3])), ("e2m1fn", np.arange(16, dtype=np.uint8)),
    ):  # fmt: skip
        same_bits(sn.decode(device.to_device(codes), fmt, np.float16).copy_to_host(), sn.decode(codes, fmt, np.float16))
    for fmt, codes in (("bfloat16", np.uint16([0x7F00])), ("e8m10", np.uint32([1])), (TABLE, np.uint8([1, 5]))):
        with pytest.raises(ValueError, match="not exact in float16"):
            sn.decode(device.to_device(codes), fmt, np.float16)


def test_flags_and_flushing(device):
    x = values()
    for options in ({"tininess": "before"}, {"rounding": "up", "flush_results": "after"}):
        for function in (sn.quantize, sn.encode):
            got, flags = function(device.to_device(x), "e5m2", return_flags=True, **options)
            want, want_flags = function(x, "e5m2", return_flags=True, **options)
            same_bits(got.copy_to_host(), want)
            same_bits(flags.copy_to_host(), want_flags)
            same_bits(function(device.to_device(x), "e5m2", **options).copy_to_host(), want)


def test_unaligned(device, monkeypatch):
    """Parts of an array that begin anywhere: no vector is read across."""
    from softnum.kernels.device.elementwise import launch as elementwise

    kernel, wide = elementwise.elementwise_kernel, []
    monkeypatch.setattr(elementwise, "elementwise_kernel", lambda *facts: wide.append(facts[-1]) or kernel(*facts))
    x = values(n=37)
    for start in range(1, 5):
        part, want = device.to_device(x)[start:], sn.encode(x[start:], "e5m2", rounding="sr", key=5)
        same_bits(sn.encode(part, "e5m2", rounding="sr", key=5).copy_to_host(), want)
        out = device.to_device(np.full(41, 0xAA, np.uint8))
        sn.encode(part, "e5m2", rounding="sr", key=5, out=out[3 : 3 + part.size])
        poisoned = np.full(41, 0xAA, np.uint8)
        poisoned[3 : 3 + part.size] = want
        same_bits(out.copy_to_host(), poisoned)
    assert wide == [False, False, False, False, False, False, True, False]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "sr"])
def test_sizes_of_a_gpu(rounding, dtype):
    """Millions of patterns, ragged: on a GPU alone."""
    from softnum.kernels.device.runtime import _cuda

    kind = np.dtype(f"u{np.dtype(dtype).itemsize}")
    bits = np.random.default_rng(8).integers(0, 2 ** (8 * kind.itemsize), 10_000_003, dtype=np.uint64).astype(kind)
    x = bits.view(dtype)
    d = _cuda.cuda.to_device(x)
    for fmt in ("e5m2", "e4m3fn", "bfloat16", "binary16", "dlfloat16"):
        options = {"rounding": rounding, "key": 11}
        same_bits(sn.quantize(d, fmt, **options).copy_to_host(), sn.quantize(x, fmt, **options))
        codes = sn.encode(d, fmt, **options)
        want = sn.encode(x, fmt, **options)
        same_bits(codes.copy_to_host(), want)
        same_bits(sn.decode(codes, fmt, dtype).copy_to_host(), sn.decode(want, fmt, dtype))


@pytest.mark.parametrize(
    "random", ["lfsr16x12", "lfsr32@hart", "philox4x32-10/2", "philox4x32-7/4", "philox4x32-3@transformer_engine"]
)
def test_sources_of_random_bits(device, random):
    """More elements than a thread makes words for, rows that end within 16 neighbours, and none at all."""
    rng = np.random.default_rng(8)
    key = 5 if random.endswith("@hart") else (5, 2**40)
    options = {"rounding": "sr", "stochastic_bits": 8, "random": random, "key": key}
    for shape in ((5, 37), (2, 3, 40), (0, 4), ()):
        x = rng.standard_normal(shape).astype(np.float32)
        got = sn.quantize(device.to_device(x), "e5m2", **options)
        same_bits(got.copy_to_host(), np.asarray(sn.quantize(x, "e5m2", **options)))
    a = sn.array(rng.standard_normal((4, 33)), "e4m3fn")
    b = sn.array(rng.standard_normal(33), "e4m3fn")
    on = [sn.Array(device.to_device(v.codes), v.format) for v in (a, b)]
    same_bits(sn.add(*on, **options).codes.copy_to_host(), sn.add(a, b, **options).codes)
