"""Benches that softnum writes: roles of ports, and simulations of designs with every handshake, faults and none."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softnum.cli import build_app
from softnum.vectors import MixedSpec, UnitSpec, VectorSpec, check
from softnum.vectors.benches.folder import BENCH_INCLUDE, write_bench
from softnum.vectors.benches.handshakes import handshake_named
from softnum.vectors.benches.ports import read_design, stated_design
from softnum.vectors.benches.roles import wiring_of
from tests.support.benches import EXAMPLES, right, simulation_in

ROOT = Path(__file__).resolve().parents[2]
MULTIPLY = VectorSpec.make("multiply", "e4m3fn")
PORTS = "a:in:8,b:in:8,result:out:8,flags:out:5"

#: fp8_multiply behind valid and ready on both sides, one vector at a time. BUG: 1 never answers, 2 never takes, 3 gives
#: results without waiting for ready, 4 has x for some, 5 answers twice.
WRAPPER = """
module wrapped #(parameter BUG = 0) (
    input clk, rst_n, in_valid_i, output in_ready_o, input [7:0] op_a_i, op_b_i,
    output reg out_valid_o, input out_ready_i, output reg [7:0] result_o, output reg [4:0] status_o);
    reg busy, again; reg [7:0] a, b; wire [7:0] r; wire [4:0] f;
    fp8_multiply unit (.a(a), .b(b), .result(r), .flags(f));
    assign in_ready_o = !busy && BUG != 2;
    always @(posedge clk or negedge rst_n)
        if (!rst_n) begin busy <= 0; out_valid_o <= 0; again <= BUG == 5; end
        else begin
            if (in_valid_i && in_ready_o) begin a <= op_a_i; b <= op_b_i; busy <= 1; end
            else if (busy && !out_valid_o && BUG != 1) begin
                out_valid_o <= 1; result_o <= BUG == 4 && a == 8'h3C ? 8'hxx : r; status_o <= f;
            end
            if (out_valid_o && (out_ready_i || BUG == 3)) begin
                out_valid_o <= again; busy <= again; again <= 0;
            end
        end
endmodule
"""
#: the same with a strobe and an acknowledge for each operand, as a design that takes one after the other has them
STROBED = """
module strobed (input clk, rst, input [7:0] input_a, input_b, input input_a_stb, input_b_stb, output_z_ack,
    output [7:0] output_z, output output_z_stb, input_a_ack, input_b_ack);
    reg [1:0] state; reg [7:0] a, b; wire [4:0] unused;
    assign input_a_ack = state == 0, input_b_ack = state == 1, output_z_stb = state == 2;
    fp8_multiply unit (.a(a), .b(b), .result(output_z), .flags(unused));
    always @(posedge clk)
        if (rst) state <= 0;
        else if (input_a_ack && input_a_stb) begin a <= input_a; state <= 1; end
        else if (input_b_ack && input_b_stb) begin b <= input_b; state <= 2; end
        else if (output_z_stb && output_z_ack) state <= 0;
