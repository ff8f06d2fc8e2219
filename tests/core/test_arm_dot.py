"""Arm's dot products: the presets against the manual's pseudocode (tests/support/arm_dot.py), and against QEMU."""

import itertools
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.mac.products.engines import definition_of
from tests.support import arm_dot
from tests.support.arm_dot import FPCR, bf_dot_add, bf_mat_mul_add_h, fp8_dot_add, fp_dot_add
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits

MODES = {"RN": "nearest_even", "RP": "up", "RM": "down", "RZ": "toward_zero"}
FP8 = ("e4m3fn", "e5m2")
INSTRUCTIONS = {"fdot": (4, 2), "fmlal": (1, 1), "fmmla": (8, 4)}  # products into binary32, into binary16


def ends_of(fmt):
    """Codes where something changes, of both signs: zeros, subnormals, the least normal, the largest, infinity, NaN."""
    sign = 1 << (fmt.bits - 1)
    least = 1 << fmt.mantissa_bits
    some = [0, 1, least - 1, least, least + 1, fmt.max_code, fmt.max_code - 1, int(fmt.nan_code)]
    some += [fmt.inf_code] if fmt.infinities else []
    return np.array([*some, *(sign | c for c in some)], np.uint64)


def codes(rng, fmt, rows, n):
    """A quarter of the rows each: any codes; numbers near 1, which cancel; tiny products; special ones."""
    fmt, shape = sn.format(fmt), (rows, n)
    sign = rng.choice([-1, 1], shape)
    near = sign * rng.choice([1, 1.25, 1.5, 1.75], shape) * 2.0 ** rng.integers(-2, 3, shape)
    tiny = sign * (1 + rng.random(shape)) * 2.0 ** (fmt.emin // 2 + rng.integers(-9, 9, shape))
    near, tiny = (sn.encode(x, fmt, overflow="saturate").astype(np.uint64) for x in (near, tiny))
    near[rng.random(shape) < 0.1] = 1 << (fmt.bits - 1)
    special = rng.choice(ends_of(fmt), shape)
    any_code = rng.integers(0, 1 << fmt.bits, shape, np.uint64)
    kind = np.arange(rows)[:, None] % 4
    found = np.choose(kind, [any_code, near, tiny, special])
    return np.where((kind != 1) & (rng.random(shape) < 0.05), special, found)


def starts(rng, fmt, rows):
    """C: any, near products of codes that cancel, their negatives, the ends."""
    found = codes(rng, fmt, rows, 1)[:, 0]
    found[rng.random(rows) < 0.2] = rng.choice(ends_of(sn.format(fmt)))
    return found


def by_definition(unit, a, b, c):
    out = np.empty(len(a), np.uint64)
    definition_of(unit).run_each(*(np.ascontiguousarray(x, np.uint64) for x in (a, b, c)), out, None)
    return out


def check(unit, model, a, b, c):
    """The definition, the reference, and the fast path where all is finite numbers, against a model of a row."""
    want = [model(int(z), x, y) for z, x, y in zip(c, a.tolist(), b.tolist(), strict=True)]
    got = by_definition(unit, a, b, c)
    wrong = np.flatnonzero(got != np.array(want, np.uint64))
    assert wrong.size == 0, (str(unit), [(a[i], b[i], c[i], got[i], want[i]) for i in wrong[:3]])
    for i in range(0, len(a), 7):
        assert want[i] == by_reference(unit, a[i].tolist(), b[i].tolist(), int(c[i])), (str(unit), a[i], b[i], c[i])
    formats = (*unit.operand, unit.result)
    x, y, z = (sn.decode(x.astype(f.storage_dtype), f, np.float32) for x, f in zip((a, b, c), formats, strict=True))
    fast = np.array([sn.dot(x[i], y[i], unit, z[i]) for i in range(0, len(a), 5)])
    assert_same_bits(fast, sn.decode(got[::5].astype(unit.result.storage_dtype), unit.result, np.float32), str(unit))


def by_reference(unit, a, b, c):
    names = (
        "terms", "accumulator", "operand", "reduction", "partial", "partial_rounding", "rounding", "zeros", "scale",
        "flush_inputs", "flush_results", "overflow",
    )  # fmt: skip
    return ref.grouped_dot(a, b, c=c, **{name: getattr(unit, name) for name in names})[0]


# ---- bfloat16 and binary16 -------------------------------------------------------------------------------------------


def test_bfdot():
    unit, rng = sn.unit("arm_bfdot"), np.random.default_rng(1)
    a, b = (codes(rng, "bfloat16", 6000, 2) for _ in "ab")
    check(unit, bf_dot_add, a, b, starts(rng, "binary32", 6000))


def test_bfmmla():
    rng = np.random.default_rng(2)
    a, b = (codes(rng, "bfloat16", 2000, 4) for _ in "ab")
    c = starts(rng, "binary32", 2000)
    for name, ebf in (("arm_bfdot", False), ("arm_bfdot_ebf", True)):
        check(sn.unit(name), lambda z, x, y, ebf=ebf: bf_mat_mul_add_h(z, x, y, ebf), a, b, c)


ENDS = (0x0000, 0x8000, 0x0001, 0x007F, 0x0080, 0x8080, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x2000)


def test_every_pair_of_ends():
    """BFDOT of all numbers where something changes, C among zeros and such ends."""
    pairs = np.array(list(itertools.product(ENDS, repeat=4)), np.uint64)
    a, b = pairs[:, :2], pairs[:, 2:]
    c = np.resize(np.array([0, 1 << 31, 0x00000001, 0x80800000, 0x7F7FFFFF, 0xFF800000, 0x3F800001], np.uint64), len(a))
    for name, ebf in (("arm_bfdot", False), ("arm_bfdot_ebf", True)):
        got = by_definition(sn.unit(name), a, b, c)
        want = [bf_dot_add(int(z), x, y, ebf) for z, x, y in zip(c, a.tolist(), b.tolist(), strict=True)]
        assert got.tolist() == want, name


@cases("fpcr", [FPCR(), *(FPCR(m, fz, fiz, ah) for m, fz, fiz, ah in (
    ("RP", False, False, False), ("RM", False, False, False), ("RZ", False, False, False), ("RN", True, False, False),
    ("RM", True, True, False), ("RP", True, False, True), ("RN", True, True, True), ("RZ", False, True, False),
))], ids=lambda f: f"{f.rmode}-{f.fz:d}{f.fiz:d}{f.ah:d}")  # fmt: skip
def test_extended_behaviours(fpcr):
    """FPCR.EBF = 1 with the other fields, as the preset's evidence says they are stated."""
    rng, mode = np.random.default_rng(3), MODES[fpcr.rmode]
    flush = {"flush_inputs": fpcr.fiz or (fpcr.fz and not fpcr.ah)}
    flush["flush_results"] = None if not fpcr.fz else "after" if fpcr.ah else "before"
    unit = replace(sn.unit("arm_bfdot_ebf"), partial_rounding=mode, rounding=mode, **flush)
    a, b = (codes(rng, "bfloat16", 2400, 2) for _ in "ab")
    check(unit, lambda z, x, y: bf_dot_add(z, x, y, True, fpcr), a, b, starts(rng, "binary32", 2400))


def test_fdot_of_binary16():
    unit, rng = sn.unit("arm_fdot_fp16"), np.random.default_rng(4)
    a, b = (codes(rng, "binary16", 3000, 2) for _ in "ab")
    check(unit, fp_dot_add, a, b, starts(rng, "binary32", 3000))


def test_what_distinguishes_it():
    """An overflow is infinite, zeros keep their sign, subnormals count as zeros."""
    unit = sn.unit("arm_bfdot")
    most, one, tiny = np.float32([2.0**127, 0]), np.float32([2.0, 0]), np.float32([2.0**-126, 2.0**-127])
    assert sn.dot(most, one, unit) == np.inf and sn.dot(-most, one, unit) == -np.inf
    ebf = sn.unit("arm_bfdot_ebf")
    zeros = np.zeros(2, np.float32)
    for u in (unit, ebf, sn.unit("arm_fdot_e4m3")):
        n = u.terms // 2
        minus = np.tile(-zeros, n)
        assert np.signbit(sn.dot(minus, np.ones_like(minus), u, -0.0)) and not np.signbit(sn.dot(minus, minus, u, -0.0))
        assert not np.signbit(sn.dot(minus[:1], minus[:1] + 1, u, -0.0)) or u.terms == 1  # filled up with +0
    assert sn.dot(tiny, np.float32([1, 1]), unit) == np.float32(2.0**-126)
    assert sn.dot(tiny, np.float32([1, 1]), ebf) == np.float32(2.0**-126 + 2.0**-127)
    assert sn.dot(np.float32([1, 2.0**-40]), np.float32([1, 1]), unit) == np.float32(1 + 2.0**-23)


# ---- FP8 -------------------------------------------------------------------------------------------------------------


@cases("result", ["binary32", "binary16"])
@cases("name", INSTRUCTIONS)
def test_fp8(name, result):
    """All pairs of formats, LSCALE and OSM."""
    rng = np.random.default_rng(5)
    terms = INSTRUCTIONS[name][result == "binary16"]
    for fx, fy in itertools.product(FP8, repeat=2):
        unit = sn.unit(f"arm_{name}_{fx.removesuffix('fn')}", result)
        assert unit.terms == terms
        for lscale, osm in ((0, False), (3, True), (15, False)):
            unit = replace(unit, operand=(fx, fy), scale=-lscale, overflow="saturate_finite" if osm else None)
            a, b = codes(rng, fx, 300, terms), codes(rng, fy, 300, terms)
            c = starts(rng, result, 300)
            check(unit, lambda z, x, y, p=(fx, fy, result, lscale, osm): fp8_dot_add(z, x, y, *p), a, b, c)


def test_scales_of_single_precision():
    """LSCALE has seven bits there: products end below the subnormals of binary32."""
    rng = np.random.default_rng(6)
    for lscale in (40, 100, 127):
        unit = replace(sn.unit("arm_fdot_e5m2"), scale=-lscale)
        a, b = codes(rng, "e5m2", 1000, 4), codes(rng, "e5m2", 1000, 4)
        c = np.where(rng.random(1000) < 0.5, rng.integers(0, 9, 1000), starts(rng, "binary32", 1000)).astype(np.uint64)
        check(unit, lambda z, x, y, s=lscale: fp8_dot_add(z, x, y, "e5m2", "e5m2", "binary32", s), a, b, c)


def test_every_product_of_e4m3():
    """FMLAL of all pairs of codes, C a zero of either sign and a number."""
    every = np.array(list(itertools.product(range(256), repeat=2)), np.uint64)
    a, b = every[:, :1], every[:, 1:]
    c = np.resize(np.array([0x8000, 0, 0x3C01], np.uint64), len(a))
    got = by_definition(sn.unit("arm_fmlal_e4m3", "binary16"), a, b, c)
    step = slice(None, None, 3)
    want = [
        fp8_dot_add(int(z), x, y, "e4m3fn", "e4m3fn", "binary16")
        for z, x, y in zip(c[step], a[step].tolist(), b[step].tolist(), strict=True)
    ]
    assert got[step].tolist() == want


# ---- QEMU ------------------------------------------------------------------------------------------------------------

COMPILER, QEMU = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
RMODES = {"RN": 0, "RP": 1, "RM": 2, "RZ": 3}


@pytest.fixture(scope="module")
def qemu(tmp_path_factory):
    if not (COMPILER and QEMU):
        pytest.skip("needs aarch64-linux-gnu-gcc and qemu-aarch64")
    program = tmp_path_factory.mktemp("arm") / "arm_dot"
    source = Path(arm_dot.__file__).with_suffix(".c")
    options = ["-O1", "-static", "-march=armv8.6-a+bf16"]
    subprocess.run([COMPILER, *options, "-o", program, source], check=True, timeout=120)

    def run(a, b, c, fpcr=0):
        """(BFDOT, BFMMLA) of each row; skips where the CPU that it emulates lacks a field of FPCR."""
        rows = np.concatenate([c.astype("<u4").view("<u2").reshape(-1, 2), a.astype("<u2"), b.astype("<u2")], axis=1)
        done = subprocess.run(
            [QEMU, "-cpu", "max", program, f"{fpcr:x}"], input=rows.tobytes(), capture_output=True, timeout=120
        )
        if done.returncode == 3:
            pytest.skip(f"this QEMU has not all of FPCR = {fpcr:#x}")
        assert done.returncode == 0, done.stderr
        return np.frombuffer(done.stdout, "<u4").reshape(-1, 2).astype(np.uint64).T

    return run


def rows_of(seed, n):
    rng = np.random.default_rng(seed)
    return codes(rng, "bfloat16", n, 4), codes(rng, "bfloat16", n, 4), starts(rng, "binary32", n)


def agree(unit, qemu, rows, fpcr):
    a, b, c = rows
    dot, product = qemu(a, b, c, fpcr)
    assert (by_definition(unit, a[:, :2], b[:, :2], c) == dot).all()
    assert (by_definition(unit, a, b, c) == product).all()


def test_qemu_agrees(qemu):
    for fpcr in (0, 1 << 24, 2 << 22):  # FZ and RMode do not count
        agree(sn.unit("arm_bfdot"), qemu, rows_of(7, 50_000), fpcr)


@cases("name, bits, flush", [
    ("FIZ", 1, {"flush_inputs": True}), ("AH and FZ", 1 << 24 | 2, {"flush_results": "after"}),
    ("all", 1 << 24 | 3, {"flush_inputs": True, "flush_results": "after"}),
])  # fmt: skip
def test_qemu_agrees_with_other_flushes(qemu, name, bits, flush):
    """FPCR.FIZ and AH; with the latter NaN is 0xFFC00000."""
    unit, (a, b, c) = replace(sn.unit("arm_bfdot_ebf"), **flush), rows_of(9, 20_000)
    dot, _ = qemu(a, b, c, 1 << 13 | bits)
    assert (by_definition(unit, a[:, :2], b[:, :2], c) == np.where(dot == 0xFFC00000, 0x7FC00000, dot)).all()


@cases("fz", [False, True])
@cases("rmode", MODES)
def test_qemu_agrees_with_extended_behaviours(qemu, rmode, fz):
    flush = {"flush_inputs": True, "flush_results": "before"} if fz else {}
    unit = replace(sn.unit("arm_bfdot_ebf"), partial_rounding=MODES[rmode], rounding=MODES[rmode], **flush)
    agree(unit, qemu, rows_of(8, 30_000), 1 << 13 | RMODES[rmode] << 22 | fz << 24)
