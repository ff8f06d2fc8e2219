"""Every binary32 operand of the functions that CORE-MATH has: python -m tests.core_math SOURCES [--out FILE].

SOURCES is a checkout of CORE-MATH (core-math.gitlabpages.inria.fr), whose binary32 functions are compiled, and called
with the CPU rounding to nearest and up; NaNs are alike. A range is 2^28 operands; what passed stays in FILE, with a
digest of softnum's results, and is not computed again. Of functions that CORE-MATH lacks, its correctly rounded ones of
binary64 give an enclosure: what follows them are few roundings, whose sum is stated below; where both its ends round
alike, that is the result, and else it is softnum's definition.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from rich.progress import track

import softnum as sn
from softnum.runtime.atomic import write_atomic
from tests.support.core_oracles import by_definition

MODES = {"nearest_even": "FE_TONEAREST", "up": "FE_UPWARD"}
RANGES = 16
CHUNK = 1 << 20
NAMES = [
    "exp", "exp2", "exp10", "expm1", "exp2m1", "exp10m1", "log", "log2", "log10", "log1p", "log2p1", "log10p1",
    "sin", "cos", "tan", "sinpi", "cospi", "tanpi", "asin", "acos", "atan", "asinpi", "acospi", "atanpi",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "cbrt", "rsqrt",
]  # fmt: skip
#: in binary64, and how far it is off at most, in parts of itself: e^x, 1 + e^x and the quotient by 1.5 2^-53 each, and
#: once more, times x; log(1 + y) magnifies no error of y; 1 / sqrt(2) times x, off by 2^-52, makes erfc off by up to
#: twice the square of that as much, which is 110 where gelu of binary32 is not 0. Where a result is next to 0, 1, x or
#: x / 2, a number on the same side of that stands for it.
OTHERS = {
    "sigmoid": ("TINY ? 0.5 * BEYOND(v) : v > 40.0 ? 1.0 - NEXT : v < -300.0 ? LEAST : 1.0 / (1.0 + cr_exp(-v))",
                "0x1p-50"),
    "silu": ("TINY ? 0.5 * v * BEYOND(v) : v > 40.0 ? v * (1.0 - NEXT) : v < -300.0 ? -LEAST : v / (1.0 + cr_exp(-v))",
             "0x1p-50"),
    "softplus": ("v > 40.0 ? v * (1.0 + NEXT) : v < -300.0 ? LEAST : v > 0.0 ? v + cr_log1p(cr_exp(-v))"
                 " : cr_log1p(cr_exp(v))", "0x1p-50"),
    "gelu": ("TINY ? 0.5 * v * BEYOND(v) : v > 10.0 ? v * (1.0 - NEXT) : v < -30.0 ? -LEAST"
             " : 0.5 * v * cr_erfc(v * -0x1.6a09e667f3bcdp-1)", "0x1p-43"),
    "reciprocal": ("1.0 / v", "0x1p-52"),
}  # fmt: skip
MACROS = """
#define NEXT 0x1p-35
#define LEAST 0x1p-400
#define TINY (v > -0x1p-30 && v < 0x1p-30 && v != 0.0)
#define BEYOND(v) ((v) < 0.0 ? 1.0 - NEXT : 1.0 + NEXT)
"""


def library(sources: Path, folder: Path) -> ctypes.CDLL:
    """CORE-MATH's functions over arrays, in a rounding mode."""
    files, loops = [], ["#include <fenv.h>", "#include <stddef.h>", MACROS]
    for name in NAMES:
        [file] = sources.glob(f"src/binary32/*/{name}f.c")
        files.append(str(file))
        loops += [f"float cr_{name}f(float);"]
        for mode, macro in MODES.items():
            body = f"fesetround({macro}); for (size_t i = 0; i < n; i++) y[i] = cr_{name}f(x[i]);"
            loops.append(
                f"void {name}_{mode}(const float *x, float *y, size_t n) {{ {body} fesetround(FE_TONEAREST); }}"
            )
    for name in ("exp", "log1p", "erfc"):
        files.append(str(sources / f"src/binary64/{name}/{name}.c"))
        loops.append(f"double cr_{name}(double);")
    for name, (value, bound) in OTHERS.items():
        for mode, macro in MODES.items():
            loops.append(
                f"""void {name}_{mode}(const float *x, float *y, unsigned char *undecided, size_t n) {{
    for (size_t i = 0; i < n; i++) {{
        const double v = x[i], value = {value};
        volatile double low = value - {bound} * __builtin_fabs(value), high = value + {bound} * __builtin_fabs(value);
        fesetround({macro});
        volatile float a = (float)low, b = (float)high;
        fesetround(FE_TONEAREST);
        y[i] = a;
        undecided[i] = !(a == b) || value == 0.0 || __builtin_isinf(v);
    }}
}}"""
            )
    (folder / "loops.c").write_text("\n".join(loops))
    objects = [str(folder / "loops.c"), *files]
    command = ["cc", "-O2", "-march=native", "-frounding-math", "-fno-math-errno", "-w", "-shared", "-fPIC"]
    subprocess.run([*command, *objects, "-o", str(folder / "core_math.so"), "-lm"], check=True)
    return ctypes.CDLL(str(folder / "core_math.so"))


