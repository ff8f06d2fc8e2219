"""An actor-critic: a perceptron that gives a policy and a value."""

from __future__ import annotations

from math import isfinite, prod

from softnum.train.layers.sizes import check_batch, check_sizes
from softnum.train.nets.mlp import MLP
from softnum.train.tasks.control import Control

__all__ = ["ActorCritic"]


class ActorCritic(MLP):
    """A perceptron whose last layer gives, in one product, the logits of each action and the value of a state.

    An iteration acts for some steps in several environments at once, and updates all parameters by what came of it
    (`softnum.train.tasks.Control`); its batch is their product. Layers are called fc1, fc2, ...

    Parameters
    ----------
    sizes : sequence of int
        Numbers of an observation, hidden sizes, actions; at least two.
    steps : int
        Actions in each environment between updates.
    discount : float
        Factor of the reward of a step later.
    value_weight : float
        Factor of the square of the value's error in the loss.
    entropy : float
        Factor of the policy's entropy, which the loss rewards.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, a number is not positive, the discount is not from 0 to 1, or a factor is
        negative.

    References
    ----------
    V. Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning", 2016, section 4: advantage actor-critic with
    n-step returns. There actors run asynchronously; here in lock step, in one process.

    Examples
    --------
    >>> ActorCritic().describe()
    {'name': 'actor-critic', 'sizes': [4, 128, 2], 'steps': 8, 'discount': 0.99, 'value_weight': 0.5, 'entropy': 0.01}
    """

    name = "actor-critic"
    kind = "environment"
    task = Control

    def __init__(
        self, sizes=(4, 128, 2), steps: int = 8, discount: float = 0.99, value_weight: float = 0.5,
        entropy: float = 0.01,
    ) -> None:  # fmt: skip
        sizes = check_sizes(sizes, least=2)
        super().__init__((*sizes[:-1], sizes[-1] + 1))
        (self.steps,), self.actions = check_sizes((steps,), "steps", exactly=1), sizes[-1]
        self.discount = _factor("discount", discount, 1.0)
        self.value_weight = _factor("value_weight", value_weight)
        self.entropy = _factor("entropy", entropy)
        self.options = {
            "sizes": sizes, "steps": self.steps, "discount": self.discount, "value_weight": self.value_weight,
            "entropy": self.entropy,
        }  # fmt: skip

    @classmethod
    def options_of(cls, facts) -> dict:
        """As many inputs and actions as the environment has, around the default's hidden layer."""
        return {"sizes": (prod(facts.image), 128, facts.classes)}

    def environments(self, batch: int) -> int:
        """In how many environments an iteration acts, that takes so many steps in all of them together."""
        check_batch(batch)
        if batch % self.steps:
            raise ValueError(
                f"batch is the number of environments times the {self.steps} steps in each, got {batch}; take a "
                "multiple of the steps, or other steps"
            )
        return batch // self.steps

    def _products(self, batch: int) -> list[tuple]:
        """Those of each step, of the values that follow the last, and of the update.

        The values that follow are of one row more for each episode that its limit of steps cut off, which are not
        listed.
        """
        environments = self.environments(batch)
        forward = [row for layer in self.layers for row in layer.products("forward", environments)]
        return forward * (self.steps + 1) + super()._products(batch)


def _factor(what: str, value, most: float = float("inf")) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most or not isfinite(value):
        limit = "a number from 0 to 1" if most == 1.0 else "a number, not negative"
        raise ValueError(f"{what} must be {limit}, got {value!r}")
    return float(value)
