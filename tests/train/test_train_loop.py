"""Runs: what is rounded, what is recorded, interruption and resumption to the byte, independence of threads."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import softnum as sn
from softnum.train import Numerics, Settings, design_names, load_design, make_network, run
from softnum.train.datasets.sets import batches, load_data
from softnum.train.engine.arithmetic import FUNCTIONS
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.initial import he_uniform
from softnum.train.runs.loop import read_rows

SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=3, batch=128)  # ten iterations an epoch


def plain_numpy_losses(seed: int, iterations: int) -> list[float]:
    """The same training written down once more, in binary64 with NumPy's own products."""
    data = load_data("digits")
    weights = [he_uniform(seed, 0, 64, 128), he_uniform(seed, 1, 128, 10)]
    biases = [np.zeros(128), np.zeros(10)]
    velocities = [np.zeros_like(p) for p in (*weights, *biases)]
    losses = []
    for rows in batches(1352, 32, seed, 1)[:iterations]:
        x, y = data.train_x[rows], np.eye(10)[data.train_y[rows]]
        hidden = np.maximum(x @ weights[0] + biases[0], 0)
        logits = hidden @ weights[1] + biases[1]
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        losses.append(-np.mean(np.log((p * y).sum(axis=1))))
        error = (p - y) / 32
        back = (error @ weights[1].T) * (hidden > 0)
        gradients = [x.T @ back, hidden.T @ error, back.sum(axis=0), error.sum(axis=0)]
        for i, (value, gradient) in enumerate(zip((*weights, *biases), gradients, strict=True)):
            velocities[i] = 0.9 * velocities[i] + gradient + 1e-4 * value
            value -= 0.1 * velocities[i]
    return losses


def test_float32_training_is_training(tmp_path):
    rows = read_rows(run(load_design("a-float32"), Settings(epochs=1), seed=1, out=tmp_path))
    losses = [row["loss"] for row in rows[1:16]]
    np.testing.assert_allclose(losses, plain_numpy_losses(1, 15), rtol=2e-5)
    assert rows[-1]["accuracy"] > 0.85


def test_every_operand_of_every_product_is_a_value_of_its_format(tmp_path, monkeypatch):
    """Watch sn.matmul and sn.quantize under Wang's design: formats, units and keys as the design says."""
    seen, keys = [], []
    matmul, quantize, compute = sn.matmul, sn.quantize, NumpyBackend.compute

    def watching_matmul(a, b, unit, c=None, **options):
        seen.append((a.shape, b.shape, unit, c is not None))
        for x, fmt in ((a, unit.operand[0]), (b, unit.operand[1])):
            assert np.array_equal(quantize(x, fmt), x)
        assert options["key"] is None  # nearest units take no random bits
        return matmul(a, b, unit, c, **options)

    def watching_quantize(x, fmt, **options):
        assert options["rounding"] == "nearest_even" and options["key"] is None
        return quantize(x, fmt, **options)

    def watching_compute(self, operation, operands, role, key):
        assert (operation, role.rounding, role.stochastic_bits) == ("fma", "stochastic", 16)
        assert role.format == sn.format("e6m9")
        keys.append(key)
        return compute(self, operation, operands, role, key)

    monkeypatch.setitem(FUNCTIONS, "matmul", watching_matmul)
    monkeypatch.setitem(FUNCTIONS, "quantize", watching_quantize)
    monkeypatch.setattr(NumpyBackend, "compute", watching_compute)
    design = load_design("c-wang-fp8")
    run(design, Settings(epochs=1, batch=1352, evaluate_every=1), seed=5, out=tmp_path)
    first, last = design.layer("fc1", first=True).units, design.layer("fc2").units
    assert seen == [
        ((1352, 64), (64, 128), first["forward"], True),
        ((1352, 128), (128, 10), last["forward"], True),
        ((1352, 10), (10, 128), last["backward_data"], False),
        ((128, 1352), (1352, 10), last["backward_weight"], False),
        ((1, 1352), (1352, 10), last["backward_weight"], False),
        ((64, 1352), (1352, 128), first["backward_weight"], False),
        ((1, 1352), (1352, 128), first["backward_weight"], False),
        ((445, 64), (64, 128), first["forward"], True),
        ((445, 128), (128, 10), last["forward"], True),
    ]
    assert len(keys) == 12 == len(set(keys))  # 4 parameters x decay, momentum, weight
    assert all(seed == 5 and stream >> 16 == 1 for seed, stream in keys)


