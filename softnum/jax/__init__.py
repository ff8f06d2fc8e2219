"""JAX functions in any arithmetic."""

from softnum.runtime.plain import PlainEnvironment

with PlainEnvironment():  # they compute constants
    from softnum.jax.interception import Rule, intercept
    from softnum.jax.keys import key, spawn
    from softnum.jax.numerics import Arithmetic, arithmetic
    from softnum.jax.products import matmul, weight_gradients
    from softnum.jax.quantization import quantize

__all__ = [
    "Arithmetic",
    "Rule",
    "arithmetic",
    "intercept",
    "key",
    "matmul",
    "quantize",
    "spawn",
    "weight_gradients",
]
