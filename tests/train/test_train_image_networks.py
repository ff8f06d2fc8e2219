"""Networks of images: their products, their gradients, PyTorch's losses, resumption, and what they refuse."""

import numpy as np
import pytest

from benchmarks import twins
from softnum.train import Numerics, Settings, Tensor, design_gemms, load_design, make_network, run
from softnum.train.datasets.sets import batches, load_data
from softnum.train.designs import PASSES
from softnum.train.engine import tensor as engine
from softnum.train.engine.numerics import LayerNumerics
from softnum.train.nets import NETWORKS, default_data
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import read_rows
from tests.support.cases import cases
from tests.support.train_cases import BINARY64, MIXED, judge_along_directions, loss_of, moved, needs_torch, numerics_of

#: small, and of every kind
CASES = {
    "lenet5": {"sizes": (2, 3, 4, 5), "image": (1, 8, 8), "classes": 3},
    "cifar10-cnn": {"sizes": (2, 2, 3), "image": (3, 6, 6), "classes": 3},
    "detector": {"sizes": (2, 3, 2, 2), "image": (2, 8, 8), "classes": 3},  # one cell
    "vgg-small": {"sizes": (2, 3, 4), "image": (2, 4, 4), "classes": 3},
    "resnet": {"sizes": (2, 3, 2), "image": (1, 5, 4), "classes": 3},
    "resnet-bottleneck": {"depth": 11, "block": "bottleneck", "sizes": (2, 2, 2), "image": (2, 4, 4), "classes": 3},
    "resnet-groups": {"sizes": (2, 4, 2), "image": (1, 5, 4), "classes": 3, "norm": "group", "group_size": 2},
}


def name_of(case):
    return "resnet" if case.startswith("resnet") else case


def network(case, tmp_path, text=BINARY64, batch=4):
    """A network, its numerics, samples and labels."""
    net = make_network(name_of(case), **CASES[case])
    numerics, rng = moved(net, tmp_path, text)
    return net, numerics, rng.standard_normal((batch, net.inputs)), rng.integers(0, 3, batch)


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_finite_differences(case, tmp_path):
    judge_along_directions(network(case, tmp_path))


