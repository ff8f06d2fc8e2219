"""Instructions of processors on vectors, by tests/vectors/instructions.c: this CPU's, and those that QEMU emulates."""

import platform
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

__all__ = ["MACHINES", "Machine", "spec_of"]

_SOURCE = Path(__file__).parents[1] / "vectors" / "instructions.c"
_ARM_MODES = {"n": "nearest_even", "a": "nearest_away", "z": "toward_zero", "p": "up", "m": "down"}


class Machine(NamedTuple):
    """How a program for a machine is built and run, and where its control and status registers have what.

    ``modes`` are words of the control register by rounding modes, ``flags`` bits of the status register in the order of
    softnum's: inexact, underflow, overflow, divide by zero, invalid.
    """

    profile: str
    compiler: tuple[str, ...]
    emulator: tuple[str, ...]
    modes: dict[str, int]
    flags: tuple[int, ...]
    boxes: bool = False

    def program(self, folder: Path) -> list[str]:
        """The command of the built program; skips where there is no compiler or emulator."""
        if not self.emulator and platform.machine() not in ("x86_64", "AMD64"):
            pytest.skip("this CPU is no x86-64")
        for tool in (self.compiler[0], *self.emulator[:1]):
            if shutil.which(tool) is None:
                pytest.skip(f"needs {tool}")
        built = folder / self.profile
        subprocess.run([*self.compiler, "-O1", "-o", built, _SOURCE], check=True, timeout=120)
        return [*self.emulator, str(built)]

    def names(self, program: list[str]) -> list[str]:
        """The instructions that there are."""
        return subprocess.run([*program, "list"], capture_output=True, text=True, check=True).stdout.split()

    def run(self, program: list[str], jobs) -> list[tuple[np.ndarray, np.ndarray]]:
        """(results, softnum's flags) of jobs (instruction, word of the control register, spec, operands)."""
        text, sizes = [], []
        for name, word, spec, operands in jobs:
            rows = np.zeros((len(operands[0]), 3), np.uint64)
            for i, (codes, fmt) in enumerate(zip(operands, spec.formats, strict=True)):
                box = ~np.uint64((1 << fmt.bits) - 1) if self.boxes and fmt.exponent_bits and fmt.bits < 64 else 0
                rows[:, i] = _as_register(codes, fmt) | np.uint64(box)
            text += [name.encode().ljust(32, b"\0"), np.array([word, len(rows)], np.uint64).tobytes(), rows.tobytes()]
            sizes.append(len(rows))
        done = subprocess.run(program, input=b"".join(text), capture_output=True, timeout=600)
        assert done.returncode == 0, done.stderr
        found = np.frombuffer(done.stdout, np.uint64).reshape(-1, 2)
        out, first = [], 0
        for (_, _, spec, _), size in zip(jobs, sizes, strict=True):
            result, status = found[first : first + size].T
            first += size
            flags = sum((status >> np.uint64(bit) & np.uint64(1)) << np.uint64(i) for i, bit in enumerate(self.flags))
            if self.boxes and spec.out_fmt.exponent_bits and spec.out_fmt.bits < 64:
                assert (~result >> np.uint64(spec.out_fmt.bits) == 0).all(), "a narrow result that is not NaN-boxed"
            out.append((result & np.uint64((1 << spec.out_fmt.bits) - 1), flags))
        return out


def _as_register(codes: np.ndarray, fmt) -> np.ndarray:
    """Codes as registers hold them: integers of 32 bits have their sign above them."""
    wide = codes.astype(np.uint64)
    if fmt.exponent_bits or not fmt.signed:
        return wide
    spare = np.uint64(64 - fmt.bits)
    return ((wide << spare).view(np.int64) >> spare.astype(np.int64)).view(np.uint64)


#: the machines by softnum's profiles
MACHINES = {
    "x86": Machine(
        "x86", ("cc",), (),
        {m: 0x1F80 | rc << 13 for m, rc in {"nearest_even": 0, "down": 1, "up": 2, "toward_zero": 3}.items()},
        (5, 4, 3, 2, 0),
    ),
    "arm": Machine(
        "arm", ("aarch64-linux-gnu-gcc", "-static", "-march=armv8.2-a+fp16"), ("qemu-aarch64", "-cpu", "max"),
        {m: rm << 22 for m, rm in {"nearest_even": 0, "up": 1, "down": 2, "toward_zero": 3}.items()},
        (4, 3, 2, 1, 0),
    ),
    "riscv": Machine(
        "riscv", ("riscv64-linux-gnu-gcc", "-static"), ("qemu-riscv64",),
        {m: frm << 5 for m, frm in
         {"nearest_even": 0, "toward_zero": 1, "down": 2, "up": 3, "nearest_away": 4}.items()},
        (0, 1, 2, 3, 4), True,
    ),
}  # fmt: skip


def spec_of(name: str, profile: str, mode: str, **options):
    """(the spec, whether it has no rounding mode of its own) of an instruction's name."""
    from softnum.vectors import VectorSpec

    words = name.split("_")
    told = {"profile": profile, "rounding": mode, **options}
    if name.startswith(("to_integer", "truncate")):
        if words[0] == "truncate":
            told["rounding"] = "toward_zero"
        elif len(words) == 5:
            told["rounding"] = _ARM_MODES[words[2]]
        return VectorSpec.make("to_integer", f"binary{words[-2]}", out_fmt=words[-1].replace("u", "ui"), **told)
    if name.startswith("from_integer"):
        return VectorSpec.make("from_integer", words[2].replace("u", "ui"), out_fmt=f"binary{words[3]}", **told)
    if name.startswith("convert"):
        return VectorSpec.make("convert", f"binary{words[1]}", out_fmt=f"binary{words[2]}", **told)
    if words[-2] == "silent":
        return VectorSpec.make("round_to_integral", f"binary{words[-1]}", exact=False, **told)
    return VectorSpec.make("_".join(words[:-1]), f"binary{words[-1]}", **told)
