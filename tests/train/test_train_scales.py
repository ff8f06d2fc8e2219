"""Roles with scales: the products that `softnum.train.recipes` defines, in layers, networks and records."""

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.train import Parameter, Settings, Tensor, design_gemms, explain, load_design, make_network, run
from softnum.train.designs import scales
from softnum.train.designs.design import RoleRounding
from softnum.train.designs.loss_scaling import overflow_shows
from softnum.train.designs.scales import Hadamard, describe_scale, scale_of
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.tensor import linear
from softnum.train.engine.watch import watching
from softnum.train.inspect.workloads import trace, workload
from softnum.train.layers.attention import matmul as attention_product
from softnum.train.layers.convolution import conv2d
from softnum.train.recipes import (
    BlockScaling,
    DelayedScaling,
    MXFP4Scaling,
    MXScaling,
    NVFP4Scaling,
    Scaled,
    TensorScaling,
    hadamard_transform,
    scaled_product,
    scaled_stack,
)  # fmt: skip
from softnum.train.runs.loop import Run
from softnum.train.runs.record import read_lines
from softnum.train.runs.statistics import Watch
from tests.support.cases import cases
from tests.support.train_cases import loss_of, met, numerics_of, spread, unfolded

UNIT = '{ kind = "fused", accumulator = "binary32", terms = 8, fraction_bits = 13 }'
#: name -> (what x, w and e state, their quantizers); tiles are small, so that operands have several and cut ones
RULES = {
    "tensor": (
        ('"e4m3fn", scale = { per = "tensor" }', '"e4m3fn", scale = { power_of_two = true }', '"e5m2", scale = {}'),
        (TensorScaling("e4m3fn"), TensorScaling("e4m3fn", True), TensorScaling("e5m2")),
    ),
    "row": (
        ('"e4m3fn", scale = { per = "row" }', '"e4m3fn", scale = { per = "row", power_of_two = true }',
         '"e5m2", scale = { per = "row", epsilon = 1e-12 }'),
        (BlockScaling("e4m3fn", (1, None), False), BlockScaling("e4m3fn", (1, None), True),
         BlockScaling("e5m2", (1, None), False, 1e-12)),
    ),
    "tiles": (
        ('"e4m3fn", scale = { per = [1, 8] }', '"e4m3fn", scale = { per = [8, 8], power_of_two = true }',
         '"e4m3fn", scale = { per = [1, 8], reference = "pytorch" }'),
        (BlockScaling("e4m3fn", (1, 8), False), BlockScaling("e4m3fn", (8, 8), True),
         BlockScaling("e4m3fn", (1, 8), False, reference="pytorch")),
    ),
    "mixed lengths": (
        ('"e4m3fn", scale = { per = [1, 8] }', '"e5m2", scale = { per = "row" }',
         '"e4m3fn", scale = { per = [2, 16] }'),
        (BlockScaling("e4m3fn", (1, 8), False), BlockScaling("e5m2", (1, None), False),
         BlockScaling("e4m3fn", (2, 16), False)),
    ),
    "mx": (
        ('"e4m3fn", scale = { rule = "mx" }', '"e4m3fn", scale = { rule = "mx", per = [32, 32] }',
         '"e2m1fn", scale = { rule = "mx" }'),
        (MXScaling("e4m3fn"), MXScaling("e4m3fn", (32, 32)), MXFP4Scaling()),
    ),
    "nvfp4": (
        ('"e2m1fn", scale = { rule = "nvfp4" }', '"e2m1fn", scale = { rule = "nvfp4", per = [16, 16] }',
         '"e2m1fn", scale = { rule = "nvfp4", reference = "jax" }'),
        (NVFP4Scaling(), NVFP4Scaling((16, 16)), NVFP4Scaling(reference="jax")),
    ),
    "nvfp4 variants": (
        ('"e2m1fn", scale = { rule = "nvfp4", rows = true }',
         '"e2m1fn", scale = { rule = "nvfp4", four_over_six = "squared", scale_max = 256 }',
         '"e2m1fn", scale = { rule = "nvfp4", four_over_six = "absolute", fast = true }'),
        (NVFP4Scaling(rows=True), NVFP4Scaling(four_over_six="squared", scale_max=256),
         NVFP4Scaling(four_over_six="absolute", fast=True)),
    ),
    "plain x": (
        ('"e4m3fn", overflow = "saturate"', '"e4m3fn", scale = { per = [1, 8] }', '"e5m2", scale = { per = "row" }'),
        (None, BlockScaling("e4m3fn", (1, 8), False), BlockScaling("e5m2", (1, None), False)),
    ),
    "plain e": (
        ('"e4m3fn", scale = { per = "row" }', '"e4m3fn", scale = {}', '"e5m2"'),
        (BlockScaling("e4m3fn", (1, None), False), TensorScaling("e4m3fn"), None),
    ),
}  # fmt: skip
PLAIN = {"plain x": {"fmt": "e4m3fn", "overflow": "saturate"}, "plain e": {"fmt": "e5m2"}}
ONE = np.ones((1, 1), np.float32)


def text_of(formats, unit=UNIT):
    x, w, e = (f"{{ format = {text} }}" for text in formats)
    units = "\n".join(f"{key} = {unit}" for key in ("forward", "backward_data", "backward_weight"))
    return f"[roles]\nactivations = {x}\nweights = {w}\nerrors = {e}\n[units]\n{units}\n"


def operand_of(quantizer, x, whole=None, plain=None):
    """Matrices as operands with K as their columns; of a tensor's scale, that of the whole tensor."""
    if quantizer is None:
        return Scaled(sn.quantize(np.ascontiguousarray(x), **plain), ONE, (None, None))
    if quantizer.block != (None, None):
        return scaled_stack(quantizer, x)
    scale = quantizer((x if whole is None else whole).reshape(1, -1)).scales
    elements = quantizer(np.append(x, x if whole is None else whole).reshape(1, -1)).elements[0, : x.size]
    return Scaled(elements.reshape(x.shape), scale, (None, None))


class Products:
    """The products of a layer by hand, from the quantizers of its roles."""

    def __init__(self, name):
        self.quantizers = dict(zip("xwe", RULES[name][1], strict=True))
        self.plain = PLAIN.get(name, {})
        self.formats = {
            role: sn.format(quantizer.format if quantizer else self.plain["fmt"])
            for role, quantizer in self.quantizers.items()
        }

    def unit(self, a, b):
        operand = self.formats[a], self.formats[b]
        return sn.FusedDotUnit(accumulator="binary32", operand=operand, terms=8, fraction_bits=13)

    def of_stack(self, a, x, b, y, c=None, whole=None):
        """x @ y of the roles a and b, y with K as its columns, matrix by matrix."""
        operands = [
            operand_of(self.quantizers[role], value, None if whole is None else whole[role], self.plain)
            for role, value in ((a, x), (b, y))
        ]
        product = scaled_product(*operands, self.unit(a, b))
        return product if c is None else product + c

    def of(self, a, x, b, y, c=None):
        """x @ y of the roles a and b."""
        return self.of_stack(a, x, b, y.T, c)

    def sums(self, e):
        """ones @ e."""
        ones = Scaled(np.ones((1, len(e)), np.float32), ONE, (None, None))
        return scaled_product(ones, operand_of(self.quantizers["e"], e.T, None, self.plain), self.unit("x", "e"))[0]


