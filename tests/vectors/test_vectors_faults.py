"""The checker is checked: planted faults must be found, where they are, and told as what they are."""

import io
import json
import os
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum import reference
from softnum.cli import build_app
from softnum.vectors import VectorFileError, check


def softnum(*arguments, data=None):
    """(exit code, stdout, stderr)"""
    result = CliRunner().invoke(build_app(), ["vectors", *map(str, arguments)], input=data, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def vectors(tmp_path):
    """A function that makes a bare file and gives (path, its lines)."""

    def make(op, fmt, *options):
        path = tmp_path / "v.txt"
        code, _, _ = softnum(
            "generate", "--op", op, "--format", fmt, "--dialect", "testfloat", "-n", 70_000, *options, "-o", path
        )
        assert code == 0
        return path, path.read_bytes().split(b"\n")[:-1]

    return make


def put(path, lines):
    path.write_bytes(b"\n".join(lines) + b"\n")


ROUND_TRIPS = [
    ("multiply", "e5m2"),
    ("multiply", "binary16", "--rounding", "rtz"),
    ("fma", "binary32", "--rounding", "rup", "--tininess", "before"),
    ("fma", "e4m3fn", "--overflow", "saturate"),
    ("multiply", "q4.4", "--overflow", "wrap"),
    ("multiply", "e5m2,e4m3fn", "--result-format", "binary16"),
    ("fma", "e6m9", "--rounding", "sr", "--stochastic-bits", "10"),
    ("convert", "binary32", "--result-format", "e5m2"),
    ("add", "binary64"),
    ("subtract", "bfloat16"),
]


@pytest.mark.parametrize("arguments", ROUND_TRIPS, ids=" ".join)
def test_generate_then_check(tmp_path, arguments):
    op, fmt, *rest = arguments
    path = tmp_path / "v.txt"
    code, out, err = softnum(
        "generate", "--op", op, "--format", fmt, *rest, "-n", "70000", "--seed", "4", "--out", path
    )
    assert (code, out) == (0, "")
    assert f"{path}: " in err and " vectors, " in err
    code, out, _ = softnum("check", path)
    assert code == 0 and "all results and flags equal" in out
    code, out, _ = softnum("check", path, "--op", op, "--format", fmt, *rest)
    assert code == 0
    # the command in the header makes the same file
    command = next(line for line in path.read_text().splitlines() if line.startswith("# command: "))
    again = tmp_path / "again.txt"
    words = command.removeprefix("# command: softnum vectors ").split()
    assert softnum(*words, "-o", again)[0] == 0
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("op, fmt", [("multiply", "binary16"), ("fma", "binary32"), ("multiply", "e5m2")])
@pytest.mark.parametrize("number", [1, 12_345, 65_536])
def test_one_ulp(vectors, op, fmt, number):
    path, lines = vectors(op, fmt)
    fields = lines[number - 1].split()
    want = fields[-2]
    fields[-2] = b"%0*X" % (len(want), int(want, 16) ^ 1)
    lines[number - 1] = b" ".join(fields)
    put(path, lines)
    code, out, _ = softnum("check", path, "--op", op, "--format", fmt)
    assert code == 1
    assert out.startswith(f"line {number}: a={fields[0].decode()} (")
    assert f"got {fields[-2].decode()} (" in out and f"want {want.decode()} (" in out
    assert f"1 of {len(lines)} vectors differ (1 in the result, 0 in the flags)" in out
    assert softnum("check", path, "--op", op, "--format", fmt, "--ignore-flags")[0] == 1


@pytest.mark.parametrize(
    "bit, name", [(1, "inexact"), (2, "underflow"), (4, "overflow"), (8, "divide_by_zero"), (16, "invalid")]
)
def test_a_wrong_flag(vectors, bit, name):
    path, lines = vectors("fma", "binary16")
    number = next(n for n, line in enumerate(lines, 1) if n > 40_000 and line.endswith(b" 00"))
    lines[number - 1] = lines[number - 1][:-2] + b"%02X" % bit
    put(path, lines)
    code, out, _ = softnum("check", path, "--op", "fma", "--format", "binary16")
    assert code == 1
    assert f"line {number}: " in out and f"flags {bit:02X} ({name})" in out and "flags 00 (none)" in out
    assert "only flags differ: --ignore-flags" in out
    assert softnum("check", path, "--op", "fma", "--format", "binary16", "--ignore-flags")[0] == 0


def test_swapped_nan(vectors):
    path, lines = vectors("multiply", "binary16")
    numbers = [n for n, line in enumerate(lines, 1) if line.split()[2] == b"7E00"][:3]
    for number in numbers:
        a, b, _, flags = lines[number - 1].split()
        lines[number - 1] = b" ".join((a, b, b"FE01", flags))
    put(path, lines)
    code, out, _ = softnum("check", path, "--op", "multiply", "--format", "binary16")
    assert code == 1
    assert all(f"line {number}: " in out for number in numbers)
    assert "got FE01 (nan)" in out and "want 7E00 (nan)" in out and "--any-nan accepts them" in out
    assert softnum("check", path, "--op", "multiply", "--format", "binary16", "--any-nan")[0] == 0


def test_any_nan_does_not_excuse_numbers(vectors):
    path, lines = vectors("multiply", "binary16")
    number = next(n for n, line in enumerate(lines, 1) if line.split()[2] == b"7E00")
    fields = lines[number - 1].split()
    for wrong in (b"7C00", b"0000"):
        fields[2] = wrong
        lines[number - 1] = b" ".join(fields)
        put(path, lines)
        assert softnum("check", path, "--op", "multiply", "--format", "binary16", "--any-nan")[0] == 1
    number = next(n for n, line in enumerate(lines, 1) if line.split()[2] == b"3C00")
    fields = lines[number - 1].split()
    fields[2] = b"7E00"
    lines[number - 1] = b" ".join(fields)
    put(path, lines)
    code, out, _ = softnum("check", path, "--op", "multiply", "--format", "binary16", "--any-nan")
    assert code == 1 and "2 of 70000" in out


def test_one_wrong_digit_in_any_column_is_found():
    good = b"3E01 3E03 4083 01"
    caught = unusable = 0
    for at, digit in product(range(len(good)), b"0123456789abcdef"):
        if good[at] in (ord(" "), ord(chr(digit).upper())):
            continue
        line = good[:at] + bytes([digit]) + good[at + 1 :]
        a, b, result, flags = (int(field, 16) for field in line.split())
        lines = (good + b"\n") * 9 + line + b"\n" + (good + b"\n") * 9
        if flags > 31:
            with pytest.raises(VectorFileError, match="line 10: column 4"):
                check(io.BytesIO(lines), "multiply", "binary16")
            unusable += 1
            continue
        report = check(io.BytesIO(lines), "multiply", "binary16")
        wrong = (result, flags) != reference.multiply(a, b, "binary16")
        assert report.failures == wrong
        assert [f.line for f in report.first] == [10] * wrong
        caught += wrong
    # what is not caught: other operands of the same rounded product
    assert unusable == 14 and caught >= 14 * 15 - unusable - 10


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda t: t[:-4], "line 70000: truncated"),
        (lambda t: t[: 18 * 5000 - 3], "line 5000: truncated"),
        (lambda t: t[: 18 * 999] + b"G" + t[18 * 999 + 1 :], "line 1000: column 1 (a): 'G"),
        (lambda t: t[: 18 * 999] + t[18 * 999 + 1 :], "line 1000: column 1 (a): "),
        (lambda t: t[: 18 * 999] + t[18 * 999 + 5 :], "line 1000: 3 columns where 4 are expected"),
        (lambda t: b"", "no vectors: the file is empty"),
        (lambda t: bytes(range(256)) * 300, "line 1: not text: byte 0x00"),
    ],
    ids=["cut", "cut-early", "digit", "narrow", "column", "empty", "garbage"],
)
@pytest.mark.parametrize("by", ["file", "stdin"])
def test_unusable_input(vectors, damage, message, by):
    path, _ = vectors("multiply", "binary16")
    data = damage(path.read_bytes())
    path.write_bytes(data)
    name, given = (path, None) if by == "file" else ("-", data)
    code, _, err = softnum("check", name, "--op", "multiply", "--format", "binary16", data=given)
    assert code == 2
    assert message in err and (str(path) if by == "file" else "<stdin>") in err
    assert len(err.strip().splitlines()) == 1


