"""The presets of tensor cores against those of this GPU, bit for bit, by all of its matrix instructions.

NaN are compared as NaN: the hardware's has a payload of its own.
"""

import numpy as np
import pytest

from softnum.kernels.recording.device import compiled, text
from softnum.kernels.recording.mma import INSTRUCTIONS, size_of
from softnum.kernels.recording.rows import KINDS

# the GPU whose presets a compute capability has; others are not known to be like one of these
GPUS = {(8, 0): "a100", (8, 6): "a2", (8, 9): "ada", (9, 0): "h100", (10, 0): "b200"}


@pytest.fixture(scope="module")
def device():
    from softnum.kernels.recording.device import Device

    found = Device()
    if found.capability not in GPUS:
        pytest.skip(f"no preset is of a GPU of compute capability {'.'.join(map(str, found.capability))}")
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("one", INSTRUCTIONS, ids=lambda one: one.file)
def test_hardware(device, one):
    from softnum.kernels.recording.__main__ import recorded

    if not one.on(device.capability):
        pytest.skip("this GPU has no such instruction")
    unit = one.unit(GPUS[device.capability])
    seed = int(np.random.SeedSequence().entropy % 2**32)
    arrays = recorded(device, one, seed, each=1000)
    wrong = one.rows_that_differ(arrays, unit)
    kinds = np.bincount(arrays["kind"][wrong[0]], minlength=len(KINDS))
    shown = {kind: int(n) for kind, n in zip(KINDS, kinds, strict=True) if n}
    chains = [int(step.sum()) for step in wrong[1:]]
    assert not shown and not any(chains), f"seed {seed}: rows differ, {shown}, and of chains' steps {chains}: {unit}"


def arithmetic(one, chip):
    """What the compiler makes of a single instruction: (name, registers...) of what computes."""
    from softnum.kernels.check.link import instructions

    source = text(one).replace("step < steps;", "step < 1;")
    assert source != text(one)
    code = instructions(compiled(source, chip))
    if code is None:
        pytest.skip("pip install 'softnum[test]': there is no nvdisasm")
    for _, name, rest in code:
        if name.startswith(("F2FP", "HMMA", "QMMA", "FADD", "HADD2")):
            yield (name + rest).translate({ord(c): None for c in ",;"}).replace(".reuse", "").split()


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "one",
    [one for one in INSTRUCTIONS if one.kind == "mma" and size_of(one.a) == 1 and one.d != "s32"],
    ids=lambda one: one.file,
)
def test_fp8_on_hopper_and_blackwell(one, chip):
    """What the presets say of terms, order and C is what the compiler makes of an instruction: of the four k that a
    register holds, the first two meet in a step from zero, the others in the next one, and C is added to that."""
    pytest.importorskip("cuda.bindings.nvrtc")
    single, held, steps, added = one.d == "f32", {}, [], 0
    shape, (of_a, of_b) = (16816, (4, 2)) if one.k == 32 else (1688, (2, 1))
    for name, *registers in arithmetic(one, chip):
        if name.startswith("F2FP"):
            held[registers[0]] = registers[1].endswith(".H1")
        elif name.startswith("HMMA"):
            assert name == f"HMMA.{shape}.F{32 if single else 16}"
            upper = {
                held[f"R{int(first[1:]) + j}"]
                for first, count in zip(registers[1:3], (of_a, of_b), strict=True)
                for j in range(count)
            }
            steps.append((upper, registers[0], registers[3]))
        else:
            assert len(steps) == 2 and name == ("FADD" if single else "HADD2")
            added += 1
    (first, result, zero), (second, _, c) = steps
    assert (first, zero) == ({False}, "RZ") and (second, c) == ({True}, result)
    assert added == (4 if single else 2)
