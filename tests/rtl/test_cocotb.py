"""The cocotb reference model and scoreboard: without a simulator, and on a design in Icarus Verilog."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import UnitSpec, VectorSpec, check, plan
from softnum.vectors.cocotb import Expected, ReferenceModel, Scoreboard, ScoreboardError, known

ROOT = Path(__file__).resolve().parents[2]
MULTIPLY = VectorSpec.make("multiply", "e4m3fn", overflow="saturate")


class Bits:
    """As cocotb's LogicArray: bits of which some may be x or z."""

    def __init__(self, text):
        self.text = text

    is_resolvable = property(lambda self: set(self.text) <= set("01"))

    def to_unsigned(self):
        return int(self.text, 2)

    def __str__(self):
        return self.text


def told(board):
    with pytest.raises(ScoreboardError) as caught:
        board.finish()
    assert caught.value.scoreboard is board and isinstance(caught.value, AssertionError)
    return str(caught.value)


# -- the model ---------------------------------------------------------------------------------------------------------
def test_the_model_of_operations():
    model = ReferenceModel(MULTIPLY)
    for a, b in ((0x3C, 0x43), (0x7E, 0x7E), (0x7F, 0x00), (0x01, 0x01)):
        want, flags = sn.multiply([a], [b], "e4m3fn", overflow="saturate", return_flags=True)
        assert model(a, b) == (want[0], flags[0])
        assert model(Bits(f"{a:08b}"), Bits(f"{b:08b}")) == (want[0], flags[0])
    drawn = ReferenceModel(VectorSpec.make("add", "e6m9", rounding="stochastic", stochastic_bits=4))
    for word in range(16):
        want = sn.add([0x3E00], [0x1201], "e6m9", rounding="sr", stochastic_bits=4, random_bits=np.array([word]))
        assert drawn(0x3E00, 0x1201, random_bits=word).result == want[0]


