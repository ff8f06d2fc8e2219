"""Vectors of sums against a specification with freedom: softnum vectors check --spec."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.vectors import VectorFileError, check_permitted, plan, write
from softnum.vectors.plans.unit_spec import UnitSpec
from tests.support.cases import cases

LANES = "MadUnit('binary32', operand='binary16', lanes=4, reduction='tree')"
SPEC = "Freedom('binary32', operand='binary16')"


def file_of(path, op, unit, count=60, **options):
    """Vectors that a unit computed."""
    write(plan(UnitSpec.make(op, unit, **options), count=count, seed=3), path)
    return path


@cases("op, options", [("dot", {"length": 12}), ("dot", {"length": 6, "with_c": True}), ("gemm", {"shape": (2, 3, 5)})])
def test_a_units_results_are_permitted(op, options, tmp_path):
    path = file_of(tmp_path / "v.txt", op, LANES, **options)
    report = check_permitted(path, SPEC)
    m, n, _ = options.get("shape", (1, 1, 1))
    assert report.ok and report.exit_status == 0 and report.counts["permitted"] == 60 * m * n
    fixed = "Freedom('binary32', operand='binary16', order='given', grouping='sequential', products='fused', c='first')"
    assert check_permitted(path, fixed).counts["refuted"] > 0


def test_wrong_results_are_refuted_with_their_lines(tmp_path):
    path = file_of(tmp_path / "v.txt", "dot", LANES, length=8)
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    for at in (first + 5, first + 20):
        a, b, result = lines[at].split()
        lines[at] = f"{a} {b} {int(result, 16) ^ 1 << 22:08X}"
    lines[first + 30] = lines[first + 30][:-8] + "x" * 8
    path.write_text("\n".join(lines) + "\n")
    report = check_permitted(path, SPEC)
    refuted = {line for line, found in report.first if found.verdict == "refuted"}
    assert {first + 31} <= refuted <= {first + 6, first + 21, first + 31} and len(refuted) >= 2
    assert report.counts["permitted"] >= 57 and "unknown bits: refuted" in str(report)
    short = check_permitted(path, SPEC, max_failures=1)
    assert len(short.first) == 1 and "more" in str(short)
    assert json.loads(json.dumps(report.to_dict()))["refuted"] == report.counts["refuted"]


def test_any_nan_is_the_nan():
    for result in (b"7E00", b"FE01", b"7C01"):
        line = b"7C00 0000 " + result + b"\n"
        assert check_permitted(io.BytesIO(line), "Freedom('binary16')", "dot", length=1).ok
    assert not check_permitted(io.BytesIO(b"7C00 0000 7C00\n"), "Freedom('binary16')", "dot", length=1).ok


def test_ime_judges_vectors(tmp_path):
    a, b = np.float16([[1, 2, 3, 4]]), np.float16([[1], [1], [0.5], [0.25]])
    codes = ["".join(f"{x:04X}" for x in reversed(v.reshape(-1).view(np.uint16).tolist())) for v in (a, b)]
    line = f"{codes[0]} {codes[1]} 00000000 {np.float32(5.5).view(np.uint32):08X}\n".encode()
    spec = sn.ImeFreedom("binary32", "binary16", lam=2, w=2)
    report = check_permitted(io.BytesIO(line), spec, "dot", length=4, with_c=True)
    assert report.ok and "psm = 0" in str(report)


@cases("text, make", [
    ("the header's unit has operands", lambda p: check_permitted(p, "Freedom('binary32')")),
    ("the header's unit has results", lambda p: check_permitted(p, "Freedom('binary16')")),
    ("the header says length", lambda p: check_permitted(p, SPEC, length=9)),
    ("whole sums; a step of a mac", lambda p: check_permitted(p, SPEC, "mac", ignore_header=True)),
    ("not of add", lambda p: check_permitted(p, SPEC, "add", ignore_header=True)),
    ("max_failures must be", lambda p: check_permitted(p, SPEC, max_failures=-1)),
    ("no expression of a specification", lambda p: check_permitted(p, "MadUnit('binary32')")),
], ids=lambda x: None)  # fmt: skip
def test_what_is_refused(text, make, tmp_path):
    path = file_of(tmp_path / "v.txt", "dot", LANES, length=8)
    with pytest.raises(ValueError, match=text):
        make(path)


def test_stochastic_vectors_are_refused(tmp_path):
    unit = "MadUnit('binary32', operand='binary16', rounding='stochastic')"
    path = file_of(tmp_path / "v.txt", "dot", unit, length=4)
    with pytest.raises(VectorFileError, match="random bits"):
        check_permitted(path, SPEC)


def test_the_command_line(tmp_path):
    path, out = file_of(tmp_path / "v.txt", "dot", LANES, length=8), tmp_path / "report.json"
    run = lambda *options: CliRunner().invoke(build_app(), ["vectors", "check", str(path), *options])  # noqa: E731
    shown = run("--spec", SPEC, "--out", str(out))
    assert shown.exit_code == 0 and "60 results: 60 permitted" in shown.stdout
    assert json.loads(out.read_text())["permitted"] == 60
    assert run("--spec", "Freedom('binary32', operand='binary16', rounding='up', products='fused')").exit_code == 1
    for foreign in (["--unit", LANES], ["--ulp", "1"], ["--rounding", "rne"], ["--html", str(tmp_path / "x.html")]):
        shown = run("--spec", SPEC, *foreign)
        assert shown.exit_code == 2 and "cannot be combined with --spec" in shown.output
