"""Optimisers with one mean of gradients: SGD, LARS and Lion.

The formulas' notation is that of `softnum.train.update.optimisers`.
"""

from __future__ import annotations

from softnum.train.update.optimiser import Optimiser, none_zero, norms, quotient

__all__ = ["LARS", "SGD", "Lion"]


class SGD(Optimiser):
    """Stochastic gradient descent with momentum and L2 weight decay on every parameter::

        d = g + weight_decay * w           [update.decay]
        v = d + momentum * v               [update.momentum, stored as momentum]
        d = d + momentum * v               [update.step]        with Nesterov's momentum only; else d = v
        w = w - learning_rate * d          [update.weight, stored as master]

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, momentum, weight_decay : float
    nesterov : bool

    Raises
    ------
    ValueError
        If the learning rate is not positive, momentum not in [0, 1) or weight decay negative; or binary32 rounds the
        learning rate to zero or one of them to infinity, or momentum to 1; or Nesterov's momentum is wanted without
        momentum.

    References
    ----------
    The split into separately rounded operations is that of N. Wang et al., "Training Deep Neural Networks with 8-bit
    Floating Point Numbers", 2018, section 2.3; Nesterov's momentum that of I. Sutskever et al., "On the importance of
    initialization and momentum in deep learning", 2013, in the form of Y. Bengio et al., "Advances in optimizing
    recurrent networks", 2013, section 3.5.

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

    name = "sgd"
    state_roles = {"velocity": "momentum"}

    def __init__(
        self, parameters, *, learning_rate: float = 0.1, momentum: float = 0.9, weight_decay: float = 1e-4,
        nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(parameters, learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay)
        if nesterov and momentum == 0:
            raise ValueError("nesterov looks ahead along the momentum, which is 0; state a momentum or leave it out")
        self.nesterov = nesterov
        self.roles = ("update.step",) if nesterov else ()

    def describe(self) -> dict:
        """Name and constants, as they were given, for a record."""
        return {**super().describe(), **({"nesterov": True} if self.nesterov else {})}

    def _updated(self, index, value, gradient, layer, rate):
        gradient = layer.axpy("update.decay", self.weight_decay, value, gradient)
        velocity = layer.axpy("update.momentum", self.momentum, self.states["velocity"][index], gradient)
        velocity = self._store("velocity", index, velocity, layer)
        if self.nesterov:
            velocity = layer.axpy("update.step", self.momentum, velocity, gradient)
        return self._moved(layer, rate, velocity, value)


class LARS(Optimiser):
    """SGD with momentum and a rate for every parameter (layer-wise adaptive rate scaling)::

        d = g + weight_decay * w                             [update.decay]
        s = trust * |w| / (|g| + weight_decay * |w|)         [update.norm: both norms, the denominator, |w| / that]
        v = learning_rate * s * d + momentum * v             [update.momentum, twice; stored as momentum]
        w = w - v                                            [update.weight, stored as master]

    learning_rate * s is a product of three numbers in binary64, from left to right. s is 1 for parameters of one
    dimension (biases, gains) and where a norm is 0.

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, momentum, weight_decay, trust : float

    Raises
    ------
    ValueError
        If a constant is out of its range, or becomes so in binary32.

    References
    ----------
    Y. You, I. Gitman and B. Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import LARS, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([[3.0, 4.0]]), layer, "weight")
    >>> weight.gradient = np.float32([[60.0, 80.0]])
    >>> LARS([weight], learning_rate=1.0, weight_decay=0.0, trust=0.25).step()  # a quarter of the weight's norm
    >>> weight.value
    array([[2.25, 3.  ]], dtype=float32)
    """

    name = "lars"
    state_roles = {"velocity": "momentum"}
    roles = ("update.norm",)

    def __init__(
        self, parameters, *, learning_rate: float = 1.0, momentum: float = 0.9, weight_decay: float = 1e-4,
        trust: float = 0.001,
    ) -> None:  # fmt: skip
        super().__init__(
            parameters, learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay, trust=trust
        )

    def _updated(self, index, value, gradient, layer, rate):
        decayed = layer.axpy("update.decay", self.weight_decay, value, gradient)
        if value.ndim > 1:
            norm, slope = norms(layer, value, gradient)
            total = layer.axpy("update.norm", self.weight_decay, norm, slope)
            present = none_zero(norm, slope)
            ratio = quotient(layer, norm, total, present)
            rate = rate * self.trust * ratio if present else rate
        scaled = layer.compute("multiply", "update.momentum", rate, decayed)
        velocity = layer.axpy("update.momentum", self.momentum, self.states["velocity"][index], scaled)
        velocity = self._store("velocity", index, velocity, layer)
        return self._moved(layer, 1.0, velocity, value)


class Lion(Optimiser):
    """The sign of a mean of gradients (evolved sign momentum)::

        w = w - learning_rate * weight_decay * w             [update.decay]
        c = beta1 * m + (1 - beta1) * g                      [update.step, twice]
        w = w - learning_rate * sign(c)                      [update.weight, stored as master; the sign is exact]
        m = beta2 * m + (1 - beta2) * g                      [update.momentum, twice; stored as momentum]

    The sign of 0 is 0, that of NaN NaN.

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, beta1, beta2, weight_decay : float
        Default: 0.0001, 0.9, 0.99, 0.

    Raises
    ------
    ValueError
        If a constant is out of its range, or becomes so in binary32.

    References
    ----------
    X. Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2 (which subtracts decay and sign
    together; here, as of `AdamW`, one after the other).

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Lion, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([1.0, -2.0, 4.0]), layer, "weight")
    >>> weight.gradient = np.float32([0.5, -0.25, 0.0])
    >>> Lion([weight], learning_rate=0.125).step()
    >>> weight.value
    array([ 0.875, -1.875,  4.   ], dtype=float32)
    """

    name = "lion"
    state_roles = {"momentum": "momentum"}
    roles = ("update.step",)

    def __init__(
        self, parameters, *, learning_rate: float = 0.0001, beta1: float = 0.9, beta2: float = 0.99,
        weight_decay: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(
            parameters, learning_rate=learning_rate, beta1=beta1, beta2=beta2, weight_decay=weight_decay
        )  # fmt: skip

    def _updated(self, index, value, gradient, layer, rate):
        start = self._decayed(layer, rate * self.weight_decay, value)
        fresh = layer.compute("multiply", "update.step", 1.0 - self.beta1, gradient)
        mean = layer.axpy("update.step", self.beta1, self.states["momentum"][index], fresh)
        self._mean(index, self.beta2, gradient, layer)
        return self._moved(layer, rate, layer.numerics.backend.sign(mean), start, decayed=True)