def test_failures_before_an_unusable_line_are_told(vectors, tmp_path):
    path, lines = vectors("multiply", "binary16")
    lines[9] = b"3C00 3C00 3C01 00"
    lines[20] = b"3C00 3C00"
    put(path, lines)
    report = tmp_path / "report.json"
    code, out, err = softnum("check", path, "--op", "multiply", "--format", "binary16", "-o", report)
    assert code == 2 and "line 21: 2 columns" in err
    assert "line 10: " in out and "1 of 20 vectors differ" in out and "up to the unusable line" in out
    facts = json.loads(report.read_text())
    assert facts["vectors"] == 20 and "line 21" in facts["error"]


def test_a_wrong_rounding_mode_is_seen_and_counted(vectors, tmp_path):
    path, lines = vectors("multiply", "binary16", "--rounding", "rtz")
    report = tmp_path / "report.json"
    code, out, _ = softnum("check", path, "--op", "multiply", "--format", "binary16", "--max-failures", 2, "-o", report)
    facts = json.loads(report.read_text())
    assert code == 1
    assert len(facts["first"]) == 2 and sum(line.startswith("line ") for line in out.splitlines()) == 2
    a, b, got = (np.array([int(line.split()[i], 16) for line in lines], np.uint16) for i in range(3))
    differ = np.count_nonzero(sn.multiply(a, b, "binary16") != got)
    assert facts["result_failures"] == differ > 1000
    assert f"... and {facts['failures'] - 2} more" in out
    first = facts["first"][0]
    assert lines[first["line"] - 1].split()[0].decode() == first["operands"]["a"]["hex"]
    value = float(first["want"]["value"])
    assert value == sn.decode([int(first["want"]["hex"], 16)], "binary16")[0]


