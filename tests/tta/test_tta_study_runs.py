"""Studies: what is finished is not run again, what fails leaves the rest alone, what is killed goes on."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from softnum.train import load_design, plan_study, read_study
from softnum.train.studies.ledger import Ledger
from softnum.train.studies.status import study_status
from softnum.train.studies.task import perform
from tests.support.study_cases import HARDWARE, conduct, records, until, write_study


def states(plan):
    return [run.state for run in plan.runs]


def plan_of(file, out):
    return plan_study(read_study(file), out)


# -- the cache ---------------------------------------------------------------------------------------------------------
def test_a_study_is_a_folder_of_comparisons(tmp_path):
    file = write_study(tmp_path, ["a-float32", "c-wang-fp8"], networks='[[networks]]\nname="mlp"\n'
                       '[[networks]]\nname="mlp"\noptions={sizes=[64,16,10]}\nepochs=1\n')  # fmt: skip
    steps = []
    outcome = conduct(file, tmp_path / "out", progress=lambda *step: steps.append(step))
    assert outcome.complete and (outcome.trained, outcome.found, outcome.copied) == (8, 0, 0)
    assert [step[:2] for step in steps] == [(n, 8) for n in range(1, 9)]
    table = json.loads((tmp_path / "out" / "study.json").read_text())
    assert (table["schema"], table["name"]) == (1, "small")
    assert [entry["folder"] for entry in table["comparisons"]] == ["mlp", "mlp-2"]
    for entry in table["comparisons"]:
        folder = tmp_path / "out" / entry["folder"]
        assert (folder / "results.json").is_file() and (folder / "tta.png").is_file()
        assert [row["state"] for row in entry["runs"]] == ["finished"] * 4
        for row in entry["runs"]:
            first = json.loads((folder / row["record"]).read_text().splitlines()[0])
            assert first["seed"] == row["seed"] and first["config"]["design"]["name"] == row["label"]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/records/*/*")}
    study = (tmp_path / "out" / "study.json").read_bytes()
    again = conduct(file, tmp_path / "out")
    assert (again.trained, again.found) == (0, 8)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/records/*/*")}
    assert (tmp_path / "out" / "study.json").read_bytes() == study
    assert set(Ledger(tmp_path / "out").completions().values()) == {1}


def own_design(folder, name="mine", rounding="nearest_even", clock="1 GHz"):
    text = HARDWARE.replace("1 GHz", clock)
    role = f'weights = {{ format = "e5m10", rounding = "{rounding}" }}'
    (folder / f"{name}.toml").write_text(f'name = "{name}"\n[roles]\n{role}\n{text}')


def test_a_changed_design_runs_again_alone_and_comes_back(tmp_path):
    own_design(tmp_path)
    file, out = write_study(tmp_path, ["a-float32", "mine.toml"]), tmp_path / "out"
    conduct(file, out, inline=True)
    before = records(out)
    own_design(tmp_path, rounding="toward_zero")
    plan = plan_of(file, out)
    assert states(plan) == ["found", "found", "new", "new"] and len(plan.strangers) == 2
    assert records(out) == before  # a plan writes nothing
    assert conduct(file, out, inline=True).trained == 2
    after = records(out)
    assert {name for name in before if before[name] != after[name]} == {
        "mlp/records/mine/seed-1.jsonl", "mlp/records/mine/seed-2.jsonl",
    }  # fmt: skip
    aside = {path.name: path.read_bytes() for path in (out / "aside").iterdir()}
    assert sorted(aside.values()) == sorted(before[f"mlp/records/mine/seed-{n}.jsonl"] for n in (1, 2))
    own_design(tmp_path)  # as it was
    assert states(plan_of(file, out)) == ["found", "found", "set aside", "set aside"]
    assert conduct(file, out, inline=True).trained == 0 and records(out) == before


@pytest.mark.slow
def test_a_design_on_other_hardware_is_not_trained_again(tmp_path):
    own_design(tmp_path)
    file, out = write_study(tmp_path, ["mine.toml"]), tmp_path / "out"
    conduct(file, out, inline=True)
    own_design(tmp_path, clock="2 GHz")
    own_design(tmp_path, "faster", clock="4 GHz")
    file = write_study(tmp_path, ["mine.toml", "faster.toml"])
    assert states(plan_of(file, out)) == ["same arithmetic"] * 4
    outcome = conduct(file, out, inline=True)
    assert (outcome.trained, outcome.copied, outcome.complete) == (0, 4, True)
    conduct(file, tmp_path / "fresh", inline=True)  # the rows are those that training writes
    assert records(out) == records(tmp_path / "fresh")
    fresh = Ledger(tmp_path / "fresh").rows()
    assert [row["event"] for row in fresh].count("finished") == 2  # and two designs of one arithmetic train once
    assert [row["event"] for row in fresh].count("copied") == 2


@pytest.mark.slow
def test_other_settings_do_not_mix(tmp_path):
    out = tmp_path / "out"
    conduct(write_study(tmp_path, ["a-float32"], epochs=1), out, inline=True)
    conduct(write_study(tmp_path, ["a-float32"], epochs=2, seeds="[2]"), out, inline=True)
    assert list(records(out)) == ["mlp/records/a-float32/seed-2.jsonl"]
    assert len(list((out / "aside").iterdir())) == 2
    file = write_study(tmp_path, ["a-float32"], epochs=1, batches="[128, 256]")  # other labels for the same runs
    assert states(plan_of(file, out)) == ["set aside", "set aside", "new", "new"]


def test_what_is_no_record_or_damaged_is_set_aside(tmp_path):
    file, out = write_study(tmp_path, ["a-float32"], seeds="4"), tmp_path / "out"
    conduct(file, out, inline=True)
    before = records(out)
    paths = [out / "mlp" / "records" / "a-float32" / f"seed-{n}.jsonl" for n in (1, 2, 3)]
    paths[0].write_bytes(b"nonsense")
    lines = paths[1].read_bytes().splitlines(keepends=True)
    paths[1].write_bytes(b"".join(lines[:3] + lines[4:]))  # an iteration is missing
    paths[2].write_bytes(b"")
    assert states(plan_of(file, out)) == ["new", "new", "new", "found"]
    assert conduct(file, out, inline=True).trained == 3 and records(out) == before
    assert sorted(path.name[:8] for path in (out / "aside").iterdir()) == ["damaged-"] * 3


def test_a_run_that_is_found_without_a_line_in_the_ledger(tmp_path):
    file, out = write_study(tmp_path, ["a-float32"]), tmp_path / "out"
    conduct(file, out, inline=True)
    lines = (out / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (out / "runs.jsonl").write_bytes(lines[0] + lines[1][:20])  # killed as it wrote
    conduct(file, out, inline=True)
    rows = Ledger(out).rows()
    assert len(rows) == 2 and rows[1]["attempt"] == 0 and set(Ledger(out).completions().values()) == {1}


# -- failures ----------------------------------------------------------------------------------------------------------
def breaking_design(folder, monkeypatch, body):
    """A design whose file in Python does something in every process but that of the test."""
    shipped = load_design("h-posit8")
    (folder / "mine.toml").write_text(shipped.path.read_text().replace("posit8", "mine").replace("h-mine", "mine"))
    start = "import os, pathlib, signal\n\nif os.getpid() != int(os.environ['OF_THE_TEST']):\n    "
    tail = "\n\nmine = posit8\n"
    (folder / "mine.py").write_text(start + body + "\n\n" + shipped.files[0].read_text() + tail)
    monkeypatch.setenv("OF_THE_TEST", str(os.getpid()))


def test_a_run_that_fails_leaves_the_others_alone(tmp_path, monkeypatch):
    breaking_design(tmp_path, monkeypatch, "raise RuntimeError('this [x] is broken')")
    file, out = write_study(tmp_path, ["a-float32", "mine.toml", "c-wang-fp8"]), tmp_path / "out"
    outcome = conduct(file, out, retries=1)
    assert not outcome.complete and outcome.trained == 4
    assert list(outcome.failed) == ["mlp/mine/seed-1", "mlp/mine/seed-2"]
    assert all("RuntimeError: this [x] is broken" in error for error in outcome.failed.values())
    rows = [row for row in Ledger(out).rows() if row["event"] == "failed"]
    assert sorted((row["run"][-1], row["attempt"]) for row in rows) == [("1", 1), ("1", 2), ("2", 1), ("2", 2)]
    notes = " ".join(json.loads((out / "mlp" / "results.json").read_text())["variants"][0]["notes"])
    assert "mine, seed 1, has no finished run and is left out" in notes
    assert {run.name: run.state for run in study_status(out)}["mlp/mine/seed-2"] == "failed"
    breaking_design(tmp_path, monkeypatch, "pass")  # mended: the failed ones run, and are failed no more
    mended = conduct(file, out)
    assert (mended.trained, mended.found, mended.complete) == (2, 4, True)
    assert {run.state for run in study_status(out)} == {"finished"}


def test_a_worker_that_dies_is_one_run_s_failure(tmp_path, monkeypatch):
    breaking_design(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGKILL)")
    file, out = write_study(tmp_path, ["a-float32", "mine.toml", "c-wang-fp8"], seeds="[5]"), tmp_path / "out"
    outcome = conduct(file, out, retries=2)
    assert outcome.trained == 2 and list(outcome.failed) == ["mlp/mine/seed-5"]
    assert "its worker process died" in outcome.failed["mlp/mine/seed-5"]
    assert "SIGKILL" in outcome.failed["mlp/mine/seed-5"]
    events = [(row["run"], row["event"]) for row in Ledger(out).rows()]
    assert events.count(("mlp/mine/seed-5", "failed")) == 3 and len(events) == 5  # the others were not disturbed


def test_a_run_whose_worker_died_once_is_tried_again(tmp_path, monkeypatch):
    once = f"once = pathlib.Path({str(tmp_path / 'once')!r})\n    if not once.exists():\n"
    breaking_design(tmp_path, monkeypatch, f"{once}        once.touch()\n        os.kill(os.getpid(), signal.SIGKILL)")
    file, out = write_study(tmp_path, ["mine.toml"], seeds="[5]"), tmp_path / "out"
    outcome = conduct(file, out)
    assert outcome.complete and outcome.trained == 1
    assert [(row["event"], row["attempt"]) for row in Ledger(out).rows()] == [("failed", 1), ("finished", 2)]


def test_a_design_that_cannot_be_trained_is_told_at_once(tmp_path):
    (tmp_path / "mine.toml").write_text('[layers."conv.*".roles]\nweights = "e5m2"\n')
    file, out = write_study(tmp_path, ["a-float32", "mine.toml"]), tmp_path / "out"
    assert states(plan_of(file, out)) == ["new", "new", "unusable", "unusable"]
    said = []
    outcome = conduct(file, out, inline=True, say=said.append)
    assert outcome.trained == 2 and list(outcome.failed) == ["mlp/mine/seed-1", "mlp/mine/seed-2"]
    assert len(said) == 1 and "mlp/mine cannot be trained, the others go on" in said[0]
    assert "matches no layer of the network" in said[0]
    assert (out / "mlp" / "results.json").is_file()


def test_without_its_baseline_a_comparison_has_no_results(tmp_path, monkeypatch):
    breaking_design(tmp_path, monkeypatch, "raise RuntimeError('broken')")
    file, out = write_study(tmp_path, ["mine.toml", "a-float32"], seeds="1"), tmp_path / "out"
    outcome = conduct(file, out, retries=0)
    assert outcome.trained == 1 and "baseline 'mine' has no finished run" in outcome.comparisons["mlp"]
    (tmp_path / "mine.toml").write_text('[layers."conv.*".roles]\nweights = "e5m2"\n')
    assert conduct(file, out).comparisons == {"mlp": "the baseline mine cannot be trained"}


def test_times_are_looked_for_before_anything_is_trained(tmp_path):
    file, out = write_study(tmp_path, ["a-float32", "c-wang-fp8"]), tmp_path / "out"
    (tmp_path / "times.csv").write_text("design,iteration,seconds\na-float32,1,1e-5\n")
    with pytest.raises(ValueError, match=r"mlp: .*times.csv: no times of 'c-wang-fp8'"):
        conduct(file, out)
    assert not records(out)


# -- interruptions -----------------------------------------------------------------------------------------------------
@contextmanager
def started(file, out):
    """A study carried out in a process of its own, which an interrupt reaches: a shell's background jobs ignore it."""
    study = subprocess.Popen(
        [sys.executable, "-m", "softnum.cli", "study", "run", str(file), "--out", str(out), "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        yield study
    finally:
        if study.poll() is None:
            study.kill()
            study.communicate(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_study_that_is_killed_goes_on(tmp_path, how):
    file, out = write_study(tmp_path, ["c-wang-fp8"], epochs=15), tmp_path / "out"
    with started(file, out) as study:
        until(lambda: list(out.glob("mlp/records/*/*.checkpoint.npz")))
        study.send_signal(how)
        _, said = study.communicate(timeout=60)
    assert study.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    if how == signal.SIGINT:
        assert said.endswith("the same command goes on from there\n")
    done = {run.name: run.done for run in study_status(out)}
    assert 0 < max(done.values()) and all(n < 150 for n in done.values())
    assert "started" in {run.state for run in study_status(out)} <= {"started", "waiting"}
    with started(file, out) as again:
        _, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    conduct(file, tmp_path / "fresh")
    assert records(out) == records(tmp_path / "fresh")
    assert sorted(Ledger(out).completions().values()) == [1, 1]


@pytest.mark.slow
def test_two_studies_do_not_share_a_folder_at_once(tmp_path):
    file, out = write_study(tmp_path, ["c-wang-fp8"], epochs=300), tmp_path / "out"
    with started(file, out):
        until(lambda: (out / "study.json").exists())
        with pytest.raises(ValueError, match="another process is writing the study in"):
            conduct(file, out)


def test_a_plan_that_was_made_of_another_design_is_not_carried_out(tmp_path):
    own_design(tmp_path)
    file, out = write_study(tmp_path, ["mine.toml"], seeds="1"), tmp_path / "out"
    (run,) = plan_of(file, out).runs
    own_design(tmp_path, rounding="toward_zero")
    with pytest.raises(ValueError, match="mlp/mine/seed-1 is not the run that was planned"):
        perform(run.task, tmp_path / "folder", lambda: None)
    assert not (tmp_path / "folder").exists()
