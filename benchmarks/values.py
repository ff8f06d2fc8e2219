"""quantize, encode and decode against copying the float array into one that is there already."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, best

MODES = ("nearest_even", "nearest_away", "toward_zero", "up", "to_odd", "stochastic")


def rows(n: int) -> Iterator[Row]:
    """One thread; float32 and float64, usual and subnormal data."""
    rng = np.random.Generator(np.random.Philox(1))
    normal = rng.standard_normal(n, dtype=np.float32)
    small = (normal * np.float32(2.0**-15)).astype(np.float32)  # subnormal in e5m2, and below
    for kind, x, fmt in (
        ("", normal, "e5m2"), ("subnormal ", small, "e5m2"), ("", normal, "bfloat16"), ("", normal, "dlfloat16"),
        ("", normal.astype(np.float64), "e5m2"),
    ):  # fmt: skip
        yield from _of(kind, x, sn.format(fmt))
    out = np.empty_like(normal)
    mine, copy = against(lambda: normal.copy(), lambda: np.copyto(out, normal))
    yield Row(f"float32 x.copy(), {n:.0e}", mine / n * 1e9, "ns", mine / copy, "copies")
    for name, dtype in (("e5m2", ml_dtypes.float8_e5m2), ("bfloat16", ml_dtypes.bfloat16)):
        codes = normal.astype(dtype)
        for what, work in (
            ("encode", lambda: normal.astype(dtype)),  # noqa: B023
            ("decode", lambda: codes.astype(np.float32)),  # noqa: B023
        ):
            mine, copy = against(work, lambda: np.copyto(out, normal), 3)
            yield Row(f"peer: ml_dtypes {what} float32, {name}", mine / n * 1e9, "ns", mine / copy, "copies")


def _of(kind: str, x: np.ndarray, fmt) -> Iterator[Row]:
    n, out, codes = x.size, np.empty_like(x), np.empty(x.size, fmt.storage_dtype)

    def copy():
        np.copyto(out, x)

    for mode in MODES:
        options = {"rounding": mode, "threads": 1, "key": 1}
        limit = 3.0 if mode == "stochastic" else 1.2
        for name, work in (
            ("quantize", lambda: sn.quantize(x, fmt, out=out, **options)),  # noqa: B023
            ("encode", lambda: sn.encode(x, fmt, out=codes, **options)),  # noqa: B023
        ):
            mine, one = against(work, copy)
            yield Row(f"{name} {kind}{x.dtype} {fmt}, {mode}", mine / n * 1e9, "ns", mine / one, "copies", limit)
    mine, one = against(lambda: sn.decode(codes, fmt, x.dtype, out=out, threads=1), copy)
    yield Row(f"decode {kind}{fmt} {x.dtype}", mine / n * 1e9, "ns", mine / one, "copies", 1.2)


def thread_rows() -> Iterator[Row]:
    """Two threads against one, on arrays that stay in the caches."""
    rng = np.random.Generator(np.random.Philox(4))
    x = rng.standard_normal(1 << 23, dtype=np.float32)  # to wake a thread takes a tenth of a millisecond
    codes, out = np.empty(x.size, np.uint8), np.empty_like(x)
    for name, work in (
        ("encode e5m2", lambda threads: sn.encode(x, "e5m2", out=codes, threads=threads)),
        ("encode e5m2 stochastic", lambda t: sn.encode(x, "e5m2", rounding="sr", key=1, out=codes, threads=t)),
        ("decode e5m2", lambda threads: sn.decode(codes, "e5m2", np.float32, out=out, threads=threads)),
    ):
        two, one = against(lambda: work(2), lambda: work(1), 50)  # noqa: B023
        yield Row(f"{name}, {x.size} float32, 2 threads", x.size / two / 1e9, "G/s", one / two, "x 1 thread", -1.7)


def peak() -> float:
    """Nanoseconds per element of a float32 copy, for the title."""
    x = np.zeros(10**7, np.float32)
    out = np.empty_like(x)
    return best(lambda: np.copyto(out, x)) / x.size * 1e9
