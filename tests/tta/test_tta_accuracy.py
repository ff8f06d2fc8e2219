"""Learning curves of other frameworks: what is read, what has to be given, and what is refused with file and line."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softnum.tta import Evaluation, IterationTime, combine_study, read_accuracy
from softnum.tta.accuracy import ACCURACY_FORMATS

MLLOG = (
    Path(__file__).parent / "data" / "mlperf-logging" / "run.log"
)  # captured from mlperf_logging: see its capture.py
CSV = """design,seed,iteration,batch,accuracy,lr
base,1,10,32,0.5,0.1
base,1,20,32,0.9,0.1
base,2,10,32,0.4,0.1
base,2,20,32,,0.1
fast@64,1,5,,0.95,0.1
"""


def write(tmp_path, text, name="curves.csv"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def of(records):
    return {
        (r.label, r.seed): (r.batch, r.iterations, [(e.iteration, e.value, e.epoch) for e in r.evaluations])
        for r in records.records
    }


def test_a_csv_of_several_runs(tmp_path):
    assert of(read_accuracy(write(tmp_path, CSV))) == {
        ("base", 1): (32, 20, [(10, 0.5, None), (20, 0.9, None)]),
        ("base", 2): (32, 20, [(10, 0.4, None)]),  # a row of training: how far it went
        ("fast@64", 1): (64, 5, [(5, 0.95, None)]),
    }
    found = read_accuracy(write(tmp_path, CSV)).records[2]
    assert (found.design, found.by_batch) == ("fast", True)


def test_json_lines_say_the_same(tmp_path):
    rows = [dict(zip(CSV.split("\n")[0].split(","), line.split(","), strict=True)) for line in CSV.split("\n")[1:-1]]
    typed = []
    for row in rows:
        numbers = {k: float(v) if "." in v else int(v) for k, v in row.items() if v and k != "design"}
        typed.append({"design": row["design"], **numbers})
    text = "\n".join(map(json.dumps, typed))
    assert of(read_accuracy(write(tmp_path, text, "curves.jsonl"))) == of(read_accuracy(write(tmp_path, CSV)))


def test_other_names_byte_order_mark_and_comments(tmp_path):
    text = "\ufeff# from a colleague\r\nlabel,run,step,batch_size,WER\r\na,3,7,8,0.25\r\n"
    assert of(read_accuracy(write(tmp_path, text), metric="WER")) == {("a", 3): (8, 7, [(7, 0.25, None)])}


def test_epochs_need_the_iterations_of_an_epoch(tmp_path):
    path = write(tmp_path, "epoch,accuracy\n1,0.5\n1.5,0.6\n2,0.9\n")
    with pytest.raises(ValueError, match=r"line 2: gives an evaluation by epoch .* --iterations-per-epoch N"):
        read_accuracy(path, design="a", batch=32)
    found = of(read_accuracy(path, design="a", batch=32, iterations_per_epoch=100))
    assert found == {("a", 1): (32, 200, [(100, 0.5, 1), (150, 0.6, 1.5), (200, 0.9, 2)])}
    with pytest.raises(ValueError, match=r"line 3: 1.5 epochs of 3 iterations must be a whole number .*got 4.5"):
        read_accuracy(path, design="a", batch=32, iterations_per_epoch=3)


def test_a_log_that_counts_from_zero_has_to_say_so(tmp_path):
    path = write(tmp_path, "epoch,accuracy\n0,0.5\n1,0.9\n")  # as Keras numbers epochs
    rest = {"design": "a", "batch": 32, "iterations_per_epoch": 10}
    with pytest.raises(ValueError, match=r"line 2: epoch 0 is either the first epoch of a log that counts from 0, or"):
        read_accuracy(path, **rest)
    assert [e.iteration for e in read_accuracy(path, counts_from=0, **rest).records[0].evaluations] == [10, 20]
    assert [e.iteration for e in read_accuracy(path, counts_from=1, **rest).records[0].evaluations] == [0, 10]
    steps = write(tmp_path, "design,batch,step,accuracy\na,8,0,0.5\na,8,99,0.9\n")
    assert [e.iteration for e in read_accuracy(steps).records[0].evaluations] == [0, 99]
    assert [e.iteration for e in read_accuracy(steps, counts_from=0).records[0].evaluations] == [1, 100]


def test_what_a_file_lacks_is_asked_for(tmp_path):
    path = write(tmp_path, "iteration,accuracy\n1,0.5\n")
    with pytest.raises(
        ValueError, match=r"line 2: does not name the design of the curve; add a column design, or name it"
    ):
        read_accuracy(path)
    with pytest.raises(ValueError, match=r"line 2: does not say the batch size of 'a'; .* --batch N"):
        read_accuracy(path, design="a")
    assert read_accuracy(path, design="a@16").records[0].batch == 16
    assert read_accuracy(path, design="a", batch=16, seed=9).records[0].seed == 9


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("design,iteration,batch,acuracy\na,1,2,0.5\n", 1, r"no column 'accuracy'; did you mean 'acuracy'\?"),
        ("design,batch,accuracy\na,2,0.5\n", 1, "no column iteration, step or epoch"),
        ("design,iteration,iteration,accuracy\n", 1, "column 'iteration' appears twice"),
        ("design,iteration,batch,accuracy\na,1,2\n", 2, "3 cells where the header has 4"),
        ("design,iteration,batch,accuracy\na,1,2,high\n", 2, "accuracy must be a number, got 'high'"),
        ("design,iteration,batch,accuracy\na,1.5,2,0.5\n", 2, "iteration must be a whole number"),
        ("design,iteration,batch,accuracy\na,-1,2,0.5\n", 2, "iteration must be a whole number"),
        ("design,iteration,batch,accuracy\na,nan,2,0.5\n", 2, "iteration must be a finite number, got 'nan'"),
        ("design,iteration,batch,accuracy\na,1e9999,2,0.5\n", 2, "iteration must be a finite number"),
        ("design,iteration,batch,accuracy\na,1,2,0.5\na,1,2,0.6\n", 3, "expected an iteration after 1 of design 'a'"),
        ("design,iteration,batch,accuracy\na,5,2,0.5\na,1,2,0.6\n", 3, "a column seed tells runs apart"),
        ("design,iteration,batch,accuracy\na,1,2,0.5\na,2,4,0.6\n", 3, "batch 4 .* a run has one batch size"),
        ("design,iteration,batch,accuracy\na,1,0,0.5\n", 2, "batch must be at least 1, got 0"),
        ("design,iteration,batch,accuracy\na@4,1,2,0.5\n", 2, r"both 4 \(its label\) and 2 \(the column batch\)"),
        ("design,seed,iteration,batch,accuracy\na,x,1,2,0.5\n", 2, "seed must be a number, got 'x'"),
        ("design,label,iteration,batch,accuracy\na,b,1,2,0.5\n", 2, "has both design and label"),
        ("design,iteration,batch,accuracy\n,1,2,0.5\n", 2, "does not name the design of the curve"),
        ("design,iteration,batch,accuracy\na,,2,0.5\n", 2, "gives no iteration and no epoch"),
        ('design,iteration,batch,accuracy\n"a,1,2,0.5\n', 2, "not readable as CSV"),
        ("design,iteration,batch,accuracy\na,1,2,\n", 2, r"design 'a', seed 1, has no value of 'accuracy'"),
        ('{"design": "a", "batch": 2, "iteration": 1}\n{"iter', 2, r"not a row of JSON .*was it cut off\?"),
        ('{"design": "a", "batch": 2, "iteration": 1, "accuracy": true}', 1, "accuracy must be a number, got True"),
        ('{"design": 5, "batch": 2, "iteration": 1, "accuracy": 1}', 1, "design must be a name, got 5"),
        ('{"design": "a", "batch": 2, "iteration": 1, "accuracy": 1}\n[1]', 2, r"expected an object, got \[1\]"),
        (b"design,iteration\n\xff\xfe", 2, "not UTF-8 text"),
    ],
)
def test_malformed_tables_name_file_line_and_reason(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as error:
        read_accuracy(path)
    assert f"{path}, line {line}:" in str(error.value)


def test_empty_absent_and_unknown(tmp_path):
    with pytest.raises(FileNotFoundError, match="no learning curves"):
        read_accuracy(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is empty"):
        read_accuracy(write(tmp_path, " \n"))
    with pytest.raises(ValueError, match="holds no rows"):
        read_accuracy(write(tmp_path, "design,iteration,batch,accuracy\n"))
    with pytest.raises(ValueError, match="no form of curves 'cvs'; .*did you mean 'csv'"):
        read_accuracy(write(tmp_path, CSV), format="cvs")
    with pytest.raises(ValueError, match="iterations_per_epoch must be an integer of at least 1, got 0"):
        read_accuracy(write(tmp_path, CSV), iterations_per_epoch=0)
    with pytest.raises(ValueError, match="counts_from must be 0 or 1, got 2"):
        read_accuracy(write(tmp_path, CSV), counts_from=2)
    with pytest.raises(ValueError, match="is of design 'base', and the file was named 'other'"):
        read_accuracy(write(tmp_path, CSV), design="other")
    with pytest.raises(ValueError, match="gives a seed, and --seed is given too"):
        read_accuracy(write(tmp_path, CSV), seed=4)


# -- MLPerf ------------------------------------------------------------------------------------------------------------
def test_an_mlperf_log(tmp_path):
    found = read_accuracy(MLLOG, design="base")
    (record,) = found.records
    # 4800 training samples in batches of 16: 300 iterations an epoch
    assert record.evaluations[:2] == (
        Evaluation(300, 0.3654489059100179, 1, seconds=0.029), Evaluation(600, 0.9634371008984164, 2, seconds=0.059),
    )  # fmt: skip
    assert (record.batch, record.seed, record.iterations, record.config) == (16, 1, 2400, {"network": "least_squares"})
    study = combine_study(found, {"base": IterationTime("base", 2.0)}, target=0.95, baseline="base")
    assert study["base"].tta.median == 1200.0


def edited(tmp_path, *changes):
    text = MLLOG.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return write(tmp_path, text, "run.log")


def test_epochs_of_an_mlperf_log_count_from_what_it_says(tmp_path):
    renumbered = edited(
        tmp_path, *((f'epoch_num": {n}', f'epoch_num": {n - 1}') for n in range(1, 9))
    )  # first_epoch_num, too
    assert [e.iteration for e in read_accuracy(renumbered, design="a").records[0].evaluations] == list(
        range(300, 2401, 300)
    )
    assert [e.epoch for e in read_accuracy(renumbered, design="a").records[0].evaluations] == list(range(8))
    text = re.sub(r'(epoch_num": )(\d)', lambda found: f"{found[1]}{int(found[2]) + 4}", MLLOG.read_text())
    later = write(tmp_path, text, "run.log")
    with pytest.raises(ValueError, match="its first epoch is number 5, so the log is of a run that went on"):
        read_accuracy(later, design="a")


def test_evaluations_by_samples_and_by_steps(tmp_path):
    changes = [
        (f'"eval_accuracy", "value": {value}, "metadata": {{"file": "capture.py", "lineno": 43, "epoch_num": {n}}}',)
        for n, value in enumerate([e.value for e in read_accuracy(MLLOG, design="a").records[0].evaluations], start=1)
    ]
    samples = [(old, old.replace('"epoch_num"', '"samples_count"').replace(f": {n}}}", f": {n * 4800}}}"))
               for n, (old,) in enumerate(changes, start=1)]  # fmt: skip
    found = read_accuracy(edited(tmp_path, *samples), design="a").records[0]
    assert [e.iteration for e in found.evaluations] == list(range(300, 2401, 300))
    odd = [(old, new.replace("00}", "07}")) for old, new in samples]  # no whole number of batches: one more or less
    found = read_accuracy(edited(tmp_path, *odd), design="a").records[0]
    assert [e.iteration for e in found.evaluations] == list(range(300, 2401, 300))
    few = [(old, new.replace("00}", "}")) for old, new in samples]
    with pytest.raises(ValueError, match="line 20: eval_accuracy is at iteration 6, .* ends at line 18, have 600 iter"):
        read_accuracy(edited(tmp_path, *few), design="a")
    steps = [(old, old.replace('"epoch_num"', '"step"').replace(f": {n}}}", f": {n * 300}}}"))
             for n, (old,) in enumerate(changes, start=1)]  # fmt: skip
    found = read_accuracy(edited(tmp_path, *steps), design="a").records[0]
    assert [e.iteration for e in found.evaluations] == list(range(300, 2401, 300))


def test_an_unfinished_mlperf_log_says_where_it_stops(tmp_path):
    lines = MLLOG.read_text().splitlines()
    found = read_accuracy(write(tmp_path, "\n".join(lines[:20]) + "\n", "run.log"), design="a")
    assert found.records == ()
    assert (
        "is not finished and is left out: the last event is 'eval_accuracy' (epoch_num 2) at line 20"
        in (found.excluded[0])
    )


def test_mlperf_logs_that_cannot_be_placed(tmp_path):
    with pytest.raises(ValueError, match="does not name its design; name it: NAME=FILE"):
        read_accuracy(MLLOG)
    with pytest.raises(ValueError, match="global_batch_size is 16, and 32 is given"):
        read_accuracy(MLLOG, design="a@32")
    with pytest.raises(ValueError, match=r"no event 'eval_wer'; .*\(there are eval_accuracy\); name the metric"):
        read_accuracy(MLLOG, design="a", metric="wer")
    odd = edited(tmp_path, ('"train_samples", "value": 4800', '"train_samples", "value": 4801'))
    assert read_accuracy(odd, design="a").records[0].iterations == round(8 * 4801 / 16)
    assert read_accuracy(odd, design="a", iterations_per_epoch=301).records[0].iterations == 8 * 301
    nothing = read_accuracy(edited(tmp_path, ('"train_samples"', '"other_samples"')), design="a").records[0]
    assert (nothing.mlperf.unit, nothing.iterations) == ("epoch", 8)


# -- folders -----------------------------------------------------------------------------------------------------------
def test_a_folder_of_other_frameworks_files(tmp_path):
    write(tmp_path, MLLOG.read_text(), "base/run_1.log")
    write(tmp_path, MLLOG.read_text().replace('"seed", "value": 1', '"seed", "value": 2'), "base/run_2.log")
    write(tmp_path, "iteration,accuracy\n100,0.97\n", "fast@64/curve.csv")
    assert list(of(read_accuracy(tmp_path))) == [("base", 1), ("base", 2), ("fast@64", 1)]
    write(tmp_path, MLLOG.read_text(), "base/run_3.log")
    with pytest.raises(ValueError, match=r"run_3.log: design 'base' with seed 1 is already in .*run_1.log"):
        read_accuracy(tmp_path)
    with pytest.raises(ValueError, match="its folders name the designs"):
        read_accuracy(tmp_path, design="x")
    with pytest.raises(FileNotFoundError, match="no learning curves in the folder"):
        read_accuracy(write(tmp_path, "x", "deep/er/file").parent.parent.parent / "deep" / "er")


def test_a_folder_of_several_kinds_of_curves(tmp_path):
    write(tmp_path, MLLOG.read_text(), "in/run.log")
    write(tmp_path, "step:1/1 val_loss:3 train_time:9ms\n", "in/nano.txt")
    with pytest.raises(ValueError, match=r"several kinds: nano.txt \(nanogpt\) and run.log \(mllog\); name the files"):
        read_accuracy(tmp_path / "in", design="a")
    with pytest.raises(
        FileNotFoundError, match="nano.txt, run.log lie in it without one: name the file, or NAME=FOLDER"
    ):
        read_accuracy(tmp_path / "in")
    write(tmp_path, "what was run, and where\n", "in/nano.txt")
    assert len(read_accuracy(tmp_path / "in", design="a").records) == 1
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match="it has no files: name the file"):
        read_accuracy(tmp_path / "none", design="a")


def record_rows(seed, batch=32, name="base"):
    config = {"design": {"name": name}, "network": "mlp", "data": "digits", "batch": batch}
    rows = [{"config": config, "seed": seed, "versions": {}}]
    rows += [{"iteration": 1, "epoch": 1, "loss": 0.5, "accuracy": 0.9, "finished": True}]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_records_of_softnum_in_each_way_they_are_named(tmp_path):
    write(tmp_path, record_rows(1), "records/base/seed-1.jsonl")
    write(tmp_path, record_rows(1, 128), "records/base@128/seed-1.jsonl")
    for source in (tmp_path, tmp_path / "records"):
        assert list(of(read_accuracy(source))) == [("base", 1), ("base@128", 1)]
    assert list(of(read_accuracy(tmp_path / "records" / "base" / "seed-1.jsonl"))) == [("base", 1)]
    for source, option, said in (
        (tmp_path, {"design": "x"}, "leave the name x= out"),
        (tmp_path / "records", {"batch": 8}, "leave --batch 8 out"),
        (tmp_path / "records" / "base" / "seed-1.jsonl", {"counts_from": 0}, "leave --counts-from 0 out"),
        (tmp_path / "records" / "base" / "seed-1.jsonl", {"design": "x"}, "a record of 'base', and 'x' is given too"),
    ):
        with pytest.raises(ValueError, match=said):
            read_accuracy(source, **option)
    write(tmp_path, record_rows(2, 64), "records/base@128/seed-2.jsonl")
    with pytest.raises(ValueError, match=r"the folder says batch 128 and config says 64"):
        read_accuracy(tmp_path)


def test_batch_sizes_of_one_design_are_designs_of_a_study(tmp_path):
    for seed in (1, 2):
        write(tmp_path, record_rows(seed), f"records/base/seed-{seed}.jsonl")
        write(tmp_path, record_rows(seed, 128), f"records/base@128/seed-{seed}.jsonl")
    times = {"base": IterationTime("base", 1.0), "base@128": IterationTime("base@128", 2.0)}
    study = combine_study(read_accuracy(tmp_path), times, target=0.9, baseline="base")
    assert [(r.design, r.batch, r.speedup) for r in study.designs] == [("base", 32, 1.0), ("base@128", 128, 0.5)]
    mixed = [r for r in read_accuracy(tmp_path).records if r.seed == 1]
    mixed[1] = type(mixed[1])(**{**vars(mixed[1]), "by_batch": False, "seed": 3})
    with pytest.raises(ValueError, match="tell them apart as base@32 and base@128"):
        combine_study(mixed, times, target=0.9, baseline="base")


# -- anything at all ---------------------------------------------------------------------------------------------------
GOOD = [CSV.encode(), MLLOG.read_bytes(), record_rows(1).encode(), b'{"design":"a","iteration":3,"accuracy":0.5}\n']


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutations_raise_value_errors_only(tmp_path, data):
    text = bytearray(data.draw(st.sampled_from(GOOD)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 8))] = data.draw(
            st.one_of(
                st.binary(max_size=6), st.sampled_from([b"1e999", b"-0", b"null", b"{", b"\n", b",", b"NaN", b'"'])
            )
        )
    if data.draw(st.booleans()):
        del text[data.draw(st.integers(0, len(text))) :]
    path = write(tmp_path, bytes(text), "mutated")
    for form in (None, *ACCURACY_FORMATS):
        try:
            found = read_accuracy(path, format=form, design=data.draw(st.sampled_from([None, "d@16"])), batch=16)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert all(e.iteration >= 0 for record in found.records for e in record.evaluations)
