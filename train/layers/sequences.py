"""What networks of sequences need besides: rows of an embedding, dropout, and moving, joining, choosing, scaling and
adding up results."""

from __future__ import annotations

import numpy as np

from softnum.train.engine.tensor import GRADIENTS, Parameter, Tensor

__all__ = [
    "concatenate", "dropout", "embedding", "expand", "lookup", "masked", "permute", "running_products", "running_sums",
    "scale", "scatter_add", "sums", "take",
]  # fmt: skip


def permute(x: Tensor, axes: tuple[int, ...], *, backend=None) -> Tensor:
    """x with its axes in this order, moved by x's own backend or the one given; (1, 0) transposes a matrix. Exact."""
    backend = x.backend if backend is None else backend
    return Tensor(backend.permute(x.value, axes), backend, op="permute", parents=(x,), saved=axes, layer=x.layer)


def concatenate(parts: list[Tensor], axis: int = 0, *, layer=None) -> Tensor:
    """Tensors one after the other along an axis; shapes agree but there. Exact.

    Parameters
    ----------
    parts : list of Tensor
    axis : int
    layer : LayerNumerics, optional
        In whose arithmetic gradients of the result are added, where it is used more than once. Default: that of the
        layer that made all parts, if one did; else they are added on the carrier.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If there are no parts.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> x = Tensor(np.float32([[1, 2]]), NumpyBackend())
    >>> concatenate([x, x]).value.tolist(), concatenate([x, x], axis=1).value.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0, 1.0, 2.0]])
    """
    if not parts:
        raise ValueError("concatenate needs at least one tensor, got none")
    backend, layers = parts[0].backend, {id(x.layer) for x in parts}
    value = backend.concatenate([x.value for x in parts], axis)
    if layer is None and len(layers) == 1:
        layer = parts[0].layer
    return Tensor(value, backend, op="concatenate", parents=tuple(parts), saved=(axis,), layer=layer)


def take(x: Tensor, rows) -> Tensor:
    """Rows of a result, each at most once; exact. The gradient of those that are not taken is +0.

    Parameters
    ----------
    x : Tensor (n, features)
    rows : integer array (m,)
        Their numbers, in the order of the result, all different.

    Returns
    -------
    Tensor (m, features)

    Raises
    ------
    ValueError
        If a number is not that of a row, or occurs twice.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> x = Tensor(np.float32([[1], [2], [3]]), NumpyBackend())
    >>> take(x, np.array([2, 0])).value.tolist()
    [[3.0], [1.0]]
    """
    count = len(x.value)
    if len(rows) and not (0 <= rows.min() <= rows.max() < count and np.bincount(rows).max() == 1):
        raise ValueError(f"rows must be different numbers in 0..{count - 1}, got {rows!r}")
    return Tensor(x.backend.take(x.value, rows), x.backend, op="take", parents=(x,), saved=(rows,), layer=x.layer)


def masked(x: Tensor, mask) -> Tensor:
    """x where a mask of its rank says so, else +0; the gradient is treated alike. Exact.

    >>> from softnum.train.engine.backend import NumpyBackend
    >>> masked(Tensor(np.float32([[1], [2]]), NumpyBackend()), np.array([[True], [False]])).value.tolist()
    [[1.0], [0.0]]
    """
    backend = x.backend
    return Tensor(backend.choose(mask, x.value, 0.0), backend, op="masked", parents=(x,), saved=(mask,), layer=x.layer)


def scale(x: Tensor, factor: float, layer) -> Tensor:
    """x * factor in the role ``elementwise`` of a layer: operands, product, and the gradient, which is scaled alike."""
    factors = layer.constant(factor, x.value.ndim)
    value = layer.delivered("multiply", layer.enter(x.value), factors)
    return Tensor(value, x.backend, op="scale", parents=(x,), saved=(factors,), layer=layer)


