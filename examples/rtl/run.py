"""Simulate a design against softnum: vectors out, build, simulate, answers checked.

python examples/rtl/run.py fp8_multiply --simulator verilator --count 1000000
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from softnum.cli import build_app

HERE = Path(__file__).resolve().parent
SIMULATORS = {"icarus": ("iverilog", "vvp"), "verilator": ("verilator", "make")}


@dataclass(frozen=True)
class Design:
    """A design: its module, the faults that its parameter BUG plants, and what softnum is asked for.

    ``bugs`` name the cause that ``softnum vectors check`` finds for each; ``question`` are options of
    ``softnum vectors generate``.
    """

    module: str
    bugs: dict[int, str]
    question: str
    parameters: dict[str, int] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    bench: str = ""

    @property
    def top(self) -> str:
        """The bench."""
        return self.bench or f"tb_{self.module}"

    @property
    def sources(self) -> list[Path]:
        """The bench and the modules under it."""
        return [HERE / f"{name}.v" for name in (self.top, self.module, *self.modules)]


_MULTIPLY = {
    1: "missing-sticky", 2: "wrong-tie", 3: "truncation", 4: "flush-to-zero", 5: "overflow-to-max"
}  # fmt: skip
_STOCHASTIC = {1: "random-reversed", 2: "flush-to-zero", 3: "random-ignored", 4: "random-complemented"}
_FUSED = {1: "alignment-bits", 2: "c-ignored", 3: "wrong-mode", 4: "nan-payload", 5: "flush-to-zero"}
_SR = "--op convert --result-format e5m2 --rounding stochastic --stochastic-bits 8"
_DOT = """--op dot --unit "FusedDotUnit(4, {}, 'binary32', operand='{}')" --length 4 --with-c"""
# Fault 4 is found too, but its cause has no name.
_FLOAT_MAC = {1: "truncation", 2: "wrong-tie", 3: "accumulator-not-cleared", 5: "flush-to-zero"}
_BFLOAT16 = {"EXP_A": 8, "MAN_A": 7, "IEEE_A": 1, "EXP_B": 8, "MAN_B": 7, "IEEE_B": 1}
_E5M3 = {"EXP_A": 5, "MAN_A": 3, "IEEE_A": 1, "EXP_B": 5, "MAN_B": 3, "IEEE_B": 1}
_BINARY32, _E6M5 = {"ACC_EXP": 8, "ACC_MAN": 23}, {"ACC_EXP": 6, "ACC_MAN": 5}


def _float_mac(operand: str, accumulator: str, parameters: dict[str, int], fma: bool = False) -> Design:
    """float_mac, by the steps of sums or by single steps from any accumulator: edges crossed with each other."""
    steps = f'--op mac --unit "MadUnit({accumulator!r}, operand={operand!r})" --length 32'
    single = f"--op fma --format {operand},{operand},{accumulator} --result-format {accumulator}"
    return Design(
        "float_mac", _FLOAT_MAC, single if fma else steps, parameters, bench="tb_float_mac_fma" if fma else ""
    )


DESIGNS = {
    "fp8_multiply": Design("fp8_multiply", _MULTIPLY, "--op multiply --format e4m3fn"),
    "fp8_multiply_e5m2": Design(
        "fp8_multiply", _MULTIPLY, "--op multiply --format e5m2", parameters={"EXP": 5, "MAN": 2, "IEEE": 1}
    ),
    "fp8_multiply_binary16": Design(
        "fp8_multiply", _MULTIPLY, "--op multiply --format binary16", parameters={"EXP": 5, "MAN": 10, "IEEE": 1}
    ),
    "fp8_mac": Design(
        "fp8_mac",
        {
            1: "truncation", 2: "chunk-length", 3: "accumulator-not-cleared", 4: "rounds-each-product",
            5: "flush-to-zero",
        },
        """--op mac --unit "MadUnit('e6m9', operand='e5m2', chunk=8)" --length 32""",
    ),
    "fixed_mac": Design(
        "fixed_mac",
        {1: "wrap-instead-of-saturate", 2: "accumulator-not-cleared", 3: "wrong-mode", 4: "wrong-tie"},
        """--op mac --unit "MadUnit('q8.6', operand='q4.4')" --length 32""",
    ),
    "stochastic_round": Design("stochastic_round", _STOCHASTIC, f"{_SR} --format e6m9", modules=("lfsr",)),
    "stochastic_round_binary16": Design(
        "stochastic_round", _STOCHASTIC, f"{_SR} --format binary16", parameters={"IN_EXP": 5, "IN_MAN": 10},
        modules=("lfsr",),
    ),
    "fused_dot4": Design("fused_dot4", _FUSED, _DOT.format(23, "binary16")),
    "fused_dot4_bfloat16": Design("fused_dot4", _FUSED, _DOT.format(23, "bfloat16"), {"EXP": 8, "MAN": 7}),
    "fused_dot4_e5m2": Design("fused_dot4", _FUSED, _DOT.format(25, "e5m2"), {"EXP": 5, "MAN": 2, "F": 25}),
    "float_mac": _float_mac("e4m3fn", "e6m9", {}),
    "float_mac_fma": _float_mac("e4m3fn", "e6m9", {}, fma=True),
    "float_mac_e6m5": _float_mac("e4m3fn", "e6m5", _E6M5, fma=True),
    "float_mac_binary32": _float_mac("e4m3fn", "binary32", _BINARY32, fma=True),
    "float_mac_e5m3": _float_mac("e5m3", "e6m9", _E5M3, fma=True),
    "float_mac_e5m3_e6m5": _float_mac("e5m3", "e6m5", _E5M3 | _E6M5, fma=True),
    "float_mac_e5m3_binary32": _float_mac("e5m3", "binary32", _E5M3 | _BINARY32, fma=True),
    "float_mac_bfloat16": _float_mac("bfloat16", "binary32", _BFLOAT16 | _BINARY32, fma=True),
}  # fmt: skip


class RunError(Exception):
    """Something that keeps a run from an answer."""


def command(*words) -> str:
    """Run a program and give what it prints; RunError with its last lines where it fails."""
    words = [str(word) for word in words]
    print("$", shlex.join(words), flush=True)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        lines = "\n".join(done.stdout.splitlines()[-20:])
        raise RunError(f"{words[0]} ended with exit code {done.returncode}:\n{lines}")
    return done.stdout


def softnum_command(*words) -> None:
    """Run softnum's own program, here and now. Differences (exit code 1) are no error."""
    words = [str(word) for word in words]
    print("$ softnum", shlex.join(words), flush=True)
    if build_app()(words, standalone_mode=False) not in (None, 0, 1):
        raise RunError("softnum could not do this")


