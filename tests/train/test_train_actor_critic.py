"""The actor-critic: its loss, its returns against a slow rollout, CartPole's bits, resumption, and what it refuses."""

import dataclasses
import sys
from itertools import islice

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets.environments import CartPole
from softnum.train.datasets.sets import load_data
from softnum.train.engine import tensor as engine
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.initial import DOMAIN_ACTIONS, DOMAIN_STARTS, he_uniform, random_words
from softnum.train.layers.losses import policy_loss
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import Run, read_rows
from softnum.train.tasks import control
from tests.support.train_cases import BINARY64, MIXED, interrupted, judge_directions, moved, watch_products

SMALL = {"sizes": (4, 6, 2), "steps": 3}
SETTINGS = Settings(network="actor-critic", network_options=SMALL, batch=6, learning_rate=0.05)


@pytest.fixture
def short_epochs(monkeypatch):
    """Epochs of four iterations, episodes of nine steps at most."""
    monkeypatch.setattr(control, "_ITERATIONS", 4)
    monkeypatch.setattr(CartPole, "limit", 9)


def design(tmp_path, text):
    (tmp_path / "mine.toml").write_text(text)
    return load_design(tmp_path / "mine.toml")


# -- the loss ----------------------------------------------------------------------------------------------------------
def batch_of(actions=3, rows=7, seed=0):
    rng = np.random.default_rng(seed)
    taken = rng.integers(0, actions, rows)
    return rng.standard_normal((rows, actions + 1)) * 2, taken, rng.standard_normal(rows) * 5, rng.standard_normal(rows)


def plain_loss(outputs, actions, returns, advantages, value_weight, entropy):
    logits, values = outputs[:, :-1], outputs[:, -1]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    chosen = np.log(p[np.arange(len(actions)), actions])
    disorder = -(p * np.log(p)).sum(axis=1)
    return np.mean(-chosen * advantages + value_weight * (returns - values) ** 2 - entropy * disorder)


def test_the_loss_and_its_gradient(tmp_path):
    outputs, *rest = batch_of()
    weights = {"value_weight": 0.25, "entropy": 0.5}
    leaf = Tensor(outputs, NumpyBackend(np.float64), requires_gradient=True)
    loss = policy_loss(leaf, *rest, **weights)
    assert abs(loss.value - plain_loss(outputs, *rest, **weights)) < 1e-14
    loss.backward(4.0)
    for index in np.ndindex(outputs.shape):
        sides = []
        for step in (1e-5, -1e-5):
            near = outputs.copy()
            near[index] += step
            sides.append(plain_loss(near, *rest, **weights))
        assert abs(4 * (sides[0] - sides[1]) / 2e-5 - leaf.gradient[index]) < 1e-8


def test_logits_far_apart_and_without_a_number():
    outputs, *rest = batch_of()
    outputs[0, :3] = 800.0, -800.0, 0.0  # a probability of 0, whose entropy is 0
    backend, weights = NumpyBackend(np.float64), (0.5, 0.01)
    loss, gradient = backend.policy_loss(outputs, *rest, *weights)
    assert np.isfinite(loss) and np.isfinite(gradient).all()
    outputs[3, 3] = np.inf
    loss, gradient = backend.policy_loss(outputs, *rest, *weights)
    assert np.isnan(loss) and np.isnan(gradient).all()


