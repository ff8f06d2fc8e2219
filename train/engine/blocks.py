"""Operands that products round: in blocks or tiles along a product's dimension K, or each pass in its own way."""

from __future__ import annotations

from collections.abc import Callable

from softnum.mac.products.unfold import shape_of
from softnum.train.recipes import Scaled

__all__ = ["BlockOperand", "PassOperand", "ScaledOperand", "as_matrices", "pixels"]


class BlockOperand:
    """Matrices of a role that has a block format, as they are before any rounding.

    `along` rounds them, once for each of their last two axes, however many products they enter: x of a layer is rounded
    along its features for the forward product, and along the batch, from the same numbers, for the gradient of the
    weights. Each of these is a rounding site of its own, numbered where it is first needed.

    Parameters
    ----------
    values : array (..., rows, columns)
        Carriers of any format, not rounded to the role.
    rounded : callable
        (values, axis) -> BlockArray: rounds them in blocks along an axis, -1 or -2.

    Examples
    --------
    >>> import numpy as np
    >>> import softnum as sn
    >>> x = BlockOperand(np.float32([[3, 300], [5, 7]]), lambda x, axis: sn.array(x, "mxfp4", axis=axis))
    >>> x.along(-1).decode().tolist(), x.along(-2).decode().tolist()
    ([[0.0, 256.0], [4.0, 6.0]], [[3.0, 256.0], [4.0, 0.0]])
    >>> x.turned().along(-1).decode().tolist()
    [[3.0, 4.0], [256.0, 0.0]]
    """

    __slots__ = ("_made", "_rounded", "_swapped", "values")

    def __init__(self, values, rounded: Callable, *, _made=None, _swapped: bool = False) -> None:
        self.values, self._rounded, self._swapped = values, rounded, _swapped
        self._made = {} if _made is None else _made  # axis, or name -> what was made of the values

    @property
    def shape(self) -> tuple[int, ...]:
        """As the products see it."""
        shape = self.values.shape
        return (*shape[:-2], shape[-1], shape[-2]) if self._swapped else shape

    def turned(self) -> BlockOperand:
        """The same numbers with the last two axes exchanged; what was rounded once stays so."""
        return type(self)(self.values, self._rounded, _made=self._made, _swapped=not self._swapped)

    def along(self, axis: int):
        """The numbers rounded in blocks along an axis, -1 or -2: a BlockArray."""
        own = -3 - axis if self._swapped else axis
        if own not in self._made:
            self._made[own] = self._rounded(self.values, own)
        return self._made[own].swapaxes(-2, -1) if self._swapped else self._made[own]

    def laid_out(self, name: str, of: Callable) -> BlockOperand:
        """The matrices of(values) as an operand, made once for each name: images unfolded for a convolution."""
        if name not in self._made:
            self._made[name] = type(self)(of(self.values), self._rounded)
        return self._made[name]


class ScaledOperand(BlockOperand):
    """Matrices of a role that has a scale, as they are before any rounding; or elements that a scale of all has made.

    As `BlockOperand`, but that `along` gives a `Scaled` with K as its columns.

    Parameters
    ----------
    values : array (..., rows, columns)
    rounded : callable
        (values, axis, made) -> Scaled: rounds them in tiles along an axis, -1 or -2, which becomes the columns; made:
        what was made along the other axis, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train.recipes import BlockScaling
    >>> of_rows = BlockScaling("e2m1fn", (1, None), power_of_two=False)
    >>> x = ScaledOperand(np.float32([[3, 300], [5, 7]]), lambda x, axis, made: of_rows(x if axis == -1 else x.T))
    >>> x.along(-1).elements.tolist(), x.along(-2).elements.tolist()
    ([[0.0, 6.0], [4.0, 6.0]], [[4.0, 6.0], [6.0, 0.0]])
    >>> x.turned().along(-2) is x.along(-1)
    True
    """

    __slots__ = ()

    def along(self, axis: int) -> Scaled:
        """The numbers rounded in tiles along an axis, -1 or -2, which becomes the columns."""
        own = -3 - axis if self._swapped else axis
        if own not in self._made:
            self._made[own] = self._rounded(self.values, own, self._made.get(-3 - own))
        return self._made[own]


