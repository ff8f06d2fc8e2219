"""Curves that state their own times: what is read, what is measured, and when iterations x mean time is refused."""

import itertools
import json
import math
import os
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import (
    Evaluation,
    IterationTime,
    Record,
    Variant,
    combine_study,
    plot_studies,
    print_studies,
    read_accuracy,
)
from softnum.tta.outcomes import measured_variant, results_dict
from softnum.tta.timings.alike import alike

REAL = os.environ.get("SOFTNUM_REAL_FILES")
real_files = pytest.mark.skipif(REAL is None, reason="SOFTNUM_REAL_FILES names no folder of real files")
HOURS = "design\tepoch\thours\tacc\na\t1\t0.25\t0.5\na\t2\t0.5\t0.8\na\t3\t0.5\t0.85\na\t4\t1.0\t0.9\n"


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def write(tmp_path, text, name="curves.tsv"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def times(records):
    return [[(e.iteration, e.value, e.epoch, e.seconds) for e in record.evaluations] for record in records.records]


def curve(seconds, design="a", seed=1, values=None, **more):
    """A run that is evaluated once an iteration, at these seconds; 0.9 at the last, or the values."""
    values = [0.5] * (len(seconds) - 1) + [0.9] if values is None else values
    found = tuple(
        Evaluation(at, value, seconds=s) for at, (value, s) in enumerate(zip(values, seconds, strict=True), 1)
    )
    return Record(design, seed, 32, len(seconds), found, {}, {}, **more)


def measured(*records, target=0.9, baseline="a", **more):
    return combine_study(records, measured_variant(records), target=target, baseline=baseline, **more)


# -- tables ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("parted", ["\t", ","])
@pytest.mark.parametrize(("name", "unit"), [("hours", 3600), ("minutes", 60), ("seconds", 1)])
def test_a_column_of_times(tmp_path, parted, name, unit):
    found = read_accuracy(write(tmp_path, HOURS.replace("\t", parted).replace("hours", name)), metric="acc")
    want = [(1, 0.5, 1, 0.25 * unit), (2, 0.8, 2, 0.5 * unit), (3, 0.85, 3, 0.5 * unit), (4, 0.9, 4, 1.0 * unit)]
    assert times(found) == [want]
    assert (found.records[0].unit, found.records[0].batch) == ("epoch", 1)


def test_json_lines_may_have_times_too(tmp_path):
    rows = (
        '{"design": "a", "step": 10, "loss": 2.5, "seconds": 1}\n{"design": "a", "step": 20, "loss": 2, "seconds": 3}\n'
    )
    (record,) = read_accuracy(write(tmp_path, rows, "a.jsonl"), metric="loss").records
    assert [e.seconds for e in record.evaluations] == [1.0, 3.0] and record.unit == "step"
    (record,) = read_accuracy(tmp_path / "a.jsonl", metric="loss", batch=8).records
    assert (record.unit, record.batch) == ("iteration", 8)


def test_epochs_that_cannot_be_counted_are_evaluations(tmp_path):
    fractions = HOURS.replace("\t1\t0.25", "\t0.5\t0.25")
    assert [place for place, *_ in times(read_accuracy(write(tmp_path, fractions), metric="acc"))[0]] == [1, 2, 3, 4]
    zero = HOURS.replace("\t1\t0.25", "\t0\t0.25")
    assert read_accuracy(write(tmp_path, zero), metric="acc").records[0].unit == "evaluation"
    before = HOURS.replace("\t1\t0.25", "\t0\t0")  # at 0 s nothing was trained
    assert [place for place, *_ in times(read_accuracy(write(tmp_path, before), metric="acc"))[0]] == [0, 1, 2, 3]
    counted = read_accuracy(write(tmp_path, zero), metric="acc", counts_from=0)
    assert (counted.records[0].unit, times(counted)[0][0][0]) == ("epoch", 1)
    stated = read_accuracy(write(tmp_path, HOURS), metric="acc", iterations_per_epoch=100, batch=8).records[0]
    assert (stated.unit, stated.evaluations[-1].iteration, stated.evaluations[-1].seconds) == ("iteration", 400, 3600.0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("3\t0.5\t", "3\t0.4\t", "line 4: at 1440 s, after 1800 s at .*line 3; times count from the start of the run"),
        ("3\t0.5\t", "3\t\t", "line 4: states no time, where .*line 2 does"),
        ("3\t0.5\t", "3\t-1\t", "line 4: hours must be from 0 up"),
        ("3\t0.5\t", "3\t1e999\t", "line 4: hours must be a finite number"),
        ("3\t0.5\t", "3\t1e308\t", "line 4: hours must be 0, or from a nanosecond to 1e\\+09 seconds, got '1e308'"),
        ("3\t0.5\t", "3\t1e-320\t", "line 4: hours must be 0, or from a nanosecond to 1e\\+09 seconds, got '1e-320'"),
        ("3\t0.5\t", "3\tnan\t", "line 4: hours must be a finite number"),
        ("3\t0.5\t", "2\t0.5\t", "line 4: expected an epoch after 2, got 2"),
        ("3\t0.5\t", "\t0.5\t", "line 4: gives no iteration and no epoch, where other rows do"),
        ("4\t1.0\t", "4\t0.5\t", None),
    ],
)
def test_times_that_cannot_be(tmp_path, old, new, said):
    path = write(tmp_path, HOURS.replace(old, new))
    if said is None:
        with pytest.raises(ValueError, match="2 of the 4 times of design 'a', seed 1, repeat the one before"):
            read_accuracy(write(tmp_path, HOURS.replace(old, new)), metric="acc")
        return
    with pytest.raises(ValueError, match=said):
        read_accuracy(path, metric="acc")


