"""Matrix products under a unit against NumPy's sgemm, on one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, best
from softnum.mac.products.engines import fast_of
from softnum.mac.products.mad import narrowed
from softnum.runtime import _core

GEMMS = {
    "product e5m2, accumulate e6m9": sn.MadUnit("e6m9", operand="e5m2", product="e5m2"),
    "exact product, accumulate e6m9": sn.MadUnit("e6m9", operand="e5m2"),
    "bfloat16 into bfloat16, fused": sn.MadUnit("bfloat16", operand="bfloat16"),
    "binary16 into binary16, fused": sn.MadUnit("binary16", operand="binary16"),
    "Wang 2018: exact product, e6m9, chunk 64": sn.MadUnit("e6m9", operand="e5m2", chunk=64),
    "stochastic product and sum, e6m9, r = 12": sn.MadUnit(
        "e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12
    ),
    "stochastic product and sum, e6m9, r = 32": sn.MadUnit(
        "e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=32
    ),
    **{
        f"stochastic sum, e6m9, r = {r}, {source}": sn.MadUnit(
            "e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=r, random=source
        )
        for source, r in (
            ("philox4x32-10", 12),
            ("philox4x32-7", 12),
            ("philox4x32-7/2", 12),
            ("philox4x32-7/4", 8),
            ("lfsr32", 12),
            ("given", 12),
        )
    },
    "int8 into int32, wrap": sn.MadUnit("q32.0", operand="q8.0", overflow="wrap"),
    "int8 into int32, saturate": sn.MadUnit("q32.0", operand="q8.0"),
    "q4.4 into q8.6, saturate": sn.MadUnit("q8.6", operand="q4.4"),
    "exact product, accumulate binary32": sn.MadUnit("binary32", operand="e5m2"),
    "binary32, fused": sn.MadUnit("binary32", operand="binary32"),
    "exact product, e6m9, rounding up": sn.MadUnit("e6m9", operand="e5m2", rounding="up"),
    "product e5m2, e6m9, toward zero": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="toward_zero"),
    "definition: e5m2 to e15m48": sn.MadUnit("e15m48", operand="e5m2"),
    "scalar definition: binary64, ties away": sn.MadUnit("binary64", operand="binary32", rounding="nearest_away"),
}


#: Sources of random bits: how many times as fast as by the default one, the same sum is to be.
_SOURCES = {"philox4x32-7/2": 1.6, "lfsr32": 2.2, "given": 2.2}
_FUSED = ("bfloat16 into bfloat16, fused", "binary16 into binary16, fused")
_NARROWER = 3.0  # AVX2 against AVX-512
_POSITS = 3.0  # GMAC/s

#: The goals, in sgemms.
LIMITS = {
    "product e5m2, accumulate e6m9": 8.0,
    "exact product, accumulate e6m9": 5.0,
    "bfloat16 into bfloat16, fused": 10.0,
    "binary16 into binary16, fused": 10.0,
    "Wang 2018: exact product, e6m9, chunk 64": 6.0,
    "stochastic product and sum, e6m9, r = 12": 40.0,
    "stochastic product and sum, e6m9, r = 32": 150.0,
    "int8 into int32, wrap": 2.0,
    "int8 into int32, saturate": 2.0,
    "q4.4 into q8.6, saturate": 10.0,
    "exact product, accumulate binary32": 3.0,
    "exact product, e6m9, rounding up": 10.0,
    "product e5m2, e6m9, toward zero": 18.0,
    "definition: e5m2 to e15m48": 60.0,
}


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread against sgemm."""
    rng = np.random.Generator(np.random.Philox(2))
    plain = [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]
    blas = lambda: plain[0] @ plain[1]  # noqa: E731
    sgemm = best(blas)
    yield Row(f"numpy sgemm {n}^3", n**3 / sgemm / 1e9, "GMAC/s", 1.0, "sgemms")
    for name, unit in GEMMS.items():
        a, b = (sn.quantize(x, unit.operand[0]) for x in plain)
        key = 1 if unit.stochastic else None
        slow = fast_of(unit) is None and narrowed(unit) is None
        if slow:
            a = a[:16]
        words = {"key": key}
        if unit.random == "given":  # 16 bits a step, which all rows share: else they are read from memory
            words = {"random_bits": rng.integers(0, 1 << 16, (1, n, n), np.uint16)}
        work = lambda: sn.matmul(a, b, unit, **words, threads=1)  # noqa: B023, E731
        mine, beside = against(work, blas, 1 if slow else 5, time.process_time)
        mine, sgemm = mine * (n / len(a)), min(sgemm, beside)
        yield Row(f"GEMM {n}^3, {name}", n**3 / mine / 1e9, "GMAC/s", mine / sgemm, "sgemms", LIMITS.get(name))
        if unit.random in _SOURCES and isinstance(unit, sn.MadUnit):
            usual = replace(unit, random="philox4x32-10")
            default = lambda: sn.matmul(a, b, usual, key=1, threads=1)  # noqa: B023, E731
            mine, beside = against(work, default, 5, time.process_time)
            title, speed = f"GEMM {n}^3, {name}, beside the default", n**3 / mine / 1e9
            yield Row(title, speed, "GMAC/s", beside / mine, "times as fast", -_SOURCES[unit.random])
    yield from _narrower(n, plain)
    a, b = (sn.encode(x, "posit8") for x in plain)
    unit = sn.MadUnit("posit8", operand="posit8")
    speed = n**3 / best(lambda: sn.matmul(sn.Array(a, "posit8"), sn.Array(b, "posit8"), unit, threads=1), 3) / 1e9
    yield Row(f"GEMM {n}^3, posit8", speed, "GMAC/s", speed, "GMAC/s", -_POSITS)


def _narrower(n: int, plain: list[np.ndarray]) -> Iterator[Row]:
    """AVX2 beside AVX-512."""
    if not {"avx2", "avx512"} <= set(_core.available_isas()):
        return
    before = _core.current_isa()
    for name in _FUSED:
        unit, times = GEMMS[name], {}
        a, b = (sn.quantize(x, unit.operand[0]) for x in plain)
        for isa in ("avx512", "avx2"):
            _core.use_isa(isa)
            times[isa] = best(lambda: sn.matmul(a, b, unit, threads=1), 5)  # noqa: B023
        _core.use_isa(before)
        speed = n**3 / times["avx2"] / 1e9
        yield Row(f"GEMM {n}^3, {name}, AVX2", speed, "GMAC/s", times["avx2"] / times["avx512"], "AVX-512s", _NARROWER)
