"""``softnum estimate``: what it prints, what it writes, what it refuses."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import device, load_reports, read_timings, read_workloads, roofline, workload_of_gemms

RATES = """
[unit.P1]
old = 7475
new = { hours = 4, nodes = 94000 }
[unit.P2]
old = 74752
new = { hours = 0.5, nodes = 94000 }
[unit.P3]
old = 37376
new = { hours = 0.25, nodes = 94000 }
"""


def run(*arguments):
    return CliRunner().invoke(build_app(), ["estimate", *map(str, arguments)], catch_exceptions=False)


def fails(message, *arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "Traceback" not in result.output


def test_list_of_devices(tmp_path):
    result = run("--devices", "--out", tmp_path / "d.json")
    assert result.exit_code == 0
    assert "tpu-v2-core" in result.output
    assert "rent $3.06 (p3.2xlarge, one device): Amazon EC2" in result.output
    table = json.loads((tmp_path / "d.json").read_text())["devices"]
    assert {row["name"] for row in table} >= {"v100", "h100-sxm"}


def test_a_network_on_its_own_array_and_on_devices(tmp_path):
    result = run("mlp", "--per-layer", "--out", tmp_path / "own.json")
    assert result.exit_code == 0, result.output
    assert "estimated by roofline" in result.output
    assert "backward_weight" in result.output
    own = json.loads((tmp_path / "own.json").read_text())
    assert own["kind"] == "estimated"
    assert own["estimates"][0]["peaks"]["native"] == 2048e9
    out = tmp_path / "two.json"
    assert (
        run(
            "mlp", "--design", "a-float32,c-wang-fp8", "--device", "v100,t4", "--batch", "32,64", "--out", out
        ).exit_code
        == 0
    )
    rows = json.loads(out.read_text())["estimates"]
    assert [(row["design"], row["batch"], row["device"]) for row in rows] == [
        (name, batch, where) for name in ("a-float32", "c-wang-fp8") for batch in (32, 64) for where in ("v100", "t4")
    ]
    assert rows[4]["proxies"]


def test_times_go_into_tta(tmp_path):
    times = tmp_path / "v100.csv"
    assert run("mlp", "--design", "a-float32,b-binary16", "--device", "v100", "--times", times).exit_code == 0
    found = read_timings(times)
    assert list(found) == ["a-float32", "b-binary16"]
    assert {time.kind for time in found.values()} == {"estimated"}
    rows = json.loads(_json(tmp_path, "mlp", "--design", "a-float32,b-binary16", "--device", "v100"))["estimates"]
    assert [each.seconds for each in found.values()] == [row["seconds"] for row in rows]
    fails("one time for each design", "mlp", "--device", "v100,t4", "--times", times)


def _json(tmp_path, *arguments):
    assert run(*arguments, "--out", tmp_path / "x.json").exit_code == 0
    return (tmp_path / "x.json").read_text()


def test_the_same_command_gives_the_same_bytes(tmp_path):
    arguments = ("lenet5", "--device", "a100-40gb,h100-sxm", "--batch", "1,32")
    assert _json(tmp_path, *arguments) == _json(tmp_path, *arguments)


def test_a_workload_file(tmp_path):
    works = [workload_of_gemms(load_reports().designs[name], 32, "mlp") for name in ("a-float32", "b-binary16")]
    path = tmp_path / "workloads.json"
    path.write_text(json.dumps({"schema": 1, "workloads": [work.to_table() for work in works]}))
    rows = json.loads(_json(tmp_path, path, "--device", "v100"))["estimates"]
    assert [row["seconds"] for row in rows] == [roofline(work, device("v100")).seconds for work in works]
    one = tmp_path / "one.json"
    one.write_text(json.dumps(works[0].to_table()))
    assert read_workloads(one) == works[:1]
    fails("name a device", path)
    fails("states its own designs and batches; leave out", path, "--design", "a-float32")
    fails("states its own designs and batches; leave out", path, "--batch", "64", "--device", "v100")
    fails("no workload file", tmp_path / "absent.json")
    for text, message in (
        ("{", "line 1: not JSON"),
        ('{"schema": 2, "workloads": [{}]}', "schema 2 is not known"),
        ('{"workloads": []}', "list of at least one"),
        ('{"workloads": [{"network": "x"}]}', "workload 0 lacks"),
        ('{"workload": 1}', "unknown key 'workload'"),
    ):
        one.write_text(text)
        fails(message, one, "--device", "v100")


def test_inference(tmp_path):
    result = run("lenet5", "--device", "t4,p100", "--inference", "--batch", "1,64", "--out", tmp_path / "i.json")
    assert result.exit_code == 0
    rows = json.loads((tmp_path / "i.json").read_text())["estimates"]
    assert [row["batch"] for row in rows] == [1, 1, 64, 64]
    assert rows[0]["dollars_per_million"] > rows[2]["dollars_per_million"] > 0
    assert rows[1]["dollars_per_million"] is None
    fails("leave it out with --inference", "lenet5", "--device", "t4", "--inference", "--plot", tmp_path / "a.png")


def test_tables_are_measured_read_and_rolled_up(tmp_path):
    table, out = tmp_path / "this.csv", tmp_path / "r.json"
    shared = ("--matrix-share", 0.8, "--samples", 1437, "--epochs", 20, "--nodes", 2)
    result = run("mlp", "--measure", table, *shared, "--per-layer", "--out", out)
    assert result.exit_code == 0, result.output
    assert "sizes: 5 measured" in result.output
    measured = json.loads(out.read_text())["estimates"][0]
    assert measured["iterations_per_epoch"] == 45
    assert measured["units_per_day"] == pytest.approx(2 * 86400 / measured["run_seconds"])
    again = run("mlp", "--gemm-table", table, *shared, "--out", out)
    assert "(given)" in again.output
    assert json.loads(out.read_text())["estimates"][0]["seconds"] == measured["seconds"]
    fails("no estimate", "mlp", "--gemm-table", table, "--batch", 32000)
    assert run("mlp", "--gemm-table", table, "--batch", 3200, "--farthest", 100).exit_code == 0
    profile = tmp_path / "p.csv"
    profile.write_text("operation,time\nMatMul,8\nAdd,2\n")
    assert "take 0.8 of" in run("mlp", "--gemm-table", table, "--matrix-share", profile).output
    fails("--matrix-share and --device", "mlp", "--gemm-table", table, "--device", "v100", "--matrix-share", 0.5)
    fails("leave one of them out", "mlp", "--gemm-table", table, "--measure", table)
    fails("--efficiency is of the roofline", "mlp", "--gemm-table", table, "--efficiency", 0.5)
    fails("goes with a table", "mlp", "--device", "v100", "--samples", 10)


def test_figure_of_merit(tmp_path):
    rates = tmp_path / "rates.toml"
    rates.write_text(RATES)
    result = run("--fom", rates, "--out", tmp_path / "f.json")
    assert "Figure of merit: 82.60 (68509785/829426)" in result.output
    assert json.loads((tmp_path / "f.json").read_text())["exact"] == "68509785/829426"


def test_networks_that_are_only_timed(tmp_path):
    out = tmp_path / "r.json"
    shared = ("--device", "a100-80gb", "--out", out)
    assert run("resnet50", "--precision", "float32,mixed-float16", "--batch", 256, *shared).exit_code == 0
    full, mixed = json.loads(out.read_text())["estimates"]
    assert (full["design"], mixed["design"]) == ("float32", "mixed-float16")
    forward = [row["flops"] for row in full["operations"] if (row["kind"], row["stage"]) == ("gemm", "forward")]
    assert sum(forward) == pytest.approx(256 * 2 * 4.09e9, rel=0.002)
    assert full["seconds"] > 4 * mixed["seconds"]
    result = run("bert-base", "--design", "h-posit8", *shared)
    assert "no rate for posit8" in result.output
    assert json.loads(out.read_text())["estimates"][0]["design"] == "h-posit8"
    assert run("resnet50", "--device", "v100").exit_code == 0  # float32 where nothing is said
    fails("is a network for timing only", "resnet50", "--sizes", "3", *shared)
    fails("leave one of them out", "resnet50", "--design", "a-float32", "--precision", "fp8", *shared)
    fails("did you mean 'bfloat16'", "resnet50", "--precision", "bfloat", *shared)
    fails("--precision is for alexnet", "mlp", "--precision", "fp8")
    fails("did you mean 'resnet50'", "resnet5", *shared)


def test_a_trained_network_has_all_its_operations(tmp_path):
    rows = json.loads(_json(tmp_path, "mlp", "--device", "v100"))["estimates"][0]["operations"]
    assert {row["stage"] for row in rows} == {"forward", "backward_data", "backward_weight", "update"}
    assert {"gemm", "relu", "sgd"} <= {row["kind"] for row in rows}
    assert {row["format"] for row in rows if row["kind"] != "gemm"} == {"vector"}


def test_a_picture(tmp_path):
    assert run("mlp", "--device", "v100", "--plot", tmp_path / "a.png").exit_code == 0
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_refusals(tmp_path):
    fails(
        "name one of: a network",
    )
    fails("name one of: a network", "mlp", "--devices")
    fails("did you mean 'v100'", "mlp", "--device", "v10")
    fails("--batch must be whole numbers", "mlp", "--batch", "0")
    fails("efficiency must lie in (0, 1]", "mlp", "--efficiency", 2)
    fails("h100-pcie", "mlp", "--device", "h100")
    fails("is a folder", "mlp", "--out", tmp_path)
    fails("no listed rate (bf16)", "mlp", "--device", "tpu-v2")


def test_options_without_a_use_are_refused(tmp_path):
    rates, table = tmp_path / "rates.toml", tmp_path / "t.csv"
    rates.write_text(RATES)
    table.write_text("m,n,k,time (s)\n32,128,64,1e-5\n")
    fails("--plot has no part in the list of devices", "--devices", "--plot", tmp_path / "a.png")
    fails("--batch has no part in the figure of merit", "--fom", rates, "--batch", 64)
    fails("add --device or --devices", "mlp", "--device-file", tmp_path / "absent.toml")
    fails("--epochs counts epochs", "mlp", "--epochs", 20)
    fails("--nodes counts the runs", "mlp", "--gemm-table", table, "--nodes", 2)
    fails("from 1 up, got 0.0", "mlp", "--gemm-table", table, "--farthest", 0)
    fails("from 1 up, got nan", "mlp", "--gemm-table", table, "--farthest", "nan")
    folder = ("--times", tmp_path / "x.csv", "--out", tmp_path / "x.json")
    fails("--times is of the training iteration", "mlp", "--inference", *folder)
    (tmp_path / "w.json").write_text("{}")
    fails("states its own designs and batches; leave out", tmp_path / "w.json", "--batch", 64)
    fails("--per-layer is of the training iteration", "mlp", "--inference", "--per-layer")
    fails("epochs must be at least 1", "mlp", "--gemm-table", table, "--farthest", 99, "--samples", 9, "--epochs", 0)
    assert {path.name for path in tmp_path.iterdir()} == {"rates.toml", "t.csv", "w.json"}


def test_help_teaches_and_the_program_runs():
    result = run("--help")
    for part in ("--fom rates.toml", "--measure this.csv", "--inference", "labelled as an estimate"):
        assert part in result.output
    shown = subprocess.run(
        [sys.executable, "-m", "softnum.cli", "estimate", "mlp", "--device", "v100"], capture_output=True, text=True
    )
    assert shown.returncode == 0
    assert "A bound from below" in shown.stdout
