"""Networks as lists of layers: their workloads agree with those of the networks that softnum trains, and with what is
published of the others."""

import tomllib
from dataclasses import replace
from importlib import resources

import pytest

from softnum.train import design_gemms, design_names, load_design, make_network
from softnum.tta import Gemm, architectures
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
    architecture,
    architecture_names,
    lower,
)
from softnum.tta.architectures.large_models import decoders
from tests.support.cases import cases

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
    return Architecture("transformer", (8, 8), (*layers, LayerNorm("norm")))


def table_of(design):
    return tomllib.loads(resources.files("softnum.train").joinpath(f"designs/shipped/{design}.toml").read_text())


def trained_gemms(design, network, batch, **options):
    return [Gemm.from_table(row) for row in design_gemms(load_design(design), make_network(network, **options), batch)]


@cases("design", design_names())
@cases("build", [mlp, lenet5])
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


def test_parameters_and_macs_are_the_published_ones():
    exact = {"alexnet", "vgg16", "resnet50", "inception-v3", "mask-rcnn-backbone", "bert-base", "flux1-dev"}
    assert exact < set(architecture_names())
    for name in set(architecture_names()) - set(decoders()):
        net = architecture(name)
        tolerance = 0 if name in exact else 0.03  # sources that round to a million, or say how they count only in part
        if "parameters" in net.published:
            assert net.parameters == pytest.approx(net.published["parameters"], rel=tolerance, abs=0), name
        if "macs" in net.published:
            assert net.macs == pytest.approx(net.published["macs"], rel=1e-3), name
        assert net.source and net.title


def test_networks_without_a_published_count_have_the_sum_by_hand():
    tower = 17 * 9 * 256 + 2 * 256 + 19 * 2 * (9 * 256 * 256 + 2 * 256)
    heads = (2 * 256 + 2 * 2 + 722 * 362 + 362) + (256 + 2 + 361 * 256 + 256 + 257)
    assert architecture("minigo").parameters == tower + heads
    convolutions = 32 * 11 * 41 + 2 * 32 + 32 * 32 * 11 * 21 + 2 * 32
    cells = sum(2 * 3 * 800 * (inputs + 800 + 1) for inputs in (1280, 1600, 1600, 1600, 1600))
    assert architecture("deepspeech2").parameters == convolutions + cells + 1600 * 1601 + 29 * 1601


@cases("name", [*sorted(set(architecture_names()) - set(decoders()) - {"flux1-dev"}), *decoders()])
def test_a_workload_keeps_the_network_s_sums(name):
    if name in decoders():  # one layer of each kind
        decoder = decoders()[name]
        net = replace(decoder, layers=decoder.dense + 1).architecture(min(64, decoder.context))
    else:
        net = architecture(name)
    work = lower(net, 4, "mixed-float16", "adam")
    assert work.parameters == net.parameters
    forward = [op for op in work.operations if op.gemm and op.stage == "forward"]
    assert sum(op.flops for op in forward) == 2 * 4 * net.macs
    for op in work.operations:
        if op.gemm:
            product = 2 * op.gemm.m * op.gemm.n * op.gemm.k * op.gemm.count
            spared = op.stage == "backward_data" or "attention" in op.layer  # zeros, pairs behind a mask
            assert op.flops == product or (spared and op.flops < product)
    changed = sum(t.elements for t in work.tensors if t.tensor_class == "weight_gradients")
    assert changed == net.parameters or name == "dlrm-v2"  # whose tables change in the rows of a batch
    assert sum(op.flops for op in work.operations if op.stage == "update") == 14 * changed
    state = sum(t.bytes for t in work.tensors if t.tensor_class == "optimiser_state")
    assert state == 3 * 4 * net.parameters  # master, momentum, second moment in binary32
    folded = lower(net, 4, "mixed-float16", "adam", fold=True)
    assert (folded.flops, folded.bytes) == (work.flops, work.bytes)
    assert len(folded.operations) < len(work.operations)
    # twice the batch: twice the products' work, and no more parameters
    double = lower(net, 8, "mixed-float16", "adam")
    assert sum(op.flops for op in double.operations if op.gemm) == 2 * sum(
        op.flops for op in work.operations if op.gemm
    )


