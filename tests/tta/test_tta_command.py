"""``softnum tta`` from the command line: labels, rules, costs, combinations, and curves that are there already."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import load_reports, read_results

MLLOG = Path(__file__).parent / "data" / "mlperf-logging" / "run.log"


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def curves(folder):
    """Two designs, one of them also at batch 64, three runs each."""
    rows = ["design,seed,iteration,batch,wer,accuracy"]
    for label, batch, rate in (("base", 32, 1), ("fast", 32, 1), ("base@64", 64, 2), ("fast@64", 64, 1.5)):
        for seed in (1, 2, 3):
            for i in range(1, 21):
                value = min(0.98, 0.04 * rate * i * (1 + seed / 10))
                rows.append(f"{label},{seed},{10 * i},{batch},{1 - value:.6f},{value:.6f}")
    path = folder / "curves.csv"
    path.write_text("\n".join(rows) + "\n")
    times = folder / "times.csv"
    seconds = {"base": 2.0, "fast": 1.0, "base@64": 3.0, "fast@64": 1.5}
    times.write_text(
        "design,iteration,seconds\n"
        + "".join(f"{name},{i},{value + 0.01 * i}\n" for name, value in seconds.items() for i in (0, 1, 2))
    )
    return path, times


def test_curves_and_times_from_elsewhere(tmp_path):
    path, times = curves(tmp_path)
    out = tmp_path / "out"
    result = softnum(
        "tta", "--accuracy", path, "--timings", times, "--metric", "wer", "--target", "0.2", "--reached",
        "consecutive:2", "--combine", "fast + base@64 = fast@64", "--rent", "2.48", "--rent", "fast=1.24", "--price",
        "8000", "--confidence", "0.9", "--out", out, "--explain", "--plots", tmp_path / "plots",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = read_results(out)
    assert (found["metric"], found["direction"], found["intervals"]["confidence"]) == ("wer", "lower", 0.9)
    assert found["reached"] == {
        "kind": "consecutive", "k": 2, "window": 1, "smoothing": None, "direction": "lower",
    }  # fmt: skip
    designs = {entry["design"]: entry for entry in found["variants"][0]["designs"]}
    assert list(designs) == ["base", "fast", "base@64", "fast@64"]  # as the curves have them
    # seed 1: 0.044 i >= 0.8 at i = 19, and again at 20, which counts
    assert [run["iterations_to_target"] for run in designs["base"]["runs"]] == [200, 180, 170]
    assert designs["base"]["cost"]["to_accuracy"]["median"] == pytest.approx(180 * 2.01 * 2.48 / 3600)
    assert designs["fast"]["cost"]["rent_per_hour"] == 1.24
    assert designs["base@64"]["cost"]["per_throughput"] == pytest.approx(8000 * 3.01 / 64)
    assert designs["base"]["intervals"]["tta"][0] < 170 * 2.01 < 200 * 2.01 < designs["base"]["intervals"]["tta"][1]
    (combined,) = found["variants"][0]["interactions"]
    assert combined["parts"] == ["fast", "base@64"]
    assert combined["ratio"]["throughput"] == pytest.approx(
        (64 / 1.51) / (32 / 2.01) / ((32 / 1.01) / (32 / 2.01) * (64 / 3.01) / (32 / 2.01))
    )
    command = found["inputs"]["command"]
    assert "--metric wer" in command and "--combine 'fast + base@64 = fast@64'" in command and "--out" not in command
    for words in (
        "Time to wer <= 0.2, given times", "fast + base@64 = fast@64:", "Intervals of 90 %", "Cost to target",
        "in a row with wer <= 0.2", "Best: the lowest wer",
    ):  # fmt: skip
        assert words in " ".join(result.stdout.split()), words
    assert max(map(len, result.stdout[: result.stdout.index("How to read it")].splitlines())) <= 100
    assert (out / "tta.png").is_file()
    assert not (out / "records").exists()
    assert "--explain" not in command and "--plots" not in command
    assert "No layers.png: no time says what it is made of." in result.stderr
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "curves.png", "fronts.png", "gains.png", "targets.png"
    ]  # fmt: skip


def test_some_designs_of_the_curves_and_another_baseline(tmp_path):
    path, times = curves(tmp_path)
    result = softnum(
        "tta", "--accuracy", path, "--timings", times, "--target", "0.8", "--designs", "fast,base", "--baseline",
        "base", "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = read_results(tmp_path / "out")
    assert [entry["design"] for entry in found["variants"][0]["designs"]] == ["fast", "base"]
    assert (found["baseline"], found["metric"], found["direction"]) == ("base", "accuracy", "higher")


def test_several_files_of_which_each_is_named(tmp_path):
    other = tmp_path / "other.log"
    other.write_text(MLLOG.read_text())
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\na,1,2\nb,1,1\n")
    result = softnum(
        "tta", "--accuracy", f"a={MLLOG}", "--accuracy", f"b={other}", "--timings", times, "--target", "0.95", "--out",
        tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = read_results(tmp_path / "out")
    assert [run["design"] for run in found["runs"]] == ["a", "b"]
    assert found["variants"][0]["designs"][1]["speedup"] == 2.0


def test_records_with_simulated_times_and_no_training_code(tmp_path):
    """What was trained once is combined anew: other target, other rule; softnum.train is not even imported."""
    reports = load_reports().designs
    for name in ("a-float32", "b-binary16"):
        table = reports[name].to_table()
        for seed in (1, 2):
            config = {
                "design": {"name": name, "hardware": table["hardware"]}, "network": "mlp", "data": "digits",
                "batch": 32, "gemms": table["gemms"],
            }  # fmt: skip
            rows = [{"config": config, "seed": seed, "versions": {}}]
            rows += [{"iteration": i, "epoch": 1, "loss": 1.0, "accuracy": 0.1 * i} for i in range(1, 10)]
            rows[-1]["finished"] = True
            file = tmp_path / "records" / name / f"seed-{seed}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = (
        "import sys; from softnum.cli import build_app\n"
        "try: build_app()(sys.argv[1:], prog_name='softnum')\n"
        "except SystemExit as end: print('code', end.code)\n"
        "print([name for name in sys.modules if name.startswith('softnum.train')])"
    )
    command = [sys.executable, "-c", code, "tta", "--accuracy", tmp_path, "--target", "0.5", "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["code 0", "[]"], done.stderr
    found = read_results(tmp_path / "out")
    assert [variant["label"] for variant in found["variants"]] == ["stated hardware", "equal area"]
    assert found["variants"][0]["designs"][0]["runs"][0]["iterations_to_target"] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "3"], "--seeds is an option of training, and --accuracy trains nothing"),
        (["--lr", "0.1"], "--learning-rate is an option of training"),
        (["--designs", "fats"], "no curves of 'fats'; there are curves of base.*did you mean 'fast'"),
        (["--baseline", "bas"], "baseline 'bas'"),
        (["--reached", "thrice"], "the reached rule must be first"),
        (["--smooth", "0.9"], "smoothing must be ema:A"),
        (["--combine", "fast=fast@64"], 'must be like "a\\+b=c"'),
        (["--combine", "base+fast=fast@64"], "the baseline and the designs of a combination must differ"),
        (["--rent", "gpu=1"], "--rent 'gpu=1': no design 'gpu'"),
        (["--confidence", "95"], "confidence must be a number between 0 and 1"),
        (["--direction", "up"], "must be higher or lower, got 'up'"),
        (["--metric", "bleu"], "no column 'bleu'"),
        (["--target", "1.5"], r"--target must lie in \(0, 1\]"),
        (["--accuracy-format", "json"], "no form of curves 'json'"),
        (["--variant", "stated"], "--variant is for a simulator's times"),
    ],
)
def test_what_cannot_be_combined(tmp_path, options, message):
    path, times = curves(tmp_path)
    result = softnum("tta", "--accuracy", path, "--timings", times, "--out", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert not (tmp_path / "out" / "results.json").exists()


def test_options_of_curves_need_curves(tmp_path):
    result = softnum("tta", "--iterations-per-epoch", "5", "--out", tmp_path)
    assert result.exit_code == 2
    assert "--iterations-per-epoch is for the curves of --accuracy" in result.stderr


def test_a_design_at_two_batch_sizes_is_trained_as_two(tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\na-float32,1,2\na-float32@128,1,4\n")
    options = ("--seeds", "2", "--epochs", "1", "--target", "0.3", "--timings", times, "--jobs", "1", "--out", tmp_path)
    result = softnum("tta", "--designs", "a-float32,a-float32@128", *options)
    assert result.exit_code == 0, result.stderr
    found = read_results(tmp_path)
    assert [(e["design"], e["batch"]) for e in found["variants"][0]["designs"]] == [
        ("a-float32", 32), ("a-float32@128", 128),
    ]  # fmt: skip
    records = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jsonl"))
    assert records == [f"records/{label}/seed-{n}.jsonl" for label in ("a-float32", "a-float32@128") for n in (1, 2)]
    # --batch is for the designs that do not say their own
    again = softnum("tta", "--designs", "a-float32,a-float32@128", "--batch", "32", *options)
    assert "runs: 4 found, 0 trained" in again.stderr
    # the records alone give the same result
    alone = softnum("tta", "--accuracy", tmp_path, "--timings", times, "--target", "0.3", "--out", tmp_path / "alone")
    assert alone.exit_code == 0, alone.stderr
    again = read_results(tmp_path / "alone")
    assert [e["tta"] for e in again["variants"][0]["designs"]] == [e["tta"] for e in found["variants"][0]["designs"]]
    assert {run["sha256"] for run in again["runs"]} == {run["sha256"] for run in found["runs"]}
    # but curves of elsewhere do not get the energies of what was trained in the folder
    foreign, times = curves(tmp_path)
    mixed = softnum("tta", "--accuracy", foreign, "--timings", times, "--target", "0.3", "--out", tmp_path)
    assert mixed.exit_code == 2 and "workloads.json lists the iterations of runs that softnum trained" in mixed.stderr
    assert read_results(tmp_path)["variants"] == found["variants"]
    times.write_text("design,iteration,seconds\na-float32,1,2\na-float32@128,1,4\n")
    wrong = softnum("tta", "--designs", "a-float32", "--baseline", "a-float32@128", *options)
    assert wrong.exit_code == 2 and "a-float32@128" in wrong.stderr


def test_what_is_no_seed_is_said_before_anything_is_written(tmp_path):
    out = tmp_path / "out"
    for verb in (
        ["tta", "--designs", "a-float32", "--seeds=1,-2"],
        ["train", "mlp", "--design", "a-float32", "--seed=-2"],
    ):
        result = softnum(*verb, "--epochs", "1", "--out", out)
        assert result.exit_code == 2 and "seed must be an integer in 0..2**64-1, got -2" in result.stderr
        assert not [path for path in out.rglob("*") if path.is_file()]
