"""Layers whose K ranks share: the ranks themselves with parts of the weights, designs, records, both engines."""

import json

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, load_design, make_network
from softnum.train.datasets.sets import Text
from softnum.train.datasets.vocabulary import Vocabulary
from softnum.train.designs.split_units import check_divisions
from softnum.train.engine.watch import watching
from softnum.train.runs.loop import Run
from tests.support.cases import cases
from tests.support.train_cases import loss_of, moved, numerics_of

SPLIT = '{ kind = "split", ranks = 2, collective = "ring(unit=\'bfloat16\')", inner = { accumulator = "binary32" } }'
ROLES = '[roles]\ndefault = "bfloat16"\nmaster = "binary32"\n'
PARALLEL = f"""{ROLES}
[layers.'.*(project|ff2)'.units]
forward = {SPLIT}
[layers.'.*(gate|ff1)'.units]
backward_data = {SPLIT}
[layers.'.*qkv'.units]
backward_data = {SPLIT[:-2]}, sections = [16, 8, 8] }}
"""
_WIDE, _RING = sn.MadUnit("binary32", operand="bfloat16"), sn.collective("ring", 2, unit="bfloat16")


def _b(x):
    return sn.quantize(np.asarray(x, np.float64), "bfloat16").astype(np.float32)


def _products(numerics, compute):
    """(layer, pass) -> the last call of a product: operands, C and result."""
    seen = {}

    def note(event):
        if event.method == "matmul":
            a, b, _, c, _ = event.arguments
            seen[event.layer, event.place] = a, b, c, event.result

    with watching(numerics, note):
        compute()
    return seen


def test_two_layers_are_those_of_ranks_with_parts_of_the_weights(tmp_path):
    """Megatron-LM's MLP, fc2 by columns and fc3 by rows: one all-reduce forwards, of fc3, and one backwards, of fc2."""
    net = make_network("mlp", sizes=(8, 16, 24, 10))
    text = f"{ROLES}[layers.fc3.units]\nforward = {SPLIT}\n[layers.fc2.units]\nbackward_data = {SPLIT}\n"
    numerics, rng = moved(net, tmp_path, text)
    x, labels = _b(rng.standard_normal((5, 8))), rng.integers(0, 10, 5)
    seen = _products(numerics, lambda: loss_of(net, numerics, x, labels).backward())
    given, w2, bias2, _ = seen["fc2", "forward"]
    _, w3, bias3, forward = seen["fc3", "forward"]
    error = seen["fc3", "backward_data"][0]
    sums, gradients = [], []
    for part in (slice(0, 12), slice(12, 24)):  # what a rank does by itself
        start = np.ascontiguousarray(np.broadcast_to(bias2, (5, 24))[:, part])
        hidden = _b(np.maximum(sn.matmul(given, np.ascontiguousarray(w2[:, part]), _WIDE, start), 0))
        sums.append(_b(sn.matmul(hidden, w3[part], _WIDE)))
        own = _b(sn.matmul(error, np.ascontiguousarray(w3[part].T), _WIDE)) * (hidden > 0)
        gradients.append(_b(sn.matmul(own, np.ascontiguousarray(w2[:, part].T), _WIDE)))
    together = _RING.all_reduce(sums)[0]
    np.testing.assert_array_equal(forward, _b(together.astype(np.float64) + bias3))
    np.testing.assert_array_equal(seen["fc2", "backward_data"][3], _RING.all_reduce(gradients)[0])
    assert np.abs(forward).min() > 0 and not np.array_equal(together, forward)


def _run(tmp_path, text=PARALLEL, **options):
    file = tmp_path / "parallel.toml"
    file.write_text(text)
    x = np.random.default_rng(1).integers(0, 256, (12, 9))
    data = Text("text", x[:8, :-1], x[:8, 1:], x[8:, :-1], x[8:, 1:], Vocabulary())
    sizes = {"sizes": (16, 24), "depth": 1, "heads": 2, "steps": 8, "tied_embeddings": False}
    settings = Settings(network="gpt", network_options=sizes | {"kv_heads": 1} | options, data="text", batch=4)
    return Run(settings, load_design(file), seed=5, data=data)


