"""Learning rates tuned for each design: on seeds of their own, by a stated rule, at a cost that is said."""

import json
import math
import re

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import Case, Settings
from softnum.train.studies.rates import scale_rates
from softnum.train.studies.tuning import plan_tuning
from softnum.tta import Evaluation, Record, read_results
from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.html import load_report
from softnum.tta.outcomes.outcome import Spread
from softnum.tta.outcomes.tuning import Trial, choose_rate, read_multipliers, trials_of

NEVER = math.inf


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("medians", "chosen", "why", "at_edge"),
    [
        ({0.5: 40, 1: 50, 2: 60}, 0.5, "fewest", True),
        ({0.5: 50, 1: 50, 2: 50}, 1, "no other takes fewer", False),
        ({0.5: NEVER, 1: NEVER, 2: NEVER}, 1, "at none of the grid", False),
        ({0.5: NEVER, 1: NEVER, 2: 9999, 4: NEVER}, 2, "fewest", False),
        # of equal medians: the nearest to the recipe's by ratio, then the smaller
        ({0.25: 10, 1: 50, 2: 10}, 2, "fewest", True),
        ({0.25: 50, 0.5: 10, 1: 50, 2: 10, 4: 50}, 0.5, "fewest", False),
        ({1: 10, 2: 10, 4: 20}, 1, "no other", True),
    ],
)
def test_the_rule(medians, chosen, why, at_edge):
    trials = [Trial(float(m), m / 10, (), Spread(at, at, at)) for m, at in medians.items()]
    found = choose_rate("a", trials[::-1])
    assert (found.chosen.multiplier, found.at_edge) == (chosen, at_edge)
    assert why in found.why
    assert found.recipe.multiplier == 1


def run(rate, seed, at):
    config = {"optimiser": {"learning_rate": rate}}
    return Record("a", seed, 32, 90, (Evaluation(at, 0.9), Evaluation(90, 0.5)), config, {}, f"seed-{seed}.jsonl")


def test_a_run_that_never_reaches_the_target_is_longer_than_any():
    never = Record("a", 3, 32, 7, (Evaluation(7, math.nan),), {"optimiser": {"learning_rate": 0.2}}, {})
    records = {1.0: [run(0.1, s, 80) for s in (1, 2, 3)], 2.0: [run(0.2, 1, 10), run(0.2, 2, 20), never]}
    slow, fast = trials_of("a", records, 0.9, ReachedRule())
    assert (slow.iterations, slow.updates) == (Spread(80, 80, 80), 270)
    assert (fast.iterations, fast.updates) == (Spread(20, 10, NEVER), 187)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            {1.0: [run(0.1, 1, 5)], 2.0: [run(0.3, 1, 5)]},
            r"learning rate 0\.3, where 2 times the recipe's 0\.1 is 0\.2",
        ),
        ({1.0: [run(0.1, 1, 5), run(0.2, 2, 5)]}, r"seed-1\.jsonl was trained at the learning rate 0\.1 and seed-2"),
        ({1.0: [run(None, 1, 5)]}, "states no optimiser.learning_rate, got None"),
        ({1.0: [run(0.1, 1, 0)]}, "meets the target 0.9 before the first update"),
    ],
)
def test_runs_that_are_no_trial(records, message):
    with pytest.raises(ValueError, match=message):
        trials_of("a", records, 0.9, ReachedRule())


def test_rates_are_multiples_of_the_decimals_that_one_reads():
    assert scale_rates(Settings(), 3.0).learning_rate == 0.3
    muon = scale_rates(Settings(optimiser="muon", learning_rate=0.07), 0.1)
    assert (muon.learning_rate, muon.adam_rate) == (0.007, 0.00003)
    assert scale_rates(Settings(), 1.0) == Settings()
    assert read_multipliers([4, 1]) == (1.0, 4.0)
    with pytest.raises(ValueError, match="mine.py:make states its own optimiser"):
        scale_rates(Settings("mine.py:make"), 2.0)
    with pytest.raises(ValueError, match="seed 1 is a tuning seed and one that designs are judged by"):
        plan_tuning([Case("a-float32")], Settings(), [1, 2], seeds=[1], judged=[1, 2], out="none")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two designs of which the one wants a larger rate than the recipe's, which is too small for both."""
    out = tmp_path_factory.mktemp("tuned")
    (out / "times.csv").write_text("design,iteration,seconds\na-float32,1,2\nc-wang-fp8,1,1\n")
    command = (
        "tta", "--designs", "a-float32,c-wang-fp8", "--seeds", "1", "--epochs", "1", "--lr", "0.02", "--target", "0.5",
        "--tune-rates", "4,0.5,1", "--tune-seeds", "1", "--timings", out / "times.csv", "--jobs", "1", "--out", out,
    )  # fmt: skip
    result = softnum(*command)
    assert result.exit_code == 0, result.stderr
    return out, command, result


def first_at(path, target=0.5):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[0]["config"]["optimiser"]["learning_rate"] > 0
    return next((row["iteration"] for row in rows[1:] if row.get("accuracy", 0) >= target), math.inf), rows