def test_actions_are_drawn_by_their_words():
    backend = NumpyBackend(np.float64)
    thirds = np.zeros((6, 3))
    ends = [0, 2**64 // 3 - 2**12, 2**64 // 3 + 2**12, 2 * (2**64 // 3) - 2**12, 2 * (2**64 // 3) + 2**12, 2**64 - 1]
    assert backend.draw(thirds, np.array(ends, np.uint64)).tolist() == [0, 0, 1, 1, 2, 2]
    words = random_words(1, DOMAIN_ACTIONS, 1, 20000)
    drawn = backend.draw(np.log(np.tile([[0.1, 0.6, 0.3]], (20000, 1))), words)
    assert np.abs(np.bincount(drawn) / 20000 - [0.1, 0.6, 0.3]).max() < 0.01
    sure = backend.draw(np.tile([[-900.0, 0.0]], (1000, 1)), words[:1000])  # its probability rounds to 0
    assert (sure == 1).all()


def test_gradients_agree_with_finite_differences(tmp_path):
    net = make_network("actor-critic", sizes=(4, 6, 3))
    numerics, _ = moved(net, tmp_path)
    _, actions, returns, advantages = batch_of()
    seen = np.random.default_rng(4).standard_normal((7, 4))

    def loss():
        numerics.begin(1)
        outputs = net.forward(Tensor(seen, numerics.backend), training=True)
        return policy_loss(outputs, actions, returns, advantages, value_weight=0.5, entropy=0.1)

    judge_directions(loss, net.parameters)


def test_a_gradient_off_by_a_thousandth_is_caught(tmp_path, monkeypatch):
    rule = engine.GRADIENTS["loss"]
    monkeypatch.setitem(engine.GRADIENTS, "loss", lambda node, g: tuple(p * 1.001 for p in rule(node, g)))
    with pytest.raises(AssertionError, match="fc"):
        test_gradients_agree_with_finite_differences(tmp_path)


# -- the environment ---------------------------------------------------------------------------------------------------
def test_a_step_is_gymnasiums():
    """Against Gymnasium's other implementation, that of one cart, from states all over."""
    import gymnasium

    one, many = gymnasium.make("CartPole-v1").unwrapped, CartPole()
    rng = np.random.default_rng(3)
    states = rng.uniform(-1, 1, (4, 60)) * np.array([[2.6], [3.0], [0.25], [3.0]])
    actions = rng.integers(0, 2, 60)
    after, rewards, fallen = many.step(states, actions)
    for i in range(60):
        one.reset(seed=1)
        one.state = states[:, i]
        seen, reward, over, _, _ = one.step(actions[i])
        np.testing.assert_allclose(after[:, i], one.state, rtol=1e-14, atol=1e-15)
        assert (reward, over) == (rewards[i], fallen[i])
        np.testing.assert_allclose(many.observe(after)[i], seen, rtol=1e-6)
    assert 0 < fallen.sum() < 60


def test_a_steps_bits_follow_from_ieee_754_and_correctly_rounded_functions():
    """The formulas of Barto, Sutton and Anderson in Gymnasium's order, one operation at a time.

    Of so many carts some would tell NumPy's sine and cosine from the correctly rounded ones.
    """
    rng = np.random.default_rng(5)
    states, actions = rng.uniform(-0.3, 0.3, (4, 20000)), rng.integers(0, 2, 20000)
    x, v, angle, turn = states
    codes = sn.encode(angle, "binary64")
    sine, cosine = (sn.decode(f(codes, "binary64"), "binary64") for f in (sn.sin, sn.cos))
    force = np.where(actions == 1, 10.0, -10.0)
    total = 0.1 + 1.0
    temp = (force + 0.1 * 0.5 * (turn * turn) * sine) / total
    turning = (9.8 * sine - cosine * temp) / (0.5 * (4.0 / 3.0 - 0.1 * (cosine * cosine) / total))
    pushing = temp - 0.1 * 0.5 * turning * cosine / total
    want = np.stack([x + 0.02 * v, v + 0.02 * pushing, angle + 0.02 * turn, turn + 0.02 * turning])
    assert np.array_equal(CartPole().step(states, actions)[0], want)


def test_a_gymnasium_that_computes_otherwise_is_refused(monkeypatch):
    from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

    def step(self, actions):
        self.state = np.stack(self.state)
        return None, np.ones(2), np.zeros(2, bool), None, {}

    monkeypatch.setattr(CartPoleVectorEnv, "step", step)
    with pytest.raises(ValueError, match=r"Gymnasium [\d.]+ computes CartPole-v1 by other functions than np.sin and"):
        CartPole().step(np.zeros((4, 2)), [0, 1])


def test_without_gymnasium_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ValueError, match=r"Gymnasium is not installed: pip install 'softnum\[rl\]'"):
        CartPole()


def test_starts_are_spread_over_their_range():
    states = CartPole().start(random_words(1, DOMAIN_STARTS, 0, 4000).reshape(4, 1000))
    assert -0.05 <= states.min() < -0.0499 and 0.0499 < states.max() < 0.05


