"""Block formats as operands: each product rounds its own, along its K, and nothing else changes."""

import dataclasses
import json
import tomllib

import numpy as np
import pytest

import softnum as sn
from softnum.train import Parameter, Settings, Tensor, design_gemms, explain, load_design, make_network, run
from softnum.train.designs import RoleRounding
from softnum.train.designs.loss_scaling import overflow_shows
from softnum.train.designs.unit_specs import describe_unit
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.numerics import LayerNumerics
from softnum.train.engine.tensor import linear
from softnum.train.engine.watch import watching
from softnum.train.layers.attention import matmul as attention_product
from softnum.train.layers.convolution import conv2d
from softnum.train.runs.loop import Run
from softnum.train.runs.record import read_lines
from softnum.tta.architectures import Precision
from tests.support.cases import cases
from tests.support.train_cases import BINARY64, loss_of, met, moved, numerics_of, spread, unfolded

#: every role in another format, with its own options; blocks of 32
BLOCKS = """
[roles]
default = "binary32"
input = "mxfp8_e4m3"
weights = { format = "mxfp4", scale_rule = "rceil" }
activations = { format = "mxfp6_e2m3", scale_rule = "even", rounding = "nearest_away" }
errors = { format = "mxfp8_e5m2", overflow = "infinity", rounding = "toward_zero" }
"""
ROUNDINGS = {
    "x": {"fmt": "mxfp6_e2m3", "scale_rule": "even", "rounding": "nearest_away"},
    "w": {"fmt": "mxfp4", "scale_rule": "rceil"},
    "e": {"fmt": "mxfp8_e5m2", "overflow": "infinity", "rounding": "toward_zero"},
}
SMALL = Settings(network_options={"sizes": (64, 16, 10)}, epochs=2, batch=128)
#: the operands of every product in integers of 32 bits, all else in binary64
WIDE = """
[roles]
default = "binary64"
input = "wide.py:wide"
weights = "wide.py:wide"
activations = "wide.py:wide"
errors = "wide.py:wide"
[units]
forward = { accumulator = "binary64" }
backward_data = { accumulator = "binary64" }
backward_weight = { accumulator = "binary64" }
"""
#: of layers that multiply nothing
LOOKED_UP = """
[layers."embedding|position".roles]
input = "binary64"
weights = "binary64"
activations = "binary64"
errors = "binary64"
"""


# -- products against numbers rounded one by one -----------------------------------------------------------------------
def product(a, b, rounded_a, rounded_b, c=0.0):
    """a @ b, rounded along K: exact sums of 32 products, each added to the accumulator in binary32."""
    a = sn.quantize(np.asarray(a, np.float64), axis=1, **rounded_a)
    b = sn.quantize(np.asarray(b, np.float64), axis=0, **rounded_b)
    total = sn.encode(np.broadcast_to(np.asarray(c, np.float64), (a.shape[0], b.shape[1])), "binary32")
    for k in range(0, a.shape[1], 32):
        block = a[:, k : k + 32] @ b[k : k + 32]  # exact: at most 41 bits
        total = sn.add(total, sn.encode(block, "binary64"), ("binary32", "binary64"), out_fmt="binary32")
    return sn.decode(total, "binary32")


def parameter(layer, x, name):
    return Parameter(x, layer, name)


def linear_case(tmp_path, text=BLOCKS):
    """(what softnum makes of a layer and its gradients, what is right), by name."""
    rng = np.random.default_rng(1)
    layer = numerics_of(tmp_path, text).layer("conv")  # not the first: it takes activations
    x, w, b, e = (spread(rng, shape) for shape in ((45, 70), (70, 37), (37,), (45, 37)))
    source = parameter(layer, x, "x")
    weight, bias = parameter(layer, w, "w"), parameter(layer, b, "b")
    y = linear(source, weight, bias, layer)
    y.backward(e)
    r = ROUNDINGS
    want = {
        "y": product(x, w, r["x"], r["w"], b),
        "x": product(e, w.T, r["e"], r["w"]),
        "w": product(x.T, e, r["x"], r["e"]),
        "b": product(np.ones((1, 45)), e, r["x"], r["e"])[0],
    }
    return {"y": y.value, "x": source.gradient, "w": weight.gradient, "b": bias.gradient}, want


def test_a_layers_products_round_their_own_operands(tmp_path):
    got, want = linear_case(tmp_path)
    for name in want:
        assert np.array_equal(got[name], want[name]), name
        assert got[name].dtype == np.float32


