"""Scales from the largest magnitude of a tensor, in the binary32 operations of the published references.

A reference computes a scale and applies it in binary32, where every operation rounds; so do the functions here, in the
same order, and give the same bits. They are for arrays of float32 numbers; numbers of other types are converted first,
as the references do.

Sources: NVIDIA Transformer Engine (commit d0067d0, 2026-08-22): ``tests/pytorch/references/quantize_scale_calc.py``,
``transformer_engine/pytorch/quantization.py``, ``transformer_engine/common/recipe/delayed_scaling.cu`` and
``current_scaling.cu``, ``transformer_engine/jax/quantize/quantizer.py``.
"""

from __future__ import annotations

import numpy as np

__all__ = ["LARGEST", "REFERENCES", "check_reference", "delayed_scale", "largest_magnitude", "scale_of_largest"]

#: whose text a recipe follows, where texts differ: the kernels of a GPU, or the references in PyTorch or JAX
REFERENCES = ("cuda", "pytorch", "jax")

#: the largest binary32 number
LARGEST = float(np.finfo(np.float32).max)

_ONE = np.float32(1)


def check_reference(value: object) -> None:
    """Raise ValueError unless a value names a reference.

    >>> check_reference("cuda")
    """
    if value not in REFERENCES:
        raise ValueError(f"reference must be one of {', '.join(map(repr, REFERENCES))}, got {value!r}")


def largest_magnitude(x, axis=None, keepdims: bool = False):
    """The largest magnitude of float32 numbers, 0 of none; a NaN if one is.

    >>> largest_magnitude(np.float32([[1, -3], [2, 0]]), axis=1)
    array([3., 2.], dtype=float32)
    """
    return np.max(np.abs(x), axis=axis, initial=np.float32(0), keepdims=keepdims)


def scale_of_largest(
    amax, largest: float, *, power_of_two: bool = False, epsilon: float = 0.0, most: float = LARGEST,
    reference: str = "cuda",
):  # fmt: skip
    """The factor that takes numbers of a magnitude of up to amax into a format, and its reciprocal.

    In binary32: scale = largest / max(amax, epsilon), an infinite one replaced by ``most``; then, if power_of_two, its
    last power of two; inverse = 1 / scale. Of amax = 0 the scale is 1.

    Parameters
    ----------
    amax : float32 array
    largest : float
        The format's largest number.
    power_of_two : bool
    epsilon : float
        The least amax.
    most : float
        What an infinite scale becomes.
    reference : str
        "cuda", "jax": an amax that is infinite or a NaN has a scale of 1. "pytorch": an infinite one has a scale of 0;
        of a NaN the scale is a NaN, whose "last power of two" is 1/2.

    Returns
    -------
    scale, inverse : float32 array

    Examples
    --------
    >>> scale, inverse = scale_of_largest(np.float32([3.5, 0]), 448)
    >>> scale, inverse
    (array([128.,   1.], dtype=float32), array([0.0078125, 1.       ], dtype=float32))
    """
    amax = np.maximum(np.asarray(amax, np.float32), np.float32(epsilon))
    with np.errstate(all="ignore"):
        scale = np.float32(largest) / amax
        scale = np.where(np.isinf(scale) & (amax > 0), np.float32(most), scale)
        scale = np.where(amax == 0, _ONE, scale)
        if reference != "pytorch":
            scale = np.where(np.isfinite(amax), scale, _ONE)
        if power_of_two:
            fraction, exponent = np.frexp(scale)
            power = np.ldexp(_ONE, np.where(np.isnan(scale), 0, exponent) - 1)
            scale = np.where(fraction == 0, np.float32(0), power)
        return scale, _ONE / scale


def delayed_scale(
    history, scale, largest: float, *, margin: float = 0, algorithm: str = "max", reference: str = "cuda"
):
    """The next scale of delayed scaling, from the largest magnitudes of past steps.

    Parameters
    ----------
    history : float32 array (steps, ...)
        The largest magnitudes, the newest first.
    scale : float32 array (...)
        The scale so far, which stays where the chosen magnitude is 0, infinite or a NaN.
    largest : float
        The format's largest number.
    margin : float
        The scale is divided by 2**margin.
    algorithm : str
        "max" of the history, or "most_recent".
    reference : str
        The order of the operations, each rounded to binary32: "cuda" (largest * 2**-margin) / amax, and a maximum
        that passes over NaN; "pytorch" ((1 / amax) * largest) / 2**margin; "jax" (largest / amax) / 2**margin. An
        infinite scale becomes the largest float32 number, but for "jax", where it stays.

    Returns
    -------
    scale : float32 array (...)
    history : float32 array (steps, ...)
        Moved on by a step: its first row is 0, for the magnitudes of the next one.

    Examples
    --------
    >>> scale, history = delayed_scale(np.float32([2, 7, 1]), np.float32(1), 448)
    >>> float(scale), history.tolist()
    (64.0, [0.0, 1.0, 2.0])
    """
    history = np.asarray(history, np.float32)
    if algorithm == "most_recent":
        amax = history[0]
    else:
        amax = np.fmax.reduce(history) if reference == "cuda" else np.maximum.reduce(history)
    largest, power = np.float32(largest), np.float32(2.0**margin)
    with np.errstate(all="ignore"):
        if reference == "cuda":
            new = largest * (_ONE / power) / amax
        elif reference == "jax":
            new = largest / amax / power
        else:
            new = _ONE / amax * largest / power
        if reference != "jax":
            new = np.where(np.isinf(new), np.float32(LARGEST), new)
    new = np.where(np.isfinite(amax) & (amax > 0), new, scale)
    history = np.roll(history, -1, axis=0)
    history[0] = 0
    return new.astype(np.float32), history
