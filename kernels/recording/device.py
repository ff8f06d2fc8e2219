"""A GPU: instructions as kernels, compiled by NVRTC and launched by CUDA's driver."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from softnum.kernels.recording.mma import Instruction, size_of

KERNEL = "_record"

# of the type of d: C's type of a sum, what makes it of a register and a register of it, the kind of operand in asm
_SUMS = {
    "f32": ("float", "__uint_as_float", "__float_as_uint", "f"),
    "f64": ("double", "__longlong_as_double", "__double_as_longlong", "d"),
}
_PLAIN = ("unsigned", "", "", "r")

_SHARED = """
  __shared__ __align__(1024) unsigned held[64];
  unsigned long long at = (unsigned long long)__cvta_generic_to_shared(held);
  unsigned long long descriptor = ((at & 0x3FFFF) >> 4) | (8ull << 16) | (8ull << 32);"""


def nvidia_driver() -> str | None:
    """The version of this machine's driver, such as "580.159.04"; None where there is none, or it does not say."""
    path = Path("/proc/driver/nvidia/version")
    words = path.read_text().split() if path.exists() else []
    return next((word for word in words if re.fullmatch(r"\d+(\.\d+)+", word)), None)


def _group(first: int, count: int) -> str:
    """Operands of asm, as PTX writes a vector of registers."""
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"


def _mma(one: Instruction, word: str, outputs: str, inputs: str) -> str:
    of_a, of_b, of_d = one.registers
    kind, enter = ("d", "__longlong_as_double") if one.d == "f64" else ("r", "")
    inputs += ", " + ", ".join(f'"{kind}"({enter}(other[{i}]))' for i in range(of_b))
    sums = _group(0, of_d)
    return f"""
    const {word} *other = b + ((tile * steps + step) * 32 + lane) * {of_b};
    asm volatile("{one.ptx} {sums}, {_group(of_d, of_a)}, {_group(of_d + of_a, of_b)}, {sums};"
                 : {outputs} : {inputs});"""


def _wgmma(one: Instruction, word: str, outputs: str, inputs: str) -> str:
    """B goes to shared memory, where a descriptor says it lies: 128 bytes from one group of eight rows to the next."""
    of_a, _, of_d = one.registers
    signs = "" if one.d == "s32" else ", 1, 1"  # a and b as they are, not negated
    straight = ", 0" if size_of(one.a) == 2 else ""  # b is not transposed
    return f"""
    if (lane < 64) held[lane] = b[(tile * steps + step) * 64 + lane];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{{.reg .pred p; setp.ne.b32 p, 1, 0; "
                 "{one.ptx} {_group(0, of_d)}, {_group(of_d, of_a)}, %{of_d + of_a}, p{signs}{straight};}}"
                 : {outputs} : {inputs}, "l"(descriptor) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();"""


def text(one: Instruction) -> str:
    """CUDA C of a kernel (a, b, d, steps): a block computes a tile, one instruction after the other.

    Arguments are registers: a (tiles, steps, lanes, registers); b the same, or of wgmma shared memory
    (tiles, steps, 64); d (tiles, lanes, registers), where c comes in and the sum goes out.
    """
    of_a, _, of_d = one.registers
    word = "unsigned long long" if one.d == "f64" else "unsigned"
    number, enter, leave, kind = _SUMS.get(one.d, _PLAIN)
    given, as_given = ("d", "__longlong_as_double") if one.d == "f64" else ("r", "")
    outputs = ", ".join(f'"+{kind}"(sum[{i}])' for i in range(of_d))
    inputs = ", ".join(f'"{given}"({as_given}(own[{i}]))' for i in range(of_a))
    step = (_wgmma if one.kind == "wgmma" else _mma)(one, word, outputs, inputs)
    lanes = 32 * one.warps
    return f"""
extern "C" __global__ void {KERNEL}(const {word} *a, const {word} *b, {word} *d, int steps) {{
  long tile = blockIdx.x; int lane = threadIdx.x; {number} sum[{of_d}];
  for (int i = 0; i < {of_d}; i++) {{ {word} w = d[(tile * {lanes} + lane) * {of_d} + i]; sum[i] = {enter}(w); }}
  {_SHARED if one.kind == "wgmma" else ""}
  for (int step = 0; step < steps; step++) {{
    const {word} *own = a + ((tile * steps + step) * {lanes} + lane) * {of_a};{step}
  }}
  for (int i = 0; i < {of_d}; i++) d[(tile * {lanes} + lane) * {of_d} + i] = {leave}(sum[i]);
}}
"""


