"""Exact sums of products against NumPy's sgemm, and what else sums: convolutions and sums under a unit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against
from softnum.runtime import _core

#: operand, accumulator, whether the operands are all finite codes of the format or normally distributed; goal in sgemms
PRODUCTS = [
    ("e5m2", "e6m9", False, 20.0),
    ("e5m2", "e6m9", True, 20.0),
    ("binary16", "binary16", False, 100.0),
    ("binary16", "binary16", True, 100.0),
    ("bfloat16", "bfloat16", False, None),
    ("binary32", "binary32", False, None),
]


def operand(fmt: str, rng, n: int, whole: bool) -> np.ndarray:
    """A matrix of values: normally distributed, or of all codes that are finite."""
    if not whole:
        return sn.quantize(rng.standard_normal((n, n), dtype=np.float32), fmt)
    facts = sn.format(fmt)
    values = sn.decode(np.arange(1 << facts.bits, dtype=facts.storage_dtype), fmt, np.float32)
    return rng.choice(values[np.isfinite(values)], (n, n))


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread against sgemm, instruction sets and threads against each other; sums and convolutions."""
    rng = np.random.Generator(np.random.Philox(3))
    plain = [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]

    def sgemm():
        return plain[0] @ plain[1]

    for fmt, accumulator, whole, limit in PRODUCTS:
        unit = sn.ExactDotUnit(accumulator, operand=fmt)
        a, b = operand(fmt, rng, n, whole), operand(fmt, rng, n, whole)
        mine, base = against(lambda: sn.matmul(a, b, unit, threads=1), sgemm, 5)  # noqa: B023
        name = f"exact {fmt} into {accumulator}, {'all codes' if whole else 'normal data'}, {n}^3"
        yield Row(name, n**3 / mine / 1e9, "GMAC/s", mine / base, "sgemms", limit)
        if limit is not None and {"avx2", "avx512"} <= set(_core.available_isas()):
            yield _avx2(name, n, lambda: sn.matmul(a, b, unit, threads=1))  # noqa: B023
    one, two = against(
        lambda: sn.matmul(a, b, unit, threads=1), lambda: sn.matmul(a, b, unit, threads=2), 5
    )  # fmt: skip
    yield Row("the last one on two threads", n**3 / two / 1e9, "GMAC/s", one / two, "times one", -1.8)
    few = a[: max(1, n // 64)]
    slow = sn.ExactDotUnit("q16.16", operand="binary16", overflow="wrap")
    c, d = (operand("binary16", rng, n, False) for _ in range(2))
    mine, base = against(lambda: sn.matmul(c[: len(few)], d, slow, threads=1), sgemm, 2)
    mine *= n / len(few)
    yield Row("exact by definition, binary16 into q16.16", n**3 / mine / 1e9, "GMAC/s", mine / base, "sgemms", 2000.0)
    yield from _others(rng)


def _avx2(name: str, n: int, work) -> Row:
    """The same on AVX2, in times of AVX-512."""
    before = _core.current_isa()

    def on(isa):
        def run():
            _core.use_isa(isa)
            work()

        return run

    try:
        narrow, wide = against(on("avx2"), on("avx512"), 5)
    finally:
        _core.use_isa(before)
    return Row(f"{name}, AVX2", n**3 / narrow / 1e9, "GMAC/s", narrow / wide, "times AVX-512", 3.0)


def _others(rng) -> Iterator[Row]:
    """A convolution under a unit against its own matrix product, unfolded before; a sum against NumPy's."""
    unit = sn.MadUnit("e6m9", operand="e5m2")
    x = sn.quantize(rng.standard_normal((8, 32, 30, 30), dtype=np.float32), "e5m2")
    w = sn.quantize(rng.standard_normal((64, 32, 3, 3), dtype=np.float32), "e5m2")
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
    a, b = np.ascontiguousarray(windows.reshape(-1, 288)), np.ascontiguousarray(w.reshape(64, 288).T)
    mine, base = against(lambda: sn.conv2d(x, w, unit, threads=1), lambda: sn.matmul(a, b, unit, threads=1), 5)
    macs = a.shape[0] * 288 * 64
    yield Row("conv2d e5m2 into e6m9, 8x32x30x30, 64 3x3", macs / mine / 1e9, "GMAC/s", mine / base, "its matmuls")
    values = sn.quantize(rng.standard_normal((2048, 2048), dtype=np.float32), "e6m9")
    for name, summing in (("MadUnit e6m9", unit), ("ExactDotUnit", sn.ExactDotUnit("e6m9", operand="e5m2"))):
        mine, base = against(lambda: sn.sum(values, summing, 0, threads=1), lambda: values.sum(0), 5)  # noqa: B023
        yield Row(f"sum of 2048 rows, {name}", values.size / mine / 1e9, "Gadd/s", mine / base, "numpy sums")
