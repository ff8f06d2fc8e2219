"""Gradients judged by finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softnum.train.engine.tensor import Parameter, Tensor

__all__ = ["check_gradients"]


def check_gradients(
    loss: Callable[[], Tensor], parameters: list[Parameter], *, step: float = 1e-5, tolerance: float = 1e-6
) -> float:
    """Compare `Tensor.backward` with central differences, element by element.

    Meant for arithmetic fine enough to differentiate numerically: a design in binary64.

    Parameters
    ----------
    loss : callable
        Computes a single number from the parameters' current values.
    parameters : list of Parameter
        Leaves to differentiate by.
    step : float
        The change of an element, relative to 1.
    tolerance : float
        Largest allowed error of a gradient, relative to the largest gradient element of its parameter.

    Returns
    -------
    float
        The largest error found.

    Raises
    ------
    ValueError
        If a gradient is off by more than the tolerance: its message names the parameter and the element.
    """
    loss().backward()
    gradients = [np.array(parameter.gradient, dtype=np.float64) for parameter in parameters]
    worst = 0.0
    for parameter, gradient in zip(parameters, gradients, strict=True):
        original = parameter.value
        numeric = np.empty_like(gradient)
        for index in np.ndindex(*gradient.shape):
            sides = []
            for sign in (1.0, -1.0):
                changed = original.copy()
                changed[index] += sign * step
                parameter.value = changed
                sides.append((float(loss().value), changed[index]))
            (above, high), (below, low) = sides
            numeric[index] = (above - below) / (high - low)
        parameter.value = original
        scale = np.abs(numeric).max()
        error = np.abs(gradient - numeric) / (scale if scale > 0 else 1.0)
        worst = max(worst, float(error.max()))
        if not error.max() <= tolerance:  # NaN fails too
            index = tuple(int(i) for i in np.unravel_index(np.argmax(error), error.shape))
            raise ValueError(
                f"gradient of {parameter.name}{list(index)} is {gradient[index]!r}, finite differences say "
                f"{numeric[index]!r}: off by {error[index]:.2e} of the largest, tolerance {tolerance:g}"
            )
    return worst