def test_two_columns_of_times_or_none_that_moves(tmp_path):
    both = HOURS.replace("acc\n", "acc\tseconds\n").replace("0.5\n", "0.5\t3\n").replace("0.8\n", "0.8\t4\n")
    with pytest.raises(ValueError, match="gives both seconds and hours; keep one column"):
        read_accuracy(write(tmp_path, both.replace("0.85\n", "0.85\t5\n").replace("0.9\n", "0.9\t6\n")), metric="acc")
    with pytest.raises(ValueError, match="is at 0 s to its end"):
        read_accuracy(write(tmp_path, "design,epoch,hours,acc\na,1,0,0.5\n"), metric="acc")


# -- whether iterations are alike --------------------------------------------------------------------------------------
def test_the_share_of_orders_is_that_of_all_orders():
    """Of two lengths of stretches all orders can be counted: C(10, 5), each as likely."""
    for seconds in ([1.0] * 5 + [2.0] * 5, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0], [1.0, 2.0] * 5):
        orders = [[2.0 if at in late else 1.0 for at in range(10)] for late in itertools.combinations(range(10), 5)]
        paths = [max(abs(sum(order[:k]) - 1.5 * k) for k in range(1, 11)) for order in [seconds, *orders]]
        exact = sum(path >= paths[0] - 1e-9 for path in paths[1:]) / len(orders)
        found = alike([(1, s) for s in seconds])
        assert found.deviation == pytest.approx(paths[0] / 15)
        assert abs(found.probability - exact) <= 4 * math.sqrt(exact / 2000)
    assert alike([(1, 1.0)] * 5 + [(1, 2.0)] * 5).unlike is True
    assert alike([(1, 1.0)] * 4 + [(1, 9.0)] * 4).unlike is None


def test_noise_is_alike_and_steps_are_not():
    random = np.random.default_rng(7)
    noise = random.gamma(20, 0.05, size=(60, 40))
    assert sum(alike([(1, s) for s in row]).unlike for row in noise) <= 3  # 1 % of such runs
    step = np.where(np.arange(40) < 25, 1.0, 1.2)
    assert all(alike([(1, s) for s in row * step]).unlike for row in random.gamma(400, 1 / 400, size=(20, 40)))
    assert not alike([(1, s) for s in 1 + 0.001 * (np.arange(40) > 20)]).unlike  # it matters less than 1 %
    long = random.gamma(20, 0.05, size=6200)  # put together to 100
    assert alike([(1, s) for s in long]).stretches == 6200 and not alike([(1, s) for s in long]).unlike


