"""Memory: spans and peaks counted by hand, the largest batch judged by the batch after it, the command."""

import csv
import json

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import load_design, workload
from softnum.tta import Operation, Workload, architecture, lower, memory_of  # fmt: skip
from softnum.tta.outcomes import plot_memory  # fmt: skip
from softnum.tta.workloads import TENSOR_CLASSES, StoredTensor, largest_batch, memory_table  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(part) for part in arguments])


def two_layers(batch=4, *, live=True):
    """Layers a and b: forwards a, b; backwards b, a; both updated. Every element has a byte."""
    stages = [("a", "forward"), ("b", "forward"), ("b", "backward_data"), ("b", "backward_weight"),
              ("a", "backward_weight"), ("a", "update"), ("b", "update")]  # fmt: skip
    operations = tuple(Operation(layer, stage, "gemm", 1, 1, 1) for layer, stage in stages)
    rows = [
        ("a", "w", "weights", 100, "forward", (0, 6)), ("b", "w", "weights", 50, "forward", (0, 6)),
        ("a", "m", "optimiser_state", 100, "forward", (0, 6)),
        ("a", "y", "feature_maps", 10 * batch, "forward", (0, 4)),
        ("b", "y", "feature_maps", 20 * batch, "forward", (1, 3)),
        ("b", "dx", "gradient_maps", 10 * batch, "backward_data", (2, 4)),
        ("b", "dw", "weight_gradients", 50, "backward_weight", (3, 6)),
        ("a", "dw", "weight_gradients", 100, "backward_weight", (4, 6)),
        ("b", "unfolded", "workspace", 300, "backward_data", (2, 2)),
    ]  # fmt: skip
    tensors = tuple(
        StoredTensor(layer, name, kind, count, 8, "e5m2", "maps" in kind, stage, span if live else None)
        for layer, name, kind, count, stage, span in rows
    )
    return Workload("two", "mine", batch, operations, tensors)


@pytest.mark.parametrize("live", [True, False])
def test_a_timeline_by_hand(live):
    """The spans that classes imply are those that are stated here."""
    memory = memory_of(two_layers(live=live))
    always = 100 + 50 + 100
    assert memory.timeline == (
        always + 40, always + 120, always + 120 + 40 + 300, always + 120 + 40 + 50, always + 40 + 40 + 150,
        always + 150, always + 150,
    )  # fmt: skip
    assert (memory.peak, memory.peak_operation) == (710, 2)
    assert memory.at_peak == {
        "weights": 150, "weight_gradients": 0, "feature_maps": 120, "gradient_maps": 40, "optimiser_state": 100,
        "workspace": 300,
    }  # fmt: skip
    assert memory.total == 150 + 100 + 120 + 40 + 150 + 300
    assert memory.layers == {
        "a": {"weights": 100, "optimiser_state": 100, "feature_maps": 40},
        "b": {"weights": 50, "feature_maps": 80, "gradient_maps": 40, "workspace": 300},
    }
    assert memory.dominant(1) == [("b", 470)]
    assert memory_of(two_layers(live=live), implicit=True).peak == 480  # then in operation 4


def test_bits_are_rounded_up_tensor_by_tensor():
    operation = Operation("a", "forward", "relu", 1, 1, 1)
    tensors = (StoredTensor("a", "x", "feature_maps", 9, 1), StoredTensor("a", "y", "feature_maps", 3, 8.25))
    assert memory_of(Workload("odd", "mine", 1, (operation,), tensors)).peak == 2 + 4


def test_parts_of_a_layer_are_its_operations():
    stages = [
        ("lstm.hidden", "forward"),
        ("fc", "forward"),
        ("fc", "backward_data"),
        ("lstm.hidden", "backward_weight"),
    ]
    operations = tuple(Operation(layer, stage, "gemm", 1, 1, 1) for layer, stage in stages)
    tensors = (
        StoredTensor("lstm", "y", "feature_maps", 8, 8),
        StoredTensor("fc", "dx", "gradient_maps", 4, 8, stage="backward_data"),
    )
    assert memory_of(Workload("parts", "mine", 1, operations, tensors)).timeline == (8, 8, 12, 12)


@pytest.mark.parametrize("name", ["lenet5", "resnet", "lstm"])
def test_a_trained_network(name):
    work = workload(name, load_design("c-wang-fp8"), 8)
    memory = memory_of(work)
    assert memory.peak == max(memory.timeline) == memory.timeline[memory.peak_operation] <= memory.total
    assert sum(sum(classes.values()) for classes in memory.layers.values()) == memory.peak
    assert memory.total == sum(tensor.bytes for tensor in work.tensors)
    assert list(memory.at_peak) == list(TENSOR_CLASSES) and 0 < memory.share("weights") < 1
    assert json.loads(json.dumps(memory.to_table()))["peak"] == memory.peak
    narrow = memory_of(workload(name, load_design("a-float32"), 8))
    assert memory.peak < narrow.peak


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [3 * 10**5, 10**6, 12345678])
@pytest.mark.parametrize("name", ["lenet5", "lstm", "resnet"])
def test_the_largest_batch_fits_and_the_next_does_not(name, capacity):
    design = load_design("i-mxfp8")
    batch = largest_batch(workload(name, design, 8), workload(name, design, 16), capacity)
    if batch:
        assert memory_of(workload(name, design, batch)).peak <= capacity
    if batch != 1:
        assert memory_of(workload(name, design, batch + 1 if batch else 2)).peak > capacity