def test_stacks_pad_each_matrix_to_whole_tiles():
    x = np.arange(30, dtype=np.float32).reshape(2, 3, 5)
    for scaling in (BlockScaling("e4m3fn", (2, 4)), MXScaling("e4m3fn", (2, 2)), BlockScaling("e4m3fn", (1, None))):
        stack = scaled_stack(scaling, x)
        for got, matrix in zip(zip(stack.elements, stack.scales, strict=True), x, strict=True):
            assert all(np.array_equal(*pair) for pair in zip(got, scaling(matrix)[:2], strict=True))
    for rows in (True, False):
        stack, flat = scaled_stack(NVFP4Scaling(rows=rows), x), NVFP4Scaling(rows=rows)(x.reshape(6, 5))
        assert np.array_equal(stack.values().reshape(6, 5), flat.values())
    with pytest.raises(ValueError, match="tiles of all rows are those of one matrix"):
        scaled_stack(BlockScaling("e4m3fn", (None, 2)), x)


@pytest.mark.parametrize("stochastic", [False, True])
def test_a_product_of_stacks_is_that_of_each_matrix(stochastic):
    rng = np.random.default_rng(0)
    unit = sn.MadUnit("e8m5", operand="e4m3fn", rounding="stochastic" if stochastic else "nearest_even")
    a, b = (spread(rng, shape) for shape in ((2, 3, 5, 20), (3, 7, 20)))
    a, b = scaled_stack(BlockScaling("e4m3fn", (1, 8)), a), scaled_stack(BlockScaling("e4m3fn", (4, 8)), b)
    found = scaled_product(a, b, unit, key=(1, 2) if stochastic else None)
    assert found.shape == (2, 3, 5, 7)
    if not stochastic:
        for i, j in np.ndindex(2, 3):
            one = Scaled(a.elements[i, j], a.scales[i, j], a.block), Scaled(b.elements[j], b.scales[j], b.block)
            assert np.array_equal(found[i, j], scaled_product(*one, unit))
    else:
        again = scaled_product(a, b, unit, key=(1, 2))
        assert np.array_equal(found, again) and not np.array_equal(found, scaled_product(a, b, unit, key=(1, 3)))
        same = a._replace(elements=np.broadcast_to(a.elements[:1], a.elements.shape), scales=a.scales[[0, 0]])
        first, second = scaled_product(same, b, unit, key=5)
        assert not np.array_equal(first, second)  # each matrix has words of its own


def case_of(name, tmp_path, names=("first", "conv")):
    return numerics_of(tmp_path, text_of(RULES[name][0]), names), Products(name)


@pytest.mark.parametrize("name", RULES)
def test_a_layers_products_are_those_of_the_recipes(name, tmp_path):
    rng = np.random.default_rng(1)
    numerics, right = case_of(name, tmp_path)
    layer = numerics.layer("conv")  # not the first: it takes activations
    x, w, b, e = (spread(rng, shape) for shape in ((45, 70), (70, 37), (37,), (45, 37)))
    source, weight, bias = (Parameter(value, layer, key) for value, key in zip((x, w, b), "xwb", strict=True))
    y = linear(source, weight, bias, layer)
    y.backward(e)
    for got, want in (
        (y.value, right.of("x", x, "w", w, b)),
        (source.gradient, right.of("e", e, "w", w.T)),
        (weight.gradient, right.of("x", x.T, "e", e)),
        (bias.gradient, right.sums(e)),
    ):
        assert np.array_equal(got, want) and got.dtype == np.float32


