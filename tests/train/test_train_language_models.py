"""Language models: gradients, products, PyTorch's losses, texts, resumption, and what they refuse."""

import dataclasses

import numpy as np
import pytest

import softnum as sn
from benchmarks import twins
from softnum.train import SGD, Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets.sets import load_data
from softnum.train.engine import tensor as engine
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.watch import BINARY64 as IN_BINARY64
from softnum.train.engine.watch import CARRIER, EXACT, ROUNDING, watching
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
    watch_operations,
    watch_products,
)

SIZES = {"sizes": (4, 3), "steps": 3, "words": 5}
OPTIONS = {"norm": "rms", "feedforward": "swiglu", "positions": "rotary", "kv_heads": 2, "tied_embeddings": True}
CASES = {
    "lstm": ("recurrent-lm", {"cell": "lstm"} | SIZES),
    "gru": ("recurrent-lm", {"cell": "gru"} | SIZES),
    "rnn": ("recurrent-lm", {"cell": "rnn", "dropout": 0.2} | SIZES),
    "transformer": ("transformer-lm", {"depth": 1} | SIZES),
    "rms": ("transformer-lm", {"depth": 1, "norm": "rms"} | SIZES),
    "swiglu": ("transformer-lm", {"depth": 1, "feedforward": "swiglu"} | SIZES),
    "rotary": ("transformer-lm", {"depth": 1, "positions": "rotary", "rotary_base": 50.0} | SIZES),
    "shared heads": ("transformer-lm", {"depth": 1, "kv_heads": 1} | SIZES),
    "tied": ("transformer-lm", {"depth": 1, "tied_embeddings": True} | SIZES),
    "all options": ("transformer-lm", {"depth": 2} | SIZES | OPTIONS | {"sizes": (8, 3), "heads": 4}),
}


def network(case, tmp_path, text=BINARY64, batch=4, **options):
    """A network, its numerics, sequences and labels."""
    name, own = CASES[case]
    net = make_network(name, **own | options)
    numerics, rng = moved(net, tmp_path, text)
    words = net.options["words"]
    return net, numerics, rng.integers(0, words, (batch, net.inputs)), rng.integers(0, words, batch * net.inputs)


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_finite_differences(case, tmp_path):
    judge_along_directions(network(case, tmp_path))


@pytest.mark.parametrize("case", CASES)
def test_the_listed_products_are_those_computed(case, tmp_path, monkeypatch):
    seen = watch_products(monkeypatch)
    parts = network(case, tmp_path)
    loss_of(*parts).backward()
    assert product_rows(seen) == parts[0].gemms(4)


@pytest.mark.parametrize("case", CASES)
def test_no_output_depends_on_a_later_byte(case, tmp_path):
    net, numerics, x, _ = network(case, tmp_path)
    before = net.forward(Tensor(x, numerics.backend)).value.reshape(4, 3, 5)
    x[:, 1] = (x[:, 1] + 1) % 5
    after = net.forward(Tensor(x, numerics.backend)).value.reshape(4, 3, 5)
    assert np.array_equal(before[:, 0], after[:, 0])
    assert (before[:, 1:] != after[:, 1:]).any(axis=2).all()


def test_every_operation_of_a_gru_is_rounded(tmp_path, monkeypatch):
    parts = network("gru", tmp_path, MIXED)
    seen = watch_operations(monkeypatch)
    loss_of(*parts).backward(parts[1].loss_scale)
    assert {name for _, name in seen} == {"e6m9"}
    # forward: 5 gates, 3 candidates; 2 products a step, 1 in the first; a difference each; a sum, but in the first.
    # Backward: three operations a function, two for a product; h is used four times but once in the last step, n twice.
    counts = {name: sum(operation == name for operation, _ in seen) for name, _ in seen}
    functions = {"sigmoid": 5, "tanh": 3}
    assert counts == functions | {"multiply": 5 + 2 * 8 + 2 * 5, "subtract": 3 + 8, "add": 2 + 2 * 3 + 3}


