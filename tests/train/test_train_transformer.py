"""The transformer: gradients, its products, PyTorch's losses, resumption, and what it refuses."""

import numpy as np
import pytest

from benchmarks import twins
from softnum.train import SGD, Settings, Tensor, design_gemms, explain, load_design, make_network, run
from softnum.train.datasets.sets import batches, load_data
from softnum.train.engine import tensor as engine
from softnum.train.engine.numerics import LayerNumerics
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import Run, read_rows
from tests.support.train_cases import (
    BINARY64,
    MIXED,
    interrupted,
    judge_along_directions,
    loss_of,
    moved,
    needs_torch,
    numerics_of,
)

SMALL = {"sizes": (4, 6), "depth": 2, "heads": 2, "image": (2, 3, 2), "classes": 3}


def network(tmp_path, text=BINARY64, batch=4, **options):
    """A network, its numerics, samples and labels."""
    net = make_network("transformer", **SMALL | options)
    numerics, rng = moved(net, tmp_path, text)
    return net, numerics, rng.standard_normal((batch, net.inputs)), rng.integers(0, 3, batch)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_agree_with_finite_differences(dropout, tmp_path):
    judge_along_directions(network(tmp_path, dropout=dropout))


def test_the_listed_products_are_those_computed(tmp_path, monkeypatch):
    seen, matmul = [], LayerNumerics.matmul

    def watched(self, key, a, b, c=None):
        if a.shape[-2] > 1:  # not the ones of a gradient of biases or positions
            seen.extend([(self.name, key, a.shape[-2], b.shape[-1], b.shape[-2])] * int(np.prod(a.shape[:-2])))
        return matmul(self, key, a, b, c)

    monkeypatch.setattr(LayerNumerics, "matmul", watched)
    parts = network(tmp_path)
    loss_of(*parts).backward()
    assert product_rows(seen) == parts[0].gemms(4)


def test_a_header_lists_equal_products_once():
    """However many samples and heads there are; what they take is that of all of them."""
    rows = design_gemms(load_design("c-wang-fp8"), make_network("transformer", heads=2), 32)
    attention = [row for row in rows if row["layer"] == "block1.attention"]
    assert len(rows) < 60 and [row["count"] for row in attention] == [64] * len(attention)
    assert list(attention[0]) == ["layer", "pass", "M", "N", "K", "count", "bits", "formats"]
    work = Run(Settings(network="transformer", batch=32), load_design("c-wang-fp8"), 1)
    flops = {}
    for step in explain(work.settings, work.design).steps:
        if step.unit is not None and step.shape[-2] > 1:
            flops[step.layer, step.role] = flops.get((step.layer, step.role), 0) + step.flops
    listed = dict.fromkeys(flops, 0)
    for row in work.header()["config"]["gemms"]:
        listed[row["layer"], row["pass"]] += 2 * row["M"] * row["N"] * row["K"] * row.get("count", 1)
    assert listed == flops


def test_products_under_a_design():
    rows = design_gemms(load_design("c-wang-fp8"), make_network("transformer"), 1)
    formats = {(row["layer"], row["pass"]): row["formats"] for row in rows}
    assert formats["embed", "forward"] == ["e6m9", "e5m2"]
    assert formats["block1.attention", "forward"] == ["e5m2", "e5m2"]
    assert ("embed", "backward_data") not in formats and "position" not in {row["layer"] for row in rows}


def test_the_products_of_an_attention_are_asked_for_in_their_order():
    layer = make_network("transformer").blocks[0].attention
    with pytest.raises(ValueError, match=r"block1.attention: .* go by backward_products, got 'backward_data'"):
        layer.products("backward_data", 1)


# -- against PyTorch ---------------------------------------------------------------------------------------------------
@needs_torch
@pytest.mark.parametrize("design", ["float64", "float32"])
def test_losses_are_pytorchs(design, tmp_path):
    """The same weights and batches give the same first twenty losses."""
    import torch

    double = design == "float64"
    net = make_network("transformer", sizes=(16, 24))
    numerics = numerics_of(tmp_path, BINARY64 if double else BINARY64.replace("binary64", "binary32"), net.layer_names)
    net.initialise(numerics)
    data, rows = load_data("digits"), batches(1352, 16, 3, 1)[:20]
    values = twins.parameters_of(net)
    momentum, decay = float(np.float32(0.9)), float(np.float32(1e-4))
    theirs = torch.optim.SGD(values, lr=0.125, momentum=momentum, weight_decay=decay)
    ours = SGD(net.parameters, learning_rate=0.125, momentum=0.9, weight_decay=1e-4)
    for iteration, batch in enumerate(rows, start=1):
        numerics.begin(iteration)
        x = numerics.backend.array(data.train_x[batch])
        mine = engine.softmax_cross_entropy(
            net.forward(Tensor(x, numerics.backend), training=True), data.train_y[batch]
        )
        mine.backward()
        ours.step()
        theirs.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            twins.forward(net, values, torch.tensor(x)), torch.tensor(data.train_y[batch])
        )
        loss.backward()
        theirs.step()
        assert abs(mine.value - loss.item()) < (1e-10 if double else 1e-4), iteration


# -- runs --------------------------------------------------------------------------------------------------------------
def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(tmp_path):
    options = {"sizes": (8, 8), "depth": 1, "dropout": 0.1}
    settings = Settings(network="transformer", network_options=options, batch=338, epochs=2, evaluate_every=4)
    (tmp_path / "mine.toml").write_text(MIXED)
    design = load_design(tmp_path / "mine.toml")
    path = interrupted(design, settings, tmp_path, at=6, statistics=3)
    network = read_rows(path)[0]["config"]["network"]
    assert network == {
        "name": "transformer", "sizes": [8, 8], "depth": 1, "heads": 2, "dropout": 0.1, "image": [1, 8, 8],
        "classes": 10,
    }  # fmt: skip


@pytest.mark.slow
def test_it_learns_the_digits(tmp_path):
    options = {"sizes": (16, 32), "depth": 1}
    settings = Settings(
        network="transformer", network_options=options, epochs=3, batch=64, optimiser="adam", learning_rate=0.01,
        evaluate_every=63,
    )  # fmt: skip
    rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.85


def test_every_operation_is_explained():
    settings = Settings(network="transformer", network_options={"depth": 1, "dropout": 0.1}, batch=2)
    steps = explain(settings, load_design("c-wang-fp8")).steps
    layers = {step.layer for step in steps if step.operation == "exp"}
    assert layers == {"block1.attention"}
    products = [step for step in steps if step.operation == "matmul" and step.layer == "block1.attention"]
    assert [step.flops for step in products] == [2 * 2 * 2 * 8 * 8 * 16] * 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (8,)}, r"sizes must be two positive integers, got \(8,\)"),
        ({"heads": 3}, "heads must divide the 32 features that they share, got 3"),
        ({"heads": 0}, "heads must be a positive integer, got 0"),
        ({"depth": 0}, "depth must be a positive integer, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": True}, "dropout must be at least 0 and below 1, got True"),
    ],
)
def test_unusable_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_network("transformer", **options)
