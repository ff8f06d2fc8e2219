"""The same network in softnum.torch and in softnum.train: the same losses and parameters, bit for bit."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.train import load_design  # noqa: E402
from softnum.train.runs.loop import Run, Settings  # noqa: E402
from tests.support.cases import cases  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

HOPPER = """
name = "hopper"
[roles]
input = { format = "e4m3fn", overflow = "saturate" }
weights = { format = "e4m3fn", overflow = "saturate" }
activations = { format = "e4m3fn", overflow = "saturate" }
errors = { format = "e5m2", overflow = "saturate" }
[units]
forward = { preset = "nvidia_h100_e4m3" }
backward_data = { preset = "nvidia_h100_e4m3" }
backward_weight = { preset = "nvidia_h100_e4m3" }
"""
#: statistics and gradients that meet are added by PyTorch, in binary32: of designs with other sums there, LeNet-5 alone
CASES = [("lenet5", name) for name in ("a-float32", "c-wang-fp8", "i-mxfp8", "hopper")]
CASES += [("resnet", name) for name in ("a-float32", "i-mxfp8", "hopper")]


def convolution(layer):
    stride, padding = layer.geometry["stride"], layer.geometry["padding"]
    return nn.Conv2d(layer.image[0], layer.result[0], layer.kernel, stride, padding, bias=layer.bias)


class Twin(nn.Module):
    """The modules of a network's layers, by the layers' names with _ for the points."""

    def __init__(self, network):
        super().__init__()
        self.image, self.names = network.image, {}
        for layer in network.layers:
            kind = type(layer).__name__
            module = (
                convolution(layer) if kind == "Convolution"
                else nn.BatchNorm2d(layer.channels) if kind == "BatchNorm"
                else nn.Linear(layer.inputs, layer.outputs)
            )  # fmt: skip
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


@cases(("network", "design"), CASES)
def test_losses_and_parameters(network, design, tmp_path):
    if design == "hopper":
        design = tmp_path / "hopper.toml"
        design.write_text(HOPPER)
    settings = Settings(network=network, epochs=1, batch=16, samples=48, held_out=16)
    run = Run(settings, load_design(design), seed=5)
    torch.manual_seed(0)
    model = {"lenet5": LeNet5, "resnet": ResNet}[network](run.network)
    known = {path: name for path, name in model.names.items() if path != name}
    st.convert(model, design, seed=5, elementwise="exact", program_order=True, known_as=known, quiet=True)
    twins = []
    for parameter in run.network.parameters:
        layer, kind = parameter.name.rpartition(".")[::2]
        twins.append(getattr(model.get_submodule(layer.replace(".", "_")), kind))
        with torch.no_grad():
            twins[-1].copy_(torch.from_numpy(laid_out(parameter.value, twins[-1])))
    constants = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
    optimizer, scaler = st.Optimizer(torch.optim.SGD(twins, **constants), model), st.GradScaler(model)
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
        for parameter, twin in zip(run.network.parameters, twins, strict=True):
            np.testing.assert_array_equal(twin.detach().numpy(), laid_out(parameter.value, twin), parameter.name)
    assert iteration == 3


def laid_out(values, parameter):
    """A parameter's numbers as PyTorch lays them out."""
    return np.ascontiguousarray(values.T if values.ndim == 2 else values).reshape(parameter.shape)