def test_random_bits_decide(vectors):
    path, lines = vectors("fma", "e6m9", "--rounding", "sr", "--stochastic-bits", 10)
    options = ("--op", "fma", "--format", "e6m9", "--rounding", "sr", "--stochastic-bits", 10)
    assert softnum("check", path, *options)[0] == 0
    assert len(lines[0].split()) == 6 and len(lines[0].split()[3]) == 3
    for number, line in enumerate(lines):
        fields = line.split()
        fields[3] = b"%03X" % (int(fields[3], 16) ^ 0x3FF)
        lines[number] = b" ".join(fields)
    put(path, lines)
    code, out, _ = softnum("check", path, *options)
    assert code == 1 and "random=" in out
    # without the mode the columns do not fit
    code, _, err = softnum("check", path, "--op", "fma", "--format", "e6m9")
    assert code == 2 and "line 1: 6 columns where 5 are expected" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("generate", "--format", "e5m2"), "state --op"),
        (("generate", "--op", "multiply"), "state --format"),
        (("generate", "--op", "multipl", "--format", "e5m2"), "did you mean 'multiply'"),
        (("generate", "--op", "multiply", "--format", "e5m2", "--dialect", "vcd"), "unknown dialect 'vcd'"),
        (("generate", "--op", "convert", "--format", "e5m2"), "--result-format"),
        (("generate", "--op", "multiply", "--format", "e5m2", "-o", "no/such/folder/v.txt"), "there is no folder"),
        (("check", "no-such-file.txt", "--op", "multiply", "--format", "e5m2"), "error: no file 'no-such-file.txt'"),
        (("check", ".", "--op", "multiply", "--format", "e5m2"), "'.' is a directory"),
    ],
)
def test_unusable_options(arguments, message):
    code, _, err = softnum(*arguments)
    assert code == 2 and message in err


def run(command, python=sys.executable, **options):
    """A shell pipeline, with this Python's softnum as softnum."""
    env = {**os.environ, "PYTHON": str(python)}
    command = f'softnum() {{ "$PYTHON" -m softnum.cli "$@"; }}\n{command}'  # quoted: the path may hold spaces
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=env, timeout=120, **options)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_progress_bar_only_on_a_terminal(tmp_path):
    base = [sys.executable, "-m", "softnum.cli", "vectors", "generate", "--op", "multiply", "--format", "binary16"]

    def on_terminal(*command):
        ours, theirs = os.openpty()
        process = subprocess.Popen(command, stderr=theirs, stdout=subprocess.DEVNULL, cwd=tmp_path)
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side is closed
                break
            if not part:
                break
            seen += part
        os.close(ours)
        assert process.wait(timeout=120) == 0
        return seen.decode()

    assert "/2500000" in on_terminal(*base, "-n", "2500000", "-o", "v.txt")
    assert "vectors" in on_terminal(*base[:4], "check", "v.txt")
    told = on_terminal(*base, "-n", "1000", "--no-coverage", "-o", "v.txt")
    assert told == "v.txt: 1000 vectors, edges and random\r\n"


def test_pipes(tmp_path):
    make = "softnum vectors generate --op multiply --format e5m2 --rounding rne"
    done = run(f"{make} --dialect testfloat | softnum vectors check --op multiply --format e5m2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "<stdin>: multiply e5m2, nearest_even: 65536 vectors, all results and flags equal\n"
    assert done.stderr == ""  # no progress bar where stderr is no terminal
    done = run(f"{make} --dialect testfloat -o v.txt && sed -i '777s/..$/1F/' v.txt && softnum vectors check v.txt "
               "--op multiply --format e5m2", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1 and "line 777: " in done.stdout
    assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["v.txt"]
    # a reader that stops early is no error
    done = run(f"{make.replace('e5m2', 'binary32')} -n 500000 | head -n 1", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "# softnum vectors 1\n", "")


def test_pipes_from_a_folder_with_a_space(tmp_path):
    python = tmp_path / "a b" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    done = run("softnum vectors generate --op multiply --format e2m1fn | softnum vectors check", python, cwd=tmp_path)
    assert done.returncode == 0 and "256 vectors, all results and flags equal" in done.stdout, done.stderr
