"""Matrix products under units that are users' functions, on one thread, and how long the first one takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import numpy as np

import softnum as sn
from benchmarks.measure import Row, best
from softnum import kernels

_LEAST = 0.5  # GMAC/s of a step in Python that rounds through softnum
_LEAST_BY_TABLE = 0.3  # GMAC/s
_MOST_SECONDS = 3.0  # of the first product, Numba's import and compilation included

_e5m2, _e6m9 = kernels.scalar("e5m2"), kernels.scalar("e6m9")
_codes = kernels.scalar("e5m2", carrier="codes")


def _fused(acc, a, b):
    return _e6m9.fma(a, b, acc)


def _rounded(acc, a, b):
    return _e6m9.add(acc, _e5m2.multiply(a, b))


def _product(a, b):
    return _e5m2.multiply(a, b)


def _on_codes(acc, a, b):
    return _codes.add(acc, _codes.multiply(a, b))


_C = "uint8_t mad(uint8_t a, uint8_t b) { return a & b; }"
_C_STEP = "float mad(float acc, float a, float b) { float p = a * b; return acc + p; }"

_FIRST = """
import time
start = time.perf_counter()
import numpy as np
import softnum as sn
from softnum import kernels
e6m9 = kernels.scalar("e6m9")
def mad(acc, a, b):
    return e6m9.fma(a, b, acc)
x = np.ones((2, 2), np.float32)
unit = sn.CustomMadUnit(mad, operand="e5m2", accumulator="e6m9")
start = time.perf_counter()
sn.matmul(x, x, unit)
print(time.perf_counter() - start)
"""


def _first_seconds(cache: str) -> float:
    run = subprocess.run(
        [sys.executable, "-c", _FIRST], env={**os.environ, "SOFTNUM_CACHE": cache}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return float(run.stdout)


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread; seconds of the first product without and with compiled code on the disk."""
    rng = np.random.Generator(np.random.Philox(5))
    a, b = (sn.quantize(rng.standard_normal((n, n), dtype=np.float32), "e5m2") for _ in range(2))
    e6m9 = {"operand": "e5m2", "accumulator": "e6m9"}
    cases = (
        ("Python, one rounding in e6m9", sn.CustomMadUnit(_fused, **e6m9), _LEAST),
        ("Python, product in e5m2, sum in e6m9", sn.CustomMadUnit(_rounded, **e6m9), _LEAST),
        ("Python, a product in e5m2 and the unit's own sum", sn.CustomMadUnit(_product, **e6m9), _LEAST),
        ("Python, on codes of e5m2", sn.CustomMadUnit(_on_codes, operand="e5m2", carrier="codes"), _LEAST_BY_TABLE),
        ("C, a product of 8-bit codes", sn.CustomMadUnit.from_c(_C, operand="e5m2"), _LEAST_BY_TABLE),
        ("C, a step on floats", sn.CustomMadUnit.from_c(_C_STEP, operand="e5m2", accumulator="binary32"), None),
    )
    for name, unit, least in cases:
        speed = n**3 / best(lambda: sn.matmul(a, b, unit, threads=1), 5) / 1e9  # noqa: B023
        yield Row(f"GEMM {n}^3, {name}", speed, "GMAC/s", speed, "GMAC/s", None if least is None else -least)
    with tempfile.TemporaryDirectory() as cache:
        for name, limit in (("compiled", _MOST_SECONDS), ("from the disk", _MOST_SECONDS)):
            seconds = _first_seconds(cache)
            yield Row(f"first product, {name}", seconds, "s", seconds, "s", limit)