@pytest.mark.parametrize("name", RULES)
def test_attentions_products_are_those_of_the_recipes(name, tmp_path):
    rng = np.random.default_rng(2)
    numerics, right = case_of(name, tmp_path)
    layer = numerics.layer("conv")
    a, b, e = (spread(rng, shape) for shape in ((2, 3, 5, 40), (2, 3, 40, 7), (2, 3, 5, 7)))
    first, second = Parameter(a, layer, "a"), Parameter(b, layer, "b")
    y = attention_product(first, second, layer)
    y.backward(e)

    def turned(x):
        return x.swapaxes(-2, -1)

    assert np.array_equal(y.value, right.of_stack("x", a, "w", turned(b)))
    assert np.array_equal(first.gradient, right.of_stack("e", e, "w", b))
    assert np.array_equal(second.gradient, right.of_stack("x", turned(a), "e", turned(e)))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "bias"),
    [((1, 1), (0, 0), (1, 1), 1, True), ((2, 1), (1, 2), (1, 2), 2, True), ((1, 1), (2, 0), (1, 1), 1, False)],
)
def test_a_convolutions_products_are_those_of_the_recipes(name, stride, padding, dilation, groups, bias, tmp_path):
    rng = np.random.default_rng(3)
    numerics, right = case_of(name, tmp_path)
    layer = numerics.layer("conv")
    x, w, b = (spread(rng, shape) for shape in ((2, 4, 6, 5), (6, 4 // groups, 3, 2), (6,)))
    source, weight, own = (Parameter(value, layer, key) for value, key in zip((x, w, b), "xwb", strict=True))
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = conv2d(source, weight, own if bias else None, layer, **geometry)
    e = spread(rng, y.value.shape)
    y.backward(e)
    per, channels = 6 // groups, 4 // groups
    whole = {"x": x, "w": w, "e": e}
    rows, _ = unfolded(x, w.shape, **geometry)
    sources = met(e, w.shape, (6, 5), **geometry)
    errors = e.reshape(2, groups, per, -1).transpose(1, 0, 3, 2).reshape(groups, -1, per)
    filters = w.reshape(groups, per, -1)
    back = w.reshape(groups, per, channels, -1).transpose(0, 1, 3, 2).reshape(groups, -1, channels)

    def turned(x):
        return x.swapaxes(-2, -1)

    values = y.value.reshape(2, groups, per, -1).transpose(1, 0, 3, 2).reshape(groups, -1, per)
    start = b.reshape(groups, 1, per) if bias else None
    assert np.array_equal(values, right.of_stack("x", rows, "w", filters, start, whole))
    product = right.of_stack("x", turned(rows), "e", turned(errors), None, whole)
    assert np.array_equal(turned(product).reshape(w.shape), weight.gradient)
    want = right.of_stack("e", sources, "w", turned(back), None, whole)
    want = want.reshape(groups, 2, 6, 5, channels).transpose(1, 0, 4, 2, 3).reshape(x.shape)
    assert np.array_equal(source.gradient, want)


# -- delayed scaling ---------------------------------------------------------------------------------------------------
DELAYED = text_of(
    ('"e4m3fn", scale = { rule = "delayed", history = 3 }',
     '"e4m3fn", scale = { rule = "delayed", history = 2, margin = 1, algorithm = "most_recent" }',
     '"e5m2", scale = { rule = "delayed", history = 3, reference = "pytorch" }')
).replace("[units]", 'input = { format = "e4m3fn", scale = { rule = "delayed", history = 4 } }\n[units]')  # fmt: skip


def test_delayed_scales_follow_from_the_iterations_before(tmp_path):
    numerics, rng = numerics_of(tmp_path, DELAYED), np.random.default_rng(5)
    layer = numerics.layer("conv")
    w = spread(rng, (20, 7))
    scalings = {
        "x": DelayedScaling("e4m3fn", 3), "w": DelayedScaling("e4m3fn", 2, 1, "most_recent"),
        "e": DelayedScaling("e5m2", 3, reference="pytorch"),
    }  # fmt: skip
    states = {role: scaling.start() for role, scaling in scalings.items()}
    units = {
        pair: sn.FusedDotUnit(
            accumulator="binary32", operand=tuple(scalings[role].format for role in pair), terms=8, fraction_bits=13
        )
        for pair in ("xw", "ew", "xe")
    }
    for iteration in range(1, 5):
        x, e = spread(rng, (9, 20)), spread(rng, (9, 7))
        numerics.begin(iteration)
        source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
        y = linear(source, weight, Parameter(np.zeros(7, np.float32), layer, "b"), layer)
        y.backward(e)
        made = {role: scalings[role](value, states[role]) for role, value in (("x", x), ("w", w), ("e", e))}
        turned = {role: one._replace(elements=one.elements.T) for role, one in made.items()}
        assert np.array_equal(y.value, scaled_product(made["x"], turned["w"], units["xw"]))
        assert np.array_equal(source.gradient, scaled_product(made["e"], made["w"], units["ew"]))
        assert np.array_equal(weight.gradient, scaled_product(turned["x"], turned["e"], units["xe"]))
        numerics.begin(iteration, evaluation=True)  # has the same scales, and leaves no trace
        assert np.array_equal(
            linear(source, weight, Parameter(np.zeros(7, np.float32), layer, "b"), layer).value, y.value
        )
        linear(Tensor(x * 1024, numerics.backend), weight, Parameter(np.zeros(7, np.float32), layer, "b"), layer)
        numerics.finish()
        for role, scaling in scalings.items():
            scaling.update(states[role])
        w = (w * 1.5).astype(np.float32)
    found = {role: state for (_, role, _), state in numerics.states.items()}
    for role, name in (("x", "activations"), ("w", "weights"), ("e", "errors")):
        assert np.array_equal(found[name].history, states[role].history) and found[name].scale == states[role].scale
        assert found[name].scale != 1


def test_states_are_of_parameters_and_products(tmp_path):
    for name, options, uses in (
        ("transformer", {"sizes": (6, 8), "depth": 1, "image": (1, 4, 4)}, {"scores", "values"}),
        ("recurrent-lm", {"sizes": (3, 4), "steps": 4, "cell": "gru", "words": 9},
         {"gru.hidden.weight", "gru.hidden.candidate"}),
    ):  # fmt: skip
        net = make_network(name, **options)
        numerics = numerics_of(tmp_path, DELAYED, net.layer_names, looked_up=net.looked_up)
        net.initialise(numerics)
        rng = np.random.default_rng(0)
        x, labels = rng.standard_normal((6, 16)).astype(np.float32), rng.integers(0, 4, 6)
        if name == "recurrent-lm":
            x, labels = rng.integers(0, 9, (6, 4)), rng.integers(0, 9, 24)
        loss_of(net, numerics, x, labels).backward()
        layer = "block1.attention" if name == "transformer" else "gru.hidden"
        own = {(role, use) for at, role, use in numerics.states if at == layer}
        assert own == {(role, use) for role in ("activations", "weights", "errors") for use in uses}
        assert all(state.history[0] > 0 for state in numerics.states.values())


SMALL = Settings(network_options={"sizes": (64, 16, 10)}, epochs=3, batch=128)


def test_a_resumed_run_has_the_bytes_of_an_unbroken_one(tmp_path):
    file = tmp_path / "delayed.toml"
    file.write_text(DELAYED)
    design = load_design(file)
    whole = run(design, SMALL, seed=1, out=tmp_path / "whole")

    left = [11, 20, 25]

    def progress(iteration, total, accuracy):
        if left and iteration == left[0]:
            left.pop(0)
            raise KeyboardInterrupt

    while left:
        with pytest.raises(KeyboardInterrupt):
            run(design, SMALL, seed=1, out=tmp_path / "broken", progress=progress)
    path = run(design, SMALL, seed=1, out=tmp_path / "broken", threads=2)
    assert path.read_bytes() == whole.read_bytes()
    first, second = Run(SMALL, design, 1), Run(SMALL, design, 1)
    for iteration, samples in first.plan(1):
        first.train(iteration, samples)
    second.restore({key: np.asarray(value) for key, value in {"epoch": 1, **first.state()}.items()})
    assert set(second.numerics.states) == set(first.numerics.states) and len(first.numerics.states) == 6
    second.numerics.states.clear()  # what is not restored makes other bits
    assert second.train(11, next(iter(second.plan(2)))[1]) != first.train(11, next(iter(first.plan(2)))[1])


# -- whole networks, and what is said of them --------------------------------------------------------------------------
def design_of(tmp_path, name, more=""):
    file = tmp_path / "mine.toml"
    file.write_text(
        text_of(RULES[name][0]).replace("[units]", f"input = {{ format = {RULES[name][0][0]} }}\n[units]") + more
    )
    return load_design(file)


OFTEN = {("mlp", "tensor"), ("mlp", "tiles"), ("lenet5", "tensor"), ("transformer", "tiles"), ("lstm", "nvfp4")}


@pytest.mark.parametrize(
    "network, name",
    [
        pytest.param(*pair, marks=() if pair in OFTEN else pytest.mark.slow)
        for pair in itertools.product(("mlp", "lenet5", "transformer", "lstm"), ("tensor", "tiles", "nvfp4"))
    ],
)
def test_what_is_said_of_a_run_changes_no_bit_and_lists_its_products(name, network, tmp_path):
    settings = Settings(network=network, samples=32, held_out=16, batch=16, epochs=1)
    design = design_of(tmp_path, name)
    plain = run(design, settings, seed=3, out=tmp_path / "plain").read_bytes()
    path = run(design, settings, seed=3, out=tmp_path / "watched", statistics=1, threads=2)
    assert path.read_bytes() == plain
    config = json.loads(plain.splitlines()[0])["config"]
    last = list(config["design"]["layers"].values())[-1]
    assert last["roles"]["errors"]["scale"] == describe_scale(RULES[name][1][2])
    rows = [row for row in read_lines(path.with_suffix(".statistics.jsonl"))[1:] if row["iteration"] == 1]
    places = {row["role"] for row in rows}
    assert {"weights", "activations", "errors", "input", "forward", "backward_data", "backward_weight"} <= places
    assert all(row["relative_error"] < 0.5 for row in rows)
    steps = [step for step in explain(settings, design).steps if step.operation == "matmul"]
    biases = [step for step in steps if step.role == "backward_weight" and step.shape[-2] == 1]
    macs = sum(row["M"] * row["N"] * row["K"] * row.get("count", 1) for row in config["gemms"])
    assert sum(step.flops for step in steps) - sum(step.flops for step in biases) == 2 * macs
    want, got = Counter(), Counter()
    for row in config["gemms"]:
        key = row["layer"], row["pass"], row["M"], row["N"], row["K"], tuple(row["formats"]), row["bits"]
        want[key] += row.get("count", 1)
    for gemm in workload(network, design, 16).gemms:
        got[gemm.layer, gemm.phase, *gemm.shape, gemm.formats, gemm.bits] += gemm.count
    assert got == want


def test_saturation_is_told_by_the_scales(tmp_path):
    numerics = numerics_of(tmp_path, DELAYED)
    layer, watch = numerics.layer("conv"), Watch()
    numerics.begin(1)
    with watching(numerics, watch):
        x = Tensor(np.float32([[1000, 1, 0.0001, 0]]), numerics.backend)
        linear(
            x, Parameter(np.ones((4, 1), np.float32), layer, "w"), Parameter(np.ones(1, np.float32), layer, "b"), layer
        )
    facts = {tensor.role: tensor for tensor in watch.tensors.values()}
    seen = facts["activations"]
    assert (seen.saturated, seen.underflowed, seen.zeros, seen.elements, seen.span) == (1, 1, 1, 4, None)
    assert (facts["weights"].saturated, facts["weights"].error) == (0, 0)


def test_records_tell_elements_with_their_share_of_a_scale(tmp_path):
    design = design_of(tmp_path, "tiles")
    assert design_gemms(design, make_network("mlp"), 32)[0]["bits"] == 12  # 8, and 32 of a scale of [1, 8]
    assert design.layer("fc1").roles["weights"].describe() == {
        "format": "e4m3fn", "bits": 8.5, "rounding": "nearest_even", "overflow": "saturate",
        "scale": {"rule": "current", "per": [8, 8], "power_of_two": True, "epsilon": 0.0, "reference": "cuda",
                  "most": float(np.finfo(np.float32).max)},
    }  # fmt: skip
    assert design_gemms(design_of(tmp_path, "tensor"), make_network("mlp"), 32)[0]["bits"] == 8


@pytest.mark.parametrize("name", RULES)
def test_what_is_described_makes_the_same_scale_again(name):
    for quantizer in filter(None, RULES[name][1]):
        facts = describe_scale(quantizer)
        assert scale_of(json.loads(json.dumps(facts)), quantizer.format) == quantizer


def test_rows_of_a_batch_are_independent_where_their_scales_are(tmp_path):
    x, w = (spread(np.random.default_rng(8), shape) for shape in ((6, 40), (40, 5)))
    for name, alone in (("row", True), ("tiles", True), ("mx", True), ("tensor", False), ("nvfp4", False)):
        layer = numerics_of(tmp_path, text_of(RULES[name][0])).layer("conv")
        weight, bias = Parameter(w, layer, "w"), Parameter(np.zeros(5, np.float32), layer, "b")
        whole = linear(Tensor(x, layer.numerics.backend), weight, bias, layer).value
        rows = [linear(Tensor(x[i : i + 1], layer.numerics.backend), weight, bias, layer).value for i in range(6)]
        assert np.array_equal(whole, np.concatenate(rows)) == alone, name


PARTS = {
    "tensor": RoleRounding(sn.format("e4m3fn"), scale=TensorScaling("e4m3fn")),
    "nvfp4": RoleRounding(sn.format("e2m1fn"), scale=NVFP4Scaling()),
    "transformed": RoleRounding(sn.format("e2m1fn"), scale=NVFP4Scaling(), hadamard=Hadamard()),
    "blocks": RoleRounding(sn.format("nvfp4")),
}


@cases(("name", "last"), [(name, last) for name in PARTS for last in (50.0, np.inf, np.nan)])
def test_a_part_is_rounded_as_in_the_whole_by_its_magnitude(name, last):
    x, role, backend = np.random.default_rng(1).standard_normal((6, 32), np.float32), PARTS[name], NumpyBackend()
    x[5, 3] = last
    largest = max((backend.magnitude(part, role, -1) for part in (x[:2], x[2:])), key=lambda size: (size != size, size))

    def rounded(x, *largest):
        if role.block:
            return backend.quantize_blocks(x, role, -1, None, *largest).decode()
        return backend.quantize_scaled(x, role, -1, None, None, *largest).values()

    whole = rounded(x)
    assert np.array_equal(np.concatenate([rounded(x[:2], largest), rounded(x[2:], largest)]), whole, equal_nan=True)
    if last == 50.0:
        assert not np.array_equal(rounded(x[:2]), whole[:2])


def test_stochastic_elements_have_words_of_their_site(tmp_path):
    text = text_of(
        ('"e2m1fn", scale = { rule = "nvfp4" }', '"e2m1fn", scale = { rule = "nvfp4", per = [16, 16] }',
         '"e2m1fn", rounding = "stochastic", stochastic_bits = 8, scale = { rule = "nvfp4" }')
    )  # fmt: skip
    numerics = numerics_of(tmp_path, text)
    layer = numerics.layer("conv")
    numerics.begin(4)
    x, w, e = (spread(np.random.default_rng(8), shape) for shape in ((6, 40), (40, 5), (6, 5)))
    source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
    linear(source, weight, Parameter(np.zeros(5, np.float32), layer, "b"), layer).backward(e)
    # sites: the bias' start, x, w, forward; e along columns, (w is turned,) backward_data; x, e, backward_weight
    stochastic = NVFP4Scaling(rounding="stochastic", stochastic_bits=8)
    unit = sn.FusedDotUnit(accumulator="binary32", operand="e2m1fn", terms=8, fraction_bits=13)
    keys = [(3, 4 << 16 | site) for site in range(9)]
    assert np.array_equal(source.gradient, scaled_product(stochastic(e, keys[4]), NVFP4Scaling((16, 16))(w), unit))
    assert np.array_equal(weight.gradient, scaled_product(NVFP4Scaling()(x.T), stochastic(e.T, keys[7]), unit))


def test_sparse_operands_are_pruned_before_they_are_scaled(tmp_path):
    text = text_of(('"e4m3fn", sparsity = { top_k = 0.5 }, scale = { per = [1, 8] }', *RULES["tiles"][0][1:]))
    layer, right = numerics_of(tmp_path, text).layer("conv"), Products("tiles")
    x, w, e = (spread(np.random.default_rng(8), shape) for shape in ((6, 40), (40, 5), (6, 5)))
    source, weight = Parameter(x, layer, "x"), Parameter(w, layer, "w")
    y = linear(source, weight, Parameter(np.zeros(5, np.float32), layer, "b"), layer)
    y.backward(e)
    kept = np.abs(x) >= np.sort(np.abs(x).reshape(-1))[120]
    assert np.array_equal(y.value, right.of("x", x * kept, "w", w))
    assert np.array_equal(source.gradient, right.of("e", e, "w", w.T) * kept)


def test_layers_that_look_rows_up_take_the_default(tmp_path):
    file = tmp_path / "mine.toml"
    units = "\n".join(
        f'{key} = {{ preset = "nvidia_h100_e4m3", chunk = 128 }}'
        for key in ("forward", "backward_data", "backward_weight")
    )
    file.write_text(text_of(RULES["tensor"][0]).split("[units]")[0] + "[units]\n" + units)
    roles = load_design(file).layer("embedding", looked_up=True)
    assert {str(roles.roles[role].format) for role in ("weights", "activations", "errors")} == {"binary32"}
    assert str(roles.units["backward_weight"]) == str(sn.MadUnit("binary32", operand="binary32"))
    assert load_design(file).layer("fc").roles["weights"].scale is not None
    layer = numerics_of(tmp_path, text_of(RULES["tensor"][0])).layer("conv")
    with pytest.raises(ValueError, match="role 'weights' has a scale, of e4m3fn; state formats of single numbers"):
        layer.refuse_blocks("rows of an embedding are looked up, not multiplied")
    with pytest.raises(TypeError, match="role 'weights' has a scale, of e4m3fn; use `operand`"):
        layer.round("weights", np.ones(3, np.float32))


def test_a_dynamic_loss_scale_sees_no_overflow_in_scaled_errors(tmp_path):
    assert not overflow_shows(design_of(tmp_path, "tensor").layer("fc2").roles["errors"])
    design = design_of(tmp_path, "tensor", '[loss]\nscale = "dynamic"\n')
    with pytest.raises(
        ValueError, match=r"role 'errors' of layer 'fc1' \(e5m2, nearest_even, overflow saturate\) hides"
    ):
        design.check_loss(["fc1", "fc2"])


WRONG = [
    ("e4m3fn", "scale = 3", r'scale must be a table like \{ per = "tensor" \}, got 3'),
    ("e4m3fn", 'scale = { pre = "row" }', "scale: unknown key 'pre' of rule 'current'; did you mean 'per'"),
    ("e4m3fn", "scale = { history = 3 }", "it is a key of rule 'delayed'"),
    (
        "e4m3fn",
        'scale = { rule = "now" }',
        "'mx', 'quest', 'tseng', 'nvfp4', got 'now'",
    ),
    ("e4m3fn", "scale = { rule = [] }", r"scale.rule: must be one of .*, got \[\]"),
    ("e4m3fn", 'scale = { per = "column" }', 'scale.per: must be "tensor", "row", or'),
    ("e4m3fn", "scale = { per = [0, 128] }", "scale.per: must be"),
    ("e4m3fn", "scale = { per = [1, true] }", "scale.per: must be"),
    ("e4m3fn", 'scale = { rule = "delayed", per = "row" }', "one scale for the tensor; leave out per"),
    ("e4m3fn", 'scale = { rule = "delayed", history = 0 }', "scale.history: must be a positive integer, got 0"),
    ("e4m3fn", 'scale = { rule = "delayed", margin = "x" }', "scale.margin: must be a number"),
    ("e4m3fn", 'scale = { rule = "delayed", margin = 1000 }', "from -100 to 100, got 1000"),
    ("e4m3fn", 'scale = { rule = "delayed", algorithm = "min" }', "algorithm must be 'max' or 'most_recent'"),
    ("e4m3fn", 'scale = { reference = "tpu" }', "reference must be one of 'cuda', 'pytorch', 'jax', got 'tpu'"),
    ("e4m3fn", "scale = { power_of_two = 1 }", "scale.power_of_two: must be true or false, got 1"),
    ("e4m3fn", "scale = { epsilon = -1 }", "scale.epsilon: must not be negative"),
    ("e4m3fn", "scale = { epsilon = nan }", "scale.epsilon: must be a number, got nan"),
    ("e4m3fn", 'scale = { rule = "mx", per = "row" }', r"rule 'mx' needs tiles; state them as in per = \[1, 32\]"),
    ("e4m3fn", 'scale = { rule = "nvfp4" }', "rule 'nvfp4' is defined for format \"e2m1fn\", got 'e4m3fn'"),
    ("e2m1fn", 'scale = { rule = "nvfp4", scale_max = 400 }', "scale_max must be 448 or 256"),
    ("e4m3fn", 'rounding = "stochastic", scale = {}', "rounded by 'nearest_even', got rounding 'stochastic'"),
    ("e2m1fn", 'rounding = "stochastic", scale = { rule = "nvfp4", four_over_six = "squared" }', "to nearest even"),
    ("e5m2", 'overflow = "infinity", scale = {}', "overflow: must be 'saturate' with a scale, got 'infinity'"),
    ("mxfp8_e4m3", "scale = {}", "scale: 'mxfp8_e4m3' is a block format, which has scales already"),
    ("binary64", "scale = {}", "elements are scaled in binary32, which binary64 does not fit"),
]


@cases(("fmt", "text", "message"), WRONG)
def test_unusable_scales_are_errors_that_name_the_key(fmt, text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f'[roles]\nweights = {{ format = "{fmt}", {text} }}\n')
    with pytest.raises(ValueError, match=message) as found:
        load_design(file)
    assert str(found.value).startswith(f"{file}: roles.weights.")


@pytest.mark.parametrize("role", ["default", "elementwise", "master", "update.weight"])
def test_scales_are_of_operands(role, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f'[roles]\n{role} = {{ format = "e4m3fn", scale = {{}} }}\n')
    with pytest.raises(ValueError, match=f"roles.{role}.scale: is of operands of matrix products"):
        load_design(file)


SCALED = 'weights = { format = "e4m3fn", scale = { per = [8, 8] } }\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'activations = { format = "e4m3fn", scale = { per = [1, 12] } }',
            r"forward multiplies role 'activations' \(12 along K\) by role 'weights' \(8 along K\)",
        ),
        ('master = "none"', "parameters are not stored as weights with a scale"),
        ('activations = "mxfp8_e4m3"', "one in a block format and one with a scale"),
        (
            '[units]\nforward = { accumulator = "binary64" }',
            "forward: the sums of role 'weights', which has a scale, are scaled in binary32",
        ),
    ],
)
def test_products_that_cannot_be_scaled_are_errors(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f"[roles]\n{SCALED}{text}\n")
    with pytest.raises(ValueError, match=message):
        load_design(file).layer("fc2")


