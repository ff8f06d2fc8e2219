"""UVM benches that softnum writes: elaborated beside UVM's source, and in pyuvm run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softnum.vectors import VectorSpec, check, plan, write
from softnum.vectors.benches.folder import write_bench
from softnum.vectors.benches.handshakes import handshake_named
from softnum.vectors.benches.ports import stated_design
from softnum.vectors.benches.roles import wiring_of
from softnum.vectors.covered.files import read_coverage
from tests.support.elaborated import elaborated

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rtl"
MULTIPLY = VectorSpec.make("multiply", "e4m3fn")
HANDSHAKES = {
    "combinational": "", "latency:1": "clk:in,en:in,", "valid-ready": "clk:in,in_valid:in,in_ready:out,out_valid:out,",
    "stb-ack": "clk:in,rst:in,a_stb:in,b_stb:in,a_ack:out,b_ack:out,z_stb:out,z_ack:in,",
}  # fmt: skip


def written(folder, handshake, bug=0, **options):
    stated = HANDSHAKES[handshake] + "a:in:8,b:in:8,result:out:8,flags:out:5"
    wiring = wiring_of(stated_design("fp8_multiply", stated), MULTIPLY, handshake_named(handshake))
    write_bench(folder, wiring, [EXAMPLES / "fp8_multiply.v"], parameters={"BUG": bug}, **options)
    write(plan(MULTIPLY, count=200), folder / "vectors.txt")
    return wiring


@pytest.mark.skipif(not os.environ.get("SOFTNUM_UVM"), reason="SOFTNUM_UVM names no folder src of UVM")
@pytest.mark.parametrize("handshake", HANDSHAKES)
def test_uvm_elaborates(tmp_path, handshake):
    wiring = written(tmp_path, handshake, uvm=True)
    ports = ", ".join(f"{p.direction}put [{p.width - 1}:0] {p.name}" for p in wiring.design.ports)
    (tmp_path / "dut.sv").write_text(f"module fp8_multiply #(parameter BUG = 0)({ports}); endmodule\n")
    uvm = Path(os.environ["SOFTNUM_UVM"])
    own = ("dut.sv", "coverage_fp8_multiply_pkg.sv", "uvm_fp8_multiply_pkg.sv", "uvm_fp8_multiply.sv")
    files = [uvm / "uvm_pkg.sv", *(tmp_path / name for name in own)]
    for defines in (["UVM_NO_DPI"], ["UVM_NO_DPI", "SOFTNUM_COVERGROUPS"]):
        assert elaborated(files, "uvm_fp8_multiply", include=[uvm], defines=defines) == ""


@pytest.mark.slow
@pytest.mark.parametrize("bug", [0, 3])
def test_pyuvm_runs(tmp_path, bug):
    pytest.importorskip("pyuvm", reason="pyuvm is not installed")
    if shutil.which("iverilog") is None:
        pytest.skip("not installed: iverilog")
    written(tmp_path, "combinational", bug, pyuvm=True)
    words = [sys.executable, "test_pyuvm_fp8_multiply.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == (bug > 0), done.stdout[-2000:]
    report = check(tmp_path / "pyuvm.txt")
    assert report.vectors == 200 and report.ok == (not bug)
    if not bug:
        assert read_coverage(tmp_path / "coverage.xml").to_dict() == read_coverage(tmp_path / "pyuvm.txt").to_dict()