class PassOperand:
    """Numbers of a role that some pass rounds in its own way, as they are before any rounding.

    Parameters
    ----------
    values : array (..., rows, columns)
    made : callable
        pass -> the operand of that pass: an array, BlockOperand or ScaledOperand.
    turned : callable
        An operand -> the same with its last two axes exchanged.
    back : callable, optional
        The gradient of what the forward pass multiplies -> that of the numbers. Default: straight through.

    Examples
    --------
    >>> import numpy as np
    >>> made = {"forward": np.ones((2, 3)), "backward_weight": np.zeros((2, 3))}
    >>> x = PassOperand(np.ones((2, 3)), made.get, np.transpose)
    >>> x.turned().shape, x.turned().of("backward_weight").tolist()
    ((3, 2), [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    """

    __slots__ = ("_made", "_swapped", "_turned", "back", "values")

    def __init__(
        self, values, made: Callable, turned: Callable, back: Callable | None = None, *, _swapped: bool = False
    ) -> None:
        self.values, self._made, self._turned, self.back, self._swapped = values, made, turned, back, _swapped

    @property
    def shape(self) -> tuple[int, ...]:
        """As the products see it."""
        shape = self.values.shape
        return (*shape[:-2], shape[-1], shape[-2]) if self._swapped else shape

    def turned(self) -> PassOperand:
        """The same numbers with the last two axes exchanged."""
        return PassOperand(self.values, self._made, self._turned, self.back, _swapped=not self._swapped)

    def of(self, key: str):
        """The operand of a pass."""
        return self._turned(self._made(key)) if self._swapped else self._made(key)


def as_matrices(key: str, a: BlockOperand, b: BlockOperand, backend, geometry: dict) -> tuple:
    """The operands of one of a convolution's products as those of matrix products, a matrix for each group.

    Parameters
    ----------
    key : str
        The pass: "forward" of x and w, "backward_data" of dy and w, "backward_weight" of x and dy.
    a, b : BlockOperand
        Images (n, channels, height, width), or weights (filters, channels / groups, height, width).
    backend : NumpyBackend
    geometry : dict
        The keywords of `softnum.conv2d` and its gradients, with ``size`` or ``kernel``.

    Returns
    -------
    first, second : BlockOperand (groups, M, K), (groups, K, N)
        Rows, columns and K are those that `softnum.conv2d` and its gradients state.
    shaped : callable
        Makes the result's shape of the product (groups, M, N).
    """
    options = (geometry[name] for name in ("stride", "padding", "dilation", "groups"))
    groups = geometry["groups"]
    if key == "backward_data":
        (n, filters, *_), size, (_, channels, *kernel) = a.shape, geometry["size"], b.shape
        channels *= groups
    else:
        n, channels, *size = a.shape
        filters, kernel = (b.shape[0], b.shape[2:]) if key == "forward" else (b.shape[1], geometry["kernel"])
    s = shape_of("conv2d", n, channels, filters, size, kernel, *options)
    per_group, own = s.per_group

    def images(product):
        apart = backend.reshape(product, (groups, n, *(s.size if key == "backward_data" else s.result), -1))
        joined = backend.permute(apart, (1, 0, 4, 2, 3))
        return backend.reshape(joined, (n, -1, *joined.shape[3:]))

    def channels_last(w):
        apart = backend.reshape(w, (groups, own, per_group, *kernel))
        return backend.reshape(backend.permute(apart, (0, 1, 3, 4, 2)), (groups, -1, per_group))

    if key == "backward_data":
        first = a.laid_out("sources", lambda dy: backend.sources(dy, s))
        return first, b.laid_out("channels", channels_last), images
    first = a.laid_out("patches", lambda x: backend.patches(x, s))
    if key == "forward":
        return first, b.laid_out("filters", lambda w: backend.reshape(w, (groups, own, -1))).turned(), images
    shape = (filters, per_group, *kernel)
    return first.turned(), pixels(b, backend, groups), lambda x: backend.reshape(backend.permute(x, (0, 2, 1)), shape)


def pixels(dy: BlockOperand, backend, groups: int) -> BlockOperand:
    """Images (n, channels, height, width) as matrices (groups, n * height * width, channels / groups)."""

    def matrices(x):
        rows = backend.pixels(x)
        return backend.permute(backend.reshape(rows, (len(rows), groups, -1)), (1, 0, 2))

    return dy.laid_out("pixels", matrices)