def test_stretches_of_other_lengths_and_of_no_length():
    assert not alike([(amount, 0.2 * amount) for amount in (10, 100, 1000, 50, 5, 500, 100) * 2]).unlike
    assert alike([(1, 1.0), (1, 0.0)] * 10).unlike is False
    assert alike([(1, 1.0), (1, 9.0)]).unlike is None
    assert alike([(5, 2.0)]).unlike is None


# -- studies -----------------------------------------------------------------------------------------------------------
def test_measured_and_product_are_both_shown():
    seconds = [3.0 + 2.0 * n for n in range(10)]  # a second of start-up
    study = measured(curve(seconds), curve([s / 2 for s in seconds], "b"))
    assert [result.design for result in study.designs] == ["b", "a"]
    a, b = study["a"], study["b"]
    assert (a.tta.median, a.measured.median, a.product.median) == (21.0, 21.0, pytest.approx(21.0))
    assert a.by_clock and a.time.kind == "measured" and a.time.seconds == pytest.approx(2.1)
    assert (b.speedup, b.efficiency, b.throughput) == (2.0, 1.0, 2.0)
    assert b.intervals.tta == (10.5, 10.5) and b.intervals.speedup == (2.0, 2.0)
    entry = results_dict([study])["variants"][0]["designs"][1]
    assert entry["tta_is"] == "measured" and entry["tta"] == entry["measured"] and entry["product"]["median"] > 20
    assert results_dict([study])["runs"][0]["curve"]["seconds"] == [s / 1 for s in seconds]


def test_unlike_iterations_have_no_product(capsys):
    seconds = list(itertools.accumulate([1.0] * 10 + [3.0] * 10))
    study = measured(curve(seconds))
    assert (study["a"].tta.median, study["a"].product, study["a"].time) == (40.0, None, None)
    (note,) = (line for line in study.notes if line.startswith("a: "))
    assert note.startswith(
        "a: no iterations x mean time, because iterations are unlike: 1.00 s per iteration in the first 10 of 20 "
        "stretches between evaluations, 3.00 s in the others; iterations x mean time is off by up to 25.0 %"
    )
    print_studies([study, measured(curve(seconds), curve([1.0, 2.0], "b"))])
    assert "refused: see notes" in capsys.readouterr().out
    given = combine_study([curve(seconds)], {"a": IterationTime("a", 2.0)}, target=0.9, baseline="a")
    assert (given["a"].tta.median, given["a"].measured.median, given["a"].by_clock) == (40.0, 40.0, False)
    assert any("a: by its own times the iterations of its run are unlike" in note for note in given.notes)


def test_runs_that_do_not_reach_and_several_seeds():
    runs = [curve([1.0, 2.0, 3.0 + seed], seed=seed) for seed in range(3)]
    failed = curve([1.0, 2.0, 3.0], seed=7, values=[0.1, 0.2, 0.3])
    result = measured(*runs, failed)["a"]
    assert (result.reached, result.tta.median, result.tta.high) == (3, 4.5, math.inf)
    assert result.intervals.tta[0] == 3.0 and math.isinf(result.intervals.tta[1])
    assert [run.seconds_to_target for run in result.runs] == [3.0, 4.0, 5.0, None]


def test_a_target_at_0_seconds_has_no_ratio():
    runs = curve([0, 5], values=[0.95, 0.97]), curve([2, 4], "b")
    with pytest.raises(ValueError, match="design 'a', seed 1 reaches the target at 0 s of its own clock"):
        measured(*runs)
    given = combine_study(runs, {n: IterationTime(n, 1.0) for n in "ab"}, target=0.9, baseline="a")
    assert (given["a"].tta.median, given["b"].speedup) == (1.0, 0.5)


