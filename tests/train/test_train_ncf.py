"""Neural collaborative filtering: files of ratings, what is drawn, how it is ranked, gradients, PyTorch's losses."""

import itertools
import math

import numpy as np
import pytest

from benchmarks import twins
from softnum.train import SGD, Numerics, Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets.ratings import read_ratings
from softnum.train.datasets.sets import DataSet, load_data
from softnum.train.engine.backend import NumpyBackend
from softnum.train.inspect.gradients import check_gradients
from softnum.train.layers.losses import binary_cross_entropy
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import read_rows
from softnum.train.tasks import Recommendation, recommendation
from softnum.train.tasks.recommendation import ranking
from tests.support.train_cases import BINARY64, MIXED, interrupted, moved, needs_torch, numerics_of, watch_products

PAIRS = np.array([[0, 1], [2, 0], [0, 3], [0, 1], [1, 1]])  # a pair twice, rows of embeddings more than once
TARGETS = np.array([[1.0], [0.0], [1.0], [1.0], [0.0]])


def network(tmp_path, text=BINARY64, **options):
    net = make_network("ncf", **{"sizes": (2, 3, 4, 2), "users": 3, "items": 4} | options)
    return net, moved(net, tmp_path, text)[0]


def loss_of(net, numerics, pairs=PAIRS, targets=TARGETS):
    numerics.begin(1)
    return binary_cross_entropy(net.forward(Tensor(pairs, numerics.backend), training=True), targets)


# -- the loss ----------------------------------------------------------------------------------------------------------
def test_the_loss_is_the_binary_cross_entropy():
    logits = np.array([-800.0, -30.0, -1.5, -0.0, 0.0, 0.3, 2.0, 40.0, 800.0])
    for target in (0.0, 1.0):
        backend, targets = NumpyBackend(np.float64), np.full(9, target)
        loss, slope = backend.binary_cross_entropy(logits, targets, 1.0, 9)
        with np.errstate(over="ignore"):
            sigmoid = 1.0 / (1.0 + np.exp(-logits))
        want = np.mean(np.logaddexp(0.0, logits) - target * logits)
        assert abs(loss - want) <= 1e-13 * want
        np.testing.assert_allclose(slope * 9, sigmoid - target, rtol=1e-13, atol=1e-15)


def test_weights_and_count_of_the_loss():
    x = Tensor(np.array([[0.5, -2.0, 1.0]]), NumpyBackend(np.float64), requires_gradient=True)
    targets, weights = np.array([[1.0, 0.0, 1.0]]), np.array([[1.0, 0.5, 0.0]])
    terms = [binary_cross_entropy(Tensor(x.value[:, k], x.backend), targets[:, k]).value for k in range(3)]
    loss = binary_cross_entropy(x, targets, weights=weights, count=2)
    assert math.isclose(loss.value, (terms[0] + 0.5 * terms[1]) / 2, rel_tol=1e-15)
    assert check_gradients(lambda: binary_cross_entropy(x, targets, weights=weights, count=2), [x]) < 1e-7
    loss.backward(8.0)
    scaled = x.gradient
    loss.backward()
    assert np.array_equal(scaled, 8.0 * x.gradient) and x.gradient[0, 2] == 0.0


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_a_logit_that_is_not_finite_makes_the_loss_nan(odd):
    x = Tensor(np.array([0.0, odd]), NumpyBackend(np.float64))
    assert math.isnan(binary_cross_entropy(x, np.array([0.0, 1.0])).value)


# -- the network -------------------------------------------------------------------------------------------------------
def test_gradients_agree_with_finite_differences(tmp_path):
    net, numerics = network(tmp_path)
    assert check_gradients(lambda: loss_of(net, numerics), net.parameters) < 1e-7


def test_the_listed_products_are_those_computed(tmp_path, monkeypatch):
    seen = watch_products(monkeypatch)
    net, numerics = network(tmp_path)
    loss_of(net, numerics).backward()
    assert product_rows(seen) == net.gemms(5)


