"""Translation: gradients, products, PyTorch's losses, padding, greedy translations, BLEU, and runs."""

import math
from collections import Counter

import numpy as np
import pytest

from softnum.train import SGD, Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets.sentences import END, PADDING, START, UNKNOWN
from softnum.train.datasets.sets import SentencePairs
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.numerics import LayerNumerics
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import read_rows
from softnum.train.tasks import Translation
from softnum.train.tasks.translation import bleu
from tests.support.train_cases import BINARY64, MIXED, interrupted, judge_along_directions, loss_of, moved, needs_torch

SIZES = {"sizes": (3, 4), "steps": 4, "words": 7}
CASES = {
    "gru": {"dropout": 0.2},
    "lstm": {"cell": "lstm"},
    "lstm in two directions": {"cell": "lstm", "bidirectional": True},
    "rnn in two directions": {"cell": "rnn", "bidirectional": True},
}
BINARY32 = BINARY64.replace("binary64", "binary32")


def sentences(rng, count, steps, words):
    """What a network takes, and the labels: sentences of one word to so many as steps, their end among them."""
    sides = rng.integers(len((PADDING, UNKNOWN, START, END)), words, (2, count, steps))
    lengths = rng.integers(1, steps + 1, (2, count))
    lengths[:, :2] = ((1, steps), (steps, 1))
    place = np.arange(steps)
    sides[place == lengths[..., None] - 1] = END
    sides[place >= lengths[..., None]] = PADDING
    source, labels = sides
    x = np.concatenate([source, np.full((count, 1), START), np.where(labels == END, PADDING, labels)[:, :-1]], axis=1)
    return x, labels


def network(case, tmp_path, text=BINARY64, batch=5, **options):
    """A network, its numerics, sentences and labels."""
    net = make_network("seq2seq", **SIZES | CASES[case] | options)
    numerics, rng = moved(net, tmp_path, text)
    x, labels = sentences(rng, batch, net.steps, net.options["words"])
    return net, numerics, x, labels


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_finite_differences(case, tmp_path):
    net, numerics, x, labels = network(case, tmp_path)
    judge_along_directions((net, numerics, x, labels.ravel()))


@pytest.mark.parametrize("case", CASES)
def test_the_listed_products_are_those_computed(case, tmp_path, monkeypatch):
    seen, matmul = [], LayerNumerics.matmul

    def watched(self, key, a, b, c=None):
        if a.shape[-2] > 1:  # not the ones of a gradient of biases or embeddings
            seen.extend([(self.name, key, a.shape[-2], b.shape[-1], b.shape[-2])] * int(np.prod(a.shape[:-2])))
        return matmul(self, key, a, b, c)

    monkeypatch.setattr(LayerNumerics, "matmul", watched)
    net, numerics, x, labels = network(case, tmp_path)
    loss_of(net, numerics, x, labels.ravel()).backward()
    assert product_rows(seen) == net.gemms(5)


# -- against PyTorch ---------------------------------------------------------------------------------------------------
def torch_states(net, kind, read, own, h, c):
    """The states after each row of what was read, a sentence alone and without padding."""
    import torch

    states = []
    for z in read:
        if kind == "lstm":
            i, f, g, o = (z + h @ own[0]).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * torch.tanh(c)
        elif kind == "gru":
            r, k = (z[: 2 * len(h)] + h @ own[0]).sigmoid().chunk(2)
            h = k * h + (1 - k) * torch.tanh(z[2 * len(h) :] + (r * h) @ own[1])
        else:
            h = torch.tanh(z + h @ own[0])
        states.append(h)
    return torch.stack(states), h, c