# -- against PyTorch ---------------------------------------------------------------------------------------------------
@needs_torch
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("design", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_losses_are_pytorchs(case, design, tmp_path):
    """The same weights and batches give the same first twenty losses."""
    import torch

    double = design == "float64"
    text = BINARY64 if double else BINARY64.replace("binary64", "binary32")
    net, numerics, *_ = network(case, tmp_path, text, sizes=(8, 8), steps=5, words=11, dropout=0.0)
    values = twins.parameters_of(net)
    momentum, decay = float(np.float32(0.9)), float(np.float32(1e-4))
    theirs = torch.optim.SGD(values, lr=0.125, momentum=momentum, weight_decay=decay)
    ours = SGD(net.parameters, learning_rate=0.125, momentum=0.9, weight_decay=1e-4)
    rng, losses = np.random.default_rng(9), []
    for iteration in range(1, 21):
        x = rng.integers(0, 6, (8, 5))
        labels = (x + np.roll(x, 1, axis=1)).ravel()
        numerics.begin(iteration)
        mine = engine.softmax_cross_entropy(net.forward(Tensor(x, numerics.backend), training=True), labels)
        mine.backward()
        ours.step()
        theirs.zero_grad()
        loss = torch.nn.functional.cross_entropy(twins.forward(net, values, torch.tensor(x)), torch.tensor(labels))
        loss.backward()
        theirs.step()
        assert abs(mine.value - loss.item()) < (1e-10 if double else 1e-4), iteration
        losses.append(mine.value)
    assert losses[-1] < losses[0]


# -- texts -------------------------------------------------------------------------------------------------------------
TEXT = b"Wer reitet so sp\xc3\xa4t durch Nacht und Wind? Es ist der Vater mit seinem Kind. " * 12


def text_file(tmp_path, content=TEXT):
    file = tmp_path / "mine.txt"
    file.write_bytes(content)
    return file


def test_a_text_is_cut_into_sequences_and_those_that_follow(tmp_path):
    data = load_data("text", text_file(tmp_path))
    count = (len(TEXT) - 1) // 32
    assert len(data.train_y) + len(data.test_y) == count and len(data.test_y) == count // 10
    x, y = np.concatenate([data.train_x, data.test_x]), np.concatenate([data.train_y, data.test_y])
    assert bytes(x.ravel().tolist()) == TEXT[: 32 * count] and bytes(y.ravel().tolist()) == TEXT[1 : 32 * count + 1]
    assert data.describe()["train"] == count - count // 10
    assert len(data.first(train=3).train_y) == 3


def test_a_network_of_other_steps_gets_sequences_of_them(tmp_path):
    settings = dataclasses.replace(settings_of("transformer-lm", tmp_path, steps=7), batch=60, epochs=1)
    config, *rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    count = (len(TEXT) - 1) // 7
    assert config["config"]["data"] == load_data("text", text_file(tmp_path), steps=7).describe()
    assert config["config"]["data"]["train"] == count - count // 10 and rows[-1]["finished"]
    with pytest.raises(ValueError, match="steps= is the length of token sequences, and 'digits' is not a text"):
        load_data("digits", steps=7)
    with pytest.raises(ValueError, match="has 12 bytes; at least 15 are needed, for a sequence of 7 to train on"):
        load_data("text", text_file(tmp_path, TEXT[:12]), steps=7)


def test_a_text_that_has_changed_is_read_again(tmp_path):
    before = load_data("text", text_file(tmp_path)).describe()
    assert load_data("text", text_file(tmp_path)).describe() == before
    assert load_data("text", text_file(tmp_path, TEXT[::-1])).describe() != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"the text '.*mine.txt' cannot be read \(No such file or directory\); the data set 'text' is a plain"),
        (b"too short", r"the text '.*mine.txt' has 9 bytes; at least 65 are needed"),
    ],
)
def test_unusable_texts_are_named(content, message, tmp_path):
    file = tmp_path / "mine.txt" if content is None else text_file(tmp_path, content)
    with pytest.raises(ValueError, match=message):
        load_data("text", file)


