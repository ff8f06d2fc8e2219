"""Convolutions as matrix products of unfolded images, and their gradients: those of `softnum.conv2d`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import jax
import jax.numpy as jnp
import numpy as np

from softnum.jax.numerics import Arithmetic, Pass
from softnum.jax.products import computed, rounded

__all__ = ["Geometry", "convolution", "geometry_of"]


@dataclass(frozen=True)
class Geometry:
    """How a convolution meets its images, by rows and columns.

    Attributes
    ----------
    size, kernel, result : (int, int)
    stride, dilation : (int, int)
    before, after : (int, int)
        Zeros on the two sides of each axis.
    groups : int
    """

    size: tuple[int, int]
    kernel: tuple[int, int]
    result: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    after: tuple[int, int]
    groups: int

    def places(self, axis: int) -> np.ndarray:
        """Of each result and kernel element, the place in the padded image."""
        steps = np.arange(self.result[axis])[:, None] * self.stride[axis]
        return steps + np.arange(self.kernel[axis]) * self.dilation[axis]

    def sources(self, axis: int) -> np.ndarray:
        """Of each image and kernel element, the result where they met; one past the last where in none."""
        at = np.arange(self.size[axis])[:, None] + self.before[axis]
        at = at - np.arange(self.kernel[axis]) * self.dilation[axis]
        found, rest = np.divmod(at, self.stride[axis])
        met = (rest == 0) & (found >= 0) & (found < self.result[axis])
        return np.where(met, found, self.result[axis])


def geometry_of(x, w, params, where: str) -> tuple[Geometry, tuple]:
    """The geometry of JAX's conv_general_dilated, and the permutations of x, w and the result from and to images first.

    Raises
    ------
    NotImplementedError
        If it has three dimensions, spreads its images or groups its batch, or takes elements of the edges away.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> x, w = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4))
    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> convolve = lambda x, w: jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=layout)
    >>> (equation,) = jax.make_jaxpr(convolve)(x, w).eqns
    >>> geometry_of(x, w, equation.params, "conv")[0].result
    (4, 4)
    """
    numbers = params["dimension_numbers"]
    rank = len(params["window_strides"])
    refused = {
        f"{rank} dimensions of images": rank > 2,
        "lhs_dilation, as transposed convolutions have": any(n != 1 for n in params["lhs_dilation"]),
        "batch_group_count": params["batch_group_count"] != 1,
        "negative padding": any(n < 0 for pair in params["padding"] for n in pair),
    }
    for what, is_given in refused.items():
        if is_given:
            raise NotImplementedError(
                f"softnum.jax.intercept: conv_general_dilated in module {where!r} has {what}, which softnum.conv2d has "
                f"not; leave it to JAX by a rule before: Rule({where!r}, None, op_names=('conv_general_dilated',))"
            )
    more = 2 - rank  # an image of one dimension is one row

    def pair(values, filled):
        return (*(filled,) * more, *values)

    size = pair([x.shape[axis] for axis in numbers.lhs_spec[2:]], 1)
    kernel = pair([w.shape[axis] for axis in numbers.rhs_spec[2:]], 1)
    stride, dilation = pair(params["window_strides"], 1), pair(params["rhs_dilation"], 1)
    padding = pair(params["padding"], (0, 0))
    spread = [size[i] + sum(padding[i]) - dilation[i] * (kernel[i] - 1) - 1 for i in range(2)]
    result = tuple(n // t + 1 for n, t in zip(spread, stride, strict=True))
    before, after = (tuple(p[side] for p in padding) for side in (0, 1))
    orders = numbers.lhs_spec, numbers.rhs_spec, tuple(np.argsort(numbers.out_spec).tolist())
    groups = params["feature_group_count"]
    return Geometry(size, kernel, result, stride, dilation, before, after, groups), orders


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def convolution(how: Arithmetic, g: Geometry, x, w, key):
    """Images (images, channels, height, width) by weights (filters, channels / groups, height, width)."""
    return _forward_pass(how.forward, g, rounded(how.forward.left, x, key), rounded(how.forward.right, w, key), key)


def _forward(how, g, x, w, key):
    return convolution(how, g, x, w, key), (x, w, key)


def _backward(how, g, saved, gradient):
    x, w, key = saved
    data, weight = how.backward_data, how.backward_weight
    of_x = _data_pass(data, g, rounded(data.left, gradient, key), rounded(data.right, w, key), key)
    of_w = _weight_pass(weight, g, rounded(weight.left, x, key), rounded(weight.right, gradient, key), key)
    return of_x.astype(x.dtype), of_w.astype(w.dtype), np.zeros(4, jax.dtypes.float0)


convolution.defvjp(_forward, _backward)


def _unfolded(x, rows: np.ndarray, columns: np.ndarray, groups: int):
    """(groups, images, rows, columns, channels / groups, kernel rows, kernel columns)."""
    taken = x[:, :, rows[:, :, None, None], columns[None, None]]  # images, channels, rows, ky, columns, kx
    split = taken.reshape(x.shape[0], groups, -1, *taken.shape[2:])
    return jnp.transpose(split, (1, 0, 3, 5, 2, 4, 6))


def _patches(g: Geometry, x):
    sides = tuple(zip(g.before, g.after, strict=True))
    return _unfolded(jnp.pad(x, ((0, 0), (0, 0), *sides)), g.places(0), g.places(1), g.groups)


def _forward_pass(how: Pass, g: Geometry, x, w, key):
    images, filters = x.shape[0], w.shape[0]
    k = prod(w.shape[1:])
    a = _patches(g, x).reshape(g.groups, -1, k)
    b = jnp.swapaxes(w.reshape(g.groups, filters // g.groups, k), 1, 2)
    made = computed(how, a, b, None, key).reshape(g.groups, images, *g.result, filters // g.groups)
    return jnp.transpose(made, (1, 0, 4, 2, 3)).reshape(images, filters, *g.result)


def _data_pass(how: Pass, g: Geometry, dy, w, key):
    images, filters, channels = dy.shape[0], w.shape[0] // g.groups, w.shape[1]
    k = filters * prod(g.kernel)
    padded = jnp.pad(dy, ((0, 0), (0, 0), (0, 1), (0, 1)))
    a = _unfolded(padded, g.sources(0), g.sources(1), g.groups).reshape(g.groups, -1, k)
    b = jnp.swapaxes(w.reshape(g.groups, filters, channels, -1), 2, 3).reshape(g.groups, k, channels)
    made = computed(how, a, b, None, key).reshape(g.groups, images, *g.size, channels)
    return jnp.transpose(made, (1, 0, 4, 2, 3)).reshape(images, -1, *g.size)


def _weight_pass(how: Pass, g: Geometry, x, dy, key):
    images, filters = dy.shape[0], dy.shape[1] // g.groups
    k = images * prod(g.result)
    a = jnp.transpose(_patches(g, x), (0, 4, 5, 6, 1, 2, 3)).reshape(g.groups, -1, k)
    b = jnp.transpose(dy.reshape(images, g.groups, filters, *g.result), (1, 0, 3, 4, 2)).reshape(g.groups, k, filters)
    made = jnp.swapaxes(computed(how, a, b, None, key), 1, 2)
    return made.reshape(g.groups * filters, -1, *g.kernel)
