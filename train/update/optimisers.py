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

from softnum.train.designs.design import nearest
from softnum.train.update.moments import LAMB, Adam, AdamW, Muon
from softnum.train.update.momentum import LARS, SGD, Lion
from softnum.train.update.optimiser import Optimiser

__all__ = ["LAMB", "LARS", "OPTIMISERS", "SGD", "Adam", "AdamW", "Lion", "Muon", "Optimiser", "make_optimiser"]

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
