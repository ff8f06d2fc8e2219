"""Reading a study's file: what it means, and what is wrong with one that means nothing."""

import json
import re

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import read_study
from softnum.train.studies.study_tables import TEMPLATE
from tests.support.study_cases import write_study

GOOD = """\
[study]
designs = ["a-float32", "c-wang-fp8"]

[[networks]]
name = "mlp"

[[networks]]
name = "lenet5"
epochs = 3

[settings]
optimiser = "adam"

[timings]
simulator = "scalesim"
"""


def write(folder, text):
    file = folder / "study.toml"
    file.write_text(text)
    return file


def softnum(*arguments):
    return CliRunner().invoke(build_app(), ["study", *map(str, arguments)], catch_exceptions=False)


def test_what_a_study_says_once_and_for_one_network(tmp_path):
    study = read_study(
        write(tmp_path, GOOD.replace("epochs = 3", 'epochs = 3\nlearning_rate = 0.5\ndesigns = ["b-binary16"]'))
    )
    mlp, lenet = study.comparisons
    assert study.name == "study" and [part.folder for part in study.comparisons] == ["mlp", "lenet5"]
    assert (mlp.settings.epochs, lenet.settings.epochs) == (20, 3)
    assert (mlp.settings.learning_rate, lenet.settings.learning_rate) == (None, 0.5)
    assert {part.settings.optimiser for part in study.comparisons} == {"adam"}
    assert (mlp.labels, lenet.labels) == (("a-float32", "c-wang-fp8"), ("b-binary16",))
    assert mlp.seeds == (1, 2, 3) and mlp.target == 0.95 and lenet.baseline == "b-binary16"


def test_batches_and_labels(tmp_path):
    text = GOOD.replace("c-wang-fp8", "c-wang-fp8@16") + "[report]\nhtml = false\n"
    (study,) = {read_study(write(tmp_path, text)).comparisons[0].labels}
    assert study == ("a-float32", "c-wang-fp8@16")
    text = text.replace("[[networks]]", 'batches = [8, 64]\nbaseline = "a-float32@64"\n[[networks]]', 1)
    comparison = read_study(write(tmp_path, text)).comparisons[0]
    assert comparison.labels == ("a-float32@8", "a-float32@64", "c-wang-fp8@16")
    assert [case.batch for case in comparison.cases] == [8, 64, 16] and comparison.baseline == "a-float32@64"


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "designs").mkdir()
    (tmp_path / "designs" / "mine.toml").write_text('name = "my-own"\n')
    (tmp_path / "plain.toml").write_text("")
    write_study(tmp_path, ["designs/mine.toml", "plain.toml", "a-float32"])
    monkeypatch.chdir("/")
    comparison = read_study(tmp_path / "small.toml").comparisons[0]
    assert comparison.labels == ("my-own", "plain", "a-float32")
    assert comparison.timings.sources == (tmp_path / "times.csv",)


