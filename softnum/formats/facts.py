"""What a proof needs of a format's values: how many bits, how fine, how large; and which float types hold them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["Facts", "facts", "fits", "is_exact_in"]


@dataclass(frozen=True)
class Facts:
    """All values are integers of at most `precision` bits times a power of two, multiples of 2**last, and below
    2**(top + 1) in magnitude; `specials`: or infinities or NaNs. Facts times facts are those of the products."""

    precision: int
    last: int
    top: int
    specials: bool

    def __mul__(self, other: Facts) -> Facts:
        return Facts(
            self.precision + other.precision, self.last + other.last, self.top + other.top + 1,
            self.specials or other.specials,
        )  # fmt: skip


# float type -> (precision, lowest exponent of a last bit, highest exponent)
_HELD = {np.dtype("f2"): (11, -24, 15), np.dtype("f4"): (24, -149, 127), np.dtype("f8"): (53, -1074, 1023)}


def facts(fmt: Any) -> Facts:
    """The facts of any format; of a block format, those of element times scale, and times the array's scale.

    >>> import softnum as sn
    >>> facts(sn.format("e5m2")), facts(sn.format("uq4.4"))
    (Facts(precision=3, last=-16, top=15, specials=True), Facts(precision=8, last=-4, top=3, specials=False))
    """
    return fmt.value_facts


def _within(f: Facts, dtype, spare: int = 0) -> bool:
    precision, last, top = _HELD[np.dtype(dtype)]
    return f.precision <= precision + spare and f.last >= last and f.top <= top


def fits(fmt: Any, dtype: DTypeLike) -> bool:
    """Whether every value of the format is exact in float32 (or float16, or float64), and -0 and NaN are kept.

    Signed fixed point must leave one bit to spare: `is_exact_in` takes it without.

    >>> import softnum as sn
    >>> [fits(sn.format(name), "float32") for name in ("e6m9", "q24.0", "q25.0", "binary64")]
    [True, True, False, False]
    """
    return _within(facts(fmt), dtype)


def is_exact_in(fmt: Any, dtype: DTypeLike) -> bool:
    """Whether every value of the format is exact in the float type: as `fits`, but to the last bit of fixed point.

    The lowest value of signed fixed point is a power of two, the others have a bit less than the code.

    >>> import softnum as sn
    >>> [is_exact_in(sn.format(name), "float32") for name in ("e6m9", "q25.0", "q26.0", "binary64")]
    [True, True, False, False]
    """
    return _within(facts(fmt), dtype, spare=fmt.spare_bits)