def expand(x: Tensor, shape: tuple[int, ...], layer) -> Tensor:
    """x broadcast to a shape, exact.

    The gradient of an element is rounded to ``statistics``, and those of its places are added in C order, as a tree:
    neighbours in pairs, then the sums in pairs, and so on (an odd last one waits), each sum rounded to ``statistics``.

    Parameters
    ----------
    x : Tensor
    shape : tuple of int
    layer : LayerNumerics

    Returns
    -------
    Tensor

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> x = Tensor(np.float32([[1], [2]]), layer.numerics.backend, requires_gradient=True)
    >>> y = expand(x, (2, 3), layer)
    >>> y.backward(np.float32([[1, 2, 3], [4, 5, 6]]))
    >>> y.value.tolist(), x.gradient.tolist()
    ([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], [[6.0], [15.0]])
    """
    value = x.backend.expand(x.value, shape)
    return Tensor(value, x.backend, op="expand", parents=(x,), saved=(layer,), layer=layer)


def sums(x: Tensor, layer) -> Tensor:
    """The sum of each row, over the last axis.

    Elements are rounded to ``statistics`` as they enter and added as a tree (`expand`), each sum rounded to the role.
    The gradient is that of each element, exactly.

    Parameters
    ----------
    x : Tensor (..., n)
        n at least 1.
    layer : LayerNumerics

    Returns
    -------
    Tensor (..., 1)
        Values of the role ``statistics``.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> sums(Tensor(np.float32([[1, 2, 4]]), layer.numerics.backend), layer).value.tolist()
    [[7.0]]
    """
    value = layer.total("statistics", layer.round("statistics", x.value), last=True)
    return Tensor(value, x.backend, op="sums", parents=(x,), layer=layer)


def running_sums(x: Tensor, layer) -> Tensor:
    """The sums of the first element of each row, of the first two, and so on, along the last axis.

    Elements are rounded to ``statistics`` as they enter and added one after another, each sum rounded to the role. The
    gradient of an element is such a sum of those of the results from its own on, from the last one backwards.

    Parameters
    ----------
    x : Tensor (..., n)
    layer : LayerNumerics

    Returns
    -------
    Tensor
        Of x's shape, values of the role ``statistics``.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> running_sums(Tensor(np.float32([[1, 2, 4]]), layer.numerics.backend), layer).value.tolist()
    [[1.0, 3.0, 7.0]]
    """
    value = _chain(layer, "statistics", "add", layer.round("statistics", x.value))
    return Tensor(value, x.backend, op="running_sums", parents=(x,), layer=layer)


def running_products(x: Tensor, layer) -> Tensor:
    """The products of the first element of each row, of the first two, and so on, along the last axis.

    Elements are rounded to ``elementwise`` as they enter and multiplied one after another, each product rounded to the
    role. Backwards, from the last place on, with g the gradient of a result, rounded to the role::

        h = g + h * x       of the place after it; of the last one h = g
        dx = h * y          y: the product of all elements before it; of the first one dx = h

    Parameters
    ----------
    x : Tensor (..., n)
    layer : LayerNumerics

    Returns
    -------
    Tensor
        Of x's shape, values of the role ``elementwise``.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> running_products(Tensor(np.float32([[3, 2, 4]]), layer.numerics.backend), layer).value.tolist()
    [[3.0, 6.0, 24.0]]
    """
    entered = layer.enter(x.value)
    value = _chain(layer, "elementwise", "multiply", entered)
    return Tensor(value, x.backend, op="running_products", parents=(x,), saved=(entered,), layer=layer)


def _columns(layer, x) -> list:
    """The columns along the last axis, as a list."""
    turned, backend = layer.last_first(x), layer.numerics.backend
    return [backend.take(turned, np.array([i])) for i in range(x.shape[-1])]


def _joined(layer, columns: list, like):
    """Columns as an array of the shape of another."""
    if not columns:
        return like
    backend = layer.numerics.backend
    return backend.permute(backend.concatenate(columns, 0), (*range(1, like.ndim), 0))