@pytest.mark.parametrize("case", CASES)
def test_the_listed_products_are_those_computed(case, tmp_path, monkeypatch):
    """In their order, with their sizes: what the simulator is told, and what a step computes."""
    seen, matmul, convolve = [], LayerNumerics.matmul, LayerNumerics.convolve

    def watched_matmul(self, key, a, b, c=None):
        if len(a) > 1:  # not the ones of a bias's gradient
            seen.append((self.name, key, len(a), b.shape[1], len(b)))
        return matmul(self, key, a, b, c)

    def watched_convolve(self, key, a, b, c=None, **geometry):
        y = convolve(self, key, a, b, c, **geometry)
        if key == "backward_weight":
            sizes = (np.prod(y.shape[1:]), len(y), b.size // b.shape[1])
        else:
            k = b.shape[0] if key == "backward_data" else b.shape[1]
            sizes = (y.size // y.shape[1], y.shape[1], k * np.prod(b.shape[2:]))
        seen.append((self.name, key, *map(int, sizes)))
        return y

    monkeypatch.setattr(LayerNumerics, "matmul", watched_matmul)
    monkeypatch.setattr(LayerNumerics, "convolve", watched_convolve)
    parts = network(case, tmp_path)
    loss_of(*parts).backward()
    assert product_rows(seen) == parts[0].gemms(4)


def test_a_convolution_of_groups_is_a_product_for_each():
    from softnum.train.layers.feedforward import Convolution

    conv = Convolution("c", (4, 6, 6), 8, 3, groups=2, padding=1)
    assert conv.products("forward", 2) == [("c", "forward", 72, 4, 18)] * 2
    assert conv.products("backward_data", 2) == [("c", "backward_data", 72, 2, 36)] * 2
    assert conv.products("backward_weight", 2) == [("c", "backward_weight", 18, 4, 72)] * 2


def test_a_resnets_depth_follows_its_blocks():
    """One block a stage, and the record says the number."""
    for options, depth in (({}, 8), ({"block": "basic"}, 8), ({"block": "bottleneck"}, 11)):
        net = make_network("resnet", **options)
        assert net.describe()["depth"] == depth and len(net.blocks) == 3
        assert net.layer_names == make_network("resnet", depth=depth, **options).layer_names


def test_products_under_a_design():
    rows = design_gemms(load_design("c-wang-fp8"), make_network("resnet"), 4)
    formats = {(row["layer"], row["pass"]): row["formats"] for row in rows}
    assert formats["conv1", "forward"] == ["e6m9", "e5m2"]
    assert formats["stage1.1.conv1", "backward_weight"] == ["e5m2", "e5m2"]
    assert formats["fc", "forward"] == ["e6m9", "e6m9"]  # the last layer
    assert ("conv1", "backward_data") not in formats


# -- against PyTorch ---------------------------------------------------------------------------------------------------
def torch_model(net):
    """The same network of PyTorch's modules, with net's parameters, in their order."""
    import torch
    from torch import nn

    def conv(layer):
        shape = layer.image[0], layer.result[0], layer.kernel
        return nn.Conv2d(*shape, layer.geometry["stride"], layer.geometry["padding"], bias=layer.bias)

    def pair(of):
        groups, channels = getattr(of[1], "groups", None), of[0].result[0]
        norm = nn.BatchNorm2d(channels) if groups is None else nn.GroupNorm(groups, channels)
        return nn.Sequential(conv(of[0]), norm)

    class Block(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.steps = nn.ModuleList(pair(step) for step in block.convolutions)
            self.shortcut = pair(block.shortcut) if block.shortcut else nn.Identity()

        def forward(self, x):
            y = x
            for step in self.steps[:-1]:
                y = step(y).relu()
            return (self.steps[-1](y) + self.shortcut(x)).relu()

    linear = [nn.Linear(layer.inputs, layer.outputs) for layer in net.layers if hasattr(layer, "outputs")]
    if net.name == "lenet5":
        c1, c2, c3 = map(conv, net.layers[:3])
        features = [c1, nn.ReLU(), nn.MaxPool2d(2), c2, nn.ReLU(), nn.MaxPool2d(2), c3, nn.ReLU(), nn.Flatten()]
    elif net.name == "cifar10-cnn":
        c1, c2, c3 = map(conv, net.layers[:3])
        w1, w2, w3 = net.windows
        features = [c1, nn.MaxPool2d(w1, 2), nn.ReLU(), c2, nn.ReLU(), nn.AvgPool2d(w2, 2)]
        features += [c3, nn.ReLU(), nn.AvgPool2d(w3, 2), nn.Flatten()]
    elif net.name == "vgg-small":
        stages = [[pair(stage[0]), nn.ReLU(), pair(stage[1]), nn.ReLU(), nn.MaxPool2d(2)] for stage in net.stages]
        features = [part for stage in stages for part in stage] + [nn.Flatten()]
    else:
        features = [pair(net.first), nn.ReLU(), *map(Block, net.blocks), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    hidden = [part for layer in linear[:-1] for part in (layer, nn.ReLU())]
    model = nn.Sequential(nn.Unflatten(1, net.image), *features, *hidden, linear[-1]).double()
    with torch.no_grad():
        for ours, theirs in zip(net.parameters, model.parameters(), strict=True):
            value = torch.tensor(np.float64(ours.value))
            theirs.copy_(value.T if value.ndim == 2 else value)
    return model


def torch_losses(net, data, rows, dtype, rate):
    import torch

    model = torch_model(net).to(dtype)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=float(np.float32(1e-4)))
    for group in optimiser.param_groups:
        group["momentum"] = float(np.float32(0.9))
    losses = []
    for batch in rows:
        optimiser.zero_grad()
        x = torch.tensor(data.train_x[batch], dtype=dtype)
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor(data.train_y[batch]))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def our_losses(net, numerics, data, rows, rate):
    from softnum.train import SGD

    optimiser = SGD(net.parameters, learning_rate=rate, momentum=0.9, weight_decay=1e-4)
    losses = []
    for iteration, batch in enumerate(rows, start=1):
        numerics.begin(iteration)
        x = Tensor(data.train_x[batch], numerics.backend)
        loss = engine.softmax_cross_entropy(net.forward(x, training=True), data.train_y[batch])
        loss.backward()
        optimiser.step()
        losses.append(loss.value)
    return losses


OPTIONS = {
    "lenet5": {},
    "cifar10-cnn": {"sizes": (8, 8, 16)},
    "vgg-small": {"sizes": (8, 16, 32)},
    "resnet": {"sizes": (4, 8, 16)},
    "resnet-bottleneck": {"depth": 11, "block": "bottleneck", "sizes": (4, 4, 4)},
    "resnet-groups": {"sizes": (4, 8, 16), "norm": "group", "group_size": 2},
}


@needs_torch
@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("design", ["float64", "float32"])
def test_losses_are_pytorchs(case, design, tmp_path):
    """The same weights and batches give the same first twenty losses; running statistics and all."""
    import torch

    torch.set_num_threads(1)
    data, rate = load_data("digits"), 2.0**-8
    rows = np.arange(20 * 16).reshape(20, 16)
    net = make_network(name_of(case), data="digits", **OPTIONS[case])
    wide = design == "float64"
    if wide:
        numerics = numerics_of(tmp_path, BINARY64, net.layer_names)
    else:
        numerics = Numerics(load_design("a-float32"), net.layer_names, seed=3)
    net.initialise(numerics)
    want = torch_losses(net, data, rows, torch.float64 if wide else torch.float32, rate)
    got = our_losses(net, numerics, data, rows, rate)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 if wide else 1e-4)
    assert got[-1] < got[0]


@needs_torch
def test_the_twin_that_speed_is_compared_with_has_these_losses():
    import torch

    net = make_network("resnet", sizes=(4, 8, 16), image=(1, 8, 8))
    net.initialise(Numerics(load_design("a-float32"), net.layer_names, seed=3))
    data, rows = load_data("digits"), batches(1352, 16, 3, 1)[:5]
    want = torch_losses(net, data, rows, torch.float32, 0.05)
    np.testing.assert_allclose(twins.losses(net, data, rows, dtype=torch.float32, rate=0.05), want, rtol=0, atol=1e-5)


# -- runs --------------------------------------------------------------------------------------------------------------
def test_a_resumed_run_has_its_running_statistics(tmp_path):
    """Interrupted after an epoch, a record ends with the bytes of an unbroken one."""
    options = {"sizes": (2, 2, 2)}
    settings = Settings(network="resnet", network_options=options, batch=338, epochs=2, learning_rate=0.05)
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    whole = run(load_design(file), settings, seed=1, out=tmp_path / "whole")

    class Stop(Exception):
        pass

    def stop(iteration, *_):
        if iteration == 6:
            raise Stop

    with pytest.raises(Stop):
        run(load_design(file), settings, seed=1, out=tmp_path / "broken", progress=stop)
    done = []
    broken = run(load_design(file), settings, seed=1, out=tmp_path / "broken", progress=lambda i, *_: done.append(i))
    assert done[0] == 5  # the second epoch
    assert broken.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("name", ["resnet", "lenet5"])
def test_threads_do_not_change_a_bit(name, tmp_path):
    settings = Settings(network=name, batch=338, epochs=1, evaluate_every=4, learning_rate=0.05)
    if name == "resnet":
        settings = Settings(network=name, network_options={"sizes": (4, 4, 4)}, batch=338, epochs=1, evaluate_every=4)
    records = [
        run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path / str(n), threads=n).read_bytes() for n in (1, 3)
    ]
    assert records[0] == records[1]