def test_a_folder_for_those_networks_that_read_files(tmp_path):
    networks = '[[networks]]\nname = "mlp"\n[[networks]]\nname = "lenet5"\ndata = "mnist"\n'
    file = write_study(tmp_path, ["a-float32"], networks=f'{networks}[settings]\ndata_folder = "files"')
    assert [part.settings.data_folder for part in read_study(file).comparisons] == [None, str(tmp_path / "files")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("designs =", "desings =", r"line 2: \[study\]: unknown key 'desings'; did you mean 'designs'\? \(known: name"),
        ("epochs = 3", "epoch = 3", r"line 9: \[\[networks\]\] number 2: unknown key 'epoch'; did you mean 'epochs'"),
        ("[timings]", "[timing]", r"line 14: top level: unknown key 'timing'; did you mean 'timings'"),
        ("optimiser =", "optimizer =", r"line 12: \[settings\]: unknown key 'optimizer'; did you mean 'optimiser'"),
        ("simulator =", "simlator =", r"line 15: \[timings\]: unknown key 'simlator'; did you mean 'simulator'"),
        ('"scalesim"', '"scalsim"', r"line 15: \[timings\]: simulator must be one of scalesim, zigzag, .*did you"),
        ("[study]", "[study", r"not valid TOML: .*line 1"),
        ('"mlp"', '"mpl"', r"line 5: \[\[networks\]\] number 1: no network is called 'mpl'; did you mean 'mlp'"),
        ('name = "mlp"', "", r"line 4: \[\[networks\]\] number 1: name must be a text, has none"),
        ("epochs = 3", "epochs = 0", r"line 9: .*epochs must be a positive integer, got 0"),
        ("epochs = 3", "epochs = true", r"line 9: .*epochs must be a positive integer, got True"),
        ("epochs = 3", "learning_rate = '1'", r"line 9: .*learning_rate must be a number, got '1'"),
        ("epochs = 3", "warmup = 1.5", r"line 9: .*warmup must be an integer, got 1.5"),
        ("epochs = 3", "options = {size = [1]}", r"line 9: .*lenet5 has no parameter 'size'; did you mean 'sizes'"),
        ("epochs = 3", "options = {sizes = [1]}", r"line 8: .*lenet5: "),
        ("epochs = 3", 'data = "digit"', r"line 8: .*no data set is called 'digit'; did you mean 'digits'"),
        ("epochs = 3", "seeds = [1, 1]", r"line 9: .*seeds of a study must differ, got 1, 1"),
        ("epochs = 3", "seeds = 0", r"line 9: .*seeds must be how many, or a list like"),
        ("epochs = 3", "batches = 32", r"line 9: .*batches must be a list of positive integers, got 32"),
        ("epochs = 3", "target = -1", r"line 9: .*target must be a number above 0, got -1"),
        ("epochs = 3", "target = 95", r"line 9: .*target must lie in \(0, 1\], because it is of the accuracy, got 95"),
        ("epochs = 3", 'reached = "thrice"', r"line 8: .*lenet5: .*thrice"),
        ("epochs = 3", "reached = 3", r"line 9: .*reached must be a text, got 3"),
        ("epochs = 3", 'timings = "gone.csv"', r"line 9: .*timings: there is no '.*gone.csv'"),
        ('"c-wang-fp8"', '"c-wang-fp9"', r"line 2: \[study\]: no design is called 'c-wang-fp9'; did you mean"),
        ('"c-wang-fp8"', '"gone.toml"', r"line 2: \[study\]: no design file '.*gone.toml'"),
        ('"c-wang-fp8"', '"a-float32"', r"line 2: \[study\]: two cases of the study are called 'a-float32'"),
        ('"adam"', '"adma"', r"line 5: .*mlp: no optimiser is called 'adma'; did you mean 'adam'"),
        ('"scalesim"', '"scalesim"\nclock = "1 GHz"', r"line 16: \[timings\]: clock is for files of times"),
        ('"scalesim"', '"scalesim"\nfile = "study.toml"', r"line 15: \[timings\]: simulator is for a simulator"),
        ('simulator = "scalesim"', "file = 3", r"line 15: \[timings\]: file must be a path, got 3; several: files"),
        ('simulator = "scalesim"', "files = 'x'", r"line 15: \[timings\]: files must be a table of label = file"),
        ('"scalesim"', '"scalesim"\nsimulate = 1', r"line 16: \[timings\]: simulate must be true or false, got 1"),
        ('"scalesim"', '"scalesim"\ndataflow = "oss"', r"line 16: .*dataflow must be one of os, ws, is, "),
        ("[study]", '[study]\nbaseline = "b-binary16"', r"line 2: .*baseline 'b-binary16' is not among the designs"),
        ("[study]", '[study]\nname = "a/b"', r"line 2: \[study\]: name must be letters, digits"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(old, new, message, tmp_path):
    assert old in GOOD
    file = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))}(, |: ){message}"):
        read_study(file)
    result = softnum("plan", file)
    assert result.exit_code == 2 and result.stderr.startswith(f"softnum: error: {file}")


def test_a_study_without_networks_or_a_file(tmp_path):
    with pytest.raises(ValueError, match=r"a study needs a network: add a table \[\[networks\]\]"):
        read_study(write(tmp_path, '[study]\ndesigns = ["a-float32"]\n'))
    with pytest.raises(FileNotFoundError, match="begin with one: softnum study new "):
        read_study(tmp_path / "gone.toml")


