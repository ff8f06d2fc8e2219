"""Environments to act in: Gymnasium's, made to give the same bits on every machine."""

from __future__ import annotations

import functools
from importlib import metadata

import numpy as np

from softnum.arrays.conversion import decode, encode
from softnum.formats.blocks import format
from softnum.ops.elementary import cos, sin

__all__ = ["CartPole"]

_DOUBLE = format("binary64")
_FUNCTIONS = {np.cos: cos, np.sin: sin}


class _Angles(np.ndarray):
    """Angles in binary64 whose sine and cosine are correctly rounded, which those of NumPy are not: they differ between
    machines. All that is computed from them is plain arrays."""

    used: set

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = tuple(np.asarray(x) if isinstance(x, _Angles) else x for x in inputs)
        if ufunc in _FUNCTIONS and method == "__call__" and not options:
            self.used.add(ufunc)
            return decode(_FUNCTIONS[ufunc](encode(inputs[0], _DOUBLE), _DOUBLE), _DOUBLE)
        return getattr(ufunc, method)(*inputs, **options)


class CartPole:
    """Gymnasium's CartPole-v1: a pole on a cart that is pushed left or right, and a reward of 1 for each step.

    A step is computed by Gymnasium itself, many carts at once, in binary64: sums, products and quotients that IEEE 754
    determines, and a sine and a cosine that softnum rounds correctly in place of NumPy's. So its bits are the same on
    every machine, and may differ from those of Gymnasium alone in the last place. The state of an episode is its four
    numbers and how many steps it took, which are the caller's to keep; what starts it are the caller's random words.

    Attributes
    ----------
    name : str
    observations, actions, limit : int
        Numbers of an observation; actions; the steps after which an episode is cut off.

    Raises
    ------
    ValueError
        If Gymnasium is not installed.

    References
    ----------
    A. G. Barto, R. S. Sutton and C. W. Anderson, "Neuronlike Adaptive Elements That Can Solve Difficult Learning
    Control Problems", 1983; M. Towers et al., "Gymnasium", 2024.

    Examples
    --------
    >>> cart = CartPole()
    >>> states, rewards, fallen = cart.step(np.array([[0.0, 2.5], [0.0, 0.0], [0.125, 0.0], [0.0, 0.0]]), [1, 0])
    >>> rewards.tolist(), fallen.tolist()
    ([1.0, 1.0], [False, True])
    """

    name = "cartpole"
    observations, actions, limit = 4, 2, 500

    def __init__(self) -> None:
        try:
            import gymnasium
        except ImportError as error:
            raise ValueError(
                "the data set 'cartpole' is Gymnasium's CartPole-v1, and Gymnasium is not installed: "
                "pip install 'softnum[rl]'"
            ) from error
        self._make = functools.cache(
            lambda count: (
                gymnasium.make_vec("CartPole-v1", num_envs=count, vectorization_mode="vector_entry_point").unwrapped
            )
        )

    def describe(self) -> dict:
        """The environment as plain data for a record."""
        return {"name": self.name, "environment": "CartPole-v1", "gymnasium": metadata.version("gymnasium")}

    def first(self, train: int | None = None, held_out: int | None = None):
        """Raise ValueError: there are no samples to take some of."""
        raise ValueError(
            f"{self.name} is an environment and has no samples; leave out --samples (samples) and --held-out (held_out)"
        )

    def start(self, words) -> np.ndarray:
        """The first states of episodes: numbers uniform in [-0.05, 0.05), from the 53 leading bits of a word each.

        Parameters
        ----------
        words : uint64 array (4, carts)

        Returns
        -------
        float64 array (4, carts)
        """
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 * 0.1 - 0.05

    def observe(self, states) -> np.ndarray:
        """What is seen of states: the same numbers in binary32 (carts, 4), as Gymnasium gives them."""
        return np.ascontiguousarray(states.T.astype(np.float32))

    def step(self, states, actions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What becomes of carts.

        Parameters
        ----------
        states : float64 array (4, carts)
            Place, speed, angle, and speed of the angle.
        actions : integer array (carts,)
            0 pushes left, 1 right.

        Returns
        -------
        states : float64 array (4, carts)
        rewards : float64 array (carts,)
        fallen : bool array (carts,)
            Whether the episode is over: the pole more than 12 degrees from upright, or the cart 2.4 from the middle.

        Raises
        ------
        ValueError
            If this version of Gymnasium does not take its sines and cosines from here.
        """
        environment = self._make(states.shape[1])
        place, speed, angle, turn = states
        angle = angle.view(_Angles)
        angle.used = set()
        environment.state = (place, speed, angle, turn)
        environment.prev_done[:], environment.steps[:] = False, 0  # episodes and their lengths are the caller's
        _, rewards, fallen, _, _ = environment.step(np.asarray(actions, np.int64))
        if angle.used != set(_FUNCTIONS):
            raise ValueError(
                f"Gymnasium {metadata.version('gymnasium')} computes CartPole-v1 by other functions than np.sin and "
                "np.cos, so its bits may differ between machines; install gymnasium 1.0 to 1.4"
            )
        return np.array(environment.state, np.float64), rewards.astype(np.float64), fallen