def test_numbers_that_binary32_lacks_are_rounded_to_it_first(tmp_path):
    text = text_of(RULES["row"][0]).replace("[roles]", '[roles]\nmaster = "binary64"\nweight_gradients = "binary64"')
    layer, right = numerics_of(tmp_path, text).layer("conv"), Products("row")
    assert layer.numerics.backend.dtype == np.float64
    x, w, e = (np.random.default_rng(8).standard_normal(shape) for shape in ((6, 40), (40, 5), (6, 5)))
    weight = Parameter(w, layer, "w")
    y = linear(Tensor(x, layer.numerics.backend), weight, Parameter(np.full(5, 0.1), layer, "b"), layer)
    y.backward(e)
    x, w, e = (value.astype(np.float32) for value in (x, w, e))
    assert np.array_equal(y.value, right.of("x", x, "w", w, np.float32(0.1))) and y.value.dtype == np.float64
    assert np.array_equal(weight.gradient, right.of("x", x.T, "e", e))


RECIPES = [
    "deepseek-v3",
    "quartet-mxfp4",
    "te-delayed-scaling",
    "te-float8-block-scaling",
    "te-float8-current-scaling",
    "te-mxfp8-block-scaling",
    "te-nvfp4-block-scaling",
    "torchao-rowwise",
    "torchao-rowwise-with-gw-hp",
    "torchao-tensorwise",
]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("network", ["lenet5", "transformer"])
def test_the_shipped_recipes_train(name, network, tmp_path):
    settings = Settings(network=network, samples=192, held_out=32, batch=32, epochs=3, learning_rate=0.03)
    rows = read_lines(run(load_design(name), settings, seed=1, out=tmp_path))[1:]
    losses = [row["loss"] for row in rows]
    assert len(losses) == 18 and np.mean(losses[-4:]) < 0.9 * np.mean(losses[:4])


