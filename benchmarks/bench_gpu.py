"""How fast softnum's kernels run on this GPU: ``python -m benchmarks.bench_gpu``.

Beside each figure stand its goal, what the instructions allow, and baselines of the same run.
Bits are compared with the CPU's before anything is timed: of quantize all, of a product those of some rows. Every time
is the shortest of a few, each of enough calls that what Python does for a launch is hidden behind the kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import softnum as sn
from benchmarks.measure import commit
from softnum.kernels.recording.device import nvidia_driver
from softnum.runtime.atomic import write_atomic

__all__ = ["H200", "RECORDS", "Case", "Figure", "cases", "limit", "main"]

RECORDS = Path(__file__).with_name("records")  # figures of GPUs that are kept; `run` in a file is of run_gpu.sh

ROWS = 16  # of a product, that are compared with the CPU's
_SECONDS = 0.3  # that a measurement takes at least, on a GPU

# instructions of threads that a multiprocessor of an H100 starts in a cycle: all, those of the pipe for integers,
# logic, comparisons and choices, those of shared memory
H200 = (132, 1.98e9)  # multiprocessors and cycles a second of an H100 or H200 (SXM)
_LANES = {"issue": 128, "ALU": 64, "shared": 32}


@dataclass(frozen=True)
class Figure:
    """A line of the table.

    Parameters
    ----------
    name : str
    value : float
        In `unit`.
    unit : str
    goal, limit : float, optional
        In the same unit: what is wanted, and what the count of the inner loop's instructions allows on this GPU.
    against : dict
        How many times a baseline's speed it is.
    compared : int
        Elements whose bits were compared with the CPU's; `differ` of them differ.
    """

    name: str
    value: float
    unit: str
    goal: float | None = None
    limit: float | None = None
    against: dict[str, float] = field(default_factory=dict)
    compared: int = 0
    differ: int = 0


@dataclass(frozen=True)
class Case:
    """A product to time.

    Parameters
    ----------
    name, unit
    goal : float, optional
        TMAC/s on an H200.
    instructions : dict, optional
        A MAC's, in the inner loop for sm_90, by pipe (`softnum.kernels.check_device_code` shows the loops).
    large : bool
        With the largest value among the operands: kernels that count on sums that do not overflow may not be used.
    """

    name: str
    unit: object
    goal: float | None = None
    instructions: dict[str, float] | None = None
    large: bool = False


def own_format() -> sn.CustomFormat:
    """An 8-bit format of one's own: the values of e4m3fn, and some more."""
    values = np.unique(sn.decode(np.arange(256), "e4m3fn"))
    values = values[np.isfinite(values)].tolist()
    return sn.CustomFormat.from_table([*values, *(512.0 + 64 * i for i in range(256 - len(values)))], name="own8")


def cases() -> list[Case]:
    """The products that are timed; the first is the plain float32 product that the others are compared with."""
    own = own_format()
    rounded = sn.MadUnit("e6m9", operand="e5m2", product="e5m2")
    fused = sn.MadUnit("e6m9", operand="e5m2")
    stochastic = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12)
    odd = sn.MadUnit("e6m9", operand="e5m2", rounding="to_odd")
    return [
        Case(PLAIN, sn.MadUnit("binary32", operand="binary32"), None, {"issue": 1.6}),
        Case("e5m2, product e5m2 -> e6m9", rounded, 1.0, {"issue": 9.6, "ALU": 3.2}),
        Case("the same, where sums may overflow", rounded, 1.0, {"issue": 18.9, "ALU": 10.3}, large=True),
        Case("e5m2 -> e6m9, one rounding", fused, 2.0, {"issue": 4.5, "ALU": 1.2}),
        Case("one rounding, where sums may overflow", fused, 2.0, {"issue": 9.8, "ALU": 5.3}, large=True),
        Case("e5m2, product e5m2 -> e6m9, stochastic, r = 12", stochastic, 0.5, {"issue": 25.1, "ALU": 12.8}),
        Case("stochastic, where sums may overflow", stochastic, 0.5, {"issue": 31.1, "ALU": 14.8}, large=True),
        Case("e5m2 -> e6m9, chunks of 64", sn.MadUnit("e6m9", operand="e5m2", chunk=64)),
        Case("e5m2 -> e6m9, to odd", odd, None, {"issue": 23.1, "ALU": 17.5}),
        Case("q4.4 -> q8.8, saturating", sn.MadUnit("q8.8", operand="q4.4"), None, {"issue": 14.2, "ALU": 8.5}),
        Case("int8 -> int32", sn.unit("int8_int32"), None, {"issue": 1.6, "ALU": 1.1}),
        Case("nvidia_v100_fp16", sn.unit("nvidia_v100_fp16"), 1.0, {"issue": 10.5}),
        Case("nvidia_h100_fp16", sn.unit("nvidia_h100_fp16"), 1.0, {"issue": 7.7}),
        Case("8-bit format of one's own, tables", sn.MadUnit(own, operand=own, product=own), 0.3, {"shared": 5.5}),
    ]


