"""Measured times over a sweep's roofline: what is read, what is compared, and what is refused."""

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta.architectures import sweep
from softnum.tta.architectures.sweep_measured import read_measured
from softnum.tta.architectures.sweep_overlay import overlay

FEW = {"layers": [1, 5], "embedding": [100], "length": [10], "vocabulary": [2, 8], "batch": [16]}
HEAD = "layers,embedding,length,vocabulary,batch"
RANGES = [word for name, values in FEW.items() for word in ("--range", f"{name}={','.join(map(str, values))}")]


def softnum(*arguments):
    return CliRunner().invoke(build_app(), ["sweep", *(str(argument) for argument in arguments)])


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def label(layer, node=32, bs=64):
    return f"layer_{layer}-node_{node}-input_2000-output_200-bs_{bs}"


def paradnn(path, **changes):
    """The lists that ParaDnn's scripts write, of two runs and one that failed."""
    table = {
        "labels": [label(4), label(8)], "step_per_sec": [250.0, 125.0], "example_per_sec": [16000.0, 8000.0],
        "params": [73800.0, 78020.0], "flops": [7.0, 3.75], "fl": [0.028, 0.03], "intensity": [1, 1],
        "err_jobs": [label(128, 8192), label(16)], "states": ["OOM", "no error but not finished"],
    }  # fmt: skip
    path.write_text(json.dumps({key: value for key, value in (table | changes).items() if value is not None}))
    return path


def test_errors_are_those_of_the_medians_of_each_model(tmp_path):
    file = write(
        tmp_path / "a.csv", f"kind,device,{HEAD},seconds,samples_per_second,note", "rnn,v100,1,100,10,2,16,0.5,32,a",
        "# a comment", "rnn,v100,1,100,10,2,16,0.3,,b", "rnn,v100,1,100,10,2,16,9,,c", "rnn,v100,5,100,10,8,16,1e-9,,d",
        "rnn,tpu-v2,5,100,10,8,16,1,,e", "lstm,v100,5,100,10,8,16,1,,f", "rnn,v100,5,100,10,9,16,1,,g",
    )  # fmt: skip
    one = sweep("rnn", "v100", ranges=FEW)
    measured = read_measured(file, ["rnn"], "v100")["rnn"]
    assert (len(measured.points), measured.unread) == (5, ("note",))
    found = overlay(one, measured)
    rows = {(row["layers"], row["vocabulary"]): row for row in found.rows}
    assert (rows[1, 2]["measured_seconds"], rows[1, 2]["measurements"]) == (0.5, 3)
    assert (rows[1, 8]["measured_seconds"], rows[1, 8]["measured_over_estimated"]) == (None, None)
    slow, fast = 0.5 / rows[1, 2]["seconds"], 1e-9 / rows[5, 8]["seconds"]
    errors = found.measured
    assert (errors["models"], errors["measurements"], errors["faster"], errors["left_out"]) == (2, 4, 1, 1)
    assert [errors[key] for key in ("least", "median", "most")] == [fast, (slow + fast) / 2, slow]
    assert errors["worst"] == {
        "layers": 1, "embedding": 100, "length": 10, "vocabulary": 2, "batch": 16, "seconds": rows[1, 2]["seconds"],
        "measured_seconds": 0.5,
    }  # fmt: skip
    assert errors["rank_correlation"] == -1 and "line 9: layers=5, embedding=100" in errors["first_left_out"]
    assert one.measured is None and "measured_seconds" not in one.rows[0]


def test_the_files_of_the_authors_are_read_as_they_are(tmp_path):
    measured = read_measured(paradnn(tmp_path / "tpu.json"), ["fc", "rnn"])["fc"]
    assert [(point.sizes, point.seconds) for point in measured.points] == [
        ((4, 32, 2000, 200, 64), 0.004), ((8, 32, 2000, 200, 64), 0.008),
    ]  # fmt: skip
    assert (measured.out_of_memory, measured.unread) == (((128, 8192, 2000, 200, 64),), ("intensity",))
    ranges = {"layers": [4, 8, 128], "nodes": [32, 8192], "inputs": [2000], "outputs": [200], "batch": [64]}
    errors = overlay(sweep("fc", "tpu-v2", ranges=ranges), measured).measured
    assert (errors["models"], errors["out_of_memory"], errors["out_of_memory_that_fit"]) == (2, 1, 0)
    assert errors["median"] == pytest.approx((errors["least"] + errors["most"]) / 2)


