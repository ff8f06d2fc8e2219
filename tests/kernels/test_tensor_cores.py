"""The presets of tensor cores against those of this GPU, bit for bit, by its own matrix instructions (PTX ISA, mma).

A warp computes 16 x 8 outputs by mma.sync, instruction after instruction. Operands are put into the registers of its
lanes on the host. NaN are compared as NaN: the hardware's has a payload of its own.
"""

from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from tests.support.compiled import compiled
from tests.support.mma import INSTRUCTIONS, function_of

# the GPU whose presets a compute capability has; others are not known to be like one of these
GPUS = {(8, 0): "a100", (8, 6): "a2", (8, 9): "ada", (9, 0): "h100", (10, 0): "b200"}


def kernel_of(instruction):
    """The kernel ``(a, b, d, steps)``: registers (tiles, steps, 32, 4) and (..., 2); (tiles, 32, 4 or 2) in and out."""
    from softnum.kernels.device.runtime._cuda import cuda, ffi

    mma = function_of(instruction)
    wide = 4 if instruction.result == "f32" else 2

    @cuda.jit
    def kernel(a, b, d, steps):
        own_a = cuda.local.array(4, np.uint32)
        own_b = cuda.local.array(2, np.uint32)
        sums = cuda.local.array(4, np.uint32)
        tile, lane = cuda.blockIdx.x, cuda.threadIdx.x
        for i in range(wide):
            sums[i] = d[tile, lane, i]
        for step in range(steps):
            for i in range(4):
                own_a[i] = a[tile, step, lane, i]
            for i in range(2):
                own_b[i] = b[tile, step, lane, i]
            mma(ffi.from_buffer(own_a), ffi.from_buffer(own_b), ffi.from_buffer(sums))
        for i in range(wide):
            d[tile, lane, i] = sums[i]

    return kernel


def by_hardware(instruction, a, b, c):
    """a (tiles, 16, K) @ b (tiles, K, 8) + c on this GPU's tensor cores; K a multiple of the instruction's depth."""
    from softnum.kernels.device.runtime import _cuda

    tiles, depth = len(a), instruction.depth
    steps = a.shape[2] // depth
    codes_a = instruction.codes(a).reshape(tiles, 16, steps, depth).transpose(0, 2, 1, 3)
    codes_b = instruction.codes(b).reshape(tiles, steps, depth, 8)
    own = c.astype(np.float16 if instruction.result == "f16" else np.float32)
    registers = [
        _cuda.to_device(np.ascontiguousarray(instruction.registers(codes, places)))
        for codes, places in (
            (codes_a, instruction.places_a), (codes_b, instruction.places_b), (own, instruction.places_c)
        )
    ]  # fmt: skip
    _cuda.launch(kernel_of(instruction), tiles, 32, *registers, steps)
    d = _cuda.to_host(registers[2]).view(own.dtype)
    out = np.empty((tiles, 16, 8), np.float32)
    out[(..., *instruction.places_c)] = d
    return out


def usual(fmt, shape, rng):
    """Values of several magnitudes, as the recorded vectors have them, and zeros."""
    x = sn.quantize((rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 3, shape)).astype(np.float32), fmt)
    x[rng.random(shape) < 0.05] = 0
    return x


def edges(fmt, shape, rng):
    """What the recorded vectors do not have: subnormals, overflow, zeros of both signs, infinities and NaN."""
    f = sn.format(fmt)
    x = usual(fmt, shape, rng)
    found = [0.0, -0.0, f.max, -f.max, f.smallest_normal, f.smallest_subnormal, -3 * f.smallest_subnormal]
    found += [np.inf, -np.inf] * f.infinities + [np.nan]
    rows = rng.random(shape[:-1]) < 0.3
    where = (rng.random(shape) < 0.15) & rows[..., None]
    x[where] = rng.choice(np.array([float(v) for v in found], np.float32), where.sum())
    scaled = (rng.random(shape) < 0.3) & ~rows[..., None]
    least = float(f.smallest_normal)
    x[scaled] = sn.quantize(x[scaled] * np.float32(max(least, 2.0**-60)), fmt)
    return x


@pytest.fixture(scope="module")
def gpu():
    """The name that the presets have for this GPU."""
    from softnum.kernels.device.runtime import _cuda

    capability = tuple(_cuda.cuda.get_current_device().compute_capability)
    if capability not in GPUS:
        pytest.skip(f"no preset is of a GPU of compute capability {capability[0]}.{capability[1]}")
    return GPUS[capability]


