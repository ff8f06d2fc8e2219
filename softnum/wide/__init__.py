"""What computes with formats of more than 64 bits, in Python integers: the codec and the arithmetic of `softnum.formats.wide`.

The results are those that `softnum.reference` defines, by its own functions: TestFloat, MPFR and x87 judge them.
"""

from softnum.wide.arithmetic import WideArithmetic
from softnum.wide.codec import WideCodec

__all__ = ["WideArithmetic", "WideCodec"]
