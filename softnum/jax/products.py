"""Matrix products under a unit, or in a design's arithmetic, and their gradients."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from softnum.formats.blocks import format
from softnum.jax.keys import check_key, jumped
from softnum.jax.numerics import Arithmetic, Pass, Rounded, arithmetic
from softnum.jax.plans import product_of
from softnum.jax.quantization import carrier, quantize

__all__ = ["computed", "matmul", "product", "rounded", "weight_gradients"]

_FORMATS = {"float32": "binary32", "float64": "binary64"}


def matmul(input, other, unit, c=None, *, key=None) -> jax.Array:
    """input @ other under a unit, the bits of `softnum.matmul`; or in a design's arithmetic, as `softnum.torch.matmul`.

    Parameters
    ----------
    input, other : array of float32, float64, bfloat16 or float16, shapes (..., M, K), (..., K, N)
        Leading dimensions broadcast; vectors are taken as by `jax.numpy.matmul`. `other` takes the place of weights.
    unit : Unit, str, Design or Arithmetic
        What `arithmetic` takes, or what it made.
    c : array, optional
        The initial accumulator, broadcast to the result.
    key : int, (int, int), Stream or array, optional
        Of random bits; an array is that of `softnum.jax.key`, and may be traced. Under a unit the product takes the key
        itself, as `softnum.matmul` does, and those of the gradients its jumps by 1 and 2; in a design's arithmetic each
        rounding and product has the jump of its place in `softnum.jax.numerics.SITES`.

    Returns
    -------
    jax.Array, shape (..., M, N)
        Under a unit: float32 if that holds every value of the unit's result, else float64. In a design's arithmetic: of
        the input's dtype, to which what the accumulator holds is rounded once, to nearest even.

    Raises
    ------
    ValueError
        When it is traced: if shapes do not fit, a key is missing, or results need float64 and JAX has none. When it is
        computed (JAX's own error, with this text): if an element is no value of the unit's format, or a NaN has no
        code.
    TypeError
        If operands are not of floating point.
    NotImplementedError
        If the unit multiplies blocks, or is of functions of the user's.
    RuntimeError
        If there is no C compiler, at the first call.

    Notes
    -----
    The gradient of `input` is errors @ other^T in the unit ``backward_data``, that of `other` input^T @ errors in
    ``backward_weight``, where errors is the gradient of the result, rounded as `arithmetic` says; that of c is the
    result's. Under ``vmap`` each element of the batch is a call of its own.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, softnum as sn, softnum.jax as sj
    >>> unit = sn.MadUnit("e6m3", operand="e5m2")
    >>> a = jnp.ones((1, 40))
    >>> sj.matmul(a, a.T, unit).item()  # the sum of forty ones sticks at 16
    16.0
    >>> jax.grad(lambda a: sj.matmul(a, jnp.full((40, 1), 2.0), unit).sum())(a)[0, 0].item()
    2.0
    >>> sj.matmul(jnp.float32([[0.3]]), jnp.float32([[3.0]]), "e-e6m3-chunk").item()
    0.9375
    """
    how = arithmetic(unit)
    (a, dtype), (b, _) = carrier(input, "matmul", "input"), carrier(other, "matmul", "other")
    if not a.ndim or not b.ndim:
        raise ValueError(f"softnum.jax.matmul takes matrices and vectors, got shapes {a.shape} and {b.shape}")
    vectors = a.ndim == 1, b.ndim == 1
    a = a[None] if vectors[0] else a
    b = b[:, None] if vectors[1] else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"softnum.jax.matmul: input has K = {a.shape[-1]} columns, other has {b.shape[-2]} rows (shapes "
            f"{jnp.shape(input)}, {jnp.shape(other)})"
        )
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"softnum.jax.matmul: leading dimensions of {a.shape} and {b.shape} do not broadcast"
        ) from None
    shape = (*lead, a.shape[-2], b.shape[-1])
    if c is not None:
        c, _ = carrier(c, "matmul", "c")
        drops = zip(shape, (*(False,) * len(lead), *vectors), strict=True)
        wanted = tuple(n for n, drop in drops if not drop)
        fits = zip(c.shape[::-1], wanted[::-1], strict=False)
        if c.ndim > len(wanted) or any(n not in (1, want) for n, want in fits):
            raise ValueError(f"softnum.jax.matmul: c of shape {c.shape} does not broadcast to {wanted}")
        c = jnp.broadcast_to(c, wanted).reshape(shape)
    if b.ndim == 2 and (how.whole or not how.forward.unit.stochastic):
        a, flat = a.reshape(1, math.prod(a.shape[:-1]), a.shape[-1]), b[None]
    else:
        a, flat = (
            jnp.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(math.prod(lead), *x.shape[-2:]) for x in (a, b)
        )  # fmt: skip
    c = None if c is None else c.reshape(a.shape[0], a.shape[1], flat.shape[-1])
    result = product(how, a, flat, c, _key(how, key, "matmul")).reshape(shape)
    result = result[..., 0, :] if vectors[0] else result
    result = result[..., 0] if vectors[1] else result
    return result.astype(dtype) if how.whole else result


def _key(how: Arithmetic, key, caller: str):
    """The key as an array; zeros where nothing takes random bits."""
    if not how.stochastic:
        return jnp.zeros(4, jnp.uint32)
    if key is None:
        raise ValueError(f"softnum.jax.{caller}: {how.name} rounds stochastically; state key=softnum.jax.key(seed)")
    return check_key(key, caller)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def product(how: Arithmetic, a, b, c, key):
    """(products, M, K) @ (products, K, N), from c or zeros, of float32 or float64; differentiable."""
    start = None if c is None else rounded(how.start, c, key)
    return computed(how.forward, rounded(how.forward.left, a, key), rounded(how.forward.right, b, key), start, key)


def _forward(how, a, b, c, key):
    return product(how, a, b, c, key), (a, b, None if c is None else jnp.zeros((), c.dtype), key)


def _backward(how, saved, gradient):
    a, b, like_c, key = saved
    data, weight = how.backward_data, how.backward_weight
    other = jnp.swapaxes(rounded(data.right, b, key), 1, 2)
    of_a = computed(data, rounded(data.left, gradient, key), other, None, key)
    values = jnp.swapaxes(rounded(weight.left, a, key), 1, 2)
    of_b = computed(weight, values, rounded(weight.right, gradient, key), None, key)
    of_c = None if like_c is None else gradient.astype(like_c.dtype)
    return of_a.astype(a.dtype), of_b.astype(b.dtype), of_c, np.zeros(4, jax.dtypes.float0)


product.defvjp(_forward, _backward)


def rounded(how: Rounded | None, x, key):
    """An operand's values; of a format that holds all numbers of its dtype, the numbers."""
    if how is None or how.format.contains(format(_FORMATS[x.dtype.name])):
        return x
    key = jumped(key, how.site) if how.stochastic else None
    options = {"rounding": how.rounding, "overflow": how.overflow, "stochastic_bits": how.stochastic_bits}
    return quantize(x, how.format, key=key, **options)


def computed(how: Pass, a, b, c, key):
    """One pass's products by the handler."""
    plan = product_of(how.unit)
    if plan.dtype == "float64" and not jax.config.jax_enable_x64:
        raise ValueError(
            f"softnum.jax.matmul: results of {how.unit.result} take float64, which JAX has after "
            "jax.config.update('jax_enable_x64', True)"
        )
    steps = how.unit.steps_with_c(a.shape[-1])
    if max(*a.shape, b.shape[-1], steps) >= 2**32:
        raise ValueError(f"softnum.jax.matmul: no dimension may reach 2**32, got {a.shape} @ {b.shape}")
    shape = jax.ShapeDtypeStruct((a.shape[0], a.shape[1], b.shape[2]), plan.dtype)
    call = jax.ffi.ffi_call("softnum_jax_matmul", shape, vmap_method="broadcast_all")
    key = jumped(key, how.site) if how.unit.stochastic else key
    return call(a, b, *(() if c is None else (c,)), key, plan=plan.name)


def weight_gradients(gradients, unit, *, key=None):
    """Gradients of parameters, all uses added, rounded to a design's role ``weight_gradients``.

    What `softnum.torch` does to each parameter's gradient; here between ``jax.grad`` and the optimiser.

    Parameters
    ----------
    gradients : pytree of arrays
    unit : Design, str or Arithmetic
        As of `arithmetic`; of a unit alone gradients stay as they are.
    key : optional
        As of `matmul`; leaf i takes its jump by ``16 * i`` and the place of the role.

    Returns
    -------
    The same pytree

    Examples
    --------
    >>> import jax.numpy as jnp, softnum.jax as sj
    >>> sj.weight_gradients({"w": jnp.float32([0.3])}, "f-q44-nearest")["w"].item()
    0.3125
    """
    how = arithmetic(unit)
    if how.weight_gradients is None:
        return gradients
    if how.weight_gradients.stochastic:
        if key is None:
            raise ValueError(f"softnum.jax.weight_gradients: {how.name} rounds stochastically; state key=")
        key = check_key(key, "weight_gradients")
    leaves, tree = jax.tree.flatten(gradients)
    keys = [None if key is None else jumped(key, 16 * i) for i in range(len(leaves))]
    made = [rounded(how.weight_gradients, jnp.asarray(x), k) for x, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, made)