@pytest.mark.parametrize("name", ["quartet-mxfp4", "te-delayed-scaling", "te-nvfp4-block-scaling"])
def test_a_dry_run_of_scales_makes_what_a_real_one_makes(name):
    settings = Settings(network="transformer", batch=8)
    dry, real = (trace(settings, load_design(name), dry=dry) for dry in (True, False))
    for first, second in zip(dry.groups, real.groups, strict=True):
        assert (first.layer, first.stage, first.product, first.formats, first.flops) == (
            second.layer, second.stage, second.product, second.formats, second.flops,
        )  # fmt: skip
    assert [(v.layer, v.name, v.elements, v.bits, v.format, v.along) for v in dry.values] == [
        (v.layer, v.name, v.elements, v.bits, v.format, v.along) for v in real.values
    ]


def test_a_workload_counts_elements_with_their_scales():
    plain, scaled = (workload("lenet5", load_design(name), 8) for name in ("a-float32", "te-float8-block-scaling"))
    by_pass = workload("lenet5", load_design("torchao-rowwise-with-gw-hp"), 8).gemms
    assert {g.formats for g in by_pass if g.phase == "backward_weight"} == {("bfloat16", "bfloat16")}
    assert {g.formats for g in by_pass if g.phase == "forward"} == {("e4m3fn", "e4m3fn"), ("bfloat16", "bfloat16")}
    bits = {(g.layer, g.phase): g.bits for g in scaled.gemms}
    assert bits["conv1", "forward"] == 8 + 32 / 128 and bits["fc2", "forward"] == 16
    assert len(plain.gemms) == len(scaled.gemms)


