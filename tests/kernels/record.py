"""Record what this GPU's matrix instructions compute: ``python tests/kernels/record.py FOLDER [--inputs FOLDER]``.

Rows of d = a·b + c, and chains of four instructions whose result is the next one's c, of every `mma.sync` and `wgmma` that the
chip has: random, wide, cancelling, subnormal, zero, tiny, overflowing and special ones, and codes at random. FOLDER gets an
.npz for each instruction (codes: `a`, `b` (rows, K), `c`, `d` (rows,), `kind`; `chain_a`, ..., `chain_d`), and
`manifest.json`, which says what each holds, on what GPU, by which driver and when. Operands of --inputs, a folder of the same
layout, are computed too: what differs from its `d` is counted, and the GPU's results are kept as `given_NAME.npz`.

The instructions are written in PTX and compiled by NVRTC for the chip with its own instructions (sm_90a).
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import softnum as sn

STEPS = 4  # instructions of a chain
FORMATS = {
    "f16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2", "f64": "binary64",
    "f32": "binary32", "s8": None, "u8": None, "s32": None,
}  # fmt: skip
SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "f64": 8, "f32": 4, "s8": 1, "u8": 1, "s32": 4}


# ---- instructions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instruction:
    """A matrix instruction: `kind` mma or wgmma, rows, depth, types of a, b, and of c and d."""

    kind: str
    m: int
    depth: int
    a: str
    b: str
    d: str
    least: tuple[int, int]
    saturate: bool = False

    @property
    def name(self) -> str:
        """As MMA-Sim writes it."""
        types = f"{self.d}.{self.a}.{self.b}" + f".{self.d}" * (self.kind == "mma")
        return f"m{self.m}n8k{self.depth}{'.satfinite' * self.saturate}.{types}"

    @property
    def file(self) -> str:
        return f"{self.kind}_{self.name.replace('.', '_')}"

    @property
    def ptx(self) -> str:
        """The instruction's own name."""
        shape, tail = f"m{self.m}n8k{self.depth}", ".satfinite" * self.saturate
        if self.kind == "wgmma":
            return f"wgmma.mma_async.sync.aligned.{shape}.{self.d}.{self.a}.{self.b}{tail}"
        return f"mma.sync.aligned.{shape}.row.col{tail}.{self.d}.{self.a}.{self.b}.{self.d}"

    @property
    def per(self) -> int:
        """Elements of a or b in a register."""
        return max(1, 4 // SIZES[self.a])

    @property
    def halves(self) -> int:
        """Registers side by side along k."""
        return self.depth // (4 * self.per)

    @property
    def upper(self) -> int:
        """Registers below each other along the rows: 8 rows each."""
        return 1 if self.m == 8 else 2

    @property
    def places_a(self):
        """(rows, columns) of a lane's elements, each (32, elements) (PTX ISA, matrix fragments)."""
        lane, i = np.arange(32)[:, None], np.arange(self.upper * self.halves * self.per)[None, :]
        register = i // self.per
        row = lane // 4 + 8 * (register % self.upper)
        return row + 0 * i, lane % 4 * self.per + i % self.per + 4 * self.per * (register // self.upper)

    @property
    def places_b(self):
        lane, i = np.arange(32)[:, None], np.arange(self.halves * self.per)[None, :]
        return lane % 4 * self.per + i % self.per + 4 * self.per * (i // self.per), lane // 4 + 0 * i

    @property
    def places_d(self):
        lane, i = np.arange(32)[:, None], np.arange(2 * self.upper)[None, :]
        return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2

    @property
    def counts(self) -> tuple[int, int, int]:
        """Registers of a, b and d (64-bit ones of f64)."""
        wide = 2 * self.upper // (2 if self.d == "f16" else 1)
        return self.upper * self.halves, self.halves, wide


def instructions() -> list[Instruction]:
    found = []
    for d in ("f32", "f16"):
        found += [Instruction("mma", 16, depth, "f16", "f16", d, (8, 0)) for depth in (16, 8)]
    found += [Instruction("mma", 16, depth, "bf16", "bf16", "f32", (8, 0)) for depth in (16, 8)]
    found += [Instruction("mma", 16, depth, "tf32", "tf32", "f32", (8, 0)) for depth in (8, 4)]
    eights = [(a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
    found += [
        Instruction("mma", 16, depth, a, b, d, (8, 9)) for depth in (32, 16) for d in ("f32", "f16") for a, b in eights
    ]
    found += [Instruction("mma", 8, 4, "f64", "f64", "f64", (8, 0))]
    found += [Instruction("mma", 16, depth, "f64", "f64", "f64", (9, 0)) for depth in (4, 8, 16)]
    found += [
        Instruction("mma", 16, 32, kind, kind, "s32", (8, 0), cut) for kind in ("s8", "u8") for cut in (False, True)
    ]
    found += [Instruction("wgmma", 64, 16, "f16", "f16", d, (9, 0)) for d in ("f32", "f16")]
    found += [
        Instruction("wgmma", 64, 16, "bf16", "bf16", "f32", (9, 0)),
        Instruction("wgmma", 64, 8, "tf32", "tf32", "f32", (9, 0)),
    ]
    found += [Instruction("wgmma", 64, 32, a, b, d, (9, 0)) for d in ("f32", "f16") for a, b in eights]
    found += [Instruction("wgmma", 64, 32, "s8", "s8", "s32", (9, 0), cut) for cut in (False, True)]
    return found


# ---- programs ----------------------------------------------------------------------------------------------------------


def text(one: Instruction, name: str) -> str:
    """CUDA C of a kernel (a, b, d, steps) of registers: a warp, or of wgmma a group of four, computes a tile."""
    of_a, of_b, of_d = one.counts
    real = {"f32": "float", "f64": "double"}.get(one.d, "unsigned")
    word = "unsigned long long" if one.d == "f64" else "unsigned"
    enter = {"f32": "__uint_as_float({})", "f64": "__longlong_as_double({})"}.get(one.d, "{}")
    leave = {"f32": "__float_as_uint({})", "f64": "__double_as_longlong({})"}.get(one.d, "{}")
    out = {"f32": "+f", "f64": "+d"}.get(one.d, "+r")
    into, given = ("d", "__longlong_as_double({})") if one.d == "f64" else ("r", "{}")
    threads = 128 if one.kind == "wgmma" else 32

    def group(first, count):
        return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"

    lines = [
        f'extern "C" __global__ void {name}(const {word} *a, const {word} *b, {word} *d, int steps) {{',
        f"  long tile = blockIdx.x; int lane = threadIdx.x; {real} sum[{of_d}];",
        f"  for (int i = 0; i < {of_d}; i++) {{ {word} w = d[(tile * {threads} + lane) * {of_d} + i]; sum[i] = {enter.format('w')}; }}",
    ]
    if one.kind == "wgmma":
        lines.append("  __shared__ __align__(1024) unsigned held[64];")
        lines.append("  unsigned long long at = (unsigned long long)__cvta_generic_to_shared(held);")
        lines.append("  unsigned long long descriptor = ((at & 0x3FFFF) >> 4) | (8ull << 16) | (8ull << 32);")
    lines.append("  for (int step = 0; step < steps; step++) {")
    lines.append(f"    const {word} *own = a + ((tile * steps + step) * {threads} + lane) * {of_a};")
    outputs = ", ".join(f'"{out}"(sum[{i}])' for i in range(of_d))
    inputs = ", ".join(f'"{into}"({given.format(f"own[{i}]")})' for i in range(of_a))
    if one.kind == "wgmma":
        tail = {2: ", 1, 1, 1, 0", 4: ", 1, 1, 1", 1: ", 1, 1, 1"}[SIZES[one.a]] if one.d != "s32" else ", 1"
        tail = tail.replace(", 1", ", p", 1)
        lines += [
            "    if (lane < 64) held[lane] = b[(tile * steps + step) * 64 + lane];",
            '    asm volatile("fence.proxy.async;" ::: "memory");',
            "    __syncthreads();",
            '    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
            f'    asm volatile("{{.reg .pred p; setp.ne.b32 p, 1, 0; {one.ptx} {group(0, of_d)}, {group(of_d, of_a)}, '
            f'%{of_d + of_a}{tail};}}" : {outputs} : {inputs}, "l"(descriptor) : "memory");',
            '    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
            '    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");',
            "    __syncthreads();",
        ]
    else:
        lines.append(f"    const {word} *other = b + ((tile * steps + step) * 32 + lane) * {of_b};")
        inputs += ", " + ", ".join(f'"{into}"({given.format(f"other[{i}]")})' for i in range(of_b))
        sums = group(0, of_d)
        lines.append(
            f'    asm volatile("{one.ptx} {sums}, {group(of_d, of_a)}, {group(of_d + of_a, of_b)}, {sums};" : {outputs} : {inputs});'
        )
    lines.append("  }")
    lines.append(
        f"  for (int i = 0; i < {of_d}; i++) d[(tile * {threads} + lane) * {of_d} + i] = {leave.format('sum[i]')};"
    )
    return "\n".join([*lines, "}"])


def compiled(source: str, chip: str) -> bytes:
    """Machine code of a text for a chip, such as "sm_90a"."""
    from cuda.bindings import nvrtc

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"record.cu", 0, [], []))
    options = [f"--gpu-architecture={chip}".encode(), b"--std=c++17"]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program)))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(log.decode())
    code = bytearray(checked(nvrtc.nvrtcGetCUBINSize(program)))
    checked(nvrtc.nvrtcGetCUBIN(program, code))
    return bytes(code)


