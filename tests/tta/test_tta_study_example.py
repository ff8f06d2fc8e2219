"""The study of the tutorial: four arithmetics on two networks, with SCALE-Sim's times, by one command."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import plan_study, read_study
from softnum.tta import DesignPoint, load_reports

EXAMPLE = Path(__file__).parents[2] / "examples" / "study"
GPT = EXAMPLE.parent / "gpt"


def short(folder, *, reports=True):
    """The example with one seed and one epoch."""
    text = (EXAMPLE / "study.toml").read_text()
    for old, new in (("seeds = [3, 4, 5]", "seeds = [3]"), ("epochs = 20", "epochs = 1"), ("epochs = 10", "")):
        assert old in text
        text = text.replace(old, new)
    line = 'reports = ["reports"]'
    assert line in text
    text = text.replace(line, f"reports = [{json.dumps(str(EXAMPLE / 'reports'))}]" if reports else "")
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def run(file, out):
    result = CliRunner().invoke(build_app(), ["study", "run", str(file), "--out", str(out), "--jobs", "2"])
    assert result.exit_code == 0, result.stderr
    return result


def test_the_reports_are_of_the_example(tmp_path):
    """Else: softnum study run study.toml without the line of reports makes them in OUT/lenet5/scalesim."""
    plan = plan_study(read_study(EXAMPLE / "study.toml"), tmp_path)
    configs = {run.label: run.header["config"] for run in plan.runs if run.comparison.folder == "lenet5"}
    points = [
        DesignPoint.from_table({"name": label, "hardware": config["design"]["hardware"], "gemms": config["gemms"]})
        for label, config in configs.items()
    ]
    assert list(load_reports(EXAMPLE / "reports").designs.values()) == points
    assert [len({run.seed for run in plan.runs}), len(plan.runs)] == [3, 24]


def test_the_example_runs_by_one_command(tmp_path):
    out = tmp_path / "out"
    result = run(short(tmp_path), out)
    assert "Runs: 0 found, 8 trained, 0 failed" in result.stdout
    assert "simulation" not in result.stderr  # all of it is covered by the shipped reports and the example's
    for folder in ("mlp", "lenet5"):
        results = json.loads((out / folder / "results.json").read_text())
        stated, equal = results["variants"]
        assert (stated["label"], equal["label"]) == ("stated hardware", "equal area")
        assert [row["design"] for row in stated["designs"]] == ["a-float32", "b-binary16", "c-wang-fp8", "h-posit8"]
        assert all(row["time"]["source"].startswith("SCALE-Sim") for row in stated["designs"])
        workloads = json.loads((out / folder / "workloads.json").read_text())["workloads"]
        assert [work["design"] for work in workloads] == ["a-float32", "b-binary16", "c-wang-fp8", "h-posit8"]
        assert {row["role"] for row in results["sources"]} >= {"record", "workloads", "report"}
    page = (out / "report.html").read_text()
    assert "lenet5" in page and "h-posit8" in page and str(tmp_path) not in page


@pytest.mark.slow
def test_scalesim_says_of_the_example_what_its_reports_say(tmp_path):
    """Installs SCALE-Sim where it is not; half a minute of simulation."""
    run(short(tmp_path, reports=False), tmp_path / "out")
    made, kept = tmp_path / "out" / "lenet5" / "scalesim", EXAMPLE / "reports"
    assert sorted(path.name for path in made.iterdir()) == sorted(path.name for path in kept.iterdir())
    for path in kept.glob("*.csv"):
        assert (made / path.name).read_bytes() == path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("size", ["10m", "100m"])
def test_the_studies_of_gpts_run_where_the_text_lies_beside_them(size, tmp_path):
    for name in ("bfloat16.toml", f"times-{size}.csv"):
        (tmp_path / name).write_bytes((GPT / name).read_bytes())
    text = (GPT / f"{size}.toml").read_text()
    for key, small in {
        "seeds": "1", "batches": "[4]", "epochs": "1", "sizes": "[16, 32]", "depth": "1", "heads": "2", "steps": "16",
        "held_out": "3", "evaluate_every": "4", "html": "false",
    }.items():  # fmt: skip
        text, found = re.subn(rf"^{key} = .*$", f"{key} = {small}", text, flags=re.MULTILINE)
        assert found == 1
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "input.txt").write_bytes(bytes(range(32, 127)) * 6)
    result = run(tmp_path / "study.toml", tmp_path / "out")
    assert "Runs: 0 found, 6 trained, 0 failed" in result.stdout
    results = json.loads((tmp_path / "out" / "transformer-lm" / "results.json").read_text())
    assert results["metric"] == "held_out_loss" and len(results["variants"][0]["designs"]) == 6
