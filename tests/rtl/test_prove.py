"""softnum rtl prove: designs that are right, planted faults, pipelines, and what cannot be proved."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.vectors import Space, UnitSpec, VectorSpec, check
from softnum.vectors.formal import netlist as netlist_module
from softnum.vectors.formal import prove
from softnum.vectors.formal.exhaustion import exhaust
from softnum.vectors.formal.miter import miter_of
from softnum.vectors.formal.netlist import read_design
from softnum.vectors.formal.ports import wire
from softnum.vectors.formal.solvers import SOLVERS, installed
from softnum.vectors.formal.unrolling import Reset, unroll
from tests.support.cases import cases

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rtl"
ADD = VectorSpec.make("add", "e3m2")
#: a small adder: e3m2 has 12 bits of operands
SMALL = {"EXP": 3, "MAN": 2, "IEEE": 1}


@pytest.fixture(autouse=True)
def _yosys():
    if shutil.which("yosys") is None or shutil.which("yosys-abc") is None:
        pytest.skip("not installed: yosys")


@pytest.fixture(scope="module")
def read():
    """Designs, read once for all tests."""
    kept = {}

    def design(name, **parameters):
        key = name, *parameters.items()
        if key not in kept:
            kept[key] = read_design([EXAMPLES / f"{name}.v"], top=name, parameters=parameters)
        return kept[key]

    return design


@pytest.fixture
def reading(read, monkeypatch):
    """`prove` takes designs that were read before."""

    def again(sources, *, top, parameters, **_):
        return read(Path(sources[0]).stem, **(parameters or {}))

    monkeypatch.setattr("softnum.vectors.formal.proof.read_design", again)
    return [EXAMPLES / "fp8_add.v"]


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(a) for a in arguments], catch_exceptions=False)


def confirmed(found, tmp_path):
    """A counterexample is one by softnum's own check, too."""
    (tmp_path / "vector.txt").write_bytes(found.vector_file)
    report = check(tmp_path / "vector.txt")
    return found.equivalent is False and (report.vectors, report.failures) == (1, 1)


def test_the_example_multiplies_and_its_faults_are_shown(tmp_path):
    """By the command, with what it prints."""
    design, file = EXAMPLES / "fp8_multiply.v", tmp_path / "found.txt"
    command = ["rtl", "prove", design, "--op", "multiply", "--format", "e4m3fn"]
    done = softnum(*command)
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "fp8_multiply: equivalent to multiply e4m3fn, nearest_even, results and flags, all 65536"
    )
    done = softnum(*command, "--top", "fp8_multiply", "-P", "BUG=2", "-o", file)
    assert done.exit_code == 1 and done.stdout == file.read_text().splitlines()[-1] + "\n"
    assert "differs from multiply e4m3fn, nearest_even, " in done.stderr and "by exhaustion in" in done.stderr
    done = softnum("vectors", "check", file)
    assert done.exit_code == 1 and "1 of 1 vectors differ" in done.stdout


@cases("bug", (1, 4, 5))
def test_every_planted_fault_has_a_counterexample(bug, reading, tmp_path):
    found = prove(reading, ADD, top="fp8_add", parameters={**SMALL, "BUG": bug}, ties={"clk": "any"})
    assert confirmed(found, tmp_path) and found.method == "exhaustion"


def test_each_method_decides_both_ways(reading, tmp_path):
    for method in ("exhaustion", "cec", *(["smt"] if installed() else [])):
        for bug, answer in ((0, True), (2, False)):
            given = dict(top="fp8_add", parameters={**SMALL, "BUG": bug}, ties={"clk": "any"}, method=method)
            found = prove(reading, ADD, **given)
            assert found.equivalent is answer and found.method.startswith(method)
            assert answer or confirmed(found, tmp_path)
    assert found.vector is None or found.vector != found.right_vector


@cases("solver", SOLVERS)
@pytest.mark.slow
def test_each_solver_decides_both_ways(solver, tmp_path):
    if solver not in installed():
        pytest.skip(f"not installed: {SOLVERS[solver][0]}")
    for op, formats, bug in (("add", "e4m3fn", 0), ("add", "e4m3fn", 1)):
        found = prove([EXAMPLES / "fp8_add.v"], VectorSpec.make(op, formats), top="fp8_add", parameters={"BUG": bug},
                      ties={"clk": 0}, method="smt", solver=solver)  # fmt: skip
        assert found.equivalent is (bug == 0) and found.method == f"smt ({solver})"
        assert bug == 0 or confirmed(found, tmp_path)