def test_a_text_must_be_named(monkeypatch):
    monkeypatch.delenv("SOFTNUM_DATA", raising=False)
    with pytest.raises(ValueError, match="'text' is a plain text file of your own: name it with --data-dir FILE"):
        load_data("text")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "recurrent-lm",
            "digits",
            r"recurrent-lm takes a text, which 'digits' is not \(data sets for it: text, text-g",
        ),
        ("transformer", "text", r"transformer takes samples of numbers, which 'text' is not \(data sets for it: cifar"),
    ],
)
def test_networks_of_text_take_text(name, data, message):
    with pytest.raises(ValueError, match=message):
        make_network(name, data=data)


# -- runs --------------------------------------------------------------------------------------------------------------
def settings_of(name, tmp_path, **options):
    return Settings(
        network=name, network_options={"sizes": (4, 6)} | options, data="text", data_folder=str(text_file(tmp_path)),
        batch=10, epochs=3, evaluate_every=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recurrent-lm", {"cell": "gru"}), ("transformer-lm", {"dropout": 0.1}),
        ("transformer-lm", {**OPTIONS, "kv_heads": 1, "dropout": 0.1}),
    ],
)  # fmt: skip
def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(name, options, tmp_path):
    settings = settings_of(name, tmp_path, **options)
    (tmp_path / "mine.toml").write_text(MIXED)
    design = load_design(tmp_path / "mine.toml")
    path = interrupted(design, settings, tmp_path, at=3)
    config = read_rows(path)[0]["config"]
    described = config["network"]
    assert make_network(described.pop("name"), **described).describe() == {"name": name, **described}
    assert config["data"]["name"] == "text" and config["data"]["held_out"] == 2


def test_the_loss_of_held_out_bytes_is_that_of_the_designs_outputs(tmp_path, monkeypatch):
    monkeypatch.setattr("softnum.train.tasks.classification._SAMPLES_AT_A_TIME", 3)  # two parts, of 3 and 2 samples
    settings = settings_of("transformer-lm", tmp_path)
    text_file(tmp_path, TEXT * 2)
    work = Run(settings, load_design("b-binary16"), seed=1)
    work.numerics.begin(1, evaluation=True)
    logits = work.network.forward(Tensor(work.data.test_x, work.numerics.backend)).value.astype(np.float64)
    assert len(work.data.test_x) == 5
    right = logits[np.arange(len(logits)), work.data.test_y.ravel()]
    want = np.mean(np.log(np.exp(logits).sum(axis=1)) - right)
    assert abs(work.evaluate(1)["held_out_loss"] - want) < 1e-12
    work.network.parameters[0].value[:] = np.nan
    assert work.evaluate(1) == {"accuracy": 0.0, "held_out_loss": None}


def test_defaults_leave_a_description_as_it_was():
    plain = make_network("transformer-lm").describe()
    assert list(plain) == ["name", "sizes", "depth", "heads", "dropout", "steps", "words"]
    stated = {"norm": "layer", "feedforward": "relu", "positions": "learned", "kv_heads": 2, "tied_embeddings": False}
    assert make_network("transformer-lm", **stated).describe() == plain
    described = make_network("transformer-lm", **OPTIONS | {"kv_heads": 1}).describe()
    assert described == plain | OPTIONS | {"kv_heads": 1, "rotary_base": 10000.0}