@pytest.mark.parametrize("role", ["weights", "activations", "errors"])
def test_rounding_along_another_axis_is_noticed(role, tmp_path, monkeypatch):
    def wrong(self, name, x, axis):
        rounding, axes = self.design.roles[name], (-3 - axis, axis)
        if name == role:
            x = sn.quantize(x.astype(np.float64), rounding.format, axis=axes[0])
        return NumpyBackend().quantize_blocks(x, rounding, axes[1], None)

    monkeypatch.setattr(LayerNumerics, "_in_blocks", wrong)
    got, want = linear_case(tmp_path)
    touched = {"weights": "yx", "activations": "yw", "errors": "xwb"}[role]
    assert {name for name in want if not np.array_equal(got[name], want[name])} == set(touched)


def test_rounding_what_is_rounded_is_noticed(tmp_path, monkeypatch):
    """The second rounding starts from the numbers before the first."""
    first = {}

    def twice(self, name, x, axis):
        x = first.setdefault(id(x), x)
        if name == "activations" and axis == -2:
            x = sn.quantize(x, axis=-1, **ROUNDINGS["x"])
        return NumpyBackend().quantize_blocks(x, self.design.roles[name], axis, None)

    monkeypatch.setattr(LayerNumerics, "_in_blocks", twice)
    got, want = linear_case(tmp_path)
    assert np.array_equal(got["y"], want["y"]) and not np.array_equal(got["w"], want["w"])


def test_sparse_operands_are_pruned_before_their_blocks_are_rounded(tmp_path):
    rng = np.random.default_rng(4)
    text = BLOCKS.replace('scale_rule = "rceil" }', 'scale_rule = "rceil", sparsity = { pattern = "2:4" } }')
    layer = numerics_of(tmp_path, text).layer("conv")
    x, w, b, e = (spread(rng, shape) for shape in ((9, 72), (72, 5), (5,), (9, 5)))
    source, weight = parameter(layer, x, "x"), parameter(layer, w, "w")
    y = linear(source, weight, parameter(layer, b, "b"), layer)
    y.backward(e)
    groups = np.abs(w).reshape(18, 4, 5)
    pruned = np.where(groups >= np.sort(groups, axis=1)[:, 2:3], w.reshape(18, 4, 5), 0).reshape(w.shape)
    assert (pruned == 0).sum() == 180
    r = ROUNDINGS
    assert np.array_equal(y.value, product(x, pruned, r["x"], r["w"], b))
    assert np.array_equal(source.gradient, product(e, pruned.T, r["e"], r["w"]))
    assert np.array_equal(weight.gradient, product(x.T, e, r["x"], r["e"]))


