"""Initial weights: counted random numbers, the same for every design."""

from __future__ import annotations

import math

import numpy as np

__all__ = [
    "DOMAIN_ACTIONS", "DOMAIN_BATCHES", "DOMAIN_DROPOUT", "DOMAIN_NEGATIVES", "DOMAIN_NOISE", "DOMAIN_PYTORCH",
    "DOMAIN_RANKED", "DOMAIN_SCENES", "DOMAIN_STARTS", "DOMAIN_WEIGHTS", "he_uniform", "noise", "random_words",
    "uniform",
]  # fmt: skip

DOMAIN_WEIGHTS = 1
DOMAIN_BATCHES = 2
DOMAIN_DROPOUT = 3
DOMAIN_NOISE = 4
DOMAIN_ACTIONS = 5
DOMAIN_STARTS = 6
DOMAIN_NEGATIVES = 16
DOMAIN_SCENES = 17
DOMAIN_RANKED = 18
DOMAIN_PYTORCH = 32  #: 33 in evaluations


def random_words(seed: int, domain: int, index: int, count: int) -> np.ndarray:
    """The first words of NumPy's Philox4x64-10 with key (seed, domain * 2**32 + index) and counter 0.

    NumPy promises that a bit generator's raw words never change, which it does not promise of the distributions made
    from them; so only raw words are used.

    >>> random_words(0, 1, 0, 2).dtype
    dtype('uint64')
    """
    if not 0 <= index < 2**32:
        raise ValueError(f"index must lie in 0..2**32-1, got {index}")
    key = np.array([seed, (domain << 32) | index], dtype=np.uint64)
    return np.random.Philox(key=key, counter=0).random_raw(count)


def he_uniform(seed: int, index: int, inputs: int, outputs: int) -> np.ndarray:
    """Weights uniform in [-limit, limit), limit = sqrt(6 / inputs), in binary64.

    Parameters
    ----------
    seed : int
        The run's seed.
    index : int
        The layer's position: its own stream.
    inputs, outputs : int
        The shape.

    Returns
    -------
    float64 array (inputs, outputs)

    References
    ----------
    K. He et al., "Delving Deep into Rectifiers", 2015, equation 10 (variance 2 / inputs).
    """
    return uniform(seed, index, inputs, outputs, math.sqrt(6.0 / inputs))


def uniform(seed: int, index: int, inputs: int, outputs: int, limit: float) -> np.ndarray:
    """Weights uniform in [-limit, limit), in binary64, (inputs, outputs); seed and index as of `he_uniform`."""
    words = random_words(seed, DOMAIN_WEIGHTS, index, inputs * outputs)
    unit = (words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0  # 53 bits: exact, in [-1, 1)
    return (unit * limit).reshape(inputs, outputs)


def noise(seed: int, index: int, rows: int, columns: int) -> np.ndarray:
    """Numbers uniform in [-1, 1) on the lattice of 2**-23, which binary32 holds: what a generator makes images of.

    Parameters
    ----------
    seed : int
        The run's seed.
    index : int
        Which batch of the run: its own stream.
    rows, columns : int
        The shape.

    Returns
    -------
    float32 array (rows, columns)

    Examples
    --------
    >>> noise(1, 0, 2, 3).shape
    (2, 3)
    """
    words = random_words(seed, DOMAIN_NOISE, index, rows * columns)
    return ((words >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0).astype(np.float32).reshape(rows, columns)
