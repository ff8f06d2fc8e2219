"""Elementary functions: by table for 8 and 16 bits, in lanes for binary32 and 64; peers too.

Operands of pow and its kin are above 0, of pown, rootn and compound the second are integers.

The peers are scalar loops in C, one thread: glibc's functions of float and double, which are not all correctly rounded,
and CORE-MATH's, which are: SOFTNUM_CORE_MATH names a checkout. MPFR is called through gmpy2.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gmpy2
import numpy as np

import softnum as sn
from benchmarks.measure import Row, best, one_thread
from softnum.runtime import _core

IN_LANES = (
    "exp", "exp2", "exp10", "expm1", "exp2m1", "exp10m1", "log", "log2", "log10", "log1p", "log2p1", "log10p1", "sin",
    "cos", "tan", "sinpi", "cospi", "tanpi", "asin", "acos", "atan", "asinpi", "acospi", "atanpi", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "gelu", "sigmoid", "silu", "softplus", "cbrt", "rsqrt", "reciprocal",
)  # fmt: skip
POWERS = ("pow", "powr", "pown", "rootn", "compound")
OF_TWO_IN_LANES = (*POWERS, "hypot", "atan2", "atan2pi", "logaddexp", "logaddexp2")
TABLES = ("exp", "gelu", "pow")
OF_C = (
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "cbrt",
)  # fmt: skip
OF_CORE_MATH = (
    *OF_C, "exp2m1", "exp10m1", "log2p1", "log10p1", "sinpi", "cospi", "tanpi", "asinpi", "acospi", "atanpi", "rsqrt",
)  # fmt: skip
CARRIERS = {"binary32": (np.float32, np.uint32), "binary64": (np.float64, np.uint64)}
#: nanoseconds an element that functions in lanes are to take at most
GOALS = {"binary32": {"avx512": 8.0, "avx2": 16.0}, "binary64": {"avx512": 30.0, "avx2": 60.0}}
#: the same of two operands; of powers
GOALS_OF_TWO, GOALS_OF_POWERS = {"avx512": 30.0, "avx2": 60.0}, {"avx512": 100.0, "avx2": 200.0}


def rows(n: int = 1 << 19, few: int = 4000) -> Iterator[Row]:
    """One thread; nanoseconds an element."""
    with one_thread():
        yield from _by_table(n)
        yield from _in_lanes("binary32", n)
        yield from _in_lanes("binary64", n // 8)
    yield from _compiled(n)
    yield from _mpfr(few)


def _values(n: int) -> list[np.ndarray]:
    rng = np.random.Generator(np.random.Philox(11))
    return [np.abs(rng.standard_normal(n) * 2) + 2.0**-8 for _ in range(2)]


def _operands(name: str, n: int, dtype=np.float32) -> np.ndarray:
    """Numbers of a function's domain."""
    x = _values(n)[0].astype(dtype)
    if name in ("asin", "acos", "asinpi", "acospi", "atanh"):
        return dtype(1.0) / (1 + x)
    return 1 + x if name == "acosh" else x


def _row(name: str, n: int, work, limit: float | None, repeats: int = 7) -> Row:
    speed = best(work, repeats) / n * 1e9
    return Row(name, speed, "ns", speed, "ns", limit)


def _call(name: str, codes: list[np.ndarray], fmt: str, **options):
    operands = codes if name in OF_TWO_IN_LANES else codes[:1]
    return lambda: getattr(sn, name)(*operands, fmt, **options)


def _by_table(n: int) -> Iterator[Row]:
    for fmt in ("e5m2", "e4m3fn", "binary16", "bfloat16"):
        codes = [sn.encode(v, fmt) for v in _values(n)]
        for name in TABLES:
            if name != "pow" or sn.format(fmt).bits == 8:
                yield _row(f"{name} {fmt}, by table", n, _call(name, codes, fmt), 1.0)


def _in_lanes(fmt: str, n: int) -> Iterator[Row]:
    dtype, code = CARRIERS[fmt]
    uniform = np.random.Generator(np.random.Philox(12)).integers(0, 2 ** sn.format(fmt).bits, n, dtype=code)
    before = _core.current_isa()
    for isa, goal in GOALS[fmt].items():
        if isa not in _core.available_isas():
            continue
        _core.use_isa(isa)
        for name in IN_LANES:
            codes = _operands(name, n, dtype).view(code)
            yield _row(f"{name} {fmt}, {isa}", n, _call(name, [codes], fmt), goal, 3)
            yield _row(f"{name} {fmt}, {isa}, codes drawn uniformly", n, _call(name, [uniform], fmt), goal, 3)
            if name in ("exp", "log", "sin", "tanh", "erf"):
                work = _call(name, [codes], fmt, rounding="up", return_flags=True)
                yield _row(f"{name} {fmt}, {isa}, up, with flags", n, work, goal, 3)
        yield from _of_two(fmt, n, isa)
    _core.use_isa(before)


