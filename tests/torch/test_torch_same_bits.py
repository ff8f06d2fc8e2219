"""The same network in softnum.torch and in softnum.train: the same losses and parameters, bit for bit."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.train import design_gemms, load_design  # noqa: E402
from softnum.train.runs.loop import Run  # noqa: E402
from softnum.train.runs.settings import Settings  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.design_texts import TEXTS  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

DESIGNS = ("a-float32", "c-wang-fp8", "i-mxfp8", "quartet-mxfp4", *TEXTS)
NETWORKS = ("lenet5", "lstm", "resnet", "transformer")
CASES = [(network, design) for network in NETWORKS for design in DESIGNS]


def convolution(layer):
    stride, padding = layer.geometry["stride"], layer.geometry["padding"]
    return nn.Conv2d(layer.image[0], layer.result[0], layer.kernel, stride, padding, bias=layer.bias)


class Attention(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.heads = layer.heads

    def forward(self, *parts):
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in parts)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


MAKE = {
    "Convolution": convolution,
    "BatchNorm": lambda layer: nn.BatchNorm2d(layer.channels),
    "Linear": lambda layer: nn.Linear(layer.inputs, layer.outputs),
    "LayerNorm": lambda layer: nn.LayerNorm(layer.features),
    "Embedding": lambda layer: nn.Embedding(layer.words, layer.features),
    "Attention": Attention,
}


class Twin(nn.Module):
    """The modules of a network's layers, by the layers' names with _ for the points."""

    def __init__(self, network):
        super().__init__()
        self.image, self.names = network.image, {}
        for layer in network.layers:
            module = MAKE[type(layer).__name__](layer)
            self.names[layer.name.replace(".", "_")] = layer.name
            self.add_module(layer.name.replace(".", "_"), module)

    def of(self, layer):
        return self.get_submodule(layer.name.replace(".", "_"))


class LeNet5(Twin):
    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x.reshape(-1, *self.image))), 2)
        x = F.relu(self.conv3(F.max_pool2d(F.relu(self.conv2(x)), 2))).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


class ResNet(Twin):
    def __init__(self, network):
        super().__init__(network)
        self.blocks, self.head = list(network.blocks), network.last

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x.reshape(-1, *self.image))))
        for block in self.blocks:
            y = x
            for conv, norm in block.convolutions:
                y = self.of(norm)(self.of(conv)(y))
                y = y if norm is block.convolutions[-1][1] else F.relu(y)
            if block.shortcut is not None:
                x = self.of(block.shortcut[1])(self.of(block.shortcut[0])(x))
            x = F.relu(y + x)
        return self.of(self.head)(x.mean((2, 3)))


class Transformer(Twin):
    def __init__(self, network):
        super().__init__(network)
        self.blocks, self.steps = list(network.blocks), network.steps

    def forward(self, x):
        rows = x.reshape(-1, *self.image).transpose(1, 2).reshape(len(x), self.steps, -1)
        positions = torch.arange(self.steps).expand(len(x), -1)
        x = self.embed(rows) + self.position(positions)
        for block in self.blocks:
            parts = self.of(block.qkv)(self.of(block.norm1)(x)).chunk(3, -1)
            x = x + self.of(block.project)(self.of(block.attention)(*parts))
            last, first = (self.of(layer) for layer in (block.feedforward.ff2, block.feedforward.ff1))
            x = x + last(F.relu(first(self.of(block.norm2)(x))))
        return self.fc(self.norm(x).mean(1))


class LSTM(nn.Module):
    """nn.LSTM has two biases of its gates; the network has one, so the second stays 0."""

    def __init__(self, network):
        super().__init__()
        inputs, hidden, outputs = network.options["sizes"]
        self.steps, self.lstm, self.fc = network.steps, nn.LSTM(inputs, hidden), nn.Linear(hidden, outputs)
        self.lstm.bias_hh_l0.requires_grad_(False).zero_()
        self.names = {"lstm.ih_l0": "lstm.input", "lstm.hh_l0": "lstm.hidden", "fc": "fc"}

    def forward(self, x):
        rows = x.unflatten(1, (self.steps, -1)).transpose(0, 1)
        return self.fc(self.lstm(rows)[0][-1])


TWINS = {"lenet5": LeNet5, "lstm": LSTM, "resnet": ResNet, "transformer": Transformer}
#: what parameters of recurrent layers are called here
RECURRENT = {
    "lstm.input.weight": "weight_ih_l0", "lstm.input.bias": "bias_ih_l0", "lstm.hidden.weight": "weight_hh_l0",
}  # fmt: skip


def twin_of(model, name):
    """The parameter of a network's name, and whether it is laid out as a transpose."""
    if name in RECURRENT:
        return getattr(model.lstm, RECURRENT[name]), True
    layer, kind = name.rpartition(".")[::2]
    module = model.get_submodule(layer.replace(".", "_"))
    return getattr(module, kind), isinstance(module, nn.Linear)


