"""Loss scaling and the clipping of gradients: what happens between the backward pass and the update."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softnum.values import quantize

__all__ = ["LossScaler", "LossScaling", "check_limit", "clip_gradients", "gradients_overflow", "overflow_shows"]

_LARGEST, _SMALLEST = 2.0**127, 2.0**-126  # binary32's normal numbers


@dataclass(frozen=True)
class LossScaling:
    """The ``[loss]`` table of a design: the factor on the loss's gradient, and how it changes.

    Parameters
    ----------
    initial : float
        The factor; of a dynamic scale, the first one.
    dynamic : bool
        Whether it changes: after an iteration whose weight gradients hold an infinity or NaN it is multiplied by
        ``backoff``, after ``interval`` iterations in a row without one by ``growth``. It stays a normal number of
        binary32.
    growth, backoff : float
    interval : int
    skip_overflow : bool
        Whether an iteration whose weight gradients hold an infinity or NaN leaves parameters and states alone. With a
        dynamic scale it always does.

    References
    ----------
    P. Micikevicius et al., "Mixed Precision Training", 2018, section 3.2; the rule and its default numbers are those of
    PyTorch's GradScaler.
    """

    initial: float = 1.0
    dynamic: bool = False
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000
    skip_overflow: bool = False

    def describe(self) -> dict:
        """The table as plain data for a record.

        >>> LossScaling(1000.0).describe()
        {'scale': 1000.0}
        """
        if self.dynamic:
            return {
                "scale": "dynamic", "initial": self.initial, "growth": self.growth, "backoff": self.backoff,
                "interval": self.interval,
            }  # fmt: skip
        return {"scale": self.initial, **({"skip_overflow": True} if self.skip_overflow else {})}


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
    `NumpyBackend.norm`, over the parameters in their order, the quotient is binary64 and rounded to the carrier. What
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


def overflow_shows(rounding) -> bool:
    """Whether results too large for a role become infinities or NaN, by which a dynamic loss scale knows them.

    >>> import softnum as sn
    >>> from softnum.train.designs import RoleRounding
    >>> overflow_shows(RoleRounding(sn.format("e5m2"))), overflow_shows(RoleRounding(sn.format("q4.4")))
    (True, False)

    Elements of block formats saturate, but an infinity becomes a NaN scale, if there is one. The largest scale must do
    for all numbers of binary32.
    """
    if rounding.block:
        fmt, tensor = rounding.format, rounding.format.tensor_scale
        largest = fmt.element_exponent + fmt.scale_exponents[1] + (0 if tensor is None else tensor.emax)
        return fmt.scale.has_nan and largest >= 127
    if rounding.overflow in ("saturate", "saturate_finite", "wrap") or rounding.rounding in ("toward_zero", "to_odd"):
        return False
    try:
        return not math.isfinite(quantize(np.array([np.inf]), rounding.format, overflow=rounding.overflow)[0])
    except ValueError:  # the format has no code for infinity
        return False
