"""The language model gpt: sizes, experts, vocabularies, texts, bits a byte, resumption, and what they refuse."""

import gzip
import hashlib
import itertools
import keyword
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import Settings, Tensor, load_design, make_network, run, workload
from softnum.train.datasets import texts, vocabulary
from softnum.train.datasets.sets import Text, load_data
from softnum.train.datasets.texts import Package, spread_order
from softnum.train.datasets.vocabulary import Vocabulary, learn_vocabulary, pieces
from softnum.train.engine import tensor as engine
from softnum.train.layers.losses import total
from softnum.train.layers.mixture import choices, seats
from softnum.train.nets.gpt import PRESETS, count_parameters
from softnum.train.nets.network import product_rows
from softnum.train.runs import loop
from softnum.train.runs.loop import Run, read_rows
from softnum.tta import Evaluation, IterationTime, Record, combine_study
from tests.support.train_cases import judge_along_directions, moved, watch_products

SMALL = {"sizes": (8, 6), "depth": 1, "heads": 2, "kv_heads": 1, "steps": 4}
MIXTURE = {"experts": 3, "experts_chosen": 2, "capacity": 1.25, "balance": 0.5}
OTHERS = {"feedforward": "relu2", "norm": "layer", "positions": "learned", "tied_embeddings": False, "biases": True}
CASES = {"plain": {}, "others": OTHERS, "mixture": MIXTURE, "all": OTHERS | MIXTURE}
WORDS = "; ".join(f"{word} {word}s of {n * 7919 % 1000}" for n, word in enumerate(keyword.kwlist * 2)).encode() + b"\n"


def parts_of(case, tmp_path):
    net = make_network("gpt", **SMALL, **CASES[case])
    numerics, rng = moved(net, tmp_path)
    return net, numerics, rng.integers(0, 256, (3, 4)), rng.integers(0, 256, 12)


def loss_of(net, numerics, x, labels):
    numerics.begin(1)
    loss = engine.softmax_cross_entropy(net.forward(Tensor(x, numerics.backend), training=True), labels)
    return total([*net.penalties, loss])


# -- the network -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_finite_differences(case, tmp_path):
    judge_along_directions(parts_of(case, tmp_path), loss_of)


@pytest.mark.parametrize("case", CASES)
def test_the_listed_products_are_those_computed(case, tmp_path, monkeypatch):
    seen = watch_products(monkeypatch)
    parts = parts_of(case, tmp_path)
    loss_of(*parts).backward()
    assert product_rows(seen) == parts[0].gemms(3)


@pytest.mark.parametrize("case", CASES)
def test_parameters_are_counted(case, tmp_path):
    net, *_ = parts_of(case, tmp_path)
    assert sum(p.value.size for p in net.parameters) == count_parameters(**net.options)


def test_the_sizes_have_the_parameters_of_their_names():
    for name in PRESETS:
        net = make_network("gpt", sizes=name)
        number = float(name[:-1]) * {"k": 1e3, "m": 1e6}[name[-1]]
        assert abs(count_parameters(**net.options) / number - 1) < 0.03
        described = net.describe()
        assert make_network(described.pop("name"), **described).describe() == {"name": "gpt", **described}
    # what is stated takes the place of the size's; heads of keys and values follow stated heads
    options = make_network("gpt", sizes="1m", depth=2, heads=10).options
    assert (options["sizes"], options["depth"], options["kv_heads"]) == ((160, 384), 2, 10)


def test_no_output_depends_on_a_later_token(tmp_path):
    """Of a mixture neither: seats go to rows in their order."""
    net, numerics, x, _ = parts_of("mixture", tmp_path)
    before = net.forward(Tensor(x[:1], numerics.backend)).value
    for step in range(1, 4):
        other = x[:1].copy()
        other[:, step:] = (other[:, step:] + 1) % 256
        after = net.forward(Tensor(other, numerics.backend)).value
        assert np.array_equal(before[:step], after[:step]) and (before[step:] != after[step:]).any()