# -- acting ------------------------------------------------------------------------------------------------------------
def slow_rollout(net, numerics, seed, iterations, environments, limit):
    """Acting for some iterations with one cart at a time: what each iteration's update gets."""
    data, steps, started = load_data("cartpole"), net.steps, 0

    def start():
        nonlocal started
        words = random_words(seed, DOMAIN_STARTS, started, 4)
        started += 1
        return [0, data.start(words.reshape(4, 1))]

    def look(state):
        return net.forward(Tensor(numerics.backend.array(data.observe(state)), numerics.backend)).value[0]

    carts = [start() for _ in range(environments)]
    for iteration in range(1, iterations + 1):
        words = random_words(seed, DOMAIN_ACTIONS, iteration, steps * environments).tolist()
        rows = {}
        for step in range(steps):
            for number, cart in enumerate(carts):
                logits, value = np.split(look(cart[1]), [2])
                p = np.exp(logits[0] - logits.max()) / np.exp(logits - logits.max()).sum()
                action = int(words[step * environments + number] / 2**64 >= p)
                seen = data.observe(cart[1])[0]
                cart[1], reward, over = data.step(cart[1], [action])
                cart[0] += 1
                ends = "fell" if over[0] else "cut" if cart[0] >= limit else ""
                rows[step, number] = [seen, action, value[0], reward[0], ends, look(cart[1])[2]]
            for number in range(environments):  # in this order the episodes are numbered
                if rows[step, number][4]:
                    carts[number] = start()
        found = {}
        for step in reversed(range(steps)):
            for number in range(environments):
                seen, action, value, reward, ends, ahead = rows[step, number]
                if ends == "fell":
                    later = 0.0
                elif ends == "cut" or step == steps - 1:
                    later = ahead
                else:
                    later = found[step + 1, number][2]
                result = reward + net.discount * later
                found[step, number] = seen, action, result, result - value
        order = [(step, number) for step in range(steps) for number in range(environments)]
        yield [found[place] for place in order], {rows[place][4] for place in order}


def test_what_came_of_acting_is_that_of_carts_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(CartPole, "limit", 9)
    net = make_network("actor-critic", sizes=(4, 6, 2), steps=5, discount=0.9)
    numerics, _ = moved(net, tmp_path)
    task, ends = net.make_task(load_data("cartpole"), 15, 3), set()
    for iteration, (want, seen) in enumerate(slow_rollout(net, numerics, 3, 12, 3, 9), start=1):
        found = task._act(numerics.backend, iteration)
        for got, expected in zip(found, zip(*want, strict=True), strict=True):
            np.testing.assert_allclose(got, np.array(expected), rtol=0, atol=1e-12)
        ends |= seen
    assert ends == {"fell", "cut", ""}  # all that can happen did


def test_trying_a_design_out_moves_no_cart():
    """What a design with code of its own is tried out on leaves no trace in the run."""
    work = Run(SETTINGS, load_design("h-posit8"), 1)  # which tries it out
    iteration, part = next(iter(work.plan(1)))
    row = work.train(iteration, part)
    again = Run(SETTINGS, load_design("h-posit8"), 1)
    again.task._begin()
    assert again.train(iteration, part) == row and again.task.state()["ages"].max() <= 3


def test_the_listed_products_are_those_computed(tmp_path, monkeypatch):
    seen = watch_products(monkeypatch)
    work = Run(SETTINGS, design(tmp_path, MIXED), 1)
    iteration, part = next(iter(work.plan(1)))
    work.train(iteration, part)
    assert product_rows(seen) == work.network.gemms(6) and len(seen) == 2 * (3 + 1 + 1) + 3


