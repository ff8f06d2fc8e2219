"""How fast the kernels run on this GPU: ``python -m softnum.kernels.figures``.

Every figure stands beside its yardstick, a copy of the same bytes or the CPU's GEMM, and its bits are compared first.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import softnum as sn
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda

__all__ = ["main", "seconds"]

_REPEATS = 5


def seconds(work) -> float:
    """The shortest of some runs of `work` on the device, in seconds, after one that compiles."""
    work()
    best = float("inf")
    for _ in range(_REPEATS):
        start, stop = cuda.event(), cuda.event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        best = min(best, cuda.event_elapsed_time(start, stop) / 1000)
    return best


def _same(got, want) -> str:
    same = np.array_equal(got.copy_to_host().view(f"u{want.itemsize}"), want.view(f"u{want.itemsize}"))
    return "bits equal the CPU's" if same else "BITS DIFFER FROM THE CPU'S"


def main(elements: int = 10_000_000, side: int = 512) -> int:
    """Print the figures; 0, or 1 if bits differ from the CPU's, or 2 without a GPU."""
    if _cuda.SIMULATOR or not cuda.is_available():
        print("no GPU that Numba can use (or NUMBA_ENABLE_CUDASIM is set)", file=sys.stderr)
        return 2
    device, lines = cuda.get_current_device(), []
    print(f"{getattr(device.name, 'decode', lambda: device.name)()}, compute capability {device.compute_capability}")

    x = np.random.default_rng(0).standard_normal(elements).astype(np.float32)
    d, out = cuda.to_device(x), _cuda.empty(x.shape, np.float32)
    copy = seconds(lambda: out.copy_to_device(d))
    for rounding in ("nearest_even", "stochastic"):
        options = {"rounding": rounding, "key": 1}
        taken = seconds(lambda options=options: sn.quantize(d, "e5m2", out=out, **options))
        lines.append(
            f"quantize float32 -> e5m2, {rounding}, {elements:.0e} elements: {elements / taken / 1e9:.1f} G/s, "
            f"{taken / copy:.2f} x copy; {_same(out, sn.quantize(x, 'e5m2', **options))}"
        )
        print(lines[-1], flush=True)

    a, b = (sn.quantize(x[i * side**2 : (i + 1) * side**2].reshape(side, side), "e5m2") for i in (0, 1))
    da, db, product = cuda.to_device(a), cuda.to_device(b), _cuda.empty((side, side), np.float32)
    for unit in (
        sn.MadUnit("e6m9", operand="e5m2"),
        sn.MadUnit("e6m9", operand="e5m2", product="e5m2"),
        sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12),
    ):
        key = 1 if unit.stochastic else None
        taken = seconds(lambda unit=unit, key=key: sn.matmul(da, db, unit, key=key, out=product))
        begin = time.perf_counter()
        want = sn.matmul(a, b, unit, key=key)
        cpu = time.perf_counter() - begin
        lines.append(
            f"matmul {side}^3, {unit}: {side**3 / taken / 1e9:.2f} GMAC/s, {cpu / taken:.1f} x the CPU (all threads); "
            f"{_same(product, want)}"
        )
        print(lines[-1], flush=True)
    return int(any("DIFFER" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