def test_evaluation_uses_the_running_statistics_and_does_not_depend_on_the_batch(tmp_path):
    net, numerics, x, labels = network("resnet", tmp_path)
    before = [buffer.value.copy() for buffer in net.buffers]
    whole = net.forward(Tensor(x, numerics.backend)).value
    one = net.forward(Tensor(x[1:2], numerics.backend)).value
    assert np.array_equal(whole[1:2], one)
    assert all(np.array_equal(a, b.value) for a, b in zip(before, net.buffers, strict=True))
    loss_of(net, numerics, x, labels)
    assert not any(np.array_equal(a, b.value) for a, b in zip(before, net.buffers, strict=True))


def test_groups_are_described_and_the_batch_is_not(tmp_path):
    described = make_network("resnet", norm="group").describe()
    assert (described["norm"], described["group_size"]) == ("group", 8)
    assert make_network(described.pop("name"), **described).describe() == {"name": "resnet", **described}
    assert list(make_network("resnet").describe()) == ["name", "depth", "block", "sizes", "image", "classes"]


def test_what_groups_make_of_a_sample_does_not_depend_on_the_batch(tmp_path):
    net, numerics, x, _ = network("resnet-groups", tmp_path)
    whole = net.forward(Tensor(x, numerics.backend), training=True).value
    assert np.array_equal(whole[1:2], net.forward(Tensor(x[1:2], numerics.backend)).value) and not net.buffers


