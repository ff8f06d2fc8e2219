"""A block format by single numbers: its numbers, element times scale, are multiplied as they are."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import (
    Parameter,
    Settings,
    Tensor,
    design_gemms,
    explain,
    load_design,
    make_network,
    run,
    workload,
)
from softnum.train.engine.tensor import linear
from softnum.train.layers.attention import matmul as attention_product
from softnum.train.layers.convolution import conv2d
from tests.support.cases import cases
from tests.support.train_cases import numerics_of, spread

#: of weights alone
WEIGHTS = """
[roles]
weights = { format = "mxfp4", scale_rule = "rceil" }
input = "bfloat16"
activations = "bfloat16"
errors = "bfloat16"
[units]
forward = "nvidia_h100_bf16"
backward_data = { accumulator = "e6m9", product = "e5m10" }
backward_weight = { accumulator = "binary32" }
"""
#: of errors alone: a bias' gradient is a product with them
ERRORS = """
[roles]
input = "e5m2"
weights = "e5m2"
activations = "e5m2"
errors = "mxfp8_e5m2"
"""
#: blocks forwards, none in the gradient of weights, one of two in that of data
PASSES = """
[roles]
input = "mxfp8_e4m3"
weights = "mxfp8_e4m3"
activations = "mxfp8_e4m3"
errors = "bfloat16"
backward_weight = { activations = "bfloat16", input = "bfloat16" }
"""
FORMATS = {
    "weights": {"x": "bfloat16", "w": ("mxfp4", "rceil"), "e": "bfloat16"},
    "errors": {"x": "e5m2", "w": "e5m2", "e": ("mxfp8_e5m2", None)},
    "passes": {"x": ("mxfp8_e4m3", None), "w": ("mxfp8_e4m3", None), "e": "bfloat16", "x in w": "bfloat16"},
}
TEXTS = {"weights": WEIGHTS, "errors": ERRORS, "passes": PASSES}


def numbers(x, fmt, axis):
    """x rounded to a format, in blocks along an axis where that is (format, rule)."""
    if isinstance(fmt, str):
        return sn.quantize(np.asarray(x, np.float64), fmt)
    return sn.quantize(np.asarray(x, np.float64), fmt[0], axis=axis, scale_rule=fmt[1])


def product(design, key, a, b, c=None, *, of=("x", "w")):
    """a @ b in a unit of single numbers that holds all operands, rounded along K; of blocks in one of blocks."""
    own = FORMATS[design]
    formats = [own.get(f"{name} in w", own[name]) if key == "backward_weight" else own[name] for name in of]
    unit = load_unit(design, key)
    if not any(isinstance(fmt, str) for fmt in formats):
        a, b = (sn.array(x, fmt[0], axis=axis) for x, fmt, axis in zip((a, b), formats, (-1, -2), strict=True))
    else:
        a, b = (numbers(x, fmt, axis) for x, fmt, axis in zip((a, b), formats, (-1, -2), strict=True))
    start = None if c is None else np.broadcast_to(c, (a.shape[0], b.shape[1])).copy()
    return sn.matmul(a, b, unit, start)


def load_unit(design, key):
    if design == "weights":
        return {
            "forward": sn.unit("nvidia_h100_bf16"),
            "backward_data": sn.MadUnit("e6m9", operand=("bfloat16", "binary32"), product="e5m10"),
            "backward_weight": sn.MadUnit("binary32", operand="bfloat16"),
        }[key]
    if design == "passes" and key == "forward":
        return sn.BlockDotUnit("binary32", operand="mxfp8_e4m3")
    return sn.MadUnit("binary32", operand=("binary64", "binary64"))


def layer_of(tmp_path, design):
    return numerics_of(tmp_path, TEXTS[design]).layer("conv")


@cases("design", TEXTS)
def test_a_layers_products(design, tmp_path):
    rng, layer = np.random.default_rng(1), layer_of(tmp_path, design)
    x, w, b, e = (spread(rng, shape) for shape in ((45, 70), (70, 37), (37,), (45, 37)))
    source, weight, bias = (Parameter(value, layer, name) for value, name in ((x, "x"), (w, "w"), (b, "b")))
    y = linear(source, weight, bias, layer)
    y.backward(e)
    start = sn.quantize(b, layer.design.units["forward"].c_format)
    np.testing.assert_array_equal(y.value, product(design, "forward", x, w, start))
    np.testing.assert_array_equal(source.gradient, product(design, "backward_data", e, w.T, of=("e", "w")))
    np.testing.assert_array_equal(weight.gradient, product(design, "backward_weight", x.T, e, of=("x", "e")))
    ones = product(design, "backward_weight", np.ones((1, 45)), e, of=("x", "e"))
    np.testing.assert_array_equal(bias.gradient, ones[0])


@cases("design", ("weights", "errors"))
@cases("groups", (1, 2))
def test_a_convolutions_products(design, groups, tmp_path):
    """Blocks run along (channel, row, column) of the kernel, of each unfolded image."""
    rng, layer = np.random.default_rng(2), layer_of(tmp_path, design)
    x, w, b = (spread(rng, shape) for shape in ((3, 4, 6, 5), (6, 4 // groups, 3, 3), (6,)))
    source, weight, bias = (Parameter(value, layer, name) for value, name in ((x, "x"), (w, "w"), (b, "b")))
    y = conv2d(source, weight, bias, layer, padding=1, groups=groups)
    e = spread(rng, y.value.shape)
    y.backward(e)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    rows, own = x.shape[1] // groups, 6 // groups
    for group in range(groups):
        patches = windows[..., group * rows : (group + 1) * rows, :, :].reshape(-1, rows * 9)
        mine = slice(group * own, (group + 1) * own)
        matrix, errors = w[mine].reshape(own, -1), e[:, mine].transpose(0, 2, 3, 1).reshape(-1, own)
        start = sn.quantize(b[mine], layer.design.units["forward"].c_format)
        found = y.value[:, mine].transpose(0, 2, 3, 1).reshape(-1, own)
        np.testing.assert_array_equal(found, product(design, "forward", patches, matrix.T, start))
        gradient = product(design, "backward_weight", patches.T, errors, of=("x", "e"))
        np.testing.assert_array_equal(weight.gradient[mine].reshape(own, -1), gradient.T)
        sums = product(design, "backward_weight", np.ones((1, len(errors))), errors, of=("x", "e"))
        np.testing.assert_array_equal(bias.gradient[mine], sums[0])


@cases("design", ("weights", "errors"))
def test_an_attentions_products(design, tmp_path):
    rng, layer = np.random.default_rng(3), layer_of(tmp_path, design)
    a, b, e = (spread(rng, shape) for shape in ((2, 9, 40), (2, 40, 7), (2, 9, 7)))
    first, second = (Tensor(x, layer.numerics.backend, requires_gradient=True) for x in (a, b))
    y = attention_product(first, second, layer)
    y.backward(e)
    for i in range(2):
        np.testing.assert_array_equal(y.value[i], product(design, "forward", a[i], b[i]))
        np.testing.assert_array_equal(first.gradient[i], product(design, "backward_data", e[i], b[i].T, of=("e", "w")))
        np.testing.assert_array_equal(
            second.gradient[i], product(design, "backward_weight", a[i].T, e[i], of=("x", "e"))
        )


def test_numbers_beyond_an_operands_exponents_are_an_error(tmp_path):
    """2**100 in e5m10, which has them up to 2**15; in binary32 they are multiplied."""
    text = '[roles]\nweights = "mxfp4"\nactivations = "e5m10"\nerrors = "e5m10"\n[units]\n'
    weight = np.float32([[2.0**100], [1.0]])
    for operand, message in (
        ("e5m10", r"forward multiplies numbers of role 'weights' \(mxfp4_e2m1\) as ones of"),
        ("binary32", ""),
    ):
        unit = f'forward = {{ accumulator = "binary32", operand = ["e5m10", "{operand}"] }}'
        layer = numerics_of(tmp_path, text + unit).layer("conv")
        x = Tensor(np.float32([[1, 0]]), layer.numerics.backend)
        if message:
            with pytest.raises(ValueError, match=message):
                linear(x, Parameter(weight, layer, "w"), None, layer)
        else:
            assert linear(x, Parameter(weight, layer, "w"), None, layer).value.tolist() == [[2.0**100]]


def test_a_factor_of_the_tensor_takes_binary64(tmp_path):
    """Numbers of nvfp4 have up to 30 significant bits; of no more than 24, binary32 is what they are multiplied as."""
    text = '[roles]\nweights = "{}"\nactivations = "bfloat16"\nerrors = "bfloat16"\n'
    for fmt, wide in (("nvfp4", "binary64"), ("mxfp4", "binary32")):
        (tmp_path / "n.toml").write_text(text.format(fmt))
        layer = load_design(tmp_path / "n.toml").layer("fc2")
        assert [str(operand) for operand in layer.units["forward"].operand] == ["bfloat16", wide]


@cases("network", ("lenet5", "transformer", "lstm"))
def test_networks_train(network, tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.toml").write_text(text)
        design = load_design(tmp_path / f"{name}.toml")
        settings = Settings(network=network, epochs=1, batch=16, samples=32, held_out=16)
        run(design, settings, seed=1, out=tmp_path / f"{network}-{name}.jsonl")
    gemms = design_gemms(design, make_network("mlp"), 32)
    assert gemms[0]["formats"] == ["mxfp8_e4m3", "mxfp8_e4m3"]


def test_what_is_said_of_a_run_lists_the_blocks(tmp_path):
    (tmp_path / "mine.toml").write_text(WEIGHTS)
    design = load_design(tmp_path / "mine.toml")
    work = workload("mlp", design, 32)
    gemms = {part.stage: part.formats for part in work.operations if part.layer == "fc2" and part.gemm}
    assert gemms["forward"] == gemms["backward_data"] == ("bfloat16", "mxfp4_e2m1")
    stored = [part for part in work.tensors if (part.layer, part.tensor_class) == ("fc2", "weights")]
    assert (stored[0].format, stored[0].bytes) == ("mxfp4_e2m1", 1280 * 4.25 / 8)
    steps = [step for step in explain("mlp", design).steps if (step.layer, step.role) == ("fc2", "forward")]
    assert [[fmt for fmt, _ in step.operands] for step in steps] == [["bfloat16", "mxfp4_e2m1", "binary32"]]
