"""How well generated images cover real ones: a measure of a generator, exact and the same on every machine."""

from __future__ import annotations

import numpy as np

__all__ = ["Coverage"]

_LEVELS = 256.0


class Coverage:
    """The share of real images that have a generated one among what is near them.

    Near a real image is what is no further from it than its fifth nearest other real image, in the Euclidean distance
    of pixels. Pixels are first rounded to multiples of 1/256 (nearest, ties to even; what lies beyond [0, 1] becomes 0
    or 1), so that squares of distances are integers that binary64 holds: no order of a sum changes them.

    Parameters
    ----------
    real : float array (N, pixels)
        More than `neighbours`.
    neighbours : int
        Which of the nearest sets the radius.

    Raises
    ------
    ValueError
        If there are too few real images.

    Notes
    -----
    As many generated images as real ones, from the same distribution, cover 1 - 2 ** -neighbours of them on average
    (a little less of few): 0.97. A generator that always makes the same image covers next to nothing.

    References
    ----------
    M. F. Naeem et al., "Reliable Fidelity and Diversity Metrics for Generative Models", 2020, equation 6 (there in a
    network's features; here of pixels).

    Examples
    --------
    >>> real = np.linspace(0, 1, 9)[:, None] * np.ones(4)
    >>> Coverage(real, neighbours=1)(real[:3])  # an image covers itself and its neighbours
    0.4444444444444444
    """

    def __init__(self, real, neighbours: int = 5) -> None:
        if len(real) <= neighbours:
            raise ValueError(
                f"coverage needs more than {neighbours} held-out images, there are {len(real)}; hold out more"
            )
        self._real = _codes(real)
        distances = _squares(self._real, self._real)
        np.fill_diagonal(distances, np.inf)
        self._radii = np.partition(distances, neighbours - 1, axis=1)[:, neighbours - 1]

    def __call__(self, generated) -> float:
        """The share of real images that these (M, pixels) cover; an image that is not all finite covers none."""
        generated = np.asarray(generated, np.float64)
        generated = generated[np.isfinite(generated).all(axis=1)]
        if not len(generated):
            return 0.0
        nearest = _squares(self._real, _codes(generated)).min(axis=1)
        return int((nearest <= self._radii).sum()) / len(self._real)


def _codes(images) -> np.ndarray:
    """Pixels as integers 0..256, in binary64."""
    return np.clip(np.rint(np.asarray(images, np.float64) * _LEVELS), 0.0, _LEVELS)


def _squares(first, second) -> np.ndarray:
    """Squared distances (N, M) of rows of integers: every product and sum is an integer below 2**53, so exact."""
    norms = [(x * x).sum(axis=1) for x in (first, second)]
    return (norms[0][:, None] + norms[1][None, :]) - 2.0 * (first @ second.T)