def checked(answer):
    """What a call of CUDA's gives, but for its code, which is an error if it is not 0."""
    code, *results = answer
    if int(code):
        raise RuntimeError(f"{type(code).__name__}: {code!r}")
    return results[0] if len(results) == 1 else results


def compiled(source: str, chip: str) -> bytes:
    """Machine code of a text for a chip, such as "sm_90a"; RuntimeError, with what the compiler says, if it refuses."""
    from cuda.bindings import nvrtc

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"record.cu", 0, [], []))
    options = [f"--gpu-architecture={chip}".encode(), b"--std=c++17"]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program)))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(log.decode().rstrip("\0"))
    code = bytearray(checked(nvrtc.nvrtcGetCUBINSize(program)))
    checked(nvrtc.nvrtcGetCUBIN(program, code))
    return bytes(code)


class Device:
    """A GPU; OSError where there is none, its driver is missing, or cuda-bindings is not installed.

    Attributes
    ----------
    name, driver : str
    capability : (int, int)
    """

    def __init__(self, number: int = 0):
        try:
            from cuda.bindings import driver

            checked(driver.cuInit(0))
        except (ImportError, RuntimeError) as error:
            raise OSError(
                f"recording needs an NVIDIA GPU, its driver and cuda-bindings (pip install 'softnum[cuda]'): {error}"
            ) from None
        self._cuda = driver
        device = checked(driver.cuDeviceGet(number))
        checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
        self.name = checked(driver.cuDeviceGetName(100, device)).split(b"\0")[0].decode()
        self.capability = tuple(
            checked(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, name), device))
            for name in (
                "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"
            )
        )  # fmt: skip
        self._kernel = lru_cache(self._loaded)

    @property
    def chip(self) -> str:
        """As compilers name it: with the instructions that it alone has, from Hopper on."""
        major, minor = self.capability
        return f"sm_{major}{minor}{'a' * (major >= 9)}"

    @property
    def cuda(self) -> str:
        """The newest CUDA that the driver knows, such as "13.0"."""
        version = checked(self._cuda.cuDriverGetVersion())
        return f"{version // 1000}.{version % 1000 // 10}"

    def run(self, one: Instruction, a, b, d, steps: int) -> np.ndarray:
        """d of an instruction's steps, given registers as `text` has them."""
        return self._launched(text(one), len(d), 32 * one.warps, (a, b, d), steps)

    def elements(self, source: str, x) -> np.ndarray:
        """Results of a kernel (x, x, d, n) of 128 threads a block, for each of an array's words."""
        return self._launched(source, -(-len(x) // 128), 128, (x, x, np.zeros_like(x)), len(x))

    def _loaded(self, source: str):
        library = checked(self._cuda.cuLibraryLoadData(compiled(source, self.chip), [], [], 0, [], [], 0))
        return checked(self._cuda.cuLibraryGetKernel(library, KERNEL.encode())), library

    def _launched(self, source: str, blocks: int, threads: int, arrays, count: int) -> np.ndarray:
        """Three arrays and a number are a kernel's arguments; the last array as it leaves it."""
        driver, held = self._cuda, []
        kernel = driver.CUfunction(int(self._kernel(source)[0]))
        arrays = [np.ascontiguousarray(x) for x in arrays]
        for x in arrays:
            held.append(checked(driver.cuMemAlloc(x.nbytes)))
            checked(driver.cuMemcpyHtoD(held[-1], x.ctypes.data, x.nbytes))
        arguments = (*map(int, held), count), (*[ctypes.c_void_p] * 3, ctypes.c_int)
        checked(driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, 0, arguments, 0))
        checked(driver.cuCtxSynchronize())
        out = np.empty_like(arrays[-1])
        checked(driver.cuMemcpyDtoH(out.ctypes.data, held[-1], out.nbytes))
        for address in held:
            checked(driver.cuMemFree(address))
        return out