# -- roles by pass -----------------------------------------------------------------------------------------------------
BY_PASS = """
[roles]
activations = { format = "e4m3fn", scale = { per = "row" } }
weights = { format = "mxfp4", scale_rule = "rceil" }
errors = { format = "e5m2", scale = {} }
[roles.forward]
activations = "mxfp8_e4m3"
input = "mxfp8_e4m3"
[roles.backward_data]
weights = "bfloat16"
[roles.backward_weight]
errors = { format = "bfloat16", rounding = "toward_zero" }
"""


def test_a_pass_rounds_in_its_own_way(tmp_path):
    rng = np.random.default_rng(11)
    layer = numerics_of(tmp_path, BY_PASS).layer("conv")
    x, w, b, e = (spread(rng, shape) for shape in ((45, 64), (64, 32), (32,), (45, 32)))
    source, weight, bias = (Parameter(value, layer, key) for value, key in zip((x, w, b), "xwb", strict=True))
    y = linear(source, weight, bias, layer)
    y.backward(e)
    blocks = sn.array(x, "mxfp8_e4m3", axis=-1), sn.array(w, "mxfp4", axis=-2, scale_rule="rceil")
    unit = sn.BlockDotUnit(accumulator="binary32", operand=("mxfp8_e4m3", "mxfp4"))
    assert np.array_equal(y.value, sn.matmul(*blocks, unit, np.broadcast_to(b, (45, 32))))
    weights = Scaled(sn.quantize(w, "bfloat16"), ONE, (None, None))
    unit = sn.MadUnit("binary32", operand=("e5m2", "bfloat16"))
    assert np.array_equal(source.gradient, scaled_product(TensorScaling("e5m2")(e), weights, unit))
    errors = np.ascontiguousarray(sn.quantize(e, "bfloat16", rounding="toward_zero"))
    rows = BlockScaling("e4m3fn", (1, None), False)(np.ascontiguousarray(x.T))
    unit = sn.MadUnit("binary32", operand=("e4m3fn", "bfloat16"))
    assert np.array_equal(weight.gradient, scaled_product(rows, Scaled(errors.T, ONE, (None, None)), unit))
    ones = np.ones((1, 45), np.float32)
    assert np.array_equal(bias.gradient, sn.matmul(ones, errors, unit)[0])


