"""Vectors of formats of the user's own: value tables, and functions in Python."""

import io
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import Coverage, Space, VectorSpec, check, plan, write
from tests.support.cases import cases

VALUES = [0, 0.5, 1, 2, -0.5, -1, -2, math.nan]
TABLE = sn.CustomFormat.from_table(VALUES, name="steps")
EXAMPLES = Path(__file__).parents[2] / "examples" / "custom"


def nearest(x):
    """The code of the value nearest to a Fraction; of two the upper if its code is even, else the lower."""
    numbers = sorted((Fraction(v), code) for code, v in enumerate(VALUES) if v == v)
    distance = min(abs(v - x) for v, _ in numbers)
    close = [(v, code) for v, code in numbers if abs(v - x) == distance]
    return (close[-1] if close[-1][1] % 2 == 0 else close[0])[1]


@cases("op", ["add", "multiply", "fma"])
def test_a_table_is_exhausted(tmp_path, op):
    spec = VectorSpec.make(op, TABLE)
    coverage, path = Coverage(spec), tmp_path / "v.txt"
    assert write(plan(spec), path, coverage=coverage) == 8 ** len(spec.formats)
    assert "classes of a" in str(coverage)
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        *codes, result, flags = line.split()
        values = [VALUES[int(c)] for c in codes]
        want = 7
        if all(v == v for v in values):
            a, b, *c = map(Fraction, values)
            want = nearest(a + b if op == "add" else a * b + sum(c))
        assert (int(result), flags) == (want, "00")
    assert check(path, op, TABLE).ok


@pytest.fixture
def posit8(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "posit8", raising=False)
    from posit8 import posit8

    return posit8


@cases("op", ["add", "multiply", "divide", "fmsub"])
def test_a_posit_in_python_is_the_named_one(posit8, op):
    mine, named = (plan(VectorSpec.make(op, f), count=5000, seed=3) for f in (posit8, "posit8"))
    for block in mine.blocks():
        want = named.spec.evaluate(block.operands)
        assert (block.result == want.result).all() and not block.flags.any()


def test_a_file_says_which_table_it_is_of(tmp_path):
    path = tmp_path / "v.txt"
    write(plan(VectorSpec.make("add", TABLE)), path)
    assert "# format: table:steps:" in path.read_text()
    with pytest.raises(ValueError, match="is of the user's own: state it"):
        check(path)
    other = sn.CustomFormat.from_table([0, 0.5, 1, 4, -0.5, -1, -2, math.nan], name="steps")
    with pytest.raises(ValueError, match="the header says format"):
        check(path, fmt=other)
    assert check(path, fmt=other, op="add", ignore_header=True).failures


def test_a_difference_is_shown_with_its_values():
    report = check(io.BytesIO(b"2 2 4 00\n1 1 2 00\n"), "add", TABLE)
    assert (report.failures, report.vectors) == (1, 2)
    assert "a=2 (1.0)" in str(report) and "got 4 (-0.5)" in str(report) and "want 3 (2.0)" in str(report)


def test_what_has_no_vectors_is_refused():
    with pytest.raises(ValueError, match="not rounded"):
        plan(VectorSpec.make("add", TABLE, space=Space.make(only="ties")))
    space = Space.make(no_nan=True)
    codes = np.concatenate([b.operands[0] for b in plan(VectorSpec.make("add", TABLE, space=space)).blocks()])
    assert len(codes) == 49 and (codes != 7).all()
