"""Records of earlier studies, found by content: what is taken, what never is, and what damage and others do."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import Case, Settings, conduct_study, load_design, plan_study, read_study, run_study
from softnum.train.runs.record import read_lines
from softnum.train.studies.keys import arithmetic_of
from softnum.train.studies.store import RecordStore, own_store, shareable

RECIPE = Settings("mlp", {"sizes": [64, 4, 10]}, samples=64, held_out=16, batch=32, epochs=1, evaluate_every=1)


FLOAT32 = (Case("a-float32"),)


def train(out, store, cases=FLOAT32, settings=RECIPE, **more):
    """How many runs a store gave, and the records."""
    before, done = store.taken, []
    more = {"seeds": [1], "jobs": 1, "progress": lambda *told: done.append(told[3])} | more
    paths = run_study(list(cases), settings, out=out, store=store, **more)
    assert done.count(False) >= store.taken - before  # what is taken is not trained
    return store.taken - before, paths


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    store = RecordStore(folder / "store")
    taken, (path,) = train(folder / "first", store)
    assert taken == 0
    return folder, store, path


def test_a_second_study_takes_the_same_bytes(first):
    folder, store, path = first
    taken, (again,) = train(folder / "second", store)
    assert taken == 1 and again.read_bytes() == path.read_bytes()
    (kept,) = store.folder.rglob("*.jsonl")
    assert kept.read_bytes() == path.read_bytes() and kept.name.startswith(arithmetic_of(read_lines(path)[0]))
    assert train(folder / "second", store)[1] == [again]  # and what is in its place is found there


@pytest.mark.parametrize(
    "other",
    [
        {"seeds": [2]},
        {"cases": [Case("b-binary16")]},
        {"settings": replace(RECIPE, learning_rate=0.05)},
        {"settings": replace(RECIPE, samples=96)},
        {"settings": replace(RECIPE, held_out=17)},
        {"settings": replace(RECIPE, evaluate_every=2)},
        {"settings": replace(RECIPE, network_options={"sizes": [64, 5, 10]})},
        {"force": True},
    ],
)
def test_what_differs_is_trained(first, other, tmp_path):
    _, store, _ = first
    here = RecordStore(tmp_path / "store")
    here.keep(next(store.folder.rglob("*.jsonl")))
    assert train(tmp_path / "out", here, **other)[0] == 0


def test_another_name_and_hardware_are_the_same_arithmetic(first, tmp_path):
    _, store, path = first
    text = load_design("a-float32").path.read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text.replace('"a-float32"', '"mine"').replace("[32, 32]", "[16, 16]"))
    taken, (found,) = train(tmp_path / "out", store, [Case(str(tmp_path / "mine.toml"))])
    ours, theirs = read_lines(found), read_lines(path)
    assert taken == 1 and ours[1:] == theirs[1:]
    assert ours[0]["config"]["design"]["name"] == "mine" and ours[0]["config"]["design"]["hardware"]["array"] == [
        16,
        16,
    ]
    run_study([Case(str(tmp_path / "mine.toml"))], RECIPE, seeds=[1], out=tmp_path / "trained", jobs=1)
    assert found.read_bytes() == (tmp_path / "trained" / "mine" / "seed-1.jsonl").read_bytes()


def test_damaged_and_contradicting_records_are_not_taken(first, tmp_path):
    _, _, path = first
    header, record = read_lines(path)[0], path.read_bytes()
    store = RecordStore(tmp_path / "store")
    assert store.find(header, 2) is None
    store.keep(path)
    (kept,) = store.folder.rglob("*.jsonl")
    assert store.find(header, 2) == record and store.find(header, 3) is None
    assert store.find({**header, "versions": {**header["versions"], "softnum": "0.0.1"}}, 2) is None
    kept.write_bytes(record.replace(b'"epoch": 1, "loss": ', b'"epoch": 1, "loss": 1', 1))  # not what its name says
    assert store.find(header, 2) is None
    for content in (b"", b"\0" * 100, record[:-20]):
        kept.write_bytes(content)
        assert store.find(header, 2) is None
    kept.unlink()
    store.keep(path)
    other = tmp_path / "seed-1.jsonl"
    other.write_bytes(record.replace(b'"epoch": 1, "loss": ', b'"epoch": 1, "loss": 1', 1))
    RecordStore(tmp_path / "two").keep(other)
    (second,) = (tmp_path / "two").rglob("*.jsonl")
    second.rename(kept.with_name(second.name))
    assert store.find(header, 2) is None  # which of them is right cannot be known
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "seed-1.jsonl").write_bytes(record.rpartition(b"\n{")[0] + b"\n")
    third = RecordStore(tmp_path / "three")
    third.keep(unfinished / "seed-1.jsonl")
    third.keep(tmp_path / "gone.jsonl")
    assert not third.folder.exists()


def test_many_at_once_and_folders_that_cannot_be_written(first, tmp_path):
    _, _, path = first
    store = RecordStore(tmp_path / "store")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.keep, [path] * 40))
    assert len([file for file in store.folder.rglob("*") if file.is_file()]) == 1
    (tmp_path / "file").write_text("")
    RecordStore(tmp_path / "file").keep(path)
    assert train(tmp_path / "out", RecordStore(tmp_path / "file"))[0] == 0


def test_the_record_of_another_run_is_left_in_its_place(first, tmp_path):
    _, store, _ = first
    run_study([Case("a-float32")], replace(RECIPE, learning_rate=0.05), seeds=[1], out=tmp_path, jobs=1)
    with pytest.raises(ValueError, match="is the record of another run: config.optimiser.learning_rate is 0.1"):
        train(tmp_path, store)


def test_code_of_the_users_own_is_not_shared(tmp_path):
    shipped = load_design("h-posit8")
    for name in ("h-posit8.toml", "posit8.py"):
        (tmp_path / name).write_bytes((shipped.path.parent / name).read_bytes())
    own = load_design(tmp_path / "h-posit8.toml")
    assert (shareable(shipped, RECIPE), shareable(own, RECIPE)) == (True, False)
    assert not shareable(shipped, Settings("mine.py:make"))
    store = RecordStore(tmp_path / "store")
    for out in "ab":
        assert train(tmp_path / out, store, [Case(str(own.path))])[0] == 0
    assert not store.folder.exists()


def test_studies_of_a_file_and_the_command(first, tmp_path, monkeypatch):
    _, store, path = first
    study = tmp_path / "small.toml"
    study.write_text(
        'study = {designs = ["a-float32"], seeds = [1, 2], epochs = 1, target = 0.1, batches = [32]}\n'
        "networks = [{name = 'mlp', options = {sizes = [64, 4, 10]}, samples = 64, held_out = 16, "
        "evaluate_every = 1}]\n"
        "timings = {file = 'times.csv'}\nreport = {html = false}\n"
    )
    (tmp_path / "times.csv").write_text("design,iteration,seconds\na-float32,1,1e-6\n")
    plan = plan_study(read_study(study), tmp_path / "out", store=store)
    assert [run.state for run in plan.runs] == ["earlier study", "new"]
    assert [run.state for run in plan_study(read_study(study), tmp_path / "out").runs] == ["new", "new"]
    outcome = conduct_study(read_study(study), tmp_path / "out", jobs=1, store=store)
    assert (outcome.taken, outcome.trained, outcome.found) == (1, 1, 0)
    assert next((tmp_path / "out").rglob("seed-1.jsonl")).read_bytes() == path.read_bytes()
    events = [json.loads(line)["event"] for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()]
    assert events == ["copied", "finished"]
    # what the study trained is kept too, and the command finds both
    monkeypatch.setattr("softnum.train.studies.store.own_store", lambda: RecordStore(store.folder))
    words = ["tta", "--designs", "a-float32", "--seeds", "2", "--samples", "64", "--held-out", "16", "--batch", "32"]
    words += ["--sizes", "64,4,10", "--epochs", "1", "--target", "0.1", "--timings", str(tmp_path / "times.csv")]
    for out, more, said in (("x", [], False), ("y", [], True), ("z", ["--no-reuse"], False)):
        ended = CliRunner().invoke(build_app(), [*words, "--jobs", "1", *more, "--out", str(tmp_path / out)])
        assert ended.exit_code == 0, ended.output
        assert ("2 runs were trained by an earlier study" in ended.stderr) == said
    results = [json.loads((tmp_path / out / "results.json").read_text())["variants"] for out in "xyz"]
    assert results[0] == results[1] == results[2]


def test_where_the_users_store_is(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNUM_RECORDS", "none")
    assert own_store() is None
    monkeypatch.setenv("SOFTNUM_RECORDS", str(tmp_path / "mine"))
    assert own_store().folder.parent == tmp_path / "mine"
    monkeypatch.delenv("SOFTNUM_RECORDS")
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))
    assert own_store().folder.parent == tmp_path / "cache" / "records"
    Path(tmp_path, "cache").chmod(0o777)
    with pytest.raises(ValueError, match="others can write to the cache folder"):
        own_store()