def test_a_squared_relu_is_a_product(tmp_path):
    net, numerics, *_ = parts_of("others", tmp_path)
    numerics.begin(1)
    feedforward, x = net.blocks[0].feedforward, np.linspace(-1, 1, 16).reshape(2, 8)
    inner = x @ feedforward.ff1.parameters[0].value + feedforward.ff1.parameters[1].value
    want = np.maximum(inner, 0) ** 2 @ feedforward.ff2.parameters[0].value + feedforward.ff2.parameters[1].value
    assert np.allclose(feedforward(Tensor(x, numerics.backend)).value, want, rtol=1e-14, atol=0)


# -- experts -----------------------------------------------------------------------------------------------------------
def test_a_mixture_is_the_weighted_sum_of_its_experts(tmp_path):
    net, numerics, *_ = parts_of("mixture", tmp_path)
    numerics.begin(1)
    mixture, x = net.blocks[0].feedforward, np.random.default_rng(2).standard_normal((8, 8))
    mixture.capacity = 1.5  # experts / chosen: nobody is left out
    found = mixture(Tensor(x, numerics.backend)).value
    scores = np.exp(x @ mixture.router.parameters[0].value)
    p = scores / scores.sum(axis=1, keepdims=True)
    each = np.stack([expert(Tensor(x, numerics.backend)).value for expert in mixture.experts], axis=1)
    kept = p >= np.sort(p, axis=1)[:, -2:-1]
    assert np.allclose(found, ((p * kept)[:, :, None] * each).sum(axis=1), rtol=1e-12)
    shares = kept.mean(axis=0) / 2
    assert math.isclose(mixture.penalty.value, 0.5 * 3 * (shares * p.mean(axis=0)).sum(), rel_tol=1e-12)
    mixture.capacity = 1e-9  # a seat an expert: rows that find none have the result 0
    few = mixture(Tensor(x, numerics.backend)).value
    assert mixture.seats(8) == 1 and (few == 0).all(axis=1).sum() >= 5 and few.any()


def test_equal_probabilities_go_to_the_first_experts():
    assert choices(np.full((2, 4), 0.25, np.float32), 2).tolist() == [[0, 1], [0, 1]]
    chosen = np.array([[0, 1], [1, 0], [0, 2]])
    taken, found = seats(chosen, 3, 2)
    assert taken.tolist() == [0, 1, 0, 1, 2, 3] and found.tolist() == [[0, 2], [3, 1], [6, 4]]


def test_experts_train_under_a_narrow_design_and_are_costed(tmp_path):
    settings = settings_of(tmp_path, **MIXTURE)
    rows = read_rows(run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path))
    assert rows[-1]["finished"] and rows[-1]["bits_per_byte"] < 8.5
    work = workload(settings, load_design("c-wang-fp8"))
    assert work.parameters == count_parameters(**make_network("gpt", **settings.network_options).options)


# -- vocabularies and texts --------------------------------------------------------------------------------------------
def test_a_vocabulary_is_what_a_plain_count_gives():
    """Every merge is the most frequent pair of the tokens so far, counted anew; of equals the smaller one."""
    text = WORDS * 3 + "Grüße an die Größe".encode()
    learned = learn_vocabulary(text, 290)
    words = [list(piece) for piece in pieces(text)]
    assert b"".join(map(bytes, words)) == text
    for number, merge in enumerate(learned.merges, start=256):
        counts = {}
        for word in words:
            for pair in itertools.pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        best = max(counts.values())
        assert best >= 2 and merge == min(pair for pair, count in counts.items() if count == best)
        for word in words:
            at = 0
            while at < len(word) - 1:
                if (word[at], word[at + 1]) == merge:
                    word[at : at + 2] = [number]
                at += 1
    tokens = learned.encode(text)
    assert tokens.tolist() == [token for word in words for token in word]
    assert b"".join(learned.tokens[token] for token in tokens) == text
    assert learned.describe()["sha256"] == Vocabulary(learned.merges).describe()["sha256"]


