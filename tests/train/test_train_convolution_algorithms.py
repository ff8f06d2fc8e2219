"""Convolution layers by Winograd's filtering and by Fourier transforms: values, gradients, records, what is refused."""

import json

import numpy as np
import pytest

import softnum as sn
from softnum.train import Parameter, Settings, Tensor, load_design, workload
from softnum.train.engine.binary64 import host
from softnum.train.layers.convolution import conv2d
from softnum.train.runs.loop import Run
from tests.support.cases import cases
from tests.support.train_cases import interrupted, leaf, needs_torch, numerics_of

NARROW = """
[roles]
default = "bfloat16"
weights = "e4m3fn"
[units]
forward = { accumulator = "e6m9", operand = "bfloat16" }
backward_data = { accumulator = "binary32", operand = "bfloat16" }
[convolution]
"""
TABLES = {
    "winograd": ('tile = 4\noutput = { accumulator = "e8m12", operand = "bfloat16" }', {"tile": 4}),
    "fft": (
        'size = [8, 4]\ntwiddle = "e5m2"\nscaling = "stage"\noutput = { accumulator = "e8m12", operand = "bfloat16" }',
        {"size": (8, 4), "twiddle": "e5m2", "scaling": "stage"},
    ),
}
FUNCTIONS = {"winograd": sn.mac.products.conv2d_winograd, "fft": sn.mac.products.conv2d_fft}
LENET = Settings("lenet5", network_options={"sizes": [2, 2, 4, 8]}, samples=96, held_out=32, batch=32, epochs=2)


def table(algorithm, more=""):
    transform = 'transform = { accumulator = "bfloat16", rounding = "toward_zero" }'
    return f'{NARROW}algorithm = "{algorithm}"\n{transform}\n{TABLES[algorithm][0]}\n{more}'


def operands(layer, seed=1):
    rng = np.random.default_rng(seed)
    x, w, b = (np.float32(rng.normal(size=shape)) for shape in ((2, 3, 5, 4), (4, 3, 3, 3), 4))
    return [leaf(layer, layer.round("master", part), name) for part, name in ((x, "x"), (w, "w"), (b, "b"))]


def passed(layer, padding=1):
    """The tensors of a convolution, its value and what it passes back."""
    x, w, b = operands(layer)
    y = conv2d(x, w, b, layer, padding=padding)
    error = layer.round("errors", np.float32(np.random.default_rng(2).normal(size=y.value.shape)))
    y.backward(error)
    return x, w, b, y.value, error


@cases("algorithm", TABLES)
def test_a_layers_products_are_those_of_the_function(algorithm, tmp_path):
    layer = numerics_of(tmp_path, table(algorithm)).layer("conv")
    x, w, b, value, error = passed(layer)
    a, k = sn.quantize(x.value, "bfloat16"), sn.quantize(w.value, "e4m3fn")
    options = {
        **TABLES[algorithm][1],
        "transform": sn.MadUnit("bfloat16", operand="bfloat16", rounding="toward_zero"),
        "output": sn.MadUnit("e8m12", operand="bfloat16"),
    }
    start = sn.quantize(b.value, "e8m12")[:, None, None]
    function, forward = FUNCTIONS[algorithm], sn.MadUnit("e6m9", operand="bfloat16")
    assert np.array_equal(value, function(a, k, forward, start, padding=1, **options))
    wide, turned = sn.MadUnit("binary32", operand="bfloat16"), k.swapaxes(0, 1)[..., ::-1, ::-1]
    assert np.array_equal(x.gradient, function(error, turned, wide, padding=1, **options))
    direct = sn.mac.products.conv2d_backward_weight(a, error, wide, kernel=3, padding=1)
    assert np.array_equal(w.gradient, sn.quantize(direct, "bfloat16"))
    assert layer.convolved == {"forward": algorithm, "backward_data": algorithm, "backward_weight": "direct"}
    assert not np.array_equal(value, sn.conv2d(a, k, wide, start, padding=1))


@cases("padding", [0, (2, 1)])
@cases("algorithm", TABLES)
def test_in_binary64_values_and_gradients_are_those_of_the_direct_products(algorithm, padding, tmp_path):
    units = '\n[units]\nforward = { accumulator = "binary64" }\nbackward_data = { accumulator = "binary64" }\n'
    wide = f'[roles]\ndefault = "binary64"{units}backward_weight = {{ accumulator = "binary64" }}\n'
    found = passed(numerics_of(tmp_path, f'{wide}[convolution]\nalgorithm = "{algorithm}"').layer("conv"), padding)
    want = passed(numerics_of(tmp_path, wide).layer("conv"), padding)
    np.testing.assert_allclose(found[3], want[3], atol=1e-12)
    for mine, other in zip(found[:3], want[:3], strict=True):
        np.testing.assert_allclose(mine.gradient, other.gradient, atol=1e-12)


