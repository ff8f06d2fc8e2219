"""Compile and link the kernels to machine code for real chips, without a GPU: ``python -m softnum.kernels.link``.

It needs NVVM, NVRTC and nvJitLink (``pip install 'softnum[cuda]'``), as numba-cuda does on a GPU, but no driver. The C
functions must be inlined into the kernels: a call left, or a floating-point instruction, is an error.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from types import SimpleNamespace

from softnum.environment import environment
from softnum.kernels.check import ARCHITECTURES, float_instructions
from softnum.kernels.device import _cuda, gemm_definition
from softnum.kernels.device.problem import operand_kernel
from softnum.kernels.device.quantize import FROM_KEY, NO_WORDS, quantize_kernel
from softnum.names import format

__all__ = ["link", "main"]


def _kernels():
    """(name, kernel, types of its arguments) of each kind."""
    from numba import types

    def array(kind, dimensions):
        return types.Array(kind, dimensions, "C")

    u8, u32, i64 = types.uint8, types.uint32, types.int64
    fmt = format("e5m2")
    for rounding, words in (("nearest_even", NO_WORDS), ("stochastic", FROM_KEY)):
        kernel = quantize_kernel(fmt, environment(fmt, rounding, None, 16), "float32", words, False, True)
        yield (
            f"quantize {fmt} {rounding}",
            kernel,
            (array(u32, 2), array(u32, 2), array(u32, 2), u32, u32, array(u32, 1)),
        )
    yield f"operand {fmt}", operand_kernel(fmt, "float32"), (array(u32, 1), array(u8, 1), array(i64, 1))
    yield from gemm_definition.examples()


@contextmanager
def _as_if_there(chip: tuple[int, int]):
    """Functions of the device in Python are compiled for the current GPU: here, for one that need not be there."""
    from numba.cuda import dispatcher

    real = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=chip)
    try:
        yield
    finally:
        dispatcher.get_current_device = real


def link(kernel, arguments, architecture: str) -> tuple[bytes, str]:
    """One kernel's machine code and its PTX after linking.

    Parameters
    ----------
    kernel : a ``cuda.jit`` kernel, not yet launched
    arguments : tuple of Numba types
    architecture : str
        For example "sm_90".

    Returns
    -------
    (bytes, str)
    """
    from cuda.core import Linker, LinkerOptions, ObjectCode
    from numba import types

    digits = architecture.removeprefix("sm_")
    chip = (int(digits[:-1]), int(digits[-1]))
    with _as_if_there(chip):
        parts, _ = _cuda.cuda.compile_all(
            kernel.py_func, types.void(*arguments), cc=chip, device=False, abi="numba", output="ltoir",
            launch_bounds=kernel.targetoptions.get("launch_bounds"),
        )  # fmt: skip
    objects = [ObjectCode.from_ltoir(part if isinstance(part, bytes) else part.code) for part in parts]
    machine = Linker(*objects, options=LinkerOptions(arch=architecture, link_time_optimization=True)).link("cubin")
    options = LinkerOptions(arch=architecture, link_time_optimization=True, ptx=True)
    return bytes(machine.code), Linker(*objects, options=options).link("ptx").code.decode().rstrip("\0")


def main(architectures=ARCHITECTURES) -> int:
    """Link everything and print one line for each; 0 if all is well, 1 if not, 2 if a library is missing."""
    if _cuda.SIMULATOR:
        print("the simulator (NUMBA_ENABLE_CUDASIM) compiles nothing: unset it", file=sys.stderr)
        return 2
    from cuda import pathfinder

    for library in ("nvvm", "nvrtc", "nvJitLink"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            print(f"{library} is not installed: pip install 'softnum[cuda]'", file=sys.stderr)
            return 2
    bad = 0
    for name, kernel, arguments in _kernels():
        for architecture in architectures:
            machine, ptx = link(kernel, arguments, architecture)
            calls, floats = len(re.findall(r"^\s*call", ptx, re.MULTILINE)), float_instructions(ptx)
            good = not calls and not floats
            bad += not good
            print(
                f"{'ok' if good else 'BAD'}: {name} for {architecture}: {len(machine)} bytes, "
                f"{calls} calls, {len(floats)} floating-point instructions"
            )
    return int(bad != 0)


if __name__ == "__main__":
    sys.exit(main())
