"""Compile the core and the kernels' entry functions as device code, without a GPU: ``python -m softnum.kernels.check``.

NVRTC comes from PyPI (``nvidia-cuda-nvrtc``) and is called with the options that numba-cuda passes. Warnings count as
errors, and so does a floating-point instruction in the result: the core is integer arithmetic, in which nothing can be
contracted to a fused multiply-add or flushed to zero.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import re
import sys
from pathlib import Path

from softnum.environment import environment
from softnum.kernels.device.entries import operand_library, quantize_library, unit_library
from softnum.kernels.device.source import Library, core_text
from softnum.names import format
from softnum.units import MadUnit

__all__ = ["ARCHITECTURES", "compile_device", "libraries", "main"]

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
_FLOAT = re.compile(r"^\s*(?:@%?!?p\d+\s+)?([a-z][a-z0-9.]*\.(?:f16|bf16|f32|f64)[a-z0-9.x]*)\b", re.MULTILINE)


def libraries() -> dict[str, Library]:
    """The sources that are checked: each kind of kernel, in formats that take different ways through the core."""
    found = {}
    for name, carrier in (("e5m2", "float32"), ("e4m3fn", "float32"), ("q4.4", "float32"), ("binary32", "float64")):
        fmt = format(name)
        for rounding in ("nearest_even", "stochastic"):
            env = environment(fmt, rounding, None, 16)
            found[f"quantize {name} {rounding}"] = quantize_library(fmt, env, carrier)
        found[f"operand {name}"] = operand_library(fmt, carrier)
    for unit in (
        MadUnit("e6m9", operand="e5m2", chunk=64),
        MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12),
        MadUnit("q8.8", operand="q4.4", rounding="stochastic", stochastic_bits=8),
        MadUnit("binary32", operand=("e4m3fn", "bfloat16"), product="binary16", chunk=16, outer_accumulator="binary64"),
    ):
        found[f"unit {unit}"] = unit_library(unit, "float64" if unit.outer == format("binary64") else "float32")
    return found


def _nvrtc() -> ctypes.CDLL:
    """The library of the nvidia-cuda-nvrtc package, or of the system."""
    for package in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if re.fullmatch(r"libnvrtc\.so\.\d+", file.name) or re.fullmatch(r"nvrtc64_\d+_\d+\.dll", file.name):
                return ctypes.CDLL(str(file.locate()))
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise FileNotFoundError("NVRTC is not installed: pip install nvidia-cuda-nvrtc")


class _Program:
    """One NVRTC program."""

    def __init__(self, nvrtc: ctypes.CDLL, source: str, name: str) -> None:
        self._nvrtc = nvrtc
        self._handle = ctypes.c_void_p()
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        self._must(nvrtc.nvrtcCreateProgram(ctypes.byref(self._handle), source.encode(), name.encode(), 0, None, None))

    def _must(self, code: int) -> None:
        if code:
            raise RuntimeError(f"NVRTC: {self._nvrtc.nvrtcGetErrorString(code).decode()}")

    def compile(self, options: list[str]) -> bool:
        array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        return self._nvrtc.nvrtcCompileProgram(self._handle, len(options), array) == 0

    def text(self, what: str) -> str:
        """ "ProgramLog" or "PTX"."""
        size = ctypes.c_size_t()
        self._must(getattr(self._nvrtc, f"nvrtcGet{what}Size")(self._handle, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._must(getattr(self._nvrtc, f"nvrtcGet{what}")(self._handle, buffer))
        return buffer.value.decode()

    def close(self) -> None:
        self._nvrtc.nvrtcDestroyProgram(ctypes.byref(self._handle))


def compile_device(source: str, architecture: str, name: str = "softnum.cu", nvrtc: ctypes.CDLL | None = None):
    """Compile device code to PTX.

    Parameters
    ----------
    source : str
        CUDA C++.
    architecture : str
        For example "sm_90".

    Returns
    -------
    (str, str)
        PTX, and the compiler's messages.

    Raises
    ------
    ValueError
        With the messages, if the compiler refuses the source.
    FileNotFoundError
        If NVRTC is not installed.
    """
    program = _Program(nvrtc or _nvrtc(), source, name)
    try:
        options = [f"-arch={architecture.replace('sm_', 'compute_')}", "--relocatable-device-code=true"]
        done = program.compile(options)
        log = program.text("ProgramLog").strip()
        if not done:
            raise ValueError(f"{name} for {architecture}: the device compiler refuses it\n{log}")
        return program.text("PTX"), log
    finally:
        program.close()


def float_instructions(ptx: str) -> list[str]:
    """The floating-point instructions in PTX, in order."""
    return _FLOAT.findall(ptx)


def main(architectures=ARCHITECTURES) -> int:
    """Check everything and print one line for each; 0 if all is well, 1 if not, 2 if NVRTC is missing."""
    try:
        nvrtc = _nvrtc()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    sources = {"core": core_text(), **{name: library.source for name, library in libraries().items()}}
    bad = 0
    for name, source in sources.items():
        for architecture in architectures if name == "core" else architectures[:1]:
            try:
                ptx, log = compile_device(source, architecture, Path(name).name, nvrtc)
            except ValueError as error:
                bad += 1
                print(error, file=sys.stderr)
                continue
            floats = float_instructions(ptx)
            if floats or log:
                bad += 1
                print(
                    f"{name} for {architecture}: {log or 'floating-point instructions: ' + ', '.join(floats[:5])}",
                    file=sys.stderr,
                )
            else:
                print(f"ok: {name} for {architecture}")
    return int(bad != 0)


if __name__ == "__main__":
    sys.exit(main())
