"""The multiplier in Amaranth: in its simulator, with its fault, and as Verilog that is proved."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from softnum.vectors import VectorSpec, plan, write

pytest.importorskip("amaranth", reason="not installed: amaranth")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "rtl" / "amaranth" / "fp8_multiply.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("amaranth_fp8_multiply", EXAMPLE)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("bug", [False, True])
def test_amaranths_simulator(example, bug, tmp_path):
    write(plan(example.SPEC, count=1500), tmp_path / "vectors.txt")
    report = example.simulate(example.Multiply(bug), tmp_path / "vectors.txt", tmp_path / "answers.txt")
    assert report.vectors == 1500 and report.ok is not bug
    assert [cause.cause for cause in report.causes] == (["wrong-tie"] if bug else [])


@pytest.mark.skipif(shutil.which("yosys") is None, reason="not installed: yosys")
@pytest.mark.parametrize("bug", [False, True])
def test_its_verilog_is_proved(example, bug, tmp_path):
    from softnum.vectors.formal import prove

    example.to_verilog(example.Multiply(bug), tmp_path / "fp8.v")
    proof = prove([tmp_path / "fp8.v"], VectorSpec.make("multiply", "e4m3fn"))
    assert (proof.method, proof.equivalent) == ("exhaustion", not bug)


def test_the_program(example, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fp8_multiply.py", "--count", "300"])
    assert example.main() == 0 and "300 vectors, all results and flags equal" in capsys.readouterr().out