def test_a_tied_embedding_has_one_gradient_of_both_uses(tmp_path):
    """That of the product, rounded by fc, and that of the rows, added in the embedding's role of weight gradients."""
    text = (
        BINARY64 + '[layers."embedding".roles]\nweight_gradients = "e6m7"\n[layers.fc.roles]\nweight_gradients = "e5m2"'
    )
    net, numerics, x, labels = network("tied", tmp_path, text)
    assert [p.name for p in net.parameters].count("embedding.weight") == 1 and net.parameters[-1].name == "fc.bias"
    uses, linear, rows = [], engine.GRADIENTS["linear"], engine.GRADIENTS["embedding"]

    def of_product(node, gradient):
        parts = linear(node, gradient)
        if parts[1].shape == (4, 5):
            uses.append(parts[1].T)
        return parts

    def of_rows(node, gradient):
        parts = rows(node, gradient)
        if parts[0].shape == (5, 4):
            uses.append(parts[0])
        return parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engine.GRADIENTS, "linear", of_product)
        patch.setitem(engine.GRADIENTS, "embedding", of_rows)
        loss_of(net, numerics, x, labels).backward()
    product, looked_up = uses
    assert np.array_equal(product, sn.quantize(product, "e5m2")) and product.any()
    assert np.array_equal(looked_up, sn.quantize(looked_up, "e6m7")) and looked_up.any()
    assert np.array_equal(net.parameters[0].gradient, sn.quantize(product + looked_up, "e6m7"))


def test_a_tied_product_takes_the_master_copy(tmp_path):
    """It is not the rows that were looked up, rounded once more."""
    text = BINARY64 + '[layers."embedding".roles]\nweights = "e4m1"\n[layers.fc.roles]\nweights = "e4m3"\n'
    net, numerics, *_ = network("tied", tmp_path, text)
    numerics.begin(1)
    out = net.last(Tensor(np.eye(4), numerics.backend)).value
    master = net.embedding.parameters[0].value
    assert np.array_equal(out, sn.quantize(master, "e4m3").T + net.last.parameters[0].value)


def test_tied_weights_cannot_be_sparse(tmp_path):
    for layer in ("embedding", "fc"):
        text = f'[layers.{layer}.roles]\nweights = {{ format = "binary32", sparsity = {{ magnitude = 0.5 }} }}\n'
        with pytest.raises(ValueError, match=f"'embedding' and 'fc' share their weights.* of layer '{layer}' keeps"):
            network("tied", tmp_path, text)


@pytest.mark.parametrize("design", ["c-wang-fp8", "i-mxfp8"])
def test_all_options_train_in_narrow_formats_and_in_blocks(design, tmp_path):
    options = {**OPTIONS, "kv_heads": 1, "sizes": (32, 32), "depth": 1}
    settings = dataclasses.replace(
        settings_of("transformer-lm", tmp_path, **options), epochs=4, learning_rate=0.1, evaluate_every=12
    )  # fmt: skip
    rows = read_rows(run(load_design(design), settings, seed=1, out=tmp_path))
    losses = [row["loss"] for row in rows if "loss" in row]
    assert losses[-1] < 0.8 * losses[0]


def test_operators_may_take_the_place_of_a_silu(tmp_path):
    (tmp_path / "half.tile").write_text("function (X) -> (Y) { Y = 0.5 * X; }")
    net, numerics, *_ = network("swiglu", tmp_path, 'operators = { silu = "half.tile" }\n' + BINARY64)
    assert net.operators["block1.gate"] == ("silu",) and net.operators["block1.ff1"] == ()
    numerics.begin(1)
    gate = net.blocks[0].feedforward.gate
    x = np.ones((2, 4))
    assert np.array_equal(
        gate(Tensor(x, numerics.backend)).value, 0.5 * (x @ gate.parameters[0].value + gate.parameters[1].value)
    )


@pytest.mark.slow
def test_a_gru_learns_a_text_that_repeats_itself(tmp_path):
    options, file = {"sizes": (16, 24), "cell": "gru"}, text_file(tmp_path, TEXT[:80] * 12)
    settings = Settings(
        network="recurrent-lm", network_options=options, data="text", data_folder=str(file), batch=8, epochs=14,
        optimiser="adam", learning_rate=0.02, evaluate_every=100,
    )  # fmt: skip
    rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.4 and rows[-1]["loss"] < 2


