"""The executable definition of softnum's arithmetic, in Python integers and Fractions.

Slow, readable, and independent: it shares no code with the C core it judges. Of softnum it uses only the facts of the
formats and the names of modes and flags. A result is defined in two steps: the exact value of the operation (`Value`:
a ratio of integers, an infinity or a NaN), then one delivery of it to the result's format, where `round_value` rounds.

Sources: IEEE Std 754-2019 (clause 4: rounding; 5: operations; 6: infinities, NaNs, sign of zero; 7: exceptions);
Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox).
"""

from softnum.reference.operations import add, convert, encode, fma, multiply, subtract
from softnum.reference.random_words import philox4x32_10, random_word_elementwise, random_words_matmul
from softnum.reference.rounding import round_value
from softnum.reference.units import mad_dot
from softnum.reference.values import Value, decode, to_fraction

__all__ = [
    "Value", "add", "convert", "decode", "encode", "fma", "mad_dot", "multiply", "philox4x32_10",
    "random_word_elementwise", "random_words_matmul", "round_value", "subtract", "to_fraction",
]  # fmt: skip