def _chain(layer, role: str, operation: str, x):
    """What an operation makes of the elements of rows so far, one after another, each result rounded to a role."""
    columns = _columns(layer, x)
    for i in range(1, len(columns)):
        columns[i] = layer.operate(role, operation, columns[i - 1], columns[i])
    return _joined(layer, columns, x)


def lookup(x: Tensor, rows, layer) -> Tensor:
    """Rows of a result, each as often as it is named; exact.

    Backwards, gradients are rounded to ``statistics``, and those of a row added in their order, as a tree (`expand`),
    each sum rounded to ``statistics``. A row that was not taken has +0.

    Parameters
    ----------
    x : Tensor (n, ...)
    rows : integer array
    layer : LayerNumerics

    Returns
    -------
    Tensor (*rows' shape, ...)

    Raises
    ------
    ValueError
        If a number is not that of a row.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> x = Tensor(np.float32([1, 2, 3]), layer.numerics.backend, requires_gradient=True)
    >>> y = lookup(x, np.array([[2, 0], [2, 2]]), layer)
    >>> y.backward(np.float32([[1, 2], [3, 4]]))
    >>> y.value.tolist(), x.gradient.tolist()
    ([[3.0, 1.0], [3.0, 3.0]], [2.0, 0.0, 8.0])
    """
    flat, rest = _numbers_of_rows(rows, len(x.value)), x.value.shape[1:]
    value = x.backend.reshape(x.backend.take(x.value, flat), (*rows.shape, *rest))
    return Tensor(value, x.backend, op="lookup", parents=(x,), saved=(flat, layer), layer=layer)


def scatter_add(x: Tensor, rows, parts: Tensor, layer) -> Tensor:
    """x with parts added to its rows, in the role ``elementwise`` of a layer.

    A row of x and the parts that are added to it, in their order, are added as a tree (`expand`). All are rounded to
    the role as they enter, and so is each sum. Gradients are moved, exactly.

    Parameters
    ----------
    x : Tensor (n, ...)
    rows : integer array (m,)
        The row of x that each of the parts is added to.
    parts : Tensor (m, ...)
    layer : LayerNumerics

    Returns
    -------
    Tensor (n, ...)

    Raises
    ------
    ValueError
        If a number is not that of a row.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> x, parts = (Tensor(np.float32(part), layer.numerics.backend) for part in ([0, 10], [1, 2, 3]))
    >>> scatter_add(x, np.array([1, 1, 0]), parts, layer).value.tolist()
    [3.0, 13.0]
    """
    rows, backend = _numbers_of_rows(rows, len(x.value)), x.backend
    entered = backend.concatenate([layer.enter(x.value), layer.enter(parts.value)], 0)
    _, value = _totals(layer, "elementwise", entered, np.concatenate([np.arange(len(x.value)), rows]))
    return Tensor(value, backend, op="scatter_add", parents=(x, parts), saved=(rows,), layer=layer)


def _numbers_of_rows(rows, count: int):
    flat = np.asarray(rows).reshape(-1)
    if flat.size and not 0 <= flat.min() <= flat.max() < count:
        raise ValueError(f"rows must be numbers in 0..{count - 1}, got {flat.min()} to {flat.max()}")
    return flat


def _totals(layer, role: str, x, owners):
    """(the owners, the total of each one's rows of x in their order, as a tree, each sum rounded to a role)"""
    order, backend = np.argsort(owners, kind="stable"), layer.numerics.backend
    owners, x = owners[order], backend.take(x, order)
    while (same := owners[1:] == owners[:-1]).any():
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        places = np.arange(len(owners)) - np.repeat(starts, np.diff([*starts, len(owners)]))
        kept = np.flatnonzero(places % 2 == 0)
        paired = np.flatnonzero((places % 2 == 0) & np.concatenate([same, [False]]))
        sums = layer.operate(role, "add", backend.take(x, paired), backend.take(x, paired + 1))
        x, owners = backend.put(backend.take(x, kept), np.searchsorted(kept, paired), sums), owners[kept]
    return owners, x


