"""Losses besides the cross-entropy of classes, in binary64 and in a fixed order.

Each is a single number and knows its slope, the derivative by its argument, which backwards is multiplied by the loss
scale.
"""

from __future__ import annotations

import numpy as np

from softnum.train.engine.tensor import GRADIENTS, Tensor

__all__ = ["balance", "binary_cross_entropy", "policy_loss", "signed_means", "smooth_l1", "total"]


def binary_cross_entropy(logits: Tensor, targets, *, weights=1.0, count: int | None = None) -> Tensor:
    """The sum of -weight * log(sigmoid(logit) if target is 1 else 1 - sigmoid(logit)) over a count, in binary64.

    Parameters
    ----------
    logits : Tensor
    targets : float64 array
        0 or 1, of the logits' shape.
    weights : float or float64 array
        Of the logits' shape.
    count : int, optional
        What the sum is divided by. Default: the number of logits, so that the loss is their mean.

    Returns
    -------
    Tensor
        Its value is a float, NaN if a logit is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> x = Tensor(np.float32([[0.0, 2.0]]), NumpyBackend(), requires_gradient=True)
    >>> loss = binary_cross_entropy(x, np.array([[1.0, 0.0]]))
    >>> loss.backward()
    >>> round(loss.value, 4), x.gradient.round(4).tolist()
    (1.41, [[-0.25, 0.4404]])
    """
    count = logits.value.size if count is None else count
    value, slope = logits.backend.binary_cross_entropy(logits.value, targets, weights, count)
    return _loss(value, slope, logits)


def smooth_l1(x: Tensor, targets, *, count: int | None = None) -> Tensor:
    """The sum of d * d / 2, or abs(d) - 1 / 2 where abs(d) is at least 1, of d = x - target, over a count, in binary64.

    Parameters
    ----------
    x : Tensor
    targets : float64 array
        Of x's shape.
    count : int, optional
        What the sum is divided by. Default: the number of elements.

    Returns
    -------
    Tensor
        Its value is a float, NaN if an x is not finite.

    References
    ----------
    R. Girshick, "Fast R-CNN", 2015, equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> x = Tensor(np.float32([[0.5, -3.0]]), NumpyBackend(), requires_gradient=True)
    >>> loss = smooth_l1(x, np.zeros((1, 2)), count=1)
    >>> loss.backward()
    >>> loss.value, x.gradient.tolist()
    (2.625, [[0.5, -1.0]])
    """
    value, slope = x.backend.smooth_l1(x.value, targets, x.value.size if count is None else count)
    return _loss(value, slope, x)


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
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> scores = Tensor(np.float32([[1.0], [4.0], [2.0]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = signed_means(scores, ((-1.0, 2), (1.0, 1)))
    >>> loss.backward()
    >>> loss.value, scores.gradient.ravel().tolist()
    (-0.5, [-0.5, -0.5, 1.0])
    """
    parts, rows = tuple(parts), len(scores.value)
    if sum(count for _, count in parts) != rows or not all(count > 0 for _, count in parts):
        raise ValueError(f"the parts of {rows} scores must have so many rows together, got {parts}")
    return _loss(*scores.backend.signed_means(scores.value, parts), scores)


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
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> outputs = Tensor(np.float32([[0.0, 0.0, 1.0]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = policy_loss(outputs, np.array([0]), np.array([3.0]), np.array([2.0]), value_weight=0.5, entropy=0.0)
    >>> loss.backward()
    >>> outputs.gradient.tolist()
    [[-1.0, 1.0, -2.0]]
    """
    parts = actions, returns, advantages, value_weight, entropy
    return _loss(*outputs.backend.policy_loss(outputs.value, *parts), outputs)


def balance(probabilities: Tensor, chosen, factor: float) -> Tensor:
    """How unequally busy the experts of a mixture are, in binary64: factor * E * the sum of f[e] * P[e] over E experts.

    f[e] is the share of all choices that are expert e, P[e] the mean of its probabilities; both are 1 / E, and the loss
    is the factor, where all are equally busy. No gradient passes the choices. The slope of P[e] is the same for all
    rows: factor * E * f[e] / rows.

    Parameters
    ----------
    probabilities : Tensor (rows, E)
    chosen : integer array (rows, k)
        The experts of each row.
    factor : float

    Returns
    -------
    Tensor
        Its value is a float, NaN if a probability is not finite.

    References
    ----------
    W. Fedus et al., "Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity",
    2022, equations 4 to 6 (there with k = 1).

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> x = Tensor(np.float32([[0.75, 0.25], [0.5, 0.5]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = balance(x, np.array([[0], [0]]), factor=1.0)
    >>> loss.backward()
    >>> loss.value, x.gradient.tolist()
    (1.25, [[1.0, 0.0], [1.0, 0.0]])
    """
    shares = np.bincount(chosen.reshape(-1), minlength=probabilities.value.shape[1]) / chosen.size
    return _loss(*probabilities.backend.balance(probabilities.value, shares, factor), probabilities)


def total(losses: list[Tensor]) -> Tensor:
    """The sum of losses in their order, in binary64."""
    value = losses[0].value
    for loss in losses[1:]:
        value += loss.value
    return Tensor(value, losses[0].backend, op="total", parents=tuple(losses))


def _loss(value: float, slope, of: Tensor) -> Tensor:
    return Tensor(value, of.backend, op="loss", parents=(of,), saved=(slope,))


GRADIENTS["total"] = lambda node, gradient: (gradient,) * len(node.parents)
GRADIENTS["loss"] = lambda node, gradient: (node.backend.scaled(*node.saved, gradient),)
