"""Loss scaling as designs state it, and which roles let a dynamic scale see that it is too large."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.dispatch import of_format

__all__ = ["LossScaling", "overflow_shows"]


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


def overflow_shows(rounding) -> bool:
    """Whether results too large for a role become infinities or NaN, by which a dynamic loss scale knows them.

    >>> import softnum as sn
    >>> from softnum.train.designs.design import RoleRounding
    >>> overflow_shows(RoleRounding(sn.format("e5m2"))), overflow_shows(RoleRounding(sn.format("q4.4")))
    (True, False)

    Elements of block formats saturate, but an infinity becomes a NaN scale, if there is one. The largest scale must do
    for all numbers of binary32.
    """
    return _overflow_shows(rounding.format, rounding)


@of_format
def _overflow_shows(fmt, rounding) -> bool:
    if rounding.overflow in ("saturate", "saturate_finite", "wrap") or rounding.rounding in ("toward_zero", "to_odd"):
        return False
    try:
        return not math.isfinite(quantize(np.array([np.inf]), fmt, overflow=rounding.overflow)[0])
    except ValueError:  # the format has no code for infinity
        return False


@_overflow_shows.block
def _scales_overflow(fmt, rounding) -> bool:
    tensor = fmt.tensor_scale
    largest = fmt.element_exponent + fmt.scale_exponents[1] + (0 if tensor is None else tensor.emax)
    return fmt.scale.has_nan and largest >= 127
