"""Studies from a file whose learning rates are tuned, and whose designs stand on other hardware."""

import json
import re
import shutil

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import plan_study, read_study
from softnum.train.studies.plan import apply_plan
from softnum.train.studies.results import Outcome
from softnum.train.studies.status import study_status
from softnum.train.studies.trials import choose_rates, tuning_plan
from softnum.tta import read_results
from softnum.tta.html import load_report
from tests.support.study_cases import conduct

STUDY = """\
[study]
designs = ["a-float32"]
seeds = [7]
epochs = 1
target = 0.5
tune_rates = [4, 1]
tune_seeds = 1

[[networks]]
name = "mlp"
learning_rate = 0.02

[timings]
simulator = "scalesim"
variant = "stated"

[report]
html = false
"""


def write(folder, text=STUDY):
    file = folder / "tuned.toml"
    file.write_text(text)
    return file


def states(plan):
    return [(run.name, run.state) for run in (*plan.runs, *plan.tuned)]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The study, whose recipe's rate is too small for its target, carried out by the command."""
    folder = tmp_path_factory.mktemp("tuned")
    command = ["study", "run", write(folder), "--out", folder / "out", "--jobs", "1", "--plots", folder / "charts"]
    result = CliRunner().invoke(build_app(), [*map(str, command), "--explain"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return folder, result


@pytest.fixture
def study(tuned, tmp_path):
    """A copy of it that a test may change."""
    shutil.copytree(tuned[0] / "out", tmp_path / "out")
    return write(tmp_path), tmp_path / "out"


def test_the_plan_says_what_tuning_costs(tmp_path):
    file = write(tmp_path)
    plan = plan_study(read_study(file), tmp_path / "out")
    assert [run.name for run in plan.runs] == [
        "mlp/a-float32/seed-7", "mlp/a-float32/x1/seed-1001", "mlp/a-float32/x4/seed-1001",
    ]  # fmt: skip
    assert [run.name for run in plan.tuned] == ["mlp/a-float32/x4/seed-7"]
    rates = [run.header["config"]["optimiser"]["learning_rate"] for run in (*plan.runs, *plan.tuned)]
    assert rates == [0.02, 0.02, 0.08, 0.08]
    mlp = tuning_plan(plan, plan.study.comparisons[0])
    length = plan.runs[0].iterations
    assert (mlp.runs, mlp.iterations, mlp.to_train, mlp.judged_iterations) == (2, 2 * length, 2, length)
    said = CliRunner().invoke(build_app(), ["study", "plan", str(file), "--out", str(tmp_path / "out")])
    assert f"mlp: Tuning: 2 runs of {2 * length} iterations in all, 2 of them to train; then up to 1 run" in said.stdout
    assert "1001 at x1, x4" in said.stdout and not (tmp_path / "out").exists()
    assert f"3 runs, 3 to train: {3 * length} iterations" in said.stdout
    more = '[[networks]]\nname = "lenet5"\ntune_rates = []\n[[networks]]\nname = "lenet5"\ntune_rates = [1, 2, 0.5]\n'
    of = read_study(write(tmp_path, STUDY.replace("[timings]", more + "[timings]"))).comparisons
    assert [part.rates and part.rates.multipliers for part in of] == [(1.0, 4.0), None, (0.5, 1.0, 2.0)]
    assert of[2].rates.seeds == (1001,)
    text = '[hardware]\nclock = "2 GHz"\nsram_bytes.ifmap = 8\n'
    own = more.replace("[]", "[]\nhardware = { sram_bytes = { filter = 9 } }")
    of = read_study(write(tmp_path, STUDY.replace("[timings]", own + "[timings]") + text)).comparisons
    assert [part.hardware["sram_bytes"] for part in of] == [{"ifmap": 8}, {"ifmap": 8, "filter": 9}, {"ifmap": 8}]


def test_results_stand_without_and_with(tuned):
    folder, result = tuned
    out = folder / "out"
    assert result.stderr.index("mlp: Tuning: 2 runs") < result.stderr.index("0 failed")
    assert "Runs: 0 found, 4 trained, 0 failed" in result.stdout
    found = read_results(out / "mlp" / "results.json")
    tuning = found["tuning"]
    assert (tuning["multipliers"], tuning["seeds"], tuning["cost"]["runs"]) == ([1.0, 4.0], [1001], 2)
    (choice,) = tuning["designs"]
    assert (choice["multiplier"], choice["learning_rate"], choice["recipe_learning_rate"]) == (4.0, 0.08, 0.02)
    at = {}
    for name, table in (("records/a-float32", found), ("tuning/x4/a-float32", tuning)):
        rows = [json.loads(line) for line in (out / "mlp" / name / "seed-7.jsonl").read_text().splitlines()[1:]]
        at[name] = next((row["iteration"] for row in rows if row.get("accuracy", 0) >= 0.5), None)
        (design,) = table["variants"][0]["designs"]
        assert [run["iterations_to_target"] for run in design["runs"]] == [at[name]]
    assert at["tuning/x4/a-float32"] < (at["records/a-float32"] or 1000)
    page = load_report(out).page()
    assert any("tuning" in table.name for table in page.tables)
    assert {run.name: run.state for run in study_status(out)}["mlp/a-float32/x4/seed-7"] == "finished"


def test_explain_and_plots(tuned):
    folder, result = tuned
    assert "How to read it" in result.stdout and "Assumed for stated hardware" in result.stdout
    charts = {path.relative_to(folder / "charts").as_posix() for path in folder.glob("charts/*/*.png")}
    assert {"mlp/curves.png", "mlp/layers.png"} <= charts
    for name in charts:
        assert f"Written: {folder / 'charts' / name}" in result.stdout
    assert "No mlp/fronts.png: no two designs differ" in result.stdout


def test_what_is_finished_is_found(study):
    file, out = study
    before = {path: path.read_bytes() for path in out.rglob("*.json*")}
    assert {state for _, state in states(plan_study(read_study(file), out))} == {"found"}
    again = conduct(file, out)
    assert (again.trained, again.found, again.copied) == (0, 4, 0)
    assert {path: path.read_bytes() for path in out.rglob("*.json*")} == before
    without = write(file.parent, STUDY.replace("tune_rates = [4, 1]\ntune_seeds = 1\n", ""))
    plan = plan_study(read_study(without), out)
    assert len(plan.strangers) == 3 and not plan.tuned
    apply_plan(plan)
    assert len(list(out.glob("aside/*.jsonl"))) == 3 and not list(out.glob("mlp/tuning/*/*"))
    plan = plan_study(read_study(write(file.parent)), out)
    assert [state for _, state in states(plan)] == ["found", *["set aside"] * 3]
    apply_plan(plan)
    assert {path: path.read_bytes() for path in out.rglob("seed-*.jsonl")}.items() <= before.items()


def test_without_all_trials_no_rate_is_chosen(study):
    file, out = study
    (out / "mlp" / "tuning" / "x4" / "a-float32" / "seed-1001.jsonl").unlink()
    plan = plan_study(read_study(file), out)
    assert [run.name for run in plan.to_train] == ["mlp/a-float32/x4/seed-1001"]
    outcome = Outcome(plan)
    assert choose_rates(plan, outcome) == [] and not outcome.rates
    assert outcome.untuned == {
        "mlp": "tuned learning rates are left out: mlp/a-float32/x4/seed-1001 did not finish"
    }  # fmt: skip


def test_other_hardware_trains_nothing_again(study):
    file, out = study
    before = read_results(out / "mlp" / "results.json")
    # twice the clock at the same bytes a cycle: the cycles that ship serve, and each takes half the time
    file = write(file.parent, STUDY + '[hardware]\nclock = "2 GHz"\nbandwidth = "32 GB/s"\n')
    plan = plan_study(read_study(file), out)
    assert {state for _, state in states(plan)} == {"same arithmetic"}
    outcome = conduct(file, out)
    assert (outcome.trained, outcome.copied) == (0, 4)
    first = json.loads((out / "mlp" / "tuning" / "x4" / "a-float32" / "seed-7.jsonl").read_text().splitlines()[0])
    hardware = first["config"]["design"]["hardware"]
    assert (hardware["clock"], hardware["bandwidth"], hardware["array"]) == ("2 GHz", "32 GB/s", [32, 32])
    after = read_results(out / "mlp" / "results.json")
    for old, new in ((before, after), (before["tuning"], after["tuning"])):
        old, new = (table["variants"][0]["designs"][0] for table in (old, new))
        assert new["time"]["seconds"] == old["time"]["seconds"] / 2 and new["iterations"] == old["iterations"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[4, 1]", "[4, 2]", r"line 6: \[study\]: tune_rates: .*must hold 1, the recipe's own rate"),
        ("[4, 1]", "4", r"line 6: .*tune_rates must be a list of multiples like \[0.5, 1, 2\], got 4"),
        ("[4, 1]", "[1, true]", r"line 6: .*tune_rates must be a list of multiples"),
        ("[4, 1]", "[1, nan]", r"line 6: .*must lie in \[1e-6, 1e6\], got nan"),
        ("tune_seeds = 1", "tune_seeds = [7]", r"line 7: .*seed 7 is a tuning seed and one of seeds; "),
        ("tune_seeds = 1", "tune_seeds = 0", r"line 7: .*tune_seeds: must be a count from 1 to 1000, or a list, got 0"),
        ("tune_seeds = 1", "tune_seeds = [3, 3]", r"line 7: .*seeds of a study must differ, got 3, 3"),
        ("tune_seeds = 1", "tune_seeds = []", r"line 7: .*tune_seeds must be how many, or a list like .*got \[\]"),
        ("tune_rates = [4, 1]\n", "", r"line 6: \[study\]: tune_seeds is for tune_rates; add a grid"),
        ("[timings]", "tune_seed = 3\n[timings]", r"line 13: .*unknown key 'tune_seed'; did you mean 'tune_seeds'"),
        ('"mlp"\nlearning_rate = 0.02', '"mlp"\nlearning_rate = 1e38', r"line 6: .*tune_rates: .*binary32"),
        ("[report]", '[hardware]\nclok = "1 GHz"\n[report]', r"line 18: .*unknown key 'clok'; did you mean 'clock'"),
        ("[report]", "[hardware]\nunit = {}\n[report]", r"line 18: \[hardware\]: unknown key 'unit'"),
        ("[report]", "[hardware]\narray = 32\n[report]", r"line 18: .*must be \[rows, columns\], got 32"),
        ("[report]", "[hardware]\nsram_bytes.ifmap = 0\n[report]", r"line 18: .*sram_bytes.ifmap"),
        ("[report]", '[hardware]\nclock = "fast"\n[report]', r"line 18: .*must be a number above zero with its unit"),
        ("[timings]", "hardware = {cores = 4}\n[timings]", r"line 13: \[\[networks\]\] number 1: .*got 4"),
        ("[timings]", "hardware = {core = 4}\n[timings]", r"line 13: .*unknown key 'core'; did you mean 'cores'"),
        ("[timings]", "hardware = 4\n[timings]", r"line 13: .*hardware must be a table, got 4"),
        ("[timings]\nsimulator", '[hardware]\ncores = [1, 2]\n[timings]\nfile = "tuned.toml"\n#', "from files"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(old, new, message, tmp_path):
    assert old in STUDY
    file = write(tmp_path, STUDY.replace(old, new).replace('variant = "stated"' if "tuned.toml" in new else "\0", ""))
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))}, .*{message}"):
        read_study(file)
