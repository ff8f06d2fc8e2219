"""Numbers rounded stochastically one by one (csrc/softnum/device/stochastic_steps.h), at the edges of their domain."""

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.kernels.device.products.mad.steps import target_text
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.source import Entry, Library
from tests.support.cases import cases

WAYS = ("full", "tested", "bare", "finite")
CASES = [
    *((name, r, "infinity", "float32") for name, r in (
        ("e6m9", 12), ("e6m9", 14), ("e6m9", 1), ("e5m2", 12), ("e4m3fn", 9), ("e4m3b11fnuz", 12), ("e8m7", 16),
        ("e6m7", 16), ("e8m10", 10), ("e6m22", 1), ("e6m1", 22),
    )),
    *((name, r, "saturate", "float32") for name, r in (("e5m2fnuz", 16), ("e2m1fn", 12), ("e4m3fn", 20), ("e8m7", 3))),
    ("e4m3fn", 11, "saturate_finite", "float32"),
    *((name, r, "infinity", "float64") for name, r in (
        ("e6m9", 32), ("e10m19", 32), ("e10m40", 11), ("e4m3fn", 30), ("e4m3b11fnuz", 32), ("e8m23", 28),
    )),
    ("e10m50", 1, "saturate", "float64"), ("e5m2", 32, "saturate", "float64"),
]  # fmt: skip


NANS = {"float32": (0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001), "float64": (2**63 - 1, 2**64 - 1, 0x7FF0000000000001)}


def numbers(fmt, r: int, carrier: str, rng) -> np.ndarray:
    """Numbers on and about the steps of the format, subnormal and too large ones too; infinities, NaNs of any kind."""
    kind, m, info = np.dtype(carrier), fmt.mantissa_bits, np.finfo(carrier)
    word, places, top = f"u{kind.itemsize}", info.nmant, 126 if carrier == "float32" else 1000
    lowest = max(fmt.emin - m - r - 2, int(info.minexp) - places)
    fraction = rng.integers(1 << places, 2 << places, 3000).astype(np.float64)
    anywhere = np.ldexp(fraction, rng.integers(lowest, min(fmt.emax + 3, top) + 1, 3000) - places)
    exponent = rng.integers(fmt.emin, min(fmt.emax, top - 1) + 1, 3000)
    on_steps = np.ldexp(rng.integers(0, 2 << m, 3000).astype(np.float64), exponent - m)
    edges = np.array([float(fmt.max), 2.0**fmt.emin, 2.0 ** (fmt.emin - m), min(2.0**top, 2 * float(fmt.max))])
    steps = np.concatenate([on_steps, edges.repeat(500)]).astype(kind).view(word)
    near = np.maximum(steps, 3) + rng.integers(-3, 4, steps.size).astype(word)
    about = edges.repeat(500).astype(kind).view(word) + rng.integers(0, 2 << (places - m), 2000).astype(word)
    about -= about.dtype.type(1 << (places - m))
    x = np.concatenate([steps.view(kind), near.view(kind), about.view(kind), anywhere.astype(kind)])
    x = np.concatenate([x[x <= 2.0**top], np.zeros(20, kind)])
    if fmt.has_nan:
        x = np.concatenate([x, np.full(20, np.inf, kind), np.array(NANS[carrier], word).view(kind).repeat(20)])
    return (x.view(word) ^ rng.integers(0, 2, x.size).astype(word) << (8 * kind.itemsize - 1)).view(kind)


def ways_of(fmt, env, carrier: str, ways: dict):
    """Functions ``(v, words, out, n)`` of C: expressions of a target ts, v[i] and words[i]."""
    if not _cuda.SIMULATOR:
        pytest.skip("the simulator's way to the text; on a GPU test_gemm_blocks.py runs it")
    text, take = target_text("s", (fmt, env), carrier)
    arguments = ((f"{carrier}*", "v"), ("uint32*", "words"), (f"{carrier}*", "out"), ("int64", "n"))
    loop = f"{take}for (sn_i64 i = 0; i < n; i++)\n    out[i] = "
    entries = tuple(Entry(way, "void", arguments, f"{loop}{call};") for way, call in ways.items())
    return _cuda.bind(Library(text, entries, "softnum/device/steps.h"))


def compare(function, x, words, want):
    """Bits, but for NaNs; and that something was compared."""
    x, words, want = map(np.ascontiguousarray, (x, words, want))
    out = np.empty_like(x)
    function(*(each.ctypes.data for each in (x, words, out)), x.size)
    out[np.isnan(out)] = np.nan
    kind = f"u{x.itemsize}"
    wrong = np.flatnonzero(out.view(kind) != want.view(kind))
    assert not len(wrong), [(x[i].hex(), hex(words[i]), out[i].hex(), want[i].hex()) for i in wrong[:3]]
    assert x.size > 1000 and len(np.unique(out)) > 10


@cases(("name", "r", "overflow", "carrier"), CASES)
def test_ways(name, r, overflow, carrier):
    """Each way gives the definition's values, of what it says that it takes."""
    fmt = sn.format(name)
    env = environment(fmt, "stochastic", overflow, r, invalid_code=invalid_code("raise", fmt))
    f = ways_of(fmt, env, carrier, {way: f"sn_stochastic_{way}{carrier[5:]}(&ts, v[i], words[i])" for way in WAYS})
    rng = np.random.default_rng(r)
    x = numbers(fmt, r, carrier, rng)
    words = rng.integers(0, 1 << 32, x.size, dtype=np.uint64).astype(np.uint32)
    extreme = rng.random(x.size)
    words = np.where(extreme < 0.2, words | np.uint32((1 << r) - 1), words)
    words = np.where(extreme > 0.8, words & ~np.uint32((1 << r) - 1), words)
    want = sn.quantize(x, fmt, rounding="stochastic", stochastic_bits=r, overflow=overflow, random_bits=words)
    finite = np.isfinite(x)
    size = np.where(finite, np.abs(x), 0).astype(np.float64)
    least = 2.0 ** (fmt.emin - fmt.mantissa_bits)
    exact = ((size >= 2.0**fmt.emin) | (size % least == 0)) & ~((x == 0) & np.signbit(x))
    fits = finite & (size <= float(fmt.max) * (1 - 2.0 ** -(fmt.mantissa_bits + 1)))
    taken = {"full": size >= 0, "tested": exact | ~finite, "bare": exact & fits, "finite": fits}
    for way in WAYS:
        compare(getattr(f, way), *(each[taken[way]] for each in (x, words, want)))


@cases("name", ["e10m40", "e10m49", "e9m30", "e8m23", "e5m2", "e4m3fn", "e4m3b11fnuz", "e6m1"])
@cases("overflow", ["infinity", "saturate"])
def test_nearest(name, overflow):
    """To nearest even in binary64."""
    fmt = sn.format(name)
    env = environment(fmt, "nearest_even", overflow, 32, invalid_code=invalid_code("raise", fmt))
    f = ways_of(fmt, env, "float64", {"nearest": "sn_nearest64(&ts, v[i])"})
    x = numbers(fmt, 2, "float64", np.random.default_rng(fmt.bits))
    compare(f.nearest, x, np.zeros(x.size, np.uint32), sn.quantize(x, fmt, overflow=overflow))