def test_rounding_sites_are_numbered_by_the_documented_rule():
    numerics = Numerics(load_design("g-q44-stochastic"), ["fc1"], seed=2**64 - 1)
    numerics.begin(3)
    assert [numerics.next_key() for _ in range(2)] == [(2**64 - 1, 3 << 16), (2**64 - 1, (3 << 16) + 1)]
    numerics.begin(3, evaluation=True)
    assert numerics.next_key() == (2**64 - 1, (1 << 63) + (3 << 16))
    with pytest.raises(ValueError, match="seed must be an integer in"):
        Numerics(load_design("a-float32"), ["fc1"], seed=-1)


def test_a_bias_is_the_accumulators_initial_value(tmp_path):
    from softnum.train.engine.tensor import Parameter, Tensor, linear

    numerics = Numerics(load_design("d-e6m3-long"), ["fc1", "fc2"], seed=1)
    layer = numerics.layer("fc2")
    weight = Parameter(np.full((3, 1), 1, np.float32), layer, "w")
    bias = Parameter(np.array([16.03125], np.float32), layer, "b")
    out = linear(Tensor(np.ones((1, 3), np.float32), numerics.backend), weight, bias, layer)
    # e6m3: the bias rounds to 16, and 16 + 1 rounds back to 16; 1 + 1 + 1 + 16 would be 20
    assert out.value.tolist() == [[16.0]]


def test_the_loss_scale_is_divided_out_of_the_gradient(tmp_path):
    text = '[roles]\ndefault = "binary32"\n[loss]\nscale = {}\n'
    losses = []
    for scale in ("1", "1024"):
        file = tmp_path / f"scale{scale}.toml"
        file.write_text(text.format(scale))
        rows = read_rows(run(load_design(file), SHORT, seed=1, out=tmp_path))
        losses.append([row["loss"] for row in rows[1:]])
    assert losses[0] == losses[1]  # a power of two is exact in binary32


