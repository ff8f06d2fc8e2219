"""Softmax as part of a network, products of two results, and scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

from softnum.train.engine.binary64 import host
from softnum.train.engine.tensor import GRADIENTS, Tensor, reshape
from softnum.train.layers.sequences import permute, scale

__all__ = ["attention", "causal_mask", "log_softmax", "matmul", "softmax"]


def softmax(x: Tensor, layer, *, mask=None, infinite: bool = False, empty: bool = False) -> Tensor:
    """exp(x) / total(exp(x)) over the last axis, in a layer's arithmetic.

    Each line rounded to the role that is named, operation by operation::

        d = x - max(x)              elementwise; the maximum is exact
        s = total(exp(d))           statistics
        y = exp(d) / s              elementwise

    `total` adds neighbours in pairs, then the sums in pairs, and so on (an odd last one waits), each sum rounded. What
    a mask leaves out takes no part: its result is +0, and so is its gradient. Backwards, from the gradient e of y::

        dx = y * (e - total(e * y))     products and sums: statistics; difference and product: elementwise

    Parameters
    ----------
    x : Tensor (..., n)
    layer : LayerNumerics
    mask : bool array, optional
        Of x's rank, its sizes those of x or 1: which elements take part; at least one of each row.
    infinite : bool
        Leave out elements of -infinity too, before or after they are rounded to ``elementwise``; but not all that the
        mask leaves of a row.
    empty : bool
        Rows of which nothing is left have the result +0.

    Returns
    -------
    Tensor (..., n)
        Values of the role ``elementwise``.

    Raises
    ------
    ValueError
        If the mask leaves out a whole row, and empty rows are not asked for; or is not of x's rank.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["attention"], seed=1).layer("attention")
    >>> x = Tensor(np.float32([[1, 1, 9]]), layer.numerics.backend)
    >>> softmax(x, layer, mask=np.array([[True, True, False]])).value
    array([[0.5, 0.5, 0. ]], dtype=float32)
    """
    backend, value = x.backend, x.value
    if mask is not None and (mask.ndim != value.ndim or not (empty or mask.any(axis=-1).all())):
        raise ValueError(
            f"softmax: a mask of shape {mask.shape} must have the rank of {value.shape} and leave an element of "
            "each row"
        )
    if infinite:
        mask = _finite(mask, host(value), empty=empty)
        value = value if mask is None else backend.choose(mask, value, 0.0)
    entered = layer.enter(value)
    if infinite:
        mask = _finite(mask, host(entered), empty=empty)
    considered, left = entered, None
    if mask is not None:
        considered = backend.choose(mask, entered, -math.inf)
        left = mask.any(axis=-1, keepdims=True)
        left = None if left.all() else left
    top = _largest(layer, considered)
    if left is not None:
        top = backend.choose(left, top, 0.0)
    if mask is not None:
        entered = backend.choose(mask, entered, top)
    powers = layer.elementwise("exp", layer.elementwise("subtract", entered, top))
    if mask is not None:
        powers = backend.choose(mask, powers, 0.0)
    total = layer.total("statistics", layer.same("statistics", powers), last=True)
    if left is not None:
        total = backend.choose(left, total, 1.0)
    value = layer.elementwise("divide", powers, layer.enter(total))
    return Tensor(value, backend, op="softmax", parents=(x,), saved=(mask, layer), layer=layer)


def _finite(mask, x, *, empty: bool):
    """A mask without elements of -infinity; None where nothing is left out."""
    finite = x != -math.inf
    if finite.all():
        return mask
    finite = finite if mask is None else finite & mask
    return finite if empty else finite | (~finite.any(axis=-1, keepdims=True) & (True if mask is None else mask))


def _largest(layer, x):
    """The largest of each row, as a column."""
    top = layer.numerics.backend.largest(layer.last_first(x))[0]
    return layer.numerics.backend.reshape(top, (*top.shape, 1))


def log_softmax(x: Tensor, layer) -> Tensor:
    """x - max(x) - log(total(exp(x - max(x)))) over the last axis, in a layer's arithmetic.

    Each line rounded to the role that is named, operation by operation::

        d = x - max(x)              elementwise; the maximum is exact
        s = log(total(exp(d)))      exp: elementwise; the total, and its logarithm: statistics
        y = d - s                   elementwise

    with the total of `softmax`. Backwards, from the gradient e of y::

        dx = e - exp(y) * total(e)      the sum: statistics; the rest: elementwise

    Parameters
    ----------
    x : Tensor (..., n)
    layer : LayerNumerics

    Returns
    -------
    Tensor (..., n)
        Values of the role ``elementwise``.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["attention"], seed=1).layer("attention")
    >>> log_softmax(Tensor(np.float32([[1, 1]]), layer.numerics.backend), layer).value
    array([[-0.6931472, -0.6931472]], dtype=float32)
    """
    entered = layer.enter(x.value)
    shifted = layer.elementwise("subtract", entered, _largest(layer, entered))
    powers = layer.same("statistics", layer.elementwise("exp", shifted))
    total = layer.operate("statistics", "log", layer.total("statistics", powers, last=True))
    value = layer.elementwise("subtract", shifted, layer.enter(total))
    return Tensor(value, x.backend, op="log_softmax", parents=(x,), saved=(layer,), layer=layer)


def matmul(a: Tensor, b: Tensor, layer, *, use: str = "") -> Tensor:
    """a @ b of two results, matrix by matrix, in a layer's units.

    b takes the place of weights: a is rounded to ``activations`` and b to ``weights``, the operands of the unit
    ``forward``. Backwards the gradient of the result, rounded to ``errors``, meets b in ``backward_data`` and a in
    ``backward_weight``.

    Parameters
    ----------
    a : Tensor (..., M, K)
    b : Tensor (..., K, N)
        The axes before the last two are a's.
    layer : LayerNumerics
    use : str
        Which of the layer's products this is, for states of delayed scaling (``softnum.train.engine.numerics``).

    Returns
    -------
    Tensor (..., M, N)
        What the forward unit's accumulator holds.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1", "attention"], seed=1).layer("attention")
    >>> x = Tensor(np.arange(8, dtype=np.float32).reshape(2, 2, 2), layer.numerics.backend)
    >>> matmul(x, x, layer).value[1]
    array([[46., 55.],
           [66., 79.]], dtype=float32)
    """
    shapes = a.value.shape, b.value.shape
    if min(map(len, shapes)) < 2 or shapes[0][:-2] != shapes[1][:-2] or shapes[0][-1] != shapes[1][-2]:
        raise ValueError(f"matmul needs shapes (..., M, K) and (..., K, N), got {shapes[0]} and {shapes[1]}")
    first, kept_first = layer.operand(layer.operand_role, a.value, (shapes[0], -1), use=use)
    second, kept_second = layer.operand("weights", b.value, (shapes[1], -2), use=use)
    value = layer.matmul("forward", first, second)
    saved = (first, second, kept_first, kept_second, layer, use)
    return Tensor(value, a.backend, op="matmul", parents=(a, b), saved=saved)


def causal_mask(steps: int) -> np.ndarray:
    """Which steps each step may attend to: itself and those before it.

    Parameters
    ----------
    steps : int

    Returns
    -------
    bool array (1, 1, steps, steps)
        Step that attends, step attended to; for `attention`.

    Examples
    --------
    >>> causal_mask(2).astype(int).tolist()
    [[[[1, 0], [1, 1]]]]
    """
    return np.tril(np.ones((1, 1, steps, steps), bool))


def attention(
    query: Tensor, key: Tensor, value: Tensor, layer, *, batch: int, heads: int = 1, kv_heads: int | None = None,
    mask=None,
) -> Tensor:  # fmt: skip
    """Scaled dot-product attention of several heads, in a layer's arithmetic.

    For each sample and head, with d features::

        P = softmax((Q @ K^T) * (1 / sqrt(d)))      the product in the unit forward; the rest as `softmax` says
        Y = P @ V                                   in the unit forward

    Q and P are rounded to ``activations``, K and V to ``weights`` (`matmul`); 1 / sqrt(d), from binary64, and the
    scaled products to ``elementwise``.

    With fewer heads of keys and values, each of them serves as many neighbouring heads of queries. The queries of these
    are the rows of one Q, head after head, so that the gradients of K and V are sums over all of them in the unit
    ``backward_weight``.

    Parameters
    ----------
    query : Tensor (batch * queries, heads * d)
        Sample by sample; the features head by head.
    key, value : Tensor (batch * keys, kv_heads * d)
    layer : LayerNumerics
    batch, heads : int
    kv_heads : int, optional
        Heads of keys and values, which divide the heads. Default: as many.
    mask : bool array, optional
        (batch or 1, heads or 1, queries, keys): what may be attended to.

    Returns
    -------
    Tensor (batch * queries, heads * d)
        What the forward unit's accumulator holds.

    References
    ----------
    A. Vaswani et al., "Attention Is All You Need", 2017, section 3.2; fewer heads of keys and values: J. Ainslie et
    al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1", "attention"], seed=1).layer("attention")
    >>> x = Tensor(np.float32([[0], [8]]), layer.numerics.backend)
    >>> attention(x, x, x, layer, batch=1).value  # the first attends to both alike
    array([[4.],
           [8.]], dtype=float32)
    """
    size, kv_heads = query.value.shape[-1] // heads, heads if kv_heads is None else kv_heads
    shared = heads // kv_heads

    def apart(x: Tensor, count: int) -> Tensor:
        """(batch, count of heads, steps, features of a head)"""
        return permute(reshape(x, (batch, -1, count, size)), (0, 2, 1, 3))

    queries, keys, values = apart(query, heads), apart(key, kv_heads), apart(value, kv_heads)
    if shared > 1:
        steps = queries.value.shape[2]
        queries = reshape(queries, (batch, kv_heads, shared * steps, size))
        if mask is not None:
            rows = np.broadcast_to(mask, (len(mask), heads, *mask.shape[2:]))
            mask = np.broadcast_to(rows, (*rows.shape[:2], steps, rows.shape[3]))
            mask = mask.reshape(len(mask), kv_heads, shared * steps, -1)
    scores = matmul(queries, permute(keys, (0, 1, 3, 2)), layer, use="scores")
    weights = softmax(scale(scores, 1.0 / math.sqrt(size), layer), layer, mask=mask)
    result = matmul(weights, values, layer, use="values")
    if shared > 1:
        result = reshape(result, (batch, heads, steps, size))
    return reshape(permute(result, (0, 2, 1, 3)), (-1, heads * size))


def _softmax_gradient(node: Tensor, gradient) -> tuple:
    mask, layer = node.saved
    error = layer.enter(gradient)
    factors = (layer.same("statistics", factor) for factor in (error, node.value))
    total = layer.total("statistics", layer.operate("statistics", "multiply", *factors), last=True)
    data = layer.elementwise("multiply", node.value, layer.elementwise("subtract", error, layer.enter(total)))
    return (data if mask is None else node.backend.choose(mask, data, 0.0),)


def _log_softmax_gradient(node: Tensor, gradient) -> tuple:
    (layer,) = node.saved
    error = layer.enter(gradient)
    total = layer.enter(layer.total("statistics", layer.same("statistics", error), last=True))
    part = layer.elementwise("multiply", layer.elementwise("exp", node.value), total)
    return (layer.elementwise("subtract", error, part),)


def _matmul_gradient(node: Tensor, gradient) -> tuple:
    a, b, kept_a, kept_b, layer, use = node.saved
    error = layer.errors(gradient, (gradient.shape, -1), use=use)
    first = second = None
    if node.parents[0].requires_gradient:
        first = layer.returned(a, layer.matmul("backward_data", error, layer.turned(b)))
        first = layer.select(layer.operand_role, first, kept_a)
    if node.parents[1].requires_gradient:
        second = layer.returned(b, layer.matmul("backward_weight", layer.turned(a), error))
        second = layer.select("weights", second, kept_b)
    return first, second


GRADIENTS["log_softmax"] = _log_softmax_gradient
GRADIENTS["matmul"] = _matmul_gradient
GRADIENTS["softmax"] = _softmax_gradient
