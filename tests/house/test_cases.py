"""Cases within tests (tests/support/cases.py): each runs, in parametrize's order, and reports under its own name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import softnum as sn
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.support.cases import cases

FORMATS, MODES = ["e5m2", "binary16", "e4m3"], ["up", "nearest_even", "down"]


def note(*words):
    with Path(__file__).with_name("ran").open("a") as file:
        print(*words, file=file)


@pytest.mark.parametrize(("mode", "k"), [(mode, i) for i, mode in enumerate(MODES)])
@pytest.mark.parametrize("fmt", FORMATS)
def test_as_it_was(fmt, mode, k):
    note("was", fmt, mode, k)


@cases(("mode", "k"), [(mode, i) for i, mode in enumerate(MODES)])
@cases("fmt", FORMATS)
def test_within(fmt, mode, k):
    note("is", fmt, mode, k)
    if mode == "down":
        pytest.skip("nothing goes down")
    assert (fmt, mode) != ("binary16", "up")


@cases("fmt", FORMATS)
@pytest.mark.parametrize("lanes", [1, 2])
@given(x=st.integers(0, 9))
def test_given(fmt, lanes, x):
    note("given", fmt, lanes)
    assert (fmt, lanes, x) != ("e4m3", 2, 7)


@cases("fmt", FORMATS)
def test_skips(fmt, request, tmp_path):
    assert request.node.name == "test_skips" and tmp_path.is_dir()
    pytest.skip("not here")


@cases("fmt", [])
def test_none(fmt): ...
"""


@pytest.fixture
def run(tmp_path):
    """Runs those tests with options: its exit status, what it printed, what ran."""
    file = tmp_path / "core" / "test_array.py"  # the name of a file with quick tests
    file.parent.mkdir()
    file.write_text(TEXT)

    def run(*options):
        command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *options, file]
        done = subprocess.run(
            [*command, "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        ran = file.with_name("ran")
        return done.returncode, done.stdout, ran.read_text().splitlines() if ran.exists() else []

    return run


def test_each_case_runs_and_failures_are_named(run):
    status, said, ran = run()
    assert status == 1 and said.count("SUBFAILED[") == 2
    assert re.search(r"SUBFAILED\[binary16-up-0\] \S+::test_within\b", said)
    assert re.search(r"SUBFAILED\[e4m3\] \S+::test_given\[2\]", said) and "x=7" in said
    was, now = ([line.partition(" ")[2] for line in ran if line.startswith(word)] for word in ("was ", "is "))
    assert was == now and len(now) == 9
    assert {line for line in ran if line.startswith("given")} == {
        f"given {fmt} {lanes}" for fmt in ("e5m2", "binary16", "e4m3") for lanes in (1, 2)
    }
    assert "nothing goes down" in said and "not here" in said and "no cases" in said
    assert "4 failed, 10 passed, 8 skipped, 10 subtests passed" in said  # a failed case and its test count each


def test_a_case_again(run):
    status, said, ran = run("--case", "binary16-up")
    assert status == 1 and ran == ["was binary16 up 0", "is binary16 up 0"] and "SUBFAILED[binary16-up-0]" in said
    assert run("--case", "e5m2-near")[::2] == (0, ran + ["was e5m2 nearest_even 1", "is e5m2 nearest_even 1"])


def test_quick_cases(run):
    status, _, ran = run("-m", "quick")
    assert [line for line in ran if line.startswith("is ")] == [
        line.replace("was", "is") for line in ran if line.startswith("was ")
    ]
    assert "is binary16 up 0" in ran and not any("e4m3" in line for line in ran) and status == 1


def test_called_by_another_test():
    """It is the test itself: the way to see that a planted fault makes it fail."""

    @cases("a", [1, 2])
    def test_it(a, b=0):
        assert a + b == 3

    test_it(1, 2)
    test_it(a=3)
    with pytest.raises(AssertionError):
        test_it(2, 2)


def names(*args, **kw):
    @cases(*args, **kw)
    def test_it(a, b=None): ...

    return [case.name for case in test_it.folded[-1]]


def test_names():
    assert names("a", ["text", 1, 2.5, True, None, int, names]) == ["text", "1", "2.5", "True", "None", "int", "names"]
    assert names("a", [-1, ""]) == ["-1", ""]
    assert names("a", [sn.format("e5m2"), [1], {}]) == ["e5m2", "a1", "a2"]
    assert names("a, b", [(1, "x"), pytest.param(2, "y"), pytest.param(3, "z", id="last")]) == ["1-x", "2-y", "last"]
    assert names(["a"], [1, 2], ids=["one", None]) == ["one", "2"]
    assert names("a", [1, "x"], ids=lambda x: f"<{x}>" if x == 1 else None) == ["<1>", "x"]
    assert names("a", [1, 2, "1"]) == ["10", "2", "12"]


def test_refusals():
    with pytest.raises(TypeError, match=r"case 1 of a has marks: state it by pytest\.mark\.parametrize"):
        cases("a", [1, pytest.param(2, marks=pytest.mark.slow)])
    with pytest.raises(ValueError, match="case 0 has 3 values for a, b"):
        cases("a, b", [(1, 2, 3)])
    with pytest.raises(ValueError, match="1 ids for 2 cases of a"):
        cases("a", [1, 2], ids=["one"])
    for name in ("c", "a"):
        with pytest.raises(ValueError, match=rf"test_it has no argument '{name}' that is not given already"):

            @cases(name, [1])
            @cases("a", [2])
            def test_it(a, b): ...