PLAIN = "binary32, one rounding: a plain float32 product"
FLOAT32 = "PyTorch's float32 on the GPU"
PER_OUTPUT = "a thread an output, rounding by float bits"


@dataclass(frozen=True)
class Options:
    side: int
    elements: int
    steps: int


# ---- time ----------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Of one call, on the device: the shortest of some measurements, after a call that compiles."""
    from softnum.kernels.device.runtime import _cuda

    synchronise = _cuda.cuda.synchronize

    def taken(calls: int) -> float:
        synchronise()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        synchronise()
        return (time.perf_counter() - start) / calls

    if _cuda.SIMULATOR:
        return taken(1)
    work()
    once = taken(1)
    return min(taken(max(1, int(_SECONDS / repeats / once))) for _ in range(repeats))


def differing(got: np.ndarray, want: np.ndarray) -> int:
    """How many elements have other bits."""
    kind = f"u{want.dtype.itemsize}"
    if got.dtype != want.dtype or got.shape != want.shape:
        raise ValueError(f"{got.dtype} {got.shape} in place of {want.dtype} {want.shape}")
    return int(np.count_nonzero(np.ascontiguousarray(got).view(kind) != np.ascontiguousarray(want).view(kind)))


def limit(instructions: dict[str, float], multiprocessors: int, clock: float) -> float:
    """TMAC/s that a GPU can reach, from a MAC's instructions and its multiprocessors and cycles a second."""
    return multiprocessors * clock * min(_LANES[pipe] / count for pipe, count in instructions.items()) / 1e12


def limit_of(instructions: dict[str, float] | None) -> float | None:
    """That of this GPU."""
    from softnum.kernels.device.runtime import _cuda

    if instructions is None or _cuda.SIMULATOR:
        return None
    device = _cuda.cuda.get_current_device()
    return limit(instructions, device.MULTIPROCESSOR_COUNT, device.CLOCK_RATE * 1e3)


# ---- what is measured ----------------------------------------------------------------------------------------------


