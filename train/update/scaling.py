"""Loss scaling and the clipping of gradients: what happens between the backward pass and the update."""

from __future__ import annotations

from softnum.train.designs.loss_scaling import LossScaling

__all__ = ["LossScaler", "check_limit", "clip_gradients", "gradients_overflow"]

_LARGEST, _SMALLEST = 2.0**127, 2.0**-126  # binary32's normal numbers


class LossScaler:
    """The loss scale of a run as it goes.

    Parameters
    ----------
    scaling : LossScaling

    Attributes
    ----------
    scale : float
        Of the next iteration.
    good : int
        Iterations without overflow since the scale last changed.

    Examples
    --------
    >>> scaler = LossScaler(LossScaling(1024.0, dynamic=True, interval=2))
    >>> scales = []
    >>> for overflow in (True, False, False, False):
    ...     scaler.update(overflow)
    ...     scales.append(scaler.scale)
    >>> scales
    [512.0, 512.0, 1024.0, 1024.0]
    """

    def __init__(self, scaling: LossScaling) -> None:
        self.scaling = scaling
        self.skips = scaling.dynamic or scaling.skip_overflow
        self.scale = scaling.initial
        self.good = 0

    def update(self, overflow: bool) -> None:
        """Take note of whether an iteration's weight gradients held an infinity or NaN."""
        if not self.scaling.dynamic:
            return
        self.good = 0 if overflow else self.good + 1
        if overflow:
            self.scale = max(self.scale * self.scaling.backoff, _SMALLEST)
        elif self.good == self.scaling.interval:
            self.scale = min(self.scale * self.scaling.growth, _LARGEST)
            self.good = 0


def gradients_overflow(parameters) -> bool:
    """Whether the gradient of a parameter holds an infinity or NaN."""
    return not all(parameter.layer.numerics.backend.all_finite(parameter.gradient) for parameter in parameters)


def clip_gradients(parameters, *, value: float | None = None, norm: float | None = None) -> None:
    """Limit the gradients of all parameters, as they are after the loss scale was divided out.

    First by value: elements beyond -value or value become that. Then by norm: if the norm of all gradients together is
    above the limit, all are multiplied by limit / that norm, so that none changes its direction. The norm is that of
    `NumpyBackend.norm`, over the parameters in their order, the quotient is binary64 and rounded to the host type. What
    either of them changes is rounded to ``weight_gradients``.

    Parameters
    ----------
    parameters : list of Parameter
    value, norm : float, optional
        The limits.

    References
    ----------
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks", 2013, algorithm 1
    (by norm).

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.zeros(2, np.float32), layer, "weight")
    >>> weight.gradient = np.float32([3.0, -4.0])
    >>> clip_gradients([weight], norm=2.5)
    >>> weight.gradient
    array([ 1.5, -2. ], dtype=float32)
    """
    if value is not None:
        for parameter in parameters:
            clamped = parameter.layer.numerics.backend.clamp(parameter.gradient, value)
            parameter.gradient = parameter.layer.round("weight_gradients", clamped)
    if norm is not None:
        length = parameters[0].layer.numerics.backend.norm([parameter.gradient for parameter in parameters])
        factor = 1.0 if length <= norm else norm / length  # NaN, and infinity's 0, reach the gradients
        for parameter in parameters:
            parameter.gradient = parameter.layer.compute("multiply", "weight_gradients", factor, parameter.gradient)


def check_limit(name: str, limit: float | None) -> None:
    """Raise ValueError unless a limit of gradients is None or a positive number that binary32 holds as one."""
    right = isinstance(limit, (int, float)) and not isinstance(limit, bool) and _SMALLEST <= limit <= _LARGEST
    if limit is not None and not right:
        raise ValueError(f"{name} must be a number from 2**-126 to 2**127, got {limit!r}; leave it out to clip nothing")
