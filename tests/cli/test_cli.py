"""The command line: what it prints, what it writes, its exit codes."""

import dataclasses
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import VERBS, build_app
from softnum.formats.c_text import format_constant
from softnum.train import design_names, load_design

DESIGN = """
description = "as a-float32"
[hardware]
array = [32, 32]
sram_bytes = { ifmap = 65536, filter = 65536, ofmap = 65536 }
bandwidth = "16 GB/s"
clock = "1 GHz"
"""


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], catch_exceptions=False)


def test_help_teaches():
    result = softnum("--help")
    assert result.exit_code == 0
    for verb in VERBS:
        assert f"  {verb} " in result.output
        for part in {"law": ("fit",), "vectors": ("generate", "check"), "study": ("run", "plan")}.get(verb, ("",)):
            assert "--out" in softnum(*filter(None, (verb, part)), "--help").output
    assert "Exit codes: 0 done, 1 a check failed, 2 unusable input" in result.output


def test_version_and_no_arguments():
    assert softnum("--version").output == f"softnum {sn.__version__}\n"
    assert "Usage:" in softnum().output


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from softnum.cli import VERBS, build_app; build_app()(['--help'], standalone_mode=False);"
        "assert {*VERBS.values()} <= {*sys.modules};"
        "bad = {'sklearn', 'matplotlib', 'numba', 'joblib', 'softnum.train', 'softnum.tta'} & set(sys.modules);"
        "sys.exit(bool(bad))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_formats_lists_every_name(tmp_path):
    out = tmp_path / "formats.json"
    result = softnum("formats", "--out", out)
    assert result.exit_code == 0
    rows = json.loads(out.read_text())
    assert [row["name"] for row in rows] == sn.format_names()
    for name in sn.format_names():
        assert f" {name} " in result.output


@pytest.mark.parametrize("name", ["e5m2", "e4m3fn", "q4.4", "e2m1fn", "binary8p3se"])
def test_formats_shows_every_value(name, tmp_path):
    out = tmp_path / "format.json"
    result = softnum("formats", name, "--out", out)
    assert result.exit_code == 0 and "Value of each code" in result.output
    fmt = sn.format(name)
    want = sn.decode(np.arange(2**fmt.bits, dtype=np.uint8), fmt)
    got = np.array([float(v) for v in json.loads(out.read_text())["values"]])
    np.testing.assert_array_equal(got, want)
    assert f"{fmt.max:.6g}" in result.output


@pytest.mark.parametrize("name", ["binary64", "e15m40", "uq8.8"])
def test_formats_shows_the_facts_of_wide_formats(name):
    result = softnum("formats", name)
    assert result.exit_code == 0 and "Value of each code" not in result.output
    assert f"bits                {sn.format(name).bits}" in result.output or "bits" in result.output


def test_formats_as_c(tmp_path):
    out = tmp_path / "format.h"
    result = softnum("formats", "q4.4", "--c", "--out", out)
    assert result.exit_code == 0 and result.output == out.read_text() == format_constant("q4.4")
    for arguments, message in (((), "softnum formats NAME --c"), (("mxfp4",), "no sn_format describes mxfp4_e2m1")):
        result = softnum("formats", *arguments, "--c")
        assert result.exit_code == 2 and message in result.output


@pytest.mark.parametrize("columns", ["80", "100", "200", None])
def test_formats_cuts_no_cell(columns, monkeypatch):
    if columns is not None:  # as on a terminal of that width
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("FORCE_COLOR", "1")
    for arguments in ((), ("e5m2",), ("q4.4",)):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", softnum("formats", *arguments).output)
        assert "…" not in shown
        assert max(map(len, shown.splitlines())) <= int(columns or 200)
        if arguments:
            assert {"0x00", "0xf8"} <= {line.split()[0] for line in shown.splitlines() if line.strip()}
        else:
            assert re.search(r"binary64 +64 +11 +52 +1023 ", shown)


def test_formats_unknown():
    result = softnum("formats", "e4m3f")
    assert result.exit_code == 2
    assert result.stderr.startswith("softnum: error: unknown format 'e4m3f'; did you mean")
    assert len(result.stderr.splitlines()) == 1


