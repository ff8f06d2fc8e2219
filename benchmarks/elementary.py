"""Elementary functions: by table for 8 and 16 bits, evaluated for binary32 and binary64; MPFR and NumPy beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import gmpy2
import numpy as np

import softnum as sn
from benchmarks.measure import Row, best

FUNCTIONS = ("exp", "log", "sin", "tanh", "atan", "sigmoid", "erf", "gelu", "rsqrt", "pow", "hypot")
TABLES = ("exp", "gelu", "pow")


def rows(n: int = 1 << 19, few: int = 4000) -> Iterator[Row]:
    """One thread; nanoseconds an element. NumPy's float32 functions are not correctly rounded."""
    before = os.environ.get("SOFTNUM_THREADS")
    os.environ["SOFTNUM_THREADS"] = "1"
    try:
        yield from _ours(n, few)
    finally:
        if before is None:
            del os.environ["SOFTNUM_THREADS"]
        else:
            os.environ["SOFTNUM_THREADS"] = before
    yield from _baselines(n, few)


def _values(n: int) -> list[np.ndarray]:
    rng = np.random.Generator(np.random.Philox(11))
    return [np.abs(rng.standard_normal(n) * 2) + 2.0**-8 for _ in range(2)]


def _row(name: str, n: int, work, limit: float | None, repeats: int = 7) -> Row:
    speed = best(work, repeats) / n * 1e9
    return Row(name, speed, "ns", speed, "ns", limit)


def _call(name: str, codes: list[np.ndarray], fmt: str):
    operands = codes if name in ("pow", "hypot") else codes[:1]
    return lambda: getattr(sn, name)(*operands, fmt)


def _ours(n: int, few: int) -> Iterator[Row]:
    for fmt in ("e5m2", "e4m3fn", "binary16", "bfloat16"):
        codes = [sn.encode(v, fmt) for v in _values(n)]
        for name in TABLES:
            if name != "pow" or sn.format(fmt).bits == 8:
                yield _row(f"{name} {fmt}, by table", n, _call(name, codes, fmt), 1.0)
    for fmt in ("binary32", "binary64"):
        codes = [sn.encode(v, fmt) for v in _values(few)]
        for name in FUNCTIONS:
            limit = 2000.0 if fmt == "binary32" and name in ("exp", "log", "sigmoid", "rsqrt") else None
            yield _row(f"{name} {fmt}, evaluated", few, _call(name, codes, fmt), limit, 3)


def _baselines(n: int, few: int) -> Iterator[Row]:
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
        yield _row(f"baseline: MPFR (gmpy2) {name} to 24 bits, one call each", few, work, None, 3)
    x = np.float32(_values(n)[0])
    for name in ("exp", "log", "sin"):
        yield _row(f"baseline: np.{name} of float32", n, lambda: getattr(np, name)(x), None)  # noqa: B023