def test_the_model_of_units():
    unit = sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=8)
    spec = UnitSpec.make("dot", unit, length=4, with_c=True)
    planned = next(plan(spec, count=20).blocks())
    model, words = ReferenceModel(spec), lambda row, bits: sum(int(v) << (bits * i) for i, v in enumerate(row))
    a, b, c = planned.operands
    for i in range(20):
        got = model(words(a[i], 8), words(b[i], 8), int(c[i]), random_bits=words(planned.random_bits[i], 8))
        assert got == Expected(planned.result[i], None)
    steps = next(plan(UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=3)", length=7), count=40).blocks())
    model = ReferenceModel(UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=3)", length=7))
    for i in range(40):
        assert model(*(int(v[i]) for v in steps.operands)).result == steps.result[i]


@pytest.mark.parametrize(
    "operands, says",
    [
        ((1,), "multiply takes 2 operands (a, b), got 1"),
        ((1, 0x100), "b = 0x100 does not fit the 8 bits of its column"),
        ((Bits("0000x000"), 1), "a = 0000x000 has unknown bits"),
        ((-1, 1), "a = -0x1 does not fit"),
    ],
)
def test_operands_that_are_none(operands, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ReferenceModel(MULTIPLY)(*operands)
    with pytest.raises(ValueError, match=re.escape(says)):
        Scoreboard(MULTIPLY).send(*operands)


def test_random_bits_must_be_given():
    with pytest.raises(ValueError, match="add rounds stochastically: give random_bits"):
        ReferenceModel(VectorSpec.make("add", "e5m2", rounding="sr"))(1, 2)


# -- the scoreboard ----------------------------------------------------------------------------------------------------
def fed(board, count=3000, change=lambda i, result, flags: (result, flags)):
    """The board after vectors whose results a design changed."""
    done = 0
    for block in plan(board.spec, count=count).blocks():
        for i in range(len(block)):
            board.send(*(int(c[i]) for c in block.operands), at=f"{done} ns")
            board.receive(*change(done, int(block.result[i]), int(block.flags[i])), at=f"{done} ns")
            done += 1
    return board


def test_a_right_design(tmp_path):
    board = fed(Scoreboard(MULTIPLY, file=tmp_path / "dut.txt"))
    board.finish()
    assert board.compared == 3000 and not board.failures and not board.waiting
    assert board.report() == "multiply e4m3fn -> e4m3fn, nearest_even: 3000 results, all equal"
    report = check(tmp_path / "dut.txt")
    assert report.ok and report.vectors == 3000


def test_a_wrong_design(tmp_path):
    """Every wrong result is counted, the first are shown, and `softnum vectors check` finds the same ones."""

    def change(i, result, flags):
        return (result ^ (i % 100 == 7), flags ^ 2 * (i % 1000 == 11))

    board = fed(Scoreboard(MULTIPLY, file=tmp_path / "dut.txt", max_failures=3), change=change)
    text = told(board).splitlines()
    assert text[0].endswith("33 of 3000 results differ (30 in the result, 3 in the flags)")
    assert len(text) == 6 and text[1].startswith("vector 8, 7 ns: a=") and text[4] == "... and 30 more"
    assert re.search(r"got (\w\w) \(\S+\) flags \w\w  want (?!\1)\w\w", text[1])
    assert text[-1] == f"why: softnum vectors check {tmp_path / 'dut.txt'}"
    report = check(tmp_path / "dut.txt")
    assert (report.failures, report.result_failures, report.flag_failures) == (33, 30, 3)


def test_unknown_bits_are_never_equal(tmp_path):
    def change(i, result, flags):
        return (Bits("0000000x") if i == 5 else result, Bits("zzzzz") if i == 6 else flags)

    board = fed(Scoreboard(MULTIPLY, file=tmp_path / "dut.txt"), 20, change)
    text = told(board)
    assert "2 of 20 results differ (2 with unknown bits)" in text
    assert "got 0000000x (unknown bits) flags 0" in text and "flags unknown  want" in text
    lines = [line for line in (tmp_path / "dut.txt").read_text().splitlines() if "X" in line]
    assert [line.split()[2:].index(x) for line, x in zip(lines, ("XX", "XX"), strict=True)] == [0, 1]
    assert check(tmp_path / "dut.txt").failures == 2
    assert known(Bits("1x")) is None and known(Bits("101")) == 5


def test_flags_and_nans():
    wrong_flags = fed(Scoreboard(MULTIPLY, ignore_flags=True), 100, lambda i, r, f: (r, Bits("xxxxx")))
    wrong_flags.finish()
    fed(Scoreboard(MULTIPLY), 100, lambda i, r, f: (r, None)).finish()  # a design without flags

    def other_nan(i, result, flags):
        return (0xFF if result == 0x7F else result), flags

    fed(Scoreboard(MULTIPLY, any_nan=True), 500, other_nan).finish()
    assert "results differ" in told(fed(Scoreboard(MULTIPLY), 500, other_nan))
    no_nan = fed(Scoreboard(MULTIPLY, any_nan=True), 500, lambda i, r, f: (0 if r == 0x7F else r, f))
    assert "results differ" in told(no_nan)


def test_what_is_missing_or_too_much():
    board = Scoreboard(MULTIPLY)
    board.send(0x3C, 0x3C)
    board.receive(0x41, 1)
    board.send(1, 1)
    assert board.waiting == 1
    assert "1 results never came" in told(board)
    board = Scoreboard(MULTIPLY)
    board.receive(3, at="5 ns")
    text = told(board)
    assert "a result 3 came that no operands were sent for, at 5 ns" in text and "nothing was compared" in text
    with pytest.raises(ValueError, match="result = 0x100 does not fit 8 bits: is the right signal compared"):
        board.send(1, 1)
        board.receive(0x100)


def test_latency():
    blocks = list(plan(MULTIPLY, count=50).blocks())
    sent = [tuple(int(c[i]) for c in block.operands) for block in blocks for i in range(len(block))]
    right = [(int(block.result[i]), int(block.flags[i])) for block in blocks for i in range(len(block))]
    unknown = (Bits("xxxxxxxx"), Bits("xxxxx"))
    for latency in (0, 1, 3):
        board = Scoreboard(MULTIPLY, latency=latency)
        for i in range(50 + latency):
            board.clock(sent[i] if i < 50 else None, None, *(right[i - latency] if i >= latency else unknown))
        board.finish()
        assert board.compared == 50
    with pytest.raises(ValueError, match="made without a latency"):
        Scoreboard(MULTIPLY).clock([1, 2])
    with pytest.raises(ValueError, match="latency must be a number of clocks of at least 0, or None, got -1"):
        Scoreboard(MULTIPLY, latency=-1)


def test_units_on_the_board(tmp_path):
    """Words of several elements, and sequences of steps, which are judged whole."""
    spec = UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2')", length=700)
    board = Scoreboard(spec, file=tmp_path / "mac.txt")
    for block in plan(spec, count=2500).blocks():
        for i in range(len(block)):
            board.send(*(int(c[i]) for c in block.operands))
            board.receive(int(block.result[i]) ^ (i == 2000))
    assert "1 of 2500 results differ" in told(board)
    report = check(tmp_path / "mac.txt")
    assert report.vectors == 2500 and report.first[0].index == 2000


# -- on a design -------------------------------------------------------------------------------------------------------
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no iverilog")
@pytest.mark.skipif(importlib.util.find_spec("cocotb_tools") is None, reason="no cocotb: pip install 'softnum[cocotb]'")
@pytest.mark.parametrize("bug", [0, 1, 2])
def test_a_design_in_a_simulator(bug, tmp_path):
    """The example's multiplier passes; each planted fault is reported, with the file that says why."""
    command = [sys.executable, ROOT / "examples" / "rtl" / "cocotb" / "run.py", str(bug)]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"VECTORS": "700", "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("PYTEST_CURRENT_TEST", None)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    text = done.stdout + done.stderr
    assert done.returncode == (bug > 0), text
    assert f"3 tests, {2 * (bug > 0)} failed" in text, text
    if bug == 0:
        assert check(tmp_path / "build" / "multiplier.txt").vectors == 700
    if bug == 1:
        assert re.search(r"ScoreboardError: multiply e4m3fn -> e4m3fn, nearest_even: \d+ of 700 results differ", text)
        assert re.search(r"vector \d+, \d+ ns: a=\w\w \(\S+\) b=\w\w \(\S+\)  got \w\w", text)
        report = check(tmp_path / "build" / "multiplier.txt")
        assert report.failures == report.result_failures > 20
    if bug == 2:
        assert "got 0111XXXX (unknown bits)" in text
        report = check(tmp_path / "build" / "multiplier.txt")
        assert report.unknown == report.failures > 20
