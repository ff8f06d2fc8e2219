"""Training on a GPU: the bytes of the CPU's records, checkpoints and statistics; and what is asked of the machine."""

import dataclasses

import numpy as np
import pytest

from softnum.kernels import launches
from softnum.train import Numerics, Parameter, Settings, design_names, load_design, profile, run
from softnum.train.datasets import sets as data_module
from softnum.train.datasets.environments import CartPole
from softnum.train.datasets.sets import DataFacts, DataSet
from softnum.train.engine.binary64 import host
from softnum.train.engine.tensor import add, relu, reshape, softmax_cross_entropy
from softnum.train.layers.normalisation import Buffer, batch_norm
from softnum.train.layers.pooling import avg_pool2d, max_pool2d
from softnum.train.runs.loop import Run
from softnum.train.studies.study import Case, run_study
from tests.support.design_texts import TEXTS
from tests.support.train_cases import MIXED

MLP = Settings(network="mlp", network_options={"sizes": (6, 2, 3)}, data="tiny", batch=4, epochs=2)
CONV = Settings(
    network="lenet5", network_options={"sizes": (2, 2, 3, 3), "image": (1, 4, 4), "classes": 3}, data="tiny-images",
    batch=2, epochs=1,
)  # fmt: skip
SPARSE = """
[roles]
default = "e6m9"
weights = { format = "e5m2", sparsity = { pattern = "2:4", decay = 0.01 } }
activations = { format = "e4m3", sparsity = { magnitude = 0.3 } }
weight_gradients = { format = "e6m9", sparsity = { top_k = 0.5, feedback = "e6m9" } }
[units]
forward = { accumulator = "e6m9" }
backward_data = { accumulator = "e6m9" }
backward_weight = { accumulator = "e6m9" }
[loss]
scale = "dynamic"
"""


def samples(name, features, classes=3, train=8, held_out=4, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 17, (train + held_out, features)) / 16.0, np.arange(train + held_out) % classes
    return DataSet(name, x[:train], y[:train], x[train:], y[train:])


@pytest.fixture(autouse=True)
def tiny(device, monkeypatch):
    """Data sets small enough for the simulator."""
    for name, image, train, held_out in (("tiny", (1, 1, 6), 8, 3), ("tiny-images", (1, 4, 4), 4, 2)):
        data = samples(name, int(np.prod(image)), train=train, held_out=held_out)
        monkeypatch.setitem(data_module.DATA_SETS, name, DataFacts(image, 3, lambda _, data=data: data, files=False))


def designed(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return load_design(file)


def both(design, settings, tmp_path, **options):
    """The record of a run on the GPU, which must have the bytes of the CPU's."""
    want = run(design, settings, seed=1, out=tmp_path / "cpu", **options)
    before = launches()
    got = run(design, settings, seed=1, out=tmp_path / "cuda", device="cuda", **options)
    assert launches() > before
    assert got.read_bytes() == want.read_bytes()
    return got


def softnum(*arguments):
    """The command line, in this process."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from softnum.cli import build_app

    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a-float32", "c-wang-fp8", "g-q44-stochastic", "i-mxfp8"])
def test_records_and_statistics_of_a_perceptron(name, tmp_path):
    got = both(load_design(name), dataclasses.replace(MLP, epochs=1), tmp_path, statistics=1)
    statistics = "seed-1.statistics.jsonl"
    assert got.with_name(statistics).read_bytes() == (tmp_path / "cpu" / name / statistics).read_bytes()


def test_records_of_convolutions(tmp_path):
    both(designed(tmp_path, MIXED), dataclasses.replace(CONV, batch=1, samples=1, held_out=1), tmp_path)


@pytest.mark.parametrize("of", ["mixed", "saved"])
def test_blocks_that_meet_single_numbers(of, tmp_path):
    both(designed(tmp_path, TEXTS[of]), dataclasses.replace(MLP, epochs=1, samples=4), tmp_path)


@pytest.mark.parametrize("optimiser", ["lamb", "sgd"])
def test_sparse_roles_limits_and_a_changing_loss_scale(optimiser, tmp_path):
    settings = dataclasses.replace(MLP, optimiser=optimiser, clip_norm=0.25, clip_value=0.2, epochs=1, samples=4)
    both(designed(tmp_path, SPARSE), settings, tmp_path)


@pytest.mark.parametrize(("first", "second"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_run_goes_on_on_another_device(first, second, tmp_path):
    design = load_design("g-q44-stochastic")
    whole = run(design, MLP, seed=1, out=tmp_path / "whole").read_bytes()

    def stop(iteration, *_):
        if iteration == 3:  # in the second epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(design, MLP, seed=1, out=tmp_path, device=first, progress=stop)
    iterations = []
    path = run(
        design, MLP, seed=1, out=tmp_path, device=second, progress=lambda iteration, *_: iterations.append(iteration)
    )  # fmt: skip
    assert iterations == [3, 4] and path.read_bytes() == whole


STATES = """
[roles]
momentum = { format = "mxint8", scale_rule = "rceil" }
second_moment = { format = "mxfp8_e4m3", rounding = "stochastic", stochastic_bits = 8 }
master = "bfloat16"
update.weight = "bfloat16"
update.step = "bfloat16"
compensation = "e8m5"
[units]
update = { accumulator = "e6m9" }
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [STATES, MIXED], ids=["states", "mixed"])
@pytest.mark.parametrize("optimiser", ["adamw", "lion", "muon"])
def test_updates(optimiser, text, tmp_path):
    """States in blocks, compensations, signs and products of an update: what a record and a checkpoint hold of them."""
    found, settings = [], dataclasses.replace(MLP, optimiser=optimiser, network_options={"sizes": (6, 3, 3)})
    if text is MIXED and optimiser != "lion":
        settings = dataclasses.replace(settings, epsilon=0.001)
    for device in ("cpu", "cuda"):
        work = Run(settings, designed(tmp_path, text), 1, device=device)
        rows = [work.train(*iteration) for iteration in work.plan(1)]
        found.append((rows, {key: np.asarray(value).tobytes() for key, value in work.state().items()}))
    assert found[0] == found[1]
    assert not work.numerics.backend.host_copies