def test_samples_and_steps_have_no_ratio(capsys):
    runs = curve([1, 2]), curve([1, 4], "b", unit="step")  # of b no batch is known, and 1 stands for it
    studies = combine_study(runs, {n: IterationTime(n, 1.0) for n in "ab"}, target=0.9, baseline="a"), measured(*runs)
    for study, speedup in zip(studies, (1.0, 0.5), strict=True):
        b = study["b"]
        assert (b.speedup, b.intervals.speedup) == (speedup, (speedup, speedup))
        assert (b.throughput, b.efficiency, b.intervals.throughput, b.intervals.efficiency) == (None,) * 4
    print_studies(studies, explain=True)
    assert "Batches differ" not in capsys.readouterr().out


def test_a_loss_that_is_never_finite_is_drawn_and_not_reached(tmp_path):
    study = measured(curve([1, 2], values=[math.inf, math.nan]), metric="val_loss", target=3.0)
    assert math.isinf(study["a"].tta.median) and plot_studies(tmp_path / "tta.png", [study]).stat().st_size > 0


def test_names_are_no_markup(capsys):
    print_studies([measured(curve([1, 2], "[/red]"), curve([1, 4], "b"), baseline="[/red]")])
    assert "(baseline [/red])" in capsys.readouterr().out


def test_time_over_targets_is_by_the_clock():
    from softnum.tta.outcomes.targets import study_targets

    run = curve([3.0, 4.0, 40.0], values=[0.5, 0.7, 0.9])
    (found,) = study_targets(measured(run))
    seconds = {point.target: (point.seconds, point.iterations) for point in found.points}
    assert (seconds[0.5], seconds[0.9]) == ((3.0, 1), (40.0, 3))


def test_rent_is_the_files_unless_another_is_given():
    from softnum.tta.outcomes import Cost

    run = curve([600.0, 1800.0], rent=3.0)
    assert measured(run)["a"].cost.to_accuracy.median == 1.5
    assert measured(run, costs={"a": Cost(rent_per_hour=1.0)})["a"].cost.to_accuracy.median == 0.5
    assert measured(run, curve([1.0, 2.0], seed=2, rent=4.0))["a"].cost is None


def test_what_cannot_be_measured():
    with pytest.raises(ValueError, match="has no times, and those of other designs have"):
        measured_variant([curve([1.0, 2.0]), Record("b", 1, 32, 1, (Evaluation(1, 0.9),), {}, {})])
    early = Record("a", 1, 32, 9, (Evaluation(5, 0.95), Evaluation(9, 0.9, seconds=3.0)), {}, {}, began=6)
    with pytest.raises(ValueError, match="reaches the target where its curve states no time"):
        measured(early)
    other = Variant("measured", {}, {"a": "no time"}, measured=True)
    assert combine_study([curve([1.0, 2.0])], other, target=0.9, baseline="a")["a"].tta.median == 2.0
    mixed = measured(curve([1.0, 2.0]), curve([1.0, 1.0], "b", unit="epoch"))["b"]
    assert (mixed.speedup, mixed.throughput, mixed.efficiency) == (2.0, None, None)


# -- DAWNBench ---------------------------------------------------------------------------------------------------------
ABOUT = {"version": "v1.0", "author": "x", "framework": "y", "hardware": "z", "timestamp": "2018-04-20"}
ENTRY = "epoch\thours\ttop1Accuracy\n0\t0.01\t50.5\n1\t0.02\t\n2\t0.03\t94.1\n"