@cases(("network", "design"), CASES)
def test_losses_and_parameters(network, design, tmp_path):
    if design in TEXTS:
        (tmp_path / "own.toml").write_text(TEXTS[design])
        design = tmp_path / "own.toml"
    settings = Settings(network=network, epochs=1, batch=16, samples=48, held_out=16)
    run = Run(settings, load_design(design), seed=5)
    torch.manual_seed(0)
    model = TWINS[network](run.network)
    known = {path: name for path, name in model.names.items() if path != name}
    st.convert(model, design, seed=5, elementwise="exact", program_order=True, known_as=known, quiet=True)
    twins = []
    for parameter in run.network.parameters:
        twins.append(twin_of(model, parameter.name))
        with torch.no_grad():
            twins[-1][0].copy_(torch.from_numpy(laid_out(parameter.value, twins[-1][1])))
    constants = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
    optimizer, scaler = (
        st.Optimizer(torch.optim.SGD([twin for twin, _ in twins], **constants), model),
        st.GradScaler(model),
    )
    for iteration, rows in run.plan(1):
        loss = run.train(iteration, rows)["loss"]
        optimizer.zero_grad()
        output = model(torch.from_numpy(run.data.train_x[rows].astype(np.float32)))
        with model.softnum_mode:
            found = F.cross_entropy(output, torch.from_numpy(run.data.train_y[rows]))
        scaler.scale(found).backward()
        scaler.step(optimizer)
        scaler.update()
        assert found.item() == np.float32(loss)
        for parameter, (twin, turned) in zip(run.network.parameters, twins, strict=True):
            np.testing.assert_array_equal(twin.detach().numpy(), laid_out(parameter.value, turned), parameter.name)
    assert iteration == 3


@cases("network", NETWORKS)
def test_products(network):
    """`gemms` of the twins are those of the networks; counted in whatever order, for branches may come in another."""
    settings = Settings(network=network, epochs=1, batch=16, samples=48, held_out=16)
    run = Run(settings, load_design("c-wang-fp8"), seed=5)
    model = TWINS[network](run.network)
    known = {path: name for path, name in model.names.items() if path != name}
    exact = {"elementwise": "exact"} if network == "lstm" else {}  # where a state of 0 enters no product
    st.convert(model, "c-wang-fp8", known_as=known, quiet=True, **exact)
    state = model.softnum_state.clone()
    found = st.gemms(model, torch.from_numpy(run.data.train_x[:16].astype(np.float32)))
    expected = design_gemms(run.design, run.network, 16)

    def counted(rows, names):
        facts = ((names.get(row["layer"], row["layer"]), *(str(row[key]) for key in KEYS)) for row in rows)
        return sorted((*row, each.get("count", 1)) for row, each in zip(facts, rows, strict=True))

    assert counted(found, known) == counted(expected, {})
    assert torch.equal(model.softnum_state, state) and not model.softnum_mode.path
    assert all(parameter.grad is None for parameter in model.parameters())


KEYS = ("pass", "M", "N", "K", "bits", "formats")


def laid_out(values, turned):
    """A parameter's numbers as PyTorch lays them out: weights of linear layers are transposes."""
    return np.ascontiguousarray(values.T if turned else values)