def torch_loss(net, values, x, labels):
    """The loss with PyTorch's functions, sentence by sentence, so that there is no padding at all."""
    import torch

    kind, left = net.options["cell"], list(values)
    weights = 2 if kind == "gru" else 1  # of a cell

    def take(count):
        taken = left[:count]
        del left[:count]
        return taken

    (table,) = take(1)
    encoders = [(take(2), take(weights)) for _ in net.encoders]
    (other,), (w, b), own, (wc, bc), (v, d) = take(1), take(2), take(weights), take(2), take(2)
    logits, wanted = [], []
    for row, label in zip(torch.tensor(x), torch.tensor(labels), strict=True):
        source, given = row[: net.steps], row[net.steps :]
        source, count = source[source != PADDING], int((label != PADDING).sum())
        zero = torch.zeros(net.options["sizes"][1] // len(encoders), dtype=w.dtype)
        found = []
        for direction, ((we, be), hidden) in enumerate(encoders):
            order = source.flip(0) if direction else source
            s, h, c = torch_states(net, kind, table[order] @ we + be, hidden, zero, zero)
            found.append((s.flip(0) if direction else s, h, c))
        s, h, c = (torch.cat(parts, dim=-1) for parts in zip(*found, strict=True))
        h, _, _ = torch_states(net, kind, other[given[:count]] @ w + b, own, h, c)
        a = torch.softmax(h @ s.T / math.sqrt(h.shape[1]), dim=1) @ s
        logits.append(torch.tanh(torch.cat([a, h], dim=1) @ wc + bc) @ v + d)
        wanted.append(label[:count])
    return torch.nn.functional.cross_entropy(torch.cat(logits), torch.cat(wanted))


@needs_torch
@pytest.mark.parametrize(
    ("case", "design"),
    [
        ("gru", "float64"),
        ("lstm in two directions", "float64"),
        *(pytest.param(case, "float64", marks=pytest.mark.slow) for case in ("lstm", "rnn in two directions")),
        *(pytest.param(case, "float32", marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_losses_are_pytorchs(case, design, tmp_path):
    """The same weights and sentences give the same first twenty losses, the mean over words without padding."""
    import torch

    torch.set_num_threads(1)
    double = design == "float64"
    text = BINARY64 if double else BINARY32
    net, numerics, x, labels = network(case, tmp_path, text, batch=8, sizes=(4, 6), steps=5, words=9, dropout=0.0)
    task = net.make_task(SentencePairs("de-en", x, labels, x, labels, (), ()), 6, seed=1)
    values = [torch.tensor(p.value, requires_grad=True) for p in net.parameters]
    momentum, decay = float(np.float32(0.9)), float(np.float32(1e-4))
    theirs = torch.optim.SGD(values, lr=0.125, momentum=momentum, weight_decay=decay)
    ours = SGD(net.parameters, learning_rate=0.125, momentum=0.9, weight_decay=1e-4)
    losses, rng = [], np.random.default_rng(9)
    for iteration in range(1, 21):
        rows = rng.permutation(8)[:6]
        numerics.begin(iteration)
        ((mine, _, name),) = task.losses(numerics, rows)
        mine.backward()
        ours.step()
        theirs.zero_grad()
        loss = torch_loss(net, values, x[rows], labels[rows])
        loss.backward()
        theirs.step()
        assert name == "loss" and abs(mine.value - loss.item()) < (1e-10 if double else 1e-4), iteration
        losses.append(mine.value)
    assert losses[-1] < losses[0]


# -- padding, and translations -----------------------------------------------------------------------------------------
def longer(x, labels, steps, more):
    """The same sentences with more padding."""
    pad = ((0, 0), (0, more))
    return np.concatenate([np.pad(x[:, :steps], pad), np.pad(x[:, steps:], pad)], axis=1), np.pad(labels, pad)


@pytest.mark.parametrize("case", ["gru", "lstm in two directions"])
def test_padding_changes_no_bit(case, tmp_path):
    net, numerics, x, labels = network(case, tmp_path, BINARY32, dropout=0.0)
    wide, wide_numerics, *_ = network(case, tmp_path, BINARY32, dropout=0.0, steps=7)
    losses, gradients = [], []
    for own, arithmetic, inputs, wanted in (
        (net, numerics, x, labels),
        (wide, wide_numerics, *longer(x, labels, 4, 3)),
    ):
        task = Translation(own, SentencePairs("de-en", inputs, wanted, inputs, wanted, (), ()), 5, 1)
        arithmetic.begin(1)
        ((loss, *_),) = task.losses(arithmetic, np.arange(5))
        loss.backward()
        losses.append(loss.value)
        gradients.append([parameter.gradient for parameter in own.parameters])
        numerics.begin(1, evaluation=True)
        told = own.translate(inputs[:, : own.steps], arithmetic.backend)
        assert np.array_equal(told[1:2, :1], own.translate(inputs[1:2, : own.steps], arithmetic.backend)[:, :1])
    assert losses[0] == losses[1]
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_word_of_a_translation_is_the_likeliest_after_those_before(tmp_path):
    net, numerics, x, _ = network("gru", tmp_path, BINARY32, batch=40, dropout=0.0, sizes=(6, 8))
    source = x[:, : net.steps]
    told = net.translate(source, numerics.backend)
    assert told.shape[0] == 40 and len(np.unique(told)) > 2
    told = np.pad(told, ((0, 0), (0, net.steps - told.shape[1])))
    again = np.concatenate([source, np.full((40, 1), START), told[:, :-1]], axis=1)
    best = net.forward(Tensor(again, numerics.backend)).value.argmax(axis=1).reshape(40, net.steps)
    ended = np.cumsum(np.isin(told, (END, PADDING)), axis=1) > 1
    assert np.array_equal(told, np.where(ended, PADDING, best))


def test_a_word_of_outputs_that_are_not_finite_is_unknown(tmp_path):
    net, numerics, x, _ = network("gru", tmp_path, BINARY32)
    net.parameters[-1].value[:] = np.nan
    assert (net.translate(x[:, : net.steps], numerics.backend) == UNKNOWN).all()


def test_a_sentence_without_words_is_refused(tmp_path):
    net, numerics, x, _ = network("gru", tmp_path)
    x[1, : net.steps] = PADDING
    with pytest.raises(ValueError, match="a sentence must have a word: its end"):
        net.forward(Tensor(x, numerics.backend))


class Told:
    """A network that tells what it is told to."""

    def __init__(self, outputs, translated):
        self.outputs, self.translated = outputs, translated

    def check(self, features, classes):
        pass

    def forward(self, x):
        return Tensor(self.outputs, x.backend)

    def translate(self, source, backend):
        return self.translated


def test_accuracy_counts_words_and_their_ends_and_no_padding():
    labels = np.array([[4, 5, 6, END], [UNKNOWN, 5, END, PADDING]])
    outputs = np.eye(7, dtype=np.float32)[labels.ravel()]
    outputs[1] = np.eye(7)[4]  # wrong
    outputs[2, 0] = np.nan  # and not finite
    x = np.zeros((2, 8), np.int64)
    numerics = type("", (), {"backend": NumpyBackend()})
    task = Translation(Told(outputs, labels), SentencePairs("de-en", x, labels, x, labels, (), ()), 1, 1)
    # 7 words and ends, of which are right: 4, END; 5, END (told or not, UNKNOWN is wrong)
    assert task.evaluate(numerics) == {"accuracy": 4 / 7, "bleu": 0.0}
    labels = np.array([[4, 5, 6, 4, END]])
    task = Translation(Told(np.eye(7)[labels.ravel()], labels), SentencePairs("", x, labels, x, labels, (), ()), 1, 1)
    assert task.evaluate(numerics) == {"accuracy": 1.0, "bleu": 1.0}


# -- BLEU --------------------------------------------------------------------------------------------------------------
def plain_bleu(told, wanted):
    shares = []
    for n in (1, 2, 3, 4):
        found = made = 0
        for mine, theirs in zip(told, wanted, strict=True):
            a, b = (Counter(tuple(s[i : i + n]) for i in range(len(s) - n + 1)) for s in (mine, theirs))
            made += sum(a.values())
            found += sum(min(count, b[row]) for row, count in a.items())
        shares.append(found / made)
    c, r = sum(map(len, told)), sum(map(len, wanted))
    return math.prod(shares) ** 0.25 * (1.0 if c > r else math.exp(1 - r / c))


def test_bleu_is_papinenis():
    rng = np.random.default_rng(4)
    for _ in range(20):
        wanted = [rng.integers(4, 8, rng.integers(4, 12)).tolist() for _ in range(6)]
        told = [[w if rng.random() < 0.8 else 9 for w in s][: rng.integers(3, 12)] for s in wanted]
        told[0] = wanted[0] + [5] * int(rng.integers(0, 30))
        assert bleu(told, wanted, NumpyBackend()) == pytest.approx(plain_bleu(told, wanted), rel=1e-13)


def test_bleu_of_nothing_and_of_unknown_words():
    backend = NumpyBackend()
    assert bleu([[4, 5, 6, 7]], [[4, 5, 6, 7]], backend) == 1.0
    assert bleu([[]], [[4, 5, 6, 7]], backend) == 0.0
    assert bleu([[4, 5, 6]], [[4, 5, 6]], backend) == 0.0  # no four words in a row
    assert bleu([[4, UNKNOWN, 6, 7]], [[4, UNKNOWN, 6, 7]], backend) == 0.0
    once = bleu([[4, 5, 6, 7], [4, 4, 4, 4]], [[4, 5, 6, 7], [4, 8, 9, 9]], backend)
    assert once == pytest.approx((5 / 8 * 3 / 6 * 2 / 4 * 1 / 2) ** 0.25)


# -- runs --------------------------------------------------------------------------------------------------------------
NUMBERS = (("null", "zero"), ("eins", "one"), ("zwei", "two"), ("drei", "three"), ("vier", "four"), ("acht", "eight"))


def pairs_file(tmp_path, count=20):
    """Sums, the other way round in German."""
    lines = []
    for number in range(count):
        a, b, c = NUMBERS[number % 6], NUMBERS[number // 6 % 6], NUMBERS[number // 36 % 6]
        lines.append(f"{a[0]} und {b[0]} plus {c[0]}\t{c[1]} plus {b[1]} and {a[1]}\n")
    file = tmp_path / "sums.tsv"
    file.write_text("".join(lines))
    return str(file)


def settings_of(tmp_path, **options):
    return Settings(
        network="seq2seq", network_options={"sizes": (4, 6), "words": 40} | options, data="de-en",
        data_folder=pairs_file(tmp_path), batch=9, epochs=3, evaluate_every=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options", [{"dropout": 0.1}, pytest.param({"cell": "lstm", "bidirectional": True}, marks=pytest.mark.slow)]
)
def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(options, tmp_path):
    settings = settings_of(tmp_path, **options)
    (tmp_path / "mine.toml").write_text(MIXED)
    design = load_design(tmp_path / "mine.toml")
    path = interrupted(design, settings, tmp_path, at=3)
    header, *rows = read_rows(path)
    described = header["config"]["network"]
    assert make_network(described.pop("name"), **described).describe() == {"name": "seq2seq", **described}
    assert header["config"]["data"]["name"] == "de-en" and header["config"]["data"]["words"] == [12, 12]
    assert [set(row) >= {"accuracy", "bleu"} for row in rows] == [False, False, True, False, False, True]


def test_every_operation_is_explained(tmp_path):
    explained = explain(settings_of(tmp_path), load_design("b-binary16"))
    steps = explained.steps
    operations = {step.operation for step in steps if step.layer == "decoder.hidden"}
    assert {"sigmoid", "tanh", "subtract", "matmul"} <= operations
    assert {step.role for step in steps if step.layer == "attention"} >= {"forward", "backward_data", "statistics"}
    taken = [step for step in steps if step.operation == "put_rows"]
    assert taken and all(step.rounding == "exact" for step in taken)
    assert [step.operation for step in explained.binary64][:2] == ["softmax_cross_entropy", "cross_entropy_error"]


@pytest.mark.slow
def test_a_seq2seq_learns_to_turn_sums_round(tmp_path):
    settings = Settings(
        network="seq2seq", network_options={"sizes": (16, 32), "words": 40}, data="de-en",
        data_folder=pairs_file(tmp_path, 216), batch=16, epochs=30, optimiser="adam", learning_rate=0.01,
        evaluate_every=100,
    )  # fmt: skip
    rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.9 and rows[-1]["bleu"] > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "lst"}, "cell must be one of gru, lstm, rnn, got 'lst'"),
        ({"sizes": (3,)}, r"sizes must be two positive integers, got \(3,\)"),
        ({"sizes": (3, 5), "bidirectional": True}, "a bidirectional encoder needs an even hidden size, got 5"),
        ({"bidirectional": 1}, "bidirectional must be true or false, got 1"),
        ({"steps": 0}, "steps must be a positive integer, got 0"),
        ({"words": 0}, "words must be a positive integer, got 0"),
        ({"dropout": 1}, "dropout must be at least 0 and below 1, got 1"),
        ({"data": "digits"}, r"seq2seq takes pairs of sentences, which 'digits' is not \(data sets for it: de-en\)"),
    ],
)
def test_unusable_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_network("seq2seq", **options)


def test_a_network_of_other_sentences_is_refused(tmp_path):
    for options, message in (
        ({"steps": 9}, "takes 18 inputs, the data have 24.*with steps 12"),
        ({"words": 5}, "has 5 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            run(load_design("a-float32"), settings_of(tmp_path, **options), seed=1, out=tmp_path)


def test_what_a_design_may_replace():
    assert make_network("seq2seq").operators["combine"] == ("tanh",)
