"""The executable definition of softnum's arithmetic, in Python integers and Fractions.

Slow, readable, and independent: it shares no code with what it judges, and imports nothing of softnum but its own
modules. A format of softnum is read by its parameters alone (`softnum.reference.facts`); names and flags are its own. A
result is defined in two steps: the exact value of the operation (`Value`: a ratio of integers, an infinity or a NaN),
then one delivery of it to the result's format, where `round_value` rounds.

Sources: IEEE Std 754-2019 (clause 4: rounding; 5: operations; 6: infinities, NaNs, sign of zero; 7: exceptions; 9.6:
minimum and maximum); Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox).
"""

from softnum.reference import elementary as _elementary
from softnum.reference import operations as _operations
from softnum.reference import order as _order
from softnum.reference.block_dot import block_dot
from softnum.reference.block_fused import block_fused_dot
from softnum.reference.blocks import block_scale, decode_block, encode_block, tensor_scale
from softnum.reference.elementary import *  # noqa: F403  what its __all__ lists
from softnum.reference.exact import exact_dot
from softnum.reference.fused import fma_chain_dot, fused_dot
from softnum.reference.grouped import grouped_dot
from softnum.reference.integers import from_integer, shift, to_integer, ulp_error
from softnum.reference.mac import mad_dot
from softnum.reference.operations import *  # noqa: F403
from softnum.reference.order import *  # noqa: F403
from softnum.reference.random_words import philox4x32_10, random_word_elementwise, random_words_matmul
from softnum.reference.rounding import round_value
from softnum.reference.two_stage import two_stage_dot
from softnum.reference.values import Value, decode, to_fraction

__all__ = [
    "Value", "block_dot", "block_fused_dot", "block_scale", "decode", "decode_block", "encode_block", "exact_dot",
    "fma_chain_dot", "from_integer", "fused_dot", "grouped_dot", "mad_dot", "philox4x32_10", "random_word_elementwise",
    "random_words_matmul", "round_value", "shift", "tensor_scale", "to_fraction", "to_integer", "two_stage_dot",
    "ulp_error",
]  # fmt: skip
__all__ += _elementary.__all__
__all__ += _operations.__all__
__all__ += _order.__all__
__all__.sort()
