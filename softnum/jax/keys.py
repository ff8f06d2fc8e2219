"""Keys of stochastic roundings as arrays, which jit can trace: `softnum.Stream`'s seed and stream."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from softnum.arrays.streams import Stream
from softnum.jax.build import library

__all__ = ["check_key", "jumped", "key", "spawn"]


def key(seed, stream: int | None = None) -> jax.Array:
    """The key of `softnum.Stream` as an array, for `quantize`, `matmul` and `intercept`.

    Parameters
    ----------
    seed : int, (int, int) or Stream
    stream : int, optional
        As of `softnum.Stream`.

    Returns
    -------
    jax.Array of uint32, shape (4,)
        Seed and stream, the low half of each first.

    Raises
    ------
    ValueError
        If seed or stream is out of range.

    Examples
    --------
    >>> import softnum.jax as sj
    >>> sj.key(7, 1)
    Array([7, 0, 1, 0], dtype=uint32)
    """
    given = Stream(seed, stream)
    words = [half for x in given for half in (x & 0xFFFFFFFF, x >> 32)]
    return jnp.asarray(np.array(words, np.uint32))


def check_key(given, caller: str) -> jax.Array:
    """A key, or what `key` makes one of; TypeError of others."""
    if isinstance(given, (int, tuple)):
        return key(given)
    if getattr(given, "shape", None) != (4,) or given.dtype != jnp.uint32:
        shown = f"{given.dtype} of shape {given.shape}" if hasattr(given, "dtype") else repr(given)
        raise TypeError(
            f"softnum.jax.{caller}: a key is an integer, a pair, a softnum.Stream, or an array of "
            f"softnum.jax.key(seed, stream): uint32 of shape (4,); got {shown}"
        )
    return given


def jumped(given: jax.Array, n: int) -> jax.Array:
    """`softnum.Stream.jumped`, of a key whose stream has room for it."""
    return given.at[2].add(jnp.uint32(n)) if n else given


def spawn(given, child) -> jax.Array:
    """The key of a child, one for each number: `softnum.Stream.spawn`, in jit too.

    So a training step has a key of its own: ``spawn(key, step)``.

    Parameters
    ----------
    given : key
    child : int or integer array
        Which: 0 to 2**32 - 1.

    Returns
    -------
    jax.Array of uint32, shape (..., 4)

    Raises
    ------
    TypeError
        If the number is no integer.

    Examples
    --------
    >>> import softnum as sn, softnum.jax as sj
    >>> sj.spawn(sj.key(7), 3).tolist() == sj.key(sn.Stream(7).spawn(1, first=3)[0]).tolist()
    True
    """
    given = check_key(given, "spawn")
    if isinstance(child, int) and not 0 <= child < 1 << 32:
        raise ValueError(f"softnum.jax.spawn: a child's number is an integer in 0..2**32-1, got {child}")
    child = jnp.asarray(child, jnp.uint32 if isinstance(child, int) else None)
    if not jnp.issubdtype(child.dtype, jnp.integer):
        raise TypeError(f"softnum.jax.spawn: a child's number is an integer, got {child.dtype}")
    library()
    keys = jnp.broadcast_to(given, (*child.shape, 4))
    shape = jax.ShapeDtypeStruct(keys.shape, jnp.uint32)
    call = jax.ffi.ffi_call("softnum_jax_spawn", shape, vmap_method="broadcast_all")
    return call(keys, child.astype(jnp.uint32))
