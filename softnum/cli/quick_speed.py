"""What `softnum doctor` measures: a few works on one thread, with each instruction set, as ratios to NumPy's own.

As a program it prints the measurements as JSON: `measure` runs it, for a library of BLAS takes its number of threads
from the environment when it is loaded, and threads that wait would count as work.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

__all__ = ["measure"]

_ELEMENTS = 1 << 18
_ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "SOFTNUM_THREADS",
)
_SIZE = 256  # of the matrices' three dimensions
_REPEATS = 3


def measure() -> list[dict]:
    """Measure; a row for each work: ``work``, ``against``, and ``times``, instruction set -> seconds over the
    baseline's (below 1: faster than it). ``same_bits``: whether all instruction sets gave the same result.

    Times are of the processor, the fastest of three, so that other programs do not count.

    Raises
    ------
    OSError
        If the measuring process fails; the message is its last line.
    """
    command = [sys.executable, "-m", "softnum.cli.quick_speed"]
    done = subprocess.run(
        command, env=os.environ | dict.fromkeys(_ONE_THREAD, "1"), capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise OSError(f"the speed cannot be measured: {said[-1]}; leave it out with --no-speed")
    return json.loads(done.stdout)


def _measured() -> list[dict]:
    """The rows, in this process."""
    import numpy as np

    import softnum as sn
    from softnum.runtime import _core

    rng = np.random.Generator(np.random.Philox(1))
    x = rng.standard_normal(_ELEMENTS, dtype=np.float32)
    a, b = (rng.standard_normal((_SIZE, _SIZE), dtype=np.float32) for _ in range(2))
    codes = sn.encode(x, "binary32")
    floats = {fmt: (sn.quantize(a, fmt), sn.quantize(b, fmt)) for fmt in ("e5m2", "bfloat16", "e4m3fn")}

    def product(fmt: str, unit) -> Callable:
        return lambda: sn.matmul(*floats[fmt], unit, threads=1)

    kept = np.empty_like(x)

    def copied():
        np.copyto(kept, x)

    def blas():
        return a @ b

    copying, sgemm = "copying a float32 array", "NumPy's sgemm"
    rows = [
        ("quantize to e4m3fn", copying, copied, lambda: sn.quantize(x, "e4m3fn", threads=1)),
        ("exp in binary32", copying, copied, lambda: sn.exp(codes, "binary32")),
        ("products of e5m2, sums in e6m9", sgemm, blas, product("e5m2", sn.MadUnit("e6m9", operand="e5m2"))),
        ("products of bfloat16, sums in binary32", sgemm, blas,
         product("bfloat16", sn.MadUnit("binary32", operand="bfloat16"))),
        ("tensor core, nvidia_h100_e4m3", sgemm, blas, product("e4m3fn", sn.unit("nvidia_h100_e4m3"))),
    ]  # fmt: skip
    before, found = _core.current_isa(), []
    try:
        for work, against, baseline, call in rows:
            unit, times, results = _fastest(baseline)[0], {}, []
            for isa in _core.available_isas():
                _core.use_isa(isa)
                seconds, result = _fastest(call)
                times[isa] = round(seconds / unit, 2)
                results.append(np.asarray(result).tobytes())
            same = all(result == results[0] for result in results)
            found.append({"work": work, "against": against, "times": times, "same_bits": same})
    finally:
        _core.use_isa(before)
    return found


def _fastest(call: Callable) -> tuple[float, object]:
    """Seconds of a call, and what it returns."""
    result, best = call(), float("inf")
    for _ in range(_REPEATS):
        begun = time.process_time()
        result = call()
        best = min(best, time.process_time() - begun)
    return max(best, 1e-9), result


if __name__ == "__main__":
    print(json.dumps(_measured()))
