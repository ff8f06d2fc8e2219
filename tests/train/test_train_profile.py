"""Profiles: tables that add up to the iteration, counts that are the explanation's, a timeline that nests."""

import itertools
import json
import time

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import Settings, explain, load_design, profile
from softnum.train import profile as measure
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.watch import watching
from softnum.train.runs.loop import Run

SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=1, batch=128)  # ten iterations
ADAM = Settings(network_options={"sizes": (64, 16, 10)}, epochs=1, batch=128, optimiser="adam", clip_norm=0.1)
CASES = [("c-wang-fp8", SHORT), ("a-float32", ADAM), ("g-q44-stochastic", SHORT)]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_the_tables_add_up(name, settings):
    found = profile(settings, load_design(name), iterations=3)
    layers = [row for row in found.by_scope if len(row.scope) == 1]
    stages = [row for row in found.by_scope if len(row.scope) == 2]
    steps = explain(settings, load_design(name))
    for rows in (found.by_operation, layers):
        assert sum(row.share for row in rows) == pytest.approx(1, abs=1e-12)
        assert sum(row.seconds for row in rows) == pytest.approx(found.seconds, rel=1e-12)
        assert sum(row.flops for row in rows) == steps.flops > 0
        assert sum(row.bytes for row in rows) == steps.bytes > 0
        assert sum(row.occurrences for row in rows) == len(found.operations) >= len(steps.steps)
    for layer in layers[:-1]:  # the last is what lies between operations
        own = [row for row in stages if row.scope[0] == layer.scope[0]]
        assert sum(row.seconds for row in own) == pytest.approx(layer.seconds)
        assert sum(row.bytes for row in own) == layer.bytes
    assert [layer.parameters for layer in layers[:2]] == [64 * 16 + 16, 16 * 10 + 10]
    assert [operation.step for operation in found.operations if operation.step] == list(steps.steps)
    assert all(row.seconds >= 0 for row in (*found.by_operation, *stages)) and found.iterations == 3


def test_an_operation_is_where_it_belongs():
    found = profile(Settings(batch=128), load_design("c-wang-fp8"), iterations=1)
    rounded = [o for o in found.operations if o.step is not None and o.step.role is not None]
    assert all(o.layer == o.step.layer and o.name == o.step.operation for o in rounded)
    stages = {"forward": "forward", "backward_data": "backward", "backward_weight": "backward", "errors": "backward",
              "weight_gradients": "backward", "activations": "forward"}  # fmt: skip
    assert all(o.stage == stages.get(o.step.role, o.stage) for o in rounded)
    assert {o.step.role for o in rounded if o.stage == "update"} >= {"update.decay", "update.momentum", "update.weight"}
    assert all(o.stage == "update" for o in rounded if o.step.role.startswith("update"))
    assert [(o.name, o.stage) for o in found.operations if o.layer == "loss"] == [
        ("softmax_cross_entropy", "forward"), ("cross_entropy_error", "backward"),
    ]  # fmt: skip
    assert [o.layer for o in found.operations if o.layer == "input"] == []


def test_the_timeline_nests(tmp_path):
    found = profile(SHORT, load_design("c-wang-fp8"), iterations=2)
    trace = json.loads(found.to_json())
    name, whole, *spans = trace["traceEvents"]
    assert name["ph"] == "M" and name["args"]["name"] == found.title and "c-wang-fp8" in found.title
    assert whole["name"] == "iteration" and whole["dur"] == pytest.approx(found.length * 1e6)
    assert all(span["ph"] == "X" and span["dur"] >= 0 and span["pid"] == span["tid"] == 1 for span in (whole, *spans))
    operations = [span for span in spans if "args" in span]
    assert [span["name"] for span in operations] == [operation.name for operation in found.operations]
    stages = [span for span in spans if span["cat"] == span["name"]]
    assert [span["name"] for span in stages] == ["forward", "backward", "update"]
    groups = [span for span in spans if "args" not in span and span not in stages]

    def end(span):
        return span["ts"] + span["dur"] + 1e-6  # a picosecond: sums of binary64

    def inside(inner, outer):
        return outer["ts"] - 1e-6 <= inner["ts"] and end(inner) <= end(outer) + 1e-6

    for row in (stages, groups, operations):  # one after another
        assert all(end(first) <= second["ts"] + 2e-6 for first, second in itertools.pairwise(row))
        assert all(inside(span, whole) for span in row)
    for operation in operations:
        stage, layer = operation["cat"].split(",")
        assert sum(inside(operation, group) and group["name"] == layer for group in groups) == 1
        assert sum(inside(operation, span) and span["name"] == stage for span in stages) == 1
    (matmul, *_) = [span for span in operations if span["name"] == "matmul"]
    assert matmul["cat"] == "forward,fc1" and matmul["args"]["unit"]["chunk"] == 64
    assert matmul["args"]["operands"][:2] == [["e6m9", [128, 64]], ["e5m2", [64, 16]]]
    assert matmul["args"]["flops"] == 2 * 128 * 64 * 16 and matmul["args"]["bytes"] > 0
    tables = trace["otherData"]
    assert [tuple(row["scope"]) for row in tables["scopes"]] == [row.scope for row in found.by_scope]
    assert sum(row["share"] for row in tables["operations"]) == pytest.approx(1)