def test_an_entry_of_dawnbench(tmp_path):
    write(tmp_path, ENTRY, "one.tsv")
    write(tmp_path, json.dumps(ABOUT | {"costPerHour": 3.06}), "one.json")
    write(tmp_path, ENTRY.replace("0.03", "0.02"), "two.tsv")
    found = read_accuracy(tmp_path, metric="top1Accuracy").records
    assert [(r.design, r.rent, r.unit, r.target.value, r.config["data"]) for r in found] == [
        ("one", 3.06, "evaluation", 94.0, "DAWNBench CIFAR10"), ("two", None, "evaluation", 94.0, "DAWNBench CIFAR10"),
    ]  # fmt: skip
    assert [(e.iteration, e.seconds, e.epoch) for e in found[0].evaluations] == [(1, 36.0, 0), (2, 108.0, 2)]
    assert read_accuracy(tmp_path / "one.json", metric="top1Accuracy").records == found[:1]
    (named,) = read_accuracy(tmp_path / "one.tsv", metric="top1Accuracy", design="mine").records
    assert named.design == "mine"
    (tmp_path / "train").mkdir()
    for file in tmp_path.glob("one.*"):
        (tmp_path / "train" / file.name).write_bytes(file.read_bytes())
    write(tmp_path, json.dumps(ABOUT), "inference/one.json")
    assert len(read_accuracy(tmp_path, metric="top1Accuracy").records) == 1  # a task: its folder train alone
    stated = read_accuracy(
        tmp_path / "one.tsv", metric="top1Accuracy", counts_from=0, iterations_per_epoch=98, batch=512
    ).records[0]
    assert (stated.unit, stated.batch, stated.evaluations[-1].iteration) == ("iteration", 512, 294)
    with pytest.raises(ValueError, match="its entries of DAWNBench name the designs .* and 'mine' is given too"):
        read_accuracy(tmp_path / "train", metric="top1Accuracy", design="mine")
    with pytest.raises(ValueError, match=r"no column 'accuracy', but top1Accuracy; say which with --metric top1Acc"):
        read_accuracy(tmp_path / "one.tsv")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", json.dumps(ABOUT), "without its curve; expected a.tsv beside it"),
        ("one.json", json.dumps(ABOUT | {"costPerHour": "3 $"}), "one.json: costPerHour must be a number of dollars"),
        ("one.json", json.dumps(ABOUT | {"costPerHour": 0}), "one.json: costPerHour must be a number of dollars"),
        ("one.json", "{", "one.json: not readable as JSON"),
        ("one.json", "[]", "one.json: not what an entry of DAWNBench says of itself"),
        ("one.tsv", ENTRY.replace("94.1", "0.94").replace("50.5", "0.5"), "is in per cent, and the largest value here"),
        ("one.tsv", ENTRY.replace("\t0.02\t", "\t0.04\t").replace("\t\n", "\t60\n"), "line 4: at 108 s, after 144 s"),
        ("one.tsv", ENTRY.replace("2\t0.03", "\t0.03"), "line 4: gives no epoch, where other rows do"),
        ("one.tsv", ENTRY.replace("\t0.03\t", "\t\t"), "line 4: states no time, where .*line 2 does"),
        (
            "one.tsv",
            ENTRY.replace("94.1", "94.1e9"),
            "line 4: top1Accuracy of CIFAR10 lies between 0 and 100, got 9.41e",
        ),
        ("one.tsv", ENTRY.replace("\t0.03\t", "\t1e6\t"), "hours must be 0, or from a nanosecond to 1e\\+09 seconds"),
        ("one.tsv", ENTRY.partition("\n")[0] + "\n", "holds no rows"),
        ("one.tsv", ENTRY.replace("94.1\n", "94.1\t7\n"), "line 4: 4 cells where the header has 3"),
    ],
)
def test_entries_that_are_refused(tmp_path, name, text, said):
    write(tmp_path, ENTRY, "one.tsv")
    write(tmp_path, text, name)
    with pytest.raises(ValueError, match=said):
        read_accuracy(tmp_path / (name if name == "a.json" else "one.tsv"), metric="top1Accuracy")


