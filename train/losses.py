"""Losses besides the cross-entropy of classes, in binary64 and in a fixed order.

Each is a single number and knows its slope, the derivative by its argument, which backwards is multiplied by the loss
scale.
"""

from __future__ import annotations

from softnum.train.tensor import GRADIENTS, Tensor

__all__ = ["binary_cross_entropy", "smooth_l1", "total"]


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
    >>> from softnum.train.backend import NumpyBackend
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
    >>> from softnum.train.backend import NumpyBackend
    >>> x = Tensor(np.float32([[0.5, -3.0]]), NumpyBackend(), requires_gradient=True)
    >>> loss = smooth_l1(x, np.zeros((1, 2)), count=1)
    >>> loss.backward()
    >>> loss.value, x.gradient.tolist()
    (2.625, [[0.5, -1.0]])
    """
    value, slope = x.backend.smooth_l1(x.value, targets, x.value.size if count is None else count)
    return _loss(value, slope, x)


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