@needs_torch
@pytest.mark.parametrize("design", ["float64", "float32"])
def test_losses_are_pytorchs(design, tmp_path):
    """The same weights and batches give the same first twenty losses."""
    import torch

    double = design == "float64"
    net, numerics = network(tmp_path, BINARY64 if double else BINARY64.replace("binary64", "binary32"))
    values = twins.parameters_of(net)
    momentum, decay = float(np.float32(0.9)), float(np.float32(1e-4))
    theirs = torch.optim.SGD(values, lr=0.125, momentum=momentum, weight_decay=decay)
    ours = SGD(net.parameters, learning_rate=0.125, momentum=0.9, weight_decay=1e-4)
    rng, losses = np.random.default_rng(9), []
    for iteration in range(1, 21):
        pairs = np.stack([rng.integers(0, 3, 8), rng.integers(0, 4, 8)], axis=1)
        targets = ((pairs.sum(axis=1, keepdims=True) % 2) == 0).astype(np.float64)
        numerics.begin(iteration)
        mine = binary_cross_entropy(net.forward(Tensor(pairs, numerics.backend), training=True), targets)
        mine.backward()
        ours.step()
        theirs.zero_grad()
        logits = twins.forward(net, values, torch.tensor(pairs))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(targets, dtype=logits.dtype))
        loss.backward()
        theirs.step()
        assert abs(mine.value - loss.item()) < (1e-10 if double else 1e-4), iteration
        losses.append(mine.value)
    assert min(losses) < losses[0] - 0.01


def test_embeddings_start_with_the_papers_variance(tmp_path):
    net = make_network("ncf", users=400, items=500)
    net.initialise(numerics_of(tmp_path, names=net.layer_names))
    for parameter in net.parameters[:4]:
        assert abs(parameter.value.std() - 0.01) < 2e-4 and np.abs(parameter.value).max() <= 0.01 * math.sqrt(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (8, 4)}, r"sizes must be at least three positive integers, got \(8, 4\)"),
        ({"users": 0}, "users must be a positive integer, got 0"),
        ({"items": True}, "items must be a positive integer, got True"),
    ],
)
def test_unusable_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_network("ncf", **options)


def test_users_and_items_come_with_the_data():
    net = make_network("ncf", users=2)
    with pytest.raises(ValueError, match="ncf: how many items there are is neither stated nor known of data"):
        net.initialise(Numerics(load_design("a-float32"), net.layer_names, seed=1))
    with pytest.raises(ValueError, match="the network has 2 users, the data have 3"):
        net.make_task(small(), 4, 1)
    net = make_network("ncf", users=7)
    net.make_task(small(), 4, 1)
    assert (net.options["users"], net.options["items"]) == (7, 5)


# -- what is drawn -----------------------------------------------------------------------------------------------------
def small():
    x = np.array([[0, 0], [0, 1], [2, 3], [1, 2], [0, 4]])
    return DataSet("small", x, np.ones(5, int), np.array([[0, 2, 3], [1, 3, 0]]), np.zeros(2, int))


def test_negatives_are_those_of_the_rule():
    task = make_network("ncf").make_task(small(), 4, 1)
    rated = {user: {item for other, item in small().train_x if other == user} for user in range(3)}
    words = np.array([0, 2**64 - 1, 2**63, 2**63 - 1, 0x5555555555555555, 12345678901234567890], np.uint64)
    for user, word in itertools.product(range(3), words.tolist()):
        free = sorted(set(range(5)) - rated[user])
        want = free[word * len(free) >> 64]
        assert task._negatives(np.array([user]), np.array([word], np.uint64)).tolist() == [want]


def test_an_epoch_is_all_ratings_and_four_others_each():
    task = make_network("ncf").make_task(small(), 5, seed=3)
    assert task.per_epoch == 5
    epochs = []
    for epoch in (1, 2, 1):
        pairs, targets = (np.concatenate(part) for part in zip(*task.plan(epoch), strict=True))
        rated = {tuple(pair) for pair in small().train_x.tolist()}
        positive = pairs[targets[:, 0] == 1]
        assert sorted(map(tuple, positive.tolist())) == sorted(rated)
        others = [tuple(pair) for pair in pairs[targets[:, 0] == 0].tolist()]
        assert len(others) == 20 and not rated & set(others)
        assert np.bincount([user for user, _ in others]).tolist() == [12, 4, 4]
        epochs.append(pairs)
    assert np.array_equal(epochs[0], epochs[2]) and not np.array_equal(epochs[0], epochs[1])


def test_the_draws_are_uniform():
    x = np.array([[0, 1], [0, 4]])
    data = DataSet("one", np.repeat(x, 1, axis=0), np.ones(2, int), np.array([[0, 5, 6]]), np.zeros(1, int))
    task = make_network("ncf").make_task(data, 10, seed=3)
    drawn = task._negatives(np.zeros(50000, int), np.random.Philox(key=1).random_raw(50000))
    counts = np.bincount(drawn, minlength=7)
    assert counts[[1, 4]].tolist() == [0, 0] and np.abs(counts[[0, 2, 3, 5, 6]] - 10000).max() < 400


def test_a_user_who_rated_everything_is_named():
    data = DataSet("all", np.array([[0, 0], [0, 1]]), np.ones(2, int), np.array([[0, 1, 0]]), np.zeros(1, int))
    with pytest.raises(ValueError, match="all: user 0 has rated all 2 items; none is left to draw"):
        make_network("ncf").make_task(data, 2, 1)
    with pytest.raises(ValueError, match=r"batch must lie in 1..25, the number of samples, got 26"):
        make_network("ncf").make_task(small(), 26, 1)