@pytest.mark.gpu
@pytest.mark.parametrize("data", [usual, edges], ids=lambda f: f.__name__)
@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.name)
def test_hardware(gpu, instruction, data):
    if instruction.size == 1 and gpu in ("a100", "a2"):
        pytest.skip(f"{gpu} has no tensor cores for FP8")
    unit = instruction.unit(gpu)
    assert instruction.format == str(unit.operand[0]) and instruction.depth % unit.period == 0
    seed = np.random.SeedSequence().entropy % 2**32
    rng = np.random.default_rng(seed)
    tiles = 400
    for steps in (1,) if unit.c == "after" else (1, 4):  # where C is added after, so it is by each instruction
        shape = (tiles, 16, steps * instruction.depth)
        a = data(instruction.format, shape, rng)
        b = np.ascontiguousarray(data(instruction.format, (tiles, 8, shape[2]), rng).swapaxes(1, 2))
        c = usual(str(unit.c_format), (tiles, 16, 8), rng)
        for start in (np.zeros_like(c), c):
            got, want = by_hardware(instruction, a, b, start), sn.matmul(a, b, unit, start)
            same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
            wrong = np.argwhere(~same)
            shown = [(float(got[tuple(i)]).hex(), float(want[tuple(i)]).hex()) for i in wrong[:3]]
            assert not len(wrong), f"seed {seed}, {steps} steps: {len(wrong)} differ, of them (GPU, unit) {shown}"


SHOWN = """
import sys
from numba import types
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.check.link import instructions, link
from tests.support.mma import INSTRUCTIONS, function_of

registers = types.Array(types.uint32, 1, "C")
for argument in sys.argv[1:]:
    index, chip = argument.split(":")
    mma = function_of(INSTRUCTIONS[int(index)])

    @cuda.jit
    def kernel(a, b, d):
        mma(ffi.from_buffer(a), ffi.from_buffer(b), ffi.from_buffer(d))

    code = instructions(link(kernel, (registers,) * 3, chip)[0])
    if code is None:
        print("pip install 'softnum[test]': there is no nvdisasm", file=sys.stderr)
        sys.exit(2)
    arithmetic = ("F2FP", "HMMA", "QMMA", "FADD", "HADD2")
    print(*(name + rest.rstrip(" ;") for _, name, rest in code if name.startswith(arithmetic)), sep="|")
"""


def test_fp8_on_hopper_and_blackwell():
    """What the presets say of terms, order and C is what the compiler makes of an instruction: of the four k that a
    register holds, the first two meet in a step from zero, the others in the next one, and C is added to that."""
    asked = [(i, chip) for i, one in enumerate(INSTRUCTIONS) if one.size == 1 for chip in ("sm_90", "sm_100")]
    done = compiled("-c", SHOWN, *(f"{i}:{chip}" for i, chip in asked), cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    for (i, chip), line in zip(asked, done.stdout.splitlines(), strict=True):
        single, held, steps = INSTRUCTIONS[i].result == "f32", {}, []
        for x in line.split("|"):
            name, *registers = x.replace(",", "").replace(".reuse", "").split()
            if name.startswith("F2FP"):
                held[registers[0]] = registers[1].endswith(".H1")
            elif name.startswith("HMMA"):
                assert name == f"HMMA.16816.F{32 if single else 16}", (chip, line)
                upper = {
                    held[f"R{int(r[1:]) + j}"]
                    for r, count in zip(registers[1:3], (4, 2), strict=True)
                    for j in range(count)
                }
                steps.append((upper, registers[0], registers[3]))
            else:
                assert len(steps) == 2 and name == ("FADD" if single else "HADD2"), (chip, line)
        (first, result, zero), (second, _, c) = steps
        assert (first, zero) == ({False}, "RZ") and (second, c) == ({True}, result), (chip, line)
        assert line.count("ADD") == (4 if single else 2), (chip, line)


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.name)
def test_fragments(instruction):
    """Each element lies in one place, and comes back from there."""
    rng = np.random.default_rng(0)
    for places, shape in (
        (instruction.places_a, (16, instruction.depth)), (instruction.places_b, (instruction.depth, 8)),
        (instruction.places_c, (16, 8)),
    ):  # fmt: skip
        assert np.array_equal(np.sort((places[0] * shape[1] + places[1]).ravel()), np.arange(shape[0] * shape[1]))
    codes = instruction.codes(usual(instruction.format, (3, 16, instruction.depth), rng))
    registers = instruction.registers(codes, instruction.places_a)
    assert registers.shape == (3, 32, 4) and registers.dtype == np.uint32
    back = np.empty_like(codes)
    back[(..., *instruction.places_a)] = registers.view(codes.dtype)
    assert np.array_equal(back, codes)
    assert all(instruction.unit(g) for g in ("ada", "h100", "b200"))