endmodule
"""


#: a multiplier and a sign injection behind an opcode
FPU = """
module fpu (input clk, rst_n, in_valid, output in_ready, input [3:0] opcode, input [7:0] a, b,
    output reg out_valid, input out_ready, output reg [7:0] result, output reg [4:0] flags);
    wire [7:0] product; wire [4:0] of_product;
    fp8_multiply multiplier (.a(a), .b(b), .result(product), .flags(of_product));
    assign in_ready = !out_valid;
    always @(posedge clk)
        if (!rst_n) out_valid <= 0;
        else if (in_valid && in_ready) begin
            out_valid <= 1;
            {result, flags} <= opcode == 9 ? {product, of_product} : opcode == 2 ? {b[7], a[6:0], 5'b0} : 0;
        end else if (out_ready) out_valid <= 0;
endmodule
"""
BOTH = MixedSpec.make([VectorSpec.make(op, "e4m3fn") for op in ("sign_copy", "multiply")])


@pytest.fixture
def simulated(tmp_path):
    """Write a bench, answer vectors with it in Icarus: (what it printed, its exit code, the file of answers)."""
    return simulation_in(tmp_path)


def test_without_a_clock(simulated):
    assert right(simulated("", ["fp8_multiply.v"], MULTIPLY, "combinational")).ok
    wrong = right(simulated("", ["fp8_multiply.v"], MULTIPLY, "combinational", parameters={"BUG": 3}))
    assert [cause.cause for cause in wrong.causes][:1] == ["truncation"]


def test_a_fixed_latency_with_a_clock_enable(simulated):
    spec = UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=32)
    assert right(simulated("", ["fp8_mac.v"], spec, "latency:1")).ok
    assert right(simulated("", ["fp8_mac.v"], spec, "latency:1", parameters={"BUG": 3})).failures


def test_a_fixed_latency_with_valid_signals(simulated):
    spec = VectorSpec.make("multiply", "e4m3fn", overflow="saturate")
    assert right(simulated("", ["cocotb/multiplier.v"], spec, "latency:3", plusargs=["+stalls=60", "+seed=4"])).ok
    said, code, _ = simulated("", ["cocotb/multiplier.v"], spec, "latency:2")
    assert code and "valid_out is not 1 where a result is due" in said


@pytest.mark.parametrize("plusargs", [(), ("+stalls=0",), ("+stalls=80", "+seed=9", "+idle_x")])
def test_valid_and_ready_on_both_sides(simulated, plusargs):
    assert right(simulated(WRAPPER, ["fp8_multiply.v"], MULTIPLY, "valid-ready", 100, plusargs=plusargs), 100).ok


def test_strobes_and_acknowledges_of_each_operand(simulated):
    assert right(simulated(STROBED, ["fp8_multiply.v"], MULTIPLY, "stb-ack", 200), 200).ok


def test_operations_behind_an_opcode(simulated):
    encode = ["op.sign_copy:opcode=1", "op.mul:opcode=0b1001", "op.sign_copy:opcode=2"]  # a later one is stronger
    files = ["fp8_multiply.v"]
    assert right(simulated(FPU, files, BOTH, "valid-ready", 200, plusargs=["+idle_x"], encode=encode), 200).ok
    wrong = right(simulated(FPU, files, BOTH, "valid-ready", 200, encode=encode[:1], tied={"opcode": 9}), 200)
    assert wrong.parts[0].failures > 80 and not wrong.parts[1].failures


#: uq4.4 to uq4.0, saturated: toward zero, or stochastically by four random bits. BUG: the bits are not looked at
ROUNDER = """
module rounder #(parameter BUG = 0) (
    input clk, en, drawn, input [7:0] a, input [3:0] random_i, output reg [3:0] result, output reg [4:0] flags);
    wire [8:0] sum = a + (drawn ? BUG ? 9'd8 : {5'b0, random_i} : 9'd0);
    wire over = sum[8];
    always @(posedge clk) if (en) begin result <= over ? 4'hF : sum[7:4]; flags <= {2'b0, over, 1'b0, |a[3:0]}; end