def test_every_operation_is_explained(tmp_path):
    settings = settings_of("recurrent-lm", tmp_path, cell="gru")
    steps = explain(settings, load_design("b-binary16")).steps
    operations = {step.operation for step in steps if step.layer == "gru.hidden"}
    assert {"sigmoid", "tanh", "subtract", "matmul"} <= operations
    sums = [step for step in steps if step.layer == "embedding" and step.role == "backward_weight"]
    assert sums and all(step.operands[0][1][-2] == 1 for step in sums)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("recurrent-lm", {"cell": "lst"}, "cell must be one of gru, lstm, rnn, got 'lst'"),
        ("recurrent-lm", {"sizes": (3,)}, r"sizes must be two positive integers, got \(3,\)"),
        ("recurrent-lm", {"steps": 0}, "steps must be a positive integer, got 0"),
        ("recurrent-lm", {"dropout": -1}, "dropout must be at least 0 and below 1, got -1"),
        ("transformer-lm", {"words": 0}, "words must be a positive integer, got 0"),
        ("transformer-lm", {"heads": 5}, "heads must divide the 32 features that they share, got 5"),
        ("transformer-lm", {"norm": "batch"}, "norm must be layer or rms, got 'batch'"),
        ("transformer-lm", {"feedforward": "gelu"}, "feedforward must be relu or swiglu or relu2, got 'gelu'"),
        ("transformer-lm", {"positions": "none"}, "positions must be learned or rotary, got 'none'"),
        (
            "transformer-lm",
            {"rotary_base": 9.0},
            "rotary_base is for positions='rotary', got 9.0 with positions='learned'; leave it out",
        ),
        ("transformer-lm", {"positions": "rotary", "rotary_base": 0}, "rotary_base must be a positive number, got 0"),
        ("transformer-lm", {"positions": "rotary", "sizes": (6, 4)}, "rotate pairs of features, and a head has 3"),
        ("transformer-lm", {"kv_heads": 0}, "kv_heads must be a positive integer, got 0"),
        ("transformer-lm", {"heads": 4, "kv_heads": 3}, "kv_heads must divide the 4 heads that share them, got 3"),
        ("transformer-lm", {"tied_embeddings": 1}, "tied_embeddings must be true or false, got 1"),
    ],
)
def test_unusable_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_network(name, **options)


def test_the_products_of_a_cell_are_asked_for_in_their_order():
    with pytest.raises(ValueError, match=r"lstm.hidden: .* go by backward_products, got 'backward_data'"):
        make_network("recurrent-lm").cell.products("backward_data", 1)


def test_a_cell_without_a_step_is_named():
    from softnum.train.layers.cells import Cell

    with pytest.raises(NotImplementedError, match="Cell has no step"):
        Cell("cell", 3, 2).step(None, None)


@pytest.mark.parametrize(
    ("name", "options"), [("recurrent-lm", {}), ("transformer-lm", {}), ("transformer-lm", OPTIONS | {"kv_heads": 1})]
)
def test_an_explanation_leaves_nothing_out(name, options, tmp_path, monkeypatch):
    """Every call of the backend that is not one of its own is watched; a total's operations are, one by one."""
    (tmp_path / "mine.toml").write_text('[loss]\nscale = "dynamic"\ninitial = 1.0\n')
    settings = dataclasses.replace(settings_of(name, tmp_path, **options), clip_norm=1e-3)
    work = Run(settings, load_design(tmp_path / "mine.toml"), 1)
    calls, seen, inside = [], [], []

    def counted(name, method):
        def call(self, *arguments, **options):
            if not inside:
                calls.append(name)
            inside.append(name)
            try:
                return method(self, *arguments, **options)
            finally:
                inside.pop()

        return call

    for method in (ROUNDING | EXACT | CARRIER | IN_BINARY64) - {"total"}:
        monkeypatch.setattr(NumpyBackend, method, counted(method, getattr(NumpyBackend, method)))
    with watching(work.numerics, lambda event: seen.append(event.method)):
        work.train(1, next(iter(work.plan(1)))[1])
    assert seen == calls and {"softmax_cross_entropy", "all_finite", "norm", "matmul", "take"} <= set(seen)