# -- the same training written down once more --------------------------------------------------------------------------
def test_it_is_an_advantage_actor_critic(tmp_path):
    """Twenty updates in binary64 with NumPy alone, gradients by hand, of the same carts."""
    options = {"sizes": (4, 6, 2), "steps": 5, "discount": 0.95, "value_weight": 0.25, "entropy": 0.05}
    settings = Settings(
        network="actor-critic", network_options=options, batch=15, learning_rate=0.125, momentum=0.5, weight_decay=0.0
    )
    work = Run(settings, design(tmp_path, BINARY64), 4)
    w, v = he_uniform(4, 0, 4, 6), he_uniform(4, 1, 6, 3)
    b, d = np.zeros(6), np.zeros(3)
    speeds = [np.zeros_like(p) for p in (w, b, v, d)]
    act, rollouts = work.task._act, []
    work.task._act = lambda *parts: rollouts.append(act(*parts)) or rollouts[-1]
    for iteration, part in islice(work.plan(1), 20):
        row = work.train(iteration, part)
        seen, actions, returns, advantages = rollouts[-1]
        hidden = np.maximum(seen @ w + b, 0)
        outputs = hidden @ v + d
        assert abs(row["loss"] - plain_loss(outputs, actions, returns, advantages, 0.25, 0.05)) < 1e-10, iteration
        np.testing.assert_allclose(returns - outputs[:, 2], advantages, rtol=0, atol=1e-10)
        p = np.exp(outputs[:, :2])
        p /= p.sum(axis=1, keepdims=True)
        error = np.empty_like(outputs)
        disorder = -(p * np.log(p)).sum(axis=1, keepdims=True)
        error[:, :2] = (p - np.eye(2)[actions]) * advantages[:, None] + 0.05 * p * (np.log(p) + disorder)
        error[:, 2] = 2 * 0.25 * (outputs[:, 2] - returns)
        error /= 15
        back = (error @ v.T) * (hidden > 0)
        gradients = seen.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)
        for value, speed, gradient in zip((w, b, v, d), speeds, gradients, strict=True):
            speed[...] = 0.5 * speed + gradient
            value -= 0.125 * speed


# -- runs --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "stop"), [("mine", 3), ("mine", 6), ("c-wang-fp8", 8), ("a-float32", 11)])
def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(name, stop, tmp_path, short_epochs):
    mine = design(tmp_path, MIXED)
    chosen = mine if name == "mine" else load_design(name)
    settings = dataclasses.replace(SETTINGS, epochs=3, evaluate_every=4)
    path = interrupted(chosen, settings, tmp_path, at=stop)
    header, *rows = read_rows(path)
    assert header["config"]["data"]["name"] == "cartpole" and header["config"]["data"]["gymnasium"]
    assert header["config"]["network"]["steps"] == 3
    assert [row["epoch"] for row in rows] == [1] * 4 + [2] * 4 + [3] * 4
    assert [row["reward"] / 9 for row in rows if "reward" in row] == [r["accuracy"] for r in rows if "accuracy" in r]


def test_records_do_not_depend_on_the_instruction_set(isa, tmp_path, short_epochs, record_here):
    mine = design(tmp_path, MIXED)
    settings = dataclasses.replace(SETTINGS, epochs=2, evaluate_every=4)
    assert run(mine, settings, seed=1, out=tmp_path).read_bytes() == record_here(mine, settings)


@pytest.fixture(scope="module")
def record_here(tmp_path_factory):
    """A record, made once, by the instruction set that is tested first."""
    found = []

    def record(mine, settings):
        if not found:
            found.append(run(mine, settings, seed=1, out=tmp_path_factory.mktemp("record")).read_bytes())
        return found[0]

    return record


def test_episodes_go_on_over_checkpoints(tmp_path, short_epochs):
    """Without the environments' state a resumed run would not end with the same bytes."""
    work = Run(SETTINGS, load_design("a-float32"), 1)
    for iteration, part in work.plan(1):
        work.train(iteration, part)
    state = work.state()
    again = Run(SETTINGS, load_design("a-float32"), 1)
    again.restore(state | {"epoch": 1})
    assert np.array_equal(again.task.state()["states"], work.task.state()["states"])
    assert again.task.state()["episodes"] == work.task.state()["episodes"] > 2
    assert np.array_equal(again.task.state()["ages"], work.task.state()["ages"]) and work.task.state()["ages"].any()