def test_attentions_products_round_their_own_operands(tmp_path):
    rng = np.random.default_rng(2)
    layer = numerics_of(tmp_path, BLOCKS).layer("conv")
    a, b, e = (spread(rng, shape) for shape in ((2, 3, 5, 40), (2, 3, 40, 7), (2, 3, 5, 7)))
    first, second = parameter(layer, a, "a"), parameter(layer, b, "b")
    y = attention_product(first, second, layer)
    y.backward(e)
    r = ROUNDINGS
    for i in np.ndindex(2, 3):
        assert np.array_equal(y.value[i], product(a[i], b[i], r["x"], r["w"]))
        assert np.array_equal(first.gradient[i], product(e[i], b[i].T, r["e"], r["w"]))
        assert np.array_equal(second.gradient[i], product(a[i].T, e[i], r["x"], r["e"]))


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "bias"),
    [((1, 1), (0, 0), (1, 1), 1, True), ((2, 1), (1, 2), (1, 2), 2, True), ((1, 1), (2, 0), (1, 1), 1, False)],
)
def test_a_convolutions_products_round_their_own_operands(stride, padding, dilation, groups, bias, tmp_path):
    rng = np.random.default_rng(3)
    layer = numerics_of(tmp_path, BLOCKS).layer("conv")
    x, w, b = (spread(rng, shape) for shape in ((2, 4, 6, 5), (6, 4 // groups, 3, 2), (6,)))
    source, weight, own = parameter(layer, x, "x"), parameter(layer, w, "w"), parameter(layer, b, "b")
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = conv2d(source, weight, own if bias else None, layer, **geometry)
    e = spread(rng, y.value.shape)
    y.backward(e)
    r, per = ROUNDINGS, 6 // groups
    rows, result = unfolded(x, w.shape, **geometry)
    sources = met(e, w.shape, (6, 5), **geometry)
    assert y.value.shape == (2, 6, *result) and source.gradient.shape == x.shape
    for g in range(groups):
        part = slice(g * per, (g + 1) * per)
        errors = e[:, part].transpose(0, 2, 3, 1).reshape(-1, per)
        values = y.value[:, part].transpose(0, 2, 3, 1).reshape(-1, per)
        matrix = w[part].reshape(per, -1).T
        assert np.array_equal(values, product(rows[g], matrix, r["x"], r["w"], b[part] if bias else 0.0))
        assert np.array_equal(
            weight.gradient[part], product(rows[g].T, errors, r["x"], r["e"]).T.reshape(w[part].shape)
        )
        if bias:
            assert np.array_equal(own.gradient[part], product(np.ones((1, len(errors))), errors, r["x"], r["e"])[0])
        channels = 4 // groups
        back = w[part].transpose(0, 2, 3, 1).reshape(-1, channels)
        want = product(sources[g], back, r["e"], r["w"]).reshape(2, 6, 5, channels).transpose(0, 3, 1, 2)
        assert np.array_equal(source.gradient[:, g * channels : (g + 1) * channels], want)


# -- whole networks ----------------------------------------------------------------------------------------------------
CASES = {
    "mlp": ({"sizes": (20, 9, 7, 4)}, 20),
    "lstm": ({"sizes": (4, 5, 4), "steps": 3}, 12),
    "lenet5": ({"sizes": (2, 3, 4, 5), "image": (1, 8, 8)}, 64),
    "transformer": ({"sizes": (6, 8), "depth": 1, "image": (1, 4, 4)}, 16),
    "recurrent-lm": ({"sizes": (3, 4), "steps": 4, "cell": "gru", "words": 9}, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_in_wide_blocks_are_those_of_binary64(name, tmp_path):
    """Blocks of integers of 32 bits differ from binary64 by 2**-30 of their largest number."""
    options, features = CASES[name]
    (tmp_path / "wide.py").write_text('import softnum as sn\nwide = sn.BlockFormat("q2.30", "e8m0fnu", 7)\n')
    found = []
    for text in (BINARY64, WIDE + (LOOKED_UP if name in ("transformer", "recurrent-lm") else "")):
        net = make_network(name, **options)
        numerics, rng = moved(net, tmp_path, text)
        x, labels = rng.standard_normal((6, features)), rng.integers(0, 4, 6)
        if name == "recurrent-lm":
            x, labels = rng.integers(0, 9, (6, features)), rng.integers(0, 9, 6 * features)
        loss = loss_of(net, numerics, x, labels)
        loss.backward()
        found.append((loss.value, {p.name: p.gradient for p in net.parameters}))
    (plain, gradients), (blocks, others) = found
    assert plain != blocks and abs(plain - blocks) < 1e-7
    for key, gradient in gradients.items():
        assert gradient.shape == others[key].shape
        assert np.abs(gradient - others[key]).max() <= 1e-6 * np.abs(gradient).max() + 1e-12, key


def rounded_in_an_iteration(settings, design, iteration=1):
    work, seen = Run(settings, design, 1), []
    with watching(work.numerics, lambda event: seen.append(event)):
        work.train(iteration, np.arange(settings.batch))
    return work, [event for event in seen if event.method == "quantize_blocks"]


def test_a_cell_rounds_its_weights_once_along_each_axis():
    settings = Settings(network="lstm", network_options={"sizes": (8, 4, 10)}, epochs=1, batch=4)
    _, seen = rounded_in_an_iteration(settings, load_design("j-mxfp4"))
    own = [event for event in seen if event.layer == "lstm.hidden"]
    axes = [event.arguments[2] for event in own if event.place == "weights"]
    assert sorted(axes) == [-2, -1]
    # of the seven steps with a product: the hidden state forwards and backwards, the errors along both axes
    assert [sum(event.place == place for event in own) for place in ("activations", "errors")] == [14, 14]


def test_every_rounding_has_its_own_random_words():
    _work, seen = rounded_in_an_iteration(SMALL, load_design("j-mxfp4"))
    keys = [event.arguments[3] for event in seen]
    assert len(set(keys)) == len(keys)
    errors = [event for event in seen if event.place == "errors"]
    assert [(event.layer, event.arguments[2]) for event in errors] == [("fc2", -1), ("fc2", -2), ("fc1", -2)]
    for event in errors:  # from the numbers before any rounding, with the site's words
        x, _role, axis, key = event.arguments
        options = {"axis": axis, "scale_rule": "rceil", "rounding": "stochastic", "key": key}
        assert np.array_equal(event.result.decode(), sn.quantize(np.asarray(x, np.float64), "mxfp4", **options))
    assert errors[0].arguments[0] is errors[1].arguments[0]


def test_a_stochastic_role_leaves_the_words_of_the_others(tmp_path):
    file = tmp_path / "mine.toml"
    keys = []
    for rounding in ("nearest_even", "stochastic"):
        file.write_text(f'[roles]\ninput = "mxfp4"\nactivations = "mxfp4"\nerrors = "mxfp4"\n'
                        f'weights = {{ format = "mxfp4", rounding = "{rounding}" }}\n')  # fmt: skip
        _, seen = rounded_in_an_iteration(SMALL, load_design(file))
        keys.append([event.arguments[3] for event in seen])
    assert keys[0] == keys[1]


@pytest.mark.parametrize("network", ["mlp", "lenet5"])
def test_an_interrupted_run_ends_with_the_same_bytes(network, tmp_path):
    settings = SMALL
    if network == "lenet5":
        options = {"network_options": {"sizes": (2, 2, 4, 4)}, "evaluate_every": 3}
        settings = Settings(network=network, epochs=2, batch=450, **options)
    design = load_design("j-mxfp4")

    def interrupt(iteration, total, accuracy):
        if iteration == total // 2 + 1:
            raise KeyboardInterrupt

    whole = run(design, settings, seed=1, out=tmp_path / "whole", threads=2).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run(design, settings, seed=1, out=tmp_path / "cut", progress=interrupt)
    assert run(design, settings, seed=1, out=tmp_path / "cut").read_bytes() == whole


# -- what is said of them ----------------------------------------------------------------------------------------------
def test_a_record_says_what_the_blocks_are(tmp_path):
    numerics = numerics_of(tmp_path, BLOCKS, ["fc1", "fc2"])
    facts = numerics.layer("fc2").design.describe()
    assert facts == json.loads(json.dumps(facts))
    assert facts["roles"]["weights"] == {
        "format": "mxfp4_e2m1", "bits": 4.25, "element": "e2m1fn", "scale": "e8m0fnu", "block_size": 32,
        "rounding": "nearest_even", "scale_rule": "rceil",
    }  # fmt: skip
    assert facts["roles"]["errors"]["overflow"] == "infinity" and facts["roles"]["errors"]["scale_rule"] == "floor"
    assert facts["units"]["forward"]["kind"] == "block_dot"
    assert facts["units"]["forward"]["operand"] == ["mxfp6_e2m3", "mxfp4_e2m1"]


def test_gemms_count_a_share_of_the_scale():
    rows = design_gemms(load_design("i-mxfp8"), make_network("mlp"), 32)
    assert {row["bits"] for row in rows} == {8.25}
    assert rows[0]["formats"] == ["mxfp8_e4m3", "mxfp8_e4m3"]


def test_explain_lists_each_products_own_rounding():
    steps = explain(Settings(batch=32), load_design("i-mxfp8")).steps
    rounds = [(step.layer, step.role) for step in steps if step.operation == "round" and step.format == "mxfp8_e4m3"]
    assert rounds == [
        ("fc1", "input"), ("fc1", "weights"), ("fc2", "activations"), ("fc2", "weights"),
        ("fc2", "errors"), ("fc2", "weights"), ("fc2", "activations"), ("fc2", "errors"),
        ("fc1", "input"), ("fc1", "errors"),
    ]  # fmt: skip
    first = next(step for step in steps if step.operation == "matmul")
    assert [name for name, _ in first.operands] == ["mxfp8_e4m3", "mxfp8_e4m3", "binary32"]
    assert first.bytes == (32 * 64 * 8.25 + 64 * 128 * 8.25 + 128 * 32 + 32 * 128 * 32) / 8
    assert first.unit["kind"] == "block_dot" and first.flops == 2 * 32 * 64 * 128
    errors = next(step for step in steps if step.layer == "fc2" and step.role == "backward_data")
    # errors of 10 features and weights of 10 outputs: a block of 10 has a whole scale
    assert errors.bytes == 32 * (10 + 1) + 128 * (10 + 1) + 32 * 128 * 4


def test_statistics_count_what_a_blocks_scale_cuts_off(tmp_path):
    files = {}
    for rule in ("floor", "rceil"):
        text = (load_design("j-mxfp4").path).read_text().replace('"rceil"', f'"{rule}"')
        files[rule] = tmp_path / f"{rule}.toml"
        files[rule].write_text(text.replace("j-mxfp4", rule))
        plain = run(load_design(files[rule]), SMALL, seed=1, out=tmp_path / "plain")
        record = run(load_design(files[rule]), SMALL, seed=1, out=tmp_path / "out", statistics=9)
        assert record.read_bytes() == plain.read_bytes()
        rows = read_lines(record.with_suffix(".statistics.jsonl"))[1:]
        rows = [row for row in rows if row["format"] == "mxfp4_e2m1"]
        assert {row["role"] for row in rows} == {"input", "weights", "activations", "errors"}
        assert all(row["span"] is None and 0 < row["relative_error"] < 1 for row in rows)
        saturated = sum(row["saturated"] for row in rows)
        assert saturated == 0 if rule == "rceil" else saturated > 100


def test_statistics_of_products_are_against_exact_ones(tmp_path):
    from softnum.train.runs.statistics import Watch

    file = tmp_path / "coarse.toml"
    file.write_text(load_design("i-mxfp8").path.read_text().replace('accumulator = "binary32"', 'accumulator = "e6m9"'))
    work, watch, seen = Run(SMALL, load_design(file), 1), Watch(), []

    def listen(event):
        seen.append(event)
        watch(event)

    with watching(work.numerics, listen):
        work.train(1, np.arange(128))
    event = next(e for e in seen if e.method == "matmul")
    (forward,) = [t for k, t in watch.tensors.items() if k[:2] == ("fc1", "forward")]
    a, b, c = event.arguments[0].decode(), event.arguments[1].decode(), event.arguments[3]
    exact = a @ b + c.astype(np.float64)
    want = np.linalg.norm(event.result - exact) / np.linalg.norm(exact)
    assert 1e-5 < want < 1e-2 and np.isclose(forward.describe(1)["relative_error"], want, rtol=1e-6)


@pytest.mark.parametrize("name", [*sn.formats.block_format_names(), "odd"])
def test_ones_are_exact_in_every_block_format(name):
    fmt = sn.BlockFormat("q1.3", "e8m0fnu", 4) if name == "odd" else sn.format(name)
    ones = NumpyBackend().block_ones((1, 37), fmt)
    assert np.array_equal(ones.decode(), np.ones((1, 37))) and ones.axis == -1


def test_ones_that_are_not_are_an_error():
    fmt = sn.BlockFormat("e4m3fn", "q4.2", 16)  # the inverse of 256 is no scale
    with pytest.raises(ValueError, match=r"products with 1, which .* lacks: q4.2 has no scale 0.00390625"):
        NumpyBackend().block_ones((1, 3), fmt)


@pytest.mark.parametrize(
    ("fmt", "shows"),
    [("mxfp8_e4m3", True), ("mxint8", True), ("nvfp4", True), (sn.BlockFormat("e4m3fn", "e4m3fn", 16), False),
     (sn.BlockFormat("e4m3fn", "q8.8", 16), False)],
)  # fmt: skip
def test_whether_overflow_shows_in_blocks(fmt, shows):
    fmt = sn.format(fmt)
    assert overflow_shows(RoleRounding(fmt)) is shows
    if shows:  # the largest scale cuts no finite number off
        assert np.isnan(sn.quantize([np.inf], fmt)[0]) and sn.quantize([3e38], fmt)[0] >= 2.8e38


# -- what is refused ---------------------------------------------------------------------------------------------------
BLOCKED = '[roles]\ninput = "mxfp4"\nweights = "mxfp4"\nactivations = "mxfp4"\nerrors = "mxfp4"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[roles]\nmaster = "mxfp4"', r"roles.master.format: 'mxfp4' is a block format, whose blocks run along"),
        ('[roles]\ndefault = "mxfp4"', r"roles.default.format: .* which only operands have \(roles input, weights"),
        ('[roles]\nupdate.weight = "mxfp4"', "roles.update.weight.format: 'mxfp4' is a block format"),
        ('[units]\nforward = { accumulator = "mxfp4" }', "units.forward.accumulator: 'mxfp4' is a block format"),
        ('[units]\nforward = { kind = "mad", operand = "mxfp4", accumulator = "e6m9" }', "operand: 'mxfp4' is a block"),
        ('[roles]\nweights = { format = "e5m2", scale_rule = "floor" }', "scale_rule='floor' is for block formats"),
        ('[roles]\nweights = { format = "mxfp4", scale_rule = "flor" }', "unknown scale rule 'flor'"),
        ('[roles]\nweights = { format = "mxfp4", scale_rule = 3 }', "unknown scale rule 3"),
        ('[roles]\nweights = { format = "nvfp4", scale_rule = "floor" }', "not defined with a tensor scale"),
        ('[roles]\nweights = { format = "mxfp4", overflow = "wrap" }', "overflow='wrap' is for fixed point"),
        ('[roles]\nweights = { format = "mxfp9" }', "unknown block format 'mxfp9'"),
        (f"{BLOCKED}[units]\nforward = {{ kind = \"block_dot\" }}", "units.forward: has no accumulator"),
        (f"{BLOCKED}[units]\nforward = {{ kind = \"block_dot\", accumulator = \"e6m9\", lanes = 2 }}",
         "unknown key 'lanes'"),
        (BLOCKED + "[units]\nforward = { kind = \"mad\", accumulator = \"e6m9\", inner = "
         "{ accumulator = \"e6m9\" } }",
         "unknown key 'inner'"),
        (f"{BLOCKED}[units]\nforward = {{ kind = \"block_dot\", accumulator = \"e6m9\", inner = "
         "{ kind = \"block_dot\", accumulator = \"e6m9\" } }", "units.forward.inner: unknown kind 'block_dot'"),
    ],
)  # fmt: skip
def test_unusable_files(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_design(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[roles]\nweights = "mxfp4"\n[units]\nforward = { kind = "block_dot", accumulator = "binary32" }',
         r"multiplies role 'activations' \(binary32\) by role 'weights' \(mxfp4.*for both operands"),
        (BLOCKED.replace('errors = "mxfp4"', 'errors = { format = "e5m2", scale = { per = "row" } }'),
         r"role 'errors' \(e5m2\) by role 'weights' \(mxfp4_e2m1\), one in a block format and one with a scale"),
        ('[roles]\nweights = "nvfp4"\n[units]\nforward = "nvidia_h100_bf16"',
         r"operands bfloat16, of 8 significant bits, and numbers of role 'weights' \(nvfp4\).* have up to 30"),
        (f'{BLOCKED}master = "none"', "state master's format"),
        (f'{BLOCKED}[units]\nforward = {{ kind = "mad", accumulator = "e6m9" }}',
         "units.forward: kind 'mad' multiplies single numbers, got mxfp4_e2m1 x mxfp4_e2m1; block formats take kind"),
        ('[units]\nforward = { kind = "block_dot", accumulator = "e6m9" }', "'block_dot' multiplies block formats"),
        (f'{BLOCKED}[units]\nforward = {{ accumulator = "e6m9", chunk = 4 }}', "chunk: not an option of kind"),
        (f'{BLOCKED}[units]\nforward = "nvidia_h100_e4m3"', "do not hold every value of role 'activations'"),
        (f'{BLOCKED}[units]\nforward = "ocp_mxfp8_e4m3"', "do not hold every value of role 'activations'"),
        (f'{BLOCKED}[units]\nforward = {{ kind = "block_dot", accumulator = "e6m9", inner = "nvidia_h100_e4m3" }}',
         "inner multiplies"),
        (BLOCKED.replace('weights = "mxfp4"', 'weights = "nvfp4"'), "blocks of 32 .* and of 16 .* do not meet"),
    ],
)  # fmt: skip
def test_unusable_together(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    design = load_design(file)
    with pytest.raises(ValueError, match=message):
        design.layer("fc2")


def test_values_that_binary64_lacks_are_refused(tmp_path):
    (tmp_path / "far.py").write_text('import softnum as sn\nfar = sn.BlockFormat("q2.60", "e8m0fnu", 4)\n')
    file = tmp_path / "mine.toml"
    file.write_text('[roles]\nweights = "far.py:far"')
    with pytest.raises(ValueError, match="has values that binary64, which carries them, cannot hold"):
        load_design(file)


@pytest.mark.parametrize("name", ["transformer", "recurrent-lm"])
def test_tables_that_are_looked_up_have_no_blocks(name, tmp_path):
    net = make_network(name, **CASES[name][0])
    numerics, _ = moved(net, tmp_path, f"{BLOCKED}")
    x = np.zeros((2, 4), np.int64) if name == "recurrent-lm" else np.zeros((2, 16), np.float32)
    with pytest.raises(ValueError, match=r"looked up, not multiplied, .*\[layers.\"(position|embedding)\".roles\]"):
        net.forward(Tensor(x, numerics.backend))


@cases("name", ["i-mxfp8", "j-mxfp4"])
def test_shipped_designs_of_blocks_train_a_transformer(name, tmp_path):
    settings = Settings(
        network="transformer", network_options={"sizes": (8, 8), "depth": 1}, batch=64, epochs=1, samples=128
    )
    run(load_design(name), settings, seed=1, out=tmp_path)
    header, *rows = read_lines(tmp_path / name / "seed-1.jsonl")
    layers = header["config"]["design"]["layers"]
    plain = {"format": "binary32", "bits": 32, "rounding": "nearest_even"}
    assert all(layers["position"]["roles"][role] == plain for role in ("input", "weights", "activations", "errors"))
    assert layers["position"]["units"]["backward_weight"]["kind"] == "mad"
    assert layers["fc"]["roles"]["weights"]["format"].startswith("mx")
    assert layers["fc"]["units"]["backward_weight"]["kind"] == "block_dot"
    assert all(np.isfinite(row["loss"]) for row in rows)


def test_layers_that_are_looked_up_take_the_default_and_the_accumulator(tmp_path):
    def looked_up(text):
        (tmp_path / "mine.toml").write_text(text)
        return load_design(tmp_path / "mine.toml").layer("position", looked_up=True)

    text = f'{BLOCKED}default = {{ format = "e6m9", rounding = "stochastic", stochastic_bits = 8 }}\n[units]\n'
    for unit in (
        'backward_weight = { accumulator = "bfloat16" }',
        'backward_weight = { kind = "block_dot", accumulator = "bfloat16", rounding = "toward_zero" }',
        'backward_weight = { accumulator = "bfloat16", inner = { kind = "exact", accumulator = "binary32" } }',
        'backward_weight = { kind = "block_dot", operand = "mxfp4", accumulator = "bfloat16" }',
    ):
        layer = looked_up(text + unit)
        assert layer.roles["weights"] == layer.roles["output"]
        assert layer.roles["errors"].stochastic and layer.roles["errors"].format == sn.format("e6m9")
        assert layer.units["backward_weight"] == sn.MadUnit("bfloat16", operand="e6m9")
    preset = looked_up(f'{BLOCKED}[units]\nforward = "ocp_mxfp4_e2m1"')
    assert preset.units["forward"] == sn.MadUnit("binary32", operand="binary32")
    own = looked_up(f"{BLOCKED}[layers.position.roles]\nweights = 'e5m2'")  # what is stated in single numbers stays
    assert own.roles["weights"].format == sn.format("e5m2") and own.roles["errors"].format == sn.format("binary32")


def test_operators_with_sums_have_no_blocks(tmp_path):
    from softnum.train.engine.functions import operate

    layer = numerics_of(tmp_path, f"{BLOCKED}").layer("conv")
    op = sn.operator("function (A[M, K], B[K, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    x = Tensor(np.ones((2, 2), np.float32), layer.numerics.backend)
    with pytest.raises(ValueError, match=r"layer 'conv': the operator .* computes with values, and role 'weights' has"):
        operate(op, (x, x), layer)


def test_infinities_in_blocks_whose_scales_have_no_nan(tmp_path):
    (tmp_path / "own.py").write_text('import softnum as sn\nown = sn.BlockFormat("e2m1fn", "q8.8", 32)\n')
    layer = numerics_of(tmp_path, BLOCKED.replace("mxfp4", "own.py:own")).layer("conv")
    operand = layer.errors(np.float32([[1, np.inf]]))
    with pytest.raises(
        ValueError, match=r"contains an infinity .* \(layer 'conv', role 'errors'\); give the role scales"
    ):
        operand.along(-1)


def test_rounding_to_a_block_role_without_a_product_is_an_error(tmp_path):
    layer = numerics_of(tmp_path, f"{BLOCKED}").layer("conv")
    with pytest.raises(TypeError, match="role 'weights' has the block format mxfp4_e2m1; use `operand`"):
        layer.round("weights", np.ones((2, 2), np.float32))


# -- units -------------------------------------------------------------------------------------------------------------
def test_units_of_blocks(tmp_path):
    text = f"""
{BLOCKED}
[units]
forward = {{ kind = "block_dot", accumulator = "e6m9", rounding = "stochastic", stochastic_bits = 8 }}
backward_weight = "ocp_mxfp4_e2m1"
[units.backward_data]
accumulator = "binary32"
product = "e8m10"
product_rounding = "toward_zero"
inner = {{ kind = "fused", terms = 8, fraction_bits = 20, accumulator = "binary32" }}
"""
    units = numerics_of(tmp_path, text).layer("conv").design.units
    assert units["forward"] == sn.BlockDotUnit("e6m9", operand="mxfp4", rounding="stochastic", stochastic_bits=8)
    inner = sn.FusedDotUnit(8, 20, "binary32", operand="e2m1fn")
    data = sn.BlockDotUnit("binary32", operand="mxfp4", product="e8m10", product_rounding="toward_zero", inner=inner)
    assert units["backward_data"] == data
    assert units["backward_weight"] == sn.unit("ocp_mxfp4_e2m1")
    facts = describe_unit(data)
    assert facts == json.loads(json.dumps(facts)) and facts["inner"]["kind"] == "fused"


def test_roles_follow_a_units_operand(tmp_path):
    text = "[units]\n" + "\n".join(
        f'{key} = "ocp_mxfp8_e5m2"' for key in ("forward", "backward_data", "backward_weight")
    )
    layer = numerics_of(tmp_path, text).layer("conv")
    assert {str(layer.design.roles[role].format) for role in ("weights", "activations", "errors")} == {"mxfp8_e5m2"}


def test_a_layer_may_be_without_blocks(tmp_path):
    file = tmp_path / "mine.toml"
    text = load_design("i-mxfp8").path.read_text()
    file.write_text(text + '\n[layers."fc2".roles]\nweights = "e5m2"\nactivations = "e5m2"\nerrors = "e5m2"\n')
    design = load_design(file)
    assert design.layer("fc2").units["forward"] == sn.MadUnit("binary32", operand="e5m2")
    assert read_lines(run(design, SMALL, seed=1, out=tmp_path))[-1]["finished"]


@pytest.mark.parametrize("fmt", ["mxint8", "nvfp4"])
def test_other_formats_train(fmt, tmp_path):
    text = "[roles]\n" + "\n".join(f'{role} = "{fmt}"' for role in ("input", "weights", "activations", "errors"))
    file = tmp_path / "mine.toml"
    file.write_text(text)
    settings = dataclasses.replace(SMALL, epochs=6, learning_rate=0.3, evaluate_every=60)
    rows = read_lines(run(load_design(file), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.8


def test_a_block_format_is_stated_by_its_parts(tmp_path):
    named, parts = tmp_path / "named.toml", tmp_path / "parts.toml"
    text = load_design("i-mxfp8").path.read_text().replace("i-mxfp8", "x")
    named.write_text(text)
    table = '{ element = "e4m3fn", scale = "e8m0fnu", block_size = 32 }'
    parts.write_text(text.replace('format = "mxfp8_e4m3"', f"format = {table}"))
    records = [run(load_design(file), SMALL, seed=1, out=tmp_path / file.stem) for file in (named, parts)]
    first, second = (record.read_bytes().split(b"\n", 1) for record in records)
    assert first[1] == second[1]
    weights = load_design(parts).layer("fc1").roles["weights"].describe()
    assert (weights["format"], weights["bits"], weights["block_size"]) == ("e4m3fn_by32_e8m0fnu", 8.25, 32)
    work = tomllib.loads(parts.read_text())
    assert Precision.of_design(work).weights.bits == 8.25
    parts.write_text(
        '[roles]\nweights = { format = { element = "e2m1fn", scale = "e4m3fn", tensor_scale = "binary32", '
        'block_size = "row" } }\nactivations = "nvfp4"\n'
    )
    fmt = load_design(parts).roles["weights"].format
    assert fmt == sn.BlockFormat("e2m1fn", "e4m3fn", None, tensor_scale="binary32")


@pytest.mark.parametrize(
    ("role", "table", "message"),
    [
        ("weights", '{ element = "e2m1fn", scale = "e4m3fn" }', "is a block format's table, and has no block_size"),
        ("weights", '{ elements = "e2m1fn" }', "unknown key 'elements'; did you mean 'element'"),
        ("weights", '{ element = "e2m1fn", scale = "e9m99", block_size = 16 }', "roles.weights.format.scale: "),
        ("weights", '{ element = "e2m1fn", scale = "e4m3fn", block_size = 0 }', "block_size must lie in 1"),
        ("weights", '{ element = "e2m1fn", scale = "e4m3fn", block_size = "all" }', "block_size must be an integer"),
        ("elementwise", '{ element = "e2m1fn", scale = "e4m3fn", block_size = 16 }', "which only operands have"),
    ],
)
def test_unusable_parts_of_a_block_format_are_errors(role, table, message, tmp_path):
    (tmp_path / "mine.toml").write_text(f"[roles]\n{role} = {{ format = {table} }}\n")
    with pytest.raises(ValueError, match=message):
        load_design(tmp_path / "mine.toml")