# -- how it is ranked --------------------------------------------------------------------------------------------------
def test_ranks_are_means_over_the_orders_of_equals():
    """Against all orders, one by one."""
    rng = np.random.default_rng(4)
    recommend = rng.integers(0, 3, (60, 12)).astype(np.float32)
    hits, gains = ranking(NumpyBackend(), recommend)
    for row, hit, gain in zip(recommend, hits, gains, strict=True):
        equals, before = int((row[1:] == row[0]).sum()), int((row[1:] > row[0]).sum())
        ranks = [before + place for place in range(equals + 1)]
        assert math.isclose(hit, np.mean([rank < 10 for rank in ranks]))
        assert math.isclose(gain, np.mean([(rank < 10) / math.log2(rank + 2) for rank in ranks]), abs_tol=1e-15)


def test_outputs_that_are_not_finite_miss():
    scores = np.array([[np.inf, *np.zeros(20)], [1.0, np.nan, *np.zeros(19)], [1.0, *np.zeros(20)]])
    assert ranking(NumpyBackend(), scores)[0].tolist() == [0, 0, 1]


def test_equal_outputs_are_no_skill():
    hits, _ = ranking(NumpyBackend(), np.zeros((3, 100)))
    assert np.allclose(hits, 0.1)


def test_evaluation_is_the_rank_of_the_held_out_item(tmp_path, monkeypatch):
    monkeypatch.setattr(recommendation, "_PAIRS_AT_A_TIME", 5)  # more than one part
    monkeypatch.setattr(recommendation, "_BEST", 1)
    net, numerics = network(tmp_path, items=5)
    task = net.make_task(small(), 4, 1)
    scores = [
        net.forward(Tensor(np.array([[user, item] for item in items]), numerics.backend)).value[:, 0]
        for user, *items in small().test_x.tolist()
    ]
    assert task.evaluate(numerics)["accuracy"] == np.mean([row.argmax() == 0 for row in scores])


# -- files -------------------------------------------------------------------------------------------------------------
def lines_of(users=6, items=120, seed=0, separator="\t"):
    """Lines of ratings: users have numbers 10, 20, ..., items odd ones, times come more than once."""
    rng, rows = np.random.default_rng(seed), []
    for user in range(1, users + 1):
        for item in rng.permutation(items)[: int(rng.integers(3, 9))]:
            rows.append((10 * user, 2 * int(item) + 1, int(rng.integers(1, 6)), int(rng.integers(100, 104))))
    # every item is rated by someone
    rows += [(10 * (users + 1 + item % 8), 2 * item + 1, 3, item) for item in range(items)]
    return [separator.join(map(str, rows[k])) for k in rng.permutation(len(rows))]


@pytest.mark.parametrize(
    ("file", "separator", "header"),
    [("u.data", "\t", []), ("ratings.dat", "::", []), ("ratings.csv", ",", ["userId,movieId,rating,timestamp"])],
)
def test_the_last_rating_of_each_user_is_held_out(file, separator, header, tmp_path):
    lines = lines_of(separator=separator)
    (tmp_path / file).write_text("\n".join(header + lines))
    data = load_data("movielens", tmp_path)
    rows = [tuple(int(word) for word in line.split(separator)) for line in lines]
    users, items = (sorted({row[k] for row in rows}) for k in (0, 1))
    held_out = set()
    for user in users:
        own = [(row[3], number) for number, row in enumerate(rows) if row[0] == user]
        held_out.add(max(own)[1])
    kept = [(users.index(row[0]), items.index(row[1])) for n, row in enumerate(rows) if n not in held_out]
    assert list(map(tuple, data.train_x.tolist())) == kept and data.train_y.tolist() == [1] * len(kept)
    assert data.test_x.shape == (14, 101) and not data.test_y.any()
    for user, item, *others in data.test_x.tolist():
        rated = {items.index(row[1]) for row in rows if row[0] == users[user]}
        (number,) = (n for n in held_out if rows[n][0] == users[user])
        assert items[item] == rows[number][1]
        assert len(set(others)) == 99 and not rated & set(others) and 0 <= min(others) <= max(others) < 120
    again = load_data("movielens", tmp_path / file)
    assert again.describe() == data.describe()


