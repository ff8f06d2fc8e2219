"""One writer for one record: two runs at once, studies that were killed, records that were damaged."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from softnum.train import Settings, load_design, run
from softnum.train.runs import lock as lock_module
from softnum.train.runs.lock import FileLock
from softnum.train.runs.loop import read_rows

SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=2, batch=128)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.05)


def test_a_second_writer_is_refused_and_harms_nothing(tmp_path):
    design = load_design("a-float32")
    whole = run(design, SHORT, seed=1, out=tmp_path / "whole").read_bytes()
    refused = []

    def second(iteration, iterations, accuracy):
        if iteration in (3, 15):
            for force in (False, True):
                with pytest.raises(ValueError, match=r"another process is writing .*seed-1.jsonl; wait .*stop it"):
                    run(design, SHORT, seed=1, out=tmp_path / "two", force=force)
                refused.append(iteration)

    path = run(design, SHORT, seed=1, out=tmp_path / "two", progress=second)
    assert refused == [3, 3, 15, 15] and path.read_bytes() == whole
    assert [p.name for p in path.parent.iterdir()] == ["seed-1.jsonl"]
    assert run(design, SHORT, seed=1, out=tmp_path / "two") == path


def test_another_seed_is_another_record(tmp_path):
    design = load_design("a-float32")
    run(
        design,
        SHORT,
        seed=1,
        out=tmp_path,
        progress=lambda i, n, a: i == 3 and run(design, SHORT, seed=10, out=tmp_path),
    )
    assert sorted(p.name for p in (tmp_path / "a-float32").iterdir()) == ["seed-1.jsonl", "seed-10.jsonl"]


def test_a_lock_survives_a_file_that_was_left_or_removed(tmp_path):
    first, second = (FileLock(tmp_path / ".x.lock", "x") for _ in range(2))
    first.path.touch()  # of a process that was killed: the file stays, the lock does not
    first.acquire()
    with pytest.raises(ValueError, match="another process is writing x"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()
    assert not first.path.exists()


def _rows_of(folder):
    return {path: path.stat().st_size for path in folder.rglob("*.jsonl")}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
def test_workers_of_a_killed_study_end(tmp_path):
    command = [sys.executable, "-m", "softnum.cli", "tta", "--designs", "c-wang-fp8,h-posit8", "--epochs", "200"]
    process = subprocess.Popen([*command, "--jobs", "2", "--out", str(tmp_path)], stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    for _ in range(12000):
        if len(_rows_of(tmp_path)) == 2 and all(size > 10_000 for size in _rows_of(tmp_path).values()):
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1)
    sizes = _rows_of(tmp_path)
    assert len(sizes) == 2
    time.sleep(1)
    assert _rows_of(tmp_path) == sizes
    for record in sizes:  # no one holds a lock, and every row is whole
        lock = FileLock(record.with_name(".seed-1.lock"), "it")
        lock.acquire()
        lock.release()
        assert [row["iteration"] for row in read_rows(record)[1:]] == list(range(1, len(read_rows(record))))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda rows: rows[:4] + rows[5:], "line 5 holds iteration 5 where 4 belongs"),
        (lambda rows: rows[:4] + rows[3:], "line 5 holds iteration 3 where 4 belongs"),
        (lambda rows: rows[:5] + rows, r"line 6 holds iteration None where 5 belongs"),
        (lambda rows: rows + rows[-1:], "line 21 says that the run is finished, and rows follow"),
        (lambda rows: [*rows[:4], rows[4][:-9], *rows[5:]], "line 5 is not JSON"),
        (lambda rows: [*rows[:4], "3", *rows[5:]], r"line 5: 3\)"),
        (lambda rows: rows[:9] + [rows[9].replace("}", ', "finished": true}')], "ends the run after 9 of 20"),
        (lambda rows: [*rows[:-1], rows[-1].replace('"accuracy"', '"acuracy"')], "line 21 lacks the last accuracy"),
    ],
)  # fmt: skip
def test_a_damaged_record_is_refused_with_the_way_out(damage, message, tmp_path):
    design = load_design("a-float32")
    path = run(design, SHORT, seed=1, out=tmp_path)
    whole = path.read_text()
    path.write_text("\n".join(damage(whole.splitlines())) + "\n")
    kept = path.read_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        run(design, SHORT, seed=1, out=tmp_path)
    assert str(path) in str(caught.value) and "--force" in str(caught.value)
    assert path.read_bytes() == kept
    assert run(design, SHORT, seed=1, out=tmp_path, force=True).read_text() == whole


def test_what_follows_the_end_is_refused(tmp_path):
    path = run(load_design("a-float32"), SHORT, seed=1, out=tmp_path)
    path.write_bytes(path.read_bytes() + b'{"iteration"')
    with pytest.raises(ValueError, match="line 22 follows the row that ends the run"):
        run(load_design("a-float32"), SHORT, seed=1, out=tmp_path)
    assert json.loads(path.read_text().splitlines()[-2])["finished"] is True


def test_a_record_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "a-float32").touch()
    with pytest.raises(ValueError, match=r"the record .*seed-1.jsonl cannot be written \(.*\); use another --out"):
        run(load_design("a-float32"), SHORT, seed=1, out=tmp_path)
