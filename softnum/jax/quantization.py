"""Rounding of arrays to a format, differentiable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from softnum.formats.blocks import format
from softnum.formats.modes import rounding_name
from softnum.jax.keys import check_key
from softnum.jax.plans import rounding_of

__all__ = ["carrier", "quantize"]

_GRADIENTS = ("straight_through", "masked")
_CARRIERS = {"float32": "binary32", "float64": "binary64", "float16": "binary16", "bfloat16": "bfloat16"}


@dataclass(frozen=True)
class _How:
    """The plan of a rounding, and the numbers outside of which gradients are masked."""

    plan: str
    within: tuple[float, float] | None


def quantize(
    x, fmt, *, rounding: str = "nearest_even", overflow: str | None = None, key=None, stochastic_bits: int = 32,
    gradient: str = "straight_through",
) -> jax.Array:  # fmt: skip
    """Numbers rounded to a format, as an array of the same dtype: `softnum.quantize` for JAX, the same bits.

    Parameters
    ----------
    x : array of float32, float64, bfloat16 or float16
    fmt : Format, dtype or str
    rounding, overflow, stochastic_bits : optional
        As in `softnum.quantize`.
    key : int, (int, int), Stream or array, optional
        Of a stochastic rounding's random bits; an array is that of `softnum.jax.key`, and may be traced.
    gradient : str
        "straight_through": the result's gradient is x's. "masked": it is 0 where x lies above the largest number of the
        format or below the most negative one, and where it is NaN.

    Returns
    -------
    jax.Array

    Raises
    ------
    ValueError
        If the dtype of x does not hold the format's numbers, or an option is none of the format's, when it is traced;
        if a NaN has no code in the format, when it is computed (JAX's own error, with this text).
    TypeError
        If x is not of floating point.
    NotImplementedError
        Of formats of blocks, and those that binary64 does not hold.
    RuntimeError
        If there is no C compiler, at the first call.

    Notes
    -----
    Under ``vmap`` each element of the batch is rounded as by a call of its own: with one key for all, by the same
    random words; with a batch of keys, by those of its own.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, softnum.jax as sj
    >>> x = jnp.float32([0.3, 1000.0])
    >>> sj.quantize(x, "e4m3fn", overflow="saturate").tolist()
    [0.3125, 448.0]
    >>> loss = lambda x: sj.quantize(x, "e4m3fn", overflow="saturate", gradient="masked").sum()
    >>> jax.grad(loss)(x).tolist()
    [1.0, 0.0]
    """
    if gradient not in _GRADIENTS:
        raise ValueError(f"softnum.jax.quantize: gradient must be one of {', '.join(_GRADIENTS)}, got {gradient!r}")
    fmt, mode = format(fmt), rounding_name(rounding)
    if mode.startswith("stochastic"):
        if key is None:
            raise ValueError(f"softnum.jax.quantize: rounding {rounding!r} takes random bits; state key=(seed, stream)")
        key = check_key(key, "quantize")
    else:
        key = jnp.zeros(4, jnp.uint32)
    x, dtype = carrier(x, "quantize", "x")
    plan = rounding_of(fmt, mode, overflow, stochastic_bits)
    if format(_CARRIERS[dtype.name]).contains(fmt) is False:
        raise ValueError(
            f"softnum.jax.quantize: an array of {dtype} does not hold every value of {fmt}; convert it: "
            "x.astype(jnp.float32), or jnp.float64 (jax.config.update('jax_enable_x64', True))"
        )
    within = (float(fmt.min), float(fmt.max)) if gradient == "masked" else None
    return _quantize(_How(plan, within), x, key).astype(dtype)


def carrier(x, caller: str, what: str) -> tuple[jax.Array, np.dtype]:
    """x as float32 or float64, exactly, and the dtype that it had; TypeError of others."""
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ValueError(
            f"softnum.jax.{caller}: {what} is of float64, which JAX rounds to float32 before anything sees it; "
            "jax.config.update('jax_enable_x64', True) keeps it, or convert it: numpy.float32(...)"
        )
    x = jnp.asarray(x)
    if x.dtype.name not in _CARRIERS:
        raise TypeError(
            f"softnum.jax.{caller}: {what} must be of {', '.join(_CARRIERS)}, got {x.dtype}; convert it: "
            f"{what}.astype(jnp.float32)"
        )
    return (x if x.dtype.itemsize > 2 else x.astype(jnp.float32)), x.dtype


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _quantize(how: _How, x, key):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.ffi.ffi_call("softnum_jax_quantize", shape, vmap_method="broadcast_all")(x, key, plan=how.plan)


def _forward(how: _How, x, key):
    return _quantize(how, x, key), x if how.within else None


def _backward(how: _How, x, gradient):
    if how.within:
        low, high = how.within
        gradient = jnp.where((x >= low) & (x <= high), gradient, jnp.zeros_like(gradient))
    return gradient, np.zeros(4, jax.dtypes.float0)


_quantize.defvjp(_forward, _backward)
