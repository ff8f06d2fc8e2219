"""The Wasserstein GAN: gradients, products, an independent one in NumPy, clipping, coverage, resumption, errors."""

import dataclasses
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets.coverage import Coverage
from softnum.train.datasets.sets import DataSet, batches, load_data
from softnum.train.engine import tensor as engine
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.initial import he_uniform, noise
from softnum.train.layers.losses import signed_means
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import Run, read_rows
from tests.support.train_cases import BINARY64, MIXED, interrupted, judge_directions, moved, numerics_of, watch_products

TINY = {"sizes": (3, 5), "image": (1, 2, 3), "critic_updates": 2}
SHORT = Settings(
    network="wgan", network_options={"sizes": (4, 8), "critic_updates": 2}, batch=128, epochs=2, optimiser="adam",
    beta1=0.0, evaluate_every=4, held_out=60,
)  # fmt: skip


def images(count, seed=0):
    return np.random.default_rng(seed).integers(0, 17, (count, 6)) / 16


def tiny(tmp_path, text=BINARY64, batch=4, **options):
    """A small network, its numerics, and its task with a few images."""
    net = make_network("wgan", **TINY | options)
    numerics, _ = moved(net, tmp_path, text)
    data = DataSet("tiny", images(20), np.zeros(20, np.int64), images(9, 1), np.zeros(9, np.int64))
    return net, numerics, net.make_task(data, batch, 3)


def loss_at(net, numerics, task, group):
    """The first loss of a group in the first iteration; parameters stay."""
    numerics.begin(1)
    clip, net.clip_critic = net.clip_critic, lambda: None
    try:
        return next(loss for loss, of, _ in task.losses(numerics, next(task.plan(1))) if of == group)
    finally:
        net.clip_critic = clip


# -- gradients and products --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("group", ["critic", "generator"])
def test_gradients_agree_with_finite_differences(group, tmp_path):
    parts = tiny(tmp_path)
    judge_directions(lambda: loss_at(*parts, group), parts[0].groups[group])
    others = parts[0].groups["generator" if group == "critic" else "critic"]
    assert all(parameter.gradient is None for parameter in others)


@pytest.mark.parametrize("op", ["loss", "linear", "function"])
def test_a_gradient_off_by_a_thousandth_is_caught(op, tmp_path, monkeypatch):
    rule, parts = engine.GRADIENTS[op], tiny(tmp_path)
    wrong = lambda node, gradient: tuple(None if g is None else g * 1.001 for g in rule(node, gradient))  # noqa: E731
    monkeypatch.setitem(engine.GRADIENTS, op, wrong)
    with pytest.raises(AssertionError, match="generator"):
        judge_directions(lambda: loss_at(*parts, "generator"), parts[0].groups["generator"])


def test_the_listed_products_are_those_computed(tmp_path, monkeypatch):
    seen = watch_products(monkeypatch)
    net, numerics, task = tiny(tmp_path, MIXED)
    numerics.begin(1)
    for loss, _, _ in task.losses(numerics, next(task.plan(1))):
        loss.backward(numerics.loss_scale)
    assert product_rows(seen) == net.gemms(4) and len(seen) == 2 * (4 + 3) + 4 + 2 + 3
    assert [row[:2] for row in seen].count(("critic.ff1", "backward_data")) == 1  # the generator's update alone


def test_means_are_those_of_the_parts_in_their_order():
    backend, x = (
        NumpyBackend(np.float64),
        np.random.default_rng(2).standard_normal((7, 1)) * 10.0 ** np.arange(7)[:, None],
    )
    for parts in (((-1.0, 3), (1.0, 4)), ((-1.0, 7),), ((0.1, 2), (3.0, 5))):
        want, rest = 0.0, x.ravel().tolist()
        for factor, count in parts:
            total = 0.0
            for value in rest[:count]:
                total = total + value
            want, rest = want + factor * (total / count), rest[count:]
        scores = Tensor(x, backend, requires_gradient=True)
        loss = signed_means(scores, parts)
        assert loss.value == want
        loss.backward(8.0)
        assert scores.gradient.ravel().tolist() == [own / n * 8.0 for own, n in parts for _ in range(n)]
    x[3] = np.inf
    assert np.isnan(backend.signed_means(x, ((-1.0, 3), (1.0, 4)))[0])
    with pytest.raises(ValueError, match=r"the parts of 7 scores must have so many rows together, got \(\(1.0, 6\),\)"):
        signed_means(scores, ((1.0, 6),))