def test_the_command_writes_table_picture_and_errors(tmp_path):
    file = write(tmp_path / "a.tsv", HEAD.replace(",", "\t") + "\tstep_per_sec", "5\t100\t10\t8\t16\t4")
    out = tmp_path / "out"
    done = softnum("rnn", "--against", "v100", *RANGES, "--measured", f"v100={file}", "--out", out)
    assert done.exit_code == 0, done.output
    table = json.loads((out / "rnn-v100.json").read_text())
    (row,) = [row for row in table["models"] if row["measurements"]]
    assert row["measured_seconds"] == 0.25 == table["measured"]["worst"]["measured_seconds"]
    assert table["measured"]["median"] == 0.25 / row["seconds"]
    assert "measured" not in json.loads((out / "rnn-tpu-v2.json").read_text())
    with open(out / "rnn-v100.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["measured_seconds"] for row in rows] == ["", "", "", "0.25"]
    assert (out / "rnn-v100-measured.png").read_bytes()[:4] == b"\x89PNG"
    assert f"{table['measured']['median']:.4g}" in done.output and "layers=5, embedding=100" in done.output
    # the sweep's own table is no measurement
    again = softnum("rnn", *RANGES, "--measured", out / "rnn-tpu-v2.csv", "--out", out)
    assert again.exit_code == 2 and "this is the table of a sweep, whose seconds are estimates" in again.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "the file is empty"),
        ([f"{HEAD},seconds"], "no measurement of rnn on tpu-v2: it has no rows"),
        ([HEAD, "1,100,10,2,16"], "no column seconds, steps_per_second, samples_per_second"),
        (["layers,embedding,length,batch,seconds", "1,100,10,16,1"], "no column vocabulary of rnn's"),
        ([f"{HEAD},seconds", "1,100,10,2,16,0"], "line 2: seconds must be above zero, got '0'"),
        ([f"{HEAD},seconds", "1,100,10,2,16,nan"], "seconds must be a finite number"),
        ([f"{HEAD},seconds", "1,100,10,2,16,1e300"], "seconds must lie between 1e-12 and 1e12, got 1e.300"),
        ([f"{HEAD},seconds", "1,100,10,2,16,"], "line 2: no time"),
        ([f"{HEAD},seconds", "1,100,10,2.5,16,1"], "vocabulary must be a whole number"),
        ([f"{HEAD},seconds", "1,100,10"], "3 cells where the header has 6"),
        ([f"{HEAD},seconds,samples_per_second", "1,100,10,2,16,2,16"], "contradict each other at a batch of 16: 2 s"),
        ([f"{HEAD},seconds,layer", "1,100,10,2,16,1,5"], "column 'layer' says what another column says, layers"),
        ([f"{HEAD},seconds", "7,100,10,2,16,1"], "the sweep has no model layers=7"),
        ([f"{HEAD},seconds,parameters", "1,100,10,2,16,1,99999"], "99999 parameters, and the sweep's model layers=1"),
        ([f"{HEAD},seconds,precision", "1,100,10,2,16,1,float32"], "measured with the precision float32"),
        (
            [f"device,{HEAD},seconds", "v100,1,100,10,2,16,1"],
            "no measurement of rnn on tpu-v2: rows of device v100: 1",
        ),
        ([f"kind,{HEAD},seconds", "rmm,1,100,10,2,16,1"], "unknown kind 'rmm'"),
        (['{"labels": []}'], "expected ParaDnn's lists labels and step_per_sec"),
        (["[[["], "not readable as JSON"),
    ],
)
def test_what_is_no_measurement(tmp_path, lines, message):
    file = write(tmp_path / "a.csv", *lines)
    result = softnum("rnn", *RANGES, "--measured", file, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"example_per_sec": [16000.0]}, "example_per_sec has 1 values and labels 2"),
        (
            {"example_per_sec": [16000.0, 9000.0]},
            r"labels\[1\]: steps_per_second 125 and samples_per_second 9000 contra",
        ),
        ({"flops": [7.0, 8.0]}, "flops 8 is not fl 0.03 times step_per_sec 125, which is 3.75"),
        ({"labels": [label(4), "layer_8"]}, r"labels\[1\]: no column nodes, inputs, outputs, batch of fc's"),
        ({"labels": [label(4), "eight"]}, "'eight' is no label like layer_4-node_32"),
        ({"step_per_sec": [250.0, None], "fl": None}, "step_per_sec must be a number, got None"),
        ({"states": []}, "err_jobs has 2 values and states 0"),
        ({"states": None, "err_jobs": {"a": 1}}, "err_jobs and states must be lists"),
        (
            {"err_jobs": [label(16), label(8)]},
            r"-bs_64 is measured, labels\[1\], and failed, err_jobs\[1\] with the state 'no error",
        ),
    ],
)
def test_lists_that_contradict_themselves(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_measured(paradnn(tmp_path / "a.json", **changes), ["fc"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["all", "--measured", "{file}"], "the columns are those of rnn, lstm, gru alike; add a column kind"),
        (["rnn", *RANGES, "--measured", "v100={file}"], "no device 'v100' is swept, but tpu-v2"),
        (["rnn", *RANGES, "--measured", "{file}", "--measured", "{file}"], "times of rnn on tpu-v2 are also in"),
        (["rnn", *RANGES, "--measured", "none.csv"], "no measurements 'none.csv'"),
    ],
)
def test_files_that_cannot_be_told_apart(tmp_path, options, message):
    file = write(tmp_path / "a.csv", f"{HEAD},seconds", "1,100,10,2,16,1")
    result = softnum(*(option.format(file=file) for option in options), "--out", tmp_path / "out")
    assert result.exit_code == 2 and message in " ".join(result.stderr.split()), result.stderr
