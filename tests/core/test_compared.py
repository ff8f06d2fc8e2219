"""The numbers of rows that the documentation says presets are compared with."""

import json
import os
from pathlib import Path

import pytest

import softnum as sn
from tests.support.compared import FILE, counted_files, counts


def test_the_numbers_are_of_presets():
    for name, rows in json.loads(FILE.read_text(encoding="utf-8"))["presets"].items():
        assert name in sn.units() and rows.keys() <= {"hardware", "mma_sim"} and min(rows.values()) > 0


def test_the_numbers_are_those_of_the_folders():
    folders = [os.environ.get(f"SOFTNUM_{x}_VECTORS") for x in ("HARDWARE", "MMA_SIM")]
    if None in folders:
        pytest.skip("SOFTNUM_HARDWARE_VECTORS and SOFTNUM_MMA_SIM_VECTORS name no folders of rows")
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    if counted_files(*map(Path, folders)) != recorded["of"]:
        pytest.skip("the folders hold other rows than those that were counted: python -m tests.support.compared")
    assert counts(*map(Path, folders)) == recorded["presets"], "python -m tests.support.compared records them again"
