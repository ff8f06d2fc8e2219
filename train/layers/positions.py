"""Rotary positions: pairs of features turned by angles that grow with the step."""

from __future__ import annotations

import functools

import numpy as np

from softnum.formats.blocks import format
from softnum.train.engine.arithmetic import FUNCTIONS
from softnum.train.engine.tensor import GRADIENTS, Tensor

__all__ = ["rotary", "turns"]

_DOUBLE = format("binary64")


def _correctly_rounded(name: str, *operands):
    """A function of numbers in binary64, the same on every machine."""
    codes = (FUNCTIONS["encode"](np.asarray(x, np.float64), _DOUBLE) for x in operands)
    return FUNCTIONS["decode"](FUNCTIONS[name](*codes, _DOUBLE), _DOUBLE)


@functools.lru_cache(maxsize=16)
def turns(steps: int, pairs: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of the angles step * base ** (-pair / pairs), both counted from 0.

    Exponent, power, angle and function are each rounded correctly to binary64.

    Parameters
    ----------
    steps, pairs : int
    base : float

    Returns
    -------
    cosines, sines : float64 array (steps, pairs)

    Examples
    --------
    >>> cosines, sines = turns(3, 2, 10000.0)
    >>> sines.round(4).tolist()
    [[0.0, 0.0], [0.8415, 0.01], [0.9093, 0.02]]
    """
    exponents = -np.arange(pairs) / pairs
    rates = _correctly_rounded("pow", np.full(pairs, float(base)), exponents)
    angles = np.arange(steps)[:, None] * rates
    tables = tuple(_correctly_rounded(name, angles) for name in ("cos", "sin"))
    for table in tables:
        table.flags.writeable = False
    return tables


def rotary(x: Tensor, layer, *, batch: int, heads: int = 1, base: float = 10000.0) -> Tensor:
    """Turn neighbouring pairs of each head's features by angles of their step, in a layer's arithmetic.

    For the features a, b with the numbers 2 i and 2 i + 1 of the d of a head, in step p, with c and s the cosine and
    the sine of p * base ** (-2 i / d) (`turns`), operation by operation in ``elementwise``::

        a' = a * c - b * s
        b' = b * c + a * s

    x, then the cosines, then the sines are rounded to the role as they enter. Backwards, from the gradient e, f of
    a', b', rounded to the role, the pair is turned back::

        da = e * c + f * s
        db = f * c - e * s

    Parameters
    ----------
    x : Tensor (batch * steps, heads * d)
        Sample by sample; the features head by head.
    layer : LayerNumerics
    batch, heads : int
    base : float

    Returns
    -------
    Tensor (batch * steps, heads * d)
        Values of the role ``elementwise``.

    Raises
    ------
    ValueError
        If a head has an odd number of features.

    References
    ----------
    J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, equation 34. Others pair the
    features i and i + d / 2 instead, which is the same but for the order of the rows of the weights before.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1", "attention"], seed=1).layer("attention")
    >>> x = Tensor(np.float32([[1, 0], [1, 0]]), layer.numerics.backend)
    >>> rotary(x, layer, batch=1).value
    array([[1.        , 0.        ],
           [0.5403023 , 0.84147096]], dtype=float32)
    """
    rows, features = x.value.shape
    steps, size = rows // batch, features // heads
    if size % 2:
        raise ValueError(
            f"rotary positions rotate pairs of features, and a head has {size}; choose heads of an even size"
        )
    entered = layer.enter(x.value)
    tables = [layer.enter(table.reshape(1, steps, 1, -1)) for table in turns(steps, size // 2, float(base))]
    value = _turned(entered, tables, (batch, steps, heads, size // 2), layer, ("subtract", "add"))
    return Tensor(value, x.backend, op="rotary", parents=(x,), saved=(tables, batch, heads, layer), layer=layer)


def _turned(x, tables, shape, layer, signs):
    backend, (cosines, sines) = layer.numerics.backend, tables
    pairs = backend.split(backend.reshape(x, (*shape, 2)), (1, 1), len(shape))
    pairs = [backend.reshape(part, shape) for part in pairs]
    turned = [
        layer.elementwise(
            sign, layer.elementwise("multiply", one, cosines), layer.elementwise("multiply", other, sines)
        )
        for sign, one, other in zip(signs, pairs, reversed(pairs), strict=True)
    ]
    joined = backend.concatenate([backend.reshape(part, (*shape, 1)) for part in turned], len(shape))
    return backend.reshape(joined, x.shape)


def _rotary_gradient(node: Tensor, gradient) -> tuple:
    tables, batch, heads, layer = node.saved
    error = layer.enter(gradient)
    shape = (batch, error.shape[0] // batch, heads, error.shape[1] // heads // 2)
    return (_turned(error, tables, shape, layer, ("add", "subtract")),)


GRADIENTS["rotary"] = _rotary_gradient
