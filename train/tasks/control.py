"""Acting in an environment for its rewards."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from softnum.train.engine.binary64 import host
from softnum.train.engine.initial import DOMAIN_ACTIONS, DOMAIN_STARTS, random_words
from softnum.train.engine.tensor import Tensor
from softnum.train.layers.losses import policy_loss
from softnum.train.tasks.task import Task, Update

__all__ = ["Control"]

_ITERATIONS = 500  # of an epoch
_EPISODES = 16  # of an evaluation


class Control(Task):
    """Advantage actor-critic with n-step returns, in several environments in lock step.

    An iteration acts for ``network.steps`` steps: the network's forward pass gives logits and values, in the design's
    arithmetic, and an action is drawn from the softmax in each environment, by a word of the iteration's own
    (``softnum.train.engine.backend.NumpyBackend.draw``). What followed is passed once more as one batch, step by step,
    for the update (`softnum.train.layers.losses.policy_loss`). The return of a step is, in binary64::

        reward + discount * next      next: the return of the next step; 0 if the pole fell; of the last step, and where
                                      the limit of steps cut an episode off, the network's value of the state it led to

    and its advantage the return - the value that it had as the action was taken. An epoch is 500 iterations; episodes
    go on from one iteration to the next.

    ``accuracy`` is the mean length of 16 episodes over the limit of steps, and ``reward`` the mean of their rewards'
    sums: greedy ones, that take the action with the largest logit, the first among equals. They start from the same
    states in every evaluation of every run; one whose outputs are not all finite ends there.

    Parameters
    ----------
    network, data, batch, seed
        As of `softnum.train.tasks.task.Task`; data is an environment (`softnum.train.datasets.environments`).

    Raises
    ------
    ValueError
        If the environment does not fit the network, or the batch is no multiple of the network's steps.

    References
    ----------
    V. Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning", 2016, algorithm S3.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import load_data
    >>> make_network("actor-critic").make_task(load_data("cartpole"), batch=32, seed=1).environments
    4
    """

    trial = 1  # the first iteration starts its episodes itself

    def __init__(self, network, data, batch: int, seed: int) -> None:
        if (network.inputs, network.actions) != (data.observations, data.actions):
            raise ValueError(
                f"the network takes {network.inputs} numbers and gives {network.actions} actions, {data.name} has "
                f"observations of {data.observations} and {data.actions} actions"
            )
        self.network, self.data, self.batch, self.seed = network, data, batch, seed
        self.environments = network.environments(batch)
        self.per_epoch, self.samples = _ITERATIONS, _ITERATIONS * batch
        words = random_words(0, DOMAIN_STARTS, 2**32 - 1, data.observations * _EPISODES)
        self._first = data.start(words.reshape(data.observations, _EPISODES))
        self._begin()

    def plan(self, epoch: int) -> Iterator[int]:
        """The numbers of the iterations."""
        return iter(range((epoch - 1) * self.per_epoch + 1, epoch * self.per_epoch + 1))

    def split(self, part, workers: int) -> list:
        """No parts: an iteration acts in environments whose states go on."""
        raise ValueError(
            f"{workers} workers cannot share an iteration of {self.network.name!r}, which acts in environments whose "
            "states go on; train it by one"
        )

    def losses(self, numerics, part) -> Iterator[Update]:
        """The loss of one iteration's steps."""
        if part == 1:
            self._begin()
        network, backend = self.network, numerics.backend
        found = self._act(backend, part)
        if found is None:
            yield Update(Tensor(math.nan, backend))
            return
        seen, actions, returns, advantages = found
        outputs = network.forward(Tensor(seen, backend), training=True)
        yield Update(
            policy_loss(
                outputs, actions, returns, advantages, value_weight=network.value_weight, entropy=network.entropy
            )
        )

    def evaluate(self, numerics) -> dict[str, float]:
        """How long episodes last in which the likeliest action is taken, and what they earn."""
        data, states = self.data, self._first
        going = np.ones(_EPISODES, bool)
        lengths, earned = np.zeros(_EPISODES, np.int64), np.zeros(_EPISODES)
        for _ in range(data.limit):
            outputs = self._outputs(numerics.backend, data.observe(states))
            going &= np.isfinite(outputs).all(axis=1)
            if not going.any():
                break
            states, rewards, fallen = data.step(states, numerics.backend.argmax(outputs[:, :-1]))
            lengths += going
            earned += np.where(going, rewards, 0.0)
            going &= ~fallen
            states = np.where(going, states, 0.0)  # of those that are over, so that no number grows
        mean = int(lengths.sum()) / _EPISODES
        return {"accuracy": mean / data.limit, "reward": float(np.add.accumulate(earned)[-1]) / _EPISODES}

    def state(self) -> dict:
        """The environments' states, how many steps their episodes took, and how many began."""
        return {"states": self._states, "ages": self._ages, "episodes": self._episodes}

    def restore(self, state: dict) -> None:
        """Go back to a checkpoint."""
        self._states, self._ages, self._episodes = state["states"], state["ages"], int(state["episodes"])

    def _begin(self) -> None:
        """Start an episode in each environment."""
        self._episodes = 0
        self._ages = np.zeros(self.environments, np.int64)
        self._states = np.empty((self.data.observations, self.environments))
        self._start(np.ones(self.environments, bool))

    def _start(self, where) -> None:
        """Start new episodes in some environments, each from words of its own."""
        for environment in np.flatnonzero(where):
            words = random_words(self.seed, DOMAIN_STARTS, self._episodes, self.data.observations)
            self._states[:, environment] = self.data.start(words)
            self._ages[environment] = 0
            self._episodes += 1

    def _outputs(self, backend, seen):
        """Logits and values of what is seen, in the design's arithmetic, in binary64."""
        return backend.double(host(self.network.forward(Tensor(backend.array(seen), backend)).value))

    def _act(self, backend, iteration: int):
        """Act for an iteration's steps: what was seen, done, and came of it; None if an output is not finite."""
        steps, environments, data = self.network.steps, self.environments, self.data
        words = random_words(self.seed, DOMAIN_ACTIONS, iteration, steps * environments).reshape(steps, environments)
        seen, actions, values, rewards, fallen, cut, after = [], [], [], [], [], [], []
        for step in range(steps):
            seen.append(data.observe(self._states))
            outputs = self._outputs(backend, seen[-1])
            if not backend.all_finite(outputs):
                return None
            actions.append(backend.draw(outputs[:, :-1], words[step]))
            values.append(outputs[:, -1])
            states, earned, over = data.step(self._states, actions[-1])
            self._states, self._ages = states, self._ages + 1
            rewards.append(earned)
            fallen.append(over)
            cut.append(~over & (self._ages >= data.limit))
            after.append(data.observe(states))
            self._start(over | cut[-1])
        known = np.array(cut)
        known[-1] = True  # where the value of the state that a step led to is needed; of those that fell it is not used
        ahead = self._outputs(backend, np.array(after)[known])
        if not backend.all_finite(ahead):
            return None
        following = np.zeros((steps, environments))
        following[known] = ahead[:, -1]
        returns = np.empty((steps, environments))
        for step in reversed(range(steps)):
            later = following[step] if step == steps - 1 else np.where(cut[step], following[step], returns[step + 1])
            returns[step] = rewards[step] + self.network.discount * np.where(fallen[step], 0.0, later)
        flat = (np.concatenate(part) for part in (seen, actions))
        return *flat, returns.ravel(), (returns - np.array(values)).ravel()
