"""The executable definition of softnum's arithmetic, in Python integers and Fractions.

Slow, readable, and independent: it shares no code with what it judges, and imports nothing of softnum but its own
modules. A format of softnum is read by its parameters alone (`softnum.reference.facts`); names and flags are its own. A
result is defined in two steps: the exact value of the operation (`Value`: a ratio of integers, an infinity or a NaN),
then one delivery of it to the result's format, where `round_value` rounds.

Sources: IEEE Std 754-2019 (clause 4: rounding; 5: operations; 6: infinities, NaNs, sign of zero; 7: exceptions; 9.6:
minimum and maximum); Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox).
"""

from softnum.reference.block_dot import block_dot
from softnum.reference.blocks import block_scale, decode_block, encode_block, tensor_scale
from softnum.reference.elementary import (
    acos,
    asin,
    atan,
    cbrt,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    gelu,
    hypot,
    log,
    log1p,
    log2,
    log10,
    pow,
    reciprocal,
    rsqrt,
    sigmoid,
    silu,
    sin,
    sinh,
    softplus,
    tan,
    tanh,
)
from softnum.reference.exact import exact_dot
from softnum.reference.fused import fma_chain_dot, fused_dot
from softnum.reference.integers import from_integer, shift, to_integer, ulp_error
from softnum.reference.mac import mad_dot
from softnum.reference.operations import (
    add,
    convert,
    divide,
    encode,
    fma,
    logb,
    multiply,
    remainder,
    round_to_integral,
    scalb,
    sqrt,
    subtract,
)
from softnum.reference.order import (
    CLASSES,
    absolute,
    classify,
    compare,
    copysign,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
    negate,
    next_down,
    next_up,
    total_order,
)
from softnum.reference.random_words import philox4x32_10, random_word_elementwise, random_words_matmul
from softnum.reference.rounding import round_value
from softnum.reference.values import Value, decode, to_fraction

__all__ = [
    "CLASSES", "Value", "absolute", "acos", "add", "asin", "atan", "block_dot", "block_scale", "cbrt", "classify",
    "compare", "convert", "copysign", "cos", "cosh", "decode", "decode_block", "divide", "encode", "encode_block",
    "erf", "exact_dot", "exp", "exp2", "expm1", "fma", "fma_chain_dot", "from_integer", "fused_dot", "gelu", "hypot",
    "log", "log10", "log1p", "log2", "logb", "mad_dot", "maximum", "maximum_number", "minimum", "minimum_number",
    "multiply", "negate", "next_down", "next_up", "philox4x32_10", "pow", "random_word_elementwise",
    "random_words_matmul", "reciprocal", "remainder", "round_to_integral", "round_value", "rsqrt", "scalb", "shift",
    "sigmoid", "silu", "sin", "sinh", "softplus", "sqrt", "subtract", "tan", "tanh", "tensor_scale", "to_fraction",
    "to_integer", "total_order", "ulp_error",
]  # fmt: skip
