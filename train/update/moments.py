"""Optimisers with means of gradients and of their squares: Adam, AdamW, LAMB; and Muon, AdamW but for matrices.

The formulas' notation is that of `softnum.train.update.optimisers`.
"""

from __future__ import annotations

import math
from typing import ClassVar

from softnum.train.update.optimiser import Optimiser, none_zero, norms, quotient
from softnum.train.update.schedules import power

__all__ = ["LAMB", "Adam", "AdamW", "Muon"]


class _Moments(Optimiser):
    """Optimisers that keep means of gradients and of their squares."""

    state_roles = {"momentum": "momentum", "second_moment": "second_moment"}
    roles = ("second_moment", "update.second_moment", "update.step")

    _epsilon = 1e-8
    _weight_decay: ClassVar[float]

    def __init__(
        self, parameters, *, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999,
        epsilon: float | None = None, weight_decay: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            parameters, learning_rate=learning_rate, beta1=beta1, beta2=beta2,
            epsilon=self._epsilon if epsilon is None else epsilon,
            weight_decay=self._weight_decay if weight_decay is None else weight_decay,
        )  # fmt: skip

    def _direction(self, index, gradient, layer):
        """m / (sqrt(v) + epsilon * root) after m and v took in a gradient; and the factors that Adam's step lacks.

        With root = sqrt(1 - beta2 ** t), the direction times root / (1 - beta1 ** t) is the paper's
        (m / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + epsilon).
        """
        old = {state: arrays[index] for state, arrays in self.states.items()}
        first = self._mean(index, self.beta1, gradient, layer)
        square = layer.compute("multiply", "update.second_moment", gradient, gradient)
        fresh = layer.compute("multiply", "update.second_moment", 1.0 - self.beta2, square)
        second = layer.axpy("update.second_moment", self.beta2, old["second_moment"], fresh)
        second = self._store("second_moment", index, second, layer)
        root = math.sqrt(1.0 - power(self.beta2, self.steps))
        deviation = layer.compute("sqrt", "update.step", second)
        deviation = layer.compute("add", "update.step", deviation, self.epsilon * root)
        return layer.compute("divide", "update.step", first, deviation), root / (1.0 - power(self.beta1, self.steps))


class Adam(_Moments):
    """Adam, with L2 weight decay on every parameter; t counts updates from 1::

        g = g + weight_decay * w                             [update.decay]
        m = beta1 * m + (1 - beta1) * g                      [update.momentum, twice; stored as momentum]
        v = beta2 * v + (1 - beta2) * (g * g)                [update.second_moment, thrice; stored as second_moment]
        r = sqrt(1 - beta2 ** t)
        d = m / (sqrt(v) + epsilon * r)                      [update.step: root, sum, quotient]
        w = w - learning_rate * (r / (1 - beta1 ** t)) * d   [update.weight, stored as master]

    That is algorithm 1 of the paper with the bias corrections in the constants, as at the end of its section 2 (there
    with another epsilon).

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, beta1, beta2, epsilon, weight_decay : float
        Default: 0.001, 0.9, 0.999, 1e-8, 0. The format of ``update.step`` should hold epsilon: where it rounds to 0,
        and the root is 0 too, the step divides by zero.

    Raises
    ------
    ValueError
        If a constant is out of its range, or becomes so in binary32.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Adam, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([1.0, -2.0]), layer, "weight")
    >>> weight.gradient = np.float32([0.5, 0.25])
    >>> Adam([weight], learning_rate=0.125).step()  # the first step is the rate, whatever the gradient
    >>> weight.value
    array([ 0.875, -2.125], dtype=float32)
    """

    name = "adam"
    _weight_decay = 0.0

    def _updated(self, index, value, gradient, layer, rate):
        gradient = layer.axpy("update.decay", self.weight_decay, value, gradient)
        direction, correction = self._direction(index, gradient, layer)
        return self._moved(layer, rate * correction, direction, value)