def dropout(x: Tensor, rate: float, layer, *, training: bool) -> Tensor:
    """x with a share of its elements replaced by +0 and the others multiplied by 1 / (1 - rate), in training.

    The factor is computed in binary64 and rounded to ``elementwise`` of the layer, as are operands and products; the
    gradient is treated alike. Which elements stay is counted random: they follow from the run's seed, the iteration,
    the number of this place in the iteration and the element (``softnum.train.engine.backend.NumpyBackend.kept``). In
    evaluation, or with a rate of 0, x itself is returned, and no place is counted.

    Parameters
    ----------
    x : Tensor
    rate : float
        The probability of a 0: at least 0, below 1.
    layer : LayerNumerics
    training : bool

    Returns
    -------
    Tensor
        Of x's shape.

    Raises
    ------
    ValueError
        If the rate is out of range.

    References
    ----------
    N. Srivastava et al., "Dropout", 2014, section 10 (scaled in training rather than in evaluation).

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> x = Tensor(np.ones((1, 6), np.float32), layer.numerics.backend)
    >>> dropout(x, 0.5, layer, training=True).value
    array([[2., 0., 2., 2., 2., 2.]], dtype=float32)
    """
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0.0 <= rate < 1.0:
        raise ValueError(f"a dropout's rate must be at least 0 and below 1, got {rate!r}")
    if rate == 0.0 or not training:
        return x
    kept = layer.kept(x.value.shape, float(rate))
    return masked(scale(x, 1.0 / (1.0 - rate), layer), kept)


def embedding(rows, weight: Parameter, layer) -> Tensor:
    """Rows of a table of weights, for each of a list of row numbers.

    The rows are those of the working copy, in the role ``weights``. Backwards, gradients are rounded to ``errors``.
    The gradient of a row that was taken n times is the product of n ones with its n gradients, in their order, in the
    unit ``backward_weight``, as that of a bias is; then as any gradient of a parameter. A row that was not taken has 0.
    Rows taken equally often are one place for random bits: those taken fewest times first, and among them in order.

    Parameters
    ----------
    rows : integer array (n,)
    weight : Parameter (words, features)
    layer : LayerNumerics

    Returns
    -------
    Tensor (n, features)

    Raises
    ------
    ValueError
        If a number is not that of a row.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("a-float32"), ["embedding"], seed=1).layer("embedding")
    >>> weight = Parameter(np.float32([[0.5, 1], [2, 3]]), layer, "embedding.weight")
    >>> y = embedding(np.array([1, 0, 1]), weight, layer)
    >>> y.backward(np.ones((3, 2), np.float32))
    >>> y.value.tolist(), weight.gradient.tolist()
    ([[2.0, 3.0], [0.5, 1.0], [2.0, 3.0]], [[1.0, 1.0], [2.0, 2.0]])
    """
    words = weight.value.shape[0]
    if rows.size and not 0 <= rows.min() <= rows.max() < words:
        raise ValueError(f"{weight.name} has rows 0 to {words - 1}, got {rows.min()} to {rows.max()}")
    layer.refuse_blocks("rows of an embedding are looked up, not multiplied")
    backend = layer.numerics.backend  # not the parameter's own, which nobody watches
    value = backend.take(layer.working_copy(weight), rows)
    return Tensor(value, backend, op="embedding", parents=(weight,), saved=(rows, layer))


# -- gradient rules ----------------------------------------------------------------------------------------------------


def _permute_gradient(node: Tensor, gradient) -> tuple:
    return (node.backend.permute(gradient, tuple(np.argsort(node.saved).tolist())),)


def _concatenate_gradient(node: Tensor, gradient) -> tuple:
    (axis,), sizes = node.saved, [x.value.shape[node.saved[0]] for x in node.parents]
    return tuple(node.backend.split(gradient, sizes, axis))


def _scale_gradient(node: Tensor, gradient) -> tuple:
    return (node.layer.elementwise("multiply", node.layer.enter(gradient), *node.saved),)