def test_evaluation_is_greedy_and_counts_steps(tmp_path):
    work = Run(SETTINGS, load_design("a-float32"), 1)
    for parameter in work.network.parameters:
        parameter.value = np.zeros_like(parameter.value)
    first = work.evaluate(1)  # equal logits: always left, so every pole falls after about nine steps
    assert first == work.evaluate(1) and 8 / 500 <= first["accuracy"] <= 11 / 500
    assert first["reward"] == pytest.approx(first["accuracy"] * 500)
    value = work.network.parameters[-1]
    value.value[:] = np.float32([-1, 1, 100])  # always right; the value has no say
    right = work.evaluate(1)
    assert 8 / 500 <= right["accuracy"] <= 11 / 500 and right != first
    # to the side that the pole leans and turns to
    work.network.parameters[0].value[:] = 0
    for hidden, sign in enumerate((-1.0, 1.0)):
        work.network.parameters[0].value[2:, hidden] = sign, 2 * sign
        work.network.parameters[2].value[hidden, hidden] = 1
    value.value[:] = 0
    balanced = work.evaluate(1)
    assert balanced["accuracy"] > 0.3
    work.network.parameters[2].value[0, 2] = np.inf
    assert work.evaluate(1)["accuracy"] < balanced["accuracy"] / 4  # ends where an output is no number


def test_outputs_without_a_number_end_the_run(tmp_path):
    settings = dataclasses.replace(SETTINGS, learning_rate=1e30, epochs=1)
    text = '[roles]\ndefault = "binary32"\n[units]\nforward = { accumulator = "e5m2" }\n'
    rows = read_rows(run(design(tmp_path, text), settings, seed=1, out=tmp_path))
    assert rows[-1]["diverged"] is True and rows[-1]["loss"] is None and rows[-1]["accuracy"] < 0.05


def test_every_operation_is_explained():
    found = explain(SETTINGS, load_design("b-binary16"))
    assert {step.operation for step in found.binary64} >= {"draw", "policy_loss", "scaled"}
    assert sum(step.operation == "matmul" and step.layer == "fc2" for step in found.steps) == 3 + 1 + 1 + 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network_options": {"sizes": (4,)}}, r"sizes must be at least two positive integers, got \(4,\)"),
        (
            {"network_options": {"sizes": (5, 8, 2)}},
            "the network takes 5 numbers and gives 2 actions, cartpole has obs",
        ),
        (
            {"network_options": {"sizes": (4, 8, 3)}},
            "the network takes 4 numbers and gives 3 actions, cartpole has obs",
        ),
        ({"network_options": {"steps": 0}}, "steps must be a positive integer, got 0"),
        ({"network_options": {"steps": 5}}, "batch is the number of environments times the 5 steps in each, got 32"),
        ({"network_options": {"discount": 1.5}}, "discount must be a number from 0 to 1, got 1.5"),
        ({"network_options": {"entropy": -1.0}}, "entropy must be a number, not negative, got -1.0"),
        ({"network_options": {"value_weight": float("nan")}}, "value_weight must be a number, not negative, got nan"),
        ({"data": "digits"}, r"actor-critic takes an environment to act in, .*'digits' is not .*for it: cartpole\)"),
        (
            {"samples": 5},
            "cartpole is an environment and has no samples; leave out --samples",
        ),
    ],
)
def test_unusable_settings_are_named(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(load_design("a-float32"), Settings(network="actor-critic", **change), seed=1, out=tmp_path)


def test_the_data_follow_the_network():
    assert Settings(network="actor-critic").data == "cartpole" and Settings(network="wgan").data == "digits"
    assert Settings(network="recurrent-lm").data == "text" and Settings(network="nonsense").data == "digits"
    with pytest.raises(
        ValueError, match=r"mlp takes samples of numbers, which 'cartpole' is not \(.*for it: cifar10, "
    ):
        make_network("mlp", data="cartpole")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a-float32", "c-wang-fp8"])
def test_it_learns(name, tmp_path):
    settings = Settings(network="actor-critic", batch=128, epochs=1, optimiser="adam", learning_rate=0.003)
    rows = read_rows(run(load_design(name), settings, seed=1, out=tmp_path))
    found = [row["accuracy"] for row in rows[1:] if "accuracy" in row]
    assert max(found) > 0.4
