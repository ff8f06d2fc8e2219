"""How many vectors a minute a generated bench answers: generate, simulate in Verilator, check, each on one core.

    python -m benchmarks.rtl_bench /path/to/cvfpu --count 1000000

Runs the case fma-rne of examples/rtl-project (cvfpu's fpnew_fma in binary32). What is compiled is compiled before the
clock starts; VERILATOR_FLAGS and PATH choose another Verilator.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = {"generate": "vectors.txt", "simulate": "answers-verilator.txt", "check": "verify"}


def seconds(command: list[str], core: int) -> tuple[float, float]:
    """(seconds of the CPU, of the clock) of a command that is kept on one core."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    pinned = ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command
    subprocess.run(pinned, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fpu", type=Path)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--registers", type=int, default=0, help="stages of the pipeline")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest counts")
    given = parser.parse_args()
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    with tempfile.TemporaryDirectory() as scratch:
        ignored = shutil.ignore_patterns("build")
        project = Path(shutil.copytree(ROOT / "examples" / "rtl-project", Path(scratch) / "project", ignore=ignored))
        variables = [f"SOFTNUM={sys.executable} -m softnum", "SIM=verilator", "STALLS=0"]
        variables += [f"VERILATOR_FLAGS=-Wno-BLKANDNBLK {os.environ.get('VERILATOR_FLAGS', '')}".strip()]
        of_project = [f"FPU={given.fpu.resolve()}", f"REGISTERS={given.registers}", "COUNT=1"]
        made = subprocess.run(["make", "-C", project, "check-fma-rne", *variables, *of_project], capture_output=True)
        if made.returncode:
            raise SystemExit(made.stderr.decode()[-2000:])
        folder = project / "build" / "cvfpu" / "fma-rne"
        rounds = []
        for seed in range(1, given.rounds + 1):
            asked = ["make", "-C", str(folder), *variables, f"COUNT={given.count}", f"SEED={seed}"]
            rounds.append([seconds([*asked, target], core) for target in STEPS.values()])
        version = subprocess.run(["verilator", "--version"], capture_output=True, text=True, check=True).stdout
    best = min(rounds, key=lambda times: sum(cpu for cpu, _ in times))
    print(f"fpnew_fma, binary32, {given.registers} stages, {given.count} vectors with flags; {version.strip()}")
    for step, (cpu, wall) in zip(STEPS, best, strict=True):
        print(f"{step:<9} {cpu:6.2f} s of the CPU  {wall:6.2f} s")
    total, clock = sum(cpu for cpu, _ in best), sum(wall for _, wall in best)
    print(f"{'all':<9} {total:6.2f} s of the CPU  {clock:6.2f} s: {given.count / total * 60e-6:.1f} million a minute")


if __name__ == "__main__":
    main()