def test_a_slow_operation_is_found_and_its_watching_is_not(monkeypatch):
    """A sleep in one of the backend's methods is that method's time; one in the listener is nobody's."""
    work = Run(SHORT, load_design("a-float32"), 1)
    with watching(work.numerics, lambda event: time.sleep(0.002)) as now:
        begun, started = now(), time.perf_counter_ns()
        work.train(1, next(iter(work.plan(1)))[1])
        assert time.perf_counter_ns() - started > 80e6 + now() - begun  # some forty operations
    kept = NumpyBackend.where_positive

    def slow(self, condition, x):
        time.sleep(0.05)
        return kept(self, condition, x)

    monkeypatch.setattr(NumpyBackend, "where_positive", slow)
    found = profile(SHORT, load_design("a-float32"), iterations=1)
    first = found.by_operation[0]
    assert first.scope == ("where_positive",) and first.seconds > 0.05 and first.share > 0.5
    assert found.between < 0.05


def test_operations_that_another_asks_for_come_before_it(monkeypatch):
    """The parts that from_windows places are made as it asks for them: they are neither its time nor unknown to it."""
    kept = NumpyBackend.where_equal

    def slow(self, chosen, place, x):
        time.sleep(0.01)
        return kept(self, chosen, place, x)

    monkeypatch.setattr(NumpyBackend, "where_equal", slow)
    lenet = Settings(network="lenet5", network_options={"sizes": (2, 2, 8, 8)}, batch=16)
    found = profile(lenet, load_design("a-float32"), iterations=1)
    times = {row.scope[0]: row for row in found.by_operation}
    assert times["where_equal"].seconds >= 0.01 * times["where_equal"].occurrences == 0.08
    assert times["from_windows"].seconds < 0.04 and found.between > 0
    names = [o.name for o in found.operations]
    place = names.index("from_windows")
    assert names[place - 4 : place] == ["where_equal"] * 4
    step = found.operations[place].step
    images, channels, rows, columns = step.shape
    assert step.operands == (("binary32", (images, channels, rows // 2, columns // 2)),) * 4
    assert step.bytes == 4 * 2 * images * channels * rows * columns  # each element once on either side


def test_what_cannot_be_measured_is_said(tmp_path):
    design = load_design("a-float32")
    with pytest.raises(ValueError, match="of the 10 of the run, 9 could be measured"):
        profile(SHORT, design, iterations=10)
    for wrong in (0, True, 1.5):
        with pytest.raises(ValueError, match="iterations must be a positive integer"):
            profile(SHORT, design, iterations=wrong)
    steep = Settings(network_options={"sizes": (64, 16, 10)}, epochs=1, batch=128, learning_rate=1e38)
    with pytest.raises(ValueError, match="is not finite"):
        profile(steep, design, iterations=8)


def test_iterations_without_an_update_are_passed(tmp_path):
    file = tmp_path / "scaled.toml"
    file.write_text('[roles]\ndefault = "binary32"\nerrors = "e5m2"\n[loss]\nscale = "dynamic"\ninitial = 1e8\n')
    found = measure(SHORT, load_design(file), iterations=2)
    assert {operation.stage for operation in found.operations} == {"forward", "backward", "update"}


def test_the_command_writes_a_timeline_and_no_record(tmp_path):
    command = ["train", "mlp", "--design", "c-wang-fp8", "--sizes", "64,16,10", "--batch", "128", "--epochs", "1"]
    result = CliRunner().invoke(build_app(), [*command, "--profile", "--out", str(tmp_path)])
    assert result.exit_code == 0 and "between operations" in result.output
    written = tmp_path / "c-wang-fp8" / "seed-1.profile.json"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [written]
    assert json.loads(written.read_bytes())["otherData"]["iterations"] == 5
    file = tmp_path / "new" / "step.json"
    result = CliRunner().invoke(build_app(), [*command, "--profile", "--trace", str(file)])
    assert result.exit_code == 0 and str(file) in result.output and [file] == list(file.parent.iterdir())
    for wrong, said in ((["--trace", "x"], "add --profile"), (["--explain", "--profile"], "leave one of them out")):
        result = CliRunner().invoke(build_app(), [*command, *wrong])
        assert result.exit_code == 2 and said in result.output
