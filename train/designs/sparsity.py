"""Sparsity of a role: which elements of a tensor are kept, and what becomes of gradients where one was not.

A role's ``sparsity`` states one of three rules, each of which keeps the elements of largest magnitude; of equals, the
first in C order. What is not kept is +0.

``pattern = "2:4"``
    Two of every four that follow each other along the reduction dimension of a matrix product. The last group may be
    shorter and keeps two then, too, or all of it.
``magnitude = 0.8``
    A fifth of the whole tensor: floor(0.8 * elements) are zeroed. With ``from``, ``to`` and ``every`` the share grows
    along Zhu and Gupta's cubic.
``top_k = 0.01``
    A hundredth of the whole tensor: ceil(0.01 * elements).

A share is the decimal fraction that the design writes, and counts are computed from it exactly. NaN counts as infinite,
so that it is kept and seen.

References
----------
M. Zhu and S. Gupta, "To prune, or not to prune: exploring the efficacy of pruning for model compression", 2017 (the
schedule, section 3). A. Mishra et al., "Accelerating Sparse Deep Neural Networks", 2021 (2:4). A. Zhou et al.,
"Learning N:M Fine-grained Structured Sparse Neural Networks From Scratch", 2021 (gradients straight through the mask,
and ``decay``). A. Aji and K. Heafield, "Sparse Communication for Distributed Gradient Descent", 2017; Y. Lin et al.,
"Deep Gradient Compression", 2018 (the largest gradients, and the memory of the others).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["Gradual", "GradientSparsity", "Sparsity"]


@dataclass(frozen=True)
class Gradual:
    """A share of zeros that grows with the iterations, along a cubic that is steep at first.

    Parameters
    ----------
    start, stop : int
        Iterations: that from which it grows (its first step is `every` later), and the first of the final share.
    every : int
        Iterations between its steps.
    initial : float
        The share before.

    Examples
    --------
    >>> ramp = Gradual(start=100, stop=500, every=100)
    >>> [float(ramp.share(Fraction(4, 5), iteration)) for iteration in (99, 200, 299, 300, 499, 500)]
    [0.0, 0.4625, 0.4625, 0.7, 0.7875, 0.8]
    """

    start: int
    stop: int
    every: int = 1
    initial: float = 0.0

    def share(self, final: Fraction, iteration: int) -> Fraction:
        """The share of zeros in an iteration: final + (initial - final) * (1 - done)**3."""
        if iteration >= self.stop:
            return final
        steps = max(0, iteration - self.start) // self.every * self.every
        left = 1 - Fraction(steps, self.stop - self.start)
        return final + (_fraction(self.initial) - final) * left**3


@dataclass(frozen=True)
class Sparsity:
    """What a role keeps of a tensor. Exactly one of the first three is given.

    Parameters
    ----------
    pattern : (int, int), optional
        N of every M.
    magnitude : float, optional
        Share of zeros, above 0 and below 1.
    top_k : float, optional
        Share of the elements that are kept, above 0 and below 1.
    gradual : Gradual, optional
        How the share of zeros comes about.
    masked : bool
        Of ``weights``: whether the gradient of a parameter is +0 where its working copy was pruned. Otherwise it passes
        straight through, and the master copy of a pruned weight may grow until it is kept again.
    decay : float
        Of ``weights``: this (rounded to binary32) times a pruned weight's master copy is added to its gradient: SR-STE.
    feedback : RoleRounding, optional
        Of ``weight_gradients``: how the memory of what was left out is stored; None: it is forgotten.

    Examples
    --------
    >>> print(Sparsity(pattern=(2, 4)), Sparsity(magnitude=0.8), Sparsity(top_k=0.01), sep=", ")
    2:4, 80 % zeros, top 1 %
    >>> Sparsity(magnitude=0.29).count(100), Sparsity(top_k=0.01).count(10)
    (71, 1)
    """

    pattern: tuple[int, int] | None = None
    magnitude: float | None = None
    top_k: float | None = None
    gradual: Gradual | None = None
    masked: bool = False
    decay: float = 0.0
    feedback: Any = None

    def __str__(self) -> str:
        if self.pattern:
            return "{}:{}".format(*self.pattern)
        if self.top_k is not None:
            return f"top {100 * self.top_k:g} %"
        return f"{100 * self.magnitude:g} % zeros"

    def count(self, elements: int, iteration: int = 0) -> int:
        """How many elements of a tensor a share keeps, in an iteration; at least one, if there is one."""
        if self.top_k is not None:
            return math.ceil(_fraction(self.top_k) * elements)
        share = _fraction(self.magnitude)
        if self.gradual is not None:
            share = self.gradual.share(share, iteration)
        return elements - math.floor(share * elements)

    def kept(self, backend, x, iteration: int, shape, axis: int):
        """Which elements of a tensor are kept.

        Parameters
        ----------
        backend : NumpyBackend
        x : array
        iteration : int
        shape : tuple of int
            That in which groups of a pattern lie side by side along an axis; only a pattern needs it.
        axis : int

        Returns
        -------
        bool array
            Of x's shape.
        """
        if not self.pattern:
            return backend.kept_of_tensor(x, self.count(x.size, iteration))
        if shape == x.shape:
            return backend.kept_of_groups(x, *self.pattern, axis)
        return backend.reshape(backend.kept_of_groups(backend.reshape(x, shape), *self.pattern, axis), x.shape)

    def describe(self) -> dict:
        """The table as plain data for a record.

        >>> Sparsity(magnitude=0.8, gradual=Gradual(100, 1000, 50)).describe()
        {'magnitude': 0.8, 'from': 100, 'to': 1000, 'every': 50, 'initial': 0.0}
        """
        facts: dict[str, Any] = {"pattern": str(self)} if self.pattern else {}
        facts |= {key: getattr(self, key) for key in ("magnitude", "top_k") if getattr(self, key) is not None}
        if self.gradual is not None:
            ramp = self.gradual
            facts |= {"from": ramp.start, "to": ramp.stop, "every": ramp.every, "initial": ramp.initial}
        if self.masked:
            facts["backward"] = "masked"
        if self.decay:
            facts["decay"] = self.decay
        if self.feedback is not None:
            facts["feedback"] = self.feedback.describe()
        return facts


class GradientSparsity:
    """What sparsity does to the gradients of some parameters, between clipping and the optimiser.

    In this order, for each parameter whose layer states it:

    - where the working copy was pruned, the gradient becomes +0 (``backward = "masked"``), and decay * w is added to it
      [weight_gradients];
    - of the gradients the largest are kept, +0 stands for the others. With feedback, a = g + r [feedback], where r is
      the memory; of a, the largest are rounded to weight_gradients, and the others are the new memory, in which +0
      stands for what was kept. Parameters of one dimension (biases, gains) keep all their gradients.

    Parameters
    ----------
    parameters : list of Parameter

    Attributes
    ----------
    residuals : dict
        Number of a parameter -> its memory, which is +0 at the start.

    Examples
    --------
    >>> import dataclasses
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> roles = layer.design.roles
    >>> half = Sparsity(top_k=0.5, feedback=roles["weight_gradients"])
    >>> roles["weight_gradients"] = dataclasses.replace(roles["weight_gradients"], sparsity=half)
    >>> weight = Parameter(np.zeros((1, 2), np.float32), layer, "weight")
    >>> sparse = GradientSparsity([weight])
    >>> for _ in range(3):
    ...     weight.gradient = np.float32([[5, -2]])
    ...     sparse.apply()
    ...     print(weight.gradient, sparse.residuals[0])
    [[5. 0.]] [[ 0. -2.]]
    [[5. 0.]] [[ 0. -4.]]
    [[ 0. -6.]] [[5. 0.]]
    """

    def __init__(self, parameters) -> None:
        self.parameters = list(parameters)
        self.residuals = {
            index: parameter.backend.zeros(parameter.value.shape)
            for index, parameter in enumerate(self.parameters)
            if (rule := _rule(parameter)) is not None and rule.feedback is not None
        }

    def apply(self) -> None:
        """Change every parameter's gradient."""
        role = "weight_gradients"
        for index, parameter in enumerate(self.parameters):
            layer = parameter.layer
            if parameter.kept is not None:
                parameter.gradient = layer.pruned_weights_gradient(parameter)
            if _rule(parameter) is None:
                continue
            if index not in self.residuals:
                kept = layer.largest(role, parameter.gradient)
                parameter.gradient = layer.select(role, parameter.gradient, kept)
                continue
            total = layer.remember(parameter.gradient, self.residuals[index])
            kept = layer.largest(role, total)
            parameter.gradient = layer.select(role, layer.round(role, total), kept)
            self.residuals[index] = layer.select(role, total, ~kept)


def _rule(parameter) -> Sparsity | None:
    """The sparsity of a parameter's gradient."""
    return parameter.layer.design.roles["weight_gradients"].sparsity if parameter.value.ndim > 1 else None


def _fraction(share: float) -> Fraction:
    """The decimal fraction that was written, not the binary number next to it."""
    return Fraction(repr(share))