def test_a_vocabulary_of_a_long_text_is_of_blocks_from_all_of_it(monkeypatch):
    monkeypatch.setattr(vocabulary, "_BLOCK", 100)
    monkeypatch.setattr(vocabulary, "_BLOCKS", 9)
    text = WORDS * 2
    every = -(-len(text) // 900)
    read = b"".join(text[first : first + 100] for first in range(0, len(text), 100 * every))
    found = learn_vocabulary.__wrapped__(text, 300)
    assert every > 1 and found.merges == learn_vocabulary.__wrapped__(read, 300).merges
    assert found.merges != learn_vocabulary.__wrapped__(text[: len(read)], 300).merges


def test_unknown_bytes_are_tokens_of_their_own():
    learned = learn_vocabulary(WORDS * 2, 270)
    everything = bytes(range(256)) + "ßœ€\n\n  x".encode()
    assert b"".join(learned.tokens[token] for token in learned.encode(everything)) == everything


def text_file(tmp_path, content=WORDS * 4):
    (tmp_path / "mine.txt").write_bytes(content)
    return tmp_path / "mine.txt"


def test_a_vocabulary_is_learned_from_what_is_trained_on(tmp_path):
    content = WORDS * 4
    data = load_data("text", text_file(tmp_path, content), steps=8, vocabulary=280)
    edge = len(content) - len(content) // 10
    assert data.vocabulary.merges == learn_vocabulary(content[:edge], 280).merges
    assert b"".join(data.vocabulary.tokens[t] for t in data.test_x[0]) == content[edge:][: _size(data, 0)]
    assert data.describe()["vocabulary"] == {"tokens": 280, "sha256": data.vocabulary.describe()["sha256"]}
    other = load_data("text", text_file(tmp_path, content.replace(b"while", b"until")), steps=8, vocabulary=280)
    assert other.describe()["vocabulary"]["sha256"] != data.describe()["vocabulary"]["sha256"]


def _size(data: Text, row: int) -> int:
    return int(data.vocabulary.lengths()[data.test_x[row]].sum())


def packaged(tmp_path, monkeypatch, content, packed=True):
    package = Package("pkg", "/nowhere/some.gz", "a text", "public", len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(texts.PACKAGES, "text-jargon", package)
    (tmp_path / "some.gz").write_bytes(gzip.compress(content) if packed else content)
    return load_data("text-jargon", tmp_path, steps=16)


@pytest.mark.parametrize("packed", [True, False])
def test_a_package_s_text_is_spread_and_a_tenth_held_out(packed, tmp_path, monkeypatch):
    content = np.random.default_rng(3).integers(0, 256, 16384 * 20 + 500, np.uint8).tobytes()
    data = packaged(tmp_path, monkeypatch, content, packed)
    blocks = [content[first : first + 16384] for first in range(0, len(content), 16384)]
    held_out = blocks[9] + blocks[19]
    order = spread_order(len(data.test_x))
    assert bytes(data.test_x[np.argsort(order)].ravel().tolist()) == held_out[: data.test_x.size]
    assert sorted(order.tolist()) == list(range(len(order))) and data.train_x.dtype == np.uint16
    first = spread_order(len(data.train_x))[:40]
    assert np.diff(np.sort(first)).max() < 3 * len(data.train_x) / 40  # spread over all of the text
    assert data.describe()["text"] == {
        "package": "pkg",
        "licence": "public",
        "sha256": texts.PACKAGES["text-jargon"][5],
    }


def test_unusable_packages_are_named(tmp_path, monkeypatch):
    packaged(tmp_path, monkeypatch, WORDS * 400)
    (tmp_path / "some.gz").write_bytes(gzip.compress(WORDS * 401))
    with pytest.raises(ValueError, match=r"is not a text: it has 553380 bytes .* that has 552000 .*by --data text"):
        load_data("text-jargon", tmp_path)
    (tmp_path / "some.gz").write_bytes(gzip.compress(WORDS * 400)[:50])
    with pytest.raises(ValueError, match=r"some.gz' cannot be read .*apt install pkg"):
        load_data("text-jargon", tmp_path)
    with pytest.raises(
        ValueError, match=r"'text-jargon' is not there: .*apt install pkg; or name its file with --data"
    ):
        load_data("text-jargon", tmp_path / "other.gz")


@pytest.mark.parametrize(
    ("steps", "size", "message"),
    [
        (8, 255, "a vocabulary has 256 to 65536 tokens, the 256 bytes among them, got 255"),
        (8, 60000, r"pairs that occur twice for \d+ tokens, fewer than the 60000 of the vocabulary"),
        (600, 280, r"the part held out has \d+ tokens, and a sequence and what follows it has 601"),
    ],
)
def test_unusable_vocabularies_are_named(steps, size, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_data("text", text_file(tmp_path), steps=steps, vocabulary=size)


# -- runs --------------------------------------------------------------------------------------------------------------
def settings_of(tmp_path, **options):
    return Settings(
        network="gpt", network_options=SMALL | options, data="text", data_folder=str(text_file(tmp_path)), batch=16,
        epochs=1, evaluate_every=5, optimiser="muon", schedule="cosine", warmup=3, clip_norm=1.0, samples=480,
    )  # fmt: skip


def test_bits_a_byte_are_those_of_the_outputs(tmp_path):
    work = Run(settings_of(tmp_path, vocabulary=280), load_design("a-float32"), seed=1)
    work.numerics.begin(1, evaluation=True)
    logits = work.network.forward(Tensor(work.data.test_x, work.numerics.backend)).value.astype(np.float64)
    labels = work.data.test_y.ravel()
    nats = (np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), labels]).sum()
    told = b"".join(work.data.vocabulary.tokens[label] for label in labels)
    found = work.evaluate(1)
    assert math.isclose(found["bits_per_byte"], nats / math.log(2) / len(told), rel_tol=1e-12)
    assert len(told) > len(labels) and math.isclose(found["held_out_loss"], nats / len(labels), rel_tol=1e-12)
    config = work.header()["config"]
    assert (config["metric"], config["tokens_per_sample"]) == ("bits_per_byte", 4)
    assert config["parameters"] == count_parameters(**work.network.options)
    work.network.parameters[0].value[:] = np.nan
    assert work.evaluate(1) == {"accuracy": 0.0, "held_out_loss": None, "bits_per_byte": None}


def test_a_run_goes_on_within_an_epoch(tmp_path, monkeypatch):
    settings, design = settings_of(tmp_path, dropout=0.1, **MIXTURE), load_design("c-wang-fp8")
    whole = run(design, settings, seed=1, out=tmp_path / "whole").read_bytes()
    monkeypatch.setattr(loop, "_CHECKPOINT_SECONDS", 0.0)
    done = []

    def stop(iteration, *_):
        done.append(iteration)
        if iteration == 18:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(design, settings, seed=1, out=tmp_path, progress=stop)
    done.clear()
    path = run(design, settings, seed=1, out=tmp_path, progress=lambda iteration, *_: done.append(iteration))
    assert done[0] == 16 and path.read_bytes() == whole


def test_muon_leaves_the_embedding_to_adamw(tmp_path):
    work = Run(settings_of(tmp_path, **MIXTURE), load_design("a-float32"), seed=1)
    optimiser = work.optimisers["all"]
    adam = {parameter.name for parameter, _ in optimiser.arrays_of("second_moment")}
    assert adam == {p.name for p in work.network.parameters if p.value.ndim == 1} | {"embedding.weight"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": "1mm"}, r"no size of gpt is called '1mm'; did you mean '1m'\? \(sizes: 30k, 100k"),
        ({"sizes": (8,)}, r"sizes must be two positive integers, got \(8,\)"),
        ({"kv_heads": 3}, "kv_heads must divide the 2 heads that share them, got 3"),
        ({"vocabulary": 255}, "a vocabulary has 256 to 65536 tokens, the 256 bytes among them, got 255"),
        ({"vocabulary": True}, "got True"),
        ({"feedforward": "gelu"}, "feedforward must be relu or swiglu or relu2, got 'gelu'"),
        ({"biases": 1}, "biases must be true or false, got 1"),
        ({"tied_embeddings": 1}, "tied_embeddings must be true or false, got 1"),
        ({"balance": 0.1}, "balance is for a mixture of experts; state experts, or leave it out"),
        ({"experts": 1}, "a mixture has at least 2 experts and at most as many for a token, got 1 and 1"),
        ({"experts": 2, "experts_chosen": 3}, "a mixture has at least 2 experts and .*, got 2 and 3"),
        ({"experts": 2, "capacity": 0}, "capacity must be positive, got 0"),
        ({"experts": 2, "balance": math.nan}, "balance must be 0 or more, got nan"),
    ],
)
def test_unusable_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_network("gpt", **options)


# -- the commands ------------------------------------------------------------------------------------------------------
def command(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def test_tokens_to_a_target_go_through_the_commands(tmp_path):
    file, out = text_file(tmp_path), tmp_path / "runs"
    words = ["--data", "text", "--data-dir", file, "--batch", 16, "--epochs", 1, "--optimiser", "adamw", "--lr", 0.01]
    sizes = ["--sizes", "8,6", "--set", "depth=1", "--set", "steps=4", "--evaluate-every", 5]
    result = command("train", "gpt", "--design", "a-float32", *words, *sizes, "--tokens", 1300, "--out", out)
    assert result.exit_code == 0, result.output
    assert "20 iterations" in result.stdout and "(best " in result.stdout and "1,280 tokens" in result.stdout
    rows = read_rows(out / "a-float32" / "seed-1.jsonl")
    target = rows[10]["bits_per_byte"]
    (tmp_path / "times.csv").write_text("design,iteration,seconds\na-float32,1,0.5\na-float32,2,0.5\n")
    result = command(
        "tta", "--accuracy", out, "--timings", tmp_path / "times.csv", "--metric", "bits_per_byte", "--target", target,
        "--out", tmp_path / "tta",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"Time to bits_per_byte <= {target:g}" in result.stdout and "640 tokens" in result.stdout
    (first,) = combined(rows[1:], rows[0]["config"], target).designs
    assert first.tokens.median == 10 * 16 * 4 and first.samples.median == 160
    with pytest.raises(ValueError, match="tokens_per_sample of the config must be a positive integer, got '4'"):
        combined(rows[1:], {"tokens_per_sample": "4"}, target)


def combined(rows, config, target):
    """A study of one run's rows."""
    found = tuple(Evaluation(row["iteration"], row["bits_per_byte"]) for row in rows if "bits_per_byte" in row)
    record, times = Record("one", 1, 16, 20, found, config, {}), {"one": IterationTime("one", 1.0)}
    return combine_study([record], times, target=target, baseline="one", metric="bits_per_byte")


@pytest.mark.parametrize(
    ("network", "words", "message"),
    [
        (
            "gpt",
            ["--tokens", "10", "--sizes", "30k"],
            "--tokens 10 is less than one sequence of 64 tokens (--set steps); give more tokens",
        ),
        (
            "gpt",
            ["--tokens", "100", "--samples", "9"],
            "--tokens and --samples both state the amount of data; leave one of them out",
        ),
        ("mlp", ["--tokens", "100"], "--tokens is for networks that train on text, and mlp does not; use --samples"),
        ("gpt", ["--sizes", "2m"], "no size of gpt is called '2m'"),
        ("mlp", ["--set", "experts=2"], "mlp has no parameter 'experts'"),
    ],
)
def test_unusable_words_are_named(network, words, message, tmp_path):
    result = command("train", network, "--design", "a-float32", *words, "--out", tmp_path)
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())


def test_scores_that_no_memory_holds_are_refused_by_their_size():
    net, numerics = make_network("gpt", sizes=(8, 6), depth=2, heads=2, steps=10**7), load_design("a-float32")
    backend = loop.Numerics(numerics, net.layer_names, seed=1).backend
    tokens = Tensor(np.broadcast_to(np.int64(7), (3, 10**7)), backend)
    for training, size, way in ((True, 9_600, "fewer heads, or a smaller --batch"), (False, 4_800, "fewer heads$")):
        message = rf"3 samples x 2 heads x 10000000 x 10000000 steps, need {size:,},000,000,000,000 bytes .*{way}"
        with pytest.raises(ValueError, match=message):
            net.forward(tokens, training=training)
