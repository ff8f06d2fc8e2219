"""What a call costs on four elements, against NumPy's ``x + x`` of four: hardly anything of it is arithmetic."""

from __future__ import annotations

import itertools
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, one_thread

__all__ = ["CALLS", "rows", "times"]

_LOOPS = 200  # calls between two looks at the clock


def _calls() -> dict[str, tuple[Callable[[], object], float]]:
    x, fmt = np.array([1.0, 2.0, 3.0, -4.5]), sn.format("e5m2")
    array, codes = sn.array(x, fmt), sn.encode(x, fmt)
    matrix, unit = x.astype(np.float32).reshape(2, 2), sn.MadUnit("e6m9", operand="e6m9")
    return {
        "quantize": (lambda: sn.quantize(x, fmt), 8.0),
        "encode": (lambda: sn.encode(x, fmt), 8.0),
        "decode": (lambda: sn.decode(codes, fmt), 8.0),
        "Array + Array": (lambda: array + array, 10.0),
        "add of codes": (lambda: sn.add(codes, codes, fmt), 10.0),
        "matmul of 2x2": (lambda: sn.matmul(matrix, matrix, unit), 25.0),
    }


#: name -> the call, and how many of NumPy's additions it may take
CALLS = _calls()


def times(repeats: int = 25) -> dict[str, tuple[float, float]]:
    """name -> seconds of the call and of NumPy's addition, the least of several, all in turn."""
    x = np.array([1.0, 2.0, 3.0, -4.5])
    works = {"": lambda: x + x, **{name: call for name, (call, _) in CALLS.items()}}
    for work in works.values():
        work()
    least = dict.fromkeys(works, float("inf"))
    for _, (name, work) in itertools.product(range(repeats), works.items()):
        least[name] = min(least[name], timeit.timeit(work, number=_LOOPS) / _LOOPS)
    return {name: (least[name], least[""]) for name in CALLS}


def rows() -> Iterator[Row]:
    """The calls, an iteration of training, which is made of them, and the import before the first."""
    for name, (mine, numpy) in times().items():
        yield Row(f"call: {name}", mine * 1e6, "us", mine / numpy, "x + x", CALLS[name][1])
    yield _iteration()
    package, numpy = against(lambda: _import("softnum"), lambda: _import("numpy"), 7)
    empty = against(lambda: _import("sys"), lambda: None, 7)[0]
    ratio = (package - numpy) / (numpy - empty)
    yield Row("import softnum, beyond numpy", (package - numpy) * 1e3, "ms", ratio, "import numpy")


def _iteration() -> Row:
    try:
        from softnum.train import Settings, load_design
        from softnum.train.runs.loop import Run

        work = Run(Settings("mlp"), load_design("c-wang-fp8"), 1)
    except (ImportError, ValueError) as error:
        return Row(f"training iteration: left out, {str(error).partition(':')[0]}", 0.0, "")
    plan = itertools.chain.from_iterable(work.plan(epoch) for epoch in itertools.count(1))
    x = np.ones((64, 128), np.float32)
    with one_thread():
        mine, baseline = against(lambda: work.train(*next(plan)), lambda: x + x, 50, perf_counter)
    name = "training iteration, default MLP, batch 32, c-wang-fp8"
    return Row(name, mine * 1e3, "ms", mine / baseline, "x + x of (64, 128)")


def _import(package: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {package}"], check=True)