def generate(design: Design, path: Path, count: int, seed: int) -> None:
    """Write the vectors."""
    question = shlex.split(design.question)
    softnum_command("vectors", "generate", *question, "--count", count, "--seed", seed, "-o", path)


def build(design: Design, simulator: str, folder: Path, bug: int) -> list[str]:
    """Compile the bench; the words that start the simulation."""
    for tool in SIMULATORS[simulator]:
        if shutil.which(tool) is None:
            raise RunError(f"{simulator} needs the program {tool}, which is not on PATH; try another --simulator")
    parameters = {**design.parameters, "BUG": bug}
    folder.mkdir(parents=True, exist_ok=True)
    if simulator == "icarus":
        program = folder / "bench.vvp"
        stated = [f"-P{design.top}.{name}={value}" for name, value in parameters.items()]
        command("iverilog", "-g2005", "-I", HERE, "-s", design.top, *stated, "-o", program, *design.sources)
        return ["vvp", "-n", str(program)]
    version = re.search(r"[\d.]+", command("verilator", "--version"))[0]
    runtime = folder.parent / f"runtime-{version}"  # the objects that all designs share
    stated = [f"-G{name}={value}" for name, value in parameters.items()]
    ready = [Path(shutil.copy2(file, folder)).name for file in sorted(runtime.glob("*.o"))]
    flags = ["--MAKEFLAGS", " ".join(f"-o {name}" for name in ready)] if ready else []
    command(
        "verilator", "--binary", "-O3", "-Wno-fatal", f"-I{HERE}", "--top-module", design.top, *stated, *flags,
        "--Mdir", folder, *design.sources,
    )  # fmt: skip
    if not ready:
        made = runtime.with_suffix(f".{os.getpid()}")
        made.mkdir()
        for file in folder.glob("verilated*.o"):
            shutil.copy2(file, made)
        if not runtime.exists():
            made.rename(runtime)
    return [str(folder / f"V{design.top}")]