# -- the same network written down once more ---------------------------------------------------------------------------
def plain_losses(seed, iterations, updates, batch, hidden, numbers, rate, clip):
    """Training in binary64 with NumPy alone, gradients by hand: the last loss of the critic, and the generator's."""
    data = load_data("digits")
    shapes = ((numbers, hidden), (hidden, 64), (64, hidden), (hidden, 1))
    weights = [he_uniform(seed, index, *shape) for index, shape in enumerate(shapes)]
    g1, g2, c1, c2 = weights
    a1, a2, d1, d2 = biases = [np.zeros(shape[1]) for shape in shapes]
    speeds = {id(p): np.zeros_like(p) for p in (*weights, *biases)}

    def make(index):
        z = noise(seed, index, batch, numbers).astype(np.float64)
        h = np.maximum(z @ g1 + a1, 0)
        return z, h, 1 / (1 + np.exp(-(h @ g2 + a2)))

    def update(pairs):
        for p, gradient in pairs:
            speeds[id(p)][...] = 0.5 * speeds[id(p)] + gradient
            p -= rate * speeds[id(p)]

    losses, index = [], 0
    for rows in batches(1352, updates * batch, seed, 1)[:iterations]:
        for part in rows.reshape(updates, batch):
            index += 1
            x = np.concatenate([data.train_x[part], make(index)[2]])
            h = np.maximum(x @ c1 + d1, 0)
            y = h @ c2 + d2
            e = np.repeat([-1 / batch, 1 / batch], batch)[:, None]
            back = (e @ c2.T) * (h > 0)
            critic = y[batch:].mean() - y[:batch].mean()
            update([(c1, x.T @ back), (d1, back.sum(0)), (c2, h.T @ e), (d2, e.sum(0))])
            for p in (c1, d1, c2, d2):
                np.clip(p, -clip, clip, out=p)
        index += 1
        z, h, x = make(index)
        inner = np.maximum(x @ c1 + d1, 0)
        losses.append((critic, -(inner @ c2 + d2).mean()))
        e = ((np.full((batch, 1), -1 / batch) @ c2.T) * (inner > 0)) @ c1.T * x * (1 - x)
        back = (e @ g2.T) * (h > 0)
        update([(g1, z.T @ back), (a1, back.sum(0)), (g2, h.T @ e), (a2, e.sum(0))])
    return losses


def test_it_is_a_wasserstein_gan(tmp_path):
    (tmp_path / "mine.toml").write_text(BINARY64)
    options = {"sizes": (5, 12), "critic_updates": 3, "critic_clip": 0.125}
    settings = Settings(
        network="wgan", network_options=options, batch=20, epochs=1, learning_rate=0.5, momentum=0.5, weight_decay=0.0
    )
    work = Run(settings, load_design(tmp_path / "mine.toml"), 4)
    assert work.per_epoch == 1352 // 60
    rows = [work.train(iteration, part) for iteration, part in islice(work.plan(1), 10)]
    want = plain_losses(4, 10, 3, 20, 12, 5, 0.5, 0.125)
    np.testing.assert_allclose([(row["loss"], row["generator_loss"]) for row in rows], want, rtol=0, atol=1e-10)


# -- clipping ----------------------------------------------------------------------------------------------------------
CLIPPED = 'name = "c"\n[roles]\ndefault = "binary32"\nmaster = {{ format = "e4m3", rounding = "{}" }}\n'


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "stochastic"])
def test_the_critics_parameters_are_clipped_and_values_of_master(rounding, tmp_path):
    net = make_network("wgan", **TINY, critic_clip=0.1)
    numerics, _ = moved(net, tmp_path, CLIPPED.format(rounding))
    before = {p.name: p.value.copy() for p in net.parameters}
    numerics.begin(1)
    net.clip_critic()
    around = {sn.quantize(np.float64(0.1), "e4m3", rounding=mode).item() for mode in ("up", "down")}
    for group, parameters in net.groups.items():
        for parameter in parameters:
            old, new = before[parameter.name], parameter.value
            assert np.array_equal(sn.quantize(new, "e4m3"), new)
            large = (np.abs(old) > 0.1) & (group == "critic")
            assert np.array_equal(new[~large], old[~large])
            assert set(np.abs(new[large]).tolist()) <= around and np.array_equal(
                np.sign(new[large]), np.sign(old[large])
            )
            if rounding == "toward_zero" and large.any():
                assert set(np.abs(new[large]).tolist()) == {min(around)}
    assert any((np.abs(before[p.name]) > 0.1).any() for p in net.groups["critic"])


