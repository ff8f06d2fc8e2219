"""examples/rtl-project: make verify on designs of our own, right and wrong ones, and on cvfpu where its sources are."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "examples" / "rtl-project"
OWN = ROOT / "examples" / "rtl"


@pytest.fixture
def made(tmp_path):
    """Run make in a copy of the project: (exit code, what it printed)."""
    for tool in ("make", "iverilog", "yosys"):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    copy = shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("build"))
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "FPU", "SIM", "DESIGN")}

    def run(*words):
        variables = (f"RTL={tmp_path}", f"SOFTNUM={sys.executable} -m softnum", f"PYTHON={sys.executable}")
        command = ["make", "-C", str(copy), *variables, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout + done.stderr

    run.build = copy / "build"
    return run


def test_a_right_unit_a_wrong_one_and_one_that_does_not_compile(made, tmp_path):
    shutil.copy(OWN / "fp8_multiply.v", tmp_path)
    (tmp_path / "fp8_add.v").write_text("module fp8_add(input [7:0] a, b, output [7:0] result);  // no end & <\n")
    words = ["verify", "SIM=icarus", "CASES=half add", "COUNT=500"]
    code, said = made(*words, "BUG=3")
    assert code == 2 and said.rstrip().endswith("Error 1") and "2 of 2 cases failed: half add" in said, said
    assert re.search(r"half +500 +\d+ of \d+  \d+ differ: truncation", said), said
    assert re.search(r"add +0 +0 of 0  error: no answers to check", said), said
    junit = ElementTree.parse(made.build / "own" / "junit.xml").getroot()
    assert (junit.get("tests"), junit.get("failures"), junit.get("errors")) == ("2", "1", "1")
    assert junit.find(".//testcase[@classname='own.half']/failure").get("type") == "truncation"
    assert "fp8_add.v" in junit.find(".//testcase[@classname='own.add']/error").text
    (sarif,) = json.loads((made.build / "own" / "report.sarif").read_text())["runs"]
    assert sarif["results"][0]["ruleId"] == "truncation"
    assert sarif["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("build/own/h")
    assert 'href="half/report.html"' in (made.build / "own" / "index.html").read_text()

    vectors = (made.build / "own" / "half" / "vectors.txt").stat().st_mtime_ns
    code, said = made(*words[:2], "CASES=half", words[3])  # the fault is taken away: another bench, the same vectors
    assert code == 0 and re.search(r"half +500 .*all results and flags equal", said), said
    assert (made.build / "own" / "half" / "vectors.txt").stat().st_mtime_ns == vectors
    assert ElementTree.parse(made.build / "own" / "junit.xml").getroot().get("failures") == "0"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["FPU=/nowhere"], "no src/fpnew_fma.sv there"),
        (["DESIGN=other"], "there are cvfpu own"),
        (["verify", "SIM=vcs"], "SIM=vcs does not read own; state one of icarus verilator"),
        (["verify", "CASES=multiply divide"], "divide is no case of designs/own.mk"),
        (["verify"], "fp8_add.v, which designs/own.mk names"),
    ],
)
def test_what_cannot_be_run(made, words, says):
    code, said = made(*words)
    assert code == 2 and says in said, said


def test_its_texts(made):
    code, said = made("help")
    assert code == 0 and "make verify" in said and "DESIGN=own" in said
    sample = (PROJECT / "ci" / "github-actions.yml").read_text()
    for path in ("junit.xml", "report.sarif", "index.html"):
        assert f"build/${{{{ matrix.design }}}}/{path}" in sample
    designs = {path.stem for path in (PROJECT / "designs").glob("*.mk")}
    assert set(re.findall(r"design: (\w+)", sample)) <= designs


@pytest.mark.slow  # Verilator compiles three designs
@pytest.mark.skipif(not os.environ.get("SOFTNUM_RTL"), reason="SOFTNUM_RTL names no folder of designs")
def test_cvfpu(made):
    pytest.importorskip("pyslang")
    if shutil.which("verilator") is None:
        pytest.skip("not installed: verilator")
    fpu = f"FPU={os.environ['SOFTNUM_RTL']}/cvfpu"
    code, said = made("-j2", "verify", fpu, "CASES=fma-rne fma-rup fnmsub-rne", "REGISTERS=2")
    assert code == 0 and said.count("20000   1") == 3, said
    code, said = made("verify", fpu, "CASES=fma-rtz", "BUG=1")
    assert code == 2 and "differ: wrong-mode" in said, said