CHUNKED = "ChunkedDotUnit(ExactDotUnit('e3m2fn', operand='e2m1fn'), 2, accumulator='e3m2fn')"


def test_a_dot_product_in_chunks(tmp_path):
    spec = UnitSpec.make("dot", CHUNKED, length=2)
    given = dict(top="chunk_dot", ties={"c": 0})
    found = prove([EXAMPLES / "chunk_dot.v"], spec, **given)
    assert (found.equivalent, found.method, found.patterns) == (True, "exhaustion", 1 << 16)
    found = prove([EXAMPLES / "chunk_dot.v"], spec, parameters={"BUG": 1}, method="cec", **given)
    assert confirmed(found, tmp_path)


BLOCKS = """
module block_dot #(parameter BUG = 0)(input [3:0] a, b, scale_a, scale_b, output [15:0] result);
    function signed [15:0] halves(input [3:0] x);
        reg [15:0] magnitude;
        begin
            magnitude = {14'd0, |x[2:1], x[0]} << (x[2] ? x[2:1] - 2'd1 : 2'd0);
            halves = x[3] ? -magnitude : magnitude;
        end
    endfunction
    assign result = halves(a) * halves(b) * halves(scale_a) * halves(BUG ? {1'b0, scale_b[2:0]} : scale_b);
endmodule
"""


def test_a_dot_product_of_blocks(tmp_path):
    design = tmp_path / "block_dot.v"
    design.write_text(BLOCKS)
    unit = "BlockDotUnit('q12.4', operand=BlockFormat('e2m1fn', 'e2m1fn', 2))"
    done = softnum("rtl", "prove", design, "--op", "dot", "--unit", unit, "--length", 1)
    assert (done.exit_code, "all 65536 operands; by exhaustion" in done.stdout) == (0, True)
    command = ["rtl", "prove", design, "--op", "dot", "--unit", unit, "--length", 1]
    command += ["--top", "block_dot", "-P", "BUG=1"]
    done = softnum(*command, "--method", "cec")
    assert done.exit_code == 1
    *_, scale_b, got = (int(word, 16) for word in done.stdout.split())
    right = int(re.search("right is (.*)", done.stderr)[1].split()[-1], 16)
    assert scale_b >= 8 and got == -right & 0xFFFF and got != right  # the sign is ignored
    done = softnum(*command, "--most-bits", 8)
    assert (done.exit_code, "simulation: a counterexample" in done.stderr) == (1, True)
    done = softnum(*command, "--method", "cec", "--out", tmp_path / "found.txt")
    given = softnum("vectors", "check", tmp_path / "found.txt")
    assert (done.exit_code, given.exit_code, "1 of 1" in given.stdout) == (1, 1, True), given.stdout
    for options, said in (
        (["--format", "e5m2"], "--format applies to single operations; for dot the unit states it: leave it out"),
        (["--unit", "BlockDotUnit('binary32', operand='nvfp4')"], "nvfp4 has a scale of the whole array"),
        (["--length", 65], "has a circuit of 1 to 64 products, got 65"),
    ):
        done = softnum(*command, *options)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_dot_products_of_many_operands(tmp_path):
    chunked = UnitSpec.make("dot", CHUNKED, length=4, with_c=True)
    found = prove([EXAMPLES / "chunk_dot.v"], chunked, top="chunk_dot", parameters={"CHUNKS": 2})
    assert found.equivalent and found.method == "cec"
    for bug in (1, 2, 3):
        given = dict(top="chunk_dot", parameters={"CHUNKS": 2, "BUG": bug})
        assert confirmed(prove([EXAMPLES / "chunk_dot.v"], chunked, **given), tmp_path)
    fused = UnitSpec.make("dot", "FusedDotUnit(4, 23, 'binary32', operand='e2m1')", length=4)
    given = dict(top="fused_dot4", ties={"c": 0})
    sources, small = [EXAMPLES / "fused_dot4.v"], {"EXP": 2, "MAN": 1}
    if "bitwuzla" in installed():
        found = prove(sources, fused, parameters=small, method="smt", solver="bitwuzla", **given)
        assert found.equivalent
    for bug in (3, 4, 5):  # to nearest: no sum of these needs it; subnormal operands
        found = prove(sources, fused, parameters={**small, "BUG": bug}, method="auto" if bug > 3 else "smt", **given)
        assert found.equivalent if bug == 3 else confirmed(found, tmp_path)