def test_the_choice_follows_from_the_records(study):
    out, _, result = study
    found = read_results(out)
    tuning = found["tuning"]
    assert (tuning["multipliers"], tuning["seeds"]) == ([0.5, 1.0, 4.0], [1001])
    length = 0
    for number, label in enumerate(("a-float32", "c-wang-fp8")):
        at = {m: first_at(out / "tuning" / f"x{m:g}" / label / "seed-1001.jsonl") for m in tuning["multipliers"]}
        for m, (_, rows) in at.items():
            assert rows[0]["config"]["optimiser"]["learning_rate"] == {0.5: 0.01, 1: 0.02, 4: 0.08}[m]
            length += len(rows) - 1
        best = min(at, key=lambda m: (at[m][0], m != 1))
        entry = tuning["designs"][number]
        assert (entry["design"], entry["multiplier"]) == (label, best) == (label, 4.0)
        assert (entry["learning_rate"], entry["recipe_learning_rate"], entry["at_edge"]) == (0.08, 0.02, True)
        # what is judged are the study's seeds at the tuned rate, and nothing of the trials
        judged = [first_at(out / "tuning" / "x4" / label / f"seed-{seed}.jsonl")[0] for seed in (1,)]
        without = [first_at(out / "records" / label / f"seed-{seed}.jsonl")[0] for seed in (1,)]
        for table, wanted in ((tuning, judged), (found, without)):
            runs = table["variants"][0]["designs"][number]["runs"]
            assert [r["iterations_to_target"] or math.inf for r in runs] == wanted
            assert [r["seed"] for r in runs] == [1]
    cost = tuning["cost"]
    assert (cost["runs"], cost["iterations"], cost["judged_runs"]) == (6, length, 2)
    assert f"Tuning: 6 runs of {length:,} iterations in all, 6 of them to train" in result.stderr
    assert result.stderr.index("Tuning: 6 runs") < result.stderr.index("found")
    paths = {row["path"] for row in found["sources"]}
    assert {f"tuning/x0.5/{label}/seed-1001.jsonl" for label in ("a-float32", "c-wang-fp8")} < paths
    text = " ".join(result.stdout.split())
    assert "Learning rates tuned, given times" in text and "0.08 (x4)" in text and f"6 ({length:,}) to tune" in text


def test_what_is_finished_is_not_trained_again(study):
    out, command, _ = study
    before = (out / "results.json").read_bytes()
    (out / "tuning" / "x4" / "a-float32" / "seed-1001.jsonl").unlink()
    again = softnum(*command)
    assert "6 runs of 252 iterations in all, 1 of them to train" in again.stderr
    assert (out / "results.json").read_bytes() == before
    other = softnum(*command, "--lr", "0.03")
    assert other.exit_code == 2 and "learning_rate is 0.03 and was 0.02" in other.stderr


def test_the_report_has_both(study):
    out, _, _ = study
    page = load_report(out).page()
    found = read_results(out)
    table = next(block for block in page.tables if block.name == "tuning-given-times")
    for row, without, tuned in zip(
        table.data, found["variants"][0]["designs"], found["tuning"]["variants"][0]["designs"], strict=True
    ):
        assert row["tta_median_without"] == (without["tta"] or {}).get("median")
        assert row["tta_median_with"] == tuned["tta"]["median"]
        assert row["trial_seconds"] == row["trial_iterations"] * tuned["time"]["seconds"]
    trials = next(block for block in page.tables if block.name == "trials")
    assert [row["multiplier"] for row in trials.data if row["chosen"]] == [4.0, 4.0]
    table = json.loads((out / "results.json").read_text())
    table["tuning"]["variants"][0]["label"] = "others"
    (out / "results.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match="tuning.variants: variants and designs must be those"):
        load_report(out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tune-rates", "0.5,2"], "must hold 1, the recipe's own rate"),
        (["--tune-rates", "1"], "a grid needs two or more multiples of the learning rate, like 0.5,1,2; got one"),
        (["--tune-rates", "1,2,2.0"], "the multiple 2 of the recipe's learning rate is in the grid twice"),
        (["--tune-rates", "1,-2"], r"must lie in \[1e-6, 1e6\], got -2"),
        (["--tune-rates", "1,nan"], r"must lie in \[1e-6, 1e6\], got nan"),
        (["--tune-rates", "1,two"], "must be a list of multiples like 0.5,1,2, got '1,two'"),
        (["--tune-rates", ""], "must be a list of multiples"),
        (["--tune-rates", "1,2", "--tune-seeds", "3,4"], "seed 3 is a tuning seed and one of --seeds"),
        (["--tune-rates", "1,2", "--tune-seeds", "0"], "must be a count from 1"),
        (["--tune-rates", "1,2", "--tune-seeds", "7,7"], "the seeds of a study must differ"),
        (["--tune-rates", "1,2", "--tune-seeds", "x"], "must be a count or a list"),
        (["--tune-seeds", "3"], "--tune-seeds is for --tune-rates"),
        (["--accuracy", "x.csv", "--tune-rates", "1,2"], "--tune-rates is an option of training"),
        (["--tune-rates", "1,1e6", "--lr", "1e36"], "used in binary32"),
    ],
)
def test_what_cannot_be_tuned(tmp_path, options, message):
    result = softnum("tta", "--designs", "a-float32", *options, "--out", tmp_path)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert not list(tmp_path.rglob("*.jsonl"))