@pytest.mark.parametrize("text", [MIXED, '[roles]\ndefault = "binary32"\n'], ids=["mixed", "binary32"])
def test_normalisation_and_pooling(text, tmp_path):
    """What residual networks have besides: gradients, and the running statistics."""
    rng, found = np.random.default_rng(0), []
    image = rng.standard_normal((2, 2, 4, 3))
    for device in ("cpu", "cuda"):
        layer = Numerics(designed(tmp_path, text), ["first", "norm"], seed=3, device=device).layer("norm")
        x = Parameter(layer.round("master", image), layer, "x")
        gain, bias = (Parameter(layer.round("master", np.full(2, value)), layer, "norm") for value in (1.25, 0.5))
        mean, variance = (Buffer(layer.round("statistics", np.full(2, value)), "norm") for value in (0.0, 1.0))
        y = add(relu(batch_norm(x, gain, bias, mean, variance, layer, training=True)), x, layer)
        y = avg_pool2d(max_pool2d(y, layer, window=2, stride=1), layer, window=(3, 2))
        loss = softmax_cross_entropy(reshape(y, (2, 2)), np.array([1, 0]))
        loss.backward(64.0)
        arrays = [x.gradient, gain.gradient, bias.gradient, mean.value, variance.value, y.value]
        found.append((loss.value, [host(part).tobytes() for part in arrays]))
    assert found[0] == found[1]
    assert not layer.numerics.backend.host_copies


def pairs():
    return DataSet(
        "movielens", np.array([[0, 0], [1, 1], [0, 2]]), np.ones(3, int), np.array([[0, 1, 3]]), np.zeros(1, int)
    )


def scenes():
    things = np.array([[[1, 0, 0, 9, 9]], [[0, 2, 2, 8, 8]]])
    x = np.random.default_rng(0).integers(0, 17, (2, 64)) / 16.0
    return DataSet("fashion-scenes", x, things, x, things)


def text():
    words = np.random.default_rng(0).integers(0, 4, (2, 2))
    return DataSet("text", words, words[:, ::-1].copy(), words, words)