def test_the_largest_batch_by_hand():
    small, large = two_layers(4), two_layers(8)
    # 250 + 30 n + 10 n + 300 bytes at operation 2, or 250 + 40 n + 50
    assert [largest_batch(small, large, size) for size in (589, 590, 949, 950)] == [0, 1, 9, 10]
    assert largest_batch(small, large, 990, step=4) == 8
    assert largest_batch(small, large, 700, implicit=True) == 10


def test_the_largest_batch_of_a_network_that_is_timed():
    net = architecture("resnet50")
    batch = largest_batch(lower(net, 8), lower(net, 16), 4 * 10**9)
    assert memory_of(lower(net, batch)).peak <= 4 * 10**9 < memory_of(lower(net, batch + 1)).peak


def test_what_is_refused():
    work = two_layers()
    for wrong, said in (
        (Workload("x", "y", 1, work.operations), "lists no tensors"),
        (Workload("x", "y", 1, (), (StoredTensor("a", "w", "weights", 1, 8),)), "lists no operations"),
    ):
        with pytest.raises(ValueError, match=said):
            memory_of(wrong)
    other = Workload("two", "mine", 8, work.operations, two_layers(8).tensors[:-1])
    for pair, capacity, said in (
        ((work, work), 10, "both workloads have batch 4"),
        ((work, Workload("other", "mine", 8, work.operations, work.tensors)), 10, "one network and design"),
        ((work, other), 10, "other tensors at batch 4 than at batch 8"),
        ((work, Workload("two", "mine", 8, work.operations, work.tensors)), 10, "no tensor of 'two' grows"),
        ((work, two_layers(8)), 0, "capacity must be at least 1"),
    ):
        with pytest.raises(ValueError, match=said):
            largest_batch(*pair, capacity)
    odd = two_layers(4).tensors[3]
    grown = StoredTensor(odd.layer, odd.name, odd.tensor_class, odd.elements + 1, 8, odd.format, live=odd.live)
    tensors = tuple(grown if tensor is odd else tensor for tensor in work.tensors)
    with pytest.raises(ValueError, match=r"'y' of layer 'a' has 40 elements at batch 4 and 41 at 6"):
        largest_batch(work, Workload("two", "mine", 6, work.operations, tuple(
            grown if t.name == "y" and t.layer == "a" else t for t in work.tensors)), 10)  # fmt: skip
    assert len(tensors) == 9


def test_a_table_and_a_picture(tmp_path):
    works = [workload("lenet5", load_design(name), batch) for name in ("a-float32", "i-mxfp8") for batch in (8, 16)]
    rows = memory_table(works)
    assert [(row["design"], row["batch"]) for row in rows] == [(work.design, work.batch) for work in works]
    assert all(row["peak"] == memory_of(work).peak for row, work in zip(rows, works, strict=True))
    for name in ("a.png", "b.png", "c.svg"):
        plot_memory(tmp_path / name, [memory_of(work) for work in works])
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert "i-mxfp8, batch 16" in (tmp_path / "c.svg").read_text() or (tmp_path / "c.svg").stat().st_size > 10_000
    with pytest.raises(ValueError, match="must end in"):
        plot_memory(tmp_path / "d.gif", [memory_of(works[0])])
    with pytest.raises(ValueError, match="no memory"):
        plot_memory(tmp_path / "d.png", [])


def test_the_command(tmp_path):
    out, picture = tmp_path / "memory.csv", tmp_path / "memory.png"
    ways = ("--design", "a-float32,c-wang-fp8", "--format", "e5m2", "--batch", "8,16", "--device-memory", "1 MB")
    done = run("memory", "lenet5", *ways, "--layers", 2, "--plot", picture, "--out", out)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["design"], row["batch"]) for row in rows] == [
        (name, batch) for name in ("a-float32", "c-wang-fp8", "e5m2") for batch in ("8", "16")
    ]
    work = workload("lenet5", load_design("c-wang-fp8"), 16)
    assert int(rows[3]["peak"]) == memory_of(work).peak
    assert int(rows[0]["largest_batch"]) == largest_batch(
        *(workload("lenet5", load_design("a-float32"), batch) for batch in (8, 16)), 10**6
    )
    assert picture.stat().st_size > 5000 and "the layers that hold most" in done.output
    done = run("memory", "resnet50", "--precision", "float32,fp8", "--out", tmp_path / "m.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "m.json").read_text())["memory"]
    assert [row["design"] for row in found] == ["float32", "fp8"] and found[0]["peak"] > found[1]["peak"]


def test_sgd_keeps_momentum_of_a_trained_network_only():
    trained, timed = (run("memory", name, "--optimiser", "sgd") for name in ("mlp", "alexnet"))
    assert "State" in trained.output and "State" not in timed.output
    assert "sgd (there without momentum)" in " ".join(run("memory", "--help").output.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lenet6"], "did you mean 'lenet5'"),
        (["lenet5", "--batch", "0"], "--batch must be whole numbers"),
        (["lenet5", "--device-memory", "16 GiB"], "accepted units"),
        (["lenet5", "--format", "e99"], "e99"),
        (["lenet5", "--layers", "-1"], "--layers must not be negative"),
        (["lenet5", "--precision", "fp8"], "--precision is for"),
        (["none.json"], "no workload file"),
        (["none.json", "--batch", "64"], "states its own designs and batches; leave out"),
        (["none.json", "--optimiser", "adam"], "--optimiser"),
        (["nonesuch"], "unknown network 'nonesuch'. Known: "),
        (["resnet50", "--optimiser", "lars"], "unknown optimiser 'lars'. Known: sgd, momentum"),
        (["lenet5", "--out", "memory.txt"], "must end in .json or .csv"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("memory", *arguments)
    assert done.exit_code == 2 and said in done.output