class AdamW(_Moments):
    """Adam, with weight decay apart from the gradient::

        w = w - learning_rate * weight_decay * w             [update.decay]
        m, v, r, d as of `Adam`, with g as it is
        w = w - learning_rate * (r / (1 - beta1 ** t)) * d   [update.weight, stored as master]

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, beta1, beta2, epsilon, weight_decay : float
        As in `Adam`, except that the default of the last is 0.01.

    Raises
    ------
    ValueError
        If a constant is out of its range, or becomes so in binary32.

    References
    ----------
    I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import AdamW, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([1.0, -2.0]), layer, "weight")
    >>> weight.gradient = np.float32([0.5, 0.25])
    >>> AdamW([weight], learning_rate=0.125, weight_decay=0.5).step()  # w - w / 16, then the rate
    >>> weight.value
    array([ 0.8125, -2.    ], dtype=float32)
    """

    name = "adamw"
    _weight_decay = 0.01

    def _updated(self, index, value, gradient, layer, rate):
        start = self._decayed(layer, rate * self.weight_decay, value)
        direction, correction = self._direction(index, gradient, layer)
        return self._moved(layer, rate * correction, direction, start, decayed=True)


class LAMB(_Moments):
    """Adam's direction with a rate for every parameter (layer-wise adaptive moments for batch training)::

        m, v, r, d as of `Adam`, with g as it is
        d = (r / (1 - beta1 ** t)) * d                       [update.step]
        d = d + weight_decay * w                             [update.decay]
        s = |w| / |d|                                        [update.norm: both norms and the quotient]
        w = w - learning_rate * s * d                        [update.weight, stored as master]

    s is 1 for parameters of one dimension (biases, gains) and where a norm is 0. The paper's function phi is the
    identity.

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, beta1, beta2, epsilon, weight_decay : float
        As in `Adam`, except that the defaults of the last two are 1e-6 and 0.01.

    Raises
    ------
    ValueError
        If a constant is out of its range, or becomes so in binary32.

    References
    ----------
    Y. You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020, algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import LAMB, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([[3.0, 4.0]]), layer, "weight")
    >>> weight.gradient = np.float32([[60.0, 80.0]])
    >>> LAMB([weight], learning_rate=0.25, weight_decay=0.0).step()  # a quarter of the weight's norm
    >>> (np.float32([[3.0, 4.0]]) - weight.value).round(4)
    array([[0.8839, 0.8839]], dtype=float32)
    """

    name = "lamb"
    _epsilon, _weight_decay = 1e-6, 0.01
    roles = (*_Moments.roles, "update.norm")

    def _updated(self, index, value, gradient, layer, rate):
        direction, correction = self._direction(index, gradient, layer)
        direction = layer.compute("multiply", "update.step", correction, direction)
        direction = layer.axpy("update.decay", self.weight_decay, value, direction)
        if value.ndim > 1:
            norm, length = norms(layer, value, direction)
            rate = rate * quotient(layer, norm, length, none_zero(norm, length))
        return self._moved(layer, rate, direction, value)