@real_files
@pytest.mark.parametrize(
    ("task", "metric", "target", "entries"),
    [("CIFAR10", "top1Accuracy", 94, 31), ("SQuAD", "f1Score", 0.75, 11), ("ImageNet", "top5Accuracy", 93, 27)],
)
def test_published_entries(tmp_path, task, metric, target, entries):
    """Seconds, dollars and their order are those of the first row that reaches the target, as the rules have it."""
    packed = Path(REAL, "dawnbench", f"{task}.tar.xz")
    if not packed.is_file():
        pytest.skip(f"no {packed.name} among the real files")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    published = {}
    for file in (tmp_path / task / "train").glob("*.tsv"):
        head, *rows = [line.split("\t") for line in file.read_text("utf-8-sig").splitlines() if line.strip()]
        columns = [name.strip() for name in head]
        hours = next(float(row[columns.index("hours")]) for row in rows if float(row[columns.index(metric)]) >= target)
        rent = json.loads(file.with_suffix(".json").read_text()).get("costPerHour")
        published[file.stem] = (hours * 3600, None if rent is None else hours * rent)
    records = read_accuracy(tmp_path / task / "train", metric=metric)
    study = combine_study(
        records, measured_variant(records), target=target, baseline=records.records[0].label, metric=metric
    )
    assert len(study.designs) == entries
    assert [r.design for r in study.designs] == sorted(published, key=lambda name: published[name][0])
    for result in study.designs:
        seconds, dollars = published[result.design]
        assert result.tta.median == pytest.approx(seconds, rel=1e-12)
        assert (result.cost and result.cost.to_accuracy.median) == (dollars and pytest.approx(dollars, rel=1e-12))


# -- modded-nanogpt ----------------------------------------------------------------------------------------------------
STEPS = """import os  # the program stands before its log
step:0/40 val_loss:10.9 train_time:3ms step_avg:nanms
step:10/40 train_loss:9.0 train_time:500ms step_avg:nanms
step:11/40 train_loss:8.0 train_time:20ms step_avg:nanms
step:20/40 val_loss:4.0 train_time:200ms step_avg:20.00ms
step:40/40 train_loss:3.0 train_time:600ms step_avg:20.00ms
step:40/40 val_loss:3.2 train_time:601ms step_avg:20.03ms
"""


def test_a_log_of_modded_nanogpt(tmp_path):
    (run,) = read_accuracy(write(tmp_path, STEPS, "a.txt"), metric="val_loss", design="a").records
    assert [(e.iteration, e.value, e.seconds) for e in run.evaluations] == [
        (0, 10.9, None), (20, 4.0, 0.2), (40, 3.2, 0.601),
    ]  # fmt: skip
    assert (run.began, run.unit, run.batch) == (10, "step", 1)
    assert run.notes[1].endswith("line 4: the clock was set back after step 10: these steps are not in its times")
    from softnum.tta import ReachedRule

    result = measured(run, target=3.28, metric="val_loss", reached=ReachedRule(direction="lower"))["a"]
    assert (result.tta.median, result.product.median) == (0.601, pytest.approx(40 * 0.601 / 30))
    twice = STEPS + STEPS.replace("601ms", "0.611s").partition("\n")[2]
    runs = read_accuracy(write(tmp_path, twice, "b.txt"), metric="val_loss", design="a").records
    assert [(r.seed, r.evaluations[-1].seconds) for r in runs] == [(1, 0.601), (2, 0.611)]
    write(tmp_path, STEPS, "runs/one.txt")
    write(tmp_path, STEPS.replace("601ms", "602ms"), "runs/two.txt")
    assert [r.seed for r in read_accuracy(tmp_path / "runs", metric="val_loss", design="a").records] == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("20.03ms", "30.03ms", "line 7: 0.601 s at 30.03 ms a step are 20.01.* steps, and the clock has run for 30 of"),
        ("step:40/40 train", "step:19/40 train", "line 6: step 19 after 20 at .*line 5; expected a later one, or step"),
        ("step:40/40", "step:41/40", "line 6: step 41 of 40; the log contradicts itself"),
        ("step:20/40", "step:20/50", "line 5: of 50 steps, where .*line 2 has 40"),
        ("train_time:600ms", "train_time:100ms", "line 6: the clock is set back to 0.1 s, as it was at .*line 4"),
        ("step:40/40 train_loss:3.0", "step:40/40 val_loss:3.0", "line 7: a second val_loss at step 40"),
        (
            "val_loss:4.0",
            "val_loss:4.0 val_loss:3.0",
            "line 5: val_loss is given twice in the line; expected one of each",
        ),
        ("val_loss:4.0", "val_loss:4,0", "line 5: val_loss must be a number from 0 up, got '4,0'"),
        ("val_loss:4.0", "val_loss:-4.0", "line 5: val_loss must be a number from 0 up, got '-4.0'"),
        ("20.00ms\nstep:40", "20.00msstep:40", "line 5: step is given twice in the line"),
        ("val_loss", "valid", "no 'val_loss' in the lines of its steps; there are valid, train_loss"),
    ],
)
def test_logs_that_contradict_themselves(tmp_path, old, new, said):
    with pytest.raises(ValueError, match=said):
        read_accuracy(write(tmp_path, STEPS.replace(old, new), "a.txt"), metric="val_loss", design="a")


