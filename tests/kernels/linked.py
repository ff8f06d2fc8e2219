"""Run by test_device_code.py in a process where Numba compiles: prints what `examine` finds, as JSON."""

import contextlib
import dataclasses
import io
import json
import math
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from numba import types

import softnum as sn
from softnum.kernels import check_device_code, scalar
from softnum.kernels.check import all_kernels as check
from softnum.kernels.check import link
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.source import Entry, Library

MAD = sn.MadUnit("e6m9", operand="e5m2", lanes=2)  # python -m softnum.kernels.check linked:MAD
NINE = sn.CustomFormat.from_table([i / 16 - 16 for i in range(512)], name="nine")
WIDE = sn.MadUnit(NINE, operand="e2m1fn")
E6M9 = scalar("e6m9")


def _of_a_list(acc, a, b):
    pair = [a, b]  # Numba compiles it for the host alone
    return E6M9.fma(pair[0], pair[1], acc)


LISTS = sn.CustomMadUnit(_of_a_list, operand="e5m2", accumulator="e6m9")

THREE = (("float32", "x"), ("float32", "y"), ("float32", "z"))
IN_C = Library(
    "static __device__ __noinline__ float _far(float x) { return x > 1.f ? 1.f : x; }\n",
    (
        Entry("plain", "float32", THREE, "return x * y + z;"),
        Entry("named", "float32", THREE, "return sn_add32(sn_multiply32(x, y), z);"),
        Entry("fused", "float32", THREE, "return sn_fma32(x, y, z);"),
        Entry("far", "float32", THREE, "return _far(x) + 0.f * y + 0.f * z;"),
    ),
    "softnum/word/machine.h",
)


@cuda.jit(device=True)
def _in_python(x, y, z):
    return x * y + z


def kernels():
    """Kernels of one line, with and without what is looked for."""
    c = _cuda.bind(IN_C)

    def kernel(f):
        @cuda.jit
        def run(x):
            x[0] = f(x[1], x[2], x[3])

        return run

    yield "contracted in C", kernel(c.plain)
    yield "named in C", kernel(c.named)
    yield "one rounding in C", kernel(c.fused)
    yield "a call", kernel(c.far)
    yield "contracted in Python", kernel(_in_python)

    @cuda.jit
    def alone(x):
        x[0] = np.float32(x[1] * x[2])

    yield "a product alone", alone

    @cuda.jit
    def approximate(x):
        x[0] = math.exp(x[1])

    yield "exp", approximate

    @cuda.jit
    def local(x):
        kept = cuda.local.array(64, types.float32)
        for i in range(64):
            kept[i] = x[i]
        for i in range(64):
            x[i] = kept[int(x[64 + i])]

    yield "an array", local

    @cuda.jit
    def shared(x):
        tile = cuda.shared.array(128, types.float32)
        tile[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        x[0] = tile[127 - cuda.threadIdx.x]

    yield "shared", shared


def main() -> None:
    if missing := link.missing_library():
        print(missing, file=sys.stderr)
        sys.exit(2)
    found = {}
    for name, kernel in kernels():
        code = link.examine(name, kernel, (types.Array(types.float32, 1, "C"),), "sm_90")
        found[name] = {
            **dataclasses.asdict(code),
            "problems": code.problems,
            "faults": check.faults(code, True),
            "text": str(code),
        }
    absent = cuda.declare_device("absent", "float32(float32)", abi="c")

    @cuda.jit
    def unresolved(x):
        x[0] = absent(x[1])

    try:
        link.examine("unresolved", unresolved, (types.Array(types.float32, 1, "C"),), "sm_90")
    except ValueError as error:
        found["unresolved"] = str(error)
    for key, asked in (("unit", MAD), ("format", sn.format("e5m2")), ("preset", "nvidia_h100_fp16")):
        try:
            codes = check_device_code(asked, chips=["sm_75"])
        except TypeError as error:
            found[key] = str(error)
        else:
            found[key] = [(code.chip, code.problems, code.registers > 0) for code in codes]
    for chip in ("h100", "sm_30"):
        try:
            check_device_code(MAD, chips=chip)
        except ValueError as error:
            found[chip] = str(error)
    found["by name"] = {name: run(name) for name in ("linked:MAD", "linked:absent", "no_such_module:unit", "nvidia_h1")}
    found["without a kernel"] = [run(f"linked:{name}") for name in ("WIDE", "main", "LISTS")]
    *_, (text, kernel, kinds, _, calls) = check.examples("tile.operators")
    parts = link._parts(kernel, kinds, "sm_90")
    found["functions"] = text, calls, len(link._linked(parts, "-arch=sm_90")[0])
    with tempfile.TemporaryDirectory() as folder:
        page = (Path(__file__).resolve().parents[2] / "docs" / "gpu.md").read_text(encoding="utf-8")
        file = re.search(r":caption: my_units\.py\n\n(.*?)```", page, re.DOTALL)
        (Path(folder) / "my_units.py").write_text(file[1], encoding="utf-8")
        sys.path.append(folder)
        found["of the page"] = [run(f"my_units:{name}") for name in ("good", "bad")]
    print(json.dumps(found))


def run(name: str) -> tuple[int, str]:
    """What ``python -m softnum.kernels.check`` returns and says of one unit."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = check.main(["--chip", "sm_80", name])
    return code, said.getvalue()


if __name__ == "__main__":
    main()
