"""Optimisers, every operation of an update rounded by its own role, as the design says.

In the formulas below g is a parameter's gradient (role ``weight_gradients``) and w its value (``master``). Each line is
one operation, whose exact result is rounded once, to the role in brackets; a state is then rounded to the role that
stores it. Numbers that the user states (rates, betas, epsilon) are first rounded to binary32. What is derived from
them (1 - beta, bias corrections) is computed in binary64, in the order in which it is written here, and rounded to the
carrier: binary32, or binary64 where the design needs that. Norms are sums of squares in binary64, in the order of the
elements, and are rounded to ``update.norm``.

A state whose role has a block format is rounded in blocks of elements that follow each other in C order, whatever the
parameter's shape; the last block is shorter. That is how T. Dettmers et al., "8-bit Optimizers via Block-wise
Quantization", 2022, section 2.1, lay blocks; scales of groups of elements are also those of H. Xi et al., "COAT:
Compressing Optimizer States and Activation for Memory-Efficient FP8 Training", 2024.

Where a design states the role ``compensation``, the last line of an update, w = w - s, is Kahan's sum instead::

    u = -s                                               [update.weight: what was rounded with w is rounded alone]
    y = u - c                                            [update.weight]
    n = w + y                                            [update.weight, stored as master]
    c = (n - w) - y                                      [compensation, twice, and stored so; +0 at the start]
    w = n

Decay that is apart from the gradient is then a part of u: -decay * w [update.decay], and -rate * d added to it
[update.weight]. That is the Kahan summation of updates of P. Zamirai et al., "Revisiting BFloat16 Training", 2020.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from softnum.train.designs.design import COMPENSATION, nearest
from softnum.train.engine.binary64 import host
from softnum.train.update.schedules import power

__all__ = ["LAMB", "LARS", "OPTIMISERS", "SGD", "Adam", "AdamW", "Lion", "Muon", "Optimiser", "make_optimiser"]

#: constant: (what it must be, in words, and whether a number is)
_DOMAINS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "learning_rate": ("be positive", lambda x: 0 < x < math.inf),
    "adam_rate": ("be positive", lambda x: 0 < x < math.inf),
    "momentum": ("lie in [0, 1)", lambda x: 0 <= x < 1),
    "beta1": ("lie in [0, 1)", lambda x: 0 <= x < 1),
    "beta2": ("lie in [0, 1)", lambda x: 0 <= x < 1),
    "epsilon": ("be positive", lambda x: 0 < x < math.inf),
    "trust": ("be positive", lambda x: 0 < x < math.inf),
    "weight_decay": ("not be negative", lambda x: 0 <= x < math.inf),
}


def _constant(name: str, value) -> float:
    """A constant of an optimiser, rounded to binary32."""
    words, right = _DOMAINS[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not right(value):
        raise ValueError(f"{name} must {words}, got {value!r}")
    with np.errstate(over="ignore", under="ignore"):
        rounded = float(np.float32(value))
    if not right(rounded) or (rounded == 0) != (value == 0):
        raise ValueError(f"{name} is used in binary32, where {value!r} becomes {rounded!r}")
    return rounded


class Optimiser:
    """What all optimisers share.

    Parameters
    ----------
    parameters : list of Parameter
        Updated in this order.
    **constants : float
        As the user states them; rounded to binary32.

    Attributes
    ----------
    name : str
        As a record and the command line call it.
    states : dict
        Name of a state -> its arrays, one for each parameter, None of a parameter that has no such state; all +0 at the
        start.
    steps : int
        Updates made.
    """

    name: ClassVar[str]
    #: the states, of which each parameter has its own, and the roles that store them
    state_roles: dict[str, str]
    #: roles of ``softnum.train.designs.OPTIMISER_ROLES`` that the update rounds to
    roles: tuple[str, ...] = ()
    #: whether the update multiplies matrices, in the unit ``update``
    multiplies = False

    def __init__(self, parameters, **constants: float) -> None:
        self.parameters = list(parameters)
        self._given = constants
        for name, value in constants.items():
            setattr(self, name, _constant(name, value))
        self.steps, self._factor = 0, 1.0
        if any(parameter.layer.compensated for parameter in self.parameters):
            self.state_roles = {**self.state_roles, COMPENSATION: COMPENSATION}
        self.states = {
            name: [
                parameter.backend.zeros(parameter.value.shape) if self._has(name, parameter) else None
                for parameter in self.parameters
            ]
            for name in self.state_roles
        }

    def _has(self, state: str, parameter) -> bool:
        """Whether a parameter has a state."""
        return state != COMPENSATION or parameter.layer.compensated

    def describe(self) -> dict:
        """Name and constants, as they were given, for a record."""
        return {"name": self.name, **self._given}

    def arrays_of(self, state: str) -> list[tuple]:
        """The parameters that have a state, each with its array."""
        return [pair for pair in zip(self.parameters, self.states[state], strict=True) if pair[1] is not None]

    def step(self, factor: float = 1.0) -> None:
        """Update every parameter, in the order in which they were given, from its gradient.

        Parameters
        ----------
        factor : float
            Of a schedule, 0 or more: the learning rate of this step is the optimiser's as it was given times this, in
            binary64, rounded to binary32.
        """
        self._factor = factor
        rate = self._rate("learning_rate")
        self.steps += 1
        for index, parameter in enumerate(self.parameters):
            layer, old = parameter.layer, parameter.value
            value = self._updated(index, old, parameter.gradient, layer, rate)
            if layer.compensated:
                carried = self.states[COMPENSATION][index]
                step = layer.compute("subtract", "update.weight", value, carried)
                value = layer.compute("add", "update.weight", old, step)
            parameter.value = layer.round("master", value, of=layer.format("update.weight"))
            if layer.compensated:
                made = layer.compute("subtract", COMPENSATION, parameter.value, old)
                self.states[COMPENSATION][index] = layer.compute("subtract", COMPENSATION, made, step)

    def _rate(self, name: str) -> float:
        """A learning rate in this step."""
        return float(np.float32(self._given[name] * self._factor))

    def _updated(self, index: int, value, gradient, layer, rate: float):
        """The new value of a parameter, or of a compensated update the step to it, rounded to ``update.weight``."""
        raise NotImplementedError

    def _decayed(self, layer, decay: float, value):
        """w - decay * w; of a compensated update -decay * w alone; rounded to ``update.decay``."""
        if layer.compensated:
            return layer.compute("multiply", "update.decay", -decay, value)
        return layer.axpy("update.decay", -decay, value, value)

    def _moved(self, layer, rate: float, direction, value, *, decayed: bool = False):
        """What `_updated` returns: value - rate * direction, where value may be what `_decayed` made."""
        if layer.compensated and not decayed:
            return layer.compute("multiply", "update.weight", -rate, direction)
        return layer.axpy("update.weight", -rate, direction, value)

    def _mean(self, index: int, beta: float, gradient, layer):
        """The state momentum after it took in a gradient: beta * m + (1 - beta) * g."""
        fresh = layer.compute("multiply", "update.momentum", 1.0 - beta, gradient)
        mean = layer.axpy("update.momentum", beta, self.states["momentum"][index], fresh)
        return self._store("momentum", index, mean, layer)

    def _store(self, state: str, index: int, value, layer):
        """A state's new value, rounded to the role that stores it from the one that updates it."""
        role = self.state_roles[state]
        self.states[state][index] = layer.store(role, value, of=layer.format(f"update.{role}"))
        return self.states[state][index]


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
            norm, slope = _norms(layer, value, gradient)
            total = layer.axpy("update.norm", self.weight_decay, norm, slope)
            present = _present(norm, slope)
            ratio = _quotient(layer, norm, total, present)
            rate = rate * self.trust * ratio if present else rate
        scaled = layer.compute("multiply", "update.momentum", rate, decayed)
        velocity = layer.axpy("update.momentum", self.momentum, self.states["velocity"][index], scaled)
        velocity = self._store("velocity", index, velocity, layer)
        return self._moved(layer, 1.0, velocity, value)


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
            norm, length = _norms(layer, value, direction)
            rate = rate * _quotient(layer, norm, length, _present(norm, length))
        return self._moved(layer, rate, direction, value)


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
        (norm,) = _norms(layer, x)
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