def test_attentions_and_convolutions_round_by_pass(tmp_path):
    rng = np.random.default_rng(12)
    plain = BY_PASS.replace("forward", "x").replace("[roles.x]", "[roles.forward]").replace("mxfp8_e4m3", "bfloat16")
    text = plain.replace(
        '{ format = "mxfp4", scale_rule = "rceil" }', '{ format = "e4m3fn", scale = { per = [8, 8] } }'
    )
    layer = numerics_of(tmp_path, text).layer("conv")
    a, b, e = (spread(rng, shape) for shape in ((2, 5, 24), (2, 24, 7), (2, 5, 7)))
    first, second = Parameter(a, layer, "a"), Parameter(b, layer, "b")
    y = attention_product(first, second, layer)
    y.backward(e)
    narrow = {"a": sn.quantize(a, "bfloat16"), "b": sn.quantize(b, "bfloat16")}
    narrow["e"] = sn.quantize(e, "bfloat16", rounding="toward_zero")
    whole = TensorScaling("e5m2")(e.reshape(1, -1))
    for i in range(2):
        plain = Scaled(narrow["a"][i], ONE, (None, None))
        tiles = BlockScaling("e4m3fn", (8, 8), False)(np.ascontiguousarray(b[i].T))
        unit = sn.MadUnit("binary32", operand=("bfloat16", "e4m3fn"))
        assert np.array_equal(y.value[i], scaled_product(plain, tiles, unit))
        errors = Scaled(whole.elements.reshape(e.shape)[i], whole.scales, (None, None))
        unit = sn.MadUnit("binary32", operand=("e5m2", "bfloat16"))
        want = scaled_product(errors, Scaled(narrow["b"][i], ONE, (None, None)), unit)
        assert np.array_equal(first.gradient[i], want)
        rows = BlockScaling("e4m3fn", (1, None), False)(np.ascontiguousarray(a[i].T))
        unit = sn.MadUnit("binary32", operand=("e4m3fn", "bfloat16"))
        want = scaled_product(rows, Scaled(narrow["e"][i].T, ONE, (None, None)), unit)
        assert np.array_equal(second.gradient[i], want)
    x, w = (spread(rng, shape) for shape in ((2, 4, 6, 5), (6, 4, 3, 2)))
    source, weight, bias = Parameter(x, layer, "x"), Parameter(w, layer, "w"), Parameter(w[:, 0, 0, 0], layer, "b")
    y = conv2d(source, weight, bias, layer)
    e = spread(rng, y.value.shape)
    y.backward(e)
    rows, _ = unfolded(x, w.shape, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)
    errors = sn.quantize(e, "bfloat16", rounding="toward_zero").transpose(0, 2, 3, 1).reshape(-1, 6)
    patches = BlockScaling("e4m3fn", (1, None), False)(np.ascontiguousarray(rows[0].T))
    want = scaled_product(patches, Scaled(np.ascontiguousarray(errors.T), ONE, (None, None)), unit)
    assert np.array_equal(weight.gradient, want.T.reshape(w.shape))
    assert np.array_equal(bias.gradient, sn.matmul(np.ones((1, len(errors)), np.float32), errors, unit)[0])


