"""Mutants of the designs of examples/rtl, made by Yosys (mutate): what check says of them, and whether it holds.

python -m tests.support.rtl_mutants [SEED [NUMBER]] prints a table: of each cause that check is sure of, how much it
predicts right of what it claims on vectors that check has not seen.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from softnum.vectors import check, plan, write
from softnum.vectors.checks.comparison import comparison_of
from softnum.vectors.checks.flag_rules import ruled, rules_of
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.files.dialects import open_reader
from tests.support.rtl_edits import DESIGNS, EXAMPLES, ROOT, answered

MUTATED = ("fp8_multiply", "fp8_multiply_e5m2", "fp8_multiply_binary16", "stochastic_round", "fused_dot4", "fp8_mac")
_COUNT = 12_000


def _yosys(script: str, folder: Path) -> None:
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def mutants(name: str, folder: Path, number: int, seed: int) -> list[str]:
    """The commands of Yosys that make so many mutants of a design, which lies in the folder as base.il."""
    design = DESIGNS[name]
    module = design.sources[0].partition(".")[0]
    stated = "".join(f"chparam -set {p.replace('=', ' ')} {module}; " for p in design.parameters)
    files = " ".join(str(EXAMPLES / source) for source in design.sources)
    _yosys(
        f"read_verilog {files}; {stated}hierarchy -check -top {module}; proc; flatten; opt_clean; "
        f"write_ilang base.il; mutate -list {number} -seed {seed} -none -o list",
        folder,
    )
    return [line for line in (folder / "list").read_text().splitlines() if "-mode none" not in line]


def simulator(name: str, command: str, folder: Path) -> list[str]:
    """The words that run a mutant."""
    design = DESIGNS[name]
    module, top = design.sources[0].partition(".")[0], design.bench.partition(".")[0]
    _yosys(f"read_ilang base.il; {command}; write_verilog -noattr mutant.v", folder)
    text = (EXAMPLES / design.bench).read_text()
    text = re.sub(rf"\b{module} #\((?:[^()]|\([^()]*\))*\) dut", f"{module} dut", text)
    (folder / "bench.v").write_text(text)
    others = [EXAMPLES / source for source in design.sources[1:]]
    stated = [f"-P{top}.{p}" for p in design.parameters]
    words = [
        "iverilog",
        "-g2005",
        "-I",
        EXAMPLES,
        "-s",
        top,
        *stated,
        "-o",
        "mutant.vvp",
        "bench.v",
        "mutant.v",
        *others,
    ]
    done = subprocess.run([str(w) for w in words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return ["vvp", "-n", str(folder / "mutant.vvp")]


def borne_out(report, answers: Path) -> list[tuple[str, int, int]]:
    """Of each cause that the report is sure of: how many results of other answers it predicts, of how many that it
    says differ from what they were without it."""
    other = CheckReport(str(answers), report.spec)
    comparison = comparison_of(other)
    with open(answers, "rb") as file:
        reader = open_reader(file, str(answers), None)
        for rows in reader.rows(report.spec, unknown="mark"):
            comparison.add(rows.lines, rows.block, rows.unknown)
        comparison.end()
    evidence = comparison.keeper.all()
    evidence = evidence.take(~evidence.unknown)
    predict = comparison.predictions()
    sure = [c for c in report.causes if c.confident]
    flags = {"tininess", "flags"}
    of_results = [c for c in sure if c.changes and not flags & set(c.changes)]
    together = {key: value for c in of_results for key, value in c.changes.items()}
    results = predict(together, evidence)[0] if together else evidence.want.result
    out = []
    for cause in sure:
        if cause.cause == "unknown-bits":  # what is seen, not predicted
            continue
        if not cause.changes:
            raise AssertionError(f"{cause.cause} has no model")
        if cause in of_results:
            rest = {k: v for c in of_results if c is not cause for k, v in c.changes.items()}
            without = predict(rest, evidence)[0] if rest else evidence.want.result
            claimed, right = results != without, results == evidence.got.result
        else:
            plain = evidence.want.flags
            made = plain
            for base in ({}, together):
                if "tininess" in cause.changes:
                    made = predict(base | cause.changes, evidence)[1]
                else:
                    plain = predict(base, evidence)[1] if base else evidence.want.flags
                    tiny = next((c.changes for c in sure if "tininess" in c.changes), None)
                    plain = predict(base | tiny, evidence)[1] if tiny else plain
                    made = ruled(plain, cause.changes["flags"], rules_of(report.spec, evidence))
                if not together or np.count_nonzero(made == evidence.got.flags) > len(evidence) // 2:
                    break
            claimed, right = made != plain, made == evidence.got.flags
        if claimed.ndim > 1:
            claimed, right = claimed.any(1), right.all(1)
        out.append(
            (f"{cause.cause}: {cause.detail}", int(np.count_nonzero(claimed & right)), int(np.count_nonzero(claimed)))
        )
    return out


def judged(name: str, number: int, seed: int, most: int):
    """(mutant, report, what holds) of up to so many mutants of a design that can be told from it."""
    design = replace(DESIGNS[name], count=_COUNT)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as place:
        folder = Path(place)
        files = [folder / f"vectors{i}.txt" for i in range(2)]
        for i, file in enumerate(files):
            write(plan(design.spec, count=design.count, seed=10 + i), file)
        for command in mutants(name, folder, number, seed):
            if not most:
                return
            words = simulator(name, command, folder)
            answers = [folder / f"answers{i}.txt" for i in range(2)]
            for file, answer in zip(files, answers, strict=True):
                answered(words, file, answer)
            report = check(answers[0])
            if not report.failures:
                continue
            most -= 1
            yield command, report, borne_out(report, answers[1])


def held(seed: int = 1, number: int = 20, most: int = 10):
    """(mutants, causes, those of them that do not predict 99 % of what they claim)"""
    seen, causes, broken = 0, 0, []
    for name in MUTATED:
        for command, _, found in judged(name, number, seed, most):
            seen += 1
            causes += len(found)
            broken += [(name, command, *row) for row in found if row[1] < 0.99 * row[2]]
    return seen, causes, broken


def main(seed: int = 1, number: int = 20) -> None:
    seen = named = claims = wrong = 0
    for name in MUTATED:
        for command, report, found in judged(name, number, seed, 10):
            seen += 1
            named += bool(found)
            mode = re.search(r"-mode (\w+)", command)[1]
            causes = [(f"{c.cause}: {c.detail}", c.explains, c.of, c.confident, c.held) for c in report.causes]
            print(name, mode, f"{report.failures} of {report.vectors}", *causes, sep=" | ")
            for text, right, of in found:
                claims += 1
                bad = right < 0.99 * of
                wrong += bad
                print(f"    {'BAD' if bad else 'good'} {text}: {right} of {of}", flush=True)
    print(f"{seen} mutants, {named} with a cause; {claims} causes, {wrong} not borne out")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