def _expand_gradient(node: Tensor, gradient) -> tuple:
    (layer,), backend, own = node.saved, node.backend, node.parents[0].value.shape
    padded = (1,) * (gradient.ndim - len(own)) + own
    summed = tuple(axis for axis, n in enumerate(padded) if n != gradient.shape[axis])
    rest = tuple(axis for axis in range(gradient.ndim) if axis not in summed)
    if not summed:
        return (backend.reshape(gradient, own),)
    if 0 in gradient.shape:
        return (backend.zeros(own),)
    rounded = layer.round("statistics", backend.permute(gradient, (*summed, *rest)))
    rows = backend.reshape(rounded, (-1, *(gradient.shape[axis] for axis in rest)))
    return (backend.reshape(layer.total("statistics", rows), own),)


def _running_sums_gradient(node: Tensor, gradient) -> tuple:
    layer, columns = node.layer, _columns(node.layer, node.layer.round("statistics", gradient))
    for i in reversed(range(len(columns) - 1)):
        columns[i] = layer.operate("statistics", "add", columns[i + 1], columns[i])
    return (_joined(layer, columns, gradient),)


def _running_products_gradient(node: Tensor, gradient) -> tuple:
    layer, (entered,) = node.layer, node.saved
    factors, products, found = (_columns(layer, x) for x in (entered, node.value, layer.enter(gradient)))
    for i in reversed(range(len(found) - 1)):
        found[i] = layer.elementwise("add", found[i], layer.elementwise("multiply", found[i + 1], factors[i + 1]))
    for i in range(1, len(found)):
        found[i] = layer.elementwise("multiply", found[i], products[i - 1])
    return (_joined(layer, found, gradient),)


def _lookup_gradient(node: Tensor, gradient) -> tuple:
    (rows, layer), backend, own = node.saved, node.backend, node.parents[0].value.shape
    parts = layer.round("statistics", backend.reshape(gradient, (len(rows), *own[1:])))
    taken, totals = _totals(layer, "statistics", parts, rows)
    return (backend.put_rows(totals, taken, own[0]),)


def _embedding_gradient(node: Tensor, gradient) -> tuple:
    rows, layer = node.saved
    backend, (words, features) = node.backend, node.parents[0].value.shape
    error = layer.errors(gradient)
    order = np.argsort(rows, kind="stable")
    taken, first, counts = np.unique(rows[order], return_index=True, return_counts=True)
    total = backend.zeros((words, features))
    for count in np.unique(counts).tolist():
        same = counts == count
        where = order[first[same][:, None] + np.arange(count)]  # (rows taken so often, the places where)
        parts, ones = backend.take(error, where), backend.ones((1, count))
        if layer.design.units["backward_weight"].stochastic:  # whose random bits depend on the place in a product
            ones = backend.ones((len(where), 1, count))
        else:  # one product of many columns has the same sums, and takes a fraction of the time
            parts = backend.reshape(backend.permute(parts, (1, 0, 2)), (count, -1))
        sums = layer.matmul("backward_weight", ones, parts)
        total = backend.put(total, taken[same], backend.reshape(sums, (len(where), features)))
    return (layer.weight_gradient(total),)


GRADIENTS["concatenate"] = _concatenate_gradient
GRADIENTS["embedding"] = _embedding_gradient
GRADIENTS["expand"] = _expand_gradient
GRADIENTS["lookup"] = _lookup_gradient
GRADIENTS["masked"] = lambda node, gradient: (node.backend.choose(*node.saved, gradient, 0.0),)
GRADIENTS["permute"] = _permute_gradient
GRADIENTS["running_products"] = _running_products_gradient
GRADIENTS["running_sums"] = _running_sums_gradient
GRADIENTS["scale"] = _scale_gradient
GRADIENTS["scatter_add"] = lambda node, gradient: (gradient, node.backend.take(gradient, *node.saved))
GRADIENTS["sums"] = lambda node, gradient: (node.backend.expand(gradient, node.parents[0].value.shape),)
GRADIENTS["take"] = lambda node, gradient: (
    node.backend.put_rows(gradient, *node.saved, node.parents[0].value.shape[0]),
)