def test_train_writes_a_record(tmp_path):
    arguments = (
        "train",
        "mlp",
        "--design",
        "a-float32",
        "--data",
        "digits",
        "--epochs",
        2,
        "--seed",
        1,
        "--out",
        tmp_path,
    )
    result = softnum(*arguments)
    assert result.exit_code == 0
    record = tmp_path / "a-float32" / "seed-1.jsonl"
    assert str(record) in result.stdout.replace("\n", "") and "84 iterations" in result.stdout.replace("\n", "")
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    assert rows[-1]["finished"] is True and rows[0]["config"]["epochs"] == 2
    kept = record.read_bytes()
    assert softnum(*arguments).exit_code == 0 and record.read_bytes() == kept
    changed = softnum(*arguments, "--batch", 64)
    assert changed.exit_code == 2 and "config.batch is 64 and was 32" in changed.stderr and "--force" in changed.stderr
    assert record.read_bytes() == kept
    assert softnum(*arguments, "--batch", 64, "--force").exit_code == 0


def test_train_takes_optimiser_schedule_and_limits_and_draws(tmp_path):
    arguments = ("train", "mlp", "--design", "c-wang-fp8", "--epochs", 1, "--batch", 128, "--out", tmp_path)
    options = ("--optimiser", "adamw", "--lr", "0.01", "--schedule", "cosine", "--warmup", 4, "--clip-norm", "1.0")
    result = softnum(*arguments, *options, "--statistics", 5, "--plot")
    assert result.exit_code == 0 and "Drawn:" in result.stdout
    record = tmp_path / "c-wang-fp8" / "seed-1.jsonl"
    config = json.loads(record.read_text().splitlines()[0])["config"]
    assert config["optimiser"] == {
        "name": "adamw", "learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01,
    }  # fmt: skip
    assert config["schedule"] == {"name": "cosine", "warmup": 4, "final_rate": 0.0} and config["clip_norm"] == 1.0
    assert sorted(path.name for path in record.parent.iterdir()) == [
        "seed-1.jsonl", "seed-1.statistics.jsonl", "seed-1.statistics.png",
    ]  # fmt: skip


def test_train_explains_and_trains_nothing(tmp_path):
    result = softnum(
        "train", "mlp", "--design", "c-wang-fp8", "--optimiser", "lamb", "--explain", "--out", tmp_path / "x"
    )
    assert result.exit_code == 0 and not (tmp_path / "x").exists()
    assert "in binary64 whatever the design says: softmax_cross_entropy" in result.stdout
    assert "fc2    update.second_moment  multiply" in result.stdout


def test_without_a_design_the_arithmetic_is_float32_and_that_is_said():
    result = softnum("train", "mlp", "--explain")
    assert result.exit_code == 0 and result.stderr == "No --design is given: in float32 (design a-float32).\n"
    assert result.stdout == softnum("train", "mlp", "--design", "a-float32", "--explain").stdout


