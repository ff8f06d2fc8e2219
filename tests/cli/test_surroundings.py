"""Commands in unusual surroundings: closed streams, pipes, locales, folders, limits, signals. Each is a process."""

import itertools
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softnum.runtime import atomic

SOFTNUM = f"{shlex.quote(sys.executable)} -m softnum"
ODD = b"caf\xe9".decode("utf-8", "surrogateescape")  # no UTF-8


def shell(command: str, folder, limits=(), **environment):
    """What a line of bash returns, says and complains about; its softnum is this one."""

    def limit() -> None:
        for name, value in limits:
            resource.setrlimit(name, (value, value))

    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("softnum ", f"{SOFTNUM} ")], cwd=folder, capture_output=True,
        env=os.environ | environment, preexec_fn=limit, timeout=300,
    )  # fmt: skip


def said(done, code: int, *texts: str) -> None:
    """It ended with this code, said these in one line, and no traceback."""
    complaint = done.stderr.decode(errors="surrogateescape")
    assert done.returncode == code, complaint
    assert "Traceback" not in complaint and complaint.count("\n") <= 1
    for text in texts:
        assert text in complaint


def test_an_expression_of_no_unit(tmp_path):
    """Of a depth that Python's parser refuses."""
    command = f"softnum vectors generate --op dot --length 4 -n 10 --unit {shlex.quote('(' * 20000)}"
    said(shell(command, tmp_path), 2, "no expression of a unit")


@pytest.mark.slow
def test_closed_streams(tmp_path):
    said(shell("softnum vectors generate --op add --format e5m2 >&-", tmp_path), 2, "standard output is closed")
    said(shell("softnum vectors check --op add --format e5m2 <&-", tmp_path), 2, "standard input is closed")
    said(shell("softnum designs >&-", tmp_path), 0)
    # what is opened next does not become standard output
    said(shell("softnum vectors generate --op add --format e5m2 -o v.txt >&- 2>/dev/null", tmp_path), 0)
    said(shell("softnum vectors check v.txt", tmp_path), 0)


@pytest.mark.parametrize("verb", [
    "designs", pytest.param("units", marks=pytest.mark.slow), pytest.param("formats e5m2", marks=pytest.mark.slow),
    "vectors generate --op add --format e5m2",
])  # fmt: skip
def test_a_reader_that_stops_early(tmp_path, verb):
    """141, as shells say of a program that SIGPIPE ended, and no message; a reader that is gone before the start."""
    said(shell(f"softnum {verb} > >(exec true); exit $?", tmp_path), 141)


@pytest.mark.slow
def test_a_full_disk_names_the_file(tmp_path):
    make = "softnum vectors generate --op add --format binary32 -n 300000"
    said(shell(f"{make} > /dev/full", tmp_path), 2, "No space left on device: 'standard output'")
    done = shell(f"{make} -o v.txt", tmp_path, [(resource.RLIMIT_FSIZE, 100_000)])
    said(done, 2, "File too large: 'v.txt'")
    assert not list(tmp_path.iterdir())
    done = shell("softnum train mlp --design a-float32 --samples 64 --epochs 1 --out o", tmp_path,
                 [(resource.RLIMIT_FSIZE, 3000)])  # fmt: skip
    assert done.returncode == 2 and re.search(rb"File too large: '.*seed-1", done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("locale", [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
    pytest.param({"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8:strict"}, marks=pytest.mark.slow),
])  # fmt: skip
def test_locales_and_folders_that_are_no_text(tmp_path, locale):
    """What ASCII lacks is printed as a question mark; in UTF-8 names of files are their bytes."""
    (tmp_path / ODD).mkdir()
    train = "--seeds 1 --epochs 1 --samples 64 --held-out 32 --out $'caf\\xe9/o'"
    make = "softnum designs a-float32 --out $'caf\\xe9'"
    done = shell(f"{make} && softnum tta --designs $'caf\\xe9/a-float32.toml' {train}", tmp_path, **locale)
    assert done.returncode == 0, done.stderr
    text = "utf-8" in str(locale)
    assert (b"caf\xe9/o/results.json" if text else b"caf?/o/results.json") in done.stdout
    assert (b"\xc2\xb5s" in done.stdout) == text and (b"?s" in done.stdout) != text
    assert (tmp_path / ODD / "o" / "results.json").is_file()
    done = shell("softnum report $'caf\\xe9/o'", tmp_path, **locale)
    assert done.returncode == 0, done.stderr
    said(shell("softnum memory mlp --design $'caf\\xe9/none.toml'", tmp_path, **locale), 2)


def test_few_open_files(tmp_path):
    few = [(resource.RLIMIT_NOFILE, 16)]
    done = shell("softnum tta --designs a-float32 --seeds 2 --epochs 1 --jobs 2 --out o", tmp_path, few)
    assert done.returncode == 2 and b"Traceback" not in done.stderr and b"(ulimit -n)" in done.stderr, done.stderr


def test_few_addresses(tmp_path):
    """The engine that draws charts would end the process by SIGTRAP."""
    code = "from softnum.tta.html import page; page.check_engine()"
    for limits, text in (
        ([(resource.RLIMIT_AS, 5 << 30)], "(ulimit -v)"), ([(resource.RLIMIT_NOFILE, 16)], "(ulimit -n)")
    ):  # fmt: skip
        done = shell(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}", tmp_path, limits)
        assert done.returncode == 1 and "ValueError: the engine that draws the charts" in done.stderr.decode()
        assert text in done.stderr.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_signal_leaves_nothing(tmp_path, number):
    """SIGTERM and SIGINT tidy up; what SIGKILL leaves, the next command that writes into the folder removes."""
    command = f"exec {SOFTNUM} vectors generate --op add --format binary32 -n 200000000 -o v.txt"
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(p.stat().st_size > 1 << 16 for p in tmp_path.glob(".v.txt.*.tmp")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    again = "softnum vectors generate --op add --format e2m1fn -o other.txt"
    assert shell(again, tmp_path).returncode == 0
    (left,) = tmp_path.glob(".v.txt.*.tmp")  # it is being written
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}[number]
    if number == signal.SIGKILL:
        os.utime(left, (time.time() + 600,) * 2)  # however long the command takes
        assert shell(again, tmp_path).returncode == 0 and left.exists()  # too young to tell
        os.utime(left, (0, 0))
        for name in (".v.txt.tmp", ".v.txt.0123456.tmp", "v.txt.01234567.tmp"):
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (0, 0))
        assert shell(again, tmp_path).returncode == 0
        assert len(list(tmp_path.glob("*.tmp"))) == 3  # which are no such files
    assert not left.exists() and not (tmp_path / "v.txt").exists()