def test_options_that_curves_make_nothing_of(tmp_path):
    steps = write(tmp_path, STEPS, "a.txt")
    for option, value in (("counts_from", 0), ("iterations_per_epoch", 9)):
        said = f"counts steps itself, from 0; leave --{option.replace('_', '-')} {value} out"
        with pytest.raises(ValueError, match=said):
            read_accuracy(steps, metric="val_loss", design="a", **{option: value})
    entry = write(tmp_path, ENTRY, "one.tsv")
    for option in ({"batch": 32}, {"counts_from": 1}):
        with pytest.raises(ValueError, match="evaluations are counted.*; leave --"):
            read_accuracy(entry, metric="top1Accuracy", **option)
    with pytest.raises(ValueError, match="epochs are counted .*; leave --batch 32 out"):
        read_accuracy(write(tmp_path, HOURS), metric="acc", batch=32)
    rows = "design,step,batch,acc\na,10,32,0.5\n"
    with pytest.raises(ValueError, match="every row says its iteration; leave --iterations-per-epoch 9 out"):
        read_accuracy(write(tmp_path, rows), metric="acc", iterations_per_epoch=9)
    with pytest.raises(ValueError, match=r"batch size of 'a' is both 32 \(the column batch\) and 64 \(--batch\)"):
        read_accuracy(write(tmp_path, rows), metric="acc", batch=64)


def test_a_batch_that_changes_where_epochs_are_counted(tmp_path):
    rows = "design\tbatch\tepoch\thours\tacc\na\t32\t1\t0.25\t0.5\na\t{}\t2\t0.5\t0.8\n"
    (run,) = read_accuracy(write(tmp_path, rows.format(32)), metric="acc").records
    assert (run.unit, run.batch) == ("epoch", 1)  # of what is counted, not of an iteration
    for other, said in ((64, "64"), ("", "not stated")):
        with pytest.raises(ValueError, match=f"line 3: batch {said} of .* gives as 32; .*leave the column out, and"):
            read_accuracy(write(tmp_path, rows.format(other)), metric="acc")
    counted = rows.replace("\tbatch", "").replace("\t32", "").replace("\t{}", "").replace("epoch", "iteration")
    assert read_accuracy(write(tmp_path, counted), metric="acc").records[0].unit == "step"  # the way out


def test_the_baseline_is_the_first_that_is_given(tmp_path):
    for name in "za":
        write(tmp_path, HOURS.replace("\na\t", f"\n{name}\t"), f"{name}.tsv")
    both = write(tmp_path, (tmp_path / "z.tsv").read_text() + (tmp_path / "a.tsv").read_text().partition("\n")[2])
    assert [run.design for run in read_accuracy(both, metric="acc").records] == ["z", "a"]
    files = ["--accuracy", tmp_path / "z.tsv", "--accuracy", tmp_path / "a.tsv"]
    result = softnum("tta", *files, "--metric", "acc", "--target", "0.9", "--out", tmp_path / "out")
    assert "baseline z" in result.stdout, result.output
    assert json.loads((tmp_path / "out" / "results.json").read_text())["baseline"] == "z"