def test_parameters_of_networks_are_set_by_name_and_checked():
    from softnum.cli.networks import PARAMETERS, NetworkOptions
    from softnum.train.nets import NETWORKS

    # all of them have a text, and those that data or sizes say are not among them
    facts = {"sizes", "image", "classes", "words", "users", "items"}
    assert set(PARAMETERS) == {n for each in NETWORKS.values() for n in inspect.signature(each).parameters} - facts
    text = " ".join(
        next(p.help for p in get_command(build_app()).commands["train"].params if p.opts == ["--set"]).split()
    )
    for name, network in NETWORKS.items():
        for parameter in set(inspect.signature(network).parameters) - facts:
            assert re.search(rf"\b{name}\b( also)?[^.]*:[^.]*\b{parameter}\b", text), (name, parameter)

    def read(network, *words):
        return NetworkOptions(network_parameters=list(words)).of(network)

    found = read("gpt", "heads=4", "dropout = 0.5", "norm=layer", "biases=True", "tied_embeddings=no", "capacity=2")
    assert found == {
        "heads": 4, "dropout": 0.5, "norm": "layer", "biases": True, "tied_embeddings": False, "capacity": 2.0,
    }  # fmt: skip
    assert type(found["capacity"]) is float
    assert read("mine.py:make", "width=3", "rate=0.5", "kind=deep", "wide=true", "sizes=[3, 4]") == {
        "width": 3, "rate": 0.5, "kind": "deep", "wide": True, "sizes": [3, 4],
    }  # fmt: skip
    for network, words, message in (
        ("gpt", ["heads"], "'heads' is not NAME=VALUE, like --set heads=2"),
        ("gpt", ["=2"], "'=2' is not NAME=VALUE"),
        ("gpt", ["heads="], "'heads=' is not NAME=VALUE"),
        ("gpt", ["heads=2", "heads=4"], "heads is given twice: 2 and '4'"),
        ("gpt", ["heads=two"], "heads of gpt (of the attention) must be an integer"),
        ("gpt", ["dropout=x"], "must be a number; its default is 0.0"),
        ("gpt", ["biases=maybe"], "must be true or false; its default is false"),
        ("gpt", ["kv-heads=1"], "gpt has no parameter 'kv-heads'; did you mean 'kv_heads'? (it has depth, heads,"),
        ("lstm", ["sizes=1"], "the sizes of lstm are set by another option: --sizes 1"),
        ("lstm", ["state=1"], "lstm has no parameter 'state'"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            read(network, *words)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("train", "gpt", "--kv-heads", "1"), "No such option: --kv-heads; give --set kv_heads=VALUE"),
        (("memory", "gpt", "--no-tied-embeddings"), "--no-tied-embeddings; give --set tied_embeddings=false"),
        (("traces", "write", "gpt", "--biases"), "No such option: --biases; give --set biases=true"),
        (("formats", "--heads", "2"), "No such option: --heads"),
    ],
)
def test_an_option_that_was_a_parameter_says_how_it_is_set(words, instead):
    result = softnum(*words)
    assert result.exit_code == 2 and instead in " ".join(result.stderr.split())
    assert ("--set" in result.stderr) == ("--set" in instead)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mpl", "--design", "a-float32"), "no network is called 'mpl'; did you mean 'mlp'?"),
        (("mlp", "--design", "a-float33"), "no design is called 'a-float33'; did you mean 'a-float32'?"),
        (("mlp", "--design", "gone.toml"), "no design file 'gone.toml'"),
        (("mlp", "--design", "a-float32", "--data", "minst"), "no data set is called 'minst'"),
        (("mlp", "--design", "a-float32", "--sizes", "64,x"), "--sizes must be integers and commas"),
        (("mlp", "--design", "a-float32", "--set", "steps=4"), "mlp has no parameter 'steps' (it has none but"),
        (("lstm", "--design", "a-float32", "--set", "steps=4"), "the network takes 32 inputs, the data have 64"),
        (("recurrent-lm", "--design", "a-float32", "--data", "digits"), "takes a text, which 'digits' is not"),
        (("recurrent-lm", "--design", "a-float32"), "plain text file of your own: name it"),
        (("transformer", "--design", "a-float32", "--set", "heads=3"), "heads must divide the 32 features"),
        (("transformer", "--design", "a-float32", "--set", "cell=gru"), "no parameter 'cell' (it has depth, heads"),
        (("lstm", "--design", "a-float32", "--sizes", "8,10"), "sizes must be three positive integers, got"),
        (("mlp", "--design", "a-float32", "--sizes", "9,10"), "the network takes 9 inputs, the data have 64"),
        (("mlp", "--design", "c-wang-fp8", "--sizes", "64,10"), 'matches no layer of the network'),
        (("mlp", "--design", "a-float32", "--epochs", "0"), "epochs must be a positive integer, got 0"),
        (("mlp", "--design", "a-float32", "--optimiser", "adma"), "no optimiser is called 'adma'; did you mean 'adam'"),
        (("mlp", "--design", "a-float32", "--optimiser", "adam", "--nesterov"), "adam has no nesterov (it has"),
        (("mlp", "--design", "a-float32", "--beta1", "0.5"), "sgd has no beta1 (it has learning_rate"),
        (("mlp", "--design", "a-float32", "--final-rate", "0.1"), "final_rate is for the schedule 'cosine', not for"),
        (("mlp", "--design", "a-float32", "--warmup", "-1"), "warmup must be a number of iterations, 0 or more"),
        (("mlp", "--design", "a-float32", "--clip-norm", "0"), "clip_norm must be a number from 2**-126 to 2**127"),
        (("mlp", "--design", "a-float32", "--plot"), "--plot draws the file that --statistics writes"),
        (("mlp", "--design", "a-float32", "--statistics", "3", "--explain"), "--explain and --profile train nothing"),
        (("mlp", "--design", "a-float32", "--statistics", "0"), "statistics must be a positive number of iterations"),
    ],
)  # fmt: skip
def test_train_unusable_input(arguments, message, tmp_path):
    result = softnum("train", *arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.startswith("softnum: error: ")
    assert not list(tmp_path.rglob("*.jsonl"))


MISSING = [
    (("tta",), ("joblib",), "joblib is not installed"),
    (("tta",), ("matplotlib",), "matplotlib is not installed"),
    (("tta",), ("joblib", "sklearn", "matplotlib"), "joblib, scikit-learn, matplotlib are not installed"),
    (("train", "mlp", "--design", "a-float32"), ("sklearn",), "scikit-learn is not installed"),
]


@pytest.mark.parametrize(("arguments", "blocked", "message"), MISSING)
def test_a_package_that_cannot_be_imported_is_told(arguments, blocked, message, tmp_path, monkeypatch):
    for name in blocked:
        monkeypatch.setitem(sys.modules, name, None)
    result = softnum(*arguments, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (2, f"softnum: error: {message}: pip install 'softnum[train]'\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "blocked", "message"), MISSING[2:])
def test_a_missing_extra_is_told_before_anything_runs(arguments, blocked, message, tmp_path):
    """Where they are not there from the start, nothing that is imported before asks for them."""
    code = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
from softnum.cli import main
sys.argv[1:] = {[*arguments, "--out", str(tmp_path / "out")]!r}
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"softnum: error: {message}: pip install 'softnum[train]'\n"
    assert not (tmp_path / "out").exists()


def test_a_defect_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(sn, "format_names", lambda: [1])  # 1 is no name: a TypeError inside
    with pytest.raises(TypeError):
        softnum("formats")


def test_designs_are_listed_shown_and_copied(tmp_path):
    listed = softnum("designs").output
    for name in design_names():
        assert name in listed.splitlines()
        assert softnum("designs", name).output == load_design(name).path.read_text()
        out = tmp_path / name
        assert softnum("designs", name, "--out", out).exit_code == 0
        copy, shipped = load_design(out / f"{name}.toml"), load_design(name)
        assert copy.describe(["fc1", "fc2"]) == shipped.describe(["fc1", "fc2"])
    assert max(map(len, listed.splitlines())) <= 100
    assert sorted(p.name for p in (tmp_path / "h-posit8").iterdir()) == ["h-posit8.toml", "posit8.py"]
    kept = (tmp_path / "a-float32" / "a-float32.toml").write_text("mine")
    again = ("designs", "a-float32", "--out", tmp_path / "a-float32")
    result = softnum(*again)
    assert result.exit_code == 2 and "exists" in result.stderr and "--force" in result.stderr
    assert (tmp_path / "a-float32" / "a-float32.toml").stat().st_size == kept
    assert softnum(*again, "--force").exit_code == 0
    assert "did you mean 'a-float32'?" in softnum("designs", "a-float33").stderr
    assert softnum("designs", "--out", tmp_path).exit_code == 2


def test_the_package_is_the_program():
    done = subprocess.run([sys.executable, "-m", "softnum", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"softnum {sn.__version__}\n")


@pytest.mark.parametrize(
    ("verb", "name", "message"),
    [
        (("tta",), "file", "is a file; name a folder"),
        (("tta",), "file/below", "cannot be made: .*file is a file"),
        (("train", "mlp", "--design", "a-float32"), "file", "is a file; name a folder"),
        (("train", "mlp", "--design", "a-float32"), "shut", "cannot be written: no permission in .*shut; name another"),
        (("designs", "a-float32"), "file", "is a file; name a folder"),
        (("formats",), ".", "is a folder; name a file in it"),
        (("formats",), "shut/f.json", "cannot be written: no permission"),
        (("vectors", "generate", "--op", "multiply", "--format", "e5m2"), ".", "is a folder; name a file in it"),
        (("vectors", "generate", "--op", "multiply", "--format", "e5m2"), "shut/v", "cannot be written: no permission"),
    ],
)  # fmt: skip
def test_an_out_that_cannot_be_written_is_named_as_given(verb, name, message, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "shut").mkdir()
    access = os.access  # root may write everywhere
    monkeypatch.setattr(
        os, "access", lambda path, mode: not ("shut" in str(path) and mode & os.W_OK) and access(path, mode)
    )
    out = tmp_path / name
    result = softnum(*verb, "--out", out)
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1
    assert re.fullmatch(f"softnum: error: --out {re.escape(str(out))} {message}.*\\n", result.stderr)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "shut"]


def test_usage_errors_exit_with_2():
    assert softnum("train").exit_code == 2
    assert softnum("tta", "--epochs", "many").exit_code == 2
    assert softnum("nothing").exit_code == 2


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("SOFTNUM_DEBUG", "1")
    with pytest.raises(ValueError, match="unknown format"):
        softnum("formats", "nothing")


def test_interruption_exits_with_130(monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("softnum.train.run", interrupted)
    result = softnum("train", "mlp", "--design", "a-float32", "--out", tmp_path)
    assert result.exit_code == 130 and "interrupted" in result.stderr


def test_tta_from_designs_to_results(tmp_path):
    design = tmp_path / "mine.toml"
    design.write_text(DESIGN)
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\na-float32,1,2e-3\nother,1,1\nmine,1,1e-3\n")
    out = tmp_path / "out"
    arguments = (
        "tta", "--designs", f"a-float32,{design}", "--seeds", "3", "--epochs", "2", "--target", "0.85",
        "--timings", times, "--out", out, "--jobs", "2",
    )  # fmt: skip
    result = softnum(*arguments)
    assert result.exit_code == 0, result.stderr
    results = json.loads((out / "results.json").read_text())
    first, second = results["variants"][0]["designs"]
    assert list(results["configs"]) == ["a-float32", "mine"]
    assert any("times.csv also has times of other" in note for note in results["variants"][0]["notes"])
    assert "6/6" in result.stderr and "runs: 0 found, 6 trained" in result.stderr
    table = result.stdout[: result.stdout.index("What could turn the verdict")]
    assert max(map(len, table.splitlines())) <= 100
    assert (first["design"], second["design"]) == ("a-float32", "mine")
    # the same arithmetic (the defaults are binary32) on hardware twice as fast
    assert first["iterations"] == second["iterations"] and second["speedup"] == 2.0
    assert (out / "tta.png").read_bytes().startswith(b"\x89PNG")
    records = sorted(path.relative_to(out / "records").as_posix() for path in out.rglob("*.jsonl"))
    assert records == [f"{name}/seed-{seed}.jsonl" for name in ("a-float32", "mine") for seed in (1, 2, 3)]
    for seed in (1, 2, 3):
        rows = [
            (out / "records" / n / f"seed-{seed}.jsonl").read_text().splitlines()[1:] for n in ("a-float32", "mine")
        ]
        assert rows[0] == rows[1]
    assert "mine" in result.stdout and f"Written to {out}: results.json, tta.png, records" in result.stdout
    stamps = [path.stat().st_mtime_ns for path in sorted(out.rglob("*.jsonl"))]
    again = softnum(*arguments)
    assert again.exit_code == 0 and "runs: 6 found, 0 trained" in again.stderr
    assert stamps == [path.stat().st_mtime_ns for path in sorted(out.rglob("*.jsonl"))]


def test_tta_of_a_recurrent_network(tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\nb-binary16,1,0.5\n")
    result = softnum(
        "tta", "--network", "lstm", "--sizes", "16,3,10", "--set", "steps=4", "--lr", "0.5", "--designs", "b-binary16",
        "--seeds", "1", "--epochs", "1", "--target", "0.15", "--timings", times, "--out", tmp_path, "--jobs", "1",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    inputs = json.loads((tmp_path / "results.json").read_text())["inputs"]
    assert inputs["network"] == {"name": "lstm", "sizes": [16, 3, 10], "steps": 4}
    assert inputs["optimiser"]["learning_rate"] == 0.5


@pytest.mark.parametrize(
    ("variant", "labels"),
    [("stated", ["stated hardware"]), ("equal-area", ["equal area"]), ("all", ["stated hardware", "equal area"])],
)
def test_tta_variants_of_the_hardware(variant, labels, tmp_path):
    result = softnum(
        "tta", "--designs", "a-float32,b-binary16", "--seeds", "7,8", "--epochs", "1", "--target", "0.5",
        "--variant", variant, "--out", tmp_path, "--jobs", "1",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert [v["label"] for v in results["variants"]] == labels
    # what changes no number (--out, --jobs) is no part of the command
    command = f"softnum tta --designs a-float32,b-binary16 --seeds 7,8 --epochs 1 --target 0.5 --variant {variant}"
    assert results["inputs"] == {
        "command": command, "designs": ["a-float32", "b-binary16"], "seeds": [7, 8], "epochs": 1,
        "network": {"name": "mlp", "sizes": [64, 128, 10]}, "data": "digits", "batches": [32, 32],
        "optimiser": {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
    }  # fmt: skip


def test_tta_takes_what_train_takes_of_updates(tmp_path):
    """One declaration for both: a study's records are those of single runs, and its results say how it was trained."""
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\nc-wang-fp8,1,0.5\n")
    options = (
        "--sizes", "64,16,10", "--epochs", 1, "--batch", 64, "--optimiser", "adamw", "--lr", "0.01", "--beta1", "0.5",
        "--weight-decay", "0.1", "--schedule", "step", "--decay-every", 5, "--decay-factor", "0.5", "--warmup", 3,
        "--clip-norm", "0.5", "--clip-value", "0.25",
    )  # fmt: skip
    result = softnum(
        "tta", *options, "--designs", "c-wang-fp8", "--seeds", "1", "--target", "0.15", "--timings", times,
        "--out", tmp_path, "--jobs", "1",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert softnum("train", "mlp", *options, "--design", "c-wang-fp8", "--out", tmp_path / "single").exit_code == 0
    record = tmp_path / "records" / "c-wang-fp8" / "seed-1.jsonl"
    assert record.read_bytes() == (tmp_path / "single" / "c-wang-fp8" / "seed-1.jsonl").read_bytes()
    config = json.loads(record.read_text().splitlines()[0])["config"]
    inputs = json.loads((tmp_path / "results.json").read_text())["inputs"]
    assert inputs["batches"] == [64] == [config["batch"]]
    said = {key: config[key] for key in ("optimiser", "clip_norm", "clip_value", "schedule")}
    assert said == {key: inputs[key] for key in said}
    assert said["optimiser"]["beta1"] == 0.5 and said["schedule"]["decay_every"] == 5


def test_both_commands_have_every_option_of_updates():
    from softnum.cli.updates import Updates
    from softnum.train import Settings

    names = {field.name for field in dataclasses.fields(Updates)}
    assert names <= {field.name for field in dataclasses.fields(Settings)}
    for verb in ("train", "tta"):
        said = softnum(verb, "--help").stdout
        assert all(f"--{name.replace('_', '-')}" in said for name in names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--designs", "a-float33"), "no design is called 'a-float33'"),
        (("--seeds", "none"), "--seeds must be a count or a list like 1,2,3, got 'none'"),
        (("--seeds", "0"), "--seeds must be at least 1, got 0"),
        (("--target", "95"), "--target must lie in (0, 1], got 95.0"),
        (("--variant", "both"), "--variant must be one of all, stated, equal-area, got 'both'"),
        (("--timings", "gone.csv"), "gone.csv"),
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("--clock", "1 GHz"), "--clock is for timing files; add --timings"),
        (("--timings-marker", "gemm"), "--timings-marker is for timing files; add --timings"),
        (("--timings", "t.csv", "--simulate"), "--simulate is for a simulator's times, which --timings replaces"),
        (("--timings", "t.csv", "--reports", "r"), "--reports is for a simulator's times"),
        (("--timings", "t.csv", "--variant", "stated"), "--variant is for a simulator's times"),
        (("--beta1", "0.5"), "sgd has no beta1"),
        (("--batch", "0"), "batch must be a positive integer, got 0"),
        (("--baseline", "b-binary61"), "did you mean 'b-binary16'?"),
        (("--designs", "a-float32", "--baseline", "b-binary16"), "b-binary16"),
    ],
)
def test_tta_unusable_input_trains_nothing(arguments, message, tmp_path):
    result = softnum("tta", *arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.startswith("softnum: error: ")
    assert not list(tmp_path.rglob("*.jsonl"))


def test_tta_a_malformed_timing_file_costs_no_training(tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\na-float32,1,fast\n")
    result = softnum("tta", "--designs", "a-float32", "--timings", times, "--out", tmp_path / "out")
    assert result.exit_code == 2 and "times.csv, line 2" in result.stderr
    times.write_text("design,iteration,seconds\nb-binary16,1,1e-3\n")
    result = softnum("tta", "--designs", "a-float32", "--timings", times, "--out", tmp_path / "out")
    assert result.exit_code == 2 and "'a-float32'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_tta_a_design_without_hardware_needs_timings(tmp_path):
    design = tmp_path / "bare.toml"
    design.write_text('description = "no hardware"\n')
    arguments = (
        "tta",
        "--designs",
        design,
        "--seeds",
        "1",
        "--epochs",
        "1",
        "--target",
        "0.5",
        "--out",
        tmp_path / "out",
    )
    result = softnum(*arguments)
    assert result.exit_code == 2 and "states no [hardware]" in result.stderr
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,cycles,clock\nbare,1,1000,1 GHz\n")
    assert softnum(*arguments, "--timings", times).exit_code == 0


def test_tta_a_design_without_a_report_says_what_to_type(tmp_path):
    design = tmp_path / "big.toml"
    design.write_text(DESIGN.replace("[32, 32]", "[48, 48]"))
    result = softnum("tta", "--designs", f"a-float32,{design}", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert result.stderr.startswith("softnum: error: add --simulate to run SCALE-Sim")
    assert "no SCALE-Sim report" in result.stderr and result.stderr.count("remake") == 1
    assert not re.search("FILE|FOLDER", result.stderr)
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_an_interrupted_study_leaves_no_process_behind(tmp_path):
    command = [sys.executable, "-m", "softnum.cli", "tta", "--designs", "c-wang-fp8,h-posit8", "--epochs", "200"]
    process = subprocess.Popen(
        [*command, "--jobs", "2", "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    try:
        for _ in range(3000):
            records = list(tmp_path.rglob("*.jsonl"))
            if len(records) == 2 and all(record.stat().st_size > 10_000 for record in records):
                break
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C sends: to the workers too
        errors = process.communicate(timeout=60)[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    told = "softnum: interrupted; what is finished is kept, the same command goes on from there"
    assert told in errors.splitlines(), errors
    after = errors.rpartition(told)[2].strip().splitlines()  # joblib's process that removes its folders may warn
    assert all("resource_tracker" in line for line in after), errors
    sizes = {record: record.stat().st_size for record in tmp_path.rglob("*.jsonl")}
    time.sleep(0.5)
    assert sizes == {record: record.stat().st_size for record in tmp_path.rglob("*.jsonl")}
    for record in sizes:
        rows = [json.loads(line) for line in record.read_text().splitlines()]
        assert len(rows) > 5 and "finished" not in rows[-1]


def test_a_study_with_other_settings_is_not_overwritten(tmp_path):
    arguments = ("tta", "--designs", "a-float32", "--seeds", "1", "--target", "0.5", "--jobs", "1", "--out", tmp_path)
    assert softnum(*arguments, "--epochs", "1").exit_code == 0
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = softnum(*arguments, "--epochs", "2")
    assert result.exit_code == 2 and "config.epochs is 2 and was 1" in result.stderr and "--force" in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == kept
    assert softnum(*arguments, "--epochs", "2", "--force").exit_code == 0


@pytest.mark.parametrize("unit", [
    "FusedDotUnit(4, 23, 'binary32', foo='binary16')", "MadUnit()", "MadUnit('e6m9', 1, 2, 3, 4, operand='e5m2')",
    "MadUnit('e6m9', operand=FloatFormat())",
])  # fmt: skip
def test_an_expression_of_no_unit(unit):
    result = softnum("vectors", "generate", "--op", "dot", "--length", "4", "-n", "10", "--unit", unit)
    assert result.exit_code == 2 and "no expression of a unit" in result.stderr and result.stderr.count("\n") == 1


def test_a_wrong_instruction_set_is_unusable_input(tmp_path):
    command = [sys.executable, "-m", "softnum", "train", "mlp", "--design", "a-float32", "--out", str(tmp_path)]
    run = subprocess.run(command, env=os.environ | {"SOFTNUM_CPU": "sse9"}, capture_output=True, text=True)
    assert run.returncode == 2 and "Traceback" not in run.stderr
    assert "SOFTNUM_CPU must be one of portable, avx2, avx512, neon, got 'sse9'" in run.stderr
