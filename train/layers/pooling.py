"""Pooling of images: the largest of a window, or its average. Windows lie within the image; nothing is padded."""

from __future__ import annotations

from softnum.train.engine.tensor import GRADIENTS, Tensor

__all__ = ["avg_pool2d", "max_pool2d", "pooled_size"]


def pooled_size(size, window, stride) -> tuple[int, int]:
    """Rows and columns of a pooled image: the windows that lie within it.

    Parameters
    ----------
    size : (int, int)
        Height and width of the image.
    window, stride : int or (int, int)
        Rows, columns.

    Raises
    ------
    ValueError
        If window or stride is no positive integer, nor a pair of them, or no window fits.

    Examples
    --------
    >>> pooled_size((15, 15), 3, 2)
    (7, 7)
    """
    return _geometry(size, window, stride)[2]


def _geometry(size, window, stride):
    """(window, stride, size of the result), all of them pairs; a stride of None is the window."""
    pairs = []
    for what, value in (("window", window), ("stride", window if stride is None else stride)):
        pair = value if isinstance(value, tuple) else (value, value)
        if len(pair) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in pair):
            raise ValueError(f"pooling: {what} must be a positive integer, or a pair of them, got {value!r}")
        pairs.append(pair)
    if any(n < w for n, w in zip(size, pairs[0], strict=True)):
        raise ValueError(f"pooling: a window of {pairs[0]} does not fit an image of {tuple(size)}")
    return *pairs, tuple((n - w) // t + 1 for n, w, t in zip(size, *pairs, strict=True))


def max_pool2d(x: Tensor, layer, *, window=2, stride=None) -> Tensor:
    """The largest element of each window, exact; a NaN in a window is its result.

    The gradient goes to the first of equal elements, in the order (row, column) of the window. Where windows overlap,
    the gradients of an element are added window by window (see `avg_pool2d`).

    Parameters
    ----------
    x : Tensor (images, channels, height, width)
    layer : LayerNumerics
        Whose role ``elementwise`` gradients of overlapping windows are added in.
    window : int or (int, int)
        Height and width of a window, in pixels.
    stride : int or (int, int), optional
        Pixels from one window to the next. Default: the window.

    Returns
    -------
    Tensor (images, channels, rows, columns)

    Raises
    ------
    ValueError
        As ``pooled_size``.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["conv1"], seed=1).layer("conv1")
    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> max_pool2d(Tensor(image, layer.numerics.backend), layer).value
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    """
    window, stride, _ = _geometry(x.value.shape[2:], window, stride)
    value, chosen = x.backend.largest(x.backend.windows(x.value, window, stride))
    saved = (chosen, window, stride, layer)
    return Tensor(value, x.backend, op="max_pool2d", parents=(x,), saved=saved, layer=x.layer)


def avg_pool2d(x: Tensor, layer, *, window=2, stride=None) -> Tensor:
    """The average of each window, in a layer's element-by-element arithmetic.

    The elements are rounded to ``elementwise`` as they enter and added as a tree: neighbours in the order (row, column)
    of the window in pairs, then the sums in pairs, and so on (an odd last one waits), each sum rounded to
    ``elementwise``. The total is divided by the number of elements in binary64 and rounded to ``elementwise``.
    Backwards the gradient is divided and rounded in the same way; where windows overlap, the gradients of an element
    are added to +0 one after another, in the order of its places (row, column) in the windows, each sum rounded to
    ``elementwise``.

    Parameters
    ----------
    x : Tensor (images, channels, height, width)
    layer : LayerNumerics
    window, stride
        As of `max_pool2d`.

    Returns
    -------
    Tensor (images, channels, rows, columns)

    Raises
    ------
    ValueError
        As ``pooled_size``.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["conv1"], seed=1).layer("conv1")
    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> avg_pool2d(Tensor(image, layer.numerics.backend), layer, window=4).value
    array([[[[7.5]]]], dtype=float32)
    """
    window, stride, _ = _geometry(x.value.shape[2:], window, stride)
    total = layer.total("elementwise", x.backend.windows(layer.enter(x.value), window, stride))
    value = layer.quotient("elementwise", total, window[0] * window[1])
    return Tensor(value, x.backend, op="avg_pool2d", parents=(x,), saved=(window, stride, layer), layer=layer)


def _spread(node: Tensor, parts, window: tuple[int, int], stride: tuple[int, int], layer):
    """Gradients of the image from those of the places in its windows, given in the order of the places."""
    shape = node.parents[0].value.shape
    if stride[0] >= window[0] and stride[1] >= window[1]:  # no two windows share an element: nothing to add
        return node.backend.from_windows(parts, shape, window, stride)
    total = node.backend.zeros(shape)
    for place, gradient in enumerate(parts):
        term = node.backend.from_windows([gradient], shape, window, stride, first=place)
        total = layer.elementwise("add", total, layer.enter(term))
    return total


def _max_pool2d_gradient(node: Tensor, gradient) -> tuple:
    chosen, window, stride, layer = node.saved
    parts = (node.backend.where_equal(chosen, place, gradient) for place in range(window[0] * window[1]))
    return (_spread(node, parts, window, stride, layer),)


def _avg_pool2d_gradient(node: Tensor, gradient) -> tuple:
    window, stride, layer = node.saved
    share = layer.quotient("elementwise", layer.enter(gradient), window[0] * window[1])
    return (_spread(node, [share] * (window[0] * window[1]), window, stride, layer),)


GRADIENTS["avg_pool2d"] = _avg_pool2d_gradient
GRADIENTS["max_pool2d"] = _max_pool2d_gradient
