"""Networks as lists of layers: their workloads agree with those of the networks that softnum trains, and with what is
published of the others."""

import tomllib
from importlib import resources

import pytest

from softnum.train import design_gemms, design_names, load_design, make_network
from softnum.tta import Gemm
from softnum.tta.architectures import (
    Activation,
    Add,
    Architecture,
    Attention,
    Conv2d,
    Dense,
    Flatten,
    LayerNorm,
    Loss,
    Pool,
    Position,
    Precision,
    Recurrent,
    lower,
)

BITS = {"posit8": 8}


def mlp():
    return Architecture("mlp", (64,), (Dense("fc1", 128), Activation("relu1"), Dense("fc2", 10), Loss("loss")))


def lenet5():
    layers = (
        Conv2d("conv1", 6, 5, padding=2), Activation("relu1"), Pool("pool1", 2, 2),
        Conv2d("conv2", 16, 5), Activation("relu2"), Pool("pool2", 2, 2),
        Conv2d("conv3", 120, 5), Activation("relu3"), Flatten("flat"),
        Dense("fc1", 84), Activation("relu4"), Dense("fc2", 10), Loss("loss"),
    )  # fmt: skip
    return Architecture("lenet5", (1, 28, 28), layers)


def recurrent(kind):
    # the network trained takes the last step's state, which is one row a sample
    layers = (Recurrent(kind, 32, kind), Activation("last"), Dense("fc", 10))
    return Architecture(kind, (8, 8), layers)


def transformer(depth=2):
    layers = [Dense("embed", 32), Position("position", 8)]
    x = "position"
    for block in (f"block{number}" for number in range(1, depth + 1)):
        layers += [
            LayerNorm(f"{block}.norm1", inputs=(x,)), Dense(f"{block}.qkv", 96), Attention(f"{block}.attention", 2),
            Dense(f"{block}.project", 32), Add(f"{block}.add1", inputs=(x, f"{block}.project")),
            LayerNorm(f"{block}.norm2"), Dense(f"{block}.ff1", 64), Activation(f"{block}.relu"),
            Dense(f"{block}.ff2", 32), Add(f"{block}.add2", inputs=(f"{block}.add1", f"{block}.ff2")),
        ]  # fmt: skip
        x = f"{block}.add2"
    return Architecture("transformer", (8, 8), tuple([*layers, LayerNorm("norm")]))


def table_of(design):
    return tomllib.loads(resources.files("softnum.train").joinpath(f"designs/{design}.toml").read_text())


def trained_gemms(design, network, batch, **options):
    return [Gemm.from_table(row) for row in design_gemms(load_design(design), make_network(network, **options), batch)]


@pytest.mark.parametrize("design", design_names())
@pytest.mark.parametrize("build", [mlp, lenet5])
def test_products_are_those_of_the_trained_networks(build, design):
    net = build()
    work = lower(net, 32, Precision.of_design(table_of(design), BITS))
    assert list(work.gemms) == trained_gemms(
        design, net.name, 32, **({"image": (1, 28, 28)} if build is lenet5 else {})
    )


@pytest.mark.parametrize("design", ["a-float32", "c-wang-fp8", "i-mxfp8"])
def test_products_of_a_transformer_are_those_of_the_trained_one(design):
    work = lower(transformer(), 16, Precision.of_design(table_of(design), BITS))
    assert list(work.gemms) == [gemm for gemm in trained_gemms(design, "transformer", 16) if gemm.layer != "fc"]


@pytest.mark.parametrize("design", ["a-float32", "c-wang-fp8"])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_products_of_a_cell_are_those_of_the_trained_one(kind, design):
    work = lower(recurrent(kind), 16, Precision.of_design(table_of(design), BITS))
    trained = trained_gemms(design, "recurrent-lm", 16, cell=kind, sizes=(8, 32), steps=8)
    # there the input is an embedding's, so that it has a gradient; and the cell's products are not the first layer's
    cells = [gemm for gemm in trained if gemm.layer.endswith(("input", "hidden"))]
    mine = [gemm for gemm in work.gemms if gemm.layer != "fc"]
    assert [(gemm.phase, gemm.shape, gemm.count) for gemm in mine] == [
        (gemm.phase, gemm.shape, gemm.count)
        for gemm in cells
        if not (gemm.layer.endswith("input") and gemm.phase == "backward_data")
    ]
