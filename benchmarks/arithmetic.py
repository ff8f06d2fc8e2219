"""Operations on codes, with ml_dtypes and Berkeley SoftFloat called as their interfaces permit."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import softfloatpy

import softnum as sn
from benchmarks.measure import Row, best, one_thread

SIXTEEN = ("binary16", "bfloat16", "dlfloat16", "e6m9")
WIDE = ("binary32", "binary64", "e11m40")


def rows(n: int = 1 << 19) -> Iterator[Row]:
    """One thread: 8 bits by tables, 16 by vectors, wider by the definition and its short way."""
    with one_thread():
        yield from _ours(n)
    yield from _peers(n)


def _codes(n: int, fmt: str, count: int) -> list[np.ndarray]:
    rng = np.random.Generator(np.random.Philox(3))
    return [sn.encode(rng.standard_normal(n) * 3, fmt) for _ in range(count)]


def _row(name: str, n: int, work, limit: float | None) -> Row:
    seconds = best(work)
    return Row(name, seconds / n * 1e9, "ns", seconds / n * 1e9, "ns", limit)


def _ours(n: int) -> Iterator[Row]:
    a, b = _codes(n, "e5m2", 2)
    c = _codes(n, "e4m3fn", 1)[0]
    yield _row("add e5m2", n, lambda: sn.add(a, b, "e5m2"), 1.0)
    yield _row("add e5m2 with flags", n, lambda: sn.add(a, b, "e5m2", return_flags=True), 2.0)
    mixed = ("e5m2", "e4m3fn")
    yield _row("multiply e5m2 x e4m3fn -> e5m2", n, lambda: sn.multiply(a, c, mixed, out_fmt="e5m2"), 1.0)
    yield _row("sqrt e5m2", n, lambda: sn.sqrt(a, "e5m2"), 1.0)
    for fmt in SIXTEEN:
        x, y, z = _codes(n, fmt, 3)
        for op in ("add", "subtract", "multiply", "divide"):
            limit = None if op == "divide" else 3.0
            yield _row(f"{op} {fmt}", n, lambda: getattr(sn, op)(x, y, fmt), limit)  # noqa: B023
        yield _row(f"add {fmt}, up", n, lambda: sn.add(x, y, fmt, rounding="up"), 3.0)  # noqa: B023
        yield _row(f"fma {fmt}", n, lambda: sn.fma(x, y, z, fmt), None)  # noqa: B023
        yield _row(f"sqrt {fmt}", n, lambda: sn.sqrt(x, fmt), None)  # noqa: B023
        yield _row(f"add {fmt} with flags", n, lambda: sn.add(x, y, fmt, return_flags=True), None)  # noqa: B023
    for fmt in WIDE:
        x, y, z = _codes(n, fmt, 3)
        positive = sn.absolute(x, fmt)
        for op in ("add", "multiply", "divide"):
            work = lambda: getattr(sn, op)(x, y, fmt, return_flags=True)  # noqa: B023, E731
            yield _row(f"{op} {fmt} with flags", n, work, 15.0)
        yield _row(f"fma {fmt} with flags", n, lambda: sn.fma(x, y, z, fmt, return_flags=True), 15.0)  # noqa: B023
        yield _row(f"sqrt {fmt} with flags", n, lambda: sn.sqrt(positive, fmt, return_flags=True), 15.0)  # noqa: B023
        yield _row(f"add {fmt}", n, lambda: sn.add(x, y, fmt), None)  # noqa: B023


def _peers(n: int) -> Iterator[Row]:
    for name, dtype in (("e5m2", ml_dtypes.float8_e5m2), ("bfloat16", ml_dtypes.bfloat16)):
        x, y = (codes.view(dtype) for codes in _codes(n, name, 2))
        yield _row(f"peer: ml_dtypes add {name}", n, lambda: np.add(x, y), None)  # noqa: B023
    few = 2000  # SoftFloat's Python interface takes one number at a time
    numbers = [softfloatpy.Float32.from_float(float(v)) for v in _codes(few, "binary16", 1)[0]]
    pairs = list(zip(numbers, numbers[::-1], strict=True))

    def one_by_one():
        add = softfloatpy.f32_add
        for x, y in pairs:
            add(x, y)

    yield _row("peer: Berkeley SoftFloat (softfloatpy) f32_add, one call each", few, one_by_one, None)