endmodule
"""


def test_modes_that_take_random_bits_among_others(simulated):
    given = dict(out_fmt="uq4.0", stochastic_bits=4)
    spec = MixedSpec.make([VectorSpec.make("convert", "uq4.4", rounding=mode, **given) for mode in ("rtz", "sr")])
    run = lambda **more: simulated(  # noqa: E731
        ROUNDER, [], spec, "latency:1", 400, encode=["mode.sr:drawn=1"], **more
    )
    assert right(run(), 400).ok
    wrong = right(run(parameters={"BUG": 1}), 400)
    assert not wrong.parts[0].failures and wrong.parts[1].failures
    assert wrong.parts[1].causes[0].cause == "random-ignored"


@pytest.mark.parametrize(
    ("bug", "says"),
    [
        (1, "after vector 0, clock 59: no result came for as many clocks as +timeout= says"),
        (2, "operands were not taken for as many clocks as +timeout= says"),
        (3, "no result came for as many clocks"),
        (5, "a result came that no operands were sent for"),
    ],
)
def test_designs_that_do_not_keep_to_the_handshake(simulated, bug, says):
    said, code, _ = simulated(WRAPPER, ["fp8_multiply.v"], MULTIPLY, "valid-ready", 50, {"BUG": bug}, ["+timeout=50"])
    assert code and says.removeprefix("after vector 0, clock 59: ") in said, said


def test_unknown_bits_of_a_result(simulated):
    report = right(simulated(WRAPPER, ["fp8_multiply.v"], MULTIPLY, "valid-ready", 300, {"BUG": 4}))
    assert report.failures and report.causes[0].cause == "unknown-bits"


def test_unknown_valid_signals(simulated):
    text = WRAPPER.replace("out_valid_o <= 0; again", "again")
    said, code, _ = simulated(text, ["fp8_multiply.v"], MULTIPLY, "valid-ready", 20)
    assert code and "out_valid_o is x or z" in said


# -- roles -------------------------------------------------------------------------------------------------------------
def roles(stated, handshake="combinational", spec=MULTIPLY, **options):
    return wiring_of(stated_design("unit", stated), spec, handshake_named(handshake), **options)


def test_roles_by_names():
    clocked = (
        "clk_i:in,rst_ni:in,opa:in:8,opb:in:8,in_valid_i:in,in_ready_o:out,res:out:8,out_valid_o:out,out_ready_i:in"
    )
    wiring = roles(clocked, "valid-ready")
    assert {role: str(wire) for role, wire in wiring.wires.items()} == {
        "clock": "clk_i", "reset": "rst_ni", "a": "opa", "b": "opb", "valid_in": "in_valid_i", "ready_in": "in_ready_o",
        "valid_out": "out_valid_o", "ready_out": "out_ready_i", "result": "res",
    }  # fmt: skip
    assert wiring.reset_low and not wiring.flags
    assert not roles(clocked, "valid-ready", reset_active="high").reset_low
    singles = roles("a:in:8,b:in:8,z:out:8,invalid:out,overflow:out,inexact:out,busy:out")
    assert singles.flags and singles.open == ["busy"]
    assert roles("left:in:8,right:in:8,z:out:8").by_order
    packed = roles("ops:in:16,z:out:8", ports={"a": "ops[7:0]", "b": "ops[15:8]"})
    assert str(packed.wires["b"]) == "ops[15:8]"


@pytest.mark.parametrize(
    ("ports", "handshake", "options", "says"),
    [
        (
            PORTS + ",mode:in:2",
            "combinational",
            {},
            r"mode \(in, 2 bits\) has no role that its name shows.*--tie mode=0",
        ),
        (
            "a:in:8,u:in:8,v:in:8,z:out:8",
            "combinational",
            {},
            r"no input is clearly b \(8 bits\).*u .*v .*--port b=NAME",
        ),
        ("a:in:8,b:in:8,u:out:8,v:out:8", "combinational", {}, "result may be any of u .*, v .*--port result=u"),
        ("a:in:8,b:in:8,z:out:9", "combinational", {}, "no output has the 8 bits of the result; outputs left: z"),
        (PORTS, "latency:1", {}, "no input is clearly the clock that latency needs"),
        (PORTS + ",clk:in", "combinational", {}, "has a clock, clk: state --handshake latency:N"),
        (
            PORTS + ",clk:in",
            "valid-ready",
            {},
            "no input says that operands are valid; say which: --port valid_in=NAME",
        ),
        (
            PORTS,
            "combinational",
            {"ports": {"a": "q"}},
            r"a=q: unit has no such port; it has a\[7:0\], b\[7:0\], result\[7:0\], flags\[4:0\]",
        ),
        (PORTS, "combinational", {"ports": {"a": "b[3:0]"}}, r"a has 8 bits, b\[3:0\] has 4"),
        (PORTS, "combinational", {"ports": {"a": "b[9:2]"}}, r"a=b\[9:2\]: b has bits 0 to 7"),
        (PORTS, "combinational", {"ports": {"a": "result"}}, "a is an input of the design"),
        (PORTS, "combinational", {"ports": {"d": "a"}}, "no role 'd'"),
        (PORTS, "combinational", {"tied": {"a": 256}}, "does not fit the 8 bits of a"),
        (PORTS, "combinational", {"tied": {"result": 1}}, "has no such input"),
    ],
)
def test_roles_that_are_not_clear(ports, handshake, options, says):
    with pytest.raises(ValueError, match=f"(?s){says}"):
        roles(ports, handshake, **options)


@pytest.mark.parametrize(
    ("encode", "says"),
    [
        ("mul:opcode=2", "COLUMN.NAME:PORT=VALUE,... with op, mode or format"),
        ("op.sqrt:opcode=2", "have no op 'sqrt'; it is one of sign_copy, multiply"),
        ("op.mul:code=2", "fpu has no input 'code'; it has a, b, opcode"),
        ("op.mul:opcode=16", "16 does not fit the 4 bits of opcode"),
        ("op.mul:opcode=x", "opcode wants a whole number"),
        ("op.mul:opcode=1,opcode=2", "opcode is given twice"),
        ("op.mul:a=1", "--encode gives a a value, and --port a=a gives it a role"),
        ("mode.rne:opcode=1", "no input is clearly op"),
    ],
)
def test_opcodes_that_are_not_clear(encode, says):
    design = stated_design("fpu", "a:in:8,b:in:8,opcode:in:4,result:out:8")
    with pytest.raises(ValueError, match=re.escape(says)):
        wiring_of(design, BOTH, handshake_named("combinational"), ports={"a": "a"}, encode=[encode])
    with pytest.raises(ValueError, match="--encode is of mixed vectors"):
        wiring_of(design, MULTIPLY, handshake_named("combinational"), encode=[encode])


def test_bad_words():
    for text, says in (("latency", "unknown handshake"), ("latency:99999", "lies in 0..4096 clocks")):
        with pytest.raises(ValueError, match=says):
            handshake_named(text)
    for text in ("a:in:0", "a:both:3", "", "a:in:8,a:in:8,z:out:8", "a:in:8"):
        with pytest.raises(ValueError):
            stated_design("unit", text)
    with pytest.raises(FileNotFoundError, match=r"no file 'none\.v'"):
        read_design([Path("none.v")])


# -- the program -------------------------------------------------------------------------------------------------------
@pytest.mark.slow  # two starts of the program
def test_the_program_and_its_makefile(tmp_path):
    for tool in ("iverilog", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    words = ["rtl", "bench", EXAMPLES / "fp8_multiply.v", "--op", "multiply", "--format", "e4m3fn", "--handshake"]
    words += ["combinational", "--top", "fp8_multiply", "--ports", PORTS, "--out", tmp_path / "bench"]
    assert build_app()(list(map(str, words)), standalone_mode=False) in (None, 0)
    assert (tmp_path / "bench" / "vectors.vh").read_bytes() == BENCH_INCLUDE.read_bytes()
    make = ["make", "-C", tmp_path / "bench", "verify", "COUNT=500", f"SOFTNUM={sys.executable} -m softnum"]
    done = subprocess.run(make, capture_output=True, text=True)
    assert done.returncode == 0 and "500 vectors, all results and flags equal" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("handshake", ["valid-ready", "stb-ack"])
def test_cocotb(tmp_path, handshake):
    pytest.importorskip("cocotb_tools")
    for tool in ("iverilog", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    (tmp_path / "w.v").write_text(WRAPPER if handshake == "valid-ready" else STROBED)
    sources = [tmp_path / "w.v", EXAMPLES / "fp8_multiply.v"]
    write_bench(tmp_path, wiring_of(read_design(sources), MULTIPLY, handshake_named(handshake)), sources)
    make = ["make", "-C", tmp_path, "cocotb", "COUNT=200", f"SOFTNUM={sys.executable} -m softnum"]
    done = subprocess.run([*make, f"PYTHON={sys.executable}"], capture_output=True, text=True)
    assert done.returncode == 0 and "1 tests, 0 failed" in done.stdout, done.stdout + done.stderr
    assert check(tmp_path / "cocotb.txt", ignore_flags=handshake == "stb-ack").vectors == 200


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("SOFTNUM_RTL"), reason="SOFTNUM_RTL names no folder of designs")
def test_an_adder_of_others(tmp_path, simulated):
    """dawsonjon/fpu: strobe and acknowledge for each operand; its NaNs have a sign, its numbers are right."""
    adder = Path(os.environ["SOFTNUM_RTL"]) / "dawsonjon-fpu" / "adder" / "adder.v"
    said, code, answers = simulated("", [adder], VectorSpec.make("add", "binary32"), "stb-ack", 5000)
    assert code == 0 and "5000 vectors answered" in said
    assert check(answers, ignore_flags=True, any_nan=True).ok
    assert check(answers, ignore_flags=True).causes[0].cause == "nan-payload"


def test_verilator(tmp_path):
    for tool in ("verilator", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    (tmp_path / "w.v").write_text(WRAPPER)
    sources = [tmp_path / "w.v", EXAMPLES / "fp8_multiply.v"]
    write_bench(tmp_path, wiring_of(read_design(sources), MULTIPLY, handshake_named("valid-ready")), sources)
    make = ["make", "-C", tmp_path, "verify", "SIM=verilator", "COUNT=500", f"SOFTNUM={sys.executable} -m softnum"]
    done = subprocess.run(make, capture_output=True, text=True)
    assert done.returncode == 0 and "500 vectors, all results and flags equal" in done.stdout, done.stderr
    assert "\n500 vectors answered in" in done.stdout
    done = subprocess.run([*make, "VERILATOR_FLAGS="], capture_output=True, text=True)  # nothing but the check again
    assert done.returncode == 0 and "vectors answered" not in done.stdout, done.stdout
    (tmp_path / "late.vh").touch()
    done = subprocess.run([*make[:-2], "-n", "COUNT=501"], capture_output=True, text=True)
    for again in ("verilator --binary", "vectors generate", "Vtb_wrapped +in=vectors.txt"):
        assert again in done.stdout, done.stdout