def test_an_unfinished_log_is_left_out(tmp_path):
    cut = STEPS.partition("step:40")[0]
    found = read_accuracy(write(tmp_path, cut, "a.txt"), metric="val_loss", design="a")
    assert not found.records and "is not finished and is left out: the last step is 20 of 40" in found.excluded[0]
    with pytest.raises(ValueError, match="no line like step:125/6200"):
        read_accuracy(write(tmp_path, "step 1\n", "b.txt"), format="nanogpt", metric="val_loss", design="a")
    with pytest.raises(ValueError, match="b.json: not readable as JSON"):
        write(tmp_path, ENTRY, "b.tsv")
        read_accuracy(write(tmp_path, "{", "b.json"), format="dawnbench", metric="top1Accuracy")
    with pytest.raises(ValueError, match="does not name its design; name it: NAME=FILE"):
        read_accuracy(tmp_path / "a.txt", metric="val_loss")


@real_files
def test_a_published_log_of_modded_nanogpt():
    from softnum.tta import ReachedRule

    (run,) = read_accuracy(Path(REAL, "other", "nanogpt_muon.txt.gz"), metric="val_loss", design="a").records
    result = measured(run, target=3.28, metric="val_loss", reached=ReachedRule(direction="lower"))["a"]
    assert (result.tta.median, round(result.product.median, 1)) == (1339.067, 1341.2)  # its record says 1,339 s


# -- the command -------------------------------------------------------------------------------------------------------
def test_a_study_of_entries(tmp_path):
    write(tmp_path, ENTRY, "in/one.tsv")
    write(tmp_path, json.dumps(ABOUT | {"costPerHour": 36.0}), "in/one.json")
    write(tmp_path, ENTRY.replace("0.03", "0.02"), "in/two.tsv")
    out = tmp_path / "out"
    result = softnum("tta", "--accuracy", tmp_path / "in", "--metric", "top1Accuracy", "--out", out)
    assert result.exit_code == 0, result.output
    assert "Target top1Accuracy 94: DAWNBench's CIFAR10." in result.stderr
    entries = json.loads((out / "results.json").read_text())["variants"][0]["designs"]
    assert [(e["design"], e["tta"]["median"], e["unit"]) for e in entries] == [
        ("two", 72.0, "evaluation"), ("one", 108.0, "evaluation"),
    ]  # fmt: skip
    assert entries[1]["cost"]["to_accuracy"]["median"] == pytest.approx(1.08)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "0.94"], "asks for 94, and .* is in that unit; give 94"),
        (["--simulate"], "--simulate is for a simulator's times, and the curves state their own"),
        (["--variant", "stated"], "--variant is for a simulator's times, and the curves state their own"),
    ],
)
def test_options_that_do_not_go_with_entries(tmp_path, options, said):
    write(tmp_path, ENTRY, "in/one.tsv")
    command = ["tta", "--accuracy", tmp_path / "in", "--metric", "top1Accuracy", "--out", tmp_path / "out"]
    result = softnum(*command, *options)
    assert result.exit_code == 2

    assert re.search(said, " ".join(result.stderr.split())), result.stderr


def test_no_target_of_another_metric(tmp_path):
    path = write(tmp_path, HOURS.replace("acc", "val_loss"))
    result = softnum("tta", "--accuracy", path, "--metric", "val_loss", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "no default target is known for 'val_loss'" in " ".join(result.stderr.split())


def test_accuracies_in_per_cent_do_not_meet_a_share(tmp_path):
    path = write(tmp_path, HOURS.replace("acc", "accuracy").replace("0.9\n", "90\n"))
    ran = softnum("tta", "--accuracy", path, "--out", tmp_path / "out")
    assert ran.exit_code == 2 and "accuracy is a share of 1, and a, seed 1, has 90; if it is in per cent" in ran.output