def test_each_group_is_updated_by_its_own_loss_alone(tmp_path):
    work, seen = Run(SHORT, load_design("a-float32"), 1), []

    def values(group):
        return np.concatenate([p.value.ravel() for p in work.network.groups[group]])

    update = work._update

    def watched(*parts):
        before = {group: values(group) for group in work.network.groups}
        done = update(*parts)
        seen.append([group for group, value in before.items() if not np.array_equal(value, values(group))])
        return done

    work._update = watched
    for iteration, part in work.plan(1):
        work.train(iteration, part)
        assert np.abs(values("critic")).max() == np.float32(0.01)
    assert seen == [["critic"], ["critic"], ["generator"]] * 5
    assert {group: optimiser.steps for group, optimiser in work.optimisers.items()} == {"critic": 10, "generator": 5}


# -- how well it does --------------------------------------------------------------------------------------------------
def slow_coverage(real, generated, k):
    """Coverage with exact fractions."""
    rows = [
        [[Fraction(round(Fraction(float(v)) * 256), 256) for v in image] for image in part]
        for part in (real, generated)
    ]

    def square(a, b):
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    covered = 0
    for i, image in enumerate(rows[0]):
        radius = sorted(square(image, other) for j, other in enumerate(rows[0]) if j != i)[k - 1]
        covered += any(square(image, made) <= radius for made in rows[1])
    return covered / len(real)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_coverage_is_that_of_exact_distances(k):
    rng = np.random.default_rng(k)
    real, made = rng.integers(0, 5, (12, 3)) / 4, rng.random((8, 3)) * 1.2 - 0.1
    assert Coverage(real, k)(made) == slow_coverage(real, np.clip(made, 0, 1), k)
    row = np.array([[0.0], [0.25], [0.5]])
    assert Coverage(row, 1)(np.array([[0.75]])) == 1 / 3  # as far as the nearest other is near


def test_coverage_tells_good_generators_from_bad():
    data = load_data("digits")
    judge = Coverage(data.test_x)
    assert judge(data.test_x) == 1.0
    assert judge(data.train_x[: len(data.test_x)]) > 0.9
    assert judge(data.train_x.mean(axis=0, keepdims=True)) < 0.1
    assert judge(data.test_x[:1].repeat(445, axis=0)) < 0.05  # always the same
    made = data.test_x.copy()
    made[::2, 5] = np.nan
    assert judge(made) == judge(data.test_x[1::2]) < 1.0
    assert judge(np.full((3, 64), np.inf)) == 0.0
    with pytest.raises(ValueError, match="coverage needs more than 5 held-out images, there are 5; hold out more"):
        Coverage(data.test_x[:5])


def test_noise_is_exact_in_binary32_and_never_the_same():
    draws = [noise(7, index, 40, 50) for index in range(3)]
    assert all(x.dtype == np.float32 and -1 <= x.min() < -0.99 and 0.99 < x.max() < 1 for x in draws)
    assert all(np.array_equal(x * 2.0**23, np.rint(x * 2.0**23)) for x in draws)
    assert len(np.unique(np.concatenate(draws))) > 5990 and abs(np.mean(draws)) < 0.03
    assert np.array_equal(noise(7, 1, 10, 50), draws[1][:10])


def test_no_two_updates_of_a_run_take_the_same_noise(tmp_path):
    task = tiny(tmp_path)[2]
    firsts = [first for epoch in (1, 2) for first, _ in task.plan(epoch)]
    assert firsts == [1, 4, 7, 10] and task.per_epoch == 2  # two updates of the critic and one of the generator each
    assert all(samples.shape == (2, 4) for _, samples in task.plan(1))


# -- runs --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "stop"), [("mine", 7), ("c-wang-fp8", 3)])
def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(name, stop, tmp_path):
    (tmp_path / "mine.toml").write_text(MIXED)
    settings = dataclasses.replace(SHORT, optimiser="sgd", beta1=None) if name == "mine" else SHORT
    design = load_design(tmp_path / "mine.toml" if name == "mine" else name)
    path = interrupted(design, settings, tmp_path, at=stop)
    header, *rows = read_rows(path)
    assert header["config"]["network"] == {
        "name": "wgan", "sizes": [4, 8], "image": [1, 8, 8], "critic_updates": 2, "critic_clip": 0.01,
    }  # fmt: skip
    assert len(rows) == 10 and all({"loss", "generator_loss"} <= set(row) for row in rows)
    assert 0 <= rows[-1]["accuracy"] <= 1