def test_who_rated_once_has_none_held_out(tmp_path):
    (tmp_path / "u.data").write_text("\n".join([*lines_of(), "5\t1\t3\t7"]))
    train_x, _, test_x, _ = read_ratings(tmp_path)
    assert train_x[-1].tolist() == [0, 0] and len(test_x) == 14 and 0 not in test_x[:, 0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\t2\t3"], r"u.data: line 1: should be a user, an item, a rating and a time, with '\\t' between them, got"),
        (["1\t2\t3\t4", "1\t2\tx\t4"], "u.data: line 2: should be a user"),
        (["1\t2.5\t3\t4"], "u.data: line 1: should be a user"),
        (["1\t2\t3\t4\xe9"], "u.data: cannot be read: 'ascii' codec"),
        ([], "u.data: holds no rating"),
        (["1\t2\t3\t4", "1\t3\t3\t4", "1\t2\t1\t9"], "u.data: user 1 rates item 2 more than once"),
        (["1\t2\t3\t4", "2\t2\t3\t4"], "u.data: no user rates more than one item"),
        (["1\t2\t3\t4", "1\t5\t3\t4", "2\t7\t1\t9"], "u.data: user 1 has not rated 1 of 3 items; 99 are needed"),
    ],
)
def test_unusable_files_are_named(lines, message, tmp_path):
    (tmp_path / "u.data").write_text("\n".join(lines), encoding="latin-1")
    with pytest.raises(ValueError, match=message):
        load_data("movielens", tmp_path)


def test_without_a_file_it_says_how_to_get_one(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"'movielens' is not there \(.* has none of u.data, .*files.grouplens.org"):
        load_data("movielens", tmp_path)
    monkeypatch.delenv("SOFTNUM_DATA", raising=False)
    with pytest.raises(ValueError, match=r"no folder was given.*fetch ml-100k.zip, .*--data-dir"):
        load_data("movielens")


# -- runs --------------------------------------------------------------------------------------------------------------
def settings_of(tmp_path):
    (tmp_path / "ml-100k").mkdir(exist_ok=True)
    (tmp_path / "ml-100k" / "u.data").write_text("\n".join(lines_of()))
    return Settings(
        network="ncf", network_options={"sizes": (2, 3, 4)}, data="movielens", data_folder=str(tmp_path), batch=100,
        epochs=2, evaluate_every=3,
    )  # fmt: skip


def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(tmp_path):
    (tmp_path / "mine.toml").write_text(MIXED)
    design, settings = load_design(tmp_path / "mine.toml"), settings_of(tmp_path)
    path = interrupted(design, settings, tmp_path, at=8)
    rows = read_rows(path)
    assert rows[0]["config"]["network"] == {"name": "ncf", "sizes": [2, 3, 4], "users": 14, "items": 120}
    assert len(rows) == 15 and all(0 <= rows[-1][key] <= 1 for key in ("accuracy", "ndcg"))


def test_every_operation_is_explained(tmp_path):
    explanation = explain(settings_of(tmp_path), load_design("b-binary16"))
    assert {"binary_cross_entropy", "scaled"} <= {step.operation for step in explanation.binary64}
    sums = {step.layer for step in explanation.steps if step.role == "backward_weight" and step.operands[0][1][-2] == 1}
    assert {"gmf.user", "gmf.item", "mlp.user", "mlp.item"} <= sums


def test_other_networks_do_not_take_ratings():
    with pytest.raises(ValueError, match="mlp takes samples of numbers, which 'movielens' is not"):
        make_network("mlp", data="movielens")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a-float32", "b-binary16"])
def test_it_learns_what_groups_of_users_like(name, tmp_path):
    """Two groups of users, each of whom rates films of its own."""
    rng, lines = np.random.default_rng(0), []
    for user in range(60):
        films = rng.permutation(np.arange(120) * 2 + user % 2)[:24]
        lines += [f"{user}\t{film}\t4\t{time}" for time, film in enumerate(films)]
    (tmp_path / "u.data").write_text("\n".join(lines))
    options = {"batch": 256, "epochs": 24, "optimiser": "adam", "learning_rate": 0.01, "evaluate_every": 1000}
    settings = Settings(network="ncf", data="movielens", data_folder=str(tmp_path), **options)
    rows = read_rows(run(load_design(name), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.16  # a tenth by chance, at best a fifth: half of the 99 are of the own group


def test_pairs_are_shared_by_workers_with_their_targets():
    pairs, targets = np.arange(12).reshape(6, 2), np.arange(6.0)
    parts = Recommendation.split(None, (pairs, targets), 3)
    assert [part[0].tolist() for part in parts] == pairs.reshape(3, 2, 2).tolist()
    assert [part[1].tolist() for part in parts] == targets.reshape(3, 2).tolist()
    with pytest.raises(ValueError, match="6 pairs, no equal parts for 4 workers"):
        Recommendation.split(None, (pairs, targets), 4)