def test_a_language_model_multiplies_by_split_matmul(tmp_path):
    run = _run(tmp_path)
    seen = _products(run.numerics, lambda: run.train(*next(iter(run.plan(1)))))
    order = [*range(8), *range(16, 20), *range(24, 28), *range(8, 16), *range(20, 24), *range(28, 32)]
    split = {("block1.qkv", "backward_data"): order}
    split |= {(f"block1.{name}", "forward"): slice(None) for name in ("project", "ff2")}
    split |= {(f"block1.{name}", "backward_data"): slice(None) for name in ("gate", "ff1")}
    for place, (a, b, c, result) in seen.items():
        assert c is None
        want = sn.matmul(np.ascontiguousarray(a), np.ascontiguousarray(b), _WIDE)
        if place in split:
            whole, turn = want, split[place]
            want = sn.collectives.split_matmul(a[..., turn], b[..., turn, :], _WIDE, _RING)[0]
            assert not np.array_equal(want, _b(whole)), place
        np.testing.assert_array_equal(result, want, str(place))
    layers = json.loads(json.dumps(run.header()))["config"]["design"]["layers"]
    unit = layers["block1.ff2"]["units"]["forward"]
    assert unit["kind"] == "split" and unit["inner"]["accumulator"] == "binary32"
    assert sn.collective(unit["collective"]) == _RING
    assert layers["block1.qkv"]["units"]["backward_data"]["sections"] == [16, 8, 8]
    assert layers["block1.ff2"]["units"]["backward_data"]["kind"] == "mad"


def test_convolutions_share_their_channels(tmp_path):
    numerics = numerics_of(tmp_path, f"{ROLES}[layers.conv.units]\nforward = {SPLIT}\n")
    rng, backend = np.random.default_rng(3), numerics.backend
    x, w = _b(rng.standard_normal((2, 4, 3, 3))), _b(rng.standard_normal((5, 4, 1, 1)))
    geometry = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    got = numerics.layer("conv").convolve("forward", backend.array(x), backend.array(w), None, **geometry)
    rows = x.transpose(0, 2, 3, 1).reshape(18, 4)
    want = sn.collectives.split_matmul(rows, np.ascontiguousarray(w[:, :, 0, 0].T), _WIDE, _RING)[0]
    np.testing.assert_array_equal(got, want.reshape(2, 3, 3, 5).transpose(0, 3, 1, 2))


def test_rows_that_are_looked_up_are_one_ranks(tmp_path):
    run = _run(tmp_path, f"{ROLES}[units]\nbackward_weight = {SPLIT}\n")
    looked_up = run.header()["config"]["design"]["layers"]["embedding"]["units"]
    assert looked_up["backward_weight"]["kind"] == "mad"


INNER = "inner = { accumulator = 'binary32' }"


@cases(
    "unit, says",
    [
        ("ranks = 2, INNER", "forward: has no collective"),
        ("ranks = 2, collective = 'ring'", "forward: has no inner"),
        ("collective = 'ring', INNER", "forward.collective: collective: state ranks="),
        ("ranks = 2, collective = 'rung', INNER", "did you mean 'ring'"),
        ("ranks = 2, collective = 'ring(ranks=4)', INNER", "ranks=4, and ranks=2 is given"),
        ("ranks = 2, collective = 3, INNER", "is a text, got 3"),
        ("ranks = 2, collective = 'ring', inner = { kind = 'split' }", "unknown kind 'split'"),
        ("ranks = 2, collective = 'ring', INNER, sections = 4", "must be a list .* got 4"),
        ("ranks = 2, collective = 'ring', INNER, sections = [3]", "divide each of them"),
        ("ranks = 2, collective = 'ring', INNER, chunk = 2", "unknown key 'chunk'"),
        ("ranks = 3, collective = 'ring', INNER", "'fc1': units.forward: .* K = 64 has no"),
    ],
)
def test_what_designs_cannot_state(unit, says, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f"[units]\nforward = {{ kind = 'split', {unit} }}\n".replace("INNER", INNER))
    with pytest.raises(ValueError, match=says):
        check_divisions(load_design(file), make_network("mlp"), 32)


def test_scales_and_blocks_are_not_shared(tmp_path):
    file = tmp_path / "mine.toml"
    for role, says in (
        ('"mxfp8_e4m3"', "multiplies single numbers"),
        ('{ format = "e4m3fn", overflow = "saturate", scale = { per = "row" } }', "has a scale"),
    ):  # fmt: skip
        file.write_text(f"[roles]\nweights = {role}\nactivations = {role}\n[units]\nforward = {SPLIT}\n")
        with pytest.raises(ValueError, match=says):
            load_design(file).layer("fc2")


def test_a_product_that_ranks_cannot_share_names_its_layer(tmp_path):
    numerics = numerics_of(tmp_path, f"[units]\nforward = {SPLIT}\n")
    with pytest.raises(ValueError, match="layer 'first': forward: .* K = 3 has no equal parts for 2 ranks"):
        numerics.layer("first").matmul("forward", np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))