def test_a_loss_without_a_number_ends_the_run(tmp_path):
    """Of the critic or the generator: the row is valid JSON and says so."""
    (tmp_path / "narrow.toml").write_text(
        '[roles]\ndefault = "binary32"\n[layers."critic.fc".roles]\n'
        'output = { format = "e5m2", overflow = "infinity" }\n'
    )
    options = {"sizes": (4, 8), "critic_updates": 1, "critic_clip": 1e6}
    settings = Settings(network="wgan", network_options=options, batch=128, epochs=3, learning_rate=1000.0)
    rows = read_rows(run(load_design(tmp_path / "narrow.toml"), settings, seed=1, out=tmp_path))
    assert rows[-1]["diverged"] is True and rows[-1]["loss"] is None and "accuracy" in rows[-1]
    work = Run(settings, load_design("a-float32"), 1)
    iteration, part = next(iter(work.plan(1)))
    score = work.network.score
    work.network.score = lambda images, frozen=False: Tensor(
        score(images, frozen=frozen).value * (np.nan if frozen else 1), images.backend
    )
    row = work.train(iteration, part)
    assert row["generator_loss"] is None and np.isnan(row["loss"])


def test_every_operation_is_explained():
    found = explain(SHORT, load_design("c-wang-fp8"))
    assert {step.operation for step in found.binary64} == {"signed_means", "scaled", "divide"}
    first = {step.layer: step for step in found.steps if step.role == "forward"}
    assert [name for name, _ in first["critic.fc"].operands[:2]] == ["e6m9", "e6m9"]  # the last layer of its chain
    assert [name for name, _ in first["critic.ff1"].operands[:2]] == ["e5m2", "e5m2"]
    assert any(step.operation == "sigmoid" and step.layer == "generator.fc" for step in found.steps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (16,)}, r"sizes must be at least two positive integers, got \(16,\)"),
        ({"image": (8, 8)}, r"image must be three positive integers, got \(8, 8\)"),
        ({"critic_updates": 0}, "critic_updates must be a positive integer, got 0"),
        ({"critic_clip": 0.0}, "critic_clip must be a positive number, got 0.0"),
        ({"critic_clip": float("inf")}, "critic_clip must be a positive number, got inf"),
        ({"image": (1, 4, 4)}, "the network makes images of 16 numbers, the data have 64 a sample"),
        ({"critic_updates": 50}, "an iteration takes 50 batches of 32, the data have 1352 samples; take a smaller"),
    ],
)
def test_unusable_options_are_named(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(load_design("a-float32"), Settings(network="wgan", network_options=options), seed=1, out=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a-float32", "c-wang-fp8"])
def test_it_learns(name, tmp_path):
    settings = Settings(
        network="wgan", network_options={"critic_clip": 0.05}, epochs=60, optimiser="adam", learning_rate=0.003,
        beta1=0.0, beta2=0.99,
    )  # fmt: skip
    rows = read_rows(run(load_design(name), settings, seed=1, out=tmp_path))
    found = [row["accuracy"] for row in rows[1:] if "accuracy" in row]
    assert found[0] < 0.1 and np.mean(found[-5:]) > 0.3


def test_a_layer_without_gradients_of_its_own_passes_those_of_its_input(tmp_path):
    from softnum.train.layers.feedforward import Linear

    numerics = numerics_of(tmp_path, BINARY64, ("first", "fc"))
    layer = Linear("fc", 3, 2)
    layer.initialise(numerics, 0)
    results = []
    for frozen in (False, True):
        x = Tensor(np.arange(6.0).reshape(2, 3), numerics.backend, requires_gradient=True)
        for parameter in layer.parameters:
            parameter.gradient = None
        engine.softmax_cross_entropy(layer(x, frozen=frozen), np.array([0, 1])).backward()
        results.append((x.gradient, layer.parameters[0].gradient))
    assert np.array_equal(results[0][0], results[1][0])
    assert results[0][1] is not None and results[1][1] is None