def test_an_operator_takes_the_place_of_relu(tmp_path):
    (tmp_path / "relu.tile").write_text("function (X) -> (Y) { Y = X > 0 ? X : 0; }")
    text = '[roles]\ndefault = "e6m9"\n[units]\n'  # units too: what an operator rounds as it enters is rounded then
    text += "".join(f'{key} = {{ accumulator = "e6m9" }}\n' for key in PASSES)
    (tmp_path / "own.toml").write_text('operators = { relu = "relu.tile" }\n' + text)
    (tmp_path / "plain.toml").write_text(text)
    losses = []
    for name in ("own", "plain"):
        settings = Settings(network="lenet5", batch=338, epochs=1, evaluate_every=4, learning_rate=0.05)
        record = run(load_design(tmp_path / f"{name}.toml"), settings, seed=1, out=tmp_path)
        losses.append([row["loss"] for row in read_rows(record)[1:]])
    assert losses[0] == losses[1]


# -- what they say of themselves, and what they refuse -----------------------------------------------------------------
@cases("name", NETWORKS)
def test_a_network_is_rebuilt_from_its_description(name):
    described = make_network(name, data=default_data(name)).describe()
    again = make_network(described.pop("name"), **described)
    assert again.describe() == {"name": name, **described}
    assert len(set(again.layer_names)) == len(again.layer_names)


@cases("name", ["lenet5", "cifar10-cnn", "vgg-small", "resnet"])
@cases("data", ["digits", "fashion-mnist", "cifar10"])
def test_every_set_of_images_fits(name, data):
    net = make_network(name, data=data)
    image = {"digits": (1, 8, 8), "fashion-mnist": (1, 28, 28), "cifar10": (3, 32, 32)}[data]
    assert net.describe()["image"] == list(image)
    net.check(np.prod(image), 10)
    with pytest.raises(ValueError, match="the data have 7 features a sample"):
        net.check(7, 10)


@cases(
    ("name", "options", "message"),
    [
        ("lenet5", {"sizes": (6, 16, 120)}, r"sizes must be four positive integers, got \(6, 16, 120\)"),
        ("lenet5", {"image": (1, 3, 9)}, "image must have at least 4 x 4 pixels, got 3 x 9"),
        ("lenet5", {"image": (8, 8)}, r"image must be three positive integers, got \(8, 8\)"),
        ("lenet5", {"classes": 0}, "classes must be a positive integer, got 0"),
        ("lenet5", {"steps": 4}, r"lenet5 has no parameter 'steps' \(it has sizes, image, classes\)"),
        ("cifar10-cnn", {"sizes": (1, 2)}, "sizes must be three positive integers"),
        ("vgg-small", {"sizes": (1, 2, 3, 4, 5), "image": (1, 8, 8)}, "image must have at least 16 x 16 pixels, got 8"),
        ("resnet", {"depth": 9}, r"depth of basic blocks is 6 n \+ 2 \(8, 14, 20, \.\.\.\), got 9"),
        ("resnet", {"depth": 2}, r"depth of basic blocks is 6 n \+ 2"),
        (
            "resnet",
            {"block": "bottleneck", "depth": 8},
            r"depth of bottleneck blocks is 9 n \+ 2 \(11, 20, 29, \.\.\.\), got 8",
        ),
        ("resnet", {"block": "wide"}, "block must be basic or bottleneck, got 'wide'"),
        ("resnet", {"norm": "layer"}, "norm must be batch or group, got 'layer'"),
        ("resnet", {"group_size": 4}, "group_size is for norm='group', got 4 with norm='batch'; leave it out"),
        ("resnet", {"norm": "group", "group_size": 0}, "group_size must be a positive integer, got 0"),
        ("resnet", {"norm": "group", "group_size": 32}, "gn1: groups of 32 channels do not divide its 16 channels"),
        ("resnet", {"depth": "20"}, "depth must be a positive integer, got '20'"),
    ],
)
def test_unusable_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_network(name, **options)


def test_a_kernel_must_fit():
    from softnum.train.layers.feedforward import Convolution

    with pytest.raises(ValueError, match=r"c: a kernel of 5 x 5 does not fit an image of 3 x 9 with padding 0"):
        Convolution("c", (1, 3, 9), 2, 5)
