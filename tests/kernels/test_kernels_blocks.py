"""Block formats on CUDA arrays: codes, scales and values are the CPU's."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import environment
from softnum.formats import FloatFormat
from softnum.formats.blocks import SCALE_RULES
from softnum.kernels import launches
from softnum.kernels.device.blockformats.text import element_way, value_way
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.source import Entry, Library

SMALL_SCALES = FloatFormat(5, 0, signed=False, specials="fn", has_zero=False, lowest_binade="normal")
FORMATS = {
    **{name: sn.format(name) for name in sn.formats.block_format_names()},
    "fixed": sn.BlockFormat("q1.3", "e8m0fnu", 4),
    "whole axis": sn.BlockFormat("q1.15", "e8m0fnu", None),
    "few scales": sn.BlockFormat("q3.2", SMALL_SCALES, 3),
    "no subnormals": sn.BlockFormat(FloatFormat(1, 4, specials="none"), "e8m0fnu", 8),
    "scales of binary32": sn.BlockFormat("e4m3fn", "binary32", 16),
    "scales of e5m2": sn.BlockFormat("e2m1fn", "e5m2", 16),
    "scales with zeros": sn.BlockFormat("e5m2fnuz", "e4m3", 5),
    "long elements": sn.BlockFormat("binary16", "e8m0fnu", 7),
    "unsigned": sn.BlockFormat("uq1.7", "uq8.4", 6),
    "tensor of bfloat16": sn.BlockFormat("q2.6", "e5m2", 16, tensor_scale="bfloat16"),
    "powers and a tensor scale": sn.BlockFormat("e2m1fn", "e8m0fnu", 16, tensor_scale="binary32"),
    "binary32": sn.BlockFormat("binary32", "e4m3fn", 16),
    "long factors": sn.BlockFormat("e4m3fn", FloatFormat(8, 30), 16),
    "binary64": sn.BlockFormat("binary64", "e8m0fnu", 5),
    "fixed of 40 bits": sn.BlockFormat("q8.32", "e5m2", 16),
    "scales below 1": sn.BlockFormat("e5m2", FloatFormat(4, 0, signed=False, specials="fn", has_zero=False,
                                                         lowest_binade="normal", bias=40), 4),
}  # fmt: skip
MODES = ["nearest_away", "toward_zero", "up", "down", "to_odd", "away_from_zero", "stochastic", "stochastic_even"]


def values(fmt, shape, dtype=np.float32, seed=1, spread=8):
    """Numbers around ties and powers of two, zeros of both signs, blocks of zeros, and the ends of the type."""
    rng = np.random.default_rng(seed)
    digits, count = min(fmt.element.bits, 20), int(np.prod(shape))
    x = rng.choice([-1.0, 1.0], count) * rng.integers(1 << digits, 2 << digits, count) / float(1 << digits)
    x *= (1 + rng.choice([0, 0, 2.0**-20, -(2.0**-20)], count)) * 2.0 ** rng.integers(-spread, spread, count)
    x[rng.random(count) < 0.2] = 0
    x[rng.random(count) < 0.1] *= -0.0
    x = x.reshape(shape) * 2.0 ** rng.integers(-10, 10)
    return (np.abs(x) if not fmt.element.signed else x).astype(dtype)


def special(fmt, dtype, rows=8, columns=37):
    """Rows of what is special: zeros, the smallest and the largest numbers, infinities and NaNs in some blocks."""
    x = values(fmt, (rows, columns), dtype, 2)
    info = np.finfo(dtype)
    x[0] = 0
    x[1] = info.smallest_subnormal * np.arange(columns)
    x[2] = x[3] * info.smallest_normal
    x[4, ::3] = info.max
    if fmt.scale.has_nan:
        x[5, 3], x[6, columns - 1], x[7, 1] = np.inf, np.nan, -np.inf
    return np.abs(x) if not fmt.element.signed else x


def host(x):
    return x.copy_to_host() if hasattr(x, "copy_to_host") else x


def same(got, want, *what):
    """Bits of arrays, or of tuples of them."""
    if isinstance(want, tuple):
        assert len(got) == len(want), what
        for one, other in zip(got, want, strict=True):
            same(host(one), np.asarray(other), *what)
        return
    got, kind = np.asarray(host(got)), f"u{want.dtype.itemsize}"
    assert got.dtype == want.dtype and got.shape == want.shape, what
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), [*what, len(wrong), *((tuple(i), got[tuple(i)], want[tuple(i)]) for i in wrong[:5])]


def outcome(work):
    """What comes of a call: a result, or what the error says."""
    try:
        return work()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


def check(x, fmt, axis=-1, **options):
    """encode, decode and quantize on the device give what they give on the CPU."""
    on_device = _cuda.to_device(x)
    want = outcome(lambda: sn.encode(x, fmt, axis=axis, **options))
    got = outcome(lambda: sn.encode(on_device, fmt, axis=axis, **options))
    if isinstance(want[0], type):
        assert got == want
        return
    same(got, want, fmt, axis, options)
    dtypes = (x.dtype, np.dtype(np.float32 if x.dtype == np.float64 else np.float64))
    results = [[outcome(lambda y=y: sn.quantize(y, fmt, axis=axis, **options)) for y in (x, on_device)]]
    for dtype in dtypes:
        results.append([outcome(lambda y=y, t=dtype: sn.decode(y, fmt, t, axis=axis)) for y in (want, got)])
    for wanted, found in results:
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            same(found, wanted, fmt, axis, options)


def rules_of(fmt):
    return ["max", "rceil"] if fmt.tensor_scale is not None else list(SCALE_RULES)


FEW = ["mxfp8_e4m3", "nvfp4", "scales with zeros"]


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in FORMATS])
def test_formats_and_rules(device, name):
    fmt = FORMATS[name]
    for i, rule in enumerate(rules_of(fmt) if name not in FEW else [None, "rceil"]):
        dtype = (np.float32, np.float64)[i % 2]
        check(values(fmt, (3, 41), dtype), fmt, scale_rule=rule)
        check(values(fmt, (37, 3), dtype), fmt, 0, scale_rule=rule)


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in FORMATS])
def test_special_values(device, name):
    fmt = FORMATS[name]
    for dtype in (np.float32, np.float64) if name not in FEW else (np.float32,):
        check(special(fmt, dtype), fmt)


def stochastic(rounding):
    return {"key": (7, 2**40), "stochastic_bits": 12} if rounding.startswith("stochastic") else {}


@pytest.mark.slow
@pytest.mark.parametrize("rounding", MODES)
def test_modes_of_all_formats(device, rounding):
    """By powers, by quotients and by the definition; signs of what is tiny beside its block's scale."""
    for i, fmt in enumerate(FORMATS.values(), MODES.index(rounding)):
        x = values(fmt, (2, 37), (np.float32, np.float64)[i % 2], 3, 45)
        overflow = ("saturate", "wrap" if fmt.element.kind == "fixed" else "infinity")[i // 2 % 2]
        if fmt.element.has_nan or overflow != "infinity":
            check(x, fmt, rounding=rounding, overflow=overflow, **stochastic(rounding))


@pytest.mark.parametrize("rounding", ["up", "stochastic"])
@pytest.mark.parametrize("name", ["mxfp4_e2m1", "nvfp4"])
def test_modes(device, name, rounding):
    fmt = FORMATS[name]
    check(values(fmt, (2, 37), np.float32, 3, 45), fmt, rounding=rounding, **stochastic(rounding))


@pytest.mark.parametrize("bits", [1, 32])
def test_random_words(device, bits):
    """Element i takes the word that it takes on the CPU, along whatever axis its block lies."""
    options = {"rounding": "sr", "stochastic_bits": bits}
    words = np.random.default_rng(4).integers(0, 2**32, (5, 3, 7), dtype=np.uint32)
    for fmt in ("mxfp8_e4m3", "nvfp4"):
        x = values(sn.format(fmt), words.shape)
        for axis in (0, 1, -1):
            want = sn.encode(x, fmt, axis=axis, random_bits=words, **options)
            same(sn.encode(device.to_device(x), fmt, axis=axis, random_bits=words, **options), want)
            want = sn.encode(x, fmt, axis=axis, key=5, **options)
            same(sn.encode(device.to_device(x), fmt, axis=axis, key=5, **options), want)
    some = device.to_device(np.ascontiguousarray(words[:1, :, :1]))
    want = sn.encode(x, fmt, random_bits=words[:1, :, :1], **options)
    same(sn.encode(device.to_device(x), fmt, random_bits=some, **options), want)


def test_shapes_and_strides(device):
    fmt = FORMATS["fixed"]
    x = values(fmt, (6, 5, 4))
    on_device = device.to_device(x)
    for view in (lambda a: a[::2, 1:, ::-1], lambda a: a[1]):
        for axis in (0, -1):
            same(sn.encode(view(on_device), fmt, axis=axis), sn.encode(view(x), fmt, axis=axis))
    turned = device.to_device(np.ascontiguousarray(x[0].T)).T
    same(sn.encode(turned, fmt), sn.encode(x[0], fmt))
    same(sn.decode(tuple(p.T for p in sn.encode(turned, fmt)), fmt, axis=0), sn.quantize(x[0].astype("f8"), fmt).T)
    for shape, axis in (((0,), 0), ((3, 0), 1), ((3, 0), 0), ((0, 5), -1)):
        for name in ("mxfp8_e4m3", "nvfp4", "whole axis"):
            check(np.zeros(shape, np.float32), FORMATS.get(name), axis)
    check(values(fmt, (1,)), fmt)
    many = values(FORMATS["whole axis"], (2, 133))
    check(many, FORMATS["whole axis"])
    check(many, FORMATS["whole axis"], 0)


def test_options(device):
    fmt = sn.format("mxint8")
    x = np.float32([[-1.999, 1.99, 0.5, -1.0]])
    check(x, fmt, symmetric=True)
    assert host(sn.encode(device.to_device(x), fmt)[0])[0, 0] == 0x80
    for given in (2.0**-3, 1.5, np.float32(7)):
        check(values(FORMATS["nvfp4"], (2, 20), np.float64), "nvfp4", tensor_scale=given)
    check(x, "nvfp4", tensor_scale=0.1)  # an error, and the same
    check(x, "mxfp4", tensor_scale=2.0)
    check(np.float32([[np.nan, 1, 2, 3]]), FORMATS["scales of binary32"])
    check(np.float32([[np.nan, 1, 2, 3]]), FORMATS["unsigned"])  # whose scales have no NaN
    check(np.float32([[np.inf, 2, 1]]), "nvfp4", scale_rule="rceil")


def test_out_and_refusals(device):
    x = values(sn.format("mxfp8_e4m3"), (4, 40))
    want, on_device = sn.quantize(x, "mxfp8_e4m3"), device.to_device(x)
    out = device.to_device(np.full((4, 80), np.nan, np.float32))
    assert sn.quantize(on_device, "mxfp8_e4m3", out=out[:, ::2]) is not None
    same(out[:, ::2], want)
    assert np.isnan(host(out)[:, 1::2]).all()
    codes = sn.encode(on_device, "mxfp8_e4m3")
    place = device.to_device(np.zeros((4, 40), np.float32))
    assert sn.decode(codes, "mxfp8_e4m3", np.float32, out=place) is place
    same(place, want)
    sn.quantize(on_device, "mxfp8_e4m3", out=on_device)
    same(on_device, want)
    for error, words, work in (
        (TypeError, "float32 or float64, got uint8", lambda: sn.encode(codes[0], "mxfp4")),
        (TypeError, "gives CUDA arrays of float32 or float64, not float16",
         lambda: sn.decode(codes, "mxfp8_e4m3", np.float16)),
        (TypeError, "scales lies on the host", lambda: sn.decode((codes[0], host(codes[1])), "mxfp8_e4m3")),
        (ValueError, "encode: threads=2", lambda: sn.encode(on_device, "mxfp4", threads=2)),
        (ValueError, "quantize: out must be a CUDA array", lambda: sn.quantize(on_device, "mxfp4", out=place[:2])),
        (ValueError, "no axis to divide into blocks", lambda: sn.encode(device.to_device(np.float32(1)), "mxfp4")),
        (ValueError, "needs key=seed", lambda: sn.encode(on_device, "mxfp4", rounding="sr")),
        (ValueError, "unknown scale rule", lambda: sn.quantize(on_device, "mxfp4", scale_rule="nearly")),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            work()


def test_quotients_are_rounded_to_odd():
    """Of exact quotients, of their neighbours, and of any others; beyond the ends, the last odd number."""
    entry = Entry("quotient", "uint64", (("uint64", "x"), ("uint64", "y")), "return sn_quotient_odd(x, y);")
    quotient = _cuda.bind(Library("", (entry,), "softnum/device/block_codes.h")).quotient
    rng, seen = np.random.default_rng(5), Counter()
    y = np.ldexp(rng.integers(1, 1 << 28, 1500).astype(float), rng.integers(-290, 200, 1500))
    x = y * np.ldexp(rng.integers(1, 1 << 26, 1500).astype(float), rng.integers(-300, 300, 1500))
    x[500:] = (x.view(np.int64) + rng.integers(-2, 3, 1500)).view(float)[500:]
    x[1000:] *= rng.random(500)
    for a, b in zip(x, y, strict=True):
        exact = Fraction(a) / Fraction(b)
        got = np.uint64(quotient(np.float64(-a).view(np.uint64), np.float64(b).view(np.uint64)))
        value = -float(got.view(np.float64))
        below, above = (Fraction(float(np.nextafter(value, end))) for end in (0, np.inf))
        assert below < exact < above and (exact == Fraction(value) or int(got) & 1), (a, b, value)
        seen[exact == Fraction(value)] += 1
    assert min(seen.values()) > 300
    one = np.float64(1.0).view(np.uint64)
    for a, b, want in ((1e300, 2.0**-290, np.finfo(float).max), (5e-324, 1e9, 5e-324), (0.0, 1.0, 0.0)):
        bits = np.float64(a).view(np.uint64), np.float64(b).view(np.uint64)
        assert np.uint64(quotient(*bits)).view(np.float64) == want
    assert int(quotient(one, one)) == int(one)


def test_the_ways():
    """Each way is taken by one of the formats above."""

    def ways(name, carrier="float32", rounding="nearest_even", bits=12):
        fmt = FORMATS[name]
        env = environment(fmt.element, rounding, "saturate", bits)
        return element_way(fmt, env, carrier), value_way(fmt, carrier)

    assert ways("mxfp8_e4m3") == ("power", "power")
    assert ways("mxfp8_e4m3", "float64", "stochastic", 32) == ("power", "product")
    assert ways("nvfp4", rounding="stochastic", bits=32) == ("quotient", "product")
    assert ways("scales below 1") == ("quotient", "power")
    assert ways("binary32", rounding="stochastic", bits=32) == ("definition", "product")
    assert ways("long factors") == ("definition", "product")
    assert ways("binary64") == ("definition", "definition")


@pytest.mark.parametrize(
    "name", ["mxfp8_e4m3", *(pytest.param(x, marks=pytest.mark.slow) for x in ("nvfp4", "unsigned of 8"))]
)
def test_tiles(device, name):
    """Blocks that fill the last axis, and the last thread block or not."""
    fmt = {"unsigned of 8": sn.BlockFormat("uq1.7", "uq8.4", 8)}.get(name) or sn.format(name)
    for dtype, shape in ((np.float32, (5, 64)), (np.float64, (32,))):
        x = values(fmt, shape, dtype)
        check(x, fmt)
        check(x, fmt, rounding="sr", key=3, stochastic_bits=5)
        x.reshape(-1)[3] = np.nan
        x.reshape(-1)[-3] = np.inf
        check(x, fmt)
    words = np.random.default_rng(4).integers(0, 2**32, (5, 64), dtype=np.uint32)
    check(values(fmt, (5, 64)), fmt, rounding="sr", random_bits=words)
    odd = device.to_device(values(fmt, (1 + 64,)))[1:]
    same(sn.encode(odd, fmt), sn.encode(odd.copy_to_host(), fmt))
    check(np.zeros((2, 32), np.float32), fmt)


def test_kernels_and_copies(device, monkeypatch):
    """One kernel, or three; one number comes down where the array has a scale of its own."""
    x, seen = device.to_device(values(FORMATS["nvfp4"], (3, 32))), []
    monkeypatch.setattr(_cuda, "to_host", lambda a, real=_cuda.to_host: seen.append(a.size) or real(a))
    for fmt, axis, count, copies in (
        ("mxfp8_e4m3", -1, 1, []), ("mxfp8_e4m3", 0, 3, []), ("nvfp4", -1, 2, [1]), ("nvfp4", 0, 4, [1]),
    ):  # fmt: skip
        before = launches()
        seen.clear()
        sn.encode(x, fmt, axis=axis)
        assert (launches() - before, seen) == (count, copies)
