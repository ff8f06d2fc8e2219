"""What optimisers share: constants, states, the step, and quotients of norms.

The formulas' notation is that of `softnum.train.update.optimisers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from softnum.train.designs.design import COMPENSATION
from softnum.train.engine.binary64 import host

__all__ = ["Optimiser", "constant", "none_zero", "norms", "quotient"]

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


def constant(name: str, value) -> float:
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
            setattr(self, name, constant(name, value))
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


def norms(layer, *arrays):
    """The norm of each array, rounded to ``update.norm``, as an array of one element."""
    backend = layer.numerics.backend
    return [layer.round("update.norm", backend.double([backend.norm([x])])) for x in arrays]


def none_zero(*norms) -> bool:
    """Whether no norm is 0."""
    return all(host(norm)[0] > 0 for norm in norms)


def quotient(layer, top, bottom, present: bool) -> float:
    """top / bottom rounded to ``update.norm``, or 1 / 1: the roundings of a step are as many either way."""
    if not present:
        top = bottom = layer.numerics.backend.ones((1,))
    return float(host(layer.compute("divide", "update.norm", top, bottom))[0])
