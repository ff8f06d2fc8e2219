"""What computes with the formats of `softnum.formats.wide`, in Python integers: their codec and their arithmetic.

The results are those that `softnum.reference` defines, by its own functions: TestFloat, MPFR and x87 judge them.
"""

from softnum.wide.arithmetic import WideArithmetic
from softnum.wide.codec import WideCodec

__all__ = ["WideArithmetic", "WideCodec"]
