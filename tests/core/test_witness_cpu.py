"""binary32 and binary64 against the CPU's own arithmetic in its four rounding modes, flags included.

A helper in C, built here, sets the rounding mode and reads the flags of each operation (C11 Annex F binds float and
double to IEEE 754). NaNs are compared as NaNs: which one comes out is the machine's affair, and has tests elsewhere.
"""

import ctypes
import platform
import random

import numpy as np
import pytest

import softnum as sn
from softnum.formats.names import format as format_of
from tests.support.c_helpers import X86_64, built
from tests.support.cases import cases
from tests.support.core_oracles import edge_codes, random_codes, show

SOURCE = r"""
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#define LOOP(type, name, expression)                                                                                   \
    void name(int mode, long n, const type *a, const type *b, const type *c, type *out, uint8_t *flags) {              \
        (void)b, (void)c;                                                                                              \
        fesetround(mode == 0 ? FE_TONEAREST : mode == 1 ? FE_UPWARD : mode == 2 ? FE_DOWNWARD : FE_TOWARDZERO); \
        for (long i = 0; i < n; i++) {                                                                                 \
            feclearexcept(FE_ALL_EXCEPT);                                                                              \
            volatile type x = a[i], y = b[i], z = c[i], r;                                                             \
            (void)x, (void)y, (void)z;                                                                                 \
            r = expression;                                                                                            \
            int e = fetestexcept(FE_ALL_EXCEPT);                                                                       \
            out[i] = r;                                                                                                \
            flags[i] = (uint8_t)((e & FE_INEXACT ? 1 : 0) | (e & FE_UNDERFLOW ? 2 : 0) | (e & FE_OVERFLOW ? 4 : 0) |   \
                                 (e & FE_DIVBYZERO ? 8 : 0) | (e & FE_INVALID ? 16 : 0));                              \
        }                                                                                                              \
        fesetround(FE_TONEAREST);                                                                                      \
    }
#define ALL(type, s, root, fused, whole)                                                                               \
    LOOP(type, add##s, x + y)                                                                                          \
    LOOP(type, subtract##s, x - y)                                                                                     \
    LOOP(type, multiply##s, x * y)                                                                                     \
    LOOP(type, divide##s, x / y)                                                                                       \
    LOOP(type, sqrt##s, root(x))                                                                                       \
    LOOP(type, fma##s, fused(x, y, z))                                                                                 \
    LOOP(type, round_to_integral##s, whole(x))
ALL(float, 32, sqrtf, fmaf, rintf)
ALL(double, 64, sqrt, fma, rint)
"""
MODES = {"nearest_even": 0, "up": 1, "down": 2, "toward_zero": 3}
OPERATIONS = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "sqrt": 1, "fma": 3, "round_to_integral": 1}


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu")
    (folder / "cpu.c").write_text(SOURCE)
    options = ["-frounding-math", "-ffp-contract=off"]
    if X86_64:
        with open("/proc/cpuinfo") as info:  # fmaf as one instruction: the library's own sets flags of its steps
            if " fma " in info.read():
                options.append("-mfma")
    return ctypes.CDLL(built(folder, folder / "cpu.c", *options, libraries=["-lm"]))


def theirs(cpu, name, codes, fmt, mode):
    dtype = np.float32 if fmt.bits == 32 else np.float64
    columns = [np.ascontiguousarray(c).view(dtype) for c in codes]
    columns += [columns[0]] * (3 - len(columns))
    out, flags = np.empty_like(columns[0]), np.empty(len(columns[0]), np.uint8)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*columns, out, flags)]
    getattr(cpu, f"{name}{fmt.bits}")(MODES[mode], ctypes.c_long(len(out)), *pointers)
    return out.view(fmt.storage_dtype), flags


def compare(cpu, name, codes, fmt, mode, **other):
    """x86 judges tininess after rounding, Arm before."""
    arm = platform.machine() in ("aarch64", "arm64")
    want, want_flags = theirs(cpu, name, codes, fmt, mode)
    environment = {"rounding": mode, "tininess": "before" if arm else "after"} | other
    got, flags = getattr(sn.ops, name)(*codes, fmt, return_flags=True, nan="arm" if arm else "x86", **environment)
    nan = np.isnan(want.view(np.float32 if fmt.bits == 32 else np.float64))
    magnitude = fmt.storage_dtype.type((1 << (fmt.bits - 1)) - 1)
    bad = (flags != want_flags) | np.where(nan, (got & magnitude) <= fmt.inf_code, got != want)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise AssertionError(
            f"{name}({', '.join(show(c[i], fmt) for c in codes)}) {fmt} {mode}: got {show(got[i], fmt)} flags "
            f"{flags[i]}, the CPU {show(want[i], fmt)} flags {want_flags[i]}; {np.count_nonzero(bad)} differ"
        )


@cases("mode", MODES)
@cases("name", OPERATIONS)
@cases("fmt", ["binary32", "binary64"])
def test_equals_the_cpu(cpu, fmt, name, mode):
    """Exponent classes crossed with significand patterns; then random codes near them."""
    fmt, rng = format_of(fmt), random.Random(f"{fmt} {name} {mode}")
    edges = edge_codes(fmt)
    tables = {1: [edges], 2: [edges, edges], 3: [edges[::5], edges[2::7], edges[1::4]]}[OPERATIONS[name]]
    compare(cpu, name, [c.ravel() for c in np.meshgrid(*tables, indexing="ij")], fmt, mode)
    compare(cpu, name, [random_codes(fmt, rng, 20_000) for _ in tables], fmt, mode)


@pytest.mark.parametrize("fmt", ["binary32", "binary64"])
def test_the_cpu_catches_planted_faults(cpu, fmt):
    """Another mode, another tininess."""
    fmt = format_of(fmt)
    codes = [c.ravel() for c in np.meshgrid(edge_codes(fmt), edge_codes(fmt), indexing="ij")]
    with pytest.raises(AssertionError, match="differ"):
        compare(cpu, "multiply", codes, fmt, "nearest_even", rounding="nearest_away")
    with pytest.raises(AssertionError, match="differ"):
        compare(cpu, "multiply", codes, fmt, "up", tininess="before")
