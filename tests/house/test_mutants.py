"""The planted faults still have their places (tests/mutants.py plants them)."""

from pathlib import Path

from tests.mutants import FAULTS
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]


@cases("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_has_its_place_and_its_tests(fault):
    assert (ROOT / "csrc" / fault.file).read_text().count(fault.old) >= 1
    for word in fault.tests.split(" --case ")[0].split():
        assert (ROOT / word).is_file()