def quantize_figures(options: Options) -> Iterator[Figure]:
    """quantize against a copy of the same array on the device."""
    from softnum.kernels.device.runtime import _cuda

    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x = rng.standard_normal(options.elements, np.float32).astype(dtype)
        x[: x.size // 3] *= dtype(2.0**-15)  # where e5m2's values are subnormal
        given, out = _cuda.to_device(x), _cuda.empty(x.shape, dtype)
        copy = seconds(lambda: out.copy_to_device(given))  # noqa: B023
        name = np.dtype(dtype).name
        yield Figure(f"copy, {name}", 2 * x.nbytes / copy / 1e9, "GB/s")
        for rounding, goal in (("nearest_even", 0.85), ("stochastic", None)):
            work = lambda: sn.quantize(given, "e5m2", rounding=rounding, key=1, out=out)  # noqa: B023, E731
            taken = seconds(work)
            wrong = differing(_cuda.to_host(out), sn.quantize(x, "e5m2", rounding=rounding, key=1))
            yield Figure(f"quantize {name} -> e5m2, {rounding}", copy / taken, "of copy", goal,
                         compared=x.size, differ=wrong)  # fmt: skip
        taken = seconds(lambda: sn.quantize(given, "mxfp8_e4m3"))  # noqa: B023
        wrong = differing(_cuda.to_host(sn.quantize(given, "mxfp8_e4m3")), sn.quantize(x, "mxfp8_e4m3"))
        yield Figure(f"quantize {name} -> mxfp8_e4m3", copy / taken, "of copy", compared=x.size, differ=wrong)


def operands(unit, side: int, large: bool = False) -> list[np.ndarray]:
    """Seeded values of a unit's operands; large: the largest among them."""
    rng = np.random.default_rng(3)
    found = []
    for fmt in unit.operand:
        x = rng.standard_normal((side, side), dtype=np.float32)
        if getattr(fmt, "kind", "") == "fixed":
            x = x * np.float32(fmt.max / 3)
            x = x if fmt.signed else np.abs(x)
        found.append(sn.quantize(x, fmt))
        if large:
            found[-1][0, 0] = fmt.max
    return found


def gemm_figures(options: Options) -> Iterator[Figure]:
    """Products of square matrices, against a plain float32 one, and one as other emulators compute it."""
    side = options.side
    baselines = {}
    for case in cases():
        key = 1 if getattr(case.unit, "stochastic", False) else None
        value, compared, wrong = _product(case, side, key)
        against = {name: value / speed for name, speed in baselines.items()}
        yield Figure(f"GEMM {side}^3, {case.name}", value, "TMAC/s", case.goal, limit_of(case.instructions), against,
                     compared, wrong)  # fmt: skip
        if case.name == PLAIN:
            baselines[PLAIN] = value
            value, compared, wrong = _per_output(side)
            baselines[PER_OUTPUT] = value
            yield Figure(f"GEMM {side}^3, e5m2, product e5m2 -> e6m9; {PER_OUTPUT}", value, "TMAC/s", None, None,
                         {PLAIN: value / baselines[PLAIN]}, compared, wrong)  # fmt: skip


def _product(case: Case, side: int, key) -> tuple[float, int, int]:
    """(TMAC/s, elements compared, elements that differ)"""
    from softnum.kernels.device.runtime import _cuda

    unit = case.unit
    a, b = operands(unit, side, case.large)
    on_device = [_cuda.to_device(x) for x in (a, b)]
    out = sn.matmul(*on_device, unit, key=key)
    wrong = differing(_cuda.to_host(out)[:ROWS], sn.matmul(a[:ROWS], b, unit, key=key))
    taken = seconds(lambda: sn.matmul(*on_device, unit, key=key, out=out))
    return side**3 / taken / 1e12, min(ROWS, side) * side, wrong


def _per_output(side: int) -> tuple[float, int, int]:
    from benchmarks.gpu_baselines import per_output
    from softnum.kernels.device.runtime import _cuda

    unit = sn.MadUnit("e6m9", operand="e5m2", product="e5m2")
    a, b = operands(unit, side)
    given, out = [_cuda.to_device(x) for x in (a, b)], _cuda.empty((side, side), np.float32)
    formats = unit.product, unit.accumulator
    taken = seconds(lambda: per_output(*given, out, *formats))
    wrong = differing(_cuda.to_host(out)[:ROWS], sn.matmul(a[:ROWS], b, unit))
    return side**3 / taken / 1e12, min(ROWS, side) * side, wrong


def training_figures(options: Options) -> Iterator[Figure]:
    """Steps of training against the same on the CPU, all its threads."""
    from benchmarks.gpu_training import CASES, SMALL, timed
    from softnum.kernels.device.runtime import _cuda

    for case in SMALL if _cuda.SIMULATOR else CASES:
        for design, cpu, gpu, rows, differ in timed(case, options.steps):
            yield Figure(f"training step, {case.name}, batch {case.batch}, {design}", 1 / gpu, "steps/s",
                         against={"the CPU": cpu / gpu}, compared=rows, differ=differ)  # fmt: skip


def torch_figures(options: Options) -> Iterator[Figure]:
    """Steps of training PyTorch's models on the GPU, against the same on the CPU and PyTorch's own float32."""
    from benchmarks.gpu_training import torch_timed
    from softnum.kernels.device.runtime import _cuda

    try:
        import torch
    except ImportError:
        return
    if _cuda.SIMULATOR or not torch.cuda.is_available():
        return
    for name, cpu, gpu, theirs, losses, differ in torch_timed(options.steps):
        yield Figure(f"PyTorch step, {name}", 1 / gpu, "steps/s", against={"the CPU": cpu / gpu, FLOAT32: theirs / gpu},
                     compared=losses, differ=differ)  # fmt: skip


SECTIONS = {"quantize": quantize_figures, "gemm": gemm_figures, "training": training_figures, "torch": torch_figures}


# ---- the report ----------------------------------------------------------------------------------------------------


def machine() -> dict:
    """What the figures were measured on."""
    from importlib.metadata import version

    from softnum.kernels.device.runtime import _cuda

    known = {
        "softnum": sn.__version__, "commit": commit(), "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(), **{name: version(name) for name in ("numpy", "numba", "numba-cuda")},
    }  # fmt: skip
    if _cuda.SIMULATOR:
        return {**known, "device": "Numba's simulator: its times mean nothing"}
    from cuda.bindings import nvrtc

    device = _cuda.cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    return {
        **known, "device": name, "capability": ".".join(map(str, device.compute_capability)),
        "multiprocessors": device.MULTIPROCESSOR_COUNT, "clock_MHz": device.CLOCK_RATE / 1e3,
        "driver": nvidia_driver(), "CUDA": ".".join(map(str, nvrtc.nvrtcVersion()[1:])),
        "host_cores": len(os.sched_getaffinity(0)),
    }  # fmt: skip


def table(about: dict, figures: list[Figure]) -> Table:
    """The figures for people."""
    names = list(dict.fromkeys(name for figure in figures for name in figure.against))
    said = Table(title=", ".join(f"{key} {value}" for key, value in about.items()))
    for column in ("work", "measured", "", "goal", "met", "predicted limit", *(f"x {name}" for name in names), "bits"):
        said.add_column(column, justify="left" if column in ("work", "", "bits") else "right")
    for f in figures:
        met = "" if f.goal is None else "yes" if f.value >= f.goal else "NO"
        bits = "" if not f.compared else f"{f.differ} of {f.compared} DIFFER" if f.differ else f"equal: {f.compared}"
        said.add_row(
            f.name, f"{f.value:.3g}", f.unit, *("" if x is None else f"{x:.3g}" for x in (f.goal,)), met,
            "" if f.limit is None else f"{f.limit:.3g}",
            *(f"{f.against[name]:.3g}" if name in f.against else "" for name in names), bits,
        )  # fmt: skip
    return said


def unusable(options: Options) -> str | None:
    """Why nothing can be measured here; None if something can."""
    try:
        from softnum.kernels.device.runtime import _cuda
    except ImportError as error:
        return str(error)
    if _cuda.SIMULATOR:
        if options.side > 32 or options.elements > 10000:
            return "NUMBA_ENABLE_CUDASIM is set: the simulator takes --side 32 --elements 10000 at most, to no purpose"
        return None
    return None if _cuda.cuda.is_available() else "there is no GPU that Numba can use"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table and write the JSON file; 0, or 1 if bits differ from the CPU's, or 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=4096, help="of the square matrices")
    # so many that the host, which takes a third of a millisecond for a launch, does not hold the GPU up
    parser.add_argument("--elements", type=int, default=3 * 10**8, help="of the arrays that are quantized")
    parser.add_argument("--steps", type=int, default=4, help="of training that are timed")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="sections to run (default: all)")
    parser.add_argument("--out", type=Path, default=Path("build/bench_gpu.json"))
    given = parser.parse_args(arguments)
    options = Options(given.side, given.elements, given.steps)
    if reason := unusable(options):
        print(reason, file=sys.stderr)
        return 2
    figures, about = [], machine()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for name in given.only or SECTIONS:
        for figure in SECTIONS[name](options):
            figures.append(figure)
            print(f"{figure.name}: {figure.value:.3g} {figure.unit}", file=sys.stderr, flush=True)
            # after each: what was measured before an interruption is kept
            write_atomic(
                given.out, json.dumps({"about": about, "figures": [asdict(f) for f in figures]}, indent=1) + "\n"
            )
    Console(width=None if sys.stdout.isatty() else 240).print(table(about, figures))
    return int(any(figure.differ for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
