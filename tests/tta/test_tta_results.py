"""results.json: every number can be traced to a file, and what is not a result is refused."""

import hashlib
import json

import pytest

from softnum.tta import (
    IterationTime,
    Variant,
    combine_study,
    load_reports,
    read_records,
    read_results,
    read_timings,
    scalesim_variants,
    write_results,  # fmt: skip,
)
from softnum.tta.outcomes import RESULTS_SCHEMA, Cost, results_dict  # fmt: skip

SEEDS = (1, 2, 3)


def make(folder, designs=("a-float32", "b-binary16")):
    """Records of two designs, one of them also at batch 64."""
    for label in (*designs, f"{designs[0]}@64"):
        name, _, batch = label.partition("@")
        for seed in SEEDS:
            config = {"design": {"name": name}, "network": "mlp", "data": "digits", "batch": int(batch or 32)}
            rows = [{"config": config, "seed": seed, "versions": {"softnum": "0"}}]
            rows += [
                {"iteration": 10 * i, "epoch": i, "loss": 1.0, "accuracy": min(0.9, 0.2 * i * seed)}
                for i in range(1, 6)
            ]
            rows[-1]["finished"] = True
            file = folder / "records" / label / f"seed-{seed}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    times = folder / "times.csv"
    rows = [f"{label},{i},{1e-3 * i}" for label in (*designs, f"{designs[0]}@64") for i in (1, 2, 3)]
    times.write_text("\n".join(["design,iteration,seconds", *rows]) + "\n")
    given = Variant("given times", read_timings(times), files=(str(times),))
    records = read_records(folder / "records")
    study = combine_study(records, given, target=0.9, baseline=designs[0], costs={designs[0]: Cost(2.0, 100.0)})
    return study, write_results(folder / "results.json", [study], {"seeds": list(SEEDS)})


def test_every_number_traces_to_a_file(tmp_path):
    study, path = make(tmp_path)
    found = read_results(tmp_path)
    assert found == read_results(path) == results_dict([study], {"seeds": list(SEEDS)}, folder=tmp_path)
    assert found["schema"] == RESULTS_SCHEMA == 2
    assert {row["role"] for row in found["sources"]} == {"record", "times"}
    for row in found["sources"]:
        assert hashlib.sha256((tmp_path / row["path"]).read_bytes()).hexdigest() == row["sha256"]
    assert len(found["sources"]) == 10
    digests = {row["path"]: row["sha256"] for row in found["sources"]}
    for run in found["runs"]:
        assert digests[run["record"]] == run["sha256"]
        rows = [json.loads(line) for line in (tmp_path / run["record"]).read_text().splitlines()[1:]]
        assert run["curve"] == {
            "iteration": [row["iteration"] for row in rows],
            "epoch": [row["epoch"] for row in rows],
            "value": [row["accuracy"] for row in rows],
        }
    assert [run["design"] for run in found["runs"]] == [
        label for label in ("a-float32", "a-float32@64", "b-binary16") for _ in SEEDS
    ]
    assert {run["name"] for run in found["runs"]} == {"a-float32", "b-binary16"}
    (variant,) = found["variants"]
    first = variant["designs"][0]
    assert first["time"]["source"] == "times.csv"
    assert first["share"]["reached"] == first["reached"] == study["a-float32"].reached
    assert first["intervals"]["tta"] == list(study["a-float32"].intervals.tta)
    assert first["cost"]["to_accuracy"]["median"] == study["a-float32"].cost.to_accuracy.median
    assert found["reached"]["kind"] == "first" and found["direction"] == "higher"


def test_the_same_study_gives_the_same_bytes_wherever_it_lies(tmp_path):
    first = make(tmp_path / "one")[1].read_bytes()
    assert make(tmp_path / "two")[1].read_bytes() == first
    assert str(tmp_path).encode() not in first


def test_a_source_that_is_no_file_is_kept_as_it_is(tmp_path):
    study, _ = make(tmp_path)
    long, odd = "a citation, " * 60, "a\0b"
    given = {name: IterationTime(name, 1.0, source=odd) for name in ("a-float32", "b-binary16", "a-float32@64")}
    again = combine_study(
        study.records, given, target=0.9, baseline="a-float32", energies={"a-float32": (1.0, long)}
    )  # fmt: skip
    (variant,) = results_dict([again], folder=tmp_path)["variants"]
    assert variant["designs"][0]["energy"]["source"] == long
    assert variant["designs"][0]["time"]["source"] == odd


def test_shipped_reports_are_named_by_the_package(tmp_path):
    records = read_records(make(tmp_path)[1].parent / "records", designs=["a-float32", "b-binary16"])
    points = load_reports().designs
    variants = scalesim_variants([points["a-float32"], points["b-binary16"]], baseline="a-float32")
    studies = [combine_study(records, variant, target=0.9, baseline="a-float32") for variant in variants]
    table = results_dict(studies, folder=tmp_path)
    for variant in table["variants"]:
        for design in variant["designs"]:
            cycles = [gemm["count"] * gemm["cycles"] if "count" in gemm else gemm["cycles"]
                      for gemm in design["time"]["detail"]["gemms"]]  # fmt: skip
            assert sum(cycles) == design["time"]["detail"]["cycles"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1}', r"of schema 1, and this softnum reads schema 2; run softnum tta again"),
        ('{\n "schema": 2,\n', r"results.json, line 3: not JSON"),
        ("[]", "not the results of a study"),
        ('{"schema": 2}', "lacks 'metric', 'direction'"),
        (b"\xff", "not readable as JSON"),
    ],
)
def test_what_is_no_result(tmp_path, text, message):
    (tmp_path / "results.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read_results(tmp_path)
    with pytest.raises(FileNotFoundError, match="softnum tta --out .* writes them"):
        read_results(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.update(variants=[]), "variants is empty"),
        (lambda table: table.update(runs={}), "runs must be a list of objects"),
        (lambda table: table.update(extra=1), "unknown key 'extra'"),
        (lambda table: table["variants"][0].pop("designs"), r"variants\[0\] lacks 'designs'"),
        (lambda table: table["runs"][1].pop("curve"), r"runs\[1\] lacks 'curve'"),
    ],
)
def test_what_a_result_lacks_is_named(tmp_path, change, message):
    path = make(tmp_path)[1]
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))
    with pytest.raises(ValueError, match=message) as error:
        read_results(path)
    assert str(path) in str(error.value) and "run softnum tta again" in str(error.value)
