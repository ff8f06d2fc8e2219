"""Files of TensorFlow, Timeloop, MAESTRO and others: what is read, what contradicts itself, what is told by name."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from softnum.tta import read_timings
from tests.support.timing_files import DATA

REAL = os.environ.get("SOFTNUM_REAL_FILES")
real_files = pytest.mark.skipif(REAL is None, reason="SOFTNUM_REAL_FILES names no folder of real files")


def read(path, text=None, **options):
    if text is not None:
        path.write_text(text)
    (time,) = read_timings(path, design="d", **options).values()
    return time


def real(folder, *parts):
    """The files of a folder of real ones whose names have one of the parts, with their text."""
    found = [file for file in sorted(Path(REAL, folder).iterdir()) if any(part in file.name.lower() for part in parts)]
    assert found, folder
    return [(file, gzip.decompress(file.read_bytes()).decode()) for file in found if file.suffix == ".gz"]


# -- TensorFlow's timelines --------------------------------------------------------------------------------------------
MERGED = DATA / "tensorflow/merged.json"


def step(number=1, keep=lambda event: True):
    """One of the three runs in the merged file."""
    events = json.loads(MERGED.read_text())["traceEvents"]
    starts = [at for at, event in enumerate(events) if event.get("args", {}).get("name") == "_SOURCE"][::2]
    bounds = [*starts, len(events)]
    own = events[: starts[0]] + events[bounds[number - 1] : bounds[number]]
    return json.dumps({"traceEvents": [event for event in own if keep(event)]})


def test_a_timeline_is_one_step(tmp_path):
    for number, micros in ((1, 1020), (2, 520), (3, 540)):
        time = read(tmp_path / "a.json", step(number))
        assert time.samples == (micros / 1e6,) and time.kind == "measured"
        assert time.detail["iterations"] == "the file is one step, of one Session.run"
        assert read(tmp_path / "a.json", iterations=1) == time


def test_merged_runs_are_told_apart():
    time = read(MERGED, iterations=3)
    assert time.samples == (0.00102, 0.00052, 0.00054)
    assert "3 merged steps, as stated" in time.detail["iterations"]


def test_merged_runs_whose_processes_have_other_numbers(tmp_path):
    data = json.loads(MERGED.read_text())
    second = [at for at, event in enumerate(data["traceEvents"]) if event.get("args", {}).get("name") == "_SOURCE"][2]
    for event in data["traceEvents"][second:]:
        event["pid"] += 2
    assert read(tmp_path / "a.json", json.dumps(data), iterations=3).samples == (0.00102, 0.00052, 0.00054)


def test_merged_runs_without_the_source_node(tmp_path):
    data = json.loads(MERGED.read_text())
    data["traceEvents"] = [event for event in data["traceEvents"] if event.get("args", {}).get("name") != "_SOURCE"]
    assert read(tmp_path / "a.json", json.dumps(data), iterations=3).samples == (0.00101, 0.00051, 0.00053)
    data["traceEvents"] = [event for event in data["traceEvents"] if event.get("args", {}).get("name") != "init/once"]
    with pytest.raises(ValueError, match=r"event \d+: without --iterations a file is one step, but 0 of 5 nodes"):
        read(tmp_path / "a.json", json.dumps(data))


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (None, "without --iterations a file is one step, but "),
        (1, "--iterations says 1, but "),
        (2, r"--iterations says 2, but 0 of 7 nodes .*, and 4 run 6 times, such as '_SOURCE'; .* runs 6 times; state"),
        (6, "'_SOURCE' of step 2 begins before "),
    ],
)
def test_another_number_of_merged_runs_contradicts_the_file(stated, said):
    with pytest.raises(ValueError, match=rf"merged.json, event \d+: {said}"):
        read(MERGED, iterations=stated)


def test_what_is_wrong_with_a_timeline(tmp_path):
    def changed(change, **options):
        data = json.loads(MERGED.read_text())
        change(data["traceEvents"])
        return read(tmp_path / "a.json", json.dumps(data), **options)

    with pytest.raises(ValueError, match="event 22: 'input' of step 2 begins before 'input' of step 1, event 10,"):
        changed(lambda events: next(e for e in events if e.get("dur") == 20).update(dur=4000), iterations=3)
    with pytest.raises(ValueError, match=r"event 8: 'NoOp' lacks 'dur'"):
        changed(lambda events: events[7].pop("dur"), iterations=3)
    with pytest.raises(ValueError, match=r"event 8: the operation 'NoOp' lacks the node's name in 'args'"):
        changed(lambda events: events[7].pop("args"), iterations=3)
    with pytest.raises(ValueError, match=r"no operation among \d+ events; run with RunOptions"):
        read(tmp_path / "a.json", step(keep=lambda event: event["ph"] != "X"))
    with pytest.raises(ValueError, match=r"line 13: not JSON .*, after the event 'MatMul'; write it again"):
        read(tmp_path / "a.json", MERGED.read_text()[:1500], format="tensorflow")
    with pytest.raises(ValueError, match=r"step 1 takes no time"):
        begun = step(keep=lambda event: event["ph"] != "X" or event["ts"] == 1490280136316500)
        read(tmp_path / "a.json", begun.replace('"dur": 6', '"dur": 0'))
    with pytest.raises(ValueError, match="--marker is not for the format tensorflow"):
        read(MERGED, marker="x")


@real_files
def test_real_timelines():
    for file, text in real("timeline", ".json"):
        ops = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X" and event.get("cat") == "Op"]
        span = (max(op["ts"] + op["dur"] for op in ops) - min(op["ts"] for op in ops)) / 1e6
        merged = re.search(r"merged_(\d+)", file.name)
        time = read(file, iterations=int(merged[1]) if merged else None)
        if merged:
            assert len(time.samples) == int(merged[1]) and 0 < sum(time.samples) < span
            with pytest.raises(ValueError, match="without --iterations a file is one step"):
                read(file)
        else:
            assert time.samples == (pytest.approx(span, rel=1e-12),)
