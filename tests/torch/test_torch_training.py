"""Training of PyTorch models with records: `Training`, `Recorder`, and the commands that take a model's file."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import numpy as np  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.cli import build_app  # noqa: E402
from softnum.torch.dataflow.steps import Step  # noqa: E402
from softnum.torch.products import workload_of_step  # noqa: E402
from softnum.torch.runs import TrainingRun  # noqa: E402
from softnum.train import Settings, load_design, run, workload  # noqa: E402
from softnum.train.runs.loop import carry_out, make_run  # noqa: E402
from softnum.train.studies.study_file import read_study  # noqa: E402
from softnum.tta import memory_of, read_records  # noqa: E402
from softnum.tta.accuracy import read_record  # noqa: E402

MINE = '''
import torch
import softnum.torch as st
from torch.utils.data import TensorDataset


def make(width=16, dropout=0.5, rate=0.1, worst=0.0, **options):
    """Which of eight corners a point lies at."""
    numbers = torch.arange(160)
    corners = torch.stack([(numbers >> bit & 1).float() for bit in range(3)], 1)
    points = corners + 0.25 * torch.sin(numbers.float())[:, None] + worst
    data = TensorDataset(points, numbers % 8)
    return st.Training(
        model=lambda: torch.nn.Sequential(
            torch.nn.Linear(3, width), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(width, 8)
        ),
        train=data,
        held_out=TensorDataset(points[:40], numbers[:40] % 8),
        optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9),
        scheduler=lambda optimizer, iterations: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations),
        clip_norm=1.0,
        **{"options": {"known_as": {"3": "fc"}}, **options},
    )


def what():
    return 3


number = 3
'''


@pytest.fixture
def mine(tmp_path, monkeypatch) -> str:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return "mine.py:make"


def settings_of(mine: str, **options) -> Settings:
    return Settings(mine, options, batch=16, epochs=3, evaluate_every=5)


def call(*words) -> str:
    found = CliRunner().invoke(build_app(), [str(word) for word in words], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_record_of_a_model_is_what_training_records_are(mine, tmp_path):
    record = read_record(run(load_design("c-wang-fp8"), settings_of(mine), seed=3, out=tmp_path / "runs"))
    assert (record.design, record.seed, record.batch, record.iterations) == ("c-wang-fp8", 3, 16, 30)
    assert [each.iteration for each in record.evaluations] == [5, 10, 15, 20, 25, 30]
    assert record.evaluations[-1].value > 0.5
    config = record.config
    assert config["network"] == {
        "name": "make", "source": "mine.py:make", "sha256": config["network"]["sha256"], "class": "Sequential",
        "parameters": 3 * 16 + 16 + 16 * 8 + 8,
    }  # fmt: skip
    assert config["design"]["layers"]["0"]["roles"]["input"]["format"] == "e6m9"
    assert config["design"]["layers"]["3"]["roles"]["weights"]["format"] == "e6m9"  # known as fc
    shapes = [(row["layer"], row["pass"], row["M"], row["N"], row["K"]) for row in config["gemms"]]
    assert shapes[:2] == [("0", "forward", 16, 16, 3), ("3", "forward", 16, 8, 16)]
    assert record.versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]


@pytest.mark.parametrize("design", ["c-wang-fp8", "te-delayed-scaling"])
def test_interrupted_run_has_the_bytes_of_one_that_was_not(mine, tmp_path, design):
    chosen, settings = load_design(design), settings_of(mine)
    whole = run(chosen, settings, seed=1, out=tmp_path / "whole")

    class Stopped(Exception):
        pass

    def stop(iteration, *_):
        if iteration == 14:
            raise Stopped

    with pytest.raises(Stopped):
        run(chosen, settings, seed=1, out=tmp_path / "parts", progress=stop)
    seen = []
    parts = run(chosen, settings, seed=1, out=tmp_path / "parts", progress=lambda number, *_: seen.append(number))
    assert seen[0] == 11  # after the whole epoch of ten
    assert parts.read_bytes() == whole.read_bytes()
    assert run(chosen, settings, seed=1, out=tmp_path / "whole", progress=seen.clear) == whole and seen


def test_bits_depend_on_the_seed_alone(mine, tmp_path):
    chosen, settings = load_design("c-wang-fp8"), settings_of(mine)
    torch.manual_seed(99)
    one = run(chosen, settings, seed=1, out=tmp_path / "one", statistics=7).read_bytes()
    torch.rand(3)
    assert run(chosen, settings, seed=1, out=tmp_path / "two", threads=2).read_bytes() == one
    other = run(chosen, settings, seed=2, out=tmp_path / "two").read_bytes()
    rows = [json.loads(text.splitlines()[1])["loss"] for text in (one, other)]
    assert rows[0] != rows[1]
    statistics = (tmp_path / "one/c-wang-fp8/seed-1.statistics.jsonl").read_text().splitlines()
    seen = {(row["layer"], row["role"]) for row in map(json.loads, statistics[1:])}
    assert {("0", "input"), ("3", "weights"), ("0", "backward_weight"), ("0", "update.weight")} <= seen


def test_loss_and_metric_of_ones_own(mine, tmp_path):
    def loss(model, batch):
        return F.mse_loss(model(batch[0]), batch[0])

    def evaluate(model, batches):
        assert not model.training and not torch.is_grad_enabled()
        parts = [float(loss(model, batch)) for batch in batches]
        return {"error": sum(parts) / len(parts), "largest": math.inf}

    data = TensorDataset(torch.linspace(-1, 1, 96).reshape(32, 3))
    training = st.Training(
        model=lambda: torch.nn.Linear(3, 3), train=data, held_out=data, loss=loss, evaluate=evaluate, metric="error",
        optimizer=lambda model: torch.optim.Adagrad(model.parameters(), lr=0.1), update="torch",
    )  # fmt: skip
    settings = Settings("here:training", batch=8, epochs=2, evaluate_every=4)
    work = TrainingRun(training, settings, "i-mxfp8", 1, 1, "cpu")
    path = carry_out(work, tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[-1]["error"] < rows[4]["error"] and rows[-1]["largest"] is None
    assert read_record(path, metric="error").iterations == 8
    assert carry_out(TrainingRun(training, settings, "i-mxfp8", 1, 1, "cpu"), tmp_path) == path


def test_several_losses_and_optimisers(mine, tmp_path):
    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.generator, self.critic = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)

        def forward(self, x):
            return self.critic(x).mean()

    seen = []

    def losses(model, batch):
        noise, real = batch
        for _ in range(2):
            with torch.no_grad():
                made = model.generator(noise)
            seen.append([name for name, parameter in model.named_parameters() if parameter.grad is not None])
            yield "critic", model(made) - model(real)
            with torch.no_grad():
                for parameter in model.critic.parameters():
                    parameter.clamp_(-0.01, 0.01)
        yield "generator", -model(model.generator(noise))

    def evaluate(model, batches):
        return {"distance": sum(float(model(real) - model(model.generator(noise))) for noise, real in batches)}

    data = TensorDataset(torch.linspace(-1, 1, 64).reshape(32, 2), torch.linspace(0, 1, 96).reshape(32, 3))

    def make(names=("generator", "critic")):
        return st.Training(
            model=Pair, train=data, held_out=data, loss=losses, evaluate=evaluate, metric="distance",
            optimizer=lambda model: {
                name: torch.optim.SGD(getattr(model, name).parameters(), lr=0.1, momentum=0.5) for name in names
            },
            options={"first": "generator", "last": "critic"},
        )  # fmt: skip

    settings = Settings("here:make", batch=8, epochs=3)
    work = make().make_run(settings, "g-q44-stochastic", 1)
    path = carry_out(work, tmp_path / "whole")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert (
        set(rows[1]) == {"iteration", "epoch", "critic", "generator", "loss"}
        and rows[1]["loss"] == rows[1]["generator"]
    )
    assert all(float(parameter.detach().abs().max()) <= 0.01 for parameter in work.model.critic.parameters())
    assert set(rows[0]["config"]["optimiser"]) == {"critic", "generator"}

    def stop(iteration, *_):
        if iteration == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(make().make_run(settings, "g-q44-stochastic", 1), tmp_path / "parts", progress=stop)
    again = carry_out(make().make_run(settings, "g-q44-stochastic", 1), tmp_path / "parts")
    assert again.read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="named the optimiser 'generator'; there are critic"):
        carry_out(make(["critic"]).make_run(settings, "a-float32", 1), tmp_path / "other")
    work = make().workload(settings, "a-float32")
    assert sum(part.kind == "sgd" for part in work.operations) == 3
    forward = [part for part in work.operations if part.gemm and part.stage == "forward"]
    assert [part.layer for part in forward] == ["generator", "critic", "critic"] * 2 + ["generator", "critic"]


def test_divergence_ends_a_record(mine, tmp_path):
    settings = settings_of(mine, worst=1e39)
    rows = run(load_design("a-float32"), settings, seed=1, out=tmp_path).read_text().splitlines()
    last = json.loads(rows[-1])
    assert (last["loss"], last["diverged"], last["finished"]) == (None, True, True)


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        ("none.py:make", {}, "no file"),
        ("mine.py:nothing", {}, "no object 'nothing'"),
        ("mine.py:number", {}, "is int; expected a function"),
        ("mine.py:what", {}, "returned int"),
        ("mine.py:make", {"update": "none"}, "update must be one of"),
        ("mine.py:what", {"wide": 3}, r"wide.*\(its arguments: none\)"),
        ("mine.py:make", {"clip_norm": 1}, "multiple values"),
        ("mine.py:make", {"metric": "bleu"}, "numbers by name, with 'bleu'"),
        ("mine.py:make", {"options": {"known_as": {"9": "fc"}}}, "no module '9'"),
        ("mine.py:make", {"options": {"seed": 3}}, "convert has no 'seed'"),
        ("mine.py:make", {"metric": "loss"}, "means something else"),
        ("mine.py:make", {"model": 3}, "multiple values|must be a function"),
    ],
)
def test_what_a_models_file_lacks_is_said(mine, tmp_path, network, options, message):
    with pytest.raises((ValueError, FileNotFoundError, TypeError), match=message):
        run(load_design("c-wang-fp8"), settings_of(network, **options), seed=1, out=tmp_path)


@pytest.mark.parametrize("stated", [{"optimiser": "adam"}, {"data": "digits"}, {"schedule": "cosine"}, {"warmup": 3}])
def test_what_the_file_says_is_not_said_twice(mine, stated):
    with pytest.raises(ValueError, match="mine.py:make states its own data"):
        Settings(mine, **stated)


def test_runs_that_draw_at_random_are_those_that_were_planned(mine, tmp_path):
    (tmp_path / "drawn.py").write_text(
        "import random, numpy as np, torch, softnum.torch as st\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 64\n"
        "    def __getitem__(self, i):\n"
        "        return torch.randn(3) + random.random() + float(np.random.rand()), i % 2\n"
        "def make():\n"
        "    parts = torch.utils.data.random_split(Data(), [48, 16])\n"
        "    return st.Training(model=lambda: torch.nn.Linear(3, 2), train=parts[0], held_out=parts[1],\n"
        "        optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),\n"
        "        options={'known_as': {'': 'fc'}})\n"
    )
    settings = Settings("drawn.py:make", batch=16, epochs=2)
    one = run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path / "one").read_bytes()
    torch.manual_seed(77)
    assert run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path / "two").read_bytes() == one


def test_files_have_the_modules_beside_them(tmp_path):
    found = []
    for name, width in (("first", 16), ("second", 24)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "helper.py").write_text(f"WIDTH = {width}\n")
        text = MINE.replace("import torch\n", "import torch\nfrom helper import WIDTH\n", 1)
        (folder / "mine.py").write_text(text.replace("width=16", "width=WIDTH"))
        work = make_run(settings_of(f"{folder / 'mine.py'}:make"), load_design("a-float32"), 1)
        found.append(work.header()["config"]["network"])
    assert [network["parameters"] for network in found] == [4 * width + 9 * width - width + 8 for width in (16, 24)]
    assert found[0]["imports"].keys() == {"helper"} and found[0]["imports"] != found[1]["imports"]
    assert "helper" not in sys.modules


@pytest.mark.parametrize("design", ["c-wang-fp8", "g-q44-stochastic"])
def test_updates_of_pytorch_go_on_to_the_same_bytes(mine, tmp_path, design):
    chosen, settings = load_design(design), settings_of(mine, update="torch")
    if design == "g-q44-stochastic":
        settings = replace(settings, network_options={"update": "torch", "options": {}})
    whole = run(chosen, settings, seed=1, out=tmp_path / "whole").read_bytes()

    def stop(iteration, *_):
        if iteration == 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(chosen, settings, seed=1, out=tmp_path / "parts", progress=stop)
    assert run(chosen, settings, seed=1, out=tmp_path / "parts").read_bytes() == whole


def test_data_have_checksums_of_their_bytes():
    def digest(data):
        training = st.Training(
            model=torch.nn.Identity.__call__, train=data, held_out=data, optimizer=lambda model: None
        )  # fmt: skip
        return training.describe(Settings("pytest:main", batch=1))["data"]["sha256"]

    x = np.zeros((2, 40, 40))
    first = digest([(x[0], 1), (x[1], 2)])
    x[1, 20, 20] = 1
    assert digest([(x[0], 1), (x[1], 2)]) != first == digest([(x[0], 1), (x[0].copy(), 2)])
    y = torch.zeros(200, 2)
    y[150, 1] = 1
    subset = torch.utils.data.Subset(TensorDataset(y), range(100, 200))
    assert digest(subset) != digest(torch.utils.data.Subset(TensorDataset(torch.zeros(200, 2)), range(100, 200)))
    with pytest.raises(ValueError, match="a sample holds object, of which there is no checksum"):
        digest([object()])


def test_accuracy_takes_classes_alone(mine, tmp_path):
    for labels in (torch.zeros(8, 1), torch.zeros(8, 2)):
        data = TensorDataset(torch.zeros(8, 2), labels)
        training = st.Training(
            model=lambda: torch.nn.Linear(2, 2), train=data, held_out=data,
            optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
            loss=lambda model, batch: model(batch[0]).sum(),
        )  # fmt: skip
        with pytest.raises(ValueError, match="the accuracy takes outputs"):
            training.make_run(Settings("here:it", batch=4), "a-float32", 1).evaluate(1)


@pytest.mark.parametrize("loss", [lambda model, batch: 3.0, lambda model, batch: model(batch[0]), lambda *_: iter(())])
def test_losses_are_numbers(loss):
    data = TensorDataset(torch.zeros(8, 2), torch.zeros(8))
    training = st.Training(
        model=lambda: torch.nn.Linear(2, 2), train=data, held_out=data, loss=loss,
        optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
    )  # fmt: skip
    with pytest.raises(ValueError, match="must return a tensor of one number|yielded no loss"):
        training.make_run(Settings("here:it", batch=4), "a-float32", 1).train(1, range(4))


def test_samples_are_checked(mine):
    with pytest.raises(ValueError, match=r"samples must lie in 1\.\.160"):
        make_run(replace(settings_of(mine), samples=161), load_design("a-float32"), 1).header()
    with pytest.raises(ValueError, match=r"batch must lie in 1\.\.160"):
        make_run(replace(settings_of(mine), batch=161), load_design("a-float32"), 1)
    with pytest.raises(ValueError, match="length and samples by number"):
        st.Training(model=torch.nn.Identity, train=iter(()), held_out=[1], optimizer=torch.optim.SGD)


# -- commands ----------------------------------------------------------------------------------------------------------


def test_commands_take_a_model(mine, tmp_path):
    assert "accuracy" in call("train", mine, "--design", "c-wang-fp8", "--epochs", 2, "--out", "runs")
    Path("times.csv").write_text("design,iteration,seconds\na-float32,1,0.002\nc-wang-fp8,1,0.001\n")
    call(
        "tta", "--model", mine, "--designs", "a-float32,c-wang-fp8", "--seeds", 1, "--epochs", 2, "--target", 0.3,
        "--timings", "times.csv", "--jobs", 1, "--out", "tta",
    )  # fmt: skip
    results = json.loads(Path("tta/results.json").read_text())
    assert results["inputs"]["network"]["source"] == "mine.py:make"
    record = read_records("tta/records").records[0]
    assert record.design == "a-float32" and record.iterations == 10
    call("estimate", mine, "--design", "c-wang-fp8", "--device", "v100", "--batch", "16,32", "--out", "estimate.json")
    assert "dropout" in Path("estimate.json").read_text()
    assert "Weights" in call("memory", mine, "--design", "a-float32,c-wang-fp8", "--device-memory", "1 MB")


def test_simulated_times_of_a_model(mine):
    pytest.importorskip("scalesim")
    call("tta", "--model", mine, "--designs", "c-wang-fp8", "--seeds", 1, "--epochs", 1, "--target", 0.1, "--simulate")


@pytest.mark.slow
def test_study_takes_a_model(mine, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    Path("times.csv").write_text("design,iteration,seconds\na-float32,1,0.002\nc-wang-fp8,1,0.001\n")
    study = (
        '[study]\nname = "own"\ndesigns = ["a-float32", "c-wang-fp8"]\nseeds = 1\nepochs = 2\ntarget = 0.3\n'
        '[[networks]]\nname = "mine.py:make"\noptions = { width = 8 }\n[timings]\nfile = "times.csv"\n'
    )
    Path("study.toml").write_text(study)
    call("study", "run", "study.toml", "--out", folder, "--jobs", 1)
    rows = (folder / "make/records/c-wang-fp8/seed-1.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["config"]["network"]["options"] == {"width": 8} and len(rows) == 11
    Path("study.toml").write_text(study.replace("mine.py:make", "mine.py:made"))
    with pytest.raises(ValueError, match=r"study.toml, line 8.*has no object 'made'"):
        read_study("study.toml")


# -- the user's own loop -----------------------------------------------------------------------------------------------


def small(design="c-wang-fp8"):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    return st.convert(model, design, known_as={"1": "fc"} if design == "c-wang-fp8" else None, quiet=True)


def recorder(out, model, **options):
    return st.Recorder(out, model, (torch.zeros(8, 4),), seed=1, batch=8, **options)


def test_recorder_writes_what_commands_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for design, best in (("a-float32", 0.9), ("c-wang-fp8", 0.8)):
        with recorder("runs", small(design), facts={"learning_rate": 0.1}) as record:
            for number in range(4):
                record.iteration(torch.tensor(1.0 / (number + 1)), epoch=1)
                record.evaluation(accuracy=best * number / 3, loss_held_out=0.5)
    found = read_records("runs").records
    assert [each.evaluations[-1].value for each in found] == pytest.approx([0.9, 0.8])
    assert found[0].config["learning_rate"] == 0.1 and found[0].config["network"]["class"] == "Sequential"
    Path("times.csv").write_text("design,iteration,seconds\na-float32,1,0.002\nc-wang-fp8,1,0.001\n")
    said = call("tta", "--accuracy", "runs", "--timings", "times.csv", "--target", "0.7", "--out", "tta")
    assert "c-wang-fp8" in said


def test_recorder_goes_on_from_a_checkpoint(tmp_path):
    def train(record, numbers):
        for number in numbers:
            record.iteration(1.0 / number)
            if number % 2 == 0:
                record.evaluation(accuracy=number / 10)

    with recorder(tmp_path / "whole", small()) as record:
        train(record, range(1, 7))
    with pytest.raises(KeyboardInterrupt), recorder(tmp_path / "parts", small()) as record:
        train(record, range(1, 4))
        kept = json.loads(json.dumps(record.state_dict()))
        train(record, range(4, 6))
        raise KeyboardInterrupt
    assert len(record.path.read_text().splitlines()) == 6
    with recorder(tmp_path / "parts", small()) as record:
        record.load_state_dict(kept)
        train(record, range(4, 7))
    assert record.path.read_bytes() == (tmp_path / "whole/c-wang-fp8/seed-1.jsonl").read_bytes()


def test_recorder_refuses_what_would_lose_or_mix_runs(tmp_path):
    with recorder(tmp_path, small()) as record:
        with pytest.raises(ValueError, match="an evaluation belongs to an iteration"):
            record.evaluation(accuracy=1.0)
        record.iteration(0.5)
        with pytest.raises(ValueError, match="must say accuracy"):
            record.evaluation(bleu=1.0)
        with pytest.raises(ValueError, match="before the first iteration"):
            record.iteration(0.5)
            record.load_state_dict(record.state_dict())
        with pytest.raises(ValueError, match="another process"), recorder(tmp_path, small()):
            pass
        record.evaluation(accuracy=1.0)
        for name in ("loss", "iteration", "finished"):
            with pytest.raises(ValueError, match=f"'{name}' means something else"):
                record.evaluation(accuracy=1.0, **{name: 1})
    before = record.path.read_bytes()
    for late in (lambda: record.iteration(0.5), lambda: record.evaluation(accuracy=1.0)):
        with pytest.raises(ValueError, match="within its with statement"):
            late()
    with pytest.raises(ValueError, match="'design' means something else"):
        recorder(tmp_path, small(), facts={"design": "x"})
    with pytest.raises(ValueError, match="facts must be plain data"):
        recorder(tmp_path, small(), facts={"rate": torch.zeros(1)})
    with pytest.raises(ValueError, match="is finished"), recorder(tmp_path, small()):
        pass
    with pytest.raises(ValueError, match="of another run"), recorder(tmp_path, small(), data="other"):
        pass
    assert record.path.read_bytes() == before
    with recorder(tmp_path, small(), data="other", force=True) as record:
        record.iteration(math.nan)
        with pytest.raises(ValueError, match="has diverged"):
            record.iteration(0.5)
    with pytest.raises(ValueError, match="the last iteration has no accuracy"), recorder(tmp_path / "b", small()) as r:
        r.iteration(0.5)
    assert len(r.path.read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="0 iterations of this run"), recorder(tmp_path / "c", small()) as r:
        r.load_state_dict({"iteration": 3, "row": None})


# -- workloads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", ["a-float32", "c-wang-fp8", "i-mxfp8"])
def test_workload_is_that_of_the_same_network_in_softnum_train(design):
    layers = {"fc1": torch.nn.Linear(64, 128), "relu": torch.nn.ReLU(), "fc2": torch.nn.Linear(128, 10)}
    net = torch.nn.Sequential()
    for name, layer in layers.items():
        net.add_module(name, layer)
    st.convert(net, design, quiet=True, elementwise="exact")
    batch = torch.zeros(32, 64), torch.zeros(32, dtype=torch.int64)
    step = Step(net, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    optimizer = st.Optimizer(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4), net)
    ours, theirs = (
        workload_of_step(step, batch, 32, "mlp", {"loss": optimizer}),
        workload("mlp", load_design(design), 32),
    )
    assert ours.gemms == theirs.gemms and ours.parameters == theirs.parameters

    def products(work):
        return [(part.layer, part.stage, part.bytes_read, part.formats) for part in work.operations if part.gemm]

    assert products(ours) == products(theirs)
    found, expected = memory_of(ours).allocated, memory_of(theirs).allocated
    for kind in ("weights", "weight_gradients", "optimiser_state"):
        assert found[kind] == expected[kind]
    assert found["feature_maps"] == pytest.approx(expected["feature_maps"], rel=0.06)
    if design == "a-float32":  # but for the four bytes of a loss
        assert memory_of(ours).peak == memory_of(theirs).peak


def test_workload_of_attention_and_convolutions():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(8)
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            self.embedding = torch.nn.Embedding(5, 8)
            self.last = torch.nn.Linear(8, 5)

        def forward(self, images, words):
            x = torch.relu(self.norm(self.conv(images))).flatten(2).transpose(1, 2)
            x = x + self.embedding(words)[:, None]
            return self.last(self.attention(x, x, x, need_weights=False)[0].mean(1))

    model = st.convert(Net(), "i-mxfp8", quiet=True)
    inputs = torch.zeros(4, 3, 8, 8), torch.zeros(4, dtype=torch.int64)
    work = st.workload(model, *inputs, batch=4, optimizer=torch.optim.Adam(model.parameters()))
    assert [part.gemm.to_table() for part in work.operations if part.gemm] and work.parameters == sum(
        parameter.numel() for parameter in model.parameters()
    )
    rows = st.gemms(model, *inputs)
    total = sum(2 * row["M"] * row["N"] * row["K"] * row.get("count", 1) for row in rows)
    assert sum(part.flops for part in work.operations if part.gemm) == total
    memory = memory_of(work)
    assert memory.allocated["optimiser_state"] >= 8 * work.parameters  # two moments in binary32
    assert {"conv", "norm", "attention", "embedding", "last"} <= set(memory.layers)
    assert memory_of(st.workload(model, *(x[:2] for x in inputs), batch=2)).peak < memory.peak
    assert np.isfinite(memory.timeline).all()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("elementwise", ["torch", "exact"])
def test_workload_of_recurrent_modules(kind, elementwise):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = getattr(torch.nn, kind)(4, 6, num_layers=2, batch_first=True)
            self.head = torch.nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.body(x)[0][:, -1])

    model = st.convert(Net(), "a-float32", quiet=True, elementwise=elementwise)
    x = torch.zeros(5, 7, 4)
    work = st.workload(model, x, batch=5, optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    rows = st.gemms(model, x)
    total = sum(2 * row["M"] * row["N"] * row["K"] * row.get("count", 1) for row in rows)
    assert sum(part.flops for part in work.operations if part.gemm) == total
    assert work.parameters == sum(parameter.numel() for parameter in model.parameters())
    memory = memory_of(work)
    assert memory.allocated["weights"] == memory.allocated["weight_gradients"] == 4 * work.parameters


def test_workload_of_an_optimiser_of_pytorch():
    model = st.convert(torch.nn.Linear(2, 3), "c-wang-fp8", known_as={"": "fc"}, quiet=True)

    def states(optimizer):
        work = st.workload(model, torch.zeros(1, 2), batch=1, optimizer=optimizer)
        assert all(part.flops > 0 for part in work.operations)
        found = [part for part in work.tensors if part.tensor_class == "optimiser_state" and "master" not in part.name]
        return [(part.name, part.format, part.elements) for part in found]

    parameters = list(model.parameters())
    assert states(torch.optim.RMSprop(parameters, momentum=0.5)) == [
        ("weight square_avg", "binary32", 6), ("weight momentum_buffer", "binary32", 6),
        ("bias square_avg", "binary32", 3), ("bias momentum_buffer", "binary32", 3),
    ]  # fmt: skip
    assert states(st.Optimizer(torch.optim.SGD(parameters, lr=0.1, momentum=0.5), model)) == [
        ("weight velocity", "e6m9", 6), ("bias velocity", "e6m9", 3),
    ]  # fmt: skip
    assert states(torch.optim.SGD(parameters, lr=0.1)) == []
    with pytest.raises(ValueError, match="what LBFGS computes"):
        states(torch.optim.LBFGS(parameters))


def test_workload_of_a_model_that_asks_for_numbers():
    class Longest(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.first, self.second = torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

        def forward(self, x):
            x = self.first(self.norm(x))
            return self.second(x[x.sum(1) > x.sum(1).median()])

    torch.manual_seed(0)
    model = st.convert(Longest(), "i-mxfp8", quiet=True)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    x = torch.randn(9, 4)
    rows = st.gemms(model, x)
    assert [(row["layer"], row["M"]) for row in rows if row["pass"] == "forward"] == [("first", 9), ("second", 4)]
    work = st.workload(model, x, batch=9, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    assert len(work.gemms) == len(rows)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
