"""What benchmarks.compare concludes from times."""

import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.compare import interval, ratios

ROOT = Path(__file__).resolve().parents[2]


def test_the_interval_holds_the_median_as_often_as_it_says():
    rng = random.Random(5)
    held = 0
    for _ in range(2000):
        low, high = interval([rng.expovariate(1) for _ in range(15)])
        held += low <= 0.6931 <= high  # the median of the exponential distribution
    assert 0.95 <= held / 2000 <= 0.98  # 15 values: ranks 4 and 12, 96.5 %


@pytest.mark.parametrize("n", [1, 5, 6, 16, 101])
def test_few_values_say_nothing(n):
    values = list(range(n))
    low, high = interval(values)
    assert (low == -float("inf")) == (n < 6) and low <= statistics.median(values) <= high


def test_ratios_are_of_one_round_and_of_rows_that_both_have():
    def entry(build, number, **times):
        return {"section": "s", "round": number, "build": build, "times": times}

    record = [
        entry("before", 0, x=2.0, gone=1.0), entry("after", 0, x=3.0, new=1.0), entry("before", 1, x=4.0),
        entry("after", 1, x=2.0), entry("after", 2, x=9.0),
    ]  # fmt: skip
    assert ratios(record) == {"x": [1.5, 0.5]}


@pytest.mark.parametrize(("after", "code"), [(1.0, 0), (1.2, 1)])
def test_a_record_that_is_whole_is_shown_and_judged(after, code, tmp_path):
    record = tmp_path / "record.jsonl"
    lines = [
        {"section": "gemm", "round": i, "build": build, "times": {"a row": time}}
        for i in range(6)
        for build, time in (("before", 1.0), ("after", after))
    ]
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [sys.executable, "-m", "benchmarks.compare", "--before", "x", "x", "--after", "y", "y", "--rounds", "6"]
    command += ["--only", "gemm", "--record", str(record)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "a row" in done.stdout and ("slower" in done.stdout) == bool(code)