def test_bytes_and_tensors_of_a_small_network_by_hand():
    net = Architecture("small", (2, 4, 4), (Conv2d("conv", 3, 3, padding=1), Activation("relu"), Flatten("flat"),
                                            Dense("fc", 5), Loss("loss")))  # fmt: skip
    work = lower(net, 10, "mixed-float16", "momentum")
    rows = {(op.layer, op.stage, op.kind): (op.flops, op.bytes_read, op.bytes_written) for op in work.operations}
    assert rows == {
        # the image, not its nine-fold unfolded copy
        ("conv", "forward", "gemm"): (2 * 160 * 3 * 18, 2 * (320 + 54), 2 * 480),
        ("relu", "forward", "relu"): (480, 960, 960),
        ("fc", "forward", "gemm"): (2 * 10 * 5 * 48, 2 * (480 + 240), 100),
        ("loss", "forward", "softmax"): (250, 100, 100),
        ("loss", "backward_data", "softmax"): (50, 100, 100),
        ("fc", "backward_data", "gemm"): (4800, 2 * (50 + 240), 960),
        ("fc", "backward_weight", "gemm"): (4800, 2 * (480 + 50), 480),
        ("fc", "backward_weight", "bias"): (50, 100, 10),
        ("relu", "backward_data", "relu"): (480, 1920, 960),
        ("conv", "backward_weight", "gemm"): (2 * 160 * 3 * 18, 2 * (320 + 480), 108),
        ("conv", "backward_weight", "bias"): (480, 960, 6),
        # reads master, velocity and gradient; writes both and the working copy
        ("conv", "update", "momentum"): (4 * 57, 57 * (4 + 4 + 2), 57 * (4 + 4 + 2)),
        ("fc", "update", "momentum"): (4 * 245, 245 * 10, 245 * 10),
    }
    maps = [(t.layer, t.name, t.bytes) for t in work.tensors if t.tensor_class == "feature_maps"]
    # what ReLU and fc both need is kept once
    assert maps == [("conv", "input", 640), ("relu", "output", 960), ("loss", "output", 100)]
    maps = [(t.layer, t.bytes) for t in work.tensors if t.tensor_class == "gradient_maps"]
    assert maps == [("relu", 960), ("fc", 960), ("loss", 100)]


@cases(
    "make, message",
    [
        (lambda: Architecture("n", (8,), ()), "has no layer"),
        (lambda: Architecture("n", (8,), (Dense("a", 4), Dense("a", 4))), "two layers called 'a'"),
        (lambda: Architecture("n", (8,), (Dense("abc", 4), Add("s", inputs=("abd", "abc")))), "did you mean 'abc'"),
        (lambda: Architecture("n", (8,), (Conv2d("c", 4, 3),)), "layer 'c': takes an image"),
        (lambda: Architecture("n", (3, 4, 4), (Conv2d("c", 4, 7),)), "kernel of 7 does not fit 4 pixels"),
        (lambda: Architecture("n", (3, 4, 4), (Conv2d("c", 4, 3, groups=2),)), "2 groups do not divide 3 channels"),
        (lambda: Activation("a", "rely"), "unknown function 'rely'"),
        (lambda: Recurrent("a", 4, "lstn"), "unknown kind 'lstn'"),
        (lambda: architecture("resnet5"), "did you mean 'resnet50'"),
        (lambda: lower(mlp(), 0), "batch must be at least 1"),
        (lambda: lower(mlp(), 1, "float23"), "did you mean 'float32'"),
        (lambda: lower(mlp(), 1, optimiser="adm"), "did you mean 'adam'"),
        (lambda: Precision.of_design({"roles": {"weights": {"format": "mine.py:mine"}}}), "state the bits"),
        (lambda: Precision.of_roles("p", {"weigths": "e5m2"}), "did you mean 'weights'"),
    ],
)
def test_what_does_not_fit_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_unit_s_operands_stand_for_roles_that_are_not_stated():
    unit = {"kind": "mad", "operand": ["e4m3fn", "e5m2"]}
    table = {
        "roles": {"default": "e6m9"},
        "units": {"forward": unit},
        "layers": {"fc.": {"roles": {"weights": "e3m4"}}},
    }
    precision = Precision.of_design(table)
    assert (precision.activations.name, precision.weights.name, precision.errors.name) == ("e4m3fn", "e5m2", "e6m9")
    assert precision.at("fc1").weights.name == "e3m4" and precision.at("conv").weights.name == "e5m2"
    assert Precision.of_design({"units": {"forward": "nvidia_h100_fp16"}}).weights.name == "binary16"


def test_gradients_of_a_strided_convolution_need_what_its_forward_pass_does():
    work = lower(architecture("resnet50"), 2, "bfloat16")
    sums = {stage: sum(op.flops for op in work.operations if op.gemm and op.stage == stage) for stage in ("forward",
            "backward_data", "backward_weight")}  # fmt: skip
    first = 2 * 2 * 112 * 112 * 64 * 147  # the first layer needs no gradient of the image
    assert sums["backward_weight"] == sums["forward"] == sums["backward_data"] + first
    strided = next(op for op in work.operations if op.layer == "stage2.1.conv2" and op.stage == "backward_data")
    assert strided.flops * 4 == 2 * strided.gemm.m * strided.gemm.n * strided.gemm.k


def test_every_public_name_has_an_example():
    for name in architectures.__all__:
        thing = getattr(architectures, name)
        assert not callable(thing) or ">>>" in (thing.__doc__ or ""), name
