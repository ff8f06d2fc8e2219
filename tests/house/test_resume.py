"""pytest --resume: what passed is left out the next time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.resume import Resume, digest_of_package

ROOT = Path(__file__).resolve().parents[2]
FEW = "tests/house/test_resume.py"


def run(*arguments):
    """pytest's exit status and output, of tests below that end at once."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", FEW, "-k", "of_the_digest", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("suffix", [".py", ".so", ".toml"])
def test_of_the_digest(tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_text("1")
    one = digest_of_package(tmp_path)
    (tmp_path / "a.log").write_text("1")
    assert digest_of_package(tmp_path) == one
    (tmp_path / f"a{suffix}").write_text("2")
    assert digest_of_package(tmp_path) != one


def test_what_passed_is_left_out(tmp_path):
    file = tmp_path / "passed.txt"
    status, said = run("--resume", str(file))
    assert (status, len(file.read_text().splitlines())) == (0, 4), said
    first, *names, last = file.read_text().splitlines()
    file.write_text("\n".join([first, *names, last[:-1]]))  # as an interrupted run leaves it
    status, said = run("--resume", str(file), "-n", "2")
    assert status == 0 and "1 passed" in said
    assert file.read_text().splitlines() == [first, *names, last]
    status, said = run("--resume", str(file))
    assert status == 5 and "5 deselected" in said


def test_another_build_and_part_of_a_test_are_refused(tmp_path):
    file = tmp_path / "passed.txt"
    file.write_text("0" * 64 + "\n")
    with pytest.raises(pytest.UsageError, match="of another build"):
        Resume(file, "1" * 64)
    status, said = run("--resume", str(file), "--case", "py")
    assert status == 4 and "--resume notes whole tests" in said