def test_a_pipeline_answers_after_its_latency_alone(reading, tmp_path):
    given = dict(top="fp8_add", parameters={**SMALL, "STAGES": 2})
    found = prove(reading, ADD, latency=2, **given)
    assert (found.equivalent, found.patterns, found.registers > 20) == (True, 4096, True)
    for latency in (1, 3):
        found = prove(reading, ADD, latency=latency, **given)
        assert confirmed(found, tmp_path) and found.method == "cec" and found.depends
        assert found.attempts[0].outcome.startswith("answers depend on former contents of registers")
    assert prove(reading, ADD, latency=3, hold=True, **given).equivalent  # operands that stay


def test_a_design_that_flushes_and_takes_random_bits(reading, tmp_path):
    given = dict(top="stochastic_round", parameters={"IN_EXP": 5, "IN_MAN": 6, "BITS": 4, "BUG": 2})
    sources = [EXAMPLES / "stochastic_round.v"]
    for flush, differing in ((None, 1776), ("subnormal", 240), ("after", 0)):
        spec = VectorSpec.make(
            "convert", "e5m6", out_fmt="e5m2", rounding="sr", stochastic_bits=4, flush_results=flush
        )  # fmt: skip
        found = prove(sources, spec, **given)
        assert (found.equivalent, found.differing, found.patterns) == (not differing, differing, 1 << 16)
        assert found.equivalent or confirmed(found, tmp_path)
    assert prove(sources, spec, method="cec", **given).equivalent
    found = prove(sources, VectorSpec.make("convert", "e5m6", out_fmt="e5m2", rounding="sr", stochastic_bits=4),
                  method="cec", **given)  # fmt: skip
    assert confirmed(found, tmp_path) and len(found.vector.split()) == 4


def test_a_design_is_proved_within_its_space(reading, tmp_path):
    """-0 + -0 is +0: right where no operand is zero."""
    space = Space.make(exponents="-2:3")
    for method in ("exhaustion", "cec", *(["smt"] if installed() else [])):
        given = dict(top="fp8_add", parameters={**SMALL, "BUG": 2}, ties={"clk": 0}, method=method)
        inside = VectorSpec.make("add", "e3m2", space=space)
        assert prove(reading, inside, **given).equivalent
        found = prove(reading, VectorSpec.make("add", "e3m2", space=Space.make(no_nan=True)), **given)
        assert confirmed(found, tmp_path) and found.vector == "20 20 00 00"
        assert method != "exhaustion" or (found.differing, found.patterns) == (1, 58 * 58)
    with pytest.raises(ValueError, match="only ties is of vectors' results: a proof leaves out operands alone"):
        prove(reading, VectorSpec.make("add", "e3m2", space=Space.make(only="ties")), **given)


def test_a_posit_multiplier(reading, tmp_path):
    """And the definition of posits, by cec, shows what the core shows."""
    sources = [EXAMPLES / "posit_multiply.v"]
    assert prove(sources, VectorSpec.make("multiply", "posit8"), top="posit_multiply").equivalent
    small = VectorSpec.make("multiply", "posit6_es1")
    for method, bug in (("cec", 0), ("cec", 2), ("exhaustion", 2)):
        parameters = {"N": 6, "ES": 1, "BUG": bug}
        found = prove(sources, small, top="posit_multiply", parameters=parameters, method=method)
        assert found.equivalent if not bug else confirmed(found, tmp_path)
    assert found.vector == "01 01 00 00"


def test_a_step_of_a_unit_from_what_its_register_holds(read, reading, tmp_path):
    spec = VectorSpec.make("fma", ("q4.4", "q4.4", "q8.6"), out_fmt="q8.6")
    given = dict(
        top="fixed_mac", ports={"c": "acc", "result": "acc"}, ties={"enable": 1, "first": 0, "reset": 0}, latency=1
    )
    found = prove([EXAMPLES / "fixed_mac.v"], spec, parameters={"BUG": 3}, **given)
    assert confirmed(found, tmp_path) and found.method == "simulation" and found.wiring.flags is None
    design = read("fixed_mac")
    wiring = wire(design, spec, given["ports"], given["ties"])
    assert miter_of(spec, unroll(design, wiring, 1)).operand_bits == 30
    multiply = VectorSpec.make("multiply", "q4.4", out_fmt="q8.6")  # the first step of a sum
    first = wire(design, multiply, {"result": "acc"}, {"enable": 1, "first": 1, "reset": 0})
    found = exhaust(multiply, unroll(design, first, 1))
    assert (found.patterns, found.differing, found.decided) == (65536, 0, True)
    after = wire(design, multiply, {"result": "acc"}, {"enable": 1, "first": 0}, controls=("reset",))
    found = exhaust(multiply, unroll(design, after, 1, reset=Reset("reset")))  # and the first after a reset
    assert (found.differing, found.decided) == (0, True)


