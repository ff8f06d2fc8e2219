"""What docs/open-fpus.md says of designs of others: the page, the record and simulation agree."""

import importlib
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "examples" / "rtl-findings"


def load():
    sys.path.insert(0, str(HERE))
    sys.modules.pop("run", None)  # examples/rtl has a module of that name
    try:
        return importlib.import_module("run")
    finally:
        sys.path.remove(str(HERE))
        sys.modules.pop("run", None)


findings = load()
TOLD, RECORDED = findings.stated(), findings.recorded()
SHOWN = sorted({finding["run"] for finding in TOLD["finding"]})
QUICK = ("pacogen-add-8", "essenceia-mul")  # Icarus, and a design of a file or three


def run_of(name, work):
    folder = os.environ.get("SOFTNUM_RTL")
    if not folder:
        pytest.skip("SOFTNUM_RTL names no folder of designs of others")
    run = findings.Run(name, Path(folder).resolve(), work)
    if run.missing:
        pytest.skip(f"SOFTNUM_RTL has no {run.missing[0]}")
    for tool in ("make", *(("iverilog", "vvp") if run.design["simulator"] == "icarus" else ("verilator",))):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    pytest.importorskip("pyslang")
    return run


def test_the_page_has_what_the_files_state():
    assert findings.PAGE.read_text(encoding="utf-8") == findings.page_text()


def test_the_files_agree_with_each_other():
    assert set(RECORDED) == set(TOLD["run"]) and TOLD["finding"]
    for finding in TOLD["finding"]:
        assert finding["got"] != finding["want"]
        differ = RECORDED[finding["run"]]["differ"]
        # a rare one is so seldom that the run's own vectors did not meet it
        assert (finding["of"] in differ) != finding.get("rare", False), finding
        # a cause that the page states as check's is one that check stated
        for cause in finding["cause"].split("`")[1::2]:
            assert any(text.startswith(cause) for text in differ[finding["of"]]["causes"]), finding
    for name, facts in RECORDED.items():
        assert facts["failures"] == sum(part["failures"] for part in facts["differ"].values()) + facts["unfilled"], name


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SHOWN])
def test_shown_vectors(name, tmp_path):
    run = run_of(name, tmp_path)
    for was, now in zip(run.findings, run.shown(), strict=True):
        assert (now["got"], now["want"]) == (was["got"], was["want"]), was


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLD["run"])
def test_whole_runs(name, tmp_path):
    assert run_of(name, tmp_path).found() == RECORDED[name]
