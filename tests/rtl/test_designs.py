"""The designs of examples/rtl, simulated: every answer is softnum's, and every planted fault is caught."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "rtl"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One folder for all runs, so that what Verilator's programs share is compiled once."""
    return tmp_path_factory.mktemp("rtl")


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def load():
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module("run")
    finally:
        sys.path.remove(str(EXAMPLES))


rtl = load()
SIMULATORS = sorted(rtl.SIMULATORS)
SLOW = {("fp8_multiply", "verilator"), ("float_mac", "verilator")}
MODULES = sorted({"mitchell_multiply", *(name for d in rtl.DESIGNS.values() for name in (d.module, *d.modules))})
PLAIN = [name for name, design in rtl.DESIGNS.items() if name == design.module]
OF_8_BITS = ("fp8_multiply", "fp8_multiply_e5m2")  # whose pairs of operands are all tried
PAIRS = 1 << 16
RARE = {f"float_mac_{name}" for name in ("e6m5", "binary32", "e5m3", "e5m3_binary32")}  # others cover what is theirs
COUNTS = {"fp8_mac": 20_000, "float_mac": 2_000}  # of vectors, where a fault is looked for
BUGS = [(name, bug) for name in PLAIN for bug in rtl.DESIGNS[name].bugs]


def simulate(name, simulator, work, count, **options):
    needs(*rtl.SIMULATORS[simulator])
    report = rtl.run(name, simulator, count, work=work, **options)
    assert 0 < report["vectors"] <= count
    return report


@pytest.mark.parametrize(
    ("name", "simulator"),
    [  # these take as long as all others
        pytest.param(name, simulator, marks=pytest.mark.slow if (name, simulator) in SLOW else ())
        for name in PLAIN
        for simulator in SIMULATORS
    ],
)
def test_every_answer_is_softnums(name, simulator, work):
    count = PAIRS if name in OF_8_BITS else 5_000 if name == "float_mac" else 20_000
    report = simulate(name, simulator, work, count, seed=1)
    assert report["failures"] == 0
    assert report["vectors"] == count


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in RARE else ()) for name in rtl.DESIGNS if name not in PLAIN],
)
def test_other_formats(name, work):
    count = PAIRS if name in OF_8_BITS else 2_000 if name.startswith("float_mac") else 10_000
    report = simulate(name, "icarus", work, count, seed=1)
    assert report["failures"] == 0
    assert report["vectors"] == count


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("name", rtl.DESIGNS)
@pytest.mark.slow
def test_a_million_vectors(name, simulator, work):
    report = simulate(name, simulator, work, 1_000_000, seed=2)
    assert report["failures"] == 0
    assert report["vectors"] == (PAIRS if name in OF_8_BITS else 1_000_000)


@pytest.mark.slow
@cases(("name", "bug"), BUGS)
def test_a_planted_fault_is_caught_and_named(name, bug, work):
    report = simulate(name, "icarus", work, COUNTS.get(name, 6_000), bug=bug)
    assert report["failures"] > 0
    assert [cause["cause"] for cause in report["causes"]] == [rtl.DESIGNS[name].bugs[bug]]


@pytest.mark.parametrize(("name", "bug"), BUGS)
@pytest.mark.slow
def test_verilator_shows_the_same_fault(name, bug, work):
    report = simulate(name, "verilator", work, 100_000, bug=bug)
    assert report["failures"] > 0
    assert [cause["cause"] for cause in report["causes"]] == [rtl.DESIGNS[name].bugs[bug]]


def test_a_shift_register_feeds_the_random_bits(work):
    report = simulate("stochastic_round", "icarus", work, 20_000, plusargs=["+lfsr"])
    assert (report["vectors"], report["failures"]) == (20_000, 0)
    answers = (work / "stochastic_round" / "answers-icarus.txt").read_text().splitlines()
    words = [int(line.split()[1], 16) for line in answers if not line.startswith("#")]
    state, mine = 0x1D872B41, []
    for _ in words:
        for _ in range(8):
            state = state >> 1 ^ (0x80200003 if state & 1 else 0)
        mine.append(state & 0xFF)
    assert words == mine


def yosys(module, script):
    needs("yosys")
    words = ["yosys", "-q", "-p", f"read_verilog {module}.v; hierarchy -check -top {module}; {script}"]
    done = subprocess.run(words, cwd=EXAMPLES, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("module", MODULES)
def test_yosys_finds_no_latch_and_no_loose_or_doubly_driven_net(module):
    yosys(module, "proc; select -assert-none t:$dlatch t:$adlatch; check -assert")


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.slow
def test_yosys_synthesises_it(module):
    yosys(module, "synth -noabc; select -assert-none t:$_DLATCH_*; select -assert-any t:*; check -assert")


@pytest.mark.parametrize("module", MODULES)
def test_verilator_has_no_warning(module):
    needs("verilator")
    words = ["verilator", "--lint-only", "-Wall", "-Wno-UNUSED", f"{module}.v"]
    done = subprocess.run(words, cwd=EXAMPLES, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no design 'nothing'; there are fp8_multiply, "),
        (["fixed_mac", "--simulator", "modelsim"], "no simulator 'modelsim'; there are icarus, verilator"),
        (["fixed_mac", "--bug", "99"], "fixed_mac has no --bug 99; it has 1: wrap-instead-of-saturate; "),
        (["fixed_mac", "--lfsr"], "fixed_mac takes no random bits: --lfsr is for stochastic_round"),
    ],
)
def test_the_program_says_what_is_wrong(arguments, message, tmp_path):
    words = [sys.executable, EXAMPLES / "run.py", *arguments, "--work", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr


def test_the_program_reports_differences(tmp_path):
    needs("iverilog", "vvp")
    words = [sys.executable, EXAMPLES / "run.py", "fp8_multiply", "--bug", "2", "--count", "2000", "--work", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert "$ iverilog " in done.stdout and "fp8_multiply, icarus: " in done.stdout.splitlines()[-1]
    assert not list(tmp_path.rglob("*.part"))