def test_the_template_is_a_study_also_with_its_comments(tmp_path):
    result = softnum("new", tmp_path / "mine.toml")
    assert result.exit_code == 0
    file = tmp_path / "mine.toml"
    assert read_study(file).name == "mine"
    text = file.read_text()
    result = softnum("new", file)
    assert result.exit_code == 2 and "--force" in result.stderr and file.read_text() == text
    # every key that it comments out is a key, but for the two that need what is not there
    (tmp_path / "times.csv").write_text("")
    (tmp_path / "base.log").write_text("")
    (tmp_path / "reports").mkdir()
    for line in text.splitlines():
        if found := re.match(r"# (\w+ = .*?)(  #.*)?$", line):
            key = found[1].partition(" ")[0]
            said = text.replace(line, found[1], 1)
            if key in ("file", "files"):
                said = said.replace('simulator = "scalesim"', "").replace("simulate = true", "")
            if key == "tune_seeds":
                said = said.replace("# tune_rates", "tune_rates")
            if key in ("workers", "collectives"):
                said = said.replace("# workers", "workers").replace("# collectives", "collectives")
            if key in ("combine", "rent"):
                said = said.replace('["mine+yours=both"]', "[]")
            file.write_text(said)
            read_study(file)
    known = re.findall(r"^#? ?(\w+) = ", TEMPLATE, re.MULTILINE)
    assert {"name", "designs", "seeds", "batches", "epochs", "target", "reached", "samples", "variant"} <= set(known)


def test_plan_and_status_on_the_command_line(tmp_path):
    file = write_study(tmp_path, ["a-float32"], seeds="1", epochs=1)
    result = softnum("plan", file, "--out", tmp_path / "out")
    assert result.exit_code == 0 and "1 runs, 1 to train: 10 iterations" in result.stdout
    assert not (tmp_path / "out").exists()
    result = softnum("status", tmp_path / "out")
    assert result.exit_code == 2 and "holds no study" in result.stderr
    result = softnum("run", file, "--out", tmp_path / "out", "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    assert "Runs: 0 found, 1 trained, 0 failed" in result.stdout and "mlp on digits" in result.stdout
    assert "runs: 0 found, 1 trained" in result.stderr  # progress
    result = softnum("status", tmp_path / "out")
    assert result.exit_code == 0 and "mlp/a-float32/seed-1  finished" in result.stdout
    assert "10/10" in result.stdout and result.stdout.endswith("1 finished\n")
    (tmp_path / "out" / "study.json").write_text("{")
    result = softnum("status", tmp_path / "out")
    assert result.exit_code == 2 and "study.json: not JSON" in result.stderr
    (tmp_path / "out" / "study.json").write_text(json.dumps({"comparisons": [{}]}))
    result = softnum("status", tmp_path / "out")
    assert result.exit_code == 2 and "not a study of this version" in result.stderr


def test_failures_are_named_at_the_end(tmp_path):
    (tmp_path / "mine.toml").write_text('[layers."conv.*".roles]\nweights = "e5m2"\n')
    file = write_study(tmp_path, ["a-float32", "mine.toml"], seeds="1", epochs=1)
    result = softnum("run", file, "--out", tmp_path / "out", "--jobs", 1)
    assert result.exit_code == 1
    assert "softnum: failed: mlp/mine/seed-1: " in result.stderr and '[layers."conv.*"]' in result.stderr
    assert f"every attempt is in {tmp_path / 'out' / 'runs.jsonl'}" in result.stderr
    result = softnum("plan", file, "--out", tmp_path / "out")
    assert "finished" in result.stdout and "cannot be trained:" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("--retries", "-1"), "--retries must be 0 or more, got -1"),
        (("--jobs", "2", "--scheduler", "tcp://127.0.0.1:9"), "--jobs is for processes of this machine"),
    ],
)
def test_unusable_options(arguments, message, tmp_path):
    file = write_study(tmp_path, ["a-float32"])
    result = softnum("run", file, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2 and message in result.stderr
    assert not (tmp_path / "out").exists()


def test_times_of_each_design_from_a_file_of_its_own(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("")
    text = GOOD.replace(
        'simulator = "scalesim"', 'files = { a-float32 = "one.csv", c-wang-fp8 = "two.csv" }\nwarmup = 3'
    )
    mlp, lenet = read_study(write(tmp_path, text.replace("epochs = 3", 'timings = "two.csv"'))).comparisons
    assert mlp.timings.sources == (("a-float32", tmp_path / "one.csv"), ("c-wang-fp8", tmp_path / "two.csv"))
    assert lenet.timings.sources == (tmp_path / "two.csv",) and lenet.timings.reading == {"warmup": 3}