def test_what_is_being_written_is_left_alone(tmp_path):
    """However old it looks: its writer holds a lock on it."""
    with atomic.atomic_file(tmp_path / "one") as file:
        file.write(b"1")
        file.flush()
        (temporary,) = tmp_path.glob(".one.*.tmp")
        os.utime(temporary, (0, 0))
        atomic._tidied.clear()
        os.symlink("/etc/hostname", tmp_path / ".x.01234567.tmp")
        atomic.write_atomic(tmp_path / "two", "2")
        assert temporary.exists() and os.path.lexists(tmp_path / ".x.01234567.tmp")
    assert (tmp_path / "one").read_bytes() == b"1"


def test_a_clock_that_jumps(tmp_path):
    """Nothing asks what time it is: runs, their records and going on are the same while the clock jumps by hours."""
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
    if library is None:
        pytest.skip("needs Debian's package faketime")
    clock, train = tmp_path / "clock", "softnum train mlp --design c-wang-fp8 --samples 256 --epochs 3"
    assert shell(f"{train} --out straight", tmp_path).returncode == 0
    jumping = {
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "SOFTNUM_THREADS": "2", "SOFTNUM_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    clock.write_text("+0")
    process = subprocess.Popen(
        ["bash", "-c", train.replace("softnum ", f"exec {SOFTNUM} ") + " --out jumping"], cwd=tmp_path,
        env=os.environ | jumping, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    record, jumps = tmp_path / "jumping" / "c-wang-fp8" / "seed-1.jsonl", itertools.cycle(["-7h", "+30h", "-400d"])
    while process.poll() is None and not (record.exists() and record.read_bytes().count(b"\n") > 10):
        clock.write_text(next(jumps))
        time.sleep(0.05)
    process.kill()
    process.wait()
    clock.write_text("-300d")  # before the checkpoint was written
    done = shell(f"{train} --out jumping", tmp_path, **jumping)
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "straight").rglob("*.jsonl"):
        assert (tmp_path / "jumping" / path.relative_to(tmp_path / "straight")).read_bytes() == path.read_bytes()
    assert b"-" not in re.sub(rb"[\w/]*c-wang-fp8[\w/.-]*|seed-1", b"", done.stdout + done.stderr)  # no negative time
    done = shell(f"{train} --out jumping", tmp_path, **jumping)  # finished: it stays
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_whose_code_runs_is_said_before_it_does(tmp_path):
    """One line for each file, on stderr, before the file's own first word; nothing of softnum's own designs."""
    (tmp_path / "mine.py").write_text(
        "import sys, softnum as sn\nprint('here I am', file=sys.stderr)\n"
        "fmt = sn.CustomFormat.from_table([-1.0, 0.0, 1.0, 2.0], name='mine')\n"
    )
    assert shell("softnum designs a-float32 --out .", tmp_path).returncode == 0
    text = (tmp_path / "a-float32.toml").read_text().replace('"a-float32"', '"mine"')
    text = text.replace("\n[units]", 'weights = { format = "mine.py:fmt" }\n\n[units]')
    (tmp_path / "mine.toml").write_text(text)
    study = '[study]\nname = "s"\nseeds = 1\ndesigns = ["a-float32", "mine.toml"]\nepochs = 1\ntarget = 0.1\n'
    (tmp_path / "study.toml").write_text(study + '[settings]\nsamples = 32\n[[networks]]\nname = "mlp"\n')
    options = "--seeds 1 --epochs 1 --samples 32 --held-out 16 --out o"
    for command in (
        "memory mlp --design mine.toml", "train mlp --design mine.toml --explain", "study plan study.toml",
        f"tta --designs a-float32,mine.toml {options} --jobs 2",
    ):  # fmt: skip
        done = shell(f"softnum {command}", tmp_path)
        said = [line for line in done.stderr.decode().splitlines() if "code of" in line or line == "here I am"]
        assert said[:2] == ["softnum: runs code of yours: mine.py", "here I am"], (command, done.stderr)
        assert done.returncode == 0 and done.stderr.count(b"runs code") == 1, (command, done.stderr)
    for design in ("a-float32", "h-posit8"):
        assert b"runs code" not in shell(f"softnum memory mlp --design {design}", tmp_path).stderr