def test_a_step_of_a_narrow_unit(reading, tmp_path):
    """Of a product that is exact, and of one that is rounded first."""
    sizes = {f"{name}_{side}": value for side in "AB" for name, value in {"EXP": 2, "MAN": 1, "IEEE": 1}.items()}
    given = dict(
        top="float_mac", parameters={**sizes, "ACC_EXP": 3, "ACC_MAN": 2}, ports={"c": "sum", "result": "sum"},
        ties={"enable": 1, "first": 0, "reset": 0}, latency=1,
    )  # fmt: skip
    sources = [EXAMPLES / "float_mac.v"]
    right = UnitSpec.make("dot", "MadUnit('e3m2', operand='e2m1')", length=1, with_c=True)
    wrong = UnitSpec.make("dot", "MadUnit('e3m2', operand='e2m1', product='e2m1')", length=1, with_c=True)
    for method in ("exhaustion", "cec"):
        assert prove(sources, right, method=method, **given).equivalent
        assert confirmed(prove(sources, wrong, method=method, **given), tmp_path)


def test_a_word_of_two_elements(tmp_path):
    file = verilog(tmp_path, "assign y = a[5:0];", "input [7:0] a, b, output [5:0] y")
    spec = UnitSpec.make("dot", "ExactDotUnit('e3m2', operand='e2m1')", length=2)
    found = [prove([file], spec, most_bits=most, method=method)
             for most, method in ((16, "exhaustion"), (4, "auto"), (4, "cec"))]  # fmt: skip
    assert [f.method for f in found] == ["exhaustion", "simulation", "cec"] and found[0].patterns == 1 << 16
    assert all(confirmed(f, tmp_path) for f in found)


def verilog(folder, body, ports="input [5:0] a, b, output [5:0] y"):
    (folder / "m.v").write_text(f"module m({ports}); {body} endmodule\n")
    return folder / "m.v"


CLOCKED = "input c, d, input [5:0] a, b, output reg [5:0] y"