def oracle(lib: ctypes.CDLL, name: str, mode: str):
    fmt = sn.format("binary32")
    call = getattr(lib, f"{name}_{mode}")
    call.argtypes = [ctypes.c_void_p] * (3 if name in OTHERS else 2) + [ctypes.c_size_t]

    def enclosed(codes: np.ndarray) -> np.ndarray:
        out, undecided = np.empty_like(codes), np.empty(len(codes), bool)
        call(codes.ctypes.data, out.ctypes.data, undecided.ctypes.data, len(codes))
        out[undecided] = by_definition(name, (codes[undecided],), (fmt,), fmt, rounding=mode)[0]
        return out

    def results(codes: np.ndarray) -> np.ndarray:
        out = np.empty_like(codes)
        call(codes.ctypes.data, out.ctypes.data, len(codes))
        return out

    return enclosed if name in OTHERS else results


def compare(name: str, mode: str, want, number: int) -> str:
    """The digest of a range of results; an error if one is not the oracle's."""
    digest, size = hashlib.sha256(), (1 << 32) // RANGES
    for first in range(number * size, (number + 1) * size, CHUNK):
        codes = np.arange(first, first + CHUNK, dtype=np.uint64).astype(np.uint32)
        got, true = getattr(sn.ops, name)(codes, "binary32", rounding=mode), want(codes)
        both = ((got & 0x7FFFFFFF) > 0x7F800000) & ((true & 0x7FFFFFFF) > 0x7F800000)
        wrong = np.flatnonzero((got != true) & ~both)
        if len(wrong):
            i = wrong[0]
            raise SystemExit(
                f"{name}({codes[i]:#010x}) {mode}: {got[i]:#010x}, not {true[i]:#010x}; {len(wrong)} in {CHUNK}"
            )
        digest.update(got.tobytes())
    return digest.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, help="a checkout of CORE-MATH")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records/core_math.json"))
    parser.add_argument("--only", default="", help="functions, by commas")
    args = parser.parse_args()
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    names = [name for name in (*NAMES, *OTHERS) if not args.only or name in args.only.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        lib = library(args.sources, Path(folder))
        jobs = [(name, mode, i) for name in names for mode in MODES for i in range(RANGES)]
        jobs = [(n, m, i) for n, m, i in jobs if len(done.get(n, {}).get(m, [])) <= i]
        for name, mode, i in track(jobs, "ranges of 2^28"):
            digest = compare(name, mode, oracle(lib, name, mode), i)
            done.setdefault(name, {}).setdefault(mode, []).append(digest)
            write_atomic(args.out, json.dumps(done, indent=1) + "\n")
    print(f"{sum(len(d) for modes in done.values() for d in modes.values())} ranges of 2^28 operands are equal")


if __name__ == "__main__":
    main()
