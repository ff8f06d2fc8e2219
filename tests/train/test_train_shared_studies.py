"""Studies over collectives and numbers of workers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from softnum.train import conduct_study, read_study
from softnum.train.studies.plan import plan_study
from softnum.tta import read_results
from softnum.tta.accuracy import read_record
from softnum.tta.timings.formats import gather_timings
from tests.support.cases import cases

_SHIPPED = Path(__file__).parents[2] / "train/studies/shipped/reduction-order"
_TEXT = """\
[study]
designs = ["a-float32"]
seeds = 1
epochs = 1
batches = [32]
target = 0.1
workers = [1, 4, 8]
baseline = "a-float32@w1"

[study.collectives]
ring = "ring(unit='bfloat16')"
exact = "in_network(unit=ExactDotUnit('bfloat16', operand='bfloat16'))"

[[networks]]
name = "mlp"
samples = 96

[timings]
file = "times.csv"

[report]
html = false
"""
_LABELS = ["a-float32@w1", *(f"a-float32@{how}@w{count}" for count in (4, 8) for how in ("ring", "exact"))]


def _study(folder, text=_TEXT):
    rows = "".join(f"{label},1,1e-5\n" for label in _LABELS)
    (folder / "times.csv").write_text(f"design,iteration,seconds\n{rows}")
    file = folder / "study.toml"
    file.write_text(text)
    return read_study(file)


def test_each_collective_at_each_number_of_workers_is_trained_and_shown(tmp_path):
    study, out, said = _study(tmp_path), tmp_path / "out", io.StringIO()
    assert list(study.comparisons[0].labels) == _LABELS
    outcome = conduct_study(study, out, jobs=1, console=Console(file=said, width=200))
    assert outcome.complete and outcome.trained == 5
    ends = {}
    for label in _LABELS:
        record = read_record(out / "mlp" / "records" / label / "seed-1.jsonl")
        assert record.label == label and record.workers == int(label.rpartition("@w")[2])
        ends[label] = record.evaluations
        how = f"{label}: {record.workers} workers, {record.collective}"
        assert (how in said.getvalue()) == (record.workers > 1)
    assert "a-float32@ring@w8: 8 workers, ring(ranks=8, unit=MadUnit('bfloat16'" in said.getvalue()
    told = [row["design"] for row in read_results(out / "mlp" / "results.json")["variants"][0]["designs"]]
    assert told == _LABELS
    works = json.loads((out / "mlp" / "workloads.json").read_text())["workloads"]
    assert [work["batch"] for work in works] == [32, 8, 8, 4, 4]  # a worker's part
    designs = json.loads((out / "study.json").read_text())["comparisons"][0]["designs"]
    assert (designs[1]["workers"], designs[1]["collective"]) == (4, "ring(unit='bfloat16')")
    assert {run.state for run in plan_study(study, out).runs} == {"found"}
    more = _study(tmp_path, _TEXT.replace("[1, 4, 8]", "[1, 4, 8, 16]"))  # what is there stays
    assert [run.state for run in plan_study(more, out).runs] == ["found"] * 5 + ["new"] * 2


def test_one_number_and_one_collective_need_no_label(tmp_path):
    text = _TEXT.replace("[1, 4, 8]", "[4]").replace("@w1", "").replace('exact = "in_', '# exact = "in_')
    comparison = _study(tmp_path, text).comparisons[0]
    assert comparison.labels == ("a-float32",) and comparison.cases[0].settings(comparison.settings).workers == 4
    text = text.replace("batches = [32]", "batches = [32, 64]").replace('"a-float32"\n\n', '"a-float32@64"\n\n')
    assert _study(tmp_path, text).comparisons[0].labels == ("a-float32@32", "a-float32@64")


@cases(
    "old, new, says",
    [
        ("[1, 4, 8]", "[1, 3]", r"line 7: \[study\]: a batch of 32 samples has no equal parts for 3 workers"),
        ("[1, 4, 8]", "[4, 4]", r"line 7: \[study\]: the numbers of workers must differ, got \[4, 4\]"),
        ("[1, 4, 8]", "8", "workers must be a list of integers from 1 to 16384, got 8"),
        ("[1, 4, 8]", "[1]", "collectives ring, exact are for several workers"),
        ("[study.collectives]\n", "[study.collective]\n", "unknown key 'collective'; did you mean 'collectives'"),
        ("ring = ", "w4 = ", r"line 10: \[study\]: a collective's name is a part of labels.*got 'w4'"),
        ("ring = ", '"a/b" = ', "got 'a/b'"),
        ("\"ring(unit='bfloat16')\"", "3", r"line 10: .*collectives must be a table of name = text"),
        ("ring(unit", "rings(unit", r"line 7: \[study\]: no expression of a collective: .*rings"),
        ("@w1", "", "baseline 'a-float32' is not among the designs a-float32@w1, a-float32@ring@w4"),
        ("samples = 96", "workers = [2]\nsamples = 96", r"line 8.*baseline 'a-float32@w1' is not among"),
        ("[timings]", "[settings]\nworkers = 4\n[timings]", r"\[settings\]: unknown key 'workers'"),
    ],
)
def test_what_a_file_says_wrongly(tmp_path, old, new, says):
    with pytest.raises(ValueError, match=says):
        _study(tmp_path, _TEXT.replace(old, new, 1))


def test_no_collective_for_several_workers(tmp_path):
    head, _, tail = _TEXT.partition("[study.collectives]")
    with pytest.raises(ValueError, match=r"workers = \[1, 4, 8\] sum their gradients by a collective, and none"):
        _study(tmp_path, head + tail[tail.index("[[networks]]") :])


@cases(
    "folder, says",
    [
        ("a-float32@ring@w8", "the folder says workers 8 and config says 4"),
        ("a-float32@16@ring@w4", "the folder says batch 16 and config says 32"),
    ],
)
def test_a_record_in_the_folder_of_another_label(tmp_path, folder, says):
    rows = [
        {"config": {"design": "a-float32", "batch": 32, "parallel": {"workers": 4}}, "seed": 1, "versions": {}},
        {"iteration": 1, "epoch": 1, "loss": 1.0, "accuracy": 0.5, "finished": True},
    ]
    path = tmp_path / folder / "seed-1.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=says):
        read_record(path)


def test_a_collective_s_name_takes_workers(tmp_path):
    path = tmp_path / "a-float32@ring" / "seed-1.jsonl"
    path.parent.mkdir()
    path.write_text('{"config": {"design": "a-float32", "batch": 32}, "seed": 1, "versions": {}}\n'
                    '{"iteration": 1, "epoch": 1, "accuracy": 0.5, "finished": true}\n')  # fmt: skip
    with pytest.raises(ValueError, match="the folder says collective ring and config says none"):
        read_record(path)


def test_the_study_of_the_reduction_order_is_of_all_sums_at_all_numbers_of_workers():
    (study,) = read_study(_SHIPPED / "study.toml").comparisons
    sums = [f"{how}-{what}" for what in ("bfloat16", "binary32", "fp8") for how in ("ring", "tree", "exact")]
    labels = ["a-float32@w1", *(f"a-float32@{name}@w{count}" for count in (8, 64, 1024) for name in sums)]
    assert list(study.labels) == labels and sorted(gather_timings([_SHIPPED / "times.csv"])) == sorted(labels)