class Muon(AdamW):
    """For matrices, momentum with its singular values equalised; AdamW for all other parameters.

    For a parameter of two or more dimensions, except those of embeddings and of the network's last layer::

        w = w - learning_rate * weight_decay * w             [update.decay]
        v = g + momentum * v                                 [update.momentum, stored as momentum]
        u = g + momentum * v                                 [update.step]
        X = u / (|u| + 1e-7)                                 [update.norm: norm, sum; update.step: quotient]
        five times:
            A = X @ X^T, P = A @ A                           [products in the unit update, then update.step]
            B = b * A + c * P                                [update.step, twice]
            X = a * X + B @ X                                [the product as above; update.step]
        w = w - learning_rate * f * X                        [update.weight, stored as master]

    a, b, c = 3.4445, -4.7750, 2.0315, rounded to the host type. A matrix with more rows than columns is transposed for
    the five steps; one of a convolution has a row for each filter. f = sqrt(max(1, outputs / inputs)), in binary64,
    with the outputs a matrix' columns (of a convolution its rows).

    Parameters
    ----------
    parameters : list of Parameter
    learning_rate, momentum : float
        Of matrices: 0.02, 0.95.
    adam_rate, beta1, beta2, epsilon : float
        For other parameters, as in `AdamW` (adam_rate is its learning rate): 0.0003, 0.9, 0.999, 1e-8.
    weight_decay : float
        Of both: 0.01.

    Raises
    ------
    ValueError
        If a constant is out of its range, or becomes so in binary32.

    References
    ----------
    K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024,
    https://kellerjordan.github.io/posts/muon: Nesterov's momentum, five steps of Newton and Schulz in bfloat16.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Muon, Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1", "fc2"], seed=1).layer("fc1")
    >>> weight = Parameter(np.zeros((2, 2), np.float32), layer, "weight")
    >>> weight.gradient = np.float32([[5.0, 0.0], [0.0, -0.5]])
    >>> Muon([weight], learning_rate=1.0).step()  # both singular values come near to 1
    >>> weight.value.round(2)
    array([[-0.7 ,  0.  ],
           [ 0.  ,  0.71]], dtype=float32)
    """

    name = "muon"
    roles = (*AdamW.roles, "update.norm")
    multiplies = True

    #: a, b, c; what is added to the norm; and how many steps of Newton and Schulz there are
    coefficients: ClassVar[tuple[float, float, float]] = (3.4445, -4.7750, 2.0315)
    tiny: ClassVar[float] = 1e-7
    rounds: ClassVar[int] = 5

    def __init__(
        self, parameters, *, learning_rate: float = 0.02, momentum: float = 0.95, adam_rate: float = 0.0003,
        beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.01,
    ) -> None:  # fmt: skip
        Optimiser.__init__(
            self, parameters, learning_rate=learning_rate, momentum=momentum, adam_rate=adam_rate, beta1=beta1,
            beta2=beta2, epsilon=epsilon, weight_decay=weight_decay,
        )  # fmt: skip

    def _has(self, state, parameter):
        return super()._has(state, parameter) and not (state == "second_moment" and _is_matrix(parameter))

    def _updated(self, index, value, gradient, layer, rate):
        if not _is_matrix(self.parameters[index]):
            return super()._updated(index, value, gradient, layer, self._rate("adam_rate"))
        start = self._decayed(layer, rate * self.weight_decay, value)
        velocity = layer.axpy("update.momentum", self.momentum, self.states["momentum"][index], gradient)
        velocity = self._store("momentum", index, velocity, layer)
        ahead = layer.axpy("update.step", self.momentum, velocity, gradient)
        backend, shape = layer.numerics.backend, value.shape
        matrix = ahead if len(shape) == 2 else backend.reshape(ahead, (shape[0], -1))
        inputs, outputs = matrix.shape if len(shape) == 2 else reversed(matrix.shape)
        turned = matrix.shape[0] > matrix.shape[1]
        matrix = self._orthogonal(layer, backend.transpose(matrix) if turned else matrix)
        direction = backend.reshape(backend.transpose(matrix) if turned else matrix, shape)
        factor = math.sqrt(max(1.0, outputs / inputs))
        return self._moved(layer, rate * factor, direction, start, decayed=True)

    def _orthogonal(self, layer, x):
        """A matrix whose rows are no longer than its columns, with singular values of about 1."""
        backend, (a, b, c) = layer.numerics.backend, self.coefficients
        (norm,) = norms(layer, x)
        x = layer.compute("divide", "update.step", x, layer.compute("add", "update.norm", norm, self.tiny))
        for _ in range(self.rounds):
            gram = layer.update_product(x, backend.transpose(x))
            square = layer.update_product(gram, gram)
            mixed = layer.compute("multiply", "update.step", b, gram)
            mixed = layer.axpy("update.step", c, square, mixed)
            x = layer.axpy("update.step", a, x, layer.update_product(mixed, x))
        return x


def _is_matrix(parameter) -> bool:
    """Whether Muon updates a parameter as a matrix."""
    layer = parameter.layer
    numerics = layer.numerics
    return parameter.value.ndim > 1 and layer is not numerics.last and layer.name not in numerics.looked_up