@cases(
    ("body", "ports", "message"),
    [
        ("wire [5:0] t = y ^ a; assign y = t + b;", None, "m: a combinational loop through m.v:1"),
        ("always @* if (a[0]) y = b;", "input [5:0] a, b, output reg [5:0] y", r"\$_DLATCH_P_ at m.v.* a latch"),
        ("assign y = a", None, "m.v: Yosys does not read it: .*syntax error"),
        ("assign y = a;", "input [5:0] a, b, output [4:0] y", "which output of 6 bits is result"),
        ("assign y = a;", "input [4:0] a, b, output [5:0] y", "which input of 6 bits is a"),
        ("assign y = a;", "input [5:0] a, b, input [1:0] mode, output [5:0] y", r"inputs mode\[2\] are no operands"),
        ("reg [5:0] t; always @(posedge c) t <= a; always @(posedge d) y <= t;", CLOCKED, "registers have 2 clocks"),
        ("always @(posedge (c & d)) y <= a;", CLOCKED, "the clock of m.v.* is no input: gated clocks are not proved"),
    ],
)
def test_what_has_no_one_answer_is_an_error(body, ports, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        prove([verilog(tmp_path, body, *([ports] if ports else []))], ADD)


def test_an_undefined_value_is_no_answer(tmp_path):
    """Neither where it is the answer, nor where it does not matter."""
    for body, answer, method in (
        ("assign y = a[0] ? 6'bx : b;", False, "cec"),
        ("wire never = a[1:0] == 2'd1 && a[1:0] == 2'd2; assign y = never ? 6'bx : b;", True, "cec"),
        ("wire [5:0] t; assign y = (a[0] & ~a[0]) ? t : b;", True, "exhaustion"),
    ):
        spec = VectorSpec.make("convert", "e3m2", out_fmt="e3m2")
        found = prove([verilog(tmp_path, body)], spec, ports={"a": "b"}, ties={"a": "any"}, any_nan=True)
        assert (found.equivalent, found.method) == (answer, method)
        assert answer or confirmed_any_nan(found, tmp_path)


def confirmed_any_nan(found, tmp_path):
    (tmp_path / "vector.txt").write_bytes(found.vector_file)
    return check(tmp_path / "vector.txt", any_nan=True).failures == 1 and bool(found.depends)


def test_time_that_runs_out_proves_nothing(reading, monkeypatch):
    monkeypatch.setattr("softnum.vectors.formal.exhaustion._CHUNK", 64)
    arguments = ["rtl", "prove", reading[0], "--op", "add", "--format", "e3m2", "--top", "fp8_add", "--tie", "clk=0",
                 *(f"-P{n}={v}" for n, v in SMALL.items()), "--timeout", "1e-9", "--method"]  # fmt: skip
    done = softnum(*arguments, "exhaustion")
    assert (
        done.exit_code == 2 and "not proved to be add e3m2" in done.stdout and "did not end in 1e-09 s" in done.stdout
    )
    monkeypatch.setattr("softnum.vectors.formal.checking._SPARE", 0.0)
    assert softnum(*arguments, "cec").exit_code == 2


@cases(
    ("options", "message"),
    [
        (["--format", "e3m2"], "state --op; for example: softnum rtl prove"),
        (["--op", "add"], "state --format"),
        (["--op", "add", "--format", "e3m2", "--rounding", "sr"], "which input of 32 bits is random?"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk"], "--tie must be INPUT=VALUE or INPUT=any, got 'clk'"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=7"], "--tie clk=7: clk has 1 bits"),
        (["--op", "add", "--format", "e3m2", "--tie", "no=0"], "fp8_add has no such input; it has input clk[1]"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--latency", "1"], "has no registers"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--port", "d=a"], "the columns of add are a, b, result"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--port", "a=q"], "has no such port"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--port", "a=b[9:4]"], "b has bits 0 to 5"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--port", "a=b", "--port", "b=b"], "bit 0 is a already"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--method", "bdd"], "unknown method 'bdd'"),
        (["--op", "add", "--format", "e3m2", "--tie", "clk=0", "--solver", "yices"], "unknown solver 'yices'"),
        (["--op", "fma", "--format", "binary16", "--method", "exhaustion"], "which input of 16 bits is a"),
        (["--op", "mac", "--unit", "x"], "--op mac of a unit cannot be proved"),
        (
            ["--op", "dot", "--unit", "MadUnit('e5m2', operand='e5m2', rounding='sr')", "--method", "smt"],
            "has no circuit: it rounds by random bits",
        ),
        (["--op", "add", "--format", "e3m2", "--length", "2"], "--length applies to units"),
        (["--op", "add", "--format", "e3m2", "--reset", "rst"], "has no input 'rst' of one bit"),
        (["--op", "dot", "--format", "e3m2"], "state the --unit that computes dot"),
    ],
)
def test_options_that_do_not_fit(options, message, reading):
    sizes = [f"-P{name}={value}" for name, value in SMALL.items()]
    done = softnum("rtl", "prove", reading[0], "--top", "fp8_add", *sizes, *options)
    assert done.exit_code == 2 and message in done.stderr


def test_missing_tools_are_told(tmp_path, monkeypatch):
    file = verilog(tmp_path, "assign y = a;")
    with pytest.raises(FileNotFoundError, match="no program 'nonesuch'; softnum rtl prove needs Yosys"):
        prove([file], ADD, yosys="nonesuch")
    with pytest.raises(FileNotFoundError, match="no file"):
        prove([tmp_path / "none.v"], ADD)
    with pytest.raises(FileNotFoundError, match="no program 'nonesuch'; it comes with Yosys"):
        prove([file], ADD, abc="nonesuch", method="cec")
    monkeypatch.setattr("softnum.vectors.formal.proof.installed", list)
    with pytest.raises(ValueError, match=r"no solver is installed: pip install 'softnum\[formal\]'"):
        prove([file], ADD, method="smt")
    assert netlist_module.read_design([file]).ports["y"].width == 6


def test_formula_writes_what_export_gives(tmp_path):
    for ending in ("smt2", "aag"):
        file = tmp_path / f"add.{ending}"
        assert softnum("rtl", "formula", "--op", "add", "--format", "e3m2", "-o", file).exit_code == 0
        shown = softnum("rtl", "formula", "--op", "add", "--format", "e3m2", "--file-format", ending)
        assert shown.stdout_bytes == file.read_bytes() and b"add --format e3m2" in file.read_bytes()
    done = softnum("rtl", "formula", "--op", "add", "--format", "e3m2", "-o", tmp_path / "add.v")
    assert done.exit_code == 2 and "the kind of file is not clear from its name; end it in .smt2" in done.stderr
