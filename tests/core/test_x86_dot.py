"""The presets of x86 dot products against the instructions of this CPU, bit for bit: VDPBF16PS and VPDPBUSD."""

import ctypes
import platform
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.names import format as format_of
from tests.support.core_oracles import random_codes
from tests.support.x86_rows import around, differing

MXCSR = 0x1F80  # the default: all exceptions masked, to nearest even, no flushing
COUNTS = [pytest.param(10**5, id="1e5"), pytest.param(10**6, id="1e6", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if platform.machine() not in ("x86_64", "AMD64") or compiler is None:
        pytest.skip("needs an x86-64 CPU and a C compiler")
    target = tmp_path_factory.mktemp("x86") / "dot.so"
    source = Path(__file__).with_name("x86_dot.c")
    built = subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-o", target, source], capture_output=True, text=True, check=False
    )
    if built.returncode:
        pytest.skip(f"the compiler cannot build AVX512_BF16 and AVX512_VNNI: {built.stderr[:200]}")
    return ctypes.CDLL(str(target))


@pytest.fixture(scope="module")
def bf16(cpu):
    if not cpu.has_bf16():
        pytest.skip("this CPU has no AVX512_BF16")
    pointer = np.ctypeslib.ndpointer

    def dot(a, b, c, mxcsr=MXCSR):
        out = np.empty(len(c), np.float32)
        run = cpu.dot_bf16
        run.argtypes = [
            ctypes.c_long, ctypes.c_uint, pointer(np.uint16), pointer(np.uint16), pointer(np.float32),
            pointer(np.float32),
        ]  # fmt: skip
        run.restype = None
        run(len(c), mxcsr, a, b, c, out)
        return out

    return dot


def as_bfloat16(x):
    """Nearest bfloat16 codes of float32."""
    return sn.encode(x, "bfloat16").astype(np.uint16)


def inputs(kind, n, rng):
    """(a, b, c): codes of n pairs of bfloat16, and n floats."""
    pairs = (n, 2)
    if kind == "any bits":
        a, b = (rng.integers(0, 1 << 16, pairs, dtype=np.uint16) for _ in range(2))
        return a, b, rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    if kind == "near one":
        a, b = (as_bfloat16(around(rng, pairs, 0)) for _ in range(2))
        return a, b, around(rng, n, 0)
    if kind == "cancelling":
        a, b = (as_bfloat16(around(rng, pairs, 0)) for _ in range(2))
        x, y = (sn.decode(v, "bfloat16", np.float32) for v in (a, b))
        c = -(x[:, 1] * y[:, 1])
        a[::2, 0], b[::2, 0] = a[::2, 1] ^ 0x8000, b[::2, 1]
        return a, b, np.where(rng.random(n) < 0.7, c, np.nextafter(c, np.float32(0)))
    if kind == "least normal":  # results around 2**-126, and subnormal factors and sums
        half = rng.integers(-100, 0, pairs)
        a = as_bfloat16(np.ldexp(1 + rng.random(pairs), half).astype(np.float32))
        b = as_bfloat16(np.ldexp(rng.choice([-1, 1], pairs) * (1 + rng.random(pairs)), -126 - half))
        c = np.ldexp(rng.choice([-1, 1], n) * (1 + rng.random(n)), -126 + rng.integers(-2, 3, n)).astype(np.float32)
        return a, b, np.where(rng.random(n) < 0.3, 0, c).astype(np.float32)
    if kind == "boundary":  # 2**-126, less or more a product that decides whether it is tiny, and when that is asked
        half = rng.integers(-90, -60, pairs)
        a = as_bfloat16(np.ldexp(rng.choice([1, 1.5], pairs), half))
        b = as_bfloat16(np.ldexp(rng.choice([-1, 1], pairs), rng.integers(-155, -146, pairs) - half))
        a[::2, 0] = 0
        return a, b, np.ldexp(rng.choice([-1, 1], n), -126).astype(np.float32)
    if kind == "tiny":
        a, b = (as_bfloat16(around(rng, pairs, -126)) for _ in range(2))
        big = as_bfloat16(around(rng, pairs, 60))
        b = np.where(rng.random(pairs) < 0.6, big, b)
        return a, b, around(rng, n, -128)
    if kind == "largest":
        a, b = (as_bfloat16(around(rng, pairs, 63)) for _ in range(2))
        return a, b, around(rng, n, 126)
    shuffle = random.Random(int(rng.integers(1 << 30)))
    a, b = (np.array(random_codes(format_of("bfloat16"), shuffle, 2 * n), np.uint16).reshape(pairs) for _ in range(2))
    return a, b, np.array(random_codes(format_of("binary32"), shuffle, n), np.uint32).view(np.float32)


KINDS = ["any bits", "near one", "cancelling", "least normal", "boundary", "tiny", "largest", "edges"]


def preset_dots(unit, a, b, c):
    x, y = (sn.decode(v, "bfloat16", np.float32) for v in (a, b))
    return sn.matmul(x[:, None, :], y[:, :, None], unit, c[:, None, None])[:, 0, 0]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_vdpbf16ps(bf16, kind, count):
    n = count // len(KINDS) // 16 * 16 + 16
    a, b, c = inputs(kind, n, np.random.default_rng(KINDS.index(kind)))
    a, b, c = np.ascontiguousarray(a), np.ascontiguousarray(b), np.ascontiguousarray(c, np.float32)
    want = bf16(a, b, c)
    got = preset_dots(sn.unit("x86_avx512_bf16"), a, b, c)
    wrong = differing(got, want)
    i = wrong[0] if wrong.size else 0
    assert wrong.size == 0, (
        f"{wrong.size} of {n} differ, first: a {a[i]}, b {b[i]}, c {c[i]!r}: got {got[i]!r}, the CPU {want[i]!r}"
    )
    assert np.array_equal(bf16(a, b, c, 0xFFC0).view(np.uint32), want.view(np.uint32))  # any MXCSR: the same


@pytest.mark.parametrize(
    "change",
    [{"k_order": (0, 1)}, {"flush_inputs": False}, {"flush_results": None}, {"flush_results": "before"},
     {"rounding": "toward_zero"}],
    ids=str,
)  # fmt: skip
def test_vdpbf16ps_catches_a_changed_unit(bf16, change):
    unit = replace(sn.unit("x86_avx512_bf16"), **change)
    found = 0
    for kind in KINDS:
        a, b, c = (np.ascontiguousarray(x) for x in inputs(kind, 16000, np.random.default_rng(9)))
        found += differing(preset_dots(unit, a, b, c.astype(np.float32)), bf16(a, b, c.astype(np.float32))).size
    assert found


def test_vdpbf16ps_by_the_reference(bf16):
    for kind in KINDS:
        a, b, c = (np.ascontiguousarray(x) for x in inputs(kind, 160, np.random.default_rng(10)))
        c = c.astype(np.float32)
        want = bf16(a, b, c)
        for i in range(len(c)):
            code, _ = ref.fma_chain_dot(
                a[i].tolist(), b[i].tolist(), accumulator="binary32", operand="bfloat16", k_order=(1, 0),
                c=int(c[i].view(np.uint32)), flush_inputs=True, flush_results="after",
            )  # fmt: skip
            got = np.array([code], np.uint32).view(np.float32)
            assert differing(got, want[i : i + 1]).size == 0, (kind, i)


@pytest.mark.parametrize("count", COUNTS)
def test_vpdpbusd(cpu, count):
    if not cpu.has_vnni():
        pytest.skip("this CPU has no AVX512_VNNI")
    n = count // 16 * 16
    rng = np.random.default_rng(5)
    a = rng.integers(0, 256, (n, 4), dtype=np.uint8)
    b = rng.integers(-128, 128, (n, 4), dtype=np.int8)
    c = rng.integers(-(2**31), 2**31, n, dtype=np.int32)
    a[: n // 8], b[: n // 16], b[n // 16 : n // 8] = 255, 127, -128
    c[: n // 16], c[n // 16 : n // 8] = rng.integers(2**31 - 200000, 2**31, n // 16), -(2**31)
    want = np.empty(n, np.int32)
    pointer = np.ctypeslib.ndpointer
    cpu.dot_int8.argtypes = [ctypes.c_long, pointer(np.uint8), pointer(np.int8), pointer(np.int32), pointer(np.int32)]
    cpu.dot_int8.restype = None
    cpu.dot_int8(n, a, b, c, want)
    assert (want < 0)[: n // 16].any() and (want > 0)[n // 16 : n // 8].any()  # it wraps around
    unit = sn.unit("x86_vnni_int8")
    got = sn.matmul(
        a.astype(np.float32)[:, None, :], b.astype(np.float32)[:, :, None], unit, c.astype(np.float64)[:, None, None]
    )[:, 0, 0]
    assert np.array_equal(got, want.astype(np.float64))