OPTIONS = {
    "sizes": (4, 2), "depth": 1, "steps": 2, "words": 4, "norm": "rms", "feedforward": "swiglu", "positions": "rotary",
    "kv_heads": 1, "tied_embeddings": True,
}  # fmt: skip
#: network, and what is special -> its options, its data, the batch
OTHERS = {
    "actor-critic": ({"sizes": (4, 3, 2), "steps": 2}, CartPole, 4),
    "detector": ({"sizes": (1, 1, 1), "image": (1, 8, 8), "classes": 2}, scenes, 2),
    "ncf": ({"sizes": (2, 2, 2), "users": 2, "items": 4}, pairs, 5),
    "transformer-lm": ({"sizes": (2, 2), "depth": 1, "heads": 1, "dropout": 0.25, "steps": 2, "words": 4}, text, 2),
    "transformer-lm with all options": (OPTIONS, text, 2),
    "wgan": ({"sizes": (2, 3), "image": (1, 2, 2), "critic_updates": 1}, lambda: samples("digits", 4, held_out=7), 2),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "network", [pytest.param(x, marks=pytest.mark.slow if x.startswith("transformer-lm") else ()) for x in OTHERS]
)
def test_an_iteration_of_other_networks(network, tmp_path):
    """Embeddings, attention, dropout, and the other losses: what a record and a checkpoint hold of it."""
    options, data, batch = OTHERS[network]
    if data is CartPole:
        pytest.importorskip("gymnasium")
    rows, states = [], []
    for device in ("cpu", "cuda"):
        settings = Settings(
            network=network.split()[0], network_options=options, data=data().name, batch=batch, optimiser="adam",
            epsilon=0.001,
        )  # fmt: skip
        work = Run(settings, designed(tmp_path, MIXED), 1, device=device, data=data())
        rows.append(work.train(*next(iter(work.plan(1)))))
        states.append({key: np.asarray(value).tobytes() for key, value in work.state().items()})
    assert np.isfinite(list(rows[0].values())).all() and rows[0] == rows[1] and states[0] == states[1]
    assert not work.numerics.backend.host_copies


@pytest.mark.parametrize("name", ["c-wang-fp8", "h-posit8", "i-mxfp8"])
def test_nothing_is_copied_to_be_computed(name):
    work = Run(MLP, load_design(name), 1, device="cuda")
    work.train(*next(iter(work.plan(1))))
    assert not work.numerics.backend.host_copies


NVFP4 = """
[roles]
default = "binary32"
input = { format = "nvfp4" }
weights = { format = "nvfp4" }
activations = { format = "nvfp4" }
errors = { format = "nvfp4", rounding = "stochastic", stochastic_bits = 8 }
[units]
forward = { accumulator = "binary32" }
backward_data = { accumulator = "binary32" }
backward_weight = { accumulator = "binary32" }
"""


@pytest.mark.parametrize("settings", [MLP, CONV], ids=["perceptron", "convolutions"])
def test_blocks_with_a_scale_of_the_array(settings, tmp_path):
    both(designed(tmp_path, NVFP4), dataclasses.replace(settings, batch=2, epochs=1, samples=2, held_out=1), tmp_path)


DEEP = dataclasses.replace(MLP, network_options={"sizes": (6, 3, 2, 3)})
TILES = """
[roles]
input = { format = "e4m3fn", scale = { per = [1, 4] } }
weights = { format = "e4m3fn", scale = { per = [4, 4] } }
activations = { format = "e4m3fn", scale = { per = [1, 4] } }
errors = { format = "e5m2", scale = { per = "row" } }
[units]
"""
TILES += "\n".join(
    f'{key} = {{ accumulator = "e6m9", rounding = "stochastic", stochastic_bits = 8 }}'
    for key in ("forward", "backward_data", "backward_weight")
)
#: shipped designs whose roles have scales
SCALED = (
    "deepseek-v3", "quartet-mxfp4", "te-delayed-scaling", "te-float8-block-scaling", "te-float8-current-scaling",
    "te-mxfp8-block-scaling", "te-nvfp4-block-scaling", "torchao-rowwise", "torchao-rowwise-with-gw-hp",
    "torchao-tensorwise",
)  # fmt: skip


def test_all_shipped_designs_with_scales_are_tried():
    shipped = [load_design(name) for name in design_names()]
    roles = {design.name: design.layer("fc1").roles.values() for design in shipped if design.engine == "exact"}
    assert {name for name, found in roles.items() if any(role.scale for role in found)} == set(SCALED)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALED)
def test_iterations_of_shipped_designs_with_scales(name):
    """Losses, parameters and states after two."""
    found = []
    for device in ("cpu", "cuda"):
        work = Run(DEEP, load_design(name), 1, device=device)
        rows = [work.train(*iteration) for iteration in list(work.plan(1))[:2]]
        found.append((rows, {key: np.asarray(value).tobytes() for key, value in work.state().items()}))
    assert found[0] == found[1]
    assert not work.numerics.backend.host_copies


@pytest.mark.parametrize("name", ["te-delayed-scaling", "te-nvfp4-block-scaling"])
def test_statistics_of_scales(name, tmp_path):
    got = both(load_design(name), dataclasses.replace(DEEP, epochs=1, samples=4, held_out=1), tmp_path, statistics=1)
    statistics = "seed-1.statistics.jsonl"
    assert got.with_name(statistics).read_bytes() == (tmp_path / "cpu" / name / statistics).read_bytes()


