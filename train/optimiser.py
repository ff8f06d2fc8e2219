"""Stochastic gradient descent with momentum and weight decay, each of its three operations rounded by its own role."""

from __future__ import annotations

import numpy as np

__all__ = ["SGD"]


class SGD:
    """SGD, with L2 weight decay on every parameter::

        d = update.decay   (gradient + weight_decay * w)
        v = update.momentum(d + momentum * v)              stored as ``momentum``
        w = update.weight  (w - learning_rate * v)         stored as ``master``

    Each line is one multiply-add, rounded once, to the role named in it. The three constants are first rounded to
    binary32.

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, momentum, weight_decay : float

    Raises
    ------
    ValueError
        If the learning rate is not positive, momentum not in [0, 1) or weight decay negative; or binary32 rounds the
        learning rate to zero or one of them to infinity, or momentum to 1.

    References
    ----------
    The split into three separately rounded operations is that of N. Wang et al., "Training Deep Neural Networks with
    8-bit Floating Point Numbers", 2018, section 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import SGD, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([1.0, -2.0]), layer, "weight")
    >>> weight.gradient = np.float32([0.5, 0.25])
    >>> SGD([weight], learning_rate=0.5, momentum=0.0, weight_decay=0.0).step()
    >>> weight.value
    array([ 0.75 , -2.125], dtype=float32)
    """

    def __init__(self, parameters, *, learning_rate: float, momentum: float, weight_decay: float) -> None:
        if not 0 < learning_rate < float("inf"):
            raise ValueError(f"learning_rate must be positive, got {learning_rate!r}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {momentum!r}")
        if not 0 <= weight_decay < float("inf"):
            raise ValueError(f"weight_decay must not be negative, got {weight_decay!r}")
        self.parameters = list(parameters)
        with np.errstate(over="ignore", under="ignore"):
            rate, retained, decay = (float(np.float32(value)) for value in (learning_rate, momentum, weight_decay))
        for name, value, rounded, fits in (
            ("learning_rate", learning_rate, rate, 0 < rate < float("inf")),
            ("momentum", momentum, retained, retained < 1),
            ("weight_decay", weight_decay, decay, decay < float("inf") and (decay > 0) == (weight_decay > 0)),
        ):
            if not fits:
                raise ValueError(f"{name} is used in binary32, where {value!r} becomes {rounded!r}")
        self.learning_rate, self.momentum, self.weight_decay = rate, retained, decay
        self.velocities = [parameter.backend.zeros(parameter.value.shape) for parameter in self.parameters]

    def step(self) -> None:
        """Update every parameter, in the order in which they were given, from its gradient."""
        for index, parameter in enumerate(self.parameters):
            layer, master = parameter.layer, parameter.value
            decayed = layer.axpy("update.decay", self.weight_decay, master, parameter.gradient)
            velocity = layer.axpy("update.momentum", self.momentum, self.velocities[index], decayed)
            velocity = layer.round("momentum", velocity, of=layer.format("update.momentum"))
            weight = layer.axpy("update.weight", -self.learning_rate, velocity, master)
            self.velocities[index] = velocity
            parameter.value = layer.round("master", weight, of=layer.format("update.weight"))
