"""Benches of `softnum rtl bench`, simulated by Icarus Verilog."""

import shutil
import subprocess
from pathlib import Path

import pytest

from softnum.vectors import PackedSpec, check, mixed_plan, packed_plan, plan, write
from softnum.vectors.benches.folder import write_bench
from softnum.vectors.benches.handshakes import handshake_named
from softnum.vectors.benches.ports import read_design
from softnum.vectors.benches.roles import wiring_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rtl"


def simulation_in(folder):
    """What writes a bench and answers vectors with it: (what it printed, its exit code, the file of answers)."""
    for tool in ("iverilog", "vvp", "yosys"):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")

    def run(text, sources, spec, handshake, count=300, parameters=None, plusargs=(), **options):
        sources = [EXAMPLES / name for name in sources]
        if text:
            sources.insert(0, folder / "wrapper.v")
            sources[0].write_text(text)
        design = read_design(sources, parameters=parameters, reader="yosys")
        wiring = wiring_of(design, spec, handshake_named(handshake), **options)
        write_bench(folder / "bench", wiring, sources, parameters=parameters)
        write(_planned(spec, count), folder / "v.txt")
        built = ["iverilog", "-g2012", "-I", ".", "-s", f"tb_{design.top}", "-o", "tb", *sources, f"tb_{design.top}.sv"]
        subprocess.run(built, check=True, cwd=folder / "bench")
        words = ["vvp", "-n", "tb", f"+in={folder / 'v.txt'}", f"+out={folder / 'out.txt'}", *plusargs]
        done = subprocess.run(words, cwd=folder / "bench", capture_output=True, text=True)
        return done.stdout + done.stderr, done.returncode, folder / "out.txt"

    return run


def _planned(spec, count: int):
    if isinstance(spec, PackedSpec):
        return packed_plan(spec.part, spec.lanes, count=count)
    return mixed_plan(spec.parts, count=count) if spec.op == "mixed" else plan(spec, count=count)


def right(run, count=300):
    """What `check` says of the answers of a simulation that went through."""
    said, code, answers = run
    assert code == 0 and f"{count} vectors answered" in said, said
    return check(answers)
