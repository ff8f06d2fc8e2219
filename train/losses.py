"""Losses besides the cross-entropy of classes, in binary64 and in a fixed order.

Each is a single number and knows its slope, the derivative by its argument, which backwards is multiplied by the loss
scale.
"""

from __future__ import annotations

from softnum.train.tensor import GRADIENTS, Tensor

__all__ = ["binary_cross_entropy"]


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


def _loss(value: float, slope, of: Tensor) -> Tensor:
    return Tensor(value, of.backend, op="loss", parents=(of,), saved=(slope,))


GRADIENTS["loss"] = lambda node, gradient: (node.backend.scaled(*node.saved, gradient),)