def _norms(layer, *arrays):
    """The norm of each array, rounded to ``update.norm``, as an array of one element."""
    backend = layer.numerics.backend
    return [layer.round("update.norm", backend.double([backend.norm([x])])) for x in arrays]


def _present(*norms) -> bool:
    """Whether no norm is 0."""
    return all(host(norm)[0] > 0 for norm in norms)


def _quotient(layer, top, bottom, present: bool) -> float:
    """top / bottom rounded to ``update.norm``, or 1 / 1: the roundings of a step are as many either way."""
    if not present:
        top = bottom = layer.numerics.backend.ones((1,))
    return float(host(layer.compute("divide", "update.norm", top, bottom))[0])


OPTIMISERS: dict[str, type[Optimiser]] = {cls.name: cls for cls in (SGD, Adam, AdamW, LAMB, LARS, Lion, Muon)}


def make_optimiser(name: str, parameters, **constants) -> Optimiser:
    """Return an optimiser.

    Parameters
    ----------
    name : str
        One of `OPTIMISERS`.
    parameters : list of Parameter
    **constants
        The constants of the optimiser; None stands for the default.

    Raises
    ------
    ValueError
        If there is no optimiser of that name, it has no such constant, or the constant is unusable.

    Examples
    --------
    >>> make_optimiser("adamw", [], learning_rate=0.01).describe()["weight_decay"]
    0.01
    """
    if name not in OPTIMISERS:
        raise ValueError(
            f"no optimiser is called {name!r}{nearest(str(name), OPTIMISERS)} (optimisers: {', '.join(OPTIMISERS)})"
        )
    given = {key: value for key, value in constants.items() if value is not None}
    for key in given:
        if key not in _takes(name):
            others = [other for other in OPTIMISERS if key in _takes(other)]
            raise ValueError(
                f"{name} has no {key} (it has {', '.join(_takes(name))})"
                + (f"; {', '.join(others)} {'has' if len(others) == 1 else 'have'} it" if others else "")
            )
    return OPTIMISERS[name](parameters, **given)


def _takes(name: str) -> list[str]:
    """The constants that an optimiser takes."""
    return [key for key in inspect.signature(OPTIMISERS[name]).parameters if key != "parameters"]