def _of_two(fmt: str, n: int, isa: str) -> Iterator[Row]:
    rng = np.random.Generator(np.random.Philox(13))
    dtype, code = CARRIERS[fmt]
    drawn = [rng.integers(0, 2 ** sn.format(fmt).bits, n, dtype=code) for _ in range(2)]
    small = [dtype(rng.integers(1, 9, n)).view(code) for _ in range(2)]
    signed = [dtype(rng.standard_normal(n) * 2).view(code) for _ in range(2)]
    usual = [dtype(x).view(code) for x in _values(n)]
    for name in OF_TWO_IN_LANES:
        powers = name in POWERS
        goal = (GOALS_OF_POWERS if powers else GOALS_OF_TWO)[isa]
        data = usual if name in ("pow", "powr") else [usual[0], small[1]] if powers else signed
        yield _row(f"{name} {fmt}, {isa}", n, _call(name, data, fmt), goal, 3)
        yield _row(f"{name} {fmt}, {isa}, codes drawn uniformly", n, _call(name, drawn, fmt), goal, 3)
        yield _row(f"{name} {fmt}, {isa}, integers up to 8", n, _call(name, small, fmt), goal, 3)
        if name in ("pow", "hypot", "atan2", "logaddexp"):
            work = _call(name, data, fmt, rounding="up", return_flags=True)
            yield _row(f"{name} {fmt}, {isa}, up, with flags", n, work, goal, 3)


def _compiled(n: int) -> Iterator[Row]:
    """Loops over glibc's functions, and CORE-MATH's."""
    yield from _compiled_of("float", "f", "binary32", np.float32, n)
    yield from _compiled_of("double", "", "binary64", np.float64, n // 8)


def _compiled_of(kind: str, suffix: str, fmt: str, dtype, n: int) -> Iterator[Row]:
    sources = os.environ.get("SOFTNUM_CORE_MATH")
    with tempfile.TemporaryDirectory() as folder:
        peers = [("the C library", "", OF_C, [])]
        if sources:
            files = [next(Path(sources).glob(f"src/{fmt}/*/{name}{suffix}.c")) for name in OF_CORE_MATH]
            peers.append(("CORE-MATH", "cr_", OF_CORE_MATH, files))
        for peer, prefix, names, files in peers:
            loops = ["#include <stddef.h>"]
            for name in names:
                loops += [
                    f"{kind} {prefix}{name}{suffix}({kind});",
                    f"void loop_{name}(const {kind} *x, {kind} *y, size_t n) "
                    f"{{ for (size_t i = 0; i < n; i++) y[i] = {prefix}{name}{suffix}(x[i]); }}",
                ]
            source, target = Path(folder) / f"{prefix}loops.c", Path(folder) / f"{prefix}loops.so"
            source.write_text("\n".join(loops))
            flags = ["-O3", "-march=native", "-fno-builtin", "-w", "-shared", "-fPIC"]
            command = [os.environ.get("CC", "cc"), *flags, str(source), *map(str, files), "-o", str(target), "-lm"]
            subprocess.run(command, check=True)
            library = ctypes.CDLL(str(target))
            for name in names:
                x = _operands(name, n, dtype)
                y, loop = np.empty_like(x), getattr(library, f"loop_{name}")
                loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
                work = lambda: loop(x.ctypes.data, y.ctypes.data, n)  # noqa: B023, E731
                yield _row(f"peer: {peer}'s {name} of {kind}", n, work, None, 3)


def _mpfr(few: int) -> Iterator[Row]:
    numbers = [[gmpy2.mpfr(float(np.float32(v))) for v in values] for values in _values(few)]
    mpfr = {"exp": gmpy2.exp, "log": gmpy2.log, "sin": gmpy2.sin, "erf": gmpy2.erf, "hypot": gmpy2.hypot}

    def one_by_one(function, operands):
        context = gmpy2.ieee(32)
        with context:
            for x in zip(*operands, strict=True):
                function(*x)

    for name, function in mpfr.items():
        operands = numbers if name == "hypot" else numbers[:1]
        work = lambda: one_by_one(function, operands)  # noqa: B023, E731
        yield _row(f"peer: MPFR (gmpy2) {name} to 24 bits, one call each", few, work, None, 3)