def test_records_have_the_documented_rows(tmp_path):
    path = run(load_design("c-wang-fp8"), SHORT, seed=7, out=tmp_path)
    assert path == tmp_path / "c-wang-fp8" / "seed-7.jsonl"
    header, *rows = read_rows(path)
    assert list(header) == ["config", "seed", "versions"] and header["seed"] == 7
    config = header["config"]
    assert config["design"]["name"] == "c-wang-fp8"
    assert config["design"]["layers"]["fc2"]["roles"]["update.weight"] == {
        "format": "e6m9", "bits": 16, "rounding": "stochastic", "stochastic_bits": 16,
    }  # fmt: skip
    assert config["network"] == {"name": "mlp", "sizes": [64, 16, 10]}
    assert (config["batch"], config["epochs"], config["evaluate_every"]) == (128, 3, 1)
    assert config["optimiser"] == {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
    assert [row["iteration"] for row in rows] == list(range(1, 31))
    assert [row["epoch"] for row in rows] == [1] * 10 + [2] * 10 + [3] * 10
    assert [row["iteration"] for row in rows if "accuracy" in row] == list(range(1, 31))
    assert [row for row in rows if "finished" in row] == [rows[-1]] and rows[-1]["finished"] is True
    assert sorted(p.name for p in path.parent.iterdir()) == ["seed-7.jsonl"]


@pytest.mark.parametrize("name", design_names())
def test_records_do_not_depend_on_threads_or_time(name, tmp_path):
    records = [
        run(load_design(name), SHORT, seed=3, out=tmp_path / str(i), threads=threads).read_bytes()
        for i, threads in enumerate((1, 2, 1))
    ]
    assert len(set(records)) == 1


def interrupt_at(*iterations):
    """A progress callback that interrupts after each of these iterations, once."""
    left = list(iterations)

    def progress(iteration, total, accuracy):
        if left and iteration == left[0]:
            left.pop(0)
            raise KeyboardInterrupt

    return progress


DYNAMIC = """
name = "dynamic"
[roles]
default = "binary32"
errors = "e5m2"
weight_gradients = "binary16"
second_moment = { format = "bfloat16", rounding = "stochastic" }
update.weight = { format = "e6m9", rounding = "stochastic" }
[loss]
scale = "dynamic"
initial = 1e6
interval = 4
"""
ADAMW = dataclasses.replace(
    SHORT, optimiser="adamw", learning_rate=0.01, schedule="cosine", warmup=5, clip_norm=0.5, clip_value=0.25
)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("a-float32", SHORT), ("c-wang-fp8", SHORT), ("g-q44-stochastic", SHORT), ("dynamic", ADAMW),
        ("dynamic", dataclasses.replace(ADAMW, optimiser="lamb", schedule="step", decay_every=7)),
        ("c-wang-fp8", dataclasses.replace(SHORT, optimiser="lars", schedule="exponential", decay_factor=0.9)),
    ],
)  # fmt: skip
def test_an_interrupted_run_ends_with_the_same_bytes(name, settings, tmp_path):
    file = tmp_path / "dynamic.toml"
    file.write_text(DYNAMIC)
    design = load_design(file if name == "dynamic" else name)
    whole = run(design, settings, seed=1, out=tmp_path / "whole").read_bytes()
    if name == "dynamic":
        assert b'"skipped": true' in whole and b'"clip_norm": 0.5' in whole
    for stops in ((4,), (10,), (15,), (23, 29), (3, 12, 21)):
        out = tmp_path / "-".join(map(str, stops))
        progress = interrupt_at(*stops)
        for stop in stops:
            with pytest.raises(KeyboardInterrupt):
                run(design, settings, seed=1, out=out, progress=progress)
            partial = out / design.name / "seed-1.jsonl"
            assert read_rows(partial)[-1]["iteration"] == stop
            assert partial.read_bytes().endswith(b"\n")
        iterations = []
        path = run(design, settings, seed=1, out=out, progress=lambda i, n, a, seen=iterations: seen.append(i))
        assert path.read_bytes() == whole
        assert iterations[0] == (stops[-1] // 10) * 10 + 1 or stops[-1] % 10 == 0  # whole epochs are not repeated
        assert [p.name for p in path.parent.iterdir()] == ["seed-1.jsonl"]


def test_a_torn_row_or_checkpoint_is_survived(tmp_path):
    design = load_design("a-float32")
    whole = run(design, SHORT, seed=1, out=tmp_path / "whole").read_bytes()
    for number, damage in enumerate(("row", "checkpoint", "prefix", "header", "lost")):
        out = tmp_path / str(number)
        with pytest.raises(KeyboardInterrupt):
            run(design, SHORT, seed=1, out=out, progress=interrupt_at(14))
        record = out / "a-float32" / "seed-1.jsonl"
        checkpoint = out / "a-float32" / "seed-1.checkpoint.npz"
        content = record.read_bytes()
        if damage == "row":
            record.write_bytes(content + b'{"iteration": 15, "ep')
        elif damage == "checkpoint":
            checkpoint.write_bytes(checkpoint.read_bytes()[:100])
        elif damage == "prefix":
            record.write_bytes(content.replace(b'"iteration": 3,', b'"iteration": 4,'))
        elif damage == "header":
            record.write_bytes(content[:50])
        else:
            record.unlink()
        assert run(design, SHORT, seed=1, out=out).read_bytes() == whole, damage


MLP = ("mlp", "--epochs", "4", "--optimiser", "adamw", "--schedule", "cosine", "--warmup", "20", "--clip-norm", "1")
LENET = (
    "lenet5", "--data", "digits", "--sizes", "2,4,16,16", "--epochs", "3", "--batch", "64", "--evaluate-every", "20",
)  # fmt: skip


@pytest.mark.parametrize(
    ("number", "options", "enough", "last"),
    [
        pytest.param(signal.SIGINT, MLP, 60, 168, marks=pytest.mark.slow), (signal.SIGKILL, MLP, 60, 168),
        pytest.param(signal.SIGKILL, LENET, 26, 63, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_signal_leaves_a_record_that_the_same_command_finishes(number, options, enough, last, tmp_path):
    """Killed in its second epoch or later, when a checkpoint is there."""
    command = [sys.executable, "-m", "softnum.cli", "train", *options, "--design", "c-wang-fp8"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run([*command, "--out", str(whole)], check=True, capture_output=True)
    record = cut / "c-wang-fp8" / "seed-1.jsonl"
    process = subprocess.Popen(
        [*command, "--out", str(cut)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    for _ in range(2000):
        if record.exists() and record.read_bytes().count(b"\n") > enough:
            break
        time.sleep(0.01)
    os.kill(process.pid, number)
    errors = process.communicate(timeout=60)[1]
    if number == signal.SIGINT:
        assert process.returncode == 130 and "interrupted" in errors and "Traceback" not in errors
    rows = read_rows(record)
    assert enough <= rows[-1]["iteration"] < last and "finished" not in rows[-1]
    assert record.with_name("seed-1.checkpoint.npz").exists()
    subprocess.run([*command, "--out", str(cut)], check=True, capture_output=True)
    assert record.read_bytes() == (whole / "c-wang-fp8" / "seed-1.jsonl").read_bytes()


def test_a_finished_run_is_not_run_again(tmp_path):
    design = load_design("a-float32")
    path = run(design, SHORT, seed=1, out=tmp_path)
    before = path.stat().st_mtime_ns
    iterations = []
    assert run(design, SHORT, seed=1, out=tmp_path, progress=lambda *a: iterations.append(a)) == path
    assert path.stat().st_mtime_ns == before and not iterations
    run(design, SHORT, seed=1, out=tmp_path, progress=lambda *a: iterations.append(a), force=True)
    assert len(iterations) == 30


def test_another_runs_record_is_in_the_way(tmp_path):
    design = load_design("a-float32")
    path = run(design, SHORT, seed=1, out=tmp_path)
    kept = path.read_bytes()
    longer = Settings(network_options={"sizes": (64, 16, 10)}, epochs=4, batch=128)
    with pytest.raises(ValueError, match=r"another run: config.epochs is 4 and was 3\. Use another --out.*--force"):
        run(design, longer, seed=1, out=tmp_path)
    with pytest.raises(ValueError, match='another run: config.network.name is "lenet5" and was "mlp"'):
        run(design, Settings(network="lenet5"), seed=1, out=tmp_path)  # not: config.design.layers.conv1
    assert path.read_bytes() == kept
    assert len(read_rows(run(design, longer, seed=1, out=tmp_path, force=True))) == 41
    path.write_text("not a record\n")
    with pytest.raises(ValueError, match="is not a training record"):
        run(design, SHORT, seed=1, out=tmp_path)


def test_a_run_that_diverges_says_so_and_finishes(tmp_path):
    file = tmp_path / "narrow.toml"  # e3m2 sums overflow to infinity above 14
    file.write_text('[roles]\ndefault = "binary32"\n[units]\nforward = { accumulator = "e3m2" }\n')
    settings = Settings(network_options={"sizes": (64, 16, 10)}, epochs=2, batch=128, learning_rate=1000.0)
    steps = []
    path = run(load_design(file), settings, seed=1, out=tmp_path, progress=lambda *step: steps.append(step))
    last = read_rows(path)[-1]
    assert steps[-1][:2] == (last["iteration"], 20) and last["iteration"] < 20
    assert last["loss"] is None and last["diverged"] is True and last["finished"] is True
    assert 0 <= last["accuracy"] < 0.5
    kept = path.read_bytes()
    assert run(load_design(file), settings, seed=1, out=tmp_path).read_bytes() == kept


def test_formats_beyond_float32_are_carried_in_float64(tmp_path):
    file = tmp_path / "wide.toml"
    file.write_text('[roles]\ndefault = "e8m40"\n[units]\nforward = { accumulator = "e8m40" }\n')
    assert Numerics(load_design(file), ["fc1"], seed=1).backend.dtype == np.float64
    assert all(Numerics(load_design(n), ["fc1", "fc2"], seed=1).backend.dtype == np.float32 for n in design_names())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch must be a positive integer, got 0"),
        ({"epochs": 1.5}, "epochs must be a positive integer, got 1.5"),
        ({"evaluate_every": 0}, "evaluate_every must be a positive integer, got 0"),
        ({"batch": 5000}, "batch must lie in 1..1352"),
        ({"learning_rate": 1e39}, "learning_rate is used in binary32, where 1e[+]39 becomes inf"),
        ({"learning_rate": 1e-60}, "learning_rate is used in binary32, where 1e-60 becomes 0.0"),
        ({"momentum": 0.9999999999}, "momentum is used in binary32, where 0.9999999999 becomes 1.0"),
        ({"weight_decay": 1e39}, "weight_decay is used in binary32"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\), got 1.0"),
        ({"weight_decay": -1.0}, "weight_decay must not be negative"),
        ({"optimiser": "adma"}, r"no optimiser is called 'adma'; did you mean 'adam'\?"),
        ({"optimiser": "adam", "momentum": 0.5}, "adam has no momentum"),
        ({"schedule": "cosin"}, r"no schedule is called 'cosin'; did you mean 'cosine'\?"),
        ({"schedule": "step"}, "the schedule 'step' needs decay_every"),
        ({"clip_norm": 0.0}, r"clip_norm must be a number from 2\*\*-126 to 2\*\*127, got 0.0; leave it out"),
        ({"clip_value": True}, "clip_value must be a number .*, got True"),
        ({"network": "mpl"}, r"no network is called 'mpl'; did you mean 'mlp'\?"),
        ({"data": "minst"}, r"no data set is called 'minst'; did you mean 'mnist'\?"),
        ({"network_options": {"sizes": (64,)}}, "sizes must be at least two positive integers"),
        ({"network_options": {"sizes": (32, 10)}}, "the network takes 32 inputs, the data have 64"),
        ({"network_options": {"sizes": (64, 9)}}, "the network has 9 outputs, the data have 10 classes"),
    ],
)
def test_unusable_settings_are_named(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(load_design("a-float32"), Settings(**change), seed=1, out=tmp_path)


@pytest.mark.parametrize("threads", [0, -1, True, 1.5])
def test_unusable_threads_leave_no_file(threads, tmp_path):
    with pytest.raises(ValueError, match="threads must be a positive integer"):
        run(load_design("a-float32"), SHORT, seed=1, out=tmp_path, threads=threads)
    assert not list(tmp_path.iterdir())


def test_a_design_for_layers_that_are_not_there(tmp_path):
    settings = Settings(network_options={"sizes": (64, 10)})
    with pytest.raises(ValueError, match=r"c-wang-fp8.toml: \[layers.\"\(\.\*\\\.\)\?fc2\?\"\] matches no layer"):
        run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_last_layer_has_no_hidden_dependence_on_its_name():
    net = make_network("mlp", sizes=(4, 3))
    assert net.gemms(2) == [
        {"layer": "fc1", "pass": "forward", "M": 2, "N": 3, "K": 4},
        {"layer": "fc1", "pass": "backward_weight", "M": 4, "N": 3, "K": 2},
    ]
    with pytest.raises(ValueError, match="batch must be a positive integer"):
        net.gemms(0)


def test_a_part_of_the_data(tmp_path):
    """The first samples of each part, as the record says; more than there are is an error that says how many."""
    settings = dataclasses.replace(SHORT, samples=256, held_out=50, epochs=1)
    header, *rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    data = header["config"]["data"]
    assert (data["train"], data["held_out"]) == (256, 50)
    assert data["sha256"] == load_data("digits").first(256, 50).describe()["sha256"]
    assert len(rows) == 256 // settings.batch and rows[-1]["accuracy"] * 50 % 1 == 0
    with pytest.raises(
        ValueError, match=r"--samples \(samples\) must lie in 1..1352, the samples of digits to train on, got 2000"
    ):
        run(load_design("a-float32"), dataclasses.replace(SHORT, samples=2000), seed=2, out=tmp_path)


def test_classes_that_are_held_out_only_need_an_output_too(tmp_path):
    """The first four digits are 0 to 3; those held out have all ten classes."""
    settings = Settings(network_options={"sizes": (64, 4)}, samples=4, batch=4)
    with pytest.raises(ValueError, match="the network has 4 outputs, the data have 10 classes"):
        run(load_design("a-float32"), settings, seed=1, out=tmp_path)
