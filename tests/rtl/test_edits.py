"""Edits of RTL and mutants: which causes check states, and whether they hold.

tests/data/rtl_edits.toml has the edits, each with the cause that was written down before check was run.
"""

import shutil

import pytest

from softnum.vectors.checks.causes import CAUSES
from tests.support import rtl_edits, rtl_mutants

EDITS = rtl_edits.edits()
IDS = [f"{edit['design']}-{edit['name'].replace(' ', '_')}" for edit in EDITS]


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def test_the_record_is_whole_and_36_of_40_are_named():
    assert len(EDITS) == 40 and len(set(IDS)) == 40
    right = 0
    for edit in EDITS:
        assert edit["design"] in rtl_edits.DESIGNS and edit["label"] and set(edit["label"]) <= set(CAUSES)
        assert rtl_edits.causes_of(edit["said"]) <= set(CAUSES)
        right += rtl_edits.causes_of(edit["said"]) == set(edit["label"])
    assert right >= 36


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS, ids=IDS)
def test_what_check_says_of_an_edited_design(edit, tmp_path):
    design = rtl_edits.DESIGNS[edit["design"]]
    if design.foreign and rtl_edits.rtl_folder() is None:
        pytest.skip("SOFTNUM_RTL names no folder of designs of others")
    needs(*(("verilator", "make") if design.verilator else ("iverilog", "vvp")))
    report = rtl_edits.report_of(edit, tmp_path)
    assert report.failures and rtl_edits.said(report) == edit["said"], str(report)


#: design -> (mode, causes that must be stated with confidence) of faults that are open where the designs come from
OPEN = {
    "bf16_add": (None, {"missing-sticky"}),
    "bf16_mul": (None, {"unsaturated-mantissa"}),
    "div_sqrt": ("up", {"wrong-mode"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN)
def test_faults_that_are_open(name, tmp_path):
    if rtl_edits.rtl_folder() is None:
        pytest.skip("SOFTNUM_RTL names no folder of designs of others")
    needs(*(("verilator", "make") if rtl_edits.DESIGNS[name].verilator else ("iverilog", "vvp")))
    mode, causes = OPEN[name]
    report = rtl_edits.report_of({"design": name} | ({} if mode is None else {"mode": mode}), tmp_path)
    assert rtl_edits.causes_of(rtl_edits.said(report)) == causes, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_causes_of_mutants_hold_on_fresh_vectors(seed):
    needs("yosys", "iverilog", "vvp")
    seen, causes, broken = rtl_mutants.held(seed)
    assert seen >= 60 and causes and not broken