def test_convolutions_with_scales(tmp_path):
    """Matrices of groups, biases, and products whose sums are rounded stochastically."""
    both(designed(tmp_path, TILES), dataclasses.replace(CONV, batch=1, samples=1, held_out=1), tmp_path)


def test_studies_take_a_device(tmp_path):
    pytest.importorskip("joblib")
    options = {"seeds": [1], "jobs": None}
    settings = dataclasses.replace(MLP, epochs=1)
    (want,) = run_study([Case("a-float32", 4)], settings, out=tmp_path / "cpu", **options | {"jobs": 1})
    before = launches()
    (got,) = run_study([Case("a-float32", 4)], settings, out=tmp_path / "cuda", device="cuda", **options)
    assert launches() > before  # in this process: a GPU is not for one process a core
    assert got.read_bytes() == want.read_bytes()


def test_a_profile_says_its_device():
    found = profile(MLP, load_design("a-float32"), iterations=1, device="cuda")
    assert found.title.endswith("device: cuda") and found.by_scope[0].parameters == 14


def test_the_command_line_takes_a_device(tmp_path):
    args = ["train", "mlp", "--design", "a-float32", "--data", "tiny", "--sizes", "6,2,3", "--batch", "4"]
    args += ["--epochs", "1"]
    for device in ("cpu", "cuda"):
        done = softnum(*args, "--device", device, "--out", tmp_path / device)
        assert done.exit_code == 0, done.output
    records = [tmp_path / device / "a-float32" / "seed-1.jsonl" for device in ("cpu", "cuda")]
    assert records[0].read_bytes() == records[1].read_bytes()


def test_a_machine_without_a_gpu_says_so_before_anything_is_read(device, monkeypatch, tmp_path):
    def fail(*_):
        raise AssertionError("read the data")

    monkeypatch.setattr(data_module, "load_data", fail)
    monkeypatch.setattr("softnum.train.runs.loop.load_data", fail)
    monkeypatch.setattr(device, "is_available", lambda: False)
    with pytest.raises(ValueError, match="Numba finds a GPU, but not CUDA's compiler NVVM; pip install"):
        run(load_design("a-float32"), MLP, seed=1, out=tmp_path, device="cuda")
    monkeypatch.setattr(device, "cuda_error", lambda: "\nNo driver.\nInstall one.\n")
    with pytest.raises(ValueError, match=r"finds no GPU here \(No driver. Install one\);.*NUMBA_ENABLE_CUDASIM=1"):
        run(load_design("a-float32"), MLP, seed=1, out=tmp_path, device="cuda")
    with pytest.raises(ValueError, match="device must be one of cpu, cuda, got 'tpu'"):
        run(load_design("a-float32"), MLP, seed=1, out=tmp_path, device="tpu")
    for verb in (["train", "mlp", "--design", "a-float32"], ["tta", "--designs", "a-float32"]):
        done = softnum(*verb, "--device", "cuda", "--out", tmp_path / "out")
        assert done.exit_code == 2 and "finds no GPU" in done.output


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["gpu"], indirect=True)
@pytest.mark.parametrize("name", ["a-float32", "c-wang-fp8", "g-q44-stochastic", "i-mxfp8"])
@pytest.mark.parametrize(
    ("network", "options", "batch", "steps"),
    [
        ("mlp", {"sizes": (784, 128, 10)}, 32, 3),
        ("lenet5", {"image": (1, 28, 28)}, 32, 3),
        ("resnet", {"depth": 20, "image": (3, 32, 32)}, 16, 1),
    ],
    ids=["mlp", "lenet5", "resnet20"],
)
def test_iterations_at_real_sizes(network, options, batch, steps, name):
    """Losses, parameters and states after some iterations, from kernels alone; or the error that ends them, as that of
    fixed point, which has no code for what ResNet-20's batch normalisation divides by zero."""
    image = options.get("image", (1, 28, 28))
    data = samples("images", int(np.prod(image)), classes=10, train=batch * steps, held_out=10, seed=2)
    settings = Settings(network=network, network_options=options, data="mnist", batch=batch, epochs=1)
    found = []
    for device in ("cpu", "cuda"):
        work = Run(settings, load_design(name), 1, 8, device, data=data)
        try:
            rows = [work.train(*iteration) for iteration in work.plan(1)]
        except ValueError as error:
            assert (network, name) == ("resnet", "g-q44-stochastic")
            rows = str(error)
        found.append((rows, {key: np.asarray(value).tobytes() for key, value in work.state().items()}))
    assert found[0] == found[1]
    assert not work.numerics.backend.host_copies
