"""Roles with scales: the products that `softnum.train.recipes` defines, in layers, networks and records."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import Parameter, Settings, Tensor, load_design, make_network, run
from softnum.train.engine.tensor import linear
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
    scaled_product,
    scaled_stack,
)  # fmt: skip
from softnum.train.runs.loop import Run
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
