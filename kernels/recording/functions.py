"""Functions of one element: approximations and conversions, of all 16-bit codes, or of many of binary32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softnum.kernels.recording.device import KERNEL


@dataclass(frozen=True)
class Function:
    """An instruction of PTX.

    Parameters
    ----------
    body : str
        From %1 to %0.
    given : {"f32", "f16", "bf16", "codes"}
        A register's argument: a float, the same 16-bit one twice, or two 8-bit codes.
    gives : {"f32", "b32", "b16"}
        A register of asm that is a float or bits, and of these whether all 32 count.
    """

    body: str
    given: str
    gives: str

    @property
    def text(self) -> str:
        """CUDA C of the kernel (x, unused, d, n)."""
        entry = '"f"(__uint_as_float(x[i]))' if self.given == "f32" else '"r"(x[i])'
        result, leave = ('"=f"(y)', "__float_as_uint(y)") if self.gives == "f32" else ('"=r"(z)', "z")
        return f"""
extern "C" __global__ void {KERNEL}(const unsigned *x, const unsigned *unused, unsigned *d, int n) {{
  int i = blockIdx.x * 128 + threadIdx.x; if (i >= n) return; float y = 0; unsigned z = 0;
  asm("{self.body}" : {result} : {entry}); d[i] = {leave};
}}
"""


def _half(instruction: str) -> str:
    """One whose result is a register of 16 bits."""
    return f"{{.reg .b16 h; {instruction}; cvt.u32.u16 %0, h;}}"


def _functions() -> dict[str, Function]:
    found = {}
    for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos"):
        for flushed in ("", ".ftz"):
            found[f"{name}.approx{flushed}.f32"] = Function(f"{name}.approx{flushed}.f32 %0, %1;", "f32", "f32")
    found["tanh.approx.f32"] = Function("tanh.approx.f32 %0, %1;", "f32", "f32")
    for name, kind in (("tanh", "f16"), ("ex2", "f16"), ("tanh", "bf16"), ("ex2", "bf16")):
        flushed = ".ftz" if (name, kind) == ("ex2", "bf16") else ""
        body = f"{name}.approx{flushed}.{kind}x2 %0, %1;"
        found[f"{name}.approx{flushed}.{kind}"] = Function(body, kind, "b16")
    for mode in ("rna", "rn", "rz"):
        found[f"cvt.{mode}.tf32.f32"] = Function(f"cvt.{mode}.tf32.f32 %0, %1;", "f32", "b32")
    for kind in ("bf16", "f16"):
        for mode in ("rn", "rz"):
            name = f"cvt.{mode}.{kind}.f32"
            found[name] = Function(_half(f"{name} h, %1"), "f32", "b16")
    for source, given, arguments in (("f32", "f32", "%1, %1"), ("f16x2", "f16", "%1")):
        for kind in ("e4m3", "e5m2"):
            name = f"cvt.rn.satfinite.{kind}x2.{source}"
            found[name] = Function(_half(f"{name} h, {arguments}"), given, "b16")
    for kind in ("e4m3", "e5m2"):
        name = f"cvt.rn.f16x2.{kind}x2"
        found[name] = Function(f"{{.reg .b16 h; cvt.u16.u32 h, %1; {name} %0, h;}}", "codes", "b32")
    return found


FUNCTIONS = _functions()


def singles(count: int, seed: int = 7) -> np.ndarray:
    """Codes of binary32: about each power of two, `count` that are not far from 1, and a quarter of that of any."""
    rng = np.random.default_rng(seed)
    powers = np.arange(256, dtype=np.uint32) << 23
    edges = np.concatenate([powers + np.uint32(x) for x in (0, 1, 2, 0x400000, 0x7FFFFF, 0x5A827A)])
    near = (rng.choice([-1, 1], count) * np.exp2(rng.uniform(-12, 8, count))).astype(np.float32).view(np.uint32)
    return np.concatenate(
        [edges, edges | np.uint32(1 << 31), near, rng.integers(0, 2**32, count // 4, dtype=np.uint32)]
    )


def recorded(device, count: int) -> tuple[dict[str, np.ndarray], list[str]]:
    """(results by name, and ``x_f32``, what functions of binary32 were given; names of those that the chip lacks)"""
    halves = np.arange(2**16, dtype=np.uint32)
    twice = halves | halves << 16
    arguments = {"f32": singles(count), "f16": twice, "bf16": twice, "codes": halves}
    found, lacking = {"x_f32": arguments["f32"]}, []
    for name, function in FUNCTIONS.items():
        try:
            d = device.elements(function.text, arguments[function.given])
        except RuntimeError:
            lacking.append(name)
        else:
            found[name] = d.astype(np.uint16) if function.gives == "b16" else d
    return found, lacking