def test_roles_by_pass_are_described_and_checked(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        BY_PASS + '[layers."fc2".roles]\nerrors = "binary32"\nweights = "bfloat16"\nactivations = "bfloat16"\n'
    )
    design = load_design(file)
    roles = design.describe(["fc1", "fc2"])["layers"]
    own = {"forward.activations", "backward_data.weights", "backward_weight.errors"}
    assert own <= set(design.layer("fc").describe()["roles"])
    assert not own & set(roles["fc2"]["roles"])  # a layer's role stands for all passes
    row = next(row for row in design_gemms(load_design("torchao-rowwise-with-gw-hp"), make_network("mlp"), 8)
               if row["pass"] == "backward_weight" and row["layer"] == "fc1")  # fmt: skip
    assert (row["bits"], row["formats"]) == (16, ["bfloat16", "bfloat16"])
    for text, message in (
        (
            '[roles.forward]\nerrors = "e5m2"',
            r"roles.forward: unknown key 'errors'.*\(known: activations, weights, input\)",
        ),
        (
            '[roles.backward_weight]\nerrors = { format = "e5m2", sparsity = { top_k = 0.5 } }',
            "this role cannot be sparse",
        ),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_design(file)
    file.write_text(BY_PASS + '[loss]\nscale = "dynamic"\n')
    with pytest.raises(ValueError, match="role 'errors' of layer 'fc1'"):
        load_design(file).check_loss(["fc1", "fc2"])
    file.write_text(
        '[roles.backward_weight]\nerrors = { format = "e5m2", overflow = "saturate" }\n[loss]\nscale = "dynamic"\n'
    )
    with pytest.raises(ValueError, match="role 'backward_weight.errors' of layer 'fc1'"):
        load_design(file).check_loss(["fc1", "fc2"])
    file.write_text('[roles.backward_weight]\nerrors = "bfloat16"\n')
    assert str(load_design(file).layer("embedding", looked_up=True).roles["errors"].format) == "binary32"
    layer = numerics_of(tmp_path, '[roles.backward_weight]\nerrors = "bfloat16"\n').layer("conv")
    with pytest.raises(ValueError, match="role 'backward_weight.errors' has a rounding of one pass alone"):
        layer.refuse_blocks("the operator f computes with values")


# -- Hadamard transforms -----------------------------------------------------------------------------------------------
HADAMARD = """
[roles]
activations = { format = "e2m1fn", scale = { rule = "nvfp4" } }
weights = { format = "e2m1fn", scale = { rule = "nvfp4", per = [16, 16] } }
errors = { format = "e2m1fn", scale = { rule = "nvfp4" } }
[roles.backward_weight]
input = { format = "e2m1fn", scale = { rule = "nvfp4" }, hadamard = { signs = 0xABC } }
activations = { format = "e2m1fn", scale = { rule = "nvfp4" }, hadamard = { signs = 0xABC } }
errors = { format = "e4m3fn", scale = { per = "tensor" }, hadamard = { signs = 0xABC } }
"""


def test_a_transform_mixes_both_operands_along_k(tmp_path):
    rng = np.random.default_rng(13)
    layer = numerics_of(tmp_path, HADAMARD).layer("conv")
    x, w, b, e = (spread(rng, shape) for shape in ((45, 24), (24, 7), (7,), (45, 7)))
    source, weight, bias = (Parameter(value, layer, key) for value, key in zip((x, w, b), "xwb", strict=True))
    y = linear(source, weight, bias, layer)
    y.backward(e)

    def mixed(matrix):  # K = 45: what is left over stays
        whole = hadamard_transform(np.ascontiguousarray(matrix[:, :32]), signs=0xABC)
        return np.concatenate([whole, matrix[:, 32:]], axis=1)

    def unit(second):
        return sn.MadUnit("binary32", operand=("e2m1fn", second))

    square = NVFP4Scaling((16, 16))(np.ascontiguousarray(w.T))
    assert np.array_equal(y.value, scaled_product(NVFP4Scaling()(x), square, unit("e2m1fn")) + b)
    want = scaled_product(NVFP4Scaling()(mixed(x.T)), TensorScaling("e4m3fn")(mixed(e.T)), unit("e4m3fn"))
    assert np.array_equal(weight.gradient, want)
    ones = Scaled(np.ones((1, 45), np.float32), ONE, (None, None))
    errors = TensorScaling("e4m3fn")(np.ascontiguousarray(e.T))  # as they are
    assert np.array_equal(bias.gradient, scaled_product(ones, errors, unit("e4m3fn"))[0])


def test_a_transform_cancels_in_a_product():
    rng = np.random.default_rng(14)
    for size, columns in ((4, 10), (16, 50), (64, 64), (16, 3)):
        a, b = (rng.standard_normal((2, 5, columns)).astype(np.float32) for _ in range(2))
        transform = Hadamard(size, int(rng.integers(2**size, dtype=np.uint64)))
        product = transform(a).astype(np.float64) @ transform(b).astype(np.float64).swapaxes(-2, -1)
        assert np.allclose(product, a.astype(np.float64) @ b.astype(np.float64).swapaxes(-2, -1), atol=1e-4)
    assert np.array_equal(Hadamard(4, 0, "bfloat16")(np.float32([[1.001]])), np.float32([[1]]))


HADAMARD_ERRORS = [
    (
        'weights = { format = "e4m3fn", hadamard = {} }',
        "weights.hadamard: is of a role with a scale of its own numbers",
    ),
    (
        'weights = { format = "e4m3fn", scale = { rule = "delayed" }, hadamard = {} }',
        "is of a role with a scale of its",
    ),
    (
        'weights = { format = "e4m3fn", scale = {}, hadamard = { size = 24 } }',
        "hadamard.size: must be 2, 4, 8, 16, 32 or 64, got 24",
    ),
    (
        'weights = { format = "e4m3fn", scale = {}, hadamard = { signs = 65536 } }',
        "hadamard.signs: must have a bit for each of",
    ),
    ('weights = { format = "e4m3fn", scale = {}, hadamard = { seed = 1 } }', "hadamard: unknown key 'seed'"),
    (
        'weights = { format = "e4m3fn", scale = {}, hadamard = { format = "binary64" } }',
        "binary32 does not hold every value of binary64",
    ),
    ('weights = { format = "e4m3fn", scale = {}, hadamard = {} }', "a transform cancels only if both operands have it"),
]


@cases(("text", "message"), HADAMARD_ERRORS)
def test_unusable_transforms_are_errors(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f"[roles]\n{text}\n")
    with pytest.raises(ValueError, match=message):
        load_design(file).layer("fc2")


def test_transforms_are_described_and_change_no_statistics_of_bits(tmp_path):
    design = load_design("te-nvfp4-block-scaling")
    facts = design.layer("fc1").describe()["roles"]["backward_weight.errors"]
    assert facts["hadamard"] == {"size": 16, "signs": 0xD7E8, "format": "binary32"}
    settings = Settings(network="lenet5", samples=32, held_out=16, batch=16, epochs=1)
    plain = run(design, settings, seed=3, out=tmp_path / "plain").read_bytes()
    path = run(design, settings, seed=3, out=tmp_path / "watched", statistics=1, threads=2)
    assert path.read_bytes() == plain
    rows = read_lines(path.with_suffix(".statistics.jsonl"))[1:]
    mixed = [row for row in rows if row["role"].startswith("backward_weight.")]
    assert mixed and all(row["relative_error"] < 0.3 for row in mixed)


# -- quantizers of the user's own --------------------------------------------------------------------------------------
OWN = """
import numpy as np
import softnum as sn
from softnum.train.recipes import BlockScaling, Scaled

class Powers:
    block = (1, 8)

    def __call__(self, x):
        scales = BlockScaling("e4m3fn", (1, 8), True)(x).scales * np.float32(2)
        return sn.quantize(x / np.repeat(scales, 8, axis=1)[:, : x.shape[1]], "e4m3fn"), scales

powers = Powers()
tiles = BlockScaling("e4m3fn", (8, 8), False)
blockless = lambda x: x

class Wrong(Powers):
    def __call__(self, x):
        return x, np.ones((len(x), 1), np.float32)

class Wide(Powers):
    def __call__(self, x):
        return x, Powers()(x)[1]

wrong, wide = Wrong(), Wide()
"""


def own_text(scale):
    x = f'"e4m3fn", scale = "own.py:{scale}"'
    return text_of((x, RULES["tiles"][0][1], x))


def test_a_quantizer_of_the_users_own_is_used(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    layer = numerics_of(tmp_path, own_text("tiles")).layer("conv")
    right = Products("tiles")
    right.quantizers |= {"x": BlockScaling("e4m3fn", (8, 8), False), "e": BlockScaling("e4m3fn", (8, 8), False)}
    rng = np.random.default_rng(15)
    x, w, e = (spread(rng, shape) for shape in ((6, 40), (40, 5), (6, 5)))
    weight = Parameter(w, layer, "w")
    y = linear(Tensor(x, layer.numerics.backend), weight, Parameter(np.zeros(5, np.float32), layer, "b"), layer)
    y.backward(e)
    assert np.array_equal(y.value, right.of("x", x, "w", w))
    assert np.array_equal(weight.gradient, right.of("x", x.T, "e", e))
    file = tmp_path / "powers.toml"
    file.write_text(own_text("powers"))
    design = load_design(file)
    assert design.layer("fc2").roles["errors"].describe()["scale"] == {"rule": "own.py:powers"}
    assert set(design.sources) == {"own.py:powers"}
    rows = read_lines(run(design, SMALL, seed=1, out=tmp_path / "runs"))[1:]
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]


@pytest.mark.parametrize(
    ("scale", "message"),
    [("blockless", "'own.py:blockless' must be callable and have a block"), ("none", "own.py has no object 'none'")],
)
def test_what_is_no_quantizer_is_an_error(scale, message, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "mine.toml").write_text(own_text(scale))
    with pytest.raises(ValueError, match=message):
        load_design(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("wrong", r"returned elements of shape \(64, 16\) and scales of \(64, 1\)"),
        ("wide", "no values of the role's format"),
    ],
)
def test_what_a_quantizer_returns_is_checked(scale, message, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    layer = numerics_of(tmp_path, own_text(scale)).layer("conv")
    x = np.random.default_rng(1).standard_normal((64, 16)).astype(np.float32)
    with pytest.raises(ValueError, match=message):
        layer.matmul("forward", layer.operand("activations", x)[0], np.ones((16, 2), np.float32))


def test_the_page_states_every_key_and_its_default():
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    rows = text[text.index("| key | of `rule` | default | is |") :].split("\n\n")[0].splitlines()[2:]
    found = {}
    for row in rows:
        key, rules, default, _ = (part.strip(" `") for part in row.strip("|").split("|"))
        found |= {(rule, key): default for rule in rules.split(", ") if rule}
    right = {}
    for rule, keys in scales.RULES.items():
        made = scale_of({"rule": rule}, sn.format("e2m1fn"))
        facts = describe_scale(made)
        right |= {(rule, key): facts[key] for key in ("per", *keys)}
    assert found.keys() == right.keys()
    for place, value in right.items():
        known = {"none": None, "true": True, "false": False}.get(found[place], found[place])
        known = json.loads(known) if isinstance(known, str) else known
        assert known == pytest.approx(value) if isinstance(value, float) else known == value, place
