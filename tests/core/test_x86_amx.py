"""The presets of Intel's AMX: against its manual's operation, written here once more, and the CPU where it has it."""

import ctypes
import platform
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from tests.support.x86_rows import around, differing

KINDS = {"bf16": "bfloat16", "fp16": "binary16"}
LEAST = Fraction(2) ** -126


# -- Intel SDM, volume 2, TDPBF16PS and TDPFP16PS: FP32 FMA with DAZ = FTZ = 1, to nearest even ------------------------
def to_binary32(x: Fraction, negative_zero: bool) -> float:
    """A finite number to nearest even, by NumPy's conversion of what binary64 rounds to odd; tiny ones are zeros."""
    if not x:
        return -0.0 if negative_zero else 0.0
    near = float(
        x
    )  # to nearest even in binary64: made odd where it is not exact, so that the next is the only rounding
    if Fraction(near) != x:
        below = near if abs(Fraction(near)) < abs(x) else np.nextafter(near, 0.0)
        bits = np.float64(below).view(np.uint64) | np.uint64(1)
        near = float(bits.view(np.float64))
    with np.errstate(over="ignore", under="ignore"):
        y = float(np.float32(near))
        unbounded = abs(float(np.float32(near * 2.0**30)))  # tiny is asked after rounding with unbounded exponent
    return float(np.copysign(0.0, near)) if unbounded < 2.0**-96 else y


def daz(x: float) -> float:
    return float(np.copysign(0.0, x)) if x and abs(x) < LEAST else x


def fma(a: float, b: float, c: float) -> float:
    """a * b + c as IEEE 754 has it, one rounding, FTZ."""
    if not all(map(np.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))  # the product of 11 bits each is exact
    product = Fraction(a) * Fraction(b)
    total = product + Fraction(c)
    negative = np.signbit(a) != np.signbit(b)
    zeros = not product and not c and negative and np.signbit(c)
    return to_binary32(total, bool(zeros))


def add(x: float, y: float) -> float:
    return fma(1.0, daz(x), daz(y))


def tile(kind, a, b, c) -> float:
    """One element of a tile: a and b of up to 32 numbers."""
    sums = [0.0, 0.0]
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        factors = (daz(x), daz(y)) if kind == "bf16" else (x, y)
        sums[k % 2] = fma(*factors, daz(sums[k % 2]))
    return add(c, add(sums[0], sums[1]))


def operands(kind, rng, rows, k, spread):
    fmt = KINDS[kind]
    if spread == "any bits":
        codes = [rng.integers(0, 1 << 16, (rows, k), dtype=np.uint16) for _ in "ab"]
        a, b = (sn.decode(x, fmt) for x in codes)
        c = rng.integers(0, 1 << 32, rows, dtype=np.uint32)
        return a, b, sn.decode(c, "binary32")
    low = {"near one": 0, "small": -62, "smallest": -13 if kind == "fp16" else -70}[spread]
    a, b = (sn.quantize(around(rng, (rows, k), low), fmt).astype(np.float64) for _ in "ab")
    b[:, ::2] *= rng.choice([-1, 0, 1], b[:, ::2].shape)
    c = around(rng, rows, 0 if spread == "near one" else -128).astype(np.float64)
    a[::5, 1:], c[::5] = -a[::5, :-1], np.where(rng.random(len(c[::5])) < 0.5, -(2.0**-130), c[::5])
    b[::5, 1:] = b[::5, :-1]
    return a, b, c