def checked(answer):
    """The results of a call of CUDA's, without its code, which is an error if it is not 0."""
    code, *results = answer
    if int(code):
        raise RuntimeError(f"{type(code).__name__}: {code!r}")
    return results[0] if len(results) == 1 else results


class Device:
    """A GPU, by CUDA's driver."""

    def __init__(self, number: int = 0):
        from cuda.bindings import driver

        self.driver = driver
        checked(driver.cuInit(0))
        self.device = checked(driver.cuDeviceGet(number))
        checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(self.device))))
        attribute = driver.CUdevice_attribute
        self.capability = tuple(
            checked(driver.cuDeviceGetAttribute(x, self.device))
            for x in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        self.name = checked(driver.cuDeviceGetName(100, self.device)).split(b"\0")[0].decode()
        self.functions = {}

    def function(self, one: Instruction):
        if one not in self.functions:
            chip = f"sm_{self.capability[0]}{self.capability[1]}" + "a" * (self.capability[0] >= 9)
            library = checked(self.driver.cuLibraryLoadData(compiled(text(one, "_record"), chip), [], [], 0, [], [], 0))
            self.functions[one] = checked(self.driver.cuLibraryGetKernel(library, b"_record")), library
        return self.functions[one][0]

    def elements(self, source: str, x) -> np.ndarray:
        """A function of each of an array's elements."""
        driver = self.driver
        library = checked(
            driver.cuLibraryLoadData(
                compiled(source, f"sm_{self.capability[0]}{self.capability[1]}"), [], [], 0, [], [], 0
            )
        )
        function = driver.CUfunction(int(checked(driver.cuLibraryGetKernel(library, b"_function"))))
        d = np.empty_like(x)
        given, out = (checked(driver.cuMemAlloc(x.nbytes)) for _ in range(2))
        checked(driver.cuMemcpyHtoD(given, x.ctypes.data, x.nbytes))
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        arguments = ((int(given), int(given), int(out), len(x)), kinds)
        checked(driver.cuLaunchKernel(function, -(-len(x) // 128), 1, 1, 128, 1, 1, 0, 0, arguments, 0))
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemcpyDtoH(d.ctypes.data, out, d.nbytes))
        for address in (given, out):
            checked(driver.cuMemFree(address))
        return d

    def run(self, one: Instruction, a, b, d, steps: int):
        """Registers of a and b, those of c in d, which gets the results."""
        driver, kept = self.driver, []
        for x in (a, b, d):
            kept.append(checked(driver.cuMemAlloc(x.nbytes)))
            checked(driver.cuMemcpyHtoD(kept[-1], x.ctypes.data, x.nbytes))
        values = (*map(int, kept), steps)
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        threads = 128 if one.kind == "wgmma" else 32
        function = driver.CUfunction(int(self.function(one)))
        checked(driver.cuLaunchKernel(function, len(d), 1, 1, threads, 1, 1, 0, 0, (values, kinds), 0))
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemcpyDtoH(d.ctypes.data, kept[2], d.nbytes))
        for x in kept:
            checked(driver.cuMemFree(x))
        return d


def computed(device: Device, one: Instruction, a, b, c) -> np.ndarray:
    """Codes of a[i]·b[i] + c[i], a and b (rows, steps, K): (rows, steps), each step's result the next one's c."""
    rows, steps, depth = a.shape
    tiles = -(-rows // 8)
    kinds = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    element, result = kinds[SIZES[one.a]], kinds[SIZES[one.d]]
    word = np.uint64 if one.a == "f64" else np.uint32

    def filled(x, kind):
        whole = np.zeros((tiles * 8, *x.shape[1:]), kind)
        whole[:rows] = x
        return whole.reshape(tiles, 8, *x.shape[1:])

    # eight rows in a tile: row i of A, and once more below it, meets column i of B; the results lie on the diagonals
    a, b, c = filled(a, element), filled(b, element), filled(c, result)
    left = np.concatenate([a] * (2 if one.upper == 2 else 1), 1).transpose(0, 2, 1, 3)  # tiles, steps, 8 or 16, K
    registers_a = np.ascontiguousarray(left[(..., *one.places_a)])  # tiles, steps, 32, elements
    right = b.transpose(0, 2, 3, 1)
    if one.kind == "wgmma":
        registers_a = np.concatenate([registers_a] * 4, 2)  # all four warps compute the same rows
        core = 16 // SIZES[one.a]  # K-major, no swizzle: groups of 8 rows of 16 bytes
        registers_b = b.transpose(0, 2, 1, 3).reshape(tiles, steps, 8, 2, core).transpose(0, 1, 3, 2, 4)
    else:
        registers_b = right[(..., *one.places_b)]
    registers_a = registers_a.view(word)
    registers_b = np.ascontiguousarray(registers_b).view(word)
    out = np.empty((tiles * 8, steps), result)
    diagonal = np.arange(8)
    for upto in range(1, steps + 1):
        sums = np.zeros((tiles, 8 * one.upper, 8), result)
        for i in range(one.upper):
            sums[:, diagonal + 8 * i, diagonal] = c
        held = np.ascontiguousarray(sums[(..., *one.places_d)])
        if one.kind == "wgmma":
            held = np.concatenate([held] * 4, 1)
        held = np.ascontiguousarray(held).view(word)
        parts = [np.ascontiguousarray(x[:, :upto]) for x in (registers_a, registers_b)]
        got = device.run(one, *parts, held, upto).view(result)
        warps = got.reshape(tiles, -1, 32, got.shape[-1])
        back = np.empty((tiles, warps.shape[1], 8 * one.upper, 8), result)
        back[(..., *one.places_d)] = warps
        found = np.concatenate([back[:, :, diagonal + 8 * i, diagonal] for i in range(one.upper)], 1)
        if (found != found[:, :1]).any():
            raise RuntimeError(f"{one.name}: a row's result depends on where in the tile it is")
        out[:, upto - 1] = found[:, 0].reshape(-1)
    return out[:rows]


# ---- rows --------------------------------------------------------------------------------------------------------------

KINDS = [
    "random",
    "wide",
    "cancellation",
    "subnormal",
    "zeros",
    "floor",
    "zero_exponent",
    "overflow",
    "special",
    "rounding",
    "codes",
    "sparse",
    "least_exponent",
    "least_exponent_c",
]


def numbers(rng, fmt, shape, low, high):
    """Random signs and significands, exponents from low to high: float64, rounded to the format."""
    x = rng.choice([-1.0, 1.0], shape) * np.ldexp(1 + rng.random(shape), rng.integers(low, high + 1, shape))
    return sn.quantize(x, fmt, overflow="saturate")


def rows_of(rng, kind, one, count, steps):
    """Values a, b (count, steps, K) and c (count,) of one kind."""
    fa, fb, fd = (sn.format(FORMATS[x]) for x in (one.a, one.b, one.d))
    shape = (count, steps, one.depth)
    least = [f.emin - f.precision + 1 for f in (fa, fb, fd)]
    top = [f.emax for f in (fa, fb, fd)]
    a, b, c = numbers(rng, fa, shape, -4, 3), numbers(rng, fb, shape, -4, 3), numbers(rng, fd, count, -6, 5)
    part = lambda p, s=shape: rng.random(s) < p  # noqa: E731
    if kind == "wide":
        a, b = numbers(rng, fa, shape, least[0], top[0] // 2), numbers(rng, fb, shape, least[1], top[1] // 2)
        c = numbers(rng, fd, count, max(least[2], least[0] + least[1]), min(top[2], top[0]))
    elif kind == "cancellation":
        half = one.depth // 2
        order = rng.permutation(half)
        a[..., half:], b[..., half:] = -a[..., order], sn.quantize(b[..., order] * 1.0, fb)
        where = part(0.1)
        a[where] = numbers(rng, fa, where.sum(), max(least[0], fa.emin - 2), -4)
        c = np.where(
            part(0.4, count),
            sn.quantize(-a[:, 0, 0] * b[:, 0, 0], fd),
            numbers(rng, fd, count, -20 if fd.bits > 16 else -12, 3),
        )
    elif kind == "subnormal":
        a = np.where(part(0.5), numbers(rng, fa, shape, least[0], max(least[0], fa.emin)), a)
        b = np.where(part(0.3), numbers(rng, fb, shape, least[1], max(least[1], fb.emin)), b)
        c = numbers(rng, fd, count, least[2], fd.emin + 1)
    elif kind == "zeros":
        a[part(0.6)] = 0
        b[part(0.2)] = -0.0
        big = part(0.3)
        b[big] = numbers(rng, fb, big.sum(), top[1] // 2, top[1])
        a[(a != 0) & part(0.5)] = float(fa.smallest_normal)
        c = rng.choice([0.0, -0.0, float(fd.smallest_subnormal), -float(fd.smallest_normal), 1.0], count)
    elif kind == "floor":  # sums about the smallest exponents that they can have
        reach = max(least[0] + least[1], fd.emin - fd.precision - 20)
        goal = rng.integers(reach, reach + 45, count)[:, None, None]
        ea = np.clip(goal // 2 + rng.integers(-2, 3, shape), least[0], top[0])
        eb = np.clip(goal - ea + rng.integers(-3, 1, shape), least[1], top[1])
        a = sn.quantize(rng.choice([-1.0, 1.0], shape) * np.ldexp(1 + rng.random(shape), ea), fa, overflow="saturate")
        b = sn.quantize(rng.choice([-1.0, 1.0], shape) * np.ldexp(1 + rng.random(shape), eb), fb, overflow="saturate")
        a = np.where(part(0.6), 0.0, a)
        c = numbers(rng, fd, count, least[2], least[2] + 30)
        c = np.where(part(0.4, count), 0.0, c)
    elif kind == "zero_exponent":  # a zero times something large beside small products
        a = np.where(part(0.85), 0.0, numbers(rng, fa, shape, least[0], fa.emin + 2))
        b = np.where(
            a == 0,
            numbers(rng, fb, shape, fb.emin, top[1]),
            numbers(rng, fb, shape, least[1], min(top[1], fb.emin + 4)),
        )
        swap = rng.random(count) < 0.5
        if fa == fb:
            a[swap], b[swap] = b[swap], a[swap].copy()
        c = np.where(part(0.5, count), 0.0, numbers(rng, fd, count, least[2], least[2] + 25))
    elif kind == "overflow":
        side = min(top[2] // 2 + 1, top[0])
        a, b = (
            numbers(rng, fa, shape, side - 4, side),
            numbers(rng, fb, shape, min(side, top[1]) - 4, min(side, top[1])),
        )
        c = numbers(rng, fd, count, fd.emax - 3, fd.emax)
        sign = part(0.4, count)[:, None, None]
        a = np.where(sign, np.abs(a), a)
        b = np.where(sign, np.abs(b), b)
    elif kind == "special":
        for x, f in ((a, fa), (b, fb)):
            found = (
                [0.0, -0.0, float(f.max), -float(f.max)] + [np.inf, -np.inf] * bool(f.infinities) + [np.nan] * f.has_nan
            )
            where = part(1.5 / one.depth)
            x[where] = rng.choice(np.array(found), where.sum())
        where = part(0.3, count)
        c[where] = rng.choice(
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan, float(fd.max), -float(fd.max)]), where.sum()
        )
    elif kind == "rounding":  # one large term, small ones about the last bits that are kept, of either sign
        a = np.where(part(2 / one.depth), a, numbers(rng, fa, shape, max(least[0], -14), max(least[0], -6)))
        b = np.where(part(0.5), np.sign(b), b)
        c = numbers(rng, fd, count, -3, 12 if fd.bits > 16 else 8)
    elif kind == "sparse":
        keep = rng.integers(one.depth, size=(count, steps, 2))
        mask = np.zeros(shape, bool)
        np.put_along_axis(mask, keep, True, -1)
        a = np.where(mask, numbers(rng, fa, shape, max(fa.emin, -130), min(top[0], 60)), 0.0)
        c = numbers(rng, fd, count, max(least[2], -150), min(top[2], 60))
    return a, b, c


def at_the_least_exponent(one, of_c):
    """Codes a, b (rows, 1, K), c (rows,): a sum that a term tips, if it is not cut: each exponent of the first, each tail.

    The first, of exponent m, is a product or C; binary32 results are cut toward zero, and 2^m - 2^t is less than 2^m;
    binary16 ones are rounded to nearest, and 2^m + 2^-25 + 2^t is no tie.
    """
    names = one.a, one.b, one.d
    fa, fb, fd = (sn.format(FORMATS[x]) for x in names)
    single = one.d == "f32"
    low = [f.emin - f.precision + 1 for f in (fa, fb)]
    first = range(fd.emin - fd.precision + 1 - (not single), fd.emin + 16 if single else -13)
    found = []
    for m in first:
        for t in range(m - 42, m):
            if t < sum(low) or (not of_c and m < sum(low)):
                continue
            found.append((m, t))
    a, b = np.zeros((2, len(found), 1, one.depth))
    c = np.zeros(len(found))
    for i, (m, t) in enumerate(found):
        value = 2.0**m if single else 2.0**m + (2.0**-25 if m > -25 else 0)
        tail = -(2.0**t) if single else 2.0**t
        for slot, (x, e) in enumerate(((value, m), (tail, t))):
            ea = max(e // 2, fa.emin if slot == 0 else low[0])  # a tail may be of subnormal factors
            ea = max(min(ea, e - low[1]), e - fb.emax)
            if slot == 0 and of_c:
                c[i] = x
                continue
            place = (i + slot * 5) % one.depth
            a[i, 0, place], b[i, 0, place] = x / 2.0**e * 2.0**ea, 2.0 ** (e - ea)
    codes = [coded(x, name) for x, name in zip((a, b, c), names, strict=True)]
    back = [np.asarray(x).astype(np.float64) for x in (a, b, c)]
    exact = np.ones(len(found), bool)
    for x, f in zip(back, (fa, fb, fd), strict=True):
        same = sn.quantize(x, f) == x
        exact &= same.reshape(len(found), x[:1].size).all(1) if found else exact
    return [x[exact] for x in codes]


def codes_of(rng, kind, one, count, steps):
    """The same as codes."""
    if kind.startswith("least_exponent"):
        return at_the_least_exponent(one, kind.endswith("_c"))
    shape = (count, steps, one.depth)
    if kind == "codes" or FORMATS[one.a] is None:
        bits = [8 * SIZES[x] for x in (one.a, one.b, one.d)]
        found = [
            rng.integers(0, 2**n, size, dtype=np.uint64, endpoint=False)
            if n < 64
            else rng.integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True)
            for n, size in zip(bits, (shape, shape, (count,)), strict=True)
        ]
        if one.d == "s32" and kind in KINDS[:3]:
            found[2] = rng.integers(-(2**20), 2**20, count).astype(np.int32).view(np.uint32)
        return found
    return [
        coded(x, name) for x, name in zip(rows_of(rng, kind, one, count, steps), (one.a, one.b, one.d), strict=True)
    ]


def coded(x, name):
    if name in ("tf32", "f32"):
        return np.asarray(x, np.float32).view(np.uint32)
    if name == "f64":
        return np.asarray(x, np.float64).view(np.uint64)
    return sn.encode(np.asarray(x, np.float64), FORMATS[name])


def nan(codes, name):
    """Where codes are NaN."""
    codes = np.asarray(codes)
    if name == "s32":
        return np.zeros(codes.shape, bool)
    return np.isnan(codes.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[name]))


def recorded(device, one, seed, each):
    """Arrays of an instruction's file."""
    rng = np.random.default_rng([seed, *one.file.encode()])
    kinds = [x for x in KINDS if not x.startswith("least") or one.d in ("f32", "f16")]
    parts = [codes_of(rng, kind, one, each, 1) for kind in kinds]
    a, b, c = (np.concatenate([np.asarray(part[i]) for part in parts]) for i in range(3))
    size = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    a, b, c = a.astype(size[SIZES[one.a]]), b.astype(size[SIZES[one.b]]), c.astype(size[SIZES[one.d]])
    arrays = {"a": a[:, 0], "b": b[:, 0], "c": c, "d": computed(device, one, a, b, c)[:, 0]}
    arrays["kind"] = np.repeat([np.uint8(KINDS.index(x)) for x in kinds], [len(part[2]) for part in parts])
    chains = [
        codes_of(rng, kind, one, max(1, each // 16), STEPS)
        for kind in ("random", "wide", "cancellation", "rounding", "floor", "codes")
    ]
    a, b, c = (np.concatenate([np.asarray(part[i]) for part in chains]) for i in range(3))
    a, b, c = a.astype(size[SIZES[one.a]]), b.astype(size[SIZES[one.b]]), c.astype(size[SIZES[one.d]])
    arrays |= {"chain_a": a, "chain_b": b, "chain_c": c, "chain_d": computed(device, one, a, b, c)}
    return arrays


#: name -> (PTX from %1 to %0, the type of the argument in the low bits)
FUNCTIONS = {
    **{f"{name}.approx{more}.f32": (f"{{name}}.approx{more}.f32 %0, %1;".format(name=name), "f32")
       for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos") for more in ("", ".ftz")},
    "tanh.approx.f32": ("tanh.approx.f32 %0, %1;", "f32"),
    "tanh.approx.f16": ("tanh.approx.f16x2 %0, %1;", "f16"),
    "ex2.approx.f16": ("ex2.approx.f16x2 %0, %1;", "f16"),
    "tanh.approx.bf16": ("tanh.approx.bf16x2 %0, %1;", "bf16"),
    "ex2.approx.ftz.bf16": ("ex2.approx.ftz.bf16x2 %0, %1;", "bf16"),
    **{f"cvt.{mode}.tf32.f32": (f"cvt.{mode}.tf32.f32 %0, %1;", "f32") for mode in ("rna", "rn", "rz")},
    **{f"cvt.{mode}.bf16.f32": (f"{{.reg .b16 h; cvt.{mode}.bf16.f32 h, %1; cvt.u32.u16 %0, h;}}", "f32") for mode in ("rn", "rz")},
    **{f"cvt.{mode}.f16.f32": (f"{{.reg .b16 h; cvt.{mode}.f16.f32 h, %1; cvt.u32.u16 %0, h;}}", "f32") for mode in ("rn", "rz")},
    **{f"cvt.rn.satfinite.{eight}x2.f32": (f"{{.reg .b16 h; cvt.rn.satfinite.{eight}x2.f32 h, %1, %1; cvt.u32.u16 %0, h;}}", "f32")
       for eight in ("e4m3", "e5m2")},
    **{f"cvt.rn.satfinite.{eight}x2.f16x2": (
        f"{{.reg .b16 h; cvt.rn.satfinite.{eight}x2.f16x2 h, %1; cvt.u32.u16 %0, h;}}", "f16") for eight in ("e4m3", "e5m2")},
    **{f"cvt.rn.f16x2.{eight}x2": (f"{{.reg .b16 h; cvt.u16.u32 h, %1; cvt.rn.f16x2.{eight}x2 %0, h;}}", "codes16")
       for eight in ("e4m3", "e5m2")},
}  # fmt: skip


def function_text(name: str) -> str:
    body, kind = FUNCTIONS[name]
    out, into = (
        ('"=f"(y)', '"f"(__uint_as_float(x[i]))')
        if kind == "f32" and name.split(".")[0] != "cvt"
        else ('"=r"(z)', '"r"(x[i])')
    )
    if name.startswith("cvt") and kind == "f32":
        into = '"f"(__uint_as_float(x[i]))'
    return (
        'extern "C" __global__ void _function(const unsigned *x, const unsigned *unused, unsigned *d, int n) {\n'
        "  int i = blockIdx.x * 128 + threadIdx.x; if (i >= n) return; float y = 0; unsigned z = 0;\n"
        f'  asm("{body}" : {out} : {into}); d[i] = {"__float_as_uint(y)" if "=f" in out else "z"};\n}}\n'
    )


def recorded_functions(device, folder: Path, count: int) -> None:
    """functions.npz: of each function, its results for all 16-bit codes, or for binary32 codes: structured and random ones."""
    rng = np.random.default_rng(7)
    exponents = np.arange(256, dtype=np.uint32) << 23
    edges = np.concatenate([exponents + np.uint32(x) for x in (0, 1, 2, 0x400000, 0x7FFFFF, 0x5A827A)])
    edges = np.concatenate([edges, edges | np.uint32(1 << 31)])
    near = (rng.choice([-1, 1], count) * np.exp2(rng.uniform(-12, 8, count))).astype(np.float32).view(np.uint32)
    singles = np.concatenate([edges, near, rng.integers(0, 2**32, count // 4, dtype=np.uint32)])
    arrays = {"x_f32": singles}
    all16 = np.arange(2**16, dtype=np.uint32)
    for name, (_, kind) in FUNCTIONS.items():
        x = singles if kind == "f32" else all16 | (all16 << 16) if kind in ("f16", "bf16") else all16
        try:
            d = device.elements(function_text(name), x)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            continue
        arrays[name] = (
            d
            if name.endswith("x2") and kind == "codes16" or kind == "f32" and "cvt" not in name or "tf32" in name
            else d.astype(np.uint16)
        )
    np.savez_compressed(folder / "functions.npz", **arrays)
    print("functions", len(arrays) - 1, len(singles), flush=True)


def given_rows(device, folder: Path, out: Path, found: list[Instruction]) -> None:
    """The rows of another folder, on this GPU: how many results differ, by kind."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["arithmetics"]:
        named = {(x["kind"], x["instruction"]) for x in entry["instructions"]}
        for one in found:
            if (one.kind, one.name) not in named:
                continue
            with np.load(folder / entry["file"]) as data:
                arrays = {name: data[name] for name in data.files}
            got = computed(device, one, arrays["a"][:, None], arrays["b"][:, None], arrays["c"])[:, 0]
            chain = computed(device, one, arrays["chain_a"], arrays["chain_b"], arrays["chain_c"])
            np.savez_compressed(out / f"given_{entry['name']}_{one.kind}.npz", d=got, chain_d=chain)
            said = []
            for name in ("d", "d_skip", "d_c126"):
                if name in arrays:
                    wrong = (got != arrays[name]) & ~(nan(got, one.d) & nan(arrays[name], one.d))
                    by = np.bincount(arrays["kind"][wrong], minlength=len(manifest["kinds"]))
                    said.append(
                        f"{name} {wrong.sum()} "
                        + ",".join(f"{manifest['kinds'][i]} {n}" for i, n in enumerate(by) if n)
                    )
            wrong = (chain != arrays["chain_d"]) & ~(nan(chain, one.d) & nan(arrays["chain_d"], one.d))
            print(
                f"{entry['name']} {one.kind} of {len(got)}: {'; '.join(said)}; chains {wrong.any(1).sum()} of {len(chain)}",
                flush=True,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="gets the files")
    parser.add_argument("--inputs", type=Path, help="a folder of the same layout, whose operands are computed too")
    parser.add_argument("--each", type=int, default=160, help="rows of each kind (160)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--compile-only", metavar="CHIP", help="compile the instructions for a chip, such as sm_90a, and stop"
    )
    given = parser.parse_args()
    if given.compile_only:
        for one in instructions():
            print(one.file, len(compiled(text(one, "_record"), given.compile_only)))
        for name in FUNCTIONS:
            print(name, len(compiled(function_text(name), given.compile_only)))
        return 0
    device = Device()
    given.folder.mkdir(parents=True, exist_ok=True)
    entries, found, rc = [], [], 0
    for one in instructions():
        if device.capability < one.least or (one.kind == "wgmma" and device.capability[0] != 9):
            continue
        try:
            arrays = recorded(device, one, given.seed, given.each)
        except RuntimeError as error:
            print(f"{one.file}: {error}", file=sys.stderr, flush=True)
            rc = 1
            continue
        found.append(one)
        path = given.folder / f"{one.file}.npz"
        np.savez_compressed(path, **arrays)
        entries.append({
            "name": one.file, "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "a": one.a, "b": one.b, "c": one.d,
            "d": one.d, "K": one.depth, "instructions": [{"kind": one.kind, "architecture": device.name, "instruction": one.name, "ptx": one.ptx}],
            "rows": len(arrays["d"]), "chains": len(arrays["chain_d"]),
        })  # fmt: skip
        print(one.file, len(arrays["d"]), flush=True)
    driver = Path("/proc/driver/nvidia/version")
    about = {
        "source": device.name, "capability": ".".join(map(str, device.capability)),
        "driver": driver.read_text().splitlines()[0] if driver.exists() else checked(device.driver.cuDriverGetVersion()),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "seed": given.seed, "kinds": KINDS,
        "nan": "compare NaN as a class", "rows": sum(x["rows"] for x in entries), "chains": sum(x["chains"] for x in entries), "arithmetics": entries,
    }  # fmt: skip
    (given.folder / "manifest.json").write_text(json.dumps(about, indent=1) + "\n")
    recorded_functions(device, given.folder, 2**16)
    if given.inputs:
        given_rows(device, given.inputs, given.folder, found)
    return rc


if __name__ == "__main__":
    sys.exit(main())