def test_a_run_states_it_and_resumes_to_the_same_bytes(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(table("fft").replace("[8, 4]", "8") + '[layers."conv2".convolution]\nalgorithm = "direct"\n')
    path = interrupted(load_design(file), LENET, tmp_path, at=4, statistics=5)
    config = json.loads(path.read_text().splitlines()[0])["config"]
    assert config["convolutions"] == {
        "conv1": {"forward": "fft", "backward_weight": "direct"},
        "conv2": {"forward": "direct", "backward_data": "direct", "backward_weight": "direct"},
        "conv3": {"forward": "fft", "backward_data": "fft", "backward_weight": "direct"},
    }
    layers = config["design"]["layers"]
    stated = layers["conv1"]["convolution"]
    assert stated["output"]["accumulator"] == "e8m12" and stated["transform"]["operand"] == ["bfloat16"] * 2
    assert (stated["size"], stated["twiddle"], stated["otherwise"]) == (8, "e5m2", "error")
    assert "convolution" not in layers["conv2"]
    rows = [json.loads(row) for row in path.with_name("seed-1.statistics.jsonl").read_text().splitlines()[1:]]
    assert {row["format"] for row in rows if row["layer"] == "conv1" and row["role"] == "forward"} == {"e8m12"}
    formats = {tensor.format for tensor in workload(LENET, load_design(file)).tensors}
    assert "e8m12" in formats


@cases(
    "more, says",
    [
        (
            "",
            r"layer 'conv1': .* the pass forward of this one \(5 x 5 kernels.*kernels are 3 x 3.*convolution\] algorit",
        ),
        (
            'otherwise = "direct"\n[layers."fc1".convolution]\nalgorithm = "fft"',
            "matches no layer that convolves; .*conv3",
        ),
    ],
)
def test_what_it_does_not_have_is_refused_before_there_is_a_record(more, says, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(table("winograd", more))
    with pytest.raises(ValueError, match=says):
        Run(LENET, load_design(file), 1)


def test_where_the_design_says_so_it_is_computed_directly(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(table("winograd", 'otherwise = "direct"'))
    convolutions = Run(LENET, load_design(file), 1).header()["config"]["convolutions"]
    why = "direct: kernels are 3 x 3, got 5 x 5; softnum.conv2d takes others"
    assert convolutions["conv2"] == {"forward": why, "backward_data": why, "backward_weight": "direct"}


@cases(
    "more, geometry, says",
    [
        ("", {"stride": 2}, "stride 2, padding 0.*stride must be 1, got 2"),
        ("", {"groups": 3}, "groups must be 1"),
        ("", {"dilation": (2, 1)}, "dilation must be 1"),
        ('[layers."conv".roles]\nweights = "mxfp8_e4m3"', {}, "role 'weights' has the block format"),
        (
            '[layers."conv".roles]\nweights = { format = "e2m1fn", scale = { rule = "nvfp4" } }',
            {},
            "'weights' has a scale",
        ),
        ('[layers."conv".units]\nforward = { accumulator = "e6m9", rounding = "stochastic" }', {}, "stochastically"),
    ],
)
def test_geometries_and_operands_that_it_does_not_have(more, geometry, says, tmp_path):
    for otherwise in ("error", "direct"):
        text = table("winograd", f'otherwise = "{otherwise}"\n{more}')
        layer = numerics_of(tmp_path, text.replace('weights = "e4m3fn"\n[units]', "[units]")).layer("conv")
        x, w, b = operands(layer)
        w = leaf(layer, w.value[:3, : 3 // geometry.get("groups", 1)], "w")
        b = leaf(layer, b.value[:3], "b")
        if otherwise == "error":
            with pytest.raises(ValueError, match=rf"layer 'conv': .*{says}"):
                conv2d(x, w, b, layer, **geometry)
        else:
            conv2d(x, w, b, layer, **geometry)
            assert layer.convolved["forward"].startswith("direct: ")


def test_padding_beyond_the_kernel_has_no_gradient_of_images(tmp_path):
    layer = numerics_of(tmp_path, table("winograd")).layer("conv")
    x, w, b = operands(layer)
    y = conv2d(x, w, b, layer, padding=3)
    with pytest.raises(ValueError, match="pass backward_data.*padding must be less than the kernel"):
        y.backward(np.ones_like(y.value))
    first = Tensor(x.value, layer.numerics.backend)
    conv2d(first, w, b, layer, padding=3).backward(np.ones_like(y.value))


@cases(
    "text, says",
    [
        ("tile = 2", r"convolution.algorithm: must be one of direct, winograd, fft, got None"),
        ('algorithm = "wino"', "got 'wino'"),
        ('algorithm = "winograd"\nsize = 4', "convolution: unknown key 'size'"),
        ('algorithm = "direct"\ntile = 4', "convolution: unknown key 'tile'"),
        ('algorithm = "winograd"\ntile = 3', "convolution: tile must be 2 or 4, got 3"),
        ('algorithm = "winograd"\ntile = [2]', r"tile must be 2 or 4, got \[2\]"),
        ('algorithm = "winograd"\ntiles = 2', "unknown key 'tiles'; did you mean 'tile'"),
        ('algorithm = "fft"\nsize = 12', "size must be a power of two"),
        ('algorithm = "fft"\nsize = ["a"]', "size must be an integer"),
        ('algorithm = "fft"\ntwiddle = "e9"', "convolution.twiddle"),
        ('algorithm = "fft"\nscaling = "first"', "scaling must be"),
        ('algorithm = "fft"\notherwise = "fft"', "convolution.otherwise: must be 'error' or 'direct'"),
        ('algorithm = "fft"\ntransform = { accumulator = "mxfp4" }', "convolution.transform.accumulator"),
        ('algorithm = "fft"\ntransform = { accumulator = "e6m9", rounding = "stochastic" }', "rounds stochastically"),
        ('algorithm = "fft"\noutput = { kind = "block_dot", accumulator = "binary32" }', "unknown kind 'block_dot'"),
        (
            'algorithm = "fft"\noutput = { kind = "fused", accumulator = "binary32" }',
            "convolution.output: .*terms",
        ),
    ],
)
def test_tables_that_are_not_valid(text, says, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f"[convolution]\n{text}\n")
    with pytest.raises(ValueError, match=rf"mine.toml: .*{says}"):
        load_design(file)


@pytest.mark.slow
@cases("algorithm", TABLES)
def test_the_same_bits_on_a_gpu(algorithm, tmp_path):
    """In Numba's simulator of one, unless this runs on a GPU."""
    pytest.importorskip("numba")
    found = []
    for device in ("cpu", "cuda"):
        layer = numerics_of(tmp_path, table(algorithm), device=device).layer("conv")
        rng, backend = np.random.default_rng(1), layer.numerics.backend
        given = [backend.array(np.float32(rng.normal(size=size))) for size in ((1, 2, 3, 3), (1, 2, 3, 3), 1)]
        leaves = [Parameter(layer.round("master", each), layer, "conv") for each in given]
        y = conv2d(*leaves, layer, padding=1)
        y.backward(backend.array(np.ones(y.value.shape, np.float32)))
        found.append([host(each) for each in (y.value, *(one.gradient for one in leaves))])
    assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


@needs_torch
@pytest.mark.filterwarnings("default")
def test_the_same_bits_in_pytorch(tmp_path):
    import torch

    import softnum.torch as st

    layer = numerics_of(tmp_path, table("winograd")).layer("conv")
    x, w, b, value, error = passed(layer)
    model = torch.nn.Conv2d(3, 4, 3, padding=1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor(w.value))
        model.bias.copy_(torch.tensor(b.value))
    st.convert(model, tmp_path / "mine.toml", first=None, last=None, quiet=True)
    image = torch.tensor(x.value, requires_grad=True)
    y = model(image)
    y.backward(torch.tensor(error))
    assert np.array_equal(y.detach().numpy(), value)
    assert np.array_equal(image.grad.numpy(), x.gradient)
    assert np.array_equal(model.weight.grad.numpy(), w.gradient)
    file = tmp_path / "mine.toml"
    strided = torch.nn.Conv2d(3, 4, 3, stride=2)
    with pytest.raises(ValueError, match=r"stride must be 1, got \(2, 2\)"):
        st.Recorder(tmp_path, st.convert(strided, file, quiet=True), (torch.zeros(2, 3, 5, 5),), seed=1, batch=2)
    file.write_text(table("winograd", 'otherwise = "direct"'))
    both = st.convert(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 4, 1)), file, quiet=True)
    with st.Recorder(tmp_path, both, (torch.zeros(2, 3, 5, 5),), seed=1, batch=2) as record:
        record.iteration(0.5)
        record.evaluation(accuracy=0.5)
    config = json.loads(record.path.read_text().splitlines()[0])["config"]
    why = "direct: kernels are 3 x 3, got 1 x 1; softnum.conv2d takes others"
    assert config["convolutions"] == {"0": {"forward": "winograd"}, "1": {"forward": why, "backward_data": why}}