@pytest.mark.parametrize("spread", ["any bits", "near one", "small", "smallest"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_manuals_operation(kind, spread):
    rng, unit = np.random.default_rng(8), sn.unit(f"x86_amx_{kind}")
    for k in (1, 2, 31, 32):
        rows = 60
        a, b, c = operands(kind, rng, rows, k, spread)
        got = sn.matmul(a[:, None, :], b[:, :, None], unit, c[:, None, None])[:, 0, 0].astype(np.float32)
        want = np.array([tile(kind, *row) for row in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)], np.float32)
        wrong = differing(got, want)
        assert not wrong.size, (kind, spread, k, wrong[:3], got[wrong[:3]], want[wrong[:3]])
    a, b, c = operands(kind, rng, 20, 70, spread)  # instruction after instruction
    chain = c.tolist()
    for first in range(0, 70, 32):
        parts = (x[:, first : first + 32].tolist() for x in (a, b))
        chain = [tile(kind, *row) for row in zip(*parts, chain, strict=True)]
    got = sn.matmul(a[:, None, :], b[:, :, None], unit, c[:, None, None])[:, 0, 0].astype(np.float32)
    assert not differing(got, np.array(chain, np.float32)).size


def test_subnormal_operands_of_binary16_count():
    tiny, one = [2.0**-24], [1.0]
    assert sn.dot(tiny, one, sn.unit("x86_amx_fp16")) == 2.0**-24
    zero = sn.dot([0.0], one, sn.unit("x86_amx_fp16"), -(2.0**-130))  # C is read as -0, and +0 + -0 is +0
    assert zero == 0 and not np.signbit(zero)
    assert sn.dot([2.0**-130], [2.0**100], sn.unit("x86_amx_bf16")) == 0


def test_bytes_wrap_around():
    unit = sn.unit("x86_amx_int8")
    assert sn.dot([-128.0] * 4, [-128.0] * 4, unit, float(2**31 - 1)) == 4 * 128**2 + 2**31 - 1 - 2**32
    assert unit == sn.unit("int8_int32")


# -- the CPU -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if platform.system() != "Linux" or platform.machine() != "x86_64" or compiler is None:
        pytest.skip("needs Linux on an x86-64 CPU and a C compiler")
    target = tmp_path_factory.mktemp("amx") / "amx.so"
    source = Path(__file__).with_name("x86_amx.c")
    built = subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-o", target, source], capture_output=True, text=True, check=False
    )
    if built.returncode:
        pytest.skip(f"the compiler does not know AMX's tiles: {built.stderr[:200]}")
    return ctypes.CDLL(str(target))


def on_cpu(cpu, kind, a, b, c):
    """c + a @ b of 16 rows and columns by one instruction: codes of a (16, K) and b (K, 16), and c."""
    number = ("bf16", "fp16", "int8").index(kind)
    if not cpu.has_amx(number):
        pytest.skip(f"this CPU has no AMX of {kind}, or the system does not grant it")
    group = 64 // 16 // a.itemsize  # of k in a row of b
    tiled = np.ascontiguousarray(b.reshape(-1, group, 16).transpose(0, 2, 1))
    out = np.ascontiguousarray(c.copy())
    pointer = ctypes.c_void_p
    cpu.amx_tile(number, *(pointer(x.ctypes.data) for x in (np.ascontiguousarray(a), tiled, out)))
    return out


@pytest.mark.parametrize("spread", ["any bits", "near one", "small", "smallest"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_instruction(cpu, kind, spread):
    rng, unit = np.random.default_rng(9), sn.unit(f"x86_amx_{kind}")
    for _ in range(40):
        a, _, _ = operands(kind, rng, 16, 32, spread)
        b = operands(kind, rng, 16, 32, spread)[1].T
        c = np.stack([operands(kind, rng, 16, 1, spread)[2] for _ in range(16)]).astype(np.float32)
        codes = [sn.encode(x, KINDS[kind]).astype(np.uint16) for x in (a, b)]
        want = on_cpu(cpu, kind, *codes, c)
        got = np.asarray(sn.matmul(a, b, unit, c), np.float32)
        wrong = differing(got.ravel(), want.ravel())
        assert not wrong.size, (kind, spread, wrong[:3])


def test_the_instruction_of_bytes(cpu):
    rng = np.random.default_rng(10)
    for _ in range(20):
        a, b = rng.integers(-128, 128, (16, 64)).astype(np.int8), rng.integers(-128, 128, (64, 16)).astype(np.int8)
        c = rng.integers(-(2**31), 2**31, (16, 16)).astype(np.int32)
        want = on_cpu(cpu, "int8", a, b, c)
        got = sn.matmul(a.astype(np.float32), b.astype(np.float32), sn.unit("x86_amx_int8"), c.astype(np.float64))
        np.testing.assert_array_equal(np.asarray(got), want.astype(np.float64))
