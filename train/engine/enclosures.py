"""Correctly rounded functions from enclosures in binary64, for formats too wide for a table.

Ziv's method with one step: the value and a bound of its error, rounded at both ends. Where the ends agree, so does all
that lies between them, for every deterministic rounding is monotonic; the rest is left to softnum's C core. So the bits
are the core's, in a twentieth of the time. Binary64 is used with additions, multiplications and divisions only, whose
results IEEE 754 determines.

The bound. With k = rint(x / ln 2), x - k * ln2_high is exact (ln2_high has 32 bits; for k = 0 it is x, else Sterbenz),
so r = (x - k * ln2_high) - k * ln2_low is off by less than 2**-54.9, and abs(r) < 0.3467. Of e**r - 1 thirteen terms
are summed: what is left out is below 2**-55 of it, and all with rounding below 2**-51.4 of it (Horner's rule: each step
has two roundings, and r shrinks those before). 1 + that, times 2**k, is e**x to 2**-51. For x <= 0, that times 2**k,
plus (2**k - 1), which is exact, is e**x - 1 to 2**-50.8: for k < 0 it is at least 0.29 in size. A quotient of such
numbers adds their errors and two roundings, its product with x one more: below 2**-49. The bound is four times that.

References
----------
A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991. Sterbenz: J.-M.
Muller et al., "Handbook of Floating-Point Arithmetic", 2018, lemma 4.1; Horner's rule: section 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.formats.facts import facts

__all__ = ["LN2_HIGH", "LN2_LOW", "LOG2_E", "enclose", "encloses"]

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # the 32 leading bits of ln 2: its product with an exponent is exact
LN2_LOW = 1.9082149292705877e-10
BOUND = 2.0**-47
_TERMS = tuple(1.0 / math.factorial(n) for n in range(13, 0, -1))
_LARGEST, _SMALLEST = 80.0, 2.0**-500  # of arguments: far from where binary64 overflows, or underflows
_TABLE_BITS = 16
_PRECISION = 32  # bits, above which the bound decides too few roundings
_BLOCK = 4096  # elements at a time, that stay in the cache


def _powers(x):
    """(e**r - 1, 2**k) with e**x = e**r * 2**k, of numbers between -2 * _LARGEST and _LARGEST."""
    k = np.rint(x * LOG2_E)
    r = x - k * LN2_HIGH
    r -= k * LN2_LOW
    total = np.full_like(r, _TERMS[0])
    for term in _TERMS[1:]:
        total *= r
        total += term
    total *= r
    scale = ((k.astype(np.int64) + 1023) << 52).view(np.float64)
    return total, scale


def _exp(x):
    less, scale = _powers(x)
    return (1.0 + less) * scale


def _sigmoid(x):
    power = _exp(-np.abs(x))  # at most 1
    return np.where(x < 0.0, power, 1.0) / (1.0 + power)


def _tanh(x):
    less, scale = _powers(-2.0 * np.abs(x))
    less *= scale
    less += scale - 1.0  # e**(-2 abs(x)) - 1
    return np.copysign(less / (2.0 + less), x)


def _silu(x):
    return x * _sigmoid(x)


_FUNCTIONS: dict[str, Callable] = {"exp": _exp, "sigmoid": _sigmoid, "silu": _silu, "tanh": _tanh}


def encloses(operation: str, role) -> bool:
    """Whether `enclose` computes an operation in a role: not where a table is faster, or a rounding is not monotonic.

    >>> import softnum as sn
    >>> from softnum.train.designs.design import RoleRounding
    >>> [encloses("tanh", RoleRounding(sn.format(name))) for name in ("binary32", "bfloat16", "binary64")]
    [True, False, False]
    """
    fmt = role.format
    if operation not in _FUNCTIONS or role.stochastic or role.overflow == "wrap":
        return False
    return _is_decided(fmt)


@of_format
def _is_decided(fmt) -> bool:
    """Whether an enclosure decides the rounding to a format."""
    return facts(fmt).precision <= _PRECISION and fmt.bits > _TABLE_BITS


@_is_decided.custom
@_is_decided.block
def _not_monotonic(fmt) -> bool:
    return False


def enclose(operation: str, x, round_to: Callable):
    """An operation on numbers, where its enclosure decides the rounding.

    Parameters
    ----------
    operation : str
        Of those that `encloses` is true of.
    x : float array
    round_to : callable
        Rounds float64 arrays.

    Returns
    -------
    rounded : array
        As round_to returns them.
    undecided : integer array
        Which elements, in C order, are left to do: where the ends differ, tiny and large arguments, and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> enclose("sigmoid", np.float32([0.0, 1.0, -100.0]), np.float32)
    (array([0.5      , 0.7310586, 0.5      ], dtype=float32), array([2]))
    """
    flat = x.reshape(-1).astype(np.float64)
    size = np.abs(flat)
    far = ~(size <= _LARGEST) | ((size < _SMALLEST) & (size > 0.0))
    if far.any():
        flat[far] = 0.0
    values = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        values[start : start + _BLOCK] = _FUNCTIONS[operation](flat[start : start + _BLOCK])
    ends = round_to(values * (1.0 - BOUND)), round_to(values * (1.0 + BOUND))
    return ends[0].reshape(x.shape), np.flatnonzero((ends[0] != ends[1]) | far)