def simulate(words: list[str], vectors: Path, answers: Path, plusargs=()) -> float:
    """Answer the vectors; the seconds it took. The file of answers appears when it is complete."""
    part = answers.with_name(answers.name + ".part")
    words = [*words, f"+in={vectors}", f"+out={part}", *plusargs]
    print("$", shlex.join(words), flush=True)
    start, expected = time.perf_counter(), vectors.stat().st_size
    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} % simulated"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=expected)
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            while process.poll() is None:
                time.sleep(0.02)
                bar.update(task, completed=part.stat().st_size if part.exists() else 0)
            said = process.stdout.read()
    if process.returncode or not part.exists() or not part.stat().st_size:
        raise RunError(f"the simulation ended with exit code {process.returncode}:\n{said}")
    part.replace(answers)
    return time.perf_counter() - start


def check(answers: Path, report: Path) -> dict:
    """Judge the answers: the report."""
    softnum_command("vectors", "check", answers, "--max-failures", 3, "-o", report)
    return json.loads(report.read_text())


def run(
    name: str, simulator: str, count: int, seed: int = 0, bug: int = 0, work: Path = Path("build/rtl"), plusargs=()
):
    """Vectors, build, simulation, check: the report, with the seconds of the simulation."""
    design = DESIGNS[name]
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    tag = f"{simulator}-bug{bug}" if bug else simulator
    vectors, answers, report = folder / "vectors.txt", folder / f"answers-{tag}.txt", folder / f"report-{tag}.json"
    generate(design, vectors, count, seed)
    words = build(design, simulator, work / simulator / f"{name}-{bug}", bug)
    seconds = simulate(words, vectors, answers, plusargs)
    with open(vectors, "rb") as asked, open(answers, "rb") as given:
        wanted, got = (sum(not line.startswith(b"#") for line in file) for file in (asked, given))
    if wanted != got:
        raise RunError(f"{answers} holds {got} answers to {wanted} vectors")
    return {**check(answers, report), "seconds": seconds}


def main(
    design: Annotated[str, typer.Argument(help=f"One of {', '.join(DESIGNS)}; or all.")],
    simulator: Annotated[str, typer.Option("--simulator", "-s", help="icarus or verilator.")] = "icarus",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many vectors.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the random vectors. Same options, same vectors.")] = 0,
    bug: Annotated[int, typer.Option(min=0, help="Plant this fault; each design lists its own. 0: none.")] = 0,
    lfsr: Annotated[
        bool, typer.Option("--lfsr", help="stochastic_round: random bits from a shift register, not the vectors.")
    ] = False,
    work: Annotated[Path, typer.Option(help="Folder of vectors, builds, answers and reports.")] = Path("build/rtl"),
) -> None:
    """Simulate a design on test vectors and check every answer bit by bit.

    \b
      python examples/rtl/run.py fp8_multiply
      python examples/rtl/run.py fp8_multiply --bug 1
      python examples/rtl/run.py fp8_mac --simulator verilator --count 1000000
      python examples/rtl/run.py stochastic_round --lfsr
      python examples/rtl/run.py all --simulator verilator

    Each command that is run is shown. Exit codes: 0 all answers equal, 1 differences, 2 no answer.
    """
    try:
        names = list(DESIGNS) if design == "all" else [design]
        if design != "all" and design not in DESIGNS:
            raise RunError(f"no design {design!r}; there are {', '.join(DESIGNS)}, and all")
        if simulator not in SIMULATORS:
            raise RunError(f"no simulator {simulator!r}; there are {', '.join(SIMULATORS)}")
        for name in names:
            if bug and bug not in DESIGNS[name].bugs:
                known = "; ".join(f"{k}: {cause}" for k, cause in DESIGNS[name].bugs.items())
                raise RunError(f"{name} has no --bug {bug}; it has {known}")
            if lfsr and DESIGNS[name].module != "stochastic_round":
                raise RunError(f"{name} takes no random bits: --lfsr is for stochastic_round")
        reports = {
            name: run(name, simulator, count, seed, bug, work, ["+lfsr"] if lfsr else []) for name in names
        }  # fmt: skip
    except RunError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    for name, report in reports.items():
        rate = report["vectors"] / report["seconds"]
        print(f"{name}, {simulator}: {report['failures']} of {report['vectors']} vectors differ, {rate:,.0f} vectors/s")
    raise typer.Exit(any(report["failures"] for report in reports.values()))


if __name__ == "__main__":
    typer.run(main)
