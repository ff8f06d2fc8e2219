"""Losses of networks that tell no classes: Wasserstein's of a critic, and that of an actor-critic. Both in binary64."""

from __future__ import annotations

from softnum.train.tensor import GRADIENTS, Tensor

__all__ = ["policy_loss", "signed_means"]


def signed_means(scores: Tensor, parts) -> Tensor:
    """Means of parts of the scores, times factors, added in their order, in binary64.

    Parameters
    ----------
    scores : Tensor (B, 1)
    parts : sequence of (float, int)
        Factor and number of rows of each part, one part after the other.

    Returns
    -------
    Tensor
        Its value is a float, NaN if a score is not finite.

    Raises
    ------
    ValueError
        If the parts have other rows than the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train.backend import NumpyBackend
    >>> scores = Tensor(np.float32([[1.0], [4.0], [2.0]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = signed_means(scores, ((-1.0, 2), (1.0, 1)))
    >>> loss.backward()
    >>> loss.value, scores.gradient.ravel().tolist()
    (-0.5, [-0.5, -0.5, 1.0])
    """
    parts, rows = tuple(parts), len(scores.value)
    if sum(count for _, count in parts) != rows or not all(count > 0 for _, count in parts):
        raise ValueError(f"the parts of {rows} scores must have so many rows together, got {parts}")
    value = scores.backend.signed_means(scores.value, parts)
    return Tensor(value, scores.backend, op="signed_means", parents=(scores,), saved=(parts,))


def policy_loss(outputs: Tensor, actions, returns, advantages, *, value_weight: float, entropy: float) -> Tensor:
    """The loss of an advantage actor-critic, the mean over a batch, in binary64::

        (-log p(action) * advantage + value_weight * (return - value) ** 2) - entropy * H(p)

    with p the softmax of the logits and H its entropy. Returns and advantages are constants: no gradient passes them.

    Parameters
    ----------
    outputs : Tensor (B, C + 1)
        Logits of C actions, then the value.
    actions : integer array (B,)
        The actions taken.
    returns, advantages : float64 arrays (B,)
    value_weight, entropy : float

    Returns
    -------
    Tensor
        Its value is a float, NaN if an output is not finite.

    References
    ----------
    V. Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning", 2016, section 4 and algorithm S3.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train.backend import NumpyBackend
    >>> outputs = Tensor(np.float32([[0.0, 0.0, 1.0]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = policy_loss(outputs, np.array([0]), np.array([3.0]), np.array([2.0]), value_weight=0.5, entropy=0.0)
    >>> loss.backward()
    >>> outputs.gradient.tolist()
    [[-1.0, 1.0, -2.0]]
    """
    value, gradient = outputs.backend.policy_loss(outputs.value, actions, returns, advantages, value_weight, entropy)
    return Tensor(value, outputs.backend, op="policy_loss", parents=(outputs,), saved=(gradient,))


def _signed_means_gradient(node: Tensor, gradient) -> tuple:
    (scores,), (parts,) = node.parents, node.saved
    return (node.backend.signed_means_error(scores.value.shape, parts, gradient),)


GRADIENTS["policy_loss"] = lambda node, gradient: (node.backend.policy_error(*node.saved, gradient),)
GRADIENTS["signed_means"] = _signed_means_gradient
