"""Profiles x86, arm and riscv against processors, bit for bit with flags: this x86-64; QEMU's aarch64, riscv64."""

import numpy as np
import pytest

from softnum.vectors import VectorSpec, check, plan, write
from tests.support.cases import cases
from tests.support.instructions import MACHINES, spec_of

#: profile, options, bits of the control register: MXCSR.DAZ and .FTZ; FPCR.FZ with FZ16, .DN
SETTINGS = [
    ("x86", {}, 0),
    ("x86", {"flush_inputs": True}, 0x40),
    ("x86", {"flush_results": "after"}, 0x8000),
    ("arm", {}, 0),
    ("arm", {"flush_inputs": True, "flush_results": "arm"}, 1 << 24 | 1 << 19),
    ("arm", {"nan": "arm_default"}, 1 << 25),
    ("riscv", {}, 0),
]
#: F16C heeds neither DAZ nor FTZ (SDM, volume 2, VCVTPH2PS and VCVTPS2PH), FPCR.FZ no half of a conversion
HALVES = ("convert_16_32", "convert_32_16", "convert_16_64", "convert_64_16")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    built = {}

    def program(profile):
        if profile not in built:
            built[profile] = MACHINES[profile].program(tmp_path_factory.mktemp(profile))
        return built[profile]

    return program


def differing(machine, program, options, word, count, modes=None):
    """(vectors, (instruction, mode, operands, got, want) of each that differs) of all instructions in all modes."""
    jobs, blocks = [], []
    for name in machine.names(program):
        if name in HALVES and ("flush_inputs" in options or "flush_results" in options):
            continue
        for mode in modes or machine.modes:
            stated = dict(options)
            while True:  # what says nothing of an instruction is left out, as softnum asks for
                try:
                    spec = spec_of(name, machine.profile, mode, **stated)
                    break
                except ValueError as error:
                    key = "flush_inputs" if "--flush-inputs" in str(error) or "bits:" in str(error) else "flush_results"
                    assert key in stated, error
                    del stated[key]
            for block in plan(spec, count=count, seed=5).blocks():
                jobs.append((name, machine.modes[mode] | word, spec, block.operands))
                blocks.append((mode, block))
    bad = []
    for (name, _, _, operands), (mode, block), (result, flags) in zip(
        jobs, blocks, machine.run(program, jobs), strict=True
    ):
        for i in np.flatnonzero((result != block.result.astype(np.uint64)) | (flags != block.flags))[:1]:
            got, want = (hex(result[i]), int(flags[i])), (hex(block.result[i]), int(block.flags[i]))
            bad.append((name, mode, [hex(x[i]) for x in operands], got, want))
    return sum(len(block) for _, block in blocks), bad


@cases("profile, options, word", SETTINGS[:3] + SETTINGS[6:])
def test_profiles_are_the_processors(programs, profile, options, word):
    machine = MACHINES[profile]
    vectors, bad = differing(machine, programs(profile), options, word, 250, ["nearest_even", "up"])
    assert vectors > 20_000 and bad == []


@pytest.mark.slow
@cases("profile, options, word", SETTINGS)
def test_profiles_are_the_processors_in_all_modes(programs, profile, options, word):
    vectors, bad = differing(MACHINES[profile], programs(profile), options, word, 3000)
    assert vectors > 500_000 and bad == []


def test_a_file_of_arm_s_flushes(tmp_path):
    spec = VectorSpec.make("multiply", "binary16", flush_results="arm", profile="arm")
    write(plan(spec, count=4000), tmp_path / "v.txt")
    assert check(tmp_path / "v.txt").spec == spec
    block = spec.evaluate((np.array([0x0400, 0x0400], np.uint16), np.array([0x3800, 0x3C00], np.uint16)))
    assert (block.result.tolist(), block.flags.tolist()) == ([0, 0x0400], [2, 0])  # UNDERFLOW alone
    with pytest.raises(ValueError, match="header says flush"):
        check(tmp_path / "v.txt", flush_results="before")
    with pytest.raises(ValueError, match="binary16"):
        VectorSpec.make("convert", "binary32", out_fmt="binary16", flush_results="arm")
